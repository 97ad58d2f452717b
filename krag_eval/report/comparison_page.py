"""The contents of a comparison's page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from krag_eval import plotting
from krag_eval._language import _, pgettext
from krag_eval._text import fitted, visible
from krag_eval.errors import InvalidInput, InvalidType, clipped, muted, text, whole
from krag_eval.plotting.styling import (
    MOST_LINES,
    at_cutoff,
    average_name,
    metric_label,
    number_of_queries,
    percent,
    tag_name,
    with_direction,
)
from krag_eval.presenting.comparison import (
    told_clusters,
    told_detectable,
    told_shares,
    toward_better,
)
from krag_eval.presenting.slices import notes_on
from krag_eval.report.query_list import ROWS_AT_MOST, Room, ToldRow, told_query
from krag_eval.report.rendering import joined, number, p_value, p_words, units_of
from krag_eval.results.latency import told_failed
from krag_eval.scoring.cutoffs import Budget, Cutoff, parse_metric, spelled
from krag_eval.statistics.comparison import Comparison
from krag_eval.statistics.paired import Difference
from krag_eval.statistics.slices import FEWEST_QUERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.results.evidence import GroundTruthItem, PredictedDocument
    from krag_eval.results.explanation import Explanation
    from krag_eval.results.result import EvaluationResult
    from krag_eval.retrievers.sweep import Sweep, SweepCell
    from krag_eval.scoring.averages import Average
    from krag_eval.statistics.slices import SlicedComparison

# Columns of a query's text, of a system's name, and of an id.
_QUERY_WIDTH, _NAME_WIDTH, _ABOUT_WIDTH, _NOTE_WIDTH = 300, 40, 80, 1000
_SIZE = (5.6, 3.9)
# Columns of a document's text: at most, at least, and of all documents of a page together.
_WIDEST, _NARROWEST, _ROOM = 500, 100, 600_000
# Of a longer list, an explanation shows no more.
_MOST_DOCUMENTS = 50
# Inches of a picture of slices.
_FOREST_WIDTH, _FOREST_AROUND, _FOREST_ROW, _FOREST_ROWS = 9.0, 1.6, 0.34, 60


def comparison_page(
    comparison: Comparison, n_queries: int, by: str | Iterable[str] = ()
) -> dict[str, Any]:
    """Gather what the template shows.

    Raises:
        InvalidType: If the comparison or ``by`` is something else.
        InvalidInput: If an argument is not possible.
    """
    if not isinstance(comparison, Comparison):
        came = type(comparison).__name__
        raise InvalidType("comparison", f"must be a Comparison, got {came}")
    whole("n_queries", n_queries, 0)
    tags = _checked_tags(by)
    level = comparison.level
    # Markup takes these in as they are, so they are made harmless here.
    first, second = (visible(_name(name)) for name in comparison.pairs[0])
    return {
        "sweep": None,
        "subtitle": _subtitle(comparison),
        "several": len(comparison.names) > 2,
        "board": _board(comparison),
        "against": _against(comparison),
        "verdicts": [(_tone(one, level), _verdict(one, comparison))
                     for one in comparison.differences],
        "remarks": [*_left_out(comparison), *told_clusters(comparison),
                    *told_failed({_name(name): n for name, n in comparison.failed.items()})],
        "forest": plotting.inline_svg(
            partial(plotting.comparison_forest, comparison),
            "forest",
            size=plotting.forest_size(comparison),
        ),
        "pictures": list(_pictures(comparison)),
        "budget_pictures": list(_budget_pictures(comparison)),
        "interval_name": _("{} interval").format(percent(level)),
        "pairs": list(_pairs(comparison)),
        "slices": [_sliced(comparison, tag, f"slices{i}") for i, tag in enumerate(tags)],
        "changed": list(_changed(comparison, n_queries)),
        "show_changed": n_queries > 0,
        "slice_note": _(
            "Slices of fewer than {} queries have counts alone. Holm's correction is over all "
            "slices, pairs and metrics."
        ).format(FEWEST_QUERIES),
        "unexplained": _unexplained(comparison),
        "example": {"a": first, "b": second},
        "settings": list(_settings(comparison).items()),
        "signature": comparison.signature,
    }  # fmt: skip


# What a page tells of every cell at the cutoff, where there is such a metric.
_OF_A_CELL = ("macro_recall", "macro_token_precision", "redundancy", "ndcg")


def sweep_page(sweep: Sweep, n_queries: int, by: str | Iterable[str] = ()) -> dict[str, Any]:
    """Gather what the template shows of a sweep: its comparison, and the cells above it.

    Raises:
        InvalidType: If ``sweep`` or ``by`` is something else.
        InvalidInput: If there is nothing to compare, or an argument is not possible.
    """
    from krag_eval.presenting.sweep import chosen, reused, shared
    from krag_eval.retrievers.sweep import COSTS, Sweep

    if not isinstance(sweep, Sweep):
        came = type(sweep).__name__
        raise InvalidType("sweep", f"must be a Sweep, got {came}")
    if sweep.comparison is None:
        fix = "write_report tells of one result: write_report(sweep.cells[0].result, path)"
        raise InvalidInput("sweep", "must have two cells that differ, got one", fix)
    page = comparison_page(sweep.comparison, n_queries, by)
    columns = _sweep_columns(sweep)
    front = {*sweep.front("context")}
    drawable = [cost for cost in COSTS if sweep.front(cost)]
    page["sweep"] = {
        "headers": [heading for heading, shown in columns],
        "rows": [
            ([_name(cell.name), *(shown(cell) for heading, shown in columns)],
             (cell.same_as or cell.name) in front)
            for cell in sweep.cells
        ],
        "same": [*reused(sweep), *shared(sweep)],
        "choice": chosen(sweep),
        "pictures": [
            plotting.inline_svg(
                partial(plotting.pareto_points, sweep, cost),
                f"pareto{cost}",
                size=_SIZE,
            )
            for cost in drawable
        ],
    }  # fmt: skip
    return page


def _sweep_columns(sweep: Sweep) -> list[tuple[str, Callable[[SweepCell], str]]]:
    """Return what is told of every cell: the heading, and how it is read of a cell."""
    first = sweep.cells[0].result
    at = sweep.quality_metric.partition("@")[2]
    wanted = [sweep.metric, sweep.quality_metric, *(f"{key}@{at}" for key in _OF_A_CELL)]
    parsed = dict.fromkeys(map(parse_metric, wanted))
    scores = [
        (average_name(f"{key}@{spelled(k)}", first), partial(_score, key=key, k=k))
        for key, k in parsed
        if key in first.averages(k)
    ]
    return [
        (_("Chunks"), lambda cell: f"{cell.n_chunks:,}"),
        *scores,
        (_("Recall by one chunk"), lambda cell: _or_dash(cell.recall_by_one)),
        (_("Index ceiling"), lambda cell: _or_dash(cell.index_ceiling)),
        (_("Words of context"), lambda cell: _or_dash(cell.context, "{:,.0f}")),
        (_("Median latency (ms)"), lambda cell: _or_dash(1000 * cell.latency, "{:,.1f}")),
    ]


def _score(cell: SweepCell, key: str, k: Cutoff) -> str:
    return _or_dash(cell.result.averages(k)[key])


def _or_dash(value: float, form: str = "") -> str:
    if math.isnan(value):
        return "–"
    return form.format(value) if form else number(value)


def _checked_tags(by: object) -> list[str]:
    """Return the tags to slice by.

    Raises:
        InvalidType: If it is neither a tag nor several.
    """
    if not isinstance(by, Iterable):
        raise InvalidType("by", f"must name tags, such as ('corpus',), got {clipped(by)}")
    tags = [by] if isinstance(by, str) else list(by)
    for tag in tags:
        text("by", tag, "names of tags")
    return list(dict.fromkeys(tags))


def _name(system: str) -> str:
    return fitted(system, _NAME_WIDTH)


def _first_of(comparison: Comparison) -> EvaluationResult | None:
    """Return the result that knows the labels of metrics."""
    return next(iter(comparison.compared.values()), None)


def _label(metric: str, comparison: Comparison, average: Average | None = None) -> str:
    """Return what a metric is called, with its cutoff; with its average, also its direction."""
    key, k = parse_metric(metric)
    return at_cutoff(with_direction(metric_label(key, _first_of(comparison)), average), k)


def _directed(row: Difference, comparison: Comparison) -> str:
    return _label(row.metric, comparison, row.average)


def _subtitle(comparison: Comparison) -> str:
    n_queries = number_of_queries(len(comparison.queries))
    return joined((n_queries, ", ".join(map(_name, comparison.names))))


def _settings(comparison: Comparison) -> dict[str, str]:
    settings = dict(_setting(part) for part in comparison.signature.split(" | "))
    settings |= {"n_resamples": str(comparison.n_resamples), "seed": str(comparison.seed)}
    chosen = {"baseline": comparison.baseline, "clusters": comparison.clusters}
    return settings | {name: value for name, value in chosen.items() if value is not None}


def _setting(part: str) -> tuple[str, str]:
    """Return name and value of a setting in a signature, where it is ``k=5`` or ``retrieved<=4``.

    >>> _setting("k=5"), _setting("retrieved<=4")
    (('k', '5'), ('retrieved', '<=4'))
    """
    name, _, value = part.partition("=")
    return (name.removesuffix("<"), f"<={value}") if name.endswith("<") else (name, value)


def _left_out(comparison: Comparison) -> list[str]:
    """Say how many queries were left out because not all systems have them."""
    missing = ", ".join(
        f"{_name(name)}: {len(labels)}" for name, labels in comparison.left_out.items()
    )
    told = _("Compared on the {n} queries that all systems have. Left out: {missing}.")
    return [told.format(n=len(comparison.queries), missing=missing)] if missing else []


def _against(comparison: Comparison) -> str:
    """Say that everything was tested against one system."""
    if comparison.baseline is None:
        return ""
    told = _("The others are compared with {name}, the baseline.")
    told = told.format(name=_name(comparison.baseline))
    alone = _(
        "The corrected p pays for these comparisons alone; the others were not compared with each "
        "other."
    )
    return told if len(comparison.pairs) == 1 else f"{told} {alone}"


class _Standing(NamedTuple):
    """A system on the leaderboard: its name and, per metric, value, interval and if it is best."""

    name: str
    cells: list[tuple[str, str, bool]]


def _board(comparison: Comparison) -> dict[str, Any]:
    """Return the leaderboard: the best system first where there are several."""
    if not comparison.compared:
        return {}
    several = len(comparison.names) > 2
    table = {str(name): row for name, row in comparison.leaderboard.to_dict("index").items()}
    named = {row.metric: _directed(row, comparison) for row in comparison.differences}
    note = (
        _(
            "The best on {metric} first. The {level} intervals say how far each average would move "
            "with other queries; whether one system is better than another, the differences say."
        )
        if several
        else _(
            "The {level} intervals say how far each average would move with other queries; whether "
            "one system is better than the other, the difference says."
        )
    )
    level, metrics = percent(comparison.level), comparison.metrics
    return {
        "note": note.format(metric=_label(metrics[0], comparison), level=level),
        "metrics": [named[metric] for metric in metrics],
        "rows": [
            _Standing(_name(name), [_standing(table[name], metric) for metric in metrics])
            for name in (table if several else comparison.names)
        ],
    }


def _standing(row: Mapping[Any, Any], metric: str) -> tuple[str, str, bool]:
    interval = _interval(row[f"{metric}_low"], row[f"{metric}_high"])
    return number(row[metric]), interval, bool(row[f"{metric}_best"])


def _interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) or math.isnan(high) else f"[{number(low)}, {number(high)}]"


def _pictures(comparison: Comparison) -> Iterator[str]:
    """Draw the systems against k, and against the time their answers took."""
    systems = comparison.compared
    parsed = [parse_metric(metric) for metric in comparison.metrics]
    keys = list(dict.fromkeys(key for key, k in parsed if not isinstance(k, Budget)))
    cutoffs = [k for one in systems.values() for k in one.k if not isinstance(k, Budget)]
    groups = _drawable(list(systems))
    for place, (key, names) in enumerate(product(keys if len(set(cutoffs)) > 1 else [], groups)):
        drawn = {name: systems[name] for name in names}
        draw = partial(plotting.cutoff_curves, drawn, key)
        yield plotting.inline_svg(draw, f"cutoffs{place}", size=_SIZE)
    timed = [name for name, one in systems.items() if _is_timed(one)]
    if timed and len(systems) <= MOST_LINES:
        timed = list(systems)  # those without a latency are named below the axis
    for place, names in enumerate(_drawable(timed)):
        drawn = {name: systems[name] for name in names}
        draw = partial(plotting.latency_points, drawn, comparison.metrics[0])
        yield plotting.inline_svg(draw, f"latency{place}", size=_SIZE)


def _drawable(names: Sequence[str]) -> list[Sequence[str]]:
    """Divide systems into as many as can be told apart in one picture."""
    return [names[start : start + MOST_LINES] for start in range(0, len(names), MOST_LINES)]


def _is_timed(result: EvaluationResult) -> bool:
    return result.retrieval is not None and not math.isnan(result.retrieval.latency.p50)


def _budget_pictures(comparison: Comparison) -> Iterator[str]:
    """Draw against the budget what was compared at budgets, or what is drawn if nothing was.

    A picture has one unit, and as many systems as can be told apart.
    """
    systems = comparison.compared
    parsed = map(parse_metric, comparison.metrics)
    keys: list[str | None] = [*dict.fromkeys(key for key, k in parsed if isinstance(k, Budget))]
    first = _first_of(comparison)
    units = units_of(first.k) if first is not None else []
    groups = product(units, keys or [None], _drawable(list(systems)))
    for place, (unit, key, names) in enumerate(groups):
        drawn = {name: systems[name] for name in names}
        draw: Callable[[Axes], object] = partial(plotting.budget_curves, drawn, key, unit=unit)
        yield plotting.inline_svg(draw, f"budgets{place}", size=_SIZE)


def _tone(row: Difference, level: float) -> str:
    return "good" if row.is_shown(level) else "faint"


def _verdict(row: Difference, comparison: Comparison) -> str:
    """Say in plain words what is known of one difference."""
    a, b, metric = _name(row.a), _name(row.b), _label(row.metric, comparison)
    if math.isnan(row.difference):
        without = [
            name for name, value in ((a, row.value_a), (b, row.value_b)) if math.isnan(value)
        ]
        told = _("{a} and {b} cannot be compared on {metric}: it is undefined for {without}.")
        return told.format(a=a, b=b, metric=metric, without=", ".join(without))
    known = {"metric": metric, "level": percent(comparison.level), "p": p_words(row.p_holm)}
    low, high = row.ci_low, row.ci_high
    if not row.is_shown(comparison.level):
        told = _(
            "No difference shown between {a} and {b} on {metric}: {b} minus {a} is {by} ({level} "
            "interval {low} to {high}; p {p} after Holm)."
        ).format(a=a, b=b, by=number(row.difference), low=number(low), high=number(high), **known)
        return " ".join([told, *told_shares(row), *told_detectable(row)])
    low, high = toward_better(row)
    b_wins = row.better == row.b
    better, worse = (b, a) if b_wins else (a, b)
    values = (row.value_b, row.value_a) if b_wins else (row.value_a, row.value_b)
    told = (
        _(
            "{worse} is worse than {better} on {metric} by {by} ({value_worse} against "
            "{value_better}; {level} interval {low} to {high}; p {p} after Holm), though it has a "
            "value for more queries."
        )
        if row.is_of_more
        else _(
            "{better} is better than {worse} on {metric} by {by} ({value_better} against "
            "{value_worse}; {level} interval {low} to {high}; p {p} after Holm)."
        )
    )
    told = told.format(
        better=better, worse=worse, by=number(abs(row.difference)), low=number(low),
        high=number(high), value_better=number(values[0]), value_worse=number(values[1]), **known,
    )  # fmt: skip
    return " ".join([told, *told_shares(row)])


class _Pair(NamedTuple):
    """Two systems: their names, and a row per metric or slice, with whether it is shown."""

    a: str
    b: str
    rows: list[tuple[list[str], bool]]


def _pairs(comparison: Comparison) -> Iterator[_Pair]:
    """Return the table of each pair."""
    for a, b in comparison.pairs:
        rows = [row for row in comparison.differences if (row.a, row.b) == (a, b)]
        cells = [
            ([_directed(row, comparison), *_numbers(row)], row.is_shown(comparison.level))
            for row in rows
        ]
        yield _Pair(_name(a), _name(b), cells)


def _numbers(row: Difference) -> list[str]:
    return [
        number(row.value_a),
        number(row.value_b),
        number(row.difference),
        _interval(row.ci_low, row.ci_high),
        p_value(row.p_permutation),
        p_value(row.p_holm),
        p_value(row.p_t),
        number(row.effect_size),
        f"{row.wins} / {row.ties} / {row.losses}",
    ]


def _sliced(comparison: Comparison, tag: str, name: str) -> dict[str, Any]:
    """Return what is shown of a tag: a picture of the first metric, and a table for each pair."""
    with muted():  # the page has the notes
        sliced = comparison.by(tag)
    name_of = partial(_label, comparison=comparison)
    n_rows = sum(row.metric == sliced.metrics[0] for row in sliced.rows)
    height = _FOREST_AROUND + _FOREST_ROW * min(n_rows, _FOREST_ROWS)
    return {
        "heading": _("By {}").format(tag_name(sliced, _NAME_WIDTH)),
        "notes": [fitted(one, _NOTE_WIDTH) for one in notes_on(sliced, name_of)],
        "picture": plotting.inline_svg(
            partial(plotting.slice_forest, sliced, None),
            name,
            size=(_FOREST_WIDTH, height),
        ),
        "pairs": [
            _Pair(_name(a), _name(b), _slice_rows(sliced, (a, b), comparison))
            for a, b in comparison.pairs
        ],
    }


def _slice_rows(
    sliced: SlicedComparison, pair: tuple[str, str], comparison: Comparison
) -> list[tuple[list[str], bool]]:
    several = len(sliced.metrics) > 1
    rows = [row for row in sliced.rows if (row.a, row.b) == pair]
    return [
        ([_slice_name(row, comparison, several=several), *_slice_numbers(row)],
         row.is_shown(sliced.level))
        for row in rows
    ]  # fmt: skip


def _slice_name(row: Difference, comparison: Comparison, *, several: bool) -> str:
    label = _label(row.metric, comparison) if several else ""
    return joined((fitted(row.slice or "", _NAME_WIDTH), label))


def _slice_numbers(row: Difference) -> list[str]:
    is_counted_alone = math.isnan(row.difference)
    outcome = "–" if is_counted_alone else f"{row.wins} / {row.ties} / {row.losses}"
    values = (row.value_a, row.value_b, row.difference)
    interval = _interval(row.ci_low, row.ci_high)
    return [str(row.n), *map(number, values), interval, p_value(row.p_holm), outcome]


class _Row(NamedTuple):
    """A document in one of two lists: what is said of it, and what became of it in the other."""

    told: ToldRow
    about: str
    moved: str
    is_folded: bool


class _Side(NamedTuple):
    """One of two lists side by side, and how many documents within the cutoff are not shown.

    ``failure`` is what went wrong when the retriever was asked, where it did.
    """

    name: str
    rows: list[_Row]
    n_more: int
    failure: str


class _Item(NamedTuple):
    """A ground-truth item: what each system made of it, and where it moved."""

    told: ToldRow
    about: str
    moved: str
    said: list[tuple[str, str]]


class _Changed(NamedTuple):
    """A query that changed: its values, and both lists where they are known."""

    name: str
    before: str
    after: str
    change: str
    items: list[_Item]
    n_more_items: int
    sides: list[_Side]
    has_texts: bool


def _changed(comparison: Comparison, n_queries: int) -> Iterator[dict[str, Any]]:
    """Return, per pair, the queries that changed most on the first metric."""
    if not n_queries:
        return
    metric = comparison.metrics[0]
    k = parse_metric(metric)[1]
    telling = _Telling(comparison, k, _room(comparison, k, n_queries))
    # Labels need not be unique; with positions for labels they are.
    numbered = replace(comparison, queries=list(range(len(comparison.queries))))
    for a, b in comparison.pairs:
        table = numbered.changed(metric, a, b, n_queries)
        label = _label(metric, comparison)
        yield {
            "heading": _("{metric}: from {a} to {b}").format(metric=label, a=_name(a), b=_name(b)),
            "a": _name(a),
            "b": _name(b),
            "queries": [
                telling.query(int(place), (a, b), *map(float, values))
                for place, *values in table.itertuples()
            ],
        }


def _room(comparison: Comparison, k: Cutoff, n_queries: int) -> Room:
    """Return how much room each document gets, so that a page stays within bounds."""
    explaining = [_explaining(comparison, name) for name in comparison.compared]
    found = [one.evidence.relevance for one in explaining if one and one.evidence]
    longest = max([int(one.seen_within(k).max(initial=1)) for one in found], default=1)
    n_entries = len(comparison.pairs) * min(n_queries, len(comparison.queries))
    n_documents = 2 * n_entries * min(longest, _MOST_DOCUMENTS)
    width = max(_NARROWEST, min(_WIDEST, _ROOM // max(n_documents, 1)))
    return Room(_QUERY_WIDTH, width, width // 2, ROWS_AT_MOST)


def _unexplained(comparison: Comparison) -> str:
    """Name the systems whose lists are not known."""
    without = [_name(one) for one in comparison.compared if _explaining(comparison, one) is None]
    told = _(
        "What {names} retrieved is not known query by query, so there are values but no lists: the "
        "result was streamed, or its queries were put in another order or left out to compare it."
    )
    return told.format(names=", ".join(without)) if without else ""


def _explaining(comparison: Comparison, name: str) -> EvaluationResult | None:
    """Return the result that can explain what a system retrieved, ``None`` if there is none.

    One whose queries were put in order or left out cannot; the one that was given can.
    """
    for results in (comparison.compared, comparison.given):
        result = results.get(name)
        if result is not None and result.evidence is not None:
            return result
    return None


@dataclass(frozen=True)
class _Telling:
    """What it takes to tell a query that changed."""

    comparison: Comparison
    k: Cutoff
    room: Room

    def query(
        self, place: int, pair: tuple[str, str], before: float, after: float, change: float
    ) -> _Changed:
        """Tell one query of two systems; ``place`` is its place among those that count."""
        explained = [self._explanation(name, place) for name in pair]
        items: list[_Item] = []
        sides: list[_Side] = []
        n_more, has_texts = 0, True
        if explained[0] is not None and explained[1] is not None:
            first = self._told(pair[0], _numbered_like(explained[0], explained[1]))
            second = self._told(pair[1], explained[1])
            items = [_item(*both, first.name, second.name) for both in _both(first, second)]
            n_more = len(second.explanation.items) - len(items)
            sides = [_listed(first, second), _listed(second, first, is_second=True)]
            has_texts = first.has_texts and second.has_texts
        return _Changed(
            name=fitted(str(self.comparison.queries[place]), self.room.query),
            before=number(before),
            after=number(after),
            change=_change(change),
            items=items,
            n_more_items=n_more,
            sides=sides,
            has_texts=has_texts,
        )

    def _explanation(self, name: str, place: int) -> Explanation | None:
        """Return what one system retrieved for a query, ``None`` if it is not known."""
        result = _explaining(self.comparison, name)
        if result is None:
            return None
        if result is not self.comparison.compared[name]:  # only labels that differ can be paired
            return result.explain(self.comparison.queries[place], self.k)
        return result.explain(k=self.k, position=int(np.flatnonzero(result.counted)[place]))

    def _told(self, name: str, explanation: Explanation) -> _Told:
        told = told_query(explanation, self.room)
        result = _explaining(self.comparison, name)
        evidence = None if result is None else result.evidence
        return _Told(
            name=_name(name),
            explanation=explanation,
            items={row.number: row for row in told.ground_truth},
            documents={row.number: row for row in told.predicted},
            has_texts=evidence is not None and evidence.texts is not None,
        )


@dataclass(frozen=True)
class _Told:
    """A query of one system: what it retrieved, in words."""

    name: str
    explanation: Explanation
    items: Mapping[int, ToldRow]
    documents: Mapping[int, ToldRow]
    has_texts: bool

    @cached_property
    def _by_id(self) -> Mapping[str | None, int]:
        return _first_ranks((_id_of(one), one.rank) for one in self.explanation.documents)

    @cached_property
    def _by_text(self) -> Mapping[str | None, int]:
        return _first_ranks((one.text, one.rank) for one in self.explanation.documents)

    @cached_property
    def _by_text_alone(self) -> Mapping[str | None, int]:
        documents = self.explanation.documents
        return _first_ranks((one.text, one.rank) for one in documents if _id_of(one) is None)

    def rank_of(self, document: PredictedDocument) -> int | None:
        """Return where a document of another list stands in this one, ``None`` if nowhere.

        Two documents that have ids are the same if these are; otherwise if their texts are.
        """
        own_id = _id_of(document)
        if own_id is None:
            return self._by_text.get(document.text)
        return self._by_id.get(own_id, self._by_text_alone.get(document.text))


def _first_ranks(known: Iterable[tuple[str | None, int]]) -> Mapping[str | None, int]:
    """Return the best rank of each id or text; what is empty is not told by it."""
    return {one: rank for one, rank in sorted(known, key=lambda pair: -pair[1]) if one}


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
    items = (replace(item, number=new[item.number]) for item in explanation.items)
    documents = (
        replace(
            one,
            matches=tuple(sorted(new[number] for number in one.matches)),
            first_for=tuple(sorted(new[number] for number in one.first_for)),
            piece_of=tuple(sorted(new[number] for number in one.piece_of)),
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


def _both(
    first: _Told, second: _Told
) -> Iterator[tuple[tuple[GroundTruthItem, ToldRow], tuple[GroundTruthItem, ToldRow]]]:
    """Yield the items that are shown, as either system has them."""
    items = {item.number: item for item in first.explanation.items}
    for item in second.explanation.items:
        number = item.number
        if number in first.items and number in second.items:
            yield (items[number], first.items[number]), (item, second.items[number])


def _item(
    before: tuple[GroundTruthItem, ToldRow],
    after: tuple[GroundTruthItem, ToldRow],
    a: str,
    b: str,
) -> _Item:
    """Tell an item; its text is marked where it agrees with what found it."""
    (was, told_before), (now, told_after) = before, after
    told = told_before if told_before.tone == "good" != told_after.tone else told_after
    said = [(a, told_before.said), (b, told_after.said)]
    texts = told.texts if now.alternatives is not None else []
    shown = told._replace(texts=texts, tone=told_after.tone)
    about = _about(pair for alternative in now.about for pair in alternative)
    return _Item(shown, about, _moved(was.first_rank, now.first_rank), said)


def _listed(own: _Told, other: _Told, *, is_second: bool = False) -> _Side:
    """Return a list as it stands beside another."""
    within = own.explanation.documents[: own.explanation.n_seen]
    rows = [
        _row(document, own, other, is_second=is_second)
        for document in within
        if document.rank in own.documents
    ]
    failure = fitted(own.explanation.failure or "", _QUERY_WIDTH)
    return _Side(own.name, rows, len(within) - len(rows), failure)


def _row(document: PredictedDocument, own: _Told, other: _Told, *, is_second: bool) -> _Row:
    told = own.documents[document.rank]
    if document.text is None:
        told = told._replace(texts=[])
    there = other.rank_of(document)
    is_relevant = document.credit != "not relevant"
    if not own.has_texts or not other.has_texts:
        moved = ""
    elif is_relevant:
        before, after = (there, document.rank) if is_second else (document.rank, there)
        moved = _moved(before, after)
    else:
        moved = _("in both lists") if there is not None else ""
    folded = bool(moved) and not is_relevant and bool(told.texts)
    return _Row(told, _about(document.about), moved, folded)


def _moved(before: int | None, after: int | None) -> str:
    """Say how a rank changed."""
    if before is None and after is None:
        return ""
    if before is None:
        return _("new, at rank {}").format(after)
    if after is None:
        return _("lost, was at rank {}").format(before)
    if before == after:
        return _("rank {} in both").format(after)
    return _("rank {} → {}").format(before, after)


def _id_of(document: PredictedDocument) -> str | None:
    return dict(document.about).get("id")


def _about(about: Iterable[tuple[str, str]]) -> str:
    """Return what else is known of a document: its id, its source."""
    return joined(f"{name}: {fitted(value, _ABOUT_WIDTH)}" for name, value in about)


def _change(change: float) -> str:
    """Return a change with its sign; an infinite one is a rank that came to be, or was lost."""
    if math.isinf(change):
        return pgettext("a change", "found") if change < 0 else pgettext("a change", "lost")
    return ("+" if change > 0 else "") + number(change)
