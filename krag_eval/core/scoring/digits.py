"""Arithmetic with the same digits on every machine.

Addition, multiplication and division are rounded alike everywhere (IEEE 754); logarithms, powers
and products of matrices are not: their last digit depends on the processor, and of matrices also on
the number of threads. Here is what scoring and statistics need of them, made of the former.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# Logarithms up to here come from a table, correctly rounded; beyond, from it and a short series.
_TABLE_BITS = 16
_ONE = 1 << 128  # fixed point: 128 binary digits after the point
_LN_2 = 0.6931471805599453
_SMALL_EXPONENT = 1 / 16
# Filled as far as it has been asked for; log2(0) is never read.
_table: FloatArray = np.zeros(2)


def log2(numbers: IntArray) -> FloatArray:
    """Return the binary logarithm of whole numbers from 1 to 2**53.

    Correctly rounded up to 2**16, within two units in the last place beyond.

    >>> log2(np.array([1, 2, 3, 8]))
    array([0.       , 1.       , 1.5849625, 3.       ])
    """
    largest = int(numbers.max(initial=1))
    if largest >> _TABLE_BITS == 0:
        return _logs_until(largest)[numbers]
    table = _logs_until((1 << _TABLE_BITS) - 1)
    shift = np.maximum(np.frexp(numbers.astype(np.float64))[1] - _TABLE_BITS, 0)
    leading = numbers >> shift
    base = leading << shift
    x = (numbers - base) / base  # below 2**-15, so that four terms are enough
    series = x * (1 - x * (1 / 2 - x * (1 / 3 - x / 4)))
    return np.asarray(table[leading] + shift + series / _LN_2, np.float64)


def _logs_until(largest: int) -> FloatArray:
    """Return the table at least so far; threads that fill it at once write the same numbers."""
    global _table
    table = _table
    if largest >= len(table):
        size = min(max(2 * len(table), largest + 1), 1 << _TABLE_BITS)
        table = np.concatenate([table, _logs(len(table), size)])
        if len(table) > len(_table):
            _table = table
    return table


def _logs(start: int, stop: int) -> FloatArray:
    """Compute the logarithms of a range in fixed point, each from the one before.

    log(n + 1) = log(n) + 2 artanh(1 / (2n + 1)); with 128 digits, 2**16 steps leave 110 right.
    """
    ln_2 = 2 * _artanh_of_inverse(3)
    # What comes before ``start`` has to be added up again: it is what the digits rest on.
    total, logs = 0, []
    for n in range(1, stop):
        if n > 1:
            total += 2 * _artanh_of_inverse(2 * n - 1)
        if n >= start:
            logs.append(total / ln_2)  # of whole numbers, Python rounds correctly
    return np.array(logs)


def _artanh_of_inverse(q: int) -> int:
    """Return artanh(1 / q) in fixed point: the sum of 1 / ((2i + 1) q**(2i + 1))."""
    power, total, divisor = _ONE // q, 0, 1
    while power:
        total += power // divisor
        power //= q * q
        divisor += 2
    return total


def exp2(exponents: FloatArray) -> FloatArray:
    """Return 2 to the power of finite numbers; exact where they are whole.

    >>> exp2(np.array([0.0, 3.0, 0.5]))
    array([1.        , 8.        , 1.41421356])
    """
    whole = np.rint(exponents)
    if (whole == exponents).all():  # grades, nearly always
        return np.asarray(np.ldexp(1.0, whole.astype(np.int64)), np.float64)
    x = (exponents - whole) * _LN_2  # at most 0.35 either way
    power = np.ones_like(x)
    for n in range(16, 0, -1):  # the series of e**x, from its end
        power = 1.0 + power * x / n
    return np.asarray(np.ldexp(power, whole.astype(np.int64)), np.float64)


def exp2m1(exponents: FloatArray) -> FloatArray:
    """Return 2 to the power of finite numbers, less 1; exact where they are whole.

    Nearer to 0 than 1/16, where little or nothing is left of ``exp2(x) - 1``, within three units in
    the last place.

    >>> exp2m1(np.array([0.0, 3.0, 0.5, 1e-16]))
    array([0.00000000e+00, 7.00000000e+00, 4.14213562e-01, 6.93147181e-17])
    """
    powers = exp2(exponents)
    powers -= 1.0
    if exponents.min(initial=1.0) < _SMALL_EXPONENT:
        small = np.abs(exponents) < _SMALL_EXPONENT
        x = exponents[small] * _LN_2
        series = np.ones_like(x)
        for n in range(10, 1, -1):  # the series of (e**x - 1) / x, from its end
            series = 1.0 + series * x / n
        powers[small] = x * series
    return powers


def powers(base: float, n: int) -> FloatArray:
    """Return the first n powers of a number, from the one with exponent 0.

    >>> powers(0.5, 4)
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    factors = np.full(n, base)
    factors[:1] = 1.0
    return np.multiply.accumulate(factors)
