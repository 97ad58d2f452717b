"""evaluate_retriever: which retrievers it accepts, what it returns, and how it handles failures."""

import asyncio
import pickle
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from results_made import read_back
from retriever_samples import (
    AsyncNumbered,
    Numbered,
    WordCounts,
    number_in,
    passage,
    question,
    ranks,
    rows,
    vector_retriever,
)

from krag_eval import (
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    aevaluate_retriever,
    evaluate_retriever,
)
from krag_eval.core import metadata_of
from krag_eval.errors import InvalidType

# Where every question fails, nothing is retrieved either, which is said as well.
pytestmark = pytest.mark.filterwarnings("ignore:Nothing was retrieved")

FAILING = frozenset({7, 11, 19})


def asynchronously(*arguments, **options):
    return asyncio.run(aevaluate_retriever(*arguments, **options))


DOORS = (evaluate_retriever, asynchronously)


def with_failures(*fails_on, n=3):
    """Return the result of a retriever that fails on some questions."""
    with pytest.warns(KragEvalWarning, match=f"{len(fails_on)} of {n} queries failed"):
        return evaluate_retriever(
            Numbered(fails_on=frozenset(fails_on)), rows(n), 1, on_error="record"
        )


# What may be asked


def test_a_vector_store_retriever_gives_what_asking_it_by_hand_gives():
    """The same numbers as its own batch and the evaluator."""
    retriever, dataset = vector_retriever([passage(i) for i in range(20)]), rows(20)
    asked = [row["question"] for row in dataset]
    by_hand = OfflineRetrievalEvaluator(
        [row["actual"] for row in dataset], retriever.batch(asked), queries=asked
    ).evaluate(k=[1, 3])
    for evaluate in DOORS:
        assert evaluate(retriever, dataset, [1, 3]) == by_hand


def test_a_base_retriever_returns_the_right_passage_first():
    """By hand: the passage is first of two documents, so recall 1 and precision 1/2 at 2."""
    result = evaluate_retriever(Numbered(), rows(), k=[1, 2])
    assert (result["macro_recall@1"], result["macro_precision@2"]) == (1, 0.5)
    assert result.labels == [question(i) for i in range(100)]


async def finds_passage(asked):
    """An async function from question to documents."""
    await asyncio.sleep(0)
    return [passage(number_in(asked))]


def deeper(asked, k):
    return [passage(number_in(asked) + i) for i in range(k)]


class Finder:
    def __call__(self, asked):
        return [passage(number_in(asked))]


class AsyncFinder:
    async def __call__(self, asked):
        return [passage(number_in(asked))]


STORE = InMemoryVectorStore.from_texts([passage(i) for i in range(5)], WordCounts())
IN_INPUT = {"documents": RunnableLambda(lambda given: given["input"]) | Numbered()}


@pytest.mark.parametrize(
    ("retriever", "options"),
    [
        (RunnableParallel(context=Numbered(), question=RunnablePassthrough()),
         {"output_key": "context"}),
        (RunnableParallel(IN_INPUT), {"input_key": "input", "output_key": "documents"}),
        (finds_passage, {}),
        (STORE.similarity_search, {}),
        (Finder(), {}),
        (AsyncFinder(), {}),
        # Further arguments with defaults are no matter; LangChain hands over its config.
        (partial(deeper, k=1), {}),
        (lambda *arguments: deeper(*arguments, 1), {}),
        (lambda asked, k=1: deeper(asked, k), {}),
        (lambda asked, config: deeper(asked, 1 + len(config["metadata"])), {}),
    ],
    ids=["dict out", "dict in", "async function", "bound method", "object", "async object",
         "partial", "any arguments", "default", "config"],
)  # fmt: skip
def test_what_may_be_asked(retriever, options):
    """Chains as they take and return dicts, and whatever can be called, by both doors."""
    for evaluate in DOORS:
        assert ranks(evaluate(retriever, rows(5), 1, **options)) == [1] * 5


def test_what_a_function_may_return():
    """By hand: strings, for even questions alone; dicts, with ids."""
    found = {question(i): passage(i) for i in range(0, 10, 2)}
    result = evaluate_retriever(lambda q: [found.get(q, "something else")], rows(10), 1)
    assert ranks(result) == [1, 0] * 5
    ids = [{"question": "q", "actual": ["7"]}]
    assert ranks(evaluate_retriever(lambda q: [{"page_content": "", "id": 7}], ids, 1, "id")) == [1]


def test_a_lambda_around_an_async_function_is_awaited_asynchronously():
    """It is no coroutine function, but returns a coroutine; asked at once, nobody awaits it."""
    assert ranks(asynchronously(lambda q: finds_passage(q), rows(5), 1)) == [1] * 5
    with pytest.raises(TypeError, match="never awaited: make the retriever an async function"):
        evaluate_retriever(lambda q: finds_passage(q), rows(5), 1)


@pytest.mark.parametrize(
    ("retriever", "fix"),
    [
        (Numbered, "pass an instance of this class"),
        (STORE, "pass what its as_retriever method returns"),
        ({"bm25": Numbered()}, "compare several retrievers by evaluate_retrievers"),
        (None, ""),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_pass_instead(retriever, fix):
    """A class, a store and several retrievers are mistakes one can tell."""
    with pytest.raises(InvalidType) as caught:
        evaluate_retriever(retriever, rows(2))
    assert (caught.value.argument, caught.value.fix) == ("retriever", fix)


# What may come back


@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        ("text", "return one even for a single document, or name its key by output_key=…"),
        ([["x", "0.5"]], "the score of what was retrieved stands behind it"),
    ],
)
def test_what_is_no_list_of_documents_is_a_failure_of_the_query(answer, fix):
    """With what to do, and a note that says which query it was."""
    with pytest.raises(InvalidType) as caught:
        evaluate_retriever(lambda q: answer, rows(1), 1)
    assert fix in str(caught.value)
    assert "failed on query 'What stands in passage 0?' (position 0)" in caught.value.__notes__[0]


def test_a_retriever_may_return_scores():
    """As similarity_search_with_score does; a cutoff by them keeps the better one alone."""

    def scored(asked):
        return [(passage(number_in(asked)), 0.9), (Document("y"), 0.4)]

    found = evaluate_retriever(scored, rows(3), 1, "text").evidence.texts.documents(0)
    assert [metadata_of(one)["score"] for one in found] == [0.9, 0.4]
    cut = evaluate_retriever(scored, rows(3), 1, "text", score_cutoff=0.5)
    assert cut.evidence.relevance.n_retrieved.tolist() == [1, 1, 1]


def test_a_retriever_that_finds_nothing_for_a_question_scores_0_there():
    """By hand: one of ten finds nothing."""
    result = evaluate_retriever(Numbered(finds_nothing_on=frozenset({3})), rows(10), 1)
    assert result["hit_rate@1"] == 0.9
    assert result.statuses()[question(3)] == "nothing retrieved"
    assert result.failures.empty


def test_duplicates_are_credited_once():
    """By hand: the passage four times, then another: recall 1, nDCG 1, precision 4/5."""
    averages = evaluate_retriever(Numbered(repeats=4), rows(10), 5)
    assert averages["macro_recall@5"] == averages["ndcg@5"] == averages["map@5"] == 1
    assert averages["macro_precision@5"] == 0.8


# Failures


def test_a_failing_query_raises_its_own_exception():
    """With a note that says which it was and what to do; nothing more is asked after it."""
    retriever = Numbered(fails_on=frozenset({2}))
    with pytest.raises(ConnectionError, match="no answer for 2") as caught:
        evaluate_retriever(retriever, rows(), max_concurrency=1, on_error="raise")
    (note,) = caught.value.__notes__
    assert note.startswith("The retriever failed on query 'What stands in passage 2?'")
    assert 'on_error="record"' in note
    assert retriever.asked == [0, 1, 2]


@pytest.mark.parametrize("on_error", [None, "record"])
@pytest.mark.parametrize("kind", [Numbered, AsyncNumbered])
@pytest.mark.parametrize("evaluate", DOORS)
def test_failures_count_as_nothing_retrieved(evaluate, kind, on_error):
    """By hand: 3 of 20 failed, 17 are right; it takes no wish to have them recorded."""
    failing = FAILING if on_error else frozenset({0, 1, 19})
    with pytest.warns(KragEvalWarning, match="3 of 20 queries failed and count as nothing"):
        result = evaluate(kind(fails_on=failing), rows(20), 1, on_error=on_error)
    assert (result.n_queries, result["hit_rate@1"]) == (20, 0.85)
    failed, table = sorted(failing), result.failures
    assert table.index.tolist() == [question(i) for i in failed]
    assert table["position"].tolist() == failed
    assert set(table["type"]) == {"ConnectionError"}
    assert table["message"].tolist() == [f"no answer for {i}" for i in failed]
    assert np.flatnonzero(np.isnan(result.retrieval.seconds)).tolist() == failed
    assert "3 of 20 queries" in repr(result)


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_a_retriever_that_never_works_raises_its_first_exception(n):
    """After three failures; where there are fewer questions, after all."""
    retriever = Numbered(fails_on=frozenset(range(n)))
    with pytest.raises(ConnectionError, match="no answer for 0") as caught:
        evaluate_retriever(retriever, rows(n), 1, max_concurrency=1)
    assert retriever.asked == list(range(min(n, 3)))
    assert "position 0" in caught.value.__notes__[0]
    with pytest.raises(ConnectionError):
        asynchronously(retriever, rows(n), 1)
    assert with_failures(*range(n), n=n).averages()["mrr"] == 0


def test_an_answer_on_its_way_when_the_first_three_failed_saves_the_run():
    """By hand: 0, 1 and 2 fail while 3 is being answered; then 4 to 9 are asked after all."""
    failed, asked = threading.Barrier(4), []

    def slow(text):
        number = number_in(text)
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
    assert ranks(result) == [0] * 3 + [1] * 7
    assert sorted(asked) == list(range(10))


def test_what_is_known_already_is_not_given_up(tmp_path):
    """By hand: 2 of 5 answers are in the checkpoint; the other three fail."""
    options = {"checkpoint": tmp_path / "run.jsonl", "max_concurrency": 1}
    with pytest.raises(ConnectionError):
        evaluate_retriever(Numbered(fails_on={2}), rows(5), 1, on_error="raise", **options)
    with pytest.warns(KragEvalWarning, match="3 of 5 queries failed"):
        result = evaluate_retriever(Numbered(fails_on={2, 3, 4}), rows(5), 1, **options)
    assert ranks(result) == [1, 1, 0, 0, 0]


def test_an_explanation_tells_a_failure_from_an_empty_answer():
    """The status is the same, as both count as nothing retrieved."""
    result = with_failures(1)
    failed, answered = result.explain(position=1), result.explain(position=0)
    assert result.misses()["status"].tolist() == ["nothing retrieved"]
    assert failed.status == "nothing retrieved"
    assert (failed.failure, answered.failure) == ("ConnectionError: no answer for 1", None)
    assert "Asking the retriever failed: ConnectionError: no answer for 1" in failed.to_text()
    assert "Asking the retriever failed" in failed.to_html()
    assert "failed" not in answered.to_text()


def test_failed_queries_are_retried_alone():
    """And the new result is whole, with nothing left to ask for."""
    retriever = Numbered(fails_on=FAILING)
    with pytest.warns(KragEvalWarning, match="failed"):
        result = evaluate_retriever(retriever, rows(20), 1)
    retriever.fails_on = frozenset({11})
    retriever.asked.clear()
    with pytest.warns(KragEvalWarning, match="1 of 20"):
        second = result.retry_failed(max_concurrency=1)
    assert retriever.asked == [7, 11, 19]
    retriever.fails_on = frozenset()
    third = asyncio.run(second.aretry_failed())
    assert [one["hit_rate@1"] for one in (result, second, third)] == [0.85, 0.95, 1]
    assert third == evaluate_retriever(Numbered(), rows(20), 1)
    assert third.failures.empty
    assert not np.isnan(third.retrieval.seconds).any()
    retriever.asked.clear()
    assert third.retry_failed() is third
    assert asyncio.run(third.aretry_failed()) is third
    assert (retriever.asked, third.retrieval.again) == ([], None)


def test_a_retry_takes_only_what_concerns_asking():
    """Another cutoff would be another evaluation."""
    with pytest.raises(InvalidType, match=r"retry_failed\(\) takes 'on_error', ") as caught:
        with_failures(0).retry_failed(k=3)
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
    result = asynchronously(Numbered(seconds=0.01), rows(200), 1)
    assert result.retrieval.seconds.sum() <= 32 * (time.perf_counter() - start)


def test_latency_of_a_result_that_was_not_retrieved_is_refused():
    """There is nothing measured."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    for read in (lambda: result.latency, lambda: result.failures, result.retry_failed):
        with pytest.raises(ValueError, match="does not know how its documents were retrieved"):
            read()


# How LangChain runs it


@pytest.mark.parametrize("options", [{"max_concurrency": 2}, {"config": {"max_concurrency": 2}}])
@pytest.mark.parametrize("evaluate", DOORS)
def test_no_more_than_max_concurrency_run_at_the_same_time(evaluate, options):
    """Two by the argument and by LangChain's own config."""
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

    evaluate(counting, rows(12), 1, **options)
    assert most == 2


class Watching(BaseCallbackHandler):
    """Notes the events of retrievers and chains."""

    def __init__(self):
        self.seen = []

    def on_chain_start(self, serialized, inputs, **details):
        self.seen.append(("chain", inputs, details))

    def on_retriever_start(self, serialized, query, **details):
        self.seen.append(("retriever", query, details))


@pytest.mark.parametrize("evaluate", DOORS)
def test_callbacks_tags_and_metadata_reach_the_retriever_and_see_it_alone(evaluate):
    """One event per question, without a parent: nothing of ours stands around it."""
    watching = Watching()
    config = {"callbacks": [watching], "tags": ["trial"], "metadata": {"run": 7}}
    evaluate(Numbered(), rows(5), 1, config=config)
    assert sorted(query for _, query, _ in watching.seen) == [question(i) for i in range(5)]
    for kind, _, details in watching.seen:
        assert (kind, details["parent_run_id"], details["tags"]) == ("retriever", None, ["trial"])
        assert details["metadata"]["run"] == 7
    assert "max_concurrency" not in config


def test_a_list_of_configs_has_one_per_question():
    """Each reaches its own."""
    watching = Watching()
    configs = [{"callbacks": [watching], "tags": [str(i)]} for i in range(5)]
    evaluate_retriever(Numbered(), rows(5), 1, config=configs)
    seen = {query: details["tags"] for _, query, details in watching.seen}
    assert seen == {question(i): [str(i)] for i in range(5)}


def test_a_progress_bar_counts_the_queries(capsys):
    """On the error stream, and only if asked for where nobody looks."""
    evaluate_retriever(Numbered(), rows(7), 1, progress=True)
    assert "retrieving: 100%" in (shown := capsys.readouterr().err)
    assert "7/7" in shown
    evaluate_retriever(Numbered(), rows(7), 1)
    assert capsys.readouterr().err == ""


def test_a_question_without_ground_truth_may_be_skipped():
    """It is asked, and does not count."""
    dataset = [*rows(2), {"question": question(5), "actual": []}]
    result = evaluate_retriever(Numbered(), dataset, 1, no_ground_truth="skip")
    assert result.counted.tolist() == [True, True, False]


def test_a_warning_about_the_ground_truth_is_given_once():
    """Though it is looked at twice."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        evaluate_retriever(Numbered(), rows(3), 1, grade_key="grade")
    assert [one.category for one in caught] == [KragEvalWarning]


# Keeping


@pytest.mark.parametrize("way", ["json", "pickle"])
def test_latency_and_failures_are_kept_with_the_result(tmp_path, way):
    """To the last bit; the retriever is not, whatever it holds."""

    def failing(asked):  # a function that cannot be pickled
        return [passage(number_in(asked) + 0 // number_in(asked))]

    with pytest.warns(KragEvalWarning, match="passage 0.*ZeroDivisionError"):
        result = evaluate_retriever(failing, rows(3), 1, on_error="record")
    if way == "json":
        read = read_back(result, tmp_path)
    else:
        read = pickle.loads(pickle.dumps(result))
        assert read == result
    assert read.latency == result.latency
    assert read.failures.equals(result.failures)
    assert np.array_equal(read.retrieval.seconds, result.retrieval.seconds, equal_nan=True)
    with pytest.raises(ValueError, match="there is no retriever to ask again"):
        read.retry_failed()
