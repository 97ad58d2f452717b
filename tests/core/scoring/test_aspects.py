"""Aspects of a question: how many of them came back, and how soon each new one did."""

import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from reference import CUTOFFS, relevance_of
from results_made import read_back
from trials import trials

from krag_eval import (
    METRICS,
    AnyOf,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
)
from krag_eval.core.conventions import DEFAULT_CONVENTIONS
from krag_eval.core.scoring.relevance import Aspects

short = pytest.mark.filterwarnings(
    "ignore:.*(no more than|see no more|matched nothing|few|Fewer|same value)"
)


def passage(text, *aspects):
    """Return a document that speaks to these aspects."""
    return {"page_content": text, "metadata": {"sub_question": list(aspects)}}


def evaluated(actual, predicted, k=None, **options):
    """Evaluate by the aspects."""
    options = {"aspect_key": "sub_question", **options}
    return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(k)


# a: A, b: B and D, c: C
FOUR = [passage("A", "a"), passage("B", "b"), passage("D", "b"), passage("C", "c")]
# 0: d0 and d1, 1: d0
TWO = [passage("d0", 0, 1), passage("d1", 0)]


# --- values ----------------------------------------------------------------------------------


@short
@pytest.mark.parametrize(
    ("actual", "run", "alpha_ndcg", "aspect_recall"),
    [
        # DCG 1 + 1/log2(3) + .5/log2(5); the best list is A, B, C, D.
        (FOUR, "A D E B", 0.786896, 2 / 3),
        (FOUR, "A B C D", 1.0, 1.0),
        (FOUR, "x y", 0.0, 0.0),
        # The best list gains 2 and then .5/log2(3).
        (TWO, "d0", 0.863757, 1.0),
        (TWO, "d1", 0.431879, 0.5),
    ],
)
def test_values_of_ndeval(actual, run, alpha_ndcg, aspect_recall):
    """As TREC's ndeval (pyndeval) gives them, to its six digits."""
    table = evaluated([actual], [run.split()], 5).tables[5]
    assert table["alpha_ndcg(alpha=0.5)"][0] == pytest.approx(alpha_ndcg, abs=5e-7)
    assert table["aspect_recall"][0] == pytest.approx(aspect_recall)


@short
@pytest.mark.parametrize(
    ("judged", "run", "at_5", "at_10"),
    [
        # Made by pyndeval 0.0.8 from random judgements: the aspects of d0, d1, … ("-" where it is
        # not judged). Of documents that gain the same, its best list takes the last one by name;
        # ours the first one of the ground truth.
        ("c bcd d e ae bcde", "d3 d2", 0.276392373648036, 0.27228320150969076),
        ("b ab a a a b", "d0 d3 d4", 0.6790734670387575, 0.6683299177863806),
        ("ace abce b ae abd de de abe", "d1 d7", 0.7724766578647672, 0.7510640160642034),
        ("ab a ab ab b c bc", "d0 d4", 0.6288943373233467, 0.6179249553383052),
        ("bc - c - ab", "d0 d2", 0.7243989383522971, 0.7243989383522971),
        ("abc abd - abce abcd abe", "d2 d0 d3 d4", 0.5952993372093859, 0.5952993372093857),
        (
            "bd abcde abc - abce e ae cde de",
            "d5 d3 d1 d6 d7",
            0.558550692016204,
            0.5462637334709978,
        ),
        ("- ab b ab", "d4 d3 d1 d0", 0.6392976834259619, 0.639297683425962),
        ("a b a - ab b - b a", "d1 d3 d8 d7 d2 d6 d4", 0.6891227321752931, 0.7266815264802062),
        ("bc d bce", "d1 d0 d2", 0.7896187303409903, 0.7896187303409904),
        ("c d - b abc c", "d3 d0", 0.3889666236005244, 0.3889666236005245),
        ("- d - a", "d2 d1", 0.3868528072345416, 0.3868528072345416),
    ],
)
def test_agrees_with_ndeval(judged, run, at_5, at_10):
    """Documents with any number of aspects, unjudged ones among those retrieved."""
    listed = [(f"d{at}", one) for at, one in enumerate(judged.split()) if one != "-"]
    actual = [passage(name, *aspects) for name, aspects in reversed(listed)]
    result = evaluated([actual], [run.split()], [5, 10])
    found = [result.averages(k)["alpha_ndcg(alpha=0.5)"] for k in (5, 10)]
    assert found == pytest.approx([at_5, at_10], abs=1e-12)


def in_best_order(items, alpha, depth):
    """Return DCG of picking, again and again, the item that gains most: all pairs, no heap."""
    left, seen, total = list(items), [], 0.0
    for place in range(1, min(depth, len(items)) + 1):
        gains = [sum((1 - alpha) ** seen.count(one) for one in item) for item in left]
        best = gains.index(max(gains))
        total += gains[best] / math.log2(place + 1)
        seen += left.pop(best)
    return total


def in_turns(found, alpha):
    """Return DCG of items found at ranks: at each place the one that gains most of those there."""
    waiting, seen, total, place = sorted(found, key=lambda one: one[0]), [], 0.0, 0
    while waiting:
        place += 1
        there = [one for one in waiting if one[0] <= place]
        if there:
            gains = [sum((1 - alpha) ** seen.count(name) for name in one[1]) for one in there]
            best = there[gains.index(max(gains))]
            total += max(gains) / math.log2(place + 1)
            seen += best[1]
            waiting.remove(best)
    return total


@settings(max_examples=trials(150))
@given(
    queries=st.lists(reference.queries(), min_size=1, max_size=3),
    names=st.lists(st.lists(st.sampled_from("abc"), unique=True), min_size=9, max_size=9),
    k=CUTOFFS,
    alpha=st.sampled_from([0.5, 0.1, 0.9]),
)
def test_agrees_with_the_plain_definitions(queries, names, k, alpha):
    """Any overlaps: documents that cover several items, items covered several times."""
    found = relevance_of(queries)
    items = [item for query in queries for item in query.items]
    names = [sorted(of_item) or [number] for number, of_item in enumerate(names[: len(items)])]
    given_names = [tuple(map(str, one)) for one in names]
    here = np.arange(len(items))
    aspects, _ = Aspects.of(given_names, found.item_query, here, np.full(len(items), True))
    found = replace(found, aspects=aspects)
    alpha_ndcg = METRICS["alpha_ndcg"].at(settings={"alpha": repr(alpha)})
    values = alpha_ndcg.values(found, k, DEFAULT_CONVENTIONS).tolist()
    recalls = METRICS["aspect_recall"].values(found, k, DEFAULT_CONVENTIONS).tolist()
    start = 0
    for query, value, recall in zip(queries, values, recalls, strict=True):
        mine = list(map(list, given_names[start : start + len(query.items)]))
        start += len(query.items)
        firsts = [
            min((r for r, s in one.similarity.items() if s >= reference.THRESHOLD), default=99)
            for one in query.items
        ]
        seen = [(r, one) for r, one in zip(firsts, mine, strict=True) if r <= (k or 98)]
        ideal = in_best_order(mine, alpha, k or len(mine))
        expected = min(1.0, in_turns(seen, alpha) / ideal) if ideal else 0.0
        assert value == pytest.approx(expected, abs=1e-12)
        every = {name for one in mine for name in one}
        covered = {name for _, one in seen for name in one}
        assert recall == pytest.approx(len(covered) / len(every) if every else 0.0)


def test_one_document_that_holds_everything_has_1():
    """Its items queue, the one that gains most first, as in the best list."""
    actual = [passage(one, name) for one, name in ("bb", "db", "aa")]
    rich = evaluated([actual], [["x", "b d a"]], [1, 2, 5], matcher="contains")
    expected = (1 / math.log2(3) + 1 / 2 + 0.5 / math.log2(5)) / (1 + 1 / math.log2(3) + 0.25)
    values = [rich.averages(k)["alpha_ndcg(alpha=0.5)"] for k in (1, 5)]
    assert values == pytest.approx([0.0, expected])
    first = evaluated([actual], [["b d a"]], [1], matcher="contains")
    assert first.averages(1)["alpha_ndcg(alpha=0.5)"] == 1.0
    assert first.averages(1)["aspect_recall"] == 1.0


def test_documents_that_repeat_an_aspect_gain_less_and_less():
    """1, then 1 - alpha, then its square; what adds nothing new lowers no recall of aspects."""
    actual = [passage(one, "same") for one in "ABC"] + [passage("D", "other")]
    again = evaluated([actual], [list("ABCD")], 4).averages(4)["alpha_ndcg(alpha=0.5)"]
    dcg = 1 + 0.5 / math.log2(3) + 0.25 / 2 + 1 / math.log2(5)
    assert again == pytest.approx(dcg / (1 + 1 / math.log2(3) + 0.5 / 2 + 0.25 / math.log2(5)))


# --- what the ground truth says --------------------------------------------------------------


@short
def test_a_document_listed_once_for_each_aspect_has_them_all():
    """As the rows of TREC's judgements list it; nothing is warned of, and nothing counts twice."""
    actual = [passage("d0", 0), passage("d1", 0), passage("d0", 1)]
    one, other = (evaluated([truth], [["d0"]], 5) for truth in (actual, TWO))
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize(
    ("actual", "beginning", "recall"),
    [
        # The second brings nothing to the first.
        ([passage("d0", 0, 1), passage("d0", 1)], "1 ground-truth documents repeat", 1.0),
        # Without an aspect a document is one of its own.
        (["d0", "B", passage("C", "c")], ".*2 ground-truth items have no aspect", 1 / 3),
    ],
)
def test_aspects_that_say_nothing_are_warned_of(actual, beginning, recall):
    """With how many there are."""
    with pytest.warns(KragEvalWarning, match=beginning):
        result = evaluated([actual], [["d0"]])
    assert result.averages()["aspect_recall"] == pytest.approx(recall)


def test_what_is_no_ground_truth_has_no_aspects():
    """A document of grade 0 is listed, and its aspect need not be found."""
    actual = [[passage("A", "a"), passage("B", "b")]]
    actual[0][1]["metadata"]["grade"] = 0
    assert evaluated(actual, [["A"]], grade_key="grade").averages()["aspect_recall"] == 1.0


def test_interchangeable_documents_have_the_same_aspects():
    """Whichever came back, it speaks to them."""
    same = AnyOf([passage("A", "x", "y"), passage("B", "y", "x")])
    assert evaluated([[same]], [["B"]]).averages()["aspect_recall"] == 1.0


@short
def test_other_metrics_do_not_change():
    """To the digit; the signature names the key."""
    with_key = evaluated([FOUR], [list("ADEB")], [1, 5])
    without = evaluated([FOUR], [list("ADEB")], [1, 5], aspect_key=None)
    shared = {name: with_key.to_dict()[name] for name in without.to_dict()}
    assert shared == without.to_dict()
    assert "aspects" not in without.settings
    assert with_key.settings["aspects"] == "sub_question"


# --- wherever results go ---------------------------------------------------------------------

LONG = [[*FOUR], [*TWO], [passage("e", "x"), passage("f", "x", "y")]] * 12
RUNS = [list("ADEB"), ["d1", "z"], ["z", "f", "e"]] * 12


@short
def test_a_saved_result_has_aspects_at_other_thresholds_and_in_slices(tmp_path):
    """As the result in memory; streams and parts are compared in test_registry.py."""
    tags = {"kind": ["four", "two", "long"] * 12}
    whole = evaluated(LONG, RUNS, [2, None], tags=tags, matcher="coverage")
    read = read_back(whole, tmp_path, texts=True)
    wanted = ["aspect_recall@2", "alpha_ndcg@2", "alpha_ndcg(alpha=0.9)@all"]
    table = whole.metrics_at_thresholds(wanted, [0.5, 0.8])
    assert read.metrics_at_thresholds(wanted, [0.5, 0.8]).equals(table)
    slices = read.by("kind", metrics="alpha_ndcg", n_resamples=200).table
    assert set(slices["slice"]) == {"four", "two", "long"}


@short
def test_budgets_and_pieces():
    """A budget cuts the list; pieces that complete an item together speak to its aspects."""
    actual = [[passage("one two three four five six", "a"), passage("seven eight nine", "b")]]
    runs = [["one two three four", "three four five six", "seven eight nine"]]
    result = OfflineRetrievalEvaluator(
        actual, runs, "coverage(union=yes,min_run=2)", threshold=0.9, aspect_key="sub_question"
    ).evaluate(budget=[4, 8, 11])
    assert result.metrics["aspect_recall"].tolist() == [0.0, 0.5, 1.0]
    value = result.metrics["alpha_ndcg(alpha=0.5)"].tolist()[2]
    assert value == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)))
