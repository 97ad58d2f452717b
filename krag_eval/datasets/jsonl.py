"""JSON lines: one query per line, with its ground truth and what was retrieved; chunks likewise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from itertools import chain, islice
from typing import Any, NamedTuple

from krag_eval._reading import (
    MAX_BYTES,
    Limits,
    MaxObjects,
    Source,
    name_of,
    names_of,
    not_json,
    numbered_lines,
    object_of,
    parsed,
    within_memory,
)
from krag_eval.datasets.dataset import Dataset
from krag_eval.datasets.loading import recognised_lines
from krag_eval.datasets.table import (
    Query,
    Roles,
    Side,
    TagReader,
    asked_by,
    checked_choice,
    located,
    notes_on,
    parts_of,
    query_in,
)
from krag_eval.datasets.tabular import check_encoding
from krag_eval.datasets.vocabularies import Mapped, is_foreign
from krag_eval.documents import DocumentLike, Location, chunk_in, document_in
from krag_eval.errors import Advice, Place

#: What is expected of a line.
ONE_QUERY = 'a JSON object with "actual" and "predicted"'
#: The arguments that name the fields of a query, and what these are called if they do not.
FIELD_OPTIONS = ("question_field", "actual_field", "predicted_field")
_USUAL = ("question", "actual", "predicted")


def read_jsonl(
    source: Source,
    *,
    question_field: str = "question",
    actual_field: str = "actual",
    predicted_field: str | None = "predicted",
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
    tags: bool | Sequence[str] = True,
    encoding: str = "utf-8",
) -> Dataset:
    """Read one query per line, each a JSON object, from a plain or gzip-compressed file.

    A line looks like ``{"question": "…", "actual": [documents], "predicted": [documents]}``. A
    document is a string or ``{"page_content": "…", "metadata": {…}, "id": "…"}``; among the ground
    truth, ``{"any_of": [documents]}`` lists interchangeable ones. The question is optional: unless
    every line has one, queries are labelled by position. Other fields are kept as tags of the
    queries, where they hold short texts, numbers or booleans alone; ``notes`` name those that do
    not. Where one of the three is missing on the first line, the names that :func:`load_dataset`
    knows are recognised, such as RAGAS's; ``notes`` say how. Rows of tables mean the same.

    The text is UTF-8 unless you name another encoding, with or without a byte order mark; blank
    lines are skipped wherever they are. JSON is read strictly: ``NaN``, ``Infinity``, a key given
    twice in one object and half of a surrogate pair are refused, because tools disagree about what
    they mean.

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
        tags: Whether to keep other fields as tags: texts of at most 200 characters, numbers and
            booleans, at most 100 fields; or the names of those to keep.
        encoding: Of the text, such as ``"cp949"``.

    Raises:
        DatasetError: If anything in the file cannot be used, or there is nothing in it; the
            message names file and line.
        InvalidType: If ``source`` is neither a path nor an open file.

    >>> import io
    >>> read_jsonl(io.StringIO('{"question": "When?", "actual": ["9"], "predicted": ["8", "9"]}'))
    Dataset of 1 queries from <stream>
    """
    fields = Fields(question_field, actual_field, predicted_field)
    name = name_of(source)
    limits = Limits(max_bytes, max_objects).checked()
    choice = checked_choice(tags)
    if encoding != "utf-8":
        check_encoding(encoding)
    reader = TagReader(asked_by(fields.roles), choice) if choice else None
    read = numbered_lines(source, name, limits, encoding=encoding)
    with within_memory(name), closing(read) as lines:
        first = [*islice(lines, 1)]
        every = chain(first, lines)
        there = {
            key for number, text in first for key in object_of(text, Place(name, number), ONE_QUERY)
        }
        if not there >= {*filter(None, fields[:3])} and is_foreign(there, fields.mapped):
            retrieved = fields.predicted is not None
            return recognised_lines(
                every, name, fields.mapped, FIELD_OPTIONS, choice, retrieved=retrieved
            )
        records = [record_in(text, fields, Place(name, number), reader) for number, text in every]
    if not records:
        raise Place(name).error(
            "holds no queries; expected one JSON object per line, such as "
            '{"question": "…", "actual": ["…"], "predicted": ["…"]}'
        )
    if fields.question != "question" and all(one.question is None for one in records):
        raise records[0].place.error(
            f'no field "{fields.question}" on any line',
            Advice("name the one with the question by {}, or leave that out", question_field=...),
        )
    parts = parts_of(records, name, fields.roles)
    if reader is None:
        return Dataset(**parts)
    if not isinstance(choice, bool):
        reader.check(name, [*filter(None, fields[:3])])
    kept = reader.columns([one.tags for one in records])
    return Dataset(**parts, tags=kept, notes=notes_on(reader.left_out) if reader.left_out else [])


class Fields(NamedTuple):
    """What the fields of a query are called, or what they mean where they were recognised."""

    question: str
    actual: str
    predicted: str | None
    recognised: Roles | None = None

    @property
    def roles(self) -> Roles:
        """What these fields mean in a row."""
        return self.recognised or _roles(*self[:3])

    @property
    def mapped(self) -> Mapped:
        """Those that have another name than usual, as the user's choice."""
        pairs = zip(self[:3], _USUAL, strict=True)
        return Mapped(*(None if one == usual else one for one, usual in pairs))


@lru_cache(maxsize=8)
def _roles(question: str, actual: str, predicted: str | None) -> Roles:
    side = None if predicted is None else Side(predicted)
    return Roles("named", question, Side(actual), side, ("actual_field", "predicted_field"))


def record_in(text: str, fields: Fields, place: Place, tags: TagReader | None = None) -> Query:
    """Read one query from one line.

    Raises:
        DatasetError: If anything on it cannot be used.
    """
    content = object_of(text, place, ONE_QUERY)
    return query_in(content, fields.roles, place, tags)


def read_chunks(
    source: Source,
    *,
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
) -> list[DocumentLike]:
    r"""Read the chunks of an index, one per line, from a plain or gzip-compressed file.

    A line is a text in quotes, or a JSON object with a text and perhaps an id: ``"page_content"``
    and ``"id"``, ``"text"`` and ``"id"``, BEIR's ``"_id"`` and ``"text"`` (after its ``"title"``),
    or AutoRAG's ``"doc_id"`` and ``"contents"``. Other fields are kept as metadata, beside those of
    ``"metadata"``.

    Args:
        source: A path, or an open file, as in :func:`read_jsonl`.
        max_bytes: As in :func:`read_jsonl`.
        max_objects: As in :func:`read_jsonl`.

    Raises:
        DatasetError: If a line is something else, or there is none; the message names file and
            line.

    >>> import io
    >>> read_chunks(io.StringIO('"At nine."\n{"id": 7, "text": "At ten.", "page": 3}'))
    ['At nine.', {'page_content': 'At ten.', 'id': 7, 'metadata': {'page': 3}}]
    """
    name = name_of(source)
    limits = Limits(max_bytes, max_objects).checked()
    with within_memory(name), closing(numbered_lines(source, name, limits)) as lines:
        chunks = [_chunk_in(text, Place(name, number)) for number, text in lines]
    if not chunks:
        raise Place(name).error(
            'holds no chunks; expected one per line, such as {"id": "7", "text": "At nine."}'
        )
    return chunks


def _chunk_in(text: str, place: Place) -> DocumentLike:
    """Read one chunk from one line.

    Raises:
        DatasetError: If it is none.
    """
    if not text.lstrip().startswith('"'):
        return _chunk_of(object_of(text, place, 'a text or a JSON object with "text"'), place)
    try:
        with located(place):
            return str(parsed(text))
    except json.JSONDecodeError as error:
        raise not_json(error, place, "one text per line") from error


def _chunk_of(content: dict[str, Any], place: Place) -> DocumentLike:
    """Return a chunk as a document, whatever its fields are called."""
    made = chunk_in(content)
    if made is None:
        raise place.error(
            'a chunk needs one text, as "text" or "page_content", and at most one id, got the '
            f"fields {names_of(content)}"
        )
    with located(place):
        return document_in(made, Location("chunk"))


def demo_dataset() -> Dataset:
    """Return the small English and Korean data set that ships with the package.

    >>> demo_dataset().queries[0]
    'What do a parent and a child each need to get a library card?'
    """
    with resources.files("krag_eval").joinpath("data", "demo.jsonl").open("rb") as file:
        return replace(read_jsonl(file), source="krag_eval's demo data")
