"""Runs of tokens that ground truth and documents share, found once for all texts.

For :class:`~krag_eval.CoverageMatcher`: which tokens of a ground-truth text a document holds, and
which tokens of its own these are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.matching.joins import (
    BoolArray,
    FloatArray,
    IntArray,
    Pairs,
    Pieces,
    Units,
    ranges,
)
from krag_eval.core.matching.numbering import TokenNumbers

TokenArray: TypeAlias = NDArray[np.int32]
HashArray: TypeAlias = NDArray[np.uint64]

# Rows of a join at a time, positions of texts at a time: what fits into a few MB.
_MOST_ROWS = 1 << 15
_BLOCK = 1 << 14
# Documents with a run at a time.
_MOST_HELD = 1 << 20
# Ranks stand above the bits of a position; this is beyond all others.
_RANK_SHIFT = 32
_NOWHERE = np.iinfo(np.int64).max
# The place of a token that runs do not hold.
_AT_EDGES = (1 << _RANK_SHIFT) - 1
# Tokens of ground truth whose runs are looked up together: documents are read anew for others.
_LOOKED_UP = 1 << 16
# Bits of a hash that say, before anything is searched, whether it may be there.
_MARK_BITS, _MOST_MARK_BITS = 20, 27
# Any large odd number spreads consecutive numbers; this one is 2**64 divided by the golden ratio.
SPREAD = np.uint64(0x9E3779B97F4A7C15)
_TURN = np.uint64(0xC2B2AE3D27D4EB4F)  # another one, with its bits mixed


class Spans(NamedTuple):
    """Stretches of tokens, none touching another of its pair, sorted by truth, document, start.

    Attributes:
        truth: Number of the ground-truth text within all queries; shape (spans,).
        document: Number of the document within all queries; shape (spans,).
        start, stop: First token, and the one after the last; shape (spans,).
    """

    truth: IntArray
    document: IntArray
    start: IntArray
    stop: IntArray

    def of_pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return truth, document and number of tokens of each pair."""
        begins = np.ones(len(self.truth), np.bool_)
        begins[1:] = (np.diff(self.truth) != 0) | (np.diff(self.document) != 0)
        start, sizes = np.flatnonzero(begins), self.stop - self.start
        tokens = np.add.reduceat(sizes, start) if len(start) else start
        return self.truth[start], self.document[start], tokens

    def places(self, truth: IntArray, document: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the stretches of pairs begin, and after the last where they end."""
        n = 1 + int(max(self.document.max(initial=-1), document.max(initial=-1)))
        key, wanted = self.truth.astype(np.int64) * n + self.document, truth * n + document
        return np.searchsorted(key, wanted), np.searchsorted(key, wanted, side="right")


@dataclass(frozen=True, eq=False)
class OnceEach:
    """The texts of one side, each once per query.

    Attributes:
        key: Query of each, times the number of all texts, plus its text; ascending.
        of_query: Where the members of each query begin, and after the last where all end.
        occurrences: The occurrences, in order of members and, of one, in the order given.
        of_member: Where those of each member begin, and after the last where all end.
        before: Occurrences of all queries before each; shape (queries,).
        n_units: Number of all texts.
    """

    key: IntArray
    of_query: IntArray
    occurrences: NDArray[Any]
    of_member: NDArray[Any]
    before: IntArray
    n_units: int

    @classmethod
    def among(cls, n_each: IntArray, unit: IntArray, n_units: int) -> OnceEach:
        """Gather occurrences, given how many each query has, and the text of each."""
        queries = np.arange(len(n_each) + 1)
        place = np.repeat(queries[:-1] * n_units, n_each)
        place += unit
        order = _compact(np.argsort(place, kind="stable"))
        place = place[order]
        begins = np.ones(len(place), np.bool_)
        np.not_equal(place[1:], place[:-1], out=begins[1:])
        key = place[begins]
        of_query = np.searchsorted(key, queries * n_units)
        of_member = _compact(np.append(np.flatnonzero(begins), len(place)))
        return cls(key, of_query, order, of_member, np.cumsum(n_each) - n_each, n_units)

    def each(self, members: IntArray) -> tuple[IntArray, IntArray]:
        """Return every row with every occurrence of its member.

        Args:
            members: The member that each row speaks of.

        Returns:
            Rows, ascending, and occurrences.
        """
        start = self.of_member[members].astype(np.int64)
        sizes = self.of_member[members + 1] - start
        occurrences = self.occurrences[ranges(start, sizes)]
        return np.repeat(np.arange(len(members)), sizes), occurrences.astype(np.int64)

    def number(self, occurrences: IntArray, members: IntArray) -> IntArray:
        """Return the number of occurrences within their query, from 1, given their members."""
        return occurrences - self.before[self.query(members)] + 1

    def best_rank(self, members: IntArray) -> IntArray:
        """Return the number of the first occurrence of members within their query, from 1."""
        first = self.occurrences[self.of_member[members]]
        return self.number(first.astype(np.int64), members)

    def unit(self, members: IntArray | BoolArray | slice = slice(None)) -> IntArray:
        """Return the texts of members, of all if none are named."""
        return self.key[members] % max(self.n_units, 1)

    def query(self, members: IntArray | slice = slice(None)) -> IntArray:
        """Return the queries of members, of all if none are named."""
        return self.key[members] // max(self.n_units, 1)


class AtEdges(NamedTuple):
    """Tokens of ground truth that documents hold together where it was cut.

    Attributes:
        truth: The ground-truth text within all queries; shape (rows,).
        token: The token of it; shape (rows,).
        rank: The best rank from which it is complete; shape (rows,).
        own_rank, place: The rank of a document that brings it, and the token there; shape (rows,).
    """

    truth: IntArray
    token: IntArray
    rank: IntArray
    own_rank: IntArray
    place: IntArray

    @classmethod
    def of(cls, rows: Iterable[tuple[int, ...]] = ()) -> AtEdges:
        """Return rows as columns."""
        return cls(*np.array([*rows], np.int64).reshape(-1, len(cls._fields)).T)

    def take(self, rows: BoolArray | IntArray) -> AtEdges:
        """Return some of them."""
        return AtEdges(*(column[rows] for column in self))

    def stretches(self) -> tuple[IntArray, ...]:
        """Return truth, rank, own rank, and start and stop of neighbouring tokens there."""
        order = np.lexsort((self.place, self.own_rank, self.rank, self.truth))
        truth, _, rank, own_rank, place = self.take(order)
        begins = np.ones(len(place), np.bool_)
        steps = np.stack([np.diff(one) for one in (truth, rank, own_rank)])
        begins[1:] = steps.any(axis=0) | (np.diff(place) > 1)
        stop = place[np.roll(begins, -1)] + 1  # the last one ends with the first one's mark
        return (*(one[begins] for one in (truth, rank, own_rank, place)), stop)


class Runs(NamedTuple):
    """Runs that documents share with ground truth.

    Attributes:
        spans: The tokens of the documents.
        full: Truth and document of the pairs in which the document holds all of the truth.
    """

    spans: Spans
    full: tuple[IntArray, IntArray]


class LooksAtEdges(Protocol):
    """What finds documents that hold a text together where it was cut."""

    def held(
        self, truths: OnceEach, documents: OnceEach, ranks: IntArray, runs: Runs
    ) -> tuple[AtEdges, dict[int, set[int]]]:
        """Return which tokens they hold before runs do, and which texts they hold whole.

        Args:
            truths: The ground-truth texts, each once per query.
            documents: The documents, likewise.
            ranks: The rank at which runs alone hold each token of each ground-truth text.
            runs: The runs that they share.
        """
        ...


@dataclass(frozen=True, eq=False)
class SharedRuns:
    """What the ground-truth texts and the documents of each query share.

    Attributes:
        truths: The ground-truth texts, each once per query.
        documents: The documents, each once per query.
        sizes: Tokens of each text, by unit; shape (texts,).
        truth, document: Every pair that shares a run, by member, in order; shape (pairs,).
        held: Tokens of the ground truth that the document holds; shape (pairs,).
        added: Truth, rank, and the tokens of the truth that the document at that rank holds and no
            better-ranked one, where there are any; by truth, then rank.
        brought: Truth, rank, start and stop of the tokens of that document which bring them, by
            truth, rank, start. A token of the truth is brought by the first run of the truth that
            holds it. Where the document has a run several times, the run is at its next place
            after that of the run before it, or else at its first: of a copy, word for word, each
            token brings one.
        of_document: The tokens of documents that are shared.
        edges: Truth, rank, own rank, start and stop of further tokens that bring some, where the
            truth was cut: from a rank on, those of the document at their own rank.
        whole: The documents that hold a ground-truth text word for word, one after the other.
        seams: What looks for these, if anything does.
    """

    truths: OnceEach
    documents: OnceEach
    sizes: IntArray
    truth: IntArray
    document: IntArray
    held: IntArray
    added: tuple[IntArray, IntArray, IntArray]
    brought: tuple[IntArray, IntArray, IntArray, IntArray]
    of_document: Spans
    edges: tuple[IntArray, ...] = ()
    whole: Mapping[int, set[int]] = field(default_factory=dict)
    seams: LooksAtEdges | None = None

    def own(self) -> IntArray:
        """Return how many tokens of the document are shared; shape (pairs,)."""
        return self.of_document.of_pairs()[2]

    def held_together(self, without: Without | None = None) -> IntArray:
        """Return how many tokens of the ground truth the documents hold together; (members,)."""
        truth, _, tokens = self.added
        if without is not None and len(without.pairs):
            settled = ~np.isin(truth, self.truth[without.pairs])
            others = self._agreed(without)
            truth = np.concatenate([truth[settled], others[0]])
            tokens = np.concatenate([tokens[settled], others[2]])
        counts = np.bincount(truth, tokens, minlength=len(self.truths.key))
        return np.asarray(counts, np.int64)

    def pairs(self, units: Units, similarity: FloatArray) -> Pairs:
        """Return similarities, given for the pairs that share a run, by item and rank."""
        kept = np.flatnonzero(similarity)
        row, alternative, rank = self._each(self.truth[kept], self.document[kept])
        item = np.repeat(np.arange(len(units.item_sizes)), units.item_sizes)[alternative]
        order = np.lexsort((rank, item))
        found = Pairs(item[order], rank[order], similarity[kept][row[order]])
        return found.best_of_each() if len(units.alternatives) > len(units.item_sizes) else found

    def pieces(self, units: Units, without: Without | None = None) -> Pieces:
        """Return which tokens each document holds, for every alternative of an item.

        Args:
            units: The texts of each query.
            without: The pairs whose document says something else.
        """
        spans = self.of_document
        span, holder, ranks = self._each(spans.truth, spans.document)
        held = holder, ranks, spans.start[span], spans.stop[span]
        order = np.lexsort((spans.start[span], ranks, holder))
        rows = [*self._by_alternative(*self.added), *self._by_alternative(*self.brought)]
        rows += (_compact(column[order]) for column in held)
        if without is not None and len(without.pairs):
            pairs = self.truth[without.pairs], self.document[without.pairs]
            row, alternative, rank = self._each(*pairs)
            order = np.lexsort((rank, alternative))
            rows += [alternative[order], rank[order], without.share[row[order]]]
            rows += self._by_alternative(*self._agreed(without))
        names = ("alternative", "rank", "at", "start", "stop")
        edges = self._by_alternative(*self.edges) if self.edges else ()
        return Pieces(
            np.repeat(np.arange(len(units.item_sizes)), units.item_sizes),
            self.sizes[units.alternatives],
            _compact(self.sizes[units.predicted]),
            *rows,
            **{f"edge_{name}": column for name, column in zip(names, edges, strict=False)},
        )

    def _each(self, truth: IntArray, document: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return every row with every occurrence of its truth and its document.

        Args:
            truth: Member of each row.
            document: Likewise.

        Returns:
            Rows, alternatives and ranks.
        """
        of_truth, alternative = self.truths.each(truth)
        row, occurrence = self.documents.each(document[of_truth])
        rows = of_truth[row]
        return rows, alternative[row], self.documents.number(occurrence, document[rows])

    def _by_alternative(self, truth: IntArray, rank: IntArray, *columns: IntArray) -> list[Any]:
        """Return rows that are known of each truth, for all of its occurrences."""
        row, alternative = self.truths.each(truth)
        order = np.lexsort((rank[row], alternative))
        row = row[order]
        return [_compact(alternative[order]), *(_compact(one[row]) for one in (rank, *columns))]

    def _agreed(self, without: Without) -> tuple[IntArray, IntArray, IntArray]:
        """Return the same of the truths of some pairs, as if these did not share anything."""
        kept = np.isin(self.truth, self.truth[without.pairs])
        kept[without.pairs] = False
        # Laid end to end, documents may hold a text together that share no run with it.
        rows = [[*zip(self.truth[kept].tolist(), self.document[kept].tolist(), strict=True)]]
        rows += [[(truth, document) for document in self.whole.get(truth, ())]
                 for truth in np.unique(self.truth[without.pairs]).tolist()]  # fmt: skip
        truth, document = np.array([*{*chain(*rows)}], np.int64).reshape(-1, 2).T
        rank = self.documents.best_rank(document)
        order = np.lexsort((rank, truth))
        truth, document, rank = truth[order], document[order], rank[order]
        wanted, start, n_each = np.unique(truth, return_index=True, return_counts=True)
        one_each = np.ones(len(wanted), np.int64)
        # Each truth is looked for once more, in a query of its own.
        blank = np.zeros(len(without.tokens), np.bool_)
        ours, theirs = self.truths.unit(wanted), self.documents.unit(document)
        again = Units(without.tokens, blank, ours, one_each, wanted, theirs, one_each, n_each)
        runs = shared_runs(without.tokens, again, without.min_run, self.seams)
        query, place, tokens = runs.added
        return wanted[query], rank[start[query] + place - 1], tokens


class Without(NamedTuple):
    """Pairs whose document says something else than the ground truth that it holds much of.

    Attributes:
        pairs: Which of the pairs that share a run; ascending.
        share: How much of the ground truth each holds.
        tokens: The tokens of all texts.
        min_run: Tokens in a run, of each text if they differ.
    """

    pairs: IntArray
    share: FloatArray
    tokens: TokenNumbers
    min_run: int | IntArray


def shared_runs(
    tokens: TokenNumbers, units: Units, min_run: int | IntArray, seams: LooksAtEdges | None = None
) -> SharedRuns:
    """Find the runs of tokens that a query's ground-truth texts share with its documents.

    Args:
        tokens: The tokens of all distinct texts.
        units: Which of them are the ground truth and the documents of each query.
        min_run: Tokens in a run, of each text if they differ; of a shorter ground-truth text, all.
        seams: What finds documents that hold a text together where it was cut; if not given, only
            runs count.
    """
    truths = OnceEach.among(units.n_alternatives, units.alternatives, len(tokens))
    documents = OnceEach.among(units.n_predicted, units.predicted, len(tokens))
    sizes = tokens.sizes[truths.unit()]
    run = np.minimum(sizes, np.broadcast_to(min_run, len(tokens))[truths.unit()])
    begin, first_place = np.cumsum(sizes) - sizes, np.full(int(sizes.sum()), _NOWHERE, np.int64)
    # Of the ground truth is kept what follows from spans: a long text may share thousands with each
    # of thousands of documents.
    held, spans = [[np.empty(0, np.int64)] * 3], [[np.empty(0, np.int32)] * 4]
    for length in np.unique(run[run > 0]).tolist():
        wanted = np.flatnonzero(run == length)
        for part in slices(sizes[wanted], _LOOKED_UP):
            for truth, document in _joined(tokens, truths, wanted[part], documents, length):
                places = document.repeated()
                for batch in _batches(truth, document.once()):
                    runs = _RunPairs.of(*batch, 0)
                    held.append([*runs.spans(length).of_pairs()])
                    runs.following(places).note_places(length, begin, documents, first_place)
                batches = _batches(truth.once(), document)
                merged = (_RunPairs.of(*batch, 1).spans(length) for batch in batches)
                spans += [[*map(_compact, one)] for one in merged]
    shown, edges, whole = Spans(*_sorted(spans, 3)), tuple[IntArray, ...](), dict[int, set[int]]()
    truth, document, n_held = _sorted(held, 2)
    if seams is not None:
        is_full = n_held == sizes[truth]
        found, whole = seams.held(truths, documents, first_place >> _RANK_SHIFT,
                                  Runs(shown, (truth[is_full], document[is_full])))  # fmt: skip
        # Of these the document at that rank has no place: a mark stands there.
        first_place[begin[found.truth] + found.token] = ((found.rank + 1) << _RANK_SHIFT) - 1
        edges = found.stretches() if len(found.truth) else ()
    added, brought = _added(sizes, first_place)
    noted = added, brought, shown, edges, whole, seams
    return SharedRuns(truths, documents, tokens.sizes, truth, document, n_held, *noted)


def _sorted(parts: list[list[Any]], n_keys: int) -> list[Any]:
    """Return columns of all parts, sorted by the first ones."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort(columns[:n_keys][::-1])
    return [column[order] for column in columns]


def _added(sizes: IntArray, first_place: IntArray) -> tuple[Any, Any]:
    """Return ``added`` and ``brought`` of :class:`SharedRuns`.

    Args:
        sizes: Tokens of each ground-truth text.
        first_place: As :meth:`_RunPairs.note_places` has noted it.
    """
    is_held = np.flatnonzero(first_place < _NOWHERE)
    truth = np.searchsorted(np.cumsum(sizes), is_held, side="right")
    rank, place = np.divmod(first_place[is_held], 1 << _RANK_SHIFT)
    step = int(rank.max(initial=0)) + 1
    key, tokens = np.unique(truth * step + rank, return_counts=True)
    has_place = place < _AT_EDGES
    truth, rank, place = truth[has_place], rank[has_place], place[has_place]
    order = np.lexsort((place, rank, truth))
    truth, rank, place = truth[order], rank[order], place[order]
    begins = np.ones(len(place), np.bool_)
    begins[1:] = (np.diff(truth) != 0) | (np.diff(rank) != 0) | (np.diff(place) > 1)
    stop = place[np.roll(begins, -1)] + 1  # the last one ends with the first one's mark
    return (key // step, key % step, tokens), (*(one[begins] for one in (truth, rank, place)), stop)


def held_anywhere(wanted: TokenNumbers, parts: Iterable[TokenNumbers], length: int) -> BoolArray:
    """Tell which tokens of some texts lie in runs which any other text has.

    Args:
        wanted: The texts, none of them shorter than a run.
        parts: The others, part by part, so that they need not be held at once.
        length: Tokens in a run.

    Returns:
        Of each token, one text after the other; shape (tokens,).

    >>> wanted = TokenNumbers(np.array([1, 2, 3, 4, 5]), np.array([5]))
    >>> held_anywhere(wanted, [TokenNumbers(np.array([9, 1, 2, 3]), np.array([4]))], 2).tolist()
    [True, True, True, False, False]
    """
    runs = _WantedRuns.of(wanted, np.arange(len(wanted)), length)
    is_there = np.zeros(runs.n, np.bool_)
    for part in parts:
        is_there[runs.found_in(part, np.arange(len(part))).run] = True
    return runs.marked(is_there)


def holders(wanted: TokenNumbers, others: TokenNumbers, min_run: int, most: int) -> list[list[int]]:
    """Return for each of some texts the others that have a run of it, of which there may be many.

    Of those that have a run which more than ``most`` others have, only the first may be there; but
    all that hold half of the text or more, unless its runs are in ten times as many.

    Args:
        wanted: The texts.
        others: The texts to look through.
        min_run: Tokens in a run; of a shorter text, all.
        most: How many others to return for each run at least.

    >>> wanted = TokenNumbers(np.array([1, 2, 3, 4, 5]), np.array([5]))
    >>> others = TokenNumbers(np.array([4, 5, 4, 5, 1, 2, 3]), np.array([2, 2, 3]))
    >>> holders(wanted, others, 2, most=1)
    [[0, 2]]
    >>> holders(TokenNumbers(np.array([1, 2, 9, 4]), np.array([4])), others, 2, most=1)
    [[2]]
    >>> halves = TokenNumbers(np.array([1, 2, 1, 2]), np.array([2, 2]))
    >>> holders(TokenNumbers(np.array([1, 2, 9, 4]), np.array([4])), halves, 2, most=1)
    [[0, 1]]
    """
    found: list[list[int]] = [[] for _ in range(len(wanted))]
    run = np.minimum(wanted.sizes, min_run)
    for length in np.unique(run[run > 0]).tolist():
        texts = np.flatnonzero(run == length)
        for text, other in _held_by(wanted.take(texts), others, length, most).tolist():
            found[texts[text]].append(other)
    return found


def _held_by(wanted: TokenNumbers, others: TokenNumbers, length: int, most: int) -> IntArray:
    """Return pairs of a text and another, as :func:`holders` does for runs of one length."""
    runs = _WantedRuns.of(wanted, np.arange(len(wanted)), length)
    places = runs.found_in(others, np.arange(len(others)))
    of_run = np.unique(places.run.astype(np.int64) * len(others) + places.unit)
    counts = np.bincount(of_run // max(len(others), 1), minlength=runs.n)
    text, position, run = runs.places
    # For each token, how many others have one of its runs at most. For half of the tokens that is
    # not more than the limit: who has half of them has a run that not more others have.
    sizes = wanted.sizes
    start, often = np.cumsum(sizes) - sizes, np.zeros(len(wanted.flat), np.int64)
    for token in start[text] + position + np.arange(length)[:, None]:
        often[token] = np.maximum(often[token], counts[run])
    often = often[np.lexsort((-often, np.repeat(np.arange(len(sizes)), sizes)))]
    limit = np.clip(often[start + (sizes - 1) // 2], most, 10 * most)
    n_each = np.minimum(counts[run], limit[text])
    row = ranges((np.cumsum(counts) - counts)[run], n_each)
    held = np.unique(np.repeat(text, n_each) * len(others) + of_run[row] % max(len(others), 1))
    return np.stack(np.divmod(held, max(len(others), 1)), 1)


class Whereabouts(NamedTuple):
    """What other texts have of some texts.

    Attributes:
        held: Which tokens lie in runs that any other text has, one text after the other.
        has_whole: Whether a text has the first run of another whose runs are all in some of the
            texts; shape (texts,).
        likely: For each text, some of the others that have its rarest run.
    """

    held: BoolArray
    has_whole: BoolArray
    likely: list[list[int]]


def whereabouts(wanted: TokenNumbers, others: TokenNumbers, length: int, most: int) -> Whereabouts:
    """Look some texts up among others, of which there may be very many, in one pass.

    Args:
        wanted: The texts, none of them shorter than a run.
        others: The texts to look through.
        length: Tokens in a run.
        most: How many places of a rarest run to look at.

    >>> wanted = TokenNumbers(np.array([1, 2, 3, 4, 5]), np.array([5]))
    >>> others = TokenNumbers(np.array([9, 1, 2, 3, 1, 2]), np.array([4, 2]))
    >>> found = whereabouts(wanted, others, 2, most=10)
    >>> found.held.tolist(), found.has_whole.tolist(), found.likely
    ([True, True, True, False, False], [True], [[0]])
    """
    runs = _WantedRuns.of(wanted, np.arange(len(wanted)), length)
    found = runs.found_in(others, np.arange(len(others)))
    counts = np.bincount(found.run, minlength=runs.n)
    text, run = runs.places.unit, runs.places.run
    # Of each other text, how many of its runs are there: all of them, where it is there as a whole.
    begins = np.unique(found.unit * np.int64(1 << 32) + found.position) >> 32
    n_runs = np.bincount(begins, minlength=len(others))
    whole = (n_runs == others.sizes - length + 1) & (n_runs > 0)
    first = np.zeros(runs.n, np.bool_)
    first[found.run[(found.position == 0) & whole[found.unit]]] = True
    has_whole = np.zeros(len(wanted), np.bool_)
    has_whole[text[first[run]]] = True
    # The rarest run of each text that has one in any of the others.
    there = np.flatnonzero(counts[run])
    order = there[np.lexsort((counts[run[there]], text[there]))]
    rarest = order[np.diff(text[order], prepend=-1) != 0]
    by_run = np.argsort(found.run, kind="stable")
    start = np.searchsorted(found.run[by_run], run[rarest])
    likely: list[list[int]] = [[] for _ in range(len(wanted))]
    stop = start + np.minimum(counts[run[rarest]], most)
    for one, begin, end in zip(text[rarest], start, stop, strict=True):
        likely[one] = list(dict.fromkeys(found.unit[by_run[begin:end]].tolist()))
    return Whereabouts(runs.marked(counts > 0), has_whole, likely)


class _Places(NamedTuple):
    """Where runs of one length begin that ground truth has, sorted by text, then position.

    Attributes:
        unit: The text; shape (places,).
        position: Where in it the run begins; shape (places,).
        run: The number of the run, equal for equal runs; shape (places,).
    """

    unit: NDArray[Any]
    position: NDArray[Any]
    run: NDArray[Any]

    def of(self, members: OnceEach, chosen: IntArray) -> _Rows:
        """Return them for chosen members, each of which has the places of its text."""
        ends = np.searchsorted(self.unit, np.stack([units := members.unit(chosen), units + 1]))
        sizes = ends[1] - ends[0]
        row = ranges(ends[0], sizes)
        return _Rows(np.repeat(chosen, sizes), self.position[row], self.run[row])


class _Rows(NamedTuple):
    """Places of the texts of queries.

    Attributes:
        member: The text within all queries; shape (rows,).
        position: Where in it a run begins; shape (rows,).
        run: The run, numbered through all queries or within the query's own; shape (rows,).
    """

    member: IntArray
    position: IntArray
    run: IntArray

    def take(self, rows: IntArray | BoolArray) -> _Rows:
        """Return some of them."""
        return _Rows(*(column[rows] for column in self))

    def halves(self) -> list[_Rows]:
        """Return them in two parts that share no text; nothing if there is one text only."""
        members = np.unique(self.member)
        if len(members) < 2:
            return []
        before = self.member < members[len(members) // 2]
        return [self.take(before), self.take(~before)]

    def once(self) -> _Rows:
        """Return the first place of each run in each text."""
        key = self.member * (int(self.run.max(initial=0)) + 1) + self.run
        return self.take(np.sort(np.unique(key, return_index=True)[1]))

    def repeated(self) -> dict[tuple[int, int], list[int]]:
        """Return the places, ascending, of the runs that a text has several times, by both.

        The places of a run in a text stand together.
        """
        same = np.flatnonzero((np.diff(self.member) == 0) & (np.diff(self.run) == 0))
        places: dict[tuple[int, int], list[int]] = {}
        columns = (column[np.union1d(same, same + 1)].tolist() for column in self)
        for text, position, run in zip(*columns, strict=True):
            places.setdefault((text, run), []).append(position)
        return places


@dataclass(frozen=True, eq=False)
class _Postings:
    """Which texts have which runs, to be asked from either end.

    Attributes:
        n_runs: One more than the largest number of a run.
        key: Text times ``n_runs`` plus run, ascending; shape (pairs,).
        first: Where the places of each pair begin in ``position``; shape (pairs,).
        counts: How many there are; shape (pairs,).
        position: Places in the texts, in order of pairs; shape (places,).
        by_run: The pairs in order of runs; shape (pairs,).
        of_run: Where those of each run begin in ``by_run``; shape (runs,).
        n_texts: How many there are, each of another text; shape (runs,).
    """

    n_runs: int
    key: IntArray
    first: IntArray
    counts: IntArray
    position: IntArray
    by_run: IntArray
    of_run: IntArray
    n_texts: IntArray

    @classmethod
    def of(cls, places: _Places, n_runs: int) -> _Postings:
        """Gather the places of texts."""
        # Wide before the product: numpy 1 keeps an int32 array times an int64 scalar in 32 bits.
        keys = places.unit.astype(np.int64) * n_runs + places.run
        order = np.argsort(keys, kind="stable")
        key, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
        run = key % max(n_runs, 1)
        by_run = np.argsort(run, kind="stable")
        n_texts = np.bincount(run, minlength=n_runs)
        of_run = np.cumsum(n_texts) - n_texts
        return cls(n_runs, key, first, counts, places.position[order], by_run, of_run, n_texts)

    def held_by(
        self, query: IntArray, run: IntArray, documents: OnceEach, bounds: tuple[int, int]
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Find the documents of a query that have a run, for pairs of both, ascending.

        Of the texts that have the run and the documents of the query, the fewer are looked through.

        Args:
            query: The query of each pair.
            run: Its run.
            documents: The documents.
            bounds: The first one to look at, and the one after the last.

        Returns:
            Positions among the pairs, documents (members), and positions among the postings.
        """
        start = np.clip(documents.of_query[query], *bounds)
        stop = np.clip(documents.of_query[query + 1], *bounds)
        few = self.n_texts[run] <= stop - start
        texts, others = np.flatnonzero(few), np.flatnonzero(~few)
        posting = self.by_run[ranges(self.of_run[run[texts]], self.n_texts[run[texts]])]
        texts = np.repeat(texts, self.n_texts[run[texts]])
        # All queries of these pairs, and no others: their documents stand together.
        here = slice(int(start.min(initial=len(documents.key))), int(stop.max(initial=0)))
        text = self.key[posting] // max(self.n_runs, 1)
        member = _found(query[texts] * documents.n_units + text, documents.key[here])
        held = member >= 0
        shown = ranges(start[others], (stop - start)[others])
        others = np.repeat(others, (stop - start)[others])
        place = _found(documents.unit(shown) * self.n_runs + run[others], self.key)
        there = place >= 0
        return (
            np.concatenate([texts[held], others[there]]),
            np.concatenate([member[held] + here.start, shown[there]]),
            np.concatenate([posting[held], place[there]]),
        )


def _joined(
    tokens: TokenNumbers,
    truths: OnceEach,
    wanted: IntArray,
    documents: OnceEach,
    length: int,
) -> Iterator[tuple[_Rows, _Rows]]:
    """Yield where ground truth and documents have runs in common, some queries at a time.

    The places of the documents are sorted by run.

    Args:
        tokens: The tokens of all distinct texts.
        truths: The ground truth.
        wanted: The members of it to look up, whose runs have this length.
        documents: The documents.
        length: Tokens in a run.
    """
    query = truths.query(wanted)
    n_documents = np.diff(documents.of_query)
    queries = np.unique(query)
    shown = ranges(documents.of_query[queries], n_documents[queries])
    runs = _WantedRuns.of(tokens, np.unique(truths.unit(wanted)), length)
    postings = _Postings.of(runs.found_in(tokens, np.unique(documents.unit(shown))), runs.n)
    effort = tokens.sizes[truths.unit(wanted)] * (1 + n_documents[query])
    # Queries after queries, so that what is looked at together does not grow with their number.
    for part in slices(effort, _MOST_ROWS, query):
        yield from _shared(runs.places.of(truths, wanted[part]), truths, documents, postings)


def _shared(
    truth: _Rows, truths: OnceEach, documents: OnceEach, postings: _Postings
) -> Iterator[tuple[_Rows, _Rows]]:
    """Yield where ground truth and the documents of its query have runs in common.

    Where they have very many, some documents come after the others.
    """
    # From here on a run is one of its query: what another query asks for is nothing here.
    of_query = truths.query(truth.member) * postings.n_runs + truth.run
    asked, own = np.unique(of_query, return_inverse=True)
    query, run = np.divmod(asked, max(postings.n_runs, 1))
    truth = truth._replace(run=own.reshape(-1))
    first, last = documents.of_query[query[:1]], documents.of_query[query[-1:] + 1]
    each = documents.of_query[query + 1] - documents.of_query[query]
    n_parts = 1 + int(np.minimum(postings.n_texts[run], each).sum()) // _MOST_HELD
    for bounds in pairwise(np.linspace(first.sum(), last.sum(), n_parts + 1).astype(int).tolist()):
        own, member, posting = postings.held_by(query, run, documents, bounds)
        by_run = np.argsort(own, kind="stable")
        own, member, posting = own[by_run], member[by_run], posting[by_run]
        sizes = postings.counts[posting]
        place = postings.position[ranges(postings.first[posting], sizes)]
        is_shared = np.zeros(len(asked), np.bool_)
        is_shared[own] = True
        shared = _Rows(np.repeat(member, sizes), place, np.repeat(own, sizes))
        yield truth.take(is_shared[truth.run]), shared


def _batches(truth: _Rows, document: _Rows) -> Iterator[tuple[_Rows, _Rows]]:
    """Yield parts of both sides that do not have too many rows in common; none parts a text.

    A run that occurs several times in both texts is to be joined once for each side, not squared.
    """
    counts = np.bincount(document.run, minlength=int(truth.run.max(initial=-1)) + 1)
    halves: list[tuple[_Rows, _Rows]] = []
    if counts[truth.run].sum() > _MOST_ROWS:
        halves = [(half, document) for half in truth.halves()]
        halves = halves or [(truth, half) for half in document.halves()]
    for half in halves:
        yield from _batches(*half)
    if not halves:
        yield truth, document


class _RunPairs(NamedTuple):
    """Where ground truth and documents have the same runs, sorted by pair, then position.

    Attributes:
        truth, document: The texts, within all queries; shape (rows,).
        position: Where the run begins in one of them, the side that is asked about.
        other: Where it begins in the other.
        run: The run, numbered.
    """

    truth: IntArray
    document: IntArray
    position: IntArray
    other: IntArray
    run: IntArray

    @classmethod
    def of(cls, truth: _Rows, document: _Rows, side: int) -> _RunPairs:
        """Join ground truth and documents by run.

        Args:
            truth: Where the ground truth has runs.
            document: Where the documents have them, sorted by run.
            side: 0 for positions in the ground truth, 1 for those in the documents.
        """
        n_runs = max(int(rows.run.max(initial=-1)) for rows in (truth, document)) + 1
        counts = np.bincount(document.run, minlength=n_runs)
        sizes = counts[truth.run]
        ours = np.repeat(np.arange(len(sizes)), sizes)
        theirs = ranges((np.cumsum(counts) - counts)[truth.run], sizes)
        places = truth.position[ours], document.position[theirs]
        members = truth.member[ours], document.member[theirs]
        pair = members[0] * (int(document.member.max(initial=-1)) + 1) + members[1]
        order = np.lexsort((places[side], pair))
        columns = (*members, places[side], places[1 - side], truth.run[ours])
        return cls(*(column[order] for column in columns))

    def continued(self) -> BoolArray:
        """Return which rows are of the same pair as the row before; shape (rows,)."""
        same = np.zeros(len(self.truth), np.bool_)
        same[1:] = (np.diff(self.truth) == 0) & (np.diff(self.document) == 0)
        return same

    def following(self, places: Mapping[tuple[int, int], list[int]]) -> _RunPairs:
        """Return them with each run at its next place after that of the run before it.

        Args:
            places: Text and run -> the places in a document that has the run several times.
        """
        if not places:
            return self
        n_runs = max(run for _, run in places) + 1
        several = np.array([document * n_runs + run for document, run in places])
        rows = np.isin(self.document * n_runs + self.run, several) & (self.run < n_runs)
        other, continued = self.other.copy(), self.continued()
        for row in np.flatnonzero(rows & continued).tolist():
            known = places[int(self.document[row]), int(self.run[row])]
            at = bisect_right(known, other[row - 1])
            other[row] = known[at % len(known)]
        return self._replace(other=other)

    def spans(self, length: int) -> Spans:
        """Merge the runs of each pair, all of this length, on the side that is asked about."""
        # A run that begins before the last one has ended, or where it ends, continues its span.
        begins = ~self.continued()
        begins[1:] |= np.diff(self.position) > length
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(begins))[: len(first)] - 1
        members = self.truth[first], self.document[first]
        return Spans(*members, self.position[first], self.position[last] + length)

    def note_places(
        self, length: int, begin: IntArray, documents: OnceEach, first_place: IntArray
    ) -> None:
        """Note of each token of the ground truth where a document holds it first.

        Args:
            length: Tokens in a run.
            begin: Where the tokens of each ground-truth text begin in ``first_place``.
            documents: The documents.
            first_place: The first rank of a document that holds a token, shifted, plus the position
                in it; shape (tokens,).
        """
        # What an earlier run of the passage holds is brought by that run.
        skipped = np.zeros(len(self.position), np.int64)
        skipped[1:] = np.maximum(length - np.diff(self.position), 0)
        skipped[~self.continued()] = 0
        token = begin[self.truth] + self.position + skipped
        place = (documents.best_rank(self.document) << _RANK_SHIFT) + self.other + skipped
        for part in slices(sizes := length - skipped, _BLOCK):
            row = ranges(token[part], sizes[part]), ranges(place[part], sizes[part])
            np.minimum.at(first_place, *row)


@dataclass(frozen=True, eq=False)
class _WantedRuns:
    """All runs of one length in some ground-truth texts, each with a number.

    A run is looked up by a hash of its tokens, and then compared token by token, so what is found
    is exact.

    A number and the two letters behind it are one amount: a run that begins with these letters is
    the run and the number (:func:`_amounts`), found only behind the same number.

    Attributes:
        length: Tokens in a run.
        tokens: The texts, one after the other, as :func:`_separated` has them.
        amount: The amount that each token continues, 0 if it continues none; shape (tokens,).
        numbers: The tokens that are numbers with which amounts begin, as ``tokens`` has them.
        places: Where in them which run begins.
        hashes: The hash of each run, ascending; shape (runs,).
        first: The place of each run in ``tokens``; shape (runs,).
        seed: That of the hashes; another one, where two runs would share a hash.
    """

    length: int
    tokens: TokenArray
    amount: IntArray
    numbers: IntArray
    places: _Places
    hashes: HashArray
    first: IntArray
    seed: int = 0

    @property
    def n(self) -> int:
        """How many runs there are."""
        return int(self.places.run.max(initial=-1)) + 1

    @classmethod
    def of(cls, tokens: TokenNumbers, texts: IntArray, length: int, seed: int = 0) -> _WantedRuns:
        """Number the runs of some texts, none of them shorter than a run."""
        flat, begin = _separated(tokens.take(texts))
        sizes = tokens.sizes[texts] - length + 1
        start = ranges(begin, sizes)
        amount = _amounts(flat, tokens.amounts + 1)
        mixed = _hashes(flat, length, seed)[start] ^ _mixed(amount[start])
        hashes, first, run = np.unique(mixed, return_index=True, return_inverse=True)
        unit = np.repeat(texts, sizes)
        position = _compact(start - np.repeat(begin, sizes))
        places = _Places(_compact(unit), position, _compact(run.reshape(-1)))
        numbers = tokens.amounts + 1
        runs = cls(length, flat, amount, numbers, places, hashes, start[first], seed)
        alike = runs._alike(flat, start, amount[start], places.run).all()
        return runs if alike else cls.of(tokens, texts, length, seed + 1)

    def marked(self, is_there: BoolArray) -> BoolArray:
        """Return which tokens of all its texts, one after the other, lie in some of the runs."""
        text, position, _ = (column[is_there[self.places.run]] for column in self.places)
        sizes = np.diff(np.flatnonzero(self.tokens == 0), prepend=-1) - 1
        start = (np.cumsum(sizes) - sizes)[text] + position
        # One run more from each start on, one less behind its end.
        n_runs = np.zeros(int(sizes.sum()) + 1, np.int64)
        np.add.at(n_runs, start, 1)
        np.add.at(n_runs, start + self.length, -1)
        return np.asarray(np.cumsum(n_runs)[:-1] > 0)

    def found_in(self, tokens: TokenNumbers, texts: IntArray) -> _Places:
        """Return where the runs begin in other texts."""
        marks = marks_of(self.hashes)
        parts = [_Places(*[np.empty(0, np.int32)] * 3)]
        for part in slices(tokens.sizes[texts], _BLOCK):
            flat, begin = _separated(tokens.take(texts[part]))
            hashes = _hashes(flat, self.length, self.seed)
            amount = _amounts(flat, self.numbers)
            likely, inside = np.flatnonzero(marks[marked_by(hashes, marks)]), amount.nonzero()[0]
            # Inside an amount two runs begin: that of its tokens, and the one that continues it.
            place = np.concatenate([likely, inside])
            amount = np.concatenate([np.zeros_like(likely), amount[inside]])
            fits = place <= len(flat) - self.length
            place, amount = place[fits], amount[fits]
            run = np.searchsorted(self.hashes, hashes[place] ^ _mixed(amount))
            run = np.minimum(run, len(self.hashes) - 1)
            there = self._alike(flat, place, amount, run)
            place, run = place[there], run[there]
            text = np.searchsorted(begin, place, side="right") - 1
            parts.append(_Places(*map(_compact, (texts[part][text], place - begin[text], run))))
        return _Places(*map(np.concatenate, zip(*parts, strict=True)))

    def _alike(
        self, flat: TokenArray, place: IntArray, amount: IntArray, run: IntArray
    ) -> BoolArray:
        """Return whether the tokens from each place on are those of a run, of the same amount."""
        alike: BoolArray = np.equal(amount, self.amount[self.first[run]])
        for step in range(self.length):
            alike &= flat[place + step] == self.tokens[self.first[run] + step]
        return alike


def _separated(tokens: TokenNumbers) -> tuple[TokenArray, IntArray]:
    """Return all tokens as integers from 1, a 0 after each text, and where each text begins."""
    sizes = tokens.sizes
    begin = np.cumsum(sizes + 1) - sizes - 1
    separated = np.zeros(len(tokens.flat) + len(sizes), np.int32)
    separated[ranges(begin, sizes)] = tokens.flat
    separated[ranges(begin, sizes)] += 1
    return separated, begin


def _amounts(tokens: TokenArray, numbers: IntArray) -> IntArray:
    """Return the amount that each token continues, 0 for none; shape (tokens,).

    An amount is a number and the two letters behind it, or those up to the next number or the end
    of the text: of ``3억원을`` the letters ``억`` and ``원``. It goes by what stands before.

    Args:
        tokens: Texts, as :func:`_separated` has them.
        numbers: The tokens that are numbers, likewise from 1; if there are none, nothing is an
            amount.

    >>> _amounts(np.array([8, 3, 5, 6, 7, 0], np.int32), np.array([3])).tolist() == [
    ...     0, 0, 3, 3 + (5 << 32), 0, 0]
    True
    """
    amount = np.zeros(len(tokens), np.int64)
    if not len(numbers):
        return amount
    is_number = np.isin(tokens, numbers)
    is_letter = ~is_number & (tokens > 0)
    first = np.flatnonzero(is_number[:-1] & is_letter[1:]) + 1
    amount[first] = tokens[first - 1]
    second = first[first < len(tokens) - 1] + 1
    second = second[is_letter[second]]
    amount[second] = tokens[second - 2] + (tokens[second - 1].astype(np.int64) << 32)
    return amount


def _mixed(amount: IntArray) -> HashArray:
    """Return what changes the hash of a run into that of one which continues an amount."""
    mixed = amount.astype(np.uint64) * SPREAD
    mixed ^= mixed >> np.uint64(29)
    return mixed * _TURN


def _hashes(tokens: TokenArray, length: int, seed: int) -> HashArray:
    """Return a hash of the ``length`` tokens from each position on; near the end, of fewer."""
    mixed = tokens.astype(np.uint64) + np.uint64(seed)
    width = 1
    while True:
        mixed *= SPREAD
        mixed ^= mixed >> np.uint64(29)
        # Twice the width each time; the last step may overlap, which does no harm to a hash.
        step = min(width, length - width)
        if step <= 0 or step >= len(mixed):
            return mixed
        # Multiplied on one side: the same tokens in another order are another run.
        mixed[:-step] += mixed[step:] * _TURN
        width += step


def _found(numbers: IntArray, among: IntArray) -> IntArray:
    """Return where each number is among others, which are ascending; -1 where it is not."""
    places = np.full(len(numbers), -1)
    if not len(numbers):
        return places
    marks = marks_of(among)
    likely = np.flatnonzero(marks[marked_by(numbers, marks)])
    place = np.searchsorted(among, numbers[likely])
    there = np.append(among, -1)[place] == numbers[likely]
    places[likely[there]] = place[there]
    return places


def marks_of(wanted: NDArray[Any]) -> BoolArray:
    """Return what to look up by :func:`marked_by`: False where a number is none of those wanted.

    Nearly all numbers can be told from the wanted ones in this way, before anything is searched:
    there are at least eight times as many marks as numbers, and 64 times where they are few.
    """
    bits = len(wanted).bit_length()
    bits = min(bits + 6, max(_MARK_BITS, bits + 3), _MOST_MARK_BITS)
    marks = np.zeros(1 << bits, np.bool_)
    marks[marked_by(wanted, marks)] = True
    return marks


def marked_by(numbers: NDArray[Any], marks: BoolArray) -> HashArray:
    """Return the place of each number among the marks: the leading bits of a hash."""
    bits = len(marks).bit_length() - 1
    return (numbers.astype(np.uint64, copy=False) * SPREAD) >> np.uint64(64 - bits)


def slices(sizes: IntArray, most: int, groups: IntArray | None = None) -> Iterator[slice]:
    """Yield consecutive members whose sizes add up to about so much; none parts a group.

    >>> sizes, groups = np.array([2, 2, 2, 2, 9]), np.array([0, 0, 0, 1, 2])
    >>> list(slices(sizes, 4, groups))
    [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    block = np.cumsum(sizes) // most
    if groups is not None:
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        block = np.repeat(block[first], np.diff(first, append=len(groups)))
    cuts = np.flatnonzero(np.diff(block)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(sizes)]):
        if begin < end:
            yield slice(begin, end)


def _compact(numbers: IntArray) -> Any:
    """Return the same numbers in half the room, if they fit."""
    fits = not len(numbers) or int(numbers.max()) <= np.iinfo(np.int32).max
    return numbers.astype(np.int32) if fits else numbers
