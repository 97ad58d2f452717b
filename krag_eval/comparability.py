"""Whether results may be compared: made over the same queries, in the same way.

This room knows what a fair comparison needs, and words what stands in its way. It must not know
statistics, or how results were made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import clipped, warn
from krag_eval.results.result import EvaluationResult
from krag_eval.scoring.cutoffs import spelled

__all__ = ["check_comparable"]

# Settings in which comparable results may differ; their cutoffs are compared as a set.
_MAY_DIFFER = ("averaging", "k", "krag_eval")
# The first versions from which on some numbers are others than before.
_NUMBERS_CHANGED = ((0, 2),)
_UNKNOWN = "settings unknown"
_NAMED = 5


def check_comparable(
    results: Mapping[str, EvaluationResult], *, same_ground_truth: bool = True
) -> EvaluationResult:
    """Refuse results that differ in more than the retriever; return the first.

    Args:
        results: Name -> result.
        same_ground_truth: Whether the ground truth of every query must be the same.

    Raises:
        TypeError: If ``results`` is not a mapping of names to results.
        ValueError: If there are fewer than two, or two of them differ; the message says in what.

    Warns:
        KragEvalWarning: If something cannot be told: the ground truth of a result of 0.1.0, the
            settings of a matcher of one's own; or if versions differ.
    """
    (first_name, first), *others = _checked_results(results).items()
    for name, other in others:
        settings = _differing_settings(first, other)
        differing = [*settings, *_differing_queries(first, other)]
        if same_ground_truth and first.labels == other.labels:
            differing += _differing_ground_truth(first, other)
        if differing:
            raise ValueError(
                f"results: {first_name!r} and {name!r} cannot be compared, because they differ in "
                f"{'; '.join(differing)}. Evaluate both over the same queries with the same "
                f"settings.{_old_remedy({first_name: first, name: other}) if settings else ''}"
            )
    if same_ground_truth:
        _warn_of_unknown_ground_truth(results)
    _warn_of_unknown_settings(first)
    _warn_of_versions(results)
    return first


def _checked_results(
    results: Mapping[str, EvaluationResult],
) -> Mapping[str, EvaluationResult]:
    if not isinstance(results, Mapping):
        raise TypeError(
            'results must map names to results, such as {"bm25": result_a, "dense": result_b}, '
            f"got {type(results).__name__}."
        )
    for name, result in results.items():
        if not isinstance(name, str):
            raise TypeError(f"results: a name must be a string, got {name!r}.")
        if not isinstance(result, EvaluationResult):
            raise TypeError(
                f"results: {name!r} must be an EvaluationResult, got {type(result).__name__}."
            )
    if len(results) < 2:
        raise ValueError(f"results must hold at least two results to compare, got {len(results)}.")
    return results


def _differing_settings(first: EvaluationResult, other: EvaluationResult) -> list[str]:
    names = [name for name in {**first.settings, **other.settings} if name not in _MAY_DIFFER]
    pairs = [(name, first.settings.get(name, "?"), other.settings.get(name, "?")) for name in names]
    differing = [f"{name}: {ours} vs {theirs}" for name, ours, theirs in pairs if ours != theirs]
    if set(first.k) != set(other.k):
        ours, theirs = (",".join(map(spelled, result.k)) for result in (first, other))
        differing.append(f"k: {ours} vs {theirs}")
    return differing


def _differing_queries(first: EvaluationResult, other: EvaluationResult) -> list[str]:
    if first.n_queries != other.n_queries:
        known = first.settings.get("queries") != other.settings.get("queries")
        return [] if known else [f"queries: {first.n_queries} vs {other.n_queries}"]
    if first.labels != other.labels:
        reordered = sorted(map(repr, first.labels)) == sorted(map(repr, other.labels))
        what = "order of the queries" if reordered else "queries"
        places = [f"position {i}" for i in range(first.n_queries)]
        return [_first_difference(what, first.labels, other.labels, places)]
    return _differing_column("counted in the averages", first, first.counted, other.counted)


def _differing_ground_truth(first: EvaluationResult, other: EvaluationResult) -> list[str]:
    """Say where the same queries have other ground truth, as far as it is known."""
    what = "number of ground-truth items"
    differing = _differing_column(what, first, _ground_truth(first), _ground_truth(other))
    ours, theirs = first.rows.digests, other.rows.digests
    if ours is None or theirs is None:
        return differing
    rows = zip(first.labels, ours, theirs, strict=True)
    # The last part is of what their matcher looks at, and it is the same matcher.
    places = [label for label, our, their in rows if _seen(our) != _seen(their)]
    if places and first.settings.get("matcher") == other.settings.get("matcher"):
        differing.append(f"the ground truth of {_named(places)}")
    return differing


def _seen(digest: str) -> str:
    return digest.rpartition("-")[2]


def _named(labels: Sequence[str | int]) -> str:
    named = ", ".join(map(clipped, labels[:_NAMED]))
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return f"{'query' if len(labels) == 1 else 'queries'} {named}{more}"


def _differing_column(
    what: str, result: EvaluationResult, ours: NDArray[Any], theirs: NDArray[Any]
) -> list[str]:
    if np.array_equal(ours, theirs):
        return []
    places = [f"query {clipped(label)}" for label in result.labels]
    return [_first_difference(what, ours.tolist(), theirs.tolist(), places)]


def _ground_truth(result: EvaluationResult) -> NDArray[np.int64]:
    return np.asarray(next(iter(result.tables.values()))["ground_truth"])


def _first_difference(
    what: str, ours: Sequence[object], theirs: Sequence[object], places: Sequence[str]
) -> str:
    """Word where two columns differ first, and in how many places more."""
    rows = zip(places, ours, theirs, strict=True)
    (place, our, their), *more = [row for row in rows if row[1] != row[2]]
    others = f", and {len(more)} more" if more else ""
    return f"{what}: {clipped(our)} vs {clipped(their)} ({place}{others})"


def _without_digests(results: Mapping[str, EvaluationResult]) -> str:
    """Name the results that do not know what their ground truth was."""
    return ", ".join(repr(name) for name, one in results.items() if one.rows.digests is None)


def _old_remedy(results: Mapping[str, EvaluationResult]) -> str:
    old = _without_digests(results)
    return f" Saved by krag_eval 0.1: {old}; evaluate and save anew." if old else ""


def _warn_of_unknown_ground_truth(results: Mapping[str, EvaluationResult]) -> None:
    old = _without_digests(results)
    if old:
        warn(
            f"Whether the results have the same ground truth could not be checked beyond the "
            f"number of items, because krag_eval 0.1 saved nothing to tell it by ({old}). Evaluate "
            "and save anew to have it checked."
        )


def _warn_of_unknown_settings(result: EvaluationResult) -> None:
    matcher = result.settings.get("matcher", "")
    if _UNKNOWN in matcher:
        warn(
            f"Whether the results were made with the same settings of the matcher {matcher} could "
            "not be checked; have its settings() return them."
        )


def _warn_of_versions(results: Mapping[str, EvaluationResult]) -> None:
    versions = {name: result.settings.get("krag_eval", "?") for name, result in results.items()}
    if len(set(versions.values())) == 1:
        return
    named = ", ".join(f"{name!r}: {version}" for name, version in versions.items())
    numbers = {_numbers_since(version) for version in versions.values()}
    differ = ", between which reported numbers changed" if len(numbers) > 1 else ""
    warn(
        f"The results were made by different versions of krag_eval ({named}){differ}. See 'changes "
        "in reported numbers' in the documentation, or evaluate again with one version."
    )


def _numbers_since(version: str) -> int:
    """Return how many times numbers had changed by a version; -1 for one that is none.

    >>> _numbers_since("0.1.0"), _numbers_since("0.2.0.dev0"), _numbers_since("?")
    (0, 1, -1)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        return -1
    made = int(found[1]), int(found[2])
    return sum(made >= change for change in _NUMBERS_CHANGED)
