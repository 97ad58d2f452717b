"""One query with its evidence, in the words of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval._text import Excerpt, one_line
from krag_eval.results.explanation import _highlighted as highlighted
from krag_eval.scoring.cutoffs import spelled

if TYPE_CHECKING:
    from krag_eval.results.evidence import GroundTruthItem, PredictedDocument
    from krag_eval.results.explanation import Explanation

__all__ = ["ToldQuery", "ToldRow", "told_query"]

# Columns of a text, and of a query.
_WIDTH, _QUERY_WIDTH = 600, 300


class ToldRow(NamedTuple):
    """A document or an item: its number, what is said of it, its texts in marked stretches."""

    number: int
    said: str
    tone: str
    texts: list[list[tuple[str, bool]]]


class ToldQuery(NamedTuple):
    """All that is told of one query."""

    name: str
    status: str
    metrics: str
    ground_truth: list[ToldRow]
    more_items: int
    predicted: list[ToldRow]
    more_documents: int


def told_query(explanation: Explanation, w: Mapping[str, str]) -> ToldQuery:
    """Put an explanation into words."""
    documents, items = highlighted(explanation)
    shown_items = [item for item in explanation.items if item.number in items]
    shown_documents = [one for one in explanation.documents if one.rank in documents]
    return ToldQuery(
        name=one_line(str(explanation.query), _QUERY_WIDTH),
        status=explanation.status,
        metrics=_metrics(explanation.metrics, explanation.k),
        ground_truth=[
            ToldRow(item.number, _item(item, explanation.threshold, w), _item_tone(item),
                    _texts(items[item.number], item.alternatives, w))
            for item in shown_items
        ],
        more_items=len(explanation.items) - len(shown_items),
        predicted=[
            ToldRow(one.rank, _document(one, w), _document_tone(one),
                    _texts(documents[one.rank], one.text, w))
            for one in shown_documents
        ],
        more_documents=len(explanation.documents) - len(shown_documents),
    )  # fmt: skip


def _metrics(metrics: Mapping[str, float], k: int | None) -> str:
    return " · ".join(
        f"{name}@{spelled(k)} {value:.2f}"
        for name, value in metrics.items()
        if name != "rank" and not math.isnan(value)
    )


def _texts(
    excerpts: Sequence[Excerpt], known: Any, w: Mapping[str, str]
) -> list[list[tuple[str, bool]]]:
    if known is None:
        return [[(w["no text"], False)]]
    return [excerpt.clipped(_WIDTH) for excerpt in excerpts]


def _item(item: GroundTruthItem, threshold: float | None, w: Mapping[str, str]) -> str:
    told = {
        "found": w["found"].format(item.first_rank),
        "beyond cutoff": w["item beyond cutoff"].format(item.first_rank),
        "nothing in common": w["nothing in common"],
    }
    missed = w["item missed" if threshold is not None else "item missed without threshold"]
    said = told.get(item.outcome) or missed.format(
        rank=item.nearest_rank, shortfall=_short(item.shortfall)
    )
    parts = [said]
    if item.place != item.first_rank and item.place is not None:
        parts.append(w["place"].format(item.place))
    if item.similarity and threshold is not None:
        parts.append(w["similarity"].format(_short(item.similarity)))
    if item.grade != 1:
        parts.append(w["grade"].format(f"{item.grade:g}"))
    if item.n_alternatives > 1:
        parts.append(w["any of"].format(item.n_alternatives))
    return " · ".join(parts)


def _document(document: PredictedDocument, w: Mapping[str, str]) -> str:
    again = [number for number in document.matches if number not in document.first_for]
    parts = {
        "first": [w["first"].format(_numbered(document.first_for, w))],
        "repeat": [],
        "not relevant": [w["not relevant"]],
        "beyond cutoff": [w["beyond cutoff"].format(_numbered(document.matches, w))],
    }[document.credit]
    if document.credit in ("first", "repeat") and again:
        parts.append(w["repeat"].format(_numbered(again, w)))
    if document.similarity:
        parts.append(w["similarity"].format(_short(document.similarity)))
    if not document.matches and document.closest is not None:
        parts.append(w["closest"].format(_numbered([document.closest], w)))
    return " · ".join(parts)


def _numbered(numbers: Iterable[int], w: Mapping[str, str]) -> str:
    listed = list(numbers)
    shown = ", ".join(map(str, listed[:8])) + ("…" if len(listed) > 8 else "")
    return w["item" if len(listed) == 1 else "items"].format(shown)


def _short(value: float) -> str:
    """Round, but not to nothing: a near miss is a miss.

    >>> _short(0.19), _short(0.00001)
    ('0.19', '1e-05')
    """
    return f"{value:.2f}" if value >= 0.005 or not value else f"{value:.0e}"


def _item_tone(item: GroundTruthItem) -> str:
    return "good" if item.outcome == "found" else "bad"


def _document_tone(document: PredictedDocument) -> str:
    return {"first": "good", "repeat": "plain"}.get(document.credit, "faint")
