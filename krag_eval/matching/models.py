"""Models that are made when they are needed, once per process, and never pickled.

This room knows how a process keeps the models that matchers ask it for. It must not know what a
model does.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MadeOnce"]

# Several matchers of one evaluation may each have their own; those of the past make room.
_MOST_KEPT = 4
_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.RLock()


@dataclass(frozen=True)
class MadeOnce:
    """A model, as the function that makes it; copies and pickles hold the function alone.

    A process that receives pickles of one model again and again, as the workers of a cluster do
    with every part of a run, makes it once.

    Attributes:
        make: A function without arguments that returns the model.
        identity: Equal in all copies of one model.

    >>> model = MadeOnce(lambda: ["heavy"])
    >>> model.get() is model.get()
    True
    """

    make: Callable[[], Any]
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.make, "__name__", type(self.make).__name__))

    def get(self) -> Any:
        """Return the model; the first to ask in a process makes it, and the others wait."""
        with _lock:
            if self.identity not in _kept:
                _kept[self.identity] = self.make()
            _kept.move_to_end(self.identity)
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
            return _kept[self.identity]


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # Another thread may hold the lock during a fork; in the child nobody would release it.
    os.register_at_fork(after_in_child=_renew_lock)
