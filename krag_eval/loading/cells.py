"""Documents as cells of tables and fields of records hold them: lists, literals, plain texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from krag_eval.core import (
    Advice,
    DocumentLike,
    InvalidInput,
    Location,
    Tag,
    id_of,
    metadata_of,
    single,
    text_of,
)
from krag_eval.core.documents import (
    DRAFT,
    STATUS,
    Item,
    Record,
    by_rank,
    check_documents,
    chunk_in,
    composed,
    document_in,
    item_in,
    plain,
    unreviewed_in,
)
from krag_eval.core.errors import kind_of
from krag_eval.core.ranking import Standing
from krag_eval.loading.reading import literal_in, parsed

# LangChain's own rendering of a Document, which hides where its text ends.
_PRINTED = re.compile(
    r"\s*+(?:Document\(.*page_content=['\"].*\)|page_content=['\"].*['\"] metadata=\{.*\})\s*",
    re.DOTALL,
)
# A list of documents as JSON and Python write it; a plain text may have brackets around it too.
_LIST = re.compile(
    r"[\[(]\s*+['\"\[{(].*[\])]|\[[\d\s,]*+\]|\[(?:Document|array|None)\b.*\]|\(\)", re.DOTALL
)
# How a printed document may begin.
_FIRST = frozenset("pD \n\r\t")
# Words with one separator between them, as ids of a spreadsheet's cell stand.
_PARTED = re.compile(r"\s*[^\s,;|]+\s*([,;|])(?:\s*[^\s,;|]+\s*\1)*\s*[^\s,;|]+\s*")
#: What ``status`` says of a row that somebody looked at and did not take.
REJECTED = "rejected"
# What is longer is a text, and takes long to look through.
_LONGEST_CELL = 1 << 16


def check_chunks(chunks: Iterable[object], where: str) -> list[DocumentLike]:
    """Return the chunks of an index as :func:`check_documents` does, dicts as files hold them.

    Raises:
        InvalidType, InvalidInput: As there.

    >>> check_chunks(["At nine.", {"text": "At ten."}], "index")
    ['At nine.', {'page_content': 'At ten.'}]
    """
    found = [
        (chunk_in(one) or one) if isinstance(one, Mapping) and "page_content" not in one else one
        for one in chunks
    ]
    return check_documents(found, where)


def documents_in(value: Any, at: Location, *, ground_truth: bool) -> list[Any]:
    """Return the documents in a cell or a field: items of the ground truth, or what was retrieved.

    A cell holds a list, an array, or a text that spells a list in JSON or in Python.

    Raises:
        InvalidInput, InvalidType: If it is not a list of documents.

    >>> documents_in("['a', 'b']", Location("actual"), ground_truth=True)
    ['a', 'b']
    >>> documents_in([{"page_content": None, "any_of": ["a", "b"]}], Location("actual"),
    ...              ground_truth=True)
    [AnyOf(['a', 'b'])]
    """
    values = list_in(value, at)
    if not set(map(type, values)) <= {str}:
        read = item_in if ground_truth else document_in
        values = [read(plain(one), at.inside(f"[{i}]")) for i, one in enumerate(values)]
    elif _FIRST.isdisjoint([text[:1] for text in values]):
        return values
    for position, text in _texts_of(values):
        if text[:1] in _FIRST and _PRINTED.fullmatch(text):
            raise _printed(at.inside(f"[{position}]"))
    return values


def ranked_in(value: Any, at: Location) -> tuple[list[Any], Standing | None]:
    """Return the retrieved documents in a cell or a field, and what stands beside them.

    Documents that have a rank come in its order.

    Raises:
        InvalidInput, InvalidType: As :func:`documents_in` does, and if ranks say no order.

    >>> found = [{"id": "b", "rank": 2}, {"id": "a", "rank": 1}]
    >>> [id_of(one) for one in ranked_in(found, Location("predicted"))[0]]
    ['a', 'b']
    """
    values = list_in(value, at)
    documents = documents_in(values, at, ground_truth=False)
    return (documents, None) if set(map(type, values)) <= {str} else by_rank(values, documents, at)


def list_in(value: Any, at: Location) -> list[Any]:
    """Return the list in a cell, whatever it is a list of."""
    if type(value) is list:
        return value
    if isinstance(value, str) and value.strip():
        return _written_list(value.strip(), at)
    value = plain(value)
    if isinstance(value, list | tuple):
        return list(value)
    empty = is_missing(value) or value == ""  # as an empty cell reads
    came = "nothing" if empty else kind_of(value)
    fix = "write [] where there are none, and a list even for one document"
    raise at.type_error(f"must be a list of documents, got {came}", fix)


def _written_list(text: str, at: Location) -> list[Any]:
    """Return the list that a text spells."""
    if _PRINTED.fullmatch(text):
        raise _printed(at)
    if text[0] not in "[(":
        fix = Advice("if each cell holds one document, {} reads it so", cells="text")
        if separator := parted(text)[0]:
            told = "if it is one document, {} reads it so; if these are several ids, {} parts them"
            fix = Advice(told, cells="text", separator=separator)
        raise at.type_error(f'is plain text ({text[:40]!r}); expected a list, as ["…", "…"]', fix)
    try:
        try:
            value = parsed(text)
        except json.JSONDecodeError:
            value = literal_in(text)
    except InvalidInput as error:
        raise at.error(error.problem, str(error.fix)) from error
    if not isinstance(value, list):  # one value in parentheses
        raise at.type_error(f"must be a list of documents, got {kind_of(value)}")
    return value


def is_list_written(text: str) -> bool:
    """Tell whether a text is meant to spell a list of documents, well or badly.

    >>> [is_list_written(one) for one in ("['a']", "[1, 2]", "[1] See there. [2]", "(a) (b)")]
    [True, True, False, False]
    """
    text = text.strip()
    return bool(_LIST.fullmatch(text) or _PRINTED.fullmatch(text))


def is_missing(value: Any) -> bool:
    """Tell whether a cell holds nothing, in any of the ways tables say so.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    return kind_of(value) == "null"


def with_field(item: Any, name: str, value: Any) -> Any:
    """Return a ground-truth document with a field beside it; one that is missing changes nothing.

    >>> with_field("d1", "relevance", 2)
    {'page_content': 'd1', 'id': 'd1', 'metadata': {'relevance': 2}}
    """
    is_document = isinstance(item, str | Mapping)
    if is_missing(value) or value == "" or not is_document:
        return item
    content = {"page_content": item, "id": item} if isinstance(item, str) else item
    return Record({**content, "metadata": {**metadata_of(item), name: value}})


def _texts_of(documents: Sequence[Item]) -> Iterator[tuple[int, str]]:
    """Yield the texts of documents and of alternatives, with their positions."""
    for position, one in enumerate(documents):
        yield from ((position, text_of(document)) for document in single([one]))


def check_characters(documents: Sequence[Item], at: Location) -> None:
    """Refuse half of a character, which texts that were decoded from a file cannot hold.

    Raises:
        InvalidInput: If a text holds one.
    """
    for position, text in _texts_of(documents):
        if not text.isascii():
            check_text(text, at.inside(f"[{position}]"))


def check_text(text: str, at: Location) -> None:
    """Refuse half of a character.

    Raises:
        InvalidInput: If a text holds one.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = f"holds half of a surrogate pair ({text[error.start]!r}), which is no character"
        raise at.error(problem, "an emoji was probably cut in two") from error


def _printed(at: Location) -> InvalidInput:
    problem = "is a LangChain Document as it prints itself, which does not say where its text ends"
    return at.error(problem, "save its page_content, or its model_dump() as JSON")


def is_bare(document: DocumentLike) -> bool:
    """Tell whether a document has an id, and no text beside it; of a plain text, that it may be.

    >>> is_bare("d1"), is_bare({"page_content": "", "id": "d1"}), is_bare({"page_content": "Nine."})
    (True, True, False)
    """
    identity = id_of(document)
    return identity is not None and composed(text_of(document)) in ("", identity)


def parted(text: str) -> tuple[str, list[str]]:
    """Return what separates the words of a text that may be several ids, and these; or nothing.

    >>> parted("d1, d2"), parted("d1;d2|d3"), parted("It opens at nine, or ten.")
    ((',', ['d1', 'd2']), ('', []), ('', []))
    """
    found = _PARTED.fullmatch(text) if len(text) <= _LONGEST_CELL else None
    return (found[1], [*map(str.strip, text.split(found[1]))]) if found else ("", [])


def is_like_id(name: str) -> bool:
    """Tell whether a tag is called as ids of queries are, or might be.

    >>> is_like_id("qid"), is_like_id("eval_id"), is_like_id("source")
    (True, True, False)
    """
    return name.lower().endswith("id")


def status_of(row: Mapping[str, Any]) -> str | None:
    """Return whether a row is a draft, or rejected; ``None`` if its status is neither.

    >>> status_of({"status": "Draft"}), status_of({"status": "open"})
    ('draft', None)
    """
    value = row.get(STATUS)
    word = value.strip().lower() if isinstance(value, str) else ""
    return word if word in (DRAFT, REJECTED) else None


def with_status(tags: Any, own: Mapping[str, Sequence[Tag]]) -> Any:
    """Return tags that tell which queries are drafts, if those of the data set do.

    >>> with_status({}, {"status": ["draft", None], "topic": ["a", "b"]})
    {'status': ['draft', None]}
    """
    return {**(tags or {}), STATUS: own[STATUS]} if unreviewed_in(own) else tags
