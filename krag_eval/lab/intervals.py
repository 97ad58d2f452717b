"""The interval of what is chosen from a few, such as a threshold."""

from __future__ import annotations

import math

from krag_eval.core import FloatArray
from krag_eval.intervals.intervals import FEW_QUERIES, interval


def interval_of_choice(
    resampled: FloatArray, value: float, level: float, n: int
) -> tuple[float, float]:
    """Return the percentile interval of what is chosen from a few, such as a threshold.

    Or of a rank correlation, which may be 1 in every resample. Of enough queries, or pairs, all
    resamples may well have the same; of few, that says nothing.
    """
    low, high = interval(resampled, value, level)
    return (value, value) if math.isnan(low) and n >= FEW_QUERIES else (low, high)
