"""The shell command: files in, a table out, and the same numbers as from Python.

A command imports what it needs when it runs, so that ``--help`` is quick. The commands of rooms
stand in these, and import what all have in common from here; so the program, which lists them all,
loads when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from krag_eval.cli.shell import Shell

    main: Shell

__all__ = ["main"]


def __getattr__(name: str) -> Shell:
    if name != "main":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from krag_eval.cli.program import main

    return main
