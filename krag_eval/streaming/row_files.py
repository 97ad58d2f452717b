"""Files of per-query values that a run in parts writes, and puts together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from krag_eval.core import InvalidInput, must
from krag_eval.core.files import parquet_for
from krag_eval.core.results.rows import RowsInFile, write_csv


def checked_row_file(path: str | os.PathLike[str], argument: str = "per_query") -> Path:
    """Return where rows will be written; through a link, the file it points to.

    Raises:
        MissingPackage: If it is to be a Parquet file and pyarrow is missing.
        InvalidInput: If the ending is not one of ``RowsInFile.FORMATS``, it is a directory or its
            directory is not there.
    """
    target = Path(os.path.realpath(path))
    if target.suffix not in RowsInFile.FORMATS:
        be = f"be the name of a file that ends in one of {', '.join(RowsInFile.FORMATS)}"
        raise must(argument, be, os.fsdecode(path))
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInput(argument, f": {path} is not a regular file", "name another")
    if not target.parent.is_dir():
        raise InvalidInput(argument, f": there is no directory {target.parent}", "create it first")
    if target.suffix == ".parquet":
        parquet_for(": writing Parquet files", argument)
    return target


def write_rows(path: Path, rows: Mapping[str, NDArray[Any]]) -> None:
    """Write rows to a new file; the ending of its name says in which format."""
    if path.suffix == ".csv":
        write_csv(path, rows, shielding_shown=True)
        return
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {
        # Its type is told, as a column of texts may have none in this part.
        name: pa.array(column, pa.string() if column.dtype == object else None)
        for name, column in rows.items()
    }
    parquet.write_table(pa.table(arrays), path)


def join_rows(parts: Sequence[Path], path: Path) -> None:
    """Write the rows of several files, in their order, into one of the same format."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        with parquet.ParquetWriter(path, parquet.read_schema(parts[0])) as writer:
            for part in parts:
                # Not read_table, which would take "run=1" in the path for one more column.
                writer.write_table(parquet.ParquetFile(part).read())
        return
    with open(path, "wb") as joined:
        for number, part in enumerate(parts):
            with open(part, "rb") as file:
                if number:
                    file.readline()  # the names of the columns stand above the first part
                shutil.copyfileobj(file, joined, 2**20)
