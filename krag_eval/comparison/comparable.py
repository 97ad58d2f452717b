"""Metrics that several results have: what a comparison, slices and gates can ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from krag_eval.core import (
    Advice,
    Cutoff,
    InvalidInput,
    InvalidType,
    Refusal,
    ResultFacts,
    clipped,
    must,
    parse_metric,
    resolved_average,
    spelled,
)
from krag_eval.core.scoring.parts import Summary


def checked_metrics(
    results: Mapping[str, ResultFacts | Summary], metric: object, argument: str = "metric"
) -> dict[str, tuple[str, Cutoff]]:
    """Return the metrics asked for: spelling -> (key, cutoff).

    Args:
        results: Name -> result, or a summary of no queries, which knows what there will be.
        metric: An average at a cutoff, or several.
        argument: The argument it came in.

    Raises:
        TypeError: If it is neither.
        ValueError: If a result has no such average.
    """
    if not isinstance(metric, Iterable):
        be = "be a string such as 'ndcg@10', or several"
        raise must(argument, be, metric, kind=InvalidType)
    listed = [metric] if isinstance(metric, str) else metric
    found = [checked_metric(results, one, argument) for one in listed]
    if not found:
        raise InvalidInput(argument, "must name at least one metric, got none")
    return {f"{key}@{spelled(k)}": (key, k) for key, k in found}


def checked_metric(
    results: Mapping[str, ResultFacts | Summary],
    metric: object,
    argument: str,
    more: Iterable[str] = (),
) -> tuple[str, Cutoff]:
    """Return the key and the cutoff of an average that all results have, or of ``more``."""
    key, k = parse_metric(metric, argument)
    for name, result in results.items():
        if k not in result.k:
            at = f"{name!r} was evaluated at {', '.join(map(spelled, result.k))}"
            problem = f": {clipped(metric)} needs the cutoff {spelled(k)}, and {at}"
            raise InvalidInput(argument, problem, Advice("evaluate with {}", k=...))
        key = resolved_average(argument, key, [*result.averages(k), *more], result.keys)
    return key, k


def has_rows(result: ResultFacts) -> bool:
    """Tell whether there are per-query rows: a run in parts may have them in a file, or nowhere."""
    try:
        return result.labels is not None
    except (Refusal, OSError):
        return False
