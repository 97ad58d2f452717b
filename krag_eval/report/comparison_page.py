"""The pages of a comparison and of a sweep: the objects that their template reads, and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from krag_eval import plotting
from krag_eval.comparison.comparison import Comparison
from krag_eval.comparison.comparison_page import interval_of, p_value, sentence, told_beside
from krag_eval.comparison.slices import FEWEST_QUERIES
from krag_eval.comparison.slices_page import interval_beside_p
from krag_eval.core import (
    N_,
    Budget,
    Column,
    Cutoff,
    Report,
    Table,
    _,
    fitted,
    parse_metric,
    pgettext,
    short,
    span,
    whole,
)
from krag_eval.plotting import styling
from krag_eval.report import rendering
from krag_eval.report.query_list import ROWS_AT_MOST, Room, ToldQuery, ToldRow, told_query
from krag_eval.report.rendering import NAME, picture

if TYPE_CHECKING:
    from krag_eval.comparison.slices import SlicedComparison
    from krag_eval.core import Average, ResultFacts
    from krag_eval.core.results.evidence import GroundTruthItem, PredictedDocument
    from krag_eval.core.results.explanation import Explanation

# Columns of a query's text.
_QUERY_WIDTH = 300
_SIZE = (4.9, 3.9)
# Columns of a document's text: at most, at least, and of all documents of a page together.
_WIDEST, _NARROWEST, _ROOM = 500, 100, 600_000
# Inches of a picture of slices: of two systems, and of several, whose names stand in it.
_NARROW, _WIDE = 5.4, 9.0
_short_name = partial(fitted, width=NAME)


def comparison_page(
    comparison: Comparison, *, n_queries: int | None = None, by: str | Iterable[str] = ()
) -> dict[str, Any]:
    """Gather what the template reads of a comparison.

    Raises:
        InvalidType: If ``by`` names no tags.
        InvalidInput: If an argument is not possible.
    """
    level = comparison.level
    n_queries = whole("n_queries", 10 if n_queries is None else n_queries, 0)
    sliced = [rendering.sliced_by(comparison.by, tag) for tag in rendering.checked_tags(by)]
    without = [one for one in comparison.compared if _explaining(comparison, one) is None]
    chosen = {"baseline": comparison.baseline, "clusters": comparison.clusters}
    drawn = {"n_resamples": comparison.n_resamples, "seed": comparison.seed} | chosen
    systems = ", ".join(map(_short_name, comparison.names))
    name_of = partial(_label, comparison=comparison)
    width = _NARROW if len(comparison.names) == 2 else _WIDE
    return {
        "template": "comparison.html",
        "comparison": comparison,
        "sweep": None,
        "subtitle": f"{styling.number_of_queries(len(comparison.queries))} · {systems}",
        "settings": [
            *map(_setting, comparison.signature.split(" | ")),
            *((name, value) for name, value in drawn.items() if value is not None),
        ],
        "signature": comparison.signature,
        "named": name_of,
        "board": comparison.leaderboard.to_dict("index") if comparison.compared else {},
        "interval": lambda row, of: span(row[f"{of}_low"], row[f"{of}_high"]),
        "sentences": [
            (row.is_shown(level), sentence(_named_row(row, comparison), level))
            for row in comparison.differences
        ],
        "notes": told_beside(comparison, _short_name),
        "forest": picture(
            "forest", plotting.forest_size(comparison), plotting.comparison_forest, comparison
        ),
        "drawn": list(_pictures(comparison)),
        "drawn_at_budgets": list(_budget_pictures(comparison)),
        "pairs": [(*pair, _differences(comparison, pair)) for pair in comparison.pairs],
        "sliced": [
            (styling.tag_name(one, NAME), rendering.named(one, name_of),
             rendering.slice_picture(one, place, width),
             [(*pair, _slices(one, pair, comparison)) for pair in comparison.pairs])
            for place, one in enumerate(sliced)
        ],
        "fewest": FEWEST_QUERIES,
        "n_queries": n_queries,
        "changed": [(*pair, list(_changed(comparison, pair, n_queries)))
                    for pair in comparison.pairs if n_queries],
        "is_shown": lambda of: methodcaller("is_shown", of.level),
        "moved": moved,
        "change": _change,
        "without": ", ".join(map(_short_name, without)),
    }  # fmt: skip


def _label(metric: str, comparison: Comparison, average: Average | None = None) -> str:
    """Return what a metric is called, with its cutoff; with its average, also its direction."""
    key, k = parse_metric(metric)
    first = next(iter(comparison.compared.values()), None)
    return styling.at_cutoff(styling.with_direction(styling.metric_label(key, first), average), k)


def _named_row(row: Any, comparison: Comparison) -> Any:
    """Return a difference with other names for what sentences speak of."""
    return replace(
        row, a=_short_name(row.a), b=_short_name(row.b), metric=_label(row.metric, comparison)
    )


def _setting(part: str) -> tuple[str, str]:
    """Return name and value of a setting in a signature, where it is ``k=5`` or ``retrieved<=4``.

    >>> _setting("k=5"), _setting("retrieved<=4")
    (('k', '5'), ('retrieved', '<=4'))
    """
    name, _, value = part.partition("=")
    return (name.removesuffix("<"), f"<={value}") if name.endswith("<") else (name, value)


def _pictures(comparison: Comparison) -> Iterator[str]:
    """Draw the systems against k, and against the time their answers took."""
    systems = comparison.compared
    parsed = [parse_metric(metric) for metric in comparison.metrics]
    keys = list(dict.fromkeys(key for key, k in parsed if not isinstance(k, Budget)))
    cutoffs = {k for one in systems.values() for k in one.k if not isinstance(k, Budget)}
    groups = product(keys if len(cutoffs) > 1 else [], _drawable(systems))
    for place, (key, drawn) in enumerate(groups):
        yield picture(f"cutoffs{place}", _SIZE, plotting.cutoff_curves, drawn, key)
    timed = {
        name: one
        for name, one in systems.items()
        if one.retrieval is not None and not math.isnan(one.retrieval.latency.p50)
    }
    if timed and len(systems) <= styling.MOST_LINES:
        timed = dict(systems)  # those without a latency are named below the axis
    for place, drawn in enumerate(_drawable(timed)):
        metric = comparison.metrics[0]
        yield picture(f"latency{place}", _SIZE, plotting.latency_points, drawn, metric)


def _drawable(systems: Mapping[str, ResultFacts]) -> list[dict[str, ResultFacts]]:
    """Divide systems into as many as can be told apart in one picture."""
    names = list(systems)
    starts = range(0, len(names), styling.MOST_LINES)
    return [{name: systems[name] for name in names[at : at + styling.MOST_LINES]} for at in starts]


def _budget_pictures(comparison: Comparison) -> Iterator[str]:
    """Draw against the budget what was compared at budgets, or what is drawn if nothing was.

    A picture has one unit, and as many systems as can be told apart.
    """
    systems = comparison.compared
    parsed = map(parse_metric, comparison.metrics)
    keys: list[str | None] = [*dict.fromkeys(key for key, k in parsed if isinstance(k, Budget))]
    units = rendering.units_of(next(iter(systems.values())).k) if systems else []
    for place, (unit, key, drawn) in enumerate(product(units, keys or [None], _drawable(systems))):
        yield picture(f"budgets{place}", _SIZE, plotting.budget_curves, drawn, key, unit=unit)


def _differences(comparison: Comparison, pair: tuple[str, str]) -> Table:
    """Return the table of a pair."""
    a, b = map(_short_name, pair)
    columns = [
        Column(_("Metric"), lambda row: _label(row.metric, comparison, row.average)),
        *_values(a, b, comparison.level),
        Column("p", lambda row: p_value(row.p_permutation)),
        Column("p (Holm)", lambda row: p_value(row.p_holm)),
        Column("p (t)", lambda row: p_value(row.p_t)),
        Column(_("Effect size d"), "effect_size"),
        _outcomes(b),
    ]
    return Table([row for row in comparison.differences if (row.a, row.b) == pair], columns)


def _values(a: str, b: str, level: float) -> list[Column]:
    between = Column(interval_of(level), lambda row: span(row.ci_low, row.ci_high))
    return [Column(a, "value_a"), Column(b, "value_b"), Column(f"{b} − {a}", "difference"), between]


def _outcomes(b: str) -> Column:
    def told(row: Any) -> str | None:
        counts = row.wins, row.ties, row.losses
        return " / ".join(map(str, counts)) if any(counts) else None

    return Column(_("{b}: wins / ties / losses").format(b=b), told)


def _slices(sliced: SlicedComparison, pair: tuple[str, str], comparison: Comparison) -> Table:
    """Return the table of a pair within slices."""
    a, b = map(_short_name, pair)

    def name(row: Any) -> str:
        label = [_label(row.metric, comparison)] if len(sliced.metrics) > 1 else []
        return " · ".join([_short_name(row.slice), *label])

    columns = [
        Column(_("Slice"), name),
        Column(_("Queries"), "n"),
        *_values(a, b, sliced.level)[:-1],
        Column(interval_of(sliced.level), partial(interval_beside_p, level=sliced.level)),
        Column("p (Holm)", lambda row: p_value(row.p_holm)),
        _outcomes(b),
    ]
    return Table([row for row in sliced.rows if (row.a, row.b) == pair], columns)


def _changed(
    comparison: Comparison, pair: tuple[str, str], n_queries: int
) -> Iterator[tuple[str, Any, tuple[Side, Side] | None]]:
    """Yield what changed most on the first metric: a query, its values, both lists if known."""
    metric = comparison.metrics[0]
    k = parse_metric(metric)[1]
    room = _room(comparison, k, n_queries)
    # Labels need not be unique; with positions for labels they are.
    numbered = replace(comparison, queries=list(range(len(comparison.queries))))
    for values in numbered.changed(metric, *pair, n_queries).itertuples():
        place: int = values.Index  # type: ignore[assignment]
        label = fitted(str(comparison.queries[place]), room.query)
        first, second = (_explanation(comparison, name, place, k) for name in pair)
        sides = None
        if first is not None and second is not None:
            explained = (_numbered_like(first, second), second)
            sides = tuple(
                Side(_short_name(name), one, told_query(one, room), _has_texts(comparison, name))
                for name, one in zip(pair, explained, strict=True)
            )
        yield label, values, sides  # type: ignore[misc]


def _room(comparison: Comparison, k: Cutoff, n_queries: int) -> Room:
    """Return how much room each document gets, so that a page stays within bounds."""
    explaining = [_explaining(comparison, name) for name in comparison.compared]
    found = [one.evidence.relevance for one in explaining if one and one.evidence]
    longest = max([int(one.seen_within(k).max(initial=1)) for one in found], default=1)
    n_entries = len(comparison.pairs) * min(n_queries, len(comparison.queries))
    n_documents = 2 * n_entries * min(longest, ROWS_AT_MOST)
    width = max(_NARROWEST, min(_WIDEST, _ROOM // max(n_documents, 1)))
    return Room(_QUERY_WIDTH, width, width // 2, ROWS_AT_MOST)


def _explaining(comparison: Comparison, name: str) -> ResultFacts | None:
    """Return the result that can explain what a system retrieved, ``None`` if there is none.

    One whose queries were put in order or left out cannot; the one that was given can.
    """
    results = (comparison.compared.get(name), comparison.given.get(name))
    return next((one for one in results if one is not None and one.evidence is not None), None)


def _has_texts(comparison: Comparison, name: str) -> bool:
    result = _explaining(comparison, name)
    evidence = None if result is None else result.evidence
    return evidence is not None and evidence.texts is not None


def _explanation(comparison: Comparison, name: str, place: int, k: Cutoff) -> Explanation | None:
    """Return what one system retrieved for a query, ``None`` if it is not known."""
    result = _explaining(comparison, name)
    if result is None:
        return None
    if result is not comparison.compared[name]:  # only labels that differ can be paired
        return result.explain(comparison.queries[place], k)
    return result.explain(k=k, position=int(np.flatnonzero(result.counted)[place]))


@dataclass(frozen=True)
class Side:
    """What one of two systems retrieved for a query, and how it is told."""

    name: str
    explanation: Explanation
    told: ToldQuery
    has_texts: bool

    @property
    def rows(self) -> list[ToldRow]:
        """The documents within the cutoff."""
        return [row for row in self.told.predicted if row.number <= self.explanation.n_seen]

    @cached_property
    def _ranks(self) -> Mapping[tuple[str, str | None], int]:
        """The best rank of each id and text, and of each text of a document without id."""
        ranks: dict[tuple[str, str | None], int] = {}
        for one in reversed(self.explanation.documents):
            own = _id_of(one)
            ranks |= {("id", own): one.rank, ("text", one.text): one.rank}
            if own is None:
                ranks["alone", one.text] = one.rank
        return {key: rank for key, rank in ranks.items() if key[1]}

    def rank_of(self, document: PredictedDocument) -> int | None:
        """Return where a document of another list stands in this one, ``None`` if nowhere.

        Two documents that have ids are the same if these are; otherwise if their texts are.
        """
        own = _id_of(document)
        if own is None:
            return self._ranks.get(("text", document.text))
        return self._ranks.get(("id", own), self._ranks.get(("alone", document.text)))

    def moved(self, document: PredictedDocument, other: Side, *, is_second: bool) -> str:
        """Say where a document of this list stands in the other one."""
        if not self.has_texts or not other.has_texts:
            return ""
        there = other.rank_of(document)
        if document.credit == "not relevant":
            return "" if there is None else _("in both lists")
        return moved(there, document.rank) if is_second else moved(document.rank, there)

    def items(self, other: Side) -> Iterator[tuple[ToldRow, ToldRow, ToldRow]]:
        """Yield the items that both show: as told by each, and the one whose text is shown.

        A text is marked where it agrees with what found it.
        """
        told = {row.number: row for row in self.told.ground_truth}
        for after in other.told.ground_truth:
            if before := told.get(after.number):
                found_before = before.tone == "good" != after.tone
                yield before, after, before if found_before else after


def _numbered_like(explanation: Explanation, other: Explanation) -> Explanation:
    """Number items as another explanation does, which may list the same ground truth otherwise.

    Without texts they are taken to be in the same order.
    """
    numbers = {
        item.number: next((one.number for one in other.items if _is_same(one, item)), None)
        for item in explanation.items
    }
    if len(set(numbers.values()) - {None}) < len(numbers):
        return explanation
    new = {number: there for number, there in numbers.items() if there is not None}

    def renumbered(old: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted(new[number] for number in old))

    items = (replace(item, number=new[item.number]) for item in explanation.items)
    documents = (
        replace(
            one,
            matches=renumbered(one.matches),
            first_for=renumbered(one.first_for),
            piece_of=renumbered(one.piece_of),
            closest=None if one.closest is None else new[one.closest],
        )
        for one in explanation.documents
    )
    in_order = sorted(items, key=lambda item: item.number)
    return replace(explanation, items=tuple(in_order), documents=tuple(documents))


def _is_same(item: GroundTruthItem, other: GroundTruthItem) -> bool:
    ids, other_ids = ({dict(about).get("id") for about in one.about} for one in (item, other))
    if ids and ids == other_ids and None not in ids:
        return True
    return item.alternatives is not None and {*item.alternatives} == {*(other.alternatives or ())}


def moved(before: int | None, after: int | None) -> str:
    """Say how a rank changed."""
    if before is None:
        return "" if after is None else _("new, at rank {}").format(after)
    if after is None:
        return _("lost, was at rank {}").format(before)
    if before == after:
        return _("rank {} in both").format(after)
    return _("rank {} → {}").format(before, after)


def _id_of(document: PredictedDocument) -> str | None:
    return dict(document.about).get("id")


def _change(change: float) -> str:
    """Return a change with its sign; an infinite one is a rank that came to be, or was lost."""
    if math.isinf(change):
        return pgettext("a change", "found") if change < 0 else pgettext("a change", "lost")
    return ("+" if change > 0 else "") + short(change)


#: How a comparison is reported.
REPORT = Report(comparison_page, N_("Comparison of retrievers"))
