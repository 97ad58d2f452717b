"""``krag-eval evaluate``: a file with one query per line."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from krag_eval.cli.options import (
    bundled,
    check_early,
    evaluation_options,
    field_options,
    floor_option,
    given,
    output_options,
)
from krag_eval.cli.output import (
    Outputs,
    ReportLanguage,
    check_floors_early,
    checked_language,
    print_result,
    print_table,
    printing_beside,
    pronounce,
)
from krag_eval.cli.reading import evaluated_file
from krag_eval.cli.shell import Verdict, warnings_as
from krag_eval.matching.base import MATCHER_NAMES
from krag_eval.scoring.cutoffs import unspelled

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult

__all__ = [
    "Streaming",
    "demo",
    "evaluate",
    "streaming_options",
]

#: A file of more bytes than this goes through in chunks, unless something needs all of it.
_LARGE = 2**28
_PARQUET = b"PAR1"

streaming_options = bundled(
    click.option(
        "--per-query",
        "per_query",
        metavar="OUT",
        help="Write one row per query as they come, as .parquet or .csv; a killed run goes on.",
    ),
    click.option(
        "--chunk-size",
        type=click.IntRange(min=1),
        metavar="N",
        help="Evaluate N queries at a time, with memory for those.  [default: 5000]",
    ),
    click.option(
        "--resume/--no-resume",
        default=None,
        help="Go on from the progress of a killed run with --per-query, or start anew.  "
        "[default: resume]",
    ),
)


class Streaming(NamedTuple):
    """What was asked for that concerns going through the input in chunks."""

    file: str
    per_query: str | None
    chunk_size: int | None
    resume: bool | None

    @property
    def is_asked_for(self) -> bool:
        """Whether an option says so, or the input cannot be read otherwise."""
        options = (self.per_query, self.chunk_size, self.resume)
        return any(option is not None for option in options) or _only_in_chunks(self.file)

    def wanted(self, need_rows: Mapping[str, bool]) -> bool:
        """Tell whether to go through the input in chunks.

        Args:
            need_rows: Option -> whether it was given, of those that need every query's row.

        Raises:
            ValueError: If there must be rows, and they are not to be written, or the input is of a
                kind that is read whole.
        """
        from krag_eval.datasets.streams import only_whole

        given = [option for option, is_given in need_rows.items() if is_given]
        if not self.is_asked_for:
            large = _size(self.file) > _LARGE
            return large and not given and only_whole(self.file) is None
        if self.file == "-":
            raise ValueError(
                "FILE: standard input can be read only once, so it is evaluated in memory; leave "
                "out --per-query, --chunk-size and --resume, or name a file."
            )
        if kind := only_whole(self.file):
            raise ValueError(
                f"{self.file}: {kind} is read whole, not in chunks; leave out --per-query, "
                "--chunk-size and --resume, or make JSON lines of it in Python: "
                f"load_dataset({self.file!r}).save('run.jsonl')."
            )
        if self.resume is not None and self.per_query is None:
            raise ValueError("--resume is about the progress of a run with --per-query; add it.")
        if given and self.per_query is None:
            raise ValueError(
                f"{given[0]} needs the values of every query, and this run keeps none; add "
                "--per-query OUT."
            )
        return True

    def evaluated(self, options: Mapping[str, Any]) -> EvaluationResult:
        """Evaluate the input in chunks."""
        from krag_eval.streaming import evaluate_file

        others = {name: value for name, value in given(options).items() if name != "cutoffs"}
        if self.chunk_size is not None:
            others["chunk_size"] = self.chunk_size
        return evaluate_file(
            self.file,
            [unspelled(one) for one in options["cutoffs"]],
            per_query=self.per_query,
            resume=self.resume is not False,
            **others,
        )


def _only_in_chunks(file: str) -> bool:
    """Tell whether this is a directory of files, or a Parquet file."""
    try:
        if os.path.isdir(file):
            return True
        if not stat.S_ISREG(os.stat(file).st_mode):
            return False  # looking into a pipe would take from it
        with Path(file).open("rb") as opened:
            return opened.read(len(_PARQUET)) == _PARQUET
    except (OSError, ValueError):
        return False  # the reader says what is wrong


def _size(file: str) -> int:
    try:
        seen = os.stat(file)
    except (OSError, ValueError):
        return 0
    return seen.st_size if stat.S_ISREG(seen.st_mode) else 0


@click.command(short_help="Evaluate the retrieved documents in a file.")
@click.argument("file")
@evaluation_options
@click.option(
    "--intervals", is_flag=True, help="Print the 95 % interval of each average, by bootstrap."
)
@floor_option
@field_options
@output_options
@streaming_options
def evaluate(
    file: str,
    intervals: bool,
    floors: tuple[str, ...],
    json_path: str | None,
    csv_path: str | None,
    plot_path: str | None,
    report_path: str | None,
    report_language: ReportLanguage | None,
    per_query: str | None,
    chunk_size: int | None,
    resume: bool | None,
    **options: Any,
) -> Verdict | None:
    """Evaluate the retrieved documents in FILE ('-' reads standard input).

    FILE is JSONL, plain or .gz: one JSON object per line, with "question" (optional), "actual"
    (list of what should be retrieved) and "predicted" (list of what was, best first). It may also
    be CSV, TSV or a JSON array (.csv, .tsv, .json), whose columns are known by their usual names
    too, a Parquet file with such columns, or a directory of JSONL or Parquet files.

    Parquet, directories and JSONL of more than 256 MB go through in chunks, with memory for one
    chunk at a time and the same numbers. CSV, TSV and JSON arrays are read whole.
    """
    outputs = Outputs.checked(
        json_path, csv_path, plot_path, report_path, per_query, sources=[file]
    )
    language = checked_language(report_language, report_path)
    check_early(options)
    check_floors_early(floors, options)
    streaming = Streaming(file, per_query, chunk_size, resume)
    need_rows = {"--intervals": intervals, "--csv": bool(csv_path), "--report": bool(report_path)}
    in_chunks = streaming.wanted(need_rows)
    with printing_beside(outputs), warnings_as("warning"):
        if in_chunks:
            source, result = file, streaming.evaluated(options)
        else:
            dataset, result = evaluated_file(file, options)
            source = dataset.source
        # A floor that turns out to be impossible is refused before anything is printed.
        report = result.check(floors) if floors else None
        bounds = result.confidence_intervals() if intervals else None
        print_result(result, source, bounds)
        outputs.write(result, language)
        return None if report is None else pronounce(report)


_OPENING = """\
A library in English and a bicycle rental in Korean: for every question, what a retriever should
have found and what it found. A document counts as found when its text is equal (--matcher text).
"""

_MATCHERS = {
    "text": "counts a document whose text equals the ground truth",
    "contains": "counts a document that has the ground truth in it, as a longer chunk does",
    "coverage": "counts a document that covers most of the ground truth, as a cut chunk may",
}

_CLOSING = """
Where to go next

  1. Write one JSON object per line into a file, say results.jsonl:
     {"question": "When?", "actual": ["At nine."], "predicted": ["At ten.", "At nine."]}
  2. Evaluate it, with a chart:
     krag-eval evaluate results.jsonl --matcher contains -k 1 -k 5 --plot chart.png
  3. Read what every number means: docs/metrics.md. All options: krag-eval evaluate --help"""


@click.command(short_help="Evaluate the data set that ships with the package.")
def demo() -> None:
    """Evaluate the small English and Korean data set that ships with the package."""
    from krag_eval.datasets import demo_dataset

    dataset = demo_dataset()
    with warnings_as("note"):
        result = dataset.evaluator(matcher="text").evaluate(k=[1, 3, 5])
        matched = {
            name: dataset.evaluator(matcher=name).evaluate(k=5).to_dict()
            for name in _MATCHERS
            if name in MATCHER_NAMES
        }
    click.echo(_OPENING)
    print_result(result, dataset.source)
    shown = ("macro_recall@5", "mrr@5", "ndcg@5")
    rows = {name: [metrics[key] for key in shown] for name, metrics in matched.items()}
    click.echo("\nThe same retrieved lists, matched in other ways:\n")
    print_table("matcher", shown, rows)
    for name in matched:
        click.echo(f"  {name:<9} {_MATCHERS[name]}")
    click.echo(_CLOSING)
