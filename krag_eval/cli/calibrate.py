"""``krag-eval calibrate``: at which threshold a matcher agrees best with labelled pairs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from krag_eval._language import _
from krag_eval._options import option
from krag_eval.cli import options, output, reading
from krag_eval.errors import InvalidInput, Place, Refusal, whole
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
    "relevant": true or false. Some dozens of pairs are a start, near misses above all.
    """
    from krag_eval.calibration import calibrate as calibrated
    from krag_eval.presenting.calibration import borderline

    whole("n", n, 1)
    table = _table(file, encoding)
    try:
        found = calibrated(matcher, _rows(table))
    except Refusal as error:
        if error.argument != "labelled_pairs":
            raise
        where = Place(table.name) if error.query is None else table.rows[error.query][0]
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
