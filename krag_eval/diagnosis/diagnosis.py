"""Diagnosis: what became of every ground-truth item, and what to do about what most is lost by.

Made by ``EvaluationResult.diagnose``, with :mod:`krag_eval.diagnosis.causes`. pandas is loaded only
for a table.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from krag_eval.core import (
    Advice,
    Budget,
    Cutoff,
    Drawn,
    InvalidInput,
    Language,
    NoRows,
    Place,
    _,
    page_of,
    replacing,
    spelled,
    spoken,
    warn,
)
from krag_eval.core.results.rows import COUNT_COLUMNS
from krag_eval.core.scoring.cutoffs import amount_in_words, unspelled

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.core import Rows
    from krag_eval.core.results.evidence import Evidence

#: What can have become of an item: furthest along first, at the end what has no words to find.
CLASSES = (
    "found",
    "found_in_pieces",
    "ranked_too_low",
    "not_retrieved",
    "not_in_top_k",
    "cut_apart",
    "contradicted",
    "not_in_index",
    "not_seen",
    "no_words",
)

_FORMAT, _FORMAT_VERSION = "krag_eval.diagnosis", 1


@dataclass(frozen=True)
class DiagnosedItem:
    """One ground-truth item: what became of it, and what may tell why.

    Of an ``AnyOf``, these are of the alternative that is furthest along. What is not known, or not
    asked of its class, is ``None``.

    Attributes:
        query: The label of its query.
        position: The position of its query, from 0.
        item: Its place in the query's list of ground truth, from 1.
        cause: Its class, one of :data:`CLASSES`.
        rank: Where it stands: the rank of the first document that holds it, of an item in pieces
            the rank that completes it.
        similarity: Of the best chunk: of the index or, without one, of those retrieved.
        together: Share of its words that all those chunks hold together; of an item that was
            found, those within the cutoff.
        chunk: Position of the best chunk in the index, from 0; of an item that is contradicted, of
            the chunk that holds most of it and says something else, so that its similarity is 0.
        query_overlap: Share of the query's words that the best chunk has, in Korean whatever their
            particles and endings; 0 is a lexical gap.
        same_words: Share of those that it has just so, as an index by words needs them.
        right_source: Whether something from its source was retrieved: the right source, and the
            wrong chunk.
        repeats_above: Documents above it that nearly repeat a better-ranked one.
        letters: Share of its letters that the chunks hold, whatever the spaces, punctuation and
            hyphens: near 1 it was parsed otherwise, near 0 it was never ingested.
        differs_in: What the chunk says otherwise, if the item is contradicted: a ``"number"``,
            a ``"negation"`` or other words, ``"text"``.
        passage_says, chunk_says: What each of the two has there, as it is compared.
        looked_for: How the passage begins, if it is not in the index.
        nearest_chunk: Position of the chunk that has most of it then, or most of its words.
        nearest_text: How that chunk begins.
    """

    query: str | int
    position: int
    item: int
    cause: str
    rank: int | None = None
    similarity: float | None = None
    together: float | None = None
    chunk: int | None = None
    query_overlap: float | None = None
    right_source: bool | None = None
    repeats_above: int | None = None
    letters: float | None = None
    differs_in: str | None = None
    passage_says: str | None = None
    chunk_says: str | None = None
    same_words: float | None = None
    looked_for: str | None = None
    nearest_chunk: int | None = None
    nearest_text: str | None = None


_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("position", "item"), "int64"),
    **dict.fromkeys(("rank", "chunk", "repeats_above", "nearest_chunk"), "Int64"),
    **dict.fromkeys(
        ("similarity", "together", "query_overlap", "same_words", "letters"), "Float64"
    ),
    "right_source": "boolean",
    **dict.fromkeys(("differs_in", "passage_says", "chunk_says"), "string"),
    **dict.fromkeys(("looked_for", "nearest_text"), "string"),
}

#: What to do with an index that has next to none of what was retrieved.
ForeignIndex: TypeAlias = Literal["refuse", "allow"]
#: An index that has a smaller share of the retrieved documents is not the one that was searched.
LEAST = 0.1


class Step(NamedTuple):
    """A class: how many items have it, their share, and the shares up to it."""

    cause: str
    items: int
    share: float
    cumulative: float


class LookedUp(NamedTuple):
    """How many of the retrieved documents an index has.

    Attributes:
        n: Different documents that have an id or a text to look up.
        there: Those whose id a chunk has, without another text, or whose text is that of a chunk or
            a part of it.
        alike: Others that contain a chunk, or most of whose words are in chunks, in runs.
        unknown: Different documents that have neither.
        skipped: Those of the ``n`` that were not looked for, as enough others are there.
    """

    n: int
    there: int
    alike: int
    unknown: int
    skipped: int = 0

    def check(self, foreign_index: ForeignIndex) -> None:
        """Warn if some are not there; refuse an index that has next to none.

        Raises:
            InvalidInput: If it has fewer than a tenth, and that is not allowed.
        """
        found = self.there + self.alike
        if found >= LEAST * self.n or foreign_index == "allow":
            # Where all that were looked for are there, the note beside the numbers will do.
            if self.unknown or self.there + self.skipped < self.n:
                fix = _(
                    "What the diagnosis says of the index and its chunks holds for those that were "
                    "searched"
                )
                for note in page_of(self).notes:
                    warn(note, fix)
            return
        problem = (
            f"has {found} of the {self.n} different documents that were retrieved, so it is not "
            "the one that was searched, and cannot tell what that one lacks"
        )
        remedy = "pass the chunks that were searched, or {} to diagnose against these"
        raise InvalidInput("index", problem, Advice(remedy, foreign_index="allow"))


@dataclass(frozen=True, repr=False)
class Diagnosis(Drawn):
    """What became of every ground-truth item, and where what is missing was lost.

    :meth:`plot` draws :func:`~krag_eval.plotting.diagnosis_waterfall`.

    Made by ``result.diagnose``. Causes are assigned one after the other, so an item that is missed
    for two reasons counts for the first: what is not in the index was not badly ranked as well.

    Attributes:
        items: The items, in the order of queries and items.
        k: The cutoff.
        depth: How deep the deeper lists go; ``None`` if there are none.
        n_chunks: Chunks of the index; ``None`` if none was given.
        chunk_words: Their median number of words; ``None`` if it was not needed.
        chunk_characters: Their median number of characters, likewise.
        chunk_overlap: The median number of characters that a chunk begins with and the one before
            ends with, likewise.
        threshold: Similarity from which a chunk holds an item.
        matcher: The matcher's signature.
        union: Whether the matcher lets documents count together, so that what is found in pieces
            counts as found.
        knows_words: Whether the matcher tells pieces apart.
        looked_up: How many of the retrieved documents the index has; ``None`` without an index or
            texts.
        of: What tells the result from another one.
        is_guarded: Whether the matcher tells chunks apart that say something else.
    """

    _drawn_by = "diagnosis_waterfall"

    items: tuple[DiagnosedItem, ...]
    k: Cutoff
    depth: int | None
    n_chunks: int | None
    chunk_words: int | None
    threshold: float
    matcher: str
    union: bool
    knows_words: bool
    looked_up: LookedUp | None = None
    of: Mapping[str, str] = field(default_factory=dict, compare=False)
    is_guarded: bool = False
    chunk_characters: int | None = None
    chunk_overlap: int | None = None

    @property
    def table(self) -> pd.DataFrame:
        """One row per item, in the order of queries and items; ``class`` is what became of it.

        The other columns are the attributes of ``DiagnosedItem``.
        """
        import pandas as pd

        names = [one.name for one in fields(DiagnosedItem)]
        table = pd.DataFrame(map(astuple, self.items), columns=names, dtype=object)
        return table.astype(_TYPES).rename(columns={"cause": "class"})

    @property
    def counts(self) -> dict[str, int]:
        """Class -> number of items, for the classes that this diagnosis can tell."""
        found = Counter(item.cause for item in self.items)
        told = {*self._steps, *found}
        return {cause: found[cause] for cause in CLASSES if cause in told}

    @property
    def query_classes(self) -> pd.Series[str]:
        """The class of each query, which is that of its item that is furthest behind.

        By the position of the query, in order; a query without ground truth has none. Items without
        words decide only where a query has no others. ``result.by("diagnosis", diagnosis=…)``
        divides the queries by it.
        """
        import pandas as pd

        behind = sorted(self.items, key=lambda one: (one.position, _behind(one.cause)))
        classes = {item.position: item.cause for item in behind}
        index = pd.Index([*classes], dtype="int64", name="position")
        return pd.Series([*classes.values()], index=index, name="class", dtype=object)

    @property
    def shares(self) -> dict[str, float]:
        """Class -> share of the items that have words; they add up to 1, or there are no items."""
        counts = self.counts
        counts.pop("no_words", None)
        total = sum(counts.values())
        return {cause: n / total if total else math.nan for cause, n in counts.items()}

    @property
    def index_ceiling(self) -> float | None:
        """Recall with perfect search and ranking: of what a chunk holds, or what is found already.

        The share of the items that are neither ``cut_apart``, ``contradicted`` nor
        ``not_in_index``; ``None`` without an index.
        """
        if self.n_chunks is None:
            return None
        counts = self.counts
        beyond = ("cut_apart", "contradicted", "not_in_index")
        out_of_reach = sum(counts.get(cause, 0) for cause in beyond)
        total = len(self.items) - counts.get("no_words", 0)
        return (total - out_of_reach) / total if total else math.nan

    @property
    def _steps(self) -> tuple[str, ...]:
        """The classes that this diagnosis can tell, from recall as it is to all there is."""
        deep, indexed = self.depth is not None, self.n_chunks is not None
        told = {
            "found": True,
            "found_in_pieces": self.knows_words,
            "ranked_too_low": deep,
            "not_retrieved": deep and indexed,
            "not_in_top_k": indexed and not deep,
            "cut_apart": indexed and self.knows_words,
            "contradicted": indexed and self.is_guarded,
            "not_in_index": indexed,
            "not_seen": not indexed,
        }
        return tuple(cause for cause, is_told in told.items() if is_told)

    @property
    def steps(self) -> list[Step]:
        """The classes that this diagnosis can tell, with their shares one after the other."""
        counts, shares = self.counts, self.shares
        cumulative = np.cumsum([shares[cause] for cause in self._steps]).tolist()
        if not math.isnan(cumulative[-1]):
            cumulative[-1] = 1.0  # by definition, and not by how floats are rounded
        return [
            Step(cause, counts[cause], shares[cause], up_to)
            for cause, up_to in zip(self._steps, cumulative, strict=True)
        ]

    @spoken
    def waterfall(self, language: Language | None = None) -> pd.DataFrame:
        """Return what recall would be with one cause after the other removed.

        Args:
            language: Of the labels, ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else
                ``"en"``.

        Returns:
            One row per class: ``label``, ``share`` of the items, ``cumulative`` up to it; the last
            is 1. Recall is micro recall.
        """
        steps = page_of(self).tables[0].frame().set_index("class")
        return steps.loc[[*self._steps], ["label", "share", "cumulative"]]

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Save the diagnosis; :meth:`from_json` reads it back.

        It holds labels, and of texts the words that contradict each other, and the beginning of
        what is not in the index beside what comes nearest. The
        file appears complete or not at all.

        Raises:
            OSError: If the file cannot be written; the error names it.
        """
        written = as_text(self)
        with replacing(path) as temporary:
            temporary.write_text(written, "utf-8")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Diagnosis:
        """Read a diagnosis that :meth:`to_json` saved.

        Raises:
            FileNotFoundError: If there is no such file.
            InvalidInput: If the file is not such a diagnosis, of another format, or damaged.
        """
        place = Place(os.fsdecode(path))
        try:
            content = json.loads(Path(path).read_text("utf-8"))
            if content.pop("format") != _FORMAT or content.pop("format_version") != _FORMAT_VERSION:
                raise ValueError(f"not {_FORMAT} in format {_FORMAT_VERSION}")
            columns = content.pop("items")
            rows = zip(*columns.values(), strict=True)
            items = tuple(DiagnosedItem(**dict(zip(columns, row, strict=True))) for row in rows)
            if not {item.cause for item in items} <= {*CLASSES}:
                raise ValueError("it has classes that there are not")
            if (looked_up := content.pop("looked_up", None)) is not None:
                content["looked_up"] = LookedUp(*map(int, looked_up))
            return cls(items, **{**content, "k": unspelled(content["k"])})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            problem = f"not a saved diagnosis, or damaged ({error})"
            raise InvalidInput("", problem, place=place) from error


def told_apart_by(
    rows: Rows, settings: Mapping[str, str], evidence: Evidence | None
) -> dict[str, str]:
    """Return digests of what tells a result from another one, by what they are of.

    As far as it is kept: two results are the same if what both keep is. The arguments are
    attributes of a result.
    """
    if isinstance(rows, NoRows):
        return {}
    parts: dict[str, Iterable[Any]] = {"queries": map(json.dumps, rows.labels)}
    parts["matcher"] = [settings.get(name, "-") for name in ("matcher", "threshold")]
    for k in rows.cutoffs:
        table = rows.tables[k]
        parts[f"counts@{spelled(k)}"] = [
            table[name] for name in (*COUNT_COLUMNS, "rank") if name in table
        ]
    if evidence is not None:
        found, texts = evidence.relevance, evidence.texts
        parts["similarities"] = [found.pair_item, found.pair_rank, found.pair_similarity]
        if texts is not None:
            lists = map(texts.predicted, range(rows.n_queries))
            parts["documents"] = (text for one in lists for text in (*one, ""))
    return {name: _digest(several) for name, several in parts.items()}


def _digest(parts: Iterable[Any]) -> str:
    """Return a digest of texts, or of numbers, wherever these were read from."""
    digest = blake2b(digest_size=16)
    for one in parts:
        if isinstance(one, str):
            content = one.encode("utf-8", "surrogatepass")
        else:
            content = np.nan_to_num(np.asarray(one, "<f8"), nan=-1.0).tobytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _behind(cause: str) -> int:
    """Return how far behind a class is; one without words is no loss."""
    return -1 if cause == "no_words" else CLASSES.index(cause)


def as_text(diagnosis: Diagnosis) -> str:
    """Return what :meth:`Diagnosis.to_json` writes."""
    content = {"format": _FORMAT, "format_version": _FORMAT_VERSION}
    names = [one.name for one in fields(diagnosis) if one.name != "items"]
    own = {name: getattr(diagnosis, name) for name in names}
    columns = {
        one.name: [getattr(item, one.name) for item in diagnosis.items]
        for one in fields(DiagnosedItem)
    }
    return json.dumps(
        {**content, **own, "k": spelled(diagnosis.k), "items": columns}, allow_nan=False
    )


def within(k: Cutoff) -> str:
    """Say how far down an item may stand to be found.

    >>> within(5), within(None), within(Budget(80, "w"))
    ('k = 5', 'any rank', '80 words')
    """
    if isinstance(k, Budget):
        return amount_in_words(k.amount, k.unit)
    return _("any rank") if k is None else f"k = {k}"
