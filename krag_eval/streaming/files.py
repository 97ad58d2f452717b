"""A file of any size, evaluated chunk by chunk, and its state, so that a killed run resumes.

Rows mean what they mean to :func:`~krag_eval.datasets.read_jsonl`. A directory named after the
output, with ``.partial`` behind it, holds the rows of each chunk in a file of its own, and
``progress.json``: what the run is made for, how far it has come, and what must be kept of the
chunks so far. A chunk's rows are written first, then ``progress.json`` takes their number, in one
step; whenever the process is killed, a chunk is done or not, and never twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval._io import Purpose, bar_of, bars, check_apart, check_progress, lock, naming
from krag_eval._language import _
from krag_eval._options import LISTS, PLAN_OPTIONS, check_options
from krag_eval._reading import MAX_BYTES, cannot_read, check_encoding, checked_bytes
from krag_eval.datasets.dataset import labels_for, looks_at_questions
from krag_eval.datasets.formats import FORMATS, File, Format, Row, TagChoice, format_of
from krag_eval.datasets.loading import FIELD_OPTIONS, Fields
from krag_eval.datasets.table import (
    MOST_LEFT_OUT,
    Query,
    Records,
    TagReader,
    asked_by,
    check_once,
    checked_choice,
    matcher_of,
    notes_on,
    query_in,
)
from krag_eval.datasets.vocabularies import KNOWN, nothing_retrieved, roles_of, shape_of
from krag_eval.documents import single, text_of
from krag_eval.errors import Advice, InvalidInput, Place, Refusal, clipped, warn, whole
from krag_eval.evaluator import OfflineRetrievalEvaluator, Part, PartitionPlan
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

_Evaluated = TypeVar("_Evaluated", Part, EvaluationResult)


def evaluate_file(
    path: str | os.PathLike[str],
    k: Cutoffs = DEFAULT_CUTOFFS,
    *,
    per_query: str | os.PathLike[str] | None = None,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    chunk_size: int | None = None,
    resume: bool = True,
    progress: bool | None = None,
    n_jobs: int | None = None,
    question_field: str = "question",
    actual_field: str = "actual",
    predicted_field: str = "predicted",
    max_bytes: int | None = MAX_BYTES,
    tags: bool | Sequence[str] = True,
    encoding: str = "utf-8",
    **options: Any,
) -> EvaluationResult:
    """Evaluate a file of any size, or a directory of files, in memory for one chunk at a time.

    A single file below 64 MiB is evaluated at once, and its result keeps everything: ``explain``,
    ``diagnose``, ``by`` and other thresholds work. A larger file, a directory, and whatever is
    given ``per_query``, ``chunk_size`` or ``resume=False`` is read in chunks. What is kept of these
    is exact sums. With ``per_query`` the values of every query are written as they come; the result
    reads them when asked (``per_query(k)``, ``misses()``, ``confidence_intervals()``, …). Documents
    are not kept, so that ``explain`` and other thresholds need the queries in question in an
    evaluator. The averages are those of ``read_jsonl(path).evaluator(…).evaluate(k)`` in either
    way, to the last digit, whatever the size of the chunks.

    With ``per_query``, a run that was interrupted, even killed, resumes where it was when it is
    called again in the same way; its progress is in a directory beside the output, named after it
    with ``.partial`` behind, until the output appears, whole.

    Args:
        path: JSON lines (plain or gzip), as :func:`~krag_eval.datasets.read_jsonl` reads them; a
            file of another format with such columns (Parquet, CSV, …), a list of texts or of
            documents in each row; or a directory of files of one kind, read in the order of their
            names. A JSON array is parsed whole.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        per_query: Where to write one row per query, ``*.parquet`` or ``*.csv``: the question
            (``query``, as text), its ``position`` in the input from 0, and counts and metrics at
            every cutoff, ``ndcg@10``. A file of that name is replaced at the end; it must not be
            among those that are read.
        budget: How much may fit, or several such numbers; see
            :meth:`OfflineRetrievalEvaluator.evaluate
            <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all built-in
            ones if not given.
        chunk_size: Queries evaluated together, 5,000 unless given; fewer where their texts pass
            64 MiB.
        resume: Whether to resume from the progress of an earlier run; if not, it is deleted.
        progress: Whether to show a bar; if not given, in a terminal and in a notebook.
        n_jobs: Processes that tokenise and score; see
            :class:`~krag_eval.OfflineRetrievalEvaluator`.
        question_field: Name of the field with the question, text or a whole number.
        actual_field: Name of the field with the ground truth.
        predicted_field: Name of the field with the retrieved documents, best first.
        max_bytes: Four times what a line may hold, and what some rows of a Parquet file may; 1 GiB
            unless given, ``None`` for no limit. A file may be of any length.
        tags: Which other fields to keep or to write beside, as tags of the queries (``tag:name``):
            texts of at most 200 characters, numbers and booleans; the first chunk settles their
            names. A warning names what is left out.
        encoding: Of text, such as ``"cp949"``.
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
    size = _CHUNK if chunk_size is None else whole("chunk_size", chunk_size, 1)
    output = None if per_query is None else checked_row_file(per_query)
    check_encoding(encoding)
    files = QueryFiles.found(path, checked_bytes(max_bytes), encoding)
    fields = files.recognised(Fields(question_field, actual_field, predicted_field))
    first = next((one for one, *_ in files.queries(fields)), None)
    if first is None:
        raise Place(files.name).error("holds no queries; expected at least one")
    # What Dataset.save wrote says how to evaluate it, as in memory.
    defaults = first.mark.defaults
    asking = next((one for one, *_ in files.queries(fields) if one.actual), first)
    if not asking.predicted:  # where documents are ids alone, it takes one of them to tell
        full = (one for one, *_ in files.queries(fields) if one.actual and one.predicted)
        asking = next(full, asking)
    otherwise = matcher_of(fields.roles, files.name, [asking])
    settings = {**otherwise, **defaults, **options}
    plan = PartitionPlan.of(
        k, budget=budget, length=length, metrics=metrics, lists=_lists_of(first), **settings
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
        kept = output is None and chunk_size is None and resume and files.is_small
        at_once = _at_once(plan, files, fields, first, choice, settings) if kept else None
        done, result = at_once or (
            _all_chunks(plan, files, fields, first, state, choice, size, progress),
            None,
        )
        if files.fingerprint() != run["files"]:
            anew = Advice("evaluate it anew, with {}", resume=False)
            raise Place(files.name).error("changed while it was read", anew)
        rows: Rows | None = None
        if state is not None and output is not None:
            state.finish(done.n_parts)
            rows = RowsInFile(output, done.partial.summary)
    if 0 < done.n_unnamed < done.n_queries:
        told = _(
            "{n} of {queries} queries in {name} have no {field} (the first is {where}), so all "
            "are labelled by position."
        )
        warn(told.format(n=done.n_unnamed, queries=done.n_queries, name=files.name,
                         field=fields.question, where=done.first_unnamed))  # fmt: skip
    for note in notes_on(done.left_out):
        warn(f"{files.name}: {note}.", Advice(_("pass {} to keep none"), tags=False))
    return plan.result([done.partial], rows) if result is None else result


# Queries in a chunk, unless another number is given.
_CHUNK = 5_000


def _at_once(
    plan: PartitionPlan,
    files: QueryFiles,
    fields: Fields,
    first: Query,
    choice: TagChoice,
    options: Mapping[str, Any],
) -> tuple[Progress, EvaluationResult] | None:
    """Evaluate all queries in memory; ``None`` if their texts are too long for one chunk."""
    tags = TagReader(asked_by(fields.roles), choice) if choice else None
    chunks = files.chunks(fields, sys.maxsize, _BEGINNING, tags)
    queries = next(chunks).queries
    if next(chunks, None) is not None:
        return None
    _settle(tags, files, fields)
    unnamed = _unnamed(queries, fields, is_first=True)
    result = _evaluated(plan, queries, tags, first, partial(_in_memory, plan, options))
    sums = replace(plan.nothing(), summary=result.summary)
    left_out = {} if tags is None else tags.left_out
    where = str(unnamed[0]) if unnamed else ""
    return Progress(sums, _BEGINNING, 1, len(unnamed), where, left_out=left_out), result


def _in_memory(
    plan: PartitionPlan,
    options: Mapping[str, Any],
    actual: Any,
    predicted: Any,
    labels: Sequence[str | int | None],
    tags: Mapping[str, Any],
    judged: Any,
    **lists: Any,
) -> EvaluationResult:
    """Evaluate queries as a plan does a part, and keep the evidence."""
    named = [at if label is None else str(label) for at, label in enumerate(labels)]
    # A judge says which query lacks its question.
    all_named = None not in labels or looks_at_questions(plan.plan.matcher)
    evaluator = OfflineRetrievalEvaluator(
        actual,
        predicted,
        queries=named if all_named else None,
        tags=tags,
        judged=judged,
        **lists,
        **options,
    )
    length: Length = plan.length or "words"
    return evaluator.evaluate(plan.cutoffs, length=length, metrics=plan.metrics.values())


def _all_chunks(
    plan: PartitionPlan,
    files: QueryFiles,
    fields: Fields,
    first: Query,
    state: RunState | None,
    choice: TagChoice,
    size: int,
    progress: bool | None,
) -> Progress:
    """Evaluate what is left, each chunk kept before the next is read; return the whole of it."""
    begun = None if state is None else state.progress
    done = begun or Progress(plan.nothing())
    tags = None
    if state is not None and choice:
        tags = TagReader(asked_by(fields.roles), choice, None if begun is None else begun.tags)
        tags.left_out |= done.left_out
    bar = bar_of(progress, total=files.size, done=0, title="evaluating", unit=files.unit)
    before = 0
    try:
        for chunk in files.chunks(fields, size, done.cursor, tags):
            if not done.n_parts:
                _settle(tags, files, fields)
            part = _evaluated(plan, chunk.queries, tags, first, plan.evaluate)
            unnamed = _unnamed(chunk.queries, fields, is_first=not done.n_parts)
            positions = np.arange(done.n_queries, done.n_queries + len(chunk.queries))
            done = Progress(
                done.partial + part.partial,
                chunk.after,
                done.n_parts + 1,
                done.n_unnamed + len(unnamed),
                done.first_unnamed or (str(unnamed[0]) if unnamed else ""),
                () if tags is None else tuple(tags.names),
                # The names of other fields may be as many as queries.
                {} if tags is None else dict(islice(tags.left_out.items(), MOST_LEFT_OUT)),
            )
            if state is not None:
                query, *others = part.rows.items()
                state.add(dict([query, (POSITION, positions.astype(np.int64)), *others]), done)
            if bar is not None:
                bar.update(chunk.reached - before)
            before = chunk.reached
    finally:
        if bar is not None:
            bar.close()
    return done


def _settle(tags: TagReader | None, files: QueryFiles, fields: Fields) -> None:
    """Let the first chunk decide which tags there are."""
    if tags is not None:
        tags.check(files.name, fields[:3])
        tags.settle()


def _unnamed(queries: Sequence[Query], fields: Fields, *, is_first: bool) -> list[Place]:
    """Return the places of queries without a question, of which not all may be in a first chunk.

    Raises:
        DatasetError: If nobody has a question under a name that was given.
    """
    unnamed = [one.place for one in queries if one.label is None]
    if is_first and len(unnamed) == len(queries) and fields.question != "question":
        raise unnamed[0].error(
            f'no field "{fields.question}" here or in any query of the first chunk',
            Advice("name the one with the question by {}, or leave that out", question_field=...),
        )
    return unnamed


def _lists_of(first: Query) -> list[str]:
    """Return the other lists that a file has: those of its first query."""
    return [name for name in LISTS if getattr(first, name) is not None]


def _evaluated(
    plan: PartitionPlan,
    queries: Sequence[Query],
    tags: TagReader | None,
    first: Query,
    evaluate: Callable[..., _Evaluated],
) -> _Evaluated:
    """Evaluate a chunk; an error that names a query names its place in the file."""
    check_once(queries)
    for one in queries:
        if one.mark.defaults != first.mark.defaults:
            problem = '"krag_eval": the evaluator differs from that of the first query'
            raise one.place.error(problem, "evaluate data sets of different kinds one by one")
        # As of the first query, so that every chunk has the same columns.
        for name in ("judged", *LISTS):
            if getattr(first, name) is None and getattr(one, name) is not None:
                problem = f'has a field "{name}", and the first query has none'
                fix = "" if name == "judged" else ", or begin with a query that has one"
                raise one.place.error(problem, f'give that one "{name}": []{fix}')
    labels = labels_for(
        plan.plan.matcher, [one.label for one in queries], [one.question for one in queries]
    )
    lists: dict[str, Any] = {
        name: [getattr(one, name) for one in queries] for name in _lists_of(first)
    }
    try:
        return evaluate(
            [one.actual for one in queries],
            [one.predicted for one in queries],
            labels,
            {} if tags is None else tags.columns([one.tags for one in queries]),
            None if first.judged is None else [one.judged for one in queries],
            **lists,
        )
    except Refusal as error:
        if error.argument not in ("actual_docs", "predicted_docs", *LISTS):
            raise
        refused = error.at(queries[error.query or 0].place)
        if error.query is None:
            refused.problem += f" (they are among the {len(queries)} queries from here on)"
        raise refused from error


# The files, from one end to the other

# A chunk ends early when the texts of its queries are this long, so that long documents do not
# fill the memory; a document weighs something beside its text.
_MOST_WEIGHT, _WEIGHT = 64 * 2**20, 64
# How much of a file's beginning and end goes into its fingerprint.
_LOOKED_AT = 2**16


def is_read_in_directories(name: str) -> bool:
    """Return whether a file of that name is one that directories of queries are made of.

    >>> is_read_in_directories("part-1.jsonl.gz"), is_read_in_directories("chart.png")
    (True, False)
    """
    return format_of(name, looked_into=False) is not None


class Cursor(NamedTuple):
    """A place to read on from: so many rows into a file, both counted from 0."""

    file: int = 0
    records: int = 0


class Chunk(NamedTuple):
    """Some queries, where the next ones begin, and how far the reading has come."""

    queries: list[Query]
    after: Cursor
    reached: int


_BEGINNING = Cursor()


@dataclass(frozen=True)
class QueryFiles:
    """The files of a run, in the order they are read.

    Attributes:
        name: What was asked for, for messages.
        paths: The files.
        format: Their format.
        max_bytes: Four times what a line may hold; a file may be of any length.
        encoding: Of text.
    """

    name: str
    paths: tuple[Path, ...]
    format: Format
    max_bytes: int | None = MAX_BYTES
    encoding: str = "utf-8"

    @classmethod
    def found(
        cls,
        path: str | os.PathLike[str],
        max_bytes: int | None = MAX_BYTES,
        encoding: str = "utf-8",
    ) -> QueryFiles:
        """Find the files to read: one, or those of a directory in the order of their names.

        Files of a directory whose names begin with a dot or an underscore are passed over, as the
        engines that write such directories mean it.

        Raises:
            DatasetError: If there is no such file, a directory holds anything but files of one
                kind, or it is not a regular file.
        """
        name = os.fsdecode(path)
        if "\0" in name:
            raise Place(name).error("the name of a file cannot contain a NUL character")
        try:
            mode = os.stat(name).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                problem = "is not a regular file, and can be read only once"
                raise Place(name).error(problem, "save it to a file first")
            kind = format_of(name) or FORMATS["jsonl"]
            paths: tuple[Path, ...] = (Path(name),)
            if stat.S_ISDIR(mode):
                held = sorted(one for one in os.listdir(name) if not one.startswith((".", "_")))
                paths = tuple(Path(name, one) for one in held)
                kind = _only_kind(name, paths)
        except OSError as error:
            raise cannot_read(error, Place(name)) from error
        if not kind.is_text and encoding != "utf-8":
            problem = f"is for files of text, got format {kind.name!r} ({name})"
            raise InvalidInput("encoding", problem, "leave it out")
        return cls(name, paths, kind, max_bytes, encoding)

    @property
    def is_small(self) -> bool:
        """Whether it is one file, and no larger than the texts of a chunk."""
        (path, *_) = self.paths
        return path == Path(self.name) and path.stat().st_size < _MOST_WEIGHT

    @property
    def size(self) -> int:
        """How much there is to read, in :attr:`unit`."""
        return sum(map(self._size, self.paths))

    def _size(self, path: Path) -> int:
        count = self.format.count
        return path.stat().st_size if count is None else count(path)

    @property
    def unit(self) -> str:
        """What :attr:`size` counts: rows where files say how many, or bytes."""
        return "B" if self.format.count is None else "query"

    def fingerprint(self) -> list[list[Any]]:
        """Return what changes when a file does: name, size, time, and its beginning and end."""
        return [_fingerprint(path) for path in self.paths]

    def recognised(self, fields: Fields) -> Fields:
        """Return the fields as the first row names them, where that is not as in ``fields``.

        Raises:
            DatasetError: If its names could mean two things, or are those of what is read whole.
        """
        row = next((row for path in self.paths for _, row in self._rows(path, fields)), {})
        if not fields.are_foreign_to(row):
            return fields
        shape = shape_of(row.keys(), fields.mapped)
        if shape.read is not None:
            raise Place(self.name).error(
                f"{shape.name} are read whole, not in chunks",
                "read it by load_dataset, and save that as JSON lines",
            )
        table = Records.of([(Place(self.name), row)], self.name)
        roles = roles_of(table, fields.mapped, FIELD_OPTIONS)
        if roles.predicted is None:
            raise nothing_retrieved(table, FIELD_OPTIONS[-1])
        return fields._replace(recognised=roles)

    def _rows(
        self, path: Path, fields: Fields, source: Any = None, skipped: int = 0, tags: bool = True
    ) -> Iterator[Row]:
        wanted = {*KNOWN, *filter(None, [*asked_by(fields.roles), *fields[:3]])}
        return self.format.rows(
            File(source or path, str(path), self.max_bytes, self.encoding,
                 self.format.delimiter or None, wanted, tags, skipped, held=False)
        )  # fmt: skip

    def chunks(
        self, fields: Fields, chunk_size: int, start: Cursor, tags: TagReader | None = None
    ) -> Iterator[Chunk]:
        """Yield the queries in chunks, from a place on; the last chunk may be smaller.

        A chunk is cut short where its texts pass 64 MiB, and continues over the end of a file.

        Raises:
            DatasetError: If anything in a file cannot be used; as far as it was asked for.
        """
        queries: list[Query] = []
        weight, after, reached = 0, start, 0
        for query, after, reached in self.queries(fields, start, tags):
            queries.append(query)
            documents = chain(single(query.actual), query.predicted)
            texts = [one if type(one) is str else text_of(one) for one in documents]
            weight += sum(map(len, texts)) + _WEIGHT * len(texts)
            if len(queries) == chunk_size or weight > _MOST_WEIGHT:
                yield Chunk(queries, after, reached)
                queries, weight = [], 0
        if queries:
            yield Chunk(queries, after, reached)

    def queries(
        self, fields: Fields, start: Cursor = _BEGINNING, tags: TagReader | None = None
    ) -> Iterator[tuple[Query, Cursor, int]]:
        """Yield each query, where the next begins, and how far that is.

        Raises:
            DatasetError: If it cannot be used.
        """
        roles, before = fields.roles, 0
        for number, path in enumerate(self.paths):
            if number >= start.file:
                skipped = start.records if number == start.file else 0
                with open(path, "rb") as file:
                    rows = self._rows(path, fields, file, skipped, tags is not None)
                    for n_rows, (place, row) in enumerate(rows, skipped + 1):
                        query = query_in(row, roles, place, tags)
                        # What is in the buffer counts as read; a bar need not be that exact.
                        reached = file.raw.tell() if self.format.count is None else n_rows
                        yield query, Cursor(number, n_rows), before + reached
            before += self._size(path)


def _only_kind(folder: str, paths: Sequence[Path]) -> Format:
    """Return the format of the files of a directory, which must be of one."""
    kinds = {path.name: None if path.is_dir() else format_of(path, looked_into=False)
             for path in paths}  # fmt: skip
    strange = [name for name, kind in kinds.items() if kind is None]
    if strange:
        problem = f"holds {strange[0]}; expected files named *.jsonl, *.jsonl.gz or *.parquet alone"
        raise Place(folder).error(problem, "move others away")
    if not paths:
        raise Place(folder).error("holds nothing to read; expected files such as *.jsonl")
    (first, kind), *others = kinds.items()
    for other, its in others:
        if its != kind:
            problem = f"holds files of two kinds ({first} and {other})"
            raise Place(folder).error(problem, "put each kind into a directory of its own")
    assert kind is not None
    return kind


def _fingerprint(path: Path) -> list[Any]:
    with open(path, "rb") as file:
        seen = os.fstat(file.fileno())
        digest = hashlib.sha256(file.read(_LOOKED_AT))
        file.seek(max(0, seen.st_size - _LOOKED_AT))
        digest.update(file.read(_LOOKED_AT))
    return [path.name, seen.st_size, seen.st_mtime_ns, digest.hexdigest()]


# What a run leaves behind until it is done

_PROGRESS = "progress.json"
_LOCK = "lock"
# Everything that a run may leave behind there; nothing else is ever deleted.
_OURS = re.compile(r"(part-[0-9]{6,}|joined)\.(parquet|csv)|progress\.json(\.new)?|lock")
_ANEW = Advice("pass {} to start anew", resume=False)


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
        partial, cursor = (
            Partial.from_json(content["partial"]),
            Cursor(*map(int, content["cursor"])),
        )
        counts = {name: int(content[name]) for name in ("n_parts", "n_unnamed")}
        tags = tuple(content.get("tags", ()))
        return cls(**{**content, **counts, "partial": partial, "cursor": cursor, "tags": tags})


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

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
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
