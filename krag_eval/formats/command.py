"""``krag-eval trec``: judgements and runs in TREC's formats, under trec_eval's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from krag_eval.cli import options, output, reading
from krag_eval.cli.shell import printable, warnings_as
from krag_eval.core import (
    Budget,
    Cutoff,
    InvalidInput,
    Page,
    Table,
    _,
    muted,
    ngettext,
    option,
    spelled,
)

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.formats.trec import Numbers
    from krag_eval.result import EvaluationResult

# trec_eval's measure -> our key, under Conventions.trec() with partial hits; first what is counted
# and averaged over all retrieved documents, then what is cut off.
_COUNTS = {"num_ret": "retrieved", "num_rel": "ground_truth", "num_rel_ret": "covered"}
_UNCUT = {
    "map": "map",
    "recip_rank": "mrr",
    "set_P": "macro_precision",
    "set_recall": "macro_recall",
    "set_F": "macro_f1",
    "ndcg": "ndcg",
}
_CUT = {
    "P": "macro_precision",
    "recall": "macro_recall",
    "success": "hit_rate",
    "map_cut": "map",
    "ndcg_cut": "ndcg",
}
# The default of each option that belongs in the signature when it was changed.
_UNSAID = {"missing": "zero", "relevance_level": 1, "scores": "single"}
# Of a run's name, at most its beginning and end are printed.
_LONGEST_RUN = 40


#: How judgements are read.
_READING: options.Options = {
    "missing": option(
        "Topics of QRELS that a run lacks: count them as 0 (trec_eval -c), or leave them out.",
        choices=("zero", "skip"),
        default="zero",
    ),
    "relevance_level": option(
        "Grade from which a document is relevant (trec_eval -l); nDCG uses all grades.",
        "L",
        kind=int,
        default=1,
    ),
    "scores": option(
        "Precision in which scores are compared: single (trec_eval up to 9) or double (10).",
        choices=("single", "double"),
        default="single",
    ),
}


@options.command(
    "Evaluate TREC runs; the numbers are trec_eval's.",
    "krag-eval trec judgements.qrels bm25.run -k 10",
)
def trec(
    qrels: str,
    runs: tuple[str, ...],
    k: tuple[Cutoff, ...] = options.cutoffs_option(
        (5, 10, 100),
        "Cut off after the first K documents. Several: -k 5,10; what needs no cutoff is always "
        "shown.",
    ),
    how: Any = _READING,
    unjudged: str = option(
        "Documents that QRELS does not judge: wrong, or as if not retrieved (trec_eval -J).",
        choices=("wrong", "leave_out"),
        default="wrong",
    ),
    outputs: Any = options.saving(
        json="Save the result of a single run.", csv="Save one row per run, topic and cutoff."
    ),
) -> None:
    """Evaluate each RUN against the judgements in QRELS ('-' reads standard input).

    Both are in TREC's formats, plain or .gz: "topic 0 document grade" and "topic Q0 document rank
    score tag". Documents are ordered by score, then by id, both descending; ranks are ignored.
    The numbers are trec_eval's, under its names and ours.
    """
    import pandas as pd

    from krag_eval.formats.trec import QRELS

    if len(set(runs)) < len(runs):
        raise InvalidInput("runs", f": each run is named once, got {', '.join(runs)}")
    if "json" in outputs and len(runs) > 1:
        problem = f": holds the result of one run, got {len(runs)} runs"
        raise InvalidInput("json", problem, "save each by a command of its own, or all by --csv")
    for one in k:
        if isinstance(one, Budget):
            problem = f": {one} is a budget, and TREC's files name documents without their texts"
            raise InvalidInput("k", problem, "cut off after a number of documents")
    judged = QRELS.read(reading.source_of(qrels))
    cutoffs = [*(one for one in k if one is not None), None]
    named = zip(reading.names_of_files(runs), runs, strict=True)
    results = {name: _evaluated(judged, run, cutoffs, how, unjudged) for name, run in named}
    several = [*results.values()]
    cells = [*_cells(several)]
    header = ["trec_eval", "krag_eval", *results]
    rows = pd.DataFrame(cells, columns=header, dtype=object)
    signatures = dict(zip(results, _signatures(several), strict=True))
    signature, *others = map(output.signed, dict.fromkeys(signatures.values()))
    output.emit(
        outputs,
        lambda: Page(
            _counted(several, printable(judged.name)),
            [Table.of_cells([printable(one, _LONGEST_RUN) for one in header], cells, names=2)],
            signature=signature,
            other_signatures=others,
        ),
        lambda: {
            "runs": rows.set_index("trec_eval")[[*results]].to_dict(),
            "signature": signatures,
        },
        lambda: rows,
        json=(partial(output.write_json, several[0]), _("the result")),
        csv=(partial(_rows_of, results), _("one row per run, query and cutoff")),
    )


def _evaluated(
    qrels: Numbers, name: str, cutoffs: Sequence[Cutoff], how: Mapping[str, Any], unjudged: str
) -> EvaluationResult:
    from krag_eval.core import RowsInMemory
    from krag_eval.datasets import with_evaluator
    from krag_eval.formats.trec import RUN, judged_dataset

    run = RUN.read(reading.source_of(name))
    judging: dict[str, Any] = {} if unjudged == "wrong" else {"unjudged": unjudged}
    dataset = with_evaluator(judged_dataset(qrels, run, judged=bool(judging), **how))
    with warnings_as(name=printable(name)):
        result = dataset.evaluator(**judging).evaluate(cutoffs)
    if how["relevance_level"] > 1:
        # trec_eval's nDCG disregards the level: every positive grade gains.
        with muted():  # said already
            all_grades = {**how, "relevance_level": 1}
            graded = with_evaluator(judged_dataset(qrels, run, judged=bool(judging), **all_grades))
            ndcg = graded.evaluator(**judging).evaluate(cutoffs, metrics=["ndcg"]).tables
        tables = {k: {**table, "ndcg": ndcg[k]["ndcg"]} for k, table in result.tables.items()}
        rows = RowsInMemory(result.labels, tables, result.counted, result.rows.digests)
        result = replace(result, rows=rows)
    said = {name: str(value) for name, value in how.items() if value != _UNSAID[name]}
    # What is missing in the run says so itself.
    said = {name: value for name, value in said.items() if name not in result.settings}
    return replace(result, settings={**result.settings, **said})


def _rows_of(results: Mapping[str, EvaluationResult]) -> pd.DataFrame:
    import pandas as pd

    rows = pd.concat([output.rows_of(result).assign(run=run) for run, result in results.items()])
    return rows[["run", *(name for name in rows.columns if name != "run")]]


def _signatures(results: Sequence[EvaluationResult]) -> Iterator[str]:
    """Yield what the numbers depend on; of runs of different depth, without it."""
    depths = {result.settings.get("retrieved") for result in results}
    for result in results:
        settings = dict(result.settings)
        if len(depths) > 1:
            settings.pop("retrieved", None)
        yield replace(result, settings=settings).signature


def _counted(results: Sequence[EvaluationResult], judged: str) -> str:
    numbers = sorted({result.n_queries for result in results})
    n = str(numbers[0]) if len(numbers) == 1 else _("{} to {}").format(numbers[0], numbers[-1])
    told = ngettext("{n} topic of {qrels}", "{n} topics of {qrels}", numbers[-1])
    return told.format(n=n, qrels=judged)


def _cells(results: Sequence[EvaluationResult]) -> Iterator[list[Any]]:
    """Yield the names of each measure, and what it is of each result."""
    yield ["num_q", "queries", *(result.n_queries for result in results)]
    for measure, column in _COUNTS.items():
        totals = [int(result.tables[None][column].sum()) for result in results]
        yield [measure, f"sum of {column}", *totals]
    named: list[tuple[str, str, Cutoff]] = [(name, key, None) for name, key in _UNCUT.items()]
    cut = [k for k in results[0].k if k is not None]
    named += [(f"{name}_{k}", key, k) for name, key in _CUT.items() for k in cut]
    for measure, key, k in named:
        yield [measure, f"{key}@{spelled(k)}", *(result.averages(k)[key] for result in results)]
