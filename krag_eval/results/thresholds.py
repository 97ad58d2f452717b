"""The averages at other thresholds, from the similarities a result has kept.

This room knows how evidence becomes averages again. It must not know results, texts or drawing,
and nothing is ever matched again here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.conventions import Conventions, MatchingCriteria
from krag_eval.results.evidence import Evidence
from krag_eval.scoring.averages import average, resolved_average
from krag_eval.scoring.cutoffs import parse_metric, spelled
from krag_eval.scoring.metrics import METRICS, metrics_for, table_of
from krag_eval.scoring.relevance import Relevance

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BUILT_IN",
    "averages_at_thresholds",
]

#: An average and its cutoff.
AverageAt: TypeAlias = tuple[str, "int | None"]

_STEPS = 20
_BOTH = ("precision", "recall", "f1")
#: Every average of the built-in metrics, and the column it is an average of.
BUILT_IN = (
    {metric.key: name for name, metric in METRICS.items()}
    | {f"micro_{name}": name for name in _BOTH}
    | {"found_rate": "rank"}
)


def averages_at_thresholds(
    evidence: Evidence,
    metrics: str | Iterable[str],
    thresholds: Iterable[float] | None = None,
    *,
    counted: NDArray[np.bool_],
    criteria: MatchingCriteria,
    conventions: Conventions,
) -> pd.DataFrame:
    """Return averages at several thresholds: one row per threshold, one column per average.

    Args:
        evidence: The similarities.
        metrics: One average or several, each with its cutoff: ``"macro_recall@5"``.
        thresholds: Numbers from 0 to 1; steps of 0.05 and the evidence's own if not given.
        counted: Whether a query counts in the averages; shape (queries,).
        criteria: When a query is a hit.
        conventions: How the disputed points are settled.

    Raises:
        ValueError: If the matcher takes no threshold, a metric is not built in, or a threshold is
            out of range.
    """
    import pandas as pd

    if not evidence.takes_threshold:
        raise ValueError(
            "thresholds: the matcher of this result decides without one, so nothing would change; "
            'use a similarity matcher such as "coverage".'
        )
    wanted = [_checked_metric(metric) for metric in _several(metrics)]
    rows = _checked_thresholds(thresholds, evidence.relevance.threshold)
    values = [
        _averages(evidence.at_threshold(threshold), wanted, counted, criteria, conventions)
        for threshold in rows
    ]
    return pd.DataFrame(
        [[found[one] for one in wanted] for found in values],
        index=pd.Index(rows, name="threshold", dtype=np.float64),
        columns=[f"{key}@{spelled(k)}" for key, k in wanted],
    )


def _averages(
    relevance: Relevance,
    wanted: Sequence[AverageAt],
    counted: NDArray[np.bool_],
    criteria: MatchingCriteria,
    conventions: Conventions,
) -> Mapping[AverageAt, float]:
    known = metrics_for(criteria)
    averages: dict[AverageAt, float] = {}
    for cutoff in dict.fromkeys(k for _, k in wanted):
        names = dict.fromkeys(BUILT_IN[key] for key, k in wanted if k == cutoff)
        table = table_of(relevance, cutoff, {name: known[name] for name in names}, conventions)
        columns = {name: column[counted] for name, column in table.items()}
        for name in names:
            found = average(name, columns, key=known[name].key, conventions=conventions)
            averages |= {(key, cutoff): value for key, value in found.items()}
    return averages


def _several(metrics: str | Iterable[str]) -> list[str]:
    several = [metrics] if isinstance(metrics, str) else list(metrics)
    if not several:
        raise ValueError("metrics must name at least one average, such as 'macro_recall@5'.")
    return several


def _checked_metric(metric: str) -> AverageAt:
    key, k = parse_metric(metric, "metrics")
    try:
        return resolved_average("metrics: an average of a built-in metric", key, BUILT_IN), k
    except ValueError as refusal:
        raise ValueError(
            f"{refusal} For a metric of your own, evaluate evaluator.with_threshold(…)."
        ) from None


def _checked_thresholds(thresholds: Iterable[float] | None, own: float) -> list[float]:
    if thresholds is None:
        return sorted({*(step / _STEPS for step in range(_STEPS + 1)), own})
    if isinstance(thresholds, Real):
        thresholds = [float(thresholds)]
    rows = list(thresholds)
    if not rows:
        raise ValueError("thresholds must hold at least one number from 0 to 1, got none.")
    for threshold in rows:
        is_number = isinstance(threshold, Real) and not isinstance(threshold, bool | np.bool_)
        if not is_number or not 0.0 <= float(threshold) <= 1.0:
            raise ValueError(f"thresholds must be numbers from 0 to 1, got {threshold!r}.")
    return [float(threshold) for threshold in rows]
