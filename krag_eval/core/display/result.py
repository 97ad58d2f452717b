"""How a result is shown: its averages by cutoff, and the queries that lost most."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from krag_eval.core.display import Column, Page, Table, numbers, presents
from krag_eval.core.display.contradictions import NO_TEXTS
from krag_eval.core.language import N_, _, ngettext, pgettext
from krag_eval.core.results.facts import ResultFacts
from krag_eval.core.results.reviews import unreviewed_of, unreviewed_sentences
from krag_eval.core.scoring.averages import in_pairs
from krag_eval.core.scoring.cutoffs import spelled
from krag_eval.core.text import fitted, visible, whole_percent

if TYPE_CHECKING:
    import pandas as pd

# From so many cutoffs on, what counts as found stands below the name of a metric.
_MANY = 4
# Columns of a question where nothing stands beside it, and for all beside texts.
_QUERY, _BESIDE_TEXTS, _NARROWEST = 56, 58, 16
# What a passage and a chunk that contradicts it differ in.
_KINDS = (N_("number"), N_("negation"), N_("text"))
# Differences that are counted above the list of pairs.
_MOST_OFTEN = 5


def result_page(
    result: ResultFacts,
    averages: Collection[str] | None = None,
    intervals: pd.DataFrame | None = None,
) -> Page:
    """Show the averages, micro beside macro, or each with its interval.

    Args:
        result: The result.
        averages: The averages to show; those of ``result.shown`` if not given.
        intervals: The 95 % interval of each average, as ``confidence_intervals`` returns them, at
            all cutoffs or some.
    """
    values, names = result.to_dict(), result.row_names()
    keys = result.shown if averages is None else [one for one in names if one in averages]
    rows = in_pairs(keys) if intervals is None else {key: (key,) for key in keys}
    paired = len(rows) < len(keys)
    header = [_("metric")]
    table: list[list[object]] = []
    for name in rows:
        shown = names.get(name, name)
        table.append([tuple(shown.split(" ", 1)) if len(result.k) >= _MANY else shown])
    for k in map(spelled, result.k):
        header += [f"@{k}\nmacro", f"@{k}\nmicro"] if paired else [f"@{k}"]
        with_interval = intervals is not None and f"{keys[0]}@{k}" in intervals.index
        header += [_("{} % interval").format(95)] if with_interval else []
        for row, of_row in zip(table, rows.values(), strict=True):
            row += [values[f"{key}@{k}"] for key in of_row]
            row += [""] if paired and len(of_row) == 1 else []
            if intervals is not None and with_interval:
                bounds = intervals[["low", "high"]].reindex([f"{of_row[0]}@{k}"]).to_numpy()[0]
                row.append(numbers.span(*bounds.tolist()))
    title = ngettext(
        "EvaluationResult of {} query", "EvaluationResult of {} queries", result.n_queries
    )
    run = result.retrieval
    is_timed = run is not None and not math.isnan(run.latency.mean)
    asked = [_("latency: {}").format(result.latency)] if is_timed else []
    drafts = unreviewed_sentences(unreviewed_of({"": result}))
    return Page(
        title.format(result.n_queries),
        [Table.of_cells(header, table)],
        notes=[*asked, *result.summary.caveats(), *drafts, *told_contradicted(result)],
        signature=result.signature,
        verdict=" ".join([result.summary(), *drafts]),
        advice=told_contradicted(result),
    )


presents(ResultFacts, result_page)


def told_contradicted(result: ResultFacts) -> list[str]:
    """Say how many chunks contradict a passage that they nearly hold; nothing where none does."""
    told = ngettext(
        "{n} retrieved chunk is another text than a passage that it nearly holds, by a number, a "
        "negation or other words: see result.contradicted(), or krag-eval explain FILE "
        "--contradicted.",
        "{n} retrieved chunks are other texts than a passage that they nearly hold, by a number, "
        "a negation or other words: see result.contradicted(), or krag-eval explain FILE "
        "--contradicted.",
        result.n_contradicted,
    )
    return [told.format(n=result.n_contradicted)] if result.n_contradicted else []


def contradicted_page(found: pd.DataFrame, *, is_looked_for: bool) -> Page:
    """List the pairs that ``result.contradicted`` returns.

    Args:
        found: The pairs.
        is_looked_for: Whether the matcher looks for contradictions at all.
    """
    columns = [
        Column(_("position"), "position"),
        Column(_("query"), lambda one: fitted(str(one.query), _QUERY // 2)),
        Column(_("item"), "item"),
        Column(_("rank"), "rank"),
        Column(_("share"), lambda one: _("{} %").format(whole_percent(one.share))),
        Column(_("differs in"), lambda one: one.kind and _(one.kind)),
        Column(_("the passage has"), "passage"),
        Column(_("the chunk has"), "document"),
        Column(_("times"), "count"),
    ]
    title = _("Retrieved chunks that nearly hold a passage and are another text: {}")
    rows = [*found.reset_index().itertuples(index=False)]
    kept = found["kind"].notna().any() or not rows
    notes = [] if kept else [_(NO_TEXTS)]
    if not is_looked_for:
        notes.append(_("This matcher does not look for other texts; coverage does."))
    tables = [Table(rows, columns, names=len(columns))] if rows else []
    sentences = [*_most_often(found)]
    return Page(title.format(len(rows)), tables, sentences=sentences, notes=notes, advice=notes)


def _most_often(found: pd.DataFrame) -> Iterator[str]:
    """Say which differences several pairs have, as of Busan for Seoul throughout a file."""
    pairs = zip(found["passage"], found["document"], found["count"], strict=True)
    times = {(ours, theirs): int(n) for ours, theirs, n in pairs if ours is not None and n > 1}
    often = sorted(times.items(), key=lambda item: -item[1])[:_MOST_OFTEN]
    told = [
        _("“{theirs}” for “{ours}” ({n})").format(ours=ours, theirs=theirs or _("nothing"), n=n)
        for (ours, theirs), n in often
    ]
    if told:
        yield _("Most often: {}.").format(", ".join(told))


def misses_page(
    missed: pd.DataFrame, n: int, labels: Sequence[str | int], k: str, width: int
) -> Page:
    """Show the first of the queries that lost something.

    Args:
        missed: All of them, as ``result.misses`` returns them.
        n: How many to show.
        labels: The labels of all queries.
        k: The cutoff.
        width: Columns of the terminal, which the texts are clipped to.
    """
    title = _("{n} of {queries} queries lost something @{k}")
    title = title.format(n=len(missed), queries=len(labels), k=k)
    told = "missed" in missed
    room = max((width - _BESIDE_TEXTS) // 2, _NARROWEST) if told else _QUERY

    def at(name: str) -> str:
        return f"missed:{name}" if f"missed:{name}" in missed else name

    def clipped(text: Any) -> str | None:
        return None if text is None else fitted(visible(str(text)), room)

    def ranks(one: Any) -> tuple[object, ...] | None:
        by, rank = one[at("contradicted_by")], one[at("rank")]
        told = [_("{} differs").format(by)] if by else []
        return (*([rank] if rank else []), *told) or None

    columns = [
        Column("id", at("id")) if "id" in missed else Column(_("position"), at("position")),
        Column(_("query"), lambda one: clipped(one["query"])),
        Column(_("status"), lambda one: _(one["status"])),
        Column(pgettext("heading", "found"),
               lambda one: _("{} of {}").format(round(one["covered"]), round(one["ground_truth"]))),
    ]  # fmt: skip
    if told:
        columns.insert(2, Column(pgettext("heading", "missed"), lambda one: clipped(one["missed"])))
        columns += [
            Column(_("similarity"), at("similarity")),
            Column(_("rank"), ranks),
        ]
    rows = missed[:n].reset_index()
    if told:
        for name in map(at, ("rank", "contradicted_by")):
            rows[name] = rows[name].fillna(0)
    table = Table(rows.to_dict("records"), columns, names=3 if told else 2)
    more = [_("and {} more").format(len(missed) - n)] if len(missed) > n else []
    return Page(title, [table] if len(missed) else [], notes=more)
