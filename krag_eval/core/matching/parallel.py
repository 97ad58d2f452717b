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
from importlib import import_module
from itertools import chain, count, islice, takewhile
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.errors import Fix, InvalidType, KragEvalWarning, meanwhile, must, warn
from krag_eval.core.files import ForkLock, bars
from krag_eval.core.language import Language, _, language, speaking

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


# How many processes work for one evaluator, and what they are called: set for as long as it
# matches, and seen by that thread alone.
_team: ContextVar[tuple[int, str]] = ContextVar("krag_eval_processes", default=(1, ""))


# Threads take turns: joblib ends a thread's team at work when another one wants its own.
_turns = ForkLock()


@contextmanager
def processes(n_jobs: int | None, team: str = "") -> Iterator[None]:
    """Let the work in a ``with`` block be divided among so many processes.

    Those of a team that has just worked are asked again, with what they have loaded: name it after
    the work. Other threads that want processes wait, since a process has one team.
    """
    size = _effective(n_jobs)
    with _turns if size > 1 else nullcontext(), meanwhile(_team, (size, team)):
        yield


def n_processes() -> int:
    """Return how many processes the work may be divided among; 1 means that it may not.

    >>> with processes(None):
    ...     n_processes()
    1
    """
    return _team.get()[0]


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

    size, team = _team.get()
    parts = iter(parts)
    first = [*islice(parts, size)]
    if len(first) < 2:  # there is nothing to divide
        yield from (work(shared, part) for part in first)
        return
    sent, stopped = _sent(shared, name), threading.Event()
    wanted = takewhile(lambda _: not stopped.is_set(), chain(first, parts))
    jobs = (delayed(_answer)(work, sent, part) for part in wanted)
    answers = Parallel(
        n_jobs=len(first),
        return_as="generator",
        pre_dispatch=size + 1,
        # By name: neither a fork, which other threads may have left in any state, nor threads,
        # which share one interpreter, will do.
        backend="loky",
        # Another team's processes would be ended at work: loky takes a model they have to load,
        # having done without, for a leak of memory.
        initializer=_join,
        initargs=(team, os.getpid()),
    )(jobs)
    try:
        yield from _results(answers)
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


def _results(answers: Iterable[_Answer]) -> Iterator[Any]:
    given = set()
    for answer in answers:
        for notice, fix in answer.notices:
            if notice not in given:
                given.add(notice)
                text, category, *where = notice
                if category is KragEvalWarning:
                    warn(text, fix)
                else:
                    warnings.warn_explicit(text, category, *where)
        if answer.error is not None:
            raise _unpickled_error(answer.error)
        yield answer.result


class _Sent(NamedTuple):
    """Something pickled once, for all parts; an array, because joblib shares large ones."""

    number: int
    name: str
    pickled: NDArray[np.uint8]
    language: Language  # of warnings; only the variable comes to other processes by itself


class _Answer(NamedTuple):
    """What came of one part: a result or a pickled error, and the warnings given on the way.

    A warning is its text, category, file and line, which tell which it is, and its advice.
    """

    result: Any
    error: bytes | None
    notices: list[tuple[tuple[Any, ...], Fix]]


# What this process was sent last, under its number; a model in it is loaded once.
_held: dict[int, Any] = {}


def _received(sent: _Sent) -> Any:
    if sent.number not in _held:
        _held.clear()  # two models may not fit beside each other
        try:
            _held[sent.number] = pickle.loads(sent.pickled.data)
        except Exception as error:
            raise _cannot_be_sent(sent.name, error) from error
    return _held[sent.number]


def _join(team: str, parent: int) -> None:
    """Begin to work for a team of this parent's; runs in another process."""
    # Errors and advice are sent by name only if the module that they say they are of is loaded.
    import_module(KragEvalWarning.__module__)
    if os.name == "posix":  # elsewhere an orphan keeps its parent's number
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    """End this process soon after the one that asked for it was killed.

    Otherwise it would first finish its work in vain, and then wait for more.
    """
    while os.getppid() == parent:
        time.sleep(_BETWEEN_LOOKS)
    os._exit(1)


def _answer(work: Callable[[Any, Any], Any], sent: _Sent, part: Any) -> _Answer:
    """Do one part of the work; runs in another process."""
    result, failure = None, None
    with speaking(sent.language), warnings.catch_warnings(record=True) as caught, bars(False):
        warnings.simplefilter("default")
        try:
            result = work(_received(sent), part)
        except Exception as error:
            failure = _pickled_error(error)
    return _Answer(result, failure, [*map(_notice, caught)])


def _notice(caught: warnings.WarningMessage) -> tuple[tuple[Any, ...], Fix]:
    message, where = caught.message, (caught.category, caught.filename, caught.lineno)
    if isinstance(message, KragEvalWarning):
        return (message.problem, *where), message.fix
    return (str(message), *where), ""


def _pickled_error(error: Exception) -> bytes:
    """Pickle an error with what may be needed to make it without calling its class."""
    kind, text = type(error), "".join(traceback.format_exception(error))
    note = f"Raised in another process (n_jobs), there:\n{text}"
    error.add_note(note)
    bare = (str(error),), {"__notes__": [note]}
    for content in (error, (kind, error.args, vars(error)), (kind, *bare)):
        # Its class may want other arguments than it hands on, or it may hold what no process can
        # give away.
        with suppress(Exception):
            pickled = _pickled(content)
            if str(_unpickled_error(pickled)) == str(error):
                return pickled
    return pickle.dumps((RuntimeError, (f"{kind.__name__}: {error}",), bare[1]))


def _unpickled_error(pickled: bytes) -> Exception:
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
        raise _cannot_be_sent(name, error) from error
    return _Sent(next(_numbers), name, pickled, language())


def _cannot_be_sent(name: str, error: Exception) -> InvalidType:
    reason = f"{type(error).__name__}: {error}"
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
