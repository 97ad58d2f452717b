"""``krag-eval`` on one file of queries, ``evaluate`` and ``audit``; ``demo`` and ``schema``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from krag_eval.cli import options, output, reading, verdicts
from krag_eval.cli.shell import Verdict, printable, warnings_as
from krag_eval.core import (
    N_,
    DatasetError,
    InvalidInput,
    Page,
    Table,
    _,
    called,
    ngettext,
    option,
    page_of,
    spelled,
    whole,
)
from krag_eval.core.errors import sentence

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.comparison.gates import GateReport
    from krag_eval.datasets import Dataset
    from krag_eval.diagnosis.diagnosis import Diagnosis, ForeignIndex
    from krag_eval.result import EvaluationResult

#: A file of more bytes than this is evaluated in chunks, unless something needs all of it.
_LARGE = 2**28
_PARQUET = b"PAR1"
_EVERYTHING = ("all",)
#: Rows of averages that are printed on request alone, so that a table is read at a glance.
_ON_REQUEST = ("f1", "map", "mean_rank", "found_rate", "token_precision", "token_iou", "redundancy")
# What goes without saying in a terminal, where a result is to fit: what the table shows, what a
# warning says, and defaults.
_MATCHERS_BY_DEFAULT = (
    "(min_run=5,tokenizer=auto(words,letters),guard=aligned",
    "(fold_whitespace=yes",
)
_SHOWN_BESIDE = ("k=", "queries=", "retrieved<=", "krag_eval=")
_BY_DEFAULT = ("threshold=-", "criteria=all", "averaging=both", "conventions=default", "grades=-",
               "no_ground_truth=error")  # fmt: skip


def _is_in_chunks(
    files: Sequence[str],
    chunks: Collection[str],
    need_rows: Sequence[str],
    settings: Collection[str],
) -> bool:
    """Decide whether to evaluate a file, or two that are joined, in chunks.

    Args:
        files: Their names.
        chunks: The options of a run in chunks that were options.given.
        need_rows: Those that need the values of every query.
        settings: How to evaluate and read them.

    Raises:
        InvalidInput: If it was asked for, or is the only way, and is not possible.
    """
    only_in_chunks, size = _looked_at(files)
    read_whole = sorted({"cells", "corpus", "delimiter", "score_cutoff", "separator"} & {*settings})
    if not chunks and (read_whole or not only_in_chunks):
        is_long = size > _LARGE and not need_rows and not read_whole
        return is_long and (len(files) == 1 or _hold_rows(files))
    fix = "leave out --per-query, --chunk-size and --resume"
    if "-" in files:
        problem = ": standard input can be read only once, so it is evaluated in memory"
        raise InvalidInput("file", problem, f"{fix}, or name a file")
    if "resume" in chunks and "per_query" not in chunks:
        problem = "is about the progress of a run with --per-query"
        raise InvalidInput("resume", problem, "add it")
    if need_rows and "per_query" not in chunks:
        problem = "needs the values of every query, and this run keeps none"
        raise InvalidInput(need_rows[0], problem, "add --per-query OUT")
    if read_whole:
        raise InvalidInput(read_whole[0], "is for files that are read whole, not in chunks", fix)
    return True


def _looked_at(files: Sequence[str]) -> tuple[bool, int]:
    """Return whether files can only be read in chunks, and how large they are.

    Directories are; a Parquet file alone is, too, as its size does not tell what it holds.
    """
    from krag_eval.loading.shapes import folder_of

    size = 0
    for file in files:
        try:
            seen = os.stat(file)
            if stat.S_ISDIR(seen.st_mode) and not (len(files) > 1 and folder_of(file)):
                return True, 0
            if not stat.S_ISREG(seen.st_mode):
                return False, 0  # opening a pipe would take from it
            with Path(file).open("rb") as opened:
                if len(files) == 1 and opened.read(len(_PARQUET)) == _PARQUET:
                    return True, 0
            size += seen.st_size
        except (OSError, ValueError):
            return False, 0  # the reader says what is wrong
    return False, size


def _hold_rows(files: Sequence[str]) -> bool:
    """Tell whether files are read row by row, as all but those of some tools are."""
    from krag_eval.loading.reading import MAX_BYTES
    from krag_eval.loading.shapes import judgements_of
    from krag_eval.loading.vocabularies import TABLE, shape_of
    from krag_eval.streaming.queries import QueryFiles

    try:
        return all(
            not judgements_of(one, MAX_BYTES)
            and shape_of(QueryFiles.found(one).begin().names) is TABLE
            for one in files
        )
    except DatasetError:
        return False  # the reader says what is wrong


@options.command(
    "Evaluate the retrieved documents in a file.",
    "krag-eval evaluate results.jsonl --matcher coverage -k 1,5,10",
)
def evaluate(
    file: str,
    run: str | None,
    metric: tuple[str, ...] = options.metric_option(
        "Compute and print this alone: a metric (recall), one of its averages (macro_recall), or "
        "either at a cutoff (ndcg@10), which then needs no -k; 'all' prints all that are computed.",
        "NAME",
    ),
    typed: Any = options.EVALUATION,
    intervals: bool = option("Print the 95 % interval of each average."),
    tag: tuple[str, ...] = option(
        "Print averages within slices of the queries too: by a column, or by items, "
        "question_length, golden_length or language. Repeat it for several.",
        "TAG",
        flags=("--by",),
    ),
    floors: tuple[str, ...] = options.FLOORS,
    allowed: Any = options.ALLOWED,
    foreign_index: ForeignIndex = options.FOREIGN_INDEX,
    verbose: bool = option("Print the whole signature in a terminal, too."),
    texts: bool = option("Save the documents' texts, ids and metadata in --json too."),
    outputs: Any = options.saving(
        verdicts.FORMATS,
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
    """Evaluate the retrieved documents in FILE ('-' reads standard input), or in RUN.

    FILE is JSONL, plain or .gz: one JSON object per line, with "question" (optional), "actual"
    (list of what should be retrieved) and "predicted" (list of what was, best first). It may also
    be CSV, TSV or a JSON array (.csv, .tsv, .json), a Parquet file, a file of a format that an
    installed package brings, or a directory of files of one format. The names that RAGAS,
    LlamaIndex, deepeval, LangSmith and krag give to these fields are known too, and the Korean
    ones (질문, 정답, 검색결과).

    Where FILE holds the ground truth alone, RUN is what was retrieved, in a file likewise: rows
    are joined by "id" where all have one, or by question, whatever their order.

    With --index, what lost each ground truth that is missed is printed too (index, splitter,
    ranking or search), the matcher is coverage if none is named, and averages have intervals.

    Files of more than 256 MB together, a Parquet file alone and directories are evaluated in
    chunks, with memory for one chunk at a time and the same numbers; of a JSON array, all is held.
    RUN is kept in a temporary file meanwhile.
    """
    from krag_eval.comparison.gates import checked_floors, parse_floor

    if tag and outputs.format == "csv":
        problem = ": a table of averages has no room for slices"
        raise InvalidInput("format", problem, "choose json or markdown, or leave out --by")
    if texts and "json" not in outputs:
        raise InvalidInput("texts", "is about --json, and none was asked for", "add --json OUT")
    _check_alone(metric, foreign_index, typed)
    for name, value in {} if floors else allowed.items():
        if value:
            raise InvalidInput(name, "is about --fail-under, and none was given", "leave it out")
    asked = options.Evaluation.of(typed)
    settings = asked.settings
    if settings.get("score_cutoff") == "auto":
        left = {name: one for name, one in settings.items() if name != "score_cutoff"}
        asked = replace(asked, settings=left)
    asked = asked.only(metric) if metric and metric != _EVERYTHING else asked
    asked = asked.computing("floors", [parse_floor(one)[0] for one in floors])
    # What no file allows is refused before a long one is read.
    plan = asked.plan()
    skips = plan.plan.no_ground_truth == "skip"
    checked_floors(floors, plan.nothing().summary, rejection_rate=skips)
    wanted = {
        "intervals": intervals,
        "tag": tag,
        **dict.fromkeys(outputs.keys() & {"csv", "report"}, True),
    }
    chunks = {"per_query": outputs.get("per_query"), "chunk_size": chunk_size, "resume": resume}
    chunks = {name: one for name, one in chunks.items() if one is not None}
    two = {name: one for name, one in settings.items() if name in reading.TWO_FILES}
    is_alone = run is None and not two
    names = [file] if is_alone else [*reading.files_of(file, run, two)]
    if _is_in_chunks(names, chunks, [one for one in wanted if wanted[one]], settings):
        if texts:
            raise InvalidInput("texts", ": a run in chunks keeps no texts", "leave it out")
        made = _in_chunks(names, asked, chunks, is_told="golden" in two)
    else:
        if "corpus" in settings:
            output.check_not_read(outputs, [settings["corpus"]])
        made = _in_memory(file, run, asked, settings, foreign_index)
    result, found = made.result, made.diagnosis
    asked.check_rejections(result.n_queries - result.summary.n_counted)
    last = result.k[-1]
    # A floor or a tag that turns out to be impossible is refused before anything is printed.
    verdict = result.check(floors, **allowed) if floors else None
    sliced = [result.by(one, metrics=asked.averages) for one in dict.fromkeys(tag)]
    values = {
        name: value
        for name, value in result.to_dict().items()
        if asked.averages is None or name.rpartition("@")[0] in asked.averages
    }
    shown = [*result.row_names()] if metric == _EVERYTHING else asked.averages
    bounds = result.confidence_intervals() if intervals else None
    if found and not intervals:  # of what is shown, at the last cutoff
        first = shown or [averages[0] for averages in _at_a_glance(result).values()]
        drawn = [f"{one}@{spelled(last)}" for one in first if one in result.summary.averages(last)]
        bounds = result.confidence_intervals(metrics=drawn) if drawn else None
    beside = [*map(page_of, sliced), *made.beside, *([] if found is None else [page_of(found)])]
    output.emit(
        outputs,
        lambda: _page(result, shown, bounds, beside, made.source, verdict, whole=verbose),
        lambda: {
            "n_queries": result.n_queries,
            "n_counted": result.summary.n_counted,
            **({"n_failed": result.n_failed} if result.n_failed else {}),
            **({"missing": result.missing._asdict()} if result.missing else {}),
            "n_contradicted": result.n_contradicted,
            "metrics": values,
            **_intervals(values, bounds),
            **(
                {"slices": {one.tag: output.records_of(one.table) for one in sliced}}
                if sliced
                else {}
            ),
            **made.facts,
            "signature": result.signature,
        },
        lambda: _rows(values, bounds),
        verdicts.formats(verdict, file, "--fail-under"),
        # Written while the queries were evaluated.
        per_query=(lambda target: None, _("one row per query")),
        json=(partial(output.write_json, result, texts=texts, gate=verdict), _("the result")),
        csv=(partial(output.rows_of, result), _("one row per query and cutoff")),
        plot=(partial(result.plot, last), _("the metrics @{}").format(spelled(last))),
        report=partial(result.report, by=tag, diagnosis=found),
    )
    return None if verdict is None else verdicts.pronounce(verdict)


def _check_alone(
    metric: Sequence[str], foreign_index: ForeignIndex, typed: Mapping[str, Any]
) -> None:
    """Refuse options that would have no effect, or another than was meant."""
    if "all" in metric and tuple(metric) != _EVERYTHING:
        raise InvalidInput("metric", ": 'all' prints all that are computed", "name it alone")
    if foreign_index == "allow" and typed.get("corpus") is None:
        raise InvalidInput("foreign_index", "is about --index, and none was given", "add it")


class _Made(NamedTuple):
    """What a file was evaluated to.

    Attributes:
        source: What to call the file.
        result: Its result.
        beside: Pages to show below its averages.
        facts: What they say, for a JSON object.
        diagnosis: Where what is missing was lost, if chunks of an index were named.
    """

    source: str
    result: EvaluationResult
    beside: Sequence[Page] = ()
    facts: Mapping[str, Any] = MappingProxyType({})
    diagnosis: Diagnosis | None = None


def _in_chunks(
    names: Sequence[str], asked: options.Evaluation, chunks: Mapping[str, Any], *, is_told: bool
) -> _Made:
    """Evaluate a file, or ground truth and a run, in chunks.

    Args:
        names: The files.
        asked: How.
        chunks: How to divide it, and where to write its rows.
        is_told: Whether an option said which file is the ground truth.
    """
    from krag_eval.loading.vocabularies import N_SAID
    from krag_eval.streaming import evaluate_file

    how = {name: one for name, one in asked.settings.items() if name != "golden"}
    source, *behind = names
    if behind:
        how["retrieved"] = behind[0]
        if not is_told:
            reading.check_golden(source, behind[0], asked)
    with called(asked.argument, "metrics"):
        result = evaluate_file(source, k=asked.k, metrics=asked.metrics, **chunks, **how)
    # How the columns of two files were read comes first.
    reading.say(source, result.notes[N_SAID if behind else 0 :])
    return _Made(source, result)


def _in_memory(
    file: str,
    run: str | None,
    asked: options.Evaluation,
    settings: Mapping[str, Any],
    foreign_index: ForeignIndex,
) -> _Made:
    """Evaluate files at once, by the scores of documents and with a diagnosis if that was asked."""
    index = settings.get("corpus")
    if index == "-":  # it can be read only once
        asked = asked.with_settings(corpus=reading.chunks_of(index))
    dataset, result = reading.evaluated_file(file, asked, run=run)
    beside: list[Page] = []
    facts: dict[str, Any] = {}
    if "score_cutoff" in settings:
        cut: dict[str, Any] = {}
        if "score_cutoff" not in asked.settings:
            chosen, result = reading.cut_by_score(dataset, result, asked)
            beside.append(page_of(chosen))
            held_out = dict(zip(("recall", "abstention"), chosen.held_out, strict=True))
            cut["held_out"] = held_out
        cut |= _dropped(dataset, result)
        told = _("Score cutoff {cutoff}: {n_dropped} retrieved documents are worse, and dropped.")
        beside.append(Page(sentences=[told.format(**cut)]))
        facts["score_cutoff"] = cut
    diagnosis = None
    if index is not None:
        chunks = asked.settings["corpus"] if index == "-" else reading.chunks_of(index)
        diagnosis = result.diagnose(chunks, foreign_index=foreign_index)
        facts["diagnosis"] = output.diagnosed(diagnosis)
    return _Made(dataset.source, result, beside, facts, diagnosis)


def _dropped(dataset: Dataset, result: EvaluationResult) -> dict[str, Any]:
    """Return the score cutoff, and how many documents it drops."""
    kept = 0 if result.evidence is None else int(result.evidence.relevance.n_retrieved.sum())
    n = sum(map(len, dataset.predicted or ())) - kept
    return {"cutoff": float(result.settings["score_cutoff"]), "n_dropped": n}


def _page(
    result: EvaluationResult,
    averages: Collection[str] | None,
    intervals: pd.DataFrame | None,
    sliced: Sequence[Page],
    source: str,
    gate: GateReport | None = None,
    *,
    whole: bool,
) -> Page:
    """Show how many queries count, a table of averages by cutoff, slices, and the signature."""
    from krag_eval.core.display.result import result_page
    from krag_eval.core.scoring.averages import in_pairs

    beside: list[str] = []
    if averages is None:
        rows = _at_a_glance(result)
        # With the intervals of some, the first average of each row alone.
        few = intervals is not None and len(intervals) < len(result.to_dict())
        averages = [key for keys in rows.values() for key in keys[: 1 if few else None]]
        if left_out := [name for name in in_pairs(result.shown) if name not in rows]:
            told = _("Also computed: {names}; --metric all prints them.")
            beside = [told.format(names=", ".join(left_out))]
    counted = result.summary.n_counted
    title = ngettext("{n} query from {source}", "{n} queries from {source}", counted)
    title = title.format(n=counted, source=printable(source))
    if skipped := result.n_queries - counted:
        title += _(" ({} more skipped: no ground truth)").format(skipped)
    page = result_page(result, averages, intervals)
    tables, notes = [*page.tables], [*beside, *page.notes]
    for one in sliced:
        tables += [replace(table, title=one.title) for table in one.tables]
        notes += one.told
    seen = bool(sys.stdout and sys.stdout.isatty())  # it may be closed
    signature = result.signature if whole or not seen else _in_short(result.signature)
    worst = page.verdict if gate is None else page_of(gate).concluded["verdict"]
    said = [sentence(one, "") for one in (worst, *(each.verdict for each in sliced)) if one]
    advice = [*page.advice, *(line for one in sliced for line in one.advice)]
    return Page(
        title, tables, notes=notes, signature=output.signed(signature),
        verdict=" ".join(said), advice=advice,
    )  # fmt: skip


def _at_a_glance(result: EvaluationResult) -> dict[str, tuple[str, ...]]:
    """Return the rows that are shown without being asked for, and the averages of each."""
    from krag_eval.core.scoring.averages import in_pairs

    return {name: one for name, one in in_pairs(result.shown).items() if name not in _ON_REQUEST}


def _in_short(signature: str) -> str:
    """Leave out of a signature what goes without saying."""
    for known in _MATCHERS_BY_DEFAULT:
        signature = signature.replace(f"{known})", "").replace(f"{known},", "(")
    parts = signature.split(" | ")
    told = [one for one in parts if not one.startswith(_SHOWN_BESIDE) and one not in _BY_DEFAULT]
    return " | ".join([*told, "…"])


def _rows(values: Mapping[str, float], intervals: pd.DataFrame | None) -> pd.DataFrame:
    import pandas as pd

    cells = [[*name.rsplit("@", 1), value] for name, value in values.items()]
    rows = pd.DataFrame(cells, columns=["metric", "k", "value"])
    if intervals is None:
        return rows
    bounds = intervals[["low", "high"]].reindex([*values]).reset_index(drop=True)
    return pd.concat([rows, bounds], axis=1)


def _intervals(values: Mapping[str, float], intervals: pd.DataFrame | None) -> dict[str, Any]:
    if intervals is None:
        return {}
    known = intervals[["low", "high"]].reindex([*values]).dropna()
    pairs = zip(known.index, known.to_numpy().tolist(), strict=True)
    return {"intervals": dict(pairs)}


# Matchers that the demonstration shows, from strict to lenient.
_SHOWN = {
    "text": N_("counts a document whose text equals the ground truth"),
    "contains": N_("counts a document that has the ground truth in it, as a longer chunk does"),
    "coverage": N_("counts a document that covers most of the ground truth, as a cut chunk may"),
}


@options.command("Evaluate the data set that ships with the package.")
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
    output.show(_page(result, None, None, [], _("krag_eval's demo data"), whole=True))
    shown = ("macro_recall@5", "mrr@5", "ndcg@5")
    rows = [[name, *(metrics[key] for key in shown)] for name, metrics in matched.items()]
    title = "\n" + _("The same retrieved lists, matched in other ways:")
    output.show(Page(title, [Table.of_cells([_("matcher"), *shown], rows)]))
    click.echo()
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


@options.command(
    "Print a JSON Schema, of files or of what commands print.", "krag-eval schema golden"
)
def schema(kind: str) -> None:
    """Print the JSON Schema (2020-12) of a line of a golden set, or of what a command prints.

    KIND is golden or run, for programs that write these files, or a command with --format json,
    as evaluate, for those that read what it prints. docs/contract.md says more.
    """
    click.echo(files("krag_eval").joinpath("data", f"{kind}.schema.json").read_bytes(), nl=False)
