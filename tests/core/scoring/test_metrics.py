"""Every registered metric: agreement with the plain definitions, and general properties."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings, strategies as st
from reference import CONVENTIONS, CUTOFFS, Item, Query, many_queries, relevance_of
from trials import trials

from krag_eval import METRICS as REGISTERED, Conventions, MatchingCriteria
from krag_eval.core.scoring.metrics import COUNTS, metrics_for, precision_base

# Those that count words, of which relevance made of numbers has none, are in test_pieces.py, and
# those that ask what was looked at, for aspects or for another list in test_judged.py,
# test_aspects.py and test_unwanted.py.
METRICS = {
    name: metric
    for name, metric in REGISTERED.items()
    if not (metric.needs_words or metric.needs_judged or metric.needs_aspects or metric.needs_list)
}
# The hit rate has two definitions, and an evaluator uses one of them.
ALL = {**METRICS, "hit_any": metrics_for(MatchingCriteria.PARTIAL)["hit_rate"]}

SHARES = {name for name, metric in ALL.items() if metric.range == (0, 1)}
RANKS = {name for name, metric in ALL.items() if metric.range == (1, math.inf)}
GROWING_WITH_K = {"hit_rate", "hit_any", "recall", "success", "r_precision", "rbp"}

DEFAULT = Conventions()

every_metric = pytest.mark.parametrize("name", ALL)
every_share = pytest.mark.parametrize("name", sorted(SHARES))
some_examples = settings(max_examples=trials(150))
many_examples = settings(max_examples=trials(200))

lists_of_queries = st.lists(reference.queries(), min_size=1, max_size=3)


def values(name, queries, k=None, conventions=DEFAULT):
    """Return the values of a metric for these queries, as Python floats."""
    return ALL[name].values(relevance_of(queries), k, conventions).tolist()


def all_values(queries, k=None, conventions=DEFAULT):
    """Return the values of every metric for these queries."""
    relevance = relevance_of(queries)
    return {name: metric.values(relevance, k, conventions).tolist() for name, metric in ALL.items()}


def expected_values(queries, k=None, conventions=DEFAULT):
    """Return the same by the plain definitions."""
    founds = [reference.Found(query, k) for query in queries]
    return {
        name: [define(found, conventions) for found in founds]
        for name, define in reference.METRICS.items()
    }


def assert_close(first, second):
    """Check that every metric has the same values but for rounding."""
    for name in ALL:
        assert first[name] == pytest.approx(second[name], abs=1e-12, nan_ok=True), name


def assert_same(first, second):
    """Check that every metric has the same values to the last digit."""
    for name in ALL:
        assert all(map(same, first[name], second[name])), (name, first[name], second[name])


def assert_no_worse(before, after, k):
    """Check that no metric of a query got worse: shares do not fall, ranks do not rise."""
    for name, (old, new) in all_values([before, after], k).items():
        if name in RANKS:
            assert math.isnan(old) or new <= old, name
        else:
            assert new >= old - 1e-12, name


def same(first, second):
    """Tell whether two values are the same to the last digit, undefined included."""
    return first == second or (math.isnan(first) and math.isnan(second))


def test_every_registered_metric_is_in_exactly_one_group_and_has_a_plain_definition():
    """A metric that declares no range, or another one, would escape the laws."""
    assert set(ALL) == SHARES | RANKS == set(reference.METRICS)
    assert GROWING_WITH_K <= SHARES
    assert [metric.name for metric in METRICS.values()] == list(METRICS)
    assert len({metric.key for metric in METRICS.values()}) == len(METRICS)


def test_the_registry_cannot_be_changed_in_place():
    """A metric of one's own is passed to ``evaluate``, never written into the registry."""
    with pytest.raises(TypeError):
        REGISTERED["mine"] = METRICS["ndcg"]


# --- agreement with the plain definitions ----------------------------------------------------


@many_examples
@given(queries=lists_of_queries, k=CUTOFFS)
def test_agrees_with_the_plain_definitions(queries, k):
    """Under default conventions, any overlaps, repeats, grades and cutoffs."""
    assert_close(all_values(queries, k), expected_values(queries, k))


@many_examples
@given(queries=lists_of_queries, k=CUTOFFS, conventions=CONVENTIONS)
def test_agrees_with_the_plain_definitions_under_any_conventions(queries, k, conventions):
    """Under every combination of conventions, scores above 1 included."""
    assert_close(all_values(queries, k, conventions), expected_values(queries, k, conventions))


@some_examples
@given(queries=lists_of_queries, k=CUTOFFS)
def test_counts_agree_with_the_plain_definition(queries, k):
    """The counts that micro averages are made of are those of the definitions."""
    relevance = relevance_of(queries)
    founds = [reference.Found(query, k) for query in queries]
    expected = {
        "ground_truth": [found.n for found in founds],
        "retrieved": [found.retrieved for found in founds],
        "relevant": [len(found.relevant) for found in founds],
        "covered": [len(found.covered) for found in founds],
    }
    assert {name: count(relevance, k).tolist() for name, count in COUNTS.items()} == expected
    for conventions in (DEFAULT, Conventions(precision_at="k")):
        base = [reference.precision_base(found, conventions) for found in founds]
        assert precision_base(relevance, k, conventions).tolist() == base


# --- the range -------------------------------------------------------------------------------


@many_examples
@given(queries=lists_of_queries, k=CUTOFFS)
def test_shares_stay_between_0_and_1_whatever_overlaps_or_repeats(queries, k):
    """An item is credited once, so no overlap lifts a score above 1, not even by rounding."""
    found = all_values(queries, k)
    for name in SHARES:
        assert all(0.0 <= value <= 1.0 for value in found[name]), name


@some_examples
@given(queries=lists_of_queries, k=CUTOFFS)
def test_ranks_lie_within_the_cutoff_or_are_undefined(queries, k):
    """A rank is a whole number from 1 to min(k, m); without a relevant document it is NaN."""
    computed = all_values(queries, k)
    for name in RANKS:
        for query, value in zip(queries, computed[name], strict=True):
            found = reference.Found(query, k)
            if found.relevant:
                assert value in range(1, found.retrieved + 1), name
            else:
                assert math.isnan(value), name


CREDIT_ONCE = [
    Conventions(**dict(zip(Conventions.allowed(), chosen, strict=True)))
    for chosen in itertools.product(*Conventions.allowed().values())
    if "every" not in chosen
]


@every_share
def test_stays_between_0_and_1_under_all_conventions_that_credit_once(name):
    """All 192 combinations, on 300 queries with arbitrary overlaps and graded items."""
    relevance = relevance_of(many_queries(300))
    assert len(CREDIT_ONCE) == 192
    for conventions in CREDIT_ONCE:
        for k in (1, 2, 4, None):
            value = ALL[name].values(relevance, k, conventions)
            assert (value >= 0.0).all(), (conventions, k)
            assert (value <= 1.0).all(), (conventions, k)


@every_metric
def test_one_value_per_query_as_floats(name):
    """Every metric returns a float64 array of shape (queries,)."""
    value = ALL[name].values(relevance_of(many_queries(20)), 3, DEFAULT)
    assert value.shape == (20,)
    assert value.dtype == np.float64


# --- the best value --------------------------------------------------------------------------


@st.composite
def perfect(draw, most_items_per_document):
    """Draw a query whose every item is found and whose every document is relevant, best first.

    Items in falling order of their grades, so many to each document.
    """
    sizes = draw(st.lists(st.integers(1, most_items_per_document), min_size=1, max_size=5))
    grades = draw(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 0.5]), min_size=sum(sizes), max_size=sum(sizes))
    )
    ranks = [rank for rank, size in enumerate(sizes, 1) for _ in range(size)]
    items = [
        Item({rank: 1.0}, grade)
        for rank, grade in zip(ranks, sorted(grades, reverse=True), strict=True)
    ]
    return Query(draw(st.permutations(items)), len(sizes))


def reaching_1(queries, k=None):
    """Return the values of every metric that a finite list can bring to 1."""
    return {name: value for name, value in all_values(queries, k).items() if name != "rbp"}


@some_examples
@given(query=perfect(most_items_per_document=1))
def test_a_perfect_ranking_is_worth_1(query):
    """One-to-one, all found, nothing else, best grades first: every metric is 1, the rank too."""
    for k in (None, len(query.items)):
        assert reaching_1([query], k) == {name: [1.0] for name in ALL if name != "rbp"}


@some_examples
@given(query=perfect(most_items_per_document=3), k=CUTOFFS)
def test_1_is_reached_when_documents_cover_several_items(query, k):
    """To the last digit, at every cutoff: no ranking of single items could be better."""
    for conventions in (DEFAULT, Conventions(gain="linear")):
        assert values("ndcg", [query], k, conventions) == [1.0]
    # R-precision counts documents, of which fewer than items are needed here.
    reached = {name: value for name, value in reaching_1([query]).items() if name != "r_precision"}
    assert reached == {name: [1.0] for name in ALL if name not in ("rbp", "r_precision")}


@every_share
def test_nothing_relevant_retrieved_or_wanted_is_worth_0(name):
    """Not undefined; whether it counts is decided by whoever averages."""
    assert values(name, [Query([Item({}), Item({1: 0.3})], 3)]) == [0.0]
    assert values(name, [Query([Item({})], 0)], 5) == [0.0]
    assert values(name, [Query([], 3), Query([], 0)]) == [0.0, 0.0]


# --- order within a list ---------------------------------------------------------------------


@st.composite
def one_to_one(draw):
    """Draw a ranking of relevant and irrelevant documents, one item each, some not retrieved."""
    grades = draw(
        st.lists(
            st.one_of(st.none(), st.sampled_from([1.0, 2.0, 3.0])), min_size=2, max_size=8
        ).filter(lambda grades: None in grades and set(grades) != {None})
    )
    missed = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), max_size=3))
    return grades, missed


def ranking(grades, missed):
    """Return the query in which the i-th document matches one item of that grade, or none."""
    found = [Item({rank: 1.0}, grade) for rank, grade in enumerate(grades, 1) if grade]
    return Query([*found, *(Item({}, grade) for grade in missed)], len(grades))


@some_examples
@given(drawn=one_to_one(), data=st.data())
def test_exchanging_a_relevant_document_with_an_irrelevant_one_above_never_lowers(drawn, data):
    """At every cutoff a better order is worth at least as much; a rank never rises."""
    grades, missed = drawn
    pairs = [
        (above, below)
        for above, below in itertools.combinations(range(len(grades)), 2)
        if grades[above] is None and grades[below] is not None
    ]
    assume(pairs)
    above, below = data.draw(st.sampled_from(pairs))
    better = list(grades)
    better[above], better[below] = better[below], better[above]
    for k in (1, 2, 3, 5, None):
        assert_no_worse(ranking(grades, missed), ranking(better, missed), k)


@some_examples
@given(drawn=one_to_one(), data=st.data())
def test_pulling_a_relevant_document_up_never_lowers(drawn, data):
    """Moved above an irrelevant document, those in between stepping down by one: likewise."""
    grades = [grade and 1.0 for grade in drawn[0]]
    missed = [1.0] * len(drawn[1])
    above = grades.index(None)
    below = [i for i, grade in enumerate(grades) if grade is not None and i > above]
    assume(below)
    pulled = data.draw(st.sampled_from(below))
    better = [*grades[:above], grades[pulled], *grades[above:pulled], *grades[pulled + 1 :]]
    for k in (1, 2, 3, 5, None):
        assert_no_worse(ranking(grades, missed), ranking(better, missed), k)


# --- documents that cover several items ------------------------------------------------------


def listing(*documents, missed=0):
    """Return the query whose i-th document covers so many items, or items of these grades."""
    items = [
        Item({rank: 1.0}, grade)
        for rank, covered in enumerate(documents, 1)
        for grade in ([1.0] * covered if isinstance(covered, int) else covered)
    ]
    return Query([*items, *(Item({}) for _ in range(missed))], len(documents))


# Discounts of the places 1 to 5: 1 / log2(place + 1).
D = [1.0, 1 / math.log2(3), 0.5, 1 / math.log2(5), 1 / math.log2(6)]


@pytest.mark.parametrize(
    ("documents", "missed", "k", "expected"),
    [
        # Items 1 to 5 found by [1], [2], [3 4 5]: places 1 to 5, as by five single documents.
        ((1, 1, 3), 0, None, 1.0),
        ((1, 1, 1, 1, 1), 0, None, 1.0),
        # Three at rank 2 take the places 2, 3 and 4, and the one at rank 3 the next.
        ((0, 3, 1), 0, None, (D[1] + D[2] + D[3] + D[4]) / (1 + D[1] + D[2] + D[3])),
        # Two at rank 1, one at rank 4, two missed: places 1, 2 and 4 of five.
        ((2, 0, 0, 1), 2, None, (1 + D[1] + D[3]) / sum(D)),
        # A place beyond the cutoff counts: three at rank 2 within 2 take the places 2, 3 and 4.
        ((0, 3), 2, 2, (D[1] + D[2] + D[3]) / (1 + D[1])),
        # The cap: two at rank 1 within 1 gain 1.63, and the best list of one gains 1.
        ((2,), 0, 1, 1.0),
        # The greatest gain first: of grades 1, 3 and 2 at rank 1, and 3 at rank 2, the two 3 sit
        # at 1 and 2, the 2 at 3 and the 1 at 4, which is the best list possible.
        (([1.0, 3.0, 2.0], [3.0]), 0, None, 1.0),
        # Grades 1 and 2 at rank 1, 3 at rank 3: the 2 sits at 1, the 1 at 2, the 3 at 3.
        (([1.0, 2.0], 0, [3.0]), 0, None, (3 + D[1] + 7 * D[2]) / (7 + 3 * D[1] + D[2])),
        # Grades 1 and 2 at rank 1, 3 at rank 2: the 3 keeps its rank, the 1 has to go to 3.
        (([1.0, 2.0], [3.0]), 0, None, (3 + 7 * D[1] + D[2]) / (7 + 3 * D[1] + D[2])),
        # Within 1 the 3 is not found, so the 1 is at place 2.
        (([1.0, 2.0], [3.0]), 0, 1, (3 + D[1]) / 7),
        # A grade of 0.5 gains 2**0.5 - 1; at rank 2, after an item of grade 1 that is missing.
        ((0, [0.5]), 1, None, (2**0.5 - 1) * D[1] / (1 + (2**0.5 - 1) * D[1])),
    ],
)  # fmt: skip
def test_items_of_one_document_queue_for_places(documents, missed, k, expected):
    """Worked out by hand from the places."""
    found = values("ndcg", [listing(*documents, missed=missed)], k)
    assert found == pytest.approx([expected], abs=1e-12)


@pytest.mark.parametrize(
    ("query", "conventions", "expected"),
    [
        # Items found together gain together where the ideal is made of what was retrieved: the
        # numbers of 0.1.0.
        (listing(1, 1, 3), "ideal=retrieved", (1 + D[1] + 3 * D[2]) / (3 + D[1] + D[2])),
        (listing(1, 1, 3), "ideal=alternatives", (1 + D[1] + 3 * D[2]) / (3 + D[1] + D[2])),
        # Items of .5 and 1 at rank 1, one of .8 at rank 2: at the places 3, 1 and 2; ideal of 1s.
        (
            Query([Item({1: 0.5}), Item({1: 1.0}), Item({2: 0.8})], 2),
            "graded_by=similarity,gain=linear",
            (1 + 0.8 * D[1] + 0.5 * D[2]) / sum(D[:3]),
        ),
        # Grades that differ in their last digits, not quite in order: the two sums round apart.
        (listing([0.1], [0.10000000000000003], [0.10000000000000002]), "gain=linear", 1.0),
    ],
)
def test_ndcg_under_other_conventions(query, conventions, expected):
    """Worked out by hand; rounding lifts nothing above 1."""
    (found,) = values("ndcg", [query], None, Conventions.parse(conventions))
    assert found == pytest.approx(expected, abs=1e-12)
    assert found <= 1.0


@many_examples
@given(query=reference.queries(min_items=1), linear=st.booleans(), data=st.data())
def test_finding_an_item_earlier_never_lowers_ndcg(query, linear, data):
    """Whatever overlaps: one more match of any item with any document, at every cutoff."""
    assume(query.n_retrieved)
    number = data.draw(st.integers(0, len(query.items) - 1))
    rank = data.draw(st.integers(1, query.n_retrieved))
    items = list(query.items)
    items[number] = replace(items[number], similarity={**items[number].similarity, rank: 1.0})
    conventions = Conventions(gain="linear" if linear else "exponential")
    for k in (1, 2, 3, 5, None):
        before, after = values("ndcg", [query, replace(query, items=items)], k, conventions)
        assert after >= before - 1e-12, k


def test_many_queries_whose_items_queue():
    """On 500 queries at once, of which most have documents that cover several items."""
    queries = many_queries(500, seed=3)
    for k in (1, 2, 4, None):
        for conventions in (DEFAULT, Conventions(graded_by="similarity")):
            expected = [reference.ndcg(reference.Found(q, k), conventions) for q in queries]
            found = values("ndcg", queries, k, conventions)
            assert found == pytest.approx(expected, abs=1e-12)


# --- cutoffs ---------------------------------------------------------------------------------


@some_examples
@given(queries=lists_of_queries, k=st.integers(1, 8), conventions=CONVENTIONS)
def test_at_k_only_the_first_k_documents_count(queries, k, conventions):
    """The value at k is, digit for digit, that of the lists cut to k, under any conventions."""
    cut = [query.cut(k) for query in queries]
    assert_same(all_values(queries, k, conventions), all_values(cut, k, conventions))


@some_examples
@given(queries=lists_of_queries, k=st.integers(5, 8))
def test_a_cutoff_beyond_the_list_changes_nothing(queries, k):
    """By default a cutoff of at least the list's length equals no cutoff."""
    assert_same(all_values(queries, k), all_values(queries, None))


@some_examples
@given(queries=lists_of_queries)
def test_recall_and_hit_rate_never_fall_as_k_grows(queries):
    """What is found within k is found within k + 1."""
    relevance = relevance_of(queries)
    for name in GROWING_WITH_K:
        at = [ALL[name].values(relevance, k, DEFAULT) for k in range(1, 9)]
        assert all((fewer <= more).all() for fewer, more in itertools.pairwise(at)), name


# --- queries are independent -----------------------------------------------------------------


@some_examples
@given(queries=lists_of_queries, k=CUTOFFS, conventions=CONVENTIONS)
def test_a_query_is_scored_as_if_it_were_alone(queries, k, conventions):
    """Digit for digit, whatever other queries stand beside it, in whatever order."""
    together = all_values(queries, k, conventions)
    alone = [all_values([query], k, conventions) for query in queries]
    assert_same(together, {name: [one[name][0] for one in alone] for name in ALL})


@some_examples
@given(query=reference.queries(min_items=1), k=CUTOFFS, data=st.data())
def test_the_order_of_the_ground_truth_does_not_matter(query, k, data):
    """Ground truth is a set: its order changes no value beyond rounding."""
    other = replace(query, items=data.draw(st.permutations(query.items)))
    assert_close(all_values([other], k), all_values([query], k))


@every_metric
def test_computing_changes_nothing_for_the_next_one(name):
    """Asking twice, with other questions in between, gives the same answer."""
    relevance = relevance_of(many_queries(50))
    before = ALL[name].values(relevance, 3, DEFAULT).copy()
    for metric in ALL.values():
        for conventions in Conventions.presets().values():
            metric.values(relevance, 2, conventions)
    np.testing.assert_array_equal(ALL[name].values(relevance, 3, DEFAULT), before)


# --- the threshold ---------------------------------------------------------------------------


@some_examples
@given(queries=lists_of_queries)
def test_a_lower_threshold_never_uncovers_an_item(queries):
    """Recall and hit rate never fall as the threshold does."""
    for name in GROWING_WITH_K:
        at = [
            ALL[name].values(relevance_of(queries, threshold), None, DEFAULT)
            for threshold in (1.0, 0.8, 0.5, 0.3, 0.1)
        ]
        assert all((low <= high).all() for low, high in itertools.pairwise(at)), name


# --- grades ----------------------------------------------------------------------------------


def test_grades_matter_to_ndcg_alone():
    """Grades 3 and 1 at ranks 2 and 1: everything but nDCG is as with grades of 1."""
    graded = Query([Item({2: 1.0}, 3.0), Item({1: 1.0}, 1.0)], 3)
    plain = Query([Item({2: 1.0}), Item({1: 1.0})], 3)
    for name in set(ALL) - {"ndcg"}:
        assert values(name, [graded]) == values(name, [plain])
    # (1 + 7/log2(3)) / (7 + 1/log2(3)) against 1.
    expected = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert values("ndcg", [graded]) == pytest.approx([expected], abs=1e-12)
    assert values("ndcg", [plain]) == [1.0]


@pytest.mark.parametrize(("gain", "largest"), [("exponential", 1000.0), ("linear", 2.0**1000)])
def test_the_largest_grade_is_computed(gain, largest):
    """Found at rank 2 it still has its discount, 1/log2(3); and so with thousands of its like."""
    conventions = Conventions(gain=gain)
    queries = [Query([Item({2: 1.0}, largest)], 2)]
    assert values("ndcg", queries, None, conventions) == pytest.approx([D[1]], abs=1e-12)
    many = [Query([Item({1: 1.0}, largest)] * 5000, 1)]
    assert values("ndcg", many, None, conventions) == [1.0]


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("tiny", [1e-16, 1e-18, 1e-300])
def test_small_grades_keep_their_ratio(gain, tiny):
    """Grades t and 2t in the wrong order: near 0 both gains are proportional to the grade.

    (t + 2t/log2(3)) / (2t + t/log2(3)).
    """
    query = Query([Item({1: 1.0}, tiny), Item({2: 1.0}, 2 * tiny)], 2)
    expected = (1 + 2 * D[1]) / (2 + D[1])
    found = values("ndcg", [query], None, Conventions(gain=gain))
    assert found == pytest.approx([expected], abs=1e-12)
