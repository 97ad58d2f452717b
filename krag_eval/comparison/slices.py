"""Slices: the averages of the queries that share a tag, beside those of all others.

For ``result.by(…)``, ``comparison.by(…)`` and gates. Intervals and tests are those of
:mod:`krag_eval.intervals.intervals` and :mod:`krag_eval.comparison.paired`; pandas and scipy load
when they are needed.
"""

from __future__ import annotations

import json
import math
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from krag_eval.comparison import paired
from krag_eval.comparison.comparable import checked_metrics
from krag_eval.comparison.paired import Difference
from krag_eval.core import (
    DEFINED,
    N_,
    Advice,
    Average,
    Cutoff,
    FloatArray,
    IntArray,
    InvalidInput,
    Language,
    Place,
    ResultFacts,
    RowsInMemory,
    Shown,
    Tag,
    _,
    clipped,
    errors,
    page_of,
    replacing,
    speaking,
    spelled,
    spoken,
    warn,
)
from krag_eval.core.matching.tokenizers import ByScript
from krag_eval.core.scoring.averages import QUERIES
from krag_eval.core.scoring.cutoffs import lengths_of
from krag_eval.core.shown import draw
from krag_eval.diagnosis.diagnosis import Diagnosis, told_apart_by, within
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import BoolArray, QuerySums, Sampling
from krag_eval.intervals.sums import exact_parts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


#: Of fewer queries than this, or fewer clusters of them, there are counts alone.
FEWEST_QUERIES = 10
#: Averages that are shown where none are named.
_MAIN = ("macro_recall", "micro_recall", "ndcg", "mrr", "hit_rate")
# Numbers of more values than this are divided at their quartiles.
_MOST_VALUES = 6
_QUARTILES = (0.25, 0.5, 0.75)
_LARGEST = 1e300
# Beyond, intervals and tests would take long and could show nothing.
MOST_TESTS = 500
_FORMAT, _FORMAT_VERSION = "krag_eval.slices", 1
_DAMAGED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


# What a slice has as the difference does that sets it apart.
_SHARED = ("difference", "ci_low", "ci_high", "p_permutation", "p_holm", "slice", "n")


@dataclass(frozen=True)
class Slice:
    """One slice on one metric; numbers are NaN where there are too few queries.

    Attributes:
        slice: Its name: the tag's value, or the bounds between which it lies.
        metric: The average and its cutoff, such as ``"ndcg@10"``.
        n: Queries that count, where the metric is defined.
        value: The average of the slice.
        low: Lower bound of its interval.
        high: Upper bound.
        rest: The average of all other queries.
        difference: ``value - rest``.
        ci_low: Lower bound of the interval of the difference.
        ci_high: Upper bound.
        p_permutation: Two-sided p of the permutation test, never 0.
        p_holm: The same, corrected for all slices and metrics; two slices that are each other's
            rest are one test.
        loss_share: The part of all that the counted queries lack to the best value, from 0 to 1,
            that those of the slice lack: of a micro average in items or documents, else in values
            of queries. It is counted, not estimated, so a slice of any size has one; NaN where
            nothing is lost or the metric has no best value.
    """

    slice: str
    metric: str
    n: int
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    rest: float = math.nan
    difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p_permutation: float = math.nan
    p_holm: float = math.nan
    loss_share: float = math.nan

    def is_shown(self, level: float = 0.95) -> bool:
        """Tell whether the slice is shown to differ from the rest.

        So it is if the corrected p is below ``1 - level`` *and* the interval excludes 0: a slice
        and the rest may spread differently, for which the permutation test alone is not made.
        """
        return self.p_holm < 1 - level and not self.ci_low <= 0 <= self.ci_high

    def as_difference(self, *, lower_is_better: bool = False, rest: str = "the rest") -> Difference:
        """Return it as what sets the slice apart from the rest."""
        return paired.unknown(
            rest,
            self.slice,
            self.metric,
            _average_of(self.metric, lower=lower_is_better),
            value_a=self.rest,
            value_b=self.value,
            **{name: getattr(self, name) for name in _SHARED},
        )


def _average_of(metric: str, *, lower: bool) -> Average:
    """Return what is known of a metric by its name and its direction."""
    key = metric.rpartition("@")[0]
    return Average(key, key, (), lower_is_better=lower)


@dataclass(frozen=True, eq=False, repr=False)
class _Sliced(Shown):
    """What slices of one result and of a comparison have in common."""

    tag: str
    about: str
    rows: tuple[Any, ...]
    n_queries: int
    lower_is_better: tuple[str, ...]
    level: float
    n_resamples: int
    seed: int
    signature: str

    _row: ClassVar[type]
    _kind: ClassVar[str]
    #: The attributes of a row that tables and files have.
    _columns: ClassVar[tuple[str, ...]]

    @property
    def names(self) -> list[str]:
        """The slices, in order."""
        return list(dict.fromkeys(row.slice for row in self.rows))

    @property
    def metrics(self) -> list[str]:
        """The metrics."""
        return list(dict.fromkeys(row.metric for row in self.rows))

    @property
    def table(self) -> pd.DataFrame:
        """One row per slice and metric; the columns are the attributes of the rows."""
        import pandas as pd

        rows = [[getattr(row, name) for name in self._columns] for row in self.rows]
        return pd.DataFrame(rows, columns=list(self._columns))

    @property
    def notes(self) -> list[str]:
        """What to bear in mind: too many slices, slices too small to say anything."""
        return list(page_of(self).notes)

    @property
    def n_tests(self) -> int:
        """Number of tests; two slices that are each other's rest are one."""
        return sum(not math.isnan(row.p_permutation) for row in self.rows)

    @spoken
    def plot(
        self,
        metric: str | None = None,
        ax: Axes | None = None,
        *,
        language: Language | None = None,
    ) -> Axes:
        """Draw one metric, one row per slice.

        Args:
            metric: One of the metrics; the first if not given.
            ax: Where to draw; a new figure if not given.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        Returns:
            The matplotlib Axes; nothing is shown or saved.
        """
        return draw("slice_forest", self, metric, ax)

    def _content(self) -> dict[str, Any]:
        content = {one.name: getattr(self, one.name) for one in fields(self)}
        rows = [{name: getattr(row, name) for name in self._columns} for row in self.rows]
        return {"format": _FORMAT, "format_version": _FORMAT_VERSION, "kind": self._kind} | {
            name: _plain(one) for name, one in (content | {"rows": rows}).items()
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Save the slices; :meth:`from_json` reads them back. Undefined numbers are ``null``.

        Raises:
            OSError: If the file cannot be written; the error names it.
        """
        # In ASCII, for half of a character cannot be written otherwise.
        content = json.dumps(self._content(), allow_nan=False)
        with replacing(path) as temporary:
            temporary.write_text(content, "utf-8")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Self:
        """Read slices that :meth:`to_json` saved.

        Raises:
            FileNotFoundError: If there is no such file.
            InvalidInput: If the file holds something else, is of another format, or damaged.
        """
        place = Place(os.fsdecode(path))
        try:
            content = json.loads(Path(path).read_text("utf-8"))
            head = [content.pop(name) for name in ("format", "format_version", "kind")]
            if head != [_FORMAT, _FORMAT_VERSION, cls._kind]:
                raise ValueError(f"its format is {clipped(head)}")
            rows, content = content.pop("rows"), _checked(cls, content)
            made = tuple(cls._made(_checked(cls._row, row), content) for row in rows)
            return cls(**content, rows=made)
        except _DAMAGED as error:
            problem = f"holds no {cls.__name__} that this version reads ({error})"
            raise InvalidInput("", problem, place=place) from error

    @classmethod
    def _made(cls, row: dict[str, Any], content: Mapping[str, Any]) -> Any:
        """Return a row from its fields in a file, and what else the file has."""
        return cls._row(**row)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]  # rows may hold NaN


@dataclass(frozen=True, eq=False, repr=False)
class Slices(_Sliced):
    """The averages of a result within slices; made by :meth:`EvaluationResult.by`.

    Attributes:
        tag: The tag.
        about: What a built-in tag is; empty for a tag of the queries' own.
        rows: One :class:`Slice` per slice and metric; the slices with the greatest share of the
            losses on the first metric come first.
        n_queries: Number of queries that count.
        lower_is_better: Those of the metrics where a lower value is the better one.
        level: Level of the intervals.
        n_resamples: Number of resamples, and of random permutations.
        seed: Seed of both.
        signature: What the result's numbers depend on.
        overall: Metric -> average of all queries.
    """

    rows: tuple[Slice, ...]
    overall: Mapping[str, float]

    _row: ClassVar[type] = Slice
    _kind: ClassVar[str] = "result"
    _columns: ClassVar[tuple[str, ...]] = tuple(one.name for one in fields(Slice))

    @property
    def n_tests(self) -> int:
        """Number of tests; two slices that are each other's rest are one."""
        same = _same_tests(self.rows)
        p_values = [row.p_permutation for i, row in enumerate(self.rows) if i not in same]
        return sum(not math.isnan(p) for p in p_values)


@dataclass(frozen=True, eq=False, repr=False)
class SlicedComparison(_Sliced):
    """The differences of a comparison within slices; made by :meth:`Comparison.by`.

    Attributes:
        tag: The tag.
        about: What a built-in tag is; empty for a tag of the queries' own.
        rows: One :class:`Difference` per slice, pair of systems and metric, with its ``slice`` and
            the number ``n`` of its queries; NaN where there are too few of these.
        n_queries: Number of queries that count.
        lower_is_better: Those of the metrics where a lower value is the better one.
        level: Level of the intervals.
        n_resamples: Number of resamples, and of random swaps.
        seed: Seed of both.
        signature: What the results have in common.
    """

    rows: tuple[Difference, ...]

    _row: ClassVar[type] = Difference
    _kind: ClassVar[str] = "comparison"
    _columns: ClassVar[tuple[str, ...]] = (
        *("slice", "a", "b", "metric", "n", "value_a", "value_b", "difference", "ci_low"),
        *("ci_high", "p_permutation", "p_holm", "wins", "ties", "losses", "n_both"),
        *("share_a", "share_b", "p_share", "p_share_holm", "is_of_fewer"),
    )

    @classmethod
    def _made(cls, row: dict[str, Any], content: Mapping[str, Any]) -> Difference:
        average = _average_of(row["metric"], lower=row["metric"] in content["lower_is_better"])
        return paired.unknown(average=average, **row)


def _plain(value: Any) -> Any:
    """Return what JSON can hold: nothing for an undefined number."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return list(map(_plain, value))
    return None if isinstance(value, float) and math.isnan(value) else value


# What a file may have of a field of a type; undefined numbers are null.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str,),
    "int": (int,),
    "float": (int, float, type(None)),
    "bool": (bool,),
    "tuple[str, ...]": (list,),
    "Mapping[str, float]": (dict,),
}


def _checked(kind: type, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a class as a file has them.

    Raises:
        TypeError: If one is of another type.
    """
    types = {one.name: str(one.type) for one in fields(kind)}
    return {name: _of_type(name, types[name], value) for name, value in content.items()}


def _of_type(name: str, kind: str, value: Any) -> Any:
    if type(value) not in _TYPES[kind]:
        raise TypeError(f"{name} is {clipped(value)}")
    if kind == "float":
        return math.nan if value is None else float(value)
    if isinstance(value, list):
        return tuple(_of_type(name, "str", one) for one in value)
    if isinstance(value, dict):
        return {key: _of_type(name, "float", one) for key, one in value.items()}
    return value


# What the queries are sliced by.


def slices(
    result: ResultFacts,
    tag: str,
    k: Cutoff,
    metrics: str | Iterable[str] | None,
    sampling: Sampling,
    diagnosis: Diagnosis | None = None,
) -> Slices:
    """Return the averages within slices of the queries; see ``EvaluationResult.by``."""
    intervals.check_counted(result)
    averages = _averages(result, k, metrics)
    division = Division.of([result], tag, diagnosis)
    division.warn_of_too_many(division.n_large * len(averages))
    return Slices(
        tag,
        division.about,
        tuple(_corrected(_measured(result, averages, division, sampling))),
        len(division.place),
        tuple(name for name, (one, _k) in averages.items() if one.lower_is_better),
        *sampling,
        signature=result.signature,
        overall={name: result.averages(at)[one.key] for name, (one, at) in averages.items()},
    )


def _averages(
    result: ResultFacts, k: Cutoff, metrics: str | Iterable[str] | None
) -> dict[str, tuple[Average, Cutoff]]:
    """Return the averages asked for: spelling -> average and cutoff.

    Raises:
        InvalidType: If ``metrics`` is neither a name nor several.
        InvalidInput: If one was not evaluated, or none is named.
    """
    known = result.averages(k)
    if metrics is None:
        doubled = {"micro_recall"} if "macro_recall" in known else set()
        metrics = [key for key in _MAIN if key in known and key not in doubled] or list(known)
    if isinstance(metrics, Iterable):
        named = [metrics] if isinstance(metrics, str) else metrics
        metrics = [one if "@" in str(one) else f"{one}@{spelled(k)}" for one in named]
    chosen = checked_metrics({"result": result}, metrics, "metrics")
    return {name: (result.definitions[key], at) for name, (key, at) in chosen.items()}


@dataclass(frozen=True)
class Division:
    """The queries that count, divided by a tag.

    Attributes:
        tag: The tag.
        about: What a built-in tag is; empty for a tag of the queries' own.
        names: The slices, in order.
        place: The slice of each query that counts.
    """

    tag: str
    about: str
    names: tuple[str, ...]
    place: IntArray

    @classmethod
    def of(
        cls, results: Sequence[ResultFacts], tag: str, diagnosis: Diagnosis | None = None
    ) -> Division:
        """Divide the queries that all results have.

        Raises:
            InvalidType: If the tag is not text, or the diagnosis none.
            InvalidInput: If there is no such tag, the results differ in it, or the diagnosis is of
                another result.
        """
        errors.text("tag", tag, "the name of a tag")
        values, about = _values(results, tag, diagnosis)
        counted = results[0].counted.tolist()
        kept = [value for value, counts in zip(values, counted, strict=True) if counts]
        return cls(tag, about, *_divided(tag, kept))

    @property
    def sizes(self) -> list[int]:
        """Queries per slice."""
        sizes: list[int] = np.bincount(self.place, minlength=len(self.names)).tolist()
        return sizes

    @property
    def n_large(self) -> int:
        """Number of slices with enough queries to be measured."""
        return sum(size >= FEWEST_QUERIES for size in self.sizes)

    def warn_of_too_many(self, n_tests: int) -> None:
        """Warn if the slices are too many to mean anything."""
        reasons = too_many(self.tag, self.sizes, n_tests)
        if reasons:
            warn(" ".join(reasons), _("Slice by a tag of fewer values"))


def too_many(tag: str, sizes: Sequence[int], n_tests: int) -> list[str]:
    """Say why the slices are too many to mean anything, if they are."""
    reasons = []
    if 2 * sum(size for size in sizes if size < FEWEST_QUERIES) > sum(sizes) and len(sizes) > 1:
        told = _(
            "{n} slices of {queries} queries by {tag} are too many to mean anything: most queries "
            "are in slices of fewer than {fewest}."
        )
        counts = {"n": len(sizes), "queries": sum(sizes), "fewest": FEWEST_QUERIES}
        reasons.append(told.format(**counts, tag=tag))
    if n_tests > MOST_TESTS:
        told = _(
            "Slices by {tag} would need {tests} tests, where nothing can be told from chance, so "
            "there are none; at most {most} are made."
        )
        reasons.append(told.format(tag=tag, tests=n_tests, most=MOST_TESTS))
    return reasons


_HOW_TO_TAG = (
    'each further column of the questions is a tag, as "lang" in {"question": …, "actual": […], '
    '"lang": "ko"}; an evaluator of lists takes tags={"lang": ["ko", …]}'
)


def _values(
    results: Sequence[ResultFacts], tag: str, diagnosis: Diagnosis | None
) -> tuple[Sequence[Tag], str]:
    """Return one value per query, and what a built-in tag is; the queries' own come first."""
    first = results[0]
    if diagnosis is not None:
        if tag != DIAGNOSED:
            problem = f"is for the tag {DIAGNOSED!r}, and the tag is {clipped(tag)}"
            raise InvalidInput("diagnosis", problem, "leave it out")
        check_diagnosed(diagnosis, first)
        classes = diagnosis.query_classes.to_dict()
        with speaking("en"):
            about = f"class of the item that is furthest behind within {within(diagnosis.k)}"
        return [classes.get(query) for query in range(first.n_queries)], about
    own = intervals.tags_of(results, tag, "tag")
    if own is not None:
        return own, ""
    if tag == DIAGNOSED and len(results) == 1:
        problem = f": {tag!r} divides by what a diagnosis found, and there is none"
        fix = Advice("pass {}, what diagnose returned", diagnosis=...)
        raise InvalidInput("tag", problem, fix)
    if tag not in BUILT_IN_TAGS:
        known = [name for result in results for name in result.tags]
        refused = errors.unknown("tag", tag, [*known, *BUILT_IN_TAGS])
        meant = f"{refused.fix} Otherwise, " if refused.fix else ""
        raise InvalidInput("tag", refused.problem, f"{meant}{_HOW_TO_TAG}")
    about, values_of = BUILT_IN_TAGS[tag]
    # Another result may have kept what it takes.
    for result in results[:-1]:
        with suppress(InvalidInput):
            return values_of(result), about
    return values_of(results[-1]), about


def _n_items(result: ResultFacts) -> Sequence[Tag]:
    items: list[Tag] = result.tables[result.k[0]]["ground_truth"].tolist()
    return items


def _question_lengths(result: ResultFacts) -> Sequence[Tag]:
    questions = _questions(result, "question_length")
    lengths = lengths_of([one or "" for one in questions], "w", None).tolist()
    return [None if q is None else n for q, n in zip(questions, lengths, strict=True)]


def _languages(result: ResultFacts) -> Sequence[Tag]:
    return [None if one is None else _language(one) for one in _questions(result, "language")]


def _questions(result: ResultFacts, tag: str) -> list[str | None]:
    """Return the questions, where queries are labelled by them.

    Raises:
        InvalidInput: If none is.
    """
    questions = [label if isinstance(label, str) else None for label in result.labels]
    if not any(questions):
        problem = f": {tag!r} looks at the questions, and this result does not know them"
        raise InvalidInput("tag", problem, Advice("evaluate with {}", queries=...))
    return questions


def _golden_lengths(result: ResultFacts) -> Sequence[Tag]:
    """Return the words of each query's longest item; of alternatives, the shortest counts.

    Raises:
        InvalidInput: If the result keeps no texts.
    """
    evidence = result.evidence
    texts = None if evidence is None else evidence.texts
    are_ids = texts and texts.are_ids and texts.queries.texts_only[0] and not texts.were_saved
    if evidence is None or texts is None or are_ids:
        problem = ": 'golden_length' looks at texts of the ground truth, which are not kept here"
        fix = "evaluate in memory; to save it, to_json(path, texts=True)"
        raise InvalidInput("tag", problem, fix)
    longest: list[Tag] = [None] * result.n_queries
    for query, number in evidence.items():
        alternatives = texts.actual(query)[number - 1]
        words = int(lengths_of(alternatives, "w", None).min())
        longest[query] = max(words, int(longest[query] or 0))
    return longest


#: Built-in tag -> what it is, and what gives its value for each query.
BUILT_IN_TAGS: Mapping[str, tuple[str, Callable[[ResultFacts], Sequence[Tag]]]] = {
    "items": (N_("ground-truth items"), _n_items),
    "question_length": (N_("words of the question"), _question_lengths),
    "golden_length": (N_("words of the longest ground-truth item"), _golden_lengths),
    "language": (N_("language as the script tells it"), _languages),
}


def check_diagnosed(diagnosis: object, result: ResultFacts) -> None:
    """Refuse a diagnosis of other queries, of other ground truth, or of another result.

    Raises:
        InvalidType: If it is no diagnosis.
        InvalidInput: If it is of another result; the message says where they differ.
    """
    fix = "pass what diagnose of this result returned"
    if not isinstance(diagnosis, Diagnosis):
        raise errors.must("diagnosis", "be a Diagnosis", diagnosis, fix, errors.InvalidType)
    own = told_apart_by(result.rows, result.settings, result.evidence)
    for part, digest in own.items():
        if diagnosis.of.get(part, digest) != digest:
            raise InvalidInput("diagnosis", f"is of another result: the {part} differ", fix)


#: The tag that divides by what a diagnosis found.
DIAGNOSED = "diagnosis"

_LANGUAGES = {"HANGUL": "Korean", "HIRAGANA": "Japanese", "KATAKANA": "Japanese"}
_HAN = "Han script"
_BY_LETTERS = {*_LANGUAGES.values(), _HAN,
               *(f"{one} script" for one in ("Thai", "Lao", "Khmer", "Myanmar"))}  # fmt: skip


def _language(question: str) -> str | None:
    """Return the language as far as the script of most words tells it; ``None`` without letters.

    A word with some Hangul is Korean, one with some kana Japanese; Han characters go with these. A
    question that coverage would read by letters is of one of the languages that it reads so.

    >>> [_language(one) for one in ("RAG에서 recall이란?", "What is 김치 made of?", "東京の天気")]
    ['Korean', 'Latin script', 'Japanese']
    >>> _language("A B C 대한민국만세")
    'Korean'
    """
    words = Counter(script for word in question.split() if (script := _script(word)))
    if ByScript().by_letters([question]):
        words = Counter({one: n for one, n in words.items() if one in _BY_LETTERS}) or words
    for language in set(_LANGUAGES.values()) & words.keys():
        words[language] += words.pop(_HAN, 0)
    return max(words, key=lambda one: (words[one], one), default=None)


def _script(word: str) -> str | None:
    scripts = Counter(_script_of(letter) for letter in word if letter.isalpha())
    for language in _LANGUAGES.values():
        if language in scripts:
            return language
    return max(scripts, key=lambda one: (scripts[one], one), default=None)


def _script_of(letter: str) -> str:
    names = unicodedata.name(letter, "UNKNOWN").split()
    first = names[1] if names[0] in ("FULLWIDTH", "HALFWIDTH") and len(names) > 1 else names[0]
    if first == "CJK":
        return _HAN
    return _LANGUAGES.get(first, f"{first.capitalize()} script")


def _divided(tag: str, values: Sequence[Tag]) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the slices in order, and the slice of each query.

    Numbers ascend; other values come with the most frequent first; what has none is last.
    """
    # True is not 1, though they are equal.
    keys = [None if value is None else (isinstance(value, bool), value) for value in values]
    known = [key for key in keys if key is not None]
    is_number = (not is_bool and _is_number(value) for is_bool, value in known)
    names = dict(_by_number(known) if all(is_number) else _by_name(known, f"(no {tag})"))
    names |= {None: f"(no {tag})"} if None in keys else {}
    places = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}
    return tuple(places), np.array([places[names[key]] for key in keys], np.int64)


def _is_number(value: Tag) -> bool:
    """Tell whether a value can be divided at quartiles: a number that a float holds."""
    return isinstance(value, (int, float)) and abs(value) < _LARGEST


#: Whether a value is a bool, and the value; ``None`` for no value.
_Key: TypeAlias = tuple[bool, Tag] | None


def _by_number(keys: Sequence[tuple[bool, Any]]) -> Iterator[tuple[_Key, str]]:
    """Name numbers by themselves if they are few, else by one of four parts at the quartiles."""
    numbers = np.array([value for _, value in keys], np.float64)
    ordered = sorted(set(keys))
    cuts = np.unique(numbers)
    if len(ordered) > _MOST_VALUES:
        cuts = np.unique(np.quantile(numbers, [*_QUARTILES, 1.0], method="inverted_cdf"))
    place = np.searchsorted(cuts, [float(value) for _, value in ordered])
    parts = [[ordered[i] for i in np.flatnonzero(place == at)] for at in range(len(cuts))]
    written = iter(_written([float(end) for part in parts for _, end in (part[0], part[-1])]))
    for part, low, high in zip(parts, written, written, strict=True):
        yield from dict.fromkeys(part, low if low == high else f"{low} – {high}").items()


def _written(bounds: Sequence[float]) -> list[str]:
    """Write numbers with the digits it takes to tell them apart."""
    texts: list[str] = []
    for digits in range(6, 18):
        texts = [
            str(int(one)) if one.is_integer() and abs(one) < 1e15 else f"{one:.{digits}g}"
            for one in bounds
        ]
        if len(set(texts)) == len(set(bounds)):
            break
    return texts


def _by_name(keys: Sequence[tuple[bool, Tag]], taken: str) -> Iterator[tuple[_Key, str]]:
    """Name values by what they are; in quotes where a text reads like another value."""
    counts = Counter(keys)
    times = Counter([taken, *(str(value) for _, value in counts)])
    for key in sorted(counts, key=lambda key: (-counts[key], str(key[1]))):
        value = key[1]
        is_quoted = isinstance(value, str) and times[value] > 1
        yield key, json.dumps(value, ensure_ascii=False) if is_quoted else str(value)


# What is measured of them.


def only_within(result: ResultFacts, chosen: BoolArray, cutoffs: Iterable[Cutoff]) -> ResultFacts:
    """Return a result of some of the counted queries, at some of its cutoffs."""
    at = np.flatnonzero(result.counted)[chosen]
    tables = {
        k: {name: column[at] for name, column in result.tables[k].items()}
        for k in dict.fromkeys(cutoffs)
    }
    labels = [result.labels[place] for place in at.tolist()]
    rows = RowsInMemory(labels, tables, np.ones(len(at), np.bool_))
    return replace(result, rows=rows, totals=None, evidence=None, retrieval=None)


def _measured(
    result: ResultFacts,
    averages: Mapping[str, tuple[Average, Cutoff]],
    division: Division,
    sampling: Sampling,
) -> list[Slice]:
    """Return the rows: slice by slice, metric by metric; what costs most on the first one first."""
    rows = _with_values(result, averages, division)
    if division.n_large * len(averages) <= MOST_TESTS:
        for sample in _samples(result, averages, division):
            if not sample.of_shares:
                _fill_in_averages(rows, sample, sampling)
                continue
            for key in product(sample.large, sample.names):
                rows[key] = _as_share(rows[key], sample, sampling.level)
    first = next(iter(averages))
    cost = np.nan_to_num([rows[i, first].loss_share for i in range(len(division.names))])
    return [rows[key] for key in product(np.argsort(-cost, kind="stable").tolist(), averages)]


def _with_values(
    result: ResultFacts,
    averages: Mapping[str, tuple[Average, Cutoff]],
    division: Division,
) -> dict[tuple[int, str], Slice]:
    """Return the rows with the averages of each slice and of all other queries."""
    rows = {}
    defined = {name: _defined(result, *one) for name, one in averages.items()}
    lost = {name: _lost(result, *one) for name, one in averages.items()}
    cutoffs = [k for _, k in averages.values()]
    for number, slice_name in enumerate(division.names):
        inside = division.place == number
        enough = np.count_nonzero(inside) >= FEWEST_QUERIES
        here = only_within(result, inside, cutoffs) if enough else result
        there = only_within(result, ~inside, cutoffs) if enough and not inside.all() else None
        for name, (average, k) in averages.items():
            row = Slice(slice_name, name, int(np.count_nonzero(inside & defined[name])))
            if lost[name].any():
                share = math.fsum(lost[name][inside].tolist()) / math.fsum(lost[name].tolist())
                row = replace(row, loss_share=share)
            if row.n >= FEWEST_QUERIES:
                value = here.averages(k)[average.key]
                rest = math.nan if there is None else there.averages(k)[average.key]
                row = replace(row, value=value, rest=rest, difference=value - rest)
            rows[number, name] = row
    return rows


def _defined(result: ResultFacts, average: Average, k: Cutoff) -> BoolArray:
    """Return for which of the counted queries an average is defined."""
    defined = np.ones(int(np.count_nonzero(result.counted)), np.bool_)
    for _top, bottom in average.ratios:
        if bottom.startswith(DEFINED):
            defined &= intervals.per_query(result, bottom, k) > 0
    return defined


def _lost(result: ResultFacts, average: Average, k: Cutoff) -> FloatArray:
    """Return what each counted query lacks to the best value; 0 where none is known."""
    best = (average.range or (math.nan, math.nan))[not average.lower_is_better]
    top, bottom = average.ratios[0] if len(average.ratios) == 1 else (average.column, QUERIES)
    lacks = best * intervals.per_query(result, bottom, k) - intervals.per_query(result, top, k)
    lacks = np.nan_to_num(-lacks if average.lower_is_better else lacks, posinf=0.0)
    return np.maximum(lacks, 0.0)


class _Sample(NamedTuple):
    """Averages that are defined for the same queries, and the slice of each of these.

    Attributes:
        names: The averages.
        sums: What they are made of.
        place: The slice of each query.
        large: The slices with enough queries.
        of_shares: Whether each average is a share of the queries: by its nature from 0 to 1, and
            here the mean of zeros and ones.
    """

    names: tuple[str, ...]
    sums: QuerySums
    place: IntArray
    large: list[int]
    of_shares: bool

    @property
    def each(self) -> list[QuerySums]:
        """What each average is made of, by itself."""
        return [self.sums.only(i) for i in range(len(self.names))]


def _samples(
    result: ResultFacts,
    averages: Mapping[str, tuple[Average, Cutoff]],
    division: Division,
) -> Iterator[_Sample]:
    """Yield the averages together that the same queries are drawn for, if there are any."""
    groups: dict[tuple[bytes, bool], list[str]] = {}
    for name, (average, k) in averages.items():
        defined = _defined(result, average, k)
        of_shares = average.is_mean and average.range == (0.0, 1.0)
        if of_shares:
            values = intervals.per_query(result, average.column, k)[defined]
            of_shares = bool(np.isin(values, (0.0, 1.0)).all())
        if defined.any():
            groups.setdefault((defined.tobytes(), of_shares), []).append(name)
    for (mask, of_shares), names in groups.items():
        defined = np.frombuffer(mask, np.bool_)
        sums = QuerySums.of(result, [averages[name] for name in names])
        sums, place = replace(sums, columns=sums.columns[defined]), division.place[defined]
        sizes = np.bincount(place, minlength=len(division.names))
        large: list[int] = np.flatnonzero(sizes >= FEWEST_QUERIES).tolist()
        yield _Sample(tuple(names), sums, place, large, of_shares)


def _as_share(row: Slice, sample: _Sample, level: float) -> Slice:
    """Fill in what is known of a share of queries without drawing any."""
    low, high = intervals.wilson(row.value, row.n, level)
    row, n_rest = replace(row, low=low, high=high), len(sample.place) - row.n
    if n_rest < FEWEST_QUERIES:
        return row
    of_rest = intervals.wilson(row.rest, n_rest, level)
    bounds = difference_of_shares(row.rest, of_rest, row.value, (low, high))
    p = _exact_p(round(row.value * row.n), row.n, round(row.rest * n_rest), n_rest)
    return replace(row, ci_low=bounds[0], ci_high=bounds[1], p_permutation=p)


def _exact_p(hits: int, n: int, hits_of_rest: int, n_rest: int) -> float:
    """Return how often dealing out the hits at random sets two shares as far apart, or further.

    How many a slice gets has the hypergeometric distribution.

    >>> round(_exact_p(3, 3, 0, 3), 12)  # 2 of the 20 ways to choose 3 of 6
    0.1
    """
    total = hits + hits_of_rest
    dealt = np.arange(max(0, total - n_rest), min(n, total) + 1)
    left = dealt[:-1]
    # How many ways there are to one more, for each way; they rise to a mode and fall from there.
    ratios = ((n - left) * (total - left)) / ((left + 1) * (n_rest - total + left + 1))
    mode = int(np.count_nonzero(ratios > 1))
    above = np.multiply.accumulate(ratios[mode:])
    below = np.multiply.accumulate(1 / ratios[:mode][::-1])[::-1]
    ways = np.concatenate([below, [1.0], above])
    # How far apart, times n * n_rest: in whole numbers.
    apart = np.abs(dealt * n_rest - (total - dealt) * n)
    extreme = apart >= abs(hits * n_rest - hits_of_rest * n)
    p = math.fsum(ways[extreme]) / math.fsum(ways)
    return max(p, float(np.finfo(np.float64).tiny))  # no evidence makes it 0


def _fill_in_averages(
    rows: dict[tuple[int, str], Slice], sample: _Sample, sampling: Sampling
) -> None:
    """Fill in intervals and p of averages that are no shares of queries.

    The interval is the one that ``confidence_intervals`` gives for these queries alone.
    """
    spans, columns = _side_by_side(sample)
    # Streams of their own, independent of those that intervals and paired tests draw from.
    resampled = intervals.drawn_sums(columns, spans, sampling.n_resamples, [sampling.seed, 2])
    permuted = _permuted(columns, spans, sampling.n_resamples, [sampling.seed, 3])
    for place, number in enumerate(sample.large):
        inside = sample.place == number
        parts = [replace(one, columns=one.columns[inside]) for one in sample.each]
        statistics = [(one.columns, partial(one.average, 0)) for one in parts]
        drawn = intervals.resampled(statistics, sampling)
        apart, dealt = (_apart(sample.each, one, place) for one in (resampled, permuted))
        for i, (name, own) in enumerate(zip(sample.names, parts, strict=True)):
            row, level = rows[number, name], sampling.level
            left_out = np.sort(own.leave_one_out()[:, 0])
            low, high = intervals.interval_of(own, 0, row.value, level, drawn[i], left_out)
            row = rows[number, name] = replace(row, low=low, high=high)
            n_rest = len(sample.place) - len(own.columns)
            if n_rest < FEWEST_QUERIES or math.isnan(row.difference):
                continue
            low, high = intervals.interval(apart[i], row.difference, level)
            rounding = intervals.ROUNDING * max(abs(row.value), abs(row.rest))
            # What is undefined counts as extreme, so that p errs towards no difference.
            extreme = ~(np.abs(dealt[i]) < abs(row.difference) - rounding)
            # Never 0: Phipson, Smyth 2010.
            p = (int(np.count_nonzero(extreme)) + 1) / (len(extreme) + 1)
            rows[number, name] = replace(row, ci_low=low, ci_high=high, p_permutation=p)


def _side_by_side(sample: _Sample) -> tuple[list[tuple[int, int]], FloatArray]:
    """Return where each large slice stands, and the columns in that order, the others last.

    Within each slice the queries of every average are in an order of their own, by value, and so
    are those of the others. One more column counts the queries.
    """
    masks = [sample.place == number for number in sample.large]
    masks.append(~np.isin(sample.place, sample.large))
    ends = np.cumsum([np.count_nonzero(mask) for mask in masks]).tolist()
    columns = [
        np.concatenate([intervals.in_order(one.columns[mask]) for mask in masks])
        for one in sample.each
    ]
    return list(pairwise([0, *ends])), np.concatenate([*columns, np.ones((ends[-1], 1))], axis=1)


def _apart(each: Sequence[QuerySums], drawn_sums: FloatArray, place: int) -> list[FloatArray]:
    """Return each average of a slice less that of all others; NaN where one has no query."""
    all_rest = drawn_sums.sum(axis=1) - drawn_sums[:, place]
    is_empty = (drawn_sums[:, place, -1] == 0) | (all_rest[:, -1] == 0)
    ends = np.cumsum([one.columns.shape[1] for one in each])
    found = []
    for one, inside, rest in zip(
        each, np.split(drawn_sums[:, place], ends, axis=1), np.split(all_rest, ends, axis=1),
        strict=False,  # the last column counts
    ):  # fmt: skip
        found.append(np.where(is_empty, np.nan, one.average(0, inside) - one.average(0, rest)))
    return found


def _permuted(
    columns: FloatArray, spans: Sequence[tuple[int, int]], n_resamples: int, seed: Sequence[int]
) -> FloatArray:
    """Return the sums of each slice where queries are dealt out at random; the sizes stay."""
    n, sizes = len(columns), np.array([last - first for first, last in spans])
    rng = np.random.default_rng(seed)
    filled = np.flatnonzero(sizes)  # the others may be none
    starts = [spans[place][0] for place in filled.tolist()]
    varies = np.ptp(columns, axis=0) > 0
    alike = np.where(varies, 0.0, columns[0]) * sizes[:, np.newaxis]
    sums = np.tile(alike, (n_resamples, 1, 1))
    parts = [np.ascontiguousarray(part.T) for part in exact_parts(columns)]
    for start, stop in intervals.blocks(n_resamples, n):
        order = rng.permuted(np.tile(np.arange(n), (stop - start, 1)), axis=1)
        for part in parts:
            for number in np.flatnonzero(varies & part.any(axis=1)).tolist():
                dealt = np.add.reduceat(np.take(part[number], order), starts, axis=1)
                sums[start:stop, filled, number] += dealt
    return sums


def _corrected(rows: Sequence[Slice]) -> list[Slice]:
    """Correct p for the number of tests by Holm (1979)."""
    same = _same_tests(rows)
    asked = [i for i in range(len(rows)) if i not in same]
    corrected = dict(zip(asked, paired.holm([rows[i].p_permutation for i in asked]), strict=True))
    return [replace(row, p_holm=corrected[same.get(i, i)]) for i, row in enumerate(rows)]


def _same_tests(rows: Sequence[Slice]) -> dict[int, int]:
    """Return the rows whose test is that of an earlier one: row -> the earlier row.

    Where all queries are in two slices, each is the rest of the other.
    """
    of_metric: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        if row.n:
            of_metric.setdefault(row.metric, []).append(i)
    return {several[1]: several[0] for several in of_metric.values() if len(several) == 2}


def difference_of_shares(
    a: float, of_a: tuple[float, float], b: float, of_b: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of b minus a, two independent shares with their score intervals.

    The hybrid score interval: method 10 of Newcombe (1998), *Interval estimation for the difference
    between independent proportions*.
    """
    low = math.hypot(b - of_b[0], of_a[1] - a)
    high = math.hypot(of_b[1] - b, a - of_a[0])
    return b - a - low, b - a + high
