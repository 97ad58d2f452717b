"""Evidence: how similar each predicted document is to each ground-truth item, kept for explaining.

Nothing is copied: the arrays are the evaluator's, and texts are read from the user's own documents
when one query is explained. Other thresholds give their averages from it without matching again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from krag_eval.core import documents
from krag_eval.core.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.core.documents import AnyOf, DocumentLike, QuerySet
from krag_eval.core.errors import Advice, InvalidInput, InvalidType, number, text
from krag_eval.core.matching.base import Matcher
from krag_eval.core.matching.contradiction import SaidOtherwise
from krag_eval.core.matching.joins import BoolArray, FloatArray, IntArray
from krag_eval.core.scoring import cutoffs
from krag_eval.core.scoring.cutoffs import Budget, Cutoff, Measure, Unit, spelled
from krag_eval.core.scoring.metrics import (
    Metric,
    averages_of,
    built_in,
    declarations,
    metrics_for,
    resolved_average,
    table_of,
)
from krag_eval.core.scoring.parts import Summary, no_texts
from krag_eval.core.scoring.relevance import Beside, Relevance, RelevanceTogether
from krag_eval.core.text import fitted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of the queries, read from their documents, one query at a time.

    Attributes:
        given: The documents, or what makes them when they are first asked for.
        are_ids: Whether plain strings are ids, which have no length.
        were_saved: Whether they were read from a file, which keeps of a document its text, its id
            and what is short in its metadata.
    """

    given: QuerySet | Callable[[], QuerySet]
    are_ids: bool = False
    were_saved: bool = False

    @cached_property
    def queries(self) -> QuerySet:
        """The documents."""
        return self.given if isinstance(self.given, QuerySet) else self.given()

    def ground_truth(self, query: int) -> Sequence[Sequence[DocumentLike]]:
        """Return the alternatives of each ground-truth item as documents; one for a plain one."""
        return [
            item.alternatives if isinstance(item, AnyOf) else (item,)
            for item in self.queries.actual[query]
        ]

    def documents(self, query: int) -> Sequence[DocumentLike]:
        """Return the predicted documents, best first."""
        listed: list[DocumentLike] = self.queries.predicted[query]
        return listed

    def all_predicted(self) -> list[str]:
        """Return the text of every predicted document, by query, then rank."""
        return self.queries.predicted_texts(
            documents.read_id if self.are_ids else documents.read_text
        )

    def actual(self, query: int) -> list[tuple[str, ...]]:
        """Return the alternatives of each ground-truth item as listed; one for a plain one."""
        return [tuple(map(documents.text_of, item)) for item in self.ground_truth(query)]

    def predicted(self, query: int) -> list[str]:
        """Return the predicted texts, best first."""
        return list(map(documents.text_of, self.documents(query)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a result can be explained from; made by the evaluator.

    Attributes:
        relevance: Every pair with a similarity above 0, and what follows from the threshold.
        takes_threshold: Whether another threshold would make sense to the matcher.
        texts: Where the texts are, ``None`` if they were not kept.
        matcher: What compared them; ``None`` in a result that was read from a file, copied or
            pickled, for a matcher may hold what no file and no process can be given.
    """

    relevance: Relevance
    takes_threshold: bool
    texts: Texts | None = None
    matcher: Matcher | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "matcher": None}

    def measured(self, unit: Unit, measure: Measure | None = None) -> Relevance:
        """Return what was found, with the lengths of the documents in a unit.

        They are those that were kept or, where no budget in that unit was evaluated or a function
        is given, measured now.

        Raises:
            InvalidInput: If they were not kept, and there are no texts or nothing to measure by.
        """
        found = self.relevance
        if measure is None and unit in (found.lengths or {}):
            return found
        if self.texts is None:
            raise no_lengths(unit)
        texts = self.texts.all_predicted()
        if texts and all(map(documents.is_blank, texts)):
            raise no_texts()
        lengths = {**(found.lengths or {}), unit: cutoffs.lengths_of(texts, unit, measure)}
        return replace(found, lengths=lengths, _counts={})

    def of_query(self, query: int) -> Relevance:
        """Return what was found for one query, its items numbered from 0."""
        whole = self.relevance
        first, last = np.searchsorted(whole.item_query, [query, query + 1])
        start, stop = np.searchsorted(whole.pair_item, [first, last])
        begin = int(whole.n_retrieved[:query].sum())
        part = slice(begin, begin + int(whole.n_retrieved[query]))
        pieces = whole.pieces
        lengths = whole.lengths or {}
        beside = {
            name: Beside(Evidence(one.found, False).of_query(query), one.listed[query : query + 1])
            for name, one in whole.beside.items()
        }
        return type(whole)(
            n_retrieved=whole.n_retrieved[query : query + 1],
            item_query=np.zeros(last - first, np.int64),
            grade=whole.grade[first:last],
            n_alternatives=whole.n_alternatives[first:last],
            pair_item=whole.pair_item[start:stop] - first,
            pair_rank=whole.pair_rank[start:stop],
            pair_similarity=whole.pair_similarity[start:stop],
            threshold=whole.threshold,
            item_number=None if whole.item_number is None else whole.item_number[first:last],
            pieces=None if pieces is None else pieces.between(int(first), int(last), part),
            lengths={unit: of_unit[part] for unit, of_unit in lengths.items()},
            beside=beside,
        )

    def items(self) -> list[tuple[int, int]]:
        """Return query and number of every item: its place in the list as given, from 1."""
        relevance = self.relevance
        numbers = relevance.item_number
        if numbers is None:
            query = relevance.item_query
            numbers = np.arange(len(query)) - np.searchsorted(query, query) + 1
        return list(zip(relevance.item_query.tolist(), numbers.tolist(), strict=True))


def no_lengths(unit: Unit | None = None) -> InvalidInput:
    """Return the refusal of a budget by a result that cannot measure anything.

    Args:
        unit: What was to be measured, where the result may keep lengths in other units.
    """
    lengths = "the lengths of the retrieved documents"
    if unit is not None:
        lengths += f" in {cutoffs.unit_in_words(unit)}"
    fix = "evaluate with {} of that unit, which keeps them, or save it with its texts"
    problem = f"this result keeps neither {lengths} nor their texts"
    return InvalidInput("", problem, Advice(fix, budget=...))


#: What a predicted document earned: the first to cover an item, a repeat of what had been covered,
#: a piece of an item that several complete, nothing because it matches nothing, or nothing because
#: it comes after the cutoff.
Credit: TypeAlias = Literal["first", "repeat", "piece", "not relevant", "beyond cutoff"]
#: What an item came to.
Outcome: TypeAlias = Literal[
    "found", "found in pieces", "beyond cutoff", "missed", "nothing in common"
]
#: What is told of a document beside its text: names and values.
About: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PredictedDocument:
    """One predicted document and what became of it.

    Attributes:
        rank: Its rank, from 1.
        credit: ``"first"``, ``"repeat"``, ``"piece"`` (it holds a part of an item that documents
            complete together), ``"not relevant"`` or ``"beyond cutoff"``.
        matches: Numbers of the items it matches.
        first_for: Those of them that no better-ranked document matches.
        similarity: Its greatest similarity to any item; 0 if it has nothing in common with them.
        closest: Number of the item it is most similar to, ``None`` if there is none.
        text: Its text, ``None`` if texts were not kept.
        piece_of: Numbers of the items that it completes together with other documents.
        about: Its id, where it has one, and what was asked for of its metadata, as names and values
            to show; nothing for a plain text.
        contradicts: Numbers of the items that it holds much of and says something else than.
        unwanted: Numbers of the unwanted documents that it matches, from 1; ``None`` for a query
            that has no list of them.
    """

    rank: int
    credit: Credit
    matches: tuple[int, ...]
    first_for: tuple[int, ...]
    similarity: float
    closest: int | None
    text: str | None
    piece_of: tuple[int, ...] = ()
    about: About = ()
    contradicts: tuple[int, ...] = ()
    unwanted: tuple[int, ...] | None = None


@dataclass(frozen=True)
class NearMiss:
    """What an item has in common with what came back, though no similarity is above 0.

    Attributes:
        kind: What no document does: ``"run"`` (share a run of words), ``"numbers"`` (share one, and
            have all numbers), ``"text"``, ``"id"``, ``"metadata"`` (have the same), ``"contains"``
            (have it in its text). ``"no words"`` if the item has none, ``"nothing retrieved"`` if
            there are no documents.
        run: Consecutive words that would count; of interchangeable documents, the most.
        unit: What the matcher takes a text apart into.
        tokens: Different words of the item, or of the alternative that shares most with one
            document.
        shared: Those that occur in the document at ``rank``; ``None`` if not known.
        rank: The document that most of them occur in or, where texts are to be equal, the one
            whose text is nearly so; ``None`` if there is none.
        but_for: What alone the two texts differ in: ``"white space"``, ``"case"``,
            ``"punctuation"``, ``"Unicode form"`` (NFKC).
        matchers: Names of matchers that would count that document.
    """

    kind: Literal[
        "run",
        "numbers",
        "no words",
        "text",
        "contains",
        "id",
        "metadata",
        "nothing retrieved",
    ]
    run: int = 0
    unit: Literal["words", "characters", "tokens"] = "words"
    tokens: int = 0
    shared: int | None = None
    rank: int | None = None
    but_for: tuple[str, ...] = ()
    matchers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contradicting:
    """A document that holds much of an item and says something else.

    Attributes:
        rank: Its rank.
        share: How much of the item it holds.
        alternative: The place of the one that it contradicts among the item's alternatives, from 0.
        said: What the two say; ``None`` if texts or matcher are not known.
    """

    rank: int
    share: float
    alternative: int = 0
    said: SaidOtherwise | None = None


@dataclass(frozen=True)
class GroundTruthItem:
    """One ground-truth item and what became of it.

    Attributes:
        number: Its place in the query's list of ground truth as given, from 1. Repeats and items
            of grade 0 are left out, so numbers may have gaps.
        grade: Its relevance.
        outcome: ``"found"``, ``"found in pieces"`` (no document alone reaches the threshold, and
            they do together), ``"beyond cutoff"`` (found, but too late), ``"missed"`` or ``"nothing
            in common"`` with any predicted document.
        first_rank: The best rank that covers it, ``None`` if no document does; of an item found in
            pieces, the rank that completes it.
        place: The place it counts at in nDCG: its first rank, or a later one if it has to queue
            behind other items of the same document. ``None`` if it is not found within the cutoff,
            and under conventions by which documents count at their ranks.
        nearest_rank: Of an item that no document covers, the rank of the most similar one.
        similarity: To the document at that rank, or of all pieces together; 0 if there is none.
        shortfall: How far that similarity is below the threshold; 0 for a covered item.
        n_alternatives: Interchangeable documents, 1 for a plain item.
        alternatives: Their texts, ``None`` if texts were not kept.
        pieces: Where documents count together, the ranks that hold it together, those after which
            it is complete left out; empty where one document is enough, or holds all there is.
        about: Per alternative, its id and what was asked for of its metadata, as names and values
            to show; empty if texts were not kept.
        near: Of an item with nothing in common, what that means; ``None`` where there is no more to
            say.
        contradicted: The documents that say something else, best rank first; their similarity to
            the item is 0.
    """

    number: int
    grade: float
    outcome: Outcome
    first_rank: int | None
    place: int | None
    nearest_rank: int | None
    similarity: float
    shortfall: float
    n_alternatives: int
    alternatives: tuple[str, ...] | None
    pieces: tuple[int, ...] = ()
    about: tuple[About, ...] = ()
    near: NearMiss | None = None
    contradicted: tuple[Contradicting, ...] = ()

    @property
    def rank(self) -> int | None:
        """The rank that covers it or, failing that, comes nearest."""
        return self.nearest_rank if self.first_rank is None else self.first_rank


def outcomes(
    evidence: Evidence,
    position: int,
    k: Cutoff,
    graded_by: Literal["grade", "similarity"] | None = None,
    metadata: Sequence[str] = (),
) -> tuple[tuple[PredictedDocument, ...], tuple[GroundTruthItem, ...]]:
    """Return what became of the predicted documents and of the items of one query at a cutoff.

    Args:
        evidence: What was found.
        position: The query.
        k: The cutoff.
        graded_by: What decides which item of a document takes the first place; ``None`` where
            nDCG counts documents at their ranks, and no item has a place.
        metadata: What to tell of the documents' metadata, by name.
    """
    found, texts = evidence.of_query(position), evidence.texts
    if isinstance(k, Budget):
        k = int(found.prefix(k)[0])
    numbers = _item_numbers(found)
    place = {}
    if graded_by is not None:
        row, at = found.places(found.worth(graded_by), k)
        place = dict(zip(found.covered[row].tolist(), at.tolist(), strict=True))
    predicted = _documents(found, k, numbers)
    items = _items(found, k, numbers, place)
    if texts is None:
        return tuple(predicted), tuple(items)
    listed = texts.ground_truth(position)
    return (
        tuple(
            replace(one, text=documents.text_of(shown), about=_about(shown, metadata))
            for one, shown in zip(predicted, texts.documents(position), strict=True)
        ),
        tuple(
            replace(
                one,
                alternatives=tuple(map(documents.text_of, listed[one.number - 1])),
                about=tuple(_about(shown, metadata) for shown in listed[one.number - 1]),
            )
            for one in items
        ),
    )


def checked_metadata(metadata: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of what to tell of metadata: ``"source"`` if none are given.

    Raises:
        InvalidType: If they are not texts.

    >>> checked_metadata(None), checked_metadata("page"), checked_metadata(["source", "page"])
    (('source',), ('page',), ('source', 'page'))
    """
    if metadata is None:
        return ("source",)
    if not isinstance(metadata, Iterable):
        problem = f"must be names, such as ('source', 'page'), got {type(metadata).__name__}"
        raise InvalidType("metadata", problem)
    names = [metadata] if isinstance(metadata, str) else metadata
    return tuple(dict.fromkeys(text("metadata", one, "a name such as 'source'") for one in names))


def worst_missed(
    evidence: Evidence, queries: IntArray, k: Cutoff
) -> dict[str, list[str | None] | list[float] | list[int | None]]:
    """Return, per query that lost something, what is known of the item that is furthest behind.

    That is, of the items not found within the cutoff, the one least similar to any document.

    Args:
        evidence: What was found.
        queries: The queries; shape (n,).
        k: The cutoff.

    Returns:
        ``"missed"``, the beginning of its text, ``None`` if texts were not kept; ``"similarity"``
        and ``"rank"``, as of a :class:`GroundTruthItem`; ``"contradicted_by"``, the rank of the
        document that contradicts it and holds most of it. Where nothing should be retrieved,
        nothing is known.
    """
    found = evidence.measured(k.unit) if isinstance(k, Budget) else evidence.relevance
    similarity, rank = _best(found)
    first = np.full(len(rank), np.iinfo(np.int64).max)
    first[found.covered] = found.first_rank
    missed = np.flatnonzero(first > found.seen_within(k)[found.item_query])
    missed = missed[np.lexsort((similarity[missed], found.item_query[missed]))]
    _, at = np.unique(found.item_query[missed], return_index=True)
    worst = dict(zip(found.item_query[missed[at]].tolist(), missed[at].tolist(), strict=True))
    numbers = evidence.items()
    items = [worst.get(query) for query in queries.tolist()]
    contradicted, by_rank, share, _ = found.contradictions
    most = np.lexsort((-by_rank, share, contradicted))  # of an item, the greatest share comes last
    by = dict(zip(contradicted[most].tolist(), by_rank[most].tolist(), strict=True))
    return {
        "missed": [None if i is None else _beginning(evidence.texts, *numbers[i]) for i in items],
        "similarity": [math.nan if i is None else float(similarity[i]) for i in items],
        "rank": [None if i is None else int(rank[i]) or None for i in items],
        "contradicted_by": [None if i is None else by.get(i) for i in items],
    }


def _best(found: Relevance) -> tuple[FloatArray, IntArray]:
    """Return of each item its similarity and rank, as a :class:`GroundTruthItem` has them."""
    n_items = len(found.item_query)
    similarity, rank = np.zeros(n_items), np.zeros(n_items, np.int64)
    np.maximum.at(similarity, found.pair_item, found.pair_similarity)
    # Ranks come in order: among equally similar documents, the best-ranked stays.
    nearest = np.flatnonzero(found.pair_similarity == similarity[found.pair_item])
    item, first = np.unique(found.pair_item[nearest], return_index=True)
    rank[item] = found.pair_rank[nearest[first]]
    if isinstance(found, RelevanceTogether):
        every_rank = np.full(n_items, found.n_retrieved.max(initial=0))
        similarity = np.maximum(similarity, found.held_within(every_rank))
    rank[found.covered], similarity[found.covered] = found.first_rank, found.first_similarity
    return similarity, rank


# Columns of a passage in a table, and characters of it that are looked at.
_CELL, _LOOKED_AT = 80, 200


def _beginning(texts: Texts | None, query: int, number: int) -> str | None:
    if texts is None:
        return None
    items = texts.ground_truth(query)[number - 1]
    shown = " | ".join(documents.text_of(one)[:_LOOKED_AT] or _span_shown(one) for one in items)
    return fitted(shown[:_LOOKED_AT], _CELL)


def _span_shown(document: DocumentLike) -> str:
    """Return what stands for the text of a document that has none, empty if nothing does.

    >>> _span_shown({"page_content": "", "metadata": {"source": "a.md", "lines": [10, 24]}})
    'a.md lines [10, 24]'
    """
    span = documents.span_without_text(document)
    return " ".join(
        [str(span.pop("source", "")), *(f"{k} {_as_shown(v)}" for k, v in span.items())]
    )


def _about(document: DocumentLike, metadata: Sequence[str]) -> About:
    """Return the id of a document, what was asked for of its metadata, and what is its text."""
    if isinstance(document, str):
        return ()
    identity, known = documents.id_of(document), documents.metadata_of(document)
    about = [] if identity in (None, documents.text_of(document)) else [("id", str(identity))]
    about += [
        ("metadata:id" if name == "id" else name, _as_shown(known[name]))
        for name in dict.fromkeys([*metadata, *documents.span_without_text(document)])
        if known.get(name) is not None
    ]
    return tuple(about)


def _as_shown(value: object) -> str:
    """Write a value from metadata.

    >>> _as_shown("a.pdf"), _as_shown(3.0), _as_shown(True), _as_shown(["a", 2])
    ('a.pdf', '3', 'True', '["a", 2]')
    """
    if isinstance(value, (Real, Mapping, list, tuple, np.ndarray)) and not isinstance(value, bool):
        return json.dumps(documents.plain_value(value), ensure_ascii=False)
    return str(value)


def _documents(found: Relevance, k: int | None, numbers: Sequence[int]) -> list[PredictedDocument]:
    """Return what became of the documents of a query, without their texts."""
    matches = _by_rank(found.hit_item, found.hit_rank, numbers)
    first_for = _by_rank(found.covered, found.first_rank, numbers)
    piece_of = _piece_of(found, k, numbers)
    contradicts = _by_rank(*found.contradictions[:2], numbers)
    unwanted = _unwanted(found)
    # Of equally similar items, the first is the closest.
    order = np.lexsort((found.pair_item, -found.pair_similarity, found.pair_rank))
    ranks, first = np.unique(found.pair_rank[order], return_index=True)
    closest = dict(zip(ranks.tolist(), order[first].tolist(), strict=True))
    return [
        PredictedDocument(
            rank=rank,
            credit=_credit(rank, k, rank in matches, rank in first_for, rank in piece_of),
            matches=matches.get(rank, ()),
            first_for=first_for.get(rank, ()),
            similarity=float(found.pair_similarity[closest[rank]]) if rank in closest else 0.0,
            closest=numbers[int(found.pair_item[closest[rank]])] if rank in closest else None,
            text=None,
            piece_of=piece_of.get(rank, ()),
            contradicts=contradicts.get(rank, ()),
            unwanted=None if unwanted is None else unwanted.get(rank, ()),
        )
        for rank in range(1, int(found.n_retrieved[0]) + 1)
    ]


def _unwanted(found: Relevance) -> dict[int, tuple[int, ...]] | None:
    """Return, by rank, the unwanted documents that a document matches or is a piece of."""
    if "unwanted" not in found.beside or not found.beside["unwanted"].listed[0]:
        return None
    theirs = found.beside["unwanted"].found
    numbers = _item_numbers(theirs)
    pieces = _piece_of(theirs, None, numbers)
    matches = _by_rank(theirs.hit_item, theirs.hit_rank, numbers)
    return {
        rank: tuple(sorted({*matches.get(rank, ()), *pieces.get(rank, ())}))
        for rank in {**matches, **pieces}
    }


def _item_numbers(found: Relevance) -> list[int]:
    """Return the number of each item of a query: its place in the list as given, from 1."""
    given = found.item_number
    return [*range(1, len(found.grade) + 1)] if given is None else given.tolist()


def _piece_of(
    found: Relevance, k: int | None, numbers: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Return, by rank, the items within the cutoff that a document is a piece of.

    What was found before a document that is enough alone is a piece all the same; that one is not.
    Of an item completed beyond the cutoff, the document that completes it is the only one.
    """
    if not isinstance(found, RelevanceTogether):
        return {}
    pieces, rows = found.pieces_known, found.piece_rows
    alternative, rank, _ = (one[rows] for one in pieces.together)
    item = pieces.alternative_item[alternative]
    complete = found.completed_rank[item]
    in_pieces = np.array([*map(bool, _held_together(found))], np.bool_)
    kept = (rank < complete) | in_pieces[item]
    if k is not None:
        kept &= (complete <= k) | (rank == complete)
    item, rank = np.unique(np.stack([item[kept], rank[kept]]), axis=1)
    return _by_rank(item, rank, numbers)


def _held_together(found: Relevance) -> list[tuple[int, ...]]:
    """Return, per item that no document holds alone, the ranks that hold it together.

    None where documents do not count together, where one document is enough, or where fewer than
    two hold anything.
    """
    if not isinstance(found, RelevanceTogether):
        return [()] * len(found.grade)
    enough = found.pair_similarity >= found.threshold
    enough &= found.pair_rank <= found.completed_rank[found.pair_item]
    alone = {*found.pair_item[enough].tolist()}
    return [
        ranks if len(ranks) > 1 and item not in alone else ()
        for item, (ranks, _) in enumerate(found.held_together())
    ]


def _credit(rank: int, k: int | None, matches: bool, is_first: bool, is_piece: bool) -> Credit:
    if is_piece and not is_first:
        return "piece"
    if not matches:
        return "not relevant"
    if k is not None and rank > k:
        return "beyond cutoff"
    return "first" if is_first else "repeat"


def _by_rank(
    items: IntArray, ranks: IntArray, numbers: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    grouped: dict[int, tuple[int, ...]] = {}
    for item, rank in zip(items.tolist(), ranks.tolist(), strict=True):
        grouped[rank] = (*grouped.get(rank, ()), numbers[item])
    return grouped


def _items(
    found: Relevance, k: int | None, numbers: Sequence[int], places: Mapping[int, int]
) -> Iterator[GroundTruthItem]:
    """Yield what became of the items of a query, without their texts."""
    covered, together = {*found.covered.tolist()}, _held_together(found)
    similarities, ranks = (column.tolist() for column in _best(found))
    contradicted: dict[int, tuple[Contradicting, ...]] = {}
    for item, *one in zip(*(column.tolist() for column in found.contradictions), strict=True):
        contradicted[item] = (*contradicted.get(item, ()), Contradicting(*one))
    for item, own in enumerate(numbers):
        similarity, rank = similarities[item], ranks[item]
        is_covered = item in covered
        outcome: Outcome = "missed" if rank else "nothing in common"
        if is_covered:
            outcome = "found in pieces" if together[item] else "found"
            outcome = "beyond cutoff" if k is not None and rank > k else outcome
        yield GroundTruthItem(
            number=own,
            grade=float(found.grade[item]),
            outcome=outcome,
            first_rank=rank if is_covered else None,
            place=places.get(item),
            nearest_rank=None if is_covered or not rank else rank,
            similarity=similarity,
            shortfall=0.0 if is_covered else found.threshold - similarity,
            n_alternatives=int(found.n_alternatives[item]),
            alternatives=None,
            pieces=together[item],
            contradicted=contradicted.get(item, ()),
        )


#: An average and its cutoff.
AverageAt: TypeAlias = tuple[str, Cutoff]

_STEPS = 20


def averages_at_thresholds(
    evidence: Evidence,
    metrics: str | Iterable[str],
    thresholds: Iterable[float] | None,
    counted: BoolArray,
    settings: Mapping[str, str],
    conventions: Conventions,
) -> pd.DataFrame:
    """Return averages at several thresholds: one row per threshold, one column per average.

    Args:
        evidence: The similarities.
        metrics: One average or several, each with its cutoff: ``"macro_recall@5"``.
        thresholds: Numbers from 0 to 1; steps of 0.05 and the evidence's own if not given.
        counted: Whether a query counts in the averages; shape (queries,).
        settings: Those of the result: when a query is a hit, what becomes of unjudged documents.
        conventions: How the disputed points are settled.

    Raises:
        InvalidType: If a threshold is not a number.
        InvalidInput: If the matcher takes no threshold, a metric is not built in, or a threshold
            is out of range.
    """
    import pandas as pd

    if not evidence.takes_threshold:
        problem = ": the matcher of this result decides without one, so nothing would change"
        fix = Advice("use a similarity matcher: {}", matcher="coverage")
        raise InvalidInput("thresholds", problem, fix)
    several = [metrics] if isinstance(metrics, str) else list(metrics)
    if not several:
        raise InvalidInput("metrics", "must name at least one average, such as 'macro_recall@5'")
    known = metrics_for(MatchingCriteria(settings["criteria"]))
    asked = [_checked_metric(one, known) for one in several]
    wanted = [average for average, _ in asked]
    if thresholds is None:
        thresholds = sorted({*np.arange(_STEPS + 1) / _STEPS, evidence.relevance.threshold})
    given = [thresholds] if isinstance(thresholds, Real) else thresholds
    rows = [number("thresholds", one, 0, 1) for one in given]
    if not rows:
        raise InvalidInput("thresholds", "must hold at least one number from 0 to 1, got none")
    for unit in dict.fromkeys(k.unit for _, k in wanted if isinstance(k, Budget)):
        evidence = replace(evidence, relevance=evidence.measured(unit))
    condensed, values = settings.get("unjudged") == "leave_out", []
    for one in map(evidence.relevance.at_threshold, rows):
        found = one.condensed() if condensed else one
        averages = _averages(found, dict(asked), counted, conventions)
        values.append([averages[average] for average in wanted])
    index = pd.Index(rows, name="threshold", dtype=np.float64)
    return pd.DataFrame(values, index, [f"{key}@{spelled(k)}" for key, k in wanted])


def _averages(
    relevance: Relevance,
    wanted: Mapping[AverageAt, Metric],
    counted: BoolArray,
    conventions: Conventions,
) -> Mapping[AverageAt, float]:
    averages: dict[AverageAt, float] = {}
    for k in dict.fromkeys(k for _, k in wanted):
        metrics = {one.name: one for (_, at), one in wanted.items() if at == k}
        summary = Summary.of(
            {k: table_of(relevance, k, metrics, conventions)},
            counted,
            keys={name: metric.key for name, metric in metrics.items()},
            averaging_method=AveragingMethod.BOTH,
            conventions=conventions,
            declared=declarations(metrics),
        )
        averages |= {(key, k): value for key, value in summary.averages(k).items()}
    return averages


def _checked_metric(name: str, known: Mapping[str, Metric]) -> tuple[AverageAt, Metric]:
    """Return the average that is asked for, its cutoff and its metric, which must be built in."""
    key, k = cutoffs.parse_metric(name, "metrics")
    asked = built_in(key)  # under the parameters it is named with
    metrics = {**known, asked.name: asked} if asked and asked.parameters else known
    metric_of = {key: one.at() for one in metrics.values() for key in averages_of([one.at()])}
    try:
        average = resolved_average("metrics", key, metric_of)
    except InvalidInput as error:
        own = "For a metric of your own, evaluate again at another threshold"
        fix = f"{error.fix} {own}" if error.fix else own
        raise InvalidInput("metrics", error.problem, fix) from None
    return (average, k), metric_of[average]
