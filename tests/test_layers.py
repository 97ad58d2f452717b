"""The floors of the house: arrows go down, and no circle of modules but one.

Every import counts, also inside a function and for type checkers alone: it is knowledge all the
same. ``docs/architecture.md`` shows the picture.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import krag_eval

PACKAGE = Path(krag_eval.__file__).parent

#: Floor by floor, from the ground up: the files and folders of the hall.
FLOORS = (
    {"errors", "_doors", "_install", "_language", "_text", "_io", "_reading"},
    {"documents", "ranking", "grading", "conventions", "matching"},
    {"scoring", "_options"},
    {"results", "statistics"},
    {"evaluator", "calibration"},
    {"datasets", "retrievers", "streaming", "distributed"},
    {"presenting"},
    {"cli", "report", "plotting", "integrations", "compat"},
)
#: The only arrows up: methods that draw, report or compare what they belong to, and those that
#: read a data set or the chunks of an index from a file.
CONVENIENCE = {
    ("_doors", "plotting"),
    ("_doors", "presenting"),
    ("_doors", "report"),
    ("results.causes", "datasets.loading"),
    ("results.result", "datasets.loading"),
}
# Methods of a data set, a result or a comparison that lead to modules which take these.
BACK = {
    ("datasets.traces", "datasets.loading"),
    ("datasets.dataset", "datasets.saving"),
    ("results.result", "results.saved"),
    ("results.result", "statistics.comparison"),
    ("results.result", "statistics.gates"),
    ("results.result", "statistics.intervals"),
    ("results.result", "statistics.predicting"),
    ("results.result", "statistics.score_cutoffs"),
    ("results.result", "statistics.slices"),
    ("statistics.comparison", "statistics.slices"),
}
#: Entry doors and module paths of earlier versions: they may know everything.
DOORS = {"", "__main__", "partitions"}


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


NAMED = {f"krag_eval.{name}": name for name in MODULES if name}


def imported(module):
    """Yield the modules of the package that a module imports."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("krag_eval"):
            base = (node.module or "").removeprefix("krag_eval").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                yield inner if inner in MODULES else base
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            yield from (NAMED[one.value] for one in node.args if getattr(one, "value", "") in NAMED)


ARROWS = {
    (module, other)
    for module in MODULES
    if module not in DOORS
    for other in imported(module)
    if other not in ("", module)
}


def floor_of(module):
    room = module.partition(".")[0]
    found = [floor for floor, rooms in enumerate(FLOORS) if room in rooms]
    assert found, f"{module} is on no floor; place it on purpose"
    return found[0]


def test_every_module_is_on_a_floor():
    """A new room is placed on purpose."""
    assert {floor_of(module) for module in MODULES.keys() - DOORS} == set(range(len(FLOORS)))


def test_arrows_go_down_but_for_the_methods_of_convenience():
    """What lies below does not know what is made of it."""
    up = {(one, other) for one, other in ARROWS if floor_of(other) > floor_of(one)}
    assert up == CONVENIENCE


def test_no_circle_of_modules_but_through_those_methods():
    """Without the methods of convenience, every module can be read after those it imports."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for one, other in ARROWS - CONVENIENCE - BACK:
        graph[one].add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")
