"""Documents, options, cutoffs and metrics given wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from langchain_core.documents import Document

from krag_eval import (
    METRICS,
    AnyOf,
    Conventions,
    IdMatcher,
    Matcher,
    Metric,
    OfflineRetrievalEvaluator as Evaluator,
)
from krag_eval.documents import QuerySet, text_of
from krag_eval.scoring.cutoffs import check_cutoff, check_cutoffs, parse_metric, unspelled

_A, _B = [["a"]], [["b"]]


def _each(
    name: str, call: Callable[[Any], Any], values: Iterable[Any]
) -> dict[str, Callable[[], Any]]:
    return {f"{name} {value!r}": partial(call, value) for value in values}


def _ones(relevance: Any, k: Any, conventions: Any) -> Any:
    return np.ones(relevance.n_queries)


def _with(*metrics: Any) -> Any:
    chosen = ["precision", "recall", "rank", *metrics]
    return Evaluator(_A, _B).evaluate(3, metrics=chosen).to_dict()


def _returning(made: Any) -> Any:
    return _with(Metric("mine", lambda relevance, k, conventions: made, "mine"))


class _InPerCent(Matcher):
    """A matcher whose threshold is no share."""

    threshold = 50

    def similarity(self, actual: Any, predicted: Any) -> float:
        return 1.0


def _truth(one: Any) -> QuerySet:
    return QuerySet.from_lists([["a"], ["b", one]], [["a"], ["b"]])


def _found(one: Any) -> QuerySet:
    return QuerySet.from_lists([["a"], ["b"]], [["a"], ["b", one]])


def _graded(*items: Any) -> Any:
    documents = [
        AnyOf([{"page_content": "a", "metadata": {"grade": one}} for one in grades])
        for grades in items
    ]
    return Evaluator([["x", *documents]], [["x"]], grade_key="grade")


_NO_TEXT = SimpleNamespace(page_content=None, metadata={})
_NO_LISTS = [None, "abc", 5, {"page_content": "a"}]
_NO_DOCUMENTS = [None, 5, math.nan, b"a", ["a"], {}, {"text": "a"}, {"contents": "a", "id": "1"}]
_NO_PARTS = [{"page_content": 5}, {"page_content": "a", "score": 1}]
_NO_PARTS += [{"page_content": "a", **part} for part in ({"metadata": []}, {"any_of": ["b"]})]
_NO_PARTS += [{"page_content": "a", "id": one} for one in (True, 1.0, ["7"])]

_DOCUMENTS: dict[str, Callable[[], Any]] = {
    **_each("ground truth of", lambda one: QuerySet.from_lists(one, _B), [*_NO_LISTS, {"a"}]),
    "ground truth of an iterator": lambda: QuerySet.from_lists(iter(_A), _B),
    "ground truth of a frame": lambda: QuerySet.from_lists(pd.DataFrame({"a": [1]}), _B),
    "ground truth of an array of no dimension": lambda: QuerySet.from_lists(np.array("a"), _B),
    "no queries in arrays": lambda: QuerySet.from_lists(np.array([]), np.array([])),
    **_each("retrieved", lambda one: QuerySet.from_lists(_A, one), _NO_LISTS),
    **_each("a query's ground truth", lambda one: QuerySet.from_lists([["a"], one], _B), _NO_LISTS),
    **_each("a query's list", lambda one: QuerySet.from_lists(_A, [["a"], one]), _NO_LISTS),
    "a query's list of one document": lambda: QuerySet.from_lists([Document("a")], _B),
    **_each("an item that is", _truth, [*_NO_DOCUMENTS, *_NO_PARTS]),
    **_each("a document that is", _found, [*_NO_DOCUMENTS, *_NO_PARTS, {"any_of": ["a"]}]),
    "a document with alternatives": lambda: _found(AnyOf(["a"])),
    "a picture of Haystack's": lambda: _found(SimpleNamespace(content=None, id="n", meta={})),
    "a document of LangChain's without text": lambda: _found(_NO_TEXT),
    "the text of a document without": lambda: text_of(_NO_TEXT, "here"),  # type: ignore[arg-type]
    **_each("alternatives that are", AnyOf, [*_NO_LISTS, b"a", ["a", 5]]),
    "alternatives that are one document": lambda: AnyOf(Document("a")),
    "alternatives of alternatives": lambda: AnyOf([AnyOf(["a"])]),
    **_each(
        "labels", lambda one: QuerySet.from_lists(_A * 2, _B * 2, one),
        ["xy", ["x"], ["x", None], ["x", True], ["x", 1.5], ["x", ["y"]]],
    ),
    **_each("a grade of", lambda one: _graded([one]), [-1, -0.5, math.nan, math.inf, "2", True]),
    "a grade that is a list": lambda: _graded([[1]]),
    "alternatives of two grades": lambda: _graded([2], [2, None]),
}  # fmt: skip

_OPTIONS: dict[str, Callable[[], Any]] = {
    "a threshold that is NaN": lambda: Evaluator(_A, _B, "rouge1", threshold=math.nan),
    "a threshold that is text": lambda: Evaluator(_A, _B, "rouge1", threshold="0.5"),
    "a twin's threshold below 0": lambda: Evaluator(_A, _B, "rouge1").with_threshold(-0.1),
    "a twin's threshold for text": lambda: Evaluator(_A, _B).with_threshold(0.5),
    "a twin's threshold for contains": lambda: Evaluator(_A, _B, "contains").with_threshold(0.5),
    "a matcher's own threshold of 50": lambda: Evaluator(_A, _B, _InPerCent()),
    "a threshold in the fourth place": lambda: Evaluator(_A, _B, "text", 0.5),
    **_each("averages called", lambda a: Evaluator(_A, _B, averaging_method=a), ["mean", None]),
    **_each("criteria called", lambda c: Evaluator(_A, _B, matching_criteria=c), ["any", 1]),
    **_each("no ground truth:", lambda n: Evaluator(_A, _B, no_ground_truth=n), ["skpi", None]),
    **_each("a key of grades called", lambda key: Evaluator(_A, _B, grade_key=key), [3, ""]),
    "processes as text": lambda: Evaluator(_A, _B, n_jobs="x"),
    **_each("conventions that are", lambda c: Evaluator(_A, _B, conventions=c), [5, True, {}]),
    "a class of conventions": lambda: Evaluator(_A, _B).with_conventions(Conventions),
    "a matcher that is None": lambda: Evaluator(_A, _B, None),
    "a class for a matcher": lambda: Evaluator(_A, _B, IdMatcher),
    "a function for a matcher": lambda: Evaluator(_A, _B, str.__eq__),
}

_CUTOFFS: dict[str, Callable[[], Any]] = {
    **_each("a cutoff of", check_cutoff, [0, -1, 1.0, 0.5, math.nan, True, 2**53 + 1]),
    **_each("a cutoff of", check_cutoff, ["5", "", b"5", [5], (), {}, 1j]),
    "a cutoff that is true for numpy": lambda: check_cutoff(np.True_),
    "an array for one cutoff": lambda: Evaluator(_A, _B).calculate_recall(np.array([1, 2])),
    **_each("cutoffs", check_cutoffs, [[], (), [1, 5, 1], [None, "all"], [1, 0]]),
    "no cutoffs in an array": lambda: check_cutoffs(np.array([], np.int64)),
    "a cutoff twice by an iterator": lambda: check_cutoffs(iter([1, 1])),
    **_each("cutoff spelled", unspelled, ["", "0", "-1", "1.0", "１", "²", "All", "9" * 30]),
    **_each("an average spelled", lambda t: parse_metric(t, "floors"), ["ndcg", "", "@10", 5]),
    **_each("an average spelled", parse_metric, ["ndcg@", "ndcg@0", "ndcg@ten", "ndcg@1.0"]),
}

_METRICS: dict[str, Callable[[], Any]] = {
    "a metric that is a function": lambda: _with(_ones),
    "no metrics": lambda: Evaluator(_A, _B).evaluate(1, metrics=[]),
    "an unknown metric alone": lambda: Evaluator(_A, _B).evaluate(1, metrics="recal"),
    "a metric named as a count": lambda: _with(Metric("relevant", _ones, "mine")),
    "a metric named as another count": lambda: _with(Metric("precision_base", _ones, "mine")),
    "a metric named as another": lambda: _with(Metric("recall", _ones, "mine")),
    "a metric whose mean is another's": lambda: _with(Metric("mine", _ones, "macro_recall")),
    "a metric whose mean is a share": lambda: _with(Metric("mine", _ones, "found_rate")),
    "two metrics of one column": lambda: _with(
        Metric("mine", _ones, "a"), Metric("mine", METRICS["ndcg"].compute, "b")
    ),
    "two metrics of one mean": lambda: _with(
        Metric("one", _ones, "a"), Metric("other", METRICS["ndcg"].compute, "a")
    ),
    **_each("a metric returning", _returning, [0.5, None, ["a"]]),
    "a metric returning 3 numbers": lambda: _returning(np.zeros(3)),
    "a metric returning a column": lambda: _returning(np.zeros((1, 1))),
}

CALLS: dict[str, Callable[[], Any]] = {**_DOCUMENTS, **_OPTIONS, **_CUTOFFS, **_METRICS}
