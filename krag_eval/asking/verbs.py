"""Verbs that ask: one that waits for the answers, and its twin to be awaited."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar

from krag_eval.core import EVALUATOR_OPTIONS, check_options

P = ParamSpec("P")
T = TypeVar("T")
Found = TypeVar("Found", covariant=True)


class Asks(Protocol[Found]):
    """All there is to ask, checked."""

    def now(self) -> Found:
        """Ask, and wait for the answers."""

    async def soon(self) -> Found:
        """Ask, and await them."""


def asks(verb: Callable[P, Asks[T]]) -> Callable[P, T]:
    """Make a verb of a function that returns what is to be asked."""

    @functools.wraps(verb)
    def asked(*args: P.args, **options: P.kwargs) -> T:
        check_options(asked, options, EVALUATOR_OPTIONS)
        return verb(*args, **options).now()

    returned = verb.__annotations__["return"].removeprefix("Asks[").removesuffix("]")
    asked.__annotations__ = {**verb.__annotations__, "return": returned}
    vars(asked)["__signature__"] = inspect.signature(verb).replace(return_annotation=returned)
    return asked


def twin_of(
    verb: Callable[P, T],
) -> Callable[[Callable[[], None]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return what makes the twin of a verb, with its signature, of a name and a docstring."""

    def twin(named: Callable[[], None]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(named)
        async def awaited(*args: P.args, **options: P.kwargs) -> T:
            check_options(awaited, options, EVALUATOR_OPTIONS)
            asking: Asks[T] = vars(verb)["__wrapped__"](*args, **options)
            return await asking.soon()

        awaited.__annotations__ = verb.__annotations__
        vars(awaited)["__signature__"] = inspect.signature(verb)
        return awaited

    return twin
