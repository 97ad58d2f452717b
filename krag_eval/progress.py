"""Progress: a bar where somebody is looking, in a terminal or a notebook.

This room knows where a bar is wanted. It must not know what is making progress.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Protocol

__all__ = ["Bar", "bar_of", "check_progress"]


class Bar(Protocol):
    """What is needed of tqdm's bar."""

    def update(self, n: int = 1, /) -> object:
        """Count one more, or ``n``."""

    def close(self) -> object:
        """Leave it as it stands."""


def check_progress(progress: object) -> None:
    """Refuse what is neither ``True``, ``False`` nor ``None``."""
    if not isinstance(progress, bool | None):
        raise TypeError(
            "progress must be True, False, or None for a bar where somebody is looking, got "
            f"{progress!r}."
        )


def bar_of(
    progress: bool | None, *, total: int, done: int, title: str, unit: str = "query"
) -> Bar | None:
    """Return a bar, or ``None`` where none is wanted.

    Args:
        progress: Whether to show one; ``None``: in a terminal and in a notebook.
        total: How many there are.
        done: How many are done already.
        title: What stands before it.
        unit: What they are; bytes (``"B"``) are shown in MB and the like.
    """
    if not (_somebody_looks() if progress is None else progress):
        return None
    with warnings.catch_warnings():
        # Without ipywidgets it says so, and falls back to the bar of a terminal.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    bar: Any = tqdm(total=total, initial=done, desc=title, unit=unit, unit_scale=unit == "B")
    return bar  # type: ignore[no-any-return]


def _somebody_looks() -> bool:
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())
