"""How often a gate fails an unchanged system, and how often it notices a true drop.

    python benchmarks/history_gate.py [--series 200] [--nights 40]

A question is found or not; every night some of them flip, each by chance, and a gate holds the
night's mean to the nights before. Printed is, for so many questions, so many that flip and so much
that may drop, the share of nights of an unchanged system that fail, held against the best of the
last ten nights, against one fixed night and against the mean of the last ten (what
``History.check`` does); and how often a true drop of 0.10 is noticed by the last two. The same
numbers come from ``History.check`` itself, some 100 times slower:
``tests/history/test_history_gate.py`` holds the two together.

The mean of several nights is held to by three tests: p of random signs of the differences is of
the questions; p of the turn, where any night may as well have been the new one, is of the nights,
and exact for a system that does not change; and both count 5/4, as the nights that are averaged did
not fail.

The second table is of one gate at the very drop that is allowed: 5 % of them may fail.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

N_QUESTIONS, FLIPPING, MAX_DROPS = (100, 300), (0.1, 0.2), (0.0, 0.02, 0.05)
#: The shares of the questions that are found when none flips, and the true drop to notice.
SHARES, FOUND, TRUE_DROP = (0.9, 0.7, 0.3), 0.7, 0.1
LEVEL, N_SWAPS, SEED = 0.95, 10_000, 0
LAST, FEWEST, OF_PASSED = 10, 3, 1.25
# Draws of the turn of a night where a drop is allowed (without one, all turns are counted), and
# random signs of one gate.
N_TURNS = 2_000


def swaps(n: int, n_swaps: int = N_SWAPS) -> NDArray[np.float32]:
    """Return random signs for n questions, +1 or -1."""
    rng = np.random.default_rng([SEED, 1])
    return (1 - 2 * rng.integers(0, 2, (n_swaps, n), np.int8)).astype(np.float32)


def p_values(signs: NDArray[np.float32], drops: Floats) -> Floats:
    """Return the one-sided p of the mean of each column, shape (questions, nights)."""
    observed = drops.sum(axis=0)
    observed -= 1e-6 * np.abs(observed) + 1e-9  # equal sums are as extreme
    null = signs @ drops.astype(np.float32)
    return ((null >= observed).sum(axis=0) + 1) / (len(signs) + 1)


def p_of_turns(new: Floats, n_found: Floats, n_nights: Floats, max_drop: float) -> Floats:
    """Return how often a night would do as badly, had its turn come in place of another's.

    Args:
        new: Whether each question is found, shape (questions, series).
        n_found: In how many of the nights before it was.
        n_nights: How many nights these are, shape (series,).
        max_drop: What may drop: the nights before are lowered by it.
    """
    if max_drop:
        rng, is_as_bad = np.random.default_rng([SEED, 3]), np.zeros(new.shape[1])
        for _ in range(N_TURNS):
            before = (rng.random(new.shape) < n_found / n_nights) - max_drop
            turn = np.where(rng.random(new.shape) < 1 / (n_nights + 1), new, before)
            is_as_bad += turn.sum(axis=0) <= new.sum(axis=0) + 1e-9
        return (is_as_bad + 1) / (N_TURNS + 1)
    # The number found is a sum of independent zeros and ones.
    chance = (n_found + new) / (n_nights + 1)
    ways = np.zeros((len(new) + 1, new.shape[1]))
    ways[0] = 1
    for question, one in enumerate(chance, start=1):
        ways[1 : question + 1] = ways[1 : question + 1] * (1 - one) + ways[:question] * one
        ways[0] *= 1 - one
    up_to = np.cumsum(ways, axis=0)
    return up_to[new.sum(axis=0).astype(int), np.arange(new.shape[1])]


def fails(
    signs: NDArray[np.float32],
    new: Floats,
    held_to: Floats,
    max_drop: float,
    n_nights: Floats | None = None,
) -> NDArray[np.bool_]:
    """Tell which nights fail, columns of shape (questions, nights).

    Args:
        signs: Random signs.
        new: The nights.
        held_to: What they are held to.
        max_drop: How far they may drop.
        n_nights: Of how many nights ``held_to`` is the mean; one each if not given.
    """
    drops = held_to - new
    worse = drops.mean(axis=0) > max_drop + 1e-12
    p = p_values(signs, drops)
    if max_drop:
        p = np.maximum(p, p_values(signs, drops - max_drop))
    if n_nights is not None:
        several = n_nights > 1
        p = np.where(several, OF_PASSED * p, p)
        left = np.flatnonzero(several & worse & (p < 1 - LEVEL))
        of = held_to[:, left] * n_nights[left], n_nights[left]
        turns = p_of_turns(new[:, left], *of, max_drop)
        p[left] = np.maximum(p[left], OF_PASSED * turns)
    return worse & (p < 1 - LEVEL)


def nights_of(
    rng: np.random.Generator,
    n: int,
    flipping: float,
    shape: int,
    lost: int = 0,
    found: float = FOUND,
) -> Floats:
    """Return whether each question is found, in so many independent nights or series."""
    steady = np.arange(n) < round(found * n)
    steady[:lost] = False
    return (steady[:, np.newaxis] ^ (rng.random((n, shape)) < flipping)).astype(np.float64)


def mean_of_the_last(passed: Floats, kept: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return what each series is held to, the mean of its last nights that did not fail.

    And how many nights these are.

    Args:
        passed: The nights so far, shape (nights, questions, series).
        kept: Which of them did not fail, shape (nights, series).
    """
    # The youngest first, of each series those that did not fail.
    age = np.cumsum(kept[::-1], axis=0)[::-1]
    chosen = kept & (age <= LAST)
    few = chosen.sum(axis=0) < FEWEST
    chosen &= ~few | (age == 1)
    n_nights = chosen.sum(axis=0).astype(np.float64)
    return np.einsum("tns,ts->ns", passed, chosen.astype(np.float64)) / n_nights, n_nights


def best_of_the_last(nights: Floats) -> Floats:
    """Return the best of the last nights, of equals the youngest."""
    last = nights[-LAST:][::-1]
    best = last.mean(axis=1).argmax(axis=0)
    return last[best, :, np.arange(last.shape[2])].T


def false_alarms(
    n: int, flipping: float, max_drop: float, *, series: int, nights: int, found: float = FOUND
) -> tuple[float, float, float]:
    """Return the share of nights that fail: by the best, by one night, by the mean."""
    rng, signs = np.random.default_rng([SEED, n]), swaps(n)
    drawn = np.stack([nights_of(rng, n, flipping, series, found=found) for _ in range(nights)])
    kept = np.ones((nights, series), np.bool_)
    failed = np.zeros((3, nights, series), np.bool_)
    for night in range(1, nights):
        held = (
            (best_of_the_last(drawn[:night]), None),
            (drawn[0], None),
            mean_of_the_last(drawn[:night], kept[:night]),
        )
        for rule, (one, n_nights) in enumerate(held):
            failed[rule, night] = fails(signs, drawn[night], one, max_drop, n_nights)
        kept[night] = ~failed[2, night]
    best, fixed, mean = failed[:, 1:].mean(axis=(1, 2)).tolist()
    return best, fixed, mean


def power(n: int, flipping: float, max_drop: float, *, series: int) -> tuple[float, float]:
    """Return how often a true drop is noticed: held to one night, and to the mean of ten."""
    rng, signs = np.random.default_rng([SEED, n, 1]), swaps(n)
    before = np.stack([nights_of(rng, n, flipping, series) for _ in range(LAST)])
    # A question that is no longer found still is where it flips.
    lost = round(TRUE_DROP * n / (1 - 2 * flipping))
    new = nights_of(rng, n, flipping, series, lost)
    by_one = fails(signs, new, before[-1], max_drop).mean()
    of_ten = np.full(series, float(LAST))
    return float(by_one), float(fails(signs, new, before.mean(axis=0), max_drop, of_ten).mean())


def at_the_allowed_drop(of_means: bool, max_drop: float, n: int, repeats: int, how: str) -> float:
    """Return how often a gate fails where the true drop is what is allowed.

    Args:
        of_means: Whether the average is macro recall, and not micro recall.
        max_drop: What may drop, and does.
        n: Number of questions, with 1 to 8 items each; the more, the harder to find.
        repeats: Number of gates.
        how: ``"a little"`` if every item is found less often, ``"whole"`` if some questions lose
            all that they found, ``"few gain"`` if a tenth of them find all and the others lose.
    """
    rng, signs = np.random.default_rng([SEED, n, 2]), swaps(n, N_TURNS)
    sizes = rng.integers(1, 9, (n, repeats))
    at = np.linspace(0.9, 0.4, 8)[sizes - 1]
    if how == "whole":
        mean = at.mean(axis=0) if of_means else (at * sizes).sum(axis=0) / sizes.sum(axis=0)
        later = np.where(rng.random(at.shape) < max_drop / mean, 0.0, at)
    elif how == "few gain":
        lower = at - (max_drop + 0.1 * (1 - at)) / 0.9
        later = np.where(rng.random(at.shape) < 0.1, 1.0, lower)
    else:
        later = at - max_drop
    old, new = (rng.binomial(sizes, chance).astype(np.float64) for chance in (at, later))
    weights = np.ones(at.shape) if of_means else sizes.astype(np.float64)
    old, new = (hits / sizes if of_means else hits for hits in (old, new))
    drops, allowed = old - new, max_drop * weights
    worse = drops.sum(axis=0) > allowed.sum(axis=0) + 1e-9
    p = np.maximum(p_values(signs, drops), p_values(signs, drops - allowed))
    return float((worse & (p < 1 - LEVEL)).mean())


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    print(f"| {' | '.join(header)} |")
    print(f"|{'---:|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def main(argv: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--nights", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=8000)
    asked = parser.parse_args(argv)
    percent: Callable[[float], str] = "{:.1%}".format
    rows = []
    for share, n, flipping, max_drop in product(SHARES, N_QUESTIONS, FLIPPING, MAX_DROPS):
        if share != FOUND and max_drop:
            continue
        how = {"series": asked.series, "nights": asked.nights, "found": share}
        numbers = [*map(percent, false_alarms(n, flipping, max_drop, **how))]
        if share == FOUND:
            numbers += map(percent, power(n, flipping, max_drop, series=asked.series * 10))
        else:
            numbers += ["", ""]
        rows.append([f"{share:.0%}", str(n), f"{flipping:.0%}", f"{max_drop:g}", *numbers])
    header = ["found", "questions", "flip", "max_drop", "best of ten", "one night", "mean of ten"]
    print_table([*header, "drop noticed: one night", "mean of ten"], rows)
    print()
    rows = []
    for how, max_drop in product(("a little", "whole", "few gain"), MAX_DROPS):
        if how == "whole" and not max_drop:
            continue
        shares = [
            at_the_allowed_drop(of_means, max_drop, 100, asked.repeats, how)
            for of_means in (True, False)
        ]
        rows.append([how, f"{max_drop:g}", *map(percent, shares)])
    print_table(["lost", "max_drop", "macro_recall", "micro_recall"], rows)


if __name__ == "__main__":
    main()
