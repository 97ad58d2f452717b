"""The worked examples of the documentation, each derived by hand."""

from __future__ import annotations

import math

import pytest
from reference import Item, Query, relevance_of

from krag_eval import AnyOf, Conventions, OfflineRetrievalEvaluator
from krag_eval.scoring.metrics import METRICS

ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]

# The discount at ranks 2, 3, 4 and 5; at rank 1 it is 1.
AT_2, AT_3, AT_4, AT_5 = (1 / math.log2(rank + 1) for rank in (2, 3, 4, 5))


def sample_s(**options):
    """Return an evaluator of the sample."""
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, **options)


def value(name, query, conventions=None, k=None):
    """Return a metric's value for one query of given similarities and grades."""
    return METRICS[name].compute(relevance_of([query]), k, conventions or Conventions())[0]


# --- sample S --------------------------------------------------------------------------------
#
# Query 1: items doc1, doc2, doc5, found at ranks 1, 2, 3.
# Query 2: items doc3, doc4; doc4 found at rank 2, doc3 not at all.
# No list is longer than three, so every cutoff from 3 on is the same.

AT_K = pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 10, None])


def column(k):
    """Return the column of the tables below for a cutoff."""
    return 2 if k is None else min(k, 3) - 1


@AT_K
@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ("all", (0, 0, 1 / 2)),  # query 1 is complete at 3, query 2 never
        ("partial", (1 / 2, 1, 1)),  # query 1 has something at 1, query 2 at 2
    ],
)
def test_sample_s_hit_rate(k, criteria, expected):
    """A hit by all of the ground truth, or by any of it."""
    evaluator = sample_s(matching_criteria=criteria)
    assert evaluator.calculate_hit_rate(k) == {"hit_rate": expected[column(k)]}


@AT_K
def test_sample_s_mrr(k):
    """First relevant ranks 1 and 2: (1 + 0)/2 at 1, (1 + 1/2)/2 from 2 on."""
    assert sample_s().calculate_mrr(k) == {"mrr": (1 / 2, 3 / 4, 3 / 4)[column(k)]}


@AT_K
def test_sample_s_map(k):
    """Precision at each item's first rank, over all items.

    At 1: (1/1)/3 and 0, mean 1/6. At 2: (1/1 + 2/2)/3 and (1/2)/2, mean 11/24.
    At 3: (1/1 + 2/2 + 3/3)/3 and (1/2)/2, mean 5/8.
    """
    expected = (1 / 6, 11 / 24, 5 / 8)[column(k)]
    assert sample_s().calculate_map(k) == {"map": pytest.approx(expected, abs=1e-15)}


@AT_K
def test_sample_s_recall(k):
    """Covered over items: 1 + 0, 2 + 1, 3 + 1 of 3 + 2; macro means of 1/3, 2/3, 1 and 0, 1/2."""
    micro = (1 / 5, 3 / 5, 4 / 5)[column(k)]
    macro = (1 / 6, 7 / 12, 3 / 4)[column(k)]
    assert sample_s().calculate_recall(k) == {
        "micro_recall": micro,
        "macro_recall": pytest.approx(macro, abs=1e-15),
    }


@AT_K
def test_sample_s_precision(k):
    """Relevant over retrieved: 1 + 0 of 1 + 1, 2 + 1 of 2 + 2, 3 + 1 of 3 + 3."""
    expected = (1 / 2, 3 / 4, 2 / 3)[column(k)]
    assert sample_s().calculate_precision(k) == {
        "micro_precision": expected,
        "macro_precision": pytest.approx(expected, abs=1e-15),
    }


@AT_K
def test_sample_s_f1(k):
    """Harmonic means 2PR/(P + R) of the averages above.

    Micro: 2 · 1/2 · 1/5 / (7/10) = 2/7; 2 · 3/4 · 3/5 / (27/20) = 2/3;
    2 · 2/3 · 4/5 / (22/15) = 8/11.
    Macro: 2 · 1/2 · 1/6 / (2/3) = 1/4; 2 · 3/4 · 7/12 / (4/3) = 21/32;
    2 · 2/3 · 3/4 / (17/12) = 12/17.
    """
    micro = (2 / 7, 2 / 3, 8 / 11)[column(k)]
    macro = (1 / 4, 21 / 32, 12 / 17)[column(k)]
    assert sample_s().calculate_f1_score(k) == {
        "micro_f1": pytest.approx(micro, abs=1e-15),
        "macro_f1": pytest.approx(macro, abs=1e-15),
    }


@AT_K
def test_sample_s_ndcg(k):
    """Query 1 is perfect. Query 2 earns 1/log2(3) of 1 + 1/log2(3) from rank 2 on, 0 before."""
    second = AT_2 / (1 + AT_2)
    expected = (1 / 2, (1 + second) / 2, (1 + second) / 2)[column(k)]
    computed = sample_s().calculate_ndcg(k)
    assert computed == {"ndcg": pytest.approx(expected, abs=1e-15)}
    assert round(expected, 6) in (0.5, 0.693426)


@AT_K
def test_sample_s_ndcg_as_krag_printed_it(k):
    """The ideal list of query 2 holds doc4 alone, the one that came back: 1/log2(3) of 1."""
    expected = (1 / 2, (1 + AT_2) / 2, (1 + AT_2) / 2)[column(k)]
    computed = sample_s(conventions=Conventions.krag()).calculate_ndcg(k)
    assert computed == {"ndcg": pytest.approx(expected, abs=1e-15)}


def test_sample_s_ndcg_at_10_is_the_article_s_to_the_last_digit():
    """The article that introduced krag prints 0.8154648767857288."""
    evaluator = sample_s(conventions=Conventions.krag())
    assert evaluator.calculate_ndcg(10)["ndcg"] == pytest.approx(0.8154648767857288, abs=1e-16)


@AT_K
def test_sample_s_mean_rank(k):
    """First relevant ranks 1 and 2; the second counts from k = 2 on."""
    expected = [(1.0, 0.5), (1.5, 1.0), (1.5, 1.0)][column(k)]
    assert sample_s().calculate_mean_rank(k) == dict(
        zip(("mean_rank", "found_rate"), expected, strict=True)
    )


@AT_K
def test_sample_s_in_one_go(k):
    """``evaluate`` gives the numbers of the ``calculate_*`` methods, digit for digit."""
    evaluator = sample_s()
    one_by_one = {}
    for calculate in (
        evaluator.calculate_hit_rate,
        evaluator.calculate_precision,
        evaluator.calculate_recall,
        evaluator.calculate_f1_score,
        evaluator.calculate_mrr,
        evaluator.calculate_map,
        evaluator.calculate_ndcg,
        evaluator.calculate_mean_rank,
    ):
        one_by_one |= calculate(k)
    # Something is found for a query if and only if its rank is defined.
    assert evaluator.evaluate(k).averages(k) == one_by_one | {"success": one_by_one["found_rate"]}


# --- AutoRAG's examples ----------------------------------------------------------------------

AUTORAG = [
    (
        # Item 1 at ranks 1 and 3, item 2 missing. Precision t1, t2 of four.
        # nDCG: t1 and t2 both gain, 1 + 1/log2(4); ideal: three alternatives, all within four.
        # RR (1/1 + 0)/2. AP ((1/1 + 2/3)/2 + 0)/2.
        [AnyOf(["t1", "t2"]), "t3"],
        ["t1", "p", "t2", "q"],
        {
            "recall": 1 / 2,
            "precision": 1 / 2,
            "f1": 1 / 2,
            "ndcg": 0.7039180890341347,  # (1 + AT_3) / (1 + AT_2 + AT_3)
            "reciprocal_rank": 1 / 2,
            "average_precision": 5 / 12,
        },
    ),
    (
        # Item 2 at rank 1, items 1 and 3 missing. F1 2 · 1/3 · 1/4 / (7/12).
        # nDCG: 1 over an ideal of five alternatives cut to the four retrieved.
        # RR (0 + 1/1 + 0)/3, AP likewise.
        [AnyOf(["t4", "t5"]), AnyOf(["t6", "t7"]), "t8"],
        ["t6", "x", "y", "z"],
        {
            "recall": 1 / 3,
            "precision": 1 / 4,
            "f1": 2 / 7,
            "ndcg": 0.3903800499921017,  # 1 / (1 + AT_2 + AT_3 + AT_4)
            "reciprocal_rank": 1 / 3,
            "average_precision": 1 / 3,
        },
    ),
    (
        # Items at ranks -, 2, 1. F1 2 · 2/3 · 1/2 / (7/6).
        # RR (0 + 1/2 + 1/1)/3. AP: each item's own first hit, (0 + 1/2 + 1/1)/3.
        ["t11", "t12", "t13"],
        ["t13", "t12", "x", "y"],
        {
            "recall": 2 / 3,
            "precision": 1 / 2,
            "f1": 4 / 7,
            "ndcg": 0.7653606369886217,  # (1 + AT_2) / (1 + AT_2 + AT_3)
            "reciprocal_rank": 1 / 2,
            "average_precision": 1 / 2,
        },
    ),
]


@pytest.mark.parametrize(("items", "retrieved", "expected"), AUTORAG)
def test_autorag_s_published_values(items, retrieved, expected):
    """The values of AutoRAG's own tests, to all their digits."""
    evaluator = OfflineRetrievalEvaluator([items], [retrieved], conventions=Conventions.autorag())
    row = evaluator.evaluate(None).per_query().loc[0, list(expected)]
    assert row.to_dict() == pytest.approx(expected, abs=1e-15)


def test_autorag_s_macro_values_are_means_over_queries():
    """Its F1 over the three queries above is the mean of their F1: (1/2 + 2/7 + 4/7)/3 = 19/42."""
    evaluator = OfflineRetrievalEvaluator(
        [items for items, _, _ in AUTORAG],
        [retrieved for _, retrieved, _ in AUTORAG],
        conventions="autorag",
    )
    assert evaluator.calculate_f1_score()["macro_f1"] == pytest.approx(19 / 42, abs=1e-15)


def test_autorag_s_mrr_of_items_at_ranks_2_and_4():
    """(1/2 + 1/4)/2 = 0.375; by default it is 1/2, the first relevant rank alone."""
    evaluator = OfflineRetrievalEvaluator([["t2", "t4"]], [["x", "t2", "y", "t4"]])
    assert evaluator.with_conventions(Conventions.autorag()).calculate_mrr() == {"mrr": 0.375}
    assert evaluator.calculate_mrr() == {"mrr": 0.5}


def test_the_first_autorag_example_by_default():
    """Credit once, at rank 1.

    RR 1. AP (1/1)/2. nDCG 1 of 1 + 1/log2(3): two items.
    """
    items, retrieved, _ = AUTORAG[0]
    row = OfflineRetrievalEvaluator([items], [retrieved]).evaluate(None).per_query().loc[0]
    assert row["reciprocal_rank"] == 1.0
    assert row["average_precision"] == 0.5
    assert row["ndcg"] == pytest.approx(1 / (1 + AT_2), abs=1e-15)


# --- grades ----------------------------------------------------------------------------------


def graded(*grades):
    """Return a query whose i-th document matches one item of that grade."""
    items = [Item({rank: 1.0}, float(grade)) for rank, grade in enumerate(grades, 1)]
    return Query(items, len(grades))


# Linear gain. First list:
#   DCG  3 + 2 · 0.63093 + 3 · 0.5 + 0 + 1 · 0.386853 = 6.148712   (6.149)
#   IDCG 3, 3, 2, 1: 3 + 3 · 0.63093 + 2 · 0.5 + 1 · 0.430677 = 6.323466   (6.324 of rounded terms)
# Second list:
#   DCG  3 + 1 · 0.63093 + 2 · 0.5 + 0 + 1 · 0.386853 = 5.017783   (5.018)
#   IDCG 3, 2, 1, 1: 3 + 2 · 0.63093 + 1 · 0.5 + 1 · 0.430677 = 5.192537   (5.193; not 6.39)
GRADED = [
    (
        (3, 2, 3, 0, 1),
        3 + 2 * AT_2 + 3 * AT_3 + 1 * AT_5,
        3 + 3 * AT_2 + 2 * AT_3 + 1 * AT_4,
        (6.149, 6.323, 0.972),
    ),
    (
        (3, 1, 2, 0, 1),
        3 + 1 * AT_2 + 2 * AT_3 + 1 * AT_5,
        3 + 2 * AT_2 + 1 * AT_3 + 1 * AT_4,
        (5.018, 5.193, 0.966),
    ),
]


@pytest.mark.parametrize("k", [5, None])
@pytest.mark.parametrize(("grades", "dcg", "ideal", "rounded"), GRADED)
def test_graded_lists_with_linear_gain(k, grades, dcg, ideal, rounded):
    """NDCG at 5 is the one sum over the other; a grade of 0 is no ground truth."""
    assert (round(dcg, 3), round(ideal, 3), round(dcg / ideal, 3)) == rounded
    computed = value("ndcg", graded(*grades), Conventions(gain="linear"), k)
    assert computed == pytest.approx(dcg / ideal, abs=1e-12)


@pytest.mark.parametrize(("grades", "dcg", "ideal", "rounded"), GRADED)
def test_graded_lists_from_metadata(grades, dcg, ideal, rounded):
    """The same from documents that carry their grade in their metadata."""
    actual = [
        {"page_content": f"doc{rank}", "metadata": {"relevance": grade}}
        for rank, grade in enumerate(grades, 1)
    ]
    evaluator = OfflineRetrievalEvaluator(
        [actual],
        [[f"doc{rank}" for rank in range(1, 6)]],
        grade_key="relevance",
        conventions=Conventions(gain="linear"),
    )
    assert evaluator.calculate_ndcg(5)["ndcg"] == pytest.approx(dcg / ideal, abs=1e-12)


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        # Gains 7, 3, 7, 1. DCG 7 + 3 · 0.63093 + 7 · 0.5 + 0.386853; ideal 7, 7, 3, 1.
        (
            (3, 2, 3, 0, 1),
            (7 + 3 * AT_2 + 7 * AT_3 + AT_5) / (7 + 7 * AT_2 + 3 * AT_3 + AT_4),
        ),
        # Gains 7, 1, 3, 1. DCG 7 + 0.63093 + 3 · 0.5 + 0.386853; ideal 7, 3, 1, 1.
        (
            (3, 1, 2, 0, 1),
            (7 + 1 * AT_2 + 3 * AT_3 + AT_5) / (7 + 3 * AT_2 + 1 * AT_3 + AT_4),
        ),
    ],
)
def test_graded_lists_with_exponential_gain(grades, expected):
    """The default gain is 2**grade - 1."""
    assert value("ndcg", graded(*grades)) == pytest.approx(expected, abs=1e-12)


# --- average precision and overlaps ----------------------------------------------------------


def test_average_precision_of_a_list_of_ten():
    """R N R R N N R N R N with 5 relevant.

    Relevant ranks 1, 3, 4, 7, 9: (1/1 + 2/3 + 3/4 + 4/7 + 5/9)/5 = 893/1260 = 0.7087 (0.71).
    """
    query = Query([Item({rank: 1.0}) for rank in (1, 3, 4, 7, 9)], 10)
    assert value("average_precision", query) == pytest.approx(893 / 1260, abs=1e-15)
    assert round(893 / 1260, 4) == 0.7087


def test_one_item_retrieved_three_times():
    """It is credited at rank 1 and never again: AP (1/1)/1, nDCG 1/1."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a", "a", "a"]])
    assert evaluator.calculate_map() == {"map": 1.0}
    assert evaluator.calculate_ndcg() == {"ndcg": 1.0}
    assert evaluator.calculate_precision()["macro_precision"] == 1.0


def test_one_item_retrieved_three_times_as_krag_rewards_it():
    """AP 1/1 + 2/2 + 3/3 = 3, nDCG 1 + 0.6309 + 0.5 = 2.13 over an ideal of 1."""
    evaluator = OfflineRetrievalEvaluator(
        [["a"]], [["a", "a", "a"]], conventions=Conventions(credit="every")
    )
    assert evaluator.calculate_map() == {"map": 3.0}
    assert evaluator.calculate_ndcg()["ndcg"] == pytest.approx(1 + AT_2 + AT_3, abs=1e-15)
    assert round(1 + AT_2 + AT_3, 2) == 2.13


@pytest.mark.parametrize("predicted", [["A"], ["A", "x", "y"]])
@pytest.mark.parametrize("k", [3, 10, None])
def test_truths_a_b_c_and_only_a_retrieved_first(predicted, k):
    """AP (1/1)/3, nDCG 1 / (1 + 0.6309 + 0.5) = 0.469, as in trec_eval."""
    evaluator = OfflineRetrievalEvaluator([["A", "B", "C"]], [predicted])
    assert evaluator.calculate_map(k)["map"] == pytest.approx(1 / 3, abs=1e-15)
    expected = 1 / (1 + AT_2 + AT_3)
    assert evaluator.calculate_ndcg(k)["ndcg"] == pytest.approx(expected, abs=1e-15)
    assert round(expected, 3) == 0.469


def test_truths_a_b_c_and_only_a_retrieved_as_other_tools_have_it():
    """An ideal list of what was retrieved holds A alone: 1."""
    evaluator = OfflineRetrievalEvaluator(
        [["A", "B", "C"]], [["A"]], conventions=Conventions(ideal="retrieved")
    )
    assert evaluator.calculate_ndcg() == {"ndcg": 1.0}


@pytest.mark.parametrize("k", [1, 2, None])
def test_one_chunk_that_holds_both_of_two_items(k):
    """Rank 1 covers both: recall 2/2, AP (1/1 + 1/1)/2, nDCG at places 1 and 2: 1.6309/1.6309."""
    evaluator = OfflineRetrievalEvaluator(
        [["fees", "hours"]], [["hours and fees", "other"]], matcher="contains"
    )
    assert evaluator.calculate_recall(k) == {"micro_recall": 1.0, "macro_recall": 1.0}
    assert evaluator.calculate_map(k) == {"map": 1.0}
    assert evaluator.calculate_ndcg(k) == {"ndcg": 1.0}


def test_one_chunk_that_holds_both_of_two_items_at_rank_2():
    """AP (1/2 + 1/2)/2. Places 2 and 3 of two items: (0.6309 + 0.5) / 1.6309 = 0.6934."""
    evaluator = OfflineRetrievalEvaluator(
        [["fees", "hours"]], [["other", "hours and fees"]], matcher="contains"
    )
    assert evaluator.calculate_map() == {"map": 0.5}
    expected = (AT_2 + AT_3) / (1 + AT_2)
    assert evaluator.calculate_ndcg()["ndcg"] == pytest.approx(expected, abs=1e-15)


def test_three_items_of_which_one_chunk_holds_two():
    """Both at rank 1, the third missing: nDCG (1 + 0.6309)/2.1309 = 0.7654, AP (1 + 1)/3."""
    evaluator = OfflineRetrievalEvaluator(
        [["fees", "hours", "rooms"]], [["hours and fees"]], matcher="contains"
    )
    expected = (1 + AT_2) / (1 + AT_2 + AT_3)
    assert evaluator.calculate_ndcg()["ndcg"] == pytest.approx(expected, abs=1e-15)
    assert evaluator.calculate_map()["map"] == pytest.approx(2 / 3, abs=1e-15)


def test_a_rich_chunk_is_worth_as_much_as_the_single_ones_it_replaces():
    """Five items by five chunks or by three, of which the last holds three: 1; in 0.1.0 .758.

    That was (1 + 0.6309 + 3 · 0.5) over the same gains sorted, 3 + 0.6309 + 0.5.
    """
    items = ["fees", "hours", "rooms", "loans", "holds"]
    single = OfflineRetrievalEvaluator([items], [items], matcher="contains")
    rich = OfflineRetrievalEvaluator(
        [items], [["fees", "hours", "rooms, loans and holds"]], matcher="contains"
    )
    for k in (3, 5, None):
        assert single.calculate_ndcg(k) == rich.calculate_ndcg(k) == {"ndcg": 1.0}
    before = (1 + AT_2 + 3 * AT_3) / (3 + AT_2 + AT_3)
    retrieved = rich.with_conventions(Conventions(ideal="retrieved"))
    assert retrieved.calculate_ndcg()["ndcg"] == pytest.approx(before, abs=1e-15)
    assert before == pytest.approx(0.758, abs=5e-4)


# --- presets on sample S ---------------------------------------------------------------------


def test_sample_s_under_trec_conventions_at_5():
    """Precision is over 5: 3/5 and 1/5.

    F1: 2 · 3/5 · 1 / (8/5) = 3/4 and 2 · 1/5 · 1/2 / (7/10) = 2/7.
    """
    averages = sample_s(conventions=Conventions.trec()).evaluate(5).averages()
    assert averages["macro_precision"] == pytest.approx(2 / 5, abs=1e-15)
    assert averages["micro_precision"] == pytest.approx(4 / 10, abs=1e-15)
    assert averages["macro_f1"] == pytest.approx((3 / 4 + 2 / 7) / 2, abs=1e-15)


def test_sample_s_under_autorag_conventions():
    """RR (1/1 + 1/2 + 1/3)/3 = 11/18 and (0 + 1/2)/2 = 1/4; mean 31/72. AP is the same here."""
    averages = sample_s(conventions=Conventions.autorag()).evaluate(5).averages()
    assert averages["mrr"] == pytest.approx(31 / 72, abs=1e-15)
    assert averages["map"] == pytest.approx(31 / 72, abs=1e-15)
    # F1 of the queries: 1 and 2 · 1/3 · 1/2 / (5/6) = 2/5.
    assert averages["macro_f1"] == pytest.approx(7 / 10, abs=1e-15)
