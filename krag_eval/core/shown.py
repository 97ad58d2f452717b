"""The doors people expect on a result, which lead up: how it is shown, drawn and reported.

No other module below ``presenting`` knows that there is anything above it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from krag_eval.core.language import Language, spoken

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from krag_eval.core.display import Page


def page_of(shown: object) -> Page:
    """Return what is shown of an object."""
    page: Page = import_module("krag_eval.core.display").page_of(shown)
    return page


def draw(name: str, *of: object) -> Axes:
    """Return what a function of ``plotting`` draws of a result, in the language of the moment."""
    axes: Axes = getattr(import_module("krag_eval.plotting"), name)(*of)
    return axes


def write_report(shown: object, path: str | os.PathLike[str], **page: Any) -> None:
    """Write the page of a result."""
    import_module("krag_eval.report").write_report(shown, path, **page)


class Shown:
    """A result that shows itself: in a session, a notebook, a sentence, a document."""

    def __repr__(self) -> str:
        return page_of(self).text()

    def _repr_html_(self) -> str:
        return page_of(self).html()

    @spoken
    def summary(self, language: Language | None = None) -> str:
        """Return in sentences what the numbers say, in a language such as ``"ko"``."""
        return page_of(self).said()

    @spoken
    def to_markdown(self, language: Language | None = None) -> str:
        """Return its tables in GitHub's Markdown, and what they say as a list."""
        return page_of(self).markdown()

    @spoken
    def to_latex(self, language: Language | None = None) -> str:
        """Return its tables as LaTeX ``tabular`` with the rules of booktabs."""
        return page_of(self).latex()


class Drawn(Shown):
    """A result with one picture, which a function of :mod:`krag_eval.plotting` draws."""

    _drawn_by: ClassVar[str]

    @spoken
    def plot(self, ax: Axes | None = None, *, language: Language | None = None) -> Axes:
        """Draw its picture.

        Args:
            ax: Where to draw; a new figure if not given.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        Returns:
            The matplotlib Axes; nothing is shown or saved.

        Raises:
            InvalidInput: As the function does.
        """
        return draw(self._drawn_by, self, ax)
