"""Where to write what: checked before anything is computed, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from krag_eval.cli.wording import one_line
from krag_eval.cutoffs import spelled
from krag_eval.files import replacing

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.results import EvaluationResult

__all__ = ["Outputs"]


class Outputs(NamedTuple):
    """The files asked for, by what goes into them."""

    json: Path | None
    csv: Path | None
    plot: Path | None

    @classmethod
    def checked(
        cls,
        json: str | None,
        csv: str | None,
        plot: str | None = None,
        *,
        sources: Sequence[str],
    ) -> Outputs:
        """Return where to write, if every name can be written to.

        Args:
            json: What was given for ``--json``.
            csv: What was given for ``--csv``.
            plot: What was given for ``--plot``.
            sources: The files that are read, which must not be overwritten.

        Raises:
            ValueError: If one of them cannot be, naming the option.
        """
        named = {"--json": json, "--csv": csv, "--plot": plot}
        paths = {
            option: _checked_output(option, path, sources)
            for option, path in named.items()
            if path is not None
        }
        if len(set(paths.values())) < len(paths):
            raise ValueError(f"{', '.join(paths)}: each needs a file of its own.")
        if plot is not None:
            _check_plot_format(plot)
        return cls(*map(paths.get, named))

    def write(self, result: EvaluationResult) -> None:
        """Write every file asked for; each appears complete or not at all."""
        self._write_json(result)
        if self.csv:
            _write_csv(_rows_of(result), self.csv)
            _say_written(self.csv, "one row per query and cutoff")
        if self.plot:
            _write_plot(result, self.plot)
            _say_written(self.plot, f"the metrics @{spelled(result.k[-1])}")

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
        if self.json:
            result.to_json(self.json)
            _say_written(self.json, "the result")


def _say_written(path: Path, what: str) -> None:
    click.echo(f"wrote {one_line(str(path))} ({what})")


def _checked_output(option: str, name: str, sources: Sequence[str]) -> Path:
    """Return where a file will be written; through a link, the file it points to."""
    path = Path(os.path.realpath(name))
    if path.is_dir() or not path.name:
        raise ValueError(f"{option}: {name} is a directory; name a file in it.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{option}: {name} is not a regular file; name one.")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: there is no directory {path.parent}; create it first.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{option}: the directory {path.parent} cannot be written to.")
    read = {Path(os.path.realpath(source)) for source in sources if source != "-"}
    if path.exists() and path in read:
        raise ValueError(f"{option}: {name} is the file to be evaluated; name another.")
    return path


def _check_plot_format(name: str) -> None:
    from krag_eval.plotting import PLOT_FORMATS

    if Path(name).suffix.lower() not in PLOT_FORMATS:
        raise ValueError(f"--plot: {name} must end in one of {', '.join(PLOT_FORMATS)}.")


def _rows_of(result: EvaluationResult) -> pd.DataFrame:
    """Return the per-query tables of all cutoffs below each other."""
    import pandas as pd

    tables = [result.per_query(k).assign(k=spelled(k)) for k in result.k]
    rows = pd.concat(tables).reset_index()
    return rows[["query", "k", *(name for name in rows.columns if name not in ("query", "k"))]]


def _write_csv(rows: pd.DataFrame, path: Path) -> None:
    with replacing(path) as temporary:
        rows.to_csv(temporary, index=False, encoding="utf-8", lineterminator="\n")


def _write_plot(result: EvaluationResult, path: Path) -> None:
    from krag_eval.plotting import metric_bars, save_plot

    with replacing(path) as temporary:
        save_plot(temporary, lambda ax: metric_bars(result, result.k[-1], ax=ax))
