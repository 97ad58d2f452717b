"""Where two texts agree, word for word: for highlighting, and for nothing else.

This room knows texts and runs of words. No number depends on it: what matched was decided by a
matcher, which may have looked at something else entirely.
"""

from __future__ import annotations

import re
from typing import TypeAlias

__all__ = ["Spans", "agreement"]

#: Places in a text: where each begins, and where it ends.
Spans: TypeAlias = tuple[tuple[int, int], ...]

# Shorter runs agree by chance: "of the", "in a".
_SHORTEST_RUN = 3
# Scripts written without spaces, where a word has no visible end: each character is a token.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def agreement(first: str, second: str) -> tuple[Spans, Spans]:
    """Return where two texts share runs of three words or more, in each of them.

    Of a text with fewer words, all of them must be there. Case and punctuation do not matter. The
    cost grows with the length of the texts, not with its square.

    >>> text = "Books may be kept for four weeks."
    >>> spans, _ = agreement(text, "All books may be kept")
    >>> [text[start:stop] for start, stop in spans]
    ['Books may be kept']
    """
    tokens = [list(_TOKEN.finditer(text)) for text in (first, second)]
    words = [[token[0].casefold() for token in one] for one in tokens]
    size = min(_SHORTEST_RUN, *map(len, words))
    if size == 0:
        return (), ()
    runs = [list(zip(*(one[i:] for i in range(size)), strict=False)) for one in words]
    shared = set(runs[0]) & set(runs[1])
    first_spans, second_spans = (
        _spans([run in shared for run in of_text], size, places)
        for of_text, places in zip(runs, tokens, strict=True)
    )
    return first_spans, second_spans


def _spans(is_shared: list[bool], size: int, tokens: list[re.Match[str]]) -> Spans:
    """Join shared runs that overlap or touch, from their first word to their last."""
    spans: list[tuple[int, int]] = []
    after = -1  # the token after the last run
    for position, shared in enumerate(is_shared):
        if not shared:
            continue
        end = tokens[position + size - 1].end()
        if position <= after:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((tokens[position].start(), end))
        after = position + size
    return tuple(spans)
