"""Help in the language of the moment: what we say of commands, and what click says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import click

from krag_eval.core import _, width_of

#: A text of the catalogs, or what returns a translated one.
Text: TypeAlias = "str | Callable[[], str]"


class _Translated:
    """An attribute of click's that is translated whenever it is read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._kept = f"_{name}_in_english"

    def __set__(self, instance: object, text: Text | None) -> None:
        setattr(instance, self._kept, text)

    def __get__(self, instance: object, owner: type | None = None) -> str | None:
        text: Text | None = getattr(instance, self._kept)
        return text() if callable(text) else text and _(inspect.cleandoc(text))


class Formatter(click.HelpFormatter):
    """Writes help in columns of the terminal, of which Hangul takes two a letter."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how a command is called."""
        super().write_usage(prog, args, _("Usage: "))

    def write_heading(self, heading: str) -> None:
        """Write the title of a section."""
        super().write_heading(_("Options") if heading == "Options" else heading)

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(padded(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names, and what is told of each beside it."""
        super().write_dl([(name, padded(told)) for name, told in rows], col_max, col_spacing)

    def write(self, string: str) -> None:
        """Write what was wrapped."""
        super().write(string.replace("\0", ""))


def padded(text: str) -> str:
    """Return text as long as it is wide, to be wrapped; the fillers are NUL."""
    return "".join(one + "\0" * (width_of(one) - 1) for one in text)


class Context(click.Context):
    """A context whose help is ours."""

    formatter_class = Formatter


class Command(click.Command):
    """A command whose help is translated."""

    context_class = Context
    help = _Translated()
    short_help = _Translated()
    epilog = _Translated()


class Option(click.Option):
    """An option whose help is translated.

    Args:
        names: How it is typed, and what it is called in Python.
        help: What it does.
        **settings: What an option of click takes.
    """

    help = _Translated()

    def __init__(self, names: Sequence[str], help: Text | None = None, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return how it is typed, and what it does, with its default."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        told = record[1].replace("[default: ", _("[default: "))
        return record[0], told.replace("[required]", _("[required]"))


class HelpOption(Option):
    """``--help``, in the language of ``--lang``, whichever is typed first."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Look at ``--lang``, and show the help if it was asked for."""
        for one in ctx.command.params:
            if one.name == "lang" and self.name in opts:
                one.handle_parse_result(ctx, opts, args)
        return super().handle_parse_result(ctx, opts, args)


def example(typed: str) -> Callable[[], str]:
    """Return an example to end the help of a command with."""
    return lambda: _("Example: {}").format(typed)
