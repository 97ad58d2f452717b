"""Other tools' names for columns: the same in every format, and refused where they are unclear."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from krag_eval import evaluate_file, load_dataset
from krag_eval.datasets import read_jsonl
from krag_eval.errors import Advice, DatasetError

NINE, TEN = "It opens at nine.", "It opens at ten."
#: Whose -> a record, as that tool writes it. The ground truth of each is found at the second rank.
RECORDS: dict[str, dict[str, Any]] = {
    "krag_eval": {"question": "When?", "actual": [NINE], "predicted": [TEN, NINE]},
    "Korean": {"질문": "When?", "정답": [NINE], "검색결과": [TEN, NINE]},
    "Korean, spaced": {"질문": "When?", "정답": [NINE], "검색 결과": [TEN, NINE]},
    "Korean, documents": {"질의": "When?", "정답 문서": [NINE], "검색 결과": [TEN, NINE]},
    "Korean, in one word": {"질의": "When?", "정답문서": [NINE], "검색결과": [TEN, NINE]},
    "plain words": {"question": "When?", "expected": [NINE], "retrieved": [TEN, NINE]},
    "plain words, mixed": {"query": "When?", "expected_contexts": [NINE], "retrieved": [TEN, NINE]},
    # haystack.components.evaluators.DocumentRecallEvaluator.run
    "Haystack": {
        "question": "When?",
        "ground_truth_documents": [NINE],
        "retrieved_documents": [TEN, NINE],
    },
    # docs.ragas.io, SingleTurnSample
    "RAGAS": {
        "user_input": "When?",
        "retrieved_contexts": [TEN, NINE],
        "reference_contexts": [NINE],
        "response": "At nine.",
        "reference": "It opens at nine o'clock.",
    },
    "RAGAS, ids": {
        "user_input": "When?",
        "retrieved_context_ids": ["t", "n"],
        "reference_context_ids": ["n"],
    },
    # llama_index.core.evaluation.RetrievalEvalResult.model_dump()
    "LlamaIndex": {
        "query": "When?",
        "expected_ids": ["n"],
        "expected_texts": [NINE],
        "retrieved_ids": ["t", "n"],
        "retrieved_texts": [TEN, NINE],
        "mode": "text",
    },
    "LlamaIndex, ids": {
        "query": "When?",
        "expected_ids": ["n"],
        "expected_texts": None,
        "retrieved_ids": ["t", "n"],
        "retrieved_texts": [TEN, NINE],
    },
    # deepeval.test_case.LLMTestCase
    "deepeval": {
        "input": "When?",
        "actual_output": "At nine.",
        "expected_output": "It opens at nine o'clock.",
        "context": [NINE],
        "retrieval_context": [TEN, NINE],
    },
}
WHOLE = {
    "LangSmith": {
        "inputs": {"question": "When?"},
        "outputs": {"documents": [TEN, NINE]},
        "reference_outputs": {"documents": [NINE]},
    }
}


def write(folder: Path, record: dict[str, Any], kind: str) -> Path:
    """Write a record twice, the second with another question."""
    asked = next(
        name for name, value in record.items() if value in ("When?", {"question": "When?"})
    )
    again = {"question": "And when?"} if isinstance(record[asked], dict) else "And when?"
    records = [record, {**record, asked: again}]
    path = folder / f"run.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps(one)}\n" for one in records), "utf-8")
    elif kind == "json":
        path.write_text(json.dumps(records), "utf-8")
    elif kind == "parquet":
        pd.DataFrame(records).to_parquet(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [name for name, one in record.items() if one is not None])
            writer.writeheader()
            for one in records:
                kept = {name: value for name, value in one.items() if value is not None}
                cells = {n: v if isinstance(v, str) else json.dumps(v) for n, v in kept.items()}
                writer.writerow(cells)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("whose", RECORDS)
def test_names_are_known_in_every_format(tmp_path: Path, whose: str, kind: str) -> None:
    """Two questions whose ground truth is at rank 2: the MRR is 1/2, and recall@1 is 0."""
    path = write(tmp_path, RECORDS[whose], kind)
    dataset = load_dataset(path)
    assert dataset.queries == ["When?", "And when?"]
    result = dataset.evaluator().evaluate([1, 2])
    assert (result.averages(2)["mrr"], result.averages(1)["macro_recall"]) == (0.5, 0.0)


@pytest.mark.parametrize("whose", [*RECORDS, *WHOLE])
def test_json_lines_are_read_as_tables_are(tmp_path: Path, whose: str) -> None:
    """``read_jsonl``, which the shell uses, recognises what ``load_dataset`` does."""
    path = write(tmp_path, {**RECORDS, **WHOLE}[whose], "jsonl")
    read, loaded = read_jsonl(path, tags=False), load_dataset(path, tags=False)
    assert (read.queries, read.actual, read.predicted) == (
        loaded.queries, loaded.actual, loaded.predicted,
    )  # fmt: skip
    assert read.defaults == loaded.defaults
    assert read.lines == [1, 2]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("whose", RECORDS)
def test_files_in_chunks_are_read_likewise(tmp_path: Path, whose: str, kind: str) -> None:
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
def test_what_is_unclear_is_refused(tmp_path: Path, record: dict[str, Any], names: str) -> None:
    """Two candidates for one role, or none; the advice names the argument that settles it."""
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(record), "utf-8")
    for read in (read_jsonl, lambda path: evaluate_file(path, 2)):
        with pytest.raises(DatasetError) as info:
            read(path)
        assert isinstance(info.value.fix, Advice)
        assert [name for name, _ in info.value.fix.settings] == [names]
        assert info.value.file == str(path)


def test_a_named_field_goes_with_recognised_ones(tmp_path: Path) -> None:
    """As in a table: what the user names is not recognised again, and settles what is unclear."""
    path = tmp_path / "run.jsonl"
    record = {**RECORDS["RAGAS"], "hits": [TEN, NINE], "retrieved_contexts": [NINE]}
    path.write_text(json.dumps(record), "utf-8")
    dataset = read_jsonl(path, predicted_field="hits")
    assert (dataset.actual, dataset.predicted) == ([[NINE]], [[TEN, NINE]])
    assert evaluate_file(path, 2, predicted_field="hits").averages()["mrr"] == 0.5
    assert read_jsonl(path, predicted_field=None).predicted is None


def test_our_own_names_come_first(tmp_path: Path) -> None:
    """Where all three are there, others are tags, as ever."""
    path = tmp_path / "run.jsonl"
    record = {**RECORDS["krag_eval"], "query": "another", "source": "faq", "context": "library"}
    path.write_text(json.dumps(record), "utf-8")
    dataset = read_jsonl(path)
    assert dataset.queries == ["When?"]
    assert dataset.tags == {"query": ["another"], "source": ["faq"], "context": ["library"]}


def test_deepevals_context_alone_may_be_anything(tmp_path: Path) -> None:
    """Without ``retrieval_context``, it may be what should be retrieved or what was."""
    rows = [{"input": "When?", "context": [NINE]}]
    with pytest.raises(DatasetError):
        load_dataset(rows)


@pytest.mark.parametrize("whose", WHOLE)
def test_what_is_nested_is_not_read_in_chunks(tmp_path: Path, whose: str) -> None:
    """It takes all rows to understand, and says so."""
    with pytest.raises(DatasetError) as info:
        evaluate_file(write(tmp_path, WHOLE[whose], "jsonl"), 2)
    assert "load_dataset" in str(info.value.fix)


def test_a_plain_word_beside_a_name_that_is_known_is_a_tag() -> None:
    """``expected`` and ``retrieved`` mean documents only where nothing else holds any."""
    row = {"question": "?", "actual": ["a"], "predicted": ["a"], "expected": "yes", "retrieved": 3}
    dataset = load_dataset([row])
    assert (dataset.actual, dataset.predicted) == ([["a"]], [["a"]])
    assert dataset.tags == {"expected": ["yes"], "retrieved": [3]}
    without = load_dataset([{"question": "?", "actual": ["a"], "retrieved": 3}])
    assert (without.predicted, without.tags) == (None, {"retrieved": [3]})


def test_an_answer_and_documents_in_korean_are_told_apart_by_the_user() -> None:
    """``정답`` may be the answer where ``정답 문서`` is there as well."""
    row = {"질문": "?", "정답": "a", "정답 문서": ["a"]}
    with pytest.raises(DatasetError) as info:
        load_dataset([row])
    assert isinstance(info.value.fix, Advice)
    assert info.value.fix.settings == (("actual", ...),)
    assert load_dataset([row], actual="정답 문서").actual == [["a"]]
