"""The forms of a data set that evaluate_retriever accepts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from krag_eval import (
    AnyOf,
    KragEvalWarning,
    RetrievalRecorder,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.datasets import Dataset
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.retrievers.evaluating import Questions

ROWS = [{"question": "When?", "actual": ["At nine."]}, {"question": "Where?", "actual": ["Here."]}]


class TableLike:
    """A table of another library: columns by name."""

    def __init__(self, **columns):
        self._columns = columns
        self.column_names = [*columns]

    def __getitem__(self, name):
        return self._columns[name]


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
        {"When?": ["At nine."], "Where?": ["Here."]},
        {"question": ["When?", "Where?"], "actual": [["At nine."], ["Here."]]},
        [{"user_input": row["question"], "reference_contexts": row["actual"]} for row in ROWS],
        pd.DataFrame(ROWS).rename(columns={"question": "query"}),
        [SimpleNamespace(inputs={"question": row["question"]},
                         outputs={"documents": row["actual"]}) for row in ROWS],
        TableLike(question=["When?", "Where?"], actual=[["At nine."], ["Here."]]),
    ],
    ids=["rows", "tuple", "frame", "frame of arrays", "data set", "by question", "columns",
         "RAGAS's rows", "a frame's own name", "LangSmith's examples", "another library's table"],
)  # fmt: skip
def test_the_shapes_of_a_data_set(dataset):
    """By hand: the first document answers the first question, the second the second."""
    result = evaluate_retriever(echo, dataset, 2, metrics=["reciprocal_rank"])
    assert result.labels == ["When?", "Where?"]
    assert result.per_query()["reciprocal_rank"].tolist() == [1, 0.5]


@pytest.mark.parametrize(
    "dataset",
    [
        ROWS,
        pd.DataFrame(ROWS),
        load_dataset(ROWS),
        {"When?": ["At nine."], "Where?": ["Here."]},
        {"question": ["Where?", "When?"], "actual": [["Here."], ["At nine."]]},
        [{"query": row["question"], "reference_contexts": row["actual"]} for row in ROWS],
    ],
    ids=["rows", "frame", "data set", "by question", "columns", "another tool's rows"],
)
def test_the_recorder_and_load_dataset_take_the_same(dataset):
    """By hand as above: each question finds its document, in whatever order the rows are."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(echo, name="search")
    for row in ROWS:
        search.invoke(row["question"])
    result = recorder.evaluate(dataset, 2, metrics=["reciprocal_rank"])
    found = result.per_query()["reciprocal_rank"]
    assert found.to_dict() == {"When?": 1, "Where?": 0.5}
    loaded = load_dataset(dataset)
    assert dict(zip(loaded.questions, loaded.actual, strict=True)) == {
        row["question"]: row["actual"] for row in ROWS
    }
    assert load_dataset(loaded) is loaded


def test_a_data_set_brings_its_defaults_and_tags_to_the_recorder():
    """An explicit option goes before."""
    recorder = RetrievalRecorder()
    recorder.wrap(lambda q: [{"page_content": "b", "id": "a"}], name="search").invoke("When?")
    dataset = Dataset(
        ["q1"],
        [[{"page_content": "b", "id": "a"}]],
        questions=["When?"],
        defaults={"matcher": "id"},
        tags={"of": ["wiki"]},
    )
    result = recorder.evaluate(dataset, 1)
    assert (result.labels, result.tags) == (["q1"], {"of": ["wiki"]})
    assert result.to_dict()["hit_rate@1"] == 1
    assert recorder.evaluate(dataset, 1, "contains", tags={}).settings["matcher"] == "contains"


def test_rows_that_repeat_a_question_go_by_their_order():
    """By hand: the first is answered with A, the same question later with B."""
    recorder = RetrievalRecorder()
    answers = iter(["A", "x", "B"])
    search = recorder.wrap(lambda question: [next(answers)], name="search")
    for text in ("When?", "Where?", "When?"):
        search.invoke(text)
    rows = [("a", "When?", "A"), ("b", "Where?", "C"), ("c", "When?", "B")]
    rows = [{"id": id_, "question": text, "actual": [truth]} for id_, text, truth in rows]
    with pytest.warns(KragEvalWarning, match="labelled by their ids") as caught:
        result = recorder.evaluate(rows, 1)
    assert len(caught) == 1
    assert result.per_query()["hit_rate"].to_dict() == {"a": 1, "b": 0, "c": 1}
    with pytest.warns(KragEvalWarning), pytest.raises(InvalidInput, match="more than once"):
        recorder.evaluate([rows[1], rows[0], rows[2]], 1)


def test_a_row_the_recorder_cannot_read_is_refused_by_the_name_of_its_argument():
    """As is the data set, where it is another."""
    recorder = RetrievalRecorder()
    recorder.wrap(echo, name="search").invoke("When?")
    with pytest.raises(InvalidInput) as caught:
        recorder.evaluate([{"question": "When?"}])
    assert (caught.value.argument, caught.value.query) == ("ground_truth", 0)
    with pytest.raises(InvalidInput, match="never asked: 'Where"):
        recorder.evaluate(ROWS)


def test_a_dict_that_may_be_columns_or_questions_is_refused_by_load_dataset():
    """Two lists of two: two questions, or two columns that nobody knows?"""
    two = {"When?": ["At nine.", "b"], "Where?": ["c", "d"]}
    with pytest.raises(InvalidType) as caught:
        load_dataset(two)
    assert caught.value.argument == "source"
    assert load_dataset({**two, "Why?": ["e"]}).n_queries == 3
    columns = {"When?": ["a", "b"], "Where?": [["c"], ["d"]]}
    assert load_dataset(columns, question="When?", actual="Where?").questions == ["a", "b"]
    assert evaluate_retriever(echo, two, 1).labels == ["When?", "Where?"]


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
        ("qa.jsonl", TypeError, "; read a file by load_dataset"),
        ({"When?": "At nine."}, TypeError, r"dataset\[0\]\['actual'\] is plain text"),
        ({"question": ["When?"]}, ValueError, "no column holds the documents"),
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
        (pd.DataFrame({"asked": ["q"], "actual": [[]]}), ValueError, "has no 'question'"),
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
