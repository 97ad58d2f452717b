"""Measures of decisions, against values worked out by hand and slower ways."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from study import answers


@pytest.fixture
def drawn():
    """Similarities with ties, and truth, of twelve documents."""
    generator = np.random.default_rng(3)
    similarity = generator.integers(0, 8, 120) / 8
    right = generator.random(120) < similarity
    return similarity, right, generator.integers(0, 12, 120)


def test_measures_by_hand():
    # 6 true, 2 false, 3 missed, 9 rightly turned down.
    counts = np.array([6.0, 2.0, 3.0, 9.0])
    assert float(answers.precision(counts)) == 6 / 8
    assert float(answers.recall(counts)) == 6 / 9
    assert float(answers.f1(counts)) == pytest.approx(12 / 17)
    assert float(answers.false_alarms(counts)) == 2 / 11
    assert float(answers.balanced_precision(counts)) == pytest.approx((6 / 9) / (6 / 9 + 2 / 11))
    # Observed 15/20; by chance (8 * 9 + 12 * 11) / 400 = .51.
    assert float(answers.kappa(counts)) == pytest.approx((0.75 - 0.51) / 0.49)


def test_nothing_accepted_has_a_recall_and_no_precision():
    counts = np.array([0.0, 0.0, 3.0, 9.0])
    assert np.isnan(answers.precision(counts))
    assert float(answers.recall(counts)) == 0.0
    assert float(answers.f1(counts)) == 0.0
    assert float(answers.kappa(counts)) == 0.0


def test_auc_is_the_share_of_the_u_statistic(drawn):
    similarity, right, _ = drawn
    u = mannwhitneyu(similarity[right], similarity[~right]).statistic
    assert answers.auc(similarity, right) == pytest.approx(u / (right.sum() * (~right).sum()))


def test_the_best_threshold_is_the_best_of_all(drawn):
    similarity, right, _ = drawn

    def f1_at(threshold):
        accepted = (similarity >= threshold) & (similarity > 0)
        both = int((accepted & right).sum())
        return 2 * both / (int(accepted.sum()) + int(right.sum()))

    everywhere = [f1_at(at) for at in np.linspace(0.001, 1, 2_000)]
    best = answers.best_threshold(similarity, right)
    assert f1_at(best) == pytest.approx(max(everywhere))
    assert (best * 16) % 2 == 1  # between two eighths


def test_intervals_resample_documents_and_not_pairs(drawn):
    similarity, right, documents = drawn
    accepted = similarity >= 0.5
    weights = answers.resampled(12)
    found = answers.decision(accepted, right, documents, weights)
    # The slow way, document by document.
    generator = np.random.default_rng(answers.SEED)
    times = generator.multinomial(12, [1 / 12] * 12, size=answers.N_RESAMPLES)
    shares = []
    for draw in times:
        pairs = np.repeat(np.arange(120), draw[documents])
        yes = accepted[pairs]
        shares.append(right[pairs][yes].mean())
    low, high = np.quantile(shares, [0.025, 0.975])
    assert found["precision"] == pytest.approx(
        [right[accepted].mean(), low, high], abs=1e-6
    )  # rounded to six digits


def test_few_documents_have_no_interval():
    found = answers.decision(
        np.array([True, False]), np.array([True, True]), np.array([0, 1]), answers.resampled(2)
    )
    assert found["recall"] == [0.5, None, None]
