"""Comparison: whether one retriever is better than another on the same queries, and how surely.

What may be compared is checked here; the numbers come from :mod:`krag_eval.comparison.paired`, the
words from :mod:`krag_eval.core.display`. pandas loads when it is needed.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from krag_eval.comparison import paired
from krag_eval.comparison.comparable import checked_metrics
from krag_eval.comparison.paired import Difference, PerQuery, rows_at
from krag_eval.comparison.slices import (
    FEWEST_QUERIES,
    MOST_TESTS,
    Division,
    SlicedComparison,
    only_within,
)
from krag_eval.core import (
    DEFINED,
    N_,
    Advice,
    Budget,
    Cutoff,
    Drawn,
    Fix,
    InvalidInput,
    InvalidType,
    Language,
    MissingQuestions,
    ResultFacts,
    RowsInMemory,
    _,
    clipped,
    deepest,
    errors,
    must,
    ngettext,
    parse_metric,
    resolved_average,
    spelled,
    spoken,
    told_missing,
    warn,
    whole,
)
from krag_eval.core.documents import STATUS, ids_among, unreviewed_in
from krag_eval.core.matching.identity import same
from krag_eval.core.matching.names import says_less
from krag_eval.core.results.latency import told_failed
from krag_eval.core.results.reviews import UNREVIEWED, with_unreviewed
from krag_eval.core.shown import write_report
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import Clusters, Sampling, Standing

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.comparison.judged import ToJudge


#: Which queries are compared: those of all results, which must be the same, or those all have.
On: TypeAlias = Literal["all", "common"]


def compare(
    results: Mapping[str, ResultFacts] | Iterable[ResultFacts] | ResultFacts,
    *others: ResultFacts | str | Iterable[str],
    metric: str | Iterable[str] | None = None,
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    on: On = "all",
    clusters: str | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare results over the same queries: every pair, in the order given, on every metric.

    For a pair (a, b) the difference is the value of b minus the value of a: what changes when b
    takes the place of a. Per pair and metric there are:

    - **An interval** of the difference: percentiles of the paired bootstrap over queries, the same
      as ``scipy.stats.bootstrap(…, paired=True, method="percentile")``. Differences have heavy
      tails but little skew; there percentiles keep their level better than BCa, which is for single
      averages. It is not widened for the number of comparisons.
    - **A permutation test**, two-sided, which decides whether a difference is shown. Were the two
      systems alike, the outcomes of any query could as well be swapped (Fisher's randomization
      test, which Smucker, Allan and Carterette 2007 recommend for retrieval). With up to 15
      differing queries all swaps are enumerated; where the differences are multiples of one unit,
      as of hit rates and recall, all swaps are counted; otherwise, of n = ``n_resamples`` random
      ones b give p = (b + 1) / (n + 1), never 0 (Phipson and Smyth 2010). Where more are needed for
      the smallest p to pass Holm's correction, as for more than 250 tests at 10,000 swaps, more are
      made: twice as many as it takes, up to 100,000; and ten times as many, twice, where p is so
      near the level that others might give another verdict. For averages that are not
      means over queries, such as the micro averages, the counts behind them are swapped and the
      average formed anew.
    - **A t-test**, paired and two-sided, where the average is a mean over queries.
    - **Holm's correction** (1979) of the permutation p, over all pairs and metrics asked for.
    - **An effect size**, Cohen's d_z: the mean difference per query over its standard deviation,
      where the average is a mean over queries.

    Queries that were made from the same document do alike: two of them say less than two of
    different documents, and intervals that take them as independent are too narrow. With
    ``clusters``, whole clusters are drawn, and swapped: in every way there is with up to 15 that
    differ. The summary has the design effect: how many times as many queries it takes as if they
    were independent. A comparison without ``clusters`` says so where queries have a tag ``source``,
    ``file``, ``document``, ``doc_id`` or ``corpus`` with at least 10 values and the design effect
    by it passes 1.5.

    All pairs and metrics share the same resamples and the same random swaps. Queries are drawn and
    swapped in an order of their own, by value: p, intervals and verdicts are the same in whatever
    order they were asked, with and without labels.

    Averages over the queries that have a value, such as ``mean_rank`` and ``redundancy``, are
    compared on those where both systems have one. The summary says how many these are and how large
    the share with a value is in each system; b is not called better if it has the smaller one, and
    is worse if its values are, also if it has the larger one.

    Queries are paired by their labels, in whatever order each result has them; without labels, by
    position. Where the cutoffs differ, what is compared is at those that all results have.

    Args:
        results: Name -> result, two or more; or the results themselves, one after the other or in
            a list. They must be over the same queries, with the same ground truth, matcher,
            threshold, criteria and conventions.
        *others: The other results, if they are given one after the other.
        metric: An average at a cutoff, or several: ``"ndcg@10"`` (if not given; nDCG at the deepest
            cutoff that all have, if 10 is none), ``"micro_recall@5"``, ``"mrr@all"``;
            ``"recall@5"`` is the macro average.
        names: What to call results that came without names; ``system_1``, ``system_2`` and so on
            if not given.
        baseline: The name of the system to hold the others against: it is a in every pair, there
            are no other pairs, and Holm's correction is over these alone.
        on: ``"all"`` if every result must have the same queries, ``"common"`` to compare the
            queries that all have and leave out the others, which ``left_out`` and the summary
            name.
        clusters: A tag of the queries, such as ``"source"``: those that share its value belong
            together. A query without a value is a cluster of its own.
        level: How often an interval should cover the true difference, between 0 and 1.
        n_resamples: Number of resamples of the bootstrap, and of random swaps.
        seed: The same seed gives the same digits.

    Raises:
        InvalidType: If ``results`` are no results, or ``metric`` neither a string nor several.
        InvalidInput: If the results are not comparable (saying what differs), are fewer than two,
            or lack the metric or its cutoff, or an argument is out of range; if they have no tag
            ``clusters``, differ in it, or have one value of it alone.

    Warns:
        KragEvalWarning: If there are fewer than 30 queries or 20 clusters, queries lack the tag of
            the clusters, the results were made by different
            versions of krag_eval, or it is unknown whether they have the same ground truth
            (saved by krag_eval 0.1) or the same settings of a matcher of your own; if so much is
            tested that no difference could pass Holm's correction.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> actual = [[f"passage {i}"] for i in range(40)]
    >>> def finds(first_n):
    ...     predicted = [truth if i < first_n else ["?"] for i, truth in enumerate(actual)]
    ...     return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=10)
    >>> print(compare({"bm25": finds(20), "dense": finds(30)}).summary())
    dense is better than bm25 on ndcg@10 by 0.250 (0.750 against 0.500; 95 % interval 0.125 to
    0.400; p = 0.002 after Holm).
    >>> several = compare(finds(20), finds(30), finds(21), metric="mrr@10", baseline="system_1")
    >>> several.leaderboard["mrr@10"].to_dict()
    {'system_2': 0.75, 'system_3': 0.525, 'system_1': 0.5}
    >>> several.pairs
    [('system_1', 'system_2'), ('system_1', 'system_3')]
    """
    given: tuple[Any, ...] = (results, *others)
    if len(given) > 1 and not isinstance(given[-1], ResultFacts):
        if metric is not None:
            raise InvalidType("metric", f"must be given once, got {clipped(given[-1])} as well")
        *given, metric = given  # type: ignore[assignment]  # it came by position
    named, sampling = _by_name(given, names), intervals.check_sampling(level, n_resamples, seed)
    return compared(named, metric, sampling, baseline=baseline, on=on, clusters=clusters)


def compared(
    named: Mapping[str, ResultFacts],
    asked: Any,
    sampling: Sampling,
    *,
    baseline: str | None = None,
    on: On = "all",
    clusters: str | None = None,
    max_drop: float | None = None,
    runs: Sequence[ResultFacts] = (),
) -> Comparison:
    """Compare results by name, as :func:`compare`.

    ``max_drop`` is what a gate allows, which asks whether b is worse; ``runs`` are those whose mean
    a is.
    """
    _check_results(named)
    named = _named_alike(named)
    if baseline is not None:
        errors.one_of("baseline", baseline, list(named))
    errors.one_of("on", on, get_args(On))
    together, left_out = aligned(named, on)
    first = check_comparable(together)
    intervals.check_counted(first)
    metrics = checked_metrics(named, default_metric(first) if asked is None else asked)
    check_same_metrics(together, metrics)
    intervals.warn_of_few_queries(int(np.count_nonzero(first.counted)))
    grouped = None if clusters is None else Clusters.of(list(together.values()), clusters)
    drawing = paired.Drawing(sampling, grouped, max_drop, runs)
    differences, values = paired.paired_differences(together, metrics, drawing, baseline)
    _warn_of_many_tests(differences, sampling)
    pairs = (((together[row.a], together[row.b]), metrics[row.metric]) for row in differences)
    return Comparison(
        differences,
        *sampling,
        signature=_common_signature(together),
        queries=[q for q, counted in zip(first.labels, first.counted, strict=True) if counted],
        per_query=values,
        compared=dict(together),
        given=dict(named),
        baseline=baseline,
        left_out=left_out,
        clusters=clusters,
        max_drop=max_drop,
        runs=tuple(runs),
        dependent={} if clusters is not None else dependent_tags(pairs),
    )


def _warn_of_many_tests(differences: Sequence[Difference], sampling: Sampling) -> None:
    """Warn where even the smallest p of random swaps would not pass Holm's correction."""
    level, n_resamples, _seed = sampling
    if all(one.test.is_exact for row in differences for one in row.estimates.values()):
        return
    n = sum(not math.isnan(p) for row in differences for p in (row.p_permutation, row.p_share))
    n_swaps = max(n_resamples, min(paired.swaps_for(n, level), paired.MOST_SWAPS))
    if n >= (1 - level) * (n_swaps + 1):
        told = _("By {swaps:,} random swaps, no difference can be shown among {n:,} tests.")
        advice = _("Pass {}, or name the system to hold the others against by {}")
        few = Advice(advice, n_resamples=paired.swaps_for(n, level), baseline=...)
        warn(told.format(swaps=n_swaps, n=n), few)


# Tags that tell what a query was made from, the design effect from which it matters, and how many
# values a tag must have to cluster by: fewer are groups, to look at one by one.
_SOURCES = ("source", "file", "document", "doc_id", "corpus")
_STRONG = 1.5
_FEWEST_VALUES = 10


def dependent_tags(
    averages: Iterable[tuple[Sequence[ResultFacts], tuple[str, Cutoff]]],
) -> dict[str, float]:
    """Return the tags by which queries do alike, each with the greatest design effect by it.

    Args:
        averages: One result or the two of a pair, and an average of theirs; several such. All are
            of the same queries.
    """
    asked = list(averages)
    results = list({id(one): one for systems, _ in asked for one in systems}.values())
    known = list(dict.fromkeys(tag for one in results for tag in one.tags))
    found = {}
    for tag in (one for one in known if one.lower() in _SOURCES):
        try:
            clusters = Clusters.found(results, tag)
        except InvalidInput:  # the results differ in it
            continue
        if clusters is None or clusters.n - clusters.n_untagged < _FEWEST_VALUES:
            continue
        effects = [paired.spread_of(*one, clusters).design_effect for one in asked]
        found[tag] = max((one for one in effects if not math.isnan(one)), default=0.0)
    return {tag: effect for tag, effect in found.items() if effect > _STRONG}


def default_metric(result: ResultFacts) -> str:
    """Return nDCG at 10, or else at the deepest cutoff."""
    return f"ndcg@{spelled(10 if 10 in result.k else deepest(result.k))}"


def _by_name(given: Sequence[Any], names: Sequence[str] | None) -> Mapping[str, ResultFacts]:
    """Return results by name, which those that came in no mapping are given here."""
    results, *others = given
    if isinstance(results, Mapping):
        if others:
            problem = f"must be one mapping, or results alone, got {len(given)} arguments"
            raise InvalidType("results", problem)
        if names is not None:
            raise InvalidInput("names", "are for results without names", "leave it out")
        return results
    listed = given
    if not others and not isinstance(results, ResultFacts):
        if isinstance(results, str) or not isinstance(results, Iterable):
            be = 'map names to results, such as {"bm25": result_a, "dense": result_b}'
            raise must("results", be, results, kind=InvalidType)
        listed = list(results)
    if names is None:
        names = [f"system_{number}" for number in range(1, len(listed) + 1)]
    if isinstance(names, str):
        raise must("names", "be a list of names", names, kind=InvalidType)
    called = [errors.text("names", name, "texts that are not empty") for name in names]
    if not len(set(called)) == len(called) == len(listed):
        raise must("names", f"be one for each of {len(listed)} results, none twice", called)
    return dict(zip(called, listed, strict=True))


# What a row of the table shows only where queries may have no value, and what it never does.
_SHARES = ("n_both", "share_a", "share_b", "p_share", "p_share_holm")
_OF_A_GATE = ("p_worse", "p_worse_holm", "p_fewer", "p_fewer_holm", "estimates")
_NO_COLUMNS = ("slice", "n", "average", "spread", "alpha", "is_of_fewer", *_SHARES,
               *_OF_A_GATE)  # fmt: skip


# Labels, by system, of the queries that not all systems have.
_LeftOut: TypeAlias = Mapping[str, list[str | int]]


def aligned(
    results: Mapping[str, ResultFacts], on: On = "all"
) -> tuple[Mapping[str, ResultFacts], _LeftOut]:
    """Bring results to the same queries, in the order of the first, and to the cutoffs all have.

    What cannot be brought together is left as it is, for :func:`check_comparable` to refuse; a
    result that needs nothing is left alone.

    Raises:
        InvalidInput: If one has no per-query rows, or nothing is common that was asked for.
    """
    results = _named_alike(results)
    every, cutoffs = [one.k for one in results.values()], tuple[Cutoff, ...]()
    if any(set(one) != set(every[0]) for one in every):
        cutoffs = tuple(k for k in every[0] if all(k in one for one in every))
    labels = {name: result.labels for name, result in results.items()}
    kept = _shared_labels(labels, on)
    together = {}
    for name, result in results.items():
        places = None
        if kept is not None and labels[name] != kept:
            position = {label: place for place, label in enumerate(labels[name])}
            places = [position[label] for label in kept]
        together[name] = part_of(result, places, cutoffs)
    if kept is None:
        return together, {}
    among = set(kept)
    left_out = {name: [one for one in own if one not in among] for name, own in labels.items()}
    return together, {name: missing for name, missing in left_out.items() if missing}


def _named_alike(results: Mapping[str, ResultFacts]) -> Mapping[str, ResultFacts]:
    """Call queries of one id by one label, the last result's, where all results know the ids.

    So a question that was worded anew is the same query still. Ids that name mostly other questions
    are no ids of these, as numbers of rows are not.
    """
    *_others, last = results.values()
    if all({*one.labels} == {*last.labels} for one in results.values()):
        return results
    ids = {name: ids_among(one.tags) for name, one in results.items()}
    known = {name: some for name, some in ids.items() if some and len({*some}) == len(some)}
    if len(known) < len(results):
        return results
    label_of = dict(zip([*known.values()][-1], last.labels, strict=True))
    id_of = {label: key for key, label in label_of.items()}
    for name, one in results.items():
        pairs = [*zip(known[name], one.labels, strict=True)]
        n_known = sum(key in label_of for key, _ in pairs)
        n_same = sum(label_of.get(key) == label for key, label in pairs)
        if 2 * n_same < n_known or any(id_of.get(label, key) != key for key, label in pairs):
            return results
    alike = {}
    for name, one in results.items():
        labels = [label_of.get(key, own) for key, own in zip(known[name], one.labels, strict=True)]
        rows = rows_at(one.rows, range(one.n_queries), one.k)
        alike[name] = replace(one, rows=replace(rows, labels=labels))
    return alike


def _shared_labels(labels: Mapping[str, Sequence[str | int]], on: On) -> Sequence[str | int] | None:
    """Return the labels to compare, in the order of the first; ``None`` if they are not paired.

    Raises:
        InvalidInput: If what is common was asked for, and labels do not tell queries apart or
            there is none.
    """
    order, *others = labels.values()
    if all(order == other for other in others):
        return order
    unpaired = {name: why for name, own in labels.items() if (why := why_not_paired(own))}
    shared = {*order}.intersection(*others)
    if on == "all":
        same = all(len(shared) == len(own) for own in labels.values())
        return order if same and not unpaired else None
    for name, why in unpaired.items():
        problem = f": {name!r} {why}, so it is not known which of its queries others have"
        raise InvalidInput("results", problem, LABEL_THEM)
    if not shared:
        raise InvalidInput("results", ": there is no query that all of them have")
    return [one for one in order if one in shared]


LABEL_THEM = "Evaluate with a label for each query: queries= in Python, its question in a file"


def why_not_paired(labels: Sequence[str | int]) -> str:
    """Say why labels cannot tell what two results have in common; nothing if they can."""
    if list(labels) == list(range(len(labels))):
        return "has no labels of its queries, only their positions"
    repeated = [label for label, n in Counter(labels).items() if n > 1]
    return f"has {some(repeated)} more than once" if repeated else ""


def part_of(
    result: ResultFacts, positions: Sequence[int] | None, cutoffs: Sequence[Cutoff]
) -> ResultFacts:
    """Return a result of some of its queries, at some of its cutoffs; all of them if not given.

    Evidence is of all queries in their order, and is left out where that is another.
    """
    if positions is None and not cutoffs:
        return result
    every = range(result.n_queries) if positions is None else positions
    rows = rows_at(result.rows, every, cutoffs or result.k)
    return replace(
        result,
        settings=settings_of(result.settings, rows),
        rows=rows,
        evidence=result.evidence if positions is None else None,
        totals=None,
        retrieval=result.retrieval and result.retrieval.at(every),
    )


def settings_of(settings: Mapping[str, str], rows: RowsInMemory) -> dict[str, str]:
    """Return the settings of some of a result's rows."""
    n_skipped = int(np.count_nonzero(~rows.counted))
    policy = settings.get("no_ground_truth", "").partition("(")[0]
    changed = {
        "k": ",".join(map(spelled, rows.cutoffs)),
        "no_ground_truth": policy + (f"({n_skipped})" if n_skipped else ""),
        "queries": str(rows.n_queries),
    }
    measured = any(isinstance(k, Budget) and k.unit == "t" for k in rows.cutoffs)
    found = {
        name: changed.get(name, value)
        for name, value in settings.items()
        if name != "length" or measured
    }
    return with_unreviewed(found, unreviewed_in(rows.tags)) if STATUS in rows.tags else found


def _common_signature(results: Mapping[str, ResultFacts]) -> str:
    """Return what the results have in common, as the first one prints it."""
    first = next(iter(results.values()))
    differing = {
        name
        for name in ("missing", "retrieved")
        if len({one.settings.get(name) for one in results.values()}) > 1
    }
    settings = {name: value for name, value in first.settings.items() if name not in differing}
    return replace(first, settings=settings).signature


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Drawn):
    """The differences between results on the same queries; made by :func:`compare`.

    :meth:`plot` draws :func:`~krag_eval.plotting.comparison_forest`.

    Attributes:
        differences: One per pair and metric, pairs in the order the results were given.
        level: The level of the intervals.
        n_resamples: Number of resamples and of random swaps.
        seed: Seed of both.
        signature: What the results have in common, as the first one prints it.
        queries: Labels of the queries that count.
        per_query: Metric -> system -> value per query that counts; an infinite rank is a query
            for which nothing was found.
        results: System -> its result, if the systems were asked by ``evaluate_retrievers``.
        compared: System -> the result that was compared, with all of its averages; of the queries
            and cutoffs that all have, in the order of the first, where they differed. A result
            whose queries were put in order or left out holds no evidence: ``given`` does.
        given: System -> its result as it was given, which explains its queries by their labels.
        baseline: The system that the others were held against; ``None`` if every pair was
            compared.
        left_out: System -> the labels of its queries that were left out because not all systems
            have them; empty if none was.
        clusters: The tag of what was drawn and swapped as a whole; ``None`` if that was queries.
        dependent: Tag -> the greatest design effect by it, where a tag was found that speaks for
            clusters and none were asked for.
        max_drop: What a gate allows b to fall behind a; ``None`` in any other comparison.
        runs: The runs whose mean a is, in a gate on a history.
    """

    _drawn_by = "comparison_forest"

    differences: tuple[Difference, ...]
    level: float
    n_resamples: int
    seed: int
    signature: str
    queries: list[str | int]
    per_query: PerQuery
    results: Mapping[str, ResultFacts] = field(default_factory=dict, repr=False)
    compared: Mapping[str, ResultFacts] = field(default_factory=dict, repr=False)
    given: Mapping[str, ResultFacts] = field(default_factory=dict, repr=False)
    baseline: str | None = None
    left_out: Mapping[str, Sequence[str | int]] = field(default_factory=dict, repr=False)
    clusters: str | None = None
    dependent: Mapping[str, float] = field(default_factory=dict, repr=False)
    max_drop: float | None = None
    runs: tuple[ResultFacts, ...] = field(default=(), repr=False)

    @property
    def metrics(self) -> list[str]:
        """The metrics compared."""
        return list(self.per_query)

    @property
    def names(self) -> list[str]:
        """The systems compared."""
        return list(self.per_query[self.metrics[0]])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs (a, b) compared, in the order of the differences."""
        return list(dict.fromkeys((row.a, row.b) for row in self.differences))

    @property
    def labels(self) -> list[str | int]:
        """One label per query compared, as :attr:`queries`."""
        return self.queries

    @property
    def n_queries(self) -> int:
        """Number of queries compared."""
        return len(self.queries)

    @property
    def failed(self) -> dict[str, int]:
        """System -> for how many of the queries compared its retriever failed, if for any.

        They count as nothing retrieved.
        """
        counts = {
            name: sum(bool(one.counted[failure.position]) for failure in one.retrieval.failures)
            for name, one in self.compared.items()
            if one.retrieval is not None
        }
        counts |= {name: one.n_failed for name, one in self.given.items() if one.retrieval is None}
        return {name: n for name, n in counts.items() if n}

    @property
    def missing(self) -> dict[str, MissingQuestions]:
        """System -> the questions of the ground truth that its run lacks, if any."""
        return {name: one.missing for name, one in self.given.items() if one.missing is not None}

    @cached_property
    def grouping(self) -> Clusters | None:
        """Which of the queries compared belong together; ``None`` if each is by itself."""
        if self.clusters is None:
            return None
        return Clusters.found(list(self.compared.values()), self.clusters)

    @cached_property
    def _standings(self) -> Mapping[str, Mapping[str, Standing]]:
        """Metric -> system -> its average and interval, the best on the first metric first."""
        found = intervals.standings(
            self.compared,
            checked_metrics(self.compared, self.metrics),
            Sampling(self.level, self.n_resamples, self.seed),
            self.grouping,
        )
        first = self.metrics[0]
        order = sorted(found[first], key=lambda name: self._loss(first, found[first][name].value))
        return {
            metric: {name: systems[name] for name in order} for metric, systems in found.items()
        }

    def _loss(self, metric: str, value: float) -> float:
        """Return a value so that less is better; nothing is worse than what is undefined."""
        average = next(row.average for row in self.differences if row.metric == metric)
        lower = average is not None and average.lower_is_better
        return math.inf if math.isnan(value) else value if lower else -value

    def _best(self, metric: str) -> list[str]:
        """Return the systems with the best average, several if they are equal.

        Where queries may have no value, none is the best that has one for fewer than another.
        """
        losses = {
            name: self._loss(metric, one.value) for name, one in self._standings[metric].items()
        }
        least = min(losses.values())
        bound = -math.inf if math.isinf(least) else least + intervals.ROUNDING * abs(least)
        n_of = {name: np.isfinite(one).sum() for name, one in self.per_query[metric].items()}
        most = max(n_of.values())
        return [name for name, loss in losses.items() if loss <= bound and n_of[name] == most]

    @property
    def leaderboard(self) -> pd.DataFrame:
        """One row per system, the best on the first metric first; equal ones as they were given.

        Of each metric the average (``"ndcg@10"``), the bounds of its interval (``"ndcg@10_low"``
        and ``"ndcg@10_high"``) and whether no other system is better (``"ndcg@10_best"``). The
        intervals are those of ``result.confidence_intervals``: they say how far each average would
        move with other queries. Whether one system is better than another is for the paired
        differences to say, also where these intervals overlap. Where queries failed, ``failed``
        says how many of each system; where a run lacks questions, ``missing`` how many are left
        out.
        """
        import pandas as pd

        columns: dict[str, Sequence[float] | Sequence[bool]] = {}
        for metric, systems in self._standings.items():
            best = self._best(metric)
            columns[metric] = [one.value for one in systems.values()]
            columns[f"{metric}_low"] = [one.low for one in systems.values()]
            columns[f"{metric}_high"] = [one.high for one in systems.values()]
            columns[f"{metric}_best"] = [name in best for name in systems]
        if self.failed:
            columns["failed"] = [self.failed.get(name, 0) for name in systems]
        if self.missing:
            columns["missing"] = [self.given[name].n_missing for name in systems]
        names = list(self._standings[self.metrics[0]])
        return pd.DataFrame(columns, index=pd.Index(names, name="system", dtype=object))

    @property
    def table(self) -> pd.DataFrame:
        """One row per pair and metric; the columns are the numbers of :class:`Difference`.

        With clusters also ``standard_error`` and ``design_effect`` of its ``spread``; where queries
        have no value, also on how many both have one, the shares that have one, and p of these;
        where some failed, ``failed_a`` and ``failed_b``, how many of each system; where a run lacks
        questions, ``missing_a`` and ``missing_b``, how many are left out.
        """
        import pandas as pd

        columns = [one.name for one in fields(Difference) if one.name not in _NO_COLUMNS]
        columns += _SHARES if any(not math.isnan(row.share_a) for row in self.differences) else ()
        rows = [[getattr(row, name) for name in columns] for row in self.differences]
        table = pd.DataFrame(rows, columns=columns)
        if self.clusters is not None:
            for name in ("standard_error", "design_effect"):
                table[name] = [getattr(row.spread, name, math.nan) for row in self.differences]
        if self.failed:
            table["failed_a"] = [self.failed.get(row.a, 0) for row in self.differences]
            table["failed_b"] = [self.failed.get(row.b, 0) for row in self.differences]
        if self.missing:
            table["missing_a"] = [self.given[row.a].n_missing for row in self.differences]
            table["missing_b"] = [self.given[row.b].n_missing for row in self.differences]
        return table

    @property
    def latency(self) -> pd.DataFrame:
        """How fast each system answered: seconds, and how many queries failed.

        One row per system, columns ``mean``, ``p50``, ``p95`` and ``failed``; no row for a system
        that krag_eval did not ask.
        """
        import pandas as pd

        rows = {
            name: (*run.latency, len(run.failures))
            for name, result in self.results.items()
            if (run := result.retrieval) is not None
        }
        columns = ["mean", "p50", "p95", "failed"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def changed(
        self,
        metric: str | None = None,
        a: str | None = None,
        b: str | None = None,
        n: int | None = 10,
    ) -> pd.DataFrame:
        """Return the queries that changed most from a to b, those that did not change left out.

        Args:
            metric: One of the metrics compared; may be left out if there is only one.
            a: One system; may be left out, together with b, if there are only two.
            b: The other system.
            n: At most so many; ``None`` for all that changed.

        Returns:
            Indexed by the queries' labels, with columns ``value_a``, ``value_b`` and
            ``difference``, the largest change of either sign first. A rank of NaN is a query for
            which nothing was found, and its change is infinite.

        Raises:
            InvalidInput: If the metric or a system was not compared, or ``n`` is below 1.
        """
        import pandas as pd

        if n is not None:
            n = whole("n", n, 1)
        values = self.per_query[self._checked_metric(metric)]
        of_a, of_b = (values[name] for name in self._checked_pair(a, b))
        change = paired.changes_of(of_a, of_b)
        order = np.argsort(-np.abs(change), kind="stable")[: np.count_nonzero(change)][:n]
        shown = [np.where(np.isinf(one), np.nan, one) for one in (of_a, of_b)]
        columns = dict(zip(("value_a", "value_b", "difference"), (*shown, change), strict=True))
        index = pd.Index([self.queries[i] for i in order.tolist()], name="query")
        return pd.DataFrame({name: one[order] for name, one in columns.items()}, index)

    def _checked_metric(self, metric: str | None) -> str:
        if metric is None and len(self.metrics) == 1:
            return self.metrics[0]
        return resolved_average("metric", metric, self.metrics)

    def _checked_pair(self, a: str | None, b: str | None) -> tuple[str, str]:
        if a is None and b is None and len(self.pairs) == 1:
            return self.pairs[0]
        for argument, name in (("a", a), ("b", b)):
            if name not in self.names:
                raise errors.unknown(argument, name, self.names)
        if a == b:
            raise InvalidInput("b", f"must be another system than a, got {b!r} twice")
        return str(a), str(b)

    def to_judge(
        self, n: int = 40, metric: str | None = None, a: str | None = None, b: str | None = None
    ) -> ToJudge:
        """Find the unjudged documents that could still change the difference of two systems.

        The most decisive ones come first: those for whose sake the value of b would move most
        against that of a, were they relevant. And the interval in which the difference lies
        whatever all of them turn out to be: with each an item of the ground truth of its own, of
        grade 1, if it is relevant; of nDCG it is exact where no retrieved document covers several
        items. Documents beyond the cutoff in both lists are not looked at.

        Args:
            n: At most so many documents; the interval is of all.
            metric: One of the metrics compared: a mean of precision, recall, RBP or, without
                grades, nDCG. May be left out if there is only one.
            a: One system; may be left out, together with b, if there are only two.
            b: The other system.

        Returns:
            ``.table`` and ``.to_csv(path)``, to fill in and to read back by
            :func:`~krag_eval.read_judgements`; ``.difference``, ``.low`` and ``.high``.

        Raises:
            InvalidInput: If the metric or a system was not compared, bounds of the metric are not
                known, or a result has no keys of its documents, as without ``judged=``.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> def ranked(*documents):
        ...     evaluator = OfflineRetrievalEvaluator(
        ...         [["a"]] * 40, [documents] * 40, judged=[["a", "n"]] * 40)
        ...     return evaluator.evaluate(2)
        >>> comparison = compare(ranked("a", "n"), ranked("a", "u"), metric="precision@2")
        >>> comparison.to_judge()
        system_2 minus system_1 on macro_precision@2 is 0.000; whatever the 40 unjudged
        documents turn out to be, it lies between 0.000 and 0.500: its sign stays.
        """
        from krag_eval.comparison.judged import to_judge

        n = whole("n", n, 1)
        name = self._checked_metric(metric)
        average = checked_metrics(self.compared, name)[name]
        pair = {one: self.compared[one] for one in self._checked_pair(a, b)}
        return to_judge(pair, average, n, self._text_at)

    def _text_at(self, system: str, query: str | int, rank: int) -> str:
        """Return the text of a document that a system retrieved, empty where it is not known."""
        result = self.given.get(system) or self.compared[system]
        texts = None if result.evidence is None else result.evidence.texts
        places = [place for place, label in enumerate(result.labels) if label == query]
        if texts is None or len(places) != 1:
            return ""
        return texts.predicted(places[0])[rank - 1]

    def by(self, tag: str) -> SlicedComparison:
        """Compare the systems within slices of the queries: does b win everywhere?

        Per slice and metric there are the paired difference, its interval and p as of the whole,
        with Holm's correction over all slices, pairs and metrics. Under 10 queries, or 10 clusters
        of them, there are counts alone.

        Args:
            tag: A tag of the queries, or a built-in one; see :meth:`EvaluationResult.by`.

        Raises:
            InvalidInput: If there is no such tag, or the systems were tagged differently.

        Warns:
            KragEvalWarning: If the slices are too many to mean anything, or queries failed.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> actual, tags = [["a"]] * 40, {"corpus": ["wiki"] * 20 + ["chat"] * 20}
        >>> def finds(where):
        ...     evaluator = OfflineRetrievalEvaluator(actual, [[one] for one in where], tags=tags)
        ...     return evaluator.evaluate(k=10)
        >>> comparison = compare({"old": finds("a" * 40), "new": finds("a" * 20 + "x" * 20)})
        >>> print(comparison.by("corpus").summary())
        chat: old is better than new on ndcg@10 by 1.000 (1.000 against 0.000; no interval, as all
        queries differ alike; p < 0.001 after Holm). Every query differs by the same amount, so the
        effect size (d_z) is infinite.
        """
        for told in (*told_failed(self.failed), *told_missing(self.missing)):
            warn(told)
        return sliced_comparison(self, tag)

    @spoken
    def report(
        self,
        path: str | os.PathLike[str],
        *,
        language: Language | None = None,
        **page: Any,
    ) -> None:
        """Write this comparison as a page: what is shown, how surely, what changed most.

        One HTML file without network or script; it appears complete or not at all.

        Args:
            path: The file; one of that name is replaced.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
            **page: What else ``krag_eval.report.write_report`` takes: ``n_queries``,
                ``by``, ``title``, ``date``.

        Raises:
            InvalidInput: If an argument is not possible; the message says what is.
            OSError: If the file cannot be written.
        """
        write_report(self, path, **page)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the metrics compared by system: ``{"bm25": {"ndcg@10": 0.61}, …}``.

        The best system on the first metric comes first, as in :attr:`leaderboard`.
        """
        systems = self._standings[self.metrics[0]]
        return {
            name: {metric: found[name].value for metric, found in self._standings.items()}
            for name in systems
        }


def sliced_comparison(
    comparison: Comparison, tag: str, *, few_slices: bool = False
) -> SlicedComparison:
    """Return the differences within slices of the queries; see ``Comparison.by``.

    Raises:
        InvalidInput: If there is no such tag, the results differ in it, or the slices are far too
            many where only a few will do.
    """
    if not comparison.compared:
        problem = "this comparison does not hold the results it is of"
        raise InvalidInput("", problem, "make it with compare(…)")
    division = Division.of(list(comparison.compared.values()), tag)
    n_tests = division.n_large * len(comparison.differences)
    if few_slices and n_tests > MOST_TESTS:
        problem = f": {clipped(tag)} divides the queries into {len(division.names)} slices"
        raise InvalidInput("tag", problem, "name a tag of fewer values")
    division.warn_of_too_many(n_tests)
    metrics = {metric: parse_metric(metric) for metric in comparison.metrics}
    cutoffs = [k for _, k in metrics.values()]
    sampling = Sampling(comparison.level, comparison.n_resamples, comparison.seed)
    rows: list[Difference] = []
    for number, (name, n) in enumerate(zip(division.names, division.sizes, strict=True)):
        inside = division.place == number
        clusters = comparison.grouping and comparison.grouping.within(inside)
        found: Iterable[Difference] = (
            paired.unknown(one.a, one.b, one.metric, one.average) for one in comparison.differences
        )
        if (n if clusters is None else clusters.n) >= FEWEST_QUERIES and n_tests <= MOST_TESTS:
            results = {
                key: only_within(one, inside, cutoffs) for key, one in comparison.compared.items()
            }
            drawing = paired.Drawing(sampling, clusters, comparison.max_drop, comparison.runs)
            found, _values = paired.paired_differences(
                results, metrics, drawing, n_alike=division.n_large
            )
        rows += [replace(one, slice=name, n=n) for one in found]
    tested = [row for row in rows if not math.isnan(row.alpha)]
    among = iter(paired.corrected(tested, comparison.level))
    lower = (row.metric for row in rows if row.average and row.average.lower_is_better)
    return SlicedComparison(
        tag,
        division.about,
        tuple(row if math.isnan(row.alpha) else next(among) for row in rows),
        len(comparison.queries),
        tuple(dict.fromkeys(lower)),
        *sampling,
        signature=comparison.signature,
    )


#: Settings in which comparable results may differ; their cutoffs are compared as a set.
MAY_DIFFER = ("averaging", "k", "krag_eval", "metrics", "missing", "retrieved", UNREVIEWED)
# The first versions from which on some numbers are others than before.
_NUMBERS_CHANGED = ((0, 2),)
_NAMED = 5
_LONGEST_TAG = 60


def check_comparable(results: Mapping[str, ResultFacts]) -> ResultFacts:
    """Refuse results that differ in more than the retriever; return the first.

    Args:
        results: Name -> result, two or more.

    Raises:
        InvalidInput: If two of them differ; the message says in what.

    Warns:
        KragEvalWarning: If something is unknown: the ground truth of a result of 0.1.0, the
            settings of a matcher of one's own; or if versions differ.
    """
    (first_name, first), *others = results.items()
    for name, other in others:
        settings, measured = differing(first, other)
        if settings or measured:
            why = f"because they differ in {'; '.join([*settings, *measured])}"
            problem = f": {first_name!r} and {name!r} cannot be compared, {why}"
            remedy = _remedy({first_name: first, name: other}, settings)
            raise InvalidInput("results", problem, remedy)
    old = _without_digests(results)
    if old:
        told = _(
            "Whether the results have the same ground truth could not be checked beyond the number "
            "of items, because krag_eval 0.1 saved nothing to tell it by ({})."
        )
        warn(told.format(old), _("Evaluate and save anew to have it checked"))
    _warn_of_unknown_settings([one.settings for one in results.values()])
    _warn_of_versions(results)
    return first


def differing(first: ResultFacts, other: ResultFacts) -> tuple[list[str], list[str]]:
    """Say in which settings two results differ, and in what they were measured on.

    Settings that comparable results may differ in are left out; what is measured is told with the
    queries that it differs for.
    """
    settings = differing_settings(first.settings, other.settings)
    if set(first.k) != set(other.k):
        ours, theirs = (",".join(map(spelled, result.k)) for result in (first, other))
        settings.append(f"k: {ours} vs {theirs}")
    if first.n_queries != other.n_queries:
        return settings or [f"queries: {first.n_queries} vs {other.n_queries}"], []
    both: tuple[Mapping[str, Sequence[Any]], ...]
    if first.labels != other.labels:
        reordered = sorted(map(repr, first.labels)) == sorted(map(repr, other.labels))
        both = tuple(
            {"order of the queries" if reordered else "queries": one.labels}
            for one in (first, other)
        )
    else:
        both = _measured_on(first), _measured_on(other)
    measured, matchers = [], [one.settings.get("matcher", "") for one in (first, other)]
    for what, ours_of in both[0].items():
        rows = zip(first.labels, ours_of, both[1].get(what, ours_of), strict=True)
        places = [label for label, our, their in rows if our != their]
        if places and (what != "ground truth" or same(*matchers) is not False):
            measured.append(f"{what}: {some(places)}")
    return settings, measured


def _measured_on(result: ResultFacts) -> dict[str, Sequence[Any]]:
    """Return what must be the same for each query, by what it is, as far as it is known."""
    table, rows = next(iter(result.tables.values())), result.rows
    found: dict[str, Sequence[Any]] = {
        "counted in the averages": result.counted.tolist(),
        "number of ground-truth items": table["ground_truth"].tolist(),
    }
    if rows.judged is not None:
        found["which documents were looked at"] = rows.judged.digests
    if rows.unwanted is not None:
        found["which documents are unwanted"] = rows.unwanted
    if rows.digests is not None:
        # The last part is of what the matcher looks at.
        found["ground truth"] = [one.rpartition("-")[2] for one in rows.digests]
    return found


def differing_settings(
    ours: Mapping[str, str], theirs: Mapping[str, str], ignored: Sequence[str] = MAY_DIFFER
) -> list[str]:
    """Say in which settings two results differ."""
    pairs = {name: (ours.get(name, "?"), theirs.get(name, "?")) for name in {**ours, **theirs}}
    return [
        f"{name}: {our} vs {their}"
        for name, (our, their) in pairs.items()
        if name not in ignored and same(our, their) is False
    ]


def _remedy(results: Mapping[str, ResultFacts], settings: Sequence[str]) -> Fix:
    """Say what to do about two results that cannot be compared, as they differ in settings."""
    first, other = (result.labels for result in results.values())
    in_settings = [one for one in settings if not one.startswith("queries: ")]
    can_be_told = not any(why_not_paired(labels) for labels in (first, other))
    if not in_settings and can_be_told and {*first} != {*other}:
        told = "Evaluate both over the same queries, or compare those that both have with {}"
        return Advice(told, on="common")
    old = _without_digests(results) if settings else ""
    old = f". Saved by krag_eval 0.1: {old}; evaluate and save anew" if old else ""
    less = [name for name, one in results.items() if says_less(one.settings.get("matcher", ""))]
    if less and len(less) < len(results):
        old += (
            f". {', '.join(map(repr, less))}: saved before the matcher decided as it does now "
            "(see Changes in reported numbers); evaluate and save anew"
        )
    return f"Evaluate both over the same queries with the same settings{old}"


def _check_results(results: Mapping[str, ResultFacts]) -> None:
    for name, result in results.items():
        if not isinstance(name, str):
            raise InvalidType("results", f": a name must be a string, got {name!r}")
        if not isinstance(result, ResultFacts):
            problem = f": {name!r} must be an EvaluationResult, got {type(result).__name__}"
            raise InvalidType("results", problem)
    if len(results) < 2:
        raise must("results", "hold at least two results to compare", len(results))


def named_tag(tag: str) -> str:
    """Return the name of a tag on one line, within bounds."""
    return " ".join(tag.split())[:_LONGEST_TAG]


def some(labels: Sequence[str | int], n: int = _NAMED, more: str = " and {} more") -> str:
    """Name the first few labels, and say how many more there are."""
    named = ", ".join(map(clipped, labels[:n]))
    return named + more.format(len(labels) - n) if len(labels) > n else named


def _without_digests(results: Mapping[str, ResultFacts]) -> str:
    """Name the results that do not know what their ground truth was."""
    return ", ".join(repr(name) for name, one in results.items() if one.rows.digests is None)


_NAME_IT = N_(
    "Give a function of your own an attribute name (a matcher: settings()) that changes with it, "
    "and evaluate anew"
)


def _warn_of_unknown_settings(settings: Sequence[Mapping[str, str]]) -> None:
    """Warn of what may be something else in one of several results, whatever its name."""
    for name, setting in may_be_others(settings):
        if name == "matcher":
            told = _(
                "The results may be of different matchers: {} does not tell all that it depends on."
            )
        else:
            told = _(
                "The budgets of the results may be counted by different functions: {} does not "
                "tell which one it is."
            )
        warn(told.format(setting), _(_NAME_IT))


def may_be_others(settings: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the settings that may be others in one of several results, and what they say."""
    for name in ("matcher", "length"):
        first, *others = (one.get(name, "") for one in settings)
        unsure = [other for other in others if same(first, other) is None]
        if unsure:
            yield name, first if first == unsure[0] else f"{first} / {unsure[0]}"


def check_same_metrics(
    results: Mapping[str, ResultFacts], metrics: Mapping[str, tuple[str, Cutoff]]
) -> None:
    """Refuse averages of the user's own metrics where two results have them by other functions.

    Args:
        results: Name -> result.
        metrics: Spelling of an average -> its key and cutoff.

    Raises:
        InvalidInput: If the functions differ; the message names them.

    Warns:
        KragEvalWarning: If it is not known whether they do.
    """
    (first_name, first), *others = results.items()
    for key in dict.fromkeys(key for key, _k in metrics.values()):
        ours = _marked(first, key)
        for name, other in others:
            alike = same_metric(first, other, key)
            if alike is False:
                why = f"because their functions differ ({ours} vs {_marked(other, key)})"
                problem = f": {first_name!r} and {name!r} cannot be compared on {key}, {why}"
                fix = "Evaluate both with the same function, or compare another metric"
                raise InvalidInput("results", problem, fix)
            if alike is None:
                told = _("The metric {} of the results may be computed by different functions.")
                warn(told.format(ours.partition("#")[0]), _(_NAME_IT))
                break


def same_metric(first: ResultFacts, other: ResultFacts, key: str) -> bool | None:
    """Tell whether two results have an average by the same function; ``None``: unknown."""
    return same(_marked(first, key), _marked(other, key))


def _marked(result: ResultFacts, key: str) -> str:
    """Return the metric of an average, and what tells its function."""
    column = result.definitions[key].column.removeprefix(DEFINED)
    return column + mark_in(result.settings.get("metrics", ""), column)


def _warn_of_versions(results: Mapping[str, ResultFacts]) -> None:
    versions = {name: result.settings.get("krag_eval", "?") for name, result in results.items()}
    if len(set(versions.values())) == 1:
        return
    named = ", ".join(f"{name!r}: {version}" for name, version in versions.items())
    told = _("The results were made by different versions of krag_eval ({}).")
    if len(set(map(_numbers_since, versions.values()))) > 1:
        told = _(
            "The results were made by different versions of krag_eval ({}), between which reported "
            "numbers changed."
        )
    advice = _(
        "See 'changes in reported numbers' in the documentation, or evaluate all with one version"
    )
    warn(told.format(named), advice)


def _numbers_since(version: str) -> int:
    """Return how many times numbers had changed by a version; -1 for one that is none.

    >>> _numbers_since("0.1.0"), _numbers_since("0.2.0.dev0"), _numbers_since("?")
    (0, 1, -1)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        return -1
    made = int(found[1]), int(found[2])
    return sum(made >= change for change in _NUMBERS_CHANGED)


def told_left_out(n_compared: int, left_out: Mapping[str, Sequence[str | int]]) -> list[str]:
    """Say in a sentence which queries not all systems have; nothing where none was left out.

    >>> told_left_out(80, {"old": ["Who?"], "new": [f"Question {i}?" for i in range(7)]})
    ["Compared on the 80 queries that all have; left out: 1 of old ('Who?'); 7 of new
    ('Question 0?', 'Question 1?', 'Question 2?' and 4 more)."]
    """
    if not left_out:
        return []
    of, more = _("{n} of {name} ({labels})"), _(" and {} more")
    told = "; ".join(
        of.format(n=len(labels), name=name, labels=some(labels, 3, more))
        for name, labels in left_out.items()
    )
    compared = ngettext(
        "Compared on the one query that all have; left out: {told}.",
        "Compared on the {n} queries that all have; left out: {told}.",
        n_compared,
    )
    return [compared.format(n=n_compared, told=told)]


def mark_in(marks: str, name: str) -> str:
    """Return what :func:`marks_of` said of a metric.

    >>> mark_in("rank#0123456789ab,new rank#unknown", "new rank")
    '#unknown'
    """
    found = re.search(rf"(?:^|,){re.escape(name)}(#\w+)(?:,|$)", marks)
    return "" if found is None else found[1]
