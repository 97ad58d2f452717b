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
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, cast

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, config as configs_of

from krag_eval import errors
from krag_eval._io import check_progress
from krag_eval._language import _
from krag_eval.documents import DocumentLike, as_document, check_documents
from krag_eval.errors import Advice, Fix, InvalidInput, InvalidType, clipped, warn
from krag_eval.matching import timeouts
from krag_eval.results.latency import Failure

if TYPE_CHECKING:
    from krag_eval._io import Bar
    from krag_eval.retrievers.checkpoint import Checkpoint

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


class Answers:
    """What came back so far; filled from several threads.

    Args:
        n_queries: Number of queries.
        on_error: ``"raise"``: nothing more is asked once a query failed. ``"record"``: all are.
            ``None``: all are, unless the first :data:`PATIENCE` fail and nothing was answered.

    Attributes:
        n_lost: How many calls never returned, if these were so many that nothing more was asked.
    """

    def __init__(self, n_queries: int, *, on_error: str | None) -> None:
        self.documents: list[list[DocumentLike] | None] = [None] * n_queries
        self.seconds = np.full(n_queries, np.nan)
        self.failures: dict[int, Failure] = {}
        self.first_error: tuple[int, Exception] | None = None
        self.unkept: Exception | None = None
        self.stopped = False
        self.any_known = False
        self.n_lost = 0
        self._on_error = on_error
        self._keeper: Checkpoint | None = None
        self._bar: Bar | None = None
        self._lock = threading.Lock()

    def known(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Take over an answer that need not be asked for."""
        self.documents[position], self.seconds[position] = documents, seconds
        self.any_known = True

    def missing(self) -> list[int]:
        """Return the positions of the queries without an answer."""
        return [position for position, one in enumerate(self.documents) if one is None]

    def unasked(self) -> list[int]:
        """Return the positions of the queries with neither an answer nor a failure."""
        return [position for position in self.missing() if position not in self.failures]

    def fail_unasked(self) -> None:
        """Take failures of what was not asked, as too many calls never returned."""
        problem = f"no answer: the run stopped, as {self.n_lost} calls never returned"
        for position in self.unasked() if self.n_lost and not self.stopped else ():
            self.fail(position, TimeoutError(problem), 0.0)

    def raise_what_stopped(self, labels: Sequence[str | int]) -> None:
        """Raise what ended the run, if anything did, saying which query it was."""
        if self.unkept is not None:
            raise self.unkept
        if not self.stopped or self.first_error is None:
            return
        position, error = self.first_error
        if self.n_lost:
            error.add_note(f"{self.n_lost} calls never returned, so nothing more was asked.")
        n = len(self.failures)
        others = f" and on {n - 1} more, and answered none" if n > 1 else ""
        error.add_note(
            f"The retriever failed on query {clipped(labels[position])} (position {position})"
            f'{others}. on_error="record" asks the others and lists what failed.'
        )
        raise error

    def warn_of_failures(self, labels: Sequence[str | int]) -> None:
        """Warn of the queries that failed and were recorded."""
        if not self.failures:
            return
        position, failure = min(self.failures.items())
        told = _(
            "{n} of {queries} queries failed and count as nothing retrieved; the first is {label}: "
            "{type}: {message}"
        )
        problem = told.format(
            n=len(self.failures), queries=len(labels), label=clipped(labels[position]),
            type=failure.type, message=clipped(failure.message),
        )  # fmt: skip
        warn(problem, _("The result's failures lists them, and its retry_failed asks them again"))
        if self.n_lost:
            told = _("{n} calls never returned, so nothing more was asked.")
            warn(told.format(n=self.n_lost))

    def gather(self, keeper: Checkpoint | None, bar: Bar | None) -> Self:
        """Set where answers are kept and shown; closed at the end of a ``with`` block."""
        self._keeper, self._bar = keeper, bar
        return self

    def add(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Take one answer."""
        with self._lock:
            try:
                if self._keeper is not None and self.unkept is None:
                    self._keeper.append(position, documents, seconds)
            except Exception as error:  # no failure of the query, but of the run
                self.unkept, self.stopped = error, True
            if self.unkept is not None:
                return
            self.known(position, documents, seconds)
            if self._on_error is None:
                self.stopped = False  # asked before it was given up, and it does answer
            if self._bar is not None:
                self._bar.update()

    def fail(self, position: int, error: Exception, seconds: float) -> None:
        """Take one failure."""
        with self._lock:
            self.failures[position] = Failure.of(position, error, seconds)
            if self.first_error is None:
                self.first_error = (position, error)
            self.stopped = self.stopped or self._is_hopeless()
            if self._bar is not None:
                self._bar.update()

    def _is_hopeless(self) -> bool:
        """Tell whether this failure ends the run."""
        if self._on_error is None:
            enough = min(PATIENCE, len(self.documents))
            return not self.any_known and len(self.failures) >= enough
        return self._on_error == "raise"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
            if self._keeper is not None:
                if error is not None:
                    error.add_note(self._keeper.note())
                self._keeper.close()
            self._keeper = self._bar = None


class _Turn:
    """Which question a thread is at. It ends once: by the answer, or because that is late."""

    def __init__(self) -> None:
        self.position = -1
        self._since = math.inf
        self._context = copy_context()
        self._guard = threading.Lock()

    def begin(self, position: int) -> Context:
        """Begin with a question; return what to ask it in."""
        self.position, self._since = position, perf_counter()
        return self._context.copy()

    def seconds_left(self, timeout: float | None) -> float:
        """Return in how many seconds the answer will be late."""
        return math.inf if timeout is None else self._since + timeout - perf_counter()

    def end(self, timeout: float = -math.inf) -> bool:
        """End it if it is older than that; tell whether this ended it."""
        with self._guard:
            ends = self._since < math.inf and perf_counter() - self._since >= timeout
            if ends:
                self._since = math.inf
            return ends


class Round:
    """Asks questions, so many at a time.

    It fires no events of its own, so callbacks see the retriever as if it were asked directly, and
    it takes the time around that one call, whatever else is running. After as many calls as are
    made at a time have never returned, nothing more is asked.

    Args:
        call: How the retriever is asked.
        texts: The question of each query.
        answers: Where answers go.
        timeout: The seconds that an answer may take; ``None`` for any time.
        n_at_once: How many questions may be asked at the same time.
    """

    def __init__(
        self,
        call: Call,
        texts: list[str],
        answers: Answers,
        timeout: float | None,
        n_at_once: int,
    ) -> None:
        self._call = call
        self._texts = texts
        self._answers = answers
        self._timeout = timeout
        self.n_at_once = n_at_once
        self._left: deque[tuple[int, RunnableConfig]] = deque()

    def now(self, configs: Mapping[int, RunnableConfig]) -> None:
        """Ask the questions at these positions, each with its config, in threads."""
        self._left = deque(configs.items())
        threads = timeouts.Threads()
        turns = [_Turn() for _ in range(min(self.n_at_once, len(configs)))]
        working: dict[Future[None], _Turn] = {threads.submit(self._work, one): one for one in turns}
        try:
            while working:
                late_in = min(turn.seconds_left(self._timeout) for turn in working.values())
                seconds = max(0.0, min(late_in, timeouts.BETWEEN_LOOKS))
                for one in wait(working, seconds, FIRST_COMPLETED).done:
                    del working[one]
                    one.result()  # raises what is no failure of a query, as sys.exit
                self._replace_late(working, threads)
        finally:  # after Ctrl-C: what ends soon is kept, and what comes later is dropped
            self.stop()
            try:
                wait(working, timeouts.GRACE)
            finally:
                for one, turn in working.items():
                    turn.end()
                    one.cancel()
                threads.shutdown(wait=False)

    async def soon(self, configs: Mapping[int, RunnableConfig]) -> None:
        """Do as :meth:`now`, asking asynchronously."""
        self._left = deque(configs.items())
        behind = timeouts.Behind(asyncio.get_running_loop())
        n_workers = min(self.n_at_once, len(configs))
        work = [timeouts.outcome(self._work_soon(behind)) for _ in range(n_workers)]
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

    def stop(self) -> None:
        """Begin nothing new."""
        self._left.clear()

    def _work(self, turn: _Turn) -> None:
        """Ask one question after another, until there is none or an answer is late."""
        while (next_one := self._next()) is not None:
            context = turn.begin(next_one[0])
            hand_over = context.run(self._asked, *next_one)
            if not turn.end():
                return
            hand_over()

    async def _work_soon(self, behind: timeouts.Behind) -> None:
        while (next_one := self._next()) is not None:
            start = perf_counter()
            try:
                call = self._asked_soon(*next_one)
                hand_over = await timeouts.within(self._timeout, call, behind.tasks)
            except TimeoutError as error:
                self._answers.fail(next_one[0], error, perf_counter() - start)
                self._stop_if_lost(behind.n_lost)
            except BaseException:
                self.stop()
                raise
            else:
                hand_over()

    def _next(self) -> tuple[int, RunnableConfig] | None:
        with suppress(IndexError):
            return None if self._answers.stopped else self._left.popleft()
        return None

    def _replace_late(self, working: dict[Future[None], _Turn], threads: timeouts.Threads) -> None:
        """Record calls that took too long as failures, and let other threads go on."""
        seconds = self._timeout or 0.0
        turns = working.items() if seconds else ()
        late = [one for one, turn in turns if turn.end(seconds)]
        for one in late:
            one.cancel()
            position = working.pop(one).position
            self._answers.fail(position, timeouts.no_answer(seconds), seconds)
            self._stop_if_lost(threads.n_lost)
        for turn in [_Turn() for _one in late[: len(self._left)]]:
            if not self._answers.stopped:
                working[threads.submit(self._work, turn)] = turn

    def _stop_if_lost(self, n_lost: int) -> None:
        if n_lost >= self.n_at_once:
            self.stop()
            self._answers.n_lost = n_lost

    def _asked(self, position: int, config: RunnableConfig) -> Callable[[], None]:
        """Ask one question; return what hands over its answer, or how it failed."""
        question = self._call.input(self._texts[position])
        start = perf_counter()
        try:
            answer = self._call.runnable.invoke(question, config)
            seconds = perf_counter() - start
            return partial(self._answers.add, position, self._call.documents(answer), seconds)
        except Exception as error:
            return partial(self._answers.fail, position, error, perf_counter() - start)

    async def _asked_soon(self, position: int, config: RunnableConfig) -> Callable[[], None]:
        question = self._call.input(self._texts[position])
        start = perf_counter()
        try:
            answer = await self._call.runnable.ainvoke(question, config)
            if inspect.isawaitable(answer):  # of a plain function that calls an async one
                answer = await answer
            seconds = perf_counter() - start
            return partial(self._answers.add, position, self._call.documents(answer), seconds)
        except Exception as error:
            return partial(self._answers.fail, position, error, perf_counter() - start)


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


class AsksByText(Protocol):
    """A function from question to documents, sync or async."""

    def __call__(self, question: str, /) -> Answer | Awaitable[Answer]:
        """Return the documents."""


class AsksByDict(Protocol):
    """A function for ``input_key``: from a dict with the question to documents."""

    def __call__(self, inputs: dict[str, Any], /) -> Answer | Awaitable[Answer]:
        """Return the documents."""


class AsksWithConfig(Protocol):
    """A function that also takes the config LangChain runs it with."""

    def __call__(self, input: Any, /, *, config: RunnableConfig) -> Answer | Awaitable[Answer]:
        """Return the documents."""


#: A retriever, a chain, or a function from question to documents.
RetrieverLike: TypeAlias = "Runnable[Any, Any] | AsksByText | AsksByDict | AsksWithConfig"

_RETRIEVERS = (
    "a LangChain retriever or other Runnable from question to documents, or a function, sync or "
    "async"
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
                raise InvalidType(name, f"must be the name of a key, or None, got {clipped(key)}")
        if input_key is None and "messages" in getattr(retriever, "channels", ()):
            problem = "is an agent: it takes messages, and not a question"
            raise InvalidType("retriever", problem, "evaluate it by evaluate_agent")
        return cls(runnable_of(retriever), input_key, output_key)

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


def runnable_of(retriever: RetrieverLike) -> Runnable[Any, Any]:
    """Return a retriever as something LangChain can run; a function is wrapped.

    Raises:
        TypeError: If it cannot be asked, with what to pass instead.
    """
    if isinstance(retriever, Runnable):
        return retriever
    if callable(retriever) and not isinstance(retriever, type):
        return RunnableLambda(cast(Any, retriever))
    came = retriever.__name__ if isinstance(retriever, type) else kind_of(retriever)
    raise InvalidType("retriever", f"must be {_RETRIEVERS}, got {came}", _instead(retriever))


def _instead(retriever: object) -> str:
    if isinstance(retriever, type):
        return "pass an instance of this class"
    if hasattr(retriever, "as_retriever"):
        return "pass what its as_retriever method returns"
    if hasattr(retriever, "retrieve"):
        return "pass its retrieve method"
    if isinstance(retriever, Mapping):
        return "compare several retrievers by evaluate_retrievers"
    return ""


def documents_of(answer: Any, output_key: str | None = None) -> list[DocumentLike]:
    """Return the documents in an answer; those given as dicts become LangChain documents.

    Args:
        answer: A list of documents (``Document``, ``str`` or dict), or a dict that holds one.
        output_key: The key it is under, for a dict.

    Raises:
        ValueError: If the key is missing, naming those that came.
        TypeError: If it is no list of documents.

    >>> documents_of({"context": ["At nine."], "answer": "9"}, "context")
    ['At nine.']
    """
    found = answer if output_key is None else _under(answer, output_key)
    if not isinstance(found, list | tuple):
        raise _no_list(found, output_key)
    where = "retrieved documents" if output_key is None else f"retrieved {output_key!r}"
    found = check_documents(found, where)
    # Asking a Document whether it is a Mapping would take longer than all the rest.
    return [
        one if isinstance(one, str) or hasattr(one, "page_content") else as_document(one)
        for one in found
    ]


def _under(answer: Any, key: str) -> Any:
    if not isinstance(answer, Mapping):
        problem = f"is for retrievers that return a dict; this one returned {kind_of(answer)}"
        raise InvalidType("output_key", problem, "leave it out")
    if key not in answer:
        keys = ", ".join(map(repr, answer)) or "no key at all"
        problem = f"must be a key of what the retriever returns, {keys}, got {key!r}"
        raise InvalidInput("output_key", problem)
    return answer[key]


def _no_list(found: Any, output_key: str | None) -> InvalidType:
    if inspect.iscoroutine(found):
        found.close()  # or Python warns of it, somewhere else and later
    came = kind_of(found)
    if isinstance(found, Mapping) and "page_content" not in found:
        came += f" with {', '.join(map(repr, found)) or 'no key at all'}"
    under = "" if output_key is None else f" under {output_key!r}"
    problem = f"must return a list of documents{under}, best first, got {came}"
    return InvalidType("retriever", problem, _how_to_return(found))


def _how_to_return(found: Any) -> Fix:
    if isinstance(found, Mapping) and "page_content" not in found:
        return Advice("name the key of the documents by {}", output_key=...)
    if isinstance(found, str | Mapping) or hasattr(found, "page_content"):
        return "return a list, even for one document"
    if inspect.isawaitable(found):
        return "it was never awaited: make the retriever an async function"
    return "return a list of its items" if hasattr(found, "__iter__") else ""


def kind_of(value: object) -> str:
    """Say what came instead of something else.

    >>> kind_of(None), kind_of(3)
    ('None', 'a int')
    """
    return "None" if value is None else f"a {type(value).__name__}"


class Wrapped(Runnable[Any, Any]):
    """Runs a retriever between the two events of one; what it returns is passed on untouched.

    Args:
        watcher: A callback handler that sees it even if the config does not name it.
        retriever: What is run.
        name: What to call it; its own name if ``None``.
        input_key: The key of the question in its input, if that is a dict.
        output_key: The key of the documents in its answer, if that is a dict.
    """

    def __init__(
        self,
        watcher: BaseCallbackHandler,
        retriever: RetrieverLike,
        name: str | None,
        *,
        input_key: str | None,
        output_key: str | None,
    ) -> None:
        self._watcher = watcher
        self._call = Call.of(retriever, input_key, output_key)
        self.name = name or self._call.runnable.get_name()

    def __call__(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do as :meth:`invoke`, so that a function stays one."""
        return self.invoke(input, config, **kwargs)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run it, and report what it returns."""
        config = configs_of.ensure_config(config)
        run = self._watched(configs_of.get_callback_manager_for_config(config)).on_retriever_start(
            None, self._question(input), name=self.name, run_id=config.pop("run_id", None)
        )
        try:
            inner = configs_of.patch_config(config, callbacks=run.get_child())
            answer = self._call.runnable.invoke(input, inner, **kwargs)
            documents = self._documents(answer)
        except BaseException as error:
            run.on_retriever_error(error)
            raise
        run.on_retriever_end(documents)
        return answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do as :meth:`invoke`, asynchronously."""
        config = configs_of.ensure_config(config)
        manager = self._watched(configs_of.get_async_callback_manager_for_config(config))
        run = await manager.on_retriever_start(
            None, self._question(input), name=self.name, run_id=config.pop("run_id", None)
        )
        try:
            inner = configs_of.patch_config(config, callbacks=run.get_child())
            answer = await self._call.runnable.ainvoke(input, inner, **kwargs)
            documents = self._documents(answer)
        except BaseException as error:
            await run.on_retriever_error(error)
            raise
        await run.on_retriever_end(documents)
        return answer

    def _watched(self, manager: Any) -> Any:
        if not any(handler is self._watcher for handler in manager.handlers):
            manager.add_handler(self._watcher, inherit=True)
        return manager

    def _question(self, given: Any) -> str:
        key = self._call.input_key
        if isinstance(given, Mapping):
            texts = [text for text in given.values() if isinstance(text, str)]
            if key is not None and isinstance(given.get(key), str):
                return str(given[key])
            if key is None and len(texts) == 1:
                return texts[0]
        return given if isinstance(given, str) else str(given)

    def _documents(self, answer: Any) -> list[Document]:
        return [as_document(one) for one in self._call.documents(answer)]
