"""The name of a metric in place of an average means its mean over queries, everywhere.

Sample S of docs/worked-examples.md at k = 2, worked there by hand: macro recall 7/12, macro
precision 3/4, macro F1 0.65625, hit rate 0 (all of the ground truth) or 1 (any of it).
"""

from __future__ import annotations

import pytest
from matplotlib import pyplot

from krag_eval import Metric, OfflineRetrievalEvaluator, compare
from krag_eval.errors import InvalidInput
from krag_eval.integrations.langsmith import retrieval_evaluators
from krag_eval.plotting import cutoff_curves, metric_distribution, threshold_curves
from krag_eval.scoring.metrics import METRICS, resolved_average

ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]
STANDS_FOR = {
    "recall": "macro_recall",
    "precision": "macro_precision",
    "f1": "macro_f1",
    "hit": "hit_rate",
    "hit_rate": "hit_rate",
    "reciprocal_rank": "mrr",
    "average_precision": "map",
    "rank": "mean_rank",
    "mrr": "mrr",
    "map": "map",
    "mean_rank": "mean_rank",
    "ndcg": "ndcg",
    "micro_recall": "micro_recall",
}
every_name = pytest.mark.parametrize(("name", "average"), STANDS_FOR.items())
few_queries = pytest.mark.filterwarnings("ignore:The intervals rest on")


def evaluated(k=2, metrics=None, matcher="text", **options):
    """Evaluate sample S."""
    evaluator = OfflineRetrievalEvaluator(ACTUAL, PREDICTED, matcher, **options)
    return evaluator.evaluate(k, metrics=metrics)


def test_every_built_in_metric_stands_for_its_mean():
    """The registry and the rule for names cannot drift apart."""
    keys = {name: metric.at().key for name, metric in METRICS.items()}
    assert {name: resolved_average("metric", name, keys.values()) for name in METRICS} == keys


@every_name
def test_in_a_gate(name, average):
    """What is said names the average."""
    floor = 9 if average == "mean_rank" else 0
    for floors in ([f"{name}@2={floor}"], {f"{name}@2": floor}):
        (gate,) = evaluated().check(floors).gates
        assert gate.metric == f"{average}@2"
        assert gate.reason.startswith(f"{average}@2 is ")


def test_the_numbers_are_those_of_the_macro_averages():
    """Floors a little below hold, and floors a little above do not."""
    by_hand = {"recall@2": 7 / 12, "precision@2": 3 / 4, "f1@2": 0.65625}
    assert evaluated().check({name: value - 1e-9 for name, value in by_hand.items()})
    above = {name: value + 1e-9 for name, value in by_hand.items()}
    assert [gate.passed for gate in evaluated().check(above).gates] == [False] * 3


@pytest.mark.parametrize(("criteria", "rate"), [("all", 0.0), ("partial", 1.0)])
def test_hit_is_the_hit_rate_by_the_criteria_in_force(criteria, rate):
    """Of each query one document is missing at 2."""
    result = evaluated(matching_criteria=criteria)
    (gate,) = result.check({"hit@2": 0.5}).gates
    assert gate.passed is (rate == 1.0)
    assert result.to_dict()["hit_rate@2"] == rate


@few_queries
@every_name
def test_in_a_comparison_and_against_a_baseline(name, average):
    """Named by the average in the table, and found again by either name."""
    pair = {"a": evaluated(), "b": evaluated()}
    comparison = compare(pair, f"{name}@2", n_resamples=100)
    assert comparison.metrics == [f"{average}@2"]
    assert comparison.changed(f"{name}@2").empty
    (gate,) = evaluated().check(baseline=pair["a"], metric=f"{name}@2", n_resamples=100).gates
    assert gate.metric == f"{average}@2"


@few_queries
def test_two_names_of_one_average_are_one_metric():
    """It is not corrected for twice."""
    pair = {"a": evaluated(), "b": evaluated()}
    assert compare(pair, ["recall@2", "macro_recall@2"]).metrics == ["macro_recall@2"]


@pytest.fixture
def _closed():
    """Close the pictures that were drawn."""
    yield
    pyplot.close("all")


@pytest.mark.usefixtures("_closed")
@every_name
def test_in_averages_at_thresholds_and_in_pictures(name, average):
    """The columns are the averages."""
    result = evaluated(matcher="fuzzy")
    table = result.metrics_at_thresholds([f"{name}@2"])
    assert list(table.columns) == [f"{average}@2"]
    assert threshold_curves(table, metrics=[f"{name}@2"]).lines
    assert threshold_curves(result, metrics=[f"{name}@2"]).lines
    assert cutoff_curves(result, name).lines


@pytest.mark.usefixtures("_closed")
def test_in_a_distribution_over_queries():
    """There it is the column itself."""
    title = metric_distribution(evaluated(), "hit@2").get_title(loc="left")
    assert title == metric_distribution(evaluated(), "hit_rate@2").get_title(loc="left")


@pytest.mark.parametrize("name", ["recall", "precision", "f1"])
def test_where_only_micro_averages_were_computed_the_micro_average_is_named(name):
    """Never taken for the macro average."""
    result = evaluated(averaging_method="micro")
    refusals = {
        "floors": lambda: result.check({f"{name}@2": 0.5}),
        "metric": lambda: compare({"a": result, "b": result}, f"{name}@2"),
        "metrics": lambda: cutoff_curves(result, name),
    }
    for argument, ask in refusals.items():
        with pytest.raises(
            InvalidInput, match=f"'micro_{name}'.*averaging_method=\"both\""
        ) as caught:
            ask()
        assert caught.value.argument == argument


def test_where_only_macro_averages_were_computed_nothing_changes():
    """The name is theirs."""
    assert evaluated(averaging_method="macro").check({"recall@2": 0.5})


def test_a_metric_of_ones_own_by_either_name():
    """An average with the name of ours is found first."""
    first = Metric("first", METRICS["precision"].compute, "first_mean")
    result = evaluated(metrics=[first, "recall", Metric("h", METRICS["f1"].compute, "hit")])
    gates = result.check({"first@2": 0, "first_mean@2": 0, "hit@2": 0}).gates
    assert [gate.metric for gate in gates] == ["first_mean@2", "first_mean@2", "hit@2"]


@pytest.mark.parametrize("name", ["recal", "micro_ndcg", "macro_hit", "", "recall@2", 5])
def test_other_names_are_refused(name):
    """With those that are like it, or all there are."""
    with pytest.raises(
        InvalidInput, match=r"'hit_rate'|did you mean '\w*(recall|ndcg|hit)"
    ) as caught:
        cutoff_curves(evaluated(), [name])
    assert caught.value.argument == "metrics"


def test_metrics_to_be_computed_are_named_without_a_cutoff():
    """``k`` says where to cut off; ``hit`` is a name there too."""
    assert list(evaluated(metrics=["hit", "mrr"]).averages()) == ["hit_rate", "mrr"]
    with pytest.raises(ValueError, match=r"metrics: .* without its cutoff, got 'recall@2'"):
        evaluated(metrics=["recall@2"])


@pytest.mark.parametrize("names", [["recall", "hit"], ["recall@2", "hit@2"], ["macro_recall@2"]])
def test_in_langsmith(names):
    """As its scores are named, where that is the only cutoff."""
    _, summary = retrieval_evaluators(k=2, metrics=names)
    outputs = [{"documents": documents} for documents in PREDICTED]
    reference = [{"documents": documents} for documents in ACTUAL]
    scores = {score["key"]: score["score"] for score in summary([], outputs, reference)}
    assert scores["macro_recall@2"] == pytest.approx(7 / 12)
    assert scores.get("hit_rate@2", 0.0) == 0.0


@pytest.mark.parametrize("k", [5, [1, 2]])
def test_in_langsmith_a_name_cannot_choose_among_cutoffs(k):
    """Every metric is computed at every cutoff."""
    with pytest.raises(ValueError, match=r"metrics: .* without its cutoff"):
        retrieval_evaluators(k=k, metrics=["recall@2"])
