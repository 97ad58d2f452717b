"""The metrics: pure functions from what was found to one value per query, and their registry.

Every function takes ``(relevance, k, conventions)`` and returns an array of shape (queries,).
``k`` is the cutoff, ``None`` for all retrieved documents; only the first k documents of a query
can influence its value. A query without ground truth gets 0; leaving it out is for whoever
averages. This room must not know documents, matchers or averages over queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import clipped
from krag_eval.conventions import Conventions, MatchingCriteria, counts_at_places
from krag_eval.scoring.averages import resolved_average
from krag_eval.scoring.digits import exp2m1, log2
from krag_eval.scoring.relevance import Relevance

__all__ = [
    "COUNTS",
    "METRICS",
    "Metric",
    "Table",
    "chosen_metrics",
    "metrics_for",
    "precision_base",
    "table_of",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
# Gains beyond 2**1000 leave no room to be added up in float64.
_LARGEST_GRADES: Mapping[str, tuple[float, str]] = MappingProxyType(
    {
        "exponential": (
            1000.0,
            "the exponential gain 2**grade - 1 needs them to be at most 1000; "
            "use Conventions(gain='linear').",
        ),
        "linear": (
            2.0**1000,
            "the linear gain needs them to be at most 2**1000, about 1.07e301; "
            "divide all grades by the same number.",
        ),
    }
)
MetricFunction: TypeAlias = Callable[[Relevance, "int | None", Conventions], FloatArray]


@dataclass(frozen=True)
class Metric:
    """A metric by name: how it is computed per query, and what its mean over queries is called.

    Attributes:
        name: Column of the per-query table.
        compute: ``(relevance, k, conventions) -> values``, shape (queries,); NaN where undefined.
        key: Name of the mean over the queries where it is defined.

    >>> METRICS["reciprocal_rank"].key
    'mrr'
    """

    name: str
    compute: MetricFunction
    key: str


def hit_all(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 if every ground-truth item is covered within the cutoff, else 0."""
    covered = relevance.covered_within(k)
    return np.asarray((covered == relevance.n_items) & (covered > 0), np.float64)


def hit_any(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 if any ground-truth item is covered within the cutoff, else 0."""
    return (relevance.covered_within(k) > 0).astype(np.float64)


def precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the documents within the cutoff that are relevant, in [0, 1]."""
    return _ratio(relevance.relevant_within(k), precision_base(relevance, k, conventions))


def precision_base(relevance: Relevance, k: int | None, conventions: Conventions) -> IntArray:
    """Return what precision divides by: min(k, m), or k under ``precision_at="k"``."""
    if conventions.precision_at == "k" and k is not None:
        return np.broadcast_to(k, relevance.n_queries)
    return relevance.retrieved_within(k)


def recall(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the ground-truth items that are covered within the cutoff, in [0, 1]."""
    return _ratio(relevance.covered_within(k), relevance.n_items)


def f1(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Harmonic mean of the query's precision and recall, in [0, 1]; 0 if both are."""
    p, r = precision(relevance, k, conventions), recall(relevance, k, conventions)
    return _ratio(2 * p * r, p + r)


def rank(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Rank of the first relevant document, from 1; NaN if none is within the cutoff."""
    ranks = np.full(relevance.n_queries, np.nan)
    first = relevance.relevant_number == 1
    if k is not None:
        first &= relevance.relevant.rank <= k
    ranks[relevance.relevant.query[first]] = relevance.relevant.rank[first]
    return ranks


def reciprocal_rank(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 / rank of the first relevant document, in [0, 1]; 0 if none is within the cutoff.

    Under ``reciprocal_rank="per_item"``, the mean over items of 1 / first rank.
    """
    if conventions.reciprocal_rank == "per_item":
        within = _within(relevance.first_rank, k)
        inverse = 1.0 / relevance.first_rank[within]
        return _ratio(
            _total(relevance, relevance.covered_query[within], inverse), relevance.n_items
        )
    return np.nan_to_num(1.0 / rank(relevance, k, conventions), nan=0.0)


def average_precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Sum of the precision at each covered item's first rank, over the items; in [0, 1].

    Uninterpolated average precision as in trec_eval. Under ``credit="every"`` every relevant
    document counts and the value can pass 1; under ``average_precision="per_item"`` it is the mean
    over items of the mean precision at the item's own hits.
    """
    if conventions.average_precision == "per_item":
        return _average_precision_per_item(relevance, k)
    if conventions.credit == "every":
        found = relevance.relevant
        within = _within(found.rank, k)
        query, precisions = found.query, relevance.relevant_number / found.rank
    else:
        within = _within(relevance.first_rank, k)
        query = relevance.covered_query
        precisions = relevance.relevant_until_first / relevance.first_rank
    return _ratio(_total(relevance, query[within], precisions[within]), relevance.n_items)


def _average_precision_per_item(relevance: Relevance, k: int | None) -> FloatArray:
    within = _within(relevance.hit_rank, k)
    item = relevance.hit_item[within]
    n_items = len(relevance.item_query)
    precisions = relevance.hit_number[within] / relevance.hit_rank[within]
    per_item = _ratio(
        np.bincount(item, precisions, minlength=n_items), np.bincount(item, minlength=n_items)
    )
    return _ratio(_total(relevance, relevance.item_query, per_item), relevance.n_items)


def ndcg(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Discounted cumulative gain over that of the best list possible, in [0, 1].

    The discount is 1 / log2(place + 1) (Järvelin and Kekäläinen 2002, with the base-2 discount at
    every rank); the gain is 2**grade - 1 (Burges et al. 2005) or the grade. Each covered item has a
    place of its own: the first free one at or after its first rank, the greatest gain first. So
    items first covered by the same document queue, and where no two are, places are first ranks.
    The best list holds the gains of the ground truth, greatest first, whatever was retrieved.
    0 if nothing can be gained.

    Under ``credit="every"`` a document gains at its rank, and so it does, with all items first
    covered by it together, under ``ideal="retrieved"`` and ``"alternatives"``.

    Raises:
        ValueError: If a gain passes 2**1000.
    """
    gained = _gained(relevance, k, conventions)
    value = _ratio(
        _total(relevance, gained.query, gained.gain / log2(gained.place + 1)),
        _ideal_dcg(relevance, k, conventions, gained),
    )
    # With credit given once, the sum passes the ideal one by rounding, or where more items are
    # found within k than k.
    return value if conventions.credit == "every" else np.minimum(value, 1.0)


class _Gained(NamedTuple):
    """What is gained within the cutoff, by query, then place: an item's, or a document's rank."""

    query: IntArray
    place: IntArray
    gain: FloatArray


def _gained(relevance: Relevance, k: int | None, conventions: Conventions) -> _Gained:
    by_grade = conventions.graded_by == "grade"
    if counts_at_places(conventions):
        worth = relevance.worth(conventions.graded_by)
        item, place = relevance.places(worth, k)
        return _Gained(relevance.covered_query[item], place, _gain(worth, conventions)[item])
    if conventions.credit == "once":
        found = relevance.credited
        if by_grade:
            gain = found.sum(_gain(relevance.grade[relevance.covered], conventions))
        else:
            gain = _gain(found.max(relevance.first_similarity), conventions)
    elif by_grade:
        found = relevance.relevant
        gain = _gain(found.max(relevance.grade[relevance.hit_item]), conventions)
    else:
        found = relevance.scored
        gain = _gain(found.max(relevance.pair_similarity), conventions)
    within = _within(found.rank, k)
    return _Gained(found.query[within], found.rank[within], gain[within])


def _ideal_dcg(
    relevance: Relevance, k: int | None, conventions: Conventions, gained: _Gained
) -> FloatArray:
    """Return the DCG of the best list that could have been retrieved."""
    depth = None if k is None else np.broadcast_to(k, relevance.n_queries)
    if conventions.ideal == "retrieved":
        n_entries = _count(relevance, gained.query)
        return _best_dcg(relevance, gained.query, gained.gain, n_entries, depth)
    by_grade = conventions.graded_by == "grade"
    item_gain = _gain(
        relevance.grade if by_grade else np.broadcast_to(1.0, len(relevance.grade)), conventions
    )
    if conventions.ideal == "ground_truth":
        return _best_dcg(relevance, relevance.item_query, item_gain, relevance.n_items, depth)
    depth = relevance.retrieved_within(k)
    copies = relevance.n_alternatives
    query, gain = np.empty(0, np.int64), np.empty(0)
    if conventions.credit == "once":
        # A covered item already stands in the entry of the document it was credited to.
        copies = copies.copy()
        copies[relevance.covered[_within(relevance.first_rank, k)]] -= 1
        query, gain = gained.query, gained.gain
    query = np.concatenate([query, np.repeat(relevance.item_query, copies)])
    gain = np.concatenate([gain, np.repeat(item_gain, copies)])
    return _best_dcg(relevance, query, gain, _count(relevance, query), depth)


def _best_dcg(
    relevance: Relevance,
    query: IntArray,
    gain: FloatArray,
    n_entries: IntArray,
    depth: IntArray | None,
) -> FloatArray:
    """Return each query's DCG with its gains sorted, best first, down to its depth."""
    if _alike(gain):
        return _dcg_of_alike(gain[:1], n_entries, depth)
    order = np.lexsort((-gain, query))
    query, gain = query[order], gain[order]
    position = np.arange(len(query)) - (np.cumsum(n_entries) - n_entries)[query]
    within = position < _down_to(n_entries, depth)[query]
    return _total(relevance, query[within], gain[within] / log2(position[within] + 2))


def _alike(gain: FloatArray) -> bool:
    """Tell whether there is but one gain, the usual case: DCG then depends on their number."""
    return not len(gain) or bool(gain.min() == gain.max())


def _dcg_of_alike(gain: FloatArray, n_entries: IntArray, depth: IntArray | None) -> FloatArray:
    """Return the DCG of so many entries of one gain, which is missing where there is no entry."""
    kept = _down_to(n_entries, depth)
    terms = gain / log2(np.arange(2, int(kept.max(initial=0)) + 2))
    return np.concatenate([[0.0], np.cumsum(terms)])[kept]


def _down_to(n_entries: IntArray, depth: IntArray | None) -> IntArray:
    return n_entries if depth is None else np.minimum(n_entries, depth)


def _gain(grade: FloatArray, conventions: Conventions) -> FloatArray:
    largest, needs = _LARGEST_GRADES[conventions.gain]
    if grade.max(initial=0.0) > largest:
        raise ValueError(f"grades go up to {grade.max():g}, and {needs}")
    return grade if conventions.gain == "linear" else exp2m1(grade)


def _within(ranks: IntArray, k: int | None) -> NDArray[np.bool_]:
    return np.ones(len(ranks), np.bool_) if k is None else ranks <= k


def _total(relevance: Relevance, query: IntArray, values: FloatArray) -> FloatArray:
    """Sum values by query, in the order given."""
    return np.asarray(np.bincount(query, values, minlength=relevance.n_queries), np.float64)


def _count(relevance: Relevance, query: IntArray) -> IntArray:
    return np.asarray(np.bincount(query, minlength=relevance.n_queries), np.int64)


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> FloatArray:
    """Divide; nothing over nothing is 0."""
    # Divided by infinity, what has no denominator is 0 as well.
    return np.asarray(numerator / np.where(denominator > 0, denominator, np.inf), np.float64)


#: Counts per query within the cutoff: what micro averages and intervals are made of.
COUNTS: Mapping[str, Callable[[Relevance, int | None], IntArray]] = MappingProxyType(
    {
        "ground_truth": lambda relevance, k: relevance.n_items,
        "retrieved": Relevance.retrieved_within,
        "relevant": Relevance.relevant_within,
        "covered": Relevance.covered_within,
    }
)

#: Every built-in metric, by its column in the per-query table.
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("hit_rate", hit_all, "hit_rate"),
            Metric("precision", precision, "macro_precision"),
            Metric("recall", recall, "macro_recall"),
            Metric("f1", f1, "macro_f1"),
            Metric("reciprocal_rank", reciprocal_rank, "mrr"),
            Metric("average_precision", average_precision, "map"),
            Metric("ndcg", ndcg, "ndcg"),
            Metric("rank", rank, "mean_rank"),
        )
    }
)


def metrics_for(criteria: MatchingCriteria) -> dict[str, Metric]:
    """Return the built-in metrics with the hit rate that ``criteria`` asks for."""
    hit = hit_all if criteria is MatchingCriteria.ALL else hit_any
    return {**METRICS, "hit_rate": Metric("hit_rate", hit, "hit_rate")}


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
