"""Tables with one text per cell, and with a row for each document: read where the user says so."""

import csv
import io

import pandas as pd
import pytest

from krag_eval import load_dataset
from krag_eval.datasets import Dataset
from krag_eval.errors import Advice, DatasetError

NINE, TEN = "It opens at nine, except on Mondays.", "It closes at ten."
ROWS = [
    {"question": "When?", "actual": NINE, "predicted": TEN, "rank": 1, "lang": "en"},
    {"question": "Where?", "actual": "In Seoul.", "predicted": "", "rank": 1, "lang": "en"},
    {"question": "When?", "actual": NINE, "predicted": NINE, "rank": 2, "lang": "en"},
]


def table(rows, delimiter=","):
    """Write rows as a spreadsheet does."""
    file = io.StringIO()
    writer = csv.DictWriter(file, [*rows[0]], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    file.seek(0)
    return file


def read(rows):
    return load_dataset(table(rows), format="csv", cells="text")


def test_a_cell_is_one_document():
    """With its commas, brackets and all; the notes count them."""
    texts = ["a, b", "[1] See there. [2]", "[공지] 서울, 강남 [끝]", "(주)회사 (참고)", " x "]
    dataset = read([{"question": f"{at}?", "actual": one} for at, one in enumerate(texts)])
    assert dataset.actual == [[one] for one in texts]
    assert "plain text in actual read as one document per cell (5 of 5 cells)" in dataset.notes


def test_a_blank_cell_is_no_document_and_a_list_is_still_one():
    """As in columns where a question has two documents here and one there."""
    rows = [{"question": "a", "actual": '["x", "y"]', "predicted": " "},
            {"question": "b", "actual": "z", "predicted": "['p', 'q']"}]  # fmt: skip
    dataset = read(rows)
    assert (dataset.actual, dataset.predicted) == ([["x", "y"], ["z"]], [[], ["p", "q"]])
    assert [one for one in dataset.notes if "plain text" in one] == [
        "plain text in actual read as one document per cell (1 of 2 cells)"
    ]


@pytest.mark.parametrize(
    "cell", ["['a' 'b']", "[1, 2]", '["a", "b]', "['a', ...]", "[Document(page_content='a')]",
             "page_content='a' metadata={}"],
)  # fmt: skip
def test_what_looks_like_a_list_is_not_taken_for_a_text(cell):
    """It is refused as ever, at its row."""
    with pytest.raises(DatasetError) as info:
        read([{"question": "a", "actual": "x"}, {"question": "b", "actual": cell}])
    assert info.value.place is not None
    assert info.value.place.line == 3


def test_rows_of_one_question_are_one_query():
    """Documents in their order, ground truth once, lines and tags by the query.

    For "When?" the ground truth is second of two: reciprocal rank 1/2. "Where?" has nothing.
    """
    dataset = read(ROWS)
    assert dataset.queries == dataset.questions == ["When?", "Where?"]
    assert dataset.actual == [[NINE], ["In Seoul."]]
    assert dataset.predicted == [[TEN, NINE], []]
    assert dataset.lines == [2, 3]
    assert dataset.tags == {"lang": ["en", "en"]}
    assert any("3 rows put together by question into 2 queries" in one for one in dataset.notes)
    assert any("in the order of their ranks" in one for one in dataset.notes)
    assert dataset.evaluator().calculate_mrr(2) == {"mrr": 0.25}


def test_every_source_is_read_alike(tmp_path):
    """CSV, JSON lines, Parquet, frames and rows."""
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "qa.parquet")
    frame.to_json(tmp_path / "qa.jsonl", orient="records", lines=True)
    expected = read(ROWS)
    semicolons = load_dataset(table(ROWS, ";"), format="csv", delimiter=";", cells="text")
    assert semicolons == expected
    for source in (frame, ROWS, tmp_path / "qa.parquet", tmp_path / "qa.jsonl"):
        assert load_dataset(source, cells="text") == expected
    frame.loc[1, "predicted"] = None
    assert load_dataset(frame, cells="text") == expected


@pytest.mark.parametrize(
    ("pairs", "actual", "predicted"),
    [
        # Beside the same document it was retrieved once; beside others, each of them was.
        (["ax", "bx"], ["a", "b"], ["x"]),
        (["ax", "by", ("", "z")], ["a", "b"], ["x", "y", "z"]),
        # Two chunks may have one text; nothing is dropped.
        (["ax", "ax"], ["a"], ["x", "x"]),
    ],
)
def test_what_rows_of_one_question_say_together(pairs, actual, predicted):
    dataset = read([{"question": "?", "actual": a, "predicted": p} for a, p in pairs])
    assert (dataset.actual, dataset.predicted) == ([actual], [predicted])


def test_every_document_beside_every_ground_truth_is_refused():
    """It cannot be told how often a document was retrieved; the first row is named."""
    rows = [{"question": "?", "actual": a, "predicted": p} for a in "ab" for p in "xy"]
    with pytest.raises(DatasetError) as info:
        read(rows)
    assert info.value.place is not None
    assert info.value.place.line == 2


def test_rows_without_a_question_stay_queries():
    """Nothing says that they belong together."""
    dataset = read([{"actual": "a", "predicted": "a"}, {"actual": "a", "predicted": "b"}])
    assert (dataset.queries, dataset.predicted) == ([0, 1], [["a"], ["b"]])


def test_a_chosen_tag_that_differs_is_refused():
    """It was asked for, and cannot be one value per query."""
    with pytest.raises(DatasetError) as info:
        load_dataset(ROWS, cells="text", tags=["rank"])
    assert "rank" in info.value.problem


def test_the_refusal_of_plain_text_names_the_option():
    """Nothing is taken for one document unless the user says so."""
    with pytest.raises(DatasetError) as info:
        load_dataset(table(ROWS), format="csv")
    assert isinstance(info.value.fix, Advice)
    assert info.value.fix.settings == (("cells", "text"),)


def test_what_was_saved_comes_back_as_it_was(tmp_path):
    """Queries of one question and other labels are not put together."""
    dataset = Dataset(["1", "2"], [["a"], ["b"]], [["a"], ["b"]], questions=["?", "?"])
    dataset.save(tmp_path / "qa.csv")
    assert load_dataset(tmp_path / "qa.csv", cells="text") == dataset
