"""``krag-eval diagnose``: where what is missing was lost."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from krag_eval.cli import options, output, reading
from krag_eval.core import Cutoff, _, option, page_of

if TYPE_CHECKING:
    from krag_eval.diagnosis.diagnosis import ForeignIndex


@options.command(
    "Find out where what is missing was lost.",
    "krag-eval diagnose results.jsonl --index chunks.jsonl -k 5",
    reads=("index",),
)
def diagnose(
    file: str,
    run: str | None,
    index: str = option(options.CHUNKS_HELP, "CHUNKS", required=True),
    k: tuple[Cutoff, ...] = options.one_cutoff_option(
        "Find out what is missing within the first K documents; documents beyond them tell "
        "ranking from search.  [default: 10; of a saved result, its deepest cutoff]"
    ),
    depth: int | None = option("Look at the first N documents.  [default: all of them]", "N"),
    foreign_index: ForeignIndex = options.FOREIGN_INDEX,
    typed: Any = options.DIAGNOSIS,
    outputs: Any = options.saving(
        json="Save the diagnosis; Python reads it back.",
        csv="Save one row per ground-truth item.",
        report=True,
    ),
) -> None:
    """Find out where what is missing in FILE was lost: index, splitter, ranking or search.

    FILE is JSONL, as 'krag-eval evaluate' reads it ('-' reads standard input), or a result that it
    saved with --texts, whose name ends in .json. Have more documents retrieved than K: where the
    lists end at K, nobody can tell what was ranked too low from what was not retrieved.
    """
    from krag_eval.diagnosis.causes import checked_depth
    from krag_eval.diagnosis.diagnosis import as_text

    if k:
        checked_depth(depth, k[0])
    chunks = cache(partial(reading.chunks_of, index))
    result, at = reading.result_of(file, k, typed, chunks, run=run)
    found = reading.diagnosis_of(
        result, file, chunks(), typed, k=at, depth=depth, foreign_index=foreign_index
    )
    # A saved result may have been evaluated at other cutoffs; the page says so.
    shown_at = found.k if found.k in result.k else None
    page = replace(page_of(found), signature=output.signed(result.signature))
    rows = output.waterfall_of(found)
    output.emit(
        outputs,
        lambda: page,
        lambda: {**output.diagnosed(found), "signature": result.signature},
        lambda: rows,
        json=(lambda target: output.write_text(as_text(found), target), _("the diagnosis")),
        csv=(lambda: found.table, _("one row per ground-truth item")),
        report=partial(result.report, k=shown_at, diagnosis=found),
    )
