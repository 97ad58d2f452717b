"""What is shown of a calibrated threshold, and of how far a judge decides as people do."""

from __future__ import annotations

from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import Column, Page, Table, _, percent, presents, rounded, span
from krag_eval.lab.calibration import Agreement, Calibration


@presents
def _agreement(found: Agreement) -> Page:
    told = _(
        "Agreement of {matcher} at threshold {threshold:g} with {pairs} labelled pairs ({relevant} "
        "relevant)"
    )
    kappa = _("Cohen's kappa {kappa} ({level} {span}), alike on {share}")
    counts = _(
        "both yes {found}, both no {rejected}, a match where the label says no {false_alarms}, no "
        "match where it says yes {missed}"
    )
    return Page(
        sentences=[
            told.format(
                matcher=found.matcher,
                threshold=found.threshold,
                pairs=len(found.relevant),
                relevant=int(found.relevant.sum()),
            ),
            kappa.format(
                kappa=rounded(found.kappa),
                level=interval_of(found.level),
                span=span(*found.interval),
                share=percent(found.share, 1),
            ),
            counts.format(**found.counts._asdict()),
        ]
    )


@presents
def _calibration(found: Calibration) -> Page:
    title = _("Calibration of {matcher} on {pairs} pairs ({relevant} relevant)")
    where = _("any above {:.4f} up to {:.4f} separates all pairs")
    if found.gap is None:
        where = f"{interval_of(found.level)} {span(*found.interval)}"
    told = _(
        "best threshold {best:.4f} ({range}): precision {precision:.4f}, recall {recall:.4f}, F1 "
        "{f1:.4f}"
    ).format(
        best=found.best_threshold,
        range=where.format(*found.gap or ()),
        **found.decision(found.best_threshold),
    )
    n_relevant = int(found.relevant.sum())
    head = title.format(matcher=found.matcher, pairs=len(found.relevant), relevant=n_relevant)
    return Page(sentences=[head, told], verdict=told)


def borderline(found: Calibration, n: int) -> Table:
    """Return the pairs nearest to the threshold, worth a second look."""
    columns = [
        Column(_("actual"), "actual"),
        Column(_("predicted"), "predicted"),
        Column(_("pair"), "pair"),
        Column(_("similarity"), "similarity"),
        Column(_("relevant"), lambda row: (_("yes") if row["relevant"] else _("no"))
               + "!" * row["wrong"]),
    ]  # fmt: skip
    rows = found.borderline(n).reset_index().to_dict("records")
    title = _("Nearest to the threshold, worth a second look:")
    return Table(rows, columns, names=2, title=title)
