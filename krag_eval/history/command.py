"""``krag-eval history``: how saved results moved from run to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from krag_eval.cli import options, output
from krag_eval.core import _, option, page_of


@options.command(
    "Show how saved results moved over time.",
    "krag-eval history runs --metric recall@5,ndcg@10 --plot history.svg",
)
def history(
    folder: str,
    metric: tuple[str, ...] = options.metric_option(
        "What to show, as ndcg@10; macro recall and nDCG otherwise."
    ),
    last: int | None = option("Show the last N runs.  [default: all]", "N"),
    outputs: Any = options.saving(plot="Draw the metrics from run to run, as .png, .svg or .pdf."),
) -> None:
    """Show the metrics of the results saved in FOLDER, the oldest first, and what changed.

    A FOLDER of results that 'krag-eval evaluate --json' saved, each under a name of its own, is a
    history. Intervals are those of 'krag-eval evaluate --intervals'; what changed in the signature
    since the run before stands below the table.
    """
    from krag_eval.history.history import History

    found = History.of(folder, metric or None, last=last)
    made = [one.isoformat(timespec="seconds") for one in found.table["made"]]
    output.emit(
        outputs,
        lambda: replace(page_of(found), signature=output.signed(found.runs[-1].result.signature)),
        found.to_dict,
        lambda: found.table.assign(made=made),
        plot=(found.plot, _("the metrics from run to run")),
    )
