"""The recorder: what it records inside real chains, and how that is evaluated."""

from __future__ import annotations

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
from retriever_samples import AsyncNumbered, Numbered, passage, question, rows, vector_retriever

from krag_eval import KragEvalWarning, RetrievalRecorder, evaluate_retriever
from krag_eval.errors import InvalidType

# Where every question fails, nothing is retrieved either, which is said as well.
pytestmark = pytest.mark.filterwarnings("ignore:Nothing was retrieved")

QUESTIONS = [question(i) for i in range(6)]
BY_QUESTION = {question(i): [passage(i)] for i in range(6)}
IN_ORDER = list(BY_QUESTION.values())


def answered(documents):
    """Stand at the end of a chain, where a model would."""
    return f"According to {documents[0].page_content if documents else 'nobody'}"


def rag(retriever):
    """Return a chain as tutorials build it: context and question into a prompt."""
    return (
        RunnableParallel(
            context=retriever | RunnableLambda(lambda documents: documents),
            question=RunnablePassthrough(),
        )
        | RunnablePassthrough.assign(answer=itemgetter("context") | RunnableLambda(answered))
        | PromptTemplate.from_template("{answer} {question}")
    )


async def ainvoke_each(chain, config):
    for one in QUESTIONS:
        await chain.ainvoke(one, config=config)


async def astream_each(chain, config):
    for one in QUESTIONS:
        async for _ in chain.astream(one, config=config):
            pass


def stream_each(chain, config):
    for one in QUESTIONS:
        for _ in chain.stream(one, config=config):
            pass


WAYS = {
    "invoke": lambda chain, config: [chain.invoke(one, config=config) for one in QUESTIONS],
    "batch": lambda chain, config: chain.batch(QUESTIONS, config=config),
    "stream": stream_each,
    "ainvoke": lambda chain, config: asyncio.run(ainvoke_each(chain, config)),
    "abatch": lambda chain, config: asyncio.run(chain.abatch(QUESTIONS, config=config)),
    "astream": lambda chain, config: asyncio.run(astream_each(chain, config)),
    "threads": lambda chain, config: list(
        ThreadPoolExecutor(4).map(lambda one: chain.invoke(one, config=config), QUESTIONS)
    ),
}


@pytest.mark.parametrize("kind", [Numbered, AsyncNumbered])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_a_chain_is_recorded(way, kind):
    """By hand: the right passage is always first; each question is known by the chain's input."""
    recorder = RetrievalRecorder()
    WAYS[way](rag(kind()), {"callbacks": [recorder]})
    assert recorder.n_questions == 6
    assert recorder.names == [kind.__name__]
    result = recorder.evaluate(BY_QUESTION, k=1)
    assert result.labels == QUESTIONS
    assert result.to_dict()["hit_rate@1"] == 1
    assert (result.retrieval.seconds > 0).all()
    assert result.failures.empty


def test_the_numbers_are_those_of_asking_the_retriever_directly():
    """The chain around it changes nothing."""
    recorder, retriever = RetrievalRecorder(), vector_retriever([passage(i) for i in range(9)])
    rag(retriever).batch(QUESTIONS, config={"callbacks": [recorder]})
    assert recorder.evaluate(BY_QUESTION, [1, 3]) == evaluate_retriever(retriever, rows(6), [1, 3])


# Ground truth as a list


@pytest.mark.parametrize("way", ["invoke", "batch", "stream", "ainvoke", "astream"])
def test_a_list_is_in_the_order_the_questions_were_asked(way):
    """One after the other, or in the batch of a chain, which starts all in order."""
    recorder = RetrievalRecorder()
    WAYS[way](rag(Numbered(seconds=0.002)), {"callbacks": [recorder]})
    result = recorder.evaluate(IN_ORDER, k=1)
    assert result.labels == QUESTIONS
    assert result.to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize("way", ["abatch", "threads"])
def test_a_list_is_refused_where_no_order_is_known(way):
    """A wrong order would give wrong numbers without a sign of it."""
    recorder = RetrievalRecorder()
    WAYS[way](rag(AsyncNumbered(seconds=0.01)), {"callbacks": [recorder]})
    with pytest.raises(ValueError, match=r"asked at the same time.* dict from question"):
        recorder.evaluate(IN_ORDER)


def test_the_batch_of_a_bare_retriever_has_no_known_order():
    """It runs in threads, which overtake each other before they start."""
    recorder = RetrievalRecorder()
    Numbered(seconds=0.01).batch(QUESTIONS, config={"callbacks": [recorder]})
    with pytest.raises(ValueError, match="asked at the same time"):
        recorder.evaluate(IN_ORDER)
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


def test_the_batch_of_a_chain_within_a_running_loop_keeps_its_order():
    """As in a notebook."""
    recorder = RetrievalRecorder()

    async def cell():
        rag(Numbered()).batch(QUESTIONS, config={"callbacks": [recorder]})

    asyncio.run(cell())
    assert recorder.evaluate(IN_ORDER, 1).to_dict()["hit_rate@1"] == 1


def test_repeated_questions_need_a_list():
    """By hand: the second time another passage was expected."""
    recorder, chain = RetrievalRecorder(), rag(Numbered())
    for _ in range(2):
        chain.invoke(QUESTIONS[0], config={"callbacks": [recorder]})
    with pytest.raises(ValueError, match=r"What stands in passage 0\?' was asked more than once"):
        recorder.evaluate(BY_QUESTION)
    with pytest.warns(KragEvalWarning, match="labelled by their positions"):
        result = recorder.evaluate([[passage(0)], ["another"]], k=1)
    assert result.labels == [0, 1]
    assert result.per_query()["hit_rate"].tolist() == [1, 0]


# Which retriever, which question


def test_several_retrievers_are_told_apart_by_name():
    """Side by side in one chain; without a name it is not clear which is meant."""
    recorder = RetrievalRecorder()
    chain = RunnableParallel(
        right=Numbered().with_config(run_name="right"),
        wrong=vector_retriever(["nothing to the point"]).with_config(run_name="wrong"),
    )
    chain.batch(QUESTIONS, config={"callbacks": [recorder]})
    assert set(recorder.names) == {"right", "wrong"}
    assert recorder.evaluate(BY_QUESTION, 1, retriever="right").to_dict()["hit_rate@1"] == 1
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        wrong = recorder.evaluate(BY_QUESTION, 1, retriever="wrong")
    assert wrong.to_dict()["hit_rate@1"] == 0
    with pytest.raises(ValueError, match=r"several were seen \('\w+', '\w+'\); name .* retriever="):
        recorder.evaluate(BY_QUESTION)
    with pytest.raises(ValueError, match=r"retriever must be one of '.* got 'dense'"):
        recorder.evaluate(BY_QUESTION, retriever="dense")


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
    recorder = RetrievalRecorder()
    rag(Doubling(inner=Numbered())).invoke(QUESTIONS[0], config={"callbacks": [recorder]})
    assert recorder.names == ["Doubling", "Numbered"]
    assert recorder.evaluate([[passage(0)]], 3).to_dict()["mrr@3"] == 0.5
    with pytest.raises(ValueError, match="'Numbered' was called 2 times for the question"):
        recorder.evaluate([[passage(0)]], retriever="Numbered")


def test_several_calls_for_a_question_are_settled_by_name():
    """As an agent makes them. By hand: passage 3, 4; then 0, 1; then it fails; 0 is right."""
    recorder, retriever = RetrievalRecorder(), Numbered(fails_on=frozenset({9}))

    def agent(asked):
        found = [retriever.invoke(question(3)), retriever.invoke(asked)]
        with contextlib.suppress(ConnectionError):
            retriever.invoke(question(9))
        return found

    RunnableLambda(agent).invoke(QUESTIONS[0], config={"callbacks": [recorder]})
    truth = {QUESTIONS[0]: [passage(0)]}
    with pytest.raises(
        ValueError, match=r"called 3 times .* calls=\"union\" \(or \"all\", \"first\", \"last\" or"
    ):
        recorder.evaluate(truth)
    joined = recorder.evaluate(truth, 4, calls="all")
    assert joined.to_dict()["mrr@4"] == pytest.approx(1 / 3)
    assert joined.failures.empty
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert recorder.evaluate(truth, 4, calls="first").to_dict()["mrr@4"] == 0
    with pytest.warns(KragEvalWarning, match="failed for 1 of 1"):
        last = recorder.evaluate(truth, 4, calls="last")
    assert last.failures["message"].tolist() == ["no answer for 9"]
    with pytest.raises(ValueError, match="calls must be one of 'one', 'union', 'all', 'first'"):
        recorder.evaluate(truth, calls="second")


def test_a_rewritten_question_is_known_by_what_the_user_asked():
    """The chain's input, not the retriever's query."""
    recorder = RetrievalRecorder()
    rewrite = RunnableLambda(lambda asked: asked.replace("What stands in", "Contents of"))
    (rewrite | Numbered()).batch(QUESTIONS, config={"callbacks": [recorder]})
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda one: {"question": one}, {}),
        (lambda one: {"question": one, "history": [], "language": ""}, {}),
        (lambda one: {"question": one, "language": "en"}, {}),  # the retriever was asked one
        (lambda one: {"question": one, "language": "en"}, {"input_key": "question"}),
    ],
)
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_the_question_is_found_in_the_input_of_the_chain(make, options, way):
    """The only text, the one the retriever was asked, or the one named."""
    recorder, chain = RetrievalRecorder(), itemgetter("question") | RunnableLambda(str) | Numbered()
    for one in QUESTIONS:
        list(getattr(chain, way)(make(one), config={"callbacks": [recorder]}))
    assert recorder.evaluate(BY_QUESTION, 1, **options).to_dict()["hit_rate@1"] == 1


def test_several_texts_in_the_input_need_a_key():
    """Where the question was rewritten, none of them is what the retriever was asked."""
    recorder = RetrievalRecorder()
    chain = RunnableLambda(lambda given: f"Well, {given['question']}") | Numbered()
    for one in QUESTIONS:
        chain.invoke({"language": "en", "question": one}, config={"callbacks": [recorder]})
    with pytest.raises(ValueError, match=r"several texts \('language', 'question'\).*input_key="):
        recorder.evaluate(BY_QUESTION)
    with pytest.raises(
        ValueError, match=r"input_key must be a key .*'language', 'question', got 'query'"
    ):
        recorder.evaluate(BY_QUESTION, input_key="query")
    result = recorder.evaluate(BY_QUESTION, 1, input_key="question")
    assert result.to_dict()["hit_rate@1"] == 1


def test_an_input_without_a_text_is_known_by_the_query():
    """Such as a list of messages."""
    recorder = RetrievalRecorder()
    chain = RunnableLambda(lambda given: given["messages"][-1]) | Numbered()
    for one in QUESTIONS:
        chain.invoke({"messages": [one]}, config={"callbacks": [recorder]})
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


def test_a_recorder_on_the_retriever_alone_sees_it():
    """Attached inside the chain, not passed to it."""
    recorder = RetrievalRecorder()
    chain = rag(Numbered().with_config(callbacks=[recorder]))
    for one in QUESTIONS:
        chain.invoke(one)
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


def test_a_retriever_called_through_a_tool_is_part_of_its_question():
    """As agents do."""
    recorder = RetrievalRecorder()
    tool = create_retriever_tool(Numbered(), "search", "Finds passages.")
    chain = RunnableLambda(lambda asked: {"query": f"Tool: {asked}"}) | tool
    for one in QUESTIONS:
        chain.invoke(one, config={"callbacks": [recorder]})
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


def test_chains_in_chains_are_one_question():
    """However deep the retriever."""
    recorder, chain = RetrievalRecorder(), rag(Numbered())
    for _ in range(3):
        chain = RunnableLambda(lambda asked, inner=chain: inner.invoke(asked))
    for one in QUESTIONS:
        chain.invoke(one, config={"callbacks": [recorder]})
    assert recorder.n_questions == 6
    assert recorder.evaluate(IN_ORDER, 1).to_dict()["hit_rate@1"] == 1


# Failures and what is not there


def test_a_retriever_that_raised_counts_as_nothing_retrieved():
    """And is listed with its exception."""
    recorder, chain = RetrievalRecorder(), rag(Numbered(fails_on=frozenset({2})))
    chain.batch(QUESTIONS, config={"callbacks": [recorder]}, return_exceptions=True)
    with pytest.warns(KragEvalWarning, match="'Numbered' failed for 1 of 6 questions"):
        result = recorder.evaluate(BY_QUESTION, 1)
    assert result.to_dict()["hit_rate@1"] == pytest.approx(5 / 6)
    assert result.failures["message"].to_dict() == {QUESTIONS[2]: "no answer for 2"}
    assert np.isnan(result.retrieval.seconds).tolist() == [False, False, True, False, False, False]
    with pytest.raises(ValueError, match="there is no retriever to ask again"):
        result.retry_failed()


def test_a_question_for_which_it_was_not_called_counts_as_nothing_retrieved():
    """With a warning, for it may be a router's decision or a mistake."""
    recorder, retriever = RetrievalRecorder(), Numbered()
    routed = RunnableLambda(lambda asked: [] if "passage 0" in asked else retriever)
    routed.batch(QUESTIONS, config={"callbacks": [recorder]})
    with pytest.warns(KragEvalWarning, match="not called for 1 of 6 questions"):
        result = recorder.evaluate(BY_QUESTION, 1)
    assert result.to_dict()["hit_rate@1"] == pytest.approx(5 / 6)


def test_an_interrupted_question_is_a_failure():
    """The chain ended, and the retriever never said so."""
    recorder = RetrievalRecorder()

    class Interrupted(Numbered):
        def _get_relevant_documents(self, query, *, run_manager):
            raise KeyboardInterrupt

    chain = Interrupted() | RunnableLambda(answered)
    with pytest.raises(KeyboardInterrupt):
        chain.invoke(QUESTIONS[0], config={"callbacks": [recorder]})
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
    assert recorder.evaluate(IN_ORDER[:1], 1).to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize(
    ("ground_truth", "error", "message"),
    [
        (IN_ORDER[:5], ValueError, "an entry for each of 6 questions, .* got 5"),
        (
            {**BY_QUESTION, "Why?": ["x"]},
            ValueError,
            r"never asked: 'Why\?'",
        ),
        (
            dict(list(BY_QUESTION.items())[1:]),
            ValueError,
            "lacks a question that was asked: 'What stands in passage 0",
        ),
        ("text", TypeError, "ground_truth must be a list .* got 'text'"),
        (None, TypeError, "got None"),
    ],
)
def test_ground_truth_that_does_not_fit_is_refused(ground_truth, error, message):
    """Nothing is left out or made up."""
    recorder = RetrievalRecorder()
    rag(Numbered()).batch(QUESTIONS, config={"callbacks": [recorder]})
    with pytest.raises(error, match=message):
        recorder.evaluate(ground_truth)


@pytest.mark.parametrize("given", ["passage 0", passage(0), {"page_content": "a"}, None])
def test_one_document_for_a_list_is_refused_by_its_place(given):
    """In a dict and in a list, as in a data set; not by what the evaluator calls it."""
    recorder = RetrievalRecorder()
    rag(Numbered()).invoke(QUESTIONS[0], config={"callbacks": [recorder]})
    for ground_truth in ({QUESTIONS[0]: given}, [given]):
        with pytest.raises(InvalidType) as caught:
            recorder.evaluate(ground_truth)
        assert (caught.value.argument, caught.value.query) == ("ground_truth", 0)


def test_a_recorder_that_saw_nothing_says_why():
    """The config was forgotten, or a function fires no events."""
    recorder = RetrievalRecorder()
    plain = RunnableLambda(lambda asked: [Document(passage(0))])
    for ask in (lambda: None, lambda: plain.invoke("q", config={"callbacks": [recorder]})):
        ask()
        with pytest.raises(
            ValueError, match=r"none was seen.*wrap it by the recorder's wrap method"
        ):
            recorder.evaluate({"q": ["x"]})


def test_clear_forgets():
    """The next question is the first."""
    recorder, chain = RetrievalRecorder(), rag(Numbered())
    chain.invoke(QUESTIONS[3], config={"callbacks": [recorder]})
    recorder.clear()
    assert recorder.n_questions == 0
    assert recorder.names == []
    chain.invoke(QUESTIONS[0], config={"callbacks": [recorder]})
    assert recorder.evaluate(IN_ORDER[:1], 1).labels == QUESTIONS[:1]


# Wrapping


def finds(asked):
    """Return the passage with the question's number, as a string."""
    return [passage(int(asked.split()[-1].rstrip("?")))]


async def afinds(asked):
    """The same, to be awaited."""
    return finds(asked)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("passed", [True, False])
def test_a_wrapped_function_is_recorded(way, passed):
    """In every way, once; also if the recorder is not in the config. Its answer is untouched."""
    recorder, got = RetrievalRecorder(), []
    search = recorder.wrap(RunnableLambda(finds, afunc=afinds), name="search")
    WAYS[way](search | RunnableLambda(got.append), {"callbacks": [recorder]} if passed else {})
    assert sorted(text for (text,) in got) == [passage(i) for i in range(6)]
    assert recorder.names == ["search"]
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


def test_a_wrapped_function_is_called_as_before():
    """With the same answer, recorded."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(finds, name="search")
    assert [search(one) for one in QUESTIONS] == [finds(one) for one in QUESTIONS]
    assert recorder.evaluate(BY_QUESTION, 1).to_dict()["hit_rate@1"] == 1


def test_a_wrapped_chain_may_take_and_return_dicts():
    """Under the keys that are named."""
    recorder = RetrievalRecorder()
    chain = RunnableLambda(lambda given: {"docs": finds(given["q"]), "time": 1})
    wrapped = recorder.wrap(chain, input_key="q", output_key="docs")
    for one in QUESTIONS:
        assert wrapped.invoke({"q": one, "language": "en"})["time"] == 1
    assert recorder.evaluate(IN_ORDER, 1).to_dict()["hit_rate@1"] == 1


def test_a_wrapped_function_that_raises_is_a_failure():
    """Its exception reaches the caller."""
    recorder = RetrievalRecorder()
    wrapped = recorder.wrap(Numbered(fails_on=frozenset({0})).invoke, name="search")
    with pytest.raises(ConnectionError):
        wrapped.invoke(QUESTIONS[0])
    with pytest.raises(ConnectionError):
        asyncio.run(wrapped.ainvoke(QUESTIONS[0]))
    with (
        pytest.warns(KragEvalWarning, match="failed for 2 of 2"),
        pytest.warns(KragEvalWarning, match="labelled by their positions"),
    ):
        result = recorder.evaluate([IN_ORDER[0]] * 2, 1)
    assert set(result.failures["type"]) == {"ConnectionError"}


def test_what_is_wrapped_must_return_documents():
    """Or there is nothing to record."""
    wrapped = RetrievalRecorder().wrap(lambda asked: "text")
    with pytest.raises(TypeError, match="must return a list of documents"):
        wrapped.invoke("q")


def test_many_threads_record_into_one_recorder():
    """Nothing is lost or mixed up: every one of 400 questions finds its own passage."""
    recorder, chain = RetrievalRecorder(), rag(Numbered())
    questions = [question(i) for i in range(400)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda one: chain.invoke(one, config={"callbacks": [recorder]}), questions))
    result = recorder.evaluate({question(i): [passage(i)] for i in range(400)}, 1)
    assert result.to_dict()["hit_rate@1"] == 1
