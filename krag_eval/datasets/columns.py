"""Tables by column: data frames and what is like them, rows as dicts, and the row to blame.

This room does without pandas itself. It must not know files, nor what a column means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from krag_eval.datasets.base import DatasetError, Place

__all__ = ["Columns", "Row", "check_collected", "is_frame", "named", "plain"]

_MOST_NAMES = 20
_LONGEST_NAME = 40


class Columns(NamedTuple):
    """A table: its columns as lists, and how its rows are counted.

    Attributes:
        name: What to call it.
        columns: The columns that were read.
        names: All columns there are, for messages.
        lines: Per row, its line in the file, where it has one.
        first: Number of the first row.
        counted: How rows are counted, for messages; empty where a line says it all.
    """

    name: str
    columns: Mapping[str, list[Any]]
    names: Sequence[str]
    lines: Sequence[int] = ()
    first: int = 0
    counted: str = "from 0"

    @classmethod
    def of_frame(cls, frame: Any, name: str, wanted: Collection[str] | None = None) -> Columns:
        """Take the columns of a data frame, of pandas or like it: any that are asked for.

        >>> import pandas as pd
        >>> Columns.of_frame(pd.DataFrame({"a": [1, 2]}), "frame").columns
        {'a': [1, 2]}
        """
        check_collected(frame, name)
        names = [*(frame.column_names if hasattr(frame, "column_names") else frame.columns)]
        table = cls(name, {}, [*map(str, names)])
        table.check_names()
        kept = [one for one in names if wanted is None or one in wanted]
        return table._replace(columns={str(one): _listed(frame[one]) for one in kept})

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Mapping[str, Any]],
        name: str,
        names: Sequence[str],
        wanted: Collection[str],
    ) -> Columns:
        """Turn rows into columns; what a row lacks is ``None``.

        >>> Columns.of_rows([{"a": 1, "b": 2}, {}], "rows", ["a", "b"], {"a"}).columns
        {'a': [1, None]}
        """
        kept = [one for one in names if one in wanted]
        return cls(name, {one: [row.get(one) for row in rows] for one in kept}, names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def row(self, number: int, column: str) -> Row:
        """Return the place of a cell."""
        line = self.lines[number] if self.lines else 0
        return Row(self.name, self.first + number, column, line, self.counted)

    def cells(self, column: str) -> Iterator[tuple[Row, Any]]:
        """Yield the place and the value of each row, arrays as lists."""
        for number, value in enumerate(self.columns[column]):
            yield self.row(number, column), plain(value)

    def texts(self, column: str) -> list[str]:
        """Return a column that holds nothing but text."""
        values = []
        for row, value in self.cells(column):
            if not isinstance(value, str):
                raise row.error(f"must be text, got {named(value)}.")
            values.append(value)
        return values

    def check_names(self) -> None:
        """Refuse two columns of one name."""
        seen: set[str] = set()
        for name in self.names:
            if name in seen and name:
                raise Place(self.name).error(
                    f"two columns have the name {name[:_LONGEST_NAME]!r}; rename one of them."
                )
            seen.add(name)

    def check_has(self, needed: Sequence[str]) -> None:
        """Refuse a table without rows, or without one of these columns."""
        missing = [name for name in needed if name not in self.columns]
        if missing:
            raise Place(self.name).error(f"no column {missing[0]!r}; {self.described()}.")
        if not self.columns[needed[0]]:
            raise Place(self.name).error("holds no rows; expected at least one.")

    def check_distinct(self, column: str, values: Sequence[str]) -> None:
        """Refuse a key that is given twice."""
        seen: set[str] = set()
        for number, value in enumerate(values):
            if value in seen:
                raise self.row(number, column).error(f"{value!r} is given a second time.")
            seen.add(value)

    def described(self) -> str:
        """Name the columns there are."""
        shown = ", ".join(repr(name[:_LONGEST_NAME]) for name in self.names[:_MOST_NAMES])
        more = len(self.names) - _MOST_NAMES
        return f"the columns are {shown or 'none'}" + (f" and {more} more" if more > 0 else "")


class Row(NamedTuple):
    """A cell of a table, to blame."""

    name: str
    number: int
    column: str
    line: int = 0
    counted: str = "from 0"

    def error(self, problem: str) -> DatasetError:
        """Return the refusal, on one line."""
        row = f"row {self.number} ({self.counted}): " if self.counted else ""
        return Place(self.name, self.line).error(f"{row}{f'{self.column} {problem}'.strip()}")


def is_frame(source: Any) -> bool:
    """Tell whether this is a data frame, or a table like one, by what it can do."""
    return hasattr(source, "__getitem__") and (
        hasattr(source, "columns") or hasattr(source, "column_names")
    )


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
    missing = missing or type(value).__name__ in ("NAType", "NaTType")
    return "nothing" if missing else f"{_shown(value)!r} ({type(value).__name__})"


def _shown(value: Any) -> str:
    try:
        return str(value)[:_LONGEST_NAME]
    except (ValueError, RecursionError):  # a huge number, a value nested without end
        return "…"


def _listed(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def check_collected(frame: Any, name: str) -> None:
    """Refuse what stands for a table that is not here: of a cluster, or not computed yet.

    Several tables in one are refused as well.

    Raises:
        TypeError: In these cases.
    """
    ways = {"toPandas": "toPandas()", "compute": "compute()", "collect": "collect()"}
    for way, call in ways.items():
        if hasattr(frame, way):
            raise TypeError(
                f"{name} is a {type(frame).__name__}, which has yet to be collected; pass what "
                f"its {call} returns."
            )
    if isinstance(getattr(frame, "column_names", None), Mapping):
        raise TypeError(
            f"{name} holds several tables, {', '.join(map(repr, frame.column_names))}; pass one of "
            "them."
        )
