"""How many queries of a result have ground truth that nobody has accepted yet.

Their number stands in the signature, behind that of the queries, so that whatever is made of a
result, or saved of it, tells of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from krag_eval.core.language import _

if TYPE_CHECKING:
    from krag_eval.core.results.facts import ResultFacts

UNREVIEWED = "unreviewed"


def with_unreviewed(settings: Mapping[str, str], n: int) -> dict[str, str]:
    """Return the settings of a result, of whose queries so many are drafts.

    >>> with_unreviewed({"queries": "60", "krag_eval": "0.2.0"}, 34)
    {'queries': '60', 'unreviewed': '34 of 60', 'krag_eval': '0.2.0'}
    """
    others = {name: value for name, value in settings.items() if name != UNREVIEWED}
    if not n:
        return others
    names = [*others]
    place = names.index("queries") + 1
    unreviewed = {UNREVIEWED: f"{n} of {others['queries']}"}
    return {
        name: (others | unreviewed)[name] for name in [*names[:place], UNREVIEWED, *names[place:]]
    }


def unreviewed_of(results: Mapping[str, ResultFacts]) -> dict[str, str]:
    """Return how many queries of a result are drafts, by its name, of those that have some."""
    return {name: result.settings[UNREVIEWED] for name, result in results.items()
            if UNREVIEWED in result.settings}  # fmt: skip


def unreviewed_sentences(unreviewed: Mapping[str, str]) -> list[str]:
    """Say how many queries are drafts, by the name of a result; nothing where none is.

    >>> unreviewed_sentences({"old": "34 of 60", "new": "34 of 60"})
    ['34 of 60 queries are drafts that nobody has accepted.']
    >>> unreviewed_sentences({"old": "34 of 60", "new": "9 of 60"})
    ['Queries that are drafts that nobody has accepted: 34 of 60 (old), 9 of 60 (new).']
    """
    counts = {name: dict(zip(("n", "queries"), value.split(" of "), strict=True))
              for name, value in unreviewed.items()}  # fmt: skip
    if len({*unreviewed.values()}) == 1:
        sentence = _("{n} of {queries} queries are drafts that nobody has accepted.")
        return [sentence.format(**next(iter(counts.values())))]
    number = _("{n} of {queries} ({name})")
    numbers = ", ".join(number.format(name=name, **count) for name, count in counts.items())
    sentence = _("Queries that are drafts that nobody has accepted: {numbers}.")
    return [sentence.format(numbers=numbers)] if numbers else []
