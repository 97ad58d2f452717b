"""Running the command, in this process or as a program, and reading what it prints."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from krag_eval import cli
from krag_eval.cli import main

# A program of its own finds the package being tested, installed or not.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[2])}
SAMPLE = """\
{"question": "First?", "actual": ["doc1", "doc2", "doc5"], "predicted": ["doc1", "doc2", "doc5"]}
{"question": "둘째?", "actual": ["doc3", "doc4"], "predicted": ["doc6", "doc4", "doc5"]}
"""

# Toy lists are shorter than the default cutoffs; test_budgets.py tests the warning.
_OF_TOYS = re.compile(
    r"^warning: [^\n]*(Every list has at most|No list is longer than) [^\n]*\n", re.MULTILINE
)
# Before 8.2 click keeps standard error apart only if asked to, and then has no output of both.
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


@dataclass(frozen=True)
class Run:
    """What a run of the command printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str
    output: str
    exception: BaseException | None


def invoked(*arguments: object, stdin: str | bytes | None = None) -> Run:
    """Run the command in this process, however it ends.

    One text is a whole line, as it is typed.
    """
    line = arguments[0] if len(arguments) == 1 else None
    typed = shlex.split(line) if isinstance(line, str) else [str(one) for one in arguments]
    result = CliRunner(**_APART).invoke(main, typed, input=stdin)
    output = result.stdout + result.stderr if _APART else result.output
    return Run(result.exit_code, result.stdout, result.stderr, output, result.exception)


def run(*arguments: object, stdin: str | bytes | None = None) -> Run:
    """Run the command in this process; a bug ends in an exception."""
    result = invoked(*arguments, stdin=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "Traceback (most recent call last)" in result.output:
        assert result.exit_code == 2
        raise result.exception.__cause__
    return replace(
        result, output=_OF_TOYS.sub("", result.output), stderr=_OF_TOYS.sub("", result.stderr)
    )


def shell(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a program of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "krag_eval", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        **{"env": ENVIRONMENT, **options},  # type: ignore[call-overload]
    )
    if isinstance(done.stderr, str):
        done.stderr = _OF_TOYS.sub("", done.stderr)
    return done  # type: ignore[no-any-return]


def content(line: str) -> dict[str, Any]:
    """Return the JSON that a command prints."""
    found: dict[str, Any] = json.loads(run(f"{line} --format json").stdout)
    return found


def rows_in(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def written(name: str | Path, rows: Iterable[object]) -> Path:
    """Write JSON lines."""
    path = Path(name)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    return path


def finding(first_n: int, n: int = 40, **changes: object) -> list[dict[str, object]]:
    """Return the rows of a retriever that finds the first so many of n passages."""
    return [
        {
            "question": f"Question {i}?",
            "actual": [f"passage {i}"],
            "predicted": [f"passage {i}" if i < first_n else "other"],
            **changes,
        }
        for i in range(n)
    ]


def refusal(*arguments: object) -> str:
    """Return the one line with which the command refuses, after ``krag-eval: error:``."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert result.output.startswith("krag-eval: error: ")
    return result.output.removeprefix("krag-eval: error: ").rstrip()


def table(line: str) -> dict[str, list[str]]:
    """Return the rows of the table that a command prints."""
    return printed(run(line).stdout)


def printed(output: str) -> dict[str, list[str]]:
    """Return the rows of the printed table: name -> cells.

    Where micro stands beside macro, such a row is one for each of them, by their keys. What counts
    as found is left out of names.
    """
    rows = [line.split() for line in re.sub(r" \((all|any) found\)", "", output).splitlines()]
    table = {cells[0]: cells[1:] for cells in rows if len(cells) > 1}
    header = table.get("metric", [])
    if header and header[0] == "macro":
        # The cutoffs stand above, once for each of the two.
        cutoffs = [above for above, cells in pairwise(rows) if cells[:1] == ["metric"]]
        table["metric"] = cutoffs[-1]
        for name in [name for name, cells in table.items() if len(cells) == len(header)]:
            both = table.pop(name)
            table |= {f"macro_{name}": both[::2], f"micro_{name}": both[1::2]}
        table["metric"] = table.pop("macro_metric")
    return table
