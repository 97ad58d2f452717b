"""A judge that is slow to answer: many calls at a time against one after the other.

    python -m benchmarks.judge [--quick]

The judge waits 50 ms and answers, as a model somewhere else would. 1,000 pairs at 50 at a time take
about as long as 20 calls in sequence, however the judge is written; a second run with the same file
asks nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableLambda

from benchmarks.measuring import Goal, Row, machine, spelled_seconds, table
from krag_eval import JudgeMatcher, OfflineRetrievalEvaluator

SECONDS = 0.05
AT_ONCE = 50


def waits(question: str, actual: str, predicted: str) -> bool:
    time.sleep(SECONDS)
    return actual in predicted


async def waits_async(question: str, actual: str, predicted: str) -> bool:
    await asyncio.sleep(SECONDS)
    return actual in predicted


async def waits_for_texts(texts: dict[str, str]) -> bool:
    return await waits_async(**texts)


def rows(quick: bool) -> list[Row]:
    n_pairs = 200 if quick else 1_000
    judges: dict[str, Any] = {
        "function": waits,
        "async function": waits_async,
        "Runnable": RunnableLambda(lambda texts: waits(**texts)),
        "async Runnable": RunnableLambda(lambda texts: None, afunc=waits_for_texts),
    }
    found = []
    for name, judge in judges.items():
        found += beside_a_sequence(name, judge, n_pairs)
    return found


def beside_a_sequence(name: str, judge: Any, n_pairs: int) -> list[Row]:
    """Judge all pairs so many at a time, and again from the file."""
    sequence = n_pairs / AT_ONCE * SECONDS
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "judged.sqlite"

        def run() -> None:
            matcher = JudgeMatcher(judge, version="1", cache=cache, max_concurrency=AT_ONCE)
            actual = [[f"passage {i}"] for i in range(n_pairs // 10)]
            predicted = [[f"passage {i} {j}" for j in range(10)] for i in range(n_pairs // 10)]
            questions = [f"Question {i}?" for i in range(n_pairs // 10)]
            evaluator = OfflineRetrievalEvaluator(
                actual, predicted, matcher=matcher, queries=questions
            )
            evaluator.calculate_recall(k=5)

        seconds, again = seconds_of(run), seconds_of(run)
    what = f"{n_pairs:,} judge calls of {SECONDS * 1e3:.0f} ms, {AT_ONCE} at a time, {name}"
    in_sequence = f"{n_pairs // AT_ONCE} in sequence"
    return [
        row(f"{what}, against {in_sequence}", seconds, sequence, Goal("at most", 2.0)),
        row(f"{what}, from the file, against {in_sequence}", again, sequence, None),
    ]


def row(name: str, ours: float, theirs: float, goal: Goal | None) -> Row:
    return Row(
        name, ours / theirs, ours=spelled_seconds(ours), theirs=spelled_seconds(theirs), goal=goal
    )


def seconds_of(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()
