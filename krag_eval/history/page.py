"""How a history is shown: its runs with their averages, and what changed between them."""

from __future__ import annotations

from functools import partial

from krag_eval.comparison.comparable import has_rows
from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import (
    Column,
    Page,
    Table,
    _,
    fitted,
    ngettext,
    page_of,
    presents,
    short,
    span,
    told_missing,
    unreviewed_of,
    unreviewed_sentences,
)
from krag_eval.core.results.latency import told_failed
from krag_eval.history.history import Change, History, HistoryRun, minute, told_others

# Columns of the name of a run.
_NAME = 40


@presents
def _page(history: History) -> Page:
    n = len(history.runs)
    title = ngettext("{n} run in {folder}", "{n} runs in {folder}", n)

    def interval(run: HistoryRun, metric: str) -> str:
        return span(*history.bounds(run, metric), short)

    columns = [
        Column(_("run"), lambda run: fitted(run.name, _NAME)),
        Column(_("made (UTC)"), lambda run: minute(run.made) + "*" * run.made_by_file),
    ]
    for metric in history.metrics:
        columns.append(Column(metric, partial(history.value, metric=metric)))
        columns.append(Column(interval_of(0.95), partial(interval, metric=metric)))
    return Page(
        title.format(n=n, folder=history.folder),
        [Table(history.runs, columns, names=2)],
        notes=_told(history),
    )


@presents
def _changes(run: HistoryRun) -> Page:
    """Return what changed since the run before, a phrase for each change."""
    return Page(sentences=[_told_change(one).format(**one._asdict()) for one in run.changes])


def _told_change(change: Change) -> str:
    if change.before is None and change.after is None:
        if change.setting == "questions":
            return _("other questions")
        return _("other ground truth")
    if change.before is None:
        return _("{setting} is now {after}")
    if change.after is None:
        return _("{setting} is no longer {before}")
    return _("{setting} from {before} to {after}")


def _told(history: History) -> list[str]:
    """Say what changed from run to run, and what the table does not know, a line each."""
    lines = []
    for run in history.runs:
        if run.changes:
            line = f"{run.name}: {'; '.join(page_of(run).sentences)}"
            if not run.is_comparable:
                line = _("{} (not comparable with the run before)").format(line)
            lines.append(line)
    lines += told_others([run.result.settings for run in history.runs])
    n = sum(run.made_by_file for run in history.runs)
    if n:
        by_file = ngettext(
            "The time of {n} run is that of its file (*): results saved before this was kept do "
            "not say when they were made.",
            "The time of {n} runs is that of their files (*): results saved before this was kept "
            "do not say when they were made.",
            n,
        )
        lines.append(by_file.format(n=n))
    lines += told_failed({run.name: run.result.n_failed for run in history.runs})
    lines += told_missing({run.name: run.result.missing for run in history.runs})
    lines += unreviewed_sentences(unreviewed_of({run.name: run.result for run in history.runs}))
    bare = [run.name for run in history.runs if not has_rows(run.result)]
    if bare:
        without = _("Without intervals, because they were saved without per-query rows: {}.")
        lines.append(without.format(", ".join(bare)))
    return lines
