"""Few labels of people beside many of a model: :func:`debias` corrects these by those.

It knows values per question, and not how they came about. scipy and pandas load when they are
needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval import errors
from krag_eval._doors import Shown
from krag_eval._language import _
from krag_eval.documents import DocumentLike, id_of, is_blank, read_id, read_text
from krag_eval.errors import Advice, InvalidInput, InvalidType, clipped, must, number, warn
from krag_eval.matching.identity import same
from krag_eval.results.result import EvaluationResult
from krag_eval.scoring.averages import DEFINED, QUERIES, Average
from krag_eval.scoring.cutoffs import Budget, Cutoff, spelled
from krag_eval.scoring.metrics import METRICS
from krag_eval.statistics.comparison import check_same_metrics, checked_metrics, some
from krag_eval.statistics.intervals import (
    FEW_CLUSTERS,
    FEW_QUERIES,
    QuerySums,
    told_untagged,
    wilson,
)

if TYPE_CHECKING:
    import pandas as pd

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
# What is counted of a question within a cutoff, whatever the metric.
_COUNTED = ("retrieved", "relevant", "covered")
#: Argument -> what came in it, one for each system.
_Given: TypeAlias = Mapping[str, Sequence[Any]]

#: From so many labels or clusters on, the normal distribution serves, as in ppi-python.
MANY = 100
# With fewer labels of 0 and 1, no interval keeps its level (benchmarks/few_labels.py).
_FEWEST_LABELS = 10
#: Shares of a scale below this are rounding.
NOTHING = 1e-9
_HUMAN, _JUDGE, _UNLABELLED = "human", "judge", "unlabelled"
# Settings that the parts of a run may differ in, and those that come with the kind of labels.
_OF_THE_RUN = ("averaging", "k", "krag_eval", "metrics", "queries", "retrieved")
_OF_THE_LABELS = ("grades", "judge", "length", "matcher", "threshold")


def debias(
    *,
    human: Any,
    judge: Any,
    unlabelled: Any,
    metric: str | Iterable[str] | None = None,
    clusters: str | None = None,
    level: float = 0.95,
) -> Debiased:
    """Estimate what people would find, from their labels of a few questions and a model's of many.

    A judge that is too generous is so on the questions that people labelled as well, and there it
    can be corrected. The interval keeps its level whatever the judge's errors, if **the labelled
    questions are a random sample of those asked**: not the hard ones, and not the first ones
    (prediction-powered inference; Angelopoulos, Duchi and Zrnic, *PPI++*, arXiv 2311.01453). With
    Y and F the values of the n labelled questions by people and by the judge, and U the judge's
    values of the N others:

    - value = λ·mean(U) + mean(Y - λF), variance = λ²·Var(U)/N + Var(Y - λF)/n;
    - λ = Cov(Y, F) / ((1 + n/N)·Var(F and U together)), at least 0 and at most 1: the more the two
      agree, the more the judge counts.

    Under 100 labels the interval is that of Student's t with n - 1 degrees of freedom. Averages
    that are no means, such as the micro ones, go by their jackknife pseudo-values.

    **Where people's labels are all 0 or 1**, as of a hit rate, the interval is the score interval
    (Wilson 1927) of as many labels as would tell as much: n·Var(Y)/(n·variance). In both variances
    four made-up questions are added to the labelled ones, 0 and 1 by people with the lowest and
    the highest value of the judge each. So no interval is without a width, and a judge that never
    erred on a few labels may err yet. The value is the same.

    The labels must be **of the same lists**. Where results hold the documents, or know them by
    keys, each list is compared, whatever the matchers: by the texts, or by the ids of documents
    that have no text on one side; otherwise the numbers of documents are, and what was found where
    people and judge have the same ground truth; the summary says if that was all.

    To compare two systems, name both in each place, ``human={"bm25": …, "dense": …}``: the value is
    that of the second less that of the first, from paired differences.

    Args:
        human: The labelled questions under the ground truth of people: a result, also a saved one;
            or one value per question: a list, an array, a Series or a mapping by label.
        judge: The same questions under the judge's ground truth. It may hold more of them, so
            that ``judge`` and ``unlabelled`` can be one result.
        unlabelled: All questions asked, under the judge's ground truth. The labelled ones must be
            among them, and count once. If one of the three is a list or an array, whose values have
            no labels, the other questions alone.
        metric: An average at a cutoff, or several, such as ``"ndcg@10"``; all that the results
            share if not given. Not for plain values.
        clusters: A tag of the queries, such as ``"source"``: questions with the same value of it
            depend on each other; one without a value is a cluster of its own. The variance is then
            that of whole clusters (with C/(C - 1), as in arXiv 2411.00640), and the degrees of
            freedom are C - 1. Not for plain values.
        level: How often the interval should cover the true value, between 0 and 1.

    Returns:
        A :class:`Debiased` with one :class:`DebiasedValue` per metric: its ``.table``, a
        ``.summary()`` in plain sentences, ``debiased["ndcg@10"]``, and ``.value``, ``.low`` and
        ``.high`` of the only metric. They are NaN where an average is undefined for one part of
        the questions, and never leave the range of a metric.

    Raises:
        InvalidType: If an argument is of another type, or results and plain values are mixed.
        InvalidInput: If a labelled question is not among those asked or lacks the judge's labels,
            fewer than 10 are labelled or than two are not, labels do not tell questions apart,
            results are of other lists, the judge's two have other ground truth, settings differ, or
            a metric or a tag is unknown.

    Warns:
        KragEvalWarning: If fewer than 30 questions are labelled, they are of fewer than 20 clusters
            or lack the tag, all of them have the same value, or people and judge have the same
            ground truth everywhere.

    >>> people = [1, 0, 0.5, 1, 1, 0, 0.5, 1, 0, 1] * 4
    >>> model = [1, 0.5, 0.5, 1, 0.5, 0, 1, 1, 0, 1] * 4
    >>> debiased = debias(human=people, judge=model, unlabelled=[1, 1, 0.5, 0, 0.5, 1] * 80)
    >>> [round(number, 3) for number in (debiased.value, debiased.low, debiased.high)]
    [0.615, 0.524, 0.706]
    """
    if not 0.0 < number("level", level, 0, 1) < 1.0:
        raise InvalidInput("level", f"must be between 0 and 1, such as 0.95, got {level!r}")
    given, systems = _by_system({_HUMAN: human, _JUDGE: judge, _UNLABELLED: unlabelled})
    of_results = _are_results(given)
    metrics: dict[str, tuple[str, Cutoff]] = {"value": ("value", None)}
    if of_results:
        metrics = _metrics(given, metric)
        _check_settings(given)
    elif metric is not None or clusters is not None:
        argument = "clusters" if metric is None else "metric"
        raise InvalidInput(argument, "is for results, and these are plain values", "leave it out")
    if clusters is not None:
        errors.text("clusters", clusters, "the name of a tag")
    parts = _Parts.of(given, metrics, clusters)
    compared_by = _compared_by(given) if of_results else None
    _warn_of_few(parts)
    values = tuple(_debiased(parts, i, name, systems, level) for i, name in enumerate(metrics))
    _warn_of_sameness(values, given)
    counts = parts.n_labelled, parts.n_asked
    return Debiased(values, float(level), *counts, systems, clusters, compared_by)


@dataclass(frozen=True)
class DebiasedValue:
    """One metric as people would find it: its value, its interval, and what either side says alone.

    Of two systems all numbers are those of the second less those of the first.

    Attributes:
        metric: The average and its cutoff, such as ``"ndcg@10"``; ``"value"`` of plain values.
        value: The estimate.
        low: Lower bound of its interval.
        high: Upper bound.
        human: What the labels of people say alone, of the questions they labelled.
        human_low: Lower bound of the interval from these alone.
        human_high: Upper bound.
        judge: What the judge says alone, of all questions asked.
        correlation: How well people and judge agree on the labelled questions, from -1 to 1; NaN
            where one of them has one value for all.
        weight: How much the judge counts, λ, from 0 to 1.
        average: How the metric is made and read: its direction, its labels.
        labels_differ: Whether people gave different values to some questions. If not, nothing is
            said of the judge.
    """

    metric: str
    value: float
    low: float
    high: float
    human: float
    human_low: float
    human_high: float
    judge: float
    correlation: float
    weight: float
    average: Average | None = field(default=None, repr=False)
    labels_differ: bool = True

    @property
    def saved(self) -> float:
        """By which share the interval is narrower than that of people's labels alone."""
        alone = self.human_high - self.human_low
        return 1 - (self.high - self.low) / alone if alone > 0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Debiased(Shown):
    """What people would find of all questions, by metric; made by :func:`debias`.

    Attributes:
        values: One per metric.
        level: The level of the intervals.
        n_labelled: Number of questions that people labelled.
        n_asked: Number of all questions, these among them.
        systems: The two systems whose difference it is, the second less the first; empty for one.
        clusters: The tag of the clusters; ``None`` if questions count as independent.
        compared_by: By what the lists of people and judge are known to be the same:
            ``"documents"``, or ``"counts"`` alone, where some result does not hold the documents;
            ``None`` for plain values, of which nothing is known.
    """

    values: tuple[DebiasedValue, ...]
    level: float
    n_labelled: int
    n_asked: int
    systems: tuple[str, ...] = ()
    clusters: str | None = None
    compared_by: Literal["documents", "counts"] | None = None

    @property
    def metrics(self) -> list[str]:
        """The metrics, such as ``"ndcg@10"``."""
        return [one.metric for one in self.values]

    def __getitem__(self, metric: str) -> DebiasedValue:
        """Return the numbers of one metric.

        Raises:
            InvalidInput: If there is none of that name, listing those that there are.
        """
        for one in self.values:
            if one.metric == metric:
                return one
        raise errors.unknown("metric", metric, self.metrics)

    @property
    def value(self) -> float:
        """The estimate, of the only metric."""
        return self._only.value

    @property
    def low(self) -> float:
        """The lower bound of its interval."""
        return self._only.low

    @property
    def high(self) -> float:
        """The upper bound of its interval."""
        return self._only.high

    @property
    def _only(self) -> DebiasedValue:
        if len(self.values) > 1:
            fix = f"name one of them, such as debiased[{self.values[0].metric!r}].value"
            raise InvalidInput("metric", f": there are {len(self.values)} metrics", fix)
        return self.values[0]

    @property
    def table(self) -> pd.DataFrame:
        """One row per metric: the numbers of :class:`DebiasedValue`, and ``saved``."""
        import pandas as pd

        others = ("metric", "average", "labels_differ")
        names = [one.name for one in fields(DebiasedValue) if one.name not in others]
        names.append("saved")
        rows = [[getattr(one, name) for name in names] for one in self.values]
        return pd.DataFrame(rows, index=pd.Index(self.metrics, name="metric"), columns=names)


# What came, and whether it can be used.


def _by_system(given: Mapping[str, Any]) -> tuple[_Given, tuple[str, ...]]:
    """Return what each argument holds, per system; and the two systems, none for one alone."""
    named = {argument: value for argument, value in given.items() if _names_systems(value)}
    if not named:
        return {argument: [value] for argument, value in given.items()}, ()
    systems = tuple(next(iter(named.values())))
    for argument, value in given.items():
        if argument not in named:
            problem = f"must name the systems as well, {systems!r}, got {type(value).__name__}"
            raise InvalidType(argument, problem)
        if len(value) != 2 or set(value) != set(systems):
            allowed = "must name the same two systems in each place"
            raise InvalidInput(argument, f"{allowed}, got {clipped(list(value))}")
    return {name: [value[one] for one in systems] for name, value in given.items()}, systems


def _names_systems(value: object) -> bool:
    """Tell systems by name from values by label."""
    return isinstance(value, Mapping) and not all(map(_is_number, value.values()))


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, np.bool_))


def _are_results(given: _Given) -> bool:
    """Tell results from plain values, which do not mix."""
    every = [(argument, one) for argument, systems in given.items() for one in systems]
    of_results = isinstance(every[0][1], EvaluationResult)
    for argument, one in every:
        if isinstance(one, EvaluationResult) != of_results:
            allowed = "an EvaluationResult" if of_results else "one value per question"
            raise InvalidType(argument, f"must be {allowed}, as human is, got {type(one).__name__}")
    return of_results


def _metrics(given: _Given, metric: object) -> dict[str, tuple[str, Cutoff]]:
    """Return the averages to estimate: spelling -> (key, cutoff)."""
    results = {
        f"{argument} {place}" if len(systems) > 1 else argument: one
        for argument, systems in given.items()
        for place, one in enumerate(systems, start=1)
    }
    if metric is not None:
        chosen = checked_metrics(results, metric)
        check_same_metrics(results, chosen)
        return chosen
    first, *others = results.values()
    shared = {
        f"{key}@{spelled(k)}": (key, k)
        for k in first.k
        if all(k in other.k for other in others)
        for key in first.averages(k)
        if all(key in other.averages(k) for other in others)
    }
    if not shared:
        problem = ": there is no average at a cutoff that all of the results have"
        raise InvalidInput(_JUDGE, problem, "Evaluate all with the same k")
    check_same_metrics(results, shared)
    return shared


def _check_settings(given: _Given) -> None:
    """Refuse results of other rules; the kind of documents may differ between people and judge."""
    (human, *humans), judge = given[_HUMAN], given[_JUDGE][0]
    for one in humans:
        _refuse_other_settings(_HUMAN, one, human, _OF_THE_RUN)
    _refuse_other_settings(_JUDGE, judge, human, (*_OF_THE_RUN, *_OF_THE_LABELS))
    for argument in (_JUDGE, _UNLABELLED):
        for one in given[argument]:
            _refuse_other_settings(argument, one, judge, _OF_THE_RUN)


def _refuse_other_settings(
    argument: str, one: EvaluationResult, other: EvaluationResult, ignored: Sequence[str]
) -> None:
    # How many queries lack ground truth may differ.
    ours, theirs = (
        {name: value.partition("(")[0] if name == "no_ground_truth" else value
         for name, value in result.settings.items()}
        for result in (one, other)
    )  # fmt: skip
    differing = [
        f"{name}: {theirs.get(name, '?')} vs {ours.get(name, '?')}"
        for name in {**theirs, **ours}
        if name not in ignored and same(ours.get(name, "?"), theirs.get(name, "?")) is False
    ]
    if differing:
        problem = f"was evaluated with other settings than the others: {'; '.join(differing)}"
        raise InvalidInput(argument, problem, "Evaluate all with the same settings")


# Whether people and judge saw the same lists.


def _compared_by(given: _Given) -> Literal["documents", "counts"]:
    """Refuse results of other lists, or a judge of two minds; tell how the lists were compared.

    Raises:
        InvalidInput: If labelled questions have other documents, or other ground truth where it
            must be the same.
    """
    seen = []
    for human, judge, asked in zip(*(given[argument] for argument in given), strict=True):
        seen.append(_check_lists(_JUDGE, human, judge, human.labels))
        if asked is not judge:
            seen.append(_check_lists(_UNLABELLED, judge, asked, human.labels))
            _check_ground_truth(_UNLABELLED, _JUDGE, judge, asked, human.labels)
    for argument in (_HUMAN, _JUDGE):
        first, *others = given[argument]
        # Verdicts are on the claims of an answer, and each system gives its own.
        for other in others if "judge" not in first.settings else ():
            labels = given[_HUMAN][0].labels
            _check_ground_truth(argument, "the first system", first, other, labels)
    return "documents" if all(seen) else "counts"


class _Facts(NamedTuple):
    """What is known of the lists and of the ground truth of some questions; ``None`` where not.

    Attributes:
        listed: Number of documents, whatever the cutoff.
        counts: Within each cutoff, the numbers of all documents, of relevant ones and of covered
            items; none where unjudged documents are left out.
        keys: What the documents are known by, where it is known what was looked at.
        texts: Texts and ids of the documents.
        truth: What tells the ground truth from another one.
    """

    listed: list[int] | None
    counts: dict[Cutoff, list[tuple[int, ...]]]
    keys: list[list[_Names]] | None
    texts: list[list[_Names]] | None
    truth: list[str] | None

    @classmethod
    def of(cls, result: EvaluationResult, labels: Sequence[Any]) -> _Facts:
        position = {label: place for place, label in enumerate(result.labels)}
        at = [position[label] for label in labels]
        tables = {} if result.settings.get("unjudged") == "leave_out" else result.tables
        counts = {
            k: [tuple(int(table[name][i]) for name in _COUNTED) for i in at]
            for k, table in tables.items()
        }
        digests, judged, evidence = result.rows.digests, result.rows.judged, result.evidence
        truth = None if digests is None else [digests[i].rpartition("-")[2] for i in at]
        keys = None if judged is None else [[("", key) for key in judged.keys[i]] for i in at]
        if evidence is None:
            return cls(None, counts, keys, None, truth)
        listed = evidence.relevance.n_retrieved[at].tolist()
        if evidence.texts is None:
            return cls(listed, counts, keys, None, truth)
        texts = evidence.texts
        are_ids = texts.reading is read_id or getattr(texts, "are_ids", False)
        names = [[_names(one, are_ids) for one in texts.documents(i)] for i in at]
        return cls(listed, counts, keys, names, truth)

    def seen(self, k: Cutoff, in_full: Sequence[bool]) -> list[tuple[int, ...]]:
        """Return what was counted within a cutoff: of some questions all, of others the length."""
        pairs = zip(self.counts[k], in_full, strict=True)
        return [counts if full else counts[:1] for counts, full in pairs]


#: The text of a document and its id, each "" where it has none.
_Names: TypeAlias = tuple[str, str]


def _names(document: DocumentLike, are_ids: bool) -> _Names:
    """Return what a document is called; plain strings may be ids."""
    identity = id_of(document) or ""
    if isinstance(document, str):
        return ("", identity) if are_ids else (document, "")
    text = read_text(document)
    return "" if is_blank(text) else text, identity


def _check_lists(
    argument: str, one: EvaluationResult, other: EvaluationResult, labels: Sequence[Any]
) -> bool:
    """Refuse other lists of the same questions; tell whether the documents were compared."""
    ours, theirs = _Facts.of(one, labels), _Facts.of(other, labels)
    than = _HUMAN if argument == _JUDGE else _JUDGE
    same = {name for name in _OF_THE_LABELS if one.settings.get(name) == other.settings.get(name)}
    same_matcher = {"matcher", "threshold"} <= same

    def check(what: str, our: Sequence[Any] | None, their: Sequence[Any] | None) -> None:
        _refuse_differing(argument, what, than, labels, our, their)

    check("number of documents", ours.listed, theirs.listed)
    # The same ground truth finds the same in the same lists, but for what a judge says another day.
    is_certain = same_matcher and _JUDGE not in one.settings.get("matcher", _JUDGE)
    in_full = [False] * len(labels)
    if is_certain and ours.truth is not None and theirs.truth is not None:
        in_full = [a == b for a, b in zip(ours.truth, theirs.truth, strict=True)]
    for k in ours.counts:
        if k in theirs.counts and ("length" in same or not isinstance(k, Budget)):
            what = f"number of documents at {spelled(k)}, of all or of relevant ones,"
            check(what, ours.seen(k, in_full), theirs.seen(k, in_full))
    compared = []
    # Texts and ids of two matchers can be compared; a key is what one of them looks at, and so is
    # a text where the other side has an id alone.
    for our, their, differ in (
        (ours.texts, theirs.texts, {False, None} if same_matcher else {False}),
        (ours.keys, theirs.keys, {False, None} if same_matcher else set()),
    ):
        if our is not None and their is not None:
            alike = list(map(_are_alike, our, their))
            check("list of documents", [one not in differ for one in alike], [True] * len(labels))
            compared.append(all(alike))
    return any(compared)


def _are_alike(ours: Sequence[_Names], theirs: Sequence[_Names]) -> bool | None:
    """Tell whether two lists are of the same documents, ``None`` where these share no kind of name.

    Where both have a text, it decides; else the id, if both have one.
    """
    if len(ours) != len(theirs):
        return False
    found = list(map(_is_alike, ours, theirs))
    return False if False in found else None if None in found else True


def _is_alike(ours: _Names, theirs: _Names) -> bool | None:
    for our, their in zip(ours, theirs, strict=True):
        if our and their:
            return our == their
    # What a matcher takes for an id may be what another takes for a text.
    return True if ours == theirs or {*ours, ""} & {*theirs} - {""} else None


def _check_ground_truth(
    argument: str, than: str, one: EvaluationResult, other: EvaluationResult, labels: Sequence[Any]
) -> None:
    """Refuse labels that differ where they must be the same."""
    if one.settings.get("matcher") == other.settings.get("matcher"):
        ours, theirs = (_Facts.of(result, labels).truth for result in (one, other))
        _refuse_differing(argument, "ground truth", than, labels, ours, theirs)


def _refuse_differing(
    argument: str,
    what: str,
    than: str,
    labels: Sequence[Any],
    ours: Sequence[object] | None,
    theirs: Sequence[object] | None,
) -> None:
    """Refuse an argument for the questions in which two columns differ, if both are known."""
    rows = zip(labels, ours or (), theirs or (), strict=False)
    places = [label for label, our, their in rows if our != their]
    if places:
        problem = f"is of another run than {than}: the {what} differs for {some(places)}"
        raise InvalidInput(argument, problem, "Evaluate the same lists under both ground truths")


# From results and plain values to numbers per question.


@dataclass(frozen=True)
class _Sample:
    """What one argument says of one system.

    Attributes:
        argument: Its name.
        labels: One per question, each another; ``None`` where only positions tell them apart.
        counted: Whether a question counts in the averages; shape (questions,).
        sums: What the averages are made of, 0 where a question does not count.
        tags: Name -> one value per question.
    """

    argument: str
    labels: list[Any] | None
    counted: BoolArray
    sums: QuerySums
    tags: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.counted)

    def at(self, places: IntArray) -> QuerySums:
        """Return the sums of some of the questions."""
        return replace(self.sums, columns=self.sums.columns[places])

    def places(self, labels: Sequence[Any]) -> IntArray:
        """Return where questions stand.

        Raises:
            InvalidInput: If one is not there.
        """
        position = {label: place for place, label in enumerate(self.labels or ())}
        if lacking := [label for label in labels if label not in position]:
            raise InvalidInput(
                self.argument, f": lacks questions that it must hold: {some(lacking)}"
            )
        return np.array([position[label] for label in labels], np.int64)


def _has_labels(value: object) -> bool:
    """Tell results, mappings and Series from lists and arrays."""
    return isinstance(value, EvaluationResult | Mapping) or _is_series(value)


def _is_series(value: object) -> bool:
    return hasattr(value, "index") and hasattr(value, "to_list")


def _sample(
    argument: str, value: Any, metrics: Mapping[str, tuple[str, Cutoff]], *, by_label: bool
) -> _Sample:
    """Take apart a result, or plain values; by label, if all of them have labels."""
    if not isinstance(value, EvaluationResult):
        return _sample_of_values(argument, value, by_label=by_label)
    averages = tuple((value.definitions[key], k) for key, k in metrics.values())
    places = dict.fromkeys((name, k) for average, k in averages for name in average.sums)
    columns = np.stack([_column(value, *place) for place in places], axis=1)
    sums = QuerySums(columns, {place: i for i, place in enumerate(places)}, averages)
    labels = value.labels
    if labels == list(range(len(labels))):
        raise InvalidInput(
            argument,
            "has no labels of its queries, only their positions, so it is not known which of them "
            "people labelled",
            "Evaluate with a label for each query: queries= in Python, its question in a file",
        )
    return _Sample(argument, distinct(argument, labels), value.counted, sums, value.tags)


def _column(result: EvaluationResult, name: str, k: Cutoff) -> FloatArray:
    """Return what a query adds to one of the sums: nothing, where it does not count."""
    if name == QUERIES:
        return np.asarray(result.counted, np.float64)
    if name.startswith(DEFINED):
        defined = ~np.isnan(result.tables[k][name.removeprefix(DEFINED)])
        return np.asarray(result.counted & defined, np.float64)
    values = np.asarray(result.tables[k][name], np.float64)
    return np.where(result.counted & ~np.isnan(values), values, 0.0)


# Plain values may be anything; whether they can be shares is left to themselves.
_MEAN = Average("value", "value", (("value", QUERIES),))
_SHARE = Average("value", "value", (("value", QUERIES),), range=(0.0, 1.0))


def _sample_of_values(argument: str, given: Any, *, by_label: bool) -> _Sample:
    labels, values = values_by_label(argument, given, by_label=by_label)
    columns = np.stack([values, np.ones(len(values))], axis=1)
    sums = QuerySums(columns, {("value", None): 0, (QUERIES, None): 1}, ((_MEAN, None),))
    return _Sample(argument, labels, np.ones(len(values), np.bool_), sums)


def values_by_label(
    argument: str, given: Any, *, by_label: bool = False
) -> tuple[list[Any] | None, FloatArray]:
    """Return plain numbers and their labels, ``None`` where these are mere positions.

    Args:
        argument: What they came as.
        given: The numbers.
        by_label: Whether 0, 1, … are labels as others are, and not the positions that pandas
            numbers rows by.

    Raises:
        InvalidType: If they are not numbers in a row.
        InvalidInput: If one is not finite, or two have one label.
    """
    labels, values = None, given
    if isinstance(given, Mapping):
        labels, values = list(given), list(given.values())
    elif _is_series(given):
        labels, values = list(given.index), given.to_list()
    elif isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidType(argument, f"must be one number per question, got {clipped(given)}")
    listed = values if isinstance(values, np.ndarray) else list(values)
    for place, one in enumerate(listed):
        if not _is_number(one):
            raise InvalidType(argument, f"must be a number, got {clipped(one)}", query=place)
        if not math.isfinite(one):
            fix = "leave such questions out"
            raise InvalidInput(argument, f"must be a finite number, got {one}", fix, query=place)
    if labels == list(range(len(listed))) and not by_label:
        labels = None
    return labels and distinct(argument, labels), np.array(listed, np.float64)


def distinct(argument: str, labels: list[Any]) -> list[Any]:
    """Return labels that tell questions apart, or refuse them."""
    repeated = [label for label, n in Counter(labels).items() if n > 1]
    if repeated:
        problem = f"must have a label of its own for each question, got {some(repeated)} again"
        raise InvalidInput(argument, problem)
    return labels


@dataclass(frozen=True)
class _Parts:
    """The questions people labelled, as both see them, and the others, as the judge does.

    Attributes:
        human: Per system, the labelled questions by people.
        judge: The same questions, in the same order, by the judge.
        others: The questions people did not label, by the judge.
        clusters: The number of the cluster of each labelled question, and of each other one;
            ``None`` if questions count as independent.
    """

    human: list[QuerySums]
    judge: list[QuerySums]
    others: list[QuerySums]
    clusters: tuple[IntArray, IntArray] | None

    @classmethod
    def of(
        cls, given: _Given, metrics: Mapping[str, tuple[str, Cutoff]], tag: str | None
    ) -> _Parts:
        """Match what was given question by question.

        Raises:
            InvalidInput: If a labelled question is missing somewhere, or there are too few.
        """
        labelled_all = all(map(_has_labels, chain.from_iterable(given.values())))
        samples = {
            argument: [_sample(argument, one, metrics, by_label=labelled_all) for one in systems]
            for argument, systems in given.items()
        }
        humans, judges, others = _placed(samples)
        kept = np.any([one.counted[at] for one, at in humans + judges], axis=0)
        left = np.any([one.counted[at] for one, at in others], axis=0)
        for argument, counted, least in ((_HUMAN, kept, _FEWEST_LABELS), (_UNLABELLED, left, 2)):
            if counted.sum() < least:
                be = f"hold at least {least} questions that count"
                be += " beside the labelled ones" if argument == _UNLABELLED else ""
                fix = "Label more, drawn at random from those asked"
                raise must(argument, be, int(counted.sum()), fix if argument == _HUMAN else "")
        human, judge = ([one.at(at[kept]) for one, at in some] for some in (humans, judges))
        clusters = None
        if tag is not None:
            (first, at), (unlabelled, left_at) = humans[0], others[0]
            clusters = _clusters(tag, [(first, at[kept]), (unlabelled, left_at[left])])
        return cls(human, judge, [one.at(at[left]) for one, at in others], clusters)

    @property
    def n_labelled(self) -> int:
        return len(self.human[0].columns)

    @property
    def n_asked(self) -> int:
        return self.n_labelled + len(self.others[0].columns)


_Places: TypeAlias = list[tuple[_Sample, IntArray]]


def _placed(samples: Mapping[str, Sequence[_Sample]]) -> tuple[_Places, _Places, _Places]:
    """Return, by system, where the labelled questions stand by people and by the judge, and others.

    Raises:
        InvalidInput: If a labelled question is missing somewhere, or labels do not fit together.
    """
    humans, judges, asked = ([*samples[name]] for name in (_HUMAN, _JUDGE, _UNLABELLED))
    order = humans[0].labels
    for one in (*humans, *judges, *asked):
        if (one.labels is None) != (order is None):
            be = "have no labels" if order is None else "be by label"
            raise InvalidInput(one.argument, f"must {be}, as human is")
    alike = (judges, humans + judges) if order is None else (humans, humans)
    for several, others in (alike, (asked, asked)):
        if len(sizes := {one.n for one in others}) > 1:
            be = "hold the same questions in each place"
            raise must(several[0].argument, be, sorted(sizes))
    if order is None:
        ours, theirs, rest = ([(o, np.arange(o.n)) for o in some] for some in samples.values())
        return ours, theirs, rest
    among = set(order)
    left = [label for label in asked[0].labels or () if label not in among]
    for one, judge in zip(asked, judges, strict=True):
        _check_same_questions(one, judge, order)
    return (
        [(one, one.places(order)) for one in humans],
        [(one, one.places(order)) for one in judges],
        [(one, one.places(left)) for one in asked],
    )


def _check_same_questions(asked: _Sample, judge: _Sample, order: Sequence[Any]) -> None:
    """Refuse plain values of which the judge's two disagree; of results, more is known.

    Raises:
        InvalidInput: If so: they are of another run, or their rows were numbered anew and are other
            questions.
    """
    places = asked.places(order)
    if asked.sums.averages[0][0] is not _MEAN:
        return
    theirs = judge.sums.columns[judge.places(order)]
    differs = np.flatnonzero((asked.sums.columns[places] != theirs).any(axis=1))
    if len(differs):
        problem = f"differs from judge for question {clipped(order[int(differs[0])])}"
        fix = "give each question one label everywhere, or pass lists, those of the others alone"
        raise InvalidInput(asked.argument, problem, fix)


def _clusters(tag: str, samples: Sequence[tuple[_Sample, IntArray]]) -> tuple[IntArray, IntArray]:
    """Number the clusters of the labelled questions and of the others.

    As in :class:`~krag_eval.statistics.intervals.Clusters`, a question without a value is like no
    other, with a warning; and ``True`` is not 1.

    Raises:
        InvalidInput: If there is no such tag, or all labelled questions share its value.
    """
    number: dict[Any, int] = {}
    codes = []
    n_untagged = 0
    for sample, places in samples:
        if tag not in sample.tags:
            if sample.tags:
                raise errors.unknown(
                    "clusters", tag, list(sample.tags), f"a tag of {sample.argument}"
                )
            problem = f"must be a tag of the queries, and those of {sample.argument} have none"
            raise InvalidInput("clusters", problem, Advice("evaluate with {}", tags=...))
        values = [sample.tags[tag][place] for place in places.tolist()]
        keys = [
            (sample.argument, i) if value is None else (isinstance(value, bool), value)
            for i, value in enumerate(values)
        ]
        n_untagged += values.count(None)
        codes.append(np.array([number.setdefault(one, len(number)) for one in keys], np.int64))
    if len(set(codes[0].tolist())) < 2:
        problem = f": all labelled questions have the same {tag!r}, so clusters cannot be compared"
        raise InvalidInput("clusters", problem, "leave it out")
    if n_untagged:
        warn(told_untagged(n_untagged, tag))
    return codes[0], codes[1]


# The numbers.


class Values(NamedTuple):
    """An average and what each question contributes; the mean of the latter is the former.

    Of an average that is no mean, these are the jackknife's pseudo-values.
    """

    value: float
    points: FloatArray


def _values(sums: Sequence[QuerySums], i: int) -> Values:
    """Return an average of one system, or how the second system's differs from the first's."""
    first, *second = (_values_of(one, i) for one in sums)
    for other in second:
        return Values(other.value - first.value, other.points - first.points)
    return first


def _values_of(sums: QuerySums, i: int) -> Values:
    total = sums.columns.sum(axis=0)
    value, n = float(sums.average(i, total)), len(sums.columns)
    return Values(value, n * value - (n - 1) * sums.average(i, total - sums.columns))


def _debiased(
    parts: _Parts, i: int, metric: str, systems: tuple[str, ...], level: float
) -> DebiasedValue:
    """Estimate one metric."""
    y, f, u = (_values(one, i) for one in (parts.human, parts.judge, parts.others))
    average = parts.human[0].averages[i][0]
    weight = _weight(y.points, f.points, u.points)
    is_share = not systems and _is_share(parts.human[0], i, f.points, u.points)
    bounds = score_interval_with if is_share else interval_with
    value, low, high = _within(
        average, bool(systems), bounds(weight, y, f, u, level, parts.clusters)
    )
    human = _within(average, bool(systems), bounds(0.0, y, f, u, level, parts.clusters))
    return DebiasedValue(
        metric=metric,
        value=value,
        low=low,
        high=high,
        human=human[0],
        human_low=human[1],
        human_high=human[2],
        judge=_values(_together(parts.judge, parts.others), i).value,
        correlation=_correlation(y.points, f.points),
        weight=weight,
        average=average,
        labels_differ=float(np.ptp(y.points)) > NOTHING,
    )


def _together(judge: Sequence[QuerySums], others: Sequence[QuerySums]) -> list[QuerySums]:
    return [
        replace(one, columns=np.concatenate([one.columns, other.columns]))
        for one, other in zip(judge, others, strict=True)
    ]


def _within(average: Average, is_difference: bool, numbers: Sequence[float]) -> list[float]:
    """Keep numbers within what the average, or the difference of two, can be."""
    low, high = average.range or (-math.inf, math.inf)
    if is_difference:
        low, high = low - high, high - low
    return [one if math.isnan(one) else min(max(one, low), high) for one in numbers]


def _weight(y: FloatArray, f: FloatArray, u: FloatArray) -> float:
    """Return how much the judge counts, λ: what makes the variance least, between 0 and 1."""
    spread = float(np.var(np.concatenate([f, u]), ddof=1))
    if not spread > NOTHING**2:
        return math.nan if math.isnan(spread) else 0.0
    shared = float(np.mean((y - y.mean()) * (f - f.mean())))
    return min(max(shared / ((1 + len(y) / len(u)) * spread), 0.0), 1.0)


def _correlation(y: FloatArray, f: FloatArray) -> float:
    if not min(float(np.ptp(y)), float(np.ptp(f))) > NOTHING:
        return math.nan
    return float(np.corrcoef(y, f)[0, 1])


def interval_with(
    weight: float,
    y: Values,
    f: Values,
    u: Values,
    level: float,
    clusters: tuple[IntArray, IntArray] | None = None,
) -> tuple[float, float, float]:
    """Return the estimate and its bounds where the judge counts so much.

    Args:
        weight: λ, from 0 (people alone) to 1.
        y: The labelled questions by people.
        f: The same by the judge.
        u: The others by the judge.
        level: How often the interval should cover the true value.
        clusters: The numbers of the clusters of both kinds of questions.
    """
    from scipy.special import ndtri, stdtrit

    value = weight * u.value + (y.value - weight * f.value)
    rectified, imputed = y.points - weight * f.points, weight * u.points
    n = len(rectified) if clusters is None else len(np.unique(clusters[0]))
    tail = (1 + level) / 2
    if clusters is None:
        ddof = int(n < MANY)
        variance = rectified.var(ddof=ddof) / n + imputed.var(ddof=ddof) / len(imputed)
    else:
        variance = _clustered_variance((rectified, imputed), clusters)
    half = float(stdtrit(n - 1, tail) if n < MANY else ndtri(tail)) * math.sqrt(variance)
    return value, value - half, value + half


def _is_share(human: QuerySums, i: int, f: FloatArray, u: FloatArray) -> bool:
    """Tell whether people's labels are zeros and ones of an average from 0 to 1.

    Of plain values nobody knows the range; theirs is taken to be that if no value is outside.
    """
    if human.averages[i][0] is _MEAN:
        judged = np.concatenate([f, u])
        if np.abs(judged - 0.5).max() > 0.5 + NOTHING:
            return False
        human = QuerySums(human.columns, human.positions, ((_SHARE, None),))
    found = human.shares(i)
    return found is not None and bool(found[1].all())


def score_interval_with(
    weight: float,
    y: Values,
    f: Values,
    u: Values,
    level: float,
    clusters: tuple[IntArray, IntArray] | None = None,
) -> tuple[float, float, float]:
    """Return the estimate and its score interval, where people's labels are 0 or 1.

    It is Wilson's, of as many labels as would tell as much by themselves. What a few labels did not
    show may be there all the same, above all that people and judge differ: so both variances are
    taken with four made-up questions, one for each value of people and either end of the judge's.

    The arguments are those of :func:`interval_with`.
    """
    n, value = len(y.points), weight * u.value + (y.value - weight * f.value)
    value = min(max(value, 0.0), 1.0)
    judged = np.concatenate([f.points, u.points])
    people = np.append(y.points, [0.0, 0.0, 1.0, 1.0])
    judge = np.append(f.points, [judged.min(), judged.max()] * 2)
    imputed = weight * u.points
    variance = (people - weight * judge).var() / n + imputed.var() / len(imputed)
    effective = float(people.var() / variance)
    if clusters is not None:
        effective /= _design_effect((y.points - weight * f.points, imputed), clusters)
    return value, *wilson(value, effective, level)


def _design_effect(
    points: tuple[FloatArray, FloatArray], clusters: tuple[IntArray, IntArray]
) -> float:
    """Return how many times as many questions it takes, as they are in clusters; at least 1.

    Where nothing varies, the labelled questions of a cluster count as one.
    """
    each = np.arange(len(points[0])), len(points[0]) + np.arange(len(points[1]))
    independent = _clustered_variance(points, each)
    if independent <= NOTHING**2:
        sizes = np.unique(clusters[0], return_counts=True)[1]
        return float(np.square(sizes).sum() / sizes.sum())
    return max(_clustered_variance(points, clusters) / independent, 1.0)


def _clustered_variance(
    points: tuple[FloatArray, FloatArray], clusters: tuple[IntArray, IntArray]
) -> float:
    """Return the variance of the sum of two means, where clusters are independent as wholes.

    Of one mean it is C/(C - 1)·Σ_c(Σ_i(s_i - s̄))²/n². A cluster that is in both parts moves both.
    """
    n_clusters = 1 + max(int(one.max()) for one in clusters)
    moved = np.zeros(n_clusters)
    for values, codes in zip(points, clusters, strict=True):
        c = len(np.unique(codes))
        deviation = (values - values.mean()) / len(values)
        moved += math.sqrt(c / max(c - 1, 1)) * np.bincount(codes, deviation, n_clusters)
    return float(np.square(moved).sum())


# What deserves a second look.


def _warn_of_few(parts: _Parts) -> None:
    if parts.n_labelled < FEW_QUERIES:
        told = _(
            "People labelled {n} questions. With fewer than {few} the interval may miss the true "
            "value more often than its level says."
        )
        advice = _("Label more, drawn at random from those asked")
        warn(told.format(n=parts.n_labelled, few=FEW_QUERIES), advice)
    if parts.clusters is not None:
        n = len(np.unique(parts.clusters[0]))
        if n < FEW_CLUSTERS:
            told = _(
                "The labelled questions are of {n} clusters. With fewer than {few} the interval "
                "may miss the true value more often than its level says."
            )
            warn(told.format(n=n, few=FEW_CLUSTERS), _("Label questions of more clusters"))


def _warn_of_sameness(values: Sequence[DebiasedValue], given: _Given) -> None:
    certain = f"{METRICS['rank'].key}@1"  # a rank within the first 1 can only be 1
    flat = [
        one.metric
        for one in values
        if one.human_high - one.human_low <= NOTHING and one.metric != certain
    ]
    if flat:
        told = _(
            "All labelled questions have the same value, so nothing tells how far these metrics "
            "would move: {}."
        )
        warn(told.format(", ".join(flat)), _("Label more questions"))
    human, judge = given[_HUMAN][0], given[_JUDGE][0]
    if isinstance(human, EvaluationResult) and _same_labels(human, judge):
        told = _(
            "People and judge have the same ground truth for every labelled question, as if one "
            "had been passed for the other."
        )
        warn(told, _("Check that human holds the labels of people"))


def _same_labels(human: EvaluationResult, judge: EvaluationResult) -> bool:
    """Tell whether the labels are the same: the ground truth, and what is held against it."""
    if human.settings.get("matcher") != judge.settings.get("matcher"):
        return False
    ours, theirs = human.rows.digests, judge.rows.digests
    # Those of verdicts tell which claims there are, and not what a judge said of them.
    if ours is None or theirs is None or "judge" in human.settings:
        return False
    by_judge = dict(zip(judge.labels, theirs, strict=True))
    return all(by_judge[one] == own for one, own in zip(human.labels, ours, strict=True))
