"""Results made in a line, as evaluated or as they come out of a file."""

from __future__ import annotations

from reference import no_advice

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator


def evaluated(
    actual, predicted, matcher="text", k=(1, 2, 5), metrics=None, **options
) -> EvaluationResult:
    """Return the result of such lists, without advice on them."""
    k = list(k) if isinstance(k, tuple) else k
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher, **options)
        return evaluator.evaluate(k, metrics=metrics)


def read_back(result, folder, name="result.json", **options):
    """Save a result of any type and read it again."""
    result.to_json(folder / name, **options)
    return type(result).from_json(folder / name)
