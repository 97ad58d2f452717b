"""Where to write what: checked before anything is computed, written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import click

from krag_eval._io import check_apart, replacing
from krag_eval.cli.wording import one_line
from krag_eval.datasets.streams import is_read_in_directories
from krag_eval.scoring.cutoffs import spelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.comparison import Comparison

__all__ = ["ComparisonOutputs", "Outputs", "ReportLanguage", "checked_language", "printing_beside"]

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
