"""What a cutoff does not see of an agent's later searches, and documents in messages of tools.

Search 1 returns ten wrong documents, search 2 the right one first. Of all of them, the right one is
at rank 11: at k = 10 recall and MRR are 0, at k=None 1 and 1 / 11 = 0.0909; of the last search, and
of the best one, both are 1.
"""

import json
import re

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from krag_eval import KragEvalWarning, RetrievalRecorder, evaluate_agent, records_from_messages

QUESTION = "When does it open?"
TRUTH = {QUESTION: ["right"]}
PAGES = {
    "first": [f"wrong {n}" for n in range(10)],
    "second": ["right", "other"],
    "again": ["wrong 0", "wrong 1"],
}
VALUES = ["0.0000, MRR 0.0000", "1.0000, MRR 1.0000", "1.0000, MRR 0.0909", "1.0000, MRR 1.0000"]


def searching(*queries):
    """Return an agent that searches for these, and a recorder that wraps its search."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(PAGES.__getitem__, name="search")
    return RunnableLambda(lambda _state: [search.invoke(one) for one in queries]), recorder


def evaluated(queries, k, calls):
    return evaluate_agent(searching(*queries)[0], TRUTH, k, calls=calls)


def recorded(queries, k, calls):
    agent, recorder = searching(*queries)
    with recorder:
        agent.invoke({"messages": [("user", QUESTION)]})
    return recorder.evaluate(TRUTH, k, calls=calls)


def from_messages(queries, k, calls):
    return records_from_messages(conversation(
        [[{"page_content": one} for one in PAGES[query]] for query in queries], queries, "artifact",
    )).evaluate(TRUTH, k, calls=calls)  # fmt: skip


def conversation(answers, queries=("x",), place="content"):
    """Return the messages of an agent whose searches returned something."""
    messages = [HumanMessage(QUESTION)]
    for number, (query, answer) in enumerate(zip(queries, answers, strict=True)):
        call = {"name": "search", "args": {"query": query}, "id": str(number)}
        given = {"content": "", place: answer}
        messages += [AIMessage("", tool_calls=[call]),
                     ToolMessage(**given, tool_call_id=str(number), name="search")]  # fmt: skip
    return [*messages, AIMessage("At nine.")]


WAYS = pytest.mark.parametrize("way", [evaluated, recorded, from_messages])


@WAYS
@pytest.mark.parametrize(("calls", "k"), [("union", 10), ("all", [1, 10]), ("union", [5, "100w"])])
def test_a_later_search_behind_the_cutoff_is_said(way, calls, k):
    """Which search, from which rank on, and what every way to count comes to."""
    with pytest.warns(KragEvalWarning, match="later search") as caught:
        result = way(("first", "second"), k, calls)
    assert result.to_dict()[f"mrr@{10 if k != [5, '100w'] else 5}"] == 0.0
    (message,) = [str(one.message) for one in caught if "later search" in str(one.message)]
    assert re.findall(r"recall (\S+, MRR \S+?)[;,.]? ", message.replace("; ", ", ") + " ") == VALUES
    for part in ("call 2 of 'search'", "'second'", "rank 11", "1 of 1", 'calls="last"', "k=None"):
        assert part in message


@WAYS
@pytest.mark.parametrize(
    ("queries", "k", "calls"),
    [(("first", "second"), 11, "union"), (("first", "second"), None, "union"),
     (("first", "second"), [1, None], "union"), (("first", "second"), 10, "last"),
     (("first", "second"), 10, "first"), (("first",), 1, "union"),
     (("first", "again"), 10, "union")],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*matched nothing")
@pytest.mark.filterwarnings("ignore:.*has at most")
def test_nothing_is_said_where_nothing_is_lost(way, queries, k, calls):
    """Where a document of each search is looked at, or a later one brought nothing new."""
    way(queries, k, calls)  # warnings are errors


def test_each_question_counts_with_its_best_search():
    """A question of one search counts with that, whether the agent searched again for others.

    Recall at 2: 1/2 of both searches, of the last and of the best one, where the second question's
    only search finds it; the first question's second search finds it, too, but at rank 3.
    """
    pages = {"a": ["x", "y"], "b": ["right"], "c": ["there"]}
    recorder = RetrievalRecorder()
    search = recorder.wrap(pages.__getitem__, name="search")
    script = {"1?": "ab", "2?": "c"}
    agent = RunnableLambda(
        lambda state: [search.invoke(one) for one in script[state["messages"][0]["content"]]]
    )
    truth = {"1?": ["right"], "2?": ["there"]}
    with pytest.warns(KragEvalWarning, match="1 of 2 questions") as caught:
        evaluate_agent(agent, truth, 2, max_concurrency=1)
    told = next(str(one.message) for one in caught if "later search" in str(one.message))
    assert re.findall(r"recall (\d\.\d+)", told) == ["0.5000", "1.0000", "1.0000", "1.0000"]


# Documents in the content of messages

OBJECTS = [{"text": "other", "id": "d1"}, {"text": "right", "id": "d2", "score": 0.5}]
BLOCKS = [{"type": "text", "text": json.dumps(one)} for one in OBJECTS]
TEXTS = ["other", "right"]
PLAIN_BLOCKS = [{"type": "text", "text": one} for one in TEXTS]
SURE = {
    "json": json.dumps(OBJECTS),
    "json in an object": json.dumps({"result": {"hits": OBJECTS, "took": 3}}),
    "blocks of json": BLOCKS,
    "one block": [{"type": "text", "text": json.dumps(OBJECTS)}],
    "block and picture": [*BLOCKS, {"type": "image", "base64": "AAAA", "mime_type": "image/png"}],
    "a heading and json": [{"type": "text", "text": "Found 2:"}, *BLOCKS],
    "documents of LangChain": json.dumps([Document(one).model_dump() for one in TEXTS]),
}
PLAIN = {"json": json.dumps(TEXTS), "blocks": PLAIN_BLOCKS, "texts": TEXTS}


@pytest.mark.parametrize("content", SURE.values(), ids=SURE)
@pytest.mark.parametrize("as_dicts", [False, True])
def test_documents_in_the_content_are_read(content, as_dicts):
    """The right one is the second."""
    messages = conversation([content])
    if as_dicts:
        messages = [one.model_dump() for one in messages]
    recorder = records_from_messages(messages)
    assert recorder.evaluate(TRUTH, 2).to_dict()["mrr@2"] == 0.5
    assert recorder.names == ["search"]


def test_structured_content_is_read():
    """As the adapters of MCP keep it, beside the text."""
    messages = conversation([{"structured_content": {"result": OBJECTS}}], place="artifact")
    assert records_from_messages(messages).evaluate(TRUTH, 2).to_dict()["mrr@2"] == 0.5


def test_ids_and_metadata_are_kept():
    """So that ids can be compared."""
    recorder = records_from_messages(conversation([BLOCKS]))
    assert recorder.evaluate({QUESTION: ["d2"]}, 2, "id").to_dict()["mrr@2"] == 0.5


@pytest.mark.parametrize("content", PLAIN.values(), ids=PLAIN)
def test_plain_texts_are_documents_where_nothing_else_tells(content):
    """Which is said, unless the tool is named."""
    recorder = records_from_messages(conversation([content]))
    with pytest.warns(KragEvalWarning, match="'search'"):
        assert recorder.evaluate(TRUTH, 2).to_dict()["mrr@2"] == 0.5
    assert recorder.evaluate(TRUTH, 2, retriever="search").to_dict()["mrr@2"] == 0.5


def test_plain_texts_of_other_tools_are_no_documents():
    """Of a calculator beside a search that returns objects."""
    messages = conversation([json.dumps(OBJECTS), json.dumps(OBJECTS)], ("x", "y"))
    sums = ToolMessage(PLAIN_BLOCKS, tool_call_id="2", name="sum")
    recorder = records_from_messages([*messages[:2], sums, *messages[2:]])
    assert recorder.names == ["search"]


@pytest.mark.parametrize("content", ["[]", '{"hits": []}', [{"type": "text", "text": "Nothing."}]])
def test_a_search_that_found_nothing_is_a_search(content):
    """If its tool returned documents elsewhere."""
    recorder = records_from_messages(conversation([json.dumps(OBJECTS), content], ("x", "y")))
    assert recorder.records["n_documents"].tolist() == [2, 0]


@pytest.mark.parametrize("content", ["At nine.", '{"temperature": 20}', "42", "[1, 2]", "{broken"])
def test_what_holds_no_documents_is_no_search(content):
    """As before."""
    with pytest.warns(KragEvalWarning, match="No search was found"):
        records_from_messages(conversation([content]))


@pytest.mark.parametrize(("content", "how"), [(SURE["json"], {}), (BLOCKS, {}),
                                              (PLAIN_BLOCKS, {"retriever": "search"})])  # fmt: skip
def test_a_running_agent_is_read_as_its_messages_are(content, how):
    """A tool whose content holds documents is seen to search; plain texts, if it is named."""

    @tool
    def search(query: str):
        """Search."""
        return content

    call = {"name": "search", "args": {"query": "x"}, "id": "1", "type": "tool_call"}
    agent = RunnableLambda(lambda _state: search.invoke(call))
    assert evaluate_agent(agent, TRUTH, 2, **how).to_dict()["mrr@2"] == 0.5
