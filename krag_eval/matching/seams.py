"""Where a splitter cut a passage: what stands at the edge of a document, and goes on in another.

A piece of a passage that is shorter than a run is found nowhere by
:mod:`krag_eval.matching.pieces`. At the end of a document it counts all the same if the passage's
next words, as many as a run has or all there are, begin another document at the cut, or up to the
splitter's overlap before it; so does, mirrored, a piece at the beginning of a document. A word or a
number that was cut in two is whole again. A document that is shorter than a run as a whole is
passed: what follows it has to begin yet another one. A piece begins where the passage begins, or
where its document does, so that no altered passage is made whole by what ends elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from krag_eval.matching.joins import BoolArray
from krag_eval.matching.numbering import TokenNumbers

if TYPE_CHECKING:
    from krag_eval.matching.pieces import OnceEach

#: A document: the rank from which it counts, its number, and the number of the one at that rank.
#: This is another one where it is short as a whole, and that one has to continue it.
Holder: TypeAlias = tuple[int, int, int]

# What parts words, and numbers among letters: no token has it. And what sorts behind all letters.
_APART, _LAST = "\0", "\U0010ffff"
# Letters that tell nearly all places of a passage from those where a document begins.
_FIRST = 3
# Likewise of letters and of words, before anything else is looked at.
_FEW, _MORE = 2, 4
# Documents of the same edge that are looked at: another one has to continue it.
_ENOUGH = 2


class Unit(NamedTuple):
    """A word of a text, a letter, or a number among letters, for which several tokens stand.

    Attributes:
        start, stop: Its letters in the text as it is spelled.
        token, n_tokens: Its first token, and how many stand for it.
        apart: Whether it must be whole where nothing was cut, as 1 or 0: letters need not.
    """

    start: int
    stop: int
    token: int
    n_tokens: int
    apart: int


class Spelled(NamedTuple):
    """A text as one string, with marks around whatever must be whole."""

    letters: str
    units: list[Unit]

    @classmethod
    def of(cls, words: Sequence[str], *, by_letters: bool) -> Spelled:
        """Spell a text, given the word that each of its tokens stands for.

        >>> Spelled.of(["two", "days"], by_letters=False).letters.split(_APART)
        ['', 'two', 'days', '']
        >>> Spelled.of(["약", "20", "20", "일", "간"], by_letters=True).letters.split(_APART)
        ['약', '20', '일간']
        """
        parts, units, at, token = list[str](), list[Unit](), 0, 0
        while token < len(words):
            word = words[token]
            apart = not by_letters or word.isdecimal()
            if apart and parts[-1:] != [_APART]:
                parts.append(_APART)
                at += 1
            n_tokens = len(word) if by_letters and apart else 1
            units.append(Unit(at, at + len(word), token, n_tokens, int(apart)))
            parts += (word, _APART) if apart else (word,)
            at, token = at + len(word) + apart, token + n_tokens
        return cls("".join(parts), units)

    def mirrored(self) -> Spelled:
        """Return it from right to left."""
        n = len(self.letters)
        units = [one._replace(start=n - one.stop, stop=n - one.start) for one in self.units]
        return Spelled(self.letters[::-1], units[::-1])


class Edges:
    """How documents begin; or how they end, spelled from right to left.

    Args:
        edges: Each document, how it begins, and whether that is all of it.
    """

    def __init__(self, edges: Sequence[tuple[Holder, str, bool]]) -> None:
        self._edges = edges

    @cached_property
    def _sorted(self) -> list[tuple[str, Holder]]:
        return sorted((letters, holder) for holder, letters, _ in self._edges)

    @cached_property
    def _letters(self) -> list[str]:
        return [letters for letters, _ in self._sorted]

    @cached_property
    def whole(self) -> dict[str, list[Holder]]:
        """The documents that are short as a whole, by their letters."""
        whole = defaultdict[str, list[Holder]](list)
        for holder, letters, is_whole in self._edges:
            if is_whole:
                whole[letters.removesuffix(_APART)].append(holder)
        return whole

    @cached_property
    def sizes(self) -> list[int]:
        """How many letters these have, ascending."""
        return sorted({*map(len, self.whole)})

    @cached_property
    def _first(self) -> set[str]:
        return {letters[:_FIRST] for _, letters, _ in self._edges}

    @cached_property
    def _takes_any(self) -> bool:
        return any(size < _FIRST for size in self.sizes)

    @cached_property
    def _least(self) -> dict[int, set[str]]:
        return {n: {letters[:n] for _, letters, _ in self._edges} for n in (_FEW, _MORE)}

    def any_in(self, letters: str, n: int) -> bool:
        """Return whether a passage has the first so many letters of any document."""
        return any(one in letters for one in self._least[n])

    def may_have(self, letters: str) -> bool:
        """Return whether a document may begin with some letters: with the first of them."""
        return self._takes_any or letters in self._first

    def having(self, letters: str) -> list[Holder]:
        """Return the documents that begin with some letters."""
        start = bisect_left(self._letters, letters)
        if start == len(self._letters) or not self._letters[start].startswith(letters):
            return []
        stop = bisect_left(self._letters, letters + _LAST)
        return [holder for _, holder in self._sorted[start:stop]]


class Held(NamedTuple):
    """A word of a passage that stands at the edge of documents, and others continue the passage.

    Attributes:
        unit: The word.
        at: The documents at whose edge it stands.
        behind: Tokens between it and that edge.
        continued_by: The documents that continue the passage.
    """

    unit: Unit
    at: list[Holder]
    behind: int
    continued_by: list[Holder]

    @property
    def holders(self) -> list[Holder]:
        """The documents where it stands, and those that continue it."""
        return [*self.at, *self.continued_by]

    def completed(self) -> tuple[int, int, Holder] | None:
        """Return the best rank from which it is complete, by which document, and where it stands.

        ``None`` if no two different documents complete it.
        """
        pairs = [(max((one[0], one[2]), (other[0], other[2])), one) for one in self.at
                 for other in self.continued_by if one[1] != other[1]]  # fmt: skip
        if not pairs:
            return None
        (rank, by), at = min(pairs)
        return rank, by, at


class DocumentEdges(NamedTuple):
    """How documents begin, how they end, from right to left, and how many tokens short ones have.

    These are by number.
    """

    beginnings: Edges
    ends: Edges
    sizes: dict[int, int]


class Search(NamedTuple):
    """A search for the pieces of a passage at the ends of documents, or mirrored.

    Attributes:
        text: The passage.
        ends: How documents end, from right to left.
        beginnings: How they begin.
        run: Tokens in a run.
        without: Documents that count for nothing.
        most: How many of the documents with the same edge to look at, the best-ranked ones.
    """

    text: Spelled
    ends: Edges
    beginnings: Edges
    run: int
    without: Collection[int] = ()
    most: int = _ENOUGH

    def pieces(self) -> Iterator[Held]:
        """Yield the words of the passage that stand at ends of documents."""
        (letters, units), starts = self.text, [one.start for one in self.text.units]
        for place, continued_by in self._continued().items():
            last = bisect_left(starts, place)
            for stop in range(place - (letters[place - 1] == _APART), len(letters) + 1):
                overlap = units[last : bisect_left(starts, stop)]
                if sum(one.n_tokens for one in overlap) >= self.run:
                    break
                if letters[stop - 1] != _APART:
                    yield from self._before(last, stop, overlap, continued_by)

    def _before(
        self, last: int, stop: int, overlap: list[Unit], continued_by: list[Holder]
    ) -> Iterator[Held]:
        """Yield the words before one that documents have which end at a place, as far as they go.

        With them come those behind it, which the documents that continue the passage have as well:
        both pieces may be shorter than a run.
        """
        for first, holders in self._reaching(last, stop, overlap):
            best, behind = self._best(holders), 0
            for unit in reversed([*self.text.units[first:last], *overlap] if best else []):
                if unit.stop <= stop or unit not in overlap:
                    yield Held(unit, best, behind, continued_by)
                behind += unit.n_tokens

    def _reaching(
        self, last: int, stop: int, overlap: list[Unit]
    ) -> Iterator[tuple[int, Iterable[Holder]]]:
        """Yield the documents that end at a place, and the first word from which they have all.

        Where only a part of the passage ends there, one that was altered may: so that part begins
        where the passage does, or the document, or it has a run.
        """
        letters, units = self.text
        n_tokens = sum(one.n_tokens for one in overlap if one.stop <= stop)
        first = last
        while first and n_tokens < self.run:
            first -= 1
            n_tokens += units[first].n_tokens * (units[first].stop <= stop)
        begin = units[first].start - units[first].apart
        yield first, self.ends.having(letters[begin:stop][::-1])
        for size in self.ends.sizes:
            whole = self.ends.whole.get(letters[max(stop - size, 0) : stop][::-1])
            first = bisect_left(units, stop - size, key=attrgetter("start"))
            if whole and first < last:
                yield first, whole

    def _best(self, holders: Iterable[Holder]) -> list[Holder]:
        best: dict[int, Holder] = {}
        for one in holders:
            if one[1] not in self.without:
                best[one[1]] = min(one, best.get(one[1], one))
        return nsmallest(self.most, best.values())

    def _continued(self) -> dict[int, list[Holder]]:
        """Return the documents that continue the passage, by the place where they begin."""
        letters, units = self.text
        starts = [one.start for one in units]
        ends = [0, *accumulate(one.n_tokens for one in units)]
        found: dict[int, list[Holder]] = {}
        for place in self._places():
            first = bisect_left(starts, place)
            last = min(bisect_left(ends, ends[first] + self.run), len(units)) - 1
            stop = units[last].stop + units[last].apart
            holders = {*self.beginnings.having(letters[place:stop])}
            if self.beginnings.sizes:
                holders |= {*self._passed(place, found)}
            if best := self._best(holders):
                found[place] = best
        return found

    def _places(self) -> Iterator[int]:
        """Yield the places where documents may begin, from the last to the first."""
        letters, edges = self.text.letters, self.beginnings
        # Near the end, or of a very short run, less than the first letters may be what is there.
        sure = len(letters) - _FIRST if self.run >= _FIRST else 0
        for place in range(len(letters) - 1, self.text.units[0].start, -1):
            part = letters[place : place + _FIRST]
            if part[0] != _APART and (place >= sure or edges.may_have(part)):
                yield place

    def _passed(self, place: int, found: dict[int, list[Holder]]) -> Iterator[Holder]:
        """Yield the documents that are short as a whole, and behind which others continue."""
        letters = self.text.letters
        for size in self.beginnings.sizes:
            stop = place + size
            holders = self.beginnings.whole.get(letters[place:stop], ())
            if not holders or stop >= len(letters):
                continue
            stop += letters[stop] == _APART
            following = [one for at in range(stop, place, -1) for one in found.get(at, ())]
            for rank, number, by in holders:
                yield from ((max(rank, other), number, by if rank > other else another_by)
                            for other, another, another_by in following
                            if number != another)  # fmt: skip


class Seams:
    """Looks for the pieces of passages at the edges of documents.

    Args:
        tokens: The tokens of all texts.
        names: The word that each token stands for.
        by_letters: Whether a text is read by letters; shape (texts,).
        run: Tokens in a run at most.
    """

    def __init__(
        self, tokens: TokenNumbers, names: Sequence[str], by_letters: BoolArray, run: int
    ) -> None:
        self.tokens, self.names, self.by_letters = tokens, names, by_letters
        self._n_edge = 2 * run + 2  # a number in two halves stands before or behind a run
        self._bounds = [0, *np.cumsum(tokens.sizes).tolist()]
        self._edges_of: dict[int, tuple[str, str, bool]] = {}
        self._known: tuple[OnceEach, int, DocumentEdges] | None = None

    def passage(self, text: int) -> Spelled:
        """Return a passage, given its number."""
        return self._spelled(text, self._bounds[text], self._bounds[text + 1])

    def edges(self, documents: OnceEach, query: int) -> DocumentEdges:
        """Return how the documents of a query begin and end."""
        if self._known is None or documents is not self._known[0] or query != self._known[1]:
            self._known = documents, query, self._of_query(documents, query)
        return self._known[2]

    def _of_query(self, documents: OnceEach, query: int) -> DocumentEdges:
        first, last = documents.of_query[query : query + 2].tolist()
        members = np.arange(first, last)
        ranks, numbers = documents.best_rank(members).tolist(), members.tolist()
        texts = documents.unit(members).tolist()
        sizes = self.tokens.sizes[texts].tolist()
        known = [(holder, *self._edges(text)) for *holder, text, size in zip(
            ranks, numbers, numbers, texts, sizes, strict=True) if size]  # fmt: skip
        return DocumentEdges(
            Edges([((*holder,), begin, is_whole) for holder, begin, _, is_whole in known]),
            Edges([((*holder,), end, is_whole) for holder, _, end, is_whole in known]),
            {number: size for number, size in zip(numbers, sizes, strict=True)
             if size <= self._n_edge},
        )  # fmt: skip

    def pieces(
        self,
        text: int,
        run: int,
        edges: DocumentEdges,
        without: Collection[int] = (),
        most: int = _ENOUGH,
    ) -> tuple[list[Held], list[Held]]:
        """Return the words of a passage at ends of documents, and those at beginnings.

        A passage shorter than a run is short evidence: documents that are shorter still are none.
        """
        beginnings, ends, sizes = edges
        start, stop = self._bounds[text : text + 2]
        letters, size = self._letters(text, start, stop), stop - start
        # The longer one of two pieces has so many letters.
        n = _FEW if self.by_letters[text] else _MORE
        is_short = len(letters) < 2 * n + 2
        # Where it begins and where it ends, nothing was cut.
        is_cut = beginnings.any_in(letters[1:], n) or ends.any_in(letters[-2::-1], n)
        if not (is_short or is_cut):
            return [], []
        passage = self.passage(text)
        if size < run:
            without = {*without, *(one for one, n in sizes.items() if n < size)}
        how = min(run, size), without, most
        forward = Search(passage, ends, beginnings, *how)
        backward = Search(passage.mirrored(), beginnings, ends, *how)
        return [*forward.pieces()], [*backward.pieces()]

    def _spelled(self, text: int, start: int, stop: int) -> Spelled:
        words = [self.names[one] for one in self.tokens.flat[start:stop].tolist()]
        return Spelled.of(words, by_letters=bool(self.by_letters[text]))

    def _letters(self, text: int, start: int, stop: int) -> str:
        """Return a part of a text as it is spelled."""
        words = [self.names[one] for one in self.tokens.flat[start:stop].tolist()]
        if not self.by_letters[text]:
            return _APART.join(["", *words, ""]) if words else ""
        parts, at = list[str](), 0
        while at < len(words):
            word = words[at]
            is_number = word.isdecimal()
            parts.append(f"{_APART}{word}{_APART}" if is_number else word)
            at += len(word) if is_number else 1
        return "".join(parts).replace(_APART * 2, _APART)

    def _edges(self, text: int) -> tuple[str, str, bool]:
        """Return how a text begins, how it ends, from right to left, and if each is all of it."""
        known = self._edges_of.get(text)
        if known is None:
            start, stop = self._bounds[text : text + 2]
            is_whole = stop - start <= self._n_edge
            begin = self._letters(text, start, min(stop, start + self._n_edge))
            end = self._letters(text, self._last_unit(text, start, stop), stop)
            known = begin.removeprefix(_APART), end.removesuffix(_APART)[::-1], is_whole
            self._edges_of[text] = known
        return known

    def _last_unit(self, text: int, start: int, stop: int) -> int:
        """Return where to begin, so that no number is begun in its middle."""
        first = max(start, stop - self._n_edge)
        if not self.by_letters[text]:
            return first
        words = [self.names[one] for one in self.tokens.flat[first:stop].tolist()]
        at = len(words)
        while at > 0:
            word = words[at - 1]
            at -= len(word) if word.isdecimal() else 1
        return max(first + at, start)
