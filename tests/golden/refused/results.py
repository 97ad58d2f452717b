"""Results asked wrongly: what was retrieved, looked at, judged, diagnosed, labelled."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from langchain_core.documents import Document

from krag_eval import (
    Conventions,
    EvaluationResult,
    IdMatcher,
    JudgeMatcher,
    Matcher,
    OfflineRetrievalEvaluator,
    Slices,
    agreement,
    audit,
    calibrate,
    compare,
    debias,
    evaluate_retriever,
    evaluate_support,
)
from krag_eval.comparison.slices import Slice
from krag_eval.datasets import Dataset
from krag_eval.partitions import PartitionPlan

Evaluator = OfflineRetrievalEvaluator
_A = [["a"]]
_GRADED = [Document("a", metadata={"grade": grade}) for grade in (0, 2)]
_CHUNKS = ["the fee is five euros", "we open at nine"]


class _Given(Matcher):
    """Reads the similarity off the predicted text."""

    def similarity(self, actual: Any, predicted: Any) -> float:
        return float(predicted.page_content)


def _result(**options: Any) -> EvaluationResult:
    return Evaluator(_A, [["x", "a"]], **options).evaluate([1, 2])


def _bare() -> EvaluationResult:
    return replace(_result(), evidence=None)


def _several(labels: Any = None) -> OfflineRetrievalEvaluator:
    return Evaluator(_A * 4 + [[]], _A * 5, queries=labels, no_ground_truth="skip")


def _reread(made: Any, change: str | dict[str, Any]) -> Any:
    """Save a result of any type, change what its file holds, and read it back."""
    path = Path("changed.json")
    made.to_json(path)
    content = json.loads(path.read_text("utf-8"))
    path.write_text(change if isinstance(change, str) else json.dumps(content | change), "utf-8")
    return type(made).from_json(path)


def _explain(*query: Any, labels: Any = None, **options: Any) -> Any:
    return _several(labels).evaluate([1, 2]).explain(*query, **options)


def _asked(**options: Any) -> EvaluationResult:
    return Evaluator([[_CHUNKS[0], "x y z"]], [_CHUNKS], "coverage", queries=["When?"],
                     **options).evaluate([1, 2])  # fmt: skip


def _diagnose(*index: Any, **options: Any) -> Any:
    return _asked().diagnose(*(index or [_CHUNKS]), **options)


_MATRIX = [[1, 0, 0], [0.5, 0.5, 0]]
_MIXED = [("truth", "0.9", True), ("truth", "0.6", False), ("truth", "0.3", True)]


_VALUES = {"a": [0, 1] * 20, "b": [0, 1] * 20}


def _debias(**changed: Any) -> Any:
    values = [0, 1] * 20
    return debias(**({"human": values, "judge": values, "unlabelled": values} | changed))


def _wide(scores: Any) -> Any:
    lists = [["a"] if i % 3 else ["x", "a"] for i in range(60)]
    labels = [f"q{i}" for i in range(60)]
    return Evaluator([["a"]] * 60, lists, queries=labels).evaluate([1, 2]).predicts(scores)


def _judged(**options: Any) -> OfflineRetrievalEvaluator:
    given = {"matcher": "id", "judged": [["A", "N"]]} | options
    return Evaluator([["A"]], [["A", "U", "N"]], **given)


def _to_judge(metric: str = "ndcg@3", **options: Any) -> Any:
    return compare(*[_judged(**options).evaluate(3)] * 2, metric=metric).to_judge()


CALLS: dict[str, Callable[[], Any]] = {
    # What is evaluated.
    **{
        f"{name}: {what}": lambda name=name, came=came: Evaluator(
            **({"actual_docs": _A * 2, "predicted_docs": _A * 2} | {name: came})
        )
        for name in ("actual_docs", "predicted_docs")
        for what, came in (("texts", ["a", "b"]), ("a text", "ab"), ("None", None),
                           ("None in a list", [["a"], None]), ("a null", [["a"], [None]]))
    },
    **{
        f"k of 0 of {name}": lambda name=name: getattr(Evaluator(_A, _A), f"calculate_{name}")(k=0)
        for name in ("hit_rate", "precision", "recall", "f1_score", "mrr", "map", "ndcg",
                     "mean_rank")
    },
    "k of 0 among others": lambda: Evaluator(_A, _A).evaluate([1, 0]),
    "k of a float among others": lambda: Evaluator(_A, _A).evaluate([1, 2.0]),
    "k that is NaN": lambda: Evaluator(_A, _A).calculate_recall(k=math.nan),
    "k in a list": lambda: Evaluator(_A, _A).calculate_recall(k=[5]),
    "no ground truth at all": lambda: Evaluator([[], []], [["a"], []], no_ground_truth="skip"),
    "ground truth of grade 0": lambda: Evaluator([_GRADED[:1]], _A, grade_key="grade"),
    "two grades": lambda: Evaluator([["b"], _GRADED], _A * 2, grade_key="grade").evaluate(1),
    "a data frame": lambda: Evaluator(pd.DataFrame({"actual": _A}), _A),
    "a data set": lambda: Evaluator(Dataset(["q"], _A, _A), _A),
    "rows of text": lambda: evaluate_retriever(
        lambda question: [question], [{"question": "When?", "actual": "nine"}]
    ),
    "rejection, all answerable": lambda: Evaluator(
        _A, _A, no_ground_truth="skip"
    ).calculate_rejection_rate(5),
    "rejection, as 0": lambda: Evaluator(
        [*_A, []], [*_A, []], no_ground_truth="zero"
    ).calculate_rejection_rate(5),
    "rejection, refused": lambda: Evaluator(_A, _A).calculate_rejection_rate(5),
    "rejection at 0": lambda: _several().calculate_rejection_rate(0),
    # Averages and tables.
    "no separator": lambda: _result().to_dict(separator=""),
    "a separator of None": lambda: _result().to_dict(separator=None),
    **{
        f"{name} at 3": lambda name=name: getattr(_result(), name)(3)
        for name in ("averages", "per_query", "evaluated_cutoff", "statuses", "plot")
    },
    "rows at all": lambda: _result().per_query("all"),
    "rows at 1.0": lambda: _result().per_query(1.0),
    "an average without its cutoff": lambda: _result()["recall"],
    "an average misspelt": lambda: _result()["recal@2"],
    "an average by number": lambda: _result()[2],
    "an average elsewhere": lambda: _result()["recall@7"],
    "averages walked through": lambda: iter(_result()),
    "an average looked for": lambda: "mrr@1" in _result(),
    "a plot into a file": lambda: _result().plot("chart.png"),
    "a plot into a path": lambda: _result().plot(Path("out", "chart.svg")),
    "no misses": lambda: _result().misses(1, 0),
    "misses of a text": lambda: _result().misses(1, "3"),
    "a damaged file": lambda: EvaluationResult.from_json("damaged.json"),
    "thresholds without evidence": lambda: _bare().metrics_at_thresholds(),
    "first ranks without evidence": lambda: _bare().first_ranks(),
    # Explanations.
    "explained without evidence": lambda: _bare().explain(0),
    "explained: no query": lambda: _explain(),
    "explained: at 3": lambda: _explain(0, 3),
    "explained: a float": lambda: _explain(1.0),
    "explained: true": lambda: _explain(True),
    "explained: a list": lambda: _explain(["u"]),
    "explained: beyond the last": lambda: _explain(7, labels=[*"uvwxy"]),
    "explained: a question never given": lambda: _explain("How long?"),
    "explained: a part of two": lambda: _explain("bank", labels=["A bank", "b", "Bank?", *"de"]),
    "explained: label of two": lambda: _explain("u", labels=[*"uvwuy"]),
    "explained: both": lambda: _explain(1, position=1),
    "explained: position of -1": lambda: _explain(position=-1),
    "explained: position of 5": lambda: _explain(position=5),
    "explained: position of 1.0": lambda: _explain(position=1.0),
    "explained: position of true": lambda: _explain(position=True),
    "explained: metadata by number": lambda: _explain(0, metadata=3),
    "explained: metadata by numbers": lambda: _explain(0, metadata=[3]),
    "explained: metadata by None": lambda: _explain(0, metadata=("source", None)),
    "intervals by no method": lambda: _result().confidence_intervals(method="bca"),
    "intervals at 0": lambda: _result().confidence_intervals(0),
    "intervals at a text": lambda: _result().confidence_intervals("0.95"),
    "intervals from 99": lambda: _result().confidence_intervals(n_resamples=99),
    "intervals from 1e4": lambda: _result().confidence_intervals(n_resamples=1e4),
    "intervals by no seed": lambda: _result().confidence_intervals(seed=None),
    "intervals by a seed of -1": lambda: _result().confidence_intervals(seed=-1),
    # Diagnoses.
    **{
        f"index: {what}": lambda index=index: _diagnose(index)
        for what, index in (("a text", "a text"), ("a dict", {"page_content": "a"}), ("7", 7),
                            ("of 7", [7]), ("empty", []), ("used up", iter(())),
                            ("of another form", [{"title": "a"}]))
    },
    "index: without an id": lambda: Evaluator([["9"]], [["1"]], IdMatcher()).evaluate(1).diagnose(
        ["1", Document("text")], k=1
    ),
    "index: foreign": lambda: _diagnose(["bicycles may be parked in the yard all year"]),
    "index: foreign, maybe": lambda: _diagnose(foreign_index="yes"),
    **{
        f"deeper: {what}": lambda deeper=deeper: _diagnose(deeper=deeper, k=1)
        for what, deeper in (("two lists", [[], []]), ("a text", "x"), ("7", 7), ("texts", ["x"]),
                             ("of 7", [[7]]), ("another label", {"another": []}),
                             ("none", lambda question: None), ("empty", [[]]), ("blank", [[" "]]))
    },
    "deeper: without questions": lambda: _result().diagnose(deeper=lambda question: [], k=1),
    "depth of 0": lambda: _diagnose(depth=0),
    "depth of the cutoff": lambda: _diagnose(k=2, depth=2),
    "depth of a text": lambda: _diagnose(depth="x"),
    "most pairs: none": lambda: _diagnose(most_pairs=0),
    "most pairs: two": lambda: _result(matcher="fuzzy").diagnose([*"xy"], k=1, most_pairs=1),
    "source by number": lambda: _diagnose(source_key=7),
    "diagnosed at 0": lambda: _diagnose(k=0),
    "diagnosed by another matcher": lambda: _diagnose(matcher="id"),
    "diagnosed with no data set": lambda: _diagnose(dataset=3),
    "diagnosed in French": lambda: _diagnose().summary("fr"),
    # Other results, read from a file that somebody changed.
    **{
        f"a diagnosis with {change}": lambda change=change: _reread(_diagnose(), change)
        for change in ({"format": "x"}, {"format_version": 2}, {"items": {"query": [1]}},
                       {"k": "x"}, {"more": 1})
    },
    **{
        f"an audit with {change}": lambda change=change: _reread(audit(Dataset(["q"], _A)), change)
        for change in ({"format": "krag_eval.result"}, {"format_version": 2}, {"findings": []},
                       {"counts": 3}, {"findings": None}, {"shares": {"quoted": 3}})
    },
    **{
        f"slices with {change}": lambda change=change: _reread(_result().by("items"), change)
        for change in ("{", "[]", "{}", {"format_version": 2}, {"kind": "comparison"},
                       {"level": "0.95"}, {"rows": 3}, {"overall": []},
                       {"lower_is_better": [3]}, {"rows": [{"slice": "wiki"}]},
                       {"rows": [asdict(Slice("wiki", "mrr@2", 1.5, *[0.5] * 9))]})
    },
    "slices with a number without bound": lambda: _reread(
        _result().by("items"), {"overall": {"mrr@2": 10**400}}
    ),
    "slices in a file that is not there": lambda: Slices.from_json("none.json"),
    # Claims.
    **{
        f"support: {matrix}": lambda matrix=matrix: evaluate_support(matrix)
        for matrix in (1, "support", [1, 0], [["support"], "support"], [], [[], []], [[[1]], []],
                       [[1, 0], [1]], [[[1, 0], 1]], [[1.5]], [[math.nan]], [["maybe"]], [[None]],
                       [[1, 0], [2, 0]], [[[1, 0]], [[1, 2]]])
    },
    **{
        f"importance: {given}": lambda given=given: evaluate_support(_MATRIX, importance=given)
        for given in ("vital", ["vital"], ["vital", "high"], [["vital"] * 2], [1, 0], 3)
    },
    "support by judge 3": lambda: evaluate_support(_MATRIX, judge=3),
    "support of other labels": lambda: evaluate_support(_MATRIX, queries=["a", "b"]),
    "support of other tags": lambda: evaluate_support(_MATRIX, tags={"kind": [1, 2]}),
    "support within a budget": lambda: evaluate_support(_MATRIX, k="100w"),
    # Labelled pairs.
    **{
        f"pairs: {what}": lambda given=given: calibrate(_Given(), given)
        for what, given in (
            ("of two", [("a", "b")]), ("of yes", [("a", "0.5", "yes")]),
            ("of 2", [("a", "0.5", 2), ("a", "0.6", 0)]), ("none", []),
            ("all relevant", [("a", "0.5", True), ("a", "0.6", True)]),
            ("of nothing in common", [("a", "0", True), ("a", "0", False)]),
            ("rows without columns", [{"actual": "a", "predicted": "1", "relevant": True},
                                      {"a": 1}]),
        )
    },
    "calibrated at 1": lambda: calibrate(_Given(), _MIXED, level=1),
    "calibrated at a text": lambda: calibrate(_Given(), _MIXED, level="x"),
    "calibrated at 0": lambda: calibrate(_Given(), _MIXED, level=0.0),
    "calibrated from none": lambda: calibrate(_Given(), _MIXED, n_resamples=0),
    "calibrated by text": lambda: calibrate("text", _MIXED),
    "calibrated together": lambda: calibrate("coverage(union=yes)", _MIXED),
    "agreed at a threshold of none": lambda: agreement("text", _MIXED, threshold=0.5),
    "agreed without questions": lambda: agreement(JudgeMatcher(lambda q, a, p: True), _MIXED),
    "agreed on question 1": lambda: agreement(
        JudgeMatcher(lambda q, a, p: True), [("a", "b", True, 1)]
    ),
    # Labels of people.
    **{
        f"debiased: {what}": lambda changed=changed: _debias(**changed)
        for what, changed in (
            ("a text", {"human": "abc"}), ("a number", {"human": 3}),
            ("a text among numbers", {"human": [1, "b", 0] * 20}),
            ("None among them", {"judge": [True, None] * 20}), ("NaN", {"human": [math.nan] * 40}),
            ("fewer of the judge", {"judge": [0, 1] * 19}), ("one other", {"unlabelled": [1]}),
            ("one label", {"human": [1], "judge": [1]}),
            ("nine labels", {"human": [1, 0, 1] * 3, "judge": [1, 0, 1] * 3}),
            ("a level of 1", {"level": 1}), ("a metric", {"metric": "ndcg@10"}),
            ("clusters", {"clusters": "source"}),
            ("other rows", {"judge": pd.Series([0, 1] * 20, index=range(1, 41))}),
            ("a result among values", {"judge": _result()}),
            ("rows numbered anew", {"human": pd.Series([0, 1] * 20),
                                    "judge": pd.Series([0, 1] * 20),
                                    "unlabelled": pd.Series([1, 1, 0] * 40)}),
            ("other systems", {"human": _VALUES, "judge": {"a": [0] * 40, "c": [0] * 40},
                               "unlabelled": _VALUES}),
            ("systems and values", {"human": _VALUES, "judge": _VALUES}),
        )
    },
    **{
        f"predicts: {what}": lambda scores=scores: _wide(scores)
        for what, scores in (
            ("all equal", [1.0] * 60), ("too few", [0, 1] * 29), ("NaN", [math.nan, 1] * 30),
            ("one query less", {f"q{i}": i for i in range(59)}),
            ("one query more", {f"q{i}": i for i in range(61)}),
            ("one label for all", pd.Series(range(60), index=["q1"] * 60)),
            ("letters", ["good", "bad"] * 30),
            ("rows of a sorted table", pd.Series(np.arange(60.0)).iloc[::-1]),
        )
    },
    # What somebody looked at.
    **{
        f"judged: {what}": lambda judged=judged: _judged(judged=judged)
        for what, judged in (("a text", "A"), ("texts", ["A"]), ("a pool of 1", [{"A": 1}]),
                             ("another query", [["A"], ["B"]]), ("a label", {"unknown": ["A"]}))
    },
    "unjudged: right": lambda: _judged(unjudged="right"),
    "unjudged: unknown": lambda: _judged(unjudged="leave_out", judged=None),
    "bpref of what nobody judged": lambda: _judged(judged=None).evaluate(5, metrics=["bpref"]),
    "bpref in parts": lambda: PartitionPlan.of(5, metrics=["bpref"], matcher="id").evaluate(_A, _A),
    "a data set judged by a label": lambda: Dataset(["q"], _A, _A, judged={"q7": ["A"]}),
    "a data set judged by 3": lambda: Dataset(["q"], _A, _A, judged=3),
    "a data set judged by a text": lambda: Dataset(["q"], _A, _A, judged="A"),
    "to judge by MRR": lambda: _to_judge("mrr@3"),
    "to judge by credit": lambda: _to_judge(conventions=Conventions(credit="every")),
    "to judge what is left out": lambda: _to_judge(unjudged="leave_out"),
    "to judge without keys": lambda: _to_judge(judged=None),
    "other documents judged": lambda: compare(
        _judged().evaluate(3), _judged(judged=[["N", "M"]]).evaluate(3)
    ),
    # Failures.
    "failures allowed: -1": lambda: _result().check({"recall@2": 0.1}, allow_failures=-1),
    "failures allowed: 1.5": lambda: _result().check({"recall@2": 0.1}, allow_failures=1.5),
    "failures allowed: true": lambda: _result().check({"recall@2": 0.1}, allow_failures=True),
}  # fmt: skip
