"""What is shown of a plan: how many questions it takes, and what the pilot can show."""

from __future__ import annotations

from krag_eval.comparison.comparison import named_tag
from krag_eval.comparison.planning import QuestionPlan
from krag_eval.core import Page, _, presents, short


@presents
def _page(plan: QuestionPlan) -> Page:
    takes = _(
        "To show a difference of {detect} on {metric} takes {questions:,} questions (power {power} "
        "%, alpha {alpha} %)."
    ).format(
        detect=short(plan.detect), metric=plan.metric, questions=plan.questions,
        power=f"{100 * plan.power:.10g}", alpha=f"{100 * plan.alpha:.10g}",
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
        "this: ask for clusters by {tag}."
    )
    effects = plan.dependent.items()
    advice = [told.format(tag=named_tag(tag), effect=effect) for tag, effect in effects]
    return Page(sentences=[*lines, *advice], advice=advice)
