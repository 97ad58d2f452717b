"""Which metric goes with the scores of the answers: rank correlations, and a held-out choice.

It knows values per query, and not how they came about. scipy and pandas load when they are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from krag_eval.comparison.comparison import some
from krag_eval.core import (
    METRICS,
    FloatArray,
    IntArray,
    InvalidInput,
    ResultFacts,
    Shown,
    must,
    spelled,
)
from krag_eval.core.scoring.metrics import metrics_of
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import Sampling
from krag_eval.lab.few_labels import distinct, values_by_label
from krag_eval.lab.intervals import interval_of_choice

if TYPE_CHECKING:
    import pandas as pd

# Shares of a scale below this are rounding.
_NOTHING = 1e-9
_FEWEST_SCORED = 4
# What the per-query table does not show either; reciprocal ranks order queries as ranks do.
_UNSHOWN = ("precision_base", METRICS["rank"].name)


class Correlation(NamedTuple):
    """How one metric goes with the scores; positive: better retrieval goes with higher scores.

    Attributes:
        metric: The metric by the name of its mean, and its cutoff: ``"macro_recall@5"``.
        n: Queries for which it is defined.
        spearman, spearman_low, spearman_high: Spearman's rank correlation and its interval.
        kendall, kendall_low, kendall_high: Kendall's τ_b and its interval.
    """

    metric: str
    n: int
    spearman: float
    spearman_low: float
    spearman_high: float
    kendall: float
    kendall_low: float
    kendall_high: float


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Shown):
    """How well each metric predicts the scores of the answers; made by ``result.predicts``.

    Attributes:
        correlations: One per metric and cutoff, over all scored queries.
        best: The metric with the highest Spearman correlation on a random half of the queries;
            ``None`` if none has one there.
        spearman: What it comes to on the other half.
        low: Lower bound of its interval there.
        high: Upper bound.
        rivals: The metrics that the other half cannot tell from the best: the interval of the
            difference holds 0.
        n_chosen_on: Number of queries the best was chosen on.
        n_reported_on: Number of queries of the other half.
        level: The level of the intervals.
    """

    correlations: tuple[Correlation, ...]
    best: str | None
    spearman: float
    low: float
    high: float
    rivals: tuple[str, ...]
    n_chosen_on: int
    n_reported_on: int
    level: float

    @property
    def metrics(self) -> list[str]:
        """The metrics, such as ``"ndcg@10"``."""
        return [one.metric for one in self.correlations]

    @property
    def can_rank(self) -> bool:
        """Whether there are queries enough to rank the metrics.

        There are if both halves have 30, the best one's correlation is shown not to be 0, and at
        least half of the other metrics are told from it.
        """
        enough = min(self.n_chosen_on, self.n_reported_on) >= intervals.FEW_QUERIES
        return enough and self.low > 0 and 2 * len(self.rivals) <= self.n_others

    @property
    def is_turned(self) -> bool:
        """Whether even the best metric is shown to go *against* the scores.

        Better retrieval does not make answers worse: the scores are likely to be lower for better
        answers, as an error rate is.
        """
        return self.high < 0

    @property
    def n_others(self) -> int:
        """Number of metrics that vary, but for the best."""
        return sum(not math.isnan(one.spearman) for one in self.correlations) - 1

    @property
    def table(self) -> pd.DataFrame:
        """One row per metric and cutoff, the highest Spearman correlation first."""
        import pandas as pd

        rows = sorted(self.correlations, key=from_the_best)
        index = pd.Index([one.metric for one in rows], name="metric")
        return pd.DataFrame([one[1:] for one in rows], index=index, columns=Correlation._fields[1:])


def from_the_best(one: Correlation) -> float:
    """Order by Spearman's correlation, the highest first and what is undefined last."""
    return math.inf if math.isnan(one.spearman) else -one.spearman


def predictions(result: ResultFacts, scores: Any, sampling: Sampling) -> Predictions:
    """Return how every metric at every cutoff goes with the scores of the answers.

    See :meth:`EvaluationResult.predicts <krag_eval.EvaluationResult.predicts>`.
    """
    intervals.check_counted(result)
    scored = _scores(result, scores)
    columns = _metric_columns(result)
    # In an order of their own, so that neither draws nor halves depend on that of the queries.
    order = np.lexsort([*columns.values(), scored])
    scored, columns = scored[order], {name: values[order] for name, values in columns.items()}
    intervals.warn_of_few_queries(len(scored))
    everywhere = _correlations(columns, scored, sampling)
    shuffled = np.random.default_rng([sampling.seed, 2]).permutation(len(scored))
    chosen_on, reported_on = np.sort(shuffled[::2]), np.sort(shuffled[1::2])
    best = _best(columns, scored, chosen_on)
    held_out: tuple[float, float, float, tuple[str, ...]]
    held_out = math.nan, math.nan, math.nan, tuple(columns)
    if best is not None:
        half = {name: values[reported_on] for name, values in columns.items()}
        held_out = _held_out(best, half, scored[reported_on], sampling)
    halves = len(chosen_on), len(reported_on)
    return Predictions(everywhere, best, *held_out, *halves, sampling.level)


def _scores(result: ResultFacts, given: Any) -> FloatArray:
    """Return the score of each counted query, in the order of the rows.

    Raises:
        InvalidType: If they are no numbers.
        InvalidInput: If there is not one for each query, or all are equal.
    """
    labels, values = values_by_label("scores", given)
    if labels is None and len(values) != result.n_queries:
        raise must("scores", f"be one for each of {result.n_queries} queries", len(values))
    if labels is not None:
        own = distinct("scores", result.labels)
        score = dict(zip(labels, values.tolist(), strict=True))
        counted = zip(own, result.counted.tolist(), strict=True)
        fix = "pass a list, in the order of the rows"
        if missing := [label for label, counts in counted if counts and label not in score]:
            raise InvalidInput("scores", f": there is none for {some(missing)}", fix)
        if foreign := [label for label in labels if label not in set(own)]:
            raise InvalidInput("scores", f": the result has no queries {some(foreign)}", fix)
        values = np.array([score.get(one, np.nan) for one in own])
    values = values[result.counted]
    if len(values) < _FEWEST_SCORED or float(np.ptp(values)) == 0:
        raise must("scores", f"differ, and be of at least {_FEWEST_SCORED} queries", values)
    return values


def _metric_columns(result: ResultFacts) -> dict[str, FloatArray]:
    """Return per-query values by name and cutoff, so that higher is better; NaN if undefined."""
    metrics = metrics_of(result.keys, result.declared)
    columns = {}
    for k in result.k:
        for column in result.shown_columns:
            if column not in _UNSHOWN:
                key = result.keys[column]
                values = intervals.per_query(result, column, k)
                sign = -1 if metrics[column].lower_is_better else 1
                columns[f"{key}@{spelled(k)}"] = sign * values
    return columns


def _correlations(
    columns: Mapping[str, FloatArray], scores: FloatArray, sampling: Sampling
) -> tuple[Correlation, ...]:
    """Return both correlations of every metric, with intervals from the same resamples."""
    resampled = _resampled(columns, scores, sampling, _rank_correlations)
    rows = []
    for name, values in columns.items():
        found = _once(_rank_correlations, values, scores).tolist()
        bounds = [
            (value, *interval_of_choice(line, value, sampling.level, len(scores)))
            for value, line in zip(found, resampled[name], strict=True)
        ]
        rows.append(Correlation(name, int((~np.isnan(values)).sum()), *bounds[0], *bounds[1]))
    return tuple(rows)


def _best(columns: Mapping[str, FloatArray], scores: FloatArray, chosen_on: IntArray) -> str | None:
    """Return the metric that goes best with the scores of some queries, defined for all of them."""
    found = {
        name: float(_once(_spearman, values[chosen_on], scores[chosen_on]))
        for name, values in columns.items()
        if not np.isnan(values).any()
    }
    told = {name: value for name, value in found.items() if not math.isnan(value)}
    return max(told, key=told.__getitem__) if told else None


def _held_out(
    best: str, columns: Mapping[str, FloatArray], scores: FloatArray, sampling: Sampling
) -> tuple[float, float, float, tuple[str, ...]]:
    """Return Spearman's correlation of the best with its interval, and who comes as near."""
    value = float(_once(_spearman, columns[best], scores))
    resampled = _resampled(columns, scores, sampling, _spearman)
    rivals = []
    for name, values in columns.items():
        # On the queries for which both are defined.
        known = np.where(np.isnan(values), np.nan, columns[best])
        ahead = float(_once(_spearman, known, scores) - _once(_spearman, values, scores))
        lead = resampled[best] - resampled[name]
        if np.isnan(values).any():
            lead = _resampled({name: known}, scores, sampling, _spearman)[name] - resampled[name]
        low, _ = interval_of_choice(lead, ahead, sampling.level, len(scores))
        # One that is the same for all queries predicts nothing.
        if name != best and not low > 0 and len(np.unique(values[~np.isnan(values)])) > 1:
            rivals.append(name)
    bounds = interval_of_choice(resampled[best], value, sampling.level, len(scores))
    return value, *bounds, tuple(rivals)


_Statistic: TypeAlias = Callable[[IntArray, FloatArray, FloatArray], FloatArray]


def _once(statistic: _Statistic, values: FloatArray, scores: FloatArray) -> FloatArray:
    """Return a statistic of the queries as they are, each of them once."""
    return np.asarray(statistic(np.ones((1, len(scores)), np.int64), values, scores)[..., 0])


def _resampled(
    columns: Mapping[str, FloatArray],
    scores: FloatArray,
    sampling: Sampling,
    statistic: _Statistic,
) -> dict[str, FloatArray]:
    """Return a statistic of each metric in every resample of the queries; shape (…, resamples)."""
    parts: dict[str, list[FloatArray]] = {name: [] for name in columns}
    for *_place, times in intervals.drawn(len(scores), sampling.n_resamples, sampling.seed):
        for name, values in columns.items():
            parts[name].append(statistic(times, values, scores))
    return {name: np.concatenate(part, axis=-1) for name, part in parts.items()}


class _Ranked(NamedTuple):
    """Queries that count several times, those without a value left out.

    Attributes:
        times: How often each counts; shape (resamples, queries).
        x: The level of each metric value, numbered from 0 up.
        y: The level of each score.
        in_x: How often each level of x was drawn; shape (resamples, levels).
        in_y: How often each level of y was.
    """

    times: IntArray
    x: IntArray
    y: IntArray
    in_x: IntArray
    in_y: IntArray

    @classmethod
    def of(cls, times: IntArray, values: FloatArray, scores: FloatArray) -> _Ranked:
        defined = ~np.isnan(values)
        times, x, y = times[:, defined], _levels(values[defined]), _levels(scores[defined])
        return cls(times, x, y, _per_level(times, x), _per_level(times, y))


def _spearman(times: IntArray, values: FloatArray, scores: FloatArray) -> FloatArray:
    """Return Spearman's correlation of queries that count several times; shape (resamples,).

    For many resamples at once, with mid-ranks of what is tied; NaN where one side does not vary.
    """
    return _of_ranks(_Ranked.of(times, values, scores))


def _rank_correlations(times: IntArray, values: FloatArray, scores: FloatArray) -> FloatArray:
    """Return Spearman's correlation and Kendall's τ_b likewise; shape (2, resamples)."""
    ranked = _Ranked.of(times, values, scores)
    return np.stack([_of_ranks(ranked), _tau_b(ranked)])


def _levels(values: FloatArray) -> IntArray:
    """Number the distinct values from 0 up; what differs by rounding alone is one value."""
    distinct, level = np.unique(values, return_inverse=True)
    apart = np.diff(distinct) > _NOTHING * np.abs(distinct[1:])
    return np.asarray(np.cumsum(np.append(False, apart)[: len(distinct)])[level], np.int64)


def _per_level(times: IntArray, level: IntArray) -> IntArray:
    """Count how often each level was drawn; shape (resamples, levels)."""
    if len(level) == 0:
        return np.zeros((len(times), 1), np.int64)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(int(level.max()) + 1))
    return np.asarray(np.add.reduceat(times[:, order], starts, axis=1))


def _of_ranks(ranked: _Ranked) -> FloatArray:
    """Return the correlation of the mid-ranks, whose mean is half the number of queries drawn."""
    times, x, y, in_x, in_y = ranked
    ranks_x, ranks_y = _centred_ranks(in_x), _centred_ranks(in_y)
    shared = (times * ranks_x[:, x] * ranks_y[:, y]).sum(axis=1)
    spread = (in_x * ranks_x**2).sum(axis=1) * (in_y * ranks_y**2).sum(axis=1)
    return _quotient(shared, np.sqrt(spread))


def _centred_ranks(counts: IntArray) -> FloatArray:
    up_to = np.cumsum(counts, axis=1)
    return np.asarray(up_to - counts / 2 - up_to[:, -1:] / 2)


def _tau_b(ranked: _Ranked) -> FloatArray:
    """Return (P - Q) / √((n₀ - n₁)(n₀ - n₂)) of concordant, discordant, all and tied pairs."""
    times, x, y, in_x, in_y = ranked
    both = _levels((x * in_y.shape[1] + y).astype(np.float64))
    every = _pairs(times.sum(axis=1, keepdims=True))
    tied_x, tied_y, tied_both = _pairs(in_x), _pairs(in_y), _pairs(_per_level(times, both))
    few, many = (x, y) if in_x.shape[1] < in_y.shape[1] else (y, x)
    concordant = _concordant(times, many, few)
    # All pairs but those tied in one or both, and those concordant, are discordant.
    discordant = every - tied_x - tied_y + tied_both - concordant
    spread = (every - tied_x).astype(np.float64) * (every - tied_y)
    return _quotient(concordant - discordant, np.sqrt(spread))


def _pairs(counts: IntArray) -> IntArray:
    return np.asarray((counts * (counts - 1) // 2).sum(axis=1), np.int64)


def _concordant(times: IntArray, x: IntArray, y: IntArray) -> IntArray:
    """Count the pairs in which x and y both rise; few levels of y are fewer steps.

    Two levels of y differ first in one binary digit, counted from the highest: digit by digit, and
    within what agrees above it, each query with a 1 is paired with those of a 0 and a lower x.
    Within one x, the higher y come first, so that no such pair is counted.
    """
    by_x = np.lexsort((-y, x))
    total = np.zeros(len(times), np.int64)
    for digit in range(int(y.max(initial=0)).bit_length()):
        order = by_x[np.argsort(y[by_x] >> (digit + 1), kind="stable")]
        group, is_one = y[order] >> (digit + 1), (y[order] >> digit) & 1 == 1
        drawn_here = times[:, order]
        zeros = np.cumsum(np.where(is_one, 0, drawn_here), axis=1)
        starts = np.searchsorted(group, group)
        before = zeros - np.where(starts > 0, zeros[:, starts - 1], 0)
        total += np.where(is_one, drawn_here * before, 0).sum(axis=1)
    return total


def _quotient(top: Any, bottom: FloatArray) -> FloatArray:
    undefined = np.full(len(bottom), np.nan)
    return np.asarray(np.divide(top, bottom, out=undefined, where=bottom > 0), np.float64)
