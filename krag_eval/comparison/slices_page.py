"""What is shown of slices: the numbers of each, and which of them are more than chance."""

from __future__ import annotations

import math
from functools import partial

from krag_eval.comparison.comparison_page import difference_columns, interval_of, p_value, sentence
from krag_eval.comparison.paired import Difference
from krag_eval.comparison.slices import FEWEST_QUERIES, Slice, SlicedComparison, Slices, too_many
from krag_eval.core import Column, Page, Table, _, percent, pgettext, presents, rounded, span
from krag_eval.intervals.intervals import FEW_QUERIES

_ROWS_SHOWN = 60


@presents
def _slices(slices: Slices) -> Page:
    lines = [
        sentence(row.as_difference(lower_is_better=row.metric in slices.lower_is_better,
                                   rest=_("the rest")), slices.level)
        for row in slices.rows
        if row.is_shown(slices.level)
    ]  # fmt: skip
    within = interval_of(slices.level)
    columns = [
        Column(_("slice"), "slice"),
        Column(_("metric"), "metric"),
        Column("n", "n"),
        Column(_("of all\nlosses"), loss_share),
        Column(_("value"), "value"),
        Column(within, lambda row: span(row.low, row.high)),
        Column(_("rest"), "rest", detail=True),
        Column(_("minus\nrest"), "difference"),
        Column(within, partial(interval_beside_p, level=slices.level)),
        Column("p (Holm)", lambda row: p_value(row.p_holm)),
    ]
    none = pgettext("slices", "No slice is shown to differ from the rest.")
    return _page(slices, Table(slices.rows[:_ROWS_SHOWN], columns, names=2), lines or [none])


@presents
def _sliced_comparison(sliced: SlicedComparison) -> Page:
    lines = [
        f"{row.slice}: {sentence(row, sliced.level)}"
        for row in sliced.rows
        if row.is_shown(sliced.level)
    ]
    within = interval_of(sliced.level)
    columns = [Column(_("slice"), "slice"), Column("a", "a"), Column("b", "b")]
    columns += [Column(_("metric"), "metric"), Column("n", "n"), *difference_columns(sliced.level)]
    beside = partial(interval_beside_p, level=sliced.level)
    columns = [one._replace(of=beside) if one.heading == within else one for one in columns]
    table = Table(sliced.rows[:_ROWS_SHOWN], columns, names=4)
    return _page(sliced, table, lines or [_("No difference is shown in any slice.")])


def _page(slices: Slices | SlicedComparison, table: Table, lines: list[str]) -> Page:
    n, more = len(slices.names), len(slices.rows) - _ROWS_SHOWN
    told = _("{n} slice of {queries} queries by {tag}")
    if n > 1:
        told = _("{n} slices of {queries} queries by {tag}")
    title = told.format(n=n, queries=slices.n_queries, tag=slices.tag)
    sampled = f"n_resamples={slices.n_resamples} | seed={slices.seed}"
    left_out = [_("… and {} more rows in .table").format(more)] if more > 0 else []
    return Page(
        title=f"{title} ({_(slices.about)})" if slices.about else title,
        tables=[table],
        sentences=lines,
        notes=[*notes_on(slices), *left_out],
        signature=f"{slices.signature} | {sampled}",
    )


def loss_share(row: Slice) -> str:
    """Return the share of all losses that a slice has, for a table."""
    return percent(row.loss_share, 1 if 0 < row.loss_share < 0.005 else 0)


def interval_beside_p(row: Slice | Difference, level: float) -> str:
    """Return the interval of a difference for a table, a dash where p says something else."""
    return rounded(math.nan) if is_contrary(row, level) else span(row.ci_low, row.ci_high)


def is_contrary(row: Slice | Difference, level: float) -> bool:
    """Tell whether the interval excludes 0 and the corrected p is not small, or the reverse."""
    excludes = row.ci_low > 0 or row.ci_high < 0
    return not math.isnan(row.ci_low) and excludes != (row.p_holm < 1 - level)


def notes_on(slices: Slices | SlicedComparison) -> list[str]:
    """Return what to bear in mind of slices."""
    sizes: dict[str, int] = {}
    for row in slices.rows:
        sizes[row.slice or ""] = max(row.n, sizes.get(row.slice or "", 0))
    # A metric may be undefined for some queries of a slice.
    of_rows = {
        row.slice
        if row.n == sizes[row.slice or ""]
        else _("{slice} on {metric}").format(slice=row.slice, metric=row.metric): row.n
        for row in slices.rows
    }
    n_contrary = sum(is_contrary(row, slices.level) for row in slices.rows)
    n_tests, least_p = slices.n_tests, 1 / (slices.n_resamples + 1)
    n_asked = sum(row.n >= FEWEST_QUERIES for row in slices.rows)
    notes = too_many(slices.tag, list(sizes.values()), n_asked)
    if n_contrary:
        told = _("Left out are intervals that p contradicts after Holm: {n}; .table has them.")
        notes.append(told.format(n=n_contrary))
    has_least = any(row.p_permutation == least_p for row in slices.rows)
    if has_least and least_p * n_tests >= 1 - slices.level:
        told = _("With n_resamples={n}, no p of {tests} tests can be small after Holm; take more.")
        notes.append(told.format(n=slices.n_resamples, tests=n_tests))
    for least, bound, told in (
        (0, FEWEST_QUERIES, _("Too few queries for more than a count: {}.")),
        (FEWEST_QUERIES, FEW_QUERIES, _("Few queries, so read these with care: {}.")),
    ):
        small = [f"{name} ({n})" for name, n in of_rows.items() if least <= n < bound]
        if small:
            more = _(" and {} more").format(len(small) - 10) if len(small) > 10 else ""
            notes.append(told.format(", ".join(small[:10]) + more))
    return notes
