"""Where to write what: checked before anything is computed, written whole or not at all."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import click

from krag_eval._errors import KragEvalWarning
from krag_eval._io import check_apart, replacing
from krag_eval.cli.shell import Verdict, one_line
from krag_eval.datasets.streams import is_read_in_directories
from krag_eval.scoring.cutoffs import spelled, unspelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from rich.table import Table

    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.comparison import Comparison, Difference
    from krag_eval.statistics.gates import GateReport

__all__ = [
    "WIDEST",
    "WIDTH",
    "ComparisonOutputs",
    "Outputs",
    "ReportLanguage",
    "check_floors_early",
    "checked_language",
    "clipped",
    "four_digits",
    "print_cells",
    "print_comparison",
    "print_result",
    "print_signature",
    "print_table",
    "printing_beside",
    "pronounce",
    "rehearsed",
]

ReportLanguage: TypeAlias = Literal["en", "ko"]

# What is text of no particular ending, so that '-' can stand for standard output.
_STREAMED = ("--json", "--csv", "--markdown", "--latex")
# The progress of a run is kept beside its output.
_PROGRESS = {"--per-query": ".partial"}


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
        """Return what the operating system calls it; ``None`` if it is no file of its own."""
        return _descriptor(self._stream)


Target: TypeAlias = "Path | StandardOutput"


class Outputs(NamedTuple):
    """The files asked for, by what goes into them."""

    json: Target | None
    csv: Target | None
    plot: Path | None
    report: Path | None
    per_query: Path | None

    @classmethod
    def checked(
        cls,
        json: str | None,
        csv: str | None,
        plot: str | None = None,
        report: str | None = None,
        per_query: str | None = None,
        *,
        sources: Sequence[str],
    ) -> Outputs:
        """Return where to write, if every name can be written to.

        Args:
            json: What was given for ``--json``.
            csv: What was given for ``--csv``.
            plot: What was given for ``--plot``.
            report: What was given for ``--report``.
            per_query: What was given for ``--per-query``.
            sources: The files that are read, which must not be overwritten.

        Raises:
            ValueError: If one of them cannot be, naming the option.
        """
        named = {"--json": json, "--csv": csv, "--plot": plot, "--report": report}
        named["--per-query"] = per_query
        return cls(**_checked_outputs(named, sources))

    def write(self, result: EvaluationResult, language: ReportLanguage = "en") -> None:
        """Write every file asked for; each appears complete or not at all."""
        if self.per_query:  # written while the queries were evaluated
            _say_written(self.per_query, "one row per query")
        self._write_json(result)
        if self.csv:
            _write_csv(_rows_of(result), self.csv)
            _say_written(self.csv, "one row per query and cutoff")
        if self.plot:
            _write_plot(result, self.plot)
            _say_written(self.plot, f"the metrics @{spelled(result.k[-1])}")
        if self.report:
            result.report(self.report, language=language)
            _say_written(self.report, "a page to read")

    def write_runs(self, results: Mapping[str, EvaluationResult]) -> None:
        """Write the results of several runs, by their names, into one table."""
        for result in results.values() if len(results) == 1 else ():
            self._write_json(result)
        if self.csv:
            import pandas as pd

            tables = [_rows_of(result).assign(run=run) for run, result in results.items()]
            rows = pd.concat(tables)
            _write_csv(rows[["run", *(name for name in rows.columns if name != "run")]], self.csv)
            _say_written(self.csv, "one row per run, query and cutoff")

    def _write_json(self, result: EvaluationResult) -> None:
        if isinstance(self.json, StandardOutput):
            from krag_eval.results.saved import as_text

            self.json.write(as_text(result, "-"))
        elif self.json:
            result.to_json(self.json)
            _say_written(self.json, "the result")


def _checked_outputs(named: Mapping[str, str | None], sources: Sequence[str]) -> dict[str, Any]:
    """Return where to write, by the option's name in Python, if every name can be written to.

    Raises:
        ValueError: If one of them cannot be, naming the option.
    """
    given = {option: name for option, name in named.items() if name is not None}
    if list(given.values()).count("-") > 1:
        raise ValueError(f"{', '.join(given)}: only one of them can be - (standard output).")
    targets = {option: _checked_output(option, name) for option, name in given.items()}
    _check_apart(targets, sources)
    for option, name in given.items():
        _check_ending(option, name)
    return {_python_name(option): targets.get(option) for option in named}


def _python_name(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _check_apart(targets: Mapping[str, Target], sources: Iterable[str]) -> None:
    """Refuse an output that is read, by option."""
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
def printing_beside(outputs: Outputs | ComparisonOutputs) -> Iterator[None]:
    """Print to standard error meanwhile, if an output goes to standard output."""
    if any(isinstance(target, StandardOutput) for target in outputs):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def checked_language(language: ReportLanguage | None, report: str | None) -> ReportLanguage:
    """Return the language of the page.

    Raises:
        ValueError: If one was asked for, and no page.
    """
    if language is not None and report is None:
        raise ValueError("--report-language is about --report, and none was asked for.")
    return language or "en"


class ComparisonOutputs(NamedTuple):
    """The files asked for a comparison, by what goes into them."""

    markdown: Target | None
    latex: Target | None
    plot: Path | None
    report: Path | None

    @classmethod
    def checked(
        cls,
        markdown: str | None,
        latex: str | None,
        plot: str | None,
        report: str | None,
        *,
        sources: Sequence[str],
    ) -> ComparisonOutputs:
        """Return where to write, if every name can be written to; see ``Outputs.checked``."""
        named = {"--markdown": markdown, "--latex": latex, "--plot": plot, "--report": report}
        return cls(**_checked_outputs(named, sources))

    def check_apart(self, sources: Iterable[str]) -> None:
        """Refuse an output among further files that are read.

        Raises:
            ValueError: Naming the option.
        """
        _check_apart(
            {f"--{name}": target for name, target in self._asdict().items() if target}, sources
        )

    def write(self, comparison: Comparison, language: ReportLanguage = "en") -> None:
        """Write every file asked for; each appears complete or not at all."""
        if self.markdown:
            _write_text(comparison.to_markdown(), self.markdown)
            _say_written(self.markdown, "the table, in Markdown")
        if self.latex:
            _write_text(comparison.to_latex(), self.latex)
            _say_written(self.latex, "the table, in LaTeX")
        if self.plot:
            _write_forest(comparison, self.plot)
            _say_written(self.plot, "the differences with their intervals")
        if self.report:
            comparison.report(self.report, language=language)
            _say_written(self.report, "a page to read")


def _say_written(path: Target, what: str) -> None:
    """Say that a file was written, and what is in it; standard output shows it itself."""
    if isinstance(path, Path):
        click.echo(f"wrote {one_line(str(path))} ({what})")


def _checked_output(option: str, name: str) -> Target:
    """Return where a file will be written; through a link, the file it points to."""
    if name == "-":
        return _checked_standard_output(option)
    path = Path(os.path.realpath(name))
    if path.is_dir() or not path.name:
        raise ValueError(f"{option}: {name} is a directory; name a file in it.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{option}: {name} is not a regular file; name one.")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: there is no directory {path.parent}; create it first.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{option}: the directory {path.parent} cannot be written to.")
    return path


def _checked_standard_output(option: str) -> StandardOutput:
    if option not in _STREAMED:
        raise ValueError(
            f"{option}: - is standard output, which {', '.join(_STREAMED)} alone can be written "
            "to; name a file."
        )
    if getattr(sys.stdout, "buffer", None) is None:
        raise ValueError(f"{option}: - is standard output, which is closed; name a file.")
    return StandardOutput()


def _check_ending(option: str, name: str) -> None:
    from krag_eval.plotting import PLOT_FORMATS

    endings = {
        "--plot": PLOT_FORMATS,
        "--report": (".html", ".htm"),
        "--per-query": (".parquet", ".csv"),
    }.get(option)
    if endings is not None and Path(name).suffix.lower() not in endings:
        raise ValueError(f"{option}: {name} must end in one of {', '.join(endings)}.")


def _rows_of(result: EvaluationResult) -> pd.DataFrame:
    """Return the per-query tables of all cutoffs below each other."""
    import pandas as pd

    tables = [result.per_query(k).assign(k=spelled(k)) for k in result.k]
    rows = pd.concat(tables).reset_index()
    return rows[["query", "k", *(name for name in rows.columns if name not in ("query", "k"))]]


def _write_csv(rows: pd.DataFrame, path: Target) -> None:
    from krag_eval.results.rows import csv_lines

    _write_text("".join(csv_lines({name: rows[name] for name in rows.columns})), path)


def _write_plot(result: EvaluationResult, path: Path) -> None:
    from krag_eval.plotting import metric_bars, save_plot

    with replacing(path) as temporary:
        save_plot(temporary, lambda ax: metric_bars(result, result.k[-1], ax=ax))


def _write_text(text: str, path: Target) -> None:
    if isinstance(path, StandardOutput):
        path.write(text)
        return
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _write_forest(comparison: Comparison, path: Path) -> None:
    from krag_eval.plotting import comparison_forest, forest_size, save_plot

    def draw(ax: Axes) -> None:
        if ax.figure is not None:  # as tall as its rows need
            ax.figure.set_size_inches(*forest_size(comparison))  # type: ignore[union-attr]
        comparison_forest(comparison, ax=ax)

    with replacing(path) as temporary:
        save_plot(temporary, draw)


#: Columns of the terminal that everything fits into, and the most that values and their name take.
WIDTH = 100
WIDEST = 16
# Tables wider than that are continued below.
_COLUMNS = 8
_COLUMNS_WITH_INTERVALS = 3


def print_result(
    result: EvaluationResult, source: str, intervals: pd.DataFrame | None = None
) -> None:
    """Print how many queries count, a table of all averages by cutoff, and the signature.

    Args:
        result: What to print.
        source: Where its queries come from.
        intervals: The 95 % interval of each average, to stand beside it.
    """
    counted = result.n_counted
    skipped = result.n_queries - counted
    click.echo(
        f"{counted} {'query' if counted == 1 else 'queries'} from {one_line(source)}"
        + (f" ({skipped} more skipped: no ground truth)" if skipped else "")
        + "\n"
    )
    width = _COLUMNS if intervals is None else _COLUMNS_WITH_INTERVALS
    for start in range(0, len(result.k), width):
        _print_averages(result, [spelled(k) for k in result.k[start : start + width]], intervals)
    print_signature(result.signature)


def _print_averages(
    result: EvaluationResult, cutoffs: Sequence[str], intervals: pd.DataFrame | None
) -> None:
    values = result.to_dict()
    keys = dict.fromkeys(name.rpartition("@")[0] for name in values)
    if intervals is None:
        rows = {key: [values[f"{key}@{k}"] for k in cutoffs] for key in keys}
        print_table("metric", [f"@{k}" for k in cutoffs], rows)
        return
    known = {name: (low, high) for name, low, high in intervals[["low", "high"]].itertuples()}
    undefined = math.nan, math.nan
    header = ["metric", *(cell for k in cutoffs for cell in (f"@{k}", "95 % interval"))]
    cells = [
        [key, *(cell for name in (f"{key}@{k}" for k in cutoffs)
                for cell in (four_digits(values[name]), _range(*known.get(name, undefined))))]
        for key in keys
    ]  # fmt: skip
    print_cells(header, cells)


def print_signature(signature: str) -> None:
    """Print what the numbers depend on, wrapped between its parts."""
    for line in _wrapped(f"signature: {signature}", WIDTH):
        click.echo(line)


def print_table(
    corner: str,
    header: Sequence[str],
    rows: Mapping[str, Sequence[float]],
    *,
    widest: int = WIDEST,
) -> None:
    """Print named rows of numbers, to four digits; what is undefined is a dash."""
    cells = [[name, *map(four_digits, values)] for name, values in rows.items()]
    print_cells([corner, *header], cells, widest=widest)


def print_cells(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1, widest: int = WIDEST
) -> None:
    """Print a table whose first columns are names, to the left, and the others are values."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for position, name in enumerate(header):
        if position < names:
            table.add_column(name, no_wrap=True)
        else:  # a long name is continued below itself
            table.add_column(name, justify="right", max_width=widest, overflow="fold")
    for row in rows:
        table.add_row(*row)
    _print_rich(table)
    click.echo()


def clipped(text: str, width: int) -> str:
    """Return a text on one line, at most so many columns wide; Hangul takes two columns a letter.

    >>> clipped("How long may I keep a book?", 12), clipped("언제 여나요?", 10)
    ('How long ...', '언제 여...')
    """
    from rich.cells import cell_len, set_cell_size

    text = one_line(text)
    return text if cell_len(text) <= width else set_cell_size(text, width - 3) + "..."


def four_digits(value: float) -> str:
    """Return a number as it is printed.

    >>> four_digits(2 / 3), four_digits(float("nan"))
    ('0.6667', '-')
    """
    return f"{value:.4f}" if value == value else "-"


def _range(low: float, high: float) -> str:
    """Return an interval, narrow enough for a column.

    >>> _range(0.41234, 0.8), _range(float("nan"), float("nan")), _range(998.0, 1234.56)
    ('0.412–0.800', '-', '998.0–1234.6')
    """
    digits = 3 if high < 100 else 1
    return f"{low:.{digits}f}–{high:.{digits}f}" if low == low else "-"


def _print_rich(table: Table) -> None:
    from rich.console import Console

    # Wide enough that no number is cut, whatever the window.
    console = Console(width=WIDTH, highlight=False, markup=False, emoji=False)
    console.print(table)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a signature between its parts.

    >>> _wrapped("signature: matcher=text | k=1,5 | queries=28", 32)
    ['signature: matcher=text | k=1,5', '           | queries=28']
    """
    lines = [""]
    for part in text.split(" | "):
        if lines[-1] and len(f"{lines[-1]} | {part}") > width:
            lines.append(f"{' ' * 11}| {part}")
        else:
            lines[-1] += f" | {part}" if lines[-1] else part
    return lines


def pronounce(report: GateReport) -> Verdict:
    """Print what passed, and to standard error what failed; return the verdict."""
    for gate in report.gates:
        verdict = "passed" if gate.passed else "failed"
        click.echo(f"{verdict}: {one_line(gate.reason)}", err=not gate.passed)
    return Verdict.GOOD_ENOUGH if report.passed else Verdict.NOT_GOOD_ENOUGH


def check_floors_early(floors: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse a floor that the result to come could not be checked against.

    Raises:
        ValueError: If it is no floor, or about an average or a cutoff that will not be there.
    """
    if floors:
        rehearsed(options).check(floors)


def rehearsed(options: Mapping[str, Any]) -> EvaluationResult:
    """Return a result of the kind that will come of these options: same averages, same cutoffs.

    Whatever is refused for it will be refused for the real one, after a long computation.
    """
    from krag_eval.evaluator import OfflineRetrievalEvaluator

    # Queries without ground truth have a measure of their own, if they are to be skipped.
    unanswerable: list[list[str]] = [[]] if options["no_ground_truth"] == "skip" else []
    queries = [["a"], *unanswerable]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        evaluator = OfflineRetrievalEvaluator(
            queries,
            queries,
            matcher="text",  # averages and cutoffs are the same under any
            matching_criteria=options["matching_criteria"],
            averaging_method=options["averaging_method"],
            conventions=options["conventions"],
            no_ground_truth=options["no_ground_truth"],
        )
        return evaluator.evaluate(k=[unspelled(one) for one in options["cutoffs"]])


# Systems that stand beside each other, and the columns that the name of each may take.
_SYSTEMS = 3
_WIDEST = 24
_LONGEST_NAME = 40
_CHANGED = 3
_LAST_COLUMNS = ("p (Holm)", "effect size", "wins", "ties", "losses")


def print_comparison(comparison: Comparison) -> None:
    """Print the averages of all systems, then how each pair differs."""
    n_queries = len(comparison.queries)
    click.echo(f"{len(comparison.names)} systems on {n_queries} queries\n")
    for start in range(0, len(comparison.names), _SYSTEMS):
        _print_values(comparison, comparison.names[start : start + _SYSTEMS])
    sentences = iter(comparison.summary().split("\n"))
    for a, b in combinations(comparison.names, 2):
        rows = [row for row in comparison.differences if (row.a, row.b) == (a, b)]
        _print_pair(rows, comparison.level)
        for _ in rows:
            _print_wrapped(one_line(next(sentences)))
        click.echo()
        _print_changed(comparison, a, b)
    print_signature(f"{comparison.signature} | n_resamples={comparison.n_resamples}")


def _print_values(comparison: Comparison, names: Sequence[str]) -> None:
    values = {
        (metric, name): value
        for row in comparison.differences
        for metric, name, value in (
            (row.metric, row.a, row.value_a),
            (row.metric, row.b, row.value_b),
        )
    }
    rows = {metric: [values[metric, name] for name in names] for metric in comparison.metrics}
    print_table("metric", [_shown(name) for name in names], rows, widest=_WIDEST)


def _print_pair(rows: Sequence[Difference], level: float) -> None:
    first = rows[0]
    _print_wrapped(
        f"{_shown(first.b)} minus {_shown(first.a)}; "
        f"wins and losses are the queries on which {_shown(first.b)} is better and worse"
    )
    click.echo()
    header = ["metric", "difference", f"{100 * level:g} % interval", *_LAST_COLUMNS]
    print_cells(header, [_cells(row) for row in rows])


def _cells(row: Difference) -> list[str]:
    return [
        row.metric,
        _signed(row.difference),
        _difference_range(row.ci_low, row.ci_high),
        "<0.0001" if row.p_holm < 0.0001 else four_digits(row.p_holm),
        four_digits(row.effect_size),
        *map(str, (row.wins, row.ties, row.losses)),
    ]


def _print_changed(comparison: Comparison, a: str, b: str) -> None:
    """Print the queries that changed most on the first metric."""
    metric = comparison.metrics[0]
    changed = comparison.changed(metric, a, b, _CHANGED)
    if changed.empty:
        click.echo(f"No query changed on {metric}.\n")
        return
    click.echo(f"Changed most on {metric}:")
    for query, before, after, _ in changed.itertuples():
        start = f"  {four_digits(before):>8} to {four_digits(after):<8}  "
        click.echo(start + clipped(str(query), WIDTH - len(start)))
    click.echo()


def _print_wrapped(text: str) -> None:
    click.echo(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _shown(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.4f}"


def _difference_range(low: float, high: float) -> str:
    """Return an interval of a difference, narrow enough for a column.

    >>> _difference_range(-0.0123, 0.4), _difference_range(-12.04, -10.1)
    ('-0.012 to 0.400', '-12.0 to -10.1')
    """
    if math.isnan(low):
        return "-"
    digits = 3 if max(-low, high) < 10 else 1
    return f"{low:.{digits}f} to {high:.{digits}f}"
