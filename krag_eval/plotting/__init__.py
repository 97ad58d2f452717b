"""Plots of results: every function takes a result and returns matplotlib ``Axes``.

A plot draws on the ``ax`` it is given, or makes a pyplot figure, which a notebook displays by
itself; nothing is computed or shown here. :func:`save_plot` draws into a file without pyplot, so
nothing stays open. matplotlib is imported when something is drawn. Pictures of rooms that stand
above this one come by the hooks ``krag_eval.pictures``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from krag_eval.core import LANGUAGES, Language
from krag_eval.core.hooks import our_hooks
from krag_eval.plotting.bars import diagnosis_waterfall, metric_bars
from krag_eval.plotting.curves import (
    budget_curves,
    calibration_curve,
    cutoff_curves,
    latency_points,
    planning_curve,
    score_cutoff_curve,
    threshold_curves,
)
from krag_eval.plotting.distributions import first_rank_bars, metric_distribution
from krag_eval.plotting.forest import comparison_forest, forest_size, slice_forest
from krag_eval.plotting.styling import PLOT_FORMATS, inline_svg, metric_name, save_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    history_curves: Callable[..., Axes]
    pareto_points: Callable[..., Axes]

__all__ = [
    "LANGUAGES",
    "PLOT_FORMATS",
    "Language",
    "budget_curves",
    "calibration_curve",
    "comparison_forest",
    "cutoff_curves",
    "diagnosis_waterfall",
    "first_rank_bars",
    "forest_size",
    "history_curves",
    "inline_svg",
    "latency_points",
    "metric_bars",
    "metric_distribution",
    "metric_name",
    "pareto_points",
    "planning_curve",
    "save_plot",
    "score_cutoff_curve",
    "slice_forest",
    "threshold_curves",
]


def __getattr__(name: str) -> Callable[..., "Axes"]:
    """Return the picture of a room above."""
    pictures = our_hooks("krag_eval.pictures")
    if name not in __all__ or name not in pictures:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    picture: Callable[..., Axes] = pictures[name].load()
    return picture
