"""The forms of a data set that evaluate_retriever accepts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from krag_eval import AnyOf, KragEvalWarning, evaluate_retriever, load_dataset
from krag_eval.datasets import Dataset
from krag_eval.retrievers.evaluating import Questions

ROWS = [{"question": "When?", "actual": ["At nine."]}, {"question": "Where?", "actual": ["Here."]}]


def echo(question):
    """Answer every question with both texts."""
    return ["At nine.", "Here."]


@pytest.mark.parametrize(
    "dataset",
    [
        ROWS,
        tuple(ROWS),
        pd.DataFrame(ROWS, index=[7, 3]),
        pd.DataFrame(ROWS).assign(actual=[np.array(["At nine."]), ("Here.",)]),
        Dataset(["When?", "Where?"], [["At nine."], ["Here."]], questions=["When?", "Where?"]),
    ],
    ids=["rows", "tuple", "frame", "frame of arrays", "data set"],
)
def test_the_shapes_of_a_data_set(dataset):
    """By hand: the first document answers the first question, the second the second."""
    result = evaluate_retriever(echo, dataset, 2, metrics=["reciprocal_rank"])
    assert result.labels == ["When?", "Where?"]
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 0.5]


def test_a_data_set_brings_its_own_defaults():
    """An explicit option goes before."""
    dataset = Dataset(["q"], [["a"]], questions=["When?"], defaults={"matcher": "id"})
    by_default = evaluate_retriever(lambda q: [{"page_content": "", "id": "a"}], dataset, 1)
    assert by_default.settings["matcher"] == "id"
    assert by_default.to_dict()["hit_rate@1"] == 1
    assert evaluate_retriever(lambda q: ["a"], dataset, 1, "text").settings["matcher"] == "text"


def test_a_data_set_without_question_texts_is_refused():
    """Ids alone cannot be asked."""
    with pytest.raises(ValueError, match="does not hold the text of every question"):
        evaluate_retriever(echo, Dataset(["q1"], [["a"]], [["a"]]))


def test_rows_may_hold_any_of():
    """One of several documents will do."""
    dataset = [{"question": "When?", "actual": [AnyOf(["At 9.", "At nine."])]}]
    assert evaluate_retriever(echo, dataset, 1).to_dict()["macro_recall@1"] == 1


def test_repeated_questions_are_labelled_by_position():
    """With a warning; each is asked and counted."""
    asked = []
    with pytest.warns(KragEvalWarning, match="2 queries have 1 different questions.* positions"):
        result = evaluate_retriever(
            lambda q: asked.append(q) or ["At nine."], [ROWS[0], {**ROWS[0], "actual": ["x"]}], 1
        )
    assert result.labels == [0, 1]
    assert asked == ["When?", "When?"]
    assert result.per_query()["hit_rate"].tolist() == [1, 0]


def test_repeated_questions_are_labelled_by_their_ids():
    """If all have one, and they differ."""
    dataset = [{**ROWS[0], "id": "a"}, {**ROWS[0], "id": "b"}]
    with pytest.warns(KragEvalWarning, match="labelled by their ids"):
        assert Questions.of(dataset).labels == ["a", "b"]
    with pytest.warns(KragEvalWarning, match="labelled by their positions"):
        assert Questions.of([{**row, "id": "a"} for row in dataset]).labels == [0, 1]


@pytest.mark.parametrize(
    ("dataset", "error", "message"),
    [
        (None, TypeError, "dataset must be a list of rows .* got None"),
        ("qa.jsonl", TypeError, "got a str; read a file by load_dataset"),
        ({"When?": ["At nine."]}, TypeError, "got a dict; put each question into a row"),
        ([], ValueError, "dataset must hold at least one question"),
        (["When?"], TypeError, r"dataset\[0\] must be a row"),
        (
            [*ROWS, {"question": "Why?"}],
            ValueError,
            r"dataset\[2\] has no 'actual'",
        ),
        ([{"actual": []}], ValueError, r"dataset\[0\] has no 'question'"),
        (
            [{"question": 3, "actual": []}],
            TypeError,
            r"dataset\[0\]\['question'\] must be text, got 3",
        ),
        ([{"question": "q", "actual": "a"}], TypeError, "is plain text"),
        ([{"question": "", "actual": []}], TypeError, r"\['question'\] must be"),
        (pd.DataFrame({"query": ["q"], "actual": [[]]}), ValueError, "has no column 'question'"),
        (
            pd.DataFrame({"question": ["q", None], "actual": [["a"]] * 2}),
            TypeError,
            r"dataset\[1\]",
        ),
    ],
)
def test_what_is_no_data_set_is_refused(dataset, error, message):
    """With the row, what came and what to do."""
    with pytest.raises(error, match=message):
        evaluate_retriever(echo, dataset)


def test_rows_mean_what_they_mean_to_load_dataset():
    """Lists may be written as text, and alternatives as in JSON."""
    rows = [
        {"question": "a", "actual": "['At nine.']"},
        {"question": "b", "actual": [{"any_of": ["There.", "Here."]}]},
    ]
    assert evaluate_retriever(echo, rows, k=2).averages()["hit_rate"] == 1.0


@pytest.mark.parametrize("of", [list, pd.DataFrame])
def test_other_columns_are_tags_of_the_queries(of):
    """What cannot be one is named, unless tags are given."""
    dataset = of([{**row, "corpus": "wiki", "pages": n} for n, row in enumerate(ROWS)])
    tags = {"corpus": ["wiki", "wiki"], "pages": [0, 1]}
    assert evaluate_retriever(echo, dataset, 2).tags == tags
    assert evaluate_retriever(echo, load_dataset(dataset), 2).tags == tags
    assert evaluate_retriever(echo, dataset, 2, tags={}).tags == {}
    listed = of([{**row, "corpus": ["wiki"], "id": n} for n, row in enumerate(ROWS)])
    with pytest.warns(KragEvalWarning, match="corpus"):
        assert evaluate_retriever(echo, listed, 2).tags == {}
    assert evaluate_retriever(echo, listed, 2, tags={"a": [1, 2]}).tags == {"a": [1, 2]}


def test_tags_are_checked_before_anything_is_asked():
    """One value per query."""
    with pytest.raises(ValueError, match="tags"):
        evaluate_retriever(lambda question: pytest.fail("asked"), ROWS, tags={"a": [1]})
