"""Planning: how many questions it takes to show a difference of a given size.

From a pilot, a comparison or one result, by the sample size formula for a mean. What a comparison
that was made can show comes from the same formulas, in :mod:`krag_eval.statistics.intervals`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from krag_eval._language import Language, _, spoken
from krag_eval.errors import InvalidInput, InvalidType, clipped, number, warn
from krag_eval.results.latency import told_failed
from krag_eval.results.result import EvaluationResult
from krag_eval.scoring.averages import Average
from krag_eval.scoring.cutoffs import Cutoff, deepest, spelled
from krag_eval.statistics.comparison import (
    Comparison,
    checked_metrics,
    dependent_tags,
    named_tag,
    percent,
    short,
)
from krag_eval.statistics.intervals import FEW_QUERIES, Clusters, Spread, check_counted
from krag_eval.statistics.paired import POWER, spread_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: How the values of two systems are taken to go together where there is only one.
CORRELATION = 0.5
# Rounding must not ask for one question more.
_ROUNDING = 1e-9
# Points of a curve, which runs from a share of the fewest questions marked to beyond the most.
_POINTS, _BEFORE, _BEYOND = 100, 0.5, 1.25


def plan_questions(
    pilot: Comparison | EvaluationResult,
    metric: str | None = None,
    *,
    detect: float,
    power: float = POWER,
    alpha: float = 0.05,
    clusters: str | None = None,
    correlation: float | None = None,
) -> QuestionPlan:
    """Return how many questions it takes to show a difference, and what the pilot can show.

    The number is n = deff · ((z_{1 − alpha/2} + z_{power}) · sd / detect)², the sample size of a
    two-sided test of a mean of paired differences, with their standard deviation sd in the pilot
    and the design effect deff of clusters (1 without); see Miller 2024, *Adding Error Bars to
    Evals*, arXiv 2411.00640. Solved for the difference, with the questions of the pilot, it is what
    the pilot can show. For averages that are not means over queries, such as micro averages, the
    jackknife gives sd.

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
    To show a difference of 0.050 on macro_recall@10 takes 635 questions (power 80 %, alpha 5 %).
    The pilot's 100 questions can show differences from 0.126 on.
    Standard deviation of the paired differences of old and new: 0.449.
    """
    aim = _checked_aim(detect, power, alpha)
    if isinstance(pilot, Comparison):
        if correlation is not None:
            problem = "is for one result; a comparison tells how its two systems go together"
            raise InvalidInput("correlation", problem, "leave it out")
        plan = _of_comparison(pilot, metric, clusters, aim)
    elif isinstance(pilot, EvaluationResult):
        plan = _of_result(pilot, metric, clusters, correlation, aim)
    else:
        problem = f"must be a Comparison or an EvaluationResult, got {clipped(pilot)}"
        raise InvalidType("pilot", problem)
    _check_varies(plan)
    failed = pilot.failed if isinstance(pilot, Comparison) else {"pilot": pilot.n_failed}
    for told in told_failed(failed):  # they vary, too
        warn(told)
    if plan.spread.n < FEW_QUERIES:
        told = _(
            "The plan rests on {n} queries, and with fewer than {few} their standard deviation is "
            "far from sure."
        )
        advice = _("Ask more queries in the pilot, or take the number as a rough one")
        warn(told.format(n=plan.spread.n, few=FEW_QUERIES), advice)
    return plan


@dataclass(frozen=True)
class QuestionPlan:
    """How many questions show a difference; made by :func:`plan_questions`.

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
        0.07
        """
        return self.detectable * math.sqrt(self.spread.n / number("questions", questions, 1))

    @property
    def curve(self) -> pd.DataFrame:
        """What can be shown with how many questions: ``questions`` and ``detectable``."""
        import pandas as pd

        marked = self.spread.n, self.questions
        ends = max(2.0, _BEFORE * min(marked)), _BEYOND * max(marked)
        questions = np.unique(np.rint(np.geomspace(*ends, _POINTS)).astype(np.int64))
        shown = self.detectable * np.sqrt(self.spread.n / questions)
        return pd.DataFrame({"questions": questions, "detectable": shown})

    @property
    def table(self) -> pd.DataFrame:
        """What can be shown with how many questions, as :attr:`curve`."""
        return self.curve

    @spoken
    def plot(self, ax: Axes | None = None, *, language: Language | None = None) -> Axes:
        """Draw the detectable difference against the number of questions.

        Args:
            ax: Where to draw; a new figure if not given.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        Returns:
            The matplotlib Axes; nothing is shown or saved.
        """
        from krag_eval.plotting import planning_curve

        return planning_curve(self, ax, language=language)

    @spoken
    def summary(self, language: Language | None = None) -> str:
        """Return what it takes, what the pilot can show, and what both rest on, a line each.

        The last line names a tag by which questions do alike, if no clusters were asked for.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        """
        return "\n".join(told_plan(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain numbers and texts: ``{"metric": …, "questions": …, …}``."""
        return {
            "metric": self.metric,
            "detect": self.detect,
            "power": self.power,
            "alpha": self.alpha,
            "questions": self.questions,
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

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in self.summary().split("\n"))


def told_plan(plan: QuestionPlan, option: str = 'clusters="{}"') -> list[str]:
    """Say what a plan comes to, in a sentence each.

    Args:
        plan: The plan.
        option: How to ask for clusters by a tag.
    """
    takes = _(
        "To show a difference of {detect} on {metric} takes {questions:,} questions (power {power} "
        "%, alpha {alpha} %)."
    ).format(
        detect=short(plan.detect), metric=plan.metric, questions=plan.questions,
        power=percent(plan.power), alpha=percent(plan.alpha),
    )  # fmt: skip
    told = _("The pilot's {n:,} questions can show differences from {detectable} on.")
    shows = told.format(n=plan.spread.n, detectable=short(plan.detectable))
    if plan.systems:
        told = _("Standard deviation of the paired differences of {a} and {b}: {sd}.")
    else:
        told = _(
            "The pilot is of one system. Two whose values correlate by {correlation:g}, which is "
            "assumed, would differ with a standard deviation of {sd}."
        )
    systems = dict(zip("ab", plan.systems, strict=False))
    varies = told.format(**systems, correlation=plan.correlation, sd=short(plan.spread.sd))
    lines = [takes, shows, varies]
    if plan.clusters is not None:
        told = _(
            "Design effect of {n} clusters by {tag}: {effect:.2f}. It holds if new questions come "
            "from new clusters, as many from each as in the pilot."
        )
        n = plan.spread.n_clusters
        lines.append(told.format(n=n, tag=plan.clusters, effect=plan.design_effect))
    told = _(
        "Questions of the same {tag} do alike (design effect {effect:.1f}), so it takes more than "
        "this: plan with {option}."
    )
    return lines + [
        told.format(tag=named_tag(tag), effect=effect, option=option.format(tag))
        for tag, effect in plan.dependent.items()
    ]


def _checked_aim(detect: object, power: object, alpha: object) -> dict[str, Any]:
    """Return the numbers that a plan is for, checked but for the range of the metric."""
    found = {"alpha": number("alpha", alpha, 0, 1), "power": number("power", power, 0, 1)}
    if found["alpha"] in (0, 1):
        raise InvalidInput("alpha", f"must be between 0 and 1, such as 0.05, got {alpha!r}")
    if not found["alpha"] < found["power"] < 1:
        problem = f"must be above alpha, {found['alpha']:g}, and below 1, got {power!r}"
        raise InvalidInput("power", problem)
    found["detect"] = number("detect", detect, 0)
    if found["detect"] == 0:
        problem = "must be above 0, got 0: no number of questions shows that nothing differs"
        raise InvalidInput("detect", problem)
    return found


def _of_comparison(
    pilot: Comparison, metric: str | None, tag: str | None, aim: dict[str, Any]
) -> QuestionPlan:
    if len(pilot.pairs) != 1:
        problem = f"must be a comparison of two systems, got {', '.join(pilot.names)}"
        raise InvalidInput("pilot", problem, "compare the two that the plan is for")
    if metric is None and len(pilot.metrics) > 1:
        problem = f"must name one of those compared ({', '.join(pilot.metrics)}), got none"
        raise InvalidInput("metric", problem)
    systems = pilot.pairs[0]
    results = [pilot.compared[name] for name in systems]
    name, where = _only(checked_metrics(dict(pilot.compared), metric or pilot.metrics[0]))
    clusters = pilot.grouping if tag is None else Clusters.of(results, tag)
    return QuestionPlan(
        metric=name,
        **aim,
        spread=spread_of(results, where, clusters),
        systems=systems,
        clusters=None if clusters is None else clusters.tag,
        average=results[0].definitions[where[0]],
        dependent={} if clusters is not None else dependent_tags([(results, where)]),
    )


def _of_result(
    pilot: EvaluationResult,
    metric: str | None,
    tag: str | None,
    correlation: float | None,
    aim: dict[str, Any],
) -> QuestionPlan:
    check_counted(pilot)
    assumed = CORRELATION if correlation is None else number("correlation", correlation, -1, 1)
    if assumed == 1:
        problem = "must be below 1, got 1: two systems that do just alike never differ"
        raise InvalidInput("correlation", problem)
    at = 10 if 10 in pilot.k else deepest(pilot.k)
    asked = f"ndcg@{spelled(at)}" if metric is None else metric
    name, where = _only(checked_metrics({"the pilot": pilot}, asked))
    clusters = None if tag is None else Clusters.of([pilot], tag)
    alone = spread_of([pilot], where, clusters)
    of_two = math.sqrt(2 * (1 - assumed))
    return QuestionPlan(
        metric=name,
        **aim,
        spread=alone._replace(sd=alone.sd * of_two, standard_error=alone.standard_error * of_two),
        clusters=tag,
        correlation=assumed,
        average=pilot.definitions[where[0]],
        dependent={} if clusters is not None else dependent_tags([([pilot], where)]),
    )


def _only(metrics: dict[str, tuple[str, Cutoff]]) -> tuple[str, tuple[str, Cutoff]]:
    """Return the one metric that a plan is for.

    Raises:
        InvalidInput: If several are named.
    """
    if len(metrics) > 1:
        problem = f"must be one, for a plan is for one, got {', '.join(metrics)}"
        raise InvalidInput("metric", problem)
    return next(iter(metrics.items()))


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
        problem = f": {plan.metric} ranges from {low:g} to {high:g}, got {plan.detect!r}"
        raise InvalidInput("detect", problem)
