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
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from enum import IntEnum
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, TextIO, TypeAlias, cast

import click

from krag_eval._language import N_, SPOKEN, _, speaking
from krag_eval.cli.help import Command
from krag_eval.errors import Advice, KragEvalWarning, Refusal, clipped, one_line, sentence

_NO_VERDICT = 2
_INTERRUPTED = 130
_STDOUT_CLOSED = 141
# Commands that read what another one saved: advice may name its options too.
_SAVED_BY = {"compare": "evaluate", "gate": "evaluate", "plan": "evaluate"}

# Where a context keeps the warnings to print.
_HELD = f"{__name__}.held"

Parameters: TypeAlias = Mapping[str, click.Parameter]


class Verdict(IntEnum):
    """Whether a result is good enough, as an exit code."""

    GOOD_ENOUGH = 0
    NOT_GOOD_ENOUGH = 1


class Shell(Command, click.Group):
    """A command group that answers bad input with one line and a bug with a traceback.

    Args:
        name: The name of the program.
        sections: Title -> the commands that the help lists below it.
        **settings: What a group of click takes.
    """

    def __init__(
        self, name: str, sections: Mapping[str, Sequence[click.Command]], **settings: Any
    ) -> None:
        commands = {one.name or "": one for several in sections.values() for one in several}
        # main() asks for it; click before 8.2 also shows the help for a path in place of a command.
        super().__init__(name, commands, no_args_is_help=False, **settings)
        self._sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what they are for."""
        longest = max(map(len, self.commands))
        for title, commands in self._sections.items():
            with formatter.section(_(title)):
                formatter.write_dl(
                    [
                        ((one.name or "").ljust(longest), one.get_short_help_str(limit=80))
                        for one in commands
                    ]
                )

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
                code = _code_of(answer, stdout)
            except BaseException as error:
                SPOKEN.set("en")  # as all errors are
                code, failure = _explained(self._guessed(error, args)), error
        raise SystemExit(code) from failure

    def _guessed(self, error: BaseException, args: Sequence[str] | None) -> BaseException:
        """Return an error; that of a word which is nothing here, with what was probably meant."""
        if isinstance(error, Refusal):
            return click.ClickException(self.worded(error, None))
        typed = sys.argv[1:] if args is None else list(args)
        if isinstance(error, click.UsageError) and error.ctx and error.ctx.command is not self:
            return _with_advice(error, error.ctx, typed)
        is_ours = isinstance(error, click.UsageError) and error.ctx and error.ctx.command is self
        if not is_ours or not typed or typed[0].startswith("-") or typed[0] in self.commands:
            return error
        problem = f"there is no command {clipped(typed[0])}"
        if Path(typed[0]).suffix or os.path.exists(typed[0]):
            meant = f"to evaluate a file, type 'krag-eval evaluate {typed[0]}'"
        else:
            near = difflib.get_close_matches(typed[0].lower(), self.commands, n=3)
            meant = f"did you mean {' or '.join(near)}?" if near else "krag-eval --help lists them"
        return click.ClickException(sentence(problem, meant))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a refusal is worded with the options of that command.

        Raises:
            click.ClickException: If input is refused, or a pipe broke that is none of our streams,
                for which click would exit with 1.
        """
        try:
            return super().invoke(ctx)
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
        return message.worded(_subject(message, own), fix)

    def _parameters(self, command: str | None) -> dict[str, click.Parameter]:
        """Return the arguments and options of a command by their names in Python."""
        known = self.commands.get(command or "")
        parameters = {one.name or "": one for one in known.params} if known else {}
        # Of a table they are columns, which Python calls "actual" and so on.
        return {name.removesuffix("_field"): one for name, one in parameters.items()} | parameters


# What is typed for an option out of habit -> what it is called here, where a command has it.
_HABITS = {
    "--out": "--json",
    "--output": "--json",
    "-o": "--json",
    "--model": "--matcher",
    "--k": "-k",
    "--topk": "-k",
    "--top-k": "-k",
    "-f": "--format",
    "-M": "-m",
}
_CUTOFF = re.compile("[0-9]+[wct]?|all")


def _with_advice(
    error: click.UsageError, context: click.Context, typed: Sequence[str]
) -> click.UsageError:
    """Return a refusal of click's with what was probably meant, or what is missing, if known."""
    parameters = context.command.params
    if isinstance(error, click.NoSuchOption):
        meant = _HABITS.get(error.option_name)
        if any(meant in one.opts for one in parameters):
            problem = f"No such option {error.option_name!r}. Did you mean {meant!r}?"
            return click.UsageError(problem, context)
    elif isinstance(error, click.MissingParameter):
        if isinstance(error.param, click.Option) and error.param.help:
            return click.UsageError(f"{error.format_message()} {error.param.help}", context)
    elif type(error) is click.UsageError:  # words that are left over
        advice = _on_words_left(context, typed)
        return click.UsageError(sentence(error.message, advice), context) if advice else error
    return error


def _on_words_left(context: click.Context, typed: Sequence[str]) -> str:
    """Say how several cutoffs are typed, or which command takes several files, if that was it.

    >>> _on_words_left(click.Context(click.Command("evaluate")), ["-k", "1", "5", "a.jsonl"])
    'write -k 1,5'
    """
    after = typed[typed.index("-k") + 1 :] if "-k" in typed else []
    cutoffs = [*takewhile(_CUTOFF.fullmatch, after)]
    if len(cutoffs) > 1:
        return f"write -k {','.join(cutoffs)}"
    files = [one for one in typed if os.path.isfile(one)]
    if context.command.name == "evaluate" and len(files) > 1:
        return f"it takes one file; to compare them, type 'krag-eval compare {shlex.join(files)}'"
    return ""


def _subject(error: Refusal, parameters: Parameters) -> str:
    """Return what the shell calls the argument that an error is about."""
    if error.place is None and error.argument in parameters:
        return _typed(parameters[error.argument])
    stands_alone = error.problem.startswith(":") and error.query is None and error.place is None
    return "" if stands_alone else error.argument


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


def _code_of(answer: object, stdout: _LastingStream | None) -> int:
    """Return the exit code of a command that went through."""
    if sys.stdout is not None:
        sys.stdout.flush()
    if isinstance(answer, Verdict):
        return int(answer)
    return _STDOUT_CLOSED if stdout is not None and stdout.is_closed else 0


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
    if isinstance(error, click.ClickException | OSError):
        if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument):
            click.echo(_how_to_call(error), err=True)
        click.echo(f"krag-eval: error: {printable(_problem(error))}", err=True)
        for note in _notes(error):
            click.echo(printable(note), err=True)
    elif isinstance(error, MemoryError):
        click.echo("krag-eval: error: out of memory; evaluate a smaller file, or fewer queries "
                   "at a time by --chunk-size.", err=True)  # fmt: skip
    else:
        traceback.print_exception(error)
    return _NO_VERDICT


@contextmanager
def warnings_as(kind: str = N_("warning"), name: str = "") -> Iterator[None]:
    """Print each of our own warnings as one line, below what is printed within; leave others be.

    Above a table it would be out of sight. Within another such block, the outer one prints it.

    Args:
        kind: How the line begins: "warning" or "note".
        name: What it is about; ``""`` if that goes without saying.
    """
    prefix = _(kind) + (f": {name}" if name else "")
    context = click.get_current_context()
    shell = cast(Shell, context.find_root().command)
    held = context.meta.get(_HELD)
    lines: list[str] = [] if held is None else held
    with warnings.catch_warnings():
        warnings.simplefilter("always", KragEvalWarning)
        show_others = warnings.showwarning

        def show(message: Warning | str, *where: Any, **others: Any) -> None:
            if isinstance(message, KragEvalWarning):
                said = shell.worded(message, context.command.name)
                line = f"{prefix}: {printable(said)}"
                if message.at_once:
                    click.echo(line, err=True)
                else:
                    lines.append(line)
            else:
                show_others(message, *where, **others)

        warnings.showwarning = show
        context.meta[_HELD] = lines
        try:
            yield
        finally:
            if held is None:
                del context.meta[_HELD]
                for line in lines:
                    click.echo(line, err=True)


def _how_to_call(error: click.UsageError) -> str:
    """Return the usage of the command that was called and, where its help has one, an example."""
    if error.ctx is None:
        return ""
    example = error.ctx.command.epilog
    return "\n".join([error.ctx.get_usage(), *([example] if example else [])])


def _problem(error: click.ClickException | OSError) -> str:
    if isinstance(error, click.UsageError) and error.ctx:
        return f"{error.format_message()} (see {error.ctx.command_path} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if error.strerror and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


def _notes(error: BaseException) -> list[str]:
    """Return what was noted of an error: which cell it was in, what is kept; no tracebacks."""
    noted = error.__cause__ if isinstance(error.__cause__, Refusal) else error
    return [note for note in getattr(noted, "__notes__", ()) if "\n" not in note]


class _LastingStream(io.RawIOBase):
    """The bytes of a standard stream; once its reader is gone, what is written is dropped.

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
        """Write, unless an earlier attempt failed.

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
        """Direct what is still buffered for this stream to the null device."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)


@contextmanager
def _lasting_streams() -> Iterator[_LastingStream | None]:
    """Replace the standard streams by ones that outlast their reader; yield standard output."""
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
    """Return a stream that outlasts its reader; ``None`` if there are no bytes to write to."""
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


def printable(text: str, longest: int = 1000) -> str:
    r"""Return text on one line, unprintable characters escaped, the middle of a long one cut out.

    >>> printable("a name\nwith a line end")
    'a name with a line end'
    """
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 2 :]}"
    return one_line(" ".join(text.split()))
