"""Calls that may never return: limits on their time, and threads that hold nothing up.

Whoever waits here is woken by Ctrl-C, and no thread of these keeps the process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from krag_eval.core import Advice, InvalidInput, number

T = TypeVar("T")

#: Seconds between two looks at what is waited for: on Windows, Ctrl-C wakes nobody from a lock.
BETWEEN_LOOKS = 0.1
#: Seconds that calls under way have to end in, once they are not wanted any more.
GRACE = 1.0
# As many as calls are made at a time; a pool starts no more than it needs.
_MOST_THREADS = 1_000_000


def check_timeout(timeout: object) -> float | None:
    """Return the seconds that a call may take; ``None`` if it may take any time.

    Raises:
        InvalidType: If it is no number.
        InvalidInput: If it is not above 0.
    """
    if timeout is None:
        return None
    seconds = number("timeout", timeout, 0)
    if not seconds:
        fix = Advice("leave it out, and a call may take any time")
        raise InvalidInput("timeout", "must be a number of seconds above 0, got 0", fix)
    return seconds


def no_answer(timeout: float) -> TimeoutError:
    """Return the error of a call that took too long."""
    return TimeoutError(f"no answer within {timeout:g} s (timeout)")


class _Work(Future[Any]):
    """A call for a thread. Cancelled once it has begun, it is lost, and keeps its thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self.is_lost = False
        self._call = call

    def cancel(self) -> bool:
        if super().cancel():
            return True
        if not self.done() and not self.is_lost:
            self.is_lost = True
            _lost[:] = [*(work for work in _lost if not work.done()), self]
        return False

    def run(self, then: Callable[[], object]) -> None:
        """Make the call in this thread, unless it was cancelled before."""
        if self.set_running_or_notify_cancel():
            try:
                answer = self._call()
            except BaseException as error:
                self.set_exception(error)
            else:
                self.set_result(answer)
        then()


_lost: list[_Work] = []


def any_lost() -> bool:
    """Tell whether a call was given up that has not returned since."""
    return any(not one.done() for one in _lost)


class Threads(ThreadPoolExecutor):
    """Makes each call in a thread of its own, which ends with the process, whatever it is at.

    A call that is cancelled when it has begun is lost: nobody waits for it, and its place is free
    for another.

    Args:
        most: How many calls may be under way at a time.
        name: The threads' name.
    """

    # ThreadPoolExecutor in name alone, which event loops ask for: at the end of the process it
    # waits for all of its threads.
    def __init__(self, most: int = _MOST_THREADS, name: str = "krag_eval") -> None:
        super().__init__(most, name)
        self._most, self._name = most, name
        self._given: deque[_Work] = deque()
        self._at_work: list[_Work] = []
        self._guard = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a thread call a function, as soon as there is room."""
        work = _Work(partial(fn, *args, **kwargs))
        self._given.append(work)
        self._begin()
        return work

    def _begin(self) -> None:
        with self._guard:
            self._at_work = [one for one in self._at_work if not one.done()]
            while self._given and len(self._at_work) - self.n_lost < self._most:
                self._at_work.append(work := self._given.popleft())
                run = partial(work.run, self._begin)
                threading.Thread(target=run, name=self._name, daemon=True).start()

    @property
    def n_lost(self) -> int:
        """How many threads are at a call that was given up."""
        return sum(one.is_lost and not one.done() for one in self._at_work)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for all calls that are not lost."""
        for one in [*self._at_work, *self._given] if wait else ():
            while not (one.done() or one.is_lost):
                futures.wait([one], BETWEEN_LOOKS)


def in_thread(timeout: float | None, call: Callable[[], T]) -> T:
    """Return what a call returns, made in a thread of its own if it may not take any time.

    Raises:
        TimeoutError: If it takes longer than so many seconds.
    """
    if timeout is None:
        return call()
    until = time.monotonic() + timeout
    work: Future[T] = Threads().submit(contextvars.copy_context().run, call)
    try:
        while not work.done():
            left = until - time.monotonic()
            if left <= 0:
                raise no_answer(timeout)
            futures.wait([work], min(left, BETWEEN_LOOKS))
        return work.result()
    finally:
        work.cancel()


class Behind:
    """What an event loop leaves behind: calls that were cancelled and go on all the same.

    Attributes:
        tasks: The calls that :func:`within` was left with.

    Args:
        loop: The loop. If it has no pool of threads yet, it gets one of these, since at the end of
            its own asyncio waits for calls that never return.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.tasks: list[asyncio.Task[Any]] = []
        if getattr(loop, "_default_executor", "unknown") is None:
            loop.set_default_executor(Threads(n_threads(), "asyncio"))
        pool = getattr(loop, "_default_executor", None)
        self._pool = pool if isinstance(pool, Threads) else Threads()
        self._n_before = self._pool.n_lost

    @property
    def n_lost(self) -> int:
        """How many calls go on by now."""
        in_threads = self._pool.n_lost - self._n_before
        return in_threads + sum(not one.done() for one in self.tasks)


async def within(
    timeout: float | None, call: Coroutine[Any, Any, T], left: list[asyncio.Task[Any]] | None = None
) -> T:
    """Await a call as a task of its own, but not for longer than so many seconds.

    Args:
        timeout: The seconds; ``None`` for any time.
        call: What is awaited.
        left: Gains the task if it goes on although it was cancelled.

    Raises:
        TimeoutError: If it takes longer.
    """
    task = asyncio.create_task(outcome(call))
    if timeout is None:
        return (await task).result()
    try:
        await asyncio.wait([task], timeout=timeout)
        if task.done():
            return task.result().result()
        task.cancel()
        await asyncio.wait([task], timeout=GRACE)
        if left is not None and not task.done():
            left.append(task)
        raise no_answer(timeout)
    finally:
        task.cancel()


async def outcome(call: Coroutine[Any, Any, T]) -> Future[T]:
    """Await a call; return what holds its answer, or what it raised.

    To let sys.exit out of a task would end its loop as well.
    """
    done: Future[T] = Future()
    try:
        done.set_result(await call)
    except (SystemExit, KeyboardInterrupt) as error:
        done.set_exception(error)
    return done


def n_threads() -> int:
    """Return what a pool of threads, and so LangChain's batch, runs at the same time."""
    return min(32, (os.cpu_count() or 1) + 4)


# Event loops by process and level: a judge that evaluates by itself needs another one than its own.
_loops: dict[tuple[int, int], asyncio.AbstractEventLoop] = {}
_level: contextvars.ContextVar[int] = contextvars.ContextVar("krag_eval_loop_level", default=0)
_loops_guard = threading.Lock()


def in_loop(
    timeout: float | None, work: Callable[[], Coroutine[Any, Any, T]], stop: Callable[[], object]
) -> T:
    """Await something in an event loop that lasts, in a thread of its own.

    It lasts: clients keep connections from one evaluation to the next, and those of a loop that was
    closed cannot be used. It runs in a thread of its own, as in a notebook this one has a loop.

    Args:
        timeout: The seconds that a call may hold up the whole loop; ``None`` for any time.
        work: What is awaited.
        stop: Called if the wait ends early, by Ctrl-C or the timeout: lets nothing new begin. What
            is under way has some time to end, and is cancelled then.

    Raises:
        TimeoutError: If the loop was held up: a call waits without awaiting.
    """
    key, loop = _lasting_loop()
    under_way = asyncio.run_coroutine_threadsafe(_deeper(work), loop)
    try:
        heard, beat = time.monotonic(), _beat(loop)
        while not under_way.done():
            futures.wait([under_way], BETWEEN_LOOKS)
            if beat.done():
                heard, beat = time.monotonic(), _beat(loop)
            elif timeout is not None and time.monotonic() - heard > timeout + GRACE:
                held_up = "a call waits without awaiting, and holds up all others"
                raise TimeoutError(f"{no_answer(timeout)}: {held_up}")
        return under_way.result().result()
    except BaseException:
        stop()
        try:
            futures.wait([under_way], GRACE)
        finally:
            if not under_way.done():
                under_way.cancel()
                _leave(key, loop)
        raise


async def _deeper(work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
    _level.set(_level.get() + 1)
    return await outcome(work())


def _beat(loop: asyncio.AbstractEventLoop) -> Future[None]:
    """Return what is done as soon as the loop has time."""
    beat: Future[None] = Future()
    loop.call_soon_threadsafe(beat.set_result, None)
    return beat


def _lasting_loop() -> tuple[tuple[int, int], asyncio.AbstractEventLoop]:
    key = os.getpid(), _level.get()
    with _loops_guard:
        if key not in _loops:
            loop = asyncio.new_event_loop()
            loop.set_default_executor(Threads(name="krag_eval call"))
            threading.Thread(target=loop.run_forever, name="krag_eval loop", daemon=True).start()
            _loops[key] = loop
        return key, _loops[key]


def _leave(key: tuple[int, int], loop: asyncio.AbstractEventLoop) -> None:
    """Give up a loop if it is held up; the next call gets another."""
    beat = _beat(loop)
    futures.wait([beat], BETWEEN_LOOKS)
    with _loops_guard:
        if not beat.done() and _loops.get(key) is loop:
            del _loops[key]
