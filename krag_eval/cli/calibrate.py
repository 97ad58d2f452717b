"""Labelled pairs: ``label`` makes a page to label on, ``agree`` compares two people's labels.

And ``calibrate`` finds at which threshold a matcher agrees best with them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from krag_eval._language import _
from krag_eval._options import option
from krag_eval.cli import options, output, reading
from krag_eval.errors import InvalidInput, Place, Refusal, called, whole
from krag_eval.presenting import page_of

if TYPE_CHECKING:
    from krag_eval.datasets.table import Records

_COLUMNS = ("actual", "predicted", "relevant")
# How a label may be typed into a cell.
_LABELS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@options.command(
    "Find the threshold that agrees best with labelled pairs.",
    "krag-eval calibrate pairs.csv --matcher coverage --plot curve.png",
)
def calibrate(
    file: str,
    matcher: str = options.DIAGNOSIS["matcher"],
    n: int = option("List the N nearest pairs.", "N", flags=("-n",), default=10),
    encoding: str = options.ENCODING,
    outputs: Any = options.saving(
        csv="Save the decision at every threshold.",
        plot="Draw the decision by threshold, as .png, .svg or .pdf.",
    ),
) -> None:
    """Find the threshold at which a matcher agrees best with the labelled pairs in FILE.

    FILE is JSONL ('-' reads standard input), a JSON array, CSV or TSV. Each row has a document that
    should be retrieved, "actual", one that was, "predicted", and whether a person takes it for
    "relevant": true or false. Some dozens of pairs are a start, near misses above all. What a page
    of 'krag-eval label' made will do.
    """
    from krag_eval.calibration import calibrate as calibrated
    from krag_eval.presenting.calibration import borderline
    from krag_eval.statistics.judged import labelled_rows

    whole("n", n, 1)
    labelled = [] if file == "-" else labelled_rows(file)
    table = None if labelled else _table(file, encoding)
    try:
        found = calibrated(matcher, file if table is None else _rows(table))
    except Refusal as error:
        if error.argument != "labelled_pairs":
            raise
        rows = [] if table is None else table.rows
        where = Place(file) if error.query is None or not rows else rows[error.query][0]
        raise error.at(where) from error
    near, page = found.borderline(n).reset_index(), page_of(found)
    options = f"--matcher {shlex.quote(matcher)} --threshold {found.best_threshold:.4f}"
    typed = f"krag-eval evaluate results.jsonl {options}"
    output.emit(
        outputs,
        lambda: replace(page, tables=[borderline(found, n)], notes=[typed], advice=[typed]),
        lambda: {
            "best_threshold": found.best_threshold,
            "interval": list(found.interval),
            "gap": found.gap and list(found.gap),
            "level": found.level,
            **found.decision(found.best_threshold),
            "n_pairs": len(found.relevant),
            "borderline": output.records_of(near),
            "matcher": found.matcher,
        },
        lambda: near,
        csv=(lambda: found.curve, _("the decision at every threshold")),
        plot=(found.plot, _("the decision by threshold")),
    )


def _table(file: str, encoding: str) -> Records:
    """Read the columns of labelled pairs."""
    from krag_eval.datasets.formats import File, format_of, rows_in
    from krag_eval.datasets.table import Records

    kind = None if file == "-" else format_of(file)
    read = File.of(reading.source_of(file), wanted=_COLUMNS, encoding=encoding)
    table = Records.of(rows_in(read, "json" if kind is None else kind.name), read.name)
    missing = [one for one in _COLUMNS if one not in table.names]
    if missing:
        problem = f"has no column {missing[0]!r}, got {', '.join(map(repr, table.names))}"
        raise Place(table.name).error(problem, f"name the columns {', '.join(_COLUMNS)}")
    return table


def _rows(table: Records) -> list[Mapping[str, Any]]:
    """Return the pairs with their labels; a field that a line lacks is missing."""
    rows: list[Mapping[str, Any]] = []
    for place, row in table.rows:
        label = row.get("relevant")
        known = _LABELS.get(label.strip().lower()) if isinstance(label, str) else label
        if "relevant" in row and known is None:
            problem = f"must be true or false, got {label!r}"
            raise InvalidInput("relevant", problem, "label the pair").at(place)
        rows.append({**row, "relevant": known} if "relevant" in row else row)
    return rows


@options.command(
    "Make a page on which people label pairs.",
    "krag-eval label golden.jsonl run.jsonl -o page.html -k 5 --sample 50",
    reads=("corpus",),
)
def label(
    file: str,
    run: str | None,
    k: int | None = option(
        "Label the first K documents of each question.  [default: 5]", "K", flags=("-k",)
    ),
    sample: int | None = option("Label N questions, drawn at random.  [default: all]", "N"),
    seed: int = option("Seed of the sample, and of the order.", "N", default=0),
    typed: Any = options.READING,
    outputs: Any = options.saving(html="Write the page, as .html or .htm."),
) -> None:
    """Make a page on which people say which retrieved texts are relevant, and which are not.

    FILE and RUN are read as 'krag-eval evaluate' reads them. FILE may also hold pairs: what
    'krag-eval compare --to-judge' wrote, rows of "actual" and "predicted" as 'krag-eval calibrate'
    reads them, or what such a page made. The page needs no network, hides ranks and systems, and
    makes a file that 'krag-eval calibrate', 'krag-eval agree' and Python read.
    """
    import pandas as pd

    from krag_eval.datasets.labels import pairs_given, to_label

    given = options.given(typed)
    alone = run is None and not given and file != "-"
    source = (pairs_given(file) if alone else None) or reading.dataset_of(file, given, run)
    with nullcontext() if isinstance(source, list) else reading.placed(source):
        found = to_label(source, k=k, sample=sample, seed=seed)
    output.emit(
        outputs,
        lambda: page_of(found),
        lambda: {
            "n_pairs": found.n_asked,
            "n_questions": found.n_questions,
            "page": found.page,
            "seed": found.seed,
        },
        lambda: pd.DataFrame(found.rows),
        html=(found.report, _("a page to label on")),
    )


@options.command(
    "Say how far two people label alike.", "krag-eval agree anna.jsonl ben.jsonl -o settle.html"
)
def agree(
    first: str,
    second: str,
    outputs: Any = options.saving(html="Write a page to settle what they disagree on, as .html."),
) -> None:
    """Say how far two people agree, FIRST and SECOND being files that one labelling page made.

    It prints Cohen's kappa with its interval, and what they disagree on. The page asks a third
    person, or both together, about that alone, and what one of them left open; its file holds all
    labels.
    """
    from krag_eval.datasets.labels import read_labels

    ours, theirs = read_labels(first), read_labels(second)
    with called("second", "other"):
        found = ours.agreement(theirs)
    rows, is_known = found.disagreements, found.kappa == found.kappa
    output.emit(
        outputs,
        lambda: page_of(found),
        lambda: {
            "labellers": [found.labeller, found.matcher],
            "n_pairs": len(found.relevant),
            "n_open": dict(found.n_open),
            "kappa": found.kappa if is_known else None,
            "interval": list(found.interval) if is_known else None,
            "level": found.level,
            "share": found.share,
            "counts": found.counts._asdict(),
            "disagreements": output.records_of(rows),
        },
        lambda: rows,
        html=(ours.to_settle(theirs).report, _("a page to label on")),
    )
