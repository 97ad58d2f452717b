"""Explanations: one query, with what every document matched and how every item was found or missed.

pandas is loaded only for a table.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from krag_eval.core.conventions import Conventions
from krag_eval.core.documents import text_of
from krag_eval.core.errors import InvalidInput, InvalidType
from krag_eval.core.language import Language
from krag_eval.core.matching.base import Matcher
from krag_eval.core.matching.coverage import CoverageMatcher
from krag_eval.core.matching.exact import (
    ContainsMatcher,
    ExactTextMatcher,
    IdMatcher,
    MetadataMatcher,
)
from krag_eval.core.matching.joins import Pieces
from krag_eval.core.matching.names import matcher_of_signature, resolve_matcher
from krag_eval.core.matching.spans import SpanMatcher
from krag_eval.core.matching.tokenizers import letter_tokens, tokenizer_name
from krag_eval.core.results.evidence import (
    About,
    Evidence,
    GroundTruthItem,
    NearMiss,
    PredictedDocument,
    checked_metadata,
    outcomes,
)
from krag_eval.core.scoring.cutoffs import Cutoff
from krag_eval.core.scoring.metrics import counts_at_places
from krag_eval.core.shown import Shown, page_of

if TYPE_CHECKING:
    import pandas as pd

# Columns of a table whose values are no objects.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("closest", "first_rank", "place", "nearest_rank"), "Int64"),
    **dict.fromkeys(("similarity", "shortfall", "grade"), float),
    **dict.fromkeys(("rank", "item", "alternatives"), np.int64),
}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """One query, explained; made by ``result.explain``.

    ``print`` shows it as text and a notebook as HTML. Texts from documents are clipped around the
    words on which ground truth and prediction agree, and these are highlighted; that comparison is
    for the eye alone and decides nothing.

    Attributes:
        query: The query's label.
        position: Its position, from 0.
        k: The cutoff.
        status: ``"perfect"``, ``"partial"``, ``"missed"``, ``"nothing retrieved"`` or
            ``"no ground truth"``.
        metrics: The query's own metrics at the cutoff; NaN where one is undefined.
        matcher: The matcher's signature.
        threshold: Similarity from which a pair is a match; ``None`` for a matcher that takes none.
        conventions: The conventions the metrics were computed under.
        documents: The predicted documents, best first.
        items: The ground-truth items.
        failure: What went wrong when the retriever was asked, ``"TimeoutError: no answer"``;
            ``None`` if it answered. Such a query counts as nothing retrieved.
        n_seen: Predicted documents within the cutoff; at a budget, those that fit.
        by_runs: Whether the matcher counts words in runs, so that nothing in common means that no
            run is long enough.
        full: Whether to show everything, unless asked otherwise.
        by_letters: Whether the matcher reads this query by letters, whatever the spaces.
        language: What to show it in, unless asked otherwise; ``None`` for what ``KRAG_EVAL_LANG``
            says, else ``"en"``.
        condensed: Whether the metrics are those of the list without its unjudged documents; ranks
            are those of the whole list.
        columns: How much of a text is shown, in columns of a terminal.
        id: The query's own id, where each has one.
    """

    query: str | int
    position: int
    k: Cutoff
    status: str
    metrics: Mapping[str, float]
    matcher: str
    threshold: float | None
    conventions: Conventions
    documents: tuple[PredictedDocument, ...]
    items: tuple[GroundTruthItem, ...]
    failure: str | None = None
    n_seen: int = 0
    by_runs: bool = False
    full: bool = False
    by_letters: bool = False
    language: Language | None = None
    condensed: bool = False
    columns: int = 400
    id: str | None = None

    @property
    def predicted(self) -> pd.DataFrame:
        """The predicted documents: one row per rank, texts in full.

        Where the query has a list of unwanted documents, ``unwanted`` has those that each matches.
        What is told beside them has columns of its own, ``id``, ``source`` and so on, where any
        document has it; one that would be called like another column has ``metadata:`` in front.
        """
        listed = any(one.unwanted is not None for one in self.documents)
        names = ("rank", "credit", "matches", "first_for", "similarity", "closest",
                 "contradicts", *(["unwanted"] if listed else []), "text")  # fmt: skip
        rows = [[getattr(one, name) for name in names] for one in self.documents]
        return _frame(names, rows, [[one.about] for one in self.documents])

    @property
    def ground_truth(self) -> pd.DataFrame:
        """The ground-truth items: one row each, texts in full; alternatives joined by ``" | "``.

        ``contradicted_by`` has the ranks of the documents that say something else. What is told
        beside them has columns of its own, as in :attr:`predicted`.
        """
        names = ("item", "grade", "outcome", "first_rank", "place", "nearest_rank", "similarity",
                 "shortfall", "contradicted_by", "alternatives", "text")  # fmt: skip
        rows = [
            [one.number, *(getattr(one, name) for name in names[1:-3]),
             tuple(by.rank for by in one.contradicted), one.n_alternatives,
             None if one.alternatives is None else " | ".join(one.alternatives)]
            for one in self.items
        ]  # fmt: skip
        return _frame(names, rows, [one.about for one in self.items])

    def to_text(
        self, width: int = 100, *, full: bool | None = None, language: Language | None = None
    ) -> str:
        """Return the explanation as lines of at most ``width`` columns (at least 40).

        Args:
            width: The columns.
            full: Whether to show all documents, all items and their whole texts; as asked of
                ``result.explain`` if not given.
            language: ``"en"`` or ``"ko"``; as asked of ``result.explain`` if not given.
        """
        width = max(width, 40)
        return page_of(self._asked(full, language, width)).text(width)

    def to_html(self, *, full: bool | None = None, language: Language | None = None) -> str:
        """Return the explanation as an HTML fragment that nothing in a text can break out of.

        Args:
            full: As in :meth:`to_text`.
            language: As there.
        """
        return page_of(self._asked(full, language)).html()

    def _asked(
        self, full: bool | None, language: Language | None, columns: int = 400
    ) -> Explanation:
        full = self.full if full is None else full
        return replace(self, full=full, language=language or self.language, columns=columns)

    def __repr__(self) -> str:
        return self.to_text()


def _frame(
    names: Sequence[str], rows: Sequence[Sequence[object]], about: Sequence[Sequence[About]]
) -> pd.DataFrame:
    """Return a table, indexed by the first of its names, with a column per name told of any row.

    What is told of alternatives is joined.
    """
    import pandas as pd

    index, *columns = names
    types = {name: kind for name, kind in _TYPES.items() if name in names}
    table = pd.DataFrame([*rows], columns=[*names], dtype=object).astype(types).set_index(index)
    for name in dict.fromkeys(name for row in about for one in row for name, _ in one):
        values = [[dict(one).get(name) for one in row] for row in about]
        cells = [
            " | ".join("–" if one is None else one for one in row) if any(row) else None
            for row in values
        ]
        column = f"metadata:{name}" if name in columns else name
        table[column] = pd.Series(cells, table.index, dtype=object)
    return table


def explained(
    evidence: Evidence,
    position: int,
    *,
    k: Cutoff,
    matcher: str,
    conventions: Conventions,
    metadata: str | Iterable[str] | None = None,
    **known: Any,
) -> Explanation:
    """Explain one query from the evidence, and what else is known of it."""
    graded_by = conventions.graded_by if counts_at_places(conventions) else None
    documents, items = outcomes(evidence, position, k, graded_by, checked_metadata(metadata))
    held = _known_matcher(evidence, position, matcher)
    if evidence.texts is not None and isinstance(held, CoverageMatcher):
        items = tuple(_said_otherwise(item, documents, held) for item in items)
    return Explanation(
        position=position,
        k=k,
        matcher=matcher,
        threshold=evidence.relevance.threshold if evidence.takes_threshold else None,
        conventions=conventions,
        documents=documents,
        items=_with_near_misses(items, documents, evidence, position, held),
        n_seen=int(evidence.relevance.seen_within(k)[position]),
        by_runs=evidence.relevance.pieces is not None and not isinstance(held, SpanMatcher),
        by_letters=any(
            getattr(part, "tokenizer", None) is letter_tokens
            for part in getattr(held, "parts", (held,))
        ),
        **known,
    )


def _said_otherwise(
    item: GroundTruthItem, documents: Sequence[PredictedDocument], matcher: CoverageMatcher
) -> GroundTruthItem:
    """Add to an item what the documents that contradict it say."""
    texts = item.alternatives or ()
    pairs = [(texts[one.alternative], documents[one.rank - 1].text or "", one)
             for one in item.contradicted]  # fmt: skip
    told = (replace(one, said=matcher.said_otherwise(*pair)) for *pair, one in pairs)
    return replace(item, contradicted=tuple(told))


def _with_near_misses(
    items: tuple[GroundTruthItem, ...],
    documents: Sequence[PredictedDocument],
    evidence: Evidence,
    position: int,
    matcher: Matcher | None,
) -> tuple[GroundTruthItem, ...]:
    """Add to each item with nothing in common what that means, where the matcher is known."""
    is_asked = [item.outcome == "nothing in common" and not item.contradicted for item in items]
    if not any(is_asked):
        return items
    find: Callable[[int, GroundTruthItem], NearMiss | None] = partial(
        _keys_missed, matcher, documents
    )
    if not documents:
        find = lambda *_: NearMiss("nothing retrieved")  # noqa: E731
    elif isinstance(matcher, CoverageMatcher):
        words = [
            (one.rank, set(matcher.tokenizer(one.text)))
            for one in documents
            if one.text is not None
        ]
        find = partial(_runs_missed, matcher, evidence.of_query(position).pieces, words)
    return tuple(
        replace(item, near=find(place, item)) if is_asked[place] else item
        for place, item in enumerate(items)
    )


# Built-in matchers that a result which was read back names well enough to ask them again.
_NAMED = ("text", "contains", "id", "metadata", "coverage", "spans")


def _known_matcher(evidence: Evidence, position: int, signature: str) -> Matcher | None:
    """Return what decides about a query, held or named by the signature."""
    matcher = evidence.matcher
    if matcher is None and signature.partition("(")[0] in _NAMED:
        try:
            matcher = matcher_of_signature(signature)
        except (InvalidInput, InvalidType):
            return None  # it has a tokenizer, or something else, of the user's own
    if matcher is None or evidence.texts is None or matcher._for_ground_truth([]) is matcher:
        return matcher
    items = evidence.texts.ground_truth(position)
    return matcher._for_ground_truth([text_of(one) for several in items for one in several])


_KINDS: Mapping[type[Matcher], Literal["text", "contains", "id", "metadata"]] = {
    ExactTextMatcher: "text",
    ContainsMatcher: "contains",
    IdMatcher: "id",
    MetadataMatcher: "metadata",
}


def _keys_missed(
    matcher: Matcher | None,
    documents: Sequence[PredictedDocument],
    _: int,
    item: GroundTruthItem,
) -> NearMiss | None:
    """Return what a matcher that decides by equality did not find."""
    kind = _KINDS.get(type(matcher))  # type: ignore[arg-type]
    if kind is None:
        return None
    pairs = product(item.alternatives or (), documents) if kind == "text" else ()
    differing = [
        (len(but_for), document.rank, but_for, text, document.text)
        for text, document in pairs
        if document.text is not None and (but_for := _difference(text, document.text))
    ]
    if not differing:
        return NearMiss(kind)
    _, rank, but_for, text, other = min(differing)
    would = [
        name
        for name in ("contains", "coverage")
        if (one := resolve_matcher(name)).similarity(text, other) >= one.threshold
    ]
    return NearMiss(kind, rank=rank, but_for=but_for, matchers=tuple(would))


_FOLDINGS: Mapping[str, Callable[[str], str]] = {
    "Unicode form": partial(unicodedata.normalize, "NFKC"),
    "case": str.casefold,
    "punctuation": lambda text: "".join(
        one for one in text if not unicodedata.category(one).startswith("P")
    ),
    "white space": lambda text: "".join(text.split()),
}


def _difference(first: str, second: str) -> tuple[str, ...]:
    """Return the fewest things that two texts differ in, if they differ in nothing else.

    >>> _difference("Opening hours", "opening  hours"), _difference("１４ days", "14 days.")
    (('case', 'white space'), ('Unicode form', 'punctuation'))
    >>> _difference("a", "b"), _difference("a", "a")
    ((), ())
    """

    def alike(foldings: Iterable[str]) -> bool:
        one, other = (
            reduce(lambda text, name: _FOLDINGS[name](text), foldings, text)
            for text in (first, second)
        )
        folded = unicodedata.normalize("NFC", one)
        return bool(folded) and folded == unicodedata.normalize("NFC", other)

    if not alike(_FOLDINGS):
        return ()
    sizes = range(len(_FOLDINGS) + 1)
    several = (some for size in sizes for some in combinations(_FOLDINGS, size))
    return next(filter(alike, several), ())


def _runs_missed(
    matcher: CoverageMatcher,
    pieces: Pieces | None,
    documents: Sequence[tuple[int, set[str]]],
    place: int,
    item: GroundTruthItem,
) -> NearMiss | None:
    """Return what an item has in common with documents that it shares no run of words with.

    Args:
        matcher: The matcher.
        pieces: How many words the items of the query have.
        documents: The rank of each document, and its different words.
        place: The item's place among those of the query.
        item: The item.
    """
    # Of a class of the user's own, nobody knows what a similarity of 0 means.
    if pieces is None or type(matcher).block_scorer is not CoverageMatcher.block_scorer:
        return None
    sizes = pieces.alternative_tokens[pieces.alternative_item == place]
    run = min(matcher.min_run, int(sizes.max(initial=0)))
    if run == 0:
        return NearMiss("no words")
    name = tokenizer_name(matcher.tokenizer, marked=False)
    near = NearMiss(
        "numbers" if matcher.numbers == "anywhere" else "run",
        run,
        "characters" if name in _CHARACTERS else "words" if name in _WORDS else "tokens",
    )
    if item.alternatives is None:
        return near
    shared = [
        (len(words & of_document), -rank, len(words))
        for words in (set(matcher.tokenizer(text)) for text in item.alternatives)
        for rank, of_document in documents
    ]
    most, rank, tokens = max(shared, key=lambda one: one[:2])
    return replace(near, shared=most, tokens=tokens, rank=-rank if most else None)


# Tokenizers that take a text apart into words.
_WORDS = ("words", "unicode", "rouge_score", "whitespace")
_CHARACTERS = ("character", "letters")
