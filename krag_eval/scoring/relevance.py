"""The hinge: similarities and a threshold become what was found, at which rank, to whose credit.

Duplicates and credit are settled here and nowhere else, in flat arrays over all queries; the
metrics are computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import Advice, InvalidInput, warn_of
from krag_eval.matching.joins import Matches
from krag_eval.scoring.cutoffs import Budget

__all__ = [
    "Documents",
    "Relevance",
]

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Documents:
    """Distinct retrieved documents and the pairs each is part of, sorted by query, then rank.

    Attributes:
        query: Query of each document; shape (documents,).
        rank: Its rank, from 1; shape (documents,).
        order: Positions of the pairs, grouped by document; shape (pairs,).
        start: Where each document's group begins in ``order``; shape (documents,).
    """

    query: IntArray
    rank: IntArray
    order: IntArray
    start: IntArray

    @classmethod
    def of_pairs(cls, query: IntArray, rank: IntArray) -> Documents:
        """Group pairs by the document they speak of."""
        # One number per document; pairs come sorted by query, which a stable sort makes use of.
        place = query * (int(rank.max(initial=0)) + 1) + rank
        order = np.argsort(place, kind="stable")
        start = np.flatnonzero(np.diff(place[order], prepend=-1))
        first = order[start]
        return cls(query[first], rank[first], order, start)

    def of_each_pair(self) -> IntArray:
        """Return the position of the document each pair speaks of; shape (pairs,)."""
        sizes = np.diff(self.start, append=len(self.order))
        position = np.empty(len(self.order), np.int64)
        position[self.order] = np.repeat(np.arange(len(self.start)), sizes)
        return position

    def sum(self, values: FloatArray) -> FloatArray:
        """Return the sum over each document's pairs."""
        return np.add.reduceat(values[self.order], self.start) if len(self.start) else values[:0]

    def max(self, values: FloatArray) -> FloatArray:
        """Return the greatest value among each document's pairs."""
        return (
            np.maximum.reduceat(values[self.order], self.start) if len(self.start) else values[:0]
        )


@dataclass(frozen=True, eq=False)
class Relevance:
    """What was found, for all queries at once, as flat arrays.

    Items are ground-truth items after duplicates were dropped, numbered through all queries.

    Attributes:
        n_retrieved: Retrieved documents per query; shape (queries,).
        item_query: Query of each item; shape (items,).
        grade: Grade of each item; shape (items,).
        n_alternatives: Interchangeable documents of each item; shape (items,).
        pair_item, pair_rank, pair_similarity: Every pair with a similarity above 0, sorted by
            item, then rank; shape (pairs,).
        threshold: Similarity from which a pair is a match.
        n_repeats: Ground-truth documents dropped because they repeat another of their query.
        item_number: Place of each item in its query's list as given, from 1; shape (items,).
            ``None`` if no item was dropped, so that they are numbered without gaps.
        lengths: Unit of a budget -> length of every retrieved document, in order of queries, then
            rank, each of shape (documents,); ``None`` where no budget was asked for.
    """

    n_retrieved: IntArray
    item_query: IntArray
    grade: FloatArray
    n_alternatives: IntArray
    pair_item: IntArray
    pair_rank: IntArray
    pair_similarity: FloatArray
    threshold: float
    n_repeats: int = field(default=0, repr=False)
    item_number: IntArray | None = field(default=None, repr=False)
    lengths: Mapping[str, IntArray] | None = field(default=None, repr=False)
    _counts: dict[tuple[str, int | None], IntArray] = field(default_factory=dict, repr=False)
    # Not an argument: what ``replace`` makes is cut anew.
    _cuts: dict[Budget, Relevance] = field(default_factory=dict, repr=False, init=False)

    @classmethod
    def from_matches(
        cls,
        matches: Matches,
        *,
        item_query: IntArray,
        n_retrieved: IntArray,
        threshold: float,
        grade: FloatArray | None = None,
        n_alternatives: IntArray | None = None,
    ) -> Relevance:
        """Settle what was found.

        Args:
            matches: The similarities; of items that say the same, the first is kept.
            item_query: Query of each item as given; shape (items,).
            n_retrieved: Retrieved documents per query; shape (queries,).
            threshold: Similarity from which a pair is a match.
            grade: Grade of each item, 1 if not given; shape (items,). Grade 0 drops the item.
            n_alternatives: Documents of each item, 1 if not given; shape (items,).

        Raises:
            InvalidInput: If items that say the same have different grades.
        """
        n_items = len(item_query)
        if grade is None:
            grade = np.broadcast_to(1.0, n_items)
        elif (grade != grade[matches.same_as]).any():
            _refuse_two_grades(item_query, grade, matches.same_as)
        if n_alternatives is None:
            n_alternatives = np.broadcast_to(np.int64(1), n_items)
        item, rank, similarity = matches.item, matches.rank, matches.similarity
        repeats = matches.same_as != np.arange(n_items)
        n_repeats = int(repeats.sum())
        kept = ~repeats & (grade > 0)
        item_number = None
        if not kept.all():
            item_number = _numbers_within(item_query)[kept]
            number = np.cumsum(kept) - 1
            pair_kept = kept[item]
            item = number[item[pair_kept]]
            rank, similarity = rank[pair_kept], similarity[pair_kept]
            item_query, grade = item_query[kept], grade[kept]
            n_alternatives = n_alternatives[kept]
        return cls(
            n_retrieved, item_query, grade, n_alternatives,
            item, rank, similarity, threshold, n_repeats, item_number,
        )  # fmt: skip

    def warn_of_repeats(self) -> None:
        """Warn, once, if ground-truth documents were listed twice."""
        warn_of(
            "{} ground-truth documents repeat another document of the same query (as the matcher "
            "sees them); each is counted as one item.",
            self.n_repeats,
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.n_retrieved)

    def prefix(self, budget: Budget) -> IntArray:
        """Return how many of each query's first documents fit into a budget; shape (queries,).

        Raises:
            InvalidInput: If the documents were not measured in its unit.
        """
        lengths = (self.lengths or {}).get(budget.unit)
        if lengths is None:
            raise InvalidInput(
                "k",
                f": {budget} needs to know how long the documents are, and they were not measured",
                Advice("evaluate with {}", k=str(budget)),
            )
        first = np.cumsum(self.n_retrieved) - self.n_retrieved
        ends = np.cumsum(lengths)
        before = np.concatenate([[0], ends])[first]
        fitting = np.searchsorted(ends, before + budget.amount, side="right") - first
        return np.asarray(np.minimum(fitting, self.n_retrieved), np.int64)

    def within(self, budget: Budget) -> Relevance:
        """Return what was found in the prefix of each list that fits into a budget.

        A metric at a budget is the metric of this at no cutoff.

        Raises:
            InvalidInput: If the documents were not measured in its unit.
        """
        cut = self._cuts.get(budget)
        if cut is None:
            prefix = self.prefix(budget)
            kept = self.pair_rank <= prefix[self.item_query[self.pair_item]]
            cut = self._cuts[budget] = replace(
                self,
                n_retrieved=_shared(prefix),
                pair_item=self.pair_item[kept],
                pair_rank=self.pair_rank[kept],
                pair_similarity=self.pair_similarity[kept],
                lengths=None,
                _counts={},
            )
        return cut

    def retrieved_within(self, k: int | None) -> IntArray:
        """Return the documents retrieved within the cutoff, min(k, m); shape (queries,)."""
        if k is None:
            return _shared(self.n_retrieved[:])
        counts = self._counts.get(("retrieved", k))
        if counts is None:
            enough = k <= self._fewest_retrieved
            # One number for all queries takes the room of one.
            counts = _shared(
                np.broadcast_to(k, self.n_queries) if enough else np.minimum(self.n_retrieved, k)
            )
            self._counts["retrieved", k] = counts
        return counts

    @cached_property
    def _fewest_retrieved(self) -> int:
        return int(self.n_retrieved.min()) if self.n_queries else 0

    def relevant_within(self, k: int | None) -> IntArray:
        """Return the relevant documents within the cutoff; shape (queries,)."""
        if self._one_to_one:
            return self.covered_within(k)
        return self._count("relevant", k, self.relevant.query, self.relevant.rank)

    def covered_within(self, k: int | None) -> IntArray:
        """Return the items covered within the cutoff; shape (queries,)."""
        return self._count("covered", k, self.covered_query, self.first_rank)

    def _count(self, name: str, k: int | None, query: IntArray, rank: IntArray) -> IntArray:
        # Several metrics start from the same counts at the same cutoff.
        counts = self._counts.get((name, k))
        if counts is None:
            within = query if k is None else query[rank <= k]
            counts = _shared(np.bincount(within, minlength=len(self.n_retrieved)))
            self._counts[name, k] = counts
        return counts

    @cached_property
    def n_items(self) -> IntArray:
        """Ground-truth items per query; shape (queries,)."""
        return _shared(np.bincount(self.item_query, minlength=len(self.n_retrieved)))

    @cached_property
    def _matched(self) -> NDArray[np.bool_] | None:
        """Whether each pair matches; ``None`` if all do, as where matching is yes or no."""
        matched = self.pair_similarity >= self.threshold
        return None if matched.all() else matched

    @cached_property
    def hit_item(self) -> IntArray:
        """Item of each matching pair, sorted; shape (hits,)."""
        return self._matching(self.pair_item)

    @cached_property
    def hit_rank(self) -> IntArray:
        """Rank of each matching pair, ascending within its item; shape (hits,)."""
        return self._matching(self.pair_rank)

    @cached_property
    def hit_similarity(self) -> FloatArray:
        """Similarity of each matching pair; shape (hits,)."""
        return self._matching(self.pair_similarity)

    def _matching(self, of_pairs: NDArray[Number]) -> NDArray[Number]:
        """Keep the pairs that match."""
        return of_pairs if self._matched is None else of_pairs[self._matched]

    @cached_property
    def hit_number(self) -> IntArray:
        """Number of each hit within its item, from 1; shape (hits,)."""
        return _numbers_within(self.hit_item)

    @cached_property
    def covered(self) -> IntArray:
        """The items that some retrieved document matches, ascending; shape (covered,)."""
        return self._first(self.hit_item)

    @cached_property
    def first_rank(self) -> IntArray:
        """First rank of each covered item; shape (covered,)."""
        return self._first(self.hit_rank)

    @cached_property
    def first_similarity(self) -> FloatArray:
        """Similarity of each covered item to the document at its first rank; shape (covered,)."""
        return self._first(self.hit_similarity)

    def _first(self, of_hits: NDArray[Number]) -> NDArray[Number]:
        """Keep each item's first hit: the one credit is given for."""
        if self._one_hit_each:
            return of_hits
        first: NDArray[Number] = of_hits[self.hit_number == 1]
        return first

    @cached_property
    def _one_hit_each(self) -> bool:
        """Whether no item is matched by more than one document."""
        return bool((self.hit_item[1:] != self.hit_item[:-1]).all())

    @cached_property
    def _one_to_one(self) -> bool:
        """Whether, beyond that, no document matches more than one item.

        Then relevant documents and covered items are two names of the same pairs.
        """
        return self._one_hit_each and len(self.relevant.start) == len(self.relevant.order)

    @cached_property
    def covered_query(self) -> IntArray:
        """Query of each covered item; shape (covered,)."""
        return self.item_query[self.covered]

    @cached_property
    def relevant(self) -> Documents:
        """The retrieved documents that match an item, over the matching pairs."""
        return Documents.of_pairs(self.item_query[self.hit_item], self.hit_rank)

    @cached_property
    def credited(self) -> Documents:
        """The documents at the first rank of some item, over the covered items."""
        if self._one_hit_each:
            return self.relevant
        return Documents.of_pairs(self.covered_query, self.first_rank)

    @cached_property
    def scored(self) -> Documents:
        """The documents with any similarity above 0, over all pairs."""
        return Documents.of_pairs(self.item_query[self.pair_item], self.pair_rank)

    @cached_property
    def relevant_number(self) -> IntArray:
        """Number of each relevant document within its query, from 1; shape (relevant,)."""
        return _numbers_within(self.relevant.query)

    @cached_property
    def relevant_until_first(self) -> IntArray:
        """Relevant documents up to and including each covered item's first rank; (covered,)."""
        until: IntArray = self.relevant_number[self.relevant.of_each_pair()]
        return self._first(until)

    def worth(self, graded_by: Literal["grade", "similarity"]) -> FloatArray:
        """Return what each covered item gains by: grade, or similarity at its first rank."""
        return self.grade[self.covered] if graded_by == "grade" else self.first_similarity

    def places(self, worth: FloatArray, k: int | None) -> tuple[IntArray, IntArray]:
        """Give every item covered within the cutoff a place of its own.

        Each takes the first free place at or after its first rank, the greatest worth first, then
        the earlier first rank, then the order of the ground truth. A place may lie beyond k.

        Args:
            worth: What decides who goes first; shape (covered,).
            k: The cutoff.

        Returns:
            Positions among ``covered``, and the place of each, sorted by query, then place.
        """
        found = self.credited
        alone = len(found.start) == len(found.order)  # no two items share a document
        item = found.order
        rank = found.rank if alone else self.first_rank[item]
        if k is not None:
            within = rank <= k
            item, rank = item[within], rank[within]
        if alone:
            return item, rank
        query = self.covered_query[item]
        place = _queued(query, rank)
        return _by_worth(item, query, rank, place, worth), place


def _numbers_within(groups: IntArray) -> IntArray:
    """Number the members of each group from 1; members of a group stand together."""
    start = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(start, append=len(groups))
    numbers: IntArray = np.arange(1, len(groups) + 1) - np.repeat(start, sizes)
    return numbers


def _queued(query: IntArray, rank: IntArray) -> IntArray:
    """Return the places that are taken, ascending, by whichever item.

    The j-th item of a query (from 0), by first rank f, comes to j + the greatest f - j so far.
    """
    j = _numbers_within(query) - 1
    # Each query's numbers lie above all numbers of the queries before it.
    offset = query * (int(rank.max(initial=0)) + int(j.max(initial=0)) + 1)
    return np.asarray(np.maximum.accumulate(rank - j + offset) - offset + j, np.int64)


def _by_worth(
    item: IntArray, query: IntArray, rank: IntArray, place: IntArray, worth: FloatArray
) -> IntArray:
    """Return the item at each place: where items queue, the worthiest of those waiting.

    This gives each the first free place, greatest worth first: none delays a worthier one.
    """
    worth = worth[item]
    overtakes = (worth[1:] > worth[:-1]) & (rank[1:] <= place[:-1]) & (query[1:] == query[:-1])
    if not overtakes.any():
        return item
    # Items meet only within a block of places taken without a gap.
    new = (np.diff(query, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 1)
    start = np.append(np.flatnonzero(new), len(item))
    block = np.unique((np.cumsum(new) - 1)[1:][overtakes])
    seated = item.copy()
    for first, last in zip(start[block].tolist(), start[block + 1].tolist(), strict=True):
        order = _seated(rank[first:last].tolist(), worth[first:last].tolist())
        seated[first:last] = item[first:last][order]
    return seated


def _seated(rank: Sequence[int], worth: Sequence[float]) -> list[int]:
    """Return who takes each place of a block, its items given by first rank."""
    waiting: list[tuple[float, int]] = []
    order: list[int] = []
    for i, (first, value) in enumerate(zip(rank, worth, strict=True)):
        while rank[0] + len(order) < first:
            order.append(heappop(waiting)[1])
        heappush(waiting, (-value, i))
    return order + [heappop(waiting)[1] for _ in range(len(waiting))]


def _shared(counts: IntArray) -> IntArray:
    """Make counts read-only, for the next metric starts from them."""
    counts.flags.writeable = False
    return counts


def _refuse_two_grades(item_query: IntArray, grade: FloatArray, same_as: IntArray) -> None:
    item = int(np.flatnonzero(grade != grade[same_as])[0])
    raise InvalidInput(
        "actual_docs",
        f"lists the same document with the grades {grade[same_as[item]]:g} and {grade[item]:g}",
        "give it one grade",
        query=int(item_query[item]),
    )
