"""Relevance: which similarities are matches at a threshold, and which document gets the credit."""

from operator import attrgetter

import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from reference import CUTOFFS, Found, Item, Query, relevance_of
from trials import trials

from krag_eval import KragEvalWarning
from krag_eval.core.matching.joins import Matches
from krag_eval.core.scoring.relevance import Documents, Relevance

some_examples = settings(max_examples=trials(150))
lists_of_queries = st.lists(reference.queries(), min_size=1, max_size=3)

# Query 0: item 0 at ranks 2 (0.8) and 3 (1.0), item 1 at rank 2 (0.5), item 2 nowhere.
# Query 1: nothing retrieved. Query 2: item 4 at rank 1 below the threshold.
THREE = [
    Query([Item({3: 1.0, 2: 0.8}), Item({2: 0.5}), Item({})], 4),
    Query([Item({})], 0),
    Query([Item({1: 0.3})], 2),
]


def settled(similarity, same_as=None, grade=None, n_alternatives=None):
    """Settle one query of two documents from a table of similarities, shape (items, 2)."""
    similarity = np.array(similarity)
    item, rank = np.nonzero(similarity)
    n_items = len(similarity)
    return Relevance.from_matches(
        Matches(
            item,
            rank + 1,
            similarity[item, rank],
            np.arange(n_items) if same_as is None else np.array(same_as),
        ),
        item_query=np.zeros(n_items, np.int64),
        n_retrieved=np.array([2]),
        threshold=0.5,
        grade=None if grade is None else np.array(grade, np.float64),
        n_alternatives=n_alternatives,
    )


# --- hits and credit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        # Hits are the pairs at or above the threshold, by item, then rank.
        ("hit_item", [0, 0, 1]),
        ("hit_rank", [2, 3, 2]),
        ("hit_similarity", [0.8, 1.0, 0.5]),
        ("hit_number", [1, 2, 1]),
        # Item 0 is credited at rank 2 with 0.8, not at rank 3 with 1.
        ("covered", [0, 1]),
        ("covered_query", [0, 0]),
        ("first_rank", [2, 2]),
        ("first_similarity", [0.8, 0.5]),
        # Rank 2 matches both items, rank 3 matches one that was credited before.
        ("relevant.query", [0, 0]),
        ("relevant.rank", [2, 3]),
        ("relevant_until_first", [1, 1]),
        ("credited.rank", [2]),
        # Documents with any similarity, also below the threshold.
        ("scored.query", [0, 0, 2]),
        ("scored.rank", [2, 3, 1]),
        # Every query has a count, those without documents as well.
        ("n_items", [3, 1, 1]),
        ("n_retrieved", [4, 0, 2]),
    ],
)
def test_hits_and_credit_of_three_queries(what, expected):
    """Worked out from the table of similarities."""
    assert attrgetter(what)(relevance_of(THREE)).tolist() == expected


def test_counts_are_within_the_cutoff():
    """At 1 nothing, at 2 one document that covers two items, at 3 another document."""
    relevance = relevance_of(THREE)
    for count, expected in (
        (relevance.retrieved_within, [1, 2, 3, 4, 4]),
        (relevance.relevant_within, [0, 1, 2, 2, 2]),
        (relevance.covered_within, [0, 2, 2, 2, 2]),
    ):
        assert [count(k)[0] for k in (1, 2, 3, 9, None)] == expected
        assert [count(k)[1] for k in (1, None)] == [0, 0]


@some_examples
@given(queries=lists_of_queries, k=CUTOFFS)
def test_everything_agrees_with_loops(queries, k):
    """First ranks, relevant ranks and what precision sees on the way, query by query."""
    relevance = relevance_of(queries)
    founds = [Found(query, k) for query in queries]
    within = np.ones(len(relevance.first_rank), bool) if k is None else relevance.first_rank <= k
    first_ranks = [[] for _ in queries]
    on_the_way = [[] for _ in queries]
    for query, rank, relevant in zip(
        relevance.covered_query[within].tolist(),
        relevance.first_rank[within].tolist(),
        relevance.relevant_until_first[within].tolist(),
        strict=True,
    ):
        first_ranks[query].append(rank)
        on_the_way[query].append(relevant)
    assert first_ranks == [[found.first[j] for j in found.covered] for found in founds]
    assert on_the_way == [
        [len([i for i in found.relevant if i <= found.first[j]]) for j in found.covered]
        for found in founds
    ]


@some_examples
@given(queries=lists_of_queries)
def test_a_threshold_may_be_any_number(queries):
    """What counts at each of several thresholds agrees with loops over the same similarities."""
    for threshold in (0.05, 0.3, 0.8, 1.0):
        relevance = relevance_of(queries, threshold)
        founds = [Found(query, None, threshold) for query in queries]
        assert relevance.relevant_within(None).tolist() == [len(f.relevant) for f in founds]
        assert relevance.covered_within(None).tolist() == [len(f.covered) for f in founds]


def test_nothing_at_all_can_be_settled():
    """No item, no document, one query."""
    relevance = relevance_of([Query([], 0)])
    assert relevance.n_items.tolist() == [0]
    assert relevance.relevant_within(3).tolist() == [0]
    assert relevance.relevant_until_first.tolist() == []


# --- repeats and grades ----------------------------------------------------------------------


def test_of_items_that_say_the_same_the_first_is_kept():
    """Items 1 and 2 repeat item 0; item 3 keeps its pairs under its new number."""
    table = [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    relevance = settled(table, same_as=[0, 0, 0, 3])
    assert relevance.n_repeats == 2
    assert relevance.n_items.tolist() == [2]
    assert relevance.hit_item.tolist() == [0, 1]
    assert relevance.hit_rank.tolist() == [1, 2]


def test_items_of_grade_0_are_dropped_with_their_pairs():
    """They are listed, and are not ground truth."""
    relevance = settled([[1.0, 0.0], [0.0, 1.0]], grade=[0, 2])
    assert relevance.n_items.tolist() == [1]
    assert relevance.grade.tolist() == [2.0]
    assert (relevance.hit_item.tolist(), relevance.hit_rank.tolist()) == ([0], [2])


def test_grades_and_alternatives_stay_with_their_items():
    """When an item before them is dropped; without any, all are 1."""
    relevance = settled(
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        same_as=[0, 0, 2],
        grade=[1, 1, 3],
        n_alternatives=np.array([1, 1, 2]),
    )
    assert relevance.grade.tolist() == [1.0, 3.0]
    assert relevance.n_alternatives.tolist() == [1, 2]
    plain = settled([[1.0, 0.0], [0.0, 1.0]])
    assert (plain.grade.tolist(), plain.n_alternatives.tolist()) == ([1.0, 1.0], [1, 1])


def test_repeats_are_counted_in_a_warning():
    """Only where there are any."""
    with pytest.warns(KragEvalWarning, match="^1 ground-truth documents repeat another"):
        settled([[1.0, 0.0], [1.0, 0.0]], same_as=[0, 0]).warn_of_repeats()
    settled([[1.0, 0.0], [1.0, 0.0]]).warn_of_repeats()


# --- grouping pairs by document --------------------------------------------------------------


def test_pairs_are_grouped_by_the_document_they_speak_of():
    """Three pairs, two documents; sums and maxima are over each document's pairs."""
    documents = Documents.of_pairs(np.array([1, 0, 1]), np.array([2, 2, 2]))
    assert (documents.query.tolist(), documents.rank.tolist()) == ([0, 1], [2, 2])
    values = np.array([1.0, 10.0, 4.0])
    assert documents.sum(values).tolist() == [10.0, 5.0]
    assert documents.max(values).tolist() == [10.0, 4.0]


def test_no_pairs_make_no_documents():
    """Sums and maxima are empty."""
    nothing = np.array([], np.int64)
    documents = Documents.of_pairs(nothing, nothing)
    assert documents.query.tolist() == []
    assert documents.sum(np.array([])).tolist() == []
    assert documents.max(np.array([])).tolist() == []
