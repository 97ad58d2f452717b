"""Agents: real ``create_agent`` and ``StateGraph``, with a model that follows a script.

``Numbered`` finds passage n, then n + 1, for a query that ends in n; so every expected value below
can be counted on the fingers.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from retriever_samples import AsyncNumbered, Numbered, passage, question, rows

from krag_eval import (
    KragEvalWarning,
    RetrievalRecorder,
    aevaluate_agent,
    evaluate_agent,
    evaluate_retriever,
    evaluate_retrievers,
    records_from_messages,
)
from krag_eval.errors import InvalidType

#: What the user asks -> what the model searches for, round by round; calls in a round are parallel.
SCRIPT = {
    question(0): [["look 0"]],
    question(1): [["look 5"], ["look 0"]],
    question(2): [["look 2", "look 3"]],
}
QUESTIONS = list(SCRIPT)
TRUTH = {question(i): [passage(i)] for i in range(3)}

without_artifacts = pytest.mark.filterwarnings("ignore:No search was found")


class Scripted(BaseChatModel):
    """Calls the tools its script names for the last message of a human, and then answers."""

    script: dict[str, list[list[str]]]
    tool: str = "search"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        last = max(i for i, one in enumerate(messages) if one.type == "human")
        asked, done = str(messages[last].text), messages[last + 1 :]
        number = sum(one.type == "ai" for one in done)
        rounds = self.script[asked]
        queries = rounds[number] if number < len(rounds) else []
        calls = [
            {"name": self.tool, "args": {"query": one}, "id": f"{asked} {number}.{i}"}
            for i, one in enumerate(queries)
        ]
        message = AIMessage("" if calls else "Here you are.", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def through_a_retriever(retriever):
    return create_retriever_tool(retriever, "search", "Finds passages.")


def through_an_artifact(retriever):
    """As LangChain's tutorial on agents has it: no retriever event is fired."""

    @tool(response_format="content_and_artifact")
    def search(query: str):
        """Find passages."""
        found = retriever._get_relevant_documents(query, run_manager=None)
        return "\n".join(one.page_content for one in found), found

    return search


TOOLS = {"retriever": through_a_retriever, "artifact": through_an_artifact}


def agent_of(tools, script=SCRIPT, **more):
    return create_agent(Scripted(script=script), tools, **more)


def graph_of(tools, script=SCRIPT):
    """Build the same agent by hand."""
    model = Scripted(script=script)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", tools if isinstance(tools, ToolNode) else ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


AGENTS = {"create_agent": agent_of, "StateGraph": graph_of}


def asking(text):
    return {"messages": [{"role": "user", "content": text}]}


async def _each(agent, config):
    for one in QUESTIONS:
        await agent.ainvoke(asking(one), config)


async def _each_streamed(agent, config):
    for one in QUESTIONS:
        async for _ in agent.astream(asking(one), config):
            pass


WAYS = {
    "invoke": lambda agent, c: [agent.invoke(asking(one), c) for one in QUESTIONS],
    "batch": lambda agent, c: agent.batch([asking(one) for one in QUESTIONS], c),
    "stream": lambda agent, c: [list(agent.stream(asking(one), c)) for one in QUESTIONS],
    "ainvoke": lambda agent, c: asyncio.run(_each(agent, c)),
    "abatch": lambda agent, c: asyncio.run(agent.abatch([asking(one) for one in QUESTIONS], c)),
    "astream": lambda agent, c: asyncio.run(_each_streamed(agent, c)),
    "threads": lambda agent, c: list(
        ThreadPoolExecutor(3).map(lambda one: agent.invoke(asking(one), c), QUESTIONS)
    ),
}


# The recorder


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("make", AGENTS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_an_agent_is_recorded(way, make, kind):
    """By hand: 0 is at rank 1 of 0, 1; 1 at rank 4 of 5, 6, 0, 1; 2 at rank 1 of 2, 3, 4.

    So MRR is (1 + 1/4 + 1) / 3 = 0.75.
    """
    recorder = RetrievalRecorder()
    agent = AGENTS[make]([TOOLS[kind](Numbered())])
    WAYS[way](agent, {"callbacks": [recorder]})
    result = recorder.evaluate(TRUTH, k=5)
    assert result.labels == QUESTIONS
    assert result.to_dict()["mrr@5"] == pytest.approx(0.75)
    assert recorder.names == ["Numbered" if kind == "retriever" else "search"]
    assert (result.retrieval.seconds > 0).all()


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # question 1: passages 5, 6 and 0, 1; question 2: passages 2, 3 and 3, 4.
        ("first", [1, 0, 1]),
        ("last", [1, 1 / 2, 0]),
        ("union", [1, 1 / 4, 1]),
        (None, [1, 1 / 4, 1]),
    ],
)
def test_the_calls_that_count(calls, expected):
    """Reciprocal ranks by hand, of the passages above."""
    recorder = RetrievalRecorder()
    WAYS["invoke"](agent_of([through_a_retriever(Numbered())]), {"callbacks": [recorder]})
    result = recorder.evaluate(TRUTH, k=5, calls=calls)
    assert result.per_query()["reciprocal_rank"].tolist() == pytest.approx(expected)


def test_what_came_before_takes_no_rank_again():
    """By hand: passages 2, 3, then 3, 4. The union has 4 at rank 3, all calls have it at rank 4."""
    recorder = RetrievalRecorder()
    agent = agent_of([through_a_retriever(Numbered())])
    agent.invoke(asking(question(2)), {"callbacks": [recorder]})
    truth = {question(2): [passage(4)]}
    assert recorder.evaluate(truth, 5, calls="union").to_dict()["mrr@5"] == pytest.approx(1 / 3)
    assert recorder.evaluate(truth, 5, calls="all").to_dict()["mrr@5"] == pytest.approx(1 / 4)


def test_the_same_document_has_the_same_id_or_else_the_same_text():
    """By hand, of a (id 1), b (2), then b (3), a (no id), c (1): a, b and another b.

    The second a has a known text and no id that would tell it apart; c comes under a known id.
    """
    found = {
        "one": [Document("a", id="1"), Document("b", id="2")],
        "two": [Document("b", id="3"), Document("a"), Document("c", id="1")],
    }
    recorder = RetrievalRecorder()
    search = recorder.wrap(found.__getitem__, name="search")
    with recorder:
        RunnableLambda(lambda asked: [search("one"), search("two")]).invoke("Q")
    result = recorder.evaluate({"Q": ["b"]}, calls="union")
    assert result.explain("Q").predicted["text"].tolist() == ["a", "b", "b"]


def test_each_call_has_a_row_and_a_tag():
    """By hand: question 1 has two calls, 5 6 and 0 1; question 2 has 2 3 and 3 4."""
    recorder = RetrievalRecorder()
    WAYS["invoke"](agent_of([through_a_retriever(Numbered())]), {"callbacks": [recorder]})
    kind = ["a", "b", "b"]
    result = recorder.evaluate(TRUTH, k=2, calls="each", tags={"kind": kind})
    assert result.labels == [
        f"{question(0)} (call 1)",
        f"{question(1)} (call 1)",
        f"{question(1)} (call 2)",
        f"{question(2)} (call 1)",
        f"{question(2)} (call 2)",
    ]
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 0, 1 / 2, 1, 0]
    assert list(result.tags["call"]) == [1, 1, 2, 1, 2]
    assert list(result.tags["kind"]) == ["a", "b", "b", "b", "b"]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"tags": {"call": [1, 2, 3]}}, "tags"),
        ({"tags": {"kind": [1, 2]}}, "tags"),
        ({"queries": ["a", "b"]}, "queries"),
    ],
)
def test_what_goes_by_question_must_fit_the_questions(options, argument):
    """Also where there is a row per call; and no tag of the user's is replaced."""
    recorder = RetrievalRecorder()
    WAYS["invoke"](agent_of([through_a_retriever(Numbered())]), {"callbacks": [recorder]})
    with pytest.raises(ValueError, match=argument) as caught:
        recorder.evaluate(TRUTH, calls="each", **options)
    assert caught.value.argument.startswith(argument)


def test_a_list_of_messages_is_a_question_and_a_list_of_texts_is_not():
    """The latter may be anything, so what was searched for is all that is known."""
    recorder = RetrievalRecorder()
    chain = RunnableLambda(lambda given: Numbered().invoke("look 0"))
    for given in ([HumanMessage("Q"), AIMessage("A")], ["some", "texts"]):
        chain.invoke(given, {"callbacks": [recorder]})
    assert recorder.records["question"].tolist() == ["Q", "look 0"]


def test_a_question_without_a_search_keeps_its_row():
    """Nothing is left out: it counts as nothing retrieved, in every way to count calls."""
    recorder = RetrievalRecorder()
    agent = agent_of([through_a_retriever(Numbered())], {**SCRIPT, "Hi!": []})
    for one in (question(1), "Hi!"):
        agent.invoke(asking(one), {"callbacks": [recorder]})
    truth = {question(1): [passage(1)], "Hi!": ["x"]}
    for calls, labels in [("union", list(truth)), ("each", None)]:
        with pytest.warns(KragEvalWarning, match="not called for 1 of 2 questions"):
            result = recorder.evaluate(truth, k=5, calls=calls)
        expected = labels or [f"{question(1)} (call 1)", f"{question(1)} (call 2)", "Hi!"]
        assert result.labels == expected
    assert list(result.tags["call"]) == [1, 2, None]


def test_records_show_what_was_searched_for():
    """The question as the user put it, and what the model made of it; words counted by hand."""
    recorder = RetrievalRecorder()
    WAYS["invoke"](agent_of([through_an_artifact(Numbered())]), {"callbacks": [recorder]})
    records = recorder.records
    assert records["question"].tolist() == [question(i) for i in (0, 1, 1, 2, 2)]
    assert records["call"].tolist() == [1, 1, 2, 1, 2]
    assert records["retriever"].unique().tolist() == ["search"]
    assert records["searched_for"].tolist() == ["look 0", "look 5", "look 0", "look 2", "look 3"]
    assert records["n_documents"].tolist() == [2] * 5
    assert records["words"].tolist() == [10] * 5  # "Passage 0 holds fact 0." twice
    assert (records["seconds"] > 0).all()
    assert records["error"].tolist() == [None] * 5


def test_records_of_nothing_have_their_columns():
    """An empty recorder shows an empty table."""
    assert RetrievalRecorder().records.columns.tolist() == [
        "question",
        "call",
        "retriever",
        "searched_for",
        "n_documents",
        "words",
        "seconds",
        "error",
    ]


def test_the_repr_says_in_one_line_what_was_recorded():
    """Five calls for three questions."""
    recorder = RetrievalRecorder()
    assert repr(recorder) == "RetrievalRecorder(0 questions, no calls)"
    WAYS["invoke"](agent_of([through_a_retriever(Numbered())]), {"callbacks": [recorder]})
    assert repr(recorder) == "RetrievalRecorder(3 questions, 5 calls of 'Numbered')"


def late(request: Any, handler: Any) -> Any:
    """Start the first of two parallel calls after the second."""
    time.sleep(0.05 if request.tool_call["args"]["query"].endswith("2") else 0)
    return handler(request)


LATE = {
    "create_agent": lambda tools: agent_of(tools, middleware=[wrap_tool_call(late)]),
    "StateGraph": lambda tools: graph_of(ToolNode(tools, wrap_tool_call=late)),
}


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("make", LATE)
def test_parallel_calls_count_in_the_order_the_model_asked_for_them(make, kind):
    """By hand: 2, 3, then 4, although the search for 3 starts first; so 4 is at rank 3."""
    recorder = RetrievalRecorder()
    agent = LATE[make]([TOOLS[kind](Numbered())])
    agent.invoke(asking(question(2)), {"callbacks": [recorder]})
    assert recorder.records["searched_for"].tolist() == ["look 2", "look 3"]
    result = recorder.evaluate({question(2): [passage(4)]}, 5)
    assert result.to_dict()["mrr@5"] == pytest.approx(1 / 3)


# Which question


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "Q")],
        [("human", "Q")],
        [HumanMessage("Q")],
        [{"role": "user", "content": "Q"}],
        [{"type": "human", "content": "Q"}],
        [{"role": "user", "content": [{"type": "text", "text": "Q"}]}],
        ["Q"],
        "Q",
        HumanMessage("Q"),
        [("system", "Be brief."), ("user", "Before?"), ("ai", "Yes."), ("user", "Q")],
        [("user", "Q"), ("ai", "A question back")],
    ],
)
def test_the_question_is_the_last_message_of_a_human(messages):
    """In every form in which LangChain takes messages."""
    recorder = RetrievalRecorder()
    graph = StateGraph(MessagesState)
    graph.add_node("search", lambda state: {"messages": [str(Numbered().invoke("look 0"))]})
    graph.add_edge(START, "search")
    graph.compile().invoke({"messages": messages}, {"callbacks": [recorder]})
    assert recorder.records["question"].tolist() == ["Q"]


@dataclass
class State:
    """A state that is an object."""

    messages: Annotated[list, add_messages]
    user: str = "u1"
    chat: list = field(default_factory=list)


class Typed(TypedDict):
    """A state with texts of its own."""

    messages: Annotated[list, add_messages]
    user: str


@pytest.mark.parametrize("state", [State, Typed])
def test_messages_come_before_other_texts_of_the_state(state):
    """The user's name is no question."""
    recorder = RetrievalRecorder()
    graph = StateGraph(state)
    graph.add_node("search", lambda state: {"user": str(Numbered().invoke("look 0"))[:3]})
    graph.add_edge(START, "search")
    given = state(messages=[HumanMessage("Q")], user="u1")
    graph.compile().invoke(given, {"callbacks": [recorder]})
    assert recorder.evaluate({"Q": [passage(0)]}, 1).to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize(
    "input_key",
    ["chat", "topic", lambda given: given["chat"][0][1] if len(given["chat"]) == 1 else "?"],
)
def test_another_key_or_a_function_finds_the_question(input_key):
    """A text under the key, the last message of a human under it, or what the function returns.

    What the caller does with its list afterwards changes nothing.
    """
    recorder, chat = RetrievalRecorder(), [("user", "Q")]
    chain = RunnableLambda(lambda given: Numbered().invoke("look 0"))
    given = {"chat": chat, "topic": "Q", "messages": [("user", "Another")]}
    chain.invoke(given, {"callbacks": [recorder]})
    chat.append(("user", "Later"))
    truth = {"Q": [passage(0)]}
    assert recorder.evaluate(truth, 1, input_key=input_key).to_dict()["hit_rate@1"] == 1
    assert recorder.records["question"].tolist() == ["Another"]


def test_a_function_that_finds_no_text_is_refused():
    """With the argument it came by."""
    recorder = RetrievalRecorder()
    Numbered().invoke("look 0", {"callbacks": [recorder]})
    with pytest.raises(TypeError) as caught:
        recorder.evaluate({"Q": ["a"]}, input_key=len)
    assert caught.value.argument == "input_key"


@without_artifacts
def test_a_conversation_has_a_question_per_turn():
    """By hand: both turns ask about their own passage; the agent remembers the first."""
    agent = agent_of([through_a_retriever(Numbered())], checkpointer=InMemorySaver())
    recorder = RetrievalRecorder()
    thread = {"configurable": {"thread_id": "1"}, "callbacks": [recorder]}
    for one in QUESTIONS:
        state = agent.invoke(asking(one), thread)
    assert len([one for one in state["messages"] if one.type == "human"]) == 3
    result = recorder.evaluate(TRUTH, k=5)
    assert result.to_dict()["mrr@5"] == pytest.approx(0.75)
    after = records_from_messages(state["messages"])
    assert after.n_questions == 3


def test_two_tools_count_together_unless_one_is_named():
    """By hand: "search" finds 0, 1 and "faq" 7, 8; the model asks faq first."""
    faq, other = through_an_artifact(Numbered()), through_an_artifact(Numbered())
    faq.name, other.name = "faq", "search"

    class Both(Scripted):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            names = ["faq", "search"]
            calls = [
                {"name": name, "args": {"query": f"look {n}"}, "id": name}
                for name, n in zip(names, (7, 0), strict=True)
            ]
            done = messages[-1].type == "tool"
            message = AIMessage("", tool_calls=[] if done else calls)
            return ChatResult(generations=[ChatGeneration(message=message)])

    recorder = RetrievalRecorder()
    agent = create_agent(Both(script={}), [faq, other])
    agent.invoke(asking("Q"), {"callbacks": [recorder]})
    truth = {"Q": [passage(0)]}
    assert recorder.evaluate(truth, 5).to_dict()["mrr@5"] == pytest.approx(1 / 3)
    named = recorder.evaluate(truth, 5, retriever="search")
    assert named.to_dict()["mrr@5"] == 1


# As a context manager


@pytest.mark.parametrize("way", ["invoke", "batch", "stream", "ainvoke", "abatch"])
def test_a_with_block_records_without_a_config(way):
    """And nothing before or after it."""
    agent = agent_of([through_a_retriever(Numbered())])
    recorder = RetrievalRecorder()
    agent.invoke(asking(question(0)))
    with recorder:
        WAYS[way](agent, None)
    agent.invoke(asking(question(0)))
    assert recorder.n_questions == 3
    assert recorder.evaluate(TRUTH, k=5).to_dict()["mrr@5"] == pytest.approx(0.75)


def test_a_with_block_and_the_config_together_record_once():
    """It is one recorder, wherever it is named."""
    with RetrievalRecorder() as recorder:
        agent = agent_of([through_a_retriever(Numbered())])
        agent.invoke(asking(question(1)), {"callbacks": [recorder]})
    assert len(recorder.records) == 2


def test_one_recorder_may_be_entered_by_several_threads():
    """Each leaves its own block, in whatever order."""
    recorder, both = RetrievalRecorder(), Barrier(2, timeout=10)

    def ask(number):
        with recorder:
            both.wait()
            Numbered().invoke(f"look {number}")
            if number == 0:
                both.wait()
        if number == 1:  # leaves first, though it may have entered first too
            both.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, range(2)))
    assert sorted(recorder.records["searched_for"]) == ["look 0", "look 1"]


def test_of_blocks_within_blocks_the_innermost_records():
    """And the outer one goes on after it, also after an error."""
    retriever = Numbered()
    with RetrievalRecorder() as outer:
        inner = RetrievalRecorder()
        with pytest.raises(ValueError, match="passage"), inner:
            retriever.invoke("a passage without number: passage")
        retriever.invoke("look 2")
    assert inner.records["error"].str.contains("ValueError").all()
    assert outer.records["searched_for"].tolist() == ["look 2"]


# What it took


def test_calls_and_words_until_everything_was_found():
    """By hand; a passage has 5 words, and every call returns 2.

    Question 0: one call, found by the first passage. Question 1: found by the fourth passage read,
    in the second call. Question 2: passages 2, 3, 3, 4; 2 and 4 are wanted, so all four are read,
    the one that came again included. Question 3: never.
    """
    script = {**SCRIPT, question(3): [["look 8"]]}
    recorder = RetrievalRecorder()
    agent = agent_of([through_a_retriever(Numbered())], script)
    for one in script:
        agent.invoke(asking(one), {"callbacks": [recorder]})
    truth = {**TRUTH, question(2): [passage(2), passage(4)], question(3): [passage(3)]}
    table = recorder.until_found(recorder.evaluate(truth, k=5))
    assert table.index.tolist() == list(script)
    assert table["calls"].tolist() == [1, 2, 2, 1]
    assert table["words"].tolist() == [10, 20, 20, 10]
    assert table["calls_until_found"].astype(object).tolist()[:3] == [1, 2, 2]
    assert table["words_until_found"].astype(object).tolist()[:3] == [5, 20, 20]
    assert table["calls_until_found"].isna().tolist() == [False, False, False, True]


def test_until_found_refuses_results_of_something_else():
    """Of one call alone, and of other questions."""
    recorder = RetrievalRecorder()
    WAYS["invoke"](agent_of([through_a_retriever(Numbered())]), {"callbacks": [recorder]})
    other = RetrievalRecorder()
    Numbered().invoke("look 0", {"callbacks": [other]})
    for result in (
        recorder.evaluate(TRUTH, k=5, calls="first"),
        other.evaluate({"look 0": [passage(0)]}, k=5),
    ):
        with pytest.raises(ValueError, match="result") as caught:
            recorder.until_found(result)
        assert caught.value.argument == "result"


# A tool that fails


@wrap_tool_call
def go_on(request: Any, handler: Any) -> ToolMessage:
    """Tell the model of an error, as agents in production do."""
    try:
        return handler(request)
    except ConnectionError as error:
        text = f"Failed: {error}"
        return ToolMessage(text, tool_call_id=request.tool_call["id"], status="error")


@pytest.mark.parametrize("kind", TOOLS)
def test_a_call_that_failed_adds_nothing(kind):
    """By hand: question 1 fails on 5, and then finds 0, 1; so 1 is at rank 2."""
    retriever = Numbered(fails_on=frozenset({5}))
    recorder = RetrievalRecorder()
    WAYS["invoke"](
        agent_of([TOOLS[kind](retriever)], middleware=[go_on]), {"callbacks": [recorder]}
    )
    result = recorder.evaluate(TRUTH, k=5)
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 1 / 2, 1]
    assert result.failures.empty
    errors = recorder.records["error"].tolist()
    assert errors == [None, "ConnectionError: no answer for 5", None, None, None]
    with pytest.warns(KragEvalWarning, match="failed for 1 of 3"):
        first = recorder.evaluate(TRUTH, k=5, calls="first")
    assert first.failures["message"].to_dict() == {question(1): "no answer for 5"}


@without_artifacts
def test_a_tool_that_does_not_search_is_left_out():
    """Its artifact is no list of documents, or it has none."""

    @tool
    def clock(query: str) -> str:
        """Tell the time."""
        return "noon"

    @tool(response_format="content_and_artifact")
    def chart(query: str):
        """Draw."""
        return "drawn", ["a", "b"]

    for one in (clock, chart):
        one.name = "search"
        recorder = RetrievalRecorder()
        state = agent_of([one]).invoke(asking(question(0)), {"callbacks": [recorder]})
        for records in (recorder, records_from_messages(state["messages"])):
            assert records.names == []
            with pytest.raises(ValueError, match="none was seen") as caught:
                records.evaluate({question(0): ["a"]})
            assert "content_and_artifact" in str(caught.value.fix)


# Asking an agent the questions of a data set


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("make", AGENTS)
def test_evaluate_agent_asks_every_question(make, kind):
    """The ranks above: 1, 4, 1."""
    recorder = RetrievalRecorder()
    agent = AGENTS[make]([TOOLS[kind](Numbered())])
    result = evaluate_agent(agent, rows(3), k=5, recorder=recorder, progress=False)
    assert result.labels == QUESTIONS
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 1 / 4, 1]
    assert (result.retrieval.seconds > 0).all()
    assert recorder.n_questions == 3
    table = recorder.until_found(result)
    assert table["words_until_found"].tolist() == [5, 20, 5]


def test_records_come_in_the_order_of_the_data_set():
    """Whichever question is answered first; so a list of ground truth fits them, too."""
    recorder = RetrievalRecorder()
    agent = agent_of([through_a_retriever(Numbered(seconds=0.01))])
    backwards = rows(3)[::-1]
    evaluate_agent(agent, backwards, k=5, recorder=recorder, max_concurrency=3)
    assert (
        recorder.records["searched_for"].tolist() == ["look 2", "look 3", "look 5"] + ["look 0"] * 2
    )
    result = recorder.evaluate([row["actual"] for row in backwards], k=5)
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 1 / 4, 1]


def test_aevaluate_agent_does_the_same():
    """Through ``ainvoke``, with a retriever of its own way to be awaited: passages 5; 0; and 2; 3.

    It returns one passage per call, so question 1 finds nothing.
    """
    agent = agent_of([through_a_retriever(AsyncNumbered())])
    result = asyncio.run(aevaluate_agent(agent, rows(3), k=5, max_concurrency=2))
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("calls", "expected"), [("first", [1, 0, 1]), ("last", [1, 1 / 2, 0]), ("all", [1, 1 / 4, 1])]
)
def test_evaluate_agent_counts_the_calls_it_is_told(calls, expected):
    """As the recorder does."""
    agent = agent_of([through_a_retriever(Numbered())])
    result = evaluate_agent(agent, rows(3), k=5, calls=calls)
    assert result.per_query()["reciprocal_rank"].tolist() == expected


def test_an_agent_that_failed_is_recorded_and_asked_again():
    """By hand: the tool raises on 5, which ends the agent; mended, it is at rank 4."""
    retriever = Numbered(fails_on=frozenset({5}))
    agent = agent_of([through_a_retriever(retriever)])
    with pytest.raises(ConnectionError):
        evaluate_agent(agent, rows(3), k=5, on_error="raise")
    with pytest.warns(KragEvalWarning, match="1 of 3 queries failed"):
        result = evaluate_agent(agent, rows(3), k=5)
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 0, 1]
    assert result.failures["type"].to_dict() == {question(1): "ConnectionError"}
    retriever.fails_on = frozenset()
    assert result.retry_failed().per_query()["reciprocal_rank"].tolist() == [1, 1 / 4, 1]


def test_an_agent_all_of_whose_searches_failed_is_a_failure():
    """It goes on and answers; nothing was retrieved for a reason that is told."""
    retriever = Numbered(fails_on=frozenset({0}))
    agent = agent_of([through_a_retriever(retriever)], middleware=[go_on])
    with pytest.warns(KragEvalWarning, match="1 of 3 queries failed"):
        result = evaluate_agent(agent, rows(3), k=5, on_error="record")
    assert result.failures["message"].to_dict() == {question(0): "no answer for 0"}
    assert np.isnan(result.retrieval.seconds[0])


def test_an_agent_that_does_not_search_counts_as_nothing_retrieved():
    """With a warning that says how many."""
    agent = agent_of([through_a_retriever(Numbered())], {**SCRIPT, question(0): []})
    with pytest.warns(
        KragEvalWarning, match="did not search by any retriever for 1 of 3 questions"
    ):
        result = evaluate_agent(agent, rows(3), k=5)
    assert result.per_query()["reciprocal_rank"].tolist() == [0, 1 / 4, 1]


def test_a_checkpoint_resumes_an_agent_and_refuses_other_calls(tmp_path):
    """What was asked is not asked again; the first calls alone are other answers."""
    path, retriever = tmp_path / "agent.jsonl", Numbered()
    agent = agent_of([through_a_retriever(retriever)])
    options = {"k": 5, "checkpoint": path, "checkpoint_key": "v1"}
    first = evaluate_agent(agent, rows(3), **options)
    n_asked = len(retriever.asked)
    assert evaluate_agent(agent, rows(3), **options) == first
    assert len(retriever.asked) == n_asked == 5
    with pytest.raises(ValueError, match="calls='union', not 'first'"):
        evaluate_agent(agent, rows(3), calls="first", **options)


def test_an_agent_may_take_its_question_under_a_key_of_its_own():
    """As a text; and the retriever is one of its nodes, asked again with another query."""

    class Asked(TypedDict):
        question: str
        found: list

    graph = StateGraph(Asked)
    graph.add_node("one", lambda state: {"found": Numbered().invoke("look 5")})
    graph.add_node("two", lambda state: {"found": Numbered().invoke(state["question"])})
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    recorder = RetrievalRecorder()
    result = evaluate_agent(graph.compile(), rows(3), k=5, input_key="question", recorder=recorder)
    assert result.per_query()["reciprocal_rank"].tolist() == [1 / 3] * 3
    assert recorder.evaluate(TRUTH, 5).per_query()["reciprocal_rank"].tolist() == [1 / 3] * 3


@pytest.mark.parametrize(
    ("arguments", "error", "argument"),
    [
        ({"agent": lambda question: []}, TypeError, "agent"),
        ({"agent": StateGraph(MessagesState)}, TypeError, "agent"),
        ({"calls": "each"}, ValueError, "calls"),
        ({"calls": "one"}, ValueError, "calls"),
        ({"calls": 1}, TypeError, "calls"),
        ({"retriever": 1}, TypeError, "retriever"),
        ({"input_key": ""}, ValueError, "input_key"),
        ({"recorder": "yes"}, TypeError, "recorder"),
        ({"on_error": "ignore"}, ValueError, "on_error"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(arguments, error, argument):
    """The error names the argument."""
    retriever = Numbered()
    agent = agent_of([through_a_retriever(retriever)])
    with pytest.raises(error) as caught:
        evaluate_agent(**{"agent": agent, "dataset": rows(3), **arguments})
    assert caught.value.argument == argument
    assert retriever.asked == []


# After the fact


@pytest.mark.parametrize("as_dicts", [False, True])
@pytest.mark.parametrize("make", AGENTS)
def test_messages_tell_the_same_as_a_recorder(make, as_dicts):
    """Every number; only the seconds are unknown. Also from messages that went through JSON."""
    recorder = RetrievalRecorder()
    agent = AGENTS[make]([through_an_artifact(Numbered())])
    states = [agent.invoke(asking(one), {"callbacks": [recorder]}) for one in QUESTIONS]
    messages = [state["messages"] for state in states]
    if as_dicts:
        messages = [[one.model_dump() for one in conversation] for conversation in messages]
    after = records_from_messages(*messages)
    assert after.records.drop(columns="seconds").equals(recorder.records.drop(columns="seconds"))
    assert after.records["seconds"].isna().all()
    assert after.evaluate(TRUTH, 5).to_dict() == recorder.evaluate(TRUTH, 5).to_dict()
    assert after.evaluate(list(TRUTH.values()), 5).labels == QUESTIONS


def test_a_tool_that_failed_is_read_from_its_message():
    """As a call that returned nothing, if the tool is known to search."""
    retriever = Numbered(fails_on=frozenset({5}))
    agent = agent_of([through_an_artifact(retriever)], middleware=[go_on])
    state = agent.invoke(asking(question(1)))
    after = records_from_messages(state["messages"])
    assert after.records["searched_for"].tolist() == ["look 5", "look 0"]
    assert after.records["error"].tolist() == ["ToolException: Failed: no answer for 5", None]


@without_artifacts
def test_messages_in_a_row_are_one_turn():
    """Known by the last of them; a turn without a search is a question all the same."""
    after = records_from_messages(
        ["Hello", "When?", AIMessage("At nine."), "Thanks", AIMessage("You are welcome.")]
    )
    assert after.n_questions == 2


@pytest.mark.parametrize(
    ("conversation", "error"),
    [
        ({"messages": []}, TypeError),
        ("text", TypeError),
        ([("user", "Q"), 3], TypeError),
        ([["user"], [HumanMessage("Q")]], TypeError),
        ([ToolMessage("x", tool_call_id="1", artifact=[Document("a")])], ValueError),
    ],
)
def test_what_is_no_conversation_is_refused(conversation, error):
    """With the place of the conversation."""
    with pytest.raises(error) as caught:
        records_from_messages([("user", "Q")], conversation)
    assert caught.value.argument == "conversations"


def test_an_agent_is_no_retriever_and_a_retriever_no_agent() -> None:
    """Each is refused by the name of what evaluates it, before anything is asked."""
    agent = create_agent(Scripted(script=SCRIPT), [])
    for ask in (
        lambda: evaluate_retriever(agent, TRUTH),
        lambda: evaluate_retrievers({"a": agent, "b": Numbered()}, TRUTH),
    ):
        with pytest.raises(InvalidType) as info:
            ask()
        assert info.value.argument == "retriever"
        assert "evaluate_agent" in str(info.value.fix)
    for retriever in (Numbered(), lambda question: [question]):
        with pytest.raises(InvalidType) as info:
            evaluate_agent(retriever, TRUTH)  # type: ignore[arg-type]
        assert info.value.argument == "agent"
        assert "evaluate_retriever" in str(info.value.fix)


def test_messages_without_any_artifact_are_warned_of_at_once() -> None:
    """The text alone of what a tool returned tells no documents."""
    call = {"name": "search", "args": {"query": "x"}, "id": "1"}
    messages = [
        HumanMessage("Q"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("a", tool_call_id="1"),
    ]
    with pytest.warns(KragEvalWarning, match="No search was found"):
        records_from_messages(messages)
