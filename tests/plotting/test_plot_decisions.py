"""The curve of a calibration, read from the artists."""

import pytest

from krag_eval import calibrate
from krag_eval.plotting import calibration_curve

PAIRS = [
    ("a b c d", "a b c d", True),
    ("a b c d", "a b c x", True),
    ("a b c d", "x y z d", False),
    ("a b c d", "w x y z", False),
]


def test_decision_interval_and_best_threshold():
    """Three lines, a band and a mark; the legend names all of them."""
    calibration = calibrate("rouge1", [*PAIRS * 3, ("a b c d", "w x y d", True)])
    ax = calibration_curve(calibration)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    best = f"Best threshold {calibration.best_threshold:.2f}"
    assert names == ["Precision", "Recall", "F1", "95 % interval", best]
    f1 = next(line for line in ax.lines if line.get_label() == "F1")
    assert max(f1.get_ydata()) == pytest.approx(calibration.best_f1)
    mark = next(line for line in ax.lines if line.get_label() == best)
    assert list(mark.get_xdata()) == [calibration.best_threshold] * 2
    assert "on 13 pairs" in " ".join(ax.get_title(loc="left").split())
