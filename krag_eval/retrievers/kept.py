"""Kept documents: as JSON that gives the same documents back, or a refusal.

Metadata holds what people put there. What JSON has no form for (dates, tuples, numpy's numbers, …)
is spelled with a tag; what has no spelling here is refused, for it would come back as another.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from krag_eval.documents import DocumentLike, id_of, metadata_of, text_of

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = ["as_json", "from_json"]

_TAG = "~"

#: Type -> its name in the file, how it is spelled, how it is read.
_SPELLED: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    datetime.datetime: (
        "datetime",
        datetime.datetime.isoformat,
        datetime.datetime.fromisoformat,
    ),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    bytes: ("bytes", lambda one: base64.b64encode(one).decode("ascii"), base64.b64decode),
    float: ("float", repr, float),  # those JSON cannot write
}
_GATHERED: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_READ: dict[str, Callable[[Any], Any]] = {name: read for name, _, read in _SPELLED.values()}
_REGATHERED: dict[str, type] = {name: kind for kind, name in _GATHERED.items()}


def as_json(documents: Sequence[DocumentLike]) -> list[Any]:
    """Return documents as JSON can hold them; strings stay strings.

    Raises:
        TypeError: If metadata holds what would not come back the same.

    >>> as_json(["At nine."])
    ['At nine.']
    """
    return [
        str(one) if isinstance(one, str) else _document(one, position)
        for position, one in enumerate(documents)
    ]


def from_json(content: Sequence[Any]) -> list[DocumentLike]:
    """Return the documents that :func:`as_json` spelled.

    Raises:
        TypeError, ValueError, KeyError: If it did not.
    """
    return [one if isinstance(one, str) else _read_document(one) for one in content]


def _document(document: DocumentLike, position: int) -> dict[str, Any]:
    metadata = metadata_of(document)
    try:
        return {
            "page_content": text_of(document),
            "metadata": _value(dict(metadata), "metadata") if metadata else {},
            "id": id_of(document),
        }
    except RecursionError as error:
        problem = "metadata is nested too deeply or holds itself"
        raise TypeError(_refusal(position, problem)) from error
    except TypeError as error:
        raise TypeError(_refusal(position, str(error))) from error


def _refusal(position: int, problem: str) -> str:
    return (
        f"checkpoint: the retrieved document [{position}] cannot be kept in a file: {problem}. "
        "Turn it into text or numbers (retriever | a function that does), or leave checkpoint out."
    )


def _read_document(content: Any) -> Document:
    from langchain_core.documents import Document

    metadata = _read_value(content["metadata"])
    return Document(page_content=content["page_content"], metadata=metadata, id=content["id"])


def _value(value: Any, where: str) -> Any:
    """Spell one value; ``where`` names it, should it have no spelling."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return _mapping(value, where)
    if isinstance(value, list):
        return [_value(one, f"{where}[{i}]") for i, one in enumerate(value)]
    kind = type(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind in _SPELLED:
        name, spell, _ = _SPELLED[kind]
        return {_TAG: name, "value": spell(value)}
    if kind in _GATHERED:
        return {_TAG: _GATHERED[kind], "value": [_value(one, f"{where}[…]") for one in value]}
    raise TypeError(f"{where} is a {kind.__module__}.{kind.__qualname__}")


def _mapping(value: dict[Any, Any], where: str) -> Any:
    if all(type(key) is str for key in value) and _TAG not in value:
        return {key: _value(one, f"{where}[{key!r}]") for key, one in value.items()}
    pairs = [
        [_value(key, f"a key of {where}"), _value(one, f"{where}[{key!r}]")]
        for key, one in value.items()
    ]
    return {_TAG: "dict", "value": pairs}


def _read_value(content: Any) -> Any:
    if isinstance(content, list):
        return [_read_value(one) for one in content]
    if not isinstance(content, dict):
        return content
    if _TAG not in content:
        return {key: _read_value(one) for key, one in content.items()}
    name, value = content[_TAG], content["value"]
    if name == "dict":
        return {_read_value(key): _read_value(one) for key, one in value}
    if name in _REGATHERED:
        return _REGATHERED[name](map(_read_value, value))
    return _READ[name](value)
