"""Judgements and runs as objects: ``{topic: {document: number}}``, in Python or in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar

from krag_eval.datasets.base import Place
from krag_eval.datasets.strict_json import kind_of, parsed

__all__ = [
    "Lines",
    "Number",
    "Table",
    "grade_in",
    "grades_of",
    "object_in",
    "score_in",
    "scores_of",
]

Number = TypeVar("Number", int, float)
#: ``{topic: {document: number}}``
Table: TypeAlias = dict[str, dict[str, Number]]
#: Number and text of each line.
Lines: TypeAlias = Iterator[tuple[int, str]]

# As many digits as a float holds exactly, and a grade in a file may have.
_LARGEST_GRADE = 10**15 - 1


def grades_of(content: Mapping[str, Mapping[str, int]], place: Place) -> Table[int]:
    """Return a checked copy of judgements.

    Raises:
        DatasetError: If a grade is not a whole number, a key not text, or there is nothing.

    >>> grades_of({"q1": {"d1": 2}}, Place("qrels"))
    {'q1': {'d1': 2}}
    """
    return _checked(content, place, grade_in)


def scores_of(content: Mapping[str, Mapping[str, float]], place: Place) -> Table[float]:
    """Return a checked copy of a run.

    Raises:
        DatasetError: If a score is not a number, a key not text, or there is nothing.

    >>> scores_of({"q1": {"d1": 3}}, Place("run"))
    {'q1': {'d1': 3.0}}
    """
    return _checked(content, place, score_in)


def object_in(lines: Lines, name: str, number: str) -> dict[str, Any]:
    """Read an object of judgements, or of a run, from the lines of a JSON file.

    Args:
        lines: Numbers and texts of the lines, the first of which begins with ``{``.
        name: Name of the file.
        number: What documents are given, ``"grade"`` or ``"score"``, for the message.

    Raises:
        DatasetError: If it is not one JSON object.

    >>> object_in(iter([(1, '{"q1":'), (2, '{"d1": 3}}')]), "run.json", "score")
    {'q1': {'d1': 3}}
    """
    numbered = list(lines)
    try:
        content: dict[str, Any] = parsed("".join(text for _, text in numbered), Place(name))
    except json.JSONDecodeError as error:
        line = numbered[min(error.lineno, len(numbered)) - 1][0]
        raise Place(name, line).error(
            f"not valid JSON: {error.msg} (column {error.colno}); expected one object "
            f"{{topic: {{document: {number}}}}}."
        ) from error
    return content


def _checked(
    content: Mapping[Any, Any], place: Place, number_of: Callable[[Any, str], Number]
) -> Table[Number]:
    table: Table[Number] = {}
    for topic, documents in content.items():
        if not isinstance(topic, str) or not isinstance(documents, Mapping):
            raise place.error(
                "expected an object of the form {topic: {document: number}} with text as topics, "
                f"got {kind_of(documents)} for the topic {topic!r}."
            )
        table[topic] = {}
        for document, value in documents.items():
            if not isinstance(document, str) or not document:
                raise place.error(f"topic {topic!r}: a document id must be text, got {document!r}.")
            try:
                table[topic][document] = number_of(value, document)
            except ValueError as error:
                raise place.error(f"topic {topic!r}: {error}") from error
    if not table:
        raise place.error("holds no topics; expected {topic: {document: number}}.")
    return table


def grade_in(value: Any, document: str) -> int:
    """Return the grade of a document; a ``ValueError`` says what else it is."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    whole = number and (isinstance(value, Integral) or float(value).is_integer())
    if not whole or abs(value) > _LARGEST_GRADE:
        raise ValueError(
            f"the grade of {document!r} must be a whole number, got {str(value)[:40]!r}."
        )
    return int(value)


def score_in(value: Any, document: str) -> float:
    """Return the score of a document; a ``ValueError`` says what else it is."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise ValueError(f"the score of {document!r} must be a number, got {str(value)[:40]}.")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"the score of {document!r} is too large for a float.") from error
