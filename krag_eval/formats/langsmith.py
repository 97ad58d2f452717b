"""LangSmith's examples and runs as data sets; LangSmith is never imported.

An example has ``inputs`` with the question and ``outputs`` with what is expected; where there are
``reference_outputs``, those are expected, and ``outputs`` are what a run returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from krag_eval.core import Advice, InvalidInput, InvalidType, _, clipped
from krag_eval.core.documents import plain
from krag_eval.core.errors import kind_of
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.reading import located
from krag_eval.loading.table import (
    ERRORS,
    QUESTIONS,
    Given,
    Records,
    Roles,
    Side,
    error_in,
    parts_of,
    query_in,
    tags_of,
    told_errors,
)

#: What LangSmith calls the parts of an example, and of what a run made of it.
LANGSMITH = ("inputs", "outputs", "reference_outputs")
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
        key = _question_key(payload, key, argument, option)
        found, name = payload[key], f"{argument}[{key!r}]"
    if not isinstance(found, str):
        raise InvalidType(name, f"must be the question, a text, got {kind_of(found)}")
    return found


def _question_key(payload: Mapping[Any, Any], key: str | None, argument: str, option: str) -> Any:
    usual = [*payload] if len(payload) == 1 else [one for one in _QUESTION_KEYS if one in payload]
    return _key(payload, key, usual, f"{argument} must hold the question", option)


def _key(
    payload: Mapping[Any, Any], key: str | None, usual: Sequence[Any], needed: str, option: str
) -> Any:
    """Return the key that is meant: the one that is named, or the only usual one."""
    keys = usual if key is None else [one for one in (key,) if one in payload]
    if len(keys) != 1:
        argument, _, problem = needed.partition(" ")
        fix = Advice("name the key of the one that is meant by {}", (option, ...))
        raise InvalidInput(argument, f"{problem}, got the keys {clipped([*payload])}", fix)
    return keys[0]


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
        lists = [one for one in usual if isinstance(payload.get(one), _LISTS)]
        key = _key(payload, key, lists, f"{argument} must hold one list of documents", option)
        found, name = payload[key], f"{argument}[{key!r}]"
    if not isinstance(found, _LISTS):
        raise InvalidType(
            name, f"must be a list of documents, even for one document, got {kind_of(found)}"
        )
    return name, found


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
        row = {
            "inputs": reference.inputs,
            "outputs": run.outputs,
            "reference_outputs": reference.outputs,
        }
        error = getattr(run, "error", None)
        return row | {"error": error} if error else row
    if not hasattr(example, "inputs"):
        return None
    row = {name: getattr(example, name) for name in LANGSMITH if hasattr(example, name)}
    return row if len(row) > 1 else None


def langsmith_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of a table with the columns ``inputs`` and ``outputs``.

    Args:
        table: The table; ``reference_outputs`` may be there as well.
        given: Keys within them, where the usual ones are not meant, and which other columns to
            keep as tags.

    Raises:
        DatasetError: If a row cannot be used; the message names it.
    """
    table.check_has(["inputs"])
    mapped = given.mapped
    is_run = {"reference_outputs", "outputs"} <= {*table.names}
    expected = "reference_outputs" if "reference_outputs" in table.names else "outputs"
    sides: list[tuple[str, str | None, tuple[str, ...], str]] = [
        (expected, mapped.actual, REFERENCE_KEYS, "actual")
    ]
    sides += [("outputs", mapped.predicted, OUTPUT_KEYS, "predicted")] if is_run else []
    asked = None if mapped.question is None else mapped.question.removeprefix("inputs.")
    queries = []
    for place, row in table.rows:
        inputs = plain(row.get("inputs"))
        with located(place):
            if not isinstance(inputs, Mapping):
                problem = f"must be an object with the question, got {kind_of(inputs)}"
                raise InvalidType("inputs", problem)
            # The key of the first question is that of all.
            asked = _question_key(inputs, asked, "inputs", "question")
            content: dict[str, Any] = {
                f"inputs[{asked!r}]": question_under(inputs, asked, "inputs", "question")
            }
            for column, key, usual, option in sides:
                if option == "predicted" and not row.get(column) and error_in(row):
                    content[column] = []  # a target that raised returned nothing
                    continue
                key = None if key is None else key.removeprefix(f"{column}.")
                name, documents = list_under(row.get(column), key, usual, column, option)
                content[name] = documents
        question, actual, *predicted = content
        names = Roles(
            "LangSmith", question, Side(actual), Side(predicted[0]) if predicted else None
        )
        errors = {name: row[name] for name in ERRORS if name in row}
        queries.append(query_in(content | errors, names, place))
    roles = Roles("LangSmith", "question", Side(expected), Side("outputs") if is_run else None)
    notes = [
        _("LangSmith examples: ground truth read from {}").format(expected),
        _("retrieved documents read from outputs") if is_run else _("no retrieved documents"),
    ]
    kept, left_out = tags_of(table, LANGSMITH, given.tags)
    parts = parts_of(queries, table.name, roles)
    notes += [*parts["notes"], *left_out, *told_errors(len(parts["failures"]), len(queries))]
    return Dataset(**{**parts, "notes": notes}, tags=kept)
