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

from krag_eval.comparison import comparable, comparison
from krag_eval.comparison.comparison import some
from krag_eval.comparison.paired import rows_at
from krag_eval.core import (
    METRICS,
    Average,
    Budget,
    Cutoff,
    DocumentLike,
    FloatArray,
    IntArray,
    InvalidInput,
    InvalidType,
    ResultFacts,
    RowsInMemory,
    Shown,
    _,
    clipped,
    errors,
    id_of,
    is_blank,
    must,
    read_text,
    warn,
)
from krag_eval.core.scoring.averages import QUERIES
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import BoolArray, Clusters, QuerySums

if TYPE_CHECKING:
    import pandas as pd

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
      agree, the more the judge counts. The covariance is divided by n, and the variance by one less
      than the n + N values.

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
    level = intervals.check_sampling(level).level
    given, systems = _by_system({_HUMAN: human, _JUDGE: judge, _UNLABELLED: unlabelled})
    of_results = _are_results(given)
    metrics: dict[str, tuple[str, Cutoff]] = {"value": ("value", None)}
    if of_results:
        metrics = _metrics(given, metric)
        _check_settings(given)
    elif metric is not None or clusters is not None:
        argument = "clusters" if metric is None else "metric"
        raise InvalidInput(argument, "is for results, and these are plain values", "leave it out")
    parts = _Parts.of(given, metrics, clusters)
    compared_by = _compared_by(given) if of_results else None
    if parts.n_labelled < intervals.FEW_QUERIES:
        told = _(
            "People labelled {n} questions. With fewer than {few} the interval may miss the true "
            "value more often than its level says."
        )
        advice = _("Label more, drawn at random from those asked")
        warn(told.format(n=parts.n_labelled, few=intervals.FEW_QUERIES), advice)
    values = tuple(_debiased(parts, i, name, systems, level) for i, name in enumerate(metrics))
    _warn_of_sameness(values, given)
    n_asked = len(parts.judge[0].columns)
    return Debiased(values, level, parts.n_labelled, n_asked, systems, clusters, compared_by)


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
    systems = next((tuple(one) for one in given.values() if _names_systems(one)), ())
    if not systems:
        return {argument: [value] for argument, value in given.items()}, ()
    for argument, value in given.items():
        if not isinstance(value, Mapping):
            problem = f"must name the systems as well, {systems!r}, got {type(value).__name__}"
            raise InvalidType(argument, problem)
        if len(value) != 2 or set(value) != set(systems):
            raise must(argument, "name the same two systems in each place", list(value))
    return {name: [value[one] for one in systems] for name, value in given.items()}, systems


def _names_systems(value: object) -> bool:
    """Tell systems by name from values by label."""
    return isinstance(value, Mapping) and not all(map(_is_number, value.values()))


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, np.bool_))


def _are_results(given: _Given) -> bool:
    """Tell results from plain values, which do not mix."""
    of_results = isinstance(given[_HUMAN][0], ResultFacts)
    for argument, systems in given.items():
        for one in systems:
            if isinstance(one, ResultFacts) != of_results:
                be = "an EvaluationResult" if of_results else "one value per question"
                problem = f"must be {be}, as human is, got {type(one).__name__}"
                raise InvalidType(argument, problem)
    return of_results


def _metrics(given: _Given, metric: object) -> dict[str, tuple[str, Cutoff]]:
    """Return the averages to estimate: spelling -> (key, cutoff)."""
    results = {
        f"{argument} {place}" if len(systems) > 1 else argument: one
        for argument, systems in given.items()
        for place, one in enumerate(systems, start=1)
    }
    if metric is not None:
        chosen = comparable.checked_metrics(results, metric)
    else:
        first, *others = map(intervals.every_average, results.values())
        chosen = {name: one for name, one in first.items() if all(name in one for one in others)}
    if not chosen:
        problem = ": there is no average at a cutoff that all of the results have"
        raise InvalidInput(_JUDGE, problem, "Evaluate all with the same k")
    comparison.check_same_metrics(results, chosen)
    return chosen


def _check_settings(given: _Given) -> None:
    """Refuse results of other rules; the kind of documents may differ between people and judge."""
    human, judge = given[_HUMAN][0], given[_JUDGE][0]
    for argument, systems in given.items():
        for place, one in enumerate(systems):
            is_first_judge = argument == _JUDGE and place == 0
            other = human if argument == _HUMAN or is_first_judge else judge
            ignored = (*_OF_THE_RUN, *(_OF_THE_LABELS if is_first_judge else ()))
            differing = comparison.differing_settings(_settings(other), _settings(one), ignored)
            if differing:
                told = "; ".join(differing)
                problem = f"was evaluated with other settings than the others: {told}"
                raise InvalidInput(argument, problem, "Evaluate all with the same settings")


def _settings(result: ResultFacts) -> dict[str, str]:
    """Return the settings; how many queries lack ground truth may differ."""
    policy = result.settings.get("no_ground_truth", "").partition("(")[0]
    return {**result.settings, "no_ground_truth": policy}


# Whether people and judge saw the same lists.


def _compared_by(given: _Given) -> Literal["documents", "counts"]:
    """Refuse results of other lists, or a judge of two minds; tell how the lists were compared.

    Raises:
        InvalidInput: If labelled questions have other documents, or other ground truth where it
            must be the same.
    """
    labels, seen = given[_HUMAN][0].labels, []
    for human, judge, asked in zip(*given.values(), strict=True):
        seen.append(_check_lists(_JUDGE, human, judge, labels))
        if asked is not judge:
            seen.append(_check_lists(_UNLABELLED, judge, asked, labels))
            _check_ground_truth(_UNLABELLED, _JUDGE, judge, asked, labels)
    for argument in (_HUMAN, _JUDGE):
        first, *others = given[argument]
        # Verdicts are on the claims of an answer, and each system gives its own.
        for other in others if "judge" not in first.settings else ():
            _check_ground_truth(argument, "the first system", first, other, labels)
    return "documents" if all(seen) else "counts"


class _Facts(NamedTuple):
    """What is known of the lists and of the ground truth of some questions; ``None`` where not.

    Attributes:
        counts: What is counted in a list, whatever the cutoff (``""``) and within each one: how
            many documents and, of these, relevant ones and covered items.
        texts: Texts and ids of the documents.
        keys: What the documents are known by, where it is known what was looked at.
        truth: What tells the ground truth from another one.
    """

    counts: dict[Cutoff | Literal[""], IntArray]
    texts: list[list[_Names]] | None
    keys: list[list[_Names]] | None
    truth: NDArray[np.str_] | None

    @classmethod
    def of(cls, result: ResultFacts, labels: Sequence[Any]) -> _Facts:
        position = {label: place for place, label in enumerate(result.labels)}
        at = [position[label] for label in labels]
        # Where unjudged documents are left out, others are counted.
        tables = {} if result.settings.get("unjudged") == "leave_out" else result.tables
        counts: dict[Cutoff | Literal[""], IntArray] = {
            k: np.stack([table[name][at] for name in _COUNTED], axis=1)
            for k, table in tables.items()
        }
        judged, evidence = result.rows.judged, result.evidence
        keys = None if judged is None else [[("", key) for key in judged.keys[i]] for i in at]
        texts = None
        if evidence is not None:
            counts[""] = evidence.relevance.n_retrieved[at][:, np.newaxis]
            if (known := evidence.texts) is not None:
                texts = [[_names(one, known.are_ids) for one in known.documents(i)] for i in at]
        return cls(counts, texts, keys, _truth(result, labels))


def _truth(result: ResultFacts, labels: Sequence[Any]) -> NDArray[np.str_] | None:
    """Return what tells the ground truth of some questions; ``None`` where it is not known."""
    if result.rows.digests is None:
        return None
    known = dict(zip(result.labels, result.rows.digests, strict=True))
    return np.array([known[label].rpartition("-")[2] for label in labels])


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
    argument: str, one: ResultFacts, other: ResultFacts, labels: Sequence[Any]
) -> bool:
    """Refuse other lists of the same questions; tell whether the documents were compared."""
    ours, theirs = _Facts.of(one, labels), _Facts.of(other, labels)
    than = _HUMAN if argument == _JUDGE else _JUDGE
    same = {name for name in _OF_THE_LABELS if one.settings.get(name) == other.settings.get(name)}
    same_matcher = {"matcher", "threshold"} <= same
    # The same ground truth finds the same in the same lists, but for what a judge says another day.
    in_full = np.zeros(len(labels), np.bool_)
    is_certain = same_matcher and _JUDGE not in one.settings.get("matcher", _JUDGE)
    if is_certain and ours.truth is not None and theirs.truth is not None:
        in_full = ours.truth == theirs.truth
    for k in ours.counts:
        if k in theirs.counts and ("length" in same or not isinstance(k, Budget)):
            differs = ours.counts[k] != theirs.counts[k]
            differs[~in_full, 1:] = False
            _refuse_another_run(argument, "number of documents", than, labels, differs.any(axis=1))
    compared = []
    # Texts and ids of two matchers can be compared; a key is what one of them looks at, and so is
    # a text where the other side has an id alone.
    for our, their, differ in (
        (ours.texts, theirs.texts, {False, None} if same_matcher else {False}),
        (ours.keys, theirs.keys, {False, None} if same_matcher else set()),
    ):
        if our is not None and their is not None:
            alike = list(map(_are_alike, our, their))
            differs = np.array([one in differ for one in alike])
            _refuse_another_run(argument, "list of documents", than, labels, differs)
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
    argument: str, than: str, one: ResultFacts, other: ResultFacts, labels: Sequence[Any]
) -> None:
    """Refuse labels that differ where they must be the same."""
    if one.settings.get("matcher") == other.settings.get("matcher"):
        ours, theirs = _truth(one, labels), _truth(other, labels)
        if ours is not None and theirs is not None:
            _refuse_another_run(argument, "ground truth", than, labels, ours != theirs)


def _refuse_another_run(
    argument: str, what: str, than: str, labels: Sequence[Any], differs: BoolArray
) -> None:
    """Refuse an argument for the questions in which it differs from another one."""
    places = [label for label, one in zip(labels, differs.tolist(), strict=True) if one]
    if places:
        problem = f"is of another run than {than}: the {what} differs for {some(places)}"
        raise InvalidInput(argument, problem, "Evaluate the same lists under both ground truths")


# From results and plain values to numbers per question.

# Plain values may be anything; whether they can be shares is left to themselves.
_MEAN = Average("value", "value", (("value", QUERIES),))
_SHARE = replace(_MEAN, range=(0.0, 1.0))


class _Sample(NamedTuple):
    """What one argument says of one system; plain values are rows of one column.

    Attributes:
        argument: Its name.
        rows: One row per question; the labels are mere positions, unless it is by label.
        averages: The averages, each with its cutoff.
        by_label: Whether labels tell the questions apart.
    """

    argument: str
    rows: RowsInMemory
    averages: tuple[tuple[Average, Cutoff], ...]
    by_label: bool

    @classmethod
    def of(
        cls, argument: str, given: Any, metrics: Mapping[str, tuple[str, Cutoff]], by_label: bool
    ) -> _Sample:
        """Take apart a result or plain values; by label, if all of them have labels."""
        if not isinstance(given, ResultFacts):
            labels, values = values_by_label(argument, given, by_label=by_label)
            named = [*range(len(values))] if labels is None else labels
            rows = RowsInMemory(named, {None: {"value": values}}, np.ones(len(values), np.bool_))
            return cls(argument, rows, ((_MEAN, None),), labels is not None)
        if why := comparison.why_not_paired(given.labels):
            problem = f"{why}, so it is not known which people labelled"
            raise InvalidInput(argument, problem, comparison.LABEL_THEM)
        averages = tuple((given.definitions[key], k) for key, k in metrics.values())
        cutoffs = dict.fromkeys(k for _, k in metrics.values())
        rows = rows_at(given.rows, range(given.n_queries), [*cutoffs])
        return cls(argument, rows, averages, True)

    def at(self, labels: Sequence[Any]) -> _Sample:
        """Return some of the questions.

        Raises:
            InvalidInput: If one is not there.
        """
        position = {label: place for place, label in enumerate(self.rows.labels)}
        if lacking := [label for label in labels if label not in position]:
            problem = f": lacks questions that it must hold: {some(lacking)}"
            raise InvalidInput(self.argument, problem)
        at = [position[label] for label in labels]
        return self._replace(rows=rows_at(self.rows, at, [*self.rows.tables]))

    def sums(self) -> QuerySums:
        """Return what each question adds to the averages: nothing, where it does not count."""
        found = QuerySums.of(self.rows, self.averages)
        columns = np.zeros((len(self.rows.counted), found.columns.shape[1]))
        columns[self.rows.counted] = found.columns
        return replace(found, columns=columns)


def _is_series(value: object) -> bool:
    return hasattr(value, "index") and hasattr(value, "to_list")


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
    if repeated := [label for label, n in Counter(labels).items() if n > 1]:
        problem = f"must have a label of its own for each question, got {some(repeated)} again"
        raise InvalidInput(argument, problem)
    return labels


class _Parts(NamedTuple):
    """What people say of the questions they labelled, and the judge of all of them.

    Attributes:
        human: Per system, the labelled questions by people.
        judge: All questions by the judge, the labelled ones first and in the same order.
        clusters: The number of the cluster of each labelled question, and of each other one;
            ``None`` if questions count as independent.
    """

    human: list[QuerySums]
    judge: list[QuerySums]
    clusters: tuple[IntArray, IntArray] | None

    @classmethod
    def of(
        cls, given: _Given, metrics: Mapping[str, tuple[str, Cutoff]], tag: str | None
    ) -> _Parts:
        """Match what was given question by question.

        Raises:
            InvalidInput: If a labelled question is missing somewhere, or there are too few.
        """
        by_label = all(
            isinstance(one, ResultFacts | Mapping) or _is_series(one)
            for one in chain.from_iterable(given.values())
        )
        humans, judges, asked = (
            [_Sample.of(argument, one, metrics, by_label) for one in systems]
            for argument, systems in given.items()
        )
        _check_sizes(humans, judges, asked)
        order = humans[0].rows.labels
        among = set(order) if humans[0].by_label else set()
        left = [one for one in asked[0].rows.labels if one not in among]
        humans, judges = ([one.at(order) for one in some] for some in (humans, judges))
        if among:
            for one, judge in zip(asked, judges, strict=True):
                _check_same_questions(one.at(order), judge)
        others = [one.at(left) for one in asked]
        kept = np.any([one.rows.counted for one in humans + judges], axis=0)
        rest = np.any([one.rows.counted for one in others], axis=0)
        if kept.sum() < _FEWEST_LABELS:
            be = f"hold at least {_FEWEST_LABELS} questions that count"
            raise must(_HUMAN, be, int(kept.sum()), "Label more, at random from those asked")
        if rest.sum() < 2:
            be = "hold at least 2 questions that count beside the labelled ones"
            raise must(_UNLABELLED, be, int(rest.sum()))
        human, by_judge, other = (
            [replace(sums, columns=sums.columns[at]) for sums in map(_Sample.sums, samples)]
            for samples, at in ((humans, kept), (judges, kept), (others, rest))
        )
        together = [
            replace(one, columns=np.concatenate([one.columns, more.columns]))
            for one, more in zip(by_judge, other, strict=True)
        ]
        if tag is None:
            return cls(human, together, None)
        rows = replace(asked[0].at([*order, *left]).rows, counted=np.concatenate([kept, rest]))
        clusters = Clusters.named([rows], tag)
        n = int(kept.sum())
        replace(clusters, number=clusters.number[:n]).check()
        return cls(human, together, (clusters.number[:n], clusters.number[n:]))

    def values(self, i: int) -> tuple[Values, Values, Values]:
        """Return an average of the labelled questions by people and by the judge, and of others."""
        n = self.n_labelled
        by_judge = (
            [replace(one, columns=one.columns[part]) for one in self.judge]
            for part in (slice(n), slice(n, None))
        )
        labelled, others = (_values(one, i) for one in by_judge)
        return _values(self.human, i), labelled, others

    @property
    def n_labelled(self) -> int:
        return len(self.human[0].columns)


def _check_sizes(
    humans: Sequence[_Sample], judges: Sequence[_Sample], asked: Sequence[_Sample]
) -> None:
    """Refuse what has labels beside what has none, and lists of other lengths."""
    first = humans[0]
    for one in (*humans, *judges, *asked):
        if one.by_label != first.by_label:
            be = "be by label" if first.by_label else "have no labels"
            raise InvalidInput(one.argument, f"must {be}, as human is")
    alike = (humans, asked) if first.by_label else ([*humans, *judges], asked)
    for several in alike:
        if len(sizes := {len(one.rows.labels) for one in several}) > 1:
            be = "hold the same questions in each place"
            raise must(several[-1].argument, be, sorted(sizes))


def _check_same_questions(asked: _Sample, judge: _Sample) -> None:
    """Refuse plain values of which the judge's two disagree; of results, more is known.

    They are of another run, or their rows were numbered anew and are other questions.
    """
    differs = (asked.sums().columns != judge.sums().columns).any(axis=1)
    if asked.averages[0][0] is _MEAN and differs.any():
        label = clipped(judge.rows.labels[int(differs.argmax())])
        fix = "give each question one label everywhere, or pass lists, those of the others alone"
        raise InvalidInput(asked.argument, f"differs from judge for question {label}", fix)


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
    seen = parts.values(i)
    y, f, u = (one.points for one in seen)
    human = parts.human[0]
    average, weight = human.averages[i][0], _weight(y, f, u)
    is_share = not systems and _is_share(human, i, np.concatenate([f, u]))
    ours, alone = (
        _within(average, systems, interval_with(one, seen, level, parts.clusters, is_share))
        for one in (weight, 0.0)
    )
    return DebiasedValue(
        metric,
        *ours,
        *alone,
        judge=_values(parts.judge, i).value,
        correlation=_correlation(y, f),
        weight=weight,
        average=average,
        labels_differ=float(np.ptp(y)) > NOTHING,
    )


def _within(
    average: Average, systems: Sequence[str], numbers: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Keep numbers within what the average, or the difference of two, can be."""
    least, most = average.range or (-math.inf, math.inf)
    if systems:
        least, most = least - most, most - least
    value, low, high = np.clip(numbers, least, most).tolist()
    return value, low, high


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
    seen: Sequence[Values],
    level: float,
    clusters: tuple[IntArray, IntArray] | None = None,
    is_share: bool = False,
) -> tuple[float, float, float]:
    """Return the estimate and its bounds where the judge counts so much.

    Of zeros and ones it is Wilson's interval, of as many labels as would tell as much by
    themselves. What a few labels did not show may be there all the same, above all that people and
    judge differ: so both variances are taken with four made-up questions, one for each value of
    people and either end of the judge's.

    Args:
        weight: λ, from 0 (people alone) to 1.
        seen: The labelled questions by people, the same by the judge, and the others by the judge.
        level: How often the interval should cover the true value.
        clusters: The numbers of the clusters of both kinds of questions.
        is_share: Whether people's labels are 0 or 1.
    """
    from scipy.special import ndtri, stdtrit

    y, f, u = seen
    value = weight * u.value + (y.value - weight * f.value)
    rectified, imputed = y.points - weight * f.points, weight * u.points
    if is_share:
        judged = np.concatenate([f.points, u.points])
        people = np.append(y.points, [0.0, 0.0, 1.0, 1.0])
        judge = np.append(f.points, [judged.min(), judged.max()] * 2)
        error = (people - weight * judge).var() / len(y.points) + imputed.var() / len(imputed)
        effective = float(people.var() / error)
        if clusters is not None:
            effective /= _design_effect((rectified, imputed), clusters)
        value = min(max(value, 0.0), 1.0)
        return value, *intervals.wilson(value, effective, level)
    n = len(rectified) if clusters is None else len(np.unique(clusters[0]))
    tail = (1 + level) / 2
    if clusters is None:
        ddof = int(n < MANY)
        variance = rectified.var(ddof=ddof) / n + imputed.var(ddof=ddof) / len(imputed)
    else:
        variance = _clustered_variance((rectified, imputed), clusters)
    half = float(stdtrit(n - 1, tail) if n < MANY else ndtri(tail)) * math.sqrt(variance)
    return value, value - half, value + half


def _is_share(human: QuerySums, i: int, judged: FloatArray) -> bool:
    """Tell whether people's labels are zeros and ones of an average from 0 to 1.

    Of plain values nobody knows the range; theirs is taken to be that if no value is outside.
    """
    if human.averages[i][0] is _MEAN:
        if np.abs(judged - 0.5).max() > 0.5 + NOTHING:
            return False
        human = replace(human, averages=((_SHARE, None),))
    found = human.shares(i)
    return found is not None and bool(found[1].all())


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
    if isinstance(human, ResultFacts) and _same_labels(human, judge):
        told = _(
            "People and judge have the same ground truth for every labelled question, as if one "
            "had been passed for the other."
        )
        warn(told, _("Check that human holds the labels of people"))


def _same_labels(human: ResultFacts, judge: ResultFacts) -> bool:
    """Tell whether the labels are the same: the ground truth, and what is held against it."""
    ours, theirs = human.rows.digests, judge.rows.digests
    # Those of verdicts tell which claims there are, and not what a judge said of them.
    if ours is None or theirs is None or "judge" in human.settings:
        return False
    same_matcher = human.settings.get("matcher") == judge.settings.get("matcher")
    return (
        same_matcher
        and dict(zip(human.labels, ours, strict=True)).items()
        <= dict(zip(judge.labels, theirs, strict=True)).items()
    )
