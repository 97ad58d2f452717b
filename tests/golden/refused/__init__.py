"""Wrong calls, room by room: one line each, whose error a golden file beside it holds.

A module here is a room, and ``CALLS`` names its wrong calls. They are made in a folder that holds
the files of :mod:`golden.inputs`; ``python -m golden.recorder write refused/ROOM.txt`` writes down
the type of each error, and the argument, query, file and line that it blames.
"""

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOMS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def calls(room: str) -> dict[str, Callable[[], Any]]:
    """Return the wrong calls of a room by name."""
    made: dict[str, Callable[[], Any]] = importlib.import_module(f"golden.refused.{room}").CALLS
    return made


def told(make: Callable[[], Any]) -> str:
    """Return the type of the error and what it blames, or what came instead."""
    with warnings.catch_warnings(action="ignore"):
        try:
            made = make()
        except Exception as error:
            blamed = getattr(error, "argument", None)
            types = [one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins"]
            return f"{type(error).__name__} ({types[0]}); {blamed}{_where(error)}"
        return f"no error; {type(made).__name__}"


def _where(error: Exception) -> str:
    """Return the query and the places in an argument and a file that an error names."""
    query, within, place = (getattr(error, name, None) for name in ("query", "within", "place"))
    asked = within if query is None else f"query {query}{within}"
    file = "" if place is None else str(place).rpartition("/")[2]  # without the folder
    return "".join(f"; {one}" for one in (asked, file) if one)
