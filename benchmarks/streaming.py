"""Measure the memory and the speed of ``evaluate_file``, each run in a process of its own.

    python -m benchmarks.streaming [--queries 1000000] [--in-memory 50000] [--matcher text]

Writes JSON lines of queries with 10 short documents each into a temporary directory (about 0.9 GB
for a million), evaluates them in chunks with per-query rows as Parquet, and prints the peak of the
memory that the process had in use (resident), its CPU time and the queries per second. The same is
done at the smaller size in chunks and in memory, where the averages are compared too.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

N_DOCUMENTS = 10
WORDS = [f"word{number}" for number in range(5_000)]

CHUNKED = """
import json, resource, sys, time
from krag_eval import evaluate_file
path, rows, matcher = sys.argv[1:]
begun = time.process_time()
result = evaluate_file(path, matcher=matcher, per_query=rows, resume=False, progress=False)
{report}
"""
IN_MEMORY = """
import json, resource, sys, time
from krag_eval.datasets import read_jsonl
path, _, matcher = sys.argv[1:]
begun = time.process_time()
result = read_jsonl(path).evaluator(matcher=matcher).evaluate()
result.to_dict()
{report}
"""
REPORT = """
print(json.dumps({
    "seconds": time.process_time() - begun,
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "averages": result.to_dict(),
}))
"""


def write_queries(path: Path, n: int) -> None:
    """Write queries one by one: each with one or two documents to find among ten short ones."""
    random_ = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(n):
            documents = [
                f"{' '.join(random_.choices(WORDS, k=7))} {number}.{place}"
                for place in range(N_DOCUMENTS)
            ]
            wanted = [*random_.sample(documents, random_.randint(1, 2)), f"missing {number}"]
            line = {"question": f"question {number}?", "actual": wanted, "predicted": documents}
            file.write(json.dumps(line) + "\n")


def measured(code: str, path: Path, folder: Path, matcher: str) -> dict[str, Any]:
    """Run code in a process of its own, and return what it printed."""
    arguments = [str(path), str(folder / "rows.parquet"), matcher]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code.format(report=REPORT), *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return {**json.loads(done.stdout), "elapsed": time.monotonic() - begun}


def line(what: str, n: int, found: dict[str, Any]) -> str:
    """Return one line of the table."""
    return (
        f"{what:<12} {n:>10,} queries {found['megabytes']:>8,.0f} MB {found['seconds']:>8,.1f} s "
        f"CPU {found['elapsed']:>8,.1f} s {n / found['seconds']:>10,.0f} queries/s (CPU)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--in-memory", type=int, default=50_000)
    parser.add_argument("--matcher", default="text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "queries.jsonl"
        write_queries(path, options.in_memory)
        chunked = measured(CHUNKED, path, folder, options.matcher)
        in_memory = measured(IN_MEMORY, path, folder, options.matcher)
        print(line("in chunks", options.in_memory, chunked))
        print(line("in memory", options.in_memory, in_memory))
        equal = chunked["averages"] == in_memory["averages"]
        print(f"averages equal to the last digit: {'yes' if equal else 'NO'}", flush=True)
        write_queries(path, options.queries)
        size = path.stat().st_size / 2**20
        print(line("in chunks", options.queries, measured(CHUNKED, path, folder, options.matcher)))
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"(input {size:,.0f} MB; this script itself {own:,.0f} MB)")


if __name__ == "__main__":
    main()
