"""Results to draw, worked out by hand."""

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from results_made import ACTUAL, PREDICTED

from krag_eval import (
    METRICS,
    Comparison,
    Difference,
    EvaluationResult,
    Matcher,
    OfflineRetrievalEvaluator,
    SlicedComparison,
    Slices,
    sweep,
)
from krag_eval.comparison.slices import Slice
from krag_eval.core import averages_of
from krag_eval.core.results.latency import RetrievalRun

FIRST, SECOND = "a b c d e f g h i j", "k l m n o p q r s t"
#: System -> what it retrieved for the two items of ten words each, cut into chunks of five or ten.
CHUNKS = {
    "small": [["a b c d e", "f g h i j"], ["u v w x y", "k l m n o"]],
    "large": [[FIRST], [SECOND]],
}


def evaluated_lists(
    actual: Any, predicted: Any, k: Any, metrics: Any = None, length: Any = "words", **options: Any
) -> EvaluationResult:
    """Evaluate two lists, without the warnings that so few queries bring."""
    with warnings.catch_warnings(action="ignore"):
        evaluator = OfflineRetrievalEvaluator(actual, predicted, **options)
        return evaluator.evaluate(k, metrics=metrics, length=length)


def evaluated(k: Any = 2, **options: Any) -> EvaluationResult:
    """Evaluate the sample."""
    return evaluated_lists(ACTUAL, PREDICTED, k, **options)


def interval_table(result: EvaluationResult, below: float, above: float) -> pd.DataFrame:
    """Return intervals as ``confidence_intervals`` does, with bounds known beforehand."""
    values = pd.Series(result.to_dict())
    return pd.DataFrame({"value": values, "low": values - below, "high": values + above})


def in_chunks(name: str, k: Any = ("5w", "10w"), **options: Any) -> EvaluationResult:
    """Evaluate one of the systems; by words, the chunks of the small one have five each."""
    options = {"matcher": "coverage(union=true)", **options}
    return evaluated_lists([[FIRST], [SECOND]], CHUNKS[name], k, **options)


def letters(text: str) -> int:
    """Return how many letters a text has."""
    return sum(map(str.isalpha, text))


def timed(*seconds: float, k: Any = (1, 2)) -> EvaluationResult:
    """Return the sample, answered in so many seconds."""
    return replace(evaluated(k), retrieval=RetrievalRun(np.array(seconds)))


class SaidBeforehand(Matcher):
    """The similarities of two pairs, written down."""

    name = "beforehand"
    threshold = 0.6

    def similarity(self, actual: Any, predicted: Any) -> float:
        """Look it up."""
        pair = actual.page_content + predicted.page_content
        return {"aA": 0.9, "bB": 0.5}.get(pair, 0.0)


def said_beforehand() -> EvaluationResult:
    """Two queries with one item each, found with similarity 0.9 and 0.5; the threshold is 0.6."""
    return evaluated_lists([["a"], ["b"]], [["A"], ["B"]], 1, matcher=SaidBeforehand())


@cache
def swept() -> Any:
    """Return a sweep with a point on the front and one that is not."""
    texts = [f"rule {i} one two three four" for i in range(30)]
    rows = [{"question": str(i), "actual": [text]} for i, text in enumerate(texts)]
    makers: Any = {
        "right": lambda chunks: lambda question: chunks[int(question) :],
        "wrong": lambda chunks: lambda question: chunks,
    }
    return sweep(texts, rows, {"whole": lambda text: [text]}, makers, 1, None, n_resamples=100,
                 progress=False)  # fmt: skip


#: Both queries find their only document first, and one of two does.
BETTER = evaluated_lists([["a"], ["b"]], [["a", "x"], ["b", "x"]], [1, 2])
LATE = evaluated_lists([["a"], ["b"]], [["a", "x"], ["y", "x"]], [1, 2])


def difference(
    metric: str = "ndcg@10",
    value: float = 0.2,
    interval: tuple[float, float] = (0.1, 0.3),
    p: float = 0.01,
    pair: tuple[str, str] = ("bm25", "dense"),
) -> Difference:
    """Return a difference with everything that is drawn."""
    return Difference(
        *pair, metric, 0.5, 0.5 + value, value, *interval, p, p, p_holm=p, effect_size=0.3, wins=3,
        ties=2, losses=1, average=averages_of(METRICS.values()).get(metric.partition("@")[0]),
    )  # fmt: skip


def compared(*rows: Difference) -> Comparison:
    """Return a comparison of these differences over three queries."""
    names = dict.fromkeys(name for row in rows for name in (row.a, row.b))
    per_query: Any = {row.metric: dict.fromkeys(names) for row in rows}
    return Comparison(rows, 0.95, 1000, 0, "signature", [1, 2, 3], per_query)


def sliced(*rows: Slice, lower: tuple[str, ...] = ()) -> Slices:
    """Return slices of these rows, of one result in which all queries average 0.6."""
    overall = {row.metric: 0.6 for row in rows}
    return Slices("corpus", "", rows, 90, lower, 0.95, 1000, 0, "signature", overall)


WIKI = Slice("wiki", "mrr@5", 50, 0.8, 0.7, 0.9, 0.5, 0.3, 0.1, 0.5, 0.001, 0.002)
CHAT = Slice("chat", "mrr@5", 30, 0.4, 0.2, 0.6, 0.7, -0.3, -0.5, -0.1, 0.002, 0.01)
NEWS = Slice("news", "mrr@5", 12, 0.6, 0.4, 0.8, 0.6, 0.0, -0.2, 0.2, 0.9, 0.9)
TINY = Slice("tiny", "mrr@5", 3)
_ROW = Difference(
    "bm25", "dense", "mrr@5", 0.5, 0.8, 0.3, 0.1, 0.5, 0.001, 0.001, 0.002, 0.5, 30, 15, 5,
    slice="wiki", n=50,
)  # fmt: skip
_WORSE = replace(_ROW, slice="chat", difference=-0.3, ci_low=-0.5, ci_high=-0.1)
#: Slices of a comparison, better in the one and worse in the other.
PAIR = SlicedComparison("corpus", "", (_ROW, _WORSE), 90, (), 0.95, 1000, 0, "signature")
