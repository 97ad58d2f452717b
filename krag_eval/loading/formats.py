"""Formats of files: how one becomes rows. A format is one entry, which every reader looks up.

A package adds one by an entry point of the group ``krag_eval.formats`` that names a
:class:`Format`; ``load_dataset``, ``evaluate_file`` and the shell then read such files, too.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import entry_points
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from krag_eval.core import N_, Advice, DatasetError, InvalidInput, Place, must, one_of
from krag_eval.core.documents import LONGEST_TAG
from krag_eval.core.errors import kind_of
from krag_eval.core.files import parquet_for
from krag_eval.loading.reading import (
    MAX_BYTES,
    Source,
    cannot_read,
    check_encoding,
    checked_bytes,
    located,
    name_of,
    next_cells,
    not_json,
    numbered_lines,
    object_of,
    parsed,
)

#: A row, and its place.
Row: TypeAlias = tuple[Place, Mapping[str, Any]]
#: All columns that can be tags, none, or those of these names.
TagChoice: TypeAlias = "bool | tuple[str, ...]"


#: Why a column cannot be a tag; LONGEST_TAG is spelled out for the catalogs.
TOO_LONG = N_("holds texts of more than 200 characters")


class Everything(frozenset[str]):
    """The names of all columns."""

    def __contains__(self, name: object) -> bool:
        return True


class Names(frozenset[str]):
    """Names of columns; one that ends in a dot stands for all that begin so."""

    @cached_property
    def _begins(self) -> tuple[str, ...]:
        return tuple(one for one in self if one.endswith("."))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(self._begins)


@dataclass(frozen=True)
class File:
    """A file that is to be read, and how.

    Attributes:
        source: A path, or an open file.
        name: What to call it in messages.
        max_bytes: How much may come out of what does not show its size; ``None`` for any amount.
        encoding: Of text, where the user may choose; UTF-8 if not given.
        delimiter: What separates cells, if the user says.
        wanted: Names of the columns that are needed. Others may be left out, or hold
            ``Unread``.
        tags: Which others to read if they hold texts, numbers or booleans.
        skipped: How many rows to pass over.
        held: Whether all rows will be held in memory.
    """

    source: Any
    name: str
    max_bytes: int | None = MAX_BYTES
    encoding: str | None = None
    delimiter: str | None = None
    wanted: Collection[str] = Everything()
    tags: TagChoice = False
    skipped: int = 0
    held: bool = True

    @classmethod
    def of(cls, source: Source, **settings: Any) -> File:
        """Name a file, and check how it is to be read."""
        made = cls(source, name_of(source), **settings)
        checked_bytes(made.max_bytes)
        if made.encoding is not None:
            check_encoding(made.encoding)
        return made

    def lines(self, *, blank: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the numbers and texts of its lines, plain or compressed; blank ones if asked for.

        Raises:
            DatasetError: If it cannot be read.
        """
        return numbered_lines(
            self.source, self.name, self.max_bytes, self.encoding, held=self.held, blank=blank
        )


class Cells(dict[str, Any]):
    """A row of a table, whose cells hold lists; in other rows, a text is a list of that one."""


def with_fields(row: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with some fields more, or with others; the cells of a table stay such."""
    made = {**row, **fields}
    return Cells(made) if isinstance(row, Cells) else made


class Unread(NamedTuple):
    """What stands in a cell that was not read: why it cannot be a tag."""

    why: str


@dataclass(frozen=True)
class Format:
    """One way to write rows into a file.

    Attributes:
        name: Its name, as in ``load_dataset(path, format=name)``.
        endings: How the names of such files end.
        rows: A function of a :class:`File` that yields the place and the fields of each row but
            those to pass over.
        is_text: Whether it is text, in an encoding, perhaps compressed.
        delimiter: What separates cells where the user may say otherwise.
        mark: The first bytes of such files, where these tell.
        count: A function of a path that returns the number of rows, where the file says; progress
            is counted in bytes otherwise.

    >>> from krag_eval.core.errors import Place
    >>> def rows(file):
    ...     for number, text in file.lines():
    ...         question, answer = text.strip().split("=")
    ...         yield Place(file.name, number), {"question": question, "actual": [answer]}
    >>> Format("pairs", (".pairs",), rows).name
    'pairs'
    """

    name: str
    endings: tuple[str, ...]
    rows: Callable[[File], Iterator[Row]]
    is_text: bool = True
    delimiter: str = ""
    mark: bytes = b""
    count: Callable[[str | os.PathLike[str]], int] | None = None


def _json_rows(file: File) -> Iterator[Row]:
    """Yield objects: one per line, those of an array, or one over many lines."""
    with closing(file.lines()) as lines:  # type: ignore[type-var]
        first = next(lines, None)
        every: Iterator[tuple[int, str]] = chain(filter(None, [first]), lines)
        start = "" if first is None else first[1].strip()
        if start.startswith("["):
            yield from islice(_array([*every], file.name), file.skipped, None)
            return
        if start == "{":
            held = [*every]
            if (whole := _object(held)) is not None:
                yield Place(file.name, 1), whole
                return
            every = iter(held)
        for number, text in islice(every, file.skipped, None):
            place = Place(file.name, number)
            yield place, object_of(text, place, "a JSON object with a query")


def _array(lines: Sequence[tuple[int, str]], name: str) -> Iterator[Row]:
    content: list[Any] = json_in(lines, name, "an array of objects")
    for number, one in enumerate(content):
        place = Place(name, row=number)
        if not isinstance(one, dict):
            raise place.error(f"must be an object with a query, got {kind_of(one)}")
        yield place, one


def json_in(lines: Sequence[tuple[int, str]], name: str, expected: str) -> Any:
    """Return the JSON value that all lines of a file hold.

    Raises:
        DatasetError: If they do not hold one, by the line where it breaks off.
    """
    try:
        with located(Place(name)):
            return parsed("".join(text for _, text in lines))
    except json.JSONDecodeError as error:
        line = lines[min(error.lineno, len(lines)) - 1][0]
        raise not_json(error, Place(name, line), expected) from error


def _object(lines: Sequence[tuple[int, str]]) -> dict[str, Any] | None:
    """Return the one object that many lines hold; ``None`` if they hold anything else."""
    try:
        content = parsed("".join(text for _, text in lines))
    except ValueError:
        return None  # the reader of lines says what is wrong
    return content if isinstance(content, dict) and len(lines) > 1 else None


def _delimited_rows(file: File) -> Iterator[Row]:
    """Yield the rows of a table with a header, which is row 1, as a spreadsheet counts."""
    delimiter = file.delimiter or ","
    with closing(file.lines(blank=True)) as lines:  # type: ignore[type-var]
        texts = _table_lines(lines, file.name)
        reader = csv.reader(texts, delimiter=delimiter, strict=True)
        header: list[str] = []
        begins, number = 1, 0
        try:
            while (cells := next_cells(reader)) is not None:
                place = Place(file.name, begins, number + 1, "the header is row 1")
                begins = reader.line_num + 1
                if not cells:
                    continue
                number += 1
                if not header:
                    header = _checked_header(cells, file.name, delimiter)
                    continue
                if len(cells) != len(header):
                    raise place.error(
                        f"has {len(cells)} cells, and the header {len(header)}",
                        'quote a cell that holds a delimiter or a line end with "',
                    )
                if number > file.skipped + 1:
                    yield place, Cells(zip(header, cells, strict=True))
        except csv.Error as error:
            raise Place(file.name, begins).error(
                f"not a row of a table: {error}",
                'quote cells with ", and double a quote within one',
            ) from error


# How JSON begins, and no name of a column does: an object, or an array of objects or texts.
_JSON_BEGINS = re.compile(r"""\s*(?:\{\s*(?:"|$)|\[\s*(?:[{"]|$))""")


def _table_lines(lines: Iterable[tuple[int, str]], name: str) -> Iterator[str]:
    """Yield the lines of a table.

    Raises:
        DatasetError: If the first is one of JSON.
    """
    is_first = True
    for number, text in lines:
        if is_first and _JSON_BEGINS.match(text):
            fix = "give it a name that ends in .jsonl"
            raise Place(name, number).error("is JSON, and its name says that it is a table", fix)
        is_first = is_first and not text.strip()
        yield text


_USUAL = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}


def _checked_header(header: list[str], name: str, delimiter: str) -> list[str]:
    if not any(header):
        raise Place(name).error("is empty; expected a header with the names of the columns")
    check_names(header, name)
    others = [one for one in _USUAL if one != delimiter and one in header[0]]
    if len(header) == 1 and others:
        raise Place(name, 1).error(
            f"has one column, {header[0][:60]!r}, which holds {_USUAL[others[0]]}",
            Advice("if that separates its cells, pass {}", delimiter=others[0]),
        )
    return header


def check_names(names: Iterable[str], name: str) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for one in names:
        if one in seen and one:
            problem = f"two columns have the name {one[:40]!r}"
            raise Place(name).error(problem, "rename one of them")
        seen.add(one)


# How many rows of a Parquet file, and bytes of them, are decoded at a time.
_ROWS, _BYTES = 1024, 2**26


def _parquet_rows(file: File) -> Iterator[Row]:
    """Yield the rows of a Parquet file, of wanted columns and of those that may be tags."""
    with _parquet(file.source, file.name) as content:
        names = content.schema_arrow.names
        check_names(names, file.name)
        n_rows, sizes = content.metadata.num_rows, _sizes(content.metadata)
        unread = {name: Unread(why) for name in names if name not in file.wanted
                  and (why := _no_tag(content, name, sizes[name], file.tags))}  # fmt: skip
        kept = [name for name in names if name not in unread]
        number, total, texts = 0, 0, dict[str, str]()
        size = sum(sizes[name] for name in kept)
        if file.held:
            _check_size(size, file, number)
        n_together = min(max(_BYTES * n_rows // max(size, 1), 1), _ROWS)
        for group in range(content.metadata.num_row_groups):
            in_group = content.metadata.row_group(group).num_rows
            if number + in_group <= file.skipped:
                number += in_group
                continue
            for batch in content.iter_batches(n_together, row_groups=[group], columns=kept):
                total = batch.nbytes + (total if file.held else 0)
                _check_size(total, file, number)
                texts = texts if file.held else {}  # equal texts are one, as far as they are held
                columns = [_values(column, texts) for column in batch.columns]
                for row in zip(*columns, strict=True) if kept else [()] * batch.num_rows:
                    if number >= file.skipped:
                        fields = Cells(zip(batch.schema.names, row, strict=True))
                        yield Place(file.name, row=number), with_fields(fields, unread)
                    number += 1


@contextmanager
def _parquet(source: Any, name: str) -> Iterator[Any]:
    """Open a Parquet file, and turn what pyarrow raises into the refusal of it."""
    parquet = parquet_for(f"{name}: reading Parquet files")
    import pyarrow

    is_path = isinstance(source, str | os.PathLike)
    try:
        # A file is opened here: pyarrow would also take a folder, or an address in the network.
        with open(source, "rb") if is_path else nullcontext(source) as file:
            # Unbuffered, a column of a row group is read whole; a row group may be the whole file.
            options = {"pre_buffer": False, "buffer_size": 2**20}
            metadata = parquet.ParquetFile(file, **options).metadata
            once = {one.path_in_schema for one in _columns(metadata)}
            once -= {one.path_in_schema for one in _columns(metadata) if not _is_stored_once(one)}
            yield parquet.ParquetFile(file, metadata=metadata, read_dictionary=[*once], **options)
    except DatasetError:
        raise
    except (FileNotFoundError, IsADirectoryError) as error:
        raise cannot_read(error, Place(name)) from error
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError) as error:
        problem = f"cannot be read as Parquet ({' '.join(str(error).split())[:200]})"
        raise Place(name).error(problem) from error


def _no_tag(content: Any, name: str, size: int, tags: TagChoice) -> str:
    """Say why a column is not read as tags, by what the file says of it."""
    from pyarrow import types

    kind = content.schema_arrow.field(name).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    simple = (types.is_string, types.is_large_string, types.is_integer, types.is_floating,
              types.is_boolean, types.is_null)  # fmt: skip
    if not any(is_kind(kind) for is_kind in simple):
        return f"holds values of type {str(kind)[:40]}"
    if size > 4 * LONGEST_TAG * content.metadata.num_rows + 2**16:
        return TOO_LONG
    return "" if is_wanted(name, tags) else "is not asked for"


def _columns(metadata: Any) -> Iterator[Any]:
    """Yield what the file says of each column of each row group."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        yield from map(group.column, range(group.num_columns))


def _is_stored_once(column: Any) -> bool:
    """Tell whether a text that is repeated can be read as one."""
    return column.physical_type == "BYTE_ARRAY" and "DELTA_BYTE_ARRAY" not in column.encodings


def _sizes(metadata: Any) -> Counter[str]:
    """Return how large columns are, unpacked; those with a dot in their names count as others."""
    sizes = Counter[str]()
    for one in _columns(metadata):
        for name in {one.path_in_schema, one.path_in_schema.partition(".")[0]}:
            sizes[name] += one.total_uncompressed_size
    return sizes


def _check_size(size: int, file: File, row: int) -> None:
    if file.max_bytes is not None and size > file.max_bytes:
        raise Place(file.name, row=row).error(
            f"its columns hold more than {file.max_bytes:,} bytes",
            Advice(
                "if that is what they should hold, {} allows more, and {} any amount",
                ("max_bytes", ...),
                ("max_bytes", None),
            ),
        )


def _values(array: Any, texts: dict[str, str]) -> list[Any]:
    """Return the values of an array as ``to_pylist`` does; equal texts become one."""
    from pyarrow import compute, types

    kind = array.type
    if types.is_dictionary(kind):
        used = array.indices.unique().drop_null()
        known = dict(
            zip(used.to_pylist(), _values(array.dictionary.take(used), texts), strict=True)
        )
        places = compute.fill_null(array.indices, -1).to_numpy(zero_copy_only=False)
        return [known.get(place) for place in places.tolist()]
    if types.is_string(kind) or types.is_large_string(kind):
        found = array.to_numpy(zero_copy_only=False).tolist()
        return [one if one is None else texts.setdefault(one, one) for one in found]
    if types.is_list(kind) or types.is_large_list(kind):
        values, lists, at = _values(array.flatten(), texts), [], 0
        for length in compute.list_value_length(array).to_pylist():
            lists.append(None if length is None else values[at : at + length])
            at += length or 0
        return lists
    names = [field.name for field in kind] if types.is_struct(kind) else []
    if not names or len({*names}) < len(names):
        return array.to_pylist()  # type: ignore[no-any-return]
    rows = zip(*(_values(one, texts) for one in array.flatten()), strict=True)
    return [dict(zip(names, row, strict=True)) if there else None
            for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]  # fmt: skip


def _n_rows(path: str | os.PathLike[str]) -> int:
    with _parquet(path, os.fsdecode(path)) as content:
        return int(content.metadata.num_rows)


#: The formats of this package, by name.
FORMATS: Mapping[str, Format] = {
    one.name: one
    for one in (
        Format("jsonl", (".jsonl", ".ndjson"), _json_rows),
        Format("json", (".json",), _json_rows),
        Format("csv", (".csv",), _delimited_rows, delimiter=","),
        Format("tsv", (".tsv",), _delimited_rows, delimiter="\t"),
        Format("parquet", (".parquet", ".pq"), _parquet_rows, False, mark=b"PAR1", count=_n_rows),
    )
}
_GROUP = "krag_eval.formats"
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")


def _others() -> Iterator[Format]:
    """Yield the formats that other packages bring; they are only looked for where needed."""
    for entry in entry_points(group=_GROUP):
        found = entry.load()
        if not isinstance(found, Format):
            problem = f": the entry point {entry.name!r} of {_GROUP} is no Format"
            raise InvalidInput("format", problem)
        yield replace(found, name=entry.name)


def formats() -> dict[str, Format]:
    """Return all formats by name, those of other packages included."""
    return {**{one.name: one for one in _others()}, **FORMATS}


def format_named(name: str) -> Format:
    """Return the format of a name.

    Raises:
        InvalidInput: If there is none.
    """
    return FORMATS.get(name) or (known := formats())[one_of("format", name, tuple(known))]


def format_of(source: Any, *, looked_into: bool = True) -> Format | None:
    """Return the format of a file, by its first bytes or by its name; ``None`` if neither tells.

    >>> format_of("qa.csv.gz").name, format_of("qa.trec")
    ('csv', None)
    """
    if looked_into:
        begin = _begin(source)
        for one in FORMATS.values():
            if one.mark and begin.startswith(one.mark):
                return one
    name = name_of(source).lower()
    for one in chain(FORMATS.values(), _others()):
        if (name.removesuffix(".gz") if one.is_text else name).endswith(one.endings):
            return one
    return None


def _begin(source: Any) -> bytes:
    """Return the first bytes of a file; a stream that cannot go back tells none."""
    try:
        if isinstance(source, str | os.PathLike):
            if not os.path.isfile(source):
                return b""
            with open(source, "rb") as file:
                return file.read(8)
        if isinstance(source, io.TextIOBase) or not source.seekable():
            return b""
        at = source.tell()
        begin = source.read(8)
        source.seek(at)
    except (AttributeError, OSError, ValueError):
        return b""  # the reader says what is wrong
    return bytes(begin)


def rows_in(file: File, format: str | None = None) -> Iterator[Row]:
    """Yield the rows of a file of a format, or of that which its name tells.

    Raises:
        DatasetError: If it cannot be read, or its name does not tell what it is.
        InvalidInput: If an option is not for this format.
    """
    kind = format_of(file.source, looked_into=False) if format is None else format_named(format)
    if kind is None:
        if Path(file.name.lower().removesuffix(".gz")).suffix in _WORKBOOKS:
            fix = "save the sheet as CSV (UTF-8), or load it by pandas"
            raise Place(file.name).error("is a workbook", fix)
        endings = [ending for one in formats().values() for ending in one.endings]
        raise Place(file.name).error(
            f"its name does not say what it is; expected one that ends in {', '.join(endings)}, "
            "perhaps with .gz",
            Advice("name another, or pass {} or the like", format="jsonl"),
        )
    for option, is_for in {"delimiter": bool(kind.delimiter), "encoding": kind.is_text}.items():
        given = getattr(file, option)
        if not is_for and given is not None and given.lower().replace("_", "-") != "utf-8":
            problem = f"is for files of text, got a file of format {kind.name!r}"
            raise InvalidInput(option, problem, "leave it out")
    delimiter = kind.delimiter if file.delimiter is None else file.delimiter
    if kind.delimiter and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise must("delimiter", "be one character, such as ';'", delimiter)
    return kind.rows(replace(file, delimiter=delimiter))


def is_wanted(name: str, choice: TagChoice) -> bool:
    """Tell whether a column is to be kept as tags, if it can be."""
    chosen = choice if isinstance(choice, bool) else name in choice
    return isinstance(name, str) and name != "" and chosen
