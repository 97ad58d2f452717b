"""Agents: asking one the questions of a data set, and reading from messages what it searched for.

LangChain loads with this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import ToolException

from krag_eval.asking import recording
from krag_eval.asking.asking import Asking, Call, query_in
from krag_eval.asking.evaluating import Evaluation, Rows, Run
from krag_eval.asking.messages import returned_in
from krag_eval.asking.recording import MESSAGES, Question, RetrievalRecorder, Seen, strand
from krag_eval.core import (
    DEFAULT_CUTOFFS,
    EVALUATOR_OPTIONS,
    N_,
    Advice,
    Cutoffs,
    DocumentLike,
    InvalidInput,
    InvalidType,
    Length,
    Location,
    _,
    check_options,
    errors,
    warn,
)

if TYPE_CHECKING:
    from krag_eval.core import Matcher, Metric
    from krag_eval.result import EvaluationResult


def evaluate_agent(
    agent: Runnable[Any, Any],
    dataset: Rows,
    k: Cutoffs = DEFAULT_CUTOFFS,
    matcher: str | Matcher | None = None,
    *,
    calls: Literal["union", "all", "first", "last"] = "union",
    retriever: str | None = None,
    recorder: RetrievalRecorder | None = None,
    input_key: str = MESSAGES,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    on_error: Literal["raise", "record"] | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_key: str | None = None,
    **options: Any,
) -> EvaluationResult:
    """Ask an agent every question of a data set, and evaluate what its searches returned.

    Each question is a conversation of its own, ``{"messages": [{"role": "user", "content":
    question}]}``. What the agent searched for is recorded as a
    :class:`~krag_eval.RetrievalRecorder` does; what it answered is not looked at. A question for
    which it did not search counts as nothing retrieved, with a warning.

    Args:
        agent: What ``create_agent`` returns, a compiled ``StateGraph``, or any other ``Runnable``
            that takes messages.
        dataset: The questions and their ground truth; see :func:`~krag_eval.evaluate_retriever`.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        matcher: What makes a retrieved document a match; ``"text"`` if neither given nor set by
            the data set.
        calls: What counts if it searched several times for a question: the documents of all calls
            in the order they arrived, without (``"union"``) or with (``"all"``) those that came
            again; those of the ``"first"`` or the ``"last"`` call. For each call on its own, pass
            a recorder and evaluate that.
        retriever: The name of the retriever or tool to evaluate; all that no other retriever
            called if not given.
        recorder: Where the searches are kept, for its ``records`` and ``until_found``, in the
            order of the data set; an empty one.
        input_key: The key under which it takes messages. Under any other key than ``"messages"``
            it is given the question as a text.
        budget: How much may fit, or several such numbers; see
            :meth:`OfflineRetrievalEvaluator.evaluate
            <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all built-in
            ones if not given.
        on_error: What happens when the agent raises, or all its searches fail: ``"record"`` it and
            ask the others, or ``"raise"``. If not given, it is recorded, unless the first three
            questions fail and none is answered; see :func:`~krag_eval.evaluate_retriever`.
        max_concurrency: How many questions are asked at the same time.
        timeout: Seconds that the agent may take for a question; see
            :func:`~krag_eval.evaluate_retriever`.
        config: LangChain's config, or a list with one per question. An agent that keeps
            conversations needs another ``thread_id`` for each.
        progress: Whether to show a progress bar; if not given, in terminals and notebooks.
        checkpoint: A file that gains one line per question; see there.
        checkpoint_key: What identifies the agent in the checkpoint; see there.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`.

    Returns:
        The result; ``result.latency`` is of the whole agent, models and all. ``recorder.records``
        has the seconds of each search.

    Raises:
        TypeError: If the agent cannot be asked, or an argument is of a wrong type.
        ValueError: If an argument is out of range, or retrievers that are no tools of the agent
            were called side by side and none is named.

    Warns:
        KragEvalWarning: If the agent did not search for some questions, or some failed.

    >>> from langchain_core.runnables import RunnableLambda
    >>> recorder = RetrievalRecorder()
    >>> search = recorder.wrap({"hours": ["At nine."], "place": []}.__getitem__, name="search")
    >>> agent = RunnableLambda(lambda state: [search(query) for query in ("place", "hours")])
    >>> dataset = [{"question": "When does it open?", "actual": ["At nine."]}]
    >>> evaluate_agent(agent, dataset, k=1).to_dict()["hit_rate@1"]
    1.0
    >>> evaluate_agent(agent, dataset, k=1, calls="all", metrics=["mrr"]).to_dict()
    {'mrr@1': 1.0}
    """
    check_options(evaluate_agent, options, EVALUATOR_OPTIONS)
    call = AgentCall(Searching(agent, calls, retriever, recorder, input_key))
    evaluation = Evaluation.of(dataset, k, matcher, metrics, options, budget=budget, length=length)
    asking = Asking(
        on_error, max_concurrency, timeout, config, progress, checkpoint, checkpoint_key
    )
    return AgentRun(call, evaluation, asking, "asking").now()


async def aevaluate_agent(
    agent: Runnable[Any, Any],
    dataset: Rows,
    k: Cutoffs = DEFAULT_CUTOFFS,
    matcher: str | Matcher | None = None,
    *,
    calls: Literal["union", "all", "first", "last"] = "union",
    retriever: str | None = None,
    recorder: RetrievalRecorder | None = None,
    input_key: str = MESSAGES,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    on_error: Literal["raise", "record"] | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_key: str | None = None,
    **options: Any,
) -> EvaluationResult:
    """Do as :func:`evaluate_agent`, through the agent's own ``ainvoke``."""
    check_options(aevaluate_agent, options, EVALUATOR_OPTIONS)
    call = AgentCall(Searching(agent, calls, retriever, recorder, input_key))
    evaluation = Evaluation.of(dataset, k, matcher, metrics, options, budget=budget, length=length)
    asking = Asking(
        on_error, max_concurrency, timeout, config, progress, checkpoint, checkpoint_key
    )
    return await AgentRun(call, evaluation, asking, "asking").soon()


# A tool whose searches can be seen, in words.
_TOOL = N_(
    'a tool that returns its documents as an artifact (response_format="content_and_artifact"), '
    "as JSON or as content blocks"
)


@dataclass(eq=False)
class Searching(Runnable[str, "list[DocumentLike]"]):
    """Asks an agent a question, and returns what its searches found; checked.

    Attributes:
        agent: The agent.
        calls: Which searches count.
        retriever: Whose searches count; those of all that no other retriever called if ``None``.
        recorder: Where the searches are kept as well; nowhere if ``None``.
        input_key: The key under which the agent takes the question.
    """

    agent: Runnable[Any, Any]
    calls: str
    retriever: str | None
    recorder: RetrievalRecorder | None
    input_key: str

    def __post_init__(self) -> None:
        if not isinstance(self.agent, Runnable):
            compiled = hasattr(self.agent, "compile")
            fix = "pass what its compile method returns" if compiled else _BY_RETRIEVER
            be = "be a Runnable that takes messages"
            raise errors.must("agent", be, self.agent, fix, InvalidType)
        if isinstance(self.agent, BaseRetriever):
            be = "take messages, and not a question"
            raise errors.must("agent", be, self.agent, _BY_RETRIEVER, InvalidType)
        if self.calls == "each":
            instead = Advice("pass {}, and call its evaluate with it", recorder=...)
            raise InvalidInput("calls", ': "each" has a row per call, not per question', instead)
        errors.one_of("calls", self.calls, ("union", "all", "first", "last"))
        if self.retriever is not None:
            errors.text("retriever", self.retriever, "the name of a retriever")
        errors.text("input_key", self.input_key, "the name of a key")
        if not isinstance(self.recorder, RetrievalRecorder | None):
            raise errors.must("recorder", "be a RetrievalRecorder", self.recorder, kind=InvalidType)
        self.name = self.agent.get_name()
        self._searched: list[bool] = []
        self.searches: dict[str, list[Seen]] = {}
        self._asked: list[tuple[str, Question]] = []
        self._under_way: dict[int, tuple[str, RetrievalRecorder]] = {}
        self._at_once = False

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[DocumentLike]:
        """Ask it, and return the documents found; raise what it or its search raised."""
        watching, config = self._watching(input, config)
        try:
            self.agent.invoke(self._given(input), config, **kwargs)
        finally:
            question = self._kept(input, watching)
        return self._found(question, input)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[DocumentLike]:
        """Do as :meth:`invoke`, asynchronously."""
        watching, config = self._watching(input, config)
        try:
            await self.agent.ainvoke(self._given(input), config, **kwargs)
        finally:
            question = self._kept(input, watching)
        return self._found(question, input)

    @contextmanager
    def asked(self, texts: Sequence[str]) -> Iterator[None]:
        """Give the recorder what was asked, in the order of these; afterwards at once.

        Warn of the questions for which the agent did not search.
        """
        try:
            yield
        finally:
            for given_up in [*self._under_way.values()]:  # as it took too long
                self._kept(*given_up)
            place = {text: i for i, text in enumerate(texts)}
            asked = sorted(self._asked, key=lambda one: place[one[0]])
            self._asked, self._at_once = [], True
            for _text, question in asked:
                question.strand, question.after_others = strand(), True
                if self.recorder is not None:
                    self.recorder._adopt(question)
        if n := self._searched.count(False):
            told = _(
                "The agent did not search by {retriever} for {n} of {questions} questions; they "
                "count as nothing retrieved"
            )
            retriever = _("any retriever") if self.retriever is None else repr(self.retriever)
            problem = told.format(n=n, questions=len(self._searched), retriever=retriever)
            seen = _("A search is seen if it asks a LangChain retriever, or is {tool}")
            warn(problem, seen.format(tool=_(_TOOL)))
            self._searched.clear()

    def _given(self, question: str) -> dict[str, Any]:
        if self.input_key != MESSAGES:
            return {self.input_key: question}
        return {MESSAGES: [{"role": "user", "content": question}]}

    def _watching(
        self, text: str, config: RunnableConfig | None
    ) -> tuple[RetrievalRecorder, RunnableConfig]:
        watching = RetrievalRecorder()
        self._under_way[id(watching)] = text, watching
        return watching, merge_configs(config, {"callbacks": [watching]})

    def _kept(self, text: str, watching: RetrievalRecorder) -> Question:
        """Return all that was seen as one question, and keep it."""
        question = Question(after_others=False)
        question.take(self._given(text))
        question.by_agent = True
        for one in [*watching._questions.values()]:
            question.seen += one.seen
            question.order.update(one.order)
        if self._under_way.pop(id(watching), None) is None:  # kept when it was given up
            return question
        if not self._at_once:
            self._asked.append((text, question))
        elif self.recorder is not None:
            self.recorder._adopt(question)
        return question

    def _found(self, question: Question, text: str) -> list[DocumentLike]:
        # Whether plain texts are documents cannot be told by one question.
        (question,) = recording.settled([question], self.retriever or "")
        name = self.retriever
        if name is None and question.searches:
            name = recording.chosen_name([question], None)
        seen = recording.seen_of(question, name, text, self.calls)
        self.searches[text] = recording.calls_of(question, name)
        self._searched.append(seen is not None)
        if seen is None:
            return []
        if seen.documents is None:
            raise seen.error or RuntimeError("it never returned")
        return seen.documents


_BY_RETRIEVER = "a retriever, or a function from question to documents, is for evaluate_retriever"


@dataclass(frozen=True)
class AgentCall(Call):
    """How an agent is asked, and which of its searches count."""

    runnable: Searching

    def asked(self, texts: Sequence[str]) -> AbstractContextManager[None]:
        """Return what is around asking it these questions."""
        return self.runnable.asked(texts)

    @property
    def settings(self) -> dict[str, Any]:
        """What its answers depend on beside the agent and the question."""
        agent = self.runnable
        return {"input_key": agent.input_key, "calls": agent.calls, "evaluated": agent.retriever}


@dataclass(frozen=True)
class AgentRun(Run):
    """One way to ask an agent the questions, whose later searches may come after the cutoff."""

    def _evaluated(self, predicted: list[list[DocumentLike]]) -> EvaluationResult:
        result, questions = super()._evaluated(predicted), self.evaluation.questions
        agent = cast("Searching", self.call.runnable)
        if agent.calls in ("union", "all"):
            searches = [agent.searches.get(text, []) for text in questions.texts]
            recording.warn_of_depth(searches, predicted, questions.actual, self.evaluation.options,
                                    result, repeats=agent.calls == "all")  # fmt: skip
        return result


def records_from_messages(*conversations: Sequence[Any]) -> RetrievalRecorder:
    """Read from the messages of an agent what it searched for and found, after the fact.

    A search is a tool message with documents as its artifact, which a tool with
    ``response_format="content_and_artifact"`` returns, or with documents in its content: as JSON,
    or as content blocks, as tools of MCP return them. Plain texts in these are documents where no
    tool returned any for certain, with a warning, or of the tool that is named when this is
    evaluated. Its question is the last message of a human
    before it: a conversation with several turns holds several questions. What the tool was asked is
    read from the model's message. A tool that failed did search if a tool of its name returned
    documents elsewhere.

    Args:
        *conversations: The messages of each conversation, such as ``state["messages"]``: message
            objects, or the tuples or dicts that LangChain takes for them.

    Returns:
        A recorder with these questions and searches, to evaluate; no search has seconds.

    Raises:
        TypeError: If a conversation is no list of messages.
        ValueError: If a tool message comes before any message of a human.

    Warns:
        KragEvalWarning: If no search was found in any of them.

    >>> from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    >>> call = {"name": "search", "args": {"query": "opening hours"}, "id": "1"}
    >>> found = [{"page_content": "At nine."}]
    >>> recorder = records_from_messages([
    ...     HumanMessage("When does it open?"),
    ...     AIMessage("", tool_calls=[call]),
    ...     ToolMessage("At nine.", tool_call_id="1", artifact=found),
    ...     AIMessage("At nine."),
    ... ])
    >>> recorder.records[["question", "searched_for", "n_documents"]]
                 question   searched_for  n_documents
    0  When does it open?  opening hours            1
    >>> recorder.evaluate({"When does it open?": ["At nine."]}, k=1).to_dict()["hit_rate@1"]
    1.0
    """
    recorder = RetrievalRecorder()
    for number, conversation in enumerate(conversations):
        for question in _questions_in(_messages_of(conversation, number)):
            recorder._adopt(question)
    if conversations and not recorder.records.shape[0]:
        warn(
            _(
                "No search was found: no message of a tool holds documents as its artifact, as "
                "JSON or as content blocks."
            ),
            _(
                "Of messages, only searches of {tool} can be seen; of a running agent, "
                "evaluate_agent"
            ).format(tool=_(_TOOL)),
        )
    return recorder


def _messages_of(conversation: Any, number: int) -> list[BaseMessage]:
    at = Location("conversations", number)
    if not isinstance(conversation, list | tuple):
        problem = f"must be a list of messages, got {errors.clipped(conversation)}"
        raise at.type_error(problem, 'pass its "messages"')
    messages = [recording.as_message(one) for one in conversation]
    if None in messages:
        place = messages.index(None)
        problem = f"must be a message, got {errors.clipped(conversation[place])}"
        raise at.inside(f"[{place}]").type_error(problem, "each conversation is an argument")
    return cast("list[BaseMessage]", messages)


def _questions_in(messages: Sequence[BaseMessage]) -> Iterator[Question]:
    """Yield the turns of a conversation: a message of a human, and the searches after it.

    Messages of a human in a row are one turn, known by the last.
    """
    asked: dict[str | None, Any] = {}
    turn: Question | None = None
    answered = False
    for message in messages:
        if message.type == "human":
            if turn is not None and answered:
                yield turn
            turn = Question(after_others=True)
            turn.take({MESSAGES: [message]})
            answered = False
            continue
        answered = True
        asked.update({call["id"]: call for call in getattr(message, "tool_calls", ())})
        searched = isinstance(message, ToolMessage) and _search_in(message, asked)
        if searched and turn is None:
            problem = f": the tool {searched['name']!r} answered before any message of a human"
            raise InvalidInput("conversations", problem, "pass the messages from the beginning")
        if searched and turn is not None:
            turn.seen.append(Seen(turn, "tool", **searched))
    if turn is not None:
        yield turn


def _search_in(message: ToolMessage, asked: Mapping[str | None, Any]) -> dict[str, Any] | None:
    """Return the search that a tool's message tells of; ``None`` if the tool did not search."""
    documents, texts = returned_in(message)
    if documents is None and texts is None and message.status != "error":
        return None
    failed = documents is None and message.status == "error"
    call = asked.get(message.tool_call_id, {})
    return {
        "name": message.name or call.get("name") or "tool",
        "query": query_in(call.get("args", "")),
        "documents": documents,
        "texts": None if failed else texts,
        "error": ToolException(str(message.text)) if failed else None,
        "call_id": message.tool_call_id,
    }
