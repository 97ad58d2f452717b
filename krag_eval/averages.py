"""From one value per query to averages over queries.

This room knows micro and macro averages, and that sums are exact: an average is the correctly
rounded one, so it depends neither on the order of the queries nor on how they were partitioned.
It must not know how the values came about.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.conventions import AveragingMethod, Conventions

__all__ = ["Columns", "average", "exact_mean", "exact_sum"]

#: The per-query table at one cutoff: column name -> values, shape (queries,).
Columns: TypeAlias = Mapping[str, NDArray[Any]]

#: Share -> the counts it divides.
_SHARES = {"precision": ("relevant", "precision_base"), "recall": ("covered", "ground_truth")}


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
    if not np.isfinite(values).all():
        raise ValueError("values must be finite to be averaged, got NaN or an infinity.")
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    lowest = int(exponent.min())
    # Every float is an integer of 53 bits times a power of two. Halves of the integers, summed by
    # power, stay whole numbers that float64 holds exactly (for up to 2**26 values at a time).
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
    if name == "rank":
        return _rank_averages(columns["rank"])
    if name not in ("precision", "recall", "f1"):
        return {key: exact_mean(_defined(columns[name]))}
    averages: dict[str, float] = {}
    if averaging_method is not AveragingMethod.MACRO:
        averages[f"micro_{name}"] = float(_micro(name, columns))
    if averaging_method is not AveragingMethod.MICRO:
        averages[f"macro_{name}"] = float(_macro(name, columns, conventions or Conventions()))
    return averages


def _micro(name: str, columns: Columns) -> Fraction:
    if name == "f1":
        return _harmonic_mean(_micro("precision", columns), _micro("recall", columns))
    found, base = _SHARES[name]
    # Not by integers: k times the number of queries may pass 64 bits.
    return exact_sum(columns[found]) / (exact_sum(columns[base]) or 1)


def _macro(name: str, columns: Columns, conventions: Conventions) -> Fraction:
    if name == "f1" and conventions.macro_f1 == "of_means":
        return _harmonic_mean(
            _macro("precision", columns, conventions), _macro("recall", columns, conventions)
        )
    values = columns.get(name)
    if values is None:  # F1 alone was asked for; what it is made of follows from the counts
        found, base = _SHARES[name]
        values = columns[found] / np.maximum(columns[base], 1)
    return exact_sum(values) / len(values)


def _harmonic_mean(first: Fraction, second: Fraction) -> Fraction:
    # In fractions, so that no average is rounded before the last step.
    return 2 * first * second / (first + second) if first + second else Fraction(0)


def _rank_averages(ranks: NDArray[Any]) -> dict[str, float]:
    """Average the rank over the queries where something was found, and say how many those are."""
    found = _defined(ranks)
    rate = len(found) / len(ranks) if len(ranks) else float("nan")
    return {"mean_rank": exact_mean(found), "found_rate": rate}


def _defined(values: NDArray[Any]) -> NDArray[np.float64]:
    """Drop the NaN of queries for which a metric is undefined."""
    numbers = np.asarray(values, np.float64)
    return numbers[~np.isnan(numbers)]
