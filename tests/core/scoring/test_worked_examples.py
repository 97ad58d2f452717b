"""The worked examples of the documentation, each derived by hand."""

import math

import pytest
from reference import Item, Query, relevance_of
from results_made import sample_s

from krag_eval import METRICS, AnyOf, Conventions, OfflineRetrievalEvaluator

# The discount at ranks 2, 3, 4 and 5; at rank 1 it is 1.
AT_2, AT_3, AT_4, AT_5 = (1 / math.log2(rank + 1) for rank in (2, 3, 4, 5))
KRAG = Conventions.krag()


def value(name, query, conventions=None, k=None):
    """Return a metric's value for one query of given similarities and grades."""
    return METRICS[name].compute(relevance_of([query]), k, conventions or Conventions())[0]


# --- sample S --------------------------------------------------------------------------------
#
# Query 1: items doc1, doc2, doc5, found at ranks 1, 2, 3.
# Query 2: items doc3, doc4; doc4 found at rank 2, doc3 not at all.
# No list is longer than three, so every cutoff from 3 on is the same.

# In nDCG, query 1 is perfect; query 2 earns 1/log2(3) of 1 + 1/log2(3) from rank 2 on, 0 before.
SECOND = AT_2 / (1 + AT_2)
# Average -> its value at 1, 2 and from 3 on.
SAMPLE_S = {
    "hit_rate": (0, 0, 1 / 2),  # query 1 is complete at 3, query 2 never
    # First relevant ranks 1 and 2: (1 + 0)/2 at 1, (1 + 1/2)/2 from 2 on.
    "mrr": (1 / 2, 3 / 4, 3 / 4),
    # Precision at each item's first rank, over all items.
    # At 1: (1/1)/3 and 0, mean 1/6. At 2: (1/1 + 2/2)/3 and (1/2)/2, mean 11/24.
    # At 3: (1/1 + 2/2 + 3/3)/3 and (1/2)/2, mean 5/8.
    "map": (1 / 6, 11 / 24, 5 / 8),
    # Covered over items: 1 + 0, 2 + 1, 3 + 1 of 3 + 2; macro means of 1/3, 2/3, 1 and 0, 1/2.
    "micro_recall": (1 / 5, 3 / 5, 4 / 5),
    "macro_recall": (1 / 6, 7 / 12, 3 / 4),
    # Relevant over retrieved: 1 + 0 of 1 + 1, 2 + 1 of 2 + 2, 3 + 1 of 3 + 3.
    "micro_precision": (1 / 2, 3 / 4, 2 / 3),
    "macro_precision": (1 / 2, 3 / 4, 2 / 3),
    # Harmonic means 2PR/(P + R) of the averages above.
    # Micro: 2 · 1/2 · 1/5 / (7/10) = 2/7; 2 · 3/4 · 3/5 / (27/20) = 2/3;
    # 2 · 2/3 · 4/5 / (22/15) = 8/11.
    "micro_f1": (2 / 7, 2 / 3, 8 / 11),
    # Macro: 2 · 1/2 · 1/6 / (2/3) = 1/4; 2 · 3/4 · 7/12 / (4/3) = 21/32;
    # 2 · 2/3 · 3/4 / (17/12) = 12/17.
    "macro_f1": (1 / 4, 21 / 32, 12 / 17),
    "ndcg": (1 / 2, (1 + SECOND) / 2, (1 + SECOND) / 2),
    # First relevant ranks 1 and 2; the second counts from k = 2 on.
    "mean_rank": (1.0, 1.5, 1.5),
    "found_rate": (0.5, 1.0, 1.0),
}


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 10, None])
def test_sample_s(k):
    """Every average by its own method and in one go, digit for digit."""
    evaluator, column = sample_s(), 2 if k is None else min(k, 3) - 1
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
    expected = {name: values[column] for name, values in SAMPLE_S.items()}
    assert one_by_one == pytest.approx(expected, abs=1e-15)
    # Something is found for a query if and only if its rank is defined.
    assert evaluator.evaluate(k).averages(k) == one_by_one | {"success": one_by_one["found_rate"]}
    # A hit by any of the ground truth: query 1 has something at 1, query 2 at 2.
    partial = sample_s(matching_criteria="partial").calculate_hit_rate(k)
    assert partial == {"hit_rate": (1 / 2, 1, 1)[column]}
    # krag's ideal list of query 2 holds doc4 alone, the one that came back: 1/log2(3) of 1.
    as_krag = (1 / 2, (1 + AT_2) / 2, (1 + AT_2) / 2)[column]
    computed = sample_s(conventions=KRAG).calculate_ndcg(k)
    assert computed == {"ndcg": pytest.approx(as_krag, abs=1e-15)}


def test_sample_s_as_it_was_published():
    """The article that introduced krag prints 0.8154648767857288; 0.693426 is the default."""
    computed = sample_s(conventions=KRAG).calculate_ndcg(10)["ndcg"]
    assert computed == pytest.approx(0.8154648767857288, abs=1e-16)
    assert round(sample_s().calculate_ndcg(10)["ndcg"], 6) == 0.693426


@pytest.mark.parametrize(
    ("conventions", "expected"),
    [
        # Precision is over 5: 3/5 and 1/5. F1: 2 · 3/5 · 1 / (8/5) = 3/4 and
        # 2 · 1/5 · 1/2 / (7/10) = 2/7.
        ("trec", {"macro_precision": 2 / 5, "micro_precision": 4 / 10,
                  "macro_f1": (3 / 4 + 2 / 7) / 2}),
        # RR (1/1 + 1/2 + 1/3)/3 = 11/18 and (0 + 1/2)/2 = 1/4; mean 31/72. AP is the same here.
        # F1 of the queries: 1 and 2 · 1/3 · 1/2 / (5/6) = 2/5.
        ("autorag", {"mrr": 31 / 72, "map": 31 / 72, "macro_f1": 7 / 10}),
    ],
)  # fmt: skip
def test_sample_s_under_other_conventions_at_5(conventions, expected):
    """The averages that differ from the default."""
    averages = sample_s(conventions=conventions).evaluate(5).averages()
    found = {name: averages[name] for name in expected}
    assert found == pytest.approx(expected, abs=1e-15)


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
    evaluator = OfflineRetrievalEvaluator([items], [retrieved], conventions="autorag")
    row = evaluator.evaluate(None).per_query().loc[0, list(expected)]
    assert row.to_dict() == pytest.approx(expected, abs=1e-15)


def test_autorag_s_macro_values_are_means_over_queries():
    """Its F1 over the three queries above is the mean of their F1: (1/2 + 2/7 + 4/7)/3 = 19/42."""
    items, retrieved, _ = zip(*AUTORAG, strict=True)
    evaluator = OfflineRetrievalEvaluator(items, retrieved, conventions="autorag")
    assert evaluator.calculate_f1_score()["macro_f1"] == pytest.approx(19 / 42, abs=1e-15)


# --- grades ----------------------------------------------------------------------------------


# Linear gain. First list:
#   DCG  3 + 2 · 0.63093 + 3 · 0.5 + 0 + 1 · 0.386853 = 6.148712   (6.149)
#   IDCG 3, 3, 2, 1: 3 + 3 · 0.63093 + 2 · 0.5 + 1 · 0.430677 = 6.323466   (6.324 of rounded terms)
# Second list:
#   DCG  3 + 1 · 0.63093 + 2 · 0.5 + 0 + 1 · 0.386853 = 5.017783   (5.018)
#   IDCG 3, 2, 1, 1: 3 + 2 · 0.63093 + 1 · 0.5 + 1 · 0.430677 = 5.192537   (5.193; not 6.39)
# The default gain is 2**grade - 1. First list:
#   Gains 7, 3, 7, 1. DCG 7 + 3 · 0.63093 + 7 · 0.5 + 0.386853; ideal 7, 7, 3, 1.
# Second list:
#   Gains 7, 1, 3, 1. DCG 7 + 0.63093 + 3 · 0.5 + 0.386853; ideal 7, 3, 1, 1.
@pytest.mark.parametrize("k", [5, None])
@pytest.mark.parametrize(
    ("grades", "gain", "dcg", "ideal", "rounded"),
    [
        ((3, 2, 3, 0, 1), "linear", 3 + 2 * AT_2 + 3 * AT_3 + 1 * AT_5,
         3 + 3 * AT_2 + 2 * AT_3 + 1 * AT_4, (6.149, 6.323, 0.972)),
        ((3, 1, 2, 0, 1), "linear", 3 + 1 * AT_2 + 2 * AT_3 + 1 * AT_5,
         3 + 2 * AT_2 + 1 * AT_3 + 1 * AT_4, (5.018, 5.193, 0.966)),
        ((3, 2, 3, 0, 1), "exponential", 7 + 3 * AT_2 + 7 * AT_3 + AT_5,
         7 + 7 * AT_2 + 3 * AT_3 + AT_4, (12.78, 13.347, 0.957)),
        ((3, 1, 2, 0, 1), "exponential", 7 + 1 * AT_2 + 3 * AT_3 + AT_5,
         7 + 3 * AT_2 + 1 * AT_3 + AT_4, (9.518, 9.823, 0.969)),
    ],
)  # fmt: skip
def test_graded_lists(k, grades, gain, dcg, ideal, rounded):
    """NDCG at 5 is the one sum over the other; a grade of 0 is no ground truth.

    So it is of documents that carry their grade in their metadata.
    """
    assert (round(dcg, 3), round(ideal, 3), round(dcg / ideal, 3)) == rounded
    conventions = Conventions(gain=gain)
    items = [Item({rank: 1.0}, float(grade)) for rank, grade in enumerate(grades, 1)]
    computed = value("ndcg", Query(items, len(grades)), conventions, k)
    assert computed == pytest.approx(dcg / ideal, abs=1e-12)
    actual = [
        {"page_content": f"doc{rank}", "metadata": {"relevance": grade}}
        for rank, grade in enumerate(grades, 1)
    ]
    lists = [[f"doc{rank}" for rank in range(1, 6)]]
    evaluator = OfflineRetrievalEvaluator(
        [actual], lists, grade_key="relevance", conventions=conventions
    )
    assert evaluator.calculate_ndcg(k)["ndcg"] == pytest.approx(dcg / ideal, abs=1e-12)


# --- average precision and overlaps ----------------------------------------------------------


def test_average_precision_of_a_list_of_ten():
    """R N R R N N R N R N with 5 relevant.

    Relevant ranks 1, 3, 4, 7, 9: (1/1 + 2/3 + 3/4 + 4/7 + 5/9)/5 = 893/1260 = 0.7087 (0.71).
    """
    query = Query([Item({rank: 1.0}) for rank in (1, 3, 4, 7, 9)], 10)
    assert value("average_precision", query) == pytest.approx(893 / 1260, abs=1e-15)
    assert round(893 / 1260, 4) == 0.7087


ABC_AT_1 = 1 / (1 + AT_2 + AT_3)
FEES, BOTH = ["fees", "hours"], "hours and fees"
RICH = ["fees", "hours", "rooms", "loans", "holds"]


@pytest.mark.parametrize(
    ("items", "retrieved", "conventions", "cutoffs", "expected"),
    [
        # By default the first relevant rank counts alone; to AutoRAG each: (1/2 + 1/4)/2 = 0.375.
        (["t2", "t4"], ["x", "t2", "y", "t4"], {}, [None], {"mrr": 0.5}),
        (["t2", "t4"], ["x", "t2", "y", "t4"], "autorag", [None], {"mrr": 0.375}),
        # The first of AutoRAG's examples, credited once, at rank 1. AP (1/1)/2; nDCG of two items.
        (AUTORAG[0][0], AUTORAG[0][1], {}, [None],
         {"mrr": 1.0, "map": 0.5, "ndcg": 1 / (1 + AT_2)}),
        # One item retrieved three times is credited at rank 1 and never again: AP (1/1)/1.
        (["a"], ["a", "a", "a"], {}, [None], {"map": 1.0, "ndcg": 1.0, "macro_precision": 1.0}),
        # As krag rewards it: AP 1/1 + 2/2 + 3/3, nDCG 1 + 0.6309 + 0.5 = 2.13 over an ideal of 1.
        (["a"], ["a", "a", "a"], {"credit": "every"}, [None],
         {"map": 3.0, "ndcg": 1 + AT_2 + AT_3}),
        # A alone of A, B, C: AP (1/1)/3, nDCG 1 / (1 + 0.6309 + 0.5) = 0.469, as in trec_eval;
        # an ideal list of what was retrieved, as other tools have it, holds A alone.
        (["A", "B", "C"], ["A"], {}, [3, 10, None], {"map": 1 / 3, "ndcg": ABC_AT_1}),
        (["A", "B", "C"], ["A", "x", "y"], {}, [3, 10, None], {"map": 1 / 3, "ndcg": ABC_AT_1}),
        (["A", "B", "C"], ["A"], {"ideal": "retrieved"}, [None], {"ndcg": 1.0}),
        # One chunk holds both of two items: recall 2/2, AP (1/1 + 1/1)/2, places 1 and 2.
        (FEES, [BOTH, "other"], {}, [1, 2, None],
         {"micro_recall": 1.0, "macro_recall": 1.0, "map": 1.0, "ndcg": 1.0}),
        # At rank 2: AP (1/2 + 1/2)/2; places 2 and 3 of two items: (0.6309 + 0.5) / 1.6309 = .6934.
        (FEES, ["other", BOTH], {}, [None], {"map": 0.5, "ndcg": (AT_2 + AT_3) / (1 + AT_2)}),
        # Two of three at rank 1, one missing: nDCG (1 + 0.6309)/2.1309 = 0.7654, AP (1 + 1)/3.
        ([*FEES, "rooms"], [BOTH], {}, [None],
         {"map": 2 / 3, "ndcg": (1 + AT_2) / (1 + AT_2 + AT_3)}),
        # A rich chunk is worth as much as the single ones it replaces: five items by five chunks or
        # by three, of which the last holds three. In 0.1.0 that was .758: (1 + 0.6309 + 3 · 0.5)
        # over the same gains sorted, 3 + 0.6309 + 0.5.
        (RICH, RICH, {}, [3, 5, None], {"ndcg": 1.0}),
        (RICH, ["fees", "hours", "rooms, loans and holds"], {}, [3, 5, None], {"ndcg": 1.0}),
        (RICH, ["fees", "hours", "rooms, loans and holds"], {"ideal": "retrieved"}, [None],
         {"ndcg": (1 + AT_2 + 3 * AT_3) / (3 + AT_2 + AT_3)}),
    ],
)  # fmt: skip
def test_lists_of_one_query(items, retrieved, conventions, cutoffs, expected):
    """Who is credited, how often, and what the ideal list is."""
    if isinstance(conventions, dict):
        conventions = Conventions(**conventions)
    evaluator = OfflineRetrievalEvaluator(
        [items], [retrieved], matcher="contains", conventions=conventions
    )
    for k in cutoffs:
        averages = evaluator.evaluate(k).averages(k)
        found = {name: averages[name] for name in expected}
        assert found == pytest.approx(expected, abs=1e-15)
