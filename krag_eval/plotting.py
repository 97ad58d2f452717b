"""Pictures of results: every plot takes a result and returns matplotlib ``Axes``.

This room knows drawing, and is the only one to import matplotlib, when something is drawn. It
must not know documents or matchers, compute a number, or call ``show()``.

A plot draws on the ``ax`` it is given, or makes a pyplot figure, which a notebook displays by
itself. :func:`save_plot` draws into a file without pyplot, so nothing stays open.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from krag_eval.cutoffs import spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.calibration import Calibration
    from krag_eval.results import EvaluationResult

__all__ = ["PLOT_FORMATS", "calibration_curve", "metric_bars", "save_plot"]

#: File name endings that :func:`save_plot` accepts.
PLOT_FORMATS = (".png", ".svg", ".pdf")

#: Metric -> its bars: the average ("micro" or "macro") and the value.
Bars: TypeAlias = dict[str, dict[str, float]]

# Okabe and Ito's palette: told apart with any kind of colour vision, and in grey.
_COLOURS = {"micro": "#E69F00", "macro": "#0072B2"}
_AVERAGES = {"micro": "Micro (queries pooled)", "macro": "Macro (mean over queries)"}
_NAMES = {
    "hit_rate": "Hit rate",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "mrr": "MRR",
    "map": "MAP",
    "ndcg": "nDCG",
}
_DECISION = (("precision", "#E69F00", "--"), ("recall", "#0072B2", ":"), ("f1", "#009E73", "-"))
# Said in the caption: a rank is not on a scale from 0 to 1.
_CAPTIONED = ("mean_rank", "found_rate")
_SIZE = (7.0, 5.0)


def metric_bars(result: EvaluationResult, k: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw every metric at one cutoff as a labelled bar, micro and macro averages side by side.

    The axis runs from 0 to 1, further only if a value does. Every bar carries its value, zeros
    too; a value that rounds to 0 or 1 without being it says so, and an undefined one reads "n/a".
    The rank of the first relevant document is told in the caption.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned.
        k: One of its cutoffs; may be left out if there is only one.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        ValueError: If that cutoff was not evaluated.
    """
    k = result.evaluated_cutoff(k)
    averages = result.averages(k)
    ax = _new_axes() if ax is None else ax
    bars = _bars_of(averages)
    for average in _AVERAGES:
        _draw_bars(ax, bars, average)
    _scale(ax, [value for group in bars.values() for value in group.values()])
    ax.set_yticks(range(len(bars)), [_NAMES.get(name, name) for name in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)  # the first metric on top
    ax.set_title(f"Retrieval metrics {_cutoff(k)} ({_queries(result)})", loc="left", pad=28)
    ax.set_xlabel(_rank_caption(averages), fontsize="small")
    _legend_above(ax)
    return ax


def calibration_curve(calibration: Calibration, ax: Axes | None = None) -> Axes:
    """Draw precision, recall and F1 of a matcher's decision against its threshold.

    The best threshold is marked with a line, its confidence interval with a band.

    Args:
        calibration: What ``calibrate`` returned.
        ax: Where to draw; a new figure if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved.
    """
    ax = _new_axes() if ax is None else ax
    curve = calibration.curve
    for name, colour, style in _DECISION:
        ax.plot(
            curve["threshold"],
            curve[name],
            drawstyle="steps-post",  # from high to low: a value holds down to the next similarity
            color=colour,
            linestyle=style,
            label=_NAMES.get(name, name),
        )
    low, high = calibration.interval
    ax.axvspan(low, high, color="#999999", alpha=0.25, label=f"{calibration.level:.0%} interval")
    best = calibration.best_threshold
    ax.axvline(best, color="#000000", linewidth=1, label=f"Best threshold {best:.2f}")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02), xlabel="Threshold")
    ax.set_title(
        f"Decision of {calibration.matcher} on {len(calibration.relevant)} pairs",
        loc="left",
        pad=46,
    )
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    _legend_above(ax, columns=3)
    return ax


def save_plot(path: str | os.PathLike[str], draw: Callable[[Axes], object]) -> None:
    """Draw into a file: PNG, SVG or PDF, by the ending of its name.

    Args:
        path: The file; one of that name is overwritten.
        draw: Called with the Axes to draw on, such as ``lambda ax: metric_bars(result, 5, ax)``.

    Raises:
        ValueError: For another ending, listing those that are possible.
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in PLOT_FORMATS:
        raise ValueError(
            f"a plot is saved as {', '.join(PLOT_FORMATS)}, by the ending of its file name, "
            f"got {os.fspath(path)!r}."
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    draw(figure.subplots())
    figure.savefig(path, format=ending[1:], dpi=150, bbox_inches="tight", pad_inches=0.15)


def _new_axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(figsize=_SIZE, layout="constrained")[1]


def _bars_of(averages: Mapping[str, float]) -> Bars:
    """Group the averages by metric, in their order; a single mean over queries is a macro one."""
    bars: Bars = {}
    for key, value in averages.items():
        average, _, name = key.partition("_")
        if key in _CAPTIONED:
            continue
        if average in _AVERAGES and name:
            bars.setdefault(name, {})[average] = value
        else:
            bars.setdefault(key, {})["macro"] = value
    return bars


def _draw_bars(ax: Axes, bars: Bars, average: str) -> None:
    """Draw the bars of one average; where a metric has both, micro goes above macro."""
    rows = [row for row, group in enumerate(bars.values()) if average in group]
    if not rows:
        return
    thickness = 0.4 if any(len(group) > 1 for group in bars.values()) else 0.65
    side = {"micro": -0.5, "macro": 0.5}[average] * thickness
    groups = list(bars.values())
    values = [groups[row][average] for row in rows]
    drawn = ax.barh(
        [row + side * (len(groups[row]) > 1) for row in rows],
        [value if math.isfinite(value) else 0.0 for value in values],
        height=0.94 * thickness,
        color=_COLOURS[average],
        label=_AVERAGES[average],
    )
    labels = [_value_label(value) for value in values]
    ax.bar_label(drawn, labels=labels, padding=3, fontsize="small")


def _value_label(value: float) -> str:
    """Round to two digits, but never to a 0 or 1 that the value is not.

    >>> _value_label(0.0), _value_label(0.001), _value_label(0.456), _value_label(0.999)
    ('0.00', '<0.01', '0.46', '>0.99')
    """
    if math.isnan(value):
        return "n/a"
    rounded = f"{value:.2f}"
    if rounded == "0.00" and value > 0:
        return "<0.01"
    return ">0.99" if rounded == "1.00" and value < 1 else rounded


def _scale(ax: Axes, values: list[float]) -> None:
    """Let the axis run from 0 to 1, further if a value does, with room for the labels."""
    finite = [value for value in values if math.isfinite(value)]
    lowest, highest = min([0.0, *finite]), max([1.0, *finite])
    room = 0.08 * (highest - lowest)
    ax.set_xlim(lowest - room * (lowest < 0), highest + room)
    if (lowest, highest) == (0.0, 1.0):
        ax.set_xticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _legend_above(ax: Axes, columns: int = 2) -> None:
    """Put the legend between title and axes, where it covers nothing."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.0,
        columnspacing=1.5,
    )


def _cutoff(k: int | None) -> str:
    return "over all retrieved documents" if k is None else f"at k = {spelled(k)}"


def _queries(result: EvaluationResult) -> str:
    counted = int(result.counted.sum())
    skipped = result.n_queries - counted
    return f"{counted} {'query' if counted == 1 else 'queries'}" + (
        f", {skipped} skipped" if skipped else ""
    )


def _rank_caption(averages: Mapping[str, float]) -> str:
    if not averages.keys() >= set(_CAPTIONED):
        return ""
    rank, rate = (averages[name] for name in _CAPTIONED)
    if math.isnan(rank):
        return "No query found a relevant document"
    return f"First relevant document: mean rank {rank:.2f}, found rate {_value_label(rate)}"
