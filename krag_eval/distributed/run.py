"""What every engine returns: the per-query table, still the engine's, and the result.

This room knows how partials become a result. It must not know any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Generic, TypeVar

from krag_eval.distributed.worker import unpacked
from krag_eval.evaluator import PartitionPlan
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import NoRows

__all__ = ["DistributedRun"]

Table = TypeVar("Table")

_WHERE = "they are in .per_query of the run, a table of the engine's that you can query and write"


class DistributedRun(Generic[Table]):
    """An evaluation on a cluster; nothing is computed before it is asked for.

    Made by ``evaluate_spark``, ``evaluate_ray`` and ``evaluate_dask``; not meant to be built by
    hand.

    Attributes:
        per_query: The engine's own lazy table, one row per query: ``query``, ``counted``,
            ``ground_truth``, and for every cutoff ``retrieved@k``, ``relevant@k``, ``covered@k``
            and the metrics, such as ``ndcg@10``. Rows may come in any order.
    """

    def __init__(
        self,
        per_query: Table,
        plan: PartitionPlan,
        partials: Callable[[], Iterable[str]],
        persisted: Callable[[], DistributedRun[Table]],
    ) -> None:
        self.per_query = per_query
        self._plan = plan
        self._partials = partials
        self._persisted = persisted

    @cached_property
    def result(self) -> EvaluationResult:
        """The result: averages, equal to those of a local run to the last digit.

        It is computed when first asked for and kept. Of each partition only sums are collected.
        Per-query tables, intervals and explanations need rows; see ``per_query``.

        Raises:
            ValueError: If there is no query, or none counts in the averages.
        """
        result = self._plan.result(map(unpacked, self._partials()))
        rows = NoRows(self._plan.cutoffs, result.n_queries, _WHERE)
        return replace(result, rows=rows)

    def persist(self) -> DistributedRun[Table]:
        """Return a run whose per-query rows the engine keeps once they are computed.

        Without it, :attr:`result` and every use of ``per_query`` evaluate anew. Ray computes
        at once, the others when first asked.
        """
        return self._persisted()

    def __repr__(self) -> str:
        computed = "computed" if "result" in vars(self) else "not computed yet"
        return f"{type(self).__name__}(result {computed}, per_query={type(self.per_query)!r})"
