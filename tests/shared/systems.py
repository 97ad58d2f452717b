"""Makers of results to compare, from the ranks at which each query finds its items."""

import numpy as np
import pytest
from reference import no_advice
from scipy import stats

from krag_eval import OfflineRetrievalEvaluator

few_queries = pytest.mark.filterwarnings("ignore:The intervals rest on")
few_clusters = pytest.mark.filterwarnings("ignore:.* are too few")


def result_of(ranks, n_items=1, k=10, evaluated=None, **options):
    """Make the result of queries whose first items are among ten documents at the given ranks.

    Args:
        ranks: Per query the ranks, or the one rank; 0 or none for nothing found.
        n_items: How many items a query has.
        k: The cutoffs.
        evaluated: Other options of ``evaluate``.
        **options: Options of the evaluator.
    """
    sizes = [n_items] * len(ranks) if isinstance(n_items, int) else n_items
    actual = [[f"item {i}" for i in range(n)] for n in sizes]
    predicted = []
    for found in ranks:
        documents = [f"junk {rank}" for rank in range(1, 11)]
        for i, rank in enumerate(found if isinstance(found, list) else [found] if found else []):
            documents[rank - 1] = f"item {i}"
        predicted.append(documents)
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, predicted, **options)
        return evaluator.evaluate(k, **(evaluated or {}))


def first(n, of=40, k=(1, 5), **options):
    """Make the result of queries of which the first so many find their one item at rank 1."""
    return result_of([1] * n + [0] * (of - n), k=k, **options)


def asked(numbers, found, k=(1, 5, 10), **options):
    """Make the result of questions of these numbers, of which those in ``found`` are answered."""
    numbers, found = [*numbers], {*found}
    options.setdefault("queries", [f"question {i}" for i in numbers])
    with no_advice():
        return OfflineRetrievalEvaluator(
            [[f"passage {i}"] for i in numbers],
            [[f"passage {i}" if i in found else "?"] for i in numbers],
            **options,
        ).evaluate(k)


def random_results(seed, n_queries, n_systems=2, **options):
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


def only(comparison):
    """Return the one difference of a comparison."""
    (difference,) = comparison.differences
    return difference


def share_shown(n, difference, sd, level):
    """Return how often n values of -1, 0 and 1 with that mean and spread show it at that level.

    Summed over every number of wins and losses: by the tail of the sign test toward the difference.
    """
    differing = max(sd**2 + difference**2, difference)
    wins, losses = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
    possible = wins + losses <= n
    wins, losses = wins[possible], losses[possible]
    shown = stats.binom.sf(wins - 1, wins + losses, 0.5) < level
    at = [(differing + difference) / 2, max((differing - difference) / 2, 0), 1 - differing]
    counts = np.stack([wins, losses, n - wins - losses], axis=1)[shown]
    return float(stats.multinomial.pmf(counts, n, at).sum())
