"""The list of queries of a page: what became of each, in words and marked stretches of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from krag_eval._language import _, ngettext
from krag_eval._text import Excerpt, fitted, visible, whole_percent, width_of
from krag_eval.plotting.styling import cause_name, metric_label
from krag_eval.presenting.explanation import highlighted, near_in_words, untold_ranks
from krag_eval.report.rendering import number, words_of
from krag_eval.results.diagnosis import CLASSES, classes_of_queries
from krag_eval.results.result import STATUSES, EvaluationResult
from krag_eval.scoring.cutoffs import Cutoff

if TYPE_CHECKING:
    from krag_eval.documents import Tag
    from krag_eval.results.diagnosis import Diagnosis
    from krag_eval.results.evidence import About, GroundTruthItem, PredictedDocument
    from krag_eval.results.explanation import Explanation

#: Bytes that the list may take: with pictures and tables, a page stays under 6 MB.
BUDGET = 5_400_000
#: So many of the worst queries have texts as long as a reader may want.
WORST = 50
# Bytes of markup: of a query whatever it holds, of each row of it with one text, of each part.
_PER_QUERY, _PER_ROW, _PER_PART = 660, 56, 120
# What is shared out of it beforehand; the next query may take more than its share.
_PLANNED = 0.97
#: Documents and items of a query that an explanation shows at most.
ROWS_AT_MOST = 50
# A filter of more values is no help: the search finds them. More tags would bury the question.
_MOST_VALUES, _MOST_TAGS = 100, 8
# Columns of a tag, and of what a document is known by.
_TAG_WIDTH, _ABOUT_WIDTH = 40, 80


class Room(NamedTuple):
    """How many columns there are: for the query, a text that matches, one that does not.

    And how many documents that match nothing are shown.
    """

    query: int
    match: int
    rest: int
    n_rest: int


_WIDE, _LEAST = Room(300, 600, 300, ROWS_AT_MOST), Room(160, 100, 40, 3)


class Facet(NamedTuple):
    """Something to filter by: its name, its values with their number of queries, each query's."""

    name: str
    values: list[tuple[str, int]]
    numbers: list[int]


class ListedQuery(NamedTuple):
    """A line of the list, and what it opens to; ``told`` is ``None`` without evidence.

    ``facets`` numbers the query's value of each facet; ``cells`` are the exact value, for sorting,
    and the shown one.
    """

    name: str
    status: str
    facets: str
    cells: list[tuple[str, str]]
    tags: list[tuple[str, str]]
    metrics: str
    told: ToldQuery | None


def query_list(
    result: EvaluationResult,
    k: Cutoff,
    n_queries: int | None,
    diagnosis: Diagnosis | None = None,
    metadata: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Gather what the template shows of the queries, those that lost most first.

    Args:
        result: The result.
        k: The cutoff of the page.
        n_queries: At most so many; ``None`` for as many as the page has room for.
        diagnosis: Tells the class of each query, where there is one.
        metadata: What to tell of the documents' metadata.
    """
    if n_queries == 0:
        return {"show_queries": False}
    order, n_lost = _hardest_first(result, k)
    tags = dict(list(result.tags.items())[:_MOST_TAGS])
    columns = _columns(result, k)
    queries = list(_listed(result, k, order[:n_queries], columns, tags, metadata))
    shown = order[: len(queries)]
    facets = [
        facet
        for facet in _facets(result, k, shown, diagnosis)
        if 1 < len(facet.values) <= _MOST_VALUES
    ]
    for row, query in enumerate(queries):
        numbers = " ".join(str(facet.numbers[row]) for facet in facets)
        queries[row] = query._replace(facets=numbers)
    return {
        "show_queries": True,
        "queries": queries,
        "query_notes": list(_notes(result, k, len(shown), n_lost)),
        "facets": facets,
        "query_columns": [_column_name(name, result) for name in columns],
    }


def _hardest_first(result: EvaluationResult, k: Cutoff) -> tuple[list[int], int]:
    """Return the positions of all queries, and how many lost something: they come first.

    Those are in the order of ``result.misses``, for which labels need not be unique; then come the
    others, by nDCG, and at the end those that do not count.
    """
    table, statuses = result.tables[k], result.statuses(k).to_numpy()
    wanted, covered = table["ground_truth"], table["covered"]
    share = covered / np.maximum(wanted, 1)
    kept = ~(result.counted & (statuses != STATUSES[0]))
    order = np.lexsort((covered - wanted, table.get("ndcg", share), share, kept, ~result.counted))
    return order.tolist(), int((~kept).sum())


def _notes(result: EvaluationResult, k: Cutoff, n_shown: int, n_lost: int) -> Iterator[str]:
    told = (
        _(
            "Those that lost most at {cutoff} come first. Text that a passage shares with its "
            "counterpart is highlighted to help reading; no number depends on it."
        )
        if n_lost
        else _("At {cutoff}, every query got all of its ground truth.")
    )
    yield told.format(cutoff=words_of(k))
    if n_shown < result.n_queries:
        yield _(
            "{shown} of {total} queries are shown, those that lost most. To see any other: "
            "result.explain(…), or krag-eval explain in the shell."
        ).format(shown=n_shown, total=result.n_queries)
    if result.evidence is None:
        yield _("This result holds no evidence, so queries cannot be explained.")
    else:
        yield _(
            "Texts are cut to what matters, shorter where there are many queries; "
            "result.explain(…) and krag-eval explain show what was cut."
        )
    if len(result.tags) > _MOST_TAGS:
        told = _("The first {shown} of {total} tags are shown.")
        yield told.format(shown=_MOST_TAGS, total=len(result.tags))


def _columns(result: EvaluationResult, k: Cutoff) -> list[str]:
    """Return what the lines of the list show: recall, nDCG and first rank, or what there is."""
    shown = [str(name) for name in result.per_query(k) if name in result.keys]
    columns: list[str] = [name for name in ("recall", "ndcg") if name in shown] or shown[:2]
    return [*columns, "rank"] if "rank" in result.tables[k] else columns


def _column_name(name: str, result: EvaluationResult) -> str:
    """Return the label of a column; one without a label has that of its average."""
    if name == "rank":
        return _("First rank")
    label = metric_label(name, result)
    return metric_label(result.keys[name], result) if label == name else label


def _listed(
    result: EvaluationResult,
    k: Cutoff,
    places: Sequence[int],
    columns: Sequence[str],
    tags: Mapping[str, Sequence[Tag]],
    metadata: Sequence[str] | None,
) -> Iterator[ListedQuery]:
    """Yield the queries one after the other, as long as there is room on the page."""
    values = {name: result.tables[k][name] for name in columns}
    statuses = result.statuses(k).to_numpy()
    others = [name for name in result.shown_columns if name not in (*columns, "rank")]
    names = {name: _column_name(name, result) for name in others}
    used, rooms = 0, _Rooms(result, places)
    for place in places:
        told, metrics = None, ""
        if result.evidence is not None:
            explanation = result.explain(k=k, position=place, metadata=metadata)
            told = told_query(explanation, rooms.next())
            metrics = _metrics({names[n]: v for n, v in explanation.metrics.items() if n in names})
        query = ListedQuery(
            name=fitted(str(result.labels[place]), rooms.room.query),
            status=statuses[place],
            facets="",
            cells=[
                _cell(name, float(column[place]) if result.counted[place] else math.nan)
                for name, column in values.items()
            ],
            tags=[(fitted(name, _TAG_WIDTH), _tag(of_query[place]))
                  for name, of_query in tags.items() if of_query[place] is not None],
            metrics=metrics,
            told=told,
        )  # fmt: skip
        size = _size(query)
        used += size
        if used > BUDGET:
            return
        rooms.take(query, size)
        yield query


class _Rooms:
    """How much room each query gets: the worst as much as helps, the others a share of the rest.

    What is left is shared out anew for each query, so that the last ones fit too.
    """

    def __init__(self, result: EvaluationResult, places: Sequence[int]) -> None:
        self.room = _WIDE
        self._n_told, self._n_queries = 0, len(places)
        self._n_rows = _n_rows(result, places)
        self._used, self._of_texts, self._columns = 0, 1, 1

    def next(self) -> Room:
        """Return the room of the next query, never more than that of one that lost more."""
        if self._n_told >= WORST or self._used > BUDGET / 4:
            self.room = Room(*map(min, self.room, self._share()))
        return self.room

    def take(self, query: ListedQuery, size: int) -> None:
        """Take note of what a query took."""
        self._n_told += 1
        self._used += size
        if query.told is None:
            return
        self._n_rows -= len(query.told.ground_truth) + len(query.told.predicted)
        parts = [part for text in query.told.texts for part, marked in text]
        self._of_texts += sum(map(_bytes, parts))
        self._columns += sum(map(width_of, parts))

    def _share(self) -> Room:
        beside_texts = (self._used - self._of_texts) / self._n_told
        left = BUDGET - self._used - (self._n_queries - self._n_told) * beside_texts
        columns = _PLANNED * left / max(self._n_rows, 1) * self._columns / self._of_texts
        # About a fourth of the rows match: 1/4 of 2.2 and 3/4 of 0.6 are one share.
        match, rest = int(2.2 * columns), int(0.6 * columns)
        # A little too wide is made up for by those that follow.
        n_rest = _LEAST.n_rest if rest < 0.75 * _LEAST.rest else _WIDE.n_rest
        return Room(_LEAST.query, max(match, _LEAST.match), max(rest, _LEAST.rest), n_rest)


def _n_rows(result: EvaluationResult, places: Sequence[int]) -> int:
    """Return how many documents and items the queries have to show."""
    if result.evidence is None:
        return 0
    found = result.evidence.relevance
    items = np.bincount(found.item_query, minlength=result.n_queries)
    shown = [np.minimum(n[places], ROWS_AT_MOST).sum() for n in (found.n_retrieved, items)]
    return int(sum(shown))


def _size(query: ListedQuery) -> int:
    """Return the bytes a query takes in the page, or a few more."""
    size = _PER_QUERY + _bytes(query.name) + _bytes(query.metrics)
    size += sum(40 + _bytes(name) + _bytes(value) for name, value in query.tags)
    if query.told is None:
        return size
    for row in (*query.told.ground_truth, *query.told.predicted):
        size += _PER_ROW + _bytes(row.said) + 30 * len(row.texts[1:])
        parts = [part for text in row.texts for part in text]
        size += sum(_bytes(part) + 13 * marked for part, marked in parts)
        size += sum(40 + sum(12 + _bytes(name) + _bytes(value) for name, value in about)
                    for about in row.about)  # fmt: skip
    return size + sum(_PER_PART + _bytes(part.folded) for part in query.told.parts)


def _bytes(text: str) -> int:
    from markupsafe import escape

    return len(escape(visible(text)).encode("utf-8"))


def _facets(
    result: EvaluationResult,
    k: Cutoff,
    places: Sequence[int],
    diagnosis: Diagnosis | None,
) -> Iterator[Facet]:
    """Yield what the queries can be filtered by: outcome, diagnosis, tags."""
    statuses = result.statuses(k).to_numpy()
    yield _facet(_("Outcome"), [statuses[place] for place in places], STATUSES, _)
    if diagnosis is not None:
        causes = classes_of_queries(diagnosis)
        found = [causes.get(place) for place in places]
        yield _facet(
            _("Diagnosis"),
            found,
            (*CLASSES, None),
            lambda one: cause_name(one) if one else "–",
        )
    for name, values in list(result.tags.items())[:_MOST_TAGS]:
        # As they are shown: 1 is not True, though Python calls them equal.
        of_queries = [None if values[at] is None else _tag(values[at]) for at in places]
        known = [_tag(one) for one in sorted((values[at] for at in places), key=_order)]
        yield _facet(
            fitted(name, _TAG_WIDTH), of_queries, (*dict.fromkeys(known), None),
            lambda one: one or _("(none)"),
        )  # fmt: skip


def _facet(name: str, of_queries: Sequence[Any], known: Sequence[Any], shown: Any) -> Facet:
    counts = Counter(of_queries)
    present = [value for value in known if counts[value]]
    numbers = {value: number for number, value in enumerate(present)}
    return Facet(
        name,
        [(shown(value), counts[value]) for value in present],
        [numbers[value] for value in of_queries],
    )


def _order(tag: Tag) -> tuple[bool, float, str]:
    """Sort numbers before texts, each among themselves."""
    return (True, 0.0, tag) if isinstance(tag, str) else (False, float(tag or 0), str(tag))


def _tag(value: Tag) -> str:
    return _("(none)") if value is None else fitted(str(value), _TAG_WIDTH)


def _cell(column: str, value: float) -> tuple[str, str]:
    """Return the value as it is, for sorting, and as it is shown."""
    if math.isnan(value):
        return "", "–"
    return repr(value), f"{value:g}" if column == "rank" else number(value)


class ToldRow(NamedTuple):
    """A document or an item: its number, what is said of it, its texts in marked stretches.

    ``about`` says, of each text, what its document is known by; ``is_folded`` is true
    of a document beyond the cutoff that no outcome rests on.
    """

    number: int
    said: str
    tone: str
    texts: list[list[tuple[str, bool]]]
    about: Sequence[About] = ()
    is_folded: bool = False


class ToldPart(NamedTuple):
    """Documents that follow one another; ``folded`` is the line they are folded to, if any."""

    rows: list[ToldRow]
    folded: str


class ToldQuery(NamedTuple):
    """What the page shows of one query when it is opened."""

    name: str
    status: str
    ground_truth: list[ToldRow]
    more_items: int
    predicted: list[ToldRow]
    more_documents: int
    parts: list[ToldPart]

    @property
    def texts(self) -> Iterator[list[tuple[str, bool]]]:
        """All that is shown of texts."""
        return (text for row in (*self.ground_truth, *self.predicted) for text in row.texts)


def told_query(explanation: Explanation, room: Room = _WIDE) -> ToldQuery:
    """Put an explanation into words, with texts clipped to the room there is."""
    documents, items = highlighted(explanation)
    untold = untold_ranks(explanation)
    shown_items = [item for item in explanation.items if item.number in items]
    shown_documents = [
        one
        for one in explanation.documents
        if one.rank in documents and (_tells(one) or one.rank <= room.n_rest)
    ]
    predicted = [
        ToldRow(one.rank, _document(one), _document_tone(one),
                _texts(documents[one.rank], one.text,
                       room.match if _tells(one) else room.rest),
                [_about(one.about, room)] if one.about else [],
                one.rank > explanation.n_seen and one.rank in untold and not _tells(one))
        for one in shown_documents
    ]  # fmt: skip
    return ToldQuery(
        name=fitted(str(explanation.query), room.query),
        status=explanation.status,
        ground_truth=[
            ToldRow(item.number,
                    _item(item, explanation.threshold, by_runs=explanation.by_runs),
                    _item_tone(item),
                    _texts(items[item.number], item.alternatives, room.match),
                    [_about(one, room) for one in item.about])
            for item in shown_items
        ],
        more_items=len(explanation.items) - len(shown_items),
        predicted=predicted,
        more_documents=len(explanation.documents) - len(shown_documents),
        parts=list(_parts(predicted)),
    )  # fmt: skip


def _parts(rows: Sequence[ToldRow]) -> Iterator[ToldPart]:
    """Divide the documents into parts that are shown and parts that are folded, in their order."""
    # Ranks that are folded together follow one another: none between them is left out.
    together = groupby(
        enumerate(rows), lambda numbered: numbered[1].is_folded and numbered[1].number - numbered[0]
    )
    for is_folded, numbered in together:
        part = [row for place, row in numbered]
        first, last = part[0].number, part[-1].number
        told = (
            _("rank {}: beyond the cutoff, not relevant")
            if first == last
            else _("ranks {} to {}: beyond the cutoff, not relevant")
        )
        yield ToldPart(part, told.format(first, last) if is_folded else "")


def _about(about: About, room: Room) -> About:
    width = min(_ABOUT_WIDTH, room.rest)
    return tuple((fitted(name, _TAG_WIDTH), fitted(value, width)) for name, value in about)


def _tells(document: PredictedDocument) -> bool:
    """Return whether a document has to do with an item."""
    return bool(document.matches or document.piece_of or document.closest is not None)


def _metrics(metrics: Mapping[str, float]) -> str:
    return " · ".join(
        f"{name} {number(value)}" for name, value in metrics.items() if not math.isnan(value)
    )


def _texts(excerpts: Sequence[Excerpt], known: Any, width: int) -> list[list[tuple[str, bool]]]:
    if known is None:
        return [[(_("(text not kept)"), False)]]
    return [excerpt.clipped(width) for excerpt in excerpts]


def _item(item: GroundTruthItem, threshold: float | None, *, by_runs: bool) -> str:
    parts = [_outcome(item, threshold, by_runs=by_runs)]
    if item.place != item.first_rank and item.place is not None:
        parts.append(_("counted at place {}").format(item.place))
    if item.similarity and threshold is not None and not item.pieces:
        parts.append(_("similarity {}").format(_short(item.similarity)))
    if item.grade != 1:
        parts.append(_("grade {}").format(f"{item.grade:g}"))
    if item.n_alternatives > 1:
        parts.append(_("any of {}").format(item.n_alternatives))
    return " · ".join(parts)


def _outcome(item: GroundTruthItem, threshold: float | None, *, by_runs: bool) -> str:
    """Say whether an item was found, and how nearly if it was not."""
    pieces, shortfall = _together(item), _short(item.shortfall)
    if item.outcome == "nothing in common":
        if item.near is not None:
            return _("missed: {}").format(near_in_words(item.near))
        if by_runs:
            return _("missed: what came back shares no run of words long enough to count")
        return _("missed: nothing in common with what came back")
    if item.outcome == "found":
        return _("found at rank {}").format(item.first_rank)
    if item.outcome == "found in pieces":
        return _("found in pieces: {}").format(pieces)
    if item.outcome == "beyond cutoff":
        told = (
            _("missed: {pieces}, but rank {rank} is beyond the cutoff")
            if item.pieces
            else _("missed: found at rank {rank}, beyond the cutoff")
        )
        return told.format(pieces=pieces, rank=item.first_rank)
    if item.pieces:
        told = _("missed: {pieces}, {shortfall} below the threshold")
    elif threshold is None:
        told = _("missed: nearest at rank {rank}")
    else:
        told = _("missed: nearest at rank {rank}, {shortfall} below the threshold")
    return told.format(pieces=pieces, rank=item.nearest_rank, shortfall=shortfall)


def _together(item: GroundTruthItem) -> str:
    if not item.pieces:
        return ""
    *others, last = map(str, item.pieces)
    return _("ranks {others} and {last} together hold {share} %").format(
        others=", ".join(others), last=last, share=whole_percent(item.similarity)
    )


def _document(document: PredictedDocument) -> str:
    again = [number for number in document.matches if number not in document.first_for]
    of_pieces = [number for number in document.piece_of if number not in document.first_for]
    parts = list(_covered(document)) if document.credit in ("first", "beyond cutoff") else []
    if document.credit == "piece":
        parts.append(_("piece of {}").format(_numbered(document.piece_of)))
    if document.credit == "not relevant":
        parts.append(_("not relevant"))
    if document.credit == "first" and of_pieces:
        parts.append(_("piece of {}").format(_numbered(of_pieces)))
    if document.credit in ("first", "repeat", "piece") and again:
        parts.append(_("repeat of {}").format(_numbered(again)))
    if document.similarity:
        parts.append(_("similarity {}").format(_short(document.similarity)))
    if not document.matches and document.credit != "piece" and document.closest is not None:
        parts.append(_("closest to {}").format(_numbered([document.closest])))
    return " · ".join(parts)


def _covered(document: PredictedDocument) -> Iterator[str]:
    """Say which items a document covers: with others before it, and alone."""
    completed = [number for number in document.first_for if number in document.piece_of]
    if document.credit == "first":
        matched, complete, alone = document.first_for, _("completes {}"), _("first to cover {}")
    else:
        matched, complete = document.matches, _("completes {}, beyond the cutoff")
        alone = _("matches {}, beyond the cutoff")
    others = [number for number in matched if number not in completed]
    if completed:
        yield complete.format(_numbered(completed))
    if others or not completed:
        yield alone.format(_numbered(others))


def _numbered(numbers: Iterable[int]) -> str:
    listed = list(numbers)
    shown = ", ".join(map(str, listed[:8])) + ("…" if len(listed) > 8 else "")
    return ngettext("item {}", "items {}", len(listed)).format(shown)


def _short(value: float) -> str:
    """Round, but not to nothing: a near miss is a miss.

    >>> _short(0.19), _short(0.00001)
    ('0.19', '1e-05')
    """
    return f"{value:.2f}" if value >= 0.005 or not value else f"{value:.0e}"


def _item_tone(item: GroundTruthItem) -> str:
    return "good" if item.outcome.startswith("found") else "bad"


def _document_tone(document: PredictedDocument) -> str:
    return {"first": "good", "piece": "good", "repeat": "plain"}.get(document.credit, "faint")
