"""Whether a chunk says something else than the passage it nearly holds: numbers and negations.

A chunk of last year's notice holds nearly all words of this year's passage, and contradicts it. So
the two are aligned, and what stands between the stretches that they share is compared: a number
that another one replaces, another unit behind the same number, a negation on one side only, a bound
in the place of another.

What was cut off contradicts nothing, nor does what was misread. Where a document has the passage
more than once, it contradicts if it does each time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from krag_eval.matching.joins import IntArray

# Twelve letters of Hangul say about as much as five words, or 28 Latin letters.
_OF_LATIN = 0.43
_AROUND = 2  # tokens of the shared stretches in which a negation is looked for as well

_NEGATION = re.compile(
    r"않|아니|못|없|마세|마십|마시오|마라|안[되돼]|불가|(?:^|\W)안(?=\W|$)"
    r"|\b(?:not|no|never|without|cannot|none|nor|neither|nobody|nothing|t)\b"
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
# Of percent no token is left, so that these have nothing in their place.
_RATES = frozenset(("percentage", "point", "points", "포인트", "p"))


class _Reading(NamedTuple):
    """What counts in texts of letters or of words.

    Attributes:
        block: Tokens of a stretch that is shared, and not by chance.
        at_an_end: The same where the passage begins or ends.
        anchor: Tokens of the longest one, without which two texts are not alike.
        longer: By how much the other side may be longer where one counts negations.
        joined_by: What stands between tokens.
    """

    block: float
    at_an_end: float
    anchor: float
    longer: int
    joined_by: str


_LETTERS, _WORDS = _Reading(4.0, 2.0, 8.0, 12, ""), _Reading(2.0, 1.0, 3.0, 6, " ")


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


def contradiction(
    passage: IntArray,
    document: IntArray,
    spans: Sequence[tuple[int, int]],
    names: Sequence[str],
    *,
    by_letters: bool,
    numbers: bool = True,
    polarity: bool = True,
    piece: bool = False,
) -> Contradiction | None:
    """Return what a document says otherwise than a passage that it nearly holds.

    Args:
        passage: Its tokens by number, those of amounts and dates in one spelling.
        document: Likewise.
        spans: The stretches of the document that the passage shares, ascending.
        names: The tokens that the numbers stand for.
        by_letters: Whether tokens are letters, or words.
        numbers: Whether numbers and their units count.
        polarity: Whether negations and bounds count, in Korean and English.
        piece: Whether the document holds less than half, so that only what lies between the
            stretches that it holds counts, and only where these are close together.

    >>> names = "so the fee for 2024 is 30 euros a year and more 2023".split()
    >>> passage, document = np.arange(1, 12), np.array([0, 1, 2, 3, 12, *range(5, 12)])
    >>> contradiction(passage, document, [(1, 12)], names, by_letters=False)
    Contradiction(kind='number', passage=(3, 4), document=(4, 5))
    >>> contradiction(passage[:3], document, [(1, 4)], names, by_letters=False)
    """
    if _verbatim(passage, document):
        return None
    words = [names[one] for one in passage.tolist()]
    found: Contradiction | None = None
    for start, stop in _windows(len(passage), len(document), spans):
        window = [names[one] for one in document[start:stop].tolist()]
        found = _Aligned(words, window, by_letters).contradiction(numbers, polarity, piece)
        if found is None:
            return None
        there, end = found.document
        found = found._replace(document=(there + start, end + start))
    return found


def _verbatim(passage: IntArray, document: IntArray) -> bool:
    """Return whether a document has a passage token by token.

    >>> _verbatim(np.array([2, 3]), np.array([1, 2, 3])), _verbatim(np.array([2]), np.array([3]))
    (True, False)
    """
    wanted, text = passage.tobytes(), document.tobytes()
    at = text.find(wanted)
    while at >= 0 and at % passage.itemsize:
        at = text.find(wanted, at + 1)
    return at >= 0


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
    return [(max(0, start - margin), min(room, stop + margin)) for _, start, stop in likely]


class _Aligned:
    """A passage beside the part of a document where it may stand."""

    def __init__(self, passage: Sequence[str], window: Sequence[str], by_letters: bool) -> None:
        self.passage, self.window = passage, window
        self.reading = _LETTERS if by_letters else _WORDS
        self.by_letters = by_letters
        weights = np.ones(len(passage))
        if by_letters:
            weights[[one.isascii() and one.isalpha() for one in passage]] = _OF_LATIN
        self.weight = np.append(0.0, np.cumsum(weights))

    def contradiction(self, numbers: bool, polarity: bool, piece: bool) -> Contradiction | None:
        """Return the first thing that is said otherwise."""
        shared = self._shared()
        if not shared or (piece and not self._is_close(shared)):
            return None
        ends = len(self.passage), len(self.window)
        every = [_Shared(0, 0, 0, 0), *shared, _Shared(ends[0], ends[0], ends[1], ends[1])]
        for place, (one, other) in enumerate(pairwise(every)):
            inside = 0 < place < len(shared)
            if self._slides(one, other) if inside else piece:
                continue
            ours, theirs = slice(one.stop, other.start), slice(one.end, other.there)
            if not inside:
                # What the passage lacks at its ends was cut off; of the other side, as much counts.
                most = (ours.stop - ours.start + 4) * (ours.stop > ours.start)
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
                there = theirs.start, theirs.stop
                return Contradiction(kind, (ours.start, ours.stop), there)
        return None

    def _shared(self) -> list[_Shared]:
        """Return the stretches that both have, if one of them is long enough to tell."""
        from rapidfuzz.distance import Indel

        total, n = float(self.weight[-1]), len(self.passage)
        least, kept, longest = min(self.reading.block, total), [], 0.0
        for block in Indel.opcodes(self.passage, self.window):
            start, stop = block.src_start, block.src_end
            same = block.tag == "equal"
            size = float(self.weight[stop] - self.weight[start]) if same else 0.0
            at_an_end = start == 0 or stop == n
            if size and size >= min(least, self.reading.at_an_end if at_an_end else least):
                kept.append(_Shared(start, stop, block.dest_start, block.dest_end))
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
        there = {*filter(_is_number, their_gap)}
        missing = {*filter(_is_number, gap)} - there
        if not inside:
            goes_on = there and 2 * len(their_gap) >= len(gap)
            missing = {n for n in missing if goes_on and not _cut(n, there, is_first)}
        if missing:
            return "number"
        if not inside or not their_gap or one.stop - one.start < self.reading.block:
            return ""
        if not _is_number(self.passage[one.stop - 1]):
            return ""
        units = self._unit(self.passage, one.stop), self._unit(self.window, one.end)
        differ = units[0] != units[1] and (all(units) or not _RATES.isdisjoint(units))
        return "unit" if differ else ""

    def _is_close(self, shared: Sequence[_Shared]) -> bool:
        """Return whether of the passage, from the first stretch to the last, most is shared."""
        held = sum(self.weight[one.stop] - self.weight[one.start] for one in shared)
        extent = self.weight[shared[-1].stop] - self.weight[shared[0].start]
        return bool(2 * held >= extent)

    def _unit(self, tokens: Sequence[str], at: int) -> str:
        """Return the unit at a place, if there is one."""
        if self.by_letters:
            found = _UNIT.match("".join(tokens[at : at + _LONGEST_UNIT]))
            return found[0] if found else ""
        return tokens[at] if at < len(tokens) and _UNIT.fullmatch(tokens[at]) else ""

    def _turned(self, ours: slice, theirs: slice) -> str:
        """Return whether one side says no, or names another bound."""
        gap, their_gap = self.passage[ours], self.window[theirs]
        if not (gap or their_gap) or (self.by_letters and _misread(gap, their_gap)):
            return ""
        texts = [
            self.reading.joined_by.join(tokens[max(0, at.start - _AROUND) : at.stop + _AROUND])
            for tokens, at in ((self.passage, ours), (self.window, theirs))
        ]
        if len(their_gap) > len(gap) + self.reading.longer:
            return ""
        # Among letters an English word has no ends of its own, but those of what is in between.
        alone = [self.reading.joined_by.join(tokens) for tokens in (gap, their_gap)]
        for said in (texts, alone):
            if len({len(_NEGATION.findall(text)) for text in said}) > 1:
                return "negation"
        bounds = [Counter(_BOUND.findall(text)) for text in texts]
        return "bound" if all(bounds) and bounds[0] != bounds[1] else ""


def in_words(
    said: Contradiction, passage: Sequence[str], document: Sequence[str], *, by_letters: bool
) -> SaidOtherwise:
    """Return a contradiction in words: of numbers, those that differ; else, what is around it.

    >>> in_words(Contradiction("number", (1, 3), (1, 2)), ["in", "2024", "the"], ["in", "23"],
    ...     by_letters=False)
    SaidOtherwise(kind='number', passage='2024', document='23')
    """
    sides, around = [], 0 if said.kind == "number" else _AROUND
    for (start, stop), tokens in ((said.passage, passage), (said.document, document)):
        whole = [*_once(tokens[max(0, start - around) : stop + around], by_letters)]
        sides.append(whole)
    if said.kind == "number":
        numbers = [[*filter(_is_number, side)] for side in sides]
        others = [[one for one in side if one not in numbers[1 - at]]
                  for at, side in enumerate(numbers)]  # fmt: skip
        sides = [other or side for other, side in zip(others, sides, strict=True)]
        return SaidOtherwise(said.kind, *(" ".join(side) for side in sides))
    joined_by = (_LETTERS if by_letters else _WORDS).joined_by
    return SaidOtherwise(said.kind, *(joined_by.join(side) for side in sides))


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
    if is_first:
        return any(one.endswith(number) for one in there)
    return any(one.startswith(number) for one in there)


def _misread(gap: Sequence[str], there: Sequence[str]) -> bool:
    """Return whether letters of Hangul are the same but for their final consonants."""
    return len(gap) == len(there) and all(
        min(pair) >= "가"
        and max(pair) <= "힣"
        and len({(ord(x) - 0xAC00) // 28 for x in pair}) == 1
        for pair in zip(gap, there, strict=True)
    )
