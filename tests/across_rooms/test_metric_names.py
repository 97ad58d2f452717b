"""The name of a metric in place of an average means its mean over queries, everywhere.

Sample S of docs/conventions.md at k = 2, worked there by hand: macro recall 7/12, macro
precision 3/4, macro F1 0.65625, hit rate 0 (all of the ground truth) or 1 (any of it).
"""

import pytest
from matplotlib import pyplot
from results_made import ACTUAL, PREDICTED

from krag_eval import METRICS, Metric, OfflineRetrievalEvaluator, compare
from krag_eval.core import resolved_average
from krag_eval.errors import InvalidInput
from krag_eval.integrations.langsmith import retrieval_evaluators
from krag_eval.partitions import PartitionPlan
from krag_eval.plotting import cutoff_curves, metric_distribution, threshold_curves

STANDS_FOR = {
    "recall": "macro_recall", "precision": "macro_precision", "f1": "macro_f1", "hit": "hit_rate",
    "hit_rate": "hit_rate", "reciprocal_rank": "mrr", "average_precision": "map",
    "rank": "mean_rank", "mrr": "mrr", "map": "map", "mean_rank": "mean_rank", "ndcg": "ndcg",
    "micro_recall": "micro_recall",
}  # fmt: skip
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
    """Named by the average in the table, found again by either name, and not corrected twice."""
    pair = {"a": evaluated(), "b": evaluated()}
    comparison = compare(pair, [f"{name}@2", f"{average}@2"], n_resamples=100)
    assert comparison.metrics == [f"{average}@2"]
    assert comparison.changed(f"{name}@2").empty
    (gate,) = evaluated().check(baseline=pair["a"], metric=f"{name}@2", n_resamples=100).gates
    assert gate.metric == f"{average}@2"


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
    for drawn in (table, result):
        assert threshold_curves(drawn, metrics=[f"{name}@2"]).lines
    assert cutoff_curves(result, name).lines
    if name == "hit":  # in a distribution over queries it is the column itself
        titles = {metric_distribution(result, f"{n}@2").get_title() for n in (name, average)}
        assert len(titles) == 1


def test_a_metric_of_ones_own_by_either_name():
    """An average with the name of ours is found first."""
    first = Metric("first", METRICS["precision"].compute, "first_mean")
    result = evaluated(metrics=[first, "recall", Metric("h", METRICS["f1"].compute, "hit")])
    gates = result.check({"first@2": 0, "first_mean@2": 0, "hit@2": 0}).gates
    assert [gate.metric for gate in gates] == ["first_mean@2", "first_mean@2", "hit@2"]


def test_metrics_to_be_computed_are_named_alike():
    """``hit`` is a name there too; where only macro averages are computed, the name is theirs."""
    assert list(evaluated(metrics=["hit", "mrr"]).averages()) == ["hit_rate", "mrr"]
    assert evaluated(averaging_method="macro").check({"recall@2": 0.5})


@pytest.mark.parametrize(
    ("metrics", "given", "cutoffs"),
    [
        (["recall@5"], {}, (5,)),
        ("mrr@all", {}, (None,)),
        (["macro_recall@5", "micro_f1@2", "found_rate@5"], {}, (5, 2)),
        (["recall@5", "mrr"], {}, (1, 3, 5, 10)),
        (["recall@5", "mrr@2"], {"k": [2, 1]}, (2, 1, 5)),
        (["recall@5", "mrr@40w"], {"budget": 20}, ("20w", 5, "40w")),
    ],
)
def test_metrics_to_be_computed_bring_their_cutoffs(metrics, given, cutoffs):
    """They stand alone where nothing else asks for some."""
    evaluator = OfflineRetrievalEvaluator(ACTUAL, PREDICTED)
    result = evaluator.evaluate(metrics=metrics, **given)
    bare = [one.partition("@")[0] for one in ([metrics] if isinstance(metrics, str) else metrics)]
    assert result == evaluator.evaluate(cutoffs, metrics=bare)


@pytest.mark.parametrize("name", ["recal@5", "recall@", "@5", "recall@0", "micro_ndcg@5"])
def test_a_wrong_name_with_a_cutoff_is_refused(name):
    """As it is without one."""
    with pytest.raises(InvalidInput) as caught:
        PartitionPlan.of(metrics=[name])
    assert caught.value.argument == "metrics"


@pytest.mark.parametrize("names", [["recall", "hit"], ["recall@2", "hit@2"], ["macro_recall@2"]])
def test_in_langsmith(names):
    """As its scores are named, or as they are not."""
    _, summary = retrieval_evaluators(k=2, metrics=names)
    outputs = [{"documents": documents} for documents in PREDICTED]
    reference = [{"documents": documents} for documents in ACTUAL]
    scores = {score["key"]: score["score"] for score in summary([], outputs, reference)}
    assert scores["macro_recall@2"] == pytest.approx(7 / 12)
    assert scores.get("hit_rate@2", 0.0) == 0.0
