"""The recorder: watches the retrievers inside a chain through LangChain's callbacks.

This room knows callbacks: runs, their parents, and what starts and ends them. It must not know
metrics. Its class derives from LangChain's, so LangChain loads with it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler

from krag_eval._errors import EVALUATOR_OPTIONS, check_options, unknown_name, warn
from krag_eval.evaluator import OfflineRetrievalEvaluator
from krag_eval.results.latency import Failure, RetrievalRun
from krag_eval.retrievers.recordings import (
    CALLS,
    Question,
    Seen,
    aligned,
    chosen_name,
    question_of,
    seen_of,
)

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import Runnable

    from krag_eval.matching.base import Matcher
    from krag_eval.results.result import EvaluationResult
    from krag_eval.scoring.metrics import Metric

__all__ = ["RetrievalRecorder"]


class RetrievalRecorder(BaseCallbackHandler):
    """Records what retrievers return inside any chain, for evaluation afterwards.

    Pass it in the config of each call; the chain stays as it is. It works for ``invoke``,
    ``batch`` and ``stream`` and their async twins, with chains in chains and with several
    retrievers, and from many threads at once.

    A question is one call of the outermost chain. It is known by that chain's own input, also
    where the chain rewrote it before asking the retriever.

    Retrievers are known by the name LangChain gives them: their class, or the ``run_name`` of
    their config, ``retriever.with_config(run_name="dense")``. **A plain function or
    ``RunnableLambda`` fires no retriever events**, so nothing is seen of it; put :meth:`wrap`
    around it.

    >>> from langchain_core.runnables import RunnableLambda
    >>> recorder = RetrievalRecorder()
    >>> search = recorder.wrap(lambda question: ["At nine.", "At the corner."], name="search")
    >>> chain = search | RunnableLambda(lambda documents: f"According to {documents[0]!r} …")
    >>> chain.invoke("When does it open?", config={"callbacks": [recorder]})
    "According to 'At nine.' …"
    >>> recorder.evaluate({"When does it open?": ["At nine."]}, k=1).to_dict()["hit_rate@1"]
    1.0
    """

    # In the thread of the chain, and so in the order things happen.
    run_inline = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget everything recorded, so that the next questions are the first."""
        with self._lock:
            self._questions: dict[UUID, Question] = {}
            # Of runs that have not ended: the key of their question, whether a retriever is
            # around them, and what is seen of them, if they are retrievers.
            self._runs: dict[UUID, tuple[UUID, bool, tuple[Seen, float] | None]] = {}

    @property
    def names(self) -> list[str]:
        """The names of the retrievers seen, in the order of their first call."""
        with self._lock:
            seen = [seen.name for one in self._questions.values() for seen in one.seen]
        return list(dict.fromkeys(seen))

    @property
    def n_questions(self) -> int:
        """How many questions were asked since the recorder was made or cleared."""
        return len(self._questions)

    def evaluate(
        self,
        ground_truth: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]],
        k: int | Iterable[int | None] | None = (1, 3, 5, 10),
        matcher: str | Matcher = "text",
        *,
        retriever: str | None = None,
        calls: Literal["one", "all", "first", "last"] = "one",
        input_key: str | None = None,
        metrics: Iterable[str | Metric] | None = None,
        **options: Any,
    ) -> EvaluationResult:
        """Evaluate what was recorded.

        Args:
            ground_truth: What should come back: a dict from question to documents, or a list with
                one list of documents per question, in the order the questions were asked. After
                questions were asked at the same time (from threads, by ``abatch`` or by a
                retriever's ``batch``) only a dict says which is which.
            k: A cutoff or several; ``None`` stands for all retrieved documents.
            matcher: What makes a retrieved document a match.
            retriever: Name of the retriever to evaluate, one of :attr:`names`; may be left out if
                there is only one that no other retriever calls.
            calls: What counts if it was called several times for a question, as an agent does:
                ``"all"`` its documents, one call after the other (calls that failed add nothing),
                those of the ``"first"`` or the ``"last"`` call; by default that is refused.
            input_key: The key of the question in the chain's input, if that holds several texts.
            metrics: Metrics to compute; all built-in ones if not given.
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`.

        Returns:
            The result, with latencies and failures as seen: a retriever that raised counts as
            nothing retrieved for that question, and so, with a warning, does one that was not
            called.

        Raises:
            TypeError: If the ground truth is neither a list nor a dict.
            ValueError: If nothing was recorded, questions are still being answered, or it is not
                clear which retriever, which call or which question is meant; the message says
                what settles it.
        """
        check_options(RetrievalRecorder.evaluate, options, EVALUATOR_OPTIONS)
        if calls not in CALLS:
            raise ValueError(unknown_name("calls", calls, CALLS))
        with self._lock:
            questions = list(self._questions.values())
            running = sum(bool(one.running) for one in questions)
        if running:
            raise ValueError(
                f"{running} of {len(questions)} questions are still being answered, or were "
                "interrupted; wait for them, or clear() the recorder and ask again."
            )
        name = chosen_name(questions, retriever)
        asked = [question_of(one, input_key) for one in questions]
        labels, actual, ordered = aligned(ground_truth, questions, asked)
        seen = [
            seen_of(one, name, str(label), calls)
            for one, label in zip(ordered, labels, strict=True)
        ]
        _warn_of_uncalled(seen, name)
        predicted = [call.documents or [] if call is not None else [] for call in seen]
        evaluator = OfflineRetrievalEvaluator(
            actual, predicted, matcher, **{"queries": labels, **options}
        )
        return replace(evaluator.evaluate(k, metrics=metrics), retrieval=_run_of(seen))

    def wrap(
        self,
        retriever: Runnable[Any, Any] | Callable[..., Any],
        name: str | None = None,
        *,
        input_key: str | None = None,
        output_key: str | None = None,
    ) -> Runnable[Any, Any]:
        """Return a retriever that fires retriever events, and otherwise does what it did.

        For plain functions and ``RunnableLambda``, of which LangChain reports no documents. What
        it returns is passed on untouched, and it may be called like a function. This recorder sees
        it even if it is not in the config of the call.

        Args:
            retriever: A Runnable or a function, sync or async, that returns documents.
            name: What to call it; its own name if not given.
            input_key: The key of the question in its input, if that is a dict.
            output_key: The key of the documents in what it returns, if that is a dict.

        Raises:
            TypeError: If it cannot be run; when it is, if it returns no list of documents.
        """
        from krag_eval.retrievers.wrapping import Wrapped

        return Wrapped(self, retriever, name, input_key=input_key, output_key=output_key)

    # What LangChain calls.

    @property
    def ignore_llm(self) -> bool:
        """Models do not retrieve."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """Models do not retrieve."""
        return True

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **details: Any,
    ) -> None:
        """Note whose part a run is."""
        with self._lock:
            self._enter(run_id, parent_run_id, inputs)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **details: Any) -> None:
        """Note that a run is over, and what it was given, if that is known only now."""
        with self._lock:
            if "inputs" in details and run_id in self._questions:  # streamed input
                self._questions[run_id].inputs = _texts_in(details["inputs"])
            self._leave(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **details: Any) -> None:
        """Note that a run is over."""
        self.on_chain_end(None, run_id=run_id, **details)

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: Any = None,
        **details: Any,
    ) -> None:
        """Note whose part a tool is; an agent's retriever is called by one."""
        with self._lock:
            self._enter(run_id, parent_run_id, input_str if inputs is None else inputs)

    def on_tool_end(self, output: Any, *, run_id: UUID, **details: Any) -> None:
        """Note that a tool is done."""
        with self._lock:
            self._leave(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **details: Any) -> None:
        """Note that a tool is done."""
        with self._lock:
            self._leave(run_id)

    def on_retriever_start(
        self,
        serialized: Any,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **details: Any,
    ) -> None:
        """Note that a retriever is asked, by whom, and since when."""
        name = details.get("name") or (serialized or {}).get("name") or "retriever"
        with self._lock:
            key, within, _ = self._enter(run_id, parent_run_id, query)
            seen = Seen(name, query if isinstance(query, str) else str(query), not within)
            self._questions[key].seen.append(seen)
            self._runs[run_id] = (key, True, (seen, perf_counter()))

    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, **details: Any
    ) -> None:
        """Keep what a retriever returned."""
        self._close(run_id, documents=list(documents))

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **details: Any) -> None:
        """Keep what a retriever raised."""
        self._close(run_id, error=error)

    def _close(self, run_id: UUID, **outcome: Any) -> None:
        end = perf_counter()
        with self._lock:
            _, _, timed = self._runs.get(run_id, (None, False, None))
            if timed is not None:
                seen, start = timed
                seen.seconds = end - start
                seen.documents, seen.error = outcome.get("documents"), outcome.get("error")
            self._leave(run_id)

    def _enter(
        self, run_id: UUID, parent: UUID | None, inputs: Any
    ) -> tuple[UUID, bool, tuple[Seen, float] | None]:
        """Note a run under its question, which begins with the first run that has no parent here.

        A recorder that hangs on a part of a chain does not see the run around it; its parts
        belong together by the parent they name.
        """
        known = self._runs.get(parent) if parent is not None else None
        key, within = (known[0], known[1]) if known is not None else (parent or run_id, False)
        if key not in self._questions:
            alone = not self._runs
            self._questions[key] = Question(_texts_in(inputs), _strand(), after_others=alone)
        self._questions[key].running.add(run_id)
        self._runs[run_id] = (key, within, None)
        return self._runs[run_id]

    def _leave(self, run_id: UUID) -> None:
        key, _, _ = self._runs.pop(run_id, (None, False, None))
        question = self._questions.get(key) if key is not None else None
        if question is None:
            return
        question.running.discard(run_id)
        if key == run_id:
            # What an interrupt tore out of the chain never says that it ended.
            for left in question.running:
                self._runs.pop(left, None)
            question.running.clear()


def _texts_in(inputs: Any) -> str | dict[str, str] | None:
    """Keep the texts a chain was given; nothing else is needed of its input."""
    if isinstance(inputs, str):
        return inputs
    if not isinstance(inputs, Mapping):
        return None
    return {key: text for key, text in inputs.items() if isinstance(text, str) and text}


def _strand() -> tuple[int, object]:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), None if task is None else id(task)


def _run_of(calls: Sequence[Seen | None]) -> RetrievalRun:
    answered = [call is not None and call.documents is not None for call in calls]
    failures = [
        Failure.of(position, call.error or RuntimeError("it never returned"), call.seconds)
        for position, call in enumerate(calls)
        if call is not None and call.documents is None
    ]
    seconds = [
        call.seconds if call is not None and known else np.nan
        for call, known in zip(calls, answered, strict=True)
    ]
    return RetrievalRun(np.array(seconds, np.float64), tuple(failures))


def _warn_of_uncalled(calls: Sequence[Seen | None], name: str) -> None:
    uncalled = sum(call is None for call in calls)
    failed = sum(call is not None and call.documents is None for call in calls)
    if uncalled:
        warn(
            f"The retriever {name!r} was not called for {uncalled} of {len(calls)} questions; "
            "they count as nothing retrieved."
        )
    if failed:
        warn(
            f"The retriever {name!r} failed for {failed} of {len(calls)} questions; they count as "
            "nothing retrieved, and result.failures lists them."
        )
