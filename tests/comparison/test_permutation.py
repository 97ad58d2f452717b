"""The permutation test, alone and in verdicts: exact where it can be, the same in every order."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from reference import no_advice
from scipy import stats
from systems import few_queries, only

from krag_eval import EvaluationResult, History, OfflineRetrievalEvaluator, calibrate, compare
from krag_eval.comparison.permutation import Estimate, SwapTest, TurnTest
from krag_eval.core import Average
from krag_eval.history.history import HistoryRun
from krag_eval.intervals.intervals import QuerySums

MEAN = Average("mean", "value", (("value", "#"),))
TWO_MEANS = Average("f1", "f1", (("precision", "#"), ("recall", "#")))


def sums(average, *columns):
    """Return what an average is made of, from its columns."""
    positions = {(name, 5): place for place, name in enumerate(dict.fromkeys(average.sums))}
    return QuerySums(np.stack(columns, axis=1).astype(float), positions, ((average, 5),))


def of_means(a, b, tail="both"):
    """Return the test of two systems with these values."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    ours, theirs = (sums(MEAN, one, np.ones(len(a))) for one in (a, b))
    return SwapTest.of(ours, theirs, (a.mean(), b.mean()), tail)


@pytest.mark.parametrize(("wins", "losses"), [(5, 0), (0, 40), (31, 17), (120, 84), (2000, 1900)])
def test_of_zeros_and_ones_it_is_the_sign_test(wins, losses):
    """That of scipy, two-sided and one-sided; ties count for nothing."""
    a, b = [0] * wins + [1] * losses + [1, 0] * 20, [1] * wins + [0] * losses + [1, 0] * 20
    n = wins + losses
    for tail, alternative in (("both", "two-sided"), ("low", "less"), ("high", "greater")):
        test = of_means(a, b, tail)
        assert test.is_exact
        expected = stats.binomtest(wins, n, alternative=alternative).pvalue
        assert test.p(100, 0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("may_drop", [0, Fraction(1, 50)])
def test_multiples_of_a_unit_are_counted_by_hand(seed, may_drop):
    """Recall of two, three and four items: the sums of all 2^n signs, added up in fractions."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, 60).tolist()
    pairs = [rng.integers(0, n + 1, 2).tolist() for n in sizes]
    changes = [Fraction(b - a, n) + may_drop for (a, b), n in zip(pairs, sizes, strict=True)]
    ways = Counter({Fraction(0): 1})
    for change in changes:
        longer = Counter()
        for total, times in ways.items():
            longer[total + change] += times
            longer[total - change] += times
        ways = longer
    observed = sum(changes)
    test = of_means(
        [float(Fraction(a, n) - may_drop) for (a, _), n in zip(pairs, sizes, strict=True)],
        [b / n for (_, b), n in zip(pairs, sizes, strict=True)],
    )
    assert test.is_exact
    extreme = sum(times for total, times in ways.items() if abs(total) >= abs(observed))
    assert test.p(100, 0) == pytest.approx(float(Fraction(extreme, 2 ** len(changes))), rel=1e-9)


@pytest.mark.parametrize("tail", ["both", "low", "high"])
def test_what_has_no_unit_is_drawn_and_agrees_with_scipy(tail):
    """Forty differences: scipy draws of its own, 200,000; four standard errors of both."""
    rng = np.random.default_rng(2)
    a = rng.random(40)
    b = a - 0.05 + 0.2 * rng.standard_normal(40)
    test = of_means(a, b, tail)
    assert not test.is_exact
    alternative = {"both": "two-sided", "low": "less", "high": "greater"}[tail]
    p = stats.permutation_test(
        (b, a), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=200_000, alternative=alternative,
        random_state=np.random.default_rng(0),
    ).pvalue  # fmt: skip
    assert test.p(50_000, 0) == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 40_000))


def test_other_averages_are_enumerated():
    """An F1 of two means, twelve queries: all 4,096 swaps written out."""
    rng = np.random.default_rng(3)
    ours, theirs = (rng.random((12, 2)) for _ in range(2))

    def f1(values):
        p, r = values.mean(axis=0)
        return 2 * p * r / (p + r)

    apart = [
        f1(np.where(swap, ours, theirs)) - f1(np.where(swap, theirs, ours))
        for swap in (np.array(one)[:, None] for one in itertools.product([0, 1], repeat=12))
    ]
    # The columns are precision, the number of queries, and recall.
    a, b = (sums(TWO_MEANS, one[:, 0], np.ones(12), one[:, 1]) for one in (ours, theirs))
    test = SwapTest.of(a, b, (f1(ours), f1(theirs)), "low")
    expected = np.mean(np.array(apart) <= f1(theirs) - f1(ours) + 1e-12)
    assert test.p(100, 0) == pytest.approx(expected, rel=1e-12)


def test_the_turn_of_a_run_agrees_with_enumeration():
    """Three runs and a new one, one of which lacks a query: every choice of the new one."""
    rng = np.random.default_rng(4)
    values = rng.integers(0, 3, (4, 5)) / 2
    has = np.ones((4, 5), bool)
    has[2, 1] = False
    columns = np.stack([np.where(has, values, 0), has.astype(float)], axis=2)
    turns = [np.flatnonzero(has[:, q]) for q in range(5)]

    def apart(new):
        others = [np.mean([values[run, q] for run in turns[q] if run != new[q]]) for q in range(5)]
        return np.mean([values[run, q] for q, run in enumerate(new)]) - np.mean(others)

    null = np.array([apart(new) for new in itertools.product(*turns)])
    expected = np.mean(null <= apart([0] * 5) + 1e-12)
    test = TurnTest.of(sums(MEAN, *columns[0].T), columns, has, "low")
    assert test.p(100_000, 0) == pytest.approx(expected, abs=0.006)


def test_more_are_drawn_near_the_level():
    """At p of 0.05, 10,000 draws are off by 0.002; ten times as many by 0.0007."""
    test = of_means(np.zeros(40), np.random.default_rng(2).standard_normal(40))
    near, far = (Estimate(test, p, 10_000, 0) for p in (0.052, 0.06))
    assert near.is_near(0.052, 0.05)
    assert not far.is_near(0.06, 0.05)
    assert near.is_near(0.104, 0.1)  # of two
    assert near.refined().n_swaps == 100_000
    assert near.refined().p == test.p(100_000, 0)
    exact = of_means([0] * 40, [1] * 40)
    assert not Estimate(exact, 0.05, 10_000, 0).is_near(0.05, 0.05)


def test_no_test_draws_otherwise_because_others_are_made_with_it():
    """Intervals and p of one metric are the same among several, and among more systems.

    But where more are drawn near the level, which is another one among several.
    """
    results = {name: made(one) for name, one in zip("abc", systems(60, 3), strict=True)}
    for row in compare(results, METRICS).differences:
        alone = only(compare({name: results[name] for name in (row.a, row.b)}, row.metric))
        assert (row.ci_low, row.ci_high) == (alone.ci_low, alone.ci_high)
        n_swaps = [one.estimates["p_permutation"].n_swaps for one in (row, alone)]
        if n_swaps[0] == n_swaps[1]:
            assert row.p_permutation == alone.p_permutation


# --- in every order ------------------------------------------------------------------------------


METRICS = ["ndcg@5", "mrr@5", "recall@5", "micro_recall@5", "micro_f1@5", "macro_f1@5",
           "micro_precision@5", "mean_rank@5"]  # fmt: skip


def systems(n, how_many=2, seed=1):
    """Return what each of several systems finds: per query the ranks of its items."""
    rng = np.random.default_rng(seed)
    return [
        [sorted(rng.choice(8, rng.integers(0, 4), replace=False).tolist()) for _ in range(n)]
        for _ in range(how_many)
    ]


def made(found, order=None, labels=True, k=(1, 5, 8)):
    """Return the result of a system asked in some order."""
    n, order = len(found), range(len(found)) if order is None else order
    sizes = [1 + q % 3 for q in range(n)]
    lists = []
    for q in order:
        documents = [f"other {q} {rank}" for rank in range(4 + q % 5)]
        for item, rank in enumerate(found[q][: sizes[q]]):
            documents[min(rank, len(documents) - 1)] = f"item {q} {item}"
        lists.append(documents)
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(
            [[f"item {q} {i}" for i in range(sizes[q])] for q in order],
            lists,
            queries=[f"question {q}" for q in order] if labels else None,
            tags={"source": [f"s{q // 3}" for q in order], "part": ["xyz"[q % 3] for q in order]},
        )
        return evaluator.evaluate(k)


ORDER = np.random.default_rng(0).permutation(90).tolist()


def pair_of(order, labels):
    return {name: made(one, order, labels) for name, one in zip("ab", systems(90), strict=True)}


def numbers(row):
    """Return what a difference says, to the last digit."""
    names = ("value_a", "value_b", "difference", "ci_low", "ci_high", "p_permutation", "p_t",
             "p_holm", "effect_size", "detectable", "spread", "p_worse", "p_worse_holm", "p_share",
             "p_fewer", "wins", "losses", "slice", "n")  # fmt: skip
    return {name: repr(getattr(row, name)) for name in names}


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("clusters", [None, "source"])
def test_a_comparison_is_the_same_in_every_order(labels, clusters):
    """Every p, interval and spread, of all kinds of averages, to the last digit."""
    asked = compare(pair_of(None, True), METRICS, clusters=clusters)
    shuffled = compare(pair_of(ORDER, labels), METRICS, clusters=clusters)
    for one, other in zip(asked.differences, shuffled.differences, strict=True):
        assert numbers(one) == numbers(other)
    assert asked.leaderboard.to_dict() == shuffled.leaderboard.to_dict()


@pytest.mark.parametrize("labels", [True, False])
def test_a_gate_is_the_same_in_every_order(labels):
    """The whole report, by slices too, and what it rests on."""
    reports = []
    for order, named in ((None, True), (ORDER, labels)):
        a, b = pair_of(order, named).values()
        reports.append(b.check(baseline=a, metric=METRICS, max_drop=0.01, by="part"))
    assert reports[0].gates == reports[1].gates
    for one, other in zip(*(report.comparisons[0].differences for report in reports), strict=True):
        assert numbers(one) == numbers(other)


def test_ten_pairs_near_the_level_keep_their_verdict():
    """Of pairs whose p lies near 0.05, in three orders: p is one number."""
    near = 0
    for seed in range(40):
        pair = dict(zip("ab", systems(90, seed=seed), strict=True))
        rows = []
        for order in (None, ORDER, ORDER[::-1]):
            results = {name: made(found, order, labels=False) for name, found in pair.items()}
            rows.append(only(compare(results, "ndcg@5", n_resamples=500)))
        assert len({(row.p_permutation, row.ci_low, row.ci_high) for row in rows}) == 1
        near += 0.02 < rows[0].p_permutation < 0.1
    assert near >= 2


def test_a_saved_and_a_reordered_result_are_compared_alike(tmp_path):
    """Rows that are read from a file, and pairs in different orders brought together by label."""
    a, b = pair_of(None, True).values()
    b.to_json(tmp_path / "b.json")
    shuffled = made(systems(90)[0], ORDER)
    found = [compare({"a": one, "b": other}, METRICS) for one, other in
             ((a, b), (shuffled, EvaluationResult.from_json(tmp_path / "b.json")))]  # fmt: skip
    for one, other in zip(*(each.differences for each in found), strict=True):
        assert numbers(one) == numbers(other)


@pytest.mark.parametrize("labels", [True, False])
def test_what_is_said_of_one_result_is_the_same_in_every_order(labels):
    """Intervals by either method, slices, budgets and predictions."""
    told = []
    for order, named in ((None, True), (ORDER, labels)):
        result = pair_of(order, named)["a"]
        places = range(90) if order is None else order
        told.append([
            result.confidence_intervals().to_csv(),
            result.confidence_intervals(method="percentile", clusters="source").to_csv(),
            result.by("part", k=5).table.to_csv(),
            repr(result.budget_to_recall(0.3, n_resamples=500)),
            result.predicts([((7 * q) % 11) + len(systems(90)[0][q]) for q in places],
                            n_resamples=200).table.to_csv(),
        ])  # fmt: skip
    assert told[0] == told[1]


@few_queries
def test_a_history_is_the_same_in_every_order():
    """Four nights and a new one, each in an order of its own."""
    rng, found = np.random.default_rng(5), systems(90, 5)
    reports = []
    for shuffled in (False, True):
        *runs, new = (
            made(one, rng.permutation(90).tolist() if shuffled else None) for one in found
        )
        history = History("runs", tuple(
            HistoryRun(str(night), run, run.made) for night, run in enumerate(runs)
        ), ("ndcg@5",))  # fmt: skip
        report = history.check(new, metric=METRICS[:5], n_resamples=500, by="part")
        reports.append([report.gates, *map(numbers, report.comparisons[0].differences)])
    assert reports[0] == reports[1]


def test_a_calibration_is_the_same_in_every_order():
    """Pairs of texts, of which some have the same similarity and another label."""
    rng = np.random.default_rng(6)
    words = [f"w{i}" for i in range(8)]
    pairs = [
        (" ".join(words), " ".join(words[: int(n)]), bool(rng.random() < n / 8))
        for n in rng.integers(1, 9, 40)
    ]
    found = [calibrate("rouge1", one, n_resamples=300) for one in (pairs, pairs[::-1])]
    assert repr(found[0]) == repr(found[1])
    assert found[0].interval == found[1].interval
