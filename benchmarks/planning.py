"""How often the test of a comparison shows the difference that was planned for.

    python -m benchmarks.planning [--repeats 2000]

Differences of two systems are drawn from a population whose mean is the difference to show, as many
as the plan says, and tested as ``compare`` does. Printed is, for populations of several metrics,
the number of questions that the normal formula gives, z(1 - alpha/2) + z(power) times sd over the
difference, and that of ``plan_questions``, with the share of the repeats in which the difference is
shown by so many; 80 % was asked for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from krag_eval.comparison.permutation import SwapTest
from krag_eval.core.scoring.averages import Average
from krag_eval.intervals.intervals import QuerySums, Spread

Floats = NDArray[np.float64]
Population = Callable[[np.random.Generator, int], Floats]

POWER, ALPHA, SEED = 0.8, 0.05, 0
MEAN = Average("mean", "value", (("value", "#"),))


def of_signs(differing: float, difference: float) -> Population:
    """Return a population of a hit rate: so many questions differ, more of them won than lost."""
    won, lost = (differing + difference) / 2, (differing - difference) / 2
    values, chances = [-1.0, 0.0, 1.0], [lost, 1 - won - lost, won]
    return lambda rng, n: rng.choice(values, n, p=chances)


def of_recall(difference: float) -> Population:
    """Return a population of recall of one to four items, each found or not by both systems."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        sizes = rng.integers(1, 5, n)
        old, new = (rng.binomial(sizes, share) for share in (0.6, 0.6 + difference))
        return np.asarray((new - old) / sizes)

    return draw


def of_ndcg(difference: float) -> Population:
    """Return a population of nDCG of one item at ranks from 1 to 9, or not found."""
    gains = np.append(1 / np.log2(np.arange(2, 11)), 0.0)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        old = rng.integers(0, 10, n)
        moved = np.where(rng.random(n) < 0.5, old, rng.integers(0, 10, n))
        # What is better by a step in so many questions is better by the difference on average.
        up = rng.random(n) < difference / 0.0975
        return np.asarray(gains[np.where(up, np.maximum(moved - 1, 0), moved)] - gains[old])

    return draw


def share_shown(draw: Population, n: int, repeats: int) -> float:
    """Return in which share of the repeats n differences show that their mean is above 0."""
    rng, shown, ones = np.random.default_rng([SEED, n]), 0, np.ones(n)
    positions = {("value", 5): 0, ("#", 5): 1}
    for _ in range(repeats):
        values = draw(rng, n)
        ours, theirs = (
            QuerySums(np.stack([one, ones], axis=1), positions, ((MEAN, 5),))
            for one in (np.zeros(n), values)
        )
        test = SwapTest.of(ours, theirs, (0.0, float(values.mean())), "both")
        shown += test.p(1_000, SEED) < ALPHA and values.mean() > 0
    return shown / repeats


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    repeats = parser.parse_args(argv).repeats
    populations: dict[str, Population] = {
        f"hit rate, {differing:.0%} of the questions differ, by {difference:g}": of_signs(
            differing, difference
        )
        for differing, difference in ((0.12, 0.1), (0.2, 0.1), (0.4, 0.1), (0.2, 0.05))
    }
    populations["recall of 1 to 4 items, by 0.1"] = of_recall(0.1)
    populations["nDCG of one item, by 0.05"] = of_ndcg(0.05)
    print("| differences | normal formula | power | plan | power |")
    print("|---|---:|---:|---:|---:|")
    for name, draw in populations.items():
        pilot = draw(np.random.default_rng(SEED), 1_000_000)
        difference, sd = float(pilot.mean()), float(pilot.std())
        unit = 1.0 if set(np.unique(pilot).tolist()) <= {-1.0, 0.0, 1.0} else None
        spread = Spread(sd, len(pilot), sd / math.sqrt(len(pilot)), None, unit)
        z = float(norm.isf(ALPHA / 2) + norm.isf(1 - POWER))
        normal = math.ceil((z * sd / difference) ** 2)
        planned = math.ceil(spread.needed(difference, ALPHA, POWER))
        powers = [f"{share_shown(draw, n, repeats):.1%}" for n in (normal, planned)]
        print(f"| {name} | {normal} | {powers[0]} | {planned} | {powers[1]} |", flush=True)


if __name__ == "__main__":
    main()
