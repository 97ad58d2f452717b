"""Pictures of results: every plot takes a result and returns matplotlib ``Axes``.

This room knows drawing, and is the only one to import matplotlib, when something is drawn. It
must not know documents or matchers, compute a metric, or call ``show()``.

A plot draws on the ``ax`` it is given, or makes a pyplot figure, which a notebook displays by
itself. :func:`save_plot` draws into a file without pyplot, so nothing stays open.
"""

from krag_eval.plotting.bars import metric_bars
from krag_eval.plotting.curves import calibration_curve, cutoff_curves, threshold_curves
from krag_eval.plotting.distributions import first_rank_bars, metric_distribution
from krag_eval.plotting.forest import comparison_forest, forest_size
from krag_eval.plotting.saving import PLOT_FORMATS, inline_svg, save_plot
from krag_eval.plotting.styling import LANGUAGES, Language, metric_name

__all__ = [
    "LANGUAGES",
    "PLOT_FORMATS",
    "Language",
    "calibration_curve",
    "comparison_forest",
    "cutoff_curves",
    "first_rank_bars",
    "forest_size",
    "inline_svg",
    "metric_bars",
    "metric_distribution",
    "metric_name",
    "save_plot",
    "threshold_curves",
]
