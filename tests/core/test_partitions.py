"""A run in parts: the same digits as in one piece, and warnings about the whole."""

import json
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import no_advice
from results_made import MISSING, changed, read_back
from trials import trials

from krag_eval import (
    AnyOf,
    ContainsMatcher,
    Conventions,
    EvaluationResult,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
    RougeMatcher,
)
from krag_eval.errors import InvalidInput
from krag_eval.partitions import Partial, PartitionPlan

WORDS = st.sampled_from(["red", "blue", "red blue", "blue green red", "green", ""])
GRADED = st.builds(lambda t, g: Document(t, metadata={"grade": g}), st.just("red"), st.just(2))
ITEMS = st.lists(st.one_of(WORDS, GRADED, st.builds(lambda a, b: AnyOf([a, b]), WORDS, WORDS)),
                 max_size=3)  # fmt: skip
QUERIES = st.lists(
    st.tuples(ITEMS, st.lists(WORDS, max_size=4), st.sampled_from(["when?", "왜?", "who?"])),
    min_size=1,
    max_size=9,
)
OPTIONS = st.sampled_from(
    [
        {},
        {"no_ground_truth": "skip"},
        {"matcher": "contains", "averaging_method": "macro", "no_ground_truth": "skip"},
        {"matcher": RougeMatcher("rouge1", stemmer=True), "threshold": 0.5},
        {"matcher": ContainsMatcher() | RougeMatcher("rougeL"), "conventions": Conventions.krag()},
        {"matching_criteria": "partial", "conventions": Conventions.trec()},
    ]
)
LONGEST = Metric("longest", lambda found, k, conventions: found.retrieved_within(k), "mean_length")


def in_parts(plan, queries, cuts):
    """Evaluate queries in parts, cut at some places."""
    bounds = [0, *sorted(min(cut, len(queries)) for cut in cuts), len(queries)]
    parts = []
    for start, stop in pairwise(bounds):
        columns = list(zip(*queries[start:stop], strict=True)) or ([], [], [])
        parts.append(plan.evaluate(*map(list, columns)))
    return parts


# --- the same digits -------------------------------------------------------------------------


@settings(max_examples=trials(150))
@given(QUERIES, OPTIONS, st.lists(st.integers(0, 9), max_size=4), st.randoms())
def test_parts_give_the_numbers_of_the_whole(queries, options, cuts, random):
    """Averages and rows, to the last digit, for any cut and any order of putting together."""
    options = {"no_ground_truth": "zero"} | options
    if options["no_ground_truth"] == "skip":
        queries = [*queries, (["red"], ["red"], "what?")]
    actual, predicted, labels = map(list, zip(*queries, strict=True))
    k, metrics = [1, 3, None], ["recall", "f1", "ndcg", "mrr", "rank", LONGEST]
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, predicted, queries=labels, **options)
        whole = evaluator.evaluate(k, metrics=metrics)
        plan = PartitionPlan.of(k, metrics=metrics, **options)
        parts = in_parts(plan, queries, cuts)
        partials = [part.partial for part in parts]
        random.shuffle(partials)
        merged = plan.result(partials)
    np.testing.assert_equal(merged.to_dict(), whole.to_dict())
    assert merged.signature == whole.signature
    for cutoff, name in ((1, "1"), (3, "3"), (None, "all")):
        table = whole.per_query(cutoff)
        rows = {
            column: np.concatenate([part.rows[column] for part in parts])
            for column in (f"{name_}@{name}" for name_ in ("covered", "recall", "ndcg", "longest"))
        }
        for column, values in rows.items():
            np.testing.assert_array_equal(values, table[column.rpartition("@")[0]])
    assert np.concatenate([part.rows["query"] for part in parts]).tolist() == labels


def in_one(plan, *parts):
    """Evaluate parts, each given by its lists, and put them together."""
    return plan.result([plan.evaluate(*part).partial for part in parts])


@pytest.mark.parametrize("cuts", [[], [1], [1, 2], [0, 1, 3]])
def test_by_hand(cuts):
    """Recall 1/2, 1 and 1; reciprocal ranks 1, 1 and 1/2; micro recall 3 of 4."""
    queries = [(["a", "b"], ["a", "x"], "u"), (["c"], ["c"], "v"), (["d"], ["y", "d"], "w")]
    plan = PartitionPlan.of(2, metrics=["recall", "mrr"])
    found = plan.result(part.partial for part in in_parts(plan, queries, cuts)).to_dict()
    assert found == {"micro_recall@2": 3 / 4, "macro_recall@2": 2.5 / 3, "mrr@2": 2.5 / 3}


def test_a_plan_and_what_it_returns_can_be_pickled():
    """They travel between processes; a matcher named for its model holds none."""
    plan = PartitionPlan.of(1, matcher="rouge1")
    again = pickle.loads(pickle.dumps(plan))
    part, other = (one.evaluate([["a red fox"]], [["a red fox"]]) for one in (plan, again))
    assert pickle.loads(pickle.dumps(part.partial)) == part.partial == other.partial
    assert Partial.from_json(json.loads(json.dumps(part.partial.to_json()))) == part.partial


@pytest.mark.parametrize("queries", [None, ["a", None], [1, 2]])
def test_rows_have_the_same_columns_and_types_whatever_they_hold(queries):
    """An empty part, labels or none, numbers for labels: engines want one schema."""
    plan = PartitionPlan.of([1, None], metrics=["hit_rate", LONGEST])
    full = plan.evaluate([["a"], ["b"]], [["a"], []], queries)
    types = [(name, np.dtype(kind)) for name, kind in plan.row_types.items()]
    for part in (full, plan.evaluate([], [])):
        assert [(name, column.dtype) for name, column in part.rows.items()] == types
    expected = [None, None] if queries is None else [q if q is None else str(q) for q in queries]
    assert full.rows["query"].tolist() == expected


def test_the_columns_by_name():
    """Counts, then metrics, for each cutoff; a query left out holds NaN."""
    plan = PartitionPlan.of([1, None], metrics=["recall"], no_ground_truth="skip")
    rows = plan.evaluate([["a"], []], [["x", "a"], ["y"]], ["u", "v"]).rows
    assert {name: column.tolist() for name, column in rows.items() if "recall" not in name} == {
        "query": ["u", "v"],
        "counted": [True, False],
        "ground_truth": [1, 0],
        # printf '"a"' | b2sum -l 64, and of nothing
        "ground_truth_digest": ["167004e8304614a8", "e4a6a0577479b2b4"],
        "retrieved@1": [1, 1],
        "relevant@1": [0, 0],
        "covered@1": [0, 0],
        "retrieved@all": [2, 1],
        "relevant@all": [1, 0],
        "covered@all": [1, 0],
    }
    np.testing.assert_array_equal(rows["recall@1"], [0.0, np.nan])
    np.testing.assert_array_equal(rows["recall@all"], [1.0, np.nan])


# --- what is decided about the whole ---------------------------------------------------------


def test_a_part_may_hold_no_query_that_counts():
    """Only a whole without any is refused, and one without a query."""
    plan = PartitionPlan.of(1, metrics=["recall"], no_ground_truth="skip")
    empty = [[], []], [["x"], []]
    result = in_one(plan, empty, ([["a"]], [["a"]]))
    assert (result.n_queries, result.n_counted) == (3, 1)
    assert result.to_dict() == {
        "micro_recall@1": 1.0,
        "macro_recall@1": 1.0,
        "rejection_rate@1": 0.5,
    }
    assert "no_ground_truth=skip(2)" in result.signature
    with pytest.raises(ValueError, match="no query has any ground truth"):
        in_one(plan, empty, empty)
    with pytest.raises(ValueError, match="needs at least one query"):
        in_one(plan, ([], []))


def test_a_query_without_ground_truth_is_refused_at_once():
    """There is no use in waiting for the other parts."""
    with pytest.raises(ValueError, match=r"no ground truth for 1 of 2 queries of this part \('v"):
        PartitionPlan.of(1).evaluate([["a"], []], [["a"], ["a"]], ["u", "v"])


GRADED_A = Document("a", metadata={"grade": 2})


@pytest.mark.parametrize(
    ("options", "odd", "usual", "message"),
    [
        # The best similarity is that of all parts, an F-measure of 2/3.
        ({"matcher": "rouge1", "threshold": 0.9},
         [([["red fox"]], [["red"]]), ([["red fox"]], [["blue"]])], ([["red"]], [["red"]]),
         r"at all in 2 queries: the highest .* is 0\.667"),
        ({"grade_key": "grade"}, [([["a"]], [["a"]])], ([[GRADED_A]], [["a"]]),
         "no ground-truth document has this key"),
        ({}, [([["a"]], [[]])] * 2, ([["b"]], [["b"]]), "for any of 2 queries"),
    ],
    ids=["nothing matched", "no grade", "nothing retrieved"],
)  # fmt: skip
def test_what_is_odd_in_the_whole_alone_is_said_of_the_whole_alone(options, odd, usual, message):
    """A part in which nothing matched, without a grade or with empty lists alone, is no news."""
    plan = PartitionPlan.of(1, **options)
    in_one(plan, *odd, usual)
    with pytest.warns(KragEvalWarning, match=message):
        in_one(plan, *odd)


def test_what_was_counted_is_said_once():
    """Repeats and blank texts, added up over the parts."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        in_one(PartitionPlan.of(1), ([["a", "a"]], [["a", ""]]), ([["b", "b", "b"]], [["b"]]))
    said = sorted(str(warning.message) for warning in caught)
    assert [text.partition(" text")[0] for text in said] == [
        "0 ground-truth and 1 predicted documents have empty or blank",
        "3 ground-truth documents repeat another document of the same query (as the matcher sees "
        "them); each is counted as one item.",
    ]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"matcher": "contains"}, "matcher is text in one and contains"),
        ({"k": 2}, "k is 1 in one and 2"),
        ({"conventions": Conventions.trec()}, "conventions is default in one and precision_at=k"),
        ({"no_ground_truth": "skip"}, "no_ground_truth is error in one and skip"),
    ],
)
def test_parts_of_different_runs_are_refused(options, named):
    """The message names what differs."""
    other = PartitionPlan.of(**{"k": 1, **options})
    with pytest.raises(ValueError, match=named):
        PartitionPlan.of(1).result([other.evaluate([["a"]], [["a"]]).partial])


# --- a result without rows -------------------------------------------------------------------


def merged(found="x"):
    """Return a result of two parts that holds no rows."""
    return in_one(PartitionPlan.of([1, 2]), ([["a", "b"]], [["a", found]]), ([["c"]], [["y", "c"]]))


def whole():
    """Return the result of the same queries in one piece."""
    return OfflineRetrievalEvaluator([["a", "b"], ["c"]], [["a", "x"], ["y", "c"]]).evaluate([1, 2])


def test_averages_need_no_rows():
    """Tables, names, gates, print; a result is equal to another by its sums, to none with rows."""
    ours, theirs = merged(), whole()
    assert ours.metrics.equals(theirs.metrics)
    assert ours.to_dict() == theirs.to_dict()
    assert ours.averages(2) == theirs.averages(2)
    assert ours.check({"mrr@2": 0.75}).passed
    assert (repr(ours), ours._repr_html_()) == (repr(theirs), theirs._repr_html_())
    assert (ours.k, ours.n_queries, ours.n_counted) == ((1, 2), 2, 2)
    assert ours == merged() != merged("b")
    assert ours != theirs
    assert theirs != ours


@pytest.mark.parametrize(
    "ask",
    [
        lambda result: result.per_query(1),
        EvaluationResult.misses,
        EvaluationResult.statuses,
        EvaluationResult.confidence_intervals,
        lambda result: result.labels,
    ],
)
def test_what_needs_rows_is_refused_with_the_remedy(ask):
    """It says that there are none, and how to have them."""
    with pytest.raises(ValueError, match=r"no per-query rows, .* in parts; .*per_query="):
        ask(merged())


def test_what_needs_evidence_is_refused_with_the_remedy():
    """Other thresholds cannot be answered from sums."""
    with pytest.raises(InvalidInput, match="no evidence") as caught:
        merged().metrics_at_thresholds()
    assert "OfflineRetrievalEvaluator" in caught.value.fix


def test_it_can_be_saved(tmp_path):
    """The sums read back exactly; texts there are none."""
    result = merged()
    read = read_back(result, tmp_path)
    assert read.summary == result.summary
    assert read.to_dict() == result.to_dict()
    with pytest.raises(ValueError, match="no per-query rows"):
        read.per_query(1)
    with pytest.raises(ValueError, match="keeps no texts"):
        result.to_json(tmp_path / "other.json", texts=True)


@pytest.mark.parametrize(
    "change",
    [
        ("summary", "queries", 5),
        ("summary", "keys", "extra", "more"),
        ("summary", "at", "1", MISSING),
        ("rows", 5),
        ("summary", "at", "1", "sums", "ndcg", ["1/3", 2]),
    ],
    ids=str,
)
def test_a_saved_summary_that_was_changed_is_refused(tmp_path, change):
    """Also by somebody who knows how to work out the checksum."""
    path = tmp_path / "result.json"
    merged().to_json(path)
    changed(path, *change)
    with pytest.raises(ValueError, match="damaged"):
        EvaluationResult.from_json(path)
