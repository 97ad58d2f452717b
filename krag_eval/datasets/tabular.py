"""Files as tables: JSON lines and arrays, CSV and TSV, and Parquet, in bounded memory."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from krag_eval._io import parquet_for
from krag_eval._reading import (
    LIMITS,
    Limits,
    Source,
    cells_of_any_size,
    every_line,
    kind_of,
    not_json,
    numbered_lines,
    object_of,
    parsed,
    too_many_objects,
    values_in_cells,
    within_memory,
)
from krag_eval.datasets.table import (
    MOST_TAGS,
    TOO_LONG,
    TOO_MANY,
    Columns,
    TagChoice,
    is_frame,
    is_wanted,
    located,
    tag_in,
    tags_in,
)
from krag_eval.documents import LONGEST_TAG, Tag
from krag_eval.errors import (
    Advice,
    DatasetError,
    InvalidInput,
    InvalidType,
    Place,
    clipped,
)

if TYPE_CHECKING:
    import pandas as pd

# What another encoding must leave as it is.
_ESCAPED = b'\r\n,"a{[\\ud800+2AA-~'
_ASCII = _ESCAPED.decode("ascii")
_USUAL = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}


def json_columns(
    source: Source,
    name: str,
    limits: Limits = LIMITS,
    wanted: Collection[str] = (),
    tags: TagChoice = False,
    encoding: str = "utf-8",
) -> Columns:
    """Read JSON lines, or a JSON array of objects, whichever it is.

    Raises:
        DatasetError: If it is neither; the message names the line.

    >>> import io
    >>> json_columns(io.StringIO('{"actual": ["a"]}'), "qa.jsonl", wanted={"actual"}).columns
    {'actual': [['a']]}
    """
    with closing(numbered_lines(source, name, limits, encoding=encoding)) as lines:
        first = next(lines, None)
        if first is None:
            raise Place(name).error("holds no queries; expected JSON lines or a JSON array")
        every: Iterable[tuple[int, str]] = chain([first], lines)
        if first[1].lstrip().startswith("["):
            return Columns.of_rows(_array([*every], name), name, wanted, tags)
        if first[1].strip() == "{":
            every = [*every]
            whole = _object(every)
            if whole is not None:
                return Columns.of_rows([whole], name, wanted, tags)
        return columns_of_lines(every, name, wanted, tags)


def columns_of_lines(
    lines: Iterable[tuple[int, str]], name: str, wanted: Collection[str], tags: TagChoice
) -> Columns:
    """Make a table of numbered lines, each a JSON object."""
    numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    for number, text in lines:
        rows.append(object_of(text, Place(name, number), "a JSON object with a query"))
        numbers.append(number)
    return Columns.of_rows(rows, name, wanted, tags)._replace(lines=numbers, counted="")


# Files of other tools that are one object, by one of its fields.
_WHOLE = frozenset({"resourceSpans", "relevant_docs"})


def _object(lines: Sequence[tuple[int, str]]) -> dict[str, Any] | None:
    """Return the one object that lines hold, if it is one of a kind that is read whole."""
    try:
        content = parsed("".join(text for _, text in lines))
    except ValueError:
        return None  # the reader of lines says what is wrong
    return content if isinstance(content, dict) and not _WHOLE.isdisjoint(content) else None


def _array(lines: list[tuple[int, str]], name: str) -> list[dict[str, Any]]:
    try:
        with located(Place(name)):
            content: list[dict[str, Any]] = parsed("".join(text for _, text in lines))
    except json.JSONDecodeError as error:
        line = lines[min(error.lineno, len(lines)) - 1][0]
        raise not_json(error, Place(name, line), "an array of objects") from error
    for number, one in enumerate(content):
        if not isinstance(one, dict):
            problem = f"must be an object with a query, got {kind_of(one)}"
            raise Place(name, row=number).error(problem)
    return content


def delimited_columns(
    source: Source,
    name: str,
    limits: Limits = LIMITS,
    wanted: Collection[str] | None = None,
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    tags: TagChoice = False,
) -> Columns:
    r"""Read a table from a file with a header, its cells separated by commas, tabs or the like.

    Cells may be quoted with ``"``, and then hold delimiters and line ends. Rows are counted as
    a spreadsheet does, the header being row 1.

    Args:
        source: A path or an open file, perhaps compressed with gzip.
        name: What to call it.
        limits: How much may come out of it.
        wanted: Names of columns; all if not given.
        delimiter: What separates cells: one character.
        encoding: Of the text.
        tags: Which columns to keep as tags beside those that are wanted.

    Raises:
        DatasetError: If it cannot be read as such a table; the message names line and row.

    >>> import io
    >>> delimited_columns(io.StringIO("question,actual\nWhen?,['nine']"), "qa.csv").columns
    {'question': ['When?'], 'actual': ["['nine']"]}
    """
    check_encoding(encoding)
    rows = _rows(source, name, delimiter, encoding, limits)
    with closing(rows), cells_of_any_size():
        _, header = next(rows, (0, []))
        if not any(header):
            raise Place(name).error("is empty; expected a header with the names of the columns")
        table = Columns(name, {}, header, first=2, counted="the header is row 1")
        _check_header(table, delimiter)
        kept = [at for at, one in enumerate(header) if wanted is None or one in wanted]
        columns: dict[str, list[str]] = {header[at]: [] for at in kept}
        lines: list[int] = []
        others = _CellTags(header, columns, tags if wanted is not None else False)
        for line, cells in rows:
            if len(cells) != len(header):
                raise Place(name, line).error(
                    f"row {len(lines) + 2} (the header is row 1) has {len(cells)} cells, and the "
                    f"header {len(header)}",
                    'quote a cell that holds a delimiter or a line end with "',
                )
            lines.append(line)
            for at in kept:
                columns[header[at]].append(cells[at])
            others.add(cells)
    table = table._replace(others=others.columns, left_out=others.left_out)
    return table._replace(columns=columns, lines=lines, in_memory=encoding != "utf-8")


class _CellTags:
    """Keeps the columns of a table of texts that can be tags, and no others."""

    def __init__(self, header: Sequence[str], known: Collection[str], choice: TagChoice) -> None:
        places = {
            name: at
            for at, name in enumerate(header)
            if name not in known and is_wanted(name, choice)
        }
        kept = [*places][:MOST_TAGS]
        self.columns: dict[str, list[Tag]] = {name: [] for name in kept}
        self.left_out = dict.fromkeys([*places][MOST_TAGS:], TOO_MANY)
        self._adders = {name: (places[name], self.columns[name].append) for name in kept}

    def add(self, cells: Sequence[str]) -> None:
        """Add a row; a column ends where it holds what cannot be a tag."""
        refused = []
        for name, (at, append) in self._adders.items():
            tag, problem = tag_in(cells[at])
            if problem:
                refused.append((name, problem))
            append(tag)
        for name, problem in refused:
            self.left_out[name] = problem
            del self._adders[name], self.columns[name]


def check_encoding(encoding: object) -> None:
    """Refuse an encoding that does not exist, or whose line ends are not those of ASCII.

    Raises:
        InvalidInput: In these cases.
        InvalidType: If it is not text.
    """
    if not isinstance(encoding, str):
        raise InvalidType("encoding", f"must be the name of one, got {clipped(encoding)}")
    try:
        # Python calls some encodings that are ways to escape, of half a character too.
        usable = _ASCII.encode(encoding) == _ESCAPED and _ESCAPED.decode(encoding) == _ASCII
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise InvalidInput(
            "encoding",
            "must be 'utf-8' or another that contains ASCII, such as 'cp949', got "
            f"{clipped(encoding)}",
            "save UTF-16 and the like as UTF-8 first",
        )


def _rows(
    source: Source, name: str, delimiter: str, encoding: str, limits: Limits
) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the line at which a row begins, and its cells; blank lines are skipped."""
    read = every_line(source, name, limits, encoding, values_in=values_in_cells)
    with closing(read) as lines:
        reader = csv.reader(
            _without_nul((text for _, text in lines), name), delimiter=delimiter, strict=True
        )
        begins = 1
        try:
            for cells in reader:
                if cells:
                    yield begins, cells
                begins = reader.line_num + 1
        except csv.Error as error:
            raise Place(name, begins).error(
                f"not a row of a table: {error}",
                'quote cells with ", and double a quote within one',
            ) from error


def _without_nul(lines: Iterator[str], name: str) -> Iterator[str]:
    for number, text in enumerate(lines, 1):
        if "\0" in text:
            raise Place(name, number).error(
                "holds a NUL character; expected text", "is it a binary file, or UTF-16?"
            )
        yield text


def _check_header(table: Columns, delimiter: str) -> None:
    table.check_names()
    if len(table.names) > 1:
        return
    (only,) = table.names
    others = [other for other in _USUAL if other != delimiter and other in only]
    if others:
        raise Place(table.name, 1).error(
            f"has one column, {only[:60]!r}, which holds {_USUAL[others[0]]}",
            Advice("if that separates its cells, pass {}", delimiter=others[0]),
        )


#: A Parquet file or a data frame.
Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
_MAGIC = b"PAR1"
# The most rows decoded at a time; few where a text can be stored as a piece of the one before:
# such texts cannot be read as they are stored.
_BATCH, _SMALL_BATCH = 4096, 16
_PIECEWISE = 7  # DELTA_BYTE_ARRAY, among the encodings of parquet.thrift
# How many rows say whether a column is worth reading on.
_LOOKED_AT = 100
# What a value weighs in Python beside its text, and how much is made of a file at a time.
_VALUE_WEIGHT = 64
_MOST_WEIGHT = 64 * 2**20
# No real text is compressed that much; a page of zeros is.
_MOST_COMPRESSED = 500


def table_columns(source: Any, role: str, limits: Limits = LIMITS) -> Columns:
    """Return the columns of a Parquet file, or of a data frame.

    Raises:
        DatasetError: If the file cannot be read.
        InvalidType: If it is neither.
    """
    if isinstance(source, str | os.PathLike):
        return parquet_columns(source, os.fsdecode(source), limits)
    if is_frame(source):
        return Columns.of_frame(source, role)
    raise InvalidType(
        role, f"must be the path of a Parquet file or a data frame, got a {type(source).__name__}"
    )


def is_parquet(source: Any) -> bool:
    """Tell whether a file is Parquet, by its first bytes; a stream that cannot go back is not."""
    try:
        if isinstance(source, str | os.PathLike):
            if not os.path.isfile(source):
                return False
            with open(source, "rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC
        if isinstance(source, io.TextIOBase) or not source.seekable():
            return False
        begin = source.tell()
        found = source.read(len(_MAGIC))
        source.seek(begin)
    except (AttributeError, OSError, ValueError):
        return False  # the reader says what is wrong
    return bool(found == _MAGIC)


def parquet_columns(
    source: str | os.PathLike[str] | IO[bytes],
    name: str,
    limits: Limits = LIMITS,
    wanted: Collection[str] | None = None,
    tags: TagChoice = False,
) -> Columns:
    """Read a Parquet file, or those of its columns that are wanted.

    Args:
        source: A path or an open file.
        name: What to call it.
        limits: How much its columns may hold once they are decoded.
        wanted: Names of columns; all if not given.
        tags: Which columns to keep as tags beside those that are wanted.

    Raises:
        DatasetError: If it cannot be read, or holds more.
        MissingPackage: If pyarrow is missing.
    """
    limits.checked()
    parquet_for(f"{name}: reading Parquet files")
    with (
        _explained(name),
        within_memory(name),
        # A file is opened here: pyarrow would also take a folder, or an address in the network.
        open(source, "rb") if isinstance(source, str | os.PathLike) else source as file,
    ):
        content = opened_parquet(file, name)
        table = Columns(name, {}, content.file.schema_arrow.names)
        table.check_names()
        kept = [one for one in table.names if wanted is None or one in wanted]
        others = () if wanted is None else [one for one in table.names if one not in wanted]
        columns, so_far = _decoded(content, kept, name, limits)
        return table._replace(columns=columns).with_others(
            _tag_columns(content, [one for one in others if is_wanted(one, tags)], limits, so_far)
        )


def _tag_columns(
    content: OpenParquet, names: Sequence[str], limits: Limits, so_far: _Weight
) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield columns that may be tags, or why they cannot be, within what is left of the limits."""
    for name in names:
        problem = _no_tags(content, name)
        if problem:
            yield name, problem
            continue
        try:
            columns, after = _decoded(content, [name], name, limits, so_far)
        except DatasetError:
            yield name, "cannot be read within the limits"
            continue
        found = tags_in(columns[name])
        yield name, found
        so_far = so_far if isinstance(found, str) else after


def columns_of_tags(
    content: OpenParquet, name: str, columns: Sequence[str], others: Sequence[str], limits: Limits
) -> tuple[list[str], dict[str, str]]:
    """Return which other columns to read as tags beside some, and why not the rest.

    What can be seen of it is looked at here: the types, the sizes and the first rows.
    """
    problems = {one: _no_tags(content, one) or _no_tags_at_first(content, one, limits)
                for one in others}  # fmt: skip
    found = [one for one in others if not problems[one]]
    reader = _Reader(content, name, [*columns, *found], limits)
    try:
        for group in range(content.metadata.num_row_groups):
            reader.check_group(group, 0)
    except DatasetError:  # perhaps the other columns alone are within the limits
        problems |= dict.fromkeys(found, "cannot be read within the limits")
        found = []
    return found, {one: problem for one, problem in problems.items() if problem}


def _no_tags_at_first(content: OpenParquet, name: str, limits: Limits) -> str:
    try:
        first = islice(parquet_rows(content, name, [name], limits), _LOOKED_AT)
        found = tags_in(row[name] for row, _ in first)
    except DatasetError:
        return "cannot be read within the limits"
    return found if isinstance(found, str) else ""


def _no_tags(content: OpenParquet, name: str) -> str:
    """Say why a column cannot hold tags, by what the file says of it."""
    from pyarrow import types

    kind = content.file.schema_arrow.field(name).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    simple = (types.is_string, types.is_large_string, types.is_integer, types.is_floating,
              types.is_boolean, types.is_null)  # fmt: skip
    if not any(is_kind(kind) for is_kind in simple):
        return f"holds values of type {str(kind)[:40]}"
    stored = [one for group in content.chunks for one in group if one.path == name]
    most = sum(one.num_values for one in stored) * 4 * (LONGEST_TAG + 1) + 2**16
    too_long = sum(one.total_uncompressed_size for one in stored) > most
    return TOO_LONG if too_long else ""


class OpenParquet(NamedTuple):
    """An open Parquet file, and what its footer says of the columns of each row group."""

    file: Any
    chunks: list[list[_Chunk]]

    @property
    def metadata(self) -> Any:
        """What pyarrow says of the file as a whole."""
        return self.file.metadata


def opened_parquet(source: Any, name: str) -> OpenParquet:
    """Open a Parquet file, texts as they are stored.

    Raises:
        DatasetError: If it cannot be read.
        MissingPackage: If pyarrow is missing.
    """
    parquet = parquet_for(f"{name}: reading Parquet files")
    with _explained(name):
        # Unbuffered, a column of a row group is read whole, and a row group may be the whole file.
        options = {"pre_buffer": False, "buffer_size": 2**20}
        metadata = parquet.ParquetFile(source, **options).metadata
        chunks = _chunks_of(source)
        if any(len(group) != metadata.num_columns for group in chunks):
            raise ValueError("the footer is damaged")
        texts = [one.path for one in _leaves(metadata) if one.physical_type == "BYTE_ARRAY"]
        stored_once = [path for path in texts if path not in _in_pieces(chunks)]
        file = parquet.ParquetFile(
            source, metadata=metadata, read_dictionary=stored_once, **options
        )
        return OpenParquet(file, chunks)


def parquet_rows(
    content: Any, name: str, columns: Sequence[str], limits: Limits, skipped: int = 0
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the rows of an open file one by one, from one on, and what each weighs in memory.

    Row groups before it are not read. Only a little is decoded at a time, however long the file.

    Raises:
        DatasetError: If it cannot be read, or one row holds more than a quarter of the limit.
    """
    groups = list(range(content.metadata.num_row_groups))
    number = 0
    while groups and number + content.metadata.row_group(groups[0]).num_rows <= skipped:
        number += content.metadata.row_group(groups.pop(0)).num_rows
    reader = _Reader(content, name, columns, limits)
    with _explained(name), within_memory(name):
        for group in groups:
            reader.check_group(group, number)
            for batch in reader.batches(group):
                reader.check_rows(batch, number)
                for piece in _pieces(batch):
                    weight = _weight_of(piece, once=True).total // max(piece.num_rows, 1)
                    for content_of_row in _rows_in(piece):
                        if number >= skipped:
                            yield content_of_row, weight
                        number += 1


class _Weight(NamedTuple):
    """What some values hold: bytes of texts and the like, and how many values."""

    n_bytes: int
    n_values: int

    @property
    def total(self) -> int:
        return self.n_bytes + _VALUE_WEIGHT * self.n_values

    def plus(self, other: _Weight) -> _Weight:
        return _Weight(self.n_bytes + other.n_bytes, self.n_values + other.n_values)


def _decoded(
    content: Any,
    kept: Sequence[str],
    name: str,
    limits: Limits,
    so_far: _Weight = _Weight(0, 0),  # noqa: B008 - immutable
) -> tuple[dict[str, list[Any]], _Weight]:
    columns: dict[str, list[Any]] = {one: [] for one in kept}
    reader = _Reader(content, name, kept, limits)
    number = 0
    for group in range(content.metadata.num_row_groups):
        reader.check_group(group, number, so_far)
        for batch in reader.batches(group):
            so_far = reader.added(so_far, batch, number)
            for one in kept:
                columns[one] += _values(batch.column(one))
            number += batch.num_rows
    return columns, so_far


class _Reader:
    """Reads some columns of an open file, and refuses what is too much before it is made."""

    def __init__(self, content: Any, name: str, columns: Sequence[str], limits: Limits) -> None:
        self._content, self._name, self._columns, self._limits = content, name, columns, limits
        leaves = enumerate(_leaves(content.metadata))
        self._leaves = [
            (at, leaf.length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0)
            for at, leaf in leaves
            if any(leaf.path == one or leaf.path.startswith(f"{one}.") for one in columns)
        ]
        in_pieces = _in_pieces(content.chunks)
        self._piecewise = any(content.metadata.schema.column(at).path in in_pieces
                              for at, _ in self._leaves)  # fmt: skip
        self._most_bytes = limits.max_bytes
        self._most_values = limits.objects(content.metadata.serialized_size + self._stored())

    def _stored(self) -> int:
        """Return how large the columns are in the file."""
        return sum(
            group[at].total_compressed_size
            for group in self._content.chunks
            for at, _ in self._leaves
        )

    def batches(self, group: int) -> Iterator[Any]:
        """Yield a row group in batches."""
        described = self._content.chunks[group]
        size = sum(described[at].total_uncompressed_size for at, _ in self._leaves)
        n_rows = _MOST_WEIGHT * self._content.metadata.row_group(group).num_rows // max(size, 1)
        return self._content.file.iter_batches(  # type: ignore[no-any-return]
            batch_size=min(max(n_rows, 1), _SMALL_BATCH if self._piecewise else _BATCH),
            row_groups=[group],
            columns=list(self._columns),
        )

    def check_group(self, group: int, first: int, so_far: _Weight = _Weight(0, 0)) -> None:  # noqa: B008 - immutable
        """Refuse a row group by what the file says of it, before any of it is read."""
        described = self._content.chunks[group]
        chunks = [(described[at], length) for at, length in self._leaves]
        n_values = sum(chunk.num_values for chunk, _ in chunks)
        if so_far.n_values + n_values > self._most_values:
            raise too_many_objects(self._most_values, self._place(first))
        if self._most_bytes is None:
            return
        fixed = sum(chunk.num_values * length for chunk, length in chunks)
        if so_far.n_bytes + fixed > self._most_bytes or any(
            chunk.total_uncompressed_size
            > max(self._most_bytes // 4, _MOST_COMPRESSED * chunk.total_compressed_size)
            for chunk, _ in chunks
        ):
            raise self._too_many_bytes(first)

    def added(self, so_far: _Weight, batch: Any, first: int) -> _Weight:
        """Add what a batch will hold; refuse the row at which it is too much."""
        after = so_far.plus(_weight_of(batch))
        if self._is_within(after):
            return after
        while batch.num_rows > 1:
            half = batch.num_rows // 2
            middle = so_far.plus(_weight_of(batch.slice(0, half)))
            if self._is_within(middle):
                so_far, first, batch = middle, first + half, batch.slice(half)
            else:
                batch = batch.slice(0, half)
        raise self._refusal(so_far.plus(_weight_of(batch)), first)

    def check_rows(self, batch: Any, first: int) -> None:
        """Refuse a row that is too much by itself: more than a quarter of the bytes."""
        weight = _weight_of(batch)
        weight = weight._replace(n_bytes=4 * weight.n_bytes)
        if self._is_within(weight):
            return
        if batch.num_rows < 2:
            raise self._refusal(weight, first)
        half = batch.num_rows // 2
        self.check_rows(batch.slice(0, half), first)
        self.check_rows(batch.slice(half), first + half)

    def _is_within(self, weight: _Weight) -> bool:
        fits = self._most_bytes is None or weight.n_bytes <= self._most_bytes
        return fits and weight.n_values <= self._most_values

    def _refusal(self, weight: _Weight, row: int) -> DatasetError:
        if weight.n_values > self._most_values:
            return too_many_objects(self._most_values, self._place(row))
        return self._too_many_bytes(row)

    def _too_many_bytes(self, row: int) -> DatasetError:
        return self._place(row).error(
            f"its columns hold more than {self._most_bytes:,} bytes up to here (one row may hold a "
            "quarter of that)",
            Advice(
                "if that is what they should hold, {} allows more, and {} any amount",
                ("max_bytes", ...),
                ("max_bytes", None),
            ),
        )

    def _place(self, row: int) -> Place:
        return Place(self._name, row=row)


# What is stored, and what becomes of it


def _leaves(metadata: Any) -> list[Any]:
    return [metadata.schema.column(at) for at in range(metadata.num_columns)]


def _in_pieces(chunks: Sequence[Sequence[_Chunk]]) -> set[str]:
    """Return the columns in which a text may be stored as a piece of the one before it."""
    return {one.path for group in chunks for one in group if _PIECEWISE in one.encodings}


def _pieces(batch: Any) -> Iterator[Any]:
    """Yield a batch in pieces whose values take little memory, texts stored once taken once."""
    if batch.num_rows < 2 or _weight_of(batch, once=True).total <= _MOST_WEIGHT:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _weight_of(batch: Any, *, once: bool = False) -> _Weight:
    """Return what the values of a batch will hold, each text or each text stored once."""
    return _sum([_weight(column, once) for column in batch.columns])


def _sum(weights: Sequence[_Weight]) -> _Weight:
    return _Weight(sum(one.n_bytes for one in weights), sum(one.n_values for one in weights))


def _weight(array: Any, once: bool) -> _Weight:
    from pyarrow import compute, types

    kind, n_values = array.type, len(array)
    if types.is_dictionary(kind):
        lengths = compute.binary_length(array.dictionary).cast("int64")
        places = array.indices.unique() if once else array.indices
        return _Weight(compute.sum(lengths.take(places)).as_py() or 0, n_values)
    if types.is_string(kind) or types.is_binary(kind) or _is_large(kind):
        return _Weight(compute.sum(compute.binary_length(array)).as_py() or 0, n_values)
    if types.is_nested(kind):
        return _sum([_weight(one, once) for one in _parts(array)]).plus(_Weight(0, n_values))
    return _Weight(array.nbytes, n_values)


def _is_large(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_large_string(kind) or types.is_large_binary(kind))


def _parts(array: Any) -> list[Any]:
    """Return the arrays that an array of lists, of structs or of maps is made of."""
    from pyarrow import types

    if types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [one.slice(first, last - first) for one in (array.keys, array.items)]
    parts = array.flatten()
    return list(parts) if types.is_struct(array.type) else [parts]


def _rows_in(batch: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch, columns by name."""
    columns = [_values(column) for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, row, strict=True))


def _values(array: Any) -> list[Any]:
    """Return the values of an array as ``to_pylist`` does; equal texts stored once stay one."""
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        return _texts_stored_once(array)
    if types.is_map(kind):
        return array.to_pylist()  # type: ignore[no-any-return]
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(array)
    if types.is_struct(kind):
        return _structs(array)
    return array.to_pylist()  # type: ignore[no-any-return]


def _texts_stored_once(array: Any) -> list[Any]:
    from pyarrow import compute

    used = array.indices.unique().drop_null()
    texts = dict(zip(_quickly(used), _quickly(array.dictionary.take(used)), strict=True))
    texts[-1] = None
    return [texts[place] for place in _quickly(compute.fill_null(array.indices, -1))]


def _quickly(array: Any) -> list[Any]:
    """Return texts, or whole numbers none of which is missing, as ``to_pylist`` does."""
    return array.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _lists(array: Any) -> list[Any]:
    from pyarrow import compute

    values = _values(array.flatten())
    lengths = compute.fill_null(compute.list_value_length(array), -1)
    found: list[Any] = []
    at = 0
    for length in _quickly(lengths):
        found.append(None if length < 0 else values[at : at + length])
        at += max(length, 0)
    return found


def _structs(array: Any) -> list[Any]:
    names = [field.name for field in array.type]
    if not names or len(set(names)) < len(names):
        return array.to_pylist()  # type: ignore[no-any-return]
    columns = [_values(one) for one in array.flatten()]
    rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if array.null_count:
        there = array.is_valid().to_pylist()
        rows = [row if is_there else None for row, is_there in zip(rows, there, strict=True)]
    return rows


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what pyarrow raises into the refusal of a file; memory is for the caller."""
    try:
        yield
    except (DatasetError, ImportError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise Place(name).error("no such file", "check the path") from error
    except IsADirectoryError as error:
        raise Place(name).error("is a directory; expected a file", "name one file in it") from error
    except Exception as error:
        if not _is_of_the_file(error):
            raise
        raise Place(name).error(
            f"cannot be read as Parquet ({' '.join(str(error).split())[:200]})"
        ) from error


def _is_of_the_file(error: Exception) -> bool:
    import pyarrow

    kinds = (pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError)
    return isinstance(error, kinds)


# The footer of a Parquet file


class _Chunk(NamedTuple):
    """What the footer says of a column of a row group."""

    path: str
    encodings: frozenset[int]
    num_values: int
    total_uncompressed_size: int
    total_compressed_size: int


def _chunks_of(source: Any) -> list[list[_Chunk]]:
    """Read what the footer of a Parquet file says of the columns of each row group.

    pyarrow tells it too, and ends the process where a damaged footer contradicts itself.

    Raises:
        ValueError: If the footer is damaged.
    """
    is_path = isinstance(source, str | os.PathLike)
    with open(source, "rb") if is_path else nullcontext(source) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 8, 0))
        length, mark = struct.unpack("<I4s", file.read(8).rjust(8, b"\0"))
        if mark != b"PAR1" or length > end - 8:
            raise ValueError("the footer is damaged")
        file.seek(end - 8 - length)
        content = file.read(length)
    try:
        footer = _Thrift(content).struct()
        return [[_chunk(one[3]) for one in group[1]] for group in footer.get(4, [])]
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("the footer is damaged") from error


def _chunk(described: dict[int, Any]) -> _Chunk:
    path = ".".join(part.decode("utf-8") for part in described[3])
    return _Chunk(path, frozenset(described[2]), *(int(described[field]) for field in (5, 6, 7)))


class _Thrift:
    """Reads Thrift's compact protocol, in which Parquet writes its footer, as numbered fields.

    See the Thrift compact protocol specification; a value is a number, bytes, a list or a dict.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step, kind = kind >> 4, kind & 15
            number = number + step if step else self._zigzag()
            # A boolean is its own kind.
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            if size > len(self._content):
                raise ValueError("the footer is damaged")
            return [self._value(head & 15) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError("the footer is damaged")

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._content):
            raise ValueError("the footer is damaged")
        return self._content[self._at - size : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
