"""One query at a time: what a metric of your own sees that is written for a single query.

Built-in metrics are computed for all queries together, on arrays; this is the slower and plainer
way, with the documents themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.conventions import Conventions
from krag_eval.core.documents import AnyOf, DocumentLike, metadata_of, text_of
from krag_eval.core.errors import InvalidInput, InvalidType
from krag_eval.core.scoring.relevance import Relevance


@dataclass(frozen=True, eq=False)
class JudgedQuery:
    """One query: its retrieved documents within a cutoff, and what each of them matches.

    Attributes:
        label: The query's label: its question, where questions were given.
        position: Its position, from 0.
        documents: The retrieved documents within the cutoff, best first, as they were passed.
        relevant: Whether each of these documents is relevant.
        ground_truth: The ground-truth items, as they were passed; an ``AnyOf`` is one. Repeats and
            items of grade 0 are left out.
        grades: The grade of each item.
        matches: Per document, the positions in ``ground_truth`` of the items it matches. Where
            documents count together, the one that completes an item matches it.
        first_ranks: Per item, the first rank that covers it; ``None`` if no rank within the cutoff
            does.
    """

    label: str | int
    position: int
    documents: tuple[DocumentLike, ...]
    relevant: tuple[bool, ...]
    ground_truth: tuple[DocumentLike | AnyOf, ...]
    grades: tuple[float, ...]
    matches: tuple[tuple[int, ...], ...]
    first_ranks: tuple[int | None, ...]

    @property
    def texts(self) -> list[str]:
        """The texts of the documents."""
        return list(map(text_of, self.documents))

    @property
    def metadata(self) -> list[Mapping[str, Any]]:
        """The metadata of the documents; empty for a plain string."""
        return [metadata_of(document) for document in self.documents]


def judged(relevance: Relevance, k: int | None) -> Iterator[JudgedQuery]:
    """Yield every query with what was found for it.

    Raises:
        InvalidInput: If the documents are no longer there.
    """
    queries = relevance.queries
    if queries is None:
        raise InvalidInput(
            "metrics",
            ": a metric that is computed per query needs the documents, and they were not kept",
            "evaluate with it from the start",
        )
    n_seen = relevance.retrieved_within(k).tolist()
    items = np.searchsorted(relevance.item_query, np.arange(relevance.n_queries + 1)).tolist()
    given = relevance.item_number
    hits = np.searchsorted(relevance.hit_item, items).tolist()
    query, rank, since = relevance.relevant_from
    counts = rank if k is None else np.where(since <= k, rank, 0)
    ends = np.searchsorted(query, np.arange(relevance.n_queries + 1)).tolist()
    first_ranks = np.zeros(len(relevance.grade), np.int64)
    first_ranks[relevance.covered] = relevance.first_rank
    for position, label in enumerate(queries.labels):
        n, first, last = n_seen[position], items[position], items[position + 1]
        begin, end = hits[position], hits[position + 1]
        relevant = set(counts[ends[position] : ends[position + 1]].tolist())
        listed = queries.actual[position]
        numbers = range(len(listed)) if given is None else (given[first:last] - 1).tolist()
        ranks = first_ranks[first:last].tolist()
        matches: list[list[int]] = [[] for _ in range(n)]
        pairs = relevance.hit_item[begin:end] - first, relevance.hit_rank[begin:end]
        for item, place in zip(*(one.tolist() for one in pairs), strict=True):
            if place <= n:
                matches[place - 1].append(item)
        yield JudgedQuery(
            label=label,
            position=position,
            documents=tuple(queries.predicted[position][:n]),
            relevant=tuple(place in relevant for place in range(1, n + 1)),
            ground_truth=tuple(listed[number] for number in numbers),
            grades=tuple(relevance.grade[first:last].tolist()),
            matches=tuple(map(tuple, matches)),
            first_ranks=tuple(one if 0 < one <= n else None for one in ranks),
        )


@dataclass(frozen=True)
class PerQuery:
    """A function of one query, as a metric is computed: for all queries.

    Attributes:
        name: The metric's name, for errors.
        function: ``query -> number``; ``None`` where the metric is undefined.
    """

    name: str
    function: Callable[[JudgedQuery], float | None]

    def __call__(
        self, relevance: Relevance, k: int | None, conventions: Conventions
    ) -> NDArray[np.float64]:
        """Return one value per query; shape (queries,), NaN where undefined.

        Raises:
            InvalidType: If the function returns something else than a number; it names the query.
        """
        values = []
        for query in judged(relevance, k):
            value = self.function(query)
            try:
                values.append(np.nan if value is None else float(value))
            except (TypeError, ValueError):
                came = f"got {type(value).__name__} for query {query.label!r}"
                problem = f": {self.name!r} must return a number or None, {came}"
                raise InvalidType("metrics", problem) from None
        return np.array(values, np.float64)
