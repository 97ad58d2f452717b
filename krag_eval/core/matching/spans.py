"""How much of a span of a source a retrieved chunk holds, by its place in that source.

No text is compared: ground truth and chunks say where they stand, in characters or in lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, groupby
from operator import itemgetter
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from krag_eval.core import documents
from krag_eval.core.documents import DocumentLike, QuerySet, Reading
from krag_eval.core.errors import Advice, Fix, InvalidInput, Refusal, boolean, must, number, whole
from krag_eval.core.language import N_, _
from krag_eval.core.matching.base import Matcher, of_pair
from krag_eval.core.matching.exact import hashable, is_nothing, metadata_value, refused
from krag_eval.core.matching.joins import IntArray, Matches, Pairs, Units, ranges
from krag_eval.core.matching.pieces import OnceEach, SharedRuns, Spans

# What splitters call the first character of a chunk: LangChain's, Haystack's.
_FIRST = ("start_index", "split_idx_start")
# All that may say where a span begins and ends.
_BOUNDS = ("start", "end", "lines", *_FIRST)
# A place beyond all others; sums of a million of them are whole numbers still.
_MOST = 1 << 40
_NEEDED = (
    'give it "source" with "start" and "end" or with "lines", or split with '
    "add_start_index=True, so that LangChain's splitters write where a chunk begins"
)
_NOT_FOUND = (
    "LangChain's splitters write -1 where they do not find a chunk in its source; make the chunk "
    "again from the text as it is, or give it start and end"
)


class Span(NamedTuple):
    """A stretch of a source.

    Attributes:
        source: What names the source: a value for each key.
        unit: What is counted, ``"characters"`` or ``"lines"``.
        start: The first one, from 0.
        stop: The one after the last.
    """

    source: tuple[Hashable, ...]
    unit: str
    start: int
    stop: int


class SpanMatcher(Matcher):
    """A document matches when it holds most of the span of a source that the ground truth names.

    The similarity is the share of the ground truth's span that the document's span holds, in
    [0, 1], higher is better; 0 if they are of different sources. No text is read: where chunks are
    cut from the very files that the ground truth was annotated in, nothing is left to guess.

    A span is a dict of its own, ``{"source": "a.md", "start": 120, "end": 310}`` (characters from
    0, without the one at ``end``) or ``{"source": "a.md", "lines": [10, 24]}`` (from 1, both
    included), or the same keys in the metadata of a document with a text. A chunk of a splitter
    begins at its ``"start_index"`` (LangChain, with ``add_start_index=True``) or
    ``"split_idx_start"`` (Haystack) and is as long as its text. Both sides count in the same text
    of the source, and in the same unit. A document without a span is an error on either side: it
    could only be counted as wrong by accident.

    Token metrics count characters, or lines; what two chunks both hold counts once.

    Args:
        threshold: Share from which a pair is a match.
        source_key: The metadata key that names the source, with dots for metadata within metadata;
            several are joined by ``+``: ``"source+page"`` where each page is a text of its own, as
            most readers of PDF files make them.
        union: If true, an item also counts where the documents complete it together: it is found
            at the first rank up to which they hold, all together, a share of at least
            ``threshold``.

    Raises:
        InvalidInput: If the threshold is outside [0, 1], or there is no key; when matching, if a
            document has no span or two that differ, if its bounds are no places in a text, if the
            ground truth's is empty, or if some are of characters and others of lines.
        InvalidType: If one of them is of another type.

    Of these 200 characters the chunk holds the first 150:

    >>> matcher = SpanMatcher()
    >>> truth = {"source": "guide.md", "start": 100, "end": 300}
    >>> matcher.similarity(truth, {"source": "guide.md", "start": 0, "end": 250})
    0.75
    >>> matcher.similarity(truth, {"source": "terms.md", "start": 0, "end": 250})
    0.0
    >>> chunk = {"page_content": "x" * 400, "metadata": {"source": "guide.md", "start_index": 90}}
    >>> matcher.similarity(truth, chunk)
    1.0
    """

    name = "spans"
    counts_words: ClassVar[bool] = True

    def __init__(
        self, threshold: float = 0.8, source_key: str = "source", *, union: bool = False
    ) -> None:
        self.threshold = number("threshold", threshold, 0, 1)
        if not isinstance(source_key, str) or not all(source_key.split("+")):
            raise must("source_key", 'be a metadata key, or several as "source+page"', source_key)
        self.source_key = source_key
        self.union = boolean("union", union)

    _advice = N_(
        "Compare one span of each side: a path or prefix in the source, and places counted in "
        "another version of it, are the usual causes."
    )

    @property
    def too_long_advice(self) -> Fix:
        """What to try when most ground truth is longer than every chunk that was retrieved."""
        if self.union:
            return ""
        together = f"spans(source_key={self.source_key},union=yes)"
        return Advice(_("Let chunks count together with {}"), matcher=together)

    @property
    def _document_reading(self) -> Reading:
        """The span, whatever else a document has."""
        return partial(_read, self.source_key)

    def settings(self) -> dict[str, object]:
        """Return the key of the source, and whether documents count together."""
        return {"source_key": self.source_key} | ({"union": True} if self.union else {})

    def similarity(self, actual: DocumentLike, predicted: DocumentLike) -> float:
        """Return the share of the ground truth's span that the document holds.

        Args:
            actual: The ground-truth document: a dict, or a document with metadata.
            predicted: The predicted document, likewise.
        """
        return of_pair(self, actual, predicted)

    def match(self, queries: QuerySet) -> Matches:
        """Measure what spans of each query have in common; the evaluator calls it once."""
        numbers: dict[Span, int] = {}
        units: dict[str, None] = {}
        found = ([(one,) for one in several] for several in queries.predicted)
        alternatives, predicted = (
            np.fromiter(self._numbered(lists, name, numbers, units), np.int64)
            for name, lists in (("actual_docs", queries.alternatives()), ("predicted_docs", found))
        )
        items = alternatives, queries.n_alternatives, alternatives
        shape = queries.n_items, queries.n_predicted
        blank = np.zeros(len(numbers), np.bool_)
        return self._match(Units([*numbers], blank, *items, predicted, *shape))

    def _numbered(
        self,
        lists: Iterable[Iterable[Sequence[DocumentLike]]],
        name: str,
        numbers: dict[Span, int],
        units: dict[str, None],
    ) -> Iterator[int]:
        """Yield the number of the span of each document.

        Args:
            lists: Per query, the alternatives of each item, or each document by itself.
            name: The argument that they came in.
            numbers: The number of each span; new ones are added.
            units: The units that documents count in, likewise.
        """
        for query, items in enumerate(lists):
            for position, alternatives in enumerate(items):
                where = f"{name}[{query}][{position}]"
                for document in alternatives:
                    span = span_of(document, self.source_key, where)
                    units[span.unit] = None
                    if len(units) > 1:
                        problem = f"is a span of {span.unit}, and all before it, ground truth "
                        problem += f"first, are of {next(iter(units))}"
                        raise refused(where, problem, "count all documents in the same unit")
                    if name == "actual_docs" and span.start == span.stop:
                        raise refused(where, "is an empty span: it ends where it starts")
                    yield numbers.setdefault(span, len(numbers))

    def _pairs(self, units: Units) -> Pairs:
        """Measure all queries together."""
        shared = _shared(units)
        similarity = shared.held / shared.sizes[shared.truths.unit(shared.truth)]
        return shared.pairs(units, similarity)._replace(pieces=shared.pieces(units))


def span_of(document: DocumentLike, source_key: str, where: str) -> Span:
    """Return the span of a document.

    Args:
        document: The document.
        source_key: The key of its source; several are joined by ``+``.
        where: The document's place in the lists.

    Raises:
        InvalidInput: If it has none or two that differ, or the bounds are no places in a text.
        InvalidType: If the bounds are no whole numbers, or the source cannot be compared.
    """
    metadata = documents.metadata_of(document)
    source = []
    for key in source_key.split("+"):
        value = metadata_value(metadata, key, where, "the matcher spans", _NEEDED)
        if isinstance(value, str) and documents.is_blank(value):
            raise refused(where, f"has metadata {key!r} that is blank", _NEEDED)
        source.append(hashable(value, key, where))
    given = {key: documents.plain(metadata[key]) for key in _BOUNDS
             if not is_nothing(metadata.get(key))}  # fmt: skip
    try:
        found = {*_bounds(given, documents.text_of(document))}
    except Refusal as error:
        fix = _NOT_FOUND if error.argument in _FIRST else error.fix
        problem = f": its {error.argument!r} {error.problem}"
        raise refused(where, problem, fix, type(error)) from error
    if len(found) > 1:
        problem = f"has metadata that name different spans: {', '.join(given)}"
        raise refused(where, problem, "leave out all but one of them")
    if not found:
        there = sorted(map(str, metadata)) or "none"
        raise refused(where, f"does not say where it stands; its metadata are {there}", _NEEDED)
    return Span(tuple(source), *found.pop())


def _bounds(given: Mapping[str, Any], text: str) -> Iterator[tuple[str, int, int]]:
    """Yield unit, start and stop of a span, by each thing that says so.

    Args:
        given: The metadata that may.
        text: The document's text.

    >>> list(_bounds({"start": 0, "end": 9, "lines": [10, 24], "start_index": 3}, "word"))
    [('characters', 0, 9), ('lines', 9, 24), ('characters', 3, 7)]
    """
    if "start" in given and "end" in given:
        start = whole("start", given["start"], 0, _MOST)
        yield "characters", start, whole("end", given["end"], start, _MOST)
    if "lines" in given:
        lines = given["lines"]
        if not isinstance(lines, list | tuple) or len(lines) != 2:
            raise must("lines", "be the first and the last line, as [10, 24]", lines)
        line = whole("lines", lines[0], 1, _MOST)
        yield "lines", line - 1, whole("lines", lines[1], line, _MOST)
    for key in _FIRST:
        if key in given:
            start = whole(key, given[key], 0, _MOST)
            if not text:
                raise InvalidInput(key, "says where its text begins, and it has none")
            yield "characters", start, start + len(text)


def _read(source_key: str, document: DocumentLike) -> list[Any]:
    """Return the span of a document in a form that JSON can hold."""
    source, *bounds = span_of(document, source_key, "document")
    return [*map(documents.plain_value, source), *bounds]


def _shared(units: Units) -> SharedRuns:
    """Find out which spans of each query have something in common, and what."""
    spans: Sequence[Span] = units.values
    sources: dict[Hashable, int] = defaultdict(count().__next__)
    source = np.fromiter((sources[one.source] for one in spans), np.int64)
    bounds = np.array([(one.start, one.stop) for one in spans], np.int64).reshape(-1, 2)
    truths = OnceEach.among(units.n_alternatives, units.alternatives, len(spans))
    chunks = OnceEach.among(units.n_predicted, units.predicted, len(spans))
    # Sources of all queries one after the other on one line: only those of one query may meet.
    places, place = np.unique(bounds, return_inverse=True)
    keys = [side.query() * len(sources) + source[side.unit()] for side in (truths, chunks)]
    shift = np.unique(np.concatenate(keys), return_inverse=True)[1] * len(places)
    of_spans = place.reshape(-1, 2)[np.concatenate([truths.unit(), chunks.unit()])]
    ours, theirs = np.split(of_spans + shift.reshape(-1, 1), [len(truths.key)])
    # Of two that have something in common, the document begins inside the truth, or else the truth
    # behind where the document begins, and inside it.
    inside, behind = _begin_in(theirs, ours, "left"), _begin_in(ours, theirs, "right")
    document, truth = (np.concatenate(one) for one in zip(inside, behind[::-1], strict=True))
    (start, stop), own, unit = bounds.T, truths.unit(truth), chunks.unit(document)
    begin, end = np.maximum(start[own], start[unit]), np.minimum(stop[own], stop[unit])
    order = np.lexsort((document, truth))
    order = order[(begin < end)[order]]  # an empty document holds nothing
    truth, document, unit, begin, end = (one[order] for one in (truth, document, unit, begin, end))
    rank = chunks.best_rank(document)
    pair, first, last = _new(truth, rank, begin, end)
    in_chunk = start[unit[pair]]
    bringing = truth[pair], rank[pair], first - in_chunk, last - in_chunk
    begins = np.flatnonzero(np.diff(pair, prepend=-1))
    tokens = np.add.reduceat(last - first, begins) if len(begins) else begins
    added = truth[pair[begins]], rank[pair[begins]], tokens
    held = Spans(truth, document, begin - start[unit], end - start[unit])
    of_pairs = truth, document, end - begin
    return SharedRuns(truths, chunks, stop - start, *of_pairs, added, bringing, held)


def _begin_in(
    inner: IntArray, outer: IntArray, side: Literal["left", "right"]
) -> tuple[IntArray, IntArray]:
    """Return which stretches begin inside which others.

    Args:
        inner: Start and stop of those that begin there; shape (n, 2).
        outer: Likewise, of those that hold the start.
        side: Whether one that begins where the other does counts, ``"left"``, or does not.

    >>> one, other = np.array([[2, 9], [5, 6]]), np.array([[2, 5]])
    >>> _begin_in(one, other, "left"), _begin_in(one, other, "right")
    ((array([0]), array([0])), (array([], dtype=int64), array([], dtype=int64)))
    """
    order = np.argsort(inner[:, 0], kind="stable")
    first = np.searchsorted(inner[order, 0], outer[:, 0], side)
    sizes = np.maximum(np.searchsorted(inner[order, 0], outer[:, 1]) - first, 0)
    return order[ranges(first, sizes)], np.repeat(np.arange(len(outer)), sizes)


def _new(
    truth: IntArray, rank: IntArray, begin: IntArray, end: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the stretches of each truth that no better-ranked document holds.

    Args:
        truth: The truth of each pair, ascending.
        rank: The rank of its document.
        begin: Where what they have in common begins.
        end: Where it ends.

    Returns:
        The pair of each stretch, where it starts, and where it stops; by truth, rank, start.
    """
    order = np.lexsort((rank, truth))
    rows: list[tuple[int, int, int]] = []
    pairs = zip(order.tolist(), *(one[order].tolist() for one in (truth, begin, end)), strict=True)
    for _truth, of_truth in groupby(pairs, key=itemgetter(1)):
        # What is held so far, as stretches that do not touch.
        starts, stops = list[int](), list[int]()
        for pair, _truth, start, stop in of_truth:
            met = slice(bisect_left(stops, start), bisect_right(starts, stop))
            gaps = zip([start, *stops[met]], [*starts[met], stop], strict=True)
            rows += ((pair, first, last) for first, last in gaps if first < last)
            starts[met], stops[met] = [min([start, *starts[met]])], [max([stop, *stops[met]])]
    pair, start, stop = np.array(rows, np.int64).reshape(-1, 3).T
    return pair, start, stop
