"""What results have in common that show, draw and report themselves.

How is found by hooks: pages (``krag_eval.pages``), pictures (``krag_eval.pictures``) and reports
(``krag_eval.reports``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from krag_eval.core.display import Page, page_of
from krag_eval.core.hooks import our_hooks
from krag_eval.core.language import Language, spoken

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Drawn", "Page", "Report", "Shown", "draw", "page_of", "write_report"]


class Report(NamedTuple):
    """How the results of a class are reported; a room names it among its ``krag_eval.reports``.

    Attributes:
        make: What returns the objects that its template reads.
        heading: The heading, in English.
        has_options: Whether ``make`` takes any.
    """

    make: Callable[..., dict[str, Any]]
    heading: str
    has_options: bool = True


def draw(name: str, *of: object) -> Axes:
    """Return what a picture of a room draws of a result, in the language of the moment."""
    axes: Axes = our_hooks("krag_eval.pictures")[name].load()(*of)
    return axes


def write_report(shown: object, path: str | os.PathLike[str], **page: Any) -> None:
    """Write the page of a result."""
    our_hooks("krag_eval.writers")["report"].load()(shown, path, **page)


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
