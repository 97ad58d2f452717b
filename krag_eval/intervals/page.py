"""What is shown of the budget that reaches a recall."""

from __future__ import annotations

import math

from krag_eval.core import Page, _, presents
from krag_eval.core.scoring.cutoffs import amount_in_words
from krag_eval.intervals.intervals import BudgetToRecall


@presents
def _page(found: BudgetToRecall) -> Page:
    value, low, high = (
        "∞" if math.isinf(one) else f"{one:.0f}" for one in (found.value, found.low, found.high)
    )
    told = _("macro recall {recall:g} at {amount} ({level:g} % interval {low} to {high})")
    amount = amount_in_words(value, found.unit)
    level = 100 * found.level
    return Page(
        sentences=[told.format(recall=found.recall, amount=amount, level=level, low=low, high=high)]
    )
