"""The hinge: similarities and a threshold become what was found, at which rank, to whose credit.

Duplicates and credit are settled here and nowhere else, in flat arrays over all queries; the
metrics are computed from them.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import compress, pairwise
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.documents import Judged, Lists, QuerySet
from krag_eval.core.errors import Advice, InvalidInput, warn_of
from krag_eval.core.language import _
from krag_eval.core.matching.joins import BoolArray, FloatArray, IntArray, Matches, Pieces
from krag_eval.core.scoring.cutoffs import Budget, Cutoff, fitting

Number = TypeVar("Number", np.int64, np.float64)

# A rank beyond all others.
_NEVER = 2**62


@dataclass(frozen=True, eq=False)
class Aspects:
    """Which aspects of a question each ground-truth item speaks to.

    Attributes:
        query: Query of each aspect, aspects numbered through all queries; shape (aspects,).
        item, aspect: Every pair of an item and an aspect of it, sorted by item; shape (pairs,).
    """

    query: IntArray
    item: IntArray
    aspect: IntArray

    @classmethod
    def of(
        cls,
        given: Sequence[tuple[str, ...]],
        item_query: IntArray,
        same_as: IntArray,
        kept: BoolArray,
    ) -> tuple[Aspects, int]:
        """Settle the aspects of the items that are kept; one without any is an aspect of its own.

        A document that is listed several times, once for each of its aspects, has all of them.

        Args:
            given: The aspects of each item as given; shape (items,).
            item_query: Query of each; shape (items,).
            same_as: The item that each is the same as; shape (items,).
            kept: Whether each is kept; shape (items,).

        Returns:
            The aspects, and how many items that are not kept brought a new one to another.
        """
        names: dict[int, dict[str | None, None]] = {}
        brought = 0
        for first, of_item in zip(same_as.tolist(), given, strict=True):
            known = names.setdefault(first, {})
            brought += bool(known) and not known.keys() >= set(of_item)
            known.update(dict.fromkeys(of_item))
        numbers: dict[tuple[int, str | int | None], int] = {}
        pairs = []
        for item, first in enumerate(np.flatnonzero(kept).tolist()):
            query = int(item_query[first])
            named = [(query, name) for name in names[first] or (item,)]
            pairs += [(item, numbers.setdefault(one, len(numbers))) for one in named]
        items, aspects = np.array(pairs, np.int64).reshape(-1, 2).T
        queries = np.array([query for query, _ in numbers], np.int64)
        return cls(queries, items, aspects), brought

    @cached_property
    def start(self) -> IntArray:
        """Where each item's pairs begin, and where the last one's end; shape (items + 1,)."""
        return np.append(np.flatnonzero(np.diff(self.item, prepend=-1)), len(self.item))


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

    def sum(self, values: FloatArray) -> FloatArray:
        """Return the sum over each document's pairs."""
        return np.add.reduceat(values[self.order], self.start) if len(self.start) else values[:0]

    def max(self, values: FloatArray) -> FloatArray:
        """Return the greatest value among each document's pairs."""
        return (
            np.maximum.reduceat(values[self.order], self.start) if len(self.start) else values[:0]
        )


class Beside(NamedTuple):
    """What was found of another list per query.

    Attributes:
        found: What was found.
        listed: Whether each query has such a list, which may be empty; shape (queries,).
    """

    found: Relevance
    listed: BoolArray


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
        pieces: Which words each document holds; ``None`` from matchers that do not know.
        lengths: Unit of a budget -> length of every retrieved document, in order of queries, then
            rank, each of shape (documents,); ``None`` where no budget was asked for.
        queries: The documents themselves; ``None`` where they are not at hand.
        looked_at: Which documents somebody looked at; ``None`` where that is not known.
        aspects: What aspects of its question each item speaks to; ``None`` where that is not known.
        beside: What was found of other lists, by the argument that holds them: of ``"unwanted"``
            documents in what was retrieved, of the ground truth in the ``"cited"`` documents.
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
    pieces: Pieces | None = field(default=None, repr=False)
    lengths: Mapping[str, IntArray] | None = field(default=None, repr=False)
    queries: QuerySet | None = field(default=None, repr=False)
    looked_at: Judged | None = field(default=None, repr=False)
    aspects: Aspects | None = field(default=None, repr=False)
    beside: Mapping[str, Beside] = field(default_factory=dict, repr=False)
    _counts: dict[tuple[str, int | None], Any] = field(default_factory=dict, repr=False)
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
        union: bool = False,
        aspects: Sequence[tuple[str, ...]] | None = None,
    ) -> Relevance:
        """Settle what was found.

        Args:
            matches: The similarities; of items that say the same, the first is kept.
            item_query: Query of each item as given; shape (items,).
            n_retrieved: Retrieved documents per query; shape (queries,).
            threshold: Similarity from which a pair is a match.
            grade: Grade of each item, 1 if not given; shape (items,). Grade 0 drops the item.
            n_alternatives: Documents of each item, 1 if not given; shape (items,).
            union: Whether documents complete an item together.
            aspects: The aspects of each item, where they are known; shape (items,).

        Raises:
            InvalidInput: If items that say the same have different grades.
        """
        n_items = len(item_query)
        if grade is None:
            grade = np.broadcast_to(1.0, n_items)
        elif (grade != grade[matches.same_as]).any():
            item = int(np.flatnonzero(grade != grade[matches.same_as])[0])
            two = f"{grade[matches.same_as[item]]:g} and {grade[item]:g}"
            raise InvalidInput(
                "actual_docs",
                f"lists the same document with the grades {two}",
                "give it one grade",
                query=int(item_query[item]),
            )
        if n_alternatives is None:
            n_alternatives = np.broadcast_to(np.int64(1), n_items)
        pairs, rank, similarity = matches.item, matches.rank, matches.similarity
        pieces = matches.pieces
        repeats = matches.same_as != np.arange(n_items)
        n_repeats = int(repeats.sum())
        kept = ~repeats & (grade > 0)
        known = None
        if aspects is not None:
            known, brought = Aspects.of(aspects, item_query, matches.same_as, kept)
            n_repeats -= brought
        item_number = None
        if not kept.all():
            item_number = numbers_within(item_query)[kept]
            number = np.cumsum(kept) - 1
            pair_kept = kept[pairs]
            pairs = number[pairs[pair_kept]]
            rank, similarity = rank[pair_kept], similarity[pair_kept]
            item_query, grade = item_query[kept], grade[kept]
            n_alternatives = n_alternatives[kept]
            pieces = None if pieces is None else pieces.of_items(kept)
        return (RelevanceTogether if union else cls)(
            n_retrieved, item_query, grade, n_alternatives,
            pairs, rank, similarity, threshold, n_repeats, item_number, pieces, aspects=known,
        )  # fmt: skip

    def warn_of_repeats(self) -> None:
        """Warn, once, if ground-truth documents were listed twice."""
        if self.n_repeats:
            told = _(
                "{} ground-truth documents repeat another document of the same query (as the "
                "matcher sees them); each is counted as one item."
            )
            warn_of(told, self.n_repeats)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.n_retrieved)

    @property
    def pieces_known(self) -> Pieces:
        """Which words each document holds.

        Raises:
            InvalidInput: If the matcher does not know.
        """
        if self.pieces is None:
            raise words_unknown()
        return self.pieces

    @property
    def aspects_known(self) -> Aspects:
        """What aspects of its question each item speaks to.

        Raises:
            InvalidInput: If that is not known.
        """
        if self.aspects is None:
            raise aspects_unknown()
        return self.aspects

    def held_within(self, last: IntArray) -> FloatArray:
        """Return how much of each item the documents up to its last rank hold together."""
        pieces = self.pieces_known
        item = pieces.alternative_item
        alternative, rank, tokens = pieces.together
        seen = rank <= last[item[alternative]]
        held = np.bincount(alternative[seen], tokens[seen], minlength=len(item))
        shares = np.zeros(len(last))
        np.maximum.at(shares, item, held / np.maximum(pieces.alternative_tokens, 1))
        return shares

    def beside_known(self, argument: str) -> Beside:
        """Return what was found of other lists.

        Raises:
            InvalidInput: If there are no such lists.
        """
        if argument not in self.beside:
            raise lists_unknown(argument)
        return self.beside[argument]

    def at_threshold(self, threshold: float) -> Relevance:
        """Return what another threshold makes of the same similarities."""
        beside = {
            name: one._replace(found=one.found.at_threshold(threshold))
            for name, one in self.beside.items()
        }
        return replace(self, threshold=threshold, beside=beside, _counts={})

    @cached_property
    def contradictions(self) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Item, rank, share and alternative of each pair whose document contradicts; by item, rank.

        The share is how much of the item the document holds. Of an ``AnyOf``, it is that of the
        alternative of which it holds most, counted from 0; no pair is one that matches another.
        """
        none = np.empty(0, np.int64)
        if self.pieces is None:
            return none, none, np.empty(0), none
        pieces, rank = self.pieces, self.pieces.contradicted_rank
        alternative, share = pieces.contradicted_alternative, pieces.contradicted_share
        item = pieces.alternative_item[alternative]
        step = int(self.n_retrieved.max(initial=0)) + 1
        matched = self.pair_similarity >= self.threshold
        place = item * step + rank
        others = np.isin(place, self.pair_item[matched] * step + self.pair_rank[matched])
        order = np.lexsort((-share, place))
        order = order[~others[order]]
        kept = order[np.unique(place[order], return_index=True)[1]]
        first = np.searchsorted(pieces.alternative_item, item[kept])
        return item[kept], rank[kept], share[kept], alternative[kept] - first

    @property
    def n_contradicted(self) -> int:
        """Number of pairs that would match if their document did not contradict."""
        return int((self.contradictions[2] >= self.threshold).sum())

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
        return fitting(budget, lengths, self.n_retrieved)

    def seen_within(self, k: Cutoff) -> IntArray:
        """Return the documents within a cutoff of either kind; shape (queries,)."""
        return self.prefix(k) if isinstance(k, Budget) else self.retrieved_within(k)

    def within(self, budget: Budget) -> Relevance:
        """Return what was found in the prefix of each list that fits into a budget.

        A metric at a budget is the metric of this at no cutoff.

        Raises:
            InvalidInput: If the documents were not measured in its unit.
        """
        cut = self._cuts.get(budget)
        if cut is None:
            seen = self._ranks <= np.repeat(self.prefix(budget), self.n_retrieved)
            cut = self._cuts[budget] = replace(self._of(seen), lengths=None)
        return cut

    def condensed(self) -> Relevance:
        """Return what was found in the lists without the documents that are not judged.

        Sakai's condensed lists (2007): the others move up. Unwanted documents stay, as somebody
        listed them.
        """
        kept = self.judged.known
        if "unwanted" in self.beside:
            query, rank, _ = self.beside["unwanted"].found.relevant_from
            kept = kept.copy()
            kept[self._starts[query] + rank - 1] = True
        found, queries = self._of(kept), self.queries
        if queries is not None:
            ends = np.cumsum(self.n_retrieved).tolist()
            lists = [
                list(compress(of_query, kept[end - len(of_query) : end].tolist()))
                for of_query, end in zip(queries.predicted, ends, strict=True)
            ]
            queries = replace(queries, predicted=Lists(lists))
        return replace(found, queries=queries)

    def _of(self, kept: BoolArray) -> Relevance:
        """Return what was found in the lists without some documents; the others move up.

        Args:
            kept: Whether each retrieved document is kept; shape (documents,).
        """
        query = self._document_query
        new_rank = np.zeros(len(kept), np.int64)
        new_rank[kept] = numbers_within(query[kept])
        place = self._starts[self.item_query[self.pair_item]] + self.pair_rank - 1
        pairs = kept[place]
        pieces, looked_at = self.pieces, self.looked_at
        if pieces is not None:
            start = self._starts[self.item_query[pieces.alternative_item]]
            pieces = pieces.moved(kept, new_rank, start)
        if looked_at is not None:
            keys = [*compress(looked_at.keys, kept.tolist())]
            looked_at = replace(self.judged, number=self.judged.number[kept], keys=keys)
        beside = dict(self.beside)
        if "unwanted" in beside:  # what was cited is another list of documents
            found = beside["unwanted"].found._of(kept)
            beside["unwanted"] = beside["unwanted"]._replace(found=found)
        return replace(
            self,
            n_retrieved=_shared(np.bincount(query[kept], minlength=self.n_queries)),
            pair_item=self.pair_item[pairs],
            pair_rank=new_rank[place[pairs]],
            pair_similarity=self.pair_similarity[pairs],
            lengths=self.lengths and {unit: one[kept] for unit, one in self.lengths.items()},
            pieces=pieces,
            looked_at=looked_at,
            beside=beside,
            _counts={},
        )

    @cached_property
    def _document_query(self) -> IntArray:
        """Query of every retrieved document, in order; shape (documents,)."""
        return np.repeat(np.arange(self.n_queries), self.n_retrieved)

    @property
    def _ranks(self) -> IntArray:
        """Rank of every retrieved document, in order of queries; shape (documents,)."""
        first = np.repeat(self._starts, self.n_retrieved)
        return np.asarray(np.arange(len(first)) - first + 1, np.int64)

    @property
    def _starts(self) -> IntArray:
        """Where each query's documents begin among all; shape (queries,)."""
        return np.asarray(np.cumsum(self.n_retrieved) - self.n_retrieved, np.int64)

    @cached_property
    def judged(self) -> Judged:
        """Which documents are judged, and which of these are relevant.

        A document that matches an item is relevant whether it was looked at or not.

        Raises:
            InvalidInput: If it is not known what was looked at.
        """
        looked_at = self.looked_at
        if looked_at is None:
            raise judgements_unknown()
        query, rank, _ = self.relevant_from
        place = self._starts[query] + rank - 1
        others = looked_at.number[place]
        found = np.unique(np.stack([query, others])[:, others >= 0], axis=1)
        number = looked_at.number.copy()
        number[place] = Judged.RELEVANT
        n_others = looked_at.n_others - np.bincount(found[0], minlength=self.n_queries)
        return replace(looked_at, number=number, n_others=n_others)

    def before_first(self, wanted: BoolArray) -> IntArray:
        """Return how many of the wanted documents stand before each covered item; (covered,).

        Args:
            wanted: Whether each retrieved document is one of them; shape (documents,).
        """
        until = np.concatenate([[0], np.cumsum(wanted)])
        start = self._starts[self.covered_query]
        return np.asarray(until[start + self.first_rank - 1] - until[start], np.int64)

    def first_of_others(self) -> BoolArray:
        """Return where each judged document that is not relevant first stands; (documents,)."""
        query, number = self._document_query, self.judged.number
        others = np.flatnonzero(number >= 0)
        step = int(number.max(initial=0)) + 1
        _, first = np.unique(query[others] * step + number[others], return_index=True)
        flags = np.zeros(len(number), np.bool_)
        flags[others[first]] = True
        return flags

    def unjudged(self, k: int | None) -> tuple[IntArray, IntArray]:
        """Return query and rank of the documents within the cutoff that are not judged."""
        ranks = self._ranks
        wanted = ~self.judged.known
        if k is not None:
            wanted &= ranks <= k
        return self._document_query[wanted], ranks[wanted]

    def retrieved_within(self, k: int | None) -> IntArray:
        """Return the documents retrieved within the cutoff, min(k, m); shape (queries,)."""
        if k is None:
            return _shared(self.n_retrieved[:])
        counts = self._counts.get(("retrieved", k))
        if counts is None:
            enough = self.n_retrieved.min(initial=k) == k
            # One number for all queries takes the room of one.
            counts = _shared(
                np.broadcast_to(k, self.n_queries) if enough else np.minimum(self.n_retrieved, k)
            )
            self._counts["retrieved", k] = counts
        return counts

    def relevant_within(self, k: int | None) -> IntArray:
        """Return the relevant documents within the cutoff; shape (queries,)."""
        query, _, since = self.relevant_from
        return self._count("relevant", k, query, since)

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
    def _hits(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Item, rank and similarity of every hit: of the pairs that match."""
        pairs = self.pair_item, self.pair_rank, self.pair_similarity
        matched = self.pair_similarity >= self.threshold
        if matched.all():  # as where matching is yes or no
            return pairs
        return pairs[0][matched], pairs[1][matched], pairs[2][matched]

    @property
    def hit_item(self) -> IntArray:
        """Item of each hit, sorted; shape (hits,)."""
        return self._hits[0]

    @property
    def hit_rank(self) -> IntArray:
        """Rank of each hit, ascending within its item; shape (hits,)."""
        return self._hits[1]

    @property
    def hit_similarity(self) -> FloatArray:
        """Similarity of each hit: where documents count together, that of what they hold."""
        return self._hits[2]

    @cached_property
    def hit_number(self) -> IntArray:
        """Number of each hit within its item, from 1; shape (hits,)."""
        return numbers_within(self.hit_item)

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
    def relevant_until_first(self) -> IntArray:
        """Relevant documents up to and including each covered item's first rank; (covered,)."""
        documents = self.relevant
        sizes = np.diff(documents.start, append=len(documents.order))
        until = np.empty(len(documents.order), np.int64)
        until[documents.order] = np.repeat(numbers_within(documents.query), sizes)
        return self._first(until)

    def relevant_until_first_within(self, k: int | None) -> IntArray:
        """Return, of the documents relevant within the cutoff, those up to each first rank.

        Shape (covered,); only the items covered within the cutoff have a meaningful number.
        """
        return self.relevant_until_first

    @property
    def relevant_from(self) -> tuple[IntArray, IntArray, IntArray]:
        """Query and rank of each relevant document, and the cutoff from which it is relevant."""
        return self.relevant.query, self.relevant.rank, self.relevant.rank

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

    def aspects_within(self, k: int | None) -> IntArray:
        """Return the aspects of which some item is covered within the cutoff; shape (queries,)."""
        aspects = self.aspects_known
        found = np.zeros(len(self.item_query), np.bool_)
        found[self.covered if k is None else self.covered[self.first_rank <= k]] = True
        covered = np.unique(aspects.aspect[found[aspects.item]])
        return np.asarray(np.bincount(aspects.query[covered], minlength=self.n_queries), np.int64)

    def in_turn(self, k: int | None, novelty: Sequence[float]) -> tuple[IntArray, IntArray]:
        """Give every item covered within the cutoff a place by what it adds to those before it.

        At each place stands, of the items that were found at it or before, the one that gains most
        there; then the one found first, then the order of the ground truth.

        Args:
            k: The cutoff.
            novelty: What an aspect gains that n items before have spoken to, by n.

        Returns:
            The items, and the place of each.
        """
        order = np.lexsort((self.covered, self.first_rank, self.covered_query))
        if k is not None:
            order = order[self.first_rank[order] <= k]
        item, rank, query = self.covered[order], self.first_rank[order], self.covered_query[order]
        if len(self.credited.start) == len(self.credited.order):
            return item, rank  # no two items share a document
        return self._taking_turns(item, rank, query, novelty)

    def in_best_turn(self, novelty: Sequence[float]) -> tuple[IntArray, IntArray]:
        """Return all items and their places in the list that picks the greatest gain each time."""
        key = f"in best turn {novelty[1:2]}", None
        if key not in self._counts:
            item = np.arange(len(self.item_query))
            order = np.argsort(self.item_query, kind="stable")
            self._counts[key] = self._taking_turns(
                item[order], np.ones(len(item), np.int64), self.item_query[order], novelty
            )
        found: tuple[IntArray, IntArray] = self._counts[key]
        return found

    def _taking_turns(
        self, item: IntArray, rank: IntArray, query: IntArray, novelty: Sequence[float]
    ) -> tuple[IntArray, IntArray]:
        aspects = self.aspects_known
        start, of_pairs = aspects.start.tolist(), aspects.aspect.tolist()
        of_item = [tuple(of_pairs[start[one] : start[one + 1]]) for one in item.tolist()]
        begins = np.append(np.flatnonzero(np.diff(query, prepend=-1)), len(query)).tolist()
        order: list[int] = []
        places: list[int] = []
        for first, last in pairwise(begins):
            for one, place in _turns(rank[first:last].tolist(), of_item[first:last], novelty):
                order.append(first + one)
                places.append(place)
        return item[np.array(order, np.int64)], np.array(places, np.int64)


@dataclass(frozen=True, eq=False)
class RelevanceTogether(Relevance):
    """What was found where documents complete an item together.

    An item is covered at the first rank up to which the documents hold, all together, a share of
    its words of at least the threshold. It is found again by later documents that alone reach it.
    """

    @cached_property
    def completed(self) -> tuple[IntArray, FloatArray]:
        """Rank at which each alternative is completed, 0 for never, and the share held there."""
        pieces = self.pieces_known
        added, ranks, tokens = pieces.together
        share = _sums_within(added, tokens) / pieces.alternative_tokens[added]
        enough = np.flatnonzero(share >= self.threshold)
        alternative, first = np.unique(added[enough], return_index=True)
        rank = np.zeros(len(pieces.alternative_item), np.int64)
        at_rank = np.zeros(len(rank))
        rank[alternative] = ranks[enough[first]]
        at_rank[alternative] = share[enough[first]]
        return rank, at_rank

    @cached_property
    def completed_rank(self) -> IntArray:
        """Rank at which each item is completed, beyond all ranks for never; shape (items,)."""
        rank, _ = self.completed
        of_item = np.full(len(self.item_query), _NEVER)
        found = rank > 0
        np.minimum.at(of_item, self.pieces_known.alternative_item[found], rank[found])
        return of_item

    @cached_property
    def _hits(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Item, rank and similarity of every hit: where it is completed, and what matches later."""
        rank, share = self.completed
        of_item = self.pieces_known.alternative_item
        similarity = np.zeros(len(self.item_query))
        first = (rank > 0) & (rank == self.completed_rank[of_item])
        np.maximum.at(similarity, of_item[first], share[first])
        item = np.flatnonzero(self.completed_rank < _NEVER)
        later = self.pair_rank > self.completed_rank[self.pair_item]
        later &= self.pair_similarity >= self.threshold
        items = np.concatenate([item, self.pair_item[later]])
        ranks = np.concatenate([self.completed_rank[item], self.pair_rank[later]])
        order = np.lexsort((ranks, items))
        similarities = np.concatenate([similarity[item], self.pair_similarity[later]])
        return items[order], ranks[order], similarities[order]

    @cached_property
    def piece_rows(self) -> BoolArray:
        """Whether each addition of ``together`` helps to complete an item; shape (additions,)."""
        pieces = self.pieces_known
        rank, _ = self.completed
        alternative, at, _ = pieces.together
        item = pieces.alternative_item[alternative]
        completes = rank[alternative] == self.completed_rank[item]
        return np.asarray(completes & (at <= rank[alternative]))

    def held_together(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield, per item, the ranks of its pieces and the share they hold, until it is complete.

        Of a missed item, those of the alternative of which most is held.
        """
        pieces, (rank, _) = self.pieces_known, self.completed
        added, at, tokens = pieces.together
        in_all = _sums_within(added, tokens)
        for item, complete in enumerate(self.completed_rank.tolist()):
            best: tuple[tuple[int, ...], float] = (), 0.0
            for alternative in np.flatnonzero(pieces.alternative_item == item).tolist():
                rows = slice(*np.searchsorted(added, [alternative, alternative + 1]))
                ranks, held = at[rows], in_all[rows]
                kept = ranks <= complete
                if kept.any() and (complete == _NEVER or rank[alternative] == complete):
                    part = float(held[kept][-1] / pieces.alternative_tokens[alternative])
                    if part > best[1]:
                        best = tuple(ranks[kept].tolist()), part
            yield best

    @cached_property
    def relevant_from(self) -> tuple[IntArray, IntArray, IntArray]:
        """Query and rank of each relevant document, and the cutoff from which it is relevant.

        A document that alone reaches the threshold is relevant wherever it is seen, a piece from
        the rank on at which the item is completed.
        """
        pieces, alone = self.pieces_known, self.pair_similarity >= self.threshold
        alternative, at, _ = (one[self.piece_rows] for one in pieces.together)
        item = pieces.alternative_item[alternative]
        query = np.concatenate([self.item_query[self.pair_item[alone]], self.item_query[item]])
        rank = np.concatenate([self.pair_rank[alone], at])
        since = np.concatenate([self.pair_rank[alone], self.completed_rank[item]])
        order = np.lexsort((since, rank, query))
        query, rank, since = query[order], rank[order], since[order]
        first = (np.diff(query, prepend=-1) != 0) | (np.diff(rank, prepend=-1) != 0)
        return query[first], rank[first], since[first]

    def relevant_until_first_within(self, k: int | None) -> IntArray:
        """Return, of the documents relevant within the cutoff, those up to each first rank."""
        query, rank, since = self.relevant_from
        if k is not None:
            query, rank = query[since <= k], rank[since <= k]
        step = int(self.n_retrieved.max(initial=0)) + 1
        place = query * step + rank
        until = np.searchsorted(place, self.covered_query * step + self.first_rank, side="right")
        until -= np.searchsorted(place, self.covered_query * step)
        return np.asarray(until, np.int64)


def _sums_within(groups: IntArray, values: IntArray) -> IntArray:
    """Return running sums that begin anew with each group; members of a group stand together."""
    sums = np.cumsum(values)
    start = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(start, append=len(groups))
    before = sums[start] - values[start]
    return np.asarray(sums - np.repeat(before, sizes), np.int64)


def numbers_within(groups: IntArray) -> IntArray:
    """Number the members of each group from 1; members of a group stand together."""
    start = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(start, append=len(groups))
    numbers: IntArray = np.arange(1, len(groups) + 1) - np.repeat(start, sizes)
    return numbers


def _queued(query: IntArray, rank: IntArray) -> IntArray:
    """Return the places that are taken, ascending, by whichever item.

    The j-th item of a query (from 0), by first rank f, comes to j + the greatest f - j so far.
    """
    j = numbers_within(query) - 1
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


def _turns(
    rank: Sequence[int], aspects: Sequence[tuple[int, ...]], novelty: Sequence[float]
) -> Iterator[tuple[int, int]]:
    """Yield who takes each place, and the place; items of one query are given by first rank.

    What an item gains only falls as others go before it, so that who gains most among those
    waiting needs no look at all of them (Minoux 1978); and those of the same aspects gain the same.
    """
    seen: Counter[int] = Counter()
    alike: dict[tuple[int, ...], deque[int]] = {}
    waiting: list[tuple[float, int]] = []

    def wait(first: int) -> None:
        gain = math.fsum(novelty[seen[aspect]] for aspect in aspects[first])
        heappush(waiting, (-gain, first))

    place = arrived = 0
    while waiting or arrived < len(rank):
        place = place + 1 if waiting else max(place + 1, rank[arrived])
        while arrived < len(rank) and rank[arrived] <= place:
            queue = alike.setdefault(aspects[arrived], deque())
            queue.append(arrived)
            if len(queue) == 1:
                wait(arrived)
            arrived += 1
        one = _best_of(waiting, wait)
        yield one, place
        seen.update(aspects[one])
        queue = alike[aspects[one]]
        queue.popleft()
        if queue:
            wait(queue[0])


def _best_of(waiting: list[tuple[float, int]], wait: Callable[[int], None]) -> int:
    """Take who gains most, the gains of those in front worked out anew."""
    while True:
        claimed, one = heappop(waiting)
        wait(one)
        if waiting[0] == (claimed, one):
            heappop(waiting)
            return one


def _shared(counts: IntArray) -> IntArray:
    """Make counts read-only, for the next metric starts from them."""
    counts.flags.writeable = False
    return counts


def judgements_unknown(argument: str = "metrics") -> InvalidInput:
    """Return the error for what needs to know which documents were looked at."""
    fix = Advice("pass {}: per query, the ids or texts of those that were", judged=...)
    return InvalidInput(argument, ": which documents were looked at is not known", fix)


def words_unknown(argument: str = "matcher", name: str = "") -> InvalidInput:
    """Return the error for what counts words, under a matcher that cannot tell."""
    return InvalidInput(
        argument,
        f": {name or 'this'} counts words of the ground truth, and only the matchers coverage and "
        "spans know which of them a document holds",
        Advice("choose {} or {}", matcher=("coverage", "spans")),
    )


def rejections_unknown(argument: str, n_left_out: int | None = None) -> InvalidInput:
    """Return the error for a rejection rate that cannot be had.

    Args:
        argument: The argument that the error is about.
        n_left_out: The number of queries without ground truth, where these stand apart.
    """
    if n_left_out is None:
        problem = ": rejection_rate is about queries without ground truth, and here they do not "
        return InvalidInput(
            argument, f"{problem}stand apart", Advice("pass {}", no_ground_truth="skip")
        )
    problem = ": rejection_rate needs queries without ground truth, and every query has some"
    fix = "list those for which nothing should be retrieved with an empty list"
    return InvalidInput(argument, problem, fix)


def lists_unknown(argument: str) -> InvalidInput:
    """Return the error for what needs a list per query that was not given."""
    problem = f": this counts {argument} documents, and which these are is not known"
    fix = f"give each query a list {argument!r}: as an argument, or in a column of that name"
    return InvalidInput("metrics", problem, fix)


def aspects_unknown(argument: str = "metrics", name: str = "") -> InvalidInput:
    """Return the error for what needs to know which aspects a question has."""
    problem = f": {name or 'this'} counts aspects of a question, and which there are is not known"
    fix = "pass {}: the metadata key of the ground truth that holds them"
    return InvalidInput(argument, problem, Advice(fix, aspect_key=...))
