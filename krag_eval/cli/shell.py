"""How the command answers: exit codes, one line for input it refuses, options by their names.

Exit codes: 0; 1 for a result that is not good enough, which is a verdict and nothing else, with one
line on standard error for each reason; 2 for input that cannot be used, with one line on standard
error, and for a bug, with a traceback; 130 when interrupted; 141 when standard output is closed
before a command without a verdict has ended.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from contextvars import ContextVar
from enum import IntEnum
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO, cast

import click

from krag_eval.cli.help import Command
from krag_eval.core import N_, Advice, InvalidInput, KragEvalWarning, Refusal, _, errors, speaking
from krag_eval.core.language import SPOKEN

_NO_VERDICT = 2
_INTERRUPTED = 130
_STDOUT_CLOSED = 141
# Commands that read what another one saved: advice may name its options too.
_SAVED_BY = {"compare": "evaluate", "gate": "evaluate", "plan": "evaluate"}


class Verdict(IntEnum):
    """Whether a result is good enough, as an exit code."""

    GOOD_ENOUGH = 0
    NOT_GOOD_ENOUGH = 1


class Shell(Command, click.Group):
    """A command group that answers bad input with one line and a bug with a traceback.

    Args:
        name: The name of the program.
        commands: The commands, by name.
        sections: Title -> the names of the commands that the help lists below it.
        **settings: What a group of click takes.
    """

    def __init__(
        self,
        name: str,
        commands: Mapping[str, click.Command],
        sections: Mapping[str, Sequence[str]],
        **settings: Any,
    ) -> None:
        listed = [command for names in sections.values() for command in names]
        commands = {name: commands[name] for name in [*listed, *commands] if name in commands}
        # main() asks for it; click before 8.2 also shows the help for a path in place of a command.
        super().__init__(name, commands, no_args_is_help=False, **settings)
        self._sections = sections
        self._others = [name for name in commands if name not in listed]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what they are for."""
        longest = max(map(len, self.commands))
        for title, names in self._sections.items():
            last = title == [*self._sections][-1]
            named = [*names, *(self._others if last else ())]
            lines = [
                (name.ljust(longest), self.commands[name].get_short_help_str(limit=80))
                for name in named
                if name in self.commands
            ]
            if lines:
                with formatter.section(_(title)):
                    formatter.write_dl(lines)

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
            with speaking(None):
                return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        if not (sys.argv[1:] if args is None else args):
            args = ["--help"]
        failure: BaseException | None = None
        with _lasting_streams() as stdout, speaking(None):
            try:
                answer = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
                if sys.stdout is not None:
                    sys.stdout.flush()
                code = _STDOUT_CLOSED if stdout is not None and stdout.is_closed else 0
                if isinstance(answer, Verdict):
                    code = int(answer)
            except BaseException as error:
                SPOKEN.set("en")  # as all errors are
                code, failure = _explained(error), error
        raise SystemExit(code) from failure

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by its name.

        Raises:
            InvalidInput: If there is none, with what was probably meant.
        """
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(name.lower(), self.commands, n=3)
        meant = f"did you mean {' or '.join(near)}?" if near else "krag-eval --help lists them"
        if Path(name).suffix or os.path.exists(name):
            meant = f"to evaluate a file, type 'krag-eval evaluate {name}'"
        raise InvalidInput("", f"there is no command {errors.clipped(name)}", meant)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a refusal is worded with the options of that command.

        Raises:
            click.ClickException: If input is refused, or a pipe broke that is none of our streams,
                for which click would exit with 1.
        """
        typed = [*ctx.args]
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            with speaking("en"):  # as all errors are
                raise _advised(error, typed) from None
        except BrokenPipeError as error:
            raise click.ClickException(str(error)) from error
        except Refusal as error:
            raise click.ClickException(self.worded(error, ctx.invoked_subcommand)) from error

    def worded(self, message: Refusal | KragEvalWarning, command: str | None) -> str:
        """Return a message with options in place of arguments; advice for Python is left out."""
        own = self._parameters(command)
        known, fix = self._parameters(_SAVED_BY.get(command or "")) | own, message.fix
        if isinstance(fix, Advice):
            try:
                fix = fix.worded(lambda name, value: _setting(known[name], value))
            except KeyError:  # the command has no such option
                fix = ""
        if isinstance(message, KragEvalWarning):
            return message.worded(fix)
        if message.place is None and message.argument in own:
            return message.worded(_typed(own[message.argument]), fix)
        stands_alone = message.place is None and message.query is None
        is_told = stands_alone and message.problem.startswith(":")
        return message.worded("" if is_told else message.argument, fix)

    def _parameters(self, command: str | None) -> dict[str, click.Parameter]:
        """Return the arguments and options of a command by their names in Python."""
        known = self.commands.get(command or "")
        parameters = {one.name or "": one for one in known.params} if known else {}
        # Of a table they are columns, which Python calls "actual" and so on.
        return {name.removesuffix("_field"): one for name, one in parameters.items()} | parameters


# What is typed for an option out of habit -> what it is called here, where a command has it.
_HABITS = {
    **dict.fromkeys(("--out", "--output", "-o"), "--json"),
    **dict.fromkeys(("--k", "--topk", "--top-k"), "-k"),
    "--model": "--matcher",
    "-f": "--format",
    "-M": "-m",
}
_CUTOFF = re.compile("[0-9]+[wct]?|all")


def _advised(error: click.UsageError, typed: Sequence[str]) -> click.UsageError:
    """Add to a refusal of click's what was probably meant, or what is missing, if known."""
    command, advice = error.ctx.command if error.ctx else click.Command(""), None
    problem = error.format_message()
    if isinstance(error, click.NoSuchOption):
        meant = _HABITS.get(error.option_name)
        if any(meant in one.opts for one in command.params):
            problem, advice = f"No such option {error.option_name!r}.", f"Did you mean {meant!r}?"
    elif isinstance(error, click.MissingParameter):
        advice = getattr(error.param, "help", None)
    elif type(error) is click.UsageError:  # words that are left over
        after = typed[typed.index("-k") + 1 :] if "-k" in typed else []
        cutoffs = [*takewhile(_CUTOFF.fullmatch, after)]
        pieces = command.collect_usage_pieces(cast(click.Context, error.ctx))
        files = [one for one in typed if os.path.isfile(one)]
        problem += "."
        if len(cutoffs) > 1:
            advice = f"Write -k {','.join(cutoffs)}."
        elif command.name == "evaluate":
            files = files if len(files) > 1 else ["FILE", "FILE", "..."]
            advice = f"To compare files, type 'krag-eval compare {shlex.join(files)}'."
        elif "QUERY" in pieces:
            advice = "Put a question with spaces in quotes."
        takes = f"{command.name} takes {' '.join(pieces[1:]) or 'options alone'}."
        advice = f"{advice} {takes}" if advice else takes
    return click.UsageError(f"{problem} {advice}", error.ctx) if advice else error


def _setting(option: click.Parameter, value: object) -> str:
    """Return a setting as it is typed; ``...`` is a value of the user's own.

    Raises:
        KeyError: If the option takes none of the user's own.
    """
    if value is ... and isinstance(option.type, click.Choice):
        raise KeyError(option.name)
    if value is ...:
        return f"{_typed(option)} {option.metavar or (option.name or '').upper()}"
    if isinstance(option, click.Option) and option.is_flag:
        return (option.opts if value else option.secondary_opts)[0]
    return f"{_typed(option)} {shlex.quote(str(value))}"


def _typed(parameter: click.Parameter) -> str:
    """Return how an option is typed, or what the help calls an argument.

    >>> _typed(click.Option(["--jobs", "n_jobs"])), _typed(click.Argument(["new"]))
    ('--jobs', 'NEW')
    >>> _typed(click.Argument(["runs"], metavar="RUN..."))
    'RUN'
    """
    if isinstance(parameter, click.Option):
        return parameter.opts[0]
    return (parameter.metavar or (parameter.name or "").upper()).split()[0].removesuffix("...")


def _explained(error: BaseException) -> int:
    """Say on standard error why there is no verdict, and return the exit code."""
    if isinstance(error, click.Abort | SystemExit) and error.__context__ is not None:
        return _explained(error.__context__)  # click and others end so what went wrong within
    if isinstance(error, click.Abort | KeyboardInterrupt):
        for note in _notes(error):  # what is kept
            click.echo(printable(note), err=True)
        return _INTERRUPTED
    if isinstance(error, SystemExit):  # as after the completion of a word
        return _NO_VERDICT if error.code else 0
    if isinstance(error, click.ClickException | OSError | Refusal):
        if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument):
            called = cast(click.Context, error.ctx)
            example = called.command.epilog
            click.echo("\n".join(filter(None, [called.get_usage(), example])), err=True)
        click.echo(f"krag-eval: error: {printable(_problem(error))}", err=True)
        for note in _notes(error):
            click.echo(printable(note), err=True)
    elif isinstance(error, MemoryError):
        click.echo("krag-eval: error: out of memory; evaluate a smaller file, or fewer queries "
                   "at a time by --chunk-size.", err=True)  # fmt: skip
    else:
        traceback.print_exception(error)
    return _NO_VERDICT


#: Where a command keeps the warnings that it will print.
WARNED = "krag_eval.warned"
# How a warning of the moment begins.
_PREFIX: ContextVar[str] = ContextVar("krag_eval_warning")


def warnings_as(kind: str = N_("warning"), name: str = "") -> AbstractContextManager[str]:
    """Begin each of our warnings with a kind, "warning" or "note", and the name it is about."""
    return errors.meanwhile(_PREFIX, _(kind) + (f": {name}" if name else ""))


@contextmanager
def warnings_below() -> Iterator[None]:
    """Print each of our own warnings as one line, below what is printed within; leave others be.

    Above a table it would be out of sight.
    """
    context = click.get_current_context()
    shell = cast(Shell, context.find_root().command)
    lines: list[str] = context.meta.setdefault(WARNED, [])
    with warnings.catch_warnings(), warnings_as():
        warnings.simplefilter("always", KragEvalWarning)
        show_others = warnings.showwarning

        def show(message: Warning | str, *where: Any, **others: Any) -> None:
            if isinstance(message, KragEvalWarning):
                said = printable(shell.worded(message, context.command.name))
                lines.append(f"{_PREFIX.get()}: {said}")
                if message.at_once:
                    click.echo(lines.pop(), err=True)
            else:
                show_others(message, *where, **others)

        warnings.showwarning = show
        try:
            yield
        finally:
            for line in lines:
                click.echo(line, err=True)


def _problem(error: click.ClickException | OSError | Refusal) -> str:
    if isinstance(error, click.UsageError) and error.ctx:
        return f"{error.format_message()} (see {error.ctx.command_path} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


def _notes(error: BaseException) -> list[str]:
    """Return what was noted of an error: which cell it was in, what is kept; no tracebacks."""
    noted = error.__cause__ if isinstance(error.__cause__, Refusal) else error
    return [note for note in getattr(noted, "__notes__", ()) if "\n" not in note]


class _LastingStream(io.FileIO):
    """The bytes of a standard stream; once its reader is gone, what is written is dropped.

    So ``krag-eval gate … | head -1`` ends with the code of its verdict, and every file asked for is
    written.
    """

    is_lost = False
    is_closed = False

    def write(self, data: Any) -> int:
        """Write, unless an earlier attempt failed.

        Raises:
            OSError: If it cannot be written, as to a full disk, naming standard output.
        """
        if self.is_lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self.is_lost = True
            self.is_closed = isinstance(error, BrokenPipeError)
            if self.is_closed or self.fileno() != 1:
                return len(data)
            raise OSError(error.errno, error.strerror, "standard output") from error


@contextmanager
def _lasting_streams() -> Iterator[_LastingStream | None]:
    """Replace the standard streams by ones that outlast their reader; yield standard output."""
    raw: dict[str, _LastingStream] = {}
    with ExitStack() as stack:
        for name, redirect in (("stdout", redirect_stdout), ("stderr", redirect_stderr)):
            stream = getattr(sys, name)
            # It may be closed, or none of the system's.
            with suppress(AttributeError, OSError, ValueError):
                _flush(stream)
                raw[name] = _LastingStream(stream.fileno(), "wb", closefd=False)
                text = io.TextIOWrapper(
                    io.BufferedWriter(raw[name]),
                    encoding=stream.encoding,
                    # A question in a script the terminal cannot show is escaped, not a crash.
                    errors="backslashreplace",
                    line_buffering=stream.line_buffering,
                )
                stack.enter_context(redirect(text))
                stack.callback(_flush, text)
        yield raw.get("stdout")


def _flush(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        stream.flush()


def printable(text: str, longest: int = 1000) -> str:
    r"""Return text on one line, unprintable characters escaped, the middle of a long one cut out.

    >>> printable("a name\nwith a line end")
    'a name with a line end'
    """
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 2 :]}"
    return errors.one_line(" ".join(text.split()))
