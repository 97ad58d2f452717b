"""Labels: which query is meant by what a user wrote."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from numbers import Integral

__all__ = ["position_of"]

_NAMED = 10
# Looking for a near label takes time for each; of more queries the first so many are tried.
_TRIED = 2_000
_WIDTH = 80


def position_of(labels: Sequence[str | int], query: object, position: object = None) -> int:
    """Return the position of a query, given by its label or by the position itself.

    A label comes first. A whole number is a position where no label is a number.

    Raises:
        ValueError: If there is no such query, or several have that label; the message lists their
            positions.

    >>> position_of(["what?", "why?"], "why?"), position_of(["what?", "why?"], 1)
    (1, 1)
    """
    if position is not None:
        if query is not None:
            raise ValueError("give a query by its label or by its position, not both.")
        return _checked_position(position, len(labels))
    if isinstance(query, bool) or not isinstance(query, str | Integral):
        raise ValueError(f"query must be a label (text or whole number), got {query!r}.")
    if isinstance(query, Integral):
        query = int(query)  # the numbers in a pandas index are numpy's
    found = [place for place, label in enumerate(labels) if label == query]
    if len(found) == 1:
        return found[0]
    if found:
        named = ", ".join(map(str, found[:_NAMED])) + (", …" if len(found) > _NAMED else "")
        raise ValueError(
            f"query: {len(found)} queries have the label {_clipped(query)}, at the positions "
            f"{named}; name one by position=…"
        )
    if isinstance(query, int) and not any(isinstance(label, int) for label in labels):
        return _checked_position(query, len(labels))
    raise ValueError(f"query: no query has the label {_clipped(query)}{_nearest(labels, query)}")


def _checked_position(position: object, n_queries: int) -> int:
    whole = isinstance(position, Integral) and not isinstance(position, bool)
    if not whole or not 0 <= int(position) < n_queries:  # type: ignore[call-overload]
        raise ValueError(
            f"position must be a whole number from 0 to {n_queries - 1}, got {position!r}."
        )
    return int(position)  # type: ignore[call-overload, no-any-return]


def _nearest(labels: Sequence[str | int], query: str | int) -> str:
    texts = {label[:_WIDTH]: label for label in labels[:_TRIED] if isinstance(label, str)}
    near = difflib.get_close_matches(str(query)[:_WIDTH], texts, n=1)
    if near:
        return f"; did you mean {_clipped(texts[near[0]])}?"
    return f"; labels look like {_clipped(labels[0])}, and position=… names a query by its place."


def _clipped(label: str | int) -> str:
    text = repr(label)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
