"""Queries in clusters: intervals, tests and errors of whole clusters, against code written here.

The clustered standard error is that of inspect_ai (``stderr(cluster=…)``), after Miller 2024,
arXiv 2411.00640, equation 4, with the factor C / (C - 1).
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from refusals import blamed
from results_made import read_back, with_rows
from scipy import stats
from systems import few_clusters, few_queries, only, result_of

from krag_eval import KragEvalWarning, compare
from krag_eval.intervals.intervals import Clusters, Spread

FEW = {"n_resamples": 100}
BY_SOURCE = {"clusters": "source", **FEW}


def found_of(covered, sources, n_items=1, tag="source", **options):
    """Make a result whose queries find so many of their items."""
    ranks = [[*range(1, hits + 1)] for hits in covered]
    metrics = ["recall", "ndcg", "reciprocal_rank"]
    return result_of(ranks, n_items, 5, {"metrics": metrics}, tags={tag: [*sources]}, **options)


def sampled(seed, n_clusters, most=6):
    """Draw queries in unequal clusters: what two systems find of several items, and the sizes."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(n_clusters), rng.integers(1, most + 1, n_clusters))
    chance = rng.beta(1, 1, n_clusters)[sources]
    n_items = rng.integers(1, 4, len(sources))
    better = np.clip(chance + rng.normal(0.1, 0.2, n_clusters)[sources], 0, 1)
    return {
        "sources": sources.tolist(),
        "n_items": n_items.tolist(),
        "a": rng.binomial(n_items, chance).tolist(),
        "b": rng.binomial(n_items, better).tolist(),
    }


def both(drawn):
    return {name: found_of(drawn[name], drawn["sources"], drawn["n_items"]) for name in "ab"}


def by_source(drawn, metric="recall@5", **options):
    """Compare both systems by clusters."""
    return only(compare(both(drawn), metric, **{**BY_SOURCE, **options}))


def recalls(drawn):
    """Return the paired differences of recall, and the clusters."""
    a, b, n = (np.array(drawn[name]) for name in ("a", "b", "n_items"))
    return b / n - a / n, np.array(drawn["sources"])


def error_of_inspect_ai(values, clusters):
    """Return the clustered standard error by all pairs of values in a cluster."""
    apart = values - values.mean()
    of_clusters = [apart[clusters == one] for one in np.unique(clusters)]
    total = sum(np.outer(one, one).sum() for one in of_clusters)
    n_clusters = len(of_clusters)
    return math.sqrt(total * n_clusters / (n_clusters - 1)) / len(values)


# Standard error and design effect.


def test_standard_error_by_hand():
    """Values 1 1 0 in two clusters, {1, 1} and {0}.

    The mean is 2/3; cluster sums of what is apart from it are 2/3 and -2/3, so that the error is
    √(2/1 · 8/9) / 3 = 4/9. Independent, it is √((1/9 + 1/9 + 4/9) / 2 / 3) = 1/3: the design effect
    is (4/9)² / (1/3)² = 16/9.
    """
    spread = Spread.of(np.array([1.0, 1.0, 0.0]), Clusters("source", np.array([0, 0, 1])))
    assert spread.standard_error == pytest.approx(4 / 9)
    assert spread.design_effect == pytest.approx(16 / 9)
    assert spread.sd == pytest.approx(math.sqrt(1 / 3))
    assert (spread.n, spread.n_clusters) == (3, 2)


@pytest.mark.parametrize(
    ("values", "clusters"),
    [([1.0], None), ([1.0, 0.0], Clusters("source", np.array([0, 0]))), ([1.0, math.nan], None)],
)
def test_one_cluster_or_one_value_has_no_error(values, clusters):
    """There is nothing to tell it by."""
    assert math.isnan(Spread.of(np.array(values), clusters).standard_error)


@pytest.mark.parametrize("seed", range(4))
def test_standard_error_is_that_of_inspect_ai(seed):
    """On the paired differences of recall, and of one system's values."""
    drawn = sampled(seed, 30)
    differences, sources = recalls(drawn)
    spread = by_source(drawn).spread
    assert spread.standard_error == pytest.approx(error_of_inspect_ai(differences, sources))
    alone = differences.var(ddof=1) / len(differences)
    assert spread.design_effect == pytest.approx(spread.standard_error**2 / alone)
    values = np.array(drawn["a"]) / np.array(drawn["n_items"])
    of_one = both(drawn)["a"].confidence_intervals(**BY_SOURCE)["standard_error"]
    expected = error_of_inspect_ai(values, sources)
    assert of_one["macro_recall@5"] == pytest.approx(expected)


def test_the_error_of_a_ratio_is_that_of_the_delta_method():
    """Micro recall, r = Σc/Σm, is to first order a mean of (c - r·m) / mean(m) (Cochran 1977)."""
    drawn = sampled(5, 200)
    c, m, sources = (np.array(drawn[name]) for name in ("a", "n_items", "sources"))
    pulls = (c - c.sum() / m.sum() * m) / m.mean()
    found = both(drawn)["a"].confidence_intervals(**BY_SOURCE)["standard_error"]
    expected = error_of_inspect_ai(pulls, sources)
    assert found["micro_recall@5"] == pytest.approx(expected, rel=0.01)


# The bootstrap draws clusters.


def bootstrapped(columns, seed, method="percentile"):
    """Return scipy's interval of a ratio of sums, of whole clusters by value."""
    order = np.lexsort(columns[::-1])
    interval = stats.bootstrap(
        [one[order] for one in columns],
        lambda top, bottom, axis=-1: top.sum(axis=axis) / bottom.sum(axis=axis),
        paired=True,
        n_resamples=500,
        method=method,
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return pytest.approx([interval.low, interval.high], rel=1e-9)


@few_queries
def test_intervals_of_differences_agree_with_scipy_on_clusters():
    """Drawn are the sums of differences and the sizes of whole clusters."""
    drawn = sampled(1, 25)
    differences, sources = recalls(drawn)
    row = by_source(drawn, n_resamples=500, seed=7)
    columns = np.bincount(sources, differences), np.bincount(sources)
    if row.difference > 0:  # drawn is the worse less the better
        columns, row = (
            (-columns[0], columns[1]),
            dataclasses.replace(row, ci_low=-row.ci_high, ci_high=-row.ci_low),
        )
    assert [row.ci_low, row.ci_high] == bootstrapped(columns, 7)


@pytest.mark.parametrize("method", ["BCa", "percentile"])
def test_intervals_of_one_result_agree_with_scipy_on_clusters(method):
    """Micro recall: hits and items of whole clusters; BCa leaves out one cluster at a time.

    The leaderboard has the same.
    """
    drawn = sampled(2, 25)
    results, how = both(drawn), {**BY_SOURCE, "n_resamples": 500, "seed": 3}
    table = results["a"].confidence_intervals(method=method, **how)
    found = table.loc["micro_recall@5", ["low", "high"]].tolist()
    columns = [np.bincount(drawn["sources"], drawn[name]) for name in ("a", "n_items")]
    assert found == bootstrapped(columns, 3, method)
    if method == "BCa":
        board = compare(results, "micro_recall@5", **how).leaderboard
        assert board.loc["a", ["micro_recall@5_low", "micro_recall@5_high"]].tolist() == found


def wilson_of(share, n):
    """Return the p between which |share - p| = z·√(p(1 - p)/n), solved as a quadratic."""
    z2 = stats.norm.ppf(0.975) ** 2
    roots = np.roots([1 + z2 / n, -(2 * share + z2 / n), share**2])
    return pytest.approx(sorted(roots.real.tolist()), abs=1e-9)


def test_a_share_in_clusters_is_one_of_fewer_queries():
    """Of n over the design effect: four clusters in which all or none are found, and one of both.

    The design effect is worked out as inspect_ai's error of the mean, squared, over s²/n.
    """
    sources = np.repeat(np.arange(25), 4)
    found = np.where(sources < 24, sources % 2 == 0, [True, True, False, False] * 25).astype(int)
    result = result_of(found, k=1, tags={"source": sources.tolist()})
    table = result.confidence_intervals(**BY_SOURCE)
    effect = error_of_inspect_ai(found, sources) ** 2 / (found.var(ddof=1) / 100)
    assert effect > 3.5
    for name in ("hit_rate@1", "macro_recall@1", "micro_recall@1"):
        assert table.loc[name, ["low", "high"]].tolist() == wilson_of(0.5, 100 / effect)


def test_equal_queries_count_as_their_clusters():
    """All found, which tells nothing of the clusters: as if each spoke once, n²/Σn_c²."""
    sources = [*range(20), *range(20), 0, 0]
    table = found_of([1] * 42, sources).confidence_intervals(**BY_SOURCE)
    expected = wilson_of(1.0, 42**2 / (4**2 + 19 * 2**2))
    assert table.loc["macro_recall@5", ["low", "high"]].tolist() == expected


def test_a_cluster_for_each_query_changes_nothing():
    """Interval, both tests and the leaderboard are as without clusters."""
    drawn = sampled(3, 40)
    drawn["sources"] = list(range(len(drawn["sources"])))
    results, metrics = both(drawn), ["recall@5", "micro_recall@5"]
    alone, clustered = compare(results, metrics, **FEW), compare(results, metrics, **BY_SOURCE)
    for ours, theirs in zip(clustered.differences, alone.differences, strict=True):
        assert ours.spread.design_effect == pytest.approx(1)
        for name in ("ci_low", "ci_high", "p_permutation", "p_t", "effect_size", "detectable"):
            expected = pytest.approx(getattr(theirs, name), rel=1e-9, nan_ok=True)
            assert getattr(ours, name) == expected
    assert clustered.leaderboard.to_numpy().tolist() == [
        pytest.approx(row) for row in alone.leaderboard.to_numpy().tolist()
    ]
    # Without, there is no column and no word of them.
    assert "design_effect" not in alone.table
    assert "clusters=" not in repr(alone)
    assert alone.differences[0].spread.design_effect == 1.0


# Whole clusters are swapped.


@few_clusters
@few_queries
@pytest.mark.parametrize(("seed", "n_clusters"), [(1, 6), (2, 9), (3, 12)])
@pytest.mark.parametrize("metric", ["recall@5", "micro_recall@5"])
def test_permutation_agrees_with_enumeration_over_clusters(seed, n_clusters, metric):
    """All 2^C ways to turn the signs of whole clusters, written out.

    Micro recall has the same items for both systems, so there the hits are swapped.
    """
    drawn = sampled(seed, n_clusters)
    differences, sources = recalls(drawn)
    if metric == "micro_recall@5":
        differences = np.array(drawn["b"]) - np.array(drawn["a"])
    sums = np.bincount(sources, differences)
    null = [abs(sum(ways)) for ways in itertools.product(*((x, -x) for x in sums.tolist()))]
    expected = np.mean(np.array(null) >= abs(sums.sum()) - 1e-12)
    assert by_source(drawn, metric).p_permutation == pytest.approx(expected, abs=1e-12)


@few_clusters
@pytest.mark.parametrize("n_clusters", [15, 16, 60])
def test_clusters_that_differ_alike_are_swapped_in_every_way(n_clusters):
    """In each cluster b finds all three and a none: of 2^C ways two are as extreme."""
    sources = np.repeat(np.arange(n_clusters), 3)
    nothing, everything = (found_of([hits] * len(sources), sources) for hits in (0, 1))
    how = {**BY_SOURCE, "n_resamples": 1_000}
    row = only(compare(nothing, everything, metric="recall@5", **how))
    assert row.p_permutation == 2 / 2**n_clusters


@few_clusters
def test_the_t_test_is_of_clusters():
    """The difference over its clustered error, with C - 1 degrees of freedom."""
    drawn = sampled(6, 18)
    differences, sources = recalls(drawn)
    t = differences.mean() / error_of_inspect_ai(differences, sources)
    assert by_source(drawn).p_t == pytest.approx(2 * stats.t.sf(abs(t), 17))


def test_where_all_clusters_differ_alike_there_is_no_t_test():
    """As with queries that all differ by the same amount."""
    results = [found_of(one * 25, np.repeat(range(25), 2)) for one in ([1, 0], [0, 0])]
    row = only(compare(results, "recall@5", **BY_SOURCE))
    assert math.isnan(row.p_t)
    assert row.spread.standard_error == pytest.approx(0, abs=1e-15)


def test_queries_that_do_alike_show_less():
    """Ten copies of 24 queries say no more than the 24: intervals, p and error stay the same."""
    drawn = sampled(8, 24, most=1)
    copies = {name: np.repeat(values, 10).tolist() for name, values in drawn.items()}
    with pytest.warns(KragEvalWarning, match="The intervals rest on 24"):
        of_queries = only(compare(both(drawn), "recall@5", n_resamples=1_000))
    copied = by_source(copies, n_resamples=1_000)
    assert (copied.ci_low, copied.ci_high) == pytest.approx((of_queries.ci_low, of_queries.ci_high))
    assert copied.p_permutation == of_queries.p_permutation
    assert copied.p_t == pytest.approx(of_queries.p_t)
    assert copied.spread.standard_error == pytest.approx(of_queries.spread.standard_error)


# What is read, warned of and refused.


def test_few_clusters_warn():
    """Fewer than 20 are too few, and 20 are not."""
    with pytest.warns(KragEvalWarning, match="19 clusters"):
        both(sampled(1, 19, most=9))["a"].confidence_intervals(**BY_SOURCE)
    both(sampled(1, 20, most=9))["a"].confidence_intervals(**BY_SOURCE)


def test_queries_without_a_value_are_clusters_of_their_own():
    """With a warning that counts them; ``True`` is not 1."""
    values = [None, None, True, 1, 1.0, "1", *range(2, 20)]
    with pytest.warns(KragEvalWarning, match="2 queries have no 'source'"):
        clusters = Clusters.of([found_of([1] * len(values), values)], "source")
    assert clusters.number.tolist() == [0, 1, 2, 3, 3, 4, *range(5, 23)]


def test_queries_that_do_not_count_are_in_no_cluster():
    """Numbers are of counted queries alone."""
    result = found_of([1, 0, 0], "xyz", [1, 0, 1], no_ground_truth="skip")
    assert Clusters.found([result], "source").number.tolist() == [0, 1]


@pytest.mark.parametrize(
    "results",
    [
        [found_of(one, ["x"] * 40) for one in ([1, 0] * 20, [0, 1] * 20)],  # one value of it
        [found_of(one, [0] * 40, tag="y") for one in ([1, 0] * 20, [0, 1] * 20)],  # another tag
        [found_of([1, 0] * 20, one) for one in (range(40), [1, *range(1, 40)])],  # it differs
    ],
)
def test_results_that_no_tag_divides_alike_are_refused(results):
    """By the argument's name, in every place that takes it."""
    old, new = results
    calls = [
        lambda: compare(old, new, metric="recall@5", clusters="source"),
        lambda: new.check(baseline=old, metric="recall@5", clusters="source"),
    ]
    if old.tags == new.tags:
        calls.append(lambda: old.confidence_intervals(clusters="source"))
    for call in calls:
        with blamed("clusters"):
            call()


def test_one_result_may_have_the_tag():
    """The queries are the same ones."""
    a, b = both(sampled(2, 25)).values()
    bare = with_rows(a, tags={})
    ours, theirs = (compare(one, b, metric="recall@5", **BY_SOURCE) for one in (bare, a))
    assert ours.differences == theirs.differences


# What is said.


def alike(tag="source"):
    """Five queries of each of 30 clusters do just alike, and b finds a third of them more."""
    sources = np.repeat(np.arange(30), 5)
    return {
        name: found_of((sources % 3 < most).astype(int), sources.tolist(), tag=tag)
        for name, most in (("a", 1), ("b", 2))
    }


@pytest.mark.parametrize("tag", ["source", "file", "document", "doc_id", "corpus", "Source"])
def test_a_comparison_without_clusters_mentions_those_that_matter(tag):
    """All of a cluster do alike, so that five queries say what one does.

    With 30 clusters of 5, the design effect is 5 · (30/29) · (149/150): error by 30 means against
    error by 150 values.
    """
    comparison = compare(alike(tag), "recall@5", **FEW)
    assert comparison.dependent == {tag: pytest.approx(5 * 30 / 29 * 149 / 150)}
    assert f"ask for clusters by {tag}." in comparison.summary().splitlines()[-1]
    assert compare(alike(tag), "recall@5", clusters=tag, **FEW).dependent == {}


def test_a_gate_without_clusters_mentions_them_too():
    """It rests on the same interval: the design effect is the 5.1 of the comparison above."""
    given = {"baseline": alike()["a"], "metric": "recall@5", **FEW}
    with pytest.warns(KragEvalWarning, match=r'design effect 5\.1.*clusters="source"'):
        alike()["b"].check(**given)
    assert alike()["b"].check(**given, clusters="source").passed


@pytest.mark.parametrize(("n_values", "is_mentioned"), [(9, False), (10, True)])
def test_a_tag_of_few_values_is_nothing_to_cluster_by(n_values, is_mentioned):
    """Fewer than 10 are groups; queries without a value do not make them more."""
    sources = np.repeat(np.arange(n_values), 10)
    finds = [np.append(sources % 3 < most, [0, 0]).astype(int) for most in (1, 2)]
    results = [found_of(one, [*sources.tolist(), None, None]) for one in finds]
    dependent = compare(results, "recall@5", **FEW).dependent
    assert list(dependent) == ["source"] * is_mentioned


def test_other_tags_and_weak_clusters_are_not_mentioned():
    """A topic is no source, and queries of unlike difficulty are no clusters."""
    assert compare(alike("topic"), "recall@5", **FEW).dependent == {}
    rng = np.random.default_rng(0)
    sources = np.repeat(np.arange(30), 5).tolist()
    comparison = compare(
        *(found_of(rng.integers(0, 2, 150), sources) for _ in range(2)), metric="recall@5", **FEW
    )
    assert comparison.dependent == {}
    assert len(comparison.summary().splitlines()) == 1


def test_a_clustered_comparison_says_so():
    """In the summary, the table and the signature."""
    comparison = compare(alike(), "recall@5", **BY_SOURCE)
    assert comparison.summary().splitlines()[-1].startswith("30 clusters of queries by source ")
    assert "design effect 5.14" in comparison.summary()
    assert repr(comparison).endswith("| clusters=source")
    assert comparison.table["design_effect"].tolist() == [only(comparison).spread.design_effect]


def test_what_is_not_shown_comes_with_what_could_have_been():
    """What four in five sets would show at 0.05; with two comparisons, at Holm's first 0.05 / 2.

    Swaps measure by √(sd² + d²) and not by sd. Where nothing differs, nothing is said.
    """
    drawn = sampled(9, 60, most=1)
    sd = recalls(drawn)[0].std(ddof=1)
    for asked, level in (("recall@5", 0.05), (["recall@5", "mrr@5"], 0.025)):
        d = compare(both(drawn), asked, **FEW).differences[0].detectable
        left = stats.norm.isf(level / 2) * math.hypot(sd, d) + stats.norm.isf(0.2) * sd
        assert left == pytest.approx(math.sqrt(60) * d)
    same, other = found_of([1, 0] * 20, range(40)), found_of([1, 0] * 19 + [1, 1], range(40))
    told = compare(same, other, metric="recall@5", **FEW).summary()
    detectable = only(compare(same, other, metric="recall@5", **FEW)).detectable
    assert told.endswith(f" Differences under {detectable:.3f} may well not show with 40 queries.")
    assert compare(same, same, metric="recall@5", **FEW).summary().endswith("Holm).")


# Gates, slices and files.


def test_a_drop_that_is_chance_by_clusters_passes():
    """Three of 40 documents lost all of their 10 queries: 400 queries show it, documents do not."""
    sources = np.repeat(np.arange(40), 10)
    before, after = found_of([1] * 400, sources.tolist()), found_of(sources >= 3, sources.tolist())
    drop = {"baseline": before, "metric": "recall@5", "max_drop": 0.01, "n_resamples": 1_000}
    with pytest.warns(KragEvalWarning, match="design effect"):
        assert not after.check(**drop)
    assert after.check(clusters="source", **drop)


def test_slices_of_a_clustered_comparison_are_clustered():
    """Numbers of a slice are those of its queries alone; few clusters leave counts alone."""
    drawn = sampled(3, 60)
    kept = [i for i, source in enumerate(drawn["sources"]) if source < 52]
    tags = {"source": drawn["sources"], "large": [one < 52 for one in drawn["sources"]]}
    results = [with_rows(one, tags=tags) for one in both(drawn).values()]
    of_large, of_small = compare(results, "recall@5", **BY_SOURCE).by("large").rows
    expected = by_source({name: [values[i] for i in kept] for name, values in drawn.items()})
    assert (of_large.ci_low, of_large.ci_high) == (expected.ci_low, expected.ci_high)
    assert of_large.p_permutation == expected.p_permutation
    assert of_small.n >= 10
    assert math.isnan(of_small.p_permutation)


def test_saved_results_are_clustered_alike(tmp_path):
    """A tag is saved with the result."""
    drawn = sampled(2, 25)
    read = {name: read_back(one, tmp_path) for name, one in both(drawn).items()}
    found = only(compare(read, "recall@5", **BY_SOURCE))
    assert found == by_source(drawn)
