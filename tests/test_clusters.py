"""Queries in clusters: intervals, tests and errors of whole clusters, against code written here.

The clustered standard error is that of inspect_ai (``stderr(cluster=…)``), after Miller 2024,
arXiv 2411.00640, equation 4, with the factor C / (C - 1).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import no_advice
from scipy import stats

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator, compare
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.statistics.intervals import Clusters, Spread, confidence_intervals

few = pytest.mark.filterwarnings("ignore:.* are too few")
few_queries = pytest.mark.filterwarnings("ignore:The intervals rest on")


def found_of(
    covered: Any, sources: Any, n_items: Any = None, tag: str = "source", **options: Any
) -> EvaluationResult:
    """Make a result whose queries find so many of their items, one unless given."""
    sizes = [1] * len(covered) if n_items is None else n_items
    actual = [[f"item {i}" for i in range(n)] for n in sizes]
    predicted = [
        [*(f"item {i}" for i in range(hits)), *(f"junk {i}" for i in range(5 - hits))]
        for hits in covered
    ]
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(
            actual, predicted, tags={tag: list(sources)}, **options
        )
        return evaluator.evaluate(5, metrics=["recall", "ndcg", "reciprocal_rank"])


def sampled(seed: int, n_clusters: int, most: int = 6) -> dict[str, Any]:
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


def both(drawn: dict[str, Any], **options: Any) -> dict[str, EvaluationResult]:
    return {
        name: found_of(drawn[name], drawn["sources"], drawn["n_items"], **options)
        for name in ("a", "b")
    }


def recalls(drawn: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the paired differences of recall, and the clusters."""
    a, b, n = (np.array(drawn[name]) for name in ("a", "b", "n_items"))
    return b / n - a / n, np.array(drawn["sources"])


def error_of_inspect_ai(values: np.ndarray, clusters: np.ndarray) -> float:
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


def test_one_cluster_or_one_value_has_no_error():
    """There is nothing to tell it by."""
    assert math.isnan(Spread.of(np.array([1.0])).standard_error)
    together = Clusters("source", np.array([0, 0]))
    assert math.isnan(Spread.of(np.array([1.0, 0.0]), together).standard_error)
    assert math.isnan(Spread.of(np.array([1.0, math.nan])).standard_error)


@pytest.mark.parametrize("seed", range(4))
def test_standard_error_is_that_of_inspect_ai(seed):
    """On the paired differences of recall, and of one system's values."""
    drawn = sampled(seed, 30)
    results = both(drawn)
    differences, sources = recalls(drawn)
    row = compare(results, "recall@5", clusters="source", n_resamples=100).differences[0]
    assert row.spread.standard_error == pytest.approx(error_of_inspect_ai(differences, sources))
    alone = differences.var(ddof=1) / len(differences)
    assert row.spread.design_effect == pytest.approx(row.spread.standard_error**2 / alone)
    values = np.array(drawn["a"]) / np.array(drawn["n_items"])
    table = results["a"].confidence_intervals(clusters="source", n_resamples=100)
    of_one = table.loc["macro_recall@5", "standard_error"]
    assert of_one == pytest.approx(error_of_inspect_ai(values, sources))


def test_the_error_of_a_ratio_is_that_of_the_delta_method():
    """Micro recall, r = Σc/Σm, is to first order a mean of (c - r·m) / mean(m) (Cochran 1977)."""
    drawn = sampled(5, 200)
    c, m, sources = (np.array(drawn[name]) for name in ("a", "n_items", "sources"))
    pulls = (c - c.sum() / m.sum() * m) / m.mean()
    table = both(drawn)["a"].confidence_intervals(clusters="source", n_resamples=100)
    found = table.loc["micro_recall@5", "standard_error"]
    assert found == pytest.approx(error_of_inspect_ai(pulls, sources), rel=0.01)


# The bootstrap draws clusters.


def of_clusters(drawn: dict[str, Any], values: np.ndarray) -> np.ndarray:
    return np.bincount(drawn["sources"], values)


@few_queries
def test_intervals_of_differences_agree_with_scipy_on_clusters():
    """Drawn are the sums of differences and the sizes of whole clusters."""
    drawn = sampled(1, 25)
    differences, sources = recalls(drawn)

    def statistic(d: Any, n: Any, axis: int = -1) -> Any:
        return d.sum(axis=axis) / n.sum(axis=axis)

    expected = stats.bootstrap(
        (of_clusters(drawn, differences), np.bincount(sources)),
        statistic,
        paired=True,
        n_resamples=2_000,
        method="percentile",
        random_state=np.random.default_rng(7),
    ).confidence_interval
    row = compare(both(drawn), "recall@5", clusters="source", n_resamples=2_000, seed=7)
    found = row.differences[0].ci_low, row.differences[0].ci_high
    assert found == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize("method", ["BCa", "percentile"])
def test_intervals_of_one_result_agree_with_scipy_on_clusters(method):
    """Micro recall: hits and items of whole clusters; BCa leaves out one cluster at a time."""
    drawn = sampled(2, 25)

    def statistic(c: Any, m: Any, axis: int = -1) -> Any:
        return c.sum(axis=axis) / m.sum(axis=axis)

    expected = stats.bootstrap(
        [of_clusters(drawn, np.array(drawn[name])) for name in ("a", "n_items")],
        statistic,
        paired=True,
        n_resamples=2_000,
        method=method,
        random_state=np.random.default_rng(3),
    ).confidence_interval
    table = confidence_intervals(
        both(drawn)["a"], n_resamples=2_000, seed=3, method=method, clusters="source"
    )
    found = table.loc["micro_recall@5", ["low", "high"]].tolist()
    assert found == pytest.approx([expected.low, expected.high], rel=1e-9)


def wilson_of(share: float, n: float) -> Any:
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
    lists = [["a"] if one else ["x"] for one in found]
    evaluator = OfflineRetrievalEvaluator([["a"]] * 100, lists, tags={"source": sources.tolist()})
    table = evaluator.evaluate(k=1).confidence_intervals(clusters="source")
    effect = error_of_inspect_ai(found, sources) ** 2 / (found.var(ddof=1) / 100)
    assert effect > 3.5
    for name in ("hit_rate@1", "macro_recall@1", "micro_recall@1"):
        assert table.loc[name, ["low", "high"]].tolist() == wilson_of(0.5, 100 / effect)


def test_equal_queries_count_as_their_clusters():
    """All found, which tells nothing of the clusters: as if each spoke once, n²/Σn_c²."""
    sources = [*range(20), *range(20), 0, 0]
    lists = [["a"]] * len(sources)
    result = OfflineRetrievalEvaluator(lists, lists, tags={"source": sources}).evaluate(k=1)
    table = result.confidence_intervals(clusters="source")
    n = 42**2 / (4**2 + 19 * 2**2)
    expected = wilson_of(1.0, n)
    assert table.loc["macro_recall@1", ["low", "high"]].tolist() == expected


def test_a_cluster_for_each_query_changes_nothing():
    """Interval, both tests and the leaderboard are as without clusters."""
    drawn = sampled(3, 40)
    drawn["sources"] = list(range(len(drawn["sources"])))
    results, how = both(drawn), {"metric": ["recall@5", "micro_recall@5"], "n_resamples": 500}
    alone, clustered = compare(results, **how), compare(results, clusters="source", **how)
    for ours, theirs in zip(clustered.differences, alone.differences, strict=True):
        assert ours.spread.design_effect == pytest.approx(1)
        numbers = ("ci_low", "ci_high", "p_permutation", "p_t", "effect_size", "detectable")
        for name in numbers:
            expected = pytest.approx(getattr(theirs, name), rel=1e-9, nan_ok=True)
            assert getattr(ours, name) == expected
    assert clustered.leaderboard.to_numpy().tolist() == [
        pytest.approx(row) for row in alone.leaderboard.to_numpy().tolist()
    ]


def test_without_clusters_nothing_is_added():
    """No column, no word in the signature."""
    comparison = compare(both(sampled(3, 40)), "recall@5", n_resamples=100)
    assert "design_effect" not in comparison.table
    assert "clusters=" not in repr(comparison).splitlines()[-1]
    assert comparison.differences[0].spread.design_effect == 1.0


def test_the_leaderboard_has_the_clustered_intervals_of_each_result():
    """As ``confidence_intervals`` gives them."""
    results = both(sampled(4, 25))
    board = compare(results, "recall@5", clusters="source", n_resamples=500).leaderboard
    for name, result in results.items():
        table = result.confidence_intervals(n_resamples=500, clusters="source")
        expected = table.loc["macro_recall@5", ["low", "high"]].tolist()
        assert board.loc[name, ["macro_recall@5_low", "macro_recall@5_high"]].tolist() == expected


# Whole clusters are swapped.


@few
@few_queries
@pytest.mark.parametrize(("seed", "n_clusters"), [(1, 6), (2, 9), (3, 12)])
def test_permutation_agrees_with_enumeration_over_clusters(seed, n_clusters):
    """All 2^C ways to turn the signs of whole clusters, written out."""
    drawn = sampled(seed, n_clusters)
    differences, _ = recalls(drawn)
    sums = of_clusters(drawn, differences)
    observed = abs(sums.sum())
    null = [abs(sum(ways)) for ways in itertools.product(*((x, -x) for x in sums.tolist()))]
    expected = np.mean(np.array(null) >= observed - 1e-12)
    row = compare(both(drawn), "recall@5", clusters="source", n_resamples=100).differences[0]
    assert row.p_permutation == pytest.approx(expected, abs=1e-12)


@few
@few_queries
def test_permutation_of_a_ratio_swaps_the_counts_of_whole_clusters():
    """Micro recall has the same items for both systems, so the hits are swapped."""
    drawn = sampled(4, 8)
    a, b = (of_clusters(drawn, np.array(drawn[name])) for name in ("a", "b"))
    swaps = np.array(list(itertools.product((0, 1), repeat=8)))
    null = ((b - a) * (1 - 2 * swaps)).sum(axis=1)
    expected = np.mean(np.abs(null) >= abs((b - a).sum()))
    row = compare(both(drawn), "micro_recall@5", clusters="source", n_resamples=100)
    assert row.differences[0].p_permutation == pytest.approx(expected)


@few
@pytest.mark.parametrize(("n_clusters", "exact"), [(15, True), (16, False)])
def test_up_to_fifteen_clusters_are_swapped_in_every_way(n_clusters, exact):
    """In each cluster b finds all three and a none: of 2^C ways two are as extreme."""
    sources = np.repeat(np.arange(n_clusters), 3)
    nothing, everything = ([hits] * len(sources) for hits in (0, 1))
    results = {"a": found_of(nothing, sources), "b": found_of(everything, sources)}
    row = compare(results, "recall@5", clusters="source", n_resamples=1_000).differences[0]
    assert row.p_permutation == (2 / 2**15 if exact else pytest.approx(1 / 1_001, abs=1e-9))


@few
def test_the_t_test_is_of_clusters():
    """The difference over its clustered error, with C - 1 degrees of freedom."""
    drawn = sampled(6, 18)
    differences, sources = recalls(drawn)
    t = differences.mean() / error_of_inspect_ai(differences, sources)
    row = compare(both(drawn), "recall@5", clusters="source", n_resamples=100).differences[0]
    assert row.p_t == pytest.approx(2 * stats.t.sf(abs(t), 17))


def test_where_all_clusters_differ_alike_there_is_no_t_test():
    """As with queries that all differ by the same amount."""
    covered = [[1, 0] * 25, [0, 0] * 25]
    results = dict(zip("ab", (found_of(one, np.repeat(range(25), 2)) for one in covered),
                       strict=True))  # fmt: skip
    row = compare(results, "recall@5", clusters="source", n_resamples=100).differences[0]
    assert math.isnan(row.p_t)
    assert row.spread.standard_error == pytest.approx(0, abs=1e-15)


def test_queries_that_do_alike_show_less():
    """Ten copies of 24 queries say no more than the 24: intervals, p and error stay the same."""
    drawn = sampled(8, 24, most=1)
    copies = {name: np.repeat(values, 10).tolist() for name, values in drawn.items()}
    how = {"metric": "recall@5", "n_resamples": 1_000}
    with pytest.warns(KragEvalWarning, match="The intervals rest on 24"):
        (of_queries,) = compare(both(drawn), **how).differences
    (copied,) = compare(both(copies), clusters="source", **how).differences
    assert (copied.ci_low, copied.ci_high) == pytest.approx((of_queries.ci_low, of_queries.ci_high))
    assert copied.p_permutation == of_queries.p_permutation
    assert copied.p_t == pytest.approx(of_queries.p_t)
    assert copied.spread.standard_error == pytest.approx(of_queries.spread.standard_error)


# What is read, warned of and refused.


def test_few_clusters_warn():
    """Fewer than 20 are too few, and 20 are not."""
    with pytest.warns(KragEvalWarning, match="19 clusters"):
        both(sampled(1, 19, most=9))["a"].confidence_intervals(clusters="source", n_resamples=100)
    both(sampled(1, 20, most=9))["a"].confidence_intervals(clusters="source", n_resamples=100)


def test_queries_without_a_value_are_clusters_of_their_own():
    """With a warning that counts them; ``True`` is not 1."""
    values = [None, None, True, 1, 1.0, "1", *range(2, 20)]
    with pytest.warns(KragEvalWarning, match="2 queries have no 'source'"):
        clusters = Clusters.of([found_of([1] * len(values), values)], "source")
    assert clusters.number.tolist() == [0, 1, 2, 3, 3, 4, *range(5, 23)]


def test_queries_that_do_not_count_are_in_no_cluster():
    """Numbers are of counted queries alone."""
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(
            [["a"], [], ["b"]], [["a"]] * 3, tags={"source": ["x", "y", "z"]},
            no_ground_truth="skip",
        )  # fmt: skip
        result = evaluator.evaluate(5)
    clusters = Clusters.found([result], "source")
    assert clusters is not None
    assert clusters.number.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("clusters", "error"), [("sources", InvalidInput), ("", InvalidInput), (3, InvalidType)]
)
def test_what_is_no_tag_is_refused(clusters, error):
    """By the argument's name, in every place that takes it."""
    results = both(sampled(1, 30))
    calls = [
        lambda: compare(results, "recall@5", clusters=clusters),
        lambda: results["a"].confidence_intervals(clusters=clusters),
        lambda: results["a"].check(baseline=results["b"], metric="recall@5", clusters=clusters),
    ]
    for call in calls:
        with pytest.raises(error) as refused:
            call()
        assert refused.value.argument == "clusters"


def test_results_without_tags_or_with_one_value_are_refused():
    """Nothing tells the queries apart."""
    for result in (found_of([1, 0] * 20, ["x"] * 40), found_of([1, 0] * 20, [0] * 40, tag="y")):
        with pytest.raises(InvalidInput) as refused:
            result.confidence_intervals(clusters="source")
        assert refused.value.argument == "clusters"


def test_results_that_differ_in_the_tag_are_refused():
    """Naming the first query."""
    one, other = found_of([1, 0] * 20, range(40)), found_of([1, 0] * 20, [1, *range(1, 40)])
    with pytest.raises(InvalidInput) as refused:
        compare(one, other, metric="recall@5", clusters="source")
    assert refused.value.argument == "clusters"


def test_one_result_may_have_the_tag():
    """The queries are the same ones."""
    drawn = sampled(2, 25)
    tagged = both(drawn)
    bare = dataclasses.replace(
        tagged["a"], rows=dataclasses.replace(tagged["a"].rows, tags={})
    )  # fmt: skip
    ours = compare(bare, tagged["b"], metric="recall@5", clusters="source", n_resamples=100)
    theirs = compare(*tagged.values(), metric="recall@5", clusters="source", n_resamples=100)
    assert ours.differences == theirs.differences


# What is said.


def alike(tag: str = "source") -> dict[str, EvaluationResult]:
    """Five queries of each of 30 clusters do just alike, and b finds a third of them more."""
    sources = np.repeat(np.arange(30), 5)
    a, b = (sources % 3 == 0), (sources % 3 < 2)
    return {name: found_of(one.astype(int).tolist(), sources, tag=tag)
            for name, one in (("a", a), ("b", b))}  # fmt: skip


@pytest.mark.parametrize("tag", ["source", "file", "document", "doc_id", "corpus", "Source"])
def test_a_comparison_without_clusters_mentions_those_that_matter(tag):
    """All of a cluster do alike, so that five queries say what one does.

    With 30 clusters of 5, the design effect is 5 · (30/29) · (149/150): error by 30 means against
    error by 150 values.
    """
    comparison = compare(alike(tag), "recall@5", n_resamples=100)
    assert comparison.dependent == {tag: pytest.approx(5 * 30 / 29 * 149 / 150)}
    assert f"ask for clusters by {tag}." in comparison.summary().splitlines()[-1]
    assert compare(alike(tag), "recall@5", clusters=tag, n_resamples=100).dependent == {}


def test_a_gate_without_clusters_mentions_them_too():
    """It rests on the same interval: the design effect is the 5.1 of the comparison above."""
    given = {"baseline": alike()["a"], "metric": "recall@5", "n_resamples": 100}
    with pytest.warns(KragEvalWarning, match=r'design effect 5\.1.*clusters="source"'):
        alike()["b"].check(**given)
    assert alike()["b"].check(**given, clusters="source").passed


@pytest.mark.parametrize(("n_values", "is_mentioned"), [(9, False), (10, True)])
def test_a_tag_of_few_values_is_nothing_to_cluster_by(n_values, is_mentioned):
    """Fewer than 10 are groups; queries without a value do not make them more."""
    sources = np.repeat(np.arange(n_values), 10)
    values = [*sources.tolist(), None, None]
    finds = [np.append(sources % 3 < most, [0, 0]).astype(int).tolist() for most in (1, 2)]
    comparison = compare(*(found_of(one, values) for one in finds), metric="recall@5",
                         n_resamples=100)  # fmt: skip
    assert list(comparison.dependent) == ["source"] * is_mentioned


def test_other_tags_and_weak_clusters_are_not_mentioned():
    """A topic is no source, and queries of unlike difficulty are no clusters."""
    assert compare(alike("topic"), "recall@5", n_resamples=100).dependent == {}
    rng = np.random.default_rng(0)
    sources = np.repeat(np.arange(30), 5)
    results = [found_of(rng.integers(0, 2, 150).tolist(), sources) for _ in range(2)]
    comparison = compare(*results, metric="recall@5", n_resamples=100)
    assert comparison.dependent == {}
    assert len(comparison.summary().splitlines()) == 1


def test_a_clustered_comparison_says_so():
    """In the summary, the table and the signature."""
    comparison = compare(alike(), "recall@5", clusters="source", n_resamples=100)
    assert comparison.summary().splitlines()[-1].startswith("30 clusters of queries by source ")
    assert "design effect 5.14" in comparison.summary()
    assert repr(comparison).endswith("| clusters=source")
    (effect,) = comparison.table["design_effect"]
    assert effect == comparison.differences[0].spread.design_effect


def test_what_is_not_shown_comes_with_what_could_have_been():
    """(z.975 + z.8) · sd / √n; with two comparisons, Holm's first step asks for 0.05 / 2."""
    drawn = sampled(9, 60, most=1)
    differences, _ = recalls(drawn)
    error = differences.std(ddof=1) / math.sqrt(60)
    results = both(drawn)
    (row,) = compare(results, "recall@5", n_resamples=100).differences
    assert row.detectable == pytest.approx((1.959963985 + 0.841621234) * error)
    two = compare(results, ["recall@5", "mrr@5"], n_resamples=100).differences[0]
    z = stats.norm.isf(0.05 / 4) + stats.norm.isf(0.2)
    assert two.detectable == pytest.approx(z * error)


def test_the_sentence_says_what_could_have_been_shown():
    """Only where nothing is shown, and not where nothing differs."""
    half, more = [1, 0] * 20, [1, 0] * 19 + [1, 1]
    same, other = found_of(half, range(40)), found_of(more, range(40))
    (row,) = compare(same, other, metric="recall@5", n_resamples=100).differences
    # One of 40 differs by 1: sd = √(1/40), error = 1/40.
    assert row.detectable == pytest.approx(2.801585218 / 40)
    told = compare(same, other, metric="recall@5", n_resamples=100).summary()
    assert told.endswith(" Differences under 0.070 may well not show with 40 queries.")
    assert compare(same, same, metric="recall@5", n_resamples=100).summary().endswith("Holm).")


# Gates and slices.


def test_a_drop_that_is_chance_by_clusters_passes():
    """Four of 40 documents lost all of their 10 queries: shown by 400 queries, not by documents."""
    sources = np.repeat(np.arange(40), 10)
    before = found_of([1] * 400, sources)
    after = found_of([0 if source < 3 else 1 for source in sources], sources)
    drop: dict[str, Any] = {"baseline": before, "metric": "recall@5", "max_drop": 0.01}
    with pytest.warns(KragEvalWarning, match="design effect"):
        assert not after.check(**drop)
    assert after.check(clusters="source", **drop)


def test_clusters_are_about_a_baseline():
    """A floor has no interval."""
    with pytest.raises(InvalidInput) as refused:
        alike()["a"].check({"recall@5": 0.1}, clusters="source")
    assert refused.value.argument == "clusters"


def test_slices_of_a_clustered_comparison_are_clustered():
    """Numbers of a slice are those of its queries alone; few clusters leave counts alone."""
    drawn = sampled(3, 60)
    large = (np.array(drawn["sources"]) < 52).tolist()
    tags = {"source": drawn["sources"], "large": large}

    def tagged(name: str, chosen: Any = slice(None)) -> EvaluationResult:
        whole = found_of(drawn[name], drawn["sources"], drawn["n_items"])
        rows = dataclasses.replace(whole.rows, tags=tags)
        return dataclasses.replace(whole, rows=rows)

    comparison = compare(
        tagged("a"), tagged("b"), metric="recall@5", clusters="source", n_resamples=300
    )
    of_large, of_small = comparison.by("large").rows
    kept = [i for i, one in enumerate(large) if one]
    part = {name: [values[i] for i in kept] for name, values in drawn.items()}
    (expected,) = compare(both(part), "recall@5", clusters="source", n_resamples=300).differences
    assert (of_large.ci_low, of_large.ci_high) == (expected.ci_low, expected.ci_high)
    assert of_large.p_permutation == expected.p_permutation
    assert of_small.n >= 10
    assert math.isnan(of_small.p_permutation)


def test_saved_results_are_clustered_alike(tmp_path: Path):
    """A tag is saved with the result."""
    results = both(sampled(2, 25))
    read = {}
    for name, result in results.items():
        result.to_json(tmp_path / f"{name}.json")
        read[name] = EvaluationResult.from_json(tmp_path / f"{name}.json")
        assert json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
    ours, theirs = (compare(one, "recall@5", clusters="source", n_resamples=100)
                    for one in (read, results))  # fmt: skip
    assert ours.differences == theirs.differences
