"""From the name of a file, and options, to a result."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from krag_eval.cli.options import given
from krag_eval.cli.shell import is_refusal
from krag_eval.scoring.cutoffs import unspelled

if TYPE_CHECKING:
    from krag_eval.datasets import Dataset
    from krag_eval.documents import AnyOf, DocumentLike
    from krag_eval.results.result import EvaluationResult

__all__ = [
    "check_same_ground_truth",
    "evaluated_file",
    "names_of",
    "saved_result",
    "told_apart",
]

_FIELDS = ("question_field", "actual_field", "predicted_field")
# Read by the names of their columns; JSON lines have a reader of their own.
_TABLES = (".csv", ".tsv", ".json", ".parquet", ".pq")
_POSITION = re.compile(r"^(actual|predicted)_docs(?:\[(\d+)\])?")


def evaluated_file(file: str, options: Mapping[str, Any]) -> tuple[Dataset, EvaluationResult]:
    """Read a file of queries, ``-`` for JSON lines from standard input, and evaluate it."""
    dataset = _read(file, {name: options[name] for name in _FIELDS})
    others = {name: value for name, value in given(options).items() if name not in _FIELDS}
    result = _evaluated(dataset, **{**others, "cutoffs": options["cutoffs"]})
    if dataset.notes and "krag_eval" not in dataset.notes[0]:
        click.echo(f"{dataset.source}: {'; '.join(dataset.notes)}.", err=True)
    return dataset, result


def saved_result(file: str, *, need_rows: bool = True) -> EvaluationResult:
    """Read a saved result.

    Args:
        file: Its name.
        need_rows: Whether it is to be compared, query by query.

    Raises:
        ValueError: If there must be rows, and the file holds averages alone.
    """
    from krag_eval.results.result import EvaluationResult
    from krag_eval.results.rows import NoRows

    result = EvaluationResult.from_json(file)
    if need_rows and isinstance(result.rows, NoRows):
        raise ValueError(
            f"{file}: holds averages but no per-query rows, which a comparison needs; "
            f"{result.rows.where}."
        )
    return result


def _read(file: str, fields: Mapping[str, Any]) -> Dataset:
    """Read JSON lines by their reader; a table by the names of its columns."""
    from krag_eval.datasets import load_dataset, read_jsonl

    if not file.lower().removesuffix(".gz").endswith(_TABLES):
        return read_jsonl(sys.stdin if file == "-" else file, **fields)
    # A name that is the option's own default may be another in a table.
    roles = {name.removesuffix("_field"): field for name, field in fields.items()}
    named: dict[str, Any] = {role: name for role, name in roles.items() if name != role}
    return load_dataset(file, **named)


def _evaluated(dataset: Dataset, *, cutoffs: Sequence[str], **options: Any) -> EvaluationResult:
    """Evaluate a dataset; an error that names a query names its line in the file."""
    try:
        return dataset.evaluator(**options).evaluate(k=[unspelled(one) for one in cutoffs])
    except ValueError as error:
        position = _POSITION.match(str(error))
        if position is None or not is_refusal(error):
            raise
        from krag_eval.datasets import DatasetError

        side, query = position.groups()
        place = _place(dataset, int(query)) if query else dataset.source
        raise DatasetError("", f"{place}: {side}{str(error)[position.end() :]}") from error


def _place(dataset: Dataset, query: int) -> str:
    """Return where a query stands: its line, or its place in a file whose queries have none."""
    if dataset.lines:
        return f"{dataset.source}:{dataset.lines[query]}"
    return f"{dataset.source}: row {query} (from 0)"


def check_same_ground_truth(datasets: Sequence[Dataset]) -> None:
    """Refuse files that ask the same questions and want other documents.

    The comparison refuses them too, but it knows queries alone; this names the lines.

    Raises:
        DatasetError: Naming the two lines that differ first.
    """
    for other in datasets[1:]:
        first = datasets[0]
        if first.queries != other.queries:
            continue  # refused by the comparison, which says which
        for query, (ours, theirs) in enumerate(zip(first.actual, other.actual, strict=True)):
            if ours != theirs and _wanted(ours) != _wanted(theirs):
                from krag_eval.datasets import DatasetError

                raise DatasetError(
                    "",
                    f"{_place(other, query)}: the ground truth differs from "
                    f"{_place(first, query)}; compare files about the same data.",
                )


def _wanted(items: Sequence[DocumentLike | AnyOf]) -> list[list[tuple[str, str]]]:
    """Return the texts and ids of a query's ground truth, whatever their order."""
    from krag_eval.documents import AnyOf, id_of, text_of

    alternatives = [item.alternatives if isinstance(item, AnyOf) else (item,) for item in items]
    return sorted(sorted((text_of(one), id_of(one) or "") for one in some) for some in alternatives)


_ENDINGS = (".jsonl", ".ndjson", ".json")


def names_of(files: Sequence[str]) -> list[str]:
    """Call files by their stems, with as much of their names and paths as tells them apart.

    >>> names_of(["runs/bm25.jsonl.gz", "runs/dense.json"])
    ['bm25', 'dense']
    >>> names_of(["old/bm25.json", "new/bm25.json"]), names_of(["bm25.json", "bm25.jsonl"])
    (['old/bm25', 'new/bm25'], ['bm25.json', 'bm25.jsonl'])
    """
    stems = ["stdin" if file == "-" else _stem(file) for file in files]
    names = told_apart(stems)
    return names if len(set(names)) == len(files) else told_apart(files)


def told_apart(paths: Sequence[str]) -> list[str]:
    """Call files by their names, with as much of their paths as tells them apart."""
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = [os.sep.join(one[-depth:]) for one in parts]
        if len(set(names)) == len(paths):
            return names
    return list(paths)


def _stem(path: str) -> str:
    path = path.removesuffix(".gz")
    for ending in _ENDINGS:
        if path.endswith(ending) and os.path.basename(path) != ending:
            return path.removesuffix(ending)
    return path
