"""Wording and placing of what the package says to its users."""

from __future__ import annotations

import threading
import warnings

import pytest

from krag_eval import KragEvalWarning, OfflineRetrievalEvaluator, compare
from krag_eval.messages import muted, unknown_name, warn


def test_a_warning_points_at_the_user_s_line() -> None:
    """Filters by module, and the line shown, are the caller's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OfflineRetrievalEvaluator([["a"]], [["x"]]).calculate_recall()
    assert [warning.filename for warning in caught] == [__file__]


def test_the_same_warning_is_shown_for_every_evaluator() -> None:
    """Python's default would show it for the first of a loop and hide a silent 0 for the rest."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            OfflineRetrievalEvaluator([["a"]], [["x"]]).calculate_recall()
    assert [warning.category for warning in caught] == [KragEvalWarning] * 3


def test_muting_keeps_to_its_own_thread() -> None:
    """Another thread's warnings are shown all the same, and ours again afterwards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with muted():
            warn("from here")
            other = threading.Thread(target=warn, args=("from there",))
            other.start()
            other.join()
        warn("again from here")
    assert [str(one.message) for one in caught] == ["from there", "again from here"]


def test_an_unknown_name_far_from_all_gets_no_suggestion() -> None:
    """A guess that helps nobody is left out."""
    assert unknown_name("matcher", "zzz", ("text", "id")) == (
        "matcher must be one of 'text', 'id', got 'zzz'."
    )


def test_a_misspelled_metric_leads_to_both_of_its_averages() -> None:
    """In capitals it is no name; the names are listed once."""
    rows = [[f"passage {i}"] for i in range(3)]
    result = OfflineRetrievalEvaluator(rows, rows).evaluate(3)
    meant = r"got 'Recall'; did you mean 'micro_recall' or 'macro_recall'\?$"
    with pytest.raises(ValueError, match=meant):
        result.check({"Recall@3": 0.8})
    with pytest.raises(ValueError, match=meant):
        compare({"a": result, "b": result}, metric="Recall@3")


def test_an_allowed_name_is_listed_once() -> None:
    """A metric may be named by its column and by its key, which are often the same."""
    with pytest.raises(ValueError, match="must be one of") as caught:
        OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(3, metrics=["nope"])
    assert str(caught.value).count("'hit_rate'") == 1
    assert str(caught.value).count("'ndcg'") == 1
