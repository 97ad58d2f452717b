"""Whether a chunk says something else than the passage it nearly holds: numbers and negations.

A chunk of last year's notice holds nearly all words of this year's passage, and contradicts it. So
the two are aligned, and what lies between the stretches they share is compared: a number that
another one replaces, another unit behind the same number, a negation or a bound too many.

What was cut off contradicts nothing, nor does what was misread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from krag_eval.matching.joins import IntArray

#: What contradicts.
KINDS = ("number", "unit", "negation", "bound")

# A stretch counts from so many tokens on, and one of them must be so long, in letters and words.
_BLOCK = {True: 4.0, False: 2.0}
_ANCHOR = {True: 8.0, False: 3.0}
# Twelve letters of Hangul say as much as five words or 28 letters of the Latin alphabet.
_LATIN = 0.43
# How much longer the other side may be for its negations to be held against it.
_LONGER = {True: 12, False: 6}
_AROUND = 2

_NEGATION = re.compile(
    r"않|아니|못|없|마세|마십|마시오|마라|안[되돼]|불가|(?:^|\W)안(?=\W|$)"
    r"|\b(?:not|no|never|without|cannot|none|nor|neither|nobody|nothing|t)\b"
)
_BOUND = re.compile(
    r"이상|이하|초과|미만|이내|이전|이후|포함|제외|무상|유상|전액|일부"
    r"|\b(?:before|after|above|below|over|under|more|less|most|least|except|unless|only|until"
    r"|increased?|decreased?|rose|fell|up|down|higher|lower|excluding|including)\b"
)
_UNITS = tuple(sorted(
    (  # noqa: SIM905 - a list literal would take one line for each
        "개월 영업일 주일 시간 퍼센트 포인트 만원 억원 조원 만 억 조 천 백 원 년 월 일 주 분 초 명 인 개 건 "
        "권 점 호 층 회 번 배 세 살 도 대 가구 달러 cm mm km kg mg ml gb mb kb tb ms kw m g l t s p "
        "million billion thousand trillion days day weeks week months month years year hours hour "
        "minutes minute seconds second milliseconds miles mile kilometers kilometer meters feet "
        "dollars euros gallons barrels liters litres points point per"
    ).split(),
    key=len, reverse=True,
))  # fmt: skip


class Found(NamedTuple):
    """What contradicts, and where: tokens of the passage and of the document."""

    kind: str
    passage: tuple[int, int]
    document: tuple[int, int]


class _Region(NamedTuple):
    """A stretch of both sides: first tokens, and those after the last."""

    start: int
    stop: int
    other_start: int
    other_stop: int


def contradiction(
    passage: Sequence[str],
    document: Sequence[str],
    spans: Sequence[tuple[int, int]],
    *,
    by_letters: bool,
    numbers: bool = True,
    polarity: bool = True,
) -> Found | None:
    """Return what a document says otherwise than a passage that it nearly holds.

    Args:
        passage: Its tokens, with numbers in one spelling.
        document: Likewise.
        spans: The stretches of the document that the passage shares, ascending.
        by_letters: Whether tokens are letters or words.
        numbers: Whether numbers and their units count.
        polarity: Whether negations and bounds count.
    """
    best: Found | None = None
    for start, stop in windows(len(passage), len(document), spans):
        best = _compared(passage, document[start:stop], by_letters, numbers, polarity)
        if best is None:
            return None
        begin, end = best.document
        best = best._replace(document=(begin + start, end + start))
    return best


def windows(
    size: int, room: int, spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the parts of a document where a passage may stand, the likeliest first.

    Args:
        size: Tokens of the passage.
        room: Tokens of the document.
        spans: The stretches that are shared, ascending.
    """
    pad = 8 + size // 3
    clusters: list[list[int]] = []
    for start, stop in spans:
        if clusters and stop - clusters[-1][0] <= size + pad:
            clusters[-1][1] = stop
            clusters[-1][2] += stop - start
        else:
            clusters.append([start, stop, stop - start])
    most = max((held for *_, held in clusters), default=0)
    likely = sorted((c for c in clusters if 2 * c[2] > most), key=lambda c: -c[2])
    return [(max(0, start - pad), min(room, stop + pad)) for start, stop, _ in likely]


def _compared(
    passage: Sequence[str], window: Sequence[str], by_letters: bool, numbers: bool, polarity: bool
) -> Found | None:
    shared = _shared(passage, window, by_letters)
    if not shared:
        return None
    ends = _Region(0, 0, 0, 0), _Region(len(passage), len(passage), len(window), len(window))
    regions = [ends[0], *shared, ends[1]]
    for place, (one, other) in enumerate(zip(regions, regions[1:], strict=False)):
        inside = 0 < place < len(regions) - 2
        found = _between(
            passage, window, one, other, inside, place == 0, by_letters, numbers, polarity
        )
        if found is not None:
            return found
    return None


def _shared(
    passage: Sequence[str], window: Sequence[str], by_letters: bool
) -> list[_Region]:
    """Return the stretches that both have, if one of them is long enough to tell."""
    from rapidfuzz.distance import Indel

    weights = np.ones(len(passage))
    if by_letters:
        weights[[one.isascii() and one.isalpha() for one in passage]] = _LATIN
    total = np.append(0.0, np.cumsum(weights))
    need = min(_BLOCK[by_letters], float(total[-1]))
    kept, longest = [], 0.0
    for tag, start, stop, other_start, other_stop in Indel.opcodes(passage, window):
        if tag != "equal":
            continue
        size = float(total[stop] - total[start])
        at_edge = start == 0 or stop == len(passage)
        if size >= need or (at_edge and size >= min(2.0, need)):
            kept.append(_Region(start, stop, other_start, other_stop))
            longest = max(longest, size)
    return kept if longest >= min(_ANCHOR[by_letters], float(total[-1]) * 0.999) else []


def _between(
    passage: Sequence[str],
    window: Sequence[str],
    one: _Region,
    other: _Region,
    inside: bool,
    first: bool,
    by_letters: bool,
    numbers: bool,
    polarity: bool,
) -> Found | None:
    """Return what contradicts between two stretches that both sides have."""
    ours, theirs = (one.stop, other.start), (one.other_stop, other.other_start)
    if ours[0] == ours[1] and theirs[0] == theirs[1]:
        return None
    if inside and _slides(passage, window, one, other):
        return None
    if not inside:
        if ours[0] == ours[1]:
            return None
        most = ours[1] - ours[0] + 4
        theirs = (max(theirs[0], theirs[1] - most), theirs[1]) if first else (
            theirs[0], min(theirs[1], theirs[0] + most))  # fmt: skip
    gap, their_gap = passage[slice(*ours)], window[slice(*theirs)]
    if numbers:
        missing = set(filter(_is_number, gap)) - set(their_gap)
        had = {*filter(_is_number, their_gap)}
        goes_on = had and 2 * len(their_gap) >= len(gap)
        if not inside and goes_on:
            missing = {one for one in missing if not _cut(gap, their_gap, one, first)}
        if missing and (inside or goes_on):
            return Found("number", ours, theirs)
        long = one.stop - one.start >= _BLOCK[by_letters]
        if inside and long and _is_number(passage[ours[0] - 1]) and their_gap:
            units = [_unit(tokens[at : at + 4], by_letters)
                     for tokens, at in ((passage, ours[0]), (window, theirs[0]))]  # fmt: skip
            if all(units) and units[0] != units[1]:
                return Found("unit", ours, theirs)
    if polarity and inside:
        x = passage[max(0, ours[0] - _AROUND) : ours[1] + _AROUND]
        y = window[max(0, theirs[0] - _AROUND) : theirs[1] + _AROUND]
        if len(y) <= len(x) + _LONGER[by_letters] and not _misread(gap, their_gap):
            said = [("" if by_letters else " ").join(tokens) for tokens in (x, y)]
            if len({len(_NEGATION.findall(text)) for text in said}) > 1:
                return Found("negation", ours, theirs)
            bounds = [Counter(_BOUND.findall(text)) for text in said]
            if all(bounds) and bounds[0] != bounds[1]:
                return Found("bound", ours, theirs)
    return None


def _slides(
    passage: Sequence[str], window: Sequence[str], one: _Region, other: _Region
) -> bool:
    """Return whether the passage's first or last words stand beside the others after all."""
    if one.stop != other.start:
        return False
    first, last = passage[one.start : one.stop], passage[other.start : other.stop]
    before, after = other.other_start, one.other_stop
    return (one.start == 0 and window[max(0, before - len(first)) : before] == first) or (
        other.stop == len(passage) and window[after : after + len(last)] == last
    )


def _misread(gap: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether the same letters of Hangul stand there, with other final consonants."""
    return len(gap) == len(theirs) and all(
        len(a) == len(b) == 1 and "가" <= a <= "힣" and "가" <= b <= "힣" and (ord(a) - 0xAC00) // 28 == (ord(b) - 0xAC00) // 28
        for a, b in zip(gap, theirs, strict=True)
    )


def _cut(gap: Sequence[str], theirs: Sequence[str], number: str, first: bool) -> bool:
    """Return whether a number may have been cut in two where the passage begins or ends."""
    if first:
        return any(_is_number(one) and one.endswith(number) for one in theirs)
    begins = "".join(dict.fromkeys(filter(_is_number, gap)))
    begins = begins.rstrip("0") if begins.endswith("0000") else begins
    return any(_is_number(one) and one.startswith(begins) for one in theirs)


def _is_number(token: str) -> bool:
    return token[0].isdecimal()


def _unit(tokens: Sequence[str], by_letters: bool) -> str | None:
    if not by_letters:
        return tokens[0] if tokens and tokens[0] in _UNITS else None
    text = "".join(tokens)
    return next((unit for unit in _UNITS if text.startswith(unit)), None)


def verbatim(passage: IntArray, document: IntArray) -> bool:
    """Return whether a document has a passage token by token."""
    wanted, text, width = passage.tobytes(), document.tobytes(), passage.itemsize
    at = text.find(wanted)
    while at >= 0 and at % width:
        at = text.find(wanted, at + 1)
    return at >= 0

