"""How the command answers: bad input with one line, a mistake of ours with a traceback.

Exit codes: 0; 1 for a result that is not good enough, with one line on standard error for each
reason; 2 for input that cannot be used, with one line on standard error; 130 when interrupted. A
mistake of ours ends in a traceback and 1.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dis import opmap
from typing import Any, TextIO

import click

from krag_eval.cli.wording import in_shell_words, one_line
from krag_eval.messages import KragEvalWarning

__all__ = ["Shell", "is_refusal", "warnings_as"]

_BAD_INPUT = 2
_INTERRUPTED = 130


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
        _never_fail_to_encode()
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            code = _INTERRUPTED
        except (click.ClickException, ValueError, TypeError, OSError, ImportError) as error:
            if not is_refusal(error):
                raise
            click.echo(f"krag-eval: error: {one_line(_problem(error))}", err=True)
            code = _BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)


def is_refusal(error: BaseException) -> bool:
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


def _never_fail_to_encode() -> None:
    """A question in a script the terminal cannot show is escaped, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
