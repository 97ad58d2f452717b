"""From the name of a file, and options, to a result."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from krag_eval.cli import options
from krag_eval.cli.shell import printable
from krag_eval.core import (
    DEFAULT_CUTOFFS,
    Advice,
    Cutoff,
    DatasetError,
    InvalidInput,
    Place,
    Refusal,
    called,
    deepest,
    muted,
)

if TYPE_CHECKING:
    from krag_eval.cli.options import Evaluation
    from krag_eval.core import DocumentLike
    from krag_eval.datasets import Dataset
    from krag_eval.diagnosis.diagnosis import Diagnosis
    from krag_eval.lab.score_cutoffs import ScoreCutoffs
    from krag_eval.result import EvaluationResult

_CELLS = ("cells", "delimiter", "separator")
#: The options of ground truth and a run in two files.
TWO_FILES = ("golden", "retrieved", "missing")
_FIELDS = ("question_field", "actual_field", "predicted_field", "encoding", "corpus", "drafts",
           "grades", *_CELLS)  # fmt: skip


def evaluated_file(
    file: str,
    asked: Evaluation,
    run: str | None = None,
) -> tuple[Dataset, EvaluationResult]:
    """Read a file of queries, ``-`` for JSON lines from standard input, and evaluate it.

    Args:
        file: Its name.
        asked: How.
        run: The file that was named behind it.

    Raises:
        DatasetError: If the file cannot be used; an error about a query names its line.
    """
    dataset, options = dataset_of(file, asked.settings, run), _evaluating(asked)
    if "corpus" in asked.settings and "matcher" not in dataset.defaults:
        # Only coverage can tell why a passage is missed where chunks are cut elsewhere.
        options = {"matcher": "coverage", **options}
    with placed(dataset):
        return dataset, _evaluated(dataset, asked, options)


def _evaluated(dataset: Dataset, asked: Evaluation, options: Mapping[str, Any]) -> EvaluationResult:
    """Evaluate a data set; a metric that its matcher does not know is refused by its option."""
    with called(asked.argument, "metrics"):
        return dataset.evaluator(**options).evaluate(asked.k, metrics=asked.metrics)


def dataset_of(file: str, settings: Mapping[str, Any], run: str | None = None) -> Dataset:
    """Read a file of queries, and a run that is named behind it or by an option."""
    fields = {name: one for name, one in settings.items() if name in _FIELDS}
    if "corpus" in fields:
        fields["corpus"] = source_of(fields["corpus"])
    two = {name: one for name, one in settings.items() if name in TWO_FILES}
    if run is not None or two:
        return joined(file, run, two, _named(fields))
    with _advised_to_join():
        return _alone(file, fields)


def _alone(file: str, fields: Mapping[str, Any]) -> Dataset:
    """Read a file that holds both ground truth and what was retrieved."""
    if _is_lines(file) and not any(name in fields for name in ("corpus", *_CELLS)):
        from krag_eval.datasets import read_jsonl

        return read_jsonl(source_of(file), **fields)
    return loaded(file, _named(fields))


# A side that a file lacks -> the option that names a file of it.
_OF_SIDE = {
    "actual": ("golden", "ground truth"),
    "predicted": ("retrieved", "what was retrieved"),
}


@contextmanager
def _advised_to_join(run: str | None = None) -> Iterator[None]:
    """Let advice to name a column say how to name a second file, too, or that they are swapped."""
    try:
        yield
    except DatasetError as error:
        if isinstance(fix := error.fix, Advice) and len(fix.settings) == 1:
            side = _OF_SIDE.get(fix.settings[0][0].removesuffix("_field"))
            if side is not None and run is not None and side[0] == "golden":
                error.fix = "name the ground truth first, and the run behind it"
            elif side is not None and run is not None:
                told = f"{fix.text}; the second file is to hold what was retrieved"
                error.fix = Advice(told, *fix.settings)
            elif side is not None:
                told = f"{fix.text}; {side[1]} in a file of its own is named by {{}}"
                error.fix = Advice(told, *fix.settings, (side[0], ...))
        raise


def _evaluating(asked: Evaluation) -> dict[str, Any]:
    known = (*_FIELDS, *TWO_FILES)
    return {name: one for name, one in asked.settings.items() if name not in known}


def cut_by_score(
    dataset: Dataset, result: EvaluationResult, asked: Evaluation
) -> tuple[ScoreCutoffs, EvaluationResult]:
    """Choose a score cutoff by a result, and evaluate its data set with that.

    Raises:
        DatasetError: If a document has no score; the error names its line.
        InvalidInput: If there is no query without ground truth to choose by.
    """
    try:
        chosen = result.score_cutoffs()
    except Refusal as error:
        of_run = error.argument == "predicted_docs"
        raise error.at(place_of(dataset, error.query, of_run=of_run)) from error
    if chosen.best is None:
        problem = ": 'auto' chooses by queries without ground truth, and every query has some"
        fix = "add queries that nothing should come back for, with an empty list, or give a number"
        raise InvalidInput("score_cutoff", problem, fix)
    options = {**_evaluating(asked), "score_cutoff": chosen.best}
    return chosen, _evaluated(dataset, asked, options)


def _named(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a table is read; what is an option's own default may be another name there."""
    roles = {name.removesuffix("_field"): field for name, field in fields.items()}
    return {role: name for role, name in roles.items() if name != role}


# What may say how a run is read, too.
_OF_RUN = ("question", "predicted", "cells", "separator", "corpus", "delimiter", "encoding")


def joined(file: str, run: str | None, two: Mapping[str, Any], named: Mapping[str, Any]) -> Dataset:
    """Read ground truth and a run in two files, one of which an option may name.

    Raises:
        InvalidInput: If it is not clear which file is which.
    """
    from krag_eval.datasets import load_dataset

    golden, behind = files_of(file, run, two)
    own, of_other = _of_each(golden, behind, named)
    with _advised_to_join(run):
        truth = loaded(golden, own)
    if "golden" not in two and truth.predicted is not None:
        raise _two_runs(file, behind)
    options = {"missing": two["missing"]} if "missing" in two else {}
    with _advised_to_join(behind):
        return load_dataset(truth, retrieved=source_of(behind), **of_other, **options)


def files_of(file: str, run: str | None, two: Mapping[str, Any]) -> tuple[str, str]:
    """Return the files of ground truth and of a run, one of which an option may name.

    Raises:
        InvalidInput: If it is not clear which file is which.
    """
    golden, behind = two.get("golden"), run or two.get("retrieved")
    if run is not None and not os.path.exists(run) and run != "-":
        fix = "name the file of what was retrieved; for several cutoffs, write -k 1,5"
        raise InvalidInput("run", f": there is no file {run}", fix)
    if (golden is None) == (behind is None) or (run and "retrieved" in two):
        files = [one for one in (golden, run, two.get("retrieved")) if one]
        problem = f": ground truth and a run are two files, got {', '.join([file, *files])}"
        raise InvalidInput("file", problem, "name GOLDEN and RUN, or RUN and --golden GOLDEN")
    return golden or file, behind or file


def check_golden(golden: str, run: str, asked: Evaluation) -> None:
    """Refuse two runs, which a comparison is for, by the first row of what should be ground truth.

    Raises:
        DatasetError: If it holds no ground truth, or cannot be read.
        InvalidInput: If it holds retrieved documents of its own.
    """
    from krag_eval.loading.table import Mapped
    from krag_eval.streaming.queries import QueryFiles

    fields = {name: one for name, one in asked.settings.items() if name in _FIELDS}
    own, _of_run = _of_each(golden, run, _named(fields))
    files = QueryFiles.found(golden, encoding=own.get("encoding", "utf-8"))
    with _advised_to_join(run):
        roles = files.meant(
            files.begin(), Mapped(own.get("question"), own.get("actual"))
        ).fields.roles
    if roles.predicted is not None:
        raise _two_runs(golden, run)


def _two_runs(file: str, behind: str) -> InvalidInput:
    problem = f": {file} holds retrieved documents of its own, so it is no ground truth alone"
    compared = f"'krag-eval compare {shlex.join([file, behind])}' compares two runs"
    return InvalidInput("file", problem, f"{compared}; --golden {file} takes its ground truth")


def _of_each(golden: str, run: str, named: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return what was said of columns, cells and encoding for ground truth, and for a run."""
    from krag_eval.loading.loading import IN_FILE, said_of_each

    in_file = {name: one for name, one in named.items() if name in IN_FILE}
    own, of_run = ({name: one for name, one in named.items() if name not in {*IN_FILE} - {*some}}
                   for some in said_of_each(golden, run, in_file))  # fmt: skip
    return (
        {name: one for name, one in own.items() if name not in ("predicted", "corpus")},
        {name: one for name, one in of_run.items() if name in _OF_RUN},
    )


def is_golden(files: Sequence[str], asked: Evaluation) -> bool:
    """Tell whether the first of three or more files holds ground truth and nothing retrieved.

    Raises:
        DatasetError: If it cannot be read as either.
    """
    if len(files) < _MOST_ALONE or files[0] == "-" or is_saved(files[0]):
        return False
    fields = {name: one for name, one in asked.settings.items() if name in _FIELDS}
    named = _named(fields)
    own, _of_run = _of_each(files[0], files[1], named)
    with muted(), _advised_to_join():
        if "predicted" in named:
            try:
                return loaded(files[0], {**own, "predicted": named["predicted"]}).predicted is None
            except Refusal:
                pass  # a golden set has no such column
        return loaded(files[0], own).predicted is None


# Two files are two runs.
_MOST_ALONE = 3


@contextmanager
def placed(dataset: Dataset) -> Iterator[None]:
    """Name the lines of a file that are refused, and say at the end how its columns were read."""
    from krag_eval.loading.vocabularies import N_SAID

    try:
        yield
    except Refusal as error:
        if error.argument not in ("actual_docs", "predicted_docs"):
            raise
        of_run = error.argument == "predicted_docs"
        raise error.at(place_of(dataset, error.query, of_run=of_run)) from error
    n_columns = N_SAID if dataset.vocabulary else 0
    # How columns of our own names were read goes without saying.
    if n_columns and dataset.vocabulary != "krag_eval":
        notes = "; ".join(dataset.notes[:n_columns])
        click.echo(printable(f"{dataset.source}: {notes}."), err=True)
    say(dataset.source, dataset.notes[n_columns:])


def say(source: str, notes: Sequence[str]) -> None:
    """Say beside what is printed how a file was read."""
    for note in notes:
        click.echo(f"{printable(source)}: {printable(note)}", err=True)


def saved_result(file: str, *, need_rows: bool = True) -> EvaluationResult:
    """Read a saved result.

    Args:
        file: Its name.
        need_rows: Whether it is to be compared, query by query.

    Raises:
        DatasetError: If there must be rows, and the file holds averages alone.
    """
    from krag_eval.core import NoRows
    from krag_eval.result import EvaluationResult

    result = EvaluationResult.from_json(file)
    if need_rows and isinstance(result.rows, NoRows):
        problem = "holds averages but no per-query rows, which a comparison needs"
        raise DatasetError("", problem, result.rows.where, place=Place(file))
    return result


def with_texts(
    result: EvaluationResult, run: str | None, given: Mapping[str, Any]
) -> EvaluationResult:
    """Give a saved result the texts that it was evaluated on, where files with them are named."""
    from krag_eval.again import evaluated_again
    from krag_eval.evaluator import OfflineRetrievalEvaluator

    golden, behind = given.get("golden"), run or given.get("retrieved")
    if golden is None and behind is None:
        return result
    if golden is None:
        raise InvalidInput("golden", "must name the ground truth", "add --golden GOLDEN")
    two = {name: one for name, one in given.items() if name == "missing"}
    if run and "retrieved" in given:
        raise InvalidInput("retrieved", f": the run is {run} already", "leave it out")
    named = {name: one for name, one in given.items() if name == "drafts"}
    dataset = joined(golden, behind, two, named) if behind else loaded(golden, named)
    if dataset.predicted is None:
        problem = f"must name what was retrieved, which {golden} does not hold"
        raise InvalidInput("retrieved", problem, Advice("add {}", retrieved=...))
    try:
        return evaluated_again(result, dataset, OfflineRetrievalEvaluator, given.get("matcher"))
    except InvalidInput as error:
        if error.argument != "dataset":
            raise
        place = Place(f"{golden} with {behind}" if behind else golden)
        raise DatasetError("", error.problem, error.fix, place=place) from error


def is_saved(file: str) -> bool:
    """Tell whether a file is a saved result, by its name, where both kinds are read."""
    return Path(file).suffix == ".json"


def loaded(file: str, named: Mapping[str, Any]) -> Dataset:
    """Read a file whole, ``-`` for JSON lines from standard input, with columns that are named."""
    from krag_eval.datasets import load_dataset

    return load_dataset(source_of(file), format="jsonl" if _is_lines(file) else None, **named)


def source_of(file: str) -> Any:
    """Return what to read: a file by its name, ``-`` for standard input."""
    return sys.stdin if file == "-" else file


def _is_lines(file: str) -> bool:
    """Tell whether a file is JSON lines, as what its name does not tell is."""
    from krag_eval.loading.formats import format_of

    kind = None if file == "-" else format_of(file, looked_into=False)
    return kind is None or kind.name == "jsonl"


def chunks_of(index: str) -> list[DocumentLike]:
    """Read the chunks of an index, ``-`` for standard input."""
    from krag_eval.loading.loading import read_chunks

    return read_chunks(source_of(index))


def place_of(dataset: Dataset, query: int | None, *, of_run: bool = False) -> Place:
    """Return the place of a query, or of what was retrieved for it, in its file; or the file."""
    known = [place for place in dataset.run if place is not None] if of_run else []
    if known and query is None:
        return Place(known[0].name)
    if known and query is not None and (place := dataset.run[query]):
        return place
    if query is not None and dataset.lines:
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


def questions(file: str, cells: Mapping[str, Any], **fields: str | None) -> Dataset:
    """Read questions and their ground truth."""
    named = {**fields, **options.given(cells)}
    return loaded(file, {name: one for name, one in named.items() if one})


def result_of(
    file: str,
    k: tuple[Cutoff, ...],
    typed: Mapping[str, Any],
    chunks: Callable[[], Any] | None = None,
    *,
    run: str | None = None,
) -> tuple[EvaluationResult, Cutoff | str]:
    """Read a saved result, or evaluate a file, and return it with the cutoff to look at.

    Args:
        file: Its name.
        k: The cutoff that was typed, if any.
        typed: The options of an evaluation.
        chunks: Reads where the texts that are missed are looked for, if that was asked.
        run: The file that was named behind it.

    Raises:
        InvalidInput: If an option has no effect, as the result is a saved one, or that was saved
            without texts.
    """
    if is_saved(file):
        known = (*TWO_FILES, "drafts", *(() if chunks is None else ("matcher",)))
        given = options.given(typed)
        if useless := [one for one in given if one not in known]:
            problem = f"says how to evaluate, and {file} is a saved result"
            raise InvalidInput(useless[0], problem, "leave it out, or name the JSONL file")
        result = saved_result(file, need_rows=False)  # what needs them says so
        result = with_texts(result, run, given)
    else:
        asked = options.Evaluation.of(typed, k or (deepest(DEFAULT_CUTOFFS),))
        asked.plan()
        asked = asked if chunks is None else asked.with_settings(corpus=chunks())
        _dataset, result = evaluated_file(file, asked, run=run)
    if chunks is not None and result.evidence is not None and result.evidence.texts is None:
        problem = "was saved without its texts, which are looked for among the chunks"
        fix = "name what was evaluated by --golden GOLDEN --run RUN, or save it with --texts"
        raise DatasetError("", problem, fix, place=Place(file))
    at = k[0] if k else deepest(result.k)
    return result, "all" if at is None else at  # None would be one that was left out


def diagnosis_of(
    result: EvaluationResult, file: str, chunks: Any, typed: Mapping[str, Any], **how: Any
) -> Diagnosis:
    """Diagnose a result; a saved one by another matcher than its own, if one is named."""
    matcher = options.given(typed).get("matcher") if is_saved(file) else None
    return result.diagnose(chunks, matcher=matcher, **how)
