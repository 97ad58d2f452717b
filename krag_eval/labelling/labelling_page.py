"""The page on which people label pairs: the objects that its template and its script read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from unicodedata import is_normalized, normalize

from markupsafe import Markup

from krag_eval.core import LANGUAGES, N_, Report, _, speaking
from krag_eval.core.matching.tokenizers import ByScript
from krag_eval.core.text import ACTING, Spans, agreement, united

if TYPE_CHECKING:
    from krag_eval.labelling.labels import ToLabel


def labelling_page(shown: ToLabel) -> dict[str, Any]:
    """Gather what the template reads; its script reads the pairs, with no markup among them."""
    data = {
        **vars(shown),
        "acting": ACTING.pattern,
        "shared": [_shared(row) for row in shown.rows],
    }
    return {
        "template": "label.html",
        "script": "label.js",
        "data": Markup(json.dumps(data).replace("<", "\\u003c")),
        "say": _said,
        "N_": N_,
        "shown": shown,
    }


def _shared(row: Mapping[str, Any]) -> list[Spans]:
    """Return what the retrieved text shares with the wanted one, then that of its alternatives."""
    wanted, text = row["actual"], row["predicted"]
    if wanted is None or text is None:
        return []
    several = wanted["any_of"] if isinstance(wanted, Mapping) else [wanted]
    by_letters = ByScript().by_letters(several)

    def held(one: str, other: str) -> Spans:
        alike = normalize("NFC" if is_normalized("NFC", one) else "NFD", other)
        return agreement(one, alike, by_letters=by_letters)

    return [united(span for one in several for span in held(text, one)),
            *(held(one, text) for one in several)]  # fmt: skip


def _said(text: str) -> Markup:
    """Return a text in every language; the page shows one of them."""
    parts = Markup()
    for language in LANGUAGES:
        with speaking(language):
            parts += Markup('<span lang="{}">{}</span>').format(language, _(text))
    return parts


#: The page to label on.
REPORT = Report(labelling_page, N_("Pairs to label"), has_options=False)
