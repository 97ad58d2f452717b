"""Agents: real ``create_agent`` and ``StateGraph``, with a model that follows a script.

``Numbered`` finds passage n, then n + 1, for a query that ends in n; so every expected value below
can be counted on the fingers.
"""

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
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from refusals import blamed
from retriever_samples import AsyncNumbered, Numbered, asked_in, passage, question, ranks, rows

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
    tools: tuple[str, ...] = ("search",)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, *args, **kwargs):
        last = max(i for i, one in enumerate(messages) if one.type == "human")
        asked, done = str(messages[last].text), messages[last + 1 :]
        number = sum(one.type == "ai" for one in done)
        queries = [*self.script[asked], [], []][number]
        calls = [{"name": self.tools[i % len(self.tools)], "args": {"query": one},
                  "id": f"{asked} {number}.{i}"} for i, one in enumerate(queries)]  # fmt: skip
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


def of_nodes(state, **nodes):
    """Build a graph whose nodes follow one another."""
    graph = StateGraph(state)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in zip([START, *nodes], nodes, strict=False):
        graph.add_edge(before, after)
    return graph.compile()


AGENTS = {"create_agent": agent_of, "StateGraph": graph_of}


def searching(retriever=None, script=SCRIPT, **more):
    """Return an agent with one tool, which asks a retriever."""
    return agent_of([through_a_retriever(retriever or Numbered())], script, **more)


def asking(text):
    return {"messages": [{"role": "user", "content": text}]}


def recorded(agent, asked=QUESTIONS, way="invoke"):
    """Return a recorder that saw an agent asked some questions."""
    recorder = RetrievalRecorder()
    asked_in(way, agent, [*map(asking, asked)], {"callbacks": [recorder]})
    return recorder


# The recorder


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("make", AGENTS)
@pytest.mark.parametrize(
    "way", ["invoke", "batch", "stream", "ainvoke", "abatch", "astream", "threads"]
)
def test_every_way_to_run_an_agent_is_recorded(way, make, kind):
    """By hand: 0 is at rank 1 of 0, 1; 1 at rank 4 of 5, 6, 0, 1; 2 at rank 1 of 2, 3, 4."""
    recorder = recorded(AGENTS[make]([TOOLS[kind](Numbered())]), way=way)
    result = recorder.evaluate(TRUTH, k=5)
    assert result.labels == QUESTIONS
    assert ranks(result) == [1, 1 / 4, 1]
    assert recorder.names == ["Numbered" if kind == "retriever" else "search"]
    assert (result.retrieval.seconds > 0).all()


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # question 1: passages 5, 6 and 0, 1; question 2: passages 2, 3 and 3, 4.
        ("first", [1, 0, 1]),
        ("last", [1, 1 / 2, 0]),
        ("all", [1, 1 / 4, 1]),
        (None, [1, 1 / 4, 1]),
    ],
)
def test_the_calls_that_count(calls, expected):
    """Reciprocal ranks by hand, of the passages above; ``evaluate_agent`` counts them alike."""
    agent = searching()
    assert ranks(recorded(agent).evaluate(TRUTH, k=5, calls=calls)) == expected
    assert ranks(evaluate_agent(agent, rows(3), k=5, calls=calls or "union")) == expected


def test_what_came_before_takes_no_rank_again():
    """By hand: passages 2, 3, then 3, 4. The union has 4 at rank 3, all calls have it at rank 4."""
    recorder, truth = recorded(searching(), [question(2)]), {question(2): [passage(4)]}
    assert ranks(recorder.evaluate(truth, 5, calls="union")) == [1 / 3]
    assert ranks(recorder.evaluate(truth, 5, calls="all")) == [1 / 4]


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
    tags = {"kind": ["a", "b", "b"]}
    beside = {"tags": tags, "unwanted": {question(1): [passage(6)], question(2): [passage(9)]}}
    result = recorded(searching()).evaluate(TRUTH, k=2, calls="each", **beside)
    calls = [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert result.labels == [f"{question(i)} (call {call})" for i, call in calls]
    assert ranks(result) == [1, 0, 1 / 2, 1, 0]
    np.testing.assert_array_equal(result.tables[2]["clean"], [np.nan, 0, 1, 1, 1])
    assert result.tags == {"call": [call for _, call in calls], "kind": ["a", "b", "b", "b", "b"]}


def test_a_question_without_a_search_keeps_its_row():
    """With a warning; where every call has a row, it has one without a number."""
    agent = searching(script={**SCRIPT, "Hi!": []})
    recorder = recorded(agent, [question(1), "Hi!"])
    truth = {question(1): [passage(1)], "Hi!": ["x"]}
    each = [f"{question(1)} (call 1)", f"{question(1)} (call 2)", "Hi!"]
    for calls, labels in [("union", list(truth)), ("each", each)]:
        with pytest.warns(KragEvalWarning, match="not called for 1 of 2 questions"):
            result = recorder.evaluate(truth, k=5, calls=calls)
        assert result.labels == labels
    assert list(result.tags["call"]) == [1, 2, None]


def test_records_show_what_was_searched_for():
    """The question as the user put it, and what the model made of it; words counted by hand."""
    recorder = recorded(agent_of([through_an_artifact(Numbered())]))
    records = recorder.records
    assert (records.pop("seconds") > 0).all()
    queries = ["look 0", "look 5", "look 0", "look 2", "look 3"]
    # "Passage 0 holds fact 0." twice
    assert records.values.tolist() == [
        [question(i), call, "search", query, 2, 10, None]
        for i, call, query in zip((0, 1, 1, 2, 2), (1, 1, 2, 1, 2), queries, strict=True)
    ]
    assert repr(recorder) == "RetrievalRecorder(3 questions, 5 calls of 'search')"
    nothing = RetrievalRecorder()
    assert [*nothing.records] == [*recorder.records]
    assert repr(nothing) == "RetrievalRecorder(0 questions, no calls)"


def late(request, handler):
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
    recorder = recorded(LATE[make]([TOOLS[kind](Numbered())]), [question(2)])
    assert recorder.records["searched_for"].tolist() == ["look 2", "look 3"]
    assert ranks(recorder.evaluate({question(2): [passage(4)]}, 5)) == [1 / 3]


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
    found = lambda state: {"messages": [str(Numbered().invoke("look 0"))]}  # noqa: E731
    of_nodes(MessagesState, search=found).invoke({"messages": messages}, {"callbacks": [recorder]})
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
    graph = of_nodes(state, search=lambda state: {"user": str(Numbered().invoke("look 0"))[:3]})
    given = state(messages=[HumanMessage("Q")], user="u1")
    graph.invoke(given, {"callbacks": [recorder]})
    assert ranks(recorder.evaluate({"Q": [passage(0)]}, 1)) == [1]


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
    assert ranks(recorder.evaluate({"Q": [passage(0)]}, 1, input_key=input_key)) == [1]
    assert recorder.records["question"].tolist() == ["Another"]


def test_a_list_of_messages_is_a_question_and_a_list_of_texts_is_not():
    """The latter may be anything, so what was searched for is all that is known."""
    recorder = RetrievalRecorder()
    chain = RunnableLambda(lambda given: Numbered().invoke("look 0"))
    for given in ([HumanMessage("Q"), AIMessage("A")], ["some", "texts"]):
        chain.invoke(given, {"callbacks": [recorder]})
    assert recorder.records["question"].tolist() == ["Q", "look 0"]


@without_artifacts
def test_a_conversation_has_a_question_per_turn():
    """By hand: each turn asks about its own passage; the agent remembers those before."""
    agent, recorder = searching(checkpointer=InMemorySaver()), RetrievalRecorder()
    thread = {"configurable": {"thread_id": "1"}, "callbacks": [recorder]}
    for one in QUESTIONS:
        state = agent.invoke(asking(one), thread)
    assert len([one for one in state["messages"] if one.type == "human"]) == 3
    assert ranks(recorder.evaluate(TRUTH, k=5)) == [1, 1 / 4, 1]
    assert records_from_messages(state["messages"]).n_questions == 3


def test_two_tools_count_together_unless_one_is_named():
    """By hand: "search" finds 0, 1 and "faq" 7, 8; the model asks faq first."""
    faq, other = through_an_artifact(Numbered()), through_an_artifact(Numbered())
    faq.name = "faq"
    both = Scripted(script={"Q": [["look 7", "look 0"]]}, tools=("faq", "search"))
    recorder = recorded(create_agent(both, [faq, other]), ["Q"])
    truth = {"Q": [passage(0)]}
    assert ranks(recorder.evaluate(truth, 5)) == [1 / 3]
    assert ranks(recorder.evaluate(truth, 5, retriever="search")) == [1]


# As a context manager


@pytest.mark.parametrize("way", ["invoke", "batch", "stream", "ainvoke", "abatch"])
def test_a_with_block_records_without_a_config(way):
    """And nothing before or after it."""
    agent, recorder = searching(), RetrievalRecorder()
    agent.invoke(asking(question(0)))
    with recorder:
        asked_in(way, agent, [*map(asking, QUESTIONS)], None)
    agent.invoke(asking(question(0)))
    assert recorder.n_questions == 3
    assert ranks(recorder.evaluate(TRUTH, k=5)) == [1, 1 / 4, 1]


def test_a_with_block_and_the_config_together_record_once():
    """It is one recorder, wherever it is named."""
    with RetrievalRecorder() as recorder:
        searching().invoke(asking(question(1)), {"callbacks": [recorder]})
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
    recorder = recorded(searching(script=script), script)
    truth = {**TRUTH, question(2): [passage(2), passage(4)], question(3): [passage(3)]}
    table = recorder.until_found(recorder.evaluate(truth, k=5))
    assert table.index.tolist() == list(script)
    assert table.fillna(-1).values.tolist() == [
        [1, 10, 1, 5], [2, 20, 2, 20], [2, 20, 2, 20], [1, 10, -1, -1]
    ]  # fmt: skip


def test_until_found_refuses_results_of_something_else():
    """Of one call alone, and of other questions."""
    recorder, other = recorded(searching()), RetrievalRecorder()
    Numbered().invoke("look 0", {"callbacks": [other]})
    for result in (
        recorder.evaluate(TRUTH, k=5, calls="first"),
        other.evaluate({"look 0": [passage(0)]}, k=5),
    ):
        with blamed("result", ValueError, match="result"):
            recorder.until_found(result)


# A tool that fails


@wrap_tool_call
def go_on(request, handler):
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
    recorder = recorded(agent_of([TOOLS[kind](retriever)], middleware=[go_on]))
    result = recorder.evaluate(TRUTH, k=5)
    assert ranks(result) == [1, 1 / 2, 1]
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
    assert ranks(result) == [1, 1 / 4, 1]
    assert (result.retrieval.seconds > 0).all()
    assert recorder.n_questions == 3
    assert recorder.until_found(result)["words_until_found"].tolist() == [5, 20, 5]


def test_records_come_in_the_order_of_the_data_set():
    """Whichever question is answered first; so a list of ground truth fits them, too."""
    recorder, backwards = RetrievalRecorder(), rows(3)[::-1]
    agent = searching(Numbered(seconds=0.01))
    evaluate_agent(agent, backwards, k=5, recorder=recorder, max_concurrency=3)
    queries = recorder.records["searched_for"].tolist()
    assert queries == ["look 2", "look 3", "look 5", "look 0", "look 0"]
    assert ranks(recorder.evaluate([row["actual"] for row in backwards], k=5)) == [1, 1 / 4, 1]


def test_aevaluate_agent_does_the_same():
    """Through ``ainvoke``, with a retriever of its own way to be awaited: passages 5; 0; and 2; 3.

    It returns one passage per call, so question 1 finds nothing.
    """
    agent = searching(AsyncNumbered())
    result = asyncio.run(aevaluate_agent(agent, rows(3), k=5, max_concurrency=2))
    assert ranks(result) == [1, 0, 1]


def test_an_agent_that_failed_is_recorded_and_asked_again():
    """By hand: the tool raises on 5, which ends the agent; mended, it is at rank 4."""
    retriever = Numbered(fails_on=frozenset({5}))
    agent = searching(retriever)
    with pytest.raises(ConnectionError):
        evaluate_agent(agent, rows(3), k=5, on_error="raise")
    with pytest.warns(KragEvalWarning, match="1 of 3 queries failed"):
        result = evaluate_agent(agent, rows(3), k=5)
    assert ranks(result) == [1, 0, 1]
    assert result.failures["type"].to_dict() == {question(1): "ConnectionError"}
    retriever.fails_on = frozenset()
    assert ranks(result.retry_failed()) == [1, 1 / 4, 1]


def test_an_agent_all_of_whose_searches_failed_is_a_failure():
    """It goes on and answers; nothing was retrieved for a reason that is told."""
    agent = searching(Numbered(fails_on=frozenset({0})), middleware=[go_on])
    with pytest.warns(KragEvalWarning, match="1 of 3 queries failed"):
        result = evaluate_agent(agent, rows(3), k=5, on_error="record")
    assert result.failures["message"].to_dict() == {question(0): "no answer for 0"}
    assert np.isnan(result.retrieval.seconds[0])


def test_an_agent_that_does_not_search_counts_as_nothing_retrieved():
    """With a warning that says how many."""
    agent = searching(script={**SCRIPT, question(0): []})
    with pytest.warns(KragEvalWarning, match="not search by any retriever for 1 of 3 questions"):
        assert ranks(evaluate_agent(agent, rows(3), k=5)) == [0, 1 / 4, 1]


def test_a_checkpoint_resumes_an_agent_and_refuses_other_calls(tmp_path):
    """What was asked is not asked again; the first calls alone are other answers."""
    retriever = Numbered()
    agent = searching(retriever)
    options = {"k": 5, "checkpoint": tmp_path / "agent.jsonl", "checkpoint_key": "v1"}
    first = evaluate_agent(agent, rows(3), **options)
    assert evaluate_agent(agent, rows(3), **options) == first
    assert len(retriever.asked) == 5
    with pytest.raises(ValueError, match="calls='union', not 'first'"):
        evaluate_agent(agent, rows(3), calls="first", **options)


def test_an_agent_may_take_its_question_under_a_key_of_its_own():
    """As a text; and the retriever is one of its nodes, asked again with another query."""

    class Asked(TypedDict):
        question: str
        found: list

    graph = of_nodes(
        Asked,
        one=lambda state: {"found": Numbered().invoke("look 5")},
        two=lambda state: {"found": Numbered().invoke(state["question"])},
    )
    recorder = RetrievalRecorder()
    result = evaluate_agent(graph, rows(3), k=5, input_key="question", recorder=recorder)
    assert ranks(result) == ranks(recorder.evaluate(TRUTH, 5)) == [1 / 3] * 3


def test_an_agent_is_no_retriever_and_a_retriever_no_agent():
    """Each is refused by the name of what evaluates it, before anything is asked."""
    agent = create_agent(Scripted(script=SCRIPT), [])
    for ask, argument, instead in (
        (lambda: evaluate_retriever(agent, TRUTH), "retriever", "evaluate_agent"),
        (lambda: evaluate_retrievers({"a": agent, "b": 1}, TRUTH), "retriever", "evaluate_agent"),
        (lambda: evaluate_agent(Numbered(), TRUTH), "agent", "evaluate_retriever"),
        (lambda: evaluate_agent(len, TRUTH), "agent", "evaluate_retriever"),
        (lambda: evaluate_agent(StateGraph(MessagesState), TRUTH), "agent", "compile"),
    ):
        with blamed(argument, InvalidType) as caught:
            ask()
        assert instead in str(caught.value.fix)


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
    assert after.records["seconds"].isna().all()
    assert after.records.drop(columns="seconds").equals(recorder.records.drop(columns="seconds"))
    assert after.evaluate(TRUTH, 5).to_dict() == recorder.evaluate(TRUTH, 5).to_dict()
    assert after.evaluate(list(TRUTH.values()), 5).labels == QUESTIONS


def test_a_tool_that_failed_is_read_from_its_message():
    """As a call that returned nothing, if the tool is known to search."""
    retriever = Numbered(fails_on=frozenset({5}))
    agent = agent_of([through_an_artifact(retriever)], middleware=[go_on])
    after = records_from_messages(agent.invoke(asking(question(1)))["messages"])
    assert after.records["searched_for"].tolist() == ["look 5", "look 0"]
    assert after.records["error"].tolist() == ["ToolException: Failed: no answer for 5", None]


@without_artifacts
def test_messages_in_a_row_are_one_turn():
    """Known by the last of them; a turn without a search is a question all the same."""
    messages = ["Hello", "When?", AIMessage("At nine."), "Thanks", AIMessage("You are welcome.")]
    assert records_from_messages(messages).n_questions == 2


def test_messages_without_any_artifact_are_warned_of_at_once():
    """The text alone of what a tool returned tells no documents."""
    call: Any = {"name": "search", "args": {"query": "x"}, "id": "1"}
    tool = ToolMessage("a", tool_call_id="1")
    with pytest.warns(KragEvalWarning, match="No search was found"):
        records_from_messages([HumanMessage("Q"), AIMessage("", tool_calls=[call]), tool])
