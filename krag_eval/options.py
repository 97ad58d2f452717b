"""Options: keywords that are passed on, checked under the name of the function that took them.

This room knows the names of an evaluator's options and how to refuse another one. It must not know
what an option means, or which values it may have.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

from krag_eval.messages import clipped

__all__ = ["EVALUATOR_OPTIONS", "PLAN_OPTIONS", "check_options", "named_options"]

Made = TypeVar("Made", bound=Callable[..., Any])

#: How a run is evaluated, wherever its documents are.
PLAN_OPTIONS = (
    "matcher",
    "threshold",
    "averaging_method",
    "matching_criteria",
    "conventions",
    "no_ground_truth",
    "grade_key",
)
#: All that an evaluator takes beside documents.
EVALUATOR_OPTIONS = (*PLAN_OPTIONS, "queries", "n_jobs")

# What users of krag type -> what it is called here.
_KRAG = {"match_method": "matcher", "rouge_threshold": "threshold"}
# A matcher's own setting -> how it is said.
_OF_THE_MATCHER = {
    "tokenizer": "coverage(tokenizer=kiwi)",
    "min_run": "coverage(min_run=5)",
    "numbers": "coverage(numbers=yes)",
    "statistic": "rougeL(statistic=recall)",
    "stemmer": "rougeL(stemmer=yes)",
}


def check_options(
    function: Callable[..., Any], options: Collection[str], passed_on: Sequence[str] = ()
) -> None:
    """Refuse an option that a function does not have, in the words of who called it.

    Args:
        function: What the user called; its own keywords are allowed.
        options: The names that came.
        passed_on: The names that it hands to another.

    Raises:
        TypeError: Naming the function, the option, the nearest one allowed, and all of them.

    >>> def measure(path, k=5, **options): ...
    >>> check_options(measure, ["treshold"], ("matcher", "threshold"))
    Traceback (most recent call last):
    TypeError: measure() has no option 'treshold'; did you mean 'threshold'? It takes 'path', 'k',
    'matcher', 'threshold'.
    """
    own = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.name != "self" and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    allowed = tuple(dict.fromkeys([*own, *passed_on]))
    for name in options:
        if name not in allowed:
            called = function.__qualname__.removesuffix(".__init__")
            raise TypeError(
                f"{called}() has no option {clipped(name)}{_hint(name, allowed)} "
                f"It takes {', '.join(map(repr, allowed))}."
            )


def named_options(function: Made) -> Made:
    """Make a function refuse unknown keywords as :func:`check_options` does, not as Python does.

    The signature stays as it is, for readers, tools and type checkers.
    """
    known = frozenset(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        if not options.keys() <= known:
            check_options(function, options)
        return function(*args, **options)

    return cast(Made, checked)


def _hint(name: str, allowed: Collection[str]) -> str:
    """Say what was probably meant."""
    if name in _OF_THE_MATCHER and "matcher" in allowed:
        return f": it belongs to the matcher, as in matcher={_OF_THE_MATCHER[name]!r}."
    near = difflib.get_close_matches(name.lower(), allowed, n=1)
    meant = _KRAG.get(name) if _KRAG.get(name) in allowed else next(iter(near), None)
    return f"; did you mean {meant!r}?" if meant else "."
