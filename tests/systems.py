"""Makers of results to compare, from the ranks at which each query finds its items."""

import numpy as np
import pytest
from reference import no_advice

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
