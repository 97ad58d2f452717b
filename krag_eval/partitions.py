"""Partitions: a run cut into parts that are evaluated apart, anywhere, and put together exactly.

This room knows what a part hands over (its per-query rows, and what must be kept of it) and how
parts become a result. It must not know where parts come from: files, processes or clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import PLAN_OPTIONS, check_options, tallied
from krag_eval.documents import QuerySet
from krag_eval.plans import NOTHING_TO_MEASURE, Plan
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import NoRows, Rows, column_types, flat_columns
from krag_eval.scoring.averages import Summary
from krag_eval.scoring.cutoffs import check_cutoffs
from krag_eval.scoring.metrics import Metric, chosen_metrics, metrics_for, table_of
from krag_eval.scoring.parts import Findings, Likeness
from krag_eval.scoring.relevance import Relevance

__all__ = ["Part", "Partial", "PartitionPlan"]


@dataclass(frozen=True)
class Partial:
    """What must be kept of a part of a run: small, exact, and the same size for any number of rows.

    Partials of the parts add up to that of the whole, in any order, however grouped.

    Attributes:
        settings: What the numbers depend on, to refuse parts of different runs.
        summary: The sums all averages follow from.
        findings: What the whole may have to be warned of.
    """

    settings: Mapping[str, str]
    summary: Summary
    findings: Findings

    def __add__(self, other: Partial) -> Partial:
        """Return what must be kept of both parts.

        Raises:
            ValueError: If they were evaluated in different ways.
        """
        if not isinstance(other, Partial):
            return NotImplemented
        for name, ours in self.settings.items():
            theirs = other.settings.get(name, "-")
            if ours != theirs:
                raise ValueError(
                    f"parts of different runs cannot be put together: {name} is {ours} in one and "
                    f"{theirs} in the other; evaluate all parts with the same plan."
                )
        return Partial(self.settings, self.summary + other.summary, self.findings + other.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the partial as what JSON can hold, exactly."""
        return {
            "settings": dict(self.settings),
            "summary": self.summary.to_json(),
            "findings": self.findings.to_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Partial:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        return cls(
            dict(content["settings"]),
            Summary.from_json(content["summary"]),
            Findings.from_json(content["findings"]),
        )


@dataclass(frozen=True, eq=False)
class Part:
    """An evaluated part of a run.

    Attributes:
        rows: Column -> one value per query, shape (queries,); the columns and their types are
            :attr:`PartitionPlan.row_types`, whatever the part holds.
        partial: What must be kept of it.
    """

    rows: Mapping[str, NDArray[Any]]
    partial: Partial


@dataclass(frozen=True)
class PartitionPlan:
    """How every part of a run is evaluated; build it with :meth:`of`.

    A plan holds settings only, so it can be pickled and sent to the processes that evaluate parts,
    as far as the matcher and metrics of your own can be; a model is loaded by the process that
    needs it, once.

    Attributes:
        plan: The settings of an evaluator.
        cutoffs: The cutoffs.
        metrics: The metrics, by column.

    >>> plan = PartitionPlan.of(k=2)
    >>> first = plan.evaluate([["a", "b"]], [["a", "x"]], ["When?"])
    >>> second = plan.evaluate([["c"], ["d"]], [["c"], ["y", "d"]], ["Who?", "Why?"])
    >>> first.rows["query"].tolist(), first.rows["recall@2"].tolist()
    (['When?'], [0.5])
    >>> result = plan.result([first.partial, second.partial])
    >>> result.n_queries, result.to_dict()["micro_recall@2"]
    (3, 0.75)
    """

    plan: Plan
    cutoffs: tuple[int | None, ...]
    metrics: Mapping[str, Metric]

    @classmethod
    def of(
        cls,
        k: int | Iterable[int | None] | None = (1, 3, 5, 10),
        *,
        metrics: Iterable[str | Metric] | None = None,
        **options: Any,
    ) -> PartitionPlan:
        """Settle how a run is evaluated.

        Args:
            k: A cutoff or several; ``None`` stands for all retrieved documents.
            metrics: Metrics to compute; all built-in ones if not given.
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
                ``threshold``, ``conventions``, …, but no documents and no labels.

        Raises:
            TypeError, ValueError: As the evaluator does.
        """
        check_options(cls.of, options, PLAN_OPTIONS)
        plan = Plan.checked(**options)
        return cls(
            plan, check_cutoffs(k), chosen_metrics(metrics, metrics_for(plan.matching_criteria))
        )

    @property
    def row_types(self) -> dict[str, type]:
        """The columns of the rows, in order, and their types: ``query`` is text (or ``None``).

        Then ``counted``, ``ground_truth``, ``ground_truth_digest`` (which tells a query's ground
        truth from another one) and, for every cutoff, ``retrieved@k``, ``relevant@k``,
        ``covered@k`` and the metrics; a metric is NaN where it is undefined or the query is left
        out of the averages.
        """
        return {"query": object, **column_types(self.cutoffs, list(self.metrics))}

    def evaluate(
        self, actual: Any, predicted: Any, queries: Sequence[str | int | None] | None = None
    ) -> Part:
        """Evaluate a part of a run; the part may be empty.

        A pure function of its arguments: the values of a query do not depend on which others are
        in its part (as far as a matcher of your own treats each pair alike). Warnings about the
        input are kept for the whole run, except those that announce a long wait.

        Args:
            actual: Per query, its ground truth.
            predicted: Per query, the retrieved documents, best first.
            queries: One label per query, such as the question; ``None`` where there is none.

        Raises:
            TypeError, ValueError: As :class:`~krag_eval.OfflineRetrievalEvaluator` does; positions
                in the message are those within the part.
        """
        if not len(actual) and not len(predicted):
            return Part(self._no_rows(), self.nothing())
        names = None if queries is None else _labels(queries)
        query_set = QuerySet.from_lists(actual, predicted, names)
        with tallied() as tallies:
            relevance, grades, any_grade = self._relevance(query_set)
        counted = self.plan.counted(relevance)
        tables = {
            k: table_of(relevance, k, self.metrics, self.plan.conventions) for k in self.cutoffs
        }
        partial = Partial(
            self._settings(),
            Summary.of(
                tables,
                counted,
                keys=self._keys(),
                averaging_method=self.plan.averaging_method,
                conventions=self.plan.conventions,
            ),
            Findings(Likeness.of(relevance), any_grade, tallies),
        )
        rows = {"query": _as_texts(queries, query_set.n_queries)}
        digests = query_set.digests(grades, self.plan.matcher._document_reading)
        columns = flat_columns(tables, counted, list(self.metrics), digests)
        return Part({**rows, **columns}, partial)

    def nothing(self) -> Partial:
        """Return what must be kept of no queries: the neutral element of the addition."""
        counts = dict.fromkeys(
            ("ground_truth", "retrieved", "relevant", "covered", "precision_base"),
            np.zeros(0, np.int64),
        )
        values = dict.fromkeys(("precision", "recall", *self.metrics), np.zeros(0))
        summary = Summary.of(
            {k: {**counts, **values} for k in self.cutoffs},
            np.zeros(0, np.bool_),
            keys=self._keys(),
            averaging_method=self.plan.averaging_method,
            conventions=self.plan.conventions,
        )
        return Partial(self._settings(), summary, Findings(Likeness(), False, {}))

    def result(self, partials: Iterable[Partial], rows: Rows | None = None) -> EvaluationResult:
        """Put parts together; what must be said about the whole is said here, once.

        Args:
            partials: What was kept of the parts, in any order.
            rows: Where the per-query rows are; without them, the result knows averages only.

        Raises:
            ValueError: If there is no query, or none counts in the averages; if a part belongs to
                another run.
        """
        whole = reduce(Partial.__add__, partials, self.nothing())
        summary = whole.summary
        if not summary.n_queries:
            raise ValueError(
                "actual_docs and predicted_docs are empty (0 queries in all parts); an evaluation "
                "needs at least one query."
            )
        if self.plan.no_ground_truth == "skip" and not summary.n_counted:
            raise ValueError(NOTHING_TO_MEASURE)
        whole.findings.warn(self.plan.matcher, self.plan.threshold, self.plan.grade_key)
        return EvaluationResult(
            settings=self.plan.settings(
                self.cutoffs,
                n_queries=summary.n_queries,
                n_skipped=summary.n_queries - summary.n_counted,
            ),
            rows=rows or NoRows(self.cutoffs, summary.n_queries),
            keys=self._keys(),
            averaging_method=self.plan.averaging_method,
            conventions=self.plan.conventions,
            totals=summary,
        )

    def _relevance(self, queries: QuerySet) -> tuple[Relevance, NDArray[np.float64] | None, bool]:
        """Return what was found in a part, its grades, and whether a document had one."""
        grades, any_grade = None, False
        if self.plan.grade_key is not None:
            given = queries.given_grades(self.plan.grade_key)
            grades, any_grade = np.nan_to_num(given, nan=1.0), not np.isnan(given).all()
        self.plan.check_ground_truth(queries, grades, part=True)
        relevance = self.plan.relevance(queries, self.plan.matcher.match(queries), grades)
        relevance.warn_of_repeats()
        return relevance, grades, any_grade

    def _settings(self) -> dict[str, str]:
        settings = self.plan.settings(self.cutoffs, n_queries=0, n_skipped=0)
        return {name: value for name, value in settings.items() if name != "queries"}

    def _keys(self) -> dict[str, str]:
        return {name: metric.key for name, metric in self.metrics.items()}

    def _no_rows(self) -> dict[str, NDArray[Any]]:
        return {name: np.zeros(0, kind) for name, kind in self.row_types.items()}


def _labels(queries: Sequence[str | int | None]) -> list[str | int]:
    """Return labels for messages: the position, from 0, where a query has none."""
    return [place if label is None else label for place, label in enumerate(queries)]


def _as_texts(queries: Sequence[str | int | None] | None, n_queries: int) -> NDArray[np.object_]:
    """Return labels as text: of one type whatever a part holds."""
    texts = np.full(n_queries, None, object)
    if queries is not None:
        texts[:] = [None if label is None else str(label) for label in queries]
    return texts
