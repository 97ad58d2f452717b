"""The tables of the page *What a matcher's yes is worth*, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from study.tables import chosen, group_of, markdown

Found = Mapping[str, Any]

#: Column of the page -> its pairs, and its heading in both languages.
COLUMNS: dict[tuple[str, str, str], tuple[str, str]] = {
    ("verbatim", "clapnq", "en"): ("passages, English", "원문 그대로, 영어"),
    ("verbatim", "korquad", "ko"): ("passages, Korean", "원문 그대로, 한국어"),
    ("damaged", "clapnq", "en"): ("damaged, English", "깨진 텍스트, 영어"),
    ("damaged", "korquad", "ko"): ("damaged, Korean", "깨진 텍스트, 한국어"),
    ("apart", "clapnq", "en"): ("sentences apart, English", "떨어진 문장들, 영어"),
    ("claim", "wice", "en"): ("claims, Wikipedia", "다시 쓴 주장, 위키백과"),
    ("claim, experts", "expertqa", "en"): ("claims, experts", "다시 쓴 주장, 전문가"),
}
CHANGED: dict[tuple[str, str], tuple[str, str]] = {
    ("clapnq", "en"): ("English", "영어"),
    ("korquad", "ko"): ("Korean", "한국어"),
}
CHANGES = {
    "one digit": ("a digit", "숫자 하나"),
    "a year": ("a year", "연도"),
    "a negation": ("a negation", "부정 표현"),
}
_RULE = ("rule", "규칙")


def tables(found: Found, shown: Sequence[str]) -> dict[str, bytes]:
    """Return the page's tables by file name.

    Args:
        found: The numbers about decisions.
        shown: The systems of the page, from top to bottom.
    """
    files = {}
    for at, language in enumerate(("en", "ko")):
        text = "\n\n".join((kinds(found, shown, at), changes(found, shown, at)))
        files[f"page_{language}.md"] = f"{text}\n".encode()
    return files


def kinds(found: Found, shown: Sequence[str], at: int) -> str:
    """Return precision and recall, held, by kind of truth."""
    records = {
        (*group_of(one), one["system"]): one
        for one in chosen(found["decisions"], how="main", part="held")
    }
    rows = []
    for name in shown:
        cells = []
        for column in COLUMNS:
            one = records.get((*column, name))
            both = [one[key][0] for key in ("precision", "recall")] if one else []
            cells.append(" / ".join(map(short, both)) or "")
        rows.append([name, *cells])
    return markdown([_RULE[at], *(names[at] for names in COLUMNS.values())], rows)


def changes(found: Found, shown: Sequence[str], at: int) -> str:
    """Return the share of changed chunks that a rule accepts, of those whose original it does."""
    records = {
        (one["source"], one["language"], one["variant"], one["system"]): one
        for one in chosen(found["contradictions"], part="held")
    }
    head = [f"{where[at]}: {what[at]}" for where in CHANGED.values() for what in CHANGES.values()]
    rows = []
    for name in shown:
        cells = [
            short(records[*where, what, name]["accepted_of_accepted"])
            if (*where, what, name) in records
            else ""
            for where in CHANGED
            for what in CHANGES
        ]
        rows.append([name, *cells])
    return markdown([_RULE[at], *head], rows)


def short(value: float | None) -> str:
    """Return two digits.

    >>> short(0.986), short(1.0), short(0.0), short(None)
    ('.99', '1.00', '.00', '–')
    """
    return "–" if value is None else f"{value:.2f}".removeprefix("0") if value < 1 else "1.00"
