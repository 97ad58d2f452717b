"""What is shown of an audit: how often each thing was found, what to do, and the first places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from krag_eval.auditing.audit import TIERS, Audit, Finding, counted
from krag_eval.core import Column, Page, Table, _, pgettext, presents, speaking
from krag_eval.core.errors import sentence

# Places that are shown of a finding.
_ROWS = 3


@presents
def audit_page(shown: Audit) -> Page:
    """Show counts and tiers, then what was found, in the language of the audit."""
    with speaking(shown.language):
        found = [one for one in shown.findings.values() if one.rows]
        looked_at = ", ".join(counted(n, what) for what, n in shown.counts.items())
        lines = [f"{one.name}: {sentence(one.said, one.fix)}" for one in found]
        told = [_("Looked at {}.").format(looked_at), *(lines or [_("Nothing found.")])]
        notes = [line for one in found for line in _places(one)]
        nothing = [one.name for one in shown.findings.values() if not one.rows]
        if found and nothing:
            notes.insert(0, _("Nothing else: {}.").format(", ".join(nothing)))
        return Page(
            "", [*_tables(shown, found)], [*told, *_unchecked(shown)], notes,
            verdict=" ".join(f"{one.name}: {sentence(one.said, '')}" for one in found) or told[1],
            advice=[f"{one.name}: {sentence(one.fix, '')}" for one in found],
        )  # fmt: skip


def _tables(shown: Audit, found: list[Finding]) -> Iterator[Table]:
    if found:
        rows = Column(_("rows"), lambda one: len(one.rows))
        yield Table(found, [Column(_("finding"), "name"), rows])
    if shown.shares:
        tiers = [{"share": tier, **{name: of[tier] for name, of in shown.shares.items()}}
                 for _least, tier in TIERS]  # fmt: skip
        columns = [Column(name, name) for name in shown.shares]
        title = _(
            "Questions by how much of them stands in their ground truth: quoted, the share of "
            "words that stand there in a row, just so; overlap, the share of words that occur "
            "there at all."
        )
        share = Column(_("share"), lambda row: _(row["share"]))
        yield Table(tiers, [share, *columns], title=title)


def _unchecked(shown: Audit) -> Iterator[str]:
    needs = {
        "an index": pgettext("not checked without", "an index"),
        "texts in the index": pgettext("not checked without", "texts in the index"),
        "texts of the ground truth": pgettext("not checked without", "texts of the ground truth"),
        "questions": pgettext("not checked without", "questions"),
    }
    names = defaultdict(list)
    for name, need in shown.unchecked.items():
        names[need].append(name)
    for need, several in names.items():
        told = _("Not checked without {need}: {names}.")
        yield told.format(need=needs[need], names=", ".join(several))


def _places(finding: Finding) -> Iterator[str]:
    """Yield the first places of a finding, and how many there are beside."""
    for row in finding.rows[:_ROWS]:
        where = _("query {}, item {}") if row.item else _("query {}")
        place = where.format(row.position, row.item)
        yield f"{finding.name}: {place}: {row.text} ({row.concerns})"
    if len(finding.rows) > _ROWS:
        more = _("and {} more").format(len(finding.rows) - _ROWS)
        yield f"{finding.name}: {more}"
