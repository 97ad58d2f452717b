"""Matchers that answer yes or no: equal text, contained text, equal id, equal metadata."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from krag_eval.core import documents
from krag_eval.core.documents import DocumentLike, QuerySet, Reading
from krag_eval.core.errors import (
    Advice,
    Fix,
    InvalidInput,
    InvalidType,
    Refusal,
    boolean,
    must,
    warn_of,
)
from krag_eval.core.language import N_, _
from krag_eval.core.matching.base import KeyMatcher, Matcher, TextMatcher
from krag_eval.core.matching.joins import BlockScorer, FloatArray, IntArray, Matches
from krag_eval.core.text import UNSPACED

# Inside scripts without spaces every position is a boundary; so it is beside the vowel ㆍ, which
# Korean notices write for a middle dot.
_UNSPACED = re.compile(f"[{UNSPACED}\u318d]")


# What shows nothing: soft hyphens, zero-width spaces and joiners, variation selectors.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")
_FULL_WIDTH = re.compile("[\uff01-\uff5e]+")
# Spaces where no line may break, or as wide as a letter, are spaces, and typographic quotes the
# quotes of a keyboard.
_TYPED = {
    **dict.fromkeys("\u00a0\u2007\u202f\u3000", " "),
    **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
}

# Letters of ASCII that NFC makes of others: of a Kelvin sign, a Greek question mark and an accent.
_COMPOSED = "K;`"

# Argument, query, and place within the query.
_PLACE = re.compile(r"(\w+)\[(\d+)\](.*)")

# Occurrences that are looked at one by one.
_FEW_OCCURRENCES = 100


class ExactTextMatcher(KeyMatcher):
    """Texts match when they are equal after Unicode NFC normalisation.

    Right for a corpus whose ground truth is made of the very chunks that are retrieved. A blank
    text matches nothing. Use ``"contains"`` or ``"coverage"`` when the ground truth is a passage
    and what comes back is a chunk cut elsewhere.

    Args:
        case_sensitive: If false, texts are compared without regard to case.
        fold_whitespace: If true, every run of white space counts as one space, and white space
            around the text as none.

    >>> ExactTextMatcher().similarity("Opening hours", "opening  hours")
    0.0
    >>> ExactTextMatcher(case_sensitive=False, fold_whitespace=True).similarity(
    ...     "Opening hours", "opening  hours")
    1.0
    """

    name = "text"
    reads_text: ClassVar[bool] = True

    def __init__(self, *, case_sensitive: bool = True, fold_whitespace: bool = False) -> None:
        self.case_sensitive = boolean("case_sensitive", case_sensitive)
        self.fold_whitespace = boolean("fold_whitespace", fold_whitespace)

    _advice = Advice(
        N_(
            "If the ground truth is a passage and the retriever returns chunks, try {} or {}; "
            "if both sides carry ids, try {}"
        ),
        matcher=("contains", "coverage", "id"),
    )

    _reads: ClassVar[Any] = staticmethod(documents.read_text)

    def settings(self) -> dict[str, object]:
        """Return the settings that differ from plain equality."""
        return _unlike(self, case_sensitive=True, fold_whitespace=False)

    def key(self, document: DocumentLike, where: str = "document") -> Hashable:
        """Return the folded text, or ``None`` for a blank one."""
        text = documents.text_of(document, where)
        if documents.is_blank(text):
            return None
        return _folded(text, self.case_sensitive, self.fold_whitespace)

    def own_keys(self, texts: Sequence[str]) -> bool:
        """Tell whether nothing is to be folded and no text needs normalising."""
        plain = self.case_sensitive and not self.fold_whitespace
        return plain and all(map(str.isascii, texts))

    def _has_own_keys(self, queries: QuerySet, side: int) -> bool:
        is_ours = type(self).own_keys is ExactTextMatcher.own_keys and self.own_keys([])
        return (is_ours and _is_composed(queries, side)) or super()._has_own_keys(queries, side)


class ContainsMatcher(TextMatcher):
    """A document matches when the ground-truth text occurs in it, word for word.

    The occurrence must begin and end at word boundaries, so ``doc1`` is not found in ``doc10``.
    Scripts written without spaces (Chinese, Japanese, Thai, …) have a boundary at every character;
    Hangul is spaced, so ``서울`` is not found in ``서울은`` unless ``word_boundaries=False``.
    White space around the ground-truth text does not count. No-break spaces are spaces, typographic
    quotes (‘ ’ “ ”, also low and reversed) are ' and ", full-width letters, digits and signs are
    those of a keyboard, and what shows nothing does not count: soft hyphens, zero-width characters,
    variation selectors. A ground-truth text of nothing else is in no text. Similarity is 1 or 0.

    Args:
        case_sensitive: If false, texts are compared without regard to case.
        fold_whitespace: If true, every run of white space counts as one space, so that lines may
            be wrapped elsewhere; if false, it must be the same.
        word_boundaries: If false, an occurrence anywhere counts.

    >>> ContainsMatcher().similarity("the fee is 5 euros", "Note that the fee is 5 euros.")
    1.0
    >>> ContainsMatcher().similarity("doc1", "doc10")
    0.0
    >>> ContainsMatcher().similarity("the dog's co-owner", "the dog’s\u00a0co-own\u00ader")
    1.0
    """

    name = "contains"
    threshold = 1.0
    takes_threshold: ClassVar[bool] = False

    def __init__(
        self,
        *,
        case_sensitive: bool = True,
        fold_whitespace: bool = True,
        word_boundaries: bool = True,
    ) -> None:
        self.case_sensitive = boolean("case_sensitive", case_sensitive)
        self.fold_whitespace = boolean("fold_whitespace", fold_whitespace)
        self.word_boundaries = boolean("word_boundaries", word_boundaries)

    _advice = Advice(
        N_("If chunks may cut a ground-truth passage, try {}; if case differs, try {}"),
        matcher=("coverage", "contains(case_sensitive=no)"),
    )

    def settings(self) -> dict[str, object]:
        """Return what is folded, and what else differs from the defaults."""
        # Folding is always there: once nothing was folded unless it was asked for.
        return _unlike(self, case_sensitive=True, fold_whitespace=None, word_boundaries=True)

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Fold each distinct text once."""
        folded = [
            _folded(_as_typed(text), self.case_sensitive, self.fold_whitespace) for text in texts
        ]
        occurs: Callable[[str, str], bool] = _occurs if self.word_boundaries else str.__contains__

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            needles = [folded[unit].strip() for unit in actual.tolist()]
            texts = [folded[unit] for unit in predicted.tolist()]
            return np.array(
                [[bool(needle) and occurs(text, needle) for text in texts] for needle in needles],
                float,
            )

        return score


class IdMatcher(KeyMatcher):
    """Documents match when their ids (``Document.id``) are equal, in Unicode NFC.

    A plain string stands for its own id, so lists of ids can be evaluated as they are. A document
    without an id is an error: it could only be counted as wrong by accident.

    >>> IdMatcher().similarity({"page_content": "a", "id": "7"}, {"page_content": "b", "id": "7"})
    1.0
    """

    name = "id"

    _advice = N_(
        "Compare one id of each side: a prefix, a number against text or an id given anew "
        "at every indexing are the usual causes."
    )

    _reads: ClassVar[Any] = staticmethod(documents.read_id)

    def key(self, document: DocumentLike, where: str = "document") -> Hashable:
        """Return the id of a document."""
        identity = documents.id_of(document)
        if not identity:
            fix = Advice("Give it one, or match on text with {}", matcher="text")
            raise refused(where, "has no id, and the id matcher needs one on every document", fix)
        return identity

    def own_keys(self, texts: Sequence[str]) -> bool:
        """Tell whether texts, which stand for their own ids, need no normalising."""
        return all(map(str.isascii, texts))

    def _has_own_keys(self, queries: QuerySet, side: int) -> bool:
        is_ours = type(self).own_keys is IdMatcher.own_keys
        return (is_ours and _is_composed(queries, side)) or super()._has_own_keys(queries, side)

    def match(self, queries: QuerySet) -> Matches:
        """Join the ids of each query; warn of ids that only Unicode's forms tell apart."""
        matches = super().match(queries)
        warn_of(
            _(
                "{} ground-truth ids are written in another Unicode form than the retrieved ones, "
                "as file names from a Mac are (NFD); they are compared as equal."
            ),
            _n_in_other_form(queries, matches),
        )
        return matches


class MetadataMatcher(KeyMatcher):
    """Documents match when they agree in one or more metadata values.

    Evaluates at the level of those values: with ``MetadataMatcher("source", "page")`` any chunk
    of the right page counts, and two ground-truth documents of one page are one item.

    Args:
        *keys: The metadata keys to compare; a document missing one of them is an error. With dots
            a key reaches into metadata within metadata: ``"source.url"`` is the ``"url"`` in
            ``"source"``, unless there is a key spelled ``"source.url"``.

    Raises:
        InvalidInput: If no key is given.

    >>> matcher = MetadataMatcher("source", "page")
    >>> matcher.similarity(
    ...     {"page_content": "a", "metadata": {"source": "guide.pdf", "page": 3}},
    ...     {"page_content": "b", "metadata": {"source": "guide.pdf", "page": 3}})
    1.0
    """

    name = "metadata"

    def __init__(self, *keys: str) -> None:
        if not keys or not all(isinstance(key, str) for key in keys):
            raise must("keys", "be the names of one or more metadata keys", keys)
        self.metadata_keys = keys

    @property
    def _document_reading(self) -> Reading:
        """The values of the compared keys, whatever else a document has."""
        return partial(_compared, self.metadata_keys)

    def settings(self) -> dict[str, object]:
        """Return the compared keys."""
        return {"keys": "+".join(self.metadata_keys)}

    def key(self, document: DocumentLike, where: str = "document") -> Hashable:
        """Return the values of the compared keys."""
        metadata = documents.metadata_of(document)
        return tuple(
            hashable(metadata_value(metadata, key, where), key, where) for key in self.metadata_keys
        )


def _n_in_other_form(queries: QuerySet, matches: Matches) -> int:
    """Count items that match documents by ids of which none is written as their own."""
    documents_of = queries.predicted.elements
    if all(queries.texts_only) and _is_composed(queries, 1):
        return 0
    items = [*chain.from_iterable(queries.alternatives())]
    starts = np.cumsum(queries.n_predicted) - queries.n_predicted
    places = starts[queries.item_query[matches.item]] + matches.rank - 1
    alike: dict[int, bool] = {}
    for item, place in zip(matches.item.tolist(), places.tolist(), strict=True):
        own = map(documents.written_id, items[item])
        is_alike = documents.written_id(documents_of[place]) in own
        alike[item] = alike.get(item, False) or is_alike
    return [*alike.values()].count(False)


def _is_composed(queries: QuerySet, side: int) -> bool:
    """Tell whether no retrieved text needs normalising, without a look at any of them.

    They are many. Where ground truth is of ASCII alone and has none of the letters that NFC makes
    of others, each of its texts is equal to nothing but itself.
    """
    if side == 0 or not queries.texts_only[0]:
        return False
    ground_truth = "".join(queries.actual.elements)
    return ground_truth.isascii() and not any(letter in ground_truth for letter in _COMPOSED)


def _compared(keys: Sequence[str], document: DocumentLike) -> list[Any]:
    metadata = documents.metadata_of(document)
    return [documents.plain_value(metadata_value(metadata, key, "document")) for key in keys]


def metadata_value(
    metadata: Mapping[str, Any],
    key: str,
    where: str,
    matcher: str = "MetadataMatcher",
    fix: Fix = "",
) -> Any:
    """Return what a document has under a key, which may reach into metadata within metadata.

    Args:
        metadata: Its metadata.
        key: The key.
        where: The document's place in the lists.
        matcher: What compares the values.
        fix: What to do if there is none.

    Raises:
        InvalidInput: If there is no such key, or nothing under it.
    """
    place: Any = metadata
    for part in [key] if key in metadata else key.split("."):
        if not isinstance(place, Mapping) or part not in place:
            there = (isinstance(place, Mapping) and sorted(map(str, place))) or "none"
            problem = f"has no metadata {key!r}, which {matcher} compares; there are {there}"
            raise refused(where, problem, fix)
        place = place[part]
    if is_nothing(place):
        problem = f"has metadata {key!r} for {matcher} to compare, but its value is {place!r}"
        raise refused(where, problem, fix or "give it a value, or leave the document out")
    return place


def is_nothing(value: Any) -> bool:
    """Tell whether a value is none, or what data frames make of none: NaN, NaT and pandas' NA."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ValueError):  # NA has no truth value, and an array has several
        return type(value).__name__ == "NAType"


def hashable(value: Any, key: str, where: str) -> Hashable:
    """Return a value from metadata, in Unicode NFC, if it can be compared by a hash.

    Raises:
        InvalidType: If it cannot.
    """
    try:
        hash(value)
    except TypeError:
        be = f": metadata {key!r} must be hashable to be compared, got a {type(value).__name__}"
        raise refused(where, be, kind=InvalidType) from None
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def refused(where: str, problem: str, fix: Fix = "", kind: type[Refusal] = InvalidInput) -> Refusal:
    """Return the refusal of a document, named by its place in the lists.

    >>> str(refused("actual_docs[3][1]", "is none")), refused("document", "is none").argument
    ('actual_docs[3][1] is none.', 'document')
    """
    place = _PLACE.fullmatch(where)
    if place is None:
        return kind(where, problem, fix)
    return kind(place[1], problem, fix, query=int(place[2]), within=place[3])


def _unlike(matcher: Matcher, **usual: bool | None) -> dict[str, object]:
    """Return the settings of a matcher that are not the usual ones."""
    return {name: getattr(matcher, name) for name in usual if getattr(matcher, name) != usual[name]}


def _folded(text: str, case_sensitive: bool, fold_whitespace: bool) -> str:
    if not case_sensitive:
        text = text.casefold()
    if fold_whitespace:
        text = " ".join(text.split())
    # Last, because folding case can leave combining marks apart.
    return unicodedata.normalize("NFC", text)


def _as_typed(text: str) -> str:
    """Return a text as a keyboard writes it, without what shows nothing."""
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", text)
    text = _FULL_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    # One by one: str.translate takes ten times as long.
    for typeset, typed in _TYPED.items():
        text = text.replace(typeset, typed)
    return text


def _occurs(text: str, needle: str) -> bool:
    """Tell whether ``needle`` occurs in ``text`` with a word boundary at both ends."""
    start = text.find(needle)
    for _occurrence in range(_FEW_OCCURRENCES):
        if start < 0:
            return False
        end = start + len(needle)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (_joined(before, needle[0]) or _joined(needle[-1], after)):
            return True
        start = text.find(needle, start + 1)
    # In "ababab…" a long needle of the kind occurs everywhere, and each look costs its length.
    return _with_boundaries(needle) in _with_boundaries(text)


def _with_boundaries(text: str) -> str:
    """Return a text with a mark at every word boundary, so that one search finds whole words.

    The mark may occur in the text as well: it is in no word, so it has a mark on either side, and
    a run of so many marks is never anything else.
    """
    # By character, not by position: a text of millions has some hundred.
    kinds = text.translate({ord(character): _in_word(character) for character in set(text)})
    inside = np.frombuffer(kinds.encode("latin-1"), np.bool_)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
    joined = np.concatenate([[False], inside[1:] & inside[:-1], [False]])
    marked = np.insert(codes, np.flatnonzero(~joined), 0)
    return marked.tobytes().decode("utf-32-le", "surrogatepass")


def _joined(left: str, right: str) -> bool:
    """Tell whether two neighbouring characters belong to one word; "" is the end of the text."""
    return _in_word(left) and _in_word(right)


def _in_word(character: str) -> bool:
    if not character:
        return False
    is_letter = unicodedata.category(character)[0] in "LMN" or character == "_"
    return is_letter and not _UNSPACED.match(character)
