"""The metrics: pure functions from what was found to one value per query, and their registry.

Every formula takes ``(relevance, k, conventions)`` and returns an array of shape (queries,). ``k``
is the cutoff, ``None`` for all retrieved documents; only the first k documents of a query can
influence its value. A query without ground truth gets 0; whether it counts is decided where values
are averaged. The registry, :data:`METRICS`, has everything else that is known of a metric: a
built-in one is a function and an entry there.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.core.documents import Judged
from krag_eval.core.errors import (
    Advice,
    InvalidInput,
    InvalidType,
    boolean,
    clipped,
    must,
    unknown,
)
from krag_eval.core.language import LANGUAGES, N_, _, speaking
from krag_eval.core.matching.identity import mark_of
from krag_eval.core.scoring.averages import DEFINED, QUERIES, Average
from krag_eval.core.scoring.cutoffs import Budget, Cutoff, parse_metric
from krag_eval.core.scoring.digits import FloatArray, IntArray, exp2m1, log2, powers
from krag_eval.core.scoring.queries import JudgedQuery, PerQuery
from krag_eval.core.scoring.relevance import (
    Relevance,
    aspects_unknown,
    numbers_within,
    words_unknown,
)
from krag_eval.core.scoring.tokens import TokenCounts, token_counts
from krag_eval.core.text import name_and_settings

#: Language -> what people call something.
Labels: TypeAlias = Mapping[str, str]
MetricFunction: TypeAlias = Callable[..., FloatArray]


def called(english: str) -> Labels:
    """Return what people call something, in every language."""
    told = {}
    for one in LANGUAGES:
        with speaking(one):
            told[one] = _(english)
    return told


# How the averages of a metric that has two are called.
_MICRO, _MACRO = called(N_("Micro {}")), called(N_("Macro {}"))


class Parameter(NamedTuple):
    """A number that a metric depends on, and the bounds it is strictly between."""

    value: float
    low: float
    high: float

    def at(self, text: str, argument: str, name: str) -> Parameter:
        """Return the parameter with the value that a text says.

        Raises:
            InvalidInput: If it is not a number within the bounds.
        """
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self.low < value < self.high:
            raise InvalidInput(
                argument,
                f": {name} must be a number strictly between {self.low:g} and {self.high:g}, "
                f"got {clipped(text)}",
            )
        return self._replace(value=value)


@dataclass(frozen=True)
class Metric:
    """A metric: how it is computed per query, and all that others need to know of it.

    Attributes:
        name: Column of the per-query table.
        compute: ``(relevance, k, conventions) -> values``, shape (queries,); NaN where undefined.
        key: Name of the mean over the queries where it is defined.
        labels: Language (``"en"``, ``"ko"``) -> what people call it.
        range: Its lowest and highest value; the highest may be ``math.inf``. A gate refuses what
            lies outside.
        lower_is_better: Whether a lower value is the better one.
        micro: Numerator and denominator of its micro average, counts of the per-query table; of
            two such pairs, the micro average is the harmonic mean of their ratios.
        of_means: The column that each pair of ``micro`` is the ratio of. The macro average is the
            harmonic mean of their means, under ``Conventions(macro_f1="of_means")``.
        defined_key: Name of the share of queries where it is defined, shown beside the mean.
        defined_labels: Language -> what people call that share.
        parameters: What ``compute`` takes beyond the three, by name. The metric is then named
            with them: ``rbp`` is ``rbp(p=0.8)``.
        needs_words: Whether it counts words, so that only coverage and spans can tell.
        needs_judged: Whether it asks which documents were looked at.
        needs_aspects: Whether it asks which aspects a question has.
        needs_list: The argument with the lists that it is about, such as ``"unwanted"``; ``""`` if
            there are none.

    >>> METRICS["reciprocal_rank"].key, METRICS["rank"].lower_is_better
    ('mrr', True)
    """

    name: str
    compute: MetricFunction
    key: str
    _: KW_ONLY
    labels: Labels = field(default_factory=dict, hash=False)
    range: tuple[float, float] | None = None
    lower_is_better: bool = False
    micro: tuple[tuple[str, str], ...] = ()
    of_means: tuple[str, ...] = ()
    defined_key: str = ""
    defined_labels: Labels = field(default_factory=dict, hash=False)
    parameters: Mapping[str, Parameter] = field(default_factory=dict, hash=False)
    needs_words: bool = False
    needs_judged: bool = False
    needs_aspects: bool = False
    needs_list: str = ""
    #: What tells the user's function from others, as it stands in signatures.
    _mark: ClassVar[str] = ""

    def __post_init__(self) -> None:
        boolean("lower_is_better", self.lower_is_better)
        low, high = self.range or (0.0, 1.0)
        if not low < high:
            raise must("range", "be the lowest and the highest value, such as (0, 1)", self.range)
        if not {name for pair in self.micro for name in pair} <= COUNTED:
            raise must("micro", f"be pairs of {', '.join(sorted(COUNTED))}", self.micro)
        if self.of_means and len(self.of_means) != len(self.micro):
            raise must("of_means", "name a column for each pair of micro", self.of_means)
        # Where it was made its source is at hand, and a copy in another process keeps this.
        made_of = getattr(self.compute, "function", self.compute)
        object.__setattr__(self, "_mark", mark_of(made_of))

    @classmethod
    def per_query(
        cls,
        name: str,
        function: Callable[[JudgedQuery], float | None],
        key: str = "",
        **declared: Any,
    ) -> Metric:
        """Return a metric from a function of one query.

        It is the plain way: the function sees one query with its documents, and what each of them
        matches. ``Metric(name, compute, key)`` is the fast one, for all queries on arrays.

        Args:
            name: Column of the per-query table.
            function: ``query -> number``, given a :class:`~krag_eval.JudgedQuery` cut off at k;
                ``None`` where the metric is undefined.
            key: Name of the mean over the queries where it is defined; ``mean_…`` if not given.
            **declared: ``labels``, ``range``, ``lower_is_better``, ``defined_key`` and
                ``defined_labels``, as of :class:`Metric`.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> new = Metric.per_query("new", lambda query: float("2026" in " ".join(query.texts)))
        >>> evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["a 2026", "a"], ["b"]])
        >>> evaluator.evaluate([1], metrics=["recall", new]).to_dict()["mean_new@1"]
        0.5
        """
        return cls(name, PerQuery(name, function), key or f"mean_{name}", **declared)

    @property
    def columns(self) -> tuple[str, ...]:
        """The per-query columns that its averages are made of.

        >>> METRICS["recall"].columns, METRICS["ndcg"].columns
        (('recall', 'covered', 'ground_truth'), ('ndcg',))
        """
        means = self.of_means or (self.name,) * len(self.micro)
        made_of = [(mean, *counts) for mean, counts in zip(means, self.micro, strict=True)]
        return tuple(dict.fromkeys([self.name, *(name for part in made_of for name in part)]))

    def averages(
        self, conventions: Conventions, method: AveragingMethod = AveragingMethod.BOTH
    ) -> Iterator[Average]:
        """Yield its averages under the conventions, micro before macro."""
        made = partial(Average, range=self.range, lower_is_better=self.lower_is_better)
        if self.micro and method is not AveragingMethod.MACRO:
            labels = _averaged(self.labels, _MICRO)
            yield made(f"micro_{self.name}", self.name, self.micro, labels=labels)
        if not self.micro or method is not AveragingMethod.MICRO:
            of_means = conventions.macro_f1 == "of_means" and self.of_means
            means = tuple((name, DEFINED + name) for name in of_means or (self.name,))
            labels = _averaged(self.labels, _MACRO) if self.micro else self.labels
            yield made(self.key, self.name, means, labels=labels)
        if self.defined_key:
            column = DEFINED + self.name
            how, labels = ((column, QUERIES),), self.defined_labels
            yield Average(self.defined_key, column, how, range=(0.0, 1.0), labels=labels)

    def values(self, relevance: Relevance, k: int | None, conventions: Conventions) -> Any:
        """Compute the metric, with its parameters."""
        settings = {name: parameter.value for name, parameter in self.parameters.items()}
        return self.compute(relevance, k, conventions, **settings)

    def at(self, argument: str = "metrics", settings: Mapping[str, str] | None = None) -> Metric:
        """Return the metric with other parameters, under the name that says them.

        Args:
            argument: The argument they came in.
            settings: Parameters by name, as text; the others keep their values.

        >>> METRICS["rbp"].at(settings={"p": "0.50"}).name
        'rbp(p=0.5)'
        """
        family = self.name.partition("(")[0]
        chosen = dict(self.parameters)
        for name, text in (settings or {}).items():
            if name not in chosen:
                known = f"only {', '.join(chosen)}" if chosen else "nor any other"
                raise InvalidInput(argument, f": {family} has no setting {clipped(name)}, {known}")
            chosen[name] = chosen[name].at(text, argument, f"{name} of {family}")
        if not chosen:
            return self
        said = ",".join(f"{name}={_shortest(one.value)}" for name, one in chosen.items())
        named = {text: f"{text.partition('(')[0]}({said})" for text in self.labels.values()}
        return replace(
            self,
            name=f"{family}({said})",
            key=f"{self.key.partition('(')[0]}({said})",
            labels={language: named[text] for language, text in self.labels.items()},
            parameters=chosen,
        )


def _shortest(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _averaged(labels: Labels, forms: Labels) -> Labels:
    return {
        language: forms.get(language, "{}").format(label if label.isupper() else label.lower())
        for language, label in labels.items()
    }


def hit_all(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 if every ground-truth item is covered within the cutoff, else 0."""
    covered = relevance.covered_within(k)
    return np.asarray((covered == relevance.n_items) & (covered > 0), np.float64)


def hit_any(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 if any ground-truth item is covered within the cutoff, else 0."""
    return (relevance.covered_within(k) > 0).astype(np.float64)


def precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the documents within the cutoff that are relevant, in [0, 1]."""
    return _ratio(relevance.relevant_within(k), precision_base(relevance, k, conventions))


def precision_base(relevance: Relevance, k: int | None, conventions: Conventions) -> IntArray:
    """Return what precision divides by: min(k, m), or k under ``precision_at="k"``."""
    if conventions.precision_at == "k" and k is not None:
        return np.broadcast_to(k, relevance.n_queries)
    return relevance.retrieved_within(k)


def recall(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the ground-truth items that are covered within the cutoff, in [0, 1]."""
    return _ratio(relevance.covered_within(k), relevance.n_items)


def f1(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Harmonic mean of the query's precision and recall, in [0, 1]; 0 if both are."""
    p, r = precision(relevance, k, conventions), recall(relevance, k, conventions)
    return _ratio(2 * p * r, p + r)


def rank(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Rank at which the first item is found, from 1; NaN if none is within the cutoff."""
    ranks = np.full(relevance.n_queries, np.nan)
    within = _within(relevance.first_rank, k)
    query, first = relevance.covered_query[within], relevance.first_rank[within]
    start = np.flatnonzero(np.diff(query, prepend=-1))
    if len(start):
        ranks[query[start]] = np.minimum.reduceat(first, start)
    return ranks


def reciprocal_rank(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 / rank at which the first item is found, in [0, 1]; 0 if none is within the cutoff.

    Under ``reciprocal_rank="per_item"``, the mean over items of 1 / first rank.
    """
    if conventions.reciprocal_rank == "per_item":
        within = _within(relevance.first_rank, k)
        inverse = 1.0 / relevance.first_rank[within]
        return _ratio(
            _total(relevance, relevance.covered_query[within], inverse), relevance.n_items
        )
    return np.nan_to_num(1.0 / rank(relevance, k, conventions), nan=0.0)


def average_precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Sum of the precision at each covered item's first rank, over the items; in [0, 1].

    Uninterpolated average precision as in trec_eval. Under ``credit="every"`` every relevant
    document counts and the value can pass 1; under ``average_precision="per_item"`` it is the mean
    over items of the mean precision at the item's own hits.
    """
    if conventions.average_precision == "per_item":
        return _average_precision_per_item(relevance, k)
    if conventions.credit == "every":
        query, rank = _relevant(relevance, k)
        precisions = numbers_within(query) / rank
        return _ratio(_total(relevance, query, precisions), relevance.n_items)
    within = _within(relevance.first_rank, k)
    query = relevance.covered_query
    precisions = relevance.relevant_until_first_within(k) / relevance.first_rank
    return _ratio(_total(relevance, query[within], precisions[within]), relevance.n_items)


def _average_precision_per_item(relevance: Relevance, k: int | None) -> FloatArray:
    within = _within(relevance.hit_rank, k)
    item = relevance.hit_item[within]
    n_items = len(relevance.item_query)
    precisions = relevance.hit_number[within] / relevance.hit_rank[within]
    per_item = _ratio(
        np.bincount(item, precisions, minlength=n_items), np.bincount(item, minlength=n_items)
    )
    return _ratio(_total(relevance, relevance.item_query, per_item), relevance.n_items)


def r_precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Relevant documents among the first n, over the n ground-truth items; in [0, 1].

    A cutoff below n stops the count there.
    """
    (query, _, since), n_items = relevance.relevant_from, relevance.n_items
    depth = n_items if k is None else np.minimum(n_items, k)
    return _ratio(_count(relevance, query[since <= depth[query]]), n_items)


def rbp(relevance: Relevance, k: int | None, conventions: Conventions, *, p: float) -> FloatArray:
    """Rank-biased precision: (1 - p) times the sum of p**(rank - 1) over relevant documents.

    What a reader finds per document read, who continues to the next one with the probability p
    (Moffat and Zobel 2008); in [0, 1].
    """
    query, rank = _relevant(relevance, k)
    weights = powers(p, int(rank.max(initial=0)))[rank - 1]
    return np.minimum((1 - p) * _total(relevance, query, weights), 1.0)


def judged(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the documents within the cutoff that are judged, in [0, 1]; 0 without any.

    Judged are those that somebody looked at, and those that are relevant. It divides as precision
    does: under ``precision_at="k"``, as in ``Conventions.trec()``, by k, however short the list.
    """
    n_judged = relevance.retrieved_within(k) - _count(relevance, relevance.unjudged(k)[0])
    return _ratio(n_judged, precision_base(relevance, k, conventions))


def precision_upper(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Precision if every unjudged document within the cutoff were relevant, in [0, 1]."""
    query, _ = relevance.unjudged(k)
    possible = relevance.relevant_within(k) + _count(relevance, query)
    return _ratio(possible, precision_base(relevance, k, conventions))


def rbp_residual(
    relevance: Relevance, k: int | None, conventions: Conventions, *, p: float
) -> FloatArray:
    """What RBP could still gain: the weight of all ranks that are not judged, in [0, 1].

    That is the weight of the unjudged documents within the cutoff and of everything beyond the
    last document within it (Moffat and Zobel 2008).
    """
    query, rank = relevance.unjudged(k)
    seen = relevance.retrieved_within(k)
    weights = powers(p, int(max(rank.max(initial=0), seen.max(initial=0) + 1)))
    return np.minimum((1 - p) * _total(relevance, query, weights[rank - 1]) + weights[seen], 1.0)


def bpref(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """How seldom a document judged not relevant stands before a relevant one, in [0, 1].

    With R items in the ground truth and N documents that were looked at and are not relevant,
    retrieved or not, each item covered within the cutoff gives 1 - min(n, R) / min(N, R), of which
    n stand before its first rank; the sum is divided by R. Buckley and Voorhees 2004, as trec_eval
    computes it. Unjudged documents make no difference, and 0 without ground truth.
    """
    within = _within(relevance.first_rank, k)
    query, n_items = relevance.covered_query[within], relevance.n_items
    before = relevance.before_first(relevance.first_of_others())[within]
    most = np.minimum(relevance.judged.n_others, n_items)[query]
    preferred = 1 - _ratio(np.minimum(before, n_items[query]), most)
    return _ratio(_total(relevance, query, preferred), n_items)


# What trec_eval adds where nothing is judged; INFAP_EPSILON in its m_infap.c.
_INFAP_EPSILON = 0.00001


def infap(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Average precision, inferred where only a sample of a pool was judged; in [0, 1].

    Yilmaz and Aslam 2006, as trec_eval computes it: the precision at each first rank is 1 / rank
    and, of the rest, the share that is in the pool times the share of the judged ones among these
    that are relevant. Without documents that are in the pool and unjudged it is average precision,
    but for the fifth digit or so.
    """
    within = _within(relevance.first_rank, k)
    rank, query = relevance.first_rank[within], relevance.covered_query[within]
    found = relevance.relevant_until_first_within(k)[within] - 1
    number = relevance.judged.number
    others = relevance.before_first(number >= 0)[within]
    pooled = relevance.before_first(number == Judged.POOLED)[within]
    above = rank - 1.0
    in_pool = _ratio(found + others + pooled, above)
    relevant = (found + _INFAP_EPSILON) / (found + others + 2 * _INFAP_EPSILON)
    expected = 1 / rank + above / rank * in_pool * relevant
    return _ratio(_total(relevance, query, expected), relevance.n_items)


def aspect_recall(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the question's aspects that a document within the cutoff speaks to, in [0, 1].

    An aspect is there if one of its ground-truth items is covered. It is the subtopic recall of
    Zhai, Cohen and Lafferty 2003, strec of TREC's ndeval.
    """
    n_aspects = np.bincount(relevance.aspects_known.query, minlength=relevance.n_queries)
    return _ratio(relevance.aspects_within(k), n_aspects)


def alpha_ndcg(
    relevance: Relevance, k: int | None, conventions: Conventions, *, alpha: float
) -> FloatArray:
    """Return nDCG in which an aspect gains less each time: (1 - alpha)**n after n times; in [0, 1].

    Clarke et al. 2008, as TREC's ndeval computes it: the discount is 1 / log2(place + 1), and the
    best list picks, place by place, the ground-truth item that gains most. Places are those of
    nDCG: first ranks, unless one document covers several items, which then queue, the greatest
    gain first. Grades and conventions make no difference. A list that beats the best one, which is
    picked without foresight, has 1.
    """
    n_items = int(relevance.n_items.max(initial=0))
    novelty = powers(1 - alpha, n_items + 1)
    steps = novelty.tolist()
    item, place = relevance.in_best_turn(steps)
    if k is not None:
        item, place = item[place <= k], place[place <= k]
    best = _novel_gains(relevance, item, place, novelty)
    return np.minimum(
        _ratio(_novel_gains(relevance, *relevance.in_turn(k, steps), novelty), best), 1.0
    )


def _novel_gains(
    relevance: Relevance, item: IntArray, place: IntArray, novelty: FloatArray
) -> FloatArray:
    """Return what each query gains by its items at their places, after the discount."""
    aspects = relevance.aspects_known
    at = np.zeros(len(relevance.item_query), np.int64)
    at[item] = place
    rows = np.flatnonzero(at[aspects.item])
    rows = rows[np.lexsort((at[aspects.item[rows]], aspects.aspect[rows]))]
    before = numbers_within(aspects.aspect[rows]) - 1
    # In an order that equal lists share, so that their sums are the same to the last digit.
    query, place = aspects.query[aspects.aspect[rows]], at[aspects.item[rows]]
    order = np.lexsort((before, place, query))
    gains = novelty[before[order]] / log2(place[order] + 1)
    return _total(relevance, query[order], gains)


def unwanted(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the documents within the cutoff that match an unwanted one, in [0, 1].

    Lower is better. It divides as precision does, and a document that matches an unwanted one and
    the ground truth counts in both. NaN for a query that has no list of unwanted documents; an
    empty list is one, of which nothing can come back. 0 if nothing was retrieved.
    """
    found, listed = relevance.beside_known("unwanted")
    share = _ratio(found.relevant_within(k), precision_base(relevance, k, conventions))
    return np.where(listed, share, np.nan)


def clean(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """1 if no document within the cutoff matches an unwanted one, else 0.

    NaN for a query that has no list of unwanted documents; 1 if its list is empty, or if nothing
    was retrieved.
    """
    found, listed = relevance.beside_known("unwanted")
    return np.where(listed, found.relevant_within(k) == 0, np.nan)


def citation_precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the cited documents that match the ground truth, in [0, 1]; the same at every k.

    All that the answer cites counts, retrieved or not, and as often as it is listed. 0 if nothing
    is cited (an empty list), NaN for a query without a list of citations.
    """
    found, listed = relevance.beside_known("cited")
    share = _ratio(found.relevant_within(None), found.n_retrieved)
    return np.where(listed, share, np.nan)


def citation_recall(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the ground-truth items that a cited document matches, in [0, 1]; at every k.

    All that the answer cites counts, retrieved or not. NaN for a query without a list of citations.
    """
    found, listed = relevance.beside_known("cited")
    return np.where(listed, _ratio(found.covered_within(None), found.n_items), np.nan)


def _relevant(relevance: Relevance, k: int | None) -> tuple[IntArray, IntArray]:
    """Return query and rank of the documents that are relevant within the cutoff, in order."""
    query, rank, since = relevance.relevant_from
    within = _within(since, k)
    return query[within], rank[within]


def ndcg(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Discounted cumulative gain over that of the best list possible, in [0, 1].

    The discount is 1 / log2(place + 1) (Järvelin and Kekäläinen 2002, with the base-2 discount at
    every rank); the gain is 2**grade - 1 (Burges et al. 2005) or the grade. Each covered item has a
    place of its own: the first free one at or after its first rank, the greatest gain first. So
    items first covered by the same document queue, and where no two are, places are first ranks.
    The best list holds the gains of the ground truth, greatest first, whatever was retrieved.
    0 if nothing can be gained.

    Under ``credit="every"`` a document gains at its rank, and so it does, with all items first
    covered by it together, under ``ideal="retrieved"`` and ``"alternatives"``.

    Raises:
        InvalidInput: If a gain passes 2**1000.
    """
    gained = _gained(relevance, k, conventions)
    value = _ratio(
        _total(relevance, gained.query, gained.gain / log2(gained.place + 1)),
        _ideal_dcg(relevance, k, conventions, gained),
    )
    # With credit given once, the sum passes the ideal one by rounding, or where more items are
    # found within k than k.
    return value if conventions.credit == "every" else np.minimum(value, 1.0)


class _Gained(NamedTuple):
    """What is gained within the cutoff, by query, then place: an item's, or a document's rank."""

    query: IntArray
    place: IntArray
    gain: FloatArray


def counts_at_places(conventions: Conventions) -> bool:
    """Tell whether nDCG counts every item at a place of its own, not at its document's rank."""
    return conventions.credit == "once" and conventions.ideal == "ground_truth"


def _gained(relevance: Relevance, k: int | None, conventions: Conventions) -> _Gained:
    by_grade = conventions.graded_by == "grade"
    if counts_at_places(conventions):
        worth = relevance.worth(conventions.graded_by)
        item, place = relevance.places(worth, k)
        return _Gained(relevance.covered_query[item], place, _gain(worth, conventions)[item])
    if conventions.credit == "once":
        found = relevance.credited
        if by_grade:
            gain = found.sum(_gain(relevance.grade[relevance.covered], conventions))
        else:
            gain = _gain(found.max(relevance.first_similarity), conventions)
    elif by_grade:
        found = relevance.relevant
        gain = _gain(found.max(relevance.grade[relevance.hit_item]), conventions)
    else:
        found = relevance.scored
        gain = _gain(found.max(relevance.pair_similarity), conventions)
    within = _within(found.rank, k)
    return _Gained(found.query[within], found.rank[within], gain[within])


def _ideal_dcg(
    relevance: Relevance, k: int | None, conventions: Conventions, gained: _Gained
) -> FloatArray:
    """Return the DCG of the best list that could have been retrieved."""
    depth = None if k is None else np.broadcast_to(k, relevance.n_queries)
    if conventions.ideal == "retrieved":
        n_entries = _count(relevance, gained.query)
        return _best_dcg(relevance, gained.query, gained.gain, n_entries, depth)
    by_grade = conventions.graded_by == "grade"
    item_gain = _gain(
        relevance.grade if by_grade else np.broadcast_to(1.0, len(relevance.grade)), conventions
    )
    if conventions.ideal == "ground_truth":
        return _best_dcg(relevance, relevance.item_query, item_gain, relevance.n_items, depth)
    depth = relevance.retrieved_within(k)
    copies = relevance.n_alternatives
    query, gain = np.empty(0, np.int64), np.empty(0)
    if conventions.credit == "once":
        # A covered item is already part of the entry of the document it was credited to.
        copies = copies.copy()
        copies[relevance.covered[_within(relevance.first_rank, k)]] -= 1
        query, gain = gained.query, gained.gain
    query = np.concatenate([query, np.repeat(relevance.item_query, copies)])
    gain = np.concatenate([gain, np.repeat(item_gain, copies)])
    return _best_dcg(relevance, query, gain, _count(relevance, query), depth)


def _best_dcg(
    relevance: Relevance,
    query: IntArray,
    gain: FloatArray,
    n_entries: IntArray,
    depth: IntArray | None,
) -> FloatArray:
    """Return each query's DCG with its gains sorted, best first, down to its depth."""
    kept = n_entries if depth is None else np.minimum(n_entries, depth)
    if not len(gain) or gain.min() == gain.max():
        # The usual case: one gain for all, so that DCG depends on their number.
        terms = gain[:1] / log2(np.arange(2, int(kept.max(initial=0)) + 2))
        return np.concatenate([[0.0], np.cumsum(terms)])[kept]
    order = np.lexsort((-gain, query))
    query, gain = query[order], gain[order]
    position = np.arange(len(query)) - (np.cumsum(n_entries) - n_entries)[query]
    within = position < kept[query]
    return _total(relevance, query[within], gain[within] / log2(position[within] + 2))


def _gain(grade: FloatArray, conventions: Conventions) -> FloatArray:
    # Gains beyond 2**1000 leave no room to be added up in float64.
    most, fix = 2.0**1000, Advice("divide all grades by the same number")
    if conventions.gain == "exponential":
        most, fix = 1000.0, Advice("choose {}", conventions="gain=linear")
    if grade.max(initial=0.0) > most:
        be = f"be at most {most:g} for the {conventions.gain} gain"
        raise must("grades", be, float(grade.max()), fix)
    return grade if conventions.gain == "linear" else exp2m1(grade)


def token_recall(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the ground truth's words that the documents hold together, in [0, 1].

    0 without words. It never falls as the cutoff grows, except where alternatives of one item
    differ in length.
    """
    tokens = token_counts(relevance, k)
    return _ratio(tokens.covered, tokens.wanted)


def token_precision(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the documents' words that bring words of the ground truth, in [0, 1].

    A word counts once, in the best-ranked document that has it. 0 if nothing was retrieved.
    """
    tokens = token_counts(relevance, k)
    return _ratio(tokens.useful, tokens.retrieved)


def token_iou(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Words found over all words of ground truth and documents, in [0, 1]; 0 without words.

    Intersection over union, as of areas: what was missed and what was in vain both count.
    """
    tokens = token_counts(relevance, k)
    return _ratio(tokens.useful, tokens.retrieved + tokens.wanted - tokens.covered)


def redundancy(relevance: Relevance, k: int | None, conventions: Conventions) -> FloatArray:
    """Share of the documents' matching words that bring nothing new, in [0, 1]; lower is better.

    NaN where nothing of the ground truth came back.
    """
    tokens = token_counts(relevance, k)
    values = np.full(relevance.n_queries, np.nan)
    some = tokens.matching > 0
    values[some] = 1.0 - tokens.useful[some] / tokens.matching[some]
    return values


def _within(ranks: IntArray, k: int | None) -> NDArray[np.bool_]:
    return np.ones(len(ranks), np.bool_) if k is None else ranks <= k


def _total(relevance: Relevance, query: IntArray, values: FloatArray) -> FloatArray:
    """Sum values by query, in the order given."""
    return np.asarray(np.bincount(query, values, minlength=relevance.n_queries), np.float64)


def _count(relevance: Relevance, query: IntArray) -> IntArray:
    return np.asarray(np.bincount(query, minlength=relevance.n_queries), np.int64)


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> FloatArray:
    """Divide; nothing over nothing is 0."""
    # Divided by infinity, what has no denominator is 0 as well.
    return np.asarray(numerator / np.where(denominator > 0, denominator, np.inf), np.float64)


#: Counts per query within the cutoff: what micro averages and intervals are made of.
COUNTS: Mapping[str, Callable[[Relevance, int | None], IntArray]] = MappingProxyType(
    {
        "ground_truth": lambda relevance, k: relevance.n_items,
        "retrieved": Relevance.retrieved_within,
        "relevant": lambda relevance, k: relevance.relevant_within(k),
        "covered": Relevance.covered_within,
    }
)

#: Counts of tokens, which only some matchers know.
TOKEN_COUNTS = tuple(f"tokens_{name}" for name in TokenCounts._fields if name != "matching")
#: Of all these, micro averages are made.
COUNTED = frozenset({*COUNTS, *TOKEN_COUNTS, "precision_base"})
#: Documents in each query's whole list, in a table at a budget: nothing may fit of what came back.
LISTED = "listed"

_OF_RELEVANT, _OF_COVERED = ("relevant", "precision_base"), ("covered", "ground_truth")
_OF_WANTED, _OF_USEFUL = ("tokens_covered", "tokens_wanted"), ("tokens_useful", "tokens_retrieved")


def _share(
    compute: MetricFunction, label: str, key: str = "", name: str = "", **others: Any
) -> Metric:
    """Return a metric from 0 to 1, named as its function; ``label`` is in English."""
    name = name or compute.__name__
    key = key or (f"macro_{name}" if "micro" in others else name)
    return Metric(name, compute, key, labels=called(label), range=(0.0, 1.0), **others)


_WORDS: dict[str, Any] = {"needs_words": True}
_JUDGED: dict[str, Any] = {"needs_judged": True}
_ASPECTS: dict[str, Any] = {"needs_aspects": True}
_UNWANTED: dict[str, Any] = {"needs_list": "unwanted"}
_CITED: dict[str, Any] = {"needs_list": "cited"}
_P, _ALPHA = {"p": Parameter(0.8, 0, 1)}, {"alpha": Parameter(0.5, 0, 1)}
_METRICS = (
    _share(hit_all, N_("Hit rate"), name="hit_rate"),
    _share(hit_any, N_("Success (any found)"), name="success"),
    _share(precision, N_("Precision"), micro=(_OF_RELEVANT,)),
    _share(recall, N_("Recall"), micro=(_OF_COVERED,)),
    _share(f1, N_("F1"), micro=(_OF_RELEVANT, _OF_COVERED), of_means=("precision", "recall")),
    _share(reciprocal_rank, N_("MRR"), "mrr"),
    _share(average_precision, N_("MAP"), "map"),
    _share(ndcg, N_("nDCG")),
    Metric(
        "rank",
        rank,
        "mean_rank",
        labels=called(N_("Mean rank")),
        range=(1.0, math.inf),
        lower_is_better=True,
        defined_key="found_rate",
        defined_labels=called(N_("Found rate")),
    ),
    _share(token_recall, N_("Token recall"), micro=(_OF_WANTED,), **_WORDS),
    _share(token_precision, N_("Token precision"), micro=(_OF_USEFUL,), **_WORDS),
    _share(token_iou, N_("Token IoU"), **_WORDS),
    _share(redundancy, N_("Redundancy"), lower_is_better=True, **_WORDS),
    _share(r_precision, N_("R-precision")),
    _share(rbp, N_("RBP"), parameters=_P),
    _share(judged, N_("Judged"), **_JUDGED),
    _share(bpref, N_("bpref"), **_JUDGED),
    _share(infap, N_("infAP"), **_JUDGED),
    _share(precision_upper, N_("Precision at most"), **_JUDGED),
    _share(rbp_residual, N_("RBP residual"), lower_is_better=True, parameters=_P, **_JUDGED),
    _share(aspect_recall, N_("Aspect recall"), **_ASPECTS),
    _share(alpha_ndcg, N_("α-nDCG"), parameters=_ALPHA, **_ASPECTS),
    _share(unwanted, N_("Unwanted"), lower_is_better=True, **_UNWANTED),
    _share(clean, N_("Clean"), **_UNWANTED),
    _share(citation_precision, N_("Citation precision"), **_CITED),
    _share(citation_recall, N_("Citation recall"), **_CITED),
)

#: Every built-in metric, by its column; of a metric with parameters, by what precedes them.
METRICS: Mapping[str, Metric] = MappingProxyType({one.name: one for one in _METRICS})
#: Files say that success is ours: in 0.1.0 the name was free, and the documentation's example of a
#: metric of one's own.
SUCCESS = METRICS["success"]
#: The metrics of 0.1.0, computed where none are named. Nobody else's may be called like one.
DEFAULT_METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        name: METRICS[name]
        for name in (
            "hit_rate", "precision", "recall", "f1", "reciprocal_rank", "average_precision",
            "ndcg", "rank",
        )
    }
)  # fmt: skip

#: Of the queries without ground truth, the share for which rightly nothing was retrieved. No
#: metric: it is about the queries that do not count in any other average.
REJECTION_RATE = Average(
    "rejection_rate",
    "rejection_rate",
    (("rejected", "left_out"),),
    range=(0.0, 1.0),
    labels=called(N_("Rejection rate")),
)

#: When a query counts as found, said behind the name of a metric.
FOUND = MappingProxyType(
    {MatchingCriteria.ALL: N_("all found"), MatchingCriteria.PARTIAL: N_("any found")}
)
_HIT_RATE = {
    MatchingCriteria.ALL: called(N_("Hit rate (all found)")),
    MatchingCriteria.PARTIAL: called(N_("Hit rate (any found)")),
}
_ANY_HIT = {"hit_rate": replace(METRICS["hit_rate"], compute=hit_any)}
# Another name of the mean of a metric.
_ALIASES = {"hit": "hit_rate"}


def metrics_for(
    criteria: MatchingCriteria, *, words: bool = True, aspects: bool = True
) -> dict[str, Metric]:
    """Return the built-in metrics with the hit rate that ``criteria`` asks for.

    Args:
        criteria: When a query is a hit.
        words: Whether the matcher knows which words a document holds; without, the metrics that
            need it are left out.
        aspects: Whether it is known which aspects a question has, likewise.
    """
    known = {**METRICS, **({} if criteria is MatchingCriteria.ALL else _ANY_HIT)}
    return {
        name: one
        for name, one in known.items()
        if (words or not one.needs_words) and (aspects or not one.needs_aspects)
    }


def built_in(name: str, argument: str = "metrics") -> Metric | None:
    """Return the built-in metric of that name, or of which it names the mean; ``None`` if none is.

    Raises:
        InvalidInput: If a parameter in the name is not one of the metric, or out of its range.

    >>> built_in("mrr").name, built_in("rbp").name, built_in("rbp(p=0.50)").key
    ('reciprocal_rank', 'rbp(p=0.8)', 'rbp(p=0.5)')
    """
    family, settings = name_and_settings(argument, name)
    family = _ALIASES.get(family, family)
    known = {metric.key: metric for metric in METRICS.values()} | dict(METRICS)
    return known[family].at(argument, settings) if family in known else None


def averages_of(
    metrics: Iterable[Metric],
    conventions: Conventions | None = None,
    method: AveragingMethod = AveragingMethod.BOTH,
) -> dict[str, Average]:
    """Return the averages of metrics under conventions, by key: how each is made, and is read."""
    conventions = conventions or Conventions()
    return {one.key: one for metric in metrics for one in metric.averages(conventions, method)}


def resolved_average(
    argument: str, name: object, known: Iterable[str], keys: Mapping[str, str] | None = None
) -> str:
    """Return the average that a name stands for, the same wherever an average is asked for.

    The name of a metric is its mean over queries: ``recall`` is ``macro_recall``,
    ``reciprocal_rank`` is ``mrr``, ``rbp`` is ``rbp(p=0.8)``, and ``hit`` is ``hit_rate``, by the
    criteria in force. An average is its own name. A cutoff behind it, ``recall@5``, stays.

    Args:
        argument: The argument it came in.
        name: What was asked for.
        known: The averages there are, with their cutoffs if the name has one.
        keys: Metric column -> name of its mean, where metrics of one's own are among them.

    Raises:
        InvalidInput: If there is no such average; of a macro average where only micro averages
            were computed, naming the micro average.

    >>> resolved_average("metric", "recall@5", ["micro_recall@5", "macro_recall@5"])
    'macro_recall@5'
    >>> resolved_average("metric", "hit", ["hit_rate", "mrr"])
    'hit_rate'
    """
    known = tuple(known)
    if not isinstance(name, str):
        raise unknown(argument, name, known)
    metric, at, cutoff = name.partition("@")
    own = (keys or {}).get(metric, metric)
    for one in (name, f"{own}{at}{cutoff}"):
        if one in known:
            return one
    shipped = built_in(metric, argument)
    if shipped is not None and f"{shipped.key}{at}{cutoff}" in known:
        return f"{shipped.key}{at}{cutoff}"
    micro = f"micro_{name}"
    if micro in known:
        problem = f": {name!r} is the macro average, and only {micro!r} was computed"
        fix = Advice("name that, or evaluate with {}", averaging_method="both")
        raise InvalidInput(argument, problem, fix)
    raise unknown_average(argument, name, known)


# So many names, or fewer, are all listed.
_LISTED = 6


def unknown_average(argument: str, name: str, known: Iterable[str]) -> InvalidInput:
    """Return the refusal of a name that is no average, with up to three like it, or else all.

    >>> known = ["mrr", "map", "ndcg", "hit_rate", "mean_rank", "micro_recall", "macro_recall"]
    >>> print(unknown_average("metric", "recal", known).fix)
    did you mean 'macro_recall' or 'micro_recall'? docs/metrics.md has all of them
    """
    names = list(dict.fromkeys(known))
    metric, at, cutoff = name.lower().partition("@")
    bare: dict[str, list[str]] = {}
    for one in sorted(names):
        bare.setdefault(one.removeprefix("macro_").removeprefix("micro_"), []).append(one)
    typed = f"{metric.removeprefix('macro_').removeprefix('micro_')}{at}{cutoff}"
    near = [one for like in difflib.get_close_matches(typed, bare, n=3) for one in bare[like]][:3]
    if not near or len(names) <= _LISTED:
        return unknown(argument, name, names)
    meant = " or ".join(", ".join(map(repr, near)).rsplit(", ", 1))
    advice = f"did you mean {meant}? docs/metrics.md has all of them"
    return InvalidInput(argument, f": there is no average {clipped(name)}", advice)


# Metrics that a result has, but cannot compute: it may have been read from a file.


def _forgotten(*_: object) -> NoReturn:
    raise InvalidInput("metrics", ": this metric comes from a result, which keeps no formulas")


def declarations(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return what is known of metrics that are not computed by default, without their formulas.

    Metrics of which nothing is declared but the names are left out.
    """
    declared = {
        name: replace(metric, compute=_forgotten, parameters={})
        for name, metric in metrics.items()
        if name not in DEFAULT_METRICS
    }
    return {name: one for name, one in declared.items() if declared_content(one)}


def metrics_of(
    keys: Mapping[str, str],
    declared: Mapping[str, Metric],
    criteria: MatchingCriteria | None = None,
) -> dict[str, Metric]:
    """Return the metrics of a result.

    Args:
        keys: Metric column -> name of its mean.
        declared: What is known of those that are not computed by default.
        criteria: When a query is a hit, which the label of the hit rate says where it is known.
    """
    known = {**DEFAULT_METRICS, **declared}
    if criteria is not None:
        known["hit_rate"] = replace(known["hit_rate"], labels=_HIT_RATE[criteria])
    return {name: known.get(name) or Metric(name, _forgotten, key) for name, key in keys.items()}


def is_built_in(metric: Metric) -> bool:
    """Tell whether a metric of a result is one of ours, and not another of the same name."""
    if metric.name in DEFAULT_METRICS:
        return True
    try:
        ours = built_in(metric.name)
    except InvalidInput:
        return False
    return ours is not None and declarations({ours.name: ours}) == {metric.name: metric}


def marks_of(metrics: Iterable[Metric]) -> str:
    """Return the names of the user's own metrics, each with what tells which function it is.

    >>> marks_of(METRICS.values())
    ''
    """
    return ",".join(f"{one.name}{one._mark}" for one in metrics if one._mark)


_DECLARED = tuple(
    one.name for one in fields(Metric) if one.name not in ("name", "compute", "key", "parameters")
)


def declared_content(metric: Metric) -> dict[str, Any]:
    """Return what is declared of a metric beyond its names, as what JSON can hold."""
    bare = Metric(metric.name, metric.compute, metric.key)
    content = {name: getattr(metric, name) for name in _DECLARED}
    content = {name: value for name, value in content.items() if value != getattr(bare, name)}
    if metric.range is not None:  # JSON has no infinity
        content["range"] = [None if math.isinf(bound) else bound for bound in metric.range]
    return content


def declared_metric(name: str, key: str, content: Mapping[str, Any]) -> Metric:
    """Read what :func:`declared_content` returned.

    Raises:
        TypeError, ValueError: If the content is something else.
    """
    read = {**content, "micro": tuple(map(tuple, content.get("micro", ())))}
    read["of_means"] = tuple(content.get("of_means", ()))
    if "range" in content:
        low, high = content["range"]
        read["range"] = -math.inf if low is None else low, math.inf if high is None else high
    return Metric(name, _forgotten, key, **read)


Table: TypeAlias = dict[str, NDArray[Any]]

# Columns and averages that have a meaning of their own, and can be no other metric's.
_TAKEN_COLUMNS = {*COUNTED, LISTED, *DEFAULT_METRICS}
_TAKEN_KEYS = {*averages_of(DEFAULT_METRICS.values()), REJECTION_RATE.key}


#: What stands for the metrics that are computed if none are named.
DEFAULT = "default"


def chosen_metrics(
    metrics: Sequence[str | Metric] | None, known: Mapping[str, Metric], lists: Container[str] = ()
) -> dict[str, Metric]:
    """Return the metrics asked for, by column; those computed by default if none were.

    A text is the name of one metric or average, perhaps with a cutoff, which is passed over, or
    ``"default"`` for those computed by default. Metrics of other lists that are given are among
    these.

    Raises:
        InvalidType: If something is neither a name nor a metric.
        InvalidInput: If a name is unknown or taken, or no metric is left.
    """
    chosen: dict[str, Metric] = {}
    for named in [DEFAULT] if metrics is None else metrics:
        is_default = isinstance(named, str) and named == DEFAULT
        several = _usual(known, lists) if is_default else [_checked_metric(named, known)]
        for metric in several:
            _check_apart(metric, chosen.values())
            chosen[metric.name] = metric
    if not chosen:
        raise InvalidInput("metrics", "must name at least one metric, got an empty list")
    return chosen


def _check_apart(metric: Metric, others: Iterable[Metric]) -> None:
    """Refuse two metrics of one name."""
    for other in others:
        if metric != other and (metric.name == other.name or metric.key == other.key):
            shared = metric.name if metric.name == other.name else metric.key
            raise InvalidInput("metrics", f": two metrics are named {shared!r}", "rename one")


def _usual(known: Mapping[str, Metric], lists: Container[str]) -> list[Metric]:
    """Return the metrics that are computed by default."""
    usual = {*DEFAULT_METRICS, SUCCESS.name}
    return [
        metric.at()
        for name, metric in known.items()
        if name in usual or metric.needs_words or metric.needs_aspects or metric.needs_list in lists
    ]


def asked_metrics(metrics: Iterable[str | Metric] | None) -> list[str | Metric] | None:
    """Return the metrics asked for, one or several, as a list."""
    return [metrics] if isinstance(metrics, str) else None if metrics is None else [*metrics]


def _checked_metric(metric: object, known: Mapping[str, Metric]) -> Metric:
    """Return a metric by name or as it is, if it takes no name of another."""
    if isinstance(metric, str):
        return _by_name(metric, known)
    if not isinstance(metric, Metric):
        be = "be names of built-in metrics or Metric objects, such as "
        be += "Metric('within_two', compute, 'within_two')"
        raise must("metrics", be, metric, kind=InvalidType)
    if known.get(metric.name) != metric:
        for taken, name in ((_TAKEN_COLUMNS, metric.name), (_TAKEN_KEYS, metric.key)):
            if name in taken:
                fix = f"give {metric.name!r} another"
                raise InvalidInput("metrics", f": the name {name!r} is taken", fix)
    return metric.at()


def installed(name: str, argument: str = "metrics") -> Metric | None:
    """Return the metric that an installed package adds by that name; ``None`` if none does.

    A package names it in its entry points: ``[project.entry-points."krag_eval.metrics"]``, then
    ``within_two = "its_module:WITHIN_TWO"``.

    Raises:
        InvalidType: If it is something else.
    """
    found = [one.load() for one in entry_points(group="krag_eval.metrics", name=name)]
    if found and not isinstance(found[0], Metric):
        problem = f": what an installed package adds as {name!r} is no Metric, but {found[0]!r}"
        raise InvalidType(argument, problem)
    return found[0] if found else None


def metric_named(name: str, argument: str = "metrics") -> Metric | None:
    """Return the metric of that name, or of which it names an average; it may be installed.

    >>> names = ("rbp", "micro_f1", "found_rate", "recal")
    >>> [metric and metric.name for metric in map(metric_named, names)]
    ['rbp(p=0.8)', 'f1', 'rank', None]
    """
    return _ours_named(name, argument) or installed(name, argument)


def _ours_named(name: str, argument: str) -> Metric | None:
    of_average = (metric for metric in METRICS.values() if name in averages_of([metric]))
    return built_in(name, argument) or next(of_average, None)


def _by_name(name: str, known: Mapping[str, Metric]) -> Metric:
    """Return the metric of that name, or of which it names an average, with a cutoff or without."""
    name = parse_metric(name, "metrics")[0] if "@" in name else name
    found = _ours_named(name, "metrics")
    if found is None:
        if (added := installed(name)) is not None:
            return _checked_metric(added, known)
        # By its column, or by the key its mean is printed under.
        raise unknown("metrics", name, (*(one.key for one in known.values()), *known))
    if found.needs_words and found.name not in known:
        raise words_unknown("metrics", found.name)
    if found.needs_aspects and found.name.partition("(")[0] not in known:
        raise aspects_unknown("metrics", found.name)
    return replace(found, compute=known[found.name].compute) if found.name in known else found


def with_bounds(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Add what precision and RBP could still be, behind each of them.

    >>> list(with_bounds({name: METRICS[name] for name in ("precision", "recall")}))
    ['precision', 'precision_upper', 'recall']
    """
    bounded: dict[str, Metric] = {}
    for name, metric in metrics.items():
        family = name.partition("(")[0]
        bounded[name] = metric
        if family in _BOUNDS and metric.compute == METRICS[family].compute:
            settings = {of: repr(one.value) for of, one in metric.parameters.items()}
            bound = METRICS[_BOUNDS[family]].at(settings=settings)
            bounded[bound.name] = bound
    return bounded


# Metric -> what says how high it could be.
_BOUNDS = {"precision": "precision_upper", "rbp": "rbp_residual"}


def table_of(
    relevance: Relevance, k: Cutoff, metrics: Mapping[str, Metric], conventions: Conventions
) -> Table:
    """Return the counts and metrics at one cutoff, as columns that cannot be written to.

    Args:
        relevance: What was found.
        k: The cutoff, ``None`` for all retrieved documents.
        metrics: The metrics, by column.
        conventions: How the disputed points are settled.

    Raises:
        InvalidType: If a metric returns something else than one number per query.
    """
    listed = {}
    if isinstance(k, Budget):
        listed = {LISTED: relevance.n_retrieved}
        relevance, k = relevance.within(k), None
    table: Table = {name: count(relevance, k) for name, count in COUNTS.items()} | listed
    table["precision_base"] = precision_base(relevance, k, conventions)
    for name in token_columns(metrics.values()):
        table[name] = getattr(token_counts(relevance, k), name.removeprefix("tokens_"))
    for name, metric in metrics.items():
        table[name] = _checked(name, metric.values(relevance, k, conventions), relevance.n_queries)
    # Counts are shared between tables, so views are given out that cannot be written to.
    views = {name: column.view() for name, column in completed(table, metrics).items()}
    for view in views.values():
        view.flags.writeable = False
    return views


def token_columns(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the counts of tokens that the averages of metrics are made of."""
    needed = {column for metric in metrics for column in metric.columns}
    return tuple(name for name in TOKEN_COUNTS if name in needed)


def completed(table: Table, metrics: Mapping[str, Metric]) -> Table:
    """Add the columns that a macro average is made of, where they were not asked for."""
    for metric in metrics.values():
        for mean, (top, bottom) in zip(metric.of_means, metric.micro, strict=False):
            if mean not in table:
                table[mean] = table[top] / np.maximum(table[bottom], 1)
    return table


def _checked(name: str, values: Any, n_queries: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (n_queries,) or column.dtype.kind not in "biuf":
        raise InvalidType(
            "metrics",
            f": {name!r} must return one number per query, an array of shape ({n_queries},), got "
            f"{np.shape(values)} of {type(values).__name__}",
        )
    return column.astype(np.float64) if column.dtype.kind == "b" else column
