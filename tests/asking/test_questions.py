"""The forms of a data set that evaluate_retriever, the recorder and load_dataset accept."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from retriever_samples import ranks

from krag_eval import (
    AnyOf,
    KragEvalWarning,
    RetrievalRecorder,
    aevaluate_retriever,
    evaluate_retriever,
    evaluate_retrievers,
    load_dataset,
)
from krag_eval.core.documents import ID_TAGS
from krag_eval.datasets import Dataset
from krag_eval.errors import DatasetError, InvalidInput, InvalidType

ROWS = [{"question": "When?", "actual": ["At nine."]}, {"question": "Where?", "actual": ["Here."]}]
BY_QUESTION = {row["question"]: row["actual"] for row in ROWS}
COLUMNS = {"question": [*BY_QUESTION], "actual": [*BY_QUESTION.values()]}


class TableLike:
    """A table of another library: columns by name."""

    column_names = ("question", "actual")

    def __getitem__(self, name):
        return COLUMNS[name]


def echo(question):
    """Answer every question with both texts."""
    return ["At nine.", "Here."]


def recorded(answers=echo, questions=BY_QUESTION):
    """Return a recorder that saw a function asked."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(answers, name="search")
    for one in questions:
        search.invoke(one)
    return recorder


DATA_SETS = {
    "rows": ROWS,
    "tuple": tuple(ROWS),
    "frame": pd.DataFrame(ROWS, index=[7, 3]),
    "frame of arrays": pd.DataFrame(ROWS).assign(actual=[np.array(["At nine."]), ("Here.",)]),
    "Arrow's batches": pa.Table.from_pylist(ROWS).to_batches()[0],
    "data set": Dataset([*BY_QUESTION], [*BY_QUESTION.values()], questions=[*BY_QUESTION]),
    "by question": BY_QUESTION,
    "columns": COLUMNS,
    "RAGAS's rows": [{"user_input": one, "reference_contexts": BY_QUESTION[one]}
                     for one in BY_QUESTION],
    "a frame's own name": pd.DataFrame(ROWS).rename(columns={"question": "query"}),
    "LangSmith's examples": [
        SimpleNamespace(inputs={"question": one}, outputs={"documents": BY_QUESTION[one]})
        for one in BY_QUESTION
    ],
    "another library's table": TableLike(),
}  # fmt: skip


@pytest.mark.needs("formats")
@pytest.mark.parametrize("name", DATA_SETS)
def test_the_shapes_of_a_data_set(name):
    """By hand: the first document answers the first question, the second the second."""
    dataset = DATA_SETS[name]
    asked = evaluate_retriever(echo, dataset, 2)
    seen = recorded(questions=[*BY_QUESTION][::-1]).evaluate(dataset, 2)
    for result in (asked, seen):
        assert (result.labels, ranks(result)) == (["When?", "Where?"], [1, 0.5])
    loaded = load_dataset(dataset)
    found = [list(one) for one in loaded.actual]
    assert dict(zip(loaded.questions, found, strict=True)) == BY_QUESTION
    assert load_dataset(loaded) is loaded


def test_a_data_set_brings_its_defaults_and_tags():
    """An explicit option goes before."""
    document = {"page_content": "b", "id": "a"}
    dataset = Dataset(["q1"], [[document]], questions=["When?"], defaults={"matcher": "id"},
                      tags={"of": ["wiki"]})  # fmt: skip
    answer = lambda q: [{"page_content": "b", "id": "a"}]  # noqa: E731
    for evaluate in (
        recorded(answer, ["When?"]).evaluate,
        lambda *a, **o: evaluate_retriever(answer, *a, **o),
    ):
        result = evaluate(dataset, 1)
        assert (result.labels, result.tags) == (["q1"], {"of": ["wiki"]})
        assert (result.settings["matcher"], ranks(result)) == ("id", [1])
        other = evaluate(dataset, 1, "contains", tags={})
        assert (other.settings["matcher"], other.tags) == ("contains(fold_whitespace=yes)", {})


def test_rows_that_repeat_a_question_go_by_their_order():
    """By hand: the first is answered with A, the same question later with B."""
    answers = iter(["A", "x", "B"])
    recorder = recorded(lambda question: [next(answers)], ["When?", "Where?", "When?"])
    rows = [("a", "When?", "A"), ("b", "Where?", "C"), ("c", "When?", "B")]
    rows = [{"id": id_, "question": text, "actual": [truth]} for id_, text, truth in rows]
    with pytest.warns(KragEvalWarning, match="labelled by their ids") as caught:
        result = recorder.evaluate(rows, 1)
    assert len(caught) == 1
    assert (result.labels, ranks(result)) == (["a", "b", "c"], [1, 0, 1])
    with pytest.warns(KragEvalWarning), pytest.raises(InvalidInput, match="more than once"):
        recorder.evaluate([rows[1], rows[0], rows[2]], 1)


@pytest.mark.parametrize(
    ("ids", "by", "labels"),
    [
        (["a", "b"], "ids", ["a", "b"]),
        (["a", "a"], "positions", [0, 1]),
        ([None, None], "positions", [0, 1]),
    ],
)
def test_repeated_questions_are_labelled_by_id_or_position(ids, by, labels):
    """By their ids if all have one and they differ; each is asked and counted."""
    asked = []
    truth = zip(ids, (["At nine."], ["x"]), strict=True)
    dataset = [{"question": "When?", "id": one, "actual": actual} for one, actual in truth]
    with pytest.warns(KragEvalWarning, match=f"2 queries have 1 different questions.* {by}"):
        result = evaluate_retriever(lambda q: asked.append(q) or ["At nine."], dataset, 1)
    assert (result.labels, ranks(result), asked) == (labels, [1, 0], ["When?"] * 2)


@pytest.mark.parametrize("of", [str, Path])
def test_a_path_of_a_data_set(tmp_path, of):
    """As load_dataset reads it: by the retriever's questions, and by the recorder's."""
    path = of(tmp_path / "golden.jsonl")
    pd.DataFrame(ROWS).to_json(path, orient="records", lines=True)
    for result in (evaluate_retriever(echo, path, 2), recorded().evaluate(path, 2)):
        assert (result.labels, ranks(result)) == (["When?", "Where?"], [1, 0.5])
    with pytest.raises(DatasetError) as error:
        evaluate_retriever(echo, of(tmp_path / "nowhere.jsonl"))
    assert str(error.value.place).endswith("nowhere.jsonl")


@pytest.mark.parametrize("nothing", [None, 7, b"golden.jsonl"])
def test_what_is_no_data_set_is_refused(nothing):
    """By the name of the argument."""
    with pytest.raises(InvalidType) as error:
        evaluate_retriever(echo, nothing)
    assert error.value.argument == "dataset"


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


@pytest.mark.parametrize(
    "actual",
    [
        [AnyOf(["At 9.", "At nine."])],
        [{"any_of": ["There.", "At nine."]}],
        "['At nine.']",
    ],
    ids=["any of", "as in JSON", "a list written as text"],
)
def test_rows_mean_what_they_mean_to_load_dataset(actual):
    """Lists may be written as text, and one of several documents will do."""
    assert ranks(evaluate_retriever(echo, [{"question": "a", "actual": actual}], 1)) == [1]


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
        assert evaluate_retriever(echo, listed, 2).tags == {"id": [0, 1]}
    assert evaluate_retriever(echo, listed, 2, tags={"a": [1, 2]}).tags == {"a": [1, 2]}


IDENTIFIED = {
    "evaluate_retriever": lambda rows: [evaluate_retriever(echo, rows, 2)],
    "aevaluate_retriever": lambda rows: [asyncio.run(aevaluate_retriever(echo, rows, 2))],
    "evaluate_retrievers": lambda rows: [
        *evaluate_retrievers({"a": echo, "b": echo}, rows, 2, n_resamples=100).results.values()
    ],
    "recorder": lambda rows: [recorded().evaluate(rows, 2)],
    "load_dataset": lambda rows: [evaluate_retriever(echo, load_dataset(rows), 2)],
}


@pytest.mark.filterwarnings("ignore:.*rest on 2 queries")
@pytest.mark.parametrize("of", [list, tuple, pd.DataFrame])
@pytest.mark.parametrize("name", ID_TAGS)
@pytest.mark.parametrize("way", IDENTIFIED)
def test_a_query_may_be_named_by_the_id_of_its_row(way, name, of):
    """Whoever asked, and whatever a table calls its ids; the question stays the label."""
    rows = [{name: f"q{n}", **row} for n, row in enumerate(ROWS)]
    for result in IDENTIFIED[way](of(rows)):
        assert result.labels == ["When?", "Where?"]
        assert result.explain("q1").items == result.explain("Where?").items
        assert result.tags == {name: ["q0", "q1"]}


def test_repeated_questions_keep_their_ids_as_well():
    """They are the labels there, and name the queries in the file of another run."""
    rows = [{"question": "When?", "actual": ["At nine."], "id": one} for one in ("a", "b")]
    with pytest.warns(KragEvalWarning, match="labelled by their ids"):
        result = evaluate_retriever(echo, rows, 2)
    assert (result.labels, result.tags) == (["a", "b"], {"id": ["a", "b"]})


@pytest.mark.parametrize(
    "questions",
    [
        [{**row, "judged": ["At nine.", "At ten."]} for row in ROWS],
        Dataset([*BY_QUESTION], [*BY_QUESTION.values()], questions=[*BY_QUESTION],
                judged=[["At nine.", "At ten."]] * 2),
    ],
)  # fmt: skip
def test_what_somebody_looked_at_holds_for_any_retriever(questions):
    """Of "At nine." and "Here.", one was looked at for the first; the truth of the second counts.

    Left out are unjudged documents: "Here." of the first question, none of the second, whose ground
    truth it is.
    """
    result = evaluate_retriever(echo, questions, k=2, unjudged="leave_out")
    assert result.to_dict()["macro_precision@2"] == (1 / 1 + 1 / 2) / 2
