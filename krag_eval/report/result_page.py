"""The contents of a result's page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval import plotting
from krag_eval._errors import InvalidType, muted, whole
from krag_eval.plotting import Language
from krag_eval.plotting.styling import with_direction
from krag_eval.report.query_list import query_list
from krag_eval.report.rendering import joined, number, percent, units_of, words, words_of
from krag_eval.results.result import STATUSES, EvaluationResult
from krag_eval.scoring.cutoffs import Budget, Cutoff, deepest, in_order, spelled
from krag_eval.scoring.metrics import TOKEN_METRICS, averages_of
from krag_eval.statistics.intervals import FEW_QUERIES

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.results.diagnosis import Diagnosis


__all__ = ["result_page"]

_LEVEL = 0.95
_SIZE = (4.9, 3.9)
# What the distribution over queries is drawn of, where the result has it.
_TELLING = ("ndcg", "recall")


class _MetricRow(NamedTuple):
    """An average: its name, its spelling and, per cutoff, value and interval."""

    name: str
    key: str
    cells: list[tuple[str, str]]


def result_page(
    result: EvaluationResult,
    k: Cutoff | str,
    language: Language,
    intervals: bool | pd.DataFrame,
    n_queries: int | None,
    diagnosis: Diagnosis | None = None,
) -> dict[str, Any]:
    """Gather what the template shows.

    Raises:
        InvalidInput: If an argument is not possible.
    """
    w = words(language)
    if not isinstance(result, EvaluationResult):
        raise InvalidType("result", f"must be an EvaluationResult, got {type(result).__name__}")
    if n_queries is not None:
        whole("n_queries", n_queries, 0)
    cutoffs = in_order(result.k)
    cutoff = deepest(cutoffs) if k is None else result.evaluated_cutoff(k)
    bounds = _bounds(result, intervals)
    level = percent(_LEVEL, w) if intervals is True else ""
    n_counted = result.n_counted
    return {
        "subtitle": _subtitle(result, w),
        "summary": _summary(result, cutoff, bounds, level, w),
        "few": w["few"].format(n_counted, FEW_QUERIES)
        if bounds is not None and n_counted < FEW_QUERIES
        else "",
        "cutoffs": [w["all"] if one is None else spelled(one) for one in cutoffs],
        "metrics": _metric_groups(result, cutoffs, bounds, language),
        "budgets": [spelled(one) for one in cutoffs if isinstance(one, Budget)],
        "interval_note": w["interval note"].format(level) if bounds is not None else "",
        "statuses": _status_rows(result, cutoffs, w),
        "pictures": list(_pictures(result, cutoff, bounds, language)),
        **query_list(result, cutoff, n_queries, language, diagnosis),
        "settings": list(result.settings.items()),
        "signature": result.signature,
    }


def _bounds(result: EvaluationResult, intervals: bool | pd.DataFrame) -> pd.DataFrame | None:
    """Return the intervals to tell, if any."""
    if intervals is False:
        return None
    if not isinstance(intervals, bool):
        return intervals
    with muted():  # the page says itself on how few queries they rest
        return result.confidence_intervals(_LEVEL)


def _subtitle(result: EvaluationResult, w: Mapping[str, str]) -> str:
    counted = result.n_counted
    skipped = result.n_queries - counted
    return joined(
        (
            w["one query"] if counted == 1 else w["queries"].format(counted),
            w["skipped"].format(skipped) if skipped else "",
            result.settings.get("matcher", ""),
        )
    )


def _summary(
    result: EvaluationResult,
    cutoff: Cutoff,
    bounds: pd.DataFrame | None,
    level: str,
    w: Mapping[str, str],
) -> str:
    recall = result.averages(cutoff).get("macro_recall", math.nan)
    if math.isnan(recall):
        return ""
    interval = ""
    average = f"macro_recall@{spelled(cutoff)}"
    if bounds is not None and average in bounds.index:
        interval = w["its interval"].format(level, _interval(bounds, average))
    perfect = int((result.statuses(cutoff)[result.counted] == STATUSES[0]).sum())
    return w["summary"].format(
        cutoff=words_of(cutoff, w), recall=w["percent"].format(f"{100 * recall:.0f}"),
        value=number(recall), interval=interval, perfect=perfect, queries=result.n_counted,
    )  # fmt: skip


def _interval(bounds: pd.DataFrame, average: str) -> str:
    low, high = (float(bounds[bound][average]) for bound in ("low", "high"))
    return "" if math.isnan(low) or math.isnan(high) else f"{number(low)}–{number(high)}"


def _metric_groups(
    result: EvaluationResult,
    cutoffs: list[Cutoff],
    bounds: pd.DataFrame | None,
    language: Language,
) -> dict[str, list[_MetricRow]]:
    """Return the rows of the table of metrics: by item and, if words are counted, by word."""
    by_word = averages_of(TOKEN_METRICS.values())
    values = result.to_dict()
    groups: dict[str, list[_MetricRow]] = {"by item": [], "by word": []}
    for key in dict.fromkeys(average.rpartition("@")[0] for average in values):
        cells = []
        for cutoff in cutoffs:
            average = f"{key}@{spelled(cutoff)}"
            known = bounds is not None and average in bounds.index
            interval = _interval(bounds, average) if bounds is not None and known else ""
            cells.append((number(values[average]), interval))
        name = plotting.metric_name(key, language, result)
        told = with_direction(name, result.definitions.get(key), language)
        groups["by word" if key in by_word else "by item"].append(_MetricRow(told, key, cells))
    return {heading: rows for heading, rows in groups.items() if rows}


def _status_rows(
    result: EvaluationResult, cutoffs: list[Cutoff], w: Mapping[str, str]
) -> list[tuple[str, str, list[int]]]:
    """Return each status that occurs, with how many queries have it at each cutoff."""
    columns = {cutoff: result.statuses(cutoff) for cutoff in cutoffs}
    counts = {
        status: [int((columns[cutoff] == status).sum()) for cutoff in cutoffs]
        for status in STATUSES
    }
    return [(status, w[status], numbers) for status, numbers in counts.items() if any(numbers)]


def _pictures(
    result: EvaluationResult, k: Cutoff, bounds: pd.DataFrame | None, language: Language
) -> list[str]:
    """Draw whatever this result can be drawn as."""
    draw: dict[str, Any] = {
        "bars": lambda ax: plotting.metric_bars(result, k, ax, intervals=bounds, language=language),
    }
    by_rank = [one for one in result.k if not isinstance(one, Budget)]
    if len(by_rank or result.k) > 1:
        draw["cutoffs"] = lambda ax: plotting.cutoff_curves(result, ax=ax, language=language)
    for unit in units_of(result.k):
        draw[f"budgets{unit}"] = partial(
            plotting.budget_curves, result, None, unit=unit, intervals=bounds, language=language
        )
    scores = [
        one.column
        for one in result.definitions.values()
        if one.column in result.keys and one.range == (0, 1)
    ]
    telling = next((name for name in (*_TELLING, *reversed(scores)) if name in scores), None)
    if telling is not None:
        metric = f"{telling}@{spelled(k)}"
        draw["queries"] = lambda ax: plotting.metric_distribution(
            result, metric, ax, language=language
        )
    evidence = result.evidence
    if evidence is not None and len(evidence.relevance.item_query):
        draw["ranks"] = lambda ax: plotting.first_rank_bars(result, ax, language=language)
    if evidence is not None and evidence.takes_threshold:
        draw["thresholds"] = lambda ax: plotting.threshold_curves(result, ax=ax, language=language)
    sizes = {"bars": (_SIZE[0], max(_SIZE[1], 1.1 + 0.34 * len(result.keys)))}
    return [
        plotting.inline_svg(function, name, size=sizes.get(name, _SIZE))
        for name, function in draw.items()
    ]
