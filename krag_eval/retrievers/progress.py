"""Progress: a bar where somebody is looking, in a terminal or a notebook."""

from __future__ import annotations

import sys
from typing import Any, Protocol

__all__ = ["Bar", "bar_of", "check_progress"]


class Bar(Protocol):
    """What is needed of tqdm's bar."""

    def update(self) -> object:
        """Count one more."""

    def close(self) -> object:
        """Leave it as it stands."""


def check_progress(progress: object) -> None:
    """Refuse what is neither ``True``, ``False`` nor ``None``."""
    if not isinstance(progress, bool | None):
        raise TypeError(
            "progress must be True, False, or None for a bar where somebody is looking, got "
            f"{progress!r}."
        )


def bar_of(progress: bool | None, *, total: int, done: int, title: str) -> Bar | None:
    """Return a bar, or ``None`` where none is wanted.

    Args:
        progress: Whether to show one; ``None``: in a terminal and in a notebook.
        total: How many there are.
        done: How many need not be asked for.
        title: What stands before it.
    """
    if not (_somebody_looks() if progress is None else progress):
        return None
    from tqdm.auto import tqdm

    bar: Any = tqdm(total=total, initial=done, desc=title, unit="query")
    return bar  # type: ignore[no-any-return]


def _somebody_looks() -> bool:
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())
