"""Tables, result lines and signatures in the terminal, none wider than 100 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from krag_eval.cli.wording import one_line
from krag_eval.cutoffs import spelled

if TYPE_CHECKING:
    from rich.table import Table

    from krag_eval.results import EvaluationResult

__all__ = [
    "WIDEST",
    "WIDTH",
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


def print_result(result: EvaluationResult, source: str) -> None:
    """Print how many queries count, a table of all averages by cutoff, and the signature."""
    counted = int(result.counted.sum())
    skipped = result.n_queries - counted
    click.echo(
        f"{counted} {'query' if counted == 1 else 'queries'} from {one_line(source)}"
        + (f" ({skipped} more skipped: no ground truth)" if skipped else "")
        + "\n"
    )
    for start in range(0, len(result.k), _COLUMNS):
        cutoffs = result.k[start : start + _COLUMNS]
        averages = [result.averages(k) for k in cutoffs]
        rows = {key: [one[key] for one in averages] for key in averages[0]}
        print_table("metric", [f"@{spelled(k)}" for k in cutoffs], rows)
    print_signature(result.signature)


def print_signature(signature: str) -> None:
    """Print what the numbers depend on, wrapped between its parts."""
    for line in _wrapped(f"signature: {signature}", WIDTH):
        click.echo(line)


def print_table(corner: str, header: Sequence[str], rows: Mapping[str, Sequence[float]]) -> None:
    """Print named rows of numbers, to four digits; what is undefined is a dash."""
    cells = [[name, *map(four_digits, values)] for name, values in rows.items()]
    print_cells([corner, *header], cells)


def print_cells(header: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> None:
    """Print a table whose first columns are names, to the left, and the others are values."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for position, name in enumerate(header):
        if position < names:
            table.add_column(name, no_wrap=True)
        else:  # a long name is continued below itself
            table.add_column(name, justify="right", max_width=WIDEST, overflow="fold")
    for row in rows:
        table.add_row(*row)
    _print_rich(table)
    click.echo()


def four_digits(value: float) -> str:
    """Return a number as it is printed.

    >>> four_digits(2 / 3), four_digits(float("nan"))
    ('0.6667', '-')
    """
    return f"{value:.4f}" if value == value else "-"


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
