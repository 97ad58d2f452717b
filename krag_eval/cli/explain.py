"""What went wrong in one file of queries: ``misses``, ``explain``, ``report``, ``diagnose``.

And ``history``: how results moved from run to run.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from krag_eval.cli import options, output, reading
from krag_eval.core import (
    LANGUAGES,
    Advice,
    Cutoff,
    InvalidInput,
    Language,
    _,
    option,
    page_of,
    spelled,
    whole,
)

if TYPE_CHECKING:
    from krag_eval.diagnosis.diagnosis import ForeignIndex
    from krag_eval.result import EvaluationResult


METADATA: Any = option(
    "Show this of each document's metadata beside its id. Repeat it for several.  "
    "[default: source]",
    "NAME",
)
ONE_CUTOFF: Any = options.one_cutoff_option(
    "Look at the first K documents.  [default: 10; of a saved result, its deepest cutoff]"
)


@options.command(
    "List the queries that lost most.", "krag-eval misses results.jsonl --matcher coverage -k 5"
)
def misses(
    file: str,
    run: str | None,
    k: tuple[Cutoff, ...] = ONE_CUTOFF,
    n: int = option("List N at most.", "N", flags=("-n",), default=20),
    typed: Any = options.EXPLANATION | options.TEXTS,
    outputs: Any = options.saving(),
) -> None:
    """List the queries in FILE whose ground truth is not all found, those that lost most first.

    FILE is JSONL, as 'krag-eval evaluate' reads it ('-' reads standard input), or a result that it
    saved, whose name ends in .json. 'krag-eval explain FILE QUERY' shows what became of one, by its
    id or position in the list.
    """
    from krag_eval.cli.missed_page import misses_page

    whole("n", n, 1)
    result, at = reading.result_of(file, k, typed, run=run)
    missed, cutoff = result.misses(at), spelled(result.evaluated_cutoff(at))
    whole_numbers = ("covered", "ground_truth", "rank", "contradicted_by")
    known = {name: "Int64" for name in whole_numbers if name in missed}
    rows = missed[:n].reset_index().astype(known)
    if len(missed) > n and outputs.format != "table":
        click.echo(_("and {} more; -n {} lists all").format(len(missed) - n, len(missed)), err=True)
    width = output.terminal_width() if outputs.format == "table" else _WHOLE
    output.emit(
        outputs,
        lambda: misses_page(missed, n, result.labels, cutoff, width),
        lambda: {
            "k": cutoff,
            "n_misses": len(missed),
            "misses": output.records_of(rows),
            "signature": result.signature,
        },
        lambda: rows,
    )


@options.command(
    "Show what became of one query.", "krag-eval explain results.jsonl 0 --matcher coverage"
)
def explain(
    file: str,
    run: str | None,
    query: str | None,
    asked: str | None = option(
        "The query, if not behind FILE or RUN.", "QUERY", flags=("--query",)
    ),
    k: tuple[Cutoff, ...] = ONE_CUTOFF,
    metadata: tuple[str, ...] = METADATA,
    full: bool = option("Show all documents and items, with their whole texts."),
    contradicted: bool = option(
        "List the chunks of all queries that nearly hold a passage and say another number or the "
        "opposite, instead of one query."
    ),
    typed: Any = options.EXPLANATION | options.TEXTS,
    outputs: Any = options.saving(),
) -> None:
    """Show what every document of one query matched, and how every item was found or missed.

    FILE is JSONL, as 'krag-eval evaluate' reads it ('-' reads standard input), or a result that it
    saved, whose name ends in .json. QUERY is its question, its id, or its position, from 0.
    """
    is_named = asked is not None or contradicted
    # One word behind FILE is the query, unless it is a file, behind which the query was forgotten.
    is_run = os.path.isfile(run or "") or (is_named and (run == "-" or os.path.exists(run or "")))
    if run and query is None and not is_run:
        run, query = None, run
    if (query is not None) + (asked is not None) + contradicted != 1:
        got = "none" if query is None and asked is None else "two" if query and asked else "both"
        problem = f"must be one question, or its position, or --contradicted for all, got {got}"
        files = shlex.join(filter(None, [file, run]))
        raise InvalidInput("query", problem, f"'krag-eval misses {files}' lists them")
    result, at = reading.result_of(file, k, typed, run=run)
    if contradicted:
        _list_contradicted(result, outputs)
        return
    from krag_eval.core.documents import ids_among  # needs numpy, which other commands do without

    named = _named(asked or query or "", result.labels, ids_among(result.tags) or ())
    try:
        told = result.explain(k=at, metadata=metadata or None, full=full, **named)
    except InvalidInput as error:
        if error.argument not in ("query", "position"):
            raise
        # In words for one who typed QUERY, be it a position or not.
        fix = "" if isinstance(error.fix, Advice) else error.fix
        fix = fix or "name it by its id or position, as 'krag-eval misses FILE' lists it"
        raise InvalidInput("query", error.problem, fix) from None
    if outputs.format == "table":
        click.echo(told.to_text(output.terminal_width()))
        return
    documents, items = told.predicted.reset_index(), told.ground_truth.reset_index()
    output.emit(
        outputs,
        lambda: page_of(told),
        lambda: {
            "query": told.query,
            **({} if told.id is None else {"id": told.id}),
            "position": told.position,
            "k": spelled(told.k),
            "status": told.status,
            "metrics": told.metrics,
            "documents": output.records_of(documents),
            "items": output.records_of(items),
            "failure": told.failure,
            "signature": result.signature,
        },
        lambda: documents.map(
            lambda one: ", ".join(map(str, one)) if isinstance(one, tuple) else one
        ),
    )


def _list_contradicted(result: EvaluationResult, outputs: output.Outputs) -> None:
    """Print the pairs that would match if their documents said the same."""
    from krag_eval.cli.missed_page import contradicted_page

    found = result.contradicted()
    rows = found.reset_index()
    # As coverage signs itself, alone or joined with others; packages may bring matchers like it.
    signs = ("guard=aligned", "guard=numbers", "numbers=aligned", "polarity=en")
    is_looked_for = len(found) > 0 or any(sign in result.signature for sign in signs)
    output.emit(
        outputs,
        lambda: replace(
            contradicted_page(found, is_looked_for=is_looked_for),
            signature=output.signed(result.signature),
        ),
        lambda: {
            "n_contradicted": len(found),
            "contradicted": output.records_of(rows),
            "signature": result.signature,
        },
        lambda: rows,
    )


# Columns of a page that clips no text.
_WHOLE = 10_000
# No position has more digits.
_MOST_DIGITS = 15


def _named(query: str, labels: Sequence[str | int], ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return how Python names a query: by its label or id if there is such a one, or its position.

    >>> _named("3", ["2024", "3"]), _named("3", [7, 3]), _named("3", ["When?", "3 or 4?"])
    ({'query': '3'}, {'query': 3}, {'position': 3})
    """
    if (
        query in labels
        or query in ids
        or not (query.isascii() and query.isdigit() and len(query) <= _MOST_DIGITS)
    ):
        return {"query": query}
    return {"query": int(query)} if int(query) in labels else {"position": int(query)}


@options.command(
    "Write an HTML page about a result.",
    "krag-eval report results.jsonl --matcher coverage -o report.html",
)
def report(
    file: str,
    run: str | None,
    page: str = option(
        "The page, as .html or .htm.", "OUT", flags=("-o", "--output"), required=True
    ),
    k: tuple[Cutoff, ...] = options.one_cutoff_option(
        "Show pictures and queries within the first K documents.  [default: the deepest cutoff; "
        "of a file of queries, 10]"
    ),
    language: Language | None = option(
        "Language of the page.  [default: that of --lang]", choices=LANGUAGES
    ),
    title: str | None = option("The heading, if another is wanted.", "TEXT"),
    by: tuple[str, ...] = option(
        "Show averages within slices of the queries too, as 'krag-eval evaluate --by' prints "
        "them. Repeat it for several.",
        "TAG",
    ),
    index: str | None = option(
        lambda: _("Show where what is missing was lost.") + " " + _(options.CHUNKS_HELP), "CHUNKS"
    ),
    foreign_index: ForeignIndex = options.FOREIGN_INDEX,
    metadata: tuple[str, ...] = METADATA,
    typed: Any = options.EXPLANATION,
) -> None:
    """Write what 'krag-eval evaluate' prints of FILE, and every query explained, as one HTML page.

    FILE is JSONL, as 'krag-eval evaluate' reads it ('-' reads standard input), or a result that it
    saved, whose name ends in .json: with --texts the page has the texts too. With --index the page
    says where misses were lost, and the matcher is coverage if none is named.
    """
    sources = [("file", file), *([("index", index)] if index else [])]
    outputs = output.checked_outputs({"page": page}, sources)
    chunks = None if index is None else cache(partial(reading.chunks_of, index))
    result, at = reading.result_of(file, k, typed, chunks, run=run)
    diagnosis = None
    if chunks is not None:
        diagnosis = reading.diagnosis_of(
            result, file, chunks(), typed, k=at, foreign_index=foreign_index
        )
    how: dict[str, Any] = {"by": by, "metadata": metadata or None, "title": title}
    write = partial(result.report, k=at, language=language, diagnosis=diagnosis, **how)
    output.write_files(outputs, {"page": (write, _("an HTML report"))})
