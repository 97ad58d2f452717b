"""The averages at other thresholds, from the similarities that a result keeps.

For ``EvaluationResult.metrics_at_thresholds``; nothing is matched again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import Advice, InvalidInput, number
from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.results.evidence import Evidence
from krag_eval.scoring.cutoffs import Budget, Cutoff, parse_metric, spelled
from krag_eval.scoring.metrics import (
    Metric,
    averages_of,
    built_in,
    declarations,
    metrics_for,
    resolved_average,
    table_of,
)
from krag_eval.scoring.parts import Summary
from krag_eval.scoring.relevance import Relevance

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["averages_at_thresholds"]

#: An average and its cutoff.
AverageAt: TypeAlias = tuple[str, Cutoff]

_STEPS = 20


def averages_at_thresholds(
    evidence: Evidence,
    metrics: str | Iterable[str],
    thresholds: Iterable[float] | None = None,
    *,
    counted: NDArray[np.bool_],
    criteria: MatchingCriteria,
    conventions: Conventions,
    condensed: bool = False,
) -> pd.DataFrame:
    """Return averages at several thresholds: one row per threshold, one column per average.

    Args:
        evidence: The similarities.
        metrics: One average or several, each with its cutoff: ``"macro_recall@5"``.
        thresholds: Numbers from 0 to 1; steps of 0.05 and the evidence's own if not given.
        counted: Whether a query counts in the averages; shape (queries,).
        criteria: When a query is a hit.
        conventions: How the disputed points are settled.
        condensed: Whether documents that are not judged are left out.

    Raises:
        InvalidType: If a threshold is not a number.
        InvalidInput: If the matcher takes no threshold, a metric is not built in, or a threshold
            is out of range.
    """
    import pandas as pd

    if not evidence.takes_threshold:
        raise InvalidInput(
            "thresholds",
            ": the matcher of this result decides without one, so nothing would change",
            Advice("use a similarity matcher: {}", matcher="coverage"),
        )
    known = metrics_for(criteria)
    asked = [_checked_metric(one, known) for one in _several(metrics)]
    wanted = [average for average, _ in asked]
    rows = _checked_thresholds(thresholds, evidence.relevance.threshold)
    for unit in dict.fromkeys(k.unit for _, k in wanted if isinstance(k, Budget)):
        evidence = replace(evidence, relevance=evidence.measured(unit))
    found = map(evidence.at_threshold, rows)
    values = [
        _averages(one.condensed() if condensed else one, dict(asked), counted, conventions)
        for one in found
    ]
    return pd.DataFrame(
        [[found[one] for one in wanted] for found in values],
        index=pd.Index(rows, name="threshold", dtype=np.float64),
        columns=[f"{key}@{spelled(k)}" for key, k in wanted],
    )


def _averages(
    relevance: Relevance,
    wanted: Mapping[AverageAt, Metric],
    counted: NDArray[np.bool_],
    conventions: Conventions,
) -> Mapping[AverageAt, float]:
    averages: dict[AverageAt, float] = {}
    for k in dict.fromkeys(k for _, k in wanted):
        metrics = {one.name: one for (_, at), one in wanted.items() if at == k}
        summary = Summary.of(
            {k: table_of(relevance, k, metrics, conventions)},
            counted,
            keys={name: metric.key for name, metric in metrics.items()},
            averaging_method=AveragingMethod.BOTH,
            conventions=conventions,
            declared=declarations(metrics),
        )
        averages |= {(key, k): value for key, value in summary.averages(k).items()}
    return averages


def _several(metrics: str | Iterable[str]) -> list[str]:
    several = [metrics] if isinstance(metrics, str) else list(metrics)
    if not several:
        raise InvalidInput("metrics", "must name at least one average, such as 'macro_recall@5'")
    return several


def _checked_metric(name: str, known: Mapping[str, Metric]) -> tuple[AverageAt, Metric]:
    """Return the average that is asked for, its cutoff and its metric, which must be built in."""
    key, k = parse_metric(name, "metrics")
    asked = built_in(key)  # under the parameters it is named with
    metrics = {**known, asked.name: asked} if asked and asked.parameters else known
    metric_of = {key: one.at() for one in metrics.values() for key in averages_of([one.at()])}
    try:
        average = resolved_average("metrics", key, metric_of)
    except InvalidInput as error:
        own = "For a metric of your own, evaluate again at another threshold"
        fix = f"{error.fix} {own}" if error.fix else own
        raise InvalidInput("metrics", error.problem, fix) from None
    return (average, k), metric_of[average]


def _checked_thresholds(thresholds: Iterable[float] | None, own: float) -> list[float]:
    if thresholds is None:
        return sorted({*(step / _STEPS for step in range(_STEPS + 1)), own})
    rows = [thresholds] if isinstance(thresholds, Real) else list(thresholds)
    if not rows:
        raise InvalidInput("thresholds", "must hold at least one number from 0 to 1, got none")
    return [number("thresholds", threshold, 0, 1) for threshold in rows]
