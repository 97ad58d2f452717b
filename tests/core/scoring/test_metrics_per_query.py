"""Metrics written for one query: what the function sees, and where its values go."""

import math

import numpy as np
import pytest
from langchain_core.documents import Document

from krag_eval import AnyOf, JudgedQuery, Metric, OfflineRetrievalEvaluator


def seen_by(actual, predicted, k=None, **options):
    """Return the queries as the function saw them."""
    seen: list[JudgedQuery] = []
    spy = Metric.per_query("spy", lambda query: seen.append(query) or 0.0)
    OfflineRetrievalEvaluator(actual, predicted, **options).evaluate([k], metrics=["recall", spy])
    return seen


def test_what_a_query_looks_like():
    """Items a (at rank 2) and c (not found) of the first; the second finds its only item first."""
    first, second = seen_by(
        [["a", "c"], ["b"]], [["x", "a", "a"], ["b", "y"]], queries=["one?", "two?"]
    )
    assert (first.label, first.position, second.label, second.position) == ("one?", 0, "two?", 1)
    assert first.documents == ("x", "a", "a")
    assert first.relevant == (False, True, True)
    assert first.ground_truth == ("a", "c")
    assert first.matches == ((), (0,), (0,))
    assert first.first_ranks == (2, None)
    assert (second.documents, second.relevant) == (("b", "y"), (True, False))
    assert (second.matches, second.first_ranks) == (((0,), ()), (1,))


@pytest.mark.parametrize("k", [1, "1w"])
def test_nothing_beyond_the_cutoff_is_seen(k):
    """The item at rank 2 is not found within one document, nor within one word."""
    (query,) = seen_by([["a"]], [["x", "a"]], k)
    assert query.documents == ("x",)
    assert (query.relevant, query.matches, query.first_ranks) == ((False,), ((),), (None,))


@pytest.mark.filterwarnings("ignore:1 ground-truth documents repeat")
def test_repeats_and_grade_0_are_no_items():
    """Numbers of items are places in what is left."""
    wanted = [
        Document("a", metadata={"grade": 2}),
        Document("a", metadata={"grade": 2}),
        Document("z", metadata={"grade": 0}),
        Document("b", metadata={"grade": 1}),
    ]
    (query,) = seen_by([wanted], [["b", "a"]], grade_key="grade")
    assert [one.page_content for one in query.ground_truth] == ["a", "b"]
    assert (query.grades, query.matches) == ((2.0, 1.0), ((1,), (0,)))


def test_documents_come_as_they_were_passed():
    """With texts and metadata at hand."""
    document = Document("a", metadata={"page": 3})
    item = AnyOf(["a", "b"])
    (query,) = seen_by([[item]], [[document, "x"]])
    assert query.documents[0] is document
    assert query.ground_truth == (item,)
    assert (query.texts, list(query.metadata)) == (["a", "x"], [{"page": 3}, {}])


def test_documents_that_complete_an_item_together_are_relevant():
    """Neither half reaches 80 %; both together do, at rank 3."""
    passage = "one two three four five six seven eight nine ten"
    halves = ["one two three four five", "x", "six seven eight nine ten"]
    (query,) = seen_by([[passage]], [halves], matcher="coverage(union=yes)")
    assert query.relevant == (True, False, True)
    assert (query.matches, query.first_ranks) == (((), (), (0,)), (3,))
    (cut,) = seen_by([[passage]], [halves], 2, matcher="coverage(union=yes)")
    assert (cut.relevant, cut.first_ranks) == ((False, False), (None,))


def test_it_agrees_with_the_built_in_metric():
    """Precision and reciprocal rank, written per query, on random lists."""
    random = np.random.default_rng(0)
    actual = [random.choice(list("abcdef"), 2, replace=False).tolist() for _ in range(50)]
    predicted = [random.choice(list("abcdefgh"), 5).tolist() for _ in range(50)]
    own = [
        Metric.per_query("own", lambda one: sum(one.relevant) / len(one.relevant), "own"),
        Metric.per_query(
            "first", lambda one: max((1 / r for r in one.first_ranks if r), default=0.0), "first"
        ),
    ]
    evaluator = OfflineRetrievalEvaluator(actual, predicted)
    result = evaluator.evaluate([1, 3, 5], metrics=["precision", "reciprocal_rank", *own])
    for k in (1, 3, 5):
        table = result.per_query(k)
        assert table["own"].tolist() == table["precision"].tolist()
        assert table["first"].tolist() == table["reciprocal_rank"].tolist()


def test_undefined_values_are_left_out_of_the_mean():
    """``None`` of one query of two: the mean is that of the other; declarations are kept."""
    odd = Metric.per_query(
        "odd", lambda query: 3.0 if query.position else None, lower_is_better=True
    )
    result = OfflineRetrievalEvaluator([["a"], ["a"]], [["a"], ["a"]]).evaluate([1], metrics=[odd])
    assert math.isnan(result.per_query()["odd"].iloc[0])
    assert result.averages() == {"mean_odd": 3.0}
    assert result.definitions["mean_odd"].lower_is_better
