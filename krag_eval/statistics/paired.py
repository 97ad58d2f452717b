"""Two systems on the same queries: the difference, its interval, and paired tests.

For :func:`krag_eval.compare`, which checks the results and words what is found. scipy loads when
it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.results.result import EvaluationResult
from krag_eval.scoring.averages import DEFINED, QUERIES, Average
from krag_eval.scoring.cutoffs import Cutoff
from krag_eval.scoring.digits import exact_parts, exact_sums
from krag_eval.scoring.metrics import METRICS
from krag_eval.statistics.intervals import (
    ROUNDING,
    Clusters,
    QuerySums,
    Spread,
    blocks,
    interval,
    interval_of,
    per_query,
    resampled_sums,
)

FloatArray: TypeAlias = NDArray[np.float64]
#: Metric -> system -> value per query that counts.
PerQuery: TypeAlias = Mapping[str, Mapping[str, FloatArray]]

# Up to this many differing queries, or clusters of them, all ways to swap them are tried.
_ENUMERABLE, _ENUMERABLE_CLUSTERS = 14, 15
#: More random swaps than were asked for are made up to here; they are in memory at once.
MOST_SWAPS = 100_000
#: How often a difference is shown that counts as one that can be.
POWER = 0.8


def paired_differences(
    results: Mapping[str, EvaluationResult],
    metrics: Mapping[str, tuple[str, Cutoff]],
    *,
    level: float,
    n_resamples: int,
    seed: int,
    baseline: str | None = None,
    clusters: Clusters | None = None,
    max_drop: float = 0.0,
    n_alike: int = 1,
) -> tuple[tuple[Difference, ...], PerQuery]:
    """Return the differences of the pairs on every metric, and the per-query values behind them.

    Args:
        results: Name -> result, comparable ones.
        metrics: Spelling -> (key, cutoff), all of them evaluated.
        level: Level of the intervals.
        n_resamples: Number of resamples of the bootstrap, and of random swaps.
        seed: Seed of both.
        baseline: The system that the others are held against; every pair if not given.
        clusters: What to draw and to swap as a whole; each query by itself if not given.
        max_drop: How far b may fall behind a: p is of the hypothesis that it does not fall further.
        n_alike: How many such sets of differences are corrected together, as those of slices are.
    """
    n = len(results)
    n_pairs = n_alike * (n * (n - 1) // 2 if baseline is None else n - 1)
    drawing = _Drawing(level, n_resamples, seed, clusters, max_drop)
    systems, drawing = _systems(results, metrics, drawing, n_pairs)
    differences = [
        _difference(a, b, i, name, drawing)
        for a, b in _pairs(systems, baseline)
        for i, name in enumerate(metrics)
    ]
    values = {
        name: {system.name: system.per_query[i] for system in systems}
        for i, name in enumerate(metrics)
    }
    return corrected(differences, level), values


def corrected(differences: Sequence[Difference], level: float) -> tuple[Difference, ...]:
    """Complete differences by what depends on how many were tested: Holm's p, what can be shown."""
    p_values = [p for row in differences for p in (row.p_permutation, row.p_share)]
    p_holm = iter(holm(p_values))
    # What is shown alone among so many must pass the first and hardest step of Holm's correction.
    alpha = (1 - level) / max(1, sum(not math.isnan(p) for p in p_values))
    return tuple(
        replace(
            row,
            p_holm=next(p_holm),
            p_share_holm=next(p_holm),
            alpha=alpha,
            detectable=math.nan if row.spread is None else row.spread.detectable(alpha, POWER),
        )
        for row in differences
    )


def swaps_for(n_tests: int, level: float) -> int:
    """Return how many random swaps it takes for the smallest p to be half of what Holm asks for.

    >>> swaps_for(1, 0.95), swaps_for(550, 0.95)
    (40, 22000)
    """
    return math.ceil(round(2 * n_tests / (1 - level), 6))


def _pairs(systems: Sequence[_System], baseline: str | None) -> Iterable[tuple[_System, _System]]:
    """Return every pair, or those of the baseline, which comes first in each."""
    if baseline is None:
        return combinations(systems, 2)
    (first,) = (one for one in systems if one.name == baseline)
    return [(first, other) for other in systems if other is not first]


class Standing(NamedTuple):
    """How one system does on one metric: its average, and the bounds of its interval."""

    value: float
    low: float
    high: float


def standings(
    results: Mapping[str, EvaluationResult],
    metrics: Mapping[str, tuple[str, Cutoff]],
    *,
    level: float,
    n_resamples: int,
    seed: int,
    clusters: Clusters | None = None,
) -> Mapping[str, Mapping[str, Standing]]:
    """Return metric -> system -> its average, with the interval that ``confidence_intervals`` has.

    The arguments are those of :func:`paired_differences`.
    """
    sums = _sums(results, metrics)
    units = [one.grouped(clusters) for one in sums]
    resampled = [
        one.all_averages(drawn)
        for one, drawn in zip(units, _resampled(units, n_resamples, seed), strict=True)
    ]
    left_out = [one.leave_one_out() for one in units]

    def standing(place: int, i: int, value: float) -> Standing:
        drawn = resampled[place][:, i], left_out[place][:, i]
        return Standing(value, *interval_of((sums[place], i), value, level, *drawn, clusters))

    return {
        metric: {
            name: standing(place, i, result.averages(k)[key])
            for place, (name, result) in enumerate(results.items())
        }
        for i, (metric, (key, k)) in enumerate(metrics.items())
    }


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
        p_permutation: Two-sided p of the paired permutation test, never 0; of the hypothesis that b
            is no worse than ``max_drop``, in a gate.
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
        detectable: The smallest true difference that four in five such sets of queries would show
            at this level, among as many comparisons (two-sided). 0 if no query differs, NaN where
            the standard error is undefined.
        n_both: Where queries may have no value: the number of those where both systems have one.
        share_a: Where some have none: the share of the queries where a has a value, else NaN.
        share_b: That of b.
        p_share: Two-sided p of the permutation test of these shares.
        p_share_holm: ``p_share``, corrected as ``p_holm``.
        is_of_fewer: Whether b has the better average, of fewer queries: it is not called better.
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
    detectable: float = field(default=math.nan, repr=False)
    n_both: int = field(default=0, repr=False)
    share_a: float = field(default=math.nan, repr=False)
    share_b: float = field(default=math.nan, repr=False)
    p_share: float = field(default=math.nan, repr=False)
    p_share_holm: float = field(default=math.nan, repr=False)
    is_of_fewer: bool = field(default=False, repr=False)
    alpha: float = field(default=math.nan, repr=False)
    slice: str | None = field(default=None, repr=False)
    n: int = field(default=0, repr=False)

    @property
    def fewest(self) -> int:
        """How many queries, or clusters, it takes for any difference to be shown at all."""
        return math.floor(math.log2(2 / self.alpha)) + 1

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
        """Tell whether the difference is shown and not only seen: the one rule, of gates too.

        So it is if the corrected p is below ``1 - level``; the interval does not decide. Where
        queries may have no value, b is not better if it has one for fewer of them; it is worse if
        its values are, also where it has one for more.
        """
        return self.p_holm < 1 - level and not self.is_of_fewer

    def shows_fewer(self, level: float = 0.95) -> bool:
        """Tell whether b is shown to have a value for fewer queries than a."""
        return self.p_share_holm < 1 - level and self.share_b < self.share_a


def unknown(a: str, b: str, metric: str, average: Average | None, **known: Any) -> Difference:
    """Return a difference of which nothing is known but what is given."""
    names = ("value_a", "value_b", "difference", "ci_low", "ci_high", "p_permutation", "p_t")
    numbers: dict[str, Any] = dict.fromkeys((*names, "p_holm", "effect_size"), math.nan)
    numbers |= dict.fromkeys(("wins", "ties", "losses"), 0)
    return Difference(a, b, metric, average=average, **(numbers | known))


class _Drawing(NamedTuple):
    """How to draw and to test; see :func:`paired_differences`."""

    level: float
    n_resamples: int
    seed: int
    clusters: Clusters | None
    max_drop: float
    n_swaps: int = 0


@dataclass(frozen=True)
class _System:
    """One result, reduced to what comparing needs; lists and last axes run over the metrics.

    What is swapped and drawn is a unit: a query, or a cluster of queries.
    """

    name: str
    sums: QuerySums
    units: QuerySums
    values: list[float]
    per_query: list[FloatArray]
    resampled: FloatArray
    swapped: FloatArray


def _systems(
    results: Mapping[str, EvaluationResult],
    metrics: Mapping[str, tuple[str, Cutoff]],
    drawing: _Drawing,
    n_pairs: int,
) -> tuple[list[_System], _Drawing]:
    """Reduce the results to what comparing them on these metrics needs.

    With as many random swaps as it takes for so many pairs, which is returned too.
    """
    sums = _sums(results, metrics)
    has_all = [all((one.has_value(i) == 1).all() for one in sums) for i in range(len(metrics))]
    needed = swaps_for(n_pairs * sum(1 if one else 2 for one in has_all), drawing.level)
    n_swaps = max(drawing.n_resamples, min(needed, MOST_SWAPS))
    drawing = drawing._replace(n_swaps=n_swaps)
    values = [
        [result.averages(k)[key] for key, k in metrics.values()] for result in results.values()
    ]
    per_query = [
        [_outcomes(result, average.column, k) for average, k in sums[i].averages]
        for i, result in enumerate(results.values())
    ]
    return _drawn(list(results), sums, values, per_query, drawing), drawing


def _drawn(
    names: Sequence[str],
    sums: Sequence[QuerySums],
    values: Sequence[list[float]],
    per_query: Sequence[list[FloatArray]],
    drawing: _Drawing,
) -> list[_System]:
    """Resample all systems alike, and gather what swapping would move."""
    units = [one.grouped(drawing.clusters) for one in sums]
    resampled = _resampled(units, drawing.n_resamples, drawing.seed)
    moved = _swapped_sums(_side_by_side(units), drawing.n_swaps, drawing.seed)
    swapped = _parted(moved, units)
    return [
        _System(
            name=name,
            sums=sums[i],
            units=units[i],
            values=values[i],
            per_query=per_query[i],
            resampled=sums[i].all_averages(resampled[i]),
            swapped=swapped[i],
        )
        for i, name in enumerate(names)
    ]


def _sums(
    results: Mapping[str, EvaluationResult], metrics: Mapping[str, tuple[str, Cutoff]]
) -> list[QuerySums]:
    return [
        QuerySums.of(result, [(result.definitions[key], k) for key, k in metrics.values()])
        for result in results.values()
    ]


def _resampled(sums: Sequence[QuerySums], n_resamples: int, seed: int) -> list[FloatArray]:
    """Return each system's sums in every resample, the same queries drawn for all of them."""
    return _parted(resampled_sums(_side_by_side(sums), n_resamples, seed), sums)


def _side_by_side(sums: Sequence[QuerySums]) -> FloatArray:
    """Return the columns of all systems, so that one pass over the resamples serves all."""
    return np.concatenate([one.columns for one in sums], axis=1)


def _parted(columns: FloatArray, sums: Sequence[QuerySums]) -> list[FloatArray]:
    """Give each system its own columns back."""
    ends = np.cumsum([one.columns.shape[1] for one in sums])[:-1]
    return np.split(columns, ends, axis=1)


def _outcomes(result: EvaluationResult, column: str, k: Cutoff) -> FloatArray:
    """Return the per-query values; the rank of what was not found is infinite."""
    values = per_query(result, column, k)
    is_rank = column == METRICS["rank"].name
    return np.where(np.isnan(values), np.inf, values) if is_rank else values


def _swapped_sums(columns: FloatArray, n_swaps: int, seed: int) -> FloatArray:
    """Return the columns' sums over random halves of the queries, those to be swapped."""
    # A stream of its own, independent of the bootstrap's under the same seed.
    rng = np.random.default_rng([seed, 1])
    parts = exact_parts(columns)
    sums = np.empty((n_swaps, columns.shape[1]))
    for start, stop in blocks(n_swaps, len(columns)):
        swap = rng.integers(0, 2, (stop - start, len(columns)), np.int8)
        sums[start:stop] = exact_sums(swap.astype(np.float64), parts)
    return sums


def _difference(a: _System, b: _System, i: int, metric: str, drawing: _Drawing) -> Difference:
    has_a, has_b = a.sums.has_value(i), b.sums.has_value(i)
    if (has_a == 1).all() and (has_b == 1).all():
        return _of_all(a, b, i, metric, drawing)
    return _of_both(a, b, i, metric, drawing, (has_a, has_b))


def _of_both(
    a: _System,
    b: _System,
    i: int,
    metric: str,
    drawing: _Drawing,
    has: tuple[FloatArray, FloatArray],
) -> Difference:
    """Compare two systems on the queries where both have a value, and how many each has one for."""
    both = (has[0] > 0) & (has[1] > 0)
    shares = _shares(a, b, i, drawing, has)
    # Where one has no value at all, there is nothing to say of its average.
    is_tested = all(one.any() for one in has)
    known: dict[str, Any] = {
        "n_both": int(np.count_nonzero(both)),
        "share_a": shares[0].values[0],
        "share_b": shares[1].values[0],
        "p_share": _permutation_p(*shares, 0, _enumerable(drawing)) if is_tested else math.nan,
        **_wins(a, b, i),
    }
    if both.any():
        within = drawing.clusters and drawing.clusters.within(both)
        ours, theirs = _drawn(
            [a.name, b.name],
            [one.sums.where(both, i) for one in (a, b)],
            [[float(one.per_query[i][both].mean())] for one in (a, b)],
            [[one.per_query[i][both]] for one in (a, b)],
            drawing._replace(clusters=within),
        )
        found = _of_all(ours, theirs, 0, metric, drawing._replace(clusters=within))
        # Who finds one query more is not excused for ranking all the others lower.
        of_fewer = found.drop < 0 and known["share_b"] < known["share_a"]
        return replace(found, is_of_fewer=of_fewer, **known)
    known |= {"value_a": a.values[i], "value_b": b.values[i]}
    return unknown(a.name, b.name, metric, a.sums.averages[i][0], **known)


def _shares(
    a: _System, b: _System, i: int, drawing: _Drawing, has: tuple[FloatArray, FloatArray]
) -> tuple[_System, _System]:
    """Return two systems whose one average is the share of the queries with a value."""
    average, k = a.sums.averages[i]
    share = Average("share", average.column, ((DEFINED + average.column, QUERIES),))
    places = {(name, k): place for place, name in enumerate(share.sums)}
    sums = [
        QuerySums(np.stack([one, np.ones(len(one))], axis=1), places, ((share, k),)) for one in has
    ]
    values = [[float(one.mean())] for one in has]
    ours, theirs = _drawn([a.name, b.name], sums, values, [[one] for one in has], drawing)
    return ours, theirs


def _wins(a: _System, b: _System, i: int) -> dict[str, Any]:
    """Count the queries on which b is better, equal and worse."""
    changes = changes_of(a.per_query[i], b.per_query[i])
    gains = -changes if a.sums.averages[i][0].lower_is_better else changes
    return {
        "wins": int(np.count_nonzero(gains > 0)),
        "ties": int(np.count_nonzero(gains == 0)),
        "losses": int(np.count_nonzero(gains < 0)),
    }


def _enumerable(drawing: _Drawing) -> int:
    return _ENUMERABLE if drawing.clusters is None else _ENUMERABLE_CLUSTERS


def _of_all(a: _System, b: _System, i: int, metric: str, drawing: _Drawing) -> Difference:
    difference = b.values[i] - a.values[i]
    # With 30 queries, it covers the true difference of macro recall in 92 % of cases, BCa in 89 %.
    low, high = interval(b.resampled[:, i] - a.resampled[:, i], difference, drawing.level)
    changes = changes_of(a.per_query[i], b.per_query[i])
    average = b.sums.averages[i][0]
    defined = np.isfinite(a.per_query[i]).all() and np.isfinite(b.per_query[i]).all()
    is_mean = average.is_mean and defined
    pulls = _pulls((a.per_query[i], b.per_query[i]), (a.sums, b.sums), i)
    spread = Spread.of(pulls, drawing.clusters)
    p_t = _t_test_p(a.per_query[i], b.per_query[i], spread) if is_mean else math.nan
    return Difference(
        a=a.name,
        b=b.name,
        metric=metric,
        value_a=a.values[i],
        value_b=b.values[i],
        difference=difference,
        ci_low=low,
        ci_high=high,
        p_permutation=_drop_p(a, b, i, drawing),
        p_t=p_t,
        p_holm=math.nan,
        effect_size=_effect_size(changes) if is_mean else math.nan,
        **_wins(a, b, i),
        average=average,
        spread=spread,
    )


def spread_of(
    results: Sequence[EvaluationResult],
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
    same = np.isclose(a, b, rtol=ROUNDING, atol=0.0) | np.isnan(a) | np.isnan(b)
    return np.subtract(b, a, out=np.zeros(len(a)), where=~same)


def _drop_p(a: _System, b: _System, i: int, drawing: _Drawing) -> float:
    """Return the two-sided p of the hypothesis that b is no worse than a less what it may drop.

    a is lowered by exactly that much before outcomes are swapped: every query's value of a mean,
    each numerator by the same share of its denominator in a micro average, all numerators in
    proportion in an F1 of averages. What shows a larger drop must also show one.
    """
    p = _permutation_p(a, b, i, _enumerable(drawing))
    average = a.units.averages[i][0]
    if drawing.max_drop == 0 or math.isnan(p):
        return p
    by = -drawing.max_drop if average.lower_is_better else drawing.max_drop
    if len(average.ratios) > 1 and a.values[i] <= by:
        return 1.0  # there is no room for such a drop
    lowered = _lowered(a, i, by)
    return max(p, _permutation_p(lowered, b, i, _enumerable(drawing), is_lowered=True))


def _lowered(a: _System, i: int, by: float) -> _System:
    """Return a system whose average is lower by so much, in every query alike."""
    ratios = a.units.averages[i][0].ratios
    k = a.units.averages[i][1]
    units, swapped = a.units.columns.copy(), a.swapped.copy()
    for top, bottom in ratios:
        place, under = a.units.positions[top, k], a.units.positions[bottom, k]
        for columns in (units, swapped):
            if len(ratios) > 1:
                columns[:, place] *= 1 - by / a.values[i]
            else:
                columns[:, place] -= by * columns[:, under]
    values = [value - by if place == i else value for place, value in enumerate(a.values)]
    return replace(a, units=replace(a.units, columns=units), swapped=swapped, values=values)


def _permutation_p(a: _System, b: _System, i: int, most: int, *, is_lowered: bool = False) -> float:
    """Return the two-sided p of the paired permutation test of one metric.

    Up to ``most`` differing queries or clusters are swapped in every way there is. Where a was
    lowered, all of them differ.
    """
    observed = b.values[i] - a.values[i]
    if math.isnan(observed):
        return math.nan
    places, ours, theirs = a.units.positions_of(i), a.units.columns, b.units.columns
    changes = changes_of(ours[:, places].ravel(), theirs[:, places].ravel())
    differs = changes.reshape(-1, len(places)).any(axis=1) | is_lowered
    n_differing = int(np.count_nonzero(differs))
    exact = n_differing <= most
    if exact:
        swap = (np.arange(2**n_differing)[:, np.newaxis] >> np.arange(n_differing)) & 1
        moved = exact_sums(swap.astype(np.float64), exact_parts((theirs - ours)[differs]))
    else:
        moved = b.swapped - a.swapped
    null_a = a.units.average(i, ours.sum(axis=0) + moved)
    null_b = a.units.average(i, theirs.sum(axis=0) - moved)
    # Sums in another order differ by rounding. A swap that leaves one side undefined counts as
    # extreme, so that p errs towards no difference.
    rounding = ROUNDING * max(abs(a.values[i]), abs(b.values[i]))
    extreme = int(np.count_nonzero(~(np.abs(null_b - null_a) < abs(observed) - rounding)))
    return extreme / len(moved) if exact else (extreme + 1) / (len(moved) + 1)


def _t_test_p(a: FloatArray, b: FloatArray, spread: Spread) -> float:
    """Return the two-sided p of the paired t-test: 1 if nothing differs, NaN without a spread."""
    changes = changes_of(a, b)
    if not changes.any():
        return 1.0
    if not _varies(changes):
        return math.nan
    p = _paired_p(a, b) if spread.n_clusters is None else _clustered_p(changes, spread)
    # Far out in the tail it underflows; no evidence makes it 0.
    return max(p, float(np.finfo(np.float64).tiny))


def _paired_p(a: FloatArray, b: FloatArray) -> float:
    from scipy.stats import ttest_rel

    return float(ttest_rel(b, a).pvalue)


def _clustered_p(changes: FloatArray, spread: Spread) -> float:
    """Return the p of a t-test with as many degrees of freedom as clusters, less one."""
    from scipy.special import stdtr

    # Rounding apart, it is 0 where every cluster has the same mean for its size.
    rounding = ROUNDING * float(np.abs(changes).max())
    if spread.n_clusters is None or not spread.standard_error > rounding:
        return math.nan
    t = abs(float(changes.mean())) / spread.standard_error
    return 2 * float(stdtr(spread.n_clusters - 1, -t))


def _effect_size(changes: FloatArray) -> float:
    """Return Cohen's d_z; 0 if nothing differs, infinite if all queries differ alike."""
    mean = float(changes.mean())
    if not changes.any():
        return 0.0
    return mean / float(changes.std(ddof=1)) if _varies(changes) else math.copysign(math.inf, mean)


def _varies(changes: FloatArray) -> bool:
    return float(np.ptp(changes)) > ROUNDING * float(np.abs(changes).max())


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
