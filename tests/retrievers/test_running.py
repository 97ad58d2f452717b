"""evaluate_retriever: which retrievers it accepts, what it returns, and how it handles failures."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from retriever_samples import (
    AsyncNumbered,
    Numbered,
    WordCounts,
    passage,
    question,
    rows,
    vector_retriever,
)

from krag_eval import (
    EvaluationResult,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    aevaluate_retriever,
    evaluate_retriever,
)
from krag_eval.errors import InvalidType

# Where every question fails, nothing is retrieved either, which is said as well.
pytestmark = pytest.mark.filterwarnings("ignore:Nothing was retrieved")

FAILING = frozenset({7, 41, 99})


def both_ways(retriever, dataset, *arguments, **options):
    """Evaluate synchronously and asynchronously."""
    return (
        evaluate_retriever(retriever, dataset, *arguments, **options),
        asyncio.run(aevaluate_retriever(retriever, dataset, *arguments, **options)),
    )


# What may be asked


def test_a_vector_store_retriever_gives_what_asking_it_by_hand_gives():
    """The same numbers as its own batch and the evaluator."""
    corpus = [passage(i) for i in range(20)]
    retriever, dataset = vector_retriever(corpus), rows(20)
    by_hand = OfflineRetrievalEvaluator(
        [row["actual"] for row in dataset],
        retriever.batch([row["question"] for row in dataset]),
        queries=[row["question"] for row in dataset],
    ).evaluate(k=[1, 3])
    for result in both_ways(retriever, dataset, [1, 3]):
        assert result == by_hand


def test_a_base_retriever_returns_the_right_passage_first():
    """By hand: the passage is first of two documents, so recall 1 and precision 1/2 at 2."""
    result = evaluate_retriever(Numbered(), rows(), k=[1, 2])
    assert result.to_dict()["macro_recall@1"] == 1
    assert result.to_dict()["macro_precision@2"] == 0.5
    assert result.labels == [question(i) for i in range(100)]


def test_a_chain_that_returns_a_dict_is_read_under_its_key():
    """As RAG chains return their context beside the answer."""
    chain = RunnableParallel(context=Numbered(), question=RunnablePassthrough())
    for result in both_ways(chain, rows(5), 1, output_key="context"):
        assert result.to_dict()["hit_rate@1"] == 1


def test_a_chain_that_takes_a_dict_is_asked_under_its_key():
    """As chains made from a prompt take their input."""
    chain = {"documents": RunnableLambda(lambda given: given["input"]) | Numbered()}
    for result in both_ways(
        RunnableParallel(chain), rows(5), 1, input_key="input", output_key="documents"
    ):
        assert result.to_dict()["hit_rate@1"] == 1


def test_a_function_may_return_strings():
    """By hand: only even questions get their passage."""
    found = {question(i): passage(i) for i in range(0, 10, 2)}
    result = evaluate_retriever(lambda q: [found.get(q, "something else")], rows(10), 1)
    assert result.to_dict()["hit_rate@1"] == 0.5


def test_a_function_may_return_dicts():
    """They become LangChain documents, with metadata and id."""
    result = evaluate_retriever(
        lambda q: [{"page_content": "text", "id": 7}], [{"question": "q", "actual": ["7"]}], 1, "id"
    )
    assert result.to_dict()["hit_rate@1"] == 1


async def finds_passage(asked):
    """An async function from question to documents."""
    await asyncio.sleep(0)
    return [passage(int(asked.split()[-1].rstrip("?")))]


def test_an_async_function_is_awaited_by_both():
    """Also where the caller is not async himself."""
    for result in both_ways(finds_passage, rows(5), 1):
        assert result.to_dict()["hit_rate@1"] == 1


def test_a_lambda_around_an_async_function_is_awaited_asynchronously():
    """It is no coroutine function, but returns a coroutine."""
    result = asyncio.run(aevaluate_retriever(lambda q: finds_passage(q), rows(5), 1))
    assert result.to_dict()["hit_rate@1"] == 1


def test_a_lambda_around_an_async_function_is_refused_synchronously():
    """Nobody would await it."""
    with pytest.raises(TypeError, match="never awaited: make the retriever an async function"):
        evaluate_retriever(lambda q: finds_passage(q), rows(5), 1)


def test_an_async_function_within_a_running_loop_is_refused_with_the_remedy():
    """As in a notebook, where the loop runs already."""

    async def notebook():
        return evaluate_retriever(finds_passage, rows(5), 1)

    with pytest.raises(RuntimeError, match=r"write await aevaluate_retriever\(…\) instead"):
        asyncio.run(notebook())


def test_a_bound_method_is_a_function():
    """A vector store's own search, with its defaults."""
    store = InMemoryVectorStore.from_texts([passage(i) for i in range(9)], WordCounts())
    assert evaluate_retriever(store.similarity_search, rows(9), 4).to_dict()["hit_rate@4"] == 1


def test_an_object_that_can_be_called_is_a_function():
    """Sync or async."""

    class Finder:
        def __call__(self, asked):
            return [passage(0)]

    class AsyncFinder:
        async def __call__(self, asked):
            return [passage(0)]

    for finder in (Finder(), AsyncFinder()):
        assert evaluate_retriever(finder, rows(2), 1).to_dict()["hit_rate@1"] == 0.5


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        (None, "must be a LangChain retriever .* got None"),
        (Numbered, "pass an instance of this class"),
        (InMemoryVectorStore(WordCounts()), "pass what its as_retriever"),
        ({"bm25": Numbered()}, "compare several retrievers by evaluate_retrievers"),
    ],
)
def test_what_cannot_be_asked_is_refused(retriever, message):
    """With what to pass instead."""
    with pytest.raises(InvalidType, match=message) as caught:
        evaluate_retriever(retriever, rows(2))
    assert caught.value.argument == "retriever"


# What may come back


@pytest.mark.parametrize(
    ("answer", "options", "error", "message"),
    [
        (None, {}, TypeError, "must return a list of documents, best first, got None"),
        ("text", {}, TypeError, "got 'text'; return one even for a single document"),
        (Document("x"), {}, TypeError, "return one even for a single"),
        ({"page_content": "x"}, {}, TypeError, "return one even for a single"),
        (
            {"docs": [], "answer": ""},
            {},
            TypeError,
            "'docs'.*name its key by output_key=",
        ),
        (iter(["x"]), {}, TypeError, "must return a list"),
        (
            [],
            {"output_key": "docs"},
            TypeError,
            "output_key must be a key .* None, got 'docs'",
        ),
        (
            {"context": []},
            {"output_key": "docs"},
            ValueError,
            "output_key must be a key .*'context'., got 'docs'",
        ),
        (
            {"docs": None},
            {"output_key": "docs"},
            TypeError,
            "must return a list of documents, best first, got None",
        ),
        ([(Document("x"), 0.5)], {}, TypeError, "a document stands without its score"),
        ([["x", 0.5]], {}, TypeError, "a document stands without its score"),
        (["x", 3], {}, TypeError, r"retrieved documents\[1\] must be .* got the number 3"),
        ([{"text": "x"}], {}, ValueError, 'needs the key "page_content"'),
        (
            [Document.model_construct(page_content=None)],
            {},
            TypeError,
            "page_content must be text",
        ),
    ],
)
def test_what_is_no_list_of_documents_is_refused(answer, options, error, message):
    """With what came and what to do; it is a failure of the query."""
    with pytest.raises(error, match=message) as caught:
        evaluate_retriever(lambda q: answer, rows(1), 1, **options)
    assert "failed on query 'What stands in passage 0?' (position 0)" in caught.value.__notes__[0]


def test_a_retriever_that_finds_nothing_for_a_question_scores_0_there():
    """By hand: one of ten finds nothing."""
    result = evaluate_retriever(Numbered(finds_nothing_on=frozenset({3})), rows(10), 1)
    assert result.to_dict()["hit_rate@1"] == 0.9
    assert result.statuses()[question(3)] == "nothing retrieved"
    assert result.failures.empty


def test_duplicates_are_credited_once():
    """By hand: the passage four times, then another: recall 1, nDCG 1, precision 4/5."""
    averages = evaluate_retriever(Numbered(repeats=4), rows(10), 5).to_dict()
    assert averages["macro_recall@5"] == averages["ndcg@5"] == averages["map@5"] == 1
    assert averages["macro_precision@5"] == 0.8


# Failures


def test_a_failing_query_raises_its_own_exception():
    """With a note that says which query it was, and what to do."""
    with pytest.raises(ConnectionError, match="no answer for 41") as caught:
        evaluate_retriever(Numbered(fails_on=frozenset({41})), rows(), on_error="raise")
    (note,) = caught.value.__notes__
    assert note.startswith("The retriever failed on query 'What stands in passage 41?'")
    assert 'on_error="record"' in note


def test_nothing_more_is_asked_once_a_query_failed():
    """With one at a time, the two before and the one that failed."""
    retriever = Numbered(fails_on=frozenset({2}))
    with pytest.raises(ConnectionError):
        evaluate_retriever(retriever, rows(), max_concurrency=1, on_error="raise")
    assert retriever.asked == [0, 1, 2]


@pytest.mark.parametrize("kind", [Numbered, AsyncNumbered])
def test_one_failure_costs_no_answer_unless_asked_for(kind):
    """By hand: the first two and the last of 100 fail, 97 are right."""
    retriever = kind(fails_on=frozenset({0, 1, 99}))
    with pytest.warns(KragEvalWarning, match="3 of 100 queries failed"):
        results = both_ways(retriever, rows(), 1)
    for result in results:
        assert result.to_dict()["hit_rate@1"] == 0.97
        assert result.failures["position"].tolist() == [0, 1, 99]


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_a_retriever_that_never_works_raises_its_first_exception(n):
    """After three failures; where there are fewer questions, after all."""
    retriever = Numbered(fails_on=frozenset(range(n)))
    with pytest.raises(ConnectionError, match="no answer for 0") as caught:
        evaluate_retriever(retriever, rows(n), 1, max_concurrency=1)
    assert retriever.asked == list(range(min(n, 3)))
    assert "position 0" in caught.value.__notes__[0]
    with pytest.raises(ConnectionError):
        asyncio.run(aevaluate_retriever(retriever, rows(n), 1))
    with pytest.warns(KragEvalWarning, match=f"{n} of {n} queries failed"):
        assert evaluate_retriever(retriever, rows(n), on_error="record").averages()["mrr"] == 0


def test_an_answer_on_its_way_when_the_first_three_failed_saves_the_run():
    """By hand: 0, 1 and 2 fail while 3 is being answered; then 4 to 9 are asked after all."""
    failed, asked = threading.Barrier(4), []

    def slow(text):
        number = int(text.split()[-1].rstrip("?"))
        asked.append(number)
        if number < 4:
            failed.wait(10)  # all four are asked before one of them is over
        if number < 3:
            raise ConnectionError
        if number == 3:
            time.sleep(0.2)
        return [passage(number)]

    with pytest.warns(KragEvalWarning, match="3 of 10 queries failed"):
        result = evaluate_retriever(slow, rows(10), 1, max_concurrency=4)
    assert result.to_dict()["hit_rate@1"] == 0.7
    assert sorted(asked) == list(range(10))


def test_what_is_known_already_is_not_given_up(tmp_path):
    """By hand: 2 of 5 answers are in the checkpoint; the other three fail."""
    options = {"checkpoint": tmp_path / "run.jsonl", "max_concurrency": 1}
    with pytest.raises(ConnectionError):
        evaluate_retriever(
            Numbered(fails_on=frozenset({2})), rows(5), 1, on_error="raise", **options
        )
    with pytest.warns(KragEvalWarning, match="3 of 5 queries failed"):
        result = evaluate_retriever(Numbered(fails_on=frozenset({2, 3, 4})), rows(5), 1, **options)
    assert result.to_dict()["hit_rate@1"] == 0.4


@pytest.mark.parametrize("kind", [Numbered, AsyncNumbered])
def test_recorded_failures_count_as_nothing_retrieved(kind):
    """By hand: 3 of 100 failed, 97 are right."""
    for evaluate in (
        evaluate_retriever,
        lambda *a, **o: asyncio.run(aevaluate_retriever(*a, **o)),
    ):
        with pytest.warns(KragEvalWarning, match="3 of 100 queries failed and count as nothing"):
            result = evaluate(kind(fails_on=FAILING), rows(), 1, on_error="record")
        assert result.n_queries == 100
        assert result.to_dict()["hit_rate@1"] == 0.97
        assert result.failures.index.tolist() == [question(i) for i in sorted(FAILING)]
        assert result.failures["position"].tolist() == sorted(FAILING)
        assert set(result.failures["type"]) == {"ConnectionError"}
        assert result.failures["message"].tolist() == [f"no answer for {i}" for i in (7, 41, 99)]
        assert np.isnan(result.retrieval.seconds).nonzero()[0].tolist() == sorted(FAILING)
        assert "3 of 100 queries" in repr(result)


def test_an_explanation_tells_a_failure_from_an_empty_answer():
    """The status is the same, as both count as nothing retrieved."""
    with pytest.warns(KragEvalWarning, match="failed"):
        result = evaluate_retriever(
            Numbered(fails_on=frozenset({1})), rows(3), 1, on_error="record"
        )
    failed, answered = result.explain(position=1), result.explain(position=0)
    assert result.misses()["status"].tolist() == ["nothing retrieved"]
    assert failed.status == "nothing retrieved"
    assert (failed.failure, answered.failure) == ("ConnectionError: no answer for 1", None)
    assert "Asking the retriever failed: ConnectionError: no answer for 1" in failed.to_text()
    assert "Asking the retriever failed" in failed.to_html()
    assert "failed" not in answered.to_text()


def test_failed_queries_are_retried_alone():
    """And the new result is whole."""
    retriever = Numbered(fails_on=FAILING)
    with pytest.warns(KragEvalWarning, match="failed"):
        result = evaluate_retriever(retriever, rows(), 1, on_error="record")
    retriever.fails_on = frozenset({41})
    retriever.asked.clear()
    with pytest.warns(KragEvalWarning, match="1 of 100"):
        second = result.retry_failed(max_concurrency=1)
    assert retriever.asked == [7, 41, 99]
    retriever.fails_on = frozenset()
    third = asyncio.run(second.aretry_failed())
    assert [one.to_dict()["hit_rate@1"] for one in (result, second, third)] == [0.97, 0.99, 1]
    assert third == evaluate_retriever(Numbered(), rows(), 1)
    assert third.failures.empty
    assert not np.isnan(third.retrieval.seconds).any()


def test_retrying_what_did_not_fail_asks_nothing():
    """The result is the same."""
    retriever = Numbered(asked=[])
    result = evaluate_retriever(retriever, rows(3), 1)
    retriever.asked.clear()
    assert result.retry_failed() is result
    assert asyncio.run(result.aretry_failed()) is result
    assert retriever.asked == []


def test_a_result_without_failures_keeps_nothing_to_retry():
    """Neither the retriever nor a second hold on its documents."""
    assert evaluate_retriever(Numbered(), rows(3), 1).retrieval.again is None


def test_a_retry_takes_only_what_concerns_asking():
    """Another cutoff would be another evaluation."""
    with pytest.warns(KragEvalWarning, match="failed"):
        result = evaluate_retriever(
            Numbered(fails_on=frozenset({0})), rows(3), 1, on_error="record"
        )
    with pytest.raises(InvalidType, match=r"retry_failed\(\) takes 'on_error', ") as caught:
        result.retry_failed(k=3)
    assert caught.value.argument == "k"


def test_an_interrupt_is_no_failure():
    """It ends the run, also under on_error="record"."""

    def interrupted(asked):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_retriever(interrupted, rows(3), on_error="record")


# Latency


def test_latency_is_that_of_each_query():
    """A retriever that sleeps: 20 ms each, four at a time; waiting in line is not in it.

    At most four were timed at any moment, so their sum is at most four times the whole.
    """
    start = time.perf_counter()
    result = evaluate_retriever(Numbered(seconds=0.02), rows(20), 1, max_concurrency=4)
    whole = time.perf_counter() - start
    seconds = result.retrieval.seconds
    assert seconds.shape == (20,)
    assert (seconds >= 0.02).all()
    assert seconds.sum() <= 4 * whole
    # By definition; numpy is the independent tool.
    assert result.latency.mean == pytest.approx(np.mean(seconds))
    assert result.latency[1:] == tuple(np.percentile(seconds, [50, 95]))
    assert "latency: mean" in repr(result)
    assert "latency: mean" in result._repr_html_()


def test_async_latency_does_not_hold_the_waiting_of_others():
    """200 sleepers are not started all at once, or waiting for a thread would be in it.

    LangChain's threads are at most 32; all at once, the sum would be about 100 times the whole.
    """
    start = time.perf_counter()
    result = asyncio.run(aevaluate_retriever(Numbered(seconds=0.01), rows(200), 1))
    assert result.retrieval.seconds.sum() <= 32 * (time.perf_counter() - start)


def test_latency_of_a_result_that_was_not_retrieved_is_refused():
    """There is nothing measured."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    for read in (lambda: result.latency, lambda: result.failures, result.retry_failed):
        with pytest.raises(ValueError, match="does not know how its documents were retrieved"):
            read()


# How LangChain runs it


def test_no_more_than_max_concurrency_run_at_the_same_time():
    """Sync, async, and by LangChain's own config."""
    running, most, lock = 0, 0, threading.Lock()

    def counting(asked):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1
        return [passage(0)]

    for options in ({"max_concurrency": 2}, {"config": {"max_concurrency": 2}}):
        both_ways(counting, rows(12), 1, **options)
    assert most == 2


class Watching(BaseCallbackHandler):
    """Notes the events of retrievers and chains."""

    def __init__(self):
        self.seen = []

    def on_chain_start(self, serialized, inputs, **details):
        self.seen.append(("chain", inputs, details))

    def on_retriever_start(self, serialized, query, **details):
        self.seen.append(("retriever", query, details))


def test_callbacks_tags_and_metadata_reach_the_retriever_and_see_it_alone():
    """One event per question, without a parent: nothing of ours stands around it."""
    for run in (evaluate_retriever, lambda *a, **o: asyncio.run(aevaluate_retriever(*a, **o))):
        watching = Watching()
        config = {"callbacks": [watching], "tags": ["trial"], "metadata": {"run": 7}}
        run(Numbered(), rows(5), 1, config=config)
        assert sorted(query for _, query, _ in watching.seen) == [question(i) for i in range(5)]
        for kind, _, details in watching.seen:
            assert kind == "retriever"
            assert details["parent_run_id"] is None
            assert details["tags"] == ["trial"]
            assert details["metadata"]["run"] == 7
        assert "max_concurrency" not in config


def test_a_list_of_configs_has_one_per_question():
    """Each reaches its own."""
    watching = Watching()
    configs = [{"callbacks": [watching], "tags": [str(i)]} for i in range(5)]
    evaluate_retriever(Numbered(), rows(5), 1, config=configs)
    assert {query: details["tags"] for _, query, details in watching.seen} == {
        question(i): [str(i)] for i in range(5)
    }


def test_a_progress_bar_counts_the_queries(capsys):
    """On the error stream, and only if asked for where nobody looks."""
    evaluate_retriever(Numbered(), rows(7), 1, progress=True)
    assert "retrieving: 100%" in (shown := capsys.readouterr().err)
    assert "7/7" in shown
    evaluate_retriever(Numbered(), rows(7), 1)
    assert capsys.readouterr().err == ""


# Arguments are checked before anything is asked


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be a whole number"),
        ({"matcher": "rougel"}, ValueError, "did you mean 'rougeL'"),
        ({"metrics": ["recal"]}, ValueError, "recal"),
        ({"threshold": 2, "matcher": "rougeL"}, ValueError, "threshold"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"no_such": 1}, TypeError, "no_such"),
        ({"on_error": "ignore"}, ValueError, "on_error must be one of 'raise', 'record'"),
        ({"on_error": 1}, TypeError, "on_error must be one of 'raise', 'record'"),
        ({"max_concurrency": 0}, ValueError, "max_concurrency must be a whole number of at least"),
        ({"max_concurrency": True}, TypeError, "max_concurrency must be a whole number"),
        ({"config": "tags"}, TypeError, "config must be a LangChain config"),
        ({"config": [{}]}, ValueError, "one config per question, 3, got 1"),
        ({"progress": "yes"}, TypeError, "progress must be True, False, or None"),
        ({"input_key": 3}, TypeError, "input_key must be the name of a key"),
        ({"output_key": 3}, TypeError, "output_key must be the name of a key"),
    ],
)
def test_arguments_are_checked_before_anything_is_asked(options, error, message):
    """A run of an hour must not end in a misspelled option."""
    retriever = Numbered(asked=[])
    with pytest.raises(error, match=message):
        evaluate_retriever(retriever, rows(3), **{"k": 1, **options})
    assert retriever.asked == []


def test_a_question_without_ground_truth_is_refused_before_anything_is_asked():
    """Unless it is to be skipped."""
    retriever, dataset = Numbered(asked=[]), [*rows(2), {"question": question(5), "actual": []}]
    with pytest.raises(ValueError, match="no ground truth for 1 of 3 queries"):
        evaluate_retriever(retriever, dataset, 1)
    assert retriever.asked == []
    result = evaluate_retriever(retriever, dataset, 1, no_ground_truth="skip")
    assert result.counted.tolist() == [True, True, False]


def test_a_warning_about_the_ground_truth_is_given_once():
    """Though it is looked at twice."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate_retriever(Numbered(), rows(3), 1, grade_key="grade")
    assert [one.category for one in caught] == [KragEvalWarning]


# Keeping


def test_latency_and_failures_are_saved_with_the_result(tmp_path: Path):
    """To the last bit; the retriever is not."""
    with pytest.warns(KragEvalWarning, match="failed"):
        result = evaluate_retriever(Numbered(fails_on=FAILING), rows(), 1, on_error="record")
    result.to_json(tmp_path / "result.json")
    read = EvaluationResult.from_json(tmp_path / "result.json")
    assert read.latency == result.latency
    assert read.failures.equals(result.failures)
    assert np.array_equal(read.retrieval.seconds, result.retrieval.seconds, equal_nan=True)
    with pytest.raises(ValueError, match="there is no retriever to ask again"):
        read.retry_failed()


def test_a_result_can_be_pickled_whatever_the_retriever_holds():
    """A lambda cannot; what was measured travels without it."""

    def failing(asked):
        number = int(asked.split()[-1].rstrip("?"))
        return [passage(number + 0 // number)]

    with pytest.warns(KragEvalWarning, match="passage 0.*ZeroDivisionError"):
        result = evaluate_retriever(failing, rows(3), 1, on_error="record")
    copied = pickle.loads(pickle.dumps(result))
    assert copied == result
    assert copied.latency == result.latency
    assert copied.failures.equals(result.failures)
    with pytest.raises(ValueError, match="no retriever to ask again"):
        copied.retry_failed()
