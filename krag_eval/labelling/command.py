"""Labelled pairs: ``label`` makes a page to label on, ``agree`` compares two people's labels.

And ``calibrate`` finds at which threshold a matcher agrees best with them.
"""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from krag_eval.cli import options, output, reading
from krag_eval.core import Place, Refusal, _, called, option, page_of, whole

_COLUMNS = ("actual", "predicted", "relevant")


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
    from krag_eval.lab.calibration import calibrate as calibrated
    from krag_eval.lab.calibration_page import borderline
    from krag_eval.labelling.labels import is_of_a_page, labelled_rows, labels_in

    whole("n", n, 1)
    rows = labelled_rows(reading.source_of(file), _COLUMNS, encoding=encoding)
    of_page = is_of_a_page(rows)
    try:
        pairs = labels_in(rows, file).pairs if of_page else [row for _, row in rows]
        found = calibrated(matcher, pairs)
    except Refusal as error:
        if error.argument != "labelled_pairs":
            raise
        at = None if of_page else error.query
        raise error.at(Place(file) if at is None else rows[at][0]) from error
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


@options.command(
    "Make a page on which people label pairs.",
    "krag-eval label results.jsonl -k 5 -o page.html",
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

    from krag_eval.labelling.labels import OF_A_TABLE, pairs_given, to_label

    given = options.given(typed)
    alone = run is None and file != "-" and given.keys() <= {*OF_A_TABLE}
    pairs = pairs_given(file, **given) if alone else None
    source = pairs or reading.dataset_of(file, given, run)
    with nullcontext() if isinstance(source, list) else reading.placed(source):
        found = to_label(source, k=k, sample=sample, seed=seed)
    page, told = page_of(found), [] if "html" in outputs else [_("Name the page to write by -o.")]
    page = replace(page, sentences=[*page.sentences, *told], advice=[*page.advice, *told])
    output.emit(
        outputs,
        lambda: page,
        lambda: {name: getattr(found, name) for name in ("n_pairs", "n_questions", "page", "seed")},
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
    from krag_eval.labelling.labels import read_labels

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
            "n_open": {one.labeller: one.n_open for one in (ours, theirs)},
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
