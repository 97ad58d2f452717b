"""The recorder: watches the retrievers inside a chain or agent through LangChain's callbacks.

LangChain loads with this module; pandas only for a table.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias
from uuid import UUID, uuid4

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langchain_core.tracers.context import register_configure_hook

from krag_eval.asking.asking import Answer, Call, Wrapped, query_in
from krag_eval.asking.evaluating import Questions, Rows, labels_of
from krag_eval.asking.messages import returned_in
from krag_eval.core import (
    DEFAULT_CUTOFFS,
    EVALUATOR_OPTIONS,
    LISTS,
    Advice,
    Cutoffs,
    InvalidInput,
    InvalidType,
    Length,
    Location,
    Refusal,
    _,
    called,
    check_options,
    clipped,
    documents as docs,
    errors,
    id_of,
    text_of,
    warn,
)
from krag_eval.core.documents import checked_tags
from krag_eval.core.results.latency import Failure, RetrievalRun
from krag_eval.core.scoring.cutoffs import lengths_of
from krag_eval.evaluator import OfflineRetrievalEvaluator
from krag_eval.loading.cells import documents_in
from krag_eval.loading.vocabularies import KNOWN, as_row

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.core import DocumentLike, Matcher, Metric
    from krag_eval.result import EvaluationResult

#: The key of the question in what a chain is given, or a function from that to the question.
QuestionKey: TypeAlias = "str | Callable[[Any], str]"


class RetrievalRecorder(BaseCallbackHandler):
    """Records what retrievers return inside any chain or agent, for evaluation afterwards.

    ``with RetrievalRecorder() as recorder:`` records all that runs in the block, also in the
    threads LangChain starts for it; of blocks within blocks, the innermost records. Elsewhere, and
    in threads of your own, pass it in the config of each call. The chain stays as it is. It works
    for ``invoke``, ``batch`` and ``stream`` and their async twins, with chains in chains and with
    several retrievers, and from many threads.

    A question is one call of the outermost chain or agent. It is known by what that was given, also
    where something else was searched for: the last message of a human, if it was given
    ``{"messages": […]}`` or a list of messages, and otherwise its own input.

    Retrievers are known by the name LangChain gives them: their class, or the ``run_name`` of
    their config, ``retriever.with_config(run_name="dense")``. A tool that returns documents as its
    artifact (``response_format="content_and_artifact"``) and asks no retriever is one itself, by
    the name of the tool; so is one that returns them as JSON or as content blocks, as tools of MCP
    do. **A plain function or ``RunnableLambda`` fires no retriever events**, so
    nothing is seen of it; put :meth:`wrap` around it.

    >>> from langchain_core.runnables import RunnableLambda
    >>> recorder = RetrievalRecorder()
    >>> search = recorder.wrap(lambda question: ["At nine.", "At the corner."], name="search")
    >>> chain = search | RunnableLambda(lambda documents: f"According to {documents[0]!r} …")
    >>> with recorder:
    ...     chain.invoke("When does it open?")
    "According to 'At nine.' …"
    >>> recorder
    RetrievalRecorder(1 question, 1 call of 'search')
    >>> recorder.evaluate({"When does it open?": ["At nine."]}, k=1).to_dict()["hit_rate@1"]
    1.0
    """

    # In the thread of the chain, and so in the order things happen.
    run_inline = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Per thread and task, the blocks it is in.
        self._entered = defaultdict[object, list[Token[BaseCallbackHandler | None]]](list)
        self.clear()

    def __enter__(self) -> Self:
        self._entered[strand()].append(_RECORDING.set(self))
        return self

    def __exit__(self, *_error: object) -> None:
        _RECORDING.reset(self._entered[strand()].pop())

    def __repr__(self) -> str:
        asked = self._settled()
        names = Counter(seen.name for one in asked for seen in one.searches)
        counts = [f"{len(asked)} question{'s' * (len(asked) != 1)}"]
        counts += [f"{n} call{'s' * (n > 1)} of {name!r}" for name, n in names.items()]
        return f"RetrievalRecorder({', '.join(counts if names else [*counts, 'no calls'])})"

    def clear(self) -> None:
        """Forget everything recorded, so that the next questions are the first."""
        with self._lock:
            self._questions: dict[UUID, Question] = {}
            self._runs: dict[UUID, Seen] = {}  # those that have not ended

    @property
    def names(self) -> list[str]:
        """The names of the retrievers seen, in the order of their first call."""
        return list(dict.fromkeys(seen.name for one in self._settled() for seen in one.seen))

    @property
    def n_questions(self) -> int:
        """How many questions were asked since the recorder was made or cleared."""
        return len(self._questions)

    @property
    def records(self) -> pd.DataFrame:
        """What was recorded: one row per call of a retriever that no other retriever made.

        Columns: ``question``, as :meth:`evaluate` knows it (``None`` if it takes ``input_key`` to
        tell); ``call``, its number among the calls for this question, from 1; ``retriever``;
        ``searched_for``, what the retriever was asked; ``n_documents`` and ``words`` it returned;
        ``seconds`` it took, NaN if unknown; ``error``, ``None`` if there was none.

        >>> from langchain_core.runnables import RunnableLambda
        >>> recorder = RetrievalRecorder()
        >>> search = recorder.wrap(lambda query: ["At nine."], name="search")
        >>> with recorder:
        ...     _ = (RunnableLambda(lambda asked: f"{asked} hours") | search).invoke("opening")
        >>> recorder.records[["question", "call", "searched_for", "n_documents", "words"]]
          question  call   searched_for  n_documents  words
        0  opening     1  opening hours            1      2
        """
        import pandas as pd

        rows = [
            (_name_of(one), number, seen.name, seen.query, len(seen.documents or ()),
             sum(_words_in(seen.documents or ())), seen.seconds, seen.told_error)
            for one in self._settled()
            for number, seen in enumerate(one.searches, 1)
        ]  # fmt: skip
        # As objects first, for None is no NaN.
        return pd.DataFrame(rows, columns=[*_COLUMNS], dtype=object).astype(_COLUMNS)

    def until_found(
        self, result: EvaluationResult, *, retriever: str | None = None
    ) -> pd.DataFrame:
        """Return how many calls it took, and how many words were read, until all was found.

        Args:
            result: What :meth:`evaluate` made of these records with ``calls="union"``, or
                :func:`~krag_eval.evaluate_agent`.
            retriever: The name it was evaluated for, if one was given.

        Returns:
            One row per question, in the order of the result: ``calls`` made and ``words`` returned
            in all; ``calls_until_found`` and ``words_until_found``, up to and with the document
            that completed the ground truth, documents that came again included; ``<NA>`` if
            something was never found, or there was nothing to find.

        Raises:
            ValueError: If the result rests on other questions or documents than were recorded.

        >>> from langchain_core.runnables import RunnableLambda
        >>> recorder = RetrievalRecorder()
        >>> pages = {"hours": ["At nine."], "place": ["At nine.", "At the corner."]}
        >>> search = recorder.wrap(pages.__getitem__, name="search")
        >>> ask = RunnableLambda(lambda question: [search("hours"), search("place")])
        >>> with recorder:
        ...     _ = ask.invoke("Where is it?")
        >>> result = recorder.evaluate({"Where is it?": ["At the corner."]}, calls="union")
        >>> recorder.until_found(result).T
        query              Where is it?
        calls                         2
        words                         7
        calls_until_found             2
        words_until_found             7
        """
        import pandas as pd

        questions = self._settled(retriever)
        name = chosen_name(questions, retriever)
        ordered = _of_result(questions, result)
        first = result.first_ranks()
        ranks = first.groupby(level="query", sort=False).agg("max")
        ranks[first.isna().groupby(level="query", sort=False).any()] = pd.NA
        n_retrieved = result.evidence.relevance.n_retrieved if result.evidence else ()
        rows = []
        for label, question, n in zip(result.labels, ordered, n_retrieved, strict=True):
            found = calls_of(question, name)
            arriving = [*_arriving(found)]
            words = list(accumulate(_words_in(one for _call, one, _is_new in arriving)))
            read = zip(arriving, words, strict=True)
            new = [(call, so_far) for (call, _one, is_new), so_far in read if is_new]
            if len(new) != n:
                problem = f": {clipped(label)} has {n} retrieved documents, and the calls recorded "
                problem += f"for it returned {len(new)} different ones"
                advice = Advice("evaluate the records with {}", calls="union")
                raise InvalidInput("result", problem, advice)
            rank = ranks.get(label)
            until = (None, None) if rank is None or pd.isna(rank) else new[int(rank) - 1]
            rows.append((len(found), words[-1] if words else 0, *until))
        index = pd.Index(result.labels, name="query", dtype=object)
        return pd.DataFrame(rows, index, columns=_UNTIL_FOUND, dtype="Int64")

    def _settled(self, named: str | None = None) -> list[Question]:
        with self._lock:
            return settled(self._questions.values(), named)

    def _adopt(self, question: Question) -> None:
        """Take over a question that was recorded elsewhere."""
        with self._lock:
            self._questions[uuid4()] = question

    def evaluate(
        self,
        ground_truth: Rows | Sequence[Sequence[Any]],
        k: Cutoffs = DEFAULT_CUTOFFS,
        matcher: str | Matcher | None = None,
        *,
        retriever: str | None = None,
        calls: Literal["one", "union", "all", "first", "last", "each"] | None = None,
        input_key: QuestionKey | None = None,
        budget: int | Iterable[int] | None = None,
        length: Length = "words",
        metrics: Iterable[str | Metric] | None = None,
        **options: Any,
    ) -> EvaluationResult:
        """Evaluate what was recorded.

        Args:
            ground_truth: What should come back: a dict from question to documents, rows, a
                DataFrame or a data set, as for :func:`~krag_eval.evaluate_retriever`; or a list
                with one list of documents per question, in the order the questions were asked.
                After questions were asked at the same time (from threads, by ``abatch`` or by a
                retriever's ``batch``), it takes the questions to say which is which.
            k: A cutoff or several; ``None`` stands for all retrieved documents.
            matcher: What makes a retrieved document a match; ``"text"`` if neither given nor set by
                the data set.
            retriever: Name of the retriever to evaluate, one of :attr:`names`; may be left out if
                there is only one that no other retriever calls. Of an agent's tools, all count
                unless one is named.
            calls: What counts if there were several calls for a question. ``"union"``: the
                documents of all calls in the order they arrived, without those that an earlier
                call had returned (the same id, or the same text where one has no id).
                ``"all"``: the same with them. ``"first"``, ``"last"``: those of one call.
                ``"each"``: every call on its own, in a row ``"question (call 2)"`` with the tag
                ``call``. ``"one"``: several calls are refused. If not given, ``"union"`` for
                agents, which take messages or search by tools, and ``"one"`` for other chains,
                where several calls may be several retrievers of one name. Calls that failed add
                nothing; calls at the same time count in the order in which the agent's model
                asked for them.
            input_key: The key of the question in the chain's input, if that holds several texts, or
                a function from the input to the question. Under a key of messages, the question
                is the last one of a human.
            budget: How much may fit, or several such numbers; see
                :meth:`OfflineRetrievalEvaluator.evaluate
                <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
            length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
            metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all
                built-in ones if not given.
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`.

        Returns:
            The result, with latencies and failures as seen: a retriever that raised counts as
            nothing retrieved for that question, and so, with a warning, does one that was not
            called.

        Raises:
            TypeError: If the ground truth is none of these.
            ValueError: If nothing was recorded, questions are still being answered, or it is not
                clear which retriever, which call or which question is meant; the message says
                what settles it.
        """
        check_options(RetrievalRecorder.evaluate, options, EVALUATOR_OPTIONS)
        if calls is not None:
            errors.one_of("calls", calls, CALLS)
        questions = self._ended(retriever)
        if retriever is None:
            _warn_of_texts(questions)
        name = chosen_name(questions, retriever)
        asked = [question_of(one, input_key) for one in questions]
        truth = _truth_in(ground_truth, questions, asked)
        ordered = _ordered(truth, questions, asked)
        pairs = zip(ordered, truth.labels, strict=True)
        seen = [seen_of(one, name, str(label), calls) for one, label in pairs]
        _warn_of_uncalled(seen, name)
        known = truth.options(options if matcher is None else {**options, "matcher": matcher})
        actual = truth.actual
        if calls == "each":
            each: list[list[Seen | None]] = [[*calls_of(one, name)] or [None] for one in ordered]
            known = _per_call(known, each)
            actual = [one for one, found in zip(actual, each, strict=True) for _call in found]
            seen = [call for found in each for call in found]
        predicted = [call.documents or [] if call is not None else [] for call in seen]
        evaluator = OfflineRetrievalEvaluator(actual, predicted, **known)
        result = evaluator.evaluate(k, budget=budget, length=length, metrics=metrics)
        if calls in (None, "union", "all"):
            searches = [calls_of(question, name) for question in ordered]
            warn_of_depth(searches, predicted, actual, known, result, repeats=calls == "all")
        return replace(result, retrieval=_run_of(seen))

    def _ended(self, named: str | None) -> list[Question]:
        """Return the questions, all of them answered."""
        with self._lock:
            running = len({id(one.question) for one in self._runs.values()})
        if running:
            problem = f"{running} of {self.n_questions} questions are still being answered, or hang"
            raise InvalidInput("", problem, "wait for them, or clear the recorder and ask again")
        return self._settled(named)

    def wrap(
        self,
        retriever: Runnable[Any, Any] | Callable[..., Answer | Awaitable[Answer]],
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
        return Wrapped(self, Call.of(retriever, input_key, output_key), name)

    # What LangChain calls.

    # Models do not retrieve.
    ignore_llm = ignore_chat_model = True

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **details: Any) -> None:
        """Note whose part a run is."""
        with self._lock:
            self._start(run_id, details, inputs).question.note_order(inputs)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **details: Any) -> None:
        """Note that a run is over, and what it was given, if that is known only now."""
        with self._lock:
            if "inputs" in details and run_id in self._questions:  # streamed input
                self._questions[run_id].take(details["inputs"])
            if run_id in self._runs:
                self._runs[run_id].question.note_order(outputs)
        self._end(run_id)

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, inputs: Any = None, **details: Any
    ) -> None:
        """Note whose part a tool is; it may call a retriever, or search itself."""
        name = (serialized or {}).get("name") or details.get("name") or "tool"
        given = input_str if inputs is None else inputs
        with self._lock:
            seen = self._start(run_id, details, given, "tool", name, query_in(given))
            seen.call_id = details.get("tool_call_id") or ""

    def on_tool_end(self, output: Any, *, run_id: UUID, **details: Any) -> None:
        """Note that a tool is done, and the documents it returned if no retriever did."""
        with self._lock:
            if run_id in self._runs and not self._runs[run_id].call_id:
                # Early releases of langchain-core 1 tell the id of the call only now.
                self._runs[run_id].call_id = getattr(output, "tool_call_id", "")
        self._end(run_id, *returned_in(output))

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, **details: Any
    ) -> None:
        """Note that a retriever is asked, by whom, and since when."""
        name = details.get("name") or (serialized or {}).get("name") or "retriever"
        with self._lock:
            self._start(run_id, details, query, "retriever", name, str(query))

    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, **details: Any
    ) -> None:
        """Keep what a retriever returned."""
        self._end(run_id, list(documents))

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **details: Any) -> None:
        """Keep what a retriever, a tool or a chain raised."""
        self._end(run_id, error=error)

    on_chain_error = on_tool_error = on_retriever_error

    def _start(
        self,
        run_id: UUID,
        details: Mapping[str, Any],
        inputs: Any,
        kind: str = "",
        name: str = "",
        query: str = "",
    ) -> Seen:
        """Note a run under its question, which begins with the first run that has no parent here.

        A recorder that hangs on a part of a chain does not see the run around it; its parts
        belong together by the parent they name.
        """
        parent_id = details.get("parent_run_id") or run_id
        parent = self._runs.get(parent_id)
        if parent is not None:
            question = parent.question
        elif (question := self._questions.get(parent_id)) is None:  # type: ignore[assignment]
            question = self._questions[parent_id] = Question(after_others=not self._runs)
            question.take(inputs)
        self._runs[run_id] = seen = Seen(question, kind, name, query, parent)
        if kind:
            question.seen.append(seen)
        return seen

    def _end(
        self,
        run_id: UUID,
        documents: list[DocumentLike] | None = None,
        texts: list[DocumentLike] | None = None,
        error: BaseException | None = None,
    ) -> None:
        now = perf_counter()
        with self._lock:
            seen = self._runs.pop(run_id, None)
            if seen is None:
                return
            seen.seconds, seen.documents, seen.error = now - seen.start, documents, error
            seen.texts = texts
            if seen.is_search:
                for one in seen.around:
                    one.searched = True
            if run_id in self._questions:
                # What an interrupt tore out of the chain never says that it ended.
                left = self._runs.items()
                self._runs = {key: one for key, one in left if one.question is not seen.question}


# The recorder whose ``with`` block is running; LangChain looks here whenever it starts a run.
_RECORDING: ContextVar[BaseCallbackHandler | None] = ContextVar("krag_eval_recorder", default=None)
register_configure_hook(_RECORDING, inheritable=True)


#: The key under which agents and graphs of LangChain take a conversation.
MESSAGES = "messages"


def _texts_in(inputs: Any) -> str | dict[str, str] | None:
    """Keep the texts a chain was given, and of a conversation the last message of a human."""
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, list | tuple):  # plain strings may be anything
        return _last_question([one for one in inputs if not isinstance(one, str)])
    if not isinstance(inputs, Mapping):  # a state of LangGraph may be an object
        inputs = {MESSAGES: getattr(inputs, MESSAGES, None)}
    texts = {key: text for key, text in inputs.items() if isinstance(text, str) and text}
    asked = _last_question(inputs.get(MESSAGES))
    return texts if asked is None else {**texts, MESSAGES: asked}


def _last_question(messages: Any) -> str | None:
    """Return the text of the last message of a human; ``None`` if there is none."""
    if isinstance(messages, BaseMessage):
        messages = [messages]
    if not isinstance(messages, list | tuple):
        return None
    spoken = (as_message(one) for one in reversed(messages))
    return next((str(one.text) for one in spoken if one is not None and one.type == "human"), None)


def as_message(given: Any) -> BaseMessage | None:
    """Return a message in any form LangChain takes; ``None`` for anything else.

    >>> as_message(("user", "When?")).text, as_message({"role": "user", "content": "When?"}).type
    ('When?', 'human')
    """
    if isinstance(given, BaseMessage):
        return given
    try:
        return convert_to_messages([given])[0]
    except (ValueError, TypeError, NotImplementedError, KeyError):
        return None


def _run_of(calls: Sequence[Seen | None]) -> RetrievalRun:
    seconds, failures = np.full(len(calls), np.nan), []
    for position, call in enumerate(calls):
        if call is not None and call.documents is not None:
            seconds[position] = call.seconds
        elif call is not None:
            error = call.error or RuntimeError("it never returned")
            failures.append(Failure.of(position, error, call.seconds))
    return RetrievalRun(seconds, tuple(failures))


def _warn_of_texts(questions: Iterable[Question]) -> None:
    """Warn of tools whose plain texts are taken for documents, as nothing else tells."""
    tools = {one.name for question in questions for one in question.seen
             if one.texts and one.documents is one.texts}  # fmt: skip
    if tools:
        message = _("Plain texts that {tools} returned are taken for documents.")
        fix = Advice(_("name the tool that searches by {}"), retriever=...)
        warn(message.format(tools=", ".join(map(repr, sorted(tools)))), fix)


def _warn_of_uncalled(calls: Sequence[Seen | None], name: str | None) -> None:
    uncalled = sum(call is None for call in calls)
    failed = sum(call is not None and call.documents is None for call in calls)
    retriever = _("The agent's search") if name is None else repr(name)
    if uncalled:
        told = _(
            "{retriever} was not called for {n} of {questions} questions; they count as nothing "
            "retrieved."
        )
        warn(told.format(retriever=retriever, n=uncalled, questions=len(calls)))
    if failed:
        told = _(
            "{retriever} failed for {n} of {questions} questions; they count as nothing retrieved"
        )
        problem = told.format(retriever=retriever, n=failed, questions=len(calls))
        warn(problem, _("See the failures of the result"))


#: Which calls count if there were several for one question: there must be one; all of them, one
#: after the other, without or with what came again; the first; the last; each on its own.
CALLS = ("one", "union", "all", "first", "last", "each")
#: The columns of the records, and what they hold.
_COLUMNS = {
    "question": object,
    "call": np.int64,
    "retriever": object,
    "searched_for": object,
    "n_documents": np.int64,
    "words": np.int64,
    "seconds": np.float64,
    "error": object,
}
_UNTIL_FOUND = ("calls", "words", "calls_until_found", "words_until_found")


def strand() -> tuple[int, object]:
    """Return the thread and the task this runs in."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), None if task is None else id(task)


@dataclass(eq=False)
class Seen:
    """A run within a question: a call of a retriever, of a tool that may have searched, or neither.

    Attributes:
        question: The question it is part of.
        kind: ``"retriever"``, ``"tool"``, or ``""`` for any other part of a chain.
        name: The name of the retriever or tool.
        query: What it was asked, which a chain may have rewritten.
        parent: The run that called it; ``None`` if it is the outermost, or that is not known.
        documents: What it returned; ``None`` if it failed or is still at it.
        texts: Plain texts that it returned, which may be documents.
        error: What it raised.
        seconds: How long it took; NaN until it ended.
        call_id: The id of a tool's call, as its model gave it; ``""`` if none is known.
        searched: Whether anything searched within it.
        start: When it started.
    """

    question: Question
    kind: str
    name: str = ""
    query: str = ""
    parent: Seen | None = None
    documents: list[DocumentLike] | None = None
    texts: list[DocumentLike] | None = None
    error: BaseException | None = None
    seconds: float = float("nan")
    call_id: str = ""
    searched: bool = False
    start: float = field(default_factory=perf_counter)

    @property
    def around(self) -> Iterator[Seen]:
        """The runs it is part of, from within."""
        one = self.parent
        while one is not None:
            yield one
            one = one.parent

    @property
    def outermost(self) -> bool:
        """Whether no other retriever called it."""
        return all(one.kind != "retriever" for one in self.around)

    @property
    def tool(self) -> Seen | None:
        """The outermost tool that it is, or is part of; ``None`` if there is none."""
        tools = [one for one in (self, *self.around) if one.kind == "tool"]
        return tools[-1] if tools else None

    @property
    def is_search(self) -> bool:
        """Whether it is known to search: a tool does that returned documents of its own."""
        return self.kind == "retriever" or (self.documents is not None and not self.searched)

    @property
    def told_error(self) -> str | None:
        """What it raised, in words; ``None`` if it returned documents or is still at it."""
        if self.documents is not None or self.error is None:
            return None
        return f"{type(self.error).__name__}: {self.error}".rstrip(": ")


@dataclass(eq=False)
class Question:
    """One call of the outermost chain (or retriever), and the retrievers seen in it.

    Attributes:
        after_others: Whether all that started before it had ended.
        strand: The thread and task it was started in.
        inputs: The texts it was given: one without a name, or several by their names; of a
            conversation, the last message of a human.
        given: What it was given, for a function that finds the question in it.
        by_agent: Whether it came as messages, as agents take it.
        seen: The calls of retrievers and tools, in the order they started.
        order: The ids of calls of tools, in the order in which a model asked for them.
    """

    after_others: bool
    strand: tuple[int, object] = field(default_factory=strand)
    inputs: str | dict[str, str] | None = None
    given: Any = None
    by_agent: bool = False
    seen: list[Seen] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)

    def take(self, inputs: Any) -> None:
        """Keep what it was given: as it is now, for callers go on with their lists."""
        self.inputs = _texts_in(inputs)
        self.given = inputs
        if isinstance(inputs, Mapping):
            self.given = {key: [*one] if isinstance(one, list) else one
                          for key, one in inputs.items()}  # fmt: skip
        talk = not isinstance(self.inputs, Mapping) or MESSAGES in self.inputs
        self.by_agent = talk and self.inputs is not None and not isinstance(inputs, str)

    def note_order(self, state: Any) -> None:
        """Keep the order in which the model asked for tools; those at the same time overtake."""
        messages = state.get(MESSAGES) if isinstance(state, Mapping) else state
        messages = getattr(messages, MESSAGES, messages)
        for message in messages if isinstance(messages, list | tuple) else ():
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                self.order.setdefault(call.get("id") or "", len(self.order))

    @property
    def searches(self) -> list[Seen]:
        """The calls that no other retriever made."""
        return [seen for seen in self.seen if seen.outermost]

    @property
    def is_agentic(self) -> bool:
        """Whether it came as messages, or a tool searched."""
        return self.by_agent or any(seen.tool is not None for seen in self.seen)


def settled(questions: Iterable[Question], named: str | None = None) -> list[Question]:
    """Return the questions with their searches alone, in the order their model asked for them.

    Tools that did not search are left out. One that failed did search if a tool of that name
    returned documents elsewhere. Plain texts are documents of the tool that is named; of any, where
    nothing else was returned.

    Args:
        questions: What was recorded.
        named: The retriever or tool that is known to search.
    """
    questions = list(questions)
    known = {seen.name for one in questions for seen in one.seen if seen.is_search}
    guessed = {seen.name for one in questions for seen in one.seen if seen.texts}
    guessed = guessed & {named} if known or named is not None else guessed

    def search(seen: Seen) -> Seen | None:
        if seen.is_search:
            return seen
        if seen.texts is not None and not seen.searched and seen.name in known | guessed:
            return replace(seen, documents=seen.texts if seen.name in guessed else [])
        failed = seen.error is not None and not seen.searched
        return seen if failed and seen.name in known | guessed else None

    searches = [[*filter(None, map(search, one.seen))] for one in questions]
    return [replace(one, seen=_in_the_order_asked(some, one.order))
            for one, some in zip(questions, searches, strict=True)]  # fmt: skip


def _in_the_order_asked(searches: Iterable[Seen], order: Mapping[str, int]) -> list[Seen]:
    """Sort those whose place the model gave among the places they take; the others stay."""
    seen = [*searches]
    places = {at: order[one.tool.call_id] for at, one in enumerate(seen)
              if one.tool is not None and one.tool.call_id in order}  # fmt: skip
    turns = dict(zip(places, sorted(places, key=places.__getitem__), strict=True))
    return [seen[turns.get(at, at)] for at in range(len(seen))]


def chosen_name(questions: Sequence[Question], retriever: str | None) -> str | None:
    """Return the retriever that is meant: the one named, or the only outermost one.

    ``None`` stands for all tools of an agent.

    Raises:
        ValueError: If none was seen, none has that name, or there are several.
    """
    everyone = list(dict.fromkeys(seen.name for one in questions for seen in one.seen))
    if not everyone:
        raise InvalidInput(
            "retriever",
            ": none was seen",
            "Ask within the recorder's with block, or pass it among the callbacks in the config of "
            "each call. A plain function or RunnableLambda fires no retriever events: wrap it by "
            "the recorder's wrap method. A tool is seen if it returns its documents as an artifact "
            '(response_format="content_and_artifact"), as JSON or as content blocks, or asks a '
            "retriever",
        )
    if retriever is not None:
        return errors.one_of("retriever", retriever, everyone)
    outermost = [seen for one in questions for seen in one.searches]
    names = {seen.name for seen in outermost}
    if len(names) == 1:
        return names.pop()
    if all(seen.tool is not None for seen in outermost):
        return None
    problem = f": several were seen ({', '.join(map(repr, everyone))})"
    fix = Advice("name the one to evaluate by {}", retriever=...)
    raise InvalidInput("retriever", problem, fix)


def calls_of(question: Question, name: str | None) -> list[Seen]:
    """Return the calls of a retriever for a question; of all that no other called for ``None``.

    What a retriever calls by its own name is part of its own doing.
    """
    outer = [seen for seen in question.searches if name in (None, seen.name)]
    return outer or [seen for seen in question.seen if seen.name == name]


def seen_of(question: Question, name: str | None, asked: str, calls: str | None) -> Seen | None:
    """Return what that retriever did for a question; ``None`` if it was not called.

    Args:
        question: What was recorded.
        name: The retriever; ``None`` for all that no other called.
        asked: The question, for the message.
        calls: What to do if it was called more than once; see :data:`CALLS`. ``None`` for what
            suits the question.

    Raises:
        ValueError: If it was called more than once, and only one call is expected.
    """
    found = calls_of(question, name)
    if len(found) < 2:
        return found[0] if found else None
    calls = calls or ("union" if question.is_agentic else "one")
    if calls == "one":
        told = (
            "Name one of several retrievers by {}, after giving each a run_name in its config; or "
            'choose the calls that count by {} (or "all", "first", "last" or "each")'
        )
        problem = f": {name or 'several'!r} was called {len(found)} times for the question "
        fix = Advice(told, retriever=..., calls="union")
        raise InvalidInput("retriever", f"{problem}{clipped(asked)}", fix)
    if calls in ("first", "last"):
        return found[-1 if calls == "last" else 0]
    return _joined(found, repeats=calls == "all")


def _joined(calls: Sequence[Seen], *, repeats: bool) -> Seen:
    """Join calls into one: their documents in the order of the calls, their times added up."""
    returned = [call for call in calls if call.documents is not None]
    if not returned:
        return calls[0]
    documents = [one for _call, one, is_new in _arriving(calls) if repeats or is_new]
    return replace(returned[0], documents=documents, seconds=sum(call.seconds for call in returned))


def _arriving(calls: Iterable[Seen]) -> Iterator[tuple[int, DocumentLike, bool]]:
    """Yield documents in order, with the number of the call, and whether no earlier one had it.

    One is the same as another with its id, or with its text where one of them has no id.
    """
    ids: set[str] = set()
    texts: set[str] = set()
    texts_without_id: set[str] = set()
    for number, call in enumerate(calls, 1):
        documents = [(one, id_of(one), text_of(one)) for one in call.documents or ()]
        for one, name, text in documents:
            known = text in texts if name is None else name in ids or text in texts_without_id
            yield number, one, not known
        ids.update(name for _, name, _ in documents if name is not None)
        texts.update(text for _, _, text in documents)
        texts_without_id.update(text for _, name, text in documents if name is None)


# What is lost behind a cutoff


class _Hidden(NamedTuple):
    """A search whose documents all come after a cutoff.

    Attributes:
        call: Its number among the searches for its question, from 1.
        search: The search.
        rank: The rank of its first document, among those of all searches.
    """

    call: int
    search: Seen
    rank: int


def _hidden(calls: Sequence[Seen], k: int, *, repeats: bool) -> _Hidden | None:
    """Return the first of the later searches that a cutoff ends before, if there is one."""
    counted = (call for call, _document, is_new in _arriving(calls) if is_new or repeats)
    ranks: dict[int, int] = {}
    for rank, call in enumerate(counted, 1):
        ranks.setdefault(call, rank)
    late = (call for call, rank in ranks.items() if call > 1 and rank > k)
    return next((_Hidden(call, calls[call - 1], ranks[call]) for call in late), None)


def warn_of_depth(
    searches: Sequence[Sequence[Seen]],
    predicted: Sequence[Sequence[DocumentLike]],
    actual: Sequence[Any],
    options: Mapping[str, Any],
    result: EvaluationResult,
    *,
    repeats: bool,
) -> None:
    """Warn where the deepest cutoff ends before the documents of a later search begin.

    The warning has the values of the other ways to count searches.

    Args:
        searches: Per query, the searches that were joined; none if they are not known.
        predicted: Per query, their documents.
        actual: Per query, its ground truth.
        options: The options of the evaluator.
        result: What was evaluated.
        repeats: Whether documents that came again count.
    """
    k = max((cutoff for cutoff in result.k if isinstance(cutoff, int)), default=None)
    if k is None or None in result.k:
        return
    hidden = [_hidden(calls, k, repeats=repeats) for calls in searches]
    found = [(label, one) for label, one in zip(result.labels, hidden, strict=True) if one]
    if not found:
        return
    label, (call, search, rank) = found[0]
    message = _(
        "k={k} ends before the documents of a later search for {n} of {queries} questions (the "
        "first is {question!r}: call {call} of {retriever!r}, for {query!r}, begins at rank {rank}"
        "). {values}."
    )
    values = "; ".join(_values_by_way(searches, predicted, actual, options, k))
    warn(
        message.format(k=k, n=len(found), queries=len(hidden), question=label, call=call,
                       retriever=search.name, query=search.query, rank=rank, values=values),
        Advice(_("choose by {} or {}, or look at each search by {}"),
               ("calls", "last"), ("k", None), ("calls", "each")),
    )  # fmt: skip


def _values_by_way(
    searches: Sequence[Sequence[Seen]],
    predicted: Sequence[Sequence[DocumentLike]],
    actual: Sequence[Any],
    options: Mapping[str, Any],
    k: int,
) -> list[str]:
    """Say what the ways to count searches come to: macro recall and MRR of each."""

    def evaluated(lists: Sequence[Any], cutoff: int | None = k) -> EvaluationResult:
        evaluator = OfflineRetrievalEvaluator(actual, lists, **options)
        return evaluator.evaluate(cutoff, metrics=["recall", "mrr"])

    def of_call(number: int) -> list[Any]:
        return [
            (calls[number].documents or []) if -len(calls) <= number < len(calls)
            else ([] if calls else documents)
            for calls, documents in zip(searches, predicted, strict=True)
        ]  # fmt: skip

    n_calls = max(map(len, searches))
    with errors.muted():
        joined, deepest = evaluated(predicted), evaluated(predicted, None)
        last, each = evaluated(of_call(-1)), [evaluated(of_call(one)) for one in range(n_calls)]
    ways: dict[str, tuple[Sequence[EvaluationResult], int | None]] = {
        _("All searches at k={}").format(k): ([joined], k),
        'calls="last"': ([last], k),
        "k=None": ([deepest], None),
        _("the best search of each question"): (each, k),
    }
    sentence = _("{way}: recall {recall:.4f}, MRR {mrr:.4f}")
    return [sentence.format(way=way, recall=_best_of(results, "recall", cutoff),
                            mrr=_best_of(results, "reciprocal_rank", cutoff))
            for way, (results, cutoff) in ways.items()]  # fmt: skip


def _best_of(results: Sequence[EvaluationResult], column: str, k: int | None) -> float:
    """Return the mean over queries of the best value that a result has for each."""
    best = np.fmax.reduce([one.tables[k][column] for one in results])[results[0].counted]
    return float(np.nanmean(best)) if not np.isnan(best).all() else float("nan")


def _per_call(options: Mapping[str, Any], each: Sequence[Sequence[object]]) -> dict[str, Any]:
    """Return the options that go by query for one row per call, and tag the calls.

    A question without a call keeps its row, its label, and no number.

    Raises:
        ValueError: If there is not one label or tag per question, or a tag is named ``call``.
    """
    labels, tags = options["queries"], options.get("tags") or {}
    labels = range(len(each)) if labels is None else labels
    checked_tags(tags, len(each))
    if "call" in tags:
        problem = ': with calls="each", the tag "call" holds the number of the call'
        raise InvalidInput("tags", problem, "give yours another name")
    if len(labels) != len(each):
        be = f"have one label per question, {len(each)}"
        raise errors.must("queries", be, len(labels))
    rows = [
        (at, None if call is None else number)
        for at, calls in enumerate(each)
        for number, call in enumerate(calls, 1)
    ]
    spread = {name: [values[at] for at, _number in rows] for name, values in tags.items()}
    named = [labels[at] if n is None else f"{labels[at]} (call {n})" for at, n in rows]
    tags = {**spread, "call": [number for _at, number in rows]}
    lists = {}
    for name in LISTS:
        if options.get(name) is not None:
            given = docs.by_query(options[name], labels, name)
            lists[name] = [given[at] for at, _number in rows]
    return {**options, **lists, "queries": named, "tags": tags}


def _words_in(documents: Iterable[DocumentLike]) -> list[int]:
    counts: list[int] = lengths_of([text_of(one) for one in documents], "w", None).tolist()
    return counts


def _name_of(question: Question) -> str | None:
    try:
        return question_of(question, None)
    except Refusal:
        return None


def _of_result(questions: Sequence[Question], result: EvaluationResult) -> list[Question]:
    """Return the question of each query of a result: by its text, or else by its position."""
    by_text, labels = {_name_of(one): one for one in questions}, result.labels
    if len(by_text) == len(questions) and all(label in by_text for label in labels):
        return [by_text[str(label)] for label in labels]
    if list(labels) == list(range(len(questions))):
        return list(questions)
    problem = f": its {len(labels)} queries are not the {len(questions)} questions recorded"
    fix = Advice("pass what this recorder evaluated with {}", calls="union")
    raise InvalidInput("result", problem, fix)


def question_of(question: Question, input_key: QuestionKey | None) -> str:
    """Return the question that was asked, as the user wrote it.

    The chain's input if it is a text; what ``input_key`` returns of it, or the text under that key;
    the last message of a human; the only text among its inputs; the one of them that a retriever
    was asked. A chain whose input holds no text is known by what its first retriever was asked.

    Raises:
        TypeError: If ``input_key`` is a function and returns no text.
        ValueError: If its input has several texts, or none under ``input_key``.

    >>> question = Question(after_others=True)
    >>> question.take({"q": "When?", "language": ""})
    >>> question_of(question, None)
    'When?'
    """
    if callable(input_key):
        found = input_key(question.given)
        if not isinstance(found, str) or not found:
            raise errors.must("input_key", "return the question, a text", found, kind=InvalidType)
        return found
    texts = question.inputs
    if isinstance(texts, str):
        return texts
    if input_key is not None and texts is not None:
        given = question.given
        spoken = _last_question(given.get(input_key)) if isinstance(given, Mapping) else None
        named = texts.get(input_key) or spoken
        if not named:
            keys = ", ".join(map(repr, texts)) or "no text at all"
            raise errors.must("input_key", f"be a key of the chain's input, {keys}", input_key)
        return named
    texts = {key: text for key, text in (texts or {}).items() if text}
    asked = [seen.query for seen in question.seen]
    if MESSAGES in texts:
        return texts[MESSAGES]
    likely = [*texts.values(), *asked][:1]
    if len(texts) > 1:
        likely = [*{*texts.values()}.intersection(asked)]
    if len(likely) != 1:
        keys = ", ".join(map(repr, texts)) or "none"
        problem = f": which of several texts ({keys}) that the chain was given is the question"
        raise InvalidInput("input_key", f"{problem}?", Advice("name its key by {}", input_key=...))
    return likely[0]


def _truth_in(ground_truth: Any, questions: Sequence[Question], asked: Sequence[str]) -> Questions:
    """Return ground truth with its questions: a list is in the order these were asked in.

    Raises:
        TypeError: If it is no ground truth, or that of a question is no list.
        ValueError: If a list has another length, or the order of the questions is not known.
    """
    is_list = isinstance(ground_truth, Sequence) and not isinstance(ground_truth, str | bytes)
    if not is_list or (len(ground_truth) and _is_row(ground_truth[0])):
        with called("ground_truth", "dataset"):
            return Questions.of(ground_truth)
    if len(ground_truth) != len(questions):
        be = f"have an entry for each of {len(questions)} questions, the first {clipped(asked[0])}"
        fix = "clear the recorder to forget earlier ones, or pass a dict by question"
        raise errors.must("ground_truth", be, len(ground_truth), fix)
    if not _in_order(questions):
        problem = ": the questions were asked at the same time, so their order is not known"
        raise InvalidInput("ground_truth", problem, "pass a dict from question to documents")
    actual = [
        documents_in(one, Location("ground_truth", at), ground_truth=True)
        for at, one in enumerate(ground_truth)
    ]
    return Questions([*asked], labels_of([*asked]), actual)


def _is_row(one: Any) -> bool:
    """Tell a row, of our own or anybody's columns, from a document or a list of them."""
    if isinstance(one, Mapping):
        return "page_content" not in one and not KNOWN.isdisjoint(one)
    return as_row(one) is not None


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


def _ordered(
    truth: Questions, questions: Sequence[Question], asked: Sequence[str]
) -> list[Question]:
    """Return what was recorded in the order of the ground truth: by question, or by place.

    Raises:
        ValueError: If one of the two has questions that the other lacks, or in another order.
    """
    if truth.texts == [*asked]:
        return list(questions)
    by_text = dict(zip(asked, questions, strict=True))
    for texts, where in ((truth.texts, "is in it"), (asked, "was asked")):
        twice = next((text for text, n in Counter(texts).items() if n > 1), None)
        if twice is not None:
            problem = f": {clipped(twice)} {where} more than once, and not in the same order"
            raise InvalidInput("ground_truth", problem, "pass a list in the order of the questions")
    unknown, unasked = (by_text.keys() - {*truth.texts}), ({*truth.texts} - by_text.keys())
    if unknown or unasked:
        first = next(text for text in [*asked, *truth.texts] if text in unknown | unasked)
        problem = "lacks a question that was asked" if unknown else "has a question never asked"
        raise InvalidInput("ground_truth", f"{problem}: {clipped(first)}")
    return [by_text[text] for text in truth.texts]
