"""What is shown of score cutoffs: what they cost and save, and where to cut off."""

from __future__ import annotations

import numpy as np

from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import Column, Page, Table, _, percent, presents, rounded, span, spelled
from krag_eval.lab.score_cutoffs import ScoreCutoffs

# Rows of the table, beside that of the best.
_ROWS = 7


@presents
def _page(found: ScoreCutoffs) -> Page:
    columns = [
        Column(_("score cutoff"), lambda one: f"{one['cutoff']:.4g}"),
        Column(f"macro_recall@{spelled(found.k)}", lambda one: rounded(one["recall"])),
    ]
    if found.chosen is not None:
        columns.append(Column(_("nothing kept"), lambda one: rounded(one["abstention"])))
        columns.append(Column(_("mean"), lambda one: rounded(one["balanced"])))
    places = np.linspace(0, len(found.cutoffs) - 1, _ROWS).round().astype(int).tolist()
    rows = found.table.reset_index().iloc[sorted({*places, found.chosen or 0})]
    told = _(
        "The scores rise with the rank, so they are taken for distances: a cutoff keeps what is at "
        "or below it."
    )
    sentences = [*([told] if found.lower_is_better else []), _sentence(found)]
    return Page(tables=[Table(rows.to_dict("records"), columns)], sentences=sentences)


def _sentence(found: ScoreCutoffs) -> str:
    if found.chosen is None:
        return _(
            "Every query has ground truth, so there is nothing to abstain from: only recall is "
            "shown, and no cutoff is the best."
        )
    known = found.recall, found.abstention
    told = _(
        "Score cutoff {best!r} ({level} {span}) has the largest mean of both: {here}. Without one: "
        "{before}. On queries that it was not chosen on (chosen on one half, seen on the other, "
        "both ways): {held_out}."
    )
    return told.format(
        best=found.best,
        level=interval_of(found.level),
        span=span(*found.interval, "{:.4g}".format),
        here=_both(found, *(one[found.chosen] for one in known)),
        before=_both(found, *(one[0] for one in known)),
        held_out=_both(found, *found.held_out),
    )


def _both(found: ScoreCutoffs, recall: float, abstention: float) -> str:
    told = _("recall@{k} {recall}, nothing kept for {share} of those without ground truth ({n})")
    recall_said, share = rounded(recall), percent(abstention, 1)
    return told.format(k=spelled(found.k), recall=recall_said, share=share, n=found.n_unanswerable)
