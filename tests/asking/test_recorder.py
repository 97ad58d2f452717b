"""The recorder: what it records inside real chains, and how that is evaluated."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from refusals import blamed
from retriever_samples import (
    AsyncNumbered,
    Numbered,
    asked_in,
    passage,
    question,
    ranks,
    rows,
    vector_retriever,
)

from krag_eval import KragEvalWarning, RetrievalRecorder, evaluate_retriever

# Where every question fails, nothing is retrieved either, which is said as well.
pytestmark = pytest.mark.filterwarnings("ignore:Nothing was retrieved")

QUESTIONS = [question(i) for i in range(6)]
BY_QUESTION = {question(i): [passage(i)] for i in range(6)}
IN_ORDER = list(BY_QUESTION.values())
ALL = [1] * 6
WAYS = ["invoke", "batch", "stream", "ainvoke", "abatch", "astream", "threads"]


def rag(retriever):
    """Return a chain as tutorials build it: context and question into a prompt."""
    context = retriever | RunnableLambda(lambda documents: documents)
    answer = RunnableLambda(lambda given: f"According to {[*given['context'], 'nobody'][0]}")
    both = RunnableParallel(context=context, question=RunnablePassthrough())
    return both | {"answer": answer, "question": itemgetter("question")} | (
        PromptTemplate.from_template("{answer} {question}")
    )  # fmt: skip


def recorded(chain, way="invoke", inputs=QUESTIONS, recorder=None):
    """Return a recorder that saw a chain asked, in one of LangChain's ways."""
    recorder = recorder or RetrievalRecorder()
    asked_in(way, chain, list(inputs), {"callbacks": [recorder]})
    return recorder


@pytest.mark.parametrize("kind", [Numbered, AsyncNumbered])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_a_chain_is_recorded(way, kind):
    """By hand: the right passage is always first; each question is known by the chain's input."""
    recorder = recorded(rag(kind()), way)
    assert (recorder.n_questions, recorder.names) == (6, [kind.__name__])
    result = recorder.evaluate(BY_QUESTION, k=1)
    assert result.labels == QUESTIONS
    assert ranks(result) == ALL
    assert (result.retrieval.seconds > 0).all()
    assert result.failures.empty


def test_the_numbers_are_those_of_asking_the_retriever_directly():
    """The chain around it changes nothing."""
    retriever = vector_retriever([passage(i) for i in range(9)])
    recorder = recorded(rag(retriever), "batch")
    assert recorder.evaluate(BY_QUESTION, [1, 3]) == evaluate_retriever(retriever, rows(6), [1, 3])


# Ground truth as a list


@pytest.mark.parametrize("way", ["invoke", "batch", "stream", "ainvoke", "astream"])
def test_a_list_is_in_the_order_the_questions_were_asked(way):
    """One after the other, or in the batch of a chain, which starts all in order."""
    result = recorded(rag(Numbered(seconds=0.002)), way).evaluate(IN_ORDER, k=1)
    assert result.labels == QUESTIONS
    assert ranks(result) == ALL


@pytest.mark.parametrize(
    ("way", "chain"),
    [
        ("abatch", rag(AsyncNumbered(seconds=0.01))),
        ("threads", rag(AsyncNumbered(seconds=0.01))),
        # It runs in threads, which overtake each other before they start.
        ("batch", Numbered(seconds=0.01)),
    ],
)
def test_a_list_is_refused_where_no_order_is_known(way, chain):
    """A wrong order would give wrong numbers without a sign of it."""
    recorder = recorded(chain, way)
    with pytest.raises(ValueError, match=r"asked at the same time.* dict from question"):
        recorder.evaluate(IN_ORDER)
    assert ranks(recorder.evaluate(BY_QUESTION, 1)) == ALL


def test_the_batch_of_a_chain_within_a_running_loop_keeps_its_order():
    """As in a notebook."""

    async def cell():
        return recorded(rag(Numbered()), "batch")

    assert ranks(asyncio.run(cell()).evaluate(IN_ORDER, 1)) == ALL


def test_repeated_questions_need_a_list():
    """By hand: the second time another passage was expected."""
    recorder = recorded(rag(Numbered()), inputs=QUESTIONS[:1] * 2)
    with pytest.raises(ValueError, match=r"What stands in passage 0\?' was asked more than once"):
        recorder.evaluate(BY_QUESTION)
    with pytest.warns(KragEvalWarning, match="labelled by their positions"):
        result = recorder.evaluate([[passage(0)], ["another"]], k=1)
    assert (result.labels, ranks(result)) == ([0, 1], [1, 0])


# Which retriever, which question


def test_several_retrievers_are_told_apart_by_name():
    """Side by side in one chain; without a name it is not clear which is meant."""
    names = {"right": Numbered(), "wrong": vector_retriever(["nothing to the point"])}
    recorder = recorded(
        RunnableParallel({name: one.with_config(run_name=name) for name, one in names.items()}),
        "batch",
    )
    assert set(recorder.names) == {"right", "wrong"}
    assert ranks(recorder.evaluate(BY_QUESTION, 1, retriever="right")) == ALL
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert ranks(recorder.evaluate(BY_QUESTION, 1, retriever="wrong")) == [0] * 6
    for options in ({}, {"retriever": "dense"}):
        with blamed("retriever"):
            recorder.evaluate(BY_QUESTION, **options)


class Doubling(Numbered):
    """Asks another retriever twice, as query expansion does."""

    inner: Numbered

    def _get_relevant_documents(self, query, *, run_manager):
        config = {"callbacks": run_manager.get_child()}
        first = self.inner.invoke(query, config=config)
        second = self.inner.invoke(f"Once more: {query}", config=config)
        return [second[1], *first]


def test_the_outer_of_nested_retrievers_is_meant():
    """By hand: it puts the next passage first, so the right one is at rank 2."""
    recorder = recorded(rag(Doubling(inner=Numbered())), inputs=QUESTIONS[:1])
    assert recorder.names == ["Doubling", "Numbered"]
    assert ranks(recorder.evaluate([[passage(0)]], 3)) == [0.5]
    with pytest.raises(ValueError, match="'Numbered' was called 2 times for the question"):
        recorder.evaluate([[passage(0)]], retriever="Numbered")


def test_several_calls_for_a_question_are_settled_by_name():
    """As an agent makes them. By hand: passage 3, 4; then 0, 1; then it fails; 0 is right."""
    retriever = Numbered(fails_on=frozenset({9}))

    def agent(asked):
        found = [retriever.invoke(question(3)), retriever.invoke(asked)]
        with contextlib.suppress(ConnectionError):
            retriever.invoke(question(9))
        return found

    recorder, truth = recorded(RunnableLambda(agent), inputs=QUESTIONS[:1]), [[passage(0)]]
    with pytest.raises(
        ValueError, match=r"called 3 times .* calls=\"union\" \(or \"all\", \"first\", \"last\" or"
    ):
        recorder.evaluate(truth)
    joined = recorder.evaluate(truth, 4, calls="all")
    assert ranks(joined) == [1 / 3]
    assert joined.failures.empty
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert ranks(recorder.evaluate(truth, 4, calls="first")) == [0]
    with pytest.warns(KragEvalWarning, match="failed for 1 of 1"):
        last = recorder.evaluate(truth, 4, calls="last")
    assert last.failures["message"].tolist() == ["no answer for 9"]


def in_a_chain_of_chains():
    chain = rag(Numbered())
    for _ in range(3):
        chain = RunnableLambda(lambda asked, inner=chain: inner.invoke(asked))
    return chain


@pytest.mark.parametrize(
    ("chain", "given"),
    [
        # Rewritten, it is known by the chain's input, not the retriever's query.
        (RunnableLambda(lambda one: one.replace("What stands in", "In")) | Numbered(), str),
        # Without a text of its own, by the query.
        (RunnableLambda(lambda given: given["messages"][-1]) | Numbered(),
         lambda one: {"messages": [one]}),
        # Through a tool, as agents do.
        (RunnableLambda(lambda asked: {"query": f"Tool: {asked}"})
         | create_retriever_tool(Numbered(), "search", "Finds passages."), str),
        (in_a_chain_of_chains(), str),
    ],
    ids=["rewritten", "without a text", "tool", "chains in chains"],
)  # fmt: skip
def test_the_question_is_what_the_user_asked(chain, given):
    """However deep the retriever, and whatever it was asked."""
    recorder = recorded(chain, inputs=map(given, QUESTIONS))
    assert recorder.n_questions == 6
    assert ranks(recorder.evaluate(BY_QUESTION, 1)) == ALL
    assert ranks(recorder.evaluate(IN_ORDER, 1)) == ALL


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {}),
        ({"history": [], "language": ""}, {}),
        ({"language": "en"}, {}),  # the retriever was asked one
        ({"language": "en"}, {"input_key": "question"}),
    ],
)
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_the_question_is_found_in_the_input_of_the_chain(more, options, way):
    """The only text, the one the retriever was asked, or the one named."""
    chain = itemgetter("question") | RunnableLambda(str) | Numbered()
    recorder = recorded(chain, way, [{"question": one, **more} for one in QUESTIONS])
    assert ranks(recorder.evaluate(BY_QUESTION, 1, **options)) == ALL


def test_several_texts_in_the_input_need_a_key():
    """Where the question was rewritten, none of them is what the retriever was asked."""
    chain = RunnableLambda(lambda given: f"Well, {given['question']}") | Numbered()
    recorder = recorded(chain, inputs=[{"language": "en", "question": one} for one in QUESTIONS])
    with pytest.raises(ValueError, match=r"several texts \('language', 'question'\).*input_key="):
        recorder.evaluate(BY_QUESTION)
    with pytest.raises(ValueError, match=r"'language', 'question', got 'query'"):
        recorder.evaluate(BY_QUESTION, input_key="query")
    assert ranks(recorder.evaluate(BY_QUESTION, 1, input_key="question")) == ALL


def test_a_recorder_on_the_retriever_alone_sees_it():
    """Attached inside the chain, not passed to it."""
    recorder = RetrievalRecorder()
    asked_in("invoke", rag(Numbered().with_config(callbacks=[recorder])), QUESTIONS, None)
    assert ranks(recorder.evaluate(BY_QUESTION, 1)) == ALL


# Failures and what is not there


def test_a_retriever_that_raised_counts_as_nothing_retrieved():
    """And is listed with its exception."""
    recorder, chain = RetrievalRecorder(), rag(Numbered(fails_on=frozenset({2})))
    chain.batch(QUESTIONS, config={"callbacks": [recorder]}, return_exceptions=True)
    with pytest.warns(KragEvalWarning, match="'Numbered' failed for 1 of 6 questions"):
        result = recorder.evaluate(BY_QUESTION, 1)
    assert ranks(result) == [1, 1, 0, 1, 1, 1]
    assert result.failures["message"].to_dict() == {QUESTIONS[2]: "no answer for 2"}
    assert np.flatnonzero(np.isnan(result.retrieval.seconds)).tolist() == [2]
    with pytest.raises(ValueError, match="there is no retriever to ask again"):
        result.retry_failed()


def test_a_question_for_which_it_was_not_called_counts_as_nothing_retrieved():
    """With a warning, for it may be a router's decision or a mistake."""
    retriever = Numbered()
    routed = RunnableLambda(lambda asked: [] if "passage 0" in asked else retriever)
    recorder = recorded(routed, "batch")
    with pytest.warns(KragEvalWarning, match="not called for 1 of 6 questions"):
        assert ranks(recorder.evaluate(BY_QUESTION, 1)) == [0, 1, 1, 1, 1, 1]


def test_an_interrupted_question_is_a_failure():
    """The chain ended, and the retriever never said so."""
    recorder = RetrievalRecorder()

    class Interrupted(Numbered):
        def _get_relevant_documents(self, query, *, run_manager):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recorded(Interrupted() | RunnableLambda(len), recorder=recorder)
    with pytest.warns(KragEvalWarning, match="failed for 1 of 1"):
        result = recorder.evaluate([IN_ORDER[0]], 1)
    assert result.failures["message"].tolist() == ["it never returned"]


def test_a_question_still_being_answered_is_waited_for():
    """Its documents would be missing."""
    recorder, started, go_on = RetrievalRecorder(), threading.Event(), threading.Event()

    def slow(asked):
        started.set()
        go_on.wait(10)
        return [passage(0)]

    chain = recorder.wrap(slow) | RunnableLambda(len)
    thread = threading.Thread(target=chain.invoke, args=(QUESTIONS[0],))
    thread.start()
    started.wait(10)
    with pytest.raises(ValueError, match="1 of 1 questions are still being answered"):
        recorder.evaluate(IN_ORDER[:1])
    go_on.set()
    thread.join()
    assert ranks(recorder.evaluate(IN_ORDER[:1], 1)) == [1]


@pytest.mark.parametrize(
    ("ground_truth", "message"),
    [
        (IN_ORDER[:5], "an entry for each of 6 questions, .* got 5"),
        ({**BY_QUESTION, "Why?": ["x"]}, r"never asked: 'Why\?'"),
        (dict([*BY_QUESTION.items()][1:]), "lacks .* asked: 'What stands in passage 0"),
    ],
)
def test_ground_truth_that_does_not_fit_is_refused(ground_truth, message):
    """Saying what is too much or too little; nothing is left out or made up."""
    with pytest.raises(ValueError, match=message):
        recorded(rag(Numbered()), "batch").evaluate(ground_truth)


def test_a_recorder_that_saw_nothing_says_why():
    """The config was forgotten, or a function fires no events."""
    recorder = recorded(RunnableLambda(lambda asked: [Document(passage(0))]))
    with pytest.raises(ValueError, match=r"none was seen.*wrap it by the recorder's wrap method"):
        recorder.evaluate({"q": ["x"]})


def test_clear_forgets():
    """The next question is the first."""
    recorder = recorded(rag(Numbered()))
    recorder.clear()
    assert (recorder.n_questions, recorder.names) == (0, [])
    recorded(rag(Numbered()), inputs=QUESTIONS[:1], recorder=recorder)
    assert recorder.evaluate(IN_ORDER[:1], 1).labels == QUESTIONS[:1]


# Wrapping


def finds(asked):
    """Return the passage with the question's number, as a string."""
    return [passage(int(asked.split()[-1].rstrip("?")))]


async def afinds(asked):
    return finds(asked)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("passed", [True, False])
def test_a_wrapped_function_is_recorded(way, passed):
    """In every way, once; also if the recorder is not in the config. Its answer is untouched."""
    recorder, got = RetrievalRecorder(), []
    search = recorder.wrap(RunnableLambda(finds, afunc=afinds), name="search")
    config = {"callbacks": [recorder]} if passed else {}
    asked_in(way, search | RunnableLambda(got.append), QUESTIONS, config)
    assert sorted(text for (text,) in got) == [passage(i) for i in range(6)]
    assert recorder.names == ["search"]
    assert ranks(recorder.evaluate(BY_QUESTION, 1)) == ALL


def test_a_wrapped_function_is_called_as_before():
    """With the same answer, recorded; with other arguments as well."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(lambda asked, n: finds(asked)[:n], name="search")
    assert [search(one, n=1) for one in QUESTIONS] == [finds(one) for one in QUESTIONS]
    assert ranks(recorder.evaluate(BY_QUESTION, 1)) == ALL


def test_a_wrapped_chain_may_take_and_return_dicts():
    """Under the keys that are named."""
    recorder = RetrievalRecorder()
    chain = RunnableLambda(lambda given: {"docs": finds(given["q"]), "time": 1})
    wrapped = recorder.wrap(chain, input_key="q", output_key="docs")
    for one in QUESTIONS:
        assert wrapped.invoke({"q": one, "language": "en"})["time"] == 1
    assert ranks(recorder.evaluate(IN_ORDER, 1)) == ALL


def test_a_wrapped_function_that_raises_is_a_failure():
    """Its exception reaches the caller."""
    recorder = RetrievalRecorder()
    wrapped = recorder.wrap(Numbered(fails_on=frozenset({0})).invoke, name="search")
    for way in ("invoke", "ainvoke"):
        with pytest.raises(ConnectionError):
            asked_in(way, wrapped, QUESTIONS[:1], None)
    with (
        pytest.warns(KragEvalWarning, match="failed for 2 of 2"),
        pytest.warns(KragEvalWarning, match="labelled by their positions"),
    ):
        result = recorder.evaluate([IN_ORDER[0]] * 2, 1)
    assert set(result.failures["type"]) == {"ConnectionError"}


def test_many_threads_record_into_one_recorder():
    """Nothing is lost or mixed up: every one of 200 questions finds its own passage."""
    recorder, chain, truth = RetrievalRecorder(), rag(Numbered()), rows(200)
    with ThreadPoolExecutor(16) as pool:
        config = {"callbacks": [recorder]}
        list(pool.map(lambda row: chain.invoke(row["question"], config=config), truth))
    assert recorder.evaluate(truth, 1)["hit_rate@1"] == 1
