"""What is shown of a gate: what became of each condition, the worst first."""

from __future__ import annotations

import math

from krag_eval.comparison.comparable import has_rows
from krag_eval.comparison.comparison import Comparison, told_left_out
from krag_eval.comparison.comparison_page import difference_columns, no_interval, p_said, p_value
from krag_eval.comparison.gates import Drop, Fate, Floor, Gate, GateReport, not_ruled_out
from krag_eval.comparison.paired import POWER, Difference
from krag_eval.core import (
    Column,
    Page,
    ResultFacts,
    Table,
    _,
    fitted,
    ngettext,
    pgettext,
    presents,
    speaking,
)
from krag_eval.core.display.result import result_page
from krag_eval.core.errors import told_apart
from krag_eval.core.results.verdicts import Outcome
from krag_eval.intervals.intervals import confidence_intervals

# Questions that got worse, and columns of each.
_WORSE, _QUESTION = 5, 120


@presents
def _page(report: GateReport) -> Page:
    with speaking(report.language):
        notes = [report.note] if report.note else []
        return Page(sentences=list(map(line_of, report.by_outcome)), notes=notes)


def full_page(report: GateReport, result: ResultFacts, *, redact: bool) -> Page:
    """Show the verdict with the numbers and the questions that it rests on.

    Args:
        report: What became of the conditions.
        result: The result that was held to them.
        redact: Whether questions are named by their positions alone.
    """
    with speaking(report.language):
        tables = [_metrics(report.comparisons)] if report.comparisons else []
        tables += [one for found in report.comparisons[:1] for one in _worse(found, redact)]
        if not tables:
            named = {gate.metric.rpartition("@")[0] for gate in report.gates}
            intervals = confidence_intervals(result) if has_rows(result) else None
            tables = [*result_page(result, named, intervals).tables]
        note = note_of(report, redact=redact)
        return Page(
            _("Retrieval gate: {}").format(verdict(report.noted)),
            tables,
            list(map(line_of, report.by_outcome)),
            [note] if note else [],
            result.signature,
        )


def _metrics(comparisons: tuple[Comparison, ...]) -> Table:
    rows = [row for one in comparisons for row in one.differences]
    columns = difference_columns(comparisons[0].level)
    headings = (_("baseline"), _("new"), _("change"), None, None, _("better / same / worse"))
    pairs = zip(columns, headings, strict=True)
    renamed = [column._replace(heading=said or column.heading) for column, said in pairs]
    renamed[4] = Column(_("one-sided p (Holm)"), lambda row: p_value(row.p_worse_holm))
    return Table(rows, [Column(_("metric"), "metric"), *renamed])


def _worse(comparison: Comparison, redact: bool) -> list[Table]:
    """Return the queries that lost most on the first metric, if any did."""
    first, (a, b) = comparison.differences[0], comparison.names
    lower_is_better = first.average is not None and first.average.lower_is_better
    changes = comparison.changed(first.metric, a, b, None)
    rows = changes[(changes["difference"] > 0) == lower_is_better].reset_index().to_dict("records")
    title = _("Got worse on {metric}: {n} of {total} questions").format(
        metric=first.metric, n=len(rows), total=len(comparison.queries)
    )
    places = {label: place for place, label in enumerate(comparison.given[b].labels)}
    columns = [
        Column(
            _("query"),
            lambda row: places[row["query"]] if redact else fitted(str(row["query"]), _QUESTION),
        ),
        Column(_("baseline"), "value_a"),
        Column(_("new"), "value_b"),
    ]
    return [Table(rows[:_WORSE], columns, title=title)] if rows else []


def note_of(report: GateReport, *, redact: bool) -> str:
    """Return the note of a report, which names queries by their positions if it is to redact."""
    note = report.note
    with speaking(report.language):
        for one in report.comparisons if redact else ():
            places: dict[str, list[str | int]] = {
                name: [one.given[name].labels.index(label) for label in labels]
                for name, labels in one.left_out.items()
            }
            told = told_left_out(len(one.queries), one.left_out)
            redacted = told_left_out(len(one.queries), places)
            note = note.replace("".join(told), "".join(redacted))
    return note


def line_of(gate: Gate) -> str:
    """Return in a line what became of a condition."""
    return f"{verdict(gate.outcome)}: {gate.reason}"


def verdict(outcome: Outcome) -> str:
    """Return in a word what became of a condition."""
    if outcome == "failed":
        return pgettext("of a gate", "failed")
    return _("inconclusive") if outcome == "inconclusive" else _("passed")


@presents
def _floor(held: Floor) -> Page:
    name, value, floor, average, passed = held
    if math.isnan(value):
        return Page(sentences=[_undefined(name)])
    number, bound = told_apart(value, floor)
    if average.lower_is_better:
        kept = _("{name} is {value}, at or below {bound}")
        missed = _("{name} is {value}, above {bound}")
    else:
        kept = _("{name} is {value}, at or above the floor of {bound}")
        missed = _("{name} is {value}, below the floor of {bound}")
    said = kept if passed else missed
    return Page(sentences=[said.format(name=name, value=number, bound=bound)])


@presents
def _drop(drop: Drop) -> Page:
    return Page(sentences=[_of_drop(*drop)])


def _undefined(name: str) -> str:
    return _("{name} is undefined: nothing was found").format(name=name)


def _of_drop(fate: Fate, row: Difference, comparison: Comparison) -> str:
    """Say what became of an average that may not drop, and how surely."""
    if fate == "too few":
        told = ngettext(
            "{name} is of {n} query{within}, too few to check",
            "{name} is of {n} queries{within}, too few to check",
            row.n,
        )
        within = "" if comparison.clusters is None else _(" in clusters")
        return told.format(name=row.metric, n=row.n, within=within)
    if fate == "undefined":
        return _undefined(row.metric)
    if fate == "new":
        told = _("{name} is {value:.4f}; the baseline had none")
        return told.format(name=row.metric, value=row.value_b)
    moved = _moved(row, comparison)
    if fate == "fewer":
        told = _("{moved}: fewer of the queries have a value (one-sided p {p})")
        return told.format(moved=moved, p=p_said(row.p_fewer_holm))
    if fate in ("worse", "unsure"):
        return _too_far(row, comparison, moved)
    if fate == "of fewer":
        return _("{moved}: an average of fewer queries is not called as good").format(moved=moved)
    if fate == "apart":
        return moved
    left = not_ruled_out(row, comparison.level)
    said = _("these queries rule out any drop")
    if math.isinf(left):
        said = no_interval(row)
    elif left > 0:
        said = _("these queries cannot rule out a drop of up to {}").format(_at_least(left))
    told = _("{moved}, no worse than the allowed {allowed:g}; {left}")
    return told.format(moved=moved, allowed=comparison.max_drop or 0.0, left=said)


def _moved(row: Difference, comparison: Comparison) -> str:
    """Say from where to where an average went, and on which queries."""
    shares = {"n": row.n_both, "before": row.share_a, "after": row.share_b}
    if math.isnan(row.difference):
        return _(
            "{name} has no query with a value in both; of all queries {before:.1%} had one, now "
            "{after:.1%}"
        ).format(name=row.metric, **shares)
    told = _("{name} went from {before:.4f} to {after:.4f}")
    moved = told.format(name=row.metric, before=row.value_a, after=row.value_b)
    if not (row.wins or row.losses or row.difference):
        moved += _(" with identical values in every query")
    if comparison.left_out:
        moved += _(" on the {} queries that both have").format(len(comparison.queries))
    if math.isnan(row.share_a):
        return moved
    return moved + ngettext(
        " on the {n} query where both have a value (of all queries {before:.1%} had one, now "
        "{after:.1%})",
        " on the {n} queries where both have a value (of all queries {before:.1%} had one, now "
        "{after:.1%})",
        row.n_both,
    ).format(**shares)


def _too_far(row: Difference, comparison: Comparison, moved: str) -> str:
    max_drop = comparison.max_drop or 0.0
    worse, allowed = told_apart(row.drop, max_drop)
    known = {"moved": moved, "worse": worse, "allowed": allowed}
    known |= {"p": p_said(row.p_worse_holm), "interval": _interval(row, comparison.level)}
    if row.fails(comparison.level):
        told = _(
            "{moved}, worse by {worse} where {allowed} is allowed (one-sided p {p}; {interval})"
        )
        return told.format(**known) + _only_worse(row, comparison)
    return _(
        "{moved}, worse by {worse} where {allowed} is allowed, but that may be chance (one-sided p "
        "{p}; {interval}); {can}"
    ).format(**known, can=_can_show(row, max_drop, worse))


def _interval(row: Difference, level: float) -> str:
    if math.isnan(row.ci_low):
        return no_interval(row)
    return _("{level:g} % interval of the difference {low:.4f} to {high:.4f}").format(
        level=100 * level, low=row.ci_low, high=row.ci_high
    )


def _only_worse(row: Difference, comparison: Comparison) -> str:
    """Say where a comparison, which asks in either direction, would show nothing."""
    if comparison.max_drop or row.is_shown(comparison.level):
        return ""
    told = _(
        "; whether it is worse is all that a gate asks: in either direction, as a comparison asks, "
        "no difference is shown (p {p})"
    )
    return told.format(p=p_said(row.p_holm))


def _can_show(row: Difference, max_drop: float, worse: str) -> str:
    """Say what so many queries can show, and how many it takes, by the formula of plans."""
    assert row.spread is not None  # only where there is a difference
    n, units = row.spread.n, row.spread.n_clusters or row.spread.n
    if units < row.fewest:
        return ngettext(
            "{n} query can show no drop; it takes {needed} at least",
            "{n} queries can show no drop; it takes {needed} at least",
            n,
        ).format(n=n, needed=row.fewest)
    one_sided, beyond = 2 * row.alpha, row.drop - max_drop
    detectable = row.spread.detectable(one_sided, POWER)
    needed = row.fewest
    if math.isnan(detectable):
        detectable = 0.0
    else:
        needed = max(math.ceil(row.spread.needed(beyond, one_sided, POWER)), row.fewest)
    return _(
        "{n} queries can show drops from {detectable} on, and to show one of {worse} takes about "
        "{needed:,}"
    ).format(n=n, detectable=_at_least(max_drop + detectable), worse=worse, needed=needed)


def _at_least(value: float) -> str:
    return f"{value:.4f}" if value >= 0.00005 else f"{value:.1g}"
