"""Any table of questions, from wherever it is: source, rows, what their fields mean, queries."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import resources
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from krag_eval.core import (
    Advice,
    DocumentLike,
    InvalidInput,
    InvalidType,
    Location,
    Place,
    Refusal,
    _,
    clipped,
    id_of,
    metadata_of,
    must,
    one_of,
    single,
    text_of,
)
from krag_eval.core.documents import STATUS, chunk_in, document_in, plain, unreviewed_in
from krag_eval.core.errors import kind_of, names_of
from krag_eval.loading.cells import check_chunks, is_bare, is_missing
from krag_eval.loading.dataset import Dataset, with_index
from krag_eval.loading.formats import File, Names, Row, format_of, is_wanted, json_in, rows_in
from krag_eval.loading.joining import Lacking, with_run
from krag_eval.loading.reading import (
    MAX_BYTES,
    Source as FileSource,
    located,
    not_json,
    object_of,
    parsed,
)
from krag_eval.loading.shapes import Folder, folder_of, judgements_of
from krag_eval.loading.table import (
    BESIDE,
    ERRORS,
    Drafts,
    Given,
    Mapped,
    OfRun,
    Records,
    Reviews,
    Roles,
    Side,
    TagReader,
    asked_by,
    cells_as_lists,
    checked_choice,
    checked_drafts,
    content_of,
    is_frame,
    note_on_defaults,
    notes_on,
    own_truth_note,
    parts_of,
    query_in,
    records_in,
    told_errors,
    with_drafts,
)
from krag_eval.loading.vocabularies import (
    COLUMNS,
    KNOWN,
    as_row,
    as_saved,
    is_foreign,
    nothing_retrieved,
    own_truth,
    roles_of,
    said,
    shape_of,
)

if TYPE_CHECKING:
    pass


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

#: What the chunks of an index can be read from: a file, a data frame or documents.
ChunkSource: TypeAlias = (
    "str | os.PathLike[str] | IO[str] | IO[bytes] | FrameLike | Iterable[DocumentLike]"
)

#: What a cell of documents holds.
Cells: TypeAlias = Literal["list", "text"]


def load_dataset(
    source: Source,
    *,
    question: str | None = None,
    actual: str | None = None,
    predicted: str | None = None,
    corpus: Source | ChunkSource | None = None,
    retrieved: Source | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    max_bytes: int | None = MAX_BYTES,
    tags: bool | Sequence[str] = True,
    cells: Cells = "list",
    missing: Lacking | None = None,
    drafts: Drafts = "error",
    grades: Literal["auto", "no"] = "auto",
    separator: str | None = None,
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
            with ``format``; a data frame of pandas or one like it, Hugging Face data sets and
            what streams a table through Arrow's C interface, such as DuckDB, included; a list of
            dicts, or of LangSmith examples; a dict of columns, from question to documents, or with
            ``corpus``, ``queries`` and ``relevant_docs`` or ``qrels``; a
            :class:`Dataset`, which is returned as it is, or with the spans of ``retrieved``.
        question: Column with the questions, where it has another name.
        actual: Column with the documents that should be retrieved.
        predicted: Column with those that were, best first.
        corpus: The chunks of an index: a file with one per line, a data frame or documents.
            Documents that are ids alone get their texts from it, so that any matcher can compare
            them. For AutoRAG's tables, as in :func:`read_autorag`.
        retrieved: What was retrieved, where it is not in ``source``: a run of any of these forms,
            of rows or a dict from question or id to documents; joined to the questions by ``id``
            where all rows of both have one, or by question, in NFC and with white space folded.
            ``notes`` say how many joined. For AutoRAG's tables, as in :func:`read_autorag`; spans,
            as in :func:`read_traces`; for judgements as ranx and TREC write them, as in
            :func:`read_trec`; for a folder, spans or a run.
        format: ``"jsonl"``, ``"json"``, ``"csv"``, ``"tsv"``, ``"parquet"``, or one that another
            package brings (see :class:`Format`); by the name of the file if not given.
        delimiter: What separates the cells of a CSV file; a comma if not given.
        encoding: Of a file of text; Excel in Korean writes ``"cp949"`` by default. Of ``source``
            and ``retrieved``, these two are about CSV files, if either is one, and else about both.
        max_bytes: As in :func:`read_jsonl`; of a Parquet file, how much its columns may hold.
        tags: Which other columns to keep as tags, as in :func:`read_jsonl`.
        cells: What a cell of documents holds: ``"list"``, or ``"text"`` for one document as it
            stands. Then a blank cell holds none, a list is still a list, and the rows of one
            question are one query: its retrieved documents in the order of the rows, the best
            first, and each ground truth once. ``notes`` count what was read so.
        missing: What happens to questions that ``retrieved`` lacks: ``"error"`` refuses them,
            ``"zero"`` counts them as nothing retrieved, ``"skip"`` leaves them out, both with a
            warning. A run that lacks some is refused unless you say; spans leave them out.
        drafts: What happens to rows of ground truth whose ``status`` is ``draft``, as nobody has
            accepted them: ``"error"`` refuses them, ``"count"`` takes them, and notes and
            signatures say how many there are. ``rejected`` rows are left out, with a warning. Any
            other status is a tag.
        grades: ``"auto"``: where records of the ground truth carry ``relevance``, ``grade``,
            ``label`` or ``score`` that is 0 somewhere, it is their grade, and ``notes`` say so;
            ``"no"`` counts all of the ground truth alike.
        separator: What parts the documents of a cell of plain text, such as ``","`` for
            ``"d1,d2"``; cells are then read as with ``cells="text"``.

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
    in_file = {"delimiter": delimiter, "encoding": encoding}
    own, theirs = said_of_each(source, retrieved, in_file)
    given = Given(_mapped(question, actual, predicted), corpus, retrieved, max_bytes,
                  checked_choice(tags), one_of("cells", cells, ("list", "text")),
                  missing=checked_missing(missing, retrieved), in_file=theirs,
                  drafts=checked_drafts(drafts),
                  grades=one_of("grades", grades, ("auto", "no")),
                  separator=_checked_separator(separator))  # fmt: skip
    if isinstance(source, Iterator) and not (hasattr(source, "read") or is_frame(source)):
        source = [*source]
    if isinstance(source, Dataset):
        of_run = () if retrieved is None else ("question", "predicted", "cells", "separator")
        given.check(("corpus", "retrieved", *of_run), "what is a Dataset already")
        return _completed(source, given)
    if layout := folder_of(source):
        given.check(("retrieved",), "folders")
        return _folder(source, layout, given)
    if retrieved is not None and (judgements := judgements_of(source, max_bytes)):
        given.check(("corpus", "retrieved"), "judgements")
        dataset = judgements.read(source, retrieved, max_bytes)
        told = [_("judgements and a run, as read_trec reads them")]
        return _completed(replace(dataset, notes=told), given._replace(retrieved=None))
    return dataset_of(_table(source, given, format, **own), given)


def read_jsonl(
    source: FileSource,
    *,
    question_field: str = "question",
    actual_field: str = "actual",
    predicted_field: str | None = "predicted",
    max_bytes: int | None = MAX_BYTES,
    tags: bool | Sequence[str] = True,
    encoding: str = "utf-8",
    drafts: Drafts = "error",
    grades: Literal["auto", "no"] = "auto",
) -> Dataset:
    """Read one query per line, each a JSON object, from a plain or gzip-compressed file.

    A line looks like ``{"question": "…", "actual": [documents], "predicted": [documents]}``. A
    document is a string or ``{"page_content": "…", "metadata": {…}, "id": "…"}``; among the ground
    truth, ``{"any_of": [documents]}`` lists interchangeable ones. The question is optional: unless
    every line has one, queries are labelled by position. Other fields are kept as tags of the
    queries, where they hold short texts, numbers or booleans alone; ``notes`` name those that do
    not. Where one of the three is missing on the first line, the names that :func:`load_dataset`
    knows are recognised, such as RAGAS's; ``notes`` say how. Rows of tables mean the same.

    The text is UTF-8 unless you name another encoding, with or without a byte order mark; blank
    lines are skipped wherever they are. JSON is read strictly: ``NaN``, ``Infinity``, a key given
    twice in one object and half of a surrogate pair are refused, because tools disagree about what
    they mean.

    Args:
        source: A path, or an open file (binary is preferred); compression is recognised by
            content. ``sys.stdin`` is read as bytes, whatever the locale.
        question_field: Name of the field with the question, text or a whole number.
        actual_field: Name of the field with the ground truth.
        predicted_field: Name of the field with the retrieved documents, best first; ``None`` if
            nothing has been retrieved yet, and a retriever is to be asked.
        max_bytes: How much text a compressed file, a pipe or a stream may hold, so that a small
            file cannot fill the memory; 1 GiB unless given, ``None`` for no limit. A single line of
            any file may hold a quarter of it.
        tags: Whether to keep other fields as tags: texts of at most 200 characters, numbers and
            booleans, at most 100 fields; or the names of those to keep.
        encoding: Of the text, such as ``"cp949"``.
        drafts: What happens to lines whose ``status`` is ``draft``, as in :func:`load_dataset`.
        grades: Whether records say grades, as in :func:`load_dataset`.

    Raises:
        DatasetError: If anything in the file cannot be used, or there is nothing in it; the
            message names file and line.
        InvalidType: If ``source`` is neither a path nor an open file.

    >>> import io
    >>> read_jsonl(io.StringIO('{"question": "When?", "actual": ["9"], "predicted": ["8", "9"]}'))
    Dataset of 1 queries from <stream>
    """
    fields, choice = Fields(question_field, actual_field, predicted_field), checked_choice(tags)
    drafts, grades = checked_drafts(drafts), one_of("grades", grades, ("auto", "no"))  # type: ignore[assignment]
    reviews = Reviews(drafts)
    file = File.of(source, max_bytes=max_bytes, encoding=encoding)
    rows = rows_in(file, "jsonl")
    first = next(rows, None)
    if first is None:
        raise Place(file.name).error(
            "holds no queries; expected one JSON object per line, such as "
            '{"question": "…", "actual": ["…"], "predicted": ["…"]}'
        )
    every = chain([first], rows)
    if fields.are_foreign_to(first[1]):
        given = Given(fields.mapped, max_bytes=max_bytes, tags=choice, named_by=FIELD_OPTIONS,
                      drafts=drafts, grades=grades)  # fmt: skip
        table = Records.of(every, file.name)
        dataset = dataset_of(table, given)
        if predicted_field is not None and dataset.predicted is None:
            raise nothing_retrieved(table, FIELD_OPTIONS[-1])
        if predicted_field is not None:
            return dataset
        return replace(dataset, predicted=None, failures=())
    roles = fields.roles
    reader = TagReader(asked_by(roles), choice)
    # One after the other, so that of several mistakes the first line's is told.
    queries = [query_in(row, roles, place, reader) for place, row in reviews.accepted(every)]
    reviews.check(file.name, len(queries))
    if question_field != "question" and all(one.question is None for one in queries):
        raise queries[0].place.error(
            f'no field "{question_field}" on any line',
            Advice("name the one with the question by {}, or leave that out", question_field=...),
        )
    reader.check(file.name, fields[:3])
    kept, unreviewed = with_drafts(queries, reader.columns([one.tags for one in queries]))
    defaults = note_on_defaults(queries[0].mark.defaults)
    parts = parts_of(queries, file.name, roles, grades)
    parts["notes"] += notes_on(reader.left_out) + defaults + unreviewed
    parts["notes"] += told_errors(len(parts["failures"]), len(queries))
    return Dataset(**parts, tags=kept)


#: The arguments that name the fields of a query.
FIELD_OPTIONS = ("question_field", "actual_field", "predicted_field")


class Fields(NamedTuple):
    """What the fields of a query are called, or what they mean where they were recognised."""

    question: str
    actual: str
    predicted: str | None
    recognised: Roles | None = None

    @property
    def roles(self) -> Roles:
        """What these fields mean in a row."""
        side = None if self.predicted is None else Side(self.predicted)
        return self.recognised or Roles("named", self.question, Side(self.actual), side,
                                        FIELD_OPTIONS[1:])  # fmt: skip

    @property
    def mapped(self) -> Mapped:
        """Those that have another name than usual, as the user's choice."""
        pairs = zip(self[:3], Mapped._fields, strict=True)
        return Mapped(*(None if one == usual else one for one, usual in pairs))

    def are_foreign_to(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row has other names than these, which we know."""
        return not row.keys() >= {*filter(None, self[:3])} and is_foreign(row.keys(), self.mapped)


def read_chunks(
    source: FileSource,
    *,
    max_bytes: int | None = MAX_BYTES,
) -> list[DocumentLike]:
    r"""Read the chunks of an index, from a plain or gzip-compressed file.

    There is one on each line, or all are in one JSON array. A chunk is a text in quotes, or a JSON
    object with a text and perhaps an id: ``"page_content"``
    and ``"id"``, ``"text"`` and ``"id"``, BEIR's ``"_id"`` and ``"text"`` (after its ``"title"``),
    or AutoRAG's ``"doc_id"`` and ``"contents"``. Other fields are kept as metadata, beside those of
    ``"metadata"``.

    Args:
        source: A path, or an open file, as in :func:`read_jsonl`.
        max_bytes: As in :func:`read_jsonl`.

    Raises:
        DatasetError: If a chunk is something else, or there is none; the message names file and
            line, or row of an array.

    >>> import io
    >>> read_chunks(io.StringIO('"At nine."\n{"id": 7, "text": "At ten.", "page": 3}'))
    ['At nine.', {'page_content': 'At ten.', 'id': 7, 'metadata': {'page': 3}}]
    """
    file = File.of(source, max_bytes=max_bytes)
    chunks = [*_chunks_of(file)]
    if not chunks:
        raise Place(file.name).error(
            'holds no chunks; expected one per line, such as {"id": "7", "text": "At nine."}'
        )
    return chunks


def _chunks_of(file: File) -> Iterator[DocumentLike]:
    """Yield the chunks of a file: those of an array, or one per line."""
    with closing(file.lines()) as lines:  # type: ignore[type-var]
        first = next(lines, None)
        every = chain(filter(None, [first]), lines)
        start = "" if first is None else first[1].strip()
        if start.startswith("[") or start == "{":
            content = json_in([*every], file.name, "an array of chunks, or one per line")
            for row, chunk in enumerate(content if isinstance(content, list) else [content]):
                yield _chunk_in(chunk, Place(file.name, row=row))
            return
        for number, text in every:
            place = Place(file.name, number)
            yield _chunk_in(_on_line(text, place), place)


def _on_line(text: str, place: Place) -> Any:
    """Return what JSON a line holds: a text or an object."""
    if not text.lstrip().startswith('"'):
        return object_of(text, place, 'a text or a JSON object with "text"')
    try:
        with located(place):
            return parsed(text)
    except json.JSONDecodeError as error:
        raise not_json(error, place, "one text per line") from error


def _chunk_in(content: Any, place: Place) -> DocumentLike:
    """Read one chunk, whatever its fields are called."""
    if isinstance(content, str):
        return content
    made = chunk_in(content) if isinstance(content, dict) else None
    if made is None:
        is_object = isinstance(content, dict)
        got = f"the fields {names_of(content)}" if is_object else kind_of(content)
        raise place.error(
            'a chunk needs one text, as "text" or "page_content", or a span of a source, and at '
            f"most one id, got {got}"
        )
    with located(place):
        return document_in(made, Location("chunk"))


def chunks_in(source: Any, argument: str = "index") -> list[DocumentLike]:
    """Return the chunks of an index: of a file, as :func:`read_chunks` does, a frame or documents.

    A row of a data frame is a chunk whose fields are called as in a file; an empty cell is none.

    Raises:
        DatasetError: If a file cannot be read.
        InvalidType, InvalidInput: If it is nothing of the kind, or holds no chunks.

    >>> import pandas as pd
    >>> chunks_in(pd.DataFrame({"id": ["7"], "text": ["At nine."]}))
    [{'page_content': 'At nine.', 'id': '7'}]
    """
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return read_chunks(source)
    if is_frame(source):
        table = records_in(source, argument)
        if chunk_in(dict.fromkeys(table.names, "")) is None:
            problem = f'must have one column of texts, "text" or "page_content", got {table.names}'
            raise InvalidInput(argument, problem, "rename it, or pass that column alone")
        source = [{name: None if is_missing(one) else plain(one) for name, one in row.items()}
                  for _, row in table.rows]  # fmt: skip
    elif isinstance(source, bytes | Mapping) or not isinstance(source, Iterable):
        allowed = "be the path of a file of JSON lines, a data frame, or texts or documents"
        raise must(argument, allowed, source, "put a single one into a list", InvalidType)
    chunks = check_chunks(source, argument)
    if not chunks:
        fix = "an iterator can be used once; keep its chunks in a list, or as Index(chunks)"
        raise InvalidInput(argument, "must hold at least one chunk, got none", fix)
    return chunks


def demo_dataset() -> Dataset:
    """Return the small English and Korean data set that ships with the package.

    >>> demo_dataset().queries[0]
    'What do a parent and a child each need to get a library card?'
    """
    with resources.files("krag_eval").joinpath("data", "demo.jsonl").open("rb") as file:
        return replace(read_jsonl(file), source="krag_eval's demo data")


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
_OF_LOADING = ("cells", "drafts", "separator", *Mapped._fields)


# From a table to a data set


def _questions(table: Records, given: Given) -> Dataset:
    """Read a table of questions whose columns a vocabulary names."""
    roles = roles_of(table, given.mapped, given.named_by, is_run=given.is_run)
    one_per_row = given.cells == "list" and given.separator is None
    read, notes = (table, []) if one_per_row else cells_as_lists(table, roles, given.separator)
    read, roles, unusual = as_saved(read, roles)
    content = content_of(read, roles, given.tags, one_per_row=one_per_row, drafts=given.drafts,
                         grades=given.grades, separator=given.separator)  # fmt: skip
    others = [one for one in table.names if one not in asked_by(roles)]
    notes = [OfRun(note) for note in notes] if given.is_run else notes
    content["notes"] = said(roles, others) + notes + unusual + content["notes"]
    if truth := own_truth(table, roles):
        content["notes"][0] = own_truth_note(table.name, truth)
    return Dataset(**content, vocabulary=roles.shape)


def dataset_of(table: Records, given: Given) -> Dataset:
    """Return the data set of a table of any shape.

    Raises:
        DatasetError: If it cannot be understood.
    """
    if not table.names:
        raise Place(table.name).error("holds no rows; expected one for each query")
    shape = shape_of(table.names, given.mapped)
    read = shape.read or _questions
    given.check((*shape.taken, "corpus"), shape.name)
    if "corpus" in shape.taken:
        return read(table, given)
    if given.retrieved is None:
        return _completed(read(table, given), given)
    # The column that the user names is the run's; ids join, whether they are to be tags or not.
    alone = given._replace(mapped=given.mapped._replace(predicted=None), tags=True)
    joined = _completed(read(table, alone), given)
    if not isinstance(given.tags, bool) and not joined.tags.keys() >= {*given.tags}:
        read(table, alone._replace(tags=given.tags))  # refuses the tag that there is not
    is_kept = {STATUS} if unreviewed_in(joined.tags) else set()
    tags = {name: some for name, some in joined.tags.items()
            if name in is_kept or is_wanted(name, given.tags)}  # fmt: skip
    return replace(joined, tags=tags)


def _folder(folder: Any, layout: Folder, given: Given) -> Dataset:
    """Read a folder with a corpus, queries and judgements; what was retrieved is a run or spans."""
    is_run = given.retrieved is not None and judgements_of(given.retrieved, given.max_bytes)
    run = given.retrieved if is_run else None
    told = _(
        "BEIR's folder: judgements of its test split, texts from corpus, questions from queries"
    )
    dataset = replace(layout.read(folder, run, given.max_bytes), notes=[told])
    return dataset if is_run else _completed(dataset, given)


def _table_of_run(source: Any, given: Given) -> Records:
    """Return the rows of a run; of a file that holds an object, from id to documents, too."""
    is_file = _rank(source) > 0
    # What has no name that tells, such as standard input, is lines.
    kind = "jsonl" if is_file and format_of(source, looked_into=False) is None else None
    in_file = given.in_file if is_file else {}
    try:
        table = _table(source, given._replace(tags=True), kind, "retrieved", **in_file)
    except InvalidType as error:
        raise InvalidType("retrieved", error.problem, error.fix, query=error.query) from error
    if is_file and len(table.rows) == 1 and KNOWN.isdisjoint(table.names):
        (place, row), *_others = table.rows
        if all(isinstance(one, list) for one in row.values()):
            return Records.of(((place, one) for one in _rows_of_run(row)), table.name)
    return table


def _rows_of_run(found: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return a row for each query of a dict from question or id to documents."""
    return [{"question": str(one), "predicted": some} for one, some in found.items()]


def checked_missing(missing: str | None, retrieved: object) -> Lacking | None:
    """Return what happens to questions that a run lacks, if there is one."""
    if missing is not None and retrieved is None:
        raise InvalidInput("missing", "is about what a run lacks, and none was given", _NAME_RUN)
    return missing and one_of("missing", missing, ("error", "zero", "skip"))  # type: ignore[return-value]


_NAME_RUN = Advice("pass one by {}, or leave this out", retrieved=...)


def _completed(dataset: Dataset, given: Given) -> Dataset:
    """Join a run, or spans, to questions, and give ids the texts of an index, where there are."""
    run = None if given.retrieved is None else _run(given)
    if given.corpus is None:
        return _joined(dataset, run, given.missing, given.separator)
    texts, name = _texts_by_id(given.corpus)
    dataset, found = with_index(dataset, texts, name)
    if isinstance(run, Dataset):
        run, found_in_run = with_index(run, texts, name)
        found |= found_in_run
    joined = _joined(dataset, run, given.missing, given.separator)
    if isinstance(run, Records):
        joined, found = with_index(joined, texts, name)
    documents = (one for lists in (joined.actual, joined.predicted or ()) for some in lists
                 for one in single(some))  # fmt: skip
    # What is one word may be an id of another index, if chunks have ids; a passage is none.
    if texts and not found and all(is_bare(x) and len(text_of(x).split()) < 2 for x in documents):
        problem = f"has the ids of {len(texts)} chunks, and no document is one of them"
        raise InvalidInput("corpus", problem, "pass the index that the ids are of, or leave it out")
    return joined


def _joined(
    dataset: Dataset, run: Dataset | Records | None, missing: Any, separator: str | None
) -> Dataset:
    if isinstance(run, Records):
        missing = one_of("missing", missing or "skip", ("zero", "skip"))
        join: Any = shape_of(run.names).join  # by which such a table is left to it
        joined: Dataset = join(run, dataset, missing)
        return joined
    if run is None:
        return dataset
    return with_run(dataset, run, missing or "error", separator)


def _texts_by_id(corpus: Any) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the chunks of an index by their ids, and what to call it.

    Raises:
        InvalidInput: If two chunks have one id.
    """
    found: dict[str, dict[str, Any]] = {}
    is_file = isinstance(corpus, str | os.PathLike)
    for at, one in enumerate(chunks_in(corpus, "corpus")):
        if (identity := None if isinstance(one, str) else id_of(one)) is None:
            continue
        if identity in found:
            error = InvalidInput(
                "corpus",
                f"has the id {clipped(identity)} more than once",
                "an id must name one chunk",
            )
            if not is_file:
                raise error
            number, _text = next(islice(File.of(corpus).lines(), at, None))
            raise error.at(Place(os.fspath(corpus), number))
        metadata = {"metadata": metadata_of(one)} if metadata_of(one) else {}
        found[identity] = {"page_content": text_of(one), "id": identity, **metadata}
    return found, os.path.basename(corpus) if is_file else "corpus"


def _run(given: Given) -> Dataset | Records:
    """Read what was retrieved; a table of spans is left for their own reader."""
    source = given.retrieved
    if isinstance(source, Dataset):
        if source.predicted is None:
            raise InvalidInput("retrieved", "holds no retrieved documents", "pass a run")
        return source
    if judgements := judgements_of(source, given.max_bytes):
        return judgements.read_run(source, given.mapped.predicted, given.max_bytes)
    if isinstance(source, Mapping) and not is_table(source):
        source = _rows_of_run(source)
    table = _table_of_run(source, given)
    shape = shape_of(table.names)
    if shape.join is not None:
        return table
    if shape.read is not None:
        made = shape.read(table, Given(Mapped(None, None, given.mapped.predicted), tags=True))
        if made.predicted is None:
            raise nothing_retrieved(table, Mapped._fields[-1])
        return made
    question = given.mapped.question if given.mapped.question in table.names else None
    mapped = Mapped(question, None, given.mapped.predicted)
    return _questions(
        table, Given(mapped, cells=given.cells, tags=True, is_run=True, separator=given.separator)
    )


# From a source to a table


def _checked_separator(separator: str | None) -> str | None:
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise must("separator", "be text that parts the documents of a cell, as ','", separator)
    return separator


def _mapped(*names: str | None) -> Mapped:
    for option, name in zip(Mapped._fields, names, strict=True):
        if name is not None and not isinstance(name, str):
            raise must(option, "be the name of a column", name, kind=InvalidType)
        if name is not None and names.count(name) > 1:
            raise InvalidInput(option, f"and the others must name different columns, got {name!r}")
    return Mapped(*names)


def _table(
    source: Any, given: Given, format: str | None = None, at: str = "", **in_file: Any
) -> Records:
    """Return the rows of whatever holds some; of what is in memory, named ``at``."""
    # Others can only be tags.
    wanted = Names({*KNOWN, *COLUMNS, *ERRORS, *BESIDE, *filter(None, given.mapped)})
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        settings = {"max_bytes": given.max_bytes, "wanted": wanted, "tags": given.tags}
        file = File.of(source, **settings, **in_file)
        return Records.of(rows_in(file, format), file.name)
    for option, value in {"format": format, **in_file}.items():
        if value not in (None, "utf-8"):
            raise InvalidInput(option, f"is for files, got a {type(source).__name__}")
    if isinstance(source, Mapping):
        if shape_of(source).is_one_record:
            return Records.of([(Place("source"), source)], "source", in_memory=True)
        return Records.of(_rows_of_mapping(source, wanted), "columns", in_memory=True)
    if is_frame(source):
        return Records.of_frame(source, at or "frame", wanted, given.tags)
    # A model of pydantic's yields its fields.
    rows = not isinstance(source, str | bytes) and not hasattr(source, "model_dump")
    if rows and isinstance(source, Iterable):
        return Records.of(_rows(source, at or "rows"), at or "rows", in_memory=True)
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


def _rows(source: Iterable[Any], name: str = "rows") -> Iterator[Row]:
    for number, one in enumerate(source):
        row = as_row(one)
        row = one if row is None else row
        if not isinstance(row, Mapping):
            raise InvalidType(
                "source",
                f"must be a dict or a LangSmith example, got a {type(one).__name__}",
                "make a dict of pairs, dict(pairs)" if isinstance(one, tuple) else _as_dict(one),
                query=number,
            )
        yield Place(name, row=number), row


#: What is said of the text in a file.
IN_FILE = ("delimiter", "encoding")


def said_of_each(
    source: Any, retrieved: Any, in_file: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what is said of cells and encoding, as far as it is about each of two sources.

    >>> said_of_each("golden.jsonl", "run.csv", {"encoding": "cp949"})
    ({}, {'encoding': 'cp949'})
    """
    ours, theirs = _rank(source), _rank(retrieved)
    return (in_file if ours >= theirs else {}), (in_file if theirs >= ours else {})


def _rank(source: Any) -> int:
    """Return 0 for what is in memory, 1 for a file, 2 for a file of cells."""
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        return 0
    kind = format_of(source, looked_into=False)
    return 1 if kind is None or not kind.delimiter else 2


def is_table(source: Mapping[Any, Any]) -> bool:
    """Tell whether a dict is one of columns: whether any of its names is known as a column's."""
    return not KNOWN.isdisjoint(source)


def rows_by_question(source: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each question of a dict from question to documents."""
    return [{"question": question, "actual": documents} for question, documents in source.items()]


def _rows_of_mapping(source: Mapping[str, Any], wanted: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a dict: from question to documents, or of columns.

    Raises:
        InvalidType: If it can be either: without a known name, and with lists of
            one length.
    """
    lists = {
        str(name): [*value]
        for name, value in source.items()
        if isinstance(value, list | tuple) or (hasattr(value, "tolist") and not is_frame(value))
    }
    lengths = {len(one) for one in lists.values()}
    plain = all(isinstance(one, list | tuple) for one in source.values())
    if source and plain and not any(name in wanted for name in source):
        if len(lengths) == 1 and lengths != {1}:
            raise InvalidType(
                "source",
                "may be a dict of columns, or one from question to documents: "
                f"{clipped([*source])} are no known columns, and their lists are of one length",
                Advice('name columns by {}; write questions as rows, {{"question": …, '
                       '"actual": […]}}', question=..., actual=...),
            )  # fmt: skip
        yield from _rows(rows_by_question(source))
        return
    if len(lists) < len(source) or len(lengths) > 1:
        came = ", ".join(f"{name!r}: {type(value).__name__}" for name, value in source.items())
        raise InvalidType(
            "source",
            f"must be a dict of columns of one length, or a list of rows, got a dict of {came}",
            "put a single row into a list; pass one of several tables",
        )
    for number, row in enumerate(zip(*lists.values(), strict=True)):
        yield Place("columns", row=number), dict(zip(lists, row, strict=True))
