"""Wording shared by error messages, so that every refusal says what is allowed and what came."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["KragEvalWarning", "unknown_name"]


class KragEvalWarning(UserWarning):
    """A result is valid, but something about the input deserves a second look."""


def unknown_name(argument: str, name: object, allowed: Sequence[str]) -> str:
    """Word the refusal of a name: what is allowed, what came, and what was probably meant.

    >>> unknown_name("matcher", "rougel", ("rouge1", "rougeL"))
    "matcher must be one of 'rouge1', 'rougeL', got 'rougel'; did you mean 'rougeL'?"
    """
    folded = {other.lower(): other for other in allowed}
    near = difflib.get_close_matches(str(name).lower(), folded, n=1)
    meant = f"; did you mean {folded[near[0]]!r}?" if near else "."
    return f"{argument} must be one of {', '.join(map(repr, allowed))}, got {name!r}{meant}"
