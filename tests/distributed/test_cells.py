"""Cells of engines' tables, read as documents."""

from __future__ import annotations

import numpy as np
import pytest

from krag_eval import AnyOf
from krag_eval.distributed.worker import document_lists


def test_arrays_are_lists():
    """Spark hands every list over as a numpy array, also within structs."""
    alternatives = np.array([{"page_content": "b", "any_of": None}, "c"], object)
    cells = [np.array(["a", "b"], object), np.array([{"any_of": alternatives}], object)]
    assert document_lists(cells, "actual") == [["a", "b"], [AnyOf([{"page_content": "b"}, "c"])]]


def test_null_fields_are_absent():
    """A struct of a table has every field; a metadata key that is null was never given."""
    cell = [{"page_content": "a", "id": None, "metadata": {"grade": None, "page": 3}}]
    assert document_lists([cell], "actual") == [[{"page_content": "a", "metadata": {"page": 3}}]]
    assert document_lists([[{"page_content": "a", "metadata": None}]], "actual") == [
        [{"page_content": "a"}]
    ]


def test_rows_of_an_engine_are_structs():
    """Whatever has ``asDict``, as Spark's Row does."""

    class Row:
        def __init__(self, **fields):
            self.fields = fields

        def asDict(self):  # noqa: N802 - Spark's name
            return self.fields

    cell = [Row(page_content="a", metadata=Row(page=1, source=None))]
    assert document_lists([cell], "actual") == [[{"page_content": "a", "metadata": {"page": 1}}]]


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("['a', 'b']", "got the text .*convert-string"),
        (None, r"got nothing \(null\)"),
        (float("nan"), r"got nothing \(null\)"),
        (3, "got a int"),
    ],
)
def test_what_is_no_list_is_refused(cell, problem):
    """Naming the column and the row, and what to do about text."""
    with pytest.raises(TypeError, match=f"predicted, row 1 of its part: must be a list.*{problem}"):
        document_lists([["a"], cell], "predicted")


def test_alternatives_stand_alone():
    """A struct cannot be a document and its alternatives."""
    with pytest.raises(TypeError, match="must hold nothing else, got page_content too"):
        document_lists([[{"page_content": "a", "any_of": ["b"]}]], "actual")
