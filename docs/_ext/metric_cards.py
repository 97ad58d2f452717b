"""What is said of every metric from the registry: its keys, its call, its values on the example.

A page names a metric by a comment below its heading, ``<!-- metric: recall -->``; where Markdown
is shown as it stands nothing is seen of it. Every metric of ``METRICS`` must be named in the pages
of both languages, and have a row in their first table: a metric that is not stops the build.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from krag_eval import METRICS, OfflineRetrievalEvaluator
from krag_eval.core.scoring.metrics import averages_of

__all__ = ["MARKER", "card", "keys_and_calls", "setup", "with_cards"]

PAGES = {"metrics": "en", "ko/metrics": "ko"}
MARKER = re.compile(r"^<!-- metric: (\w+) -->$", re.MULTILINE)
#: The query that the page works through by hand.
ACTUAL, PREDICTED = [["a", "b", "c"]], [["a", "x", "b", "y", "z"]]
#: The passage and the chunks that it counts words of.
PASSAGE = "Cards are free for residents and cost nine euros for everyone else"
CHUNKS = [
    "Opening hours. Cards are free for residents and cost",
    "Parking is free on Sundays",
    "free for residents and cost nine euros",
    "Ask at the desk",
    "cost nine euros for everyone else. Lost cards cost two",
]
WORDS = {
    "en": {
        "example": "the example at k =",
        "keys": "keys",
        "call": "call",
        "column": "column per query",
        "range": "range",
        "better": "better",
        "undefined": "undefined",
    },
    "ko": {
        "example": "예제의 값, k =",
        "keys": "키",
        "call": "메서드",
        "column": "질문별 표의 열",
        "range": "범위",
        "better": "좋은 방향",
        "undefined": "정의되지 않음",
    },
}


@cache
def _example() -> OfflineRetrievalEvaluator:
    aspects = {"a": "price", "b": "hours", "c": "price"}
    actual = [{"page_content": one, "metadata": {"aspect": aspects[one]}} for one in ACTUAL[0]]
    lists = {"judged": [["x"]], "unwanted": [["x", "z"]], "cited": [["a", "c", "x"]]}
    return OfflineRetrievalEvaluator([actual], PREDICTED, aspect_key="aspect", **lists)


@cache
def _example_in_words() -> OfflineRetrievalEvaluator:
    return OfflineRetrievalEvaluator([[PASSAGE]], [CHUNKS], matcher="coverage(union=yes)")


@cache
def keys_and_calls() -> dict[str, tuple[list[str], str]]:
    """Return the keys and the call of every metric, as the evaluator has them.

    >>> keys_and_calls()["recall"]
    (['micro_recall', 'macro_recall'], 'calculate_recall')
    """
    found = {}
    evaluator = _example_in_words()  # which has the metrics that count words, too
    names = [name for name in dir(evaluator) if name.startswith("calculate_")]
    for method in names:
        if method == "calculate_rejection_rate":  # not of a ranking; no metric of the registry
            continue
        keys = list(getattr(evaluator, method)(k=3))
        found.update({m.name: (keys, method) for m in METRICS.values() if m.key in keys})
    return found | {
        name: (list(averages_of([metric.at()])), f'evaluate(k, metrics=["{name}"])')
        for name, metric in METRICS.items()
        if name not in found
    }


def values(metric: str) -> list[float]:
    """Return the metric of the example at k = 1 to 5.

    >>> values("precision")[2]
    0.666...
    """
    example = _example_in_words() if METRICS[metric].needs_words else _example()
    result = example.evaluate(k=[1, 2, 3, 4, 5], metrics=[metric])
    column = next(iter(result.keys))
    return [float(result.tables[k][column][0]) for k in (1, 2, 3, 4, 5)]


@cache
def columns() -> list[str]:
    """Return the columns of the per-query table."""
    return list(_example_in_words().evaluate(k=3).per_query(3))


def card(metric: str, row: list[str], language: str) -> str:
    """Return the Markdown of one metric's card; ``row`` is its row of the first table."""
    words = WORDS[language]
    keys, call = keys_and_calls()[metric]
    numbers = " | ".join(f"{value:.4g}" for value in values(metric))
    of_keys = ", ".join(f"`{key}`" for key in keys)
    if call.startswith("evaluate("):
        method = f"{{py:meth}}`{call} <krag_eval.OfflineRetrievalEvaluator.evaluate>`"
    else:
        method = f"{{py:meth}}`{call}(k) <krag_eval.OfflineRetrievalEvaluator.{call}>`"
    return "\n".join(
        [
            ":::{container} metric-card",
            f"**{words['range']}** {row[2]}, **{words['better']}** {row[3]} · "
            f"**{words['keys']}** {of_keys} · **{words['call']}** {method}"
            + (f" · **{words['column']}** `{metric}`" if metric in columns() else ""),
            "",
            f"| {words['example']} | 1 | 2 | 3 | 4 | 5 |",
            "|---|---|---|---|---|---|",
            f"| `{metric}` | {numbers} |",
            ":::",
        ]
    )


def rows_by_anchor(text: str) -> dict[str, list[str]]:
    """Return the rows of tables whose first cell leads to a section, by its anchor.

    >>> rows_by_anchor("| [MRR](#mrr) | How early? | 0 to 1 | higher |")
    {'mrr': ['MRR', 'How early?', '0 to 1', 'higher']}
    """
    rows = re.findall(r"^\| \[(.+?)\]\(#(.+?)\) \| (.+) \|$", text, re.MULTILINE)
    return {anchor: [name, *rest.split(" | ")] for name, anchor, rest in rows}


def with_cards(text: str, language: str) -> str:
    """Return the page with a card in place of every marker.

    Raises:
        ValueError: If a metric of the registry has no marker, a marker no metric, or a metric's
            section no row in the first table.
    """
    named = MARKER.findall(text)
    if sorted(named) != sorted(METRICS):
        wrong = sorted(set(named) ^ set(METRICS)) or named
        raise ValueError(
            f"the page of metrics ({language}) must have a section with <!-- metric: … --> for "
            f"every metric of krag_eval.METRICS, once, and for no other; see {', '.join(wrong)}."
        )
    rows = rows_by_anchor(text)

    def of(match: re.Match[str]) -> str:
        heading = re.findall(r"^## (.+)$", text[: match.start()], re.MULTILINE)[-1]
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        if anchor not in rows:
            raise ValueError(f"the table at the top has no row that leads to #{anchor}.")
        return card(match[1], rows[anchor], language)

    return MARKER.sub(of, text)


def put_cards(app: Any, page: str, source: list[str]) -> None:
    """Change the source of the two pages as Sphinx reads them."""
    if page in PAGES:
        source[0] = with_cards(source[0], PAGES[page])


def setup(app: Any) -> dict[str, bool]:
    """Run on every page read."""
    app.connect("source-read", put_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
