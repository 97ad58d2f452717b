"""LangSmith's examples, and what runs made of them, as data sets; LangSmith is never imported.

An example has ``inputs`` with the question and ``outputs`` with what is expected; where there are
``reference_outputs``, those are expected, and ``outputs`` are what a run returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from krag_eval._errors import clipped
from krag_eval.datasets.columns import Columns, Row, check_text, documents_in_cell, named
from krag_eval.datasets.dataset import Dataset, Mark, labels_and_questions
from krag_eval.datasets.vocabularies import LANGSMITH, QUESTIONS, Mapped
from krag_eval.integrations.payloads import OUTPUT_KEYS, REFERENCE_KEYS, documents_in

__all__ = [
    "example_as_row",
    "langsmith_dataset",
]

_QUESTION_KEYS = (*QUESTIONS, "input")


def example_as_row(example: Any) -> Mapping[str, Any] | None:
    """Return LangSmith's objects as rows; ``None`` if this is none.

    An ``Example`` has inputs and outputs; a row of an experiment's results has a run and its
    example.
    """
    if isinstance(example, Mapping):
        if not {"run", "example"} <= example.keys():
            return None
        run, reference = example["run"], example["example"]
        if not hasattr(run, "outputs") or not hasattr(reference, "inputs"):
            return None
        return {
            "inputs": reference.inputs,
            "outputs": run.outputs,
            "reference_outputs": reference.outputs,
        }
    if not hasattr(example, "inputs"):
        return None
    row = {name: getattr(example, name) for name in LANGSMITH if hasattr(example, name)}
    return row if len(row) > 1 else None


def langsmith_dataset(table: Columns, mapped: Mapped) -> Dataset:
    """Return the data set of a table with the columns ``inputs`` and ``outputs``.

    Args:
        table: The table; ``reference_outputs`` may be there as well.
        mapped: Keys within them, where the usual ones are not meant.

    Raises:
        DatasetError: If a row cannot be used; the message names it.
    """
    table.check_has(["inputs"])
    is_run = "reference_outputs" in table.columns and "outputs" in table.columns
    expected = "reference_outputs" if "reference_outputs" in table.columns else "outputs"
    asked = _questions(table, mapped.question)
    actual = _side(table, expected, mapped.actual, REFERENCE_KEYS, "actual")
    predicted = (
        _side(table, "outputs", mapped.predicted, OUTPUT_KEYS, "predicted") if is_run else None
    )
    marks = [Mark()] * len(asked)
    queries, questions = labels_and_questions(
        asked, marks, table.name, "question", lambda number: f"row {number}"
    )
    notes = [
        f"LangSmith examples: ground truth read from {expected}",
        "retrieved documents read from outputs" if is_run else "no retrieved documents",
    ]
    return Dataset(
        queries, actual, predicted, table.name, [*table.lines], questions=questions, notes=notes
    )


def _questions(table: Columns, key: str | None) -> list[str | int | None]:
    key = None if key is None else key.removeprefix("inputs.")
    found: list[str | int | None] = []
    for row, inputs in table.cells("inputs"):
        if not isinstance(inputs, Mapping):
            raise row.error(f"must be an object with the question, got {named(inputs)}.")
        if key is None:
            key = _question_key(inputs, row)
        if key not in inputs:
            raise row.error(f"has no {key!r}; its keys are {clipped([*inputs])}.")
        text = inputs[key]
        if not isinstance(text, str):
            raise row.error(
                f"[{key!r}] must be text, got {named(text)}; name the key of the question by "
                "question=…."
            )
        check_text(text, f"[{key!r}]", row)
        found.append(text)
    return found


def _question_key(inputs: Mapping[str, Any], row: Row) -> str:
    keys = [*inputs] if len(inputs) == 1 else [key for key in _QUESTION_KEYS if key in inputs]
    if len(keys) != 1:
        raise row.error(
            f"holds {clipped([*inputs])}, and it is not clear which is the question; name it by "
            "question=…."
        )
    return str(keys[0])


def _side(
    table: Columns, column: str, key: str | None, usual: tuple[str, ...], option: str
) -> list[list[Any]]:
    key = None if key is None else key.removeprefix(f"{column}.")
    found = []
    for row, value in table.cells(column):
        try:
            documents = documents_in(value, key, usual, column, option)
        except (TypeError, ValueError) as error:
            raise row._replace(column="").error(str(error)) from error
        found.append(documents_in_cell(documents, row, ground_truth=option == "actual"))
    return found
