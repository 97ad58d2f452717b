"""From one value per query to averages over queries.

This room knows micro and macro averages, the names they go by, and that sums are exact: an average
is the correctly rounded one, so it depends neither on the order of the queries nor on how they were
partitioned. It must not know how the values came about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import unknown_name
from krag_eval.conventions import AveragingMethod, Conventions
from krag_eval.scoring.cutoffs import spelled, unspelled

__all__ = [
    "Columns",
    "Summary",
    "Sums",
    "average",
    "average_of_sums",
    "exact_mean",
    "exact_sum",
    "needed_columns",
    "resolved_average",
]

#: The per-query table at one cutoff: column name -> values, shape (queries,).
Columns: TypeAlias = Mapping[str, NDArray[Any]]

#: Share -> the counts it divides.
_SHARES = {"precision": ("relevant", "precision_base"), "recall": ("covered", "ground_truth")}
# What the averages of a metric are made of, where that is more than its own column.
_NEEDED: dict[str, tuple[str, ...]] = {name: (name, *counts) for name, counts in _SHARES.items()}
_NEEDED["f1"] = ("f1", *_NEEDED["precision"], *_NEEDED["recall"])
# What the name of a metric stands for where an average is asked for: its mean over queries.
_STANDS_FOR = {name: f"macro_{name}" for name in _NEEDED} | {
    "hit": "hit_rate",
    "rank": "mean_rank",
    "reciprocal_rank": "mrr",
    "average_precision": "map",
}
# Sums of so many whole numbers below so much stay within 64 bits.
_SMALL = 2**31
# Floats that are taken apart at a time; what is made of them fits into a processor's cache.
_BLOCK = 1 << 15


def exact_sum(values: NDArray[Any]) -> Fraction:
    """Return the sum of finite floats without any rounding.

    Sums of parts add up to the sum of the whole, to the last digit.

    Raises:
        ValueError: If a value is NaN or infinite.

    >>> exact_sum(np.array([0.1] * 10)) == 10 * Fraction(0.1)
    True
    """
    if len(values) == 0:
        return Fraction(0)
    if values.dtype.kind in "iu" and len(values) < _SMALL and np.abs(values).max() < _SMALL:
        return Fraction(int(values.sum()))
    if not np.isfinite(values).all():
        raise ValueError("values must be finite to be averaged, got NaN or an infinity.")
    floats = np.asarray(values, np.float64)
    blocks = range(0, len(floats), _BLOCK)
    return sum((_sum_of_block(floats[first : first + _BLOCK]) for first in blocks), Fraction(0))


def _sum_of_block(values: NDArray[np.float64]) -> Fraction:
    mantissa, exponent = np.frexp(values)
    lowest = int(exponent.min())
    # Every float is an integer of 53 bits times a power of two. Halves of the integers, summed by
    # power, stay whole numbers that float64 holds exactly (for up to 2**26 values).
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    high, low = whole >> 27, whole & ((1 << 27) - 1)
    place = exponent - lowest
    total = 0
    for shift, (top, bottom) in enumerate(
        zip(np.bincount(place, high).tolist(), np.bincount(place, low).tolist(), strict=True)
    ):
        total += ((int(top) << 27) + int(bottom)) << shift
    scale = lowest - 53
    return Fraction(total << scale) if scale >= 0 else Fraction(total, 1 << -scale)


def exact_mean(values: NDArray[Any]) -> float:
    """Return the correctly rounded mean of finite floats; NaN of none.

    >>> exact_mean(np.array([0.1, 0.2, 0.3]))
    0.2
    """
    return float(exact_sum(values) / len(values)) if len(values) else float("nan")


@dataclass(frozen=True)
class Sums:
    """What averages are made of: sums over queries, exact, so that parts add up to the whole.

    Attributes:
        n_queries: Number of queries.
        totals: Column -> sum over the queries where it is defined.
        n_defined: Column -> number of those.

    >>> first = Sums.of({"ndcg": np.array([0.1, np.nan])}, ["ndcg"])
    >>> first + first == Sums.of({"ndcg": np.array([0.1, np.nan] * 2)}, ["ndcg"])
    True
    """

    n_queries: int
    totals: Mapping[str, Fraction]
    n_defined: Mapping[str, int]

    @classmethod
    def of(cls, columns: Columns, names: Iterable[str]) -> Sums:
        """Sum columns of a per-query table that holds only the queries that count.

        Raises:
            ValueError: If a value is infinite, naming the column.
        """
        defined = {name: _defined(_column(name, columns)) for name in names}
        return cls(
            n_queries=len(next(iter(columns.values()))),
            totals={name: _sum_of(name, values) for name, values in defined.items()},
            n_defined={name: len(values) for name, values in defined.items()},
        )

    def __add__(self, other: Sums) -> Sums:
        if self.totals.keys() != other.totals.keys():
            raise ValueError(
                f"sums of {sorted(self.totals)} cannot be added to sums of {sorted(other.totals)}."
            )
        return Sums(
            self.n_queries + other.n_queries,
            {name: total + other.totals[name] for name, total in self.totals.items()},
            {name: number + other.n_defined[name] for name, number in self.n_defined.items()},
        )

    def mean(self, name: str) -> Fraction | None:
        """Return the mean over the queries where a column is defined; ``None`` if there is none."""
        return self.totals[name] / self.n_defined[name] if self.n_defined[name] else None


def needed_columns(name: str) -> tuple[str, ...]:
    """Return the columns that the averages of a metric are made of.

    >>> needed_columns("recall"), needed_columns("ndcg")
    (('recall', 'covered', 'ground_truth'), ('ndcg',))
    """
    return _NEEDED.get(name, (name,))


def resolved_average(
    argument: str, name: object, known: Iterable[str], keys: Mapping[str, str] | None = None
) -> str:
    """Return the average that a name stands for, the same wherever an average is asked for.

    The name of a metric is its mean over queries: ``recall`` is ``macro_recall``,
    ``reciprocal_rank`` is ``mrr``, and ``hit`` is ``hit_rate``, by the criteria in force. An
    average stands for itself. A cutoff behind it, ``recall@5``, stays.

    Args:
        argument: What to call it in an error message.
        name: What was asked for.
        known: The averages there are, with their cutoffs if the name has one.
        keys: Metric column -> name of its mean, where metrics of one's own are among them.

    Raises:
        ValueError: If there is no such average; of a macro average where only micro averages were
            computed, naming the micro average.

    >>> resolved_average("metric", "recall@5", ["micro_recall@5", "macro_recall@5"])
    'macro_recall@5'
    >>> resolved_average("metric", "hit", ["hit_rate", "mrr"])
    'hit_rate'
    """
    known = tuple(known)
    metric, at, cutoff = name.partition("@") if isinstance(name, str) else ("", "", "")
    mean = {**_STANDS_FOR, **(keys or {})}.get(metric, metric)
    for one in (name, f"{mean}{at}{cutoff}"):
        if one in known:
            return str(one)
    micro = f"micro_{name}"
    if mean == f"macro_{metric}" and micro in known:
        raise ValueError(
            f"{argument} must be an average that was computed: {name!r} is the macro average, and "
            f'averaging_method="micro" computed {micro!r} alone; name that, or evaluate with '
            'averaging_method="both".'
        )
    raise ValueError(unknown_name(argument, name, known))


def average(
    name: str,
    columns: Columns,
    *,
    key: str,
    averaging_method: AveragingMethod = AveragingMethod.BOTH,
    conventions: Conventions | None = None,
) -> dict[str, float]:
    """Return the averages of one metric over the queries of a table.

    Args:
        name: The metric's column.
        columns: The per-query table, holding only the queries that count: the metric itself, the
            counts ``ground_truth``, ``relevant``, ``covered``, and ``precision_base``.
        key: Name of the mean, for metrics that have only one.
        averaging_method: Which of the micro and macro keys to return.
        conventions: How macro F1 is formed.
    """
    return average_of_sums(
        name,
        Sums.of(columns, needed_columns(name)),
        key=key,
        averaging_method=averaging_method,
        conventions=conventions,
    )


def average_of_sums(
    name: str,
    sums: Sums,
    *,
    key: str,
    averaging_method: AveragingMethod = AveragingMethod.BOTH,
    conventions: Conventions | None = None,
) -> dict[str, float]:
    """Return the averages of one metric from sums; see :func:`average`."""
    if name == "rank":
        # Over the queries where something was found, and how many those are.
        rate = sums.n_defined["rank"] / sums.n_queries if sums.n_queries else math.nan
        return {"mean_rank": _rounded(sums.mean("rank")), "found_rate": rate}
    if name not in _NEEDED:
        return {key: _rounded(sums.mean(name))}
    averages: dict[str, float] = {}
    if averaging_method is not AveragingMethod.MACRO:
        averages[f"micro_{name}"] = float(_micro(name, sums))
    if averaging_method is not AveragingMethod.MICRO:
        averages[f"macro_{name}"] = _rounded(_macro(name, sums, conventions or Conventions()))
    return averages


def _micro(name: str, sums: Sums) -> Fraction:
    if name == "f1":
        return _harmonic_mean(_micro("precision", sums), _micro("recall", sums))
    found, base = _SHARES[name]
    return sums.totals[found] / (sums.totals[base] or 1)


def _macro(name: str, sums: Sums, conventions: Conventions) -> Fraction | None:
    if name != "f1" or conventions.macro_f1 != "of_means":
        return sums.mean(name)
    precision, recall = sums.mean("precision"), sums.mean("recall")
    return None if precision is None or recall is None else _harmonic_mean(precision, recall)


def _harmonic_mean(first: Fraction, second: Fraction) -> Fraction:
    # In fractions, so that no average is rounded before the last step.
    return 2 * first * second / (first + second) if first + second else Fraction(0)


def _rounded(mean: Fraction | None) -> float:
    """Return a mean as the nearest float; NaN of none."""
    return math.nan if mean is None else float(mean)


def _column(name: str, columns: Columns) -> NDArray[Any]:
    if name in columns or name not in _SHARES:
        return columns[name]
    # F1 alone was asked for; what it is made of follows from the counts.
    found, base = _SHARES[name]
    return np.asarray(columns[found] / np.maximum(columns[base], 1))


def _sum_of(name: str, values: NDArray[Any]) -> Fraction:
    try:
        return exact_sum(values)
    except ValueError as error:
        raise ValueError(
            f"metrics: {name!r} is infinite for a query; {error} Return NaN where it is undefined."
        ) from None


def _defined(values: NDArray[Any]) -> NDArray[Any]:
    """Drop the NaN of queries for which a metric is undefined."""
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iu":
        return numbers
    undefined = np.isnan(numbers)
    return numbers[~undefined] if undefined.any() else numbers


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
