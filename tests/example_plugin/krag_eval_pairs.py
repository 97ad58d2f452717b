"""A package that brings a format and a metric.

The format has a question and its answers on a line, ``When?=At nine.|At ten.``.
"""

from __future__ import annotations

from collections.abc import Iterator

from krag_eval import Metric
from krag_eval.core.errors import Place
from krag_eval.datasets import File, Format


def rows(file: File) -> Iterator[tuple[Place, dict[str, object]]]:
    """Yield the first answer as ground truth, and all of them as retrieved."""
    for number, text in file.lines():
        if number > file.skipped:
            question, _, answers = text.strip().partition("=")
            found = answers.split("|")
            row = {"question": question, "actual": found[:1], "predicted": found[::-1]}
            yield Place(file.name, number), row


def shortness(relevance, k, conventions):
    """Return more for a shorter list."""
    return 1 / (1 + relevance.n_retrieved)


PAIRS = Format("pairs", (".pairs",), rows)
SHORTNESS = Metric("shortness", shortness, "mean_shortness", range=(0.0, 1.0))
