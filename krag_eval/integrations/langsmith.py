"""LangSmith and OpenEvals: evaluators that give krag_eval's numbers for their runs.

LangSmith itself is never imported: it calls what :func:`retrieval_evaluators` returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

from krag_eval.core import (
    PLAN_OPTIONS,
    Advice,
    AveragingMethod,
    Conventions,
    Cutoff,
    Cutoffs,
    InvalidInput,
    Length,
    Location,
    Matcher,
    Metric,
    clipped,
    muted,
    resolve_matcher,
    spelled,
)
from krag_eval.core.conventions import MatchingCriteria
from krag_eval.core.errors import told_apart
from krag_eval.core.matching.base import looks_at_questions
from krag_eval.core.results.evidence import GroundTruthItem, outcomes
from krag_eval.evaluator import OfflineRetrievalEvaluator, PartitionPlan, Plan
from krag_eval.formats.langsmith import OUTPUT_KEYS, REFERENCE_KEYS, list_under, question_under
from krag_eval.loading.cells import documents_in, ranked_in
from krag_eval.result import EvaluationResult

__all__ = ["RetrievalEvaluators", "Score", "retrieval_evaluators"]

#: ``{"key": "recall@5", "score": 0.5, "comment": "…"}``; the score is ``None`` where undefined.
Score: TypeAlias = dict[str, Any]
# Ground truth that was not found, named in a comment.
_NAMED = 3
_DEFAULT_CUTOFFS = (5,)


class RetrievalEvaluators(NamedTuple):
    """The two evaluators of :func:`retrieval_evaluators`.

    Attributes:
        per_query: For ``evaluators=[…]``: called with ``inputs``, ``outputs`` and
            ``reference_outputs`` of one example, it returns one score per metric and cutoff.
        summary: For ``summary_evaluators=[…]``: called with the lists of all examples, it returns
            the averages.
    """

    per_query: Callable[..., list[Score]]
    summary: Callable[[list[Any], list[Any], list[Any]], list[Score]]


def retrieval_evaluators(
    k: Cutoffs = _DEFAULT_CUTOFFS,
    matcher: str | Matcher = "text",
    *,
    threshold: float | None = None,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
    matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
    conventions: Conventions | None = None,
    no_ground_truth: Literal["error", "skip", "zero"] = "error",
    grade_key: str | None = None,
    grades: Literal["auto", "no"] = "auto",
    documents_key: str | None = None,
    reference_key: str | None = None,
    question_key: str | None = None,
) -> RetrievalEvaluators:
    """Return evaluators for LangSmith's ``evaluate`` and ``aevaluate``, and for OpenEvals.

    Scores per query are named after the per-query columns (``recall@5``, ``reciprocal_rank@5``),
    averages after the averages (``micro_recall@5``, ``mrr@5``), and are the numbers of
    :meth:`OfflineRetrievalEvaluator.evaluate <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
    Comments say what was found and what was missed. What is undefined, as the rank where nothing
    was found, has the score ``None``.

    Documents may be LangChain documents, strings, dicts with ``"page_content"``, or LangChain
    documents as LangSmith serialises them; in the ground truth ``{"any_of": [documents]}`` lists
    interchangeable ones. A run that failed counts as one that retrieved nothing.

    Args:
        k: A cutoff or several, 5 if not given; ``None`` for all retrieved documents.
        matcher: What makes a retrieved document a match: a name or a matcher.
        threshold: Similarity from which a pair is a match; the matcher's own if not given.
        budget: How much may fit, or several such numbers, beside or instead of ``k``.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics by name, ``"recall"`` or, with its cutoff, ``"recall@5"``, or of your own;
            all built-in ones if not given. Cutoffs of names are added to ``k``; if all names have
            one, ``k`` not given adds no others.
        averaging_method: Which averages the summary holds: ``"micro"``, ``"macro"``, ``"both"``.
        matching_criteria: When a query is a hit: ``"all"`` of its ground truth found, or
            ``"partial"``.
        conventions: How the disputed points are settled.
        no_ground_truth: For examples whose list of ground truth is empty: ``"error"``, ``"skip"``
            (the scores are ``None``) or ``"zero"``.
        grade_key: Key in the metadata of the ground truth that holds its grade.
        grades: Whether records of an example's ground truth say grades where one is 0; ``"no"``
            counts all of it alike.
        documents_key: Key of the retrieved documents in ``outputs``; if not given, the one list
            under a usual name, such as ``"documents"`` or ``"context"``.
        reference_key: Key of the ground truth in ``reference_outputs``, likewise.
        question_key: Key of the question in ``inputs``, read for a matcher that looks at it, such
            as a judge; if not given, the only key, or the one with a usual name.

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is not among those allowed.

    >>> per_query, summary = retrieval_evaluators(k=2, metrics=["recall"])
    >>> (score,) = per_query(
    ...     inputs={"question": "When is it open?"},
    ...     outputs={"documents": ["From 9 to 5.", "Closed on Mondays."]},
    ...     reference_outputs={"documents": ["From 9 to 5.", "Open on holidays."]},
    ... )
    >>> score["key"], score["score"], score["comment"]
    ('recall@2', 0.5, "found 1 of 2 within 2 (rank 1); missed 'Open on holidays.'")
    """
    matcher = resolve_matcher(matcher)
    options = {name: one for name, one in locals().items() if name in PLAN_OPTIONS}
    # Bad options are refused here, not once per example and into a log.
    plan = PartitionPlan.settled(
        Plan.checked(**options), k, budget, length, metrics, default=_DEFAULT_CUTOFFS
    )
    length, chosen = plan.length or "words", [*plan.metrics.values()]
    keys = documents_key, reference_key, question_key
    experiment = _Experiment(options, plan.cutoffs, length, chosen, *keys)
    return RetrievalEvaluators(_per_query(experiment), _summary(experiment))


def is_failure(outputs: Any) -> bool:
    """Tell whether a run left nothing behind, as a failed one does.

    >>> is_failure(None), is_failure({"output": None}), is_failure({"documents": []})
    (True, True, False)
    """
    if isinstance(outputs, Mapping):
        return all(value is None for value in outputs.values())
    return outputs is None


class _Experiment(NamedTuple):
    """What both evaluators do with the documents of an experiment."""

    options: Mapping[str, Any]
    k: tuple[Cutoff, ...]
    length: Length
    metrics: list[Metric]
    documents_key: str | None
    reference_key: str | None
    question_key: str | None

    def questions(self, inputs: Mapping[str, Any]) -> list[str] | None:
        """Return the questions of examples, by what to call them, if the matcher looks at these."""
        if not looks_at_questions(self.options["matcher"]):
            return None
        key = self.question_key
        return [question_under(one, key, where, "question_key") for where, one in inputs.items()]

    def predicted(self, outputs: Any, where: str) -> list[Any]:
        if is_failure(outputs):
            return []
        name, found = list_under(outputs, self.documents_key, OUTPUT_KEYS, where, "documents_key")
        return ranked_in(found, Location(name))[0]

    def actual(self, reference: Any, where: str) -> list[Any]:
        given = {} if reference is None else reference
        name, found = list_under(given, self.reference_key, REFERENCE_KEYS, where, "reference_key")
        return documents_in(found, Location(name), ground_truth=True)

    def evaluated(
        self, actual: list[Any], predicted: list[Any], questions: list[str] | None, **other: Any
    ) -> EvaluationResult:
        how = {**self.options, **other}
        evaluator = OfflineRetrievalEvaluator(actual, predicted, queries=questions, **how)
        return evaluator.evaluate(self.k, length=self.length, metrics=self.metrics)


def _per_query(experiment: _Experiment) -> Callable[..., list[Score]]:
    # A function by this very signature: LangSmith looks at the names of the parameters.
    def krag_eval_retrieval(
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        run: Any = None,
        **unused: Any,
    ) -> list[Score]:
        """Score the documents of one example."""
        predicted = experiment.predicted(outputs, "outputs")
        actual = experiment.actual(reference_outputs, "reference_outputs")
        # Whether a query without ground truth counts is decided below: it is the only one here.
        with muted():
            questions = experiment.questions({"inputs": inputs})
            result = experiment.evaluated([actual], [predicted], questions, no_ground_truth="zero")
        failure, otherwise = _failure(outputs, run), experiment.options["no_ground_truth"]
        return [one for k in result.k for one in _scores_at(result, k, otherwise, failure)]

    return krag_eval_retrieval


def _summary(experiment: _Experiment) -> Callable[[list[Any], list[Any], list[Any]], list[Score]]:
    def krag_eval_retrieval_summary(
        inputs: list[Any], outputs: list[Any], reference_outputs: list[Any]
    ) -> list[Score]:
        """Average over all examples."""
        truth = enumerate(reference_outputs)
        actual = [experiment.actual(one, f"reference_outputs[{at}]") for at, one in truth]
        found = enumerate(outputs)
        predicted = [experiment.predicted(one, f"outputs[{at}]") for at, one in found]
        questions = experiment.questions({f"inputs[{at}]": x for at, x in enumerate(inputs)})
        result = experiment.evaluated(actual, predicted, questions)
        failures = sum(map(is_failure, outputs))
        failed = f"{failures} failed and count as nothing retrieved; " if failures else ""
        comment = f"{result.n_queries} queries; {failed}{result.signature}"
        return [_score(name, value, comment) for name, value in result.to_dict().items()]

    return krag_eval_retrieval_summary


def _scores_at(
    result: EvaluationResult, k: Cutoff, no_ground_truth: str, failure: str
) -> list[Score]:
    """Return the scores of a result of one query at one cutoff."""
    table = result.tables[k]
    if not table["ground_truth"][0] and no_ground_truth != "zero":
        if no_ground_truth == "error":
            told = 'pass {} to leave such examples out of every average, or "zero" to count them'
            fix = Advice(f"{told} as 0", no_ground_truth="skip")
            raise InvalidInput("reference_outputs", ": the list of ground truth is empty", fix)
        comment = "no ground truth: left out of every average"
        return [_score(f"{name}@{spelled(k)}", math.nan, comment) for name in result.keys]
    comment = failure + found_and_missed(result, k)
    return [_score(f"{name}@{spelled(k)}", float(table[name][0]), comment) for name in result.keys]


def _score(key: str, value: float, comment: str) -> Score:
    # JSON has no NaN, and one NaN would make every average NaN.
    return {"key": key, "score": None if math.isnan(value) else value, "comment": comment}


def _failure(outputs: Any, run: Any) -> str:
    if not is_failure(outputs):
        return ""
    error = getattr(run, "error", None)
    why = f" ({str(error).splitlines()[0][:100]})" if error else ""
    return f"the run failed or returned nothing{why}, which counts as nothing retrieved; "


def found_and_missed(
    result: EvaluationResult, k: Cutoff, position: int = 0, *, texts: bool = True
) -> str:
    """Say what was found of the ground truth of a query, and what was not.

    Args:
        result: A result that keeps its evidence.
        k: The cutoff.
        position: The query.
        texts: Whether to name what was missed by its text, or by its number alone.
    """
    assert result.evidence is not None
    _, items = outcomes(result.evidence, position, k)
    if not texts:
        items = tuple(replace(item, alternatives=()) for item in items)
    found = [item for item in items if item.outcome.startswith("found")]
    within = int(result.tables[k]["retrieved"][position])
    ranks = ", ".join("+".join(map(str, item.pieces or (item.first_rank,))) for item in found)
    said = f"found {len(found)} of {len(items)} within {within}"
    if found:
        said += f" (rank{'s' if len(found) > 1 or found[0].pieces else ''} {ranks})"
    missed = [item for item in items if not item.outcome.startswith("found")]
    if missed:
        said += f"; missed {', '.join(_miss(one, result.threshold) for one in missed[:_NAMED])}"
    return said + (f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else "")


def _miss(item: GroundTruthItem, threshold: float | None) -> str:
    text = clipped(item.alternatives[0]) if item.alternatives else f"item {item.number}"
    if item.first_rank is not None:
        return f"{text} (found at rank {item.first_rank})"
    if item.nearest_rank is not None and threshold is not None:
        similarity, least = told_apart(item.similarity, threshold, ".2f")
        nearest = f"nearest at rank {item.nearest_rank}"
        if item.pieces:
            nearest = f"ranks {'+'.join(map(str, item.pieces))} together"
        return f"{text} ({nearest}, {similarity} of {least})"
    return text
