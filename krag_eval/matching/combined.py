"""Matchers made of matchers: ``a & b`` wants both, ``a | b`` either.

This room knows what every matcher returns, and nothing of how any of them compares documents.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from krag_eval._errors import muted
from krag_eval.documents import DocumentLike, QuerySet, Reading
from krag_eval.matching.base import Matcher, check_threshold
from krag_eval.matching.joins import FloatArray, IntArray, Matches

__all__ = ["AndMatcher", "OrMatcher"]

_AT_THRESHOLD = 0.5


class _CombinedMatcher(Matcher):
    """What ``&`` and ``|`` share: one scale for all parts, and one decision per document."""

    threshold = _AT_THRESHOLD
    takes_threshold: ClassVar[bool] = False
    advice: ClassVar[str] = "Match by each part alone to see which one finds nothing."
    _sign: ClassVar[str]

    def __init__(self, *parts: Matcher) -> None:
        for part in parts:
            if not isinstance(part, Matcher):
                hint = "; did you forget to call it?" if isinstance(part, type) else ""
                raise TypeError(
                    f"{self._sign} combines matchers, such as CoverageMatcher(), got {part!r}{hint}"
                )
        # (a & b) & c is a & b & c: the numbers are the same, and the signature is plainer.
        self.parts: tuple[Matcher, ...] = tuple(
            chain.from_iterable(p.parts if type(p) is type(self) else (p,) for p in parts)
        )
        if len(self.parts) < 2:
            raise ValueError(f"{self._sign} needs at least two matchers, got {len(parts)}.")
        for part in self.parts:
            check_threshold(part.threshold, f"threshold of the matcher {part.signature}")

    @property
    def _document_reading(self) -> Reading:
        """What any of the parts looks at."""
        readings = [part._document_reading for part in self.parts]
        alike = all(reading == readings[0] for reading in readings)
        return readings[0] if alike else partial(_read_by_all, tuple(readings))

    @property
    def signature(self) -> str:
        """The parts' signatures, each with its threshold if it has one to choose."""
        parts = (
            f"{part.signature}>={float(part.threshold)!r}"
            if part.takes_threshold
            else part.signature
            for part in self.parts
        )
        return f"({self._sign.join(parts)})"

    def similarity(self, actual: DocumentLike, predicted: DocumentLike) -> float:
        """Return the similarity of one pair, in [0, 1]; 0.5 and above is a match.

        Args:
            actual: The ground-truth document: a LangChain ``Document``, a string or a dict.
            predicted: The predicted document, likewise.
        """
        with muted():  # of one pair, a blank text needs no announcement
            matches = self.match(QuerySet.from_lists([[actual]], [[predicted]]))
        return float(matches.similarity.max(initial=0.0))

    def match(self, queries: QuerySet) -> Matches:
        """Let every part score all pairs; join what they found."""
        # All parts must speak of the same alternative of an AnyOf, not each of the one it likes.
        alone = _alternatives_as_items(queries)
        found = [_completed(part.match(alone)) for part in self.parts]
        scaled = [
            _on_common_scale(matches.similarity, float(part.threshold))
            for part, matches in zip(self.parts, found, strict=True)
        ]
        n_ranks = max(int(queries.n_predicted.max(initial=0)), 1)
        pair, similarity = self._join([m.item * n_ranks + m.rank - 1 for m in found], scaled)
        item_of = np.repeat(np.arange(len(queries.n_alternatives)), queries.n_alternatives)
        pair, similarity, _ = _grouped(
            item_of[pair // n_ranks] * n_ranks + pair % n_ranks, similarity, np.maximum
        )
        kept = similarity > 0.0
        return Matches(
            pair[kept] // n_ranks,
            pair[kept] % n_ranks + 1,
            similarity[kept],
            _same_as([matches.same_as for matches in found], queries),
        )

    @abstractmethod
    def _join(
        self, pairs: Sequence[IntArray], similarities: Sequence[FloatArray]
    ) -> tuple[IntArray, FloatArray]:
        """Return the pairs of the whole from those of the parts, sorted, each once."""


class AndMatcher(_CombinedMatcher):
    """``a & b``: a pair matches when it matches under every part, each by its own threshold.

    Thresholds belong to the parts, so an evaluator takes none for the combination. To show how far
    a pair is from a match, each part's similarity is put on a common scale, on which 0.5 is
    exactly its threshold, 0 is 0 and 1 is 1; the similarity is the least of them.

    With ``AnyOf`` all parts must agree on the same alternative. Two ground-truth documents of a
    query are one item only if they are to every part.

    Raises:
        TypeError: If a part is not an instance of a matcher.
        ValueError: If there are fewer than two parts.

    >>> from krag_eval.matching.exact import ContainsMatcher, IdMatcher
    >>> both = AndMatcher(IdMatcher(), ContainsMatcher())
    >>> both.signature
    '(id&contains)'
    >>> truth = {"page_content": "5 euros", "id": "7"}
    >>> both.similarity(truth, {"page_content": "The fee is 5 euros.", "id": "7"})
    1.0
    >>> both.similarity(truth, {"page_content": "The fee is 6 euros.", "id": "7"})
    0.0
    """

    _sign: ClassVar[str] = "&"

    def _join(
        self, pairs: Sequence[IntArray], similarities: Sequence[FloatArray]
    ) -> tuple[IntArray, FloatArray]:
        pair, least, n_parts = _grouped(
            np.concatenate(pairs), np.concatenate(similarities), np.minimum
        )
        everywhere = n_parts == len(self.parts)
        return pair[everywhere], least[everywhere]


class OrMatcher(_CombinedMatcher):
    """``a | b``: a pair matches when it matches under any part, each by its own threshold.

    Thresholds belong to the parts, so an evaluator takes none for the combination. To show how far
    a pair is from a match, each part's similarity is put on a common scale, on which 0.5 is
    exactly its threshold, 0 is 0 and 1 is 1; the similarity is the greatest of them.

    Two ground-truth documents of a query are one item only if they are to every part.

    Raises:
        TypeError: If a part is not an instance of a matcher.
        ValueError: If there are fewer than two parts.

    >>> from krag_eval.matching.exact import ContainsMatcher, IdMatcher
    >>> either = OrMatcher(IdMatcher(), ContainsMatcher())
    >>> either.similarity(
    ...     {"page_content": "5 euros", "id": "7"},
    ...     {"page_content": "The fee is 6 euros.", "id": "7"})
    1.0
    """

    _sign: ClassVar[str] = "|"

    def _join(
        self, pairs: Sequence[IntArray], similarities: Sequence[FloatArray]
    ) -> tuple[IntArray, FloatArray]:
        return _grouped(np.concatenate(pairs), np.concatenate(similarities), np.maximum)[:2]


def _read_by_all(readings: Sequence[Reading], document: DocumentLike) -> list[Any]:
    return [reading(document) for reading in readings]


def _on_common_scale(similarity: FloatArray, threshold: float) -> FloatArray:
    """Stretch similarities so that 0.5 is the threshold; decisions stay what they were."""
    matched = similarity >= threshold
    scaled = np.empty(len(similarity))
    # The quotient of a number and a larger one is never rounded up to 1.
    scaled[~matched] = _AT_THRESHOLD * (similarity[~matched] / threshold)
    # At threshold 1 nothing is left to stretch: what matches is 1.
    above = (similarity[matched] - threshold) / (1.0 - threshold) if threshold < 1.0 else 1.0
    scaled[matched] = _AT_THRESHOLD + _AT_THRESHOLD * above
    return scaled


def _grouped(
    pair: IntArray, similarity: FloatArray, choose: np.ufunc
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return each pair once, sorted, with the chosen of its similarities and their number."""
    if not len(pair):
        return pair, similarity, np.zeros(0, np.int64)
    order = np.argsort(pair, kind="stable")
    pair, similarity = pair[order], similarity[order]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    chosen: FloatArray = choose.reduceat(similarity, starts)
    return pair[starts], chosen, np.diff(starts, append=len(pair))


def _alternatives_as_items(queries: QuerySet) -> QuerySet:
    if not queries.has_alternatives:
        return queries
    actual: list[Any] = [list(chain.from_iterable(items)) for items in queries.alternatives()]
    return QuerySet.from_lists(actual, queries.predicted, queries.labels)


def _completed(matches: Matches) -> Matches:
    """Give repeated items the pairs of the item they repeat.

    To a part they are one item, and it may have left out the pairs of all but the first; to
    another part they may be two.
    """
    first = np.searchsorted(matches.item, matches.same_as, side="left")
    n_pairs = np.searchsorted(matches.item, matches.same_as, side="right") - first
    item = np.repeat(np.arange(len(n_pairs)), n_pairs)
    source = np.arange(len(item)) + np.repeat(first - (np.cumsum(n_pairs) - n_pairs), n_pairs)
    return Matches(item, matches.rank[source], matches.similarity[source], matches.same_as)


def _same_as(parts: Sequence[IntArray], queries: QuerySet) -> IntArray:
    """Return the first item of the query that every part takes for the same as each item.

    Args:
        parts: Per part, the first of the alternatives that says the same as each alternative;
            alternatives are numbered through all queries.
        queries: The items whose alternatives they are.
    """
    sizes = queries.n_alternatives
    same_as = np.arange(len(sizes))
    if any((part == np.arange(len(part))).all() for part in parts):
        return same_as  # to this part all are different, so they are to the whole
    meanings = list(zip(*(part.tolist() for part in parts), strict=True))
    known: dict[frozenset[tuple[int, ...]], int] = {}
    ends = np.cumsum(sizes)
    for item, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True)):
        # Alternatives of different queries are never the same to a part.
        same_as[item] = known.setdefault(frozenset(meanings[end - size : end]), item)
    return same_as
