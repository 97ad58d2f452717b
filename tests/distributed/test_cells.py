"""Cells of engines' tables, read as documents."""

import numpy as np

from krag_eval import AnyOf
from krag_eval.core import id_of, metadata_of, text_of
from krag_eval.distributed.worker import document_lists


def test_arrays_are_lists():
    """Spark hands every list over as a numpy array, also within structs."""
    alternatives = np.array([{"page_content": "b", "any_of": None}, "c"], object)
    cells = [np.array(["a", "b"], object), np.array([{"any_of": alternatives}], object)]
    assert document_lists(cells, "actual") == [["a", "b"], [AnyOf([{"page_content": "b"}, "c"])]]


def test_null_fields_are_absent():
    """A struct of a table has every field."""
    cell = [{"page_content": "a", "id": None, "metadata": None, "any_of": None, "source": None}]
    ((document,),) = document_lists([cell], "actual")
    assert (text_of(document), id_of(document), metadata_of(document)) == ("a", None, {})
    cell = [{"page_content": None, "metadata": None, "any_of": ["a", "b"]}]
    assert document_lists([cell], "actual") == [[AnyOf(["a", "b"])]]


def test_rows_of_an_engine_are_structs():
    """Whatever has ``asDict``, as Spark's Row does, at every level."""

    class Row:
        def __init__(self, **fields):
            self.fields = fields

        def asDict(self, recursive):  # noqa: N802 - Spark's name
            assert recursive
            return self.fields

    cell = [Row(page_content="a", metadata={"page": 1})]
    assert document_lists([cell], "actual") == [[{"page_content": "a", "metadata": {"page": 1}}]]


def test_lists_written_as_text_are_lists():
    """Dask writes lists as text where it converts strings."""
    assert document_lists(["['a', 'b']", '["c"]'], "actual") == [["a", "b"], ["c"]]
