"""Numbers, amounts and dates in one spelling, among the tokens of many texts.

What two texts say alike they should have alike: ``$1.2 million`` and 1,200,000, 7천만 원 and
70,000,000원, ``March 3, 2024`` and 2024-03-03, 5 percent and 5%. Tokens have neither points nor
spaces, so that what is rewritten here is a matter of words (or letters) that follow one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias
from unicodedata import decimal

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.matching import english, korean
from krag_eval.core.matching.english import COUNTS, MAGNITUDES, MONTHS, Rewriting
from krag_eval.core.matching.joins import BoolArray, IntArray
from krag_eval.core.matching.korean import MYRIADS
from krag_eval.core.matching.numbering import TokenNumbers, amounts_in

#: Where something is spelled otherwise: the first token, the one after the last, and what it is.
Edit: TypeAlias = tuple[int, int, list[str]]

_COUNTED = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_ORDINALS = (  # noqa: SIM905 - a list literal would take one line for each
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
).split()
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
#: Number words of English -> how the same number is written in digits.
NUMBER_WORDS: dict[str, str] = {
    **{word: str(value) for value, word in enumerate(_COUNTED, 1)},
    **{word: f"{value}{_ENDINGS.get(value, 'th')}" for value, word in enumerate(_ORDINALS, 1)},
}
_MONTHS, _MONTH_OF = MONTHS, english.MONTH_OF
_PERCENT = ("percent", "pct")
_BEHIND = (*_PERCENT, "per", "thousand")
_PERCENT_KO = ("퍼", "프")  # 퍼센트, 프로
_LONGEST = 40  # letters of an amount
_MOST_DIGITS = 18  # of a sum; Python refuses to read thousands
_TENS = {"백": 2, "천": 3}
# What an amount may count, as it begins; "만" behind a number is also "only".
_COUNTABLE = frozenset("원명개건주달톤대여회부권마평장호세가인배그킬헥리달유엔위㎡kt")
YEAR = re.compile(r"(?:19|20)\d\d")
_MONTH = re.compile("0?[1-9]|1[0-2]")
_DAY = re.compile(r"(0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?")


# Currencies and units as they are written in either language, the longest spelling first.
_UNITS = {
    unit: re.compile(rf"\s?(?:{korean_unit}|(?:{english_unit})(?![a-z0-9]))")
    for unit, english_unit, korean_unit in (
        (unit, english.UNITS.get(unit, "(?!)"), korean.UNITS.get(unit, "(?!)"))
        for unit in {**english.UNITS, **korean.UNITS}
    )
}
_UNIT_BEHIND_A_NUMBER = [
    (re.compile(rf"(?<=\d){pattern.pattern}"), f" {unit} ") for unit, pattern in _UNITS.items()
]
_CURRENCIES = {
    currency: re.compile(
        rf"(?:{spelling})(?![a-z])|(?<=[\d천만억조 ])(?:{korean.CURRENCIES[currency]})"
    )
    for currency, spelling in english.CURRENCIES.items()
}
_REWRITINGS: list[Rewriting] = [*english.REWRITINGS, *korean.REWRITINGS]
_SPACE = re.compile(r"(?<!\d)[^\w.:%]+|[^\w.:%]+(?!\d)|(?<!\d)[.:]|[.:](?!\d)")
# 2.50 is 2.5, and 3.0 is 3; 2024.1.10 has no decimals.
_DECIMALS = re.compile(r"(?<![\d.])(\d+)(?:\.0+|(\.\d*?[1-9])0+)(?![\d.])")
# What may be spelled in another way: digits, numbers in words, and words of the lists.
_MAY_BE_SPELLED = re.compile(
    rf"\d|{english.COUNTED.pattern}|&|['’]t\b|\bcan ?not\b|\bdoctor\b|\bcheque|\bversus\b|\bnoon\b"
    r"|\bhundred\b|[하한둘두셋세석넷네넉섯곱덟홉열물무른흔쉰순첫십백천만억조]|아니"
)


def stands_apart(passage: str, document: str) -> bool:
    """Return whether a text that begins with a number stands in another, in no longer number.

    >>> stands_apart("1000원", "가격은 11000원"), stands_apart("7천만 원", "모두 70000000원")
    (False, True)
    """
    whole, text = (_canonical.__wrapped__(one) for one in (passage, document))
    return re.search(rf"(?<![\d.]){re.escape(whole)}", text) is not None


def same_thing(one: str, other: str) -> bool:
    """Return whether two short texts are spellings of one amount, date, time, unit or word.

    >>> same_thing("$1.2B", "1.2 billion dollars"), same_thing("오후 3시 30분", "15:30")
    (True, True)
    >>> same_thing("1억 2천만 원", "120,000,000원".replace(",", "")), same_thing("9 am", "9 pm")
    (True, False)
    """
    if not (_MAY_BE_SPELLED.search(one.casefold()) or _MAY_BE_SPELLED.search(other.casefold())):
        return False
    return _canonical(one) == _canonical(other)


@lru_cache(1 << 12)
def _canonical(text: str) -> str:
    """Return a short text as all its spellings are written."""
    text = text.casefold()
    currencies = []
    for pattern, written in _REWRITINGS:
        text = pattern.sub(written, text)
    for currency, pattern in _CURRENCIES.items():
        text, n = pattern.subn(" ", text)
        currencies += [currency] * (n > 0)
    for pattern, unit in _UNIT_BEHIND_A_NUMBER:
        text = pattern.sub(unit, text)
    text = _DECIMALS.sub(r"\1\2", text)
    return _SPACE.sub("", text) + "".join(currencies)


def counted(text: str) -> list[str]:
    """Return the months, weekdays, ordinals and numbers that a text has in words, in order."""
    return [COUNTS[word] for word in english.COUNTED.findall(text)] + korean.counted(text)


def unit_at(text: str) -> str:
    """Return the unit that a text begins with, the same for each of its spellings; or nothing.

    >>> unit_at(" kilometers long"), unit_at("분기에"), unit_at("분에"), unit_at("boats")
    ('km', 'quarter', 'min', '')
    """
    found = ((pattern.match(text), unit) for unit, pattern in _UNITS.items())
    return max(((len(match[0]), unit) for match, unit in found if match), default=(0, ""))[1]


def spelled(tokens: TokenNumbers, numbers: dict[str, int], *, by_letters: bool) -> TokenNumbers:
    """Return the same texts with numbers in one spelling.

    Args:
        tokens: The texts.
        numbers: The number of each token; further ones are added, by what it numbers them with.
        by_letters: Whether tokens are letters, as of ``letter_tokens``, or words.

    >>> from krag_eval.core.matching.numbering import numbered
    >>> from krag_eval.core.matching.tokenizers import letter_tokens, word_tokens
    >>> def read(text, tokenizer):
    ...     from collections import defaultdict
    ...     from itertools import count
    ...     numbers = defaultdict(count().__next__)
    ...     tokens = numbered(tokenizer, [text], numbers)
    ...     found = spelled(tokens, numbers, by_letters=tokenizer is letter_tokens)
    ...     return [[*numbers][one] for one in found.flat]
    >>> read("On 2024-03-03, two of $1.2 million, 5 percent", word_tokens)
    ['on', 'march', '3', '2024', '2', 'of', '1', '2', 'million', '5']
    >>> "".join(dict.fromkeys(read("2024. 3. 1. 7천만 원", letter_tokens)))
    '2024년3월1일7000만원'
    """
    if by_letters:
        tokens = _rewritten(tokens, numbers, _letter_edits(tokens, numbers), times=len)
        return replace(tokens, amounts=amounts_in(numbers))
    digits = [one for one in numbers if one[0].isdecimal()]
    written = {word: NUMBER_WORDS[word] for word in NUMBER_WORDS.keys() & numbers.keys()}
    for one in digits:
        if one[0] == "0" or not one.isascii():
            written[one] = "".join(str(decimal(n, n)) for n in one).lstrip("0") or "0"
    renamed = {numbers[one]: numbers[other] for one, other in written.items()}
    same = np.arange(len(numbers), dtype=np.int32)
    same[[*renamed]] = [*renamed.values()]
    flat, kept = same.take(tokens.flat), _decimals(tokens, numbers, digits)
    flat[kept] = tokens.flat[kept]
    tokens = replace(tokens, flat=flat)
    edits = _word_edits(tokens, numbers, [*digits, *written.values()])
    return _rewritten(tokens, numbers, edits, times=lambda _: 1)


def _decimals(tokens: TokenNumbers, numbers: Mapping[str, int], digits: list[str]) -> IntArray:
    """Return where a token, such as 05 of 1.05, is not 5: it follows a number, in no date."""
    flat, ends = tokens.flat, np.cumsum(tokens.sizes)
    is_number, is_year, is_padded = np.zeros((3, len(numbers)), np.bool_)
    is_number[[numbers[one] for one in digits]] = True
    is_year[[numbers[one] for one in digits if YEAR.fullmatch(one)]] = True
    is_padded[[numbers[one] for one in digits if one[0] == "0" and one.strip("0")]] = True
    found = np.flatnonzero(is_padded.take(flat))
    text = np.searchsorted(ends, found, side="right")
    is_first, is_last = found == (ends - tokens.sizes)[text], found + 1 == ends[text]
    before, behind = (flat.take(found + n, mode="clip") for n in (-1, 1))
    follows = ~is_first & (is_number & ~is_year)[before]
    return np.asarray(found[follows & (is_last | ~is_year[behind])])


def _word_edits(
    tokens: TokenNumbers, numbers: Mapping[str, int], digits: list[str]
) -> Iterator[Edit]:
    names, flat, ends = [*numbers], tokens.flat, np.cumsum(tokens.sizes)

    def marked(chosen: Iterable[str]) -> BoolArray:
        marks = np.zeros(len(names), np.bool_)
        marks[[numbers[one] for one in chosen if one in numbers]] = True
        return marks

    # A closer look at each place takes long, so only where the words around it make an edit.
    short = [one for one in digits if len(one) < 5]
    days = [*filter(_DAY.fullmatch, short)]
    year, day, month = marked(filter(YEAR.fullmatch, short)), marked(days), marked(_MONTH_OF)
    month_number = marked(filter(_MONTH.fullmatch, short))
    rewritten_day = marked(one for one in days if not one.isdecimal())
    behind_numbers = marked(_BEHIND)
    round_sum = marked(one for one in digits if len(one) > 6 and one.endswith("000"))
    found = np.flatnonzero((year | month | behind_numbers | round_sum).take(flat))
    before, word, behind, last = (flat.take(found + n, mode="clip") for n in (-1, 0, 1, 2))
    found = found[
        round_sum[word]
        | (behind_numbers[word] & marked(digits)[before])
        | (year[word] & month_number[behind] & day[last])
        | (month[word] & (year[behind] & day[before] | rewritten_day[behind]))
        | (marked(_MONTH_OF.keys() - _MONTHS)[word] & day[behind])
    ]
    text = np.searchsorted(ends, found, side="right")
    bounds = (ends - tokens.sizes)[text].tolist(), ends[text].tolist()
    done = 0
    for at, begin, end in zip(found.tolist(), *bounds, strict=True):
        first = max(done, at - 1, begin)
        if at < first:
            continue
        words = [names[one] for one in flat[first : min(end, at + 3)].tolist()]
        edit = _word_edit(words, at - first)
        if edit is not None and words[edit[0] : edit[1]] != edit[2]:
            start, stop, written = edit
            done = first + stop
            yield first + start, done, written


def _word_edit(words: list[str], at: int) -> Edit | None:
    """Return how a number or a date is usually written, of which one word is a part."""
    word, behind = words[at], words[at + 1 :]
    if word in _MONTH_OF and behind:
        if YEAR.fullmatch(behind[0]):
            day = _DAY.fullmatch(words[at - 1]) if at else None
            return day and (at - 1, at + 2, [_MONTH_OF[word], day[1].lstrip("0"), behind[0]])
        day = _DAY.fullmatch(behind[0])
        return day and (at, at + 2, [_MONTH_OF[word], day[1].lstrip("0")])
    if YEAR.fullmatch(word) and len(behind) > 1:
        month, day_of_month = behind[:2]
        day = _DAY.fullmatch(day_of_month)
        if _MONTH.fullmatch(month) and day:
            return at, at + 3, [_MONTHS[int(month) - 1], day[1].lstrip("0"), word]
    if word == "thousand" and at and words[at - 1].isdecimal():
        return at - 1, at + 1, [words[at - 1] + "000"]
    if word in _PERCENT and at:
        return at, at + 1, []
    if word == "per" and behind[:1] == ["cent"]:
        return at, at + 2, []
    written = _in_millions(word)
    return (at, at + 1, written) if written else None


def _in_millions(number: str) -> list[str]:
    """Return a round sum as newspapers write it, such as 1.2 million.

    >>> _in_millions("1200000"), _in_millions("3000000000"), _in_millions("1234567")
    (['1', '2', 'million'], ['3', 'billion'], [])
    """
    value = int(number) if number.isdecimal() and 6 < len(number) <= _MOST_DIGITS else 0
    for name, unit in MAGNITUDES.items():
        if value >= unit:
            thousandths, left = divmod(value * 1000, unit)
            whole, decimals = divmod(thousandths, 1000)
            decimal = f"{decimals:03}".rstrip("0")
            return [] if left else [str(whole), *filter(None, [decimal]), name]
    return []


def _letter_edits(tokens: TokenNumbers, numbers: dict[str, int]) -> Iterator[Edit]:
    names, flat, ends = [*numbers], tokens.flat, np.cumsum(tokens.sizes)
    is_number = np.fromiter(map(str.isdecimal, names), np.bool_, len(names))
    widths = np.fromiter(map(len, names), np.int64, len(names))
    # Each digit stands for its number: where one begins, and what is behind it.
    begins = is_number[flat]
    begins[1:] &= (flat[1:] != flat[:-1]) | (widths[flat[1:]] == 1)
    first = (ends - tokens.sizes)[tokens.sizes > 0]
    begins[first] = is_number[flat[first]]
    found = np.flatnonzero(begins)
    width = widths[flat[found]]
    behind = flat[np.minimum(found + width, len(flat) - 1)] if len(flat) else found
    units = [numbers[one] for one in (*_TENS, *MYRIADS, *_PERCENT_KO) if one in numbers]
    kept = np.isin(behind, units) | ((width == 4) & is_number[behind]) | (width > 4)
    # 03월 is 3월, and 05 of 1.05 is no 5.
    follows = is_number[flat[found - 1]] & ~np.isin(found, first)
    two_digits = [numbers[one] for one in map("0{}".format, range(1, 10)) if one in numbers]
    padded = np.isin(flat[found], two_digits) & ~follows
    kept |= padded
    found, padded = found[kept], padded[kept]
    last = ends[np.searchsorted(ends, found, side="right")].tolist()
    done = 0
    for at, end, is_padded in zip(found.tolist(), last, padded.tolist(), strict=True):
        if at < done:
            continue
        letters = [names[one] for one in flat[at : min(end, at + _LONGEST)].tolist()]
        edit = _date(letters) or _korean_amount(letters) or (is_padded and (2, [letters[0][1]]))
        if edit:
            done = at + edit[0]
            yield at, done, edit[1]


def _date(letters: list[str]) -> tuple[int, list[str]] | None:
    """Return the length of a date in numbers alone, and how it is usually written."""
    parts: list[str] = []
    at = 0
    while len(parts) < 3 and at < len(letters) and letters[at].isdecimal():
        parts.append(letters[at])
        at += len(letters[at])
    if len(parts) < 3 or not YEAR.fullmatch(parts[0]):
        return None
    year, month, day = parts[0], parts[1].lstrip("0"), parts[2].lstrip("0")
    if not (_DAY.fullmatch(day) and _MONTH.fullmatch(month)):
        return None
    at += letters[at : at + 1] == ["일"]
    return at, [year, "년", month, "월", day, "일"]


def _korean_amount(letters: list[str]) -> tuple[int, list[str]] | None:
    """Return the length of an amount such as 3억 5천만, and its digits; or of 5 퍼센트."""
    if letters[0].isdecimal():
        at = len(letters[0])
        for word in ("퍼센트", "프로"):
            if letters[at : at + len(word)] == [*word]:
                return at + len(word), [letters[0]]
    total, at, smallest = 0, 0, 16
    found: tuple[int, list[str]] | None = None
    while at < len(letters) and letters[at].isdecimal() and len(letters[at]) <= _MOST_DIGITS:
        number, at = int(letters[at]), at + len(letters[at])
        tens = [0, 0]
        for place, powers in enumerate((_TENS, MYRIADS)):
            if at < len(letters) and letters[at] in powers:
                tens[place], at = powers[letters[at]], at + 1
        if sum(tens) >= smallest or not (total or any(tens) or number >= 10000):
            break
        total += number * 10 ** sum(tens)
        smallest = tens[1] or tens[0]
        counts = letters[at] if at < len(letters) else "원"
        if counts in _COUNTABLE or counts.isascii():
            found = at, _in_myriads(total)
        if not tens[1]:
            break
    return found


def _in_myriads(amount: int) -> list[str]:
    """Return an amount as Korean writes it, so that what is cut off it leaves what it begins with.

    >>> _in_myriads(350_000_000), _in_myriads(7000)
    (['3', '억', '5000', '만'], ['7000'])
    """
    written: list[str] = []
    for name, tens in (*reversed(MYRIADS.items()), ("", 0)):
        count, amount = divmod(amount, 10**tens)
        if count:
            written += filter(None, [str(count), name])
    return written or ["0"]


def _rewritten(
    tokens: TokenNumbers,
    numbers: Mapping[str, int],
    edits: Iterator[Edit],
    times: Callable[[str], int],
) -> TokenNumbers:
    """Return texts with some tokens in the place of others; a number by letters stands for each."""
    parts: list[IntArray | NDArray[np.int32]] = []
    starts, more, at = [], [], 0
    for start, stop, written in edits:
        of_number = [(one, times(one) if one.isdecimal() else 1) for one in written]
        new = [numbers[one] for one, n in of_number for _ in range(n)]
        parts += [tokens.flat[at:start], np.array(new, np.int32)]
        starts.append(start)
        more.append(len(new) - (stop - start))
        at = stop
    if not parts:
        return tokens
    sizes = tokens.sizes.copy()
    np.add.at(sizes, np.searchsorted(np.cumsum(sizes), starts, side="right"), more)
    return replace(tokens, flat=np.concatenate([*parts, tokens.flat[at:]]), sizes=sizes)
