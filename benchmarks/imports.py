"""Imports against numpy's, each in a fresh process.

    python -m benchmarks.imports [--quick]

Times are CPU times of a whole process, and what the interpreter alone takes is taken off. What
``import krag_eval`` leaves for later is loaded by the first name asked for.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

from benchmarks.measuring import Goal, Row, in_turns, machine, spelled_seconds, table

EVALUATOR = "from krag_eval import OfflineRetrievalEvaluator"
#: Statement -> how long it may take, as a multiple of ``import numpy``.
GOALS = {"import krag_eval": 1.3, EVALUATOR: None, f"{EVALUATOR}, RougeMatcher": None}


def rows(quick: bool) -> list[Row]:
    statements = ("pass", "import numpy", *GOALS)
    timings = in_turns(
        {statement: lambda statement=statement: run(statement) for statement in statements},
        5 if quick else 21,
        clock=cpu_time_of_children,
    )
    alone = timings.median("pass")
    seconds = {statement: timings.median(statement) - alone for statement in statements}
    return [
        Row(
            f"{statement}, numpy",
            seconds[statement] / seconds["import numpy"],
            unit="× numpy",
            ours=spelled_seconds(seconds[statement]),
            theirs=spelled_seconds(seconds["import numpy"]),
            goal=most and Goal("at most", most),
        )
        for statement, most in GOALS.items()
    ]


def run(statement: str) -> None:
    subprocess.run([sys.executable, "-c", statement], check=True)


def cpu_time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()
