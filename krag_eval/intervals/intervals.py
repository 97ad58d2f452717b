"""Confidence intervals: how far each average would move had other queries been asked.

The bootstrap over queries, or over clusters of queries that belong together, for single results
and, by :mod:`krag_eval.comparison.paired`, for pairs; and for the budget that reaches a recall,
which is no average. scipy and pandas load when an interval is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    DEFINED,
    METRICS,
    Advice,
    Average,
    Budget,
    Cutoff,
    InvalidInput,
    Rows,
    Shown,
    _,
    clipped,
    errors,
    must,
    ngettext,
    spelled,
    warn,
)
from krag_eval.core.results.evidence import no_lengths
from krag_eval.core.results.rows import RowsInFile
from krag_eval.core.scoring import cutoffs
from krag_eval.core.scoring.averages import QUERIES
from krag_eval.core.scoring.cutoffs import Measure, Unit
from krag_eval.intervals.sums import exact_parts, exact_sums

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.core import ResultFacts, Tag

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntervalMethod: TypeAlias = Literal["BCa", "percentile"]

#: With fewer queries than this, a 95 % interval of macro recall covers the truth in less than
#: 93 % of cases (benchmarks/interval_coverage.py).
FEW_QUERIES = 30
#: With fewer clusters than this, clustered intervals are too narrow in the same way.
FEW_CLUSTERS = 20
# Differences below this share of a value are rounding: sums of 10,000 floats agree to 1e-13.
ROUNDING = 1e-12
# Draws held in memory together; three arrays of this many 8-byte numbers are alive in a block.
_BLOCK = 2_000_000
_FEWEST_RESAMPLES = 100
# How exact a detectable difference is, and how far the power of a discrete test is looked ahead.
_OF_A_DETECTABLE, _STEPS_BACK = 1e-6, 20
# With more queries than this, the normal distribution tells a test's power to more than it takes.
_SMOOTH_FROM = 100_000
# 9 of 10 is a recall of 0.9, whatever the sum of ten floats says.
_OF_A_RECALL = 1e-9


def confidence_intervals(
    result: ResultFacts,
    level: float = 0.95,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
    metrics: Iterable[str] | None = None,
    method: IntervalMethod = "BCa",
    clusters: str | None = None,
) -> pd.DataFrame:
    """Return an interval for every average of a result, at every cutoff.

    **Shares.** An average between 0 and 1 that is 0 or 1 for every query here, such as a hit rate,
    or recall where each query has one item, is a share of the queries. Its interval is the score
    interval (Wilson 1927), which has a width at 0 and 1 as well; equal shares of as many queries
    have equal intervals, whatever the metric is called.

    **All others.** The counted queries are drawn again with replacement, ``n_resamples`` times;
    each average is recomputed from what was drawn, micro averages as ratios of the redrawn sums.
    All averages and cutoffs share the same draws. The interval is the bias-corrected and
    accelerated one (BCa, Efron 1987), which keeps its level for skewed metrics and never leaves
    the metric's range, or the plain percentile interval. Numbers are those of
    ``scipy.stats.bootstrap`` with ``rng=numpy.random.default_rng(seed)`` for the queries in
    ascending order of their values, except where that gives NaN (see below): in whatever order they
    were asked, an interval is the same.

    An interval says how far the average would move with other queries *of the same kind*. It knows
    nothing of wrong ground truth, of a badly chosen threshold, or of queries of another kind.

    Queries that were made from the same document do alike, and then as many queries say less than
    they seem to. With ``clusters``, whole clusters are drawn instead of queries, and a share is
    taken as one of ``n / design_effect`` queries (at most ``n``); of queries that are all 0 or all
    1, which do not tell how alike those of a cluster are, as if each cluster spoke with one voice
    (n²/Σ_c n_c²).

    Args:
        result: The result; only its per-query table is needed, no texts.
        level: How often such an interval should cover the true average, between 0 and 1.
        n_resamples: Number of resamples.
        seed: The same seed gives the same digits.
        metrics: Averages with their cutoffs, such as ``["macro_recall@5"]``; all if not given.
        method: ``"BCa"`` or ``"percentile"``, for averages that are no shares of the queries.
        clusters: A tag of the queries, such as ``"source"``: those that share its value belong
            together. A query without a value is a cluster of its own.

    Returns:
        One row per average and cutoff, indexed by its spelling (``"ndcg@10"``), with the columns
        ``metric``, ``k`` (``"all"`` for no cutoff, ``"1000w"`` for a budget), ``value``, ``low``
        and ``high``; with ``clusters`` also ``standard_error``, the clustered one, and
        ``design_effect``: how many times as many queries it takes as if they were independent.
        Where all queries have one value, resampling does not tell how far it would move, and these
        two are NaN. Resamples in which nothing was found say nothing about ``mean_rank`` and are
        left out of its interval; where nothing was found at all, its value and interval are NaN.
        The same holds for a metric of your own that is undefined for some queries.

    Raises:
        InvalidType: If an argument is of the wrong type.
        InvalidInput: If an argument is out of range, no query counts in the averages, or the
            queries have no such tag or all the same value of it.

    Warns:
        KragEvalWarning: If intervals rest on fewer than 30 queries or 20 clusters, there is none
            although the average could have been another, or queries lack the tag or failed.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> actual, predicted = [["a", "b"]] * 40, [["a", "x"]] * 30 + [["x", "y"]] * 10
    >>> evaluator = OfflineRetrievalEvaluator(actual, predicted)
    >>> result = evaluator.evaluate(k=2, metrics=["recall", "reciprocal_rank"])
    >>> confidence_intervals(result).round(4)
                          metric  k  value     low    high
    average
    micro_recall@2  micro_recall  2  0.375  0.3000  0.4375
    macro_recall@2  macro_recall  2  0.375  0.3000  0.4375
    mrr@2                    mrr  2  0.750  0.5981  0.8581
    """
    import pandas as pd

    sampling = check_sampling(level, n_resamples, seed)
    errors.one_of("method", method, ("BCa", "percentile"))
    check_counted(result)
    every = every_average(result)
    chosen = (
        every if metrics is None else [errors.one_of("metrics", one, [*every]) for one in metrics]
    )
    averages = {name: every[name] for name in chosen}
    grouped = None if clusters is None else Clusters.of([result], clusters)
    found = standings({"": result}, averages, sampling, grouped, method)
    rows = [
        (key, k if isinstance(k, int) else spelled(k), *found[name][""])
        for name, (key, k) in averages.items()
    ]
    index = pd.Index(list(averages), name="average")
    table = pd.DataFrame(rows, index, ["metric", "k", "value", "low", "high"])
    (sums,) = sums_of({"": result}, averages)
    if grouped is not None:
        spreads = [Spread.of(sums.influences(i), grouped) for i in range(len(averages))]
        table["standard_error"] = [one.standard_error for one in spreads]
        table["design_effect"] = [one.design_effect for one in spreads]
    for told in result.summary.caveats():
        warn(told)
    _warn_of_weak_intervals(table, sums, clustered=grouped is not None)
    return table


def every_average(result: ResultFacts) -> dict[str, tuple[str, Cutoff]]:
    """Return all averages of a result: spelling -> (key, cutoff)."""
    return {f"{key}@{spelled(k)}": (key, k) for k in result.k for key in result.averages(k)}


class Sampling(NamedTuple):
    """How to resample, and the level of intervals."""

    level: float
    n_resamples: int
    seed: int


def check_sampling(level: Any = 0.95, n_resamples: Any = 10_000, seed: Any = 0) -> Sampling:
    """Return arguments that intervals and tests can be made from.

    Raises:
        InvalidType: If one is of the wrong type.
        InvalidInput: If one is out of range.
    """
    if errors.number("level", level, 0, 1) in (0, 1):
        raise must("level", "be between 0 and 1, such as 0.95", level)
    n_resamples = errors.whole("n_resamples", n_resamples, _FEWEST_RESAMPLES)
    return Sampling(float(level), n_resamples, errors.whole("seed", seed, 0))


def check_counted(result: ResultFacts) -> None:
    """Refuse a result without queries to draw from.

    Raises:
        InvalidInput: If no query counts in its averages.
    """
    if not result.counted.any():
        problem = ": no query counts in its averages, so nothing can be resampled"
        raise InvalidInput("result", problem)


def per_query(result: ResultFacts | Rows, column: str, k: Cutoff) -> FloatArray:
    """Return a column over the counted queries, NaN where it is undefined."""
    if column == QUERIES:
        return np.ones(np.count_nonzero(result.counted))
    # Of several runs, there is a column of in how many of them it is defined.
    if column.startswith(DEFINED) and column not in result.tables[k]:
        values = per_query(result, column.removeprefix(DEFINED), k)
        return np.asarray(~np.isnan(values), np.float64)
    return np.asarray(result.tables[k][column][result.counted], np.float64)


@dataclass(frozen=True)
class QuerySums:
    """Averages as functions of sums over queries, so that resampling them is a matrix product.

    Attributes:
        columns: What is summed; shape (counted queries, columns).
        positions: Name of a sum and cutoff -> its position among the columns.
        averages: The averages, each with its cutoff.
    """

    columns: FloatArray
    positions: Mapping[tuple[str, Cutoff], int]
    averages: tuple[tuple[Average, Cutoff], ...]

    @classmethod
    def of(
        cls, result: ResultFacts | Rows, averages: Sequence[tuple[Average, Cutoff]]
    ) -> QuerySums:
        """Gather what the averages at their cutoffs are made of.

        The columns' order depends on the averages alone, so that two results can be subtracted.
        """
        places = dict.fromkeys((name, k) for average, k in averages for name in average.sums)
        columns = np.stack([per_query(result, *place) for place in places], axis=1)
        positions = {place: position for position, place in enumerate(places)}
        return cls(np.nan_to_num(columns, nan=0.0), positions, tuple(averages))

    def has_value(self, i: int) -> FloatArray:
        """Return whether each query has a value of one of the averages, 0 or 1; mostly all have.

        Of several runs, it is in what share of them.
        """
        average, k = self.averages[i]
        if not self.may_lack(i):
            return np.ones(len(self.columns))
        return self.columns[:, self.positions[DEFINED + average.column, k]]

    def may_lack(self, i: int) -> bool:
        """Tell whether a query may have no value of one of the averages."""
        average = self.averages[i][0]
        return average.ratios == ((average.column, DEFINED + average.column),)

    def only(self, i: int) -> QuerySums:
        """Return what one of the averages is made of, over all queries."""
        average, k = self.averages[i]
        positions = {(name, k): place for place, name in enumerate(dict.fromkeys(average.sums))}
        columns = self.columns[:, [self.positions[place] for place in positions]]
        return QuerySums(columns, positions, (self.averages[i],))

    @property
    def total(self) -> FloatArray:
        """The columns' sums over all queries, in whatever order they are."""
        leading, trailing = exact_parts(self.columns)
        return np.asarray(leading.sum(axis=0) + trailing.sum(axis=0), np.float64)

    def where(self, chosen: NDArray[np.bool_], i: int) -> QuerySums:
        """Return one of the averages over some of the queries, all of which have a value."""
        columns, (average, k) = self.columns[chosen], self.averages[i]
        columns[:, self.positions[DEFINED + average.column, k]] = 1.0
        return replace(self, columns=columns, averages=(self.averages[i],))

    def average(self, i: int, sums: FloatArray) -> FloatArray:
        """Return one of the averages that follow from sums, shape (…, columns) -> (…)."""
        average, k = self.averages[i]
        named = {name: sums[..., self.positions[name, k]] for name in average.sums}
        return np.asarray(average.of(named), np.float64)

    def all_averages(self, sums: FloatArray) -> FloatArray:
        """Return all averages that follow from sums, shape (…, columns) -> (…, averages)."""
        return np.stack([self.average(i, sums) for i in range(len(self.averages))], axis=-1)

    def leave_one_out(self) -> FloatArray:
        """Return the averages without each query in turn; shape (queries, averages)."""
        return self.all_averages(self.total - self.columns)

    def influences(self, i: int) -> FloatArray:
        """Return how far each query pulls one of the averages; shape (queries,).

        Of a mean these are the queries' values minus the mean, of another average the jackknife's
        (Efron and Tibshirani 1993, chapter 11). NaN where the average needs that query.
        """
        total = self.total
        pulls = self.average(i, total) - self.average(i, total - self.columns)
        pulls[np.abs(pulls) <= ROUNDING] = 0.0
        return np.asarray((len(pulls) - 1) * pulls, np.float64)

    def grouped(self, clusters: Clusters | None) -> QuerySums:
        """Return the sums over each cluster in place of those of each query, if there are any."""
        if clusters is None:
            return self
        leading, trailing = (
            np.stack(
                [np.bincount(clusters.number, column, clusters.n) for column in part.T], axis=1
            )
            for part in exact_parts(self.columns)
        )
        return replace(self, columns=np.asarray(leading + trailing, np.float64))

    def shares(self, i: int) -> tuple[FloatArray, BoolArray] | None:
        """Return the zeros and ones that an average is the plain mean of, if it is one.

        It is if it lies between 0 and 1, every query by itself has 0 or 1, and all of them weigh
        the same or have the same.

        Returns:
            They, and which queries they are of: those for which the average is defined.
        """
        average, k = self.averages[i]
        weights = self.columns[:, [self.positions[name, k] for _, name in average.ratios]]
        defined: BoolArray = np.all(weights > 0, axis=1)
        alone, weights = self.average(i, self.columns)[defined], weights[defined]
        if average.range != (0.0, 1.0) or not len(alone) or not np.isin(alone, (0.0, 1.0)).all():
            return None
        if np.ptp(alone) > 0 and np.ptp(weights, axis=0).any():
            return None
        value = float(self.average(i, self.columns.sum(axis=0)))
        return (alone, defined) if abs(alone.mean() - value) <= ROUNDING else None

    def n_queries(self, i: int) -> int:
        """Return over how many queries an average is formed."""
        average, k = self.averages[i]
        means = [self.positions[name, k] for _, name in average.ratios if name.startswith(DEFINED)]
        return int(self.columns[:, means].sum(axis=0).min(initial=len(self.columns)))


def tags_of(results: Sequence[ResultFacts | Rows], tag: str, argument: str) -> Sequence[Tag] | None:
    """Return the value of a tag for each query that all results have; ``None`` without the tag.

    Raises:
        InvalidInput: If two results have the tag and differ in it.
    """
    tagged = [result.tags[tag] for result in results if tag in result.tags]
    if not tagged:
        return None
    first, *others = map(list, tagged)
    for other in others:
        for label, our, their in zip(results[0].labels, first, other, strict=True):
            if our != their:
                apart = f"query {clipped(label)}: {clipped(our)} vs {clipped(their)}"
                problem = f": the results differ in {tag!r}, first for {apart}"
                raise InvalidInput(argument, problem, "Tag the queries of all results alike")
    return first


@dataclass(frozen=True)
class Clusters:
    """Which of the counted queries belong together, because they share the value of a tag.

    Attributes:
        tag: The tag.
        number: The cluster of each counted query, from 0; shape (counted queries,).
        n_untagged: Queries without a value, each of them a cluster of its own.
    """

    tag: str
    number: IntArray
    n_untagged: int = 0

    @classmethod
    def of(cls, results: Sequence[ResultFacts | Rows], tag: object) -> Clusters:
        """Read the clusters of queries that all results have, and warn if they are few.

        Raises:
            InvalidType: If the tag is not text.
            InvalidInput: If no result has it, two differ in it, or all queries have one value.
        """
        found = cls.named(results, tag)
        found.check()
        return found

    @classmethod
    def named(cls, results: Sequence[ResultFacts | Rows], tag: object) -> Clusters:
        """Read the clusters, and refuse a tag that no result has."""
        name = errors.text("clusters", tag, "the name of a tag")
        found = cls.found(results, name)
        if found is None:
            known = dict.fromkeys(one for result in results for one in result.tags)
            if known:
                raise errors.unknown("clusters", name, list(known))
            problem = f": the queries have no tags, so nothing tells which share a {clipped(name)}"
            raise InvalidInput("clusters", problem, Advice("evaluate with {}", tags=...))
        return found

    @classmethod
    def found(cls, results: Sequence[ResultFacts | Rows], tag: str) -> Clusters | None:
        """Return the clusters, numbered as they come; ``None`` if no result has the tag."""
        values = tags_of(results, tag, "clusters")
        if values is None:
            return None
        # Without a value, a query is like no other; and True is not 1.
        keys = [
            (position,) if value is None else (isinstance(value, bool), value)
            for position, value in enumerate(values)
        ]
        kept = [key for key, counts in zip(keys, results[0].counted, strict=True) if counts]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(kept))}
        n_untagged = sum(len(key) == 1 for key in kept)
        return cls(tag, np.array([numbers[key] for key in kept], np.int64), n_untagged)

    @property
    def n(self) -> int:
        """Number of clusters."""
        return int(self.number.max(initial=-1)) + 1

    def within(self, chosen: NDArray[np.bool_]) -> Clusters:
        """Return the clusters of some of the queries."""
        numbers = np.unique(self.number[chosen], return_inverse=True)[1]
        return replace(self, number=np.asarray(numbers, np.int64))

    def check(self) -> None:
        """Refuse a single cluster; warn, once, of too few and of queries in none."""
        if self.n < 2:
            problem = f"must divide the queries, and all of them have the same {clipped(self.tag)}"
            raise InvalidInput("clusters", problem)
        reasons = []
        if self.n < FEW_CLUSTERS:
            told = _(
                "{n} clusters by {tag} are too few: with fewer than {few}, clustered intervals are "
                "too narrow."
            )
            reasons.append(told.format(n=self.n, tag=clipped(self.tag), few=FEW_CLUSTERS))
        if self.n_untagged:
            told = ngettext(
                "{n} query has no {tag}; each is a cluster of its own.",
                "{n} queries have no {tag}; each is a cluster of its own.",
                self.n_untagged,
            )
            reasons.append(told.format(n=self.n_untagged, tag=clipped(self.tag)))
        if reasons:
            warn(" ".join(reasons))


class Spread(NamedTuple):
    """How far an average would move with other queries, and how far it moves with each one.

    Attributes:
        sd: The standard deviation over queries: of their values or, for two systems, of their
            paired differences.
        n: Number of queries.
        standard_error: That of the average. For queries in clusters √(C/(C − 1) · Σ_c(Σ_{i∈c}(s_i
            − s̄))²)/n, with C clusters; else ``sd`` / √n, which is the same where every query is a
            cluster of its own. The formula is that of inspect_ai; see Miller 2024, *Adding Error
            Bars to Evals*, arXiv 2411.00640.
        n_clusters: Number of clusters; ``None`` if the queries are taken as independent.
        unit: The size of all values that are not 0, if they are of one size, as differences of a
            hit rate are; else ``None``.
    """

    sd: float
    n: int
    standard_error: float
    n_clusters: int | None = None
    unit: float | None = None

    @classmethod
    def of(cls, values: FloatArray, clusters: Clusters | None = None) -> Spread:
        """Measure it; NaN for fewer than two queries or clusters, or an undefined value.

        >>> clusters = Clusters("source", np.array([0, 0, 1, 1]))
        >>> spread = Spread.of(np.array([1.0, 1.0, 0.0, 0.0]), clusters)
        >>> spread.standard_error, round(spread.design_effect, 9)
        (0.5, 3.0)
        """
        n, n_clusters = len(values), None if clusters is None else clusters.n
        units = n if n_clusters is None else n_clusters
        if min(n, units) < 2 or not np.isfinite(values).all():
            return cls(math.nan, n, math.nan, n_clusters)
        order = np.argsort(values, kind="stable")  # sums in another order differ by rounding
        values = values[order]
        apart = values - values.mean()
        sd = float(values.std(ddof=1))
        sizes = np.abs(values[values != 0])
        unit = float(sizes[0]) if len(sizes) and np.ptp(sizes) <= ROUNDING * sizes[0] else None
        if clusters is None:
            return cls(sd, n, sd / math.sqrt(n), None, unit)
        sums = np.sort(np.bincount(clusters.number[order], apart, units))
        error = math.sqrt(units / (units - 1) * float((sums**2).sum())) / n
        return cls(sd, n, error, n_clusters, unit)

    @property
    def design_effect(self) -> float:
        """How many times as many queries it takes as if they were independent.

        The variance of the average over the one it would have with independent queries: 1 without
        clusters, NaN where nothing varies.
        """
        if self.n_clusters is None:
            return 1.0
        return self.standard_error**2 * self.n / self.sd**2 if self.sd > 0 else math.nan

    def detectable(self, alpha: float, power: float, n: int | None = None) -> float:
        """Return the smallest true difference that the permutation test shows that often.

        Two-sided, at that level, by so many queries; by those of the spread if not given. NaN where
        they are too few to show any.
        """
        if not self.sd > 0 or not self.standard_error > 0:
            return self.standard_error
        n_alone = (self.n if n is None else n) / self.design_effect
        z_alpha, z_power = _z_of(alpha, power)
        error, room = self.sd / math.sqrt(n_alone), 1 - z_alpha**2 / n_alone
        if room <= 0:
            return math.nan
        root = math.sqrt(z_power**2 - room * (z_power**2 - z_alpha**2))
        smooth = error * (z_power + root) / room
        if self.unit is None:
            return smooth
        sd, n_whole = self.sd / self.unit, math.floor(n_alone)
        low, high = 0.0, math.sqrt(max(0.0, 1 - sd**2))
        if power_of_signs(n_whole, high, sd, alpha) < power:
            return math.nan
        while high - low > _OF_A_DETECTABLE * high:
            middle = (low + high) / 2
            is_enough = power_of_signs(n_whole, middle, sd, alpha) >= power
            low, high = (low, middle) if is_enough else (middle, high)
        return high * self.unit

    def needed(self, detect: float, alpha: float, power: float) -> float:
        """Return how many queries it takes to show a difference, not rounded.

        design effect · ((z_{1 − alpha/2} · √(sd² + detect²) + z_{power} · sd) / detect)²: under the
        hypothesis that swaps change nothing, a difference adds to the spread. Where all differences
        have one size, the number is the one from which on the exact test has the power.
        """
        z_alpha, z_power = _z_of(alpha, power)
        total = z_alpha * math.hypot(self.sd, detect) + z_power * self.sd
        smooth = (total / detect) ** 2
        if self.unit is None or not self.sd > 0 or smooth > _SMOOTH_FROM:
            return self.design_effect * smooth
        signs = (detect / self.unit, self.sd / self.unit, alpha)
        low, high = 0, max(2, math.ceil(smooth))
        while power_of_signs(high, *signs) < power:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            is_enough = power_of_signs(middle, *signs) >= power
            low, high = (low, middle) if is_enough else (middle, high)
        # The power rises in small steps back: from the last of these on it is enough.
        short = [n for n in range(high, high + _STEPS_BACK) if power_of_signs(n, *signs) < power]
        return self.design_effect * (short[-1] + 1 if short else high)


def power_of_signs(n: int, difference: float, sd: float, alpha: float) -> float:
    """Return how often the exact test shows a mean difference of n values of -1, 0 and 1.

    Of the values that are not 0, which are a share sd² + difference² of all, as many have either
    sign by chance (the sign test, which is the permutation test of such values).

    >>> round(power_of_signs(6, 1.0, 0.0, 0.05), 9), power_of_signs(5, 1.0, 0.0, 0.05)
    (1.0, 0.0)
    """
    from scipy.stats import binom

    share = min(1.0, max(sd**2 + difference**2, difference))
    around, width = n * share, 12 * math.sqrt(n * share * (1 - share)) + 12
    differing = np.arange(max(1, math.floor(around - width)), min(n, math.ceil(around + width)) + 1)
    # p must be below the level, and not at it.
    fewest = binom.isf(alpha / 2 * (1 - ROUNDING), differing, 0.5)
    shown = binom.sf(fewest, differing, min(1.0, (1 + difference / share) / 2))
    return float(np.dot(binom.pmf(differing, n, share), shown))


def _z_of(alpha: float, power: float) -> tuple[float, float]:
    from scipy.special import ndtri

    return float(ndtri(1 - alpha / 2)), float(ndtri(power))


def in_order(columns: FloatArray) -> FloatArray:
    """Return rows in ascending order of the first column, of equal ones by the next, and so on."""
    return columns[np.lexsort(columns.T[::-1])]


def resampled_sums(columns: FloatArray, sampling: Sampling) -> FloatArray:
    """Return the columns' sums over queries drawn with replacement; shape (resamples, columns).

    The draws are those of ``scipy.stats.bootstrap`` for the rows in this order, whatever the size
    of the blocks.
    """
    return drawn_sums(columns, [(0, len(columns))], sampling.n_resamples, sampling.seed)[:, 0]


def drawn_sums(
    columns: FloatArray,
    spans: Sequence[tuple[int, int]],
    n_resamples: int,
    seed: int | Sequence[int],
) -> FloatArray:
    """Return the sums of those of the queries drawn that stand in each span, first to last.

    How many are drawn of a span is left to chance; shape (resamples, spans, columns).
    """
    n, (leading, trailing) = len(columns), exact_parts(columns)
    sums = np.empty((n_resamples, len(spans), columns.shape[1]))
    for start, stop, times in drawn(n, n_resamples, seed):
        weights = times.astype(np.float64)
        for place, (first, last) in enumerate(spans):
            parts = leading[first:last], trailing[first:last]
            sums[start:stop, place] = exact_sums(weights[:, first:last], parts)
    return sums


def sums_of(
    results: Mapping[str, ResultFacts], metrics: Mapping[str, tuple[str, Cutoff]]
) -> list[QuerySums]:
    """Return what the metrics of each result are made of: spelling -> (key, cutoff)."""
    return [
        QuerySums.of(result, [(result.definitions[key], k) for key, k in metrics.values()])
        for result in results.values()
    ]


#: Columns of which queries or clusters are drawn, and the value that follows from their sums.
Statistic: TypeAlias = tuple[FloatArray, Callable[[FloatArray], FloatArray]]


def resampled(statistics: Sequence[Statistic], sampling: Sampling) -> list[FloatArray]:
    """Return what each statistic is in every resample; shape (resamples,) each.

    All are of as many rows. Those of each are drawn in an order of their own, by value, so that
    nothing depends on the order in which they came; one pass over the draws serves all.
    """
    ordered = [in_order(columns) for columns, _of in statistics]
    varies = [np.ptp(columns, axis=0) > 0 for columns in ordered]
    side_by_side = [columns[:, which] for columns, which in zip(ordered, varies, strict=True)]
    ends = np.cumsum([one.shape[1] for one in side_by_side])[:-1]
    drawn = np.split(resampled_sums(np.concatenate(side_by_side, axis=1), sampling), ends, axis=1)
    found = []
    for statistic, columns, which, own in zip(statistics, ordered, varies, drawn, strict=True):
        # What is the same for every row is in every resample, and need not be drawn.
        sums = np.tile(columns[0] * len(columns), (sampling.n_resamples, 1))
        sums[:, which] = own
        found.append(statistic[1](sums))
    return found


class Standing(NamedTuple):
    """How one system does on one metric: its average, and the bounds of its interval."""

    value: float
    low: float
    high: float


def standings(
    results: Mapping[str, ResultFacts],
    metrics: Mapping[str, tuple[str, Cutoff]],
    sampling: Sampling,
    clusters: Clusters | None = None,
    method: IntervalMethod = "BCa",
) -> Mapping[str, Mapping[str, Standing]]:
    """Return metric -> system -> its average and its interval.

    Args:
        results: Name -> result, of as many queries each.
        metrics: Spelling -> (key, cutoff), all of them evaluated.
        sampling: How to resample.
        clusters: What to draw as a whole; each query by itself if not given.
        method: How intervals of averages that are no shares of the queries are made.
    """
    sums = sums_of(results, metrics)
    places = [(name, own, i) for name, own in zip(results, sums, strict=True)
              for i in range(len(metrics))]  # fmt: skip
    units = [own.only(i).grouped(clusters) for _, own, i in places]
    found: dict[str, dict[str, Standing]] = {metric: {} for metric in metrics}
    drawn = resampled([(one.columns, partial(one.average, 0)) for one in units], sampling)
    for (name, own, i), unit, values in zip(places, units, drawn, strict=True):
        (metric, (key, k)) = [*metrics.items()][i]
        value = results[name].averages(k)[key]
        left_out = np.sort(unit.leave_one_out()[:, 0]) if method == "BCa" else None
        bounds = interval_of(own, i, value, sampling.level, values, left_out, clusters)
        found[metric][name] = Standing(value, *bounds)
    return found


def drawn(
    n: int, n_resamples: int, seed: int | Sequence[int], width: int = 0
) -> Iterator[tuple[int, int, IntArray]]:
    """Yield, block by block, how often each of n queries is drawn; shape (resamples, queries).

    What is made of a resample may take more numbers than there are queries: its ``width``.
    """
    rng = np.random.default_rng(seed)
    for start, stop in blocks(n_resamples, max(n, width)):
        drawn = rng.integers(0, n, (stop - start, n))
        drawn += np.arange(0, drawn.size, n)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        yield start, stop, times


def blocks(n_rows: int, width: int) -> list[tuple[int, int]]:
    """Cut rows of that width into blocks that fit in memory.

    >>> blocks(5, 800_000)
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, _BLOCK // width)
    return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def interval_of(
    sums: QuerySums,
    i: int,
    value: float,
    level: float,
    resampled: FloatArray,
    left_out: FloatArray | None = None,
    clusters: Clusters | None = None,
) -> tuple[float, float]:
    """Return the interval of an average over queries, wherever it is shown.

    Of a share of them it is the score interval, of another average the bootstrap's.

    Args:
        sums: What the averages are made of, query by query.
        i: The position of this one among them.
        value: The average of all queries.
        level: How often the interval should cover the true value.
        resampled: This average in each resample.
        left_out: It without each query, or each cluster, in turn; for BCa.
        clusters: Which queries belong together.
    """
    share = sums.shares(i)
    if share is None:
        return interval(resampled, value, level, left_out)
    ones, defined = share
    return wilson(value, _effective_n(ones, clusters and clusters.within(defined)), level)


def _effective_n(values: FloatArray, clusters: Clusters | None) -> float:
    """Return how many independent queries would tell as much; never more than there are.

    Values that are all alike do not tell; then those of a cluster count as one.
    """
    n = len(values)
    if clusters is None:
        return n
    effect = Spread.of(values, clusters).design_effect
    if math.isnan(effect):
        effect = float(np.square(np.bincount(clusters.number)).sum()) / n
    return n / max(effect, 1.0)


def interval(
    resampled: FloatArray, value: float, level: float, left_out: FloatArray | None = None
) -> tuple[float, float]:
    """Return the percentile interval of a value, or the BCa interval.

    BCa after Efron (1987), as in Efron and Tibshirani, *An Introduction to the Bootstrap* (1993),
    equations 14.9 to 14.15.

    Where no resample moves it, nothing is known of how far it would move, and there is none: NaN.

    Args:
        resampled: The value in each resample; undefined ones (NaN) are left out.
        value: The value of all queries; if it is undefined, so are the bounds.
        level: How often the interval should cover the true value.
        left_out: The value without each query in turn, from which BCa takes its acceleration.
    """
    resampled = resampled[np.isfinite(resampled)]
    if math.isnan(value) or len(resampled) == 0:
        return math.nan, math.nan
    rounding = ROUNDING * max(abs(value), float(np.abs(resampled).max()))
    if float(np.ptp(resampled)) <= rounding:
        return math.nan, math.nan
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if left_out is not None:
        below = np.mean(resampled < value - rounding) + np.mean(resampled <= value + rounding)
        tails = _corrected(tails, float(below) / 2, _acceleration(left_out), len(resampled))
    low, high = np.quantile(resampled, tails).tolist()
    return low, high


def wilson(share: float, n: float, level: float) -> tuple[float, float]:
    """Return the score interval of a share of n queries (Wilson 1927).

    Unlike the bootstrap's, it has a width where all queries have one value, and keeps its level
    with few queries.

    >>> [round(bound, 4) for bound in wilson(0.5, 10, 0.95)], wilson(1.0, 10, 0.95)[1]
    ([0.2366, 0.7634], 1.0)
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    middle = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    # At 0 and 1 they are exact but for rounding.
    return (0.0 if share == 0 else max(0.0, low)), (1.0 if share == 1 else min(1.0, high))


def _corrected(tails: FloatArray, below: float, acceleration: float, n: int) -> FloatArray:
    """Return the tail probabilities, corrected for bias and for a spread that moves."""
    from scipy.special import ndtr, ndtri

    # A share of 0 or 1 would put the bias at infinity; n resamples cannot tell it from 1/(2n).
    bias = ndtri(min(max(below, 0.5 / n), 1 - 0.5 / n))
    moved = bias + ndtri(tails)
    # Not positive only far outside ordinary levels, where the limit is the extreme resample.
    room = np.maximum(1 - acceleration * moved, np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        return np.asarray(ndtr(bias + moved / room), np.float64)


def _acceleration(left_out: FloatArray) -> float:
    """Return a sixth of the skewness of the jackknife influence values; 0 if they do not vary."""
    left_out = left_out[np.isfinite(left_out)]
    if len(left_out) == 0:
        return 0.0
    influence = left_out.mean() - left_out
    if np.abs(influence).max() <= ROUNDING * np.abs(left_out).max():
        return 0.0
    influence /= np.abs(influence).max()
    return float((influence**3).sum() / (6 * (influence**2).sum() ** 1.5))


def warn_of_few_queries(n_queries: int) -> None:
    """Warn if intervals and tests rest on few queries."""
    if n_queries < FEW_QUERIES:
        warn(_few_queries(n_queries))


def _few_queries(n_queries: int) -> str:
    told = ngettext(
        "The intervals rest on {n} query. With fewer than {few} they are too narrow: they miss the "
        "true value more often than their level says. Ask more queries, or treat the true "
        "uncertainty as larger.",
        "The intervals rest on {n} queries. With fewer than {few} they are too narrow: they miss "
        "the true value more often than their level says. Ask more queries, or treat the true "
        "uncertainty as larger.",
        n_queries,
    )
    return told.format(n=n_queries, few=FEW_QUERIES)


def _warn_of_weak_intervals(table: pd.DataFrame, sums: QuerySums, *, clustered: bool) -> None:
    """Warn, once, of intervals that look surer than they are."""
    # A mean rank at 1 can only be 1.
    certain = (table["metric"] == METRICS["rank"].key) & (table["k"] == 1)
    reasons, n_queries = [], len(sums.columns)
    n_of = {name: sums.n_queries(i) for i, name in enumerate(table.index)}
    few = [f"{one} ({n_of[one]})" for one in table.index[~certain] if 0 < n_of[one] < FEW_QUERIES]
    if n_queries < FEW_QUERIES:
        reasons.append(_few_queries(n_queries))
    elif few:
        told = _(
            "Fewer than {few} queries have a value, so these intervals are too narrow: {names}."
        )
        reasons.append(told.format(few=FEW_QUERIES, names=", ".join(few)))
    flat = table.index[table["low"].isna() & table["value"].notna() & ~certain].tolist()
    if flat:
        told = _(
            "All queries have the same value, so resampling cannot tell how far these averages "
            "would move, and they have no interval: {names}."
        )
        if clustered:
            told = _(
                "All clusters have the same value, so resampling cannot tell how far these "
                "averages would move, and they have no interval: {names}."
            )
        reasons.append(told.format(names=", ".join(flat)))
    if reasons:
        warn(" ".join(reasons))


@dataclass(frozen=True, repr=False)
class BudgetToRecall(Shown):
    """The smallest budget at which macro recall reaches a value, and its interval.

    Attributes:
        recall: The macro recall asked for.
        unit: ``"w"`` for words, ``"c"`` for characters, ``"t"`` for what your function counts.
        value: The budget; infinite where the whole lists do not reach it.
        low, high: The percentile bootstrap interval; bounds may be infinite too.
        level: How often such an interval should cover the true budget.

    >>> BudgetToRecall(0.9, "w", 500.0, 300.0, math.inf, 0.95)
    macro recall 0.9 at 500 words (95 % interval 300 to ∞)
    """

    recall: float
    unit: Unit
    value: float
    low: float
    high: float
    level: float


def budget_to_recall(
    result: ResultFacts, recall: float, length: Any, sampling: Sampling
) -> BudgetToRecall:
    """Return the smallest budget at which macro recall over the full lists reaches a value.

    See :meth:`EvaluationResult.budget_to_recall <krag_eval.EvaluationResult.budget_to_recall>`.
    """
    if errors.number("recall", recall, 0, 1) == 0:
        raise InvalidInput("recall", f"must be above 0 and at most 1, got {recall!r}")
    level, n_resamples, seed = sampling
    check_counted(result)
    if length is not None:
        unit, measure = cutoffs.settled_length(length)
    else:  # what a budget of the result counted
        unit, measure = next((k.unit for k in result.k if isinstance(k, Budget)), "w"), None
    query, costs, share = _costs(result, unit, measure)
    n = int(result.counted.sum())
    warn_of_few_queries(n)

    def budgets(times: IntArray) -> FloatArray:
        """Return the budget that reaches the recall, where queries count several times."""
        reached = np.cumsum(times[:, query] * share, axis=1) / n
        # Recall never falls, so that what is not enough stands first.
        n_short = (reached < recall - _OF_A_RECALL).sum(axis=1)
        return np.asarray(np.append(costs.astype(np.float64), np.inf)[n_short], np.float64)

    value = float(budgets(np.ones((1, n), np.int64))[0])
    resamples = drawn(n, n_resamples, seed, len(costs))
    resampled = np.sort(np.concatenate([budgets(times) for *_, times in resamples]))
    # Bounds are budgets that occurred: between infinite ones is none.
    last = len(resampled) - 1
    low = resampled[math.floor((1 - level) / 2 * last)]
    high = resampled[math.ceil((1 + level) / 2 * last)]
    return BudgetToRecall(recall, unit, value, float(low), float(high), level)


def _costs(
    result: ResultFacts, unit: Unit, measure: Measure | None
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return how much must be read until each item is found, ascending.

    Returns:
        The query of each covered item, numbered among the counted ones; the length of the documents
        up to and with its first rank, at least 1, as no budget is below that; and what the item
        adds to its query's recall.
    """
    lengths, retrieved, query, first_rank = _found(result, unit, measure)
    begin = np.cumsum(retrieved) - retrieved
    read = np.concatenate([[0], np.cumsum(lengths)])
    cost = read[begin[query] + first_rank] - read[begin[query]]
    n_items = np.asarray(next(iter(result.tables.values()))["ground_truth"])
    kept = np.flatnonzero(result.counted[query])
    kept = kept[np.argsort(cost[kept], kind="stable")]
    query, cost = query[kept], np.maximum(cost[kept], 1)
    # Queries are numbered by what they hold, so that no draw depends on the order they came in.
    of_query: dict[int, list[int]] = {one: [] for one in np.flatnonzero(result.counted).tolist()}
    for one, length in zip(query.tolist(), cost.tolist(), strict=True):
        of_query[one].append(length)
    order = sorted(of_query, key=lambda one: (int(n_items[one]), of_query[one]))
    number = np.zeros(len(n_items), np.int64)
    number[order] = np.arange(len(order))
    by_number = np.lexsort([number[query], cost])
    return number[query][by_number], cost[by_number], 1 / n_items[query][by_number]


def _found(
    result: ResultFacts, unit: Unit, measure: Measure | None
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the documents' lengths, their number per query, and query and rank of the covered."""
    if result.evidence is not None:
        found = result.evidence.measured(unit, measure)
        assert found.lengths is not None
        return found.lengths[unit], found.n_retrieved, found.covered_query, found.first_rank
    if not isinstance(result.rows, RowsInFile) or measure is not None:
        raise no_lengths()
    return result.rows.found(unit)
