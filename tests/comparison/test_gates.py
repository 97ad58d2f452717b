"""Gates: floors, drops against a baseline, and what is refused."""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from reference import no_advice
from refusals import blamed
from systems import asked, few_queries, first, only, result_of, share_shown

from krag_eval import (
    Conventions,
    EvaluationResult,
    GateFailedError,
    GateReport,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
    compare,
)
from krag_eval.comparison.comparison import compared
from krag_eval.comparison.gates import Gate, parse_floor
from krag_eval.errors import InvalidInput
from krag_eval.intervals.intervals import check_sampling


def gate_of(new, old, metric="mrr@5", **options):
    """Return the report of a result held against another one, and the only condition."""
    report = new.check(baseline=old, metric=metric, **options)
    (gate,) = report.gates
    return report, gate


def outcome_of_ranks(new, old, **options):
    """Return what becomes of the mean rank of two systems that find items at these ranks."""
    report, gate = gate_of(result_of(new), result_of(old), "mean_rank@10", **options)
    return report.outcome, gate.reason


# --- floors ----------------------------------------------------------------------------------


def test_floors_that_hold():
    """30 of 40 is 0.75, and a floor of exactly that is no obstacle."""
    report = first(30).check({"macro_recall@5": 0.75, "mrr@1": 0.7})
    assert report.passed
    assert report
    assert report.failures == []
    report.raise_if_failed()


def test_a_floor_that_is_broken():
    """The reason is one line with both numbers; all of them can be raised."""
    report = first(30).check({"macro_recall@5": 0.8, "mrr@1": 0.7, "ndcg@1": 0.9})
    assert not report
    assert report.failures == [
        "macro_recall@5 is 0.7500, below the floor of 0.8",
        "ndcg@1 is 0.7500, below the floor of 0.9",
    ]
    assert repr(report).split("\n")[2] == "passed: mrr@1 is 0.7500, at or above the floor of 0.7"
    with pytest.raises(GateFailedError) as raised:
        report.raise_if_failed()
    assert isinstance(raised.value, AssertionError)
    assert str(raised.value) == "\n".join(report.failures)


def test_a_value_and_its_floor_never_look_alike():
    """79,999 of 100,000 would be rounded to 0.8, and six digits of a floor of 0.750000001 to 0.75.

    Where both are equal, it holds: averages are correctly rounded, and 1/3 is the float 1/3.
    """
    actual, predicted = [["a"]] * 100_000, [["a"]] * 79_999 + [["x"]] * 20_001
    many = OfflineRetrievalEvaluator(actual, predicted).evaluate(1)
    assert many.check({"mrr@1": 0.8}).failures == ["mrr@1 is 0.79999, below the floor of 0.8"]
    above = first(30).check({"mrr@1": 0.75 + 1e-9})
    assert above.failures == ["mrr@1 is 0.7500, below the floor of 0.750000001"]
    assert result_of([1], 3).check({"macro_recall@10": 1 / 3})


def test_floors_can_be_written_as_text():
    """As on the command line; one or several."""
    assert first(30).check("macro_recall@5=0.75")
    assert not first(30).check(["macro_recall@5=0.75", "mrr@1=0.76"])


def test_the_floor_of_a_mean_rank_is_a_ceiling():
    """Ranks 1, 2 and 6: 3 on average; lower is better, and where nothing is found, it fails."""
    result = result_of([1, 2, 6])
    assert result.check({"mean_rank@10": 3})
    assert result.check({"mean_rank@10": 2.5}).failures == ["mean_rank@10 is 3.0000, above 2.5"]
    undefined = result_of([0, 0]).check({"mean_rank@10": 5})
    assert undefined.failures == ["mean_rank@10 is undefined: nothing was found"]


def test_a_floor_of_the_rejection_rate():
    """It stands in the result, and so it can be gated on."""
    result = OfflineRetrievalEvaluator(
        [["a"], [], []], [["a"], [], ["x"]], no_ground_truth="skip"
    ).evaluate(5)
    assert result.check({"rejection_rate@5": 0.5})
    assert not result.check({"rejection_rate@5": 0.6})


def test_the_ends_of_the_range_are_floors_too():
    """0 for what must only be defined, 1 for what must be perfect; 1 is the best rank.

    Where repeats are rewarded, scores pass 1, and nobody knows the range of one's own metric.
    """
    assert first(40).check({"mrr@5": 0, "macro_recall@5": 1, "mean_rank@5": 1})
    assert not first(39).check({"mrr@5": 1})
    every = Conventions(credit="every")
    repeated = OfflineRetrievalEvaluator([["a"]], [["a", "a"]], conventions=every).evaluate(2)
    assert repeated.check({"map@2": 2.0})
    cost = Metric("cost", lambda relevance, k, conventions: relevance.n_retrieved * 30.0, "cost")
    assert result_of([1], evaluated={"metrics": [cost]}).check({"cost@10": 300})


def test_nothing_to_check_is_refused():
    """A gate that checks nothing is open."""
    with pytest.raises(InvalidInput) as refused:
        first(30).check({})
    assert str(refused.value.fix) == "give floors=…, or baseline=… and metric=…"


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("macro_recall@5=0.8", ("macro_recall@5", 0.8)),
        (" mrr@all = 1 ", ("mrr@all", 1.0)),
        ("mean_rank@10=2.5e0", ("mean_rank@10", 2.5)),
    ],
)
def test_a_floor_is_read(text, parsed):
    """Spaces do not matter."""
    assert parse_floor(text) == parsed


# --- drops -----------------------------------------------------------------------------------


@few_queries
@pytest.mark.parametrize(
    ("new", "old", "options", "outcome", "told"),
    [
        # 0.025 where 0.03 is allowed; 0.75 - 0.70 is a little more than 0.05 in floating point.
        (29, 30, {"max_drop": 0.03}, "passed", "mrr@5 went from 0.7500 to 0.7250, no worse than "
         "the allowed 0.03; these queries cannot rule out a drop of up to 0.0750"),
        (28, 30, {"max_drop": 0.05}, "passed", "no worse than the allowed 0.05"),
        # Where no query differs, 1 − 0.025^(1/40) of them might; a rise passes, however large.
        (30, 30, {}, "passed", "cannot rule out a drop of up to 0.0881"),
        (40, 30, {}, "passed", "these queries rule out any drop"),
        (30, 10, {}, "passed", "went from 0.2500 to 0.7500"),
        # Twenty queries of forty are more than chance.
        (10, 30, {"max_drop": 0.02}, "failed", "mrr@5 went from 0.7500 to 0.2500, worse by 0.5000 "
         "where 0.02 is allowed (one-sided p < 0.001; 95 % interval of the difference -"),
        # At a level of 50 % three of forty are so, too; at 99.99 % they are not.
        (27, 30, {"level": 0.5}, "failed", "50 % interval"),
        (27, 30, {"level": 0.9999}, "inconclusive", "99.99 % interval"),
        # Seven losses, where 0.15 is allowed: a drop of 0.175, of which 0.025 is chance. Where 0.01
        # is: sign flips of 33 · 0.01 and 7 · -0.99 show the rest of it.
        (23, 30, {"max_drop": 0.15}, "inconclusive", "may be chance"),
        (23, 30, {"max_drop": 0.01}, "failed", "0.01 is allowed"),
        # Four losses of four have p = 1 / 2⁴ = 0.0625; five are the fewest that can be shown, with
        # one of 32 flips as bad, of which a comparison, in either direction, has two.
        (0, 4, {"of": 4}, "inconclusive", "4 queries can show no drop; it takes 5 at least"),
        (0, 5, {"of": 5}, "failed", "one-sided p = 0.031"),
        (0, 5, {"of": 5}, "failed", "no difference is shown (p = 0.062)"),
        (8, 13, {"of": 14}, "failed", "one-sided p = 0.031"),
        (0, 6, {"of": 6}, "failed", "one-sided p = 0.016"),
        (1, 6, {"of": 7}, "failed", "one-sided p = 0.031"),
        (2, 6, {"of": 7}, "inconclusive", "7 queries can show drops from"),
    ],
)  # fmt: skip
def test_drops(new, old, options, outcome, told):
    """A drop fails that is shown to be larger than allowed; one that may be chance does not."""
    options = {"of": 40, **options}
    of = options.pop("of")
    report, gate = gate_of(first(new, of), first(old, of), **options)
    assert (report.outcome, gate.outcome) == (outcome, outcome)
    assert told in gate.reason
    assert "\n" not in gate.reason
    assert report.failures == [gate.reason] * (outcome == "failed")


def test_more_may_be_allowed_than_there_is_only_where_there_is_no_end():
    """1 is the whole range of a share; ranks and scores beyond 1 have room for more."""
    assert first(40).check(baseline=first(40), metric="recall@5", max_drop=1)
    assert first(40).check(baseline=first(40), metric="mean_rank@5", max_drop=2)
    every = OfflineRetrievalEvaluator(
        [["a"]] * 30, [["a", "a"]] * 30, conventions=Conventions(credit="every")
    )
    assert every.evaluate(2).check(baseline=every.evaluate(2), metric="map@2", max_drop=2)


def test_a_gate_on_zeros_is_pointed_out():
    """It holds, and protects nothing; a 0 beside matches is a 0 like any other."""
    nothing = first(0)
    with pytest.warns(KragEvalWarning, match="protects nothing") as caught:
        assert first(0).check(baseline=nothing, metric="recall@5")
    (warning,) = (one.message for one in caught if "protects" in str(one.message))
    assert warning.fix.settings == (("matcher", "coverage"),)
    with warnings.catch_warnings(record=True, action="always") as record:
        first(1).check(baseline=nothing, metric="recall@5")
    assert not any("protects" in str(one.message) for one in record)


@pytest.mark.parametrize("made", ["as it is", None])
def test_a_result_is_not_held_against_itself(tmp_path, made):
    """Neither the object, nor what was saved of it, also before files said when they were made."""
    result = first(40) if made else replace(first(40), made=None)
    result.to_json(tmp_path / "a.json")
    for baseline in (result, EvaluationResult.from_json(tmp_path / "a.json")):
        with blamed("baseline"):
            result.check(baseline=baseline, metric="recall@5")
    another = first(40)
    assert another == result
    assert "identical values" in result.check(baseline=another, metric="recall@5").gates[0].reason
    swapped = result_of([0, *[1] * 39], k=(1, 5))
    other = first(39).check(baseline=swapped, metric="recall@5", max_drop=1)
    assert "from 0.9750 to 0.9750, no worse" in other.gates[0].reason


def test_results_are_made_one_after_the_other():
    """In one millisecond, too: no two of a process are the same run."""
    made = [first(1, 2).made for _ in range(50)]
    assert made == sorted(set(made))


def test_a_larger_drop_that_may_be_chance_is_inconclusive():
    """One query of forty: it holds, and says first what so many queries can show.

    The paired differences are one -1 and 39 zeros. It takes five losses and no win to be shown, or
    seven and one, and so on; a drop by which four in five such nights have them is worked out here
    from binomials, with as much spread around it as the pilot has.
    """
    report, gate = gate_of(first(29), first(30))
    assert (report.passed, bool(report), report.outcome) == (True, True, "inconclusive")
    assert (gate.passed, gate.outcome, report.failures) == (True, "inconclusive", [])
    assert repr(report).startswith("inconclusive: mrr@5 went from 0.7500 to 0.7250, worse by 0.025")
    sd = math.sqrt(1 / 40)
    detectable = float(gate.reason.partition("show drops from ")[2].partition(" on")[0])
    assert (
        share_shown(40, detectable + 5e-5, sd, 0.05)
        >= 0.8
        > share_shown(40, detectable - 5e-5, sd, 0.05)
    )
    needed = int(gate.reason.rpartition(" about ")[2])
    assert share_shown(needed, 0.025, sd, 0.05) >= 0.8 > share_shown(needed - 1, 0.025, sd, 0.05)
    report.raise_if_failed()


def test_what_is_inconclusive_fails_if_the_gate_is_strict():
    """Its outcome stays what it is."""
    report, _ = gate_of(first(29), first(30), strict=True)
    assert (report.passed, report.outcome, len(report.failures)) == (False, "inconclusive", 1)
    with pytest.raises(GateFailedError):
        report.raise_if_failed()
    assert first(30).check(baseline=first(30), metric="mrr@5", strict=True)


def test_a_drop_that_chance_explains_by_the_test_of_the_comparison():
    """Four losses of 200 and no win: p = 2 / 2⁴, although the interval excludes 0."""
    new, old = first(146, 200), first(150, 200)
    row = only(compare({"old": old, "new": new}, "mrr@5", n_resamples=1_000))
    assert (row.p_holm, row.ci_high < 0) == (0.125, True)
    assert gate_of(new, old)[1].outcome == "inconclusive"


def test_what_did_not_pass_is_told_first():
    """Failed, inconclusive, passed; the gates themselves stay as they were asked for."""
    report = first(29).check({"mrr@5": 0.1, "mrr@1": 0.9}, baseline=first(30), metric="ndcg@5")
    assert [(gate.metric, gate.outcome) for gate in report.gates] == [
        ("mrr@5", "passed"),
        ("mrr@1", "failed"),
        ("ndcg@5", "inconclusive"),
    ]
    told = [line.split()[0] for line in repr(report).splitlines()]
    assert told == ["failed:", "inconclusive:", "passed:"]
    assert report.outcome == "failed"


def test_several_metrics_are_corrected_together():
    """Five losses have p = 1 / 2⁵: enough alone, and not for one of two that differ alike."""
    new, old = first(25), first(30)
    assert gate_of(new, old)[1].outcome == "failed"
    both = new.check(baseline=old, metric=["mrr@5", "recall@5"])
    assert [gate.outcome for gate in both.gates] == ["inconclusive"] * 2


# --- the gate and the comparison ----------------------------------------------------------------


AVERAGES = ("ndcg@5", "macro_recall@5", "micro_recall@5", "micro_precision@5", "macro_f1@5",
            "micro_f1@5", "mean_rank@5")  # fmt: skip


def random_pair(rng):
    """Return two results over the same queries; the second loses some of what the first finds."""
    n = int(rng.choice([2, 3, 5, 6, 8, 12, 20, 40]))
    sizes = rng.integers(1, 4, n)
    actual = [[f"d{i}" for i in range(size)] for size in sizes]
    found, lost = rng.uniform(0.3, 1), rng.choice([0, 0.1, 0.3, 0.6])

    def lists(share):
        return [
            [*(one if rng.random() < share else f"? {place}" for place, one in enumerate(truth))]
            for truth in actual
        ]

    with no_advice():
        return [
            OfflineRetrievalEvaluator(actual, lists(one)).evaluate(5)
            for one in (found, found * (1 - lost))
        ]


@pytest.mark.filterwarnings("ignore")
def test_a_gate_fails_wherever_the_comparison_shows_a_loss():
    """210 random pairs, from two queries up; what fails with an allowance fails with less.

    It also fails where only the one-sided question is answered, and says so.
    """
    rng, n_failed, n_alone = np.random.default_rng(0), 0, 0
    for number in range(210):
        old, new = random_pair(rng)
        metric = AVERAGES[number % len(AVERAGES)]
        drops = sorted([0.0, *rng.uniform(0, 0.3, 2).tolist()])
        gates = [gate_of(new, old, metric, max_drop=drop, n_resamples=100)[1] for drop in drops]
        failed = [gate.outcome == "failed" for gate in gates]
        found = compare({"old": old, "new": new}, metric, n_resamples=100)
        row = only(found)
        is_worse = row.is_shown() and row.better == "old"
        if is_worse or math.isnan(row.value_b) or row.shows_fewer():
            assert failed[0], (number, metric)
        elif failed[0] and not row.p_share_holm < 0.1:
            # A swap and its mirror are as extreme: in either direction p is at least twice as much.
            assert row.better == "old"
            assert row.p_permutation < 0.1
            assert "in either direction" in gates[0].reason
            n_alone += 1
        worse = "new is worse than old" if row.is_of_more else "old is better than new"
        assert (f"{worse} on {metric} by" in found.summary()) == is_worse
        assert failed == sorted(failed, reverse=True), (number, metric, drops)
        n_failed += failed[0]
    assert 20 < n_failed < 130  # neither verdict is rare
    assert n_alone


def test_a_slice_fails_by_the_test_of_the_slice():
    """Of two slices one lost five of 20: enough alone, and not after Holm's correction."""
    tags = {"part": ["x"] * 20 + ["y"] * 20}
    old, new = first(40, tags=tags), first(35, tags=tags)
    for found, expected in ((new, "inconclusive"), (first(34, tags=tags), "failed")):
        report = found.check(baseline=old, metric="mrr@5", max_drop=0, by="part")
        of_slices = [gate.outcome for gate in report.gates if gate.slice]
        assert of_slices == ["passed", expected]


@few_queries
@pytest.mark.parametrize(("metric", "of_means"), [("macro_recall", True), ("micro_recall", False)])
def test_the_test_of_an_allowance_agrees_with_enumeration(metric, of_means):
    """Every item of the first result is lowered by the same share, then all swaps are tried.

    Of a mean, each query's value is 0.1 lower; of a ratio, its numerator is 0.1 times its
    denominator lower.
    """
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 5, 12)
    old = np.minimum(sizes, rng.integers(1, 5, 12))
    new = np.maximum(old - rng.integers(0, 4, 12), 0)
    results = {
        name: result_of([[*range(1, n + 1)] for n in found], sizes.tolist())
        for name, found in (("a", old), ("b", new))
    }
    weights = np.ones(12) if of_means else sizes
    before, after = ((found / sizes if of_means else found) for found in (old, new))
    differences = after - (before - 0.1 * weights)
    signs = np.array(list(itertools.product([1, -1], repeat=12)))
    exact = np.mean(signs @ differences <= differences.sum() + 1e-9)
    row = only(compared(results, f"{metric}@10", check_sampling(), max_drop=0.1))
    assert row.p_worse == pytest.approx(exact, rel=1e-12)
    either = after - before  # a comparison asks for no allowance, and in either direction
    exact = np.mean(np.abs(signs @ either) >= abs(either.sum()) - 1e-9)
    assert row.p_permutation == pytest.approx(exact, rel=1e-12)


# --- averages of the queries that have a value ---------------------------------------------------


@pytest.mark.parametrize(
    ("new", "old", "outcome", "told"),
    [
        # 60 of 60 at rank 3 became one at rank 1: the share with a rank fell, and that fails.
        ([1] + [0] * 59, [3] * 60, "failed", "of all queries 100.0% had one, now 1.7%"),
        # 58 of 60, at better ranks: no loss is shown, and nobody is called as good.
        ([1] * 58 + [0] * 2, [3] * 60, "inconclusive", "the 58 queries where both have a value"),
        # The baseline found one at rank 1; the new one finds all, that one at rank 1 too.
        ([1] + [5] * 59, [1] + [0] * 59, "passed", "on the 1 query where both have a value"),
        # Each found what the other did not, as many.
        ([0] * 20 + [2] * 20, [1] * 20 + [0] * 20, "inconclusive", "no query with a value in both"),
        # It drops by rising: from 1 to 4, or to 2 in every second query.
        ([4] * 40, [1] * 40, "failed", "went from 1.0000 to 4.0000, worse by 3.0000"),
        ([1] * 40, [4] * 40, "passed", "went from 4.0000 to 1.0000"),
        ([1, 2] * 20, [1] * 40, "failed", "worse by 0.5000"),
        # It became undefined, or was.
        ([0] * 40, [1] * 40, "failed", "mean_rank@10 is undefined: nothing was found"),
        ([3] * 40, [0] * 40, "passed", "the baseline had none"),
    ],
)
def test_mean_ranks(new, old, outcome, told):
    """A mean rank is of the queries that both find, and the share that is found counts, too."""
    found, reason = outcome_of_ranks(new, old)
    assert found == outcome
    assert told in reason


# --- which queries -------------------------------------------------------------------------------


def test_a_set_of_questions_that_grew_is_checked_on_what_both_have():
    """Of 50 and 60 questions they share 40, of which 10 were lost; floors are of all 60."""
    old = asked(range(50), range(50))
    new = asked(range(10, 70), [*range(20, 50), *range(60, 70)])
    with pytest.raises(InvalidInput) as refused:
        new.check(baseline=old, metric="mrr@1")
    assert refused.value.fix.settings == (("on", "common"),)
    report = new.check({"mrr@1": 0.6}, baseline=old, metric="mrr@1", max_drop=0.1, on="common")
    assert [gate.passed for gate in report.gates] == [True, False]
    assert "0.6667" in report.gates[0].reason  # 40 of 60
    assert "from 1.0000 to 0.7500 on the 40 queries that both have" in report.gates[1].reason
    assert report.n_compared == 40
    assert report.left_out == {
        "baseline": [f"question {i}" for i in range(10)],
        "new": [f"question {i}" for i in range(50, 70)],
    }
    assert repr(report).splitlines()[-1] == report.note
    assert "10 of baseline" in report.note
    assert "'question 52' and 17 more" in report.note
    assert isinstance(hash(report), int)


def test_what_both_have_may_be_everything():
    """Then there is nothing to note, in whatever order the questions were asked."""
    old, new = asked(range(50), range(50)), asked(range(50), range(40))
    shuffled = asked(range(49, -1, -1), range(40), k=[5, 1, 10])
    reports = [one.check(baseline=old, metric="mrr@1", on="common") for one in (new, shuffled)]
    assert reports[0] == reports[1]
    assert (reports[0].left_out, reports[0].note, reports[0].n_compared) == ({}, "", 50)


def test_a_misspelled_argument_is_refused():
    """Otherwise a baseline that was meant would not be looked at."""
    with pytest.raises(TypeError, match="baselin"):
        first(30).check({"mrr@5": 0.5}, baselin=first(30))


def test_a_report_is_its_gates():
    """Nothing else, so reports compare."""
    gate = Gate("mrr@5", True, "fine")
    assert GateReport((gate,)) == GateReport((gate,))
    assert GateReport((gate,)) != GateReport(())
