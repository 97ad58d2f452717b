"""The list of queries of a page: what became of each, in words and marked stretches of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from krag_eval.core import Cutoff, ResultFacts, _, fitted, visible, width_of
from krag_eval.core.display import explanation as telling
from krag_eval.core.results.facts import STATUSES, hardest_first
from krag_eval.core.text import Excerpt, Fragment
from krag_eval.diagnosis.diagnosis import CLASSES
from krag_eval.plotting.styling import cause_name, column_label
from krag_eval.report.rendering import NAME, environment, words_of

if TYPE_CHECKING:
    from krag_eval.core import Tag
    from krag_eval.core.results.evidence import About, GroundTruthItem, PredictedDocument
    from krag_eval.core.results.explanation import Explanation
    from krag_eval.diagnosis.diagnosis import Diagnosis

#: Bytes that the list may take: with pictures and tables, a page stays under 6 MB.
BUDGET = 5_400_000
#: So many of the worst queries have texts as long as a reader may want.
WORST = 50
# What is shared out of it beforehand; the next query may take more than its share.
_PLANNED = 0.97
#: Documents and items of a query that an explanation shows at most.
ROWS_AT_MOST = 50
# A filter of more values is no help: the search finds them. More tags would bury the question.
_MOST_VALUES, _MOST_TAGS = 100, 8
# Columns of what a document is known by.
_ABOUT_WIDTH = 80


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
    """Something to filter by: its name, the names of its values, and each query's number of one."""

    name: str
    values: list[str]
    numbers: list[int]

    def counted(self, n: int) -> list[tuple[int, str, int]]:
        """Return the values that the first n queries have, with how many of them do."""
        counts = Counter(self.numbers[:n])
        return [(at, name, counts[at]) for at, name in enumerate(self.values) if counts[at]]


def query_list(
    result: ResultFacts,
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
        return {"queries": []}
    order, n_lost = hardest_first(result, k)
    places = order[:n_queries].tolist()
    columns = {name: _column_name(name, result) for name in _columns(result, k)}
    facets = [
        facet
        for facet in _facets(result, k, places, diagnosis)
        if 1 < len(facet.values) <= _MOST_VALUES
    ]
    queries = list(_rendered(result, k, places, columns, facets, metadata))
    return {
        "queries": queries,
        "query_notes": list(_notes(result, k, len(queries), n_lost)),
        "facets": [(facet.name, facet.counted(len(queries))) for facet in facets],
        "query_columns": columns.values(),
    }


def _notes(result: ResultFacts, k: Cutoff, n_shown: int, n_lost: int) -> Iterator[str]:
    told = _("At {cutoff}, every query got all of its ground truth.")
    if n_lost:
        told = _(
            "Those that lost most at {cutoff} come first. Text that a passage shares with its "
            "counterpart is highlighted to help reading; no number depends on it."
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
    if result.evidence is not None and len(result.evidence.relevance.contradictions[0]):
        yield _("Underlined is what a passage and a chunk that contradicts it say instead.")
    if len(result.tags) > _MOST_TAGS:
        told = _("The first {shown} of {total} tags are shown.")
        yield told.format(shown=_MOST_TAGS, total=len(result.tags))


def _columns(result: ResultFacts, k: Cutoff) -> list[str]:
    """Return what the lines of the list show: recall, nDCG and first rank, or what there is."""
    shown = [str(name) for name in result.per_query(k) if name in result.keys]
    columns: list[str] = [name for name in ("recall", "ndcg") if name in shown] or shown[:2]
    return [*columns, "rank"] if "rank" in result.tables[k] else columns


def _column_name(name: str, result: ResultFacts) -> str:
    return _("First rank") if name == "rank" else column_label(name, result)


def _rendered(
    result: ResultFacts,
    k: Cutoff,
    places: Sequence[int],
    columns: Mapping[str, str],
    facets: Sequence[Facet],
    metadata: Sequence[str] | None,
) -> Iterator[str]:
    """Yield the markup of one query after the other, as long as there is room on the page."""
    markup: Callable[..., str] = environment().get_template("query.html").module.query  # type: ignore[attr-defined]
    values = {name: result.tables[k][name] for name in columns}
    statuses = result.statuses(k).to_numpy()
    others = {name: _column_name(name, result) for name in result.shown_columns
              if name not in (*columns, "rank")}  # fmt: skip
    tags = dict(list(result.tags.items())[:_MOST_TAGS])
    rooms = _Rooms(result, places)
    for number, place in enumerate(places):
        told, metrics = None, []
        if result.evidence is not None:
            explanation = result.explain(k=k, position=place, metadata=metadata)
            told = told_query(explanation, rooms.next())
            metrics = [(others[name], value) for name, value in explanation.metrics.items()
                       if name in others and not math.isnan(value)]  # fmt: skip
        source = markup(
            name=fitted(str(result.labels[place]), rooms.room.query),
            status=statuses[place],
            facets=[facet.numbers[number] for facet in facets],
            cells=[
                (column, float(values[name][place]) if result.counted[place] else math.nan,
                 name == "rank")
                for name, column in columns.items()
            ],
            tags=[(name, _tag(of_query[place]))
                  for name, of_query in tags.items() if of_query[place] is not None],
            metrics=metrics,
            told=told,
            is_first=number == 0,
        )  # fmt: skip
        if not rooms.take(told, len(source.encode("utf-8"))):
            return
        yield source


class _Rooms:
    """How much room each query gets: the worst as much as helps, the others a share of the rest.

    What is left is shared out anew for each query, so that the last ones fit too.
    """

    def __init__(self, result: ResultFacts, places: Sequence[int]) -> None:
        self.room = _WIDE
        self._n_told, self._n_queries = 0, len(places)
        self._n_rows = _n_rows(result, places)
        # Bytes in all, columns of texts in all, and bytes that a column takes in some of them.
        self._used, self._columns, self._of_some, self._some = 0, 0, 1, 1

    def next(self) -> Room:
        """Return the room of the next query, never more than that of one that lost more."""
        if self._n_told >= WORST or self._used > BUDGET / 4:
            self.room = Room(*map(min, self.room, self._share()))
        return self.room

    def take(self, told: ToldQuery | None, size: int) -> bool:
        """Take note of what a query took, and tell whether there was room for it."""
        self._n_told += 1
        self._used += size
        if told is not None:
            self._n_rows -= len(told.ground_truth) + len(told.predicted)
            texts = [text for row in (*told.ground_truth, *told.predicted) for text in row.texts]
            self._columns += sum(width_of(part) for text in texts for part, _marked in text)
            if self._n_told <= WORST:
                some = "".join(part for text in texts for part, _marked in text)
                self._of_some += len(_escaped(some).encode("utf-8"))
                self._some += width_of(some)
        return self._used <= BUDGET

    def _share(self) -> Room:
        per_column = self._of_some / self._some
        beside_texts = (self._used - self._columns * per_column) / self._n_told
        left = BUDGET - self._used - (self._n_queries - self._n_told) * beside_texts
        columns = _PLANNED * left / max(self._n_rows, 1) / per_column
        # About a fourth of the rows match: 1/4 of 2.2 and 3/4 of 0.6 are one share.
        match, rest = int(2.2 * columns), int(0.6 * columns)
        # A little too wide is made up for by those that follow.
        n_rest = _LEAST.n_rest if rest < 0.75 * _LEAST.rest else _WIDE.n_rest
        return Room(_LEAST.query, max(match, _LEAST.match), max(rest, _LEAST.rest), n_rest)


def _escaped(text: str) -> str:
    from markupsafe import escape

    return escape(visible(text))


def _n_rows(result: ResultFacts, places: Sequence[int]) -> int:
    """Return how many documents and items the queries have to show."""
    if result.evidence is None:
        return 0
    found = result.evidence.relevance
    items = np.bincount(found.item_query, minlength=result.n_queries)
    shown = [np.minimum(n[places], ROWS_AT_MOST).sum() for n in (found.n_retrieved, items)]
    return int(sum(shown))


def _facets(
    result: ResultFacts,
    k: Cutoff,
    places: Sequence[int],
    diagnosis: Diagnosis | None,
) -> Iterator[Facet]:
    """Yield what the queries can be filtered by: outcome, diagnosis, tags."""
    statuses = result.statuses(k).to_numpy()
    yield _facet(_("Outcome"), [statuses[place] for place in places], STATUSES, _)
    if diagnosis is not None:
        causes = diagnosis.query_classes.to_dict()
        found = [causes.get(place) for place in places]
        yield _facet(_("Diagnosis"), found, CLASSES, cause_name)
    for name, values in list(result.tags.items())[:_MOST_TAGS]:
        # As they are shown: 1 is not True, though Python calls them equal.
        of_queries = [None if values[at] is None else _tag(values[at]) for at in places]
        known = [_tag(values[at]) for at in sorted(places, key=lambda at: _order(values[at]))
                 if values[at] is not None]  # fmt: skip
        yield _facet(fitted(name, NAME), of_queries, known)


def _facet(
    name: str,
    of_queries: Sequence[str | None],
    known: Iterable[str],
    shown: Callable[[str], str] = str,
) -> Facet:
    there = {*of_queries}
    present = [value for value in (*dict.fromkeys(known), None) if value in there]
    numbers = {value: number for number, value in enumerate(present)}
    names = [_("(none)") if value is None else shown(value) for value in present]
    return Facet(name, names, [numbers[value] for value in of_queries])


def _order(tag: Tag) -> tuple[bool, float, str]:
    """Sort numbers before texts, each among themselves."""
    return (True, 0.0, tag) if isinstance(tag, str) else (False, float(tag or 0), str(tag))


def _tag(value: Tag) -> str:
    return fitted(str(value), NAME)


class ToldRow(NamedTuple):
    """A document or an item: what is said of it, its texts in marked stretches.

    ``about`` says, of each text, what its document is known by; ``is_folded`` is true
    of a document beyond the cutoff that no outcome rests on.
    """

    of: GroundTruthItem | PredictedDocument
    number: int
    said: str
    tone: str
    texts: list[list[Fragment]]
    about: Sequence[About] = ()
    is_folded: bool = False


class ToldPart(NamedTuple):
    """Documents that follow one another; ``folded`` is the line they are folded to, if any."""

    rows: list[ToldRow]
    folded: str


class ToldQuery(NamedTuple):
    """What the page shows of one query when it is opened."""

    ground_truth: list[ToldRow]
    more_items: int
    predicted: list[ToldRow]
    more_documents: int

    @property
    def parts(self) -> Iterator[ToldPart]:
        """The documents, divided into parts that are shown and parts that are folded."""
        # Ranks that are folded together follow one another: none between them is left out.
        together = groupby(
            enumerate(self.predicted),
            lambda numbered: numbered[1].is_folded and numbered[1].number - numbered[0],
        )
        for is_folded, numbered in together:
            part = [row for place, row in numbered]
            first, last = part[0].number, part[-1].number
            told = _("rank {}: beyond the cutoff, not relevant")
            if first != last:
                told = _("ranks {} to {}: beyond the cutoff, not relevant")
            yield ToldPart(part, told.format(first, last) if is_folded else "")


def told_query(explanation: Explanation, room: Room = _WIDE) -> ToldQuery:
    """Put an explanation into words, with texts clipped to the room there is."""
    documents, items = telling.highlighted(explanation)
    untold = telling.untold_ranks(explanation)
    predicted = [
        ToldRow(one, one.rank, _document(one, explanation), _tone(one),
                _texts(documents[one.rank], one.text, room.match if _tells(one) else room.rest),
                [_about(one.about, room)] if one.about else [],
                one.rank > explanation.n_seen and one.rank in untold and not _tells(one))
        for one in explanation.documents
        if one.rank in documents and (_tells(one) or one.rank <= room.n_rest)
    ]  # fmt: skip
    ground_truth = [
        ToldRow(one, one.number, _item(one, explanation),
                "good" if one.outcome.startswith("found") else "bad",
                _texts(items[one.number], one.alternatives, room.match),
                [_about(about, room) for about in one.about])
        for one in explanation.items
        if one.number in items
    ]  # fmt: skip
    return ToldQuery(
        ground_truth,
        len(explanation.items) - len(ground_truth),
        predicted,
        len(explanation.documents) - len(predicted),
    )


def _tone(document: PredictedDocument) -> str:
    tones = {"first": "good", "piece": "good", "repeat": "plain"}
    if document.unwanted:
        return "bad"
    return tones.get(document.credit, "bad" if document.contradicts else "faint")


def _about(about: About, room: Room) -> About:
    width = min(_ABOUT_WIDTH, room.rest)
    return tuple((fitted(name, NAME), fitted(value, width)) for name, value in about)


def _tells(document: PredictedDocument) -> bool:
    """Return whether a document has to do with an item, or with an unwanted document."""
    related = document.matches or document.piece_of or document.contradicts or document.unwanted
    return bool(related or document.closest is not None)


def _texts(excerpts: Sequence[Excerpt], known: Any, width: int) -> list[list[Fragment]]:
    if known is None:
        return [[(_("(text not kept)"), 0)]]
    return [excerpt.clipped(width) for excerpt in excerpts]


def _document(document: PredictedDocument, explanation: Explanation) -> str:
    credit = telling.credit(document)
    if not document.similarity:
        return credit
    similarity = _("similarity {}")
    told = similarity.format(telling.similarity(document.similarity, explanation.threshold))
    return f"{credit} · {told}"


def _item(item: GroundTruthItem, explanation: Explanation) -> str:
    outcome = telling.outcome(item, explanation)
    grade = _("grade {}").format(f"{item.grade:g}")
    return outcome if item.grade == 1 else f"{outcome} · {grade}"
