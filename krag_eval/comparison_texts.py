"""A comparison in words and tables: sentences, Markdown, LaTeX, plain text and HTML.

This room knows how differences are told, rounded and escaped. It must not compute them.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

from krag_eval.pairing import Difference

__all__ = ["as_html", "as_latex", "as_markdown", "as_text", "cells", "sentence"]

# Columns of the table that hold names; the others hold numbers.
_N_NAMES = 3

Cells = list[list[str]]


def cells(differences: Sequence[Difference], level: float) -> Cells:
    """Return the table as text, header first, rounded for reading."""
    interval_name = f"{_percent(level)} interval"
    header = ["a", "b", "metric", "value a", "value b", "b − a", interval_name]
    header += ["p", "p (Holm)", "p (t-test)", "d_z", "wins / ties / losses of b"]
    return [header] + [
        [
            row.a,
            row.b,
            row.metric,
            _rounded(row.value_a),
            _rounded(row.value_b),
            _rounded(row.difference),
            f"{_rounded(row.ci_low)} to {_rounded(row.ci_high)}",
            _rounded_p(row.p_permutation),
            _rounded_p(row.p_holm),
            _rounded_p(row.p_t),
            _rounded(row.effect_size),
            f"{row.wins} / {row.ties} / {row.losses}",
        ]
        for row in differences
    ]


def as_text(table: Cells) -> list[str]:
    """Return the table as aligned lines."""
    header, *rows = [[" ".join(cell.split()) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < _N_NAMES else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (header, *rows)
    ]


def as_markdown(table: Cells) -> str:
    """Return the table in GitHub's Markdown."""
    header, *rows = [[_for_markdown(cell) for cell in row] for row in table]
    rule = ["---"] * _N_NAMES + ["---:"] * (len(header) - _N_NAMES)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows)) + "\n"


def as_latex(table: Cells) -> str:
    """Return the table as a LaTeX ``tabular`` with the rules of booktabs."""
    header, *rows = [[_for_latex(cell) for cell in row] for row in table]
    return "\n".join(
        (
            rf"\begin{{tabular}}{{{'l' * _N_NAMES}{'r' * (len(header) - _N_NAMES)}}}",
            r"\toprule",
            rf"{' & '.join(header)} \\",
            r"\midrule",
            *(rf"{' & '.join(row)} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        )
    )


def as_html(table: Cells) -> str:
    """Return the table as an HTML element."""
    header, *rows = [[html.escape(cell) for cell in row] for row in table]
    body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
    return (
        f"<table><thead><tr><th>{'</th><th>'.join(header)}</th></tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def sentence(row: Difference, level: float) -> str:
    """Say in plain words what is known of one difference."""
    if math.isnan(row.difference):
        values = {row.a: row.value_a, row.b: row.value_b}
        undefined = " and ".join(name for name, value in values.items() if math.isnan(value))
        return (
            f"{row.a} and {row.b} cannot be compared on {row.metric}: "
            f"it is undefined for {undefined}."
        )
    low, high = row.ci_low, row.ci_high
    first, second = (row.b, row.value_b), (row.a, row.value_a)
    if row.is_shown(level):
        low, high = sorted((abs(low), abs(high)))
        if row.better == row.a:
            first, second = second, first
        start = f"{first[0]} is better than {second[0]} on {row.metric} by"
    else:
        start = (
            f"No difference shown between {row.a} and {row.b} on {row.metric}: "
            f"{row.b} minus {row.a} is"
        )
    by = abs(row.difference) if row.is_shown(level) else row.difference
    p = "p < 0.001" if row.p_holm < 0.001 else f"p = {row.p_holm:.3f}"
    return (
        f"{start} {_short(by)} ({_short(first[1])} against {_short(second[1])}; "
        f"{_percent(level)} interval {_short(low)} to {_short(high)}; {p} after Holm)."
    )


def _percent(level: float) -> str:
    return f"{100 * level:.10g} %"


def _short(value: float) -> str:
    """Print three decimals, or what it takes for a small number not to read as 0."""
    return f"{value:.3f}" if abs(value) >= 0.0005 or value == 0 else f"{value:.1g}"


def _rounded(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def _rounded_p(p: float) -> str:
    if math.isnan(p):
        return "–"
    return f"{p:.4f}" if p >= 0.00005 else f"{p:.0e}"


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
} | {special: f"\\{special}" for special in "&%$#_{}"}


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _for_markdown(text: str) -> str:
    """Escape what Markdown would read as markup; underscores within a word are no markup."""
    escaped = re.sub(r"([\\`*\[\]<>|~&$])", r"\\\1", " ".join(text.split()))
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)
