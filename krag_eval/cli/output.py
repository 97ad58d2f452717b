"""What a command prints, and the files it writes: checked first, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import click

from krag_eval.cli.shell import WARNED, printable
from krag_eval.core import InvalidInput, Language, _, check_apart, replacing, spelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.comparison.gates import GateReport
    from krag_eval.core import Page
    from krag_eval.diagnosis.diagnosis import Diagnosis
    from krag_eval.result import EvaluationResult

#: Text whose name has no prescribed ending, so that '-' may be standard output.
STREAMED = ("json", "csv", "markdown", "latex", "format")
# Files whose kind follows from the ending of their name; plots have theirs from plotting.
_ENDINGS = {
    "report": (".html", ".htm"),
    "page": (".html", ".htm"),
    "per_query": (".parquet", ".csv"),
    "to_judge": (".csv",),
    "html": (".html", ".htm"),
    "output": (".jsonl", ".csv", ".parquet", ".gz"),
}


@dataclass(frozen=True)
class StandardOutput:
    """Standard output as the place of one output; everything else is printed elsewhere."""

    stream: TextIO = field(default_factory=lambda: sys.stdout)


Target: TypeAlias = "Path | StandardOutput"


class Outputs(dict[str, Target]):
    """Where to write what was asked for, by the name of its option in Python.

    Attributes:
        format: How to print what is printed.
        language: The language of the report; ``None`` for that of everything else.
    """

    format: str = "table"
    language: Language | None = None


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
    stdin = [option for option, file in sources if file == "-"]
    if len(stdin) > 1:
        raise InvalidInput(stdin[1], ": standard input can be read only once", "name a file")
    if outputs.language is not None and "report" not in given:
        raise InvalidInput("report_language", "is about --report, and none was asked for")
    if outputs.format != "table":
        given["format"] = "-"
    given |= {name: "-" for name, file in given.items() if _is_standard_output(name, file)}
    streamed = [option for option, name in given.items() if name == "-"]
    if len(streamed) > 1:
        raise InvalidInput(streamed[1], ": only one output can be - (standard output)")
    outputs |= {option: _checked_output(option, name) for option, name in given.items()}
    check_not_read(outputs, [file for _, file in sources])
    for option, name in given.items():
        endings: Sequence[str] = _ENDINGS.get(option, ())
        if option == "plot":
            from krag_eval import plotting

            endings = plotting.PLOT_FORMATS
        if endings and Path(name).suffix.lower() not in endings:
            raise InvalidInput(option, f": {name} must end in one of {', '.join(endings)}")
    return outputs


def _is_standard_output(option: str, name: str) -> bool:
    """Tell whether a name, as /dev/stdout, leads to standard output and a text may be there."""
    descriptor = _descriptor(sys.stdout)
    if option not in STREAMED or descriptor is None:
        return False
    try:
        return os.path.samestat(os.stat(name), os.fstat(descriptor))
    except (OSError, ValueError):
        return False


def _checked_output(option: str, name: str) -> Target:
    """Return where a file will be written; through a link, the file it points to."""
    if name == "-" and option not in STREAMED:
        options = ", ".join(f"--{one}" for one in STREAMED if one != "format")
        problem = f": - is standard output, which {options} alone can be written to"
        raise InvalidInput(option, problem, "name a file")
    if name == "-":
        if getattr(sys.stdout, "buffer", None) is None:
            raise InvalidInput(option, ": - is standard output, which is closed", "name a file")
        return StandardOutput()
    path = Path(os.path.realpath(name))
    # The name itself: what a pipe is called behind /dev/fd/63 is no path.
    if os.path.exists(name) and not os.path.isfile(name):
        kind = "a directory" if path.is_dir() else "not a regular file"
        fix = "name a file, or - for standard output" if option in STREAMED else "name a file"
        raise InvalidInput(option, f": {name} is {kind}", fix)
    if not path.parent.is_dir():
        raise InvalidInput(option, f": there is no directory {path.parent}", "create it first")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(option, f": the directory {path.parent} cannot be written to")
    return path


def check_not_read(targets: Mapping[str, Target], sources: Iterable[str]) -> None:
    """Refuse an output among the files that are read.

    Raises:
        InvalidInput: Naming the option.
    """
    from krag_eval.streaming.queries import is_read_in_directories

    written = {
        option: _descriptor(target.stream) if isinstance(target, StandardOutput) else target
        for option, target in targets.items()
    }
    read = [_descriptor(sys.stdin) if source == "-" else source for source in sources]
    rows = targets.get("per_query")  # the progress of a run is kept beside them
    check_apart(
        {option: place for option, place in written.items() if place is not None},
        [source for source in read if source is not None],
        is_read=is_read_in_directories,
        folders={"per_query": Path(f"{rows}.partial")} if rows else None,
    )


def _descriptor(stream: TextIO) -> int | None:
    """Return what the operating system calls a stream; ``None`` if it is not a file of its own."""
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def printing_beside(outputs: Mapping[str, Target]) -> AbstractContextManager[object]:
    """Print to standard error meanwhile, if an output goes to standard output."""
    streamed = any(isinstance(target, StandardOutput) for target in outputs.values())
    return redirect_stdout(sys.stderr) if streamed else nullcontext()


def emit(
    outputs: Outputs,
    page: Callable[[], Page],
    content: Callable[[], Mapping[str, Any]],
    rows: Callable[[], pd.DataFrame],
    formats: Mapping[str, Callable[[], str]] = MappingProxyType({}),
    report: Callable[..., object] | None = None,
    **files: tuple[Callable[..., Any], str],
) -> None:
    """Print what was found in the form that was asked for, then write its files.

    Args:
        outputs: What was asked for.
        page: What people read, as lines or as Markdown.
        content: What JSON holds.
        rows: What CSV holds.
        formats: The text of further formats.
        report: Writes an HTML report in a language.
        **files: What else may be written, by option: what returns the rows of CSV or draws a plot,
            else what writes a file; and what it is called.
    """
    texts = {
        "json": lambda: json_of(_concluded(content(), page())),
        "csv": lambda: csv_of(rows()),
        "markdown": lambda: page().markdown(),
        **formats,
    }
    if outputs.format == "table":
        show(page())
    else:
        write_text(texts[outputs.format](), outputs["format"])
    if report is not None:
        files["report"] = partial(report, language=outputs.language), _("an HTML report")
    write_files(outputs, files)


def _concluded(content: Mapping[str, Any], page: Page) -> dict[str, Any]:
    """Put what it comes to before what JSON holds; warnings are advice, too."""
    told = page.concluded
    warned = click.get_current_context().meta[WARNED]
    told["advice"] += [line.partition(": ")[2] for line in warned]
    return {**told, **content}


def show(page: Page) -> None:
    """Print a page in the width of the terminal."""
    if told := page.text(terminal_width()):
        click.echo(told)


def write_files(outputs: Outputs, files: Mapping[str, tuple[Callable[..., Any], str]]) -> None:
    """Write every file asked for, and say so; each appears complete or not at all."""
    for option, (made, what) in files.items():
        if target := outputs.get(option):
            write = _WRITERS.get(option)
            made(target) if write is None else write(made, target)
            if isinstance(target, Path):
                click.echo(_("wrote {} ({})").format(printable(str(target)), what))


def write_text(text: str, target: Target) -> None:
    """Write a text, in UTF-8 whatever the terminal can show."""
    if isinstance(target, StandardOutput):
        target.stream.flush()
        target.stream.buffer.write(text.encode("utf-8"))
        target.stream.buffer.flush()
        return
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def json_of(content: Any) -> str:
    """Return the text of a JSON file; what is undefined or infinite is ``null``.

    >>> print(json_of({"mean_rank@5": float("nan"), "effect_size": float("-inf")}))
    {
      "mean_rank@5": null,
      "effect_size": null
    }
    <BLANKLINE>
    """
    text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, indent=2)
    return text + "\n"


def _finite(content: Any) -> Any:
    """Return content with ``None`` for every number that JSON cannot write."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {name: _finite(value) for name, value in content.items()}
    return list(map(_finite, content)) if isinstance(content, list | tuple) else content


def csv_of(rows: pd.DataFrame) -> str:
    """Return the text of a CSV file; what is not known leaves its cell empty."""
    from krag_eval.core.results.rows import csv_lines

    known = _known(rows)
    return "".join(csv_lines({name: known[name] for name in known.columns}))


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with ``None`` for what is not known."""
    return rows.astype(object).where(rows.notna(), None)


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON has them; what is not known is ``None``."""
    return [{str(name): one for name, one in row.items()}
            for row in _known(rows).to_dict("records")]  # fmt: skip


def waterfall_of(found: Diagnosis) -> pd.DataFrame:
    """Return the waterfall of a diagnosis as it is shown, one row per class."""
    from krag_eval.core import page_of

    by_class = page_of(found).tables[0].frame().set_index("class")
    return by_class.loc[[*found.waterfall().index]].reset_index()


# What is told of a passage that is not in the index.
_MISSING = ("query", "position", "item", "looked_for", "nearest_chunk", "nearest_text")


def diagnosed(found: Diagnosis) -> dict[str, Any]:
    """Return what a diagnosis found, as an entry of a JSON object."""
    return {
        "k": spelled(found.k),
        "n_items": len(found.items),
        "n_chunks": found.n_chunks,
        "looked_up": None if found.looked_up is None else found.looked_up._asdict(),
        "classes": records_of(waterfall_of(found)),
        "counts": found.counts,
        "not_in_index": [
            {name: getattr(item, name) for name in _MISSING}
            for item in found.items
            if item.looked_for
        ],
    }


def write_json(
    result: EvaluationResult,
    target: Target,
    *,
    texts: bool = False,
    gate: GateReport | None = None,
) -> None:
    """Save a result, with what became of the gate that it was held to."""
    from krag_eval.core.results.saved import as_text

    if isinstance(target, StandardOutput):
        noted = result if gate is None else gate.noted_on(result)
        write_text(as_text(noted, "-", texts=texts), target)
    else:
        result.to_json(target, texts=texts, gate=gate)


def rows_of(result: EvaluationResult) -> pd.DataFrame:
    """Return the per-query tables of all cutoffs below each other."""
    import pandas as pd

    rows = pd.concat([result.per_query(k).assign(k=spelled(k)) for k in result.k])
    rows.insert(0, "k", rows.pop("k"))
    return rows.reset_index()


def _write_plot(draw: Callable[[Axes], object], path: Path) -> None:
    from krag_eval.plotting import save_plot

    with replacing(path) as temporary:
        save_plot(temporary, draw)


# How a file is written that is not a text or a page.
_WRITERS: Mapping[str, Callable[..., None]] = {
    "csv": lambda rows, target: write_text(csv_of(rows()), target),
    "plot": _write_plot,
}


# The columns that everything fits into where it is not printed to a terminal, and at the least.
_WIDTH, _NARROWEST = 100, 60


def terminal_width() -> int:
    """Return the columns that everything fits into: those of the terminal, if it is one."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return _WIDTH
    return max(columns, _NARROWEST) if columns else _WIDTH


def signed(signature: str) -> str:
    """Return the line that says what the numbers depend on."""
    return _("signature: ") + signature
