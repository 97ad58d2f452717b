"""Seeded mutants: small mistakes planted in the package, one at a time, to see which tests notice.

    python tests/mutants.py krag_eval/scoring -n 40 --out before.json -- tests/test_metrics.py …
    python tests/mutants.py krag_eval/scoring -n 40 --out after.json -- tests/test_metrics.py …
    python tests/mutants.py compare before.json after.json

Run it before tests are merged or dropped and again afterwards: nothing that was killed may survive.
The same files and seed give the same mutants. It works in a copy of the tree, and runs the tests
named behind ``--`` until the first one fails.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mistakes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes of a module that a mistake can be planted in, and what it is."""
    skipped = {id(one) for node in ast.walk(tree) for one in _not_code(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield node, "comparison"
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
            yield node, "operator"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "not"
        elif isinstance(node, ast.IfExp):
            yield node, "branches"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            yield node, "constant"


def _not_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in annotations and in blocks for type checkers, which nothing runs."""
    parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        parts += node.body
    for part in parts:
        yield from ast.walk(part) if part is not None else ()


def planted(source: str, number: int) -> tuple[str, str]:
    """Return a module with the mistake of this number, and what was done where."""
    tree = ast.parse(source)
    node, kind = list(mistakes(tree))[number]
    place = f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)} {kind}"
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), copy.copy(node.operand))
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else int(str(node.value)) + 1
    return ast.unparse(ast.fix_missing_locations(tree)), place


def chosen(folder: Path, n: int, seed: int) -> list[tuple[Path, int]]:
    """Return the files and numbers of the mutants of a room."""
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
    every = [
        (path, number)
        for path in files
        for number, _ in enumerate(mistakes(ast.parse(path.read_text("utf-8"))))
    ]
    return sorted(random.Random(seed).sample(every, min(n, len(every))))


def noticed(tree: Path, tests: list[str], seconds: float) -> bool:
    """Tell whether a test fails; tests that no longer end notice it too."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, timeout=seconds,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def try_all(folder: Path, n: int, seed: int, tests: list[str], seconds: float) -> dict[str, bool]:
    """Return what was planted, and whether the tests noticed."""
    told: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place, "tree")
        left = shutil.ignore_patterns(".git", ".venv", "__pycache__", "_build", "dist")
        shutil.copytree(ROOT, tree, ignore=left)
        if noticed(tree, tests, 10 * seconds):
            raise SystemExit("the tests fail without any mistake")
        for path, number in chosen(folder, n, seed):
            copied = tree / path.relative_to(ROOT)
            source = copied.read_text("utf-8")
            changed, where = planted(source, number)
            copied.write_text(changed, "utf-8")
            name = f"{path.relative_to(ROOT)}:{where}"
            told[name] = noticed(tree, tests, seconds)
            copied.write_text(source, "utf-8")
            print("killed  " if told[name] else "SURVIVES", name, flush=True)
    return told


def run() -> int:
    if sys.argv[1:2] == ["compare"]:
        before, after = (json.loads(Path(one).read_text()) for one in sys.argv[2:4])
        lost = [one for one, killed in before.items() if killed and not after.get(one, False)]
        print(f"{sum(before.values())} killed before, {sum(after.values())} now", *lost, sep="\n")
        return int(bool(lost))
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("-n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300, help="a mutant may take as long")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("tests", nargs="+")
    asked = parser.parse_args()
    told = try_all(asked.folder.resolve(), asked.n, asked.seed, asked.tests, asked.seconds)
    asked.out.write_text(json.dumps(told, indent=1))
    print(f"{sum(told.values())} of {len(told)} killed")
    return 0


if __name__ == "__main__":
    raise SystemExit(run())
