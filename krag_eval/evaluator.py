"""The evaluator: holds the inputs, matches them once, and answers from that record.

This room wires the others together. It must not know formulas or drawing.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import named_options
from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.documents import Digests, QuerySet
from krag_eval.matching.base import Matcher
from krag_eval.matching.joins import Matches
from krag_eval.matching.parallel import check_n_jobs, processes
from krag_eval.plans import Plan, checked_conventions, checked_threshold
from krag_eval.results.evidence import DocumentTexts, Evidence
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import RowsInMemory
from krag_eval.scoring.averages import average
from krag_eval.scoring.cutoffs import check_cutoff, check_cutoffs
from krag_eval.scoring.metrics import Metric, chosen_metrics, metrics_for, table_of
from krag_eval.scoring.parts import Likeness
from krag_eval.scoring.relevance import Relevance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["OfflineRetrievalEvaluator"]

Cutoffs = int | None | Iterable["int | None"]
# What the numbers depend on is settled when the evaluator is made.
_SETTLED = (
    "matcher",
    "threshold",
    "averaging_method",
    "matching_criteria",
    "conventions",
    "no_ground_truth",
)


class OfflineRetrievalEvaluator:
    """Measures retrieval from the documents that should come back and the ranked ones that did.

    Documents are LangChain ``Document`` objects, plain strings, or dicts with ``"page_content"``
    and optionally ``"metadata"`` and ``"id"``, mixed freely. Matching happens once, at the first
    question asked; every metric, cutoff and average is then read from the same record.

    Args:
        actual_docs: Per query, its ground truth: a list of documents or ``AnyOf``.
        predicted_docs: Per query, the retrieved documents, best first.
        matcher: What makes a predicted document a match: a name (``"text"``: equal text) or a
            :class:`~krag_eval.Matcher` instance.
        threshold: Similarity from which a pair is a match, in [0, 1]; the matcher's own if not
            given. Not for matchers that decide by equality.
        averaging_method: ``"micro"``, ``"macro"`` or ``"both"``.
        matching_criteria: A query is a hit when ``"all"`` of its ground truth is found, or when
            any is (``"partial"``).
        conventions: How the disputed points are settled; see :class:`~krag_eval.Conventions`.
        no_ground_truth: For queries without ground truth: ``"error"``, ``"skip"`` (left out of
            every average) or ``"zero"`` (counted as 0).
        queries: One label per query, such as the question; 0, 1, … if not given.
        grade_key: Key in the metadata of ground-truth documents that holds their grade; a document
            without it has grade 1, grade 0 says that it is not ground truth. All grades are 1 if
            not given.
        n_jobs: Processes that prepare and score texts at once, -1 for one per core; in this one
            alone if not given. The results are the same. It pays from some seconds of matching on,
            and does nothing for matchers by key or embedding.

    Raises:
        TypeError: If the lists are not lists of lists of documents.
        ValueError: If there are no queries, lengths differ, a query has no ground truth, or an
            option is not among those allowed.

    >>> evaluator = OfflineRetrievalEvaluator(
    ...     actual_docs=[["doc1", "doc2", "doc5"], ["doc3", "doc4"]],
    ...     predicted_docs=[["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]],
    ... )
    >>> evaluator.calculate_recall(k=5)
    {'micro_recall': 0.8, 'macro_recall': 0.75}
    """

    @named_options
    def __init__(
        self,
        actual_docs: Any,
        predicted_docs: Any,
        matcher: str | Matcher = "text",
        *,
        threshold: float | None = None,
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
        conventions: Conventions | None = None,
        no_ground_truth: Literal["error", "skip", "zero"] = "error",
        queries: Any = None,
        grade_key: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        plan = Plan.checked(
            matcher=matcher,
            threshold=threshold,
            averaging_method=averaging_method,
            matching_criteria=matching_criteria,
            conventions=conventions,
            no_ground_truth=no_ground_truth,
            grade_key=grade_key,
        )
        self.averaging_method = plan.averaging_method
        self.matching_criteria = plan.matching_criteria
        self.no_ground_truth = plan.no_ground_truth
        self.conventions = plan.conventions
        self.matcher = plan.matcher
        self.threshold = plan.threshold
        self._grade_key = grade_key
        n_jobs = check_n_jobs(n_jobs)
        query_set = QuerySet.from_lists(actual_docs, predicted_docs, queries)
        grades = None if grade_key is None else query_set.grades(grade_key)
        plan.check_ground_truth(query_set, grades)
        self._matching = _Matching(query_set, grades, self.matcher, n_jobs)
        self._cut: Relevance | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name in _SETTLED and name in self.__dict__:
            raise AttributeError(
                f"{name} is settled when an evaluator is made; use with_threshold(…) or "
                "with_conventions(…), or make another evaluator."
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        n_queries = len(self._matching.queries.labels)
        threshold = f", threshold {self.threshold:g}" if self.matcher.takes_threshold else ""
        return (
            f"OfflineRetrievalEvaluator of {n_queries} {'query' if n_queries == 1 else 'queries'}, "
            f"matcher {self.matcher.signature}{threshold}"
        )

    @property
    def queries(self) -> list[str | int]:
        """The queries' labels."""
        return list(self._matching.queries.labels)

    def with_threshold(self, threshold: float) -> OfflineRetrievalEvaluator:
        """Return an evaluator with another threshold that shares the matches already made."""
        other = copy.copy(self)
        vars(other)["threshold"] = checked_threshold(threshold, self.matcher)
        other._cut = None
        return other

    def with_conventions(self, conventions: Conventions) -> OfflineRetrievalEvaluator:
        """Return an evaluator with other conventions that shares the matches already made."""
        other = copy.copy(self)
        vars(other)["conventions"] = checked_conventions(conventions)
        return other

    def calculate_hit_rate(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"hit_rate"}``: the share of queries whose ground truth was found, in [0, 1].

        All of a query's ground truth must be within the first ``k`` documents, or any of it with
        ``matching_criteria="partial"``. ``k=None`` looks at all retrieved documents.
        """
        return self._average("hit_rate", k)

    def calculate_precision(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"micro_precision", "macro_precision"}``, in [0, 1].

        The share of the first ``k`` documents that are relevant; a list shorter than ``k`` is
        divided by its own length.
        """
        return self._average("precision", k)

    def calculate_recall(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"micro_recall", "macro_recall"}``, in [0, 1].

        The share of the ground-truth items found within the first ``k`` documents.
        """
        return self._average("recall", k)

    def calculate_f1_score(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"micro_f1", "macro_f1"}``: harmonic means of precision and recall, in [0, 1].

        Macro F1 is the harmonic mean of macro precision and macro recall.
        """
        return self._average("f1", k)

    def calculate_mrr(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"mrr"}``: the mean of 1 / rank of the first relevant document, in [0, 1].

        A query without a relevant document in its first ``k`` counts as 0.
        """
        return self._average("reciprocal_rank", k)

    def calculate_map(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"map"}``: the mean of the queries' average precision, in [0, 1]."""
        return self._average("average_precision", k)

    def calculate_ndcg(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"ndcg"}``: the mean normalised discounted cumulative gain, in [0, 1]."""
        return self._average("ndcg", k)

    def calculate_mean_rank(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"mean_rank", "found_rate"}``.

        The mean rank of the first relevant document over the queries that have one (NaN if none
        has), and the share of queries that do. Lower ranks are better; 1 is the best.
        """
        return self._average("rank", k)

    def calculate_rejection_rate(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"rejection_rate"}``: how often nothing rightly came back, in [0, 1].

        The share of the queries without ground truth for which no document was retrieved. What
        was retrieved for them is wrong at any rank, so every ``k`` gives the same number; it is
        accepted, and checked, as in every other calculation.

        Raises:
            ValueError: If there is no query without ground truth, or such queries count as 0.
        """
        check_cutoff(k)
        if self.no_ground_truth != "skip":
            raise ValueError(
                "rejection_rate is about queries without ground truth, and here they are "
                f"{'refused' if self.no_ground_truth == 'error' else 'counted as 0'}; pass "
                'no_ground_truth="skip".'
            )
        unanswerable = ~self._counted
        if not unanswerable.any():
            raise ValueError(
                "rejection_rate needs queries without ground truth, and every query has some; "
                "list those for which nothing should be retrieved with an empty list in "
                "actual_docs."
            )
        rejected = self._relevance.n_retrieved[unanswerable] == 0
        return {"rejection_rate": float(rejected.mean())}

    def evaluate(
        self, k: Cutoffs = (1, 3, 5, 10), *, metrics: Iterable[str | Metric] | None = None
    ) -> EvaluationResult:
        """Return all metrics at all cutoffs; the pairs are matched once.

        Args:
            k: A cutoff or several; ``None`` stands for all retrieved documents.
            metrics: Metrics to compute, by column name or as :class:`~krag_eval.Metric` of your
                own; all built-in ones if not given.
        """
        cutoffs = check_cutoffs(k)
        chosen = chosen_metrics(metrics, metrics_for(self.matching_criteria))
        return EvaluationResult(
            settings=self._plan.settings(
                cutoffs,
                n_queries=self._matching.queries.n_queries,
                n_skipped=int((~self._counted).sum()),
            ),
            rows=RowsInMemory(
                labels=self.queries,
                tables={
                    cutoff: table_of(self._relevance, cutoff, chosen, self.conventions)
                    for cutoff in cutoffs
                },
                counted=self._counted,
                digests=self._matching.digests,
            ),
            keys={name: metric.key for name, metric in chosen.items()},
            averaging_method=self.averaging_method,
            conventions=self.conventions,
            evidence=Evidence.of(
                self._relevance,
                takes_threshold=self.matcher.takes_threshold,
                texts=DocumentTexts(self._matching.queries),
            ),
        )

    def explain_conventions(self, k: int | None = None) -> pd.DataFrame:
        """Return every metric under every preset, and the fields behind each difference.

        One row per metric key; columns ``default``, ``trec``, ``krag``, ``autorag`` (and
        ``yours``, if this evaluator's conventions are none of them), then ``"trec differs by"``
        and so on, naming the responsible fields. Nothing is matched again.
        """
        from krag_eval.disputes import conventions_table

        cutoff = check_cutoff(k)
        return conventions_table(
            lambda conventions: self.with_conventions(conventions).evaluate(cutoff).averages(),
            self.conventions,
        )

    def visualize_results(self, k: int | None = None, ax: Axes | None = None) -> Axes:
        """Draw every metric at ``k`` as a labelled bar, micro and macro side by side.

        Args:
            k: The cutoff; ``None`` for all retrieved documents.
            ax: Where to draw; a new figure if not given.

        Returns:
            The matplotlib Axes; nothing is shown or saved.
        """
        from krag_eval.plotting import metric_bars

        return metric_bars(self.evaluate(k=k), ax=ax)

    @property
    def _relevance(self) -> Relevance:
        """The matches, cut at the threshold; of several threads that ask first, one does it."""
        if self._cut is None:
            with self._matching.lock:
                if self._cut is None:
                    self._cut = self._cut_matches()
        return self._cut

    def _cut_matches(self) -> Relevance:
        matching = self._matching
        relevance = self._plan.relevance(matching.queries, matching.matches, matching.grades)
        if self._matching.is_news("repeats"):
            relevance.warn_of_repeats()
        if self._matching.is_news(f"nothing matched at {self.threshold!r}"):
            Likeness.of(relevance).warn_if_nothing_matched(self.matcher, self.threshold)
        return relevance

    @property
    def _counted(self) -> NDArray[np.bool_]:
        return self._plan.counted(self._relevance)

    def _average(self, name: str, k: int | None) -> dict[str, float]:
        needed = ("precision", "recall", "f1") if name == "f1" else (name,)
        known = metrics_for(self.matching_criteria)
        chosen = {column: known[column] for column in needed}
        table = table_of(self._relevance, check_cutoff(k), chosen, self.conventions)
        return average(
            name,
            {column: values[self._counted] for column, values in table.items()},
            key=known[name].key,
            averaging_method=self.averaging_method,
            conventions=self.conventions,
        )

    @property
    def _plan(self) -> Plan:
        return Plan(
            self.matcher,
            self.threshold,
            self.averaging_method,
            self.matching_criteria,
            self.conventions,
            self.no_ground_truth,
            self._grade_key,
        )


class _Matching:
    """The inputs and, once asked for, their matches; shared between evaluators."""

    def __init__(
        self,
        queries: QuerySet,
        grades: NDArray[np.float64] | None,
        matcher: Matcher,
        n_jobs: int | None,
    ) -> None:
        self.queries = queries
        self.grades = grades
        self.matcher = matcher
        self.n_jobs = n_jobs
        # Made when a result is saved or compared; until then it keeps the ground truth alive, and
        # neither the predicted documents nor the matcher.
        make = partial(queries.ground_truth().digests, grades, matcher._document_reading)
        self.digests = Digests(make, queries.n_queries)
        self._said: set[str] = set()
        self._matches: Matches | None = None
        self._locks: dict[int, threading.RLock] = {}

    @property
    def lock(self) -> threading.RLock:
        """What to hold while matching, so that threads wait for each other's work.

        Each process has its own: after a fork, that of the parent may be held by a thread that
        does not exist in the child. (``cached_property`` of Python 3.11 would share one lock among
        all evaluators.)
        """
        return self._locks.setdefault(os.getpid(), threading.RLock())

    @property
    def matches(self) -> Matches:
        """The pairs; only to be asked for under the lock."""
        if self._matches is None:
            with processes(self.n_jobs, self.matcher.signature):
                self._matches = self.matcher.match(self.queries)
        return self._matches

    def is_news(self, what: str) -> bool:
        """Tell, under the lock, whether this has not been asked: twins warn once for all."""
        news = what not in self._said
        self._said.add(what)
        return news

    def __getstate__(self) -> dict[str, Any]:
        # Locks can be neither pickled nor copied.
        return vars(self) | {"_locks": {}}
