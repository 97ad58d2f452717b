"""Pydantic Evals: krag_eval's numbers for the cases of a data set, and for its whole report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from krag_eval.core import MissingPackage, install_line, one_of
from krag_eval.integrations.langsmith import RetrievalEvaluators, retrieval_evaluators

try:
    from pydantic_evals.evaluators import (
        EvaluationReason,
        Evaluator,
        EvaluatorContext,
        ReportEvaluator,
        ReportEvaluatorContext,
    )
    from pydantic_evals.reporting.analyses import TableResult
except ImportError as error:
    told = "krag_eval.integrations.pydantic_evals needs Pydantic Evals"
    raise MissingPackage("", told, install_line("pydantic-evals")) from error

__all__ = ["RetrievalEvaluator", "RetrievalReport"]

_HOLDERS = ("expected_output", "metadata")


@dataclass(repr=False)
class _Retrieval:
    """What both take, as a file of Pydantic Evals may spell it."""

    metrics: str | list[str] | None = None
    matcher: Any = "text"
    threshold: float | None = None
    ground_truth: str = "expected_output"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("ground_truth", self.ground_truth, _HOLDERS)
        self._evaluators()  # what is wrong is refused here, not once per case

    def _evaluators(self) -> RetrievalEvaluators:
        how = {"metrics": self.metrics, "threshold": self.threshold, **self.options}
        return retrieval_evaluators(matcher=self.matcher, **how)

    def _three(self, case: Any) -> Iterator[Any]:
        """Yield inputs, outputs and ground truth; fields of an object are those of a dict."""
        for one in (case.inputs, getattr(case, "output", None), getattr(case, self.ground_truth)):
            yield vars(one) if hasattr(one, "__dict__") else one


@dataclass(repr=False)
class RetrievalEvaluator(_Retrieval, Evaluator[Any, Any, Any]):  # type: ignore[misc]
    """Scores the documents that a task retrieved for one case.

    Each metric is a score of its own, under the name of its per-query column (``recall@5``,
    ``reciprocal_rank@5``), with what was found and what was missed as reason. What is undefined, as
    the rank where nothing was found, has the label ``"undefined"`` in place of a score.

    The output of the task is the list of documents, or a dict or an object with such a list under a
    usual name, as ``documents`` or ``context``; so is the ground truth. Documents may be all that
    :func:`~krag_eval.integrations.langsmith.retrieval_evaluators` takes.

    Args:
        metrics: A metric or several by name, with a cutoff, ``"recall@10"``, or without, which is
            at 5; all built-in ones if not given.
        matcher: What makes a retrieved document a match: a name or a matcher.
        threshold: Similarity from which a pair is a match; the matcher's own if not given.
        ground_truth: Where a case holds it: ``"expected_output"`` or ``"metadata"``.
        options: Further ones of ``retrieval_evaluators`` by name, such as
            ``{"k": [5, 10], "reference_key": "relevant", "no_ground_truth": "skip"}``.

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is not among those allowed.

    >>> from pydantic_evals import Case, Dataset
    >>> dataset = Dataset(
    ...     name="library",
    ...     cases=[Case(name="hours", inputs="When is it open?",
    ...                 metadata={"documents": ["From 9 to 5.", "Open on holidays."]})],
    ...     evaluators=[RetrievalEvaluator("recall@2", ground_truth="metadata")],
    ... )
    >>> report = dataset.evaluate_sync(
    ...     lambda question: ["From 9 to 5.", "Closed on Mondays."], progress=False)
    >>> report.cases[0].scores["recall@2"].value
    0.5
    >>> report.cases[0].scores["recall@2"].reason
    "found 1 of 2 within 2 (rank 1); missed 'Open on holidays.'"
    """

    def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> Mapping[str, EvaluationReason]:
        """Return one score per metric and cutoff."""
        scores = self._evaluators().per_query(*self._three(ctx))
        return {
            one["key"]: EvaluationReason(
                "undefined" if one["score"] is None else one["score"], one["comment"]
            )
            for one in scores
        }


@dataclass(repr=False)
class RetrievalReport(_Retrieval, ReportEvaluator[Any, Any, Any]):  # type: ignore[misc]
    """Averages over all cases, those whose task failed among them, as a table of the report.

    Each average of the metrics is a row (``micro_recall@5``, ``macro_recall@5``, ``mrr@5``). A case
    whose task failed counts as one that retrieved nothing, while a mean of scores leaves it out.
    The description says on how many cases the averages rest, and their signature.

    Args:
        metrics, matcher, threshold, ground_truth, options: As :class:`RetrievalEvaluator` takes
            them.

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is not among those allowed.
    """

    def evaluate(self, ctx: ReportEvaluatorContext[Any, Any, Any]) -> TableResult:
        """Return the table."""
        cases = [*ctx.report.cases, *ctx.report.failures]
        inputs, outputs, truth = map(list, zip(*map(self._three, cases), strict=True))
        scores = self._evaluators().summary(inputs, outputs, truth)
        return TableResult(
            title="Retrieval",
            description=scores[0]["comment"],
            columns=["metric", "value"],
            rows=[[one["key"], one["score"]] for one in scores],
        )
