"""Rows as clusters hold them, and the result of a local run over them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator

WORDS = [
    "opening",
    "hours",
    "of",
    "the",
    "library",
    "books",
    "loans",
    "fees",
    "rooms",
    "printing",
    "access",
    "cards",
]


def sample(n_queries: int = 60, seed: int = 3) -> list[dict[str, Any]]:
    """Return rows with texts: some found, some missed, some with nothing retrieved."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(6, 12)))

    rows = []
    for number in range(n_queries):
        actual = [text() for _ in range(rng.randint(1, 3))]
        predicted = [text() for _ in range(rng.randint(0, 6))]
        for one in actual:
            if rng.random() < 0.6:
                predicted.insert(rng.randrange(len(predicted) + 1), f"{text()} {one} {text()}")
        rows.append({"question": f"Question {number}?", "actual": actual, "predicted": predicted})
    return rows


def local(rows: Sequence[dict[str, Any]], k: Any = (1, 3, 10), **options: Any) -> EvaluationResult:
    """Evaluate the rows in this process."""
    return OfflineRetrievalEvaluator(
        [row["actual"] for row in rows],
        [row["predicted"] for row in rows],
        queries=[row["question"] for row in rows],
        **options,
    ).evaluate(k)
