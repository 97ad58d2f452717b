"""Gates: floors, drops against a baseline, and what is refused."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from reference import no_advice

from krag_eval import Conventions, EvaluationResult, Metric, OfflineRetrievalEvaluator, compare
from krag_eval.errors import InvalidInput, KragEvalWarning, Refusal
from krag_eval.statistics.comparison import compared
from krag_eval.statistics.gates import Gate, GateFailedError, GateReport, parse_floor
from krag_eval.statistics.intervals import check_sampling


def found_in(first_n, n_queries=40, k=(1, 5), **options):
    """Return a result in which the first so many queries find their one item at rank 1."""
    actual = [[f"passage {i}"] for i in range(n_queries)]
    predicted = [truth if i < first_n else ["?"] for i, truth in enumerate(actual)]
    with no_advice():
        return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(k)


def at_ranks(ranks, **options):
    """Return a result in which each query finds its one item at the given rank."""
    predicted = [[*["?"] * (rank - 1), "a"] if rank else ["?"] for rank in ranks]
    with no_advice():
        return OfflineRetrievalEvaluator([["a"]] * len(ranks), predicted, **options).evaluate(10)


# --- floors ----------------------------------------------------------------------------------


def test_floors_that_hold():
    """30 of 40 is 0.75, and a floor of exactly that is no obstacle."""
    report = found_in(30).check({"macro_recall@5": 0.75, "mrr@1": 0.7})
    assert report.passed
    assert report
    assert report.failures == []
    report.raise_if_failed()


def test_a_floor_that_is_broken():
    """The reason is one line with both numbers."""
    report = found_in(30).check({"macro_recall@5": 0.8, "mrr@1": 0.7})
    assert not report
    assert report.failures == ["macro_recall@5 is 0.7500, below the floor of 0.8"]
    assert repr(report).split("\n") == [
        "failed: macro_recall@5 is 0.7500, below the floor of 0.8",
        "passed: mrr@1 is 0.7500, at or above the floor of 0.7",
    ]


def test_a_failure_can_be_raised():
    """As an ``AssertionError`` with all the reasons."""
    report = found_in(30).check({"macro_recall@5": 0.8, "ndcg@1": 0.9})
    with pytest.raises(GateFailedError, match=r"recall@5 is 0\.75.*\nndcg@1 is 0\.75") as info:
        report.raise_if_failed()
    assert isinstance(info.value, AssertionError)


def test_a_value_just_below_its_floor_does_not_look_like_it():
    """Rounded to four digits it would."""
    actual, predicted = [["a"]] * 100_000, [["a"]] * 79_999 + [["x"]] * 20_001
    result = OfflineRetrievalEvaluator(actual, predicted).evaluate(1)
    assert result.check({"mrr@1": 0.8}).failures == ["mrr@1 is 0.79999, below the floor of 0.8"]


def test_a_floor_just_above_a_value_does_not_look_like_it():
    """30 of 40 is 0.75, and six digits of the floor are 0.75 as well."""
    assert found_in(30).check({"mrr@1": 0.75 + 1e-9}).failures == [
        "mrr@1 is 0.7500, below the floor of 0.750000001"
    ]


def test_an_average_equal_to_its_floor_passes_whatever_the_digits():
    """Averages are correctly rounded: 1/3 is the float 1/3."""
    result = OfflineRetrievalEvaluator([["a", "b", "c"]], [["a"]]).evaluate(1)
    assert result.check({"macro_recall@1": 1 / 3})


def test_floors_can_be_written_as_text():
    """As on the command line; one or several."""
    result = found_in(30)
    assert result.check("macro_recall@5=0.75")
    assert not result.check(["macro_recall@5=0.75", "mrr@1=0.76"])


def test_the_floor_of_a_mean_rank_is_a_ceiling():
    """Ranks 1, 2 and 6: 3 on average; lower is better."""
    result = at_ranks([1, 2, 6])
    assert result.check({"mean_rank@10": 3})
    assert result.check({"mean_rank@10": 2.5}).failures == ["mean_rank@10 is 3.0000, above 2.5"]


def test_an_undefined_average_fails():
    """Nothing was found: there is no rank to be good enough."""
    report = at_ranks([0, 0]).check({"mean_rank@10": 5})
    assert report.failures == ["mean_rank@10 is undefined: nothing was found"]


def test_a_floor_of_the_rejection_rate():
    """It stands in the result, and so it can be gated on."""
    result = OfflineRetrievalEvaluator(
        [["a"], [], []], [["a"], [], ["x"]], no_ground_truth="skip"
    ).evaluate(5)
    assert result.check({"rejection_rate@5": 0.5})
    assert not result.check({"rejection_rate@5": 0.6})


def test_a_floor_works_on_a_result_read_from_a_file(tmp_path):
    """As it would in CI."""
    found_in(30).to_json(tmp_path / "result.json")
    assert EvaluationResult.from_json(tmp_path / "result.json").check({"ndcg@5": 0.75})


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("macro_recal@5", r"no average 'macro_recal'; did you mean 'macro_recall' or"),
        ("NDCG@5", r"no average 'NDCG'; did you mean 'ndcg'"),
        ("rejection_rate@5", "floors must be one of"),
        (
            "ndcg@10",
            "'ndcg@10' needs the cutoff 10, and 'the result' was evaluated at 1, 5; evaluate with",
        ),
        ("ndcg", "must be spelled with its cutoff, such as 'ndcg@10'"),
        ("ndcg@", "floors: 'ndcg@': the cutoff must be"),
        ("@5", "must be spelled with its cutoff"),
        (5, "must be spelled with its cutoff"),
    ],
)
def test_an_average_that_is_not_there_is_refused(metric, said):
    """Never passed over: a gate that checks nothing is open."""
    with pytest.raises(ValueError, match=said):
        found_in(30).check({metric: 0.5})


@pytest.mark.parametrize("floor", [80, -0.1, 1.01])
def test_a_floor_that_is_no_share_is_refused(floor):
    """80 is meant to be 0.8."""
    with pytest.raises(ValueError, match="floors: macro_recall@5 ranges from 0 to 1, got "):
        found_in(30).check({"macro_recall@5": floor})


@pytest.mark.parametrize("floor", [math.nan, math.inf, None, "0.8", True])
def test_a_floor_that_is_no_number_is_refused(floor):
    """Every comparison with NaN fails, which would look like a verdict."""
    with pytest.raises(
        Refusal, match=r"floors: macro_recall@5 (needs a number|ranges from 0 to 1), got "
    ):
        found_in(30).check({"macro_recall@5": floor})


def test_a_ceiling_below_the_best_rank_is_refused():
    """No rank is."""
    with pytest.raises(ValueError, match=r"floors: mean_rank@5 ranges from 1 to inf, got 0\.5"):
        found_in(30).check({"mean_rank@5": 0.5})


def test_a_floor_above_1_where_scores_can_pass_it():
    """Under the convention that rewards repeats."""
    result = OfflineRetrievalEvaluator(
        [["a"]], [["a", "a"]], conventions=Conventions(credit="every")
    ).evaluate(2)
    assert result.check({"map@2": 2.0})


def test_the_ends_of_the_range_are_floors_too():
    """0 for what must only be defined, 1 for what must be perfect; 1 is the best rank."""
    result = found_in(40)
    assert result.check({"mrr@5": 0, "macro_recall@5": 1, "mean_rank@5": 1})
    assert not found_in(39).check({"mrr@5": 1})


def test_a_floor_of_a_metric_of_one_s_own_may_be_any_number():
    """Its range is not known."""
    mine = Metric("cost", lambda relevance, k, conventions: relevance.n_retrieved * 30.0, "cost")
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1, metrics=[mine])
    assert result.check({"cost@1": 30})


def test_nothing_to_check_is_refused():
    """A gate that checks nothing is open."""
    for floors in (None, {}):
        with pytest.raises(InvalidInput) as refused:
            found_in(30).check(floors)
        assert str(refused.value.fix) == "give floors=…, or baseline=… and metric=…"


def test_a_drop_that_no_average_can_make_is_refused():
    """Such as 2 for 0.02; 1 is the whole range. Ranks and scores beyond 1 have room for more."""
    result = found_in(40)
    with pytest.raises(InvalidInput) as refused:
        result.check(baseline=result, metric="recall@5", max_drop=2)
    assert refused.value.argument == "max_drop"
    assert result.check(baseline=result, metric="recall@5", max_drop=1)
    assert result.check(baseline=result, metric="mean_rank@5", max_drop=2)
    every = OfflineRetrievalEvaluator(
        [["a"]] * 30, [["a", "a"]] * 30, conventions=Conventions(credit="every")
    ).evaluate(2)
    assert every.check(baseline=every, metric="map@2", max_drop=2)


def test_a_gate_on_zeros_is_pointed_out():
    """It holds, and protects nothing; a 0 beside matches is a 0 like any other."""
    nothing = found_in(0)
    with pytest.warns(KragEvalWarning, match="protects nothing") as caught:
        assert nothing.check(baseline=nothing, metric="recall@5")
    (warning,) = (one.message for one in caught if "protects" in str(one.message))
    assert warning.fix.settings == (("matcher", "coverage"),)
    some = found_in(1)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        some.check(baseline=nothing, metric="recall@5")
    assert not any("protects" in str(one.message) for one in record)


# --- floors as text --------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ndcg@10", "must be written as metric@k=number, such as 'ndcg@10=0.6', got 'ndcg@10'"),
        ("", "must be written as metric@k=number"),
        (0.8, "must be written as metric@k=number"),
        ("ndcg=0.6", "an average must be spelled with its cutoff"),
        ("ndcg@0=0.6", "floors: 'ndcg@0': the cutoff must be a whole number of at least 1"),
        ("ndcg@ten=0.6", "floors: 'ndcg@ten': the cutoff must be a whole number"),
        ("ndcg@10=", "a floor needs a number after the =, got 'ndcg@10='"),
        ("ndcg@10=60%", "a floor needs a number after the ="),
        ("ndcg@10=0.6=0.7", "a floor needs a number after the ="),
    ],
)
def test_a_text_that_is_no_floor_is_refused(text, said):
    """The message says what is missing."""
    with pytest.raises(ValueError, match=said):
        parse_floor(text)


# --- drops -----------------------------------------------------------------------------------


def test_a_drop_that_is_allowed_passes():
    """From 0.75 to 0.725: 0.025 where 0.03 is allowed."""
    report = found_in(29).check(baseline=found_in(30), metric="mrr@5", max_drop=0.03)
    assert repr(report) == (
        "passed: mrr@5 went from 0.7500 to 0.7250, no worse than the allowed 0.03; these queries "
        "cannot rule out a drop of up to 0.0750"
    )


def test_a_drop_of_exactly_what_is_allowed_passes():
    """0.75 - 0.70 is a little more than 0.05 in floating point."""
    report = found_in(28).check(baseline=found_in(30), metric="mrr@5", max_drop=0.05)
    assert "no worse than the allowed 0.05" in repr(report)


def test_a_larger_drop_that_may_be_chance_is_inconclusive():
    """One query of forty: it holds, and says first what so many queries can show.

    The paired differences are one -1 and 39 zeros: their standard error is
    sqrt(0.025 / 40) = 0.025, of which z(0.975) + z(0.8) = 2.8016 show 0.0700, and 2.8016² · 40
    queries 0.025.
    """
    report = found_in(29).check(baseline=found_in(30), metric="mrr@5")
    (gate,) = report.gates
    assert (report.passed, bool(report), report.outcome) == (True, True, "inconclusive")
    assert (gate.passed, gate.outcome, report.failures) == (True, "inconclusive", [])
    assert repr(report).startswith("inconclusive: mrr@5 went from 0.7500 to 0.7250, worse by 0.025")
    assert "40 queries can show drops from 0.0700 on" in gate.reason
    assert gate.reason.endswith("to show one of 0.0250 takes about 314")
    report.raise_if_failed()


def test_what_is_inconclusive_fails_if_the_gate_is_strict():
    """Its outcome stays what it is."""
    report = found_in(29).check(baseline=found_in(30), metric="mrr@5", strict=True)
    assert (report.passed, report.outcome, len(report.failures)) == (False, "inconclusive", 1)
    with pytest.raises(GateFailedError):
        report.raise_if_failed()
    assert found_in(30).check(baseline=found_in(30), metric="mrr@5", strict=True)
    with pytest.raises(InvalidInput) as refused:
        found_in(30).check({"mrr@5": 0.1}, strict=True)
    assert refused.value.argument == "strict"


@pytest.mark.filterwarnings("ignore:The intervals rest on")
def test_too_few_queries_for_any_drop_say_so():
    """Five losses of five have p = 2 / 2⁵ = 0.0625; six are the fewest that can be shown."""
    report = found_in(0, 5).check(baseline=found_in(5, 5), metric="mrr@5")
    assert report.outcome == "inconclusive"
    assert "5 queries can show no drop; it takes 6 at least" in report.gates[0].reason
    assert found_in(0, 6).check(baseline=found_in(6, 6), metric="mrr@5").outcome == "failed"


def test_a_drop_that_chance_explains_by_the_test_of_the_comparison():
    """Four losses of 200 and no win: p = 2 / 2⁴, although the interval excludes 0."""
    new, old = found_in(146, 200), found_in(150, 200)
    row = compare({"old": old, "new": new}, "mrr@5").differences[0]
    assert (row.p_holm, row.ci_high < 0) == (0.125, True)
    assert new.check(baseline=old, metric="mrr@5").outcome == "inconclusive"


def test_a_gate_says_the_largest_drop_that_is_left():
    """The end of the interval; where no query differs, 1 − 0.025^(1/40) of them might."""
    report = found_in(30).check(baseline=found_in(30), metric="mrr@5")
    assert "cannot rule out a drop of up to 0.0881" in report.gates[0].reason
    better = found_in(40).check(baseline=found_in(30), metric="mrr@5")
    assert "these queries rule out any drop" in better.gates[0].reason


def test_what_did_not_pass_is_told_first():
    """Failed, inconclusive, passed; the gates themselves stay as they were asked for."""
    report = found_in(29).check({"mrr@5": 0.1, "mrr@1": 0.9}, baseline=found_in(30), metric="mrr@5")
    assert [gate.outcome for gate in report.gates] == ["passed", "failed", "inconclusive"]
    assert [line.split()[0] for line in repr(report).splitlines()] == [
        "failed:",
        "inconclusive:",
        "passed:",
    ]
    assert report.outcome == "failed"


def test_several_metrics_are_corrected_together():
    """Six losses have p = 0.03125: enough alone, and not for one of two that differ alike."""
    new, old = found_in(24), found_in(30)
    assert new.check(baseline=old, metric="mrr@5").outcome == "failed"
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
def test_a_gate_fails_exactly_where_the_comparison_shows_a_loss():
    """2,000 random pairs, from two queries up; what fails with an allowance fails with less."""
    rng, n_failed = np.random.default_rng(0), 0
    for number in range(2000):
        old, new = random_pair(rng)
        metric = AVERAGES[number % len(AVERAGES)]
        drops = sorted([0.0, *rng.uniform(0, 0.3, 2).tolist()])
        failed = [
            new.check(baseline=old, metric=metric, max_drop=drop, n_resamples=200).outcome
            == "failed"
            for drop in drops
        ]
        compared = compare({"old": old, "new": new}, metric, n_resamples=200)
        (row,) = compared.differences
        is_worse = row.is_shown() and row.better == "old"
        undefined = math.isnan(row.value_b)
        assert failed[0] == (is_worse or undefined or row.shows_fewer()), (number, metric)
        worse = "new is worse than old" if row.is_of_more else "old is better than new"
        assert (f"{worse} on {metric} by" in compared.summary()) == is_worse
        assert failed == sorted(failed, reverse=True), (number, metric, drops)
        n_failed += failed[0]
    assert 200 < n_failed < 1200  # neither verdict is rare


def test_a_slice_fails_exactly_where_the_comparison_by_slices_shows_a_loss():
    """Of two slices one lost six of 20: enough alone, and not after Holm's correction."""
    tags = {"part": ["x"] * 20 + ["y"] * 20}
    old, new = found_in(40, tags=tags), found_in(34, tags=tags)
    shown = compare({"old": old, "new": new}, "mrr@5").by("part")
    report = new.check(baseline=old, metric="mrr@5", max_drop=0, by="part")
    of_slices = [gate for gate in report.gates if gate.slice]
    assert [row.is_shown() for row in shown.rows] == [False, False]
    assert [gate.outcome for gate in of_slices] == ["passed", "inconclusive"]
    worse = found_in(32, tags=tags).check(baseline=old, metric="mrr@5", by="part")
    assert [gate.outcome for gate in worse.gates if gate.slice] == ["passed", "failed"]


def test_an_allowance_is_tested_and_not_only_looked_at():
    """Seven losses of 40, where 0.15 is allowed: a drop of 0.175, of which 0.025 is chance.

    Where 0.01 is allowed: sign flips of 33 · 0.01 and 7 · -0.99 show the rest of it.
    """
    new, old = found_in(23), found_in(30)
    assert new.check(baseline=old, metric="mrr@5", max_drop=0.15).outcome == "inconclusive"
    assert new.check(baseline=old, metric="mrr@5", max_drop=0.01).outcome == "failed"


@pytest.mark.filterwarnings("ignore:The intervals rest on")
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
    actual = [[f"d{i}" for i in range(size)] for size in sizes]
    with no_advice():
        results = [
            OfflineRetrievalEvaluator(
                actual, [truth[:n] or ["?"] for truth, n in zip(actual, found, strict=True)]
            ).evaluate(5)
            for found in (old, new)
        ]
    weights = np.ones(12) if of_means else sizes
    before, after = ((found / sizes if of_means else found) for found in (old, new))
    differences = after - (before - 0.1 * weights)
    signs = np.array(list(itertools.product([1, -1], repeat=12)))
    exact = np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9)
    found = compared(
        {"a": results[0], "b": results[1]}, f"{metric}@5", check_sampling(), max_drop=0.1
    )
    assert found.differences[0].p_permutation == pytest.approx(exact, rel=1e-12)


# --- averages of the queries that have a value ---------------------------------------------------


def test_a_mean_rank_of_one_query_does_not_pass():
    """60 of 60 at rank 3 became one at rank 1: the share with a rank fell, and that fails."""
    report = at_ranks([1] + [0] * 59).check(baseline=at_ranks([3] * 60), metric="mean_rank@10")
    assert (report.passed, report.outcome) == (False, "failed")
    assert "of all queries 100.0% had one, now 1.7%" in report.failures[0]


def test_a_mean_rank_of_a_few_queries_less_is_inconclusive():
    """58 of 60, at better ranks: no loss is shown, and nobody is called as good."""
    report = at_ranks([1] * 58 + [0] * 2).check(baseline=at_ranks([3] * 60), metric="mean_rank@10")
    assert (report.passed, report.outcome) == (True, "inconclusive")
    assert "on the 58 queries where both have a value" in report.gates[0].reason


def test_a_mean_rank_of_more_queries_is_no_worse():
    """The baseline found one at rank 1; the new one finds all, that one at rank 1 too."""
    new, old = at_ranks([1] + [5] * 59), at_ranks([1] + [0] * 59)
    assert new.check(baseline=old, metric="mean_rank@10").outcome == "passed"


def test_ranks_of_other_queries_are_inconclusive():
    """Each found what the other did not, as many."""
    new, old = at_ranks([0] * 20 + [2] * 20), at_ranks([1] * 20 + [0] * 20)
    report = new.check(baseline=old, metric="mean_rank@10")
    assert report.outcome == "inconclusive"
    assert "has no query with a value in both" in report.gates[0].reason


def test_a_larger_drop_that_is_more_than_chance_fails():
    """Twenty queries of forty."""
    report = found_in(10).check(baseline=found_in(30), metric="ndcg@5", max_drop=0.02)
    (reason,) = report.failures
    assert reason.startswith(
        "ndcg@5 went from 0.7500 to 0.2500, worse by 0.5000 where 0.02 is allowed (p < 0.001; 95 % "
    )
    assert "\n" not in reason


def test_a_rise_passes():
    """However large."""
    assert found_in(30).check(baseline=found_in(10), metric="ndcg@5")


def test_no_difference_at_all_passes():
    """The interval has no width."""
    assert found_in(30).check(baseline=found_in(30), metric=["ndcg@5", "micro_recall@1"])


def test_every_metric_asked_for_is_checked():
    """Each has its line."""
    report = found_in(10).check(baseline=found_in(30), metric=["mrr@1", "ndcg@5"], max_drop=0.6)
    assert [gate.metric for gate in report.gates] == ["mrr@1", "ndcg@5"]


def test_a_mean_rank_drops_by_rising():
    """From 1 to 4 fails; from 4 to 1 does not."""
    near, far = at_ranks([1] * 40), at_ranks([4] * 40)
    failed = far.check(baseline=near, metric="mean_rank@10", max_drop=0.5)
    assert "mean_rank@10 went from 1.0000 to 4.0000, worse by 3.0000" in failed.failures[0]
    assert near.check(baseline=far, metric="mean_rank@10", max_drop=0.5)


def test_a_mean_rank_that_rises_by_less_than_one_can_fail_too():
    """Every second query went from 1 to 2: by 0.5, with an interval around it."""
    near, far = at_ranks([1] * 40), at_ranks([1, 2] * 20)
    assert not far.check(baseline=near, metric="mean_rank@10", max_drop=0)


def test_a_metric_that_became_undefined_fails():
    """Nothing is found any more; there is no interval to wait for."""
    report = at_ranks([0] * 40).check(baseline=at_ranks([1] * 40), metric="mean_rank@10")
    assert report.failures == ["mean_rank@10 is undefined: nothing was found"]


def test_a_metric_that_was_undefined_passes():
    """Anything is better."""
    report = at_ranks([3] * 40).check(baseline=at_ranks([0] * 40), metric="mean_rank@10")
    assert report
    assert "the baseline had none" in repr(report)


def test_floors_and_drops_are_checked_together():
    """Floors first."""
    report = found_in(30).check({"mrr@5": 0.8}, baseline=found_in(30), metric="mrr@5")
    assert [gate.passed for gate in report.gates] == [False, True]


def test_the_level_of_the_interval_can_be_chosen():
    """At 50 % three lost queries of forty are more than chance; at 99.99 % they are not."""
    new, old = found_in(27), found_in(30)
    assert not new.check(baseline=old, metric="mrr@5", level=0.5)
    assert new.check(baseline=old, metric="mrr@5", level=0.9999)


def test_the_verdict_is_the_same_each_time():
    """The seed is fixed, and can be chosen."""
    first, second = (
        found_in(25).check(baseline=found_in(30), metric="mrr@5", seed=7) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            lambda: found_in(30, n_queries=41),
            "cannot be compared, because they differ in queries: 4",
        ),
        (lambda: found_in(30, k=(2, 10)), "cannot be compared, .* k: 2,10 vs 1,5"),
        (
            lambda: found_in(30, matcher="contains"),
            "cannot be compared, .* matcher: contains vs te",
        ),
        (lambda: found_in(30, conventions="trec"), "cannot be compared, .* conventions: "),
        (lambda: found_in(30, queries=[f"q{i}" for i in range(40)]), "cannot be compared, "),
    ],
)
def test_results_that_are_not_comparable_are_refused(other, said):
    """Even where nothing dropped."""
    with pytest.raises(ValueError, match=said):
        found_in(30).check(baseline=other(), metric="mrr@1")


def asked(first, last, finds, **options):
    """Return a result over questions of these numbers, which finds those that ``finds`` holds."""
    actual = [[f"passage {i}"] for i in range(first, last)]
    predicted = [[f"passage {i}" if i in finds else "?"] for i in range(first, last)]
    labels = [f"question {i}" for i in range(first, last)]
    evaluator = OfflineRetrievalEvaluator(actual, predicted, queries=labels, **options)
    with no_advice():
        return evaluator.evaluate([1, 5])


def test_a_set_of_questions_that_grew_is_checked_on_what_both_have():
    """Of 50 and 60 questions they share 40, of which 10 were lost; floors are of all 60."""
    old, new = asked(0, 50, range(50)), asked(10, 70, [*range(20, 50), *range(60, 70)])
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
    old, new = asked(0, 50, range(50)), asked(0, 50, range(40))
    shuffled = OfflineRetrievalEvaluator(
        [[f"passage {i}"] for i in reversed(range(50))],
        [[f"passage {i}" if i < 40 else "?"] for i in reversed(range(50))],
        queries=[f"question {i}" for i in reversed(range(50))],
    ).evaluate([5, 1])
    for one in (new, shuffled):
        report = one.check(baseline=old, metric="mrr@1", on="common")
        assert (report.left_out, report.note, report.n_compared) == ({}, "", 50)
    assert report == shuffled.check(baseline=old, metric="mrr@1")


def test_what_to_compare_is_about_a_baseline():
    """Floors are of all queries."""
    with pytest.raises(InvalidInput) as refused:
        found_in(30).check({"mrr@1": 0.1}, on="common")
    assert refused.value.argument == "on"


def test_a_metric_that_was_not_evaluated_is_refused():
    """The message says what was."""
    with pytest.raises(ValueError, match="'mrr@3' needs the cutoff 3"):
        found_in(30).check(baseline=found_in(30), metric="mrr@3")


def test_a_baseline_without_a_metric_is_refused():
    """It is not for us to choose what matters."""
    with pytest.raises(InvalidInput, match="metric must name what may not drop") as refused:
        found_in(30).check(baseline=found_in(30))
    assert "metric=" in str(refused.value.fix)


@pytest.mark.parametrize("given", [{"metric": "mrr@5"}, {"max_drop": 0.02}])
def test_a_drop_without_a_baseline_is_refused(given):
    """It would check nothing."""
    with pytest.raises(InvalidInput, match="is about a baseline, and none was given"):
        found_in(30).check({"mrr@5": 0.5}, **given)


@pytest.mark.parametrize("max_drop", [-0.1, math.nan, math.inf, True, "0.02"])
def test_an_allowed_drop_that_is_none_is_refused(max_drop):
    """A negative one would demand a rise."""
    with pytest.raises(Refusal, match="max_drop must be a finite number of at least 0, got "):
        found_in(30).check(baseline=found_in(30), metric="mrr@5", max_drop=max_drop)


def test_a_misspelled_argument_is_refused():
    """Otherwise a baseline that was meant would not be looked at."""
    with pytest.raises(TypeError, match="baselin"):
        found_in(30).check({"mrr@5": 0.5}, baselin=found_in(30))


def test_a_report_is_its_gates():
    """Nothing else, so reports compare."""
    gate = Gate("mrr@5", True, "fine")
    assert GateReport((gate,)) == GateReport((gate,))
    assert GateReport((gate,)) != GateReport(())


@pytest.mark.parametrize("given", ["old.json", Path("old.json"), {"mrr@5": 0.8}])
def test_a_baseline_that_is_no_result_is_refused(given):
    """The name of a saved one is not read by itself."""
    with pytest.raises(TypeError, match=r"^baseline must be an EvaluationResult, got "):
        found_in(30).check(baseline=given, metric="mrr@5")
