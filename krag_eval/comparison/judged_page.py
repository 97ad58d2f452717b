"""What is shown of documents that nobody looked at: what they leave open."""

from __future__ import annotations

from krag_eval.comparison.judged import ToJudge
from krag_eval.core import Page, _, presents


@presents
def _page(found: ToJudge) -> Page:
    n, known = found.n_decisive, vars(found)
    told = _(
        "{b} minus {a} on {metric} is {difference:.3f}, and no unjudged document could change it."
    )
    if not n:
        return Page(sentences=[told.format(**known)])
    one, several = _("the unjudged document turns"), _("the {} unjudged documents turn")
    sign = _("may be either") if found.low < 0 < found.high else _("stays")
    told = _(
        "{b} minus {a} on {metric} is {difference:.3f}; whatever {turn} out to be, it lies between "
        "{low:.3f} and {high:.3f}: its sign {sign}."
    )
    turn = one if n == 1 else several.format(n)
    return Page(sentences=[told.format(**known, turn=turn, sign=sign)])
