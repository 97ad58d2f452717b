"""Parquet files, as columns; pyarrow is imported when one is read."""

from __future__ import annotations

import io
import os
from collections.abc import Collection
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from krag_eval.datasets.base import DatasetError, Place
from krag_eval.datasets.columns import Columns, is_frame
from krag_eval.datasets.lines import MAX_BYTES, check_limit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "is_parquet", "parquet_columns", "table_columns"]

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
