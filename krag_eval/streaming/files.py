"""A file of any size, evaluated chunk by chunk, and its state, so that a killed run resumes.

A directory named after the output, with ``.partial`` behind it, holds the rows of each chunk in a
file of its own, and ``progress.json``: what the run is made for, how far it has come, and what must
be kept of the chunks so far. A chunk's rows are written first, then ``progress.json`` takes their
number, in one step; whenever the process is killed, a chunk is done or not, and never twice.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval._io import Purpose, bar_of, bars, check_apart, check_progress, lock, naming
from krag_eval._language import _
from krag_eval._options import PLAN_OPTIONS, check_options
from krag_eval._reading import MAX_BYTES, Limits, MaxObjects
from krag_eval.datasets.dataset import labels_for
from krag_eval.datasets.jsonl import Fields
from krag_eval.datasets.streams import Chunk, Cursor, QueryFiles
from krag_eval.datasets.table import (
    MOST_LEFT_OUT,
    TagChoice,
    TagReader,
    asked_by,
    checked_choice,
    matcher_of,
    notes_on,
)
from krag_eval.datasets.tabular import check_encoding
from krag_eval.documents import Tag
from krag_eval.errors import Advice, InvalidInput, Place, Refusal, clipped, warn, whole
from krag_eval.evaluator import Part, PartitionPlan
from krag_eval.matching.parallel import check_n_jobs, processes
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import (
    POSITION,
    Rows,
    RowsInFile,
    checked_row_file,
    join_rows,
    write_rows,
)
from krag_eval.scoring.cutoffs import DEFAULT_CUTOFFS, Cutoffs, Length
from krag_eval.scoring.metrics import Metric
from krag_eval.scoring.parts import Partial


def evaluate_file(
    path: str | os.PathLike[str],
    k: Cutoffs = DEFAULT_CUTOFFS,
    *,
    per_query: str | os.PathLike[str] | None = None,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    chunk_size: int = 5_000,
    resume: bool = True,
    progress: bool | None = None,
    n_jobs: int | None = None,
    question_field: str = "question",
    actual_field: str = "actual",
    predicted_field: str = "predicted",
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
    tags: bool | Sequence[str] = True,
    encoding: str = "utf-8",
    **options: Any,
) -> EvaluationResult:
    """Evaluate a file of any size, or a directory of files, in memory for one chunk at a time.

    The averages are those of ``read_jsonl(path).evaluator(…).evaluate(k)``, to the last digit,
    whatever the size of the chunks. What is kept in memory is their exact sums. With ``per_query``
    the values of every query are written as they come; the result reads them when asked
    (``per_query(k)``, ``misses()``, ``confidence_intervals()``, …). Documents are not kept, so that
    ``explain`` and other thresholds need the queries in question in an evaluator.

    With ``per_query``, a run that was interrupted, even killed, resumes where it was when it is
    called again in the same way; its progress is in a directory beside the output, named after it
    with ``.partial`` behind, until the output appears, whole.

    Args:
        path: JSON lines (plain or gzip), as :func:`~krag_eval.datasets.read_jsonl` reads them; a
            Parquet file with such columns, a list of texts or of documents in each row; or a
            directory of files of one kind, read in the order of their names.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        per_query: Where to write one row per query, ``*.parquet`` or ``*.csv``: the question
            (``query``, as text), its ``position`` in the input from 0, and counts and metrics at
            every cutoff, ``ndcg@10``. A file of that name is replaced at the end; it must not be
            among those that are read.
        budget: How much may fit, or several such numbers; see
            :meth:`OfflineRetrievalEvaluator.evaluate
            <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute; all built-in ones if not given.
        chunk_size: Queries evaluated together; fewer where they pass 64 MiB in memory.
        resume: Whether to resume from the progress of an earlier run; if not, it is deleted.
        progress: Whether to show a bar; if not given, in a terminal and in a notebook.
        n_jobs: Processes that tokenise and score; see
            :class:`~krag_eval.OfflineRetrievalEvaluator`.
        question_field: Name of the field with the question, text or a whole number.
        actual_field: Name of the field with the ground truth.
        predicted_field: Name of the field with the retrieved documents, best first.
        max_bytes: Four times what a line or a row may hold; 1 GiB unless given, ``None`` for no
            limit. A file may be of any length.
        max_objects: How many values (texts, numbers, lists, objects) may come out of a line of a
            compressed file, or of a row or row group of a Parquet file; unless given, as many as
            its size justifies, as in :func:`~krag_eval.datasets.read_jsonl`.
        tags: Which other fields to write beside, as tags of the queries (``tag:name``): texts of at
            most 200 characters, numbers and booleans; the first chunk settles their names. A
            warning names what is left out.
        encoding: Of JSON lines, such as ``"cp949"``.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
            ``threshold``, ``conventions``, …

    Raises:
        DatasetError: If anything in a file cannot be used; the message names file and line or row.
        ImportError: If a Parquet file is to be read or written and pyarrow is missing.
        ValueError: If an option is not possible, ``per_query`` is among the files that are read, or
            there is the progress of another run.
        OSError: If a file cannot be written, or another run writes to the same output.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "queries.jsonl")
    ...     line = '{"question": "When?", "actual": ["a", "b"], "predicted": ["a", "x"]}'
    ...     _ = path.write_text(line)
    ...     evaluate_file(path, k=2).averages()["macro_recall"]
    0.5
    """
    check_options(evaluate_file, options, PLAN_OPTIONS)
    check_progress(progress)
    n_jobs = check_n_jobs(n_jobs)
    choice = checked_choice(tags)
    size = whole("chunk_size", chunk_size, 1)
    fields = Fields(question_field, actual_field, predicted_field)
    output = None if per_query is None else checked_row_file(per_query)
    check_encoding(encoding)
    files = QueryFiles.found(path, Limits(max_bytes, max_objects).checked(), encoding)
    if files.parquet and encoding != "utf-8":
        raise InvalidInput("encoding", f"is for JSON lines, got Parquet ({path})", "leave it out")
    fields = files.recognised(fields)
    first = files.first(fields)
    if first is None:
        raise Place(files.name).error("holds no queries; expected at least one")
    # What Dataset.save wrote says how to evaluate it, as in memory.
    defaults = first.mark.defaults
    by_ids = matcher_of(fields.roles, files.name)
    plan = PartitionPlan.of(
        k, budget=budget, length=length, metrics=metrics, **{**by_ids, **defaults, **options}
    )
    run = {
        "files": files.fingerprint(),
        "fields": list(fields[:3]),
        "settings": plan.nothing().settings,
        "metrics": {name: metric.key for name, metric in plan.metrics.items()},
    }
    if choice is not True:
        run["tags"] = choice
    if encoding != "utf-8":
        run["encoding"] = encoding
    if output is not None:
        check_apart(
            {"per_query": output},
            [files.name, *files.paths],
            folders={"per_query": folder_of_progress(output)},
        )
    opened = nullcontext() if output is None else RunState(output, run, resume=resume)
    with opened as state, processes(n_jobs, plan.plan.matcher.signature), bars(progress):
        # As of the first query, so that every chunk has the same columns.
        has_judged = first.judged is not None
        whole_run = _Run(plan, defaults, files, fields, state, choice, has_judged=has_judged)
        done = whole_run.all_chunks(size, progress)
        if files.fingerprint() != run["files"]:
            anew = Advice("evaluate it anew, with {}", resume=False)
            raise Place(files.name).error("changed while it was read", anew)
        rows: Rows | None = None
        if state is not None and output is not None:
            state.finish(done.n_parts)
            rows = RowsInFile(output, done.partial.summary)
    _warn_of_unnamed(done, files, fields)
    for note in notes_on(done.left_out):
        warn(f"{files.name}: {note}.", Advice(_("pass {} to keep none"), tags=False))
    return plan.result([done.partial], rows)


class _Run:
    """One run over files: chunk after chunk, each kept before the next is read."""

    def __init__(
        self,
        plan: PartitionPlan,
        defaults: Mapping[str, Any],
        files: QueryFiles,
        fields: Fields,
        state: RunState | None,
        choice: TagChoice,
        *,
        has_judged: bool,
    ) -> None:
        self._has_judged = has_judged
        self._plan = plan
        self._defaults = defaults
        self._files = files
        self._fields = fields
        self._state = state
        begun = None if state is None else state.progress
        self._done = begun or Progress(plan.nothing())
        self._tags: TagReader | None = None
        if state is not None and choice:
            names = None if begun is None else begun.tags
            self._tags = TagReader(asked_by(fields.roles), choice, names)
            self._tags.left_out |= self._done.left_out

    def all_chunks(self, chunk_size: int, progress: bool | None) -> Progress:
        """Evaluate what is left, and return what must be kept of the whole."""
        for chunk in self._with_bar(chunk_size, progress):
            _check_defaults(chunk, self._defaults)
            judged = self._judged_of(chunk)
            part = _evaluated(self._plan, chunk._replace(tags=self._tags_of(chunk), judged=judged))
            first = self._done.n_queries
            self._done = self._after(chunk, part)
            if self._state is not None:
                positions = np.arange(first, first + len(chunk.records), dtype=np.int64)
                query, *others = part.rows.items()
                rows = dict([query, (POSITION, positions), *others])
                self._state.add(rows, self._done)
        return self._done

    def _judged_of(self, chunk: Chunk) -> list[list[Any] | dict[str, bool] | None] | None:
        """Return what was looked at, where the first query of all says so."""
        judged = [record.judged for record in chunk.records]
        if self._has_judged:
            return judged
        for record in chunk.records:
            if record.judged is not None:
                raise record.place.error(
                    'has a field "judged", and the first query has none',
                    'give that one "judged": []',
                )
        return None

    def _tags_of(self, chunk: Chunk) -> dict[str, list[Tag]]:
        """Return the tags of a chunk; the first settles which there are."""
        if self._tags is None:
            return {}
        if not self._done.n_parts:
            self._tags.check(self._files.name, [name for name in self._fields[:3] if name])
            self._tags.settle()
        return self._tags.columns([record.tags for record in chunk.records])

    def _with_bar(self, chunk_size: int, progress: bool | None) -> Iterator[Chunk]:
        files, before = self._files, 0
        bar = bar_of(progress, total=files.size, done=0, title="evaluating", unit=files.unit)
        try:
            for chunk in files.chunks(self._fields, chunk_size, self._done.cursor, self._tags):
                yield chunk
                if bar is not None:
                    bar.update(chunk.reached - before)
                before = chunk.reached
        finally:
            if bar is not None:
                bar.close()

    def _after(self, chunk: Chunk, part: Part) -> Progress:
        unnamed = [record.place for record in chunk.records if record.label is None]
        done = self._done
        if not done.n_parts and len(unnamed) == len(chunk.records):
            _check_question_field(self._fields, unnamed[0])
        return Progress(
            done.partial + part.partial,
            chunk.after,
            done.n_parts + 1,
            done.n_unnamed + len(unnamed),
            done.first_unnamed or (str(unnamed[0]) if unnamed else ""),
            () if self._tags is None else tuple(self._tags.names),
            {} if self._tags is None else _left_out(self._tags),
        )


def _left_out(tags: TagReader) -> dict[str, str]:
    """Return what to say of other fields in the end; their names may be as many as queries."""
    return dict(islice(tags.left_out.items(), MOST_LEFT_OUT))


def _evaluated(plan: PartitionPlan, chunk: Chunk) -> Part:
    """Evaluate a chunk; an error that names a query names its place in the file."""
    records = chunk.records
    try:
        return plan.evaluate(
            [record.actual for record in records],
            [record.predicted for record in records],
            labels_for(
                plan.plan.matcher,
                [record.label for record in records],
                [record.question for record in records],
            ),
            chunk.tags,
            chunk.judged,
        )
    except Refusal as error:
        if error.argument not in ("actual_docs", "predicted_docs"):
            raise
        refused = error.at(records[error.query or 0].place)
        if error.query is None:
            refused.problem += f" (they are among the {len(records)} queries from here on)"
        raise refused from error


def _check_defaults(chunk: Chunk, defaults: Mapping[str, Any]) -> None:
    """Refuse queries that were saved to be evaluated in different ways."""
    for record in chunk.records:
        if record.mark.defaults != defaults:
            raise record.place.error(
                '"krag_eval": the evaluator differs from that of the first query',
                "evaluate data sets of different kinds one by one",
            )


def _check_question_field(fields: Fields, place: Place) -> None:
    if fields.question != "question":
        raise place.error(
            f'no field "{fields.question}" here or in any query of the first chunk',
            Advice("name the one with the question by {}, or leave that out", question_field=...),
        )


def _warn_of_unnamed(done: Progress, files: QueryFiles, fields: Fields) -> None:
    """Warn that questions cannot be labels where only some queries have one."""
    if 0 < done.n_unnamed < done.n_queries:
        told = _(
            "{n} of {queries} queries in {name} have no {field} (the first is {where}), so all "
            "are labelled by position."
        )
        warn(told.format(n=done.n_unnamed, queries=done.n_queries, name=files.name,
                         field=fields.question, where=done.first_unnamed))  # fmt: skip


_PROGRESS = "progress.json"
_LOCK = "lock"
# Everything that a run may leave behind there; nothing else is ever deleted.
_OURS = re.compile(r"(part-[0-9]{6,}|joined)\.(parquet|csv)|progress\.json(\.new)?|lock")
_ANEW = Advice("pass {} to start anew", resume=False)
_BEGINNING = Cursor()


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes:
        partial: What must be kept of the queries so far.
        cursor: Where the next query begins.
        n_parts: Number of chunks whose rows are written.
        n_unnamed: Queries without a question.
        first_unnamed: The place of the first of them.
        tags: The names of the tags, in order: those of the first chunk.
        left_out: Why other fields are not among them, or not in every row.
    """

    partial: Partial
    cursor: Cursor = _BEGINNING
    n_parts: int = 0
    n_unnamed: int = 0
    first_unnamed: str = ""
    tags: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_queries(self) -> int:
        """Number of queries so far."""
        return self.partial.summary.n_queries

    def to_json(self) -> dict[str, Any]:
        """Return the progress as what JSON can hold, exactly."""
        others = replace(self, partial=None)  # type: ignore[arg-type]
        return {**asdict(others), "partial": self.partial.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Progress:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        file, records = map(int, content["cursor"])
        return cls(
            Partial.from_json(content["partial"]),
            Cursor(file, records),
            int(content["n_parts"]),
            int(content["n_unnamed"]),
            str(content["first_unnamed"]),
            tuple(map(str, content.get("tags", ()))),
            dict(content.get("left_out", {})),
        )


def folder_of_progress(output: Path) -> Path:
    """Return the directory that holds the progress of a run until its output appears."""
    return output.with_name(f"{output.name}.partial")


class RunState:
    """The open state of one run; use it in a ``with`` block.

    Args:
        output: The file all rows go into in the end.
        run: What the run is made for: its input and its settings, as JSON can hold it.
        resume: Whether to resume from what is there; if not, it is deleted.

    Raises:
        InvalidInput: If what is there was made for another run, or is damaged.
        OSError: If it cannot be written, or another run is writing to it.
    """

    def __init__(self, output: Path, run: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = folder_of_progress(output)
        self._output = output
        # As it will be read back.
        made_for = {"run": json.loads(json.dumps(run))}
        spoken = {"files": "other files, or changed since"}
        self._purpose = Purpose("per_query", "krag_eval.progress", 1, made_for, _ANEW, spoken)
        self._stack = ExitStack()
        self.progress: Progress | None = None
        try:
            self._open(resume=resume)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> RunState:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not (self.folder / _PROGRESS).exists():
            self._delete()  # nothing to resume from
        elif error is not None:
            error.add_note(f"What is done is kept in {self.folder}; the same call resumes there.")
        self._stack.close()

    def add(self, rows: Mapping[str, NDArray[Any]], progress: Progress) -> None:
        """Keep the rows of one more chunk; when this returns, they are kept for good."""
        part = self._part(progress.n_parts - 1)
        with naming(part):
            write_rows(part, rows)
            _flush(part)
        self._write(progress)

    def finish(self, n_parts: int) -> None:
        """Put the rows together; the output appears complete, and the state is deleted."""
        joined = self.folder / f"joined{self._output.suffix}"
        with naming(joined):
            join_rows([self._part(number) for number in range(n_parts)], joined)
            _flush(joined)
        os.replace(joined, self._output)
        self._delete()

    def _open(self, *, resume: bool) -> None:
        self.folder.mkdir(exist_ok=True)
        foreign = [name for name in os.listdir(self.folder) if not _OURS.fullmatch(name)]
        if foreign:
            raise InvalidInput(
                "per_query",
                f": {self.folder} is needed for the progress of the run and holds something else "
                f"({clipped(foreign[0])})",
                "move it away, or name another output",
            )
        file = self._stack.enter_context((self.folder / _LOCK).open("wb"))
        lock(file, "per_query", self.folder)
        if not resume:
            self._delete_parts()
        if (self.folder / _PROGRESS).exists():
            self.progress = self._read()

    def _read(self) -> Progress:
        path = self.folder / _PROGRESS
        try:
            content = json.loads(path.read_text("utf-8"))
            progress = Progress.from_json(content.pop("progress"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f": the progress in {path} is damaged ({error!r:.200})"
            raise InvalidInput("per_query", problem, _ANEW) from error
        remedy = Advice("finish that run as it was begun, or pass {} to start anew", resume=False)
        self._purpose.check(content, self.folder, remedy)
        for number in range(progress.n_parts):
            if not self._part(number).is_file():
                raise InvalidInput("per_query", f": {self._part(number)} is missing", _ANEW)
        return progress

    def _write(self, progress: Progress) -> None:
        content = {**self._purpose.header, "progress": progress.to_json()}
        new = self.folder / f"{_PROGRESS}.new"
        with naming(new):
            new.write_text(json.dumps(content, ensure_ascii=True), "ascii")
            _flush(new)
        os.replace(new, self.folder / _PROGRESS)

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}{self._output.suffix}"

    def _delete_parts(self) -> None:
        # The progress first: without it, what else is left means nothing.
        (self.folder / _PROGRESS).unlink(missing_ok=True)
        for name in os.listdir(self.folder):
            if name != _LOCK and _OURS.fullmatch(name):
                (self.folder / name).unlink()

    def _delete(self) -> None:
        if not self.folder.is_dir():
            return
        self._delete_parts()
        if sys.platform == "win32":  # an open file cannot be deleted there
            self._stack.close()
        with suppress(OSError):  # another run may be about to write here
            (self.folder / _LOCK).unlink()
            self.folder.rmdir()


def _flush(path: Path) -> None:
    """Flush a file to disk, so that a loss of power does no more harm than a kill."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
