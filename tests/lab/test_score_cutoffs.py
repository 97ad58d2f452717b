"""What score cutoffs cost and save: a sample by hand, and evaluations with each cutoff."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from refusals import blamed
from trials import trials

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator, compare
from krag_eval.partitions import PartitionPlan

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")

NAN = pytest.approx([float("nan")] * 2, nan_ok=True)
ACTUAL = [["a", "b"], ["c"], [], [], []]
SCORED = [
    [("a", 0.9), ("b", 0.5)],
    [("x", 0.8), ("c", 0.6)],
    [("y", 0.7)],
    [("z", 0.55), ("w", 0.4)],
    [],
]


def evaluated(actual=ACTUAL, predicted=SCORED, k=2, **options):
    """Evaluate with queries that have no ground truth left out of the averages."""
    options = {"no_ground_truth": "skip", **options}
    return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(k)


def cutoffs(*documents, **options):
    """Return the score cutoffs of a result, from few resamples."""
    return evaluated(*documents, **options).score_cutoffs(n_resamples=200)


# Recall: the first query holds both items up to .5 and one up to .9, the second its own up to .6.
# Nothing kept: of .7, .55 and nothing, those below. At .5 and .9, nothing changes.
BY_HAND = {
    0.4: (1, 1 / 3),
    0.55: (3 / 4, 1 / 3),
    0.6: (3 / 4, 2 / 3),
    0.7: (1 / 4, 2 / 3),
    0.8: (1 / 4, 1),
}


@pytest.mark.parametrize("k", [2, 5, None, "2w"])
def test_the_sample(k):
    """Every cutoff where something changes; the largest mean is (3/4 + 2/3) / 2."""
    found = cutoffs(k=k)
    assert found.cutoffs.tolist() == [*BY_HAND]
    assert [*zip(*BY_HAND.values(), strict=True)] == [pytest.approx(found.recall),
                                                      pytest.approx(found.abstention)]  # fmt: skip
    assert (found.best, found.lower_is_better) == (0.6, False)
    assert (found.n_answerable, found.n_unanswerable) == (2, 3)
    assert found.table["balanced"][0.6] == pytest.approx(17 / 24)
    low, high = found.interval
    assert 0.4 <= low <= 0.6 <= high <= 0.8


def test_recall_is_looked_at_a_cutoff():
    """At 1, the first query holds one of two items, and the second nothing."""
    found = evaluated(k=[1, 2]).score_cutoffs(1)
    assert found.recall[0] == 1 / 4
    assert found.k == 1


def test_distances():
    """Scores that rise with the rank: what is at or below a cutoff is kept."""
    nearest = [[(one, 1 - score) for one, score in of_query] for of_query in SCORED]
    found = cutoffs(ACTUAL, nearest)
    assert found.lower_is_better
    rows = zip(found.cutoffs, found.recall, found.abstention, strict=True)
    expected = {1 - one: shares for one, shares in BY_HAND.items()}
    for (cutoff, *shares), (at, told) in zip(rows, expected.items(), strict=True):
        assert (cutoff, *shares) == pytest.approx((at, *told))
    assert found.best == pytest.approx(0.4)
    low, high = found.interval
    assert 0.2 - 1e-9 <= low <= found.best <= high <= 0.6 + 1e-9
    kept = evaluated(ACTUAL, nearest, score_cutoff=found.best)
    assert (kept["macro_recall@2"], kept["rejection_rate@2"]) == pytest.approx(BY_HAND[0.6])


def test_of_equals_the_one_that_keeps_most():
    """At .4 all is found and nothing rejected, at .6 the other way round: half of each."""
    found = cutoffs([["a"], []], [[("x", 0.6), ("a", 0.4)], [("y", 0.5)]])
    assert found.table["balanced"].to_dict() == {0.4: 0.5, 0.5: 0, 0.6: 0.5}
    assert found.best == 0.4


@pytest.mark.parametrize("unjudged", ["wrong", "bounds"])
@given(data=st.data())
@settings(max_examples=trials(25))
def test_the_curve_is_what_evaluations_give(unjudged, data):
    """At every score, an evaluation with that cutoff has the recall and the rejection rate."""
    truth = st.lists(st.sampled_from("abc"), max_size=2, unique=True)
    actual = [["a"], [], *data.draw(st.lists(truth, max_size=5))]
    scores = st.lists(st.integers(0, 6), max_size=4).map(lambda some: sorted(some, reverse=True))
    predicted = [[("abcx"[data.draw(st.integers(0, 3))], one) for one in data.draw(scores)]
                 for _ in actual]  # fmt: skip
    predicted[0].insert(0, ("x", 7))
    options = {"unjudged": unjudged, "judged": [[] for _ in actual]}
    k = data.draw(st.sampled_from([1, 2, None]))
    found = evaluated(actual, predicted, k, **options).score_cutoffs(n_resamples=100).table
    for cutoff in {score for of_query in predicted for _, score in of_query}:
        result = evaluated(actual, predicted, k, score_cutoff=cutoff, **options)
        row = found[found.index <= cutoff].iloc[-1]  # the one that keeps most of its like
        name = "all" if k is None else k
        assert row["recall"] == pytest.approx(result[f"macro_recall@{name}"])
        assert row["abstention"] == pytest.approx(result[f"rejection_rate@{name}"])


def test_held_out_is_of_the_other_half():
    """By hand, both ways to part two queries of each kind.

    Of {.9, -.3} and {.5, -.7}, where - has no answer: the first half takes .5, as all between is
    alike, at which the other finds its item and keeps the -.7; that takes .3, the equal that keeps
    most, at which the first finds and keeps all: recall 1 and 1, abstention 0 and 0. Of {.9, -.7}
    and {.5, -.3}: .9 finds nothing and keeps nothing of the other, .5 all: 1/2 and 1/2.
    """
    predicted = [[("a", 0.9)], [("a", 0.5)], [("x", 0.3)], [("x", 0.7)]]
    result = evaluated([["a"], ["a"], [], []], predicted)
    found = {result.score_cutoffs(n_resamples=100, seed=seed).held_out for seed in range(20)}
    assert found == {(1, 0), (0.5, 0.5)}


def test_alike_queries_leave_no_doubt():
    """Where all resamples choose alike, the interval is that cutoff."""
    found = cutoffs([["a"], []] * 40, [[("a", 0.9)], [("x", 0.4)]] * 40)
    assert (found.best, found.interval, found.held_out) == (0.9, (0.9, 0.9), (1, 1))


def test_nothing_to_abstain_from():
    """Every query has an answer: recall alone, and no best."""
    found = cutoffs([["a"]], [[("a", 0.9), ("b", 0.2)]])
    assert (found.best, found.n_unanswerable) == (None, 0)
    assert found.recall.tolist() == [1]
    assert np.isnan(found.abstention).all()
    assert list(found.interval) == NAN
    assert list(found.held_out) == NAN
    assert len(found.plot().lines) == 1


def test_one_query_without_an_answer_is_in_one_half():
    """So that nothing can be held out."""
    assert np.isnan(cutoffs([["a"], ["a"], []], [[("a", 1)]] * 3).held_out[1])


def test_saved_with_texts_and_drawn(tmp_path):
    """Scores are among the metadata that a file keeps; without texts, they are not known."""
    result, path = evaluated(), tmp_path / "result.json"
    result.to_json(path, texts=True)
    found = EvaluationResult.from_json(path).score_cutoffs(n_resamples=200)
    assert found.table.equals(cutoffs().table)
    assert found.plot().lines[0].get_ydata().tolist() == found.recall.tolist()
    result.to_json(path)
    with blamed(""):
        EvaluationResult.from_json(path).score_cutoffs()


def test_the_signature_tells_a_cutoff():
    """Results of two cutoffs are not compared in silence; without one, nothing is said."""
    with_it, without = evaluated(score_cutoff=0.6), evaluated()
    assert with_it.settings["score_cutoff"] == "0.6"
    assert "score_cutoff" not in without.settings
    with blamed("results"):
        compare({"with": with_it, "without": without}, "ndcg@2")


def test_few_queries_are_warned_of():
    """Of the kind there are fewer of."""
    with pytest.warns(KragEvalWarning, match="rest on 2 queries"):
        evaluated().score_cutoffs(n_resamples=100)


def scored(text, score):
    """Return a document whose metadata hold a score, as an earlier stage leaves it."""
    return {"page_content": text, "metadata": {"score": score}}


@pytest.mark.parametrize(
    ("predicted", "query", "within"),
    [
        ([["a"], ["b"]], None, ""),
        ([[("a", 0.5)], [("b", 0.5), "c"]], 1, "[1]"),
        ([[scored("a", 0.5), scored("b", 0.4)], [scored("a", 0.5), scored("b", 0.6)]], 1, "[1]"),
        ([[*map(scored, "abcd", (0.5, 0.6, 0.6, 0.5))], []], 0, "[3]"),
        ([[{"page_content": "a", "metadata": {"score": "high"}}], []], 0, "[0]"),
    ],
    ids=["none", "some", "between queries", "within one", "no number"],
)
def test_scores_that_cannot_be_used(predicted, query, within):
    """None, one missing, and such as go both ways: with the query and the document."""
    for ask in (
        lambda: evaluated([["a"], []], predicted).score_cutoffs(),
        lambda: evaluated([["a"], []], predicted, score_cutoff=0.5),
    ):
        with blamed("predicted_docs") as caught:
            ask()
        assert (caught.value.query, caught.value.within) == (query, within)


def test_what_has_no_curve():
    """Nothing retrieved, no ground truth, lists without what is not judged."""
    with blamed("actual_docs"):
        cutoffs([["a"], []], [[], []])
    with blamed("actual_docs"):
        cutoffs([[]], [[("a", 1)]], no_ground_truth="zero")
    with blamed("unjudged"):
        cutoffs([["a"]], [[("a", 1)]], judged=[["a"]], unjudged="leave_out")


@pytest.mark.parametrize("cutoff", ["auto", True, float("nan"), float("inf"), [0.5]])
def test_a_cutoff_is_a_finite_number(cutoff):
    """Refused with the other options."""
    with blamed("score_cutoff"):
        evaluated(score_cutoff=cutoff)


def test_no_cutoff_in_parts():
    """Which scores are better shows in all ranks together."""
    with blamed("score_cutoff"):
        PartitionPlan.of(2, score_cutoff=0.5).evaluate([["a"]], [[("a", 0.9)]])


def test_a_cutoff_that_drops_everything_is_named():
    """And not the index, which may well be filled."""
    scored = [[{"page_content": "a", "metadata": {"score": 0.5}}]]
    with pytest.warns(KragEvalWarning) as told:
        OfflineRetrievalEvaluator([["a"]], scored, score_cutoff=5).evaluate(1)
    assert dict(told[0].message.fix.settings) == {"score_cutoff": 5}
