"""The waterfall of a diagnosis, read from the artists."""

from __future__ import annotations

import pytest

from krag_eval import Diagnosis, OfflineRetrievalEvaluator
from krag_eval.plotting import diagnosis_waterfall


@pytest.fixture
def diagnosis() -> Diagnosis:
    """Of four passages one is found, one ranked too low, one not retrieved, one not indexed."""
    evaluator = OfflineRetrievalEvaluator([["a", "b", "c", "d"]], [["a", "b"]])
    return evaluator.evaluate([1, 2]).diagnose(["a", "b", "c"], k=1)


def test_each_bar_begins_where_the_last_one_ends(diagnosis: Diagnosis) -> None:
    """Quarters from 0 to 1."""
    bars = diagnosis_waterfall(diagnosis).patches
    assert [bar.get_x() for bar in bars] == pytest.approx([0, 0.25, 0.5, 0.75])
    assert [bar.get_width() for bar in bars] == pytest.approx([0.25] * 4)


def test_every_bar_says_its_share_and_recall_by_then(diagnosis: Diagnosis) -> None:
    """With two digits."""
    texts = [text.get_text() for text in diagnosis.plot().texts]
    assert texts == ["0.25", "0.25 (0.50)", "0.25 (0.75)", "0.25 (1.00)"]


@pytest.mark.parametrize(
    ("language", "first"), [("en", "recall now"), ("ko", "현재 재현율")]
)  # fmt: skip
def test_steps_are_named_in_both_languages(diagnosis: Diagnosis, language, first) -> None:
    """And so are title and axis."""
    ax = diagnosis.plot(language=language)
    assert ax.get_yticklabels()[0].get_text() == first
    assert "4" in ax.get_title(loc="left")


def test_it_draws_where_it_is_asked_to(diagnosis: Diagnosis) -> None:
    """On the axes given, and returns them."""
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert diagnosis_waterfall(diagnosis, ax) is ax


def test_without_items_there_is_nothing_to_draw() -> None:
    """Blank passages have no share; no bar has a width."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    empty = Diagnosis((), 1, None, None, None, 0.5, "text", union=False, knows_words=False)
    assert result.diagnose().shares["found"] == 1.0
    assert {bar.get_width() for bar in diagnosis_waterfall(empty).patches} == {0.0}
