"""How English writes numbers, dates, times, units and a few words: all that is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

#: A pattern, and what stands in the place of what it finds.
Rewriting: TypeAlias = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

#: Numbers below twenty, and the tens, by their words.
_BELOW_20 = (  # noqa: SIM905 - a list literal would take one line for each
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_POWERS = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_UNUSUAL = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
CARDINALS = {word: value for value, word in enumerate(_BELOW_20)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
ORDINALS = _UNUSUAL | {
    word.removesuffix("y") + ("ieth" if word in _TENS else "th"): value
    for word, value in CARDINALS.items()
    if value not in _UNUSUAL.values()
}
MONTHS = (  # noqa: SIM905
    "january february march april may june july august september october november december"
).split()
#: Names of months, long and short -> the long one.
MONTH_OF = {name: month for month in MONTHS for name in (month, month[:3])} | {"sept": "september"}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905

#: Words that count -> what, so that two of them are the same or not.
COUNTS: dict[str, str] = {
    **{word: str(value) for word, value in CARDINALS.items()},
    **{word: f"{value}th" for word, value in ORDINALS.items()},
    **MONTH_OF,
    **{name: day for day in _WEEKDAYS for name in (day, day[:3])},
    **{one: one for one in "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi".split()},  # noqa: SIM905
}
COUNTED = re.compile(rf"\b(?:{'|'.join(sorted(COUNTS, key=len, reverse=True))})\b")

#: Unit -> how it is written behind a number.
UNITS = {
    "%p": r"percentage(?: points?)?|%p",
    "%": r"per ?cent|pct|%",
    "km": r"km|kilomet(?:er|re)s?",
    "cm": r"cm|centimet(?:er|re)s?",
    "mm": r"mm|millimet(?:er|re)s?",
    "m2": r"m2|sq\.? ?m|square met(?:er|re)s?|sqm",
    "m": r"m|met(?:er|re)s?",
    "mi": r"mi|miles?",
    "ft": r"ft|feet|foot",
    "kg": r"kg|kilograms?|kilos?",
    "mg": r"mg|milligrams?",
    "g": r"g|grams?",
    "t": r"t|tons?|tonnes?",
    "ml": r"ml|millilit(?:er|re)s?",
    "l": r"l|lit(?:er|re)s?",
    "ms": r"ms|milliseconds?",
    "s": r"s|secs?|seconds?",
    "min": r"min|mins|minutes?",
    "h": r"h|hrs?|hours?",
    "d": r"days?",
    "w": r"weeks?|wks?",
    "mo": r"months?",
    "y": r"years?|yrs?",
    "kb": r"kb|kilobytes?",
    "mb": r"mb|megabytes?",
    "gb": r"gb|gigabytes?",
    "tb": r"tb|terabytes?",
    "kw": r"kw|kilowatts?",
    "watt": r"watts?",
    "v": r"v|volts?",
    "c": r"° ?c|c|degrees celsius",
    "am": r"a\.? ?m\.?",
    "pm": r"p\.? ?m\.?",
    "thousand": r"thousand",
    "million": r"million",
    "billion": r"billion",
    "trillion": r"trillion",
    "bbl": r"barrels?",
    "gal": r"gallons?",
    "usd": r"us ?\$|\$|usd|(?:u\.s\.? |us )?dollars?",
    "eur": r"€|eur|euros?",
    "gbp": r"£|gbp|pounds?(?: sterling)?",
    "jpy": r"¥|jpy|yen",
    "krw": r"₩|krw|won",
}
#: Currencies before a number -> these.
CURRENCIES = dict(zip("$€£¥₩", ("usd", "eur", "gbp", "jpy", "krw"), strict=True))
_MAGNITUDE = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "billion": 9,
              "t": 12, "tn": 12, "trillion": 12}  # fmt: skip


def shifted(number: str, zeros: int) -> str:
    """Return a number times a power of ten, in digits.

    >>> shifted("1.2", 6), shifted("05", 0), shifted("1.25", 1)
    ('1200000', '5', '12.5')
    """
    whole, _, decimals = number.partition(".")
    digits = whole + decimals.ljust(zeros, "0")[:zeros]
    rest = decimals[zeros:].rstrip("0")
    return (digits.lstrip("0") or "0") + (f".{rest}" if rest else "")


def _from_words(found: re.Match[str]) -> str:
    """Return a number that is written in words in digits."""
    total = part = 0
    is_ordinal = False
    for word in re.findall("[a-z]+", found[0]):
        if word in _POWERS:
            part = (part or 1) * _POWERS[word]
            if _POWERS[word] > 100:
                total, part = total + part, 0
        elif word not in ("and", "a"):
            part += CARDINALS.get(word, ORDINALS.get(word, 0))
            is_ordinal |= word in ORDINALS
    return f"{total + part}{'th' if is_ordinal else ''}"


def clock(hour: int, minute: int, half: str = "") -> str:
    """Return a time of the day in 24 hours."""
    if half:
        hour = hour % 12 + 12 * (half == "p")
    return f"{hour}:{minute:02}"


def _time(found: re.Match[str]) -> str:
    hour, minute, half = found.groups()
    return f" {clock(int(hour), int(minute or 0), half or '')} "


def _magnitude(found: re.Match[str]) -> str:
    """Return a sum in full; 5 m may be metres, unless a currency stands before it."""
    currency, number, unit = found.groups()
    if unit in ("m", "t") and not currency:
        return found[0]
    return f"{currency or ''}{shifted(number, _MAGNITUDE[unit])} "


def _date(found: re.Match[str]) -> str:
    """Return a date with the name of its month as year, month and day."""
    parts = found.groupdict()
    month = MONTHS.index(MONTH_OF[parts["month"]]) + 1
    day, year = int(parts["day"] or parts["day2"]), parts["year"]
    return f" {year + '.' if year else ''}{month}.{day} "


_NUMBER = "|".join(sorted((*CARDINALS, *ORDINALS, *_POWERS), key=len, reverse=True))
_MAGNITUDES = "|".join(sorted(_MAGNITUDE, key=len, reverse=True))
_HOUR = r"(?<![\d:.])([01]?\d|2[0-4])"
_NAMES = "|".join(sorted(MONTH_OF, key=len, reverse=True))
#: What there is in all that is rewritten.
SPELLED = re.compile("[a-z&#№:]")
REWRITINGS: list[Rewriting] = [
    (re.compile(r"\bwon['’ ]t\b"), "will not"),
    (re.compile(r"\bcan(?:not|['’ ]?t)\b"), "can not"),
    (re.compile(r"n['’ ]t\b"), " not"),
    (re.compile("&"), " and "),
    (re.compile(r"\bdoctor\b"), "dr"),
    (re.compile(r"\b(?:no|nr)\.? ?(?=\d)|\bnumber (?=\d)|#(?=\d)|№ ?"), "number "),
    (re.compile(r"\bcheque"), "check"),
    (re.compile(r"\bversus\b"), "vs"),
    (re.compile(r"\bnoon\b"), "12:00"),
    (re.compile(r"\bmidnight\b"), "0:00"),
    (re.compile(r"\ba dozen\b"), "12"),
    (re.compile(rf"(?<!\d )(?<!\d)\b(?:a )?(?:{_NUMBER})(?:(?:[\s-]|\sand\s)+(?:{_NUMBER}))*\b"),
     _from_words),
    (re.compile(r"(?<=\d)(?:st|nd|rd)\b"), "th"),
    (re.compile(
        rf"\b(?:(?P<day>\d{{1,2}})(?:th)?(?: of)? )?(?P<month>{_NAMES})\b\.?"
        rf"(?(day)|\s(?P<day2>\d{{1,2}})(?:th)?\b(?!:))"
        r"(?:,?\s(?P<year>(?:19|20)\d\d)\b)?"), _date),
    (re.compile(rf"{_HOUR}(?:[:.]([0-5]\d))?(?::00)? ?([ap])\.? ?m\b\.?"), _time),
    (re.compile(rf"{_HOUR}()() ?o['’ ]clock"), _time),
    (re.compile(rf"{_HOUR}:([0-5]\d)(?::00)?(?![\d:])()(?! ?[ap]\.? ?m)"), _time),
    (re.compile(rf"([$€£¥₩] ?)?(\d+(?:\.\d+)?) ?({_MAGNITUDES})\b"), _magnitude),
    (re.compile(r"(?<=\d)['’]s\b"), "s"),
]  # fmt: skip
