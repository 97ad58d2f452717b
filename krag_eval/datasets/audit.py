"""The audit of a ground truth before it is trusted: what in it looks wrong, and in which rows."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from krag_eval._doors import Shown, page_of
from krag_eval._io import replacing
from krag_eval._language import (
    N_,
    Language,
    _,
    language,
    ngettext,
    spoken,
)
from krag_eval._reading import kind_of
from krag_eval._text import fitted
from krag_eval.datasets.dataset import Dataset
from krag_eval.datasets.loading import dataset_in, read_chunks
from krag_eval.datasets.table import is_frame
from krag_eval.documents import (
    DocumentLike,
    Location,
    QuerySet,
    check_chunks,
    id_of,
    is_blank,
    text_of,
)
from krag_eval.errors import (
    Advice,
    Fix,
    InvalidInput,
    InvalidType,
    Place,
    boolean,
    one_of,
    whole,
)
from krag_eval.matching.coverage import CoverageMatcher, with_gaps_to_close, without_gaps
from krag_eval.matching.exact import ExactTextMatcher
from krag_eval.matching.joins import BoolArray, Units
from krag_eval.matching.numbering import TokenNumbers, numbered
from krag_eval.matching.pieces import SharedRuns, held_anywhere, shared_runs
from krag_eval.matching.tokenizers import Tokenizer, letter_tokens, tokenizer_name
from krag_eval.statistics.gates import Gate, GateReport

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.datasets.loading import Source

_INDEX, _CHUNK_TEXTS = "an index", "texts in the index"
_TEXTS, _QUESTIONS = "texts of the ground truth", "questions"


class Check(NamedTuple):
    """Something to look for.

    Attributes:
        needs: What has to be there for it.
        counted: Of what so many are counted.
        said: A function of how many were found that says so.
        fix: What to do about it.
    """

    needs: tuple[str, ...]
    counted: str
    said: Callable[[int], str]
    fix: str


#: What is looked for, in this order.
CHECKS: Mapping[str, Check] = {
    "dangling": Check(
        (_INDEX,),
        "documents",
        lambda n: ngettext(
            "{n} of {total} is not in the index", "{n} of {total} are not in the index", n
        ),
        N_("Correct them, or add to the index what they come from; no retriever can find them"),
    ),
    "twins": Check(
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
    "duplicate_questions": Check(
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
        (_TEXTS,),
        "documents",
        lambda n: ngettext("{n} of {total} has no {words}", "{n} of {total} have no {words}", n),
        N_("Put in the text that is meant, or remove them; nothing matches them by text"),
    ),
    "longer_than_chunks": Check(
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
# Columns of a text in a table, and how many chunks or queries are named.
_WIDTH = 100
_NAMED = 5
# Words of chunks that are looked through at a time.
_PART = 1 << 20

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
        runs of ``min_run`` words, just so; ``overlap``, by the share of its distinct words that
        occur there at all (of words, also where coverage reads letters). Of several documents, the
        one with the largest share counts. Empty where there are no questions.
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
    given = [fail_on] if isinstance(fail_on, str) else [*fail_on]
    several = [
        part for one in given for part in (one.split(",") if isinstance(one, str) else [one])
    ]
    names = [one.strip() if isinstance(one, str) else one for one in several]
    for name in names:
        missing = _missing(one_of("fail_on", name, tuple(CHECKS)), absent)
        if missing:
            fix: Fix = "leave it out"
            if missing == _INDEX:
                fix = Advice("name the chunks by {}, or leave it out", index=...)
            raise InvalidInput("fail_on", f": {name!r} cannot be checked without {missing}", fix)
    if not names:
        raise InvalidInput("fail_on", f"must name a finding: {', '.join(CHECKS)}; got none")
    return list(dict.fromkeys(names))


def _missing(name: str, absent: Collection[str]) -> str:
    """Return the first thing that a finding needs and that is not there; ``""`` if all is."""
    return next((need for need in CHECKS[name].needs if need in absent), "")


@spoken
def audit(
    dataset: Source,
    index: str | os.PathLike[str] | Iterable[DocumentLike] | None = None,
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
    ``duplicate_questions``   questions asked more than once; case and white space do not count
    ``indistinguishable``     those of them whose ground truth differs while all their tags agree
    ``short``                 documents of fewer words than a run
    ``no_words``              documents without words
    ``longer_than_chunks``    documents of more words than the longest chunk of the index
    ``quoted``                questions of which half of the words or more stand in one of their
                              documents in runs, just so; :attr:`Audit.tiers` has all tiers
    ``more_items_than_k``     queries with more different items than ``k``
    ========================  ===================================================================

    A document of the ground truth is looked up in the index by its id where both sides have ids,
    and otherwise by its text. Texts are equal as the matcher ``"text"`` has it: after Unicode NFC
    normalisation, case and white space included. A passage that is no chunk itself is in the index
    all the same if its chunks together hold most of its words, in runs, as
    ``CoverageMatcher(union=True)`` counts them. Each query is read as that matcher reads it, so for
    "words" read letters where its ground truth is Korean, say. Items of grade 0 are no ground
    truth.

    Args:
        dataset: A :class:`~krag_eval.datasets.Dataset`, or what :func:`load_dataset` makes one of:
            a path, a list of dicts, a data frame, ….
        index: The chunks that a retriever can return, all of them: texts, dicts, documents of
            LangChain, LlamaIndex or Haystack in any iterable, which is gone through once; or the
            path of a file of JSON lines, each a text or an object with ``"text"`` or
            ``"page_content"`` and perhaps ``"id"``. Without it, what needs it is left out.
        k: The number of documents that are to hold all items of a query.
        min_run: Consecutive words that count as shared; as in :class:`CoverageMatcher`.
        tokenizer: How a text becomes words; as there.
        ids: ``True``: every document has an id to be looked up by, and a plain text is one.
            ``False``: texts count, whatever ids there are. If not given, plain texts are ids where
            the data set says so (TREC, BEIR, AutoRAG and others are data sets of ids).
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
    whole("k", k, 1)
    matcher = CoverageMatcher(min_run=min_run, tokenizer=tokenizer)
    if ids is not None:
        boolean("ids", ids)
    data = dataset_in(dataset)
    if ids is None and data.defaults.get("matcher") == "id":
        ids = True
    chunks = None if index is None else _Chunks.of(index, ids)
    looked_at = _LookedAt(data, chunks, matcher, ids)
    return looked_at.audited(int(k))


def _read_id(document: DocumentLike, ids: bool | None, at: Location) -> str | None:
    """Return what a document is looked up by; ``None`` if that is its text."""
    if ids is False or (ids is None and isinstance(document, str)):
        return None
    identity = id_of(document)
    if not identity and ids:
        fix = Advice("give it one, or look texts up by {}", ids=False)
        raise InvalidInput(at.argument, "has no id", fix, query=at.query, within=at.within)
    return identity or None


def _read_text(document: DocumentLike, ids: bool | None) -> str:
    """Return the text of a document; a plain id has none."""
    return "" if ids and isinstance(document, str) else text_of(document)


@dataclass(frozen=True)
class _Chunks:
    """The index.

    Attributes:
        ids: The id of each chunk, ``None`` where it has none.
        texts: The text of each chunk, empty where only its id is known.
    """

    ids: list[str | None]
    texts: list[str]

    @classmethod
    def of(cls, index: Any, ids: bool | None) -> _Chunks:
        """Go through the chunks once, and check each."""
        if isinstance(index, str | os.PathLike):
            index = read_chunks(index)
        if isinstance(index, Mapping) or is_frame(index) or not isinstance(index, Iterable):
            raise InvalidType(
                "index",
                "must be the path of a file of JSON lines, or a list or another iterable of "
                f"documents, got {kind_of(index)}",
                "of a table, pass the column with the texts",
            )
        chunks = check_chunks(index, "index")
        if not chunks:
            raise InvalidInput("index", "must hold at least one chunk, got none")
        return cls(
            [_read_id(one, ids, Location("index", at)) for at, one in enumerate(chunks)],
            [_read_text(one, ids) for one in chunks],
        )

    @cached_property
    def by_id(self) -> dict[str, int]:
        """Id -> the first chunk that has it."""
        return {one: at for at, one in reversed([*enumerate(self.ids)]) if one is not None}

    @cached_property
    def by_text(self) -> dict[Hashable, list[int]]:
        """Text, normalised -> the chunks that have it."""
        found = defaultdict(list)
        for at, one in enumerate(self.texts):
            if (key := _TEXT.key(one)) is not None:
                found[key].append(at)
        return found

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

    @property
    def key(self) -> Hashable:
        """What makes it the same as another one."""
        return ("id", self.identity) if self.identity else ("text", _TEXT.key(self.text))


class _Nearness(NamedTuple):
    """How near a question is to one of its documents: the one that shares most words in runs."""

    golden: _Golden
    words: int
    quoted: int
    overlap: float


@dataclass(frozen=True, eq=False)
class _Reader:
    """Texts as coverage reads them for some queries: by words, or by letters.

    Attributes:
        matcher: How they are read.
        unit: The number of each text.
        token: The number of each token.
        tokens: The tokens of the texts.
    """

    matcher: CoverageMatcher
    unit: Mapping[str, int]
    token: dict[str, int]
    tokens: TokenNumbers

    @classmethod
    def of(cls, matcher: CoverageMatcher, texts: Iterable[str]) -> _Reader:
        """Read texts, each once."""
        unit = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        token: dict[str, int] = defaultdict(count().__next__)
        tokens = numbered(matcher.tokenizer, [*unit], token)
        return cls(matcher, unit, dict(token), tokens)

    @property
    def counts(self) -> str:
        """What it makes of a text."""
        letters = ("character", "letters")
        by_letters = tokenizer_name(self.matcher.tokenizer) in letters
        return N_("characters") if by_letters else N_("words")

    def size(self, text: str) -> int:
        """Return how many words a text has."""
        return int(self.tokens.sizes[self.unit[text]])

    def vocabulary(self, text: str) -> set[int]:
        """Return the distinct words of a text, by number."""
        return {*self.tokens.flat[self._slices[self.unit[text]]].tolist()}

    @cached_property
    def _slices(self) -> list[slice]:
        return self.tokens.slices()

    def shared(
        self, truths: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]
    ) -> SharedRuns:
        """Return what texts share with documents, query by query, as coverage compares them."""
        alternatives, predicted = (
            np.array([self.unit[text] for texts in side for text in texts], np.int64)
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
        others = units.values[len(self.unit) :]
        token = defaultdict(count(len(self.token)).__next__, self.token) if others else {}
        tokens = self.tokens.followed_by(numbered(self.matcher.tokenizer, others, token))
        return shared_runs(tokens, units, self.matcher.min_run)

    def held(
        self, truths: Mapping[int, Sequence[str]], missing: Set[str], chunks: Sequence[str]
    ) -> dict[tuple[int, str], int]:
        """Return how many words of texts the chunks hold together, by query and text.

        Args:
            truths: Query -> all its ground-truth texts.
            missing: The texts to look up.
            chunks: All chunks, each once.
        """
        gaps, asking = with_gaps_to_close(self.matcher.tokenizer, chunks, truths)
        places = [(query, text) for query, of in truths.items() for text in of if text in missing]
        alike = self._held_alike([text for query, text in places if query not in asking], chunks)
        held = {(query, text): alike[text] for query, text in places if query not in asking}
        if asking:
            # Chunks that a query reads in a way of its own are compared for each query.
            several = {query: truths[query] for query in sorted(asking)}
            others = [text for at, text in enumerate(chunks) if at not in gaps]
            alike = self._held_alike(chain(*several.values()), others)
            apart = self._held_apart(several, [chunks[at] for at in sorted(gaps)])
            held |= {(query, text): alike[text] | of for (query, text), of in apart.items()}
        return {place: int(of_text.sum()) for place, of_text in held.items()}

    def _held_apart(
        self, truths: Mapping[int, Sequence[str]], chunks: Sequence[str]
    ) -> dict[tuple[int, str], BoolArray]:
        """Return which tokens of each query's texts the chunks hold, as the query reads them."""
        likely = self._likely([*dict.fromkeys(chain(*truths.values()))], chunks)
        documents = [
            [chunks[at] for at in sorted({at for text in texts for at in likely[text]})]
            for texts in truths.values()
        ]
        runs = self.shared([*truths.values()], documents)
        queries, texts, units = [*truths], [*self.unit], runs.truths.unit()
        held = np.split(runs.is_held, np.cumsum(runs.sizes[units])[:-1])
        members = zip(runs.truths.query().tolist(), units.tolist(), held, strict=True)
        return {(queries[query], texts[unit]): of_text for query, unit, of_text in members}

    def _likely(self, texts: Sequence[str], chunks: Sequence[str]) -> dict[str, list[int]]:
        """Return the chunks that may have a run of each text, whatever numbers are made of gaps.

        That is, those that have one if all digits are the same.
        """
        tokens = self.tokens.take(np.array([self.unit[one] for one in chain(texts, chunks)]))
        is_digit = np.isin(tokens.flat, tokens.amounts)
        tokens = TokenNumbers(np.where(is_digit, tokens.n_distinct, tokens.flat), tokens.sizes)
        places = np.arange(len(tokens))
        units = Units.of_block(tokens, places[: len(texts)], places[len(texts) :])
        runs = shared_runs(tokens, units, self.matcher.min_run)
        likely: dict[str, list[int]] = {text: [] for text in texts}
        at = runs.documents.unit(runs.document) - len(texts)
        for text, chunk in zip(runs.truths.unit(runs.truth).tolist(), at.tolist(), strict=True):
            likely[texts[text]].append(chunk)
        return likely

    def _held_alike(self, texts: Iterable[str], chunks: Sequence[str]) -> dict[str, BoolArray]:
        """Return which tokens of texts the chunks hold, where every query reads these alike."""
        distinct = [*dict.fromkeys(texts)]
        if not distinct:
            return {}
        tokens = self.tokens.take(np.array([self.unit[text] for text in distinct], np.int64))
        run = np.minimum(tokens.sizes, self.matcher.min_run)
        of_token, held = np.repeat(run, tokens.sizes), np.zeros(len(tokens.flat), np.bool_)
        for length in np.unique(run[run > 0]).tolist():
            wanted = tokens.take(np.flatnonzero(run == length))
            held[of_token == length] = held_anywhere(wanted, self._parts(chunks), length)
        return dict(zip(distinct, np.split(held, np.cumsum(tokens.sizes)[:-1]), strict=True))

    def _parts(self, chunks: Sequence[str]) -> Iterator[TokenNumbers]:
        """Yield the words of chunks, so many at a time."""
        units = np.array([self.unit[text] for text in chunks], np.int64)
        part = np.cumsum(self.tokens.sizes[units]) // _PART
        for texts in np.split(units, np.flatnonzero(np.diff(part)) + 1):
            yield self.tokens.take(texts)


class _LookedAt:
    """All that an audit looks at, read once."""

    def __init__(
        self,
        dataset: Dataset,
        chunks: _Chunks | None,
        matcher: CoverageMatcher,
        ids: bool | None,
    ) -> None:
        self.dataset, self.matcher = dataset, matcher
        self.chunks = chunks or _Chunks([], [])
        queries = QuerySet.from_lists(dataset.actual, [[]] * dataset.n_queries, dataset.queries)
        self.labels = queries.labels
        goldens = [*self._goldens(queries, ids)]
        self.goldens = [one for one, counts in goldens if counts]
        # As with coverage, what was judged irrelevant has its say in how a query is read.
        self.truths: dict[int, list[str]] = defaultdict(list)
        for one, _counts in goldens:
            if one.has_text:
                self.truths[one.query].append(one.text)
        self.absent = {
            need
            for need, there in {
                _INDEX: chunks,
                _CHUNK_TEXTS: any(self.chunks.texts),
                _TEXTS: any(one.has_text for one in self.goldens),
                _QUESTIONS: dataset.questions,
            }.items()
            if not there
        }
        self.reader = self._readers()

    def _goldens(self, queries: QuerySet, ids: bool | None) -> Iterator[tuple[_Golden, bool]]:
        """Yield the documents listed, interchangeable ones each, and whether they count."""
        key = self.dataset.defaults.get("grade_key")
        counts = iter(queries.given_grades(key) != 0 if key else [True] * len(queries.item_query))
        for query, items in enumerate(queries.alternatives()):
            for number, documents in enumerate(items):
                counted = bool(next(counts))
                at = Location("actual_docs", query, f"[{number}]")
                for one in documents:
                    identity = _read_id(one, ids, at) if counted else id_of(one)
                    yield self._golden(query, number + 1, one, identity, ids), counted

    def _golden(
        self, query: int, item: int, document: DocumentLike, identity: str | None, ids: bool | None
    ) -> _Golden:
        """Return a document; if it has no text, with that of the chunk of its id."""
        if identity and self.chunks.texts and not self.chunks.by_id:
            identity = None  # the index has none to compare with
        text = _read_text(document, ids)
        if is_blank(text) and identity in self.chunks.by_id:
            text = self.chunks.texts[self.chunks.by_id[identity]]
        return _Golden(query, item, identity, text)

    def _readers(self) -> dict[int, _Reader]:
        """Return what reads the texts of each query that has ground truth with a text."""
        chosen: dict[bool, tuple[CoverageMatcher, list[int]]] = {}
        for query, texts in self.truths.items():
            matcher = self.matcher._for_ground_truth(texts)
            by_letters = matcher.tokenizer is letter_tokens
            chosen.setdefault(by_letters, (matcher, []))[1].append(query)
        questions = self.dataset.questions
        readers: dict[int, _Reader] = {}
        for matcher, several in chosen.values():
            own = chain.from_iterable(self.truths[query] for query in several)
            asked = [questions[query] for query in several] if questions else []
            reader = _Reader.of(matcher, chain(own, asked, self.chunks.texts))
            readers |= dict.fromkeys(several, reader)
        return readers

    def audited(self, k: int) -> Audit:
        """Look for everything that can be looked for."""
        unchecked = {name: need for name in CHECKS if (need := _missing(name, self.absent))}
        readers = [*self._longest]
        known = {
            "k": k,
            "run": self._in_units({one.counts: one.matcher.min_run for one in readers}),
            "longest": self._in_units({one.counts: n for one, n in self._longest.items()}),
            "words": _(" or ").join(_(one.counts) for one in readers),
        }
        matcher = readers[0].matcher if len(readers) == 1 else self.matcher
        tokenizer = tokenizer_name(matcher.tokenizer)
        counts = {
            "queries": self.dataset.n_queries,
            "items": len({one[:2] for one in self.goldens}),
            "chunks": len(self.chunks.texts),
        }
        totals = {
            "documents": len(self.goldens),
            "queries": self.dataset.n_queries,
            "questions": self.dataset.n_queries,
            "questions with ground truth": len(self._nearness),
        }
        return Audit(
            {
                name: _finding(name, tuple(getattr(self, f"_{name}")(k)), totals, known)
                for name in CHECKS
                if name not in unchecked
            },
            unchecked,
            {what: n for what, n in counts.items() if n or what != "chunks"},
            {"k": k, "min_run": matcher.min_run, "tokenizer": tokenizer},
            {} if "quoted" in unchecked else self._tiers(),
            language(),
        )

    def _in_units(self, sizes: Mapping[str, int]) -> str:
        """Say how many words or characters something has, as each reader counts them."""
        return _(" or ").join(counted(n, what) for what, n in sizes.items())

    def _reader(self, golden: _Golden) -> _Reader:
        return self.reader[golden.query]

    def _size(self, golden: _Golden) -> int:
        return self._reader(golden).size(golden.text)

    @cached_property
    def _longest(self) -> dict[_Reader, int]:
        """How many words the longest chunk has, as each reader counts them."""
        readers = dict.fromkeys(self.reader.values())
        return {one: max(map(one.size, self.chunks.texts), default=0) for one in readers}

    def _row(self, golden: _Golden, concerns: str) -> FoundAt:
        shown = golden.text if golden.has_text else golden.identity or ""
        return FoundAt(self.labels[golden.query], golden.query, golden.item,
                       fitted(shown, _WIDTH), concerns)  # fmt: skip

    def _row_of_query(self, query: int, concerns: str) -> FoundAt:
        label = self.labels[query]
        shown = self.dataset.questions[query] if self.dataset.questions else str(label)
        return FoundAt(label, query, None, fitted(shown, _WIDTH), concerns)

    # Against the index

    def _dangling(self, _k: int) -> Iterator[FoundAt]:
        missing = {
            one.text
            for one in self.goldens
            if not one.identity and _TEXT.key(one.text) not in self.chunks.by_text
        }
        held = self._held_together(missing)
        for golden in self.goldens:
            if golden.identity:
                if golden.identity not in self.chunks.by_id:
                    yield self._row(golden, self._where_else(golden))
            elif golden.text in missing and (size := self._size(golden)):
                share = held[golden.query, golden.text]
                if share / size < self.matcher.threshold:
                    words = _(self._reader(golden).counts)
                    told = _("the chunks hold {share} of {size} {words}")
                    yield self._row(golden, told.format(share=share, size=size, words=words))

    def _where_else(self, golden: _Golden) -> str:
        """Say of an id that no chunk has whether one has the text."""
        others = self.chunks.by_text.get(_TEXT.key(golden.text), []) if golden.has_text else []
        told = _("no chunk has the id {}").format(fitted(golden.identity or "", _WIDTH))
        if others:
            told += _("; its text is that of {}").format(self.chunks.named(others))
        return told

    def _held_together(self, missing: Set[str]) -> dict[tuple[int, str], int]:
        """Return how many of its words the chunks hold, by query and text."""
        held: dict[tuple[int, str], int] = {}
        chunks = [*dict.fromkeys(self.chunks.texts)]
        for reader in self._longest:
            own = [query for query, one in self.reader.items() if one is reader]
            truths = {
                one: self.truths[one] for one in own if not missing.isdisjoint(self.truths[one])
            }
            held |= reader.held(truths, missing, chunks)
        return held

    def _twins(self, _k: int) -> Iterator[FoundAt]:
        own = defaultdict(set)
        for golden in self.goldens:
            own[golden[:2]].add(golden.identity)
        for golden in self.goldens:
            text = golden.text
            if golden.identity in self.chunks.by_id:  # what is retrieved under that id
                text = self.chunks.texts[self.chunks.by_id[golden.identity]] or text
            same = self.chunks.by_text.get(_TEXT.key(text), [])
            if not golden.identity:
                if len(same) > 1:
                    yield self._row(golden, self.chunks.named(same))
            elif golden.identity in self.chunks.by_id:
                others = (at for at in same if self.chunks.ids[at] not in own[golden[:2]])
                if first := [*islice(others, _NAMED + 1)]:
                    told = _("the same text as {}").format(self.chunks.named(first))
                    yield self._row(golden, told)

    def _short(self, _k: int) -> Iterator[FoundAt]:
        return self._of_size(lambda one: range(1, one.matcher.min_run))

    def _no_words(self, _k: int) -> Iterator[FoundAt]:
        return self._of_size(lambda one: range(1))

    def _longer_than_chunks(self, _k: int) -> Iterator[FoundAt]:
        return self._of_size(lambda one: range(self._longest[one] + 1, sys.maxsize))

    def _of_size(self, sizes: Callable[[_Reader], range]) -> Iterator[FoundAt]:
        ranges = {one: sizes(one) for one in self._longest}
        for golden in self.goldens:
            if golden.has_text:
                size, reader = self._size(golden), self._reader(golden)
                if size in ranges[reader]:
                    yield self._row(golden, counted(size, reader.counts))

    # Among the queries

    @cached_property
    def _repeated(self) -> list[list[int]]:
        """The queries that ask the same, in groups of two or more."""
        groups = defaultdict(list)
        for query, asked in enumerate(self.dataset.questions or ()):
            groups[_QUESTION.key(asked)].append(query)
        groups.pop(None, None)
        return [group for group in groups.values() if len(group) > 1]

    @cached_property
    def _truths(self) -> list[frozenset[frozenset[Hashable]]]:
        """The different items of each query, by their documents."""
        items = defaultdict(set)
        for golden in self.goldens:
            items[golden[:2]].add(golden.key)
        truths: list[set[frozenset[Hashable]]] = [set() for _ in self.labels]
        for (query, _item), keys in items.items():
            truths[query].add(frozenset(keys))
        return [*map(frozenset, truths)]

    def _duplicate_questions(self, _k: int) -> Iterator[FoundAt]:
        found = {}
        for group in self._repeated:
            same = len({self._truths[query] for query in group}) == 1
            truth = _(", with the same ground truth") if same else _(", with other ground truth")
            for query in group:
                others = (other for other in group if other != query)
                found[query] = self._row_of_query(query, self._asked_at(others) + truth)
        return (row for _, row in sorted(found.items()))

    def _indistinguishable(self, _k: int) -> Iterator[FoundAt]:
        tags = [*zip(*self.dataset.tags.values(), strict=True)] or [()] * self.dataset.n_queries
        alike = defaultdict(list)
        for number, group in enumerate(self._repeated):
            for query in group:
                alike[number, tags[query]].append(query)
        found = {}
        for group in alike.values():
            # Once for each ground truth: to pass over those that have it takes long enough.
            rivals: dict[Hashable, list[int]] = {}
            for query in group:
                truth = self._truths[query]
                if truth not in rivals:
                    others = (other for other in group if self._truths[other] != truth)
                    rivals[truth] = [*islice(others, _NAMED + 1)]
                if rivals[truth]:
                    found[query] = self._row_of_query(query, self._asked_at(rivals[truth]))
        return (row for _, row in sorted(found.items()))

    def _asked_at(self, queries: Iterable[int]) -> str:
        first = [*islice(queries, _NAMED + 1)]
        named = ", ".join(map(str, first[:_NAMED])) + (", …" if len(first) > _NAMED else "")
        return _("also asked at position {}").format(named)

    def _more_items_than_k(self, k: int) -> Iterator[FoundAt]:
        for query, items in enumerate(self._truths):
            if len(items) > k:
                yield self._row_of_query(query, _("{n} items").format(n=len(items)))

    # Questions against their ground truth

    @cached_property
    def _nearness(self) -> list[_Nearness]:
        """How near each question is to its ground truth, where both have words."""
        if not self.dataset.questions:
            return []
        near = [one for reader in self._longest for one in self._near(reader)]
        return sorted(near, key=lambda one: one.golden.query)

    def _near(self, reader: _Reader) -> Iterator[_Nearness]:
        """Yield how near the questions are that a reader reads."""
        goldens: dict[int, list[_Golden]] = defaultdict(list)
        for one in self.goldens:
            if one.has_text and self._reader(one) is reader and self._size(one):
                goldens[one.query].append(one)
        questions = self.dataset.questions or ()
        asked = {query: questions[query] for query in goldens if reader.size(questions[query])}
        if not asked:
            return
        texts = [[one.text for one in goldens[query]] for query in asked]
        runs = reader.shared([[question] for question in asked.values()], texts)
        pair, place = runs.documents.each(runs.document)
        held = np.zeros(sum(map(len, texts)), np.int64)
        held[place] = runs.held[pair]
        words = self._words(reader, chain(asked.values(), *texts))
        ends = np.cumsum([*map(len, texts)])
        for (query, question), end, several in zip(
            asked.items(), ends.tolist(), texts, strict=True
        ):
            quoted = held[end - len(several) : end].tolist()
            best = quoted.index(max(quoted))
            known = words.vocabulary(question)
            overlap = max(len(known & words.vocabulary(text)) for text in several)
            size = reader.size(question)
            yield _Nearness(goldens[query][best], size, quoted[best], overlap / len(known))

    def _words(self, reader: _Reader, texts: Iterable[str]) -> _Reader:
        """Return what takes texts apart for words in common: most letters are in any text."""
        if reader.matcher is self.matcher or reader.counts == "words":
            return reader
        return _Reader.of(CoverageMatcher(tokenizer="words"), texts)

    def _quoted(self, _k: int) -> Iterator[FoundAt]:
        for golden, size, held, _overlap in self._nearness:
            if held >= _QUOTED * size:
                words = _(self._reader(golden).counts)
                told = _("{held} of {size} {words} in runs")
                told = told.format(held=held, size=size, words=words)
                yield self._row_of_query(golden.query, told)._replace(item=golden.item)

    def _tiers(self) -> dict[str, dict[str, int]]:
        quoted = Counter(_tier(one.quoted / one.words) for one in self._nearness)
        overlap = Counter(_tier(one.overlap) for one in self._nearness)
        return {"quoted": {tier: quoted[tier] for _, tier in TIERS},
                "overlap": {tier: overlap[tier] for _, tier in TIERS}}  # fmt: skip


def _tier(share: float) -> str:
    return next(name for least, name in TIERS if share >= least)


def _finding(
    name: str, rows: tuple[FoundAt, ...], totals: Mapping[str, int], known: Mapping[str, object]
) -> Finding:
    """Say how often something was found."""
    check = CHECKS[name]
    total = counted(totals[check.counted], check.counted)
    said = check.said(len(rows)).format(n=len(rows), total=total, **known)
    return Finding(name, said, _(check.fix), rows)


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
