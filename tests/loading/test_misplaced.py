"""Files that are something else than was meant: what is said leads to what reads them."""

import json

import pytest

from krag_eval import evaluate_file, load_dataset
from krag_eval.datasets import read_jsonl
from krag_eval.errors import Advice, DatasetError, Place
from krag_eval.loading.loading import read_chunks

QRELS = ["7 0 d1 1", "q1 0 d1 0", "q1\t0\td1\t-1", "q1 Q0 d1 2"]
RUNS = ["7 Q0 d1 1 2.5 bm25", "q1\tQ0\td1\t1\t-2.5e-3\ttag", "q1 Q0 d1 1 7 tag"]
QUERY = {"question": "When?", "actual": ["At nine."], "predicted": ["At ten."]}
READERS = {
    "read_jsonl": read_jsonl,
    "load_dataset": lambda path: load_dataset(path, format="jsonl"),
    "a run": lambda path: load_dataset([{"id": 1, "actual": ["a"]}], retrieved=path),
    "evaluate_file": lambda path: evaluate_file(path, 1, chunk_size=1, progress=False),
}


def refused(read, path):
    """Return the refusal of a file."""
    with pytest.raises(DatasetError) as caught:
        read(path)
    return caught.value


def words(fix):
    return fix.text if isinstance(fix, Advice) else fix


@pytest.mark.parametrize("line", [*QRELS, *RUNS])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_judgements_and_runs_are_for_trec(tmp_path, read, line):
    """They are no JSON that somebody should correct."""
    path = tmp_path / "file.jsonl"
    path.write_text(f"{line}\n{line}\n")
    error = refused(read, path)
    assert "krag-eval trec" in words(error.fix)
    assert error.place == Place(str(path), 1)
    assert "JSON" not in words(error.fix)


@pytest.mark.parametrize(
    "text",
    ["query-id\tcorpus-id\tscore\nq1\td1\t1\n", "q1\t0\td1\t1\nq2\t0\td3\t1\n",
     "q1\tQ0\td1\t1\t2.5\ttag\nq2\tQ0\td3\t1\t2.5\ttag\n"],
)  # fmt: skip
def test_tables_of_judgements_are_for_trec(tmp_path, text):
    """With BEIR's header, and without any."""
    path = tmp_path / "qrels.tsv"
    path.write_text(text)
    assert "krag-eval trec" in words(refused(load_dataset, path).fix)


@pytest.mark.parametrize("line", ["a b c d", "1 2 3", "When does it open? 9", "{1 0 d1 1"])
def test_what_is_no_line_of_trec_is_not_called_one(tmp_path, line):
    """The line itself is to be corrected."""
    path = tmp_path / "file.jsonl"
    path.write_text(f"{line}\n")
    assert "trec" not in words(refused(read_jsonl, path).fix)


@pytest.mark.parametrize("name", ["file.csv", "file.tsv", "file.csv.gz"])
@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps(one) for one in [QUERY] * 3),
        json.dumps([QUERY] * 3),
        json.dumps([QUERY] * 3, indent=1),
        json.dumps(QUERY, indent=1),
        f"\n\n{json.dumps(QUERY)}",
    ],
    ids=["lines", "array", "laid out", "object", "after blank lines"],
)
def test_json_called_a_table_is_said_to_be_json(tmp_path, name, text):
    """Its commas are not those of cells."""
    path = tmp_path / name
    if name.endswith(".gz"):
        import gzip

        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    error = refused(load_dataset, path)
    assert words(error.fix) == "give it a name that ends in .jsonl"
    assert error.place.line == 1 + len(text) - len(text.lstrip("\n"))


@pytest.mark.parametrize("header", ["[id],[question]", "{id},question", "[question]"])
def test_names_in_brackets_are_names(tmp_path, header):
    """As some databases write them."""
    path = tmp_path / "file.csv"
    path.write_text(f"{header}\n")
    assert ".jsonl" not in words(refused(load_dataset, path).fix)


@pytest.mark.parametrize("header", ["question,actual", '"question";"actual"', "my question\ta"])
def test_a_table_called_json_is_said_to_be_one(tmp_path, header):
    """Where its first line are names; a later line is to be corrected."""
    path = tmp_path / "file.jsonl"
    path.write_text(f"{header}\n")
    assert ".csv" in words(refused(read_jsonl, path).fix)
    path.write_text(f"{json.dumps(QUERY)}\n{header}\n")
    assert words(refused(read_jsonl, path).fix) == "correct the line"


CHUNKS = ["At nine.", {"id": "c2", "text": "At ten.", "page": 3}, {"page_content": "[x]"}]


@pytest.mark.parametrize("indent", [None, 1])
def test_an_index_may_be_an_array(tmp_path, indent):
    """On one line or on many: the chunks are those of lines."""
    lines, array = tmp_path / "chunks.jsonl", tmp_path / "chunks.json"
    lines.write_text("\n".join(map(json.dumps, CHUNKS)))
    array.write_text(json.dumps(CHUNKS, indent=indent))
    assert read_chunks(array) == read_chunks(lines)
    array.write_text(json.dumps(CHUNKS[1], indent=1))
    assert read_chunks(array) == read_chunks(lines)[1:2]


@pytest.mark.parametrize("strange", [7, ["At nine."], None, {"chunks": []}, {"id": 1}])
def test_a_chunk_of_an_array_is_refused_by_its_row(tmp_path, strange):
    """From 0, as rows of arrays are counted."""
    path = tmp_path / "chunks.json"
    path.write_text(json.dumps([*CHUNKS, strange]))
    assert refused(read_chunks, path).place == Place(str(path), row=3)


@pytest.mark.parametrize("text", ["[", '["a"', '["a"]\n["b"]', '{\n"text": "a"\n}\n{\n"text"'])
def test_an_index_that_is_no_json_has_nothing_to_do_with_judgements(tmp_path, text):
    """What is said is about the index."""
    path = tmp_path / "chunks.json"
    path.write_text(text)
    assert "trec" not in words(refused(read_chunks, path).fix)


@pytest.mark.parametrize("name", ["eval_id", "case_id", "uuid", "ID"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_may_be_an_id_is_named(tmp_path, name, stream):
    """Where rows lack one by a known name."""
    golden, run = tmp_path / "golden.jsonl", tmp_path / "run.jsonl"
    golden.write_text(json.dumps({name: "e1", "question": "When?", "actual": ["a"]}))
    run.write_text(json.dumps({name: "e1", "predicted": ["a"]}))
    read = {
        False: lambda run: load_dataset(golden, retrieved=run),
        True: lambda run: evaluate_file(golden, run, chunk_size=1, progress=False),
    }[stream]
    assert repr(name) in words(refused(read, run).fix)
    run.write_text(json.dumps({"predicted": ["a"]}))
    assert 'give each row an "id"' in words(refused(read, run).fix)
