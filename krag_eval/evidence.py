"""Evidence: which predicted document is how similar to which ground-truth item, kept for later.

This room knows the flat arrays of ``relevance`` and where the texts are. It must not know metrics,
results, or how anything is shown. Nothing is copied: the arrays are the evaluator's, and texts are
read from the user's own documents when somebody asks for one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from krag_eval.documents import AnyOf, QuerySet, text_of
from krag_eval.scoring.relevance import Relevance

__all__ = ["DocumentTexts", "Evidence", "StoredTexts", "Texts"]


class Texts(Protocol):
    """The texts of one query at a time."""

    def actual(self, query: int) -> list[tuple[str, ...]]:
        """Return the alternatives of each ground-truth item as listed; one for a plain one."""

    def predicted(self, query: int) -> list[str]:
        """Return the predicted texts, best first."""


@dataclass(frozen=True, eq=False)
class DocumentTexts:
    """Texts in the user's own documents, read when asked for."""

    queries: QuerySet

    def actual(self, query: int) -> list[tuple[str, ...]]:
        """Return the alternatives of each ground-truth item as listed; one for a plain one."""
        return [
            tuple(map(text_of, item.alternatives)) if isinstance(item, AnyOf) else (text_of(item),)
            for item in self.queries.actual[query]
        ]

    def predicted(self, query: int) -> list[str]:
        """Return the predicted texts, best first."""
        return list(map(text_of, self.queries.predicted[query]))


@dataclass(frozen=True, eq=False)
class StoredTexts:
    """Texts that were read from a file, each distinct one held once.

    Attributes:
        distinct: The texts.
        actual_numbers: Per query and item, the positions of its alternatives among them.
        predicted_numbers: Per query, the positions of its predicted documents.
    """

    distinct: Sequence[str]
    actual_numbers: Sequence[Sequence[Sequence[int]]]
    predicted_numbers: Sequence[Sequence[int]]

    def actual(self, query: int) -> list[tuple[str, ...]]:
        """Return the alternatives of each ground-truth item as listed; one for a plain one."""
        return [tuple(self.distinct[i] for i in item) for item in self.actual_numbers[query]]

    def predicted(self, query: int) -> list[str]:
        """Return the predicted texts, best first."""
        return [self.distinct[i] for i in self.predicted_numbers[query]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a result can be explained from; made by the evaluator.

    Attributes:
        relevance: Every pair with a similarity above 0, and what follows from the threshold.
        takes_threshold: Whether another threshold would make sense to the matcher.
        texts: Where the texts are, ``None`` if they were not kept.
    """

    relevance: Relevance
    takes_threshold: bool
    texts: Texts | None = None

    @classmethod
    def of(
        cls, relevance: Relevance, *, takes_threshold: bool, texts: Texts | None = None
    ) -> Evidence:
        """Keep the arrays, and nothing that was worked out from them."""
        return cls(replace(relevance, _counts={}), takes_threshold, texts)

    def at_threshold(self, threshold: float) -> Relevance:
        """Return what another threshold makes of the same similarities."""
        return replace(self.relevance, threshold=threshold, _counts={})

    def of_query(self, query: int) -> Relevance:
        """Return what was found for one query, its items numbered from 0."""
        whole = self.relevance
        first, last = np.searchsorted(whole.item_query, [query, query + 1])
        start, stop = np.searchsorted(whole.pair_item, [first, last])
        return Relevance(
            n_retrieved=whole.n_retrieved[query : query + 1],
            item_query=np.zeros(last - first, np.int64),
            grade=whole.grade[first:last],
            n_alternatives=whole.n_alternatives[first:last],
            pair_item=whole.pair_item[start:stop] - first,
            pair_rank=whole.pair_rank[start:stop],
            pair_similarity=whole.pair_similarity[start:stop],
            threshold=whole.threshold,
            item_number=None if whole.item_number is None else whole.item_number[first:last],
        )

    def items(self) -> list[tuple[int, int]]:
        """Return query and number of every item: its place in the list as given, from 1."""
        relevance = self.relevance
        numbers = relevance.item_number
        if numbers is None:
            query = relevance.item_query
            numbers = np.arange(len(query)) - np.searchsorted(query, query) + 1
        return list(zip(relevance.item_query.tolist(), numbers.tolist(), strict=True))
