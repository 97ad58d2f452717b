"""Words of the ground truth that came back, and at what cost: the counts of token metrics.

After Chroma's token-wise recall, precision and IoU (chunking_evaluation), without its offsets: what
a document holds is known from the runs of tokens it shares with the ground truth.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.errors import InvalidInput
from krag_eval.core.matching.joins import BoolArray, IntArray, Pieces
from krag_eval.core.scoring.relevance import Relevance


class TokenCounts(NamedTuple):
    """Tokens per query within a cutoff; each of shape (queries,).

    Of an item with alternatives, that one counts of which the greatest share is held at the cutoff.

    Attributes:
        wanted: Of the ground truth.
        covered: Of these, those that the documents hold, all together.
        retrieved: Of the documents.
        matching: Of these, those in runs shared with the ground truth, every repeat included.
        useful: Of these, those that bring words of the ground truth no better-ranked document has;
            one that brings words of several items, or several words, counts once.
    """

    wanted: IntArray
    covered: IntArray
    retrieved: IntArray
    matching: IntArray
    useful: IntArray


def token_counts(relevance: Relevance, k: int | None) -> TokenCounts:
    """Count the tokens within a cutoff.

    Raises:
        InvalidInput: If the matcher does not know which words a document holds.
    """
    counts: TokenCounts | None = relevance._counts.get(("tokens", k))
    if counts is None:
        counts = _counted(relevance, relevance.pieces_known, k)
        relevance._counts["tokens", k] = counts
    return counts


def _counted(relevance: Relevance, pieces: Pieces, k: int | None) -> TokenCounts:
    brought = len(pieces.brought_alternative) + len(pieces.edge_alternative)
    if len(pieces.added_alternative) and not brought:
        raise InvalidInput(
            "result",
            "was saved before krag_eval counted words by their place in a document",
            "evaluate it anew",
        )
    query = relevance.item_query[pieces.alternative_item]
    added = slice(None) if k is None else pieces.added_rank <= k
    alternative, tokens = pieces.added_alternative[added], pieces.added_tokens[added]
    held = np.bincount(alternative, tokens, minlength=len(query))
    chosen = _chosen(pieces, held)

    def of_queries(tokens: NDArray[Any]) -> IntArray:
        sums = np.bincount(query[chosen], tokens[chosen], minlength=relevance.n_queries)
        return np.asarray(sums, np.int64)  # whole numbers far below 2**53

    def of_documents(kind: Literal["span", "brought"]) -> IntArray:
        """Count the tokens of such stretches, and of those where a passage was cut."""
        columns = ("alternative", "rank", "rank", "start", "stop")
        rows = [getattr(pieces, f"{kind}_{column}") for column in columns]
        if len(pieces.edge_rank):
            columns = ("alternative", "rank", "at", "start", "stop")
            edges = [getattr(pieces, f"edge_{column}") for column in columns]
            rows = [np.concatenate(both) for both in zip(rows, edges, strict=True)]
        return _distinct(relevance, query, chosen, k, *rows)

    return TokenCounts(
        of_queries(pieces.alternative_tokens),
        of_queries(held),
        _retrieved(relevance, pieces, k),
        of_documents("span"),
        of_documents("brought"),
    )


def _chosen(pieces: Pieces, held: NDArray[Any]) -> BoolArray:
    """Return the alternative of each item of which the greatest share is held, the first of equals.

    Shape (alternatives,). One without words is chosen only where there is no other.
    """
    item = pieces.alternative_item
    start = np.flatnonzero(np.diff(item, prepend=-1))
    if len(start) == len(item):
        return np.ones(len(item), np.bool_)
    tokens = pieces.alternative_tokens
    share = np.where(tokens > 0, held / np.maximum(tokens, 1), -1.0)
    best = np.lexsort((-share, item))[start]  # stable, so the first of equals stays first
    chosen = np.zeros(len(item), np.bool_)
    chosen[best] = True
    return chosen


def _distinct(
    relevance: Relevance,
    query: IntArray,
    chosen: BoolArray,
    k: int | None,
    alternative: IntArray,
    since: IntArray,
    rank: IntArray,
    start: IntArray,
    stop: IntArray,
) -> IntArray:
    """Return how many tokens of documents lie in stretches, each once; shape (queries,).

    Args:
        relevance: What was found.
        query: The query of each alternative.
        chosen: Whether an alternative counts.
        k: The cutoff.
        alternative: The alternative that each stretch is about.
        since: The rank from which it counts.
        rank: The rank of its document.
        start: Its first token.
        stop: The one after its last.
    """
    within = chosen[alternative]
    if k is not None:
        within &= since <= k
    query, start, stop = query[alternative[within]], start[within], stop[within]
    step = int(relevance.n_retrieved.max(initial=0)) + 1
    document = query * step + rank[within]
    order = np.lexsort((start, document))
    query, document, start, stop = (one[order] for one in (query, document, start, stop))
    # One line for all documents, each on a stretch of its own: what was passed is not new.
    number = np.cumsum(np.diff(document, prepend=-1) != 0)
    shift = number * (int(stop.max(initial=0)) + 1)
    passed = np.maximum.accumulate(np.concatenate([[0], stop + shift]))[:-1]
    new = np.maximum(stop + shift - np.maximum(start + shift, passed), 0)
    return np.asarray(np.bincount(query, new, minlength=relevance.n_queries), np.int64)


def _retrieved(relevance: Relevance, pieces: Pieces, k: int | None) -> IntArray:
    """Return the tokens of the documents within the cutoff; shape (queries,)."""
    ends = np.concatenate([[0], np.cumsum(pieces.document_tokens)])
    last = np.cumsum(relevance.n_retrieved)
    begin = last - relevance.n_retrieved
    return np.asarray(ends[begin + relevance.retrieved_within(k)] - ends[begin], np.int64)
