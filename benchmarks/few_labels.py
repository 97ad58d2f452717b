"""Check by simulation that few labels of people correct many of a judge as surely as they say.

    python -m benchmarks.few_labels [--runs 1500] [--level 0.95] [--only zeros-and-ones]

Two made-up retrievers answer 100,000 questions, which stand for all there are. People's ground
truth is known for all of them, and so is a judge's, which overlooks some documents and lets others
pass; so the true averages, by people, are known. Each run draws questions, of which people label a
few. Printed are the shares of runs in which an interval holds the true value: the judge's alone,
that of people's labels alone and that of ``debias``; and by how much the last is narrower than the
second. Then the same of a difference of the two retrievers, of questions in unequal clusters, and
of a retriever that finds little: there most questions have the value 0, and few of them tell
little.

Last, plain zeros and ones, as of a hit rate, for true values from 0.05 to 0.95 and judges from one
that never errs to one that says yes to all. For each number of labels and each judge the lowest
share of all true values is printed: of ``debias``, whose interval is a score interval there, and of
the interval by Student's t or the normal distribution (PPI++), which it has for other values.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
import warnings
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator, debias
from krag_eval.core.results.rows import RowsInMemory
from krag_eval.intervals.intervals import QuerySums
from krag_eval.lab.few_labels import DebiasedValue, Values, interval_with

POPULATION = 100_000
DEPTH = 6
CUTOFF = 5
KEYS = ("macro_recall", "micro_recall", "mrr", "ndcg")
METRICS = [f"{key}@{CUTOFF}" for key in KEYS]
#: Questions people label, and questions they do not.
SIZES = ((20, 200), (50, 200), (200, 800))
OVERLOOKED, LET_PASS = 0.1, 0.4
#: Of zeros and ones: labels, others, true values, and how often a judge says yes where people do
#: and where they do not.
LABELS, OTHERS, SHARES = (10, 20, 50, 100, 200), 300, (0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95)
JUDGES = {
    "perfect": (1.0, 0.0),
    "good": (0.95, 0.05),
    "lenient": (1.0, 0.4),
    "strict": (0.6, 0.0),
    "useless": (0.5, 0.5),
    "constant": (1.0, 1.0),
}

Lists = list[list[str]]


def retrieved(
    rng: np.random.Generator, n_items: NDArray[np.int64], chance: NDArray[np.float64]
) -> Lists:
    """Retrieve each item by chance, at a random rank, among junk."""
    ranks = rng.permuted(np.tile(np.arange(DEPTH), (POPULATION, 1)), axis=1).tolist()
    found = (rng.random((POPULATION, DEPTH)) < chance[:, np.newaxis]).tolist()
    lists = []
    for n, places, hits in zip(n_items.tolist(), ranks, found, strict=True):
        ranked = [f"junk {rank}" for rank in range(DEPTH)]
        for item, place, hit in zip(range(n), places, hits, strict=False):
            if hit:
                ranked[place] = f"item {item}"
        lists.append(ranked)
    return lists


def judged(rng: np.random.Generator, truth: Lists) -> Lists:
    """Return the judge's ground truth: it overlooks some items, and lets some junk pass."""
    kept = rng.random((POPULATION, DEPTH)) > OVERLOOKED
    junk = rng.random(POPULATION) < LET_PASS
    place = rng.integers(0, CUTOFF, POPULATION)
    return [
        [one for one, keep in zip(items, keeps, strict=False) if keep or one == items[0]]
        + [f"junk {rank}"] * bool(more)
        for items, keeps, more, rank in zip(truth, kept, junk, place, strict=True)
    ]


def populations(
    rng: np.random.Generator, skills: tuple[float, ...]
) -> list[tuple[EvaluationResult, EvaluationResult]]:
    """Return, for each retriever, its result by people and by the judge."""
    n_items = rng.integers(1, 6, POPULATION)
    chance = rng.beta(1.5, 0.5, POPULATION) * (1.05 - 0.05 * n_items)
    truth = [[f"item {item}" for item in range(n)] for n in n_items.tolist()]
    by_judge = judged(rng, truth)
    lists = [retrieved(rng, n_items, chance * skill) for skill in skills]
    return [
        tuple(OfflineRetrievalEvaluator(one, found).evaluate(CUTOFF) for one in (truth, by_judge))
        for found in lists
    ]


def take(
    result: EvaluationResult,
    queries: NDArray[np.int64],
    clusters: Iterable[int] | None = None,
) -> EvaluationResult:
    """Return the result of some of the queries, each with a label of its own."""
    tables = {
        k: {name: column[queries] for name, column in table.items()}
        for k, table in result.tables.items()
    }
    labels = [f"question {place}" for place in range(len(queries))]
    tags = {} if clusters is None else {"source": list(clusters)}
    rows = RowsInMemory(labels, tables, np.ones(len(queries), np.bool_), tags=tags)
    return dataclasses.replace(result, rows=rows, evidence=None, totals=None)


def part(result: EvaluationResult, chosen: NDArray[np.int64]) -> EvaluationResult:
    """Return some of the queries of a result, under the labels they have there."""
    labels = [result.labels[place] for place in chosen]
    tags = {name: [values[place] for place in chosen] for name, values in result.tags.items()}
    taken = take(result, chosen)
    rows = dataclasses.replace(taken.rows, labels=labels, tags=tags)
    return dataclasses.replace(taken, rows=rows)


def alone(results: list[EvaluationResult], level: float) -> list[tuple[float, float]]:
    """Return the intervals one would believe of the judge's labels alone."""
    points = []
    for result in results:
        sums = QuerySums.of(result, [(result.definitions[key], CUTOFF) for key in KEYS])
        n, value = result.n_queries, sums.all_averages(sums.columns.sum(axis=0))
        points.append(n * value - (n - 1) * sums.leave_one_out())
    moved = points[-1] - points[0] if len(points) > 1 else points[0]
    half = ndtri((1 + level) / 2) * moved.std(axis=0) / math.sqrt(len(moved))
    return list(zip(moved.mean(axis=0) - half, moved.mean(axis=0) + half, strict=True))


def outcome(
    found: DebiasedValue, judge: tuple[float, float], truth: float
) -> tuple[bool, bool, bool, float, float]:
    return (
        judge[0] <= truth <= judge[1],
        found.human_low <= truth <= found.human_high,
        found.low <= truth <= found.high,
        found.human_high - found.human_low,
        found.high - found.low,
    )


def shown(title: str, names: Iterable[str], outcomes: NDArray[np.float64]) -> None:
    """Print one table; shape (runs, metrics, 5)."""
    print(title)
    print(f"{'':16}{'judge alone':>14}{'people alone':>14}{'debias':>10}{'narrower by':>14}")
    for name, row in zip(names, outcomes.mean(axis=0), strict=True):
        judge, people, ours, width_people, width = row
        print(f"{name:16}{judge:14.3f}{people:14.3f}{ours:10.3f}{1 - width / width_people:14.0%}")
    print()


def simulated(
    rng: np.random.Generator,
    systems: list[tuple[EvaluationResult, EvaluationResult]],
    truth: list[float],
    options: argparse.Namespace,
    size: tuple[int, int],
) -> NDArray[np.float64]:
    """Draw questions, label a few of them, and see where the true values lie."""
    n, n_others = size
    runs = []
    for _ in range(options.runs):
        queries = rng.integers(0, POPULATION, n + n_others)
        people = [part(take(human, queries), np.arange(n)) for human, _ in systems]
        asked = [take(judge, queries) for _, judge in systems]
        given = [dict(zip("ab", one, strict=False)) for one in (people, asked)]
        human, judge = (one if len(systems) > 1 else one["a"] for one in given)
        found = debias(
            human=human, judge=judge, unlabelled=judge, metric=METRICS, level=options.level
        )
        believed = alone(asked, options.level)
        runs.append([outcome(*row) for row in zip(found.values, believed, truth, strict=True)])
    return np.array(runs, np.float64)


def in_clusters(
    rng: np.random.Generator,
    system: tuple[EvaluationResult, EvaluationResult],
    truth: list[float],
    options: argparse.Namespace,
    n_clusters: int,
) -> NDArray[np.float64]:
    """Draw clusters of 1 to 12 questions that are alike hard, and label a quarter of them."""
    human, judge = system
    order = np.argsort(human.tables[CUTOFF]["recall"] + rng.normal(0, 0.3, POPULATION))
    runs = []
    for _ in range(options.runs):
        sizes = rng.integers(1, 13, n_clusters)
        starts = rng.integers(0, POPULATION, n_clusters)
        spread = rng.normal(0, POPULATION / 10, sizes.sum()).astype(np.int64)
        place = np.repeat(starts, sizes) + spread
        queries = order[place % POPULATION]
        groups = np.repeat(np.arange(n_clusters), sizes).tolist()
        labelled = np.sort(rng.permutation(len(queries))[: len(queries) // 4])
        people = part(take(human, queries, groups), labelled)
        asked = take(judge, queries, groups)
        how = {"metric": METRICS, "level": options.level}
        found = debias(human=people, judge=asked, unlabelled=asked, clusters="source", **how)
        naive = debias(human=people, judge=asked, unlabelled=asked, **how)
        believed = [(one.low, one.high) for one in naive.values]
        runs.append([outcome(*row) for row in zip(found.values, believed, truth, strict=True)])
    return np.array(runs, np.float64)


def of_zeros_and_ones(
    rng: np.random.Generator, n: int, judge: tuple[float, float], options: argparse.Namespace
) -> NDArray[np.float64]:
    """Return, per true value, how often debias and the plain PPI++ interval hold it, and widths."""
    found = []
    for share in SHARES:
        held = np.zeros(4)
        for _ in range(options.runs):
            people = rng.random(n + OTHERS) < share
            said = np.where(rng.random(n + OTHERS) < np.where(people, *judge), 1.0, 0.0)
            y, f, u = people[:n] * 1.0, said[:n], said[n:]
            ours = debias(human=y, judge=f, unlabelled=u, level=options.level)["value"]
            parts = [Values(float(one.mean()), one) for one in (y, f, u)]
            _, low, high = interval_with(ours.weight, parts, options.level)
            held += (
                ours.low <= share <= ours.high,
                low <= share <= high,
                ours.high - ours.low,
                ours.human_high - ours.human_low,
            )
        found.append(held / options.runs)
    return np.array(found)


def print_zeros_and_ones(rng: np.random.Generator, options: argparse.Namespace) -> None:
    """Print the lowest shares over all true values; by how much the interval is narrower."""
    values = f"{SHARES[0]:g} to {SHARES[-1]:g}"
    print(f"Zeros and ones, {OTHERS} others: lowest of true values {values}, for each judge")
    print(f"{'labelled':>8}  {'judge':10}{'debias':>10}{'at':>6}{'PPI++':>10}{'narrower by':>14}")
    for n in LABELS:
        for name, judge in JUDGES.items():
            found = of_zeros_and_ones(rng, n, judge, options)
            lowest = int(found[:, 0].argmin())
            narrower = 1 - found[:, 2].mean() / found[:, 3].mean()
            print(
                f"{n:8}  {name:10}{found[lowest, 0]:10.3f}{SHARES[lowest]:6g}"
                f"{found[:, 1].min():10.3f}{narrower:14.0%}"
            )
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1_500)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--only", choices=["retrievers", "zeros-and-ones"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", KragEvalWarning)
    start = time.perf_counter()
    if options.only != "zeros-and-ones":
        print_retrievers(options)
    if options.only != "retrievers":
        print_zeros_and_ones(np.random.default_rng(2025), options)
    print(f"{time.perf_counter() - start:.0f} s")


def print_retrievers(options: argparse.Namespace) -> None:
    """Print the tables of the made-up retrievers."""
    rng = np.random.default_rng(2024)
    a, b, poor = populations(rng, (0.9, 0.97, 0.3))
    of_a, of_b = ([one[0].averages(CUTOFF)[key] for key in KEYS] for one in (a, b))
    bias = [a[1].averages(CUTOFF)[key] - a[0].averages(CUTOFF)[key] for key in KEYS]
    error = math.sqrt(options.level * (1 - options.level) / options.runs)
    print(f"{options.runs} runs, level {options.level:g} (standard error {error:.4f})")
    print("By people:", ", ".join(f"{k} {v:.2f}" for k, v in zip(KEYS, of_a, strict=True)))
    print("Judge less people:", ", ".join(f"{k} {v:+.3f}" for k, v in zip(KEYS, bias, strict=True)))
    print()
    for size in SIZES:
        title = f"{size[0]} labelled, {size[1]} others"
        shown(title, METRICS, simulated(rng, [a], of_a, options, size))
    apart = [second - first for first, second in zip(of_a, of_b, strict=True)]
    title = "Difference of two retrievers, 50 labelled, 200 others"
    shown(title, METRICS, simulated(rng, [a, b], apart, options, (50, 200)))
    title = "40 clusters of 1 to 12, a quarter labelled (first column: debias without clusters)"
    shown(title, METRICS, in_clusters(rng, a, of_a, options, 40))
    of_poor = [poor[0].averages(CUTOFF)[key] for key in KEYS]
    for size in SIZES[:2]:
        title = f"A poor retriever, {size[0]} labelled, {size[1]} others"
        shown(title, METRICS, simulated(rng, [poor], of_poor, options, size))


if __name__ == "__main__":
    main()
