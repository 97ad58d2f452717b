"""Errors and warnings: what is wrong with an input, what is allowed, what came and what to do."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dis import opmap
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

__all__ = [
    "EVALUATOR_OPTIONS",
    "PLAN_OPTIONS",
    "Blamed",
    "DatasetError",
    "KragEvalWarning",
    "Place",
    "Tallies",
    "check_options",
    "clipped",
    "muted",
    "named_options",
    "refused_by_us",
    "tallied",
    "told_apart",
    "unknown_name",
    "warn",
    "warn_of",
]

# Characters shown of a value of unknown length.
_WIDTH = 60
_MUTED: ContextVar[bool] = ContextVar("krag_eval_muted", default=False)
#: What was counted: a sentence with ``{}`` for each count -> the counts.
Tallies: TypeAlias = dict[str, tuple[int, ...]]
_TALLIES: ContextVar[Tallies | None] = ContextVar("krag_eval_tallies", default=None)


class KragEvalWarning(UserWarning):
    """A result is valid, but something about the input deserves a second look."""


def unknown_name(argument: str, name: object, allowed: Sequence[str]) -> str:
    """Word the refusal of a name: what is allowed, what came, and what was probably meant.

    >>> unknown_name("matcher", "rougel", ("rouge1", "rougeL"))
    "matcher must be one of 'rouge1', 'rougeL', got 'rougel'; did you mean 'rougeL'?"
    """
    allowed = tuple(dict.fromkeys(allowed))
    near = _near(str(name)[:_WIDTH].lower(), allowed)
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    return f"{argument} must be one of {', '.join(map(repr, allowed))}, got {clipped(name)}{meant}"


def _near(name: str, allowed: Sequence[str]) -> list[str]:
    """Return the names that were probably meant: all averages of that metric, or the nearest.

    >>> _near("recall", ("mrr", "micro_recall", "macro_recall")), _near("mmr", ("mrr", "map"))
    (['micro_recall', 'macro_recall'], ['mrr'])
    """
    averages = [other for other in allowed if other in (f"micro_{name}", f"macro_{name}")]
    folded = {other.lower(): other for other in allowed}
    return averages or [folded[one] for one in difflib.get_close_matches(name, folded, n=1)]


def clipped(value: object) -> str:
    """Represent a value of unknown length within a message.

    >>> clipped("short"), len(clipped("long" * 100))
    ("'short'", 61)
    """
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def told_apart(value: float, bound: float, form: str = ".4f") -> tuple[str, str]:
    """Write a number and the bound it is held against, with the digits it takes to tell them apart.

    Args:
        value: The number; rounded as ``form`` says where that leaves it on its side of the bound.
        bound: The bound; rounded to six digits where that is enough.
        form: How numbers of this kind are written.

    >>> told_apart(0.5, 0.8), told_apart(0.79996, 0.8), told_apart(0.3, 0.1 + 0.2)
    (('0.5000', '0.8'), ('0.79996', '0.8'), ('0.3000', '0.30000000000000004'))
    """
    value, bound = float(value), float(bound)
    for limit in (f"{bound:g}", repr(bound)):
        for number in (f"{value:{form}}", repr(value)):
            written = float(number), float(limit)
            if (written[0] < written[1], written[0] > written[1]) == (value < bound, value > bound):
                return number, limit
    return repr(value), repr(bound)


def refused_by_us(error: BaseException) -> bool:
    """Tell a refusal from a mistake: this package raised the error by a ``raise`` of its own.

    An operation that fails inside this package, or an error of other code, is a mistake.
    """
    innermost = error.__traceback__
    while innermost and innermost.tb_next:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    frame = innermost.tb_frame
    ours = frame.f_globals.get("__name__", "").partition(".")[0] == "krag_eval"
    return ours and frame.f_code.co_code[innermost.tb_lasti] == opmap["RAISE_VARARGS"]


def warn(message: str) -> None:
    """Warn on behalf of the caller outside this package, every time.

    The place is the user's line, so that filters by module find it. Python would show an equal
    message from one line only once; in a loop over retrievers that hides all but the first.
    """
    if _MUTED.get():
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        KragEvalWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry={},
    )


@contextmanager
def muted() -> Iterator[None]:
    """Keep our own warnings back meanwhile, in this thread or task alone.

    For those who look at one query at a time, where "nothing matched at all" is no news. Python's
    own ``warnings.catch_warnings`` would silence every other thread as well.
    """
    before = _MUTED.set(True)
    try:
        yield
    finally:
        _MUTED.reset(before)


def warn_of(sentence: str, *counts: int) -> None:
    """Warn of what was counted, unless all counts are 0; within :func:`tallied`, write it down.

    Args:
        sentence: What to say, with ``{}`` for each count.
        counts: Numbers that may be added up over the parts of a run.
    """
    if not any(counts):
        return
    tallies = _TALLIES.get()
    if tallies is None:
        warn(sentence.format(*counts))
        return
    before = tallies.get(sentence, (0,) * len(counts))
    tallies[sentence] = tuple(map(sum, zip(before, counts, strict=True)))


@contextmanager
def tallied() -> Iterator[Tallies]:
    """Collect what :func:`warn_of` would say, for a run in parts that says it once at the end.

    >>> with tallied() as tallies:
    ...     warn_of("{} of {} documents are blank.", 1, 5)
    ...     warn_of("{} of {} documents are blank.", 2, 5)
    >>> tallies
    {'{} of {} documents are blank.': (3, 10)}
    """
    tallies: Tallies = {}
    token = _TALLIES.set(tallies)
    try:
        yield tallies
    finally:
        _TALLIES.reset(token)


def _is_ours(module: str) -> bool:
    # A cached property calls us through functools, a context manager through contextlib.
    return module.partition(".")[0] in ("krag_eval", "functools", "contextlib")


class DatasetError(ValueError):
    """A file cannot be used; the message is one line: file, line, what is wrong, what to do."""


class Blamed(Protocol):
    """Where something stands: a line of a file, a cell of a table."""

    def error(self, problem: str) -> DatasetError:
        """Return the refusal, which names the place."""


class Place(NamedTuple):
    """A file, and a line of it (0 for the file as a whole), to blame."""

    name: str
    line: int = 0

    def error(self, problem: str) -> DatasetError:
        """Return the refusal, on one line."""
        return DatasetError(_printable(f"{self}: {problem}"))

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


def _printable(text: str) -> str:
    """Keep a message on one line, whatever the name of a file or field."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


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
