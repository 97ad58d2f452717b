"""The paired permutation test: how often chance alone sets two systems as far apart.

Outcomes are swapped in an order of their own, by value, so that no p depends on the order in which
queries were asked. Where all swaps can be counted, they are; else random ones are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from krag_eval.core import FloatArray, IntArray
from krag_eval.intervals.intervals import ROUNDING, BoolArray, QuerySums, blocks
from krag_eval.intervals.sums import exact_parts, exact_sums

#: What is as extreme as the observed difference: of either sign, or at most or at least as large.
Tail: TypeAlias = Literal["both", "low", "high"]

# Up to this many differing queries, or clusters of them, all ways to swap them are tried.
_ENUMERABLE = 15
# Differences that are whole multiples of a unit are counted exactly, within that much work.
_LARGEST_DENOMINATOR, _MOST_VALUES, _MOST_STEPS = 10_000, 200, 100_000_000
# Random swaps come in chunks, each a stream of its own, and are unpacked in blocks of positions.
_CHUNK, _BLOCK = 10_000, 200
# Near the level ten times as many are drawn, and again, within that many and that much work.
_MOST_SWAPS, _MOST_BITS = 1_000_000, 500_000_000
_NEAR = 3.0


class Test(Protocol):
    """A test that can be made with more random draws."""

    @property
    def is_exact(self) -> bool:
        """Whether p is no estimate, so that more draws would change nothing."""

    @property
    def width(self) -> int:
        """How many random choices a draw takes."""

    def p(self, n_swaps: int, seed: int) -> float:
        """Return p by so many draws."""


@dataclass(frozen=True, eq=False)
class SwapTest:
    """One average of two systems whose outcomes may as well be swapped.

    Attributes:
        moves: What a swap of each unit adds to one side and takes from the other, the largest
            first; shape (units that differ, columns).
        sides: The columns' sums of both sides before any swap; shape (2, columns).
        sums: How the average follows from sums; ``None`` where the difference is itself a sum.
        observed: The difference of the averages, or of the sums.
        rounding: Differences below it are rounding.
        tail: What counts as extreme.
    """

    moves: FloatArray
    sides: FloatArray
    sums: QuerySums | None
    observed: float
    rounding: float
    tail: Tail

    @classmethod
    def of(
        cls, ours: QuerySums, theirs: QuerySums, values: tuple[float, float], tail: Tail
    ) -> SwapTest:
        """Gather what can be swapped.

        Args:
            ours: What the only average is made of, unit by unit.
            theirs: That of the other system.
            values: The averages of both.
            tail: What counts as extreme of theirs less ours.
        """
        rounding = ROUNDING * max(map(abs, values))
        difference = as_one_sum(ours, theirs)
        if difference is not None:
            changes, under = difference.columns.T
            total = math.fsum(under.tolist())
            moves = -np.sort(-np.abs(changes[changes != 0]))[:, np.newaxis]
            # One side has all that counts for it, and the other all that counts against it.
            sides = np.array([[0.0], [float(moves.sum())]])
            observed = math.fsum(changes.tolist())
            return cls(moves, sides, None, observed, rounding * total, tail)
        one, other = ours.columns, theirs.columns
        differs = ~np.isclose(one, other, rtol=ROUNDING, atol=0.0).all(axis=1)
        left, right = _least_first(one[differs], other[differs])
        order = np.lexsort(np.concatenate([left, right], axis=1).T)
        alike = one[~differs].sum(axis=0)
        sides = np.stack([left[order].sum(axis=0) + alike, right[order].sum(axis=0) + alike])
        observed = values[1] - values[0]
        return cls((right - left)[order], sides, ours, observed, rounding, tail)

    @property
    def width(self) -> int:
        """How many units may be swapped."""
        return len(self.moves)

    @property
    def is_exact(self) -> bool:
        """Whether all swaps are counted."""
        return self.width <= _ENUMERABLE or self._steps is not None

    @cached_property
    def _steps(self) -> tuple[IntArray, int] | None:
        """The moves, and the observed difference, as multiples of one unit, if they are."""
        return None if self.sums is not None else _multiples(self.moves[:, 0], self.observed)

    def p(self, n_swaps: int, seed: int) -> float:
        """Return p, exact where it can be; never 0 (Phipson and Smyth 2010)."""
        if math.isnan(self.observed):
            return math.nan
        if self.width <= _ENUMERABLE:
            swap = (np.arange(2**self.width)[:, np.newaxis] >> np.arange(self.width)) & 1
            moved = exact_sums(swap.astype(np.float64), exact_parts(self.moves))
            return self.n_extreme(moved) / len(moved)
        steps = self._steps
        if steps is not None:
            return _exact_p(*steps, self.tail)
        return p_values([self], n_swaps, seed)[0]

    def n_extreme(self, moved: FloatArray) -> int:
        """Count the swaps that set the systems at least as far apart.

        One that leaves a side undefined counts, so that p errs towards no difference.
        """
        left, right = self.sides[0] + moved, self.sides[1] - moved
        if self.sums is None:
            apart = (right - left)[:, 0]
        else:
            apart = self.sums.average(0, right) - self.sums.average(0, left)
        if self.tail == "both":
            less = np.abs(apart) < abs(self.observed) - self.rounding
        elif self.tail == "high":
            less = apart < self.observed - self.rounding
        else:
            less = apart > self.observed + self.rounding
        return int(np.count_nonzero(~less))


@dataclass(frozen=True, eq=False)
class TurnTest:
    """A new run among the runs before: any of them may as well have been the new one.

    Of each unit, one run that has it, or the new one, is drawn to be the new one; the others are
    averaged. The runs themselves tell how far an unchanged system moves.

    Attributes:
        columns: What the only average is made of, of the units that are not alike in all runs;
            shape (1 + runs, units, columns), the new run first.
        has: Whether a run has a unit; shape (1 + runs, units).
        alike: The columns' sums of the other units.
        sums: How the average follows from sums.
        tail: What counts as extreme of the new less the mean.
    """

    columns: FloatArray
    has: BoolArray
    alike: FloatArray
    sums: QuerySums
    tail: Tail
    is_exact: bool = False

    @classmethod
    def of(cls, sums: QuerySums, columns: FloatArray, has: BoolArray, tail: Tail) -> TurnTest:
        """Put the units into an order of their own, by value.

        One that no run before has tells nothing, as one that is alike in all of them.
        """
        same = np.isclose(columns, columns[0], rtol=ROUNDING, atol=0.0).all(axis=2)
        varies = (~same & has).any(axis=0)
        alike, columns, has = columns[0, ~varies].sum(axis=0), columns[:, varies], has[:, varies]
        n_runs, n_units, n_columns = columns.shape
        keys = columns.transpose(0, 2, 1).reshape(n_runs * n_columns, n_units)
        order = np.lexsort([*keys, *has])
        return cls(columns[:, order], has[:, order], alike, sums, tail)

    @property
    def width(self) -> int:
        """How many units there are, times runs."""
        return self.has.size

    def p(self, n_swaps: int, seed: int) -> float:
        """Return how often the new run would do as badly, or worse."""
        n_before = np.maximum(self.has.sum(axis=0) - 1, 1)[:, np.newaxis]
        together = self.columns.sum(axis=0)
        parts = [
            exact_parts(np.concatenate([run, (together - run) / n_before], axis=1))
            for run in self.columns
        ]
        observed = float(self._apart(exact_sums(np.ones((1, self.has.shape[1])), parts[0]))[0])
        rounding, n_extreme = ROUNDING * max(1.0, abs(observed)), 0
        for run in self._drawn(n_swaps, seed):
            is_new = ((run == i).astype(np.float64) for i in range(len(parts)))
            apart = self._apart(np.sum([*map(exact_sums, is_new, parts)], axis=0))
            if self.tail == "high":
                less = apart < observed - rounding
            else:
                less = apart > observed + rounding
            n_extreme += int(np.count_nonzero(~less))
        return (n_extreme + 1) / (n_swaps + 1)

    def _drawn(self, n_swaps: int, seed: int) -> Iterator[IntArray]:
        """Yield, block by block, which run is the new one; shape (draws, units)."""
        rng, n_having = np.random.default_rng([seed, 4]), self.has.sum(axis=0)
        having = np.argsort(~self.has, axis=0, kind="stable")  # the runs that have it first
        for start, stop in blocks(n_swaps, max(len(n_having), 1)):
            turn = np.floor(rng.random((stop - start, len(n_having))) * n_having)
            yield having[turn.astype(np.int64), np.arange(len(n_having))]

    def _apart(self, sums: FloatArray) -> FloatArray:
        new, before = np.split(sums, 2, axis=-1)
        averages = [self.sums.average(0, one + self.alike) for one in (new, before)]
        return np.asarray(averages[0] - averages[1], np.float64)


class Strictest(NamedTuple):
    """Several tests, all of which must reject.

    Attributes:
        tests: The tests.
        factor: By how much p counts more than it says.
    """

    tests: tuple[Test, ...]
    factor: float = 1.0

    @property
    def is_exact(self) -> bool:
        """Whether none of them draws."""
        return all(test.is_exact for test in self.tests)

    @property
    def width(self) -> int:
        """How many random choices a draw takes, of all that draw."""
        return sum(test.width for test in self.tests if not test.is_exact)

    def p(self, n_swaps: int, seed: int) -> float:
        """Return the largest p."""
        return min(1.0, self.factor * max(test.p(n_swaps, seed) for test in self.tests))


@dataclass(frozen=True, eq=False)
class Estimate:
    """A p and what it takes to estimate it by more draws.

    Attributes:
        test: The test.
        p: Its p.
        n_swaps: By how many draws.
        seed: Of which seed.
    """

    test: Test
    p: float
    n_swaps: int
    seed: int

    def is_near(self, p_corrected: float, alpha: float) -> bool:
        """Tell whether other draws might put the corrected p on the other side of the level."""
        n = 10 * self.n_swaps
        if not 0 < self.p < 1 or self.test.is_exact or math.isnan(p_corrected):
            return False
        if n > _MOST_SWAPS or n * self.test.width > _MOST_BITS:
            return False
        error = p_corrected / self.p * math.sqrt(self.p * (1 - self.p) / self.n_swaps)
        return abs(p_corrected - alpha) < _NEAR * error

    def refined(self) -> Estimate:
        """Return the estimate by ten times as many draws."""
        n_swaps = 10 * self.n_swaps
        return Estimate(self.test, self.test.p(n_swaps, self.seed), n_swaps, self.seed)


def estimates(tests: Sequence[Test], n_swaps: int, seed: int) -> list[Estimate]:
    """Estimate p of several tests, by the same swaps for all of them."""
    found = p_values(tests, n_swaps, seed)
    return [Estimate(test, p, n_swaps, seed) for test, p in zip(tests, found, strict=True)]


def p_values(tests: Sequence[Test], n_swaps: int, seed: int) -> list[float]:
    """Return p of several tests; one pass over the random swaps serves all that take them."""
    drawn = [
        test for test in tests
        if isinstance(test, SwapTest) and not test.is_exact and not math.isnan(test.observed)
    ]  # fmt: skip
    counts = dict(zip(map(id, drawn), _n_extreme(drawn, n_swaps, seed), strict=True))
    return [
        (counts[id(test)] + 1) / (n_swaps + 1) if id(test) in counts else test.p(n_swaps, seed)
        for test in tests
    ]


def _n_extreme(tests: Sequence[SwapTest], n_swaps: int, seed: int) -> list[int]:
    """Count the extreme ones of random swaps.

    The unit at each position is swapped by a stream of its own, so that no test draws otherwise
    because others are made with it.
    """
    if not tests:
        return []
    width = max(test.width for test in tests)
    padded = [np.pad(test.moves, ((0, width - test.width), (0, 0))) for test in tests]
    parts = exact_parts(np.concatenate(padded, axis=1))
    ends = np.cumsum([test.moves.shape[1] for test in tests])[:-1]
    counts = [0] * len(tests)
    for chunk, size in _chunks(n_swaps):
        moved = np.split(_moved(parts, chunk, size, seed), ends, axis=1)
        counts = [
            n + test.n_extreme(one) for n, test, one in zip(counts, tests, moved, strict=True)
        ]
    return counts


def _moved(parts: tuple[FloatArray, FloatArray], chunk: int, size: int, seed: int) -> FloatArray:
    """Return the columns' sums over random halves of the rows; shape (size, columns)."""
    # A stream of its own, independent of the bootstrap's under the same seed.
    rng, (width, n_columns) = np.random.default_rng([seed, 1, chunk]), parts[0].shape
    sums = np.zeros((2, size, n_columns))
    for start in range(0, width, _BLOCK):
        rows = slice(start, min(start + _BLOCK, width))
        bits = rng.integers(0, 256, (rows.stop - start, -(-size // 8)), np.uint8)
        swap = np.unpackbits(bits, axis=1)[:, :size].T.astype(np.float64)
        for total, part in zip(sums, parts, strict=True):  # whole numbers of units: no rounding
            total += swap @ part[rows]
    return np.asarray(sums.sum(axis=0), np.float64)


def _chunks(n_swaps: int) -> Iterator[tuple[int, int]]:
    for chunk, start in enumerate(range(0, n_swaps, _CHUNK)):
        yield chunk, min(_CHUNK, n_swaps - start)


def as_one_sum(ours: QuerySums, theirs: QuerySums) -> QuerySums | None:
    """Return what theirs less ours is made of, if it is an average itself: numerator, denominator.

    It is if both have the same denominator, unit by unit.
    """
    average, k = ours.averages[0]
    if len(average.ratios) > 1:
        return None
    places = [ours.positions[name, k] for name in average.ratios[0]]
    (before, under), (after, under_them) = (one.columns[:, places].T for one in (ours, theirs))
    if not np.array_equal(under, under_them):
        return None
    same = np.isclose(before, after, rtol=ROUNDING, atol=0.0)
    columns = np.stack([np.where(same, 0.0, after - before), under], axis=1)
    positions = {(name, k): place for place, name in enumerate(average.ratios[0])}
    return QuerySums(columns, positions, ours.averages)


def _least_first(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put the smaller row of each pair on the left, so that neither side has a name."""
    column = (one != other).argmax(axis=1)[:, np.newaxis]
    turned = np.take_along_axis(one, column, 1) > np.take_along_axis(other, column, 1)
    return np.where(turned, other, one), np.where(turned, one, other)


def _multiples(moves: FloatArray, observed: float) -> tuple[IntArray, int] | None:
    """Return values and their sum as multiples of their largest unit; ``None`` without one.

    Also where counting all swaps by it would take too long.
    """
    sizes = np.unique(np.round(moves, 12))
    if len(sizes) > _MOST_VALUES:
        return None
    fractions = [Fraction(one).limit_denominator(_LARGEST_DENOMINATOR) for one in sizes.tolist()]
    if any(abs(float(one) - size) > 1e-11 for one, size in zip(fractions, sizes, strict=True)):
        return None
    bottom = math.lcm(*(one.denominator for one in fractions))
    unit = math.gcd(*(int(one * bottom) for one in fractions)) / bottom
    if unit == 0 or len(moves) * float(moves.sum()) / unit > _MOST_STEPS:
        return None
    return np.rint(moves / unit).astype(np.int64), round(observed / unit)


def _exact_p(steps: IntArray, observed: int, tail: Tail) -> float:
    """Return how often whole numbers with random signs add up to as much.

    >>> _exact_p(np.array([1] * 10), 8, "both")  # 9 or 10 of 10 alike: 22 of 1,024
    0.021484375
    """
    shares, total = np.ones(1), 0
    for step in steps.tolist():  # how often those that count for it add up to 0, 1, 2, …
        longer = np.zeros(len(shares) + step)
        longer[: len(shares)] = shares / 2
        longer[step:] += shares / 2
        shares, total = longer, total + step
    sums = 2 * np.arange(total + 1) - total
    if tail == "both":
        extreme = np.abs(sums) >= abs(observed)
    else:
        extreme = sums >= observed if tail == "high" else sums <= observed
    p = math.fsum(shares[extreme].tolist())
    return min(max(p, float(np.finfo(np.float64).tiny)), 1.0)  # no evidence makes it 0
