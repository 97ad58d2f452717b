"""Words of the ground truth that came back, and at what cost: the counts of token metrics.

After Chroma's token-wise recall, precision and IoU (chunking_evaluation), without its offsets: what
a document holds is known from the runs of tokens it shares with the ground truth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        useful: Of these, those that bring words of the ground truth no better-ranked document has.
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
    n_queries = relevance.n_queries
    added = slice(None) if k is None else pieces.added_rank <= k
    alternative, tokens = pieces.added_alternative[added], pieces.added_tokens[added]
    n_alternatives = len(pieces.alternative_item)
    held = np.bincount(alternative, tokens, minlength=n_alternatives)
    chosen = _chosen(pieces, held)
    query = relevance.item_query[pieces.alternative_item]

    def of_queries(query: IntArray, tokens: NDArray[Any]) -> IntArray:
        sums = np.bincount(query, tokens, minlength=n_queries)
        return np.asarray(sums, np.int64)  # whole numbers far below 2**53

    new = chosen[alternative]
    step = int(relevance.n_retrieved.max(initial=0)) + 1
    place, first = _places(pieces, query, chosen, k, step)
    bringing, at = np.unique(
        query[alternative[new]] * step + pieces.added_rank[added][new], return_inverse=True
    )
    brought = np.bincount(at.reshape(-1), tokens[new], minlength=len(bringing))
    own = first[np.searchsorted(place, bringing)]
    return TokenCounts(
        of_queries(query[chosen], pieces.alternative_tokens[chosen]),
        of_queries(query[chosen], held[chosen]),
        _retrieved(relevance, pieces, k),
        of_queries(place // step, first),
        of_queries(bringing // step, np.minimum(brought, own)),
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


def _places(
    pieces: Pieces, query: IntArray, chosen: BoolArray, k: int | None, step: int
) -> tuple[IntArray, IntArray]:
    """Return the documents that share a run with the ground truth, and how many such tokens.

    A document is its query times ``step``, plus its rank; they are ascending.
    """
    kept = chosen[pieces.span_alternative]
    if k is not None:
        kept &= pieces.span_rank <= k
    document = query[pieces.span_alternative[kept]] * step + pieces.span_rank[kept]
    start, stop = pieces.span_start[kept], pieces.span_stop[kept]
    order = np.lexsort((start, document))
    document, start, stop = document[order], start[order], stop[order]
    places, first, number = np.unique(document, return_index=True, return_inverse=True)
    # One line for all documents, each on a stretch of its own: what was passed is not new.
    shift = number.reshape(-1) * (int(stop.max(initial=0)) + 1)
    passed = np.maximum.accumulate(np.concatenate([[0], stop + shift]))[:-1]
    new = np.maximum(stop + shift - np.maximum(start + shift, passed), 0)
    return places, np.add.reduceat(new, first) if len(first) else new


def _retrieved(relevance: Relevance, pieces: Pieces, k: int | None) -> IntArray:
    """Return the tokens of the documents within the cutoff; shape (queries,)."""
    ends = np.concatenate([[0], np.cumsum(pieces.document_tokens)])
    last = np.cumsum(relevance.n_retrieved)
    begin = last - relevance.n_retrieved
    return np.asarray(ends[begin + relevance.retrieved_within(k)] - ends[begin], np.int64)
