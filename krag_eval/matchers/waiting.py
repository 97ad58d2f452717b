"""Comparisons whose time grows with the product of two lengths, for the matchers that make them.

A pair that is too long is refused, since nothing interrupts rapidfuzz within a pair; a long wait is
announced before it begins.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from krag_eval.core import Advice, FloatArray, IntArray, InvalidInput, Units, _, warn
from krag_eval.core.matching.base import in_language

#: Cells in a pair's table above which the pair is refused, unless the user says otherwise: two
#: texts of a million tokens, which take rapidfuzz a minute or two on one core of 2024.
MAX_CELLS = 10**12

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
        advice: What takes less time, in English.
        cells: ``(length of one text, of another) -> cells of the table that is filled for them``.
    """

    name: str
    of: str
    seconds: Callable[[FloatArray, FloatArray], float]
    at_most: float
    advice: Advice
    cells: Callable[[float, float], float] = operator.mul


def check_waits(units: Units, lengths: IntArray, comparison: Comparison, max_cells: int) -> None:
    """Refuse a pair whose table has too many cells; warn of queries that take over a minute.

    Short texts are left out of the warning, however many: users expect many queries to take long.

    Args:
        units: Which texts are compared with which.
        lengths: The length of each text; shape (units,).
        comparison: How they are compared.
        max_cells: The most cells a pair may take.

    Raises:
        InvalidInput: If there is such a pair, with its query and rank.
    """
    sizes = np.where(units.blank, 0, lengths).astype(np.float64)  # blank texts are not compared
    sides = (units.alternatives, units.n_alternatives), (units.predicted, units.n_predicted)
    ends = [np.cumsum(counts) for _side, counts in sides]
    actual, predicted = (
        np.bincount(np.repeat(np.arange(len(counts)), counts), sizes[side], len(counts))
        for side, counts in sides
    )
    longest = float(sizes.max(initial=0))
    too_long = comparison.cells(longest, longest) > max_cells
    long = actual * predicted * comparison.at_most > _LONG_QUERY_IN_SECONDS
    waits = []
    for query in np.flatnonzero(long | too_long).tolist():
        texts = [
            side[end[query] - counts[query] : end[query]]
            for (side, counts), end in zip(sides, ends, strict=True)
        ]
        if comparison.cells(*(float(sizes[one].max(initial=0)) for one in texts)) > max_cells:
            raise _refused(units, query, [sizes[one] for one in texts], comparison, max_cells)
        # A text that occurs twice in a query is compared once.
        truths, found = (sizes[np.unique(one)] for one in texts)
        seconds = comparison.seconds(truths, found)
        if seconds > _LONG_QUERY_IN_SECONDS:
            waits.append((seconds, query, truths.sum(), found.sum()))
    total = sum(seconds for seconds, *_ in waits)
    if total > _LONG_WAIT_IN_SECONDS:
        _seconds, query, truth, prediction = max(waits)
        one, several = {
            "tokens": (_("token"), _("tokens")),
            "characters": (_("character"), _("characters")),
        }[comparison.of]
        told = _(
            "{comparison} compares every {one} with every other, and {long:,} of {queries:,} "
            "queries have long texts, up to {truth:,.0f} {several} of ground truth and "
            "{predicted:,.0f} predicted ones in query {query} (counted from 0). That takes about "
            "{time} of one core."
        )
        problem = told.format(
            comparison=comparison.name, one=one, several=several,
            long=len(waits), queries=len(actual), truth=truth, predicted=prediction, query=query,
            time=_spelled(total),
        )  # fmt: skip
        warn(problem, in_language(comparison.advice), at_once=True)


def score_rows(scorer: Any, actual: Sequence[Any], predicted: Sequence[Any]) -> FloatArray:
    """Return rapidfuzz's score of every pair; shape (actual, predicted).

    It is asked for a row at a time: Ctrl-C is answered between calls, and never within one.
    """
    from rapidfuzz.process import cdist

    scores = np.empty((len(actual), len(predicted)), np.float64)
    for row, text in enumerate(actual):
        scores[row] = cdist([text], predicted, scorer=scorer, dtype=np.float64)[0]
    return scores


def _refused(
    units: Units, query: int, sizes: list[FloatArray], comparison: Comparison, max_cells: int
) -> InvalidInput:
    """Return the refusal of the longest pair of a query."""
    (item_of, rank), lengths = map(np.argmax, sizes), [float(one.max()) for one in sizes]
    first_item = int(units.n_items[:query].sum())
    ends = np.cumsum(units.item_sizes[first_item : first_item + units.n_items[query]])
    item = int(np.searchsorted(ends, item_of, side="right"))
    problem = (
        f"and the predicted document at rank {rank + 1} of its query have {lengths[0]:,.0f} and "
        f"{lengths[1]:,.0f} {comparison.of}, for which {comparison.name} fills "
        f"{comparison.cells(*lengths):.2g} cells, and max_cells={max_cells:.4g} is the most"
    )
    fix = f"{comparison.advice.text}. To wait all the same, give the matcher a larger max_cells"
    advice = Advice(fix, *comparison.advice.settings)
    return InvalidInput("actual_docs", problem, advice, query=query, within=f"[{item}]")


def _spelled(seconds: float) -> str:
    """Spell a duration in whole minutes or hours.

    >>> _spelled(20.0), _spelled(90.0), _spelled(2e4)
    ('1 minute', '2 minutes', '6 hours')
    """
    if seconds < 90:
        return _("1 minute")
    if seconds < 7200:
        return _("{:.0f} minutes").format(seconds / 60)
    return _("{:,.0f} hours").format(seconds / 3600)
