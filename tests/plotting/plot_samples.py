"""Results to draw, worked out by hand, and helpers that read a plot."""

from __future__ import annotations

import warnings

import pandas as pd

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator

# Worked by hand in docs/metrics.md: the sample with two queries.
ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]


def evaluated(k: object = 2, **options: object) -> EvaluationResult:
    """Evaluate the sample."""
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, **options).evaluate(k=k)  # type: ignore[arg-type]


def interval_table(result: EvaluationResult, below: float, above: float) -> pd.DataFrame:
    """Return intervals as ``confidence_intervals`` does, with bounds known beforehand."""
    values = pd.Series(result.to_dict())
    return pd.DataFrame({"value": values, "low": values - below, "high": values + above})


FIRST, SECOND = "a b c d e f g h i j", "k l m n o p q r s t"
#: System -> what it retrieved for the two items of ten words each, cut into chunks of five or ten.
CHUNKS = {
    "small": [["a b c d e", "f g h i j"], ["u v w x y", "k l m n o"]],
    "large": [[FIRST], [SECOND]],
}


def letters(text: str) -> int:
    """Return how many letters a text has."""
    return sum(map(str.isalpha, text))


def in_chunks(name: str, k: object = ("5w", "10w"), **options: object) -> EvaluationResult:
    """Evaluate one of the systems; by words, the chunks of the small one have five each."""
    length = options.pop("length", "words")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)  # little fits, and little is found
        evaluator = OfflineRetrievalEvaluator(
            [[FIRST], [SECOND]], CHUNKS[name], **{"matcher": "coverage(union=true)", **options}
        )
        return evaluator.evaluate(k=k, length=length)  # type: ignore[arg-type]
