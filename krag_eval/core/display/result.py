"""How a result is shown: its averages by cutoff, and the queries that lost most."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from krag_eval.core.display import Page, Table, numbers, presents
from krag_eval.core.language import N_, _, ngettext
from krag_eval.core.results.facts import ResultFacts
from krag_eval.core.results.reviews import unreviewed_of, unreviewed_sentences
from krag_eval.core.scoring.averages import in_pairs
from krag_eval.core.scoring.cutoffs import spelled

if TYPE_CHECKING:
    import pandas as pd

# From so many cutoffs on, what counts as found stands below the name of a metric.
_MANY = 4
# Passages of which one would be found word for word if they were copies.
_FEW = 5
# What a passage and a chunk that contradicts it differ in.
_KINDS = (N_("number"), N_("negation"), N_("text"))


def result_page(
    result: ResultFacts,
    averages: Collection[str] | None = None,
    intervals: pd.DataFrame | None = None,
) -> Page:
    """Show the averages, micro beside macro, or each with its interval.

    Args:
        result: The result.
        averages: The averages to show; those of ``result.shown`` if not given.
        intervals: The 95 % interval of each average, as ``confidence_intervals`` returns them, at
            all cutoffs or some.
    """
    values, names = result.to_dict(), result.row_names()
    keys = result.shown if averages is None else [one for one in names if one in averages]
    rows = in_pairs(keys) if intervals is None else {key: (key,) for key in keys}
    paired = len(rows) < len(keys)
    header = [_("metric")]
    table: list[list[object]] = []
    for name in rows:
        shown = names.get(name, name)
        table.append([tuple(shown.split(" ", 1)) if len(result.k) >= _MANY else shown])
    for k in map(spelled, result.k):
        header += [f"@{k}\nmacro", f"@{k}\nmicro"] if paired else [f"@{k}"]
        with_interval = intervals is not None and f"{keys[0]}@{k}" in intervals.index
        header += [_("{} % interval").format(95)] if with_interval else []
        for row, of_row in zip(table, rows.values(), strict=True):
            row += [values[f"{key}@{k}"] for key in of_row]
            row += [""] if paired and len(of_row) == 1 else []
            if intervals is not None and with_interval:
                bounds = intervals[["low", "high"]].reindex([f"{of_row[0]}@{k}"]).to_numpy()[0]
                row.append(numbers.span(*bounds.tolist()))
    title = ngettext(
        "EvaluationResult of {} query", "EvaluationResult of {} queries", result.n_queries
    )
    run = result.retrieval
    is_timed = run is not None and not math.isnan(run.latency.mean)
    asked = [_("latency: {}").format(result.latency)] if is_timed else []
    drafts = unreviewed_sentences(unreviewed_of({"": result}))
    return Page(
        title.format(result.n_queries),
        [Table.of_cells(header, table)],
        notes=[
            *asked,
            *result.summary.caveats(),
            *drafts,
            *told_contradicted(result),
            *told_rewritten(result),
        ],
        signature=result.signature,
        verdict=" ".join([result.summary(), *drafts]),
        advice=[*told_contradicted(result), *told_rewritten(result)],
    )


presents(ResultFacts, result_page)


def told_contradicted(result: ResultFacts) -> list[str]:
    """Say how many chunks contradict a passage that they nearly hold; nothing where none does."""
    told = ngettext(
        "{n} retrieved chunk is another text than a passage that it nearly holds, by a number, a "
        "negation or other words: see result.contradicted(), or krag-eval explain FILE "
        "--contradicted.",
        "{n} retrieved chunks are other texts than a passage that they nearly hold, by a number, "
        "a negation or other words: see result.contradicted(), or krag-eval explain FILE "
        "--contradicted.",
        result.n_contradicted,
    )
    return [told.format(n=result.n_contradicted)] if result.n_contradicted else []


def told_rewritten(result: ResultFacts) -> list[str]:
    """Say where nothing that is found stands verbatim, as of ground truth that was rewritten."""
    found = None if result.evidence is None else result.evidence.relevance
    if found is None or "guard=aligned" not in result.signature:
        return []
    n, is_verbatim = len(found.first_rank), found.pair_similarity.max(initial=0.0) == 1.0
    told = _(
        "None of the {n} passages that were found stands in a chunk word for word: the ground "
        "truth may be rewritten. Then try coverage(guard=numbers), which looks at numbers and "
        "negations alone, or a judge."
    )
    return [told.format(n=n)] if n >= _FEW and not is_verbatim else []
