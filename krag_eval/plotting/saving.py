"""Plots as files, and as SVG elements of a page."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from krag_eval._errors import InvalidInput
from krag_eval._io import naming
from krag_eval.plotting.styling import (
    FOUND,
    INK,
    MISSED,
    NO_KOREAN_FONT,
    ON_DARK,
    PAPER,
    PARTIAL,
    SIZE,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DARK", "PLOT_FORMATS", "inline_svg", "save_plot"]

#: File name endings that :func:`save_plot` accepts.
PLOT_FORMATS = (".png", ".svg", ".pdf")

#: CSS that gives the elements of :func:`inline_svg` their colours on dark paper, for a page that
#: sets ``--ink``, ``--paper``, ``--good``, ``--warn`` and ``--bad`` itself.
DARK = "@media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}".format(
    " ".join(f"{variable}: {colour};" for variable, colour in ON_DARK.values())
)

# Colour -> the variable of a page that it is taken from.
_VARIABLES = {
    INK: "--ink",
    PAPER: "--paper",
    FOUND: "--good",
    PARTIAL: "--warn",
    MISSED: "--bad",
    **{colour: variable for colour, (variable, _) in ON_DARK.items()},
}
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
_TAG = re.compile(r"<[^<>]+>")
_NAMES = re.compile(r'(\bid="|href="#|url\(#)')


def save_plot(path: str | os.PathLike[str], draw: Callable[[Axes], object]) -> None:
    """Draw into a file: PNG, SVG or PDF, by the ending of its name.

    Args:
        path: The file; one of that name is overwritten.
        draw: Called with the Axes to draw on, such as ``lambda ax: metric_bars(result, 5, ax)``.

    Raises:
        InvalidInput: For another ending, listing those that are possible.
        OSError: If the file cannot be written; the error names it.
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in PLOT_FORMATS:
        raise InvalidInput(
            "path", f"must end in one of {', '.join(PLOT_FORMATS)}, got {os.fspath(path)!r}"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    draw(figure.subplots())
    # In memory first: of a full disk, matplotlib's PDF writer says something else.
    written = io.BytesIO()
    with _boxes_for_missing_letters():
        figure.savefig(written, format=ending[1:], dpi=150, bbox_inches="tight", pad_inches=0.15)
    with naming(path), open(path, "wb") as file:
        file.write(written.getbuffer())


def inline_svg(
    draw: Callable[[Axes], object],
    name: str,
    *,
    title: str | None = None,
    size: tuple[float, float] = SIZE,
) -> str:
    """Draw an ``<svg>`` element for a page that holds several.

    Text stays text, in whatever font the reader has: it can be read aloud, copied and found, and
    needs no Korean font where it is drawn. The same drawing gives the same characters. Colours are
    those of a saved plot, unless the page sets variables: ``--ink`` and ``--paper``, ``--good``,
    ``--warn`` and ``--bad``, and those of the metrics for dark paper.

    Args:
        draw: Called with the Axes to draw on.
        name: Put before every id, so that they are unique within the page: letters and digits.
        title: What a screen reader says; the picture's own title if not given.
        size: Width and height in inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    written = io.StringIO()
    with _boxes_for_missing_letters(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NO_KOREAN_FONT)
        ax = figure.subplots()
        draw(ax)
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    title = ax.get_title(loc="left").replace("\n", " ") if title is None else title
    return _for_a_page(written.getvalue(), name, title)


def _for_a_page(document: str, name: str, title: str) -> str:
    """Take the ``<svg>`` element out of an SVG document; nothing in it reaches beyond it."""
    svg = document[document.index("<svg") :].rstrip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Its style sheet would hold for the whole page.
    svg = re.sub(r"\s*<style\b.*?</style>", "", svg, flags=re.DOTALL)
    svg = _TAG.sub(lambda tag: _COLOUR.sub(_variable, _NAMES.sub(rf"\g<1>{name}-", tag[0])), svg)
    start = svg.index(">")
    view_box = re.search(r'viewBox="[^"]*"', svg[:start])
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{view_box[0] if view_box else ""} role="img" stroke-linejoin="round" '
        # What is black has no colour of its own in what matplotlib writes.
        f'stroke-linecap="butt" style="fill: var(--ink, {INK})"><title>{escape(title)}</title>'
    )
    return opening + svg[start + 1 :]


def _variable(colour: re.Match[str]) -> str:
    """Let a page change a colour, where the colour has a variable."""
    name, value = colour.groups()
    return f"{name}: var({_VARIABLES[value]}, {value})" if value in _VARIABLES else colour[0]


@contextmanager
def _boxes_for_missing_letters() -> Iterator[None]:
    """Keep matplotlib from warning of every single letter that no font has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield
