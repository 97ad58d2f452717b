"""The contents of a comparison's page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from krag_eval import plotting
from krag_eval._errors import InvalidType, whole
from krag_eval._text import fitted
from krag_eval.plotting import Language
from krag_eval.plotting.curves import MOST_LINES
from krag_eval.report.rendering import joined, number, p_value, p_words, percent, units_of, words
from krag_eval.scoring.cutoffs import Budget, parse_metric
from krag_eval.statistics.comparison import Comparison, Difference

__all__ = ["comparison_page"]

_QUERY_WIDTH = 300
_SIZE = (5.6, 3.9)


def comparison_page(comparison: Comparison, language: Language, n_queries: int) -> dict[str, Any]:
    """Gather what the template shows.

    Raises:
        InvalidInput: If an argument is not possible.
    """
    w = words(language)
    if not isinstance(comparison, Comparison):
        came = type(comparison).__name__
        raise InvalidType("comparison", f"must be a Comparison, got {came}")
    whole("n_queries", n_queries, 0)
    rows, level = comparison.differences, comparison.level
    n = len(comparison.queries)
    settings = dict(_setting(part) for part in comparison.signature.split(" | "))
    settings |= {"n_resamples": str(comparison.n_resamples), "seed": str(comparison.seed)}
    settings |= {} if comparison.baseline is None else {"baseline": comparison.baseline}
    return {
        "subtitle": joined(
            (
                w["one query"] if n == 1 else w["queries"].format(n),
                ", ".join(fitted(name, 40) for name in comparison.names),
            )
        ),
        "verdicts": [(_tone(row, level), _verdict(row, level, w)) for row in rows],
        "left_out": _left_out(comparison, w),
        "picture": plotting.inline_svg(
            lambda ax: plotting.comparison_forest(comparison, ax, language=language),
            "forest",
            size=plotting.forest_size(comparison),
        ),
        "budget_pictures": list(_budget_pictures(comparison, language)),
        "interval_name": w["interval"].format(percent(level, w)),
        "rows": [_cells(row) for row in rows],
        "shown_rows": [row.is_shown(level) for row in rows],
        "changed": list(_changed(comparison, n_queries, w)),
        "show_changed": n_queries > 0,
        "settings": list(settings.items()),
        "signature": comparison.signature,
    }


def _left_out(comparison: Comparison, w: Mapping[str, str]) -> str:
    """Say how many queries were left out because not all systems have them."""
    missing = ", ".join(
        f"{fitted(name, 40)}: {len(labels)}" for name, labels in comparison.left_out.items()
    )
    return w["left out"].format(n=len(comparison.queries), missing=missing) if missing else ""


def _budget_pictures(comparison: Comparison, language: Language) -> Iterator[str]:
    """Draw against the budget what was compared at budgets, or what is drawn if nothing was.

    A picture has one unit, and as many systems as can be told apart.
    """
    results = list(comparison.compared.items())
    parsed = map(parse_metric, comparison.metrics)
    keys: list[str | None] = [*dict.fromkeys(key for key, k in parsed if isinstance(k, Budget))]
    units = units_of(results[0][1].k) if results else []
    starts = range(0, len(results), MOST_LINES)
    for place, (unit, key, start) in enumerate(product(units, keys or [None], starts)):
        draw = partial(
            plotting.budget_curves,
            dict(results[start : start + MOST_LINES]),
            key,
            unit=unit,
            language=language,
        )
        yield plotting.inline_svg(draw, f"budgets{place}", size=_SIZE)


def _setting(part: str) -> tuple[str, str]:
    """Return name and value of a setting in a signature, where it is ``k=5`` or ``retrieved<=4``.

    >>> _setting("k=5"), _setting("retrieved<=4")
    (('k', '5'), ('retrieved', '<=4'))
    """
    name, _, value = part.partition("=")
    return (name.removesuffix("<"), f"<={value}") if name.endswith("<") else (name, value)


def _tone(row: Difference, level: float) -> str:
    return "good" if row.is_shown(level) else "faint"


def _verdict(row: Difference, level: float, w: Mapping[str, str]) -> str:
    """Say in plain words what is known of one difference."""
    a, b = fitted(row.a, 40), fitted(row.b, 40)
    if math.isnan(row.difference):
        return w["undefined"].format(a=a, b=b, metric=row.metric)
    known = {"metric": row.metric, "level": percent(level, w), "p": p_words(row.p_holm)}
    low, high = row.ci_low, row.ci_high
    if not row.is_shown(level):
        return w["no difference"].format(
            a=a, b=b, by=number(row.difference), low=number(low), high=number(high), **known
        )
    low, high = sorted((abs(low), abs(high)))
    b_wins = row.better == row.b
    better, worse = (b, a) if b_wins else (a, b)
    values = (row.value_b, row.value_a) if b_wins else (row.value_a, row.value_b)
    return w["shown"].format(
        better=better, worse=worse, by=number(abs(row.difference)), low=number(low),
        high=number(high), value_better=number(values[0]), value_worse=number(values[1]), **known,
    )  # fmt: skip


def _cells(row: Difference) -> list[str]:
    return [
        fitted(row.a, 40),
        fitted(row.b, 40),
        row.metric,
        number(row.value_a),
        number(row.value_b),
        number(row.difference),
        "–" if math.isnan(row.ci_low) else f"[{number(row.ci_low)}, {number(row.ci_high)}]",
        p_value(row.p_permutation),
        p_value(row.p_holm),
        p_value(row.p_t),
        number(row.effect_size),
        f"{row.wins} / {row.ties} / {row.losses}",
    ]


def _changed(
    comparison: Comparison, n_queries: int, w: Mapping[str, str]
) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    """Return, per pair, the queries that changed most on the first metric."""
    metric = comparison.metrics[0]
    for a, b in comparison.pairs if n_queries else ():
        table = comparison.changed(metric, a, b, n_queries)
        rows = [
            (fitted(str(query), _QUERY_WIDTH), number(before), number(after), _change(change, w))
            for query, before, after, change in zip(
                table.index, *(table[name] for name in table.columns), strict=True
            )
        ]
        heading = w["changed pair"].format(metric=metric, a=fitted(a, 40), b=fitted(b, 40))
        yield heading, rows


def _change(change: float, w: Mapping[str, str]) -> str:
    """Return a change with its sign; an infinite one is a rank that came to be, or was lost."""
    if math.isinf(change):
        return w["found only"] if change < 0 else w["lost only"]
    return ("+" if change > 0 else "") + number(change)
