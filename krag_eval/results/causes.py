"""Causes: whose fault a miss is, the index, the splitter, the ranking or the search.

For ``EvaluationResult.diagnose``. Every ground-truth item gets the first class that applies; the
index is read once and kept in an :class:`Index`. What comes of it is a
:class:`~krag_eval.results.diagnosis.Diagnosis`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import count, pairwise
from operator import length_hint
from typing import Any, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from krag_eval._language import _
from krag_eval.documents import (
    DocumentLike,
    QuerySet,
    Reading,
    check_chunks,
    check_documents,
    id_of,
    is_blank,
    metadata_of,
    read_id,
    read_text,
    text_of,
)
from krag_eval.errors import (
    Advice,
    InvalidInput,
    InvalidType,
    clipped,
    muted,
    one_of,
    text,
    warn,
    whole,
)
from krag_eval.matching.base import AndMatcher, KeyMatcher, Matcher, OrMatcher, resolve_matcher
from krag_eval.matching.coverage import CoverageMatcher, other_readings
from krag_eval.matching.identity import same
from krag_eval.matching.joins import Units
from krag_eval.matching.numbering import TokenNumbers, numbered
from krag_eval.matching.pieces import held_anywhere, shared_runs, whereabouts
from krag_eval.matching.tokenizers import Tokenizer, letter_tokens, word_tokens
from krag_eval.results.diagnosis import (
    CLASSES,
    LEAST,
    DiagnosedItem,
    Diagnosis,
    ForeignIndex,
    LookedUp,
)
from krag_eval.results.evidence import Evidence, StoredTexts, Texts
from krag_eval.scoring.cutoffs import Budget, Cutoff
from krag_eval.scoring.relevance import Relevance, RelevanceTogether

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
#: Longer ranked lists: one per query, by label, or asked of a function.
Deeper: TypeAlias = (
    "Sequence[Sequence[DocumentLike]] | Mapping[Any, Sequence[DocumentLike]] | "
    "Callable[[str], Iterable[DocumentLike]] | Invoked"
)


class Invoked(Protocol):
    """What is asked of a LangChain retriever."""

    def invoke(self, input: str, /) -> Iterable[DocumentLike]:
        """Return the documents for a question."""


#: Pairs that are scored one by one at most, unless more are allowed.
MOST_PAIRS = 10**7

_NEVER = 2**62
# A chunk repeats another if it holds this share of its words in runs of five.
_REPEATS = CoverageMatcher(0.8)
# So many pairs of ground truth and chunks at a time, where a run is a word or two: nearly every
# chunk has some of them.
_MOST_SHORT, _SHORT = 5_000_000, 2
# Letters in a run, as with the tokenizer "character"; and how many are looked through at a time.
_LETTERS, _BLOCK = 15, 1 << 22


# A document is alike if chunks hold this share of its words; so many chunks that have its rarest
# run are compared with it.
_MOST_WORDS, _COMPARED = 0.5, 20
# Up to so many texts, all are looked for; of more, the others only if the first do not suffice.
_MANY = 2_000
_NO_LETTER = re.compile(r"[\W_]+")
_NO_ASCII_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


class Index:
    """The chunks of a store, read once: what several diagnoses share.

    Args:
        chunks: All of them: texts, dicts with ``"page_content"`` or ``"text"``, or documents of
            LangChain, LlamaIndex or Haystack; any iterable. For the matcher ``"id"``, ids will do.

    Attributes:
        documents: The chunks as they are compared.

    Raises:
        InvalidType: If it is not an iterable of documents.
        InvalidInput: If there are none.

    >>> len(Index(["Opening hours: nine to five.", "Closed on Mondays."]))
    2
    """

    def __init__(self, chunks: Iterable[DocumentLike]) -> None:
        if isinstance(chunks, (str, bytes, Mapping)) or not isinstance(chunks, Iterable):
            raise InvalidType(
                "index",
                "must be the chunks of the store (texts or documents) or an Index of them, got "
                f"{clipped(chunks)}",
            )
        self.documents = check_chunks(chunks, "index")
        if not self.documents:
            raise InvalidInput(
                "index",
                "must hold at least one chunk, got none",
                "an iterator can be used once; keep its chunks as Index(chunks)",
            )
        self._read: list[tuple[Tokenizer, dict[str, int], TokenNumbers]] = []

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"<Index of {len(self)} chunk{'' if len(self) == 1 else 's'}>"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The distinct texts, each with its number in order of appearance."""
        texts = dict.fromkeys(map(text_of, self.documents))
        return {one: number for number, one in enumerate(texts)}

    @cached_property
    def _first(self) -> IntArray:
        """The first chunk of each distinct text; shape (texts,)."""
        number = [self._numbers[text_of(one)] for one in self.documents]
        return np.unique(np.array(number, np.int64), return_index=True)[1]

    def _tokens(self, tokenizer: Tokenizer) -> tuple[dict[str, int], TokenNumbers]:
        """Return the number of each token, and the tokens of the distinct texts."""
        for known, numbers, tokens in self._read:
            if known == tokenizer:
                return numbers, tokens
        numbers = defaultdict(count().__next__)
        tokens = numbered(tokenizer, list(self._numbers), numbers)
        self._read.append((tokenizer, dict(numbers), tokens))
        return self._read[-1][1:]

    def _tokens_with(self, tokenizer: Tokenizer, texts: Sequence[str]) -> TokenNumbers:
        """Return the tokens of the distinct texts and, after them, of others."""
        known, tokens = self._tokens(tokenizer)
        # A dict of its own: what several threads ask for must not change what is kept.
        others = numbered(tokenizer, texts, defaultdict(count(len(known)).__next__, known))
        return tokens.followed_by(others)

    def _source(self, document: DocumentLike, key: str) -> Any:
        """Return where a document is from: by its own metadata, or by those of the same chunk."""
        source = metadata_of(document).get(key)
        number = self._numbers.get(text_of(document)) if source is None else None
        if number is not None:
            source = metadata_of(self.documents[self._first[number]]).get(key)
        return source

    @cached_property
    def _common(self) -> BoolArray:
        """Whether more than half of the distinct texts have a word; shape (words,)."""
        tokens = self._tokens(word_tokens)[1]
        often = np.bincount(tokens.flat, minlength=1) > len(tokens) / 2
        place = np.flatnonzero(often[tokens.flat])
        where = np.searchsorted(np.cumsum(tokens.sizes), place, side="right")
        pairs = np.unique(where * len(often) + tokens.flat[place])
        return np.bincount(pairs % len(often), minlength=len(often)) > len(tokens) / 2

    @property
    def _median_words(self) -> int:
        return int(np.median(self._tokens(word_tokens)[1].sizes))

    def _overlap(self, question: str, chunk: int) -> float | None:
        """Return the share of a question's words that a chunk has; common words do not count."""
        numbers, tokens = self._tokens(word_tokens)
        words = {numbers.get(word, -1 - at) for at, word in enumerate({*word_tokens(question)})}
        words = {word for word in words if word < 0 or not self._common[word]}
        if not words:
            return None
        number = self._numbers[text_of(self.documents[chunk])]
        return len(words & {*tokens.take(np.array([number])).flat.tolist()}) / len(words)


def diagnosed(
    evidence: Evidence,
    labels: Sequence[str | int],
    k: Cutoff,
    *,
    signature: str,
    matcher: str | Matcher | None = None,
    index: Index | Iterable[DocumentLike] | None = None,
    deeper: Deeper | None = None,
    depth: int | None = None,
    source_key: str = "source",
    most_pairs: int = MOST_PAIRS,
    foreign_index: ForeignIndex = "refuse",
    of: Mapping[str, str] | None = None,
) -> Diagnosis:
    """Find out what became of every item; see ``EvaluationResult.diagnose``.

    Args:
        evidence: What was found.
        labels: The label of each query.
        k: The cutoff.
        signature: The matcher's signature in the result.
        matcher: The matcher, where the result does not hold it.
        index: The chunks.
        deeper: Longer lists.
        depth: How far they are looked at.
        source_key: Metadata that name a document's source.
        most_pairs: Pairs of texts to score one by one at most.
        foreign_index: Whether to diagnose against an index that has next to none of the documents.
        of: What tells the result from another one.
    """
    one_of("foreign_index", foreign_index, get_args(ForeignIndex))
    text("source_key", source_key, "the name of a metadata key")
    most_pairs = whole("most_pairs", most_pairs, 1)
    depth = checked_depth(depth, k)
    if index is not None and not isinstance(index, Index):
        index = Index(index)
    judge = _Judge(evidence, matcher_of(signature, evidence.matcher, matcher), index, most_pairs)
    looked = None
    if index is not None and evidence.texts is not None:
        looked = _looked_up(evidence.texts, len(labels), index)
        looked.check(foreign_index)
    state = _State.of(evidence, k, judge)
    lists = _Lists.of(state, deeper, depth, labels)
    rows = judge.rows(state, lists)
    items = _items(state, rows, labels)
    told = _Telling(state, judge, lists, rows, source_key)
    return Diagnosis(
        tuple(told.of(items)),
        k,
        lists.depth if lists.there else None,
        None if index is None else len(index),
        index._median_words if index is not None and len(rows.owner) and told.has_texts else None,
        state.found.threshold,
        signature,
        judge.matcher.union,
        judge.knows_words,
        looked,
        of or {},
    )


def _looked_up(texts: Texts, n_queries: int, index: Index) -> LookedUp:
    """Look the retrieved documents up in an index, each once; of very many, as many as it takes."""
    # A string that is an id has no text.
    are_ids = texts.reading is read_id or getattr(texts, "are_ids", False)
    of_id: defaultdict[str, list[str]] = defaultdict(list)
    for one in index.documents:
        identity, text = _id_and_text(one, are_ids)
        if identity and len(of_id[identity]) < _COMPARED:
            of_id[identity].append(text)
    documents = dict.fromkeys(
        _id_and_text(one, are_ids) for query in range(n_queries) for one in texts.documents(query)
    )
    known = [(identity, text) for identity, text in documents if identity or not is_blank(text)]
    rest = [one for one in known if not (one[1] and one[1] in index._numbers)]
    agrees = _agree([(text, of_id.get(identity or "", [])) for identity, text in rest])
    missing = [text for (_, text), is_there in zip(rest, agrees, strict=True) if not is_there]
    there = len(known) - len(missing)
    missing = [one for one in missing if not is_blank(one)]
    # Enough of them, evenly spread, to know that the index is not foreign; else the others as well.
    enough = math.ceil(LEAST * len(known)) - there
    step = max(1, len(missing) // max(_MANY, enough + enough // 4))
    parts = missing[::step], [one for place, one in enumerate(missing) if place % step]
    found, alike = _parts_and_alike(parts[0], index)
    if step > 1 and found + alike < enough:
        more = _parts_and_alike(parts[1], index)
        found, alike, parts = found + more[0], alike + more[1], (missing, [])
    unknown = len(documents) - len(known)
    return LookedUp(len(known), there + found, alike, unknown, len(parts[1]))


def _agree(pairs: Sequence[tuple[str, Sequence[str]]]) -> list[bool]:
    """Tell which texts agree with a text of the chunks of the same id, as far as both have texts.

    They do if the letters of one are within those of the other, or half of its words, in runs.
    """
    agrees = []
    for document, others in pairs:
        letters = _letters(document) if others else ""
        agrees.append(any(letters in one or one in letters for one in map(_letters, others)))
    rest = [place for place, (_, others) in enumerate(pairs) if others and not agrees[place]]
    if rest:
        actual, predicted = (
            [[pairs[place][0]] for place in rest],
            [list(pairs[place][1]) for place in rest],
        )
        with muted():
            matches = CoverageMatcher(_MOST_WORDS, direction="either").match(
                QuerySet.from_lists(actual, predicted)
            )
        near = np.zeros(len(rest), np.bool_)
        near[matches.item[matches.similarity >= _MOST_WORDS]] = True
        for place, is_near in zip(rest, near[matches.same_as].tolist(), strict=True):
            agrees[place] = is_near
    return agrees


def _id_and_text(document: DocumentLike, are_ids: bool) -> tuple[str | None, str]:
    """Return the id and the text of a document."""
    if isinstance(document, str):
        return (document, "") if are_ids else (None, document)
    return id_of(document) or None, text_of(document)


def _parts_and_alike(texts: Sequence[str], index: Index) -> tuple[int, int]:
    """Return how many texts are a part of a chunk, and how many others are alike.

    Texts are read by words or letters, as coverage reads them for a ground truth.
    """
    readings: dict[bool, tuple[CoverageMatcher, list[str]]] = {}
    for one in texts:
        matcher = CoverageMatcher()._for_ground_truth([one])
        readings.setdefault(matcher.tokenizer is letter_tokens, (matcher, []))[1].append(one)
    found = [_of_reading(matcher, several, index) for matcher, several in readings.values()]
    return sum(there for there, _ in found), sum(alike for _, alike in found)


def _of_reading(matcher: CoverageMatcher, texts: Sequence[str], index: Index) -> tuple[int, int]:
    known, chunks = index._tokens(matcher.tokenizer)
    tokens = numbered(matcher.tokenizer, texts, defaultdict(count(len(known)).__next__, known))
    run, of_chunks = np.minimum(tokens.sizes, matcher.min_run), list(index._numbers)
    there = alike = 0
    for length in np.unique(run[run > 0]).tolist():
        several = np.flatnonzero(run == length)
        wanted = tokens.take(several)
        found = whereabouts(wanted, chunks, length, _COMPARED)
        near = found.has_whole | (wanted.counted(found.held) >= _MOST_WORDS * wanted.sizes)
        for at, is_near, likely in zip(several.tolist(), near.tolist(), found.likely, strict=True):
            letters = _letters(texts[at])
            if any(letters in _letters(of_chunks[chunk]) for chunk in likely):
                there += 1
            else:
                alike += is_near
    return there, alike


def checked_depth(depth: object, k: Cutoff) -> int | None:
    """Return how far deeper lists are looked at, ``None`` for to their ends."""
    if depth is None:
        return None
    checked = whole("depth", depth, 1)
    if isinstance(k, int) and checked <= k:
        raise InvalidInput(
            "depth", f"must be larger than the cutoff, got {checked} with k = {k}", "look deeper"
        )
    return checked


def matcher_of(signature: str, held: Matcher | None, given: str | Matcher | None) -> Matcher:
    """Return the matcher of a result: as given, as it is held, or as the signature says.

    Raises:
        InvalidInput: If another one is given, or the signature does not tell all.
    """
    if given is not None:
        matcher = resolve_matcher(given)
        if same(matcher.signature, signature) is False:
            raise InvalidInput(
                "matcher",
                f"must be the one of the result, {signature}, got {matcher.signature}",
                "leave it out, or evaluate again with the other one",
            )
        return matcher
    if held is not None:
        return held
    try:
        return resolve_matcher(signature)
    except (InvalidInput, InvalidType) as error:
        raise InvalidInput(
            "matcher",
            f": this result was saved or copied, and nothing can be compared by its signature "
            f"{signature} alone",
            Advice("pass {}, the matcher it was made with", matcher=...),
        ) from error


@dataclass(frozen=True, eq=False)
class _State:
    """What is known of the items from the result alone.

    Attributes:
        found: What was found.
        texts: Where the texts are.
        limit: Of each query, how many documents are within the cutoff; shape (queries,).
        cause: Class of each item, ``""`` where it is yet to be found; shape (items,).
        rank: Where it stands, 0 for nowhere; shape (items,).
        similarity: To the most similar document of all; shape (items,).
        together: Share that the documents within the cutoff hold together; shape (items,).
        together_in_all: The same of all documents; shape (items,).
    """

    found: Relevance
    texts: Texts | None
    limit: IntArray
    cause: NDArray[np.object_]
    rank: IntArray
    similarity: FloatArray
    together: FloatArray
    together_in_all: FloatArray

    @classmethod
    def of(cls, evidence: Evidence, k: Cutoff, judge: _Judge) -> _State:
        found = evidence.measured(k.unit) if isinstance(k, Budget) else evidence.relevance
        n_items = len(found.item_query)
        if isinstance(k, Budget):
            limit = found.prefix(k)
        else:
            limit = np.full(found.n_queries, k) if k is not None else found.n_retrieved
        of_item = limit[found.item_query]
        alone = (found.pair_similarity >= found.threshold) & (
            found.pair_rank <= of_item[found.pair_item]
        )
        rank = np.full(n_items, _NEVER)
        np.minimum.at(rank, found.pair_item[alone], found.pair_rank[alone])
        similarity = np.zeros(n_items)
        np.maximum.at(similarity, found.pair_item, found.pair_similarity)
        cause = np.full(n_items, "", object)
        shares = [np.full(n_items, np.nan)] * 2
        if judge.knows_words:
            completed = _together(found).completed_rank
            in_pieces = (rank == _NEVER) & (completed <= of_item)
            cause[in_pieces] = "found_in_pieces"
            rank[in_pieces] = completed[in_pieces]
            shares = [_shares(found, last) for last in (of_item, np.full(n_items, _NEVER))]
        cause[(rank < _NEVER) & (cause == "")] = "found"
        rank[rank == _NEVER] = 0
        state = cls(found, evidence.texts, limit, cause, rank, similarity, *shares)
        judge.mark_without_words(state)
        return state

    @cached_property
    def pending(self) -> IntArray:
        """The items that nothing is known of yet."""
        return np.flatnonzero(self.cause == "")

    @cached_property
    def queries(self) -> list[int]:
        """The queries of these items."""
        queries: list[int] = np.unique(self.found.item_query[self.pending]).tolist()
        return queries

    @cached_property
    def numbers(self) -> IntArray:
        """Place of each item in its query's list as given, from 1; shape (items,)."""
        if self.found.item_number is not None:
            return self.found.item_number
        query = self.found.item_query
        return np.asarray(np.arange(len(query)) - np.searchsorted(query, query) + 1, np.int64)

    def alternatives(self, item: int) -> Sequence[DocumentLike]:
        """Return the documents of an item."""
        if self.texts is None:
            raise InvalidInput(
                "",
                "this result was saved without its texts, and a diagnosis compares them with the "
                "chunks",
                Advice(
                    "pass {}, what it was evaluated on; next time, save it with "
                    "to_json(path, texts=True)",
                    dataset=...,
                ),
            )
        return self.texts.ground_truth(int(self.found.item_query[item]))[self.numbers[item] - 1]


def _together(found: Relevance) -> RelevanceTogether:
    """Return the same as if documents counted together."""
    arguments = {one.name: getattr(found, one.name) for one in fields(Relevance) if one.init}
    return RelevanceTogether(**{**arguments, "_counts": {}})


def _shares(found: Relevance, last_rank: IntArray) -> FloatArray:
    """Return how much of each item the documents up to a rank hold together; shape (items,)."""
    pieces = found.pieces_known
    item = pieces.alternative_item
    seen = pieces.added_rank <= last_rank[item[pieces.added_alternative]]
    held = np.bincount(
        pieces.added_alternative[seen], pieces.added_tokens[seen], minlength=len(item)
    )
    shares = np.zeros(len(last_rank))
    np.maximum.at(shares, item, held / np.maximum(pieces.alternative_tokens, 1))
    return shares


class _Lists:
    """The deeper lists of the queries where something is missing.

    Attributes:
        there: Whether there is anything deeper.
        given: Whether lists were given, beside the predicted ones.
        depth: How deep they go.
        by_query: Query -> its deeper list.
        labels: The label of each query.
    """

    def __init__(
        self,
        by_query: Mapping[int, Sequence[DocumentLike]],
        *,
        given: bool,
        depth: int,
        labels: Sequence[str | int],
    ) -> None:
        self.by_query, self.given, self.depth, self.labels = by_query, given, depth, labels
        self.there = given or depth > 0

    @classmethod
    def of_state(cls, state: _State, depth: int | None, labels: Sequence[str | int]) -> _Lists:
        """Return the predicted lists, if some of them go beyond the cutoff."""
        cut = (
            state.found.n_retrieved if depth is None else np.minimum(state.found.n_retrieved, depth)
        )
        if not (cut > state.limit).any():
            return cls({}, given=False, depth=0, labels=labels)
        texts = state.texts
        of = {} if texts is None else {q: texts.documents(q)[:depth] for q in state.queries}
        longest = int(cut.max()) if depth is None else depth
        return cls(of, given=False, depth=longest, labels=labels)

    @classmethod
    def of(cls, state: _State, deeper: Any, depth: int | None, labels: Sequence[Any]) -> _Lists:
        """Return the lists that were given, by whatever means, or the predicted ones."""
        if deeper is None:
            return cls.of_state(state, depth, labels)
        take = _taking(deeper, labels)
        of = {query: _documents(take(query), query)[:depth] for query in state.queries}
        sizes = list(map(_size, of.values()))
        longest = max(sizes, default=0) or _longest(deeper, of)
        if n := sum(not size for size in sizes):
            told = _(
                "Without a document in the deeper list: {n} of {of} queries that miss something. "
                "What they miss cannot be called ranked too low."
            )
            fix = _("Check that the retriever was asked for these, and did not fail")
            warn(told.format(n=n, of=len(sizes)), fix)
        longest = longest or int(state.limit.max(initial=1))
        return cls(of, given=True, depth=depth or longest, labels=labels)


def _longest(deeper: Any, asked: Mapping[int, Sequence[DocumentLike]]) -> int:
    """Return how long the longest list is where none has a document of those that were looked at.

    Raises:
        InvalidInput: If none of all has a document, so that nothing can be told from them.
    """
    lists = deeper.values() if isinstance(deeper, Mapping) else deeper
    if not isinstance(lists, Iterable):
        lists = asked.values()  # of a function, nothing else is known
    sizes = list(map(_size, lists))
    if sizes and not any(sizes):
        problem = f"must hold longer lists than were evaluated, got {len(sizes)} without a document"
        raise InvalidInput(
            "deeper",
            problem,
            "pass what the same retriever returns with a larger k, or leave it out",
        )
    return max(sizes, default=0)


def _size(documents: Any) -> int:
    """Return how long a list is, 0 if nothing in it is anything; an iterator may have something."""
    if isinstance(documents, Sequence) and all(map(_is_nothing, documents)):
        return 0
    return length_hint(documents, 1)


def _is_nothing(document: Any) -> bool:
    """Tell whether a document, not checked yet, has neither a text nor an id nor metadata."""
    if isinstance(document, str):
        return is_blank(document)
    try:
        return is_blank(text_of(document)) and not id_of(document) and not metadata_of(document)
    except (AttributeError, KeyError, TypeError):
        return False


def _taking(deeper: Any, labels: Sequence[str | int]) -> Callable[[int], Any]:
    """Return what answers for a query, by its position."""
    if isinstance(deeper, Mapping):

        def by_label(query: int) -> Any:
            if labels[query] not in deeper:
                raise InvalidInput(
                    "deeper", f"has no list for {clipped(labels[query])}, where something is missed"
                )
            return deeper[labels[query]]

        return by_label
    ask = getattr(deeper, "invoke", deeper)  # of LangChain's retrievers
    if callable(ask):

        def asked(query: int) -> Any:
            if not isinstance(labels[query], str):
                raise InvalidInput(
                    "deeper",
                    f"is a function of the question, and query {query} is labelled {labels[query]}",
                    Advice("evaluate with {}, the questions", queries=...),
                )
            return ask(labels[query])

        return asked
    if isinstance(deeper, (str, bytes)) or not hasattr(deeper, "__len__"):
        raise InvalidType(
            "deeper",
            "must be a list of ranked documents per query, a dict of them by label, or a function "
            f"from a question to them, got {clipped(deeper)}",
        )
    if len(deeper) != len(labels):
        raise InvalidInput(
            "deeper", f"must have one list per query, got {len(deeper)} for {len(labels)} queries"
        )
    return list(deeper).__getitem__


def _documents(given: Any, query: int) -> Sequence[DocumentLike]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidType(
            "deeper", f"must be a list of documents, got {clipped(given)}", query=query
        )
    with _about("deeper", {"deeper": [query]}):
        return check_documents(list(given), "deeper")


@contextmanager
def _about(argument: str, queries: Mapping[str, Sequence[int] | None]) -> Iterator[None]:
    """Let a refusal name the user's argument, and the user's query.

    Args:
        argument: Its name.
        queries: Names that refusals may bear -> the query meant by each of theirs, if any.
    """
    try:
        yield
    except (InvalidInput, InvalidType) as error:
        if error.argument not in queries:
            raise
        of = queries[error.argument]
        query = of[error.query or 0] if of else None
        kind = InvalidType if isinstance(error, InvalidType) else InvalidInput
        raise kind(argument, error.problem, error.fix, query=query, within=error.within) from error


class _Rows(NamedTuple):
    """The alternatives of the items that are yet to be found; each of shape (rows,).

    Attributes:
        owner: Item of each, ascending.
        cause: Class.
        rank: Rank beyond the cutoff at which it stands, 0 for none.
        similarity: Of the best chunk.
        together: Share that the chunks hold together, NaN if not known.
        chunk: Best chunk of the index, -1 for none.
    """

    owner: IntArray
    cause: NDArray[np.object_]
    rank: IntArray
    similarity: FloatArray
    together: FloatArray
    chunk: IntArray

    def best(self) -> _Rows:
        """Return the alternative of each item that is furthest along."""
        place = np.array([CLASSES.index(cause) for cause in self.cause], np.int64)
        order = np.lexsort((-self.similarity, self.rank, place, self.owner))
        first = order[np.diff(self.owner[order], prepend=-1) != 0]
        return _Rows(*(column[first] for column in self))


class _Judge:
    """Compares the alternatives of items with chunks."""

    def __init__(
        self, evidence: Evidence, matcher: Matcher, index: Index | None, most_pairs: int
    ) -> None:
        self.matcher, self.index, self.most_pairs = matcher, index, most_pairs
        self.threshold = evidence.relevance.threshold
        self.words = _words_of(matcher)
        if self.words is not None and evidence.relevance.pieces is None:
            raise InvalidInput(
                "",
                "this result was saved by a version that did not keep what documents hold together",
                "evaluate again",
            )
        self.reading = read_text if evidence.texts is None else evidence.texts.reading
        self._lacks = isinstance(evidence.texts, StoredTexts) and (
            matcher._document_reading is not read_text
        )

    @property
    def knows_words(self) -> bool:
        """Whether it can tell what documents hold together."""
        return self.words is not None

    def mark_without_words(self, state: _State) -> None:
        """Set the class of the items that have no words."""
        pending = state.pending
        pieces = state.found.pieces
        if pieces is not None:
            tokens = np.zeros(len(state.cause))
            np.maximum.at(tokens, pieces.alternative_item, pieces.alternative_tokens)
            state.cause[pending[tokens[pending] == 0]] = "no_words"
        elif state.texts is not None:
            for item in pending.tolist():
                if all(_is_wordless(self.matcher, [*state.alternatives(item)])):
                    state.cause[item] = "no_words"
        vars(state).pop("pending")

    def rows(self, state: _State, lists: _Lists) -> _Rows:
        """Return the classes of the alternatives of all pending items."""
        if self.index is None and not lists.given:
            return self._from_evidence(state, lists)
        if self._lacks:
            raise InvalidInput(
                "matcher",
                f": the result was read from a file, which keeps texts, and "
                f"{self.matcher.signature} compares more than texts",
                Advice("pass {}, what it was evaluated on", dataset=...),
            )
        owner, documents = self._alternatives(state)
        n = len(owner)
        rank, similarity = np.zeros(n, np.int64), np.zeros(n)
        each = self._matchers(state, owner)
        for matcher, rows in each:
            several = [documents[row] for row in rows.tolist()]
            rank[rows], similarity[rows] = self._deeper(matcher, state, lists, owner[rows], several)
        chunk, together = np.full(n, -1), state.together_in_all[owner]
        seen = similarity.copy()
        if self.index is not None:
            for matcher, rows in each:
                several = [documents[row] for row in rows.tolist()]
                similarity[rows], chunk[rows], together[rows] = self._in_index(matcher, several)
        elif n:
            # Of all that came back, in the lists given and in those predicted.
            single = np.bincount(owner, minlength=len(state.cause))[owner] == 1
            similarity = np.where(single, np.maximum(seen, state.similarity[owner]), seen)
        cause = self._causes(rank, similarity, together, lists)
        rank = np.where(cause == "ranked_too_low", rank, 0)
        return _Rows(owner, cause, rank, similarity, together, chunk)

    def _matchers(self, state: _State, owner: IntArray) -> list[tuple[Matcher, IntArray]]:
        """Return each matcher that decides about some of the pending alternatives, and about which.

        More than one where the ground truth of a query decides how its texts are read.
        """
        of_query = state.found.item_query[owner]
        if self.matcher._for_ground_truth([]) is self.matcher or state.texts is None:
            return [(self.matcher, np.arange(len(owner)))]
        chosen: dict[str, tuple[Matcher, list[int]]] = {}
        for query in np.unique(of_query).tolist():
            items = state.texts.ground_truth(query)
            texts = [text_of(one) for documents in items for one in documents]
            matcher = self.matcher._for_ground_truth(texts)
            rows = chosen.setdefault(matcher.signature, (matcher, []))[1]
            rows += np.flatnonzero(of_query == query).tolist()
        return [(matcher, np.array(rows)) for matcher, rows in chosen.values()]

    def _causes(
        self, rank: IntArray, similarity: FloatArray, together: FloatArray, lists: _Lists
    ) -> NDArray[np.object_]:
        alone = (similarity >= self.threshold) & (similarity > 0)
        cause = np.full(len(rank), "not_seen", object)
        if self.index is not None:
            cause[:] = "not_in_index"
            with np.errstate(invalid="ignore"):
                cause[(together >= self.threshold) & (together > 0)] = "cut_apart"
            cause[alone] = "not_retrieved" if lists.there else "not_in_top_k"
            cause[alone & (rank > 0)] = "ranked_too_low"
        else:
            cause[rank > 0] = "ranked_too_low"
        return cause

    def _from_evidence(self, state: _State, lists: _Lists) -> _Rows:
        """Return the pending items as the predicted lists alone show them."""
        found, owner = state.found, state.pending
        first = np.full(len(state.cause), _NEVER)
        near = found.pair_similarity >= self.threshold
        near &= found.pair_rank <= (lists.depth if lists.there else 0)
        np.minimum.at(first, found.pair_item[near], found.pair_rank[near])
        rank = np.where(first[owner] < _NEVER, first[owner], 0)
        cause = np.where(rank > 0, "ranked_too_low", "not_seen").astype(object)
        return _Rows(
            owner, cause, rank, state.similarity[owner], state.together_in_all[owner],
            np.full(len(owner), -1),
        )  # fmt: skip

    def _alternatives(self, state: _State) -> tuple[IntArray, list[DocumentLike]]:
        owner: list[int] = []
        documents: list[DocumentLike] = []
        pieces = state.found.pieces
        for item in state.pending.tolist():
            several = state.alternatives(item)
            if pieces is None:
                wordless = _is_wordless(self.matcher, several)
            else:
                start, stop = np.searchsorted(pieces.alternative_item, [item, item + 1])
                wordless = (pieces.alternative_tokens[start:stop] == 0).tolist()
            for one, nothing in zip(several, wordless, strict=True):
                if not nothing:
                    owner.append(item)
                    documents.append(one)
        return np.array(owner, np.int64), documents

    def _deeper(
        self,
        matcher: Matcher,
        state: _State,
        lists: _Lists,
        owner: IntArray,
        documents: Sequence[DocumentLike],
    ) -> tuple[IntArray, FloatArray]:
        """Return the rank at which each alternative stands in the deeper lists, 0 for none.

        With it comes the similarity of the most similar document there.
        """
        rank, similarity = np.full(len(owner), _NEVER), np.zeros(len(owner))
        if not lists.by_query or not len(owner):
            return np.where(rank < _NEVER, rank, 0), similarity
        of_query = state.found.item_query[owner]
        queries = np.unique(of_query)
        cuts = np.searchsorted(of_query, [*queries.tolist(), _NEVER])
        actual = [list(documents[a:b]) for a, b in pairwise(cuts.tolist())]
        predicted = [list(lists.by_query[query]) for query in queries.tolist()]
        with muted(), _about("deeper", {"predicted_docs": queries.tolist()}):
            asked = [lists.labels[query] for query in queries]
            matches = matcher.match(QuerySet.from_lists(actual, predicted, asked))
        near = matches.similarity >= self.threshold
        # A better rank is one that the predicted list had no use for: the next free one counts.
        stands = np.maximum(matches.rank, state.limit[of_query[matches.item]] + 1)
        np.minimum.at(rank, matches.item[near], stands[near])
        np.maximum.at(similarity, matches.item, matches.similarity)
        rank, similarity = rank[matches.same_as], similarity[matches.same_as]
        return np.where(rank < _NEVER, rank, 0), similarity

    def _in_index(
        self, matcher: Matcher, documents: Sequence[DocumentLike]
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return the similarity of the best chunk of each document, that chunk, and the share."""
        if not documents:
            return np.empty(0), np.empty(0, np.int64), np.empty(0)
        if (words := _words_of(matcher)) is not None:
            return self._by_words(list(map(text_of, documents)), words)
        index = self._index()
        if matcher._question is not None:
            raise InvalidInput(
                "index",
                f": {matcher.signature} looks at the question, and chunks of the index are "
                "compared with the passages of all questions at once",
                Advice("leave out the index, or evaluate with {}", matcher="coverage"),
            )
        self._check_pairs(documents, index)
        with muted(), _about("index", {"predicted_docs": None}):
            queries = QuerySet.from_lists([list(documents)], [index.documents])
            matches = matcher.match(queries)
        similarity, chunk = _best(
            len(documents), matches.item, matches.similarity, matches.rank - 1
        )
        same = matches.same_as
        return similarity[same], chunk[same], np.full(len(documents), np.nan)

    def _index(self) -> Index:
        assert self.index is not None
        return self.index

    def _check_pairs(self, documents: Sequence[DocumentLike], index: Index) -> None:
        texts = {text_of(one) for one in documents}
        n = len(texts) * len(index)
        if n > self.most_pairs and _scores_pairs(self.matcher):
            raise InvalidInput(
                "index",
                f": {self.matcher.signature} compares every pair, and {len(texts):,} passages with "
                f"{len(index):,} chunks are {n:,} pairs; at most {self.most_pairs:,} are compared",
                Advice("allow more with {}, or evaluate with {}", ("most_pairs", ...),
                       ("matcher", "coverage")),
            )  # fmt: skip

    def _by_words(
        self, texts: Sequence[str], matcher: CoverageMatcher
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        index = self._index()
        distinct = {one: number for number, one in enumerate(dict.fromkeys(texts))}
        others = other_readings(matcher.tokenizer, list(index._numbers), list(distinct))
        tokens = index._tokens_with(matcher.tokenizer, [*others, *distinct])
        chunks = np.arange(len(tokens) - len(distinct))
        similarity, together = np.zeros(len(distinct)), np.zeros(len(distinct))
        chunk = np.full(len(distinct), -1)
        run = np.minimum(tokens.sizes[len(chunks) :], matcher.min_run)
        for truths in filter(len, _batches(run, len(chunks))):
            units = Units.of_block(tokens, truths + len(chunks), chunks)
            runs = shared_runs(tokens, units, matcher.min_run)
            truth = runs.truths.unit() - len(chunks)
            share = runs.held / tokens.sizes[runs.truths.unit(runs.truth)]
            held_by = runs.documents.unit(runs.document)
            best, where = _best(len(distinct), truth[runs.truth], share, held_by)
            similarity, chunk = np.maximum(similarity, best), np.maximum(chunk, where)
            together[truth] = runs.held_together() / np.maximum(tokens.sizes[runs.truths.unit()], 1)
        number = [distinct[one] for one in texts]
        read_from = np.array([*range(len(index._numbers)), *others.values()])
        chunk = np.where(chunk < 0, -1, index._first[read_from[chunk]])
        return similarity[number], chunk[number], together[number]


def _best(
    n: int, item: IntArray, similarity: FloatArray, chunk: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the greatest similarity of each item and the first chunk that has it, -1 for none."""
    order = np.lexsort((chunk, -similarity, item))
    first = order[np.diff(item[order], prepend=-1) != 0]
    best, where = np.zeros(n), np.full(n, -1)
    best[item[first]], where[item[first]] = similarity[first], chunk[first]
    return best, where


def _batches(run: IntArray, n_chunks: int) -> Iterator[IntArray]:
    """Yield the texts in parts; those whose runs are in nearly every chunk, few at a time."""
    yield np.flatnonzero(run > _SHORT)
    short = np.flatnonzero((run > 0) & (run <= _SHORT))
    size = max(1, _MOST_SHORT // max(n_chunks, 1))
    for start in range(0, len(short), size):
        yield short[start : start + size]


def _words_of(matcher: Matcher) -> CoverageMatcher | None:
    """Return the matcher if documents may hold an item together.

    Those that ask for numbers, or about the shorter text, decide about a document alone.
    """
    decides_pairs = not isinstance(matcher, CoverageMatcher) or (
        matcher.numbers or matcher.direction == "either"
    )
    return None if decides_pairs else matcher  # type: ignore[return-value]


def _scores_pairs(matcher: Matcher) -> bool:
    """Tell whether a matcher looks at every pair, as neither keys nor runs of words need."""
    parts = getattr(matcher, "parts", None)
    if isinstance(matcher, (AndMatcher, OrMatcher)) and parts:
        return any(map(_scores_pairs, parts))
    return not isinstance(matcher, (KeyMatcher, CoverageMatcher))


def _is_wordless(matcher: Matcher, documents: Sequence[DocumentLike]) -> list[bool]:
    """Tell which documents have nothing that a matcher could find."""
    if isinstance(matcher, (AndMatcher, OrMatcher)):
        choose = any if isinstance(matcher, AndMatcher) else all
        parts = [_is_wordless(part, documents) for part in matcher.parts]
        return [choose(one) for one in zip(*parts, strict=True)]
    if isinstance(matcher, CoverageMatcher):
        return [not matcher.tokenizer(text_of(one)) for one in documents]
    if matcher._document_reading is read_text:
        return [is_blank(text_of(one)) for one in documents]
    return [False] * len(documents)


def _items(state: _State, rows: _Rows, labels: Sequence[str | int]) -> list[DiagnosedItem]:
    """Return all items with what was found out about them."""
    best = {int(row[0]): row for row in zip(*(one.tolist() for one in rows.best()), strict=True)}
    items = []
    for item, query in enumerate(state.found.item_query.tolist()):
        one = DiagnosedItem(
            labels[query], query, int(state.numbers[item]), str(state.cause[item]),
            int(state.rank[item]) or None, float(state.similarity[item]),
            _known(state.together[item]),
        )  # fmt: skip
        if item in best:
            _, cause, rank, similarity, together, chunk = best[item]
            one = replace(
                one, cause=cause, rank=rank or None, similarity=similarity,
                together=_known(together), chunk=None if chunk < 0 else chunk,
            )  # fmt: skip
        elif one.cause == "no_words":
            one = replace(one, similarity=None, together=None)
        items.append(one)
    return items


def _known(share: float) -> float | None:
    return None if math.isnan(share) else float(share)


class _Telling:
    """What may tell why an item is missed."""

    def __init__(
        self, state: _State, judge: _Judge, lists: _Lists, rows: _Rows, source_key: str
    ) -> None:
        self.state, self.index, self.lists = state, judge.index, lists
        self.key, self.reading = source_key, judge.reading
        self.pending = {int(item) for item in rows.owner.tolist()}

    @cached_property
    def has_texts(self) -> bool:
        """Whether chunks have texts, and are not ids alone."""
        chunks = [] if self.index is None else self.index.documents
        return not (self.reading is read_id and all(isinstance(one, str) for one in chunks))

    def of(self, items: Sequence[DiagnosedItem]) -> Iterator[DiagnosedItem]:
        """Yield the items, those that are missed with what may tell why."""
        repeats = self._repeats(items) if self.state.texts is not None else {}
        letters = self._letters(items)
        for number, item in enumerate(items):
            if number not in self.pending:
                yield item
                continue
            flags = repeats.get(item.position)
            above = self._above(item)
            yield replace(
                item,
                query_overlap=self._overlap(item),
                right_source=self._source(number, item),
                repeats_above=None if flags is None else sum(flags[:above]),
                letters=letters.get(number),
            )

    def _above(self, item: DiagnosedItem) -> int:
        """Return how many documents stand above an item; of one that stands nowhere, all seen."""
        return int(self.state.limit[item.position]) if item.rank is None else item.rank - 1

    def _seen(self, query: int, n: int | None = None) -> Sequence[DocumentLike]:
        """Return the first documents of a query: the predicted ones, then those of deeper lists."""
        assert self.state.texts is not None
        limit = int(self.state.limit[query])
        predicted = self.state.texts.documents(query)[:limit]
        return [*predicted, *self.lists.by_query.get(query, ())[limit:]][
            : limit if n is None else n
        ]

    def _overlap(self, item: DiagnosedItem) -> float | None:
        asked = self.index is not None and item.chunk is not None and isinstance(item.query, str)
        if not asked or item.cause == "not_in_index" or not self.has_texts:
            return None
        assert self.index is not None
        return self.index._overlap(str(item.query), int(item.chunk or 0))

    def _source(self, number: int, item: DiagnosedItem) -> bool | None:
        if self.state.texts is None:
            return None
        own = {self._of(one) for one in self.state.alternatives(number)} - {None}
        is_there = item.chunk is not None and item.cause != "not_in_index"
        if not own and self.index is not None and is_there:
            own = {self._of(self.index.documents[item.chunk or 0])} - {None}
        if not own:
            return None
        return any(self._of(one) in own for one in self._seen(item.position))

    def _of(self, document: DocumentLike) -> str | None:
        """Return the source of a document, as text: metadata may hold what cannot be hashed."""
        if self.index is None:
            source = metadata_of(document).get(self.key)
        else:
            source = self.index._source(document, self.key)
        return None if source is None else repr(source)

    def _repeats(self, items: Sequence[DiagnosedItem]) -> dict[int, list[bool]]:
        """Return, per query, which of the documents above its items repeat a better-ranked one."""
        most: dict[int, int] = {}
        for number in self.pending:
            query = items[number].position
            most[query] = max(most.get(query, 0), self._above(items[number]))
        texts = {
            query: [_text_seen(one, self.reading) for one in self._seen(query, n)]
            for query, n in most.items()
        }
        texts = {query: several for query, several in texts.items() if any(several) or not several}
        if not texts:
            return {}
        with muted():
            lists = list(texts.values())
            matches = _REPEATS.match(QuerySet.from_lists(lists, lists))
        flags = np.zeros(len(matches.same_as), np.bool_)
        before = np.cumsum([0, *map(len, lists)])
        rank = np.arange(len(flags)) - np.repeat(before[:-1], np.diff(before)) + 1
        better = matches.rank < rank[matches.item]
        flags[matches.item[better & (matches.similarity >= _REPEATS.threshold)]] = True
        return {
            query: flags[start:stop].tolist()
            for query, (start, stop) in zip(texts, pairwise(before.tolist()), strict=True)
        }

    def _letters(self, items: Sequence[DiagnosedItem]) -> dict[int, float]:
        """Return how much of the letters of items the index has that does not have their words."""
        missing = {
            number: max(map(_letters, map(text_of, self.state.alternatives(number))), key=len)
            for number in self.pending
            if items[number].cause == "not_in_index" and self.has_texts
        }
        missing = {number: one for number, one in missing.items() if len(one) >= _LETTERS}
        if not missing or self.index is None:
            return {}
        own = _codes(list(missing.values()))
        held = held_anywhere(own, _blocks(map(_letters, self.index._numbers)), _LETTERS)
        return dict(zip(missing, (own.counted(held) / own.sizes).tolist(), strict=True))


def _text_seen(document: DocumentLike, reading: Reading) -> str:
    """Return the text of a document; a string that is an id has none."""
    return "" if reading is read_id and isinstance(document, str) else text_of(document)


def _letters(text: str) -> str:
    r"""Return the letters and digits of a text, in lower case.

    >>> _letters("Re-\ntrieval, 2nd ed.")
    'retrieval2nded'
    """
    if text.isascii():
        return text.lower().encode("ascii").translate(None, _NO_ASCII_LETTERS).decode("ascii")
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).lower())


def _codes(texts: Sequence[str]) -> TokenNumbers:
    """Return the characters of texts as numbers."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.int32)
    return TokenNumbers(codes, np.array([len(one) for one in texts], np.int64))


def _blocks(texts: Iterable[str]) -> Iterator[TokenNumbers]:
    """Yield the characters of texts in parts of about so many."""
    block: list[str] = []
    size = 0
    for one in texts:
        block.append(one)
        size += len(one)
        if size > _BLOCK:
            yield _codes(block)
            block, size = [], 0
    yield _codes(block)
