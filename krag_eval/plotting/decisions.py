"""How well a matcher decides, against its threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from krag_eval.plotting.fonts import make_readable
from krag_eval.plotting.styling import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    finish,
    legend_above,
    new_axes,
    percent,
    shown_name,
)
from krag_eval.plotting.wording import metric_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.calibration import Calibration

__all__ = ["calibration_curve"]

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
        f"Decision of {shown_name(calibration.matcher, 50)} on {len(calibration.relevant)} pairs",
        loc="left",
        pad=46,
    )
    finish(ax, "both")
    legend_above(ax, columns=3)
    make_readable(ax)
    return ax
