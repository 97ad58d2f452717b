"""What a document is, wherever it comes from, and the two lists an evaluation starts from.

A document is a text, a dict with ``"page_content"``, a span of a source (a dict with ``"source"``
and ``"start"`` and ``"end"``, or ``"lines"``), or a document of LangChain, LlamaIndex or Haystack.
Python objects, JSON records, cells of tables and rows of clusters all come through
:func:`document_in`, :func:`item_in` and :func:`documents_in`.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import json
import math
import unicodedata
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, compress, pairwise
from json.encoder import encode_basestring_ascii
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import errors
from krag_eval.core.errors import Advice, Fix, InvalidInput, InvalidType, clipped, kind_of, names_of
from krag_eval.core.language import _
from krag_eval.core.ranking import SCORES, Ordering, Standing, beside

if TYPE_CHECKING:
    from langchain_core.documents import Document

DocumentLike: TypeAlias = "Document | str | Mapping[str, Any]"
Item: TypeAlias = "DocumentLike | AnyOf"
#: Returns what a matcher looks at in a document, in a form that JSON can hold.
Reading: TypeAlias = "Callable[[DocumentLike], Any]"


class Location(NamedTuple):
    """Where a value is: an argument or a column, a query of it, and a place within that.

    >>> str(Location("actual_docs", 3, "[1]").error("must be a document"))
    'actual_docs[3][1] must be a document.'
    """

    argument: str
    query: int | None = None
    within: str = ""

    def inside(self, part: str) -> Location:
        """Return a place within this one."""
        return self._replace(within=self.within + part)

    def error(self, problem: str, fix: Fix = "") -> InvalidInput:
        """Return the refusal of a value."""
        return InvalidInput(self.argument, problem, fix, query=self.query, within=self.within)

    def type_error(self, problem: str, fix: Fix = "") -> InvalidType:
        """Return the refusal of a value of a wrong type."""
        return InvalidType(self.argument, problem, fix, query=self.query, within=self.within)


class AnyOf:
    """Interchangeable ground-truth documents: retrieving any one of them satisfies the item.

    An ``AnyOf`` is **one** ground-truth item. It is credited once, at the first rank where one of
    its alternatives is retrieved.

    Args:
        alternatives: One or more documents: texts, dicts, or documents of LangChain, LlamaIndex or
            Haystack.

    Raises:
        InvalidInput: If there is no alternative.
        InvalidType: If an alternative is not a document, or is itself an ``AnyOf``.

    >>> AnyOf(["The fee is 5 euros.", "It costs five euros."])
    AnyOf(['The fee is 5 euros.', 'It costs five euros.'])
    """

    __slots__ = ("alternatives",)

    def __init__(self, alternatives: Iterable[DocumentLike]) -> None:
        single = isinstance(alternatives, (str, bytes, Mapping)) or _foreign(alternatives)
        if single or not isinstance(alternatives, Iterable):
            be, fix = "be a list of documents", "write AnyOf([first, second])"
            raise errors.must("alternatives", be, alternatives, fix, InvalidType)
        self.alternatives: tuple[DocumentLike, ...] = tuple(
            _without_score(one, Location("alternatives", within=f"[{at}]"))
            for at, one in enumerate(alternatives)
        )
        if not self.alternatives:
            raise InvalidInput("alternatives", "must be at least one document, got none")

    def __repr__(self) -> str:
        return f"AnyOf({list(self.alternatives)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyOf) and self.alternatives == other.alternatives

    __hash__ = None  # type: ignore[assignment]  # LangChain documents are unhashable too


def single(items: Iterable[Item]) -> Iterator[DocumentLike]:
    """Yield documents, interchangeable ones each."""
    for item in items:
        yield from item.alternatives if isinstance(item, AnyOf) else (item,)


def text_of(document: DocumentLike, where: str = "document") -> str:
    """Return the text of one document; a plain string is its own text.

    Raises:
        InvalidType: If it is not text; ``where`` names the document.

    >>> text_of({"page_content": "Opening hours"})
    'Opening hours'
    """
    if isinstance(document, str):
        return document
    found = document["page_content"] if isinstance(document, Mapping) else document.page_content
    if not isinstance(found, str):  # LangChain does not check assignments
        raise InvalidType(where, f"must be text, got {kind_of(found)}", within=".page_content")
    return found


def id_of(document: DocumentLike) -> str | None:
    """Return the id of one document, as ids are compared, or ``None``; a string is its own id.

    It is in Unicode NFC: file names from a Mac are in NFD, and show the same.

    >>> id_of({"page_content": "Opening hours", "id": 7})
    '7'
    """
    identity = written_id(document)
    return None if identity is None else composed(identity)


def composed(text: str) -> str:
    """Return a text in Unicode NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def written_id(document: DocumentLike) -> str | None:
    """Return the id of one document to the letter, or ``None``; a plain string is its own id."""
    if isinstance(document, str):
        return document
    value = document.get("id") if isinstance(document, Mapping) else document.id
    # LangChain turns numeric ids into strings as well; a dict must not mean something else.
    return None if value is None else str(value)


def metadata_of(document: DocumentLike) -> Mapping[str, Any]:
    """Return the metadata of one document; a plain string has none.

    >>> metadata_of({"page_content": "Opening hours", "metadata": {"page": 3}})
    {'page': 3}
    """
    if isinstance(document, str):
        return {}
    if isinstance(document, Mapping):
        return document.get("metadata") or {}
    return document.metadata


def score_of(document: DocumentLike, at: Location | None = None) -> float | None:
    """Return the score that a retriever gave a document, from its metadata; ``None`` without one.

    Args:
        document: The document.
        at: What to call it in messages.

    Raises:
        InvalidInput: If the score is not a finite number.

    >>> score_of({"page_content": "At nine.", "metadata": {"relevance_score": 0.7}})
    0.7
    """
    metadata = metadata_of(document)
    found = next((metadata[key] for key in SCORES if metadata.get(key) is not None), None)
    return None if found is None else _finite(found, at or Location("document"))


def _finite(score: Any, at: Location) -> float:
    with suppress(OverflowError):  # of whole numbers that no float holds
        if isinstance(score, Real) and not isinstance(score, bool) and math.isfinite(score):
            return float(score)
    raise at.error(f": a score must be a finite number, got {clipped(score)}")


def as_document(document: DocumentLike) -> Document:
    """Return ``document`` as a LangChain ``Document``, making one for strings and dicts.

    A ``Document`` comes back as the same object, never a copy.

    >>> as_document("Opening hours").page_content
    'Opening hours'
    """
    if not isinstance(document, (str, Mapping)):
        return document
    from langchain_core.documents import Document

    if isinstance(document, str):
        return Document(page_content=document)
    return Document(
        page_content=text_of(document),
        metadata=dict(metadata_of(document)),
        id=written_id(document),
    )


def check_documents(documents: Sequence[object], where: str) -> list[DocumentLike]:
    """Return documents as they are compared, after a check of each.

    Args:
        documents: What should be documents.
        where: What to call them in messages.

    Raises:
        InvalidType: If one is not a document, or its text is not text.
        InvalidInput: If a dict has no ``"page_content"``, or keys that no document has.

    >>> check_documents(["Opening hours", {"page_content": "At nine."}], "retrieved")
    ['Opening hours', {'page_content': 'At nine.'}]
    """
    return [
        one if isinstance(one, str) else document_in(one, Location(where, within=f"[{position}]"))
        for position, one in enumerate(documents)
    ]


# What the text of a chunk is called, and its id, the surest names first: beside one of these, those
# after it say something else of the chunk, such as what it is part of.
_TEXTS = (("page_content", "text", "contents"), ("content", "chunk_text", "segment"))
_IDS = (("id", "_id"), ("chunk_id",), ("corpus_id", "docid", "doc_id"))
_TEXT_NAMES, _ID_NAMES = (frozenset(chain.from_iterable(one)) for one in (_TEXTS, _IDS))


def chunk_in(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a chunk under the names that a document has here; ``None`` without one text and id.

    Fields that are neither are metadata. A span of a source stands for its text.

    >>> chunk_in({"text": "At nine.", "page": 3})
    {'page_content': 'At nine.', 'metadata': {'page': 3}}
    """
    there = {key for key, value in content.items() if value is not None}
    texts, ids = (
        next(filter(None, ([one for one in group if one in there] for group in names)), [])
        for names in (_TEXTS, _IDS)
    )
    if not texts and any(there >= set(span) for span in _SPANS):
        return chunk_in({**content, "page_content": ""})
    if len(texts) != 1 or len(ids) > 1:
        return None
    text, identity = texts[0], next(iter(ids), "")
    made: dict[str, Any] = {"page_content": content[text]}
    if identity == "_id" and {str} == set(map(type, (content.get("title"), content[text]))):
        # As BEIR's retrievers see it.
        made["page_content"] = f"{content['title']} {content[text]}".strip()
    if identity:
        made["id"] = content[identity]
    others = {key: one for key, one in content.items() if key in there - {text, identity}}
    metadata = others.pop("metadata", {})
    if others or metadata:
        made["metadata"] = {**others, **metadata} if isinstance(metadata, dict) else metadata
    return made


def _unpacked(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a record with the fields of its ``"doc"``; ``None`` where the two differ."""
    given, outer = content["doc"], {key: one for key, one in content.items() if key != "doc"}
    inner: Mapping[str, Any] = {"text": given} if isinstance(given, str) else given
    inner = {key: one for key, one in inner.items() if one is not None}
    ids = {str(side[key]) for side in (inner, outer) for key in _ID_NAMES & side.keys()}
    differs = any(outer.get(key, one) != one for key, one in inner.items())
    if differs or len(ids) > 1 or "doc" in inner:
        return None
    known = set() if _ID_NAMES.isdisjoint(outer) else _ID_NAMES
    return {**{key: one for key, one in inner.items() if key not in known}, **outer}


class Record(dict[str, Any]):
    """A document as another tool records it; its metadata hold what stood beside text and id."""


class IdAlone(Record):
    """A document of a record that holds an id, and no text."""


def _record_in(content: Mapping[str, Any], at: Location) -> Mapping[str, Any]:
    """Return a record of what was retrieved as a document, which may be an id alone.

    Where it has no text, an object or a text under ``"doc"`` stands for what that holds.

    >>> _record_in({"corpus_id": "d1", "score": 0.5}, Location("results"))
    {'page_content': '', 'id': 'd1', 'metadata': {'score': 0.5}}
    """
    if all(content.keys() >= {*span} for span in _SPANS):
        return content
    if isinstance(content.get("doc"), Mapping | str) and _TEXT_NAMES.isdisjoint(content):
        content = _unpacked(content) or content
    made = chunk_in(content)
    others = _TEXT_NAMES.union(*_SPANS, ("doc", "any_of")) - {"source"}
    if made is None and others.isdisjoint(content) and not _ID_NAMES.isdisjoint(content):
        made = chunk_in({**content, "page_content": ""})
        made = IdAlone(made) if made and made.get("id") not in (None, "") else None
    if made is None:
        return content
    made = made if isinstance(made, Record) else Record(made)
    metadata = made["metadata"] if isinstance(made.get("metadata"), Mapping) else {}
    for key, one in metadata.items():
        if (given := content.get(key, one)) is not one and given != one:
            raise at.error(f": {key!r} stands in it and in its metadata, and differs")
    if content.get("score") is not None:
        _finite(content["score"], at.inside(".score"))
    return made


# From any value to a document

# ``Document.model_dump()`` adds "type", which carries nothing; dumps are accepted as they are.
_KEYS = frozenset({"page_content", "metadata", "id", "type"})
# What names a span of a source, and stands for its text.
_SPANS = (("source", "start", "end"), ("source", "lines"))
_NEEDED = (
    'ids are text, as in ["7"], and the score of what was retrieved stands behind it, as in ("…", '
    '0.5); interchangeable ones are an AnyOf or {"any_of": […]} of the ground truth, one level deep'
)
_LISTS = (list, tuple)


def by_rank(
    values: Iterable[Any], documents: Sequence[Any], at: Location
) -> tuple[list[Any], Standing | None]:
    """Return documents in the order of the ranks beside them, and what stands there."""
    standing, order = Standing.of([beside(plain(one)) for one in values], at.error)
    return [documents[position] for position in order], standing


def plain(value: Any) -> Any:
    """Return an array as a list and a row of a cluster as a dict; anything else as it is.

    >>> plain(["a"])
    ['a']
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def item_in(value: Any, at: Location) -> Item:
    """Return a ground-truth item: a document, or interchangeable ones.

    Raises:
        InvalidInput, InvalidType: If the value is neither.

    >>> item_in({"any_of": ["five euros", "5 €"]}, Location("actual", within="[0]"))
    AnyOf(['five euros', '5 €'])
    """
    if isinstance(value, AnyOf):
        return value
    if not isinstance(value, Mapping) or value.get("any_of") is None:
        return _without_score(value, at)
    alternatives = plain(value["any_of"])
    others = [key for key, one in value.items() if key != "any_of" and one is not None]
    if others or not isinstance(alternatives, _LISTS) or not alternatives:
        problem = ': "any_of" must be the only key and hold a list of one or more documents, got '
        raise at.error(f"{problem}the keys {names_of(value)}", 'write {"any_of": ["…", "…"]}')
    places = (at.inside(f".any_of[{i}]") for i in range(len(alternatives)))
    return AnyOf(map(_without_score, map(plain, alternatives), places))


def document_in(value: Any, at: Location) -> DocumentLike:
    """Return a document as it is compared: a text, a dict, or LangChain's.

    A pair of a document and its score, as vector stores return it, and one of LlamaIndex or
    Haystack that has a score, is the document with ``"score"`` in its metadata; what is given is
    not changed.

    Raises:
        InvalidInput: If a dict has no text, or keys that no document has; if a score is not a
            finite number.
        InvalidType: If the value is nothing of the kind.

    >>> document_in({"page_content": "a", "any_of": None}, Location("predicted"))
    {'page_content': 'a'}
    >>> document_in(("a", 0.5), Location("predicted"))
    {'page_content': 'a', 'id': 'a', 'metadata': {'score': 0.5}}
    """
    if isinstance(value, _LISTS) and len(value) == 2 and isinstance(value[1], Real):
        found = _without_score(value[0], at.inside("[0]"))
        return _with_score(found, _finite(value[1], at.inside("[1]")))
    found, score = _without_score(value, at), getattr(value, "score", None)
    if score is None or found is value:
        return found
    return _with_score(found, _finite(score, at.inside(".score")))  # of LlamaIndex and Haystack


def _with_score(document: DocumentLike, score: float) -> DocumentLike:
    """Return a copy of a document that has a score in its metadata."""
    metadata = {**metadata_of(document), "score": score}
    if isinstance(document, str):  # its own id, as without a score
        return {"page_content": document, "id": document, "metadata": metadata}
    if isinstance(document, Mapping):
        return {**document, "metadata": metadata}
    made = copy.copy(document)
    made.metadata = metadata
    return made


def _without_score(value: Any, at: Location) -> DocumentLike:
    """Return a document that stands alone, as in the ground truth."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _mapping(value, at)
    found: Document | Mapping[str, Any] | None = _foreign(value)
    if found is None:
        be = 'a text, a dict with "page_content", or a LangChain, LlamaIndex or Haystack document'
        raise at.type_error(f"must be a document ({be}), got {kind_of(value)}", _NEEDED)
    if isinstance(found, Mapping):
        return _mapping(found, at)
    if not isinstance(found.page_content, str):
        problem = f"must be text, got {kind_of(found.page_content)}"
        raise at.inside(".page_content").type_error(problem)
    return found


def _foreign(value: Any) -> Any:
    """Return another library's document as a dict or LangChain's own; ``None`` if it is none."""
    if hasattr(value, "page_content") and hasattr(value, "metadata"):
        return value
    node = getattr(value, "node", value)  # LlamaIndex's NodeWithScore
    if hasattr(node, "get_content") and hasattr(node, "node_id"):
        parts = node.get_content(), getattr(node, "metadata", None), node.node_id
    elif hasattr(value, "content") and hasattr(value, "meta") and hasattr(value, "id"):
        parts = value.content, value.meta, value.id  # Haystack's
    else:
        return None
    return dict(zip(("page_content", "metadata", "id"), parts, strict=True))


def _mapping(value: Mapping[Any, Any], at: Location) -> DocumentLike:
    """Check a document given as a dict; a field that is null counts as absent."""
    if "lc" in value:
        value = _unserialised(value, at)
    if not value.keys() <= _KEYS:
        value = {key: one for key, one in value.items() if one is not None or key in _KEYS}
        value = _with_span_in_metadata(value)
    if "any_of" in value:
        raise at.error(': "any_of" belongs in the ground truth, one level deep')
    if "page_content" not in value or not value.keys() <= _KEYS:
        value = _record_in(value, at)
    if "page_content" not in value or not value.keys() <= _KEYS:
        span = '"source" with "start" and "end" or with "lines"'
        needed = f'the key "page_content", or {span}, and may have "metadata" and "id"'
        fix = 'put its text under "page_content", and anything else into "metadata"'
        raise at.error(f": a document needs {needed}, got the keys {names_of(value)}", fix)
    allowed = (
        ("page_content", str, "text"),
        ("metadata", Mapping | None, "a dict"),
        ("id", str | int | None, "text or a whole number"),
    )
    for name, kinds, be in allowed:
        found = value.get(name)
        if not isinstance(found, kinds) or isinstance(found, bool):
            raise at.inside(f".{name}").type_error(f"must be {be}, got {kind_of(found)}")
    return value


def _with_span_in_metadata(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a span of a source as a document without a text; any other dict as it is.

    >>> _with_span_in_metadata({"source": "a.md", "lines": [10, 24], "id": 7})
    {'id': 7, 'page_content': '', 'metadata': {'source': 'a.md', 'lines': [10, 24]}}
    """
    span = {key: one for key, one in value.items() if key not in _KEYS}
    others, metadata = {key: value[key] for key in value if key in _KEYS}, value.get("metadata")
    if set(span) not in map(set, _SPANS) or value.get("page_content") is not None:
        return value
    if metadata is not None and (not isinstance(metadata, Mapping) or span.keys() & metadata):
        return value
    return {**others, "page_content": "", "metadata": {**(metadata or {}), **span}}


def span_without_text(document: DocumentLike) -> dict[str, Any]:
    """Return what names a span of a source, of a document without a text; empty if nothing does.

    >>> span_without_text({"page_content": "", "metadata": {"source": "a.md", "lines": [1, 9]}})
    {'source': 'a.md', 'lines': [1, 9]}
    """
    metadata = {} if text_of(document) else metadata_of(document)
    found = (span for span in _SPANS if metadata.keys() >= set(span))
    return {key: metadata[key] for key in next(found, ())}


def _unserialised(value: Mapping[Any, Any], at: Location) -> Mapping[str, Any]:
    """Read a document as LangChain's ``dumps`` writes it; nothing is imported or built by name."""
    path, fields = value.get("id"), value.get("kwargs")
    is_document = isinstance(path, _LISTS) and path[-1:] in (["Document"], ("Document",))
    if value.get("type") != "constructor" or not is_document or not isinstance(fields, Mapping):
        raise at.error(f"must be a document, got another LangChain object, {clipped(path)}")
    return fields


def is_blank(text: str) -> bool:
    """Tell whether a text is empty or white space only."""
    return not text or text.isspace()


def content_key(document: DocumentLike) -> tuple[str, str | None, str]:
    """Return what makes a document itself: text, id and metadata, as a hashable value.

    ``Document`` is unhashable, so identity is keyed on its parts. Metadata may hold unhashable
    values; its sorted representation is used instead.
    """
    metadata = metadata_of(document)
    parts = sorted((repr(key), repr(value)) for key, value in metadata.items())
    identity = None if isinstance(document, str) else id_of(document)
    return unicodedata.normalize("NFC", text_of(document)), identity, repr(parts)


def read_text(document: DocumentLike) -> str:
    """Return the text of a document, in Unicode NFC."""
    return unicodedata.normalize("NFC", text_of(document))


def read_id(document: DocumentLike) -> str | None:
    """Return the id of a document, in Unicode NFC."""
    return id_of(document)


def read_everything(document: DocumentLike) -> Any:
    """Return text, id and metadata of a document; the text alone if it has nothing else."""
    text, metadata = read_text(document), plain_value(metadata_of(document))
    identity = None if isinstance(document, str) else id_of(document)
    return [text, identity, metadata] if metadata or identity is not None else text


def _read_text_and_id(document: DocumentLike) -> Any:
    text, identity = read_text(document), id_of(document)
    return text if identity is None or isinstance(document, str) else [text, identity]


def plain_value(value: Any) -> Any:
    """Return a value from metadata as JSON can hold it, equal in every process.

    Equal numbers become one number. What JSON does not know is represented by its own ``repr``, or
    by its type alone where that would be an address in memory.

    >>> plain_value({"page": 3.0, "tags": ("b", "a")})
    {'page': 3, 'tags': ['b', 'a']}
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain_value(value.tolist())
    if isinstance(value, set | frozenset):
        return sorted((plain_value(one) for one in value), key=_as_json)
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if value is None:
        return None
    an_address = getattr(type(value), "__repr__", None) is object.__repr__
    return {type(value).__qualname__: "" if an_address else repr(value)}


_as_json: Callable[[Any], str] = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _digest(items: list[str]) -> str:
    """Return what tells one ground truth from another, whatever the order: 8 bytes, as text."""
    distinct = items[0] if len(items) == 1 else "\n".join(sorted({*items} - {""}))
    return hashlib.blake2b(distinct.encode("ascii"), digest_size=8).hexdigest()


class Digests(Sequence[str]):
    """The digests of :meth:`QuerySet.digests`, made when the first is asked for.

    Args:
        make: Makes them.
        n_queries: How many there will be.

    >>> Digests(lambda: ["9c56cc51b374c3ba"], 1)[0]
    '9c56cc51b374c3ba'
    """

    def __init__(self, make: Callable[[], list[str]], n_queries: int) -> None:
        self._make: Callable[[], list[str]] | None = make
        self._made: list[str] = []
        self._n_queries = n_queries

    def __len__(self) -> int:
        return self._n_queries

    def __getitem__(self, position: Any) -> Any:
        make = self._make
        if make is not None:
            # Threads that ask at the same time make the same; then the documents can go.
            self._made, self._make = make(), None
        return self._made[position]


class Lists(Sequence[list[Any]]):
    """A list of lists, copied into one long list: one object where there would be one per query.

    Hundreds of thousands of small lists would have the garbage collector walk through all of them
    again and again. A query's list is made anew each time it is asked for.

    Attributes:
        elements: What is in the lists, one after the other; not to be changed.
        odd_types: Types of the elements of every list that holds anything but non-empty texts.

    >>> lists = Lists([["a", "b"], [], ["c"]])
    >>> lists[0], list(lists)
    (['a', 'b'], [['a', 'b'], [], ['c']])
    """

    __slots__ = ("_bounds", "elements", "odd_types")

    def __init__(self, lists: Sequence[Sequence[Any]]) -> None:
        self.elements: list[Any] = []
        self._bounds = array("q", accumulate(map(len, lists), initial=0))
        self.odd_types: set[type] = set()
        # List by list, as its elements are copied and looked at while they are in the cache.
        for elements in lists:
            try:
                # Asking which of them the empty text starts with is one pass in C: it refuses what
                # is not text, and the answer is none unless one is empty.
                texts_only = not "".startswith(tuple(elements))
            except TypeError:
                texts_only = False
            if not texts_only:
                self.odd_types.update(map(type, elements))
            self.elements += elements

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each list; shape (lists,)."""
        return np.diff(np.array(self._bounds))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[one] for one in range(*position.indices(len(self)))]
        one = range(len(self))[position]
        return self.elements[self._bounds[one] : self._bounds[one + 1]]

    def __iter__(self) -> Iterator[list[Any]]:
        flat = self.elements
        return (flat[start:end] for start, end in pairwise(self._bounds.tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Lists, list)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # holds documents, which are unhashable

    def __repr__(self) -> str:
        return repr(list(self))


@dataclass(frozen=True, eq=False)
class QuerySet:
    """The ground truth and the predictions of all queries, checked.

    Build it with :meth:`from_lists`. Containers are copied shallowly, so appending to the user's
    lists later changes nothing here; the documents themselves are shared and never changed.

    Attributes:
        actual: Per query, the list of its ground-truth items (a document or ``AnyOf``).
        predicted: Per query, the list of the ranked documents, best first.
        labels: One label per query, for tables and explanations.
    """

    actual: Lists
    predicted: Lists
    labels: list[str | int]

    @classmethod
    def from_lists(
        cls, actual_docs: Any, predicted_docs: Any, queries: Any = None, *, part: bool = False
    ) -> QuerySet:
        """Check the two lists of lists, and the labels, and keep them.

        Args:
            actual_docs: Per query, its ground truth.
            predicted_docs: Per query, the retrieved documents, best first, or with their ranks or
                scores beside them.
            queries: One label per query.
            part: Whether others of the run are elsewhere, so that nobody knows which scores are
                better; then the order of the lists stands.

        Raises:
            InvalidType: If something is not a list of lists of documents; it says where.
            InvalidInput: If there are no queries, the lengths differ, or ranks say no order.

        Warns:
            KragEvalWarning: If ranks or scores put documents into another order, or contradict it.
        """
        actual = _lists_of(actual_docs, "actual_docs")
        predicted = _lists_of(predicted_docs, "predicted_docs")
        if len(actual) != len(predicted):
            problem = f"{len(actual)} in actual_docs and {len(predicted)} in predicted_docs"
            raise InvalidInput("predicted_docs", f"must have one list per query, got {problem}")
        if not actual:
            raise InvalidInput("actual_docs", "must hold at least one query, got none")
        actual = _of_documents(actual, "actual_docs", ground_truth=True)
        predicted = _in_order(predicted, "predicted_docs", part=part)
        labels: list[str | int] = list(range(len(actual)))
        if queries is not None:
            labels = checked_labels(queries, len(actual))
        return cls(actual, predicted, labels)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.actual)

    @cached_property
    def has_alternatives(self) -> bool:
        """Whether some ground-truth item is an ``AnyOf``."""
        return any(issubclass(kind, AnyOf) for kind in self.actual.odd_types)

    @property
    def texts_only(self) -> tuple[bool, bool]:
        """Whether the ground truth and the predicted documents are nothing but non-empty texts."""
        return not self.actual.odd_types, not self.predicted.odd_types

    @cached_property
    def n_items(self) -> NDArray[np.int64]:
        """Ground-truth items per query, as listed; shape (queries,)."""
        return self.actual.lengths

    @cached_property
    def n_predicted(self) -> NDArray[np.int64]:
        """Predicted documents per query; shape (queries,)."""
        return self.predicted.lengths

    @cached_property
    def item_query(self) -> NDArray[np.int64]:
        """Query of each ground-truth item, items numbered through all queries; shape (items,)."""
        return np.repeat(np.arange(len(self.labels)), self.n_items)

    @cached_property
    def n_alternatives(self) -> NDArray[np.int64]:
        """Interchangeable documents of each item, 1 for a plain one; shape (items,)."""
        if not self.has_alternatives:
            return np.broadcast_to(np.int64(1), len(self.item_query))
        items = list(chain.from_iterable(self.alternatives()))
        return np.fromiter(map(len, items), np.int64, len(items))

    def given_grades(self, key: str) -> NDArray[np.float64]:
        """Return the grade of each item, from its documents' metadata; shape (items,).

        It is NaN where its documents have none, which stands for grade 1; 0 says that it is not
        ground truth, and so does what is below.

        Raises:
            InvalidInput: For a grade that is not finite or not a number, and for an ``AnyOf`` whose
                alternatives have different grades.
        """
        errors.text("grade_key", key, "the name of a metadata key")
        grades = self._in_metadata(key, _checked_grade, "grade")
        return np.array([np.nan if grade is None else grade for grade in grades], np.float64)

    def _in_metadata(
        self, key: str, checked: Callable[[Any, Location], Any], what: str
    ) -> list[Any]:
        """Return what each item has under a key, which must be the same for all alternatives."""
        found = []
        places = [(query, at) for query, n in enumerate(self.n_items.tolist()) for at in range(n)]
        for (query, position), item in zip(places, self.actual.elements, strict=True):
            at = Location("actual_docs", query, f"[{position}]")
            documents = item.alternatives if isinstance(item, AnyOf) else (item,)
            given = {checked(metadata_of(document).get(key), at) for document in documents}
            if len(given - {None}) > 1 or (None in given and given - {None, 1.0}):
                raise at.error(f": the alternatives of one AnyOf must have the same {what}")
            found.append(next((one for one in given if one is not None), None))
        return found

    def aspects(self, key: str) -> list[tuple[str, ...]]:
        """Return the aspects that each item speaks to, from its documents' metadata, sorted.

        A document has one, a text or a whole number, or a list of them. Those without any get an
        empty tuple, and a warning says how many they are.

        Raises:
            InvalidInput: For an aspect that is blank or of another type, and for an ``AnyOf`` whose
                alternatives have different aspects.
        """
        errors.text("aspect_key", key, "the name of a metadata key")
        aspects = self._in_metadata(key, _checked_aspects, "aspects")
        if n_without := aspects.count(()):
            shown = repr(key).replace("{", "{{").replace("}", "}}")
            told = _(
                "aspect_key={key}: {} ground-truth items have no aspect in their metadata; each of "
                "them is an aspect of its own."
            )
            errors.warn_of(told.format("{}", key=shown), n_without)
        return aspects

    def unwanted(self, given: Any) -> tuple[QuerySet, NDArray[np.bool_]]:
        """Return the documents that must not come back, as ground truth of the same lists.

        Args:
            given: One list per query, or label -> list; ``None`` for a query that has none.

        Returns:
            The queries, and whether each has such a list; shape (queries,).

        Raises:
            InvalidType: If it is not a list of lists of documents.
            InvalidInput: If it has another number of queries, or labels that are none.
        """
        lists, listed = self._lists_beside(given, "unwanted", ground_truth=True)
        return QuerySet(lists, self.predicted, self.labels), listed

    def cited(self, given: Any) -> tuple[QuerySet, NDArray[np.bool_]]:
        """Return the documents that answers cited, in the place of those that were retrieved.

        Args, returned value and errors are those of :meth:`unwanted`.
        """
        lists, listed = self._lists_beside(given, "cited", ground_truth=False)
        return QuerySet(self.actual, lists, self.labels), listed

    def _lists_beside(
        self, given: Any, argument: str, *, ground_truth: bool
    ) -> tuple[Lists, NDArray[np.bool_]]:
        values = by_query(given, self.labels, argument)
        lists = _lists_of([() if one is None else one for one in values], argument)
        listed = np.array([one is not None for one in values], np.bool_)
        return _of_documents(lists, argument, ground_truth=ground_truth), listed

    def ground_truth(self) -> QuerySet:
        """Return the same ground truth without the predicted documents."""
        return QuerySet(self.actual, Lists([]), self.labels)

    def digests(
        self,
        grades: NDArray[np.float64] | None,
        reading: Reading,
        aspects: Sequence[tuple[str, ...]] | None = None,
    ) -> list[str]:
        """Return, per query, what tells its ground truth from another one, without its words.

        That is a hash (BLAKE2b, 8 bytes in hexadecimal) of the texts, in Unicode NFC, and ids of
        its documents, which are alternatives of each other, and their grades; the order of items
        and repetitions make no difference. It is the same on every machine and does not depend on
        how documents are compared. Where a matcher looks at other parts of a document, a hash of
        those follows after a ``-``.

        Args:
            grades: The grade of each item; ``None`` if all are 1. Items of grade 0 do not count.
            reading: What the matcher looks at in a document.
            aspects: The aspects of each item, which tell it from an equal one of other aspects.
        """
        texts = self.texts_only[0]
        # A text is its own id, and all that there is to look at.
        is_all = texts and reading in (read_text, read_everything)
        is_all = is_all or (texts and all(map(str.isascii, self.actual.elements)))
        readings = [_read_text_and_id] if is_all else [_read_text_and_id, reading]
        digests = [self._digests(grades, one, aspects) for one in readings]
        return ["-".join(dict.fromkeys(of_query)) for of_query in zip(*digests, strict=True)]

    def _digests(
        self,
        grades: NDArray[np.float64] | None,
        reading: Reading,
        aspects: Sequence[tuple[str, ...]] | None,
    ) -> list[str]:
        elements = self.actual.elements
        if self.texts_only[0] and all(map(str.isascii, elements)):
            items = list(map(encode_basestring_ascii, elements))  # whatever is looked at
        elif self.has_alternatives:
            items = [
                "|".join(sorted({_as_json(reading(document)) for document in item}))
                for of_query in self.alternatives()
                for item in of_query
            ]
        else:
            items = [_as_json(reading(document)) for document in elements]
        if aspects is not None:
            pairs = zip(aspects, items, strict=True)
            items = [f"{_as_json(of_item)}:{item}" for of_item, item in pairs]
        if grades is not None:
            items = [
                f"{grade!r}*{item}" if grade not in (0, 1) else item if grade else ""
                for grade, item in zip(grades.tolist(), items, strict=True)
            ]
        ends = np.cumsum(self.n_items).tolist()
        return [_digest(items[start:end]) for start, end in pairwise([0, *ends])]

    def predicted_texts(self, reading: Reading) -> list[str]:
        """Return the text of every predicted document, in order of queries, then rank.

        Args:
            reading: What the matcher looks at. A plain string that is an id has no text.
        """
        documents = self.predicted.elements
        if reading is read_id:
            return ["" if isinstance(one, str) else text_of(one) for one in documents]
        return documents if self.texts_only[1] else list(map(text_of, documents))

    def scores(self) -> tuple[NDArray[np.float64], bool]:
        """Return the score of every predicted document, by query, then rank, and what is better.

        The documents are ranked best first: scores that rise along a list are distances, of which
        the lower is better. Where nothing rises or falls, higher is better.

        Raises:
            InvalidInput: If a document has no score, or none that is a finite number, or scores
                fall in one place and rise in another.
        """
        n = self.n_predicted
        query = np.repeat(np.arange(len(n)), n)
        ranks = np.arange(len(query)) - np.repeat(np.cumsum(n) - n, n)
        places = [Location("predicted_docs", one, f"[{at}]")
                  for one, at in zip(query.tolist(), ranks.tolist(), strict=True)]  # fmt: skip
        found = [*map(score_of, self.predicted.elements, places)]
        if None in found:
            place, rank = places[found.index(None)], ranks[found.index(None)] + 1
            fix = 'pass pairs (document, score), or put it into the metadata as "score"'
            if not any(one is not None for one in found):
                raise InvalidInput("predicted_docs", "have no scores", fix)
            raise place.error(f"(rank {rank}) has no score, and others have one", fix)
        scores = np.array(found, np.float64)
        steps = np.sign(np.diff(scores)) * (np.diff(query) == 0)
        moves = np.flatnonzero(steps)
        lower = len(moves) > 0 and steps[moves[0]] > 0
        if len(against := moves[steps[moves] != steps[moves[:1]]]):
            way, other = ("rise", "below") if lower else ("fall", "above")
            problem = f": its score is {other} that of the rank before, and scores {way} with the "
            problem += f"rank in query {places[moves[0]].query}"
            fix = "rank the documents by the scores that they come with"
            raise places[against[0] + 1].error(problem, fix)
        return scores, bool(lower)

    def within_score(self, cutoff: float) -> QuerySet:
        """Return the queries without the predicted documents whose scores are worse than a cutoff.

        Raises:
            InvalidInput: As :meth:`scores` does.
        """
        scores, lower = self.scores()
        kept = iter((scores <= cutoff if lower else scores >= cutoff).tolist())
        lists = Lists([[*compress(of_query, kept)] for of_query in self.predicted])
        return QuerySet(self.actual, lists, self.labels)

    def alternatives(self) -> Iterator[Sequence[Sequence[DocumentLike]]]:
        """Yield, per query, the alternatives of each of its items; one for a plain document."""
        for items in self.actual:
            yield [item.alternatives if isinstance(item, AnyOf) else (item,) for item in items]


def warn_of_no_grades(key: str) -> None:
    """Warn of a key in the metadata that no ground-truth document has."""
    told = _(
        "grade_key={key}: no ground-truth document has this key in its metadata, so every grade "
        "is 1."
    )
    errors.warn(told.format(key=repr(key)))


def _lists_of(value: Any, name: str) -> Lists:
    """Return ``value`` as a list of new lists; a text where a list is due is one document."""
    outer = _as_list(value, Location(name), "a list with one list of documents per query")
    wanted = "a list of documents, even for one document"
    return Lists([inner if type(inner) in (list, tuple)
                  else [inner] if isinstance(inner, str)
                  else _as_list(inner, Location(name, query), wanted)
                  for query, inner in enumerate(outer)])  # fmt: skip


def _as_list(value: Any, at: Location, wanted: str) -> list[Any]:
    listed = value.tolist() if hasattr(value, "tolist") else value  # of numpy, pandas, …
    if isinstance(listed, (list, tuple, Lists)):
        return list(listed)
    came = f"the text {clipped(value)}" if isinstance(value, str) else f"a {type(value).__name__}"
    is_data = at.query is None and (hasattr(value, "columns") or hasattr(value, "evaluator"))
    fix = "write load_dataset(…).evaluator(…)" if is_data else ""
    raise at.type_error(f"must be {wanted} (a list, a tuple or a numpy array), got {came}", fix)


def _trusted(types: set[type]) -> set[type]:
    """Return which types are documents as they are: texts, and those of pydantic's models."""
    fields = {"page_content", "metadata"}
    return {one for one in types if one is str or {*getattr(one, "model_fields", ())} >= fields}


def _in_order(lists: Lists, name: str, *, part: bool) -> Lists:
    """Return lists of retrieved documents in the order of what stands beside them; warn of that."""
    if lists.odd_types <= _trusted(lists.odd_types):
        return lists
    read = _of_documents(lists, name, ground_truth=False)
    places = [Location(name, query) for query in range(len(lists))]
    ranked = [*map(by_rank, lists, read, places)]
    if part:
        warn_of_contradicting_scores(standing for _documents, standing in ranked)
        return Lists([documents for documents, _standing in ranked])
    ordered, notes = Ordering.applied(ranked, Location(name).error, lambda at: places[at].error)
    for note in notes:
        errors.warn(f"{name}: {note}.")
    return Lists(ordered)


def warn_of_contradicting_scores(standing: Iterable[Standing | None]) -> None:
    """Warn of lists whose order stands, though the scores beside their documents rise and fall."""
    ordering = Ordering()
    for one in standing:
        ordering.add(0, one, Location("predicted_docs").error)
    told = _(
        "In {} lists of retrieved documents scores rise and fall with the rank; the order of the "
        "lists stands."
    )
    errors.warn_of(told, ordering.unsorted)


def _of_documents(lists: Lists, name: str, *, ground_truth: bool) -> Lists:
    """Return lists of documents, walked through only if some type needs a look."""
    types = lists.odd_types
    trusted = _trusted(types) | ({AnyOf} if ground_truth else set())
    if types <= trusted:
        return lists
    read = item_in if ground_truth else document_in
    return Lists([
        [one if type(one) in trusted else read(one, Location(name, query, f"[{position}]"))
         for position, one in enumerate(documents)]
        for query, documents in enumerate(lists)
    ])  # fmt: skip


def _checked_aspects(value: Any, at: Location) -> tuple[str, ...]:
    several = value if isinstance(value, list | tuple | set | frozenset) else [value]
    names = set()
    for one in several:
        number = isinstance(one, Integral) and not isinstance(one, bool | np.bool_)
        if number or (isinstance(one, str) and not is_blank(one)):
            names.add(str(one))
        elif one is not None or several is value:
            be = "a text, a whole number or a list of them"
            raise at.error(f": an aspect must be {be}, got {clipped(one)}")
    return tuple(sorted(names))


def grade_in(value: Any) -> float | None:
    """Return the grade that a value says, a number or one written as text; ``None`` of others.

    >>> grade_in(2), grade_in("0"), grade_in(False), grade_in("high")
    (2.0, 0.0, 0.0, None)
    """
    try:
        found = float(value) if isinstance(value, Real | str | np.bool_) else math.nan
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _checked_grade(value: Any, at: Location) -> float | None:
    if value is None:
        return None
    grade = grade_in(value)
    if grade is None:
        problem = f": a grade must be a finite number, got {clipped(value)}"
        raise at.error(problem, "0 says that the document is not ground truth")
    return max(grade, 0.0)  # below 0, as qrels have it, it was judged as well


def checked_labels(queries: Any, n_queries: int) -> list[str | int]:
    """Return labels, if there is one per query.

    Raises:
        InvalidType: If one is neither a text nor a whole number.
        InvalidInput: If there is another number of them.
    """
    labels = _as_list(queries, Location("queries"), "a list with one label per query")
    if len(labels) != n_queries:
        problem = f"must have one label per query, got {len(labels)} for {n_queries} queries"
        raise InvalidInput("queries", problem)
    for position, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, str | int | np.integer):
            problem = f"must be text or a whole number, got {clipped(label)}"
            raise InvalidType("queries", problem, query=position)
    return [int(label) if isinstance(label, np.integer) else label for label in labels]


# Looking for a near label takes time for each; of more queries the first so many are tried.
_TRIED = 2_000
_WIDTH = 80


def position_of(
    labels: Sequence[str | int],
    query: object,
    position: object = None,
    ids: Sequence[str] | None = None,
) -> int:
    """Return the position of a query, given by its label, its id or by the position itself.

    A label comes first, then an id, as text. A whole number is a position where no label is a
    number.

    Raises:
        InvalidInput: If there is no such query, or several have that label; the problem lists
            their positions.

    >>> position_of(["what?", "why?"], "why?"), position_of(["what?", "why?"], 1)
    (1, 1)
    """
    if position is not None:
        if query is not None:
            raise InvalidInput("query", "and position cannot both be given", "name it by one")
        return errors.whole("position", position, 0, len(labels) - 1)
    if isinstance(query, bool) or not isinstance(query, str | Integral):
        raise errors.must("query", "be a label (text or whole number)", query)
    if isinstance(query, Integral):
        query = int(query)  # the numbers in a pandas index are numpy's
    found = _places(labels, query) or _places(ids or (), query)
    if len(found) == 1:
        return found[0]
    shown = clipped(query)
    if found:
        problem = f": {len(found)} queries have the label {shown}, at the positions "
        fix: Fix = Advice("name one by {}", position=...)
        raise InvalidInput("query", problem + clipped(found), fix)
    if isinstance(query, int) and not any(isinstance(label, int) for label in labels):
        return errors.whole("position", query, 0, len(labels) - 1)
    told = "{} names a query by its place, {} gives the questions"
    fix = Advice(told, position=..., queries=...)
    texts = [str(label)[:_WIDTH] for label in labels[:_TRIED]]
    for near in difflib.get_close_matches(str(query)[:_WIDTH], texts, n=1):
        fix = f"did you mean {clipped(labels[texts.index(near)])}?"
    problem, part = f": no query has the label {shown}", str(query).strip().lower()
    holding = [place for place, label in enumerate(labels) if part and part in str(label).lower()]
    if holding:
        problem += f", which is part of those at the positions {clipped(holding)}"
    raise InvalidInput("query", problem, fix)


def _places(names: Sequence[str | int], query: object) -> list[int]:
    wanted = composed(query) if isinstance(query, str) else query
    return [place for place, name in enumerate(names)
            if (composed(name) if isinstance(name, str) else name) == wanted]  # fmt: skip


#: What a query can be tagged with: by these, results are sliced.
Tag: TypeAlias = "str | int | float | bool | None"
#: The tags that are ids of queries, the first that there is.
ID_TAGS = ("id", "qid", "query_id", "question_id", "_id")


def ids_among(tags: Mapping[str, Sequence[Tag]]) -> list[str] | None:
    """Return the ids of queries as texts; ``None`` unless one of their tags is an id of each.

    >>> ids_among({"id": [7, 8]}), ids_among({"id": ["q1", None]}), ids_among({"topic": ["a"]})
    (['7', '8'], None, None)
    """
    for values in (tags[name] for name in ID_TAGS if name in tags):
        written = [text for one in values if (text := id_written(one)) is not None]
        if len(written) == len(values):
            return written
    return None


def id_written(tag: Tag) -> str | None:
    """Return an id as text; ``None`` of what is none.

    In a column of numbers, a data frame makes 7.0 of an id 7.

    >>> id_written("q1"), id_written(7.0), id_written(0.5), id_written(None)
    ('q1', '7', None, None)
    """
    if isinstance(tag, float) and tag.is_integer():
        return str(int(tag))
    return str(tag) if isinstance(tag, str | int) and not isinstance(tag, bool) else None


#: The longest text that is a tag; longer ones are contents.
LONGEST_TAG = 200


def is_tag(value: object) -> bool:
    """Tell whether a value can be a tag: a short text, a finite number, a boolean or nothing.

    >>> is_tag("wikipedia"), is_tag(3), is_tag(["a"]), is_tag("x" * 201), is_tag(float("nan"))
    (True, True, False, False, False)
    """
    if isinstance(value, str):
        return len(value) <= LONGEST_TAG
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, int)


#: The tag that says whether a person accepted the ground truth of a query.
STATUS = "status"
DRAFT = "draft"


def unreviewed_in(tags: Mapping[str, Sequence[Tag]]) -> int:
    """Return how many queries are drafts that nobody has accepted, by their tags."""
    return list(tags.get(STATUS, ())).count(DRAFT)


def checked_tags(tags: object, n_queries: int) -> dict[str, list[Tag]]:
    """Return the tags of queries by name, one value per query.

    Args:
        tags: Name -> one value per query: texts of at most 200 characters, finite numbers and
            booleans; ``None``, NaN or an empty text where a query has none.
        n_queries: How many queries there are.

    Raises:
        InvalidType: If they are something else.
        InvalidInput: If there is not one value per query, or a text is too long.

    >>> checked_tags({"corpus": ["wiki", None]}, 2)
    {'corpus': ['wiki', None]}
    """
    if not isinstance(tags, Mapping):
        what = 'map names to one value per query, such as {"corpus": ["wiki", "chat"]}'
        raise errors.must("tags", what, tags, kind=InvalidType)
    return {errors.text("tags", name, "named by text"): _tag_values(name, values, n_queries)
            for name, values in tags.items()}  # fmt: skip


def _tag_values(name: str, values: Any, n_queries: int) -> list[Tag]:
    at = Location("tags", within=f"[{name!r}]")
    listed = _as_list(values, at, "a list with one value per query")
    if len(listed) != n_queries:
        problem = f": {clipped(name)} has {len(listed)} values for {n_queries} queries"
        raise InvalidInput("tags", problem)
    plain = [value.item() if isinstance(value, np.generic) else value for value in listed]
    found: list[Tag] = [None if value != value or value == "" else value for value in plain]
    for query, value in enumerate(found):
        if not is_tag(value):
            be = f"a text of at most {LONGEST_TAG} characters, a finite number or a boolean"
            problem = f": {clipped(name)} of query {query} must be {be}, got {clipped(value)}"
            raise InvalidInput("tags", problem)
    return found


@dataclass(frozen=True, eq=False)
class Judged:
    """Which retrieved documents somebody looked at; those that match an item are judged anyway.

    Attributes:
        number: What is known of each retrieved document, in order of queries, then rank, of shape
            (documents,). A number from 0 tells apart the documents of a query that were looked at
            and are not in its ground truth; a document that is there twice has it twice. The
            others are ``RELEVANT``, ``POOLED`` (they were to be looked at, and were not) or
            ``UNKNOWN``.
        n_others: Documents of each query that were looked at and are not in its ground truth,
            retrieved or not; shape (queries,).
        keys: What each retrieved document is known by, the same in every run; shape (documents,).
        digests: Per query, what tells the documents that were looked at from other ones.
    """

    RELEVANT: ClassVar[int] = -1
    POOLED: ClassVar[int] = -2
    UNKNOWN: ClassVar[int] = -3

    number: NDArray[np.int64]
    n_others: NDArray[np.int64]
    keys: Sequence[str] = ()
    digests: Sequence[str] = ()

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each retrieved document is judged; shape (documents,)."""
        return self.number >= Judged.RELEVANT

    @classmethod
    def of(
        cls,
        judged: object,
        queries: QuerySet,
        key: Callable[[DocumentLike, str], Hashable] | None,
        grades: NDArray[np.float64] | None,
    ) -> Judged:
        """Settle which documents somebody looked at.

        Args:
            judged: As the evaluator takes it.
            queries: The queries.
            key: What tells documents apart, where a matcher does so by a key.
            grades: The grade of each item; one of grade 0 was looked at.

        Raises:
            InvalidType: If ``judged`` is not one list, or mapping, of documents per query.
            InvalidInput: If it has another number of queries, or labels that are none.
        """
        given = _judged_lists(judged, queries.labels)
        zero = iter(np.zeros(len(queries.item_query)) if grades is None else grades == 0)
        numbers, n_others, keys, digests = [], [], [], []
        for query, items in enumerate(queries.alternatives()):
            named = [
                (_names(document, key, f"actual_docs[{query}]"), is_zero)
                for alternatives, is_zero in zip(items, zero, strict=False)
                for document in alternatives
            ]
            truth = {name for names, is_zero in named if not is_zero for name in names}
            told = [
                (_names(document, key, f"judged[{query}]", given=True), is_seen)
                for document, is_seen in given[query]
            ]
            left = [names for names, is_seen in told if not is_seen]
            pool = {name for names in left if truth.isdisjoint(names) for name in names}
            seen = [names for names, is_zero in named if is_zero]
            others, n = _numbered(truth, [*seen, *(names for names, is_seen in told if is_seen)])
            for document in queries.predicted[query]:
                names = _names(document, key, f"predicted_docs[{query}]")
                keys.append(names[0] if names else "")
                unseen = cls.UNKNOWN if pool.isdisjoint(names) else cls.POOLED
                number = next((others[one] for one in names if one in others), unseen)
                numbers.append(number if truth.isdisjoint(names) else cls.RELEVANT)
            n_others.append(n)
            content = json.dumps([sorted(others), sorted(pool)])
            digests.append(hashlib.blake2b(content.encode(), digest_size=8).hexdigest())
        return cls(np.array(numbers, np.int64), np.array(n_others, np.int64), keys, digests)


def _numbered(truth: set[str], seen: Iterable[Sequence[str]]) -> tuple[dict[str, int], int]:
    """Number documents that are not in the ground truth, by their names, and count them.

    One that shares a name with one before is the same.
    """
    others: dict[str, int] = {}
    n = 0
    for names in seen:
        if names and truth.isdisjoint(names):
            number = next((others[one] for one in names if one in others), n)
            n = max(n, number + 1)
            for one in names:
                others.setdefault(one, number)
    return others, n


def by_query(given: Any, labels: Sequence[str | int], argument: str) -> list[Any]:
    """Return what each query has of documents given as a list per query, or as label -> list.

    Raises:
        InvalidType: If it is neither.
        InvalidInput: If it has another number of queries, or a label that none has.

    >>> by_query({"Who?": ["a"]}, ["When?", "Who?"], "unwanted")
    [None, ['a']]
    """
    if isinstance(given, Mapping):
        known = set(labels)
        strange = [one for one in given if one not in known]
        if strange:
            raise InvalidInput(argument, f": there is no query {clipped(strange[0])}")
        given = [given.get(label) for label in labels]
    if isinstance(given, str) or not isinstance(given, Sequence):
        be = "be one list of ids, texts or documents per query, or map labels to such lists"
        raise errors.must(argument, be, given, kind=InvalidType)
    if len(given) != len(labels):
        problem = f"must have one list per query, got {len(given)} for {len(labels)} queries"
        raise InvalidInput(argument, problem)
    return list(given)


def _judged_lists(judged: object, labels: Sequence[str | int]) -> list[list[tuple[Any, bool]]]:
    """Return, per query, the documents that were given, and whether each was looked at."""
    lists = []
    for query, value in enumerate(by_query(judged, labels, "judged")):
        if not isinstance(value, Mapping | list | tuple | set | frozenset | None):
            raise InvalidType("judged", f"must be a list, got {clipped(value)}", query=query)
        given = list(value or ())
        seen = list(value.values()) if isinstance(value, Mapping) else [True] * len(given)
        if not all(isinstance(one, bool) for one in seen):
            problem = "must map documents to whether they were looked at (True or False)"
            raise InvalidType("judged", problem, query=query)
        lists.append([*zip(check_documents(given, f"judged[{query}]"), seen, strict=True)])
    return lists


def _names(
    document: Any,
    key_of: Callable[[DocumentLike, str], Hashable] | None,
    where: str,
    *,
    given: bool = False,
) -> list[str]:
    """Return what a document may be called: its key or, without one, its id and its text."""
    if key_of is None:
        span = plain_value(span_without_text(document))
        words = _as_json(span) if span else read_text(document)
        return [*dict.fromkeys(filter(None, [id_of(document), "" if is_blank(words) else words]))]
    plain = [document] if given and isinstance(document, str) else []
    try:
        key = key_of(document, where)
    except InvalidInput:
        if not plain:
            raise
        key = None  # a text that stands for a key of another kind
    made = key if isinstance(key, str) else json.dumps(key, ensure_ascii=False, default=str)
    return list(dict.fromkeys([*plain, *([] if key is None else [made])]))
