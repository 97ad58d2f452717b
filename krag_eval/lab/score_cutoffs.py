"""Where to cut retrieved documents off by their scores, so that nothing comes back at times.

A cutoff keeps the documents whose scores are at or above it. A higher one costs recall of the
queries that have an answer, and lets more of the others, which have none, end without a document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from krag_eval.core import Advice, Budget, Cutoff, Drawn, FloatArray, IntArray, InvalidInput
from krag_eval.core.results.evidence import Evidence
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import Sampling
from krag_eval.lab.intervals import interval_of_choice

if TYPE_CHECKING:
    import pandas as pd

# What differs by less is rounding.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCutoffs(Drawn):
    """What each score cutoff costs and saves; made by ``result.score_cutoffs``.

    Attributes:
        k: The cutoff that recall is looked at.
        lower_is_better: Whether scores are distances, by the ranks: those at or below a cutoff are
            kept then.
        cutoffs: The scores at which anything changes, from the one that keeps all to the strictest;
            of those between which nothing does, the one that keeps most.
        recall: The macro recall of the queries with ground truth, at each.
        abstention: The share of those without for which nothing is kept; NaN if there are none.
        n_answerable: Number of queries with ground truth.
        n_unanswerable: Number of queries without.
        chosen: The place of the best cutoff, the one with the largest mean of recall and
            abstention; of equals, the one that keeps most. ``None`` where nothing is to abstain
            from.
        interval: Percentiles of the best cutoff of each resample: the queries, with and without
            ground truth together, are drawn with replacement, and the best cutoff is chosen anew;
            resamples with queries of one kind alone are left out. NaN where fewer than 30 of either
            kind were asked and all resamples choose the same, and where nothing is chosen.
        held_out: Recall and abstention on queries that the cutoff was not chosen on: chosen on a
            random half and reported on the other, and the reverse; the mean of the two.
        level: The level of the interval.
    """

    k: Cutoff
    lower_is_better: bool
    cutoffs: FloatArray
    recall: FloatArray
    abstention: FloatArray
    n_answerable: int
    n_unanswerable: int
    chosen: int | None
    interval: tuple[float, float]
    held_out: tuple[float, float]
    level: float

    _drawn_by: ClassVar[str] = "score_cutoff_curve"

    @property
    def best(self) -> float | None:
        """The best cutoff; ``None`` where nothing is to abstain from."""
        return None if self.chosen is None else float(self.cutoffs[self.chosen])

    @property
    def table(self) -> pd.DataFrame:
        """One row per cutoff: ``recall``, ``abstention`` and ``balanced``, the mean of both."""
        import pandas as pd

        shown = pd.DataFrame({"recall": self.recall, "abstention": self.abstention})
        shown.index = pd.Index(self.cutoffs, name="cutoff")
        return shown.assign(balanced=(self.recall + self.abstention) / 2)


class _Curve(NamedTuple):
    """What is kept at each cutoff.

    Attributes:
        n_items: Ground-truth items per query; shape (queries,).
        cutoffs: The cutoffs, ascending, where higher scores are better.
        query: The query of each item that is found, from the best score of its document down.
        n_found: How many of these each cutoff keeps.
        empty: The queries without ground truth, from the worst best score up.
        n_empty: For how many of these a cutoff keeps nothing.
        order: The queries by what they hold, so that no draw depends on the order they came in.
    """

    n_items: IntArray
    cutoffs: FloatArray
    query: IntArray
    n_found: IntArray
    empty: IntArray
    n_empty: IntArray
    order: IntArray

    @classmethod
    def of(cls, evidence: Evidence, scores: FloatArray, k: Cutoff) -> _Curve:
        found = evidence.measured(k.unit) if isinstance(k, Budget) else evidence.relevance
        starts = np.cumsum(found.n_retrieved) - found.n_retrieved
        seen = found.first_rank <= found.seen_within(k)[found.covered_query]
        query = found.covered_query[seen]
        of_items = scores[starts[query] + found.first_rank[seen] - 1]
        empty = np.flatnonzero(found.n_items == 0)
        # Where nothing was retrieved, nothing is kept at any cutoff.
        top = np.append(scores, -np.inf)[np.where(found.n_retrieved, starts, len(scores))[empty]]
        cutoffs = np.unique(scores)
        n_found = len(query) - np.searchsorted(np.sort(of_items), cutoffs)
        n_empty = np.searchsorted(np.sort(top), cutoffs)
        changes = np.append(True, (np.diff(n_found) != 0) | (np.diff(n_empty) != 0))
        by_score = query[np.argsort(-of_items)], n_found[changes]
        of_query: list[list[float]] = [[] for _ in found.n_items]
        for one, score in zip([*query, *empty], [*of_items, *top], strict=True):
            of_query[one].append(float(score))
        held = [(int(n), sorted(one)) for n, one in zip(found.n_items, of_query, strict=True)]
        order = np.array(sorted(range(len(held)), key=held.__getitem__), np.int64)
        return cls(found.n_items, cutoffs[changes], *by_score, empty[np.argsort(top)],
                   n_empty[changes], order)  # fmt: skip

    def shares(self, times: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return recall and abstention at each cutoff, and the place of the best one.

        Args:
            times: How often each query counts; shape (rows, queries), a row for each result.
        """
        found = _upto(times[:, self.query] / self.n_items[self.query])[:, self.n_found]
        empty = times[:, self.empty]
        n_empty = empty.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # of no queries, there is no share
            recall = found / (times.sum(axis=1, keepdims=True) - n_empty)
            abstention = _upto(empty)[:, self.n_empty] / n_empty
        both = recall + abstention
        return recall, abstention, np.argmax(both >= both.max(axis=1, keepdims=True) - _NOTHING, 1)

    def resampled(self, sampling: Sampling) -> FloatArray:
        """Return the best cutoff of each resample; NaN where it has queries of one kind alone."""
        best, n = [], len(self.n_items)
        draws = intervals.drawn(n, sampling.n_resamples, sampling.seed, len(self.cutoffs))
        place_of = np.argsort(self.order)
        for *_place, times in draws:
            times = times[:, place_of]
            recall, abstention, place = self.shares(times)
            known = np.isfinite(recall + abstention)[:, 0]
            best.append(np.where(known, self.cutoffs[place], np.nan))
        return np.concatenate(best)

    def held_out(self, seed: int) -> tuple[float, float]:
        """Return recall and abstention of halves at the cutoff chosen on the other half."""
        rng, halves = np.random.default_rng([seed, 2]), np.zeros((2, len(self.n_items)), np.int64)
        for kind in (self.n_items > 0, self.n_items == 0):
            shuffled = rng.permutation(self.order[kind[self.order]])
            halves[0, shuffled[::2]] = halves[1, shuffled[1::2]] = 1
        recall, abstention, best = self.shares(halves)
        return float(recall[[1, 0], best].mean()), float(abstention[[1, 0], best].mean())


def _upto(values: FloatArray | IntArray) -> FloatArray:
    """Return the sum of the first 0, 1, 2, … values of each row."""
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))


def score_cutoffs(
    evidence: Evidence, k: Cutoff, sampling: Sampling, *, condensed: bool
) -> ScoreCutoffs:
    """Return what each score cutoff costs and saves.

    See :meth:`EvaluationResult.score_cutoffs <krag_eval.EvaluationResult.score_cutoffs>`.

    Args:
        evidence: What was found, with the documents.
        k: The cutoff that recall is looked at.
        sampling: How the interval is drawn.
        condensed: Whether documents that are not judged are left out.
    """
    if evidence.texts is None:
        problem = "this result does not keep the documents, in whose metadata the scores are"
        raise InvalidInput("", problem, "evaluate again, or save it with its texts")
    if condensed:
        problem = ": where unjudged documents are left out, lists are others than those scored"
        raise InvalidInput("unjudged", problem, Advice("evaluate with {}", unjudged="wrong"))
    scores, lower = evidence.texts.queries.scores()
    if not len(scores) or not evidence.relevance.n_items.any():
        problem = ": no query has ground truth" if len(scores) else ": nothing was retrieved"
        raise InvalidInput("actual_docs", f"{problem}, so that no cutoff costs anything")
    sign = -1 if lower else 1
    curve = _Curve.of(evidence, sign * scores, k)
    n_empty, n = len(curve.empty), len(curve.n_items)
    recall, abstention, best = curve.shares(np.ones((1, n), np.int64))
    chosen, bounds, held_out = None, (math.nan, math.nan), (math.nan, math.nan)
    if n_empty:
        chosen = int(best[0])
        intervals.warn_of_few_queries(min(n_empty, n - n_empty))
        resampled, value = curve.resampled(sampling), float(curve.cutoffs[chosen])
        n_fewest = min(n_empty, n - n_empty)
        low, high = interval_of_choice(resampled, value, sampling.level, n_fewest)
        bounds = (-high, -low) if lower else (low, high)
        held_out = curve.held_out(sampling.seed)
    return ScoreCutoffs(k, lower, sign * curve.cutoffs, recall[0], abstention[0], n - n_empty,
                        n_empty, chosen, bounds, held_out, sampling.level)  # fmt: skip
