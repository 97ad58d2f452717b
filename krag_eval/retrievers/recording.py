"""The recorder: watches the retrievers inside a chain through LangChain's callbacks.

LangChain loads with this module.
"""

from __future__ import annotations

import asyncio
import difflib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from krag_eval._errors import (
    EVALUATOR_OPTIONS,
    Advice,
    InvalidInput,
    InvalidType,
    check_options,
    clipped,
    one_of,
    warn,
)
from krag_eval.evaluator import OfflineRetrievalEvaluator
from krag_eval.results.latency import Failure, RetrievalRun
from krag_eval.retrievers.asking import Wrapped
from krag_eval.scoring.cutoffs import DEFAULT_CUTOFFS, Cutoffs, Length

if TYPE_CHECKING:
    from krag_eval.documents import DocumentLike
    from krag_eval.matching.base import Matcher
    from krag_eval.results.result import EvaluationResult
    from krag_eval.scoring.metrics import Metric

__all__ = [
    "CALLS",
    "Question",
    "RetrievalRecorder",
    "Seen",
    "aligned",
    "chosen_name",
    "question_of",
    "seen_of",
]


class RetrievalRecorder(BaseCallbackHandler):
    """Records what retrievers return inside any chain, for evaluation afterwards.

    Pass it in the config of each call; the chain stays as it is. It works for ``invoke``,
    ``batch`` and ``stream`` and their async twins, with chains in chains and with several
    retrievers, and from many threads.

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
        k: Cutoffs = DEFAULT_CUTOFFS,
        matcher: str | Matcher = "text",
        *,
        retriever: str | None = None,
        calls: Literal["one", "all", "first", "last"] = "one",
        input_key: str | None = None,
        budget: int | Iterable[int] | None = None,
        length: Length = "words",
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
            budget: How much may fit, or several such numbers; see
                :meth:`OfflineRetrievalEvaluator.evaluate
                <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
            length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
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
        one_of("calls", calls, CALLS)
        with self._lock:
            questions = list(self._questions.values())
            running = sum(bool(one.running) for one in questions)
        if running:
            raise InvalidInput(
                "",
                f"{running} of {len(questions)} questions are still being answered, or were "
                "interrupted",
                "wait for them, or clear the recorder and ask again",
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
        result = evaluator.evaluate(k, budget=budget, length=length, metrics=metrics)
        return replace(result, retrieval=_run_of(seen))

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
            "nothing retrieved",
            "See the failures of the result",
        )


#: Which calls count if a retriever was called several times for one question: there must be one;
#: all of them, one after the other; the first; the last.
CALLS = ("one", "all", "first", "last")
_NAMED = 5


@dataclass(eq=False)
class Seen:
    """One call of one retriever.

    Attributes:
        name: The retriever's name.
        query: What it was asked, which a chain may have rewritten.
        outermost: Whether no other retriever called it.
        documents: What it returned; ``None`` if it failed or is still at it.
        error: What it raised.
        seconds: How long it took; NaN until it ended.
    """

    name: str
    query: str
    outermost: bool
    documents: list[DocumentLike] | None = None
    error: BaseException | None = None
    seconds: float = float("nan")


@dataclass(eq=False)
class Question:
    """One call of the outermost chain (or retriever), and the retrievers seen in it.

    Attributes:
        inputs: The texts it was given: one without a name, or several by their names.
        strand: The thread and task it was started in.
        after_others: Whether all that started before it had ended.
        running: Its runs that have not ended.
        seen: The calls of retrievers, in the order they started.
    """

    inputs: str | dict[str, str] | None
    strand: tuple[int, object]
    after_others: bool
    running: set[UUID] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)


def chosen_name(questions: Sequence[Question], retriever: str | None) -> str:
    """Return the retriever that is meant: the one named, or the only outermost one.

    Raises:
        ValueError: If none was seen, none has that name, or there are several.
    """
    everyone = list(dict.fromkeys(seen.name for one in questions for seen in one.seen))
    if not everyone:
        raise InvalidInput(
            "retriever",
            ": none was seen",
            "Pass the recorder among the callbacks in the config of each call. A plain function or "
            "RunnableLambda fires no retriever events: wrap it by the recorder's wrap method",
        )
    if retriever is not None:
        return one_of("retriever", retriever, everyone)
    outermost = {seen.name for one in questions for seen in one.seen if seen.outermost}
    if len(outermost) > 1:
        raise InvalidInput(
            "retriever",
            f": several were seen ({', '.join(map(repr, everyone))})",
            Advice("name the one to evaluate by {}", retriever=...),
        )
    return outermost.pop()


def seen_of(question: Question, name: str, asked: str, calls: str) -> Seen | None:
    """Return what that retriever did for a question; ``None`` if it was not called.

    Args:
        question: What was recorded.
        name: The retriever.
        asked: The question, for the message.
        calls: What to do if it was called more than once; see :data:`CALLS`.

    Raises:
        ValueError: If it was called more than once, and only one call is expected.
    """
    found = [seen for seen in question.seen if seen.name == name]
    outer = [seen for seen in found if seen.outermost]
    if len(outer) == 1:
        return outer[0]  # what it called by the same name is part of its own doing
    if len(found) > 1 and calls == "one":
        raise InvalidInput(
            "retriever",
            f": {name!r} was called {len(found)} times for the question {clipped(asked)}",
            Advice(
                "If these are several retrievers, give each a run_name in its config; if another "
                "retriever calls it, name that one by {}; if an agent asked several times, choose "
                'the calls that count by {} (or "first" or "last")',
                retriever=...,
                calls="all",
            ),
        )
    if len(found) > 1 and calls == "all":
        return _joined(found)
    return found[-1 if calls == "last" else 0] if found else None


def _joined(calls: Sequence[Seen]) -> Seen:
    """Join calls into one: their documents in the order of the calls, their times added up."""
    returned = [call for call in calls if call.documents is not None]
    if not returned:
        return calls[0]
    documents = [document for call in returned for document in call.documents or []]
    return replace(returned[0], documents=documents, seconds=sum(call.seconds for call in returned))


def question_of(question: Question, input_key: str | None) -> str:
    """Return the question that was asked, as the user wrote it.

    The chain's input if it is a text; the text under ``input_key``; the only text among its
    inputs; the one of them that a retriever was asked. A chain whose input holds no text is known
    by what its first retriever was asked.

    Raises:
        ValueError: If its input has several texts, or none under ``input_key``.

    >>> question_of(Question({"q": "When?", "language": ""}, (0, None), True), None)
    'When?'
    """
    given = question.inputs
    if isinstance(given, str):
        return given
    texts = {key: text for key, text in (given or {}).items() if text}
    if input_key is not None and given is not None:
        if input_key not in texts:
            keys = ", ".join(map(repr, texts)) or "no text at all"
            problem = f"must be a key of the chain's input, {keys}, got {input_key!r}"
            raise InvalidInput("input_key", problem)
        return texts[input_key]
    asked = [seen.query for seen in question.seen]
    if len(texts) > 1:
        same = set(texts.values()) & set(asked)
        if len(same) != 1:
            raise InvalidInput(
                "input_key",
                f": the chain was given several texts ({', '.join(map(repr, texts))}), so it is "
                "not clear which is the question",
                Advice("name its key, such as {}", input_key=next(iter(texts))),
            )
        return same.pop()
    if not texts and not asked:
        raise InvalidInput(
            "",
            "a chain was recorded that was given no text and called no retriever, so its question "
            "is unknown",
            "record only the chain that retrieves",
        )
    return next(iter(texts.values()), None) or asked[0]


def aligned(
    ground_truth: Any, questions: Sequence[Question], asked: Sequence[str]
) -> tuple[list[str | int], list[Any], list[Question]]:
    """Return labels, ground truth and questions in one order.

    Args:
        ground_truth: A list in the order the questions were asked, or a dict by question.
        questions: What was recorded, in the order they started.
        asked: Their texts.

    Raises:
        TypeError: If the ground truth is neither, or that of a question is no list.
        ValueError: If the two do not fit together, or a list is given where no order is known.
    """
    if isinstance(ground_truth, Mapping):
        _check_lists(ground_truth.items())
        _check_names(ground_truth, asked)
        places = {text: place for place, text in enumerate(asked)}
        return (
            list(ground_truth),
            list(ground_truth.values()),
            [questions[places[text]] for text in ground_truth],
        )
    if isinstance(ground_truth, str | bytes) or not isinstance(ground_truth, Sequence):
        raise InvalidType(
            "ground_truth",
            "must be a list with one list of documents per question, in the order the questions "
            "were asked, or a dict from question to documents, got a "
            f"{type(ground_truth).__name__}",
        )
    if len(ground_truth) != len(questions):
        raise InvalidInput(
            "ground_truth",
            f"has {len(ground_truth)} entries, and {len(questions)} questions were asked (the "
            f"first is {clipped(asked[0])})",
            "clear the recorder to forget earlier ones, or pass a dict by question",
        )
    if not _in_order(questions):
        raise InvalidInput(
            "ground_truth",
            ": the questions were asked at the same time, so their order is not known",
            "pass a dict from question to documents",
        )
    _check_lists(enumerate(ground_truth))
    return _labels(asked), list(ground_truth), list(questions)


def _check_lists(ground_truth: Iterable[tuple[object, object]]) -> None:
    """Refuse one document where a list of them belongs, and name the question."""
    for question, documents in ground_truth:
        single = isinstance(documents, str | bytes | Mapping) or hasattr(documents, "page_content")
        if single or not hasattr(documents, "__iter__"):
            raise InvalidType(
                "ground_truth",
                f"must be a list of documents, got {clipped(documents)}",
                "write a list, even for one document",
                within=f"[{clipped(question)}]",
            )


def _in_order(questions: Sequence[Question]) -> bool:
    """Tell whether the order in which they started is the order in which they were asked.

    Within one thread and task the program decides it. Threads overtake each other before they
    start, so of several nothing is known; tasks of one thread do if they run at the same time.
    """
    thread = questions[0].strand[0]
    return all(
        one.strand[0] == thread and (one.after_others or one.strand == before.strand)
        for before, one in zip([questions[0], *questions], questions, strict=False)
    )


def _check_names(ground_truth: Mapping[Any, Any], asked: Sequence[str]) -> None:
    twice = [text for text, n in Counter(asked).items() if n > 1]
    if twice:
        raise InvalidInput(
            "ground_truth",
            f"by question: {_some(twice)} asked more than once, so it is not clear which answer to "
            "evaluate",
            "clear the recorder before asking again, or pass a list in the order of the questions",
        )
    unknown = [text for text in asked if text not in ground_truth]
    if unknown:
        texts = [text for text in ground_truth if isinstance(text, str)]
        near = difflib.get_close_matches(unknown[0], texts, n=1)
        meant = f"did you mean {clipped(near[0])}?" if near else ""
        problem = f"lacks what was asked: {_some(unknown)} not in it"
        raise InvalidInput("ground_truth", problem, meant)
    unasked = [text for text in ground_truth if text not in set(asked)]
    if unasked:
        raise InvalidInput(
            "ground_truth",
            f"has questions that were never asked: {_some(unasked)} not recorded",
            "ask them too, or leave them out",
        )


def _some(texts: Sequence[object]) -> str:
    named = ", ".join(map(clipped, texts[:_NAMED]))
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return f"{named}{more} {'was' if len(texts) == 1 else 'were'}"


def _labels(asked: Sequence[str]) -> list[str | int]:
    if len(set(asked)) == len(asked):
        return list(asked)
    warn(
        f"{len(asked)} questions were asked, {len(set(asked))} of them different, so all are "
        "labelled by their positions."
    )
    return list(range(len(asked)))
