"""How queries and ground-truth items are distributed, behind the averages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from krag_eval.core import (
    Advice,
    Cutoff,
    InvalidInput,
    Language,
    _,
    clipped,
    ngettext,
    parse_metric,
    resolved_average,
    spelled,
    spoken,
)
from krag_eval.core.errors import unknown
from krag_eval.plotting import styling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.core import ResultFacts

_BINS = 10
# How far exactly 0 and exactly 1 are from what is between.
_APART = 0.1
# The last rank of each bar: the first ten have one each, those beyond share bars.
_RANK_ENDS = (*range(1, 11), 20, 50, 100, 200, 500, 1000)


@spoken
def metric_distribution(
    result: ResultFacts,
    metric: str,
    ax: Axes | None = None,
    *,
    language: Language | None = None,
) -> Axes:
    """Draw how many queries have which value of a metric, exactly 0 and exactly 1 set apart.

    An average of 0.5 can be every second query lost, or all of them half answered; here one sees
    which. The mean is marked. Values above 1, which some conventions allow, fall into the last bar
    and its label says so.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned.
        metric: A per-query metric and one of the result's cutoffs: ``"ndcg@10"``, ``"recall@5"``.
        ax: Where to draw; a new figure if not given.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If these are several results; draw each on an ``ax`` of its own.
        InvalidInput: If the metric has no values per query, or its cutoff was not evaluated.
    """
    styling.check_alone("result", result)
    column, k = _column_of(result, metric)
    values = [float(value) for value in result.per_query(k)[column]]
    defined = [value for value in values if not math.isnan(value)]
    ax = styling.axes(ax)
    key = result.keys[column]
    _draw_histogram(ax, defined, styling.BAR)
    name = styling.column_label(column, result)
    _mark_average(ax, result, column, k)
    queries = styling.queries_of(result)
    undefined = result.n_counted - len(defined)
    if undefined:
        queries = _("{}, {} undefined").format(queries, undefined)
    title = _("{metric} {cutoff}, query by query ({queries})").format(
        metric=name, cutoff=styling.cutoff_words(k), queries=queries
    )
    average = result.definitions.get(key)
    ax.set_xlabel(styling.with_direction(_("{metric} of a query").format(metric=name), average))
    ax.set_ylabel(_("Queries"))
    exact = _("exactly")
    top = "≥ 1" if any(value > 1 for value in defined) else f"{exact}\n1"
    inner = [0.2, 0.4, 0.6, 0.8]
    ax.set_xticks([-_APART, *inner, 1 + _APART], [f"{exact}\n0", *(f"{p:g}" for p in inner), top])
    ax.set_xlim(-_APART - 0.08, 1 + _APART + 0.08)
    return styling.titled(ax, title, 24)


@spoken
def first_rank_bars(
    result: ResultFacts, ax: Axes | None = None, *, language: Language | None = None
) -> Axes:
    """Draw at which rank ground-truth items are first found, and how many never are.

    All retrieved documents count, whatever the cutoffs. Ranks beyond 10 share bars.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned, with its evidence.
        ax: Where to draw; a new figure if not given.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

    Returns:
        The Axes drawn on; nothing is shown or saved.

    Raises:
        InvalidType: If these are several results; draw each on an ``ax`` of its own.
        InvalidInput: If the result holds no evidence.
    """
    styling.check_alone("result", result)
    found = result.first_ranks()
    ranks = [int(rank) for rank in found.dropna()]
    groups = _rank_groups(max(ranks, default=0))
    counts = [sum(low <= rank <= high for rank in ranks) for low, high in groups]
    missed = len(found) - len(ranks)
    ax = styling.axes(ax)
    places = [*range(len(groups)), len(groups) + 0.4]
    bars = ax.bar(places, [*counts, missed], width=0.8,
                  color=[styling.FOUND] * len(groups) + [styling.MISSED])  # fmt: skip
    labels = [f"{n}\n{styling.share_label(n, len(found))}" if n else "0" for n in [*counts, missed]]
    ax.bar_label(bars, labels=labels, padding=2, fontsize="small")
    names = [f"{low}" if low == high else f"{low}–{high}" for low, high in groups]
    ax.set_xticks(places, [*names, _("never")])
    _scale_counts(ax, [*counts, missed], lines=2)
    title = ngettext(
        "Where ground truth is first found ({} item)",
        "Where ground truth is first found ({} items)",
        len(found),
    )
    ax.set_xlabel(_("Rank of the first document that covers the item"))
    ax.set_ylabel(_("Items"))
    return styling.titled(ax, title.format(len(found)), 12)


def _column_of(result: ResultFacts, metric: str) -> tuple[str, Cutoff]:
    """Return the per-query column of a metric, given by its own name or that of its mean."""
    name, k = parse_metric(metric)
    if k not in result.k:
        evaluated = ", ".join(map(spelled, result.k))
        problem = f": {clipped(metric)} needs one of the evaluated cutoffs ({evaluated})"
        raise InvalidInput("metric", problem, Advice("evaluate with {}", k=...))
    table = result.per_query(k)
    columns = [str(column) for column in table.columns if column in result.keys]
    means = {result.keys[column]: column for column in columns}
    try:
        name = resolved_average("metric", name, (*columns, *means))
    except ValueError:
        refusal = unknown("metric", name, (*columns, *means), "a value per query")
        others = "Ranks are drawn by first_rank_bars"
        raise InvalidInput("metric", refusal.problem, f"{refusal.fix} {others}".strip()) from None
    return means.get(name, name), k


def _mark_average(ax: Axes, result: ResultFacts, column: str, k: Cutoff) -> None:
    """Mark the average that is made of these values, as the result has it."""
    key = result.keys[column]
    average = result.averages(k).get(key, math.nan)
    if math.isnan(average):
        return
    told = f"{styling.metric_label(key, result)} = {styling.value_label(average)}"
    place = min(average, 1.0)
    ax.axvline(place, color=styling.INK, linewidth=1, linestyle=":")
    side = "left" if place < 0.25 else "right" if place > 0.75 else "center"
    ax.text(place, 1.01, told, transform=ax.get_xaxis_transform(), ha=side, va="bottom",
            fontsize="small")  # fmt: skip


def _draw_histogram(ax: Axes, values: Sequence[float], colour: str) -> None:
    lowest = sum(value <= 0 for value in values)
    highest = sum(value >= 1 for value in values)
    edges = [step / _BINS for step in range(_BINS + 1)]
    between = [
        sum(low <= value < high and value > 0 for value in values) for low, high in pairwise(edges)
    ]
    places = [-_APART, *((low + high) / 2 for low, high in pairwise(edges)), 1 + _APART]
    counts = [lowest, *between, highest]
    bars = ax.bar(places, counts, 0.9 / _BINS, color=colour)
    ax.bar_label(bars, [str(count or "") for count in counts], padding=2, fontsize="small",
                 bbox={"color": styling.PAPER, "pad": 0.4})  # fmt: skip
    _scale_counts(ax, counts)


def _rank_groups(deepest: int) -> list[tuple[int, int]]:
    """Return the ranks that share a bar: each of the first ten its own, then ranges.

    >>> _rank_groups(30)[8:]
    [(9, 9), (10, 10), (11, 20), (21, 50)]
    """
    ends = [*_RANK_ENDS, deepest]
    groups = zip([1, *(end + 1 for end in _RANK_ENDS)], ends, strict=True)
    return [(first, last) for first, last in groups if first <= deepest]


def _scale_counts(ax: Axes, counts: Sequence[int], lines: int = 1) -> None:
    """Leave room for labels of so many lines above the tallest bar; count in whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.set_ylim(0, max(1, *counts) * (1 + 0.07 * lines))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    styling.finish(ax, "y")
