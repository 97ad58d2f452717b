"""Check by simulation that intervals cover the true value as often as they say.

    python -m benchmarks.interval_coverage [--queries 200] [--runs 2000] [--resamples 2000]
        [--level 0.95] [--method BCa] [--clusters 20 30 60]

Two made-up retrievers answer 200,000 queries, which stand for all there are, so the true averages
and differences are known. Each run draws some of them and asks for intervals. Printed are the
share of runs in which the interval holds the true value, and in which that lies below or above it:
for averages, then for paired differences. Last, how often the tests see a difference at 5 % where
there is none, because the two outcomes of each query were dealt out at random.

With ``--clusters``, queries come in clusters of very unequal sizes, 1 to 60, that do alike, and one
retriever is better in some clusters and the other in others, as different parsers or chunkings
would be. Each run draws so many clusters, and outcomes are dealt out by cluster. Everything is
printed twice: for intervals and tests by clusters, and as if the queries were independent; with the
mean of the design effects that the comparisons report.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.comparison.comparison import compare
from krag_eval.core.results.rows import RowsInMemory
from krag_eval.intervals.intervals import confidence_intervals

POPULATION = 200_000
DEPTH = 10
CUTOFF = 5
METRICS = [f"{key}@{CUTOFF}" for key in ("macro_recall", "micro_recall", "mrr", "ndcg")]
COMPUTED = ["recall", "reciprocal_rank", "ndcg"]
LARGEST = 60


def make_population(rng: np.random.Generator) -> list[EvaluationResult]:
    """Make the results of two retrievers that agree on which queries are hard."""
    n_items = rng.integers(1, 6, POPULATION)
    # Many queries are easy or hopeless, and with more to find, less of it is found.
    chance = rng.beta(0.6, 0.6, POPULATION) * (1.1 - 0.1 * n_items)
    return [retrieve(rng, n_items, chance * skill) for skill in (0.8, 0.9)]


def make_clusters(rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the cluster of each query, numbered one after the other."""
    sizes = np.minimum(rng.geometric(0.12, POPULATION), LARGEST)
    return np.repeat(np.arange(POPULATION), sizes)[:POPULATION]


def make_clustered(rng: np.random.Generator, cluster: NDArray[np.int64]) -> list[EvaluationResult]:
    """Make results of queries that do alike within clusters, where the retrievers differ alike."""
    n_items = rng.integers(1, 6, POPULATION)
    n_clusters = int(cluster[-1]) + 1
    shared = rng.beta(0.6, 0.6, n_clusters)[cluster]
    own = rng.beta(0.6, 0.6, POPULATION)
    chance = (0.6 * shared + 0.4 * own) * (1.1 - 0.1 * n_items)
    # Each reads most clusters well and some badly, so that the difference depends on the cluster.
    skills = (rng.beta(0.6, 0.2, n_clusters), rng.beta(0.8, 0.2, n_clusters))
    return [retrieve(rng, n_items, chance * skill[cluster]) for skill in skills]


def retrieve(
    rng: np.random.Generator, n_items: NDArray[np.int64], chance: NDArray[np.float64]
) -> EvaluationResult:
    """Retrieve each item by chance, at a random rank, among junk."""
    actual = [[str(item) for item in range(n)] for n in n_items.tolist()]
    ranks = rng.permuted(np.tile(np.arange(DEPTH), (POPULATION, 1)), axis=1)
    found = rng.random((POPULATION, DEPTH)) < chance[:, np.newaxis]
    predicted = []
    for truth, places, hits in zip(actual, ranks.tolist(), found.tolist(), strict=True):
        ranked = ["junk"] * DEPTH
        for item, place, hit in zip(truth, places, hits, strict=False):
            if hit:
                ranked[place] = item
        predicted.append(ranked)
    return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=CUTOFF, metrics=COMPUTED)


def take(
    queries: NDArray[np.int64],
    result: EvaluationResult,
    other: EvaluationResult | None = None,
    from_other: NDArray[np.bool_] | bool = False,
    sources: NDArray[np.int64] | None = None,
) -> EvaluationResult:
    """Return the result of some of the queries, in part from another result, tagged or not."""
    other = other or result
    tables = {
        k: {
            name: np.where(from_other, other.tables[k][name][queries], column[queries])
            for name, column in table.items()
        }
        for k, table in result.tables.items()
    }
    labels, counted = list(range(len(queries))), np.ones(len(queries), np.bool_)
    tags = {} if sources is None else {"source": sources.tolist()}
    rows = RowsInMemory(labels=labels, tables=tables, counted=counted, tags=tags)
    return dataclasses.replace(result, rows=rows, totals=None, evidence=None)


def where_truth_lies(low: pd.Series, high: pd.Series, truth: pd.Series) -> pd.DataFrame:
    below, above = truth < low, truth > high
    return pd.DataFrame({"covered": ~below & ~above, "below": below, "above": above}).astype(float)


def draw_clusters(
    rng: np.random.Generator, cluster: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw whole clusters; return their queries, and the number of the draw each came with."""
    drawn = rng.integers(0, cluster[-1] + 1, n)
    starts = np.searchsorted(cluster, drawn)
    sizes = np.searchsorted(cluster, drawn, side="right") - starts
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    queries = np.repeat(starts, sizes) + np.arange(sizes.sum()) - first
    return queries, np.repeat(np.arange(n), sizes)


def by_clusters(options: argparse.Namespace) -> None:
    """Simulate clusters, and print what is found by them and as if there were none."""
    warnings.simplefilter("ignore", KragEvalWarning)
    start = time.perf_counter()
    rng = np.random.default_rng(2024)
    cluster = make_clusters(rng)
    population = make_clustered(rng, cluster)
    columns = {}
    for n in options.clusters:
        for name, tag in (("by clusters", "source"), ("independent", None)):
            columns[n, name] = shares(population, cluster, n, tag, options)
    error = (options.level * (1 - options.level) / options.runs) ** 0.5
    print(f"{options.runs} runs, {options.resamples} resamples, level {options.level:g} (standard "
          f"error {error:.4f}), {time.perf_counter() - start:.0f} s\n")  # fmt: skip
    print(pd.DataFrame(columns).rename_axis(columns=["clusters", None]).round(3).to_string())


def shares(
    population: list[EvaluationResult],
    cluster: NDArray[np.int64],
    n: int,
    tag: str | None,
    options: argparse.Namespace,
) -> pd.Series:
    """Return how often intervals of n clusters hold the truth, and tests see what is not there."""
    a, b = population
    truth = pd.Series(a.to_dict())[METRICS]
    true_difference = pd.Series(b.to_dict())[METRICS] - truth
    rng = np.random.default_rng(n)  # the same clusters for both
    found = []
    for run in range(options.runs):
        queries, sources = draw_clusters(rng, cluster, n)
        dealt = (rng.random(n) < 0.5)[sources]
        mine, theirs = (take(queries, one, sources=sources) for one in (a, b))
        alike = [take(queries, *pair, dealt, sources) for pair in ((a, b), (b, a))]
        how = {"level": options.level, "n_resamples": options.resamples, "seed": run}
        how |= {"clusters": tag}
        table = confidence_intervals(mine, method=options.method, **how).loc[METRICS]
        paired = compare(mine, theirs, metric=METRICS, **how)
        rows = paired.table.set_index("metric").loc[METRICS]
        nothing = compare(*alike, metric=METRICS, **how).table.set_index("metric").loc[METRICS]
        averages = where_truth_lies(table["low"], table["high"], truth)
        differences = where_truth_lies(rows["ci_low"], rows["ci_high"], true_difference)
        effects = [one.spread.design_effect for one in paired.differences]
        parts = {
            "average": averages["covered"],
            "difference": differences["covered"],
            "permutation test": (nothing["p_permutation"] <= 0.05).astype(float),
            "t-test": (nothing["p_t"] <= 0.05).where(nothing["p_t"].notna()).astype(float),
            "design effect": pd.Series(effects, METRICS),
        }
        found.append(pd.concat(parts))
    return pd.concat(found, axis=1).mean(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--resamples", type=int, default=2_000)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--method", choices=("BCa", "percentile"), default="BCa")
    parser.add_argument("--clusters", type=int, nargs="+")
    options = parser.parse_args()
    if options.clusters:
        by_clusters(options)
        return
    warnings.simplefilter("ignore", KragEvalWarning)
    start = time.perf_counter()
    rng = np.random.default_rng(2024)
    a, b = make_population(rng)
    truth = pd.Series(a.to_dict())
    true_difference = pd.Series(b.to_dict())[METRICS] - truth[METRICS]
    averages, differences, alarms = [], [], []
    for run in range(options.runs):
        queries = rng.integers(0, POPULATION, options.queries)
        mine, theirs = take(queries, a), take(queries, b)
        how = {"level": options.level, "n_resamples": options.resamples, "seed": run}
        intervals = confidence_intervals(mine, method=options.method, **how)
        averages.append(where_truth_lies(intervals["low"], intervals["high"], truth))
        table = compare({"a": mine, "b": theirs}, METRICS, **how).table.set_index("metric")
        differences.append(where_truth_lies(table["ci_low"], table["ci_high"], true_difference))
        dealt = rng.random(options.queries) < 0.5
        alike = {"a": take(queries, a, b, dealt), "b": take(queries, b, a, dealt)}
        nothing = compare(alike, METRICS, **how).table.set_index("metric")
        p_values = nothing[["p_permutation", "p_t"]]
        alarms.append((p_values <= 0.05).astype(float).where(p_values.notna()))
    error = (options.level * (1 - options.level) / options.runs) ** 0.5
    print(
        f"{options.queries} queries, {options.runs} runs, {options.resamples} resamples, level "
        f"{options.level:g} (standard error {error:.4f}), {time.perf_counter() - start:.0f} s\n"
    )
    print(f"Averages, {options.method}\n{sum(averages) / options.runs}\n")
    print(f"Paired differences\n{sum(differences) / options.runs}\n")
    print(f"False alarms at 5 %\n{sum(alarms) / options.runs}\n")


if __name__ == "__main__":
    main()
