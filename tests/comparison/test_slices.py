"""Slices: how queries are divided, what is measured of them, and gates on each."""

import math
import random
from math import comb

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document
from reference import no_advice
from refusals import blamed
from results_made import read_back, write_lines
from scipy import stats
from systems import result_of

from krag_eval import (
    AnyOf,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
    compare,
    evaluate_file,
)
from krag_eval.comparison.comparison import sliced_comparison
from krag_eval.comparison.slices import difference_of_shares
from krag_eval.errors import InvalidInput
from krag_eval.intervals.intervals import wilson

FEW = {"n_resamples": 1000}


def tagged(ranks, tags, **options):
    """Return a result of queries with these values of the tag ``corpus``."""
    return result_of(ranks, tags={"corpus": [*tags]}, **options)


def found(corpora, **options):
    """Return a result tagged by corpus: name -> (queries, those that find their one item)."""
    tags = [name for name, (n, _) in corpora.items() for _ in range(n)]
    hits = [int(i < hit) for n, hit in corpora.values() for i in range(n)]
    return tagged(hits, tags, **{"k": 5, **options})


def row(slices, name, metric="macro_recall@5"):
    (one,) = [one for one in slices.rows if (one.slice, one.metric) == (name, metric)]
    return one


# --- what is measured --------------------------------------------------------------------------


def test_values_of_a_slice_and_of_all_others():
    """Wiki 18 of 20, chat 5 of 10, news 9 of 10: the rest of chat is 27 of 30."""
    slices = found({"wiki": (20, 18), "chat": (10, 5), "news": (10, 9)}).by("corpus", metrics="mrr")
    assert slices.names == ["chat", "wiki", "news"]
    assert slices.metrics == ["mrr@5"]
    chat = row(slices, "chat", "mrr@5")
    assert (chat.n, chat.value, chat.rest) == (10, 0.5, 0.9)
    assert chat.difference == pytest.approx(-0.4)
    assert slices.overall == {"mrr@5": 32 / 40}
    assert slices.n_queries == 40


def test_what_costs_most_comes_first():
    """By the share of what is lost on the first metric; a small slice has one too."""
    slices = found({"wiki": (20, 18), "chat": (10, 5), "news": (5, 2)}).by("corpus", metrics="mrr")
    assert [(one.slice, one.loss_share) for one in slices.rows] == [
        ("chat", 5 / 10), ("news", 3 / 10), ("wiki", 2 / 10),
    ]  # fmt: skip
    perfect = found({"wiki": (20, 20), "chat": (10, 10)}).by("corpus", metrics="mrr")
    assert perfect.names == ["wiki", "chat"]
    assert all(math.isnan(one.loss_share) for one in perfect.rows)


def test_losses_are_counted_as_the_average_counts():
    """Micro in items, macro in queries; where lower is better, all above the lowest value.

    a: one of 4 items found, b: one of 2. Items lost 3 and 1; of queries 3/4 and 1/2. Both repeat
    what they found in the second of two documents, whose words are not new: redundancy 1/2 each.
    """
    items = ["red apples", "green pears", "blue plums", "ripe melons"]
    result = OfflineRetrievalEvaluator(
        [items, items[:2]] * 10,
        [items[:1] * 2] * 20,
        matcher="coverage",
        tags={"of": ["a", "b"] * 10},
    ).evaluate(k=2)
    metrics = ["micro_recall", "macro_recall", "redundancy", "mean_rank"]
    slices = result.by("of", metrics=metrics, **FEW)
    shares = {one.metric: one.loss_share for one in slices.rows if one.slice == "a"}
    assert math.isnan(shares.pop("mean_rank@2"))  # found first everywhere: nothing is lost
    assert shares == {"micro_recall@2": 0.75, "macro_recall@2": 0.6, "redundancy@2": 0.5}


def test_no_interval_stands_beside_a_p_that_contradicts_it():
    """Six of 60 queries are won, none lost: the interval is above 0, p is 2 / 2^6 before Holm."""
    old = found({"wiki": (60, 54), "chat": (40, 22)})
    new = found({"wiki": (60, 60), "chat": (40, 22)})
    sliced = compare({"old": old, "new": new}, "recall@5").by("corpus")
    wiki = next(one for one in sliced.rows if one.slice == "wiki")
    assert wiki.ci_low > 0
    assert wiki.p_holm == 2 * 2 / 2**6
    told = next(line for line in repr(sliced).split("\n") if line.startswith("wiki"))
    assert told.split()[7:10] == ["0.1000", "–", "0.0625"]
    assert "intervals that p contradicts after Holm: 1;" in sliced.notes[0]
    (dot,) = [one for one in sliced.plot().lines if one.get_marker() == "o" and one.get_xdata()[0]]
    reach = [
        one for one in dot.axes.lines if len(one.get_xdata()) == 2 and one.get_linewidth() == 2
    ]
    assert np.isnan(reach[0].get_xdata()).all()


def test_shares_have_wilson_s_interval():
    """As scipy gives it; also where every query has the same value."""
    slices = found({"wiki": (20, 20), "chat": (13, 5)}).by("corpus", metrics="recall", level=0.9)
    for name, hits, n in (("wiki", 20, 20), ("chat", 5, 13)):
        theirs = stats.binomtest(hits, n).proportion_ci(0.9, method="wilson")
        one = row(slices, name)
        assert (one.low, one.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((48, 80), (56, 70), (0.0524, 0.3339)),
        ((3, 10), (9, 10), (0.1705, 0.8090)),
        ((2, 7), (6, 7), (0.0582, 0.8062)),
        ((0, 29), (5, 56), (-0.0381, 0.1926)),
        ((0, 20), (0, 10), (-0.1611, 0.2775)),
        ((0, 10), (10, 10), (0.6075, 1.0)),
    ],
)
def test_differences_of_shares_are_newcombe_s(a, b, expected):
    """Method 10 in table II of Newcombe (1998); so they are within a result of enough queries."""
    (x_a, n_a), (x_b, n_b) = a, b
    share_a, share_b = x_a / n_a, x_b / n_b
    of_a, of_b = wilson(share_a, n_a, 0.95), wilson(share_b, n_b, 0.95)
    bounds = difference_of_shares(share_a, of_a, share_b, of_b)
    assert bounds == pytest.approx(expected, abs=5e-5)
    if n_a >= 10:
        slices = found({"a": (n_a, x_a), "b": (n_b, x_b)}).by("corpus", metrics="recall")
        one = row(slices, "b")
        assert (one.ci_low, one.ci_high) == pytest.approx(expected, abs=5e-5)


def test_other_metrics_have_the_interval_of_these_queries_alone():
    """What ``confidence_intervals`` says of an evaluation of nothing but the slice."""
    ranks = random.Random(1).choices([0, 1, 1, 2, 3, 7], k=80)
    tags = ["chat" if i % 3 else "wiki" for i in range(80)]
    slices = tagged(ranks, tags).by("corpus", metrics=["mrr", "ndcg"], **FEW)
    chat = [rank for rank, tag in zip(ranks, tags, strict=True) if tag == "chat"]
    alone = result_of(chat).confidence_intervals(**FEW)
    for metric in ("mrr@10", "ndcg@10"):
        one, expected = row(slices, "chat", metric), alone.loc[metric]
        assert [one.value, one.low, one.high] == expected[["value", "low", "high"]].tolist()


def test_a_slice_of_zeros_and_ones_has_the_score_interval():
    """Found first or not at all, whatever the ranks of the others are: a share of its queries."""
    ranks, tags = [1] * 12 + [0] * 8 + [2, 3] * 10, ["chat"] * 20 + ["wiki"] * 20
    slices = tagged(ranks, tags).by("corpus", metrics=["mrr", "micro_recall@10"], **FEW)
    theirs = stats.binomtest(12, 20).proportion_ci(0.95, method="wilson")
    for metric in slices.metrics:
        one = row(slices, "chat", metric)
        assert (one.low, one.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_other_differences_are_bootstrapped_and_permuted():
    """Within what two samples, drawn each by itself or dealt out, give in scipy."""
    ranks = random.Random(2).choices([0, 1, 1, 2, 3, 7], k=300)
    slices = tagged(ranks, ["chat"] * 200 + ["wiki"] * 100).by("corpus", metrics="mrr")
    one = row(slices, "chat", "mrr@10")
    values = np.array([1 / rank if rank else 0.0 for rank in ranks])

    def apart(a, b, axis):
        return a.mean(axis=axis) - b.mean(axis=axis)

    how = {"vectorized": True, "random_state": np.random.default_rng(0)}
    samples = values[:200], values[200:]
    theirs = stats.bootstrap(samples, apart, method="percentile", **how).confidence_interval
    assert (one.ci_low, one.ci_high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    p = stats.permutation_test(samples, apart, n_resamples=5_000, **how).pvalue
    assert one.p_permutation == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("seed", range(20))
def test_p_of_shares_is_that_of_all_ways_to_deal_out_the_queries(seed):
    """Of x + y hits, n of n + m queries get c in C(n, c) · C(m, x + y - c) ways; all or none, too.

    Whichever of the two slices is asked.
    """
    chance = random.Random(seed)
    n, m = chance.randint(10, 60), chance.randint(10, 60)
    x, y = chance.choice([0, n, chance.randint(0, n)]), chance.choice([0, m, chance.randint(0, m)])
    slices = found({"wiki": (n, x), "chat": (m, y)}).by("corpus", metrics="recall")
    ways = {c: comb(n, c) * comb(m, x + y - c) for c in range(max(0, x + y - m), min(n, x + y) + 1)}
    apart = abs(x * m - y * n)
    extreme = sum(w for c, w in ways.items() if abs(c * m - (x + y - c) * n) >= apart)
    p = pytest.approx(extreme / sum(ways.values()), rel=1e-12)
    assert [one.p_permutation for one in slices.rows] == [p, p]


def test_p_is_never_0():
    """However many queries speak."""
    slices = found({"wiki": (1000, 1000), "chat": (1000, 0)}).by("corpus", metrics="recall")
    assert 0 < row(slices, "chat").p_permutation < 1e-300


def test_holm_corrects_over_all_slices_and_metrics():
    """The smallest p times their number, the next times one less, never falling."""
    result = found({"wiki": (40, 38), "chat": (30, 15), "news": (20, 16)})
    slices = result.by("corpus", metrics=["recall", "precision"], **FEW)
    ps = sorted((one.p_permutation, i) for i, one in enumerate(slices.rows))
    largest, expected = 0.0, {}
    for place, (p, i) in enumerate(ps):
        largest = max(largest, min(1.0, p * (len(ps) - place)))
        expected[i] = largest
    assert [one.p_holm for one in slices.rows] == [expected[i] for i in range(len(ps))]


@pytest.mark.parametrize("metrics", [["recall"], ["mrr", "ndcg"]])
def test_two_slices_are_one_test(metrics):
    """Each is the rest of the other: the smallest p counts as often as there are metrics."""
    result = tagged([1, 1, 2, 3] * 10 + [2, 4, 0] * 10, ["wiki"] * 40 + ["chat"] * 30)
    slices = result.by("corpus", metrics=metrics, **FEW)
    wiki, chat = (
        {one.metric: one.p_holm for one in slices.rows if one.slice == name}
        for name in ("wiki", "chat")
    )
    assert wiki == chat
    p = min(one.p_permutation for one in slices.rows)
    assert min(wiki.values()) == pytest.approx(p * len(metrics))


def test_a_third_slice_makes_three_tests_where_it_has_values():
    """A mean rank is defined where something is found: news has none, so there it is one test."""
    ranks = [1, 2] * 10 + [2, 3] * 10 + [0] * 20
    result = tagged(ranks, ["wiki"] * 20 + ["chat"] * 20 + ["news"] * 20)
    of = {one.slice: one for one in result.by("corpus", metrics="mean_rank", **FEW).rows}
    assert of["news"].n == 0
    assert math.isnan(of["news"].value)
    assert of["wiki"].p_holm == of["wiki"].p_permutation == of["chat"].p_holm
    recall = result.by("corpus", metrics="recall", **FEW)
    ps = [one.p_permutation for one in recall.rows]
    assert min(one.p_holm for one in recall.rows) == pytest.approx(3 * min(ps))


def test_micro_averages_are_formed_anew():
    """Of three items two are found ten times, then of one item none: 20/30 and 0/10."""
    result = tagged([[1, 2]] * 10 + [0] * 10, ["wiki"] * 10 + ["chat"] * 10,
                    n_items=[3] * 10 + [1] * 10)  # fmt: skip
    one = row(result.by("corpus", metrics="micro_recall", **FEW), "wiki", "micro_recall@10")
    assert (one.value, one.rest, one.n) == (20 / 30, 0.0, 10)
    assert one.p_permutation == pytest.approx(1 / 1001)  # none of 1000 is as extreme


def test_a_metric_counts_the_queries_where_it_is_defined():
    """Chat finds 12 of 20, at rank 2; wiki 20 of 20, at rank 1."""
    ranks, tags = [2] * 12 + [0] * 8 + [1] * 20, ["chat"] * 20 + ["wiki"] * 20
    slices = tagged(ranks, tags).by("corpus", metrics=["mean_rank", "found_rate"])
    one = row(slices, "chat", "mean_rank@10")
    assert (one.n, one.value, one.rest) == (12, 2.0, 1.0)
    assert row(slices, "chat", "found_rate@10").n == 20
    assert slices.lower_is_better == ("mean_rank@10",)
    assert "wiki is better than the rest on found_rate@10" in slices.summary()
    assert "the rest is better than chat on mean_rank@10" in slices.summary()


def test_ranks_are_no_shares():
    """Though all of them are 1; without a range nobody knows what a metric of one's own is.

    So there is no score interval, and resampling says nothing.
    """
    ones = Metric("mine", lambda relevance, k, conventions: np.ones(40), "mine")
    result = tagged([1] * 40, ["wiki", "chat"] * 20, evaluated={"metrics": ["rank", ones]})
    for metric in ("mean_rank", "mine"):
        one = row(result.by("corpus", metrics=metric, **FEW), "wiki", f"{metric}@10")
        assert one.p_permutation == 1
        assert np.isnan([one.low, one.high, one.ci_low, one.ci_high]).all()  # nothing varies


def test_too_few_defined_values_are_counted_alone():
    """9 of 30 found: no mean rank of the slice, though there are 30 queries; the notes say so."""
    ranks, tags = [2] * 9 + [0] * 21 + [1] * 40, ["chat"] * 30 + ["wiki"] * 40
    slices = tagged(ranks, tags).by("corpus", metrics=["mean_rank", "mrr"], **FEW)
    one, other = (row(slices, name, "mean_rank@10") for name in ("chat", "wiki"))
    assert one.n == 9
    assert math.isnan(one.value)
    assert other.difference == -1.0
    assert math.isnan(other.p_permutation)  # a rest of 9
    assert row(slices, "chat", "mrr@10").value == pytest.approx(9 / 60)
    assert slices.notes == ["Too few queries for more than a count: chat on mean_rank@10 (9)."]


def test_under_ten_queries_there_are_counts_alone():
    """And a slice of eleven has no test against a rest of nine."""
    slices = found({"wiki": (11, 8), "chat": (9, 1)}).by("corpus", metrics="recall", **FEW)
    chat, wiki = row(slices, "chat"), row(slices, "wiki")
    numbers = (chat.value, chat.low, chat.rest, chat.ci_low, chat.p_permutation, chat.p_holm)
    assert chat.n == 9
    assert all(map(math.isnan, numbers))
    assert wiki.value == 8 / 11
    assert wiki.low < 8 / 11 < wiki.high
    assert math.isnan(wiki.p_permutation)
    assert any("chat (9)" in note for note in slices.notes)


def test_one_slice_has_no_rest():
    """Nothing to tell it from."""
    one = row(found({"wiki": (30, 20)}).by("corpus", metrics="recall", **FEW), "wiki")
    assert one.value == 20 / 30
    assert all(map(math.isnan, (one.rest, one.difference, one.ci_low, one.p_holm)))


def test_queries_that_do_not_count_are_in_no_slice():
    """Of 30 tagged queries, ten have no ground truth and are skipped."""
    result = tagged([1] * 10 + [0] * 20, ["wiki"] * 10 + ["chat"] * 20,
                    n_items=[1] * 20 + [0] * 10, no_ground_truth="skip")  # fmt: skip
    slices = result.by("corpus", metrics="recall", **FEW)
    assert [(one.slice, one.n, one.value) for one in slices.rows] == [
        ("chat", 10, 0.0),
        ("wiki", 10, 1.0),
    ]


def test_the_main_averages_at_the_deepest_cutoff_unless_named():
    """Each at the cutoff asked for, or at its own."""
    result = found({"wiki": (20, 10), "chat": (20, 12)}, k=[1, 5])
    main = ["macro_recall@5", "ndcg@5", "mrr@5", "hit_rate@5"]
    assert result.by("corpus", **FEW).metrics == main
    assert result.by("corpus", 1, "hit", **FEW).metrics == ["hit_rate@1"]
    assert result.by("corpus", 1, ["map", "ndcg@5"], **FEW).metrics == ["map@1", "ndcg@5"]
    micro = found({"wiki": (20, 10)}, averaging_method="micro")
    assert micro.by("corpus", **FEW).metrics[0] == "micro_recall@5"
    own = Metric("mine", lambda relevance, k, conventions: np.full(20, 0.25), "mine")
    mine = found({"wiki": (20, 10)}, evaluated={"metrics": [own]})
    assert row(mine.by("corpus", **FEW), "wiki", "mine@5").value == 0.25


def test_the_same_seed_gives_the_same_digits():
    """Another one gives others."""
    result = tagged([1, 2, 3, 0] * 15, ["wiki", "chat", "news"] * 20)
    first, again, other = (result.by("corpus", metrics="mrr", seed=n, **FEW) for n in (3, 3, 4))
    assert first == again
    assert first.rows != other.rows


# --- what a diagnosis found --------------------------------------------------------------------


HALF = "ignore:.*different documents that were retrieved"


@pytest.mark.filterwarnings(HALF)
def test_by_what_a_diagnosis_found(tmp_path):
    """The item that is furthest behind decides; so it does of a diagnosis that was read back."""
    here, cut, nowhere = "a b c d e f", "g h i j k l m n o p", "q r s t u v"
    with no_advice():
        result = OfflineRetrievalEvaluator(
            [[here], [here, cut], [cut, nowhere, "!"]] * 12, [[here, "x"]] * 36, "coverage",
            queries=[f"q {i}?" for i in range(36)],
        ).evaluate([1, 2])  # fmt: skip
    diagnosis = result.diagnose([here, "g h i j k", "l m n o p"], k=1)
    assert diagnosis.query_classes.to_list() == ["found", "cut_apart", "not_in_index"] * 12
    assert diagnosis.query_classes.index.to_list() == list(range(36))
    slices = result.by("diagnosis", 1, "micro_recall", diagnosis=diagnosis, **FEW)
    assert {one.slice: (one.n, one.value) for one in slices.rows} == {
        "found": (12, 1.0),
        "cut_apart": (12, 0.5),
        "not_in_index": (12, 0.0),
    }
    assert "k = 1" in slices.about
    again, saved = read_back(diagnosis, tmp_path), read_back(result, tmp_path)
    assert saved.by("diagnosis", 1, "micro_recall", diagnosis=again, **FEW) == slices


def test_queries_without_items_have_no_class():
    """They are a slice of their own, where they count; an item without words decides nothing."""
    with no_advice():
        result = OfflineRetrievalEvaluator(
            [["a"], [], ["!"]], [["a"], ["a"], ["a"]], matcher="coverage", no_ground_truth="zero"
        ).evaluate(1)
        diagnosis = result.diagnose()
        slices = result.by("diagnosis", diagnosis=diagnosis, **FEW)
    assert diagnosis.query_classes.to_dict() == {0: "found", 2: "no_words"}
    assert set(slices.names) == {"found", "no_words", "(no diagnosis)"}


# --- how queries are divided -------------------------------------------------------------------


A_LOT = 10**400


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Texts come with the most frequent first, equal ones by name, those without a value last.
        (["b"] * 2 + ["위키"] * 3 + ["a"] * 2 + [None] * 5,
         {"위키": 3, "a": 2, "b": 2, "(no tag)": 5}),
        # Few numbers have a slice each, in ascending order.
        ([3, 1, 2, 2, 10, None], {"1": 1, "2": 2, "3": 1, "10": 1, "(no tag)": 1}),
        ([0.5, -1.25, 2.0], {"-1.25": 1, "0.5": 1, "2": 1}),
        # Many are divided at their quartiles, by bounds that occur; equal values are not parted.
        ([*range(1, 21), None],
         {"1 – 5": 5, "6 – 10": 5, "11 – 15": 5, "16 – 20": 5, "(no tag)": 1}),
        ([1] * 21 + [2, 3, 4, 5, 6, 7, 9], {"1": 21, "2 – 9": 7}),
        # Bounds have the digits it takes to tell them apart.
        ([1 + i / 10**8 for i in range(8)],
         {"1 – 1.00000001": 2, "1.00000002 – 1.00000003": 2, "1.00000004 – 1.00000005": 2,
          "1.00000006 – 1.00000007": 2}),
        # What reads alike is told apart, and true is not 1.
        ([3, "3", "x"], {"3": 1, '"3"': 1, "x": 1}),
        (["(no tag)", None], {'"(no tag)"': 1, "(no tag)": 1}),
        ([True, 1, 1, False], {"1": 2, "False": 1, "True": 1}),
        # Numbers that no float holds are names.
        ([A_LOT, 1], {"1": 1, str(A_LOT): 1}),
        ([None, None], {"(no tag)": 2}),
    ],
)  # fmt: skip
def test_how_values_divide_queries(values, expected):
    """Into slices with these names and sizes, in this order."""
    with no_advice():
        slices = result_of([1] * len(values), tags={"tag": values}).by("tag", metrics="mrr", **FEW)
    assert [(one.slice, one.n) for one in slices.rows] == [*expected.items()]


# --- built-in tags -----------------------------------------------------------------------------


QUESTIONS = [
    "RAG에서 recall@5를 계산하려면?",
    "What does 김치 mean?",
    "東京の天気は?",
    "什么是检索?",
    "Как это работает?",
    "2 + 2 = ?",
]


@pytest.mark.parametrize(
    ("tag", "actual", "options", "expected"),
    [
        # Repeats are one item, and what is interchangeable is one too.
        ("items", [["a"], ["a", "b"], ["c", "c"], [AnyOf(["d", "e"]), "f"]], {},
         {"1": 2, "2": 2}),
        # Counted in words; what is no text has none.
        ("question_length", [["a"]] * 3, {"queries": ["What is it?", "대출 기간은?", 7]},
         {"2": 1, "3": 1, "(no question_length)": 1}),
        # Of the longest item; of alternatives, finding the shortest is enough.
        ("golden_length",
         [["one two", "one two three"], [AnyOf(["a b c d e", "a b"]), "f"], ["x y"]], {},
         {"2": 2, "3": 1}),
        # Documents with ids have texts, though the matcher looks at ids.
        ("golden_length", [[Document("some golden words", id="7")]] * 2, {"matcher": "id"},
         {"3": 2}),
        # As the script of most words tells it.
        ("language", [["a"]] * 6, {"queries": QUESTIONS},
         {"Cyrillic script": 1, "Han script": 1, "Japanese": 1, "Korean": 1, "Latin script": 1,
          "(no language)": 1}),
    ],
)  # fmt: skip
def test_built_in_tags(tag, actual, options, expected):
    """They divide queries by what the result knows, and say what they are."""
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, [["x"]] * len(actual), **options)
        slices = evaluator.evaluate(5).by(tag, metrics="mrr", **FEW)
    assert slices.about
    assert {one.slice: one.n for one in slices.rows} == expected


def test_the_queries_own_tags_come_first():
    """Whatever they are called."""
    slices = result_of([1] * 20, tags={"items": ["few"] * 20}).by("items", metrics="mrr", **FEW)
    assert slices.names == ["few"]
    assert slices.about == ""


def test_what_a_built_in_tag_needs(tmp_path):
    """Questions, as positions are none; texts, which are not saved unless asked for."""
    result = result_of([1] * 20)
    saved = read_back(result, tmp_path, texts=True)
    assert saved.by("golden_length", **FEW).names == ["2"]
    bare, ids = read_back(result, tmp_path), result_of([1], matcher="id")
    for without, tag in (
        (result, "question_length"), (result, "language"),
        (bare, "golden_length"), (ids, "golden_length"),
    ):  # fmt: skip
        with blamed("tag") as refused:
            without.by(tag)
        assert refused.value.fix


# --- where results come from -------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_results_of_files_have_the_same_slices(tmp_path, ending):
    """Saved, or streamed where rows were kept; sums alone are refused, and it says why."""
    rows = [
        {"question": f"q {i}?", "actual": ["a"], "predicted": ["a" if i % 3 else "x"],
         "corpus": "wiki" if i % 2 else "chat"}
        for i in range(60)
    ]  # fmt: skip
    asked, actual, predicted, tags = (
        [one[name] for one in rows] for name in ("question", "actual", "predicted", "corpus")
    )
    here = OfflineRetrievalEvaluator(
        actual, predicted, queries=asked, tags={"corpus": tags}
    ).evaluate(5)
    if ending == "json":
        kept = read_back(here, tmp_path)
    else:
        path = write_lines(tmp_path / "run.jsonl", rows)
        kept = evaluate_file(path, 5, per_query=tmp_path / f"rows.{ending}")
        with pytest.raises(InvalidInput) as refused:
            evaluate_file(path, 5, chunk_size=9).by("corpus")
        assert "per_query" in str(refused.value.fix)
    for tag in ("corpus", "items", "language"):
        pd.testing.assert_frame_equal(kept.by(tag, **FEW).table, here.by(tag, **FEW).table)


def test_an_unknown_tag_is_told_those_there_are():
    """The queries' own, then the built-in ones."""
    with pytest.raises(InvalidInput) as refused:
        found({"wiki": (20, 10)}).by("corpsu")
    known = ["corpus", "items", "question_length", "golden_length", "language"]
    assert ", ".join(map(repr, known)) in refused.value.problem
    assert "corpus" in refused.value.fix


# --- too many ----------------------------------------------------------------------------------


def test_slices_that_are_too_many_are_told():
    """Most queries in slices of fewer than ten: a warning, and a note that stays."""
    few = {f"corpus {i}": (8, 4) for i in range(5)}
    with pytest.warns(KragEvalWarning) as caught:
        slices = found(few | {"wiki": (39, 9)}).by("corpus", metrics="recall", **FEW)
    assert len(caught) == 1
    assert "6 slices of 79 queries" in str(caught[0].message)
    assert any("6 slices of 79 queries" in note for note in slices.notes)
    assert [one.n for one in slices.rows] == [39, *[8] * 5]
    # As long as half of the queries are in others, some small slices are not too many.
    enough = found(few | {"wiki": (40, 9)}).by("corpus", metrics="recall", **FEW)
    assert not any("too many" in note for note in enough.notes)


def test_far_too_many_are_not_tested():
    """501 slices of ten queries have values, and nothing else that would take long."""
    result = found({f"corpus {i}": (10, 4) for i in range(501)})
    with pytest.warns(KragEvalWarning, match="501 tests"):
        slices = result.by("corpus", metrics="recall", **FEW)
    assert {one.value for one in slices.rows} == {0.4}
    assert all(math.isnan(one.p_permutation) and math.isnan(one.low) for one in slices.rows)
    lines = repr(slices).split("\n")
    assert sum(line.startswith("corpus ") for line in lines) == 60
    assert "… and 441 more rows in .table" in lines
    (few,) = [note for note in slices.notes if note.startswith("Few queries")]
    assert few.endswith(f"{slices.names[9]} (10) and 491 more.")
    comparison = compare({"a": result, "b": result}, "mrr@5", n_resamples=100)
    with pytest.warns(KragEvalWarning, match="501 tests"):
        sliced = comparison.by("corpus")
    assert all(math.isnan(one.difference) for one in sliced.rows)
    # A gate that checks nothing is none.
    with no_advice(), blamed("tag"):
        sliced_comparison(comparison, "corpus", few_slices=True)


def test_p_that_cannot_be_small_enough_is_told():
    """Of 100 permutations the smallest p is 1/101; six tests make at least 0.059 of it."""
    ranks, tags = [1, 2, 3] * 10 + [7, 8, 9] * 20, ["wiki"] * 30 + ["chat", "news"] * 30
    result = tagged(ranks, tags)
    few = result.by("corpus", metrics=["mrr", "ndcg"], n_resamples=100)
    assert min(one.p_permutation for one in few.rows) == 1 / 101
    assert few.summary() == "No slice is shown to differ from the rest."
    assert any("n_resamples=100" in note for note in few.notes)
    enough = result.by("corpus", metrics=["mrr", "ndcg"], **FEW)
    assert not any("n_resamples" in note for note in enough.notes)


def test_two_slices_are_one_test_to_the_notes_too():
    """Each is the other's rest: three tests make 3/101 of it, and six would make 0.059."""
    result = tagged([1, 2] * 15 + [9, 10] * 15, ["wiki"] * 30 + ["chat"] * 30)
    slices = result.by("corpus", metrics=["mrr", "ndcg", "map"], n_resamples=100)
    assert [one.p_permutation for one in slices.rows] == [1 / 101] * 6
    assert [one.p_holm for one in slices.rows] == pytest.approx([3 / 101] * 6)
    assert slices.notes == []


# --- comparisons -------------------------------------------------------------------------------


def test_a_comparison_of_a_slice_is_that_of_its_queries_alone():
    """Difference, interval, p, wins and losses; Holm over all slices and metrics."""
    chance = random.Random(4)
    ranks = [[chance.choice([0, 1, 2, 3]) for _ in range(90)] for _ in range(2)]
    tags = [("wiki", "chat", "news")[min(i // 40, 2)] for i in range(90)]
    metrics = ["mrr@10", "macro_recall@10"]
    sliced = compare(*(tagged(one, tags) for one in ranks), metric=metrics, **FEW).by("corpus")
    assert sliced.names == ["chat", "wiki", "news"]
    for name in sliced.names:
        at = [i for i, tag in enumerate(tags) if tag == name]
        alone = (result_of([one[i] for i in at]) for one in ranks)
        with no_advice():
            expected = compare(*alone, metric=metrics, **FEW).differences
        for ours, one in zip((o for o in sliced.rows if o.slice == name), expected, strict=True):
            assert ours.n == len(at)
            for field in ("a", "b", "metric", "value_a", "value_b", "difference", "ci_low",
                          "ci_high", "p_permutation", "wins", "ties", "losses"):  # fmt: skip
                assert getattr(ours, field) == getattr(one, field)
    ps = sorted((one.p_permutation, one.p_holm) for one in sliced.rows)
    assert ps[0][1] == min(1.0, 6 * ps[0][0])
    assert ps[-1][1] == max(p for _, p in ps)


def test_small_slices_of_a_comparison_are_counted_alone():
    """Nine queries."""
    results = [found({"wiki": (30, hits), "chat": (9, hits // 5)}) for hits in (10, 20)]
    sliced = compare(results, "mrr@5", **FEW).by("corpus")
    assert [(one.slice, one.n) for one in sliced.rows] == [("wiki", 30), ("chat", 9)]
    assert math.isnan(sliced.rows[1].difference)
    assert sliced.rows[0].difference == pytest.approx(1 / 3)


def test_three_systems_are_sliced_pair_by_pair():
    """Three pairs of each of two slices."""
    hits = {"a": 5, "b": 9, "c": 20}
    results = {name: found({"x": (20, n), "y": (20, 5)}) for name, n in hits.items()}
    sliced = compare(results, "mrr@5", **FEW).by("corpus")
    assert [(one.slice, one.a, one.b) for one in sliced.rows] == [
        (name, *pair) for name in "xy" for pair in ("ab", "ac", "bc")
    ]
    assert sliced.summary().startswith("x: c is better than a on mrr@5")
    assert "y:" not in sliced.summary()


def test_one_system_may_know_the_tags_of_all():
    """The queries are the same; where systems are tagged differently, the first query is named."""
    bare, wiki = result_of([1] * 20, k=5), found({"wiki": (20, 10)})
    with no_advice():
        compared = compare({"a": bare, "b": wiki}, "mrr@5", **FEW)
        assert compared.by("corpus").names == ["wiki"]
        assert compared.by("golden_length").names == ["2"]
        other = compare(wiki, found({"wiki": (15, 10), "chat": (5, 0)}), metric="mrr@5", **FEW)
    with blamed("tag") as refused:
        other.by("corpus")
    assert "15" in refused.value.problem


# --- gates -------------------------------------------------------------------------------------


def test_a_slice_that_drops_fails_though_the_whole_does_not():
    """All: 60 to 57 of 80, within 0.05; chat: 10 to 2 of 20."""
    old = found({"wiki": (60, 50), "chat": (20, 10)})
    new = found({"wiki": (60, 55), "chat": (20, 2)})
    report = new.check(baseline=old, metric="recall@5", max_drop=0.05, by="corpus")
    assert [(gate.slice, gate.passed) for gate in report.gates] == [
        (None, True),
        ("wiki", True),
        ("chat", False),
    ]
    assert report.failures[0].startswith("corpus chat: macro_recall@5 went from 0.5000 to 0.1000")


def test_a_slice_of_one_query_less_or_of_nine_passes():
    """One query of twelve may be chance; nine are not looked at, and the report says so."""
    old = found({"x\ny\x1b[31m": (40, 30), "y": (12, 7), "z": (9, 9)})
    new = found({"x\ny\x1b[31m": (40, 30), "y": (12, 6), "z": (9, 0)})
    report = new.check(baseline=old, metric=["mrr@5", "hit@5"], by="corpus", **FEW)
    gates = [gate for gate in report.gates if gate.slice in ("y", "z")]
    assert [(gate.metric, gate.passed) for gate in gates] == [
        (name, True) for name in ("mrr@5", "hit_rate@5") * 2
    ]
    assert "9 queries" in gates[2].reason
    # Whatever a slice is called, a gate stays on one line.
    assert all(gate.reason.isprintable() for gate in report.gates)


# --- how they are shown and saved --------------------------------------------------------------


def test_the_table_has_a_row_per_slice_and_metric():
    """With the numbers of the rows."""
    slices = found({"wiki": (20, 10), "chat": (20, 15)}).by("corpus", metrics=["mrr", "map"], **FEW)
    assert slices.table.columns.tolist() == [
        "slice", "metric", "n", "value", "low", "high", "rest", "difference", "ci_low", "ci_high",
        "p_permutation", "p_holm", "loss_share",
    ]  # fmt: skip
    assert slices.table[["slice", "metric", "n", "value"]].to_numpy().tolist() == [
        ["wiki", "mrr@5", 20, 0.5],
        ["wiki", "map@5", 20, 0.5],
        ["chat", "mrr@5", 20, 0.75],
        ["chat", "map@5", 20, 0.75],
    ]


def test_what_is_shown_of_slices():
    """Which differ from the rest, and which are small."""
    result = found({"wiki": (40, 39), "chat": (20, 4), "news": (5, 5)})
    lines = repr(result.by("corpus", metrics="recall")).split("\n")
    assert [line.split()[:5] for line in lines[3:6]] == [
        ["chat", "macro_recall@5", "20", "94", "%"],
        ["wiki", "macro_recall@5", "40", "6", "%"],
        ["news", "macro_recall@5", "5", "0", "%"],
    ]
    assert lines[6].startswith("the rest is better than chat on macro_recall@5")
    assert lines[7].startswith("wiki is better than the rest on macro_recall@5 by 0.615")
    assert "news (5)" in lines[8]
    assert "chat (20)" in lines[9]


def test_html_is_escaped():
    """Names of tags, slices and systems are the user's."""
    hostile = "<script>alert(1)</script>"
    result = result_of([1] * 20, k=5, tags={hostile: [hostile] * 20})
    with no_advice():
        sliced = compare({"<b>": result, "b": result}, "mrr@5", **FEW).by(hostile)
    for shown in (result.by(hostile, **FEW)._repr_html_(), sliced._repr_html_()):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
        assert "<b>" not in shown


def test_slices_are_read_back(tmp_path):
    """Equal in everything, also what is undefined; a name may be half of a character."""
    result = found({"wiki": (20, 10), "\ud800": (9, 3)})
    slices = result.by("corpus", **FEW)
    read = read_back(slices, tmp_path)
    assert read == slices
    assert repr(read) == repr(slices)
    with no_advice():
        sliced = compare(result, result, **FEW).by("corpus")
    assert read_back(sliced, tmp_path) == sliced
    assert read != slices.rows
    assert slices != sliced


def test_who_asks_for_no_tag_is_told_how_a_query_gets_one():
    """A further field of a row, or an argument; beside the nearest name, if there is one."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    for tag in ("corpus", "lang"):
        with blamed("tag") as info:
            result.by(tag)
        assert "further column" in str(info.value.fix)
        assert "tags=" in str(info.value.fix)
