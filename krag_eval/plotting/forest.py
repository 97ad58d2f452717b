"""Forests: every difference of a comparison, or every slice, with its interval, one row each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from krag_eval.comparison.comparison_page import p_said
from krag_eval.comparison.paired import Difference
from krag_eval.comparison.slices import Slice
from krag_eval.comparison.slices_page import is_contrary, loss_share
from krag_eval.core import Language, _, fitted, one_of, parse_metric, percent, spoken, width_of
from krag_eval.core.language import language
from krag_eval.plotting import fonts, styling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.comparison.comparison import Comparison
    from krag_eval.comparison.slices import SlicedComparison, Slices

# Inches.
_WIDTH, _ROW, _AROUND = 9.0, 0.34, 1.5
# Those of what stands beside and above the axis but names, and of a letter of a name.
_BESIDE, _LETTER = 2.8, 0.08
#: Of more slices a picture would be too tall to look at.
MOST_ROWS = 60


class _Line(NamedTuple):
    """A row: its label, the difference that it is about, value and interval, what is told beside.

    A heading over several rows has a label alone.
    """

    label: str
    difference: Difference | None = None
    ends: tuple[float, float, float] = (math.nan,) * 3
    told: str = ""


def rows_chart(ax: Axes, lines: Sequence[_Line], level: float) -> None:
    """Draw a row per line: value and interval, filled where the difference is shown."""
    for place, (_label, row, ends, told) in enumerate(lines):
        value, *interval = ends
        if row is not None and not math.isnan(value):
            colour = styling.BETTER if row.better == row.b else styling.WORSE
            colour, fill = (
                (colour, colour) if row.is_shown(level) else (styling.FAINT, styling.PAPER)
            )
            ax.plot(interval, [place, place], color=colour, linewidth=2, solid_capstyle="butt",
                    zorder=2)  # fmt: skip
            ax.plot([value], [place], marker="o", markersize=7, color=colour, zorder=3,
                    markerfacecolor=fill)  # fmt: skip
        ax.annotate(told, (1.0, place), (8, 0), xycoords=ax.get_yaxis_transform(),
                    textcoords="offset points", va="center", fontsize="small",
                    annotation_clip=False)  # fmt: skip
    styling.name_rows(ax, [line.label for line in lines], 0.25)
    for tick, line in zip(ax.get_yticklabels(), lines, strict=True):
        if line.difference is None:
            tick.set_fontweight("bold")


@spoken
def comparison_forest(
    comparison: Comparison, ax: Axes | None = None, *, language: Language | None = None
) -> Axes:
    """Draw the differences of a comparison with their intervals, one row per pair and metric.

    Each row is "b − a", with its interval and Holm's corrected p to the right. A filled marker is
    a difference that is shown (p is small and the interval excludes 0), blue if b is better and
    red if a is; a hollow grey one is not shown. Scores where lower is better have axes of their own
    below the others, and so do ranks.

    Args:
        comparison: What ``compare`` returned.
        ax: Where to draw; a new figure, as tall as the rows need, if not given.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; those of ranks, if there are others, are the last of the figure. Nothing
        is shown or saved.
    """
    groups = _groups(comparison)
    ax = styling.axes(ax, *forest_size(comparison))
    parts = [ax] if len(groups) == 1 else _split(ax, [len(lines) + 0.5 for lines in groups])
    for part, lines in zip(parts, groups, strict=True):
        _draw_rows(part, lines, comparison)
    for part in parts[1:]:
        part.set_title(" ")  # room between the axis above and the names of the sides
    markers = _("filled: difference shown; hollow: no difference shown")
    parts[-1].set_xlabel(f"{parts[-1].get_xlabel()}\n{markers}")
    queries = styling.number_of_queries(len(comparison.queries))
    if len(comparison.names) == 2:
        pair = _pair_name(comparison.differences[0])
        title = f"{pair} ({queries})"
    else:
        title = _("Differences between systems ({queries})").format(queries=queries)
    ax.set_title(title, loc="left", pad=28)
    for part in parts:
        fonts.make_readable(part)
    return ax


def forest_size(comparison: Comparison) -> tuple[float, float]:
    """Return the width and height in inches that the rows of a comparison need.

    Short names leave it as narrow as a phone shows legibly.
    """
    groups = _groups(comparison)
    longest = max(width_of(line.label) for lines in groups for line in lines)
    above = sum(width_of(name) for _colour, name in _sides(comparison))
    width = min(_WIDTH, _BESIDE + _LETTER * (longest + above))
    return width, sum(_AROUND + _ROW * len(lines) for lines in groups)


def _groups(comparison: Comparison) -> list[list[_Line]]:
    """Return the lines where higher is better and, apart, scores where lower is, and ranks."""
    groups: tuple[list[Difference], ...] = [], [], []
    for row in comparison.differences:
        unbounded = row.average is not None and row.average.is_unbounded
        groups[_is_lower_better(row) * (1 + unbounded)].append(row)
    return [_lines_of(rows, comparison) for rows in groups if rows]


def _is_lower_better(row: Difference) -> bool:
    return row.average is not None and row.average.lower_is_better


def _split(ax: Axes, heights: Sequence[float]) -> list[Axes]:
    """Divide the place of an Axes, one part below the other."""
    place = ax.get_subplotspec()
    figure = ax.figure
    if place is not None:
        places = place.subgridspec(len(heights), 1, height_ratios=heights)
        ax.set_subplotspec(places[0])
        return [ax, *(figure.add_subplot(places[row]) for row in range(1, len(heights)))]
    box = ax.get_position()
    shares = [0.75 * height / sum(heights) * box.height for height in heights[1:]]
    parts, bottom = [ax], box.y0 + 1.6 * sum(shares)
    ax.set_position((box.x0, bottom, box.width, box.y1 - bottom))
    for share in shares:
        bottom -= 1.6 * share
        parts.append(figure.add_axes((box.x0, bottom, box.width, share)))
    return parts


def _lines_of(rows: Sequence[Difference], comparison: Comparison) -> list[_Line]:
    """Return the rows by metric: a heading over each unless there is one row for each."""
    if len(comparison.names) == 2:
        return [_line(_metric_of(row), row) for row in rows]
    lines = []
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        lines.append(_Line(_metric_of(of_metric[0])))
        lines += [_line(_pair_name(row), row) for row in of_metric]
    return lines


def _line(label: str, row: Difference) -> _Line:
    """Return the row of a difference, with its numbers and p beside it."""
    ends = row.difference, row.ci_low, row.ci_high
    value, low, high = map(_signed, ends)
    told = f"{value}  {_p_value(row.p_holm)}\n[{low}, {high}]"
    return _Line(label, row, ends, "n/a" if math.isnan(ends[0]) else told)


def _metric_of(row: Difference) -> str:
    """Name the average of a row, at its cutoff; it knows the label of a metric of one's own."""
    key, k = parse_metric(row.metric)
    labels = {} if row.average is None else row.average.labels
    label = labels.get(language())
    name = styling.metric_label(key) if label is None else fitted(label, 32)
    return styling.at_cutoff(name, k)


def _pair_name(row: Difference) -> str:
    return f"{fitted(row.b, 24)} − {fitted(row.a, 24)}"


def _draw_rows(ax: Axes, lines: Sequence[_Line], comparison: Comparison) -> None:
    rows = [line.difference for line in lines if line.difference is not None]
    lower = _is_lower_better(rows[0])
    ax.axvline(0.0, color=styling.INK, linewidth=1, zorder=1)
    rows_chart(ax, lines, comparison.level)
    _scale(ax, rows)
    axis = _("Difference and its {} interval")
    if lower:
        axis = _("Difference in {name} and its {} interval; lower is better")
    level, name = percent(comparison.level), _names_of(rows)
    ax.set_xlabel(axis.format(level, name=name), fontsize="small")
    styling.finish(ax, "x")
    _name_sides(ax, comparison, lower=lower)


def _names_of(rows: Sequence[Difference]) -> str:
    """Name the averages of some rows within a sentence."""
    labels = [row.average.label() for row in rows if row.average is not None]
    known = dict.fromkeys(fitted(one if one.isupper() else one.lower(), 32) for one in labels)
    return ", ".join(known)


def _p_value(p: float) -> str:
    return "p n/a" if math.isnan(p) else f"p {p_said(p)}"


def _signed(value: float) -> str:
    """Return three digits with a sign, or what it takes for a small number not to read as 0."""
    if value == 0:
        return "0.000"
    return (f"{value:+.3f}" if abs(value) >= 0.0005 else f"{value:+.0e}").replace("-", "−")


def _scale(ax: Axes, rows: Sequence[Difference]) -> None:
    """Let the axis hold all intervals and 0, with some room."""
    ends = [end for row in rows for end in (row.difference, row.ci_low, row.ci_high)]
    finite = [end for end in ends if math.isfinite(end)]
    reach = max([abs(end) for end in finite], default=0.0) or 0.1
    low, high = min([0.0, *finite]), max([0.0, *finite])
    limits = [min(low, -0.25 * reach) - 0.08 * reach, max(high, 0.25 * reach) + 0.08 * reach]
    # Axes that share theirs with this one may hold intervals that reach further.
    for other in ax.get_shared_x_axes().get_siblings(ax):
        limits += other.get_xlim() if other is not ax and other.has_data() else ()
    ax.set_xlim(min(limits), max(limits))
    ax.locator_params(axis="x", nbins=5 if max(limits) - min(limits) > 0.02 else 3)  # long numbers


def _sides(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the colours and names of the systems that are better on the left and the right."""
    a, b = _("second-named"), _("first-named")
    if len(comparison.names) == 2:
        first = comparison.differences[0]
        a, b = fitted(first.a, 16), fitted(first.b, 16)
    return [(styling.WORSE, a), (styling.BETTER, b)]


def _name_sides(ax: Axes, comparison: Comparison, *, lower: bool) -> None:
    """Say above the corners on which side which system is better."""
    sides = _sides(comparison)
    left, right = reversed(sides) if lower else sides
    for (colour, name), place, arrow, side in (
        (left, 0.0, "← {}", "left"),
        (right, 1.0, "{} →", "right"),
    ):
        told = arrow.format(_("{} better").format(name))
        ax.annotate(told, (place, 1.0), (0, 4), xycoords="axes fraction",
                    textcoords="offset points", ha=side, va="bottom", fontsize="small",
                    color=colour)  # fmt: skip


def slice_forest(
    slices: Slices | SlicedComparison, metric: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw one metric of slices with its intervals, one row per slice.

    Of a result, rows are the slices' averages, beside a dashed line at the average of all queries;
    of a comparison, the differences between the systems. A filled marker is a slice that is shown
    to differ (from the rest, or between the systems), blue for the better and red for the worse;
    a hollow grey one is not. To the right are the number of queries and, of a result, their share
    of all losses, of a comparison Holm's corrected p; an interval that p contradicts is not drawn.

    Args:
        slices: What ``result.by`` or ``comparison.by`` returned.
        metric: One of its metrics; the first if not given.
        ax: Where to draw; a new figure, as tall as the rows need, if not given.

    Returns:
        The Axes drawn on; nothing is shown or saved. Rows beyond the first 60 are counted below.

    Raises:
        InvalidInput: If there is no such metric.
    """
    metric = slices.metrics[0] if metric is None else one_of("metric", metric, slices.metrics)
    rows = [row for row in styling.labelled(slices).rows if row.metric == metric]
    n_left_out, rows = max(0, len(rows) - MOST_ROWS), rows[:MOST_ROWS]
    ax = styling.axes(ax, _WIDTH, _AROUND + _ROW * len(rows))
    lower = metric in slices.lower_is_better
    pairs = {_pair_name(row) for row in rows if isinstance(row, Difference)}
    lines = [_slice_line(row, slices.level, several=len(pairs) > 1, lower=lower) for row in rows]
    rows_chart(ax, lines, slices.level)
    name = styling.average_name(metric)
    name = _("{} (lower is better)").format(name) if lower else name
    axis = _scale_values(ax, slices, metric, rows)
    below = [axis.format(percent(slices.level), name=name)]
    below += [_("and {} more rows, which are not drawn").format(n_left_out)] if n_left_out else []
    below.append(_("filled: difference shown (blue better, red worse); hollow: not shown"))
    ax.set_xlabel("\n".join(below), fontsize="small")
    queries = styling.number_of_queries(slices.n_queries)
    title = _("{metric} by {tag} ({queries})").format(
        metric=name, tag=styling.tag_name(slices, 24), queries=queries
    )
    return styling.titled(ax, f"{pairs.pop()}: {title}" if len(pairs) == 1 else title)


def _scale_values(
    ax: Axes,
    slices: Slices | SlicedComparison,
    metric: str,
    rows: Sequence[Slice | Difference],
) -> str:
    """Lay out the axis of values or differences, and return what it is called."""
    overall = getattr(slices, "overall", None)
    if overall is None:
        ax.axvline(0.0, color=styling.INK, linewidth=1, zorder=1)
        _scale(ax, [row for row in rows if isinstance(row, Difference)])
        styling.finish(ax, "x")
        return _("Difference in {name} and its {} interval")
    ax.axvline(overall[metric], color=styling.INK, linewidth=1, linestyle="--", zorder=1)
    values = [getattr(row, end) for row in rows for end in ("value", "low", "high")]
    styling.draw_score_axis(ax, [overall[metric], *values])
    return _("{name} and its {} interval; dashed: all queries")


def _slice_line(row: Slice | Difference, level: float, *, several: bool, lower: bool) -> _Line:
    """Return the row of a slice, with its number of queries and its share of losses, or p."""
    label, told = fitted(row.slice or "", 32), styling.number_of_queries(row.n)
    if isinstance(row, Difference):
        label = f"{label}: {_pair_name(row)}" if several else label
        hides = is_contrary(row, level)
        interval = (math.nan, math.nan) if hides else (row.ci_low, row.ci_high)
        difference, ends = row, (row.difference, *interval)
    else:
        difference = row.as_difference(lower_is_better=lower)
        ends = row.value, row.low, row.high
    if math.isnan(ends[0]):
        told = _("{}: too few").format(told)
    elif isinstance(row, Slice) and not math.isnan(row.loss_share):
        told = _("{}, {} of losses").format(told, loss_share(row))
    elif isinstance(row, Difference) and not math.isnan(row.p_holm):
        told = f"{told}, {_p_value(row.p_holm)}"
    return _Line(label, difference, ends, told)
