"""How anything is shown: a page of tables and sentences, made from facts, in every form.

What is shown of a class stands in a module beside its own, which a room names among its hooks
(``krag_eval.pages``): it registers a function that makes a :class:`Page` of an object. A class from
elsewhere has a method ``_page`` instead.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, singledispatch
from typing import Any

from krag_eval.core.display.table import Column, Table, for_markdown
from krag_eval.core.hooks import our_hooks
from krag_eval.core.text import harmless, isolated, visible, width_of

__all__ = ["Column", "Page", "Table", "page_of", "presents"]


@dataclass(frozen=True)
class Page:
    """All there is to show, in order.

    Attributes:
        title: What it is about, in a line or several.
        tables: The tables.
        sentences: What the numbers say.
        notes: What else deserves to be known.
        signature: What the numbers depend on.
        other_signatures: What those depend on that have another one.
        verdict: What it comes to, where that is not the first sentence, or else the title.
        advice: What to do about it, which sentences and notes may say, too.
    """

    title: str = ""
    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    signature: str = ""
    other_signatures: Sequence[str] = ()
    verdict: str = ""
    advice: Sequence[str] = ()

    @property
    def told(self) -> list[str]:
        """The sentences and the notes."""
        return [*self.sentences, *self.notes]

    @property
    def concluded(self) -> dict[str, Any]:
        """The verdict and the advice, for those who read nothing else."""
        first = next(iter(self.sentences), self.title.partition("\n")[0])
        return {"verdict": self.verdict or first, "advice": [*self.advice]}

    def said(self) -> str:
        """Return the sentences, a line each."""
        return _lines(self.sentences, None)

    def text(self, width: int | None = None) -> str:
        """Return it as lines, for a terminal of so many columns if that is known."""
        between = "\n" if width is None else "\n\n"
        tables = [
            f"{_lines([one.title], width)}\n{one.text(width)}".lstrip("\n") for one in self.tables
        ]
        # A signature fills the terminal, so that it is copied whole where there is room.
        signatures = [self.signature, *self.other_signatures]
        signed = (wrapped(visible(signature), width) for signature in signatures)
        said = "\n".join([_lines(self.told, width), *signed]).strip("\n")
        shown = between.join(filter(None, [_lines(self.title.split("\n"), width), *tables, said]))
        return "\n".join(isolated(line.rstrip()) for line in shown.split("\n"))

    def html(self) -> str:
        """Return it as HTML, all of its texts escaped."""
        parts = [f"<p>{_for_html(line)}</p>" for line in self.title.split("\n") if line]
        for table in self.tables:
            parts += [f"<p>{_for_html(table.title)}</p>"] if table.title else []
            parts.append(table.html())
        parts += [f"<p>{_for_html(line)}</p>" for line in self.told]
        if self.signature:
            parts.append(f"<p><small>{_for_html(self.signature)}</small></p>")
        return "".join(parts)

    def markdown(self) -> str:
        """Return the tables, then a list of what is said."""
        said = "".join(f"- {for_markdown(line)}\n" for line in self.told)
        tables = (
            f"{for_markdown(one.title)}\n\n{one.markdown()}".lstrip("\n") for one in self.tables
        )
        return "\n".join(filter(None, [*tables, said]))

    def latex(self) -> str:
        """Return the tables, below the notes as comments."""
        notes = "".join(f"% {visible(line)}\n" for line in self.notes)
        return notes + "\n".join(table.latex() for table in self.tables)


# Stands for a space where no line may be broken.
_TOGETHER = "\ue000"
# Columns of a sentence: longer lines are hard to read.
_WIDEST = 100


def _lines(told: Sequence[str], width: int | None) -> str:
    """Return lines with nothing in them that acts, for a terminal broken to so many columns."""
    if width is None:
        return "\n".join(harmless(part) for line in filter(None, told) for part in line.split("\n"))
    parts = [visible(part) for line in told for part in line.split("\n") if part]
    return "\n".join(wrapped(part, min(width, _WIDEST)) for part in parts)


def _for_html(text: str) -> str:
    return html.escape(visible(text))


def wrapped(line: str, width: int | None) -> str:
    """Break a line to so many columns, if that is known, between its parts, or its words.

    >>> print(wrapped("matcher=text | k=5,10 | criteria=all", 20))
    matcher=text |
      k=5,10 |
      criteria=all
    """
    if width is None or width_of(line) <= width:
        return line
    from rich.console import Console
    from rich.text import Text

    parts = line.split(" | ")
    if len(parts) > 1:
        line = f"{_TOGETHER}| ".join(part.replace(" ", _TOGETHER) for part in parts)
    lines = Text(line).wrap(Console(width=width), width - 2, overflow="fold")
    return "\n  ".join(one.plain.rstrip() for one in lines).replace(_TOGETHER, " ")


def page_of(shown: Any) -> Page:
    """Return what is shown of an object, in the language of the moment."""
    if hasattr(shown, "_page"):
        page: Page = shown._page()
        return page
    # Of every class, as one of a base class may be known already.
    for kind in type(shown).__mro__:
        _register(kind.__module__)
    return _page_of(shown)


@cache
def _register(module: str) -> None:
    """Import what registers the pages of the classes of a module, if there is any."""
    if hook := our_hooks("krag_eval.pages").get(module):
        hook.load()


@singledispatch
def _page_of(shown: Any) -> Page:
    raise TypeError(f"nothing says how to show a {type(shown).__name__}")


#: A decorator of the function that makes the page of a class, which its annotation names.
presents = _page_of.register
