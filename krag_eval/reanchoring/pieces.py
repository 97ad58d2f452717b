"""Which chunks have a text in pieces: word for word over their ends, or most of it in stretches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from krag_eval.core.text import agreement

# Characters that tell where chunks begin and end, and chunks with the same that are looked at.
_EDGE, _MOST = 12, 100
# Of white space, what parts two numbers; and what splitters leave out where they cut.
_SOLID = re.compile(r"\S|(?:(?<=\d)|(?<=\d[.,:/-]))\s(?=\s*\d)")
_APART = re.compile(r"\d[.,:/-]?\s+\d")
_LEFT_OUT = re.compile(r"[\s.,;:!?…。、，]*")
# What no end of a text may part: 5 is no part of 50, nor of 1.5.
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WORD, _LETTER = re.compile(r"[^\W_]+"), re.compile(r"\d+|[^\W\d_]")
_BEHIND = re.compile(r"[^\w\s]*")
# Letters that two chunks have in common where they overlap, and not by chance.
_OVERLAP = 4
# Characters that chunks have in common with a text of which they say something else.
_STRETCH = 6
# Chunks that follow one another, and may have been cut in a text: so many times, they are joined.
_GROUPS = 10


class Solid(NamedTuple):
    """A text without its white space, but for what parts two numbers.

    Attributes:
        text: The text.
        characters: What is left of it.
        places: Where each of these stands in the text.
    """

    text: str
    characters: str
    places: list[int]

    @classmethod
    def of(cls, text: str) -> Solid:
        r"""Leave out white space.

        >>> Solid.of("of 12\n 34, 5 in\tall").characters
        'of12 34, 5inall'
        """
        return cls(text, _solid(text), [one.start() for one in _SOLID.finditer(text)])

    def at(self, place: int) -> int:
        """Return how many characters stand before a place in the text."""
        return bisect_left(self.places, place)

    def behind(self, stop: int) -> int:
        """Return where the characters go on behind a cut."""
        found = _LEFT_OUT.match(self.characters, stop)
        return stop if found is None else found.end()

    def between(self, start: int, stop: int) -> str:
        """Return the text from one character to before another."""
        places = [*self.places, len(self.text)]
        return self.text[places[start] : places[stop]] if start < stop else ""


def _solid(text: str) -> str:
    """Return the characters of a text without its white space."""
    if not _APART.search(text):
        return "".join(text.split())
    return "".join(" " if one.isspace() else one for one in _SOLID.findall(text))


class Piece(NamedTuple):
    """What a chunk has of a text: its characters from one place to before another."""

    start: int
    stop: int
    chunk: int


class ChunkEnds:
    """How the chunks of an index begin and end.

    Args:
        texts: The chunks, in order.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self._chunks = texts, [*map(_solid, texts)]
        self._edges = defaultdict[str, list[int]](list)
        for at, chunk in enumerate(self._chunks):
            for edge in {chunk[:_EDGE], chunk[-_EDGE:]} - {""}:
                self._edges[edge].append(at)
        self._sizes = sorted({*map(len, self._edges)})
        self._joined = ""

    def cut_in(self, text: Solid) -> set[int]:
        """Return the chunks that begin or end in a text, with more than a few characters."""
        ours = text.characters
        parts = {ours[at : at + n] for n in self._sizes for at in range(len(ours) - n + 1)}
        return {at for part in parts for at in self._edges.get(part, ())[:_MOST]}

    def beside(self, chunks: Collection[int]) -> set[int]:
        """Return some chunks, and those beside them."""
        beside = {at + step for at in chunks for step in (-1, 0, 1)}
        return {at for at in beside if 0 <= at < len(self.texts)}

    def groups(self, text: Solid, others: Mapping[int, float]) -> list[list[int]]:
        """Return chunks that follow one another and may have been cut in a text, the likely first.

        Args:
            text: The text.
            others: Chunks that have some of it, with how much that is.
        """
        known = self.cut_in(text) | others.keys()
        edge = known
        while edge:
            edge = {at for at in self.beside(edge) - known if self._may_be_cut_in(text, at)}
            known = known | edge
        groups = [one for one in groups_of(known) if len(one) > 1]
        groups.sort(key=lambda group: -sum(others.get(at, 0.0) for at in group))
        return groups[:_GROUPS]

    def _may_be_cut_in(self, text: Solid, number: int) -> bool:
        """Return whether a chunk beside one that has some of a text has some of it as well."""
        ours, chunk = text.characters, self._chunks[number]
        parts = (ours[at : at + _STRETCH] for at in range(len(ours) - _STRETCH + 1))
        edges = ours[:_OVERLAP], ours[-_OVERLAP:]
        return any(one in chunk for one in (*edges, *parts)) or any(self._ending(text, number))

    def joined(self, chunks: Sequence[int]) -> list[str]:
        """Return the text that chunks were cut from, in the ways in which it may have been.

        What one has at its end and the next at its beginning was there once, if it is more than a
        few letters; between others, the splitter may have left out a space.
        """
        ways = [("", _OVERLAP), (" ", _OVERLAP), ("", 1)]
        texts = [self.texts[at] for at in chunks]
        return [*dict.fromkeys(_joined(texts, space, least) for space, least in ways)]

    def verbatim(self, text: Solid, chunks: Iterable[int]) -> list[Piece]:
        """Return the pieces of a text that stands word for word over the ends of chunks.

        From its beginning on, the piece that reaches furthest comes next; of several, that of the
        chunk behind the last one.
        """
        several = [piece for chunk in chunks for piece in self._ending(text, chunk)]
        begun, found, at = {piece.chunk for piece in several if piece.start}, list[Piece](), 0
        while (reach := text.behind(at) if found else 0) < len(text.characters):
            rest = [one for one in several if one.start <= reach and one.stop > at]
            if not rest:
                return []
            after = found[-1].chunk + 1 if found else -1
            start, stop, chunk = max(rest, key=lambda one: (
                one.stop, one.chunk == after, one.chunk + 1 in begun, -one.chunk))  # fmt: skip
            found.append(Piece(max(start, at), stop, chunk))
            at = stop
        return found

    def _ending(self, text: Solid, number: int) -> Iterator[Piece]:
        """Yield the pieces of a text in a chunk that end only where one of the two does."""
        ours, chunk = text.characters, self._chunks[number]
        for size in range(min(len(ours), len(chunk)), 0, -1):
            if chunk.endswith(ours[:size]) and _is_whole(chunk, len(chunk) - size):
                yield Piece(0, size, number)
                break
        for start in _places(ours, chunk):
            rest = ours[start : start + len(chunk)]
            if rest == chunk or (chunk.startswith(rest) and _is_whole(chunk, len(rest))):
                yield Piece(start, start + len(rest), number)

    def holding(self, text: Solid) -> int | None:
        """Return the first chunk that has a text word for word in one piece."""
        self._joined = self._joined or "\n".join(self._chunks)
        at = self._joined.find(text.characters)
        while at >= 0:
            if _is_whole(self._joined, at) and _is_whole(self._joined, at + len(text.characters)):
                return self._joined.count("\n", 0, at)
            at = self._joined.find(text.characters, at + 1)
        return None

    def stretches(self, text: Solid, chunks: Collection[int], *, by_letters: bool) -> list[Piece]:
        """Return the stretches of a text that chunks have, from its beginning on.

        These are runs of words, and what is shorter where one chunk was cut and another goes on,
        if one of the two has a run there. The one that reaches furthest comes next.
        """
        several = list[Piece]()
        for chunk in chunks:
            spans = agreement(text.text, self.texts[chunk], by_letters=by_letters)
            own_spans = (Piece(text.at(start), text.at(stop), chunk) for start, stop in spans)
            several += [part for one in own_spans for part in self._apart(text, one, by_letters)]
        if several:
            own = {one: self._chunks[one] for one in chunks}
            several += [*_at_cuts(text, own, several, by_letters=by_letters)]
        return self._chosen(text, sorted(several))

    def _apart(self, text: Solid, piece: Piece, by_letters: bool) -> list[Piece]:
        """Return the parts of a stretch that its chunk may have in several places, and not in one.

        A stretch that the chunk spells otherwise stays whole.
        """
        chunk, ours = _letters(self._chunks[piece.chunk]), text.characters
        if _letters(ours[piece.start : piece.stop]) in chunk:
            return [piece]
        tokens = (_LETTER if by_letters else _WORD).finditer(text.text)
        places = [(text.at(one.start()), text.at(one.end())) for one in tokens]
        places = [one for one in places if piece.start <= one[0] < piece.stop]
        parts = list[Piece]()
        while places:
            begin = places[0][0]
            n = bisect_left(
                places, True, key=lambda place: _letters(ours[begin : place[1]]) not in chunk
            )
            if not n:
                return [piece]
            parts.append(Piece(begin, places[n - 1][1], piece.chunk))
            places = places[n:]
        return parts

    def _chosen(self, text: Solid, pieces: Sequence[Piece]) -> list[Piece]:
        """Return as few pieces as it takes, in order, of which none has what another one has."""
        found, at = list[Piece](), 0
        while rest := [one for one in pieces if one.stop > at]:
            begin = max(text.behind(at), rest[0].start)
            best = max((one for one in rest if one.start <= begin), key=lambda one: one.stop)
            piece = best._replace(start=max(best.start, at))
            if found and found[-1].stop == piece.start and found[-1].chunk == piece.chunk:
                longer = piece._replace(start=found[-1].start)
                if text.characters[longer.start : longer.stop] in self._chunks[piece.chunk]:
                    piece = longer
                    del found[-1]
            found.append(piece)
            at = piece.stop
        return found


def _letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text))


def groups_of(chunks: Iterable[int]) -> list[list[int]]:
    """Return chunks that follow one another, together.

    >>> groups_of([7, 3, 4, 9, 8])
    [[3, 4], [7, 8, 9]]
    """
    groups = list[list[int]]()
    for at in sorted(chunks):
        if groups and groups[-1][-1] == at - 1:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


def _joined(texts: Sequence[str], space: str, least: int) -> str:
    """Return texts as one, without what ends one and begins the next."""
    joined = ""
    for text in texts:
        shared = _shared(joined, text, least)
        joined += text[shared:] if shared or not joined else f"{space}{text}"
    return joined


def _shared(text: str, following: str, least: int) -> int:
    """Return how many letters end one text and begin the next, if they are so many at least.

    >>> _shared("one two", "two three", 1), _shared("one two", "two three", 4)
    (3, 0)
    """
    begin, at = following[:least], max(len(text) - len(following), 0)
    while len(begin) == least and (at := text.find(begin, at)) >= 0:
        if following.startswith(text[at:]):
            return len(text) - at
        at += 1
    return 0


def _places(ours: str, chunk: str) -> Iterator[int]:
    """Yield where in a text, behind its beginning, a chunk may begin."""
    begin = chunk[:_EDGE]
    if not begin:
        return
    at = ours.find(begin, 1)
    while at > 0:
        yield at
        at = ours.find(begin, at + 1)
    for at in range(max(len(ours) - len(begin) + 1, 1), len(ours)):
        if begin.startswith(ours[at:]):
            yield at


def _is_whole(text: str, at: int) -> bool:
    """Return whether a place stands in no number."""
    begin = max(at - _EDGE, 0)
    near = text[begin : at + _EDGE]
    return not any(one.start() < at - begin < one.end() for one in _NUMBER.finditer(near))


def _at_cuts(
    text: Solid, chunks: Mapping[int, str], runs: Sequence[Piece], *, by_letters: bool
) -> Iterator[Piece]:
    """Yield what chunks have of a text at their ends, where others go on with it."""
    ours, spans = text.characters, (_LETTER if by_letters else _WORD).finditer(text.text)
    begins, ends = zip(*((text.at(one.start()), text.at(one.end())) for one in spans), strict=True)
    size, backwards = len(ours), [len(ours) - end for end in ends]
    ending = [Piece(start, stop, number) for number, chunk in chunks.items()
              for start, stop in _ending(ours, chunk, begins)]  # fmt: skip
    beginning = [Piece(size - stop, size - start, number) for number, chunk in chunks.items()
                 for start, stop in _ending(ours[::-1], chunk[::-1], backwards)]  # fmt: skip
    long = {
        one
        for one in {*ending, *beginning}
        for run in runs
        if one.chunk == run.chunk and max(one.start, run.start) < min(one.stop, run.stop)
    }
    for one in ending:
        for other in beginning:
            goes_on = one.start < other.start <= text.behind(one.stop) and one.stop < other.stop
            if goes_on and one.chunk != other.chunk and not long.isdisjoint((one, other)):
                yield from (one, other)


def _ending(ours: str, chunk: str, begins: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield from which word of a text to where it has the end of a chunk."""
    theirs = chunk[::-1]
    for stop in range(1, len(ours) + 1):
        if theirs.startswith(ours[stop - 1]):
            pairs = zip(ours[stop - 1 :: -1], theirs, strict=False)
            same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(stop, len(theirs)))
            start = min((at for at in begins if stop - same <= at < stop), default=stop)
            if start < stop:
                yield start, stop


def parts_of(text: Solid, pieces: Sequence[Piece]) -> list[str]:
    """Return the parts of a text that pieces are, with the punctuation behind them."""
    parts, n = list[str](), len(text.characters)
    for one, other in pairwise([*pieces, Piece(n, n, -1)]):
        own, rest = text.between(one.start, one.stop), text.between(one.stop, other.start)
        if text.behind(one.stop) < other.start:
            rest = "" if own[-1:].isspace() else rest[: _end(rest)]
        parts.append(f"{own}{rest}".strip())
    return parts


def _end(text: str) -> int:
    """Return where the punctuation that a text begins with ends."""
    found = _BEHIND.match(text)
    return 0 if found is None else found.end()
