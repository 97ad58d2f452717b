"""Cells of engines' tables as documents: arrays as lists, structs without what is null.

This room knows how tables hold lists of documents. It must not know any engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from krag_eval.documents import AnyOf

__all__ = ["document_lists"]


def document_lists(cells: Iterable[Any], name: str) -> list[list[Any]]:
    """Return one list of documents per row.

    A cell is a list (or an array) of texts or of structs ``page_content``, ``metadata``, ``id``.
    In a table every struct has every field, so a field that is null counts as not there; a struct
    with ``any_of`` is interchangeable documents.

    Args:
        cells: The cells of a column.
        name: The column, for messages.

    Raises:
        TypeError: If a cell is no list; rows are counted from 0 within the part.

    >>> document_lists([["a", {"page_content": "b", "id": None}], []], "actual")
    [['a', {'page_content': 'b'}], []]
    >>> document_lists([[{"page_content": None, "any_of": ["a", "b"]}]], "actual")
    [[AnyOf(['a', 'b'])]]
    """
    return [_documents(cell, f"{name}, row {row} of its part") for row, cell in enumerate(cells)]


def _documents(cell: Any, where: str) -> list[Any]:
    value = cell.tolist() if hasattr(cell, "tolist") else cell
    if isinstance(value, list | tuple):
        # Lists of nothing but texts are the common case, and need no copy.
        if set(map(type, value)) <= {str}:
            return list(value)
        return [_document(one) for one in value]
    if isinstance(value, str):
        raise TypeError(
            f"{where}: must be a list of documents, got the text {value[:40]!r}; a column of "
            "lists was turned into text on the way here. Keep it a column of lists (in Dask: "
            'dask.config.set({"dataframe.convert-string": False}) before the frame is made).'
        )
    missing = value is None or value != value
    came = "nothing (null)" if missing else f"a {type(value).__name__}"
    raise TypeError(
        f"{where}: must be a list of documents, got {came}; write a list even for one document, "
        "and an empty one for none."
    )


def _document(value: Any) -> Any:
    if hasattr(value, "asDict"):  # a row of Spark's
        value = value.asDict()
    if not isinstance(value, Mapping):
        return value
    given = {name: one for name, one in value.items() if one is not None}
    if "any_of" in given:
        alternatives = given.pop("any_of")
        if given:
            raise TypeError(
                "a struct with any_of lists interchangeable documents and must hold nothing else, "
                f"got {', '.join(map(str, given))} too."
            )
        if hasattr(alternatives, "tolist"):
            alternatives = alternatives.tolist()
        return AnyOf([_document(one) for one in alternatives])
    if "metadata" in given:
        given["metadata"] = _metadata(given["metadata"])
    return given


def _metadata(value: Any) -> Any:
    if hasattr(value, "asDict"):
        value = value.asDict()
    if not isinstance(value, Mapping):
        return value
    return {name: one for name, one in value.items() if one is not None}
