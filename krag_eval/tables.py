"""The per-query table: every count and metric at one cutoff, one value per query.

This room knows what metrics need beside themselves, and of averages their names alone. It must not
know where the relevance came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import clipped
from krag_eval.averages import resolved_average
from krag_eval.conventions import Conventions
from krag_eval.metrics import COUNTS, METRICS, Metric, precision_base
from krag_eval.relevance import Relevance

__all__ = ["Table", "chosen_metrics", "table_of"]

Table: TypeAlias = dict[str, NDArray[Any]]

# Columns and averages that have a meaning of their own, and can be no other metric's.
_TAKEN_COLUMNS = {*COUNTS, "precision_base", *METRICS}
_TAKEN_KEYS = {metric.key for metric in METRICS.values()} | {
    "micro_precision",
    "micro_recall",
    "micro_f1",
    "found_rate",
    "rejection_rate",
}
# The harmonic mean of the means needs both, asked for or not.
_NEEDED_BY_F1 = ("precision", "recall")


def chosen_metrics(
    metrics: Iterable[str | Metric] | None, known: Mapping[str, Metric]
) -> dict[str, Metric]:
    """Return the metrics asked for, by column; all known ones if nothing was asked for.

    Raises:
        TypeError: If something is neither a name nor a metric.
        ValueError: If a name is unknown or taken, or no metric is left.
    """
    if metrics is None:
        return dict(known)
    if isinstance(metrics, str):
        raise TypeError(f"metrics must be a list of metrics, got the text {metrics!r}.")
    chosen: dict[str, Metric] = {}
    for metric in metrics:
        one = _checked_metric(metric, known)
        for other in chosen.values():
            if one != other and (one.name == other.name or one.key == other.key):
                shared = one.name if one.name == other.name else one.key
                raise ValueError(f"metrics: two metrics are named {shared!r}; rename one.")
        chosen[one.name] = one
    if not chosen:
        raise ValueError("metrics must name at least one metric, got an empty list.")
    return chosen


def _checked_metric(metric: object, known: Mapping[str, Metric]) -> Metric:
    """Return a metric by name or as it is, if it takes nobody else's names."""
    if isinstance(metric, str):
        # By its column, or by the key its mean is printed under.
        named = {one.key: one for one in known.values()} | dict(known)
        if "@" in metric:
            raise ValueError(
                f"metrics: a metric is named without its cutoff, got {clipped(metric)}; say "
                "k=… for where to cut off."
            )
        return named[resolved_average("metrics: a metric", metric, named)]
    if not isinstance(metric, Metric):
        raise TypeError(
            "metrics must be names of built-in metrics or Metric objects, such as "
            f"Metric('success', compute, 'success'), got {metric!r}."
        )
    if known.get(metric.name) == metric:
        return metric
    for taken, name in ((_TAKEN_COLUMNS, metric.name), (_TAKEN_KEYS, metric.key)):
        if name in taken:
            raise ValueError(f"metrics: the name {name!r} is taken; give {metric.name!r} another.")
    return metric


def table_of(
    relevance: Relevance, k: int | None, metrics: Mapping[str, Metric], conventions: Conventions
) -> Table:
    """Return the counts and metrics at one cutoff, as columns that nobody can write to.

    Args:
        relevance: What was found.
        k: The cutoff, ``None`` for all retrieved documents.
        metrics: The metrics, by column.
        conventions: How the disputed points are settled.

    Raises:
        TypeError: If a metric returns something else than one number per query.
    """
    wanted = dict(metrics)
    if "f1" in metrics:
        wanted |= {name: METRICS[name] for name in _NEEDED_BY_F1 if name not in metrics}
    table: Table = {name: _read_only(count(relevance, k)) for name, count in COUNTS.items()}
    table["precision_base"] = _read_only(precision_base(relevance, k, conventions))
    for name, metric in wanted.items():
        values = metric.compute(relevance, k, conventions)
        table[name] = _read_only(_checked(name, values, relevance.n_queries))
    return table


def _checked(name: str, values: Any, n_queries: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (n_queries,) or column.dtype.kind not in "biuf":
        raise TypeError(
            f"metrics: {name!r} must return one number per query, an array of shape "
            f"({n_queries},), got {np.shape(values)} of {type(values).__name__}."
        )
    return column.astype(np.float64) if column.dtype.kind == "b" else column


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: counts are shared between tables."""
    view = column.view()
    view.flags.writeable = False
    return view
