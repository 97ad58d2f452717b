"""How a sweep is shown: a column per cell, what was reused and chosen, and the comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from krag_eval.comparison.comparison_page import sentence
from krag_eval.core import (
    Column,
    Page,
    Table,
    _,
    ngettext,
    presents,
    rounded,
    short,
    unreviewed_of,
    unreviewed_sentences,
)
from krag_eval.sweeping.sweep import Sweep

# Columns of the frame that name a cell, or say something of it in words.
_WORDS = ("splitter", "retriever", "pareto", "same_as")


@presents
def _page(sweep: Sweep) -> Page:
    n_queries = sweep.cells[0].result.n_counted
    told = _("{cells} cells over {queries} questions.")
    if len(sweep.cells) == 1:
        told = _("1 cell over {queries} questions.")
    elif len(sweep.run) < len(sweep.cells):
        told = _(
            "{cells} cells over {queries} questions; {runs} were run, the others have the chunks "
            "of another."
        )
    counts = {"cells": len(sweep.cells), "queries": n_queries, "runs": len(sweep.run)}
    sentences = [told.format(**counts), *reused(sweep)]
    if sweep.comparison is None:
        said = sweep.cells[0].result.summary.caveats()
    else:
        said = [sweep.comparison.summary()]
    choice = chosen(sweep)
    sentences += [*said, *choice]
    if front := ", ".join(sweep.front("context")):
        sentences.append(_("Best for their context: {names}.").format(names=front))
    star = _("* no other cell is as good for as little context, and better or shorter")
    verdict = " ".join(choice or said)
    drafts = unreviewed_sentences(unreviewed_of({"": sweep.cells[0].result}))
    notes = [star, *shared(sweep), *drafts]
    return Page(tables=[_table(sweep)], sentences=sentences, notes=notes, verdict=verdict)


def _table(sweep: Sweep) -> Table:
    frame, front = sweep.table, set(sweep.front("context"))
    rows = [{"": name, **frame[name]} for name in frame.columns if name not in _WORDS]
    columns = [Column("", "")]
    for cell in sweep.cells:
        star = "*" if (cell.same_as or cell.name) in front else ""
        columns.append(Column(f"{cell.name}{star}", partial(_shown, cell.name)))
    return Table(rows, columns)


def _shown(name: str, row: Mapping[str, Any]) -> str:
    value = float(row[name])
    whole = not math.isnan(value) and value.is_integer() and value not in (0, 1)
    return f"{value:,.0f}" if whole else rounded(value)


def shared(sweep: Sweep) -> list[str]:
    """Say which cells were not run, as another has their chunks."""
    told = _("{} has the chunks of {}, and was not run again.")
    return [told.format(one.name, one.same_as) for one in sweep.cells if one.same_as is not None]


def reused(sweep: Sweep) -> list[str]:
    """Say how many answers were reused, of which day, and how many questions were asked."""
    moments = [cell.answered.astimezone() for cell in sweep.run if cell.answered is not None]
    if not moments:
        return []
    days = dict.fromkeys(f"{one:%Y-%m-%d}" for one in (min(moments), max(moments)))
    span = " – ".join(days)
    questions = ngettext("{n} question", "{n} questions", sweep.n_asked).format(n=sweep.n_asked)
    answers = ngettext("{n} answer", "{n} answers", sweep.n_reused).format(n=sweep.n_reused)
    told = _("{answers} of {day} reused, {questions} asked.")
    return [told.format(answers=answers, day=span, questions=questions)]


def chosen(sweep: Sweep) -> list[str]:
    """Say what was chosen on one half of the questions and what it is worth on the other."""
    choice = sweep.choice
    if choice is None:
        return []
    told = _("Chosen by {metric} on {n} questions: {name} ({value}).")
    worth = _(
        "On the other {n} questions it has {value}: it was not overrated (from one half to the "
        "other, the mean of all cells changes by {shift})."
    )
    if choice.overrated > 0:
        worth = _(
            "On the other {n} questions it has {value}: it was overrated by {by} (from one half to "
            "the other, the mean of all cells changes by {shift})."
        )
    known = {"value": short(choice.held_out), "by": short(choice.overrated)}
    lines = [
        told.format(
            metric=choice.metric, n=choice.n_chosen_by, name=choice.name, value=short(choice.value)
        ),
        worth.format(n=choice.n_held_out, shift=f"{choice.shift:+.3f}", **known),
    ]
    if choice.difference is None or sweep.comparison is None:
        return [*lines, _("The choice is the baseline.")]
    return [*lines, sentence(choice.difference, sweep.comparison.level)]
