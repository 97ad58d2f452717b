"""The shell command: files in, a table out, and the same numbers as from Python.

This room knows options, printing and exit codes. It must not know formulas. What a command needs
is imported when it runs, so that ``--help`` is quick.

Exit codes: 0; 2 for input that cannot be used, with one line on standard error; 130 when
interrupted. A mistake of ours ends in a traceback and 1.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dis import opmap
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click

from krag_eval import __version__
from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.cutoffs import check_cutoffs, spelled, unspelled
from krag_eval.files import replacing
from krag_eval.matching.names import MATCHER_NAMES
from krag_eval.messages import KragEvalWarning

if TYPE_CHECKING:
    from rich.table import Table

    from krag_eval.datasets import Dataset
    from krag_eval.results import EvaluationResult

__all__ = ["main"]

_WIDTH = 100
# Tables wider than that are continued below.
_COLUMNS = 8
_BAD_INPUT = 2
_INTERRUPTED = 130
# How a Python message names an option: matcher="contains" is --matcher contains here.
_ASSIGNMENT = re.compile(
    r"\b(matcher|conventions|no_ground_truth|question_field|actual_field|predicted_field)="
    r'"([^"]*)"'
)
_POSITION = re.compile(r"^(actual|predicted)_docs(?:\[(\d+)\])?")

Command = TypeVar("Command", bound=Callable[..., Any])


class _Shell(click.Group):
    """A command group that answers bad input with one line and a bug with a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        _never_fail_to_encode()
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            code = _INTERRUPTED
        except (click.ClickException, ValueError, TypeError, OSError) as error:
            if not _is_refusal(error):
                raise
            click.echo(f"krag-eval: error: {_one_line(_problem(error))}", err=True)
            code = _BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)


@click.group("krag-eval", cls=_Shell, invoke_without_command=True)
@click.version_option(__version__, prog_name="krag-eval")
@click.pass_context
def main(context: click.Context) -> None:
    """Measure how good retrieval is in a RAG system."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Bundle options that several commands share, shown in the order given."""
    return lambda command: reduce(lambda made, add: add(made), reversed(options), command)


_evaluation_options = _options(
    click.option(
        "--matcher",
        metavar="NAME",
        default="text",
        show_default=True,
        help=f"What makes a retrieved document a match: {', '.join(MATCHER_NAMES)}.",
    ),
    click.option(
        "--threshold",
        metavar="T",
        type=float,
        help="Similarity from which a pair is a match, 0 to 1; the matcher's own by default.",
    ),
    click.option(
        "-k",
        "cutoffs",
        metavar="K",
        multiple=True,
        default=("1", "3", "5", "10"),
        show_default="1, 3, 5, 10",
        help="Look at the first K retrieved documents, or 'all'; repeat it for several cutoffs.",
    ),
    click.option(
        "--criteria",
        "matching_criteria",
        type=click.Choice([one.value for one in MatchingCriteria]),
        default="all",
        show_default=True,
        help="A query is a hit when all of its ground truth is found, or (partial) any of it.",
    ),
    click.option(
        "--averaging",
        "averaging_method",
        type=click.Choice([one.value for one in AveragingMethod]),
        default="both",
        show_default=True,
        help="Which averages of precision, recall and F1 to show.",
    ),
    click.option(
        "--conventions",
        metavar="NAME|FIELDS",
        default="default",
        show_default=True,
        help=f"How disputed points are settled: {', '.join(Conventions.presets())}, "
        "or fields such as gain=linear,precision_at=k.",
    ),
    click.option(
        "--no-ground-truth",
        type=click.Choice(["error", "skip", "zero"]),
        default="error",
        show_default=True,
        help="For queries without ground truth: refuse, leave out of averages, or count as 0.",
    ),
)

_field_options = _options(
    click.option("--question-field", metavar="NAME", default="question", show_default=True),
    click.option("--actual-field", metavar="NAME", default="actual", show_default=True),
    click.option("--predicted-field", metavar="NAME", default="predicted", show_default=True),
)

_output_options = _options(
    click.option(
        "--json", "json_path", metavar="OUT", help="Save the result; Python reads it back."
    ),
    click.option("--csv", "csv_path", metavar="OUT", help="Save one row per query and cutoff."),
    click.option(
        "--plot",
        "plot_path",
        metavar="OUT",
        help="Draw the metrics at the last cutoff named, as .png, .svg or .pdf.",
    ),
)


@main.command(short_help="Evaluate the retrieved documents in a file.")
@click.argument("file")
@_evaluation_options
@_field_options
@_output_options
def evaluate(
    file: str,
    json_path: str | None,
    csv_path: str | None,
    plot_path: str | None,
    question_field: str,
    actual_field: str,
    predicted_field: str,
    **options: Any,
) -> None:
    """Evaluate the retrieved documents in FILE ('-' reads standard input).

    FILE is JSONL, plain or .gz: one JSON object per line, with "question" (optional), "actual"
    (list of what should be retrieved) and "predicted" (list of what was, best first).
    """
    from krag_eval.datasets import read_jsonl

    outputs = _Outputs.checked(json_path, csv_path, plot_path, source=file)
    _check_early(options)
    with _warnings_as("warning"):
        dataset = read_jsonl(
            sys.stdin if file == "-" else file,
            question_field=question_field,
            actual_field=actual_field,
            predicted_field=predicted_field,
        )
        result = _evaluated(dataset, **options)
    _print_result(result, dataset.source)
    outputs.write(result)


@main.command(short_help="Evaluate the data set that ships with the package.")
def demo() -> None:
    """Evaluate the small English and Korean data set that ships with the package."""
    from krag_eval.datasets import demo_dataset

    dataset = demo_dataset()
    with _warnings_as("note"):
        result = dataset.evaluator(matcher="text").evaluate(k=[1, 3, 5])
        matched = {
            name: dataset.evaluator(matcher=name).evaluate(k=5).to_dict()
            for name in _DEMO_MATCHERS
            if name in MATCHER_NAMES
        }
    click.echo(_DEMO_OPENING)
    _print_result(result, dataset.source)
    shown = ("macro_recall@5", "mrr@5", "ndcg@5")
    rows = {name: [metrics[key] for key in shown] for name, metrics in matched.items()}
    click.echo("\nThe same retrieved lists, matched in other ways:\n")
    _print_table("matcher", shown, rows)
    for name in matched:
        click.echo(f"  {name:<9} {_DEMO_MATCHERS[name]}")
    click.echo(_DEMO_CLOSING)


_DEMO_OPENING = """\
A library in English and a bicycle rental in Korean: for every question, what a retriever should
have found and what it found. A document counts as found when its text is equal (--matcher text).
"""

_DEMO_MATCHERS = {
    "text": "counts a document whose text equals the ground truth",
    "contains": "counts a document that has the ground truth in it, as a longer chunk does",
    "coverage": "counts a document that covers most of the ground truth, as a cut chunk may",
}

_DEMO_CLOSING = """
Where to go next

  1. Write one JSON object per line into a file, say results.jsonl:
     {"question": "When?", "actual": ["At nine."], "predicted": ["At ten.", "At nine."]}
  2. Evaluate it, with a chart:
     krag-eval evaluate results.jsonl --matcher contains -k 1 -k 5 --plot chart.png
  3. Read what every number means: docs/metrics.md. All options: krag-eval evaluate --help"""


def _check_early(options: Mapping[str, Any]) -> None:
    """Refuse a bad option before a long file is read."""
    from krag_eval.matching.names import resolve_matcher

    resolve_matcher(options["matcher"])
    Conventions.parse(options["conventions"])
    check_cutoffs([unspelled(one) for one in options["cutoffs"]])


def _evaluated(dataset: Dataset, *, cutoffs: Sequence[str], **options: Any) -> EvaluationResult:
    """Evaluate a dataset; an error that names a query names its line in the file."""
    try:
        return dataset.evaluator(**options).evaluate(k=[unspelled(one) for one in cutoffs])
    except ValueError as error:
        position = _POSITION.match(str(error))
        if position is None or not _is_refusal(error):
            raise
        from krag_eval.datasets import DatasetError

        side, query = position.groups()
        line = f":{dataset.lines[int(query)]}: {side}" if query else f": {side}"
        raise DatasetError(dataset.source + line + str(error)[position.end() :]) from error


class _Outputs(NamedTuple):
    """Where to write what; checked before anything is computed."""

    json: Path | None
    csv: Path | None
    plot: Path | None

    @classmethod
    def checked(
        cls, json: str | None, csv: str | None, plot: str | None, *, source: str
    ) -> _Outputs:
        named = {"--json": json, "--csv": csv, "--plot": plot}
        paths = {
            option: _checked_output(option, path, source)
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
        if self.json:
            result.to_json(self.json)
            _say_written(self.json, "the result")
        if self.csv:
            _write_csv(result, self.csv)
            _say_written(self.csv, "one row per query and cutoff")
        if self.plot:
            _write_plot(result, self.plot)
            _say_written(self.plot, f"the metrics @{spelled(result.k[-1])}")


def _say_written(path: Path, what: str) -> None:
    click.echo(f"wrote {_one_line(str(path))} ({what})")


def _checked_output(option: str, name: str, source: str) -> Path:
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
    if source != "-" and path.exists() and path == Path(os.path.realpath(source)):
        raise ValueError(f"{option}: {name} is the file to be evaluated; name another.")
    return path


def _check_plot_format(name: str) -> None:
    from krag_eval.plotting import PLOT_FORMATS

    if Path(name).suffix.lower() not in PLOT_FORMATS:
        raise ValueError(f"--plot: {name} must end in one of {', '.join(PLOT_FORMATS)}.")


def _write_csv(result: EvaluationResult, path: Path) -> None:
    import pandas as pd

    tables = [result.per_query(k).assign(k=spelled(k)) for k in result.k]
    rows = pd.concat(tables).reset_index()
    columns = ["query", "k", *(name for name in rows.columns if name not in ("query", "k"))]
    with replacing(path) as temporary:
        rows[columns].to_csv(temporary, index=False, encoding="utf-8", lineterminator="\n")


def _write_plot(result: EvaluationResult, path: Path) -> None:
    from krag_eval.plotting import metric_bars, save_plot

    with replacing(path) as temporary:
        save_plot(temporary, lambda ax: metric_bars(result, result.k[-1], ax=ax))


# Printing


def _print_result(result: EvaluationResult, source: str) -> None:
    counted = int(result.counted.sum())
    skipped = result.n_queries - counted
    click.echo(
        f"{counted} {'query' if counted == 1 else 'queries'} from {_one_line(source)}"
        + (f" ({skipped} more skipped: no ground truth)" if skipped else "")
        + "\n"
    )
    for start in range(0, len(result.k), _COLUMNS):
        cutoffs = result.k[start : start + _COLUMNS]
        averages = [result.averages(k) for k in cutoffs]
        rows = {key: [one[key] for one in averages] for key in averages[0]}
        _print_table("metric", [f"@{spelled(k)}" for k in cutoffs], rows)
    for line in _wrapped(f"signature: {result.signature}", _WIDTH):
        click.echo(line)


def _print_table(corner: str, header: Sequence[str], rows: Mapping[str, Sequence[float]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(corner, no_wrap=True)
    for name in header:
        table.add_column(name, justify="right", no_wrap=True)
    for name, values in rows.items():
        table.add_row(name, *(f"{value:.4f}" if value == value else "-" for value in values))
    _print_rich(table)
    click.echo()


def _print_rich(table: Table) -> None:
    from rich.console import Console

    # Wide enough that no number is cut, whatever the window.
    console = Console(width=_WIDTH, highlight=False, markup=False, emoji=False)
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


@contextmanager
def _warnings_as(prefix: str) -> Iterator[None]:
    """Print each of our own warnings as one line; leave other warnings as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", KragEvalWarning)
        show_others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, KragEvalWarning):
                click.echo(f"{prefix}: {_one_line(_in_shell_words(str(message)))}", err=True)
            else:
                show_others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _is_refusal(error: BaseException) -> bool:
    """Tell bad input from a mistake of ours: our own code refused it by a ``raise``.

    An operation that fails inside our code, or an error of another package, is a mistake.
    """
    if isinstance(error, OSError | click.ClickException):
        return True
    innermost = error.__traceback__
    while innermost and innermost.tb_next:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    frame = innermost.tb_frame
    ours = frame.f_globals.get("__name__", "").partition(".")[0] == "krag_eval"
    return ours and frame.f_code.co_code[innermost.tb_lasti] == opmap["RAISE_VARARGS"]


def _problem(error: Exception) -> str:
    if isinstance(error, click.UsageError) and error.ctx:
        return f"{error.format_message()} (see {error.ctx.command_path} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return _in_shell_words(str(error))


def _in_shell_words(message: str) -> str:
    """Name options as they are typed in a shell.

    >>> _in_shell_words('Try matcher="contains".')
    'Try --matcher contains.'
    """
    worded = _ASSIGNMENT.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    return worded.replace("None (or 'all') for all", "'all' for all")


def _one_line(text: str, longest: int = 1000) -> str:
    """Keep a message on one line of harmless characters, its beginning and end at least."""
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 2 :]}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in " ".join(text.split())
    )


def _never_fail_to_encode() -> None:
    """A question in a script the terminal cannot show is escaped, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
