"""Wording and placement of the package's messages."""

import math
import threading
import warnings

import pytest

from krag_eval import KragEvalWarning, Matcher, OfflineRetrievalEvaluator, compare
from krag_eval.core import errors


def test_a_warning_points_at_the_user_s_line():
    """Filters by module, and the line shown, are the caller's."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        OfflineRetrievalEvaluator([["a"]], [["x"]]).calculate_recall()
    assert [warning.filename for warning in caught] == [__file__]


def test_the_same_warning_is_shown_for_every_evaluator():
    """Python's default would show it for the first of a loop and hide a silent 0 for the rest."""
    with warnings.catch_warnings(record=True, action="default") as caught:
        for _ in range(3):
            OfflineRetrievalEvaluator([["a"]], [["x"]]).calculate_recall()
    assert [warning.category for warning in caught] == [KragEvalWarning] * 3


def test_muting_keeps_to_its_own_thread():
    """Another thread's warnings are shown all the same, and ours again afterwards."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        with errors.muted():
            errors.warn("from here")
            other = threading.Thread(target=errors.warn, args=("from there",))
            other.start()
            other.join()
        errors.warn("again from here")
    assert [str(one.message) for one in caught] == ["from there", "again from here"]


def test_an_unknown_name_far_from_all_gets_no_suggestion():
    """A guess that helps nobody is left out."""
    assert str(errors.unknown("matcher", "zzz", ("text", "id"))) == (
        "matcher must be one of 'text', 'id', got 'zzz'."
    )


def test_a_misspelled_metric_leads_to_both_of_its_averages():
    """In capitals it is no name; of so many names, those that are like it are told."""
    rows = [[f"passage {i}"] for i in range(3)]
    result = OfflineRetrievalEvaluator(rows, rows).evaluate(3)
    meant = r"no average 'Recall'; did you mean 'macro_recall' or 'micro_recall'\?"
    with pytest.raises(ValueError, match=meant):
        result.check({"Recall@3": 0.8})
    with pytest.raises(ValueError, match=meant):
        compare({"a": result, "b": result}, metric="Recall@3")


def test_an_allowed_name_is_listed_once():
    """A metric may be named by its column and by its key, which are often the same."""
    with pytest.raises(ValueError, match="must be one of") as caught:
        OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(3, metrics=["nope"])
    assert str(caught.value).count("'hit_rate'") == 1
    assert str(caught.value).count("'ndcg'") == 1


@pytest.mark.parametrize(
    ("value", "bound", "form", "written"),
    [
        (0.25, 0.5, ".3g", ("0.25", "0.5")),
        (1 / 3, 0.5, ".4f", ("0.3333", "0.5")),
        (0.2, 1 / 3, ".4f", ("0.2000", "0.333333")),
        (0.3, 0.1 + 0.2, ".3g", ("0.3", "0.30000000000000004")),
        (0.1 + 0.2, 0.3, ".4f", ("0.30000000000000004", "0.3")),
        (0.79996, 0.8, ".4f", ("0.79996", "0.8")),
        # 0.8000 would stand above a bound that the value is below.
        (0.79999, 0.799995, ".4f", ("0.79999", "0.799995")),
        (0.3, 0.3, ".4f", ("0.3000", "0.3")),
    ],
)
def test_a_number_is_written_on_its_side_of_a_bound(value, bound, form, written):
    """With as few digits as do it."""
    assert errors.told_apart(value, bound, form) == written


def test_a_similarity_just_below_the_threshold_does_not_look_like_it():
    """0.1 + 0.2 is a little more than 0.3, in the warning and in the explanation."""
    matcher = Matcher.from_function(lambda actual, predicted: 0.3, name="near")
    evaluator = OfflineRetrievalEvaluator([["a"]], [["b"]], matcher, threshold=0.1 + 0.2)
    with pytest.warns(KragEvalWarning, match="0.3, below the threshold of 0.30000000000000004"):
        result = evaluator.evaluate(1)
    lines = str(result.explain(0)).split("\n")
    assert "matcher near, threshold 0.30000000000000004" in lines


@pytest.mark.parametrize(
    ("check", "allowed", "right", "wrong_value", "wrong_type"),
    [
        (errors.whole, (1, 9), (1, 9), (0, 10), (True, 1.0, "1", None)),
        (errors.number, (0, 1), (0, 0.5, 1), (-0.1, 2, math.nan), (True, "1", 1j)),
        (errors.number, (0,), (0, 1e300), (-1, math.inf), (None, [1])),
        (errors.one_of, (("x", "y"),), ("x", "y"), ("X", ""), (None, 1, ["x"])),
        (errors.boolean, (), (True, False), (), ("no", 1, None)),
        (errors.text, (), ("x", " "), ("",), (None, 1, b"x")),
    ],
)
def test_a_wrong_type_and_a_wrong_value_are_told_apart(
    check, allowed, right, wrong_value, wrong_type
):
    """Whatever the condition; the error names the argument and what came."""
    assert tuple(check("a", value, *allowed) for value in right) == right
    for values, kind in ((wrong_value, errors.InvalidInput), (wrong_type, errors.InvalidType)):
        for value in values:
            with pytest.raises(kind) as info:
                check("a", value, *allowed)
            assert info.value.argument == "a"
            assert errors.clipped(value) in str(info.value) or "empty text" in str(info.value)
