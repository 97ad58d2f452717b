"""Numbers as people read them, alike in every table, sentence, page and picture.

Tables round to four digits, sentences to three; what is undefined is a dash everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from krag_eval.core.language import _, pgettext

UNDEFINED = "–"


def rounded(value: float, digits: int = 4) -> str:
    """Return a number for a table.

    >>> rounded(2 / 3), rounded(float("nan")), rounded(12.34, 1)
    ('0.6667', '–', '12.3')
    """
    return UNDEFINED if math.isnan(value) else f"{value:.{digits}f}"


def short(value: float) -> str:
    """Return three decimals, or what it takes for a small number not to read as 0.

    >>> short(0.1234), short(0.00002), short(0.0), short(float("nan"))
    ('0.123', '2e-05', '0.000', '–')
    """
    if math.isnan(value):
        return UNDEFINED
    return f"{value:.3f}" if abs(value) >= 0.0005 or value == 0 else f"{value:.1g}"


def percent(share: float, digits: int | None = None) -> str:
    """Return a share in percent; with no number of digits, as many as it has.

    >>> percent(0.95), percent(0.123, 0), percent(2 / 3, 1)
    ('95 %', '12 %', '66.7 %')
    """
    number = f"{100 * share:.10g}" if digits is None else f"{100 * share:.{digits}f}"
    return UNDEFINED if math.isnan(share) else _("{} %").format(number)


def span(low: float, high: float, show: Callable[[float], str] = rounded) -> str:
    """Return an interval, with its ends as ``show`` writes them.

    >>> span(-0.1, 0.25), span(float("nan"), 1.0), span(0.1, 0.2, short)
    ('-0.1000 to 0.2500', '–', '0.100 to 0.200')
    """
    if math.isnan(low):
        return UNDEFINED
    return pgettext("interval", "{low} to {high}").format(low=show(low), high=show(high))


def listed(parts: Iterable[str]) -> str:
    """Return names or clauses one after the other, as a sentence lists them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *others, last = parts
    return pgettext("list", "{} and {}").format(", ".join(others), last) if others else last
