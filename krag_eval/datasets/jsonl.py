"""JSON lines: one query per line, with its ground truth and what was retrieved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from krag_eval._errors import Blamed, Place
from krag_eval.datasets.columns import document_in, item_in
from krag_eval.datasets.dataset import (
    OWN,
    Dataset,
    Mark,
    Source,
    labels_and_questions,
    mark_in,
    name_of,
    same_defaults,
)
from krag_eval.datasets.lines import MAX_BYTES, Limits, MaxObjects, numbered_lines, within_memory
from krag_eval.datasets.strict_json import kind_of, names_of, object_of

__all__ = [
    "Fields",
    "Record",
    "missing_field",
    "read_jsonl",
    "record_in",
]


def read_jsonl(
    source: Source,
    *,
    question_field: str = "question",
    actual_field: str = "actual",
    predicted_field: str | None = "predicted",
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
) -> Dataset:
    """Read one query per line, each a JSON object, from a plain or gzip-compressed file.

    A line looks like ``{"question": "…", "actual": [documents], "predicted": [documents]}``. A
    document is a string or ``{"page_content": "…", "metadata": {…}, "id": "…"}``; among the ground
    truth, ``{"any_of": [documents]}`` lists interchangeable ones. Other fields are ignored. The
    question is optional: unless every line has one, queries are labelled by position.

    The text is UTF-8, with or without a byte order mark; blank lines are skipped wherever they
    are. JSON is read strictly: ``NaN``, ``Infinity``, a key given twice in one object and half of
    a surrogate pair are refused, because tools disagree about what they mean.

    Args:
        source: A path, or an open file (binary is preferred); compression is recognised by
            content. ``sys.stdin`` is read as bytes, whatever the locale.
        question_field: Name of the field with the question, text or a whole number.
        actual_field: Name of the field with the ground truth.
        predicted_field: Name of the field with the retrieved documents, best first; ``None`` if
            nothing has been retrieved yet, and a retriever is to be asked.
        max_bytes: How much text a compressed file, a pipe or a stream may hold, so that a small
            file cannot fill the memory; 1 GiB unless given, ``None`` for no limit. A single line of
            any file may hold a quarter of it.
        max_objects: How many values (texts, numbers, lists, objects) may come out of it, for the
            same reason; unless given, a million and eight for each byte of the file as it is
            stored, which plain files never hold; ``None`` for no limit.

    Raises:
        DatasetError: If anything in the file cannot be used, or there is nothing in it; the
            message names file and line.
        TypeError: If ``source`` is neither a path nor an open file.

    >>> import io
    >>> read_jsonl(io.StringIO('{"question": "When?", "actual": ["9"], "predicted": ["8", "9"]}'))
    Dataset of 1 queries from <stream>
    """
    fields = Fields(question_field, actual_field, predicted_field)
    name = name_of(source)
    limits = Limits(max_bytes, max_objects).checked()
    with within_memory(name):
        with closing(numbered_lines(source, name, limits)) as lines:
            records = [record_in(text, fields, Place(name, number)) for number, text in lines]
        return _dataset(records, name, fields)


def _dataset(records: Sequence[Record], name: str, fields: Fields) -> Dataset:
    if not records:
        raise Place(name).error(
            "holds no queries; expected one JSON object per line, such as "
            '{"question": "…", "actual": ["…"], "predicted": ["…"]}.'
        )
    _check_question_field(records, fields)
    marks = [record.mark for record in records]
    queries, questions = labels_and_questions(
        [record.question for record in records],
        marks,
        name,
        fields.question,
        lambda number: f"on line {records[number].place.line}",
    )
    return Dataset(
        queries=queries,
        actual=[record.actual for record in records],
        predicted=None if fields.predicted is None else [record.predicted for record in records],
        source=name,
        lines=[record.place.line for record in records],
        defaults=same_defaults(marks, lambda number: records[number].place),
        questions=questions,
    )


class Fields(NamedTuple):
    """What the fields of a query are called."""

    question: str
    actual: str
    predicted: str | None


class Record(NamedTuple):
    """One query, checked, and where it stands."""

    place: Any
    question: str | int | None
    actual: list[Any]
    predicted: list[Any]
    mark: Mark

    @property
    def label(self) -> str | int | None:
        """What the query is called: what its mark says, or its question."""
        return self.question if self.mark.label is None else self.mark.label


def record_in(text: str, fields: Fields, place: Place) -> Record:
    """Read one query from one line.

    Raises:
        DatasetError: If anything on it cannot be used.
    """
    content = object_of(text, place, 'a JSON object with "actual" and "predicted"')
    question = content.get(fields.question)
    if isinstance(question, bool) or not isinstance(question, str | int | None):
        raise place.error(
            f"{fields.question} must be a string or a whole number, got {kind_of(question)}; put "
            "anything else into a field of another name."
        )
    actual = _documents(content, "actual_field", fields.actual, place)
    mark = mark_in(content.get(OWN), place)
    question = mark.question(question)
    if fields.predicted is None:
        return Record(place, question, actual, [], mark)
    predicted = _documents(content, "predicted_field", fields.predicted, place)
    return Record(place, question, actual, predicted, mark)


def _documents(content: Mapping[str, Any], option: str, name: str, place: Blamed) -> list[Any]:
    if name not in content:
        raise place.error(missing_field(content, option, name))
    documents = content[name]
    if not isinstance(documents, list):
        raise place.error(
            f"{name} must be a list of documents, got {kind_of(documents)}; write a list even for "
            "one document, and [] for none."
        )
    if set(map(type, documents)) <= {str}:
        return documents
    read = item_in if option == "actual_field" else document_in
    return [read(one, f"{name}[{i}]", place) for i, one in enumerate(documents)]


def missing_field(content: Iterable[str], option: str, name: str) -> str:
    """Word the refusal of a query without one of its fields."""
    role = "ground truth" if option == "actual_field" else "retrieved documents"
    return (
        f'no field "{name}"; the fields are {names_of(dict.fromkeys(content))}; name the one with '
        f'the {role} by {option}="…".'
    )


def _check_question_field(records: Sequence[Record], fields: Fields) -> None:
    """Refuse a name given explicitly that no line has."""
    if fields.question != "question" and all(one.question is None for one in records):
        raise records[0].place.error(
            f'no field "{fields.question}" on any line; name the one with the question by '
            'question_field="…", or leave that out.'
        )
