"""The house: a core, and rooms around it. The core knows no room, and rooms few others.

Every import counts, also inside a function and for type checkers alone: it is knowledge all the
same. ``docs/architecture.md`` shows the picture.
"""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from inspect import isclass, isfunction
from pathlib import Path

import pytest

import krag_eval
import krag_eval.core
from krag_eval.core.hooks import ROOMS

PACKAGE = Path(krag_eval.__file__).parent

#: What lies above the rooms and leads to them: evaluators, results, the readers users name.
FACES = {
    "", "__main__", "again", "datasets", "errors", "evaluator", "matching", "partitions", "result",
}  # fmt: skip
#: Room -> the others that it may import; each may import the core. The shell, ``cli``, has the
#: commands of all rooms, and may import whatever they run.
MAY_IMPORT = {
    "asking": {"comparison", "evaluator", "intervals", "loading", "result"},
    "auditing": {"comparison", "loading"},
    "cli": {
        "again",
        "auditing",
        "comparison",
        "datasets",
        "diagnosis",
        "evaluator",
        "formats",
        "history",
        "lab",
        "labelling",
        "loading",
        "plotting",
        "reanchoring",
        "report",
        "result",
        "streaming",
        "sweeping",
    },
    "comparison": {"diagnosis", "intervals"},
    "compat": {"evaluator", "loading", "matchers", "plotting", "result"},
    "diagnosis": {"loading"},
    "distributed": {"errors", "evaluator", "loading", "result"},
    "formats": {"loading"},
    "history": {"comparison", "intervals", "loading", "plotting", "result"},
    "integrations": {"comparison", "evaluator", "formats", "history", "loading", "result"},
    "intervals": set(),
    "lab": {"comparison", "intervals", "result"},
    "labelling": {"comparison", "datasets", "lab", "loading", "result"},
    "loading": set(),
    "matchers": {"asking"},
    "plotting": {"comparison", "diagnosis", "lab"},
    "reanchoring": {"auditing", "comparison", "datasets", "loading"},
    "report": {"comparison", "diagnosis", "intervals", "plotting"},
    "streaming": {"evaluator", "loading", "result"},
    "sweeping": {
        "asking",
        "comparison",
        "diagnosis",
        "intervals",
        "loading",
        "plotting",
        "report",
        "result",
    },
}


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def imports(module):
    """Return the imports from the package in a module, wherever they stand."""
    nodes = ast.walk(ast.parse(MODULES[module].read_text("utf-8")))
    froms = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return [node for node in froms if (node.module or "").startswith("krag_eval")]


def imported(module):
    """Yield the modules of the package that a module imports."""
    for node in imports(module):
        base = node.module.removeprefix("krag_eval").removeprefix(".")
        for alias in node.names:
            inner = f"{base}.{alias.name}".removeprefix(".")
            yield inner if inner in MODULES else base


def room_of(module):
    """Return the room of a module; commands are the shell's part of a room."""
    return "cli" if module.endswith(".command") else module.partition(".")[0]


ARROWS = {(module, other) for module in MODULES for other in imported(module) if other}


def test_every_folder_is_a_room():
    """A new one is declared, with the rooms it may import."""
    assert {room_of(module) for module in MODULES} - FACES - {"core"} == MAY_IMPORT.keys()


def test_every_room_that_adds_something_is_there():
    """What is declared in hooks is a package."""
    assert {*ROOMS} - {"core"} <= MAY_IMPORT.keys()


def test_the_core_knows_no_room():
    """Nor what lies above the rooms."""
    of_core = {(module, other) for module, other in ARROWS if room_of(module) == "core"}
    assert {arrow for arrow in of_core if room_of(arrow[1]) != "core"} == set()


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_the_core_and_what_is_declared(room):
    """No room more, and none that it no longer needs."""
    others = {room_of(other) for module, other in ARROWS if room_of(module) == room}
    assert others - {"core", room} == MAY_IMPORT[room]


def test_nothing_is_named_by_an_import_string():
    """Rooms are found by their hooks, and by no other string."""
    calls = {
        module
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "import_module"
        and "krag_eval" in ast.unparse(node)
    }
    assert calls == {"compat"}  # whose modules load on first use


def test_no_circle_of_modules():
    """Every module can be read after those that it imports."""
    graph = {module: {other for one, other in ARROWS if one == module} for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


#: Room -> how many names it still takes from inside the core, past its front door. Each figure may
#: only shrink; at 0 the room stands on ``krag_eval.core.__all__`` alone.
FROM_INSIDE = {
    "again": 3,
    "asking": 18,
    "auditing": 10,
    "cli": 23,
    "comparison": 27,
    "compat": 6,
    "datasets": 1,
    "diagnosis": 22,
    "distributed": 3,
    "evaluator": 4,
    "formats": 6,
    "history": 6,
    "integrations": 10,
    "intervals": 8,
    "lab": 13,
    "labelling": 9,
    "loading": 36,
    "matchers": 14,
    "matching": 8,
    "plotting": 10,
    "reanchoring": 8,
    "report": 16,
    "result": 5,
    "streaming": 14,
    "sweeping": 6,
}


def taken_from_the_core():
    """Yield room, module of the core and name of all that rooms and faces import from it."""
    for module in MODULES:
        for node in imports(module):
            if room_of(module) not in {"", "core"} and node.module.startswith("krag_eval.core"):
                for alias in node.names:
                    yield room_of(module), node.module, alias.name


TAKEN = {*taken_from_the_core()}


def is_inside(module, name):
    """Tell whether an import goes past the front door of the core."""
    return module != "krag_eval.core" or f"core.{name}" in MODULES


def test_rooms_name_at_the_front_door_what_is_there():
    """What ``core.__all__`` has, nobody takes from an inner module."""
    core = krag_eval.core
    doors = {
        (getattr(core, name).__module__, name)
        for name in core.__all__
        if hasattr(getattr(core, name), "__module__")
    }
    assert [taken for taken in TAKEN if taken[1:] in doors] == []


@pytest.mark.parametrize("room", sorted({room for room, _, _ in TAKEN}))
def test_what_is_taken_from_inside_the_core_only_shrinks(room):
    """Its count in the table, or a lower one: then lower the table."""
    inside = {
        (module, name) for other, module, name in TAKEN if other == room and is_inside(module, name)
    }
    assert len(inside) <= FROM_INSIDE.get(room, 0), sorted(inside)


@pytest.mark.parametrize("name", sorted(krag_eval.core.__all__))
def test_the_front_door_is_documented(name):
    """Each class and function says what it is to who has not read the code."""
    member = getattr(krag_eval.core, name)
    assert not (isclass(member) or isfunction(member)) or member.__doc__


def test_the_front_door_stays_narrow():
    """A package that somebody else installs stands on these names."""
    assert len(krag_eval.core.__all__) <= 120
