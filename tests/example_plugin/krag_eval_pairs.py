"""A package that brings a format: questions and answers, ``When?=At nine.|At ten.``, one a line."""

from __future__ import annotations

from collections.abc import Iterator

from krag_eval.datasets import File, Format
from krag_eval.errors import Place


def rows(file: File) -> Iterator[tuple[Place, dict[str, object]]]:
    """Yield the first answer as ground truth, and all of them as retrieved."""
    for number, text in file.lines():
        if number > file.skipped:
            question, _, answers = text.strip().partition("=")
            found = answers.split("|")
            row = {"question": question, "actual": found[:1], "predicted": found[::-1]}
            yield Place(file.name, number), row


PAIRS = Format("pairs", (".pairs",), rows)
