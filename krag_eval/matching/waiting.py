"""Comparisons whose time grows with the product of two lengths, for the matchers that make them.

Pairs that are too long are refused, a long wait is announced before it begins, and the work is done
in blocks so that Ctrl-C is answered meanwhile.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval._io import bar_of
from krag_eval._language import _
from krag_eval.errors import Advice, InvalidInput, warn
from krag_eval.matching.base import in_language
from krag_eval.matching.joins import FloatArray, IntArray, Units

Number = TypeVar("Number", np.int64, np.float64)
#: ``(positions of ground-truth texts, of predicted texts) -> a score for each pair``
#: Hears how many cells of the table have been filled since it was last called.
Advance: TypeAlias = Callable[[int], object]
Together: TypeAlias = Callable[[IntArray, IntArray], FloatArray | IntArray]
#: ``(position of a ground-truth text, of a predicted text, advance) -> the score of that pair``
Alone: TypeAlias = Callable[[int, int, Advance], float]

#: Cells in a pair's table from which it is refused, unless the user says otherwise: two texts of
#: three million tokens. They take a quarter of an hour or so of one core of 2024.
MAX_CELLS = 10**13
#: Cells that go into a single call of rapidfuzz, which no Ctrl-C interrupts: 0.1 to 0.8 seconds.
CELLS_AT_ONCE = 5 * 10**9

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


def in_blocks(
    actual: IntArray,
    predicted: IntArray,
    cells: Callable[[int], FloatArray | IntArray],
    together: Together,
    alone: Alone,
    at_once: float = CELLS_AT_ONCE,
) -> FloatArray:
    """Score all pairs of some texts so that Ctrl-C is answered within a second or so.

    Long pairs come one by one, under a bar where somebody is looking; the others in groups.

    Args:
        actual: Positions of the ground-truth texts.
        predicted: Positions of the predicted texts.
        cells: Returns how much work each pair of a ground-truth text is, asked for its number among
            ``actual``; shape (predicted,).
        together: Scores short pairs, in one call for each group.
        alone: Scores a long pair, and reports the cells done.
        at_once: Cells that may go into one call.

    Returns:
        What ``together`` and ``alone`` returned; shape (actual, predicted).
    """
    scores = np.empty((len(actual), len(predicted)))
    rows = range(len(actual))
    total = int(sum(row[row > at_once].sum() for row in map(cells, rows)))
    bar = None
    if total:
        title = "comparing long texts"
        bar = bar_of(None, total=total, done=0, title=title, unit="cell", passing=True)
    with nullcontext() if bar is None else closing(bar):
        for row in rows:
            work = cells(row).astype(np.float64)
            long = np.flatnonzero(work > at_once)
            short = np.flatnonzero(work <= at_once)
            group = np.cumsum(work[short]) // at_once
            for run in np.split(short, np.flatnonzero(np.diff(group)) + 1) if len(short) else ():
                scores[row, run] = together(actual[row : row + 1], predicted[run])[0]
            for column in long.tolist():
                pair = int(actual[row]), int(predicted[column])
                scores[row, column] = alone(*pair, bar.update if bar else lambda cells: None)
    return scores


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


Sequence: TypeAlias = IntArray | NDArray[np.int32]

# Integers of 2 KB stay in the fastest cache, and the tokens of a strip have as many of them.
_STRIP = 1 << 14
# Tokens between two calls of ``advance``: a tenth of a second.
_STRETCH = 1 << 16


def common_subsequence(first: Sequence, second: Sequence, advance: Advance) -> int:
    """Return the length of the longest common subsequence of two sequences of integers.

    Time grows with the product of the lengths: 10 to 18 billion cells a second on one core.
    Tokens that only one side has, and what both begin or end with, cost next to nothing.

    Args:
        first: Integers, equal where tokens are equal; shape (tokens,).
        second: The other sequence, likewise.
        advance: Called along the way; what it is given adds up to the product of the lengths.

    >>> common_subsequence(np.array([1, 2, 3, 4]), np.array([2, 9, 4, 1]), lambda cells: None)
    2

    Source: Hyyrö, *Bit-Parallel LCS-length Computation Revisited*, 2004, in strips of the table as
    Myers does for edit distance (*A Fast Bit-Vector Algorithm for Approximate String Matching*,
    1999, section 4).
    """
    cells = len(first) * len(second)
    first, second, n_common = _trimmed(first, second)
    if len(first) < len(second):  # fewer tokens to go through in each strip
        first, second = second, first
    advance(cells - len(first) * len(second))
    carries = bytes(len(second))
    for start in range(0, len(first), _STRIP):
        strip = _Strip(first[start : start + _STRIP].tolist())
        carries = b"".join(strip.carries(second, carries, advance))
        n_common += strip.n_common
    return n_common


class _Strip:
    """Some columns of the table: tokens of one sequence, as the bits of integers.

    The table's entry (i, j) is the length for the first i tokens of the one and the first j of the
    other sequence. Going along a row it rises by 0 or 1; where it rises, the bit is 0.
    """

    def __init__(self, tokens: list[int]) -> None:
        self._width = len(tokens)
        self._row = (1 << self._width) - 1
        self._places: dict[int, int] = {}
        for place, token in enumerate(tokens):
            self._places[token] = self._places.get(token, 0) | 1 << place

    @property
    def n_common(self) -> int:
        """How much the last row has risen over this strip."""
        return self._width - self._row.bit_count()

    def carries(self, tokens: Sequence, carries: bytes, advance: Advance) -> Iterable[bytes]:
        """Go down the rows; yield where the addition runs over into the next strip.

        Args:
            tokens: The other sequence, one token a row.
            carries: What runs over from the strip before, 0 or 1 a row.
            advance: Hears of the cells.
        """
        row, end, places = self._row, 1 << self._width, self._places.get
        for start in range(0, len(tokens), _STRETCH):
            stretch = slice(start, start + _STRETCH)
            rows = tokens[stretch].tolist()
            carried = bytearray(len(rows))
            for number, (token, carry) in enumerate(zip(rows, carries[stretch], strict=True)):
                here = row & places(token, 0)
                if here or carry:
                    total = row + here + carry
                    row = total | row ^ here
                    if total >= end:
                        row -= end
                        carried[number] = 1
            self._row = row
            yield bytes(carried)
            advance(len(rows) * self._width)


def _trimmed(first: Sequence, second: Sequence) -> tuple[Sequence, Sequence, int]:
    """Drop what costs time and decides nothing.

    Returns:
        Both sequences without tokens the other lacks and without what they begin and end with
        alike, and the number of tokens in that.
    """
    first, second = first[np.isin(first, second)], second[np.isin(second, first)]
    start = _n_alike(first, second)
    first, second = first[start:], second[start:]
    end = _n_alike(first[::-1], second[::-1])
    return first[: len(first) - end], second[: len(second) - end], start + end


def _n_alike(first: Sequence, second: Sequence) -> int:
    """Return how many tokens two sequences begin with alike."""
    n = min(len(first), len(second))
    different = first[:n] != second[:n]
    return int(different.argmax()) if different.any() else n
