"""A file of any size, evaluated chunk by chunk, and its state, so that a killed run resumes.

Rows mean what they mean to :func:`~krag_eval.datasets.read_jsonl`. A directory named after the
output, with ``.partial`` behind it, holds the rows of each chunk in a file of its own, and
``progress.json``: what the run is made for, how far it has come, and what must be kept of the
chunks so far. A chunk's rows are written first, then ``progress.json`` takes their number, in one
step; whenever the process is killed, a chunk is done or not, and never twice.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    DEFAULT_CUTOFFS,
    LISTS,
    PLAN_OPTIONS,
    Advice,
    Cutoffs,
    InvalidInput,
    InvalidType,
    Length,
    Metric,
    Partial,
    Place,
    Refusal,
    Rows,
    _,
    bar_of,
    check_apart,
    check_options,
    check_progress,
    clipped,
    labels_for,
    must,
    naming,
    warn,
    whole,
)
from krag_eval.core.files import Purpose, bars, take_place
from krag_eval.core.matching.base import looks_at_questions
from krag_eval.core.matching.parallel import check_n_jobs, processes
from krag_eval.core.results.latency import RetrievalRun
from krag_eval.core.results.reviews import with_unreviewed
from krag_eval.core.results.rows import RowsInFile
from krag_eval.evaluator import OfflineRetrievalEvaluator, Part, PartitionPlan
from krag_eval.loading.dataset import with_defaults
from krag_eval.loading.formats import TagChoice
from krag_eval.loading.joining import Lacking
from krag_eval.loading.loading import Fields, checked_missing, said_of_each
from krag_eval.loading.reading import MAX_BYTES, check_encoding, checked_bytes
from krag_eval.loading.table import (
    MOST_LEFT_OUT,
    Drafts,
    Query,
    TagReader,
    check_ids_alone,
    check_once,
    checked_choice,
    checked_drafts,
    disguised_among,
    failures_of,
    note_on_defaults,
    notes_on,
    tell_unnamed,
    told_errors,
)
from krag_eval.result import EvaluationResult
from krag_eval.streaming.queries import (
    BEGINNING,
    MOST_WEIGHT,
    Cursor,
    JoinedFiles,
    Kept,
    QueryFiles,
    fingerprint,
)
from krag_eval.streaming.row_files import checked_row_file, join_rows, write_rows

_Evaluated = TypeVar("_Evaluated", Part, EvaluationResult)


def evaluate_file(
    path: str | os.PathLike[str],
    retrieved: str | os.PathLike[str] | Cutoffs = DEFAULT_CUTOFFS,
    k: Cutoffs = DEFAULT_CUTOFFS,
    *,
    missing: Lacking | None = None,
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
    drafts: Drafts = "error",
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

    Of two files, ``path`` has the ground truth and ``retrieved`` the run. They are joined as
    :func:`~krag_eval.load_dataset` joins them, whatever the order of either, with the same numbers,
    tags and warnings. What was retrieved is kept in a temporary file meanwhile, which needs as much
    room as the run; ``notes`` of the result say what joined.

    With ``per_query``, a run that was interrupted, even killed, resumes where it was when it is
    called again in the same way; its progress is in a directory beside the output, named after it
    with ``.partial`` behind, until the output appears, whole.

    Args:
        path: JSON lines (plain or gzip), as :func:`~krag_eval.datasets.read_jsonl` reads them; a
            file of another format with such columns (Parquet, CSV, …), a list of texts or of
            documents in each row; or a directory of files of one kind, read in the order of their
            names. A JSON array is parsed whole.
        retrieved: The run, where it is a file, or files, of its own; of any of these formats. What
            is no path is ``k``, so that ``evaluate_file(path, 5)`` works, and ``None`` as well.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        missing: What happens to questions that ``retrieved`` lacks: ``"error"``, the default,
            refuses them, ``"zero"`` counts them as nothing retrieved, ``"skip"`` leaves them out,
            both with a warning.
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
        encoding: Of text, such as ``"cp949"``; of two files, as in
            :func:`~krag_eval.load_dataset`.
        drafts: What happens to rows whose ``status`` is ``draft``: ``"error"`` refuses them,
            ``"count"`` takes them, and the signature says how many there are. Rejected rows are
            left out, with a warning.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
            ``threshold``, ``conventions``, …

    Raises:
        DatasetError: If anything in a file cannot be used, or two do not join; the message names
            file and line or row.
        ImportError: If a Parquet file is to be read or written and pyarrow is missing.
        ValueError: If an option is not possible, ``per_query`` is among the files that are read, or
            there is the progress of another run.
        OSError: If a file cannot be written, the folder for temporary files is full, or another run
            writes to the same output.

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
    drafts = checked_drafts(drafts)
    run, k = _run_and_cutoffs(retrieved, k)
    missing = checked_missing(missing, run)
    fields = Fields(question_field, actual_field, predicted_field)
    most, encodings = checked_bytes(max_bytes), said_of_each(path, run, {"encoding": encoding})
    grades = options.get("grades", "auto") if options.get("grade_key") is None else "no"
    found = [QueryFiles.found(path, most, **encodings[0], drafts=drafts, grades=grades)]
    if run is not None:
        found.append(QueryFiles.found(run, most, **encodings[1]))
    paths = [one for some in found for one in some.paths]
    if output is not None:
        read: list[str | Path] = [*paths, *(one.name for one in found)]
        check_apart({"per_query": output}, read, folders={"per_query": folder_of_progress(output)})
    seen = [*map(fingerprint, paths)]
    with ExitStack() as stack:
        stack.enter_context(bars(progress))
        if run is None:
            files = found[0].recognised(fields)
        else:
            # Once it is closed, or the process killed, nothing is left of it.
            kept = Kept(stack.enter_context(SpooledTemporaryFile(MOST_WEIGHT)))
            files = JoinedFiles.of(found[0], found[1], fields, kept, missing or "error")
        first = next((one for one, *_ in files.queries()), None)
        if first is None:
            raise Place(files.name).error("holds no queries; expected at least one")
        # What Dataset.save wrote says how to evaluate it, as in memory.
        settings = with_defaults(files.defaults(first), options)
        plan = PartitionPlan.of(
            k, budget=budget, length=length, metrics=metrics, lists=files.lists(first), **settings
        )
        said = {"tags": choice, "encoding": encoding, "missing": missing, "drafts": drafts}
        made_for = {"files": seen, "fields": list(fields[:3]), **_settings_of(plan, said)}
        state = None
        if output is not None:
            state = stack.enter_context(RunState(output, made_for, resume=resume))
        stack.enter_context(processes(n_jobs, plan.plan.matcher.signature))
        is_whole = output is None and chunk_size is None and resume
        is_whole = is_whole and all(one.is_small for one in found)
        at_once = _at_once(plan, files, first, choice, settings) if is_whole else None
        done, result = at_once or (_all_chunks(plan, files, first, state, choice, size), None)
        _check_unchanged(paths, seen)
        rows: Rows | None = None
        if state is not None and output is not None:
            state.finish(done.n_parts)
            rows = RowsInFile(output, done.partial.summary)
    if run is None:
        name, question = files.name, files.fields.question
        tell_unnamed(done.n_unnamed, done.n_queries, name, question, done.first_unnamed)
    disguised = disguised_among(files.begin().names) if run is None and choice else {}
    for note in notes_on({**disguised, **done.left_out}):
        warn(f"{files.name}: {note}.", Advice(_("pass {} to keep none"), tags=False))
    files.reviews.check(files.name, done.n_queries)
    result = plan.result([done.partial], rows) if result is None else result
    settings = with_unreviewed(result.settings, done.n_drafts)
    if files.missing is not None:
        settings = files.missing.added_to(settings)
    notes = [*files.notes, *files.notes_on_order(), *files.grade_notes]
    notes += [*note_on_defaults(first.mark.defaults)]
    notes += told_errors(result.n_failed, result.n_queries)
    return replace(result, settings=settings, notes=notes)


_USUAL: Mapping[str, Any] = {
    "tags": True, "encoding": "utf-8", "missing": None, "drafts": "error",
}  # fmt: skip


def _settings_of(plan: PartitionPlan, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the rows of queries depend on, beside these."""
    return {
        "settings": plan.nothing().settings,
        "metrics": {name: metric.key for name, metric in plan.metrics.items()},
        **{name: one for name, one in said.items() if one != _USUAL[name]},
    }


def _check_unchanged(paths: Sequence[Path], seen: Sequence[list[Any]]) -> None:
    for path, before in zip(paths, seen, strict=True):
        if fingerprint(path) != before:
            anew = Advice("evaluate it anew, with {}", resume=False)
            raise Place(str(path)).error("changed while it was read", anew)


_CUTOFF = re.compile("all|[0-9]+[wct]")


def _run_and_cutoffs(retrieved: Any, k: Any) -> tuple[str | os.PathLike[str] | None, Cutoffs]:
    """Tell a run in the second place from cutoffs, which stood there before."""
    if isinstance(retrieved, str | os.PathLike) and not _CUTOFF.fullmatch(str(retrieved)):
        return retrieved, k
    if k is DEFAULT_CUTOFFS:
        return None, retrieved
    if retrieved is not DEFAULT_CUTOFFS and retrieved is not None:
        raise must("retrieved", "be the path of a run, as k is given", retrieved, kind=InvalidType)
    return None, k


# Queries in a chunk, unless another number is given.
_CHUNK = 5_000


def _at_once(
    plan: PartitionPlan,
    files: QueryFiles,
    first: Query,
    choice: TagChoice,
    options: Mapping[str, Any],
) -> tuple[Progress, EvaluationResult] | None:
    """Evaluate all queries in memory; ``None`` if their texts are too long for one chunk."""
    tags = files.reader(choice) if choice else None
    chunks = files.chunks(sys.maxsize, BEGINNING, tags)
    queries = next(chunks).queries
    if next(chunks, None) is not None:
        return None
    _settle(tags, files)
    unnamed = _unnamed(queries, files.fields, is_first=True)
    positions = files.positions(0, len(queries)).tolist()
    evaluate = partial(_in_memory, plan, options, positions)
    result = _evaluated(plan, queries, tags, first, files.lists(first), evaluate)
    if failures := failures_of(queries):
        seconds = np.full(len(queries), np.nan)
        result = replace(result, retrieval=RetrievalRun(seconds, tuple(failures)))
    sums = replace(plan.nothing(), summary=result.summary)
    left_out = {} if tags is None else tags.left_out
    where = str(unnamed[0]) if unnamed else ""
    n_drafts = sum(query.is_draft for query in queries)
    return Progress(sums, BEGINNING, 1, len(unnamed), where, (), left_out, n_drafts), result


def _in_memory(
    plan: PartitionPlan,
    options: Mapping[str, Any],
    positions: Sequence[int],
    actual: Any,
    predicted: Any,
    labels: Sequence[str | int | None],
    tags: Mapping[str, Any],
    **lists: Any,
) -> EvaluationResult:
    """Evaluate queries as a plan does a part, and keep the evidence."""
    named = [at if label is None else str(label)
             for at, label in zip(positions, labels, strict=True)]  # fmt: skip
    # A judge says which query lacks its question.
    all_named = None not in labels or looks_at_questions(plan.plan.matcher)
    evaluator = OfflineRetrievalEvaluator(
        actual,
        predicted,
        queries=named if all_named else positions,
        tags=tags,
        **lists,
        **options,
    )
    length: Length = plan.length or "words"
    return evaluator.evaluate(plan.cutoffs, length=length, metrics=plan.metrics.values())


def _all_chunks(
    plan: PartitionPlan,
    files: QueryFiles,
    first: Query,
    state: RunState | None,
    choice: TagChoice,
    size: int,
) -> Progress:
    """Evaluate what is left, each chunk kept before the next is read; return the whole of it."""
    begun = None if state is None else state.progress
    done = begun or Progress(plan.nothing())
    tags = None
    if state is not None and choice:
        tags = files.reader(choice, None if begun is None else begun.tags)
        tags.left_out |= done.left_out
    bar = bar_of(None, total=files.size, done=0, title="evaluating", unit=files.unit)
    before, lists = 0, files.lists(first)
    try:
        for chunk in files.chunks(size, done.cursor, tags):
            if not done.n_parts:
                _settle(tags, files)
            part = _evaluated(plan, chunk.queries, tags, first, lists, plan.evaluate)
            unnamed = _unnamed(chunk.queries, files.fields, is_first=not done.n_parts)
            positions = files.positions(done.n_queries, done.n_queries + len(chunk.queries))
            n_failed = len(failures_of(chunk.queries))
            summary = replace(part.partial.summary, n_failed=n_failed)
            done = Progress(
                done.partial + replace(part.partial, summary=summary),
                chunk.after,
                done.n_parts + 1,
                done.n_unnamed + len(unnamed),
                done.first_unnamed or (str(unnamed[0]) if unnamed else ""),
                () if tags is None else tuple(tags.names),
                # The names of other fields may be as many as queries.
                {} if tags is None else dict(islice(tags.left_out.items(), MOST_LEFT_OUT)),
                done.n_drafts + sum(query.is_draft for query in chunk.queries),
            )
            if state is not None:
                query, *others = part.rows.items()
                state.add(dict([query, (RowsInFile.POSITION, positions), *others]), done)
            if bar is not None:
                bar.update(chunk.reached - before)
            before = chunk.reached
    finally:
        if bar is not None:
            bar.close()
    return done


def _settle(tags: TagReader | None, files: QueryFiles) -> None:
    """Let the first chunk decide which tags there are."""
    if tags is not None:
        tags.check(files.name, files.fields[:3])
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


def _evaluated(
    plan: PartitionPlan,
    queries: Sequence[Query],
    tags: TagReader | None,
    first: Query,
    lists: Sequence[str],
    evaluate: Callable[..., _Evaluated],
) -> _Evaluated:
    """Evaluate a chunk; an error that names a query names its place in the file."""
    check_once(queries)
    check_ids_alone((one.actual, one.predicted, one.place) for one in queries)
    for one in queries:
        if one.mark.defaults != first.mark.defaults:
            problem = '"krag_eval": the evaluator differs from that of the first query'
            raise one.place.error(problem, "evaluate data sets of different kinds one by one")
        # As of the first query, so that every chunk has the same columns.
        for name in ("judged", *LISTS):
            if name not in lists and getattr(one, name) is not None:
                problem = f'has a field "{name}", and the first query has none'
                fix = "" if name == "judged" else ", or begin with a query that has one"
                raise one.place.error(problem, f'give that one "{name}": []{fix}')
    labels = labels_for(
        plan.plan.matcher, [one.label for one in queries], [one.question for one in queries]
    )
    values = {name: [getattr(one, name) for one in queries] for name in lists}
    if "judged" in values:
        values["judged"] = [() if one is None else one for one in values["judged"]]
    try:
        return evaluate(
            [one.actual for one in queries],
            [one.predicted for one in queries],
            labels,
            {} if tags is None else tags.columns([one.tags for one in queries]),
            **values,
        )
    except Refusal as error:
        if error.argument not in ("actual_docs", "predicted_docs", *LISTS):
            raise
        one = queries[error.query or 0]
        of_run = error.argument in ("predicted_docs", "cited")
        refused = error.at((of_run and one.run) or one.place)
        if error.query is None:
            refused.problem += f" (they are among the {len(queries)} queries from here on)"
        raise refused from error


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
        n_drafts: Queries whose ground truth nobody has accepted.
    """

    partial: Partial
    cursor: Cursor = BEGINNING
    n_parts: int = 0
    n_unnamed: int = 0
    first_unnamed: str = ""
    tags: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    n_drafts: int = 0

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
        take_place(joined, self._output)
        self._delete()

    def _open(self, *, resume: bool) -> None:
        # The output may be one that its owner alone may read.
        self.folder.mkdir(0o700, exist_ok=True)
        foreign = [name for name in os.listdir(self.folder) if not _OURS.fullmatch(name)]
        if foreign:
            raise InvalidInput(
                "per_query",
                f": {self.folder} is needed for the progress of the run and holds something else "
                f"({clipped(foreign[0])})",
                "move it away, or name another output",
            )
        file = self._stack.enter_context((self.folder / _LOCK).open("wb"))
        self._purpose.lock(file, self.folder)
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
