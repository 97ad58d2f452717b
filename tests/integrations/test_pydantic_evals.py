"""The evaluators of Pydantic Evals, run by its own data sets.

Expected numbers are worked out by hand: ``half`` finds one of two, at rank 1, ``nothing`` none of
one, and the task of ``failed`` raises, which counts as nothing found of one.
"""

from dataclasses import dataclass

import pytest
from langchain_core.documents import Document
from pydantic import BaseModel
from pydantic_evals import Case, Dataset

from krag_eval import IdMatcher
from krag_eval.errors import InvalidInput
from krag_eval.integrations.pydantic_evals import RetrievalEvaluator, RetrievalReport

WANTED = {"half": ["a", "b"], "nothing": ["c"], "failed": ["d"]}
METRICS = ["recall@2", "mrr@2", "rank@2"]


class Answer(BaseModel):
    text: str
    documents: list[str]


@dataclass
class Held:
    documents: list[Document]


def task(question):
    if question == "failed":
        raise TimeoutError
    return ["a", "x", "b"]


def dataset_of(*evaluators, where="expected_output", report=(), **cases):
    several = [
        Case(name=name, inputs=name, **{where: documents})
        for name, documents in (cases or WANTED).items()
    ]
    return Dataset[str, object, object](
        name="library", cases=several, evaluators=evaluators, report_evaluators=report
    )


def scores_of(report):
    """Return the scores and the labels of each case, by name."""
    return {
        case.name: {one.name: one.value for one in (*case.scores.values(), *case.labels.values())}
        for case in report.cases
    }


@pytest.mark.parametrize("where", ["expected_output", "metadata"])
def test_a_data_set_is_evaluated(where):
    """A score for each metric and case; what is undefined is a label."""
    dataset = dataset_of(RetrievalEvaluator(METRICS, ground_truth=where), where=where)
    report = dataset.evaluate_sync(task, progress=False)
    assert scores_of(report) == {
        "half": {"recall@2": 0.5, "reciprocal_rank@2": 1.0, "rank@2": 1.0},
        "nothing": {"recall@2": 0.0, "reciprocal_rank@2": 0.0, "rank@2": "undefined"},
    }
    assert [case.name for case in report.failures] == ["failed"]
    reason = report.cases[0].scores["recall@2"].reason
    assert reason == "found 1 of 2 within 2 (rank 1); missed 'b' (found at rank 3)"


@pytest.mark.parametrize(
    "output",
    [
        ["a", "x"],
        {"documents": ["a", "x"], "answer": "At nine."},
        Answer(text="At nine.", documents=["a", "x"]),
        Held([Document("a"), Document("x")]),
    ],
    ids=["list", "dict", "model", "dataclass"],
)
def test_documents_are_found_in_what_a_task_returns(output):
    """A list, or a list under a usual name within a dict, a model or a dataclass."""
    dataset = dataset_of(RetrievalEvaluator("recall@2"), half=["a", "b"])
    report = dataset.evaluate_sync(lambda question: output, progress=False)
    assert scores_of(report) == {"half": {"recall@2": 0.5}}


def test_matcher_threshold_and_options_mean_what_they_mean_elsewhere():
    """They are handed to the evaluators of LangSmith, which tests of their own look at."""
    evaluator = RetrievalEvaluator(
        "recall", matcher="coverage", threshold=0.5,
        options={"k": [1, 2], "documents_key": "found", "reference_key": "relevant"},
    )  # fmt: skip
    passage = "open from nine to five on weekdays and closed at weekends"
    case = Case(name="one", inputs="When?", expected_output={"relevant": [passage]})
    dataset = Dataset[str, object, object](name="one", evaluators=[evaluator], cases=[case])
    found = {"found": ["nothing", "we are open from nine to five on weekdays"], "text": ["?"]}
    report = dataset.evaluate_sync(lambda question: found, progress=False)
    assert scores_of(report) == {"one": {"recall@1": 0.0, "recall@2": 1.0}}


def test_a_matcher_may_be_an_object():
    """In Python; a file names it."""
    dataset = dataset_of(RetrievalEvaluator("recall@1", matcher=IdMatcher()), half=[{"id": "7"}])
    report = dataset.evaluate_sync(lambda question: [{"id": "7"}], progress=False)
    assert scores_of(report) == {"half": {"recall@1": 1.0}}


def test_the_report_has_the_averages_of_all_cases():
    """One whose task failed counts as nothing retrieved: 1 of 4 items is found."""
    dataset = dataset_of(report=[RetrievalReport(["recall@2", "mrr@2"])])
    report = dataset.evaluate_sync(task, progress=False)
    (table,) = report.analyses
    assert report.report_evaluator_failures == []
    assert dict(table.rows) == {
        "micro_recall@2": 0.25,
        "macro_recall@2": pytest.approx(0.5 / 3),
        "mrr@2": pytest.approx(1 / 3),
    }
    assert table.description.startswith("3 queries; 1 failed and count as nothing retrieved; ")
    assert "matcher=text" in table.description


def test_a_file_holds_them(tmp_path):
    """Written and read by Pydantic Evals, they evaluate as before."""
    how = {"metrics": METRICS, "ground_truth": "metadata", "options": {"no_ground_truth": "zero"}}
    written = dataset_of(RetrievalEvaluator(**how), where="metadata",
                         report=[RetrievalReport("recall@2", ground_truth="metadata")])  # fmt: skip
    types = [RetrievalEvaluator], [RetrievalReport]
    names = ("custom_evaluator_types", "custom_report_evaluator_types")
    path = tmp_path / "library.yaml"
    written.to_file(path, **dict(zip(names, types, strict=True)))
    read = Dataset[str, object, object].from_file(path, **dict(zip(names, types, strict=True)))
    assert read.evaluators == written.evaluators
    first, again = (one.evaluate_sync(task, progress=False) for one in (written, read))
    assert scores_of(again) == scores_of(first)
    assert again.analyses == first.analyses


def test_what_cannot_be_scored_is_in_the_report():
    """Pydantic Evals keeps what an evaluator raised, and the case has no score."""
    dataset = dataset_of(RetrievalEvaluator("recall@2"), half=[])
    (case,) = dataset.evaluate_sync(task, progress=False).cases
    (failure,) = case.evaluator_failures
    assert failure.error_message.startswith("InvalidInput: reference_outputs")
    assert case.scores == {}


@pytest.mark.parametrize("made", [RetrievalEvaluator, RetrievalReport])
@pytest.mark.parametrize(
    ("how", "argument"),
    [({"metrics": "recal@5"}, "metrics"), ({"ground_truth": "inputs"}, "ground_truth")],
)
def test_wrong_arguments_are_refused_when_it_is_made(made, how, argument):
    """And not once per case, where Pydantic Evals keeps what is raised."""
    with pytest.raises(InvalidInput) as caught:
        made(**how)
    assert caught.value.argument == argument
