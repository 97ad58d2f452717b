"""Diagnosis: what became of every ground-truth item, and what to do about what most is lost by.

Made by ``EvaluationResult.diagnose``, with :mod:`krag_eval.results.causes`. pandas is loaded only
for a table.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from krag_eval._io import replacing
from krag_eval._language import N_, Language, _, ngettext, spoken
from krag_eval.errors import Advice, InvalidInput, Place, warn
from krag_eval.results.rows import COUNT_COLUMNS, NoRows
from krag_eval.scoring.cutoffs import Budget, Cutoff, amount_in_words, spelled, unspelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.results.evidence import Evidence
    from krag_eval.results.rows import Rows

#: What can have become of an item: furthest along first, at the end what has no words to find.
CLASSES = (
    "found",
    "found_in_pieces",
    "ranked_too_low",
    "not_retrieved",
    "not_in_top_k",
    "cut_apart",
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
        chunk: Position of the best chunk in the index, from 0.
        query_overlap: Share of the query's words that the best chunk has; 0 is a lexical gap.
        right_source: Whether something from its source was retrieved: the right source, and the
            wrong chunk.
        repeats_above: Documents above it that nearly repeat a better-ranked one.
        letters: Share of its letters that the chunks hold, whatever the spaces, punctuation and
            hyphens: near 1 it was parsed otherwise, near 0 it was never ingested.
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


_TYPES = {
    "rank": "Int64",
    "similarity": "Float64",
    "together": "Float64",
    "chunk": "Int64",
    "query_overlap": "Float64",
    "right_source": "boolean",
    "repeats_above": "Int64",
    "letters": "Float64",
}


#: What to do with an index that has next to none of what was retrieved.
ForeignIndex: TypeAlias = Literal["refuse", "allow"]
#: An index that has a smaller share of the retrieved documents is not the one that was searched.
LEAST = 0.1


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

    @spoken
    def note(self, language: Language | None = None) -> str:
        """Say how many are there, and what else is known of the others; ``""`` if all are."""
        if self.there == self.n and not (self.unknown and not self.n):
            return ""
        told = [_("In the index: {there} of the {n} different documents that were retrieved.")]
        if self.alike:
            told += [
                _("{alike} more with a whole chunk in them, or most of their words in chunks.")
            ]
        if self.skipped:
            told += [_("{skipped} more were not looked for: enough of the others are there.")]
        if self.unknown:
            told += [_("{unknown} more with neither an id nor a text to look up.")]
        return " ".join(told).format(**self._asdict())

    def check(self, foreign_index: ForeignIndex) -> None:
        """Warn if some are not there; refuse an index that has next to none.

        Raises:
            InvalidInput: If it has fewer than a tenth, and that is not allowed.
        """
        found = self.there + self.alike
        if found >= LEAST * self.n or foreign_index == "allow":
            # Where all that were looked for are there, the note beside the numbers will do.
            if (note := self.note()) and (self.unknown or self.there + self.skipped < self.n):
                fix = _(
                    "What the diagnosis says of the index and its chunks holds for those that were "
                    "searched"
                )
                warn(note, fix)
            return
        raise InvalidInput(
            "index",
            f"has {found} of the {self.n} different documents that were retrieved, so it is not "
            "the one that was searched, and cannot tell what that one lacks",
            Advice(
                "pass the chunks that were searched, or {} to diagnose against these",
                foreign_index="allow",
            ),
        )


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What became of every ground-truth item, and where what is missing was lost.

    Made by ``result.diagnose``. Causes are assigned one after the other, so an item that is missed
    for two reasons counts for the first: what is not in the index was not badly ranked as well.

    Attributes:
        items: The items, in the order of queries and items.
        k: The cutoff.
        depth: How deep the deeper lists go; ``None`` if there are none.
        n_chunks: Chunks of the index; ``None`` if none was given.
        chunk_words: Their median number of words; ``None`` if it was not needed.
        threshold: Similarity from which a chunk holds an item.
        matcher: The matcher's signature.
        union: Whether the matcher lets documents count together, so that what is found in pieces
            counts as found.
        knows_words: Whether the matcher tells pieces apart.
        looked_up: How many of the retrieved documents the index has; ``None`` without an index or
            texts.
        of: What tells the result from another one.
    """

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

    @property
    def table(self) -> pd.DataFrame:
        """One row per item, in the order of queries and items; ``class`` is what became of it.

        The other columns are the attributes of ``DiagnosedItem``.
        """
        import pandas as pd

        columns = {
            {"cause": "class"}.get(name, name): pd.Series(
                [getattr(item, name) for item in self.items], dtype=_TYPES.get(name, kind)
            )
            for name, kind in (
                *(("query", "object"), ("position", "int64"), ("item", "int64")),
                *(("cause", "object"), *_TYPES.items()),
            )
        }
        return pd.DataFrame(columns)

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

        classes = classes_of_queries(self)
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
        """Recall with perfect search and ranking: neither ``not_in_index`` nor ``cut_apart``.

        A share of the items; ``None`` without an index.
        """
        if self.n_chunks is None:
            return None
        counts = self.counts
        out_of_reach = counts["not_in_index"] + counts.get("cut_apart", 0)
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
            "not_in_index": indexed,
            "not_seen": not indexed,
        }
        return tuple(cause for cause, is_told in told.items() if is_told)

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
        import pandas as pd

        shares = [self.shares[cause] for cause in self._steps]
        names = _LABELS | (_WITH_UNION if self.union else {})
        labels = [_(names[cause]).format(self.depth) for cause in self._steps]
        cumulative = np.cumsum(shares)
        if not math.isnan(cumulative[-1]):
            cumulative[-1] = 1.0  # by definition, and not by how floats are rounded
        return pd.DataFrame(
            {"label": labels, "share": shares, "cumulative": cumulative},
            index=pd.Index(self._steps, name="class", dtype=object),
        )

    @spoken
    def plot(self, ax: Axes | None = None, *, language: Language | None = None) -> Axes:
        """Draw the waterfall; see :func:`krag_eval.plotting.diagnosis_waterfall`."""
        from krag_eval.plotting import diagnosis_waterfall

        return diagnosis_waterfall(self, ax)

    @spoken
    def summary(self, language: Language | None = None) -> str:
        """Say in one sentence what most is lost by, and what to do about it.

        Args:
            language: Of the sentence, ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else
                ``"en"``.

        Raises:
            InvalidInput: If the language is another one.
        """
        return sentence(self)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Save the diagnosis; :meth:`from_json` reads it back. It holds labels, and no texts.

        The file appears complete or not at all.

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

    def __repr__(self) -> str:
        head = _("Diagnosis of {n} items at {within}")
        lines = [head.format(n=len(self.items), within=within(self.k))]
        lines += [
            f"{row.Index:16} {row.share:6.1%}  {row.cumulative:6.1%}  {row.label}"
            for row in self.waterfall().itertuples()
        ]
        note = "" if self.looked_up is None else self.looked_up.note()
        return "\n".join(filter(None, [*lines, self.summary(), note]))

    def _repr_html_(self) -> str:
        from html import escape

        table = self.waterfall().to_html(float_format=lambda share: f"{share:.3f}", escape=True)
        return f"{table}<p>{escape(self.summary())}</p>"


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


def classes_of_queries(diagnosis: Diagnosis) -> dict[int, str]:
    """Return what :attr:`Diagnosis.query_classes` holds: position -> class."""
    behind: dict[int, str] = {}
    for item in diagnosis.items:
        known = behind.get(item.position, item.cause)
        behind[item.position] = max(known, item.cause, key=_behind)
    return dict(sorted(behind.items()))


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


# What each step of the waterfall adds.
_LABELS = {
    "found": N_("recall now"),
    "found_in_pieces": N_("with pieces"),
    "ranked_too_low": N_("with k = {}"),
    "not_retrieved": N_("with perfect ranking"),
    "not_in_top_k": N_("with perfect ranking"),
    "cut_apart": N_("with other chunks"),
    "not_in_index": N_("with everything in the index"),
    "not_seen": N_("with everything that is missed"),
}
_WITH_UNION = {
    "found": N_("whole, in one document"),
    "found_in_pieces": N_("recall now, pieces together"),
}


def within(k: Cutoff) -> str:
    """Say how far down an item may stand to be found.

    >>> within(5), within(None), within(Budget(80, "w"))
    ('k = 5', 'any rank', '80 words')
    """
    if isinstance(k, Budget):
        return amount_in_words(k.amount, k.unit)
    return _("any rank") if k is None else f"k = {k}"


# What is said of what is lost by a cause.
_LOST = {
    "found_in_pieces": N_(
        "{share} % of passages come back in pieces, no document holds them whole: count pieces "
        "with {union}, or try larger chunks or more overlap"
    ),
    "ranked_too_low": N_(
        "{share} % of passages are ranked too low, half of them at rank {rank} or better: rerank "
        "the first {depth}, or pass on more documents"
    ),
    "not_retrieved": N_(
        "{share} % of passages are in the index and not among the first {depth} documents: try "
        "hybrid search, another embedding model or rewritten questions"
    ),
    "not_in_top_k": N_(
        "{share} % of passages are in the index and not within {within}: {deeper} to see whether "
        "ranking or search loses them"
    ),
    "cut_apart": N_(
        "{share} % of passages are cut apart by the splitter: chunks of {words} words; try a "
        "larger size or overlap"
    ),
    "not_in_index": N_("{share} % of passages are not in the index: check what was ingested"),
    "not_seen": N_(
        "{share} % of passages are missed: {index} to see whether they can be found at all"
    ),
}


def sentence(diagnosis: Diagnosis, ways: Mapping[str, str] | None = None) -> str:
    """Say what most is lost by, and what to do about it.

    Args:
        diagnosis: What was found out.
        ways: How to count pieces (``"union"``), to look deeper (``"deeper"``) and to look at the
            chunks (``"index"``), where it is not Python that is advised.
    """
    if math.isnan(next(iter(diagnosis.shares.values()))):
        return _("Nothing to diagnose: no query has ground truth with words.")
    if told := sentences(diagnosis, ways):
        return told[0]
    told_all = _("Nothing is lost: every passage is found within {within}.")
    return told_all.format(within=within(diagnosis.k))


def sentences(diagnosis: Diagnosis, ways: Mapping[str, str] | None = None) -> list[str]:
    """Say what is lost by each cause and what to do about it, the largest loss first.

    The arguments are those of :func:`sentence`.
    """
    counted = {"found", *(("found_in_pieces",) if diagnosis.union else ())}
    shares = diagnosis.shares
    lost = {cause: share for cause, share in shares.items() if cause not in counted and share > 0}
    ways = ways or {
        "union": "CoverageMatcher(union=True)",
        "deeper": _("pass deeper=…"),
        "index": _("pass index=…"),
    }
    told = []
    for cause in sorted(lost, key=lambda one: lost[one], reverse=True):
        facts = _facts(diagnosis, cause, lost[cause])
        said = _told_of(cause, facts, knows_words=diagnosis.knows_words)
        told.append(said.format(**facts, **ways) + ".")
    return told


def _facts(diagnosis: Diagnosis, cause: str, share: float) -> dict[str, Any]:
    """Return the numbers in what is said of a cause."""
    items = [item for item in diagnosis.items if item.cause == cause]
    ranks = [item.rank for item in items if item.rank is not None]
    return {
        "share": _percent(share),
        "within": within(diagnosis.k),
        "n": len(items),
        "depth": diagnosis.depth,
        "words": diagnosis.chunk_words,
        "rank": int(np.median(ranks)) if ranks else None,
        "repeats": sum(bool(item.repeats_above) for item in items),
        "gaps": sum(item.query_overlap == 0 for item in items),
        "parsed": sum((item.letters or 0.0) >= diagnosis.threshold for item in items),
    }


def _told_of(cause: str, facts: Mapping[str, Any], *, knows_words: bool) -> str:
    """Return what to say of a cause."""
    if cause == "cut_apart" and not facts["words"]:
        return _(
            "{share} % of passages are cut apart by the splitter: try larger chunks or more overlap"
        )
    if cause == "not_in_index" and facts["parsed"] * 2 > facts["n"]:
        if knows_words:
            return _(
                "{share} % of passages are not in the index as they are written, though the "
                "letters of {parsed} of {n} are: look at parsing, spaces and hyphens"
            )
        return _(
            "{share} % of passages match no chunk of the index, though the letters of {parsed} of "
            "{n} are in it: where chunks are cut elsewhere, only the matcher coverage can tell why"
        )
    told = _(_LOST[cause])
    if cause == "ranked_too_low" and facts["repeats"]:
        told += ngettext(
            "; {repeats} of them stands below near-repeats, drop those first",
            "; {repeats} of them stand below near-repeats, drop those first",
            facts["repeats"],
        )
    if cause == "not_retrieved" and facts["gaps"]:
        told += _("; {gaps} of {n} share no word with their question")
    if cause == "not_in_index" and facts["parsed"]:
        told += _(" (the letters of {parsed} are: look at parsing)")
    return told


def _percent(share: float) -> str:
    """Round to whole percents, but a part is neither nothing nor all, nor made larger to show.

    >>> _percent(0.087), _percent(0.999), _percent(0.005), _percent(0.0013)
    ('9', '99', '0.5', '0.1')
    """
    if 0 < share <= 0.005:
        return f"{100 * share:.1g}"
    return "100" if share == 1.0 else f"{min(round(100 * share), 99)}"
