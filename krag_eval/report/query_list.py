"""The list of queries of a page: what became of each, in words and marked stretches of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval._text import Excerpt, fitted, whole_percent
from krag_eval.report.rendering import words_of
from krag_eval.results.explanation import _highlighted as highlighted
from krag_eval.results.explanation import aside, near_in_words
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import RowsInMemory
from krag_eval.scoring.cutoffs import Cutoff, spelled

if TYPE_CHECKING:
    from krag_eval.results.evidence import GroundTruthItem, PredictedDocument
    from krag_eval.results.explanation import Explanation

__all__ = ["ToldQuery", "ToldRow", "hardest", "told_query"]


def hardest(
    result: EvaluationResult,
    k: Cutoff,
    n_queries: int,
    w: Mapping[str, str],
    metadata: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Gather what the template shows of the queries that lost most."""
    places = _positions(result, k)
    told: list[ToldQuery] = []
    if result.evidence is not None:
        shown = places[:n_queries]
        told = [
            told_query(result.explain(k=k, position=place, metadata=metadata), w) for place in shown
        ]
    lost, cutoff = len(places), words_of(k, w)
    note = w["hardest note"] if lost else w["none missed"]
    return {
        "hardest": told,
        "show_hardest": n_queries > 0,
        "hardest_note": note.format(cutoff=cutoff),
        "hardest_more": w["not shown"].format(shown=len(told), total=lost)
        if len(told) < lost
        else "",
        "no_evidence": w["no evidence"] if result.evidence is None and lost else "",
    }


def _positions(result: EvaluationResult, k: Cutoff) -> list[int]:
    """Return the positions of the queries that lost most, those that lost most first.

    Labels need not be unique; with positions for labels they are.
    """
    numbered = RowsInMemory(list(range(result.n_queries)), result.tables, result.counted)
    by_position = replace(result, rows=numbered)
    return [int(position) for position in by_position.misses(k).index]


# Columns of a text, and of a query.
_WIDTH, _QUERY_WIDTH = 600, 300


class ToldRow(NamedTuple):
    """A document or an item: its number, what is said, its texts in marked stretches, its id."""

    number: int
    said: str
    tone: str
    texts: list[list[tuple[str, bool]]]
    aside: str = ""


class ToldQuery(NamedTuple):
    """What the page shows of one query."""

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
        name=fitted(str(explanation.query), _QUERY_WIDTH),
        status=explanation.status,
        metrics=_metrics(explanation.metrics, explanation.k),
        ground_truth=[
            ToldRow(item.number,
                    _item(item, explanation.threshold, w, by_runs=explanation.by_runs),
                    _item_tone(item), _texts(items[item.number], item.alternatives, w),
                    aside(*item.about))
            for item in shown_items
        ],
        more_items=len(explanation.items) - len(shown_items),
        predicted=[
            ToldRow(one.rank, _document(one, w), _document_tone(one),
                    _texts(documents[one.rank], one.text, w), aside(one.about))
            for one in shown_documents
        ],
        more_documents=len(explanation.documents) - len(shown_documents),
    )  # fmt: skip


def _metrics(metrics: Mapping[str, float], k: Cutoff) -> str:
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


def _item(
    item: GroundTruthItem, threshold: float | None, w: Mapping[str, str], *, by_runs: bool
) -> str:
    told = {
        "found": w["found"].format(item.first_rank),
        "found in pieces": w["found in pieces"].format(_together(item, w)),
        "beyond cutoff": w["pieces beyond cutoff" if item.pieces else "item beyond cutoff"].format(
            item.first_rank, pieces=_together(item, w), rank=item.first_rank
        ),
        "nothing in common": w["no run in common" if by_runs else "nothing in common"]
        if item.near is None
        else w["missed because"].format(near_in_words(item.near, w)),
    }
    missed = w["item missed" if threshold is not None else "item missed without threshold"]
    if item.pieces:
        missed = w["item missed in pieces"].replace("{pieces}", _together(item, w))
    said = told.get(item.outcome) or missed.format(
        rank=item.nearest_rank, shortfall=_short(item.shortfall)
    )
    parts = [said]
    if item.place != item.first_rank and item.place is not None:
        parts.append(w["place"].format(item.place))
    if item.similarity and threshold is not None and not item.pieces:
        parts.append(w["similarity"].format(_short(item.similarity)))
    if item.grade != 1:
        parts.append(w["grade"].format(f"{item.grade:g}"))
    if item.n_alternatives > 1:
        parts.append(w["any of"].format(item.n_alternatives))
    return " · ".join(parts)


def _together(item: GroundTruthItem, w: Mapping[str, str]) -> str:
    if not item.pieces:
        return ""
    *others, last = map(str, item.pieces)
    return w["together"].format(
        others=", ".join(others), last=last, share=whole_percent(item.similarity)
    )


def _document(document: PredictedDocument, w: Mapping[str, str]) -> str:
    again = [number for number in document.matches if number not in document.first_for]
    parts = {
        "first": [w["first"].format(_numbered(document.first_for, w))],
        "repeat": [],
        "piece": [w["piece"].format(_numbered(document.piece_of, w))],
        "not relevant": [w["not relevant"]],
        "beyond cutoff": [w["beyond cutoff"].format(_numbered(document.matches, w))],
    }[document.credit]
    completes = [number for number in document.first_for if number in document.piece_of]
    if completes and document.credit in ("first", "beyond cutoff"):
        is_first = document.credit == "first"
        alone = document.first_for if is_first else document.matches
        alone = tuple(number for number in alone if number not in completes)
        parts = [w[document.credit].format(_numbered(alone, w))] if alone else []
        name = "completes" if is_first else "completes beyond cutoff"
        parts.insert(0, w[name].format(_numbered(completes, w)))
    others = [number for number in document.piece_of if number not in document.first_for]
    if document.credit == "first" and others:
        parts.append(w["piece"].format(_numbered(others, w)))
    if document.credit in ("first", "repeat", "piece") and again:
        parts.append(w["repeat"].format(_numbered(again, w)))
    if document.similarity:
        parts.append(w["similarity"].format(_short(document.similarity)))
    if not document.matches and document.credit != "piece" and document.closest is not None:
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
    return "good" if item.outcome.startswith("found") else "bad"


def _document_tone(document: PredictedDocument) -> str:
    return {"first": "good", "piece": "good", "repeat": "plain"}.get(document.credit, "faint")
