"""How long a comparison will take where its time grows with the product of two lengths.

This room knows which queries have such texts, and how the wait is announced before it begins. How
fast a comparison is, is told by whoever compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import warn
from krag_eval.matching.joins import FloatArray, IntArray, Units

__all__ = ["Comparison", "warn_of_long_wait"]

Number = TypeVar("Number", np.int64, np.float64)

_LONG_WAIT_IN_SECONDS = 60.0
_LONG_QUERY_IN_SECONDS = 0.1


@dataclass(frozen=True)
class Comparison:
    """A way of comparing two texts whose time grows with the product of their lengths.

    Attributes:
        name: What it is called.
        of: What lengths are counted in: ``tokens`` or ``characters``.
        seconds: ``(lengths of ground-truth texts, of predicted texts) -> seconds`` on one core.
        at_most: Seconds per product of two lengths that are never exceeded.
        advice: What takes less time.
    """

    name: str
    of: str
    seconds: Callable[[FloatArray, FloatArray], float]
    at_most: float
    advice: str


def warn_of_long_wait(units: Units, lengths: IntArray, comparison: Comparison) -> None:
    """Warn if the queries with long texts together take more than a minute.

    Short texts, however many, are left out: that many queries take long is no surprise.

    Args:
        units: Which texts are compared with which.
        lengths: The length of each text; shape (units,).
        comparison: How they are compared.
    """
    sizes = lengths.astype(np.float64)
    sides = (units.alternatives, units.predicted)
    bounds = [_from_0(np.cumsum(counts)) for counts in (units.n_alternatives, units.n_predicted)]
    actual, predicted = (
        np.diff(_from_0(np.cumsum(sizes[side]))[bound])
        for side, bound in zip(sides, bounds, strict=True)
    )
    long = np.flatnonzero(actual * predicted * comparison.at_most > _LONG_QUERY_IN_SECONDS)
    waits = []
    for query in long.tolist():
        # A text that occurs twice in a query is compared once.
        truths, found = (
            sizes[np.unique(side[bound[query] : bound[query + 1]])]
            for side, bound in zip(sides, bounds, strict=True)
        )
        waits.append((comparison.seconds(truths, found), query, truths.sum(), found.sum()))
    waits = [wait for wait in waits if wait[0] > _LONG_QUERY_IN_SECONDS]
    total = sum(seconds for seconds, *_ in waits)
    if total > _LONG_WAIT_IN_SECONDS:
        _, query, truth, prediction = max(waits)
        warn(
            f"{comparison.name} compares every {comparison.of[:-1]} with every other, and "
            f"{len(waits):,} of {len(actual):,} queries have long texts, up to {truth:,.0f} "
            f"{comparison.of} of ground truth and {prediction:,.0f} predicted ones in query "
            f"{query} (counted from 0). That takes about {_spelled(total)} of one core. "
            f"{comparison.advice}"
        )


def _from_0(sums: NDArray[Number]) -> NDArray[Number]:
    return np.concatenate([np.zeros(1, sums.dtype), sums])


def _spelled(seconds: float) -> str:
    """Spell a duration of a minute or more.

    >>> _spelled(90.0), _spelled(2e4)
    ('2 minutes', '6 hours')
    """
    hours = seconds / 3600
    return f"{hours:,.0f} hours" if hours >= 2 else f"{seconds / 60:.0f} minutes"
