"""Asking: every question once, each answer timed and gathered; and watching a function asked.

LangChain loads with this module.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, cast

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, config as configs_of

from krag_eval.asking import timeouts
from krag_eval.core import (
    Advice,
    DocumentLike,
    Fix,
    InvalidInput,
    InvalidType,
    Location,
    _,
    check_progress,
    clipped,
    errors,
    warn,
)
from krag_eval.core.documents import (
    as_document,
    by_rank,
    check_documents,
    warn_of_contradicting_scores,
)
from krag_eval.core.files import Bar
from krag_eval.core.ranking import Standing
from krag_eval.core.results.latency import Failure, RetrievalRun, Retry

if TYPE_CHECKING:
    from krag_eval.asking.checkpoint import Checkpoint

#: After so many failures and no answer, a retriever is thought to be broken.
PATIENCE = 3


@dataclass(frozen=True)
class Asking:
    """How questions are asked, as :func:`~krag_eval.evaluate_retriever` says; checked."""

    on_error: str | None = None
    max_concurrency: int | None = None
    timeout: float | None = None
    config: Any = None
    progress: bool | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_key: str | None = None

    def __post_init__(self) -> None:
        if self.on_error is not None:
            errors.one_of("on_error", self.on_error, ("raise", "record"))
        if self.max_concurrency is not None:
            errors.whole("max_concurrency", self.max_concurrency, 1)
        timeouts.check_timeout(self.timeout)
        check_progress(self.progress)
        several = self.config if isinstance(self.config, list | tuple) else [self.config]
        if not all(isinstance(one, Mapping | None) for one in several):
            be = "be a LangChain config such as {'callbacks': […]}, or a list with one per question"
            raise errors.must("config", be, self.config, kind=InvalidType)
        if not isinstance(self.checkpoint, os.PathLike | None):
            errors.text("checkpoint", self.checkpoint, 'the path of a file, such as "run.jsonl"')
        if self.checkpoint_key is not None:
            what = 'a text that names the retriever, such as "bge-m3, index of May"'
            errors.text("checkpoint_key", self.checkpoint_key, what)
            if self.checkpoint is None:
                problem = "names the retriever in a checkpoint, and there is none"
                fix = Advice("pass {} as well, or leave it out", checkpoint=...)
                raise InvalidInput("checkpoint_key", problem, fix)


#: What a query was answered with, and in how many seconds.
Answered: TypeAlias = "tuple[list[DocumentLike], float]"
#: The same of a query that may have failed.
Outcome: TypeAlias = "tuple[list[DocumentLike] | Exception, float]"


class Retrieved(list[DocumentLike]):
    """The documents of an answer, in the order in which a retriever ranks them.

    Attributes:
        standing: What stood beside them.
    """

    standing: Standing | None = None


class Answers:
    """What came back so far; filled from several threads.

    The first outcome of a query counts: an answer that comes after it was too late is dropped.

    Args:
        labels: The label of each query.
        on_error: ``"raise"``: nothing more is asked once a query failed. ``"record"``: all are.
            ``None``: all are, unless the first :data:`PATIENCE` fail and nothing was answered.
        keeper: Where answers are kept; those that are there need not be asked for.

    Attributes:
        known: Position -> answer.
        bar: Where progress is shown.
        n_lost: How many calls never returned, if these were so many that nothing more was asked.
    """

    def __init__(
        self, labels: Sequence[str | int], on_error: str | None, keeper: Checkpoint | None
    ) -> None:
        self.labels = labels
        self.known: dict[int, Answered] = {} if keeper is None else {**keeper.answers}
        self.failures: dict[int, Failure] = {}
        self.stopped = False
        self.n_lost = 0
        self.bar: Bar | None = None
        self._on_error = on_error
        self._keeper = keeper
        self._first_error: tuple[int, Exception] | None = None
        self._unkept: Exception | None = None
        self._lock = threading.Lock()

    def add_known(self, known: Mapping[int, Answered]) -> None:
        """Take over answers that need not be asked for."""
        for position, answered in known.items():
            if position not in self.known:  # or its file was deleted meanwhile
                self.known[position] = answered
                if self._keeper is not None:
                    self._keeper.append(position, *answered)

    def unasked(self) -> list[int]:
        """Return the positions of the queries with neither an answer nor a failure."""
        return [at for at in range(len(self.labels)) if not self._is_settled(at)]

    def _is_settled(self, position: int) -> bool:
        return position in self.known or position in self.failures

    def settle(self, position: int, found: list[DocumentLike] | Exception, seconds: float) -> bool:
        """Take an answer, or a failure; tell whether it is the first outcome of its query."""
        with self._lock:
            if self._is_settled(position) or self._unkept is not None:
                return False
            if isinstance(found, Exception):
                self.failures[position] = Failure.of(position, found, seconds)
                self._first_error = self._first_error or (position, found)
                self.stopped = self.stopped or self._is_hopeless()
            else:
                self._keep(position, found, seconds)
            if self.bar is not None:
                self.bar.update()
            return True

    def _keep(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        try:
            if self._keeper is not None:
                self._keeper.append(position, documents, seconds)
        except Exception as error:  # no failure of the query, but of the run
            self._unkept, self.stopped = error, True
            return
        self.known[position] = documents, seconds
        if self._on_error is None:
            self.stopped = False  # asked before it was given up, and it does answer

    def _is_hopeless(self) -> bool:
        """Tell whether this failure ends the run."""
        if self._on_error is None:
            return not self.known and len(self.failures) >= min(PATIENCE, len(self.labels))
        return self._on_error == "raise"

    def raise_what_stopped(self) -> None:
        """Raise what ended the run, if anything did; let what was not asked fail, as it was lost.

        An error says which query it was.
        """
        if self._unkept is not None:
            raise self._unkept
        problem = f"no answer: the run stopped, as {self.n_lost} calls never returned"
        for position in self.unasked() if self.n_lost and not self.stopped else ():
            self.settle(position, TimeoutError(problem), 0.0)
        if not self.stopped or self._first_error is None:
            return
        position, error = self._first_error
        if self.n_lost:
            error.add_note(f"{self.n_lost} calls never returned, so nothing more was asked.")
        n = len(self.failures)
        others = f" and on {n - 1} more, and answered none" if n > 1 else ""
        error.add_note(
            f"The retriever failed on query {clipped(self.labels[position])} (position {position})"
            f'{others}. on_error="record" asks the others and lists what failed.'
        )
        raise error

    def run(self, again: Retry) -> tuple[list[list[DocumentLike]], RetrievalRun]:
        """Return the documents of each query, none where it failed, and how it was answered.

        Warn of those that failed and were recorded.
        """
        nothing: Answered = [], np.nan
        each = [self.known.get(at, nothing) for at in range(len(self.labels))]
        failures = [self.failures[at] for at in sorted(self.failures)]
        if failures:
            told = _(
                "{n} of {queries} queries failed and count as nothing retrieved; the first is "
                "{label}: {type}: {message}"
            )
            first = failures[0]
            problem = told.format(
                n=len(failures), queries=len(self.labels), type=first.type,
                label=clipped(self.labels[first.position]), message=clipped(first.message),
            )  # fmt: skip
            fix = _("The result's failures lists them, and its retry_failed asks them again")
            warn(problem, fix)
            if self.n_lost:
                told = _("{n} calls never returned, so nothing more was asked.")
                warn(told.format(n=self.n_lost))
        warn_of_contradicting_scores(getattr(found, "standing", None) for found, _took in each)
        seconds = np.array([took for _found, took in each])
        run = RetrievalRun(seconds, tuple(failures), again if failures else None)
        return [found for found, _took in each], run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Take the last: close the bar and the file; the error that ends the run says so."""
        with self._lock:
            if self.bar is not None:
                self.bar.close()
            if self._keeper is not None:
                if error is not None:
                    error.add_note(self._keeper.note())
                self._keeper.close()
            self._keeper = self.bar = None


@dataclass(eq=False)
class _Turn:
    """Which question a thread is at, and since when."""

    at: tuple[int, float] = (-1, math.inf)


@dataclass(eq=False)
class Round:
    """Asks questions, so many at a time.

    It fires no events of its own, so callbacks see the retriever as if it were asked directly, and
    it takes the time around that one call, whatever else is running. After as many calls as are
    made at a time have never returned, nothing more is asked.

    Attributes:
        call: How the retriever is asked.
        texts: The question of each query.
        answers: Where answers go.
        timeout: The seconds that an answer may take; ``None`` for any time.
        configs: The config for each position to ask for.
    """

    call: Call
    texts: list[str]
    answers: Answers
    timeout: float | None
    configs: Mapping[int, RunnableConfig]

    def __post_init__(self) -> None:
        self._context = copy_context()
        self._left = deque(self.configs.items())
        self._n_at_once = self._left[0][1].get("max_concurrency") or timeouts.n_threads()
        self._n_workers = min(self._n_at_once, len(self._left))

    def now(self) -> None:
        """Ask in threads."""
        threads, working = timeouts.Threads(), dict[Future[None], _Turn]()
        try:
            self._hire(self._n_workers, threads, working)
            while working:
                late_at = min(turn.at[1] for turn in working.values()) + (self.timeout or math.inf)
                seconds = min(late_at - perf_counter(), timeouts.BETWEEN_LOOKS)
                for one in wait(working, max(0.0, seconds), FIRST_COMPLETED).done:
                    del working[one]
                    one.result()  # raises what is no failure of a query, as sys.exit
                self._replace_late(threads, working)
        finally:  # after Ctrl-C: what ends soon is kept, and what comes later is dropped
            self.stop()
            try:
                wait(working, timeouts.GRACE)
            finally:
                for one in working:
                    one.cancel()
                threads.shutdown(wait=False)

    def _hire(self, n: int, threads: timeouts.Threads, working: dict[Future[None], _Turn]) -> None:
        for turn in [_Turn() for _one in range(n)]:
            working[threads.submit(self._work, turn)] = turn

    def _work(self, turn: _Turn) -> None:
        """Ask one question after another, until there is none or an answer is late."""
        while (next_one := self._next()) is not None:
            turn.at = next_one[0], perf_counter()
            found = self._context.copy().run(self._asked, *next_one)
            if not self.answers.settle(next_one[0], *found):
                return

    def _replace_late(self, threads: timeouts.Threads, working: dict[Future[None], _Turn]) -> None:
        """Record calls that took too long as failures, and let other threads go on."""
        n_late, timeout = 0, self.timeout or math.inf
        for one, turn in [*working.items()]:
            position, since = turn.at
            is_late = perf_counter() - since >= timeout
            if is_late and self.answers.settle(position, timeouts.no_answer(timeout), timeout):
                n_late += 1
                one.cancel()
                del working[one]
                self._stop_if_lost(threads.n_lost)
        if not self.answers.stopped:
            self._hire(min(n_late, len(self._left)), threads, working)

    async def soon(self) -> None:
        """Ask in the event loop that runs."""
        behind = timeouts.Behind(asyncio.get_running_loop())
        work = [timeouts.outcome(self._work_soon(behind)) for _one in range(self._n_workers)]
        workers = [asyncio.create_task(one) for one in work]
        try:
            while not all(one.done() for one in workers):
                # A loop at rest hears of Ctrl-C when it wakes, in notebooks too.
                await asyncio.wait(workers, timeout=timeouts.BETWEEN_LOOKS)
            for one in workers:
                one.result().result()
        finally:
            self.stop()
            for one in workers:
                one.cancel()
            await asyncio.wait(workers, timeout=timeouts.GRACE)

    async def _work_soon(self, behind: timeouts.Behind) -> None:
        while (next_one := self._next()) is not None:
            start = perf_counter()
            try:
                call = self._asked_soon(*next_one)
                found = await timeouts.within(self.timeout, call, behind.tasks)
            except TimeoutError as error:
                self.answers.settle(next_one[0], error, perf_counter() - start)
                self._stop_if_lost(behind.n_lost)
            except BaseException:
                self.stop()
                raise
            else:
                self.answers.settle(next_one[0], *found)

    def in_loop(self) -> None:
        """Ask in an event loop of another thread."""
        try:
            timeouts.in_loop(self.timeout, self.soon, self.stop)
        except TimeoutError:  # one call holds up the loop, and so all of them
            self.answers.n_lost = self._n_workers

    def stop(self) -> None:
        """Begin nothing new."""
        self._left.clear()

    def _next(self) -> tuple[int, RunnableConfig] | None:
        with suppress(IndexError):
            return None if self.answers.stopped else self._left.popleft()
        return None

    def _stop_if_lost(self, n_lost: int) -> None:
        if n_lost >= self._n_at_once:
            self.stop()
            self.answers.n_lost = n_lost

    def _asked(self, position: int, config: RunnableConfig) -> Outcome:
        """Ask one question; return its answer, or how it failed, and the seconds that took."""
        question = self.call.input(self.texts[position])
        start = perf_counter()
        try:
            answer = self.call.runnable.invoke(question, config)
            seconds = perf_counter() - start
            return self.call.documents(answer), seconds
        except Exception as error:
            return error, perf_counter() - start

    async def _asked_soon(self, position: int, config: RunnableConfig) -> Outcome:
        question = self.call.input(self.texts[position])
        start = perf_counter()
        try:
            answer = await self.call.runnable.ainvoke(question, config)
            if inspect.isawaitable(answer):  # of a plain function that calls an async one
                answer = await answer
            seconds = perf_counter() - start
            return self.call.documents(answer), seconds
        except Exception as error:
            return error, perf_counter() - start


class NodeLike(Protocol):
    """What is asked of a LlamaIndex node, with a score or without."""

    @property
    def node_id(self) -> str:
        """Its id."""

    def get_content(self) -> str:
        """Return its text."""


class HaystackLike(Protocol):
    """What is asked of a Haystack document."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def content(self) -> str | None:
        """Its text."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Its metadata."""


#: What a retriever returns, best first; with ``output_key``, a dict that holds it.
Answer: TypeAlias = "Sequence[DocumentLike | NodeLike | HaystackLike] | Mapping[str, Any]"


class AsksWithConfig(Protocol):
    """A function that also takes the config LangChain runs it with."""

    def __call__(self, input: Any, /, *, config: RunnableConfig) -> Answer | Awaitable[Answer]:
        """Return the documents."""


#: A retriever, a chain, or a function from question to documents.
RetrieverLike: TypeAlias = (
    "Runnable[Any, Any] | Callable[[str], Answer | Awaitable[Answer]] | AsksWithConfig"
    " | Callable[[dict[str, Any]], Answer | Awaitable[Answer]]"
)


@dataclass(frozen=True)
class Call:
    """How a retriever is asked, and where in its answer the documents are.

    Attributes:
        runnable: What is asked.
        input_key: The key under which it takes the question; the question itself if ``None``.
        output_key: The key under which it returns the documents; the answer itself if ``None``.
    """

    runnable: Runnable[Any, Any]
    input_key: str | None = None
    output_key: str | None = None

    @classmethod
    def of(
        cls,
        retriever: RetrieverLike,
        input_key: str | None = None,
        output_key: str | None = None,
    ) -> Call:
        """Check a retriever and its keys.

        Args:
            retriever: What is asked.
            input_key: The key under which it takes the question.
            output_key: The key under which it returns the documents.

        Raises:
            TypeError: If the retriever cannot be asked, or a key is no text.
        """
        for name, key in (("input_key", input_key), ("output_key", output_key)):
            if not isinstance(key, str | None):
                raise errors.must(name, "be the name of a key, or None", key, kind=InvalidType)
        if input_key is None and "messages" in getattr(retriever, "channels", ()):
            problem = "is an agent: it takes messages, and not a question"
            raise InvalidType("retriever", problem, "evaluate it by evaluate_agent")
        if isinstance(retriever, Runnable):
            return cls(retriever, input_key, output_key)
        if callable(retriever) and not isinstance(retriever, type):
            return cls(RunnableLambda(cast(Any, retriever)), input_key, output_key)
        be = "be a LangChain retriever or other Runnable from question to documents, or a function"
        fix = next((fix for method, fix in _INSTEAD.items() if hasattr(retriever, method)), "")
        if isinstance(retriever, type):
            fix = "pass an instance of this class"
        raise errors.must("retriever", be, retriever, fix, InvalidType)

    def input(self, question: str) -> Any:
        """Return what the runnable is asked for a question."""
        return question if self.input_key is None else {self.input_key: question}

    def documents(self, answer: Any) -> list[DocumentLike]:
        """Return the documents in an answer, best first."""
        return documents_of(answer, self.output_key)

    def asked(self, texts: Sequence[str]) -> AbstractContextManager[None]:
        """Return what is around asking it these questions."""
        return nullcontext()

    @property
    def settings(self) -> dict[str, Any]:
        """What its answers depend on beside the retriever and the question."""
        return {"input_key": self.input_key, "output_key": self.output_key}

    @property
    def is_async_only(self) -> bool:
        """Whether it is a coroutine function, which can only be awaited."""
        return isinstance(self.runnable, RunnableLambda) and not hasattr(self.runnable, "func")


#: What is no retriever has -> what to do.
_INSTEAD = {
    "as_retriever": "pass what its as_retriever method returns",
    "retrieve": "pass its retrieve method",
    "items": "compare several retrievers by evaluate_retrievers",
}


def documents_of(answer: Any, output_key: str | None = None) -> list[DocumentLike]:
    """Return the documents in an answer; those given as dicts become LangChain documents.

    They come in the order of their ranks, if they have some. Scores do not order them: what a
    retriever returns first is what it ranks first.

    Args:
        answer: A list of documents (``Document``, ``str`` or dict), or a dict that holds one.
        output_key: The key it is under, for a dict.

    Raises:
        ValueError: If the key is missing, naming those that came.
        TypeError: If it is no list of documents.

    >>> documents_of({"context": ["At nine."], "answer": "9"}, "context")
    ['At nine.']
    """
    where, found = "retrieved documents", answer
    if output_key is not None:
        keys = [*answer] if isinstance(answer, Mapping) else None
        if keys is None or output_key not in keys:
            be = f"be a key of what the retriever returns, whose keys are {clipped(keys)}"
            kind = InvalidType if keys is None else InvalidInput
            raise errors.must("output_key", be, output_key, kind=kind)
        where, found = f"retrieved {output_key!r}", answer[output_key]
    if not isinstance(found, list | tuple):
        fix: Fix = Advice("return one even for a single document, or name its key by {}",
                          output_key=...)  # fmt: skip
        if inspect.isawaitable(found):
            fix = "it was never awaited: make the retriever an async function"
        if inspect.iscoroutine(found):
            found.close()  # or Python warns of it, somewhere else and later
        be = "return a list of documents, best first"
        raise errors.must("retriever", be, found, fix, InvalidType)
    ordered, standing = by_rank(found, check_documents(found, where), Location(where))
    # Asking a Document whether it is a Mapping would take longer than all the rest.
    documents = Retrieved(
        one if isinstance(one, str) or hasattr(one, "page_content") else as_document(one)
        for one in ordered
    )
    documents.standing = standing
    return documents


class Wrapped(Runnable[Any, Any]):
    """Runs a retriever between the two events of one; what it returns is passed on untouched.

    Args:
        watcher: A callback handler that sees it even if the config does not name it.
        call: What is run, and where its question and its documents are.
        name: What to call it; its own name if ``None``.
    """

    def __init__(self, watcher: BaseCallbackHandler, call: Call, name: str | None) -> None:
        self._watcher = watcher
        self._call = call
        self.name = name or call.runnable.get_name()

    def __call__(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do as :meth:`invoke`, so that a function stays one."""
        return self.invoke(input, config, **kwargs)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run it, and report what it returns."""
        config = configs_of.ensure_config(config)
        manager = self._watched(configs_of.get_callback_manager_for_config(config))
        run = manager.on_retriever_start(None, self._question(input), **self._named(config))
        try:
            inner = configs_of.patch_config(config, callbacks=run.get_child())
            answer = self._call.runnable.invoke(input, inner, **kwargs)
            documents = [as_document(one) for one in self._call.documents(answer)]
        except BaseException as error:
            run.on_retriever_error(error)
            raise
        run.on_retriever_end(documents)
        return answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do as :meth:`invoke`, asynchronously."""
        config = configs_of.ensure_config(config)
        manager = self._watched(configs_of.get_async_callback_manager_for_config(config))
        run = await manager.on_retriever_start(None, self._question(input), **self._named(config))
        try:
            inner = configs_of.patch_config(config, callbacks=run.get_child())
            answer = await self._call.runnable.ainvoke(input, inner, **kwargs)
            documents = [as_document(one) for one in self._call.documents(answer)]
        except BaseException as error:
            await run.on_retriever_error(error)
            raise
        await run.on_retriever_end(documents)
        return answer

    def _watched(self, manager: Any) -> Any:
        if not any(handler is self._watcher for handler in manager.handlers):
            manager.add_handler(self._watcher, inherit=True)
        return manager

    def _named(self, config: RunnableConfig) -> dict[str, Any]:
        return {"name": self.name, "run_id": config.pop("run_id", None)}

    def _question(self, given: Any) -> str:
        key = self._call.input_key
        return query_in(given.get(key, given) if isinstance(given, Mapping) else given)


def query_in(given: Any) -> str:
    """Return what was to be searched for: the ``query`` in what was given, or its only text.

    >>> query_in({"query": "hours", "language": "en"}), query_in({"q": "hours", "n": 3})
    ('hours', 'hours')
    """
    if not isinstance(given, Mapping):
        return str(given)
    texts = [text for text in given.values() if isinstance(text, str)]
    asked = given.get("query", texts[0] if len(texts) == 1 else None)
    return asked if isinstance(asked, str) else str(dict(given))
