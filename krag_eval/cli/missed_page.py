"""How the commands that list what was missed, and what contradicts it, show the lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from krag_eval.core import Column, Page, Table, _, fitted, pgettext, visible
from krag_eval.core.display.contradictions import NO_TEXTS
from krag_eval.core.text import whole_percent

if TYPE_CHECKING:
    import pandas as pd

# Columns of a question where nothing stands beside it, and for all beside texts.
_QUERY, _BESIDE_TEXTS, _NARROWEST = 56, 58, 16
# Differences that are counted above the list of pairs.
_MOST_OFTEN = 5


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
