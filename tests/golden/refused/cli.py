"""Evaluators for LangSmith made or called wrongly."""

from collections.abc import Callable
from typing import Any

from krag_eval import JudgeMatcher
from krag_eval.integrations.langsmith import retrieval_evaluators


def _scored(outputs: Any, reference: Any, inputs: Any = None, **options: Any) -> Any:
    per_query, _ = retrieval_evaluators(**options)
    return per_query(inputs=inputs, outputs=outputs, reference_outputs=reference)


def _judged(inputs: Any) -> Any:
    judge = JudgeMatcher(lambda question, actual, predicted: True, version="1")
    return _scored(["a"], ["a"], inputs, matcher=judge)


_OTHER = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "ls"}}

CALLS: dict[str, Callable[[], Any]] = {
    "LangSmith: k of 0": lambda: retrieval_evaluators(k=0),
    "LangSmith: an unknown matcher": lambda: retrieval_evaluators(matcher="rouge"),
    "LangSmith: a threshold of 2": lambda: retrieval_evaluators(matcher="fuzzy", threshold=2),
    "LangSmith: an unknown metric": lambda: retrieval_evaluators(metrics=["recal"]),
    "LangSmith: a metric at another cutoff": lambda: retrieval_evaluators(metrics=["recall@7"]),
    "LangSmith: a metric at one of two": lambda: retrieval_evaluators([1, 5], metrics=["mrr@5"]),
    "LangSmith: unknown conventions": lambda: retrieval_evaluators(conventions="tre"),
    "LangSmith: no ground truth dropped": lambda: retrieval_evaluators(no_ground_truth="drop"),
    "LangSmith: another serialised object": lambda: _scored({"documents": [_OTHER]}, ["x"]),
    "LangSmith: two lists": lambda: _scored({"context": ["a"], "documents": ["b"]}, ["a"]),
    "LangSmith: no list": lambda: _scored({"answer": "At 9."}, ["a"]),
    "LangSmith: no such key": lambda: _scored({"documents": ["b"]}, ["a"], documents_key="hits"),
    "LangSmith: a text for a list": lambda: _scored(["a"], {"gold": "a"}, reference_key="gold"),
    "LangSmith: no reference outputs": lambda: _scored(["a"], None),
    "LangSmith: no ground truth": lambda: _scored(["a"], []),
    "LangSmith: a text in a summary": lambda: retrieval_evaluators().summary(
        [{}, {}], [["a"], ["b"]], [["a"], "b"]
    ),
    "LangSmith: a judge of two inputs": lambda: _judged({"a": "x", "b": "y"}),
    "LangSmith: a question of 7": lambda: _judged({"question": 7}),
    "LangSmith: no inputs": lambda: _judged(None),
}
