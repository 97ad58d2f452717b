"""Where a splitter cut a passage: documents that hold it word for word, laid end to end.

A piece of a passage that is shorter than a run is found nowhere by
:mod:`krag_eval.core.matching.pieces`. Documents laid end to end hold it all the same: the first one
ends with the beginning of the passage, each other one begins where the one before it ended, or
before, as far as the splitter let them overlap, and the last one begins with the end of the
passage. Between them nothing is missing, and nothing else stands there. So a word or a number in
two halves is whole again, and an altered passage is no more whole than it was.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from krag_eval.core.matching.joins import BoolArray, IntArray, ranges
from krag_eval.core.matching.numbering import TokenNumbers
from krag_eval.core.matching.pieces import AtEdges, OnceEach, Runs, Spans, slices

# What parts words, and numbers among letters: no token has it.
_APART = "\0"
# Letters at an edge of a document by which it is looked up.
_KEY = 4
# Documents with the same piece that are looked at: those before and behind have to be others.
_ENOUGH = 3
# Of a passage shorter than this share of a run, no piece says anything.
_LEAST = 0.4
# Tokens at an edge of a document that may be the rest of a word or a number that was cut.
_RESTS = 4
# Letters behind a number that no run has without it.
_BEHIND = 2
# Rows of a comparison at a time.
_MOST_ROWS = 1 << 15
# A rank beyond all others, as runs that are nowhere have it.
_NEVER = int(np.iinfo(np.int64).max) >> 32
_DIGIT = re.compile(r"\d")
_AT_EDGES = re.compile(rf"\A{_APART}?\d[\d{_APART}]*\d|\d[\d{_APART}]*\d{_APART}?\Z")
_BETWEEN = re.compile(rf"(?<=\d){_APART}(?=\d)")
# What may number a line, at the beginning of a document that begins in the middle of one.
_MARK = re.compile(r"\s*\(?(\w{1,2})[.)]\s")


class _Document(NamedTuple):
    """A document, by how it begins and ends.

    Attributes:
        number: Its number.
        rank: Its rank.
        size: Its tokens.
        beginnings, ends: Its first and last letters, in all readings.
        is_whole: Whether it has no other letters than its first ones.
    """

    number: int
    rank: int
    size: int
    beginnings: set[str]
    ends: set[str]
    is_whole: bool


class _Piece(NamedTuple):
    """A piece of a passage at the edge of a document.

    Attributes:
        start, stop: Its letters in the passage.
        rank: The rank of the document.
        is_end: Whether it stands at the end of the document, or else at its beginning.
        document: The number of the document.
    """

    start: int
    stop: int
    rank: int
    is_end: bool
    document: int


class _Candidates(NamedTuple):
    """Pairs of a ground-truth text and a document that may hold a piece of it.

    Attributes:
        truth, document: The texts, within all queries; shape (pairs,).
        is_first: Whether the document may end with the beginning of the text; shape (pairs,).
        is_last: Whether it may begin with its end; shape (pairs,).
    """

    truth: IntArray
    document: IntArray
    is_first: BoolArray
    is_last: BoolArray

    def take(self, rows: BoolArray) -> _Candidates:
        """Return some of them."""
        sides = self.is_first[rows], self.is_last[rows]
        return _Candidates(self.truth[rows], self.document[rows], *sides)


def _spelled(tokens: Sequence[str], *, by_letters: bool) -> str:
    r"""Return a text as one string, with marks around whatever must be whole.

    >>> _spelled(["two", "days"], by_letters=False)
    '\x00two\x00days\x00'
    >>> _spelled(["약", "20", "20", "일"], by_letters=True)
    '약\x0020\x00일'
    """
    if not by_letters:
        return f"{_APART}{_APART.join(tokens)}{_APART}" if tokens else ""
    if not _DIGIT.search(letters := "".join(tokens)):
        return letters
    parts = list[str]()
    for token, copies in groupby(tokens):
        # Among letters, each digit of a number stands for all of it.
        n = len([*copies]) // (len(token) if token.isdecimal() else 1) or 1
        parts += [f"{_APART}{token}{_APART}" if token.isdecimal() else token] * n
    return "".join(parts).replace(_APART * 2, _APART)


def _readings(letters: str) -> set[str]:
    """Return a text, and the same with one number at each edge where several stand in a row.

    Commas part digits unless they group them, of which an edge may not have enough.
    """
    edges = letters.strip(_APART)
    if not (edges[:1].isdecimal() or edges[-1:].isdecimal()):
        return {letters}
    return {letters, _AT_EDGES.sub(lambda digits: _BETWEEN.sub("", digits[0]), letters)}


def _pieces(passage: str, documents: Iterable[_Document]) -> list[_Piece]:
    """Return the pieces of a passage that documents have at their edges, by where they end."""
    pieces, turned, n = set[_Piece](), passage[::-1], len(passage)
    for number, rank, _, beginnings, ends, is_whole in documents:
        if stop := max(_longest(passage, end) for end in ends):
            pieces.add(_Piece(0, stop, rank, True, number))
        if size := max(_longest(turned, beginning[::-1]) for beginning in beginnings):
            pieces.add(_Piece(n - size, n, rank, False, number))
        for letters in beginnings if is_whole else ():
            places = _inside(passage, letters.removesuffix(_APART))
            pieces.update(_Piece(*place, rank, False, number) for place in places)
    same = groupby(sorted(pieces), lambda piece: (piece.start, piece.stop, piece.is_end))
    few = (piece for _, several in same for piece in [*several][:_ENOUGH])
    return sorted(few, key=lambda piece: (piece.stop, piece.start))


def _longest(passage: str, end: str) -> int:
    r"""Return how many letters of a passage, but not all, are the last ones of a document.

    >>> _longest("\0one\0two\0", "zero\0one\0tw"), _longest("\0one\0", "\0one")
    (7, 0)
    """
    first, last = 1 + passage.startswith(_APART), len(passage) - passage.endswith(_APART) - 1
    key, stop = end[-_KEY:], last + 1
    while (at := passage.rfind(key, 0, stop - 1)) >= 0:
        stop = at + len(key)
        if end.endswith(passage[:stop]):
            return stop
    few = range(min(_KEY - 1, last), first - 1, -1)
    return next((stop for stop in few if end.endswith(passage[:stop])), 0)


def _inside(passage: str, letters: str) -> Iterator[tuple[int, int]]:
    """Yield where a document stands within a passage as a whole."""
    first, stop = 1 + passage.startswith(_APART), len(passage) - passage.endswith(_APART)
    at = passage.find(letters, first, stop - 1)
    while at >= 0:
        yield at, at + len(letters)
        at = passage.find(letters, at + 1, stop - 1)


def _continues(passage: str, piece: _Piece, other: _Piece) -> bool:
    """Return whether another document goes on where one ends, or from before that on."""
    end = piece.stop + passage.startswith(_APART, piece.stop)
    is_behind = piece.start < other.start <= end and piece.stop < other.stop
    return is_behind and piece.document != other.document


def _in_chains(passage: str, pieces: list[_Piece]) -> dict[_Piece, int]:
    """Return the pieces of which documents make up a passage, and from which rank on.

    Args:
        passage: The passage.
        pieces: What documents have of it, in order of their ends.
    """
    stops = [piece.stop for piece in pieces]
    links = [(at, to) for to, other in enumerate(pieces)
             for at in range(bisect_left(stops, other.start - 1), to)
             if _continues(passage, pieces[at], other)]  # fmt: skip
    begun = [_NEVER if piece.start else piece.rank for piece in pieces]
    ended = [_NEVER if piece.stop < len(passage) else piece.rank for piece in pieces]
    for at, to in links:  # all chains that end with the first of both are known by now
        begun[to] = min(begun[to], max(begun[at], pieces[to].rank))
    for at, to in sorted(links, reverse=True):
        ended[at] = min(ended[at], max(ended[to], pieces[at].rank))
    since = zip(pieces, map(max, begun, ended), strict=True)
    return {piece: rank for piece, rank in since if rank < _NEVER}


@dataclass(frozen=True, eq=False)
class Seams:
    """Looks for documents that hold passages together, laid end to end.

    Attributes:
        tokens: The tokens of all texts.
        names: The word that each token stands for.
        texts: The texts.
        by_letters: Whether a text is read by letters; shape (texts,).
        min_run: Tokens in a run, of each text.
        is_ranked: Whether it matters by which rank a passage is complete.
    """

    tokens: TokenNumbers
    names: Sequence[str]
    texts: Sequence[str]
    by_letters: BoolArray
    min_run: IntArray
    is_ranked: bool = True

    def held(
        self, truths: OnceEach, documents: OnceEach, ranks: IntArray, runs: Runs
    ) -> tuple[AtEdges, dict[int, set[int]]]:
        """Return what documents of a query hold together where passages were cut.

        Args:
            truths: The ground-truth texts, each once per query.
            documents: The documents, likewise.
            ranks: The rank at which runs alone hold each token of each ground-truth text.
            runs: The runs that they share.

        Returns:
            The tokens of ground truth that they hold before runs do, and which documents hold a
            ground-truth text whole, laid end to end.
        """
        sizes = self.tokens.sizes[truths.unit()]
        begin = np.cumsum(sizes) - sizes
        rows: list[tuple[int, ...]] = []
        whole: dict[int, set[int]] = {}
        for truth, members in self._likely(truths, documents, runs):
            text = int(truths.unit(np.array([truth]))[0])
            several = self._documents(documents, members, int(sizes[truth]))
            passage, since = self._laid_end_to_end(text, several)
            if since:
                whole[truth] = {piece.document for piece in since}
                by_runs = ranks[begin[truth] : begin[truth] + sizes[truth]].tolist()
                n_tokens = {document.number: document.size for document in several}
                brought = self._brought(passage, since, by_runs, n_tokens, text)
                rows += ((truth, *row) for row in brought)
        return AtEdges.of(rows), whole

    def _likely(
        self, truths: OnceEach, documents: OnceEach, runs: Runs
    ) -> Iterator[tuple[int, IntArray]]:
        """Yield the ground-truth texts that documents may hold, end to end, and which of these.

        Tells nearly all others, before any text is spelled: some document ends as the text begins,
        or a run of the text stands at its end, and another one begins likewise.

        Args:
            truths: The ground-truth texts.
            documents: The documents.
            runs: The runs that they share.
        """
        n, n_documents = self.tokens.sizes[truths.unit()], max(len(documents.key), 1)
        # A document that holds all is as good as any that begin or end behind it.
        last_rank = np.full(len(n), _NEVER)
        rank = documents.best_rank(runs.full[1]) if self.is_ranked else np.zeros(1, np.int64)
        np.minimum.at(last_rank, runs.full[0], rank)
        is_asked = (n > 1) & (n >= _LEAST * self.min_run[truths.unit()]) & (last_rank > 2)
        asked = np.flatnonzero(is_asked)
        parts = [self._by_runs(truths, documents, runs.spans)]
        parts += self._by_tokens(truths, documents, asked)
        columns = map(np.concatenate, zip(*parts, strict=True))
        truth, document, is_first, is_last = columns
        is_before = documents.best_rank(document) < last_rank[truth]
        both = np.zeros((2, len(n)), np.bool_)
        both[0, truth[is_first & is_before]] = both[1, truth[is_last & is_before]] = True
        chosen = is_before & (is_asked & both.all(axis=0))[truth]
        key = np.unique(truth[chosen] * n_documents + document[chosen])
        truth, document = np.divmod(key, n_documents)
        starts = np.flatnonzero(np.diff(truth, prepend=-1))
        for member, several in zip(
            truth[starts].tolist(), np.split(document, starts[1:]), strict=False
        ):
            if len(several) > 1:
                yield member, several

    def _by_runs(self, truths: OnceEach, documents: OnceEach, spans: Spans) -> _Candidates:
        """Return which documents have a run of a text at an edge."""
        text, run = documents.unit(spans.document), self.min_run[truths.unit(spans.truth)]
        size = self.tokens.sizes[text]
        is_first = spans.stop >= size - self._rest(text, run, from_end=True)
        is_last = spans.start <= self._rest(text, run, from_end=False)
        pairs = _Candidates(spans.truth, spans.document, is_first, is_last)
        return pairs.take(is_first | is_last)

    def _by_tokens(
        self, truths: OnceEach, documents: OnceEach, asked: IntArray
    ) -> Iterator[_Candidates]:
        """Yield which documents have less at an edge, or are so short that they have no run."""
        query = truths.query(asked)
        n_each = np.diff(documents.of_query)[query]
        for part in slices(n_each, _MOST_ROWS):
            truth = np.repeat(asked[part], n_each[part])
            document = ranges(documents.of_query[query[part]], n_each[part])
            ours, theirs = truths.unit(truth), documents.unit(document)
            first, last = (
                self._meet(ours, theirs, from_end=from_end)
                | self._halve(ours, theirs, from_end=from_end)
                for from_end in (True, False)
            )
            is_tiny = self.tokens.sizes[theirs] < self.min_run[ours] + 2 * _RESTS
            yield _Candidates(truth, document, first, last).take(first | last | is_tiny)

    def _rest(self, texts: IntArray, run: IntArray, *, from_end: bool) -> IntArray:
        """Return how many tokens at an edge of each text may be half a word or number."""
        is_number = np.isin(self._token(texts, 0, from_end=from_end), self.tokens.amounts)
        rest = np.where(is_number, run, _BEHIND)
        return np.where(self.by_letters[texts], rest, _RESTS - 1)

    def _meet(self, ours: IntArray, theirs: IntArray, *, from_end: bool) -> BoolArray:
        """Return which documents may end as a text begins, or begin as it ends, with no run of it.

        Args:
            ours: The text of each pair.
            theirs: The document of each pair.
            from_end: Whether the ends of documents are looked at.
        """
        step, flat = -1 if from_end else 1, self.tokens.flat
        edge = self._stops[theirs] - np.where(from_end, 1, self.tokens.sizes[theirs])
        outer = self._token(ours, 0, from_end=not from_end)
        most = int(self.min_run[ours].max(initial=0)) + _BEHIND
        numbers = np.flatnonzero(np.isin(flat.take(edge, mode="clip"), self.tokens.amounts))
        found, every = np.zeros(len(ours), np.bool_), np.arange(len(ours))
        found[numbers] = np.isin(outer[numbers], self.tokens.amounts)
        # Behind a part of a number, what is no run may be longer.
        for at in range(2 * most):
            rows = every if at < most else numbers
            hits = rows[flat.take(edge[rows] + step * at, mode="clip") == outer[rows]]
            found[hits] |= self._fits(ours[hits], theirs[hits], at, from_end=from_end)
        return found

    def _fits(self, ours: IntArray, theirs: IntArray, at: int, *, from_end: bool) -> BoolArray:
        """Return where what is before a token at an edge of a document may be of the text, too.

        All but the rest of a word or number, of which the outermost token is looked at.
        """
        edge, inner = (self._token(theirs, one, from_end=from_end) for one in (0, 1))
        same, before = (self._token(ours, one, from_end=not from_end)
                        for one in (at, max(at - 1, 0)))  # fmt: skip
        is_number = np.array([self.names[token].isdecimal() for token in edge.tolist()], np.bool_)
        fits = (edge == same) | is_number | (~self.by_letters[ours] & (inner == before))
        is_there = np.minimum(self.tokens.sizes[ours], self.tokens.sizes[theirs]) > at
        return np.asarray(is_there & fits)

    def _halve(self, ours: IntArray, theirs: IntArray, *, from_end: bool) -> BoolArray:
        """Return which documents may have the outer half of a text's outermost word.

        Only where another one goes on with the text behind the other half.
        """
        behind, second = (self._token(theirs, at, from_end=not from_end) for at in (1, 2))
        inner, third = (self._token(ours, at, from_end=not from_end) for at in (1, 2))
        fits = (second == third) | (self.tokens.sizes[theirs] <= 3)
        goes_on = ~self.by_letters[ours] & (behind == inner) & fits
        rows = np.flatnonzero(np.isin(ours, ours[goes_on]))
        words = self._token(ours[rows], 0, from_end=not from_end)
        halves = self._token(theirs[rows], 0, from_end=from_end)
        has_half, begins = (
            np.zeros(len(ours), np.bool_),
            str.startswith if from_end else str.endswith,
        )
        for row, word, half in zip(rows.tolist(), words.tolist(), halves.tolist(), strict=True):
            name = self.names[half]
            has_half[row] = name.isdecimal() or begins(self.names[word], name)
        return has_half

    def _token(self, texts: IntArray, at: int, *, from_end: bool) -> IntArray:
        """Return a token of each text, counted from one of its ends; -1 if there is none."""
        is_there = self.tokens.sizes[texts] > at
        place = self._stops[texts] + (-1 - at if from_end else at - self.tokens.sizes[texts])
        return np.where(is_there, self.tokens.flat.take(place, mode="clip"), -1)

    @cached_property
    def _stops(self) -> IntArray:
        return np.cumsum(self.tokens.sizes)

    def _own(self, text: int, n: int) -> list[str]:
        """Return the first tokens of a text, or the last ones if below 0."""
        stop = int(self._stops[text])
        start = stop - int(self.tokens.sizes[text])
        part = slice(start, min(start + n, stop)) if n >= 0 else slice(max(start, stop + n), stop)
        return [*map(self.names.__getitem__, self.tokens.flat[part].tolist())]

    def holders(self, texts: Sequence[int], documents: OnceEach) -> list[list[int]]:
        """Return for each text those of the documents of one query that hold it together."""
        most = int(self.tokens.sizes[[*texts]].max(initial=0))
        known = self._documents(documents, np.arange(len(documents.key)), most)
        found = [{piece.document for piece in self._laid_end_to_end(text, known)[1]}
                 for text in texts]  # fmt: skip
        return [documents.unit(np.array([*some], np.int64)).tolist() for some in found]

    def _laid_end_to_end(
        self, text: int, documents: list[_Document]
    ) -> tuple[str, dict[_Piece, int]]:
        """Return a passage, and the pieces of which documents make it up, with their ranks."""
        size, run = int(self.tokens.sizes[text]), int(self.min_run[text])
        passage = _spelled(self._own(text, size), by_letters=bool(self.by_letters[text]))
        # Of a passage shorter than a run, what is shorter still is no evidence.
        large = [one for one in documents if one.size >= size] if size < run else documents
        return passage, _in_chains(passage, _pieces(passage, large))

    def _brought(
        self,
        passage: str,
        since: dict[_Piece, int],
        by_runs: list[int],
        sizes: dict[int, int],
        text: int,
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield token, rank, own rank and place of the tokens that runs do not hold before."""
        rank, is_letter = min(since.values()), bool(self.by_letters[text])
        pieces = sorted(piece for piece, known in since.items() if known == rank)
        marks = [at for at, letter in enumerate(passage) if (letter == _APART) != is_letter]
        for token, at in enumerate(marks if is_letter else (mark + 1 for mark in marks[:-1])):
            if by_runs[token] > rank if self.is_ranked else by_runs[token] == _NEVER:
                piece = next(one for one in pieces if one.start <= at < one.stop)
                size = sizes[piece.document]
                yield token, rank, piece.rank, _place(piece, at, passage, size, is_letter)

    def _documents(self, documents: OnceEach, members: IntArray, most: int) -> list[_Document]:
        """Return how some documents of a query begin and end, in so many tokens."""
        ranks, texts = documents.best_rank(members).tolist(), documents.unit(members).tolist()
        known = zip(members.tolist(), ranks, texts, strict=True)
        return [_Document(number, rank, int(self.tokens.sizes[text]), *self._edges(text, most))
                for number, rank, text in known if self.tokens.sizes[text]]  # fmt: skip

    def _edges(self, text: int, most: int) -> tuple[set[str], set[str], bool]:
        """Return how a text begins and ends, and whether that is all of it."""
        letters, is_whole = bool(self.by_letters[text]), bool(self.tokens.sizes[text] <= most)
        own = self._own(text, most)
        end = _spelled(own if is_whole else self._own(text, -most), by_letters=letters)
        beginnings = _readings(_spelled(own, by_letters=letters).removeprefix(_APART))
        mark = _MARK.match(self.texts[text])
        if mark and mark[1].lower() != own[0]:  # it goes on with a sentence
            marked = _spelled([mark[1].lower(), *own], by_letters=letters)
            beginnings.add(marked.removeprefix(_APART))
        return beginnings, _readings(end.removesuffix(_APART)), is_whole


def _place(piece: _Piece, at: int, passage: str, size: int, is_letter: bool) -> int:
    """Return the token of a document with a piece where a letter of the passage stands.

    Args:
        piece: The piece.
        at: The letter.
        passage: The passage.
        size: Tokens of the document.
        is_letter: Whether tokens are letters.
    """
    part = passage[at : piece.stop] if piece.is_end else passage[piece.start : at]
    marks = part.count(_APART)
    tokens = len(part) - marks if is_letter else marks + piece.is_end
    return min(max(size - tokens if piece.is_end else tokens, 0), size - 1)
