"""Names of the built-in matchers, for ``matcher="…"`` and the command line.

A built-in matcher is one file and one line in this table. Modules are imported on demand, so that
naming one matcher does not load what another needs. Matchers' options are not known here.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from krag_eval.matching.base import Matcher
from krag_eval.messages import unknown_name

__all__ = ["MATCHER_NAMES", "resolve_matcher"]

_TABLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "text": ("exact", "ExactTextMatcher", {}),
    "contains": ("exact", "ContainsMatcher", {}),
    "id": ("exact", "IdMatcher", {}),
    "coverage": ("coverage", "CoverageMatcher", {}),
    "fuzzy": ("fuzzy", "FuzzyMatcher", {}),
    "rouge1": ("rouge", "RougeMatcher", {"rouge_type": "rouge1"}),
    "rouge2": ("rouge", "RougeMatcher", {"rouge_type": "rouge2"}),
    "rougeL": ("rouge", "RougeMatcher", {"rouge_type": "rougeL"}),
}

#: Every name that ``matcher=`` accepts.
MATCHER_NAMES: tuple[str, ...] = tuple(_TABLE)


def resolve_matcher(matcher: str | Matcher, **options: Any) -> Matcher:
    """Return a matcher for a name, or the instance itself.

    Args:
        matcher: A name of :data:`MATCHER_NAMES` or a :class:`Matcher` instance.
        **options: Passed to the constructor of a named matcher.

    Raises:
        ValueError: For an unknown name; the message lists the names and the nearest one.
        TypeError: For anything that is neither a name nor a matcher instance, and for options
            beside an instance.

    >>> resolve_matcher("text").signature
    'text'
    """
    if isinstance(matcher, Matcher):
        if options:
            raise TypeError(
                f"options ({', '.join(options)}) go with a matcher's name, got the instance "
                f"{matcher.signature}, which is made already."
            )
        return matcher
    if isinstance(matcher, str):
        if matcher not in _TABLE:
            raise ValueError(unknown_name("matcher", matcher, MATCHER_NAMES))
        module, name, defaults = _TABLE[matcher]
        build = getattr(import_module(f"krag_eval.matching.{module}"), name)
        made: Matcher = partial(build, **defaults)(**options)
        return made
    hint = ""
    if isinstance(matcher, type):
        hint = "; did you forget to call it?"
    elif callable(matcher):
        hint = "; wrap a function as Matcher.from_function(function, threshold=…)"
    raise TypeError(
        f"matcher must be a name ({', '.join(MATCHER_NAMES)}) or an instance of a Matcher "
        f"subclass, got {matcher!r}{hint}"
    )
