"""What a tool kept of a run: the documents within its outputs, in every form tools keep them.

This room knows under which keys documents stand, LangChain's serialised documents and
interchangeable ones. It must not know how documents are compared, or which tool asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from krag_eval._errors import clipped
from krag_eval.documents import AnyOf

__all__ = ["OUTPUT_KEYS", "REFERENCE_KEYS", "documents_in", "is_failure"]

#: Where the documents of a run usually stand; a target that returns a list has it under "output".
OUTPUT_KEYS = (
    "documents",
    "docs",
    "context",
    "contexts",
    "retrieved_contexts",
    "retrieved_documents",
    "source_documents",
    "predicted",
    "output",
)
#: Where the ground truth of an example usually stands.
REFERENCE_KEYS = (
    "documents",
    "docs",
    "context",
    "contexts",
    "reference_contexts",
    "reference_documents",
    "relevant_documents",
    "ground_truth",
    "actual",
    "output",
)
_LISTS = (list, tuple)


def is_failure(outputs: Any) -> bool:
    """Tell whether a run left nothing behind, as a failed one does.

    >>> is_failure(None), is_failure({"output": None}), is_failure({"documents": []})
    (True, True, False)
    """
    if isinstance(outputs, Mapping):
        return all(value is None for value in outputs.values())
    return outputs is None


def documents_in(
    payload: Any, key: str | None, usual: Sequence[str], where: str, option: str
) -> list[Any]:
    """Return the documents within a payload, as :class:`OfflineRetrievalEvaluator` takes them.

    Args:
        payload: A dict with a list of documents under some key, or the list itself.
        key: That key; ``None`` takes the one list under a usual key.
        usual: The usual keys.
        where: What the payload is called in error messages.
        option: The argument that names the key.

    Raises:
        ValueError: If the key is missing, several could be meant, or a document has no form known.
        TypeError: If what stands there is no list.
    """
    found, where = _list_in(payload, key, usual, where, option)
    return [_item(one, f"{where}[{position}]") for position, one in enumerate(found)]


def _list_in(
    payload: Any, key: str | None, usual: Sequence[str], where: str, option: str
) -> tuple[Sequence[Any], str]:
    if not isinstance(payload, Mapping):
        return _checked_list(payload, where), where
    if key is None:
        key = _usual_key(payload, usual, where, option)
    elif key not in payload:
        raise ValueError(
            f"{where} must hold the key {key!r} named by {option}, got the keys {_keys(payload)}."
        )
    where = f"{where}[{key!r}]"
    return _checked_list(payload[key], where), where


def _usual_key(payload: Mapping[Any, Any], usual: Sequence[str], where: str, option: str) -> str:
    keys = [key for key in usual if isinstance(payload.get(key), _LISTS)]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise ValueError(
            f"{where} holds several lists that could be the documents, "
            f"{' and '.join(map(repr, keys))}; name the one that is meant by {option}=…."
        )
    raise ValueError(
        f"{where} must hold a list of documents under one of {', '.join(map(repr, usual))}, got "
        f"the keys {_keys(payload)}; name another key by {option}=…."
    )


def _keys(payload: Mapping[Any, Any]) -> str:
    return clipped(list(payload))


def _checked_list(value: Any, where: str) -> Sequence[Any]:
    if isinstance(value, _LISTS):
        return value
    raise TypeError(
        f"{where} must be a list of documents, even for one document, got "
        f"{type(value).__name__}: {clipped(value)}."
    )


def _item(value: Any, where: str) -> Any:
    """Return a document as the evaluator takes it, or interchangeable ones as ``AnyOf``."""
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"any_of"} and isinstance(value["any_of"], _LISTS):
        alternatives = value["any_of"]
        return AnyOf([_item(one, f"{where}.any_of[{i}]") for i, one in enumerate(alternatives)])
    return _unserialised(value, where) if "lc" in value else value


def _unserialised(value: Mapping[Any, Any], where: str) -> Mapping[str, Any]:
    """Read a document as LangChain's ``dumps`` writes it; nothing is imported or built by name."""
    path, fields = value.get("id"), value.get("kwargs")
    is_document = isinstance(path, _LISTS) and bool(path) and path[-1] == "Document"
    if value.get("type") != "constructor" or not is_document or not isinstance(fields, Mapping):
        raise ValueError(
            f"{where} must be a document, got a serialised LangChain object of another kind, "
            f"{clipped(path)}."
        )
    return fields
