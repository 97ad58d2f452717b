"""What is shown of predictions: which metric to look at, and whether the queries can tell."""

from __future__ import annotations

import math
from functools import partial

from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import Column, Page, Table, _, presents, rounded, span
from krag_eval.lab.predicting import Predictions, from_the_best

_short = partial(rounded, digits=3)


@presents
def _page(found: Predictions) -> Page:
    interval = interval_of(found.level)
    columns = [
        Column(_("metric"), "metric"),
        Column(_("queries"), "n"),
        Column(_("Spearman"), lambda one: _short(one.spearman)),
        Column(interval, lambda one: span(one.spearman_low, one.spearman_high, _short)),
        Column(_("Kendall τ_b"), lambda one: _short(one.kendall)),
        Column(interval, lambda one: span(one.kendall_low, one.kendall_high, _short)),
    ]
    rows = sorted(found.correlations, key=from_the_best)
    return Page(tables=[Table(rows, columns)], sentences=[_sentence(found)])


def _sentence(found: Predictions) -> str:
    n = found.n_chosen_on + found.n_reported_on
    if found.best is None or math.isnan(found.spearman):
        return _(
            "No metric can be said to predict these scores, and {} queries are too few to rank the "
            "metrics."
        ).format(n)
    known = _(
        "Spearman {value:.2f} ({level} % interval {interval}) on {n} queries; it was chosen on the "
        "other {chosen}."
    ).format(
        value=found.spearman,
        level=f"{100 * found.level:.10g}",
        interval=span(found.low, found.high, partial(rounded, digits=2)),
        n=found.n_reported_on,
        chosen=found.n_chosen_on,
    )
    if found.is_turned:
        return _(
            "These scores are lower where retrieval is better: even {best}, which goes with them "
            "best, has {found} If a low score is a good answer, turn the sign: pass -score."
        ).format(best=found.best, found=known)
    start = _("No metric is shown to predict these scores: the best, {best}, has {found}")
    if found.low > 0:
        start = _("{best} predicts these scores best: {found}")
    rest = _(
        "{n} of {others} other metrics cannot be told from it: {queries} queries are too few to "
        "rank the metrics."
    )
    if found.can_rank:
        rest = _("{n} of {others} other metrics cannot be told from it.")
    counts = rest.format(n=len(found.rivals), others=found.n_others, queries=n)
    return f"{start.format(best=found.best, found=known)} {counts}"
