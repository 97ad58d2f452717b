"""Tables by column: Parquet files and data frames, and the row to blame.

This room does without pandas itself; pyarrow is imported when a file is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from krag_eval.datasets.base import DatasetError, Place

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Columns", "Row", "Table", "named", "plain"]

#: A Parquet file or a data frame.
Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"


class Columns(NamedTuple):
    """A table: its name, and its columns as lists."""

    name: str
    columns: Mapping[str, list[Any]]

    @classmethod
    def read(cls, source: Any, role: str, needed: Sequence[str]) -> Columns:
        """Read a Parquet file, or take a data frame's columns."""
        if isinstance(source, str | os.PathLike):
            table = cls(os.fsdecode(source), _parquet(os.fsdecode(source)))
        elif hasattr(source, "columns") and hasattr(source, "to_dict"):
            table = cls(role, source.to_dict("list"))
        else:
            raise TypeError(
                f"{role} must be the path of a Parquet file or a data frame, got a "
                f"{type(source).__name__}."
            )
        missing = [name for name in needed if name not in table.columns]
        if missing:
            raise Place(table.name).error(
                f"no column {missing[0]!r}; the columns are "
                f"{', '.join(map(repr, table.columns)) or 'none'}."
            )
        if not table.columns[needed[0]]:
            raise Place(table.name).error("holds no rows; expected at least one.")
        return table

    def cells(self, column: str) -> Iterator[tuple[Row, Any]]:
        """Yield the place and the value of each row, arrays as lists."""
        for number, value in enumerate(self.columns[column]):
            yield Row(self.name, number, column), plain(value)

    def texts(self, column: str) -> list[str]:
        """Return a column that holds nothing but text."""
        values = []
        for row, value in self.cells(column):
            if not isinstance(value, str):
                raise row.error(f"must be text, got {named(value)}.")
            values.append(value)
        return values

    def check_distinct(self, column: str, values: Sequence[str]) -> None:
        """Refuse a key that is given twice."""
        seen: set[str] = set()
        for number, value in enumerate(values):
            if value in seen:
                raise Row(self.name, number, column).error(f"{value!r} is given a second time.")
            seen.add(value)


class Row(NamedTuple):
    """A cell of a table, to blame; rows are counted from 0, as pandas does."""

    name: str
    number: int
    column: str

    def error(self, problem: str) -> DatasetError:
        """Return the refusal, on one line."""
        return Place(self.name).error(f"row {self.number} (from 0): {self.column} {problem}")


def _parquet(name: str) -> dict[str, list[Any]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            f"{name}: reading Parquet files needs pyarrow; pip install 'krag-eval[parquet]'."
        ) from error
    try:
        columns: dict[str, list[Any]] = parquet.read_table(name).to_pydict()
    except FileNotFoundError as error:
        raise Place(name).error("no such file; check the path.") from error
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise Place(name).error(
            f"cannot be read as Parquet ({' '.join(str(error).split())[:200]})."
        ) from error
    return columns


def plain(value: Any) -> Any:
    """Return an array, as pandas holds lists read from Parquet, as a list.

    >>> plain(["a"])
    ['a']
    """
    return value.tolist() if hasattr(value, "tolist") else value


def named(value: Any) -> str:
    """Name a value of a table, for a message.

    >>> named(None), named(3)
    ('nothing', "'3' (int)")
    """
    missing = value is None or (isinstance(value, float) and value != value)
    return "nothing" if missing else f"{str(value)[:40]!r} ({type(value).__name__})"
