"""Bars: metrics at one cutoff, and what recall would be without one cause after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from krag_eval.core import (
    DEFINED,
    METRICS,
    N_,
    REJECTION_RATE,
    Cutoff,
    Language,
    _,
    fitted,
    spelled,
    spoken,
)
from krag_eval.plotting import styling

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    from krag_eval.core import ResultFacts
    from krag_eval.diagnosis.diagnosis import Diagnosis

#: Metric -> its bars: the average ("micro" or "macro") and the key of its value.
Bars: TypeAlias = dict[str, dict[str, str]]

# Average -> how much of the colour fills a bar, which has an edge in full colour.
_FILLED = {"micro": 0.3, "macro": 1.0}
_AVERAGES = {"micro": N_("Micro (pooled)"), "macro": N_("Macro (mean)")}
_FIRST_FOUND = METRICS["rank"]
# The columns of a system's name in a legend.
_LONGEST_NAME = 30
# From here on a number does not fit to the right of a bar.
_NO_ROOM = 0.8


@spoken
def metric_bars(
    result: ResultFacts | Mapping[str, ResultFacts],
    k: Cutoff | str = None,
    ax: Axes | None = None,
    *,
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    language: Language | None = None,
) -> Axes:
    """Draw every metric at one cutoff as a labelled bar, micro and macro averages side by side.

    All bars have one colour, for the axis names the metric; those of micro averages are light. Of
    several results each metric has a bar per result, of its macro average where it has both, in the
    colour of the result; metrics that not all of them have are left out.

    The axis runs from 0 to 1, further only if a value does. Every bar carries its value, zeros
    too; a value that rounds to 0 or 1 without being it says so, and an undefined one reads "n/a".
    The caption gives the rank of the first relevant document.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned, or names and up to seven such
            results. ``compare(results).plot()`` draws what differs, and how sure that is.
        k: One of its cutoffs; the deepest if not given, of several the deepest that all have.
        ax: Where to draw; a new figure if not given.
        intervals: What ``result.confidence_intervals()`` returned, drawn as error bars; of several
            results by name.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If ``result`` is something else.
        InvalidInput: If that cutoff was not evaluated, ``intervals`` lack it, or there are too many
            results to tell apart.
    """
    systems = styling.systems_of(result, "result")
    first, *_others = systems.values()
    cutoff = (
        styling.deepest_of_all(systems, "k")
        if k is None
        else {one.evaluated_cutoff(k) for one in systems.values()}.pop()
    )
    tables = styling.intervals_of(intervals, systems)
    averages = {name: one.averages(cutoff) for name, one in systems.items()}
    groups = _bars_of(
        key
        for key in first.averages(cutoff)
        if any(key in one.shown for one in systems.values())
        and not _is_captioned(key, first)
        and all(key in one for one in averages.values())
    )
    if "" in systems:
        height = 1.1 + 0.44 * len(groups)
        series = list(_of_averages(groups))
    else:
        height = 1.2 + len(groups) * (0.16 + 0.22 * len(systems))
        groups = {
            name: {"macro": group.get("macro") or group["micro"]} for name, group in groups.items()
        }
        series = list(_of_systems(groups, list(systems)))
    keys = [key for group in groups.values() for key in group.values()]
    bounds = {
        name: {key: styling.bounds_of(tables.get(name), f"{key}@{spelled(cutoff)}") for key in keys}
        for name in systems
    }
    ax = styling.axes(ax, height=max(styling.SIZE[1], height))
    for one in series:
        _draw_bars(ax, one, averages[one.system], bounds[one.system])
    styling.draw_score_axis(ax, [one[key] for one in averages.values() for key in keys])
    styling.name_rows(ax, [_name_of(name, group, first) for name, group in groups.items()])
    title = _("Retrieval metrics {cutoff} ({queries})").format(
        cutoff=styling.cutoff_words(cutoff), queries=styling.queries_of_all(systems)
    )
    if "" not in systems:
        return styling.with_legend(ax, title, min(len(systems), 3))
    ax.set_xlabel(_caption(first, cutoff), fontsize="small")
    return styling.with_legend(ax, title, handles=_legend_of(groups))


class _Series(NamedTuple):
    """Bars of one colour or average: whose, their rows and averages, how thick, and their look."""

    system: str
    keys: Mapping[float, str]
    thickness: float
    look: Mapping[str, Any]


def _of_averages(groups: Bars) -> Iterator[_Series]:
    """Yield the bars of each average; where a metric has both, micro goes above macro."""
    thickness = 0.4 if any(len(group) > 1 for group in groups.values()) else 0.65
    for average, side in {"micro": -0.5, "macro": 0.5}.items():
        keys = {
            row + side * thickness * (len(group) > 1): group[average]
            for row, group in enumerate(groups.values())
            if average in group
        }
        look = {"edgecolor": styling.BAR, "linewidth": 0.8, "label": _(_AVERAGES[average])}
        look["color"] = (styling.BAR, _FILLED[average])
        if keys:
            yield _Series("", keys, thickness, look)


def _of_systems(groups: Bars, systems: Sequence[str]) -> Iterator[_Series]:
    """Yield the bars of each result, those of a metric below each other."""
    thickness = 0.8 / len(systems)
    for number, name in enumerate(systems):
        aside = (number - (len(systems) - 1) / 2) * thickness
        keys = {row + aside: group["macro"] for row, group in enumerate(groups.values())}
        look = {"color": styling.LINES[number].colour, "label": fitted(name, _LONGEST_NAME)}
        yield _Series(name, keys, thickness, look)


def _draw_bars(
    ax: Axes,
    series: _Series,
    averages: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float] | None],
) -> None:
    """Draw bars with their intervals, and the value beside each."""
    from matplotlib.patheffects import withStroke

    values = [averages[key] for key in series.keys.values()]
    lengths = [value if math.isfinite(value) else 0.0 for value in values]
    drawn = ax.barh(
        list(series.keys),
        lengths,
        height=0.9 * series.thickness,
        xerr=_errors(lengths, [bounds[key] for key in series.keys.values()]),
        error_kw={"elinewidth": 1.0, "capsize": 2.5, "ecolor": styling.INK},
        **series.look,
    )
    if drawn.errorbar is not None:
        caps, (reach,) = drawn.errorbar.lines[1:]
        for part in (*caps, reach):  # to be seen on a dark bar too
            part.set_path_effects([withStroke(linewidth=2.5, foreground=styling.PAPER)])
    ax.bar_label(drawn, labels=list(map(styling.value_label, values)), padding=3, fontsize="small")


def _errors(
    values: Sequence[float], bounds: Sequence[tuple[float, float] | None]
) -> tuple[list[float], list[float]] | None:
    """Return how far the intervals reach below and above the values, ``None`` without any."""
    if all(bound is None for bound in bounds):
        return None
    known = [bound or (value, value) for value, bound in zip(values, bounds, strict=True)]
    below = [max(0.0, value - low) for value, (low, _) in zip(values, known, strict=True)]
    above = [max(0.0, high - value) for value, (_, high) in zip(values, known, strict=True)]
    return below, above


def diagnosis_waterfall(diagnosis: Diagnosis, ax: Axes | None = None) -> Axes:
    """Draw what recall would be with one cause of misses after the other removed.

    The first bar is what is found; every other one begins where the one above it ends, and the last
    ends at 1. Each carries its share and, in brackets, what recall would be by then.

    Args:
        diagnosis: What ``result.diagnose`` returned.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.
    """
    steps = diagnosis.waterfall()
    ax = styling.axes(ax, height=1.3 + 0.44 * len(steps))
    colours = {
        "found": styling.FOUND,
        "found_in_pieces": styling.FOUND if diagnosis.union else styling.PARTIAL,
    }
    for row, (cause, share, end) in enumerate(
        zip(steps.index, steps["share"], steps["cumulative"], strict=True)
    ):
        _draw_step(ax, row, share, end, colours.get(cause, styling.MISSED))
    styling.draw_score_axis(ax, [])
    ax.set_xlim(right=1.16)  # room for the number of a first bar up to 1
    styling.name_rows(ax, steps["label"].to_list())
    items = len(diagnosis.items) - diagnosis.counts.get("no_words", 0)
    title = _("What recall would be, {cutoff} ({items} items)").format(
        cutoff=styling.cutoff_words(diagnosis.k), items=items
    )
    ax.set_xlabel(_("Share of ground-truth items (in brackets: recall by then)"))
    return styling.titled(ax, title)


def _draw_step(ax: Axes, row: int, share: float, end: float, colour: str) -> None:
    """Draw one bar of a waterfall, with its share and what they add up to."""
    if not math.isfinite(end):
        share, end = math.nan, 0.0
    start = 0.0 if row == 0 or not math.isfinite(share) else end - share
    ax.barh([row], [end - start], left=[start], height=0.6, color=colour)
    said = styling.value_label(share)
    if row:
        said += f" ({styling.value_label(end)})"
    # Where there is no room to the right, to the left; the first bar begins at the labels.
    left = row > 0 and end > _NO_ROOM
    ax.annotate(said, (start if left else end, row), (-3 if left else 3, 0),
                textcoords="offset points", ha="right" if left else "left", va="center",
                fontsize="small")  # fmt: skip


def _name_of(name: str, group: Mapping[str, str], result: ResultFacts) -> str:
    """Return the name of a metric, with a line below it where lower is better."""
    average = result.definitions[next(iter(group.values()))]
    return styling.with_direction(styling.metric_label(name, result), average, lines=2)


def _is_captioned(key: str, result: ResultFacts) -> bool:
    """Tell whether an average is said in the caption: without an upper end, or of such a metric."""
    known = result.definitions
    column = known[key].column.removeprefix(DEFINED)
    return any(one.is_unbounded for one in known.values() if one.column == column)


def _bars_of(averages: Iterable[str]) -> Bars:
    """Group the averages by metric, in their order; a single mean over queries is a macro one."""
    bars: Bars = {}
    for key in averages:
        average, _, name = key.partition("_")
        if average in _FILLED and name:
            bars.setdefault(name, {})[average] = key
        else:
            bars.setdefault(key, {})["macro"] = key
    return bars


def _legend_of(bars: Bars) -> list[Patch]:
    """Tell the averages apart."""
    from matplotlib.patches import Patch

    there = {average for group in bars.values() for average in group}
    return [
        Patch(facecolor=(styling.BAR, filled), edgecolor=styling.BAR, label=_(_AVERAGES[average]))
        for average, filled in _FILLED.items()
        if average in there
    ]  # fmt: skip


def _caption(result: ResultFacts, k: Cutoff) -> str:
    averages = result.averages(k)
    told = [
        f"{styling.metric_label(key, result)} {averages[key]:.2f}"
        for key in averages
        if result.definitions[key].is_unbounded and key != _FIRST_FOUND.key
    ]
    if _FIRST_FOUND.key in averages:
        rank, rate = averages[_FIRST_FOUND.key], averages[_FIRST_FOUND.defined_key]
        first = _("First relevant document: mean rank {:.2f}, found rate {}")
        if math.isnan(rank):
            first = _("No query found a relevant document")
        told.append(first.format(rank, styling.value_label(rate)))
    rejected = result.to_dict().get(f"{REJECTION_RATE.key}@{spelled(k)}")
    if rejected is not None:
        nothing = _("Nothing retrieved where nothing should be: {}")
        told.append(nothing.format(styling.value_label(rejected)))
    return "\n".join(told)
