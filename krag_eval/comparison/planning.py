"""Planning: how many questions it takes to show a difference of a given size.

From a pilot, a comparison or one result, by the power of the paired permutation test. What a
comparison that was made can show comes from there too, :mod:`krag_eval.intervals.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from krag_eval.comparison import comparable, comparison as comparisons
from krag_eval.comparison.comparison import Comparison
from krag_eval.comparison.paired import POWER, spread_of
from krag_eval.core import (
    Average,
    Drawn,
    InvalidInput,
    ResultFacts,
    _,
    clipped,
    errors,
    must,
    number,
    told_missing,
    warn,
)
from krag_eval.core.results.latency import told_failed
from krag_eval.intervals import intervals
from krag_eval.intervals.intervals import Clusters, Spread

if TYPE_CHECKING:
    import pandas as pd

#: How the values of two systems are taken to go together where there is only one.
CORRELATION = 0.5
# Rounding must not ask for one question more.
_ROUNDING = 1e-9
# Points of a curve, which runs from a share of the fewest questions marked to beyond the most.
_POINTS, _BEFORE, _BEYOND = 100, 0.5, 1.25


def plan_questions(
    pilot: Comparison | ResultFacts,
    metric: str | None = None,
    *,
    detect: float,
    power: float = POWER,
    alpha: float = 0.05,
    clusters: str | None = None,
    correlation: float | None = None,
) -> QuestionPlan:
    """Return how many questions it takes to show a difference, and what the pilot can show.

    The plan is for the test that :func:`~krag_eval.compare` makes, the paired permutation test,
    two-sided: n = deff · ((z_{1 − alpha/2} · √(sd² + detect²) + z_{power} · sd) / detect)², with
    the standard deviation sd of the paired differences in the pilot and the design effect deff of
    clusters (1 without). Swaps know nothing of a mean difference, which adds to their spread: hence
    √(sd² + detect²) (Connett, Smith and McHugh 1987). Where all differences of the pilot have one
    size, as of a hit rate or of recall with one item per query, that test is discrete, and n is the
    number from which on it has the power exactly. Solved for the difference, with the questions of
    the pilot, it is what the pilot can show. For averages that are not means over queries, such as
    micro averages, the jackknife gives sd.

    Nothing here looks at the difference that the pilot found: what matters is the difference that
    you would not want to miss.

    Args:
        pilot: What :func:`~krag_eval.compare` returned for two systems; or one result, if there is
            no second system yet.
        metric: An average at a cutoff, such as ``"ndcg@10"``. If not given: the one that was
            compared; of a result, nDCG at 10 or else at its deepest cutoff.
        detect: The difference to show, above 0: in the unit of the metric, so 0.02 is two points of
            recall.
        power: How often a true difference of that size is to be shown, above ``alpha`` and below 1.
        alpha: How often a difference is shown where there is none, between 0 and 1. For several
            comparisons at once, divide it by their number, as Holm's correction does at first.
        clusters: A tag of the queries, such as ``"source"``, whose values are clusters; the one
            that the comparison was made with if not given.
        correlation: Of one result: how the values of the two systems will go together over queries,
            from -1 to below 1; 0.5 if not given. Then sd is √(2 · (1 − correlation)) times the
            standard deviation of the values.

    Raises:
        InvalidType: If ``pilot`` is neither, or an argument is of the wrong type.
        InvalidInput: If a number is out of range, the comparison is of more than two systems, the
            metric was not evaluated, or nothing varies in the pilot, so that it tells nothing.

    Warns:
        KragEvalWarning: If the pilot has fewer than 30 queries or 20 clusters, or queries failed.

    >>> from krag_eval import OfflineRetrievalEvaluator, compare
    >>> actual = [[f"passage {i}"] for i in range(100)]
    >>> def misses(some):
    ...     predicted = [["?"] if i in some else truth for i, truth in enumerate(actual)]
    ...     return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=10)
    >>> pilot = compare({"old": misses(range(20)), "new": misses(range(10, 30))}, "recall@10")
    >>> plan_questions(pilot, detect=0.05)
    To show a difference of 0.050 on macro_recall@10 takes 671 questions (power 80 %, alpha 5 %).
    The pilot's 100 questions can show differences from 0.135 on.
    Standard deviation of the paired differences of old and new: 0.449.
    """
    alpha, power = number("alpha", alpha, 0, 1), number("power", power, 0, 1)
    if alpha in (0, 1):
        raise must("alpha", "be between 0 and 1, such as 0.05", alpha)
    if not alpha < power < 1:
        raise must("power", "be above alpha and below 1", power)
    if number("detect", detect, 0) == 0:
        problem = "must be above 0, got 0: no number of questions shows that nothing differs"
        raise InvalidInput("detect", problem)
    results, asked, systems, correlation = _checked_pilot(pilot, metric, correlation)
    grouped = pilot.grouping if isinstance(pilot, Comparison) else None
    (name, where), *more = comparable.checked_metrics(results, asked).items()
    if more:
        raise must("metric", "be one, for a plan is for one", asked)
    every = list(results.values())
    if clusters is not None:
        grouped = Clusters.of(every, clusters)
    spread = spread_of(every, where, grouped)
    if correlation is not None:
        of_two = math.sqrt(2 * (1 - correlation))
        sd, error = of_two * spread.sd, of_two * spread.standard_error
        spread = spread._replace(sd=sd, standard_error=error)
    plan = QuestionPlan(
        metric=name,
        detect=float(detect),
        power=power,
        alpha=alpha,
        spread=spread,
        systems=systems,
        clusters=None if grouped is None else grouped.tag,
        correlation=correlation,
        average=every[0].definitions[where[0]],
        dependent={} if grouped is not None else comparisons.dependent_tags([(every, where)]),
    )
    _check_varies(plan)
    if isinstance(pilot, Comparison):
        caveats = [*told_failed(pilot.failed), *told_missing(pilot.missing)]
    else:
        lacking = {"pilot": pilot.missing}
        caveats = [*told_failed({"pilot": pilot.n_failed}), *told_missing(lacking)]
    for caveat in caveats:  # queries that failed vary, too
        warn(caveat)
    if plan.spread.n < intervals.FEW_QUERIES:
        told = _(
            "The plan rests on {n} queries, and with fewer than {few} their standard deviation is "
            "far from sure."
        )
        advice = _("Ask more queries in the pilot, or take the number as a rough one")
        warn(told.format(n=plan.spread.n, few=intervals.FEW_QUERIES), advice)
    return plan


@dataclass(frozen=True, repr=False)
class QuestionPlan(Drawn):
    """How many questions show a difference; made by :func:`plan_questions`.

    :meth:`plot` draws :func:`~krag_eval.plotting.planning_curve`.

    Attributes:
        metric: The average and its cutoff, such as ``"ndcg@10"``.
        detect: The difference to show.
        power: How often it is to be shown.
        alpha: How often one is shown where there is none.
        spread: What the pilot tells: standard deviation of the paired differences (assumed, for one
            system), number of queries, standard error, and clusters.
        systems: The two systems of the pilot; empty for one result.
        clusters: The tag whose values are clusters; ``None`` without.
        correlation: What was assumed of one result; ``None`` for two systems.
        average: How the metric is made and read.
        dependent: Tag -> the design effect by it, where a tag was found that speaks for clusters
            and none were asked for.
    """

    _drawn_by = "planning_curve"

    metric: str
    detect: float
    power: float
    alpha: float
    spread: Spread
    systems: tuple[str, ...] = ()
    clusters: str | None = None
    correlation: float | None = None
    average: Average | None = field(default=None, repr=False)
    dependent: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def questions(self) -> int:
        """How many questions it takes, at least 2."""
        needed = self.spread.needed(self.detect, self.alpha, self.power)
        return max(2, math.ceil(needed * (1 - _ROUNDING)))

    @property
    def detectable(self) -> float:
        """The smallest true difference that the pilot's own questions can show."""
        return self.spread.detectable(self.alpha, self.power)

    @property
    def design_effect(self) -> float:
        """How many times as many questions clusters take; 1 without."""
        return self.spread.design_effect

    def detectable_with(self, questions: int) -> float:
        """Return the smallest true difference that so many questions can show.

        Raises:
            InvalidInput: If ``questions`` is below 1.

        >>> plan = QuestionPlan("mrr@10", 0.1, 0.8, 0.05, Spread(0.5, 100, 0.05))
        >>> round(plan.detectable_with(400), 3)
        0.071
        """
        n = math.floor(number("questions", questions, 1))
        return self.spread.detectable(self.alpha, self.power, n)

    @property
    def curve(self) -> pd.DataFrame:
        """What can be shown with how many questions: ``questions`` and ``detectable``."""
        import pandas as pd

        marked = self.spread.n, self.questions
        ends = max(2.0, _BEFORE * min(marked)), _BEYOND * max(marked)
        questions = np.unique(np.rint(np.geomspace(*ends, _POINTS)).astype(np.int64))
        shown = [self.detectable_with(n) for n in questions.tolist()]
        return pd.DataFrame({"questions": questions, "detectable": shown})

    @property
    def table(self) -> pd.DataFrame:
        """What can be shown with how many questions, as :attr:`curve`."""
        return self.curve

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain numbers and texts: ``{"metric": …, "questions": …, …}``."""
        asked = ("metric", "detect", "power", "alpha", "questions")
        return {name: getattr(self, name) for name in asked} | {
            "pilot_questions": self.spread.n,
            "detectable": self.detectable,
            "sd": self.spread.sd,
            "design_effect": self.design_effect,
            "clusters": self.clusters,
            "n_clusters": self.spread.n_clusters,
            "systems": list(self.systems),
            "correlation": self.correlation,
            "dependent": dict(self.dependent),
        }


def _check_varies(plan: QuestionPlan) -> None:
    """Refuse a pilot that tells nothing, and a difference that there cannot be."""
    if not plan.spread.sd > 0 or not plan.spread.standard_error > 0:
        what = "no query differs between its systems" if plan.systems else "all queries do alike"
        if math.isnan(plan.spread.sd):
            what = "too few queries have a value"
        elif plan.spread.sd > 0:
            what = f"within each cluster by {clipped(plan.clusters)} the queries cancel out"
        problem = f": {what} on {plan.metric}, so it does not tell how many questions it takes"
        raise InvalidInput("pilot", problem, "take a pilot of more queries")
    low, high = (plan.average.range if plan.average else None) or (-math.inf, math.inf)
    if plan.detect > high - low:
        raise must("detect", f"fit {plan.metric}, from {low:g} to {high:g}", plan.detect)


def _checked_pilot(
    pilot: object, metric: str | None, correlation: float | None
) -> tuple[dict[str, ResultFacts], str, tuple[str, ...], float | None]:
    """Return the results of a pilot, the metric asked for, the two systems, and what is assumed."""
    if isinstance(pilot, Comparison):
        if correlation is not None:
            raise InvalidInput("correlation", "is for one result", "leave it out")
        if len(pilot.pairs) != 1:
            raise must("pilot", "be a comparison of two systems", pilot.names)
        if metric is None and len(pilot.metrics) > 1:
            raise must("metric", "name one of those compared", pilot.metrics)
        pair, asked = pilot.pairs[0], metric or pilot.metrics[0]
        return {name: pilot.compared[name] for name in pair}, asked, pair, None
    if not isinstance(pilot, ResultFacts):
        be = "be a Comparison or an EvaluationResult"
        raise must("pilot", be, pilot, kind=errors.InvalidType)
    intervals.check_counted(pilot)
    assumed = CORRELATION if correlation is None else number("correlation", correlation, -1, 1)
    if assumed == 1:
        problem = "must be below 1, got 1: two systems that do just alike never differ"
        raise InvalidInput("correlation", problem)
    return {"the pilot": pilot}, metric or comparisons.default_metric(pilot), (), assumed
