"""The simulation behind the table on the page of histories says what the real gate says."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats
from systems import result_of

from benchmarks.history_gate import (
    OF_PASSED,
    best_of_the_last,
    fails,
    false_alarms,
    mean_of_the_last,
    nights_of,
    p_of_turns,
    p_values,
    power,
    swaps,
)
from krag_eval import History
from krag_eval.history.history import HistoryRun

N, NIGHTS = 100, 14
DAY_1 = datetime(2026, 1, 1, tzinfo=UTC)


def of_night(found, night):
    """Return the result of a night, in which some of the queries find their item."""
    return replace(result_of(found.astype(int), k=5), made=DAY_1 + timedelta(days=night))


@pytest.mark.parametrize(("flipping", "max_drop"), [(0.2, 0.0), (0.1, 0.02), (0.2, 0.05)])
def test_it_agrees_with_the_gate_night_by_night(flipping, max_drop):
    """Over two weeks in which a system gets worse, with failures left out: verdicts and p."""
    rng, signs = np.random.default_rng(3), swaps(N)
    nights = [nights_of(rng, N, flipping, 1, lost) for lost in [0] * 9 + [30, 0, 35, 40, 0]]
    drawn, kept, runs, outcomes = np.stack(nights), np.ones((NIGHTS, 1), np.bool_), [], []
    for night, found in enumerate(nights):
        result = of_night(found[:, 0], night)
        if night:
            mean, n_nights = mean_of_the_last(drawn[:night], kept[:night])
            expected = fails(signs, found, mean, max_drop, n_nights)
            history = History("runs", tuple(runs), ("recall@5",))
            report = history.check(result, metric="recall@5", max_drop=max_drop)
            assert f"from {mean.mean():.4f} to {found.mean():.4f}" in report.gates[0].reason
            kept[night] = ~expected
            outcomes.append(report.outcome)
            assert (report.outcome == "failed") == expected[0], night
            result = replace(result, gate=report.outcome)
        runs.append(HistoryRun(str(night), result, result.made))
    assert "failed" in outcomes


def gate_of(before, new, max_drop=0.0):
    """Return what a gate finds of a night, held to nights before."""
    runs = [of_night(found[:, 0], night) for night, found in enumerate(before)]
    history = History("runs", tuple(
        HistoryRun(str(night), run, run.made) for night, run in enumerate(runs)
    ), ("recall@5",))  # fmt: skip
    report = history.check(of_night(new[:, 0], len(runs)), metric="recall@5", max_drop=max_drop)
    return report.comparisons[0].differences[0]


def test_its_p_is_that_of_the_gate():
    """Held to one night, whose swaps the gate counts and the simulation draws: by a binomial."""
    rng = np.random.default_rng(1)
    old, new = (nights_of(rng, N, 0.2, 1) for _ in range(2))
    lost, won = int((old > new).sum()), int((new > old).sum())
    p = gate_of([old], new).p_worse
    assert p == pytest.approx(stats.binomtest(lost, lost + won, alternative="greater").pvalue)
    assert p_values(swaps(N), old - new)[0] == pytest.approx(p, abs=0.02)


@pytest.mark.parametrize("max_drop", [0.0, 0.05])
def test_its_p_of_turns_is_that_of_the_gate(max_drop):
    """Held to ten nights that found some questions more often than not, and others never."""
    rng = np.random.default_rng(8)
    before = [nights_of(rng, N, 0.2, 1, found=0.3) for _ in range(10)]
    new = nights_of(rng, N, 0.2, 1, lost=8, found=0.3)
    n_found, n_nights = np.sum(before, axis=0), np.array([10.0])
    turns = OF_PASSED * p_of_turns(new, n_found, n_nights, max_drop)[0]
    flips = OF_PASSED * p_values(swaps(N), n_found / 10 - new - max_drop)[0]
    p = gate_of(before, new, max_drop).p_worse
    assert p == pytest.approx(min(1, max(turns, flips)), abs=0.03)


def test_the_best_is_the_best_of_the_last_ten():
    """The first night, found all, is forgotten; of equals the youngest counts."""
    nights = np.zeros((12, 4, 1))
    nights[0] = 1
    nights[5, :2] = 1
    nights[8, 2:] = 1
    assert best_of_the_last(nights)[:, 0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("found", [0.3, 0.7])
@pytest.mark.parametrize("max_drop", [0.0, 0.05])
def test_false_alarms_are_rare_and_drops_are_noticed(max_drop, found):
    """In small: at most one night in twenty, and no less power than one fixed night has.

    Also of a system that finds few: its nights vary upwards more than downwards.
    """
    best, _, mean = false_alarms(100, 0.2, max_drop, series=60, nights=20, found=found)
    assert mean < 0.05
    assert mean < best
    by_one, by_mean = power(300, 0.1, max_drop, series=100)
    assert by_mean >= by_one
