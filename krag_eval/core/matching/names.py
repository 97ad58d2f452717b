"""Names of matchers: what ``matcher="coverage(union=yes)"`` and signatures of results stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from krag_eval.core import errors
from krag_eval.core.errors import Advice, InvalidInput, InvalidType, clipped
from krag_eval.core.hooks import hooks_of_packages, hooks_of_rooms
from krag_eval.core.matching.base import Matcher
from krag_eval.core.matching.coverage import CoverageMatcher, NumbersMatcher
from krag_eval.core.matching.exact import ContainsMatcher, ExactTextMatcher, IdMatcher
from krag_eval.core.matching.spans import SpanMatcher
from krag_eval.core.text import name_and_settings

# The matchers of the core, by name; rooms and installed packages add theirs by hooks.
_BUILDERS: dict[str, Callable[..., Matcher]] = {
    "text": ExactTextMatcher,
    "contains": ContainsMatcher,
    "id": IdMatcher,
    "coverage": CoverageMatcher,
    "numbers": NumbersMatcher,
    "spans": SpanMatcher,
}

# Matchers that need what no name can hold -> how Python makes one.
_IN_PYTHON = {
    "embedding": "EmbeddingMatcher(embeddings, threshold=0.8)",
    "judge": 'JudgeMatcher(judge, version="1")',
    "metadata": 'MetadataMatcher("source", "page")',
    "function": "Matcher.from_function(similarity)",
}

#: The group of hooks by which rooms and installed packages add matchers: a class, or a function.
HOOKS = "krag_eval.matchers"
#: Every name of ours that ``matcher=`` accepts.
MATCHER_NAMES: tuple[str, ...] = (*_BUILDERS, *hooks_of_rooms(HOOKS))


def resolve_matcher(matcher: str | Matcher) -> Matcher:
    """Return a matcher for a name, or the instance itself.

    Args:
        matcher: A name of :data:`MATCHER_NAMES`, or one that an installed package adds by an entry
            point of the group ``krag_eval.matchers``, with settings in parentheses if need be, as
            signatures print them; or a :class:`Matcher` instance.

    Raises:
        InvalidInput: For an unknown name or setting; the message lists those there are.
        InvalidType: For anything that is neither a name nor a matcher instance.

    >>> resolve_matcher("text").signature
    'text'
    >>> resolve_matcher("rougeL(statistic=recall, stemmer=yes)").signature
    'rougeL(statistic=recall,tokenizer=unicode,stemmer=yes)'
    """
    made: Any = matcher
    if isinstance(matcher, str):
        is_name = matcher in MATCHER_NAMES
        name, given = (matcher, {}) if is_name else name_and_settings("matcher", matcher)
        build = _BUILDERS.get(name) or _added(name, matcher)
        made = build(**_settings(given, name, build))
    if isinstance(made, Matcher):
        return made
    fix = "wrap a function by Matcher.from_function" if callable(made) else ""
    fix = "did you forget to call it?" if isinstance(made, type) else fix
    be = f"be a name ({', '.join(MATCHER_NAMES)}) or an instance of a Matcher subclass"
    raise errors.must("matcher", be, made, fix, InvalidType)


# What matchers did before their signatures said so.
_ONCE = {
    "coverage": {"numbers": "ignore", "polarity": "no"},
    "contains": {"fold_whitespace": "no"},
}


def matcher_of_signature(signature: str) -> Matcher:
    """Return the matcher that a result names, as it decided when the result was made.

    >>> matcher_of_signature("contains").signature
    'contains(fold_whitespace=no)'
    """
    name, settings = name_and_settings("matcher", signature)
    settings = _ONCE.get(name, {}) | settings
    shown = ",".join(f"{key}={value}" for key, value in settings.items())
    return resolve_matcher(f"{name}({shown})" if settings else signature)


def says_less(signature: str) -> bool:
    """Tell whether a matcher is named as it was before its signature said what it does now.

    >>> says_less("coverage(min_run=5)"), says_less("text"), says_less("judge(candidates=contains)")
    (True, False, True)
    """
    return any(
        name in signature and not all(f"{setting}=" in signature for setting in settings)
        for name, settings in _ONCE.items()
    )


def _added(name: str, spelled: str) -> Any:
    """Return what a room or an installed package has under a name."""
    if (ours := hooks_of_rooms(HOOKS).get(name)) is not None:
        return ours.load()
    installed = {hook.name: hook for hook in hooks_of_packages(HOOKS)}
    if name in installed:
        return installed[name].load()
    if made_by := _IN_PYTHON.get(name.lower().removesuffix("matcher").removesuffix("s")):
        problem = f": {clipped(spelled)} is made in Python, since it takes more than a name can say"
        raise InvalidInput("matcher", problem, f"pass matcher=krag_eval.{made_by}")
    raise errors.unknown("matcher", spelled, (*MATCHER_NAMES, *sorted(installed)))


def _settings(given: dict[str, str], name: str, build: Callable[..., Matcher]) -> dict[str, Any]:
    """Read each setting by the type of the constructor's default."""
    if not given:
        return {}
    known = {
        parameter.name: str(parameter.annotation)
        for parameter in inspect.signature(build).parameters.values()
        if parameter.name != "threshold"  # it has its own place
    }
    if "threshold" in given:
        problem = f": the threshold is no setting of {name}, as it does not change similarities"
        raise InvalidInput("matcher", problem, Advice("pass {} beside it", threshold=...))
    for key in given:
        if key not in known:
            raise errors.unknown("matcher", key, tuple(known), f"a setting of {name}")
    return {key: _value(f"{name}: {key}", value, known[key]) for key, value in given.items()}


def _value(setting: str, value: str, annotation: str) -> Any:
    be = "a number"
    if "bool" in annotation:
        flags, be = {"yes": True, "true": True, "no": False, "false": False}, "yes or no"
        if value in flags:
            return flags[value]
    elif "int" in annotation or "float" in annotation:
        with suppress(ValueError):
            return (int if "int" in annotation else float)(value)
    else:
        return value
    raise InvalidInput("matcher", f": {setting} must be {be}, got {clipped(value)}")
