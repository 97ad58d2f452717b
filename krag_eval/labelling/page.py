"""What is shown of pairs to label, and of how far two people label them alike."""

from __future__ import annotations

import math

from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import Page, Table, _, percent, presents, rounded, span
from krag_eval.labelling.labels import LabellerAgreement, ToLabel


@presents
def _to_label(found: ToLabel) -> Page:
    told = _("{pairs} pairs to label, of {questions} questions (page {page}, seed {seed}).")
    sentences = [told.format(pairs=found.n_pairs, questions=found.n_questions, **vars(found))]
    if n := sum(row["predicted"] is None for row in found.rows):
        told = _("Questions with nothing to label, which are in the file all the same: {}.")
        sentences.append(told.format(n))
    advice = []
    if n := sum(len((row["predicted"] or "").split()) == 1 for row in found.rows):
        told = _("Texts of one word, which nobody can judge if they are ids: {}.")
        advice.append(told.format(n))
    return Page(sentences=[*sentences, *advice], advice=advice)


@presents
def _agreement(found: LabellerAgreement) -> Page:
    told = _(
        "{first} and {second} give the same label to {share} of {n} pairs: Cohen's kappa {kappa} "
        "({level} {span})."
    )
    if math.isnan(found.kappa):
        told = _("{first} and {second} give one label to all {n} pairs: kappa is undefined.")
    said = told.format(
        first=found.labeller, second=found.matcher, n=len(found.relevant),
        share=percent(found.share, 1), kappa=rounded(found.kappa),
        level=interval_of(found.level), span=span(*found.interval),
    )  # fmt: skip
    yes, no, counts = _("relevant"), _("not relevant"), found.counts
    cells = [[yes, counts.found, counts.missed], [no, counts.false_alarms, counts.rejected]]
    tables = [Table.of_cells([f"{found.labeller} \\ {found.matcher}", yes, no], cells)]
    differing, advice = found.disagreements, []
    if len(differing):
        header = (_("question"), _("actual"), _("predicted"), found.labeller, found.matcher)
        shown = differing.replace({True: yes, False: no}).to_numpy().tolist()
        title = _("What they disagree on:")
        tables.append(Table.of_cells(header, shown, names=3, title=title))
        advice = [_("Settle on a page of its own what they disagree on (-o)")]
    return Page(tables=tables, sentences=[said], advice=advice)
