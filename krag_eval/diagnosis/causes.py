"""Causes: whose fault a miss is, the index, the splitter, the ranking or the search.

For ``EvaluationResult.diagnose``. Every ground-truth item gets the first class that applies; the
index is read once and kept in an :class:`Index`. What comes of it is a
:class:`~krag_eval.diagnosis.diagnosis.Diagnosis`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property
from itertools import count, groupby, pairwise, starmap
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    Advice,
    Budget,
    CoverageMatcher,
    Cutoff,
    DocumentLike,
    FloatArray,
    IntArray,
    InvalidInput,
    InvalidType,
    Matcher,
    QuerySet,
    Tokenizer,
    TokenNumbers,
    Units,
    _,
    clipped,
    errors,
    fitted,
    id_of,
    is_blank,
    letter_tokens,
    metadata_of,
    must,
    muted,
    read_text,
    text_of,
    warn,
)
from krag_eval.core.documents import check_documents
from krag_eval.core.matching.base import AndMatcher, KeyMatcher, OrMatcher
from krag_eval.core.matching.coverage import other_readings
from krag_eval.core.matching.names import matcher_of
from krag_eval.core.matching.numbering import numbered
from krag_eval.core.matching.pieces import held_anywhere, shared_runs, whereabouts
from krag_eval.core.matching.spans import SpanMatcher, span_of
from krag_eval.core.matching.tokenizers import word_tokens
from krag_eval.core.results.evidence import Evidence, Texts
from krag_eval.core.scoring.relevance import Relevance, RelevanceTogether
from krag_eval.diagnosis import diagnosis
from krag_eval.diagnosis.diagnosis import DiagnosedItem, Diagnosis, ForeignIndex, LookedUp

if TYPE_CHECKING:
    from krag_eval.loading.loading import ChunkSource

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
_REPEATS = CoverageMatcher(0.8, guard="off")
_BY_WORDS = CoverageMatcher(guard="off")
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
# Pairs of chunks, one behind the other, of which it is seen how far they overlap.
_OVERLAPS = 200
# Columns of a text that is told.
_WIDTH = 100
_HANGUL, _PARTICLES = re.compile("[가-힣]+"), frozenset("은는이가을를에의도와과로만")
_NO_LETTER = re.compile(r"[\W_]+")
_NO_ASCII_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


class Index:
    """The chunks of a store, read once: what several diagnoses share.

    Args:
        chunks: All of them: texts, dicts with ``"page_content"`` or ``"text"``, or documents of
            LangChain, LlamaIndex or Haystack; any iterable. For the matcher ``"id"``, ids will do.
            Or the path of a file of JSON lines with such texts or objects, or a data frame with
            such columns.

    Attributes:
        documents: The chunks as they are compared.

    Raises:
        DatasetError: If the file cannot be read.
        InvalidType: If it is nothing of the kind.
        InvalidInput: If there are none.

    >>> len(Index(["Opening hours: nine to five.", "Closed on Mondays."]))
    2
    """

    def __init__(self, chunks: ChunkSource) -> None:
        from krag_eval.loading.loading import chunks_in

        self.documents = chunks_in(chunks)
        self._read: list[tuple[Tokenizer, dict[str, int], TokenNumbers]] = []

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"<Index of {len(self)} chunk{'' if len(self) == 1 else 's'}>"

    @cached_property
    def _texts(self) -> Mapping[str, int]:
        """The distinct texts, each with the position of the first chunk that has it."""
        first: dict[str, int] = {}
        for position, one in enumerate(self.documents):
            first.setdefault(text_of(one), position)
        return first

    def _tokens(
        self, tokenizer: Tokenizer, others: Sequence[str] = ()
    ) -> tuple[TokenNumbers, TokenNumbers, dict[str, int]]:
        """Return the tokens of the distinct texts and of others, and the number of each token."""
        read = next((one for one in self._read if one[0] == tokenizer), None)
        if read is None:
            numbers: dict[str, int] = defaultdict(count().__next__)
            read = tokenizer, numbers, numbered(tokenizer, list(self._texts), numbers)
            self._read.append(read)
        _, known, tokens = read
        # A dict of its own: what several threads ask for must not change what is kept.
        own = defaultdict(count(len(known)).__next__, known)
        return tokens, numbered(tokenizer, others, own), own

    @cached_property
    def _common(self) -> set[str]:
        """The words that more than half of the distinct texts have."""
        tokens, _, numbers = self._tokens(word_tokens)
        often = np.bincount(tokens.flat, minlength=1) > len(tokens) / 2
        place = np.flatnonzero(often[tokens.flat])
        where = np.searchsorted(np.cumsum(tokens.sizes), place, side="right")
        pairs = np.unique(where * len(often) + tokens.flat[place])
        common = np.bincount(pairs % len(often), minlength=len(often)) > len(tokens) / 2
        return {word for word, number in numbers.items() if common[number]}

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """The median number of characters of the distinct texts, and of those that overlap."""
        texts = [*self._texts]
        pairs = [*pairwise(texts)][:: max(1, len(texts) // _OVERLAPS)]
        overlaps = [*starmap(_overlap, pairs)]
        return int(np.median([*map(len, texts)])), int(np.median(overlaps or [0]))

    def _overlaps(self, question: str, chunk: int) -> tuple[float, float] | None:
        """Return the share of a question's words that a chunk has, and has just so.

        Common words do not count, nor do particles and endings of Korean.
        """
        words = {*word_tokens(question)} - self._common
        held = {*word_tokens(text_of(self.documents[chunk]))}
        if not words or not held:
            return None
        stems = {stem for word in held for stem in _stems(word)}
        alike = sum(not stems.isdisjoint(_stems(word)) for word in words)
        return alike / len(words), len(words & held) / len(words)

    def _nearest(self, passages: Mapping[int, str]) -> dict[int, int]:
        """Return for passages the chunk that has most of their words; common ones do not count."""
        tokens, _, numbers = self._tokens(word_tokens)
        having = defaultdict[str, list[int]](list)
        for word, number in numbers.items():
            for stem in () if word in self._common else _stems(word):
                having[stem].append(number)
        of_text = np.repeat(np.arange(len(tokens)), tokens.sizes)
        nearest, first = dict[int, int](), [*self._texts.values()]
        for place, passage in passages.items():
            stems = {stem for word in {*word_tokens(passage)} for stem in _stems(word)}
            wanted = [number for stem in stems for number in having.get(stem, ())]
            there = np.isin(tokens.flat, wanted)
            pairs = np.unique(of_text[there] * len(numbers) + tokens.flat[there])
            counts = np.bincount(pairs // len(numbers), minlength=1)
            if counts.any():
                nearest[place] = first[int(counts.argmax())]
        return nearest


def _overlap(one: str, other: str) -> int:
    """Return how many characters one text ends with and another begins with."""
    sizes = range(min(len(one), len(other)) - 1, 0, -1)
    return next((size for size in sizes if one.endswith(other[:size])), 0)


def _stems(word: str) -> set[str]:
    """Return what a word may share with another one: itself, or in Korean how it begins.

    >>> sorted(_stems("대출기간은")), sorted(_stems("문을")), _stems("loans")
    (['대출', '대출기간'], ['문'], {'loans'})
    """
    if not _HANGUL.fullmatch(word):
        return {word}
    stem = word[:-1] if len(word) > 1 and word[-1] in _PARTICLES else word
    return {stem, stem[:2]} if len(stem) > 1 else {stem}


def diagnosed(
    evidence: Evidence,
    labels: Sequence[str | int],
    k: Cutoff,
    *,
    signature: str,
    matcher: str | Matcher | None = None,
    index: Index | ChunkSource | None = None,
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
    errors.one_of("foreign_index", foreign_index, get_args(ForeignIndex))
    errors.text("source_key", source_key, "the name of a metadata key")
    most_pairs = errors.whole("most_pairs", most_pairs, 1)
    depth = checked_depth(depth, k)
    if index is not None and not isinstance(index, Index):
        index = Index(index)
    case = _Case(evidence, labels, k, matcher_of(signature, evidence.matcher, matcher), index)
    looked = None
    if index is not None and evidence.texts is not None:
        looked = _looked_up(evidence.texts, len(labels), index, case.matcher)
        looked.check(foreign_index)
    case.take_lists(deeper, depth)
    case.take_lost(most_pairs)
    words = sizes = None
    if index is not None and case.lost and case.has_texts:
        words = int(np.median(index._tokens(word_tokens)[0].sizes))
        sizes = index._sizes
    return Diagnosis(
        tuple(case.items(source_key)),
        k,
        case.depth or None,
        None if index is None else len(index),
        words,
        case.found.threshold,
        signature,
        case.matcher.union,
        case.knows_words,
        looked,
        of or {},
        isinstance(case.matcher, CoverageMatcher) and case.matcher.is_guarded,
        *(sizes or ()),
    )


def checked_depth(depth: object, k: Cutoff) -> int | None:
    """Return how far deeper lists are looked at, ``None`` for to their ends."""
    if depth is None:
        return None
    checked = errors.whole("depth", depth, 1)
    if isinstance(k, int) and checked <= k:
        raise must("depth", f"be larger than the cutoff k = {k}", checked, "look deeper")
    return checked


class _Facts(NamedTuple):
    """What is known of items, or of the alternatives of those that are lost; each of shape (rows,).

    Attributes:
        item: Item of each row, ascending.
        cause: Class, ``""`` where it is yet to be found.
        rank: Where it stands, 0 for nowhere.
        similarity: To the best chunk or document, NaN of what has no words.
        together: Share that several hold together, NaN if not known.
        chunk: Best chunk of the index, -1 for none.
        against: Of the chunks that say something else, the one that holds most, -1 for none.
    """

    item: IntArray
    cause: NDArray[np.object_]
    rank: IntArray
    similarity: FloatArray
    together: FloatArray
    chunk: IntArray
    against: IntArray

    @classmethod
    def unknown(cls, item: IntArray) -> _Facts:
        """Return rows of which nothing is known yet."""
        n = len(item)
        cause, none, zero = np.full(n, "", object), np.full(n, -1), np.zeros(n)
        return cls(item, cause, none + 1, zero, np.full(n, np.nan), none, none.copy())

    def settle(self, others: _Facts) -> None:
        """Take over, of each item that others speak of, the row that is furthest along."""
        place = np.array([diagnosis.CLASSES.index(cause) for cause in others.cause], np.int64)
        order = np.lexsort((-others.similarity, others.rank, place, others.item))
        first = order[np.diff(others.item[order], prepend=-1) != 0]
        for column, known in zip(self, others, strict=True):
            column[others.item[first]] = known[first]


class _Case:
    """One diagnosis: what is known of every item, and where more is found out about it.

    Attributes:
        found: What was found.
        limit: Of each query, how many documents are within the cutoff; shape (queries,).
        facts: What is known of each item.
        lost: The items that are not found, each with whether its alternatives have words.
        lists: Query that lost something -> its deeper list.
        depth: How deep these lists go, 0 if there is nothing deeper.
        has_lists: Whether lists were given, beside the predicted ones.
    """

    def __init__(
        self,
        evidence: Evidence,
        labels: Sequence[str | int],
        k: Cutoff,
        matcher: Matcher,
        index: Index | None,
    ) -> None:
        self.labels, self.matcher, self.index = labels, matcher, index
        self.texts, self.places = evidence.texts, evidence.items()
        found = evidence.measured(k.unit) if isinstance(k, Budget) else evidence.relevance
        # One that asks for numbers, or about the shorter text, decides about a document alone.
        alone = isinstance(matcher, CoverageMatcher) and matcher.decides_alone
        self.knows_words = matcher.counts_words and not alone
        self.found = found
        if self.knows_words and found.pieces is None:
            raise InvalidInput(
                "",
                "this result was saved by a version that did not keep what documents hold together",
                "evaluate again",
            )
        if isinstance(k, Budget):
            self.limit = found.prefix(k)
        else:
            self.limit = found.n_retrieved if k is None else np.full(found.n_queries, k)
        self.are_ids = self.texts is not None and self.texts.are_ids and not self.texts.were_saved
        self.facts = self._within_cutoff()
        lost = np.flatnonzero(self.facts.cause == "").tolist()
        self.lost = {item: words for item in lost if any(words := self._have_words(item))}
        wordless = [item for item in lost if item not in self.lost]
        self.facts.cause[wordless] = "no_words"
        self.facts.similarity[wordless] = self.facts.together[wordless] = np.nan
        self.queries = list(dict.fromkeys(self.places[item][0] for item in self.lost))

    def _within_cutoff(self) -> _Facts:
        """Return what the predicted documents within the cutoff say of each item."""
        found = self.found
        facts = _Facts.unknown(np.arange(len(found.item_query)))
        last = self.limit[found.item_query]
        rank = self._first_rank(last)
        facts.cause[rank < _NEVER] = "found"
        np.maximum.at(facts.similarity, found.pair_item, found.pair_similarity)
        if self.knows_words:
            known = {one.name: getattr(found, one.name) for one in fields(Relevance) if one.init}
            completed = RelevanceTogether(**known).completed_rank
            in_pieces = (rank == _NEVER) & (completed <= last)
            facts.cause[in_pieces] = "found_in_pieces"
            rank = np.where(in_pieces, completed, rank)
            facts.together[:] = found.held_within(last)
        facts.rank[:] = np.where(rank < _NEVER, rank, 0)
        return facts

    def _first_rank(self, last: IntArray) -> IntArray:
        """Return the first rank at which a document alone holds each item, up to a last one."""
        found = self.found
        near = found.pair_similarity >= found.threshold
        near &= found.pair_rank <= last[found.pair_item]
        rank = np.full(len(last), _NEVER)
        np.minimum.at(rank, found.pair_item[near], found.pair_rank[near])
        return rank

    def _have_words(self, item: int) -> Sequence[bool]:
        """Tell which alternatives of an item have words, as far as that is known."""
        if (pieces := self.found.pieces) is not None:
            start, stop = np.searchsorted(pieces.alternative_item, [item, item + 1])
            words: list[bool] = (pieces.alternative_tokens[start:stop] > 0).tolist()
            return words
        if self.texts is None:
            return [True]
        return [not one for one in _wordless(self.matcher, self.alternatives(item))]

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
        query, number = self.places[item]
        return self.texts.ground_truth(query)[number - 1]

    def take_lists(self, deeper: Any, depth: int | None) -> None:
        """Take the lists that were given, by whatever means, or the predicted ones.

        Raises:
            InvalidInput: If none of all has a document, so that nothing can be told from them.
        """
        self.has_lists, self.depth = deeper is not None, 0
        self.lists: Mapping[int, Sequence[DocumentLike]] = {}
        if deeper is None:
            cut = np.minimum(self.found.n_retrieved, depth or _NEVER)
            if (cut > self.limit).any():
                self.depth = depth or int(cut.max())
                if self.texts is not None:
                    self.lists = {one: self.texts.documents(one)[:depth] for one in self.queries}
            return
        source = _source_of_lists(deeper, len(self.labels))
        self.lists = {one: _documents(source, self.labels, one)[:depth] for one in self.queries}
        given = source.values() if isinstance(source, Mapping) else source
        # Of a function, nothing is known but what it was asked for.
        of_all = list(map(_size, self.lists.values() if callable(given) else given))
        sizes = list(map(_size, self.lists.values()))
        if of_all and not any(sizes) and not any(of_all):
            raise InvalidInput(
                "deeper",
                f"must hold longer lists than were evaluated, got {len(of_all)} without a document",
                "pass what the same retriever returns with a larger k, or leave it out",
            )
        if n := sizes.count(0):
            told = _(
                "Without a document in the deeper list: {n} of {of} queries that miss something. "
                "What they miss cannot be called ranked too low."
            )
            fix = _("Check that the retriever was asked for these, and did not fail")
            warn(told.format(n=n, of=len(sizes)), fix)
        longest = max(sizes, default=0) or max(of_all, default=0) or self.limit.max(initial=1)
        self.depth = depth or int(longest)

    def take_lost(self, most_pairs: int) -> None:
        """Find out what became of the lost items, each by its best alternative."""
        if self.index is None and not self.has_lists:
            rows = _Facts.unknown(np.array([*self.lost], np.int64))
            last = np.full(len(self.facts.item), self.depth)
            first = self._first_rank(last)[rows.item]
            rows.rank[:] = np.where(first < _NEVER, first, 0)
            rows.similarity[:] = self.facts.similarity[rows.item]
        else:
            rows = self._compared(most_pairs)
        held = rows.together
        if self.knows_words and self.index is None:
            held[:] = self.found.held_within(np.full(len(self.facts.item), _NEVER))[rows.item]
        enough = self.found.threshold
        alone = (rows.similarity >= enough) & (rows.similarity > 0)
        if self.index is None:
            rows.cause[:] = "not_seen"
            rows.cause[rows.rank > 0] = "ranked_too_low"
        else:
            rows.cause[:] = "not_in_index"
            rows.cause[rows.against >= 0] = "contradicted"
            rows.cause[(held >= enough) & (held > 0)] = "cut_apart"
            rows.cause[alone] = "not_retrieved" if self.depth else "not_in_top_k"
            rows.cause[alone & (rows.rank > 0)] = "ranked_too_low"
        rows.rank[rows.cause != "ranked_too_low"] = 0
        other = rows.cause == "contradicted"
        rows.chunk[other], rows.similarity[other] = rows.against[other], 0.0
        self.facts.settle(rows)

    def _compared(self, most_pairs: int) -> _Facts:
        """Return what the deeper lists and the index have of each alternative with words."""
        if self.texts and self.texts.were_saved and self.matcher._document_reading is not read_text:
            raise InvalidInput(
                "matcher",
                f": the result was read from a file, which keeps texts, and "
                f"{self.matcher.signature} compares more than texts",
                Advice("pass {}, what it was evaluated on", dataset=...),
            )
        several = [
            (item, one)
            for item, have_words in self.lost.items()
            for one, has_words in zip(self.alternatives(item), have_words, strict=True)
            if has_words
        ]
        rows = _Facts.unknown(np.array([item for item, _ in several], np.int64))
        for matcher, chosen in self._matchers(rows.item):
            item, documents = rows.item[chosen], [several[row][1] for row in chosen]
            rows.rank[chosen], rows.similarity[chosen] = self._in_lists(matcher, item, documents)
            if self.index is not None:
                found = self._in_index(matcher, documents, self.index, most_pairs)
                for column, known in zip(rows[3:], found, strict=True):
                    column[chosen] = known
        if self.index is None:
            # Of all that came back, in the lists given and in those predicted.
            single = np.bincount(rows.item, minlength=1)[rows.item] == 1
            known = np.maximum(rows.similarity, self.facts.similarity[rows.item])
            rows.similarity[single] = known[single]
        return rows

    def _matchers(self, item: IntArray) -> list[tuple[Matcher, list[int]]]:
        """Return each matcher that decides about some rows, given their items, and about which.

        More than one where the ground truth of a query decides how its texts are read.
        """
        chosen: dict[str, tuple[Matcher, list[int]]] = {}
        of_query = self.found.item_query[item].tolist()
        for query, rows in groupby(range(len(item)), of_query.__getitem__):
            items = [] if self.texts is None else self.texts.ground_truth(query)
            texts = [text_of(one) for documents in items for one in documents]
            matcher = self.matcher._for_ground_truth(texts)
            chosen.setdefault(matcher.signature, (matcher, []))[1].extend(rows)
        return [*chosen.values()]

    def _in_lists(
        self, matcher: Matcher, item: IntArray, documents: Sequence[DocumentLike]
    ) -> tuple[IntArray, FloatArray]:
        """Return the rank at which each alternative stands in the deeper lists, 0 for none.

        With it comes the similarity of the most similar document there.
        """
        rank, similarity = np.full(len(item), _NEVER), np.zeros(len(item))
        if self.lists:
            of_query = self.found.item_query[item]
            queries = np.unique(of_query).tolist()
            cuts = np.searchsorted(of_query, [*queries, _NEVER]).tolist()
            actual = [list(documents[start:stop]) for start, stop in pairwise(cuts)]
            predicted = [list(self.lists[query]) for query in queries]
            with muted(), _about("deeper", queries):
                asked = [self.labels[query] for query in queries]
                matches = matcher.match(QuerySet.from_lists(actual, predicted, asked))
            near = matches.similarity >= self.found.threshold
            # A better rank is one that the predicted list had no use for: the next free one counts.
            stands = np.maximum(matches.rank, self.limit[of_query[matches.item]] + 1)
            np.minimum.at(rank, matches.item[near], stands[near])
            np.maximum.at(similarity, matches.item, matches.similarity)
            rank, similarity = rank[matches.same_as], similarity[matches.same_as]
        return np.where(rank < _NEVER, rank, 0), similarity

    def _in_index(
        self, matcher: Matcher, documents: Sequence[DocumentLike], index: Index, most_pairs: int
    ) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        """Return the last columns of :class:`_Facts`."""
        if isinstance(matcher, CoverageMatcher) and self.knows_words:
            return _by_words(list(map(text_of, documents)), matcher, index)
        if matcher._question is not None:
            raise InvalidInput(
                "index",
                f": {matcher.signature} looks at the question, and chunks of the index are "
                "compared with the passages of all questions at once",
                Advice("leave out the index, or evaluate with {}", matcher="coverage"),
            )
        texts = {text_of(one) for one in documents}
        n = len(texts) * len(index)
        if n > most_pairs and _scores_pairs(matcher):
            raise InvalidInput(
                "index",
                f": {matcher.signature} compares every pair, and {len(texts):,} passages with "
                f"{len(index):,} chunks are {n:,} pairs; at most {most_pairs:,} are compared",
                Advice("allow more with {}, or evaluate with {}", ("most_pairs", ...),
                       ("matcher", "coverage")),
            )  # fmt: skip
        with muted(), _about("index"):
            matches = matcher.match(QuerySet.from_lists([list(documents)], [index.documents]))
        similarity, chunk = _best(
            len(documents), matches.item, matches.similarity, matches.rank - 1
        )
        against, together = np.full(len(documents), -1), np.full(len(documents), np.nan)
        if (pieces := matches.pieces) is not None:
            which, rank = pieces.contradicted_alternative, pieces.contradicted_rank
            against = _best(len(documents), which, pieces.contradicted_share, rank - 1)[1]
            if self.knows_words:
                held = np.bincount(pieces.added_alternative, pieces.added_tokens, len(documents))
                together = held / pieces.alternative_tokens
        same = matches.same_as
        return similarity[same], together, chunk[same], against[same]

    @property
    def has_texts(self) -> bool:
        """Whether chunks have texts, and are not ids alone."""
        chunks = [] if self.index is None else self.index.documents
        return not (self.are_ids and all(isinstance(one, str) for one in chunks))

    def items(self, source_key: str) -> Iterator[DiagnosedItem]:
        """Yield all items, those that are lost with what may tell why."""
        columns = zip(*(column.tolist() for column in self.facts), strict=True)
        items = [
            DiagnosedItem(
                self.labels[query], query, number, cause, rank or None,
                _known(similarity), _known(together), None if chunk < 0 else chunk,
            )
            for (query, number), (_, cause, rank, similarity, together, chunk, _)
            in zip(self.places, columns, strict=True)
        ]  # fmt: skip
        repeats = self._repeats(items) if self.texts is not None else {}
        letters, nearest = self._letters(items), self._nearest(items)
        for place, item in enumerate(items):
            if place in self.lost:
                flags = repeats.get(item.position)
                item = replace(
                    item,
                    **self._overlap(item),
                    right_source=self._right_source(place, item, source_key),
                    repeats_above=None if flags is None else sum(flags[: self._above(item)]),
                    letters=letters.get(place),
                    **self._otherwise(place, item),
                    **nearest.get(place, {}),
                )
            yield item

    def _above(self, item: DiagnosedItem) -> int:
        """Return how many documents stand above an item; of one that stands nowhere, all seen."""
        return int(self.limit[item.position]) if item.rank is None else item.rank - 1

    def _seen(self, query: int, n: int) -> Sequence[DocumentLike]:
        """Return the first documents of a query: the predicted ones, then those of deeper lists."""
        assert self.texts is not None
        limit = int(self.limit[query])
        return [*self.texts.documents(query)[:limit], *self.lists.get(query, ())[limit:]][:n]

    def _overlap(self, item: DiagnosedItem) -> dict[str, Any]:
        """Return how much of a question's words the best chunk of an item has."""
        known = item.chunk is not None and isinstance(item.query, str) and self.has_texts
        if self.index is None or not known or item.cause == "not_in_index":
            return {}
        overlaps = self.index._overlaps(str(item.query), int(item.chunk or 0))
        return dict(zip(("query_overlap", "same_words"), overlaps or (), strict=False))

    def _nearest(self, items: Sequence[DiagnosedItem]) -> dict[int, dict[str, Any]]:
        """Return what was looked for and is not in the index, and what comes nearest to it."""
        missing = {place: max(map(text_of, self.alternatives(place)), key=len)
                   for place in self.lost if items[place].cause == "not_in_index"}  # fmt: skip
        if not missing or self.index is None or not self.has_texts:
            return {}
        best = {place: items[place].chunk for place in missing}
        by_words = self.index._nearest({at: missing[at] for at, chunk in best.items()
                                        if chunk is None})  # fmt: skip
        told = dict[int, dict[str, Any]]()
        for place, passage in missing.items():
            told[place] = {"looked_for": fitted(passage, _WIDTH)}
            chunk = by_words.get(place, best[place])
            if chunk is not None:
                near = fitted(text_of(self.index.documents[chunk]), _WIDTH)
                told[place] |= {"nearest_chunk": chunk, "nearest_text": near}
        return told

    def _otherwise(self, place: int, item: DiagnosedItem) -> dict[str, Any]:
        """Return what the best chunk says otherwise than an item, where it is lost by that."""
        if item.cause != "contradicted" or self.index is None or item.chunk is None:
            return {}
        (matcher, _), *_ = self._matchers(np.array([place]))
        assert isinstance(matcher, CoverageMatcher)
        chunk = self.index.documents[item.chunk]
        told = (matcher.said_otherwise(one, chunk) for one in self.alternatives(place))
        said = next(filter(None, told), ())
        return dict(zip(("differs_in", "passage_says", "chunk_says"), said, strict=False))

    def _right_source(self, place: int, item: DiagnosedItem, key: str) -> bool | None:
        """Tell whether something that was seen has the source of an item, or of its best chunk."""
        if self.texts is None:
            return None
        own = {self._source(one, key) for one in self.alternatives(place)} - {None}
        if not own and self.index and item.chunk is not None and item.cause != "not_in_index":
            own = {self._source(self.index.documents[item.chunk], key)} - {None}
        if not own:
            return None
        seen = self._seen(item.position, int(self.limit[item.position]))
        return any(self._source(one, key) in own for one in seen)

    def _source(self, document: DocumentLike, key: str) -> str | None:
        """Return where a document is from: by its own metadata, or by those of the same chunk.

        It is text: metadata may hold what cannot be hashed.
        """
        source = metadata_of(document).get(key)
        if source is None and self.index is not None:
            position = self.index._texts.get(text_of(document))
            if position is not None:
                source = metadata_of(self.index.documents[position]).get(key)
        return None if source is None else repr(source)

    def _repeats(self, items: Sequence[DiagnosedItem]) -> dict[int, list[bool]]:
        """Return, per query, which of the documents above its items repeat a better-ranked one."""
        most: dict[int, int] = {}
        for item in map(items.__getitem__, self.lost):
            most[item.position] = max(most.get(item.position, 0), self._above(item))
        texts = {
            query: [_id_and_text(one, self.are_ids)[1] for one in self._seen(query, n)]
            for query, n in most.items()
        }
        texts = {query: several for query, several in texts.items() if any(several) or not several}
        if not texts:
            return {}
        with muted():
            lists = list(texts.values())
            matches = _REPEATS.match(QuerySet.from_lists(lists, lists))
        flags = np.zeros(len(matches.same_as), np.bool_)
        rank = np.concatenate([np.arange(1, len(one) + 1) for one in lists])
        better = matches.rank < rank[matches.item]
        flags[matches.item[better & (matches.similarity >= _REPEATS.threshold)]] = True
        ends = np.cumsum([*map(len, lists)])[:-1]
        return {query: of.tolist() for query, of in zip(texts, np.split(flags, ends), strict=True)}

    def _letters(self, items: Sequence[DiagnosedItem]) -> dict[int, float]:
        """Return how much of the letters of items the index has that does not have their words."""
        missing = {
            place: max(map(_letters, map(text_of, self.alternatives(place))), key=len)
            for place in self.lost
            if items[place].cause == "not_in_index" and self.has_texts
        }
        missing = {place: one for place, one in missing.items() if len(one) >= _LETTERS}
        if not missing or self.index is None:
            return {}
        own = _codes(list(missing.values()))
        held = held_anywhere(own, _blocks(map(_letters, self.index._texts)), _LETTERS)
        return dict(zip(missing, (own.counted(held) / own.sizes).tolist(), strict=True))


def _known(share: float) -> float | None:
    return None if math.isnan(share) else share


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


def _source_of_lists(deeper: Any, n_queries: int) -> Any:
    """Return deeper lists as a mapping, a list, or a function of the question."""
    ask = getattr(deeper, "invoke", deeper)  # of LangChain's retrievers
    if isinstance(deeper, Mapping) or callable(ask):
        return deeper if isinstance(deeper, Mapping) else ask
    if isinstance(deeper, (str, bytes)) or not hasattr(deeper, "__len__"):
        raise must(
            "deeper",
            "be a list of ranked documents per query, a dict of them by label, or a function from "
            "a question to them",
            deeper,
            kind=InvalidType,
        )
    if len(deeper) != n_queries:
        raise must("deeper", f"have one list for each of {n_queries} queries", len(deeper))
    return list(deeper)


def _documents(source: Any, labels: Sequence[str | int], query: int) -> Sequence[DocumentLike]:
    """Return the deeper list of a query."""
    label = labels[query]
    if isinstance(source, list):
        given = source[query]
    elif isinstance(source, Mapping):
        if label not in source:
            problem = f"has no list for {clipped(label)}, where something is missed"
            raise InvalidInput("deeper", problem)
        given = source[label]
    elif isinstance(label, str):
        given = source(label)
    else:
        problem = f"is a function of the question, and query {query} is labelled {label}"
        fix = Advice("evaluate with {}, the questions", queries=...)
        raise InvalidInput("deeper", problem, fix)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        problem = f"must be a list of documents, got {clipped(given)}"
        raise InvalidType("deeper", problem, query=query)
    with _about("deeper", [query]):
        return check_documents(list(given), "deeper")


@contextmanager
def _about(argument: str, queries: Sequence[int] = ()) -> Iterator[None]:
    """Let a refusal of predicted documents name the user's argument, and the user's query."""
    try:
        yield
    except errors.Refusal as error:
        if error.argument in ("predicted_docs", argument):
            error.argument = argument
            error.query = queries[error.query or 0] if queries else None
        raise


def _by_words(
    texts: Sequence[str], matcher: CoverageMatcher, index: Index
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Return what :meth:`_Case._in_index` does, of a matcher that knows words."""
    distinct = {one: number for number, one in enumerate(dict.fromkeys(texts))}
    others = other_readings(matcher.tokenizer, list(index._texts), list(distinct))
    readings = [*others, *distinct]
    of_chunks, of_texts, names = index._tokens(matcher.tokenizer, readings)
    tokens = of_chunks.followed_by(of_texts)
    read = matcher._as_read(tokens, [*names], [*index._texts, *readings])
    seams = matcher._seams(read, is_ranked=False)
    n = len(distinct)
    chunks = np.arange(len(tokens) - n)
    similarity, together = np.zeros(n), np.zeros(n)
    chunk, against = np.full(n, -1), np.full(n, -1)
    run = np.minimum(tokens.sizes[len(chunks) :], matcher.min_run)
    for truths in filter(len, _batches(run, len(chunks))):
        units = Units.of_block(read, truths + len(chunks), chunks)
        runs = shared_runs(tokens, units, matcher.min_run, seams)
        share, without = matcher.shares(runs, read)
        truth = runs.truths.unit() - len(chunks)
        of_pair, held_by = truth[runs.truth], runs.documents.unit(runs.document)
        best, where = _best(n, of_pair, share, held_by)
        similarity, chunk = np.maximum(similarity, best), np.maximum(chunk, where)
        if without is not None:
            pairs = without.pairs
            other = _best(n, of_pair[pairs], without.share, held_by[pairs])[1]
            against = np.maximum(against, other)
        together[truth] = runs.held_together(without) / np.maximum(
            tokens.sizes[runs.truths.unit()], 1
        )
    number = [distinct[one] for one in texts]
    first = np.array([*index._texts.values()])
    position = np.concatenate([first, first[[*others.values()]], [-1]])
    return similarity[number], together[number], position[chunk][number], position[against][number]


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


def _scores_pairs(matcher: Matcher) -> bool:
    """Tell whether a matcher looks at every pair, as neither keys nor runs of words need."""
    parts = getattr(matcher, "parts", None)
    if isinstance(matcher, (AndMatcher, OrMatcher)) and parts:
        return any(map(_scores_pairs, parts))
    return not isinstance(matcher, (KeyMatcher, CoverageMatcher, SpanMatcher))


def _wordless(matcher: Matcher, documents: Sequence[DocumentLike]) -> list[bool]:
    """Tell which documents have nothing that a matcher could find."""
    if isinstance(matcher, (AndMatcher, OrMatcher)):
        choose = any if isinstance(matcher, AndMatcher) else all
        parts = [_wordless(part, documents) for part in matcher.parts]
        return [choose(one) for one in zip(*parts, strict=True)]
    if isinstance(matcher, CoverageMatcher):
        return [not matcher.tokenizer(text_of(one)) for one in documents]
    if matcher._document_reading is read_text:
        return [is_blank(text_of(one)) for one in documents]
    return [False] * len(documents)


def _looked_up(texts: Texts, n_queries: int, index: Index, matcher: Matcher) -> LookedUp:
    """Look the retrieved documents up in an index, each once; of very many, as many as it takes."""

    def known_by(document: DocumentLike, where: str) -> tuple[str | None, str]:
        if isinstance(matcher, SpanMatcher):
            return str(span_of(document, matcher.source_key, where)), ""
        return _id_and_text(document, texts.are_ids)

    of_id: defaultdict[str | None, list[str]] = defaultdict(list)
    for position, one in enumerate(index.documents):
        identity, text = known_by(one, f"index[{position}]")
        if identity and len(of_id[identity]) < _COMPARED:
            of_id[identity].append(text)
    documents = dict.fromkeys(
        known_by(one, f"predicted_docs[{query}]")
        for query in range(n_queries)
        for one in texts.documents(query)
    )
    known = [(identity, text) for identity, text in documents if identity or not is_blank(text)]
    rest = [(text, of_id.get(identity, [])) for identity, text in known
            if not text or text not in index._texts]  # fmt: skip
    missing = [text for (text, _), agrees in zip(rest, _agree(rest), strict=True) if not agrees]
    there = len(known) - len(missing)
    missing = [one for one in missing if not is_blank(one)]
    # Enough of them, evenly spread, to know that the index is not foreign; else the others as well.
    enough = math.ceil(diagnosis.LEAST * len(known)) - there
    step = max(1, len(missing) // max(_MANY, enough + enough // 4))
    rest_of = [one for place, one in enumerate(missing) if place % step]
    found, alike = _parts_and_alike(missing[::step], index)
    if rest_of and found + alike < enough:
        more = _parts_and_alike(rest_of, index)
        found, alike, rest_of = found + more[0], alike + more[1], []
    return LookedUp(len(known), there + found, alike, len(documents) - len(known), len(rest_of))


def _id_and_text(document: DocumentLike, are_ids: bool) -> tuple[str | None, str]:
    """Return the id and the text of a document."""
    if isinstance(document, str):
        return (document, "") if are_ids else (None, document)
    return id_of(document) or None, text_of(document)


def _agree(pairs: Sequence[tuple[str, list[str]]]) -> list[bool]:
    """Tell which texts agree with a text of the chunks of the same id, as far as both have texts.

    They do if the letters of one are within those of the other, or half of its words, in runs.
    """
    agrees = []
    for document, others in pairs:
        letters = _letters(document) if others else ""
        agrees.append(any(letters in one or one in letters for one in map(_letters, others)))
    rest = [place for place, (_, others) in enumerate(pairs) if others and not agrees[place]]
    if rest:
        lists = [[pairs[place][0]] for place in rest], [pairs[place][1] for place in rest]
        with muted():
            matcher = CoverageMatcher(_MOST_WORDS, guard="off", direction="either")
            matches = matcher.match(QuerySet.from_lists(*lists))
        for row in matches.item[matches.similarity >= _MOST_WORDS].tolist():
            agrees[rest[row]] = True
    return agrees


def _parts_and_alike(texts: Sequence[str], index: Index) -> tuple[int, int]:
    """Return how many texts are a part of a chunk, and how many others are alike.

    Texts are read by words or letters, as coverage reads them for a ground truth.
    """
    readings: dict[bool, tuple[CoverageMatcher, list[str]]] = {}
    for one in texts:
        matcher = _BY_WORDS._for_ground_truth([one])
        readings.setdefault(matcher.tokenizer is letter_tokens, (matcher, []))[1].append(one)
    of_chunks, there, alike = list(index._texts), 0, 0
    for matcher, several in readings.values():
        chunks, tokens, _ = index._tokens(matcher.tokenizer, several)
        run = np.minimum(tokens.sizes, matcher.min_run)
        for length in np.unique(run[run > 0]).tolist():
            chosen = np.flatnonzero(run == length)
            wanted = tokens.take(chosen)
            found = whereabouts(wanted, chunks, length, _COMPARED)
            near = found.has_whole | (wanted.counted(found.held) >= _MOST_WORDS * wanted.sizes)
            for at, is_near, likely in zip(
                chosen.tolist(), near.tolist(), found.likely, strict=True
            ):
                letters = _letters(several[at])
                is_part = any(letters in _letters(of_chunks[chunk]) for chunk in likely)
                there, alike = there + is_part, alike + (is_near and not is_part)
    return there, alike


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
