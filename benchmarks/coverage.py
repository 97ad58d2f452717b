"""What coverage costs beside reading the texts: all its metrics against tokenising each text once.

    python -m benchmarks.coverage [--quick] [--file QUERIES.jsonl[.gz]]

472 questions with ten windows of 400 generated words each; the ground truth are excerpts of 15 to
60 words, some of them cut apart by the end of a window. As in mixed English corpora, one window in
four holds a character beyond ASCII. Once each window belongs to one question, once to five. With a
file, its queries are taken instead; each line is an object with "actual" and "predicted", two lists
of texts.

Anything that compares words must tokenise each distinct text once: that is the floor. Times are CPU
times of one process, each the median of several rounds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tracemalloc
from collections.abc import Callable
from itertools import accumulate, chain
from pathlib import Path

from benchmarks.measuring import Goal, Row, in_turns, machine, spelled_seconds, table
from benchmarks.rouge import generated_words
from krag_eval import OfflineRetrievalEvaluator
from krag_eval.core.documents import QuerySet
from krag_eval.core.matching.tokenizers import resolve_tokenizer, tokenize_all

QUESTIONS, DEPTH, WINDOW = 472, 10, 400
_BEYOND_ASCII = 0.25
#: Questions that share a window -> at most so many times the floor.
GOALS = {1: 2.6, 5: 6.0}


def rows(quick: bool) -> list[Row]:
    questions = 100 if quick else QUESTIONS
    times = [
        beside_the_floor(
            f"coverage, every text used by {users} question{'s' if users > 1 else ''}",
            generated_queries(questions, users),
            Goal("at most", goal),
            3 if quick else 7,
        )
        for users, goal in GOALS.items()
    ]
    return [*times, memory(generated_queries(questions, 1))]


def memory(queries: QuerySet) -> Row:
    """Say what is allocated at the peak, beyond the texts."""
    texts = distinct_texts(queries)
    evaluated(generated_queries(2, 1))  # loads what is loaded on first use

    def peak(job: Callable[[], object]) -> float:
        tracemalloc.start()
        kept = job()
        most = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        del kept
        return most

    ours = peak(lambda: evaluated(queries))
    tokens = peak(lambda: list(tokenize_all(resolve_tokenizer("words"), texts)))
    size = sum(map(len, texts)) / 1e6
    return Row(
        "coverage, memory beyond the texts",
        ours / tokens,
        unit="× the tokens",
        ours=f"{ours:.0f} MB",
        theirs=f"{tokens:.0f} MB",
        note=f"at the peak; {size:.0f} million characters, and their tokens as lists of texts",
    )


def distinct_texts(queries: QuerySet) -> list[str]:
    return list(dict.fromkeys(chain(queries.actual.elements, queries.predicted.elements)))


def evaluated(queries: QuerySet) -> object:
    evaluator = OfflineRetrievalEvaluator(
        list(queries.actual), list(queries.predicted), matcher="coverage(union=yes)"
    )
    return evaluator.evaluate([1, 3, 5, 10]).averages(5)


def beside_the_floor(name: str, queries: QuerySet, goal: Goal | None, rounds: int) -> Row:
    texts = distinct_texts(queries)
    tokenizer = resolve_tokenizer("words")
    timings = in_turns(
        {
            "ours": lambda: evaluated(queries),
            "floor": lambda: sum(map(len, tokenize_all(tokenizer, texts))),
        },
        rounds,
    )
    return Row(
        name,
        timings.ratio("ours", "floor"),
        unit="× the floor",
        ours=spelled_seconds(timings.median("ours")),
        theirs=spelled_seconds(timings.median("floor")),
        goal=goal,
        note="all metrics at four cutoffs; the floor tokenises each distinct text once",
    )


def generated_queries(questions: int, users: int, seed: int = 0) -> QuerySet:
    """Cut a long generated text into windows, and ask for excerpts of it.

    Args:
        questions: How many.
        users: Questions that get each window back.
        seed: Of all that is drawn.
    """
    draw = random.Random(seed)
    words = generated_words(draw, 15_000)
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    n_windows = questions * DEPTH // users
    text = draw.choices(words, cum_weights=weights, k=n_windows * WINDOW)
    for place in range(0, len(text), 12):
        text[place] = text[place].capitalize()
        text[place - 1] += draw.choice((".", ".", ",", "?"))
    for place in range(0, len(text), WINDOW):
        if draw.random() < _BEYOND_ASCII:
            text[place + draw.randrange(WINDOW)] += "’s"
    windows = [" ".join(text[i : i + WINDOW]) for i in range(0, len(text), WINDOW)]
    actual, predicted = [], []
    for question in range(questions):
        shown = [(question * DEPTH + step) % n_windows for step in range(DEPTH)]
        draw.shuffle(shown)
        starts = [draw.choice(shown) * WINDOW + draw.randrange(WINDOW) for _ in range(2)]
        excerpts = [" ".join(text[start : start + draw.randint(15, 60)]) for start in starts]
        actual.append([excerpt for excerpt in excerpts if excerpt])
        predicted.append([windows[number] for number in shown])
    return QuerySet.from_lists(actual, predicted)


def from_file(path: Path) -> QuerySet:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return QuerySet.from_lists(
        *([line[name] for line in lines] for name in ("actual", "predicted"))
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    parser.add_argument("--quick", action="store_true", help="fewer questions and rounds")
    parser.add_argument("--file", type=Path, help="JSONL of your own")
    arguments = parser.parse_args()
    print(machine() + "\n")
    if arguments.file is None:
        print(table(rows(arguments.quick)))
    else:
        queries = from_file(arguments.file)
        print(table([beside_the_floor(f"coverage, {arguments.file.name}", queries, None, 7)]))


if __name__ == "__main__":
    main()
