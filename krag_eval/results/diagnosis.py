"""Diagnosis: what became of every ground-truth item, and what to do about what most is lost by.

Made by ``EvaluationResult.diagnose``, with :mod:`krag_eval.results.causes`. pandas is loaded only
for a table.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from krag_eval._errors import InvalidInput, Place
from krag_eval._io import replacing
from krag_eval.scoring.cutoffs import Cutoff, in_words, spelled, unspelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["CLASSES", "DiagnosedItem", "Diagnosis"]

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

    def waterfall(self, language: Literal["en", "ko"] = "en") -> pd.DataFrame:
        """Return what recall would be with one cause after the other removed.

        Args:
            language: Of the labels.

        Returns:
            One row per class: ``label``, ``share`` of the items, ``cumulative`` up to it; the last
            is 1. Recall is micro recall.
        """
        import pandas as pd

        shares = [self.shares[cause] for cause in self._steps]
        labels = [_label(cause, self, language) for cause in self._steps]
        cumulative = np.cumsum(shares)
        if not math.isnan(cumulative[-1]):
            cumulative[-1] = 1.0  # by definition, and not by how floats are rounded
        return pd.DataFrame(
            {"label": labels, "share": shares, "cumulative": cumulative},
            index=pd.Index(self._steps, name="class", dtype=object),
        )

    def plot(self, ax: Axes | None = None, *, language: Literal["en", "ko"] = "en") -> Axes:
        """Draw the waterfall; see :func:`krag_eval.plotting.diagnosis_waterfall`."""
        from krag_eval.plotting import diagnosis_waterfall

        return diagnosis_waterfall(self, ax, language=language)

    def summary(self) -> str:
        """Say in one sentence what most is lost by, and what to do about it."""
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
            return cls(items, **{**content, "k": unspelled(content["k"])})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            problem = f"not a saved diagnosis, or damaged ({error})"
            raise InvalidInput("", problem, place=place) from error

    def __repr__(self) -> str:
        lines = [f"Diagnosis of {len(self.items)} items at {_within(self.k)}"]
        lines += [
            f"{row.Index:16} {row.share:6.1%}  {row.cumulative:6.1%}  {row.label}"
            for row in self.waterfall().itertuples()
        ]
        return "\n".join([*lines, self.summary()])

    def _repr_html_(self) -> str:
        from html import escape

        table = self.waterfall().to_html(float_format=lambda share: f"{share:.3f}", escape=True)
        return f"{table}<p>{escape(self.summary())}</p>"


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


# What each step of the waterfall adds, in both languages.
_LABELS = {
    "found": ("recall now", "현재 재현율"),
    "found_in_pieces": ("with pieces", "조각까지 합치면"),
    "ranked_too_low": ("with k = {}", "k = {}이면"),
    "not_retrieved": ("with perfect ranking", "순위가 완벽하면"),
    "not_in_top_k": ("with perfect ranking", "순위가 완벽하면"),
    "cut_apart": ("with other chunks", "청크를 다르게 자르면"),
    "not_in_index": ("with everything in the index", "모두 색인하면"),
    "not_seen": ("with everything that is missed", "놓친 것까지 모두"),
}
_WITH_UNION = {
    "found": ("whole, in one document", "한 문서에 온전히"),
    "found_in_pieces": ("recall now, pieces together", "현재 재현율(조각 합산)"),
}


def _label(cause: str, diagnosis: Diagnosis, language: str) -> str:
    labels = _LABELS | (_WITH_UNION if diagnosis.union else {})
    return labels[cause][language == "ko"].format(diagnosis.depth)


def _within(k: Cutoff) -> str:
    return f"k = {k}" if isinstance(k, int) else "any rank" if k is None else in_words(k)


#: What a summary advises, as it is written in Python.
_IN_PYTHON = {
    "union": "CoverageMatcher(union=True)",
    "deeper": "pass deeper=…",
    "index": "pass index=…",
}


def sentence(diagnosis: Diagnosis, ways: Mapping[str, str] = _IN_PYTHON) -> str:
    """Say what most is lost by, and what to do about it.

    Args:
        diagnosis: What was found out.
        ways: How to count pieces (``"union"``), to look deeper (``"deeper"``) and to look at the
            chunks (``"index"``), where it is not Python that is advised.
    """
    shares = diagnosis.shares
    if math.isnan(next(iter(shares.values()))):
        return "Nothing to diagnose: no query has ground truth with words."
    counted = {"found", *(("found_in_pieces",) if diagnosis.union else ())}
    lost = {cause: share for cause, share in shares.items() if cause not in counted}
    cause = max(lost, key=lambda one: lost[one], default="")
    if not lost.get(cause):
        return f"Nothing is lost: every passage is found within {_within(diagnosis.k)}."
    of_it = [item for item in diagnosis.items if item.cause == cause]
    remedy = _REMEDIES[cause](diagnosis, of_it).format_map(ways)
    return f"{_percent(lost[cause])} of passages {remedy}."


def _percent(share: float) -> str:
    """Round to whole percents, but a part is neither nothing nor all.

    >>> _percent(0.087), _percent(0.999), _percent(0.0001), _percent(1.0)
    ('9 %', '99 %', '1 %', '100 %')
    """
    return "100 %" if share == 1.0 else f"{min(max(round(100 * share), 1), 99)} %"


def _in_pieces(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    return (
        "come back in pieces, no document holds them whole: count pieces with "
        "{union}, or try larger chunks or more overlap"
    )


def _too_low(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    ranks = [item.rank for item in items if item.rank is not None]
    repeats = sum(bool(item.repeats_above) for item in items)
    stand = "stands" if repeats == 1 else "stand"
    more = f"; {repeats} of them {stand} below near-repeats, drop those first" if repeats else ""
    return (
        f"are ranked too low, half of them at rank {int(np.median(ranks))} or better: rerank the "
        f"first {diagnosis.depth}, or pass on more documents{more}"
    )


def _unretrieved(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    gaps = sum(item.query_overlap == 0 for item in items)
    more = f"; {gaps} of {len(items)} share no word with their question" if gaps else ""
    return (
        f"are in the index and not among the first {diagnosis.depth} documents: try hybrid search, "
        f"another embedding model or rewritten questions{more}"
    )


def _not_in_top(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    return (
        f"are in the index and not within {_within(diagnosis.k)}: {{deeper}} to see whether "
        "ranking or search loses them"
    )


def _cut(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    words = diagnosis.chunk_words
    return (
        f"are cut apart by the splitter: chunks of {words} words; try a larger size or overlap"
        if words
        else "are cut apart by the splitter: try larger chunks or more overlap"
    )


def _not_indexed(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    parsed = sum((item.letters or 0.0) >= diagnosis.threshold for item in items)
    if parsed * 2 > len(items) and not diagnosis.knows_words:
        return (
            f"match no chunk of the index, though the letters of {parsed} of {len(items)} are in "
            "it: where chunks are cut elsewhere, only the matcher coverage can tell why"
        )
    if parsed * 2 > len(items):
        return (
            f"are not in the index as they are written, though the letters of {parsed} of "
            f"{len(items)} are: look at parsing, spaces and hyphens"
        )
    more = f" (the letters of {parsed} are: look at parsing)" if parsed else ""
    return f"are not in the index: check what was ingested{more}"


def _unseen(diagnosis: Diagnosis, items: Sequence[DiagnosedItem]) -> str:
    return "are missed: {index} to see whether they can be found at all"


_REMEDIES: dict[str, Callable[[Diagnosis, Sequence[DiagnosedItem]], str]] = {
    "found_in_pieces": _in_pieces,
    "ranked_too_low": _too_low,
    "not_retrieved": _unretrieved,
    "not_in_top_k": _not_in_top,
    "cut_apart": _cut,
    "not_in_index": _not_indexed,
    "not_seen": _unseen,
}
