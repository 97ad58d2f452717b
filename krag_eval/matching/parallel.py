"""Work divided among processes, so that nothing shows but the time it takes.

Results, warnings and errors come back as if one process had done it all. joblib is loaded when more
than one process is asked for.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain, count, islice, takewhile
from numbers import Integral
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval._io import ForkLock, bars
from krag_eval._language import Language, _, language, speaking
from krag_eval.errors import Fix, InvalidType, KragEvalWarning, must, warn

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")

_BETWEEN_LOOKS = 0.5  # seconds
_numbers = count()


def check_n_jobs(n_jobs: object) -> int | None:
    """Return ``n_jobs`` if it says how many processes may work.

    Raises:
        InvalidType: If it is neither ``None`` nor an integer.
        InvalidInput: If it is 0.

    >>> check_n_jobs(-1)
    -1
    """
    be = "be a number of processes, -1 for one per core, or left out for this one alone"
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise must("n_jobs", be, n_jobs, kind=InvalidType)
    if n_jobs == 0:
        raise must("n_jobs", be, n_jobs)
    return int(n_jobs)


@dataclass(frozen=True)
class _Team:
    """The processes that work for one evaluator."""

    size: int
    name: str


_ALONE = _Team(1, "")

# Set for as long as one evaluator matches, and seen by that thread alone.
_team: ContextVar[_Team] = ContextVar("krag_eval_processes", default=_ALONE)


# Threads take turns: joblib ends a thread's team at work when another one wants its own.
_turns = ForkLock()


@contextmanager
def processes(n_jobs: int | None, team: str = "") -> Iterator[None]:
    """Let the work in a ``with`` block be divided among so many processes.

    Those of a team that has just worked are asked again, with what they have loaded: name it after
    the work. Other threads that want processes wait, since a process has one team.
    """
    size = _effective(n_jobs)
    with _turns if size > 1 else nullcontext():
        token = _team.set(_Team(size, team))
        try:
            yield
        finally:
            _team.reset(token)


def n_processes() -> int:
    """Return how many processes the work may be divided among; 1 means that it may not.

    >>> with processes(None):
    ...     n_processes()
    1
    """
    return _team.get().size


def in_processes(
    work: Callable[[Shared, Part], Result], shared: Shared, name: str, parts: Iterable[Part]
) -> Iterator[Result]:
    """Yield ``work(shared, part)`` for each part, in order, worked out by other processes.

    There are no more processes than parts. Warnings are given here, each once, in the order of the
    parts; what was raised there is raised here, the error of an earlier part before that of a later
    one.

    Args:
        work: A function of a module.
        shared: What every part needs. It is sent once, and each process keeps one copy.
        name: What ``shared`` is called in error messages.
        parts: The parts, made when a process is about to become free.

    Raises:
        InvalidType: If ``shared`` cannot be sent to another process.
    """
    from joblib import Parallel, delayed

    team = _team.get()
    parts = iter(parts)
    first = [*islice(parts, team.size)]
    if len(first) < 2:  # there is nothing to divide
        yield from (work(shared, part) for part in first)
        return
    sent, stopped = _sent(shared, name), threading.Event()
    wanted = takewhile(lambda _: not stopped.is_set(), chain(first, parts))
    jobs = (delayed(_answer)(work, sent, part) for part in wanted)
    answers = Parallel(
        n_jobs=len(first),
        return_as="generator",
        pre_dispatch=team.size + 1,
        # By name: neither a fork, which other threads may have left in any state, nor threads,
        # which share one interpreter, will do.
        backend="loky",
        # Another team's processes would be ended at work: loky takes a model they have to load,
        # having done without, for a leak of memory.
        initializer=_join,
        initargs=(team.name, os.getpid()),
    )(jobs)
    try:
        yield from _results(answers, name)
    except Exception:
        # What has begun is waited for: joblib would end the processes instead, and the next one
        # who asks for them may find them ending.
        stopped.set()
        deque(answers, maxlen=0)
        raise
    finally:
        with warnings.catch_warnings():
            # After an interrupt the rest of the work is not wanted; joblib says so.
            warnings.simplefilter("ignore")
            answers.close()


def _results(answers: Iterable[_Answer[Result]], name: str) -> Iterator[Result]:
    given: set[_Notice] = set()
    for answer in answers:
        for notice in answer.notices:
            if notice not in given:
                notice.give()
                given.add(notice)
        if answer.failure is not None:
            raise answer.failure.as_error(name)
        yield answer.result


@dataclass(frozen=True)
class _Sent:
    """Something pickled once, for all parts; an array, because joblib shares large ones."""

    number: int
    pickled: NDArray[np.uint8]
    language: Language  # of warnings; only the variable comes to other processes by itself


@dataclass(frozen=True)
class _Notice:
    """A warning given in another process."""

    text: str
    category: type[Warning]
    filename: str
    line: int
    fix: Fix = field(default="", compare=False)  # the text tells which it is

    @classmethod
    def of(cls, caught: warnings.WarningMessage) -> _Notice:
        """Return what can be sent of a warning."""
        message, where = caught.message, (caught.category, caught.filename, caught.lineno)
        if isinstance(message, KragEvalWarning):
            return cls(message.problem, *where, message.fix)
        return cls(str(message), *where)

    def give(self) -> None:
        """Warn here, as there."""
        if self.category is KragEvalWarning:
            warn(self.text, self.fix)
        else:
            warnings.warn_explicit(self.text, self.category, self.filename, self.line)


@dataclass(frozen=True)
class _Failure:
    """An error raised in another process."""

    pickled: bytes | None
    described: str
    traceback: str
    #: The work had not begun: what it needs could not be made from what was sent.
    on_arrival: bool

    def as_error(self, name: str) -> Exception:
        """Return the error to raise here."""
        error = _unpickled_error(self.pickled)
        if self.on_arrival:
            error = _cannot_be_sent(name, self.described)
        elif error is None:
            error = RuntimeError(self.described)
        error.add_note(f"Raised in another process (n_jobs), there:\n{self.traceback}")
        return error


@dataclass
class _Answer(Generic[Result]):
    """What came of one part."""

    result: Any = None
    failure: _Failure | None = None
    notices: list[_Notice] = field(default_factory=list)


class _Held:
    """What this process was sent last; a model in it is loaded once."""

    number: int | None = None
    value: Any = None

    def get(self, sent: _Sent) -> Any:
        """Return what was sent."""
        if self.number != sent.number:
            self.number = self.value = None  # two models may not fit beside each other
            self.value = pickle.loads(sent.pickled.data)
            self.number = sent.number
        return self.value


_held = _Held()


def _join(team: str, parent: int) -> None:
    """Begin to work for a team of this parent's; runs in another process."""
    if os.name == "posix":  # elsewhere an orphan keeps its parent's number
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    """End this process soon after the one that asked for it was killed.

    Otherwise it would first finish its work in vain, and then wait for more.
    """
    while os.getppid() == parent:
        time.sleep(_BETWEEN_LOOKS)
    os._exit(1)


def _answer(work: Callable[[Any, Any], Result], sent: _Sent, part: Any) -> _Answer[Result]:
    """Do one part of the work; runs in another process."""
    answer: _Answer[Result] = _Answer()
    arrived = False
    with speaking(sent.language), warnings.catch_warnings(record=True) as caught, bars(False):
        warnings.simplefilter("default")
        try:
            shared = _held.get(sent)
            arrived = True
            answer.result = work(shared, part)
        except Exception as error:
            answer.failure = _failure(error, on_arrival=not arrived)
    answer.notices = [*map(_Notice.of, caught)]
    return answer


def _failure(error: Exception, *, on_arrival: bool) -> _Failure:
    described = f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    return _Failure(_pickled_error(error), described, text, on_arrival)


def _pickled_error(error: Exception) -> bytes | None:
    """Pickle an error with what may be needed to make it without calling its class."""
    kind = type(error)
    for content in (error, (kind, error.args, vars(error)), (kind, (str(error),), {})):
        # Its class may want other arguments than it hands on, or it may hold what no process can
        # give away.
        with suppress(Exception):
            pickled = _pickled(content)
            if str(_unpickled_error(pickled)) == str(error):
                return pickled
    return None


def _unpickled_error(pickled: bytes | None) -> Exception | None:
    if pickled is None:
        return None
    content = pickle.loads(pickled)
    if not isinstance(content, tuple):
        return content  # type: ignore[no-any-return]
    kind, arguments, state = content
    error: Exception = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


def _pickled(value: object) -> bytes:
    """Pickle a value, functions and classes that live in no module included."""
    from joblib import wrap_non_picklable_objects

    return pickle.dumps(wrap_non_picklable_objects(value, keep_wrapper=False))


def _sent(shared: object, name: str) -> _Sent:
    try:
        pickled = np.frombuffer(_pickled(shared), np.uint8)
    except Exception as error:  # whatever an object's own way of being pickled raises
        reason = f"{type(error).__name__}: {error}"
        raise _cannot_be_sent(name, reason) from error
    return _Sent(next(_numbers), pickled, language())


def _cannot_be_sent(name: str, reason: str) -> InvalidType:
    fix = (
        "Leave it out, or let the matcher make what cannot be pickled (a model, a connection, a "
        "lock) when it is first used instead of in its constructor"
    )
    problem = f": the {name} cannot be sent to another process ({reason})"
    return InvalidType("n_jobs", problem, fix)


def _effective(n_jobs: int | None) -> int:
    """Return how many processes that makes: not more than there are cores."""
    if n_jobs is None or n_jobs == 1:
        return 1
    from joblib import cpu_count, effective_n_jobs

    wanted, cores = int(effective_n_jobs(n_jobs)), int(cpu_count())
    if wanted > cores:
        told = _(
            "There are fewer cores than the {wanted:,} processes asked for; {cores} work, one per "
            "core."
        )
        warn(told.format(wanted=n_jobs, cores=cores))
    return min(wanted, cores)
