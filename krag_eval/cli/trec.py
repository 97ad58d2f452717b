"""``krag-eval trec``: judgements and runs in TREC's formats, under trec_eval's names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from krag_eval._language import _, ngettext
from krag_eval._options import option
from krag_eval.cli.options import Options, command, cutoffs_option, saving
from krag_eval.cli.output import (
    Forms,
    Outputs,
    Target,
    markdown_of,
    print_signature,
    print_table,
    rows_of,
    write_csv,
    write_files,
    write_json,
)
from krag_eval.cli.reading import names_of_files
from krag_eval.cli.shell import printable, warnings_as
from krag_eval.errors import InvalidInput, muted
from krag_eval.scoring.cutoffs import Budget, Cutoff, spelled

if TYPE_CHECKING:
    from krag_eval.datasets.trec import Numbers
    from krag_eval.results.result import EvaluationResult

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
_READING: Options = {
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


@command(
    "Evaluate TREC runs; the numbers are trec_eval's.",
    "krag-eval trec judgements.qrels bm25.run -k 10",
)
def trec(
    qrels: str,
    runs: tuple[str, ...],
    k: tuple[Cutoff, ...] = cutoffs_option(
        (5, 10, 100),
        "Cut off after the first K documents. Several: -k 5,10; what needs no cutoff is always "
        "shown.",
    ),
    reading: Any = _READING,
    unjudged: str = option(
        "Documents that QRELS does not judge: wrong, or as if not retrieved (trec_eval -J).",
        choices=("wrong", "leave_out"),
        default="wrong",
    ),
    outputs: Any = saving(
        json="Save the result of a single run.", csv="Save one row per run, topic and cutoff."
    ),
) -> None:
    """Evaluate each RUN against the judgements in QRELS ('-' reads standard input).

    Both are in TREC's formats, plain or .gz: "topic 0 document grade" and "topic Q0 document rank
    score tag". Documents are ordered by score, then by id, both descending; ranks are ignored.
    The numbers are trec_eval's, under its names and ours.
    """
    from krag_eval.datasets.trec import QRELS

    _check_names(runs, outputs)
    cutoffs = [*_checked_cutoffs(k), None]
    judged = QRELS.read(_source(qrels))
    results = {
        name: _evaluated(judged, run, cutoffs, reading, unjudged)
        for name, run in zip(names_of_files(runs), runs, strict=True)
    }
    if outputs.format == "table":
        _print_runs(results, judged.name)
    _write(outputs, results)


def _check_names(runs: Sequence[str], outputs: Outputs) -> None:
    if len(set(runs)) < len(runs):
        raise InvalidInput("runs", f": each run is named once, got {', '.join(runs)}")
    if "json" in outputs and len(runs) > 1:
        raise InvalidInput(
            "json",
            f": holds the result of one run, got {len(runs)} runs",
            "save each by a command of its own, or all of them by --csv",
        )


def _checked_cutoffs(k: Sequence[Cutoff]) -> list[int]:
    for one in k:
        if isinstance(one, Budget):
            problem = f": {one} is a budget, and TREC's files name documents without their texts"
            raise InvalidInput("k", problem, "cut off after a number of documents")
    return [one for one in k if isinstance(one, int)]


def _source(name: str) -> Any:
    return sys.stdin if name == "-" else name


def _evaluated(
    qrels: Numbers, name: str, cutoffs: Sequence[Cutoff], reading: Mapping[str, Any], unjudged: str
) -> EvaluationResult:
    from krag_eval.datasets.trec import RUN, judged_dataset
    from krag_eval.results.rows import RowsInMemory

    run = RUN.read(_source(name))
    options: dict[str, Any] = {} if unjudged == "wrong" else {"unjudged": unjudged}
    dataset = judged_dataset(qrels, run, judged=bool(options), **reading)
    with warnings_as(name=printable(name)):
        result = dataset.evaluator(**options).evaluate(cutoffs)
    if reading["relevance_level"] > 1:
        # trec_eval's nDCG disregards the level: every positive grade gains.
        with muted():  # said already
            graded = judged_dataset(
                qrels, run, judged=bool(options), **{**reading, "relevance_level": 1}
            )
            ndcg = graded.evaluator(**options).evaluate(cutoffs, metrics=["ndcg"]).tables
        tables = {k: {**table, "ndcg": ndcg[k]["ndcg"]} for k, table in result.tables.items()}
        rows = RowsInMemory(result.labels, tables, result.counted, result.rows.digests)
        result = replace(result, rows=rows)
    said = {name: str(value) for name, value in reading.items() if value != _UNSAID[name]}
    return replace(result, settings={**result.settings, **said})


def _forms(results: Mapping[str, EvaluationResult]) -> Forms:
    import pandas as pd

    several = list(results.values())
    rows = pd.DataFrame(_rows(several), columns=["trec_eval", "krag_eval", *results], dtype=object)
    return {
        "json": lambda: {
            "runs": {
                name: dict(zip(rows["trec_eval"], rows[name], strict=True)) for name in results
            },
            "signature": dict(zip(results, _signatures(several), strict=True)),
        },
        "csv": lambda: rows,
        "markdown": lambda: markdown_of(rows, results),
    }


def _write(outputs: Outputs, results: Mapping[str, EvaluationResult]) -> None:
    write_files(
        outputs,
        partial(_forms, results),
        {
            "json": (partial(write_json, next(iter(results.values()))), _("the result")),
            "csv": (
                lambda target: _write_csv(results, target),
                _("one row per run, query and cutoff"),
            ),
        },
    )


def _write_csv(results: Mapping[str, EvaluationResult], target: Target) -> None:
    import pandas as pd

    rows = pd.concat([rows_of(result).assign(run=run) for run, result in results.items()])
    write_csv(rows[["run", *(name for name in rows.columns if name != "run")]], target)


def _print_runs(results: Mapping[str, EvaluationResult], judged: str) -> None:
    click.echo(_counted(results, printable(judged)) + "\n")
    header = ["trec_eval", "krag_eval", *(printable(name, _LONGEST_RUN) for name in results)]
    print_table(header, _rows(list(results.values())), names=2)
    for signature in dict.fromkeys(_signatures(list(results.values()))):
        print_signature(signature)


def _signatures(results: Sequence[EvaluationResult]) -> Iterator[str]:
    """Yield what the numbers depend on; of runs of different depth, without it."""
    depths = {result.settings.get("retrieved") for result in results}
    for result in results:
        settings = dict(result.settings)
        if len(depths) > 1:
            settings.pop("retrieved", None)
        yield replace(result, settings=settings).signature


def _counted(results: Mapping[str, EvaluationResult], judged: str) -> str:
    numbers = sorted({result.n_queries for result in results.values()})
    n = str(numbers[0]) if len(numbers) == 1 else _("{} to {}").format(numbers[0], numbers[-1])
    told = ngettext("{n} topic of {qrels}", "{n} topics of {qrels}", numbers[-1])
    return told.format(n=n, qrels=judged)


def _rows(results: Sequence[EvaluationResult]) -> list[list[Any]]:
    """Return the measures, by trec_eval's name and by ours, with their numbers in each run."""
    return [*_count_rows(results), *_measure_rows(results)]


def _count_rows(results: Sequence[EvaluationResult]) -> Iterator[list[Any]]:
    yield ["num_q", "queries", *(result.n_queries for result in results)]
    for measure, column in _COUNTS.items():
        totals = [int(result.tables[None][column].sum()) for result in results]
        yield [measure, f"sum of {column}", *totals]


def _measure_rows(results: Sequence[EvaluationResult]) -> Iterator[list[Any]]:
    for measure, key in _UNCUT.items():
        yield [measure, f"{key}@all", *_values(results, key, None)]
    for measure, key in _CUT.items():
        for k in results[0].k:
            if k is not None:
                yield [f"{measure}_{k}", f"{key}@{spelled(k)}", *_values(results, key, k)]


def _values(results: Sequence[EvaluationResult], key: str, k: Cutoff) -> list[float]:
    return [result.averages(k)[key] for result in results]
