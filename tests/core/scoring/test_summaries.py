"""Summaries: sums of parts are the sums of the whole, and what is written reads back."""

import json
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from trials import trials

from krag_eval import AveragingMethod, Conventions, OfflineRetrievalEvaluator
from krag_eval.core.scoring.averages import Sums
from krag_eval.core.scoring.parts import Summary
from krag_eval.errors import InvalidInput

KEYS = {"recall": "macro_recall", "own": "own"}
VALUES = st.one_of(st.floats(-10, 10), st.just(float("nan")))
ROWS = st.lists(st.tuples(st.booleans(), st.integers(1, 4), st.integers(0, 3), VALUES), max_size=12)
many = settings(max_examples=trials(200))


def summary_of(rows, k=5):
    """Return the summary of queries: (counted, items, retrieved, a metric of one's own)."""
    counted, items, retrieved, own = (
        np.array([row[i] for row in rows], kind)
        for i, kind in enumerate((np.bool_, np.int64, np.int64, np.float64))
    )
    covered = np.minimum(items, retrieved)
    table = {
        "ground_truth": items,
        "retrieved": retrieved,
        "covered": covered,
        "recall": covered / items,
        "own": own,
    }
    return Summary.of(
        {k: table},
        counted,
        keys=KEYS,
        averaging_method=AveragingMethod.BOTH,
        conventions=Conventions(),
    )


@many
@given(ROWS, st.integers(0, 12), st.integers(0, 12))
def test_parts_add_up_to_the_whole_however_they_are_grouped(rows, one, two):
    """Sums are fractions, so that addition is associative and commutative; parts may be empty."""
    first, last = sorted((one, two))
    a, b, c = (summary_of(part) for part in (rows[:first], rows[first:last], rows[last:]))
    assert (a + b) + c == a + (b + c) == c + b + a == summary_of(rows)


@many
@given(ROWS)
def test_what_is_written_reads_back(rows):
    """As JSON and as a pickle, to the last bit."""
    summary = summary_of(rows)
    assert Summary.from_json(json.loads(json.dumps(summary.to_json()))) == summary
    assert pickle.loads(pickle.dumps(summary)) == summary


def test_averages_by_hand():
    """Recall 1/2 and 1, one own value undefined; of two uncounted queries one got nothing."""
    nan = float("nan")
    rows = [(True, 2, 1, nan), (True, 1, 1, 0.25), (False, 1, 0, nan), (False, 1, 2, nan)]
    summary = summary_of(rows)
    assert summary.averages(5) == {"micro_recall": 2 / 3, "macro_recall": 0.75, "own": 0.25}
    assert summary.rejection_rate(5) == 0.5
    assert (summary.n_queries, summary.n_counted, summary.k) == (4, 2, (5,))


def test_without_counted_queries_averages_are_undefined():
    """A part of a run may hold none; micro averages are 0 of 0, which is 0."""
    averages = summary_of([(False, 1, 0, 0.5)]).averages(5)
    assert np.isnan(averages["macro_recall"])
    assert np.isnan(averages["own"])
    assert summary_of([(True, 1, 1, 0.5)]).rejection_rate(5) is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"keys": {"recall": "macro_recall"}}, "keys"),
        ({"averaging_method": AveragingMethod.MICRO}, "averaging_method"),
        ({"conventions": Conventions.trec()}, "conventions"),
        ({"sums": {1: Sums(0, {}, {})}}, "k"),
    ],
)
def test_summaries_of_different_runs_cannot_be_added(change, named):
    """The message names what differs."""
    summary = summary_of([(True, 1, 1, 0.5)])
    with pytest.raises(ValueError, match=f"cannot be added: {named} is "):
        summary + replace(summary, **change)


def test_only_summaries_can_be_added():
    """A number is no summary."""
    with pytest.raises(TypeError):
        summary_of([]) + 1


def test_sums_of_other_columns_cannot_be_added():
    """They would be sums of different things."""
    with pytest.raises(ValueError, match=r"sums of \['a'\] cannot be added to sums of \['b'\]"):
        Sums(1, {"a": Fraction(1)}, {"a": 1}) + Sums(1, {"b": Fraction(1)}, {"b": 1})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content.update(counted=9),
        lambda content: content.update(queries=-1),
        lambda content: content.update(queries=True),
        lambda content: content.update(at={}),
        lambda content: content["at"]["5"].update(rejected=2),
        lambda content: content["at"]["5"]["sums"].update(own=["1e999999999", 1]),
        lambda content: content["at"]["5"]["sums"].update(own=["1/0", 1]),
        lambda content: content["at"]["5"]["sums"].update(own=[0.5, 1]),
        lambda content: content["at"]["5"]["sums"].update(own=["1", 3]),
    ],
)
def test_what_does_not_fit_is_refused(spoil):
    """Nothing is computed from counts that contradict each other, or from no fractions."""
    content = summary_of([(True, 1, 1, 0.5)]).to_json()
    spoil(content)
    with pytest.raises(ValueError, match=r"count|fraction|divides|fit"):
        Summary.from_json(content)


def test_a_summary_says_its_main_averages(monkeypatch):
    """By hand: of two counted queries one item of two and one of one are found, at rank 1."""
    evaluator = OfflineRetrievalEvaluator(
        [["a", "b"], ["c"], []], [["a", "x"], ["c"], []], no_ground_truth="skip"
    )
    summary = evaluator.evaluate([2, 1], metrics=["recall", "mrr", "f1"]).summary
    told = "micro_recall@2 0.6667, macro_recall@2 0.7500, mrr@2 1.0000"
    assert summary() == str(summary) == f"Over 2 of 3 queries: {told}."
    assert summary("ko") == f"질문 3개 중 2개의 평균은 {told}입니다."
    assert told in repr(summary)
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert summary() == summary("ko")
    with pytest.raises(InvalidInput):
        summary("kr")
    alone = evaluator.evaluate(1, metrics=["precision"]).summary
    assert alone("en") == "Over 2 of 3 queries: micro_precision@1 1.0000, macro_precision@1 1.0000."
