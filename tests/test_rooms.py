"""The house: a core, and rooms around it. The core knows no room, and rooms few others.

Every import counts, also inside a function and for type checkers alone: it is knowledge all the
same. ``docs/architecture.md`` shows the picture.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import krag_eval
from krag_eval.core.hooks import ROOMS

PACKAGE = Path(krag_eval.__file__).parent

#: What lies above the rooms and leads to them: evaluators, results, the readers users name.
FACES = {
    "", "__main__", "again", "datasets", "errors", "evaluator", "matching", "partitions", "result",
}  # fmt: skip
#: Room -> the others that it may import; each may import the core. The shell, ``cli``, has the
#: commands of all rooms, and may import whatever they run.
MAY_IMPORT = {
    "asking": {"comparison", "evaluator", "result"},
    "auditing": {"comparison"},
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
        "plotting",
        "reanchoring",
        "report",
        "result",
        "streaming",
        "sweeping",
    },
    "comparison": {"diagnosis"},
    "compat": {"evaluator", "matchers", "plotting", "result"},
    "diagnosis": set(),
    "distributed": {"evaluator", "result"},
    "formats": set(),
    "history": {"comparison", "plotting", "result"},
    "integrations": {"comparison", "evaluator", "formats", "history", "result"},
    "lab": {"comparison", "result"},
    "labelling": {"comparison", "datasets", "lab", "result"},
    "matchers": {"asking"},
    "plotting": {"comparison", "diagnosis", "lab"},
    "reanchoring": {"auditing", "comparison", "datasets"},
    "report": {"comparison", "diagnosis", "plotting"},
    "streaming": {"evaluator", "result"},
    "sweeping": {"asking", "comparison", "diagnosis", "plotting", "report", "result"},
}


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(module):
    """Yield the modules of the package that a module imports."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("krag_eval"):
            base = (node.module or "").removeprefix("krag_eval").removeprefix(".")
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
