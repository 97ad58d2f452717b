"""OpenEvals: an evaluator in the form of its own, traced and logged as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from krag_eval.core import MissingPackage, install_line
from krag_eval.integrations.langsmith import Score, retrieval_evaluators

__all__ = ["create_retrieval_evaluator"]


def create_retrieval_evaluator(
    metrics: str | list[str] = "recall@5", **options: Any
) -> Callable[..., Score | list[Score]]:
    """Return an evaluator as OpenEvals' ``create_…`` functions do.

    It is called with ``outputs``, ``reference_outputs`` and, for a matcher that looks at questions,
    ``inputs``, all by keyword, and returns what OpenEvals' own return: a dict of ``key``,
    ``score``, ``comment`` and ``metadata`` (``None``), of several metrics a list of them. Calls are
    traced as those of its own evaluators, and in a test marked for LangSmith each score is logged
    as feedback.

    Args:
        metrics: A metric by name with its cutoff, or several.
        **options: Those of :func:`~krag_eval.integrations.langsmith.retrieval_evaluators`:
            ``matcher``, ``threshold``, ``documents_key`` and so on.

    Raises:
        ImportError: If OpenEvals is missing.
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is not among those allowed.

    >>> evaluator = create_retrieval_evaluator("recall@2", matcher="contains")
    >>> found = evaluator(
    ...     outputs={"documents": ["It opens at 9.", "Closed on Mondays."]},
    ...     reference_outputs={"documents": ["opens at 9", "free on Sundays"]},
    ... )
    >>> found["key"], found["score"], found["comment"]
    ('recall@2', 0.5, "found 1 of 2 within 2 (rank 1); missed 'free on Sundays'")
    """
    try:
        from openevals.utils import _run_evaluator
    except ImportError as error:
        problem = "create_retrieval_evaluator needs OpenEvals"
        raise MissingPackage("", problem, install_line("openevals")) from error
    score = retrieval_evaluators(metrics=metrics, **options).per_query

    def scorer(inputs: Any, outputs: Any, reference_outputs: Any) -> dict[str, Any]:
        scores = score(inputs, outputs, reference_outputs)
        return {one["key"]: {**one, "reasoning": one["comment"]} for one in scores}

    def retrieval_evaluator(
        *, outputs: Any, reference_outputs: Any = None, inputs: Any = None, **unused: Any
    ) -> Score | list[Score]:
        """Score the documents of one example."""
        how = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        found: Any = _run_evaluator(
            run_name="krag_eval_retrieval", scorer=scorer, feedback_key="retrieval", **how
        )
        scored: Score | list[Score] = found[0] if len(found) == 1 else found
        return scored

    return retrieval_evaluator
