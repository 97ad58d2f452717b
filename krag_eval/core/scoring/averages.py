"""Averages: exact sums over queries, and the one rule that makes numbers of them.

Sums are exact, so an average is the correctly rounded one: it depends neither on the order of the
queries nor on how they were divided into parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from operator import add
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.errors import InvalidInput
from krag_eval.core.language import Language, _, language_of

#: The per-query table at one cutoff: column name -> values, shape (queries,).
Columns: TypeAlias = Mapping[str, NDArray[Any]]

#: The sum of 1 over all queries and, before the name of a column, over those where it is defined.
QUERIES = DEFINED = "#"

# Sums of so many whole numbers below so much stay within 64 bits.
_SMALL = 2**31
# Floats that are taken apart at a time; what is made of them fits into a processor's cache.
_BLOCK = 1 << 15


@dataclass(frozen=True)
class Average:
    """An average: how it follows from sums over queries, and how its values are to be read.

    Attributes:
        key: Its name, such as ``"macro_recall"``.
        column: The per-query column it is about.
        ratios: Numerator and denominator, the names of two sums. Of two ratios, the average is the
            harmonic mean.
        range: Its lowest and highest value, the highest may be infinite; ``None`` if unknown.
        lower_is_better: Whether a lower value is the better one.
        labels: Language -> what people call it.

    >>> recall = Average("micro_recall", "recall", (("covered", "ground_truth"),))
    >>> recall.of({"covered": Fraction(3), "ground_truth": Fraction(4)})
    Fraction(3, 4)
    """

    key: str
    column: str
    ratios: tuple[tuple[str, str], ...]
    range: tuple[float, float] | None = None
    lower_is_better: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def sums(self) -> tuple[str, ...]:
        """The names of the sums it follows from."""
        return tuple(name for ratio in self.ratios for name in ratio)

    @property
    def is_mean(self) -> bool:
        """Whether it is the plain mean of its per-query column, where that is defined."""
        return self.ratios in (((self.column, QUERIES),), ((self.column, DEFINED + self.column),))

    @property
    def is_unbounded(self) -> bool:
        """Whether its values are known to have no upper end, as ranks."""
        return self.range is not None and self.range[1] == math.inf

    def of(self, sums: Mapping[str, Any]) -> Any:
        """Return the average that follows from sums, given as fractions or as arrays.

        A ratio of counts without a denominator is 0, a mean over no query NaN.
        """
        first, *others = (
            _ratio(sums[top], sums[bottom], math.nan if bottom.startswith(DEFINED) else 0.0)
            for top, bottom in self.ratios
        )
        for second in others:
            first = _ratio(2 * first * second, first + second, 0.0)
        return first

    def label(self, language: Language | None = None) -> str:
        """Return what people call it in a language; its key, if it has no label.

        >>> Average("mrr", "reciprocal_rank", (), labels={"en": "MRR"}).label("ko")
        'MRR'
        """
        return told(self.labels, language_of(language)) or self.key


def told(labels: Mapping[str, str], asked: Language) -> str | None:
    """Return a label in a language: as it is given, from its catalog, or in another language."""
    if asked in labels or not labels:
        return labels.get(asked)
    return _(next(iter(labels.values())))


def _ratio(top: Any, bottom: Any, empty: float) -> Any:
    if isinstance(bottom, np.ndarray):
        return np.divide(top, bottom, out=np.full(bottom.shape, empty), where=bottom != 0)
    return top / bottom if bottom else empty


def exact_sum(values: NDArray[Any]) -> Fraction:
    """Return the sum of finite floats without any rounding.

    Sums of parts add up to the sum of the whole, to the last digit.

    Raises:
        InvalidInput: If a value is NaN or infinite.

    >>> exact_sum(np.array([0.1] * 10)) == 10 * Fraction(0.1)
    True
    """
    if len(values) == 0:
        return Fraction(0)
    if values.dtype.kind in "iu" and len(values) < _SMALL and np.abs(values).max() < _SMALL:
        return Fraction(int(values.sum()))
    if not np.isfinite(values).all():
        raise InvalidInput("values", "must be finite to be summed, got NaN or an infinity")
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


def name_by_name(how: Callable[[list[Any]], Any]) -> Callable[[Any, Any], dict[str, Any]]:
    """Return the rule that joins two mappings: their values by name, wherever there are two."""
    return lambda ours, theirs: {
        name: how([one[name] for one in (ours, theirs) if name in one])
        for name in {**ours, **theirs}
    }


def joined_by(how: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Return the metadata of a field of :class:`OfAPart`: the rule by which two parts join it."""
    return {"how": how}


@dataclass(frozen=True)
class OfAPart:
    """What is known of a part of a run; that of two parts adds up to that of both."""

    def __add__(self, other: Self) -> Self:
        """Join two parts, each field by its rule; a field without one is the same in both."""
        if not isinstance(other, type(self)):
            return NotImplemented
        rules = {one.name: one.metadata["how"] for one in fields(self) if one.metadata}
        joined = {
            name: how(getattr(self, name), getattr(other, name)) for name, how in rules.items()
        }
        return replace(self, **joined)


@dataclass(frozen=True)
class Sums(OfAPart):
    """Sums over queries, exact, so that those of parts add up to those of the whole.

    Attributes:
        n_queries: Number of queries that count.
        totals: Column -> sum over the queries where it is defined.
        n_defined: Column -> number of those.
        n_rejected: The queries that do not count and for which nothing was retrieved.

    >>> first = Sums.of({"ndcg": np.array([0.1, np.nan])}, ["ndcg"])
    >>> first + first == Sums.of({"ndcg": np.array([0.1, np.nan] * 2)}, ["ndcg"])
    True
    """

    n_queries: int = field(metadata=joined_by(add))
    totals: Mapping[str, Fraction] = field(metadata=joined_by(name_by_name(sum)))
    n_defined: Mapping[str, int] = field(metadata=joined_by(name_by_name(sum)))
    n_rejected: int = field(default=0, metadata=joined_by(add))

    def __add__(self, other: Self) -> Self:
        """Add the sums of the same columns over other queries."""
        if isinstance(other, Sums) and self.totals.keys() != other.totals.keys():
            ours, theirs = sorted(self.totals), sorted(other.totals)
            raise InvalidInput("", f"sums of {ours} cannot be added to sums of {theirs}")
        return super().__add__(other)

    @classmethod
    def of(cls, columns: Columns, names: Iterable[str], n_rejected: int = 0) -> Sums:
        """Sum columns of a per-query table that holds only the queries that count.

        Raises:
            InvalidInput: If a value is infinite, naming the column.
        """
        totals, n_defined = {}, {}
        for name in names:
            values = np.asarray(columns[name])
            if values.dtype.kind not in "iu":
                values = values[~np.isnan(values)]  # NaN is undefined for a query
            try:
                totals[name], n_defined[name] = exact_sum(values), len(values)
            except InvalidInput:
                fix = "return NaN where it is undefined"
                problem = f": {name!r} is infinite for a query"
                raise InvalidInput("metrics", problem, fix) from None
        return cls(len(next(iter(columns.values()))), totals, n_defined, n_rejected)

    def by_name(self) -> dict[str, Fraction]:
        """Return all sums under the names that :class:`Average` knows them by."""
        defined = {DEFINED + name: Fraction(number) for name, number in self.n_defined.items()}
        return {QUERIES: Fraction(self.n_queries), **self.totals, **defined}


def in_pairs(keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what shares a row of a table: macro and micro average of a metric, in this order.

    An average that has no counterpart has a row of its own.

    >>> in_pairs(["mrr", "micro_recall", "macro_recall", "micro_own"])
    {'mrr': ('mrr',), 'recall': ('macro_recall', 'micro_recall'), 'micro_own': ('micro_own',)}
    """
    known = dict.fromkeys(keys)
    rows: dict[str, tuple[str, ...]] = {}
    for key in known:
        name = key.removeprefix("micro_").removeprefix("macro_")
        both = f"macro_{name}", f"micro_{name}"
        is_pair = name not in known and all(one in known for one in both)
        rows[name if is_pair else key] = both if is_pair else (key,)
    return rows
