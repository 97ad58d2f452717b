"""Intervals against scipy.stats.bootstrap, against enumeration by hand, and at the edges."""

import dataclasses
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from processes import loaded_by
from scipy import stats
from trials import trials

from krag_eval import (
    AveragingMethod,
    Conventions,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
    confidence_intervals,
)
from krag_eval.errors import InvalidInput
from krag_eval.intervals import intervals as uncertainty
from krag_eval.intervals.intervals import QuerySums

few_queries = pytest.mark.filterwarnings("ignore:The intervals rest on")
no_width = pytest.mark.filterwarnings("ignore:All queries have the same value")


def evaluator(n_items, ranks, **options):
    """Make an evaluator of queries with so many items, the first of them at the given ranks."""
    actual = [[f"item {i}" for i in range(n)] for n in n_items]
    predicted = []
    for found in ranks:
        documents = [f"junk {rank}" for rank in range(1, 11)]
        for i, rank in enumerate(found):
            documents[rank - 1] = f"item {i}"
        predicted.append(documents)
    return OfflineRetrievalEvaluator(actual, predicted, **options)


def random_result(seed, n_queries=150, k=(1, 3, 5), **options):
    rng = np.random.default_rng(seed)
    # Powers of two divide without rounding, so that equal sums are equal in scipy as well.
    n_items = rng.choice([1, 2, 4], n_queries).tolist()
    some = np.arange(1, 11)
    ranks = [rng.choice(some, rng.integers(0, n + 1), replace=False).tolist() for n in n_items]
    return evaluator(n_items, ranks, **options).evaluate(k=k)


def by_scipy(statistic, *columns, method="BCa", level=0.95, seed=0, n_resamples=2_000):
    """Return the interval that scipy makes from the same draws, of the queries by value."""
    order = np.lexsort([np.nan_to_num(one) for one in columns[::-1]])  # not found comes first
    interval = stats.bootstrap(
        [one[order] for one in columns],
        statistic,
        paired=len(columns) > 1,
        vectorized=True,
        n_resamples=n_resamples,
        confidence_level=level,
        method=method,
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return pytest.approx([interval.low, interval.high], rel=1e-9)


def bounds(table, name):
    return table.loc[name, ["low", "high"]].tolist()


def mean(values, axis=-1):
    return np.mean(values, axis=axis)


def ratio(top, bottom, axis=-1):
    return np.sum(top, axis=axis) / np.sum(bottom, axis=axis)


def f1(*columns, of=ratio, axis=-1):
    """Return the harmonic mean of two ratios of sums, or of two means."""
    half = len(columns) // 2
    p, r = of(*columns[:half], axis=axis), of(*columns[half:], axis=axis)
    return 2 * p * r / (p + r)


def nan_mean(values, axis=-1):
    return np.nanmean(values, axis=axis)


MEAN_OF_F1 = {"conventions": Conventions(macro_f1="mean_of_f1")}


@pytest.mark.parametrize("method", ["BCa", "percentile"])
@pytest.mark.parametrize(
    ("average", "statistic", "columns", "options"),
    [
        ("macro_recall@3", mean, ["recall"], {}),
        ("macro_recall@5", mean, ["recall"], {}),
        ("micro_precision@5", ratio, ["relevant", "precision_base"], {}),
        ("micro_recall@5", ratio, ["covered", "ground_truth"], {}),
        ("micro_f1@5", f1, ["relevant", "precision_base", "covered", "ground_truth"], {}),
        ("macro_f1@4", partial(f1, of=mean), ["precision", "recall"], {}),
        ("macro_f1@4", mean, ["f1"], MEAN_OF_F1),
        # Of the found queries among those drawn.
        ("mean_rank@10", nan_mean, ["rank"], {}),
        ("mrr@5", mean, ["reciprocal_rank"], {}),
        ("map@5", mean, ["average_precision"], {}),
        ("ndcg@5", mean, ["ndcg"], {}),
    ],
)
def test_averages_have_the_interval_of_scipy(average, statistic, columns, options, method):
    """That of scipy.stats.bootstrap with the same seed, of means and of ratios of sums."""
    k = int(average.partition("@")[2])
    result = random_result(1, k=(k,), **options)
    table = confidence_intervals(result, 0.9, n_resamples=2_000, seed=5, method=method)
    values = [result.tables[k][name] for name in columns]
    expected = by_scipy(statistic, *values, method=method, level=0.9, seed=5)
    if columns[0] in ("reciprocal_rank", "average_precision", "ndcg", "f1"):
        # Where scipy takes rounding for a difference, its bias shifts by a fraction of a percent.
        expected = pytest.approx(expected.expected, abs=2e-3 if method == "BCa" else 1e-9)
    assert bounds(table, average) == expected


def wilson_by_scipy(hits, n, level=0.95):
    """Return the score interval of scipy."""
    found = stats.binomtest(int(hits), n).proportion_ci(level, method="wilson")
    return pytest.approx([found.low, found.high], abs=1e-12)


@pytest.mark.parametrize("method", ["BCa", "percentile"])
@pytest.mark.parametrize("hits", [0, 13, 40])
def test_shares_have_the_score_interval_of_scipy(hits, method):
    """With one item per query, what finds it at rank 1 is a share, whatever it is called.

    Also at 0 and 1, where a bootstrap has no width, and nothing is left to warn of.
    """
    result = evaluator([1] * 40, [[1]] * hits + [[2]] * (40 - hits)).evaluate(k=1)
    table = confidence_intervals(result, 0.9, method=method).drop("mean_rank@1", errors="ignore")
    assert {"hit_rate", "micro_recall", "macro_recall", "macro_f1", "map", "ndcg"} <= {
        *table["metric"]
    }
    assert all(bounds(table, one) == wilson_by_scipy(hits, 40, 0.9) for one in table.index)


def test_a_share_is_one_by_the_data():
    """One query with half of its items makes recall a mean, and leaves the hit rate a share."""
    result = evaluator([1] * 39 + [2], [[1]] * 39 + [[1]]).evaluate(k=1)
    table = confidence_intervals(result, n_resamples=2_000)
    assert bounds(table, "hit_rate@1") == wilson_by_scipy(39, 40)
    recall = result.tables[1]["recall"]
    assert bounds(table, "macro_recall@1") == by_scipy(mean, recall)


def test_micro_averages_of_queries_of_unequal_weight_are_no_shares():
    """All or nothing of one item or four: a ratio of sums, unless every query has all."""
    ranks = [[1], [1, 2, 3, 4], [], []] * 10
    result = evaluator([1, 4] * 20, ranks).evaluate(k=4, metrics=["recall"])
    table = confidence_intervals(result, n_resamples=2_000)
    assert bounds(table, "macro_recall@4") == wilson_by_scipy(20, 40)
    columns = result.tables[4]
    micro = by_scipy(ratio, columns["covered"], columns["ground_truth"])
    assert bounds(table, "micro_recall@4") == micro
    everything = evaluator([1, 4] * 20, [[1], [1, 2, 3, 4]] * 20).evaluate(k=4, metrics=["recall"])
    table = confidence_intervals(everything)
    assert table.index.tolist() == ["micro_recall@4", "macro_recall@4"]
    assert all(bounds(table, one) == wilson_by_scipy(40, 40) for one in table.index)


@few_queries
@no_width
@pytest.mark.parametrize("method", ["BCa", "percentile"])
@pytest.mark.parametrize(("level", "low", "high"), [(0.95, 0.0, 0.5), (0.4, 0.25, 0.25)])
def test_two_queries_by_hand(method, level, low, high):
    """Of 0 and 1/2, two draws have the mean 0, 1/4 or 1/2 with chances 1/4, 1/2 and 1/4.

    The quantiles at 2.5 % and 97.5 % are 0 and 1/2, those at 30 % and 70 % are both 1/4. The
    distribution is symmetric around the mean and the sample has no skew, so BCa changes nothing.
    """
    result = evaluator([2, 2], [[1], []]).evaluate(k=1)
    table = confidence_intervals(result, level, method=method)
    assert table.loc["macro_recall@1", ["value", "low", "high"]].tolist() == [0.25, low, high]


@few_queries
@no_width
def test_mean_rank_leaves_out_resamples_that_find_nothing():
    """Ranks 1, 5 and nothing: 27 draws of three, one of which has no rank, decide.

    With i ones, j fives and 3 - i - j nothings the mean rank is (i + 5j) / (i + j), in
    3! / (i! j! (3 - i - j)!) of the draws. Rank 1: 1 + 3 + 3 = 7 of the 26; 1 to 5 between: 3 of
    7/3, 3 of 11/3, 6 of 3; rank 5: 7. Up to the share 7/26 = 0.27 the quantile is 1.
    """
    result = evaluator([1, 1, 1], [[1], [5], []]).evaluate(k=10)
    table = confidence_intervals(result, 0.5, method="percentile")
    assert bounds(table, "mean_rank@10") == [1.0, 5.0]
    # At 30 % and 70 % (18.2 of the 26): 7/3 covers ranks 8 to 10, 11/3 ranks 17 to 19.
    table = confidence_intervals(result, 0.4, method="percentile")
    assert bounds(table, "mean_rank@10") == pytest.approx([7 / 3, 11 / 3])


def test_nothing_found_leaves_mean_rank_undefined_and_nothing_else():
    """Without any rank there is no mean rank; of 30 queries others may be up to z²/(30 + z²)."""
    with pytest.warns(KragEvalWarning, match="matched nothing at all"):
        result = evaluator([1] * 30, [[]] * 30).evaluate(k=5)
    table = confidence_intervals(result).set_index("metric")
    assert table.loc["mean_rank", ["value", "low", "high"]].isna().all()
    others = table.drop("mean_rank")
    assert (others[["value", "low"]] == 0).all(axis=None)
    z = 1.959963984540054
    assert others["high"].tolist() == pytest.approx([z**2 / (30 + z**2)] * len(others))


@no_width
def test_few_found_queries_are_named():
    """A mean rank over three queries says so, though the other averages rest on forty."""
    result = evaluator([1] * 40, [[1], [2], [5]] + [[]] * 37).evaluate(k=(1, 10))
    with pytest.warns(
        KragEvalWarning, match=r"Fewer than 30 queries have a value.*: mean_rank@10 \(3\)\.$"
    ):
        table = confidence_intervals(result)
    assert 1 <= table.loc["mean_rank@10", "low"] < table.loc["mean_rank@10", "high"] <= 5


@pytest.mark.parametrize("n_queries", [2, 29, 30])
def test_few_queries_warn(n_queries):
    """Below thirty queries, one warning says that the intervals are too narrow."""
    result = random_result(6 if n_queries < 30 else 7, n_queries, k=5)
    keys = {name: key for name, key in result.keys.items() if name != "rank"}
    result = dataclasses.replace(result, keys=keys)
    with warnings.catch_warnings(record=True, action="always") as caught:
        confidence_intervals(result)
    said = f"rest on {n_queries} queries. With fewer than 30"
    assert [said in str(one.message) for one in caught] == [True] * (n_queries < 30)


def test_one_query_has_no_interval():
    """One query drawn again and again is always the same, which says nothing; the warning does."""
    result = evaluator([2], [[1, 4]]).evaluate(k=3)
    with pytest.warns(KragEvalWarning, match="rest on 1 query"):
        table = confidence_intervals(result)
    assert table.loc["macro_recall@3", "value"] == 0.5
    assert np.isnan(bounds(table, "macro_recall@3")).all()
    # 1 of 1: not below 1/(1 + z²).
    assert bounds(table, "mrr@3") == wilson_by_scipy(1, 1)


@few_queries
@pytest.mark.parametrize("n_queries", [2, 5, 40])
def test_one_value_has_no_interval(n_queries):
    """Where every query scores the same between 0 and 1, one warning names the averages."""
    evaluated = {"k": (1, 5), "metrics": ["recall", "rank"]}
    result = evaluator([2] * n_queries, [[1]] * n_queries).evaluate(**evaluated)
    with pytest.warns(KragEvalWarning, match="how far") as caught:
        table = confidence_intervals(result)
    assert len(caught) == 1
    # A mean rank at 1 can only be 1, which is no news.
    assert str(caught[0].message).endswith(
        "have no interval: micro_recall@1, macro_recall@1, micro_recall@5, macro_recall@5, "
        "mean_rank@5."
    )
    assert caught[0].filename == __file__
    table = table.drop(["found_rate@1", "found_rate@5"], errors="ignore")  # a share
    assert table[["low", "high"]].isna().all(axis=None)
    assert (table["value"][["macro_recall@1", "macro_recall@5"]] == 0.5).all()


@pytest.mark.parametrize("conventions", Conventions.presets().values(), ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_sums_give_the_same_averages(conventions, seed):
    """What is resampled is, of all queries once, the average that the result prints."""
    result = random_result(seed, k=(1, 4, None), conventions=conventions)
    for k in result.k:
        averages = result.averages(k)
        sums = QuerySums.of(result, [(result.definitions[key], k) for key in averages])
        values = sums.all_averages(sums.columns.sum(axis=0))
        assert values == pytest.approx(list(averages.values()), rel=1e-12)


@few_queries
@no_width
@settings(max_examples=trials(50))
@given(
    st.lists(st.sampled_from([[], [1], [3], [2, 4], [1, 2, 3]]), min_size=1, max_size=12).filter(
        any
    )
)
def test_intervals_stay_in_order_and_in_range(ranks):
    """Bounds are in order, and never leave what the metric's values span, if there are any."""
    result = evaluator([3] * len(ranks), ranks).evaluate(k=5)
    table = confidence_intervals(result, n_resamples=100).set_index("metric")
    assert (table["low"].isna() == table["high"].isna()).all()
    table["low"], table["high"] = (table[one].fillna(table["value"]) for one in ("low", "high"))
    assert (table["low"] <= table["high"]).all()
    scores = table.drop("mean_rank")
    assert scores["low"].ge(0).all()
    assert scores["high"].le(1).all()
    assert table.loc["mean_rank", "low"] >= 1
    assert table.loc["mean_rank", "high"] <= 5


def test_levels_nest():
    """A higher level gives an interval that holds the lower one, up to levels near 1."""
    result = random_result(8, k=5)
    tables = [confidence_intervals(result, level) for level in (0.5, 0.9, 0.99, 1 - 1e-12)]
    for narrow, wide in pairwise(tables):
        assert (wide["low"] <= narrow["low"]).all()
        assert (wide["high"] >= narrow["high"]).all()


def test_seeds_and_blocks(monkeypatch):
    """The same seed gives the same digits, however the work is cut; another seed does not."""
    result = random_result(9)
    table = confidence_intervals(result, n_resamples=500, seed=3)
    monkeypatch.setattr(uncertainty, "_BLOCK", 7 * 150)
    assert confidence_intervals(result, n_resamples=500, seed=3).equals(table)
    assert not confidence_intervals(result, n_resamples=500, seed=4).equals(table)


def test_uncounted_queries_are_never_drawn():
    """Queries without ground truth that are left out change nothing."""
    kept = evaluator([1, 2, 4] * 20, [[1], [5], []] * 20)
    padded = evaluator(
        [1, 2, 4] * 20 + [0] * 9, [[1], [5], []] * 20 + [[]] * 9, no_ground_truth="skip"
    )
    assert confidence_intervals(padded.evaluate(k=5)).equals(
        confidence_intervals(kept.evaluate(k=5))
    )


def test_table_joins_by_spelling():
    """Rows are indexed as averages are spelled, and hold the same values."""
    result = random_result(10, k=(5, None), averaging_method=AveragingMethod.MACRO)
    table = confidence_intervals(result, n_resamples=100)
    assert table["value"].to_dict() == result.to_dict()
    assert list(table.columns) == ["metric", "k", "value", "low", "high"]
    assert table["k"].unique().tolist() == [5, "all"]
    assert "micro_recall" not in table["metric"].to_numpy()


def test_own_metric_has_an_interval():
    """A metric of one's own is resampled as its mean over the queries where it is defined."""
    values = np.array([1, 2, np.nan, np.nan] * 15)
    metric = Metric("own", lambda relevance, k, _: values, "mean_own")
    own = evaluator([2] * 60, [[1], [2, 3], [], [9]] * 15).evaluate(k=5, metrics=[metric])
    table = confidence_intervals(own, n_resamples=2_000)
    assert table.loc["mean_own@5", "value"] == 1.5
    assert bounds(table, "mean_own@5") == by_scipy(nan_mean, values)


def test_no_counted_query_is_refused():
    """Nothing can be drawn from no queries."""
    result = random_result(12)
    rows = dataclasses.replace(result.rows, counted=np.zeros(result.n_queries, np.bool_))
    with pytest.raises(InvalidInput):
        confidence_intervals(dataclasses.replace(result, rows=rows))


def test_importing_loads_neither_scipy_nor_pandas():
    """The heavy libraries load when an interval is asked for."""
    code = "import krag_eval.intervals.intervals, krag_eval.comparison.comparison"
    assert not loaded_by(code) & {"scipy", "pandas", "matplotlib"}
