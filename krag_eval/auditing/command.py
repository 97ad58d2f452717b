"""``krag-eval audit``: what is wrong with the ground truth in a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from krag_eval.cli import options, output, reading, verdicts
from krag_eval.cli.shell import Verdict
from krag_eval.core import _, option, page_of

#: Settings of an audit.
_AUDITING: options.Options = {
    "k": option(
        "How many documents are to hold all items of a query.",
        "K",
        kind=int,
        flags=("-k",),
        default=10,
    ),
    "min_run": option(
        "Consecutive words that count as shared.  [default: 5; of letters 12, of characters 15]",
        "N",
        kind=int,
    ),
    "tokenizer": option(
        "How a text becomes words: 'auto' as the matcher coverage reads it, by words or letters.",
        "NAME",
        default="auto",
    ),
    "ids": option(
        "Look documents up by their ids, a plain text being one, or by their texts.  "
        "[default: by ids where both sides have them]",
        kind=bool,
        flags=("--ids/--texts",),
    ),
}


@options.command(
    "Look for what is wrong with the ground truth in a file.",
    "krag-eval audit results.jsonl --index chunks.jsonl",
    reads=("index",),
)
def audit(
    file: str,
    index: str | None = option(options.CHUNKS_HELP, "CHUNKS"),
    fail_on: tuple[str, ...] = option(
        "Exit with 1 if any of these is found, as in dangling,twins. Repeat it for several.",
        "NAMES",
    ),
    settings: Any = _AUDITING,
    question_field: str | None = option("The field with the question.", "NAME"),
    actual_field: str | None = option("The field with the ground truth.", "NAME"),
    cells: Any = options.CELLS,
    outputs: Any = options.saving(
        verdicts.FORMATS,
        json="Save the audit; Python reads it back.",
        csv="Save one row per place that was found.",
    ),
) -> Verdict | None:
    """Look for what is wrong with the ground truth in FILE ('-' reads standard input).

    FILE holds questions and the documents that should be retrieved, as JSONL, CSV, TSV, a JSON
    array or Parquet, whose columns are known by their usual names. What was retrieved does not
    matter. Queries and chunks are counted from 0. Nothing is changed.
    """
    import pandas as pd

    from krag_eval.auditing.audit import as_text, audit, checked_names

    if fail_on:
        checked_names(fail_on, () if index else ("an index",))
    dataset = reading.questions(file, question=question_field, actual=actual_field, cells=cells)
    chunks = None if index is None else reading.chunks_of(index)
    with reading.placed(dataset):
        found = audit(dataset, chunks, **settings)
    # What could not be looked for is refused before anything is printed.
    report = found.check(fail_on) if fail_on else None
    # What was not looked for is unknown.
    counts: dict[str, int | None] = {name: len(one.rows) for name, one in found.findings.items()}
    counts |= dict.fromkeys(found.unchecked)
    page = page_of(found)
    looked_at, *sentences = page.sentences
    output.emit(
        outputs,
        lambda: replace(page, sentences=[f"{dataset.source}: {looked_at}", *sentences]),
        lambda: {
            "looked_at": dict(found.counts),
            "findings": counts,
            "unchecked": dict(found.unchecked),
            "tiers": {name: dict(tiers) for name, tiers in found.shares.items()},
        },
        lambda: pd.DataFrame({"finding": [*counts], "rows": [*counts.values()]}, dtype=object),
        verdicts.formats(report, file, "--fail-on"),
        json=(lambda target: output.write_text(as_text(found), target), _("the audit")),
        # Where a finding is about a query, the cell of the item is empty.
        csv=(lambda: found.table, _("one row per place that was found")),
    )
    return None if report is None else verdicts.pronounce(report)
