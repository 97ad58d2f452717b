"""Errors and warnings as values: which argument, what is wrong with it, and what to do about it.

::

    ValueError   <- InvalidInput <- DatasetError
    TypeError    <- InvalidType
    ImportError  <- MissingPackage
    UserWarning  <- KragEvalWarning

All but the last are a :class:`Refusal`, which keeps the parts of its message as attributes. A
reader adds the place in a file, the shell names options instead of arguments, and no code takes a
message apart. An exception that is neither a ``Refusal`` nor an ``OSError`` is a bug, or comes from
the user's code.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias, TypeVar

#: What users catch, and what it holds.
__all__ = [
    "Advice",
    "DatasetError",
    "InvalidInput",
    "InvalidType",
    "KragEvalWarning",
    "MissingPackage",
    "Place",
    "Refusal",
]

Value = TypeVar("Value")

# Characters shown of a value of unknown length.
_WIDTH = 60
# A cached property calls us through functools, a context manager through contextlib.
_NO_CALLERS = ("krag_eval", "functools", "contextlib")
_MUTED: ContextVar[bool] = ContextVar("krag_eval_muted", default=False)
#: What was counted: a sentence with ``{}`` for each count -> the counts.
Tallies: TypeAlias = dict[str, tuple[int, ...]]
_TALLIES: ContextVar[Tallies | None] = ContextVar("krag_eval_tallies", default=None)


class Advice:
    """What to do, with settings that Python and the shell spell differently.

    Args:
        text: The advice, with ``{}`` for each setting.
        pairs: Settings as name and value, where one is named twice.
        settings: Settings by name; ``...`` stands for a value of the user's own, a tuple for
            several values, with a ``{}`` each.

    >>> str(Advice("pass {} to start anew", resume=False))
    'pass resume=False to start anew'
    >>> str(Advice("write them with {}", per_query=...))
    'write them with per_query=…'
    >>> str(Advice("try {} or {}", matcher=("contains", "coverage")))
    'try matcher="contains" or matcher="coverage"'
    """

    def __init__(self, text: str, /, *pairs: tuple[str, object], **settings: object) -> None:
        self.text = text
        self.settings = (*pairs, *settings.items())

    def worded(self, spell: Callable[[str, object], str]) -> str:
        """Return the advice with each setting as ``spell(name, value)`` writes it."""
        several = (
            (name, one)
            for name, value in self.settings
            for one in (value if isinstance(value, tuple) else (value,))
        )
        return self.text.format(*(spell(name, one) for name, one in several))

    def __str__(self) -> str:
        return self.worded(_in_python)

    def __repr__(self) -> str:
        return f"Advice({str(self)!r})"


def _in_python(name: str, value: object) -> str:
    if value is ...:
        return f"{name}=…"
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"


Fix: TypeAlias = "str | Advice"


class Place(NamedTuple):
    """A file, and a line or a row of it.

    Attributes:
        name: What to call the file, or the table.
        line: The line, from 1; 0 for the file as a whole.
        row: The row of a table; ``None`` if it is not about one.
        counted: How rows are counted, such as ``"from 0"``.
        column: The column of a table; ``""`` if it is not about one.
    """

    name: str
    line: int = 0
    row: int | None = None
    counted: str = "from 0"
    column: str = ""

    def error(self, problem: str, fix: Fix = "") -> DatasetError:
        """Return the refusal of what stands there."""
        return DatasetError(self.column, problem, fix, place=self)

    def __str__(self) -> str:
        file = f"{self.name}:{self.line}" if self.line else self.name
        return file if self.row is None else f"{file}: row {self.row} ({self.counted})"


class Refusal(Exception):
    """Input that cannot be used, in parts.

    The message is the place, then argument and problem, then the fix. A problem that is a sentence
    of its own begins with a colon; neither problem nor fix ends with a full stop.

    Attributes:
        argument: The argument it is about, ``""`` if it is about none.
        problem: What is wrong: what is allowed, and what came.
        fix: What to do; ``""`` if the problem says it all.
        query: The query concerned, as a position in the argument, from 0; ``None`` if there is
            none.
        within: The place within the query, such as ``"[1]"``.
        place: The file concerned, and the line or row of it; ``None`` if it is not about a file.

    >>> error = InvalidInput("k", "must be a whole number of at least 1, got 0")
    >>> error.argument, str(error)
    ('k', 'k must be a whole number of at least 1, got 0.')
    >>> str(InvalidInput("queries", ": two are called 'a'", "name them apart"))
    "queries: two are called 'a'; name them apart."
    >>> str(InvalidType("actual_docs", "must be a document, got None", query=3, within="[1]"))
    'actual_docs[3][1] must be a document, got None.'
    """

    def __init__(
        self,
        argument: str,
        problem: str,
        fix: Fix = "",
        *,
        query: int | None = None,
        within: str = "",
        place: Place | None = None,
    ) -> None:
        super().__init__(argument, problem, fix)  # what pickle makes it of again
        self.argument = argument
        self.problem = problem
        self.fix = fix
        self.query = query
        self.within = within
        self.place = place

    @property
    def file(self) -> str | None:
        """The file concerned; ``None`` if it is not about one."""
        return None if self.place is None else self.place.name

    @property
    def line(self) -> int | None:
        """The line concerned, from 1; ``None`` if it is not about one."""
        return (self.place.line or None) if self.place else None

    def at(self, place: Place) -> DatasetError:
        """Return the same refusal, of what stands at a place in a file."""
        argument = self.argument.removesuffix("_docs")
        return DatasetError(argument, self.problem, self.fix, within=self.within, place=place)

    def worded(self, argument: str | None = None, fix: str | None = None) -> str:
        """Return the message, with another name for the argument or other words for the fix."""
        subject = self.argument if argument is None else argument
        if self.query is not None:
            subject += f"[{self.query}]"
        subject += self.within
        space = "" if self.problem.startswith(":") or not subject else " "
        said = f"{subject}{space}{self.problem}".removeprefix(": ")
        advice = str(self.fix) if fix is None else fix
        said = sentence(said, advice)
        return said if self.place is None else one_line(f"{self.place}: {said}")

    __str__ = worded


def sentence(problem: str, fix: str) -> str:
    """Join a problem and a fix; one that begins with a capital, or Hangul, is its own sentence.

    >>> sentence("k must be 1", "pass 1"), sentence("k must be 1", "Pass 1"), sentence("No k", "")
    ('k must be 1; pass 1.', 'k must be 1. Pass 1.', 'No k.')
    """
    parts = [problem, fix]
    if fix and not (fix[0].isupper() or "가" <= fix[0] <= "힣"):
        parts = [f"{problem.removesuffix('.')}; {fix}"]
    closed = (".", "!", "?", "…")
    return " ".join(one if one.endswith(closed) else f"{one}." for one in parts if one)


def one_line(text: str) -> str:
    r"""Keep a message on one line of printable characters.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


class InvalidInput(Refusal, ValueError):
    """An argument has a value that cannot be used."""


class InvalidType(Refusal, TypeError):
    """An argument is of a type that cannot be used."""


class DatasetError(InvalidInput):
    """A file cannot be used; the message is one line: file, line, what is wrong, what to do."""


@contextmanager
def called(ours: str, theirs: str) -> Iterator[None]:
    """Let what is refused of another function's argument be about the one it came in."""
    try:
        yield
    except Refusal as error:
        if error.argument == theirs and error.place is None:
            error.argument = ours
        raise


def must(
    argument: str, be: str, got: object, fix: Fix = "", kind: type[Refusal] | None = None
) -> Refusal:
    """Return the refusal of a value: what the argument must be, and what came.

    It is an :class:`InvalidInput`, unless another kind is named.

    >>> str(must("k", "be a whole number of at least 1", 0))
    'k must be a whole number of at least 1, got 0.'
    """
    return (kind or InvalidInput)(argument, f"must {be}, got {clipped(got)}", fix)


class MissingPackage(Refusal, ImportError):
    """A package that an extra installs is missing; the fix is the line for pip."""


class KragEvalWarning(UserWarning):
    """A result is valid, but something about the input deserves a second look.

    Attributes:
        problem: What that is.
        fix: What to do about it; ``""`` if the problem says it all.
        at_once: Whether it tells of what begins now, such as a long wait.
    """

    def __init__(self, problem: str, fix: Fix = "", *, at_once: bool = False) -> None:
        super().__init__(problem, fix)
        self.problem = problem
        self.fix = fix
        self.at_once = at_once

    def worded(self, fix: str | None = None) -> str:
        """Return the message, with other words for the fix."""
        advice = str(self.fix) if fix is None else fix
        return sentence(self.problem, advice) if advice else self.problem

    __str__ = worded


# Users know them by their public address, which tracebacks and files of pickles show.
for _public in (Advice, Place, Refusal, InvalidInput, InvalidType, DatasetError, MissingPackage,
                KragEvalWarning):  # fmt: skip
    _public.__module__ = "krag_eval.errors"


# Conditions that many arguments must meet. A wrong type is an ``InvalidType``, a wrong value an
# ``InvalidInput``.


def whole(argument: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number within bounds.

    Raises:
        InvalidType: If it is of another type; a bool is not a number.
        InvalidInput: If it is out of bounds.

    >>> whole("seed", 3, 0)
    3
    >>> whole("seed", -1, 0)
    Traceback (most recent call last):
    krag_eval.errors.InvalidInput: seed must be a whole number of at least 0, got -1.
    """
    allowed = f"a whole number of at least {least}"
    if most is not None:
        allowed = f"a whole number from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidType(argument, f"must be {allowed}, got {clipped(value)}")
    if int(value) < least or (most is not None and int(value) > most):
        raise InvalidInput(argument, f"must be {allowed}, got {clipped(value)}")
    return int(value)


def number(argument: str, value: object, low: float, high: float = float("inf")) -> float:
    """Return a finite number within bounds, both of them allowed.

    Raises:
        InvalidType: If it is of another type; a bool is not a number.
        InvalidInput: If it is out of bounds, or NaN.
    """
    allowed = f"a number from {low:g} to {high:g}"
    if high == float("inf"):
        allowed = f"a finite number of at least {low:g}"
    # numpy's bool registers as no Real, numpy's floats do.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidType(argument, f"must be {allowed}, got {clipped(value)}")
    if not low <= float(value) <= high or float(value) == float("inf"):
        raise InvalidInput(argument, f"must be {allowed}, got {clipped(value)}")
    return float(value)


def one_of(argument: str, value: object, allowed: Sequence[str]) -> str:
    """Return a name that is among those allowed.

    Raises:
        InvalidType: If it is not text.
        InvalidInput: If it is another name; the problem says which was probably meant.
    """
    if not isinstance(value, str):
        names = ", ".join(map(repr, allowed))
        raise InvalidType(argument, f"must be one of {names}, got {clipped(value)}")
    if value not in allowed:
        raise unknown(argument, value, allowed)
    return value


def boolean(argument: str, value: object) -> bool:
    """Return a bool.

    Raises:
        InvalidType: If it is anything else, such as ``"no"``.
    """
    if not isinstance(value, bool):
        raise InvalidType(argument, f"must be True or False, got {clipped(value)}")
    return value


def text(argument: str, value: object, what: str = "text") -> str:
    """Return a text that is not empty.

    Raises:
        InvalidType: If it is anything else.
        InvalidInput: If it is empty.
    """
    if not isinstance(value, str):
        raise InvalidType(argument, f"must be {what}, got {clipped(value)}")
    if not value:
        raise InvalidInput(argument, f"must be {what}, got an empty text")
    return value


def unknown(argument: str, name: object, allowed: Sequence[str], part: str = "") -> InvalidInput:
    """Return the refusal of a name: what is allowed, what came, and what was probably meant.

    Args:
        argument: The argument.
        name: What came.
        allowed: The names that are allowed.
        part: The part of the argument that is named, such as ``"a field"``.

    >>> str(unknown("matcher", "rougel", ("rouge1", "rougeL")))
    "matcher must be one of 'rouge1', 'rougeL', got 'rougel'; did you mean 'rougeL'?"
    """
    allowed = tuple(dict.fromkeys(allowed))
    near = _near(str(name)[:_WIDTH].lower(), allowed)
    meant = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    names = ", ".join(map(repr, allowed))
    subject = f": {part} " if part else ""
    return InvalidInput(argument, f"{subject}must be one of {names}, got {clipped(name)}", meant)


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


def warn(problem: str, fix: Fix = "", *, at_once: bool = False) -> None:
    """Warn on behalf of the caller outside this package, every time.

    The place is the user's line, so that filters by module find it. Python would show an equal
    message from one line only once; in a loop over retrievers that hides all but the first.

    Args:
        problem: What deserves a second look: a sentence.
        fix: What to do about it.
        at_once: Whether it tells of what begins now, so that a shell does not keep it for the end.
    """
    if _MUTED.get():
        return
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NO_CALLERS:
        frame = frame.f_back
    message = KragEvalWarning(problem, fix, at_once=at_once)
    line, module = frame.f_lineno, frame.f_globals.get("__name__", "<unknown>")
    where: dict[str, Any] = {"filename": frame.f_code.co_filename, "lineno": line, "module": module}
    warnings.warn_explicit(message, KragEvalWarning, **where, registry={})


@contextmanager
def meanwhile(variable: ContextVar[Any], value: Value) -> Iterator[Value]:
    """Give a variable a value within the block, in this thread or task alone."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def muted() -> AbstractContextManager[bool]:
    """Keep our own warnings back meanwhile, in this thread or task alone.

    For those who look at one query at a time, where "nothing matched at all" is normal. Python's
    own ``warnings.catch_warnings`` would silence every other thread as well.
    """
    return meanwhile(_MUTED, True)


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


def is_tallied() -> bool:
    """Tell whether what is counted is written down, for the parts of a run."""
    return _TALLIES.get() is not None


def tallied() -> AbstractContextManager[Tallies]:
    """Collect what :func:`warn_of` would say, for a run in parts that says it once at the end.

    >>> with tallied() as tallies:
    ...     warn_of("{} of {} documents are blank.", 1, 5)
    ...     warn_of("{} of {} documents are blank.", 2, 5)
    >>> tallies
    {'{} of {} documents are blank.': (3, 10)}
    """
    return meanwhile(_TALLIES, {})


_LONGEST_NAME, _MOST_NAMES = 40, 10


def kind_of(value: Any) -> str:
    """Name a value by its kind, in JSON's words, for a message.

    >>> kind_of(None), kind_of(["a"]), kind_of(7), kind_of(float("nan"))
    ('null', 'a list', 'the number 7', 'null')
    """
    is_nan = isinstance(value, float) and value != value
    if value is None or is_nan or type(value).__name__ in ("NAType", "NaTType"):
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        with suppress(ValueError):  # more digits than Python writes
            return f"the number {str(value)[:_LONGEST_NAME]}"
        return "a number"
    kinds: dict[type, str] = {str: "a string", list: "a list", tuple: "a list", dict: "an object"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def names_of(content: Iterable[Any]) -> str:
    """List the keys of an object, for a message.

    >>> names_of({"id": 1, "text": "a"})
    '"id", "text"'
    """
    names = [f'"{str(name)[:_LONGEST_NAME]}"' for name in content]
    more = len(names) - _MOST_NAMES
    return (", ".join(names[:_MOST_NAMES]) or "none") + (f" and {more} more" if more > 0 else "")
