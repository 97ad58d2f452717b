"""Slices: how queries are divided, what is measured of them, and gates on each."""

from __future__ import annotations

import json
import math
import random
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document
from reference import no_advice
from scipy import stats

from krag_eval import (
    AnyOf,
    Diagnosis,
    EvaluationResult,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
    SlicedComparison,
    Slices,
    compare,
    evaluate_file,
)
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.results.rows import NoRows
from krag_eval.statistics.intervals import difference_of_shares, wilson
from krag_eval.statistics.slices import sliced_comparison

FEW = {"n_resamples": 1000}


def found(corpora: dict[str, tuple[int, int]], k: Any = 5, **options: Any) -> EvaluationResult:
    """Return a result tagged by corpus: name -> (queries, those that find their one item)."""
    tags = [name for name, (n, _) in corpora.items() for _ in range(n)]
    hits = [i < hit for n, hit in corpora.values() for i in range(n)]
    return sliceable(hits, {"corpus": tags}, k, **options)


def sliceable(hits: list[bool], tags: dict[str, Any], k: Any = 5, **options: Any) -> Any:
    actual = [["a"]] * len(hits)
    predicted = [["a" if hit else "x"] for hit in hits]
    with no_advice():
        return OfflineRetrievalEvaluator(actual, predicted, tags=tags, **options).evaluate(k)


def at_ranks(ranks: list[int], tags: dict[str, Any], **options: Any) -> EvaluationResult:
    """Return a result in which each query finds its one item at the given rank; 0 for never."""
    predicted = [[*["?"] * (rank - 1), "a"] if rank else ["?"] for rank in ranks]
    actual = [["a"]] * len(ranks)
    with no_advice():
        return OfflineRetrievalEvaluator(actual, predicted, tags=tags).evaluate(10, **options)


def row(slices: Slices, name: str, metric: str = "macro_recall@5") -> Any:
    (one,) = [one for one in slices.rows if (one.slice, one.metric) == (name, metric)]
    return one


# --- what is measured --------------------------------------------------------------------------


def test_values_of_a_slice_and_of_all_others() -> None:
    """Wiki 18 of 20, chat 5 of 10, news 9 of 10: the rest of chat is 27 of 30."""
    slices = found({"wiki": (20, 18), "chat": (10, 5), "news": (10, 9)}).by("corpus", metrics="mrr")
    assert slices.names == ["wiki", "chat", "news"]
    assert slices.metrics == ["mrr@5"]
    chat = row(slices, "chat", "mrr@5")
    assert (chat.n, chat.value, chat.rest) == (10, 0.5, 0.9)
    assert chat.difference == pytest.approx(-0.4)
    assert slices.overall == {"mrr@5": 32 / 40}
    assert slices.n_queries == 40


def test_shares_have_wilson_s_interval() -> None:
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
def test_differences_of_shares_are_newcombe_s(a: Any, b: Any, expected: Any) -> None:
    """Method 10 in table II of Newcombe (1998)."""
    (x_a, n_a), (x_b, n_b) = a, b
    share_a, share_b = x_a / n_a, x_b / n_b
    bounds = difference_of_shares(
        share_a, wilson(share_a, n_a, 0.95), share_b, wilson(share_b, n_b, 0.95)
    )
    assert bounds == pytest.approx(expected, abs=5e-5)


def test_a_difference_of_shares_within_a_result() -> None:
    """9 of 10 beside 3 of 10, as in that table."""
    slices = found({"wiki": (10, 9), "chat": (10, 3)}).by("corpus", metrics="recall")
    one = row(slices, "wiki")
    assert (one.ci_low, one.ci_high) == pytest.approx((0.1705, 0.8090), abs=5e-5)


def test_other_metrics_have_the_interval_of_these_queries_alone() -> None:
    """What ``confidence_intervals`` says of an evaluation of nothing but the slice."""
    ranks = random.Random(1).choices([0, 1, 1, 2, 3, 7], k=80)
    tags = ["chat" if i % 3 else "wiki" for i in range(80)]
    slices = at_ranks(ranks, {"corpus": tags}).by("corpus", metrics=["mrr", "ndcg"])
    chat = [rank for rank, tag in zip(ranks, tags, strict=True) if tag == "chat"]
    alone = at_ranks(chat, {}).confidence_intervals()
    for metric in ("mrr@10", "ndcg@10"):
        one = row(slices, "chat", metric)
        assert [one.value, one.low, one.high] == alone.loc[
            metric, ["value", "low", "high"]
        ].tolist()


def test_a_slice_of_zeros_and_ones_has_the_score_interval() -> None:
    """Found first or not at all, whatever the ranks of the others are: a share of its queries."""
    ranks, tags = [1] * 12 + [0] * 8 + [2, 3] * 10, ["chat"] * 20 + ["wiki"] * 20
    slices = at_ranks(ranks, {"corpus": tags}).by("corpus", metrics=["mrr", "micro_recall@10"])
    theirs = stats.binomtest(12, 20).proportion_ci(0.95, method="wilson")
    for metric in ("mrr@10", "micro_recall@10"):
        one = row(slices, "chat", metric)
        assert (one.low, one.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_their_differences_are_bootstrapped() -> None:
    """Within what two samples, drawn each by itself, give in scipy."""
    ranks = random.Random(2).choices([0, 1, 1, 2, 3, 7], k=300)
    tags = ["chat" if i % 3 else "wiki" for i in range(300)]
    slices = at_ranks(ranks, {"corpus": tags}).by("corpus", metrics="mrr")
    one = row(slices, "chat", "mrr@10")
    values = [1 / rank if rank else 0.0 for rank in ranks]
    samples = [
        [value for value, tag in zip(values, tags, strict=True) if tag == name]
        for name in ("chat", "wiki")
    ]
    theirs = stats.bootstrap(
        samples,
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        method="percentile",
        vectorized=True,
        random_state=np.random.default_rng(0),
    ).confidence_interval
    assert (one.ci_low, one.ci_high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_p_is_that_of_all_ways_to_deal_out_the_queries() -> None:
    """Of 40 queries with 32 hits, 12 get c hits in C(32, c) C(8, 12 - c) ways (hypergeometric)."""
    slices = found({"wiki": (28, 25), "chat": (12, 7)}).by("corpus", metrics="recall")
    apart = abs(7 / 12 - 25 / 28)
    ways = {c: comb(32, c) * comb(8, 12 - c) for c in range(4, 13)}
    extreme = sum(n for c, n in ways.items() if abs(c / 12 - (32 - c) / 28) >= apart - 1e-9)
    p = extreme / comb(40, 12)
    assert row(slices, "chat").p_permutation == pytest.approx(p, rel=1e-12)
    assert row(slices, "wiki").p_permutation == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_p_of_random_shares(seed: int) -> None:
    """The same, in whole numbers; sometimes all or none are found."""
    chance = random.Random(seed)
    n, m = chance.randint(10, 60), chance.randint(10, 60)
    x, y = chance.choice([0, n, chance.randint(0, n)]), chance.choice([0, m, chance.randint(0, m)])
    slices = found({"wiki": (n, x), "chat": (m, y)}).by("corpus", metrics="recall")
    ways = {c: comb(n, c) * comb(m, x + y - c) for c in range(max(0, x + y - m), min(n, x + y) + 1)}
    apart = abs(x * m - y * n)
    extreme = sum(w for c, w in ways.items() if abs(c * m - (x + y - c) * n) >= apart)
    assert row(slices, "wiki").p_permutation == pytest.approx(extreme / sum(ways.values()))


def test_p_is_never_0() -> None:
    """However many queries speak."""
    slices = found({"wiki": (1000, 1000), "chat": (1000, 0)}).by("corpus", metrics="recall")
    assert 0 < row(slices, "chat").p_permutation < 1e-300


def test_p_of_other_metrics() -> None:
    """As scipy's permutation test of two samples finds it."""
    ranks = random.Random(3).choices([0, 1, 2, 3], k=60)
    tags = ["chat"] * 25 + ["wiki"] * 35
    one = row(at_ranks(ranks, {"corpus": tags}).by("corpus", metrics="mrr"), "chat", "mrr@10")
    values = np.array([1 / rank if rank else 0.0 for rank in ranks])
    theirs = stats.permutation_test(
        (values[:25], values[25:]),
        lambda a, b, axis: abs(a.mean(axis=axis) - b.mean(axis=axis)),
        alternative="greater",
        vectorized=True,
        n_resamples=20_000,
        random_state=np.random.default_rng(0),
    ).pvalue
    assert one.p_permutation == pytest.approx(theirs, abs=0.02)


def test_holm_corrects_over_all_slices_and_metrics() -> None:
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
def test_two_slices_are_one_test(metrics: list[str]) -> None:
    """Each is the rest of the other: the smallest p counts as often as there are metrics."""
    result = at_ranks([1, 1, 2, 3] * 10 + [2, 4, 0] * 10, {"corpus": ["wiki"] * 40 + ["chat"] * 30})
    slices = result.by("corpus", metrics=metrics, **FEW)
    wiki, chat = (
        {one.metric: one for one in slices.rows if one.slice == name} for name in ("wiki", "chat")
    )
    assert {key: one.p_holm for key, one in wiki.items()} == {k: c.p_holm for k, c in chat.items()}
    ps = sorted(one.p_permutation for one in wiki.values())
    assert min(one.p_holm for one in wiki.values()) == pytest.approx(ps[0] * len(metrics))


def test_a_third_slice_makes_three_tests_where_it_has_values() -> None:
    """A mean rank is defined where something is found: news has none, so there it is one test."""
    ranks = [1, 2] * 10 + [2, 3] * 10 + [0] * 20
    result = at_ranks(ranks, {"corpus": ["wiki"] * 20 + ["chat"] * 20 + ["news"] * 20})
    found = result.by("corpus", metrics="mean_rank", **FEW)
    of = {one.slice: one for one in found.rows}
    assert of["news"].n == 0
    assert of["wiki"].p_holm == of["wiki"].p_permutation == of["chat"].p_holm
    recall = result.by("corpus", metrics="recall", **FEW)
    ps = [one.p_permutation for one in recall.rows]
    assert min(one.p_holm for one in recall.rows) == pytest.approx(3 * min(ps))


# --- what a diagnosis found --------------------------------------------------------------------


def diagnosable(n: int = 12) -> tuple[EvaluationResult, list[str]]:
    """Return a result and its index: of three queries, two lose an item."""
    here, cut, nowhere = "a b c d e f", "g h i j k l m n o p", "q r s t u v"
    index = [here, "g h i j k", "l m n o p"]
    actual = [[here], [here, cut], [cut, nowhere, "!"]] * n
    queries = [f"q {i}?" for i in range(3 * n)]
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(
            actual, [[here, "x"]] * (3 * n), matcher="coverage", queries=queries
        )
        return evaluator.evaluate([1, 2]), index


HALF = "ignore:.*different documents that were retrieved"


@pytest.mark.filterwarnings(HALF)
def test_by_what_a_diagnosis_found() -> None:
    """The item that is furthest behind decides; one without words does not."""
    result, index = diagnosable()
    diagnosis = result.diagnose(index, k=1)
    expected = ["found", "cut_apart", "not_in_index"] * 12
    assert diagnosis.query_classes.to_list() == expected
    assert diagnosis.query_classes.index.to_list() == list(range(36))
    slices = result.by("diagnosis", 1, "micro_recall", diagnosis=diagnosis, **FEW)
    assert {one.slice: (one.n, one.value) for one in slices.rows} == {
        "found": (12, 1.0),
        "cut_apart": (12, 0.5),
        "not_in_index": (12, 0.0),
    }
    assert "k = 1" in slices.about


@pytest.mark.filterwarnings(HALF)
def test_a_diagnosis_that_was_read_back_divides_alike(tmp_path: Path) -> None:
    """So do results that were saved."""
    result, index = diagnosable()
    result.diagnose(index, k=1).to_json(tmp_path / "diagnosis.json")
    result.to_json(tmp_path / "result.json")
    diagnosis = Diagnosis.from_json(tmp_path / "diagnosis.json")
    saved = EvaluationResult.from_json(tmp_path / "result.json")
    slices = saved.by("diagnosis", metrics="mrr", diagnosis=diagnosis, **FEW)
    assert slices == result.by("diagnosis", metrics="mrr", diagnosis=diagnosis, **FEW)


def test_queries_without_items_have_no_class() -> None:
    """They are a slice of their own, where they count."""
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(
            [["a"], [], ["!"]], [["a"], ["a"], ["a"]], matcher="coverage", no_ground_truth="zero"
        )
        result = evaluator.evaluate(1)
    diagnosis = result.diagnose()
    assert diagnosis.query_classes.to_dict() == {0: "found", 2: "no_words"}
    with no_advice():
        slices = result.by("diagnosis", diagnosis=diagnosis, **FEW)
    assert set(slices.names) == {"found", "no_words", "(no diagnosis)"}


@pytest.mark.filterwarnings(HALF)
@pytest.mark.parametrize(
    ("tag", "make", "error", "argument"),
    [
        ("diagnosis", lambda one, index: None, InvalidInput, "tag"),
        ("diagnosis", lambda one, index: "found", InvalidType, "diagnosis"),
        ("items", lambda one, index: one.diagnose(index), InvalidInput, "diagnosis"),
        ("diagnosis", lambda one, index: diagnosable(10)[0].diagnose(index), InvalidInput,
         "diagnosis"),
    ],
)  # fmt: skip
def test_what_is_no_diagnosis_of_this_result(
    tag: str, make: Any, error: type[Exception], argument: str
) -> None:
    """It must be there for this tag alone, and of the same queries."""
    result, index = diagnosable()
    with pytest.raises(error) as refused:
        result.by(tag, diagnosis=make(result, index), **FEW)
    assert refused.value.argument == argument  # type: ignore[attr-defined]


def test_micro_averages_are_formed_anew() -> None:
    """Of three items two are found ten times, then of one item none: 20/30 and 0/10."""
    actual = [["a", "b", "c"]] * 10 + [["a"]] * 10
    predicted = [["a", "b"]] * 10 + [["x"]] * 10
    tags = {"corpus": ["wiki"] * 10 + ["chat"] * 10}
    result = OfflineRetrievalEvaluator(actual, predicted, tags=tags).evaluate(5)
    one = row(result.by("corpus", metrics="micro_recall", **FEW), "wiki", "micro_recall@5")
    assert (one.value, one.rest, one.n) == (20 / 30, 0.0, 10)
    assert one.p_permutation == pytest.approx(1 / 1001)  # none of 1000 is as extreme


def test_a_metric_counts_the_queries_where_it_is_defined() -> None:
    """Chat finds 12 of 20, at rank 2; wiki 20 of 20, at rank 1."""
    ranks, tags = [2] * 12 + [0] * 8 + [1] * 20, ["chat"] * 20 + ["wiki"] * 20
    slices = at_ranks(ranks, {"corpus": tags}).by("corpus", metrics=["mean_rank", "found_rate"])
    one = row(slices, "chat", "mean_rank@10")
    assert (one.n, one.value, one.rest) == (12, 2.0, 1.0)
    assert row(slices, "chat", "found_rate@10").n == 20
    assert slices.lower_is_better == ("mean_rank@10",)
    assert "wiki is better than the rest on found_rate@10" in slices.summary()
    assert "the rest is better than chat on mean_rank@10" in slices.summary()


def test_ranks_are_no_shares() -> None:
    """Though all of them are 1; without a range nobody knows what a metric of one's own is."""
    tags = {"corpus": ["wiki"] * 20 + ["chat"] * 20}
    ones = Metric("mine", lambda relevance, k, conventions: np.ones(40), "mine")
    result = at_ranks([1] * 40, tags, metrics=["rank", ones])
    for metric in ("mean_rank", "mine"):
        one = row(result.by("corpus", metrics=metric, **FEW), "wiki", f"{metric}@10")
        assert (one.low, one.high, one.ci_low, one.ci_high, one.p_permutation) == (1, 1, 0, 0, 1)


def test_notes_name_the_metric_that_few_queries_have() -> None:
    """Where it is undefined for others."""
    ranks, tags = [2] * 9 + [0] * 21 + [1] * 40, ["chat"] * 30 + ["wiki"] * 40
    slices = at_ranks(ranks, {"corpus": tags}).by("corpus", metrics=["mrr", "mean_rank"], **FEW)
    assert slices.notes == ["Too few queries for more than a count: chat on mean_rank@10 (9)."]


def test_too_few_defined_values_are_counted_alone() -> None:
    """9 of 20 found: no mean rank of the slice, though there are 20 queries."""
    ranks, tags = [2] * 9 + [0] * 11 + [1] * 20, ["chat"] * 20 + ["wiki"] * 20
    slices = at_ranks(ranks, {"corpus": tags}).by("corpus", metrics=["mean_rank", "mrr"], **FEW)
    one = row(slices, "chat", "mean_rank@10")
    assert one.n == 9
    assert math.isnan(one.value)
    assert math.isnan(row(slices, "wiki", "mean_rank@10").difference) is False
    assert math.isnan(row(slices, "wiki", "mean_rank@10").p_permutation)  # a rest of 9
    assert row(slices, "chat", "mrr@10").value == pytest.approx(9 / 40)


def test_under_ten_queries_there_are_counts_alone() -> None:
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


def test_one_slice_has_no_rest() -> None:
    """Nothing to tell it from."""
    one = row(found({"wiki": (30, 20)}).by("corpus", metrics="recall", **FEW), "wiki")
    assert one.value == 20 / 30
    assert all(map(math.isnan, (one.rest, one.difference, one.ci_low, one.p_holm)))


def test_queries_that_do_not_count_are_in_no_slice() -> None:
    """Of 30 tagged queries, ten have no ground truth and are skipped."""
    actual = [["a"]] * 20 + [[]] * 10
    predicted, tags = [["a"]] * 10 + [["x"]] * 20, {"corpus": ["wiki"] * 10 + ["chat"] * 20}
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, predicted, tags=tags, no_ground_truth="skip")
        slices = evaluator.evaluate(5).by("corpus", metrics="recall", **FEW)
    assert [(one.slice, one.n, one.value) for one in slices.rows] == [
        ("chat", 10, 0.0),
        ("wiki", 10, 1.0),
    ]


def test_the_main_averages_at_the_deepest_cutoff_unless_named() -> None:
    """Each at the cutoff asked for, or at its own."""
    result = found({"wiki": (20, 10), "chat": (20, 12)}, k=[1, 5])
    main = ["macro_recall@5", "ndcg@5", "mrr@5", "hit_rate@5"]
    assert result.by("corpus", **FEW).metrics == main
    assert result.by("corpus", 1, "hit", **FEW).metrics == ["hit_rate@1"]
    assert result.by("corpus", 1, ["map", "ndcg@5"], **FEW).metrics == ["map@1", "ndcg@5"]


def test_what_was_evaluated_is_sliced_where_no_main_average_was() -> None:
    """Micro averages alone, and a metric of one's own."""
    actual, predicted, tags = [["a"]] * 20, [["a"]] * 20, {"corpus": ["wiki"] * 20}
    micro = OfflineRetrievalEvaluator(actual, predicted, tags=tags, averaging_method="micro")
    assert micro.evaluate(5).by("corpus", **FEW).metrics[0] == "micro_recall@5"
    own = Metric("mine", lambda relevance, k, conventions: np.full(20, 0.25), "mine")
    result = OfflineRetrievalEvaluator(actual, predicted, tags=tags).evaluate(5, metrics=[own])
    assert row(result.by("corpus", **FEW), "wiki", "mine@5").value == 0.25


def test_the_same_seed_gives_the_same_digits() -> None:
    """Another one gives others."""
    ranks, tags = [1, 2, 3, 0] * 15, {"corpus": ["wiki", "chat", "news"] * 20}
    result = at_ranks(ranks, tags)
    first = result.by("corpus", metrics="mrr", seed=3, **FEW)
    assert first == result.by("corpus", metrics="mrr", seed=3, **FEW)
    assert first.rows != result.by("corpus", metrics="mrr", seed=4, **FEW).rows


# --- how queries are divided -------------------------------------------------------------------


def sizes(values: list[Any], tag: str = "tag") -> dict[str, int]:
    with no_advice():
        slices = sliceable([True] * len(values), {tag: values}).by(tag, metrics="mrr", **FEW)
    return {one.slice: one.n for one in slices.rows}


def test_texts_come_with_the_most_frequent_first() -> None:
    """Equally frequent ones by name; those without a value last, however many."""
    values = ["b"] * 2 + ["위키"] * 3 + ["a"] * 2 + [None] * 5
    assert list(sizes(values).items()) == [("위키", 3), ("a", 2), ("b", 2), ("(no tag)", 5)]


def test_few_numbers_have_a_slice_each() -> None:
    """In ascending order, whole or not."""
    assert sizes([3, 1, 2, 2, 10, None]) == {"1": 1, "2": 2, "3": 1, "10": 1, "(no tag)": 1}
    assert list(sizes([0.5, -1.25, 2.0])) == ["-1.25", "0.5", "2"]


def test_many_numbers_are_divided_at_their_quartiles() -> None:
    """Of 1 to 20, five each; bounds are values that occur."""
    assert sizes([*range(1, 21), None]) == {
        "1 – 5": 5,
        "6 – 10": 5,
        "11 – 15": 5,
        "16 – 20": 5,
        "(no tag)": 1,
    }


def test_a_number_that_most_have_is_a_slice_of_its_own() -> None:
    """Equal values are never parted."""
    assert sizes([1] * 21 + [2, 3, 4, 5, 6, 7, 9]) == {"1": 21, "2 – 9": 7}


def test_bounds_have_the_digits_it_takes() -> None:
    """To tell them apart."""
    values = [1 + i / 10**8 for i in range(8)]
    assert list(sizes(values)) == [
        "1 – 1.00000001",
        "1.00000002 – 1.00000003",
        "1.00000004 – 1.00000005",
        "1.00000006 – 1.00000007",
    ]


def test_values_that_read_alike_are_told_apart() -> None:
    """A number and a text, a text that is called like what has no tag; true is not 1."""
    assert sizes([3, "3", "x"]) == {"3": 1, '"3"': 1, "x": 1}
    assert sizes(["(no tag)", None]) == {'"(no tag)"': 1, "(no tag)": 1}
    assert sizes([True, 1, 1, False]) == {"1": 2, "False": 1, "True": 1}


def test_numbers_beyond_all_bounds_are_names() -> None:
    """No float holds them."""
    assert sizes([10**400, 1]) == {"1": 1, str(10**400): 1}


def test_a_tag_that_no_query_has() -> None:
    """One slice, of all."""
    assert sizes([None, None]) == {"(no tag)": 2}


# --- built-in tags -----------------------------------------------------------------------------


def by_builtin(tag: str, actual: list[Any], **options: Any) -> dict[str, int]:
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, [["x"]] * len(actual), **options)
        slices = evaluator.evaluate(5).by(tag, metrics="mrr", **FEW)
    assert slices.about
    return {one.slice: one.n for one in slices.rows}


def test_number_of_items() -> None:
    """Repeats are one item, and what is interchangeable is one too."""
    actual = [["a"], ["a", "b"], ["c", "c"], [AnyOf(["d", "e"]), "f"]]
    assert by_builtin("items", actual) == {"1": 2, "2": 2}


def test_question_length() -> None:
    """Counted in words; what is no text has none."""
    queries = ["What is it?", "대출 기간은?", 7]
    assert by_builtin("question_length", [["a"]] * 3, queries=queries) == {
        "2": 1,
        "3": 1,
        "(no question_length)": 1,
    }


def test_golden_length() -> None:
    """Of the longest item; of alternatives, finding the shortest is enough."""
    actual = [["one two", "one two three"], [AnyOf(["a b c d e", "a b"]), "f"], ["x y"]]
    assert by_builtin("golden_length", actual) == {"2": 2, "3": 1}


def test_language() -> None:
    """As the script tells it, by most words."""
    queries = [
        "RAG에서 recall@5를 계산하려면?",
        "What does 김치 mean?",
        "東京の天気は?",
        "什么是检索?",
        "Как это работает?",
        "2 + 2 = ?",
    ]
    assert by_builtin("language", [["a"]] * 6, queries=queries) == {
        "Cyrillic script": 1,
        "Han script": 1,
        "Japanese": 1,
        "Korean": 1,
        "Latin script": 1,
        "(no language)": 1,
    }


def test_the_queries_own_tags_come_first() -> None:
    """Whatever they are called."""
    slices = sliceable([True] * 20, {"items": ["few"] * 20}).by("items", metrics="mrr", **FEW)
    assert slices.names == ["few"]
    assert slices.about == ""


@pytest.mark.parametrize("tag", ["question_length", "language"])
def test_what_looks_at_questions_needs_them(tag: str) -> None:
    """Positions are no questions."""
    with pytest.raises(InvalidInput) as refused:
        sliceable([True] * 20, {}).by(tag)
    assert refused.value.argument == "tag"
    assert "queries" in str(refused.value.fix)


def test_golden_length_needs_texts(tmp_path: Path) -> None:
    """Saved with them it knows; without, or with ids for documents, it says what is missing."""
    result = sliceable([True] * 20, {})
    result.to_json(tmp_path / "bare.json")
    result.to_json(tmp_path / "texts.json", texts=True)
    saved = EvaluationResult.from_json(tmp_path / "texts.json")
    assert saved.by("golden_length", **FEW).names == ["1"]
    ids = sliceable([True] * 20, {}, matcher="id")
    for without in (EvaluationResult.from_json(tmp_path / "bare.json"), ids):
        with pytest.raises(InvalidInput) as refused:
            without.by("golden_length")
        assert refused.value.argument == "tag"


def test_golden_length_of_documents_with_ids() -> None:
    """These have texts, though the matcher looks at ids."""
    document = Document("some golden words", id="7")
    evaluator = OfflineRetrievalEvaluator([[document]] * 12, [["7"]] * 12, matcher="id")
    assert evaluator.evaluate(5).by("golden_length", **FEW).names == ["3"]


# --- where results come from -------------------------------------------------------------------


def test_saved_results_have_the_same_slices(tmp_path: Path) -> None:
    """To the last digit."""
    result = at_ranks([1, 2, 3, 0] * 15, {"corpus": ["wiki", "chat", "news"] * 20})
    result.to_json(tmp_path / "result.json")
    saved = EvaluationResult.from_json(tmp_path / "result.json")
    assert saved.by("corpus", **FEW) == result.by("corpus", **FEW)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_streamed_results_have_the_same_slices(tmp_path: Path, ending: str) -> None:
    """Where rows were kept, tags are among them; where none were, it says so."""
    rows = [
        {"question": f"q {i}?", "actual": ["a"], "predicted": ["a" if i % 3 else "x"],
         "corpus": "wiki" if i % 2 else "chat"}
        for i in range(60)
    ]  # fmt: skip
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    streamed = evaluate_file(path, 5, per_query=tmp_path / f"rows.{ending}")
    hits = [one["predicted"] == ["a"] for one in rows]
    tags = {"corpus": [one["corpus"] for one in rows]}
    here = sliceable(hits, tags, queries=[one["question"] for one in rows])
    for tag in ("corpus", "items", "language"):
        pd.testing.assert_frame_equal(streamed.by(tag, **FEW).table, here.by(tag, **FEW).table)
    with pytest.raises(InvalidInput) as refused:
        evaluate_file(path, 5).by("corpus")
    assert "per_query" in str(refused.value.fix)


def test_sums_alone_are_refused() -> None:
    """They hold no rows to divide."""
    result = found({"wiki": (20, 10)})
    bare = EvaluationResult(
        settings=result.settings, rows=NoRows(result.k, 20), keys=result.keys,
        averaging_method=result.averaging_method, conventions=result.conventions,
        totals=result.summary,
    )  # fmt: skip
    with pytest.raises(InvalidInput):
        bare.by("corpus")


@pytest.mark.parametrize(
    ("arguments", "error", "argument"),
    [
        ({"tag": "corpsu"}, InvalidInput, "tag"),
        ({"tag": 3}, InvalidType, "tag"),
        ({"tag": ""}, InvalidInput, "tag"),
        ({"k": 7}, InvalidInput, "k"),
        ({"metrics": "recal"}, InvalidInput, "metrics"),
        ({"metrics": "recall@7"}, InvalidInput, "metrics"),
        ({"metrics": 5}, InvalidType, "metrics"),
        ({"metrics": [5]}, InvalidInput, "metrics"),
        ({"metrics": []}, InvalidInput, "metrics"),
        ({"level": 1.0}, InvalidInput, "level"),
        ({"n_resamples": 1}, InvalidInput, "n_resamples"),
        ({"seed": -1}, InvalidInput, "seed"),
    ],
)
def test_what_cannot_be_is_refused(arguments: Any, error: type[Exception], argument: str) -> None:
    """By the argument's name; an unknown tag with those there are."""
    with pytest.raises(error) as refused:
        found({"wiki": (20, 10)}).by(**{"tag": "corpus", **arguments})
    assert refused.value.argument == argument  # type: ignore[attr-defined]


def test_an_unknown_tag_is_told_those_there_are() -> None:
    """The queries' own, then the built-in ones."""
    with pytest.raises(InvalidInput) as refused:
        found({"wiki": (20, 10)}).by("corpsu")
    known = ["corpus", "items", "question_length", "golden_length", "language"]
    assert ", ".join(map(repr, known)) in refused.value.problem
    assert "corpus" in refused.value.fix


# --- too many ----------------------------------------------------------------------------------


def test_slices_that_are_too_many_are_told() -> None:
    """Most queries in slices of fewer than ten: a warning, and a note that stays."""
    result = found({f"corpus {i}": (8, 4) for i in range(5)} | {"wiki": (39, 9)})
    with pytest.warns(KragEvalWarning) as caught:
        slices = result.by("corpus", metrics="recall", **FEW)
    assert len(caught) == 1
    assert "6 slices of 79 queries" in str(caught[0].message)
    assert any("6 slices of 79 queries" in note for note in slices.notes)
    assert [one.n for one in slices.rows] == [39, *[8] * 5]


def test_some_small_slices_are_not_too_many() -> None:
    """As long as half of the queries are in others."""
    result = found({f"corpus {i}": (8, 4) for i in range(5)} | {"wiki": (40, 9)})
    assert not any("too many" in note for note in result.by("corpus", **FEW).notes)


def test_far_too_many_are_not_tested() -> None:
    """600 slices of ten queries have values, and nothing else that would take long."""
    result = found({f"corpus {i}": (10, 4) for i in range(600)})
    with pytest.warns(KragEvalWarning, match="600 tests"):
        slices = result.by("corpus", metrics="recall", **FEW)
    assert {one.value for one in slices.rows} == {0.4}
    assert all(math.isnan(one.p_permutation) and math.isnan(one.low) for one in slices.rows)
    assert len(repr(slices).split("\n")) < 100
    with pytest.warns(KragEvalWarning, match="600 tests"):
        sliced = compare({"a": result, "b": result}, "mrr@5", **FEW).by("corpus")
    assert all(math.isnan(one.difference) for one in sliced.rows)


def test_p_that_cannot_be_small_enough_is_told() -> None:
    """Of 100 permutations the smallest p is 1/101; six tests make at least 0.059 of it."""
    ranks, tags = [1, 2, 3] * 10 + [7, 8, 9] * 20, ["wiki"] * 30 + ["chat", "news"] * 30
    result = at_ranks(ranks, {"corpus": tags})
    few = result.by("corpus", metrics=["mrr", "ndcg"], n_resamples=100)
    assert min(one.p_permutation for one in few.rows) == 1 / 101
    assert few.summary() == "No slice is shown to differ from the rest."
    assert any("n_resamples=100" in note for note in few.notes)
    enough = result.by("corpus", metrics=["mrr", "ndcg"], **FEW)
    assert not any("n_resamples" in note for note in enough.notes)


def test_two_slices_are_one_test_to_the_notes_too() -> None:
    """Each is the other's rest: three tests make 3/101 of it, and six would make 0.059."""
    ranks, tags = [1, 2] * 15 + [9, 10] * 15, ["wiki"] * 30 + ["chat"] * 30
    slices = at_ranks(ranks, {"corpus": tags}).by(
        "corpus", metrics=["mrr", "ndcg", "map"], n_resamples=100
    )
    assert [one.p_permutation for one in slices.rows] == [1 / 101] * 6
    assert [one.p_holm for one in slices.rows] == pytest.approx([3 / 101] * 6)
    assert slices.notes == []


def test_a_metric_that_is_undefined_for_every_query() -> None:
    """Nothing is found at any rank, so there is no rank to speak of."""
    slices = at_ranks([0] * 40, {"corpus": ["a", "b"] * 20}).by("corpus", metrics=["rank", "mrr"])
    assert [one.n for one in slices.rows if one.metric == "mean_rank@10"] == [0, 0]
    assert math.isnan(row(slices, "a", "mean_rank@10").value)
    assert row(slices, "a", "mrr@10").value == 0.0


# --- comparisons -------------------------------------------------------------------------------


def systems(n_resamples: int = 1000) -> tuple[Any, list[list[int]], list[str]]:
    chance = random.Random(4)
    ranks = [[chance.choice([0, 1, 2, 3]) for _ in range(90)] for _ in range(2)]
    tags = [("wiki", "chat", "news")[min(i // 40, 2)] for i in range(90)]
    results = {name: at_ranks(one, {"corpus": tags}) for name, one in zip("ab", ranks, strict=True)}
    compared = compare(results, ["mrr@10", "macro_recall@10"], n_resamples=n_resamples)
    return compared, ranks, tags


def test_a_comparison_of_a_slice_is_that_of_its_queries_alone() -> None:
    """Difference, interval, p, wins and losses; Holm over all slices and metrics."""
    compared, ranks, tags = systems()
    sliced = compared.by("corpus")
    assert sliced.names == ["chat", "wiki", "news"]
    ps = []
    for name in sliced.names:
        at = [i for i, tag in enumerate(tags) if tag == name]
        alone = {
            system: at_ranks([one[i] for i in at], {})
            for system, one in zip("ab", ranks, strict=True)
        }
        with no_advice():
            expected = compare(alone, ["mrr@10", "macro_recall@10"], n_resamples=1000).differences
        for one in expected:
            (ours,) = [o for o in sliced.rows if (o.slice, o.metric) == (name, one.metric)]
            assert ours.n == len(at)
            for field in ("a", "b", "value_a", "value_b", "difference", "ci_low", "ci_high",
                          "p_permutation", "wins", "ties", "losses"):  # fmt: skip
                assert getattr(ours, field) == getattr(one, field)
            ps.append((ours.p_permutation, ours.p_holm))
    ps.sort()
    assert ps[0][1] == min(1.0, 6 * ps[0][0])
    assert ps[-1][1] == max(p for _, p in ps)


def test_small_slices_of_a_comparison_are_counted_alone() -> None:
    """Nine queries."""
    results = {
        name: found({"wiki": (30, hits), "chat": (9, hits // 5)}) for name, hits in
        {"a": 10, "b": 20}.items()
    }  # fmt: skip
    sliced = compare(results, "mrr@5", **FEW).by("corpus")
    assert [(one.slice, one.n) for one in sliced.rows] == [("wiki", 30), ("chat", 9)]
    assert math.isnan(sliced.rows[1].difference)
    assert sliced.rows[0].difference == pytest.approx(1 / 3)


def test_three_systems_are_sliced_pair_by_pair() -> None:
    """Three pairs of each of two slices."""
    hits = {"a": 5, "b": 9, "c": 20}
    results = {name: found({"x": (20, n), "y": (20, 5)}) for name, n in hits.items()}
    sliced = compare(results, "mrr@5", **FEW).by("corpus")
    assert [(one.slice, one.a, one.b) for one in sliced.rows] == [
        (name, *pair) for name in "xy" for pair in ("ab", "ac", "bc")
    ]
    assert sliced.summary().startswith("x: c is better than a on mrr@5")
    assert "y:" not in sliced.summary()


def test_one_system_may_know_the_tags_of_all() -> None:
    """The queries are the same."""
    tagged, bare = found({"wiki": (20, 10)}), sliceable([True] * 20, {})
    with no_advice():
        assert compare({"a": bare, "b": tagged}, "mrr@5", **FEW).by("corpus").names == ["wiki"]
        compared = compare({"a": bare, "b": tagged}, "mrr@5", **FEW)
    assert compared.by("golden_length").names == ["1"]


def test_systems_that_are_tagged_differently_are_refused() -> None:
    """Naming the first query that differs."""
    results = {"a": found({"wiki": (20, 10)}), "b": found({"wiki": (15, 10), "chat": (5, 0)})}
    with no_advice(), pytest.raises(InvalidInput) as refused:
        compare(results, "mrr@5", **FEW).by("corpus")
    assert refused.value.argument == "tag"
    assert "15" in refused.value.problem


# --- gates -------------------------------------------------------------------------------------


def test_a_slice_that_drops_fails_though_the_whole_does_not() -> None:
    """All: 60 to 57 of 80, within 0.05; chat: 10 to 2 of 20."""
    old = found({"wiki": (60, 50), "chat": (20, 10)})
    new = found({"wiki": (60, 55), "chat": (20, 2)})
    assert new.check(baseline=old, metric="recall@5", max_drop=0.05)
    report = new.check(baseline=old, metric="recall@5", max_drop=0.05, by="corpus")
    assert [(gate.slice, gate.passed) for gate in report.gates] == [
        (None, True),
        ("wiki", True),
        ("chat", False),
    ]
    assert report.failures[0].startswith("corpus chat: macro_recall@5 went from 0.5000 to 0.1000")


def test_a_drop_of_a_slice_that_may_be_chance_passes() -> None:
    """One query of twelve."""
    old, new = found({"x": (40, 30), "y": (12, 7)}), found({"x": (40, 30), "y": (12, 6)})
    assert new.check(baseline=old, metric="mrr@5", by="corpus")


def test_slices_too_small_to_check_are_named() -> None:
    """They pass, and the report says that they were not looked at."""
    old, new = found({"x": (40, 30), "y": (9, 9)}), found({"x": (40, 30), "y": (9, 0)})
    report = new.check(baseline=old, metric=["mrr@5", "hit@5"], max_drop=0.3, by="corpus")
    small = [gate for gate in report.gates if gate.slice == "y"]
    assert [(gate.metric, gate.passed) for gate in small] == [("mrr@5", True), ("hit_rate@5", True)]
    assert "9 queries" in small[0].reason


def test_a_gate_stays_on_one_line() -> None:
    """Whatever a slice is called."""
    old = found({"x\ny\x1b[31m": (20, 10), "z": (20, 10)})
    reasons = [gate.reason for gate in old.check(baseline=old, metric="mrr@5", by="corpus").gates]
    assert all(reason.isprintable() for reason in reasons)


@pytest.mark.parametrize("by", ["corpsu", 3])
def test_a_gate_names_its_own_argument(by: Any) -> None:
    """It is called ``by`` there."""
    old = found({"x": (40, 30)})
    with pytest.raises((InvalidInput, InvalidType)) as refused:
        old.check(baseline=old, metric="mrr@5", by=by)
    assert refused.value.argument == "by"


def test_slices_need_a_baseline() -> None:
    """As the metric does."""
    with pytest.raises(InvalidInput) as refused:
        found({"x": (40, 30)}).check({"mrr@5": 0.1}, by="corpus")
    assert refused.value.argument == "by"


def test_far_too_many_slices_are_no_gate() -> None:
    """Nothing would be checked."""
    old = found({f"corpus {i}": (10, 4) for i in range(600)})
    with no_advice(), pytest.raises(InvalidInput) as refused:
        sliced_comparison(compare({"a": old, "b": old}, "mrr@5", **FEW), "corpus", few_slices=True)
    assert refused.value.argument == "tag"


# --- how they are shown and saved --------------------------------------------------------------


def test_the_table_has_a_row_per_slice_and_metric() -> None:
    """With the numbers of the rows."""
    slices = found({"wiki": (20, 10), "chat": (20, 15)}).by("corpus", metrics=["mrr", "map"], **FEW)
    assert slices.table.columns.tolist() == [
        "slice", "metric", "n", "value", "low", "high", "rest", "difference", "ci_low", "ci_high",
        "p_permutation", "p_holm",
    ]  # fmt: skip
    assert slices.table[["slice", "metric", "n", "value"]].to_numpy().tolist() == [
        ["chat", "mrr@5", 20, 0.75],
        ["chat", "map@5", 20, 0.75],
        ["wiki", "mrr@5", 20, 0.5],
        ["wiki", "map@5", 20, 0.5],
    ]


def test_what_is_printed() -> None:
    """How many slices by what, their numbers, what is shown, and what to bear in mind."""
    result = found({"wiki": (40, 39), "chat": (20, 4), "news": (5, 5)})
    head, _, header, *lines = repr(result.by("corpus", metrics="recall")).split("\n")
    assert head == "3 slices of 65 queries by corpus"
    assert header.split()[:4] == ["slice", "metric", "n", "value"]
    assert lines[0].split()[:4] == ["wiki", "macro_recall@5", "40", "0.9750"]
    assert lines[2].split()[:4] == ["news", "macro_recall@5", "5", "–"]
    assert lines[3].startswith("wiki is better than the rest on macro_recall@5 by 0.615")
    assert lines[4].startswith("the rest is better than chat on macro_recall@5")
    assert "news (5)" in lines[5]
    assert "chat (20)" in lines[6]
    assert lines[7].startswith("matcher=text")


def test_html_is_escaped() -> None:
    """Names of tags and slices are the user's."""
    hostile = "<script>alert(1)</script>"
    slices = sliceable([True] * 20, {hostile: [hostile] * 20}).by(hostile, **FEW)
    shown = slices._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    with no_advice():
        result = sliceable([True] * 20, {hostile: [hostile] * 20})
        sliced = compare({"<b>": result, "b": result}, "mrr@5", **FEW).by(hostile)
    assert "<b>" not in sliced._repr_html_().replace("<tbody>", "")


def test_slices_are_read_back(tmp_path: Path) -> None:
    """Equal in everything, also what is undefined; a name may be half of a character."""
    slices = found({"wiki": (20, 10), "\ud800": (9, 3)}).by("corpus", **FEW)
    slices.to_json(tmp_path / "slices.json")
    read = Slices.from_json(tmp_path / "slices.json")
    assert read == slices
    assert repr(read) == repr(slices)
    compared, *_ = systems(200)
    sliced = compared.by("corpus")
    sliced.to_json(tmp_path / "sliced.json")
    assert SlicedComparison.from_json(tmp_path / "sliced.json") == sliced
    assert read != slices.rows
    assert slices != sliced


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """By its name: other content, the other kind, a changed type, a lost column."""
    path = tmp_path / "slices.json"
    found({"wiki": (20, 10), "chat": (20, 10)}).by("corpus", **FEW).to_json(path)
    content = json.loads(path.read_text("utf-8"))
    changed: list[Any] = [
        "{",
        [],
        {},
        {**content, "format_version": 2},
        {**content, "kind": "comparison"},
        {**content, "level": "0.95"},
        {**content, "rows": 3},
        {**content, "overall": []},
        {**content, "overall": {"mrr@5": 10**400}},
        {**content, "lower_is_better": [3]},
        {**content, "rows": [{**content["rows"][0], "n": 1.5}]},
        {**content, "rows": [{"slice": "wiki"}]},
    ]
    for one in changed:
        path.write_text(one if isinstance(one, str) else json.dumps(one), "utf-8")
        with pytest.raises(InvalidInput) as refused:
            Slices.from_json(path)
        assert refused.value.file == str(path)
    with pytest.raises(FileNotFoundError):
        Slices.from_json(tmp_path / "none.json")


def test_who_asks_for_no_tag_is_told_how_a_query_gets_one() -> None:
    """A further field of a row, or an argument; beside the nearest name, if there is one."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    for tag in ("corpus", "lang"):
        with pytest.raises(InvalidInput) as info:
            result.by(tag)
        assert info.value.argument == "tag"
        assert "further column" in str(info.value.fix)
        assert "tags=" in str(info.value.fix)
