"""What packages add, our own rooms and installed ones alike: matchers, metrics, formats, pages.

A hook is an entry point: a name, and where what it stands for is found. An installed package
declares hooks in its metadata, a room of ours in ``HOOKS`` of its ``__init__.py``. What a hook
stands for is imported when it is asked for, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

#: Our own packages that add something. A room whose folder was deleted adds nothing.
ROOMS = (
    "core", "asking", "auditing", "comparison", "diagnosis", "formats", "history",
    "intervals", "lab", "labelling", "matchers", "reanchoring", "report", "sweeping",
)  # fmt: skip


@cache
def our_hooks(group: str) -> Mapping[str, EntryPoint]:
    """Return the hooks of the core and of our rooms in a group, by name.

    >>> our_hooks("krag_eval.matchers")["fuzzy"].value
    'krag_eval.matchers.fuzzy:FuzzyMatcher'
    """
    names = [f"krag_eval.{room}" for room in ROOMS]
    rooms = [import_module(name) for name in names if find_spec(name)]
    return {
        name: EntryPoint(name, value, group)
        for room in rooms
        for name, value in getattr(room, "HOOKS", {}).get(group, {}).items()
    }


def installed_hooks(group: str) -> Mapping[str, EntryPoint]:
    """Return the hooks of installed packages in a group, by name."""
    hooks = entry_points(group=group)
    return {name: hooks[name] for name in sorted(hooks.names)}
