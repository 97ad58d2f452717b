"""Any table of questions, from wherever it is: the kind of file, then what its columns mean."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from krag_eval._language import _
from krag_eval._reading import MAX_BYTES, Limits, MaxObjects, name_of, within_memory
from krag_eval.datasets.autorag import autorag_dataset
from krag_eval.datasets.beir import PARTS, collection_dataset, has_corpus, is_collection, read_beir
from krag_eval.datasets.dataset import Dataset, labels_for
from krag_eval.datasets.langsmith import example_as_row, langsmith_dataset
from krag_eval.datasets.table import (
    Columns,
    TagChoice,
    asked_by,
    cells_as_lists,
    check_chosen,
    check_collected,
    checked_choice,
    is_frame,
    is_wanted,
    joined,
    notes_on,
    parts_of,
    queries_of,
    tags_of,
)
from krag_eval.datasets.tabular import (
    check_encoding,
    columns_of_lines,
    delimited_columns,
    json_columns,
    parquet_columns,
)
from krag_eval.datasets.traces import MARKS as SPAN_MARKS, SPANS, is_spans, traces_dataset
from krag_eval.datasets.trec import is_judgements, read_trec
from krag_eval.datasets.vocabularies import (
    KNOWN,
    Mapped,
    as_saved,
    is_autorag,
    is_langsmith,
    nothing_retrieved,
    roles_of,
    said,
)
from krag_eval.errors import (
    Advice,
    InvalidInput,
    InvalidType,
    Place,
    Refusal,
    clipped,
    muted,
    one_of,
)

if TYPE_CHECKING:
    from krag_eval.matching.base import Matcher
    from krag_eval.results.result import EvaluationResult

#: What a file may be.
Format: TypeAlias = Literal["jsonl", "json", "csv", "tsv", "parquet"]


class FrameLike(Protocol):
    """A table of any library: columns by name."""

    def __getitem__(self, name: Any, /) -> Any:
        """Return a column."""


class ExampleLike(Protocol):
    """An example of LangSmith's."""

    @property
    def inputs(self) -> Any:
        """What the application is asked."""


#: What a data set can be read from; see :func:`load_dataset`.
Source: TypeAlias = (
    "str | os.PathLike[str] | IO[str] | IO[bytes] | Dataset | FrameLike | Mapping[str, Any] | "
    "Iterable[Mapping[str, Any]] | Iterable[ExampleLike]"
)

#: What a cell of documents holds.
Cells: TypeAlias = Literal["list", "text"]

_FORMATS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
# Columns of which anything but a table of questions has one.
_MARKS = SPAN_MARKS | {"corpus"}
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")


def load_dataset(
    source: Source,
    *,
    question: str | None = None,
    actual: str | None = None,
    predicted: str | None = None,
    corpus: Source | None = None,
    retrieved: Source | None = None,
    format: Format | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
    tags: bool | Sequence[str] = True,
    cells: Cells = "list",
) -> Dataset:
    """Load questions with their ground truth, and what was retrieved if that is there.

    The columns may have the names of krag_eval (``question``, ``actual``, ``predicted``), RAGAS
    (``user_input``, ``reference_contexts``, ``retrieved_contexts``), LlamaIndex (``query``,
    ``expected_ids``, ``retrieved_ids``, ``…_texts``), deepeval (``input``, ``context``,
    ``retrieval_context``), krag's test sets (``question``, ``context``, ``source``, ``doc_id``),
    AutoRAG (``qid``, ``query``, ``retrieval_gt``) or LangSmith (``inputs``, ``outputs``,
    ``reference_outputs``), be in Korean (``질문``, ``정답`` or ``정답 문서``, ``검색결과``), or be
    those you name. ``notes`` of what is returned say how they were understood; what could be meant
    in two ways is refused.

    A cell holds a list of documents: natively, or as text written as JSON or as Python writes
    lists, which is read as data and never run. Other text is refused, unless ``cells="text"`` says
    that a cell holds one document. Without retrieved documents, ``predicted`` is ``None``, for a
    retriever to be asked. Columns that mean nothing else are kept as ``tags`` of the queries.

    Args:
        source: A path: JSON lines (``.jsonl``, perhaps ``.jsonl.gz``), a JSON array, CSV, TSV or
            Parquet; a folder as BEIR or MTEB lays it out; what LlamaIndex's
            ``EmbeddingQAFinetuneDataset`` wrote; spans, as in :func:`read_traces`. Or an open file,
            with ``format``; a data frame of pandas or one like it, Hugging Face data sets included;
            a list of dicts, or of LangSmith examples; a dict of columns, from question to
            documents, or with ``corpus``, ``queries`` and ``relevant_docs`` or ``qrels``; a
            :class:`Dataset`, which is returned as it is, or with the spans of ``retrieved``.
        question: Column with the questions, where it has another name.
        actual: Column with the documents that should be retrieved.
        predicted: Column with those that were, best first.
        corpus: For AutoRAG's tables, as in :func:`read_autorag`.
        retrieved: For AutoRAG's tables, as in :func:`read_autorag`; for others, spans to join to
            the questions, as in :func:`read_traces`; for judgements as ranx and TREC write them, a
            run, as in :func:`read_trec`; for a folder, spans or a run.
        format: ``"jsonl"``, ``"json"``, ``"csv"``, ``"tsv"`` or ``"parquet"``; by the name of the
            file if not given.
        delimiter: What separates the cells of a CSV file; a comma if not given.
        encoding: Of a file of text; Excel in Korean writes ``"cp949"`` by default.
        max_bytes: As in :func:`read_jsonl`; of a Parquet file, how much its columns may hold once
            they are decoded.
        max_objects: As in :func:`read_jsonl`.
        tags: Which other columns to keep as tags, as in :func:`read_jsonl`.
        cells: What a cell of documents holds: ``"list"``, or ``"text"`` for one document as it
            stands. Then a blank cell holds none, a list is still a list, and the rows of one
            question are one query: its retrieved documents in the order of the rows, the best
            first, and each ground truth once. ``notes`` count what was read so.

    Raises:
        DatasetError: If anything cannot be understood; the message names row and column.
        MissingPackage: If a Parquet file is given and pyarrow is missing.
        InvalidType: If ``source`` is nothing of the kind.
        InvalidInput: If an option is not among those allowed, or not for this source.

    >>> rows = [{"user_input": "When?", "reference_contexts": "['At nine.']"}]
    >>> dataset = load_dataset(rows)
    >>> dataset.questions, dataset.actual, dataset.predicted
    (['When?'], [['At nine.']], None)
    >>> dataset.notes[0]
    "ground truth read from reference_contexts, by RAGAS's column names"
    >>> rows = [{"question": "When?", "actual": "At nine.", "predicted": text}
    ...         for text in ("At ten.", "At nine.")]
    >>> dataset = load_dataset(rows, cells="text")
    >>> dataset.queries, dataset.actual, dataset.predicted
    (['When?'], [['At nine.']], [['At ten.', 'At nine.']])
    """
    limits = Limits(max_bytes, max_objects).checked()
    check_encoding(encoding)
    mapped = _mapped(question, actual, predicted)
    options = _Options(format, delimiter, encoding, limits, {*KNOWN, *filter(None, mapped)},
                       checked_choice(tags), one_of("cells", cells, ("list", "text")))  # fmt: skip
    if isinstance(source, Iterator) and not hasattr(source, "read"):
        source = [*source]
    with within_memory(_name(source)):
        dataset = _known(source, retrieved, limits)
        if dataset is None:
            table = _table(source, options)
            dataset = _known_table(table, source, retrieved, options)
            if dataset is None:
                return _dataset(table, mapped, corpus, retrieved, options)
    _check_not_given({**mapped._asdict(), "corpus": corpus}, "is for tables of questions")
    return dataset


def _known(source: Any, retrieved: Any, limits: Limits) -> Dataset | None:
    """Return the data set of what is no table; ``None`` if it is one."""
    if isinstance(source, Dataset):
        return _with_spans(source, retrieved, limits)
    if isinstance(source, Mapping) and is_collection(source):
        return _with_spans(collection_dataset(source, "source", limits), retrieved, limits)
    if isinstance(source, str | os.PathLike) and os.path.isdir(source) and has_corpus(source):
        return _folder(source, retrieved, limits)
    if retrieved is not None and is_judgements(source, limits):
        return _of_judgements(source, retrieved, limits)
    return None


def _known_table(table: Columns, source: Any, retrieved: Any, options: _Options) -> Dataset | None:
    """Return the data set of a table of spans or of a collection; ``None`` if it is neither."""
    if _MARKS.isdisjoint(table.names):
        return None
    if is_spans(table.names):
        _check_not_given({"retrieved": retrieved}, "is for questions, and source holds spans")
        return traces_dataset(_read_again(source, options, SPANS))
    if is_collection(table.names):
        _, content = next(_read_again(source, options, PARTS).rows())
        dataset = collection_dataset(content, table.name, options.limits)
        return _with_spans(dataset, retrieved, options.limits)
    return None


def _check_not_given(given: Mapping[str, Any], problem: str) -> None:
    for argument, value in given.items():
        if value is not None:
            raise InvalidInput(argument, problem, "leave it out")


def _folder(folder: str | os.PathLike[str], retrieved: Any, limits: Limits) -> Dataset:
    """Read a folder with a corpus, queries and judgements; what was retrieved is a run or spans."""
    is_run = retrieved is not None and is_judgements(retrieved, limits)
    dataset = read_beir(
        folder,
        run=retrieved if is_run else None,
        max_bytes=limits.max_bytes,
        max_objects=limits.max_objects,
    )
    told = _(
        "BEIR's folder: judgements of its test split, texts from corpus, questions from queries"
    )
    dataset = replace(dataset, notes=[told])
    return dataset if is_run else _with_spans(dataset, retrieved, limits)


def _with_spans(dataset: Dataset, retrieved: Any, limits: Limits) -> Dataset:
    """Join spans to questions, if there are any."""
    if retrieved is None:
        return dataset
    given = [*retrieved] if isinstance(retrieved, Iterator) else retrieved
    options = _Options(None, None, "utf-8", limits, SPANS, False)
    nothing = Columns("retrieved", {}, ())
    try:
        spans = nothing if isinstance(given, Mapping) else _table(given, options)
    except InvalidType as error:
        raise InvalidType("retrieved", error.problem, error.fix) from error
    if _name(given) == "source":  # it is in memory
        spans = spans._replace(name="retrieved")
    if not is_spans(spans.names):
        problem = (
            "must be spans, as read_traces reads them; lists by id are for AutoRAG's tables, and "
            "runs for judgements"
        )
        raise InvalidInput("retrieved", problem, "put the documents into a column of the questions")
    return traces_dataset(spans, dataset)


def _of_judgements(source: Any, run: Any, limits: Limits) -> Dataset:
    """Read judgements, and a run over them, as TREC's are."""
    dataset = read_trec(source, run, max_bytes=limits.max_bytes, max_objects=limits.max_objects)
    return replace(dataset, notes=[_("judgements and a run, as read_trec reads them")])


def _read_again(source: Any, options: _Options, wanted: Collection[str]) -> Columns:
    """Read other columns of a table, now that it is known what it is."""
    if hasattr(source, "read"):
        if not source.seekable():
            problem = "is not a table of questions, and cannot be read a second time as what it is"
            raise Place(_name(source)).error(problem, "save it, and name the file")
        source.seek(0)
    return _table(source, options._replace(wanted=wanted, tags=False))


def dataset_in(source: Any) -> Dataset:
    """Return a data set, loaded if need be; a refusal names it ``dataset``.

    What would have to be passed to :func:`load_dataset` is said to be its own.
    """
    try:
        with advised_to_load():
            return load_dataset(source)
    except Refusal as error:
        if error.argument != "source" or error.place is not None:
            raise
        raise type(error)("dataset", error.problem, error.fix, query=error.query) from error


@contextmanager
def advised_to_load() -> Iterator[None]:
    """Let advice say which options are those of :func:`load_dataset`, and not of the caller."""
    try:
        yield
    except Refusal as error:
        fix = error.fix
        if isinstance(fix, Advice) and any(name in _OF_LOADING for name, _ in fix.settings):
            error.fix = f"{fix}; that is an option of load_dataset, whose result you can pass"
        raise


# The options that advice about rows and columns names.
_OF_LOADING = ("cells", *Mapped._fields)


def evaluated_again(
    result: EvaluationResult, source: Any, matcher: str | Matcher | None = None
) -> EvaluationResult:
    """Evaluate a data set as a result was, for the evidence and the texts that this has lost.

    Args:
        result: The result. Where it has rows, its labels are kept, and each query must have the
            same ground truth and the same counts; without rows, the sums must be the same.
        source: The data set, or what :func:`load_dataset` makes one of.
        matcher: The matcher, where the signature of the result does not tell all.

    Raises:
        InvalidInput: If the data set has other queries, ground truth or lists.
    """
    from krag_eval.results.causes import matcher_of
    from krag_eval.results.rows import NoRows
    from krag_eval.scoring.cutoffs import Budget

    data, settings = dataset_in(source), result.settings
    if data.predicted is None:
        problem = "holds no retrieved documents, and the result is of such"
        raise InvalidInput("dataset", problem, "pass the one with the lists that were evaluated")
    if data.n_queries != result.n_queries:
        problem = f"must have the {result.n_queries} queries of the result, got {data.n_queries}"
        raise InvalidInput("dataset", problem, _EVALUATED_ON)
    held = None if result.evidence is None else result.evidence.matcher
    if "matcher" not in settings:
        raise InvalidInput("dataset", ": this result was made of judgements, without documents")
    grades, threshold = settings.get("grades", "-"), settings["threshold"]
    matched_by = matcher_of(settings["matcher"], held, matcher)
    labels = labels_for(matched_by, data.queries, data.questions)
    with muted():
        again = data.evaluator(
            queries=labels if isinstance(result.rows, NoRows) else result.labels,
            matcher=matched_by,
            threshold=None if threshold == "-" else float(threshold),
            matching_criteria=settings["criteria"],
            conventions=result.conventions,
            no_ground_truth=settings["no_ground_truth"].partition("(")[0],
            grade_key=None if grades == "-" else grades,
            aspect_key=settings.get("aspects"),
        ).evaluate([k for k in result.k if not isinstance(k, Budget)] or [None])
    if isinstance(result.rows, NoRows):
        _check_same_sums(result, again)
    else:
        _check_same_rows(result, again, labels)
    return again


_EVALUATED_ON = "pass what the result was evaluated on, unchanged"


def _check_same_sums(result: EvaluationResult, again: EvaluationResult) -> None:
    """Refuse other sums at the cutoffs of both."""
    for k in {*result.k} & {*again.k}:
        ours, theirs = (one.summary.sums[k].totals for one in (result, again))
        if any(ours[name] != theirs[name] for name in ours.keys() & theirs.keys()):
            problem = "does not have the sums of the result: other documents, or others retrieved"
            raise InvalidInput("dataset", problem, _EVALUATED_ON)


def _check_same_rows(
    result: EvaluationResult, again: EvaluationResult, labels: Sequence[str | int]
) -> None:
    """Refuse other labels, other ground truth, and other counts at the cutoffs of both."""
    from krag_eval.results.rows import COUNT_COLUMNS

    if result.labels != [*range(len(labels))]:
        _check_each("another label", result.labels, labels, labels)
    if result.rows.digests is not None and again.rows.digests is not None:
        _check_each("other ground truth", result.rows.digests, again.rows.digests, labels)
    for k in {*result.k} & {*again.k}:
        for name in COUNT_COLUMNS:
            sides = result.tables[k][name].tolist(), again.tables[k][name].tolist()
            _check_each("other documents", *sides, labels)


def _check_each(
    what: str, ours: Iterable[Any], theirs: Iterable[Any], labels: Iterable[str | int]
) -> None:
    for position, (our, their, label) in enumerate(zip(ours, theirs, labels, strict=True)):
        if our != their:
            problem = f"has {what} for query {position}, {clipped(label)}, than the result"
            raise InvalidInput("dataset", problem, _EVALUATED_ON)


def _name(source: Any) -> str:
    """Return what to call a source in messages."""
    is_file = isinstance(source, str | os.PathLike) or hasattr(source, "read")
    return name_of(source) if is_file else "source"


def recognised_lines(
    lines: Iterable[tuple[int, str]],
    name: str,
    mapped: Mapped,
    named_by: Sequence[str],
    tags: TagChoice,
    *,
    retrieved: bool,
) -> Dataset:
    """Make a data set of JSON lines in anybody's vocabulary, for the reader of our own.

    Args:
        lines: Numbers and texts.
        name: What to call where they are from.
        mapped: The fields that the user named.
        named_by: The arguments that name them.
        tags: Which other fields to keep as tags.
        retrieved: Whether retrieved documents are to be read.

    Raises:
        DatasetError: If they cannot be understood, or retrieved documents are missing.
    """
    options = _Options("jsonl", None, "utf-8", Limits(), {*KNOWN, *filter(None, mapped)}, tags)
    table = columns_of_lines(lines, name, options.wanted, tags)
    dataset = _dataset(table, mapped, None, None, options, named_by)
    if retrieved and dataset.predicted is None:
        raise nothing_retrieved(table, named_by[-1])
    return dataset if retrieved else replace(dataset, predicted=None)


def _dataset(
    table: Columns,
    mapped: Mapped,
    corpus: Any,
    retrieved: Any,
    options: _Options,
    named_by: Sequence[str] = Mapped._fields,
) -> Dataset:
    if not table.names:
        raise Place(table.name).error("holds no rows; expected one for each query")
    if options.cells == "text" and _has_own_reader(table.names, mapped):
        problem = "is for tables of questions, and this one is AutoRAG's or LangSmith's"
        raise InvalidInput("cells", problem, "leave it out")
    if is_autorag(table.names, mapped):
        return autorag_dataset(
            table, corpus, retrieved, options.limits, must_be_retrieved=False, tags=options.tags
        )
    if retrieved is not None and corpus is None:
        questions = _dataset(table, mapped, None, None, options, named_by)
        return _with_spans(questions, retrieved, options.limits)
    if corpus is not None:
        raise InvalidInput(
            "corpus",
            "is for AutoRAG's tables, which have the columns 'qid', 'query' and 'retrieval_gt'; in "
            f"{table.name} {table.described()}",
            "leave it out",
        )
    if _has_own_reader(table.names, mapped):
        return langsmith_dataset(table, mapped, options.tags)
    roles = roles_of(table, mapped, named_by)
    read, notes = cells_as_lists(table, roles) if options.cells == "text" else (table, [])
    read, roles, unusual = as_saved(read, roles)
    notes += unusual
    queries = queries_of(read, roles)
    asked = asked_by(roles)
    tags, left_out = tags_of(table, asked, options.tags, [one.mark for one in queries])
    if options.cells == "text":
        n_rows = len(queries)
        queries, tags, differing = joined(queries, tags)
        check_chosen(options.tags, table, asked, tags, differing)
        if len(queries) < n_rows:
            told = _(
                "{rows} rows put together by question into {queries} queries, documents in the "
                "order of the rows"
            )
            notes.append(told.format(rows=n_rows, queries=len(queries)))
        notes += notes_on(differing)
    parts = parts_of(queries, table.name, roles)
    others = [one for one in table.names if one not in asked]
    notes = said(roles, others) + notes + left_out
    return Dataset(**parts, notes=notes, vocabulary=roles.shape, tags=tags)


def _has_own_reader(names: Sequence[str], mapped: Mapped) -> bool:
    """Tell whether a table's cells mean what another tool says."""
    return is_autorag(names, mapped) or (is_langsmith(names) and mapped.actual not in names)


class _Options(NamedTuple):
    format: str | None
    delimiter: str | None
    encoding: str
    limits: Limits
    wanted: Collection[str]
    tags: TagChoice
    cells: str = "list"


def _mapped(*names: str | None) -> Mapped:
    for option, name in zip(Mapped._fields, names, strict=True):
        if name is not None and not isinstance(name, str):
            raise InvalidType(option, f"must be the name of a column, got {clipped(name)}")
    given = [name for name in names if name is not None]
    if len(set(given)) < len(given):
        twice = next(option for option, name in zip(Mapped._fields, names, strict=True)
                     if name is not None and given.count(name) > 1)  # fmt: skip
        raise InvalidInput(
            twice,
            f"and the others must name different columns, got {', '.join(given)}",
        )
    return Mapped(*names)


def _table(source: Any, options: _Options) -> Columns:
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return _file(source, options)
    refused = [name for name in ("format", "delimiter") if getattr(options, name) is not None]
    if refused:
        raise InvalidInput(refused[0], f"is for files, got a {type(source).__name__}")
    if isinstance(source, Mapping):
        if _is_by_question(source, options.wanted):
            return _rows(rows_by_question(source), options.wanted, options.tags)
        return _columns(source, options.wanted, options.tags)
    check_collected(source, "source")
    if is_frame(source):
        return Columns.of_frame(source, "frame", options.wanted, options.tags)
    # A model of pydantic's yields its fields.
    rows = not isinstance(source, str | bytes) and not hasattr(source, "model_dump")
    if rows and isinstance(source, Iterable):
        return _rows(source, options.wanted, options.tags)
    raise InvalidType(
        "source",
        "must be a path, an open file, a data frame, a list of dicts or of LangSmith examples, or "
        f"a dict of columns or from question to documents, got a {type(source).__name__}",
        _as_dict(source),
    )


def _as_dict(one: Any) -> str:
    """Say how an object of another tool becomes a dict."""
    methods = ("model_dump", "to_dict")  # of pydantic; of ranx
    return next((f"pass its dict, from {name}()" for name in methods if hasattr(one, name)), "")


# Files


def _file(source: Any, options: _Options) -> Columns:
    name = name_of(source)
    kind = _format(name, options.format)
    if kind not in ("csv", "tsv"):
        _check_is_for_text(options, kind)
    if kind == "parquet":
        return parquet_columns(source, name, options.limits, options.wanted, options.tags)
    if kind in ("json", "jsonl"):
        return json_columns(
            source, name, options.limits, options.wanted, options.tags, options.encoding
        )
    delimiter = options.delimiter or ("\t" if kind == "tsv" else ",")
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidInput(
            "delimiter", f"must be one character, such as ';', got {clipped(delimiter)}"
        )
    return delimited_columns(
        source,
        name,
        options.limits,
        options.wanted,
        delimiter=delimiter,
        encoding=options.encoding,
        tags=options.tags,
    )


def _format(name: str, given: str | None) -> str:
    allowed = tuple(dict.fromkeys(_FORMATS.values()))
    if given is not None:
        return one_of("format", given, allowed)
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(_WORKBOOKS):
        raise Place(name).error(
            "is a workbook", "save the sheet as CSV (UTF-8), or load it by pandas"
        )
    kind = _FORMATS.get(os.path.splitext(plain)[1])
    if kind is None:
        raise Place(name).error(
            "its name does not say what it is; expected one that ends in "
            f"{', '.join(_FORMATS)}, perhaps with .gz",
            Advice("name another, or pass {} or the like", format=allowed[0]),
        )
    return kind


def _check_is_for_text(options: _Options, kind: str) -> None:
    other_encoding = options.encoding.lower().replace("_", "-") != "utf-8"
    given = {
        "delimiter": (options.delimiter is not None, "CSV and TSV files"),
        "encoding": (other_encoding and kind == "parquet", "files of text"),
    }
    for option, (is_given, what) in given.items():
        if is_given:
            problem = f"is for {what}, got a file of format {kind!r}"
            raise InvalidInput(option, problem, "leave it out")


# What is in memory


def _rows(source: Iterable[Any], wanted: Collection[str], tags: TagChoice) -> Columns:
    rows = []
    for number, one in enumerate(source):
        row = example_as_row(one)
        if row is None:
            row = one
        if not isinstance(row, Mapping):
            raise InvalidType(
                "source",
                f"must be a dict or a LangSmith example, got a {type(one).__name__}",
                "make a dict of pairs, dict(pairs)" if isinstance(one, tuple) else _as_dict(one),
                query=number,
            )
        rows.append(row)
    return Columns.of_rows(rows, "rows", wanted, tags)._replace(in_memory=True)


def is_table(source: Mapping[Any, Any]) -> bool:
    """Tell whether a dict is one of columns: whether any of its names is known as a column's."""
    return not KNOWN.isdisjoint(source)


def rows_by_question(source: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each question of a dict from question to documents."""
    return [{"question": question, "actual": documents} for question, documents in source.items()]


def _is_by_question(source: Mapping[Any, Any], wanted: Collection[str]) -> bool:
    """Tell whether a dict maps questions to documents, and cannot be one of columns.

    Raises:
        InvalidType: If it can be either: it has no known name, and lists of one length.
    """
    lists = [value for value in source.values() if isinstance(value, list | tuple)]
    if not source or len(lists) < len(source) or not frozenset(wanted).isdisjoint(source):
        return False
    lengths = {len(one) for one in lists}
    if len(lengths) == 1 and lengths != {1}:
        raise InvalidType(
            "source",
            f"may be a dict of columns, or one from question to documents: {clipped([*source])} "
            "are no known columns, and their lists are of one length",
            Advice('name columns by {}; write questions as rows, {{"question": …, "actual": […]}}',
                   question=..., actual=...),
        )  # fmt: skip
    return True


def _columns(source: Mapping[str, Any], wanted: Collection[str], tags: TagChoice) -> Columns:
    tables = [str(name) for name, value in source.items() if is_frame(value)]
    if tables:
        several = ", ".join(map(repr, tables))
        raise InvalidType("source", f"holds several tables, {several}", "pass one of them")
    columns = {
        str(name): [*value]
        for name, value in source.items()
        if isinstance(value, list | tuple) or hasattr(value, "tolist")
    }
    lengths = {name: len(value) for name, value in columns.items()}
    if len(columns) < len(source) or len(set(lengths.values())) > 1:
        came = ", ".join(f"{name!r}: {type(value).__name__}" for name, value in source.items())
        raise InvalidType(
            "source",
            "must be a dict of columns of one length, or a list of rows, got a dict of " + came,
            "put a single row into a list",
        )
    kept = {name: value for name, value in columns.items() if name in wanted}
    others = [one for one in columns.items() if one[0] not in wanted and is_wanted(one[0], tags)]
    return Columns("columns", kept, [*columns], in_memory=True).with_others(others)
