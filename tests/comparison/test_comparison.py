"""Comparisons against scipy, against enumeration written out here, and at the edges."""

import dataclasses
import itertools
import math
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from places import DATA
from processes import loaded_by
from reference import no_advice
from refusals import blamed
from results_made import read_back, with_rows
from scipy import stats
from systems import few_queries, only, random_results, result_of
from trials import trials

from krag_eval import (
    AnyOf,
    Conventions,
    Difference,
    EvaluationResult,
    ExactTextMatcher,
    IdMatcher,
    KragEvalWarning,
    Matcher,
    MetadataMatcher,
    Metric,
    OfflineRetrievalEvaluator,
    compare,
)
from krag_eval.comparison.comparison_page import toward_better
from krag_eval.comparison.paired import holm
from krag_eval.core.results.latency import Failure, RetrievalRun
from krag_eval.core.results.rows import RowsInFile, flat_columns
from krag_eval.core.scoring.metrics import metrics_of
from krag_eval.errors import InvalidInput
from krag_eval.streaming.row_files import write_rows

COLUMNS = [
    *("a", "b", "metric", "value_a", "value_b", "difference", "ci_low", "ci_high"),
    *("p_permutation", "p_t", "p_holm", "effect_size", "wins", "ties", "losses"),
]
FEW = {"n_resamples": 200}


def of_ranks(a, b, metric="mrr@10", **options):
    """Compare two systems, a and b, by the ranks at which they find the items."""
    return compare({"a": result_of(a), "b": result_of(b)}, metric, **options)


def test_table_has_a_row_per_pair_and_metric():
    """Pairs come in the order given, metrics within them, and the columns are the promised ones."""
    results = random_results(1, 40, n_systems=3, k=(5, 10))
    comparison = compare(results, ["mrr@10", "micro_recall@5"], **FEW)
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
    """The difference is the second average minus the first, each as its result prints it.

    The same seed gives the same digits. Only of averages that are means over queries there are a
    t-test and an effect size.
    """
    results = random_results(2, 40, k=(3, None))
    a, b = (result.to_dict() for result in results.values())
    metrics = [name for name in a if "mean_rank" not in name]
    found, again, other = (compare(results, metrics, seed=one, **FEW) for one in (3, 3, 4))
    assert found.table.equals(again.table)
    assert not found.table.equals(other.table)
    for row in found.differences:
        assert (row.value_a, row.value_b) == (a[row.metric], b[row.metric])
        assert row.difference == row.value_b - row.value_a
        is_mean = not row.metric.startswith(("micro_", "macro_f1"))
        assert (math.isnan(row.p_t), math.isnan(row.effect_size)) == (not is_mean, not is_mean)
        assert 0 < row.p_permutation <= 1


# Intervals.


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_agree_with_scipy(level):
    """The interval is scipy's percentile bootstrap with the same seed, micro or macro.

    Drawn are the differences in an order of their own: of the better less the worse system, from
    the largest down.
    """
    results = random_results(3, 80)
    a, b = (result.tables[10] for result in results.values())

    def by_scipy(statistic, differences, *others):
        sign = 1 if differences.sum() > 0 else -1
        order = np.lexsort([*others[::-1], -sign * differences])
        interval = stats.bootstrap(
            [one[order] for one in (differences, *others)],
            statistic,
            paired=bool(others),
            n_resamples=500,
            confidence_level=level,
            method="percentile",
            random_state=np.random.default_rng(7),
        ).confidence_interval
        return pytest.approx([interval.low, interval.high], rel=1e-9)

    def mean(differences, axis=-1):
        return differences.mean(axis=axis)

    def micro(differences, n, axis=-1):
        return differences.sum(axis=axis) / n.sum(axis=axis)

    metrics = ["ndcg@10", "micro_recall@10", "mean_rank@10"]
    rows = compare(results, metrics, level=level, n_resamples=500, seed=7).differences
    ndcg, recall, rank = ([row.ci_low, row.ci_high] for row in rows)
    assert ndcg == by_scipy(mean, b["ndcg"] - a["ndcg"])
    assert recall == by_scipy(micro, b["covered"] - a["covered"], a["ground_truth"])
    differences = b["rank"] - a["rank"]  # of those where both found something
    of_both = differences[~np.isnan(differences)]
    assert 0 < len(of_both) < 80
    assert rank == by_scipy(mean, of_both)
    row = only(compare(results, "mean_rank@10", **FEW))
    assert row.p_t == pytest.approx(stats.ttest_1samp(of_both, 0).pvalue)
    assert row.effect_size == pytest.approx(of_both.mean() / of_both.std(ddof=1))


# One pair by hand.


NAN = math.nan
SAME = [*range(10), 0] * 4


@few_queries
@pytest.mark.parametrize(
    ("a", "b", "metric", "expected"),
    [
        # Three wins of the same size and nothing else: two of the eight flips are as extreme.
        ([2] * 3 + [1] * 4, [1] * 7, "mrr", {"p_permutation": 2 / 8, "wins": 3, "ties": 4}),
        # Sixty wins of one size: two of 2⁶⁰ flips are as extreme. The t-test has nothing to go by
        # where all differ alike; no evidence, however clear, makes its p 0.
        ([9] * 60, [1] * 60, "mrr", {"p_permutation": 2**-59, "p_t": NAN}),
        ([10] * 4000, [1] * 3999 + [2], "mrr", {"p_t": sys.float_info.min}),
        # Nothing differs.
        (SAME, SAME, "mrr", {"difference": 0, "ci_low": NAN, "ci_high": NAN, "effect_size": 0,
                             "p_permutation": 1, "p_t": 1, "p_holm": 1, "ties": 44,
                             "better": None, "is_shown": False}),
        # All queries differ alike, by 1/2 - 1/5: how far that would move is not known.
        ([5] * 30, [2] * 30, "mrr", {"effect_size": math.inf, "p_t": NAN, "ci_low": NAN,
                                     "ci_high": NAN, "difference": 0.3, "losses": 0}),
        ([2] * 30, [5] * 30, "mrr", {"effect_size": -math.inf, "losses": 30}),
        # One query allows no conclusion.
        ([2], [1], "mrr", {"p_t": NAN, "p_permutation": 1, "wins": 1}),
        # On mean_rank a win is a lower rank, and found beats not found. Of the 31 queries where
        # both found it: (30 · 2 + 2) / 31 against (30 · 3 + 1) / 31.
        ([3] * 30 + [1, 0, 0, 2], [2] * 30 + [2, 9, 0, 0], "mean_rank",
         {"difference": 62 / 31 - 91 / 31, "wins": 31, "ties": 1, "losses": 2, "better": "b"}),
        # Both miss one query, each another one; 58 ranks went from 3 to 1.
        ([0, *[3] * 59], [*[1] * 59, 0], "mean_rank",
         {"value_a": 3, "value_b": 1, "n_both": 58, "is_of_fewer": False, "better": "b",
          "is_shown": True}),
        # Each found what the other did not: the averages stay, and nothing is compared.
        ([1, 0], [0, 4], "mean_rank",
         {"value_a": 1, "value_b": 4, "n_both": 0, "difference": NAN, "p_permutation": NAN}),
        # Where all have a value, nothing is said of how many.
        ([3] * 40, [1] * 40, "mean_rank", {"share_a": NAN, "is_shown": True}),
    ],
)  # fmt: skip
def test_one_difference(a, b, metric, expected):
    """Its values, intervals, tests and counts, and who is better."""
    comparison = of_ranks(a, b, f"{metric}@10", **FEW)
    row = only(comparison)
    found = {name: getattr(row, name) for name in expected} | {"is_shown": row.is_shown()}
    found = {name: found[name] for name in expected}
    assert found == pytest.approx(expected, nan_ok=True)
    assert comparison.changed(n=None).empty == (row.ties == len(a))
    if math.isnan(row.share_a):
        assert list(comparison.table.columns) == COLUMNS
        assert "have a value" not in comparison.summary()


# The permutation test.


@few_queries
@pytest.mark.parametrize("seed", range(4))
def test_permutation_of_means_agrees_with_scipy(seed):
    """On twelve queries all sign flips are tried."""
    results = random_results(seed, 12)
    by_scipy = stats.permutation_test(
        [result.tables[10]["average_precision"] for result in results.values()],
        lambda x, y, axis: np.mean(y - x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    p = only(compare(results, "map@10", **FEW)).p_permutation
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
    differences = [
        difference([pair[::way] for pair, way in zip(pairs, ways, strict=True)])
        for ways in itertools.product([1, -1], repeat=len(pairs))
    ]
    expected = np.mean(np.array(differences) >= difference(pairs) - 1e-9)
    assert only(compare(results, f"{metric}@6")).p_permutation == pytest.approx(expected)


@few_queries
def test_random_swaps_agree_with_enumeration():
    """With sixteen differing queries, random swaps come near the share of all 65,536."""
    results = random_results(8, 20)
    a, b = (result.tables[10]["ndcg"] for result in results.values())
    changed = (b - a)[np.abs(b - a) > 1e-12]
    assert 14 < len(changed) <= 20
    flips = 1 - 2 * ((np.arange(2 ** len(changed))[:, np.newaxis] >> np.arange(len(changed))) & 1)
    exact = np.mean(np.abs(flips @ changed) >= abs(changed.sum()) - 1e-9)
    p = only(compare(results, "ndcg@10")).p_permutation
    # Four standard errors of a share estimated from 10,000.
    assert p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))


def test_among_many_tests_the_clearest_difference_is_shown():
    """Of 45 pairs on eight metrics: all against one, with more swaps than asked for."""
    results = {f"s{i}": result_of([1, *[1 if i else 0] * 29], k=(5, 10)) for i in range(10)}
    metrics = [f"{name}@{k}" for name in ("mrr", "ndcg", "map", "hit_rate") for k in (5, 10)]
    row = compare(results, metrics, **FEW).differences[0]
    # 29 wins of one size: of all 2²⁹ flips two are as extreme.
    assert row.p_permutation == 2**-28
    assert row.p_holm < 0.025
    assert row.is_shown()
    # Of the 45 pairs of means of F1, which no swaps can be counted of, so many are drawn.
    by_f1 = compare(results, [f"macro_f1@{k}" for k in (5, 10)] * 4, **FEW).differences[0]
    # 2 · 90 / 0.05 swaps; and as none of them was as extreme, p may be less, so ten times as many.
    assert by_f1.p_permutation == pytest.approx(1 / 36_001)
    # Where those asked for are enough, so many are made.
    assert (
        only(compare(results["s0"], results["s1"], metric="macro_f1@5")).p_permutation == 1 / 10_001
    )


def test_few_swaps_and_several_metrics():
    """A gate, whole and by slices, can fail however few resamples it takes."""
    tags = {"part": ["x"] * 40 + ["y"] * 40}
    old, new = (result_of(one, k=5, tags=tags) for one in ([1] * 80, [1, *[0] * 39] * 2))
    metrics = ["ndcg@5", "mrr@5", "map@5", "recall@5", "hit_rate@5", "precision@5"]
    report = new.check(baseline=old, metric=metrics, n_resamples=100, by="part")
    assert [gate.outcome for gate in report.gates] == ["failed"] * 18


def test_more_than_any_number_of_swaps_can_show():
    """At a level of one in a million, it takes two million swaps, which are not made unasked.

    As p might be below the level after all, ten times the most that are made for Holm are.
    """
    with pytest.warns(KragEvalWarning, match="n_resamples=2000000"):
        row = only(of_ranks([0] * 60, [1] * 60, "macro_f1@10", level=1 - 1e-6, n_resamples=100))
    assert row.p_permutation == 1 / 1_000_001
    # Of differences of one size all swaps are counted, and there is nothing to warn of.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = only(of_ranks([9] * 60, [1] * 60, level=1 - 1e-6, n_resamples=100))
    assert row.is_shown(1 - 1e-6)


# Averages over the queries that have a value.


def test_finding_nothing_is_not_better():
    """60 of 60 are found at rank 3, or 6 at rank 1: lower where both found one, and of fewer.

    Holm's correction covers the share with a value, whose test is that of ``found_rate``.
    """
    comparison = of_ranks([3] * 60, [1] * 6 + [0] * 54, "mean_rank@10")
    row = only(comparison)
    assert (row.value_a, row.value_b, row.n_both) == (3.0, 1.0, 6)
    assert (row.share_a, row.share_b) == (1.0, 0.1)
    assert row.p_permutation == 2 / 2**6  # six differences of one sign
    assert (row.better, row.is_of_fewer, row.is_shown()) == ("b", True, False)
    assert row.shows_fewer()
    assert "Neither a nor b is called better" in comparison.summary()
    assert "on the 6 queries where both have a value" in comparison.summary()
    assert "a has one for 100.0% of the queries, b for 10.0%" in comparison.summary()
    assert comparison.table.loc[0, ["n_both", "share_a", "share_b"]].tolist() == [6, 1.0, 0.1]
    found = only(of_ranks([3] * 60, [1] * 6 + [0] * 54, "found_rate@10"))
    assert row.p_share == found.p_permutation
    assert [row.p_share_holm, row.p_holm] == holm([row.p_share, row.p_permutation])


@pytest.mark.needs("report")
@pytest.mark.parametrize("more", [1, 20])
def test_finding_more_does_not_excuse_ranking_all_lower(more, tmp_path):
    """60 go from rank 1 to 10 while some more are found: worse, and its page says so too."""
    old, new = result_of([1] * 60 + [0] * more), result_of([10] * (60 + more))
    comparison = compare({"old": old, "new": new}, "mean_rank@10")
    row = only(comparison)
    assert (row.n_both, row.difference, row.p_holm < 0.001) == (60, 9.0, True)
    found = row.better, row.is_of_fewer, row.is_of_more, row.is_shown()
    assert found == ("old", False, True, True)
    told = "new is worse than old on mean_rank@10 by 9.000 (10.000 against 1.000"
    assert told in comparison.summary()
    comparison.report(tmp_path / "page.html")
    assert "a value for more queries" in (tmp_path / "page.html").read_text("utf-8")
    assert new.check(baseline=old, metric="mean_rank@10").outcome == "failed"
    # And the other way round: who gives up on the hard ones is not called better.
    assert not only(compare({"new": new, "old": old}, "mean_rank@10")).is_shown()


def test_slices_go_by_the_same_rule(tmp_path):
    """In one slice b finds less at better ranks: it is better in the other alone."""
    tags = {"part": ["x"] * 30 + ["y"] * 30}
    ranks = {"a": [3] * 60, "b": [1] * 10 + [0] * 20 + [1] * 30}
    results = {name: result_of(one, tags=tags) for name, one in ranks.items()}
    sliced = compare(results, "mean_rank@10").by("part")
    assert [(row.slice, row.is_shown()) for row in sliced.rows] == [("x", False), ("y", True)]
    assert (sliced.rows[0].n_both, sliced.rows[0].share_b) == (10, 1 / 3)
    assert read_back(sliced, tmp_path) == sliced


# The t-test and the effect size.


def test_t_test_and_effect_size_agree_with_scipy_and_the_formula():
    """The t-test is scipy's, the effect size d_z = t / sqrt(n) (Lakens 2013)."""
    results = random_results(5, 50)
    a, b = (result.tables[10]["ndcg"] for result in results.values())
    row = only(compare(results))
    assert row.p_t == pytest.approx(stats.ttest_rel(b, a).pvalue, rel=1e-12)
    assert row.effect_size == pytest.approx(stats.ttest_rel(b, a).statistic / math.sqrt(50))


def test_macro_f1_may_be_a_mean():
    """Under mean_of_f1 macro F1 is a mean over queries, and so is the mean rank if all is found."""
    results = random_results(6, 50, conventions=Conventions(macro_f1="mean_of_f1"))
    a, b = (result.tables[10]["f1"] for result in results.values())
    assert only(compare(results, "macro_f1@10")).p_t == pytest.approx(
        stats.ttest_rel(b, a).pvalue, rel=1e-12
    )
    a, b = [1, 2, 3] * 10, [3, 9, 3] * 10
    assert only(of_ranks(a, b, "mean_rank@10")).p_t == pytest.approx(
        stats.ttest_rel(b, a).pvalue, rel=1e-12
    )


# Holm.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # 0.005 × 4; 0.01 × 3; 0.03 × 2; 0.04 × 1 is pulled up to the one before (R: p.adjust).
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([], []),
        ([0.7, 0.6], [1.0, 1.0]),
        ([0.02, math.nan], [0.02, math.nan]),
    ],
)
def test_holm_by_hand(given, expected):
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
    comparison = compare(random_results(9, 40, n_systems=3), ["map@10", "mrr@10"], **FEW)
    permutation = [row.p_permutation for row in comparison.differences]
    assert [row.p_holm for row in comparison.differences] == holm(permutation)
    smallest = int(np.argmin(permutation))
    assert comparison.differences[smallest].p_holm == min(1, 6 * permutation[smallest])


# Whichever way round.


@few_queries
@settings(max_examples=trials(40))
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
    turned = [-mirrored.ci_high, -mirrored.ci_low]
    assert turned == pytest.approx([row.ci_low, row.ci_high], nan_ok=True)
    assert mirrored.p_permutation == row.p_permutation
    assert mirrored.p_t == pytest.approx(row.p_t, nan_ok=True)
    assert mirrored.effect_size == pytest.approx(-row.effect_size, nan_ok=True)
    assert (mirrored.wins, mirrored.ties, mirrored.losses) == (row.losses, row.ties, row.wins)
    assert row.wins + row.ties + row.losses == len(pairs)
    assert 0 < row.p_permutation <= row.p_holm <= 1


def test_undefined_averages_are_not_compared():
    """Nothing found by b: its mean rank is undefined, the row says so, and Holm skips it."""
    comparison = of_ranks([1, 2] * 20, [0, 0] * 20, ["mean_rank@10", "found_rate@10"])
    rank, found = comparison.differences
    numbers = rank.difference, rank.ci_low, rank.p_permutation, rank.p_t, rank.p_holm
    assert all(map(math.isnan, numbers))
    assert (rank.wins, rank.ties, rank.losses) == (0, 0, 40)
    assert rank.better is None
    assert found.p_holm == found.p_permutation
    told = "a and b cannot be compared on mean_rank@10: it is undefined for b.\n"
    assert comparison.summary().startswith(told)
    # Nor where each found what the other did not.
    apart = of_ranks([1, 0] * 20, [0, 4] * 20, "mean_rank@10", **FEW).summary()
    told = "a and b cannot be compared on mean_rank@10: no query has a value in both. a has one"
    assert apart.startswith(told)


def test_partly_undefined_metrics_of_ones_own():
    """Where a metric of one's own is undefined for either system, the query is left out."""

    def depth(relevance, k, _):
        found = relevance.covered_within(k)
        return np.where(found > 0, found, np.nan)

    results = {
        name: result_of(ranks, 2, evaluated={"metrics": [Metric("depth", depth, "mean_depth")]})
        for name, ranks in {
            "a": [[], [1], [1], [1, 2]] * 10,
            "b": [[1], [1, 2], [], [1, 2]] * 10,
        }.items()
    }
    row = only(compare(results, "mean_depth@10"))
    assert (row.value_a, row.value_b, row.n_both) == (1.5, 2.0, 20)
    assert (row.wins, row.ties, row.losses) == (10, 30, 0)
    assert row.p_t == pytest.approx(stats.ttest_rel([1, 2] * 10, [2, 2] * 10).pvalue)
    assert row.ci_low <= row.difference <= row.ci_high


# What cannot be compared.


RANKS = [1, 2, 0, 4] * 10


def over(*actual, **options):
    """Make a result of queries with this ground truth, for which nothing is retrieved."""
    with no_advice():
        return OfflineRetrievalEvaluator(list(actual), [[] for _ in actual], **options).evaluate(10)


def with_setting(result, **changed):
    return dataclasses.replace(result, settings={**result.settings, **changed})


def with_counted(result, counted):
    return with_rows(result, counted=np.array(counted, np.bool_))


def document(text, identity=None, **metadata):
    return {"page_content": text, "id": identity, "metadata": metadata}


def graded(*grades):
    items = [document(text, g=grade) for text, grade in zip("ab", grades, strict=True)]
    return over(items, grade_key="g")


def same_source(actual: Document, predicted: Document) -> bool:
    """Look at more than the text."""
    return bool(actual.metadata["s"] == predicted.metadata["s"])


class Judge(Matcher):
    """Answers as its prompt says."""

    def __init__(self, prompt):
        self.prompt = prompt

    def similarity(self, actual, predicted):
        return 0.0


def asking(prompt):
    """Return a matcher whose function holds a prompt in its closure."""
    return Matcher.from_function(lambda a, p: float(prompt == a.page_content), name="asking")


LABELS = [f"q{i}" for i in range(40)]
TWICE = [*LABELS[:-1], "q0"]


def refused(first, second, told):
    with blamed("results") as caught:
        compare({"one": first, "two": second})
    start = ": 'one' and 'two' cannot be compared, because they differ in "
    assert caught.value.problem.startswith(start + told)


@pytest.mark.filterwarnings("ignore:grade_key")
@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"matcher": "text"}, {"matcher": "contains"}, "matcher: text vs contains"),
        ({}, {"matching_criteria": "partial"}, "criteria: all vs partial"),
        ({}, {"conventions": "trec"}, "conventions: default vs precision_at=k,"),
        ({}, {"no_ground_truth": "zero"}, "no_ground_truth: error vs zero"),
        ({}, {"grade_key": "grade"}, "grades: - vs grade"),
        ({"k": (1, 10)}, {"k": (2, 5)}, "k: 1,10 vs 2,5"),
        ({}, {"n_items": [1, 1, 1, 2] + [1] * 36}, "number of ground-truth items: 3"),
        ({"queries": LABELS}, {"queries": ["x", *LABELS[1:39], "y"]}, "queries: 'q0', 'q39'"),
        ({"queries": TWICE}, {"queries": TWICE[::-1]}, "order of the queries: 'q1', 'q2'"),
    ],
)
def test_results_made_differently_are_refused(first, second, told):
    """Naming the setting and both values, or the queries that differ."""
    refused(result_of(RANKS, **first), result_of(RANKS, **second), told)


def test_everything_that_differs_is_named():
    """Settings, how many queries there are, and which of them count."""
    ours = result_of(RANKS)
    refused(ours, with_setting(ours, threshold="0.8"), "threshold: - vs 0.8")
    refused(ours, with_setting(result_of(RANKS[1:]), queries="40"), "queries: 40 vs 39")
    other = result_of(RANKS[1:], matcher="contains", k=5)
    refused(
        ours, other, "matcher: text vs contains(fold_whitespace=yes); queries: 40 vs 39; k: 10 vs 5"
    )
    refused(ours, with_counted(ours, [i != 5 for i in range(40)]), "counted in the averages: 5")


def test_other_ground_truth_of_the_same_size_is_refused_naming_the_queries():
    """The first of them, by label or by position, and how many more there are."""
    many, other = over(*[["a"], ["b"]] * 10), over(*[["a"], ["c"]] * 10)
    refused(many, other, "ground truth: 1, 3, 5, 7, 9 and 5 more")
    labelled = [over(["a"], [one], queries=["u", "v"]) for one in "bc"]
    refused(*labelled, "ground truth: 'v'")
    refused(graded(1, 2), graded(2, 1), "ground truth: 0")  # their sum is what it was
    refused(*(over([AnyOf(["a", one])]) for one in "bc"), "ground truth: 0")


def test_matchers_of_ones_own_are_told_apart():
    """By what their function holds, or by their attributes."""
    refused(*(over(["a"], matcher=asking(one)) for one in "xy"), "matcher: asking#")
    refused(*(over(["a"], matcher=Judge(one)) for one in "xy"), "matcher: Judge(prompt=x) vs")


@few_queries
@pytest.mark.parametrize(
    ("first", "second", "matcher", "may_differ"),
    [
        (["a", "b"], ["b", "a"], "text", True),
        ([document("a", "1")], [document("a", "2")], "text", True),
        ([document("a", "1")], [document("new words", "1")], "id", True),
        ([document("a", page=1)], [document("b", page=1.0)], MetadataMatcher("page"), True),
        ([document("a", path="/home/x")], [document("a", path="/tmp/y")], "contains", True),
        ([document("a", "1", p=1)], [document("a", "1", p=2)], ExactTextMatcher() & IdMatcher(),
         True),
        ([AnyOf(["a", "b"])], [AnyOf(["b", "a"])], "text", True),
        (["\u1100\u1161"], ["\uac00"], "text", True),
        ([document("a", "1")], [document("a", "2")], IdMatcher(), False),
        ([document("", page=1)], [document("", page=2)], MetadataMatcher("page"), False),
        ([document("", p={"q": 1})], [document("", p={"q": 2})], MetadataMatcher("p.q"), False),
        ([document("a", "1")], [document("a", "2")], ExactTextMatcher() | IdMatcher(), False),
        ([document("a", s=1)], [document("a", s=2)], Matcher.from_function(same_source), False),
    ],
)  # fmt: skip
def test_what_the_matcher_looks_at_may_not_differ(first, second, matcher, may_differ):
    """Ids made anew at every indexing, a path on another machine, the order of items may."""
    results = [over(items, matcher=matcher) for items in (first, second)]
    if may_differ:
        compare(results, **FEW)
        return
    refused(*results, "ground truth: 0")


@pytest.mark.needs("matchers")
def test_the_same_documents_have_one_digest_under_all_settings():
    """Of what they are; what the matcher looks at comes after it."""
    items = [document("a", "1"), document("b", "2")]
    results = [over(items, matcher=matcher) for matcher in ("id", "text", "contains", "rougeL")]
    digests = [str(result.rows.digests[0]) for result in results]
    assert len({digest.partition("-")[0] for digest in digests}) == 1
    assert len(set(digests)) == 2


@few_queries
def test_settings_that_are_unknown_warn():
    """Two prompts may hide behind what has no name."""
    results = [over(["a"], matcher=asking(iter(name))) for name in ("one", "two")]
    with pytest.warns(KragEvalWarning, match="asking#unknown"):
        compare(results, **FEW)


# Results of 0.1.0.


def of_today(actual=None, **options):
    """Evaluate what the saved result of 0.1.0 was made of."""
    truth = [["When?", AnyOf(["At nine.", "At 9."])], ["서울"], ["a"]]
    predicted = [["At 9.", "When?"], ["부산", "서울"], ["b"]]
    labels = ["hours", "where", "none"]
    evaluator = OfflineRetrievalEvaluator(actual or truth, predicted, queries=labels, **options)
    return evaluator.evaluate([1, 3], metrics=["recall", "mrr"])


@few_queries
def test_a_result_of_0_1_is_compared_with_a_warning():
    """It does not know what its ground truth was, but for its size, and the versions differ."""
    old = EvaluationResult.from_json(DATA / "result_0.1.0.json")
    with pytest.warns(KragEvalWarning) as warned:
        row = only(compare({"old": old, "new": of_today()}, "macro_recall@3"))
    assert row.difference == 0
    said = [str(one.message) for one in warned if "results" in str(one.message)]
    assert len(said) == 2
    assert "ground truth could not be checked" in said[0]
    assert "('old')" in said[0]
    assert "between which reported numbers changed" in said[1]
    other = of_today([["When?"], ["서울"], ["a"]])
    with pytest.raises(InvalidInput, match="number of ground-truth items: 'hours'"):
        compare({"one": old, "two": other}, "macro_recall@3")
    # Its matcher may have changed its defaults since: it is to be saved anew.
    for one, is_old in ((old, True), (of_today(), False)):
        with pytest.raises(InvalidInput, match="differ in matcher: text vs ") as caught:
            compare({"one": one, "two": of_today(matcher="contains")}, "macro_recall@3")
        assert ("Saved by krag_eval 0.1: 'one'" in str(caught.value.fix)) == is_old


def test_what_may_differ():
    """Which averages are shown, and the order of the cutoffs, make no difference."""
    first = result_of(RANKS, k=(1, 10), averaging_method="macro")
    second = result_of(RANKS, k=(10, 1))
    assert only(compare({"a": first, "b": second}, "macro_recall@10")).difference == 0


@pytest.mark.parametrize(
    ("versions", "changed"),
    [
        (("0.1.0", "0.1.3"), False),
        (("0.1.0", "0.2.0.dev0"), True),
        (("0.2.0.dev0", "9.9"), False),
        (("0.2.0", "?"), True),
    ],
)
def test_versions_warn_and_tell_whether_numbers_changed_between_them(versions, changed):
    """The warning, where the user called, does not cry wolf."""
    results = {version: with_setting(result_of(RANKS), krag_eval=version) for version in versions}
    with pytest.warns(KragEvalWarning, match=f"different versions .*'{versions[1]}'") as caught:
        compare(results, **FEW)
    assert caught[0].filename == __file__
    assert ("reported numbers changed" in str(caught[0].message)) == changed


@pytest.mark.parametrize(("n_queries", "word"), [(1, "1 query"), (29, "29 queries")])
def test_few_queries_warn(n_queries, word):
    """Few queries are said to be few, where the user called."""
    result = result_of([1] * n_queries)
    with pytest.warns(KragEvalWarning, match=f"rest on {word}") as caught:
        compare({"a": result, "b": result}, **FEW)
    assert caught[0].filename == __file__


def test_uncounted_queries_change_nothing():
    """Queries without ground truth that are left out are in no test and in no list."""
    ranks = [[1], [3]] * 20, [[2], [9, 1]] * 20
    options = {"n_items": [0] + [2] * 40, "no_ground_truth": "skip"}
    kept = compare(*(result_of(one, 2) for one in ranks))
    padded = compare(*(result_of([[], *one], **options) for one in ranks))
    assert padded.table.equals(kept.table)
    assert padded.changed(n=None).index.tolist() == (kept.changed(n=None).index + 1).tolist()
    nothing = with_counted(result_of(RANKS), [False] * 40)
    with pytest.raises(InvalidInput, match="no query counts"):
        compare(nothing, nothing)


# What differs in more than the retriever, and is brought together.


def tried(numbers, seed, k=10, **options):
    """Make a result over questions of these numbers; what it finds depends on number and seed."""
    actual, predicted = [], []
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        items = [f"item {number}.{i}" for i in range(1 + number % 3)]
        documents = [f"junk {number}.{rank}" for rank in range(10)]
        for rank, item in zip(rng.permutation(10), items, strict=False):
            documents[rank] = item if rng.random() < 0.6 else documents[rank]
        actual.append(items)
        predicted.append(documents)
    labels = [f"question {number}" for number in numbers]
    tags = {"part": [number % 4 for number in numbers]}
    evaluator = OfflineRetrievalEvaluator(actual, predicted, queries=labels, tags=tags, **options)
    return evaluator.evaluate(k=k)


def several(n=3, **options):
    return {name: tried(range(60), seed, **options) for seed, name in enumerate("abc"[:n], start=1)}


METRICS = ["ndcg@10", "micro_recall@10", "mean_rank@10"]
SHUFFLED = np.random.default_rng(5).permutation(60).tolist()


def test_queries_are_paired_by_label_whatever_their_order(tmp_path):
    """To the last digit what comes out where both have the order of the first.

    So it is where a result was saved, or has its rows in a file beside averages.
    """
    a, b = several(2).values()
    shuffled = tried(SHUFFLED, 2)
    expected = compare({"a": a, "b": b}, METRICS, **FEW)
    found = compare({"a": a, "b": shuffled}, METRICS, **FEW)
    assert found.differences == expected.differences
    assert found.summary() == expected.summary()
    assert found.signature == expected.signature
    assert found.queries == expected.queries
    assert found.changed("ndcg@10").equals(expected.changed("ndcg@10"))
    assert found.left_out == {}
    assert found.compared["a"] is a
    assert found.compared["b"] == b
    assert found.compared["b"].tags == b.tags
    shuffled.to_json(tmp_path / "b.json")
    metrics = metrics_of(shuffled.keys, shuffled.declared)
    columns = flat_columns(
        shuffled.tables, shuffled.counted, metrics, shuffled.rows.digests, shuffled.tags
    )
    write_rows(tmp_path / "b.csv", {"query": np.array(shuffled.labels, object), **columns})
    rows, totals = RowsInFile(tmp_path / "b.csv", shuffled.summary), shuffled.summary
    for other in (
        EvaluationResult.from_json(tmp_path / "b.json"),
        dataclasses.replace(shuffled, rows=rows, totals=totals, evidence=None),
    ):
        found = compare({"a": a, "b": other}, METRICS, **FEW)
        assert found.differences == expected.differences


def test_common_queries_are_those_that_all_have():
    """The numbers are those of results over these queries alone; the others are named."""
    given = {
        "a": tried(range(60), 1),
        "b": tried(range(10, 70), 2),
        "c": tried(range(64, 4, -1), 3),
    }
    with pytest.raises(InvalidInput) as caught:
        compare(given)
    assert caught.value.fix.settings == (("on", "common"),)
    found = compare(given, METRICS, on="common", **FEW)
    alone = {name: tried(range(10, 60), seed) for seed, name in enumerate("abc", start=1)}
    expected = compare(alone, METRICS, **FEW)
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


def test_common_queries_may_be_all():
    """Nothing is left out, and nothing else changes."""
    results = several(2)
    found = compare(results, on="common", **FEW)
    assert found.compared["b"] is results["b"]
    assert found.left_out == {}
    assert found.summary() == compare(results, **FEW).summary()


def test_what_a_retriever_took_stays_with_its_query():
    """Seconds and failures of the queries that are compared."""
    a, b = tried(range(40), 1), tried(range(5, 45), 2)
    seconds = np.where(np.arange(40) == 2, np.nan, np.arange(5.0, 45.0))
    run = RetrievalRun(seconds, [Failure(2, "OSError", "gone", 0.1)])
    found = compare({"a": a, "b": dataclasses.replace(b, retrieval=run)}, on="common", **FEW)
    ours = found.compared["b"].retrieval
    assert [s for s in ours.seconds.tolist() if s == s] == [5.0, 6.0, *map(float, range(8, 40))]
    assert [failure.position for failure in ours.failures] == [2]
    assert found.queries[2] == "question 7"


def test_queries_without_ground_truth_stay_with_their_labels():
    """They are counted anew among those that are compared."""

    def skipping(numbers):
        return OfflineRetrievalEvaluator(
            [[f"item {i}"] if i % 5 else [] for i in numbers],
            [["x", f"item {i}"] for i in numbers],
            queries=[f"q{i}" for i in numbers],
            no_ground_truth="skip",
        ).evaluate(10)

    found = compare(skipping(range(60)), skipping(range(50, 4, -1)), on="common", **FEW)
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
    results = [result_of(RANKS, queries=one) for one in ([*map(str, range(40))], labels)]
    with blamed("results") as caught:
        compare(results, on="common")
    assert caught.value.fix
    with pytest.raises(InvalidInput) as caught:
        compare(results)
    assert "common" not in str(caught.value.fix)


def test_numbers_may_be_labels_but_positions_are_not_paired_with_them():
    """Whether 0 is a name or a place is not known where all are in order."""
    ranks, names = [i % 7 + 1 for i in range(40)], [2 * i for i in range(40)]
    a, b = (result_of(ranks[::way], queries=names[::way]) for way in (1, -1))
    assert only(compare(a, b)).ties == 40
    with pytest.raises(InvalidInput, match="order of the queries"):
        compare(result_of(ranks), result_of(ranks[::-1], queries=[*range(40)][::-1]))


def test_the_ground_truth_of_paired_queries_must_be_the_same():
    """It is told by the label of the query, wherever it stands."""
    a = over(*[[f"item {i}"] for i in range(40)], queries=LABELS)
    items = [["new"] if i == 7 else [f"item {i}"] for i in range(45, 5, -1)]
    b = over(*items, queries=[f"q{i}" for i in range(45, 5, -1)])
    with pytest.raises(InvalidInput, match="ground truth: 'q7'"):
        compare(a, b, on="common")


def test_differing_cutoffs_are_compared_where_they_are_shared():
    """As if both had been evaluated at these alone, in the order of the first."""
    a, b = tried(range(40), 1, k=[1, 10, 5]), tried(range(40), 2, k=[5, 3, 10])
    found = compare({"a": a, "b": b}, ["ndcg@5", "ndcg@10"], **FEW)
    shared = {name: tried(range(40), i, k=[10, 5]) for i, name in enumerate("ab", start=1)}
    expected = compare(shared, ["ndcg@5", "ndcg@10"], **FEW)
    assert found.differences == expected.differences
    assert found.signature == expected.signature
    assert [one.k for one in found.compared.values()] == [(10, 5), (10, 5)]
    assert found.compared["a"].evidence is a.evidence
    # A cutoff that one lacks is told of that one, with the cutoffs that it came with.
    with blamed("metric") as caught:
        compare({"a": a, "b": b}, "ndcg@3")
    assert "'a' was evaluated at 1, 10, 5" in caught.value.problem


@pytest.mark.parametrize(
    ("of_a", "of_b", "expected"),
    [
        ([1, 10, 20], [20, 10], "ndcg@10"),
        ([5, 1], [1, 5, 3], "ndcg@5"),
        ([1, 10], [1, 5], "ndcg@1"),
    ],
)
def test_without_a_metric_ndcg_at_a_shared_cutoff_is_compared(of_a, of_b, expected):
    """At 10, or else at the deepest that both have."""
    results = [tried(range(40), 1, k=k) for k in (of_a, of_b)]
    assert compare(results, **FEW).metrics == [expected]


def test_what_counted_budgets_does_not_matter_where_none_is_shared():
    """Two functions are two measures; at k both are the same."""
    evaluator = OfflineRetrievalEvaluator([["a b"]] * 40, [["a b", "c"]] * 40)
    a = evaluator.evaluate(k=[1, 2], budget=[4], length=len)
    b = evaluator.evaluate(k=[1, 2])
    found = compare({"a": a, "b": b}, "mrr@2", **FEW)
    assert "length" not in found.signature
    assert found.compared["a"] == b


# Several systems.


def test_a_baseline_is_compared_with_each_other_and_nothing_else():
    """It comes first in each pair, and Holm's correction is over these pairs alone."""
    every = compare(several(), METRICS, n_resamples=1_000)
    found = compare(several(), METRICS, baseline="b", n_resamples=1_000)
    assert found.pairs == [("b", "a"), ("b", "c")]
    assert found.baseline == "b"
    assert found.names == ["a", "b", "c"]
    of_pair = {(frozenset((row.a, row.b)), row.metric): row for row in every.differences}
    for row in found.differences:
        other = of_pair[frozenset((row.a, row.b)), row.metric]
        assert row.p_permutation == other.p_permutation
        assert abs(row.difference) == abs(other.difference)
    assert [row.p_holm for row in found.differences] == holm(
        [row.p_permutation for row in found.differences]
    )
    assert "baseline=b" in repr(found)
    pair = compare(several(2), baseline="b", **FEW)
    assert pair.changed().equals(pair.changed(a="b", b="a"))


def test_the_leaderboard_has_the_intervals_of_each_result():
    """To the last digit, the best on the first metric first."""
    results = several()
    board = compare(results, METRICS, seed=3, **FEW).leaderboard
    parts = ("", "_low", "_high", "_best")
    assert list(board.columns) == [f"{metric}{part}" for metric in METRICS for part in parts]
    assert sorted(board.index) == list("abc")
    assert board["ndcg@10"].is_monotonic_decreasing
    for name, result in results.items():
        intervals = result.confidence_intervals(seed=3, **FEW)
        for metric in METRICS:
            found = board.loc[name, [metric, f"{metric}_low", f"{metric}_high"]].tolist()
            assert found == intervals.loc[metric, ["value", "low", "high"]].tolist()
    found = board.index.map({name: one.averages(10)["found_rate"] for name, one in results.items()})
    is_best = (board["mean_rank@10"] == board["mean_rank@10"].min()) & (found == found.max())
    assert board["mean_rank@10_best"].tolist() == is_best.tolist()
    assert board["ndcg@10_best"].tolist() == [True, False, False]


def test_results_need_no_names():
    """One after the other or in a list, called by their place or as one says."""
    a, b, c = several().values()
    expected = compare({"system_1": a, "system_2": b}, "mrr@10", **FEW)
    for results in ((a, b), ([a, b],), ((a, b),)):
        assert compare(*results, metric="mrr@10", **FEW).differences == expected.differences
    assert compare([a, b], "mrr@10", **FEW).differences == expected.differences
    assert compare(a, b, c, names=["x", "y", "z"], **FEW).names == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("ranks", "metric", "best"),
    [
        # The best mean rank is that of the system that found one query of 40: it has no star.
        ({"all": [2] * 40, "one": [1] + [0] * 39, "late": [3] * 40}, "mean_rank", []),
        ({"all": [2] * 40, "one": [1] + [0] * 39, "late": [3] * 40}, "mrr", ["all"]),
        ({"all": [2] * 40, "late": [3] * 40}, "mean_rank", ["all"]),
        # Equal systems are both the best, and nothing found is no rank.
        ({"nothing": [0] * 40, "one": [1] * 40, "two": [1] * 40}, "mean_rank", ["one", "two"]),
        ({"nothing": [0] * 40, "one": [1] * 40, "two": [1] * 40}, "mrr", ["one", "two"]),
        ({"one": [0] * 40, "two": [0] * 40}, "mean_rank", []),
    ],
)
def test_who_is_the_best(ranks, metric, best):
    """Those with the best average; if queries may have no value, with one for as many as others."""
    results = {name: result_of(one) for name, one in ranks.items()}
    board = compare(results, f"{metric}@10", **FEW).leaderboard
    assert board.index[board[f"{metric}@10_best"]].tolist() == best
    if best:
        assert board.index.tolist()[: len(best)] == best


# The queries that changed.


def test_changed_queries_come_largest_first():
    """Both signs, largest change first, equal changes in the order of the queries."""
    labels = [f"q{i}" for i in range(30)]
    a = result_of([1, 2, 4, 0, 1] + [1] * 25, queries=labels)
    b = result_of([2, 2, 1, 1, 2] + [1] * 25, queries=labels)
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
    a, b = [1, 0, 2, 0] + [1] * 26, [9, 3, 0, 0] + [1] * 26
    changed = of_ranks(a, b, "mean_rank@10").changed()
    assert changed.index.tolist() == [1, 2, 0]
    assert changed["difference"].tolist() == [-math.inf, math.inf, 8.0]
    assert changed["value_a"].isna().tolist() == [True, False, False]
    assert changed["value_b"].isna().tolist() == [False, True, False]


# What people read.


def test_summary_says_which_is_better_and_how_surely():
    """A shown difference names the better system first; one not shown is not called a tie."""
    shown, not_shown, family = (
        of_ranks([1] * 20 + [5] * 30 + [0] * 10, [1] * 45 + [5] * 6 + [0] * 9,
                 ["mrr@10", "found_rate@10"]).summary().split("\n")
    )  # fmt: skip
    # (45 + 6/5) / 60 = 0.770 against (20 + 30/5) / 60 = 0.433; 51/60 against 50/60.
    assert shown.startswith("b is better than a on mrr@10 by 0.337 (0.770 against 0.433; ")
    assert shown.endswith("; p < 0.001 after Holm).")
    assert not_shown.startswith(
        "No difference shown between a and b on found_rate@10: b minus a is 0.017 "
        "(0.850 against 0.833; 95 % interval 0.000 to 0.050; p = 1.000 after Holm)."
    )
    assert family == "Holm's correction covers the 2 tests made here."
    # Where the first system is better, the difference and its bounds are told as positive.
    turned = of_ranks([1] * 40, [1] * 20 + [2] * 20, level=0.9).summary()
    assert turned.startswith("a is better than b on mrr@10 by 0.250 (1.000 against 0.750; 90 % ")
    low, _, high = turned.split("interval ")[1].split(";")[0].split()
    assert 0 < float(low) < 0.25 < float(high)


def test_how_many_tests_were_made_is_said_where_there_are_several():
    """Three systems on two metrics make six; against a baseline four; one says nothing."""
    systems = {name: result_of([rank] * 40) for name, rank in (("a", 1), ("b", 2), ("c", 3))}
    several = compare(systems, ["mrr@10", "ndcg@10"], **FEW)
    assert "covers the 6 tests" in several.summary()
    assert "검정 6개" in several.summary("ko")
    against = compare(systems, ["mrr@10", "ndcg@10"], baseline="a", **FEW)
    assert "covers the 4 tests" in against.summary()
    del systems["c"]
    assert "Holm's correction" not in compare(systems, "mrr@10", **FEW).summary()


def test_small_numbers_do_not_read_as_zero():
    """A difference far below three decimals is still told."""
    row = Difference(
        *("a", "b", "mrr@10", 0.5, 0.50004, 0.00004, 0.00001, 0.00007),
        *(0.0001, 0.0001, 0.0002, 0.1, 5, 6, 1),
    )
    comparison = dataclasses.replace(of_ranks([2] * 40, [1] * 40), differences=(row,))
    assert "by 4e-05 (0.500 against 0.500; 95 % interval 1e-05 to 7e-05;" in comparison.summary()


def test_what_is_shown_goes_by_the_test_alone():
    """The interval is told, and does not decide; it is told toward the better system."""
    row = only(of_ranks([2] * 40, [1] * 40))
    assert row.is_shown()
    assert not row.is_shown(level=1 - 2**-39)  # p is 2 of 2⁴⁰
    beyond = dataclasses.replace(row, ci_low=-0.1, ci_high=0.5)
    assert beyond.is_shown()
    assert toward_better(beyond) == (-0.1, 0.5)
    assert toward_better(dataclasses.replace(beyond, difference=-0.2)) == (-0.5, 0.1)
    assert not dataclasses.replace(row, p_holm=0.06).is_shown()
    assert dataclasses.replace(row, p_holm=0.06).is_shown(level=0.9)


def test_names_are_text_in_every_form():
    """They cannot add columns, lines or markup, neither to the table nor to the sentence."""
    systems = "a|b_c $x$ <script>", "50% _d_ & {e}\n#"
    ranks = [2, 3] * 20, [1, 3] * 20
    comparison = compare(dict(zip(systems, map(result_of, ranks), strict=True)), "mrr@10")
    _, _, row, empty, said, end = comparison.to_markdown().split("\n")
    assert row.startswith(r"| a\|b_c \$x\$ \<script\> | 50% \_d\_ \& {e} # | mrr@10 | 0.4167 |")
    name = r"a\|b_c \$x\$ \<script\>"
    assert said.startswith(rf"- 50% \_d\_ \& {{e}} # is better than {name} on mrr@10 by")
    assert empty == end == ""
    line = comparison.to_latex().split("\n")[4]
    assert line.startswith(
        r"a\textbar{}b\_c \$x\$ \textless{}script\textgreater{} & 50\% \_d\_ \& \{e\} \# & mrr@10 &"
    )
    page = comparison._repr_html_()
    assert "<script>" not in page
    assert page.count("a|b_c $x$ &lt;script&gt;") == page.count("<tr>") == 2
    assert "Comparison over 40 queries" in repr(comparison)


def test_the_best_comes_first_in_a_dictionary():
    """By hand: ranks 1 and 1 against 1 and 2 are an MRR of 1 and of 3/4."""
    comparison = compare({"worse": result_of([1, 2] * 20), "better": result_of([1] * 40)}, "mrr@10")
    assert comparison.labels == comparison.queries == [*range(40)]
    assert comparison.n_queries == 40
    assert comparison.to_dict() == {"better": {"mrr@10": 1.0}, "worse": {"mrr@10": 0.75}}
    assert [*comparison.to_dict()] == [*comparison.leaderboard.index] == ["better", "worse"]


def test_importing_loads_neither_scipy_nor_pandas():
    """The heavy libraries load when something is compared."""
    code = "import krag_eval.comparison.comparison"
    assert not loaded_by(code) & {"scipy", "pandas", "matplotlib"}
