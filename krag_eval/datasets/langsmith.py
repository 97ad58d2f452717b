"""LangSmith's examples and runs as data sets; LangSmith is never imported.

An example has ``inputs`` with the question and ``outputs`` with what is expected; where there are
``reference_outputs``, those are expected, and ``outputs`` are what a run returned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from krag_eval._language import _
from krag_eval._reading import kind_of, located
from krag_eval.datasets.dataset import Dataset
from krag_eval.datasets.formats import TagChoice
from krag_eval.datasets.table import Query, Records, Roles, Side, parts_of, query_in, tags_of
from krag_eval.datasets.vocabularies import LANGSMITH, QUESTIONS, Mapped
from krag_eval.errors import Advice, InvalidInput, InvalidType, Place, clipped

_QUESTION_KEYS = (*QUESTIONS, "input")
#: Where the documents of a run usually are; a target that returns a list has it under "output".
OUTPUT_KEYS = (
    "documents",
    "docs",
    "context",
    "contexts",
    "retrieved_contexts",
    "retrieved_documents",
    "source_documents",
    "predicted",
    "output",
)
#: Where the ground truth of an example usually is.
REFERENCE_KEYS = (
    "documents",
    "docs",
    "context",
    "contexts",
    "reference_contexts",
    "reference_documents",
    "relevant_documents",
    "ground_truth",
    "actual",
    "output",
)
_LISTS = (list, tuple)


def question_under(payload: Any, key: str | None, argument: str, option: str) -> str:
    """Return the question within what a tool kept.

    Args:
        payload: A dict with the question under some key, or the question itself.
        key: That key; ``None`` takes the only one, or the one with a usual name.
        argument: What the payload is called in messages.
        option: The argument that names the key.

    Raises:
        InvalidInput: If the key is missing, or several could be meant.
        InvalidType: If what is there is not a text.

    >>> question_under({"question": "When?", "user": "7"}, None, "inputs", "question_key")
    'When?'
    """
    found, name = payload, argument
    if isinstance(payload, Mapping):
        usual = (
            [*payload] if len(payload) == 1 else [one for one in _QUESTION_KEYS if one in payload]
        )
        keys = usual if key is None else [one for one in (key,) if one in payload]
        if len(keys) != 1:
            problem = f"must hold the question, got the keys {clipped([*payload])}"
            raise InvalidInput(argument, problem, Advice("name its key by {}", **{option: ...}))
        found, name = payload[keys[0]], f"{argument}[{keys[0]!r}]"
    if not isinstance(found, str):
        raise InvalidType(name, f"must be the question, a text, got {kind_of(found)}")
    return found


def list_under(
    payload: Any, key: str | None, usual: Sequence[str], argument: str, option: str
) -> tuple[str, Sequence[Any]]:
    """Return the list of documents within what a tool kept, and what to call it.

    Args:
        payload: A dict with a list of documents under some key, or the list itself.
        key: That key; ``None`` takes the one list under a usual key.
        usual: The usual keys.
        argument: What the payload is called in messages.
        option: The argument that names the key.

    Raises:
        InvalidInput: If the key is missing, or several could be meant.
        InvalidType: If what is there is not a list.

    >>> list_under({"docs": ["a"], "answer": "b"}, None, OUTPUT_KEYS, "outputs", "documents_key")
    ("outputs['docs']", ['a'])
    """
    found, name = payload, argument
    if isinstance(payload, Mapping):
        if key is None:
            key = _usual_key(payload, usual, argument, option)
        elif key not in payload:
            raise InvalidInput(
                argument,
                f"must hold the key {key!r}, which {option} names, got the keys "
                f"{clipped([*payload])}",
            )
        found, name = payload[key], f"{argument}[{key!r}]"
    if not isinstance(found, _LISTS):
        raise InvalidType(
            name, f"must be a list of documents, even for one document, got {kind_of(found)}"
        )
    return name, found


def _usual_key(payload: Mapping[Any, Any], usual: Sequence[str], argument: str, option: str) -> str:
    keys = [key for key in usual if isinstance(payload.get(key), _LISTS)]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise InvalidInput(
            argument,
            f"holds several lists that could be the documents, {' and '.join(map(repr, keys))}",
            Advice("name the one that is meant by {}", (option, ...)),
        )
    raise InvalidInput(
        argument,
        f"must hold a list of documents under one of {', '.join(map(repr, usual))}, got the keys "
        f"{clipped([*payload])}",
        Advice("name another key by {}", (option, ...)),
    )


# What is read of a run.
_RUN = ("id", "parent_run_id", "name", "run_type", "start_time", "inputs", "outputs", "error")


def run_as_row(run: Any) -> Mapping[str, Any] | None:
    """Return a run of LangSmith's, as its client returns it, as a row; ``None`` if it is none."""
    if isinstance(run, Mapping) or not hasattr(run, "run_type"):
        return None
    return {name: getattr(run, name, None) for name in _RUN}


def example_as_row(example: Any) -> Mapping[str, Any] | None:
    """Return LangSmith's objects as rows; ``None`` if this is none.

    An ``Example`` has inputs and outputs; a row of an experiment's results has a run and its
    example. A run by itself is a span: what it returned is no ground truth.
    """
    if (row := run_as_row(example)) is not None:
        return row
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


def is_langsmith(names: Collection[str]) -> bool:
    """Tell whether a table is one of LangSmith's examples."""
    return "inputs" in names and not {"outputs", "reference_outputs"}.isdisjoint(names)


def langsmith_dataset(table: Records, mapped: Mapped, tags: TagChoice = False) -> Dataset:
    """Return the data set of a table with the columns ``inputs`` and ``outputs``.

    Args:
        table: The table; ``reference_outputs`` may be there as well.
        mapped: Keys within them, where the usual ones are not meant.
        tags: Which other columns to keep as tags.

    Raises:
        DatasetError: If a row cannot be used; the message names it.
    """
    table.check_has(["inputs"])
    is_run = "reference_outputs" in table.names and "outputs" in table.names
    expected = "reference_outputs" if "reference_outputs" in table.names else "outputs"
    asked = _questions(table, mapped.question)
    sides: dict[str, tuple[str | None, tuple[str, ...], str]] = {}
    sides[expected] = (mapped.actual, REFERENCE_KEYS, "actual")
    if is_run:
        sides["outputs"] = (mapped.predicted, OUTPUT_KEYS, "predicted")
    queries = []
    for (place, row), (name, question) in zip(table.rows, asked, strict=True):
        with located(place):
            lists = [_under(row, column, *side) for column, side in sides.items()]
        fields = [name, *(one for one, _ in lists)]
        content = dict(zip(fields, [question, *(found for _, found in lists)], strict=True))
        queries.append(_query(content, fields, place))
    roles = Roles("LangSmith", "question", Side(expected), Side("outputs") if is_run else None)
    notes = [
        _("LangSmith examples: ground truth read from {}").format(expected),
        _("retrieved documents read from outputs") if is_run else _("no retrieved documents"),
    ]
    found, left_out = tags_of(table, LANGSMITH, tags)
    return Dataset(**parts_of(queries, table.name, roles), notes=notes + left_out, tags=found)


def _query(content: Mapping[str, Any], fields: Sequence[str], place: Place) -> Query:
    question, *sides = fields
    actual, predicted = [*map(Side, sides), None][:2]
    assert actual is not None
    return query_in(content, Roles("LangSmith", question, actual, predicted), place)


def _under(
    row: Mapping[str, Any], column: str, key: str | None, usual: tuple[str, ...], option: str
) -> tuple[str, Sequence[Any]]:
    key = None if key is None else key.removeprefix(f"{column}.")
    return list_under(row.get(column), key, usual, column, option)


def _questions(table: Records, key: str | None) -> list[tuple[str, str]]:
    """Return each question, and what to call it."""
    key = None if key is None else key.removeprefix("inputs.")
    found: list[tuple[str, str]] = []
    for place, inputs in table.cells("inputs"):
        if not isinstance(inputs, Mapping):
            raise place.error(f"must be an object with the question, got {kind_of(inputs)}")
        if key is None:
            key = _question_key(inputs, place)
        if key not in inputs:
            raise place.error(f"has no {key!r}; its keys are {clipped([*inputs])}")
        text = inputs[key]
        if not isinstance(text, str):
            raise place._replace(column=f"inputs[{key!r}]").error(
                f"must be text, got {kind_of(text)}",
                Advice("name the key of the question by {}", question=...),
            )
        found.append((f"inputs[{key!r}]", text))
    return found


def _question_keys(inputs: Mapping[Any, Any]) -> list[Any]:
    return [*inputs] if len(inputs) == 1 else [key for key in _QUESTION_KEYS if key in inputs]


def _question_key(inputs: Mapping[str, Any], place: Place) -> str:
    keys = _question_keys(inputs)
    if len(keys) != 1:
        raise place.error(
            f"holds {clipped([*inputs])}, and it is not clear which is the question",
            Advice("name it by {}", question=...),
        )
    return str(keys[0])
