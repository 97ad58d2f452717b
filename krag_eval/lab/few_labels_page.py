"""What is shown of an estimate from few labels: what people would find, and what the judge adds."""

from __future__ import annotations

import math
from functools import partial

from krag_eval.comparison.comparison_page import interval_of
from krag_eval.core import Column, Page, Table, _, percent, pgettext, presents, rounded, span
from krag_eval.lab.few_labels import NOTHING, Debiased, DebiasedValue

# With 20 labels, chance alone narrows an interval by about so much.
_LITTLE = 0.05
_short = partial(rounded, digits=3)


@presents
def _page(debiased: Debiased) -> Page:
    interval = interval_of(debiased.level)
    columns = [
        Column(_("metric"), "metric"),
        Column(pgettext("estimated", "value"), lambda one: _short(one.value)),
        Column(interval, lambda one: span(one.low, one.high, _short)),
        Column(_("people alone"), lambda one: _short(one.human)),
        Column(_("interval"), lambda one: span(one.human_low, one.human_high, _short)),
        Column(_("judge alone"), lambda one: _short(one.judge)),
        Column(_("correlation"), lambda one: rounded(one.correlation, 2)),
        Column(_("saved"), lambda one: percent(round(one.saved, 2))),
    ]
    title = _("All questions as people would judge them")
    if debiased.systems:
        title = _("{b} less {a}").format(**dict(zip("ab", debiased.systems, strict=True)))
    said = [f"{_finding(debiased, one)} {_gain(debiased, one)}".rstrip() for one in debiased.values]
    return Page(title, [Table(debiased.values, columns)], [*said, _condition(debiased)])


def _finding(debiased: Debiased, one: DebiasedValue) -> str:
    about = one.metric
    if debiased.systems:
        told = _("{metric} of {b} less that of {a}")
        about = told.format(metric=about, a=debiased.systems[0], b=debiased.systems[1])
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
        level=f"{100 * debiased.level:.10g}",
        interval=span(one.low, one.high, _short),
        n=debiased.n_asked,
        shown=_shown(debiased, one),
        judge=_short(one.judge),
        verdict=_verdict(one),
        human=_short(one.human),
        human_interval=span(one.human_low, one.human_high, _short),
    )


def _shown(debiased: Debiased, one: DebiasedValue) -> str:
    """Say which of two systems is better, where that is more than chance."""
    if not debiased.systems:
        return ""
    if one.low <= 0 <= one.high:
        return _(", which shows no difference")
    lower = one.average is not None and one.average.lower_is_better
    return _(", so {} is better").format(debiased.systems[int((one.value > 0) != lower)])


def _verdict(one: DebiasedValue) -> str:
    if one.low <= one.judge <= one.high or not one.labels_differ:
        return ""
    return _(", which is too high") if one.judge > one.high else _(", which is too low")


def _gain(debiased: Debiased, one: DebiasedValue) -> str:
    """Say what the judge's labels are worth, or that they are worth nothing."""
    if math.isnan(one.value):
        return ""
    others = debiased.n_asked - debiased.n_labelled
    if one.saved >= _LITTLE:
        # More labels than there are questions left cannot be had.
        n = debiased.n_labelled / max(1 - one.saved, NOTHING) ** 2
        told = _(
            "Together they narrow that interval by {share} %, as {more:.0f} more labelled "
            "questions would."
        )
        more = min(n - debiased.n_labelled, others)
        return told.format(share=f"{100 * round(one.saved, 2):.10g}", more=more)
    if not one.labels_differ:
        return _(
            "People say the same of every labelled question, so these tell nothing of the judge."
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


def _condition(debiased: Debiased) -> str:
    among = (
        "" if debiased.clusters is None else _(", in clusters by {!r}").format(debiased.clusters)
    )
    said = _(
        "Valid if the {n} labelled questions are a random sample of the {asked} asked{among}."
    ).format(n=debiased.n_labelled, asked=debiased.n_asked, among=among)
    if debiased.compared_by != "counts":
        return said
    unseen = _(
        "Whether people and judge saw the same lists is known only from how many documents "
        "these hold: a result without its documents, or with other names for them, does not "
        "tell which."
    )
    return f"{said} {unseen}"
