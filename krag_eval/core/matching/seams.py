"""Where a splitter cut a passage: documents that continue one another where it was cut.

A piece of a passage that is shorter than a run is found nowhere by
:mod:`krag_eval.core.matching.pieces`. Documents laid end to end hold it all the same: one ends
inside the passage, the next begins where that one ended, or before, as far as the splitter let
them overlap, and so on. At either end of such a chain stands a run, or the passage itself begins or
ends there; a document in the middle is a part of the passage as a whole. So a word or a number in
two halves is whole again, and no altered passage is made whole by what ends or begins elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from heapq import nsmallest
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.matching.joins import BoolArray, IntArray, ranges
from krag_eval.core.matching.numbering import TokenNumbers
from krag_eval.core.matching.pieces import (
    SPREAD,
    AtEdges,
    HashArray,
    OnceEach,
    marked_by,
    marks_of,
    slices,
)
from krag_eval.core.matching.tokenizers import letter_tokens, word_tokens

#: How a document begins or ends, in letters, its rank and number, and how many tokens it has.
_Edge: TypeAlias = tuple[str, int, int, int]

# What parts words, and numbers among letters: no token has it. And what sorts behind all letters.
_APART, _LAST = "\0", "\U0010ffff"
# Letters that tell nearly all places of a passage from those where a document begins.
_FIRST = 3
# Documents with the same edge that are looked at: those before and behind have to be others.
_ENOUGH = 3
# Tokens of an amount behind which runs begin again: a part of a number, and two letters.
_CUT_AMOUNT = 8
# Tokens of passages at a time.
_BLOCK = 1 << 14
# Of a passage shorter than this share of a run, no piece says anything.
_LEAST = 0.4
# Characters of text in which a token is found, markup and all.
_PER_TOKEN = 16
_GROUPED = {False: re.compile(r"\A[\d,]+"), True: re.compile(r"[\d,]+\Z")}
_DIGIT = re.compile(r"\d")


class _Spelled(NamedTuple):
    """A text as one string, with marks around whatever must be whole.

    Attributes:
        letters: The string.
        starts, stops: Where each word, letter, or number among letters begins and ends in it.
        counts: Tokens before each of them, and at last of all.
        by_letters: Whether its tokens are letters.
    """

    letters: str
    starts: list[int]
    stops: list[int]
    counts: list[int]
    by_letters: bool

    @classmethod
    def of(cls, tokens: Sequence[str], *, by_letters: bool) -> _Spelled:
        """Spell a text, given its tokens.

        >>> _Spelled.of(["two", "days"], by_letters=False).letters.split(_APART)
        ['', 'two', 'days', '']
        >>> _Spelled.of(["약", "20", "20", "일", "간"], by_letters=True).letters.split(_APART)
        ['약', '20', '일간']
        """
        parts, starts, stops, counts = list[str](), list[int](), list[int](), [0]
        at = token = 0
        while token < len(tokens):
            word = tokens[token]
            is_apart = not by_letters or word.isdecimal()
            if is_apart and parts[-1:] != [_APART]:
                parts.append(_APART)
                at += 1
            starts.append(at)
            at += len(word)
            stops.append(at)
            parts += (word, _APART) if is_apart else (word,)
            at += is_apart
            token += _copies(word) if by_letters else 1
            counts.append(token)
        return cls("".join(parts), starts, stops, counts, by_letters)

    def is_apart(self, at: int) -> bool:
        """Return whether a letter is one of a word or number that must be whole."""
        return not self.by_letters or self.letters[at].isdecimal()

    def is_amount(self, start: int) -> bool:
        """Return whether a letter is one of an amount."""
        at = bisect_right(self.starts, start) - 1
        return self.by_letters and any(
            self.letters[one].isdecimal() for one in self.starts[max(at - 2, 0) : at + 1]
        )

    def amount(self, start: int) -> int:
        """Return where the number stands of which a letter counts something, or the letter itself.

        A number and the two letters behind it are one amount.
        """
        at = bisect_left(self.starts, start)
        if self.by_letters and not self.letters[start].isdecimal():
            for before in self.starts[max(at - 2, 0) : at][::-1]:
                if self.letters[before].isdecimal():
                    return before
        return start


def _letters(tokens: Sequence[str], *, by_letters: bool) -> str:
    """Return the letters of a text alone, as :class:`_Spelled` has them."""
    letters = ("" if by_letters else _APART).join(tokens)
    if not by_letters:
        return f"{_APART}{letters}{_APART}" if tokens else ""
    if not _DIGIT.search(letters):
        return letters
    parts, at = list[str](), 0
    while at < len(tokens):
        word = tokens[at]
        is_number = word.isdecimal()
        parts.append(f"{_APART}{word}{_APART}" if is_number else word)
        at += len(word) if is_number else 1
    return "".join(parts).replace(_APART * 2, _APART)


class _Piece(NamedTuple):
    """A piece of a passage at the edge of a document.

    Attributes:
        start, stop: Its letters in the passage.
        rank: The rank of the document.
        document: Its number.
        is_end: Whether it stands at the end of the document, or else at its beginning.
        is_inside: Whether the document is nothing else.
    """

    start: int
    stop: int
    rank: int
    document: int
    is_end: bool
    is_inside: bool = False

    @property
    def is_last(self) -> bool:
        """Whether a chain ends with it."""
        return not (self.is_end or self.is_inside)


class _Edges:
    """How documents begin, or how they end, spelled from right to left."""

    def __init__(self, edges: Iterable[_Edge]) -> None:
        self._sorted = sorted(edges)
        self._letters = [letters for letters, *_ in self._sorted]
        self._first = {letters[:_FIRST] for letters in self._letters}
        self._is_any = any(len(letters) < _FIRST for letters in self._first)

    def places(self, letters: str, run: int) -> list[int]:
        """Return where in a passage, behind its beginning, some of them may begin."""
        n, first = len(letters), self._first
        if self._is_any or run < _FIRST:
            places = [*range(1, n)]
        else:
            sure = max(n - _FIRST + 1, 1)  # from here on there are fewer letters
            places = [at for at in range(1, sure) if letters[at : at + _FIRST] in first]
            places += range(sure, n)
        return [at for at in places if letters[at] != _APART]

    def having(self, letters: str, least: int) -> list[tuple[int, int]]:
        """Return rank and number of the best-ranked ones that begin with some letters.

        Args:
            letters: The letters.
            least: Tokens that a document has at least.
        """
        start = bisect_left(self._letters, letters)
        if start == len(self._letters) or not self._letters[start].startswith(letters):
            return []
        stop = bisect_left(self._letters, letters + _LAST)
        several = self._sorted[start:stop]
        return nsmallest(_ENOUGH, [(rank, at) for _, rank, at, size in several if size >= least])


class _Documents(NamedTuple):
    """The documents of a query: how they begin and end, short ones by letters, and all sizes."""

    beginnings: _Edges
    ends: _Edges
    short: dict[str, list[_Edge]]
    sizes: dict[int, int]

    def pieces(self, passage: _Spelled, run: int, least: int) -> list[_Piece]:
        """Return the pieces of a passage that may be parts of a chain, in order of their ends.

        Args:
            passage: The passage.
            run: Tokens in a run.
            least: Tokens that a document has at least.
        """
        pieces = [*self._first(passage, run, least), *self._last(passage, run, least)]
        if pieces and self.short:
            pieces += self._inside(passage.letters, run, least)
        return sorted(pieces, key=lambda piece: (piece.stop, piece.start))

    def _first(self, passage: _Spelled, run: int, least: int) -> Iterator[_Piece]:
        """Yield the pieces that end a document, begun by a run or by the passage."""
        letters, starts, stops, counts, _ = passage
        n = len(letters)
        for place in self.ends.places(letters[::-1], run):
            stop = n - place
            # So many whole words before it, or all there are.
            n_tokens = counts[bisect_right(stops, stop)]
            start = passage.amount(starts[max(bisect_right(counts, n_tokens - run) - 1, 0)])
            begin = start - passage.is_apart(start)
            for rank, document in self.ends.having(letters[begin:stop][::-1], least):
                yield _Piece(start, stop, rank, document, is_end=True)

    def _last(self, passage: _Spelled, run: int, least: int) -> Iterator[_Piece]:
        """Yield the pieces that begin a document, ended by a run or by the passage."""
        letters, starts, stops, counts, _ = passage
        for start in self.beginnings.places(letters, run):
            if start <= starts[0]:
                continue
            enough = counts[bisect_left(starts, start)] + run
            # Where an amount was cut, runs of what the document goes on with begin behind it.
            most = enough + _CUT_AMOUNT * passage.is_amount(start)
            for n_tokens in range(most, enough - 1, -1):
                stop = stops[min(bisect_left(counts, n_tokens), len(stops)) - 1]
                end = stop + passage.is_apart(stop - 1)
                for rank, document in self.beginnings.having(letters[start:end], least):
                    yield _Piece(start, stop, rank, document, is_end=False)

    def _inside(self, letters: str, run: int, least: int) -> Iterator[_Piece]:
        """Yield the documents that stand in a passage as a whole."""
        sizes = sorted({*map(len, self.short)})
        for start in self.beginnings.places(letters, run):
            for size in sizes:
                stop = start + size
                for _, rank, document, n_tokens in self.short.get(letters[start:stop], ()):
                    if n_tokens >= least:
                        yield _Piece(start, stop, rank, document, is_end=False, is_inside=True)


_NOTHING = _Documents(_Edges(()), _Edges(()), {}, {})


@dataclass(eq=False)
class Seams:
    """Looks for chains of documents that hold passages together.

    Attributes:
        tokens: The tokens of all texts.
        names: The word that each token stands for.
        texts: The texts.
        by_letters: Whether a text is read by letters; shape (texts,).
        min_run: Tokens in a run, of each text.
        as_written: Whether tokens leave nothing of a text out, so that they spell it.
        is_ranked: Whether it matters by which rank a passage is complete.
    """

    tokens: TokenNumbers
    names: Sequence[str]
    texts: Sequence[str]
    by_letters: BoolArray
    min_run: IntArray
    as_written: bool = True
    is_ranked: bool = True
    _known: dict[int, tuple[str, str, str | None]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # A run and half a word; among letters, a number in two halves may be longer.
        self._n_edge = [int(self.min_run[self.by_letters == one].max(initial=0)) * times + 2
                        for one, times in ((False, 1), (True, 2))]  # fmt: skip
        self.stops = np.cumsum(self.tokens.sizes)
        self._bounds = [0, *self.stops.tolist()]

    def held(self, truths: OnceEach, documents: OnceEach, ranks: IntArray) -> AtEdges:
        """Return what documents of a query hold together where passages were cut.

        Args:
            truths: The ground-truth texts, each once per query.
            documents: The documents, likewise.
            ranks: The rank at which runs alone hold each token of each ground-truth text.
        """
        if not self.is_ranked:
            ranks = np.where(ranks < _NEVER, 0, _NEVER)
        sizes = self.tokens.sizes[truths.unit()]
        begin, some, complete = np.cumsum(sizes) - sizes, sizes > 0, np.zeros(len(sizes), np.int64)
        if some.any():
            complete[some] = np.maximum.reduceat(ranks, begin[some])
        likely = _Likely(self, truths, documents).members(complete)
        rows = list[tuple[int, ...]]()
        query_of, unit = truths.query(likely).tolist(), truths.unit(likely).tolist()
        of_query, known = -1, _NOTHING
        for truth, text, query in zip(likely.tolist(), unit, query_of, strict=True):
            if query != of_query:
                members = np.arange(*documents.of_query[query : query + 2].tolist())
                of_query, known = query, self._documents(documents, members)
            by_runs = ranks[begin[truth] : begin[truth] + sizes[truth]].tolist()
            rows += ((truth, *row) for row in self._of_passage(text, known, by_runs))
        return AtEdges.of(rows)

    def holders(self, texts: Sequence[int], documents: OnceEach) -> list[list[int]]:
        """Return for each text those of the documents of one query that pieces of it stand in."""
        known = self._documents(documents, np.arange(len(documents.key)))
        members = [{piece.document for piece in self._pieces(text, known)[1]} for text in texts]
        return [documents.unit(np.array([*some], np.int64)).tolist() for some in members]

    def _pieces(self, text: int, known: _Documents) -> tuple[_Spelled, list[_Piece]]:
        """Return a passage, and its pieces at edges of documents."""
        own, run = self._own(text), int(self.min_run[text])
        tokens = self._as_written(text, own)
        passage = _Spelled.of(tokens, by_letters=bool(self.by_letters[text]))
        # Of a passage shorter than a run, what is shorter still is no evidence.
        least = len(own) if len(own) < run else 1
        return passage, known.pieces(passage, min(run, len(own)), least)

    def laid_end_to_end(
        self, truths: OnceEach, truth: int, documents: OnceEach, members: IntArray
    ) -> set[int]:
        """Return the documents that hold a text word for word, one after the other, without a gap.

        Args:
            truths: The ground-truth texts.
            truth: The one that is looked at.
            documents: The documents.
            members: Those that share runs with it.
        """
        text = int(truths.unit(np.array([truth]))[0])
        query = int(truths.query(np.array([truth]))[0])
        known = self._documents(documents, np.arange(*documents.of_query[query : query + 2]))
        near = {piece.document for piece in self._pieces(text, known)[1]} | {*members.tolist()}
        # Here an edge is all that a document has.
        whole = replace(self, _known={})
        whole._n_edge = [int(self.tokens.sizes.max(initial=0))] * 2
        passage, _ = self._pieces(text, _NOTHING)
        several = whole._documents(documents, np.array(sorted(near), np.int64))
        pieces = several.pieces(passage, passage.counts[-1], 1)
        held = _in_chains(passage.letters, pieces)
        if any(one is None for one, letter in zip(held, passage.letters, strict=True)
               if letter != _APART):  # fmt: skip
            return set()
        return {one[1].document for one in held if one}

    def _documents(self, documents: OnceEach, members: IntArray) -> _Documents:
        """Return how some documents of a query begin and end."""
        ranks, texts = documents.best_rank(members).tolist(), documents.unit(members).tolist()
        beginnings, ends = list[_Edge](), list[_Edge]()
        short = defaultdict[str, list[_Edge]](list)
        for rank, number, text in zip(ranks, members.tolist(), texts, strict=True):
            beginning, end, whole = self._edges(text)
            known = rank, number, self._bounds[text + 1] - self._bounds[text]
            if beginning:
                beginnings.append((beginning, *known))
                ends.append((end, *known))
            if whole:
                short[whole].append((whole, *known))
        sizes = {number: size for _, _, number, size in beginnings}
        return _Documents(_Edges(beginnings), _Edges(ends), short, sizes)

    def _of_passage(
        self, text: int, known: _Documents, by_runs: list[int]
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield token, rank, own rank and place of the tokens that chains hold before runs do."""
        passage, pieces = self._pieces(text, known)
        held = _in_chains(passage.letters, pieces)
        if not any(held):
            return
        soonest = min(one[0] for one in held if one)
        own = self._own(text)
        parts = _parts(self._as_written(text, own), own, passage)
        for token in [at for at, rank in enumerate(by_runs) if rank > soonest]:
            start, stop = part = parts[token]
            by = [one for at, one in enumerate(held[start:stop], start)
                  if passage.letters[at] != _APART]  # fmt: skip
            chained = [one for one in by if one]
            rank = max(one[0] for one in chained) if len(chained) == len(by) else _NEVER
            if rank < by_runs[token]:
                piece = chained[0][1]
                nth = token - parts.index(part)  # of the tokens that stand for a number
                place = _place(piece, start, passage, known.sizes[piece.document]) + nth
                yield token, rank, piece.rank, min(place, known.sizes[piece.document] - 1)

    def _own(self, text: int, first: int = 0, last: int | None = None) -> list[str]:
        """Return the tokens of a text, or some of them, as they are compared."""
        start, stop = self._bounds[text : text + 2]
        own = self.tokens.flat[start:stop][first:last].tolist()
        return [*map(self.names.__getitem__, own)]

    def _as_written(self, text: int, own: list[str]) -> list[str]:
        """Return the tokens of a text as it spells them, given those that are compared."""
        if self.as_written and not _DIGIT.search(_APART.join(own)):
            return own
        return self._tokenizer(text)(self.texts[text])

    def _tokenizer(self, text: int) -> Callable[[str], list[str]]:
        return letter_tokens if self.by_letters[text] else word_tokens

    def _edges(self, text: int) -> tuple[str, str, str | None]:
        """Return how a text begins, how it ends, from right to left, and a short one as a whole."""
        known = self._known.get(text)
        if known is None:
            beginning, end = (
                _letters(self._edge(text, is_end=is_end), by_letters=bool(self.by_letters[text]))
                for is_end in (False, True)
            )
            size = self._bounds[text + 1] - self._bounds[text]
            n_edge = self._n_edge[bool(self.by_letters[text])]
            whole = beginning.strip(_APART) if size <= n_edge else None
            known = beginning.removeprefix(_APART), end.removesuffix(_APART)[::-1], whole
            self._known[text] = known
        return known

    def _edge(self, text: int, *, is_end: bool) -> list[str]:
        """Return the first or last tokens of a text as it spells them."""
        n, written = self._n_edge[bool(self.by_letters[text])], self.texts[text]
        tokenizer = self._tokenizer(text)
        own = self._own(text, -n) if is_end else self._own(text, 0, n)
        if self.as_written and not _DIGIT.search(_APART.join(own)):
            return own
        width = n * _PER_TOKEN
        if len(written) <= width or len(own) < n:
            return tokenizer(_ungrouped(written, is_end=is_end))
        part = written[-width:] if is_end else written[:width]
        tokens = tokenizer(_ungrouped(part, is_end=is_end))
        # What was cut off here begins no word; so much markup that little is left is rare.
        cut = _copies(tokens[0 if is_end else -1]) if tokens and self.by_letters[text] else 1
        return tokens[cut:] if is_end else tokens[:-cut]


def _ungrouped(text: str, *, is_end: bool) -> str:
    """Return a text with no commas in a number at its edge, of which the rest may be elsewhere.

    >>> _ungrouped("about 1,234,5", is_end=True), _ungrouped("67 and 1,0", is_end=False)
    ('about 12345', '67 and 1,0')
    """
    return _GROUPED[is_end].sub(lambda found: found[0].replace(",", ""), text, count=1)


# A rank beyond all others, as runs that are nowhere have it.
_NEVER = int(np.iinfo(np.int64).max) >> 32


# Sizes from which passages are told by more tokens at edges of documents, up to those of a run.
_SIZES = (2, 4, 8, 16)
# Tokens that tell an edge, of words and of letters; and one where a number stands.
_MANY, _FEW = {False: 4, True: 8}, {False: 3, True: 4}
# Tokens at an edge that may be half a word; where there is a number, those that may be the rest of
# it, and those around it that are spelled otherwise for want of that.
_HALF, _OF_A_NUMBER = {False: 1, True: 0}, {False: 2, True: 8}


class _EdgeGrams(NamedTuple):
    """Tokens that follow one another near edges of documents, sorted by their hash.

    Attributes:
        keys: Their hash, with the query.
        shift: What the place of the first one in a passage lacks to that of the document's edge.
        rest: 1 where there is a token between them and the edge, which may be half a word, or 0.
        is_end: Whether that is the end of the document.
    """

    keys: HashArray
    shift: IntArray
    rest: IntArray
    is_end: BoolArray

    @classmethod
    def joined(cls, parts: Sequence[tuple[HashArray, int, int, bool]]) -> _EdgeGrams:
        """Join those of each distance from each edge."""
        keys = np.concatenate([part[0] for part in parts])
        order, n_each = np.argsort(keys), [len(part[0]) for part in parts]
        columns = (np.repeat([part[at] for part in parts], n_each)[order] for at in (1, 2, 3))
        return cls(keys[order], *columns)

    def among(self, keys: HashArray) -> tuple[IntArray, IntArray]:
        """Return every key with every one of these that equals it, by place."""
        marks = marks_of(self.keys)
        likely = np.flatnonzero(marks[marked_by(keys, marks)])
        first = np.searchsorted(self.keys, keys[likely])
        n_each = np.searchsorted(self.keys, keys[likely], side="right") - first
        return np.repeat(likely, n_each), ranges(first, n_each)


class _Likely(NamedTuple):
    """Tells, before any text is spelled, which passages chains may hold.

    Attributes:
        seams: What looks for chains.
        truths: The ground-truth texts.
        documents: The documents.
    """

    seams: Seams
    truths: OnceEach
    documents: OnceEach

    def members(self, complete: IntArray) -> IntArray:
        """Return those passages, ascending, given the rank at which runs complete them."""
        seams, unit = self.seams, self.truths.unit()
        sizes, by_letters, run = (
            one[unit] for one in (seams.tokens.sizes, seams.by_letters, seams.min_run)
        )
        asked = (complete > 1) & (sizes > 1) & (sizes >= _LEAST * run)
        found = [np.empty(0, np.int64)]
        # Passages of about the same size together: the longer one of two pieces is half of them.
        half = np.where(by_letters, _HALF[True], _HALF[False])
        least = np.array(_SIZES)[np.maximum(np.searchsorted(_SIZES, sizes, side="right") - 1, 0)]
        least = np.where(sizes >= 2 * (run + half), 2 * (run + half), least)
        kinds = np.stack([by_letters, run, least])
        for kind in np.unique(kinds[:, asked], axis=1).T.tolist():
            members = np.flatnonzero(asked & (kinds == np.array(kind)[:, None]).all(axis=0))
            letters = bool(kind[0])
            n = max(min(kind[1], kind[2] // 2 - _HALF[letters], _MANY[letters]), 1)
            found.append(members[self._meeting(members, n, by_letters=letters)])
        return np.sort(np.concatenate(found))

    def _meeting(self, members: IntArray, n: int, *, by_letters: bool) -> BoolArray:
        """Return in which passages a document begins where another one ends, or before.

        Where a piece is so short that it is not seen, the other one is enough.

        Args:
            members: The passages.
            n: Tokens that follow one another in a piece, and in the passage.
            by_letters: Whether they are letters.
        """
        sizes, query = self.seams.tokens.sizes, self.truths.query(members)
        own, own_query = self._documents_of(query)
        size, few = sizes[self.truths.unit(members)], min(n, _FEW[by_letters])
        unseen = max(n - 1 + _HALF[by_letters], few - 1 + _OF_A_NUMBER[by_letters])
        edges = self._edge_grams(own, own_query, n, few, by_letters=by_letters)
        # Where the first document begins, and where the last one ends.
        begins, ends = size + unseen + 2, np.full(len(size), -unseen - 2)
        parts = [(at, n_tokens) for at in slices(size, _BLOCK) for n_tokens in {n, few}]
        for part, n_tokens in parts:
            row, position, keys = self._grams(members[part], n_tokens)
            ours, theirs = edges.among(keys)
            row, place = row[ours] + part.start, position[ours] + edges.shift[theirs]
            # Half a word may be all that a document has of the first one, or of the last.
            inside = (place > -edges.rest[theirs]) & (place < size[row] + edges.rest[theirs])
            is_end = edges.is_end[theirs]
            np.minimum.at(begins, row[inside & ~is_end], place[inside & ~is_end])
            np.maximum.at(ends, row[inside & is_end], place[inside & is_end])
        is_tiny = np.isin(query, own_query[sizes[own] <= unseen])
        is_near = (begins <= unseen) | (ends >= size - unseen)
        is_seen = (begins <= size) | (ends >= 0)
        return np.asarray(is_seen & (is_tiny | is_near | (begins <= ends + 1)))

    def _documents_of(self, query: IntArray) -> tuple[IntArray, IntArray]:
        """Return the documents of some queries that have words, and the query of each."""
        queries = np.unique(query)
        first, last = self.documents.of_query[queries], self.documents.of_query[queries + 1]
        shown = ranges(first, last - first)
        shown = shown[self.seams.tokens.sizes[self.documents.unit(shown)] > 0]
        return self.documents.unit(shown), self.documents.query(shown)

    def _edge_grams(
        self, own: IntArray, query: IntArray, n: int, few: int, *, by_letters: bool
    ) -> _EdgeGrams:
        """Return what documents have at their edges: so many tokens, fewer where a number is."""
        sizes, stops = self.seams.tokens.sizes[own], self.seams.stops[own]
        parts = list[tuple[HashArray, int, int, bool]]()
        for is_end in (False, True):
            edge = stops - 1 if is_end else stops - sizes
            is_number = self._is_number(edge)
            ways = [(n, step, ~is_number) for step in range(_HALF[by_letters] + 1)]
            ways += [(few, step, is_number) for step in range(_OF_A_NUMBER[by_letters] + 1)]
            for n_tokens, step, chosen in ways:
                there = np.flatnonzero(chosen & (sizes >= step + n_tokens))
                at = edge[there] + (1 - step - n_tokens if is_end else step)
                keys = _keys(self.seams.tokens.flat, at, query[there], n_tokens)
                shift = n_tokens + step if is_end else -step
                parts.append((keys, shift, int(step > 0), is_end))
        return _EdgeGrams.joined(parts)

    def _grams(self, members: IntArray, n: int) -> tuple[IntArray, IntArray, HashArray]:
        """Return row, position and hash of tokens of some passages that follow one another."""
        unit, sizes = self.truths.unit(members), self.seams.tokens.sizes
        n_grams = np.maximum(sizes[unit] - n + 1, 0)
        row = np.repeat(np.arange(len(unit)), n_grams)
        position = ranges(np.zeros_like(unit), n_grams)
        at = (self.seams.stops - sizes)[unit][row] + position
        return row, position, _keys(self.seams.tokens.flat, at, self.truths.query(members)[row], n)

    def _is_number(self, at: IntArray) -> BoolArray:
        """Return at which places there is a number, or a word with digits."""
        distinct, place = np.unique(self.seams.tokens.flat[at], return_inverse=True)
        names = map(self.seams.names.__getitem__, distinct.tolist())
        digits = np.array([_DIGIT.search(name) is not None for name in names], np.bool_)
        return np.asarray(digits[place.reshape(-1)])


def _keys(flat: NDArray[Any], at: IntArray, query: IntArray, n: int) -> HashArray:
    """Return a hash of a query and the tokens from each place on."""
    key = query.astype(np.uint64)
    for step in range(n):
        key = key * SPREAD + flat[at + step].astype(np.uint64) + np.uint64(1)
    return key


def _in_chains(letters: str, pieces: list[_Piece]) -> list[tuple[int, _Piece] | None]:
    """Return for each letter of a passage from which rank a chain holds it, and in which piece.

    Args:
        letters: The passage.
        pieces: What documents have of it, in order of their ends.
    """
    begun = [piece.rank if piece.is_end else _NEVER for piece in pieces]
    ended = [piece.rank if piece.is_last else _NEVER for piece in pieces]
    pairs = [(at, to) for to, other in enumerate(pieces) if not other.is_end
             for at, one in enumerate(pieces[:to])
             if not one.is_last and _continues(letters, one, other)]  # fmt: skip
    for at, to in pairs:  # all chains that end with the first of both are known by now
        begun[to] = min(begun[to], max(begun[at], pieces[to].rank))
    for at, to in sorted(pairs, reverse=True):
        ended[at] = min(ended[at], max(ended[to], pieces[at].rank))
    held: list[tuple[int, _Piece] | None] = [None] * len(letters)
    for rank, piece in sorted(zip(map(max, begun, ended), pieces, strict=True), reverse=True):
        if rank < _NEVER:
            held[piece.start : piece.stop] = [(rank, piece)] * (piece.stop - piece.start)
    return held


def _continues(letters: str, one: _Piece, other: _Piece) -> bool:
    """Return whether another document goes on where one ends, or from before that on."""
    end = one.stop + (letters[one.stop : one.stop + 1] == _APART)
    is_behind = one.start < other.start <= end and one.stop < other.stop
    return is_behind and one.document != other.document


def _place(piece: _Piece, at: int, passage: _Spelled, size: int) -> int:
    """Return the token of a document with a piece where a letter of the passage stands.

    Args:
        piece: The piece.
        at: The letter.
        passage: The passage.
        size: Tokens of the document.
    """
    first, last = (at, piece.stop) if piece.is_end else (piece.start, at)
    if passage.by_letters:
        tokens = last - first - passage.letters.count(_APART, first, last)
    else:
        tokens = passage.letters.count(_APART, first, last) + piece.is_end
    return min(max(size - tokens if piece.is_end else tokens, 0), size - 1)


def _parts(tokens: list[str], own: list[str], passage: _Spelled) -> list[tuple[int, int]]:
    """Return where each token of a passage stands in its letters, which may spell it otherwise.

    Args:
        tokens: The tokens as they are spelled.
        own: The tokens.
        passage: The spelling.
    """
    n_tokens = _copies if passage.by_letters else _once
    of_tokens = [part for part in zip(passage.starts, passage.stops, strict=True)
                 for _ in range(n_tokens(passage.letters[slice(*part)]))]  # fmt: skip
    both = [*zip(tokens, own, strict=False)]
    first = next((at for at, (one, other) in enumerate(both) if one != other), len(both))
    both = [*zip(tokens[first:][::-1], own[first:][::-1], strict=False)]
    last = next((at for at, (one, other) in enumerate(both) if one != other), len(both))
    between = of_tokens[first : len(tokens) - last], own[first : len(own) - last]
    return of_tokens[:first] + _aligned(*between, passage) + of_tokens[len(tokens) - last :]


def _aligned(
    spelled: list[tuple[int, int]], own: list[str], passage: _Spelled
) -> list[tuple[int, int]]:
    """Return where some tokens stand, given the places of those as which they are spelled."""
    if not (spelled and own):  # what is spelled for nothing stands beside what is
        return [spelled[0] if spelled else (0, 1)] * len(own)
    n_tokens = _copies if passage.by_letters else _once
    written = [at for part in dict.fromkeys(spelled) for at in range(*part)]
    words, at = list[str](), 0
    while at < len(own):
        words.append(own[at])
        at += n_tokens(own[at])
    letters = "".join(passage.letters[at] for at in written), "".join(words)
    bounds, parts = list[tuple[int, int]](), list[tuple[int, int]]()
    for _kind, i, j, m, n in SequenceMatcher(None, *letters, autojunk=False).get_opcodes():
        is_same = j - i == n - m
        bounds += [(i + at, i + at + 1) if is_same else (i, max(j, i + 1)) for at in range(n - m)]
    for word, stop in zip(words, accumulate(map(len, words)), strict=True):
        of_word = bounds[stop - len(word) : stop]
        end = min(of_word[-1][1], len(written)) - 1
        part = written[min(of_word[0][0], end)], written[end] + 1
        parts += [part] * n_tokens(word)
    return parts


def _copies(word: str) -> int:
    """Return how many tokens stand for a letter, or for a number among letters."""
    return len(word) if word.isdecimal() else 1


def _once(_word: str) -> int:
    """Return that one token stands for a word."""
    return 1
