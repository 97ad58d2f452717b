"""What a command prints, and the files it writes: checked first, written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from krag_eval._io import check_apart, replacing
from krag_eval._language import Language, _, ngettext, pgettext
from krag_eval.cli.help import padded
from krag_eval.cli.shell import Verdict, printable
from krag_eval.errors import InvalidInput, Refusal, warn
from krag_eval.presenting import Table, numbers, page_of
from krag_eval.scoring.cutoffs import spelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.datasets.audit import Audit
    from krag_eval.presenting import Page
    from krag_eval.results.diagnosis import Diagnosis
    from krag_eval.results.history import HistoryReport
    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.gates import GateReport
    from krag_eval.statistics.slices import Slices

#: Text whose name has no prescribed ending, so that '-' may be standard output.
STREAMED = ("json", "csv", "markdown", "latex", "format")
# Files whose kind follows from the ending of their name; plots have theirs from plotting.
_ENDINGS = {
    "report": (".html", ".htm"),
    "page": (".html", ".htm"),
    "per_query": (".parquet", ".csv"),
}
# The progress of a run is kept beside its output.
_PROGRESS = {"per_query": ".partial"}


class StandardOutput:
    """Standard output as the place of one output; everything else is printed elsewhere."""

    def __init__(self) -> None:
        self._stream = sys.stdout

    def write(self, text: str) -> None:
        """Write all of it, in UTF-8 whatever the terminal can show."""
        self._stream.flush()
        self._stream.buffer.write(text.encode("utf-8"))
        self._stream.buffer.flush()

    def descriptor(self) -> int | None:
        """Return what the operating system calls it; ``None`` if it is not a file of its own."""
        return _descriptor(self._stream)


Target: TypeAlias = "Path | StandardOutput"


class Outputs(dict[str, Target]):
    """Where to write what was asked for, by the name of its option in Python.

    Attributes:
        format: How to print what is printed.
        language: The language of the report; ``None`` for that of everything else.
        named: The files as they were named.
    """

    format: str = "table"
    language: Language | None = None
    named: Mapping[str, str] = MappingProxyType({})


#: What ``--format`` prints, by its value: a mapping, rows, and rows or Markdown.
Forms: TypeAlias = Mapping[str, Callable[[], Any]]


def checked_outputs(named: Mapping[str, str | None], sources: Sequence[tuple[str, str]]) -> Outputs:
    """Return where to write, if every name can be written to.

    Args:
        named: What was given for each option; a ``format`` other than a table is written to
            standard output.
        sources: The files that are read, each behind its option, which must not be overwritten.

    Raises:
        InvalidInput: If one of them cannot be, naming the option.
    """
    given = {option: name for option, name in named.items() if name is not None}
    outputs = Outputs()
    outputs.format = given.pop("format", "table")
    outputs.language = given.pop("report_language", None)
    if [file for _, file in sources].count("-") > 1:
        twice = [option for option, file in sources if file == "-"][1]
        raise InvalidInput(twice, ": standard input can be read only once", "name a file")
    if outputs.language is not None and "report" not in given:
        raise InvalidInput("report_language", "is about --report, and none was asked for")
    if outputs.format != "table":
        given["format"] = "-"
    streamed = [option for option, name in given.items() if name == "-"]
    if len(streamed) > 1:
        raise InvalidInput(streamed[1], ": only one output can be - (standard output)")
    outputs |= {option: _checked_output(option, name) for option, name in given.items()}
    outputs.named = given
    check_not_read(outputs, [file for _, file in sources])
    for option, name in given.items():
        _check_ending(option, name)
    return outputs


def _checked_output(option: str, name: str) -> Target:
    """Return where a file will be written; through a link, the file it points to."""
    if name == "-":
        return _checked_standard_output(option)
    path = Path(os.path.realpath(name))
    if path.is_dir() or not path.name:
        raise InvalidInput(option, f": {name} is a directory", "name a file in it")
    if path.exists() and not path.is_file():
        raise InvalidInput(option, f": {name} is not a regular file", "name one")
    if not path.parent.is_dir():
        raise InvalidInput(option, f": there is no directory {path.parent}", "create it first")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(option, f": the directory {path.parent} cannot be written to")
    return path


def _checked_standard_output(option: str) -> StandardOutput:
    if option not in STREAMED:
        options = ", ".join(f"--{one}" for one in STREAMED if one != "format")
        problem = f": - is standard output, which {options} alone can be written to"
        raise InvalidInput(option, problem, "name a file")
    if getattr(sys.stdout, "buffer", None) is None:
        raise InvalidInput(option, ": - is standard output, which is closed", "name a file")
    return StandardOutput()


def _check_ending(option: str, name: str) -> None:
    endings: tuple[str, ...] | None = _ENDINGS.get(option)
    if option == "plot":
        from krag_eval.plotting import PLOT_FORMATS

        endings = PLOT_FORMATS
    if endings is not None and Path(name).suffix.lower() not in endings:
        raise InvalidInput(option, f": {name} must end in one of {', '.join(endings)}")


def check_not_read(targets: Mapping[str, Target], sources: Iterable[str]) -> None:
    """Refuse an output among the files that are read.

    Raises:
        InvalidInput: Naming the option.
    """
    from krag_eval.streaming.files import is_read_in_directories

    written = {
        option: target.descriptor() if isinstance(target, StandardOutput) else target
        for option, target in targets.items()
    }
    read = [_descriptor(sys.stdin) if source == "-" else source for source in sources]
    check_apart(
        {option: place for option, place in written.items() if place is not None},
        [source for source in read if source is not None],
        is_read=is_read_in_directories,
        folders={
            option: Path(f"{written[option]}{ending}")
            for option, ending in _PROGRESS.items()
            if option in written
        },
    )


def _descriptor(stream: object) -> int | None:
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def printing_beside(outputs: Mapping[str, Target]) -> Iterator[None]:
    """Print to standard error meanwhile, if an output goes to standard output."""
    if any(isinstance(target, StandardOutput) for target in outputs.values()):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def write_files(
    outputs: Outputs,
    forms: Callable[[], Forms] | None = None,
    writers: Mapping[str, tuple[Callable[[Any], None], str]] = MappingProxyType({}),
) -> None:
    """Write every file asked for, and say so; each appears complete or not at all.

    Args:
        outputs: Where to write what.
        forms: What ``--format`` prints, in every format.
        writers: What writes the output of an option, and what it is.
    """
    if forms is not None and "format" in outputs:
        _WRITERS[outputs.format](forms()[outputs.format](), outputs["format"])
    for option, (write, what) in writers.items():
        if option in outputs:
            target = outputs[option]
            write(target)
            if isinstance(target, Path):
                click.echo(_("wrote {} ({})").format(printable(str(target)), what))


def write_text(text: str, target: Target) -> None:
    """Write a text."""
    if isinstance(target, StandardOutput):
        target.write(text)
        return
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _write_as_json(content: Mapping[str, Any], target: Target) -> None:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2)
    write_text(f"{text}\n", target)


def _write_as_markdown(content: pd.DataFrame | str, target: Target) -> None:
    """Write a table of rows, rounded for reading, whose texts are to the left."""
    write_text(content if isinstance(content, str) else markdown_of(content), target)


def markdown_of(rows: pd.DataFrame, named: Collection[str] = ()) -> str:
    """Return a table of rows in Markdown, rounded for reading; its first column is a name.

    Args:
        rows: The table.
        named: The columns that the user named.
    """
    cells = _known(rows).to_numpy().tolist()
    known = _headings()
    names = [*map(str, rows.columns)]
    header = [name if name in named else known.get(name, name) for name in names]
    return Table.of_cells(header, cells).markdown()


def _headings() -> Mapping[str, str]:
    """Return what the columns of a table are called where people read it."""
    return {
        "metric": _("metric"),
        "value": _("value"),
        "low": pgettext("heading", "low"),
        "high": pgettext("heading", "high"),
        "slice": _("slice"),
        "n": pgettext("heading", "n"),
        "rest": pgettext("heading", "rest"),
        "difference": _("difference"),
        "ci_low": _("ci_low"),
        "ci_high": _("ci_high"),
        "p_permutation": _("p_permutation"),
        "p_holm": _("p_holm"),
        "query": _("query"),
        "status": _("status"),
        "missed": pgettext("heading", "missed"),
        "similarity": _("similarity"),
        "rank": _("rank"),
        "ground_truth": _("ground_truth"),
        "retrieved": _("retrieved"),
        "relevant": pgettext("heading", "relevant"),
        "covered": _("covered"),
        "finding": _("finding"),
        "rows": _("rows"),
        "class": _("class"),
        "label": _("label"),
        "items": _("items"),
        "share": _("share"),
        "cumulative": _("cumulative"),
        "passed": _("passed"),
        "reason": _("reason"),
        "pair": _("pair"),
        "actual": _("actual"),
        "predicted": _("predicted"),
        "wrong": _("wrong"),
        "failed": pgettext("heading", "failed"),
        "failed_a": _("failed_a"),
        "failed_b": _("failed_b"),
        "run": _("run"),
        "made": pgettext("heading", "made"),
        "made_by_file": _("made_by_file"),
        "comparable": _("comparable"),
        "changed": _("changed"),
        "detect": _("detect"),
        "power": _("power"),
        "alpha": _("alpha"),
        "questions": pgettext("heading", "questions"),
        "pilot_questions": _("pilot_questions"),
        "detectable": _("detectable"),
        "sd": _("sd"),
        "design_effect": _("design_effect"),
        "clusters": _("clusters"),
        "n_clusters": _("n_clusters"),
        "systems": _("systems"),
        "correlation": _("correlation"),
        "cell": _("cell"),
        "pareto": _("pareto"),
        "same_as": _("same_as"),
    }


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with ``None`` for what is not known."""
    return rows.astype(object).where(rows.notna(), None)


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON has them; what is not known is ``None``."""
    return [{str(name): one for name, one in row.items()}
            for row in _known(rows).to_dict("records")]  # fmt: skip


def or_none(values: Mapping[str, float]) -> dict[str, float | None]:
    """Return averages as JSON has them; what is undefined is ``None``.

    >>> or_none({"mrr@5": 0.5, "mean_rank@5": float("nan")})
    {'mrr@5': 0.5, 'mean_rank@5': None}
    """
    return {name: value if value == value else None for name, value in values.items()}


def write_json(
    result: EvaluationResult,
    target: Target,
    *,
    texts: bool = False,
    gate: GateReport | None = None,
) -> None:
    """Save a result, with what became of the gate that it was held to."""
    from krag_eval.results.saved import as_text

    if isinstance(target, StandardOutput):
        noted = result if gate is None else replace(result, gate=gate.noted)
        target.write(as_text(noted, "-", texts=texts))
    else:
        result.to_json(target, texts=texts, gate=gate)


def rows_of(result: EvaluationResult) -> pd.DataFrame:
    """Return the per-query tables of all cutoffs below each other."""
    import pandas as pd

    tables = [result.per_query(k).assign(k=spelled(k)) for k in result.k]
    rows = pd.concat(tables).reset_index()
    return rows[["query", "k", *(name for name in rows.columns if name not in ("query", "k"))]]


def write_csv(rows: pd.DataFrame, target: Target) -> None:
    """Write a table of rows."""
    from krag_eval.results.rows import csv_lines

    write_text("".join(csv_lines({name: rows[name] for name in rows.columns})), target)


def write_table(rows: pd.DataFrame, target: Target) -> None:
    """Write a table of rows as CSV; what is not known leaves its cell empty."""
    write_csv(_known(rows), target)


_WRITERS: Mapping[str, Callable[[Any, Any], None]] = {
    "json": _write_as_json,
    "csv": write_table,
    "markdown": _write_as_markdown,
    "github": write_text,
    "gitlab": _write_as_json,
}


def write_plot(draw: Callable[[Axes], object], path: Path) -> None:
    """Write a plot."""
    from krag_eval.plotting import save_plot

    with replacing(path) as temporary:
        save_plot(temporary, draw)


# The columns that everything fits into where it is not printed to a terminal, and at the least.
_WIDTH, _NARROWEST = 100, 60
# What goes without saying in a terminal, where a result is to fit: what the table shows, what a
# warning says, and defaults.
_COVERAGE_BY_DEFAULT = "coverage(min_run=5,tokenizer=auto(words,letters))"
_SHOWN_BESIDE = ("k=", "queries=", "retrieved<=", "krag_eval=")
_BY_DEFAULT = ("threshold=-", "criteria=all", "averaging=both", "conventions=default", "grades=-",
               "no_ground_truth=error")  # fmt: skip


def terminal_width() -> int:
    """Return the columns that everything fits into: those of the terminal, if it is one."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return _WIDTH
    return max(columns, _NARROWEST) if columns else _WIDTH


def print_result(
    result: EvaluationResult,
    source: str,
    intervals: pd.DataFrame | None = None,
    averages: Collection[str] | None = None,
    *,
    whole: bool = True,
) -> None:
    """Print how many queries count, a table of averages by cutoff, and the signature.

    Args:
        result: What to print.
        source: Where its queries come from.
        intervals: The 95 % interval of each average, printed beside it.
        averages: The averages to print; all of them if not given.
        whole: Whether to print all of the signature in a terminal, too.
    """
    from krag_eval.presenting.result import result_page

    counted = result.summary.n_counted
    skipped = result.summary.n_queries - counted
    title = ngettext("{n} query from {source}", "{n} queries from {source}", counted)
    title = title.format(n=counted, source=printable(source))
    if skipped:
        title += _(" ({} more skipped: no ground truth)").format(skipped)
    click.echo(f"{title}\n")
    page = replace(result_page(result, averages, intervals), title="", signature="")
    click.echo(f"{page.text(terminal_width())}\n")
    is_seen = bool(sys.stdout and sys.stdout.isatty())  # it may be closed
    print_signature(result.signature, whole=whole or not is_seen)


def forms_of_result(
    result: EvaluationResult,
    averages: Collection[str] | None,
    intervals: pd.DataFrame | None,
    sliced: Sequence[Slices],
) -> Forms:
    """Return what is printed of a result, in every format."""
    import pandas as pd

    values = {
        name: value
        for name, value in result.to_dict().items()
        if averages is None or name.rpartition("@")[0] in averages
    }
    cells = [[*name.rsplit("@", 1), value] for name, value in values.items()]
    rows = pd.DataFrame(cells, columns=["metric", "k", "value"])
    read = result.shown if averages is None else averages
    more: dict[str, Any] = {}
    if intervals is not None:
        bounds = intervals[["low", "high"]].reindex(list(values))
        rows = rows.assign(low=bounds["low"].to_numpy(), high=bounds["high"].to_numpy())
        pairs = zip(values, _known(bounds).to_numpy().tolist(), strict=True)
        more["intervals"] = {name: pair for name, pair in pairs if None not in pair}
    shown = rows[rows["metric"].isin(list(read))]
    if sliced:
        more["slices"] = {one.tag: records_of(one.table) for one in sliced}
    return {
        "json": lambda: {
            "n_queries": result.n_queries,
            "n_counted": result.summary.n_counted,
            **({"n_failed": result.n_failed} if result.n_failed else {}),
            "metrics": or_none(values),
            **more,
            "signature": result.signature,
        },
        "csv": lambda: rows,
        "markdown": lambda: "\n".join(
            map(markdown_of, [_wide(shown, result), *(one.table for one in sliced)])
        ),
    }


def _wide(rows: pd.DataFrame, result: EvaluationResult) -> pd.DataFrame:
    """Return averages with their cutoffs side by side, each followed by its interval."""
    import pandas as pd

    rows = rows.assign(metric=rows["metric"].map(result.row_names()))
    columns: dict[str, Any] = {}
    for k, part in rows.groupby("k", sort=False):
        of_metric = part.set_index("metric")
        columns[f"@{k}"] = of_metric["value"]
        if "low" in of_metric:
            ends = zip(of_metric["low"], of_metric["high"], strict=True)
            texts = [numbers.span(*pair) for pair in ends]
            columns[_("{} % interval").format(95) + f" @{k}"] = pd.Series(texts, of_metric.index)
    return pd.DataFrame(columns).reset_index()


# Rows of a finding that are printed.
_ROWS = 3


def print_audit(found: Audit, source: str) -> None:
    """Print what was found, and what was not, then the first places."""
    from krag_eval.presenting import page_of

    page = page_of(found)
    for table in page.tables:
        if table.title:
            print_wrapped(table.title)
        click.echo(replace(table, title="").text(terminal_width()) + "\n")
    looked_at, *lines = page.told
    print_wrapped(f"{printable(source)}: {looked_at}")
    for line in lines:
        print_wrapped(printable(line))


def forms_of_audit(found: Audit) -> Forms:
    """Return how often each finding occurs, in every format; what was not looked for is unknown."""
    import pandas as pd

    counts: dict[str, int | None] = {name: len(one.rows) for name, one in found.findings.items()}
    counts |= dict.fromkeys(found.unchecked)
    rows = pd.DataFrame({"finding": list(counts), "rows": list(counts.values())}, dtype=object)
    return {
        "json": lambda: {
            "looked_at": dict(found.counts),
            "findings": counts,
            "unchecked": dict(found.unchecked),
            "tiers": {name: dict(tiers) for name, tiers in found.shares.items()},
        },
        "csv": lambda: rows,
        "markdown": lambda: rows,
    }


def print_diagnosis(found: Diagnosis, signature: str) -> None:
    """Print recall with one cause after the other removed, and what most is lost by."""
    click.echo(f"{page_of(found).text(terminal_width())}\n")
    print_signature(signature)


def forms_of_diagnosis(found: Diagnosis, signature: str) -> Forms:
    """Return how many items have each class, and recall without each cause, in every format."""
    rows = page_of(found).tables[0].frame().set_index("class").loc[[*found.waterfall().index]]
    rows = rows.reset_index()[["class", "label", "items", "share", "cumulative"]]
    return {
        "json": lambda: {
            "k": spelled(found.k),
            "n_items": len(found.items),
            "n_chunks": found.n_chunks,
            "looked_up": None if found.looked_up is None else found.looked_up._asdict(),
            "classes": records_of(rows),
            "counts": found.counts,
            "signature": signature,
        },
        "csv": lambda: rows,
        "markdown": lambda: rows,
    }


def forms_of_misses(missed: pd.DataFrame, n: int, k: str, signature: str) -> Forms:
    """Return the first of the queries that lost something, in every format."""
    whole = {name: "Int64" for name in ("covered", "ground_truth", "rank") if name in missed}
    rows = missed[:n].reset_index().astype(whole)
    if len(missed) > n:
        click.echo(_("and {} more; -n {} lists all").format(len(missed) - n, len(missed)), err=True)
    return {
        "json": lambda: {
            "k": k,
            "n_misses": len(missed),
            "misses": records_of(rows),
            "signature": signature,
        },
        "csv": lambda: rows,
        "markdown": lambda: rows,
    }


def print_signature(signature: str, *, whole: bool = True) -> None:
    """Print what the numbers depend on, wrapped between its parts.

    Args:
        signature: All of it.
        whole: Whether to print what goes without saying, too.
    """
    from rich.cells import cell_len

    line, parts = _("signature: "), signature.split(" | ")
    if not whole:
        parts[0] = parts[0].replace(_COVERAGE_BY_DEFAULT, "coverage")
        told = [
            one for one in parts if not one.startswith(_SHOWN_BESIDE) and one not in _BY_DEFAULT
        ]
        parts = [*told, "…"]
    for number, part in enumerate(parts):
        added = f" | {part}" if number else part
        if number and cell_len(line + added) > terminal_width():
            click.echo(line)
            line = " " * 10
        line += added
    click.echo(line)


def print_page(page: Page) -> None:
    """Print a page in the width of the terminal."""
    click.echo(page.text(terminal_width()))


def print_wrapped(text: str) -> None:
    """Print a sentence, continued below where it is too long for one line."""
    width = min(terminal_width(), _WIDTH)  # longer lines are hard to read
    lines = textwrap.fill(padded(text), width, subsequent_indent="  ", break_on_hyphens=False)
    click.echo(lines.replace("\0", ""))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, names: int = 1) -> None:
    """Print a table whose first columns are names, and the others values."""
    table = Table.of_cells(header, [*rows], names=names)
    click.echo(f"{table.text(terminal_width())}\n")


def note_verdict(new: str, result: EvaluationResult, report: HistoryReport) -> None:
    """Write into a saved result what became of its gate, so that no later one is held to a failure.

    It is written under every name that it has in the folder of the history, too.

    Warns:
        KragEvalWarning: If a file cannot be written, or holds another result by now.
    """
    from krag_eval.results.saved import note_gate

    files = {os.path.realpath(file): file for file in (*report.itself, new)}
    for file in files.values():
        try:
            note_gate(file, report.noted, result)
        except (OSError, Refusal) as error:
            why = error.problem if isinstance(error, Refusal) else error.strerror or error
            told = _(
                "what became of this gate could not be written into {new} ({error}), so that a "
                "history takes it for any other run"
            )
            warn(told.format(new=printable(file), error=why))


def pronounce(report: GateReport) -> Verdict:
    """Print what passed, and to standard error first what did not; return the verdict.

    Which queries of the two results were left out is printed after them.
    """
    from krag_eval.presenting.gates import line_of

    for gate in report.by_outcome:
        click.echo(printable(line_of(gate)), err=gate.outcome != "passed")
    if report.note:
        click.echo(printable(report.note))
    return Verdict.GOOD_ENOUGH if report.passed else Verdict.NOT_GOOD_ENOUGH
