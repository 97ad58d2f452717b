"""``krag-eval evaluate``: a file with one query per line."""

from __future__ import annotations

from typing import Any

import click

from krag_eval.cli.options import (
    check_early,
    evaluation_options,
    field_options,
    floor_option,
    output_options,
)
from krag_eval.cli.outputs import Outputs, ReportLanguage, checked_language, printing_beside
from krag_eval.cli.printing import print_result
from krag_eval.cli.reading import evaluated_file
from krag_eval.cli.shell import warnings_as
from krag_eval.cli.streaming import Streaming, streaming_options
from krag_eval.cli.verdicts import Verdict, check_floors_early, pronounce

__all__ = ["evaluate"]


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
