"""Asking: every question once, each answer timed and gathered as it comes.

This room knows how one question is asked and where its answer goes. It must not know results. It
is of no use without LangChain, so LangChain loads with it.
"""

from __future__ import annotations

import inspect
import threading
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from langchain_core.runnables import Runnable, RunnableConfig

from krag_eval.results.latency import Failure
from krag_eval.retrievers.calling import Call

if TYPE_CHECKING:
    from krag_eval._io import Bar
    from krag_eval.documents import DocumentLike

__all__ = ["Answers", "Asking", "Keeper"]


class Keeper(Protocol):
    """Keeps answers beyond the life of this process."""

    def append(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Keep one answer."""

    def note(self) -> str:
        """Say what is kept."""

    def close(self) -> None:
        """Let go of the file."""


class Answers:
    """What came back so far; filled from several threads.

    Args:
        n_queries: Number of queries.
        stop_at_failure: Whether nothing more is asked once a query failed.
    """

    def __init__(self, n_queries: int, *, stop_at_failure: bool) -> None:
        self.documents: list[list[DocumentLike] | None] = [None] * n_queries
        self.seconds = np.full(n_queries, np.nan)
        self.failures: dict[int, Failure] = {}
        self.first_error: tuple[int, Exception] | None = None
        self.unkept: Exception | None = None
        self.stopped = False
        self._stop_at_failure = stop_at_failure
        self._keeper: Keeper | None = None
        self._bar: Bar | None = None
        self._lock = threading.Lock()

    def known(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Take over an answer that need not be asked for."""
        self.documents[position], self.seconds[position] = documents, seconds

    def missing(self) -> list[int]:
        """Return the positions of the queries without an answer."""
        return [position for position, one in enumerate(self.documents) if one is None]

    def gather(self, keeper: Keeper | None, bar: Bar | None) -> Self:
        """Set where answers are kept and shown; closed at the end of a ``with`` block."""
        self._keeper, self._bar = keeper, bar
        return self

    def add(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Take one answer."""
        with self._lock:
            if self._keeper is not None and not self._kept(position, documents, seconds):
                return
            self.documents[position], self.seconds[position] = documents, seconds
            self._show()

    def fail(self, position: int, error: Exception, seconds: float) -> None:
        """Take one failure."""
        with self._lock:
            self.failures[position] = Failure.of(position, error, seconds)
            if self.first_error is None:
                self.first_error = (position, error)
            self.stopped = self.stopped or self._stop_at_failure
            self._show()

    def _kept(self, position: int, documents: list[DocumentLike], seconds: float) -> bool:
        """Keep an answer; that it cannot be kept is no failure of the query, but of the run."""
        assert self._keeper is not None
        try:
            if self.unkept is None:
                self._keeper.append(position, documents, seconds)
        except Exception as error:
            self.unkept, self.stopped = error, True
        return self.unkept is None

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
            if self._keeper is not None:
                if error is not None:
                    error.add_note(self._keeper.note())
                self._keeper.close()
            self._keeper = self._bar = None


class Asking(Runnable[int, None]):
    """Asks the question at a position; LangChain's ``batch`` and ``abatch`` run it for many.

    It fires no events of its own, so callbacks see the retriever as if it were asked directly, and
    it takes the time around that one call, whatever else is running.

    Args:
        call: How the retriever is asked.
        texts: The question of each query.
        answers: Where answers go.
    """

    def __init__(self, call: Call, texts: list[str], answers: Answers) -> None:
        self._call = call
        self._texts = texts
        self._answers = answers

    def invoke(self, input: int, config: RunnableConfig | None = None, **kwargs: Any) -> None:
        """Ask one question and hand over its answer, or how it failed."""
        if self._answers.stopped:
            return
        question = self._call.input(self._texts[input])
        start = perf_counter()
        try:
            answer = self._call.runnable.invoke(question, config)
            seconds = perf_counter() - start
            documents = self._call.documents(answer)
        except Exception as error:
            self._answers.fail(input, error, perf_counter() - start)
        else:
            self._answers.add(input, documents, seconds)

    async def ainvoke(
        self, input: int, config: RunnableConfig | None = None, **kwargs: Any
    ) -> None:
        """Do as :meth:`invoke`, asking asynchronously."""
        if self._answers.stopped:
            return
        question = self._call.input(self._texts[input])
        start = perf_counter()
        try:
            answer = await self._call.runnable.ainvoke(question, config)
            if inspect.isawaitable(answer):  # of a plain function that calls an async one
                answer = await answer
            seconds = perf_counter() - start
            documents = self._call.documents(answer)
        except Exception as error:
            self._answers.fail(input, error, perf_counter() - start)
        else:
            self._answers.add(input, documents, seconds)
