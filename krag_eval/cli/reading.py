"""From the name of a file, and options, to a result."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from krag_eval.cli.shell import printable
from krag_eval.errors import DatasetError, Place, Refusal

if TYPE_CHECKING:
    from krag_eval.datasets import Dataset
    from krag_eval.datasets.audit import Audit
    from krag_eval.documents import DocumentLike
    from krag_eval.results.result import EvaluationResult
    from krag_eval.scoring.cutoffs import Cutoff

_CELLS = ("cells", "delimiter")
_FIELDS = ("question_field", "actual_field", "predicted_field", "encoding", *_CELLS)


def evaluated_file(
    file: str,
    k: Sequence[Cutoff],
    settings: Mapping[str, Any],
    metrics: Sequence[str] | None = None,
    otherwise: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Dataset, EvaluationResult]:
    """Read a file of queries, ``-`` for JSON lines from standard input, and evaluate it.

    Args:
        file: Its name.
        k: The cutoffs.
        settings: The options that were typed.
        metrics: The metrics to compute; the default ones if not given.
        otherwise: Options for what was neither typed nor told by the file.

    Raises:
        DatasetError: If the file cannot be used; an error about a query names its line.
    """
    from krag_eval.datasets.vocabularies import N_SAID

    dataset = _read(file, {name: settings[name] for name in _FIELDS if name in settings})
    options = {name: value for name, value in settings.items() if name not in _FIELDS}
    if otherwise:
        options = {**otherwise, **dataset.defaults, **options}
    try:
        result = dataset.evaluator(**options).evaluate(k, metrics=metrics)
    except Refusal as error:
        if error.argument not in ("actual_docs", "predicted_docs"):
            raise
        raise error.at(place_of(dataset, error.query)) from error
    # How columns of our own names were read goes without saying.
    if dataset.vocabulary not in ("", "krag_eval"):
        notes = "; ".join(dataset.notes[:N_SAID])
        click.echo(printable(f"{dataset.source}: {notes}."), err=True)
    # Said each time of the same file, so that a line of it is enough.
    for note in dataset.notes[N_SAID:] if dataset.vocabulary else dataset.notes:
        click.echo(f"{printable(dataset.source)}: {printable(note)}", err=True)
    return dataset, result


def saved_result(file: str, *, need_rows: bool = True) -> EvaluationResult:
    """Read a saved result.

    Args:
        file: Its name.
        need_rows: Whether it is to be compared, query by query.

    Raises:
        DatasetError: If there must be rows, and the file holds averages alone.
    """
    from krag_eval.results.result import EvaluationResult
    from krag_eval.results.rows import NoRows

    result = EvaluationResult.from_json(file)
    if need_rows and isinstance(result.rows, NoRows):
        problem = "holds averages but no per-query rows, which a comparison needs"
        raise DatasetError("", problem, result.rows.where, place=Place(file))
    return result


def is_saved(file: str) -> bool:
    """Tell whether a file is a saved result, by its name, where both kinds are read."""
    return Path(file).suffix == ".json"


def _read(file: str, fields: Mapping[str, Any]) -> Dataset:
    """Read JSON lines by their reader; a table by the names of its columns."""
    from krag_eval.datasets import load_dataset, read_jsonl

    source = sys.stdin if file == "-" else file
    lines = _is_lines(file)
    if lines and not any(name in fields for name in _CELLS):
        return read_jsonl(source, **fields)
    # A name that is the option's own default may be another in a table.
    roles = {name.removesuffix("_field"): field for name, field in fields.items()}
    named: dict[str, Any] = {role: name for role, name in roles.items() if name != role}
    return load_dataset(source, format="jsonl" if lines else None, **named)


def _is_lines(file: str) -> bool:
    """Tell whether a file is JSON lines, as what its name does not tell is."""
    from krag_eval.datasets.formats import format_of

    kind = None if file == "-" else format_of(file, looked_into=False)
    return kind is None or kind.name == "jsonl"


def audited_file(
    file: str, index: str | None, fields: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[Dataset, Audit]:
    """Read questions and their ground truth, ``-`` for standard input, and audit them.

    Args:
        file: Its name.
        index: The name of the file of chunks; ``-`` for standard input.
        fields: The columns that were named, ``question`` and ``actual``.
        settings: The options of the audit.

    Raises:
        DatasetError: If a file cannot be used; an error about a query names its line.
    """
    from krag_eval.datasets import load_dataset
    from krag_eval.datasets.audit import audit
    from krag_eval.datasets.vocabularies import N_SAID

    source = sys.stdin if file == "-" else file
    dataset = load_dataset(source, format="jsonl" if _is_lines(file) else None, **fields)
    chunks = None if index is None else chunks_of(index)
    try:
        found = audit(dataset, chunks, **settings)
    except Refusal as error:
        if error.argument != "actual_docs":
            raise
        raise error.at(place_of(dataset, error.query)) from error
    notes = dataset.notes[: 0 if dataset.vocabulary in ("", "krag_eval") else N_SAID]
    if "cells" in fields:
        notes = dataset.notes
    if notes:
        click.echo(printable(f"{dataset.source}: {'; '.join(notes)}."), err=True)
    return dataset, found


def chunks_of(index: str) -> list[DocumentLike]:
    """Read the chunks of an index, ``-`` for standard input."""
    from krag_eval.datasets.loading import read_chunks

    return read_chunks(sys.stdin if index == "-" else index)


def place_of(dataset: Dataset, query: int | None) -> Place:
    """Return the place of a query in its file, or the file."""
    if query is None:
        return Place(dataset.source)
    if dataset.lines:
        return Place(dataset.source, dataset.lines[query])
    return Place(dataset.source, row=query)


def names_of_files(paths: Sequence[str]) -> list[str]:
    """Call files by their names, with as much of their paths as tells them apart.

    >>> names_of_files(["old/bm25", "new/bm25"]), names_of_files(["old/bm25", "new/dense"])
    (['old/bm25', 'new/bm25'], ['bm25', 'dense'])
    """
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = [os.sep.join(one[-depth:]) for one in parts]
        if len(set(names)) == len(paths):
            return names
    return list(paths)
