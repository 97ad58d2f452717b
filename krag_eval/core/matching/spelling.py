"""Amounts, dates, times, units and a few words in one spelling, where two texts differ.

What two texts say alike they have alike: ``$1.2 million`` and 1,200,000 dollars, 7천만 원 and
70,000,000원, ``March 3, 2024`` and 2024-03-03, 5 percent and 5%. Whole texts are never rewritten:
damage would break one side alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from krag_eval.core.matching import english, korean
from krag_eval.core.matching.english import CURRENCIES

YEAR = re.compile(r"(?:19|20)\d\d")

# Units and currencies behind a number, as they are written in either language.
_IN_LANGUAGES = (english.UNITS, r"(?:{})(?![a-z0-9])"), (korean.UNITS, "(?:{})")
_UNITS = {
    unit: "|".join(form.format(units[unit]) for units, form in _IN_LANGUAGES if unit in units)
    for unit in {**english.UNITS, **korean.UNITS}
}
_NAMES = [*_UNITS]
_UNIT = re.compile(rf"(?<=\d)\s*(?:{'|'.join(f'({one})' for one in _UNITS.values())})")
_CURRENCY_BEFORE = re.compile(r"(?:us ?)?([$€£¥₩])\s?(-?\d+(?:\.\d+)?)")
_REWRITINGS = (english.SPELLED, english.REWRITINGS), (korean.SPELLED, korean.REWRITINGS)
_SPACE = re.compile(r"(?<!\d)[^\w.:%]+|[^\w.:%]+(?!\d)|(?<!\d)[.:]|[.:](?!\d)")
# 2.50 is 2.5, and 3.0 is 3; 2024.1.10 has no decimals.
_DECIMALS = re.compile(r"(?<![\d.])(\d+)(?:\.0+|(\.\d*?[1-9])0+)(?![\d.])")
_VALUE = re.compile(
    r"(?P<number>\d+(?:[.:/-]\d+)*(?:th\b)?)(?: <(?P<unit>[^>]+)>)?"
    rf"|{english.COUNTED.pattern}|{korean.COUNTED}"
)
_ASIDE = re.compile(
    r"\s*(?:[(\[（][^\d()\[\]（）]{1,24}[)\]）]|\[\d{1,3}\]|-\s?\d{1,4}\s?-|\(?\d{1,2}[.)]|\(?[a-z]\)"
    r"|\(?[가나다라마바사아자차카타파하][.)]|[①-⑳•○●ㅇ*-])\s*"
)
# What may be spelled in another way: digits, numbers in words, and words of the lists.
_MAY_BE_SPELLED = re.compile(
    rf"\d|{english.COUNTED.pattern}|&|['’]t\b|\bcan ?not\b|\bdoctor\b|\bcheque|\bversus\b|\bnoon\b"
    r"|\bhundred\b|요일|[둘두셋세석넷네넉섯곱덟홉열물무른흔쉰순첫십백천만억조]|하나|한\s?\w|아니"
)


def is_aside(text: str) -> bool:
    r"""Return whether a text is nothing but a mark of a list, note or page, or a gloss in brackets.

    >>> [*map(is_aside, ("(解止)", " [12] ", "\n2) ", "- 3 -", " (see Table 3)", "2) Fees"))]
    [True, True, True, True, False, False]
    """
    return _ASIDE.fullmatch(text) is not None


def may_be_spelled(text: str) -> bool:
    """Return whether a text in lower case has what may be spelled in another way."""
    return _MAY_BE_SPELLED.search(text) is not None


def same_thing(one: str, other: str) -> bool:
    """Return whether two short texts are spellings of one amount, date, time, unit or word.

    >>> same_thing("$1.2B", "1.2 billion dollars"), same_thing("오후 3시 30분", "15:30")
    (True, True)
    >>> same_thing("1억 2천만 원", "120,000,000원".replace(",", "")), same_thing("9 am", "9 pm")
    (True, False)
    """
    return _without_spaces(one) == _without_spaces(other) != ""


def values(text: str) -> list[tuple[str, str]]:
    """Return the numbers, months, weekdays and other words that count, each with its unit.

    >>> values("3억 5천만 원 on March 3, 5 km at 9 am")
    [('350000000', 'krw'), ('3.3', ''), ('5', 'km'), ('9', '')]
    >>> values("다섯 번째 금요일에 사람이 스물네 명")
    [('5', ''), ('금', ''), ('24', 'person')]
    """
    text = text.casefold()
    found = _VALUE.finditer(_canonical(text)) if may_be_spelled(text) else ()
    return [(_value(one), one["unit"] or "") for one in found]


def is_unit(word: str) -> bool:
    """Return whether a word says what, how much or when behind a number."""
    return values(f"1 {word}") != [("1", "")]


def _value(found: re.Match[str]) -> str:
    number = found["number"]
    if number is None:
        return english.COUNTS.get(found[0], found[0])
    return number.removesuffix(":00").lstrip("0") or "0"


def are_others(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> bool:
    """Return whether of as many values one is another, or has another unit."""
    pairs = zip(ours, theirs, strict=True)
    return len(ours) == len(theirs) and any(
        one != other or (unit and its and unit != its) for (one, unit), (other, its) in pairs
    )


@lru_cache(1 << 12)
def _without_spaces(text: str) -> str:
    return _SPACE.sub("", _canonical(text.casefold()))


@lru_cache(1 << 12)
def _canonical(text: str) -> str:
    """Return a short text as all its spellings are written, units in angle brackets."""
    for spelled, rewritings in _REWRITINGS:
        for pattern, written in rewritings if spelled.search(text) else ():
            text = pattern.sub(written, text)
    text = _CURRENCY_BEFORE.sub(lambda found: f"{found[2]} <{CURRENCIES[found[1]]}> ", text)
    text = _UNIT.sub(lambda found: f" <{_NAMES[(found.lastindex or 1) - 1]}> ", text)
    return _DECIMALS.sub(r"\1\2", text)
