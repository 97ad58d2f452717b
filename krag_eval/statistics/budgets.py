"""The budget a system needs: how much of its results must be read until enough is found.

For ``EvaluationResult.budget_to_recall``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import InvalidInput, number
from krag_eval.results.rows import RowsInFile
from krag_eval.scoring.cutoffs import Budget, Measure, Unit, amount_in_words, settled_length
from krag_eval.scoring.parts import no_texts
from krag_eval.statistics.intervals import (
    blocks,
    check_counted,
    check_sampling,
    warn_of_few_queries,
)

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult

__all__ = ["BudgetToRecall", "budget_to_recall"]

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

# 9 of 10 is a recall of 0.9, whatever the sum of ten floats says.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class BudgetToRecall:
    """The smallest budget at which macro recall reaches a value, and its interval.

    Attributes:
        recall: The macro recall asked for.
        unit: ``"w"`` for words, ``"c"`` for characters, ``"t"`` for what your function counts.
        value: The budget; infinite where the whole lists do not reach it.
        low, high: The percentile bootstrap interval; bounds may be infinite too.
        level: How often such an interval should cover the true budget.
    """

    recall: float
    unit: Unit
    value: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        value, low, high = (
            "∞" if math.isinf(one) else f"{one:.0f}" for one in (self.value, self.low, self.high)
        )
        return (
            f"macro recall {self.recall:g} at {amount_in_words(value, self.unit)} "
            f"({100 * self.level:g} % interval {low} to {high})"
        )


def budget_to_recall(
    result: EvaluationResult,
    recall: float = 0.9,
    *,
    length: Any = None,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> BudgetToRecall:
    """Return the smallest budget at which macro recall over the full lists reaches a value.

    See :meth:`EvaluationResult.budget_to_recall <krag_eval.EvaluationResult.budget_to_recall>`.
    """
    if number("recall", recall, 0, 1) == 0:
        raise InvalidInput("recall", f"must be above 0 and at most 1, got {recall!r}")
    check_sampling(level, n_resamples, seed)
    check_counted(result)
    unit, measure = _unit_of(result, length)
    costs = _Costs.of(result, unit, measure)
    warn_of_few_queries(costs.n_queries)
    everyone = np.ones((1, costs.n_queries), np.int64)
    value = float(costs.budgets(everyone, recall)[0])
    low, high = _percentiles(costs.resampled(recall, n_resamples, seed), level)
    return BudgetToRecall(recall, unit, value, low, high, level)


def _unit_of(result: EvaluationResult, length: Any) -> tuple[Unit, Measure | None]:
    """Return what to count: what is asked for, or what a budget of the result counted."""
    if length is None:
        units = [k.unit for k in result.k if isinstance(k, Budget)]
        return (units or ["w"])[0], None
    return settled_length(length)


@dataclass(frozen=True)
class _Costs:
    """How much must be read until each item is found, ascending.

    Attributes:
        query: Query of each covered item, numbered among the counted ones; shape (covered,).
        cost: Length of the documents up to and with its first rank; shape (covered,).
        share: What the item adds to its query's recall; shape (covered,).
        n_queries: Number of counted queries.
    """

    query: IntArray
    cost: IntArray
    share: FloatArray
    n_queries: int

    @classmethod
    def of(cls, result: EvaluationResult, unit: Unit, measure: Measure | None) -> _Costs:
        """Gather them from what was found, in memory or in a file of rows.

        Raises:
            InvalidInput: If nothing is known of the documents' lengths.
        """
        lengths, retrieved, query, first_rank = _found(result, unit, measure)
        begin = np.cumsum(retrieved) - retrieved
        read = np.concatenate([[0], np.cumsum(lengths)])
        cost = read[begin[query] + first_rank] - read[begin[query]]
        n_items = np.asarray(next(iter(result.tables.values()))["ground_truth"])
        counted = result.counted
        number_of = np.cumsum(counted) - 1
        kept = np.flatnonzero(counted[query])
        kept = kept[np.argsort(cost[kept], kind="stable")]
        query = query[kept]
        # No budget is below 1.
        cost = np.maximum(cost[kept], 1)
        return cls(number_of[query], cost, 1 / n_items[query], int(counted.sum()))

    def budgets(self, times: IntArray, recall: float) -> FloatArray:
        """Return the budget that reaches the recall, for queries that count several times.

        Args:
            times: How often each query counts; shape (resamples, queries).
            recall: The macro recall to reach.
        """
        reached = np.cumsum(times[:, self.query] * self.share, axis=1) / self.n_queries
        enough = reached >= recall - _ROUNDING
        # Recall never falls, so that what is not enough stands first.
        costs = np.append(self.cost.astype(np.float64), np.inf)
        return np.asarray(costs[(~enough).sum(axis=1)], np.float64)

    def resampled(self, recall: float, n_resamples: int, seed: int) -> FloatArray:
        """Return the budgets of queries drawn with replacement, as intervals draw them."""
        rng = np.random.default_rng(seed)
        n, budgets = self.n_queries, np.empty(n_resamples)
        for start, stop in blocks(n_resamples, max(n, len(self.cost))):
            drawn = rng.integers(0, n, (stop - start, n))
            drawn += np.arange(0, drawn.size, n)[:, np.newaxis]
            times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
            budgets[start:stop] = self.budgets(times, recall)
        return budgets


def _found(
    result: EvaluationResult, unit: Unit, measure: Measure | None
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the documents' lengths, their number per query, and query and rank of the covered."""
    if result.evidence is not None:
        found = result.evidence.measured(unit, measure)
        assert found.lengths is not None
        return found.lengths[unit], found.n_retrieved, found.covered_query, found.first_rank
    if not isinstance(result.rows, RowsInFile) or measure is not None:
        raise no_texts("length")
    return result.rows.found(unit)


def _percentiles(budgets: FloatArray, level: float) -> tuple[float, float]:
    """Return the percentile interval, of budgets that occurred: between infinite ones is none."""
    ordered, last = np.sort(budgets), len(budgets) - 1
    low, high = math.floor((1 - level) / 2 * last), math.ceil((1 + level) / 2 * last)
    return float(ordered[low]), float(ordered[high])
