"""Delete a room, and see what is left: ``python tests/without_room.py comparison``.

In a copy of the package, the folder of the room goes. Of the rest, whatever does not need it by an
import at the top of a file must import, with the core whole; and the core must still evaluate.
"""

import ast
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "krag_eval"

EVALUATE = """
import json
from importlib.resources import files
from krag_eval.core.evaluator import FactsEvaluator

lines = files("krag_eval").joinpath("data", "demo.jsonl").read_text("utf-8").splitlines()
rows = [json.loads(line) for line in lines]
lists = [[row[side] for row in rows] for side in ("actual", "predicted")]
result = FactsEvaluator(*lists, matcher="coverage").evaluate([1, 5])
print(repr(result))
print(result.explain(position=0).to_text(80))
print(result["recall@5"], result["ndcg@5"])
"""


def name_of(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def needed_by(path: Path, names: set[str]) -> set[str]:
    """Return the modules that a file imports where it is loaded."""
    needed = {name_of(path).rpartition(".")[0]}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("krag_eval"):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            needed |= {str(node.module)} | (inner & names)
    return needed - {"", name_of(path)}


def left_without(room: str) -> list[str]:
    """Return the modules that must import without a room."""
    needs = {name_of(path): path for path in PACKAGE.rglob("*.py")}
    graph = {name: needed_by(path, needs.keys()) for name, path in needs.items()}
    gone = {name for name in graph if f"{name}.".startswith(f"krag_eval.{room}.")}
    while more := {name for name, needed in graph.items() if needed & gone} - gone:
        gone |= more
    return sorted(graph.keys() - gone - {"krag_eval.__main__"})


def run(code: str, folder: str) -> str:
    """Return what code prints with the package of a folder."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


def check(room: str) -> list[str]:
    """Delete a room in a copy, run what must still run, and return what it was."""
    left = left_without(room)
    missing = {name for path in PACKAGE.glob("core/**/*.py") if (name := name_of(path)) not in left}
    assert not missing, f"the core needs {room}: {sorted(missing)}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "krag_eval"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.rmtree(copy / room)
        imports = "\n".join(f"import {name}" for name in left if ".integrations." not in name)
        run(imports, folder)
        assert run(EVALUATE, folder) == run(EVALUATE, str(PACKAGE.parent))
    return left


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"without {name}: {len(check(name))} modules import, and the core evaluates")
