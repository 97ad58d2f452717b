"""Results: their tables and keys, and a file that reads back completely or not at all."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from reference import TableMatcher, no_advice

from krag_eval import (
    AveragingMethod,
    Conventions,
    EvaluationResult,
    IdMatcher,
    MatchingCriteria,
    Metric,
    OfflineRetrievalEvaluator,
    __version__,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.scoring.metrics import DEFAULT_METRICS

ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]

KEYS = [
    "hit_rate",
    "success",
    "micro_precision",
    "macro_precision",
    "micro_recall",
    "macro_recall",
    "micro_f1",
    "macro_f1",
    "mrr",
    "map",
    "ndcg",
    "mean_rank",
    "found_rate",
]
# As a table shows them.
ROWS = ["hit_rate", "success", "precision", "recall", "f1", "mrr", "map", "ndcg", "mean_rank"]
COLUMNS = [
    "ground_truth",
    "retrieved",
    "relevant",
    "covered",
    "hit_rate",
    "success",
    "precision",
    "recall",
    "f1",
    "reciprocal_rank",
    "average_precision",
    "ndcg",
]


def sample_s(k=(1, 3, None), metrics=None, **options):
    """Return the result of sample S."""
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, **options).evaluate(k, metrics=metrics)


# --- averages --------------------------------------------------------------------------------


def test_the_dictionary_spells_every_average_at_every_cutoff():
    """One spelling, everywhere: key@k, with ``all`` for no cutoff, in the order asked for."""
    assert list(sample_s().to_dict()) == [f"{key}@{k}" for k in ("1", "3", "all") for key in KEYS]


def test_the_separator_of_names_can_be_chosen():
    """For tools that refuse the @; the numbers are the same."""
    result = sample_s()
    renamed = {name.replace("@", "_at_"): value for name, value in result.to_dict().items()}
    assert result.to_dict(separator="_at_") == renamed
    assert "mrr_at_all" in renamed


@pytest.mark.parametrize("separator", ["", None, 1])
def test_names_and_cutoffs_need_a_separator(separator):
    """Without one, mrr5 could be a metric of its own."""
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        sample_s().to_dict(separator=separator)
    assert caught.value.argument == "separator"


def test_the_dictionary_holds_python_floats():
    """Never numpy's, never rounded: 1/6 is all there."""
    values = sample_s().to_dict()
    assert {type(value) for value in values.values()} == {float}
    assert values["macro_recall@1"] == 1 / 6


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
    assert list(averages) == [key for key in KEYS if not key.startswith(left_out)]


def test_the_table_of_metrics_has_a_row_per_cutoff():
    """And a column per key."""
    table = sample_s().metrics
    assert table.index.tolist() == [1, 3, "all"]
    assert table.index.name == "k"
    assert table.columns.tolist() == KEYS
    assert table.loc[1, "mrr"] == 0.5
    assert table.loc["all", "mrr"] == 0.75


def test_averages_at_one_cutoff():
    """The same numbers, by key alone."""
    assert sample_s().averages(3)["mrr"] == 0.75


def test_the_only_cutoff_need_not_be_named():
    """It is plain which one is meant."""
    assert sample_s(1).averages() == sample_s(1).averages(1)


def test_no_cutoff_among_several_means_the_deepest():
    """All documents, if they were evaluated."""
    assert sample_s().averages() == sample_s().averages("all")
    result = sample_s((1, 3))
    assert result.averages() == result.averages(3) != result.averages(1)
    assert result.per_query().equals(result.per_query(3))
    assert result.evaluated_cutoff() == 3


@pytest.mark.parametrize(
    ("evaluated", "asked", "said"), [((1, 3), 2, "2"), ((1, 3), "all", "all"), ((1,), 3, "3")]
)
@pytest.mark.parametrize("method", ["averages", "per_query", "evaluated_cutoff"])
def test_a_cutoff_that_was_not_evaluated_is_refused(method, evaluated, asked, said):
    """The message lists those that were."""
    listed = ", ".join(map(str, evaluated))
    with pytest.raises(InvalidInput) as caught:
        getattr(sample_s(evaluated), method)(asked)
    assert caught.value.argument == "k"
    assert f"({listed}), got {said}" in caught.value.problem


def test_all_documents_asked_for_by_name_is_not_another_cutoff():
    """Whoever writes ``"all"`` must not be given the numbers at 1."""
    with pytest.raises(ValueError, match="k must be one of the evaluated cutoffs"):
        sample_s(1).per_query("all")


@pytest.mark.parametrize("k", [0, 1.0, True])
def test_something_that_is_no_cutoff_is_refused(k):
    """As everywhere."""
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        sample_s().per_query(k)


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


def test_counts_in_the_per_query_table_are_within_the_cutoff():
    """At 1: one document each, of which one is relevant."""
    table = sample_s().per_query(1)
    assert table["retrieved"].tolist() == [1, 1]
    assert table["relevant"].tolist() == [1, 0]
    assert table["covered"].tolist() == [1, 0]
    assert table["ground_truth"].tolist() == [3, 2]
    assert all(np.issubdtype(table[name].dtype, np.integer) for name in COLUMNS[:4])


def test_labels_index_the_per_query_table():
    """Whatever they are."""
    table = sample_s(queries=["what?", "왜?"]).per_query(1)
    assert table.index.tolist() == ["what?", "왜?"]


def test_partial_hits_are_in_the_table():
    """The column follows the criteria: query 2 has one of two."""
    result = sample_s(matching_criteria=MatchingCriteria.PARTIAL)
    assert result.per_query(3)["hit_rate"].tolist() == [1.0, 1.0]


def test_the_per_query_table_is_a_copy():
    """Changing it does not change the result."""
    result = sample_s()
    table = result.per_query(3)
    table.loc[0, "recall"] = 0.0
    assert result.per_query(3).loc[0, "recall"] == 1.0


def test_the_means_of_the_per_query_table_are_the_averages():
    """So a reader can check them."""
    result = sample_s()
    means = result.per_query(3).mean()
    averages = result.averages(3)
    for column, key in [
        ("hit_rate", "hit_rate"),
        ("precision", "macro_precision"),
        ("recall", "macro_recall"),
        ("reciprocal_rank", "mrr"),
        ("average_precision", "map"),
        ("ndcg", "ndcg"),
    ]:
        assert averages[key] == pytest.approx(means[column], abs=1e-15), key


# --- signature and representations -----------------------------------------------------------


def test_the_signature_pins_everything_in_a_fixed_order():
    """One line."""
    assert sample_s().signature == (
        "matcher=text | threshold=- | k=1,3,all | criteria=all | averaging=both | "
        "conventions=default | grades=- | no_ground_truth=error | queries=2 | "
        f"krag_eval={__version__}"
    )


def test_the_signature_says_what_is_not_the_default():
    """A matcher's settings, the threshold, criteria, averaging, conventions and grades."""

    class Half(TableMatcher):
        """Has a setting."""

        name = "half"

        def settings(self):
            """Return two settings."""
            return {"strict": True, "depth": 2}

    evaluator = OfflineRetrievalEvaluator(
        [[{"page_content": "a", "metadata": {"grade": 2}}], []],
        [["b"], ["b"]],
        Half({("a", "b"): 0.5}),
        threshold=0.25,
        averaging_method=AveragingMethod.MICRO,
        matching_criteria="partial",
        conventions=Conventions(gain="linear", credit="every"),
        no_ground_truth="skip",
        grade_key="grade",
    )
    assert evaluator.evaluate(5).signature == (
        "matcher=half(strict=yes,depth=2) | threshold=0.25 | k=5 | criteria=partial | "
        "averaging=micro | conventions=gain=linear,credit=every | grades=grade | "
        f"no_ground_truth=skip(1) | queries=2 | retrieved<=1 | krag_eval={__version__}"
    )


def test_the_representation_is_a_table_with_its_signature():
    """Metrics as rows, cutoffs as columns, micro beside macro, four digits."""
    lines = repr(sample_s((1, 3))).splitlines()
    assert lines[0] == "EvaluationResult of 2 queries"
    assert lines[1].split() == ["@1", "@1", "@3", "@3"]
    assert lines[2].split() == ["metric", *["macro", "micro"] * 2]
    assert [line.split()[0] for line in lines[3:-1]] == ROWS
    assert lines[3].split() == ["hit_rate", "(all", "found)", "0.0000", "0.5000"]
    assert lines[4].split() == ["success", "(any", "found)", "0.5000", "1.0000"]
    assert lines[6].split() == ["recall", "0.1667", "0.2000", "0.7500", "0.8000"]
    assert lines[-1] == sample_s((1, 3)).signature


def test_where_one_average_was_asked_for_rows_are_keys():
    """As they are written elsewhere."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]], averaging_method="micro").evaluate([1])
    assert "\nmicro_recall          1.0000\n" in repr(result)


def test_the_notebook_representation_is_a_table_with_its_signature():
    """In HTML."""
    html = sample_s((1, 3))._repr_html_()
    assert html.count("<tr") == 1 + len(ROWS)  # the header, and a row per metric
    assert "<td>recall</td>" in html
    assert "matcher=text | threshold=-" in html


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


def test_representations_do_not_depend_on_pandas_options():
    """A narrow terminal set by the user drops no cutoff and no metric."""
    result = sample_s((1, 2, 3, 4, 5, 6))
    whole = repr(result), result._repr_html_()
    with pd.option_context(
        "display.max_columns", 2, "display.max_rows", 3, "display.precision", 1, "display.width", 20
    ):
        assert (repr(result), result._repr_html_()) == whole


def test_results_are_equal_if_their_numbers_and_settings_are():
    """Not if anything differs."""
    assert sample_s() == sample_s()
    assert sample_s() != sample_s(k=(1, 3))
    assert sample_s() != sample_s(matcher="contains")
    assert sample_s() != sample_s(queries=["x", "y"])
    assert sample_s() != sample_s().to_dict()


# --- the file --------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    """Return the path of a saved result of sample S."""
    path = tmp_path / "result.json"
    sample_s(queries=["what?", "왜?"]).to_json(path)
    return path


OPTIONS = [
    {},
    {"averaging_method": "micro"},
    {"matching_criteria": "partial"},
    {"conventions": Conventions.autorag()},
    {"queries": ["what?", "왜?"]},
    {"queries": [7, "x"]},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_saved_result_reads_back_the_same(tmp_path, options):
    """Every table, label and setting, to the last digit; and so do its averages."""
    result = sample_s(**options)
    result.to_json(tmp_path / "result.json")
    read = EvaluationResult.from_json(tmp_path / "result.json")
    assert read == result
    assert read.to_dict() == result.to_dict()
    assert read.signature == result.signature
    assert repr(read) == repr(result)
    for k in result.k:
        pd.testing.assert_frame_equal(read.per_query(k), result.per_query(k))


@settings(max_examples=50, deadline=None)
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


def test_a_metric_of_one_s_own_reads_back(tmp_path):
    """Undefined values included: NaN is null in the file, and is left out of the mean."""
    mine = Metric("mine", lambda relevance, k, conventions: np.array([0.25, np.nan]), "my_mean")
    result = sample_s(1, metrics=["recall", mine])
    result.to_json(tmp_path / "result.json")
    read = EvaluationResult.from_json(tmp_path / "result.json")
    assert read == result
    assert read.averages()["my_mean"] == 0.25


def test_the_file_is_json_with_null_for_what_is_undefined(tmp_path):
    """Any JSON reader can use it: there is no NaN in it."""
    path = tmp_path / "result.json"
    with no_advice():
        OfflineRetrievalEvaluator([["a"]], [["b"]], queries=["왜?"]).evaluate(1).to_json(path)

    def refuse(constant):
        raise AssertionError(constant)

    content = json.loads(path.read_text("utf-8"), parse_constant=refuse)
    assert content["metrics"]["mean_rank@1"] is None
    assert content["metrics"]["found_rate@1"] == 0.0
    assert "왜?" in path.read_text("utf-8")


def test_the_file_holds_the_averages_under_their_one_spelling(saved):
    """So a gate can read them without this package."""
    content = json.loads(saved.read_text("utf-8"))
    assert content["metrics"] == sample_s().to_dict()
    assert content["signature"] == sample_s().signature


def test_a_label_that_is_no_valid_unicode_can_be_saved(tmp_path):
    """Such labels come out of dirty data, and an evaluation must not be lost over one."""
    path = tmp_path / "result.json"
    result = OfflineRetrievalEvaluator([["a"]], [["a"]], queries=["\udc80"]).evaluate(1)
    result.to_json(path)
    assert EvaluationResult.from_json(path) == result


def test_a_path_may_be_text(tmp_path):
    """As well as a Path."""
    sample_s().to_json(str(tmp_path / "result.json"))
    assert EvaluationResult.from_json(str(tmp_path / "result.json")) == sample_s()


def test_saving_replaces_an_older_file(saved):
    """Whole."""
    sample_s(1).to_json(saved)
    assert EvaluationResult.from_json(saved) == sample_s(1)


@pytest.mark.parametrize("failing", ["replace", "write"])
def test_a_file_that_cannot_be_finished_leaves_the_older_one(saved, monkeypatch, failing):
    """Whole, and nothing beside it."""
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    if failing == "replace":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="no space left"):
        sample_s(1).to_json(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_saving_leaves_the_process_s_umask_alone(tmp_path, monkeypatch):
    """Other threads create files at the same time."""
    changed = []
    monkeypatch.setattr(os, "umask", changed.append)
    sample_s().to_json(tmp_path / "result.json")
    assert changed == []


def test_a_saved_file_has_the_usual_permissions(tmp_path):
    """Those of any file this process creates, not those of a temporary one."""
    sample_s().to_json(tmp_path / "result.json")
    (tmp_path / "other").write_text("x")
    assert (tmp_path / "result.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_directory_that_is_not_there_is_named(tmp_path):
    """The path the user gave, not that of a temporary file."""
    path = tmp_path / "missing" / "result.json"
    with pytest.raises(FileNotFoundError, match=r"missing/result\.json"):
        sample_s().to_json(path)


# --- files that are no results ---------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path):
    """Python's own error names it."""
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        EvaluationResult.from_json(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG\r\n\x1a\n\x00\xff",
        b"{",
        b"[" * 100_000,
        b"[]",
        b"null",
        b"{}",
        b'{"format": "other"}',
        b'{"metrics": {"ndcg@5": 0.5}}',
    ],
)
def test_another_file_is_refused_by_name(tmp_path, content):
    """Empty, binary, cut off, deeply nested, or of another kind."""
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"other\.json: not a saved krag_eval result") as refused:
        EvaluationResult.from_json(path)
    assert "to_json" in refused.value.fix


def damage(path, change):
    """Change the content of a saved result."""
    content = json.loads(path.read_text("utf-8"))
    changed = change(content)
    path.write_text(json.dumps(content if changed is None else changed), "utf-8")


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_another_format_version_is_refused(saved, version):
    """The message says which came and which is read."""
    damage(saved, lambda content: content.update(format_version=version))
    with pytest.raises(
        ValueError, match=rf"result\.json: saved in format {version!r}, .* reads format 1; a newer"
    ):
        EvaluationResult.from_json(saved)


@pytest.mark.parametrize("size", [0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(saved, size):
    """Wherever it was cut."""
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * size)])
    with pytest.raises(ValueError, match=r"result\.json: not a saved krag_eval result"):
        EvaluationResult.from_json(saved)


PARTS = [
    "settings",
    "averaging_method",
    "conventions",
    "metrics",
    "keys",
    "queries",
    "counted",
    "per_query",
]


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_part_is_damage(saved, part):
    """The message names the file."""
    damage(saved, lambda content: content.pop(part) and None)
    with pytest.raises(ValueError, match=r"result\.json: the saved result is damaged"):
        EvaluationResult.from_json(saved)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("instead", [None, 5, "ab", [], {}])
def test_a_part_of_another_kind_is_damage(saved, part, instead):
    """Whatever came instead."""
    damage(saved, lambda content: content.update({part: instead}))
    with pytest.raises(ValueError, match=r"result\.json: the saved result is damaged"):
        EvaluationResult.from_json(saved)


@pytest.mark.parametrize("column", [*COLUMNS, "precision_base", "rank"])
def test_a_missing_column_is_damage(saved, column):
    """Every column is shown in a table or needed for an average."""
    damage(saved, lambda content: content["per_query"]["3"].pop(column) and None)
    with pytest.raises(ValueError, match=r"result\.json: the saved result is damaged"):
        EvaluationResult.from_json(saved)


def set_at(*path_and_value):
    """Return a change that sets one place of the content."""
    *path, last, value = path_and_value

    def change(content):
        for step in path:
            content = content[step]
        content[last] = value

    return change


CHANGES = {
    "another value": set_at("per_query", "3", "recall", 0, 0.5),
    "another count": set_at("per_query", "3", "covered", 0, 2),
    "a short column": set_at("per_query", "3", "recall", [1.0]),
    "text in a column": set_at("per_query", "3", "recall", 0, "1.0"),
    "a list in a column": set_at("per_query", "3", "recall", 0, [1.0]),
    "an undefined share": set_at("per_query", "3", "recall", 0, None),
    "an infinite share": set_at("per_query", "3", "ndcg", 0, math.inf),
    "a count beyond 64 bits": set_at("per_query", "3", "covered", 0, 10**30),
    "an empty table": set_at("per_query", "3", {}),
    "a missing table": lambda content: content["per_query"].pop("3") and None,
    "a table at 0": lambda content: content["per_query"].update({"0": {}}),
    "another average": set_at("metrics", "ndcg@3", 1.0),
    "one average more": set_at("metrics", "extra@3", 1.0),
    "another query left out": set_at("counted", [True, False]),
    "too few marks": set_at("counted", [True]),
    "too few labels": set_at("queries", ["what?"]),
    "labels that are none": set_at("queries", [None, {}]),
    "labels as one text": set_at("queries", "ab"),
    "another name of a mean": set_at("keys", "ndcg", "map"),
    "an unknown convention": set_at("conventions", "gain=cubic"),
    "another averaging method": set_at("averaging_method", "macro"),
    "an unknown averaging method": set_at("averaging_method", "median"),
    "digests that are none": set_at("ground_truth_digest", ["a secret", "b"]),
    "too few digests": set_at("ground_truth_digest", ["6d6f773a11561dcc"]),
    "no digests": set_at("ground_truth_digest", None),
    "settings as a list": set_at("settings", ["matcher"]),
    "a setting that the signature denies": set_at("settings", "threshold", "0.9"),
    "a signature that the settings deny": set_at("signature", "matcher=id"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_file_is_damage(saved, change):
    """Averages must follow from the values, and everything must be what it says it is."""
    damage(saved, change)
    with pytest.raises(ValueError, match=r"result\.json: the saved result is damaged"):
        EvaluationResult.from_json(saved)


def test_an_average_is_looked_up_by_its_name() -> None:
    """Keys of the export, and names of metrics for their means over queries."""
    result = OfflineRetrievalEvaluator([["a", "b"], ["c"]], [["a", "x"], ["c"]]).evaluate([1, 2])
    assert all(result[key] == value for key, value in result.to_dict().items())
    # One of two and one of one: 3/4; together two of three.
    assert (result["recall@2"], result["micro_recall@2"]) == (0.75, 2 / 3)
    assert type(result.to_dict()) is dict
    everything = OfflineRetrievalEvaluator([["a"]], [["x", "a"]]).evaluate(None)
    assert everything["mrr@all"] == 0.5


@pytest.mark.parametrize(
    ("name", "argument"), [("recall", "metric"), ("recal@2", "metric"), (2, "metric"),
                           ("recall@7", "k")],
)  # fmt: skip
def test_what_is_no_average_is_refused(name: Any, argument: str) -> None:
    """With what there is; nothing is taken for the deepest cutoff."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate([1, 2])
    with pytest.raises(InvalidInput) as info:
        result[name]
    assert info.value.argument == argument


def test_a_result_is_no_sequence() -> None:
    """Python would walk anything that has items."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    with pytest.raises(TypeError):
        iter(result)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        "mrr@1" in result  # type: ignore[operator] # noqa: B015


@pytest.mark.parametrize("name", ["chart.png", Path("out", "chart.svg")])
def test_a_plot_is_not_given_the_name_of_a_file(name: Any) -> None:
    """It returns the Axes; the fix says how to save them."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    with pytest.raises(InvalidInput) as info:
        result.plot(name)
    assert info.value.argument == "k"
    assert "savefig" in str(info.value.fix)


class TestOtherNames:
    """What is looked for under another name is refused with the one it has."""

    def test_attributes(self) -> None:
        """Tables of a result, an average, and what evaluates a data set; others as Python does."""
        result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate([1, 2])
        dataset = load_dataset([{"question": "When?", "actual": ["nine"]}])
        for of, name, meant in (
            (result, "to_df", "per_query()"),
            (result, "to_csv", "per_query().to_csv(path)"),
            (result, "recall", 'result["recall@2"]'),
            (result, "mrr", 'result["mrr@2"]'),
            (dataset, "evaluate", "evaluator(…).evaluate(k)"),
        ):
            with pytest.raises(AttributeError) as info:
                getattr(of, name)
            assert info.value.name == name
            assert str(info.value).endswith(meant) or meant in str(info.value)
        assert not hasattr(result, "nothing")
        assert copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == result

    def test_one_metric(self) -> None:
        """A text is one metric."""
        evaluator = OfflineRetrievalEvaluator([["a", "b"]], [["a"]])
        assert evaluator.evaluate(1, metrics="mrr").to_dict() == {"mrr@1": 1.0}

    def test_a_table_is_loaded_first(self) -> None:
        """An evaluator takes lists; a data set and a DataFrame have one of their own."""
        dataset = load_dataset([{"question": "When?", "actual": ["nine"], "predicted": ["nine"]}])
        for table in (dataset, pd.DataFrame({"actual": [["nine"]]})):
            with pytest.raises(InvalidType) as info:
                OfflineRetrievalEvaluator(table, [["nine"]])
            assert "load_dataset" in str(info.value.fix)

    def test_a_report_is_a_page(self, tmp_path: Path) -> None:
        """Nothing is written under a name that promises something else."""
        result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
        with pytest.raises(InvalidInput) as info:
            result.report(tmp_path / "out.pdf")
        assert info.value.argument == "path"
        assert [*tmp_path.iterdir()] == []


def test_cells_of_text_are_an_option_of_load_dataset() -> None:
    """Rows, and a table, where the caller has no such option."""
    for rows in ([{"question": "When?", "actual": "nine"}], [{"질문": "언제?", "정답": "아홉"}]):
        with pytest.raises((InvalidType, InvalidInput)) as info:
            evaluate_retriever(lambda question: [question], rows)
        assert "load_dataset" in str(info.value.fix)


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
