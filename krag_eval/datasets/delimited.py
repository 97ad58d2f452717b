"""CSV and TSV files, as columns of text; what stands in a cell is for others to read."""

from __future__ import annotations

import csv
import sys
import threading
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager

from krag_eval.datasets.base import Place, Source
from krag_eval.datasets.columns import Columns
from krag_eval.datasets.lines import MAX_BYTES, every_line

__all__ = ["check_encoding", "delimited_columns"]

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
