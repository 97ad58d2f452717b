"""Documents that nobody looked at: which of them could change a comparison, and how far.

For :meth:`krag_eval.Comparison.to_judge`, and what was found by looking. pandas loads for a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from krag_eval.core import (
    METRICS,
    Advice,
    Budget,
    Cutoff,
    FloatArray,
    IntArray,
    InvalidInput,
    ResultFacts,
    Shown,
    _,
    clipped,
    replacing,
    spelled,
    warn,
)
from krag_eval.core.results.rows import JudgedRows, write_csv
from krag_eval.core.scoring.digits import log2, powers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class UnjudgedDocument:
    """A document that nobody looked at and that could change the difference of two systems.

    Attributes:
        query: The label of the query.
        key: What the document is known by.
        text: Its text, empty where that is not known or is the key.
        rank_a: Where a has it within the cutoff, from 1; ``None`` if it does not.
        rank_b: Where b has it.
        weight: How much the query's value of b would gain more than that of a, were this document
            alone relevant: its part of b less its part of a. 0 where both have it at the same rank,
            and it only makes what there is to find more.
    """

    query: str | int
    key: str
    text: str
    rank_a: int | None
    rank_b: int | None
    weight: float


@dataclass(frozen=True, eq=False, repr=False)
class ToJudge(Shown):
    """What to look at before believing a difference; made by ``Comparison.to_judge``.

    Attributes:
        metric: The metric.
        a: One system.
        b: The other one.
        difference: The value of b minus that of a, unjudged documents counting as wrong.
        low: The least that the difference can be, whatever the unjudged documents turn out to be.
        high: The most that it can be.
        documents: The documents to look at, the most decisive ones first.
        n_decisive: How many documents could change the difference, listed or not.
    """

    metric: str
    a: str
    b: str
    difference: float
    low: float
    high: float
    documents: tuple[UnjudgedDocument, ...] = field(repr=False)
    n_decisive: int

    @property
    def table(self) -> pd.DataFrame:
        """One row per document, in order, and the column ``relevant``, which is to be filled in."""
        import pandas as pd

        names = [one.name for one in fields(UnjudgedDocument)]
        table = pd.DataFrame(list(map(astuple, self.documents)), columns=names)
        ranks = ["rank_a", "rank_b"]
        table[ranks] = table[ranks].astype("Int64")
        return table.assign(relevant="")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a CSV file, to fill in; :func:`krag_eval.read_judgements` reads it.

        Raises:
            OSError: If the file cannot be written.
        """
        columns = {
            name: np.array([getattr(one, name) for one in self.documents] + [None], object)[:-1]
            for name in (one.name for one in fields(UnjudgedDocument))
        }
        columns["relevant"] = np.full(len(self.documents), "", object)
        with replacing(path) as temporary:
            write_csv(temporary, columns)


class _Side(NamedTuple):
    """One system: where its documents stand, and what each would weigh were it relevant."""

    rows: JudgedRows
    depth: Sequence[int]
    value: FloatArray
    #: (ranks, query) -> the weight of each rank, from the first on.
    weigh: Callable[[IntArray, int], FloatArray]


def to_judge(
    systems: Mapping[str, ResultFacts],
    average: tuple[str, Cutoff],
    n: int,
    texts: Callable[[str, str | int, int], str],
) -> ToJudge:
    """Find the unjudged documents that could change the difference between two systems.

    Args:
        systems: a and b, by name: comparable results, their queries in the same order.
        average: The key of the average, and its cutoff.
        n: At most so many documents.
        texts: ``(system, query, rank) -> text``, empty where it is not known.

    Raises:
        InvalidInput: If a result does not know which documents are judged or leaves them out, or
            the metric is none whose bounds are known.
    """
    (a, first), (b, _) = systems.items()
    key, k = average
    metric = f"{key}@{spelled(k)}"
    sides = [_side(name, result, key, k) for name, result in systems.items()]
    wanted = np.asarray(first.tables[k]["ground_truth"])
    ideal, by_one = _ideal(first, key, k)
    _warn_of_queues(key, k, systems.values())
    documents: list[UnjudgedDocument] = []
    bounds: list[tuple[float, float, float]] = []
    for query in np.flatnonzero(first.counted).tolist():
        n_items = int(wanted[query])
        known = {
            one
            for side in sides
            for is_known, one in zip(side.rows.known[query], side.rows.keys[query], strict=True)
            if is_known
        }
        in_a, in_b = (_unjudged(side, query, known, by_one) for side in sides)
        both = {one: (in_a.get(one, _NOWHERE), in_b.get(one, _NOWHERE)) for one in {**in_a, **in_b}}
        change = np.array([ours[1] - theirs[1] for theirs, ours in both.values()])
        scale = ideal(n_items + 1)
        difference = float(sides[1].value[query] - sides[0].value[query])
        # One more item makes both values less, and with them how far they are apart.
        shrinks = difference != 0 and scale != ideal(n_items)
        documents += [
            UnjudgedDocument(first.labels[query], one, "", theirs[0], ours[0], gain / scale)
            for (one, (theirs, ours)), gain in zip(both.items(), change.tolist(), strict=True)
            if gain or shrinks
        ]
        bounds.append(_bounds(difference, change, n_items, ideal))
    documents.sort(key=lambda one: -abs(one.weight))
    difference, low, high = np.mean(np.array(bounds), axis=0).tolist()
    shown = []
    for one in documents[:n]:
        name, rank = (a, one.rank_a) if one.rank_a is not None else (b, one.rank_b)
        text = texts(name, one.query, rank or 1)
        shown.append(replace(one, text="" if text == one.key else text))
    return ToJudge(metric, a, b, difference, low, high, tuple(shown), len(documents))


_NOWHERE: tuple[int | None, float] = (None, 0.0)


def _side(name: str, result: ResultFacts, key: str, k: Cutoff) -> _Side:
    rows = result.rows.judged
    if rows is None:
        problem = f": {name!r} does not know which of its documents somebody looked at"
        fix = Advice("evaluate with {}: per query, the ids or texts that were", judged=...)
        raise InvalidInput("results", problem, fix)
    if result.settings.get("unjudged") == "leave_out":
        problem = f": {name!r} leaves out what is unjudged, so that nothing is left to judge"
        raise InvalidInput("results", problem, Advice("evaluate with {}", unjudged="wrong"))
    table = result.tables[k]
    column = result.definitions[key].column
    values = np.asarray(table[column], np.float64)
    depth = np.asarray(table["retrieved"]).tolist()
    return _Side(rows, depth, values, _weights(result, column, table))


def _weights(
    result: ResultFacts, column: str, table: Mapping[str, Any]
) -> Callable[[IntArray, int], FloatArray]:
    """Return what a relevant document weighs at each rank, before the ideal divides it."""
    if column == "precision":
        base = np.asarray(table["precision_base"]).tolist()
        return lambda ranks, query: np.full(len(ranks), 1.0 / max(base[query], 1))
    if column.startswith("rbp("):
        p = float(column.removeprefix("rbp(p=").removesuffix(")"))
        return lambda ranks, query: (1 - p) * powers(p, len(ranks))
    if column == "ndcg":
        return lambda ranks, query: 1.0 / log2(ranks + 1)
    return lambda ranks, query: np.ones(len(ranks))


def _ideal(result: ResultFacts, key: str, k: Cutoff) -> tuple[Callable[[int], float], bool]:
    """Return what the weights are divided by, given the relevant documents there are.

    Returns:
        The function, and whether a document counts once however often it is retrieved.
    """
    average = result.definitions[key]
    conventions = result.conventions
    plain = result.settings.get("grades", "-") == "-" and (
        (conventions.credit, conventions.ideal, conventions.graded_by)
        == ("once", "ground_truth", "grade")
    )
    if average.is_mean and (average.column == "precision" or average.column.startswith("rbp(")):
        return lambda n: 1.0, False
    if average.is_mean and average.column == "recall":
        return lambda n: float(max(n, 1)), True
    if average.is_mean and average.column == "ndcg" and plain:
        depth = k if k is not None and not isinstance(k, Budget) else None

        def ideal(n: int) -> float:
            n = max(n if depth is None else min(n, depth), 1)
            return float((1.0 / log2(np.arange(2, n + 2))).sum())

        return ideal, True
    known = "means of precision, recall, RBP and, without grades and crediting items once, nDCG"
    problem = f": how far {key!r} can move is not known, as it is of {known}"
    raise InvalidInput("metric", problem, "compare one of these as well")


def _warn_of_queues(key: str, k: Cutoff, results: Iterable[ResultFacts]) -> None:
    """Warn where nDCG is of items that queue behind one document, where bounds are not exact."""
    if key != METRICS["ndcg"].key:
        return
    tables = [(one.tables[k], one.counted) for one in results]
    # With fewer relevant documents than covered items, one of them covers several.
    queues = [(table["covered"] > table["relevant"])[counted] for table, counted in tables]
    n = int(np.count_nonzero(np.any(queues, axis=0)))
    if n:
        told = _(
            "Queries in which a document covers several items: {}. There the items queue for "
            "places, and the interval of nDCG may be a little too narrow."
        )
        warn(told.format(n), _("Judge by recall, whose interval is exact"))


def _unjudged(
    side: _Side, query: int, known: set[str], by_one: bool
) -> dict[str, tuple[int | None, float]]:
    """Return the first rank and the weight of each unjudged document within the cutoff.

    One that was retrieved twice weighs as much as both ranks, unless it counts once. A document
    without a key, whose text is blank, can match nothing.
    """
    seen = side.rows.keys[query][: side.depth[query]]
    ranks = np.arange(1, len(seen) + 1)
    found: dict[str, tuple[int | None, float]] = {}
    for rank, (key, weight) in enumerate(zip(seen, side.weigh(ranks, query).tolist(), strict=True)):
        if key and key not in known:
            first, before = found.get(key, (rank + 1, 0.0))
            found[key] = first, before if by_one and before else before + weight
    return found


def _bounds(
    difference: float, change: FloatArray, n_items: int, ideal: Callable[[int], float]
) -> tuple[float, float, float]:
    """Return a query's difference and the least and the most that it can be.

    With j of the documents relevant, it is the most with those of the greatest changes; all
    numbers j are tried, for each moves the ideal.
    """
    ordered = np.sort(change)
    n_relevant = range(len(ordered) + 1)
    scales = np.array([ideal(n_items + j) for j in n_relevant])
    base = difference * ideal(n_items)
    least = (base + np.concatenate([[0.0], np.cumsum(ordered)])) / scales
    most = (base + np.concatenate([[0.0], np.cumsum(ordered[::-1])])) / scales
    return difference, float(least.min()), float(most.max())


@dataclass(frozen=True)
class Judgements:
    """What somebody found by looking at documents; made by :func:`read_judgements`.

    Attributes:
        relevant: Query, as text -> keys of the documents that are relevant.
        judged: Query, as text -> keys of all documents that were looked at.
    """

    relevant: Mapping[str, Sequence[str]]
    judged: Mapping[str, Sequence[str]]

    def added_to(
        self,
        actual: Sequence[Sequence[Any]],
        judged: Sequence[Sequence[Any]],
        queries: Sequence[str | int] | None = None,
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return ground truth and judged documents with what was found now.

        Every relevant document is a ground-truth item of its own, its key standing for it: a text
        or an id. Where documents match by metadata, add documents instead.

        Args:
            actual: Per query, its ground truth.
            judged: Per query, the documents that had been looked at before.
            queries: The labels of the queries; 0, 1, … if not given.

        Raises:
            InvalidInput: If there is not one list per query, or something was judged for a query
                that is not among them.
        """
        labels = [*map(str, range(len(actual)) if queries is None else queries)]
        for argument, lists in (("actual", actual), ("judged", judged)):
            if len(lists) != len(labels):
                problem = f"must have one list per query, got {len(lists)} for {len(labels)}"
                raise InvalidInput(argument, problem)
        strange = self.judged.keys() - set(labels)
        if strange:
            raise InvalidInput("queries", f": there is no query {clipped(min(strange))}")
        truth = [[*one, *self.relevant.get(q, ())] for q, one in zip(labels, actual, strict=True)]
        seen = [[*one, *self.judged.get(q, ())] for q, one in zip(labels, judged, strict=True)]
        return truth, seen
