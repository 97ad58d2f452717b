"""Any table of questions, from wherever it is: the kind of file, then what its columns mean.

This room joins the others: readers of files, shapes, cells. It must not know any of them in detail.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from krag_eval._errors import Place, unknown_name
from krag_eval.datasets.autorag import autorag_dataset
from krag_eval.datasets.columns import Columns, check_collected, is_frame
from krag_eval.datasets.dataset import Dataset, name_of
from krag_eval.datasets.langsmith import example_as_row, langsmith_dataset
from krag_eval.datasets.lines import MAX_BYTES, Limits, MaxObjects, numbered_lines, within_memory
from krag_eval.datasets.strict_json import kind_of, object_of, parsed
from krag_eval.datasets.table import table_dataset
from krag_eval.datasets.tabular import check_encoding, delimited_columns, parquet_columns
from krag_eval.datasets.vocabularies import KNOWN, Mapped, is_autorag, is_langsmith

__all__ = ["load_dataset"]

#: What a file may be.
Format: TypeAlias = Literal["jsonl", "json", "csv", "tsv", "parquet"]

_FORMATS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")


def load_dataset(
    source: Any,
    *,
    question: str | None = None,
    actual: str | None = None,
    predicted: str | None = None,
    corpus: Any = None,
    retrieved: Any = None,
    format: Format | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
) -> Dataset:
    """Load questions with their ground truth, and what was retrieved if that is there.

    The columns may have the names of krag_eval (``question``, ``actual``, ``predicted``), RAGAS
    (``user_input``, ``reference_contexts``, ``retrieved_contexts``), krag's test sets
    (``question``, ``context``, ``source``, ``doc_id``), AutoRAG (``qid``, ``query``,
    ``retrieval_gt``) or LangSmith (``inputs``, ``outputs``, ``reference_outputs``), or those you
    name. ``notes`` of what is returned say how they were understood; what could be meant in two
    ways is refused.

    A cell holds a list of documents: natively, or as text written as JSON or as Python writes
    lists, which is read as data and never run. Other text is refused: one document is a list too.
    Without retrieved documents, ``predicted`` is ``None``, for a retriever to be asked.

    Args:
        source: A path: JSON lines (``.jsonl``, perhaps ``.jsonl.gz``), a JSON array, CSV, TSV or
            Parquet; an open file, with ``format``; a data frame of pandas or one like it, Hugging
            Face data sets included; a list of dicts, or of LangSmith examples; a dict of columns.
        question: Column with the questions, where it has another name.
        actual: Column with the documents that should be retrieved.
        predicted: Column with those that were, best first.
        corpus: For AutoRAG's tables, as in :func:`read_autorag`.
        retrieved: For AutoRAG's tables, as in :func:`read_autorag`.
        format: ``"jsonl"``, ``"json"``, ``"csv"``, ``"tsv"`` or ``"parquet"``; by the name of the
            file if not given.
        delimiter: What separates the cells of a CSV file; a comma if not given.
        encoding: Of a CSV or TSV file; Excel in Korean writes ``"cp949"`` unless told otherwise.
        max_bytes: As in :func:`read_jsonl`; of a Parquet file, how much its columns may hold once
            they are decoded.
        max_objects: As in :func:`read_jsonl`.

    Raises:
        DatasetError: If anything cannot be understood; the message names row and column.
        ImportError: If a Parquet file is given and pyarrow is missing.
        TypeError: If ``source`` is nothing of the kind.
        ValueError: If an option is not among those allowed, or not for this source.

    >>> rows = [{"user_input": "When?", "reference_contexts": "['At nine.']"}]
    >>> dataset = load_dataset(rows)
    >>> dataset.questions, dataset.actual, dataset.predicted
    (['When?'], [['At nine.']], None)
    >>> dataset.notes[0]
    "ground truth read from reference_contexts, by RAGAS's column names"
    """
    limits = Limits(max_bytes, max_objects).checked()
    check_encoding(encoding)
    mapped = _mapped(question, actual, predicted)
    options = _Options(format, delimiter, encoding, limits, {*KNOWN, *filter(None, mapped)})
    with within_memory(_name(source)):
        return _dataset(_table(source, options), mapped, corpus, retrieved, limits)


def _name(source: Any) -> str:
    """Return what to call a source in messages."""
    is_file = isinstance(source, str | os.PathLike) or hasattr(source, "read")
    return name_of(source) if is_file else "source"


def _dataset(
    table: Columns, mapped: Mapped, corpus: Any, retrieved: Any, limits: Limits
) -> Dataset:
    if not table.names:
        raise Place(table.name).error("holds no rows; expected one for each query.")
    if is_autorag(table.names, mapped):
        return autorag_dataset(table, corpus, retrieved, limits, must_be_retrieved=False)
    if corpus is not None or retrieved is not None:
        raise ValueError(
            "corpus= and retrieved= go with AutoRAG's tables, which have the columns 'qid', "
            f"'query' and 'retrieval_gt'; in {table.name} {table.described()}."
        )
    if is_langsmith(table.names) and mapped.actual not in table.names:
        return langsmith_dataset(table, mapped)
    return table_dataset(table, mapped)


class _Options(NamedTuple):
    format: str | None
    delimiter: str | None
    encoding: str
    limits: Limits
    wanted: Collection[str]


def _mapped(*names: str | None) -> Mapped:
    for option, name in zip(Mapped._fields, names, strict=True):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{option} must be the name of a column, got {name!r}.")
    given = [name for name in names if name is not None]
    if len(set(given)) < len(given):
        raise ValueError(
            f"question, actual and predicted must name different columns, got {', '.join(given)}."
        )
    return Mapped(*names)


def _table(source: Any, options: _Options) -> Columns:
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return _file(source, options)
    refused = [name for name in ("format", "delimiter") if getattr(options, name) is not None]
    if refused:
        raise ValueError(f"{refused[0]} is for files, got a {type(source).__name__}.")
    if isinstance(source, Mapping):
        return _columns(source, options.wanted)
    check_collected(source, "source")
    if is_frame(source):
        return Columns.of_frame(source, "frame", options.wanted)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        return _rows(source, options.wanted)
    raise TypeError(
        "source must be a path, an open file, a data frame, a list of dicts or of LangSmith "
        f"examples, or a dict of columns, got a {type(source).__name__}."
    )


# Files


def _file(source: Any, options: _Options) -> Columns:
    name = name_of(source)
    kind = _format(name, options.format)
    if kind not in ("csv", "tsv"):
        _check_is_for_text(options, kind)
    if kind == "parquet":
        return parquet_columns(source, name, options.limits, options.wanted)
    if kind in ("json", "jsonl"):
        return _json(source, name, options)
    delimiter = options.delimiter or ("\t" if kind == "tsv" else ",")
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"delimiter must be one character, such as ';', got {delimiter!r}.")
    return delimited_columns(
        source,
        name,
        delimiter=delimiter,
        encoding=options.encoding,
        limits=options.limits,
        wanted=options.wanted,
    )


def _format(name: str, given: str | None) -> str:
    allowed = tuple(dict.fromkeys(_FORMATS.values()))
    if given is not None:
        if given not in allowed:
            raise ValueError(unknown_name("format", given, allowed))
        return given
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(_WORKBOOKS):
        raise Place(name).error(
            "is a workbook; save the sheet as CSV (UTF-8), or pass pandas.read_excel(…)."
        )
    kind = _FORMATS.get(os.path.splitext(plain)[1])
    if kind is None:
        raise Place(name).error(
            "its name does not say what it is; expected one that ends in "
            f"{', '.join(_FORMATS)}, perhaps with .gz; or say format={allowed[0]!r} or the like."
        )
    return kind


def _check_is_for_text(options: _Options, kind: str) -> None:
    if options.delimiter is not None or options.encoding.lower().replace("_", "-") != "utf-8":
        raise ValueError(
            f"delimiter and encoding are for CSV and TSV files, got a file of format {kind!r}; "
            "leave them out."
        )


def _json(source: Any, name: str, options: _Options) -> Columns:
    """Read JSON lines, or a JSON array of objects, whichever it is."""
    with closing(numbered_lines(source, name, options.limits)) as lines:
        first = next(lines, None)
        if first is None:
            raise Place(name).error("holds no queries; expected JSON lines or a JSON array.")
        every = chain([first], lines)
        if first[1].lstrip().startswith("["):
            return _array([*every], name, options.wanted)
        numbers: list[int] = []
        rows: list[dict[str, Any]] = []
        for number, text in every:
            rows.append(object_of(text, Place(name, number), "a JSON object with a query"))
            numbers.append(number)
    table = Columns.of_rows(rows, name, _names(rows), options.wanted)
    return table._replace(lines=numbers, counted="")


def _array(lines: list[tuple[int, str]], name: str, wanted: Collection[str]) -> Columns:
    try:
        content = parsed("".join(text for _, text in lines), Place(name))
    except json.JSONDecodeError as error:
        line = lines[min(error.lineno, len(lines)) - 1][0]
        raise Place(name, line).error(
            f"not valid JSON: {error.msg} (column {error.colno}); expected an array of objects."
        ) from error
    for number, one in enumerate(content):
        if not isinstance(one, dict):
            raise Place(name).error(
                f"row {number} (from 0) must be an object with a query, got {kind_of(one)}."
            )
    return Columns.of_rows(content, name, _names(content), wanted)


# What is in memory


def _rows(source: Iterable[Any], wanted: Collection[str]) -> Columns:
    rows = []
    for number, one in enumerate(source):
        row = example_as_row(one)
        if row is None:
            row = one
        if not isinstance(row, Mapping):
            raise TypeError(
                f"source: row {number} (from 0) must be a dict or a LangSmith example, got a "
                f"{type(one).__name__}."
            )
        rows.append(row)
    return Columns.of_rows(rows, "rows", _names(rows), wanted)


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [*dict.fromkeys(str(name) for row in rows for name in row)]


def _columns(source: Mapping[str, Any], wanted: Collection[str]) -> Columns:
    tables = [str(name) for name, value in source.items() if is_frame(value)]
    if tables:
        raise TypeError(
            f"source holds several tables, {', '.join(map(repr, tables))}; pass one of them."
        )
    columns = {
        str(name): [*value]
        for name, value in source.items()
        if isinstance(value, list | tuple) or hasattr(value, "tolist")
    }
    lengths = {name: len(value) for name, value in columns.items()}
    if len(columns) < len(source) or len(set(lengths.values())) > 1:
        raise TypeError(
            "source must be a dict of columns of one length, or a list of rows, got a dict of "
            f"{', '.join(f'{name!r}: {type(value).__name__}' for name, value in source.items())}; "
            "put a single row into a list."
        )
    kept = {name: value for name, value in columns.items() if name in wanted}
    return Columns("columns", kept, [*columns])
