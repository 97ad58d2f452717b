"""Long texts: a warning before the comparison begins, only if it takes minutes."""

import warnings

import numpy as np
import pytest

from krag_eval import KragEvalWarning, OfflineRetrievalEvaluator, RougeMatcher
from krag_eval._errors import Advice
from krag_eval.documents import AnyOf, QuerySet
from krag_eval.matching import rouge
from krag_eval.matching.joins import Units
from krag_eval.matching.waiting import Comparison, warn_of_long_wait


def comparison(per_pair):
    """Return a comparison that takes so many seconds per pair of letters."""
    return Comparison(
        name="letters",
        of="letters",
        seconds=lambda actual, predicted: float(actual.sum() * predicted.sum() * per_pair),
        at_most=per_pair,
        advice=Advice("Use fewer"),
    )


def announced(actual, predicted, per_pair):
    """Return what is said of these texts."""
    units = Units.of_texts(QuerySet.from_lists(actual, predicted))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_long_wait(units, np.array([*map(len, units.values)]), comparison(per_pair))
    return [str(warning.message) for warning in caught]


def test_the_wait_is_that_of_all_queries_with_long_texts():
    """Of 2 * 3 and 4 * 5 pairs at 3 seconds each: 78 seconds, though no query takes 60."""
    actual, predicted = [["ab"], ["cdef"], ["x"]], [["abc"], ["abcde"], []]
    assert announced(actual, predicted, 3.0) == [
        "letters compares every letter with every other, and 2 of 3 queries have long texts, up to "
        "4 letters of ground truth and 5 predicted ones in query 1 (counted from 0). That takes "
        "about 1 minutes of one core. Use fewer."
    ]
    assert announced(actual, predicted, 2.0) == []


def test_many_short_texts_are_no_surprise():
    """Each query takes less than a tenth of a second, however many there are."""
    assert announced([["a"]] * 2_000, [["b"]] * 2_000, 0.09) == []
    assert len(announced([["a"]] * 2_000, [["b"]] * 2_000, 0.11)) == 1


def test_a_text_that_is_repeated_counts_once():
    """As it is compared once: 10 seconds, not 100."""
    assert announced([["a"]], [["b"] * 10], 10.0) == []
    assert announced([["a"]], [["b", "c", "d", "e", "f", "g", "h"]], 10.0) != []


def test_alternatives_are_compared_too():
    """Three letters of ground truth against one: 61.5 seconds."""
    (said,) = announced([[AnyOf(["a", "bc"])]], [["d"]], 20.5)
    assert "up to 3 letters of ground truth and 1 predicted ones in query 0" in said


def test_it_is_said_before_the_work_begins(monkeypatch):
    """So that the work can be stopped: here the warning is an error, and nothing was compared."""
    monkeypatch.setattr(
        rouge,
        "_SUBSEQUENCES",
        Comparison("rougeL", "tokens", lambda a, p: 1e5, 1e5, Advice("Wait")),
    )

    def compare(tokens):
        raise AssertionError("compared")

    monkeypatch.setattr(rouge, "_subsequences", compare)
    evaluator = OfflineRetrievalEvaluator([["a b"]], [["b c"]], matcher=RougeMatcher("rougeL"))
    with (
        pytest.warns(KragEvalWarning, match="about 28 hours of one core"),
        pytest.raises(AssertionError, match="compared"),
    ):
        evaluator.calculate_recall()
    warnings.simplefilter("error")
    with pytest.raises(KragEvalWarning, match="about 28 hours"):
        OfflineRetrievalEvaluator([["a"]], [["b"]], matcher="rougeL").calculate_recall()
    with pytest.raises(KragEvalWarning, match="about 28 hours"):
        RougeMatcher("rougeL").similarity("a", "b")
