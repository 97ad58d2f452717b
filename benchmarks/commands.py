"""A whole ``krag-eval evaluate``, process start to printed table, beside the least it must do.

    python -m benchmarks.commands [FILE.jsonl[.gz]] [--quick]

Without a file, 500 queries of 2 ground-truth passages of 25 words and 10 retrieved chunks of 200
words, drawn from 1,200 chunks, are written to one. The floor is another Python process that imports
numpy, reads and decodes the same lines, and splits each distinct text at its spaces once. Times are
wall times, since they are what the reader of a shell waits for.
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

from benchmarks.measuring import Row, in_turns, machine, spelled_seconds, table

MATCHERS = ("text", "coverage", "rougeL")
FLOOR = """
import gzip, json, sys
import numpy
texts = set()
open_file = gzip.open if sys.argv[1].endswith(".gz") else open
with open_file(sys.argv[1], "rt", encoding="utf-8") as lines:
    for line in lines:
        row = json.loads(line)
        for document in row["actual"] + row["predicted"]:
            texts.add(document if isinstance(document, str) else document["page_content"])
print(sum(len(text.lower().split()) for text in texts))
"""


def rows(quick: bool, file: Path | None = None) -> list[Row]:
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.jsonl"
        made.write_text("".join(made_lines(100 if quick else 500)), "utf-8")
        found = rows_of(made, "a made file", rounds)
    return found if file is None else found + rows_of(file, "the file given", rounds)


def rows_of(file: Path, name: str, rounds: int) -> list[Row]:
    jobs = {matcher: lambda matcher=matcher: evaluate(file, matcher) for matcher in MATCHERS}
    timings = in_turns(
        {"floor": lambda: run("-c", FLOOR, str(file)), **jobs}, rounds, clock=time.perf_counter
    )
    with open(file, "rb") as opened:
        megabytes = len(opened.read()) / 1e6
    return [
        Row(
            f"krag-eval evaluate, {name}, {matcher}",
            timings.ratio(matcher, "floor"),
            unit="× the floor",
            ours=spelled_seconds(timings.median(matcher)),
            theirs=spelled_seconds(timings.median("floor")),
            note=f"{megabytes:.1f} MB, process start included",
        )
        for matcher in MATCHERS
    ]


def evaluate(file: Path, matcher: str) -> None:
    run("-m", "krag_eval", "evaluate", str(file), "--matcher", matcher, "--no-ground-truth", "skip")


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)[:200]}\n{done.stderr}")


def made_lines(n_queries: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    vocabulary = [f"word{number}" for number in range(8_000)]
    chunks = [draw.choices(vocabulary, k=200) for _ in range(n_queries * 12 // 5)]
    lines = []
    for number in range(n_queries):
        ranked = draw.sample(chunks, 10)
        starts = [draw.randrange(175) for _ in range(2)]
        actual = [" ".join(ranked[i * 3][start : start + 25]) for i, start in enumerate(starts)]
        row = {"question": f"question {number}", "actual": actual}
        lines.append(json.dumps(row | {"predicted": [" ".join(chunk) for chunk in ranked]}) + "\n")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="JSONL of your own, beside the made one")
    parser.add_argument("--quick", action="store_true", help="fewer queries and rounds")
    arguments = parser.parse_args()
    print(f"{machine()}\n\n{table(rows(arguments.quick, arguments.file))}")


if __name__ == "__main__":
    main()
