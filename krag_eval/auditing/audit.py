"""The audit of a ground truth before it is trusted: what in it looks wrong, and in which rows."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from krag_eval.comparison.gates import Gate, GateReport
from krag_eval.core import (
    N_,
    Advice,
    CoverageMatcher,
    DocumentLike,
    ExactTextMatcher,
    Fix,
    InvalidInput,
    Language,
    Location,
    Place,
    QuerySet,
    SaidOtherwise,
    Shown,
    Tokenizer,
    TokenNumbers,
    Units,
    _,
    boolean,
    fitted,
    id_of,
    is_blank,
    letter_tokens,
    ngettext,
    one_of,
    page_of,
    replacing,
    single,
    spoken,
    text_of,
    whole,
)
from krag_eval.core.language import language
from krag_eval.core.matching.coverage import Read, with_gaps_to_close, without_gaps
from krag_eval.core.matching.pieces import OnceEach, SharedRuns, holders, shared_runs
from krag_eval.core.matching.tokenizers import tokenizer_name
from krag_eval.loading.dataset import Dataset, named_by
from krag_eval.loading.loading import ChunkSource, chunks_in, dataset_in

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.loading.loading import Source

_INDEX, _CHUNK_TEXTS = "an index", "texts in the index"
_TEXTS, _QUESTIONS = "texts of the ground truth", "questions"


#: Shares from which a tier begins, and what it is called.
TIERS = (
    (1.0, N_("100 %")),
    (0.75, N_("75 to 99 %")),
    (0.5, N_("50 to 74 %")),
    (0.25, N_("25 to 49 %")),
    (1e-9, N_("1 to 24 %")),
    (0.0, N_("0 %")),
)
_QUOTED = 0.5
_FORMAT, _FORMAT_VERSION = "krag_eval.audit", 1
# Columns of a text in a table, and of words in it; how many chunks or queries are named.
_WIDTH, _OF_WORDS = 100, 40
_NAMED = 5
# Chunks that a run of words is looked at in, where very many have it.
_COMPARED = 10

_TEXT = ExactTextMatcher()
_QUESTION = ExactTextMatcher(case_sensitive=False, fold_whitespace=True)


class FoundAt(NamedTuple):
    """A place in the ground truth that a finding is about.

    Attributes:
        query: The label of the query.
        position: Its position in the data set, from 0.
        item: The number of the item within the query, from 1; ``None`` if it is about the query.
        text: The beginning of the document, or of the question; its id where there is no text.
        concerns: What it is about: the chunks, the other queries, the numbers.
    """

    query: str | int
    position: int
    item: int | None
    text: str
    concerns: str


@dataclass(frozen=True)
class Finding:
    """What was looked for, and where it was found.

    Attributes:
        name: Its name, the same in every version.
        said: What was found, and how often.
        fix: What to do about it.
        rows: Where, in the order of queries and items.
    """

    name: str
    said: str
    fix: str
    rows: tuple[FoundAt, ...] = ()


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """What an audit of the ground truth found; made by :func:`audit`.

    Attributes:
        findings: Name -> what was found, also where that is nothing.
        unchecked: Name -> what would have to be there to look for it.
        counts: How many ``"queries"``, ground-truth ``"items"`` and, where there is an index,
            ``"chunks"`` were looked at.
        settings: What the findings depend on: ``"k"``, ``"min_run"``, ``"tokenizer"``.
        shares: ``"quoted"`` and ``"overlap"`` -> per tier, the number of questions; see
            :attr:`tiers`.
        language: What its texts are written in, ``"en"`` or ``"ko"``.
    """

    findings: Mapping[str, Finding]
    unchecked: Mapping[str, str]
    counts: Mapping[str, int]
    settings: Mapping[str, str | int]
    shares: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    language: Language = "en"

    @property
    def table(self) -> pd.DataFrame:
        """One row per place.

        Columns: ``finding``, then the fields of its rows: ``query``, ``position``,
        ``item``, ``text``, ``concerns``. ``item`` is ``<NA>`` where a finding is about the query.
        """
        import pandas as pd

        columns = ["finding", *FoundAt._fields]
        rows = [(one.name, *row) for one in self.findings.values() for row in one.rows]
        return pd.DataFrame(rows, columns=columns).astype({"position": "int64", "item": "Int64"})

    @property
    def tiers(self) -> pd.DataFrame:
        """How near questions are to the words of their ground truth: questions per tier of a share.

        Columns: ``quoted``, by the share of a question's words that stand in its ground truth in
        runs of ``min_run`` words, just so (none of a shorter question do); ``overlap``, by the
        share of its distinct words that occur there at all (of words, also where coverage reads
        letters). Of several documents, the one with the largest share counts. Empty where there are
        no questions.
        """
        import pandas as pd

        tiers = pd.Index([name for _, name in TIERS], name="share")
        return pd.DataFrame({key: dict(of) for key, of in self.shares.items()}, index=tiers)

    def check(self, fail_on: str | Iterable[str]) -> GateReport:
        """Check that findings have no rows, as in ``audit.check("twins").raise_if_failed()``.

        Args:
            fail_on: Names of findings: one, several, or several in a text with commas between.

        Raises:
            InvalidInput: If there is no such finding, or it was not looked for.

        >>> print(audit(Dataset(["q"], [["a", "b"]]), k=1).check("more_items_than_k"))
        failed: more_items_than_k: 1 of 1 query has more ground-truth items than k = 1
        """
        names = checked_names(fail_on, frozenset(self.unchecked.values()))
        findings = [self.findings[name] for name in names]
        return GateReport(
            tuple(Gate(one.name, not one.rows, f"{one.name}: {one.said}") for one in findings),
            language=self.language,
        )

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Save the audit; :meth:`from_json` reads it back.

        The file appears complete or not at all.

        Raises:
            OSError: If it cannot be written; the error names it.
        """
        with replacing(path) as temporary:
            temporary.write_text(as_text(self), "utf-8")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Audit:
        """Read an audit that :meth:`to_json` saved.

        Raises:
            FileNotFoundError: If there is no such file.
            DatasetError: If it is something else.
        """
        try:
            return _read_back(json.loads(Path(path).read_bytes().decode("utf-8")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise Place(os.fsdecode(path)).error(
                f"not a saved audit of krag_eval: {error}", "save it by Audit.to_json"
            ) from error


def counted(n: int, what: str) -> str:
    """Return a number and what it counts, in the singular where it is one."""
    return {
        "queries": ngettext("{n} query", "{n} queries", n),
        "questions": ngettext("{n} question", "{n} questions", n),
        "questions with ground truth": ngettext(
            "{n} question with ground truth", "{n} questions with ground truth", n
        ),
        "documents": ngettext("{n} ground-truth document", "{n} ground-truth documents", n),
        "items": ngettext("{n} ground-truth item", "{n} ground-truth items", n),
        "chunks": ngettext("{n} chunk", "{n} chunks", n),
        "words": ngettext("{n} word", "{n} words", n),
        "characters": ngettext("{n} character", "{n} characters", n),
    }[what].format(n=n)


def checked_names(fail_on: str | Iterable[str], absent: Collection[str] = ()) -> list[str]:
    """Return the names of findings, each once.

    Args:
        fail_on: One, several, or several in a text with commas between.
        absent: What is not there, as :data:`CHECKS` have it.

    Raises:
        InvalidInput: If one is unknown or there is none, or needs what is not there.

    >>> checked_names("twins, dangling")
    ['twins', 'dangling']
    """
    names = names_in(fail_on, tuple(CHECKS))
    for name in names:
        missing = _missing(name, absent)
        if missing:
            fix: Fix = "leave it out"
            if missing == _INDEX:
                fix = Advice("name the chunks by {}, or leave it out", index=...)
            raise InvalidInput("fail_on", f": {name!r} cannot be checked without {missing}", fix)
    return names


def names_in(fail_on: str | Iterable[str], allowed: Sequence[str]) -> list[str]:
    """Return names among those allowed, each once: one, several, or several with commas between.

    Raises:
        InvalidType: If one is not text.
        InvalidInput: If one is unknown, or there is none.

    >>> names_in(["gone, changed", "gone"], ("changed", "gone"))
    ['gone', 'changed']
    """
    given = [fail_on] if isinstance(fail_on, str) else [*fail_on]
    several = [
        part for one in given for part in (one.split(",") if isinstance(one, str) else [one])
    ]
    names = [one.strip() if isinstance(one, str) else one for one in several]
    for name in names:
        one_of("fail_on", name, allowed)
    if not names:
        raise InvalidInput("fail_on", f"must name at least one of {', '.join(allowed)}; got none")
    return list(dict.fromkeys(names))


def _missing(name: str, absent: Collection[str]) -> str:
    """Return the first thing that a finding needs and that is not there; ``""`` if all is."""
    return next((need for need in CHECKS[name].needs if need in absent), "")


@spoken
def audit(
    dataset: Source,
    index: ChunkSource | None = None,
    *,
    k: int = 10,
    min_run: int | None = None,
    tokenizer: str | Tokenizer = "auto",
    ids: bool | None = None,
    language: Language | None = None,
) -> Audit:
    """Look for what is wrong with a ground truth before it is trusted. Nothing is changed.

    ========================  ===================================================================
    name                      what it finds
    ========================  ===================================================================
    ``dangling``              documents that are not in the index
    ``twins``                 documents whose text stands in the index under several ids, or, where
                              texts are compared, more than once
    ``versions``              documents of which the index holds another version: a chunk that has
                              most of the words and says another number, or no where it says yes
    ``duplicate_questions``   questions asked more than once; case and white space do not count
    ``indistinguishable``     those of them whose ground truth differs while all their tags agree
    ``short``                 documents of fewer words than a run
    ``no_words``              documents without words
    ``longer_than_chunks``    documents of more words than the longest chunk of the index
    ``quoted``                questions of which half of the words or more stand in one of their
                              documents in runs, just so, if they are no shorter than a run;
                              :attr:`Audit.tiers` has all tiers
    ``more_items_than_k``     queries with more different items than ``k``
    ========================  ===================================================================

    A document of the ground truth is looked up in the index by its id where both sides have ids,
    and otherwise by its text. Texts are equal as the matcher ``"text"`` has it: after Unicode NFC
    normalisation, case and white space included. A passage that is no chunk itself is in the index
    all the same if its chunks together hold most of its words, in runs, as
    ``CoverageMatcher(union=True)`` counts them; chunks that say otherwise hold nothing of it. Each
    query is read as that matcher reads it, so for "words" read letters where its ground truth is
    Korean, say. Items of grade 0 are no ground truth.

    Args:
        dataset: A :class:`~krag_eval.datasets.Dataset`, or what :func:`load_dataset` makes one of:
            a path, a list of dicts, a data frame, ….
        index: The chunks that a retriever can return, all of them: texts, dicts, documents of
            LangChain, LlamaIndex or Haystack in any iterable, which is gone through once; the path
            of a file of JSON lines, each a text or an object with ``"text"`` or
            ``"page_content"`` and perhaps ``"id"``; or a data frame with such columns. Without
            it, what needs it is left out.
        k: The number of documents that are to hold all items of a query.
        min_run: Consecutive words that count as shared; as in :class:`CoverageMatcher`.
        tokenizer: How a text becomes words; as there.
        ids: ``True``: every document has an id to be looked up by, and a plain text is one.
            ``False``: texts count, whatever ids there are. If not given, plain texts are ids where
            the data set says so (TREC, BEIR, AutoRAG and others are data sets of ids), or where the
            index has them as ids, as ``load_dataset(…, corpus=index)`` takes them.
        language: Of the sentences, ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else
            ``"en"``.

    Raises:
        InvalidInput: If an option is not among those allowed, the index is empty, ``ids=True`` and
            a document has none, or the tokenizer finds nothing in a text that has letters or
            digits.
        InvalidType: If the data set or the index is nothing of the kind.
        DatasetError: If a file cannot be read.

    >>> dataset = Dataset(["q1", "q2"], [["Closed on Mondays."], ["Open from nine."]],
    ...                   questions=["When is it closed?", "When does it open?"])
    >>> found = audit(dataset, ["Open from nine.", "Open from nine.", "Tickets: 5 euros."])
    >>> found.table[["finding", "position", "text", "concerns"]]
        finding  position                text                             concerns
    0  dangling         0  Closed on Mondays.         the chunks hold 0 of 3 words
    1     twins         1     Open from nine.    chunks 0, 1 (counted from 0)
    2     short         0  Closed on Mondays.                              3 words
    3     short         1     Open from nine.                              3 words
    """
    matcher = CoverageMatcher(min_run=min_run, tokenizer=tokenizer)
    if ids is not None:
        boolean("ids", ids)
    k, data = whole("k", k, 1), dataset_in(dataset)
    if ids is None and data.defaults.get("matcher") == "id":
        ids = True
    return _audited(_Seen(data, Chunks(index, ids), matcher, ids, k))


def _audited(seen: _Seen) -> Audit:
    """Look for everything that can be looked for."""
    unchecked = {name: need for name in CHECKS if (need := _missing(name, seen.absent))}
    known = {
        "k": seen.k,
        "run": _in_units({one.counts: one.matcher.min_run for one in seen.readers}),
        "longest": _in_units({one.counts: n for one, n in seen.readers.items()}),
        "words": _(" or ").join(_(one.counts) for one in seen.readers),
    }
    n_queries, matcher = seen.dataset.n_queries, seen.matcher
    if len(seen.readers) == 1:
        [matcher] = (one.matcher for one in seen.readers)
    totals = {
        "documents": len(seen.goldens),
        "queries": n_queries,
        "questions": n_queries,
        "questions with ground truth": len(seen.near),
    }
    findings = {}
    for name, check in CHECKS.items():
        if name not in unchecked:
            rows = tuple(sorted(check.find(seen), key=lambda row: row.position))
            total = counted(totals[check.counted], check.counted)
            said = check.said(len(rows)).format(n=len(rows), total=total, **known)
            is_rewritten = name == "dangling" and bool(rows) and seen.is_rewritten()
            findings[name] = Finding(name, said, _(_REWRITTEN if is_rewritten else check.fix), rows)
    n_chunks = {"chunks": len(seen.chunks.texts)} if seen.chunks.texts else {}
    return Audit(
        findings,
        unchecked,
        {"queries": n_queries, "items": len({one[:2] for one in seen.goldens}), **n_chunks},
        {
            "k": seen.k,
            "min_run": matcher.min_run,
            "tokenizer": tokenizer_name(matcher.tokenizer),
        },
        {} if "quoted" in unchecked else _tiers(seen.near),
        language(),
    )


def _in_units(sizes: Mapping[str, int]) -> str:
    """Say how many words or characters something has, as each reader counts them."""
    return _(" or ").join(counted(n, what) for what, n in sizes.items())


def _tiers(near: Sequence[_Near]) -> dict[str, dict[str, int]]:
    shares = {
        "quoted": [one.quoted / one.words for one in near],
        "overlap": [one.overlap for one in near],
    }
    found = {
        key: Counter(next(tier for least, tier in TIERS if share >= least) for share in of)
        for key, of in shares.items()
    }
    return {key: {tier: of[tier] for _, tier in TIERS} for key, of in found.items()}


# What an audit looks at


def _read_id(document: DocumentLike, ids: bool | None, at: Location) -> str | None:
    """Return what a document is looked up by; ``None`` if that is its text."""
    if ids is False or (ids is None and isinstance(document, str)):
        return None
    identity = id_of(document)
    if not identity and ids:
        raise at.error("has no id", Advice("give it one, or look texts up by {}", ids=False))
    return identity or None


def _read_text(document: DocumentLike, ids: bool | None) -> str:
    """Return the text of a document; a plain id has none."""
    return "" if ids and isinstance(document, str) else text_of(document)


class Chunks:
    """The index, gone through once.

    Attributes:
        ids: The id of each chunk, ``None`` where it has none.
        texts: The text of each chunk, empty where only its id is known.
        by_id: Id -> the first chunk that has it.
        by_text: Text, normalised -> the chunks that have it.
    """

    def __init__(self, index: Any, ids: bool | None, name: str = "index") -> None:
        chunks = [] if index is None else chunks_in(index, name)
        self.ids = [_read_id(one, ids, Location(name, at)) for at, one in enumerate(chunks)]
        self.texts = [_read_text(one, ids) for one in chunks]
        numbered_ids = reversed([*enumerate(self.ids)])
        self.by_id = {one: at for at, one in numbered_ids if one is not None}
        self.by_text: dict[Hashable, list[int]] = defaultdict(list)
        for at, text in enumerate(self.texts):
            if (key := _TEXT.key(text)) is not None:
                self.by_text[key].append(at)

    def same_as(self, text: str) -> list[int]:
        """Return the chunks that have a text."""
        return self.by_text.get(_TEXT.key(text), [])

    def named(self, chunks: Sequence[int]) -> str:
        """Name chunks by their ids, or by their places."""
        shown = [self.ids[at] or str(at) for at in chunks[:_NAMED]]
        more = ", …" if len(chunks) > _NAMED else ""
        by_place = all(self.ids[at] is None for at in chunks[:_NAMED])
        named = fitted(", ".join(shown), _WIDTH) + more
        return (_("chunks {} (counted from 0)") if by_place else _("chunks {}")).format(named)


class _Golden(NamedTuple):
    """A document of the ground truth.

    Attributes:
        query: Position of its query.
        item: Number of its item within the query, from 1.
        identity: The id it is looked up by; ``None`` if that is its text.
        text: Its text, empty where only its id is known.
    """

    query: int
    item: int
    identity: str | None
    text: str

    @property
    def has_text(self) -> bool:
        """Whether its text is known, be it blank."""
        return self.identity is None or not is_blank(self.text)


class _Near(NamedTuple):
    """How near a question is to one of its documents: the one that shares most words in runs."""

    golden: _Golden
    words: int
    quoted: int
    overlap: float


class Held(NamedTuple):
    """What the chunks hold of a text.

    Attributes:
        tokens: How many of its words they hold together, but for those that say otherwise.
        by: The chunks that hold enough of it alone, each with the share that it holds.
        otherwise: Those that would, and say otherwise.
        uncounted: All that say otherwise, however much they hold.
        pieces: All others, where no chunk alone holds enough and together they do.
    """

    tokens: int
    by: dict[str, float]
    otherwise: dict[str, float]
    uncounted: dict[str, float]
    pieces: dict[str, float]


class Reader:
    """Texts as coverage reads them for some queries: by words, or by letters.

    Attributes:
        matcher: How they are read.
        counts: What it makes of a text.
        unit: The number of each text.
        tokens: The tokens of the texts.
    """

    def __init__(self, matcher: CoverageMatcher, texts: Iterable[str]) -> None:
        self.matcher = matcher
        by_letters = tokenizer_name(matcher.tokenizer) in ("character", "letters")
        self.counts = N_("characters") if by_letters else N_("words")
        self.unit = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        self._token: dict[str, int] = defaultdict(count().__next__)
        self.tokens = matcher.numbered([*self.unit], self._token)
        self._ends = np.cumsum(self.tokens.sizes)

    def size(self, text: str) -> int:
        """Return how many words a text has."""
        return int(self.tokens.sizes[self.unit[text]])

    def is_short(self, text: str) -> bool:
        """Return whether a text has fewer words than a run."""
        return self.size(text) < self.matcher.min_run

    def words(self, text: str) -> list[int]:
        """Return the words of a text, by number."""
        end = self._ends[self.unit[text]]
        words: list[int] = self.tokens.flat[end - self.size(text) : end].tolist()
        return words

    def vocabulary(self, text: str) -> set[int]:
        """Return the distinct words of a text, by number."""
        return {*self.words(text)}

    def shared(
        self,
        truths: Collection[Sequence[str]],
        documents: Collection[Sequence[str]],
    ) -> tuple[SharedRuns, Read]:
        """Return what texts share with documents, query by query, and all texts as read."""
        alternatives, predicted = (
            np.array([self.unit[text] for text in chain(*side)], np.int64)
            for side in (truths, documents)
        )
        units = Units(
            values=[*self.unit],
            blank=np.zeros(len(self.unit), np.bool_),
            alternatives=alternatives,
            item_sizes=np.ones(len(alternatives), np.int64),
            identity=alternatives,
            predicted=predicted,
            n_items=np.array([*map(len, truths)], np.int64),
            n_predicted=np.array([*map(len, documents)], np.int64),
        )
        by_letters = self.matcher.tokenizer is letter_tokens
        units = without_gaps(units, np.full(len(truths), by_letters))
        others = self.matcher.numbered(units.values[len(self.unit) :], self._token)
        tokens = self.tokens.followed_by(others)
        read, run = self._read(tokens, units.values), self.matcher.min_run
        return shared_runs(tokens, units, run, self.matcher._seams(read, is_ranked=False)), read

    def held(
        self, truths: Mapping[int, Sequence[str]], chunks: Sequence[str]
    ) -> dict[tuple[int, str], Held]:
        """Return what the chunks hold of texts, by query and text.

        Args:
            truths: Query -> all its ground-truth texts.
            chunks: All chunks, each once.
        """
        likely = self._likely(truths, chunks)
        found = self._held(self.matcher, truths, likely)
        cut = {at for (at, text), one in found.items() if one.tokens < self.size(text)}
        if cut:  # perhaps pieces of it that are shorter than a run
            likely |= self._at_edges({at: truths[at] for at in cut}, chunks, likely)
            found |= self._held(self.matcher, {at: truths[at] for at in cut}, likely)
        # Whether pieces contradict takes longer, and matters where no chunk holds enough alone.
        least = self.matcher.threshold
        doubtful = {at for (at, text), one in found.items() if not one.by
                    and one.tokens >= least * self.size(text)}  # fmt: skip
        together = copy.copy(self.matcher)
        together.union = True
        return found | self._held(together, {at: truths[at] for at in doubtful}, likely)

    def _held(
        self,
        matcher: CoverageMatcher,
        truths: Mapping[int, Sequence[str]],
        documents: Mapping[int, Sequence[str]],
    ) -> dict[tuple[int, str], Held]:
        """Return what documents hold of texts, by query and text."""
        shown = [documents[query] for query in truths]
        runs, read = self.shared(truths.values(), shown)
        similarity, without = matcher.shares(runs, read)
        assert without is not None  # the guard is on
        queries, texts, chunks = [*truths], [*self.unit], [*chain(*shown)]
        members = zip(runs.truths.query().tolist(), runs.truths.unit().tolist(), strict=True)
        places = [(queries[query], texts[unit]) for query, unit in members]
        together = runs.held_together(without).tolist()
        found = {place: Held(n, {}, {}, {}, {}) for place, n in zip(places, together, strict=True)}
        near = np.flatnonzero(similarity >= matcher.threshold)
        others = without.pairs[without.share >= matcher.threshold]
        pieces = np.flatnonzero(similarity * matcher.union)
        sides = {"by": near, "otherwise": others, "uncounted": without.pairs, "pieces": pieces}
        similarity[without.pairs] = without.share
        for side, pairs in sides.items():
            row, at = runs.documents.each(runs.document[pairs])
            rows = (runs.truth[pairs][row], at, similarity[pairs][row])
            for truth, chunk, share in zip(*(one.tolist() for one in rows), strict=True):
                getattr(found[places[truth]], side)[chunks[chunk]] = share
        edges = zip(*(one.tolist() for one in runs.edges), strict=True)
        for truth, _since, rank, start, stop in edges:
            query, text = places[truth]
            of_text, chunk = found[query, text], documents[query][rank - 1]
            if matcher.union and chunk not in of_text.uncounted:
                of_text.pieces.setdefault(chunk, (stop - start) / self.size(text))
        return found

    def _likely(
        self, truths: Mapping[int, Sequence[str]], chunks: Sequence[str]
    ) -> dict[int, list[str]]:
        """Return for each query the chunks to compare its texts with."""
        gaps, asking = with_gaps_to_close(self.matcher.tokenizer, chunks, truths)
        texts = [*dict.fromkeys(chain(*truths.values()))]
        wanted, run = self._taken(texts), self.matcher.min_run
        likely = holders(wanted, self._taken(chunks), run, _COMPARED)
        if asking:
            broken = self._taken(chunks[at] for at in gaps)
            broken = broken.followed_by(self.matcher.numbered([*gaps.values()], self._token))
            # Whatever number a query makes of a gap: here all digits are the same.
            for one in (wanted, broken):
                one.flat[np.isin(one.flat, broken.amounts)] = len(self._token)
            at = [*gaps, *gaps]
            for several, places in zip(
                likely, holders(wanted, broken, run, _COMPARED), strict=True
            ):
                several += [at[place] for place in places]
        of_text = dict(zip(texts, likely, strict=True))
        return {
            query: [chunks[at] for at in sorted({*chain(*(of_text[text] for text in of))})]
            for query, of in truths.items()
        }

    def _at_edges(
        self,
        truths: Mapping[int, Sequence[str]],
        chunks: Sequence[str],
        likely: Mapping[int, Sequence[str]],
    ) -> dict[int, list[str]]:
        """Return for each query the chunks to compare its texts with, and those that go on there.

        Args:
            truths: Query -> all its ground-truth texts.
            chunks: All chunks, each once.
            likely: Query -> the chunks that have runs of its texts.
        """
        gaps, asking = with_gaps_to_close(self.matcher.tokenizer, chunks, truths)
        seams = self.matcher._seams(self._read(self.tokens, [*self.unit]))
        of_chunks = np.array([self.unit[one] for one in chunks], np.int64)
        documents = OnceEach.among(np.array([len(chunks)]), of_chunks, len(self.tokens))
        texts = dict.fromkeys(chain(*truths.values()))
        units = seams.holders([self.unit[text] for text in texts], documents)
        others, names = [chunks[at] for at in gaps], [*self.unit]
        of_text = {text: [names[unit] for unit in several]
                   for text, several in zip(texts, units, strict=True)}  # fmt: skip
        return {
            query: [*dict.fromkeys(chain(likely[query], *(of_text[text] for text in of),
                                         others if query in asking else ()))]
            for query, of in truths.items()
        }  # fmt: skip

    def _read(self, tokens: TokenNumbers, texts: Sequence[str]) -> Read:
        """Return texts as they are compared, given their tokens."""
        n, by_letters = len(tokens), self.matcher.tokenizer is letter_tokens
        run, letters = np.full(n, self.matcher.min_run), np.full(n, by_letters)
        return Read(tokens, run, None, letters, [*self._token], texts)

    def _taken(self, texts: Iterable[str]) -> TokenNumbers:
        return self.tokens.take(np.array([self.unit[one] for one in texts], np.int64))


def readers_of(
    matcher: CoverageMatcher,
    truths: Mapping[int, Sequence[str]],
    chunks: Sequence[str],
    questions: Sequence[str] = (),
) -> dict[int, Reader]:
    """Return what reads the texts of each query that has ground truth with a text.

    Args:
        matcher: How they are read, by words or letters as the ground truth of a query asks for.
        truths: Query -> the texts of its ground truth.
        chunks: The texts of the chunks.
        questions: The questions of all queries, if they are read as well.
    """
    chosen: dict[bool, tuple[CoverageMatcher, list[int]]] = {}
    for query, texts in truths.items():
        reading = matcher._for_ground_truth(texts)
        by_letters = reading.tokenizer is letter_tokens
        chosen.setdefault(by_letters, (reading, []))[1].append(query)
    found: dict[int, Reader] = {}
    for reading, several in chosen.values():
        own = chain.from_iterable(truths[query] for query in several)
        asked = [questions[query] for query in several] if questions else []
        found |= dict.fromkeys(several, Reader(reading, chain(own, asked, chunks)))
    return found


def held_in(
    chunks: Iterable[str], truths: Mapping[int, Sequence[str]], readers: Mapping[int, Reader]
) -> dict[tuple[int, str], Held]:
    """Return what chunks hold of texts, by query and text, as each query is read."""
    texts, found = [*dict.fromkeys(chunks)], dict[tuple[int, str], Held]()
    for reader in dict.fromkeys(readers.values()):
        own = {at: of for at, of in truths.items() if readers[at] is reader}
        found |= reader.held(own, texts)
    return found


class _Seen:
    """All that the checks look at, read once.

    Attributes:
        goldens: The documents of the ground truth, interchangeable ones each.
        truths: Query -> the texts of its ground truth.
        absent: What is not there, as :data:`CHECKS` name it.
        reader: Query with such texts -> what reads them.
        readers: What reads texts -> how many words the longest chunk has.
        repeated: The queries that ask the same, in groups of two or more.
        items: The different items of each query, by their documents.
        near: How near each question is to its ground truth, where both have words.
    """

    def __init__(
        self,
        dataset: Dataset,
        chunks: Chunks,
        matcher: CoverageMatcher,
        ids: bool | None,
        k: int,
    ) -> None:
        self.dataset, self.chunks, self.matcher, self.k = dataset, chunks, matcher, k
        queries = QuerySet.from_lists(dataset.actual, [[]] * dataset.n_queries, dataset.queries)
        self.labels, self.questions = queries.labels, dataset.questions or ()
        goldens = [*self._goldens(queries, ids)]
        self.goldens = [one for one, counts in goldens if counts]
        # As with coverage, what was judged irrelevant has its say in how a query is read.
        self.truths: dict[int, list[str]] = defaultdict(list)
        for one, _counts in goldens:
            if one.has_text:
                self.truths[one.query].append(one.text)
        there = {
            _INDEX: chunks.texts,
            _CHUNK_TEXTS: any(chunks.texts),
            _TEXTS: any(one.has_text for one in self.goldens),
            _QUESTIONS: self.questions,
        }
        self.absent = {need for need, one in there.items() if not one}
        self.reader = readers_of(matcher, self.truths, chunks.texts, self.questions)
        self.readers = {one: max(map(one.size, chunks.texts), default=0)
                        for one in dict.fromkeys(self.reader.values())}  # fmt: skip
        groups = defaultdict(list)
        for query, asked in enumerate(self.questions):
            groups[_QUESTION.key(asked)].append(query)
        groups.pop(None, None)
        self.repeated = [group for group in groups.values() if len(group) > 1]
        self.items = self._items()
        near = chain.from_iterable(map(self._near, self.readers)) if self.questions else ()
        self.near = sorted(near, key=lambda one: one.golden.query)

    def _goldens(self, queries: QuerySet, ids: bool | None) -> Iterator[tuple[_Golden, bool]]:
        """Yield the documents, and whether they count; one without a text has that of its chunk."""
        key, chunks = self.dataset.defaults.get("grade_key"), self.chunks
        truths = chain.from_iterable(map(single, self.dataset.actual))
        named = set() if ids is False else named_by(truths, chunks.by_id)
        counts = iter(queries.given_grades(key) != 0 if key else [True] * len(queries.item_query))
        for query, items in enumerate(queries.alternatives()):
            for number, documents in enumerate(items):
                counted = bool(next(counts))
                at = Location("actual_docs", query, f"[{number}]")
                for one in documents:
                    as_id = True if isinstance(one, str) and one in named else ids
                    identity = _read_id(one, as_id, at) if counted else id_of(one)
                    if identity and chunks.texts and not chunks.by_id:
                        identity = None  # the index has none to compare with
                    text = _read_text(one, as_id)
                    if is_blank(text) and identity in chunks.by_id:
                        text = chunks.texts[chunks.by_id[identity]]
                    yield _Golden(query, number + 1, identity, text), counted

    def _items(self) -> list[frozenset[frozenset[Hashable]]]:
        items: list[dict[int, set[Hashable]]] = [defaultdict(set) for _ in self.labels]
        for query, item, identity, text in self.goldens:
            items[query][item].add(("id", identity) if identity else ("text", _TEXT.key(text)))
        return [frozenset(map(frozenset, one.values())) for one in items]

    def _near(self, reader: Reader) -> Iterator[_Near]:
        """Yield how near the questions are that a reader reads."""
        goldens: dict[int, list[_Golden]] = defaultdict(list)
        for one in self.goldens:
            if one.has_text and self.reader[one.query] is reader and reader.size(one.text):
                goldens[one.query].append(one)
        asked = [query for query in goldens if reader.size(self.questions[query])]
        if not asked:
            return
        questions = [self.questions[query] for query in asked]
        texts = [[one.text for one in goldens[query]] for query in asked]
        runs, _ = reader.shared([[question] for question in questions], texts)
        pair, place = runs.documents.each(runs.document)
        held = np.zeros(sum(map(len, texts)), np.int64)
        held[place] = runs.held[pair]
        words = reader
        if reader.matcher is not self.matcher and reader.counts != "words":
            # Most letters are in any text: what they have in common are words.
            words = Reader(CoverageMatcher(tokenizer="words"), chain(questions, *texts))
        quoted = np.split(held, np.cumsum([*map(len, texts)])[:-1])
        for query, question, several, runs_in in zip(asked, questions, texts, quoted, strict=True):
            if reader.is_short(question):
                runs_in[:] = 0  # a word or two stand anywhere
            best, known = int(runs_in.argmax()), words.vocabulary(question)
            overlap = max(len(known & words.vocabulary(text)) for text in several)
            yield _Near(goldens[query][best], reader.size(question), int(runs_in[best]),
                        overlap / len(known))  # fmt: skip

    @cached_property
    def held(self) -> dict[tuple[int, str], Held]:
        """What the chunks hold of the ground truth, by query and text."""
        return held_in(self.chunks.texts, self.truths, self.reader)

    @cached_property
    def wanted(self) -> dict[int, set[str]]:
        """The chunks that hold ground truth of each query."""
        wanted: dict[int, set[str]] = defaultdict(set)
        for one in self.goldens:
            if one.has_text:
                wanted[one.query].update(self.held[one.query, one.text].by)
        return wanted

    def is_rewritten(self) -> bool:
        """Return whether the ground truth may be in words of its own: no text stands verbatim."""
        texts = [one for one in self.goldens if one.has_text and not one.identity]
        held = (self.held[one.query, one.text] for one in texts)
        return len(texts) >= _FEW and all(max(one.by.values(), default=0.0) < 1.0 for one in held)

    def lacks(self, golden: _Golden) -> bool:
        """Return whether a document has words, and the chunks do not hold its text."""
        size = self.reader[golden.query].size(golden.text)
        held = self.held[golden.query, golden.text]
        is_lost = size > 0 and not held.by and held.tokens / size < self.matcher.threshold
        return is_lost and not self.chunks.same_as(golden.text)

    def otherwise(self, golden: _Golden) -> str:
        """Say which unwanted chunks hold a document nearly, and what they say; "" if none does."""
        others = {*self.held[golden.query, golden.text].otherwise} - self.wanted[golden.query]
        chunks = sorted({at for text in others for at in self.chunks.same_as(text)})
        if not chunks:
            return ""
        ask = partial(self.reader[golden.query].matcher.said_otherwise, golden.text)
        said = dict.fromkeys(ask(self.chunks.texts[at]) for at in chunks[:_NAMED])
        what = [_different(one) for one in said if one]
        told = _("{chunks} say otherwise: {what}")
        return told.format(chunks=self.chunks.named(chunks), what="; ".join(what))

    def row(self, golden: _Golden, concerns: str) -> FoundAt:
        """Return a finding about a document."""
        shown = golden.text if golden.has_text else golden.identity or ""
        return FoundAt(self.labels[golden.query], golden.query, golden.item,
                       fitted(shown, _WIDTH), concerns)  # fmt: skip

    def row_of_query(self, query: int, concerns: str, item: int | None = None) -> FoundAt:
        """Return a finding about a question."""
        shown = self.questions[query] if self.questions else str(self.labels[query])
        return FoundAt(self.labels[query], query, item, fitted(shown, _WIDTH), concerns)


# Against the index


def _dangling(seen: _Seen) -> Iterator[FoundAt]:
    for golden in seen.goldens:
        if golden.identity:
            if golden.identity not in seen.chunks.by_id:
                yield seen.row(golden, _where_else(golden, seen.chunks))
        elif seen.lacks(golden):
            reader = seen.reader[golden.query]
            held = seen.held[golden.query, golden.text]
            told = _("the chunks hold {share} of {size} {words}").format(
                share=held.tokens, size=reader.size(golden.text), words=_(reader.counts)
            )
            if held.uncounted:
                told += _(", not counting those that say otherwise")
            yield seen.row(golden, "; ".join(filter(None, [told, seen.otherwise(golden)])))


def _where_else(golden: _Golden, chunks: Chunks) -> str:
    """Say of an id that no chunk has whether one has the text."""
    told = _("no chunk has the id {}").format(fitted(golden.identity or "", _WIDTH))
    if golden.has_text and (others := chunks.same_as(golden.text)):
        told += _("; its text is that of {}").format(chunks.named(others))
    return told


def _twins(seen: _Seen) -> Iterator[FoundAt]:
    chunks, own = seen.chunks, defaultdict(set)
    for golden in seen.goldens:
        own[golden[:2]].add(golden.identity)
    for golden in seen.goldens:
        if not golden.identity:
            if len(same := chunks.same_as(golden.text)) > 1:
                yield seen.row(golden, chunks.named(same))
        elif golden.identity in chunks.by_id:  # what is retrieved under that id
            same = chunks.same_as(chunks.texts[chunks.by_id[golden.identity]] or golden.text)
            others = (at for at in same if chunks.ids[at] not in own[golden[:2]])
            if first := [*islice(others, _NAMED + 1)]:
                told = _("the same text as {}").format(chunks.named(first))
                yield seen.row(golden, told)


def _versions(seen: _Seen) -> Iterator[FoundAt]:
    for golden in seen.goldens:
        if golden.has_text and (told := seen.otherwise(golden)):
            lacks = seen.lacks(golden)
            there = _("the index lacks the passage") if lacks else _("the index has both")
            yield seen.row(golden, f"{told}; {there}")


def _different(said: SaidOtherwise) -> str:
    """Say what a passage and a chunk say differently."""
    ours, theirs = (fitted(one, _OF_WORDS) for one in said[1:])
    if not theirs:
        told = _("{ours} here, not there")
    elif said.kind == "number":
        told = _("{ours} here, {theirs} there")
    else:  # words, which would run into those around
        told = _("“{ours}” here, “{theirs}” there")
    return told.format(ours=ours, theirs=theirs)


def _of_size(seen: _Seen, sizes: Mapping[Reader, range]) -> Iterator[FoundAt]:
    for golden in seen.goldens:
        if golden.has_text:
            reader = seen.reader[golden.query]
            if (size := reader.size(golden.text)) in sizes[reader]:
                yield seen.row(golden, counted(size, reader.counts))


def _short(seen: _Seen) -> Iterator[FoundAt]:
    return _of_size(seen, {one: range(1, one.matcher.min_run) for one in seen.readers})


def _no_words(seen: _Seen) -> Iterator[FoundAt]:
    return _of_size(seen, dict.fromkeys(seen.readers, range(1)))


def _longer_than_chunks(seen: _Seen) -> Iterator[FoundAt]:
    return _of_size(seen, {one: range(n + 1, sys.maxsize) for one, n in seen.readers.items()})


# Among the queries


def _duplicate_questions(seen: _Seen) -> Iterator[FoundAt]:
    for group in seen.repeated:
        same = len({seen.items[query] for query in group}) == 1
        truth = _(", with the same ground truth") if same else _(", with other ground truth")
        for query in group:
            others = (other for other in group if other != query)
            yield seen.row_of_query(query, _asked_at(others) + truth)


def _indistinguishable(seen: _Seen) -> Iterator[FoundAt]:
    tags = [*zip(*seen.dataset.tags.values(), strict=True)] or [()] * seen.dataset.n_queries
    alike = defaultdict(list)
    for number, group in enumerate(seen.repeated):
        for query in group:
            alike[number, tags[query]].append(query)
    for several in alike.values():
        # Once for each ground truth: to pass over those that have it takes long enough.
        rivals = {truth: [*islice((one for one in several if seen.items[one] != truth), _NAMED + 1)]
                  for truth in {seen.items[query] for query in several}}  # fmt: skip
        for query in several:
            if others := rivals[seen.items[query]]:
                yield seen.row_of_query(query, _asked_at(others))


def _asked_at(queries: Iterable[int]) -> str:
    first = [*islice(queries, _NAMED + 1)]
    named = ", ".join(map(str, first[:_NAMED])) + (", …" if len(first) > _NAMED else "")
    return _("also asked at position {}").format(named)


def _more_items_than_k(seen: _Seen) -> Iterator[FoundAt]:
    for query, items in enumerate(seen.items):
        if len(items) > seen.k:
            yield seen.row_of_query(query, _("{n} items").format(n=len(items)))


def _quoted(seen: _Seen) -> Iterator[FoundAt]:
    for golden, size, held, _overlap in seen.near:
        if held >= _QUOTED * size:
            words = _(seen.reader[golden.query].counts)
            told = _("{held} of {size} {words} in runs").format(held=held, size=size, words=words)
            yield seen.row_of_query(golden.query, told, golden.item)


class Check(NamedTuple):
    """Something to look for.

    Attributes:
        find: A function that yields where it is, in any order of the queries.
        needs: What has to be there for it.
        counted: Of what so many are counted.
        said: A function of how many were found that says so.
        fix: What to do about it.
    """

    find: Callable[[_Seen], Iterable[FoundAt]]
    needs: tuple[str, ...]
    counted: str
    said: Callable[[int], str]
    fix: str


# Texts of which one would stand in the index word for word if they were copies.
_FEW = 5
_REWRITTEN = N_(
    "Not one stands in the index word for word, so the ground truth may be rewritten: then try "
    "coverage(guard=numbers), which looks at numbers and negations alone, or a judge; otherwise "
    "correct them, or add to the index what they come from"
)

#: What is looked for, in this order.
CHECKS: Mapping[str, Check] = {
    "dangling": Check(
        _dangling,
        (_INDEX,),
        "documents",
        lambda n: ngettext(
            "{n} of {total} is not in the index", "{n} of {total} are not in the index", n
        ),
        N_("Correct them, or add to the index what they come from; no retriever can find them"),
    ),
    "twins": Check(
        _twins,
        (_INDEX, _CHUNK_TEXTS),
        "documents",
        lambda n: ngettext(
            "{n} of {total} stands in the index more than once",
            "{n} of {total} stand in the index more than once",
            n,
        ),
        N_(
            'List the copies as interchangeable (AnyOf; in a file, "any_of"), or index each '
            "text once"
        ),
    ),
    "versions": Check(
        _versions,
        (_INDEX, _CHUNK_TEXTS, _TEXTS),
        "documents",
        lambda n: ngettext(
            "{n} of {total} has another version in the index, which says otherwise",
            "{n} of {total} have other versions in the index, which say otherwise",
            n,
        ),
        N_(
            "Say in the question which version is meant, or look at these apart by a tag "
            "(docs/rechunking.md); by relevance alone no retriever can choose"
        ),
    ),
    "duplicate_questions": Check(
        _duplicate_questions,
        (_QUESTIONS,),
        "questions",
        lambda n: ngettext(
            "{n} of {total} is asked more than once",
            "{n} of {total} are asked more than once",
            n,
        ),
        N_(
            "Keep one of each, with all that it should find; repeated ones weigh more in every "
            "average"
        ),
    ),
    "indistinguishable": Check(
        _indistinguishable,
        (_QUESTIONS,),
        "questions",
        lambda n: ngettext(
            "{n} of {total} is asked again with other ground truth, and no tag tells them apart",
            "{n} of {total} are asked again with other ground truth, and no tag tells them apart",
            n,
        ),
        N_(
            "Join their ground truth, or say in the question what is meant; no retriever can "
            "be right about all of them"
        ),
    ),
    "short": Check(
        _short,
        (_TEXTS,),
        "documents",
        lambda n: ngettext(
            "{n} of {total} is shorter than a run of {run}",
            "{n} of {total} are shorter than a run of {run}",
            n,
        ),
        N_(
            "Take in what stands around them; so short a text must occur as a whole, and may "
            "occur in many places"
        ),
    ),
    "no_words": Check(
        _no_words,
        (_TEXTS,),
        "documents",
        lambda n: ngettext("{n} of {total} has no {words}", "{n} of {total} have no {words}", n),
        N_("Put in the text that is meant, or remove them; nothing matches them by text"),
    ),
    "longer_than_chunks": Check(
        _longer_than_chunks,
        (_INDEX, _CHUNK_TEXTS, _TEXTS),
        "documents",
        lambda n: ngettext(
            "{n} of {total} is longer than the longest chunk ({longest})",
            "{n} of {total} are longer than the longest chunk ({longest})",
            n,
        ),
        N_(
            "Split them into several items, or let chunks count together, as coverage with "
            "union does; no chunk holds such a text alone"
        ),
    ),
    "quoted": Check(
        _quoted,
        (_QUESTIONS, _TEXTS),
        "questions with ground truth",
        lambda n: ngettext(
            "{n} of {total} shares half of the {words} or more with it, in runs",
            "{n} of {total} share half of the {words} or more with it, in runs",
            n,
        ),
        N_(
            "Have them reworded by somebody who does not see the text; word search finds them "
            "too easily"
        ),
    ),
    "more_items_than_k": Check(
        _more_items_than_k,
        (),
        "queries",
        lambda n: ngettext(
            "{n} of {total} has more ground-truth items than k = {k}",
            "{n} of {total} have more ground-truth items than k = {k}",
            n,
        ),
        N_(
            "Take a larger k, or read the recall of these apart; k documents of one item each "
            "cannot reach 1"
        ),
    ),
}


def as_text(audit: Audit) -> str:
    """Return what :meth:`Audit.to_json` writes."""
    content = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "counts": dict(audit.counts),
        "settings": dict(audit.settings),
        "findings": [
            {"name": one.name, "said": one.said, "fix": one.fix,
             "rows": [row._asdict() for row in one.rows]}
            for one in audit.findings.values()
        ],
        "unchecked": dict(audit.unchecked),
        "shares": {key: dict(of) for key, of in audit.shares.items()},
        **({} if audit.language == "en" else {"language": audit.language}),
    }  # fmt: skip
    # A label may hold half of a character, which only an escape can spell.
    return json.dumps(content, indent=1) + "\n"


def _read_back(content: Any) -> Audit:
    if content["format"] != _FORMAT or content["format_version"] != _FORMAT_VERSION:
        raise ValueError(f"it is in another format than version {_FORMAT_VERSION} of {_FORMAT}")
    findings = [
        Finding(one["name"], one["said"], one["fix"], tuple(FoundAt(**row) for row in one["rows"]))
        for one in content["findings"]
    ]
    made = Audit(
        {one.name: one for one in findings},
        content["unchecked"],
        content["counts"],
        content["settings"],
        content["shares"],
        content.get("language", "en"),
    )
    if {*made.findings, *made.unchecked} != {*CHECKS}:
        raise ValueError("its findings are not those there are")
    page_of(made).text()  # whatever is of another kind shows here
    return made
