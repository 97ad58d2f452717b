"""How it is told what a document says otherwise than a passage that it nearly holds."""

from __future__ import annotations

from krag_eval._language import N_, _
from krag_eval._text import fitted
from krag_eval.matching.contradiction import SaidOtherwise

# Columns of what one side says.
_SAID = 60

_OTHERWISE = {
    "number": N_("the passage has {passage}, the chunk {document} there"),
    "unit": N_("the passage has “{passage}”, the chunk “{document}” there, another unit"),
    "negation": N_("the passage has “{passage}”, the chunk “{document}” there, and one says no"),
    "bound": N_("the passage has “{passage}”, the chunk “{document}” there, another bound"),
}


def otherwise_in_words(said: SaidOtherwise) -> str:
    """Say what a passage and a document say in the same place.

    >>> otherwise_in_words(SaidOtherwise("number", "2024", "2023"))
    'the passage has 2024, the chunk 2023 there'
    """
    passage, document = (fitted(one, _SAID) or _("nothing") for one in said[1:])
    return _(_OTHERWISE[said.kind]).format(passage=passage, document=document)
