"""Sums of resamples and permutations, with the same digits in whatever order rows are taken."""

from __future__ import annotations

import numpy as np

from krag_eval.core import FloatArray

# Bits of a part: sums of up to 2**26 parts, each taken up to twice, fit into a float's 53.
_PART_BITS = 26
_LEAST_EXPONENT = -900


def exact_parts(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split columns into two parts whose sums over up to 2**26 rows come out without rounding.

    What a column holds below 2**-52 of its largest value is rounded away.

    Args:
        columns: Finite numbers; shape (rows, columns).

    Returns:
        The leading and the trailing digits, each of the same shape.
    """
    largest = np.abs(columns).max(axis=0, initial=0.0)
    exponent = np.maximum(np.frexp(largest)[1], _LEAST_EXPONENT)
    unit = np.ldexp(1.0, exponent - _PART_BITS)
    leading = np.rint(columns / unit) * unit
    unit = np.ldexp(1.0, exponent - 2 * _PART_BITS)
    trailing = np.rint((columns - leading) / unit) * unit
    return leading, trailing


def exact_sums(times: FloatArray, parts: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the sums of columns whose rows are taken so many times, however they are multiplied.

    Args:
        times: How often each row is taken: whole numbers, as floats, that add up to 2**26 at most
            in each line; shape (lines, rows).
        parts: The columns, from :func:`exact_parts`; shape (rows, columns) each.

    Returns:
        The sums, each rounded once; shape (lines, columns).
    """
    leading, trailing = parts
    return np.asarray(times @ leading + times @ trailing, np.float64)
