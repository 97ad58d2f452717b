"""Names of the built-in matchers, for ``matcher="…"`` and the command line.

A built-in matcher is one file and one line in this table. Modules are imported on demand, so that
naming one matcher does not load what another needs. Matchers' options are not known here; they are
read off the constructors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from krag_eval._errors import unknown_name
from krag_eval._text import name_and_settings
from krag_eval.matching.base import Matcher

__all__ = ["MATCHER_NAMES", "resolve_matcher"]

_TABLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "text": ("exact", "ExactTextMatcher", {}),
    "contains": ("exact", "ContainsMatcher", {}),
    "id": ("exact", "IdMatcher", {}),
    "coverage": ("coverage", "CoverageMatcher", {}),
    "numbers": ("coverage", "NumbersMatcher", {}),
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
        matcher: A name of :data:`MATCHER_NAMES`, with settings in parentheses if need be, as
            signatures print them; or a :class:`Matcher` instance.
        **options: Passed to the constructor of a named matcher.

    Raises:
        ValueError: For an unknown name or setting; the message lists those there are.
        TypeError: For anything that is neither a name nor a matcher instance, and for options
            beside an instance.

    >>> resolve_matcher("text").signature
    'text'
    >>> resolve_matcher("rougeL(statistic=recall, stemmer=yes)").signature
    'rougeL(statistic=recall,tokenizer=unicode,stemmer=yes)'
    """
    if isinstance(matcher, Matcher):
        if options:
            raise TypeError(
                f"options ({', '.join(options)}) go with a matcher's name, got the instance "
                f"{matcher.signature}, which is made already."
            )
        return matcher
    if isinstance(matcher, str):
        return _named(matcher, options)
    hint = ""
    if isinstance(matcher, type):
        hint = "; did you forget to call it?"
    elif callable(matcher):
        hint = "; wrap a function as Matcher.from_function(function, threshold=…)"
    raise TypeError(
        f"matcher must be a name ({', '.join(MATCHER_NAMES)}) or an instance of a Matcher "
        f"subclass, got {matcher!r}{hint}"
    )


def _named(spelled: str, options: dict[str, Any]) -> Matcher:
    name, settings = name_and_settings("matcher", spelled)
    if name not in _TABLE:
        raise ValueError(unknown_name("matcher", spelled, MATCHER_NAMES))
    module, class_name, defaults = _TABLE[name]
    build = getattr(import_module(f"krag_eval.matching.{module}"), class_name)
    given = _settings(settings, name, partial(build, **defaults)) if settings else {}
    made: Matcher = build(**defaults, **given | options)
    return made


def _settings(given: dict[str, str], name: str, build: Callable[..., Matcher]) -> dict[str, Any]:
    """Read each setting by the type of the constructor's default."""
    known = {
        one.name: str(one.annotation)
        for one in inspect.signature(build).parameters.values()
        if one.name not in ("rouge_type", "threshold")  # the name says it; it has its own place
    }
    for key in given:
        if key not in known:
            raise ValueError(unknown_name(f"matcher: a setting of {name}", key, tuple(known)))
    return {key: _value(f"{name}: {key}", value, known[key]) for key, value in given.items()}


def _value(setting: str, value: str, annotation: str) -> Any:
    if annotation == "bool":
        if value not in ("yes", "no"):
            raise ValueError(f"matcher: {setting} must be yes or no, got {value!r}.")
        return value == "yes"
    if annotation.startswith("int"):
        if not value.isdecimal():
            raise ValueError(f"matcher: {setting} must be a whole number, got {value!r}.")
        return int(value)
    return value
