"""Names of matchers: what ``matcher="coverage(union=yes)"`` and signatures of results stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from krag_eval.core import errors
from krag_eval.core.errors import Advice, InvalidInput, InvalidType, clipped
from krag_eval.core.hooks import installed_hooks, our_hooks
from krag_eval.core.matching.base import Matcher
from krag_eval.core.matching.identity import same
from krag_eval.core.text import name_and_settings

# Matchers that need what no name can hold -> how Python makes one.
_IN_PYTHON = {
    "embedding": "EmbeddingMatcher(embeddings, threshold=0.8)",
    "judge": 'JudgeMatcher(judge, version="1")',
    "metadata": 'MetadataMatcher("source", "page")',
    "function": "Matcher.from_function(similarity)",
}

#: The hooks by which rooms and installed packages add matchers: name -> a class, or a function.
GROUP = "krag_eval.matchers"
#: Every name of ours that ``matcher=`` accepts.
MATCHER_NAMES: tuple[str, ...] = tuple(our_hooks(GROUP))


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
    resolved: Any = matcher
    if isinstance(matcher, str):
        is_name = matcher in MATCHER_NAMES
        name, settings = (matcher, {}) if is_name else name_and_settings("matcher", matcher)
        build = _builder(name, matcher)
        resolved = build(**_settings(settings, name, build) if settings else {})
    if isinstance(resolved, Matcher):
        return resolved
    fix = "wrap a function by Matcher.from_function" if callable(resolved) else ""
    fix = "did you forget to call it?" if isinstance(resolved, type) else fix
    be = f"be a name ({', '.join(MATCHER_NAMES)}) or an instance of a Matcher subclass"
    raise errors.must("matcher", be, resolved, fix, InvalidType)


# The setting by which signatures say what matchers do now, and what they did before.
_ONCE = {
    "coverage": ("guard", {"numbers": "ignore", "polarity": "no"}),
    "contains": ("fold_whitespace", {"fold_whitespace": "no"}),
}


def matcher_of_signature(signature: str) -> Matcher:
    """Return the matcher that a result names, as it decided when the result was made.

    >>> matcher_of_signature("contains").signature
    'contains(fold_whitespace=no)'
    """
    name, settings = name_and_settings("matcher", signature)
    sign, once = _ONCE.get(name, ("", {}))
    settings = settings if sign in settings else once | settings
    shown = ",".join(f"{key}={value}" for key, value in settings.items())
    return resolve_matcher(f"{name}({shown})" if settings else signature)


def matcher_of(signature: str, held: Matcher | None, given: str | Matcher | None) -> Matcher:
    """Return the matcher of a result: as given, as it is held, or as the signature says.

    Raises:
        InvalidInput: If another one is given, or the signature does not tell all.
    """
    if given is not None:
        matcher = resolve_matcher(given)
        if same(matcher.signature, signature) is False:
            problem = f"must be the one of the result, {signature}, got {matcher.signature}"
            fix = "leave it out, or evaluate again with the other one"
            raise InvalidInput("matcher", problem, fix)
        return matcher
    if held is not None:
        return held
    try:
        return matcher_of_signature(signature)
    except (InvalidInput, InvalidType) as error:
        raise InvalidInput(
            "matcher",
            f": this result was saved or copied, and nothing can be compared by its signature "
            f"{signature} alone",
            Advice("pass {}, the matcher it was made with", matcher=...),
        ) from error


def says_less(signature: str) -> bool:
    """Tell whether a matcher is named as it was before its signature said what it does now.

    >>> says_less("coverage(min_run=5)"), says_less("text"), says_less("judge(candidates=contains)")
    (True, False, True)
    """
    return any(
        name in signature and f"{sign}=" not in signature for name, (sign, _) in _ONCE.items()
    )


def _builder(name: str, spelled: str) -> Any:
    """Return what the package, a room or an installed package has under a name."""
    if name in MATCHER_NAMES:
        return our_hooks(GROUP)[name].load()
    installed = installed_hooks(GROUP)
    if name in installed:
        return installed[name].load()
    if made_by := _IN_PYTHON.get(name.lower().removesuffix("matcher").removesuffix("s")):
        problem = f": {clipped(spelled)} is made in Python, since it takes more than a name can say"
        raise InvalidInput("matcher", problem, f"pass matcher=krag_eval.{made_by}")
    raise errors.unknown("matcher", spelled, (*MATCHER_NAMES, *installed))


def _settings(given: dict[str, str], name: str, build: Callable[..., Matcher]) -> dict[str, Any]:
    """Read each setting by the type of the constructor's default."""
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
