"""Evaluators for LangSmith, called by LangSmith itself, offline.

Expected numbers are worked out by hand from the lists below: ``found`` has both of its two items,
at ranks 1 and 3, ``missed`` none of its one, and the run for ``failed`` raises.
"""

import asyncio
import datetime
import inspect
import json
import logging
import re
import socket
import uuid

import langsmith
import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps
from langsmith import schemas
from places import DOCS
from processes import printed

from krag_eval import (
    FuzzyMatcher,
    JudgeMatcher,
    KragEvalWarning,
    Metric,
    OfflineRetrievalEvaluator,
)
from krag_eval.integrations.langsmith import retrieval_evaluators

pytestmark = [
    # LangSmith's own, when it first looks at an evaluator on Python 3.12 and later.
    pytest.mark.filterwarnings("ignore:ast.Str is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'upload_(results|runs)' parameter is in beta"),
]

GUIDE = DOCS / "integrations.md"
RETRIEVED = {
    "found": ["Open from 9.", "Closed on Mondays.", "Free on Sundays."],
    "missed": ["No dogs.", "Opem from 9."],
}
WANTED = {
    "found": ["Open from 9.", "Free on Sundays."],
    "missed": ["Open from 9."],
    "failed": ["Four weeks."],
}
NOTHING = {"recall@1": 0.0, "rank@1": None, "recall@3": 0.0, "rank@3": None}
FOUND = {"recall@1": 0.5, "rank@1": 1.0, "recall@3": 1.0, "rank@3": 1.0}
# The failed one counts too: 1 of 4 items is found within 1, and 2 of 4 within 3.
AVERAGES = {
    "micro_recall@1": 0.25, "macro_recall@1": pytest.approx(0.5 / 3),
    "mean_rank@1": 1.0, "found_rate@1": pytest.approx(1 / 3),
    "micro_recall@3": 0.5, "macro_recall@3": pytest.approx(1 / 3),
    "mean_rank@3": 1.0, "found_rate@3": pytest.approx(1 / 3),
}  # fmt: skip


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


def retrieve(inputs):
    """Retrieve documents, but for one question."""
    return {"documents": [Document(text) for text in RETRIEVED[inputs["question"]]]}


async def aretrieve(inputs):
    return retrieve(inputs)


@pytest.mark.parametrize("way", ["client", "threads", "async"])
def test_langsmith_evaluates_offline(client, way):
    """Per query the values of each; in the summary the averages over all three."""
    per_query, summary = retrieval_evaluators(k=[1, 3], metrics=["recall", "rank"])
    how = {
        "data": [example(question, documents) for question, documents in WANTED.items()],
        "evaluators": [per_query],
        "summary_evaluators": [summary],
        "upload_results": False,
    }
    if way == "async":

        async def run():
            results = await langsmith.aevaluate(aretrieve, client=client, **how)
            return [row async for row in results], results

        rows, results = asyncio.run(run())
    elif way == "threads":
        rows = results = langsmith.evaluate(retrieve, client=client, max_concurrency=4, **how)
    else:
        rows = results = client.evaluate(retrieve, **how)
    scores = {
        row["example"].inputs["question"]: {
            one.key: one.score for one in row["evaluation_results"]["results"]
        }
        for row in rows
    }
    assert scores == {"found": FOUND, "missed": NOTHING, "failed": NOTHING}
    averages = {one.key: one.score for one in results._summary_results["results"]}
    assert averages == AVERAGES


def score_of(client, one):
    """Return the only score that LangSmith gives an example."""
    per_query, _ = retrieval_evaluators(metrics=["recall"])
    (row,) = client.evaluate(retrieve, data=[one], evaluators=[per_query], upload_results=False)
    (score,) = row["evaluation_results"]["results"]
    return score


def test_a_failed_run_says_why_in_its_comment(client):
    """With the first line of its error."""
    assert score_of(client, example("failed", WANTED["failed"])).comment == (
        "the run failed or returned nothing (KeyError('failed')), which counts as nothing "
        "retrieved; found 0 of 1 within 0; missed 'Four weeks.'"
    )


def test_an_example_that_cannot_be_scored_reaches_langsmiths_log(client, caplog):
    """LangSmith logs what an evaluator raises; no score is made up."""
    with caplog.at_level(logging.ERROR):
        assert score_of(client, example("found", ["a"], key="wanted")).score is None
    told = "got the keys ['wanted']; name the key of the one that is meant by reference_key="
    assert told in caplog.text


def scored(outputs, reference, **options):
    """Return the only score of one example."""
    per_query, _ = retrieval_evaluators(**{"metrics": ["recall"], **options})
    (score,) = per_query(inputs={}, outputs=outputs, reference_outputs=reference)
    return score


DESCRIBED = Document("Open from 9.", id="7", metadata={"page": 1})
SERIALISED = [
    "Open from 9.",
    Document("Open from 9."),
    {"page_content": "Open from 9."},
    DESCRIBED.model_dump(),
    json.loads(dumps(DESCRIBED)),
]


@pytest.mark.parametrize("wanted", SERIALISED)
@pytest.mark.parametrize("came", SERIALISED)
def test_documents_may_come_in_any_form(came, wanted):
    """As objects, strings, dicts, and as LangSmith gives serialised ones back."""
    assert scored({"documents": [came]}, {"documents": [wanted]})["score"] == 1.0


@pytest.mark.parametrize(
    ("outputs", "reference", "options"),
    [
        # LangChain's dumps keeps ids within "kwargs".
        ([json.loads(dumps(DESCRIBED))], [Document("two", id="7")], {"matcher": "id"}),
        # Interchangeable documents are one item: either is all there is to find.
        (["x", "At nine."], [{"any_of": ["From 9.", {"page_content": "At nine."}]}], {}),
        # Usual keys are recognised beside an answer and other fields.
        ({"answer": "At 9.", "documents": ["a"]}, {"answer": "9", "contexts": ["a"]}, {}),
        ({"answer": "At 9.", "context": ["a"]}, ["a"], {}),
        ({"answer": "At 9.", "retrieved_contexts": ["a"]}, ["a"], {}),
        ({"answer": "At 9.", "output": ["a"]}, ["a"], {}),
        # A joined context is no list of documents, so there is no ambiguity.
        ({"context": "a\n\nb", "documents": ["a"]}, ["a"], {}),
        ({"hits": ["a"], "documents": ["b"]}, {"gold": ["a"], "documents": ["b"]},
         {"documents_key": "hits", "reference_key": "gold"}),
    ],
)  # fmt: skip
def test_where_documents_are_found(outputs, reference, options):
    """Under the usual keys, or those that are named."""
    assert scored(outputs, reference, **options)["score"] == 1.0


FAILED = "the run failed or returned nothing, which counts as nothing retrieved; found 0 of 1 "


@pytest.mark.parametrize(
    ("outputs", "reference", "options", "score", "comment"),
    [
        (None, ["a"], {}, 0, f"{FAILED}within 0; missed 'a'"),
        ({}, ["a"], {}, 0, f"{FAILED}within 0; missed 'a'"),
        ({"output": None}, ["a"], {}, 0, f"{FAILED}within 0; missed 'a'"),
        # An empty list is a run that found nothing, not a failure.
        ({"documents": []}, ["a"], {}, 0, "found 0 of 1 within 0; missed 'a'"),
        # Of 12 letters one is wrong: the similarity is 1 - 1/12.
        (RETRIEVED["missed"], WANTED["missed"], {"matcher": FuzzyMatcher(threshold=0.95)}, 0,
         "found 0 of 1 within 2; missed 'Open from 9.' (nearest at rank 2, 0.92 of 0.95)"),
        (["x", "a", "b"], ["a", "b"], {"k": 2}, 0.5,
         "found 1 of 2 within 2 (rank 2); missed 'b' (found at rank 3)"),
        (["a", "b"], ["b", "a"], {}, 1, "found 2 of 2 within 2 (ranks 2, 1)"),
        # The comment stays short.
        (["x"], ["a", "b", "c", "d", "e"], {}, 0,
         "found 0 of 5 within 1; missed 'a', 'b', 'c' and 2 more"),
        # LangSmith leaves what is undefined out of its means.
        (["a"], [], {"no_ground_truth": "skip"}, None,
         "no ground truth: left out of every average"),
        (["a"], [], {"no_ground_truth": "zero"}, 0, "found 0 of 0 within 1"),
    ],
)  # fmt: skip
def test_a_score_and_its_comment(outputs, reference, options, score, comment):
    """What was found, and at which ranks, and what was missed."""
    expected = {"key": f"recall@{options.get('k', 5)}", "score": score, "comment": comment}
    assert scored(outputs, reference, **options) == expected


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
    assert (score["key"], score["score"]) == ("micro_recall@1", 0.5)
    assert score["comment"].startswith("2 queries; 1 failed and count as nothing retrieved; match")


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
    """By its name; a built-in one may be named as its scores are."""
    found = Metric("found", lambda relevance, k, _: relevance.covered_within(k), "mean_found")
    per_query, summary = retrieval_evaluators(k=3, metrics=[found, "recall@3"])
    scores = per_query(inputs={}, outputs=["a", "b"], reference_outputs=["a", "b", "c", "d"])
    assert [(one["key"], one["score"]) for one in scores] == [("found@3", 2.0), ("recall@3", 0.5)]
    mean, *_ = summary([{}], [["a", "b"]], [["a", "b", "c"]])
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
    came, wanted = ["At ten.", "At nine."], ["It opens at nine."]
    (score,) = per_query(inputs=inputs, outputs=came, reference_outputs=wanted)
    assert (score["score"], {*asked}) == (1.0, {"When?"})
    assert [one["score"] for one in summary([inputs], [came], [wanted])] == [1.0, 1.0]


def test_who_calls_passes_what_it_knows():
    """LangSmith parameters by name, OpenEvals some unknown ones; both get key, score, comment."""
    per_query, summary = retrieval_evaluators(metrics=["recall", "ndcg"])
    known = {"inputs", "outputs", "reference_outputs", "run", "unused"}
    assert set(inspect.signature(per_query).parameters) == known
    assert list(inspect.signature(summary).parameters) == ["inputs", "outputs", "reference_outputs"]
    scores = per_query(outputs=["a"], reference_outputs=["a"], inputs="When?", thread_id="t")
    assert [set(one) for one in scores] == [{"key", "score", "comment"}] * 2


def test_langsmith_is_not_imported():
    """It calls us; whoever only imports the module does not wait for it."""
    code = "import sys, krag_eval.integrations.langsmith; print('langsmith' in sys.modules)"
    assert printed(code) == "False\n"


def test_the_offline_example_of_the_guide(capsys):
    """Of two questions one is answered by what the target always returns."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.M)
    (block,) = [block for block in blocks if "upload_results=False" in block]
    exec(compile(block, GUIDE.name, "exec"), {})
    printed = sorted(line for line in capsys.readouterr().out.splitlines() if "recall" in line)
    assert printed == ["Is it free? recall@2 0.0", "When is it open? recall@2 1.0"]
