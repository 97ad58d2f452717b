"""Wrong calls from Python: what each raises, and which argument it blames."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import krag_eval
from golden import inputs
from krag_eval import (
    AnyOf,
    Conventions,
    CoverageMatcher,
    EvaluationResult,
    History,
    JudgeMatcher,
    Matcher,
    OfflineRetrievalEvaluator,
    RougeMatcher,
    calibrate,
    compare,
    debias,
    evaluate_retriever,
    load_dataset,
    plan_questions,
)

Evaluator = OfflineRetrievalEvaluator
_A, _B = [["a"]], [["b"]]


class _Undecided(Matcher):
    """A matcher whose similarity is no number."""

    def similarity(self, actual: Any, predicted: Any) -> float:
        return math.nan


def _two() -> tuple[EvaluationResult, EvaluationResult]:
    return inputs.system(), inputs.system(3)


CALLS: dict[str, Callable[[], Any]] = {
    "no queries": lambda: Evaluator([], []),
    "lengths differ": lambda: Evaluator(_A, [*_B, *_B]),
    "a list of texts": lambda: Evaluator(["a"], _B),
    "a bare string": lambda: Evaluator("a", _B),
    "None for a document": lambda: Evaluator([[None]], _B),
    "a number for a document": lambda: Evaluator([[1.5]], _B),
    "a pair of text and score": lambda: Evaluator(_A, [[("b", 0.5)]]),
    "no ground truth": lambda: Evaluator([[]], _B),
    "labels too few": lambda: Evaluator(_A * 2, _B * 2, queries=["q"]),
    "labels repeated": lambda: Evaluator(_A * 2, _B * 2, queries=["q", "q"]),
    "tags too few": lambda: Evaluator(_A * 2, _B * 2, tags={"t": ["x"]}),
    "an unknown matcher": lambda: Evaluator(_A, _B, matcher="covrage"),
    "a class for a matcher": lambda: Evaluator(_A, _B, matcher=CoverageMatcher),
    "a threshold of 80": lambda: Evaluator(_A, _B, matcher="rougeL", threshold=80),
    "a threshold that is true": lambda: Evaluator(_A, _B, matcher="rougeL", threshold=True),
    "a threshold for text": lambda: Evaluator(_A, _B, matcher="text", threshold=0.5),
    "similarities that are NaN": lambda: Evaluator(_A, _B, matcher=_Undecided()).evaluate(1),
    "an unknown option": lambda: Evaluator(_A, _B, treshold=0.5),
    "conventions by another word": lambda: Evaluator(_A, _B, conventions="trek"),
    "a convention's other value": lambda: Conventions(gain="square"),
    "k of 0": lambda: Evaluator(_A, _B).evaluate(k=0),
    "k that is negative": lambda: Evaluator(_A, _B).evaluate(k=-1),
    "k that is a float": lambda: Evaluator(_A, _B).evaluate(k=1.5),
    "k that is true": lambda: Evaluator(_A, _B).evaluate(k=True),
    "no k": lambda: Evaluator(_A, _B).evaluate(k=[]),
    "k as text": lambda: Evaluator(_A, _B).evaluate(k="five"),
    "a budget of ids": lambda: Evaluator(_A, _B, matcher="id").evaluate(k="10w"),
    "an unknown metric": lambda: Evaluator(_A, _B).evaluate(1, metrics=["recal"]),
    "token recall of equal texts": lambda: Evaluator(_A, _B).calculate_token_recall(1),
    "an average of another word": lambda: Evaluator(_A, _B).calculate_recall(1, averaging="mean"),
    "an average that was not computed": lambda: inputs.system()["recall@7"],
    "a query nobody asked": lambda: inputs.system().explain("nobody asked"),
    "slices by no tag": lambda: inputs.system().by("nothing", k=5),
    "levels of 95": lambda: inputs.system().confidence_intervals(level=95),
    "no resamples": lambda: inputs.system().confidence_intervals(n_resamples=0),
    "a minimum run of 0": lambda: CoverageMatcher(min_run=0),
    "an unknown tokenizer": lambda: CoverageMatcher(tokenizer="kiwy"),
    "an unknown ROUGE": lambda: RougeMatcher("rougeX"),
    "empty alternatives": lambda: AnyOf([]),
    "one result": lambda: compare(inputs.system()),
    "other queries": lambda: compare(inputs.system(), Evaluator(_A, _B).evaluate(5)),
    "another matcher": lambda: compare(inputs.system(), inputs.system(matcher="text")),
    "results that are dicts": lambda: compare({"a": {}, "b": {}}),
    "a baseline that is none": lambda: compare(*_two(), baseline="other"),
    "a gate on nothing": lambda: inputs.system().check(),
    "a floor of 80": lambda: inputs.system().check({"recall@5": 80}),
    "a drop of 2": lambda: _two()[1].check(baseline=_two()[0], metric="recall@5", max_drop=2),
    "a drop without a baseline": lambda: inputs.system().check({"recall@5": 0.1}, max_drop=0.1),
    "a history that is none": lambda: History.of("nowhere"),
    "a path for a result": lambda: inputs.system().check(baseline="old.json", metric="recall@5"),
    "labels of one kind": lambda: calibrate("coverage", [("a", "b", 1), ("c", "d", 1)]),
    "labels of 2": lambda: calibrate("coverage", [("a", "b", 2), ("c", "d", 0)]),
    "too few labels": lambda: debias(
        human=Evaluator(_A, _B).evaluate(1), judge=Evaluator(_A, _B).evaluate(1),
        unlabelled=Evaluator(_A, _B).evaluate(1), metric="recall@1",
    ),
    "a difference of 0": lambda: plan_questions(inputs.system(), detect=0),
    "a power of 2": lambda: plan_questions(inputs.system(), detect=0.1, power=2),
    "a file that is missing": lambda: load_dataset("missing.jsonl"),
    "a file that is damaged": lambda: EvaluationResult.from_json("damaged.json"),
    "a line that is no JSON": lambda: load_dataset("bad.jsonl"),
    "a retriever that is a string": lambda: evaluate_retriever("bm25", load_dataset("asked.jsonl")),
    "a judge without questions": lambda: Evaluator(
        _A, _B, matcher=JudgeMatcher(lambda q, a, p: True, version="1")
    ).evaluate(1),
    "an index that is a string": lambda: inputs.system().diagnose("chunks.jsonl", k=3),
    "a report as PDF": lambda: inputs.system().report("page.pdf"),
    "an audit of a number": lambda: krag_eval.audit(3),
}  # fmt: skip


def told(make: Callable[[], Any], with_place: bool = False) -> str:
    """Return the type of the error and the argument that it blames, or what came instead."""
    with warnings.catch_warnings(action="ignore"):
        try:
            made = make()
        except Exception as error:
            blamed = getattr(error, "argument", None)
            types = [one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins"]
            where = _where(error) if with_place else ""
            return f"{type(error).__name__} ({types[0]}); {blamed}{where}"
        return f"no error; {type(made).__name__}"


def _where(error: Exception) -> str:
    """Return the query and the place in a file that an error names, without the folder."""
    query, place = getattr(error, "query", None), getattr(error, "place", None)
    asked = "" if query is None else f"; query {query}{getattr(error, 'within', '')}"
    return asked + ("" if place is None else f"; {str(place).rpartition('/')[2]}")
