"""What is shown of a re-anchored data set: how many labels still hold, and where the others are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from krag_eval.auditing.audit import counted
from krag_eval.core import N_, Column, Page, Report, Table, _, fitted, percent, presents
from krag_eval.core.display.contradictions import otherwise_in_words
from krag_eval.core.text import whole_percent
from krag_eval.reanchoring.reanchor import MATCHER, STATES, Anchored, Reanchored

# Ground truths that are listed where nobody asked for all, and columns of a name.
_ROWS, _NAME = 20, 40

#: State -> what it means, and what to do about it.
MEANINGS = {
    "moved": N_("another id has the same text."),
    "absorbed": N_("one chunk holds it, among other text."),
    "split": N_("several chunks hold it together; each piece is an item of its own now."),
    "changed": N_(
        "a chunk says something else there, such as another number; have a person decide."
    ),
    "gone": N_("the new index does not hold it; index the text, or retire the label."),
}
# What a person has to look at.
_TO_DO = ("changed", "gone")

_READ_AS = {
    "id": N_("Plain texts of the ground truth were read as ids of chunks."),
    "text": N_("Plain texts of the ground truth were read as passages, not as ids."),
}


@presents
def reanchored_page(shown: Reanchored) -> Page:
    """Show counts, and the first of those that need a look, the worst first."""
    return page_of_all(shown, _ROWS)


def page_of_all(shown: Reanchored, most: int | None = None) -> Page:
    """Show counts, and so many ground truths that are not unchanged, or all of them."""
    others = [one for one in shown.rows if one.state != STATES[0]]
    others.sort(key=lambda one: STATES.index(one.state), reverse=True)
    tables = [_counts(shown), *([_places(others[:most])] if others else [])]
    more = [] if most is None or len(others) <= most else [
        _("and {} more").format(len(others) - most)]  # fmt: skip
    to_do = [state for state in _TO_DO if shown.counts[state]]
    advice = [f"{state}: {_(MEANINGS[state])}" for state in to_do]
    return Page("", tables, [*_told(shown)], more, advice=advice)


def _counts(shown: Reanchored) -> Table:
    total = len(shown.rows)
    header = _("state"), _("ground truths"), _("share")
    cells = [(state, n, percent(n / total, 1) if total else None)
             for state, n in shown.counts.items()]  # fmt: skip
    return Table.of_cells(header, cells)


def _places(rows: Sequence[Anchored]) -> Table:
    columns = [
        Column(_("query"), lambda row: f"{row.position}: {fitted(str(row.query), _NAME)}"),
        Column(_("item"), "item"),
        Column(_("state"), "state"),
        Column(_("old id"), lambda row: _ids(row.old)),
        Column(_("new id"), lambda row: _ids(row.new)),
        Column(_("also in"), lambda row: _ids(row.alternatives)),
        Column(_("held"), lambda row: _("{} %").format(whole_percent(row.share))),
        Column(_("remark"), _remark),
    ]
    if not any(row.alternatives for row in rows):
        del columns[-3]
    title = _("Labels that are not unchanged, the worst first.")
    return Table(rows, columns, title=title)


def _ids(ids: Sequence[str]) -> str:
    return fitted(", ".join(ids), _NAME) or "–"


def _remark(row: Anchored) -> str:
    if row.against is None:
        return ""
    told = _("chunk {} says otherwise").format(fitted(row.against, _NAME))
    return f"{told}: {otherwise_in_words(row.said)}" if row.said else told


def _told(shown: Reanchored) -> Iterator[str]:
    n, total = shown.n_stale, len(shown.rows)
    if n:
        told = _("{share} of the labels no longer point at what a person read ({n} of {total}).")
        share = _("{} %").format(whole_percent(shown.stale))
        yield told.format(share=share, n=n, total=total)
    elif total:
        yield _("Every label still points at what a person read ({total}).").format(total=total)
    for state, told in MEANINGS.items():
        if shown.counts[state]:
            yield f"{state}: {_(told)}"
    if shown.read_as:
        yield _(_READ_AS[shown.read_as])
    if shown.left_out:
        told = _("Of the old index, and not in the new data set: {}.")
        yield told.format(", ".join(shown.left_out))
    old, new = (counted(n, "chunks") for n in shown.n_chunks)
    yield _("The old index has {old}, the new one {new}.").format(old=old, new=new)


def _labels_page(shown: Reanchored) -> dict[str, Any]:
    """Gather what the template of re-anchored labels reads."""
    return {
        "template": "reanchored.html",
        "page": page_of_all(shown),
        "subtitle": shown.dataset.source,
        "settings": [(_("matcher"), MATCHER.name)],
        "signature": MATCHER.signature,
    }


#: How re-anchored labels are reported.
REPORT = Report(_labels_page, N_("Labels after re-chunking"), has_options=False)
