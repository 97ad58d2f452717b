"""Documents and queries: what may be passed in, checked once.

This room knows LangChain ``Document`` objects, plain strings and dicts accepted as documents,
``AnyOf`` alternatives, and the shape of the two lists an evaluation starts from. It must not know
how documents are compared or what is computed from them.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import sys
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from json.encoder import encode_basestring_ascii
from numbers import Integral, Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import InvalidInput, InvalidType, clipped, text, warn

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = [
    "AnyOf",
    "Digests",
    "DocumentLike",
    "QuerySet",
    "Reading",
    "as_document",
    "check_documents",
    "id_of",
    "metadata_of",
    "plain_value",
    "position_of",
    "read_everything",
    "read_id",
    "read_text",
    "text_of",
]

DocumentLike: TypeAlias = "Document | str | Mapping[str, Any]"
Item: TypeAlias = "DocumentLike | AnyOf"
#: Returns what somebody looks at in a document, in a form that JSON can hold.
Reading: TypeAlias = "Callable[[DocumentLike], Any]"

_PAGE_CONTENT = attrgetter("page_content")

# ``Document.model_dump()`` adds "type", which carries nothing; dumps are accepted as they are.
_DICT_KEYS = frozenset({"page_content", "metadata", "id", "type"})


class AnyOf:
    """Interchangeable ground-truth documents: retrieving any one of them satisfies the item.

    An ``AnyOf`` is **one** ground-truth item. It is credited once, at the first rank where one of
    its alternatives is retrieved.

    Args:
        alternatives: One or more documents (LangChain ``Document``, ``str`` or dict).

    Raises:
        ValueError: If there is no alternative.
        TypeError: If an alternative is not a document, or is itself an ``AnyOf``.

    >>> AnyOf(["The fee is 5 euros.", "It costs five euros."])
    AnyOf(['The fee is 5 euros.', 'It costs five euros.'])
    """

    __slots__ = ("alternatives",)

    def __init__(self, alternatives: Iterable[DocumentLike]) -> None:
        single = isinstance(alternatives, (str, bytes, Mapping)) or _is_document(alternatives)
        if single or not isinstance(alternatives, Iterable):
            raise TypeError(
                "AnyOf: alternatives must be a list of documents, got a single "
                f"{type(alternatives).__name__}; write AnyOf([first, second])."
            )
        self.alternatives: tuple[DocumentLike, ...] = tuple(alternatives)
        if not self.alternatives:
            raise ValueError("AnyOf: needs at least one alternative, got none.")
        for position, alternative in enumerate(self.alternatives):
            _check_document(alternative, f"AnyOf alternative [{position}]")

    def __repr__(self) -> str:
        return f"AnyOf({list(self.alternatives)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyOf) and self.alternatives == other.alternatives

    __hash__ = None  # type: ignore[assignment]  # LangChain documents are unhashable too


def text_of(document: DocumentLike, where: str = "document") -> str:
    """Return the text of one document; a plain string is its own text.

    >>> text_of({"page_content": "Opening hours"})
    'Opening hours'
    """
    if isinstance(document, str):
        return document
    text = document["page_content"] if isinstance(document, Mapping) else document.page_content
    if not isinstance(text, str):
        raise TypeError(
            f"{where}: page_content must be a str, got {type(text).__name__}. "
            "LangChain does not check assignments to a Document; set it to text."
        )
    return text


def id_of(document: DocumentLike) -> str | None:
    """Return the id of one document, or ``None``; a plain string stands for its own id.

    >>> id_of({"page_content": "Opening hours", "id": 7})
    '7'
    """
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
        id=id_of(document),
    )


def check_documents(documents: Sequence[object], where: str) -> None:
    """Refuse what is no document, or has no text, naming its place.

    Raises:
        TypeError: If one is neither a ``Document``, a string nor a dict, or its text is no string.
        ValueError: If a dict has no ``"page_content"``, or keys that no document has.

    >>> check_documents(["Opening hours", {"page_content": "At nine."}], "retrieved")
    """
    kinds = set(map(type, documents))
    if kinds <= {str}:
        return
    if kinds == {_document_class()} and set(map(type, map(_PAGE_CONTENT, documents))) == {str}:
        return  # as good as always; a retriever's every answer comes through here
    for position, document in enumerate(documents):
        _check_document(document, f"{where}[{position}]")
        text_of(document, f"{where}[{position}]")  # type: ignore[arg-type]  # checked just now


def is_blank(text: str) -> bool:
    """Tell whether a text is empty or white space only."""
    return not text or text.isspace()


def content_key(document: DocumentLike) -> tuple[str, str | None, str]:
    """Return what makes a document itself: text, id and metadata, as a hashable value.

    ``Document`` is unhashable, so identity is keyed on its parts. Metadata may hold unhashable
    values; its sorted representation stands in for it.
    """
    metadata = metadata_of(document)
    parts = sorted((repr(key), repr(value)) for key, value in metadata.items())
    identity = None if isinstance(document, str) else id_of(document)
    return unicodedata.normalize("NFC", text_of(document)), identity, repr(parts)


def read_text(document: DocumentLike) -> str:
    """Return the text of a document, in Unicode NFC."""
    return unicodedata.normalize("NFC", text_of(document))


def read_id(document: DocumentLike) -> str | None:
    """Return the id of a document, to the letter."""
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
    """The digests of :meth:`QuerySet.digests`, made when somebody looks at one.

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
            # Of threads that come at once each makes the same; then the documents can go.
            self._made, self._make = make(), None
        return self._made[position]


class Lists(Sequence[list[Any]]):
    """A list of lists, copied into one long list: one object where there would be one per query.

    Hundreds of thousands of small lists would have the garbage collector walk through all of them
    again and again. A query's list is made anew each time it is asked for.

    Attributes:
        odd_types: Types of the elements of every list that holds anything but non-empty texts.

    >>> lists = Lists([["a", "b"], [], ["c"]])
    >>> lists[0], list(lists)
    (['a', 'b'], [['a', 'b'], [], ['c']])
    """

    __slots__ = ("_bounds", "_flat", "odd_types")

    def __init__(self, lists: Sequence[Sequence[Any]]) -> None:
        self._flat: list[Any] = []
        self._bounds = array("q", accumulate(map(len, lists), initial=0))
        self.odd_types: set[type] = set()
        # List by list, as its elements are copied and looked at while they are in the cache.
        for elements in lists:
            if not _all_non_empty_texts(elements):
                self.odd_types.update(map(type, elements))
            self._flat += elements

    @property
    def elements(self) -> list[Any]:
        """What is in the lists, one after the other: the list itself, not to be changed."""
        return self._flat

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
        return self._flat[self._bounds[one] : self._bounds[one + 1]]

    def __iter__(self) -> Iterator[list[Any]]:
        flat = self._flat
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
    def from_lists(cls, actual_docs: Any, predicted_docs: Any, queries: Any = None) -> QuerySet:
        """Check the two lists of lists, and the labels, and keep them.

        Raises:
            TypeError: If something is not a list of lists of documents; the message names the
                argument and the position.
            ValueError: If there are no queries, or the lengths differ.
        """
        actual = _lists_of(actual_docs, "actual_docs")
        predicted = _lists_of(predicted_docs, "predicted_docs")
        if len(actual) != len(predicted):
            raise ValueError(
                "actual_docs and predicted_docs must have one list per query each, got "
                f"{len(actual)} in actual_docs and {len(predicted)} in predicted_docs."
            )
        if not actual:
            raise ValueError(
                "actual_docs and predicted_docs are empty (0 and 0 queries); "
                "an evaluation needs at least one query."
            )
        _check_types(actual, "actual_docs", allow_alternatives=True)
        _check_types(predicted, "predicted_docs", allow_alternatives=False)
        return cls(actual, predicted, _labels(queries, len(actual)))

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
        return np.repeat(np.arange(self.n_queries), self.n_items)

    @cached_property
    def n_alternatives(self) -> NDArray[np.int64]:
        """Interchangeable documents of each item, 1 for a plain one; shape (items,)."""
        if not self.has_alternatives:
            return np.broadcast_to(np.int64(1), len(self.item_query))
        items = list(chain.from_iterable(self.alternatives()))
        return np.fromiter(map(len, items), np.int64, len(items))

    def grades(self, key: str) -> NDArray[np.float64]:
        """Return the grade of each item, from its documents' metadata; shape (items,).

        A document without the key has grade 1; 0 says that it is not ground truth.

        Raises:
            ValueError: For a grade that is negative, not finite or not a number, and for an
                ``AnyOf`` whose alternatives have different grades.
        """
        given = self.given_grades(key)
        if np.isnan(given).all():
            warn_of_no_grades(key)
        return np.nan_to_num(given, nan=1.0)

    def given_grades(self, key: str) -> NDArray[np.float64]:
        """Return the grade of each item, NaN where its documents have none; see :meth:`grades`."""
        if not isinstance(key, str):
            raise TypeError(f"grade_key must be the name of a metadata key, got {key!r}.")
        grades = [
            _grade_of(item, key, f"actual_docs[{query}][{position}]")
            for query, items in enumerate(self.actual)
            for position, item in enumerate(items)
        ]
        return np.array([np.nan if grade is None else grade for grade in grades], np.float64)

    def ground_truth(self) -> QuerySet:
        """Return the same ground truth without the predicted documents."""
        return QuerySet(self.actual, Lists([]), self.labels)

    def digests(self, grades: NDArray[np.float64] | None, reading: Reading) -> list[str]:
        """Return, per query, what tells its ground truth from another one, without its words.

        That is a hash (BLAKE2b, 8 bytes in hexadecimal) of the texts, in Unicode NFC, and ids of
        its documents, which are alternatives of each other, and their grades; the order of items
        and repetitions make no difference. It is the same on every machine and does not depend on
        how documents are compared. Where somebody looks at a document in another way, a hash of
        what is seen that way follows after a ``-``.

        Args:
            grades: The grade of each item; ``None`` if all are 1. Items of grade 0 do not count.
            reading: What the matcher looks at in a document.
        """
        documents = self._digests(grades, _read_text_and_id)
        if self.texts_only[0] and (
            reading in (read_text, read_everything) or all(map(str.isascii, self.actual.elements))
        ):
            return documents  # a text is its own id
        seen = self._digests(grades, reading)
        return [
            whole if whole == part else f"{whole}-{part}"
            for whole, part in zip(documents, seen, strict=True)
        ]

    def _digests(self, grades: NDArray[np.float64] | None, reading: Reading) -> list[str]:
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
        if grades is not None:
            items = [
                f"{grade!r}*{item}" if grade not in (0, 1) else item if grade else ""
                for grade, item in zip(grades.tolist(), items, strict=True)
            ]
        ends = np.cumsum(self.n_items).tolist()
        return [_digest(items[start:end]) for start, end in pairwise([0, *ends])]

    def alternatives(self) -> Iterator[Sequence[Sequence[DocumentLike]]]:
        """Yield, per query, the alternatives of each of its items; one for a plain document."""
        for items in self.actual:
            yield [item.alternatives if isinstance(item, AnyOf) else (item,) for item in items]


def warn_of_no_grades(key: str) -> None:
    """Warn of a key in the metadata that no ground-truth document has."""
    warn(
        f"grade_key={key!r}: no ground-truth document has this key in its metadata, so every grade "
        "is 1."
    )


def _document_class() -> type | None:
    """Return LangChain's ``Document`` if somebody has loaded it.

    If nobody has, no object can be an instance of it, and loading it here would make every run
    with plain strings pay for the import.
    """
    module = sys.modules.get("langchain_core.documents.base")
    return getattr(module, "Document", None)


def _is_document(value: object) -> bool:
    document_class = _document_class()
    return document_class is not None and isinstance(value, document_class)


def _lists_of(value: Any, name: str) -> Lists:
    """Return ``value`` as a list of new lists."""
    outer = _as_list(value, name, "a list with one list of documents per query")
    return Lists(
        [
            inner
            if type(inner) in (list, tuple)
            else _as_list(inner, f"{name}[{query}]", "a list of documents, even for one document")
            for query, inner in enumerate(outer)
        ]
    )


def _all_non_empty_texts(values: Sequence[Any]) -> bool:
    """Tell whether all values are texts with something in them, of whatever class of ``str``.

    Asking which of them the empty text starts with is one pass in C: it refuses what is no text,
    and the answer is none unless one is empty.
    """
    try:
        return not "".startswith(tuple(values))
    except TypeError:
        return False


def _as_list(value: Any, name: str, wanted: str) -> list[Any]:
    if isinstance(value, (list, tuple, Lists)):
        return list(value)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            raise TypeError(f"{name} must be {wanted}, got a numpy array without dimensions.")
        return list(value) if value.ndim > 1 else value.tolist()
    if _is_pandas_series(value):
        return list(value)
    came = "None" if value is None else f"a {type(value).__name__}"
    raise TypeError(
        f"{name} must be {wanted} (a list, a tuple or a numpy array), got {came}"
        f"{_clipped(value) if isinstance(value, str) else ''}."
    )


def _is_pandas_series(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Series)


def _clipped(text: str) -> str:
    return f" ({text[:40]!r}{'…' if len(text) > 40 else ''})"


def _check_types(lists: Lists, name: str, *, allow_alternatives: bool) -> None:
    """Check every document, but walk through them only if some type needs a look."""
    document_class = _document_class()
    trusted: set[type] = {str} | ({AnyOf} if allow_alternatives else set())
    types = lists.odd_types
    trusted |= {t for t in types if document_class and issubclass(t, document_class)}
    if types <= trusted:
        return
    for query, documents in enumerate(lists):
        for position, document in enumerate(documents):
            if not (allow_alternatives and isinstance(document, AnyOf)):
                _check_document(document, f"{name}[{query}][{position}]")


def _check_document(document: object, where: str) -> None:
    if isinstance(document, str) or _is_document(document):
        return
    if isinstance(document, Mapping):
        _check_mapping(document, where)
        return
    if isinstance(document, AnyOf):
        raise TypeError(
            f"{where} is an AnyOf; alternatives belong in the ground truth, one level deep."
        )
    came = "None" if document is None else f"a {type(document).__name__}"
    hint = ""
    if isinstance(document, tuple) and document and _is_document(document[0]):
        hint = " If these are (document, score) pairs, keep the document alone."
    raise TypeError(
        f"{where} must be a LangChain Document, a str or a dict with 'page_content', got {came}."
        + hint
    )


def _check_mapping(document: Mapping[Any, Any], where: str) -> None:
    unknown = [key for key in document if key not in _DICT_KEYS]
    if "page_content" not in document or unknown:
        raise ValueError(
            f"{where}: a document given as a dict needs the key 'page_content' and may have "
            f"'metadata' and 'id', got the keys {list(document)!r}. "
            "Rename the text's key to 'page_content' and put anything else into 'metadata'."
        )
    text_of(document, where)
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"{where}: 'metadata' must be a dict, got a {type(metadata).__name__}.")
    identity = document.get("id")
    if identity is not None and (isinstance(identity, bool) or not isinstance(identity, str | int)):
        raise TypeError(f"{where}: 'id' must be a str or int, got a {type(identity).__name__}.")


def _grade_of(item: Item, key: str, where: str) -> float | None:
    """Return the grade of an item, ``None`` if it has none."""
    alternatives = item.alternatives if isinstance(item, AnyOf) else (item,)
    given = [_checked_grade(metadata_of(document).get(key), where) for document in alternatives]
    if all(grade is None for grade in given):
        return None
    grades = {1.0 if grade is None else grade for grade in given}
    if len(grades) > 1:
        raise ValueError(
            f"{where}: the alternatives of one AnyOf must have one grade, got {sorted(grades)}."
        )
    return grades.pop()


def _checked_grade(value: Any, where: str) -> float | None:
    if value is None:
        return None
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not number or not 0 <= value < np.inf:
        raise ValueError(
            f"{where}: a grade must be a finite number of at least 0, got {value!r}; "
            "0 says that the document is not ground truth."
        )
    return float(value)


def _labels(queries: Any, n_queries: int) -> list[str | int]:
    if queries is None:
        return list(range(n_queries))
    labels = _as_list(queries, "queries", "a list with one label per query")
    if len(labels) != n_queries:
        raise ValueError(
            f"queries must have one label per query, got {len(labels)} labels "
            f"for {n_queries} queries."
        )
    return [_label(label, position) for position, label in enumerate(labels)]


def _label(label: Any, position: int) -> str | int:
    if isinstance(label, np.integer):
        return int(label)
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise TypeError(f"queries[{position}] must be a str or an int, got {label!r}.")
    return label


_NAMED = 10
# Looking for a near label takes time for each; of more queries the first so many are tried.
_TRIED = 2_000
_WIDTH = 80


def position_of(labels: Sequence[str | int], query: object, position: object = None) -> int:
    """Return the position of a query, given by its label or by the position itself.

    A label comes first. A whole number is a position where no label is a number.

    Raises:
        ValueError: If there is no such query, or several have that label; the message lists their
            positions.

    >>> position_of(["what?", "why?"], "why?"), position_of(["what?", "why?"], 1)
    (1, 1)
    """
    if position is not None:
        if query is not None:
            raise ValueError("give a query by its label or by its position, not both.")
        return _checked_position(position, len(labels))
    if isinstance(query, bool) or not isinstance(query, str | Integral):
        raise ValueError(f"query must be a label (text or whole number), got {query!r}.")
    if isinstance(query, Integral):
        query = int(query)  # the numbers in a pandas index are numpy's
    found = [place for place, label in enumerate(labels) if label == query]
    if len(found) == 1:
        return found[0]
    if found:
        named = ", ".join(map(str, found[:_NAMED])) + (", …" if len(found) > _NAMED else "")
        raise ValueError(
            f"query: {len(found)} queries have the label {_clipped_label(query)}, at the positions "
            f"{named}; name one by position=…"
        )
    if isinstance(query, int) and not any(isinstance(label, int) for label in labels):
        return _checked_position(query, len(labels))
    raise ValueError(
        f"query: no query has the label {_clipped_label(query)}{_nearest(labels, query)}"
    )


def _checked_position(position: object, n_queries: int) -> int:
    whole = isinstance(position, Integral) and not isinstance(position, bool)
    if not whole or not 0 <= int(position) < n_queries:  # type: ignore[call-overload]
        raise ValueError(
            f"position must be a whole number from 0 to {n_queries - 1}, got {position!r}."
        )
    return int(position)  # type: ignore[call-overload, no-any-return]


def _nearest(labels: Sequence[str | int], query: str | int) -> str:
    texts = {label[:_WIDTH]: label for label in labels[:_TRIED] if isinstance(label, str)}
    near = difflib.get_close_matches(str(query)[:_WIDTH], texts, n=1)
    if near:
        return f"; did you mean {_clipped_label(texts[near[0]])}?"
    return (
        f"; labels look like {_clipped_label(labels[0])}, and position=… names a query by its "
        "place."
    )


def _clipped_label(label: str | int) -> str:
    text = repr(label)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


#: What a query can be tagged with: by these, results are sliced.
Tag: TypeAlias = "str | int | float | bool | None"
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


def checked_tags(tags: object, n_queries: int) -> dict[str, list[Tag]]:
    """Return the tags of queries by name, one value per query.

    Args:
        tags: Name -> one value per query: texts of at most 200 characters, finite numbers and
            booleans; ``None`` (or NaN) where a query has none.
        n_queries: How many queries there are.

    Raises:
        InvalidType: If they are something else.
        InvalidInput: If there is not one value per query, or a text is too long.

    >>> checked_tags({"corpus": ["wiki", None]}, 2)
    {'corpus': ['wiki', None]}
    """
    if not isinstance(tags, Mapping):
        raise InvalidType(
            "tags",
            'must map names to one value per query, such as {"corpus": ["wiki", "chat"]}, got a '
            f"{type(tags).__name__}",
        )
    return {text("tags", name, "named by text"): _tag_values(name, values, n_queries)
            for name, values in tags.items()}  # fmt: skip


def _tag_values(name: str, values: Any, n_queries: int) -> list[Tag]:
    listed = _as_list(values, f"tags[{name!r}]", "a list with one value per query")
    if len(listed) != n_queries:
        raise InvalidInput(
            "tags", f": {clipped(name)} has {len(listed)} values for {n_queries} queries"
        )
    plain = [value.item() if isinstance(value, np.generic) else value for value in listed]
    found: list[Tag] = [None if value != value else value for value in plain]
    for query, value in enumerate(found):
        if not is_tag(value):
            raise InvalidInput(
                "tags",
                f": {clipped(name)} of query {query} must be a text of at most {LONGEST_TAG} "
                f"characters, a finite number or a boolean, got {clipped(value)}",
            )
    return found
