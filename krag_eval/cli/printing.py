"""Tables, result lines and signatures in the terminal, none wider than 100 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from krag_eval.cli.wording import one_line
from krag_eval.scoring.cutoffs import spelled

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from krag_eval.results.result import EvaluationResult

__all__ = [
    "WIDEST",
    "WIDTH",
    "clipped",
    "four_digits",
    "print_cells",
    "print_result",
    "print_signature",
    "print_table",
]

#: Columns of the terminal that everything fits into, and the most that values and their name take.
WIDTH = 100
WIDEST = 16
# Tables wider than that are continued below.
_COLUMNS = 8
_COLUMNS_WITH_INTERVALS = 3


def print_result(
    result: EvaluationResult, source: str, intervals: pd.DataFrame | None = None
) -> None:
    """Print how many queries count, a table of all averages by cutoff, and the signature.

    Args:
        result: What to print.
        source: Where its queries come from.
        intervals: The 95 % interval of each average, to stand beside it.
    """
    counted = result.n_counted
    skipped = result.n_queries - counted
    click.echo(
        f"{counted} {'query' if counted == 1 else 'queries'} from {one_line(source)}"
        + (f" ({skipped} more skipped: no ground truth)" if skipped else "")
        + "\n"
    )
    width = _COLUMNS if intervals is None else _COLUMNS_WITH_INTERVALS
    for start in range(0, len(result.k), width):
        _print_averages(result, [spelled(k) for k in result.k[start : start + width]], intervals)
    print_signature(result.signature)


def _print_averages(
    result: EvaluationResult, cutoffs: Sequence[str], intervals: pd.DataFrame | None
) -> None:
    values = result.to_dict()
    keys = dict.fromkeys(name.rpartition("@")[0] for name in values)
    if intervals is None:
        rows = {key: [values[f"{key}@{k}"] for k in cutoffs] for key in keys}
        print_table("metric", [f"@{k}" for k in cutoffs], rows)
        return
    known = {name: (low, high) for name, low, high in intervals[["low", "high"]].itertuples()}
    undefined = math.nan, math.nan
    header = ["metric", *(cell for k in cutoffs for cell in (f"@{k}", "95 % interval"))]
    cells = [
        [key, *(cell for name in (f"{key}@{k}" for k in cutoffs)
                for cell in (four_digits(values[name]), _range(*known.get(name, undefined))))]
        for key in keys
    ]  # fmt: skip
    print_cells(header, cells)


def print_signature(signature: str) -> None:
    """Print what the numbers depend on, wrapped between its parts."""
    for line in _wrapped(f"signature: {signature}", WIDTH):
        click.echo(line)


def print_table(
    corner: str,
    header: Sequence[str],
    rows: Mapping[str, Sequence[float]],
    *,
    widest: int = WIDEST,
) -> None:
    """Print named rows of numbers, to four digits; what is undefined is a dash."""
    cells = [[name, *map(four_digits, values)] for name, values in rows.items()]
    print_cells([corner, *header], cells, widest=widest)


def print_cells(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1, widest: int = WIDEST
) -> None:
    """Print a table whose first columns are names, to the left, and the others are values."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for position, name in enumerate(header):
        if position < names:
            table.add_column(name, no_wrap=True)
        else:  # a long name is continued below itself
            table.add_column(name, justify="right", max_width=widest, overflow="fold")
    for row in rows:
        table.add_row(*row)
    _print_rich(table)
    click.echo()


def clipped(text: str, width: int) -> str:
    """Return a text on one line, at most so many columns wide; Hangul takes two columns a letter.

    >>> clipped("How long may I keep a book?", 12), clipped("언제 여나요?", 10)
    ('How long ...', '언제 여...')
    """
    from rich.cells import cell_len, set_cell_size

    text = one_line(text)
    return text if cell_len(text) <= width else set_cell_size(text, width - 3) + "..."


def four_digits(value: float) -> str:
    """Return a number as it is printed.

    >>> four_digits(2 / 3), four_digits(float("nan"))
    ('0.6667', '-')
    """
    return f"{value:.4f}" if value == value else "-"


def _range(low: float, high: float) -> str:
    """Return an interval, narrow enough for a column.

    >>> _range(0.41234, 0.8), _range(float("nan"), float("nan")), _range(998.0, 1234.56)
    ('0.412–0.800', '-', '998.0–1234.6')
    """
    digits = 3 if high < 100 else 1
    return f"{low:.{digits}f}–{high:.{digits}f}" if low == low else "-"


def _print_rich(table: Table) -> None:
    from rich.console import Console

    # Wide enough that no number is cut, whatever the window.
    console = Console(width=WIDTH, highlight=False, markup=False, emoji=False)
    console.print(table)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a signature between its parts.

    >>> _wrapped("signature: matcher=text | k=1,5 | queries=28", 32)
    ['signature: matcher=text | k=1,5', '           | queries=28']
    """
    lines = [""]
    for part in text.split(" | "):
        if lines[-1] and len(f"{lines[-1]} | {part}") > width:
            lines.append(f"{' ' * 11}| {part}")
        else:
            lines[-1] += f" | {part}" if lines[-1] else part
    return lines
