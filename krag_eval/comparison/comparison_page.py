"""What is shown of a comparison: who is ahead, each difference, and how surely it is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from krag_eval.comparison.comparison import Comparison, named_tag, told_left_out
from krag_eval.comparison.paired import Difference
from krag_eval.core import (
    Column,
    Page,
    Table,
    _,
    ngettext,
    percent,
    presents,
    rounded,
    short,
    span,
    told_missing,
    unreviewed_of,
    unreviewed_sentences,
)
from krag_eval.core.results.latency import told_failed


@presents
def _page(comparison: Comparison) -> Page:
    chosen = {"baseline": comparison.baseline, "clusters": comparison.clusters}
    how = f"n_resamples={comparison.n_resamples} | seed={comparison.seed} | p=two-sided"
    how += "".join(f" | {name}={value}" for name, value in chosen.items() if value is not None)
    lines = [sentence(one, comparison.level) for one in comparison.differences]
    return Page(
        title=_("Comparison over {} queries").format(len(comparison.queries)),
        tables=[*_board(comparison), _table(comparison)],
        sentences=[*lines, *told_beside(comparison)],
        notes=[
            f"{name}: {result.retrieval.summary()}"
            for name, result in comparison.results.items()
            if result.retrieval is not None
        ],
        signature=f"{comparison.signature} | {how}",
        verdict=" ".join(lines),
        advice=_told_clusters(comparison) if comparison.clusters is None else (),
    )


def interval_of(level: float) -> str:
    """Return the heading of intervals of that level."""
    return _("{} interval").format(percent(level))


def _board(comparison: Comparison) -> list[Table]:
    """Return the leaderboard, where there are more than two systems."""
    if len(comparison.names) < 3:
        return []
    columns = [Column(_("system"), "system")]
    for metric in comparison.metrics:
        columns.append(Column(metric, partial(_starred, metric)))
        columns.append(Column(interval_of(comparison.level), partial(_range, metric)))
    rows = comparison.leaderboard.reset_index().to_dict("records")
    title = _("* the best average; the differences below say what is more than chance")
    return [Table(rows, columns, title=title)]


def _starred(metric: str, row: dict[str, Any]) -> str:
    return f"{rounded(row[metric])}{'*' if row[f'{metric}_best'] else ''}"


def _range(metric: str, row: dict[str, Any]) -> str:
    return span(row[f"{metric}_low"], row[f"{metric}_high"])


def _table(comparison: Comparison) -> Table:
    columns = [Column("a", "a"), Column("b", "b"), Column(_("metric"), "metric")]
    columns += difference_columns(comparison.level)
    # A terminal shows what the decision rests on: the corrected p, and how many queries moved.
    columns.insert(-2, Column("p", lambda row: p_value(row.p_permutation), True))
    columns.insert(-1, Column(_("p (t-test)"), lambda row: p_value(row.p_t), True))
    columns.insert(-1, Column("d_z", "effect_size", True))
    return Table(comparison.differences, columns, names=3)


def difference_columns(level: float) -> list[Column]:
    """Return the columns of two values and how they differ."""
    return [
        Column(_("value a"), "value_a"),
        Column(_("value b"), "value_b"),
        Column("b − a", "difference"),
        Column(interval_of(level), lambda row: span(row.ci_low, row.ci_high)),
        Column("p (Holm)", lambda row: p_value(row.p_holm)),
        Column(
            _("wins / ties /\nlosses of b"), lambda row: f"{row.wins} / {row.ties} / {row.losses}"
        ),
    ]


def changed(comparison: Comparison, n: int) -> list[Table]:
    """Return the queries that changed most on the first metric, a table for each pair."""
    columns = [Column(_("query"), "query"), Column(_("value a"), "value_a")]
    columns += [Column(_("value b"), "value_b"), Column("b − a", "difference")]
    told = _("Changed most on {metric} from {a} to {b}:")
    metric, tables = comparison.metrics[0], []
    for a, b in comparison.pairs:
        rows = comparison.changed(metric, a, b, n).reset_index().to_dict("records")
        tables.append(Table(rows, columns, title=told.format(metric=metric, a=a, b=b)))
    return [one for one in tables if one.rows]


def sentence(row: Difference, level: float) -> str:
    """Say in plain words what is known of one difference."""
    known: dict[str, Any] = {"a": row.a, "b": row.b, "metric": row.metric}
    if math.isnan(row.difference):
        values = {row.a: row.value_a, row.b: row.value_b}
        undefined = _(" and ").join(name for name, value in values.items() if math.isnan(value))
        if not undefined:
            told = _("{a} and {b} cannot be compared on {metric}: no query has a value in both.")
            return f"{told.format(**known)} {_shares(row)}"
        return _(
            "{a} and {b} cannot be compared on {metric}: it is undefined for {without}."
        ).format(**known, without=undefined)
    known["p"] = p_said(row.p_holm)
    known |= {"value_a": short(row.value_a), "value_b": short(row.value_b)}
    if not row.p_holm < 1 - level:
        told = _(
            "No difference shown between {a} and {b} on {metric}: {b} minus {a} is {by} ({value_b} "
            "against {value_a}; {interval}; p {p} after Holm)."
        ).format(**known, by=short(row.difference), interval=told_interval(row, level))
        return " ".join([told, *told_shares(row), *_told_effect(row), *told_detectable(row)])
    order = "ab" if row.better == row.a else "ba"
    for role, name in zip(("better", "worse"), order, strict=True):
        known |= {role: known[name], f"value_{role}": known[f"value_{name}"]}
    shown = _(
        "{better} is better than {worse} on {metric} by {by} ({value_better} against "
        "{value_worse}; {interval}; p {p} after Holm)."
    )
    if row.is_of_fewer:
        shown = _(
            "Neither {a} nor {b} is called better on {metric}: {better} is ahead by {by} "
            "({value_better} against {value_worse}; {interval}; p {p} "
            "after Holm), but has a value for fewer queries."
        )
    elif row.is_of_more:
        shown = _(
            "{worse} is worse than {better} on {metric} by {by} ({value_worse} against "
            "{value_better}; {interval}; p {p} after Holm), though it has "
            "a value for more queries."
        )
    known |= {"by": short(abs(row.difference)), "interval": told_interval(row, level, toward=True)}
    told = shown.format(**known)
    return " ".join([told, *told_shares(row), *_told_effect(row)])


def _told_effect(row: Difference) -> list[str]:
    """Say why there is no effect size where several queries all differ alike."""
    if row.spread is None or row.spread.n < 2 or not math.isinf(row.effect_size):
        return []
    return [_("Every query differs by the same amount, so the effect size (d_z) is infinite.")]


def told_interval(row: Difference, level: float, *, toward: bool = False) -> str:
    """Say the interval of a difference, or of how much better the better one is; or why none is."""
    low, high = toward_better(row) if toward else (row.ci_low, row.ci_high)
    if math.isnan(low):
        return no_interval(row)
    told = _("{level} % interval {low} to {high}")
    return told.format(level=f"{100 * level:.10g}", low=short(low), high=short(high))


def no_interval(row: Difference) -> str:
    """Say why there is no interval: resampling moves nothing."""
    if row.difference == 0:
        return _("no interval, as no query differs")
    return _("no interval, as all queries differ alike")


def toward_better(row: Difference) -> tuple[float, float]:
    """Return the interval of how much better the better system is."""
    return (row.ci_low, row.ci_high) if row.difference >= 0 else (-row.ci_high, -row.ci_low)


def told_shares(row: Difference) -> list[str]:
    """Say on how many queries two systems were compared, where some have no value."""
    if math.isnan(row.share_a):
        return []
    n = row.n_both
    told = ngettext(
        "That is on the {n} query where both have a value:",
        "That is on the {n} queries where both have a value:",
        n,
    )
    return [f"{told.format(n=n)} {_shares(row)}"]


def _shares(row: Difference) -> str:
    return _(
        "{a} has one for {share_a:.1%} of the queries, {b} for {share_b:.1%} (p {p} after Holm)."
    ).format(a=row.a, b=row.b, share_a=row.share_a, share_b=row.share_b, p=p_said(row.p_share_holm))


def told_detectable(row: Difference) -> list[str]:
    """Say what could have been shown, where it is known."""
    if row.spread is None or not row.detectable > 0:
        return []
    n, clusters = row.spread.n, row.spread.n_clusters
    queries = ngettext("{n} query", "{n} queries", n).format(n=n)
    within = "" if clusters is None else _(" in {} clusters").format(clusters)
    told = _("Differences under {by} may well not show with {queries}{within}.")
    return [told.format(by=short(row.detectable), queries=queries, within=within)]


def told_beside(comparison: Comparison, name_of: Callable[[str], str] = str) -> list[str]:
    """Say what the differences rest on, the systems called as ``name_of`` says.

    For how many tests p is corrected, where there are several; which queries were left out; how far
    queries in clusters do alike; how many failed, and how many are drafts.
    """
    p_values = [p for row in comparison.differences for p in (row.p_holm, row.p_share_holm)]
    n = sum(not math.isnan(p) for p in p_values)
    family = [_("Holm's correction covers the {} tests made here.").format(n)] if n > 1 else []
    left_out = {name_of(name): labels for name, labels in comparison.left_out.items()}
    failed = {name_of(name): n for name, n in comparison.failed.items()}
    missing = {name_of(name): one for name, one in comparison.missing.items()}
    apart = told_left_out(len(comparison.queries), left_out)
    drafts = {name_of(name): n for name, n in unreviewed_of(comparison.compared).items()}
    beside = [*told_failed(failed), *told_missing(missing), *unreviewed_sentences(drafts)]
    return [*family, *apart, *_told_clusters(comparison), *beside]


def _told_clusters(comparison: Comparison) -> list[str]:
    """Say how far queries in clusters do alike, or might, in a sentence each."""
    clusters = comparison.grouping
    if clusters is None:
        told = _(
            "Queries of the same {tag} do alike (design effect {effect:.1f}), so these intervals "
            "are too narrow: ask for clusters by {tag}."
        )
        return [
            told.format(tag=named_tag(tag), effect=effect)
            for tag, effect in comparison.dependent.items()
        ]
    found = [row.spread.design_effect for row in comparison.differences if row.spread is not None]
    known = sorted(one for one in found if not math.isnan(one))
    start = _("{n} clusters of queries by {tag} were drawn and swapped").format(
        n=clusters.n, tag=named_tag(clusters.tag)
    )
    if not known:
        return [f"{start}."]
    ends = [*dict.fromkeys(f"{one:.2f}" for one in (known[0], known[-1]))]
    between = _("{} to {}").format(*ends) if len(ends) == 2 else ends[0]
    return [start + _("; design effect {}.").format(between)]


def p_value(p: float) -> str:
    """Return a p for a table, which never reads as 0.

    >>> p_value(0.25), p_value(0.0000123)
    ('0.2500', '1e-05')
    """
    return rounded(p) if math.isnan(p) or p >= 0.00005 else f"{p:.0e}"


def p_said(p: float) -> str:
    """Return what stands behind "p" in a sentence: what it is, or that it is small.

    >>> p_said(0.0421), p_said(1e-9)
    ('= 0.042', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
