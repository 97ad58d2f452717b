"""From a table whose columns are understood to a data set: its labels, questions and documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from krag_eval.datasets.base import Dataset, Place
from krag_eval.datasets.cells import check_text, documents_in_cell, list_in
from krag_eval.datasets.columns import Columns, Row, named
from krag_eval.datasets.marks import OWN, Mark, labels_and_questions, mark_in, same_defaults
from krag_eval.datasets.shapes import Mapped, Roles, Side, roles_of, said
from krag_eval.datasets.strict_json import parsed

__all__ = ["mark_in_cell", "question_in_cell", "table_dataset"]


def table_dataset(table: Columns, mapped: Mapped) -> Dataset:
    """Return the data set that a table holds.

    Args:
        table: The table.
        mapped: The columns that the user named.

    Raises:
        DatasetError: If a column or a cell cannot be used.
    """
    roles = roles_of(table, mapped)
    table.check_has([roles.actual.texts or roles.actual.ids or ""])
    asked: Sequence[str | int | None] = [None] * table.n_rows
    marks = _marks(table)
    if roles.question is not None:
        asked = [
            mark.question(question_in_cell(value, row))
            for mark, (row, value) in zip(marks, table.cells(roles.question), strict=True)
        ]
    queries, questions = labels_and_questions(
        asked, marks, table.name, roles.question or "question", _counted(table)
    )
    actual = _documents(table, roles.actual, ground_truth=True)
    predicted = (
        None if roles.predicted is None else _documents(table, roles.predicted, ground_truth=False)
    )
    return Dataset(
        queries,
        actual,
        predicted,
        table.name,
        [*table.lines],
        {**_defaults(roles, table), **same_defaults(marks, lambda one: table.row(one, ""))},
        questions,
        said(roles),
    )


def _counted(table: Columns) -> Any:
    """Return how to name a row in a warning."""
    return lambda number: (
        f"on line {table.lines[number]}" if table.lines else f"row {table.first + number}"
    )


def _defaults(roles: Roles, table: Columns) -> dict[str, Any]:
    """Compare by id where a side has no texts; refuse sides that have nothing in common."""
    sides = [side for side in (roles.actual, roles.predicted) if side is not None]
    if all(side.texts for side in sides):
        return {}
    if not all(side.ids for side in sides):
        raise Place(table.name).error(
            f"{roles.actual} and {roles.predicted} cannot be compared: one has texts and the other "
            "ids; name columns of one kind by actual=… and predicted=…."
        )
    return {"matcher": "id"}


def question_in_cell(value: Any, row: Row) -> str | int | None:
    """Return a question; ``None`` where there is none."""
    missing = named(value) == "nothing" or value == ""
    if missing:
        return None
    if isinstance(value, Mapping):
        raise row.error(
            "must be text, got an object; a file that pandas writes by column is written by row "
            'with frame.to_json(path, orient="records").'
        )
    if isinstance(value, list | tuple):
        raise row.error(
            "must be text, got a list; conversations of several turns are not read: keep the "
            "question alone."
        )
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise row.error(f"must be text or a whole number, got {named(value)}.")
    if isinstance(value, str):
        check_text(value, "", row)
    return value


def _marks(table: Columns) -> list[Mark]:
    if OWN not in table.columns:
        return [Mark()] * table.n_rows
    return [mark_in_cell(value, row._replace(column="")) for row, value in table.cells(OWN)]


def mark_in_cell(value: Any, place: Row) -> Mark:
    """Return what krag_eval adds to a row, written as JSON."""
    if named(value) == "nothing" or value == "":
        return Mark()
    if isinstance(value, str):
        try:
            value = parsed(value, place)
        except json.JSONDecodeError as error:
            raise place.error(
                f'"krag_eval" must be what Dataset.save wrote, an object as JSON ({error.msg}); '
                "leave the column out."
            ) from error
    return mark_in(value, place)


def _documents(table: Columns, side: Side, *, ground_truth: bool) -> list[list[Any]]:
    if side.texts is None:
        return [_ids(value, row) for row, value in table.cells(side.ids or "")]
    lists = [
        documents_in_cell(value, row, ground_truth=ground_truth)
        for row, value in table.cells(side.texts)
    ]
    if side.ids is not None:
        for number, (row, value) in enumerate(table.cells(side.ids)):
            lists[number] = _with_ids(lists[number], _ids(value, row), row)
    if side.metadata:
        for number in range(table.n_rows):
            lists[number] = _with_metadata(lists[number], side.metadata, table, number)
    return lists


def _ids(value: Any, row: Row) -> list[str]:
    ids = list_in(value, row)
    for one in ids:
        if isinstance(one, bool) or not isinstance(one, str | int) or one == "":
            raise row.error(f"must be a list of ids, got {named(one)} as one of them.")
    return [str(one) for one in ids]


def _with_ids(documents: list[Any], ids: list[str], row: Row) -> list[Any]:
    _check_plain(documents, len(ids), row)
    return [
        {"page_content": text, "id": identity}
        for text, identity in zip(documents, ids, strict=True)
    ]


def _with_metadata(
    documents: list[Any], columns: Sequence[str], table: Columns, number: int
) -> list[Any]:
    """Return texts as documents with metadata, as krag makes them."""
    values = {}
    for column in columns:
        row = table.row(number, column)
        values[column] = list_in(table.columns[column][number], row)
        _check_plain(documents, len(values[column]), row)
    return [
        {"page_content": text, "metadata": {name: values[name][at] for name in columns}}
        for at, text in enumerate(documents)
    ]


def _check_plain(documents: list[Any], n_values: int, row: Row) -> None:
    if n_values != len(documents):
        raise row.error(
            f"must have one value for each of the {len(documents)} documents, got {n_values}."
        )
    if not all(isinstance(text, str) for text in documents):
        raise row.error("belongs to documents that are plain texts; these are not.")
