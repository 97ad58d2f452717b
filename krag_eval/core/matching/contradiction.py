"""Whether a chunk says something else than the passage it nearly holds: numbers and negations.

A chunk of last year's notice holds nearly all words of this year's passage, and contradicts it. So
the two are aligned, and what stands between the stretches that they share is compared: a number
that another one replaces, another unit behind the same number, a negation on one side only, a bound
in the place of another. Korean says no in the last verb; so where a passage begins or ends, its
first or last word is looked for nearby.

What was cut off or left out contradicts nothing, nor does what was misread. Where a document has
the passage more than once, it contradicts if it does each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from krag_eval.core.matching.joins import BoolArray, IntArray
from krag_eval.core.matching.numbering import TokenNumbers
from krag_eval.core.matching.spelling import MAGNITUDES, MYRIADS, YEAR
from krag_eval.core.text import whole_words

# Twelve letters of Hangul say about as much as five words, or 28 Latin letters.
_OF_LATIN = 0.43
_AROUND = 2  # tokens of the shared stretches in which a negation is looked for as well

_NEGATION = re.compile(
    r"(?=[가-힣nwct])"  # first letters, as most words have another one
    r"(?:않|아니|못|없|마세|마십|마시오|마라|안[되된됩돼됐]|불가"
    r"|\b(?:안|not|no|never|without|cannot|none|nor|neither|nobody|nothing|(?<=n )t)\b)"
)
_BOUND = re.compile(
    r"이상|이하|초과|미만|이내|이전|이후|포함|제외|무상|유상|전액|일부"
    r"|\b(?:before|after|above|below|over|under|more|less|most|least|except|unless|if|only|until"
    r"|increased?|decreased?|rose|fell|up|down|higher|lower|excluding|including)\b"
)
_UNITS = (  # noqa: SIM905 - a list literal would take one line for each
    "million billion thousand trillion milliseconds millisecond seconds second minutes minute "
    "hours hour days day weeks week months month years year kilometers kilometer meters meter "
    "miles mile feet gallons barrels liters litres dollars euros points point per percentage "
    "개월 영업일 주일 시간 퍼센트 포인트 가구 달러 만 억 조 천 백 원 년 월 일 주 분 초 명 인 개 건 "
    "권 점 호 층 회 번 배 세 살 도 대 cm mm km kg mg ml gb mb kb tb ms kw m g l t s p"
).split()
_UNIT = re.compile("|".join(sorted(_UNITS, key=len, reverse=True)))
_LONGEST_UNIT = 4
_SAME_UNIT = {"kilometer": "km", "meter": "m", "liter": "l", "litre": "l", "인": "명"}
# Of percent no token is left, so that these have nothing in their place.
_RATES = frozenset(("percentage", "point", "points", "포인트", "p"))


class _Reading(NamedTuple):
    """What counts in texts of letters or of words.

    Attributes:
        block: Tokens of a stretch that is shared, and not by chance.
        at_an_end: The same where the passage begins or ends.
        anchor: Tokens of the longest one, without which two texts are not alike.
        longer: By how much the other side may be longer where one counts negations.
        nearby: The same where the passage begins or ends.
        joined_by: What stands between tokens.
    """

    block: float
    at_an_end: float
    anchor: float
    longer: int
    nearby: int
    joined_by: str


_LETTERS, _WORDS = _Reading(4.0, 2.0, 8.0, 12, 5, ""), _Reading(2.0, 1.0, 3.0, 6, 2, " ")


class Contradiction(NamedTuple):
    """What a document says otherwise.

    Attributes:
        kind: ``"number"``, ``"unit"``, ``"negation"`` or ``"bound"``.
        passage: The tokens of the passage that are other ones there: first, and after the last.
        document: Those of the document, likewise.
    """

    kind: str
    passage: tuple[int, int]
    document: tuple[int, int]

    @classmethod
    def between(cls, kind: str, ours: slice, theirs: slice) -> Contradiction:
        """Return what stands in a place of each side."""
        return cls(kind, (ours.start, ours.stop), (theirs.start, theirs.stop))


class SaidOtherwise(NamedTuple):
    """The same in words.

    Attributes:
        kind: As of a :class:`Contradiction`.
        passage: What the passage says there, in the spelling in which it is compared.
        document: What the document says instead; empty if nothing.
    """

    kind: str
    passage: str
    document: str


class _Shared(NamedTuple):
    """A stretch that both sides have: first tokens, and those after the last."""

    start: int
    stop: int
    there: int
    end: int


class Beside(NamedTuple):
    """A passage and a document, to be laid side by side.

    Attributes:
        passage: Its tokens by number, those of amounts and dates in one spelling.
        document: Likewise.
        spans: The stretches of the document that the passage shares, ascending.
        names: The tokens that the numbers stand for.
        by_letters: Whether tokens are letters, or words.
        turned: Whether the two changed sides, as it is asked how much of the document is held.

    >>> names = "so the fee for 2024 is 30 euros a year and more 2023".split()
    >>> passage, document = np.arange(1, 12), np.array([0, 1, 2, 3, 12, *range(5, 12)])
    >>> both = Beside(passage, document, [(1, 12)], names, by_letters=False)
    >>> both.contradiction()
    Contradiction(kind='number', passage=(3, 4), document=(4, 5))
    >>> both._replace(passage=passage[:3], spans=[(1, 4)]).contradiction()
    >>> both.in_words(both.contradiction())
    SaidOtherwise(kind='number', passage='2024', document='2023')
    >>> both.in_blocks() == 10 / 11
    True
    """

    passage: IntArray
    document: IntArray
    spans: Sequence[tuple[int, int]]
    names: Sequence[str]
    by_letters: bool
    turned: bool = False

    def _aligned(self) -> Iterator[tuple[int, _Aligned]]:
        """Yield where the passage may stand, and the two side by side; the likeliest place last."""
        words = [*map(self.names.__getitem__, self.passage.tolist())]
        for start, stop in _windows(len(self.passage), len(self.document), self.spans):
            window = [*map(self.names.__getitem__, self.document[start:stop].tolist())]
            yield start, _Aligned(words, window, self.by_letters)

    def contradiction(
        self, *, numbers: bool = True, polarity: bool = True, piece: bool = False
    ) -> Contradiction | None:
        """Return what a document says otherwise than a passage that it nearly holds.

        Args:
            numbers: Whether numbers and their units count.
            polarity: Whether negations and bounds count, in Korean and English.
            piece: Whether the document holds less than half, so that only what lies between the
                stretches that it holds counts, and only where these are close together.
        """
        if self.by_letters and numbers and (found := self._end_of_an_amount()):
            return found
        if self.turned or len(self.spans) == 1:
            texts = self.document.tobytes(), self.passage.tobytes()
            start, stop = (place * self.passage.itemsize for place in self.spans[0])
            document, passage = texts
            if self.turned and _holds(document, passage, self.passage.itemsize):
                return None
            # What stands in the passage word for word is a part of it.
            if stop - start == len(document) and _holds(passage, document, self.passage.itemsize):
                return None
            # Where the document ends the passage was cut off, and nothing stands in its place.
            if start == 0 and passage.endswith(document[:stop]):
                return None
            if stop == len(document) and passage.startswith(document[start:]):
                return None
        found = None
        for start, both in self._aligned():
            found = both.contradiction(numbers, polarity, piece)
            if found is None:
                return None
            there, end = found.document
            found = found._replace(document=(there + start, end + start))
        return found

    def _end_of_an_amount(self) -> Contradiction | None:
        """Return where the passage stands, if only at the end of amounts: 1000원 of 1만 1000원."""
        number, found = self.names[self.passage[0]], None
        if not _is_number(number):
            return None
        for place in _places(
            self.document.tobytes(), self.passage.tobytes(), self.passage.itemsize
        ):
            before = [self.names[one] for one in self.document[max(0, place - 2) : place].tolist()]
            if len(before) < 2 or before[1] not in MYRIADS or not _is_number(before[0]):
                return None
            where = place - 1 - len(before[0]), place + len(number)
            found = found or Contradiction("unit", (0, len(number)), where)
        return found

    def in_blocks(self) -> float:
        """Return how much of the passage stands in the document in however short stretches."""
        return max((both.share for _, both in self._aligned()), default=0.0)

    def in_words(self, said: Contradiction, texts: Sequence[str] = ("", "")) -> SaidOtherwise:
        """Return a contradiction in words: of numbers, those that differ; else, what is around.

        Args:
            said: The contradiction.
            texts: The two as they are written, the passage first. Where tokens are letters, what is
                around is told in whole words of these.
        """
        sides, written = [], []
        around = 0 if said.kind == "number" else _AROUND
        texts = [*reversed(texts)] if self.turned else texts
        both_sides = zip(said[1:], (self.passage, self.document), texts, strict=True)
        for (start, stop), tokens, text in both_sides:
            names, first = [self.names[one] for one in tokens.tolist()], max(0, start - around)
            while (
                around and first and _is_number(names[first]) and names[first - 1] == names[first]
            ):
                first -= 1  # among letters a number stands for each of its digits
            sides.append([*_once(names[first : stop + around], self.by_letters)])
            before, read = ("".join(_once(one, True)) for one in (names[:first], names))
            written.append(whole_words(text, "".join(sides[-1]), read, len(before)))
        if said.kind == "number":
            numbers = [[*filter(_is_number, side)] for side in sides]
            ours, theirs = ({*one} for one in numbers)
            both, pairs = ours & theirs, zip(numbers, sides, strict=True)
            sides = [[one for one in side if one not in both] or rest for side, rest in pairs]
        spaced = not self.by_letters or said.kind == "number"
        shown = [" ".join(side) for side in sides] if spaced else written
        return SaidOtherwise(said.kind, *(reversed(shown) if self.turned else shown))


def verbatim(tokens: TokenNumbers, passages: IntArray, documents: IntArray) -> BoolArray:
    """Return whether documents have passages token by token, for pairs of texts.

    >>> tokens = TokenNumbers(np.array([2, 3, 1, 2, 3], np.int32), np.array([2, 3]))
    >>> verbatim(tokens, np.array([0, 1]), np.array([1, 0])).tolist()
    [True, False]
    """
    flat, size = tokens.flat.tobytes(), tokens.flat.itemsize
    stops = np.cumsum(tokens.sizes) * size
    starts = stops - tokens.sizes * size
    passage, document = (
        map(slice, starts[one].tolist(), stops[one].tolist()) for one in (passages, documents)
    )
    pairs = zip(passage, document, strict=True)
    return np.array([_holds(flat[theirs], flat[ours], size) for ours, theirs in pairs], np.bool_)


def _holds(document: bytes, passage: bytes, size: int) -> bool:
    """Return whether one text is within another, each token as so many bytes."""
    return next(_places(document, passage, size), None) is not None


def _places(document: bytes, passage: bytes, size: int) -> Iterator[int]:
    """Yield where one text stands in another, each token as so many bytes."""
    at = document.find(passage)
    while at >= 0:
        if at % size == 0:
            yield at // size
        at = document.find(passage, at + 1)


def _windows(size: int, room: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return where in a document a passage may stand, the likeliest place last.

    Args:
        size: Tokens of the passage.
        room: Tokens of the document.
        spans: The stretches that are shared, ascending.
    """
    margin = 8 + size // 3
    places: list[tuple[int, int, int]] = []  # tokens that are shared, first, after the last
    for start, stop in spans:
        if places and stop - places[-1][1] <= size + margin:
            held, first, _ = places.pop()
            places.append((held + stop - start, first, stop))
        else:
            places.append((stop - start, start, stop))
    most = max(places, default=(0,))[0]
    likely = sorted(place for place in places if 2 * place[0] > most)
    # Sentences that others stand between: none holds enough, and none has what another has.
    if len(places) > 1 and most < 0.8 * size and sum(held for held, *_ in places) <= 1.25 * size:
        likely = [(size, places[0][1], places[-1][2])]
    return [(max(0, start - margin), min(room, stop + margin)) for _, start, stop in likely]


class _Aligned:
    """A passage beside the part of a document where it may stand."""

    def __init__(self, passage: Sequence[str], window: Sequence[str], by_letters: bool) -> None:
        self.passage, self.window = passage, window
        self.reading = _LETTERS if by_letters else _WORDS
        self.by_letters = by_letters
        self.weight: Sequence[float] = range(len(passage) + 1)
        if by_letters:
            latin = (one.isascii() and one.isalpha() for one in passage)
            weights = (_OF_LATIN if one else 1.0 for one in latin)
            self.weight = [*accumulate(weights, initial=0.0)]

    def contradiction(self, numbers: bool, polarity: bool, piece: bool) -> Contradiction | None:
        """Return the first thing that is said otherwise."""
        shared = self._shared()
        if not shared or (piece and not self._is_close(shared)):
            return None
        ends = len(self.passage), len(self.window)
        every = [_Shared(0, 0, 0, 0), *shared, _Shared(ends[0], ends[0], ends[1], ends[1])]
        for place, (one, other) in enumerate(pairwise(every)):
            inside = 0 < place < len(shared)
            if self._slides(one, other) if inside else piece or one.stop == other.start:
                continue
            ours, theirs = slice(one.stop, other.start), slice(one.end, other.there)
            if not inside:
                # What the passage lacks at its ends was cut off; of the other side, as much counts.
                most = ours.stop - ours.start + 4
                theirs = (
                    slice(max(theirs.start, theirs.stop - most), theirs.stop)
                    if place == 0
                    else slice(theirs.start, min(theirs.stop, theirs.start + most))
                )
            kind = ""
            if numbers:
                kind = self._number(one, ours, theirs, inside, place == 0)
            if polarity and inside and not kind:
                kind = self._turned(ours, theirs)
            if kind:
                return Contradiction.between(kind, ours, theirs)
        for ours, theirs in self._edges(shared) if polarity and not piece else ():
            around = (_AROUND, 0) if ours.start else (0, _AROUND)
            if kind := self._turned(ours, theirs, around):
                return Contradiction.between(kind, ours, theirs)
        return None

    def _edges(self, shared: Sequence[_Shared]) -> Iterator[tuple[slice, slice]]:
        """Yield what both have before and behind all that is shared, up to the same word."""
        firm = [one for one in shared if self._size(one.start, one.stop) >= self.reading.block]
        if not firm:
            return
        start, there, stop, end = firm[0].start, firm[0].there, firm[-1].stop, firm[-1].end
        if n := self._reach(self.passage[:start][::-1], self.window[:there][::-1]):
            yield slice(0, start), slice(there - n, there)
        if n := self._reach(self.passage[stop:], self.window[end:]):
            yield slice(stop, len(self.passage)), slice(end, end + n)

    def _reach(self, rest: Sequence[str], beyond: Sequence[str]) -> int:
        """Return after how many tokens the other side has the last one, too; 0 if not nearby."""
        nearby = beyond[: len(rest) + self.reading.nearby]
        if not 0 < len(rest) <= self.reading.anchor or rest[-1] not in nearby:
            return 0
        # A Latin letter is no word; one of Hangul may be a particle, but not in 지 않다 and 아니다.
        if self.by_letters and (rest[-1].isascii() or (len(rest) == 1 and nearby[0] not in "지아")):
            return 0
        return nearby.index(rest[-1]) + 1

    @property
    def share(self) -> float:
        """How much of the passage both have, if one stretch is long enough to tell."""
        held = sum(self._size(one.start, one.stop) for one in self._shared())
        return held / self.weight[-1]

    def _size(self, start: int, stop: int) -> float:
        """Return the weight of tokens of the passage."""
        return self.weight[stop] - self.weight[start]

    def _shared(self) -> list[_Shared]:
        """Return the stretches that both have, if one of them is long enough to tell."""
        from rapidfuzz.distance import Indel

        total, n = self.weight[-1], len(self.passage)
        least, kept, longest = min(self.reading.block, total), [], 0.0
        blocks = Indel.opcodes(self.passage, self.window).as_matching_blocks()
        for block in blocks[:-1]:  # the last one is empty
            start, stop = block.a, block.a + block.size
            size = self._size(start, stop)
            at_an_end = start == 0 or stop == n
            if size >= min(least, self.reading.at_an_end if at_an_end else least):
                kept.append(_Shared(start, stop, block.b, block.b + block.size))
                longest = max(longest, size)
        return kept if longest >= min(self.reading.anchor, 0.999 * total) else []

    def _slides(self, one: _Shared, other: _Shared) -> bool:
        """Return whether the first or last words stand beside the others after all."""
        first, last = self.passage[: one.stop], self.passage[other.start :]
        if one.stop == other.start:  # the document has something in between
            texts, start, stop = self.window, one.end, other.there
        elif one.end == other.there:  # the passage has: what begins like the rest was cut off
            texts, start, stop = self.passage, one.stop, other.start
        else:
            return False
        return (one.start == 0 and texts[max(0, stop - len(first)) : stop] == first) or (
            other.stop == len(self.passage) and texts[start : start + len(last)] == last
        )

    def _number(
        self, one: _Shared, ours: slice, theirs: slice, inside: bool, is_first: bool
    ) -> str:
        """Return whether a number is another one there, or has another unit."""
        gap, their_gap = self.passage[ours], self.window[theirs]
        missing = {*filter(_is_number, gap)}
        if missing:
            there = {*filter(_is_number, their_gap)}
            missing -= there
            if inside and not there:
                # What is left out, such as the mark of a footnote, is no other number.
                if their_gap or not self._is_part(self.passage, ours, of_amount=False):
                    return ""
            elif not inside:
                goes_on = there and 2 * len(their_gap) >= len(gap)
                missing = {n for n in missing if goes_on and not _cut(n, there, is_first)}
        if missing:
            return "number"
        if inside and not gap and self._is_part(self.window, theirs, of_amount=True):
            return "number"
        if not inside or not their_gap or one.stop - one.start < self.reading.block:
            return ""
        if not _is_number(self.passage[one.stop - 1]):
            return ""
        units = self._unit(self.passage, one.stop), self._unit(self.window, one.end)
        differ = units[0] != units[1] and (all(units) or not _RATES.isdisjoint(units))
        return "unit" if differ else ""

    def _is_part(self, tokens: Sequence[str], at: slice, *, of_amount: bool) -> bool:
        """Return whether what one side alone has is a part of a number: 2 of 1.2 million.

        Args:
            tokens: That side.
            at: What it has between two shared stretches.
            of_amount: Whether it must be one of an amount; 3.1 may be 3 with the mark of a note.
        """
        (before, *gap), behind = tokens[at.start - 1 : at.stop], tokens[at.stop]
        if before in MYRIADS and all(_is_number(one) or one in MYRIADS for one in gap):
            return True  # 5천만 of 3억 5천만
        if of_amount and (len(gap) > 1 or behind not in (*MAGNITUDES, "thousand")):
            return False
        pairs = (before, gap[0]), (gap[-1], behind)
        joined = (all(_is_number(n) and not YEAR.fullmatch(n) for n in pair) for pair in pairs)
        return any(joined) and any(one.strip("0") for one in gap)

    def _is_close(self, shared: Sequence[_Shared]) -> bool:
        """Return whether of the passage, from the first stretch to the last, most is shared."""
        held = sum(self._size(one.start, one.stop) for one in shared)
        extent = self._size(shared[0].start, shared[-1].stop)
        return bool(2 * held >= extent)

    def _unit(self, tokens: Sequence[str], at: int) -> str:
        """Return the unit at a place, if there is one."""
        text = "".join(tokens[at : at + (_LONGEST_UNIT if self.by_letters else 1)])
        found = _UNIT.match(text) if self.by_letters else _UNIT.fullmatch(text)
        if not found or [*tokens[at : at + 2]] == ["p", "m"]:
            return ""
        unit = found[0].removesuffix("s") if len(found[0]) > 3 else found[0]
        return _SAME_UNIT.get(unit, unit)

    def _turned(
        self, ours: slice, theirs: slice, around: tuple[int, int] = (_AROUND, _AROUND)
    ) -> str:
        """Return whether one side says no, or names another bound."""
        gap, their_gap = self.passage[ours], self.window[theirs]
        if not (gap or their_gap) or (self.by_letters and _misread(gap, their_gap)):
            return ""
        if len(their_gap) > len(gap) + self.reading.longer:
            return ""
        texts = [
            self.reading.joined_by.join(tokens[max(0, at.start - around[0]) : at.stop + around[1]])
            for tokens, at in ((self.passage, ours), (self.window, theirs))
        ]
        # Among letters an English word has no ends of its own, but those of what is in between.
        alone = [self.reading.joined_by.join(tokens) for tokens in (gap, their_gap)]
        for said in (texts, alone):
            if len({len(_NEGATION.findall(text)) for text in said}) > 1:
                return "negation"
        bounds = [sorted(_BOUND.findall(text)) for text in texts]
        return "bound" if all(bounds) and bounds[0] != bounds[1] else ""


def _once(tokens: Sequence[str], by_letters: bool) -> Iterator[str]:
    """Yield tokens, among letters each number once, which stands for each of its digits."""
    at = 0
    while at < len(tokens):
        yield tokens[at]
        at += len(tokens[at]) if by_letters and tokens[at].isdecimal() else 1


def _is_number(token: str) -> bool:
    return token[:1].isdecimal()  # an own tokenizer may leave some empty


def _cut(number: str, there: set[str], is_first: bool) -> bool:
    """Return whether a number is a part of one there, as the passage begins or ends within it."""
    return any(one.endswith(number) if is_first else one.startswith(number) for one in there)


def _misread(gap: Sequence[str], there: Sequence[str]) -> bool:
    """Return whether letters of Hangul are the same but for their final consonants."""
    return len(gap) == len(there) and all(
        pair[0] == pair[1]
        or (
            min(pair) >= "가"
            and max(pair) <= "힣"
            and len({(ord(x) - 0xAC00) // 28 for x in pair}) == 1
        )
        for pair in zip(gap, there, strict=True)
    )
