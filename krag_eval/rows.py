"""Rows: one value per query and metric, and where they are: in memory, in a file, or nowhere.

This room knows how per-query columns of several cutoffs stand in one table, ``ndcg@10``, and what
to say where there is none. It must not know averages, or what a result does with its rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.scoring.cutoffs import spelled

__all__ = [
    "COUNT_COLUMNS",
    "DIGEST",
    "NoRows",
    "Rows",
    "RowsInMemory",
    "TableOf",
    "checked_digests",
    "column_types",
    "flat_columns",
]

#: The per-query table at one cutoff: column -> values, each of shape (queries,).
TableOf: TypeAlias = Mapping[str, NDArray[Any]]

#: What is counted per query; the first does not depend on the cutoff.
COUNT_COLUMNS = ("ground_truth", "retrieved", "relevant", "covered")

#: The column that tells a query's ground truth from any other.
DIGEST = "ground_truth_digest"
_DIGEST = re.compile("[0-9a-f]{16}(-[0-9a-f]{16})?")


class Rows(Protocol):
    """The per-query part of a result. Reading them may fail, if they are not in memory."""

    @property
    def cutoffs(self) -> tuple[int | None, ...]:
        """The cutoffs, in the order they were asked for."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""

    @property
    def labels(self) -> list[str | int]:
        """One label per query."""

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a query counts in the averages; shape (queries,)."""

    @property
    def digests(self) -> Sequence[str] | None:
        """One text per query that tells its ground truth from another one; ``None`` if not kept."""

    @property
    def tables(self) -> Mapping[int | None, TableOf]:
        """Cutoff -> per-query columns."""

    def named_from(self, folder: str) -> str | None:
        """Return what to call the file they are in from a folder; ``None`` if they are in none."""


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """Rows at hand.

    Attributes:
        labels: One label per query.
        tables: Cutoff -> per-query columns, each of shape (queries,).
        counted: Whether a query counts in the averages; shape (queries,).
        digests: One text per query that tells its ground truth from another one; ``None`` if not
            kept.
    """

    labels: list[str | int]
    tables: Mapping[int | None, TableOf]
    counted: NDArray[np.bool_]
    digests: Sequence[str] | None = None

    @property
    def cutoffs(self) -> tuple[int | None, ...]:
        """The cutoffs, in the order they were asked for."""
        return tuple(self.tables)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.labels)

    def named_from(self, folder: str) -> str | None:
        """Return ``None``: they are in no file."""
        return None


@dataclass(frozen=True)
class NoRows:
    """Rows that are not at hand: a run in parts kept sums alone.

    Attributes:
        cutoffs: The cutoffs, in the order they were asked for.
        n_queries: Number of queries.
        where: Where the rows are, and how to get at them, for the refusal.
    """

    cutoffs: tuple[int | None, ...]
    n_queries: int
    where: str = "evaluate with per_query=… to write them to a file"

    @property
    def labels(self) -> list[str | int]:
        """Refuse: there are none."""
        self._refuse()

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Refuse: there are none."""
        self._refuse()

    @property
    def digests(self) -> Sequence[str] | None:
        """Refuse: there are none."""
        self._refuse()

    @property
    def tables(self) -> Mapping[int | None, TableOf]:
        """Refuse: there are none."""
        self._refuse()

    def named_from(self, folder: str) -> str | None:
        """Return ``None``: they are in no file."""
        return None

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "this result holds averages but no per-query rows, because it was evaluated in parts; "
            f"{self.where}."
        )


def checked_digests(digests: object, n_queries: int) -> list[str]:
    """Return digests that were read from a file.

    Raises:
        ValueError: If they are not one digest per query.
    """
    given = digests if isinstance(digests, list) else []
    if len(given) != n_queries or not all(
        isinstance(one, str) and _DIGEST.fullmatch(one) for one in given
    ):
        raise ValueError("its digests of the ground truth are not one per query")
    return given


def column_types(cutoffs: Sequence[int | None], metrics: Sequence[str]) -> dict[str, type]:
    """Return the columns of all cutoffs side by side, in order, and the type of each.

    >>> list(column_types([5], ["recall"]))
    ['counted', 'ground_truth', 'ground_truth_digest', 'retrieved@5', 'relevant@5', 'covered@5',
     'recall@5']
    """
    types: dict[str, type] = {"counted": np.bool_, COUNT_COLUMNS[0]: np.int64, DIGEST: object}
    for k in cutoffs:
        types |= {f"{name}@{spelled(k)}": np.int64 for name in COUNT_COLUMNS[1:]}
        types |= {f"{name}@{spelled(k)}": np.float64 for name in metrics}
    return types


def flat_columns(
    tables: Mapping[int | None, TableOf],
    counted: NDArray[np.bool_],
    metrics: Sequence[str],
    digests: Sequence[str],
) -> dict[str, NDArray[Any]]:
    """Return the columns of all cutoffs side by side; metrics are NaN where a query is left out.

    Args:
        tables: Cutoff -> per-query columns.
        counted: Whether a query counts in the averages; shape (queries,).
        metrics: The metrics' columns.
        digests: One text per query that tells its ground truth from another one.
    """
    flat: dict[str, Any] = {"counted": counted, DIGEST: digests}
    for k, table in tables.items():
        flat[COUNT_COLUMNS[0]] = table[COUNT_COLUMNS[0]]
        flat |= {f"{name}@{spelled(k)}": table[name] for name in COUNT_COLUMNS[1:]}
        flat |= {f"{name}@{spelled(k)}": np.where(counted, table[name], np.nan) for name in metrics}
    types = column_types(tuple(tables), metrics)
    return {name: np.asarray(flat[name], kind) for name, kind in types.items()}
