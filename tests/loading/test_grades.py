"""Records of ground truth that were judged, and found not relevant, are no ground truth."""

import json
import warnings

import pandas as pd
import pytest

from krag_eval import (
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    audit,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.datasets import read_jsonl
from krag_eval.errors import InvalidInput
from krag_eval.integrations.langsmith import retrieval_evaluators
from krag_eval.partitions import PartitionPlan

# Of "1?" a and c are relevant, and b was judged not to be: of what was retrieved, a and b, recall
# is 1/2; where b counts, 2/3. "2?" has one document, which is found. Means 3/4 and 5/6.
GRADES = {"a": 2, "b": 0, "c": 1}
WITH_GRADES, WITHOUT = 3 / 4, 5 / 6


def rows(field="relevance", grades=GRADES, where="beside"):
    """Return two rows, the documents of the first with what was judged of them."""
    if where == "beside":
        truth = [{"doc_id": one, field: grade} for one, grade in grades.items()]
    else:
        truth = [{"page_content": one, "id": one, "metadata": {field: grade}}
                 for one, grade in grades.items()]  # fmt: skip
    found = [[{"doc_id": one} for one in some] for some in ("ab", "a")]
    return [{"id": f"q{n}", "question": f"{n}?", "actual": actual, "predicted": predicted}
            for n, actual, predicted in zip(
                (1, 2), (truth, [{"doc_id": "a", field: 1}]), found, strict=True)]  # fmt: skip


def saved(path, lines):
    """Write rows as the name of the file says."""
    if path.suffix == ".csv":
        cells = [{name: json.dumps(one) if isinstance(one, list) else one
                  for name, one in row.items()} for row in lines]  # fmt: skip
        pd.DataFrame(cells).to_csv(path, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(lines), "utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
    return path


def _loaded(suffix):
    def evaluated(folder, lines, **how):
        dataset = load_dataset(saved(folder / f"rows{suffix}", lines), **how)
        return dataset.evaluator(matcher="id").evaluate(2), dataset.notes

    return evaluated


def _of_rows(folder, lines, **how):
    dataset = load_dataset(lines, **how)
    return dataset.evaluator(matcher="id").evaluate(2), dataset.notes


def _lines(folder, lines, **how):
    dataset = read_jsonl(saved(folder / "rows.jsonl", lines), **how)
    return dataset.evaluator(matcher="id").evaluate(2), dataset.notes


def _file(**usual):
    def evaluated(folder, lines, **how):
        path = saved(folder / "rows.jsonl", lines)
        result = evaluate_file(path, 2, matcher="id", **usual, **how)
        return result, result.notes

    return evaluated


def _halves(folder, lines):
    golden = [{name: row[name] for name in ("id", "question", "actual")} for row in lines]
    run = [{name: row[name] for name in ("id", "predicted")} for row in lines]
    return saved(folder / "golden.jsonl", golden), saved(folder / "run.jsonl", run)


def _two_files(folder, lines, **how):
    golden, run = _halves(folder, lines)
    dataset = load_dataset(golden, retrieved=run, **how)
    return dataset.evaluator(matcher="id").evaluate(2), dataset.notes


def _two_streams(folder, lines, **how):
    result = evaluate_file(*_halves(folder, lines), 2, chunk_size=1, matcher="id", **how)
    return result, result.notes


def _said(evaluate):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return evaluate(), [str(one.message) for one in said]


def _lists(folder, lines, **how):
    lists = [[row[name] for row in lines] for name in ("actual", "predicted")]
    return _said(lambda: OfflineRetrievalEvaluator(*lists, "id", **how).evaluate(2))


def _retriever(folder, lines, **how):
    found = {row["question"]: row["predicted"] for row in lines}
    return _said(lambda: evaluate_retriever(found.get, lines, 2, matcher="id", **how))


DOORS = {
    "JSON lines": _loaded(".jsonl"),
    "JSON": _loaded(".json"),
    "CSV": _loaded(".csv"),
    "rows": _of_rows,
    "read_jsonl": _lines,
    "a stream, small": _file(),
    "a stream": _file(chunk_size=1),
    "two files": _two_files,
    "two streams": _two_streams,
    "lists": _lists,
    "a retriever": _retriever,
}


@pytest.fixture(params=DOORS)
def evaluated(request, tmp_path):
    """Return a function from rows to what they come to, and what is said, by each door."""
    return lambda lines, **how: DOORS[request.param](tmp_path, lines, **how)


@pytest.mark.parametrize(
    ("field", "grades", "where"),
    [
        ("relevance", GRADES, "beside"),
        ("grade", GRADES, "beside"),
        ("label", GRADES, "beside"),
        ("score", GRADES, "beside"),
        ("relevance", {"a": 2, "b": -1, "c": 1}, "beside"),
        ("relevance", {"a": 0.5, "b": 0, "c": 1}, "beside"),
        ("relevance", {"a": True, "b": False, "c": True}, "beside"),
        ("relevance", {"a": "2", "b": "0", "c": "1"}, "beside"),
        ("relevance", GRADES, "metadata"),
        ("grade", GRADES, "metadata"),
    ],
)
def test_what_was_judged_0_is_no_ground_truth(evaluated, field, grades, where):
    """A sentence says so, and counts the documents; ``grades="no"`` counts all alike."""
    result, notes = evaluated(rows(field, grades, where))
    assert result.averages(2)["macro_recall"] == WITH_GRADES
    assert result.settings["grades"] == field
    (note,) = [one for one in notes if "read as its grade" in one]
    assert field in note
    assert "1 of 4" in note
    result, notes = evaluated(rows(field, grades, where), grades="no")
    assert result.averages(2)["macro_recall"] == pytest.approx(WITHOUT)
    assert result.settings["grades"] == "-"
    assert not [one for one in notes if "grade" in one]


@pytest.mark.parametrize(
    ("field", "grades", "where"),
    [
        ("relevance", {"a": 2, "b": 1, "c": 1}, "beside"),
        ("relevance", {"a": 2, "b": 0, "c": "high"}, "beside"),
        ("page", GRADES, "beside"),
        ("score", {"a": 2.5, "b": -0.5, "c": 0}, "beside"),
        ("label", GRADES, "metadata"),
        ("score", GRADES, "metadata"),
    ],
    ids=["no 0", "no number", "another field", "a model's score", "a class", "a score of its own"],
)
def test_what_may_be_something_else_is_no_grade(evaluated, field, grades, where):
    """All ground truth counts, and nothing is said."""
    result, notes = evaluated(rows(field, grades, where))
    assert result.averages(2)["macro_recall"] == pytest.approx(WITHOUT)
    assert not [one for one in notes if "grade" in one]


def test_the_surest_field_decides(evaluated):
    """Relevance says that all is relevant, whatever the score beside it is."""
    lines = rows()
    lines[0]["actual"] = [{"doc_id": one, "relevance": 1, "score": 0} for one in "abc"]
    result, _notes = evaluated(lines)
    assert result.averages(2)["macro_recall"] == pytest.approx(WITHOUT)


def test_a_key_that_is_given_wins():
    """By it, c is not relevant: recall of "1?" is 2/2."""
    lines = rows()
    for one in lines[0]["actual"]:
        one["rating"] = int(one["doc_id"] != "c")
    evaluator = load_dataset(lines).evaluator(matcher="id", grade_key="rating")
    assert evaluator.calculate_recall(2)["macro_recall"] == 1


def test_what_was_judged_0_is_known_as_judged():
    """So that bpref and unjudged documents know it; what is below 0 was looked at as well."""
    for grade in (0, -1):
        dataset = load_dataset(rows(grades={"a": 2, "b": grade, "c": 1})[:1])
        evaluator = dataset.evaluator(matcher="id", judged=[[]])
        result = evaluator.evaluate(2, metrics=["judged"])
        assert result.tables[2]["judged"].tolist() == [1]


def test_grades_are_saved(tmp_path):
    """What was read from records is read again from their metadata."""
    for grades, recall in (("auto", WITH_GRADES), ("no", WITHOUT)):
        dataset = load_dataset(rows("label"), grades=grades)
        dataset.save(tmp_path / "saved.jsonl")
        again = load_dataset(tmp_path / "saved.jsonl").evaluator(matcher="id")
        assert again.calculate_recall(2)["macro_recall"] == pytest.approx(recall)


def test_a_stream_finds_a_0_in_any_row(tmp_path):
    """The first query has none, and its chunk is evaluated as if it knew."""
    path = saved(tmp_path / "rows.jsonl", rows()[::-1])
    result = evaluate_file(path, 2, chunk_size=1, matcher="id")
    assert result.averages(2)["macro_recall"] == WITH_GRADES


def test_a_part_that_knows_grades_alone_is_refused():
    """On a cluster, nobody can tell whether other parts have a 0."""
    plan = PartitionPlan.of(2, matcher="id")
    with pytest.raises(InvalidInput) as caught:
        plan.evaluate([rows()[0]["actual"]], [["a"]])
    assert caught.value.argument == "actual_docs"
    for how in ({"grade_key": "relevance"}, {"grades": "no"}):
        PartitionPlan.of(2, matcher="id", **how).evaluate([rows()[0]["actual"]], [["a"]])


def test_an_audit_looks_at_what_is_relevant():
    """What was judged 0 need not be in the index."""
    chunks = [{"id": one, "text": f"text {one}"} for one in "ac"]
    found = audit(load_dataset(rows()), chunks)
    assert found.findings["dangling"].rows == ()


def test_langsmith_reads_them_too():
    """By hand: a and c are relevant, and a is found: 1/2; with all of them 2/3."""
    example = rows()[0]
    given = {"outputs": {"documents": example["predicted"]},
             "reference_outputs": {"documents": example["actual"]}}  # fmt: skip
    for grades, recall in (("auto", 1 / 2), ("no", 2 / 3)):
        options = {"matcher": "id", "metrics": ["recall"], "grades": grades}
        (score,) = retrieval_evaluators(2, **options).per_query(inputs={}, **given)
        assert score["score"] == pytest.approx(recall)


@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("field", ["relevance", "grade", "label", "score"])
def test_long_tables_of_ground_truth_have_grades(tmp_path, field, tags):
    """One row for each document that was judged."""
    table = [{"question": "1?", "actual": one, field: grade} for one, grade in GRADES.items()]
    path = saved(tmp_path / "golden.csv", [*table, {"question": "2?", "actual": "a", field: 1}])
    dataset = load_dataset(path, cells="text", tags=tags, retrieved={"1?": ["a", "b"], "2?": ["a"]})
    assert dataset.evaluator(matcher="id").calculate_recall(2)["macro_recall"] == WITH_GRADES
    assert [one for one in dataset.notes if "1 of 4" in one]


def test_a_field_of_the_question_is_no_grade_of_its_documents():
    """The same in all of its rows, it stays a tag."""
    table = [{"question": question, "actual": one, "label": label}
             for question, label in (("1?", 0), ("2?", 1)) for one in "ab"]  # fmt: skip
    dataset = load_dataset(table, cells="text")
    assert dataset.tags == {"label": [0, 1]}
    assert dataset.actual == [["a", "b"]] * 2
    assert dataset.defaults == {}


def test_python_warns_with_what_to_do():
    """The warning names the option that counts all."""
    with pytest.warns(KragEvalWarning, match="relevance") as said:
        OfflineRetrievalEvaluator([rows()[0]["actual"]], [["a"]], "id")
    assert 'grades="no"' in str(said[0].message)
