"""Plans: the number of questions, what a pilot can show, and what cannot be planned.

Expected values come from the normal distribution by scipy.stats, written out here.
"""

import json
import math

import numpy as np
import pytest
from reference import no_advice
from refusals import blamed
from scipy import stats
from systems import result_of, share_shown
from test_clusters import FEW, alike, both, error_of_inspect_ai, found_of, recalls, sampled

from krag_eval import KragEvalWarning, compare, plan_questions
from krag_eval.comparison.planning import QuestionPlan
from krag_eval.core.language import LANGUAGES
from krag_eval.intervals.intervals import Spread

# z of 0.975 and of 0.8, as any table has them.
Z_ALPHA, Z_POWER = 1.959963985, 0.841621234


def compared(seed=1, metric="recall@5", **options):
    return compare(both(sampled(seed, 60)), metric, **FEW, **options)


def shows(n, sd, detect, alpha):
    """Return how often n differences show one; the far tail is left out.

    Swaps turn signs, and the squares of the differences are sd² + detect² on average: that is the
    spread which the test measures by.
    """
    beyond = stats.norm.isf(alpha / 2) * math.hypot(sd, detect) - detect * math.sqrt(n)
    return float(stats.norm.sf(beyond / sd))


def test_by_hand():
    """Sd 0.5 and a difference of 0.1: (1.95996 · √0.26 + 0.84162 · 0.5)² / 0.01 = 201.7, so 202.

    Of the pilot's 100 the difference d solves 1.95996 · √(0.25 + d²) + 0.42081 = 10 d; of 400,
    20 d.
    """
    plan = QuestionPlan("mrr@10", 0.1, 0.8, 0.05, Spread(0.5, 100, 0.05))
    assert plan.questions == 202
    for n, found in ((100, plan.detectable), (400, plan.detectable_with(400))):
        left = Z_ALPHA * math.hypot(0.5, found) + Z_POWER * 0.5
        assert left == pytest.approx(math.sqrt(n) * found, rel=1e-8)


def of_hits(*counts):
    """Return a comparison of a hit rate: queries that were lost, won and stayed."""
    lost, won, same = counts
    old, new = [1] * lost + [0] * won + [1] * same, [0] * lost + [1] * won + [1] * same
    with no_advice():
        return compare(result_of(old), result_of(new), metric="hit_rate@10", **FEW)


@pytest.mark.parametrize("counts", [(6, 10, 84), (20, 24, 56), (3, 3, 194)])
@pytest.mark.parametrize(("detect", "alpha"), [(0.1, 0.05), (0.08, 0.01)])
def test_of_a_hit_rate_the_plan_has_the_power_of_the_exact_test(counts, detect, alpha):
    """Summed over all wins and losses, as many as planned show it, and one question less do not."""
    plan = plan_questions(of_hits(*counts), detect=detect, alpha=alpha)
    n, sd = plan.questions, plan.spread.sd
    assert plan.spread.unit == 1
    assert share_shown(n, detect, sd, alpha / 2) >= 0.8 > share_shown(n - 1, detect, sd, alpha / 2)
    assert share_shown(n + 1, detect, sd, alpha / 2) >= 0.8
    assert share_shown(plan.spread.n, plan.detectable, sd, alpha / 2) == pytest.approx(
        0.8, abs=1e-4
    )


def test_the_planned_power_is_that_of_the_comparison():
    """Drawn and compared 400 times: four in five are shown, within three standard errors."""
    plan = plan_questions(of_hits(6, 10, 84), detect=0.1)
    rng, differing = np.random.default_rng(3), plan.spread.sd**2 + 0.1**2
    chances = [(differing - 0.1) / 2, (differing + 0.1) / 2, 1 - differing]
    shown = 0
    for _ in range(400):
        lost, won, same = rng.multinomial(plan.questions, chances).tolist()
        (row,) = of_hits(lost, won, same).differences
        shown += row.is_shown() and row.difference > 0
    assert shown / 400 == pytest.approx(0.8, abs=3 * math.sqrt(0.8 * 0.2 / 400))


@pytest.mark.parametrize(
    ("detect", "power", "alpha"), [(0.02, 0.8, 0.05), (0.1, 0.9, 0.01), (0.5, 0.5, 0.2)]
)
def test_so_many_questions_have_the_power_and_one_less_has_not(detect, power, alpha):
    """By the distribution of the test, not by the formula for the number."""
    plan = plan_questions(compared(), detect=detect, power=power, alpha=alpha)
    sd = float(recalls(sampled(1, 60))[0].std(ddof=1))
    assert plan.spread.sd == pytest.approx(sd)
    assert shows(plan.questions, sd, detect, alpha) >= power
    assert shows(plan.questions - 1, sd, detect, alpha) < power
    assert shows(plan.spread.n, sd, plan.detectable, alpha) == pytest.approx(power)


def test_asking_for_what_the_pilot_can_show_takes_the_pilot():
    """The two formulas are one."""
    pilot = compared()
    plan = plan_questions(pilot, detect=0.1)
    assert plan_questions(pilot, detect=plan.detectable).questions == plan.spread.n
    assert plan.detectable_with(plan.questions) == pytest.approx(0.1, rel=0.01)


def test_clusters_take_more_by_the_design_effect():
    """Those of the comparison, or those named."""
    differences, sources = recalls(sampled(1, 60))
    error = error_of_inspect_ai(differences, sources)
    effect = error**2 / (differences.var(ddof=1) / len(differences))
    plan = plan_questions(compared(clusters="source"), detect=0.05)
    assert plan.design_effect == pytest.approx(effect)
    sd = differences.std(ddof=1)
    alone = (Z_ALPHA * math.hypot(sd, 0.05) + Z_POWER * sd) / 0.05
    assert plan.questions == math.ceil(effect * alone**2)
    assert shows(len(differences) / effect, sd, plan.detectable, 0.05) == pytest.approx(0.8)
    assert plan == plan_questions(compared(), detect=0.05, clusters="source")
    assert (plan.clusters, plan.spread.n_clusters) == ("source", 60)
    assert plan_questions(compared(), detect=0.05).design_effect == 1


@pytest.mark.parametrize("n_systems", [1, 2])
def test_a_plan_without_clusters_mentions_those_that_matter(n_systems):
    """All of a cluster do alike: the design effect of 30 of 5 is 5 · (30/29) · (149/150)."""
    results = list(alike().values())
    pilot = results[0] if n_systems == 1 else compare(*results, metric="recall@5", **FEW)
    plan = plan_questions(pilot, "recall@5", detect=0.05)
    assert plan.dependent == {"source": pytest.approx(5 * 30 / 29 * 149 / 150)}
    for language in LANGUAGES:
        assert plan.summary(language).splitlines()[-1].count("source") == 2
    assert plan.to_dict()["dependent"] == plan.dependent
    clustered = plan_questions(pilot, "recall@5", detect=0.05, clusters="source")
    assert clustered.dependent == clustered.to_dict()["dependent"] == {}
    assert clustered.questions == pytest.approx(plan.questions * plan.dependent["source"], abs=5)


@pytest.mark.parametrize(("given", "correlation"), [(None, 0.5), (0.8, 0.8), (0, 0), (-1, -1)])
def test_one_result_takes_a_correlation(given, correlation):
    """The variance of a difference of equals is 2 · (1 - correlation) times theirs; it is said."""
    drawn = sampled(1, 60)
    values = np.array(drawn["a"]) / np.array(drawn["n_items"])
    plan = plan_questions(both(drawn)["a"], "recall@5", detect=0.05, correlation=given)
    assert plan.spread.sd == pytest.approx(values.std(ddof=1) * math.sqrt(2 * (1 - correlation)))
    assert plan.correlation == correlation
    assert "assumed" in plan.summary()


def test_a_micro_average_goes_by_the_jackknife():
    """Leaving out each query in turn, written out; its error is that of the bootstrap, nearly."""
    drawn = sampled(3, 80)
    a, b, m = (np.array(drawn[name]) for name in ("a", "b", "n_items"))
    n = len(m)
    without = np.array([(np.delete(b - a, i)).sum() / np.delete(m, i).sum() for i in range(n)])
    error = math.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    plan = plan_questions(compare(both(drawn), "micro_recall@5", **FEW), detect=0.05)
    assert plan.spread.standard_error == pytest.approx(error)
    draws = np.random.default_rng(0).integers(0, n, (4_000, n))
    resampled = (b - a)[draws].sum(axis=1) / m[draws].sum(axis=1)
    assert plan.spread.standard_error == pytest.approx(resampled.std(), rel=0.05)


def test_a_rank_of_what_was_found_can_be_planned():
    """Mean rank is undefined for some queries, and has no upper end to a difference."""
    results = [result_of(ranks * 15) for ranks in ([1, 2, 0, 3], [2, 2, 1, 4])]
    plan = plan_questions(compare(results, "mean_rank@10", **FEW), detect=1.5)
    assert plan.questions >= 2
    assert math.isfinite(plan.detectable)


def test_the_metric_may_be_left_out():
    """The one that was compared; of a result, nDCG at its deepest cutoff without 10."""
    assert plan_questions(compared(), detect=0.1).metric == "macro_recall@5"
    assert plan_questions(both(sampled(1, 60))["a"], detect=0.1).metric == "ndcg@5"
    assert plan_questions(compared(), "ndcg@5", detect=0.1).metric == "ndcg@5"


def test_a_pilot_that_tells_nothing_is_refused():
    """No query differs, all do alike, or within clusters all cancels out.

    In the last one, of each pair of questions one system finds the first and one the second.
    """
    pairs = [i // 2 for i in range(40)]
    same, other = (found_of(one * 20, pairs) for one in ([1, 0], [0, 1]))
    for pilot, clusters in (
        (compare(same, same, metric="recall@5", **FEW), None),
        (found_of([1] * 40, range(40)), None),
        (compare(same, other, metric="recall@5", **FEW), "source"),
    ):
        with blamed("pilot") as refused:
            plan_questions(pilot, "recall@5", detect=0.1, clusters=clusters)
    assert "cluster" in refused.value.problem
    # Halves, not zeros and ones, whose interval has a width by Wilson's rule.
    halves = found_of([1, 2] * 20, pairs, 2)
    with pytest.warns(KragEvalWarning, match="All clusters have the same value"):
        halves.confidence_intervals(clusters="source", **FEW)


def test_a_small_pilot_warns():
    """Its standard deviation is a guess."""
    with pytest.warns(KragEvalWarning, match="rests on 10 queries"):
        plan_questions(found_of([1, 0] * 5, range(10)), "recall@5", detect=0.1)


def test_a_plan_is_numbers_words_and_a_table():
    """What it takes comes first; JSON takes all of it."""
    plan = plan_questions(compared(clusters="source"), detect=0.05)
    content = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert content["questions"] == plan.questions
    assert content["systems"] == ["a", "b"]
    takes, shown, *grounds = plan.summary().splitlines()
    assert f"takes {plan.questions:,} questions" in takes
    assert f"pilot's {plan.spread.n} questions" in shown
    assert len(grounds) == 2
    assert repr(plan) == plan.summary()


def test_the_curve_is_what_so_many_questions_can_show():
    """It runs through the pilot and the plan, and has the power everywhere."""
    plan = plan_questions(compared(), detect=0.05)
    curve = plan.curve
    assert curve["questions"].is_monotonic_increasing
    assert curve["questions"].iloc[0] < plan.spread.n < plan.questions
    assert curve["questions"].iloc[-1] > plan.questions
    for n, detectable in curve.itertuples(index=False):
        assert shows(n, plan.spread.sd, detectable, 0.05) == pytest.approx(0.8)
    assert plan.table.equals(curve)


@pytest.mark.parametrize(("language", "label"), [("en", "Questions"), ("ko", "질문 수")])
def test_the_picture_has_both_points(language, label):
    """The pilot hollow, the plan filled, what to detect as a line."""
    from matplotlib import pyplot

    plan = plan_questions(compared(), detect=0.05)
    ax = plan.plot(language=language)
    _, pilot, asked, line = ax.lines
    assert (pilot.get_xdata(), pilot.get_ydata()) == ([plan.spread.n], [plan.detectable])
    assert (asked.get_xdata(), asked.get_ydata()) == ([plan.questions], [0.05])
    assert set(line.get_ydata()) == {0.05}
    assert ax.get_xlabel() == label
    pyplot.close(ax.figure)
