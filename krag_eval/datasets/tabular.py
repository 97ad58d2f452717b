"""CSV and TSV files, as columns of text; what stands in a cell is for others to read."""

from __future__ import annotations

import csv
import io
import os
import sys
import threading
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from krag_eval._errors import DatasetError, Place
from krag_eval.datasets.columns import Columns, is_frame
from krag_eval.datasets.dataset import Source
from krag_eval.datasets.lines import MAX_BYTES, check_limit, every_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Table",
    "check_encoding",
    "delimited_columns",
    "is_parquet",
    "parquet_columns",
    "table_columns",
]

_USUAL = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}
# Python's limit on the size of a cell is one for the whole process; it is put back after reading.
_LIMIT = threading.RLock()


def delimited_columns(
    source: Source,
    name: str,
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    max_bytes: int | None = MAX_BYTES,
    wanted: Collection[str] | None = None,
) -> Columns:
    r"""Read a table from a file with a header, its cells separated by commas, tabs or the like.

    Cells may be quoted with ``"``, and then hold delimiters and line ends. Rows are counted as
    a spreadsheet does, the header being row 1.

    Args:
        source: A path or an open file, perhaps compressed with gzip.
        name: What to call it.
        delimiter: What separates cells: one character.
        encoding: Of the text.
        max_bytes: As in :func:`read_jsonl`.
        wanted: Names of columns; all if not given.

    Raises:
        DatasetError: If it cannot be read as such a table; the message names line and row.

    >>> import io
    >>> delimited_columns(io.StringIO("question,actual\nWhen?,['nine']"), "qa.csv").columns
    {'question': ['When?'], 'actual': ["['nine']"]}
    """
    check_encoding(encoding)
    rows = _rows(source, name, delimiter, encoding, max_bytes)
    with closing(rows), _cells_of_any_size():
        _, header = next(rows, (0, []))
        if not any(header):
            raise Place(name).error("is empty; expected a header with the names of the columns.")
        table = Columns(name, {}, header, first=2, counted="the header is row 1")
        _check_header(table, delimiter)
        kept = [at for at, one in enumerate(header) if wanted is None or one in wanted]
        columns: dict[str, list[str]] = {header[at]: [] for at in kept}
        lines: list[int] = []
        for line, cells in rows:
            if len(cells) != len(header):
                raise Place(name, line).error(
                    f"row {len(lines) + 2} (the header is row 1) has {len(cells)} cells, and the "
                    f"header {len(header)}; a cell that holds a delimiter or a line end must be "
                    'quoted with ".'
                )
            lines.append(line)
            for at in kept:
                columns[header[at]].append(cells[at])
    return table._replace(columns=columns, lines=lines)


def check_encoding(encoding: object) -> None:
    """Refuse an encoding that does not exist, or whose line ends are not those of ASCII.

    Raises:
        ValueError: In these cases.
    """
    try:
        usable = isinstance(encoding, str) and '\r\n,"a'.encode(encoding) == b'\r\n,"a'
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise ValueError(
            "encoding must be 'utf-8' or another that contains ASCII, such as 'cp949', got "
            f"{encoding!r}; save UTF-16 and the like as UTF-8 first."
        )


def _rows(
    source: Source, name: str, delimiter: str, encoding: str, max_bytes: int | None
) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the line at which a row begins, and its cells; blank lines are no rows."""
    with closing(every_line(source, name, max_bytes, encoding)) as lines:
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
                f'not a row of a table: {error}; cells are quoted with ", and a quote within one '
                "is doubled."
            ) from error


def _without_nul(lines: Iterator[str], name: str) -> Iterator[str]:
    for number, text in enumerate(lines, 1):
        if "\0" in text:
            raise Place(name, number).error(
                "holds a NUL character; expected text; is it a binary file, or UTF-16?"
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
            f"has one column, {only[:60]!r}, which holds {_USUAL[others[0]]}; if that separates "
            f"its cells, say delimiter={others[0]!r}."
        )


@contextmanager
def _cells_of_any_size() -> Iterator[None]:
    """Let a cell be as long as a line may be; there is no other way to say so than for all."""
    with _LIMIT:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)


#: A Parquet file or a data frame.
Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
_MAGIC = b"PAR1"
# Rows decoded at a time, so that the limit is noticed long before the memory is full.
_BATCH = 4096


def table_columns(source: Any, role: str, max_bytes: int | None = MAX_BYTES) -> Columns:
    """Return the columns of a Parquet file, or of a data frame.

    Raises:
        DatasetError: If the file cannot be read.
        TypeError: If it is neither.
    """
    if isinstance(source, str | os.PathLike):
        return parquet_columns(source, os.fsdecode(source), max_bytes)
    if is_frame(source):
        return Columns.of_frame(source, role)
    raise TypeError(
        f"{role} must be the path of a Parquet file or a data frame, got a {type(source).__name__}."
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
        return False  # whoever reads it says what is wrong
    return bool(found == _MAGIC)


def parquet_columns(
    source: str | os.PathLike[str] | IO[bytes],
    name: str,
    max_bytes: int | None = MAX_BYTES,
    wanted: Collection[str] | None = None,
) -> Columns:
    """Read a Parquet file, or those of its columns that are wanted.

    Args:
        source: A path or an open file.
        name: What to call it.
        max_bytes: How much its columns may hold once they are decoded; ``None`` for no limit.
        wanted: Names of columns; all if not given.

    Raises:
        DatasetError: If it cannot be read, or holds more.
        ImportError: If pyarrow is missing.
    """
    check_limit(max_bytes)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            f"{name}: reading Parquet files needs pyarrow; pip install 'krag-eval[parquet]'."
        ) from error
    try:
        # A file is opened here: pyarrow would also take a folder, or an address in the network.
        with open(source, "rb") if isinstance(source, str | os.PathLike) else source as file:
            content = parquet.ParquetFile(file)
            table = Columns(name, {}, content.schema_arrow.names)
            table.check_names()
            kept = [one for one in table.names if wanted is None or one in wanted]
            return table._replace(columns=_decoded(content, kept, name, max_bytes))
    except FileNotFoundError as error:
        raise Place(name).error("no such file; check the path.") from error
    except IsADirectoryError as error:
        raise Place(name).error("is a directory; expected a file; name one file in it.") from error
    except DatasetError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError) as error:
        raise Place(name).error(
            f"cannot be read as Parquet ({' '.join(str(error).split())[:200]})."
        ) from error


def _decoded(
    content: Any, kept: list[str], name: str, max_bytes: int | None
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {one: [] for one in kept}
    total = 0
    for batch in content.iter_batches(batch_size=_BATCH, columns=kept):
        total += batch.nbytes
        if max_bytes is not None and total > max_bytes:
            raise Place(name).error(
                f"its columns hold more than {max_bytes:,} bytes; if that is what it should hold, "
                "max_bytes=… allows more, and max_bytes=None any amount."
            )
        for one in kept:
            columns[one] += batch.column(one).to_pylist()
    return columns
