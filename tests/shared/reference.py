"""A second implementation of the definitions, with sets and loops, and random cases to compare.

Nothing here is fast or clever, and nothing of ``krag_eval.core.scoring`` is used: a query is a few
items, each with its similarity at some ranks, and every value is worked out from that query alone.
"""

import math
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from krag_eval import Conventions, KragEvalWarning, Matcher
from krag_eval.core.matching.joins import Matches
from krag_eval.core.scoring.relevance import Relevance

THRESHOLD = 0.5
# Two below the threshold, one on it, and a match that is less than certain.
SIMILARITIES = (0.1, 0.3, 0.5, 0.8, 1.0)


@dataclass(frozen=True)
class Item:
    """A ground-truth item: its similarity at each rank, 0 where none is given."""

    similarity: Mapping[int, float]
    grade: float = 1.0
    n_alternatives: int = 1


@dataclass(frozen=True)
class Query:
    """The items of a query and the number of its predicted documents."""

    items: Sequence[Item]
    n_retrieved: int

    def cut(self, k):
        """Return the query as it would be had only the first k documents been retrieved."""
        items = [
            replace(item, similarity={r: s for r, s in item.similarity.items() if r <= k})
            for item in self.items
        ]
        return Query(items, min(self.n_retrieved, k))


def relevance_of(queries, threshold=THRESHOLD):
    """Return what the package makes of the same similarities."""
    items = [(number, item) for number, query in enumerate(queries) for item in query.items]
    pairs = [
        (number, rank, similarity)
        for number, (_, item) in enumerate(items)
        for rank, similarity in sorted(item.similarity.items())
    ]
    item, rank, similarity = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Relevance.from_matches(
        Matches(
            np.array(item, np.int64),
            np.array(rank, np.int64),
            np.array(similarity, np.float64),
            np.arange(len(items)),
        ),
        item_query=np.array([number for number, _ in items], np.int64),
        n_retrieved=np.array([query.n_retrieved for query in queries], np.int64),
        threshold=threshold,
        grade=np.array([item.grade for _, item in items], np.float64),
        n_alternatives=np.array([item.n_alternatives for _, item in items], np.int64),
    )


# --- one query -------------------------------------------------------------------------------


class Found:
    """What was found for one query within a cutoff."""

    def __init__(self, query, k, threshold=THRESHOLD):
        self.items = list(query.items)
        self.k = k
        self.n = len(query.items)
        self.retrieved = query.n_retrieved if k is None else min(k, query.n_retrieved)
        ranks = range(1, self.retrieved + 1)
        self.similarity = [[item.similarity.get(i, 0.0) for i in ranks] for item in query.items]
        self.hits = [
            [i for i in ranks if row[i - 1] > 0 and row[i - 1] >= threshold]
            for row in self.similarity
        ]
        self.relevant = sorted(set().union(*self.hits))
        self.first = [min(hits) if hits else None for hits in self.hits]
        self.covered = [j for j in range(self.n) if self.first[j] is not None]

    def relevant_within(self, depth):
        return [i for i in self.relevant if i <= depth]

    def precision_at(self, rank):
        return len([i for i in self.relevant if i <= rank]) / rank


def hit_all(found, conventions):
    return float(found.n > 0 and len(found.covered) == found.n)


def hit_any(found, conventions):
    return float(len(found.covered) > 0)


def precision(found, conventions):
    return ratio(len(found.relevant), precision_base(found, conventions))


def precision_base(found, conventions):
    if conventions.precision_at == "k" and found.k is not None:
        return found.k
    return found.retrieved


def recall(found, conventions):
    return ratio(len(found.covered), found.n)


def f1(found, conventions):
    return harmonic_mean(precision(found, conventions), recall(found, conventions))


def reciprocal_rank(found, conventions):
    firsts = [found.first[j] for j in found.covered]
    if conventions.reciprocal_rank == "per_item":
        return ratio(sum(1 / first for first in firsts), found.n)
    return 1 / min(firsts) if firsts else 0.0


def rank(found, conventions):
    return float(min((found.first[j] for j in found.covered), default=math.nan))


def r_precision(found, conventions):
    return ratio(len(found.relevant_within(found.n)), found.n)


def rbp(found, conventions, p=0.8):
    return (1 - p) * math.fsum(p ** (i - 1) for i in found.relevant)


def average_precision(found, conventions):
    if conventions.average_precision == "per_item":
        own = [[number / i for number, i in enumerate(hits, 1)] for hits in found.hits]
        return ratio(sum(sum(one) / len(one) for one in own if one), found.n)
    firsts = [found.first[j] for j in found.covered]
    at = found.relevant if conventions.credit == "every" else firsts
    return ratio(math.fsum(found.precision_at(i) for i in at), found.n)


def ndcg(found, conventions):
    if conventions.credit == "once" and conventions.ideal == "ground_truth":
        return ndcg_by_places(found, conventions)
    gained = gains(found, conventions)
    depth = found.retrieved if conventions.ideal == "alternatives" else found.k
    return ratio(discounted(gained), best_of(ideal_gains(found, conventions, gained), depth))


def discounted(gained):
    """Return the sum of what each rank or place gains, discounted."""
    return math.fsum(gain / math.log2(i + 1) for i, gain in gained.items())


def best_of(gains, depth):
    """Return the sum of the best list of gains."""
    return discounted(dict(enumerate(sorted(gains, reverse=True)[:depth], 1)))


def ndcg_by_places(found, conventions):
    if conventions.graded_by == "grade":
        grades = [item.grade for item in found.items]
        worth = grades
    else:
        grades = [1.0] * found.n
        worth = [
            row[first - 1] if first else 0.0
            for row, first in zip(found.similarity, found.first, strict=True)
        ]
    own = {j: gain_of(worth[j], conventions) for j in found.covered}
    gained = {place: own[j] for j, place in places(found, own).items()}
    ideal = best_of([gain_of(grade, conventions) for grade in grades], found.k)
    return min(1.0, ratio(discounted(gained), ideal))


def places(found, own):
    """Seat the covered items one by one, each at the first free place from its first rank on."""
    taken: dict[int, int] = {}
    for j in sorted(own, key=lambda j: (-own[j], found.first[j], j)):
        place = found.first[j]
        while place in taken.values():
            place += 1
        taken[j] = place
    return taken


def gains(found, conventions):
    """Return what each rank gains."""
    gained: dict[int, float] = {}
    for i in range(1, found.retrieved + 1):
        credited = [j for j in found.covered if found.first[j] == i]
        matched = [j for j in range(found.n) if i in found.hits[j]]
        if conventions.credit == "once":
            if credited and conventions.graded_by == "grade":
                gained[i] = sum(gain_of(found.items[j].grade, conventions) for j in credited)
            elif credited:
                gained[i] = gain_of(max(found.similarity[j][i - 1] for j in credited), conventions)
        elif conventions.graded_by == "grade":
            if matched:
                gained[i] = gain_of(max(found.items[j].grade for j in matched), conventions)
        else:
            best = max((row[i - 1] for row in found.similarity), default=0.0)
            gained[i] = gain_of(best, conventions)
    return gained


def ideal_gains(found, conventions, gained):
    """Return the gains of the best list, in any order."""
    if conventions.ideal == "retrieved":
        return list(gained.values())
    once = conventions.credit == "once"
    ideal = list(gained.values()) if once else []
    for j, item in enumerate(found.items):
        grade = item.grade if conventions.graded_by == "grade" else 1.0
        copies = item.n_alternatives if conventions.ideal == "alternatives" else 1
        if once and j in found.covered:
            copies -= 1
        ideal += [gain_of(grade, conventions)] * copies
    return ideal


def gain_of(grade, conventions):
    return 2.0**grade - 1 if conventions.gain == "exponential" else grade


def harmonic_mean(first, second):
    return ratio(2 * first * second, first + second)


def ratio(top, bottom):
    """Divide; over nothing it is 0."""
    return top / bottom if bottom else 0.0


METRICS: Mapping[str, Callable[[Found, Conventions], float]] = {
    "hit_rate": hit_all,
    "hit_any": hit_any,
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "reciprocal_rank": reciprocal_rank,
    "average_precision": average_precision,
    "ndcg": ndcg,
    "rank": rank,
    "success": hit_any,
    "r_precision": r_precision,
    "rbp": rbp,
}


# --- over queries ----------------------------------------------------------------------------


def averages(queries, k, conventions=None, *, threshold=THRESHOLD):
    """Return every average over the queries, all of which count."""
    founds = [Found(query, k, threshold) for query in queries]
    return averages_of(founds, conventions or Conventions())


def mean(values):
    """Return the mean of the values that are defined."""
    defined = [value for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def share(tops, bottoms):
    """Return a ratio of sums of whole numbers."""
    return float(ratio(Fraction(sum(tops)), sum(bottoms)))


def averages_of(founds, conventions):
    """Return every average over what was found for some queries."""
    means = {
        name: mean([define(found, conventions) for found in founds])
        for name, define in METRICS.items()
    }
    micro_precision = share(
        [len(found.relevant) for found in founds],
        [precision_base(found, conventions) for found in founds],
    )
    micro_recall = share([len(found.covered) for found in founds], [found.n for found in founds])
    macro_f1 = harmonic_mean(means["precision"], means["recall"])
    if conventions.macro_f1 == "mean_of_f1":
        macro_f1 = means["f1"]
    return {
        "hit_rate": means["hit_rate"],
        "success": means["success"],
        "micro_precision": micro_precision,
        "macro_precision": means["precision"],
        "micro_recall": micro_recall,
        "macro_recall": means["recall"],
        "micro_f1": harmonic_mean(micro_precision, micro_recall),
        "macro_f1": macro_f1,
        "mrr": means["reciprocal_rank"],
        "map": means["average_precision"],
        "ndcg": means["ndcg"],
        "mean_rank": means["rank"],
        "found_rate": means["success"],
    }


# --- random cases ----------------------------------------------------------------------------


def queries_of(n_retrieved, min_items):
    """Return a strategy for queries with that many predicted documents."""
    ranks = st.integers(1, n_retrieved) if n_retrieved else st.nothing()
    items = st.builds(
        Item,
        similarity=st.dictionaries(ranks, st.sampled_from(SIMILARITIES)),
        grade=st.sampled_from([1.0, 2.0, 3.0, 0.5]),
        n_alternatives=st.integers(1, 3),
    )
    return st.builds(Query, st.lists(items, min_size=min_items, max_size=3), st.just(n_retrieved))


def queries(min_items=0):
    """Return a strategy for queries with any repeats and overlaps: all may match at all ranks."""
    return st.one_of([queries_of(n_retrieved, min_items) for n_retrieved in range(6)])


CUTOFFS = st.one_of(st.none(), st.integers(1, 8))

CONVENTIONS = st.builds(
    Conventions,
    **{name: st.sampled_from(values) for name, values in Conventions.allowed().items()},
)


def many_queries(n, *, seed=0, graded=True):
    """Return random queries for tests that look at many at once."""
    source = random.Random(seed)

    def item(n_retrieved):
        found = [rank for rank in range(1, n_retrieved + 1) if source.random() < 0.4]
        similarity = {rank: source.choice(SIMILARITIES) for rank in found}
        grade = source.choice([1.0, 2.0, 3.0]) if graded else 1.0
        return Item(similarity, grade, source.randint(1, 3))

    depths = [source.randint(0, 6) for _ in range(n)]
    return [Query([item(depth) for _ in range(source.randint(0, 4))], depth) for depth in depths]


class TableMatcher(Matcher):
    """Looks similarities up by the two texts."""

    threshold = THRESHOLD

    def __init__(self, table):
        self.table = table

    def settings(self):
        """Return none: the table is all there is."""
        return {}

    def similarity(self, actual, predicted):
        return self.table.get((actual.page_content, predicted.page_content), 0.0)


@contextmanager
def no_advice():
    """Silence the package's warnings where random input is bound to raise some."""
    with warnings.catch_warnings(action="ignore", category=KragEvalWarning):
        yield
