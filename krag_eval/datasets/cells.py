"""One cell of a table: the list of documents in it, native or written as text.

A cell of text is a list if it is written as one, in JSON or as Python prints it; it is read as data
and never run. Any other text is refused: whether it is one document or several nobody can tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from krag_eval.datasets.base import Blamed
from krag_eval.datasets.columns import Row, named, plain
from krag_eval.datasets.items import document_in, item_in
from krag_eval.datasets.literals import literal_in
from krag_eval.datasets.strict_json import parsed
from krag_eval.documents import AnyOf, DocumentLike

__all__ = ["check_text", "documents_in_cell", "list_in", "written_list"]

# LangChain's own rendering of a Document, which hides where its text ends.
_PRINTED = re.compile(
    r"\s*(?:Document\(.*page_content=['\"].*\)|page_content=['\"].*['\"] metadata=\{.*\})\s*",
    re.DOTALL,
)

_DOCUMENT_FIELDS = ("page_content", "metadata", "id", "type")


def documents_in_cell(value: Any, row: Row, *, ground_truth: bool) -> list[Any]:
    """Return the documents in a cell: items of the ground truth, or what was retrieved.

    Raises:
        DatasetError: If it holds no list of documents; the message names row and column.

    >>> documents_in_cell("['a', 'b']", Row("qa.csv", 2, "actual"), ground_truth=True)
    ['a', 'b']
    """
    place = row._replace(column="")
    return [
        _document(plain(one), f"{row.column}[{position}]", place, ground_truth)
        for position, one in enumerate(list_in(value, row))
    ]


def list_in(value: Any, row: Row) -> list[Any]:
    """Return the list in a cell, whatever it is a list of."""
    value = plain(value)
    if isinstance(value, str):
        return written_list(value, row)
    if isinstance(value, list | tuple):
        return list(value)
    if named(value) == "nothing":
        raise row.error("is empty; expected a list of documents; write [] where there are none.")
    raise row.error(
        f"must be a list of documents, even for one document, got {named(value)}; write […]."
    )


def written_list(text: str, row: Row) -> list[Any]:
    """Return the list that a text spells, in JSON or in Python."""
    text = text.strip()
    if not text:
        raise row.error("is empty; expected a list of documents; write [] where there are none.")
    if _PRINTED.fullmatch(text):
        raise row.error(_printed())
    if text[0] not in "[(":
        raise row.error(
            f'is plain text ({text[:40]!r}); expected a list, written as ["…", "…"]; if each row '
            "has one document, make a list of each first: "
            f"frame[{row.column!r}] = frame[{row.column!r}].map(lambda text: [text])."
        )
    try:
        value = parsed(text, row)
    except json.JSONDecodeError:
        value = literal_in(text, row)
    if not isinstance(value, list):  # pragma: no cover - what starts with a bracket is a list
        raise row.error("must be a list of documents.")
    return value


def _document(value: Any, where: str, place: Row, ground_truth: bool) -> DocumentLike | AnyOf:
    if isinstance(value, str):
        check_text(value, where, place)
        return value
    if isinstance(value, AnyOf) and ground_truth:
        return value
    if hasattr(value, "page_content") and hasattr(value, "metadata"):
        check_text(value.page_content, where, place)
        return value  # type: ignore[no-any-return]
    if isinstance(value, Mapping):
        return _mapping(value, where, place, ground_truth)
    if isinstance(value, int) and not isinstance(value, bool):
        raise place.error(
            f"{where} must be a document, got the number {str(value)[:40]}; ids are text here, as "
            f'in ["7"].'
        )
    raise place.error(
        f'{where} must be a string or an object with "page_content", got {named(value)}; leave out '
        "what is not a document."
    )


def _mapping(
    value: Mapping[str, Any], where: str, place: Row, ground_truth: bool
) -> DocumentLike | AnyOf:
    content = dict(value)
    if content.get("any_of") is not None or content.get("page_content") is not None:
        # In a table of structs every document has every field; those of the other kind are empty.
        other = _DOCUMENT_FIELDS if content.get("any_of") is not None else ("any_of",)
        content = {key: one for key, one in content.items() if one is not None or key not in other}
    alternatives = plain(content.get("any_of"))
    if ground_truth and set(content) == {"any_of"} and isinstance(alternatives, list | tuple):
        if not alternatives:
            raise place.error(f'{where}: "any_of" needs at least one document.')
        return AnyOf(
            _alternative(plain(one), f"{where}.any_of[{position}]", place)
            for position, one in enumerate(alternatives)
        )
    read = item_in if ground_truth else document_in
    found = read(content, where, place)
    check_text(content["page_content"], where, place)
    return found


def _alternative(value: Any, where: str, place: Row) -> DocumentLike:
    found = _document(value, where, place, False)
    assert not isinstance(found, AnyOf)  # refused above, where it is no ground truth
    return found


def check_text(text: Any, where: str, place: Blamed) -> None:
    """Refuse what is no text, half of a character, or a document as LangChain prints it.

    Raises:
        DatasetError: In these cases.
    """
    if not isinstance(text, str):
        raise place.error(f"{where} must be text, got {named(text)}.")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise place.error(
                f"{where} holds half of a surrogate pair ({text[error.start]!r}), which is not a "
                "character; an emoji was probably cut in two."
            ) from error
    if text.startswith(("page_content=", "Document(")) and _PRINTED.fullmatch(text):
        raise place.error(f"{where} {_printed()}")


def _printed() -> str:
    return (
        "is a LangChain Document as it prints itself, from which its text cannot be told for "
        "certain; save its page_content, or its model_dump() as JSON."
    )
