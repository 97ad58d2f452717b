"""From a table whose columns are understood to a data set: its labels, questions and documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from krag_eval._errors import Place, warn
from krag_eval.datasets.columns import Columns, Row, check_text, documents_in_cell, list_in, named
from krag_eval.datasets.dataset import (
    OWN,
    Dataset,
    Mark,
    labels_and_questions,
    mark_in,
    same_defaults,
)
from krag_eval.datasets.strict_json import parsed
from krag_eval.datasets.vocabularies import Mapped, Roles, Side, roles_of, said
from krag_eval.documents import AnyOf, DocumentLike, id_of, metadata_of

__all__ = [
    "check_overlap",
    "ids_in",
    "mark_in_cell",
    "question_in_cell",
    "table_dataset",
    "with_texts",
]


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
        roles.shape,
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


def check_overlap(
    expected: Collection[str],
    given: Collection[str],
    *,
    expected_name: str,
    given_name: str,
    absent: str | None = "and count as nothing retrieved",
) -> None:
    """Warn of queries that only one side knows.

    Args:
        expected: The queries to evaluate.
        given: Those something was retrieved for.
        expected_name: Where the former stand.
        given_name: Where the latter stand.
        absent: What happens to those of the former that the latter lack, for the warning; no
            warning if ``None``.

    Raises:
        DatasetError: If they have none in common.
    """
    known, retrieved = frozenset(expected), frozenset(given)
    if known.isdisjoint(retrieved):
        some = f" (such as {next(iter(given))!r})" if given else ""
        raise Place(given_name).error(
            f"none of its {len(given)} queries{some} is among the {len(expected)} of "
            f"{expected_name} (such as {next(iter(expected))!r}); are they of the same collection?"
        )
    extra = [query for query in given if query not in known]
    if extra:
        warn(
            f"{given_name}: {len(extra)} of {len(given)} queries are not in {expected_name} and "
            f"are left out (the first is {extra[0]!r})."
        )
    lacking = [query for query in expected if query not in retrieved]
    if lacking and absent is not None:
        warn(
            f"{given_name}: {len(lacking)} of the {len(expected)} queries of {expected_name} are "
            f"missing (the first is {lacking[0]!r}) {absent}."
        )


def ids_in(dataset: Dataset) -> set[str]:
    """Return the ids of all documents, of the ground truth and retrieved.

    >>> sorted(ids_in(Dataset(["q"], [[AnyOf(["a", "b"])]], [["a", "c"]])))
    ['a', 'b', 'c']
    """
    lists = chain(map(_single, dataset.actual), dataset.predicted or ())
    return {identity for document in chain.from_iterable(lists) if (identity := id_of(document))}


def _single(items: list[DocumentLike | AnyOf]) -> Iterator[DocumentLike]:
    for item in items:
        yield from item.alternatives if isinstance(item, AnyOf) else (item,)


def with_texts(
    dataset: Dataset,
    corpus: Mapping[str, Mapping[str, Any]],
    name: str,
    *,
    predicted: bool = True,
) -> Dataset:
    """Return the data set with the corpus's texts and metadata in place of bare ids.

    A document that the corpus lacks has an empty text and keeps its id; a warning counts them.

    Args:
        dataset: A data set of ids.
        corpus: Id -> document, as a dict with ``"page_content"``, ``"id"`` and perhaps
            ``"metadata"``. A document of the data set keeps metadata of its own, such as its grade.
        name: What to call the corpus.
        predicted: Whether the retrieved documents get texts too.

    >>> corpus = {"a": {"page_content": "At nine.", "id": "a"}}
    >>> with_texts(Dataset(["q"], [["a"]], [[]]), corpus, "corpus").actual
    [[{'page_content': 'At nine.', 'id': 'a'}]]
    """
    absent: dict[str, None] = {}

    def full(document: DocumentLike) -> DocumentLike:
        identity = id_of(document) or ""
        known = corpus.get(identity)
        if known is None:
            absent[identity] = None
            known = {"page_content": "", "id": identity}
        own = metadata_of(document)
        return {**known, "metadata": {**metadata_of(known), **own}} if own else known

    def item(one: DocumentLike | AnyOf) -> DocumentLike | AnyOf:
        return AnyOf(map(full, one.alternatives)) if isinstance(one, AnyOf) else full(one)

    made = replace(dataset, actual=[[*map(item, items)] for items in dataset.actual])
    if predicted and dataset.predicted is not None:
        made = replace(made, predicted=[[*map(full, one)] for one in dataset.predicted])
    if absent:
        warn(
            f"{name}: {len(absent)} documents are not in it (the first is {next(iter(absent))!r}); "
            "they have an empty text, which no text matcher matches."
        )
    return made
