"""Results compared, sliced, gated, planned and kept in a history wrongly."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from golden import inputs
from krag_eval import (
    EvaluationResult,
    History,
    OfflineRetrievalEvaluator as Evaluator,
    Slices,
    compare,
    plan_questions,
)
from krag_eval.comparison.gates import parse_floor


@cache
def _new() -> EvaluationResult:
    return inputs.system(3)


@cache
def _old() -> EvaluationResult:
    return inputs.system()


def _two() -> dict[str, EvaluationResult]:
    return {"old": _old(), "new": _new()}


@cache
def _compared() -> Any:
    three = {**_two(), "third": _old()}
    return compare(three, ["ndcg@5", "mrr@5"], n_resamples=100)


def _check(*floors: Any, **options: Any) -> Any:
    return _new().check(*floors, **options)


def _against(**options: Any) -> Any:
    return _new().check(**{"baseline": _old(), "metric": "mrr@5", **options})


def _against_runs(result: Any = None, **options: Any) -> Any:
    return History.of("runs").check(result or _new(), **{"metric": "mrr@5", **options})


def _plan(pilot: Any = None, **options: Any) -> Any:
    return plan_questions(pilot or _old(), **{"detect": 0.1, **options})


CALLS: dict[str, Callable[[], Any]] = {
    # What is compared.
    "compare numbers": lambda: compare([1, 2]),
    "compare a number": lambda: compare(3),
    "compare a text": lambda: compare("ab"),
    "compare one result": lambda: compare(_old()),
    "compare dicts": lambda: compare({"a": {}, "b": {}}),
    "compare with a baseline that is none": lambda: compare(_two(), baseline="other"),
    "compare one named result": lambda: compare({"a": _old()}),
    "compare nothing": lambda: compare({}),
    "compare under a name that is no text": lambda: compare({1: _old()}),
    "compare names beside a result": lambda: compare({"a": _old()}, _new()),
    "compare by two metrics in two places": lambda: compare(_old(), "mrr@5", metric="mrr@5"),
    "too few names": lambda: compare(_old(), _new(), names=["x"]),
    "names repeated": lambda: compare(_old(), _new(), names=["x", "x"]),
    "an empty name": lambda: compare(_old(), _new(), names=["x", ""]),
    "a number for a name": lambda: compare(_old(), _new(), names=["x", 3]),
    "a text for names": lambda: compare(_old(), _new(), names="xy"),
    "names of what has names": lambda: compare(_two(), names=["x", "y"]),
    "a metric without a cutoff": lambda: compare(_two(), "ndcg"),
    "a cutoff without a metric": lambda: compare(_two(), "@5"),
    "a metric in capitals": lambda: compare(_two(), "nDCG@5"),
    "a cutoff that was not evaluated": lambda: compare(_two(), "ndcg@7"),
    "no cutoff, which was not evaluated": lambda: compare(_two(), "ndcg@all"),
    "a cutoff that is none": lambda: compare(_two(), "ndcg@x"),
    "no metrics": lambda: compare(_two(), []),
    "a list of numbers for metrics": lambda: compare(_two(), [3]),
    "a number for a metric": lambda: compare(_two(), 3),
    "compare at a level of 95": lambda: compare(_two(), level=95),
    "compare by ten resamples": lambda: compare(_two(), n_resamples=10),
    "compare by a negative seed": lambda: compare(_two(), seed=-1),
    "compare on both": lambda: compare(_two(), on="both"),
    "compare on what nobody shares": lambda: compare(
        _old(), Evaluator([["a"]], [["a"]], queries=["Another?"]).evaluate(5), on="common"
    ),
    "compare by an unknown tag": lambda: compare(_two(), clusters="topic"),
    "compare by a number for a tag": lambda: compare(_two(), clusters=3),
    "changed on another metric": lambda: _compared().changed("map@5"),
    "changed on one of several metrics": lambda: _compared().changed(),
    "changed between some of three": lambda: _compared().changed("mrr@5"),
    "changed from one of three": lambda: _compared().changed("mrr@5", "old"),
    "changed to another system": lambda: _compared().changed("mrr@5", "old", "w"),
    "changed from one to itself": lambda: _compared().changed("mrr@5", "old", "old"),
    "no changes": lambda: _compared().changed("mrr@5", "old", "new", 0),
    # Slices.
    "slices by a number": lambda: _old().by(3),
    "slices by no tag": lambda: _old().by(""),
    "slices by an unknown tag": lambda: _old().by("nothing", k=5),
    "slices at another cutoff": lambda: _old().by("corpus", 7),
    "slices by an unknown metric": lambda: _old().by("corpus", metrics="recal"),
    "slices by a metric at another cutoff": lambda: _old().by("corpus", metrics="recall@7"),
    "slices by a number for metrics": lambda: _old().by("corpus", metrics=5),
    "slices by numbers for metrics": lambda: _old().by("corpus", metrics=[5]),
    "slices by no metrics": lambda: _old().by("corpus", metrics=[]),
    "slices at a level of 1": lambda: _old().by("corpus", level=1.0),
    "slices by one resample": lambda: _old().by("corpus", n_resamples=1),
    "slices by a negative seed": lambda: _old().by("corpus", seed=-1),
    "slices by a diagnosis that is missing": lambda: _old().by("diagnosis"),
    "slices by a text for a diagnosis": lambda: _old().by("diagnosis", diagnosis="found"),
    "slices by items and a diagnosis": lambda: _old().by("items", diagnosis=_old().diagnose(k=3)),
    "slices by the diagnosis of another": lambda: _old().by(
        "diagnosis", diagnosis=inputs.system(k=[1], matcher="text").diagnose()
    ),
    "slices of a comparison by an unknown tag": lambda: _compared().by("corpsu"),
    "slices of a comparison without its results": lambda: replace(_compared(), compared={}).by("x"),
    "slices in a file that is none": lambda: Slices.from_json("empty.jsonl"),
    # Gates.
    "a gate on nothing": lambda: _check(),
    "no floors": lambda: _check({}),
    "a floor of an unknown average": lambda: _check({"macro_recal@5": 0.5}),
    "a floor of a rejection rate that is none": lambda: _check({"rejection_rate@5": 0.5}),
    "a floor at another cutoff": lambda: _check({"ndcg@10": 0.5}),
    "a floor without a cutoff": lambda: _check({"ndcg": 0.5}),
    "a floor at no cutoff": lambda: _check({"ndcg@": 0.5}),
    "a floor of a number": lambda: _check({5: 0.5}),
    "a floor below 0": lambda: _check({"recall@5": -0.1}),
    "a floor above 1": lambda: _check({"recall@5": 1.01}),
    "a floor that is NaN": lambda: _check({"recall@5": math.nan}),
    "a floor without bound": lambda: _check({"recall@5": math.inf}),
    "a floor that is text": lambda: _check({"recall@5": "0.8"}),
    "a floor that is true": lambda: _check({"recall@5": True}),
    "a ceiling below the best rank": lambda: _check({"mean_rank@5": 0.5}),
    "a floor without a number": lambda: parse_floor("ndcg@10"),
    "an empty text for a floor": lambda: parse_floor(""),
    "a number for a floor": lambda: parse_floor(0.8),  # type: ignore[arg-type]
    "a text of a floor without a cutoff": lambda: parse_floor("ndcg=0.6"),
    "a text of a floor at 0": lambda: parse_floor("ndcg@0=0.6"),
    "a text of a floor at ten": lambda: parse_floor("ndcg@ten=0.6"),
    "a text of a floor of nothing": lambda: parse_floor("ndcg@10="),
    "a text of a floor in percent": lambda: parse_floor("ndcg@10=60%"),
    "a text of two floors": lambda: parse_floor("ndcg@10=0.6=0.7"),
    "a drop below 0": lambda: _against(max_drop=-0.1),
    "a drop of 2": lambda: _against(metric="recall@5", max_drop=2),
    "a drop that is NaN": lambda: _against(max_drop=math.nan),
    "a drop that is true": lambda: _against(max_drop=True),
    "a baseline without a metric": lambda: _check(baseline=_old()),
    "a baseline that is none": lambda: _against(baseline={"mrr@5": 0.8}),
    "a baseline by its name": lambda: _against(baseline="run.jsonl"),
    "a baseline of other queries": lambda: _against(
        baseline=Evaluator([["a"]], [["a"]], queries=["Another?"]).evaluate(5)
    ),
    "a drop at another cutoff": lambda: _against(metric="mrr@7"),
    "slices of a gate by an unknown tag": lambda: _against(by="corpsu"),
    "slices of a gate by a number": lambda: _against(by=3),
    "a gate that is perhaps strict": lambda: _check({"mrr@5": 0.5}, strict="no"),
    "a metric without a baseline": lambda: _check({"mrr@5": 0.5}, metric="mrr@5"),
    "strict without a baseline": lambda: _check({"mrr@5": 0.1}, strict=True),
    "a drop without a baseline": lambda: _check({"mrr@5": 0.1}, max_drop=0.1),
    "common without a baseline": lambda: _check({"mrr@5": 0.1}, on="common"),
    "slices without a baseline": lambda: _check({"mrr@5": 0.1}, by="corpus"),
    "clusters without a baseline": lambda: _check({"mrr@5": 0.1}, clusters="source"),
    # Histories.
    "a history in a folder that is not there": lambda: History.of("nowhere"),
    "a history in a number": lambda: History.of(5),  # type: ignore[arg-type]
    "a history of no runs": lambda: History.of("runs", last=0),
    "a history of no metrics": lambda: History.of("runs", []),
    "a history of a cutoff that no run has": lambda: History.of("runs", "ndcg@7"),
    "a history of an unknown metric": lambda: History.of("runs", "nonsense@5"),
    "a history of a metric without a cutoff": lambda: History.of("runs", "ndcg"),
    "a history of a number": lambda: History.of("runs", 5),  # type: ignore[arg-type]
    "a history gate of no metric": lambda: _against_runs(metric=None),
    "a history gate of no runs": lambda: _against_runs(last=0),
    "a history gate of a larger drop than there is": lambda: _against_runs(max_drop=2),
    "a history gate of a file": lambda: _against_runs("new.json"),
    # Plans.
    "a plan for a difference of 80": lambda: _plan(detect=80),
    "a plan for no difference": lambda: _plan(detect=0),
    "a plan for a difference of NaN": lambda: _plan(detect=math.nan),
    "a plan for a text": lambda: _plan(detect="0.1"),
    "a plan of a power of 2": lambda: _plan(power=2),
    "a plan of a power of 1": lambda: _plan(power=1),
    "a plan of a power that is alpha": lambda: _plan(power=0.05),
    "a plan at an alpha of 0": lambda: _plan(alpha=0),
    "a plan at an alpha of 1": lambda: _plan(alpha=1),
    "a plan at another cutoff": lambda: _plan(metric="recall@7"),
    "a plan of two metrics": lambda: _plan(metric=["recall@5", "mrr@5"]),
    "a plan by an unknown tag": lambda: _plan(clusters="topic"),
    "a plan of a perfect correlation": lambda: _plan(correlation=1),
    "a plan of a text for a correlation": lambda: _plan(correlation="high"),
    "a plan of a comparison and a correlation": lambda: _plan(
        compare(_two(), "mrr@5", n_resamples=100), correlation=0.5
    ),
    "a plan of a number": lambda: _plan(0.3),
    "a plan of three systems": lambda: _plan(_compared(), metric="mrr@5"),
    "a plan of one of two metrics": lambda: _plan(
        compare(_two(), ["mrr@5", "map@5"], n_resamples=100)
    ),
    # Other thresholds.
    "a threshold below 0": lambda: _old().metrics_at_thresholds("mrr@5", [0.5, -0.1]),
    "a threshold above 1": lambda: _old().metrics_at_thresholds("mrr@5", [0.5, 1.1]),
    "a threshold that is NaN": lambda: _old().metrics_at_thresholds("mrr@5", [0.5, math.nan]),
    "a threshold that is text": lambda: _old().metrics_at_thresholds("mrr@5", ["0.5"]),
    "no thresholds": lambda: _old().metrics_at_thresholds("mrr@5", []),
    "no metrics at thresholds": lambda: _old().metrics_at_thresholds([]),
    "an unknown metric at thresholds": lambda: _old().metrics_at_thresholds("ndgc@1"),
    "a metric at thresholds without a cutoff": lambda: _old().metrics_at_thresholds("ndcg"),
    "a metric at thresholds at 0": lambda: _old().metrics_at_thresholds("ndcg@0"),
    "thresholds of a matcher without one": lambda: inputs.system(
        matcher="text"
    ).metrics_at_thresholds("mrr@5"),
    # Tags.
    "too few values of a tag": lambda: inputs.system(tags={"corpus": ["x"]}),
    "a list for tags": lambda: inputs.system(tags=[["wiki"]]),
    "a number for a tag": lambda: inputs.system(tags={3: ["x"] * 28}),
    "a tag without a name": lambda: inputs.system(tags={"": ["x"] * 28}),
    "a text for a tag's values": lambda: inputs.system(tags={"corpus": "wiki"}),
    "a list for a value": lambda: inputs.system(tags={"corpus": [["c"]] * 28}),
    "too long a value": lambda: inputs.system(tags={"corpus": ["c" * 201] * 28}),
    "a value without bound": lambda: inputs.system(tags={"corpus": [math.inf] * 28}),
}
