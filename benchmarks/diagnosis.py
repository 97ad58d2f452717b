"""What a diagnosis costs beside reading the index: both against tokenising each chunk once.

    python -m benchmarks.diagnosis [--quick]

100,000 chunks of 200 generated words and 1,000 questions with two golden passages each, cut from
the text the chunks are of: some lie within a chunk, some are cut apart, some have been changed, and
most are not retrieved. A diagnosis must tokenise every chunk once: that is the floor. It also
numbers the tokens, finds the runs that chunks share with passages, and looks through all letters
for what is not in the index. A second one, at another cutoff, shares the index.

Times are CPU times of one process, once each at full size.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from itertools import accumulate
from time import process_time
from typing import Any

from benchmarks.measuring import Goal, Row, machine, spelled_seconds, table
from benchmarks.rouge import generated_words
from krag_eval import Index, OfflineRetrievalEvaluator
from krag_eval.core.errors import muted
from krag_eval.core.matching.tokenizers import resolve_tokenizer, tokenize_all

CHUNKS, WINDOW, QUESTIONS = 100_000, 200, 1_000
#: What is read and diagnosed -> at most so many times the floor.
FIRST, AGAIN = 13.0, 8.0


def rows(quick: bool) -> list[Row]:
    n_chunks, n_questions = (10_000, 100) if quick else (CHUNKS, QUESTIONS)
    chunks, questions, actual, predicted = generated(n_chunks, n_questions)
    with muted():
        result = OfflineRetrievalEvaluator(
            actual, predicted, matcher="coverage", queries=questions
        ).evaluate([1, 5])
    tokenizer = resolve_tokenizer("words")
    floor, _ = timed(lambda: sum(map(len, tokenize_all(tokenizer, chunks))))
    index = Index(chunks)
    first, diagnosis = timed(lambda: result.diagnose(index, k=5))
    again, _ = timed(lambda: result.diagnose(index, k=1))
    size = f"{n_chunks:,} chunks of {WINDOW} words, {n_questions:,} questions"
    counts = ", ".join(f"{n} {cause}" for cause, n in diagnosis.counts.items())
    return [
        Row(
            f"diagnosis, {name}: {size}",
            seconds / floor,
            unit="× the floor",
            ours=spelled_seconds(seconds),
            theirs=spelled_seconds(floor),
            goal=Goal("at most", goal),
            note=note,
        )
        for name, seconds, goal, note in (
            ("the index read", first, FIRST, counts),
            ("the index shared", again, AGAIN, "the floor tokenises each chunk once"),
        )
    ]


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    returned = job()
    return process_time() - start, returned


def generated(
    n_chunks: int, n_questions: int, seed: int = 0
) -> tuple[list[str], list[str], list[list[str]], list[list[str]]]:
    """Cut a long generated text into chunks, and ask for passages of it.

    Returns:
        The chunks, the questions, and per question its golden passages and five retrieved chunks.
    """
    draw = random.Random(seed)
    words = generated_words(draw, 30_000)
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    text = draw.choices(words, cum_weights=weights, k=n_chunks * WINDOW)
    chunks = [" ".join(text[at : at + WINDOW]) for at in range(0, len(text), WINDOW)]
    questions, actual, predicted = [], [], []
    for _ in range(n_questions):
        starts = [draw.randrange(len(text) - 60) for _ in range(2)]
        passages = [text[start : start + draw.randint(15, 60)] for start in starts]
        if draw.random() < 0.3:
            passages[0][::4] = draw.choices(words, k=len(passages[0][::4]))
        retrieved = [draw.randrange(n_chunks) for _ in range(4)]
        retrieved.insert(draw.randrange(5), starts[1] // WINDOW)
        questions.append(" ".join(draw.choices(words, cum_weights=weights, k=10)))
        actual.append([" ".join(passage) for passage in passages])
        predicted.append([chunks[number] for number in retrieved])
    return chunks, questions, actual, predicted


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    print(machine() + "\n")
    print(table(rows(parser.parse_args().quick)))


if __name__ == "__main__":
    main()
