"""The picture of a sweep: what quality costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from krag_eval.core import InvalidInput, InvalidType, Language, _, clipped, fitted, one_of, spoken
from krag_eval.plotting import curves, styling
from krag_eval.sweeping.sweep import COSTS, Cost, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@spoken
def pareto_points(
    sweep: Sweep,
    cost: Cost = "context",
    ax: Axes | None = None,
    *,
    language: Language | None = None,
) -> Axes:
    """Draw what quality costs: a point per cell of a sweep, and the front of the best ones.

    A cell is on the front if no other one is as good for as little, and better or cheaper. Those
    are filled, joined by steps, and named in the order of their cost; every other one is hollow.

    Args:
        sweep: What ``sweep`` returned.
        cost: ``"context"``, words within the cutoff, or ``"latency"``, the median of the seconds an
            answer took.
        ax: Where to draw; a new figure if not given.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If ``sweep`` is something else.
        InvalidInput: If there is no such cost, or no cell has it and a quality.
    """
    if not isinstance(sweep, Sweep):
        raise InvalidType("sweep", f"must be what sweep() returned, got {clipped(sweep)}")
    one_of("cost", cost, COSTS)
    costs = {one.name: getattr(one, cost) for one in sweep.cells if one.same_as is None}
    points = {
        name: (costs[name], quality)
        for name, quality in sweep.qualities.items()
        if not math.isnan(costs[name] + quality)
    }
    if not points:
        raise InvalidInput("sweep", f": no cell has a {cost} and a value of {sweep.quality_metric}")
    if cost == "context":
        title = _("{metric} {cutoff} against context ({queries})")
        factor, unit = 1, _("Words of context per query")
    else:
        title = _("{metric} {cutoff} against latency ({queries})")
        factor, unit = curves.in_time(
            [place for place, _quality in points.values()],
            _("Seconds per query, the median"),
            _("Milliseconds per query, the median"),
        )
    points = {name: (place * factor, quality) for name, (place, quality) in points.items()}
    ax = styling.axes(ax)
    front = sorted(sweep.front(cost), key=lambda name: points[name])
    _draw_front(ax, points, front)
    first = next(iter(sweep.results.values()))
    key, k = curves.average_at({"": first}, sweep.quality_metric)
    average, label = curves.known_of(key, {"": first})
    curves.scale_average(ax, [point[1] for point in points.values()], average, label)
    ax.set_xlim(left=0, right=1.08 * max(point[0] for point in points.values()) or 1)
    ax.set_xlabel(unit)
    title = title.format(
        metric=label, cutoff=styling.cutoff_words(k), queries=styling.queries_of(first)
    )
    return styling.with_legend(ax, title)


def _draw_front(ax: Axes, points: Mapping[str, tuple[float, float]], front: Sequence[str]) -> None:
    """Draw all points, and the steps between those of the front, which a legend names."""
    others = [point for name, point in points.items() if name not in front]
    if others:
        ax.plot(*zip(*others, strict=True), "o", markerfacecolor=styling.PAPER, color=styling.FAINT)
    steps = zip(*(points[name] for name in front), strict=True)
    ax.step(*steps, where="post", color=styling.FAINT, linewidth=1)
    for number, name in enumerate(front):
        look, (place, quality) = styling.LINES[number % styling.MOST_LINES], points[name]
        label = f"{number + 1}: {fitted(name, curves.NAME_WIDTH)} ({styling.value_label(quality)})"
        ax.plot([place], [quality], look.marker, color=look.colour, label=label)
        ax.annotate(str(number + 1), (place, quality), (0, 6), textcoords="offset points",
                    ha="center", color=styling.INK, fontsize="small")  # fmt: skip
