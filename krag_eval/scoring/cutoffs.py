"""Cutoffs: what k may be, and the one spelling of a metric at a cutoff, such as ``ndcg@10``."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from krag_eval._errors import clipped

__all__ = [
    "DEFAULT_CUTOFFS",
    "check_cutoff",
    "check_cutoffs",
    "parse_metric",
    "spelled",
    "unspelled",
]

#: Where a result is cut off if nothing else is asked for.
DEFAULT_CUTOFFS = (1, 3, 5, 10)
# Far beyond any list; counts stay exact as floats.
_LARGEST = 2**53


def check_cutoff(k: object) -> int | None:
    """Return a cutoff: a whole number of at least 1, or ``None`` for all retrieved documents.

    Raises:
        ValueError: For 0, a negative number, a float, a bool or anything else.

    >>> check_cutoff(5)
    5
    """
    if k is None or (isinstance(k, str) and k == "all"):
        return None
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= _LARGEST:
        came = repr(k) if len(repr(k)) <= 40 else f"{repr(k)[:40]}…"
        raise ValueError(
            f"k must be a whole number of at least 1 (at most {_LARGEST}), or None (or 'all') for "
            f"all retrieved documents, got {came}."
        )
    return int(k)


def check_cutoffs(k: Any) -> tuple[int | None, ...]:
    """Return one or several cutoffs as a tuple, in the order given.

    Raises:
        ValueError: If one is not a cutoff, there is none, or one is given twice.

    >>> check_cutoffs([1, 5, None])
    (1, 5, None)
    """
    given = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    cutoffs = tuple(map(check_cutoff, given))
    if not cutoffs:
        raise ValueError("k must name at least one cutoff, got an empty list.")
    if len(set(cutoffs)) < len(cutoffs):
        raise ValueError(f"k must not name a cutoff twice, got {clipped(given)}.")
    return cutoffs


def spelled(k: int | None) -> str:
    """Return the cutoff as it stands after the @ sign.

    >>> spelled(10), spelled(None)
    ('10', 'all')
    """
    return "all" if k is None else str(k)


def unspelled(text: str) -> int | None:
    """Read a cutoff back from its spelling.

    >>> unspelled("10"), unspelled("all")
    (10, None)
    """
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_LARGEST)):
        hint = " Name several cutoffs one by one." if "," in text else ""
        raise ValueError(
            f"k must be a whole number of at least 1, or 'all', got {clipped(text)}.{hint}"
        )
    return check_cutoff(int(text))


def parse_metric(text: object, argument: str = "metric") -> tuple[str, int | None]:
    """Read an average at a cutoff from its one spelling.

    Args:
        text: Such as ``"ndcg@10"`` or ``"mrr@all"``.
        argument: What to call it in an error message.

    Raises:
        ValueError: If there is no cutoff, or it is none.

    >>> parse_metric("macro_recall@5"), parse_metric("mrr@all")
    (('macro_recall', 5), ('mrr', None))
    """
    key, at, cutoff = text.strip().rpartition("@") if isinstance(text, str) else ("", "", "")
    if not (at and key):
        raise ValueError(
            f"{argument} must be spelled with its cutoff, such as 'ndcg@10' or 'mrr@all', "
            f"got {clipped(text)}."
        )
    try:
        return key, unspelled(cutoff)
    except ValueError as error:
        raise ValueError(f"{argument}: {clipped(text)}: {error}") from None
