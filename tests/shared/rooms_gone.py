"""A plugin for tests in a copy without some rooms: it skips what needs one of these, nothing else.

What is imported of such a room is a stand-in. It may be passed around while tests are collected; a
test that calls it, or looks into it, is about that room as well. So is one that says it needs the
room, ``@pytest.mark.needs("matchers")``, since it has it by a name alone.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

GONE = os.environ.get("KRAG_EVAL_ROOMS_GONE", "").split()
collecting = True


class StandIn:
    """Stands for what a room had."""

    def __init__(self, room):
        self._room = room

    def touch(self, *_, **__):
        if not collecting:
            pytest.skip(f"needs {self._room}")
        return self

    __call__ = __and__ = __or__ = __rand__ = __ror__ = __getitem__ = touch

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.touch()

    def __iter__(self):
        self.touch()
        return iter(())

    def __mro_entries__(self, _):
        """A subclass cannot be made an instance of either."""
        return (type("Of" + self._room, (), {"__new__": lambda *_, **__: self.touch()}),)


class Room(ModuleType):
    """A module of a room that is gone; to the package, it adds nothing."""

    HOOKS: dict[str, dict[str, str]] = {}  # noqa: RUF012

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(self.__name__.split(".")[1])


class Finder:
    """Finds the modules of rooms that are gone."""

    def find_spec(self, name, path=None, target=None):
        inside = name.startswith("krag_eval.") and name.split(".")[1] in GONE
        return ModuleSpec(name, self, is_package=True) if inside else None

    def create_module(self, spec):
        return Room(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())


def pytest_collection_finish():
    global collecting
    collecting = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip what needs a room that is gone, or was to try a stand-in."""
    for room in {room for mark in item.iter_markers("needs") for room in mark.args} & {*GONE}:
        pytest.skip(f"needs {room}")
    for value in (getattr(item, "callspec", None) and item.callspec.params.values()) or ():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, StandIn):
                part.touch()
