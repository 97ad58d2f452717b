"""Metrics as curves: against the cutoff, the budget, the threshold; and against latency."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import (
    METRICS,
    Advice,
    Average,
    Budget,
    Cutoff,
    InvalidInput,
    Language,
    _,
    averages_of,
    clipped,
    deepest,
    fitted,
    must,
    one_of,
    parse_metric,
    percent,
    resolved_average,
    spelled,
    spoken,
    width_of,
)
from krag_eval.core.scoring.cutoffs import Unit, in_order
from krag_eval.core.scoring.metrics import DEFAULT_METRICS
from krag_eval.plotting import styling

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.comparison.planning import QuestionPlan
    from krag_eval.core import ResultFacts
    from krag_eval.core.results.latency import Latency
    from krag_eval.lab.calibration import Calibration
    from krag_eval.lab.score_cutoffs import ScoreCutoffs

# The mean of every score that is not made of others, and what is drawn where there is none.
_SHOWN = {
    metric.key: f"micro_{metric.name}"
    for metric in DEFAULT_METRICS.values()
    if metric.range == (0, 1) and not metric.of_means
}
# What is drawn against the budget if nothing is named: the first of these that there is.
_HELD = ("macro_token_recall", "micro_token_recall", "macro_recall", "micro_recall")
# What is drawn of several systems against k or latency if nothing is named, likewise.
_BY_RANK = ("ndcg", "macro_recall", "micro_recall")
# Columns of a name, and of one that has room in a legend beside another.
NAME_WIDTH, SIDE_WIDTH = 32, 23
# Budgets to begin with.
_BUDGETS = [500, 1000, 2000]
# How far all documents are from the last cutoff, as a share of the axis up to there, and how many
# times the first cutoff the last one is where the axis becomes logarithmic.
_GAP, _WIDE = 0.2, 20
# Shares of the axis that a letter of a tick takes in a small picture, and the space between two.
_LETTER, _SPACE = 0.034, 0.03


@dataclass(frozen=True)
class Curve:
    """A line to draw: its name, where its values stand, their intervals, and its look."""

    name: str
    places: Sequence[float]
    values: Sequence[float]
    bounds: Sequence[tuple[float, float] | None]
    look: styling.Look

    @classmethod
    def of(
        cls,
        name: str,
        result: ResultFacts,
        key: str,
        places: Mapping[Any, float],
        intervals: pd.DataFrame | None,
        look: styling.Look,
    ) -> Curve:
        """Return the line of an average over cutoffs, which stand at these places."""
        values = [result.averages(k)[key] for k in places]
        bounds = [styling.bounds_of(intervals, f"{key}@{spelled(k)}") for k in places]
        return cls(name, list(places.values()), values, bounds, look)

    @property
    def end(self) -> tuple[float, float]:
        """The last place with a value, and the value; NaN if there is none."""
        ends = zip(reversed(self.places), reversed(self.values), strict=True)
        return next((end for end in ends if not math.isnan(end[1])), (self.places[-1], math.nan))


def line_chart(
    ax: Axes | None,
    lines: Sequence[Curve],
    average: Average | None,
    scale: Callable[[Axes], None],
    below: str,
    title: str,
    beside: str = "",
) -> Axes:
    """Draw lines, each named and numbered at its end.

    Args:
        ax: Where to draw; a new figure if not given.
        lines: The lines.
        average: What they are of, where it has no upper end or a name beside the axis.
        scale: Scales the axis of places.
        below: The name of that axis.
        title: The title.
        beside: The name of the average, if it stands beside the axis.
    """
    ax = styling.axes(ax)
    _draw_lines(ax, lines)
    scale_average(ax, [value for line in lines for value in line.values], average, beside)
    scale(ax)
    _name_ends(ax, lines)
    ax.set_xlabel(below)
    return styling.titled(ax, title, 12)


@spoken
def cutoff_curves(
    result: ResultFacts | Mapping[str, ResultFacts],
    metrics: str | Iterable[str] | None = None,
    ax: Axes | None = None,
    *,
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    language: Language | None = None,
) -> Axes:
    """Draw averages against the cutoff k, one line each, named and numbered at its end.

    Of several systems, one average is drawn with a line for each system, at the cutoffs that it
    was evaluated at. Cutoffs stand at their numbers, on a logarithmic axis if the last is more than
    20 times the first, and all retrieved documents after a gap. Budgets are left out, see
    :func:`budget_curves`; of a result alone they are drawn, likewise, only where there is no k.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned, best with several cutoffs; or
            up to seven of them by name.
        metrics: Averages without their cutoffs, ``"ndcg"`` or ``["macro_recall", "mrr"]``; up to
            seven, and one of several systems. If not given: hit rate, recall, precision, MRR, MAP
            and nDCG, of several systems nDCG.
        ax: Where to draw; a new figure if not given.
        intervals: What ``result.confidence_intervals()`` returned, drawn as bands; of several
            systems, name -> such a table.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If ``result`` is neither a result nor a mapping to results.
        InvalidInput: If a metric is not in the result, there are too many metrics or systems,
            ``mean_rank`` is to share an axis with scores, or ``intervals`` lack a metric.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> first = OfflineRetrievalEvaluator([["a"]], [["x", "a"]]).evaluate([1, 2])
    >>> second = OfflineRetrievalEvaluator([["a"]], [["a", "x"]]).evaluate([1, 5])
    >>> ax = cutoff_curves({"first": first, "second": second}, "mrr")
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '2', '5']
    >>> {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    {'first': [[1.0, 0.0], [2.0, 0.5]], 'second': [[1.0, 1.0], [5.0, 1.0]]}
    """
    systems = styling.systems_of(result, "result")
    if "" not in systems:
        by_rank = _cutoffs_of(systems, "result", budgets=False)
        key = _average_of_all(systems, by_rank, _only(metrics), "metrics", _BY_RANK)
        title, below = _("{metric} against k ({queries})"), _("Cutoff k")
        return _systems_chart(ax, systems, by_rank, key, intervals, title, below, _scale_cutoffs)
    (result,) = systems.values()
    (table,) = styling.intervals_of(intervals, systems).values() or (None,)
    ranks = [k for k in result.k if not isinstance(k, Budget)]
    cutoffs = in_order(ranks or result.k)
    known = tuple(result.averages(cutoffs[0]))
    unbounded = _unbounded(known, result.definitions)
    keys = checked_averages(metrics, known, unbounded, default=_shown(known))
    places = _places_of(cutoffs)
    lines = [
        Curve.of(_name_of(key, result), result, key, places, table, look)
        for key, look in zip(keys, styling.looks_of(keys), strict=True)
    ]
    title, below = _("Metrics against k ({queries})"), _("Cutoff k")
    if not ranks:
        title, below = _("Metrics against the budget ({queries})"), _budget_axis(cutoffs, result)
    title = title.format(queries=styling.queries_of(result))
    average, scale = unbounded.get(keys[0]), partial(_scale_cutoffs, places=places)
    return line_chart(ax, lines, average, scale, below, title)


def _systems_chart(
    ax: Axes | None,
    systems: Mapping[str, ResultFacts],
    cutoffs: Mapping[str, Sequence[Cutoff]],
    key: str,
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None,
    title: str,
    below: str,
    scale: Callable[..., None],
) -> Axes:
    """Draw one average with a line for each system, at the cutoffs of each."""
    tables = styling.intervals_of(intervals, systems)
    places = _places_of(in_order({k for known in cutoffs.values() for k in known}))
    average, label = known_of(key, systems)
    lines = [
        Curve.of(fitted(name, NAME_WIDTH) or label, result, key,
                 {k: places[k] for k in cutoffs[name]}, tables.get(name), look)
        for (name, result), look in zip(systems.items(), _looks(systems, key), strict=False)
    ]  # fmt: skip
    title = title.format(metric=label, queries=styling.queries_of_all(systems))
    return line_chart(ax, lines, average, partial(scale, places=places), below, title, label)


def _cutoffs_of(
    systems: Mapping[str, ResultFacts], argument: str, *, budgets: bool
) -> dict[str, list[Any]]:
    """Return the budgets of each system, or the other cutoffs, the smallest first.

    Raises:
        InvalidInput: If a system has none.
    """
    wanted, advice = "a k", Advice("evaluate with {}, or draw budget_curves", k=[1, 3, 5, 10])
    if budgets:
        wanted, advice = "a budget", Advice("evaluate with {}", budget=_BUDGETS)
    known = {
        name: [k for k in in_order(one.k) if isinstance(k, Budget) == budgets]
        for name, one in systems.items()
    }
    for name, there in known.items():
        if not there:
            problem = f"must have {wanted} among the cutoffs"
            raise InvalidInput(argument, problem, advice, within=_within(name))
    return known


def _only(metrics: str | Iterable[str] | None) -> str | None:
    """Return the average to draw of several systems."""
    if metrics is None or isinstance(metrics, str):
        return metrics
    asked = list(metrics)
    if len(asked) != 1:
        problem = f"must name one average where there are several systems, got {len(asked)}"
        raise InvalidInput("metrics", problem)
    return asked[0]


def known_of(key: str, systems: Mapping[str, ResultFacts]) -> tuple[Average, str]:
    """Return what is known of an average, and what it is called."""
    first = next(iter(systems.values()))
    return first.definitions[key], styling.metric_label(key, first)


def _looks(systems: Iterable[str], key: str) -> Sequence[styling.Look]:
    """Return a look for each system; a result without a name has that of the metric."""
    return styling.looks_of([key]) if "" in systems else styling.LINES


def _places_of(cutoffs: Sequence[Cutoff]) -> dict[Cutoff, float]:
    """Return where cutoffs stand on their axis: at their number, all documents after a gap.

    Budgets that do not count the same share no scale, and stand at even distances.

    >>> _places_of([1, 6, None])
    {1: 1.0, 6: 6.0, None: 7.0}
    """
    if len({k.unit for k in cutoffs if isinstance(k, Budget)}) > 1:
        return {k: float(place) for place, k in enumerate(cutoffs)}
    places: dict[Cutoff, float]
    places = {k: float(k.amount if isinstance(k, Budget) else k) for k in cutoffs if k is not None}
    if None in cutoffs:
        low, high = min(places.values(), default=0.0), max(places.values(), default=0.0)
        beyond = high * (high / low) ** _GAP if _is_wide(places) else high + _GAP * (high - low)
        places[None] = beyond if beyond > high else high + 1.0
    return places


def _is_wide(places: Mapping[Cutoff, float]) -> bool:
    """Tell whether the small cutoffs would stand upon each other on a linear axis."""
    numbers = [place for k, place in places.items() if k is not None]
    return min(numbers, default=0.0) > 0 and max(numbers) > _WIDE * min(numbers)


def _scale_cutoffs(ax: Axes, places: Mapping[Cutoff, float]) -> None:
    """Scale the axis of cutoffs, with a tick at each, and its number where there is room."""
    wide = _is_wide(places)
    onto, back = (math.log, math.exp) if wide else (float, float)
    ax.set_xscale("log" if wide else "linear")
    low, high = onto(min(places.values())), onto(max(places.values()))
    length = high - low or 1.0
    names = {place: _tick(k, places) for k, place in places.items()}
    named = with_room(names, {place: (onto(place) - low) / length for place in names})
    others = sorted({*names}.difference(named))
    ax.set_xticks(named, [names[place] for place in named])
    ax.set_xticks(others, [""] * len(others), minor=True)
    ax.set_xlim(back(low - 0.04 * length), back(high) if high > low else back(high) + 0.5)
    numbers = [place for k, place in places.items() if k is not None]
    if None in places and numbers:  # the axis ends where its numbers do
        ax.spines["bottom"].set_bounds(ax.get_xlim()[0], max(numbers))


def _tick(k: Cutoff, places: Iterable[Cutoff]) -> str:
    """Return what stands below a tick: a number, with its unit where there are several."""
    if not isinstance(k, Budget):
        return _("all") if k is None else str(k)
    units = {other.unit for other in places if isinstance(other, Budget)}
    if len(units) == 1:
        return f"{k.amount:,}"
    names = {"w": _("{:,}\nwords"), "c": _("{:,}\ncharacters"), "t": _("{:,}\nunits")}
    return names[k.unit].format(k.amount)


def with_room(names: Mapping[float, str], shares: Mapping[float, float]) -> list[float]:
    """Return the places whose names do not touch: the ends, and as many between as there can be."""
    widths = {place: max(map(width_of, name.split("\n"))) for place, name in names.items()}
    named: list[float] = []
    downwards = sorted(names, reverse=True)
    for place in [*downwards[:2], downwards[-1], *downwards]:
        if all(
            abs(shares[place] - shares[other])
            >= _SPACE + _LETTER * (widths[place] + widths[other]) / 2
            for other in named
        ):
            named.append(place)
    return sorted(named)


@spoken
def budget_curves(
    results: ResultFacts | Mapping[str, ResultFacts],
    metric: str | None = None,
    ax: Axes | None = None,
    *,
    unit: Unit | None = None,
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    language: Language | None = None,
) -> Axes:
    """Draw an average against the budget, one line per system, named and numbered at its end.

    How much of the ground truth so many words hold, however they are cut into documents: what to
    choose a chunk size by. Budgets stand on a scale from 0, each system at those it was evaluated
    at; its name is at the largest.

    Args:
        results: A result with budgets, best with several, or up to seven by name.
        metric: An average without its cutoff, such as ``"macro_recall"``. If not given: token
            recall where the matcher counts words, recall otherwise.
        ax: Where to draw; a new figure if not given.
        unit: Which budgets to draw, if not all count the same: ``"w"`` for words, ``"c"`` for
            characters, ``"t"`` for the function's.
        intervals: What ``result.confidence_intervals()`` returned, drawn as a band; of several
            systems, name -> such a table.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If ``results`` is neither a result nor a mapping to results.
        InvalidInput: If a result has no budget or not the metric, the budgets share no axis, there
            are too many systems, or ``intervals`` are not of them.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> actual, retrieved = [["the cat sat"]], [["a dog barked", "the cat sat"]]
    >>> evaluator = OfflineRetrievalEvaluator(actual, retrieved, matcher="coverage")
    >>> ax = budget_curves({"dogs first": evaluator.evaluate(budget=[3, 6])})
    >>> ax.get_title(loc="left"), ax.lines[0].get_xydata().tolist()
    ('Macro token recall against the budget (1 query)', [[3.0, 0.0], [6.0, 1.0]])
    """
    systems = styling.systems_of(results)
    budgets = _budgets_of(systems, unit)
    key = _average_of_all(systems, budgets, metric)
    title = _("{metric} against the budget ({queries})")
    below = _budget_axis(next(iter(budgets.values())), next(iter(systems.values())))
    return _systems_chart(ax, systems, budgets, key, intervals, title, below, _scale_budgets)


def _budget_axis(budgets: Iterable[Cutoff], result: ResultFacts) -> str:
    """Name an axis of budgets, and what they are counted in if it is one thing."""
    units = {k.unit for k in budgets if isinstance(k, Budget)}
    if len(units) > 1:
        return _("Budget")
    measure = fitted(result.settings.get("length", "").partition("#")[0], NAME_WIDTH)
    return {
        "w": _("Budget in words"),
        "c": _("Budget in characters"),
        "t": _("Budget, measured by {length}").format(length=measure),
    }[units.pop()]


@spoken
def latency_points(
    results: ResultFacts | Mapping[str, ResultFacts],
    metric: str | None = None,
    ax: Axes | None = None,
    *,
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    language: Language | None = None,
) -> Axes:
    """Draw an average against the time an answer took, one point per system, with a legend.

    A point stands at the median of the seconds, with a line to the 95th percentile. What is worth
    its time stands high and to the left.

    Args:
        results: A result, or up to seven by name. Those that krag_eval did not ask have no latency:
            they are named below the axis.
        metric: An average with its cutoff, such as ``"ndcg@10"``. If not given: nDCG at the
            deepest cutoff that all have.
        ax: Where to draw; a new figure if not given.
        intervals: What ``result.confidence_intervals()`` returned, drawn as a line up and down; of
            several systems, name -> such a table.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If ``results`` is neither a result nor a mapping to results.
        InvalidInput: If no result has a latency, one lacks the metric, or there are too many.

    >>> from krag_eval import evaluate_retriever
    >>> from krag_eval.datasets import demo_dataset
    >>> data = demo_dataset()
    >>> answers = dict(zip(data.queries, data.predicted, strict=True))
    >>> result = evaluate_retriever(answers.get, data, k=[1, 3], matcher="coverage")
    >>> ax = latency_points({"from memory": result})
    >>> ax.get_title(loc="left")
    'nDCG at k = 3 against latency (28 queries)'
    """
    systems = styling.systems_of(results)
    key, k = average_at(systems, metric)
    tables = styling.intervals_of(intervals, systems)
    times = _times_of(systems)
    per_second, told = in_time(
        [one.p50 for one in times.values()],
        _("Seconds per query: the median, and a line to the 95th percentile"),
        _("Milliseconds per query: the median, and a line to the 95th percentile"),
    )
    values = {name: systems[name].averages(k)[key] for name in times}
    average, label = known_of(key, systems)
    lines = [
        Curve(
            name=f"{fitted(name, NAME_WIDTH) or label} ({styling.value_label(values[name])})",
            places=[time.p50 * per_second],
            values=[values[name]],
            bounds=[styling.bounds_of(tables.get(name), f"{key}@{spelled(k)}")],
            look=look,
        )
        for (name, time), look in zip(times.items(), _looks(times, key), strict=False)
    ]
    ax = styling.axes(ax)
    _draw_reach(ax, lines, [time.p95 * per_second for time in times.values()])
    _draw_lines(ax, lines)
    scale_average(ax, list(values.values()), average, label)
    ax.set_xlim(left=0)
    missing = ", ".join(fitted(name, NAME_WIDTH) for name in systems if name not in times)
    told += "\n" + _("not measured: {}").format(missing) if missing else ""
    ax.set_xlabel(told)
    title = _("{metric} {cutoff} against latency ({queries})").format(
        metric=label, cutoff=styling.cutoff_words(k), queries=styling.queries_of_all(systems)
    )
    return styling.with_legend(ax, title)


def in_time(seconds: Iterable[float], told: str, told_in_ms: str) -> tuple[int, str]:
    """Return what to multiply seconds by, and the name of the axis: from one second on, seconds."""
    return (1, told) if max(seconds) >= 1 else (1000, told_in_ms)


def average_at(systems: Mapping[str, ResultFacts], metric: str | None) -> tuple[str, Cutoff]:
    """Return the average to draw and its cutoff, which every system must have."""
    from krag_eval.comparison.comparable import checked_metrics

    if metric is None:
        k = styling.deepest_of_all(systems)
        return _average_of_all(systems, {name: [k] for name in systems}, None, first=_BY_RANK), k
    (found,) = checked_metrics(systems, [metric]).values()
    return found


def _times_of(systems: Mapping[str, ResultFacts]) -> dict[str, Latency]:
    """Return how long the answers of each system took, where it was measured."""
    runs = {name: one.retrieval for name, one in systems.items()}
    times = {name: run.latency for name, run in runs.items() if run is not None}
    measured = {name: time for name, time in times.items() if not math.isnan(time.p50)}
    if not measured:
        fix = "let krag_eval ask the retrievers: evaluate_retrievers({…}, dataset)"
        raise InvalidInput("results", ": no latency of any of them is known", fix)
    return measured


def _draw_reach(ax: Axes, points: Sequence[Curve], ends: Sequence[float]) -> None:
    """Draw a line from each point to where most answers had come, and one along its interval."""
    for point, end in zip(points, ends, strict=True):
        (place,), (value,), (bounds,) = point.places, point.values, point.bounds
        colour = point.look.colour
        ax.plot([place, end], [value, value], color=colour, linewidth=1, alpha=0.6)
        if bounds is not None:
            ax.plot([place, place], bounds, color=colour, linewidth=1, alpha=0.6)


def _budgets_of(systems: Mapping[str, ResultFacts], unit: Unit | None) -> dict[str, list[Budget]]:
    """Return each system's budgets of one unit, the smallest first.

    Raises:
        InvalidInput: If a system has no such budget, or the unit is not clear.
    """
    known = _cutoffs_of(systems, "results", budgets=True)
    units = set.intersection(*({k.unit for k in budgets} for budgets in known.values()))
    if unit is not None:
        units &= {one_of("unit", unit, get_args(Unit))}
    if len(units) != 1:
        there = dict.fromkeys(spelled(k) for budgets in known.values() for k in budgets)
        problem = f": an axis shows budgets of one unit that all have; there are {', '.join(there)}"
        fix = Advice("evaluate all with the same, such as {}", budget=_BUDGETS)
        if units:
            fix = Advice("choose one, such as {} for words", unit="w")
        raise InvalidInput("unit" if units or unit is not None else "results", problem, fix)
    if units == {"t"} and len({one.settings.get("length") for one in systems.values()}) > 1:
        raise InvalidInput("results", ": their budgets are counted by different functions")
    return {name: [k for k in budgets if k.unit in units] for name, budgets in known.items()}


def _within(name: str) -> str:
    return f" of {clipped(name)}" if name else ""


def _average_of_all(
    systems: Mapping[str, ResultFacts],
    cutoffs: Mapping[str, Sequence[Cutoff]],
    metric: str | None,
    argument: str = "metric",
    first: Sequence[str] = _HELD,
) -> str:
    """Return the average to draw, which every system must have.

    Args:
        systems: Name -> result.
        cutoffs: Name -> the cutoffs to draw.
        metric: The average that was asked for.
        argument: The argument it came in.
        first: What to draw if none was; otherwise anything there is.
    """
    known = {name: list(one.averages(cutoffs[name][0])) for name, one in systems.items()}
    if metric is None:
        candidates = [*first, *next(iter(known.values()))]
        shared = (key for key in candidates if all(key in keys for keys in known.values()))
        metric = next(shared, candidates[len(first)])
    key = metric
    for name, result in systems.items():
        try:
            key = resolved_average(argument, metric, known[name], result.keys)
        except InvalidInput as error:
            raise InvalidInput(argument, error.problem, error.fix, within=_within(name)) from None
    return key


def _scale_budgets(ax: Axes, places: Mapping[Cutoff, float]) -> None:
    """Let an axis run from 0 to the largest budget, with a tick at each that has room for one."""
    most = max(places.values())
    names = {place: f"{place:,.0f}" for place in (0.0, *places.values())}
    named = with_room(names, {place: place / most for place in names})
    ax.set_xlim(0, most)
    ax.set_xticks(named, [names[place] for place in named])


@spoken
def threshold_curves(
    averages: ResultFacts | pd.DataFrame | pd.Series[float],
    threshold: float | None = None,
    ax: Axes | None = None,
    *,
    metrics: str | Iterable[str] | None = None,
    language: Language | None = None,
) -> Axes:
    """Draw averages against the matcher's threshold, from similarities that were kept.

    The threshold in use is a vertical line, and the legend has each average at it. A threshold is
    chosen by looking at labelled pairs (``calibrate``), not by what makes a retriever look best.

    Args:
        averages: What ``result.metrics_at_thresholds(…)`` returned, or one column of it, or the
            result itself.
        threshold: The threshold to mark; that of a result need not be given.
        ax: Where to draw; a new figure if not given.
        metrics: Columns to draw, up to seven; of a result, any averages with their cutoffs
            (``"macro_recall@5"``). All columns but ``mean_rank`` if not given, and of a result
            recall, precision, MRR and nDCG at its deepest cutoff.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If these are several results; draw each on an ``ax`` of its own.
        InvalidInput: If a metric is not there, there are too many, or ``mean_rank`` is to share an
            axis with scores; of a result, if its matcher takes no threshold.
    """
    styling.check_alone("averages", averages)
    result, table, threshold = _table_of(averages, threshold, metrics)
    known = [str(name) for name in table.columns]
    definitions = averages_of(METRICS.values())
    unbounded = _unbounded(known, definitions)
    keys = checked_averages(metrics, known, unbounded)
    marked = None if threshold is None else float(threshold)
    ax = styling.axes(ax)
    lines = {key: [float(value) for value in table[key]] for key in keys}
    places = [float(place) for place in table.index]
    cutoff, names = named_together(keys, result)
    for (key, values), look in zip(lines.items(), styling.looks_of(keys), strict=True):
        at_mark = values[places.index(marked)] if marked in places else None
        told = "" if at_mark is None else f" ({styling.value_label(at_mark)})"
        average = None if key in unbounded else definitions.get(key.partition("@")[0])
        name = styling.with_direction(names[key], average)
        ax.plot(places, values, label=f"{name}{told}", **look.line)
        if marked is not None and at_mark is not None:
            ax.plot([marked], [at_mark], color=look.colour, marker=look.marker, markersize=6,
                    markerfacecolor=styling.PAPER if look.hollow else look.colour)  # fmt: skip
    if marked is not None:
        name = _("Threshold in use: {:.4g}").format(marked)
        ax.axvline(marked, color=styling.INK, linewidth=1, linestyle=":", label=name, zorder=1)
    scale_average(ax, [one for line in lines.values() for one in line], unbounded.get(keys[0]))
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(_("Similarity from which a pair is a match (threshold)"))
    columns = 1 if max(width_of(str(line.get_label())) for line in ax.lines) > SIDE_WIDTH else 2
    title = _("Metrics against the threshold")
    if cutoff:
        title = _("Metrics {cutoff} against the threshold").format(cutoff=cutoff)
    return styling.with_legend(ax, title, columns)


def named_together(
    averages: Sequence[str], result: ResultFacts | None = None
) -> tuple[str, dict[str, str]]:
    """Return the cutoff for a title if all have the same, else nothing; and the lines' names."""
    try:
        parsed = {one: parse_metric(one) for one in averages}
    except InvalidInput:  # not an average, in a table of the user's own
        parsed = {}
    cutoffs = {k for _, k in parsed.values()}
    if len(cutoffs) != 1:
        return "", {one: styling.average_name(one, result) for one in averages}
    names = {one: styling.metric_label(name, result) for one, (name, _) in parsed.items()}
    return styling.cutoff_words(cutoffs.pop()), names


def _table_of(
    averages: ResultFacts | pd.DataFrame | pd.Series[float],
    threshold: float | None,
    metrics: str | Iterable[str] | None,
) -> tuple[ResultFacts | None, pd.DataFrame, float | None]:
    from krag_eval.core import ResultFacts

    if isinstance(averages, ResultFacts):
        if metrics is None:
            k = deepest(averages.k)
            metrics = [f"{key}@{spelled(k)}" for key in list(_SHOWN)[1:]]
        table = averages.metrics_at_thresholds(metrics)
        return averages, table, averages.threshold if threshold is None else threshold
    import pandas as pd

    return None, pd.DataFrame(averages), threshold  # a single column becomes a table of one


def _unbounded(known: Iterable[str], definitions: Mapping[str, Average]) -> dict[str, Average]:
    """Return the averages that are not on a scale with an upper end, as ranks."""
    of_key = {name: definitions.get(name.partition("@")[0]) for name in known}
    return {name: one for name, one in of_key.items() if one is not None and one.is_unbounded}


def checked_averages(
    metrics: str | Iterable[str] | None,
    known: Sequence[str],
    unbounded: Mapping[str, Average],
    default: Sequence[str] = (),
) -> list[str]:
    """Return the metrics to draw: known, not too many, of one unit."""
    if metrics is None:
        scores = [key for key in known if key not in unbounded]
        return list(default or scores or known)[: styling.MOST_LINES]
    asked = [metrics] if isinstance(metrics, str) else list(metrics)
    keys = [resolved_average("metrics", key, known) for key in asked]
    if not 1 <= len(keys) <= styling.MOST_LINES:
        be = f"name 1 to {styling.MOST_LINES} averages (more cannot be told apart)"
        raise must("metrics", be, len(keys))
    ranks = [key for key in keys if key in unbounded]
    if ranks and (len(ranks) < len(keys) or len({unbounded[key].key for key in ranks}) > 1):
        problem = f": {ranks[0]!r} has no upper end and shares no axis with other metrics"
        raise InvalidInput("metrics", problem, "draw it on its own")
    return keys


def _shown(known: Sequence[str]) -> list[str]:
    """Return what is drawn of what there is; micro averages only where there are no macro ones."""
    shown = [key if key in known else micro for key, micro in _SHOWN.items()]
    return [key for key in shown if key in known]


def _name_of(key: str, result: ResultFacts) -> str:
    """Return the name of a line among scores; ranks have an axis that says which way is better."""
    name, average = styling.metric_label(key, result), result.definitions[key]
    return name if average.is_unbounded else styling.with_direction(name, average)


def _draw_lines(ax: Axes, lines: Sequence[Curve]) -> None:
    """Draw lines with their bands, each with a look of its own."""
    for line in lines:
        colour, marker, dashes, hollow = line.look
        ax.plot(line.places, line.values, color=colour, marker=marker, linestyle=dashes,
                markersize=5, label=line.name, clip_on=False,
                markerfacecolor=styling.PAPER if hollow else colour)  # fmt: skip
        known = [(place, *bound) for place, bound in zip(line.places, line.bounds, strict=True)
                 if bound is not None]  # fmt: skip
        if known:
            places, lows, highs = zip(*known, strict=True)
            ax.fill_between(places, lows, highs, color=colour, alpha=0.13, linewidth=0)


def scale_average(
    ax: Axes, values: Sequence[float], average: Average | None, name: str | None = None
) -> None:
    """Let the axis of values run from 0 to 1; that of an average without upper end, further."""
    if average is not None and average.is_unbounded and average.range is not None:
        low, _ = average.range
        ax.set_ylim(low, max([value for value in values if value > low], default=2.0) * 1.05)
        ax.set_ylabel(styling.with_direction(fitted(average.label(), 32), average))
        styling.finish(ax, "y")
    else:
        styling.draw_score_axis(ax, values, "y")
    if name:
        ax.set_ylabel(styling.with_direction(fitted(name, NAME_WIDTH), average))


def _name_ends(ax: Axes, lines: Sequence[Curve]) -> None:
    """Write each line's name and last value to the right of it, one below the other."""
    low, high = ax.get_ylim()
    ends = [line.end for line in lines]
    heights = [low if math.isnan(value) else value for _, value in ends]
    apart = _apart(heights, 0.052 * (high - low), low)
    for line, (place, value), height in zip(lines, ends, apart, strict=True):
        leader = {"arrowstyle": "-", "color": line.look.colour, "alpha": 0.6, "shrinkA": 1,
                  "shrinkB": 5, "linewidth": 0.8, "relpos": (0, 0.5)}  # fmt: skip
        ax.annotate(
            f"{line.name} {styling.value_label(value)}",
            (place, low if math.isnan(value) else value),
            (1.03, height),
            xycoords="data",
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            annotation_clip=False,
            arrowprops=None if math.isnan(value) else leader,
        )


def _apart(places: Sequence[float], gap: float, lowest: float) -> list[float]:
    """Move places apart by at least a gap, each as little as the others allow.

    >>> _apart([0.5, 0.5, 0.9], 0.1, 0.0)
    [0.45, 0.55, 0.9]
    """
    groups: list[list[int]] = []
    for place in sorted(range(len(places)), key=lambda one: places[one]):
        groups.append([place])
        while len(groups) > 1:
            below, above = groups[-2:]
            if _span(below, places, gap, lowest)[1] + gap <= _span(above, places, gap, lowest)[0]:
                break
            groups[-2:] = [below + above]
    moved = [0.0] * len(places)
    for group in groups:
        start = _span(group, places, gap, lowest)[0]
        for step, place in enumerate(group):
            moved[place] = start + step * gap
    return moved


def _span(
    group: Sequence[int], places: Sequence[float], gap: float, lowest: float
) -> tuple[float, float]:
    """Return where a group of neighbours begins and ends, centred on what it belongs to."""
    half = (len(group) - 1) * gap / 2
    centre = max(math.fsum(places[one] for one in group) / len(group), lowest + half)
    return centre - half, centre + half


def calibration_curve(calibration: Calibration, ax: Axes | None = None) -> Axes:
    """Draw precision, recall and F1 of a matcher's decision against its threshold.

    The best threshold is marked with a line, its confidence interval with a band; where thresholds
    separate all pairs, the band is of these.

    Args:
        calibration: What ``calibrate`` returned.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.
    """
    ax = styling.axes(ax)
    curve = calibration.curve
    decision = ["precision", "recall", "f1"]
    for name, look in zip(decision, styling.looks_of(decision), strict=True):
        # From high to low: a value holds down to the next similarity.
        ax.plot(curve["threshold"], curve[name], drawstyle="steps-post",
                label=styling.metric_label(name), **look.line)  # fmt: skip
    low, high = calibration.gap or calibration.interval
    label = _("Separates all pairs")
    if calibration.gap is None:
        label = interval_of(calibration.level)
    ax.axvspan(low, high, color=styling.FAINT, alpha=0.25, label=label)
    best = calibration.best_threshold
    label = _("Best threshold {:.2f}").format(best)
    ax.axvline(best, color=styling.INK, linewidth=1, label=label)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02), xlabel=_("Threshold"))
    title = _("Decision of {matcher} on {pairs} pairs").format(
        matcher=fitted(calibration.matcher, 50), pairs=len(calibration.relevant)
    )
    styling.finish(ax, "both")
    return styling.with_legend(ax, title, columns=3)


def score_cutoff_curve(found: ScoreCutoffs, ax: Axes | None = None) -> Axes:
    """Draw recall and abstention against the score cutoff, and where the best one is.

    Args:
        found: What ``result.score_cutoffs`` returned.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.
    """
    ax = styling.axes(ax)
    lines = {"recall": f"{styling.metric_label('macro_recall')} @{spelled(found.k)}"}
    if found.best is not None:
        lines["abstention"] = _("Abstention")
    for (name, label), look in zip(lines.items(), styling.looks_of(lines), strict=True):
        ax.plot(found.cutoffs, getattr(found, name), marker=".", label=label, **look.line)
    if found.best is not None:
        label = _("Best cutoff {:.4g}").format(found.best)
        ax.axvline(found.best, color=styling.INK, linewidth=1, label=label)
    ax.set(ylim=(0.0, 1.02), xlabel=_("Score cutoff"))
    title = _("{answerable} queries with ground truth, {unanswerable} without").format(
        answerable=found.n_answerable, unanswerable=found.n_unanswerable
    )
    styling.finish(ax, "both")
    return styling.with_legend(ax, title, columns=3)


def planning_curve(plan: QuestionPlan, ax: Axes | None = None) -> Axes:
    """Draw the difference that can be shown against the number of questions.

    The pilot is a hollow point, what the plan asks for a filled one.

    Args:
        plan: What ``plan_questions`` returned.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.
    """
    ax = styling.axes(ax)
    curve, look = plan.curve, styling.looks_of([plan.metric])[0]
    ax.plot(curve["questions"], curve["detectable"], color=look.colour)
    pilot = _("Pilot: {difference} with {questions:,} questions")
    planned = _("Plan: {difference} with {questions:,} questions")
    points = {
        pilot: (plan.spread.n, plan.detectable, styling.PAPER),
        planned: (plan.questions, plan.detect, look.colour),
    }
    for told, (questions, detectable, fill) in points.items():
        name = told.format(questions=questions, difference=f"{detectable:.2g}")
        ax.plot([questions], [detectable], color=look.colour, marker="o", markersize=7,
                linestyle="", markerfacecolor=fill, label=name)  # fmt: skip
    ax.axhline(plan.detect, color=styling.INK, linewidth=1, linestyle=":", zorder=1)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    styling.finish(ax, "y")
    ax.set_xlabel(_("Questions"))
    ax.set_ylabel(_("Smallest difference that can be shown"))
    power, alpha = percent(plan.power), percent(plan.alpha)
    title = _("What can be shown on {metric} (power {power}, alpha {alpha})").format(
        metric=styling.average_name(plan.metric), power=power, alpha=alpha
    )
    return styling.with_legend(ax, title)
