"""``krag-eval`` on one file of queries, ``evaluate`` and ``audit``; ``demo``, our own data."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from krag_eval._doors import page_of
from krag_eval._language import N_, _
from krag_eval._options import option
from krag_eval.cli.options import (
    CELLS,
    CHUNKS_HELP,
    EVALUATION,
    FLOORS,
    Chosen,
    Options,
    checked_plan,
    chosen_averages,
    command,
    given,
    metric_option,
    metrics_of,
    saving,
    settled,
)
from krag_eval.cli.output import (
    Forms,
    Outputs,
    forms_of_audit,
    forms_of_result,
    print_audit,
    print_page,
    print_result,
    print_table,
    pronounce,
    rows_of,
    write_csv,
    write_files,
    write_json,
    write_plot,
    write_table,
    write_text,
)
from krag_eval.cli.reading import audited_file, evaluated_file
from krag_eval.cli.shell import Verdict, warnings_as
from krag_eval.errors import InvalidInput, whole
from krag_eval.scoring.cutoffs import Cutoff, spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.gates import GateReport

#: A file of more bytes than this is evaluated in chunks, unless something needs all of it.
_LARGE = 2**28
_PARQUET = b"PAR1"
_LEAVE_OUT = "leave out --per-query, --chunk-size and --resume"


#: Settings of an audit.
_AUDITING: Options = {
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


class _InChunks(NamedTuple):
    """The options of an evaluation in chunks; ``None`` for those that were not given."""

    per_query: str | None
    chunk_size: int | None
    resume: bool | None

    def wanted(self, file: str, need_rows: Sequence[str]) -> bool:
        """Decide whether to evaluate a file in chunks.

        Args:
            file: Its name.
            need_rows: The options given that need the values of every query.

        Raises:
            InvalidInput: If it was asked for, or is the only way, and is not possible.
        """
        only_in_chunks, size = _looked_at(file)
        if self == (None, None, None) and not only_in_chunks:
            return size > _LARGE and not need_rows
        if file == "-":
            problem = ": standard input can be read only once, so it is evaluated in memory"
            raise InvalidInput("file", problem, f"{_LEAVE_OUT}, or name a file")
        if self.resume is not None and self.per_query is None:
            problem = "is about the progress of a run with --per-query"
            raise InvalidInput("resume", problem, "add it")
        if need_rows and self.per_query is None:
            problem = "needs the values of every query, and this run keeps none"
            raise InvalidInput(need_rows[0], problem, "add --per-query OUT")
        return True

    def settings(self) -> dict[str, Any]:
        """Return the options that were given."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def _looked_at(file: str) -> tuple[bool, int]:
    """Return whether it is a directory of files or a Parquet file, and else its size."""
    try:
        seen = os.stat(file)
        if stat.S_ISDIR(seen.st_mode):
            return True, 0
        if not stat.S_ISREG(seen.st_mode):
            return False, 0  # opening a pipe would take from it
        with Path(file).open("rb") as opened:
            return opened.read(len(_PARQUET)) == _PARQUET, seen.st_size
    except (OSError, ValueError):
        return False, 0  # the reader says what is wrong


@command(
    "Evaluate the retrieved documents in a file.",
    "krag-eval evaluate results.jsonl --matcher coverage -k 1,5,10",
)
def evaluate(
    file: str,
    metric: tuple[str, ...] = metric_option(
        "Compute and print this alone: a metric (recall), one of its averages (macro_recall), or "
        "either at a cutoff (ndcg@10), which then needs no -k.",
        "NAME",
    ),
    options: Any = EVALUATION,
    intervals: bool = option("Print the 95 % interval of each average."),
    tag: tuple[str, ...] = option(
        "Print averages within slices of the queries too: by a column, or by items, "
        "question_length, golden_length or language. Repeat it for several.",
        "TAG",
        flags=("--by",),
    ),
    floors: tuple[str, ...] = FLOORS,
    verbose: bool = option("Print the whole signature in a terminal, too."),
    texts: bool = option("Save the documents' texts, ids and metadata in --json too."),
    outputs: Any = saving(
        json="Save the result; Python reads it back.",
        csv="Save one row per query and cutoff.",
        plot="Draw the metrics at the last cutoff (--budget comes after -k), as .png, .svg or "
        ".pdf.",
        report=True,
        per_query="Write one row per query as they come, as .parquet or .csv. The same command "
        "continues a run that was killed.",
    ),
    chunk_size: int | None = option(
        "Evaluate N queries at a time, with memory for those.  [default: 5000]",
        "N",
        typed=lambda typed: None if typed is None else whole("chunk_size", typed, 1),
    ),
    resume: bool | None = option(
        "Continue from the progress of a killed run with --per-query, or start anew.  "
        "[default: resume]",
        flags=("--resume/--no-resume",),
    ),
) -> Verdict | None:
    """Evaluate the retrieved documents in FILE ('-' reads standard input).

    FILE is JSONL, plain or .gz: one JSON object per line, with "question" (optional), "actual"
    (list of what should be retrieved) and "predicted" (list of what was, best first). It may also
    be CSV, TSV or a JSON array (.csv, .tsv, .json), a Parquet file, a file of a format that an
    installed package brings, or a directory of files of one format. The names that RAGAS,
    LlamaIndex, deepeval, LangSmith and krag give to these fields are known too, and the Korean
    ones (질문, 정답, 검색결과).

    Parquet, directories and files of more than 256 MB are evaluated in chunks, with memory for one
    chunk at a time and the same numbers; of a JSON array, all is held.
    """
    if tag and outputs.format == "csv":
        problem = ": a table of averages has no room for slices"
        raise InvalidInput("format", problem, "choose json or markdown, or leave out --by")
    k, settings = settled(options["k"], given(options))
    chosen = chosen_averages(metric, k, settings) if metric else None
    k, averages = (k, None) if chosen is None else (chosen.k, chosen.averages)
    metrics = _checked_floors(floors, k, settings, chosen)
    if texts and "json" not in outputs:
        raise InvalidInput("texts", "is about --json, and none was asked for", "add --json OUT")
    need_rows = [name for name, one in (("intervals", intervals), ("tag", tag)) if one]
    need_rows += [name for name in ("csv", "report") if name in outputs]
    chunks = _InChunks(outputs.named.get("per_query"), chunk_size, resume)
    in_chunks = chunks.wanted(file, need_rows)
    for typed in {"cells", "delimiter"} & settings.keys() if in_chunks else ():
        if any(one is not None for one in chunks):
            raise InvalidInput(
                typed, "is for tables that are read whole, not in chunks", _LEAVE_OUT
            )
        in_chunks = False
    if texts and in_chunks:
        raise InvalidInput("texts", ": a run in chunks keeps no texts", "leave it out")
    if in_chunks:
        from krag_eval.streaming import evaluate_file

        source = file
        result = evaluate_file(file, k, metrics=metrics, **chunks.settings(), **settings)
    else:
        dataset, result = evaluated_file(file, k, settings, metrics)
        source = dataset.source
    # A floor or a tag that turns out to be impossible is refused before anything is printed.
    verdict = result.check(floors) if floors else None
    sliced = [result.by(one, metrics=averages) for one in dict.fromkeys(tag)]
    bounds = result.confidence_intervals() if intervals else None
    if outputs.format == "table":
        print_result(result, source, bounds, averages, whole=verbose)
        for slices in sliced:
            click.echo()
            print_page(page_of(slices))
    told = partial(forms_of_result, result, averages, bounds, sliced)
    _write(outputs, result, tag, told, texts=texts, gate=verdict)
    return None if verdict is None else pronounce(verdict)


def _checked_floors(
    floors: Sequence[str],
    k: Sequence[Cutoff],
    settings: Mapping[str, Any],
    chosen: Chosen | None = None,
) -> tuple[str, ...] | None:
    """Refuse settings and floors that no file allows; return the metrics to compute."""
    if not floors:
        metrics = None if chosen is None else chosen.metrics
        checked_plan(k, settings, metrics)
        return metrics
    from krag_eval.statistics.gates import checked_floors, parse_floor

    averages = [parse_floor(one)[0] for one in floors]
    metrics = metrics_of("floors", averages, settings)
    if chosen is not None:
        metrics = chosen.with_metrics_of(one.rpartition("@")[0] for one in averages)
    plan = checked_plan(k, settings, metrics)
    skips = plan.plan.no_ground_truth == "skip"
    checked_floors(floors, plan.nothing().summary, rejection_rate=skips)
    return metrics


def _write(
    outputs: Outputs,
    result: EvaluationResult,
    tags: Sequence[str],
    told: Callable[[], Forms],
    *,
    texts: bool,
    gate: GateReport | None,
) -> None:
    last = result.k[-1]

    def draw(ax: Axes) -> None:
        from krag_eval.plotting import metric_bars

        metric_bars(result, last, ax=ax)

    write_files(
        outputs,
        told,
        {
            # Written while the queries were evaluated.
            "per_query": (lambda target: None, _("one row per query")),
            "json": (partial(write_json, result, texts=texts, gate=gate), _("the result")),
            "csv": (
                lambda target: write_csv(rows_of(result), target),
                _("one row per query and cutoff"),
            ),
            "plot": (partial(write_plot, draw), _("the metrics @{}").format(spelled(last))),
            "report": (
                lambda target: result.report(target, language=outputs.language, by=tags),
                _("an HTML report"),
            ),
        },
    )


@command(
    "Look for what is wrong with the ground truth in a file.",
    "krag-eval audit results.jsonl --index chunks.jsonl",
)
def audit(
    file: str,
    index: str | None = option(CHUNKS_HELP, "CHUNKS"),
    fail_on: tuple[str, ...] = option(
        "Exit with 1 if any of these is found, as in dangling,twins. Repeat it for several.",
        "NAMES",
    ),
    settings: Any = _AUDITING,
    question_field: str | None = option("The field with the question.", "NAME"),
    actual_field: str | None = option("The field with the ground truth.", "NAME"),
    reading: Any = CELLS,
    outputs: Any = saving(
        ("index",),
        json="Save the audit; Python reads it back.",
        csv="Save one row per place that was found.",
    ),
) -> Verdict | None:
    """Look for what is wrong with the ground truth in FILE ('-' reads standard input).

    FILE holds questions and the documents that should be retrieved, as JSONL, CSV, TSV, a JSON
    array or Parquet, whose columns are known by their usual names. What was retrieved does not
    matter. Queries and chunks are counted from 0. Nothing is changed.
    """
    from krag_eval.datasets.audit import as_text, checked_names

    if fail_on:
        checked_names(fail_on, () if index else ("an index",))
    fields = {"question": question_field, "actual": actual_field, **given(reading)}
    dataset, found = audited_file(
        file, index, {name: one for name, one in fields.items() if one}, settings
    )
    # What could not be looked for is refused before anything is printed.
    report = found.check(fail_on) if fail_on else None
    if outputs.format == "table":
        print_audit(found, dataset.source)
    write_files(
        outputs,
        partial(forms_of_audit, found),
        {
            "json": (lambda target: write_text(as_text(found), target), _("the audit")),
            "csv": (
                # Where a finding is about a query, the cell of the item is empty.
                lambda target: write_table(found.table, target),
                _("one row per place that was found"),
            ),
        },
    )
    return None if report is None else pronounce(report)


# Matchers that the demonstration shows, from strict to lenient.
_SHOWN = {
    "text": N_("counts a document whose text equals the ground truth"),
    "contains": N_("counts a document that has the ground truth in it, as a longer chunk does"),
    "coverage": N_("counts a document that covers most of the ground truth, as a cut chunk may"),
}


@command("Evaluate the data set that ships with the package.")
def demo() -> None:
    """Evaluate the small English and Korean data set that ships with the package."""
    from krag_eval.datasets import demo_dataset

    dataset = demo_dataset()
    with warnings_as(N_("note")):
        result = dataset.evaluator(matcher="text").evaluate(k=[1, 3, 5])
        matched = {name: dataset.evaluator(matcher=name).evaluate(k=5).to_dict() for name in _SHOWN}
    click.echo(
        _("""\
A library in English and a bicycle rental in Korean: for every question, what a retriever should
have found and what it found. A document counts as found when its text is equal (--matcher text).
""")
    )
    print_result(result, _("krag_eval's demo data"))
    shown = ("macro_recall@5", "mrr@5", "ndcg@5")
    rows = [[name, *(metrics[key] for key in shown)] for name, metrics in matched.items()]
    click.echo("\n" + _("The same retrieved lists, matched in other ways:") + "\n")
    print_table([_("matcher"), *shown], rows)
    for name in matched:
        click.echo(f"  {name:<9} {_(_SHOWN[name])}")
    click.echo(
        _("""
Where to go next

  1. Write one JSON object per line into a file, say results.jsonl:
     {"question": "When?", "actual": ["At nine."], "predicted": ["At ten.", "At nine."]}
  2. Evaluate it, with a chart:
     krag-eval evaluate results.jsonl --matcher coverage -k 1,5 --plot chart.png
  3. Read what every number means: docs/metrics.md. All options: krag-eval evaluate --help""")
    )
