"""Other tools' names for columns: the same in every format, and refused where they are unclear."""

import json

import pandas as pd
import pytest

from krag_eval import evaluate_file, load_dataset
from krag_eval.datasets import read_jsonl
from krag_eval.errors import Advice, DatasetError

NINE, TEN = "It opens at nine.", "It opens at ten."
#: Whose -> a record, as that tool writes it. The ground truth of each is found at the second rank.
RECORDS = {
    name: dict(zip(fields, ("When?", [NINE], [TEN, NINE]), strict=True))
    for name, fields in {
        "krag_eval": ("question", "actual", "predicted"),
        "Korean": ("질문", "정답", "검색결과"),
        "Korean, spaced": ("질문", "정답", "검색 결과"),
        "Korean, documents": ("질의", "정답 문서", "검색 결과"),
        "Korean, in one word": ("질의", "정답문서", "검색문서"),
        "Korean, mixed": ("질문", "정답문서", "검색 문서"),
        "plain words": ("question", "expected", "retrieved"),
        "plain words, mixed": ("query", "expected_contexts", "retrieved"),
        # haystack.components.evaluators.DocumentRecallEvaluator.run
        "Haystack": ("question", "ground_truth_documents", "retrieved_documents"),
        # docs.ragas.io, SingleTurnSample
        "RAGAS": ("user_input", "reference_contexts", "retrieved_contexts"),
        # llama_index.core.evaluation.RetrievalEvalResult.model_dump()
        "LlamaIndex": ("query", "expected_texts", "retrieved_texts"),
        # deepeval.test_case.LLMTestCase
        "deepeval": ("input", "context", "retrieval_context"),
    }.items()
}
RECORDS["RAGAS"] |= {"response": "At nine.", "reference": "It opens at nine o'clock."}
RECORDS["deepeval"] |= {"actual_output": "At nine.", "expected_output": "It opens at nine."}
RECORDS["LlamaIndex"] |= {"expected_ids": ["n"], "retrieved_ids": ["t", "n"], "mode": "text"}
RECORDS["LlamaIndex, ids"] = {**RECORDS["LlamaIndex"], "expected_texts": None}
RECORDS["RAGAS, ids"] = {"user_input": "When?", "retrieved_context_ids": ["t", "n"],
                         "reference_context_ids": ["n"]}  # fmt: skip
RECORDS |= {
    name: {"query": "When?", actual: ["n"], predicted: ["t", "n"]}
    for name, actual, predicted in (
        ("eGovFrame", "relevant_document_ids", "retrieved_document_ids"),
        ("ids of chunks", "relevant_chunk_ids", "retrieved_chunk_ids"),
        ("ids of chunks, retrieved", "relevant_chunk_ids", "retrieved_ids"),
    )
}
# Records in the place of documents: with texts, with ids alone, and beside a column of ids.
_HITS = [{"chunk_id": "t", "chunk_text": TEN, "rank": 1, "score": 0.7},
         {"chunk_id": "n", "chunk_text": NINE, "rank": 2, "score": 0.5}]  # fmt: skip
RECORDS["records"] = {"query": "When?", "expectedChunks": [{"_id": "n", "text": NINE}],
                      "results": _HITS}  # fmt: skip
_IDS = [{"docid": "t", "score": 0.7}, {"docid": "n"}]
RECORDS["records of ids"] = {"query": "When?", "expected": ["n"], "retrieved": _IDS}
RECORDS["ids and records"] = {"query": "When?", "relevant_chunk_ids": ["n"], "predicted": _HITS}
#: As LangSmith writes it, nested.
NESTED = {
    "inputs": {"question": "When?"},
    "outputs": {"documents": [TEN, NINE]},
    "reference_outputs": {"documents": [NINE]},
}


def write(folder, record, kind):
    """Write a record twice, the second with another question."""
    again = {name: "And when?" if one == "When?" else one for name, one in record.items()}
    again |= {"inputs": {"question": "And when?"}} if "inputs" in record else {}
    records, path = [record, again], folder / f"run.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps(one)}\n" for one in records), "utf-8")
    elif kind == "json":
        path.write_text(json.dumps(records), "utf-8")
    elif kind == "parquet":
        pd.DataFrame(records).to_parquet(path)
    else:
        cells = [{name: one if isinstance(one, str) else json.dumps(one)
                  for name, one in record.items() if one is not None}
                 for record in records]  # fmt: skip
        pd.DataFrame(cells).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("whose", RECORDS)
def test_names_are_known_in_every_format(tmp_path, whose, kind):
    """Two questions whose ground truth is at rank 2: the MRR is 1/2, and recall@1 is 0."""
    path = write(tmp_path, RECORDS[whose], kind)
    dataset = load_dataset(path)
    assert dataset.queries == ["When?", "And when?"]
    result = dataset.evaluator().evaluate([1, 2])
    assert (result.averages(2)["mrr"], result.averages(1)["macro_recall"]) == (0.5, 0.0)


@pytest.mark.parametrize("whose", [*RECORDS, "LangSmith"])
def test_json_lines_are_read_as_tables_are(tmp_path, whose):
    """``read_jsonl``, which the shell uses, recognises what ``load_dataset`` does."""
    path = write(tmp_path, {**RECORDS, "LangSmith": NESTED}[whose], "jsonl")
    read, loaded = read_jsonl(path, tags=False), load_dataset(path, tags=False)
    assert (read.queries, read.actual, read.predicted) == (
        loaded.queries, loaded.actual, loaded.predicted,
    )  # fmt: skip
    assert read.defaults == loaded.defaults
    assert read.lines == [1, 2]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("whose", RECORDS)
def test_files_in_chunks_are_read_likewise(tmp_path, whose, kind):
    """To the last digit and label, one query at a time, with rows and tags."""
    record = dict(RECORDS[whose])
    if kind == "parquet" and record.get("expected_texts", "") is None:
        # Read in chunks, a column of a Parquet file is there, whatever it holds.
        del record["expected_texts"]
    path = write(tmp_path, record, kind)
    rows = tmp_path / "rows.csv"
    result = evaluate_file(path, 2, chunk_size=1, per_query=rows, progress=False)
    again = load_dataset(path).evaluator().evaluate(2)
    assert result.averages() == again.averages()
    assert result.signature == again.signature
    assert result.per_query(2).index.tolist() == ["When?", "And when?"]


@pytest.mark.parametrize(
    ("record", "names"),
    [
        ({"query": "?", "user_input": "?", "actual": ["a"], "predicted": ["a"]}, "question_field"),
        ({"질문": "?", "정답": ["a"], "reference_contexts": ["a"]}, "actual_field"),
        (
            {"question": "?", "actual": ["a"], "검색결과": ["a"], "검색 결과": ["a"]},
            "predicted_field",
        ),
        ({"user_input": "?", "reference_contexts": ["a"]}, "predicted_field"),
        ({"user_input": "?", "retrieved_contexts": ["a"]}, "actual_field"),
    ],
)
def test_what_is_unclear_is_refused(written, record, names):
    """Two candidates for one role, or none; the advice names the argument that settles it."""
    path = written(json.dumps(record))
    for read in (read_jsonl, lambda path: evaluate_file(path, 2)):
        with pytest.raises(DatasetError) as info:
            read(path)
        assert isinstance(info.value.fix, Advice)
        assert [name for name, _ in info.value.fix.settings] == [names]
        assert info.value.file == str(path)


def test_a_named_field_goes_with_recognised_ones(written):
    """As in a table: what the user names is not recognised again, and settles what is unclear."""
    record = {**RECORDS["RAGAS"], "hits": [TEN, NINE], "retrieved_contexts": [NINE]}
    path = written(json.dumps(record))
    dataset = read_jsonl(path, predicted_field="hits")
    assert (dataset.actual, dataset.predicted) == ([[NINE]], [[TEN, NINE]])
    assert evaluate_file(path, 2, predicted_field="hits", tags=False).averages()["mrr"] == 0.5
    assert read_jsonl(path, predicted_field=None).predicted is None


def test_our_own_names_come_first(written):
    """Where all three are there, others are tags, as ever."""
    record = {**RECORDS["krag_eval"], "query": "another", "source": "faq", "context": "library"}
    dataset = read_jsonl(written(json.dumps(record)))
    assert dataset.queries == ["When?"]
    assert dataset.tags == {"query": ["another"], "source": ["faq"], "context": ["library"]}


def test_what_is_nested_is_not_read_in_chunks(tmp_path):
    """It takes all rows to understand, and says so."""
    with pytest.raises(DatasetError) as info:
        evaluate_file(write(tmp_path, NESTED, "jsonl"), 2)
    assert "load_dataset" in str(info.value.fix)


def test_a_plain_word_beside_a_name_that_is_known_is_a_tag():
    """``expected`` and ``retrieved`` mean documents only where nothing else holds any."""
    row = {"question": "?", "actual": ["a"], "predicted": ["a"], "expected": "yes", "retrieved": 3}
    dataset = load_dataset([row])
    assert (dataset.actual, dataset.predicted) == ([["a"]], [["a"]])
    assert dataset.tags == {"expected": ["yes"], "retrieved": [3]}
    without = load_dataset([{"question": "?", "actual": ["a"], "retrieved": 3}])
    assert (without.predicted, without.tags) == (None, {"retrieved": [3]})


def test_what_an_answer_cited_is_read_by_ids():
    """``cited_document_ids`` holds ids, whole numbers too, as other columns of ids do."""
    row = {"query": "?", "relevant_document_ids": ["a"], "retrieved_document_ids": ["a", "3"]}
    assert load_dataset([{**row, "cited_document_ids": ["a", 3]}]).cited == [["a", "3"]]


def test_old_evaluations_of_ragas_say_which_side_their_contexts_are():
    """Beside ``ground_truths`` and ``answer``, ``contexts`` are what was retrieved."""
    row = {"question": "?", "contexts": ["a"], "ground_truths": ["b"], "answer": "c"}
    assert load_dataset([row], actual="ground_truths").predicted == [["a"]]


@pytest.mark.parametrize(
    ("record", "within"),
    [
        ({"id": None}, "[0]"),
        ({"id": ""}, "[0]"),
        ({"id": "a", "_id": "b", "text": "c"}, "[0]"),
        ({"text": "a", "contents": "b"}, "[0]"),
        ({"text": 7}, "[0].page_content"),
        ({"id": "a", "score": float("nan")}, "[0].score"),
        ({"id": "a", "score": "0.5"}, "[0].score"),
        ({"text": "a", "score": 1, "metadata": {"score": 2}}, "[0]"),
        ({"text": "a", "metadata": "b"}, "[0].metadata"),
        ({"docid": "a", "doc": {"id": "b", "text": "c"}}, "[0]"),
        ({"docid": "a", "doc": {"doc": {"text": "c"}}}, "[0]"),
        ({"docid": "a", "doc": 7}, "[0]"),
        ({"id": "a", "start": 3}, "[0]"),
    ],
)  # fmt: skip
def test_a_record_that_is_no_document(record, within):
    """What has no one text or id, or holds what it cannot, is refused by row and field."""
    with pytest.raises(DatasetError) as info:
        load_dataset([{"question": "?", "actual": ["a"], "predicted": [record]}])
    error = info.value
    assert (error.argument, error.within, error.place.row) == ("predicted", within, 0)


def test_an_answer_and_documents_in_korean_are_told_apart_by_the_user():
    """``정답`` may be the answer where ``정답 문서`` is there as well."""
    row = {"질문": "?", "정답": "a", "정답 문서": ["a"]}
    with pytest.raises(DatasetError) as info:
        load_dataset([row])
    assert isinstance(info.value.fix, Advice)
    assert info.value.fix.settings == (("actual", ...),)
    assert load_dataset([row], actual="정답 문서").actual == [["a"]]
