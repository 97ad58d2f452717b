"""Few labels of people beside a judge's many, against ppi-python and by hand; and predictions."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from reference import no_advice
from refusals import blamed
from results_made import evaluated, read_back, with_rows, write_lines
from scipy import stats
from trials import trials

from krag_eval import (
    CoverageMatcher,
    JudgeMatcher,
    KragEvalWarning,
    debias,
    evaluate_file,
    evaluate_support,
)
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.lab import few_labels, predicting
from krag_eval.lab.few_labels import interval_with

few = pytest.mark.filterwarnings("ignore:People labelled")
few_queries = pytest.mark.filterwarnings("ignore:The intervals rest on")
same = pytest.mark.filterwarnings("ignore:All labelled questions have the same value")

# The example of the issue that asked for it, and what ppi-python 0.2.3 makes of it.
PEOPLE = [1, 0, 0.5, 1, 1, 0, 0.5, 1, 0, 1]
JUDGE = [1, 0.5, 0.5, 1, 0.5, 0, 1, 1, 0, 1]
OTHERS = [1, 1, 0.5, 0, 0.5, 1, 1, 0, 0.5, 1, 1, 0, 1, 1, 0.5, 0.5, 0, 1, 1, 1]


def by_hand(y, f, u, level=0.95):
    """Return the estimate and its bounds by the formulas of PPI++, written out anew."""
    y, f, u = (np.asarray(one, float) for one in (y, f, u))
    n, n_others = len(y), len(u)
    spread = np.var([*f, *u], ddof=1)
    weight = np.clip(np.cov(y, f, ddof=0)[0, 1] / ((1 + n / n_others) * spread), 0, 1)
    ddof = 1 if n < 100 else 0
    value = weight * u.mean() + (y - weight * f).mean()
    variance = weight**2 * u.var(ddof=ddof) / n_others + (y - weight * f).var(ddof=ddof) / n
    quantile = stats.t(n - 1).ppf if n < 100 else stats.norm.ppf
    half = quantile((1 + level) / 2) * variance**0.5
    return pytest.approx([value, value - half, value + half], abs=1e-12)


def numbers(found, metric="value"):
    return [found[metric].value, found[metric].low, found[metric].high]


def made(seed, n, n_others, noise):
    """Make values on which the reference was run; RandomState gives the same ones everywhere."""
    rng = np.random.RandomState(seed)
    y = np.round(rng.rand(n), 3)
    f = np.round(np.clip(y + noise * (rng.rand(n) - 0.3), 0, 1), 3)
    return y, f, np.round(rng.rand(n_others), 3)


@few
def test_it_is_ppi_python_with_the_normal_distribution(monkeypatch):
    """With z and ddof 0, the numbers of ppi_mean_ci; here for ten labels, elsewhere from 100 on."""
    monkeypatch.setattr(few_labels, "MANY", 0)
    found = debias(human=PEOPLE, judge=JUDGE, unlabelled=OTHERS)
    assert numbers(found) == pytest.approx([0.61398214, 0.40727309, 0.82069120], abs=5e-9)
    parts = [few_labels.Values(np.mean(one), np.array(one)) for one in (PEOPLE, JUDGE, OTHERS)]
    expected = pytest.approx([0.625, 0.38420544, 0.86579456], abs=5e-9)
    assert list(interval_with(1.0, parts, 0.95)) == expected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ((1, 100, 100, 0.5), (0.47854649908286195, 0.4348476240075318, 0.522245374158192)),
        ((2, 150, 1000, 0.2), (0.45224405425754854, 0.4332187759038621, 0.471269332611235)),
        ((3, 120, 60, 3), (0.46991809026616843, 0.42357820061310625, 0.5162579799192306)),
        ((4, 500, 5000, 1.0), (0.42336849053145154, 0.4036462423913127, 0.4430907386715904)),
    ],
)
def test_from_100_labels_on_it_is_ppi_python(how, expected):
    """ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3, alpha=0.05."""
    y, f, u = made(*how)
    assert numbers(debias(human=y, judge=f, unlabelled=u)) == pytest.approx(expected, abs=1e-12)


@few
@same
@settings(max_examples=trials(60))
@given(st.integers(0, 2**32 - 1), st.integers(10, 150), st.integers(2, 80), st.floats(0, 2))
def test_values_follow_the_formulas(seed, n, n_others, noise):
    """Also with few labels: Student's t and unbiased variances."""
    y, f, u = made(seed, n, n_others, noise)
    with no_advice():
        found = debias(human=y, judge=f, unlabelled=u, level=0.9)
    assert numbers(found) == by_hand(y, f, u, 0.9)


# Zeros and ones.


def score_by_hand(y, f, u, level=0.95):
    """Return the bounds by solving (v - p)² = z²·p(1 - p)/m for p, with m labels' worth.

    m is n times how much less the variance is than that of labels alone, both with (0, 0), (0, 1),
    (1, 0) and (1, 1) among the labelled.
    """
    value, _, _ = by_hand(y, f, u).expected
    value = min(max(value, 0), 1)
    n, n_others = len(y), len(u)
    weight = np.clip(
        np.cov(y, f, ddof=0)[0, 1] / ((1 + n / n_others) * (np.var([*f, *u], ddof=1) or 1)), 0, 1
    )
    y, f = np.array([*y, 0, 0, 1, 1]), np.array([*f, 0, 1, 0, 1])
    m = np.var(y) / (np.var(y - weight * f) / n + weight**2 * np.var(u) / n_others)
    z2 = stats.norm.ppf((1 + level) / 2) ** 2 / m
    bounds = sorted(np.roots([1 + z2, -(2 * value + z2), value**2]).real)
    return pytest.approx([value, *bounds], abs=1e-7)


@few
@settings(max_examples=trials(60))
@given(
    st.integers(0, 2**32 - 1),
    st.integers(10, 300),
    st.integers(2, 500),
    st.floats(0.02, 0.98),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_zeros_and_ones_have_a_score_interval(seed, n, n_others, share, sensitivity, let_pass):
    """Whatever the judge, and also where people say the same of all."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n + n_others) < share
    judge = rng.random(n + n_others) < np.where(truth, sensitivity, let_pass)
    y, f, u = (1.0 * one for one in (truth[:n], judge[:n], judge[n:]))
    f[0], u[0] = 0, 1  # so that both ends are among the judge's
    with no_advice():
        found = debias(human=y, judge=f, unlabelled=u)
    assert numbers(found) == score_by_hand(y, f, u)
    alone = stats.binomtest(int(y.sum()), n).proportion_ci(method="wilson")
    bounds = [found["value"].human_low, found["value"].human_high]
    assert bounds == pytest.approx([alone.low, alone.high], abs=1e-12)


def test_of_many_labels_between_the_ends_it_is_nearly_ppi_python():
    """ppi_mean_ci of ppi-python 0.2.3, to within 0.002 for 1,000 labels; the value is the same."""
    rng = np.random.RandomState(5)
    truth = (rng.rand(6000) < 0.6).astype(float)
    judge = np.where(rng.rand(6000) < 0.1, 1 - truth, truth)
    found = debias(human=truth[:1000], judge=judge[:1000], unlabelled=judge[1000:])
    expected = by_hand(truth[:1000], judge[:1000], judge[1000:]).expected
    assert found.value == pytest.approx(expected[0], abs=1e-12)
    assert numbers(found) == pytest.approx(expected, abs=0.002)
    assert found.high - found.low != pytest.approx(expected[2] - expected[1], abs=1e-6)


@few
def test_equal_labels_leave_the_judge_unjudged():
    """18 of 18 right: not below 18/(18 + z²) by Wilson; that the judge says 0.5 is no verdict."""
    found = debias(human=[1] * 18, judge=[1, 0] * 9, unlabelled=[1, 0] * 100)
    one = found["value"]
    assert (one.value, one.high, one.labels_differ) == (1, 1, False)
    assert one.low == pytest.approx(18 / (18 + 1.959963984540054**2))
    assert one.judge < one.low
    assert "too low" not in found.summary("en")
    assert "낮음" not in found.summary("ko")


@few
@pytest.mark.parametrize(("n", "share"), [(20, 0.95), (50, 0.05), (50, 0.6)])
def test_intervals_keep_their_level_near_the_ends(n, share):
    """Where they were .66 at 20 labels; 400 runs of a good and of a lenient judge.

    The standard error is 0.015 at 0.90.
    """
    for errors in ((0.03, 0.03), (0.0, 0.4)):
        rng = np.random.default_rng(7)
        kept = 0
        for _ in range(400):
            truth = rng.random(n + 300) < share
            judge = 1.0 * (truth ^ (rng.random(n + 300) < np.where(truth, *errors)))
            with no_advice():
                found = debias(human=1.0 * truth[:n], judge=judge[:n], unlabelled=judge[n:])
            kept += found.low <= share <= found.high
        assert kept / 400 >= 0.9


def test_a_scale_beyond_1_is_no_share():
    """People happened to give 0 and 1 alone; the judge's 3 says that more is possible."""
    y, f, u = [0.0, 1.0] * 20, [0.0, 1.0] * 20, [0.0, 1.0, 3.0, 2.0] * 30
    assert numbers(debias(human=y, judge=f, unlabelled=u)) == by_hand(y, f, u)


def in_clusters(tagged):
    """Evaluate 240 questions of 40 sources, each found or not as a whole; people labelled 120."""
    source = np.arange(240) // 6
    found = np.random.default_rng(12).random(40) < 0.7
    lists = [["a"] if found[one] else ["x"] for one in source]
    lenient = np.random.default_rng(13).random(240) < 0.1
    by_judge = [["a", "x"] if one else ["a"] for one in lenient]
    results = []
    for truth, places in (([["a"]] * 240, range(0, 240, 2)), (by_judge, range(240))):
        picked = [[one[i] for i in places] for one in (truth, lists)]
        tags = {"source": [int(source[i]) if tagged else i for i in places]}
        results.append(evaluated(*picked, k=1, queries=[f"q{i}" for i in places], tags=tags))
    how = dict(zip(("human", "judge", "unlabelled"), (*results, results[1]), strict=True))
    return how, debias(**how, metric="hit_rate@1", clusters="source")["hit_rate@1"]


def test_zeros_and_ones_in_clusters_count_for_fewer():
    """People's alone as of one result; all questions of a source alike, both are of fewer."""
    how, found = in_clusters(tagged=True)
    by_people = how["human"].confidence_intervals(clusters="source").loc["hit_rate@1"]
    assert [found.human_low, found.human_high] == pytest.approx([*by_people[["low", "high"]]])
    _, alone = in_clusters(tagged=False)
    assert alone.value == found.value
    assert found.high - found.low > 1.2 * (alone.high - alone.low)
    without = debias(**how, metric="hit_rate@1")["hit_rate@1"]
    assert (alone.low, alone.high) == pytest.approx((without.low, without.high))


PLACES = ("human", "judge", "unlabelled")


def streamed(folder, name, truth, lists, k=(1,)):
    """Evaluate a file of such queries, with its rows in another one."""
    path = write_lines(folder / f"{name}.jsonl", [
        {"question": f"Question {i}?", "actual": one, "predicted": documents}
        for i, (one, documents) in enumerate(zip(truth, lists, strict=False))
    ])  # fmt: skip
    return evaluate_file(path, k=list(k), per_query=folder / f"{name}.csv")


N, N_LABELLED = 120, 40


def run(skill=0.6, seed=0, labelled=None, **options):
    """Return a retriever's results: by people of some questions, by a judge of all, by people."""
    rng = np.random.default_rng([5, seed])
    truth = [["a", "b"][: 1 + i % 2] for i in range(N)]
    easy = np.random.default_rng(6).random((N, 2))
    lists = [
        [one if easy[i, j] < skill else f"x{j}" for j, one in enumerate("ab")] + ["y"]
        for i in range(N)
    ]
    lists = [rng.permutation(one).tolist() for one in lists]
    lenient = np.random.default_rng(7).random(N) < 0.2
    judged = [[*truth[i], "y"] if lenient[i] else truth[i] for i in range(N)]
    labels = [f"Question {i}?" for i in range(N)]
    sources = [f"file {i % 30}" for i in range(N)]
    chosen = np.sort(np.random.default_rng(8).permutation(N)[:N_LABELLED]).tolist()
    chosen = chosen if labelled is None else labelled

    def of(truths, places):
        tags = {"source": [sources[i] for i in places]}
        picked = [[one[i] for i in places] for one in (truths, lists)]
        queries = [labels[i] for i in places]
        return evaluated(*picked, k=(1, 3), queries=queries, tags=tags, **options)

    everything = range(N)
    return of(truth, chosen), of(judged, chosen), of(judged, everything), of(truth, everything)


def column(result, name, k=3, labels=None):
    table = result.per_query(k)[name]
    return table if labels is None else table.loc[labels]


def columns(name, human, judge, everything):
    """Return what people and the judge say of the labelled questions, and the judge of others."""
    others = [label for label in everything.labels if label not in set(human.labels)]
    return column(human, name), column(judge, name), column(everything, name, labels=others)


def test_a_result_gives_what_its_values_give():
    """A mean over queries is the estimate from its per-query values, matched by label."""
    human, judge, everything, _ = run()
    found = debias(human=human, judge=judge, unlabelled=everything)
    for name, key in (("recall", "macro_recall"), ("ndcg", "ndcg"), ("reciprocal_rank", "mrr")):
        expected = by_hand(*columns(name, human, judge, everything))
        assert numbers(found, f"{key}@3") == expected
    assert (found.n_labelled, found.n_asked) == (N_LABELLED, N)
    assert found["ndcg@3"].judge == pytest.approx(everything.to_dict()["ndcg@3"])
    assert found["ndcg@3"].human == pytest.approx(human.to_dict()["ndcg@3"])


def test_every_way_in_gives_the_same(tmp_path):
    """Saved results, the judge's one in both places, values by label in any order."""
    human, judge, everything, _ = run()
    expected = numbers(debias(human=human, judge=judge, unlabelled=everything), "ndcg@3")
    saved = [read_back(one, tmp_path) for one in (human, everything)]
    y, f, u = (column(one, "ndcg") for one in (human, judge, everything))
    for way, metric in (
        ((human, everything, everything), "ndcg@3"),
        ((saved[0], saved[1], saved[1]), "ndcg@3"),
        ((y, f.iloc[::-1], u), "value"),
        ((y.to_dict(), f.to_dict(), u), "value"),
    ):
        found = debias(**dict(zip(PLACES, way, strict=True)))
        assert (found.n_labelled, found.n_asked) == (N_LABELLED, N)
        assert numbers(found, metric) == pytest.approx(expected, abs=1e-12)


def test_rows_numbered_by_pandas_are_labels_where_all_have_them():
    """Any 40 of 400 rows, by the index of one table: 360 others, as lists have them."""
    y, f, u = made(5, 40, 360, 0.3)
    table = pd.DataFrame({"judge": [*f, *u]})
    people, judge, all_rows = pd.Series(y), table["judge"].iloc[:40], table["judge"]
    expected = pytest.approx(numbers(debias(human=y, judge=f, unlabelled=u)))
    # Shuffled, rows keep their index where others are dropped.
    order = np.random.default_rng(0).permutation(400)
    by_index = pd.Series(all_rows.to_numpy(), index=order)
    for way in (
        (people, judge, all_rows),
        (people, all_rows, all_rows),
        (dict(enumerate(y)), dict(enumerate(f)), all_rows.to_dict()),
        (pd.Series(y, index=order[:40]), by_index, by_index),
    ):
        found = debias(**dict(zip(PLACES, way, strict=True)))
        assert (found.n_labelled, found.n_asked) == (40, 400)
        assert numbers(found) == expected


def test_verdicts_of_people_correct_those_of_a_model():
    """Of claims, the judge is what differs: named in both, and the same in its two places."""
    rng = np.random.default_rng(4)
    people = rng.integers(0, 2, (200, 4, 2))
    model = np.where(rng.random(people.shape) < 0.2, 1, people)
    labels = [f"q{i}" for i in range(200)]
    chosen = sorted(rng.permutation(200)[:40].tolist())
    human = evaluate_support(people[chosen], judge="people", queries=[labels[i] for i in chosen])
    judge, newer = (evaluate_support(model, judge=name, queries=labels) for name in ("m-1", "m-2"))
    found = debias(human=human, judge=judge, unlabelled=judge, metric="claim_recall@all")
    y, f = (verdicts.max(axis=2).mean(axis=1) for verdicts in (people, model))
    by_values = debias(human=y[chosen], judge=f[chosen], unlabelled=np.delete(f, chosen))
    assert numbers(found, "claim_recall@all") == pytest.approx(numbers(by_values))
    with blamed("unlabelled"):
        debias(human=human, judge=judge, unlabelled=newer)


def test_streamed_rows_give_the_same(tmp_path):
    """A run over a file, with its rows in another, holds all that is needed."""
    rng = np.random.default_rng(9)
    from_files, at_once = [], []
    lists = [["a"] if rng.random() < 0.6 else ["x"] for _ in range(90)]
    for name, n in (("human", 30), ("judge", 90)):
        truth = [["x"] if name == "judge" and i % 7 == 0 else ["a"] for i in range(n)]
        from_files.append(streamed(tmp_path, name, truth, lists))
        labels = [f"Question {i}?" for i in range(n)]
        at_once.append(evaluated(truth, lists[:n], k=(1,), queries=labels))
    scores = rng.integers(0, 2, 90)
    found, expected = (
        (debias(human=human, judge=judge, unlabelled=judge, metric="ndcg@1").table,
         judge.predicts(scores, n_resamples=100).table)
        for human, judge in (from_files, at_once)
    )  # fmt: skip
    pd.testing.assert_frame_equal(found[0], expected[0])
    pd.testing.assert_frame_equal(found[1], expected[1])


def test_a_micro_average_goes_by_its_linear_part():
    """Its variance is that of t - R·b over the mean of b: the delta method, near the jackknife."""
    human, judge, everything, _ = run()
    tops, bottoms = (
        columns(name, human, judge, everything) for name in ("covered", "ground_truth")
    )
    ratio, linear = [], []
    for top, bottom in zip(tops, bottoms, strict=True):
        ratio.append(top.sum() / bottom.sum())
        linear.append(ratio[-1] + (top - ratio[-1] * bottom) / bottom.mean())
    value, low, high = by_hand(*linear).expected
    found = debias(human=human, judge=judge, unlabelled=everything, metric="micro_recall@3")
    assert numbers(found, "micro_recall@3") == pytest.approx([value, low, high], abs=0.004)
    assert found["micro_recall@3"].human == pytest.approx(ratio[0])


def test_two_systems_are_compared_by_paired_differences():
    """The second less the first, by the formulas on the differences of each question."""
    first, second = run(0.5), run(0.8, seed=1)
    pairs = [{"old": first[i], "new": second[i]} for i in (0, 1, 2)]
    found = debias(human=pairs[0], judge=pairs[1], unlabelled=pairs[2], metric="ndcg@3")
    values = zip(columns("ndcg", *first[:3]), columns("ndcg", *second[:3]), strict=True)
    assert numbers(found, "ndcg@3") == by_hand(*(new - old for old, new in values))
    assert found.systems == ("old", "new")
    assert "new is better" in found.summary()


def test_values_of_two_systems():
    """Plain lists by system are subtracted one by one."""
    y, f, u = (np.array(one) for one in (PEOPLE * 4, JUDGE * 4, OTHERS * 4))
    found = debias(
        human={"a": y, "b": y[::-1]}, judge={"a": f, "b": f[::-1]}, unlabelled={"a": u, "b": 1 - u}
    )
    assert numbers(found) == by_hand(y[::-1] - y, f[::-1] - f, 1 - u - u)


def clustered_by_hand(y, f, u, clusters_of_labelled, clusters_of_others, weight):
    """Return the half-width: SE² = C/(C-1)·Σ_c(Σ(s - s̄))²/n², of what both parts move together."""
    moved = {}
    for values, groups in (
        (y - weight * f, clusters_of_labelled),
        (weight * u, clusters_of_others),
    ):
        values = np.asarray(values)
        c = len(set(groups))
        for one, group in zip(values, groups, strict=True):
            part = (c / (c - 1)) ** 0.5 * (one - values.mean()) / len(values)
            moved[group] = moved.get(group, 0) + part
    n_clusters = len(set(clusters_of_labelled))
    se = sum(one**2 for one in moved.values()) ** 0.5
    return stats.t(n_clusters - 1).ppf(0.975) * se


def test_clusters_move_as_wholes():
    """A cluster that is among the labelled and among the others moves both parts at once."""
    human, judge, everything, _ = run()
    how = {"human": human, "judge": judge, "unlabelled": everything, "metric": "ndcg@3"}
    found = debias(**how, clusters="source")["ndcg@3"]
    source = dict(zip(everything.labels, everything.tags["source"], strict=True))
    values = columns("ndcg", human, judge, everything)
    groups = [[source[label] for label in one.index] for one in (values[0], values[2])]
    half = clustered_by_hand(*(one.to_numpy() for one in values), *groups, found.weight)
    assert (found.high - found.low) / 2 == pytest.approx(half)
    assert found.value == pytest.approx(debias(**how).value)


def tagged(tags_at):
    """Return what to estimate from, with the tags of questions at these places of the run."""
    results = dict(zip(PLACES, run(), strict=False))
    place = {label: i for i, label in enumerate(results["unlabelled"].labels)}
    for name, one in results.items():
        results[name] = with_rows(one, tags=tags_at([place[label] for label in one.labels]))
    return results


@pytest.mark.filterwarnings("ignore:The labelled questions are of")
def test_clusters_of_one_question_are_none():
    """With a cluster for each question the numbers are those without clusters."""
    how = tagged(lambda places: {"own": places})
    expected = numbers(debias(**how), "ndcg@3")
    assert numbers(debias(**how, clusters="own"), "ndcg@3") == pytest.approx(expected)


def test_questions_without_the_tag_are_clusters_of_their_own():
    """As in a comparison: with a warning; and True is another value than 1."""
    how = tagged(lambda places: {
        "some": [None if i % 3 else i % 2 == 0 or 1 for i in places],
        "named": [i if i % 3 else f"{i % 2 == 0}" for i in places],
    })  # fmt: skip
    expected = numbers(debias(**how, clusters="named"), "ndcg@3")
    with pytest.warns(KragEvalWarning, match="have no 'some'; each is a cluster of its own"):
        found = debias(**how, clusters="some")
    assert numbers(found, "ndcg@3") == pytest.approx(expected)


def test_a_judge_that_does_not_agree_gains_nothing_and_says_so():
    """Where people and judge hardly agree, the interval is that of people's labels."""
    rng = np.random.default_rng(0)
    y, f, u = rng.random(60), rng.random(60), rng.random(500)
    f -= (y - y.mean()) * 0.5  # if anything, against them
    found = debias(human=y, judge=f, unlabelled=u)
    assert found["value"].weight == 0
    expected = stats.ttest_1samp(y, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert "Nothing is gained" in found.summary()


def test_a_perfect_judge_is_worth_as_many_labels_as_there_are_questions():
    """And no more, though it makes the interval of a difference vanish that never varies."""
    y = np.array([0.25, 1.0] * 20)
    found = debias(human=y, judge=y, unlabelled=np.full(90, 0.625))
    assert (found["value"].weight, found["value"].saved) == (1, 1)
    assert "as 90 more" in found.summary("en")
    assert "90개 더" in found.summary("ko")


def test_values_stay_within_the_range_of_the_metric():
    """Of 40 labelled, people find 36 and the judge 30 of these; of the others it finds all 160.

    With λ = 1 that would be 1 + 0.9 - 0.75 = 1.15, but no recall is above 1.
    """
    labels = [f"q{i}" for i in range(200)]
    lists = [["x"] if i < 4 else ["a"] for i in range(200)]
    by_judge = [["b"] if i < 10 else ["a"] for i in range(200)]
    human = evaluated([["a"]] * 40, lists[:40], k=1, queries=labels[:40])
    judge = evaluated(by_judge, lists, k=1, queries=labels)
    found = debias(human=human, judge=judge, unlabelled=judge, metric="recall@1")
    assert found["macro_recall@1"].weight == 1
    assert (found.value, found.high) == (1, 1)


def test_questions_without_ground_truth_on_one_side_are_no_obstacle():
    """Skipped by people alone: the estimate is of the questions people have something for."""
    labels = [f"q{i}" for i in range(200)]
    lists = [["a"] if i % 3 else ["x"] for i in range(200)]
    people = [[] if i % 10 == 0 else ["a"] for i in range(0, 200, 4)]
    judge = evaluated([["a"]] * 200, lists, k=1, queries=labels, no_ground_truth="skip")
    human = evaluated(people, lists[::4], k=1, queries=labels[::4], no_ground_truth="skip")
    found = debias(human=human, judge=judge, unlabelled=judge, metric="recall@1")["macro_recall@1"]
    assert found.human == pytest.approx(human.to_dict()["macro_recall@1"])
    assert found.low < found.value < found.high


def refused(argument, **how):
    """Return the refusal of an estimate, which blames that argument."""
    with blamed(argument, (InvalidInput, InvalidType)) as error:
        debias(**how)
    return error.value


def test_results_that_do_not_fit_are_refused():
    """By other conventions, without labels, metrics or tags that they do not have; or values."""
    human, judge, everything, _ = run()
    strict = run(conventions="trec")[2]
    results = {"human": human, "judge": judge, "unlabelled": everything}
    parts = {name: column(one, "ndcg") for name, one in results.items()}
    missing = human.labels[3]
    for how, argument in (
        ({"unlabelled": strict}, "unlabelled"),
        ({"judge": strict}, "judge"),
        ({"human": evaluated([["a"]] * 40, [["a"]] * 40, k=3)}, "human"),
        ({"metric": "ndcg@7"}, "metric"),
        ({"clusters": "corpus"}, "clusters"),
        ({"unlabelled": [0, 1]}, "unlabelled"),
        (parts | {"unlabelled": parts["unlabelled"].drop(missing)}, "unlabelled"),
        (parts | {"judge": parts["judge"].drop(missing)}, "judge"),
    ):
        error = refused(argument, **(results | how))
        assert repr(missing) in error.problem or how.keys() != parts.keys()
    found = debias(**results)
    for ask in (lambda: found.value, lambda: found["ndcg"]):
        with blamed("metric"):
            ask()


# People's labels of another run are refused, by all that tells one run from another.

LABELS = [f"Question {i}?" for i in range(120)]
ONE = [["a", "y", "z"] if i % 2 else ["y", "z", "x"] for i in range(120)]
# What another retriever finds at the same rank, in lists that are as long; it finds others, too.
OTHER = [["a", "y", "v"] if i % 2 else ["y", "w", "x"] for i in range(120)]
BETTER = [["a", "y", "z"] if i % 4 else ["y", "z", "x"] for i in range(120)]
LONGER = [[*one, "v"] if i == 7 else one for i, one in enumerate(ONE)]


def of_people(lists, truth="a", **options):
    return evaluated([[*truth]] * 40, lists[:40], k=2, queries=LABELS[:40], **options)


def of_judge(lists, **options):
    lenient = [["a", "x"] if i % 5 == 0 else ["a"] for i in range(120)]
    return evaluated(lenient, lists, k=2, queries=LABELS, **options)


@pytest.mark.parametrize(
    ("other", "place"), [(OTHER, 0), (BETTER, 2), (LONGER, 7)], ids=["other", "better", "longer"]
)
@pytest.mark.parametrize("saved", [False, True])
def test_labels_of_other_lists_are_refused(other, place, saved, tmp_path):
    """By documents or, of saved results, by how many there are and how many match."""
    human, judge = of_people(ONE), of_judge(other)
    if saved:
        human, judge = (read_back(one, tmp_path) for one in (human, judge))
    if saved and other is OTHER:  # which no file tells, and is said
        found = debias(human=human, judge=judge, unlabelled=judge, metric="recall@2")
        assert found.compared_by == "counts"
        assert "does not tell which" in found.summary("en")
        assert "문서 수로만" in found.summary("ko")
        return
    error = refused("judge", human=human, judge=judge, unlabelled=judge)
    assert error.fix
    # One list is longer, and people's third question is the first to be found by the other.
    assert repr(LABELS[place]) in error.problem
    same = debias(human=of_people(ONE), judge=of_judge(ONE), unlabelled=of_judge(ONE),
                  metric="recall@2")  # fmt: skip
    assert same.compared_by == "documents"
    assert "does not tell which" not in same.summary("en")


def test_other_keys_and_rows_in_files_are_refused(tmp_path):
    """Where it is known what was looked at; and rows of runs over files."""
    human, judge = (
        read_back(evaluated([["a"]] * n, lists[:n], k=2, queries=LABELS[:n],
                            judged=[["a", "x"]] * n), tmp_path)
        for n, lists in ((40, ONE), (120, OTHER))
    )  # fmt: skip
    error = refused("judge", human=human, judge=judge, unlabelled=judge)
    assert "list of documents" in error.problem
    human = streamed(tmp_path, "human", [["a"]] * 40, ONE, k=[2, 4])
    judge = streamed(tmp_path, "judge", [["x"]] * 120, LONGER, k=[2, 4])
    error = refused("judge", human=human, judge=judge, unlabelled=judge)
    assert repr(LABELS[7]) in error.problem


def test_all_results_are_of_one_run():
    """The judge's two, those of each system, and people's labels of two systems."""
    first, second = (of_people(ONE), of_judge(ONE)), (of_people(OTHER), of_judge(OTHER))
    truth = [["a", "y"] if i == 3 else ["a"] for i in range(120)]
    newer = evaluated(truth, ONE, k=2, queries=LABELS)
    for other in (second[1], of_judge(LONGER), newer):
        refused("unlabelled", human=first[0], judge=first[1], unlabelled=other)
    human, judge = ({"a": one, "b": other} for one, other in zip(first, second, strict=True))
    swapped = {"a": second[1], "b": first[1]}
    refused("judge", human=human, judge=swapped, unlabelled=swapped)
    other_labels = {"a": first[0], "b": of_people(OTHER, "ay")}
    refused("human", human=other_labels, judge=judge, unlabelled=judge)


def test_ids_for_people_and_texts_for_the_judge_are_no_contradiction():
    """Of one document, each matcher looks at another name; that it is one is not known."""
    how = {"k": 1, "queries": LABELS[:40]}
    judge = evaluated([["text 1"]] * 120, [["text 1"], ["text 2"]] * 60, k=1, queries=LABELS)
    both = [[{"page_content": f"text {i}", "id": f"d{i}"}] for i in (1, 2)]
    for lists, by in (([["d1"], ["d2"]], "counts"), (both, "documents")):
        human = evaluated([["d1"]] * 40, lists * 20, "id", **how)
        assert debias(human=human, judge=judge, unlabelled=judge).compared_by == by
    assert debias(human=PEOPLE * 3, judge=JUDGE * 3, unlabelled=OTHERS).compared_by is None


@pytest.mark.parametrize("matcher", ["text", "id", CoverageMatcher(0.6), "ids alone"], ids=str)
def test_other_documents_under_another_matcher(matcher):
    """Texts that both results hold tell, or ids where one side has no texts."""
    a, b = (
        [{"id": f"{run}{i}", "page_content": f"what {run} found of {i}"} for i in range(120)]
        for run in "ab"
    )
    lists = [[one] for one in a]
    judge = evaluated(lists, lists, "coverage", 1, queries=LABELS)

    def people(run):
        ids = matcher == "ids alone"
        lists = [[one["id"] if ids else one] for one in run[:40]]
        truth = [*lists[:39], lists[0]]
        return evaluated(truth, lists, "id" if ids else matcher, 1, queries=LABELS[:40])

    error = refused("judge", human=people(b), judge=judge, unlabelled=judge)
    assert "list of documents" in error.problem
    same = debias(human=people(a), judge=judge, unlabelled=judge, metric="recall@1")
    assert same.compared_by == "documents"


def test_values_and_verdicts_of_another_run():
    """The judge's values must be those it has among all; as many chunks must have been judged."""
    human = dict(zip(LABELS, [0, 1] * 20, strict=False))
    everything = dict(zip(LABELS, [1, 1, 0] * 40, strict=True))
    judge = {label: everything[label] for label in human}
    assert debias(human=human, judge=judge, unlabelled=everything).n_asked == 120
    error = refused("unlabelled", human=human, judge=human, unlabelled=everything)
    assert repr(LABELS[0]) in error.problem
    shorter = evaluate_support([[[1, 0], [0, 0]]] * 40, judge="people", queries=LABELS[:40])
    longer = evaluate_support([[[1, 1, 0], [0, 0, 0]]] * 120, judge="model", queries=LABELS)
    refused("judge", human=shorter, judge=longer, unlabelled=longer)


def test_what_is_valid_and_deserves_a_second_look_is_warned_of():
    """Few labels or clusters, labels all alike, the judge in the place of people."""
    half = [0, 1] * 20
    _, judge, everything, _ = run()
    of_few = dict(zip(PLACES, run(labelled=[i for i in range(N) if i % 30 < 15]), strict=False))
    for how, said in (
        ({"human": PEOPLE, "judge": JUDGE, "unlabelled": OTHERS}, "People labelled 10 questions"),
        (of_few | {"clusters": "source"}, "15 clusters"),
        ({"human": [0.5] * 40, "judge": half, "unlabelled": half}, "same value"),
        ({"human": judge, "judge": judge, "unlabelled": everything}, "same ground truth"),
    ):
        with pytest.warns(KragEvalWarning, match=said):
            debias(**how)


def test_judges_of_the_same_ground_truth():
    """People and a model look at the same pairs: only what they say differs."""
    lists = [["yes" if i % 2 else "no"] for i in range(100)]

    def judged(judge, n):
        matcher = JudgeMatcher(judge, version="1")
        return evaluated([["yes"]] * n, lists[:n], matcher, 1, queries=LABELS[:n])

    def model(question, actual, predicted):
        return predicted == "yes" or question.endswith("8?")

    def person(question, actual, predicted):
        return predicted == "yes"

    everything, human = judged(model, 100), judged(person, 40)
    found = debias(human=human, judge=everything, unlabelled=everything, metric="recall@1")
    # 50 of 100 are right, and each tenth of the others is let through by the model.
    assert found["macro_recall@1"].judge == 0.6
    assert found["macro_recall@1"].value == pytest.approx(0.5, abs=0.02)


# Which metric predicts the answers.


@settings(max_examples=trials(50))
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=3, max_size=30),
    st.integers(0, 1000),
)
def test_correlations_of_resamples_are_those_of_scipy(pairs, seed):
    """Spearman's and Kendall's of queries that count several times, ties included."""
    values, scores = np.array(pairs, float).T
    n = len(pairs)
    rng = np.random.default_rng(seed)
    times = np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(5)])
    spearman, kendall = predicting._rank_correlations(times, values, scores)
    for i, counts in enumerate(times):
        x, y = np.repeat(values, counts), np.repeat(scores, counts)
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            assert math.isnan(spearman[i])
            assert math.isnan(kendall[i])
        else:
            assert spearman[i] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
            assert kendall[i] == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_every_metric_at_every_cutoff_is_correlated():
    """Values of scipy over all queries; the sign is turned where lower is better."""
    result = run()[3]
    scores = np.random.default_rng(1).random(N) + column(result, "ndcg").to_numpy()
    found = result.predicts(scores, n_resamples=200)
    for name, key in (("recall", "macro_recall"), ("ndcg", "ndcg"), ("f1", "macro_f1")):
        for k in (1, 3):
            values = column(result, name, k)
            row = found.table.loc[f"{key}@{k}"]
            assert row["spearman"] == pytest.approx(stats.spearmanr(values, scores).statistic)
            assert row["kendall"] == pytest.approx(stats.kendalltau(values, scores).statistic)
            assert row["spearman_low"] < row["spearman"] < row["spearman_high"]
    assert set(found.table.index) == set(found.metrics)


def test_the_interval_is_that_of_scipy():
    """The percentile bootstrap of scipy with the same draws, of the queries by their scores."""
    result = run()[3]
    scores = np.random.default_rng(1).random(N) + column(result, "ndcg").to_numpy()
    order = np.argsort(scores)
    row = result.predicts(scores, n_resamples=300, seed=4).table.loc["ndcg@3"]
    expected = stats.bootstrap(
        (column(result, "ndcg").to_numpy()[order], scores[order]),
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=300,
        method="percentile",
        random_state=np.random.default_rng(4),
    ).confidence_interval
    assert (row["spearman_low"], row["spearman_high"]) == pytest.approx(tuple(expected))


def test_the_best_is_chosen_on_one_half_and_reported_on_the_other():
    """Random scores: over all queries the best looks good, on the other half it does not."""
    result = run()[3]
    flattered, held_out = [], []
    for seed in range(20):
        scores = np.random.default_rng(seed).random(N)
        found = result.predicts(scores, n_resamples=100, seed=seed)
        flattered.append(found.table["spearman"].iloc[0])
        held_out.append(found.spearman)
    assert np.mean(flattered) > 0.08
    assert abs(np.mean(held_out)) < 0.08
    assert found.n_chosen_on + found.n_reported_on == N


def wide(n=400, seed=2):
    """Return a result whose first ranks tell much, and their reciprocals."""
    rng = np.random.default_rng(seed)
    lists = [[f"x{j}" for j in range(10)] for _ in range(n)]
    for one, place in zip(lists, rng.integers(0, 10, n).tolist(), strict=True):
        one[place] = "a"
    return evaluated([["a"]] * n, lists, k=(1, 5, 10), queries=[f"q{i}" for i in range(n)])


def test_with_many_queries_metrics_can_be_ranked():
    """Scores that follow the rank are predicted by what knows the rank, and by nothing else."""
    result = wide()
    scores = 1 / (1 + np.arange(10))[::-1]
    rank = np.rint(1 / column(result, "reciprocal_rank", 10).to_numpy()).astype(int)
    found = result.predicts(scores[10 - rank], n_resamples=200)
    assert found.best in ("mrr@10", "map@10", "ndcg@10")
    assert found.spearman == pytest.approx(1)
    assert set(found.rivals) == {"mrr@10", "map@10", "ndcg@10"} - {found.best}
    assert found.can_rank


def test_scores_that_are_lower_for_better_answers_are_named():
    """As a count of errors is: Spearman -1 on all metrics, and queries enough."""
    result = wide()
    errors = 1 - column(result, "reciprocal_rank", 10)
    found = result.predicts(errors, n_resamples=200)
    assert found.is_turned
    assert not found.can_rank
    assert found.table.loc["mrr@10", "spearman"] == pytest.approx(-1)
    for language, word, never in (("en", "sign", "too few"), ("ko", "부호", "어렵습니다")):
        assert word in found.summary(language)
        assert never not in found.summary(language)
    assert not result.predicts(-errors, n_resamples=200).is_turned


@few_queries
def test_with_few_queries_it_says_so():
    """Twenty queries rank nothing."""
    result = wide(20)
    found = result.predicts(np.random.default_rng(0).random(20), n_resamples=100)
    assert not found.can_rank
    assert "too few" in found.summary()
    with pytest.warns(KragEvalWarning):
        result.predicts([0, 1] * 10, n_resamples=100)


def test_scores_come_by_label_or_in_order():
    """A Series by label in any order, a mapping, and a list in the order of the rows are one."""
    result = wide(60)
    scores = np.random.default_rng(0).integers(0, 2, 60).astype(bool)
    expected = result.predicts(scores, n_resamples=100).table
    by_label = pd.Series(scores, index=result.labels)
    for one in (scores.tolist(), by_label.iloc[::-1], by_label.to_dict(), pd.Series(scores)):
        pd.testing.assert_frame_equal(result.predicts(one, n_resamples=100).table, expected)


def test_a_query_that_does_not_count_needs_no_score():
    """By label it may be missing; in order it is passed over."""
    truth = [["a"] if i % 4 else [] for i in range(80)]
    lists = [["a"] if i % 3 else ["x"] for i in range(80)]
    labels = [f"q{i}" for i in range(80)]
    result = evaluated(truth, lists, queries=labels, no_ground_truth="skip")
    scores = pd.Series(np.arange(80.0), index=labels)
    counted = scores[[bool(one) for one in truth]]
    expected = result.predicts(scores, n_resamples=100).table
    pd.testing.assert_frame_equal(result.predicts(counted, n_resamples=100).table, expected)
    assert set(expected["n"]) == {60}
