"""Metrics as curves: against the cutoff, against the threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from krag_eval._errors import InvalidInput
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
    word,
)
from krag_eval.scoring.averages import Average
from krag_eval.scoring.cutoffs import deepest, in_order, spelled
from krag_eval.scoring.metrics import DEFAULT_METRICS, METRICS, averages_of, resolved_average

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.calibration import Calibration
    from krag_eval.results.result import EvaluationResult

__all__ = [
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
_AT_MOST = len(LINES)


def cutoff_curves(
    result: EvaluationResult,
    metrics: str | Iterable[str] | None = None,
    ax: Axes | None = None,
    *,
    intervals: pd.DataFrame | None = None,
    language: Language = "en",
) -> Axes:
    """Draw averages against the cutoff k, one line each, named and numbered at its end.

    Cutoffs stand at even distances, all retrieved documents after the others, budgets last.

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
    cutoffs = in_order(result.k)
    averages = {k: result.averages(k) for k in cutoffs}
    known = tuple(averages[cutoffs[0]])
    unbounded = _unbounded(known, result.definitions)
    keys = _checked(metrics, known, unbounded, default=_shown(known))
    bounds = {key: [bounds_of(intervals, f"{key}@{spelled(k)}") for k in cutoffs] for key in keys}
    ax = new_axes() if ax is None else ax
    lines = {key: [averages[k][key] for k in cutoffs] for key in keys}
    for (key, values), (colour, marker, dashes) in zip(lines.items(), LINES, strict=False):
        ax.plot(range(len(cutoffs)), values, color=colour, marker=marker, linestyle=dashes,
                markersize=5, label=metric_name(key, language, result), clip_on=False)  # fmt: skip
        _draw_band(ax, bounds[key], colour)
    _scale(ax, lines, unbounded, language)
    _name_ends(ax, {key: (metric_name(key, language, result), line) for key, line in lines.items()})
    names = [word("all", language) if k is None else spelled(k) for k in cutoffs]
    ax.set_xticks(range(len(cutoffs)), names)
    ax.set_xlim(-0.15, max(len(cutoffs) - 1, 0.5))
    ax.set_xlabel(word("k", language))
    title = word("against k", language).format(queries=queries_of(result, language))
    ax.set_title(title, loc="left", pad=12)
    make_readable(ax)
    return ax


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
    unbounded = _unbounded(known, averages_of(METRICS.values()))
    keys = _checked(metrics, known, unbounded)
    marked = None if threshold is None else float(threshold)
    ax = new_axes() if ax is None else ax
    lines = {key: [float(value) for value in table[key]] for key in keys}
    places = [float(place) for place in table.index]
    for (key, values), (colour, marker, dashes) in zip(lines.items(), LINES, strict=False):
        at_mark = values[places.index(marked)] if marked in places else None
        told = "" if at_mark is None else f" ({value_label(at_mark)})"
        ax.plot(places, values, color=colour, linestyle=dashes, label=f"{fitted(key, 32)}{told}")
        if marked is not None and at_mark is not None:
            ax.plot([marked], [at_mark], color=colour, marker=marker, markersize=6)
    if marked is not None:
        name = word("in use", language).format(marked)
        ax.axvline(marked, color="#000000", linewidth=1, linestyle=":", label=name, zorder=1)
    _scale(ax, lines, unbounded, language)
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
        return list(default or scores or known)[:_AT_MOST]
    asked = [metrics] if isinstance(metrics, str) else list(metrics)
    keys = [resolved_average("metrics", key, known) for key in asked]
    if not 1 <= len(keys) <= _AT_MOST:
        raise InvalidInput(
            "metrics",
            f"must name 1 to {_AT_MOST} averages (more cannot be told apart), got {len(keys)}",
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


def _draw_band(ax: Axes, bounds: Sequence[tuple[float, float] | None], colour: str) -> None:
    known = [(place, *bound) for place, bound in enumerate(bounds) if bound is not None]
    if known:
        places, lows, highs = zip(*known, strict=True)
        ax.fill_between(places, lows, highs, color=colour, alpha=0.13, linewidth=0)


def _scale(
    ax: Axes,
    lines: Mapping[str, Sequence[float]],
    unbounded: Mapping[str, Average],
    language: Language,
) -> None:
    values = [value for line in lines.values() for value in line]
    average = unbounded.get(next(iter(lines)))
    if average is not None and average.range is not None:
        low, _ = average.range
        ax.set_ylim(low, max([value for value in values if value > low], default=2.0) * 1.05)
        label = fitted(average.label(language), 32)
        lower = average.lower_is_better
        ax.set_ylabel(word("lower is better", language).format(label) if lower else label)
        finish(ax, "y")
    else:
        draw_score_axis(ax, values, "y")


def _name_ends(ax: Axes, lines: Mapping[str, tuple[str, Sequence[float]]]) -> None:
    """Write each line's name and last value to the right of it, one below the other."""
    ends = {key: values[-1] for key, (_, values) in lines.items() if math.isfinite(values[-1])}
    low, high = ax.get_ylim()
    places = _apart(list(ends.values()), 0.052 * (high - low), low)
    last = len(next(iter(lines.values()))[1]) - 1
    colours = {key: colour for key, (colour, *_) in zip(lines, LINES, strict=False)}
    for (key, value), place in zip(ends.items(), places, strict=True):
        ax.annotate(
            f"{lines[key][0]} {value_label(value)}",
            (last, value),
            (1.03, place),
            xycoords="data",
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colours[key], "alpha": 0.6, "shrinkA": 1,
                        "shrinkB": 5, "linewidth": 0.8},
        )  # fmt: skip


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
