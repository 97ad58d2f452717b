"""How pairs come together: :class:`Matches`, which every matcher returns, and two ways to build it.

Equal keys are joined by hash; texts are scored in blocks, query by query.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from operator import length_hint
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.documents import QuerySet, as_document, content_key, is_blank, text_of
from krag_eval.core.errors import InvalidInput, InvalidType, clipped, warn_of
from krag_eval.core.language import _

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
#: ``(positions of ground-truth units, positions of predicted units) -> similarities``; where units
#: have questions, with ``question=`` as well.
BlockScorer: TypeAlias = Callable[..., FloatArray]


# Kinds of rows in pieces, and none of them.
_KINDS = ("added", "brought", "span", "contradicted", "agreed", "edge")
_no_rows: Callable[[], Any] = partial(np.empty, 0, np.int64)

# From here on it is worth a look whether the texts of one query are repeated.
_MANY_PAIRS = 10_000
# Of one query: their similarities take 8 GB.
_MOST_PAIRS = 10**9


@dataclass(frozen=True, eq=False)
class Matches:
    """Similarities of ground-truth items and predicted documents, over all queries.

    Only pairs with a similarity above 0 are stored, sorted by item, then rank. Items are numbered
    through all queries in the order they were given.

    Attributes:
        item: Item of each pair; shape (pairs,).
        rank: Rank of the predicted document within its query, from 1; shape (pairs,).
        similarity: Similarity of each pair in (0, 1]; shape (pairs,).
        same_as: The first item of its query that says the same as each item, itself if none
            does; shape (items,).
        pieces: Which words each document holds; ``None`` from matchers that do not know.
    """

    item: IntArray
    rank: IntArray
    similarity: FloatArray
    same_as: IntArray
    pieces: Pieces | None = None

    def __len__(self) -> int:
        return len(self.item)


class KeyJoin:
    """Collects the pairs of equal keys, one query after the other; ``None`` equals nothing.

    Args:
        name: Returns the matcher's name, for error messages.
    """

    def __init__(self, name: Callable[[], str]) -> None:
        self._name = name
        self._items: list[int] = []
        self._ranks: list[int] = []
        self._repeats: dict[int, int] = {}
        self._n_items = 0

    def add(
        self,
        keys: Iterable[list[Any]],
        predicted: Iterable[list[Hashable]],
        *,
        alternatives: bool = False,
    ) -> None:
        """Join queries.

        Args:
            keys: Per query, the key of each of its items, or with ``alternatives`` a list of them.
            predicted: Per query, the key of each document, best first.
            alternatives: Whether items may have several keys.

        Raises:
            InvalidType: If a key is not hashable.
        """
        join = self._join_alternatives if alternatives else self._join
        for query, (wanted, documents) in enumerate(zip(keys, predicted, strict=True)):
            try:
                join(wanted, documents)
            except TypeError as error:
                told = f"{self._name()}: keys must be hashable (text, a number, a tuple): {error}"
                raise InvalidType("matcher", told, query=query) from error

    def _join(self, keys: list[Hashable], predicted: list[Hashable]) -> None:
        wanted = frozenset(keys)
        if len(wanted) < len(keys) or None in wanted:
            self._join_alternatives([[key] for key in keys], predicted)
            return
        # Few are found, so nearly all time goes by over those that are not: ``isdisjoint`` passes
        # them in C and stops at a key that is wanted; how many are left then says at which.
        left = iter(predicted)
        while not wanted.isdisjoint(left):
            rank = len(predicted) - length_hint(left)
            self._items.append(self._n_items + keys.index(predicted[rank - 1]))
            self._ranks.append(rank)
        self._n_items += len(keys)

    def _join_alternatives(self, keys: list[list[Hashable]], predicted: list[Hashable]) -> None:
        wanted: dict[Hashable, list[int]] = {}
        seen: dict[frozenset[Hashable], int] = {}
        for item, alternatives in enumerate(keys, self._n_items):
            known = frozenset(key for key in alternatives if key is not None)
            if known and seen.setdefault(known, item) != item:
                self._repeats[item] = seen[known]
                continue
            for key in known:
                wanted.setdefault(key, []).append(item)
        self._n_items += len(keys)
        for rank, key in enumerate(predicted, 1):
            # ``None`` was never put into ``wanted``.
            for item in wanted.get(key, ()):
                self._items.append(item)
                self._ranks.append(rank)

    def matches(self) -> Matches:
        """Return the pairs of all queries added so far."""
        same_as = np.arange(self._n_items)
        same_as[list(self._repeats)] = list(self._repeats.values())
        item = np.array(self._items, np.int64)
        # Ranks were added in order: a stable sort by item leaves them so.
        order = np.argsort(item, kind="stable")
        rank = np.array(self._ranks, np.int64)[order]
        return Matches(item[order], rank, np.ones(len(order)), same_as)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Which words of the ground truth each document holds, and which of its own words those are.

    Alternatives are the documents of all items, numbered through all queries: one of a plain item,
    several of an ``AnyOf``. Rows of each kind are sorted by alternative, then rank.

    Attributes:
        alternative_item: Item of each alternative, ascending; shape (alternatives,).
        alternative_tokens: Its tokens; shape (alternatives,).
        document_tokens: Tokens of each predicted document, query by query; shape (documents,).
        added_alternative, added_rank, added_tokens: Tokens of an alternative that the document at a
            rank holds and none before it, where there are any.
        brought_alternative, brought_rank, brought_start, brought_stop: The tokens of the document
            at a rank that bring these, as stretches that do not touch, by start.
        span_alternative, span_rank, span_start, span_stop: The tokens of the document at a rank
            that lie in runs shared with an alternative, as stretches that do not touch, by start.
        contradicted_alternative, contradicted_rank, contradicted_share: The documents that say
            something else than an alternative, and how much of it they hold.
        agreed_alternative, agreed_rank, agreed_tokens: Of these alternatives, what ``added`` would
            be without those documents.
        edge_alternative, edge_rank, edge_at, edge_start, edge_stop: Further tokens that bring some,
            where a passage was cut: from a rank on, those of the document at another rank.
    """

    alternative_item: IntArray
    alternative_tokens: IntArray
    document_tokens: IntArray
    added_alternative: IntArray
    added_rank: IntArray
    added_tokens: IntArray
    brought_alternative: IntArray
    brought_rank: IntArray
    brought_start: IntArray
    brought_stop: IntArray
    span_alternative: IntArray
    span_rank: IntArray
    span_start: IntArray
    span_stop: IntArray
    contradicted_alternative: IntArray = field(default_factory=_no_rows)
    contradicted_rank: IntArray = field(default_factory=_no_rows)
    contradicted_share: FloatArray = field(default_factory=partial(np.empty, 0))
    agreed_alternative: IntArray = field(default_factory=_no_rows)
    agreed_rank: IntArray = field(default_factory=_no_rows)
    agreed_tokens: IntArray = field(default_factory=_no_rows)
    edge_alternative: IntArray = field(default_factory=_no_rows)
    edge_rank: IntArray = field(default_factory=_no_rows)
    edge_at: IntArray = field(default_factory=_no_rows)
    edge_start: IntArray = field(default_factory=_no_rows)
    edge_stop: IntArray = field(default_factory=_no_rows)

    @cached_property
    def together(self) -> tuple[IntArray, IntArray, IntArray]:
        """Alternative, rank and tokens as in ``added``, but for documents that contradict."""
        known = self.added_alternative, self.added_rank, self.added_tokens
        others = self.agreed_alternative, self.agreed_rank, self.agreed_tokens
        settled = np.union1d(self.contradicted_alternative, self.agreed_alternative)
        if not len(settled):
            return known
        kept = ~np.isin(self.added_alternative, settled)
        alternative, rank, tokens = (
            np.concatenate([one[kept], other]) for one, other in zip(known, others, strict=True)
        )
        order = np.lexsort((rank, alternative))
        return alternative[order], rank[order], tokens[order]

    def taken(self, alternatives: Any, documents: Any, of_kind: Callable[[str], Any]) -> Pieces:
        """Return some rows of each kind, by masks or slices."""
        chosen = {"alternative": alternatives, "document": documents}
        chosen |= {kind: of_kind(kind) for kind in _KINDS}
        names = [one.name for one in fields(self)]
        return Pieces(**{one: getattr(self, one)[chosen[one.partition("_")[0]]] for one in names})

    def _of(self, kind: str, what: str = "alternative") -> IntArray:
        column: IntArray = getattr(self, f"{kind}_{what}")
        return column

    @staticmethod
    def _with(what: str, of_kind: Callable[[str], IntArray]) -> dict[str, Any]:
        """Return a column of each kind of rows."""
        return {f"{kind}_{what}": of_kind(kind) for kind in _KINDS}

    def after(self, n_items: int, n_alternatives: int = 0) -> Pieces:
        """Return these pieces as they are numbered after so many other items and alternatives."""
        return replace(
            self,
            alternative_item=self.alternative_item + n_items,
            **self._with("alternative", lambda kind: self._of(kind) + n_alternatives),
        )

    def of_items(self, kept: BoolArray) -> Pieces:
        """Return those of some items, numbered anew.

        Args:
            kept: Whether to keep each item; shape (items,).
        """
        of_kept = kept[self.alternative_item]
        item, number = np.cumsum(kept) - 1, np.cumsum(of_kept) - 1
        rest = self.taken(of_kept, slice(None), lambda kind: of_kept[self._of(kind)])
        return replace(
            rest,
            alternative_item=item[rest.alternative_item],
            **self._with("alternative", lambda kind: number[rest._of(kind)]),
        )

    def between(self, first: int, last: int, documents: slice) -> Pieces:
        """Return those of the items from one to another, as if there were no others.

        Args:
            first: The first item.
            last: The one after the last.
            documents: The predicted documents of their queries.
        """
        of_items = slice(*np.searchsorted(self.alternative_item, [first, last]).tolist())
        bounds = [of_items.start, of_items.stop]
        return self.taken(
            of_items,
            documents,
            lambda kind: slice(*np.searchsorted(self._of(kind), bounds).tolist()),
        ).after(-first, -of_items.start)

    def moved(self, kept: BoolArray, new_rank: IntArray, start: IntArray) -> Pieces:
        """Return what some of the documents hold, at other ranks.

        Args:
            kept: Whether a document is one of them; shape (documents,).
            new_rank: The rank of each; shape (documents,).
            start: The first document of the query of each alternative; shape (alternatives,).
        """
        place = {kind: start[self._of(kind)] + self._of(kind, "rank") - 1 for kind in _KINDS}
        at = start[self.edge_alternative] + self.edge_at - 1
        rows = {kind: kept[one] for kind, one in place.items()}
        rows["edge"] &= kept[at]
        return replace(
            self.taken(slice(None), kept, rows.__getitem__),
            **self._with("rank", lambda kind: new_rank[place[kind][rows[kind]]]),
            edge_at=new_rank[at[rows["edge"]]],
        )

    @classmethod
    def joined(cls, parts: Sequence[Pieces]) -> Pieces:
        """Return the pieces of consecutive runs of queries, whose items are numbered already."""
        before = np.cumsum([0, *(len(part.alternative_item) for part in parts)]).tolist()
        parts = [part.after(0, n) for part, n in zip(parts, before, strict=False)]
        return cls(*(np.concatenate([getattr(p, one.name) for p in parts]) for one in fields(cls)))


class Pairs(NamedTuple):
    """Pairs with a similarity above 0, sorted by item, then rank, as in :class:`Matches`.

    With them, from matchers that know, the pieces that the documents hold.
    """

    item: IntArray
    rank: IntArray
    similarity: FloatArray
    pieces: Pieces | None = None

    @classmethod
    def joined(cls, parts: Iterable[Pairs]) -> Pairs:
        """Return the pairs of consecutive runs of items."""
        none = cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        parts = [none, *parts]
        pieces = [part.pieces for part in parts if part.pieces is not None]
        columns = zip(*(part[:3] for part in parts), strict=True)
        item, rank, similarity = map(np.concatenate, columns)
        return cls(item, rank, similarity, Pieces.joined(pieces) if pieces else None)

    def after(self, n_items: int) -> Pairs:
        """Return these pairs as they are numbered after so many items."""
        pieces = None if self.pieces is None else self.pieces.after(n_items)
        return self._replace(item=self.item + n_items, pieces=pieces)

    def best_of_each(self) -> Pairs:
        """Return each pair once, with the greatest of its similarities."""
        begins = np.ones(len(self.item), np.bool_)
        begins[1:] = (np.diff(self.item) != 0) | (np.diff(self.rank) != 0)
        start = np.flatnonzero(begins)
        best = np.maximum.reduceat(self.similarity, start) if len(start) else self.similarity
        return self._replace(item=self.item[start], rank=self.rank[start], similarity=best)


@dataclass(frozen=True, eq=False)
class Units:
    """What a similarity matcher compares: distinct texts, or documents, numbered.

    Attributes:
        values: The texts or documents, or what was made of them.
        blank: Whether a unit is a blank text, which never matches; shape (units,).
        alternatives: Unit of each ground-truth alternative, through all queries.
        item_sizes: Alternatives per item; shape (items,).
        identity: A number per alternative, equal when two say the same to the matcher.
        predicted: Unit of each predicted document, through all queries.
        n_items: Items per query; shape (queries,).
        n_predicted: Predicted documents per query; shape (queries,).
        first_query: The number of the first query, where these are a part of all.
        questions: The question of each query, for a matcher that looks at them.
    """

    values: Any
    blank: BoolArray
    alternatives: IntArray
    item_sizes: IntArray
    identity: IntArray
    predicted: IntArray
    n_items: IntArray
    n_predicted: IntArray
    first_query: int = 0
    questions: Sequence[str] | None = None

    @classmethod
    def of_texts(cls, queries: QuerySet, *, normalize: bool = True) -> Units:
        """Number the distinct texts; NFC and NFD spellings are one text if ``normalize``."""
        documents, sizes = _flat_alternatives(queries)
        actual = _texts(documents, "actual_docs", normalize)
        found = _texts(queries.predicted.elements, "predicted_docs", normalize)
        numbers: dict[str, int] = {}
        alternatives, predicted = (_numbered(texts, numbers) for texts in (actual, found))
        # Two spellings of one text are one item, even where the tokenizer gets to see both.
        composed = (unicodedata.normalize("NFC", text) for text in actual)
        identity = alternatives if normalize else _numbered(composed, {})
        values = list(numbers)
        blank = np.fromiter(map(is_blank, values), np.bool_, len(values))
        shape = queries.n_items, queries.n_predicted
        return cls(values, blank, alternatives, sizes, identity, predicted, *shape)

    @classmethod
    def of_documents(cls, queries: QuerySet) -> Units:
        """Number the documents themselves, as LangChain documents."""
        actual, sizes = _flat_alternatives(queries)
        identity = _numbered(map(content_key, actual), {})
        values = [as_document(one) for one in chain(actual, queries.predicted.elements)]
        blank = np.zeros(len(values), np.bool_)
        alternatives, predicted = np.split(np.arange(len(values)), [len(actual)])
        shape = queries.n_items, queries.n_predicted
        return cls(values, blank, alternatives, sizes, identity, predicted, *shape)

    @classmethod
    def of_pair(cls, values: Any) -> Units:
        """Return the units of one query with one ground-truth and one predicted text."""
        return cls.of_block(values, np.zeros(1, np.int64), np.ones(1, np.int64))

    @classmethod
    def of_block(cls, values: Any, actual: IntArray, predicted: IntArray) -> Units:
        """Return the units of one query, given by their positions among the values."""
        blank, sizes = np.zeros(len(values), np.bool_), np.ones(len(actual), np.int64)
        shape = np.array([len(actual)]), np.array([len(predicted)])
        return cls(values, blank, actual, sizes, actual, predicted, *shape)

    def matches(self, parts: Iterable[Pairs]) -> Matches:
        """Return the matches of all queries from the pairs of each part, in order."""
        # Queries, items and ranks were walked through in order: nothing is left to sort.
        item, rank, similarity, pieces = Pairs.joined(parts)
        return Matches(item, rank, similarity, self._same_as(), pieces)

    def pairs(self, score: BlockScorer, name: str) -> Pairs:
        """Score the pairs within each query and return those above 0.

        Raises:
            InvalidInput: If a query has more pairs than can be scored, or a similarity is none.
        """
        self.check_sizes()
        found = []
        first_item = first_alternative = first_predicted = 0
        any_blank = bool(self.blank.any())
        shape = (self.n_items, self.n_alternatives, self.n_predicted)
        for query, (n_items, n_alternatives, n_predicted) in enumerate(np.stack(shape, 1).tolist()):
            actual = self.alternatives[first_alternative : first_alternative + n_alternatives]
            predicted = self.predicted[first_predicted : first_predicted + n_predicted]
            sizes = self.item_sizes[first_item : first_item + n_items]
            asked = score
            if self.questions is not None:
                asked = partial(score, question=self.questions[query])
            if any_blank:
                rows, columns = ~self.blank[actual], ~self.blank[predicted]
                block = np.zeros((n_alternatives, n_predicted))
                block[np.ix_(rows, columns)] = _score(asked, actual[rows], predicted[columns], name)
            else:
                block = _score(asked, actual, predicted, name)
            # Written so that NaN fails it too. Two extremes are cheaper than a mask of every block.
            if not (block.min(initial=0.0) >= 0.0 and block.max(initial=0.0) <= 1.0):
                row, rank = np.argwhere(~((block >= 0.0) & (block <= 1.0)))[0].tolist()
                item = int(np.searchsorted(np.cumsum(sizes), row, side="right"))
                number = query + self.first_query
                be = f"must be a number from 0 to 1, got {block[row, rank]}"
                pair = f"actual_docs[{number}][{item}] and predicted_docs[{number}][{rank}]"
                problem = f"{name}: a similarity {be} for {pair}"
                raise InvalidInput("matcher", problem)
            if n_alternatives > n_items:
                block = np.maximum.reduceat(block, np.cumsum(sizes) - sizes, axis=0)
            at = np.nonzero(block)
            found.append(Pairs(at[0] + first_item, at[1] + 1, block[at]))
            first_item += n_items
            first_alternative += n_alternatives
            first_predicted += n_predicted
        return Pairs.joined(found)

    def parts(self, n: int) -> Iterator[tuple[int, Units]]:
        """Yield these units in some ``n`` runs of queries with about as many pairs each.

        With each comes the number of its first item. A part holds no more values than it needs,
        and it cannot tell which items are the same: that is known already.
        """
        n_alternatives = self.n_alternatives
        effort = np.cumsum((n_alternatives + 1) * (self.n_predicted + 1))
        cuts = np.searchsorted(effort, effort[-1] * np.arange(1, n) / n) + 1
        bounds = np.unique([0, *np.minimum(cuts, len(effort)).tolist(), len(effort)]).tolist()
        items, alternatives, predicted = (
            np.concatenate([[0], np.cumsum(sizes)])
            for sizes in (self.n_items, n_alternatives, self.n_predicted)
        )
        for start, end in pairwise(bounds):
            truth = self.alternatives[alternatives[start] : alternatives[end]]
            found = self.predicted[predicted[start] : predicted[end]]
            units, places = np.unique(np.concatenate([truth, found]), return_inverse=True)
            yield (
                int(items[start]),
                Units(
                    values=_taken(self.values, units),
                    blank=self.blank[units],
                    alternatives=places[: len(truth)],
                    item_sizes=self.item_sizes[items[start] : items[end]],
                    identity=np.empty(0, np.int64),
                    predicted=places[len(truth) :],
                    n_items=self.n_items[start:end],
                    n_predicted=self.n_predicted[start:end],
                    first_query=start,
                    questions=None if self.questions is None else self.questions[start:end],
                ),
            )

    @property
    def n_alternatives(self) -> IntArray:
        """Alternatives of all items of each query; shape (queries,)."""
        ends = np.concatenate([[0], np.cumsum(self.item_sizes)])
        counts: IntArray = np.diff(ends[np.concatenate([[0], np.cumsum(self.n_items)])])
        return counts

    def check_sizes(self) -> None:
        """Refuse a query with more pairs than can be scored.

        Raises:
            InvalidInput: If there is one.
        """
        pairs = self.n_alternatives.astype(np.float64) * self.n_predicted
        for query in np.flatnonzero(pairs > _MOST_PAIRS)[:1].tolist():
            number = self.first_query + query
            most = f"{pairs[query]:,.0f} pairs, and {_MOST_PAIRS:,} of one query are the most"
            problem = f"and predicted_docs[{number}] make {most}"
            fix = "Leave out repeated ground truth, and cut what was predicted at the largest k"
            raise InvalidInput("actual_docs", problem, fix, query=number)

    def _same_as(self) -> IntArray:
        """Return the first item of its query that says the same as each item."""
        same_as = np.arange(len(self.item_sizes))
        seen: dict[tuple[int, frozenset[int]], int] = {}
        identity, blank = self.identity.tolist(), self.blank[self.alternatives].tolist()
        queries = np.repeat(np.arange(len(self.n_items)), self.n_items).tolist()
        end = 0
        for item, (size, query) in enumerate(zip(self.item_sizes.tolist(), queries, strict=True)):
            start, end = end, end + size
            # A blank text is no alternative; two items of nothing else cannot be found, as two.
            said = frozenset(
                one
                for one, empty in zip(identity[start:end], blank[start:end], strict=True)
                if not empty
            )
            if said:
                same_as[item] = seen.setdefault((query, said), item)
        return same_as


def warn_of_blank_texts(queries: QuerySet) -> tuple[int, int]:
    """Count documents without text, which a text matcher never matches, and warn if there are any.

    Returns:
        The numbers among the ground truth and among the predicted documents.
    """
    several = queries.has_alternatives
    actual = _flat_alternatives(queries)[0] if several else queries.actual.elements
    sides = (actual, "actual_docs"), (queries.predicted.elements, "predicted_docs")
    blanks = [0, 0]
    for side, (documents, name) in enumerate(sides):
        # For texts that are not empty one pass in C is enough: isspace stops at the first letter.
        if not queries.texts_only[side] or any(map(str.isspace, documents)):
            where = f"a document of {name}"
            blanks[side] = sum(is_blank(text_of(document, where)) for document in documents)
    if any(blanks):
        told = _(
            "{} ground-truth and {} predicted documents have empty or blank text; a text matcher "
            "never matches them."
        )
        warn_of(told, *blanks)
    return blanks[0], blanks[1]


def _flat_alternatives(queries: QuerySet) -> tuple[list[Any], IntArray]:
    """Return the alternatives of all items in one list, and how many each item has."""
    if not queries.has_alternatives:
        flat = queries.actual.elements
        return flat, np.ones(len(flat), np.int64)
    items = list(chain.from_iterable(queries.alternatives()))
    sizes = np.fromiter(map(len, items), np.int64, len(items))
    return list(chain.from_iterable(items)), sizes


def _numbered(values: Iterable[Hashable], numbers: dict[Any, int]) -> IntArray:
    """Return the number of each value, giving new ones the next numbers."""
    return np.fromiter((numbers.setdefault(one, len(numbers)) for one in values), np.int64)


def _texts(documents: Iterable[Any], name: str, normalize: bool) -> list[str]:
    texts = [text_of(document, f"a document of {name}") for document in documents]
    return [unicodedata.normalize("NFC", text) for text in texts] if normalize else texts


def _taken(values: Any, units: IntArray) -> Any:
    """Return some of the values; other things than lists have ``take``."""
    if isinstance(values, list):
        return [values[unit] for unit in units.tolist()]
    return values.take(units)


def _score(score: BlockScorer, actual: IntArray, predicted: IntArray, name: str) -> FloatArray:
    wanted = (len(actual), len(predicted))
    if 0 in wanted:
        return np.zeros(wanted)
    if wanted[0] * wanted[1] >= _MANY_PAIRS:
        truths, rows = np.unique(actual, return_inverse=True)
        found, columns = np.unique(predicted, return_inverse=True)
        if len(truths) < len(actual) or len(found) < len(predicted):
            # A million copies of one text are scored as one.
            return _score(score, truths, found, name)[np.ix_(rows, columns)]
    given = score(actual, predicted)  # what a matcher of one's own raises stays what it is
    try:
        scores = real_numbers(given)
    except (TypeError, ValueError) as error:
        problem = f"{name}: similarities must be a rectangular array of numbers: {error}"
        raise InvalidInput("matcher", problem) from error
    if scores.shape != wanted:
        problem = f"{name}: similarities must have the shape {wanted}, got {scores.shape}"
        raise InvalidInput("matcher", problem)
    return scores


def real_numbers(values: Any) -> FloatArray:
    """Return an array of real numbers as floats, refusing what numpy would quietly make into some.

    Raises:
        InvalidType: If they are complex, texts or dates.
        ValueError: If lists in a list differ in length.

    >>> real_numbers([[1, True], [0.5, 0]]).tolist()
    [[1.0, 1.0], [0.5, 0.0]]
    """
    given = np.asarray(values)
    if given.dtype.kind not in "biufO":
        raise InvalidType("numbers", f"must be real, got an array of {given.dtype}")
    if given.dtype.kind == "O":
        for one in given.flat:
            if isinstance(one, str | bytes) or np.iscomplexobj(one):
                raise InvalidType("numbers", f"must be real, got {clipped(one)}")
    return np.asarray(given, dtype=np.float64)


def ranges(start: IntArray, sizes: IntArray) -> IntArray:
    """Return so many numbers from each start on, one range after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(start - ends + sizes, sizes), np.int64)
