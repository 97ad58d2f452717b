"""``krag-eval calibrate``: at which threshold a matcher agrees best with labelled pairs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from krag_eval._doors import page_of
from krag_eval._language import N_, _
from krag_eval.cli.help import command, example, option
from krag_eval.cli.options import (
    encoding_option,
    format_option,
    matcher_option,
    output_option,
)
from krag_eval.cli.output import (
    Forms,
    checked_outputs,
    formatted,
    print_page,
    printing_beside,
    records_of,
    write_files,
    write_plot,
    write_table,
)
from krag_eval.cli.shell import warnings_as
from krag_eval.errors import InvalidInput, Place, Refusal, whole

if TYPE_CHECKING:
    from krag_eval.calibration import Calibration
    from krag_eval.datasets.table import Columns

_COLUMNS = ("actual", "predicted", "relevant")
_TABLES = {".csv": ",", ".tsv": "\t"}
# How a label may be typed into a cell.
_LABELS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@command(
    short_help=N_("Find the threshold that agrees best with labelled pairs."),
    epilog=example("krag-eval calibrate pairs.csv --matcher coverage --plot curve.png"),
)
@click.argument("file")
@matcher_option("coverage")
@option(
    "-n", metavar="N", type=int, default=10, show_default=True, help=N_("List the N nearest pairs.")
)
@encoding_option
@format_option
@output_option("--csv", N_("Save the decision at every threshold."), streamed=True)
@output_option("--plot", N_("Draw the decision by threshold, as .png, .svg or .pdf."))
def calibrate(
    file: str,
    matcher: str,
    n: int,
    encoding: str,
    format: str,
    csv: str | None,
    plot: str | None,
) -> None:
    """Find the threshold at which a matcher agrees best with the labelled pairs in FILE.

    FILE is JSONL ('-' reads standard input), a JSON array, CSV or TSV. Each row has a document that
    should be retrieved, "actual", one that was, "predicted", and whether a person takes it for
    "relevant": true or false. Some dozens of pairs are a start, near misses above all.
    """
    from krag_eval.calibration import calibrate as calibrated
    from krag_eval.presenting.calibration import borderline

    whole("n", n, 1)
    outputs = checked_outputs({"format": format, "csv": csv, "plot": plot}, [file])
    with printing_beside(outputs), warnings_as():
        table = _table(file, encoding)
        try:
            found = calibrated(matcher, _rows(table))
        except Refusal as error:
            if error.argument != "labelled_pairs":
                raise
            where = Place(table.name) if error.query is None else table.place(error.query)
            raise error.at(where) from error
        if format == "table":
            print_page(replace(page_of(found), tables=[borderline(found, n)]))
            options = f"--matcher {shlex.quote(matcher)} --threshold {found.best_threshold:.4f}"
            click.echo(f"\nkrag-eval evaluate results.jsonl {options}")
        write_files(
            outputs,
            {
                "format": formatted(format, partial(_forms, found, n)),
                "csv": (partial(write_table, found.curve), _("the decision at every threshold")),
                "plot": (partial(write_plot, found.plot), _("the decision by threshold")),
            },
        )


def _table(file: str, encoding: str) -> Columns:
    """Read the columns of labelled pairs."""
    from krag_eval._reading import within_memory
    from krag_eval.datasets.tabular import check_encoding, delimited_columns, json_columns

    check_encoding(encoding)
    source: Any = sys.stdin if file == "-" else file
    name = "standard input" if file == "-" else file
    ending = file.lower().removesuffix(".gz")[-4:]
    with within_memory(name):
        if ending in _TABLES:
            table = delimited_columns(
                source, name, wanted=_COLUMNS, delimiter=_TABLES[ending], encoding=encoding
            )
        else:
            table = json_columns(source, name, wanted=_COLUMNS, encoding=encoding)
    missing = [one for one in _COLUMNS if one not in table.columns]
    if missing:
        problem = f"has no column {missing[0]!r}, got {', '.join(map(repr, table.names))}"
        raise Place(table.name).error(problem, f"name the columns {', '.join(_COLUMNS)}")
    return table


def _rows(table: Columns) -> list[Mapping[str, Any]]:
    """Return the pairs with their labels; a field that a line lacks is missing."""
    rows: list[Mapping[str, Any]] = []
    for place, row in table.rows():
        label = row.get("relevant")
        known = _LABELS.get(label.strip().lower()) if isinstance(label, str) else label
        if "relevant" in row and known is None:
            raise InvalidInput(
                "relevant", f"must be true or false, got {label!r}", "label the pair"
            ).at(place)
        rows.append({**row, "relevant": known} if "relevant" in row else row)
    return rows


def _forms(found: Calibration, n: int) -> Forms:
    near = found.borderline(n).reset_index()
    return {
        "json": lambda: {
            "best_threshold": found.best_threshold,
            "interval": list(found.interval),
            "gap": found.gap and list(found.gap),
            "level": found.level,
            **found.decision(found.best_threshold),
            "n_pairs": len(found.relevant),
            "borderline": records_of(near),
            "matcher": found.matcher,
        },
        "csv": lambda: near,
        "markdown": lambda: near,
    }
