"""Evaluators for LangSmith, called by LangSmith itself, offline.

Expected numbers are worked out by hand from the lists below: ``found`` has both of its two items,
at ranks 1 and 3, ``missed`` none of its one, and the run for ``failed`` raises.
"""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import logging
import socket
import subprocess
import sys
import uuid

import langsmith
import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps
from langsmith import schemas

from krag_eval import (
    FuzzyMatcher,
    JudgeMatcher,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
)
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.integrations.langsmith import retrieval_evaluators

# LangSmith's own, when it first looks at an evaluator on Python 3.12 and later.
pytestmark = pytest.mark.filterwarnings("ignore:ast.Str is deprecated:DeprecationWarning")

RETRIEVED = {
    "found": ["Open from 9.", "Closed on Mondays.", "Free on Sundays."],
    "missed": ["No dogs.", "Opem from 9."],
}
WANTED = {
    "found": ["Open from 9.", "Free on Sundays."],
    "missed": ["Open from 9."],
    "failed": ["Four weeks."],
}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Whoever connects anywhere fails the test."""
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: asked.append(host))
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_TRACING"):
        monkeypatch.delenv(name, raising=False)
    yield
    assert asked == []


@pytest.fixture
def client():
    """A client that sends nothing, not even the question what the server can do.

    ``aevaluate`` traces the runs of the target even with ``upload_results=False``; sampling none
    of them keeps them here.
    """
    return langsmith.Client(
        api_url="http://offline.invalid",
        api_key="none",
        info={},
        auto_batch_tracing=False,
        tracing_sampling_rate=0,
    )


def example(question, documents, key="documents"):
    """Return an example as a dataset holds it."""
    return schemas.Example(
        id=uuid.uuid4(),
        dataset_id=uuid.uuid4(),
        inputs={"question": question},
        outputs={key: documents},
        created_at=datetime.datetime.now(datetime.UTC),
    )


def examples():
    return [example(question, documents) for question, documents in WANTED.items()]


def retrieve(inputs):
    """Retrieve documents, but for one question."""
    return {"documents": [Document(text) for text in RETRIEVED[inputs["question"]]]}


async def aretrieve(inputs):
    return retrieve(inputs)


def scores_of(rows):
    """Return the scores of each question by key."""
    return {
        row["example"].inputs["question"]: {
            one.key: one.score for one in row["evaluation_results"]["results"]
        }
        for row in rows
    }


EXPECTED = {
    "found": {"recall@1": 0.5, "rank@1": 1.0, "recall@3": 1.0, "rank@3": 1.0},
    "missed": {"recall@1": 0.0, "rank@1": None, "recall@3": 0.0, "rank@3": None},
    "failed": {"recall@1": 0.0, "rank@1": None, "recall@3": 0.0, "rank@3": None},
}


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_langsmith_evaluates_offline(client):
    """Per query the values of each; in the summary the averages over all three.

    The failed one counts too: 1 of 4 items is found within 1, and 2 of 4 within 3.
    """
    per_query, summary = retrieval_evaluators(k=[1, 3], metrics=["recall", "rank"])
    results = client.evaluate(
        retrieve,
        data=examples(),
        evaluators=[per_query],
        summary_evaluators=[summary],
        upload_results=False,
    )
    assert scores_of(results) == EXPECTED
    averages = {one.key: one.score for one in results._summary_results["results"]}
    assert averages == {
        "micro_recall@1": 0.25, "macro_recall@1": pytest.approx(0.5 / 3),
        "mean_rank@1": 1.0, "found_rate@1": pytest.approx(1 / 3),
        "micro_recall@3": 0.5, "macro_recall@3": pytest.approx(1 / 3),
        "mean_rank@3": 1.0, "found_rate@3": pytest.approx(1 / 3),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_langsmith_evaluates_concurrently(client):
    """With threads of its own, examples keep their scores."""
    per_query, summary = retrieval_evaluators(k=[1, 3], metrics=["recall", "rank"])
    results = langsmith.evaluate(
        retrieve,
        data=examples(),
        evaluators=[per_query],
        summary_evaluators=[summary],
        upload_results=False,
        max_concurrency=4,
        client=client,
    )
    assert scores_of(results) == EXPECTED
    assert {one.key: one.score for one in results._summary_results["results"]}[
        "micro_recall@3"
    ] == 0.5


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_langsmith_evaluates_asynchronously(client):
    """The same scores from ``aevaluate``."""

    async def run():
        per_query, summary = retrieval_evaluators(k=[1, 3], metrics=["recall", "rank"])
        results = await langsmith.aevaluate(
            aretrieve,
            data=examples(),
            evaluators=[per_query],
            summary_evaluators=[summary],
            upload_results=False,
            client=client,
        )
        rows = [row async for row in results]
        return scores_of(rows), results._summary_results["results"]

    rows, averages = asyncio.run(run())
    assert rows == EXPECTED
    assert {one.key: one.score for one in averages}["micro_recall@3"] == 0.5


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_a_failed_run_says_why_in_its_comment(client):
    """With the first line of its error."""
    per_query, _ = retrieval_evaluators(metrics=["recall"])
    results = client.evaluate(
        retrieve, data=examples()[2:], evaluators=[per_query], upload_results=False
    )
    (row,) = results
    (score,) = row["evaluation_results"]["results"]
    assert score.comment == (
        "the run failed or returned nothing (KeyError('failed')), which counts as nothing "
        "retrieved; found 0 of 1 within 0; missed 'Four weeks.'"
    )


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_an_example_that_cannot_be_scored_reaches_langsmiths_log(client, caplog):
    """LangSmith logs what an evaluator raises; no score is made up."""
    per_query, _ = retrieval_evaluators(metrics=["recall"])
    with caplog.at_level(logging.ERROR):
        results = client.evaluate(
            retrieve,
            data=[example("found", ["Open from 9."], key="wanted")],
            evaluators=[per_query],
            upload_results=False,
        )
        (row,) = results
    assert [one.score for one in row["evaluation_results"]["results"]] == [None]
    assert (
        "got the keys ['wanted']; name the key of the one that is meant by reference_key="
        in caplog.text
    )


def scored(outputs, reference, **options):
    """Return the only score of one example."""
    per_query, _ = retrieval_evaluators(**{"metrics": ["recall"], **options})
    (score,) = per_query(inputs={}, outputs=outputs, reference_outputs=reference)
    return score


SERIALISED = [
    "Open from 9.",
    Document("Open from 9."),
    {"page_content": "Open from 9."},
    Document("Open from 9.", id="7", metadata={"page": 1}).model_dump(),
    json.loads(dumps(Document("Open from 9.", id="7", metadata={"page": 1}))),
]


@pytest.mark.parametrize("wanted", SERIALISED)
@pytest.mark.parametrize("came", SERIALISED)
def test_documents_may_come_in_any_form(came, wanted):
    """As objects, strings, dicts, and as LangSmith gives serialised ones back."""
    assert scored({"documents": [came]}, {"documents": [wanted]})["score"] == 1.0


def test_ids_survive_serialisation():
    """LangChain's ``dumps`` keeps them within ``kwargs``."""
    came = json.loads(dumps(Document("one way", id="7")))
    wanted = Document("another", id="7")
    assert scored({"docs": [came]}, {"docs": [wanted]}, matcher="id")["score"] == 1.0


def test_interchangeable_documents_are_one_item():
    """Either of them is all there is to find."""
    wanted = [{"any_of": ["From 9.", {"page_content": "At nine."}]}]
    assert scored(["x", "At nine."], wanted)["score"] == 1.0


def test_another_serialised_object_is_refused():
    """Only documents are read; nothing is built by its name."""
    other = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "ls"}}
    with pytest.raises(ValueError, match=r"outputs\['documents'\]\[0\] must be a document, got a"):
        scored({"documents": [other]}, {"documents": ["x"]})


@pytest.mark.parametrize("key", ["documents", "context", "retrieved_contexts", "output"])
def test_usual_keys_are_recognised(key):
    """Beside an answer and other fields."""
    assert scored({"answer": "At 9.", key: ["a"]}, {"answer": "9", "contexts": ["a"]})["score"] == 1


def test_a_joined_context_beside_the_documents_is_no_ambiguity():
    """A text is no list of documents."""
    assert scored({"context": "a\n\nb", "documents": ["a"]}, ["a"])["score"] == 1


def test_two_lists_are_ambiguous():
    """Neither is guessed at."""
    with pytest.raises(ValueError, match=r"outputs must hold one list .*'context', 'documents'"):
        scored({"context": ["a"], "documents": ["b"]}, ["a"])


def test_a_key_can_be_named():
    """For outputs and reference outputs, usual or not."""
    score = scored(
        {"hits": ["a"], "documents": ["b"]},
        {"gold": ["a"], "documents": ["b"]},
        documents_key="hits",
        reference_key="gold",
    )
    assert score["score"] == 1


def test_a_named_key_must_be_there():
    """A run without it is no run that retrieved nothing."""
    with pytest.raises(ValueError, match="outputs must hold one list of documents"):
        scored({"documents": ["b"]}, ["a"], documents_key="hits")


def test_outputs_without_a_usual_key_are_refused():
    """With the keys that came."""
    with pytest.raises(
        ValueError, match=r"outputs must hold one list .* got the keys \['answer'\]"
    ):
        scored({"answer": "At 9."}, ["a"])


def test_a_text_is_no_list():
    """Even under the key that was named."""
    with pytest.raises(TypeError, match=r"reference_outputs\['gold'\] must be a list of documents"):
        scored(["a"], {"gold": "a"}, reference_key="gold")


def test_an_example_without_reference_outputs_is_refused():
    """It has no ground truth to score against."""
    with pytest.raises(ValueError, match="reference_outputs must hold one list of documents"):
        scored(["a"], None)


@pytest.mark.parametrize("outputs", [None, {}, {"output": None}])
def test_a_run_that_left_nothing_retrieved_nothing(outputs):
    """Recall is 0, and the comment says why."""
    score = scored(outputs, ["a"])
    assert score["score"] == 0.0
    assert score["comment"].startswith("the run failed or returned nothing, which counts as")


def test_an_empty_list_is_a_run_that_found_nothing():
    """Not a failure."""
    assert scored({"documents": []}, ["a"]) == {
        "key": "recall@5", "score": 0.0, "comment": "found 0 of 1 within 0; missed 'a'",
    }  # fmt: skip


def test_the_comment_names_the_nearest_miss():
    """Of 12 letters one is wrong: the similarity is 1 - 1/12."""
    score = scored(RETRIEVED["missed"], WANTED["missed"], matcher=FuzzyMatcher(threshold=0.95), k=2)
    assert score["comment"] == (
        "found 0 of 1 within 2; missed 'Open from 9.' (nearest at rank 2, 0.92 of 0.95)"
    )


def test_the_comment_names_what_came_too_late():
    """With the rank."""
    score = scored(["x", "a", "b"], ["a", "b"], k=2)
    assert score["comment"] == "found 1 of 2 within 2 (rank 2); missed 'b' (found at rank 3)"


def test_the_comment_names_three_misses_and_counts_the_rest():
    """It stays short."""
    score = scored(["x"], ["a", "b", "c", "d", "e"])
    assert score["comment"] == "found 0 of 5 within 1; missed 'a', 'b', 'c' and 2 more"


def test_no_ground_truth_is_an_error_unless_told():
    """As everywhere."""
    with pytest.raises(ValueError, match="reference_outputs: the list of ground truth is empty"):
        scored(["a"], [])


def test_no_ground_truth_can_be_skipped():
    """The score is undefined, and LangSmith leaves it out of its means."""
    score = scored(["a"], [], no_ground_truth="skip")
    assert score["score"] is None
    assert score["comment"] == "no ground truth: left out of every average"


def test_no_ground_truth_can_count_as_zero():
    """As for the evaluator."""
    assert scored(["a"], [], no_ground_truth="zero")["score"] == 0.0


def test_single_queries_do_not_warn_but_the_summary_does():
    """That nothing matched in one query is no news; in all of them it is."""
    per_query, summary = retrieval_evaluators()
    per_query(inputs={}, outputs=["x"], reference_outputs=["a"])
    with pytest.warns(KragEvalWarning, match="matched nothing at all in 2 queries"):
        summary([{}, {}], [["x"], ["y"]], [["a"], ["b"]])


def test_the_summary_counts_failed_runs():
    """And gives the signature of the evaluation."""
    _, summary = retrieval_evaluators(k=1, metrics=["recall"], averaging_method="micro")
    (score,) = summary([{}, {}], [["a"], None], [["a"], ["b"]])
    assert score["key"] == "micro_recall@1"
    assert score["score"] == 0.5
    assert score["comment"].startswith("2 queries; 1 failed and count as nothing retrieved; match")


def test_the_summary_names_the_example_it_cannot_read():
    """By its place."""
    _, summary = retrieval_evaluators()
    with pytest.raises(TypeError, match=r"reference_outputs\[1\] must be a list of documents"):
        summary([{}, {}], [["a"], ["b"]], [["a"], "b"])


def test_scores_are_those_of_the_evaluator():
    """With conventions, criteria and cutoffs passed through, for every metric."""
    options = {"conventions": "trec", "matching_criteria": "partial"}
    actual, predicted = ["a", "b"], ["x", "a", "a"]
    per_query, _ = retrieval_evaluators(k=[2, None], **options)
    scores = per_query(inputs={}, outputs=predicted, reference_outputs=actual)
    result = OfflineRetrievalEvaluator([actual], [predicted], **options).evaluate([2, None])
    assert {one["key"]: one["score"] for one in scores} == {
        f"{name}@{k}": result.tables[cutoff][name][0]
        for k, cutoff in (("2", 2), ("all", None))
        for name in result.keys
    }
    assert {type(one["score"]) for one in scores} == {float}


def test_a_metric_of_ones_own():
    """By its name."""
    found = Metric("found", lambda relevance, k, _: relevance.covered_within(k), "mean_found")
    per_query, summary = retrieval_evaluators(k=3, metrics=[found])
    (one,) = per_query(inputs={}, outputs=["a", "b"], reference_outputs=["a", "b", "c"])
    assert (one["key"], one["score"]) == ("found@3", 2.0)
    (mean,) = summary([{}], [["a", "b"]], [["a", "b", "c"]])
    assert (mean["key"], mean["score"]) == ("mean_found@3", 2.0)


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ("When?", {}),
        ({"anything": "When?"}, {}),
        ({"question": "When?", "user": "7"}, {}),
        ({"topic": "When?", "user": "7"}, {"question_key": "topic"}),
    ],
)
def test_a_judge_gets_the_question(inputs, options):
    """It says yes to the answer of this question alone."""
    asked = []

    def judge(question, actual, predicted):
        asked.append(question)
        return predicted == "At nine."

    matcher = JudgeMatcher(judge, version="1")
    per_query, summary = retrieval_evaluators(2, matcher, metrics=["recall"], **options)
    (score,) = per_query(
        inputs=inputs, outputs=["At ten.", "At nine."], reference_outputs=["It opens at nine."]
    )
    assert (score["score"], {*asked}) == (1.0, {"When?"})
    averages = summary([inputs], [["At ten.", "At nine."]], [["It opens at nine."]])
    assert [one["score"] for one in averages] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("inputs", "argument"),
    [({"a": "x", "b": "y"}, "inputs"), ({"question": 7}, "inputs['question']"), (None, "inputs")],
)
def test_a_judge_without_a_question_is_refused(inputs, argument):
    """With what holds it by name."""
    matcher = JudgeMatcher(lambda question, actual, predicted: True, version="1")
    per_query, _ = retrieval_evaluators(2, matcher)
    with pytest.raises((InvalidInput, InvalidType)) as refused:
        per_query(inputs=inputs, outputs=["a"], reference_outputs=["a"])
    assert refused.value.argument == argument


def test_openevals_calls_by_keyword():
    """Its evaluators are called with keywords, some unknown, and give key, score and comment."""
    per_query, _ = retrieval_evaluators(metrics=["recall", "ndcg"])
    scores = per_query(outputs=["a"], reference_outputs=["a"], inputs="When?", thread_id="t")
    assert [set(one) for one in scores] == [{"key", "score", "comment"}] * 2


def test_langsmith_knows_every_parameter():
    """It passes on what it knows by name, and takes an unknown one for its own old form."""
    per_query, summary = retrieval_evaluators()
    known = {"inputs", "outputs", "reference_outputs", "run", "unused"}
    assert set(inspect.signature(per_query).parameters) == known
    assert list(inspect.signature(summary).parameters) == ["inputs", "outputs", "reference_outputs"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number"),
        ({"matcher": "rouge"}, "matcher must be one of"),
        ({"threshold": 2, "matcher": "fuzzy"}, "threshold"),
        ({"metrics": ["recal"]}, "metrics must be one of"),
        ({"conventions": "tre"}, "conventions must be one of"),
        ({"no_ground_truth": "drop"}, "no_ground_truth must be one of"),
    ],
)
def test_bad_options_are_refused_at_once(options, message):
    """Not once per example, where LangSmith would log and swallow it."""
    with pytest.raises(ValueError, match=message):
        retrieval_evaluators(**options)


def test_langsmith_is_not_imported():
    """It calls us; whoever only imports the module does not wait for it."""
    code = "import sys, krag_eval.integrations.langsmith; print('langsmith' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
