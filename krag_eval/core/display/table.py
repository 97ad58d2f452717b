"""One table, in every form: terminal, HTML, Markdown, LaTeX, a frame, records."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval.core.display import numbers
from krag_eval.core.text import CLOSE, CLOSE_DIFFERENT, OPEN, OPEN_DIFFERENT, Marked, visible

if TYPE_CHECKING:
    import pandas as pd

# Columns of a terminal that a value takes at most; what is longer is continued below itself.
_WIDEST = 26
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "–": "--",
    OPEN: "",
    CLOSE: "",
    OPEN_DIFFERENT: r"\underline{",
    CLOSE_DIFFERENT: "}",
} | {special: f"\\{special}" for special in "&%$#_{}"}
_DIFFERENT = dict.fromkeys(map(ord, (OPEN_DIFFERENT, CLOSE_DIFFERENT)), "≠")
_IN_TEXT = {ord(OPEN): "«", ord(CLOSE): "»"} | _DIFFERENT
_IN_HTML = {
    ord(OPEN): '<mark style="background:#ffe08a;color:#000">',
    ord(OPEN_DIFFERENT): '<mark style="background:#ffc9b8;color:#000;text-decoration:underline">',
    ord(CLOSE): "</mark>",
    ord(CLOSE_DIFFERENT): "</mark>",
}


class Column(NamedTuple):
    """A heading, and what a row shows below it.

    Attributes:
        heading: The heading, in the language of the moment; a terminal shows it in lines as it is.
        of: The name of a row's attribute or entry, or a function of the row. Numbers are rounded,
            ``None`` and NaN are a dash; a tuple is several lines.
        detail: Whether a terminal leaves it out, where columns are few.
    """

    heading: str
    of: str | Callable[[Any], object]
    detail: bool = False

    def cell(self, row: Any) -> str:
        """Return what a row shows in this column."""
        if callable(self.of):
            value = self.of(row)
        else:
            value = row[self.of] if isinstance(row, Mapping) else getattr(row, self.of)
        return "\n".join(map(_on_a_line, value if isinstance(value, tuple) else (value,)))


def _on_a_line(value: object) -> str:
    if isinstance(value, Marked):
        return value
    shown = numbers.rounded(value) if isinstance(value, float) else value
    return numbers.UNDEFINED if shown is None else visible(str(shown)).strip()


@dataclass(frozen=True)
class Table:
    """Rows of anything, and the columns they are shown in.

    Attributes:
        rows: What is shown; dataclasses, named tuples or mappings are their own records.
        columns: The columns.
        names: How many of the first columns are names, set to the left; the others are values.
        title: What stands above it, where there are several.

    >>> table = Table([{"metric": "mrr", "value": 0.5}], [Column("metric", "metric"),
    ...                                                   Column("value", "value")])
    >>> print(table.text())
    metric   value
    mrr     0.5000
    """

    rows: Sequence[Any]
    columns: Sequence[Column]
    names: int = 1
    title: str = ""

    @classmethod
    def of_cells(
        cls, header: Sequence[str], cells: Iterable[Sequence[object]], **more: Any
    ) -> Table:
        """Make a table of what its cells show, row by row."""
        columns = [Column(name, itemgetter(place)) for place, name in enumerate(header)]
        return cls([*cells], columns, **more)

    @cached_property
    def cells(self) -> list[list[str]]:
        """All that is shown: the header, then every row."""
        header = [visible(column.heading).strip() for column in self.columns]
        return [header, *([column.cell(row) for column in self.columns] for row in self.rows)]

    def text(self, width: int | None = None) -> str:
        """Return aligned lines.

        Args:
            width: The columns of the terminal. Values that do not fit beside the others are then
                continued below, after the names again, and a rule stands below the header.
        """
        if width is not None and any(one.detail for one in self.columns):
            kept = [one for one in self.columns if not one.detail]
            return dataclasses.replace(self, columns=kept).text(width)
        from rich import box, cells, console
        from rich.table import Table as Grid

        header = ["\n".join(map(visible, one.heading.split("\n"))) for one in self.columns]
        shown = [[one.translate(_IN_TEXT) for one in row] for row in (header, *self.cells[1:])]
        sizes = [
            max(cells.cell_len(line) for cell in column for line in cell.split("\n"))
            for column in zip(*shown, strict=True)
        ]
        widest = max(sizes, default=0)
        room, most = (sum(sizes) + 3 * len(sizes), widest) if width is None else (width, _WIDEST)
        sizes[self.names :] = [min(size, most) for size in sizes[self.names :]]
        fits = width is not None and sum(sizes) + 3 * (len(sizes) - 1) <= room
        apart, fitting = 3 if fits else 2, len(sizes)
        while fitting > self.names + 1 and sum(sizes[:fitting]) + apart * (fitting - 1) > room:
            fitting -= 1
        style = None if width is None else box.SIMPLE_HEAD
        grid = Grid(
            box=style, show_edge=False, pad_edge=False, padding=(0, apart - 1 + (not style), 0, 0)
        )
        for place, heading in enumerate(shown[0][:fitting]):
            values: dict[str, Any] = {"justify": "right", "max_width": most}
            grid.add_column(heading, overflow="fold", **(values if place >= self.names else {}))
        for row in shown[1:]:
            grid.add_row(*row[:fitting])
        # Without a height, rich takes a terminal that knows no colours for one of 80 columns. In a
        # notebook it would display what it renders, and hold even a text that is kept for coloured.
        plain = console.Console(
            width=room,
            height=25,
            color_system=None,
            force_jupyter=False,
            force_terminal=False if width is None else None,
            highlight=False,
            markup=False,
            emoji=False,
        )
        with plain.capture() as captured:
            plain.print(grid)
        lines = captured.get().rstrip("\n")
        if fitting == len(sizes):
            return lines
        beyond = [*self.columns[: self.names], *self.columns[fitting:]]
        return f"{lines}\n\n{dataclasses.replace(self, columns=beyond).text(width)}"

    def html(self) -> str:
        """Return an HTML element, all of its texts escaped."""
        header, *rows = [[_for_html(cell) for cell in row] for row in self.cells]
        body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
        return (
            f"<table><thead><tr><th>{'</th><th>'.join(header)}</th></tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )

    def markdown(self) -> str:
        """Return GitHub's Markdown."""
        header, *rows = [
            ["<br>".join(map(_escaped, cell.split("\n"))) for cell in row] for row in self.cells
        ]
        rule = ["---"] * self.names + ["---:"] * (len(header) - self.names)
        return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows)) + "\n"

    def latex(self) -> str:
        """Return a LaTeX ``tabular`` with the rules of booktabs."""
        header, *rows = [_row_for_latex(row) for row in self.cells]
        aligned = "l" * self.names + "r" * (len(self.columns) - self.names)
        lines = [rf"\begin{{tabular}}{{{aligned}}}", r"\toprule", header, r"\midrule", *rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as they are, one mapping each."""
        return [_record(row) for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return the rows as they are, as a frame."""
        import pandas as pd

        return pd.DataFrame(self.records())


def _record(row: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(row):
        return {one.name: getattr(row, one.name) for one in dataclasses.fields(row)}
    return dict(row._asdict() if hasattr(row, "_asdict") else row)


# What GitHub makes a mention, a reference, an emoji or a link of, without any markup, and where a
# space that is not seen keeps it from doing so; and what begins a heading or a list.
_ALIVE = re.compile(
    r"(?<=(?<!\w)@)(?=\w)|(?<=@)(?=[\w-]+\.\w)|(?<=#)(?=\d)|(?<=\bGH)(?=-\d)"
    r"|(?<=:)(?=[\w+-]+:|//)|(?<=\bwww)(?=\.)|(?<=\bmailto)(?=:)|(?<=\bxmpp)(?=:)",
    re.ASCII | re.IGNORECASE,
)
_OPENS_A_BLOCK = re.compile(r"^(\d*)([.)]|[#+=-]+)(?=\s|$)")


def for_markdown(text: str) -> str:
    r"""Escape what GitHub's Markdown would not show as it is; underscores within a word are.

    What would act instead of showing is spelled out.

    >>> print(for_markdown("a_b | _c_"))
    a_b \| \_c\_
    >>> print(for_markdown("1. Ask @ann of ndcg@10, see #7"))
    1\. Ask @&#8203;ann of ndcg@10, see #&#8203;7
    """
    return _escaped(visible(text))


def _escaped(text: str) -> str:
    """Escape a visible text for Markdown; what is highlighted becomes bold."""
    escaped = re.sub(r"([\\`*\[\]<>|~&$])", r"\\\1", " ".join(text.split()))
    escaped = escaped.translate({ord(OPEN): "**", ord(CLOSE): "**"} | _DIFFERENT)
    escaped = _OPENS_A_BLOCK.sub(r"\1\\\2", _ALIVE.sub("&#8203;", escaped))
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)


def _for_html(cell: str) -> str:
    text = html.escape(cell).translate(_IN_HTML)
    # Each line has its own direction, which follows from its letters.
    lines = text.split("\n")
    shown = (f'<div dir="auto" style="text-align:start">{line}</div>' for line in lines)
    return "".join(shown) if len(lines) > 1 else text


def _row_for_latex(row: Iterable[str]) -> str:
    shown = " & ".join(map(_for_latex, row))
    # The line end, or the rule of booktabs, above would take an asterisk or a bracket for its own.
    return ("{}" if shown.lstrip().startswith(("*", "[")) else "") + rf"{shown} \\"


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
