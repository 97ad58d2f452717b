"""The contents of a result's page."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval import plotting
from krag_eval._language import N_, _, pgettext
from krag_eval._text import fitted
from krag_eval.errors import InvalidInput, InvalidType, clipped, muted, whole
from krag_eval.plotting.styling import (
    at_cutoff,
    labelled,
    metric_label,
    number_of_queries,
    percent,
    tag_name,
    with_direction,
)
from krag_eval.presenting.slices import notes_on
from krag_eval.report.query_list import query_list
from krag_eval.report.rendering import (
    joined,
    number,
    p_value,
    p_words,
    units_of,
    words_of,
)
from krag_eval.results.diagnosis import Diagnosis, sentence, sentences
from krag_eval.results.evidence import checked_metadata
from krag_eval.results.result import STATUSES, EvaluationResult
from krag_eval.scoring.cutoffs import Budget, Cutoff, in_order, parse_metric, spelled
from krag_eval.scoring.metrics import TOKEN_METRICS, averages_of
from krag_eval.statistics.intervals import FEW_QUERIES, wilson
from krag_eval.statistics.slices import DIAGNOSED, Slice, Slices, check_diagnosed

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.results.diagnosis import Diagnosis


_LEVEL = 0.95
_SIZE = (4.9, 3.9)
# What the distribution over queries is drawn of, where the result has it.
_TELLING = ("ndcg", "recall")


# The figures up front, where the result has them, and what each says; if it has none, the first so
# many that it has.
_FRONT = {
    "macro_recall": N_("The share of what should come back that did, averaged over the queries."),
    "ndcg": N_("How much came back and how early; 1 means everything, at the very top."),
    "mrr": N_("How early the first match comes: 1 at rank 1, 0.5 at rank 2."),
}
# Inches of a picture that stands alone: legible on a phone, where it is scaled down.
_WIDE = 5.4
# Columns of a name, and of a note; slices shown of a tag, as many as a picture draws.
_NAME, _NOTE, _MOST_SLICES = 40, 1000, 60

_MICRO, _MACRO = "micro_", "macro_"


class _Figure(NamedTuple):
    """A figure up front: its name and cutoff, value and interval, and what it says."""

    name: str
    value: str
    interval: str
    said: str


class _MetricRow(NamedTuple):
    """An average: its name and, per cutoff, value and interval."""

    name: str
    cells: list[tuple[str, str]]


class _Outcome(NamedTuple):
    """An outcome of queries: what it is called, how many have it at each cutoff, and here.

    ``here`` is at the cutoff of the page, ``share`` the same in percent of all queries.
    """

    status: str
    name: str
    counts: list[int]
    here: int
    share: str


def result_page(
    result: EvaluationResult,
    k: Cutoff | str,
    intervals: bool | pd.DataFrame,
    n_queries: int | None,
    by: str | Iterable[str] = (),
    diagnosis: Diagnosis | None = None,
    metadata: str | Iterable[str] | None = None,
) -> dict[str, Any]:
    """Gather what the template shows.

    Raises:
        InvalidInput: If an argument is not possible.
    """
    if not isinstance(result, EvaluationResult):
        raise InvalidType("result", f"must be an EvaluationResult, got {type(result).__name__}")
    if n_queries is not None:
        whole("n_queries", n_queries, 0)
    cutoffs = in_order(result.k)
    cutoff = result.evaluated_cutoff(k)
    told_diagnosis = _diagnosis(result, diagnosis, cutoff)
    sliced = list(_slices(result, by, cutoff, diagnosis))
    bounds = _bounds(result, intervals)
    level = percent(_LEVEL) if intervals is True else ""
    n_counted = result.n_counted
    return {
        "subtitle": _subtitle(result),
        "summary": _summary(result, cutoff, bounds, level),
        "few": _(
            "These numbers rest on {} queries. With fewer than {} the intervals are too narrow: "
            "the true uncertainty is larger. Evaluate more queries."
        ).format(n_counted, FEW_QUERIES)
        if bounds is not None and n_counted < FEW_QUERIES
        else "",
        "short": _short(result, cutoff),
        "failed": result.summary.told_failed(),
        "figures": list(_figures(result, cutoff, bounds, level)),
        "cutoffs": [_("all") if one is None else spelled(one) for one in cutoffs],
        **_metric_tables(result, cutoffs, bounds),
        "budgets": [spelled(one) for one in cutoffs if isinstance(one, Budget)],
        "interval_note": _("Below each value: its {} confidence interval.").format(level)
        if bounds is not None
        else "",
        **_outcomes(result, cutoffs, cutoff),
        "diagnosis": told_diagnosis,
        "sliced": sliced,
        "pictures": list(_pictures(result, cutoff, bounds)),
        **query_list(result, cutoff, n_queries, diagnosis, checked_metadata(metadata)),
        "settings": list(result.settings.items()),
        "signature": result.signature,
    }


def _short(result: EvaluationResult, cutoff: Cutoff) -> str:
    """Say that no list is as long as the cutoff, where the result knows it."""
    most = result.settings.get("retrieved", "").removeprefix("<=")
    if not most or not isinstance(cutoff, int) or cutoff <= int(most):
        return ""
    told = _("Every list has at most {most} documents, so {cutoff} sees no more than that.")
    return told.format(most=most, cutoff=words_of(cutoff))


def _bounds(result: EvaluationResult, intervals: bool | pd.DataFrame) -> pd.DataFrame | None:
    """Return the intervals to tell, if any."""
    if intervals is False:
        return None
    if not isinstance(intervals, bool):
        return intervals
    with muted():  # the page says itself on how few queries they rest
        return result.confidence_intervals(_LEVEL)


def _subtitle(result: EvaluationResult) -> str:
    skipped = result.n_queries - result.n_counted
    told = _("{} without ground truth, left out of the averages").format(skipped) if skipped else ""
    return joined((number_of_queries(result.n_counted), told, result.settings.get("matcher", "")))


def _summary(
    result: EvaluationResult,
    cutoff: Cutoff,
    bounds: pd.DataFrame | None,
    level: str,
) -> str:
    recall = result.averages(cutoff).get("macro_recall", math.nan)
    if math.isnan(recall):
        return ""
    interval = ""
    average = f"macro_recall@{spelled(cutoff)}"
    if bounds is not None and average in bounds.index:
        interval = _(", {} interval {}").format(level, _interval(bounds, average))
    perfect = int((result.statuses(cutoff)[result.counted] == STATUSES[0]).sum())
    return _(
        "At {cutoff}, {recall} of what should come back did (macro recall {value}{interval}); "
        "{perfect} of {queries} queries got everything."
    ).format(
        cutoff=words_of(cutoff), recall=_("{} %").format(f"{100 * recall:.0f}"),
        value=number(recall), interval=interval, perfect=perfect, queries=result.n_counted,
    )  # fmt: skip


def _interval(bounds: pd.DataFrame, average: str) -> str:
    return _span(*(float(bounds[bound][average]) for bound in ("low", "high")))


def _span(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"{number(low)}–{number(high)}"


def _figures(
    result: EvaluationResult,
    cutoff: Cutoff,
    bounds: pd.DataFrame | None,
    level: str,
) -> Iterator[_Figure]:
    """Yield what the page begins with: three averages, and the share of perfect queries."""
    averages = result.averages(cutoff)
    known = [key for key in _FRONT if key in averages]
    for key in known or [one for one in averages if not _is_folded(one, averages)][:3]:
        average = f"{key}@{spelled(cutoff)}"
        is_bounded = bounds is not None and average in bounds.index
        interval = _interval(bounds, average) if bounds is not None and is_bounded else ""
        name = at_cutoff(_name_of(key, result), cutoff)
        says = _(_FRONT[key]) if key in _FRONT else ""
        yield _Figure(name, number(averages[key]), _told(interval, level), says)
    n = result.n_counted
    perfect = int((result.statuses(cutoff)[result.counted] == STATUSES[0]).sum())
    share = perfect / n if n else math.nan
    interval = _span(*wilson(share, n, _LEVEL)) if n and level else ""
    said = _("{perfect} of {queries} queries got everything.").format(perfect=perfect, queries=n)
    name = at_cutoff(_("Perfect queries"), cutoff)
    yield _Figure(name, number(share), _told(interval, level), said)


def _told(interval: str, level: str) -> str:
    """Say of which level an interval is, where that is known."""
    return _("{} interval").format(level) + f" {interval}" if interval and level else interval


def _name_of(key: str, result: EvaluationResult) -> str:
    """Return what an average is called on the page, wherever it stands."""
    return with_direction(metric_label(key, result), result.definitions.get(key))


def _is_folded(key: str, averages: Collection[str]) -> bool:
    """Tell whether an average is the micro one of two, so that the other says nearly the same.

    >>> [_is_folded(key, ["micro_f1", "macro_f1", "mrr"]) for key in ("micro_f1", "macro_f1")]
    [True, False]
    """
    return key.startswith(_MICRO) and _MACRO + key.removeprefix(_MICRO) in averages


def _metric_tables(
    result: EvaluationResult,
    cutoffs: list[Cutoff],
    bounds: pd.DataFrame | None,
) -> dict[str, Any]:
    """Return the rows of the tables of metrics: by item and, if words are counted, by word.

    Micro averages that have a macro one beside them are a table of their own.
    """
    by_word = averages_of(TOKEN_METRICS.values())
    values = result.to_dict()
    keys = result.shown
    by_item, by_token = N_("Items and documents"), N_("Words")
    metrics: dict[str, list[_MetricRow]] = {by_item: [], by_token: []}
    micro: list[_MetricRow] = []
    for key in keys:
        cells = []
        for cutoff in cutoffs:
            average = f"{key}@{spelled(cutoff)}"
            known = bounds is not None and average in bounds.index
            interval = _interval(bounds, average) if bounds is not None and known else ""
            cells.append((number(values[average]), interval))
        group = metrics[by_token if key in by_word else by_item]
        row = _MetricRow(_name_of(key, result), cells)
        (micro if _is_folded(key, keys) else group).append(row)
    return {"metrics": {heading: rows for heading, rows in metrics.items() if rows}, "micro": micro}


def _outcomes(result: EvaluationResult, cutoffs: list[Cutoff], cutoff: Cutoff) -> dict[str, Any]:
    """Return each status that occurs, with how many queries have it, and the bar of one cutoff."""
    columns = {one: result.statuses(one) for one in cutoffs}
    outcomes = []
    for status in STATUSES:
        counts = {one: int((column == status).sum()) for one, column in columns.items()}
        if any(counts.values()):
            here = counts[cutoff]
            share = _("{} %").format(_rounded(here, result.n_queries))
            outcomes.append(_Outcome(status, _(status), [*counts.values()], here, share))
    told = ", ".join(f"{one.name}: {one.here}" for one in outcomes if one.here)
    return {
        "outcomes": outcomes,
        "outcome_label": _("Outcomes of the queries at {cutoff}: {counts}").format(
            cutoff=words_of(cutoff), counts=told
        ),
    }


def _rounded(part: int, whole: int) -> int:
    """Return a share in whole percents; a part is neither nothing nor all.

    >>> _rounded(22, 28), _rounded(999, 1000), _rounded(1, 1000), _rounded(0, 5)
    (79, 99, 1, 0)
    """
    share = round(100 * part / whole)
    return min(max(share, 1), 99) if 0 < part < whole else share


class _Step(NamedTuple):
    """One step of the waterfall: its name, items, their share, and recall by then."""

    name: str
    items: int
    share: str
    cumulative: str


def _diagnosis(
    result: EvaluationResult, diagnosis: Diagnosis | None, cutoff: Cutoff
) -> dict[str, Any] | None:
    """Gather what is shown of where the misses were lost.

    Raises:
        InvalidInput: If the diagnosis is of other queries.
        InvalidType: If it is none.
    """
    if diagnosis is None:
        return None
    check_diagnosed(diagnosis, result)
    counts, steps = diagnosis.counts, diagnosis.waterfall()
    ways = {
        "union": "coverage(union=true)",
        "deeper": _("retrieve longer lists"),
        "index": _("diagnose with the chunks of the store"),
    }
    columns = (steps[name].tolist() for name in ("label", "share", "cumulative"))
    ceiling, at = diagnosis.index_ceiling, words_of(diagnosis.k)
    wordless = counts.get("no_words", 0)
    return {
        "summary": sentence(diagnosis, ways),
        "others": sentences(diagnosis, ways)[1:],
        "another_k": _("Diagnosed at {}; the figures above are at {}.").format(at, words_of(cutoff))
        if diagnosis.k != cutoff
        else "",
        "looked_up": "" if diagnosis.looked_up is None else diagnosis.looked_up.note(),
        "picture": plotting.inline_svg(
            partial(plotting.diagnosis_waterfall, diagnosis),
            "diagnosis",
            size=(_WIDE, 1.3 + 0.44 * len(steps)),
        ),
        "steps": [
            _Step(label, counts[cause], number(share), number(cumulative))
            for cause, label, share, cumulative in zip(steps.index, *columns, strict=True)
        ],
        "ceiling": ""
        if ceiling is None or math.isnan(ceiling)
        else _(
            "Index ceiling: with perfect search and ranking, recall would be {}. More takes other "
            "chunks, or what is missing from the index."
        ).format(number(ceiling)),
        "wordless": _("Items without words, which count nowhere here: {}.").format(wordless)
        if wordless
        else "",
    }


class _SliceRow(NamedTuple):
    """A slice: its name, its numbers by column, and whether it is shown to differ."""

    name: str
    cells: list[tuple[str, str]]
    is_shown: bool


def _slices(
    result: EvaluationResult,
    by: str | Iterable[str],
    cutoff: Cutoff,
    diagnosis: Diagnosis | None,
) -> Iterator[dict[str, Any]]:
    """Yield what is shown of the slices by each tag.

    Raises:
        InvalidInput: If there is no such tag, or slices need what the result does not hold.
        InvalidType: If ``by`` is neither a tag nor several.
    """
    if not isinstance(by, Iterable):
        raise InvalidType("by", f"must be a tag or several, got {clipped(by)}")
    for place, tag in enumerate(dict.fromkeys([by] if isinstance(by, str) else by)):
        # The queries' own tag of that name comes first.
        of_classes = diagnosis if tag == DIAGNOSED and tag not in result.tags else None
        try:
            with muted():  # the page says itself that they are too many
                slices = result.by(tag, cutoff, diagnosis=of_classes)
        except InvalidInput as error:
            argument = "by" if error.argument == "tag" else error.argument
            raise type(error)(argument, error.problem, error.fix) from None
        yield _told_slices(labelled(slices), f"slices{place}", result)


def _told_slices(slices: Slices, name: str, result: EvaluationResult) -> dict[str, Any]:
    def name_of(metric: str) -> str:
        key, k = parse_metric(metric)
        return at_cutoff(_name_of(key, result), k)

    first, *others = slices.metrics
    tag = tag_name(slices, _NAME)
    n_shown = min(len(slices.names), _MOST_SLICES)
    shown = [row for row in slices.rows if row.is_shown(slices.level)]
    return {
        "heading": _("By {}").format(tag),
        # That what was found is better than what was not says nothing.
        "said": [_slice_sentence(row, slices, name_of(row.metric)) for row in shown]
        or [pgettext("on a page", "No slice is shown to differ from the rest.")]
        if slices.tag != DIAGNOSED
        else [],
        "notes": [fitted(note, _NOTE) for note in notes_on(slices, name_of)],
        "more": _("… and {} more slices, not shown.").format(len(slices.names) - n_shown)
        if n_shown < len(slices.names)
        else "",
        "picture": plotting.inline_svg(
            partial(plotting.slice_forest, slices, first),
            name,
            size=(_WIDE, 1.5 + 0.34 * n_shown),
        ),
        "table": (name_of(first), list(_slice_rows(slices, first))),
        "others": [(name_of(one), list(_slice_rows(slices, one))) for one in others],
        "columns": _slice_columns(slices),
    }


def _slice_columns(slices: Slices) -> list[str]:
    level = percent(slices.level)
    return [
        _("Queries"),
        _("Value"),
        _("{} interval").format(level),
        _("Difference to the rest"),
        _("{} interval of the difference").format(level),
        "p (Holm)",
    ]


def _slice_rows(slices: Slices, metric: str) -> Iterator[_SliceRow]:
    columns = _slice_columns(slices)
    rows = [row for row in slices.rows if row.metric == metric]
    for row in rows[:_MOST_SLICES]:
        numbers = [
            str(row.n),
            number(row.value),
            _span(row.low, row.high) or "–",
            number(row.difference),
            _to(row.ci_low, row.ci_high) or "–",
            p_value(row.p_holm),
        ]
        cells = list(zip(columns, numbers, strict=True))
        yield _SliceRow(fitted(row.slice, _NAME), cells, row.is_shown(slices.level))


def _to(low: float, high: float) -> str:
    """Write an interval that may hold negative numbers, where a dash would be read as a minus."""
    return "" if math.isnan(low) else _("{} to {}").format(number(low), number(high))


def _slice_sentence(row: Slice, slices: Slices, metric: str) -> str:
    """Say how a slice differs from the rest."""
    told = (
        _("{slice} is better than the rest by {by}: {metric} is {value} against {rest} (p {p} "
          "after Holm).")
        if (row.difference > 0) != (row.metric in slices.lower_is_better)
        else _("{slice} is worse than the rest by {by}: {metric} is {value} against {rest} (p {p} "
               "after Holm).")
    )  # fmt: skip
    return told.format(
        slice=fitted(row.slice, _NAME), metric=metric, by=number(abs(row.difference)),
        value=number(row.value), rest=number(row.rest), p=p_words(row.p_holm),
    )  # fmt: skip


def _pictures(result: EvaluationResult, k: Cutoff, bounds: pd.DataFrame | None) -> list[str]:
    """Draw whatever this result can be drawn as."""
    draw: dict[str, Any] = {
        "bars": lambda ax: plotting.metric_bars(result, k, ax, intervals=bounds),
    }
    by_rank = [one for one in result.k if not isinstance(one, Budget)]
    if len(by_rank or result.k) > 1:
        draw["cutoffs"] = lambda ax: plotting.cutoff_curves(result, ax=ax)
    for unit in units_of(result.k):
        draw[f"budgets{unit}"] = partial(
            plotting.budget_curves, result, None, unit=unit, intervals=bounds
        )
    scores = [
        one.column
        for one in result.definitions.values()
        if one.column in result.keys and one.range == (0, 1)
    ]
    telling = next((name for name in (*_TELLING, *reversed(scores)) if name in scores), None)
    if telling is not None:
        metric = f"{telling}@{spelled(k)}"
        draw["queries"] = lambda ax: plotting.metric_distribution(result, metric, ax)
    evidence = result.evidence
    if evidence is not None and len(evidence.relevance.item_query):
        draw["ranks"] = lambda ax: plotting.first_rank_bars(result, ax)
    if evidence is not None and evidence.takes_threshold:
        draw["thresholds"] = lambda ax: plotting.threshold_curves(result, ax=ax)
    sizes = {"bars": (_SIZE[0], max(_SIZE[1], 1.1 + 0.34 * len(result.keys)))}
    return [
        plotting.inline_svg(function, name, size=sizes.get(name, _SIZE))
        for name, function in draw.items()
    ]
