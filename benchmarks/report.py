"""What a page of every query costs: time to write, size, elements; time against evaluating the run.

    python -m benchmarks.report [--quick]

2,000 questions with two golden passages and ten retrieved chunks of 200 generated words each. The
page lists all of them with excerpts; the evaluation whose result it shows reads all of their words.
What its pictures take, which does not grow with the queries, is written by a page without queries.

Times are CPU times of one process, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.measuring import Goal, Row, in_turns, machine, spelled_seconds, table
from benchmarks.rouge import generated_words
from krag_eval import EvaluationResult, OfflineRetrievalEvaluator
from krag_eval.core.errors import muted

os.environ.setdefault("MPLBACKEND", "Agg")

QUESTIONS, DEPTH, WORDS = 2_000, 10, 200
MEGABYTES = 6.0
#: Writing the list -> at most so many times the evaluation.
TIMES = 8.0


def rows(quick: bool) -> list[Row]:
    run = generated(QUESTIONS // 10 if quick else QUESTIONS)
    result = evaluated(*run)
    with tempfile.TemporaryDirectory() as folder:
        path, bare = Path(folder) / "report.html", Path(folder) / "bare.html"
        result.report(bare, intervals=False, n_queries=0)  # loads what draws and writes
        rounds = in_turns(
            {
                "evaluate": lambda: evaluated(*run),
                "write": lambda: result.report(path, intervals=False),
                "bare": lambda: result.report(bare, intervals=False, n_queries=0),
            },
            rounds=3,
        )
        size, source = path.stat().st_size, path.read_text("utf-8")
    counted = Counted(source)
    of_list = rounds.median("write") - rounds.median("bare")
    name = f"a page of {len(run[0]):,} queries, {DEPTH} chunks of {WORDS} words each"
    return [
        Row(
            f"{name}: its list, against evaluating",
            of_list / rounds.median("evaluate"),
            ours=spelled_seconds(of_list),
            theirs=spelled_seconds(rounds.median("evaluate")),
            goal=Goal("at most", TIMES),
            note=f"and {spelled_seconds(rounds.median('bare'))} for pictures and tables",
        ),
        Row(
            f"{name}: its size",
            size / 1e6,
            unit="MB",
            goal=Goal("at most", MEGABYTES),
            note=f"{counted.n_queries:,} queries shown, {counted.n_elements:,} elements",
        ),
    ]


class Counted(HTMLParser):
    """A page: how many elements it has, and how many queries."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.n_elements = self.n_queries = 0
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.n_elements += 1
        self.n_queries += ("class", "query") in attrs


def evaluated(actual: Any, predicted: Any, queries: list[str]) -> EvaluationResult:
    with muted():
        evaluator = OfflineRetrievalEvaluator(
            actual, predicted, matcher="coverage", queries=queries
        )
        return evaluator.evaluate([1, 5, DEPTH])


def generated(
    n_questions: int, seed: int = 0
) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """Return golden passages, retrieved chunks and questions; most questions find something."""
    draw = random.Random(seed)
    words = generated_words(draw, 30_000)
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    text = draw.choices(words, cum_weights=weights, k=n_questions * DEPTH * WORDS)
    chunks = [" ".join(text[at : at + WORDS]) for at in range(0, len(text), WORDS)]
    actual, predicted, questions = [], [], []
    for _ in range(n_questions):
        starts = [draw.randrange(len(text) - 60) for _ in range(2)]
        retrieved = [draw.randrange(len(chunks)) for _ in range(DEPTH)]
        if draw.random() < 0.7:
            retrieved[draw.randrange(DEPTH)] = starts[0] // WORDS
        actual.append([" ".join(text[at : at + draw.randint(15, 60)]) for at in starts])
        predicted.append([chunks[number] for number in retrieved])
        questions.append(" ".join(draw.choices(words, cum_weights=weights, k=10)))
    return actual, predicted, questions


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report")
    parser.add_argument("--quick", action="store_true", help="a tenth of the queries")
    print(machine() + "\n")
    print(table(rows(parser.parse_args().quick)))


if __name__ == "__main__":
    main()
