"""Results: their tables and keys, and a file that reads back completely or not at all."""

import copy
import json
import math
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from reference import TableMatcher, no_advice
from results_made import ACTUAL, PREDICTED, evaluated
from trials import trials

from krag_eval import (
    AveragingMethod,
    Conventions,
    EvaluationResult,
    IdMatcher,
    Metric,
    OfflineRetrievalEvaluator,
    __version__,
    load_dataset,
)
from krag_eval.core.scoring.metrics import DEFAULT_METRICS

# As a table shows them.
COLUMNS = [
    "ground_truth", "retrieved", "relevant", "covered", "hit_rate", "success", "precision",
    "recall", "f1", "reciprocal_rank", "average_precision", "ndcg",
]  # fmt: skip


def sample_s(k=(1, 3, None), metrics=None, **options):
    """Return the result of sample S."""
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, **options).evaluate(k, metrics=metrics)


# --- averages --------------------------------------------------------------------------------


def test_the_dictionary_spells_every_average_at_every_cutoff():
    """One spelling, key@k, with ``all`` for no cutoff; Python's floats, never rounded."""
    values = sample_s().to_dict()
    keys = list(sample_s(1).averages())
    assert list(values) == [f"{key}@{k}" for k in ("1", "3", "all") for key in keys]
    assert {type(value) for value in values.values()} == {float}
    assert values["macro_recall@1"] == 1 / 6
    renamed = {name.replace("@", "_at_"): value for name, value in values.items()}
    assert sample_s().to_dict(separator="_at_") == renamed


def test_the_dictionary_is_a_copy():
    """Changing it does not change the result."""
    result = sample_s()
    result.to_dict()["ndcg@1"] = 2.0
    result.averages(1)["ndcg"] = 2.0
    assert result.to_dict()["ndcg@1"] == 0.5
    assert result.averages(1)["ndcg"] == 0.5


@pytest.mark.parametrize(
    ("method", "left_out"), [("micro", "macro_"), ("macro", "micro_"), ("both", "nothing")]
)
def test_the_averaging_method_selects_among_micro_and_macro(method, left_out):
    """The other keys stay."""
    averages = sample_s(1, averaging_method=method).averages()
    every = sample_s(1).averages()
    assert averages == {key: every[key] for key in every if not key.startswith(left_out)}


def test_no_cutoff_among_several_means_the_deepest():
    """All documents, if they were evaluated."""
    assert sample_s().averages() == sample_s().averages("all")
    result = sample_s((1, 3))
    assert result.averages() == result.averages(3) != result.averages(1)
    assert result.per_query().equals(result.per_query(3))
    assert result.evaluated_cutoff() == 3


# --- the per-query table ---------------------------------------------------------------------


def test_the_per_query_table_by_hand():
    """Sample S at 3; query 2 finds doc4 at rank 2 of 3, one of two items.

    F1 2 · 1/3 · 1/2 / (5/6) = 2/5, AP (1/2)/2, nDCG (1/log2(3)) / (1 + 1/log2(3)).
    """
    second = 1 / math.log2(3)
    expected = pd.DataFrame(
        [
            [3, 3, 3, 3, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            [2, 3, 1, 1, 0.0, 1.0, 1 / 3, 1 / 2, 2 / 5, 1 / 2, 1 / 4, second / (1 + second)],
        ],
        columns=COLUMNS,
        index=pd.Index([0, 1], name="query"),
    )
    pd.testing.assert_frame_equal(sample_s().per_query(3), expected, rtol=0, atol=1e-15)


def test_the_per_query_table_is_a_copy_by_label_and_criteria():
    """Partly found is a hit here; counts are those within the cutoff, of Python's whole numbers."""
    result = sample_s(queries=["what?", "왜?"], matching_criteria="partial")
    table = result.per_query(3)
    assert table["hit_rate"].to_dict() == {"what?": 1.0, "왜?": 1.0}
    table.loc["what?", "recall"] = 0.0
    assert result.per_query(3).loc["what?", "recall"] == 1.0
    counts = result.per_query(1)[COLUMNS[:4]]
    assert counts.to_numpy().tolist() == [[3, 1, 1, 1], [2, 1, 0, 0]]
    assert all(np.issubdtype(kind, np.integer) for kind in counts.dtypes)


# --- signature and representations -----------------------------------------------------------


class Half(TableMatcher):
    """Has settings."""

    name = "half"

    def settings(self):
        """Return two settings."""
        return {"strict": True, "depth": 2}


def test_the_signature_pins_everything_in_a_fixed_order():
    """One line; of what is not the default, the values."""
    assert sample_s().signature == (
        "matcher=text | threshold=- | k=1,3,all | criteria=all | averaging=both | "
        "conventions=default | grades=- | no_ground_truth=error | queries=2 | "
        f"krag_eval={__version__}"
    )
    result = evaluated(
        [[{"page_content": "a", "metadata": {"grade": 2}}], []], [["b"], ["b"]],
        Half({("a", "b"): 0.5}), 5, threshold=0.25, averaging_method=AveragingMethod.MICRO,
        matching_criteria="partial", conventions=Conventions(gain="linear", credit="every"),
        no_ground_truth="skip", grade_key="grade",
    )  # fmt: skip
    assert result.signature == (
        "matcher=half(strict=yes,depth=2) | threshold=0.25 | k=5 | criteria=partial | "
        "averaging=micro | conventions=gain=linear,credit=every | grades=grade | "
        f"no_ground_truth=skip(1) | queries=2 | retrieved<=1 | krag_eval={__version__}"
    )


def test_where_one_average_was_asked_for_rows_are_keys():
    """As they are written elsewhere."""
    result = sample_s([1], averaging_method="micro")
    assert ["micro_recall", "0.2000"] in [line.split() for line in repr(result).splitlines()]


def test_representations_do_not_depend_on_pandas_options():
    """A narrow terminal set by the user drops no cutoff and no metric, and rounds nothing."""
    result = sample_s((1, 2, 3, 4, 5, 6))
    whole = repr(result), result._repr_html_()
    few = ("display.max_columns", 2, "display.max_rows", 3, "display.precision", 1)
    with pd.option_context(*few, "display.width", 20):
        assert (repr(result), result._repr_html_()) == whole


def test_the_notebook_representation_escapes_what_users_named():
    """A matcher's or a metric's name is text, not markup."""

    class Odd(IdMatcher):
        """Has a hostile name."""

        name = "<script>alert(1)</script>&"

    mine = Metric("<b>", lambda relevance, k, conventions: np.ones(2), "<b>mine</b>")
    html = sample_s(1, metrics=[mine], matcher=Odd())._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in html
    assert "&lt;b&gt;mine&lt;/b&gt;" in html


def test_results_are_equal_if_their_numbers_and_settings_are():
    """Not if anything differs."""
    assert sample_s() == sample_s()
    assert sample_s() != sample_s(k=(1, 3))
    assert sample_s() != sample_s(matcher="contains")
    assert sample_s() != sample_s(queries=["x", "y"])
    assert sample_s() != sample_s().to_dict()


# --- the file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"averaging_method": "micro"},
        {"matching_criteria": "partial"},
        {"conventions": Conventions.autorag()},
        {"queries": ["what?", "왜?"]},
        {"queries": [7, "\udc80"]},  # half of a character comes out of dirty data
        {"metrics": ["recall", Metric("mine", lambda *_: np.array([0.25, np.nan]), "my_mean")]},
    ],
)
def test_a_saved_result_reads_back_the_same(tmp_path, options):
    """Every table, label and setting, to the last digit, in the place of an older file."""
    result, path = sample_s(**options), str(tmp_path / "result.json")
    sample_s(1).to_json(path)
    result.to_json(path)
    read = EvaluationResult.from_json(path)
    assert read == result
    assert read.to_dict() == result.to_dict()
    assert read.signature == result.signature
    assert repr(read) == repr(result)
    for k in result.k:
        pd.testing.assert_frame_equal(read.per_query(k), result.per_query(k))


@settings(max_examples=trials(50))
@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.lists(st.sampled_from("abcd")))))
def test_any_result_reads_back_the_same(tmp_path_factory, drawn):
    """Queries with nothing retrieved or no ground truth included, skipped or not."""
    drawn.append(({"a"}, ["b", "a"]))
    path = tmp_path_factory.getbasetemp() / "any.json"
    actual, predicted = [sorted(truth) for truth, _ in drawn], [ranked for _, ranked in drawn]
    for rule in ("skip", "zero"):
        evaluator = OfflineRetrievalEvaluator(actual, predicted, no_ground_truth=rule)
        with no_advice():
            result = evaluator.evaluate([1, 2, None])
        result.to_json(path)
        read = EvaluationResult.from_json(path)
        assert read == result
        assert repr(read.to_dict()) == repr(result.to_dict())


def test_the_file_holds_the_averages_as_json_has_them(tmp_path):
    """Under their one spelling and null where undefined, so that a gate needs no package."""
    path = tmp_path / "result.json"
    result = evaluated([["a"]], [["b"]], k=1, queries=["왜?"])
    result.to_json(path)
    content = json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)
    assert content["metrics"].pop("mean_rank@1") is None
    assert content["metrics"].items() <= result.to_dict().items()
    assert content["metrics"]["found_rate@1"] == 0.0
    assert content["signature"] == result.signature
    assert "왜?" in path.read_text("utf-8")


@pytest.mark.parametrize(("of", "name"), [(os, "replace"), (Path, "write_text")])
def test_a_file_that_cannot_be_finished_leaves_the_older_one(tmp_path, monkeypatch, of, name):
    """Whole, and nothing beside it."""
    path = tmp_path / "result.json"
    sample_s().to_json(path)

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(of, name, fail)
    with pytest.raises(OSError, match="no space left"):
        sample_s(1).to_json(path)
    assert EvaluationResult.from_json(path) == sample_s()
    assert os.listdir(tmp_path) == [path.name]


def test_a_saved_file_has_the_usual_permissions(tmp_path, monkeypatch):
    """Those of any file of this process, whose umask other threads rely on at the same time."""
    changed = []
    monkeypatch.setattr(os, "umask", changed.append)
    sample_s().to_json(tmp_path / "result.json")
    (tmp_path / "other").write_text("x")
    assert (tmp_path / "result.json").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert changed == []


def test_a_directory_that_is_not_there_is_named(tmp_path):
    """The path the user gave, not that of a temporary file."""
    path = tmp_path / "missing" / "result.json"
    with pytest.raises(FileNotFoundError, match=r"missing/result\.json"):
        sample_s().to_json(path)


# --- files that are no results ---------------------------------------------------------------


def test_an_average_is_looked_up_by_its_name():
    """Keys of the export, and names of metrics for their means over queries."""
    result = sample_s()
    assert all(result[key] == value for key, value in result.to_dict().items())
    # Three of three and one of two: 3/4; together four of five.
    assert (result["recall@3"], result["micro_recall@3"]) == (0.75, 4 / 5)
    assert result["mrr@all"] == 0.75


def test_what_is_looked_for_under_another_name_is_refused_with_the_one_it_has():
    """Tables of a result, an average, and what evaluates a data set; others as Python does."""
    result = sample_s(1)
    dataset = load_dataset([{"question": "When?", "actual": ["nine"]}])
    for of, name, meant in (
        (result, "to_df", "per_query()"),
        (result, "to_csv", "per_query().to_csv(path)"),
        (result, "recall", 'result["recall@1"]'),
        (result, "mrr", 'result["mrr@1"]'),
        (dataset, "evaluate", "evaluator(…).evaluate(k)"),
    ):
        with pytest.raises(AttributeError) as info:
            getattr(of, name)
        assert info.value.name == name
        assert meant in str(info.value)
    assert not hasattr(result, "nothing")
    assert copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == result


def test_one_metric_is_a_text():
    """It need not be in a list."""
    assert sample_s(1, metrics="mrr").to_dict() == {"mrr@1": 0.5}


# --- hit rate and success ---------------------------------------------------------------------


def test_success_stands_beside_a_hit_rate_that_asks_for_everything():
    """Sample S at 1: one query of two finds something, none everything. Found rate is no row."""
    table = sample_s((1,)).to_markdown("en")
    assert "| hit_rate (all found) | 0.0000 |  |\n| success (any found) | 0.5000 |  |\n" in table
    assert "found_rate" not in table
    assert sample_s((1,))["found_rate@1"] == 0.5


@pytest.mark.parametrize(
    ("actual", "criteria", "name"),
    [(ACTUAL, "partial", "hit_rate (any found)"), ([["doc1"], ["doc4"]], "all",
                                                   "hit_rate (all found)")],
)  # fmt: skip
def test_success_is_left_out_where_it_is_the_hit_rate(actual, criteria, name):
    """Where any item is enough, or no query has several; files and dictionaries have it."""
    evaluator = OfflineRetrievalEvaluator(actual, PREDICTED, matching_criteria=criteria)
    result = evaluator.evaluate(2)
    assert (result.row_names("en")["hit_rate"], result.criteria) == (name, criteria)
    assert {"success", "found_rate"}.isdisjoint(result.shown)
    assert result["success@2"] == result["hit_rate@2"] == 1.0


def test_the_data_set_decides_whether_success_is_shown():
    """Not what was found: here both are 0, and 1."""
    for predicted, value in (([["x"]], 0.0), ([["a", "b"]], 1.0)):
        with no_advice():
            result = OfflineRetrievalEvaluator([["a", "b"]], predicted).evaluate(2)
        assert (result["success@2"], result["hit_rate@2"]) == (value, value)
        assert "success" in result.shown


def test_metrics_that_were_named_are_all_shown():
    """Although they say the same."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]])
    shown = evaluator.evaluate(1, metrics=["hit_rate", "success", "rank"]).shown
    assert shown == ("hit_rate", "success", "mean_rank", "found_rate")


def test_a_result_without_success_shows_the_found_rate():
    """As one that was saved before success was computed by default."""
    result = OfflineRetrievalEvaluator(ACTUAL, PREDICTED).evaluate(2, metrics=DEFAULT_METRICS)
    assert result.shown[-1] == "found_rate"


def test_a_success_of_one_s_own_is_not_taken_for_ours():
    """It keeps its name and its row."""
    mine = Metric("success", lambda found, k, _: found.n_retrieved / 10, "success")
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]])
    result = evaluator.evaluate(1, metrics=[*DEFAULT_METRICS, mine])
    assert "success" in result.shown
    assert result.row_names("en")["success"] == "success"
