"""``krag-eval reanchor``: ground truth in an index that was cut anew."""

from __future__ import annotations

from functools import partial
from typing import Any

from krag_eval.cli import options, output, reading, verdicts
from krag_eval.cli.shell import Verdict
from krag_eval.core import _, option, page_of


@options.command(
    "Carry ground truth over to an index that was cut anew.",
    "krag-eval reanchor golden.jsonl --old old.jsonl --new new.jsonl -o golden.new.jsonl",
    reads=("old", "new"),
)
def reanchor(
    file: str,
    old: str = option(
        lambda: _("The index that the ground truth is of.") + " " + _(options.CHUNKS_HELP),
        "CHUNKS",
        required=True,
    ),
    new: str = option(
        "The index to find it in, likewise; every chunk has an id.", "CHUNKS", required=True
    ),
    by: str = option(
        "What plain texts of the ground truth are; 'auto' takes them for ids if the old index has "
        "all of them.",
        choices=("auto", "id", "text"),
        default="auto",
    ),
    fail_on: tuple[str, ...] = option(
        "Exit with 1 if any ground truth is in one of these states, as in gone,changed. Repeat it "
        "for several.",
        "STATES",
    ),
    question_field: str | None = option("The field with the question.", "NAME"),
    actual_field: str | None = option("The field with the ground truth.", "NAME"),
    cells: Any = options.CELLS,
    outputs: Any = options.saving(
        verdicts.FORMATS,
        output="Save the data set with the new ids, as .jsonl, .csv or .parquet.",
        json="Save counts, and what became of each ground truth.",
        csv="Save one row per ground truth.",
        report=True,
    ),
) -> Verdict | None:
    """Find the ground truth in FILE ('-' reads standard input) in an index that was cut anew.

    FILE is read as 'krag-eval audit' reads it. Each ground truth is looked for by its own text, or
    by the text that the old index has for its id: unchanged, moved (another id), absorbed (in a
    larger chunk), split (over several), changed (another number, or the opposite), or gone.
    """
    import pandas as pd

    from krag_eval.auditing.audit import names_in
    from krag_eval.reanchoring.reanchor import STATES, reanchor
    from krag_eval.report import write_report

    if fail_on:
        names_in(fail_on, STATES)
    dataset = reading.questions(file, question=question_field, actual=actual_field, cells=cells)
    with reading.placed(dataset):
        found = reanchor(dataset, reading.chunks_of(old), reading.chunks_of(new), by=by)  # type: ignore[arg-type]
    report = found.check(fail_on) if fail_on else None
    output.emit(
        outputs,
        lambda: page_of(found),
        lambda: {"counts": found.counts},
        lambda: pd.DataFrame([*found.counts.items()], columns=["state", "ground_truths"]),
        verdicts.formats(report, file, "--fail-on"),
        report=partial(write_report, found),
        json=(
            lambda to: output.write_text(output.json_of(found.to_dict()), to),
            _("what was found"),
        ),
        csv=(lambda: found.table, _("one row per ground truth")),
        output=(found.dataset.save, _("the data set with the new ids")),
    )
    return None if report is None else verdicts.pronounce(report)
