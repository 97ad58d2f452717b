"""The report of a sweep: every cell, what quality costs, the choice, and the comparison below."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from krag_eval.core import (
    N_,
    Column,
    Cutoff,
    Report,
    Table,
    _,
    fitted,
    parse_metric,
    rounded,
    spelled,
)
from krag_eval.plotting import styling
from krag_eval.report.comparison_page import comparison_page
from krag_eval.report.rendering import NAME, picture
from krag_eval.report.result_page import REPORT as OF_RESULT, result_page
from krag_eval.sweeping.page import chosen, reused, shared
from krag_eval.sweeping.picture import pareto_points
from krag_eval.sweeping.sweep import COSTS, Sweep, SweepCell

_SIZE = (4.9, 3.9)
# What a page tells of every cell at the cutoff, where there is such a metric.
_OF_A_CELL = ("macro_recall", "macro_token_precision", "redundancy", "ndcg")
_short_name = partial(fitted, width=NAME)


def sweep_page(sweep: Sweep, **page: Any) -> dict[str, Any]:
    """Gather what the template reads of a sweep and its comparison; of one cell, of its result."""
    if sweep.comparison is None:
        return {**result_page(sweep.cells[0].result, **page), "title": _(OF_RESULT.heading)}
    return {**comparison_page(sweep.comparison, **page), **_sweep(sweep)}


def _sweep(sweep: Sweep) -> dict[str, Any]:
    """Gather what the template reads of a sweep alone."""
    front = {*sweep.front("context")}
    return {
        "sweep": sweep,
        "cells": Table(sweep.cells, list(_sweep_columns(sweep))),
        "is_on_front": lambda cell: (cell.same_as or cell.name) in front,
        "told": [*reused(sweep), *shared(sweep)],
        "choice": chosen(sweep),
        "drawn_costs": [
            picture(f"pareto{cost}", _SIZE, pareto_points, sweep, cost)
            for cost in COSTS
            if sweep.front(cost)
        ],
    }


def _sweep_columns(sweep: Sweep) -> Iterator[Column]:
    """Yield what is told of every cell."""
    first = sweep.cells[0].result
    at = sweep.quality_metric.partition("@")[2]
    wanted = [sweep.metric, sweep.quality_metric, *(f"{key}@{at}" for key in _OF_A_CELL)]
    yield Column(_("Cell"), lambda cell: _short_name(cell.name))
    yield Column(_("Chunks"), lambda cell: f"{cell.n_chunks:,}")
    for key, k in dict.fromkeys(map(parse_metric, wanted)):
        if key in first.averages(k):
            name = styling.average_name(f"{key}@{spelled(k)}", first)
            yield Column(name, partial(_score, key=key, k=k))
    yield Column(_("Recall by one chunk"), "recall_by_one")
    yield Column(_("Index ceiling"), "index_ceiling")
    yield Column(_("Words of context"), lambda cell: rounded(cell.context, 0))
    yield Column(_("Median latency (ms)"), lambda cell: rounded(1000 * cell.latency, 1))


def _score(cell: SweepCell, key: str, k: Cutoff) -> float:
    return cell.result.averages(k)[key]


#: How a sweep is reported.
REPORT = Report(sweep_page, N_("Comparison of retrievers"))
