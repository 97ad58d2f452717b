"""The evaluator: checks how to evaluate, matches the documents once, and answers from that record.

``Plan`` is how a run is evaluated, ``OfflineRetrievalEvaluator`` a run in memory, and
``PartitionPlan`` a run in parts: chunks of a file, or partitions of a cluster.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate, chain, takewhile
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval import __version__
from krag_eval.core import conventions as disputed, documents
from krag_eval.core.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.core.documents import (
    AnyOf,
    Digests,
    DocumentLike,
    Judged,
    QuerySet,
    Tag,
    checked_tags,
    unreviewed_in,
)
from krag_eval.core.errors import (
    Advice,
    Fix,
    InvalidInput,
    Refusal,
    clipped,
    muted,
    tallied,
    warn,
    warn_of,
)
from krag_eval.core.grading import Grading
from krag_eval.core.language import _, ngettext
from krag_eval.core.matching.base import KeyMatcher, Matcher
from krag_eval.core.matching.joins import Matches
from krag_eval.core.matching.parallel import check_n_jobs, processes
from krag_eval.core.options import PLAN_OPTIONS, PlanOptions, check_options, settled_threshold
from krag_eval.core.results import rows as per_query
from krag_eval.core.results.evidence import Evidence, Texts
from krag_eval.core.results.facts import ResultFacts
from krag_eval.core.results.latency import Failure, RetrievalRun
from krag_eval.core.results.reviews import with_unreviewed
from krag_eval.core.scoring import cutoffs as cut, metrics as measures
from krag_eval.core.scoring.cutoffs import (
    DEFAULT_CUTOFFS,
    Budget,
    Cutoff,
    Cutoffs,
    Length,
    Measure,
)
from krag_eval.core.scoring.metrics import REJECTION_RATE, Metric, Table
from krag_eval.core.scoring.missing import MissingQuestions
from krag_eval.core.scoring.parts import Findings, Partial, Reach, Summary, no_texts
from krag_eval.core.scoring.relevance import (
    Beside,
    Relevance,
    judgements_unknown,
    lists_unknown,
    rejections_unknown,
    words_unknown,
)

if TYPE_CHECKING:
    import pandas as pd


#: The class of the results.
Result = TypeVar("Result", bound=ResultFacts)
# Queries that a message names.
_NAMED = 5


class Plan(PlanOptions):
    """How a run is evaluated; the arguments of ``OfflineRetrievalEvaluator``, settled."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """The built-in metrics there are, by column."""
        words = self.matcher.counts_words and self.unjudged != "leave_out"
        aspects = self.aspect_key is not None
        return measures.metrics_for(self.matching_criteria, words=words, aspects=aspects)

    def counted(self, relevance: Relevance) -> NDArray[np.bool_]:
        """Return whether each query counts in the averages; shape (queries,)."""
        if self.no_ground_truth == "skip":
            return np.asarray(relevance.n_items > 0)
        return np.ones(relevance.n_queries, np.bool_)

    def graded(self, queries: QuerySet, *, silent: bool = False) -> Plan:
        """Return the plan with the key of the grades that the ground truth holds; warn of one.

        Args:
            queries: The queries.
            silent: Whether to warn of nothing.
        """
        if self.grade_key is not None or self.grades == "no" or queries.texts_only[0]:
            return self
        grading = Grading()
        grading.add(queries.actual.elements)
        if (key := grading.key) is None:
            return self
        for note in () if silent else grading.notes(key):
            warn(f"actual_docs: {note}.", Advice(_("{} counts all of it"), grades="no"))
        return replace(self, grade_key=key)

    def read(
        self, queries: QuerySet, *, part: bool = False
    ) -> tuple[NDArray[np.float64] | None, bool, Sequence[tuple[str, ...]] | None]:
        """Read the grade of each item, whether any was given, and the aspects of each.

        Grades and aspects are ``None`` where they are not asked for.

        Args:
            queries: The queries.
            part: Whether others of the run are elsewhere, so that these may lack some of it.

        Raises:
            ValueError: If there is ground truth where it is needed, or something in it is wrong.
        """
        grades, any_grade = None, False
        if self.grade_key is not None:
            given = queries.given_grades(self.grade_key)
            grades, any_grade = np.nan_to_num(given, nan=1.0), not np.isnan(given).all()
            if not (any_grade or part):
                documents.warn_of_no_grades(self.grade_key)
        aspects = None if self.aspect_key is None else queries.aspects(self.aspect_key)
        self._check_ground_truth(queries, grades, part=part)
        return grades, any_grade, aspects

    def _check_ground_truth(
        self, queries: QuerySet, grades: NDArray[np.float64] | None, *, part: bool
    ) -> None:
        """Refuse queries without ground truth, unless the plan says how to treat them.

        An item of grade 0 is listed, but no ground truth.
        """
        n_queries = len(queries.labels)
        n_items = np.bincount(queries.item_query, grades, minlength=n_queries)
        sizes = zip(queries.labels, n_items.tolist(), strict=True)
        without = [label for label, n in sizes if not n]
        if self.no_ground_truth == "skip" and len(without) == n_queries and not part:
            raise _nothing_to_measure()
        if without and self.no_ground_truth == "error":
            named = _named(without[:_NAMED])
            more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
            among = f"{n_queries} queries{' of this part' if part else ''} ({named}{more})"
            told = "Pass {} to leave them out of every average, or {} to count them as 0"
            fix = Advice(told, no_ground_truth=("skip", "zero"))
            problem = f": no ground truth for {len(without)} of {among}"
            raise InvalidInput("actual_docs", problem, fix)


def _named(labels: Sequence[str | int]) -> str:
    """Name queries in a sentence; a number alone would look like a count.

    >>> _named(["When?"]), _named([0]), _named([0, 3])
    ("'When?'", 'query 0', 'queries 0, 3')
    """
    named = ", ".join(map(clipped, labels))
    if not all(isinstance(label, int) for label in labels):
        return named
    return f"{'query' if len(labels) == 1 else 'queries'} {named}"


def _nothing_to_measure() -> InvalidInput:
    problem = ": no query has any ground truth, so nothing can be measured"
    return InvalidInput("actual_docs", problem)


class Evaluator(Generic[Result]):
    """A run in memory; ``OfflineRetrievalEvaluator`` says what the arguments are.

    A subclass says by ``_kind`` of which class its results are.
    """

    _kind: type[Result]

    def __init__(
        self,
        # A list that mixes texts and ``AnyOf`` is one of objects to a type checker.
        actual_docs: Sequence[Sequence[DocumentLike | AnyOf]] | Sequence[object],
        predicted_docs: Sequence[Sequence[DocumentLike]],
        matcher: str | Matcher = "text",
        *,
        threshold: float | None = None,
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
        conventions: Conventions | None = None,
        no_ground_truth: Literal["error", "skip", "zero"] = "error",
        queries: Iterable[str | int] | None = None,
        grade_key: str | None = None,
        grades: Literal["auto", "no"] = "auto",
        n_jobs: int | None = None,
        tags: Mapping[str, Sequence[Tag]] | None = None,
        judged: Sequence[Any] | Mapping[str | int, Any] | None = None,
        unjudged: Literal["wrong", "bounds", "leave_out"] = "wrong",
        unwanted: Sequence[Any] | Mapping[str | int, Any] | None = None,
        cited: Sequence[Any] | Mapping[str | int, Any] | None = None,
        aspect_key: str | None = None,
        score_cutoff: float | None = None,
    ) -> None:
        plan = Plan.checked(
            matcher=matcher,
            threshold=threshold,
            matching_criteria=matching_criteria,
            averaging_method=averaging_method,
            conventions=conventions,
            grade_key=grade_key,
            grades=grades,
            aspect_key=aspect_key,
            no_ground_truth=no_ground_truth,
            unjudged=unjudged,
            score_cutoff=score_cutoff,
        )
        if unjudged != "wrong" and judged is None:
            raise judgements_unknown("unjudged")
        if n_jobs is not None:
            n_jobs = check_n_jobs(n_jobs)
        query_set = QuerySet.from_lists(actual_docs, predicted_docs, queries)
        plan = plan.graded(query_set)
        if plan.score_cutoff is not None:
            query_set = query_set.within_score(plan.score_cutoff)
        self._plan = plan
        lists = {"unwanted": unwanted, "cited": cited}
        self._matching = _Matching(query_set, plan, judged, n_jobs, lists=lists)
        self._tags = {} if tags is None else checked_tags(tags, query_set.n_queries)
        self._retrieval: RetrievalRun | None = None
        self._missing: MissingQuestions | None = None
        self._cut: Relevance | None = None
        self._with_lengths: Relevance | None = None

    @property
    def matcher(self) -> Matcher:
        """What makes a retrieved document a match."""
        return self._plan.matcher

    @property
    def threshold(self) -> float:
        """The similarity from which a pair is a match."""
        return self._plan.threshold

    @property
    def averaging_method(self) -> AveragingMethod:
        """Which averages results hold."""
        return self._plan.averaging_method

    @property
    def matching_criteria(self) -> MatchingCriteria:
        """When a query is a hit."""
        return self._plan.matching_criteria

    @property
    def conventions(self) -> Conventions:
        """How the disputed points are settled."""
        return self._plan.conventions

    @property
    def no_ground_truth(self) -> str:
        """What is done about queries without ground truth."""
        return self._plan.no_ground_truth

    @property
    def unjudged(self) -> str:
        """What retrieved documents count as that nobody judged."""
        return self._plan.unjudged

    def __repr__(self) -> str:
        n_queries = len(self._matching.queries.labels)
        told = ngettext(
            "OfflineRetrievalEvaluator of {n} query, matcher {matcher}",
            "OfflineRetrievalEvaluator of {n} queries, matcher {matcher}",
            n_queries,
        ).format(n=n_queries, matcher=self.matcher.signature)
        if self.matcher.takes_threshold:
            told += _(", threshold {:g}").format(self.threshold)
        return told

    @property
    def queries(self) -> list[str | int]:
        """The queries' labels."""
        return list(self._matching.queries.labels)

    def with_threshold(self, threshold: float) -> Self:
        """Return an evaluator with another threshold that shares the matches already made."""
        other = copy.copy(self)
        settled = settled_threshold(threshold, self.matcher)
        other._plan = replace(self._plan, threshold=settled)
        other._cut = other._with_lengths = None
        return other

    def with_conventions(self, conventions: Conventions) -> Self:
        """Return an evaluator with other conventions that shares the matches already made."""
        other = copy.copy(self)
        settled = disputed.checked_conventions("conventions", conventions)
        other._plan = replace(self._plan, conventions=settled)
        return other

    def with_failures(self, failures: Sequence[Failure]) -> Self:
        """Return an evaluator of the same matches whose results know what failed.

        Args:
            failures: The queries whose retriever failed, which count as nothing retrieved.
        """
        other = copy.copy(self)
        other._retrieval = RetrievalRun(np.full(len(self.queries), np.nan), tuple(failures))
        return other

    def with_missing(self, missing: MissingQuestions | None) -> Self:
        """Return an evaluator of the same matches whose results know what the run lacks.

        Args:
            missing: The questions of the ground truth that it lacks.
        """
        other = copy.copy(self)
        other._missing = missing
        return other

    def calculate_hit_rate(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"hit_rate"}``: the share of queries whose ground truth was found, in [0, 1].

        All of a query's ground truth must be within the first ``k`` documents, or any of it with
        ``matching_criteria="partial"``. ``k=None`` looks at all retrieved documents.
        """
        return self._average("hit_rate", k)

    def calculate_precision(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"micro_precision", "macro_precision"}``, in [0, 1].

        The share of the first ``k`` documents that are relevant; a list shorter than ``k`` is
        divided by its own length.
        """
        return self._average("precision", k)

    def calculate_recall(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"micro_recall", "macro_recall"}``, in [0, 1].

        The share of the ground-truth items found within the first ``k`` documents.
        """
        return self._average("recall", k)

    def calculate_f1_score(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"micro_f1", "macro_f1"}``: harmonic means of precision and recall, in [0, 1].

        Macro F1 is the harmonic mean of macro precision and macro recall.
        """
        return self._average("f1", k)

    def calculate_mrr(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"mrr"}``: the mean of 1 / rank at which the first item is found, in [0, 1].

        A query without a relevant document in its first ``k`` counts as 0.
        """
        return self._average("reciprocal_rank", k)

    def calculate_map(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"map"}``: the mean of the queries' average precision, in [0, 1]."""
        return self._average("average_precision", k)

    def calculate_ndcg(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"ndcg"}``: the mean normalised discounted cumulative gain, in [0, 1]."""
        return self._average("ndcg", k)

    def calculate_mean_rank(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"mean_rank", "found_rate"}``.

        The mean rank at which the first item is found, over the queries where one is (NaN if there
        are none), and the share of those queries. Lower ranks are better; 1 is the best.
        """
        return self._average("rank", k)

    def calculate_token_recall(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"micro_token_recall", "macro_token_recall"}``, in [0, 1].

        The share of the ground truth's words that the first ``k`` documents hold together, pieces
        of a passage included.

        Raises:
            ValueError: If the matcher is not coverage, which alone knows words.
        """
        return self._average("token_recall", k)

    def calculate_token_precision(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"micro_token_precision", "macro_token_precision"}``, in [0, 1].

        The share of the words of the first ``k`` documents that bring words of the ground truth; a
        word that comes back twice brings nothing the second time.

        Raises:
            ValueError: If the matcher is not coverage, which alone knows words.
        """
        return self._average("token_precision", k)

    def calculate_token_iou(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"token_iou"}``: words found over all words wanted or retrieved, in [0, 1].

        Raises:
            ValueError: If the matcher is not coverage, which alone knows words.
        """
        return self._average("token_iou", k)

    def calculate_redundancy(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"redundancy"}``: how much of what was found came back again, in [0, 1].

        The share of the retrieved words of ground truth that bring nothing new; lower is better.
        The mean over the queries for which anything was found, NaN if there are none.

        Raises:
            ValueError: If the matcher is not coverage, which alone knows words.
        """
        return self._average("redundancy", k)

    def calculate_rejection_rate(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return ``{"rejection_rate"}``: how often nothing rightly came back, in [0, 1].

        The share of the queries without ground truth for which no document was retrieved. What
        was retrieved for them is wrong at any rank, so every ``k`` gives the same number; it is
        accepted, and checked, as in every other calculation.

        Raises:
            ValueError: If there is no query without ground truth, or such queries count as 0.
        """
        cut.check_cutoff(k)
        if self.no_ground_truth != "skip":
            raise rejections_unknown("no_ground_truth")
        unanswerable = ~self._counted
        if not unanswerable.any():
            raise rejections_unknown("actual_docs", 0)
        rejected = self._found().n_retrieved[unanswerable] == 0
        sums = {"rejected": int(rejected.sum()), "left_out": len(rejected)}
        return {REJECTION_RATE.key: float(REJECTION_RATE.of(sums))}

    def evaluate(
        self,
        k: Cutoffs = DEFAULT_CUTOFFS,
        *,
        budget: int | Iterable[int] | None = None,
        length: Length = "words",
        metrics: Iterable[str | Metric] | None = None,
    ) -> Result:
        """Return all metrics at all cutoffs; the pairs are matched once.

        A budget is a cutoff by what fits: of each query, it sees the longest prefix of the
        retrieved documents whose lengths add up to at most that much, and nothing if the first is
        too long. Chunks of different sizes compare fairly at an equal budget, not at an equal k.
        A metric at a budget is the metric at that prefix, with two differences: nDCG has its ideal
        over all of the ground truth, as how many documents fit is the system's doing; and precision
        divides by the documents in the prefix under all conventions.

        Args:
            k: A cutoff or several; ``None`` stands for all retrieved documents, ``"1000w"`` for a
                budget of 1,000 words (``"4000c"``: characters).
            budget: How much may fit, or several such numbers. Without ``k`` there are no other
                cutoffs then.
            length: What ``budget`` counts: ``"words"``, those of the tokenizer ``"unicode"``;
                ``"characters"``; or a function from a text to its length, such as LangChain's
                ``length_function``. Such budgets are spelled ``"1000t"``.
            metrics: Metrics to compute, one or several, by name or as :class:`~krag_eval.Metric` of
                your own; the default ones if not given, and for the name ``"default"``, as in
                ``["default", "rbp"]``. The cutoff of a name, ``"recall@5"``, is added to ``k``; if
                all names have one, ``k`` not given adds no others.

        Raises:
            InvalidType: If ``length`` is neither, or returns something else than whole numbers.
            InvalidInput: If a cutoff is not possible or given twice, ``length`` is given and no
                budget, or there is a budget and the documents have no texts.

        Warns:
            KragEvalWarning: If every list is shorter than a cutoff, no document fits into a budget,
                or the name of ``length`` does not tell which function it is.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> evaluator = OfflineRetrievalEvaluator(
        ...     [["the cat sat"]], [["a dog barked loudly", "the cat sat"]])
        >>> evaluator.evaluate(budget=[6, 7]).metrics["macro_recall"].to_dict()
        {'6w': 0.0, '7w': 1.0}
        >>> evaluator.evaluate(metrics=["hit_rate@1", "mrr@2"]).k
        (1, 2)
        """
        matching = self._matching
        run = PartitionPlan.settled(self._plan, k, budget, length, metrics, matching.beside)
        if matching.looked_at is None and any(one.needs_judged for one in run.metrics.values()):
            raise judgements_unknown()
        for one in run.metrics.values():
            if one.needs_list not in ("", *matching.beside):
                raise lists_unknown(one.needs_list)
        evidence = self._found(run.cutoffs, run.length)
        reach, (counted, tables, _) = Reach.of(evidence, run.cutoffs), run.scored(evidence)
        with matching.lock:
            reach.warn(run.cutoffs, matching.is_first)
        result = run.told(
            self._kind,
            n_queries=len(counted),
            n_counted=int(counted.sum()),
            n_unreviewed=unreviewed_in(self._tags),
            reach=reach,
            rows=per_query.RowsInMemory(
                labels=self.queries,
                tables=tables,
                counted=counted,
                digests=matching.digests,
                tags=self._tags,
                judged=None if matching.looked_at is None else per_query.JudgedRows.of(evidence),
                unwanted=matching.unwanted_digests,
            ),
            # The arrays alone, and nothing that was worked out from them.
            evidence=Evidence(
                replace(evidence, _counts={}),
                self.matcher.takes_threshold,
                Texts(matching.queries, self.matcher._document_reading is documents.read_id),
                self.matcher,
            ),
            retrieval=self._retrieval,
        )
        if self._missing is None:
            return result
        return replace(result, settings=self._missing.added_to(result.settings))

    def explain_conventions(self, k: Cutoff | str = None) -> pd.DataFrame:
        """Return every metric under every preset, and the fields behind each difference.

        One row per metric key; columns ``default``, ``trec``, ``krag``, ``autorag`` (and
        ``yours``, if this evaluator's conventions are none of them), then ``"trec differs by"``
        and so on, naming the responsible fields. Nothing is matched again.
        """
        cutoff = cut.check_cutoff(k)
        return disputed.conventions_table(
            lambda conventions: self.with_conventions(conventions).evaluate(cutoff).averages(),
            self.conventions,
        )

    def _cut_matches(self, cutoffs: Sequence[Cutoff]) -> Relevance:
        matching = self._matching
        relevance = matching.relevance(self._plan)
        # Evaluators that share matches warn once for all.
        if relevance.n_repeats and matching.is_first("repeats"):
            relevance.warn_of_repeats()
        hits, threshold = len(relevance.hit_item), self._plan.threshold
        next_to_nothing = _NEXT_TO_NOTHING * hits <= len(relevance.grade)
        worth_a_look = next_to_nothing or self._plan.matcher.counts_words
        if worth_a_look and matching.is_first(f"likeness at {threshold!r}"):
            counted = self._plan.counted(relevance)
            tried = partial(_tried_by_coverage, matching.queries, counted, self._plan, cutoffs)
            Findings.of(relevance).warn_of_matches(self._plan.matcher, threshold, tried)
        return relevance

    def _found(self, cutoffs: Sequence[Cutoff] = (), measure: Measure | None = None) -> Relevance:
        """Return the matches, cut at the threshold, with the lengths that budgets need.

        Of several threads that ask first, one does the work. The last lengths are kept: several
        metrics start from the same prefixes.
        """
        with self._matching.lock:
            if self._cut is None:
                self._cut = self._cut_matches(cutoffs)
            lengths = self._matching.lengths(cutoffs, measure)
            if not lengths:
                return self._cut
            if self._cut.n_retrieved.any() and self._matching.has_no_text:
                raise no_texts()
            kept = self._with_lengths
            before = {} if kept is None else kept.lengths or {}
            # Of the same arrays, what was worked out from them still holds.
            if kept is None or [*map(id, before.values())] != [*map(id, lengths.values())]:
                kept = self._with_lengths = replace(self._cut, lengths=lengths)
            return kept

    @property
    def _counted(self) -> NDArray[np.bool_]:
        return self._plan.counted(self._found())

    def _average(self, name: str, k: Cutoff | str) -> dict[str, float]:
        plan, cutoff = self._plan, cut.check_cutoff(k)
        metric = plan.metrics.get(name)
        if metric is None:
            raise words_unknown("matcher", name)
        run = PartitionPlan(plan, (cutoff,), {name: metric})
        counted, tables, _ = run.scored(self._found([cutoff]))
        return Summary.of(tables, counted, **run._known()).averages(cutoff)


class FactsEvaluator(Evaluator[ResultFacts]):
    """A run whose result nobody compares, diagnoses or draws."""

    _kind = ResultFacts


# Where fewer than one match comes on so many ground-truth items, another matcher is tried, on the
# first queries that have so many characters together, and named if it finds so much.
_NEXT_TO_NOTHING = 50
_TRIED = 1_000_000
_WORTH_SAYING = 0.2


def _tried_by_coverage(
    queries: QuerySet, counted: NDArray[np.bool_], plan: Plan, cutoffs: Sequence[Cutoff]
) -> Fix:
    """Say how much coverage finds, where the matcher is a built-in one of texts.

    Empty if that is not much either, or the matcher asks for something else than texts.

    Args:
        queries: The queries.
        counted: Which of them count in the averages; the first of these are looked at.
        plan: How they were evaluated: its matcher found next to nothing.
        cutoffs: Those asked for, of which the deepest counts; all ranks without any.
    """
    matcher, cutoff = plan.matcher, plan.score_cutoff
    if not any(queries.predicted):
        told = _("No list has a document whose score is as good as {}: choose another")
        return "" if cutoff is None else Advice(told, score_cutoff=cutoff)
    if matcher._document_reading is documents.read_text and _are_ids(queries):
        told = _("What was retrieved looks like ids of chunks: give them their texts with {}")
        return Advice(told, corpus=...)
    is_ours = type(matcher).__module__.startswith(__name__.partition(".")[0] + ".")
    if matcher.counts_words or not is_ours or matcher._document_reading is not documents.read_text:
        return ""
    asked = np.flatnonzero(counted).tolist()
    sizes = (sum(map(len, map(documents.text_of, queries.predicted[query]))) for query in asked)
    n_fitting = len([*takewhile(lambda total: total <= _TRIED, accumulate(sizes))])
    tried = asked[: max(n_fitting, 1)]
    k = cut.deepest(cutoffs) if cutoffs else None
    if isinstance(k, Budget) and k.unit == "t":
        k = None  # what measured it is not known here
    with muted():
        sides = queries.actual, queries.predicted
        actual, predicted = ([side[query] for query in tried] for side in sides)
        how: dict[str, Any] = {"no_ground_truth": "zero", "grade_key": plan.grade_key}
        by_coverage = FactsEvaluator(actual, predicted, "coverage", **how)
        recall = by_coverage.calculate_recall(k)["macro_recall"]
    if recall < _WORTH_SAYING:
        return ""
    told = _("With {coverage}: recall@{k} {value:.2f} on the first {n} queries")
    if tried == asked:
        told = _("With {coverage}: recall@{k} {value:.2f}")
    told = told.format(coverage="{}", k=cut.spelled(k), value=recall, n=len(tried))
    return Advice(told, matcher="coverage")


def _are_ids(queries: QuerySet) -> bool:
    """Tell whether each retrieved document is one word, and all ground truth is of several."""
    found = chain.from_iterable(queries.predicted)
    wanted = chain.from_iterable(chain.from_iterable(queries.alternatives()))
    return all(len(documents.text_of(one).split()) == 1 for one in found) and all(
        len(documents.text_of(one).split()) > 1 for one in wanted
    )


class _Matching:
    """The inputs and, once asked for, their matches; shared between evaluators."""

    def __init__(
        self,
        queries: QuerySet,
        plan: Plan,
        judged: object = None,
        n_jobs: int | None = None,
        *,
        lists: Mapping[str, object],
        part: bool = False,
    ) -> None:
        self.queries = queries
        self.matcher = matcher = plan.matcher
        self.n_jobs = n_jobs
        self.grades, self.any_grade, self.aspects = plan.read(queries, part=part)
        self.looked_at: Judged | None = None
        if judged is not None:
            key = matcher.key if isinstance(matcher, KeyMatcher) else None
            self.looked_at = Judged.of(judged, queries, key, self.grades)
        self.beside: dict[str, tuple[QuerySet, NDArray[np.bool_]]] = {
            name: getattr(queries, name)(one) for name, one in lists.items() if one is not None
        }
        self._digests: Digests | None = None
        self._said: set[str] = set()
        self._lengths: dict[str, tuple[Measure | None, NDArray[np.int64]]] = {}
        self._matches: dict[str, Matches] = {}
        self._locks: dict[int, threading.RLock] = {}

    def relevance(self, plan: Plan) -> Relevance:
        """Return what was found; only to be asked for under the lock."""
        queries, matches = self.queries, self.matches
        beside = {}
        for name, (theirs, listed) in self.beside.items():
            grades = None if name == "unwanted" else self.grades
            beside[name] = Beside(self._cut(theirs, matches[name], plan, grade=grades), listed)
        found = self._cut(queries, matches[""], plan, grade=self.grades, aspects=self.aspects)
        return replace(found, queries=queries, looked_at=self.looked_at, beside=beside)

    def _cut(self, queries: QuerySet, matches: Matches, plan: Plan, **known: Any) -> Relevance:
        return Relevance.from_matches(
            matches,
            item_query=queries.item_query,
            n_retrieved=queries.n_predicted,
            threshold=plan.threshold,
            n_alternatives=queries.n_alternatives if queries.has_alternatives else None,
            union=self.matcher.union,
            **known,
        )

    @property
    def digests(self) -> Digests:
        """What tells the ground truth of each query from another one, made when it is looked at.

        Until then it keeps the ground truth alive, and neither predicted documents nor the matcher.
        """
        if self._digests is None:
            reading = self.matcher._document_reading
            truth = self.queries.ground_truth()
            make = partial(truth.digests, self.grades, reading, self.aspects)
            self._digests = Digests(make, len(self.queries.labels))
        return self._digests

    @property
    def lock(self) -> threading.RLock:
        """What to hold while matching, so that threads wait for each other's work.

        Each process has its own: after a fork, that of the parent may be held by a thread that
        does not exist in the child. (``cached_property`` of Python 3.11 would share one lock among
        all evaluators.)
        """
        return self._locks.setdefault(os.getpid(), threading.RLock())

    @property
    def matches(self) -> Mapping[str, Matches]:
        """The pairs, and those of other lists by name; only to be asked for under the lock."""
        if not self._matches:
            n_jobs, team = self.n_jobs, self.matcher.signature
            with nullcontext() if n_jobs is None else processes(n_jobs, team):
                found = {"": self.matcher.match(self.queries)}
                for name, (queries, _listed) in self.beside.items():
                    with _of_list(name, queries, self.matcher):
                        found[name] = self.matcher.match(queries)
            self._matches = found
        return self._matches

    @property
    def unwanted_digests(self) -> list[str] | None:
        """What tells the unwanted documents of each query from others; ``None`` without lists."""
        if "unwanted" not in self.beside:
            return None
        queries, listed = self.beside["unwanted"]
        digests = queries.digests(None, self.matcher._document_reading)
        return [one if has else _NO_LIST for one, has in zip(digests, listed, strict=True)]

    def lengths(
        self, cutoffs: Iterable[Cutoff], measure: Measure | None
    ) -> dict[str, NDArray[np.int64]]:
        """Return how long every predicted document is, in the units of budgets.

        Only to be asked for under the lock.
        """
        units = dict.fromkeys(one.unit for one in cutoffs if isinstance(one, Budget))
        for unit in units:
            if unit not in self._lengths or self._lengths[unit][0] != measure:
                self._lengths[unit] = measure, cut.lengths_of(self._texts, unit, measure)
        return {unit: self._lengths[unit][1] for unit in units}

    @property
    def has_no_text(self) -> bool:
        """Whether all predicted documents lack a text."""
        return all(map(documents.is_blank, self._texts))

    @property
    def _texts(self) -> list[str]:
        return self.queries.predicted_texts(self.matcher._document_reading)

    def is_first(self, key: str) -> bool:
        """Return True once per key; to be called under the lock."""
        first = key not in self._said
        self._said.add(key)
        return first

    def __getstate__(self) -> dict[str, Any]:
        # Locks can be neither pickled nor copied.
        return vars(self) | {"_locks": {}, "_lengths": {}}


# The digest of a query without a list.
_NO_LIST = "0" * 16


@contextmanager
def _of_list(name: str, queries: QuerySet, matcher: Matcher) -> Iterator[None]:
    """Let the matcher speak of another list, and say nothing twice of the usual ones."""
    is_unwanted = name == "unwanted"
    try:
        with tallied():
            yield
    except Refusal as error:
        replaced = "actual_docs" if is_unwanted else "predicted_docs"
        error.argument = error.argument.replace(replaced, name)
        raise
    if matcher._document_reading is documents.read_text:
        several: Iterable[Any] = queries.predicted.elements
        if is_unwanted:
            several = chain.from_iterable(chain.from_iterable(queries.alternatives()))
        told = _("{} documents of {name} have empty or blank text, which never matches any text.")
        n_blank = sum(documents.is_blank(documents.text_of(one)) for one in several)
        warn_of(told.format("{}", name=name), n_blank)


@dataclass(frozen=True, eq=False)
class Part:
    """An evaluated part of a run.

    Attributes:
        rows: Column -> one value per query, shape (queries,); the columns and their types are
            :attr:`PartitionPlan.row_types`, whatever the part holds.
        partial: Its sums and findings.
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
        length: The user's function that budgets are counted by; ``None`` if there is none.

    >>> plan = PartitionPlan.of(k=2)
    >>> first = plan.evaluate([["a", "b"]], [["a", "x"]], ["When?"])
    >>> second = plan.evaluate([["c"], ["d"]], [["c"], ["y", "d"]], ["Who?", "Why?"])
    >>> first.rows["query"].tolist(), first.rows["recall@2"].tolist()
    (['When?'], [0.5])
    """

    plan: Plan
    cutoffs: tuple[Cutoff, ...]
    metrics: Mapping[str, Metric]
    length: Measure | None = None

    @classmethod
    def of(
        cls,
        k: Cutoffs = DEFAULT_CUTOFFS,
        *,
        budget: int | Iterable[int] | None = None,
        length: Length = "words",
        metrics: Iterable[str | Metric] | None = None,
        lists: Container[str] = (),
        **options: Any,
    ) -> Self:
        """Settle how a run is evaluated.

        Args:
            k: A cutoff or several; ``None`` stands for all retrieved documents.
            budget: How much may fit, or several such numbers; see
                :meth:`OfflineRetrievalEvaluator.evaluate
                <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
            length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
            metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all
                built-in ones if not given.
            lists: The other lists that every part will have: ``["unwanted", "cited"]``.
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
                ``threshold``, ``conventions``, …, but no documents and no labels.

        Raises:
            TypeError, ValueError: As the evaluator does.
        """
        check_options(cls.of, options, PLAN_OPTIONS)
        return cls.settled(Plan.checked(**options), k, budget, length, metrics, lists)

    @classmethod
    def settled(
        cls,
        plan: Plan,
        k: Cutoffs,
        budget: int | Iterable[int] | None,
        length: Length,
        metrics: Iterable[str | Metric] | None,
        lists: Container[str] = (),
        default: tuple[int | None, ...] = DEFAULT_CUTOFFS,
    ) -> Self:
        """Settle where lists are cut off, and what is computed; ``default`` is no wish."""
        asked = measures.asked_metrics(metrics)
        cutoffs, measure = cut.settled_cutoffs(
            k, budget, length, default=default, metrics=asked or ()
        )
        chosen = measures.chosen_metrics(asked, plan.metrics, lists)
        chosen = measures.with_bounds(chosen) if plan.unjudged == "bounds" else chosen
        return cls(plan, cutoffs, chosen, measure)

    @property
    def row_types(self) -> dict[str, type]:
        """The columns of the rows, in order, and their types: ``query`` is text (or ``None``).

        Then ``counted``, ``ground_truth``, ``ground_truth_digest`` (which tells a query's ground
        truth from another one) and, for every cutoff, ``retrieved@k``, ``relevant@k``,
        ``covered@k`` and the metrics; a metric is NaN where it is undefined or the query is left
        out of the averages. Where there is a budget, ``lengths@w`` (or another unit) has the
        length of each retrieved document and ``first_ranks`` the rank of each covered item, as
        text: ``"120 98 77"``.
        """
        return {"query": object, **per_query.column_types(self.cutoffs, self.metrics)}

    def evaluate(
        self,
        actual: Any,
        predicted: Any,
        queries: Sequence[str | int | None] | None = None,
        tags: Mapping[str, Sequence[Tag]] | None = None,
        judged: Sequence[Any] | None = None,
        unwanted: Sequence[Any] | None = None,
        cited: Sequence[Any] | None = None,
    ) -> Part:
        """Evaluate a part of a run; the part may be empty.

        A pure function of its arguments: the values of a query do not depend on which others are
        in its part (as far as a matcher of your own treats each pair alike). Warnings about the
        input are kept for the whole run, except those that announce a long wait.

        Args:
            actual: Per query, its ground truth.
            predicted: Per query, the retrieved documents, best first.
            queries: One label per query, such as the question; ``None`` where there is none.
            tags: Name -> one value per query; a column ``tag:name`` of the rows, as JSON.
            judged: Per query, the documents that somebody looked at; what is known of each
                retrieved document is in the columns ``judged``, ``document_keys`` and
                ``judged_digest`` of the rows.
            unwanted: Per query, the documents that must not come back, or ``None``. What tells them
                from others is in the column ``unwanted_digest`` of the rows.
            cited: Per query, the documents that the answer cited, or ``None``.

        Raises:
            TypeError, ValueError: As :class:`~krag_eval.OfflineRetrievalEvaluator` does; positions
                in the message are those within the part.
        """
        if not len(actual) and not len(predicted):
            kinds = self.row_types.items()
            return Part({name: np.zeros(0, kind) for name, kind in kinds}, self.nothing())
        if self.plan.unjudged != "wrong" and judged is None:
            raise judgements_unknown("unjudged")
        if self.plan.score_cutoff is not None:
            problem = "is for runs in memory: all ranks together tell which scores are better"
            raise InvalidInput("score_cutoff", problem, "load the data set, and evaluate it whole")
        # Labels for messages: the position where a query has none.
        names = None if queries is None else [
            place if label is None else label for place, label in enumerate(queries)
        ]  # fmt: skip
        with tallied() as tallies:
            query_set = QuerySet.from_lists(actual, predicted, names, part=True)
            self._check_grades(query_set)
            lists = {"unwanted": unwanted, "cited": cited}
            matching = _Matching(query_set, self.plan, judged, lists=lists, part=True)
            relevance = matching.relevance(self.plan)
            relevance.warn_of_repeats()
        lengths = matching.lengths(self.cutoffs, self.length)
        relevance = replace(relevance, lengths=lengths or None)
        has_text = bool(lengths) and not matching.has_no_text
        reach = Reach.of(relevance, self.cutoffs, has_text=has_text)
        flags = {} if judged is None else per_query.JudgedRows.of(relevance).columns()
        if (unwanted := matching.unwanted_digests) is not None:
            flags[per_query.UNWANTED_DIGEST] = np.array(unwanted, object)
        counted, tables, found = self.scored(relevance)
        notes: dict[str, Any] = {"any_grade": matching.any_grade, "tallies": tallies}
        findings = Findings.of(relevance, **notes, reach=reach)
        labels = np.full(query_set.n_queries, None, object)
        if queries is not None:
            labels[:] = [None if label is None else str(label) for label in queries]
        known = checked_tags(tags or {}, query_set.n_queries)
        reading = self.plan.matcher._document_reading
        digests = query_set.digests(matching.grades, reading, matching.aspects)
        columns = per_query.flat_columns(tables, counted, self.metrics, digests, known, found)
        summary = Summary.of(tables, counted, **self._known())
        summary = replace(summary, n_contradicted=relevance.n_contradicted)
        partial = Partial(self._settings(), summary, findings)
        return Part({"query": labels, **columns, **flags}, partial)

    def _check_grades(self, queries: QuerySet) -> None:
        """Refuse a part whose ground truth holds grades that the other parts may not know of."""
        key = self.plan.graded(queries, silent=True).grade_key
        if key != self.plan.grade_key:
            problem = f": {key} of the ground truth is 0 somewhere, and may be its grade"
            fix = Advice("{} reads it as such, and {} counts all of it", ("grade_key", key),
                         ("grades", "no"))  # fmt: skip
            raise InvalidInput("actual_docs", problem, fix)

    def scored(self, found: Relevance) -> tuple[NDArray[np.bool_], dict[Cutoff, Table], Relevance]:
        """Return which queries count, the table of each cutoff, and what the tables are made of."""
        found = found.condensed() if self.plan.unjudged == "leave_out" else found
        conventions = self.plan.conventions
        tables = {k: measures.table_of(found, k, self.metrics, conventions) for k in self.cutoffs}
        return self.plan.counted(found), tables, found

    def told(
        self,
        kind: type[Result],
        *,
        n_queries: int,
        n_counted: int,
        reach: Reach,
        rows: per_query.Rows,
        n_unreviewed: int = 0,
        **more: Any,
    ) -> Result:
        """Return the result of a run, of a class, with what is known of it beside."""
        settings = self._settings(n_queries, n_queries - n_counted, reach)
        return kind(
            settings=with_unreviewed(settings, n_unreviewed),
            rows=rows,
            **self._known(),
            **more,
        )

    def nothing(self) -> Partial:
        """Return the partial of no queries: the identity for ``+``."""
        names = [column for metric in self.metrics.values() for column in metric.columns]
        tables = dict.fromkeys(self.cutoffs, dict.fromkeys(names, np.zeros(0)))
        summary = Summary.of(tables, np.zeros(0, np.bool_), **self._known())
        return Partial(self._settings(), summary, Findings())

    def _known(self) -> dict[str, Any]:
        """Return what sums and results know of how they were made."""
        return {
            "keys": {name: metric.key for name, metric in self.metrics.items()},
            "averaging_method": self.plan.averaging_method,
            "conventions": self.plan.conventions,
            "declared": measures.declarations(self.metrics),
        }

    def whole(
        self, kind: type[Result], partials: Iterable[Partial], rows: per_query.Rows | None = None
    ) -> Result:
        """Put parts together into a result of a class; what is said of the whole is said once."""
        whole = reduce(Partial.__add__, partials, self.nothing())
        summary = whole.summary
        if not summary.n_queries:
            problem = "and predicted_docs are empty (0 queries in all parts)"
            raise InvalidInput("actual_docs", problem, "an evaluation needs at least one query")
        if self.plan.no_ground_truth == "skip" and not summary.n_counted:
            raise _nothing_to_measure()
        findings = whole.findings
        reach = findings.reach
        if reach.most and not reach.has_text and any(isinstance(k, Budget) for k in self.cutoffs):
            raise no_texts()
        findings.warn(self.plan.matcher, self.plan.threshold, self.plan.grade_key, self.cutoffs)
        return self.told(
            kind,
            n_queries=summary.n_queries,
            n_counted=summary.n_counted,
            reach=reach,
            rows=rows or per_query.NoRows(self.cutoffs, summary.n_queries),
            totals=summary,
        )

    def _settings(
        self, n_queries: int | None = None, n_skipped: int = 0, reach: Reach | None = None
    ) -> dict[str, str]:
        """Return what the numbers depend on, for the signature.

        Args:
            n_queries: Number of queries; ``None`` of a part, which can be any.
            n_skipped: How many of them are left out of the averages.
            reach: How far the lists reach; ``None`` if that is not known yet.
        """
        own = measures.marks_of(self.metrics.values())
        cutoff = {"k": ",".join(map(cut.spelled, self.cutoffs))}
        if self.length:
            cutoff["length"] = self.length.name
        queries = {} if n_queries is None else {"queries": str(n_queries)}
        behind = {"threshold": cutoff, "no_ground_truth": queries}
        said: dict[str, str] = {}
        for name, value in self.plan.signed().items():
            said |= {name: value} | behind.get(name, {})
        said["no_ground_truth"] += f"({n_skipped})" if n_skipped else ""
        return {
            **said,
            **({"metrics": own} if own else {}),
            **({"retrieved": f"<={reach.most}"} if reach and reach.beyond(self.cutoffs) else {}),
            "krag_eval": __version__,
        }
