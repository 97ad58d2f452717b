"""Wording shared by error messages, so that every refusal says what is allowed and what came."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["KragEvalWarning", "clipped", "muted", "unknown_name", "warn"]

_MUTED: ContextVar[bool] = ContextVar("krag_eval_muted", default=False)


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


def clipped(value: object) -> str:
    """Represent a value of unknown length within a message.

    >>> clipped("short"), len(clipped("long" * 100))
    ("'short'", 61)
    """
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def warn(message: str) -> None:
    """Warn on behalf of the caller outside this package, every time.

    The place is the user's line, so that filters by module find it. Python would show an equal
    message from one line only once; in a loop over retrievers that hides all but the first.
    """
    if _MUTED.get():
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        KragEvalWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry={},
    )


@contextmanager
def muted() -> Iterator[None]:
    """Keep our own warnings back meanwhile, in this thread or task alone.

    For those who look at one query at a time, where "nothing matched at all" is no news. Python's
    own ``warnings.catch_warnings`` would silence every other thread as well.
    """
    before = _MUTED.set(True)
    try:
        yield
    finally:
        _MUTED.reset(before)


def _is_ours(module: str) -> bool:
    # A cached property calls us through functools.
    return module.partition(".")[0] in ("krag_eval", "functools")
