"""Every registry entry: what it declares is obeyed wherever averages are read."""

import json
import math
import pickle

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib import pyplot
from places import TESTS
from results_made import read_back

from krag_eval import METRICS, Metric, OfflineRetrievalEvaluator, compare, evaluate_file
from krag_eval.cli import main
from krag_eval.core import averages_of
from krag_eval.core.scoring.metrics import chosen_metrics, metrics_for
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.partitions import PartitionPlan
from krag_eval.plotting import comparison_forest, cutoff_curves, metric_bars, metric_name

PARTS = {"a": "one", "b": "one", "c": "two", "d": "one", "e": ["one", "two"], "f": "three"}
ACTUAL = [
    [{"page_content": text, "metadata": {"part": PARTS[text]}} for text in texts]
    for texts in ("abc", "d", "ef")
] * 12
BETTER = [["a", "x", "y", "b"], ["d"], ["x", "f", "e"]] * 12
WORSE = [["x", "y", "a", "b"], ["x", "d"], ["x", "y", "z"]] * 12
JUDGED = [["x"], ["x"], ["x", "y"]] * 12
UNWANTED = [["x", "z"], ["y"], None] * 12
CITED = [["a", "q"], None, ["f", "e", "z"]] * 12
OPTIONS = {"matcher": "coverage", "aspect_key": "part"}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(few|Fewer|same value)"),
    pytest.mark.usefixtures("closed_pictures"),
]


@pytest.fixture
def closed_pictures():
    """Close the pictures that were drawn."""
    yield
    pyplot.close("all")


def evaluated(predicted=BETTER, metrics=None):
    """Evaluate at two cutoffs."""
    lists = {"judged": JUDGED, "unwanted": UNWANTED, "cited": CITED}
    evaluator = OfflineRetrievalEvaluator(ACTUAL, predicted, **lists, **OPTIONS)
    return evaluator.evaluate([2, 4], metrics=metrics)


def cost(relevance, k, conventions):
    """Cost 30 a document; where nothing is relevant, it is undefined."""
    paid = relevance.retrieved_within(k) * 30.0
    return np.where(relevance.relevant_within(k) > 0, paid, np.nan)


OWN = Metric(
    "cost",
    cost,
    "mean_cost",
    labels={"en": "Cost", "ko": "비용"},
    range=(0, math.inf),
    lower_is_better=True,
    defined_key="paid",
    defined_labels={"en": "Paid", "ko": "지불"},
)
# Every entry of the registry, with other settings too, and a metric of one's own.
ALL = [*METRICS, "rbp(p=0.5)", OWN]


@pytest.fixture(scope="module")
def result():
    """A result with all of them."""
    return evaluated(metrics=ALL)


def test_floors_are_held_against_the_range(result):
    """80 is refused for every score from 0 to 1, and what lies below the range for any."""
    for key, value in result.averages(4).items():
        average = result.definitions[key]
        low, high = average.range
        for floor in (low - 1, 80.0):
            if low <= floor <= high:
                assert result.check({f"{key}@4": floor}).gates
            else:
                with pytest.raises(InvalidInput, match=r"from|least") as caught:
                    result.check({f"{key}@4": floor})
                assert caught.value.argument == "floors"
        (gate,) = result.check({f"{key}@4": value}).gates
        assert gate.passed, key
        assert ("floor" in gate.reason) is not average.lower_is_better, key


def test_saving_and_reading_keep_everything(result, tmp_path):
    """Averages, ranges, directions and labels; another session does not know the metrics."""
    read = read_back(result, tmp_path)
    assert read == result
    assert read.definitions == result.definitions
    assert pickle.loads(pickle.dumps(result)) == result
    read.to_json(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "result.json").read_bytes()


def test_comparing_follows_the_direction(result):
    """In the comparison, in its picture and in a gate against a baseline."""
    results = {"worse": evaluated(WORSE, ALL), "better": result}
    keys = list(result.averages(2))
    comparison = compare(results, [f"{key}@2" for key in keys], n_resamples=100)
    for row, key in zip(comparison.differences, keys, strict=True):
        lower = result.definitions[key].lower_is_better
        gain = row.value_a - row.value_b if lower else row.value_b - row.value_a
        assert row.better == ("better" if gain > 0 else "worse" if gain < 0 else None), key
        low, high = result.definitions[key].range
        options = {"max_drop": min(high - low, 1000.0), "n_resamples": 100}
        report = results["worse"].check(baseline=result, metric=f"{key}@2", **options)
        # Any drop is allowed, but not that fewer queries have a value, as with the lists above.
        assert report.passed is not (row.share_a < row.share_b), key
    one = compare(results, "cost@2", n_resamples=100)
    assert "average" not in one.table.columns
    assert comparison_forest(one).get_title(loc="left")


def test_intervals_hold_the_value(result):
    """Every average of every metric has one, in its range."""
    table = result.confidence_intervals(n_resamples=200)
    assert list(table.index) == list(result.to_dict())
    for average, row in table.iterrows():
        low, high = result.definitions[average.partition("@")[0]].range
        assert low <= row["low"] <= row["high"] <= high, average


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("alone", [True, False])  # beside success the found rate says nothing new
def test_pictures_and_reports_have_the_label(alone, language, tmp_path):
    """In both languages, whatever was said of the metric where it was declared."""
    result = evaluated(metrics=["rank"] if alone else [one for one in ALL if one != "rank"])
    result.report(tmp_path / "page.html", language=language, intervals=False, n_queries=0)
    page = (tmp_path / "page.html").read_text("utf-8")
    for key in result.averages(4):
        label = result.definitions[key].label(language)
        assert label != key or key in ("f1", "bpref")
        assert label in page, key
        assert metric_name(key, language, result) == label
        assert cutoff_curves(result, key, language=language).lines[0].get_label().startswith(label)
        pyplot.close("all")
    assert metric_bars(result, 4, language=language).get_title(loc="left")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_row_files_hold_every_metric(result, ending, tmp_path):
    """Streamed, the averages and rows are those of the run in memory."""
    path = tmp_path / "run.jsonl"
    names = ("actual", "predicted", "judged", "unwanted", "cited")
    rows = zip(ACTUAL, BETTER, JUDGED, UNWANTED, CITED, strict=True)
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    streamed = evaluate_file(
        path, [2, 4], metrics=ALL, per_query=tmp_path / f"rows.{ending}", chunk_size=5, **OPTIONS
    )
    assert streamed.to_dict() == result.to_dict()
    assert list(streamed.rows.digests) == list(result.rows.digests)
    assert streamed.rows.unwanted == result.rows.unwanted
    for name in result.keys:
        assert np.array_equal(streamed.tables[4][name], result.tables[4][name], equal_nan=True)
    read = read_back(streamed, tmp_path)
    assert read.definitions == result.definitions
    assert read.tables[2].keys() == streamed.tables[2].keys()


def test_parts_add_up_to_the_whole(result):
    """As they do on a cluster; the plan can be pickled."""
    asked = {"metrics": ALL, "lists": ["unwanted", "cited"], **OPTIONS}
    plan = pickle.loads(pickle.dumps(PartitionPlan.of([2, 4], **asked)))
    lists = {"judged": JUDGED, "unwanted": UNWANTED, "cited": CITED}
    halves = [{name: one[i::2] for name, one in lists.items()} for i in range(2)]
    parts = [
        plan.evaluate(ACTUAL[i::2], BETTER[i::2], **half).partial for i, half in enumerate(halves)
    ]
    again = [type(one).from_json(one.to_json()) for one in parts]
    assert plan.result(again).to_dict() == result.to_dict()


# --- names with parameters -------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["rbp", "rbp(p=0.8)", "rbp(p=0.80)", "rbp( p = .8 )", "rbp()"])
def test_a_metric_has_one_canonical_name(typed):
    """However it is typed, so it is stored, printed, gated on and read back."""
    result = evaluated(metrics=[typed])
    assert list(result.averages(2)) == ["rbp(p=0.8)"]
    (gate,) = result.check([f"{typed}@2=0.1"]).gates
    assert gate.metric == "rbp(p=0.8)@2"
    fuzzy = OfflineRetrievalEvaluator([["a"]], [["a"]], "fuzzy").evaluate(2)
    table = fuzzy.metrics_at_thresholds([f"{typed}@2"], [0.5])
    assert list(table.columns) == [gate.metric]


def test_several_settings_of_one_metric_can_be_computed_together():
    """Each with its own name, column and average; without being named they are in no table."""
    result = evaluated(metrics=["rbp(p=0.5)", "rbp", "rbp(p=0.95)"])
    assert list(result.averages(4)) == ["rbp(p=0.5)", "rbp(p=0.8)", "rbp(p=0.95)"]
    assert len(set(result.averages(4).values())) == 3
    assert not {"rbp(p=0.8)", "r_precision"} & evaluated().averages(2).keys()


# --- the metrics that are computed when named ------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        # Relevant at 1, 4 and 7: 0.2 (1 + .8**3 + .8**6); at p = 0.5, 73/128, and 9/16 within 4.
        ("rbp", {"rbp(p=0.8)@all": 0.3548288}),
        ("rbp(p=0.5)", {"rbp(p=0.5)@all": 73 / 128, "rbp(p=0.5)@4": 9 / 16}),
        # Of three items two are within the first four, but only one within the first three.
        ("r_precision", {"r_precision@1": 1 / 3, "r_precision@all": 1 / 3}),
    ],
)
def test_metrics_on_request_by_hand(metric, values):
    """Where the formulas are short enough."""
    evaluator = OfflineRetrievalEvaluator([["a", "b", "c"]], [["a", "x", "y", "b", "z", "v", "c"]])
    found = evaluator.evaluate([None, 4, 1], metrics=[metric]).to_dict()
    assert {name: found[name] for name in values} == pytest.approx(values, abs=1e-15)


@pytest.mark.parametrize("criteria", ["all", "partial"])
def test_success_is_any_item_whatever_the_criteria(criteria):
    """One of two items is found at 2 for the first query, none for the second."""
    evaluator = OfflineRetrievalEvaluator(
        [["a", "b"], ["c"]], [["x", "a"], ["y"]], matching_criteria=criteria
    )
    assert evaluator.evaluate([1, 2], metrics=["success"]).to_dict() == {
        "success@1": 0.0,
        "success@2": 0.5,
    }


# --- metrics of one's own --------------------------------------------------------------------


def test_a_name_of_a_metric_on_request_may_be_taken(tmp_path):
    """As in the documentation of 0.1.0; its range is not known, then, and it stays what it is."""
    mine = Metric("success", lambda found, k, _: found.n_retrieved * 30.0, "success")
    result = evaluated(metrics=[mine, "recall"])
    assert result.check({"success@2": 80})
    fuzzy = OfflineRetrievalEvaluator([["a"]], [["a"]], "fuzzy").evaluate(2, metrics=[mine, "mrr"])
    assert list(fuzzy.metrics_at_thresholds(thresholds=[0.5]).columns) == ["mrr@2"]
    read = read_back(result, tmp_path)
    assert read.definitions["success"].range is None
    assert "declared" not in (tmp_path / "result.json").read_text("utf-8")


def test_of_the_default_metrics_success_alone_is_declared(tmp_path):
    """In 0.1.0 it could be a metric of one's own; the others need no word in a file."""
    result = OfflineRetrievalEvaluator(ACTUAL, BETTER).evaluate([2, 4])
    result.to_json(tmp_path / "result.json")
    declared = json.loads((tmp_path / "result.json").read_text("utf-8"))["declared"]
    assert list(declared) == ["success"]
    assert declared["success"]["range"] == [0, 1]


def test_micro_averages_of_ones_own(tmp_path):
    """A ratio of counts, 1 - precision: declared like those of the registry."""
    found = Metric(
        "density", METRICS["precision"].compute, "macro_density",
        labels={"en": "Density"}, range=(0, 1), micro=(("relevant", "retrieved"),),
    )  # fmt: skip
    result = evaluated(metrics=[found, "precision"])
    averages = result.averages(4)
    assert averages["micro_density"] == averages["micro_precision"]
    assert metric_name("micro_density", "en", result) == "Micro density"
    assert read_back(result, tmp_path).averages(4) == averages


def test_no_average_has_two_metrics():
    """Keys of the registry are all different."""
    keys = [
        average.key for metric in METRICS.values() for average in averages_of([metric]).values()
    ]
    assert len(keys) == len(set(keys))
    assert set(chosen_metrics(METRICS, metrics_for("all"))) == {
        metric.at().name for metric in METRICS.values()
    }


def test_an_installed_package_adds_a_metric_by_name(tmp_path, monkeypatch):
    """In Python and in the shell, beside the built-in ones; what is none is refused."""
    monkeypatch.syspath_prepend(TESTS / "example_plugin")
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a", "x"]])
    result = evaluator.evaluate(5, metrics=["shortness"])
    assert result["shortness@5"] == result["mean_shortness@5"] == 1 / 3
    path = tmp_path / "run.jsonl"
    path.write_text('{"question": "q", "actual": ["a"], "predicted": ["a", "x"]}\n')
    done = CliRunner().invoke(main, ["evaluate", str(path), "--metric", "shortness@5"])
    assert "mean_shortness   0.3333" in done.output, done.output
    with pytest.raises(InvalidType, match="metrics"):
        evaluator.evaluate(5, metrics=["no_metric"])
