"""Names of the built-in matchers, for ``matcher="…"`` and the command line.

A built-in matcher is one file and one line in this table. Modules are imported on demand, so that
naming one matcher does not load what another needs; settings are read off the constructors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from krag_eval._errors import InvalidInput, InvalidType, clipped, unknown
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


def resolve_matcher(matcher: str | Matcher) -> Matcher:
    """Return a matcher for a name, or the instance itself.

    Args:
        matcher: A name of :data:`MATCHER_NAMES`, with settings in parentheses if need be, as
            signatures print them; or a :class:`Matcher` instance.

    Raises:
        InvalidInput: For an unknown name or setting; the message lists those there are.
        InvalidType: For anything that is neither a name nor a matcher instance.

    >>> resolve_matcher("text").signature
    'text'
    >>> resolve_matcher("rougeL(statistic=recall, stemmer=yes)").signature
    'rougeL(statistic=recall,tokenizer=unicode,stemmer=yes)'
    """
    if isinstance(matcher, str):
        return _named(matcher)
    if isinstance(matcher, Matcher):
        return matcher
    fix = ""
    if isinstance(matcher, type):
        fix = "did you forget to call it?"
    elif callable(matcher):
        fix = "wrap a function by Matcher.from_function"
    raise InvalidType(
        "matcher",
        f"must be a name ({', '.join(MATCHER_NAMES)}) or an instance of a Matcher subclass, "
        f"got {clipped(matcher)}",
        fix,
    )


def _named(spelled: str) -> Matcher:
    name, opening, rest = spelled.partition("(")
    if name not in _TABLE or (opening and not rest.endswith(")")):
        raise unknown("matcher", spelled, MATCHER_NAMES)
    module, class_name, defaults = _TABLE[name]
    build = getattr(import_module(f"krag_eval.matching.{module}"), class_name)
    settings = _settings(rest[:-1], name, partial(build, **defaults)) if opening else {}
    made: Matcher = build(**defaults, **settings)
    return made


def _settings(text: str, name: str, build: Callable[..., Matcher]) -> dict[str, Any]:
    """Read what stands in the parentheses, each value by the type of the constructor's default."""
    known = {
        one.name: str(one.annotation)
        for one in inspect.signature(build).parameters.values()
        if one.name not in ("rouge_type", "threshold")  # the name says it; it has its own place
    }
    settings: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = part.partition("=")
        if key not in known:
            raise unknown("matcher", key, tuple(known), f"a setting of {name}")
        if key in settings:
            raise InvalidInput("matcher", f": {key} is given twice in {name}({text})")
        settings[key] = _value(f"{name}: {key}", value, known[key])
    return settings


def _value(setting: str, value: str, annotation: str) -> Any:
    if annotation == "bool":
        if value not in ("yes", "no"):
            raise InvalidInput("matcher", f": {setting} must be yes or no, got {clipped(value)}")
        return value == "yes"
    if annotation.startswith("int"):
        if not value.isdecimal():
            raise InvalidInput(
                "matcher", f": {setting} must be a whole number, got {clipped(value)}"
            )
        return int(value)
    return value
