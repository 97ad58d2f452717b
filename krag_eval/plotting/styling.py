"""What all plots have in common: colours, axes, legends, rounded numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from krag_eval._text import one_line
from krag_eval.plotting.wording import Language, word

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.results.result import EvaluationResult

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "LINES",
    "ORANGE",
    "SIZE",
    "VERMILLION",
    "draw_score_axis",
    "finish",
    "legend_above",
    "new_axes",
    "number_of_queries",
    "percent",
    "queries_of",
    "shown_name",
    "value_label",
]

# Okabe and Ito's palette: told apart with any kind of colour vision.
ORANGE, BLUE, GREEN, VERMILLION = "#E69F00", "#0072B2", "#009E73", "#D55E00"
GREY = "#999999"
#: Colour, marker and dashes of one line after the other; they can be told apart without colour.
LINES = (
    (BLUE, "o", "-"),
    (ORANGE, "s", "--"),
    (GREEN, "^", "-."),
    (VERMILLION, "D", "-"),
    ("#CC79A7", "v", "--"),
    ("#56B4E9", "P", "-."),
    ("#000000", "X", ":"),
)

SIZE = (7.0, 5.0)


def new_axes(width: float = SIZE[0], height: float = SIZE[1]) -> Axes:
    """Return the axes of a new pyplot figure, of so many inches."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def value_label(value: float) -> str:
    """Round to two digits, but never to a 0 or 1 that the value is not.

    >>> value_label(0.0), value_label(0.001), value_label(0.456), value_label(0.999)
    ('0.00', '<0.01', '0.46', '>0.99')
    """
    if math.isnan(value):
        return "n/a"
    rounded = f"{value:.2f}"
    if rounded == "0.00" and value > 0:
        return "<0.01"
    return ">0.99" if rounded == "1.00" and value < 1 else rounded


def shown_name(name: str, width: int = 32) -> str:
    """Return a name somebody chose, on one line, harmless and not too long."""
    return one_line(name, width)


def percent(level: float, language: Language = "en") -> str:
    """Return a level as it is spoken of.

    >>> percent(0.95), percent(0.999), percent(0.95, "ko")
    ('95 %', '99.9 %', '95%')
    """
    return word("percent", language).format(f"{100 * level:.10g}")


def draw_score_axis(ax: Axes, values: Sequence[float], axis: str = "x") -> None:
    """Let an axis run from 0 to 1, further if a value does, with room for labels."""
    finite = [value for value in values if math.isfinite(value)]
    lowest, highest = min([0.0, *finite]), max([1.0, *finite])
    room = 0.08 * (highest - lowest) * (1.0 if axis == "x" else 0.4)
    limits = lowest - room * (lowest < 0), highest + room
    ax.set(**{f"{axis}lim": limits})
    if (lowest, highest) == (0.0, 1.0):
        ax.set(**{f"{axis}ticks": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]})
    finish(ax, axis)


def finish(ax: Axes, grid: str) -> None:
    """Leave out what says nothing, and draw a light grid along the axis of values."""
    ax.grid(axis=grid, alpha=0.3)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if grid == "x":
        ax.tick_params(axis="y", length=0)


def legend_above(ax: Axes, columns: int = 2) -> None:
    """Put the legend between title and axes, where it covers nothing."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.8,
        columnspacing=1.5,
    )


def queries_of(result: EvaluationResult, language: Language) -> str:
    """Say how many queries count, and how many do not."""
    counted = result.n_counted
    skipped = result.n_queries - counted
    words = number_of_queries(counted, language)
    return word("skipped", language).format(words, skipped) if skipped else words


def number_of_queries(number: int, language: Language) -> str:
    """Say "1 query" or "5 queries"."""
    return word("one query" if number == 1 else "queries", language).format(number)
