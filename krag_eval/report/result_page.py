"""The contents of a result's page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval import plotting
from krag_eval._errors import InvalidType, muted, whole
from krag_eval._text import Excerpt, fitted, whole_percent
from krag_eval.plotting import Language
from krag_eval.plotting.styling import with_direction
from krag_eval.report.rendering import joined, number, percent, units_of, words
from krag_eval.results.explanation import _highlighted as highlighted
from krag_eval.results.result import STATUSES, EvaluationResult
from krag_eval.results.rows import RowsInMemory
from krag_eval.scoring.cutoffs import Budget, Cutoff, deepest, in_order, spelled
from krag_eval.scoring.metrics import TOKEN_METRICS, averages_of
from krag_eval.statistics.intervals import FEW_QUERIES

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.results.evidence import GroundTruthItem, PredictedDocument
    from krag_eval.results.explanation import Explanation

__all__ = [
    "ToldQuery",
    "ToldRow",
    "result_page",
    "told_query",
]

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
    n_queries: int,
) -> dict[str, Any]:
    """Gather what the template shows.

    Raises:
        InvalidInput: If an argument is not possible.
    """
    w = words(language)
    if not isinstance(result, EvaluationResult):
        raise InvalidType("result", f"must be an EvaluationResult, got {type(result).__name__}")
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
        **_hardest(result, cutoff, n_queries, w),
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


def _words_of(cutoff: Cutoff, w: Mapping[str, str]) -> str:
    if isinstance(cutoff, Budget):
        return w[f"budget {cutoff.unit}"].format(cutoff.amount)
    return w["at all"] if cutoff is None else w["cutoff"].format(spelled(cutoff))


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
        cutoff=_words_of(cutoff, w), recall=w["percent"].format(f"{100 * recall:.0f}"),
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


def _hardest(
    result: EvaluationResult, k: Cutoff, n_queries: int, w: Mapping[str, str]
) -> dict[str, Any]:
    places = _positions(result, k)
    told: list[ToldQuery] = []
    if result.evidence is not None:
        shown = places[:n_queries]
        told = [told_query(result.explain(k=k, position=place), w) for place in shown]
    lost, cutoff = len(places), _words_of(k, w)
    note = w["hardest note"] if lost else w["none missed"]
    return {
        "hardest": told,
        "show_hardest": n_queries > 0,
        "hardest_note": note.format(cutoff=cutoff),
        "hardest_more": w["not shown"].format(shown=len(told), total=lost)
        if len(told) < lost
        else "",
        "no_evidence": w["no evidence"] if result.evidence is None and lost else "",
    }


def _positions(result: EvaluationResult, k: Cutoff) -> list[int]:
    """Return the positions of the queries that lost most, those that lost most first.

    Labels need not be unique; with positions for labels they are.
    """
    numbered = RowsInMemory(list(range(result.n_queries)), result.tables, result.counted)
    by_position = replace(result, rows=numbered)
    return [int(position) for position in by_position.misses(k).index]


# Columns of a text, and of a query.
_WIDTH, _QUERY_WIDTH = 600, 300


class ToldRow(NamedTuple):
    """A document or an item: its number, what is said of it, its texts in marked stretches."""

    number: int
    said: str
    tone: str
    texts: list[list[tuple[str, bool]]]


class ToldQuery(NamedTuple):
    """What the page shows of one query."""

    name: str
    status: str
    metrics: str
    ground_truth: list[ToldRow]
    more_items: int
    predicted: list[ToldRow]
    more_documents: int


def told_query(explanation: Explanation, w: Mapping[str, str]) -> ToldQuery:
    """Put an explanation into words."""
    documents, items = highlighted(explanation)
    shown_items = [item for item in explanation.items if item.number in items]
    shown_documents = [one for one in explanation.documents if one.rank in documents]
    return ToldQuery(
        name=fitted(str(explanation.query), _QUERY_WIDTH),
        status=explanation.status,
        metrics=_metrics(explanation.metrics, explanation.k),
        ground_truth=[
            ToldRow(item.number,
                    _item(item, explanation.threshold, w, by_runs=explanation.by_runs),
                    _item_tone(item), _texts(items[item.number], item.alternatives, w))
            for item in shown_items
        ],
        more_items=len(explanation.items) - len(shown_items),
        predicted=[
            ToldRow(one.rank, _document(one, w), _document_tone(one),
                    _texts(documents[one.rank], one.text, w))
            for one in shown_documents
        ],
        more_documents=len(explanation.documents) - len(shown_documents),
    )  # fmt: skip


def _metrics(metrics: Mapping[str, float], k: Cutoff) -> str:
    return " · ".join(
        f"{name}@{spelled(k)} {value:.2f}"
        for name, value in metrics.items()
        if name != "rank" and not math.isnan(value)
    )


def _texts(
    excerpts: Sequence[Excerpt], known: Any, w: Mapping[str, str]
) -> list[list[tuple[str, bool]]]:
    if known is None:
        return [[(w["no text"], False)]]
    return [excerpt.clipped(_WIDTH) for excerpt in excerpts]


def _item(
    item: GroundTruthItem, threshold: float | None, w: Mapping[str, str], *, by_runs: bool
) -> str:
    told = {
        "found": w["found"].format(item.first_rank),
        "found in pieces": w["found in pieces"].format(_together(item, w)),
        "beyond cutoff": w["pieces beyond cutoff" if item.pieces else "item beyond cutoff"].format(
            item.first_rank, pieces=_together(item, w), rank=item.first_rank
        ),
        "nothing in common": w["no run in common" if by_runs else "nothing in common"],
    }
    missed = w["item missed" if threshold is not None else "item missed without threshold"]
    if item.pieces:
        missed = w["item missed in pieces"].replace("{pieces}", _together(item, w))
    said = told.get(item.outcome) or missed.format(
        rank=item.nearest_rank, shortfall=_short(item.shortfall)
    )
    parts = [said]
    if item.place != item.first_rank and item.place is not None:
        parts.append(w["place"].format(item.place))
    if item.similarity and threshold is not None and not item.pieces:
        parts.append(w["similarity"].format(_short(item.similarity)))
    if item.grade != 1:
        parts.append(w["grade"].format(f"{item.grade:g}"))
    if item.n_alternatives > 1:
        parts.append(w["any of"].format(item.n_alternatives))
    return " · ".join(parts)


def _together(item: GroundTruthItem, w: Mapping[str, str]) -> str:
    if not item.pieces:
        return ""
    *others, last = map(str, item.pieces)
    return w["together"].format(
        others=", ".join(others), last=last, share=whole_percent(item.similarity)
    )


def _document(document: PredictedDocument, w: Mapping[str, str]) -> str:
    again = [number for number in document.matches if number not in document.first_for]
    parts = {
        "first": [w["first"].format(_numbered(document.first_for, w))],
        "repeat": [],
        "piece": [w["piece"].format(_numbered(document.piece_of, w))],
        "not relevant": [w["not relevant"]],
        "beyond cutoff": [w["beyond cutoff"].format(_numbered(document.matches, w))],
    }[document.credit]
    completes = [number for number in document.first_for if number in document.piece_of]
    if completes and document.credit in ("first", "beyond cutoff"):
        is_first = document.credit == "first"
        alone = document.first_for if is_first else document.matches
        alone = tuple(number for number in alone if number not in completes)
        parts = [w[document.credit].format(_numbered(alone, w))] if alone else []
        name = "completes" if is_first else "completes beyond cutoff"
        parts.insert(0, w[name].format(_numbered(completes, w)))
    others = [number for number in document.piece_of if number not in document.first_for]
    if document.credit == "first" and others:
        parts.append(w["piece"].format(_numbered(others, w)))
    if document.credit in ("first", "repeat", "piece") and again:
        parts.append(w["repeat"].format(_numbered(again, w)))
    if document.similarity:
        parts.append(w["similarity"].format(_short(document.similarity)))
    if not document.matches and document.credit != "piece" and document.closest is not None:
        parts.append(w["closest"].format(_numbered([document.closest], w)))
    return " · ".join(parts)


def _numbered(numbers: Iterable[int], w: Mapping[str, str]) -> str:
    listed = list(numbers)
    shown = ", ".join(map(str, listed[:8])) + ("…" if len(listed) > 8 else "")
    return w["item" if len(listed) == 1 else "items"].format(shown)


def _short(value: float) -> str:
    """Round, but not to nothing: a near miss is a miss.

    >>> _short(0.19), _short(0.00001)
    ('0.19', '1e-05')
    """
    return f"{value:.2f}" if value >= 0.005 or not value else f"{value:.0e}"


def _item_tone(item: GroundTruthItem) -> str:
    return "good" if item.outcome.startswith("found") else "bad"


def _document_tone(document: PredictedDocument) -> str:
    return {"first": "good", "piece": "good", "repeat": "plain"}.get(document.credit, "faint")
