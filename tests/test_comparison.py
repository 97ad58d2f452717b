"""Comparisons against scipy, against enumeration written out here, and at the edges."""

import dataclasses
import itertools
import math
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import no_advice
from scipy import stats

from krag_eval import (
    AnyOf,
    Conventions,
    EvaluationResult,
    ExactTextMatcher,
    IdMatcher,
    KragEvalWarning,
    Matcher,
    MetadataMatcher,
    Metric,
    OfflineRetrievalEvaluator,
)
from krag_eval._language import language
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.presenting.comparison import toward_better
from krag_eval.results.latency import Failure, RetrievalRun
from krag_eval.results.rows import RowsInFile, flat_columns, write_rows
from krag_eval.scoring.averages import in_pairs
from krag_eval.scoring.metrics import metrics_of
from krag_eval.statistics.comparison import (
    Comparison,
    check_comparable,
    compare,
)
from krag_eval.statistics.paired import Difference, holm
from krag_eval.statistics.slices import SlicedComparison

few_queries = pytest.mark.filterwarnings("ignore:The intervals rest on")
nothing_matched = pytest.mark.filterwarnings("ignore:The matcher .* matched nothing")

COLUMNS = [
    *("a", "b", "metric", "value_a", "value_b", "difference", "ci_low", "ci_high"),
    *("p_permutation", "p_t", "p_holm", "effect_size", "wins", "ties", "losses"),
]


def result_of(
    ranks: list[list[int]], n_items: int | list[int] = 1, k: object = 10, **options: object
) -> EvaluationResult:
    """Make the result of queries whose first items are retrieved at the given ranks, of ten."""
    sizes = [n_items] * len(ranks) if isinstance(n_items, int) else n_items
    actual = [[f"item {i}" for i in range(n)] for n in sizes]
    predicted = []
    for found in ranks:
        documents = [f"junk {rank}" for rank in range(1, 11)]
        for i, rank in enumerate(found):
            documents[rank - 1] = f"item {i}"
        predicted.append(documents)
    return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(k=k)


def random_results(seed: int, n_queries: int, n_systems: int = 2, **options: object):
    """Make results of systems that retrieve at random, over the same queries."""
    rng = np.random.default_rng(seed)
    n_items = rng.choice([1, 2, 4], n_queries).tolist()
    return {
        f"system {number}": result_of(
            [
                rng.choice(np.arange(1, 11), rng.integers(0, n + 1), replace=False).tolist()
                for n in n_items
            ],
            n_items,
            **options,
        )
        for number in range(n_systems)
    }


def only(comparison: Comparison) -> Difference:
    (difference,) = comparison.differences
    return difference


def test_table_has_a_row_per_pair_and_metric():
    """Pairs come in the order given, metrics within them, and the columns are the promised ones."""
    results = random_results(1, 40, n_systems=3, k=(5, 10))
    comparison = compare(results, ["mrr@10", "micro_recall@5"], n_resamples=100)
    table = comparison.table
    assert list(table.columns) == COLUMNS
    assert table[["a", "b", "metric"]].to_numpy().tolist() == [
        [f"system {a}", f"system {b}", metric]
        for a, b in [(0, 1), (0, 2), (1, 2)]
        for metric in ("mrr@10", "micro_recall@5")
    ]
    assert comparison.names == ["system 0", "system 1", "system 2"]
    assert comparison.metrics == ["mrr@10", "micro_recall@5"]


def test_values_and_difference_are_those_of_the_results():
    """The difference is the second average minus the first, each as its result prints it."""
    results = random_results(2, 40, k=(3, None))
    metrics = [name for name in results["system 0"].to_dict() if not name.startswith("mean_rank")]
    for row in compare(results, metrics, n_resamples=100).differences:
        assert row.value_a == results["system 0"].to_dict()[row.metric]
        assert row.value_b == results["system 1"].to_dict()[row.metric]
        assert row.difference == row.value_b - row.value_a


# Intervals.


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_agree_with_scipy(level):
    """The interval is scipy's paired percentile bootstrap with the same seed, micro or macro."""
    results = random_results(3, 80)
    a, b = (result.tables[10] for result in results.values())

    def by_scipy(statistic, *columns):
        interval = stats.bootstrap(
            columns,
            statistic,
            paired=True,
            n_resamples=2_000,
            confidence_level=level,
            method="percentile",
            random_state=np.random.default_rng(7),
        ).confidence_interval
        return pytest.approx([interval.low, interval.high], rel=1e-9)

    def micro(x, y, n, axis=-1):
        return (y.sum(axis=axis) - x.sum(axis=axis)) / n.sum(axis=axis)

    metrics = ["ndcg@10", "micro_recall@10", "mean_rank@10"]
    rows = compare(results, metrics, level=level, n_resamples=2_000, seed=7).differences
    ndcg, recall, rank = ([row.ci_low, row.ci_high] for row in rows)
    assert ndcg == by_scipy(lambda d, axis=-1: d.mean(axis=axis), b["ndcg"] - a["ndcg"])
    assert recall == by_scipy(micro, a["covered"], b["covered"], a["ground_truth"])
    differences = b["rank"] - a["rank"]  # of those where both found something
    of_both = differences[~np.isnan(differences)]
    assert 0 < len(of_both) < 80
    assert rank == by_scipy(lambda d, axis=-1: d.mean(axis=axis), of_both)


# The permutation test.


@few_queries
@pytest.mark.parametrize("seed", range(4))
def test_permutation_of_means_agrees_with_enumeration(seed):
    """On twelve queries p is the share of all sign flips, here and in scipy, at least as large."""
    results = random_results(seed, 12)
    a, b = (result.tables[10]["average_precision"] for result in results.values())
    flips = np.array(list(itertools.product([1, -1], repeat=12)))
    sums = np.abs(flips @ (b - a))
    expected = np.mean(sums >= abs((b - a).sum()) - 1e-9)
    p = only(compare(results, "map@10", n_resamples=100)).p_permutation
    assert p == pytest.approx(expected, rel=1e-12)
    by_scipy = stats.permutation_test(
        (a, b),
        lambda x, y: np.mean(y - x),
        permutation_type="samples",
        vectorized=False,
        n_resamples=np.inf,
    )
    assert p == pytest.approx(by_scipy.pvalue, rel=1e-12)


@few_queries
@pytest.mark.parametrize("metric", ["micro_f1", "micro_precision", "macro_f1"])
def test_permutation_of_other_averages_agrees_with_enumeration(metric):
    """Averages that are not means are formed anew from the swapped outcomes of each query."""
    first = [[1], [2], [3, 1], [9], [5], [6, 2], [4]]
    second = [[2], [1], [2, 5], [4], [5], [7], []]
    results = {"a": result_of(first, 2, k=6), "b": result_of(second, 2, k=6)}

    def difference(pairs):
        ones, others = (result_of(ranks, 2, k=6) for ranks in map(list, zip(*pairs, strict=True)))
        return abs(others.averages()[metric] - ones.averages()[metric])

    pairs = list(zip(first, second, strict=True))
    observed = difference(pairs)
    differences = [
        difference([pair[::way] for pair, way in zip(pairs, ways, strict=True)])
        for ways in itertools.product([1, -1], repeat=len(pairs))
    ]
    expected = np.mean(np.array(differences) >= observed - 1e-9)
    assert only(compare(results, f"{metric}@6")).p_permutation == pytest.approx(expected)


@few_queries
def test_permutation_by_hand():
    """Three wins of the same size and nothing else: two of the eight flips are as extreme."""
    results = {"a": result_of([[2]] * 3 + [[1]] * 4), "b": result_of([[1]] * 7)}
    row = only(compare(results, "mrr@10"))
    assert row.p_permutation == 2 / 8
    assert (row.wins, row.ties, row.losses) == (3, 4, 0)


@few_queries
def test_random_swaps_agree_with_enumeration():
    """With sixteen differing queries, random swaps come near the share of all 65,536."""
    results = random_results(8, 20)
    a, b = (result.tables[10]["ndcg"] for result in results.values())
    changed = (b - a)[np.abs(b - a) > 1e-12]
    assert 14 < len(changed) <= 20
    flips = 1 - 2 * ((np.arange(2 ** len(changed))[:, np.newaxis] >> np.arange(len(changed))) & 1)
    exact = np.mean(np.abs(flips @ changed) >= abs(changed.sum()) - 1e-9)
    p = only(compare(results, "ndcg@10", n_resamples=40_000)).p_permutation
    # Four standard errors of a share estimated from 40,000.
    assert p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000))


def test_random_swaps_never_give_zero():
    """However clear the difference, p is at least 1 / (swaps + 1) (Phipson and Smyth 2010)."""
    results = {"a": result_of([[9]] * 60), "b": result_of([[1]] * 60)}
    row = only(compare(results, "mrr@10", n_resamples=999))
    assert row.p_permutation == 1 / 1000


def test_among_many_tests_the_clearest_difference_is_shown():
    """Of 45 pairs on eight metrics: all against one, with more swaps than asked for."""
    results = {f"s{i}": result_of([[1], *[[1] if i else []] * 39], k=(5, 10)) for i in range(10)}
    metrics = [f"{name}@{k}" for name in ("mrr", "ndcg", "map", "hit_rate") for k in (5, 10)]
    comparison = compare(results, metrics)
    row = comparison.differences[0]
    assert row.p_permutation == pytest.approx(1 / 14_401)  # 2 · 360 / 0.05 swaps
    assert row.p_holm < 0.025
    assert row.is_shown()
    # Where 10,000 are enough, so many are made.
    (few,) = compare([results["s0"], results["s1"]], metric="mrr@5").differences
    assert few.p_permutation == 1 / 10_001


def test_few_swaps_and_several_metrics():
    """A gate, whole and by slices, can fail however few resamples it takes."""
    tags = {"part": ["x"] * 40 + ["y"] * 40}
    lists = [[1]] * 80, [[1], *[[]] * 39] * 2
    old, new = (result_of(one, k=5, tags=tags) for one in lists)
    metrics = ["ndcg@5", "mrr@5", "map@5", "recall@5", "hit_rate@5", "precision@5"]
    report = new.check(baseline=old, metric=metrics, n_resamples=100, by="part")
    assert [gate.outcome for gate in report.gates] == ["failed"] * 18


def test_more_than_any_number_of_swaps_can_show():
    """At a level of one in a million, it takes two million swaps, which are not made unasked."""
    results = {"a": result_of([[9]] * 60), "b": result_of([[1]] * 60)}
    with pytest.warns(KragEvalWarning, match="n_resamples=2000000"):
        row = only(compare(results, "mrr@10", level=1 - 1e-6, n_resamples=100))
    assert row.p_permutation == 1 / 100_001


# Averages over the queries that have a value.


def test_finding_nothing_is_not_better():
    """60 of 60 are found at rank 3, or 6 at rank 1: lower where both found one, and of fewer."""
    results = {"base": result_of([[3]] * 60), "new": result_of([[1]] * 6 + [[]] * 54)}
    comparison = compare(results, "mean_rank@10")
    row = only(comparison)
    assert (row.value_a, row.value_b, row.n_both) == (3.0, 1.0, 6)
    assert (row.share_a, row.share_b) == (1.0, 0.1)
    assert row.p_permutation == 2 / 2**6  # six differences of one sign
    assert (row.better, row.is_of_fewer, row.is_shown()) == ("new", True, False)
    assert row.shows_fewer()
    assert "is better than" not in comparison.summary()
    assert "on the 6 queries where both have a value" in comparison.summary()
    assert "base has one for 100.0% of the queries, new for 10.0%" in comparison.summary()
    assert comparison.table.loc[0, ["n_both", "share_a", "share_b"]].tolist() == [6, 1.0, 0.1]


@pytest.mark.parametrize("more", [1, 20])
def test_finding_more_does_not_excuse_ranking_all_lower(more, tmp_path):
    """60 go from rank 1 to 10 while some more are found: worse, and its page says so too."""
    old = result_of([[1]] * 60 + [[]] * more)
    new = result_of([[10]] * (60 + more))
    comparison = compare({"old": old, "new": new}, "mean_rank@10")
    row = only(comparison)
    assert (row.n_both, row.difference, row.p_holm < 0.001) == (60, 9.0, True)
    assert (row.better, row.is_of_fewer, row.is_of_more, row.is_shown()) == (
        "old", False, True, True
    )  # fmt: skip
    assert "new is worse than old on mean_rank@10" in comparison.summary()
    comparison.report(tmp_path / "page.html")
    assert "a value for more queries" in (tmp_path / "page.html").read_text("utf-8")
    assert new.check(baseline=old, metric="mean_rank@10").outcome == "failed"
    # And the other way round: who gives up on the hard ones is not called better.
    assert not only(compare({"new": new, "old": old}, "mean_rank@10")).is_shown()


def test_the_best_of_a_leaderboard_has_a_value_for_as_many():
    """The best mean rank is that of the system that found one query of 40: it has no star."""
    results = {
        "all": result_of([[2]] * 40),
        "one": result_of([[1]] + [[]] * 39),
        "late": result_of([[3]] * 40),
    }
    board = compare(results, ["mean_rank@10", "mrr@10"]).leaderboard
    assert not board["mean_rank@10_best"].any()
    assert board["mrr@10_best"].to_dict() == {"one": False, "all": True, "late": False}
    del results["one"]
    assert compare(results, "mean_rank@10").leaderboard["mean_rank@10_best"].tolist() == [
        True,
        False,
    ]


def test_the_share_with_a_value_is_a_test_of_its_own():
    """And is counted by Holm's correction: p of 0.03125 is doubled."""
    results = {"base": result_of([[3]] * 60), "new": result_of([[1]] * 6 + [[]] * 54)}
    row = only(compare(results, "mean_rank@10"))
    found = only(compare(results, "found_rate@10"))
    assert row.p_share == found.p_permutation
    assert [row.p_share_holm, row.p_holm] == holm([row.p_share, row.p_permutation])


def test_a_rank_of_as_many_is_better():
    """Both miss one query, each another one; 58 ranks went from 3 to 1."""
    results = {"a": result_of([[], *[[3]] * 59]), "b": result_of([*[[1]] * 59, []])}
    row = only(compare(results, "mean_rank@10"))
    assert (row.value_a, row.value_b, row.n_both, row.is_of_fewer) == (3.0, 1.0, 58, False)
    assert (row.better, row.is_shown()) == ("b", True)


@few_queries
def test_ranks_without_a_query_in_common():
    """Each found what the other did not: the averages stay, and nothing is compared."""
    results = {"a": result_of([[1], []]), "b": result_of([[], [4]])}
    comparison = compare(results, "mean_rank@10")
    row = only(comparison)
    assert (row.value_a, row.value_b, row.n_both) == (1.0, 4.0, 0)
    assert math.isnan(row.difference)
    assert math.isnan(row.p_permutation)
    assert "no query has a value in both" in comparison.summary()


def test_where_all_have_a_value_nothing_is_said_of_it():
    """The table has its usual columns."""
    comparison = compare({"a": result_of([[3]] * 40), "b": result_of([[1]] * 40)}, "mean_rank@10")
    assert list(comparison.table.columns) == COLUMNS
    assert "have a value" not in comparison.summary()
    assert only(comparison).is_shown()


def test_slices_go_by_the_same_rule(tmp_path):
    """In one slice b finds less at better ranks: it is better in the other alone."""

    def tagged(ranks):
        predicted = [[*["?"] * (rank - 1), "a"] if rank else ["?"] for rank in ranks]
        tags = {"part": ["x"] * 30 + ["y"] * 30}
        return OfflineRetrievalEvaluator([["a"]] * 60, predicted, tags=tags).evaluate(10)

    results = {"a": tagged([3] * 60), "b": tagged([1] * 10 + [0] * 20 + [1] * 30)}
    sliced = compare(results, "mean_rank@10").by("part")
    assert [(row.slice, row.is_shown()) for row in sliced.rows] == [("x", False), ("y", True)]
    assert (sliced.rows[0].n_both, sliced.rows[0].share_b) == (10, 1 / 3)
    sliced.to_json(tmp_path / "slices.json")
    assert SlicedComparison.from_json(tmp_path / "slices.json") == sliced


# The t-test and the effect size.


def test_t_test_and_effect_size_agree_with_scipy_and_the_formula():
    """The t-test is scipy's, the effect size the mean of the differences over their spread."""
    results = random_results(5, 50)
    a, b = (result.tables[10]["ndcg"] for result in results.values())
    row = only(compare(results))
    assert row.p_t == stats.ttest_rel(b, a).pvalue
    # d_z = t / sqrt(n) (Lakens 2013).
    assert row.effect_size == pytest.approx(stats.ttest_rel(b, a).statistic / math.sqrt(50))


@pytest.mark.parametrize(
    ("metric", "is_mean"),
    [
        ("micro_recall@10", False),
        ("micro_precision@10", False),
        ("micro_f1@10", False),
        ("macro_f1@10", False),
        ("mean_rank@10", True),
        ("macro_recall@10", True),
        ("found_rate@10", True),
        ("hit_rate@10", True),
    ],
)
def test_t_test_needs_a_mean_over_all_queries(metric, is_mean):
    """Elsewhere p_t and the effect size are NaN, and the permutation test is not."""
    row = only(compare(random_results(6, 50), metric))
    assert math.isnan(row.p_t) is not is_mean
    assert math.isnan(row.effect_size) is not is_mean
    assert 0 < row.p_permutation <= 1


def test_macro_f1_may_be_a_mean():
    """Under mean_of_f1 macro F1 is a mean over queries, and so is the mean rank if all is found."""
    conventions = Conventions(macro_f1="mean_of_f1")
    results = random_results(6, 50, conventions=conventions)
    a, b = (result.tables[10]["f1"] for result in results.values())
    assert only(compare(results, "macro_f1@10")).p_t == stats.ttest_rel(b, a).pvalue
    found = {"a": result_of([[1], [2], [3]] * 10), "b": result_of([[3], [9], [3]] * 10)}
    p = stats.ttest_rel([3, 9, 3] * 10, [1, 2, 3] * 10).pvalue
    assert only(compare(found, "mean_rank@10")).p_t == p


def test_identical_results_differ_in_nothing():
    """Nothing differs: p is 1 in every test, and the interval is 0 to 0."""
    (result,) = random_results(7, 40, n_systems=1).values()
    row = only(compare({"a": result, "b": result}))
    assert (row.difference, row.ci_low, row.ci_high, row.effect_size) == (0, 0, 0, 0)
    assert (row.p_permutation, row.p_t, row.p_holm) == (1, 1, 1)
    assert (row.wins, row.ties, row.losses) == (0, 40, 0)
    assert row.better is None
    assert not row.is_shown()


def test_constant_differences_have_no_t_test():
    """All queries differ alike: the effect is infinite, and the t-test has nothing to go by."""
    better = {"a": result_of([[5]] * 30), "b": result_of([[2]] * 30)}
    row = only(compare(better, "mrr@10"))
    assert row.effect_size == math.inf
    assert math.isnan(row.p_t)
    assert (row.ci_low, row.ci_high) == pytest.approx((0.3, 0.3))
    worse = dict(reversed(better.items()))
    assert only(compare(worse, "mrr@10")).effect_size == -math.inf


@few_queries
def test_one_query_allows_no_conclusion():
    """With one query the t-test is undefined and the permutation test says 1."""
    row = only(compare({"a": result_of([[2]]), "b": result_of([[1]])}, "mrr@10"))
    assert math.isnan(row.p_t)
    assert row.p_permutation == 1
    assert (row.wins, row.ties, row.losses) == (1, 0, 0)


def test_t_test_never_gives_zero():
    """A p too small for a float is given as the smallest one."""
    ranks = [[1]] * 3999 + [[2]]
    results = {"a": result_of([[10]] * 4000), "b": result_of(ranks)}
    row = only(compare(results, "mrr@10", n_resamples=100))
    assert row.p_t == sys.float_info.min


# Holm.


def test_holm_by_hand():
    """0.005 × 4; 0.01 × 3; 0.03 × 2; 0.04 × 1 is pulled up to the one before (R: p.adjust)."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    ("given", "expected"),
    [([], []), ([0.7, 0.6], [1.0, 1.0]), ([0.02, math.nan], [0.02, math.nan])],
)
def test_holm_at_the_edges(given, expected):
    """Nothing stays nothing, nothing exceeds 1, and what is undefined is no comparison."""
    assert holm(given) == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_lies_between_none_and_bonferroni(p_values):
    """Corrected p-values are no smaller than they were, and no larger than Bonferroni's."""
    corrected = holm(p_values)
    for p, q in zip(p_values, corrected, strict=True):
        assert p <= q <= min(1, p * len(p_values))
    order = np.argsort(p_values)
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


def test_holm_spans_pairs_and_metrics():
    """Three pairs and two metrics are six comparisons."""
    comparison = compare(random_results(9, 40, n_systems=3), ["map@10", "mrr@10"], n_resamples=200)
    permutation = [row.p_permutation for row in comparison.differences]
    assert [row.p_holm for row in comparison.differences] == holm(permutation)
    smallest = int(np.argmin(permutation))
    assert comparison.differences[smallest].p_holm == min(1, 6 * permutation[smallest])


# Whichever way round.


@few_queries
@nothing_matched
@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.sampled_from([[], [1], [2], [4], [1, 2], [9, 3]])] * 2),
        min_size=1,
        max_size=24,
    ),
    st.sampled_from(["ndcg@10", "micro_f1@10", "macro_f1@10", "found_rate@10", "hit_rate@10"]),
)
def test_swapping_the_systems_mirrors_the_row(pairs, metric):
    """From b to a, every sign turns, wins and losses change places, and p stays."""
    a, b = (result_of(list(ranks), 2) for ranks in zip(*pairs, strict=True))
    row = only(compare({"a": a, "b": b}, metric, n_resamples=100))
    mirrored = only(compare({"b": b, "a": a}, metric, n_resamples=100))
    assert mirrored.difference == -row.difference
    assert (-mirrored.ci_high, -mirrored.ci_low) == pytest.approx((row.ci_low, row.ci_high))
    assert mirrored.p_permutation == row.p_permutation
    assert mirrored.p_t == pytest.approx(row.p_t, nan_ok=True)
    assert mirrored.effect_size == pytest.approx(-row.effect_size, nan_ok=True)
    assert (mirrored.wins, mirrored.ties, mirrored.losses) == (row.losses, row.ties, row.wins)
    assert row.wins + row.ties + row.losses == len(pairs)
    assert 0 < row.p_permutation <= row.p_holm <= 1


def test_lower_ranks_are_better():
    """On mean_rank a win is a lower rank, and found beats not found."""
    results = {
        "a": result_of([[3]] * 30 + [[1], [], [], [2]]),
        "b": result_of([[2]] * 30 + [[2], [9], [], []]),
    }
    row = only(compare(results, "mean_rank@10"))
    # Of the 31 queries where both found it: (30 × 2 + 2) / 31 against (30 × 3 + 1) / 31.
    assert row.difference == pytest.approx(62 / 31 - 91 / 31)
    assert (row.wins, row.ties, row.losses) == (31, 1, 2)
    assert row.better == "b"
    assert (
        "b is better than a on mean_rank@10 by 0.935 (2.000 against 2.935;"
        in compare(results, "mean_rank@10").summary()
    )


@nothing_matched
def test_undefined_averages_are_not_compared():
    """Nothing found by b: its mean rank is undefined, the row says so, and Holm skips it."""
    results = {"a": result_of([[1], [2]] * 20), "b": result_of([[], []] * 20)}
    comparison = compare(results, ["mean_rank@10", "found_rate@10"])
    rank, found = comparison.differences
    assert all(
        math.isnan(value)
        for value in (rank.difference, rank.ci_low, rank.p_permutation, rank.p_t, rank.p_holm)
    )
    assert (rank.wins, rank.ties, rank.losses) == (0, 0, 40)
    assert rank.better is None
    assert found.p_holm == found.p_permutation
    assert comparison.summary().startswith(
        "a and b cannot be compared on mean_rank@10: it is undefined for b.\n"
    )
    assert "–" in repr(comparison)


def test_partly_undefined_metrics_of_ones_own():
    """Where a metric of one's own is undefined for either system, the query is left out."""
    metric = Metric(
        "depth",
        lambda relevance, k, _: (
            np.where(relevance.covered_within(k) > 0, 1.0, np.nan) * relevance.relevant_within(k)
        ),
        "mean_depth",
    )

    def result(ranks):
        actual = [["x", "y"]] * len(ranks)
        predicted = [["x", "y", "?"][:n] if n else ["?"] for n in ranks]
        return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=5, metrics=[metric])

    results = {"a": result([0, 1, 1, 2] * 10), "b": result([1, 2, 0, 2] * 10)}
    row = only(compare(results, "mean_depth@5"))
    assert (row.value_a, row.value_b, row.n_both) == (1.5, 2.0, 20)
    assert (row.wins, row.ties, row.losses) == (10, 30, 0)
    assert row.p_t == pytest.approx(stats.ttest_rel([1, 2] * 10, [2, 2] * 10).pvalue)
    assert row.ci_low <= row.difference <= row.ci_high


def test_seeds():
    """The same seed gives the same digits; another one does not."""
    results = random_results(10, 40)
    assert compare(results, seed=3).table.equals(compare(results, seed=3).table)
    assert not compare(results, seed=3).table.equals(compare(results, seed=4).table)


# What cannot be compared.


def refused(match: str, first: EvaluationResult, second: EvaluationResult) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        compare({"one": first, "two": second})
    assert "'one' and 'two' cannot be compared, because they differ in" in str(caught.value)


RANKS = [[1], [2], [], [4]] * 10


@pytest.mark.filterwarnings("ignore:grade_key")
@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ({"matcher": "text"}, {"matcher": "contains"}, "matcher: text vs contains"),
        ({}, {"matching_criteria": "partial"}, "criteria: all vs partial"),
        ({}, {"conventions": "trec"}, "conventions: default vs precision_at=k,"),
        ({}, {"no_ground_truth": "zero"}, "no_ground_truth: error vs zero"),
        ({}, {"grade_key": "grade"}, "grades: - vs grade"),
        ({"k": (1, 10)}, {"k": (2, 5)}, r"k: 1,10 vs 2,5\."),
    ],
)
def test_differing_settings_are_refused(first, second, match):
    """Results made differently are refused, naming the setting and both values."""
    refused(match, result_of(RANKS, **first), result_of(RANKS, **second))


def test_differing_thresholds_are_refused():
    """The threshold is part of what a number means."""
    settings_ = {**result_of(RANKS).settings, "threshold": "0.8"}
    other = dataclasses.replace(result_of(RANKS), settings=settings_)
    refused("threshold: - vs 0.8", result_of(RANKS), other)


def test_everything_that_differs_is_named():
    """One refusal names all that differs."""
    other = result_of(RANKS[1:], matcher="contains", k=5)
    refused(r"matcher: text vs contains; queries: 40 vs 39; k: 10 vs 5\.", result_of(RANKS), other)


def test_differing_queries_are_refused():
    """Other queries are no pairs; nor are those whose labels repeat, in another order."""
    labels = [f"q{i}" for i in range(40)]
    first = result_of(RANKS, queries=labels)
    refused(
        "queries: 'q3', 'q4'",
        first,
        result_of(RANKS, queries=[*labels[:3], "other", "another", *labels[5:]]),
    )
    twice = [*labels[:-1], "q0"]
    refused(
        "order of the queries: 'q1', 'q2'",
        result_of(RANKS, queries=twice),
        result_of(RANKS, queries=twice[::-1]),
    )
    fewer = dataclasses.replace(result_of(RANKS[1:]), settings=first.settings)
    refused(r"queries: 40 vs 39", first, fewer)


def test_differing_ground_truth_is_refused():
    """The same labels with other ground truth are other queries, as far as can be seen."""
    refused(
        "number of ground-truth items: 3",
        result_of(RANKS),
        result_of(RANKS, [1, 1, 1, 2] + [1] * 36),
    )


def over(*actual: object, **options: object) -> EvaluationResult:
    """Make a result of queries with this ground truth, for which nothing is retrieved."""
    with no_advice():
        predicted: list[list[str]] = [[] for _ in actual]
        return OfflineRetrievalEvaluator(list(actual), predicted, **options).evaluate(k=10)


def document(text: str, identity: str | None = None, **metadata: object) -> dict[str, object]:
    return {"page_content": text, "id": identity, "metadata": metadata}


def same_source(actual: Document, predicted: Document) -> bool:
    """Look at more than the text."""
    return bool(actual.metadata["s"] == predicted.metadata["s"])


def test_other_ground_truth_of_the_same_size_is_refused_naming_the_queries():
    """The first of them, by label or by position, and how many more there are."""
    first = over(*[["a"], ["b"]] * 10)
    refused(
        r"ground truth: 1, 3, 5, 7, 9 and 5 more\.",
        first,
        over(*[["a"], ["c"]] * 10),
    )
    one = over(["a"], ["b"], queries=["u", "v"])
    refused("ground truth: 'v'", one, over(["a"], ["c"], queries=["u", "v"]))


def test_grades_that_changed_places_are_refused():
    """Their number and their sum are what they were."""

    def graded(*grades: int) -> EvaluationResult:
        items = [document(text, g=grade) for text, grade in zip("ab", grades, strict=True)]
        return over(items, grade_key="g")

    refused("ground truth: 0", graded(1, 2), graded(2, 1))


def test_other_alternatives_are_refused():
    """One item more or less alike."""
    refused("ground truth: 0", over([AnyOf(["a", "b"])]), over([AnyOf(["a", "c"])]))


@few_queries
@pytest.mark.parametrize(
    ("first", "second", "matcher"),
    [
        (["a", "b"], ["b", "a"], "text"),
        ([document("a", "1")], [document("a", "2")], "text"),
        ([document("a", "1")], [document("new words", "1")], "id"),
        ([document("a", "1", page=1)], [document("b", "2", page=1.0)], MetadataMatcher("page")),
        ([document("a", path="/home/x")], [document("a", path="/tmp/y")], "contains"),
        ([document("a", "1", p=1)], [document("a", "1", p=2)], ExactTextMatcher() & IdMatcher()),
        ([AnyOf(["a", "b"])], [AnyOf(["b", "a"])], "text"),
        (["\u1100\u1161"], ["\uac00"], "text"),
    ],
)
def test_what_the_matcher_does_not_look_at_may_differ(first, second, matcher):
    """Ids made anew at every indexing, a path on another machine, the order of items."""
    results = [over(items, matcher=matcher) for items in (first, second)]
    compare(dict(zip("ab", results, strict=True)), n_resamples=100)


@pytest.mark.parametrize(
    ("first", "second", "matcher"),
    [
        ([document("a", "1")], [document("a", "2")], IdMatcher()),
        ([document("", page=1)], [document("", page=2)], MetadataMatcher("page")),
        ([document("", p={"q": 1})], [document("", p={"q": 2})], MetadataMatcher("p.q")),
        ([document("a", "1")], [document("a", "2")], ExactTextMatcher() | IdMatcher()),
        ([document("a", s=1)], [document("a", s=2)], Matcher.from_function(same_source)),
    ],
)
def test_what_the_matcher_looks_at_may_not_differ(first, second, matcher):
    """An id, a page, and whatever a matcher of one's own may look at."""
    results = [over(items, matcher=matcher) for items in (first, second)]
    refused("ground truth: 0", *results)


def test_the_same_documents_have_one_digest_under_all_settings():
    """Of what they are; what the matcher looks at comes after it."""
    items = [document("a", "1"), document("b", "2")]
    results = [over(items, matcher=matcher) for matcher in ("id", "text", "contains", "rougeL")]
    digests = [str(result.rows.digests[0]) for result in results]
    assert len({digest.partition("-")[0] for digest in digests}) == 1
    assert len(set(digests)) == 2


@few_queries
def test_other_ground_truth_cannot_be_compared():
    """The number of items says so already."""
    results = {"a": over(["a"]), "b": over(["b", "c"])}
    with pytest.raises(ValueError, match="number of ground-truth items"):
        check_comparable(results)


@few_queries
def test_settings_that_are_unknown_warn():
    """Two prompts may hide behind them."""

    def asking(prompt):
        return lambda actual, predicted: float(prompt == actual.page_content)

    results = {
        name: over(["a"], matcher=Matcher.from_function(asking(name), name="asking"))
        for name in ("one", "two")
    }
    refused("matcher: asking#.* vs asking#", *results.values())
    results = {
        name: over(["a"], matcher=Matcher.from_function(asking(iter(name)), name="asking"))
        for name in ("one", "two")
    }
    with pytest.warns(KragEvalWarning, match="asking#unknown"):
        compare(results, n_resamples=100)


def test_two_prompts_are_no_comparison():
    """Of matchers of one's own, what they were made with is known."""

    class Judge(Matcher):
        """Answers as its prompt says."""

        def __init__(self, prompt):
            self.prompt = prompt

        def similarity(self, actual, predicted):
            return 0.0

    results = (over(["a"], matcher=Judge(prompt)) for prompt in ("same?", "alike?"))
    refused(r"matcher: Judge\(prompt=.same.*vs Judge\(prompt=.alike", *results)


# Results of 0.1.0.

SAVED_BY_0_1 = Path(__file__).parent / "data" / "result_0.1.0.json"


def of_today(actual: object = None, **options: object) -> EvaluationResult:
    """Evaluate what the saved result of 0.1.0 was made of."""
    given = [["When?", AnyOf(["At nine.", "At 9."])], ["서울"], ["a"]]
    predicted = [["At 9.", "When?"], ["부산", "서울"], ["b"]]
    evaluator = OfflineRetrievalEvaluator(
        actual or given, predicted, queries=["hours", "where", "none"], **options
    )
    return evaluator.evaluate([1, 3], metrics=["recall", "mrr"])


@few_queries
def test_a_result_of_0_1_is_compared_with_a_warning():
    """It does not know what its ground truth was, and the versions differ."""
    old = EvaluationResult.from_json(SAVED_BY_0_1)
    new = of_today()
    with pytest.warns(KragEvalWarning) as caught:
        row = only(compare({"old": old, "new": new}, "macro_recall@3"))
    assert row.difference == 0
    said = [str(one.message) for one in caught if "intervals" not in str(one.message)]
    assert len(said) == 2
    assert "ground truth could not be checked" in said[0]
    assert "('old')" in said[0]
    assert "between which reported numbers changed" in said[1]


def test_a_result_of_0_1_with_another_signature_is_to_be_saved_anew():
    """Its matcher may have changed its defaults since."""
    old = EvaluationResult.from_json(SAVED_BY_0_1)
    new = of_today(matcher="contains")
    with pytest.raises(
        ValueError, match=r"matcher: text vs .*Saved by krag_eval 0\.1: 'one'; eval"
    ):
        compare({"one": old, "two": new}, "macro_recall@3")
    with pytest.raises(ValueError, match="differ in matcher") as caught:
        compare({"one": of_today(), "two": new}, "macro_recall@3")
    assert "0.1" not in str(caught.value)


def test_the_number_of_items_of_a_result_of_0_1_is_known():
    """As it always was."""
    old = EvaluationResult.from_json(SAVED_BY_0_1)
    with pytest.raises(ValueError, match="number of ground-truth items: 'hours'"):
        compare({"one": old, "two": of_today([["When?"], ["서울"], ["a"]])}, "macro_recall@3")


def test_differing_counted_queries_are_refused():
    """A query left out of one result only has no pair."""
    first = result_of(RANKS)
    counted = first.counted.copy()
    counted[5] = False
    refused(
        "counted in the averages: 5",
        first,
        dataclasses.replace(first, rows=dataclasses.replace(first.rows, counted=counted)),
    )


def test_what_may_differ():
    """Which averages are shown, and the order of the cutoffs, make no difference."""
    first = result_of(RANKS, k=(1, 10), averaging_method="macro")
    second = result_of(RANKS, k=(10, 1))
    assert only(compare({"a": first, "b": second}, "macro_recall@10")).difference == 0


def test_versions_warn():
    """Results of two versions are compared, with a word on where to look."""
    first = result_of(RANKS)
    other = dataclasses.replace(first, settings={**first.settings, "krag_eval": "9.9"})
    with pytest.warns(KragEvalWarning, match=r"different versions .*'b': 9\.9") as caught:
        compare({"a": first, "b": other})
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("versions", "changed"),
    [
        (("0.1.0", "0.1.3"), False),
        (("0.1.0", "0.2.0.dev0"), True),
        (("0.2.0.dev0", "0.2.1"), False),
        (("0.2.0", "?"), True),
    ],
)
def test_versions_between_which_numbers_changed_are_said_to_be(versions, changed):
    """The warning of any other pair does not cry wolf."""
    first = result_of(RANKS)
    results = {
        version: dataclasses.replace(first, settings={**first.settings, "krag_eval": version})
        for version in versions
    }
    with pytest.warns(KragEvalWarning, match="different versions") as caught:
        compare(results, n_resamples=100)
    assert ("reported numbers changed" in str(caught[0].message)) == changed


@pytest.mark.parametrize(("n_queries", "word"), [(1, "1 query"), (29, "29 queries")])
def test_few_queries_warn(n_queries, word):
    """Few queries are said to be few, where the user called."""
    result = result_of([[1]] * n_queries)
    with pytest.warns(KragEvalWarning, match=f"rest on {word}") as caught:
        compare({"a": result, "b": result})
    assert caught[0].filename == __file__


def test_uncounted_queries_change_nothing():
    """Queries without ground truth that are left out are in no test and in no list."""
    kept = {"a": result_of([[1], [3]] * 20, 2), "b": result_of([[2], [9, 1]] * 20, 2)}
    options = {"n_items": [0] + [2] * 40, "no_ground_truth": "skip"}
    padded = {
        "a": result_of([[], *([[1], [3]] * 20)], **options),
        "b": result_of([[], *([[2], [9, 1]] * 20)], **options),
    }
    assert compare(padded).table.equals(compare(kept).table)
    changed = compare(padded).changed(n=None)
    assert changed.index.tolist() == (compare(kept).changed(n=None).index + 1).tolist()


@pytest.mark.parametrize(
    ("results", "error", "match"),
    [
        ([1, 2], TypeError, "'system_1' must be an EvaluationResult, got int"),
        (3, TypeError, "results must map names to results, .* got 3"),
        ("ab", TypeError, "results must map names to results, .* got 'ab'"),
        ([result_of(RANKS)], ValueError, "at least two results to compare, got 1"),
        ({"a": 1, "b": 2}, TypeError, "'a' must be an EvaluationResult, got int"),
        ({1: result_of(RANKS)}, TypeError, "a name must be a string, got 1"),
        ({}, ValueError, "at least two results to compare, got 0"),
        ({"a": result_of(RANKS)}, ValueError, "at least two results to compare, got 1"),
    ],
)
def test_results_are_checked(results, error, match):
    """What is not a mapping of names to results is refused in words."""
    with pytest.raises(error, match=match):
        compare(results)


@pytest.mark.parametrize(
    ("metric", "error", "match"),
    [
        ("ndcg", ValueError, "must be spelled with its cutoff, .* got 'ndcg'"),
        ("@10", ValueError, "must be spelled with its cutoff, .* got '@10'"),
        ("nDCG@10", ValueError, "no average 'nDCG'; did you mean 'ndcg'"),
        (
            "ndcg@5",
            ValueError,
            "'ndcg@5' needs the cutoff 5, and 'a' was evaluated at 10; evaluate with",
        ),
        ("ndcg@all", ValueError, "needs the cutoff all, and 'a' was evaluated at 10"),
        ("ndcg@x", ValueError, "metric: 'ndcg@x': the cutoff must be a whole number"),
        ([], ValueError, "metric must name at least one metric, got none"),
        ([3], ValueError, "must be spelled with its cutoff, .* got 3"),
        (3, TypeError, "metric must be a string such as 'ndcg@10', or several, got 3"),
    ],
)
def test_metrics_are_checked(metric, error, match):
    """A metric is spelled with its cutoff, exists and was evaluated."""
    result = result_of(RANKS)
    with pytest.raises(error, match=match):
        compare({"a": result, "b": result}, metric)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"level": 95}, "level must be a number from 0 to 1"),
        ({"n_resamples": 10}, "n_resamples must be a whole number of at least 100"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_sampling_is_checked(options, match):
    """The same arguments are refused as for the intervals of one result."""
    result = result_of(RANKS)
    with pytest.raises(ValueError, match=match):
        compare({"a": result, "b": result}, **options)


def test_no_counted_query_is_refused():
    """Results in which no query counts hold nothing to compare."""
    result = result_of(RANKS)
    result = dataclasses.replace(
        result, rows=dataclasses.replace(result.rows, counted=np.zeros(40, np.bool_))
    )
    with pytest.raises(ValueError, match="no query counts"):
        compare({"a": result, "b": result})


# What differs in more than the retriever, and is brought together.


def asked(numbers: object, seed: int, k: object = 10, **options: object) -> EvaluationResult:
    """Make a result over questions of these numbers; what it finds depends on number and seed."""
    actual, predicted = [], []
    for number in numbers:  # type: ignore[attr-defined]
        rng = np.random.default_rng([seed, number])
        items = [f"item {number}.{i}" for i in range(1 + number % 3)]
        documents = [f"junk {number}.{rank}" for rank in range(10)]
        for rank, item in zip(rng.permutation(10), items, strict=False):
            documents[rank] = item if rng.random() < 0.6 else documents[rank]
        actual.append(items)
        predicted.append(documents)
    labels = [f"question {number}" for number in numbers]  # type: ignore[attr-defined]
    tags = {"part": [number % 4 for number in numbers]}  # type: ignore[attr-defined]
    evaluator = OfflineRetrievalEvaluator(actual, predicted, queries=labels, tags=tags, **options)
    return evaluator.evaluate(k=k)


METRICS = ["ndcg@10", "micro_recall@10", "mean_rank@10"]
SHUFFLED = np.random.default_rng(5).permutation(60).tolist()


def test_queries_are_paired_by_label_whatever_their_order():
    """To the last digit what comes out where both have the order of the first."""
    a, b = asked(range(60), 1), asked(range(60), 2)
    expected = compare({"a": a, "b": b}, METRICS, n_resamples=500)
    found = compare({"a": a, "b": asked(SHUFFLED, 2)}, METRICS, n_resamples=500)
    assert found.differences == expected.differences
    assert found.summary() == expected.summary()
    assert found.signature == expected.signature
    assert found.queries == expected.queries
    assert found.changed("ndcg@10").equals(expected.changed("ndcg@10"))
    assert found.left_out == {}
    assert found.compared["a"] is a
    assert found.compared["b"] == b
    assert found.compared["b"].tags == b.tags


def test_results_in_files_are_paired_too(tmp_path):
    """Saved, or with rows in a file beside averages."""
    a, b = asked(range(60), 1), asked(SHUFFLED, 2)
    b.to_json(tmp_path / "b.json")
    expected = compare({"a": a, "b": b}, METRICS, n_resamples=500)
    again = EvaluationResult.from_json(tmp_path / "b.json")
    found = compare({"a": a, "b": again}, METRICS, n_resamples=500)
    assert found.differences == expected.differences
    columns = flat_columns(
        b.tables, b.counted, metrics_of(b.keys, b.declared), b.rows.digests, b.tags
    )
    write_rows(tmp_path / "b.csv", {"query": np.array(b.labels, object), **columns})
    rows = RowsInFile(tmp_path / "b.csv", b.summary)
    streamed = dataclasses.replace(b, rows=rows, totals=b.summary, evidence=None)
    found = compare({"a": a, "b": streamed}, METRICS, n_resamples=500)
    assert found.differences == expected.differences


def test_common_queries_are_those_that_all_have():
    """The numbers are those of results over these queries alone; the others are named."""
    a, b, c = asked(range(60), 1), asked(range(10, 70), 2), asked(reversed_to(65, 5), 3)
    with pytest.raises(InvalidInput) as refused:
        compare({"a": a, "b": b, "c": c})
    assert refused.value.fix.settings == (("on", "common"),)
    found = compare({"a": a, "b": b, "c": c}, METRICS, n_resamples=500, on="common")
    alone = {name: asked(range(10, 60), seed) for seed, name in enumerate("abc", start=1)}
    expected = compare(alone, METRICS, n_resamples=500)
    assert found.differences == expected.differences
    assert found.signature == expected.signature
    assert found.queries == [f"question {i}" for i in range(10, 60)]
    assert found.leaderboard.equals(expected.leaderboard)
    assert found.left_out == {
        "a": [f"question {i}" for i in range(10)],
        "b": [f"question {i}" for i in range(60, 70)],
        "c": [f"question {i}" for i in [64, 63, 62, 61, 60, 9, 8, 7, 6, 5]],
    }
    *others, last = found.summary().split("\n")
    assert others == expected.summary().split("\n")
    assert last.startswith("Compared on the 50 queries that all have; left out: 10 of a (")
    assert "10 of c ('question 64', 'question 63', " in last
    assert last in repr(found)


def reversed_to(last: int, first: int) -> list[int]:
    return list(range(last - 1, first - 1, -1))


def test_common_queries_may_be_all():
    """Nothing is left out, and nothing else changes."""
    a, b = asked(range(40), 1), asked(range(40), 2)
    found = compare({"a": a, "b": b}, n_resamples=100, on="common")
    assert found.compared["b"] is b
    assert found.left_out == {}
    assert found.summary() == compare({"a": a, "b": b}, n_resamples=100).summary()


def test_what_a_retriever_took_stays_with_its_query():
    """Seconds and failures of the queries that are compared."""
    a, b = asked(range(40), 1), asked(range(5, 45), 2)
    run = RetrievalRun(np.arange(5.0, 45.0), [Failure(2, "OSError", "gone", 0.1)])
    failed = dataclasses.replace(run, seconds=np.where(np.arange(40) == 2, np.nan, run.seconds))
    found = compare(
        {"a": a, "b": dataclasses.replace(b, retrieval=failed)}, n_resamples=100, on="common"
    )
    ours = found.compared["b"].retrieval
    assert [s for s in ours.seconds.tolist() if s == s] == [5.0, 6.0, *map(float, range(8, 40))]
    assert [failure.position for failure in ours.failures] == [2]
    assert found.queries[2] == "question 7"


def test_queries_without_ground_truth_stay_with_their_labels():
    """They are counted anew among those that are compared."""

    def skipping(numbers: list[int]) -> EvaluationResult:
        return OfflineRetrievalEvaluator(
            [[f"item {i}"] if i % 5 else [] for i in numbers],
            [["x", f"item {i}"] for i in numbers],
            queries=[f"q{i}" for i in numbers],
            no_ground_truth="skip",
        ).evaluate(10)

    found = compare(
        skipping(list(range(60))), skipping(list(range(50, 4, -1))), on="common", n_resamples=100
    )
    assert "no_ground_truth=skip(10)" in found.signature  # 5, 10, … 50
    assert "queries=46" in found.signature
    assert len(found.queries) == 36


@pytest.mark.parametrize(
    "labels",
    [None, list(range(40)), ["a"] * 40, [*map(str, range(38)), "0", "0"]],
    ids=["none", "positions", "one", "twice"],
)
def test_labels_that_tell_nothing_apart_are_refused(labels):
    """Positions are no names: a question may have been put in between."""
    results = {
        "a": result_of(RANKS, queries=[*map(str, range(40))]),
        "b": result_of(RANKS, queries=labels),
    }
    with pytest.raises(InvalidInput) as refused:
        compare(results, on="common")
    assert refused.value.argument == "results"
    assert refused.value.fix
    with pytest.raises(InvalidInput) as refused:
        compare(results)
    assert "common" not in str(refused.value.fix)


def test_numbers_may_be_labels_but_positions_are_not_paired_with_them():
    """Whether 0 is a name or a place is not known where all are in order."""
    ranks = [[i % 7 + 1] for i in range(40)]
    names = [2 * i for i in range(40)]
    a = result_of(ranks, queries=names)
    b = result_of(ranks[::-1], queries=names[::-1])
    assert only(compare(a, b)).ties == 40
    with pytest.raises(InvalidInput, match="order of the queries"):
        compare(result_of(ranks), result_of(ranks[::-1], queries=[*range(40)][::-1]))


def test_nothing_in_common_is_refused():
    """There is nothing to compare."""
    with pytest.raises(InvalidInput, match="no query that all of them have"):
        compare(asked(range(40), 1), asked(range(40, 80), 1), on="common")


def test_the_ground_truth_of_paired_queries_must_be_the_same():
    """It is told by the label of the query, wherever it stands."""
    a = over(*[[f"item {i}"] for i in range(40)], queries=[f"q{i}" for i in range(40)])
    items = [["new"] if i == 7 else [f"item {i}"] for i in range(45, 5, -1)]
    b = over(*items, queries=[f"q{i}" for i in range(45, 5, -1)])
    with pytest.raises(InvalidInput, match="ground truth: 'q7'"):
        compare(a, b, on="common")


def test_differing_cutoffs_are_compared_where_they_are_shared():
    """As if both had been evaluated at these alone, in the order of the first."""
    a, b = asked(range(40), 1, k=[1, 10, 5]), asked(range(40), 2, k=[5, 3, 10])
    found = compare({"a": a, "b": b}, ["ndcg@5", "ndcg@10"], n_resamples=200)
    shared = {name: asked(range(40), i, k=[10, 5]) for i, name in enumerate("ab", start=1)}
    expected = compare(shared, ["ndcg@5", "ndcg@10"], n_resamples=200)
    assert found.differences == expected.differences
    assert found.signature == expected.signature
    assert [one.k for one in found.compared.values()] == [(10, 5), (10, 5)]
    assert found.compared["a"].evidence is a.evidence
    with pytest.raises(InvalidInput) as refused:
        compare({"a": a, "b": b}, "ndcg@3")
    assert refused.value.argument == "metric"


@pytest.mark.parametrize(
    ("of_a", "of_b", "expected"),
    [
        ((1, 10, 20), (20, 10), "ndcg@10"),
        ((5, 1), (1, 5, 3), "ndcg@5"),
        ((1, 10), (1, 5), "ndcg@1"),
    ],
)
def test_without_a_metric_ndcg_at_a_shared_cutoff_is_compared(of_a, of_b, expected):
    """At 10, or else at the deepest that both have."""
    a, b = asked(range(40), 1, k=list(of_a)), asked(range(40), 2, k=list(of_b))
    assert compare(a, b, n_resamples=100).metrics == [expected]


def test_a_cutoff_that_one_lacks_is_said_to_be_lacking_there():
    """The other was evaluated at it."""
    a, b = asked(range(40), 1, k=[1, 10]), asked(range(40), 2, k=[1, 5])
    with pytest.raises(InvalidInput) as refused:
        compare({"a": a, "b": b}, "ndcg@10")
    assert refused.value.argument == "metric"
    assert "'b' was evaluated at 1, 5" in refused.value.problem


def test_what_counted_budgets_does_not_matter_where_none_is_shared():
    """Two functions are two measures; at k both are the same."""
    evaluator = OfflineRetrievalEvaluator([["a b"]] * 40, [["a b", "c"]] * 40)
    a = evaluator.evaluate(k=[1, 2], budget=[4], length=len)
    b = evaluator.evaluate(k=[1, 2])
    found = compare({"a": a, "b": b}, "mrr@2", n_resamples=100)
    assert "length" not in found.signature
    assert found.compared["a"] == b


# Several systems.


def three(**options: object) -> dict[str, EvaluationResult]:
    return {name: asked(range(60), seed, **options) for seed, name in enumerate("abc", start=1)}


def test_a_baseline_is_compared_with_each_other_and_nothing_else():
    """It comes first in each pair, and Holm's correction is over these pairs alone."""
    every = compare(three(), METRICS, n_resamples=500)
    found = compare(three(), METRICS, n_resamples=500, baseline="b")
    assert found.pairs == [("b", "a"), ("b", "c")]
    assert found.baseline == "b"
    assert found.names == ["a", "b", "c"]
    of_pair = {(row.a, row.b, row.metric): row for row in every.differences}
    for row in found.differences:
        other = of_pair.get((row.a, row.b, row.metric)) or of_pair[row.b, row.a, row.metric]
        assert row.p_permutation == other.p_permutation
        assert abs(row.difference) == abs(other.difference)
    p = sorted((row.p_permutation, i) for i, row in enumerate(found.differences))
    corrected = np.maximum.accumulate([min(1, (6 - rank) * one) for rank, (one, _) in enumerate(p)])
    expected = {i: value for (_, i), value in zip(p, corrected.tolist(), strict=True)}
    assert [row.p_holm for row in found.differences] == [expected[i] for i in range(6)]
    assert "baseline=b" in repr(found)


def test_the_only_pair_of_a_baseline_is_the_default_of_changed():
    """From the baseline to the other, though the other came first."""
    results = {name: one for name, one in three().items() if name != "c"}
    found = compare(results, n_resamples=100, baseline="b")
    assert found.changed().equals(found.changed(a="b", b="a"))


def test_an_unknown_baseline_is_refused():
    """With the names there are."""
    with pytest.raises(InvalidInput) as refused:
        compare(three(), baseline="d")
    assert refused.value.argument == "baseline"
    with pytest.raises(InvalidInput) as refused:
        compare(three(), on="both")
    assert refused.value.argument == "on"


def test_the_leaderboard_has_the_intervals_of_each_result():
    """To the last digit, the best on the first metric first."""
    results = three()
    board = compare(results, METRICS, n_resamples=500, seed=3).leaderboard
    parts = ("", "_low", "_high", "_best")
    assert list(board.columns) == [f"{metric}{part}" for metric in METRICS for part in parts]
    assert sorted(board.index) == list("abc")
    assert board["ndcg@10"].is_monotonic_decreasing
    for name, result in results.items():
        intervals = result.confidence_intervals(n_resamples=500, seed=3)
        for metric in METRICS:
            found = board.loc[name, [metric, f"{metric}_low", f"{metric}_high"]].tolist()
            assert found == intervals.loc[metric, ["value", "low", "high"]].tolist()
    found = board.index.map({name: one.averages(10)["found_rate"] for name, one in results.items()})
    is_best = (board["mean_rank@10"] == board["mean_rank@10"].min()) & (found == found.max())
    assert board["mean_rank@10_best"].tolist() == is_best.tolist()
    is_best = board["ndcg@10"] == board["ndcg@10"].max()
    assert board["ndcg@10_best"].tolist() == is_best.tolist()


@nothing_matched
def test_equal_systems_are_both_the_best_and_undefined_ones_never():
    """In the order given; a mean rank of nothing found is no rank."""
    found, nothing = result_of([[1]] * 40), result_of([[]] * 40)
    board = compare(
        {"nothing": nothing, "one": found, "two": found}, ["mean_rank@10", "mrr@10"]
    ).leaderboard
    assert board.index.tolist() == ["one", "two", "nothing"]
    assert board["mean_rank@10_best"].tolist() == [True, True, False]
    assert board["mrr@10_best"].tolist() == [True, True, False]
    none = compare({"one": nothing, "two": nothing}, "mean_rank@10").leaderboard
    assert none["mean_rank@10_best"].tolist() == [False, False]


def test_many_open_with_a_leaderboard_and_two_do_not():
    """With a star at the best."""
    results = three()
    comparison = compare(results, "ndcg@10", n_resamples=200)
    best = comparison.leaderboard.index[0]
    head, star, names, first, *_ = repr(comparison).splitlines()
    assert star.startswith("* the best average")
    assert head == "Comparison over 60 queries"
    assert names.split() == ["system", "ndcg@10", "95", "%", "interval"]
    assert first.split()[0] == best
    assert first.split()[1] == f"{results[best].to_dict()['ndcg@10']:.4f}*"
    assert comparison._repr_html_().count("<table>") == 2
    del results[best]
    assert "*" not in repr(compare(results, "ndcg@10", n_resamples=200))


def test_results_need_no_names():
    """One after the other or in a list, called by their place or as one says."""
    a, b, c = three().values()
    expected = compare({"system_1": a, "system_2": b}, "mrr@10", n_resamples=100)
    for found in (
        compare(a, b, metric="mrr@10", n_resamples=100),
        compare([a, b], "mrr@10", n_resamples=100),
        compare((a, b), metric="mrr@10", n_resamples=100),
    ):
        assert found.differences == expected.differences
    named = compare(a, b, c, n_resamples=100, names=["x", "y", "z"])
    assert named.names == ["x", "y", "z"]
    assert compare(a, b, n_resamples=100).metrics == ["ndcg@10"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "argument"),
    [
        (1, {"names": ["x"]}, InvalidInput, "names"),
        (1, {"names": ["x", "x"]}, InvalidInput, "names"),
        (1, {"names": ["x", ""]}, InvalidInput, "names"),
        (1, {"names": ["x", 3]}, InvalidType, "names"),
        (1, {"names": "xy"}, InvalidType, "names"),
        (0, {"names": ["x", "y"]}, InvalidInput, "names"),
        (2, {"metric": "mrr@10"}, InvalidType, "metric"),
        (3, {}, InvalidType, "results"),
    ],
)
def test_names_are_checked(arguments, options, error, argument):
    """One for each result, unlike each other, and none where there are names."""
    a, b, _ = three().values()
    given = [({"a": a, "b": b},), (a, b), ({"a": a, "b": b}, "mrr@10"), ({"a": a}, b)]
    with pytest.raises(error) as refused:
        compare(*given[arguments], **options)
    assert refused.value.argument == argument


# The queries that changed.


def test_changed_queries_come_largest_first():
    """Both signs, largest change first, equal changes in the order of the queries."""
    labels = [f"q{i}" for i in range(30)]
    a = result_of([[1], [2], [4], [], [1]] + [[1]] * 25, queries=labels)
    b = result_of([[2], [2], [1], [1], [2]] + [[1]] * 25, queries=labels)
    changed = compare({"a": a, "b": b}, "mrr@10").changed()
    assert changed.index.name == "query"
    assert changed.reset_index().to_numpy().tolist() == [
        ["q3", 0.0, 1.0, 1.0],
        ["q2", 0.25, 1.0, 0.75],
        ["q0", 1.0, 0.5, -0.5],
        ["q4", 1.0, 0.5, -0.5],
    ]
    comparison = compare({"a": a, "b": b}, ["mrr@10", "map@10"])
    turned = comparison.changed("mrr@10", "b", "a", n=1)
    assert turned.reset_index().to_numpy().tolist() == [["q3", 1.0, 0.0, -1.0]]


def test_changed_ranks():
    """A query found by one system alone changed without bound, and its missing rank is NaN."""
    a, b = result_of([[1], [], [2], []] + [[1]] * 26), result_of([[9], [3], [], []] + [[1]] * 26)
    changed = compare({"a": a, "b": b}, "mean_rank@10").changed()
    assert changed.index.tolist() == [1, 2, 0]
    assert changed["difference"].tolist() == [-math.inf, math.inf, 8.0]
    assert changed["value_a"].isna().tolist() == [True, False, False]
    assert changed["value_b"].isna().tolist() == [False, True, False]


def test_nothing_changed():
    """Results alike have no queries that changed."""
    result = result_of(RANKS)
    assert compare({"a": result, "b": result}).changed().empty


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"metric": "map@10"}, "metric must be one of 'ndcg@10', 'mrr@10', got 'map@10'"),
        ({}, "metric must be one of 'ndcg@10', 'mrr@10', got None"),
        ({"metric": "mrr@10"}, "a must be one of 'x', 'y', 'z', got None"),
        ({"metric": "mrr@10", "a": "x"}, "b must be one of 'x', 'y', 'z', got None"),
        ({"metric": "mrr@10", "a": "x", "b": "w"}, "b must be one of 'x', 'y', 'z', got 'w'"),
        (
            {"metric": "mrr@10", "a": "x", "b": "x"},
            "another system than a, got 'x' twice",
        ),
        ({"metric": "mrr@10", "n": 0}, "n must be a whole number of at least 1"),
    ],
)
def test_changed_is_checked(arguments, match):
    """With several metrics or systems, it must be said which."""
    result = result_of(RANKS)
    comparison = compare(dict.fromkeys("xyz", result), ["ndcg@10", "mrr@10"], n_resamples=100)
    with pytest.raises(ValueError, match=match):
        comparison.changed(**arguments)


# What people read.


def clear_and_unclear() -> Comparison:
    """Compare on one metric that clearly differs and one that hardly does."""
    a = result_of([[1]] * 20 + [[5]] * 30 + [[]] * 10, k=(1, 10))
    b = result_of([[1]] * 45 + [[5]] * 6 + [[]] * 9, k=(1, 10))
    return compare({"bm25": a, "dense": b}, ["mrr@10", "found_rate@10"])


def test_summary_says_which_is_better_and_how_surely():
    """A shown difference names the better system first; one not shown is not called a tie."""
    shown, not_shown, family = clear_and_unclear().summary().split("\n")
    # (45 + 6/5) / 60 = 0.770 against (20 + 30/5) / 60 = 0.433; 51/60 against 50/60.
    assert shown.startswith("dense is better than bm25 on mrr@10 by 0.337 (0.770 against 0.433; ")
    assert shown.endswith("; p < 0.001 after Holm).")
    assert not_shown.startswith(
        "No difference shown between bm25 and dense on found_rate@10: dense minus bm25 is 0.017 "
        "(0.850 against 0.833; 95 % interval 0.000 to 0.050; p = 1.000 after Holm)."
    )
    assert family == "Holm's correction covers the 2 tests made here."


def test_how_many_tests_were_made_is_said_where_there_are_several():
    """Three systems on two metrics make six; against a baseline four; one says nothing."""
    systems = {name: result_of([[rank]] * 40) for name, rank in (("a", 1), ("b", 2), ("c", 3))}
    several = compare(systems, ["mrr@10", "ndcg@10"], n_resamples=100)
    assert "covers the 6 tests" in several.summary()
    assert "검정 6개" in several.summary("ko")
    against = compare(systems, ["mrr@10", "ndcg@10"], baseline="a", n_resamples=100)
    assert "covers the 4 tests" in against.summary()
    del systems["c"]
    assert "Holm's correction" not in compare(systems, "mrr@10", n_resamples=100).summary()


def test_summary_turns_round_for_the_first_system():
    """Where the first system is better, the difference and its bounds are told as positive."""
    a, b = result_of([[1]] * 40), result_of([[1]] * 20 + [[2]] * 20)
    sentence = compare({"a": a, "b": b}, "mrr@10", level=0.9).summary()
    assert sentence.startswith("a is better than b on mrr@10 by 0.250 (1.000 against 0.750; 90 % ")
    low, _, high = sentence.split("interval ")[1].split(";")[0].split()
    assert 0 < float(low) < 0.25 < float(high)


def test_small_numbers_do_not_read_as_zero():
    """A difference far below three decimals is still told."""
    row = Difference(
        *("a", "b", "mrr@10", 0.5, 0.50004, 0.00004, 0.00001, 0.00007),
        *(0.0001, 0.0001, 0.0002, 0.1, 5, 6, 1),
    )
    comparison = dataclasses.replace(clear_and_unclear(), differences=(row,))
    assert "by 4e-05 (0.500 against 0.500; 95 % interval 1e-05 to 7e-05;" in comparison.summary()


def test_what_is_shown_goes_by_the_test_alone():
    """The interval is told, and does not decide; it is told toward the better system."""
    row = only(compare({"a": result_of([[2]] * 40), "b": result_of([[1]] * 40)}, "mrr@10"))
    assert row.is_shown()
    assert not row.is_shown(level=0.99999)
    beyond = dataclasses.replace(row, ci_low=-0.1)
    assert beyond.is_shown()
    assert toward_better(beyond) == (-0.1, 0.5)
    assert toward_better(dataclasses.replace(beyond, difference=-0.2)) == (-0.5, 0.1)
    assert not dataclasses.replace(row, p_holm=0.06).is_shown()
    assert dataclasses.replace(row, p_holm=0.06).is_shown(level=0.9)


def hostile() -> Comparison:
    first = result_of([[2], [3]] * 20)
    second = result_of([[1], [3]] * 20)
    return compare({"a|b_c $x$ <script>": first, "50% _d_ & {e}\n#": second}, "mrr@10")


def test_markdown_is_a_table_whatever_the_names():
    """Names cannot add columns, lines or markup, neither to the table nor to the list below it."""
    header, rule, row, empty, said, end = hostile().to_markdown().split("\n")
    assert header.startswith("| a | b | metric | value a | value b | b − a | 95 % interval | p |")
    assert rule.startswith("| --- | --- | --- | ---: |")
    assert header.count("|") == rule.count("|") == row.count("|") - row.count(r"\|")
    assert row.startswith(r"| a\|b_c \$x\$ \<script\> | 50% \_d\_ \& {e} # | mrr@10 | 0.4167 |")
    name = r"a\|b_c \$x\$ \<script\>"
    assert said.startswith(rf"- 50% \_d\_ \& {{e}} # is better than {name} on mrr@10 by")
    assert empty == end == ""


def test_latex_escapes_what_is_special():
    """The tabular has one cell per column, and no special character unescaped."""
    lines = hostile().to_latex().split("\n")
    assert lines[0] == r"\begin{tabular}{lllrrrrrrrrr}"
    assert lines[1::2][:2] == [r"\toprule", r"\midrule"]
    assert lines[4].startswith(
        r"a\textbar{}b\_c \$x\$ \textless{}script\textgreater{} & 50\% \_d\_ \& \{e\} \# & mrr@10 &"
    )
    assert lines[4].replace(r"\&", "").count("&") == 11
    assert lines[5:] == [r"\bottomrule", r"\end{tabular}", ""]
    assert "b $-$ a & 95 \\% interval" in lines[2]


def test_html_holds_no_markup_of_a_name():
    """In a notebook a name is text."""
    page = hostile()._repr_html_()
    assert "<script>" not in page
    assert page.count("a|b_c $x$ &lt;script&gt;") == 2
    assert page.count("<tr>") == 2


def test_repr_reads_as_a_table():
    """At the prompt there are aligned columns, the sentences, and what the numbers depend on."""
    lines = repr(clear_and_unclear()).split("\n")
    assert lines[0] == "Comparison over 60 queries"
    assert lines[2].split()[:5] == ["a", "b", "metric", "value", "a"]
    assert len({len(line) for line in lines[2:5]}) == 1
    assert lines[5].startswith("dense is better")
    assert lines[-1].startswith("matcher=text |")
    assert lines[-1].endswith("| n_resamples=10000 | seed=0")
    assert "Comparison over 40 queries" in repr(hostile())


def test_plot_is_left_to_plotting(monkeypatch):
    """The comparison hands itself and the axes on, and returns what was drawn on."""
    plotting = types.ModuleType("krag_eval.plotting")
    plotting.comparison_forest = lambda comparison, ax: (comparison, ax, language())
    monkeypatch.setitem(sys.modules, "krag_eval.plotting", plotting)
    comparison = clear_and_unclear()
    assert comparison.plot(ax="axes", language="ko") == (comparison, "axes", "ko")


@few_queries
def test_a_comparison_has_the_names_of_a_result():
    """By hand: ranks 1 and 1 against 1 and 2 are an MRR of 1 and of 3/4."""
    worse, better = result_of([[1], [2]]), result_of([[1], [1]])
    comparison = compare({"worse": worse, "better": better}, metric="mrr@10")
    assert comparison.labels == comparison.queries == worse.labels
    assert comparison.n_queries == worse.n_queries == 2
    assert comparison.to_dict() == {"better": {"mrr@10": 1.0}, "worse": {"mrr@10": 0.75}}
    assert [*comparison.to_dict()] == [*comparison.leaderboard.index]
    assert worse.table.equals(worse.metrics)


def test_a_result_is_pasted_as_markdown_and_latex():
    """By hand: of two queries one finds its item first; where nothing is found, no mean rank."""
    result = result_of([[1], []], k=[1, None])
    lines = result.to_markdown().splitlines()
    assert lines[:4] == ["| metric | @1 macro | @1 micro | @all macro | @all micro |",
                         "| --- | ---: | ---: | ---: | ---: |",
                         "| hit_rate (all found) | 0.5000 |  | 0.5000 |  |",
                         "| precision | 0.5000 | 0.5000 | 0.0500 | 0.0500 |"]  # fmt: skip
    assert len(lines) == 2 + len(in_pairs(result.shown))
    latex = result.to_latex().splitlines()
    assert latex[0] == r"\begin{tabular}{lrrrr}"
    assert r"mean\_rank & 1.0000 &  & 1.0000 &  \\" in latex
    with no_advice():
        nothing = result_of([[], []], k=[1])
    assert "| mean_rank | – |  |" in nothing.to_markdown()


def test_the_result_that_lacks_a_cutoff_is_named() -> None:
    """And with the cutoffs that it came with, not those that both have."""
    actual, queries = [["a"]] * 4, [f"q{i}" for i in range(4)]
    deep, shallow = (
        OfflineRetrievalEvaluator(actual, actual, queries=queries).evaluate(k)
        for k in ([5, 10], [1, 5])
    )
    with pytest.raises(InvalidInput) as caught:
        compare({"deep": deep, "shallow": shallow}, "mrr@10")
    assert caught.value.argument == "metric"
    assert "'shallow' was evaluated at 1, 5" in caught.value.problem
