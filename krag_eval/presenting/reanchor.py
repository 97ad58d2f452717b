"""What is shown of a re-anchored data set: how many labels still hold, and where the others are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from krag_eval._language import N_, _
from krag_eval._text import fitted, whole_percent
from krag_eval.datasets.reanchor import STATES, Anchored, Reanchored
from krag_eval.presenting import Column, Page, Table, presents
from krag_eval.presenting.contradictions import otherwise_in_words
from krag_eval.presenting.numbers import percent

# Ground truths that are listed where nobody asked for all, and columns of a name.
_ROWS, _NAME = 20, 40

#: State -> what it means, and what to do about it.
MEANINGS = {
    "moved": N_("another id has the same text."),
    "absorbed": N_("one chunk holds it, among other text."),
    "split": N_("several chunks hold it together; each piece is an item of its own now."),
    "changed": N_("a chunk says another number or the opposite; have a person decide."),
    "gone": N_("the new index does not hold it; index the text, or retire the label."),
}


@presents
def reanchored_page(shown: Reanchored) -> Page:
    """Show counts, and the first of those that need a look, the worst first."""
    return page_of_all(shown, _ROWS)


def page_of_all(shown: Reanchored, most: int | None = None) -> Page:
    """Show counts, and so many ground truths that are not unchanged, or all of them."""
    stale = sorted((one for one in shown.rows if one.state != STATES[0]),
                   key=lambda one: -STATES.index(one.state))  # fmt: skip
    tables = [_counts(shown), *([_places(stale[:most])] if stale else [])]
    more = [] if most is None or len(stale) <= most else [
        _("and {} more").format(len(stale) - most)]  # fmt: skip
    return Page("", tables, [*_told(shown)], more)


def _counts(shown: Reanchored) -> Table:
    n = len(shown.rows)
    columns = [
        Column(_("state"), lambda row: row[0]),
        Column(_("ground truths"), lambda row: row[1]),
        Column(_("share"), lambda row: percent(row[1] / n, 1) if n else None),
    ]
    return Table([*shown.counts.items()], columns)


def _places(rows: Sequence[Anchored]) -> Table:
    also = Column(_("also in"), lambda row: _ids(row.alternatives))
    columns = [
        Column(_("query"), lambda row: f"{row.position}: {fitted(str(row.query), _NAME)}"),
        Column(_("item"), "item"),
        Column(_("state"), "state"),
        Column(_("old id"), lambda row: _ids(row.old)),
        Column(_("new id"), lambda row: _ids(row.new)),
        *([also] if any(row.alternatives for row in rows) else []),
        Column(_("held"), lambda row: f"{whole_percent(row.share)} %"),
        Column(_("remark"), _remark),
    ]
    title = _("Where those stand that are not unchanged, the worst first.")
    return Table(rows, columns, title=title)


def _ids(ids: Sequence[str]) -> str:
    return fitted(", ".join(ids), _NAME) or "–"


def _remark(row: Anchored) -> str:
    if row.against is None:
        return ""
    told = _("chunk {} says otherwise").format(fitted(row.against, _NAME))
    return f"{told}: {otherwise_in_words(row.said)}" if row.said else told


def _told(shown: Reanchored) -> Iterator[str]:
    if shown.rows:
        told = _("{share} of the labels no longer point at what a person read ({n} of {total}).")
        n, total = len(shown.rows) - shown.counts[STATES[0]], len(shown.rows)
        yield told.format(share=f"{whole_percent(shown.stale)} %", n=n, total=total)
    for state, told in MEANINGS.items():
        if shown.counts[state]:
            yield f"{state}: {_(told)}"
    if shown.read_as == "id":
        yield _("Plain texts of the ground truth were read as ids of chunks.")
    elif shown.read_as:
        yield _("Plain texts of the ground truth were read as passages, not as ids.")
    if shown.n_retrieved:
        yield _("What was retrieved is of the old index, and not in the new data set.")
