"""Measure time and memory of joining a golden set and a run, from the disk and in memory.

    python -m benchmarks.joining [--queries 100000] [--rounds 3] [--streamed-alone]

Writes a golden set and a run of as many lines, in another order, with five short documents each
(0.5 GB together for a million), and joins and evaluates them: by ``evaluate_file`` in chunks, and
by ``load_dataset`` in memory. Each run has a process of its own, the two sides take turns, and the
averages must be equal to the last digit. The table has medians, and the median of the ratios of
each round; memory is the peak of the process (resident), CPU time that of joining and evaluating.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measuring import Goal, Row, machine, spelled_seconds, table

N_DOCUMENTS = 5
WORDS = [f"word{number}" for number in range(5_000)]

STREAMED = """
from krag_eval import evaluate_file
result = evaluate_file(golden, run, chunk_size=5_000, progress=False)
"""
IN_MEMORY = """
from krag_eval import load_dataset
result = load_dataset(golden, retrieved=run, max_bytes=None).evaluator().evaluate()
"""
MEASURED = """
import json, resource, sys, time
golden, run = sys.argv[1:]
begun = time.process_time()
{code}
averages = result.to_dict()
print(json.dumps({{
    "seconds": time.process_time() - begun,
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "averages": averages,
}}))
"""


def write(golden: Path, run: Path, n: int) -> None:
    """Write questions, and what was retrieved for them in another order."""
    random_ = random.Random(7)
    order = [*range(n)]
    with golden.open("w", encoding="utf-8") as file:
        for number in order:
            wanted = [f"passage {number}.0", f"missing {number}"]
            line = {"id": f"q{number}", "question": f"question {number}?", "actual": wanted}
            file.write(json.dumps(line) + "\n")
    random_.shuffle(order)
    with run.open("w", encoding="utf-8") as file:
        for number in order:
            found = [f"{' '.join(random_.choices(WORDS, k=7))} {number}.{place}"
                     for place in range(N_DOCUMENTS - 1)]  # fmt: skip
            found.insert(random_.randrange(N_DOCUMENTS), f"passage {number}.{number % 2}")
            file.write(json.dumps({"id": f"q{number}", "predicted": found}) + "\n")


def measured(code: str, golden: Path, run: Path) -> dict[str, Any]:
    """Run code in a process of its own, and return what it printed."""
    begun = time.monotonic()
    command = [sys.executable, "-c", MEASURED.format(code=code), str(golden), str(run)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "elapsed": time.monotonic() - begun}


def compared(n: int, rounds: int, *, alone: bool = False) -> list[Row]:
    """Return the rows of a size: time and memory of both sides."""
    sides = {"streamed": STREAMED} if alone else {"streamed": STREAMED, "in memory": IN_MEMORY}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as name:
        golden, run = Path(name, "golden.jsonl"), Path(name, "run.jsonl")
        write(golden, run, n)
        for _ in range(rounds):
            for side, code in sides.items():
                found[side].append(measured(code, golden, run))
    if len({json.dumps(one["averages"]) for some in found.values() for one in some}) > 1:
        raise SystemExit("the averages differ")
    size = f"{n:,} lines each"
    largest = max(one["megabytes"] for one in found["streamed"])
    return [
        row(f"joining, CPU time, {size}", found, "seconds", spelled_seconds),
        row(f"joining, wall time, {size}", found, "elapsed", spelled_seconds),
        row(f"joining, peak memory, {size}", found, "megabytes", "{:,.0f} MB".format),
        Row(f"joining, largest peak, {size}", largest, "MB", goal=Goal("at most", 1_000)),
    ]


def row(name: str, found: dict[str, list[dict[str, Any]]], key: str, spell: Any) -> Row:
    """Return one row: what both sides took, and how many times as much memory takes."""
    values = {side: [one[key] for one in some] for side, some in found.items()}
    ours, theirs = values["streamed"], values.get("in memory")
    if theirs is None:
        return Row(name, None, ours=spell(median(ours)))
    ratio = median(other / own for own, other in zip(ours, theirs, strict=True))
    note = "other: in memory; averages equal"
    return Row(name, ratio, ours=spell(median(ours)), theirs=spell(median(theirs)), note=note)


def rows(quick: bool) -> list[Row]:
    return compared(5_000 if quick else 50_000, 1 if quick else 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streamed-alone", action="store_true", help="leave the other side out")
    options = parser.parse_args()
    print(machine())
    print(table(compared(options.queries, options.rounds, alone=options.streamed_alone)))


if __name__ == "__main__":
    main()
