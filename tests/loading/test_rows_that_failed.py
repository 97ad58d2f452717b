"""Rows that say that their retriever failed: queries that failed, not ones that found nothing.

Of 40 questions every second one has an error and nothing retrieved; the others find their passage.
"""

import csv
import io
import json
from types import SimpleNamespace

import pandas as pd
import pytest
from refusals import blamed
from results_made import write_lines

from krag_eval import EvaluationResult, evaluate_file, load_dataset
from krag_eval.datasets import DatasetError, read_jsonl

WITHOUT = [{"question": f"q{i}", "actual": [f"p{i}"], "predicted": [f"p{i}"]} for i in range(40)]


def failing(**fields):
    """Return the rows, every second one with these fields."""
    return [{**row, **fields} if i % 2 else row for i, row in enumerate(WITHOUT)]


FAILED = failing(predicted=[], error="timeout")
GOLDEN = [{"question": row["question"], "actual": row["actual"]} for row in FAILED]
RUN = [{name: one for name, one in row.items() if name != "actual"} for row in reversed(FAILED)]


def as_csv(rows, path, written=json.dumps):
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["question", "actual", "predicted", "error"], restval="")
        table.writeheader()
        for row in rows:
            lists = {name: written(row[name]) for name in ("actual", "predicted") if name in row}
            table.writerow({**row, **lists})
    return path


def as_parquet(folder):
    path = folder / "rows.parquet"
    pd.DataFrame(FAILED).to_parquet(path)
    return path


def one_document(documents):
    return documents[0] if documents else ""


def of_langsmith(row):
    """Return a row as the table of an experiment has it; a target that raised returned nothing."""
    returned = {"documents": row["predicted"]} if row["predicted"] else None
    references = {"documents": row["actual"]}
    error = {"error": row["error"]} if "error" in row else {}
    inputs = {"question": row["question"]}
    return {"inputs": inputs, "outputs": returned, "reference_outputs": references, **error}


def of_experiment(row):
    """Return a row as the client of LangSmith returns it."""
    known = of_langsmith(row)
    run = SimpleNamespace(outputs=known["outputs"], error=known.get("error"))
    example = SimpleNamespace(inputs=known["inputs"], outputs=known["reference_outputs"])
    return {"run": run, "example": example}


# Each way in which rows are read, and evaluated.
WAYS = {
    "rows": lambda folder: load_dataset(FAILED).evaluator().evaluate(5),
    "frame": lambda folder: load_dataset(pd.DataFrame(FAILED)).evaluator().evaluate(5),
    "JSON lines": lambda folder: load_dataset(
        write_lines(folder / "a.jsonl", FAILED)).evaluator().evaluate(5),
    "read_jsonl": lambda folder: read_jsonl(
        io.StringIO("\n".join(map(json.dumps, FAILED)))).evaluator().evaluate(5),
    "without tags": lambda folder: load_dataset(
        as_csv(FAILED, folder / "a.csv"), tags=False).evaluator().evaluate(5),
    "CSV": lambda folder: load_dataset(as_csv(FAILED, folder / "a.csv")).evaluator().evaluate(5),
    "cells of text": lambda folder: load_dataset(
        as_csv(FAILED, folder / "a.csv", one_document), cells="text").evaluator().evaluate(5),
    "Parquet": lambda folder: load_dataset(as_parquet(folder)).evaluator().evaluate(5),
    "LangSmith": lambda folder: load_dataset(
        [*map(of_langsmith, FAILED)]).evaluator().evaluate(5),
    "an experiment": lambda folder: load_dataset(
        [*map(of_experiment, FAILED)]).evaluator().evaluate(5),
    "two lists": lambda folder: load_dataset(GOLDEN, retrieved=RUN).evaluator().evaluate(5),
    "a file at once": lambda folder: evaluate_file(write_lines(folder / "a.jsonl", FAILED), 5),
    "a file in chunks": lambda folder: evaluate_file(
        write_lines(folder / "a.jsonl", FAILED), 5, chunk_size=7),
    "Parquet in chunks": lambda folder: evaluate_file(
        as_parquet(folder), 5, chunk_size=7, tags=False),
    "rows in a file": lambda folder: evaluate_file(
        write_lines(folder / "a.jsonl", FAILED), 5, chunk_size=7, per_query=folder / "r.csv"),
    "two files": lambda folder: evaluate_file(
        write_lines(folder / "g.jsonl", GOLDEN), write_lines(folder / "r.jsonl", RUN), 5),
    "two files in chunks": lambda folder: evaluate_file(
        write_lines(folder / "g.jsonl", GOLDEN), write_lines(folder / "r.jsonl", RUN), 5,
        chunk_size=7),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WAYS)
def test_they_are_counted_as_failures(name, tmp_path):
    """In the result, its file and its sentence; a gate refuses them unless so many are allowed."""
    result = WAYS[name](tmp_path)
    assert result.n_failed == 20
    assert result.averages(5)["ndcg"] == 0.5
    assert "failed for 20 of 40" in result.summary()
    result.to_json(tmp_path / "saved.json")
    assert EvaluationResult.from_json(tmp_path / "saved.json").n_failed == 20
    with blamed("allow_failures"):
        result.check({"ndcg@5": 0.1})
    assert "20 of new" in result.check({"ndcg@5": 0.1}, allow_failures=20).note
    if "chunks" not in name and name != "rows in a file":
        assert result.failures["message"].to_dict() == {f"q{i}": "timeout" for i in range(1, 40, 2)}


@pytest.mark.filterwarnings("ignore")
def test_a_note_says_so():
    """How many rows, of how many; of two lists as well."""
    for dataset in (load_dataset(FAILED), load_dataset(GOLDEN, retrieved=RUN)):
        (note,) = (one for one in dataset.notes if "error" in one and "failed" in one)
        assert "20 of 40" in note


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"predicted": [], "error": "timeout"}, "timeout"),
        ({"predicted": None, "error": "timeout"}, "timeout"),
        ({"predicted": [], "error": {"code": 504}}, '{"code": 504}'),
        ({"predicted": [], "error": ["a", "b"]}, '["a", "b"]'),
        ({"predicted": [], "error": True}, "true"),
        ({"predicted": [], "error": 504}, "504"),
        ({"predicted": [], "error": "x" * 300}, "x" * 300),
        ({"predicted": [], "오류": "시간 초과"}, "시간 초과"),
        # Something was retrieved, or nothing went wrong.
        ({"error": "timeout"}, None),
        *(({"predicted": [], "error": none}, None) for none in (None, "", " ", False, 0, "None",
                                                                [], {}, float("nan"))),
        ({"predicted": [], "note": "timeout"}, None),
    ],
)  # fmt: skip
def test_what_says_that_a_row_failed(fields, message):
    """An error, whatever its type, and nothing retrieved."""
    dataset = load_dataset(failing(**fields))
    assert {one.message for one in dataset.failures} == ({message} if message else set())
    assert len(dataset.failures) == (20 if message else 0)


def test_nothing_without_an_error_is_still_refused():
    """Where it says nothing of what was retrieved."""
    with pytest.raises(DatasetError) as caught:
        load_dataset(failing(predicted=None))
    assert caught.value.place.row == 1


@pytest.mark.filterwarnings("ignore")
def test_a_field_that_means_something_else():
    """The error is what was retrieved, or the question: then it is none."""
    rows = [{"q": f"q{i}", "actual": ["a"], "error": []} for i in range(3)]
    assert load_dataset(rows, question="q", predicted="error").failures == []
    rows = [{"error": f"q{i}", "actual": ["a"], "predicted": []} for i in range(3)]
    assert load_dataset(rows, question="error").failures == []


@pytest.mark.filterwarnings("ignore")
def test_rows_of_one_question_failed_where_none_found_anything():
    """One of them found something: then the question did not fail."""
    rows = [
        {"question": "a", "actual": "x", "predicted": "", "error": "timeout"},
        {"question": "a", "actual": "x", "predicted": "y", "error": ""},
        {"question": "b", "actual": "x", "predicted": "", "error": ""},
        {"question": "b", "actual": "x", "predicted": "", "error": "down"},
    ]
    dataset = load_dataset(rows, cells="text")
    assert [(one.position, one.message) for one in dataset.failures] == [(1, "down")]


@pytest.mark.filterwarnings("ignore")
def test_a_run_takes_the_place_of_what_failed_before():
    """The errors are the run's, at the places of their questions; what it lacks did not fail."""
    golden = failing(predicted=[], error="old")
    run = [{"question": f"q{i}", "predicted": [f"p{i}"]} for i in range(39)]
    run[5] = {"question": "q5", "predicted": [], "error": "new"}
    dataset = load_dataset(golden, retrieved=run[::-1], missing="zero")
    assert [(one.position, one.message) for one in dataset.failures] == [(5, "new")]
