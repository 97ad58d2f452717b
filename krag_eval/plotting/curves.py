"""Metrics as curves: against the cutoff, against the budget, against the threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from krag_eval._errors import Advice, InvalidInput, InvalidType, clipped, one_of
from krag_eval._text import fitted
from krag_eval.plotting.styling import (
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    Language,
    bounds_of,
    checked_language,
    draw_score_axis,
    finish,
    legend_above,
    make_readable,
    metric_name,
    new_axes,
    percent,
    queries_of,
    value_label,
    with_direction,
    word,
)
from krag_eval.scoring.averages import Average
from krag_eval.scoring.cutoffs import Budget, Unit, deepest, in_order, spelled
from krag_eval.scoring.metrics import DEFAULT_METRICS, METRICS, averages_of, resolved_average

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.calibration import Calibration
    from krag_eval.results.result import EvaluationResult

__all__ = [
    "MOST_LINES",
    "budget_curves",
    "calibration_curve",
    "cutoff_curves",
    "threshold_curves",
]

# The mean of every score that is not made of others, and what is drawn where there is none.
_SHOWN = {
    metric.key: f"micro_{metric.name}"
    for metric in DEFAULT_METRICS.values()
    if metric.range == (0, 1) and not metric.of_means
}
#: Lines that can be told apart in one picture.
MOST_LINES = len(LINES)
# What is drawn against the budget if nothing is named: the first of these that there is.
_HELD = ("macro_token_recall", "micro_token_recall", "macro_recall", "micro_recall")
# Columns of a name, and the share of an axis that two ticks are apart at least.
_WIDTH, _TICK = 32, 0.09


@dataclass(frozen=True)
class _Curve:
    """A line to draw: its name, where its values stand, and their intervals."""

    name: str
    places: Sequence[float]
    values: Sequence[float]
    bounds: Sequence[tuple[float, float] | None]

    @property
    def end(self) -> tuple[float, float]:
        """The last place with a value, and the value; NaN if there is none."""
        ends = zip(reversed(self.places), reversed(self.values), strict=True)
        return next((end for end in ends if not math.isnan(end[1])), (self.places[-1], math.nan))


def cutoff_curves(
    result: EvaluationResult,
    metrics: str | Iterable[str] | None = None,
    ax: Axes | None = None,
    *,
    intervals: pd.DataFrame | None = None,
    language: Language = "en",
) -> Axes:
    """Draw averages against the cutoff k, one line each, named and numbered at its end.

    Cutoffs stand at even distances, all retrieved documents after the others. Budgets are left
    out, see :func:`budget_curves`; they are drawn, likewise, only where there is no k.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned, best with several cutoffs.
        metrics: Averages without their cutoffs, ``"ndcg"`` or ``["macro_recall", "mrr"]``; up to
            seven. If not given: hit rate, recall, precision, MRR, MAP and nDCG.
        ax: Where to draw; a new figure if not given.
        intervals: What ``result.confidence_intervals()`` returned, drawn as bands.
        language: ``"en"`` or ``"ko"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidInput: If a metric is not in the result, there are too many, ``mean_rank`` is to
            share an axis with scores, or ``intervals`` lack a metric.
    """
    language = checked_language(language)
    by_rank = [k for k in result.k if not isinstance(k, Budget)]
    cutoffs = in_order(by_rank or result.k)
    averages = {k: result.averages(k) for k in cutoffs}
    known = tuple(averages[cutoffs[0]])
    unbounded = _unbounded(known, result.definitions)
    keys = _checked(metrics, known, unbounded, default=_shown(known))
    lines = [
        _Curve(
            name=_name_of(key, result, language),
            places=range(len(cutoffs)),
            values=[averages[k][key] for k in cutoffs],
            bounds=[bounds_of(intervals, f"{key}@{spelled(k)}") for k in cutoffs],
        )
        for key in keys
    ]
    ax = new_axes() if ax is None else ax
    _draw_lines(ax, lines)
    _scale(ax, [line.values for line in lines], unbounded.get(keys[0]), language)
    _name_ends(ax, lines)
    names = [word("all", language) if k is None else spelled(k) for k in cutoffs]
    ax.set_xticks(range(len(cutoffs)), names)
    ax.set_xlim(-0.15, max(len(cutoffs) - 1, 0.5))
    ax.set_xlabel(word("k" if by_rank else "budgets", language))
    title = word("against k" if by_rank else "against budgets", language)
    title = title.format(queries=queries_of(result, language))
    ax.set_title(title, loc="left", pad=12)
    make_readable(ax)
    return ax


def budget_curves(
    results: EvaluationResult | Mapping[str, EvaluationResult],
    metric: str | None = None,
    ax: Axes | None = None,
    *,
    unit: Unit | None = None,
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    language: Language = "en",
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
        language: ``"en"`` or ``"ko"``.

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
    language = checked_language(language)
    systems = _systems_of(results)
    budgets = _budgets_of(systems, unit)
    key = _average_of_all(systems, budgets, metric)
    tables = _intervals_of(intervals, systems)
    first = next(iter(systems.values()))
    average, label = first.definitions[key], metric_name(key, language, first)
    queries = list(dict.fromkeys(queries_of(one, language) for one in systems.values()))
    lines = [
        _Curve(
            name=label if systems is not results else fitted(name, _WIDTH),
            places=[k.amount for k in budgets[name]],
            values=[result.averages(k)[key] for k in budgets[name]],
            bounds=[bounds_of(tables.get(name), f"{key}@{spelled(k)}") for k in budgets[name]],
        )
        for name, result in systems.items()
    ]
    ax = new_axes() if ax is None else ax
    _draw_lines(ax, lines)
    _scale(ax, [line.values for line in lines], average, language)
    ax.set_ylabel(with_direction(fitted(label, _WIDTH), average, language))
    _scale_budgets(ax, [place for line in lines for place in line.places])
    _name_ends(ax, lines)
    counted = next(iter(budgets.values()))[0].unit
    measure = fitted(first.settings.get("length", ""), _WIDTH)
    ax.set_xlabel(word(f"in {counted}", language).format(length=measure))
    title = word("against budget", language).format(metric=label, queries=" / ".join(queries))
    ax.set_title(title, loc="left", pad=12)
    make_readable(ax)
    return ax


def _systems_of(
    results: EvaluationResult | Mapping[str, EvaluationResult],
) -> Mapping[str, EvaluationResult]:
    """Return what to draw by name; a result alone has none.

    Raises:
        InvalidType: If it is something else.
        InvalidInput: If there are none, or more than can be told apart.
    """
    from krag_eval.results.result import EvaluationResult

    if isinstance(results, EvaluationResult):
        return {"": results}
    if not isinstance(results, Mapping) or not all(
        isinstance(name, str) and isinstance(one, EvaluationResult) for name, one in results.items()
    ):
        allowed = "must be an EvaluationResult, or map names to such results"
        raise InvalidType("results", f"{allowed}, got {clipped(results)}")
    if not 1 <= len(results) <= MOST_LINES:
        raise InvalidInput(
            "results",
            f"must be 1 to {MOST_LINES} systems (more cannot be told apart), got {len(results)}",
        )
    return results


def _budgets_of(
    systems: Mapping[str, EvaluationResult], unit: Unit | None
) -> dict[str, list[Budget]]:
    """Return each system's budgets of one unit, the smallest first.

    Raises:
        InvalidInput: If a system has no such budget, or the unit is not clear.
    """
    known = {
        name: [k for k in in_order(one.k) if isinstance(k, Budget)] for name, one in systems.items()
    }
    for name, budgets in known.items():
        if not budgets:
            raise InvalidInput(
                "results",
                "must have a budget among the cutoffs",
                Advice("evaluate with {}", budget=[500, 1000, 2000]),
                within=_within(name),
            )
    units = set.intersection(*({k.unit for k in budgets} for budgets in known.values()))
    if unit is not None:
        units &= {one_of("unit", unit, get_args(Unit))}
    if len(units) != 1:
        there = dict.fromkeys(spelled(k) for budgets in known.values() for k in budgets)
        raise InvalidInput(
            "unit" if units or unit is not None else "results",
            f": an axis shows budgets of one unit that all have; there are {', '.join(there)}",
            Advice("choose one, such as {} for words", unit="w")
            if units
            else Advice("evaluate all with the same, such as {}", budget=[500, 1000, 2000]),
        )
    if units == {"t"} and len({one.settings.get("length") for one in systems.values()}) > 1:
        raise InvalidInput("results", ": their budgets are counted by different functions")
    return {name: [k for k in budgets if k.unit in units] for name, budgets in known.items()}


def _within(name: str) -> str:
    return f" of {clipped(name)}" if name else ""


def _average_of_all(
    systems: Mapping[str, EvaluationResult],
    budgets: Mapping[str, Sequence[Budget]],
    metric: str | None,
) -> str:
    """Return the average to draw, which every system must have."""
    known = {name: list(one.averages(budgets[name][0])) for name, one in systems.items()}
    if metric is None:
        candidates = [*_HELD, *next(iter(known.values()))]
        shared = (key for key in candidates if all(key in keys for keys in known.values()))
        metric = next(shared, candidates[len(_HELD)])
    key = metric
    for name, result in systems.items():
        try:
            key = resolved_average("metric", metric, known[name], result.keys)
        except InvalidInput as error:
            raise InvalidInput("metric", error.problem, error.fix, within=_within(name)) from None
    return key


def _intervals_of(
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None,
    systems: Mapping[str, EvaluationResult],
) -> Mapping[str, pd.DataFrame]:
    """Return the intervals of each system that has any."""
    if intervals is None:
        return {}
    if "" in systems and not isinstance(intervals, Mapping):
        return {"": intervals}
    if not isinstance(intervals, Mapping):
        raise InvalidType(
            "intervals", f"must map the names of results to tables, got {clipped(intervals)}"
        )
    for name in intervals:
        one_of("intervals", name, list(systems))
    return intervals


def _scale_budgets(ax: Axes, budgets: Iterable[float]) -> None:
    """Let an axis run from 0 to the largest budget, with a tick at each that has room for one."""
    from matplotlib.ticker import StrMethodFormatter

    ticks: list[float] = []
    for budget in sorted(set(budgets), reverse=True):
        if not ticks or ticks[-1] - budget >= _TICK * ticks[0]:
            ticks.append(budget)
    ax.set_xlim(0, ticks[0])
    ax.set_xticks([0, *reversed(ticks)])
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def threshold_curves(
    averages: EvaluationResult | pd.DataFrame | pd.Series[float],
    threshold: float | None = None,
    ax: Axes | None = None,
    *,
    metrics: str | Iterable[str] | None = None,
    language: Language = "en",
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
        language: ``"en"`` or ``"ko"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidInput: If a metric is not there, there are too many, or ``mean_rank`` is to share an
            axis with scores; of a result, if its matcher takes no threshold.
    """
    language = checked_language(language)
    table, threshold = _table_of(averages, threshold, metrics)
    known = [str(name) for name in table.columns]
    definitions = averages_of(METRICS.values())
    unbounded = _unbounded(known, definitions)
    keys = _checked(metrics, known, unbounded)
    marked = None if threshold is None else float(threshold)
    ax = new_axes() if ax is None else ax
    lines = {key: [float(value) for value in table[key]] for key in keys}
    places = [float(place) for place in table.index]
    for (key, values), (colour, marker, dashes) in zip(lines.items(), LINES, strict=False):
        at_mark = values[places.index(marked)] if marked in places else None
        told = "" if at_mark is None else f" ({value_label(at_mark)})"
        average = None if key in unbounded else definitions.get(key.partition("@")[0])
        name = with_direction(fitted(key, _WIDTH), average, language)
        ax.plot(places, values, color=colour, linestyle=dashes, label=f"{name}{told}")
        if marked is not None and at_mark is not None:
            ax.plot([marked], [at_mark], color=colour, marker=marker, markersize=6)
    if marked is not None:
        name = word("in use", language).format(marked)
        ax.axvline(marked, color="#000000", linewidth=1, linestyle=":", label=name, zorder=1)
    _scale(ax, list(lines.values()), unbounded.get(keys[0]), language)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(word("threshold", language))
    columns = 2
    rows = -(-(len(lines) + (marked is not None)) // columns)
    ax.set_title(word("against threshold", language), loc="left", pad=10 + 16 * rows)
    legend_above(ax, columns)
    make_readable(ax)
    return ax


def _table_of(
    averages: EvaluationResult | pd.DataFrame | pd.Series[float],
    threshold: float | None,
    metrics: str | Iterable[str] | None,
) -> tuple[pd.DataFrame, float | None]:
    from krag_eval.results.result import EvaluationResult

    if isinstance(averages, EvaluationResult):
        if metrics is None:
            k = deepest(averages.k)
            metrics = [f"{key}@{spelled(k)}" for key in list(_SHOWN)[1:]]
        table = averages.metrics_at_thresholds(metrics)
        return table, averages.threshold if threshold is None else threshold
    import pandas as pd

    return pd.DataFrame(averages), threshold  # a single column becomes a table of one


def _unbounded(known: Iterable[str], definitions: Mapping[str, Average]) -> dict[str, Average]:
    """Return the averages that are not on a scale with an upper end, as ranks."""
    of_key = {name: definitions.get(name.partition("@")[0]) for name in known}
    return {name: one for name, one in of_key.items() if one is not None and one.is_unbounded}


def _checked(
    metrics: str | Iterable[str] | None,
    known: Sequence[str],
    unbounded: Mapping[str, Average],
    default: Sequence[str] = (),
) -> list[str]:
    """Return the metrics to draw: known, not too many, of one unit."""
    if metrics is None:
        scores = [key for key in known if key not in unbounded]
        return list(default or scores or known)[:MOST_LINES]
    asked = [metrics] if isinstance(metrics, str) else list(metrics)
    keys = [resolved_average("metrics", key, known) for key in asked]
    if not 1 <= len(keys) <= MOST_LINES:
        raise InvalidInput(
            "metrics",
            f"must name 1 to {MOST_LINES} averages (more cannot be told apart), got {len(keys)}",
        )
    ranks = [key for key in keys if key in unbounded]
    if ranks and (len(ranks) < len(keys) or len({unbounded[key].key for key in ranks}) > 1):
        raise InvalidInput(
            "metrics",
            f": {ranks[0]!r} has no upper end and shares no axis with other metrics",
            "draw it on its own",
        )
    return keys


def _shown(known: Sequence[str]) -> list[str]:
    """Return what is drawn of what there is; micro averages only where there are no macro ones."""
    shown = [key if key in known else micro for key, micro in _SHOWN.items()]
    return [key for key in shown if key in known]


def _name_of(key: str, result: EvaluationResult, language: Language) -> str:
    """Return the name of a line among scores; ranks have an axis that says which way is better."""
    name, average = metric_name(key, language, result), result.definitions[key]
    return name if average.is_unbounded else with_direction(name, average, language)


def _draw_lines(ax: Axes, lines: Sequence[_Curve]) -> None:
    """Draw lines with their bands, each with a look of its own."""
    for line, (colour, marker, dashes) in zip(lines, LINES, strict=False):
        ax.plot(line.places, line.values, color=colour, marker=marker, linestyle=dashes,
                markersize=5, label=line.name, clip_on=False)  # fmt: skip
        known = [(place, *bound) for place, bound in zip(line.places, line.bounds, strict=True)
                 if bound is not None]  # fmt: skip
        if known:
            places, lows, highs = zip(*known, strict=True)
            ax.fill_between(places, lows, highs, color=colour, alpha=0.13, linewidth=0)


def _scale(
    ax: Axes, lines: Sequence[Sequence[float]], average: Average | None, language: Language
) -> None:
    """Let the axis of values run from 0 to 1; that of an average without upper end, further."""
    values = [value for line in lines for value in line]
    if average is not None and average.is_unbounded and average.range is not None:
        low, _ = average.range
        ax.set_ylim(low, max([value for value in values if value > low], default=2.0) * 1.05)
        ax.set_ylabel(with_direction(fitted(average.label(language), 32), average, language))
        finish(ax, "y")
    else:
        draw_score_axis(ax, values, "y")


def _name_ends(ax: Axes, lines: Sequence[_Curve]) -> None:
    """Write each line's name and last value to the right of it, one below the other."""
    low, high = ax.get_ylim()
    ends = [line.end for line in lines]
    heights = [low if math.isnan(value) else value for _, value in ends]
    looks = zip(lines, ends, _apart(heights, 0.052 * (high - low), low), LINES, strict=False)
    for line, (place, value), height, (colour, *_) in looks:
        leader = {"arrowstyle": "-", "color": colour, "alpha": 0.6, "shrinkA": 1, "shrinkB": 5,
                  "linewidth": 0.8}  # fmt: skip
        ax.annotate(
            f"{line.name} {value_label(value)}",
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


_DECISION = (("precision", ORANGE, "--"), ("recall", BLUE, ":"), ("f1", GREEN, "-"))


def calibration_curve(calibration: Calibration, ax: Axes | None = None) -> Axes:
    """Draw precision, recall and F1 of a matcher's decision against its threshold.

    The best threshold is marked with a line, its confidence interval with a band.

    Args:
        calibration: What ``calibrate`` returned.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.
    """
    ax = new_axes() if ax is None else ax
    curve = calibration.curve
    for name, colour, style in _DECISION:
        ax.plot(
            curve["threshold"],
            curve[name],
            drawstyle="steps-post",  # from high to low: a value holds down to the next similarity
            color=colour,
            linestyle=style,
            label=metric_name(name, "en"),
        )
    low, high = calibration.interval
    label = f"{percent(calibration.level)} interval"
    ax.axvspan(low, high, color=GREY, alpha=0.25, label=label)
    best = calibration.best_threshold
    ax.axvline(best, color="#000000", linewidth=1, label=f"Best threshold {best:.2f}")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02), xlabel="Threshold")
    ax.set_title(
        f"Decision of {fitted(calibration.matcher, 50)} on {len(calibration.relevant)} pairs",
        loc="left",
        pad=46,
    )
    finish(ax, "both")
    legend_above(ax, columns=3)
    make_readable(ax)
    return ax
