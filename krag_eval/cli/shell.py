"""How the command answers: bad input with one line, a mistake of ours with a traceback.

Exit codes: 0; 1 for a result that is not good enough, which is a verdict and nothing else, with one
line on standard error for each reason; 2 for input that cannot be used, with one line on standard
error, and for a mistake of ours, with a traceback; 130 when interrupted; 141 when nobody reads
standard output any more and there is no verdict.
"""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from enum import IntEnum
from typing import IO, Any, TextIO, cast

import click

from krag_eval._errors import KragEvalWarning, refused_by_us

__all__ = [
    "Shell",
    "Verdict",
    "in_shell_words",
    "is_refusal",
    "one_line",
    "warnings_as",
]

_NO_VERDICT = 2
_INTERRUPTED = 130
_NOBODY_READS = 141
_REFUSALS = (click.ClickException, ValueError, TypeError, OSError, ImportError)


class Verdict(IntEnum):
    """Whether a result is good enough, as an exit code."""

    GOOD_ENOUGH = 0
    NOT_GOOD_ENOUGH = 1


class Shell(click.Group):
    """A command group that answers bad input with one line and a bug with a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and end the process with its exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        failure: BaseException | None = None
        with _lasting_streams() as stdout:
            try:
                answer = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
                code = _code_of(answer, stdout)
            except BaseException as error:
                code, failure = _explained(error), error
        raise SystemExit(code) from failure

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; of a pipe that broke within, not at our streams, click would say 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise click.ClickException(str(error)) from error


def _code_of(answer: object, stdout: _LastingStream | None) -> int:
    """Return the exit code of a command that went through."""
    if sys.stdout is not None:
        sys.stdout.flush()
    if isinstance(answer, Verdict):
        return int(answer)
    return _NOBODY_READS if stdout is not None and stdout.is_closed else 0


def _explained(error: BaseException) -> int:
    """Say on standard error why there is no verdict, and return the exit code."""
    if isinstance(error, click.Abort | SystemExit) and error.__context__ is not None:
        return _explained(error.__context__)  # click and others end so what went wrong within
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, SystemExit):  # as after the completion of a word
        return _NO_VERDICT if error.code else 0
    if isinstance(error, _REFUSALS) and is_refusal(error):
        click.echo(f"krag-eval: error: {one_line(_problem(error))}", err=True)
    elif isinstance(error, MemoryError):
        click.echo("krag-eval: error: out of memory; evaluate a smaller file, or fewer queries "
                   "at a time by --chunk-size.", err=True)  # fmt: skip
    else:
        traceback.print_exception(error)
    return _NO_VERDICT


def is_refusal(error: BaseException) -> bool:
    """Tell bad input from a mistake of ours: our own code refused it by a ``raise``.

    An operation that fails inside our code, or an error of another package, is a mistake.
    """
    return isinstance(error, OSError | click.ClickException) or refused_by_us(error)


@contextmanager
def warnings_as(prefix: str) -> Iterator[None]:
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
                click.echo(f"{prefix}: {one_line(in_shell_words(str(message)))}", err=True)
            else:
                show_others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _problem(error: Exception) -> str:
    if isinstance(error, click.UsageError) and error.ctx:
        return f"{error.format_message()} (see {error.ctx.command_path} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return in_shell_words(str(error))


class _LastingStream(io.RawIOBase):
    """The bytes of a standard stream; when nobody reads it any more, the command goes on unread.

    So ``krag-eval gate … | head -1`` ends with the code of its verdict, and every file asked for is
    written.
    """

    def __init__(self, stream: IO[bytes], name: str, *, must_be_written: bool) -> None:
        self._stream = getattr(stream, "raw", stream)
        self._name = name
        self._must_be_written = must_be_written
        self._is_lost = False
        self.is_closed = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return int(self._stream.fileno())

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return bool(self._stream.isatty())

    def write(self, data: Any) -> int | None:
        """Write, unless an earlier attempt showed that it is in vain.

        Raises:
            OSError: If it cannot be written, as to a full disk, naming the stream.
        """
        if self._is_lost:
            return len(data)
        try:
            return cast("int | None", self._stream.write(data))
        except OSError as error:
            self._is_lost = True
            self.is_closed = isinstance(error, BrokenPipeError)
            self._point_nowhere()
            if self.is_closed or not self._must_be_written:
                return len(data)
            raise OSError(error.errno, error.strerror, self._name) from error

    def _point_nowhere(self) -> None:
        """Let what others still hold for this stream be flushed without harm."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)


@contextmanager
def _lasting_streams() -> Iterator[_LastingStream | None]:
    """Put standard streams in place that outlast their reader; yield standard output."""
    with ExitStack() as stack:
        stdout = _lasting(sys.stdout, "standard output", must_be_written=True)
        stderr = _lasting(sys.stderr, "standard error", must_be_written=False)
        for stream, redirect in ((stdout, redirect_stdout), (stderr, redirect_stderr)):
            if stream is not None:
                text, _ = stream
                stack.enter_context(redirect(text))
                stack.callback(_flush, text)
        yield None if stdout is None else stdout[1]


def _lasting(
    stream: TextIO | None, name: str, *, must_be_written: bool
) -> tuple[TextIO, _LastingStream] | None:
    """Return a stream in place of another; none for what is no stream of bytes."""
    binary = getattr(stream, "buffer", None)
    if stream is None or binary is None:
        return None
    _flush(stream)
    raw = _LastingStream(binary, name, must_be_written=must_be_written)
    text = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        # A question in a script the terminal cannot show is escaped, not a crash.
        errors="backslashreplace",
        line_buffering=getattr(stream, "line_buffering", False),
    )
    return text, raw


def _flush(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        stream.flush()


# How a Python message names an option: matcher="contains" is --matcher contains here.
_ASSIGNMENT = re.compile(
    r"\b(matcher|conventions|no_ground_truth|question_field|actual_field|predicted_field"
    r'|missing|scores)="([^"]*)"'
)
# How a Python message begins that is about an argument named otherwise here.
_BEGINNINGS = {
    "results: ": "",
    "metric and max_drop are": "--metric and --max-drop are",
    "metric: ": "--metric: ",
    "metric must": "--metric must",
    "max_drop must": "--max-drop must",
    "floors: ": "--fail-under: ",
    "n_jobs must": "--jobs must",
    "a floor": "--fail-under: a floor",
    "per_query: ": "--per-query: ",
}
# What a Python message says to do, and how it is done here.
_REMEDIES = {
    "None (or 'all') for all": "'all' for all",
    "name it in evaluate(k=[…])": "name it by -k when evaluating",
    "evaluate with per_query=… to write": "evaluate again with --per-query OUT to write",
    'averaging_method="micro"': "--averaging micro",
    'averaging_method="both"': "--averaging both",
    "(resume=False)": "(--no-resume)",
    "pass resume=False to start anew": "give --no-resume to start anew",
    "give floors, or a baseline and a metric": "give --fail-under, or --baseline and --metric",
}


def in_shell_words(message: str) -> str:
    """Name options as they are typed in a shell.

    >>> in_shell_words('Try matcher="contains".')
    'Try --matcher contains.'
    >>> in_shell_words("max_drop must be a number of at least 0, got -1.")
    '--max-drop must be a number of at least 0, got -1.'
    """
    worded = _ASSIGNMENT.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    for beginning, ours in _BEGINNINGS.items():
        if worded.startswith(beginning):
            worded = ours + worded.removeprefix(beginning)
            break
    for remedy, ours in _REMEDIES.items():
        worded = worded.replace(remedy, ours)
    return worded


def one_line(text: str, longest: int = 1000) -> str:
    r"""Keep a message on one line of harmless characters, its beginning and end at least.

    >>> one_line("a name\nwith a line end")
    'a name with a line end'
    """
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 2 :]}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in " ".join(text.split())
    )
