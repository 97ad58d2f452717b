"""Averages at other thresholds: the numbers of another evaluator, and nothing matched again."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from reference import TableMatcher, no_advice
from trials import trials

from krag_eval import Conventions, EvaluationResult, Metric, OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput

# Item a is covered at rank 1 up to 0.75, at rank 2 up to 1; b at rank 2 up to 0.25.
TABLE = {("a", "p"): 0.75, ("a", "q"): 1.0, ("b", "q"): 0.25}


def evaluated(k=(1, 2), matcher=None, **options):
    """Return the result of one query of two items and two documents."""
    matcher = TableMatcher(TABLE) if matcher is None else matcher
    return OfflineRetrievalEvaluator([["a", "b"]], [["p", "q"]], matcher, **options).evaluate(k)


def test_averages_at_thresholds_by_hand():
    """Recall at 2 loses b after 0.25; the first rank of a moves from 1 to 2 after 0.75."""
    table = evaluated().metrics_at_thresholds(["macro_recall@2", "mrr@2"], [0.25, 0.5, 0.75, 1.0])
    expected = pd.DataFrame(
        {"macro_recall@2": [1.0, 0.5, 0.5, 0.5], "mrr@2": [1.0, 1.0, 1.0, 0.5]},
        index=pd.Index([0.25, 0.5, 0.75, 1.0], name="threshold"),
    )
    pd.testing.assert_frame_equal(table, expected)
    # One threshold need not be a list; a similarity of 0 matches not even at 0; and a cutoff need
    # not have been evaluated, as the similarities of all documents are kept.
    one = evaluated(k=1).metrics_at_thresholds(["micro_recall@1", "macro_recall@all"], 0.0)
    assert one.loc[0.0].tolist() == [0.5, 1.0]
    # Unless named, they are those shown at the deepest cutoff.
    macro = evaluated(averaging_method="macro")
    table = macro.metrics_at_thresholds(thresholds=[0.5])
    assert table.iloc[0].to_dict() == {f"{k}@2": v for k, v in macro.averages(2).items()}


def test_the_thresholds_run_from_0_to_1_unless_given():
    """In steps of 0.05, written as one writes them; the threshold in use is among them."""
    table = evaluated(threshold=0.33).metrics_at_thresholds("mrr@1")
    assert table.index.tolist() == sorted([*(i / 20 for i in range(21)), 0.33])
    assert 0.15 in table.index


def test_nothing_is_matched_again():
    """The matcher is not even asked."""

    class Once(TableMatcher):
        """Counts how often it is asked."""

        asked = 0

        def similarity(self, actual, predicted):
            """Count and look up."""
            type(self).asked += 1
            return super().similarity(actual, predicted)

    result = evaluated(matcher=Once(TABLE))
    before = Once.asked
    result.metrics_at_thresholds("ndcg@2")
    assert Once.asked == before == 4


def test_it_works_on_a_result_read_from_a_file(tmp_path):
    """With the same numbers, to the last digit."""
    result = evaluated(conventions=Conventions.trec(), matching_criteria="partial")
    result.to_json(tmp_path / "result.json")
    read = EvaluationResult.from_json(tmp_path / "result.json")
    pd.testing.assert_frame_equal(
        read.metrics_at_thresholds(), result.metrics_at_thresholds(), check_exact=True
    )


PAIRS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("pqr")), st.sampled_from([0.2, 0.5, 0.9])
)
QUERIES = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), unique=True), st.lists(st.sampled_from("pqr"), max_size=4)
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=trials(60))
@given(
    PAIRS, QUERIES, st.sampled_from(list(Conventions.presets())), st.sampled_from(["skip", "zero"])
)
def test_every_average_is_that_of_an_evaluator_with_that_threshold(table, drawn, preset, rule):
    """Under every preset, with queries that have nothing."""
    actual, predicted = [*(a for a, _ in drawn), ["a"]], [*(p for _, p in drawn), ["p", "q"]]
    evaluator = OfflineRetrievalEvaluator(
        actual,
        predicted,
        TableMatcher(table),
        conventions=preset,
        no_ground_truth=rule,
        matching_criteria="partial",
    )
    with no_advice():
        swept = evaluator.evaluate([2]).metrics_at_thresholds(thresholds=[0.1, 0.5, 0.7])
        for threshold in (0.1, 0.5, 0.7):
            other = evaluator.with_threshold(threshold).evaluate([2])
            expected = {f"{key}@2": value for key, value in other.averages().items()}
            np.testing.assert_equal(swept.loc[threshold].to_dict(), expected)


def test_a_metric_of_one_s_own_is_left_out_and_refused_by_name():
    """How it is computed is not kept."""
    mine = Metric("mine", lambda relevance, k, conventions: np.ones(1), "mine")
    result = OfflineRetrievalEvaluator([["a"]], [["p"]], TableMatcher(TABLE)).evaluate(
        1, metrics=["recall", mine]
    )
    assert result.metrics_at_thresholds(thresholds=[0.5]).columns.tolist() == [
        "micro_recall@1", "macro_recall@1",
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match=r"For a metric of your own, evaluate again"):
        result.metrics_at_thresholds("mine@1")
