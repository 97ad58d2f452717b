"""Keys that differ in writing alone: named where little matches, and never taken for equal."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from krag_eval.core.errors import clipped, is_tallied, warn, warn_of
from krag_eval.core.language import N_, _

# Longer texts, and those of more words than the name of a file has, are contents, and no keys.
_LONGEST, _MOST_WORDS = 200, 5
_ZEROS, _DECIMALS = re.compile(r"(?<![0-9.])0+(?=[0-9])"), re.compile(r"\.0+$")
# In what keys may differ -> what leaves that out.
_FOLDS: Mapping[str, Callable[[str], str]] = {
    N_("case"): str.casefold,
    N_("spaces"): lambda text: "".join(text.split()),
    N_("leading zeros"): lambda text: _ZEROS.sub("", text),
    N_("a .0"): lambda text: _DECIMALS.sub("", text),
}


def folded(key: Hashable) -> str | None:
    """Return a key without case, spaces, leading zeros and a .0; ``None`` of a long one.

    >>> folded("Doc 007.0"), folded(7), folded(("a.pdf", "03"))
    ('doc7', '7', 'a.pdf+3')
    """
    if isinstance(key, tuple):
        parts = [folded(one) for one in key]
        return None if None in parts else "+".join(map(str, parts))
    if key is None or not isinstance(key, str | int | float):
        return None
    text = str(key)
    if len(text) > _LONGEST or len(text.split()) > _MOST_WORDS:
        return None
    for fold in _FOLDS.values():
        text = fold(text)
    return text


class Near(NamedTuple):
    """How many items nearly match, and the keys of the first of them."""

    n: int = 0
    own: Hashable = None
    other: Hashable = None


def near_keys(
    wanted: Iterable[Sequence[Sequence[Hashable]]], predicted: Iterable[Sequence[Hashable]]
) -> Near:
    """Count items that match no document of their query, and one that is written otherwise.

    Args:
        wanted: Per query, the keys of each item.
        predicted: Per query, the key of each document.

    >>> near_keys([[["A1"], ["b"]]], [["a1", "b"]])
    Near(n=1, own='A1', other='a1')
    """
    near = Near()
    for items, documents in zip(wanted, predicted, strict=True):
        retrieved = {*documents}
        by_fold = {folded(key): key for key in documents}
        by_fold.pop(None, None)
        for keys in items:
            pairs = [(key, by_fold[fold]) for key in keys if (fold := folded(key)) in by_fold]
            if pairs and retrieved.isdisjoint(keys):
                near = Near(near.n + 1, *(pairs[0] if not near.n else near[1:]))
    return near


def warn_of_near_keys(near: Near, n_items: int) -> None:
    """Name keys that are written otherwise on both sides, if there are any."""
    if not near.n:
        return
    told = _("{n} of {items} ground-truth keys are retrieved in another spelling")
    if is_tallied():  # a part has examples of its own
        warn_of(told.format(n="{}", items="{}") + ".", near.n, n_items)
        return
    message = _("{told}: {own} and {other} differ in {kinds}.").format(
        told=told.format(n=near.n, items=n_items),
        own=clipped(near.own),
        other=clipped(near.other),
        kinds=_(" and ").join(map(_, kinds_of(near.own, near.other))),
    )
    warn(message, _("Write the keys of both sides alike"))


def kinds_of(own: Hashable, other: Hashable) -> list[str]:
    """Return in what two keys differ.

    >>> kinds_of("A1", "a1"), kinds_of("007", "7.0")
    (['case'], ['leading zeros', 'a .0'])
    """
    texts = [" ".join(map(str, one)) if isinstance(one, tuple) else str(one)
             for one in (own, other)]  # fmt: skip
    alone = [kind for kind, fold in _FOLDS.items() if len({*map(fold, texts)}) == 1]
    return alone[:1] or [kind for kind, fold in _FOLDS.items() if [*map(fold, texts)] != texts]
