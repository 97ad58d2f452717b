"""Columns that no one asked for: the readers keep them as tags of the queries."""

import io
import json
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from krag_eval import load_dataset
from krag_eval.datasets import Dataset, read_jsonl
from krag_eval.errors import DatasetError

ROWS = [
    {"question": "언제?", "actual": ["a"], "predicted": ["a"], "corpus": "위키", "pages": 3,
     "hard": True, "scores": [0.5], "note": "n"},
    {"question": "Where?", "actual": ["b"], "predicted": ["x"], "corpus": "", "pages": None,
     "hard": False, "scores": [], "note": "n" * 201},
]  # fmt: skip
KEPT = {"corpus": ["위키", None], "pages": [3, None], "hard": [True, False]}
CELLS = {"corpus": ["위키", None], "pages": ["3", None], "hard": ["True", "False"]}


def jsonl(path, rows=ROWS):
    path = path / "qa.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


def array(path):
    (path / "qa.json").write_text(json.dumps(ROWS), "utf-8")
    return path / "qa.json"


def parquet_file(path):
    parquet.write_table(pa.Table.from_pylist(ROWS), path / "qa.parquet")
    return path / "qa.parquet"


SOURCES = [
    jsonl,
    array,
    parquet_file,
    lambda path: ROWS,
    lambda path: {name: [row[name] for row in ROWS] for name in ROWS[0]},
    lambda path: pd.DataFrame(ROWS),
    lambda path: pa.Table.from_pylist(ROWS),
]


@pytest.mark.parametrize("source", SOURCES)
def test_what_can_be_a_tag_is_kept_and_the_rest_is_named(tmp_path, source):
    """Alike in every format; a column with one long text, or with lists, is left out whole."""
    dataset = load_dataset(source(tmp_path))
    assert dataset.tags == KEPT
    (note,) = dataset.notes[3:]
    assert "scores" in note
    assert "note" in note
    assert dataset.evaluator().evaluate(5).tags == KEPT
    assert dataset.evaluator(tags={"a": [1, 2]}).evaluate(5).tags == {"a": [1, 2]}


def test_cells_of_a_table_of_texts_are_texts(tmp_path):
    """An empty one is nothing; a list is text there, and short."""
    frame = pd.DataFrame(ROWS).astype({"pages": "Int64"})
    frame.to_csv(tmp_path / "qa.csv", index=False)
    assert load_dataset(tmp_path / "qa.csv").tags == {**CELLS, "scores": ["[0.5]", "[]"]}


def test_json_lines_are_read_alike_by_both_readers(tmp_path):
    """Also where a field is not on every line."""
    rows = [ROWS[0], {**ROWS[1], "late": 1}]
    one, other = read_jsonl(jsonl(tmp_path, rows)), load_dataset(jsonl(tmp_path, rows))
    assert one == other
    assert one.tags == {**KEPT, "late": [None, 1]}
    assert one.notes == other.notes[3:]


@pytest.mark.parametrize("read", [read_jsonl, load_dataset])
def test_tags_are_chosen(tmp_path, read):
    """None, or some; a name that is not there, or cannot be one, is refused."""
    path = jsonl(tmp_path)
    assert read(path, tags=False).tags == {}
    assert not any("scores" in note for note in read(path, tags=False).notes)
    assert read(path, tags=["hard"]).tags == {"hard": KEPT["hard"]}
    for name in ("missing", "scores", "note", "question"):
        with pytest.raises(DatasetError, match=f"^{path}: .*'{name}'"):
            read(path, tags=[name])
    with pytest.raises(DatasetError, match="'corpus'"):
        read(path, tags=["missing"])


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize(
    "tags",
    [
        KEPT,
        {"corpus": ["=1+1", "'=1"], "pages": ["3", 3], "ratio": [0.5, 1]},
        {"query": ["a", None], "context": [None, None], "inputs": [1, 2], "outputs": ["b", "c"]},
        {"=1+1": ["a", 1], "a;=1": [None, "b"], "query": [1, "=1"]},
        {"big": [2**70, None], "cut": ["=" * 200, "null"], "empty": [None, None]},
    ],
)
def test_tags_are_saved_with_their_data_set(tmp_path, tags, ending):
    """And read back, whatever they are called and of whatever type; equal means equal types."""
    dataset = replace(load_dataset(ROWS, tags=False), tags=tags)
    path = tmp_path / f"saved{ending}"
    dataset.save(path)
    again = load_dataset(path)
    assert again == dataset
    assert repr([again.tags[name] for name in tags]) == repr(list(tags.values()))
    if ending == ".jsonl":
        assert read_jsonl(path) == dataset


def test_a_cell_that_was_changed_counts(tmp_path):
    """What is written beside it tells only the type of what was there."""
    replace(load_dataset(ROWS, tags=False), tags={"pages": [3, 4]}).save(tmp_path / "qa.csv")
    text = (tmp_path / "qa.csv").read_text("utf-8")
    changed = tmp_path / "changed.csv"
    changed.write_text(text.replace(",3,", ",many,"), "utf-8")
    assert load_dataset(changed).tags == {"pages": ["many", 4]}


def test_without_tags_a_file_is_what_it_was(tmp_path):
    """Byte by byte."""
    load_dataset(ROWS, tags=False).save(tmp_path / "qa.jsonl")
    line = (tmp_path / "qa.jsonl").read_text("utf-8").splitlines()[1]
    assert line == '{"question": "Where?", "actual": ["b"], "predicted": ["x"]}'


def test_data_sets_of_other_tags_are_others():
    dataset = Dataset(["q"], [["a"]], tags={"corpus": ["wiki"]})
    assert dataset != Dataset(["q"], [["a"]])
    assert dataset == Dataset(["q"], [["a"]], tags={"corpus": ["wiki"]})


def test_fields_of_ever_other_names_fill_no_memory():
    """A hundred are kept."""
    lines = [json.dumps({"actual": ["a"], "predicted": ["a"], f"f{n}": 1}) for n in range(300)]
    dataset = read_jsonl(io.StringIO("\n".join(lines)))
    assert len(dataset.tags) == 100
    assert dataset.tags["f99"] == [None] * 99 + [1] + [None] * 200
    assert "f100" in dataset.notes[0]
    assert "more" in dataset.notes[0]


def test_texts_of_parquet_that_are_too_long_are_not_read(tmp_path):
    """A column that no one asked for is no reason to refuse a file."""
    table = pa.table({"actual": [["a"]] * 50, "body": ["x" * 10_000] * 49 + ["y"],
                      "corpus": ["wiki"] * 50})  # fmt: skip
    parquet.write_table(table, tmp_path / "qa.parquet", use_dictionary=False, compression="none")
    dataset = load_dataset(tmp_path / "qa.parquet", max_bytes=100_000)
    assert dataset.tags == {"corpus": ["wiki"] * 50}


def test_other_vocabularies_keep_tags_too():
    """AutoRAG's and LangSmith's tables."""
    autorag = [{"qid": "1", "query": "When?", "retrieval_gt": [["a"]], "split": "test"}]
    assert load_dataset(autorag).tags == {"split": ["test"]}
    langsmith = [{"inputs": {"question": "When?"}, "outputs": {"documents": ["a"]}, "split": "b"}]
    assert load_dataset(langsmith).tags == {"split": ["b"]}
