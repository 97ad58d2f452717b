"""The evaluator in OpenEvals' form, beside OpenEvals' own, called as LangSmith calls both."""

import datetime
import uuid

import langsmith
import pytest
from langsmith import schemas
from openevals import utils
from openevals.exact import exact_match

from krag_eval.errors import InvalidInput
from krag_eval.integrations.openevals import create_retrieval_evaluator

pytestmark = [
    pytest.mark.filterwarnings("ignore:ast.Str is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'upload_(results|runs)' parameter is in beta"),
]
CALL = {
    "inputs": {"question": "When?"},
    "outputs": {"documents": ["a", "x", "b"]},
    "reference_outputs": {"documents": ["a", "b"]},
}
COMMENT = "found 1 of 2 within 2 (rank 1); missed 'b' (found at rank 3)"


def test_one_metric_is_one_dict():
    """Of the keys that OpenEvals' own evaluators return."""
    found = create_retrieval_evaluator("recall@2")(**CALL)
    assert found == {"key": "recall@2", "score": 0.5, "comment": COMMENT, "metadata": None}
    assert found.keys() == exact_match(outputs="a", reference_outputs="a").keys()


def test_several_metrics_are_a_list():
    """In the order of the cutoffs, as of evaluators of OpenEvals that return several."""
    found = create_retrieval_evaluator(["recall@2", "precision@3"])(**CALL)
    scores = {one["key"]: one["score"] for one in found}
    # Two of three within three match.
    assert scores == {
        "recall@2": 0.5, "precision@2": 0.5, "recall@3": 1.0, "precision@3": pytest.approx(2 / 3),
    }  # fmt: skip


def test_no_cutoff_of_a_metric_is_left_out():
    """A name that gives several scores returns all of them."""
    found = create_retrieval_evaluator("recall", k=[1, 3])(**CALL)
    assert {one["key"]: one["score"] for one in found} == {"recall@1": 0.5, "recall@3": 1.0}


def test_options_are_those_of_the_evaluators_of_langsmith():
    """Here keys and a matcher."""
    evaluator = create_retrieval_evaluator(
        "recall@1", matcher="contains", documents_key="found", reference_key="relevant"
    )
    outputs = {"found": ["we open at nine", "x"], "documents": ["y"]}
    found = evaluator(outputs=outputs, reference_outputs={"relevant": ["at nine"]})
    assert found["score"] == 1.0


def test_what_is_undefined_has_no_score():
    """The rank where nothing was found."""
    found = create_retrieval_evaluator("rank@2")(outputs=["x"], reference_outputs=["a"])
    assert found["score"] is None


def test_wrong_arguments_are_refused_when_it_is_made():
    """And not once per example."""
    with pytest.raises(InvalidInput) as caught:
        create_retrieval_evaluator("recal@5")
    assert caught.value.argument == "metrics"


def test_langsmith_runs_it_beside_openevals_own():
    """Offline: nothing is uploaded, and both have their scores."""
    client = langsmith.Client(
        api_url="http://offline.invalid", api_key="none", info={}, auto_batch_tracing=False,
        tracing_sampling_rate=0,
    )  # fmt: skip
    example = schemas.Example(
        id=uuid.uuid4(), inputs=CALL["inputs"], outputs=CALL["reference_outputs"],
        created_at=datetime.datetime.now(datetime.UTC),
    )  # fmt: skip
    rows = client.evaluate(
        lambda inputs: CALL["outputs"],
        data=[example],
        evaluators=[create_retrieval_evaluator(["recall@2"]), exact_match],
        upload_results=False,
    )
    (row,) = rows
    scores = {one.key: one.score for one in row["evaluation_results"]["results"]}
    assert scores == {"recall@2": 0.5, "exact_match": False}


def test_a_test_marked_for_langsmith_logs_each_score(monkeypatch):
    """As feedback, by OpenEvals' own way of calling evaluators."""
    logged = []
    monkeypatch.setattr(utils, "_TEST_CASE", type("Case", (), {"get": staticmethod(lambda: True)}))
    monkeypatch.setattr(utils.t, "log_feedback", lambda **feedback: logged.append(feedback))
    monkeypatch.setattr(utils.t, "trace_feedback", lambda **how: pytest.MonkeyPatch.context())
    create_retrieval_evaluator("recall@2")(**CALL)
    assert logged == [{"key": "recall@2", "score": 0.5, "comment": COMMENT}]
