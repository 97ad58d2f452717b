"""Summaries: what all averages of a run follow from, exact, so that parts merge into the whole.

This room knows exact sums per cutoff, how they add up, and how they are written. It must not know
per-query tables beyond their columns, documents, or how a run was cut into parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval.averages import Columns, Sums, average_of_sums, needed_columns
from krag_eval.conventions import AveragingMethod, Conventions
from krag_eval.cutoffs import spelled, unspelled

__all__ = ["Summary"]

_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[1-9][0-9]{0,999})?")


@dataclass(frozen=True)
class Summary:
    """Sums over the queries of a run, or of a part of it, at every cutoff.

    Adding the summaries of parts gives the summary of the whole, to the last digit, in any order
    and however they are grouped. A summary is small and can be pickled; its size does not grow
    with the number of queries.

    Attributes:
        keys: Metric column -> name of its mean.
        averaging_method: Which of the micro and macro keys are averaged.
        conventions: The conventions the metrics were computed under.
        n_queries: Number of queries, counted in the averages or not.
        sums: Cutoff -> sums over the counted queries.
        n_rejected: Cutoff -> the queries that are not counted and for which nothing was retrieved.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> first = OfflineRetrievalEvaluator([["a"]], [["a", "x"]]).evaluate(2).summary
    >>> second = OfflineRetrievalEvaluator([["b", "c"]], [["y", "b"]]).evaluate(2).summary
    >>> (first + second).averages(2)["macro_recall"]
    0.75
    """

    keys: Mapping[str, str]
    averaging_method: AveragingMethod
    conventions: Conventions
    n_queries: int
    sums: Mapping[int | None, Sums]
    n_rejected: Mapping[int | None, int]

    @classmethod
    def of(
        cls,
        tables: Mapping[int | None, Columns],
        counted: NDArray[np.bool_],
        *,
        keys: Mapping[str, str],
        averaging_method: AveragingMethod,
        conventions: Conventions,
    ) -> Summary:
        """Sum per-query tables.

        Args:
            tables: Cutoff -> per-query columns, each of shape (queries,).
            counted: Whether a query counts in the averages; shape (queries,).
            keys: Metric column -> name of its mean.
            averaging_method: Which of the micro and macro keys are averaged.
            conventions: The conventions the metrics were computed under.

        Raises:
            ValueError: If a value is infinite.
        """
        names = list(dict.fromkeys(column for name in keys for column in needed_columns(name)))
        left_out = ~counted
        everything = bool(counted.all())
        return cls(
            keys=dict(keys),
            averaging_method=averaging_method,
            conventions=conventions,
            n_queries=len(counted),
            sums={
                k: Sums.of(table if everything else _kept(table, counted), names)
                for k, table in tables.items()
            },
            n_rejected={
                k: int((table["retrieved"][left_out] == 0).sum()) for k, table in tables.items()
            },
        )

    @property
    def k(self) -> tuple[int | None, ...]:
        """The cutoffs."""
        return tuple(self.sums)

    @property
    def n_counted(self) -> int:
        """Number of queries that count in the averages."""
        return next(iter(self.sums.values())).n_queries

    def __add__(self, other: Summary) -> Summary:
        """Return the summary of both parts.

        Raises:
            ValueError: If they were made with other metrics, cutoffs, averages or conventions.
        """
        if not isinstance(other, Summary):
            return NotImplemented
        for name in ("keys", "averaging_method", "conventions", "k"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise ValueError(
                    f"summaries of different runs cannot be added: {name} is {ours!s} in one and "
                    f"{theirs!s} in the other; evaluate all parts with the same settings."
                )
        return Summary(
            self.keys,
            self.averaging_method,
            self.conventions,
            self.n_queries + other.n_queries,
            {k: sums + other.sums[k] for k, sums in self.sums.items()},
            {k: number + other.n_rejected[k] for k, number in self.n_rejected.items()},
        )

    def averages(self, k: int | None) -> dict[str, float]:
        """Return the averages at one of the cutoffs; NaN where no query has a value."""
        averages: dict[str, float] = {}
        for name, key in self.keys.items():
            averages |= average_of_sums(
                name,
                self.sums[k],
                key=key,
                averaging_method=self.averaging_method,
                conventions=self.conventions,
            )
        return averages

    def rejection_rate(self, k: int | None) -> float | None:
        """Return how often nothing came back for uncounted queries; ``None`` without any."""
        n_left_out = self.n_queries - self.n_counted
        return self.n_rejected[k] / n_left_out if n_left_out else None

    def to_json(self) -> dict[str, Any]:
        """Return the summary as what JSON can hold, exactly: sums are fractions as text."""
        return {
            "keys": dict(self.keys),
            "averaging_method": self.averaging_method.value,
            "conventions": str(self.conventions),
            "queries": self.n_queries,
            "counted": self.n_counted,
            "at": {
                spelled(k): {
                    "rejected": self.n_rejected[k],
                    "sums": {
                        name: [str(total), sums.n_defined[name]]
                        for name, total in sums.totals.items()
                    },
                }
                for k, sums in self.sums.items()
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Summary:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        n_queries, n_counted = _count(content["queries"]), _count(content["counted"])
        at = {unspelled(k): sums for k, sums in content["at"].items()}
        if n_counted > n_queries or not at:
            raise ValueError("the counts of its queries do not fit together")
        return cls(
            keys=dict(content["keys"]),
            averaging_method=AveragingMethod(content["averaging_method"]),
            conventions=Conventions.parse(content["conventions"]),
            n_queries=n_queries,
            sums={k: _sums(one["sums"], n_counted) for k, one in at.items()},
            n_rejected={k: _count(one["rejected"], n_queries - n_counted) for k, one in at.items()},
        )


def _kept(table: Columns, counted: NDArray[np.bool_]) -> Columns:
    return {name: column[counted] for name, column in table.items()}


def _sums(content: Mapping[str, Any], n_queries: int) -> Sums:
    return Sums(
        n_queries,
        {name: _fraction(total) for name, (total, _) in content.items()},
        {name: _count(number, n_queries) for name, (_, number) in content.items()},
    )


def _fraction(text: object) -> Fraction:
    # Stricter than Fraction itself, which would spell out 1e999999999.
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError(f"a sum must be a fraction such as '3/4', got {text!r:.60}")
    return Fraction(text)


def _count(value: object, most: int | None = None) -> int:
    if type(value) is not int or value < 0 or (most is not None and value > most):
        raise ValueError(f"a count must be a whole number that fits the others, got {value!r:.60}")
    return value
