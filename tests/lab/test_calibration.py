"""Choosing a threshold from labelled pairs."""

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from krag_eval import JudgeMatcher, Matcher, agreement, calibrate

matplotlib.use("Agg")


class Given(Matcher):
    """Reads the similarity off the predicted text."""

    name = "given"

    def similarity(self, actual, predicted):
        return float(predicted.page_content)


def pairs(*labelled):
    return [("truth", str(similarity), label) for similarity, label in labelled]


# Three relevant, three not; sorted by similarity: + + - + - -
MIXED = pairs((0.9, True), (0.8, True), (0.6, False), (0.5, True), (0.3, False), (0.1, False))


def test_curve_counts_the_decision_at_every_similarity():
    """Taking one more pair at a time, from the most similar down."""
    curve = calibrate(Given(), MIXED, n_resamples=10).curve
    assert curve["threshold"].tolist() == [0.9, 0.8, 0.6, 0.5, 0.3, 0.1]
    assert curve["found"].tolist() == [1, 2, 2, 3, 3, 3]
    assert curve["false_alarms"].tolist() == [0, 0, 1, 1, 2, 3]
    assert curve["missed"].tolist() == [2, 1, 1, 0, 0, 0]
    # At 0.5: 3 of 4 taken are relevant, 3 of 3 relevant are taken: F1 = 2·(3/4)/(7/4) = 6/7.
    at_half = curve.set_index("threshold").loc[0.5]
    assert at_half["precision"] == pytest.approx(3 / 4)
    assert at_half["recall"] == 1.0
    assert at_half["f1"] == pytest.approx(6 / 7)


def test_best_threshold_is_half_way_to_the_next_similarity():
    """F1: 1/2, 4/5, 2/3, 6/7, 3/4, 2/3: the best takes 0.5 and leaves 0.3, so 0.4."""
    calibration = calibrate(Given(), MIXED, n_resamples=10)
    assert calibration.best_threshold == pytest.approx(0.4)
    assert calibration.best_f1 == pytest.approx(6 / 7)
    for part in ("best threshold 0.4000 (95 % interval", "F1 0.8571"):
        assert part in repr(calibration)


def test_pairs_of_one_similarity_are_taken_together():
    """No threshold separates equal similarities, whatever their labels."""
    tied = pairs((0.9, True), (0.5, True), (0.5, False), (0.2, False))
    curve = calibrate(Given(), tied, n_resamples=10).curve
    assert curve["threshold"].tolist() == [0.9, 0.5, 0.2]
    assert curve["found"].tolist() == [1, 2, 2]
    assert curve["false_alarms"].tolist() == [0, 1, 2]


def test_interval_is_narrow_where_labels_agree_and_wide_where_they_do_not():
    """Resampling a clean cut moves the threshold little; a muddle moves it much."""
    rng = np.random.default_rng(3)
    clean = [one for i in range(40) for one in ((0.9 - i / 1000, True), (0.1 + i / 1000, False))]
    muddle = [(float(s), bool(rng.random() < s)) for s in rng.random(80)]

    def width(labelled):
        low, high = calibrate(Given(), pairs(*labelled)).interval
        return high - low

    assert width(clean) < 0.05 < width(muddle)


def test_interval_follows_a_plain_bootstrap():
    """A loop over resamples, with the threshold sought by trying all, gives the same interval."""
    rng = np.random.default_rng(11)
    similarity = np.round(rng.random(60), 2)
    labels = rng.random(60) < similarity

    def best(drawn):
        s, y = similarity[drawn], labels[drawn]
        candidates = np.unique(s[s > 0])[::-1]
        middles = (candidates + np.append(candidates[1:], 0.0)) / 2
        f1 = [2 * (y & (s >= t)).sum() / ((s >= t).sum() + y.sum()) for t in candidates]
        return float(middles[int(np.argmax(f1))])

    draws = np.random.default_rng(0)
    thresholds = [best(draws.integers(0, 60, 60)) for _ in range(4000)]
    low, high = np.quantile(thresholds, [0.05, 0.95])
    given = pairs(*zip(similarity.tolist(), labels.tolist(), strict=True))
    calibration = calibrate(Given(), given, level=0.9, n_resamples=4000, seed=1)
    assert calibration.best_threshold == pytest.approx(best(np.arange(60)))
    assert calibration.interval == pytest.approx((low, high), abs=0.03)
    again = calibrate(Given(), given, level=0.9, n_resamples=4000, seed=1)
    assert again.interval == calibration.interval


def test_borderline_lists_the_pairs_nearest_to_the_threshold():
    """The pairs on either side of 0.4 come first, with what is wrong about them."""
    table = calibrate(Given(), MIXED, n_resamples=10).borderline(3)
    assert table["predicted"].tolist() == ["0.5", "0.3", "0.6"]
    assert table["wrong"].tolist() == [False, False, True]
    assert table.index.tolist() == [3, 4, 2]


def test_a_pair_with_nothing_in_common_is_never_a_match():
    """Similarity 0 stays below every threshold, 0 included."""
    calibration = calibrate(Given(), pairs((0.7, True), (0.0, True), (0.0, False)), n_resamples=10)
    assert calibration.decision(0.0) == {"precision": 1.0, "recall": 0.5, "f1": 2 / 3}


def test_named_matcher_calibrates_on_texts():
    """One of five words differs in the relevant pair (0.8), four in the other (0.2)."""
    calibration = calibrate(
        "rouge1", [("a b c d e", "a b c d x", True), ("a b c d e", "a v w x y", False)]
    )
    assert calibration.similarity.tolist() == pytest.approx([0.8, 0.2])
    assert calibration.best_threshold == pytest.approx(0.5)


def test_plot_draws_the_curve_and_marks_the_threshold():
    """Three lines hold the curve's numbers; one upright line stands at the best threshold."""
    from matplotlib.figure import Figure

    calibration = calibrate(Given(), MIXED, n_resamples=10)
    ax = calibration.plot(ax=Figure().subplots())
    drawn = {line.get_label(): line for line in ax.lines}
    assert drawn["F1"].get_ydata().tolist() == calibration.curve["f1"].tolist()
    assert drawn["Precision"].get_xdata().tolist() == calibration.curve["threshold"].tolist()
    assert drawn["Best threshold 0.40"].get_xdata() == pytest.approx([0.4, 0.4])


def test_rows_and_frames_say_the_same_as_triples():
    """Columns in any order; what else a table holds is left alone."""
    rows = [{"relevant": r, "predicted": p, "note": "", "actual": a} for a, p, r in MIXED]
    for given in (rows, pd.DataFrame(rows), pa.Table.from_pylist(rows).to_reader()):
        assert calibrate(Given(), given, n_resamples=10).best_threshold == pytest.approx(0.4)


def test_a_table_of_borderline_pairs_can_be_labelled_and_read_back():
    """The relevant column turned round: what was found is now wrong, and the other way round."""
    borderline = calibrate(Given(), MIXED, n_resamples=10).borderline(6)
    borderline["relevant"] = ~borderline["relevant"]
    again = calibrate(Given(), borderline, n_resamples=10)
    assert again.relevant.sum() == 3
    assert again.decision(0.55) == {"precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3}


def test_pairs_that_a_threshold_separates_show_the_gap():
    """0.3 and 0.7: every threshold above the first, up to the second; there an interval has none.

    Resampling finds 0.5 each time, which says nothing about the other thresholds; of few pairs, it
    says nothing at all.
    """
    from matplotlib.figure import Figure

    calibration = calibrate(Given(), pairs(*[(0.7, True)] * 9, *[(0.3, False)] * 9))
    assert np.isnan(calibration.interval).all()
    many = calibrate(Given(), pairs(*[(0.7, True)] * 19, *[(0.3, False)] * 19))
    assert many.interval == (0.5, 0.5)
    assert calibration.gap == (0.3, 0.7)
    f1 = [calibration.decision(threshold)["f1"] == 1 for threshold in (0.3, 0.31, 0.7, 0.71)]
    assert f1 == [False, True, True, False]
    for language in ("en", "ko"):
        said = calibration.summary(language)
        assert ("0.3000" in said, "0.7000" in said, "95" in said) == (True, True, False)
    ax = calibration.plot(ax=Figure().subplots())
    assert [patch.get_label() for patch in ax.patches] == ["Separates all pairs"]
    mixed = calibrate(Given(), MIXED, n_resamples=10)
    assert mixed.gap is None
    # Of a relevant pair without any similarity, nothing can be found.
    assert calibrate(Given(), pairs((0.7, True), (0.0, True), (0.0, False))).gap is None


# Both yes 20, the matcher alone 10, people alone 5, both no 15.
FIFTY = pairs(*[(0.9, True)] * 20, *[(0.9, False)] * 10, *[(0.1, True)] * 5, *[(0.1, False)] * 15)


def test_agreement_is_cohens_kappa():
    """The example of Wikipedia, "Cohen's kappa": (0.7 - 0.5) / (1 - 0.5) = 0.4."""
    found = agreement(Given(), FIFTY)
    assert found.kappa == pytest.approx(0.4)
    assert found.share == 0.7
    assert found.counts == (20, 10, 5, 15)
    assert (found.false_alarms, found.missed) == (10, 5)
    assert found.confusion.to_numpy().tolist() == [[20, 5], [10, 15]]
    assert found.confusion.loc[True, False] == found.missed
    assert len(found.disagreements) == 15
    assert found.disagreements.index.tolist() == list(range(20, 35))


def test_interval_of_kappa_is_about_that_of_the_normal_approximation():
    """SE of Fleiss, Cohen & Everitt (1969) for the same table, worked below."""
    p = np.array([[20, 5], [10, 15]]) / 50  # rows: people, columns: matcher
    rows, columns = p.sum(1), p.sum(0)
    expected, kappa = (rows * columns).sum(), 0.4
    diagonal = sum(p[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in range(2))
    others = (1 - kappa) ** 2 * sum(
        p[i, j] * (columns[i] + rows[j]) ** 2 for i in range(2) for j in range(2) if i != j
    )
    constant = (kappa - expected * (1 - kappa)) ** 2
    error = np.sqrt((diagonal + others - constant) / 50) / (1 - expected)
    low, high = agreement(Given(), FIFTY).interval
    assert low == pytest.approx(kappa - 1.96 * error, abs=0.03)
    assert high == pytest.approx(kappa + 1.96 * error, abs=0.03)
    assert agreement(Given(), FIFTY).interval == (low, high)


@pytest.mark.parametrize(("threshold", "kappa"), [(None, 2 / 3), (0.7, 2 / 3), (0.55, 1 / 3)])
def test_agreement_is_at_one_threshold(threshold, kappa):
    """Of MIXED: 4, 2 and 3 matches, of them 3, 2 and 2 right; half agree by chance."""
    options = {} if threshold is None else {"threshold": threshold}
    matcher = Given()
    assert agreement(matcher, MIXED, **options).kappa == pytest.approx(kappa)


def test_agreement_takes_matchers_without_a_threshold():
    """They decide, so they can agree."""
    assert agreement("text", [("a", "a", True), ("a", "b", False)]).kappa == 1.0


@pytest.mark.parametrize("by", ["tuples", "rows", "table"])
def test_a_judge_gets_the_question_of_each_pair(by):
    """As the fourth, or in a column; the same texts are right for one question alone."""
    rows = [
        {"actual": "5 euros", "predicted": "5 euros", "relevant": question == "How much?",
         "question": question}
        for question in ("How much?", "When?")
    ]  # fmt: skip
    given = {"tuples": [tuple(row.values()) for row in rows], "rows": rows}
    given["table"] = pd.DataFrame(rows)
    matcher = JudgeMatcher(lambda question, actual, predicted: question == "How much?")
    assert agreement(matcher, given[by]).kappa == 1.0
    assert calibrate(matcher, given[by], n_resamples=10).best_f1 == 1.0
