"""Few labels of people beside many of a model; and which metric predicts scored answers.

:func:`debias` corrects what a model's labels say of many questions by what people say of a few.
:func:`predictions` asks which metric goes with the scores of the answers. Both know values per
query, and not how they came about. scipy and pandas load when they are needed.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._language import Language, _, pgettext, spoken
from krag_eval.documents import DocumentLike, id_of, is_blank, read_id, read_text
from krag_eval.errors import Advice, InvalidInput, InvalidType, clipped, number, text, unknown, warn
from krag_eval.matching.identity import same
from krag_eval.results.result import EvaluationResult
from krag_eval.scoring.averages import DEFINED, QUERIES, Average
from krag_eval.scoring.cutoffs import Budget, Cutoff, spelled
from krag_eval.scoring.metrics import METRICS, metrics_of
from krag_eval.statistics.comparison import (
    as_html,
    as_text,
    check_same_metrics,
    checked_metrics,
    percent,
    some,
)
from krag_eval.statistics.intervals import (
    FEW_QUERIES,
    QuerySums,
    blocks,
    check_counted,
    check_sampling,
    drawn,
    interval,
    per_query,
    told_untagged,
    warn_of_few_queries,
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
_FEW_CLUSTERS = 20
# With 20 labels, chance alone narrows an interval by about so much.
_LITTLE = 0.05
# Shares of a scale below this are rounding.
_NOTHING = 1e-9
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
    if of_results:
        metrics = _metrics(given, metric)
        _check_settings(given)
    else:
        _refuse_for_values(metric, clusters)
        metrics = {"value": ("value", None)}
    if clusters is not None:
        text("clusters", clusters, "the name of a tag")
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


@dataclass(frozen=True, eq=False)
class Debiased:
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
        raise unknown("metric", metric, self.metrics)

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
            problem = f": there are {len(self.values)} metrics, so it is not clear whose is meant"
            fix = f"name one of them, such as debiased[{self.values[0].metric!r}].value"
            raise InvalidInput("metric", problem, fix)
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

    @spoken
    def summary(self, language: Language | None = None) -> str:
        """Return what is known of each metric, in plain words; then what it rests on.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        """
        lines = [f"{self._finding(one)} {self._gain(one)}".rstrip() for one in self.values]
        return "\n".join([*lines, self._condition()])

    def _finding(self, one: DebiasedValue) -> str:
        about = one.metric
        if self.systems:
            told = _("{metric} of {b} less that of {a}")
            about = told.format(metric=about, a=self.systems[0], b=self.systems[1])
        if math.isnan(one.value):
            return _(
                "{about} cannot be estimated: it is undefined for some part of the questions."
            ).format(about=about)
        return _(
            "{about} is {value} ({level} % interval {interval}) as people would judge all {n} "
            "questions{shown}. The judge alone says {judge}{verdict}; the labels of people alone "
            "say {human} ({human_interval})."
        ).format(
            about=about,
            value=_short(one.value),
            level=percent(self.level),
            interval=_span(one.low, one.high),
            n=self.n_asked,
            shown=self._shown(one),
            judge=_short(one.judge),
            verdict=self._verdict(one),
            human=_short(one.human),
            human_interval=_span(one.human_low, one.human_high),
        )

    def _shown(self, one: DebiasedValue) -> str:
        """Say which of two systems is better, where that is more than chance."""
        if not self.systems:
            return ""
        if one.low <= 0 <= one.high:
            return _(", which shows no difference")
        lower = one.average is not None and one.average.lower_is_better
        return _(", so {} is better").format(self.systems[int((one.value > 0) != lower)])

    @staticmethod
    def _verdict(one: DebiasedValue) -> str:
        if one.low <= one.judge <= one.high or not one.labels_differ:
            return ""
        return _(", which is too high") if one.judge > one.high else _(", which is too low")

    def _gain(self, one: DebiasedValue) -> str:
        """Say what the judge's labels are worth, or that they are worth nothing."""
        if math.isnan(one.value):
            return ""
        others = self.n_asked - self.n_labelled
        if one.saved >= _LITTLE:
            # More labels than there are questions left cannot be had.
            n = self.n_labelled / max(1 - one.saved, _NOTHING) ** 2
            told = _(
                "Together they narrow that interval by {share} %, as {more:.0f} more labelled "
                "questions would."
            )
            more = min(n - self.n_labelled, others)
            return told.format(share=percent(round(one.saved, 2)), more=more)
        if not one.labels_differ:
            return _(
                "People say the same of every labelled question, so these tell nothing of the "
                "judge."
            )
        if math.isnan(one.correlation):
            return _("Nothing is gained by the judge: one of both says the same of every question.")
        if 1 - math.sqrt(1 - min(one.correlation, 1) ** 2) < _LITTLE or one.correlation < 0:
            told = _(
                "Nothing is gained by the judge: it hardly agrees with people (correlation "
                "{agreement:.2f})."
            )
        else:
            told = _(
                "Nothing is gained by the judge (correlation {agreement:.2f}, {others} questions "
                "without labels of people)."
            )
        return told.format(agreement=one.correlation, others=others)

    def _condition(self) -> str:
        among = "" if self.clusters is None else _(", in clusters by {!r}").format(self.clusters)
        said = _(
            "Valid if the {n} labelled questions are a random sample of the {asked} asked{among}."
        ).format(n=self.n_labelled, asked=self.n_asked, among=among)
        if self.compared_by != "counts":
            return said
        unseen = _(
            "Whether people and judge saw the same lists is known only from how many documents "
            "these hold: a result without its documents, or with other names for them, does not "
            "tell which."
        )
        return f"{said} {unseen}"

    def _cells(self) -> list[list[str]]:
        interval = _("{} % interval").format(percent(self.level))
        header = [_("metric"), pgettext("estimated", "value"), interval, _("people alone")]
        header += [_("interval"), _("judge alone"), _("correlation"), _("saved")]
        return [header] + [
            [
                one.metric,
                _short(one.value),
                _span(one.low, one.high),
                _short(one.human),
                _span(one.human_low, one.human_high),
                _short(one.judge),
                "–" if math.isnan(one.correlation) else f"{one.correlation:.2f}",
                _("{} %").format(percent(round(one.saved, 2))),
            ]
            for one in self.values
        ]

    def _head(self) -> str:
        if not self.systems:
            return _("All questions as people would judge them")
        return _("{b} less {a}").format(a=self.systems[0], b=self.systems[1])

    def __repr__(self) -> str:
        return "\n".join([self._head(), *as_text(self._cells(), n_names=1), self.summary()])

    def _repr_html_(self) -> str:
        said = "<br>".join(html.escape(line) for line in self.summary().split("\n"))
        return f"<p>{html.escape(self._head())}</p>{as_html(self._cells())}<p>{said}</p>"


def _short(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _span(low: float, high: float) -> str:
    return _("{} to {}").format(_short(low), _short(high))


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


def _refuse_for_values(metric: object, clusters: object) -> None:
    for argument, value in (("metric", metric), ("clusters", clusters)):
        if value is not None:
            raise InvalidInput(
                argument, "is for results, and these are plain values", "leave it out"
            )


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
    ours, theirs = _settings(one), _settings(other)
    differing = [
        f"{name}: {theirs.get(name, '?')} vs {ours.get(name, '?')}"
        for name in {**theirs, **ours}
        if name not in ignored and same(ours.get(name, "?"), theirs.get(name, "?")) is False
    ]
    if differing:
        problem = f"was evaluated with other settings than the others: {'; '.join(differing)}"
        raise InvalidInput(argument, problem, "Evaluate all with the same settings")


def _settings(result: EvaluationResult) -> dict[str, str]:
    """Return the settings, without how many queries lack ground truth."""
    policy = result.settings.get("no_ground_truth", "?").partition("(")[0]
    return {**result.settings, "no_ground_truth": policy}


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
        return QuerySums(self.sums.columns[places], self.sums.positions, self.sums.averages)

    def places(self, labels: Sequence[Any], missing: str) -> IntArray:
        """Return where questions stand.

        Raises:
            InvalidInput: If one is not there, in the words of ``missing``.
        """
        position = {label: place for place, label in enumerate(self.labels or ())}
        lacking = [label for label in labels if label not in position]
        if lacking:
            raise InvalidInput(self.argument, missing.format(some(lacking)))
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
    return _Sample(argument, _distinct(argument, labels), value.counted, sums, value.tags)


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
    labels, values = _values_by_label(argument, given, by_label=by_label)
    columns = np.stack([values, np.ones(len(values))], axis=1)
    sums = QuerySums(columns, {("value", None): 0, (QUERIES, None): 1}, ((_MEAN, None),))
    return _Sample(argument, labels, np.ones(len(values), np.bool_), sums)


def _values_by_label(
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
    return labels and _distinct(argument, labels), np.array(listed, np.float64)


def _distinct(argument: str, labels: list[Any]) -> list[Any]:
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
        labelled, others = _labelled(samples), _others(samples)
        asked = [one for argument in (_HUMAN, _JUDGE) for one in labelled[argument]]
        kept = np.any([one.counted[at] for one, at in asked], axis=0)
        left = np.any([one.counted[at] for one, at in others], axis=0)
        if kept.sum() < _FEWEST_LABELS:
            problem = f"must hold at least {_FEWEST_LABELS} questions that count, got {kept.sum()}"
            raise InvalidInput(_HUMAN, problem, "Label more, drawn at random from those asked")
        if left.sum() < 2:
            problem = "must hold at least two questions beside the labelled ones that count, got "
            raise InvalidInput(_UNLABELLED, f"{problem}{left.sum()}")
        human, judge = (
            [one.at(at[kept]) for one, at in labelled[argument]] for argument in (_HUMAN, _JUDGE)
        )
        clusters = None
        if tag is not None:
            (first, at), (unlabelled, left_at) = labelled[_HUMAN][0], others[0]
            clusters = _clusters(tag, [(first, at[kept]), (unlabelled, left_at[left])])
        return cls(human, judge, [one.at(at[left]) for one, at in others], clusters)

    @property
    def n_labelled(self) -> int:
        return len(self.human[0].columns)

    @property
    def n_asked(self) -> int:
        return self.n_labelled + len(self.others[0].columns)


_Samples: TypeAlias = Mapping[str, Sequence[_Sample]]


def _labelled(samples: _Samples) -> dict[str, list[tuple[_Sample, IntArray]]]:
    """Return, by argument and system, where the labelled questions stand."""
    order = _order(samples)
    if order is None:
        sizes = {one.n for argument in (_HUMAN, _JUDGE) for one in samples[argument]}
        if len(sizes) > 1:
            problem = f"must have one value per labelled question, got {sorted(sizes)} of them"
            raise InvalidInput(_JUDGE, problem)
        everything = np.arange(sizes.pop())
        return {name: [(one, everything) for one in samples[name]] for name in (_HUMAN, _JUDGE)}
    return {
        argument: [
            (one, one.places(order, ": lacks labelled questions: {}")) for one in samples[argument]
        ]
        for argument in (_HUMAN, _JUDGE)
    }


def _others(samples: _Samples) -> list[tuple[_Sample, IntArray]]:
    """Return, by system, where the questions stand that people did not label.

    Raises:
        InvalidInput: If a labelled question is not among those asked.
    """
    first, *more = samples[_UNLABELLED]
    order = _order(samples)
    if order is None:
        for one in more:
            if one.n != first.n:
                problem = f"must have as many values for both systems, got {first.n} and {one.n}"
                raise InvalidInput(_UNLABELLED, problem)
        return [(one, np.arange(one.n)) for one in (first, *more)]
    for one, judge in zip((first, *more), samples[_JUDGE], strict=True):
        _check_same_questions(
            one, one.places(order, ": labelled questions are not among those asked: {}"), judge
        )
    among = set(order)
    labels = [label for label in first.labels or () if label not in among]
    for one in more:
        if one.n != first.n:
            problem = f"must hold the same questions for both systems, got {first.n} and {one.n}"
            raise InvalidInput(_UNLABELLED, problem)
    missing = ": lacks questions that the other system was asked: {}"
    return [(one, one.places(labels, missing)) for one in (first, *more)]


def _check_same_questions(asked: _Sample, places: IntArray, judge: _Sample) -> None:
    """Refuse plain values of which the judge's two disagree.

    Raises:
        InvalidInput: If so: they are of another run, or their rows were numbered anew and are other
            questions.
    """
    if asked.sums.averages[0][0] is not _MEAN:
        return  # of results, more is known
    labels = [(asked.labels or ())[place] for place in places.tolist()]
    theirs = judge.sums.columns[judge.places(labels, ": lacks labelled questions: {}")]
    differs = np.flatnonzero((asked.sums.columns[places] != theirs).any(axis=1))
    if len(differs):
        problem = f"differs from judge for question {clipped(labels[int(differs[0])])}"
        fix = "give each question one label everywhere, or pass lists, those of the others alone"
        raise InvalidInput(asked.argument, problem, fix)


def _order(samples: _Samples) -> list[Any] | None:
    """Return the labels of the labelled questions; ``None`` where there are positions alone.

    Raises:
        InvalidInput: If some have labels and others have not, or two systems' differ in number.
    """
    every = [one for systems in samples.values() for one in systems]
    first = every[0]
    for one in every:
        if (one.labels is None) != (first.labels is None):
            allowed = "must have no labels" if first.labels is None else "must be by label"
            raise InvalidInput(one.argument, f"{allowed}, as human is")
    for one in samples[_HUMAN]:
        if one.n != first.n:
            problem = f"must hold the same questions for both systems, got {first.n} and {one.n}"
            raise InvalidInput(_HUMAN, problem)
    return first.labels


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
                raise unknown("clusters", tag, list(sample.tags), f"a tag of {sample.argument}")
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
        labels_differ=float(np.ptp(y.points)) > _NOTHING,
    )


def _together(judge: Sequence[QuerySums], others: Sequence[QuerySums]) -> list[QuerySums]:
    return [
        QuerySums(np.concatenate([one.columns, other.columns]), one.positions, one.averages)
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
    if not spread > _NOTHING**2:
        return math.nan if math.isnan(spread) else 0.0
    shared = float(np.mean((y - y.mean()) * (f - f.mean())))
    return min(max(shared / ((1 + len(y) / len(u)) * spread), 0.0), 1.0)


def _correlation(y: FloatArray, f: FloatArray) -> float:
    if not min(float(np.ptp(y)), float(np.ptp(f))) > _NOTHING:
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
        if np.abs(judged - 0.5).max() > 0.5 + _NOTHING:
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
    if independent <= _NOTHING**2:
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
        if n < _FEW_CLUSTERS:
            told = _(
                "The labelled questions are of {n} clusters. With fewer than {few} the interval "
                "may miss the true value more often than its level says."
            )
            warn(told.format(n=n, few=_FEW_CLUSTERS), _("Label questions of more clusters"))


def _warn_of_sameness(values: Sequence[DebiasedValue], given: _Given) -> None:
    certain = f"{METRICS['rank'].key}@1"  # a rank within the first 1 can only be 1
    flat = [
        one.metric
        for one in values
        if one.human_high - one.human_low <= _NOTHING and one.metric != certain
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


# Which metric goes with the scores of the answers.

_FEWEST_SCORED = 4
# What the per-query table does not show either; reciprocal ranks order queries as ranks do.
_UNSHOWN = ("precision_base", METRICS["rank"].name)


class Correlation(NamedTuple):
    """How one metric goes with the scores; positive: better retrieval goes with higher scores.

    Attributes:
        metric: The metric by the name of its mean, and its cutoff: ``"macro_recall@5"``.
        n: Queries for which it is defined.
        spearman, spearman_low, spearman_high: Spearman's rank correlation and its interval.
        kendall, kendall_low, kendall_high: Kendall's τ_b and its interval.
    """

    metric: str
    n: int
    spearman: float
    spearman_low: float
    spearman_high: float
    kendall: float
    kendall_low: float
    kendall_high: float


@dataclass(frozen=True, eq=False)
class Predictions:
    """How well each metric predicts the scores of the answers; made by ``result.predicts``.

    Attributes:
        correlations: One per metric and cutoff, over all scored queries.
        best: The metric with the highest Spearman correlation on a random half of the queries;
            ``None`` if none has one there.
        spearman: What it comes to on the other half.
        low: Lower bound of its interval there.
        high: Upper bound.
        rivals: The metrics that the other half cannot tell from the best: the interval of the
            difference holds 0.
        n_chosen_on: Number of queries the best was chosen on.
        n_reported_on: Number of queries of the other half.
        level: The level of the intervals.
    """

    correlations: tuple[Correlation, ...]
    best: str | None
    spearman: float
    low: float
    high: float
    rivals: tuple[str, ...]
    n_chosen_on: int
    n_reported_on: int
    level: float

    @property
    def metrics(self) -> list[str]:
        """The metrics, such as ``"ndcg@10"``."""
        return [one.metric for one in self.correlations]

    @property
    def can_rank(self) -> bool:
        """Whether there are queries enough to rank the metrics.

        There are if both halves have 30, the best one's correlation is shown not to be 0, and at
        least half of the other metrics are told from it.
        """
        enough = min(self.n_chosen_on, self.n_reported_on) >= FEW_QUERIES
        return enough and self.low > 0 and 2 * len(self.rivals) <= self._n_others

    @property
    def is_turned(self) -> bool:
        """Whether even the best metric is shown to go *against* the scores.

        Better retrieval does not make answers worse: the scores are likely to be lower for better
        answers, as an error rate is.
        """
        return self.high < 0

    @property
    def _n_others(self) -> int:
        """Number of metrics that vary, but for the best."""
        return sum(not math.isnan(one.spearman) for one in self.correlations) - 1

    @property
    def table(self) -> pd.DataFrame:
        """One row per metric and cutoff, the highest Spearman correlation first."""
        import pandas as pd

        rows = sorted(self.correlations, key=_from_the_best)
        index = pd.Index([one.metric for one in rows], name="metric")
        return pd.DataFrame([one[1:] for one in rows], index=index, columns=Correlation._fields[1:])

    @spoken
    def summary(self, language: Language | None = None) -> str:
        """Return in plain words which metric to look at, and whether the queries can tell.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        """
        n = self.n_chosen_on + self.n_reported_on
        if self.best is None or math.isnan(self.spearman):
            return _(
                "No metric can be said to predict these scores, and {} queries are too few to rank "
                "the metrics."
            ).format(n)
        found = _(
            "Spearman {value:.2f} ({level} % interval {interval}) on {n} queries; it was chosen on "
            "the other {chosen}."
        ).format(
            value=self.spearman,
            level=percent(self.level),
            interval=_("{} to {}").format(f"{self.low:.2f}", f"{self.high:.2f}"),
            n=self.n_reported_on,
            chosen=self.n_chosen_on,
        )
        if self.is_turned:
            start = _(
                "These scores are lower where retrieval is better: even {best}, which goes with "
                "them best, has {found} If a low score is a good answer, turn the sign: pass "
                "-score."
            )
            return start.format(best=self.best, found=found)
        if self.low > 0:
            start = _("{best} predicts these scores best: {found}")
        else:
            start = _("No metric is shown to predict these scores: the best, {best}, has {found}")
        if self.can_rank:
            rest = _("{n} of {others} other metrics cannot be told from it.")
        else:
            rest = _(
                "{n} of {others} other metrics cannot be told from it: {queries} queries are too "
                "few to rank the metrics."
            )
        counts = rest.format(n=len(self.rivals), others=self._n_others, queries=n)
        return f"{start.format(best=self.best, found=found)} {counts}"

    def _cells(self) -> list[list[str]]:
        named = _("{} % interval").format(percent(self.level))
        header = [_("metric"), _("queries"), _("Spearman"), named, _("Kendall τ_b"), named]
        return [header] + [
            [
                one.metric,
                str(one.n),
                _short(one.spearman),
                _span(one.spearman_low, one.spearman_high),
                _short(one.kendall),
                _span(one.kendall_low, one.kendall_high),
            ]
            for one in sorted(self.correlations, key=_from_the_best)
        ]

    def __repr__(self) -> str:
        return "\n".join([*as_text(self._cells(), n_names=1), self.summary()])

    def _repr_html_(self) -> str:
        return f"{as_html(self._cells())}<p>{html.escape(self.summary())}</p>"


def _from_the_best(one: Correlation) -> float:
    return math.inf if math.isnan(one.spearman) else -one.spearman


class _Sampling(NamedTuple):
    level: float
    n_resamples: int
    seed: int


def predictions(
    result: EvaluationResult,
    scores: Any,
    *,
    level: float = 0.95,
    n_resamples: int = 1_000,
    seed: int = 0,
) -> Predictions:
    """Return how every metric at every cutoff goes with the scores of the answers.

    See :meth:`EvaluationResult.predicts <krag_eval.EvaluationResult.predicts>`.
    """
    check_sampling(level, n_resamples, seed)
    check_counted(result)
    scored = _scores(result, scores)
    columns = _metric_columns(result)
    warn_of_few_queries(len(scored))
    sampling = _Sampling(float(level), int(n_resamples), int(seed))
    everywhere = _correlations(columns, scored, sampling)
    shuffled = np.random.default_rng([seed, 2]).permutation(len(scored))
    chosen_on, reported_on = np.sort(shuffled[::2]), np.sort(shuffled[1::2])
    best = _best(columns, scored, chosen_on)
    spearman, low, high, rivals = math.nan, math.nan, math.nan, tuple(columns)
    if best is not None:
        half = {name: values[reported_on] for name, values in columns.items()}
        spearman, low, high, rivals = _held_out(best, half, scored[reported_on], sampling)
    return Predictions(
        everywhere, best, spearman, low, high, rivals, len(chosen_on), len(reported_on), level
    )


def _scores(result: EvaluationResult, given: Any) -> FloatArray:
    """Return the score of each counted query, in the order of the rows.

    Raises:
        InvalidType: If they are no numbers.
        InvalidInput: If there is not one for each query, or all are equal.
    """
    labels, values = _values_by_label("scores", given)
    if labels is None:
        if len(values) != result.n_queries:
            problem = f"must be one for each of {result.n_queries} queries, got {len(values)}"
            raise InvalidInput("scores", problem)
    else:
        values = _by_label(result, labels, values)
    values = values[result.counted]
    if len(values) < _FEWEST_SCORED:
        problem = f"must be of at least {_FEWEST_SCORED} queries that count, got {len(values)}"
        raise InvalidInput("scores", problem)
    if float(np.ptp(values)) == 0:
        raise InvalidInput("scores", f"must differ to be predicted, and all are {values[0]:g}")
    return values


def _by_label(result: EvaluationResult, labels: list[Any], values: FloatArray) -> FloatArray:
    """Put scores in the order of the rows; those of queries that do not count may be missing."""
    own = _distinct("scores", result.labels)
    position = {label: place for place, label in enumerate(labels)}
    counted = zip(own, result.counted.tolist(), strict=True)
    missing = [label for label, counts in counted if counts and label not in position]
    known = set(own)
    if missing:
        fix = "" if known.intersection(labels) else "pass a list, in the order of the rows"
        raise InvalidInput("scores", f": there is none for {some(missing)}", fix)
    foreign = [label for label in labels if label not in known]
    if foreign:
        fix = "leave them out, or pass scores in the order of the rows"
        raise InvalidInput("scores", f": the result has no queries {some(foreign)}", fix)
    return np.array([values[position[one]] if one in position else np.nan for one in own])


def _metric_columns(result: EvaluationResult) -> dict[str, FloatArray]:
    """Return per-query values by name and cutoff, so that higher is better; NaN if undefined."""
    metrics = metrics_of(result.keys, result.declared)
    columns = {}
    for k in result.k:
        for column in result.shown_columns:
            if column not in _UNSHOWN:
                key = result.keys[column]
                values = per_query(result, column, k)
                sign = -1 if metrics[column].lower_is_better else 1
                columns[f"{key}@{spelled(k)}"] = sign * values
    return columns


def _correlations(
    columns: Mapping[str, FloatArray], scores: FloatArray, sampling: _Sampling
) -> tuple[Correlation, ...]:
    """Return both correlations of every metric, with intervals from the same resamples."""
    once = np.ones((1, len(scores)), np.int64)
    resampled = _resampled(columns, scores, sampling, _rank_correlations)
    rows = []
    for name, values in columns.items():
        found = zip(_rank_correlations(once, values, scores), resampled[name], strict=True)
        numbers = [(float(value[0]), line) for value, line in found]
        bounds = [(value, *interval(line, value, sampling.level)) for value, line in numbers]
        rows.append(Correlation(name, int((~np.isnan(values)).sum()), *bounds[0], *bounds[1]))
    return tuple(rows)


def _best(columns: Mapping[str, FloatArray], scores: FloatArray, chosen_on: IntArray) -> str | None:
    """Return the metric that goes best with the scores of some queries, defined for all of them."""
    once = np.ones((1, len(chosen_on)), np.int64)
    found = {
        name: float(_spearman(once, values[chosen_on], scores[chosen_on])[0])
        for name, values in columns.items()
        if not np.isnan(values).any()
    }
    told = {name: value for name, value in found.items() if not math.isnan(value)}
    return max(told, key=told.__getitem__) if told else None


def _held_out(
    best: str, columns: Mapping[str, FloatArray], scores: FloatArray, sampling: _Sampling
) -> tuple[float, float, float, tuple[str, ...]]:
    """Return Spearman's correlation of the best with its interval, and who comes as near."""
    once = np.ones((1, len(scores)), np.int64)
    value = float(_spearman(once, columns[best], scores)[0])
    resampled = _resampled(columns, scores, sampling, _spearman)
    rivals = []
    for name, values in columns.items():
        # On the queries for which both are defined.
        known = np.where(np.isnan(values), np.nan, columns[best])
        ahead = float((_spearman(once, known, scores) - _spearman(once, values, scores))[0])
        lead = resampled[best] - resampled[name]
        if np.isnan(values).any():
            lead = _resampled({name: known}, scores, sampling, _spearman)[name] - resampled[name]
        low, _ = interval(lead, ahead, sampling.level)
        # One that is the same for all queries predicts nothing.
        if name != best and not low > 0 and len(np.unique(values[~np.isnan(values)])) > 1:
            rivals.append(name)
    return (value, *interval(resampled[best], value, sampling.level), tuple(rivals))


_Statistic: TypeAlias = Callable[[IntArray, FloatArray, FloatArray], FloatArray]


def _resampled(
    columns: Mapping[str, FloatArray],
    scores: FloatArray,
    sampling: _Sampling,
    statistic: _Statistic,
) -> dict[str, FloatArray]:
    """Return a statistic of each metric in every resample of the queries; shape (…, resamples)."""
    n = len(scores)
    parts: dict[str, list[FloatArray]] = {name: [] for name in columns}
    for *_place, times in drawn(n, sampling.seed, blocks(sampling.n_resamples, n)):
        for name, values in columns.items():
            parts[name].append(statistic(times, values, scores))
    return {name: np.concatenate(part, axis=-1) for name, part in parts.items()}


class _Ranked(NamedTuple):
    """Queries that count several times, those without a value left out.

    Attributes:
        times: How often each counts; shape (resamples, queries).
        x: The level of each metric value, numbered from 0 up.
        y: The level of each score.
        in_x: How often each level of x was drawn; shape (resamples, levels).
        in_y: How often each level of y was.
    """

    times: IntArray
    x: IntArray
    y: IntArray
    in_x: IntArray
    in_y: IntArray

    @classmethod
    def of(cls, times: IntArray, values: FloatArray, scores: FloatArray) -> _Ranked:
        defined = ~np.isnan(values)
        times, x, y = times[:, defined], _levels(values[defined]), _levels(scores[defined])
        return cls(times, x, y, _per_level(times, x), _per_level(times, y))


def _spearman(times: IntArray, values: FloatArray, scores: FloatArray) -> FloatArray:
    """Return Spearman's correlation of queries that count several times; shape (resamples,).

    For many resamples at once, with mid-ranks of what is tied; NaN where one side does not vary.
    """
    return _of_ranks(_Ranked.of(times, values, scores))


def _rank_correlations(times: IntArray, values: FloatArray, scores: FloatArray) -> FloatArray:
    """Return Spearman's correlation and Kendall's τ_b likewise; shape (2, resamples)."""
    ranked = _Ranked.of(times, values, scores)
    return np.stack([_of_ranks(ranked), _tau_b(ranked)])


def _levels(values: FloatArray) -> IntArray:
    """Number the distinct values from 0 up; what differs by rounding alone is one value."""
    distinct, level = np.unique(values, return_inverse=True)
    apart = np.diff(distinct) > _NOTHING * np.abs(distinct[1:])
    return np.asarray(np.cumsum(np.append(False, apart)[: len(distinct)])[level], np.int64)


def _per_level(times: IntArray, level: IntArray) -> IntArray:
    """Count how often each level was drawn; shape (resamples, levels)."""
    if len(level) == 0:
        return np.zeros((len(times), 1), np.int64)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(int(level.max()) + 1))
    return np.asarray(np.add.reduceat(times[:, order], starts, axis=1))


def _of_ranks(ranked: _Ranked) -> FloatArray:
    """Return the correlation of the mid-ranks, whose mean is half the number of queries drawn."""
    times, x, y, in_x, in_y = ranked
    ranks_x, ranks_y = _centred_ranks(in_x), _centred_ranks(in_y)
    shared = (times * ranks_x[:, x] * ranks_y[:, y]).sum(axis=1)
    spread = (in_x * ranks_x**2).sum(axis=1) * (in_y * ranks_y**2).sum(axis=1)
    return _quotient(shared, np.sqrt(spread))


def _centred_ranks(counts: IntArray) -> FloatArray:
    up_to = np.cumsum(counts, axis=1)
    return np.asarray(up_to - counts / 2 - up_to[:, -1:] / 2)


def _tau_b(ranked: _Ranked) -> FloatArray:
    """Return (P - Q) / √((n₀ - n₁)(n₀ - n₂)) of concordant, discordant, all and tied pairs."""
    times, x, y, in_x, in_y = ranked
    both = _levels((x * in_y.shape[1] + y).astype(np.float64))
    every = _pairs(times.sum(axis=1, keepdims=True))
    tied_x, tied_y, tied_both = _pairs(in_x), _pairs(in_y), _pairs(_per_level(times, both))
    few, many = (x, y) if in_x.shape[1] < in_y.shape[1] else (y, x)
    concordant = _concordant(times, many, few)
    # All pairs but those tied in one or both, and those concordant, are discordant.
    discordant = every - tied_x - tied_y + tied_both - concordant
    spread = (every - tied_x).astype(np.float64) * (every - tied_y)
    return _quotient(concordant - discordant, np.sqrt(spread))


def _pairs(counts: IntArray) -> IntArray:
    return np.asarray((counts * (counts - 1) // 2).sum(axis=1), np.int64)


def _concordant(times: IntArray, x: IntArray, y: IntArray) -> IntArray:
    """Count the pairs in which x and y both rise; few levels of y are fewer steps.

    Two levels of y differ first in one binary digit, counted from the highest: digit by digit, and
    within what agrees above it, each query with a 1 is paired with those of a 0 and a lower x.
    Within one x, the higher y come first, so that no such pair is counted.
    """
    by_x = np.lexsort((-y, x))
    total = np.zeros(len(times), np.int64)
    for digit in range(int(y.max(initial=0)).bit_length()):
        order = by_x[np.argsort(y[by_x] >> (digit + 1), kind="stable")]
        group, is_one = y[order] >> (digit + 1), (y[order] >> digit) & 1 == 1
        drawn_here = times[:, order]
        zeros = np.cumsum(np.where(is_one, 0, drawn_here), axis=1)
        starts = np.searchsorted(group, group)
        before = zeros - np.where(starts > 0, zeros[:, starts - 1], 0)
        total += np.where(is_one, drawn_here * before, 0).sum(axis=1)
    return total


def _quotient(top: Any, bottom: FloatArray) -> FloatArray:
    undefined = np.full(len(bottom), np.nan)
    return np.asarray(np.divide(top, bottom, out=undefined, where=bottom > 0), np.float64)
