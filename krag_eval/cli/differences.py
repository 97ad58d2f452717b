"""How a comparison is printed: values, differences, a plain sentence each, what changed most."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import click

from krag_eval.cli.printing import (
    WIDTH,
    clipped,
    four_digits,
    print_cells,
    print_signature,
    print_table,
)
from krag_eval.cli.wording import one_line

if TYPE_CHECKING:
    from krag_eval.statistics.comparison import Comparison, Difference

__all__ = ["print_comparison"]

# Systems that stand beside each other, and the columns that the name of each may take.
_SYSTEMS = 3
_WIDEST = 24
_LONGEST_NAME = 40
_CHANGED = 3
_LAST_COLUMNS = ("p (Holm)", "effect size", "wins", "ties", "losses")


def print_comparison(comparison: Comparison) -> None:
    """Print the averages of all systems, then how each pair differs."""
    n_queries = len(comparison.queries)
    click.echo(f"{len(comparison.names)} systems on {n_queries} queries\n")
    for start in range(0, len(comparison.names), _SYSTEMS):
        _print_values(comparison, comparison.names[start : start + _SYSTEMS])
    sentences = iter(comparison.summary().split("\n"))
    for a, b in combinations(comparison.names, 2):
        rows = [row for row in comparison.differences if (row.a, row.b) == (a, b)]
        _print_pair(rows, comparison.level)
        for _ in rows:
            _print_wrapped(one_line(next(sentences)))
        click.echo()
        _print_changed(comparison, a, b)
    print_signature(f"{comparison.signature} | n_resamples={comparison.n_resamples}")


def _print_values(comparison: Comparison, names: Sequence[str]) -> None:
    values = {
        (metric, name): value
        for row in comparison.differences
        for metric, name, value in (
            (row.metric, row.a, row.value_a),
            (row.metric, row.b, row.value_b),
        )
    }
    rows = {metric: [values[metric, name] for name in names] for metric in comparison.metrics}
    print_table("metric", [_shown(name) for name in names], rows, widest=_WIDEST)


def _print_pair(rows: Sequence[Difference], level: float) -> None:
    first = rows[0]
    _print_wrapped(
        f"{_shown(first.b)} minus {_shown(first.a)}; "
        f"wins and losses are the queries on which {_shown(first.b)} is better and worse"
    )
    click.echo()
    header = ["metric", "difference", f"{100 * level:g} % interval", *_LAST_COLUMNS]
    print_cells(header, [_cells(row) for row in rows])


def _cells(row: Difference) -> list[str]:
    return [
        row.metric,
        _signed(row.difference),
        _range(row.ci_low, row.ci_high),
        "<0.0001" if row.p_holm < 0.0001 else four_digits(row.p_holm),
        four_digits(row.effect_size),
        *map(str, (row.wins, row.ties, row.losses)),
    ]


def _print_changed(comparison: Comparison, a: str, b: str) -> None:
    """Print the queries that changed most on the first metric."""
    metric = comparison.metrics[0]
    changed = comparison.changed(metric, a, b, _CHANGED)
    if changed.empty:
        click.echo(f"No query changed on {metric}.\n")
        return
    click.echo(f"Changed most on {metric}:")
    for query, before, after, _ in changed.itertuples():
        start = f"  {four_digits(before):>8} to {four_digits(after):<8}  "
        click.echo(start + clipped(str(query), WIDTH - len(start)))
    click.echo()


def _print_wrapped(text: str) -> None:
    click.echo(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _shown(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.4f}"


def _range(low: float, high: float) -> str:
    """Return an interval of a difference, narrow enough for a column.

    >>> _range(-0.0123, 0.4), _range(-12.04, -10.1)
    ('-0.012 to 0.400', '-12.0 to -10.1')
    """
    if math.isnan(low):
        return "-"
    digits = 3 if max(-low, high) < 10 else 1
    return f"{low:.{digits}f} to {high:.{digits}f}"
