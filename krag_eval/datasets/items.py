"""From plain values, as JSON and tables hold them, to documents and interchangeable ones.

This room knows which keys a document may have. It must not know where a value was read: whoever
did hands over a place to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from krag_eval.datasets.base import Blamed
from krag_eval.datasets.strict_json import kind_of, names_of
from krag_eval.documents import AnyOf, DocumentLike

__all__ = ["document_in", "item_in"]

_DOCUMENT_KEYS = frozenset({"page_content", "metadata", "id", "type"})
# Far beyond any real metadata, far below where Python's own recursion gives up.
_MAX_DEPTH = 100


def item_in(value: Any, where: str, place: Blamed) -> DocumentLike | AnyOf:
    """Return a ground-truth item: a document, or interchangeable ones.

    Args:
        value: A value as JSON has them.
        where: Where it stands within what ``place`` names, for the message.
        place: Whom to blame.

    Raises:
        DatasetError: If the value is none.

    >>> from krag_eval.datasets.base import Place
    >>> item_in({"any_of": ["five euros", "5 €"]}, "actual[0]", Place("run.jsonl", 1))
    AnyOf(['five euros', '5 €'])
    """
    if isinstance(value, list):
        raise place.error(
            f"{where} must be a document, got a list; write "
            '{"any_of": […]} for interchangeable documents.'
        )
    if not isinstance(value, dict) or "any_of" not in value:
        return document_in(value, where, place)
    alternatives = value["any_of"]
    if len(value) > 1 or not isinstance(alternatives, list) or not alternatives:
        raise place.error(
            f'{where}: "any_of" must be the only key and hold a list of one or more documents, '
            f"got {kind_of(alternatives)} and the keys {names_of(value)}; write "
            '{"any_of": ["…", "…"]}.'
        )
    return AnyOf(
        [document_in(one, f"{where}.any_of[{i}]", place) for i, one in enumerate(alternatives)]
    )


def document_in(value: Any, where: str, place: Blamed) -> DocumentLike:
    """Return a document: a string, or an object as :func:`item_in` takes them.

    Raises:
        DatasetError: If the value is none.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise place.error(
            f'{where} must be a string or an object with "page_content", got {kind_of(value)}; '
            "leave out what is not a document."
        )
    if "any_of" in value:
        raise place.error(f'{where}: "any_of" belongs in the ground truth, one level deep.')
    if "page_content" not in value or not value.keys() <= _DOCUMENT_KEYS:
        raise place.error(
            f'{where} needs the key "page_content" and may have "metadata" and "id", got the keys '
            f'{names_of(value)}; put anything else into "metadata".'
        )
    _check_parts(value, where, place)
    return value


def _check_parts(document: Mapping[str, Any], where: str, place: Blamed) -> None:
    text, metadata, identity = map(document.get, ("page_content", "metadata", "id"))
    if not isinstance(text, str):
        raise place.error(f"{where}.page_content must be a string, got {kind_of(text)}.")
    if not isinstance(metadata, dict | None):
        raise place.error(f"{where}.metadata must be an object, got {kind_of(metadata)}.")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise place.error(
            f"{where}.id must be a string or a whole number, got {kind_of(identity)}."
        )
    if metadata and _deeper_than(_MAX_DEPTH, metadata):
        raise place.error(f"{where}.metadata is nested too deeply; flatten it.")


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True
