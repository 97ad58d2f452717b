"""Seeded mutants: small mistakes planted in the package, one at a time, to see which tests notice.

    python tests/mutants.py cover lines.db                          # which test runs which line
    python tests/mutants.py plant lines.db krag_eval/scoring before.json
    python tests/mutants.py plant lines.db before.json after.json   # the same mutants, once more
    python tests/mutants.py compare before.json after.json

Run it before tests are merged or dropped and again afterwards, ``cover`` included: nothing that was
noticed may survive. It needs ``coverage``, and the operating system's ``fork``. The same files give
the same mutants; one is known by its function and statement, so that it is found again where lines
have moved. A mutant runs the tests that run its line, in a process where the mistake replaces the
module, until the first one fails. What stands outside functions is run when it is imported, so
that its tests are not known and it survives.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
N_MUTANTS, MOST_TESTS, SECONDS = 40, 250, 240
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
# They end threads from outside, which never happens while a tracer runs.
UNTRACED = ("tests/matchers/test_timeouts.py", "tests/asking/test_hanging.py")
# Loaded once, and not by each mutant's process.
LOADED = ("langchain_core.retrievers", "matplotlib.pyplot", "pandas", "pyarrow", "scipy.stats")


def can_be_wrong(node: ast.AST) -> bool:
    """Tell whether a mistake can be planted in a node."""
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in SWAPPED
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in SWAPPED
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.IfExp) or (
        isinstance(node, ast.Constant) and type(node.value) in (int, bool)
    )


def mistaken(node: Any) -> None:
    """Plant the mistake."""
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPPED[type(node.op)]()
    elif isinstance(node, ast.UnaryOp):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    else:
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1


def places(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield each function's statements, and the heads of those that hold others."""
    for child in ast.iter_child_nodes(tree):
        name = f"{within}.{child.name}".lstrip(".") if getattr(child, "name", "") else within
        if isinstance(child, ast.stmt) and not hasattr(child, "body"):
            yield within, child
        elif isinstance(child, ast.If | ast.While):
            yield within, child.test
        elif isinstance(child, ast.For | ast.AsyncFor):
            yield within, child.iter
        yield from places(child, name)


def mutants(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the mistakes that can be planted in functions of a module: their names and nodes."""
    seen: Counter[str] = Counter()
    for function, place in places(tree):
        where = f"{function}: {ast.unparse(place)}"
        seen[where] += 1
        for number, node in enumerate(filter(can_be_wrong, ast.walk(place))):
            if function and not isinstance(place, ast.AnnAssign):
                yield f"{where} ({seen[where]}.{number})", node


def chosen(folder: Path) -> dict[str, Any]:
    """Return mutants of a folder or module, all as likely."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    every = [
        f"{file.resolve().relative_to(ROOT)}::{name}"
        for file in files
        for name, _ in mutants(ast.parse(file.read_text("utf-8")))
    ]
    return dict.fromkeys(random.Random(0).sample(every, min(N_MUTANTS, len(every))))


class _Finder:
    """Finds one module with a mistake in it."""

    def __init__(self, file: str, source: str) -> None:
        self.name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.path, self.source = str(ROOT / file), source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module's specification, if it is that one."""
        if name != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(name, self.path)
        loader.get_code = lambda _: compile(self.source, self.path, "exec")  # type: ignore[method-assign,assignment]
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def _tests_fail(finder: _Finder, tests: list[str]) -> bool:
    """Run tests in a process of their own; those that do not end have failed."""
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            for stream in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            sys.dont_write_bytecode = True
            # The package brings a plugin, so that pytest itself loads its modules.
            rewriting = sys.modules["_pytest.assertion.rewrite"].AssertionRewritingHook
            found = rewriting.find_spec
            rewriting.find_spec = lambda self, name, path=None, target=None: (
                finder.find_spec(name) or found(self, name, path, target)
            )
            sys.meta_path.insert(0, finder)
            quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider"]
            os._exit(pytest.main(["-x", "-q", *quiet, *tests]))
        finally:
            os._exit(99)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, 1, 2):
                raise SystemExit(f"pytest ended with {code}: {tests[:3]} …")
            return code != 0
        time.sleep(0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def plant(covered: str, what: str, out: str) -> None:
    """Plant mutants and write down which were noticed; ``None`` where the code is gone."""
    import coverage

    covered, what, out = (str(Path(one).resolve()) for one in (covered, what, out))
    lines = coverage.CoverageData(covered)
    lines.read()
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = sys.path[0] = str(ROOT)
    for module in LOADED:
        importlib.import_module(module)
    told = json.loads(Path(what).read_text()) if what.endswith(".json") else chosen(Path(what))
    for mutant in told:
        file, _, name = mutant.partition("::")
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        node: Any = dict(mutants(tree)).get(name)
        told[mutant] = None
        if node is not None:
            by_line = lines.contexts_by_lineno(str(ROOT / file))
            at = range(node.lineno, node.end_lineno + 1)
            tests = sorted({one for line in at for one in by_line.get(line, ())} - {""})
            random.Random(0).shuffle(tests)
            mistaken(node)
            finder = _Finder(file, ast.unparse(ast.fix_missing_locations(tree)))
            # Most are noticed by the first few.
            parts = (tests[:25], tests[25:MOST_TESTS])
            told[mutant] = any(part and _tests_fail(finder, part) for part in parts)
            print("noticed " if told[mutant] else "SURVIVES", mutant, flush=True)
        Path(out).write_text(json.dumps(told, indent=1))
    print(f"{sum(map(bool, told.values()))} of {len(told)} noticed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Tell the tracer which test runs; this module is a plugin of the tests that are covered."""
    import coverage

    tracer = coverage.Coverage.current()
    if tracer:
        tracer.switch_context(item.nodeid)
    return (yield)


def cover(out: str) -> int:
    """Run the suite and write down which test runs which line."""
    command = [sys.executable, "-m", "coverage", "run", "--branch", "--source=krag_eval"]
    command += [f"--data-file={Path(out).resolve()}", "-m", "pytest", "-q", "-p", "mutants"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    left = [f"--ignore={one}" for one in UNTRACED]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command + left, cwd=ROOT, env=environment).returncode


def compare(before: str, after: str) -> int:
    """Print what was noticed before and survives now."""
    was, now = (json.loads(Path(one).read_text()) for one in (before, after))
    lost = [one for one, noticed in was.items() if noticed and now[one] is False]
    gone = sum(noticed is None for noticed in now.values())
    counts = [sum(map(bool, one.values())) for one in (was, now)]
    told = "{} noticed before, {} now, {} gone with their code".format(*counts, gone)
    print(told, *lost, sep="\n")
    return int(bool(lost))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit({"cover": cover, "plant": plant, "compare": compare}[sys.argv[1]](*sys.argv[2:]))
