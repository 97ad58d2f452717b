"""Run every benchmark and print one table of ratios.

    python -m benchmarks [--quick] [--only ids --only rouge] [--file QUERIES.jsonl.gz]

Each module that defines ``rows`` runs in a process of its own, so that neither its memory nor what
it has loaded changes the next one's numbers. Nothing runs beside it: close what else is busy.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.gathering import in_own_process, names_of_modules
from benchmarks.measuring import Row, machine, table, versions

DISTRIBUTIONS = (
    "krag-eval", "numpy", "pandas", "scipy", "rapidfuzz", "nltk", "rouge-score", "rouge",
    "rouge-rs", "pytrec-eval-terrier", "ranx", "numba", "ir-measures", "langchain-core", "pyarrow",
    "joblib", "kiwipiepy",
)  # fmt: skip


def main() -> None:
    arguments = parsed_arguments()
    print(machine())
    print(", ".join(f"{n} {v or 'not installed'}" for n, v in versions(DISTRIBUTIONS).items()))
    print(f"CPU or wall time, median of several rounds; {'quick' if arguments.quick else 'full'}\n")
    rows: list[Row] = []
    for name in arguments.only or names_of_modules():
        start = time.perf_counter()
        found = in_own_process(name, arguments.quick, arguments.file)
        rows += found
        # What is known already, for a whole that may take half an hour.
        seconds = time.perf_counter() - start
        print(f"{name}, {seconds:.0f} s\n{table(found)}\n", file=sys.stderr, flush=True)
    print(table(rows))
    goals = [row for row in rows if row.goal is not None]
    missed = [row for row in goals if row.met is False]
    unknown = [row for row in goals if row.met is None]
    print(f"\n{len(goals)} goals, {len(missed)} missed, {len(unknown)} not measured")


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="smaller inputs and fewer rounds")
    parser.add_argument(
        "--only", action="append", choices=names_of_modules(), help="run this module; repeatable"
    )
    parser.add_argument(
        "--file", type=Path, help="JSONL of your own for `krag-eval evaluate`, beside the made one"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
