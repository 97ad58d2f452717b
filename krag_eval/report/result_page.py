"""The page of a result: the objects that its template reads, and the pictures."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from krag_eval import plotting
from krag_eval.comparison.comparison_page import interval_of, p_value
from krag_eval.comparison.slices import DIAGNOSED, Slices, check_diagnosed, slices
from krag_eval.comparison.slices_page import interval_beside_p, loss_share
from krag_eval.core import (
    METRICS,
    N_,
    Budget,
    Column,
    Cutoff,
    Report,
    ResultFacts,
    Table,
    _,
    averages_of,
    fitted,
    muted,
    page_of,
    parse_metric,
    percent,
    span,
    spelled,
    unreviewed_of,
    unreviewed_sentences,
    whole,
)
from krag_eval.core.display.result import told_contradicted
from krag_eval.core.results.evidence import checked_metadata
from krag_eval.core.results.facts import STATUSES
from krag_eval.core.scoring.cutoffs import in_order
from krag_eval.diagnosis.diagnosis import Diagnosis
from krag_eval.diagnosis.page import sentence, sentences
from krag_eval.intervals.intervals import FEW_QUERIES, check_sampling, confidence_intervals, wilson
from krag_eval.plotting import styling
from krag_eval.plotting.forest import MOST_ROWS
from krag_eval.report import rendering
from krag_eval.report.query_list import query_list
from krag_eval.report.rendering import NAME, picture

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.95
_SIZE = (4.9, 3.9)
# What the distribution over queries is drawn of, where the result has it.
_TELLING = ("ndcg", "recall")
# Averages up front, where the result has them; if it has none, the first so many that it has.
_FRONT = ("macro_recall", "ndcg", "mrr")
# Inches of a picture that stands alone: legible on a phone, where it is scaled down.
_WIDE = 5.4


def result_page(
    result: ResultFacts,
    *,
    k: Cutoff | str = None,
    intervals: bool | pd.DataFrame = True,
    n_queries: int | None = None,
    by: str | Iterable[str] = (),
    diagnosis: Diagnosis | None = None,
    metadata: str | Iterable[str] | None = None,
) -> dict[str, Any]:
    """Gather what the template reads.

    Raises:
        InvalidInput: If an argument is not possible.
    """
    if n_queries is not None:
        whole("n_queries", n_queries, 0)
    cutoffs, cutoff = in_order(result.k), result.evaluated_cutoff(k)
    tags = rendering.checked_tags(by)
    if diagnosis is not None:
        check_diagnosed(diagnosis, result)
    sliced = [_slices(result, tag, cutoff, diagnosis) for tag in tags]
    table, level = _intervals(result, intervals), _LEVEL if intervals is True else math.nan
    averages, shown = result.averages(cutoff), result.shown
    statuses = {one: result.statuses(one) for one in cutoffs}
    n_perfect = int((statuses[cutoff][result.counted] == STATUSES[0]).sum())
    words = averages_of(one for one in METRICS.values() if one.needs_words)
    whole_ones = [key for key in shown if not _is_folded(key, shown)]
    n = result.n_counted
    return {
        "template": "result.html",
        "result": result,
        "subtitle": _subtitle(result),
        "settings": result.settings.items(),
        "signature": result.signature,
        "cutoff": cutoff,
        "cutoffs": cutoffs,
        "name_of": partial(_name_of, result=result),
        "named": partial(_named, result=result),
        "spelled": lambda one: _("all") if one is None else spelled(one),
        "value_of": result.to_dict().__getitem__,
        "interval_of": partial(_interval, table),
        "at_cutoff": styling.at_cutoff,
        "is_shown": lambda slices: methodcaller("is_shown", slices.level),
        "level": level,
        "few": table is not None and n < FEW_QUERIES and FEW_QUERIES,
        "contradicted": told_contradicted(result),
        "drafts": unreviewed_sentences(unreviewed_of({"": result})),
        "longest": _longest(result, cutoff),
        "front": [key for key in _FRONT if key in averages]
        or [key for key in averages if not _is_folded(key, averages)][:3],
        "n_perfect": n_perfect,
        "perfect": n_perfect / n if n else math.nan,
        "perfect_interval": n and intervals is True and wilson(n_perfect / n, n, _LEVEL),
        "groups": [
            (_("Items and documents"), [key for key in whole_ones if key not in words]),
            (_("Words"), [key for key in whole_ones if key in words]),
        ],
        "micro": [key for key in shown if key not in whole_ones],
        "has_intervals": table is not None,
        "tag_of": partial(styling.tag_name, columns=NAME),
        "budget": next((spelled(one) for one in cutoffs if isinstance(one, Budget)), ""),
        "outcomes": [
            (status, counts)
            for status in STATUSES
            for counts in [{k: int((of == status).sum()) for k, of in statuses.items()}]
            if any(counts.values())
        ],
        "diagnosis": diagnosis,
        **({} if diagnosis is None else _diagnosed(diagnosis)),
        "sliced": [
            (one, rendering.named(one, partial(_named, result=result)), _slice_tables(one),
             rendering.slice_picture(one, place, _WIDE))
            for place, one in enumerate(sliced)
        ],
        "most_slices": MOST_ROWS,
        "drawn": list(_pictures(result, cutoff, table)),
        **query_list(result, cutoff, n_queries, diagnosis, checked_metadata(metadata)),
    }  # fmt: skip


def _longest(result: ResultFacts, cutoff: Cutoff) -> int:
    """Return how long the longest list is, where it is shorter than the cutoff; otherwise 0."""
    most = result.settings.get("retrieved", "").removeprefix("<=")
    return int(most) if most and isinstance(cutoff, int) and cutoff > int(most) else 0


def _intervals(result: ResultFacts, intervals: bool | pd.DataFrame) -> pd.DataFrame | None:
    """Return the intervals to tell, if any."""
    if intervals is False:
        return None
    if not isinstance(intervals, bool):
        return intervals
    with muted():  # the page says itself on how few queries they rest
        return confidence_intervals(result, _LEVEL)


def _interval(table: pd.DataFrame | None, average: str) -> tuple[float, float] | None:
    """Return the interval of an average, if there is one."""
    if table is None or average not in table.index or math.isnan(table["low"][average]):
        return None
    return float(table["low"][average]), float(table["high"][average])


def _subtitle(result: ResultFacts) -> str:
    skipped = result.n_queries - result.n_counted
    told = _("{} without ground truth, left out of the averages").format(skipped) if skipped else ""
    parts = (styling.number_of_queries(result.n_counted), told, result.settings.get("matcher", ""))
    return " · ".join(filter(None, parts))


def _name_of(key: str, result: ResultFacts) -> str:
    """Return what an average is called on the page, wherever it stands."""
    return styling.with_direction(styling.metric_label(key, result), result.definitions.get(key))


def _named(metric: str, result: ResultFacts) -> str:
    key, k = parse_metric(metric)
    return styling.at_cutoff(_name_of(key, result), k)


def _is_folded(key: str, averages: Collection[str]) -> bool:
    """Tell whether an average is the micro one of two, so that the other says nearly the same.

    >>> [_is_folded(key, ["micro_f1", "macro_f1", "mrr"]) for key in ("micro_f1", "macro_f1")]
    [True, False]
    """
    return key.startswith("micro_") and f"macro_{key.removeprefix('micro_')}" in averages


def _diagnosed(diagnosis: Diagnosis) -> dict[str, Any]:
    """Gather what the template reads of a diagnosis."""
    steps = diagnosis.waterfall()
    steps["items"] = [diagnosis.counts[cause] for cause in steps.index]
    columns = [Column(_("Step"), "label"), Column(_("Items"), "items"), Column(_("Share"), "share")]
    columns.append(Column(_("Recall by then"), "cumulative"))
    size = _WIDE, 1.3 + 0.44 * len(steps)
    return {
        "steps": Table(steps.to_dict("records"), columns),
        "lost": [sentence(diagnosis), *sentences(diagnosis)[1:]],
        "searched": page_of(diagnosis).notes,
        "waterfall": picture("diagnosis", size, plotting.diagnosis_waterfall, diagnosis),
    }


def _slices(result: ResultFacts, tag: str, cutoff: Cutoff, diagnosis: Diagnosis | None) -> Slices:
    """Return the slices by a tag; the queries' own tag of a name comes first."""
    of_classes = diagnosis if tag == DIAGNOSED and tag not in result.tags else None
    return rendering.sliced_by(
        partial(slices, result), tag, cutoff, None, check_sampling(), of_classes
    )


def _slice_tables(slices: Slices) -> dict[str, Table]:
    """Return a table for each metric."""
    level = percent(slices.level)
    columns = [
        Column(_("Slice"), lambda row: fitted(row.slice, NAME)),
        Column(_("Queries"), "n"),
        Column(_("Share of losses"), loss_share),
        Column(_("Value"), "value"),
        Column(interval_of(slices.level), lambda row: span(row.low, row.high)),
        Column(_("Difference to the rest"), "difference"),
        Column(_("{} interval of the difference").format(level),
               partial(interval_beside_p, level=slices.level)),
        Column("p (Holm)", lambda row: p_value(row.p_holm)),
    ]  # fmt: skip
    return {
        metric: Table([row for row in slices.rows if row.metric == metric][:MOST_ROWS], columns)
        for metric in slices.metrics
    }


def _pictures(result: ResultFacts, k: Cutoff, bounds: pd.DataFrame | None) -> Iterator[str]:
    """Draw whatever this result can be drawn as."""
    height = max(_SIZE[1], 1.1 + 0.34 * len(result.keys))
    yield picture("bars", (_SIZE[0], height), plotting.metric_bars, result, k, intervals=bounds)
    if len([one for one in result.k if not isinstance(one, Budget)] or result.k) > 1:
        yield picture("cutoffs", _SIZE, plotting.cutoff_curves, result)
    for unit in rendering.units_of(result.k):
        how = {"unit": unit, "intervals": bounds}
        yield picture(f"budgets{unit}", _SIZE, plotting.budget_curves, result, **how)
    scores = [
        one.column
        for one in result.definitions.values()
        if one.column in result.keys and one.range == (0, 1)
    ]
    telling = next((name for name in (*_TELLING, *reversed(scores)) if name in scores), None)
    if telling is not None:
        metric = f"{telling}@{spelled(k)}"
        yield picture("queries", _SIZE, plotting.metric_distribution, result, metric)
    evidence = result.evidence
    if evidence is not None and len(evidence.relevance.item_query):
        yield picture("ranks", _SIZE, plotting.first_rank_bars, result)
    if evidence is not None and evidence.takes_threshold:
        yield picture("thresholds", _SIZE, plotting.threshold_curves, result)


#: How a result is reported.
REPORT = Report(result_page, N_("Retrieval evaluation"))
