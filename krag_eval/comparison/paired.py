"""Two systems on the same queries: the difference, its interval, and paired tests.

For :func:`krag_eval.compare`, which checks the results and words what is found. scipy loads when
it is needed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.comparison.permutation import (
    Estimate,
    Strictest,
    SwapTest,
    Tail,
    Test,
    TurnTest,
    as_one_sum,
    estimates,
)
from krag_eval.core import (
    DEFINED,
    METRICS,
    Average,
    Cutoff,
    FloatArray,
    ResultFacts,
    Rows,
    RowsInMemory,
)
from krag_eval.core.scoring.averages import QUERIES
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import Clusters, QuerySums, Sampling, Spread, Statistic

#: Metric -> system -> value per query that counts.
PerQuery: TypeAlias = Mapping[str, Mapping[str, FloatArray]]

#: How often a difference is shown that counts as one that can be.
POWER = 0.8
#: More random swaps than were asked for are made for Holm's correction up to here.
MOST_SWAPS = 100_000
#: By how much p of a gate on several runs counts more. They did not fail their own gates, so that
#: their mean is a little too good: at a level of 5 % it is up by 0.11 of a night's standard
#: deviation, and a new night fails 1.2 times as often as it should (benchmarks/history_gate.py).
OF_PASSED = 1.25


def paired_differences(
    results: Mapping[str, ResultFacts],
    metrics: Mapping[str, tuple[str, Cutoff]],
    drawing: Drawing,
    baseline: str | None = None,
    n_alike: int = 1,
) -> tuple[tuple[Difference, ...], PerQuery]:
    """Return the differences of the pairs on every metric, and the per-query values behind them.

    Args:
        results: Name -> result, comparable ones.
        metrics: Spelling -> (key, cutoff), all of them evaluated.
        drawing: How to draw and to test.
        baseline: The system that the others are held against; every pair if not given.
        n_alike: How many such sets of differences are corrected together, as those of slices are.
    """
    measured = {name: _Measured.of(name, one, metrics) for name, one in results.items()}
    first = [measured[baseline]] if baseline in measured else []
    others = [one for name, one in measured.items() if name != baseline]
    runs = _Runs.of(drawing.runs, [*results.values()][-1], metrics) if drawing.runs else None
    pairs = [
        _Pair(a, b, i, name, drawing.clusters, runs)
        for a, b in (product(first, others) if first else combinations(others, 2))
        for i, name in enumerate(metrics)
    ]
    n_tests = n_alike * sum(2 if pair.may_lack else 1 for pair in pairs)
    n_swaps = max(drawing.sampling.n_resamples, min(swaps_for(n_tests, drawing.sampling.level),
                  MOST_SWAPS))  # fmt: skip
    differences = _differences(pairs, drawing, n_swaps)
    per_metric = {
        name: {one.name: one.per_query[i] for one in measured.values()}
        for i, name in enumerate(metrics)
    }
    return corrected(differences, drawing.sampling.level), per_metric


def _share_of(average: Average, k: Cutoff) -> tuple[Average, Cutoff]:
    return Average("share", average.column, ((DEFINED + average.column, QUERIES),)), k


# What is corrected together: p, and what it is after Holm. A comparison asks in which a and b
# differ, a gate in which b is worse.
_DIFFER = {"p_permutation": "p_holm", "p_share": "p_share_holm"}
_WORSE = {"p_worse": "p_worse_holm", "p_fewer": "p_fewer_holm"}


def corrected(differences: Sequence[Difference], level: float) -> tuple[Difference, ...]:
    """Complete differences by what depends on how many were tested: Holm's p, what can be shown.

    Where chance might put a p on the other side of the level, more random swaps are made.
    """
    rows = list(differences)
    for family in (_DIFFER, _WORSE):
        n_tests = _correct(rows, family, 1 - level)
        # What is shown alone among so many must pass the first, hardest step of Holm's correction.
        alpha = (1 - level) / max(1, n_tests)
        if family is _DIFFER:
            rows = [replace(row, alpha=alpha) for row in rows]
    return tuple(rows)


def _correct(rows: list[Difference], family: Mapping[str, str], alpha: float) -> int:
    """Correct the p of a family in place, and return how many there are."""
    places = [(i, name) for i in range(len(rows)) for name in family]
    while True:
        p_values = [getattr(rows[i], name) for i, name in places]
        near = []
        for (i, name), p in zip(places, holm(p_values), strict=True):
            of_p: dict[str, Any] = {family[name]: p}
            rows[i] = replace(rows[i], **of_p)
            estimate = rows[i].estimates.get(name)
            if estimate is not None and estimate.is_near(p, alpha):
                near.append((i, name, estimate))
        for i, name, estimate in near:
            refined = estimate.refined()
            of_p = {name: refined.p, "estimates": {**rows[i].estimates, name: refined}}
            rows[i] = replace(rows[i], **of_p)
        if not near:
            return sum(not math.isnan(p) for p in p_values)


def swaps_for(n_tests: int, level: float) -> int:
    """Return how many random swaps it takes for the smallest p to be half of what Holm asks for.

    >>> swaps_for(1, 0.95), swaps_for(550, 0.95)
    (40, 22000)
    """
    return math.ceil(round(2 * n_tests / (1 - level), 6))


@dataclass(frozen=True)
class Difference:
    """How b differs from a on one metric.

    Attributes:
        a: Name of the first system.
        b: Name of the second.
        metric: The average and its cutoff, such as ``"ndcg@10"``.
        value_a: The average of a.
        value_b: The average of b.
        difference: ``value_b - value_a``. Positive is better for b, unless lower is better, as on
            ``mean_rank``. Where a query may have no value, as on ``mean_rank`` and ``redundancy``,
            it is over the queries where both systems have one.
        ci_low: Lower bound of the interval of the difference.
        ci_high: Upper bound.
        p_permutation: Two-sided p of the paired permutation test, never 0: whether a and b differ.
        p_t: Two-sided p of the paired t-test, never 0. NaN where the t-test does not apply: the
            average is not a mean over queries (micro averages, macro F1), or all queries differ by
            exactly the same amount. Of clusters:
            the difference over its clustered standard error, with a degree of freedom less than
            there are clusters.
        p_holm: ``p_permutation``, corrected for everything asked for in the same comparison.
        effect_size: Cohen's d_z. 0 if nothing differs, infinite if all queries differ by exactly
            the same amount, NaN where the average is not a mean over queries.
        wins: Queries on which b is better than a by the metric's value for the query, also where
            the average is a micro one. On ``mean_rank``, found is better than not found.
        ties: Queries on which they are equal, or one is undefined.
        losses: Queries on which b is worse.
        average: How the metric is made and read: its direction, its labels.
        spread: Standard deviation of the paired differences, standard error of their mean, and
            design effect; of an average that is no mean, by the jackknife.
        n_both: Where queries may have no value: the number of those where both systems have one.
        share_a: Where some have none: the share of the queries where a has a value, else NaN.
        share_b: That of b.
        p_share: Two-sided p of the permutation test of these shares.
        p_share_holm: ``p_share``, corrected as ``p_holm``.
        is_of_fewer: Whether b has the better average, of fewer queries: it is not called better.
        p_worse: In a gate: one-sided p of the hypothesis that b is worse by no more than may drop.
        p_worse_holm: ``p_worse``, corrected for everything that the gate asks.
        p_fewer: In a gate: one-sided p of the hypothesis that no fewer queries have a value in b.
        p_fewer_holm: ``p_fewer``, corrected as ``p_worse_holm``.
        estimates: Name of a p -> the test behind it.
        alpha: What p must be below to be shown alone among everything asked for; NaN where nothing
            was tested.
        slice: The slice of the queries it is about; ``None`` if it is about all of them.
        n: Queries of the slice that count; 0 if it is about none.
    """

    a: str
    b: str
    metric: str
    value_a: float
    value_b: float
    difference: float
    ci_low: float
    ci_high: float
    p_permutation: float
    p_t: float
    p_holm: float
    effect_size: float
    wins: int
    ties: int
    losses: int
    average: Average | None = field(default=None, repr=False)
    spread: Spread | None = field(default=None, repr=False)
    n_both: int = field(default=0, repr=False)
    share_a: float = field(default=math.nan, repr=False)
    share_b: float = field(default=math.nan, repr=False)
    p_share: float = field(default=math.nan, repr=False)
    p_share_holm: float = field(default=math.nan, repr=False)
    is_of_fewer: bool = field(default=False, repr=False)
    p_worse: float = field(default=math.nan, repr=False)
    p_worse_holm: float = field(default=math.nan, repr=False)
    p_fewer: float = field(default=math.nan, repr=False)
    p_fewer_holm: float = field(default=math.nan, repr=False)
    estimates: Mapping[str, Estimate] = field(default_factory=dict, repr=False, compare=False)
    alpha: float = field(default=math.nan, repr=False)
    slice: str | None = field(default=None, repr=False)
    n: int = field(default=0, repr=False)

    @property
    def fewest(self) -> int:
        """How many queries, or clusters, it takes for a gate to show any drop at all."""
        return math.floor(math.log2(1 / self.alpha)) + 1

    @cached_property
    def detectable(self) -> float:
        """The smallest true difference that four in five such sets of queries would show.

        At this level, among as many comparisons (two-sided). 0 if no query differs, NaN where the
        standard error is undefined or the queries are too few to show any.
        """
        if self.spread is None or math.isnan(self.alpha):
            return math.nan
        return self.spread.detectable(self.alpha, POWER)

    @property
    def drop(self) -> float:
        """How much worse b is than a; negative if it is better."""
        lower = self.average is not None and self.average.lower_is_better
        return self.difference if lower else -self.difference

    @property
    def better(self) -> str | None:
        """The system with the better average, surely or not; ``None`` if neither or undefined."""
        return self.b if self.drop < 0 else self.a if self.drop > 0 else None

    @property
    def is_of_more(self) -> bool:
        """Whether b is worse where both have a value, and has one for more queries."""
        return self.drop > 0 and self.share_b > self.share_a

    def is_shown(self, level: float = 0.95) -> bool:
        """Tell whether a difference, of either sign, is shown and not only seen.

        So it is if the corrected p is below ``1 - level``; the interval does not decide. Where
        queries may have no value, b is not better if it has one for fewer of them; it is worse if
        its values are, also where it has one for more.
        """
        return self.p_holm < 1 - level and not self.is_of_fewer

    def shows_fewer(self, level: float = 0.95) -> bool:
        """Tell whether b is shown to have a value for fewer queries than a."""
        return self.p_share_holm < 1 - level and self.share_b < self.share_a

    def fails(self, level: float = 0.95) -> bool:
        """Tell whether a gate shows that b is worse by more than may drop: its one question."""
        return self.p_worse_holm < 1 - level

    def fails_to_find(self, level: float = 0.95) -> bool:
        """Tell whether a gate shows that b has a value for fewer queries."""
        return self.p_fewer_holm < 1 - level


def unknown(a: str, b: str, metric: str, average: Average | None, **known: Any) -> Difference:
    """Return a difference of which nothing is known but what is given."""
    names = ("value_a", "value_b", "difference", "ci_low", "ci_high", "p_permutation", "p_t")
    numbers: dict[str, Any] = dict.fromkeys((*names, "p_holm", "effect_size"), math.nan)
    numbers |= dict.fromkeys(("wins", "ties", "losses"), 0)
    return Difference(a, b, metric, average=average, **(numbers | known))


class Drawing(NamedTuple):
    """How to draw and to test.

    Attributes:
        sampling: Level of the intervals, number and seed of resamples and of random swaps.
        clusters: What to draw and to swap as a whole; ``None`` for each query by itself.
        max_drop: How far b may fall behind a in a gate; ``None`` where it is not asked whether b is
            worse.
        runs: The runs whose mean a is, in a gate on a history.
    """

    sampling: Sampling
    clusters: Clusters | None = None
    max_drop: float | None = None
    runs: Sequence[ResultFacts] = ()


@dataclass(frozen=True)
class _Measured:
    """One result, reduced to what comparing needs; lists and last axes run over the metrics.

    Sums and values are also of the shares of the queries that have a value, where some may have
    none.
    """

    name: str
    sums: QuerySums
    values: list[float]
    per_query: list[FloatArray]

    @classmethod
    def of(
        cls, name: str, result: ResultFacts, metrics: Mapping[str, tuple[str, Cutoff]]
    ) -> _Measured:
        sums = intervals.sums_of({"": result}, metrics)[0]
        lacking = [i for i in range(len(metrics)) if sums.may_lack(i)]
        if lacking:
            shares = [_share_of(*sums.averages[i]) for i in lacking]
            sums = QuerySums.of(result, [*sums.averages, *shares])
        values = [result.averages(k)[key] for key, k in metrics.values()]
        values += [float(sums.has_value(i).mean()) for i in lacking]
        per_query = [_outcomes(result, one.column, k) for one, k in sums.averages[: len(metrics)]]
        return cls(name, sums, values, per_query)


def _outcomes(result: ResultFacts, column: str, k: Cutoff) -> FloatArray:
    """Return the per-query values; the rank of what was not found is infinite."""
    values = intervals.per_query(result, column, k)
    is_rank = column == METRICS["rank"].name
    return np.where(np.isnan(values), np.inf, values) if is_rank else values


@dataclass(frozen=True)
class _Runs:
    """The runs before, query by query as the new result has them.

    Attributes:
        sums: What the averages are made of, of each run; zeros where it lacks the query.
        has: Whether a run has the query; shape (runs, queries).
    """

    sums: list[QuerySums]
    has: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        runs: Sequence[ResultFacts],
        new: ResultFacts,
        metrics: Mapping[str, tuple[str, Cutoff]],
    ) -> _Runs:
        averages = [(new.definitions[key], k) for key, k in metrics.values()]
        order, sums = _keys(new), []
        has = np.zeros((len(runs), len(order)), np.bool_)
        for one, known in zip(runs, has, strict=True):
            own, place = QuerySums.of(one, averages), {key: i for i, key in enumerate(_keys(one))}
            at = np.array([place.get(key, -1) for key in order], np.int64)
            known[:] = at >= 0
            columns = np.where(known[:, np.newaxis], own.columns[at], 0.0)
            sums.append(replace(own, columns=columns))
        return cls(sums, has)

    def where(self, chosen: NDArray[np.bool_], i: int) -> _Runs:
        """Return one of the averages over some queries; a run lacks those without a value in it."""
        has = np.stack([one.has_value(i) > 0 for one in self.sums]) & self.has
        return _Runs([one.where(chosen, i) for one in self.sums], has[:, chosen])


def _keys(result: ResultFacts) -> list[tuple[str | int, int]]:
    """Return a key for each query that counts: its label, and how often that came before."""
    seen: Counter[str | int] = Counter()
    keys = []
    for label, counts in zip(result.labels, result.counted.tolist(), strict=True):
        if counts:
            keys.append((label, seen[label]))
            seen[label] += 1
    return keys


@dataclass(frozen=True)
class _Pair:
    """Two systems on one metric."""

    a: _Measured
    b: _Measured
    i: int
    metric: str
    clusters: Clusters | None
    runs: _Runs | None

    @property
    def average(self) -> Average:
        return self.b.sums.averages[self.i][0]

    @property
    def values(self) -> tuple[float, float]:
        return self.a.values[self.i], self.b.values[self.i]

    @property
    def per_query(self) -> tuple[FloatArray, FloatArray]:
        return self.a.per_query[self.i], self.b.per_query[self.i]

    @property
    def units(self) -> tuple[QuerySums, QuerySums]:
        """What the average is made of in both, query by query or cluster by cluster."""
        ours, theirs = (one.sums.only(self.i).grouped(self.clusters) for one in (self.a, self.b))
        return ours, theirs

    @property
    def may_lack(self) -> bool:
        """Whether a query has no value in one of them."""
        return any((one.sums.has_value(self.i) < 1).any() for one in (self.a, self.b))

    @property
    def shares(self) -> _Pair:
        """The shares of the queries that have a value, in place of the values."""
        share = _share_of(*self.a.sums.averages[self.i])
        return replace(self, i=self.a.sums.averages.index(share), runs=None)

    @property
    def both(self) -> _Pair | None:
        """The pair on the queries where both have a value; ``None`` if there is none."""
        has = [one.sums.has_value(self.i) > 0 for one in (self.a, self.b)]
        if not (both := has[0] & has[1]).any():
            return None
        a, b = (
            _Measured(one.name, one.sums.where(both, self.i), [float(np.sort(part).mean())], [part])
            for one in (self.a, self.b)
            for part in [one.per_query[self.i][both]]
        )
        clusters, runs = self.clusters and self.clusters.within(both), self.runs
        return _Pair(a, b, 0, self.metric, clusters, runs and runs.where(both, self.i))

    @property
    def sign(self) -> float:
        """-1 where b comes first in what is drawn, so that a pair and its mirror draw alike.

        The first is the one with the larger value. 0 if the pair is its own mirror.
        """
        if self.values[0] != self.values[1]:
            return math.copysign(1.0, self.values[0] - self.values[1])
        ours, theirs = (one.columns for one in self.units)
        here, mirrored = (
            intervals.in_order(np.concatenate(two, axis=1)).tolist()
            for two in ((ours, theirs), (theirs, ours))
        )
        return 0.0 if here == mirrored else -1.0 if here > mirrored else 1.0

    def statistic(self) -> Statistic:
        """Return what is drawn to see how far the difference would move."""
        sign, (first, second) = self.sign, self.units
        if sign < 0:
            first, second = second, first
        n, difference = first.columns.shape[1], as_one_sum(first, second)

        def of(sums: FloatArray) -> FloatArray:
            if difference is not None:
                moved = difference.average(0, sums)
            else:
                moved = second.average(0, sums[:, n:]) - first.average(0, sums[:, :n])
            if sign == 0:  # either way round is as likely
                return np.concatenate([moved, -moved])
            return sign * moved + 0.0  # no -0

        if difference is not None:
            return difference.columns, of
        return np.concatenate([first.columns, second.columns], axis=1), of

    def differ(self) -> SwapTest:
        """Return the test whether they differ."""
        return SwapTest.of(*self.units, self.values, "both")

    def is_worse(self, max_drop: float) -> Test:
        """Return the test whether b falls further behind than it may.

        a is lowered by exactly that much before outcomes are swapped: every query's value of a
        mean, each numerator by the same share of its denominator in a micro average, all numerators
        in proportion in an F1 of averages. What shows a larger drop must also show one; and what
        shows a drop from the mean of several runs, that it is none of these.
        """
        tail: Tail = "high" if self.average.lower_is_better else "low"
        ours, theirs = self.units
        tests: list[Test] = [SwapTest.of(ours, theirs, self.values, tail)]
        by = -max_drop if self.average.lower_is_better else max_drop
        if max_drop and len(self.average.ratios) > 1 and self.values[0] <= by:
            return SwapTest.of(ours, ours, self.values[:1] * 2, tail)  # no room for such a drop
        if max_drop:
            lower = replace(ours, columns=self._lowered(ours, ours.columns, by))
            tests.append(SwapTest.of(lower, theirs, (self.values[0] - by, self.values[1]), tail))
        if self.runs is None:
            return Strictest(tuple(tests))
        return Strictest((*tests, self._turn(theirs, by, tail)), OF_PASSED)

    def _turn(self, new: QuerySums, by: float, tail: Tail) -> TurnTest:
        """Return the test whether the new run is one of the runs before, lowered by so much."""
        assert self.runs is not None
        columns, has = [], [np.ones((1, len(new.columns)), np.bool_)]
        for sums, known in zip(self.runs.sums, self.runs.has, strict=True):
            own = sums.only(self.i).grouped(self.clusters)
            columns.append(self._lowered(own, own.columns, by) if by else own.columns)
            if self.clusters is not None:  # a run has a cluster if it has all of its queries
                known = np.bincount(self.clusters.number, ~known, self.clusters.n) == 0
            has.append(known[np.newaxis])
        return TurnTest.of(new, np.stack([new.columns, *columns]), np.concatenate(has), tail)

    def _lowered(self, sums: QuerySums, columns: FloatArray, by: float) -> FloatArray:
        """Return the columns of an average that is lower by so much, in every query alike."""
        (average, k), columns = sums.averages[0], columns.copy()
        for top, bottom in average.ratios:
            place, under = sums.positions[top, k], sums.positions[bottom, k]
            if len(average.ratios) > 1:
                columns[:, place] *= 1 - by / self.values[0]
            else:
                columns[:, place] -= by * columns[:, under]
        return columns


def _differences(pairs: Sequence[_Pair], drawing: Drawing, n_swaps: int) -> list[Difference]:
    """Compare pairs, each on the queries where both have a value."""
    on = [pair.both if pair.may_lack else pair for pair in pairs]
    tests = [(i, name, test) for i, pair in enumerate(pairs)
             for name, test in _tests(pair, on[i], drawing.max_drop)]  # fmt: skip
    found: list[dict[str, Estimate]] = [{} for _ in pairs]
    made = estimates([test for *_, test in tests], n_swaps, drawing.sampling.seed)
    for (i, name, _test), estimate in zip(tests, made, strict=True):
        found[i][name] = estimate
    resampled = _resampled([pair for pair in on if pair is not None], drawing.sampling)
    return [
        _difference(pair, own, found[i], next(resampled) if own is not None else None, drawing)
        for i, (pair, own) in enumerate(zip(pairs, on, strict=True))
    ]


def _tests(pair: _Pair, on: _Pair | None, max_drop: float | None) -> Iterator[tuple[str, Test]]:
    """Yield the tests of a pair, by the name of their p."""
    if on is not None:
        yield "p_permutation", on.differ()
        if max_drop is not None:
            yield "p_worse", on.is_worse(max_drop)
    # Where one has no value at all, there is nothing to say of its average.
    if pair.may_lack and all(one.sums.has_value(pair.i).any() for one in (pair.a, pair.b)):
        shares = pair.shares
        yield "p_share", shares.differ()
        if max_drop is not None:
            yield "p_fewer", SwapTest.of(*shares.units, shares.values, "low")


def _resampled(pairs: Sequence[_Pair], sampling: Sampling) -> Iterator[FloatArray]:
    """Return the difference of each pair in every resample; those of as many units drawn alike."""
    statistics = [pair.statistic() for pair in pairs]
    of_size: defaultdict[int, list[int]] = defaultdict(list)
    for i, (columns, _of) in enumerate(statistics):
        of_size[len(columns)].append(i)
    found: dict[int, FloatArray] = {}
    for places in of_size.values():
        drawn = intervals.resampled([statistics[i] for i in places], sampling)
        found |= zip(places, drawn, strict=True)
    return (found[i] for i in range(len(pairs)))


def _difference(
    pair: _Pair,
    on: _Pair | None,
    found: Mapping[str, Estimate],
    resampled: FloatArray | None,
    drawing: Drawing,
) -> Difference:
    """Return the difference of a pair on the queries where both have a value."""
    known: dict[str, Any] = {name: one.p for name, one in found.items()}
    known |= {"estimates": found, **_wins(pair)}
    if pair.may_lack:
        known |= {
            "n_both": 0 if on is None else len(on.per_query[0]),
            "share_a": pair.shares.values[0],
            "share_b": pair.shares.values[1],
        }
    if on is None or resampled is None:
        known |= dict(zip(("value_a", "value_b"), pair.values, strict=True))
        return unknown(pair.a.name, pair.b.name, pair.metric, pair.average, **known)
    row = _of_all(on, resampled, known, drawing)
    # Who finds one query more is not excused for ranking all the others lower.
    return replace(row, is_of_fewer=row.drop < 0 and row.share_b < row.share_a)


def _wins(pair: _Pair) -> dict[str, Any]:
    """Count the queries on which b is better, equal and worse."""
    changes = changes_of(*pair.per_query)
    gains = -changes if pair.average.lower_is_better else changes
    return {
        "wins": int(np.count_nonzero(gains > 0)),
        "ties": int(np.count_nonzero(gains == 0)),
        "losses": int(np.count_nonzero(gains < 0)),
    }


def _of_all(
    pair: _Pair, resampled: FloatArray, known: Mapping[str, Any], drawing: Drawing
) -> Difference:
    """Return the difference of two systems that have a value for every query."""
    (value_a, value_b), (a, b) = pair.values, pair.per_query
    # With 30 queries, it covers the true difference of macro recall in 92 % of cases, BCa in 89 %.
    low, high = intervals.interval(resampled, value_b - value_a, drawing.sampling.level)
    is_mean = pair.average.is_mean and all(np.isfinite(one).all() for one in (a, b))
    spread = Spread.of(_pulls((a, b), (pair.a.sums, pair.b.sums), pair.i), pair.clusters)
    return Difference(
        a=pair.a.name,
        b=pair.b.name,
        metric=pair.metric,
        value_a=value_a,
        value_b=value_b,
        difference=value_b - value_a,
        ci_low=low,
        ci_high=high,
        p_t=_t_test_p(a, b, spread) if is_mean else math.nan,
        p_holm=math.nan,
        effect_size=_effect_size(changes_of(a, b)) if is_mean else math.nan,
        average=pair.average,
        spread=spread,
        **known,
    )


def spread_of(
    results: Sequence[ResultFacts],
    metric: tuple[str, Cutoff],
    clusters: Clusters | None = None,
) -> Spread:
    """Return the spread of an average of one result, or of the paired differences of two."""
    key, k = metric
    averages = [(results[0].definitions[key], k)]
    sums = [QuerySums.of(result, averages) for result in results]
    values = [_outcomes(result, averages[0][0].column, k) for result in results]
    return Spread.of(_pulls(values, sums, 0), clusters)


def _pulls(values: Sequence[FloatArray], sums: Sequence[QuerySums], i: int) -> FloatArray:
    """Return how far each query pulls an average, or the difference of two, from one value."""
    average, _ = sums[0].averages[i]
    if average.is_mean and all(np.isfinite(one).all() for one in values):
        return changes_of(values[0], values[1]) if len(values) > 1 else values[0]
    pulls = [one.influences(i) for one in sums]
    return pulls[1] - pulls[0] if len(pulls) > 1 else pulls[0]


def changes_of(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return b minus a per query: 0 where they differ by rounding alone, or one is undefined."""
    same = np.isclose(a, b, rtol=intervals.ROUNDING, atol=0.0) | np.isnan(a) | np.isnan(b)
    return np.subtract(b, a, out=np.zeros(len(a)), where=~same)


def _t_test_p(a: FloatArray, b: FloatArray, spread: Spread) -> float:
    """Return the two-sided p of the paired t-test: 1 if nothing differs, NaN without a spread."""
    changes = np.sort(changes_of(a, b))  # sums in another order differ by rounding
    if not changes.any():
        return 1.0
    if not _varies(changes):
        return math.nan
    if spread.n_clusters is not None:
        p = _clustered_p(changes, spread)
    else:
        from scipy.stats import ttest_1samp

        p = float(ttest_1samp(changes, 0.0).pvalue)
    # Far out in the tail it underflows; no evidence makes it 0.
    return max(p, float(np.finfo(np.float64).tiny))


def _clustered_p(changes: FloatArray, spread: Spread) -> float:
    """Return the p of a t-test with as many degrees of freedom as clusters, less one."""
    from scipy.special import stdtr

    # Rounding apart, it is 0 where every cluster has the same mean for its size.
    rounding = intervals.ROUNDING * float(np.abs(changes).max())
    if spread.n_clusters is None or not spread.standard_error > rounding:
        return math.nan
    t = abs(float(changes.mean())) / spread.standard_error
    return 2 * float(stdtr(spread.n_clusters - 1, -t))


def _effect_size(changes: FloatArray) -> float:
    """Return Cohen's d_z; 0 if nothing differs, infinite if all queries differ alike."""
    changes = np.sort(changes)
    mean = float(changes.mean())
    if not changes.any():
        return 0.0
    return mean / float(changes.std(ddof=1)) if _varies(changes) else math.copysign(math.inf, mean)


def _varies(changes: FloatArray) -> bool:
    return float(np.ptp(changes)) > intervals.ROUNDING * float(np.abs(changes).max())


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979); an undefined one stays so and counts not.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    corrected = [math.nan] * len(p_values)
    defined = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    largest = 0.0
    for rank, (p, i) in enumerate(defined):
        largest = max(largest, min(1.0, p * (len(defined) - rank)))
        corrected[i] = largest
    return corrected


def rows_at(
    rows: Rows, positions: Sequence[int] | NDArray[np.int64], cutoffs: Sequence[Cutoff]
) -> RowsInMemory:
    """Return some of the rows, in the order of their positions, at some of the cutoffs."""
    at = np.asarray(positions, np.int64)
    places, labels, digests = at.tolist(), rows.labels, rows.digests
    return RowsInMemory(
        labels=[labels[i] for i in places],
        tables={
            k: {name: np.asarray(column)[at] for name, column in rows.tables[k].items()}
            for k in cutoffs
        },
        counted=rows.counted[at],
        digests=None if digests is None else [digests[i] for i in places],
        tags={name: [values[i] for i in places] for name, values in rows.tags.items()},
        judged=None if rows.judged is None else rows.judged.at(places),
        unwanted=None if rows.unwanted is None else [rows.unwanted[i] for i in places],
    )
