"""What is shown of a gate: what became of each condition, the worst first."""

from __future__ import annotations

from krag_eval._language import _, pgettext, speaking
from krag_eval.presenting import Page, presents
from krag_eval.statistics.gates import Gate, GateReport


@presents
def _page(report: GateReport) -> Page:
    with speaking(report.language):
        notes = [report.note] if report.note else []
        return Page(sentences=list(map(line_of, report.by_outcome)), notes=notes)


def line_of(gate: Gate) -> str:
    """Return in a line what became of a condition."""
    return f"{verdict(gate)}: {gate.reason}"


def verdict(gate: Gate) -> str:
    """Return in a word what became of a condition."""
    if gate.outcome == "failed":
        return pgettext("of a gate", "failed")
    return _("inconclusive") if gate.is_inconclusive else _("passed")
