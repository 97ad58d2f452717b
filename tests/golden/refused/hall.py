"""Documents, options, cutoffs and metrics given wrongly."""

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
    AveragingMethod,
    Conventions,
    IdMatcher,
    Matcher,
    Metric,
    OfflineRetrievalEvaluator as Evaluator,
    compare,
    evaluate_file,
)
from krag_eval.core import QuerySet, parse_metric, text_of
from krag_eval.core.scoring.averages import exact_sum
from krag_eval.core.scoring.cutoffs import check_cutoff, check_cutoffs, unspelled
from krag_eval.integrations.langsmith import retrieval_evaluators
from krag_eval.partitions import PartitionPlan
from krag_eval.plotting import cutoff_curves

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


def _infinite(odd: float) -> Any:
    metric = Metric("speed", lambda found, k, _: np.full(found.n_queries, odd), "mean_speed")
    return Evaluator(_A, _A).evaluate(1, metrics=["mrr", metric]).averages()


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
    "no queries": lambda: Evaluator([], []),
    "lengths differ": lambda: Evaluator(_A, [*_B, *_B]),
    "a query without ground truth": lambda: Evaluator([[]], _B),
    "labels repeated": lambda: Evaluator(_A * 2, _B * 2, queries=["q", "q"]),
    "no queries in arrays": lambda: QuerySet.from_lists(np.array([]), np.array([])),
    **_each("retrieved", lambda one: QuerySet.from_lists(_A, one), _NO_LISTS),
    **_each("a query's ground truth", lambda one: QuerySet.from_lists([["a"], one], _B), _NO_LISTS),
    **_each("a query's list", lambda one: QuerySet.from_lists(_A, [["a"], one]), _NO_LISTS),
    "a query's list of one document": lambda: QuerySet.from_lists([Document("a")], _B),
    **_each("an item that is", _truth, [*_NO_DOCUMENTS, *_NO_PARTS]),
    **_each("a document that is", _found, [*_NO_DOCUMENTS, *_NO_PARTS, {"any_of": ["a"]}]),
    "a pair of text and score": lambda: Evaluator(_A, [[("b", 0.5)]]),
    "a document with alternatives": lambda: _found(AnyOf(["a"])),
    "a picture of Haystack's": lambda: _found(SimpleNamespace(content=None, id="n", meta={})),
    "a document of LangChain's without text": lambda: _found(_NO_TEXT),
    "the text of a document without": lambda: text_of(_NO_TEXT, "here"),  # type: ignore[arg-type]
    **_each("alternatives that are", AnyOf, [*_NO_LISTS, b"a", ["a", 5], []]),
    "alternatives that are one document": lambda: AnyOf(Document("a")),
    "alternatives of alternatives": lambda: AnyOf([AnyOf(["a"])]),
    **_each(
        "labels", lambda one: QuerySet.from_lists(_A * 2, _B * 2, one),
        ["xy", ["x"], ["x", None], ["x", True], ["x", 1.5], ["x", ["y"]]],
    ),
    **_each("a grade of", lambda one: _graded([one]), [math.nan, math.inf, "high", ""]),
    "a grade that is a list": lambda: _graded([[1]]),
    "alternatives of two grades": lambda: _graded([2], [2, None]),
}  # fmt: skip

_KEYED = partial(Evaluator, predicted_docs=_A, aspect_key="part")


def _about(*aspects: Any) -> Any:
    """Evaluate alternatives that speak to these aspects."""
    documents = [{"page_content": "a", "metadata": {"part": one}} for one in aspects]
    return _KEYED([[AnyOf(documents)]])


def _graded_twice(*grades: Any, **conventions: Any) -> Any:
    documents = [{"page_content": "a", "metadata": {"grade": one}} for one in grades]
    given = Conventions(**conventions)
    return Evaluator([documents], _A, grade_key="grade", conventions=given).evaluate(1)


def _other_aspects() -> Any:
    lists = [[str(i)] for i in range(12)]
    results = [
        Evaluator(
            [[{"page_content": str(i), "metadata": {"part": part}}] for i in range(12)],
            lists, aspect_key="part",
        ).evaluate(1)
        for part in "ab"
    ]  # fmt: skip
    return compare(*results, metric="aspect_recall@1")


_CHUNKS = ("coverage(min_run=1)", "coverage(min_run=1,union=yes)")
_ASPECTS: dict[str, Callable[[], Any]] = {
    **_each("an aspect", _about, [" ", True, 1.5, {"a": 1}, ["a", None], [["a"]]]),
    "alternatives of two aspects": lambda: _about("x", None),
    "a key of aspects that is a list": lambda: Evaluator(_A, _A, aspect_key=["a"]),
    **_each(
        "aspects without a key:", lambda metric: Evaluator(_A, _A).evaluate(1, metrics=metric),
        ["aspect_recall", "alpha_ndcg", "alpha_ndcg(alpha=0.3)"],
    ),
    "pieces beside one chunk": lambda: compare(
        *(Evaluator([["a b"]], [["a b"]], one).evaluate(1) for one in _CHUNKS),
        metric="macro_recall@1",
    ),
    "aspects of other ground truth": _other_aspects,
    "one document of two grades": lambda: _graded_twice(1, 2.5),
    "a grade beyond the exponential gain": lambda: _graded_twice(math.nextafter(1000, 1001)),
    "a grade beyond the linear gain": lambda: _graded_twice(
        math.nextafter(2.0**1000, math.inf), gain="linear"
    ),
}  # fmt: skip

_CONVENTIONS: dict[str, Callable[[], Any]] = {
    **_each("nonsense for", lambda f: Conventions(**{f: "nonsense"}), Conventions.allowed()),
    "a convention that is None": lambda: Conventions(credit=None),  # type: ignore[arg-type]
    **_each(
        "conventions", Conventions.parse,
        ["tre", "", "gian=linear", "gain=linear,gain=exponential", "gain=cubic", 3],
    ),
}  # fmt: skip

_OPTIONS: dict[str, Callable[[], Any]] = {
    "an unknown option": lambda: Evaluator(_A, _B, treshold=0.5),
    "a threshold of 80": lambda: Evaluator(_A, _B, "rougeL", threshold=80),
    "a threshold that is NaN": lambda: Evaluator(_A, _B, "rouge1", threshold=math.nan),
    "a threshold that is text": lambda: Evaluator(_A, _B, "rouge1", threshold="0.5"),
    "a threshold that is true": lambda: Evaluator(_A, _B, "rouge1", threshold=True),
    "a threshold for text": lambda: Evaluator(_A, _B, threshold=0.5),
    "a twin's threshold below 0": lambda: Evaluator(_A, _B, "rouge1").with_threshold(-0.1),
    "a twin's threshold for text": lambda: Evaluator(_A, _B).with_threshold(0.5),
    "a twin's threshold for contains": lambda: Evaluator(_A, _B, "contains").with_threshold(0.5),
    "a matcher's own threshold of 50": lambda: Evaluator(_A, _B, _InPerCent()),
    "a threshold in the fourth place": lambda: Evaluator(_A, _B, "text", 0.5),
    **_each("averages called", lambda a: Evaluator(_A, _B, averaging_method=a), ["mean", None]),
    **_each(
        "criteria called",
        lambda one: Evaluator(_A, _B, matching_criteria=one),
        ["any", 1, AveragingMethod.MICRO, None, True, ["all"]],
    ),
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

_TWO = Evaluator([["one two"]], [["one two"]])


def _by(length: Any) -> Any:
    def measured(text: str) -> Any:
        return length

    measured.name = "measured"  # type: ignore[attr-defined]
    return _TWO.evaluate(budget=5, length=measured)


def _compared_by_length() -> Any:
    results = {str(by): _TWO.evaluate(budget=7, length=by) for by in (len, str.__len__)}
    return compare(results, metric="recall@7t")


def _in_parts(predicted: Any, matcher: str) -> Any:
    plan = PartitionPlan.of(budget=5, matcher=matcher)
    return plan.result([plan.evaluate(_A, predicted).partial])


_NO_TEXTS = ([["a", "b"]], "id"), ([[{"page_content": "", "id": "a"}]], "id"), ([["", " "]], "text")

_BUDGETS: dict[str, Callable[[], Any]] = {
    **_each(
        "a budget spelled", check_cutoff, ["0w", "w", "-5w", "1.5w", "10", "10W", "10x", "1e3w"]
    ),
    "a budget spelled with a space": lambda: check_cutoff("10 w"),
    **_each("a budget of", lambda b: _TWO.evaluate(budget=b), [0, 1.5, True, "1000w", [], [5, 5]]),
    "a budget that is a cutoff": lambda: _TWO.evaluate("5w", budget=5),
    **_each("budgets by length", lambda k: _TWO.evaluate(k), [["5w", "5w"], "500t"]),
    "a budget by length beside words": lambda: _TWO.evaluate("500t", budget=5),
    "characters without a budget": lambda: _TWO.evaluate(length="characters"),
    "a length without a budget by it": lambda: _TWO.evaluate("5w", length=len),
    **_each("a budget of", lambda one: _TWO.evaluate(budget=5, length=one), ["letters", 5]),
    **_each("a text that is as long as", _by, [-1, 1.5, "a", True, 2**40]),
    "a calculation by length": lambda: _TWO.calculate_ndcg("5t"),
    **_each("a budget without texts", lambda o: Evaluator(_A, *o).evaluate(budget=5), _NO_TEXTS),
    **_each("parts without texts", lambda given: _in_parts(*given), _NO_TEXTS),
    "a calculation without texts": lambda: Evaluator(_A, _A, "id").calculate_recall("5w"),
    "a budget to recall without texts": lambda: (
        Evaluator(_A, _A, "id").evaluate(1).budget_to_recall()
    ),
    "budgets by different lengths": _compared_by_length,
    **_each("a budget to recall", lambda r: _TWO.evaluate(1).budget_to_recall(r), [0, 1.1]),
    "a budget to recall at level 1": lambda: _TWO.evaluate(1).budget_to_recall(level=1),
    "a budget to recall of 5": lambda: _TWO.evaluate(1).budget_to_recall(n_resamples=5),
    "a budget to recall by letters": lambda: _TWO.evaluate(1).budget_to_recall(length="letters"),
    "a budget to recall of a file without rows": lambda: evaluate_file(
        "run.jsonl", budget=4, progress=False
    ).budget_to_recall(0.5),
}

_NAMES = [["a", "b"]], [["a", "x"]]


def _micro() -> Any:
    return Evaluator(*_NAMES, averaging_method="micro").evaluate(2)


_METRICS: dict[str, Callable[[], Any]] = {
    **_each("a gate without macro:", lambda n: _micro().check({n: 0.5}), ["recall@2", "f1@2"]),
    "a comparison without macro": lambda: compare(_micro(), _micro(), metric="precision@2"),
    "a picture without macro": lambda: cutoff_curves(_micro(), "recall"),
    **_each(
        "a picture of", lambda name: cutoff_curves(Evaluator(*_NAMES).evaluate(2), [name]),
        ["recal", "micro_ndcg", "macro_hit", "", "recall@2", 5],
    ),
    "a metric with its cutoff": lambda: Evaluator(*_NAMES).evaluate(2, metrics=["recall@2"]),
    **_each(
        "LangSmith's metric with a cutoff, at",
        lambda k: retrieval_evaluators(k=k, metrics=["recall@2"]), [5, [1, 2]],
    ),
    **_each(
        "a value of a query", lambda value: _with(Metric.per_query("wrong", lambda query: value)),
        ["much", [1.0]],
    ),
    "a metric per query without documents": lambda: Metric.per_query(
        "own", lambda query: 1.0
    ).compute(Evaluator(_A, _A).evaluate(1).evidence.of_query(0), 1, Conventions()),
    **_each(
        "a metric called", lambda name: Evaluator(_A, _A).evaluate(1, metrics=[name]),
        ["rbp(p=1)", "rbp(p=0)", "rbp(p=nan)", "rbp(p=much)", "rbp(q=0.5)", "ndcg(p=0.5)",
         "rbp(p=0.5,p=0.6)"],
    ),
    "a floor of a metric's other setting": lambda: _TWO.evaluate(1).check({"rbp(p=1)@1": 0.5}),
    **_each(
        "a metric declared", lambda declared: Metric("mine", _ones, "mine", **declared),
        [{"range": (1, 0)}, {"lower_is_better": "no"}, {"micro": ("relevant", "retrieved")},
         {"micro": (("relevant", "cost"),)},
         {"micro": (("relevant", "retrieved"),), "of_means": ("a", "b")}],
    ),
    **_each("a metric that is infinite", _infinite, [math.inf, -math.inf]),
    **_each("a sum with", lambda odd: exact_sum(np.array([1.0, odd])), [math.nan, math.inf]),
    "a sum with -inf": lambda: exact_sum(np.array([-math.inf, 1.0])),
    "token recall of equal texts": lambda: _TWO.calculate_token_recall(1),
    "an average of another word": lambda: _TWO.calculate_recall(1, averaging="mean"),
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
}  # fmt: skip

CALLS: dict[str, Callable[[], Any]] = {
    **_DOCUMENTS,
    **_ASPECTS,
    **_CONVENTIONS,
    **_OPTIONS,
    **_CUTOFFS,
    **_BUDGETS,
    **_METRICS,
}
