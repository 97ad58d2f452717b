"""Wrong calls, room by room: one line each, whose error a golden file beside it holds.

A module here is a room, and ``CALLS`` names its wrong calls. They are made in a folder that holds
the files of :mod:`golden.inputs`; ``python -m golden.recorder write refused/ROOM.txt`` writes down
the type of each error, and the argument, query, file and line that it blames.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOMS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def calls(room: str) -> dict[str, Callable[[], Any]]:
    """Return the wrong calls of a room by name."""
    made: dict[str, Callable[[], Any]] = importlib.import_module(f"golden.refused.{room}").CALLS
    return made
