"""How it is said that a chunk says something else than a passage, for people."""

from __future__ import annotations

from krag_eval.core.language import N_, _
from krag_eval.core.matching.contradiction import SaidOtherwise

#: Where a result was read back without the texts of its documents.
NO_TEXTS = N_(
    "Texts were not kept: to_json(path, texts=True), in the shell --texts, keeps them; --golden "
    "and --run name the files that have them."
)
_SAID = {
    "number": N_("the passage has {passage}, the chunk {document} there"),
    "negation": N_("the passage says “{passage}”, the chunk “{document}”: one of them negates it"),
    "text": N_("another text, which has “{document}” for “{passage}”"),
}


def otherwise_in_words(said: SaidOtherwise) -> str:
    """Say what a chunk says otherwise.

    >>> otherwise_in_words(SaidOtherwise("number", "2024", "2023"))
    'the passage has 2024, the chunk 2023 there'
    """
    sides = {"passage": said.passage, "document": said.document or _("nothing")}
    # Results of before knew other kinds.
    return _(_SAID.get(said.kind, _SAID["number"])).format(**sides)
