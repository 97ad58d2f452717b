"""The picture of a history: averages from run to run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from krag_eval.core import _, fitted, ngettext
from krag_eval.history.history import History
from krag_eval.plotting import curves, styling

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def history_curves(history: History, ax: Axes | None = None) -> Axes:
    """Draw averages from run to run with their intervals, named and numbered at the last one.

    Runs stand at even distances, the oldest first. Between two that cannot be compared, because
    more than the retriever changed, lines break and a dotted line stands.

    Args:
        history: What ``History.of`` returned; its ``metrics`` are drawn.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidInput: If there are more than seven metrics, or one without an upper end, such as
            ``mean_rank``, among others.
    """
    averages = history.definitions
    unbounded = {name: one for name, one in averages.items() if one.is_unbounded}
    metrics = curves.checked_averages(history.metrics, history.metrics, unbounded)
    cutoff, names = curves.named_together(metrics)
    lines = [
        _over_runs(history, metric, styling.with_direction(names[metric], averages[metric]), look)
        for metric, look in zip(metrics, styling.looks_of(metrics), strict=True)
    ]
    ax = styling.axes(ax)
    _draw_spans(ax, history, metrics, lines)
    runs = ngettext("{} run", "{} runs", len(history.runs)).format(len(history.runs))
    title = _("Metrics from run to run ({runs})")
    if cutoff:
        title = _("Metrics {cutoff} from run to run ({runs})")
    title, below = title.format(runs=runs, cutoff=cutoff), _("When the run was made")
    if any(not run.is_comparable for run in history.runs[1:]):
        below = _("When the run was made; dotted: cannot be compared across")
    average, scale = unbounded.get(metrics[0]), partial(_scale_runs, history=history)
    return curves.line_chart(ax, lines, average, scale, below, title)


def _over_runs(history: History, metric: str, name: str, look: styling.Look) -> curves.Curve:
    """Return the line of an average, with a gap before each run that cannot be compared."""
    points: list[tuple[float, float]] = []
    for place, run in enumerate(history.runs):
        if place and not run.is_comparable:
            points.append((place - 0.5, math.nan))
        points.append((float(place), history.value(run, metric)))
    places, values = zip(*points, strict=True)
    return curves.Curve(fitted(name, curves.SIDE_WIDTH), places, values, [None] * len(places), look)


def _draw_spans(
    ax: Axes, history: History, metrics: Sequence[str], lines: Sequence[curves.Curve]
) -> None:
    """Draw the interval of every run, those of several metrics beside each other."""
    for number, (metric, line) in enumerate(zip(metrics, lines, strict=True)):
        bounds = [history.bounds(run, metric) for run in history.runs]
        aside = 0.05 * (number - (len(metrics) - 1) / 2)
        lows, highs = zip(*bounds, strict=True)
        ax.vlines([place + aside for place in range(len(bounds))], lows, highs,
                  color=line.look.colour, alpha=0.45, linewidth=2)  # fmt: skip


def _scale_runs(ax: Axes, history: History) -> None:
    """Write when runs were made below them, where there is room, and mark where they break."""
    runs, n = history.runs, len(history.runs)
    days = [f"{run.made:%Y-%m-%d}" for run in runs]
    if len({*days}) < n:  # several on a day
        days = [f"{run.made:%m-%d}\n{run.made:%H:%M}" for run in runs]
    names = {float(place): day for place, day in enumerate(days)}
    named = curves.with_room(names, {place: place / max(n - 1, 1) for place in names})
    ax.set_xticks(named, [names[place] for place in named])
    ax.set_xlim(-0.3, n - 0.7)
    for place, run in enumerate(runs):
        if place and not run.is_comparable:
            ax.axvline(place - 0.5, color=styling.INK, linewidth=1, linestyle=":", zorder=1)
