"""Draw the pictures of docs/plots.md and docs/history.md: over the data that ship with the package.

    python docs/images/make_plots.py

The chunks are of the handbook in notebooks/, retrieved by the BM25 there. Run again, it writes the
same files byte for byte with the same matplotlib.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot

from krag_eval import (
    EvaluationResult,
    History,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    compare,
    plan_questions,
    plotting,
)
from krag_eval.datasets import demo_dataset

HERE = Path(__file__).parent
NOTEBOOKS = HERE.parents[1] / "notebooks"


def main() -> None:
    """Draw every plot once."""
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", KragEvalWarning)  # the data are few, on purpose
    data = demo_dataset()
    evaluator = OfflineRetrievalEvaluator(data.actual, data.predicted, matcher="coverage")
    result = evaluator.evaluate(k=[1, 2, 3, 5])
    intervals = result.confidence_intervals()
    # The other system: the same documents, what shares most words with the question first.
    reranked = [
        sorted(documents, key=lambda text, q=query: -shared_words(q, text))
        for query, documents in zip(data.queries, data.predicted, strict=True)
    ]
    other = OfflineRetrievalEvaluator(data.actual, reranked, matcher="coverage")
    comparison = compare(
        {"demo": result, "by shared words": other.evaluate(k=[1, 2, 3, 5])},
        ["ndcg@5", "mrr@5", "macro_recall@1", "macro_recall@3", "mean_rank@5"],
    )
    draw("metric_bars", plotting.metric_bars, result, 5, intervals=intervals)
    draw("metric_bars_ko", plotting.metric_bars, result, 5, intervals=intervals, language="ko")
    draw("cutoff_curves", plotting.cutoff_curves, result)
    systems = {f"{n_words} words": in_chunks(n_words) for n_words in (50, 100, 200, 400, 800)}
    draw("budget_curves", plotting.budget_curves, systems)
    draw("threshold_curves", plotting.threshold_curves, result)
    draw("metric_distribution", plotting.metric_distribution, result, "ndcg@5")
    draw("first_rank_bars", plotting.first_rank_bars, result)
    draw("comparison_forest", plotting.comparison_forest, comparison)
    plan = plan_questions(comparison, "mrr@5", detect=0.05)
    draw("planning_curve", plotting.planning_curve, plan)
    with tempfile.TemporaryDirectory() as folder:
        history = saved_runs(folder)
    draw("history_curves", plotting.history_curves, history)
    draw("history_curves_ko", type(history).plot, history, language="ko")


def saved_runs(folder: str) -> History:
    """Save the four runs of docs/history.md, a week apart: 30, 35, 20 and 31 of 40 found."""
    actual = [[f"passage {i}"] for i in range(40)]
    runs = {"bm25": (30, "all"), "dense": (35, "all"), "partial": (20, "partial")}
    runs["again"] = 31, "all"
    for week, (name, (n_found, criteria)) in enumerate(runs.items()):
        lists = [truth if i < n_found else ["another"] for i, truth in enumerate(actual)]
        result = OfflineRetrievalEvaluator(actual, lists, matching_criteria=criteria).evaluate(k=10)
        made = datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(weeks=week)
        replace(result, made=made).to_json(f"{folder}/{name}.json")
    return History.of(folder)


def in_chunks(n_words: int) -> EvaluationResult:
    """Evaluate BM25 over the handbook, cut into chunks of so many words."""
    sys.path[:0] = [str(NOTEBOOKS)] if str(NOTEBOOKS) not in sys.path else []
    from small_rag import BM25, chunks

    handbook = (NOTEBOOKS / "data/handbook.txt").read_text("utf-8")
    lines = (NOTEBOOKS / "data/handbook_questions.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    bm25 = BM25(documents=chunks(handbook, n_words), k=3000 // n_words)
    found = [[one.page_content for one in bm25.invoke(row["question"])] for row in rows]
    evaluator = OfflineRetrievalEvaluator(
        [row["excerpts"] for row in rows], found, matcher="coverage"
    )
    return evaluator.evaluate(budget=[250, 500, 1000, 1500, 2000])


def shared_words(query: str, document: object) -> int:
    """Count the words of the query that stand in the document."""
    text = str(getattr(document, "page_content", document)).lower()
    return sum(word.strip("?.,") in text for word in query.lower().split())


def draw(name: str, plot: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Draw one picture."""
    figure = plot(*arguments, **options).figure
    figure.savefig(HERE / f"{name}.png", dpi=90, metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
