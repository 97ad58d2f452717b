"""The evaluator: holds the inputs, matches them once, and answers from that record.

This room wires the others together. It must not know formulas or drawing.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval import __version__
from krag_eval._errors import (
    PLAN_OPTIONS,
    check_options,
    clipped,
    named_options,
    number,
    tallied,
    unknown_name,
)
from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria, resolve_choice
from krag_eval.documents import Digests, QuerySet
from krag_eval.matching.base import Matcher, resolve_matcher
from krag_eval.matching.joins import Matches
from krag_eval.matching.parallel import check_n_jobs, processes
from krag_eval.results.evidence import DocumentTexts, Evidence
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import NoRows, Rows, RowsInMemory, column_types, flat_columns
from krag_eval.scoring.averages import Summary, average
from krag_eval.scoring.cutoffs import check_cutoff, check_cutoffs, spelled
from krag_eval.scoring.metrics import Metric, chosen_metrics, metrics_for, table_of
from krag_eval.scoring.parts import Findings, Likeness
from krag_eval.scoring.relevance import Relevance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "NO_GROUND_TRUTH",
    "NoGroundTruth",
    "OfflineRetrievalEvaluator",
    "Part",
    "Partial",
    "PartitionPlan",
    "Plan",
    "checked_conventions",
    "checked_threshold",
]

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
        n_jobs = n_jobs if n_jobs is None else check_n_jobs(n_jobs)
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
        from krag_eval.conventions import conventions_table

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
            alone = self.n_jobs is None
            with nullcontext() if alone else processes(self.n_jobs, self.matcher.signature):
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


NoGroundTruth: TypeAlias = Literal["error", "skip", "zero"]
NO_GROUND_TRUTH = ("error", "skip", "zero")
_NAMED = 5


@dataclass(frozen=True)
class Plan:
    """How a run is evaluated; the arguments of ``OfflineRetrievalEvaluator``, settled.

    Attributes:
        matcher: What makes a predicted document a match.
        threshold: Similarity from which a pair is a match.
        averaging_method: Which of the micro and macro keys are averaged.
        matching_criteria: When a query is a hit.
        conventions: How the disputed points are settled.
        no_ground_truth: What becomes of queries without ground truth.
        grade_key: Key in the metadata that holds the grade; ``None`` if all grades are 1.
    """

    matcher: Matcher
    threshold: float
    averaging_method: AveragingMethod
    matching_criteria: MatchingCriteria
    conventions: Conventions
    no_ground_truth: NoGroundTruth
    grade_key: str | None

    @classmethod
    def checked(
        cls,
        *,
        matcher: str | Matcher = "text",
        threshold: float | None = None,
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
        conventions: Conventions | None = None,
        no_ground_truth: NoGroundTruth = "error",
        grade_key: str | None = None,
    ) -> Plan:
        """Settle the arguments of an evaluator.

        Raises:
            TypeError: If one is of another kind than it should be.
            ValueError: If one is not among those allowed.
        """
        averaging = resolve_choice(AveragingMethod, averaging_method, "averaging_method")
        criteria = resolve_choice(MatchingCriteria, matching_criteria, "matching_criteria")
        if no_ground_truth not in NO_GROUND_TRUTH:
            raise ValueError(unknown_name("no_ground_truth", no_ground_truth, NO_GROUND_TRUTH))
        settled = checked_conventions(conventions)
        resolved = resolve_matcher(matcher)
        least = checked_threshold(threshold, resolved)
        return cls(resolved, least, averaging, criteria, settled, no_ground_truth, grade_key)

    def settings(
        self, cutoffs: Sequence[int | None], *, n_queries: int, n_skipped: int
    ) -> dict[str, str]:
        """Return what the numbers depend on, for the signature."""
        return {
            "matcher": self.matcher.signature,
            "threshold": repr(self.threshold) if self.matcher.takes_threshold else "-",
            "k": ",".join(map(spelled, cutoffs)),
            "criteria": self.matching_criteria.value,
            "averaging": self.averaging_method.value,
            "conventions": str(self.conventions),
            "grades": self.grade_key or "-",
            "no_ground_truth": self.no_ground_truth + (f"({n_skipped})" if n_skipped else ""),
            "queries": str(n_queries),
            "krag_eval": __version__,
        }

    def relevance(
        self, queries: QuerySet, matches: Matches, grades: NDArray[np.float64] | None
    ) -> Relevance:
        """Settle what was found in the matches of a query set."""
        return Relevance.from_matches(
            matches,
            item_query=queries.item_query,
            n_retrieved=queries.n_predicted,
            threshold=self.threshold,
            grade=grades,
            n_alternatives=queries.n_alternatives,
        )

    def counted(self, relevance: Relevance) -> NDArray[np.bool_]:
        """Return whether each query counts in the averages; shape (queries,)."""
        if self.no_ground_truth == "skip":
            return np.asarray(relevance.n_items > 0)
        return np.ones(relevance.n_queries, np.bool_)

    def check_ground_truth(
        self, queries: QuerySet, grades: NDArray[np.float64] | None, *, part: bool = False
    ) -> None:
        """Refuse queries without ground truth, unless the plan says what becomes of them.

        Args:
            queries: The queries.
            grades: The grade of each item; an item of grade 0 is listed, but no ground truth.
            part: Whether others of the run are elsewhere, so that these need not have any.

        Raises:
            ValueError: Naming some of the queries, or saying that nothing can be measured.
        """
        n_items = np.bincount(queries.item_query, grades, minlength=queries.n_queries)
        without = [
            label for label, n in zip(queries.labels, n_items.tolist(), strict=True) if not n
        ]
        if self.no_ground_truth == "skip" and len(without) == queries.n_queries and not part:
            raise ValueError(NOTHING_TO_MEASURE)
        if without and self.no_ground_truth == "error":
            named = _named(without[:_NAMED])
            more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
            raise ValueError(
                f"actual_docs: no ground truth for {len(without)} of {queries.n_queries} queries"
                f"{' of this part' if part else ''} ({named}{more}). "
                'Pass no_ground_truth="skip" to leave them out of every average, or '
                '"zero" to count them as 0.'
            )


def _named(labels: Sequence[str | int]) -> str:
    """Name queries in a sentence; a number alone would look like a count.

    >>> _named(["When?"]), _named([0]), _named([0, 3])
    ("'When?'", 'query 0', 'queries 0, 3')
    """
    named = ", ".join(map(clipped, labels))
    if not all(isinstance(label, int) for label in labels):
        return named
    return f"{'query' if len(labels) == 1 else 'queries'} {named}"


#: Why a run in which no query counts is refused.
NOTHING_TO_MEASURE = "actual_docs: no query has any ground truth, so nothing can be measured."


def checked_conventions(conventions: object) -> Conventions:
    """Return conventions, given as such, by their printed form, or not at all.

    Raises:
        TypeError: If they are neither.
    """
    if conventions is None:
        return Conventions()
    if isinstance(conventions, str):
        return Conventions.parse(conventions)
    if isinstance(conventions, Conventions):
        return conventions
    raise TypeError(
        "conventions must be a Conventions object or its printed form, such as "
        f"Conventions.trec() or 'trec', got {conventions!r}."
    )


def checked_threshold(threshold: object, matcher: Matcher) -> float:
    """Return the threshold in use: the one given, or the matcher's own.

    Raises:
        ValueError: If it is none, or the matcher takes none.
    """
    if threshold is None:
        return number("matcher.threshold", matcher.threshold, 0, 1)
    if not matcher.takes_threshold:
        raise ValueError(
            f"threshold must be left out for the matcher {matcher.signature}, which decides "
            f"without one, got {threshold!r}."
        )
    return number("threshold", threshold, 0, 1)


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
