"""Saving a data set: it reads back equal, or nothing is written."""

import csv
import gzip
import json
import os
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from langchain_core.documents import Document
from pyarrow import parquet
from trials import trials

from krag_eval import AnyOf, Conventions, RougeMatcher, load_dataset
from krag_eval.datasets import Dataset, DatasetError, read_jsonl, read_trec

ENDINGS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
every_ending = pytest.mark.parametrize("ending", ENDINGS)

DATASET = Dataset(
    ["When?", 'Where, "exactly"?\r\n'],
    [
        [AnyOf(["nine", {"page_content": "9 am", "id": 7}]), "here"],
        [{"page_content": "a", "metadata": {"relevance": 2, "x": [1.5, None, {"y": True}]}}],
    ],
    [["eight", {"page_content": "nine", "id": "d1", "metadata": {}}], []],
    questions=["When?", 'Where, "exactly"?\r\n'],
)

# What a file can hold: any characters but halves of them; a question is not empty.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
documents = texts | st.fixed_dictionaries(
    {"page_content": texts},
    optional={
        "id": st.none() | st.integers() | texts,
        "metadata": st.none() | st.dictionaries(texts, values, max_size=2),
    },
)
items = documents | st.lists(documents, min_size=1, max_size=3).map(AnyOf)


@st.composite
def datasets(draw):
    """Return any data set that has one list per query."""
    n_queries = draw(st.integers(1, 4))

    def lists(of):
        return st.lists(of, min_size=n_queries, max_size=n_queries)

    questions = draw(st.none() | lists(texts.filter(bool).filter(lambda one: "\0" not in one)))
    labels = st.just([*range(n_queries)]) | lists(texts | st.integers())
    return Dataset(
        draw(labels if questions is None else labels | st.just(questions)),
        draw(lists(st.lists(items, max_size=3))),
        draw(st.none() | lists(st.lists(documents, max_size=3))),
        questions=questions,
        defaults=draw(st.sampled_from([{}, {"matcher": "coverage", "threshold": 0.5}])),
    )


class TestRoundTrip:
    """What is read again is equal."""

    @every_ending
    def test_everything_comes_back(self, tmp_path, ending):
        """Alternatives, metadata, ids, grades, questions, labels."""
        path = tmp_path / f"qa{ending}"
        DATASET.save(path)
        again = load_dataset(path)
        assert again == DATASET
        assert repr(again.actual) == repr(DATASET.actual), "types too, which == would not tell"

    @every_ending
    @settings(max_examples=trials(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(dataset=datasets())
    def test_any_data_set_comes_back(self, tmp_path, ending, dataset):
        """Whatever is in it."""
        path = tmp_path / f"any{ending}"
        dataset.save(path)
        again = load_dataset(path)
        assert again == dataset
        assert (again.queries, again.defaults) == (dataset.queries, dataset.defaults)

    @every_ending
    @pytest.mark.parametrize("labels", [[0, 1], [7, 8], ["q1", "q2"], ["When?", 3]], ids=str)
    @pytest.mark.parametrize("questions", [None, ["When?", "When?"]], ids=["none", "equal"])
    def test_labels_and_questions(self, tmp_path, ending, labels, questions):
        """Each its own, also where two questions are equal."""
        dataset = replace(DATASET, queries=labels, questions=questions, predicted=None)
        dataset.save(tmp_path / f"qa{ending}")
        assert load_dataset(tmp_path / f"qa{ending}") == dataset

    @every_ending
    def test_how_to_evaluate_comes_back(self, tmp_path, ending):
        """A saved TREC run still has trec_eval's numbers: 2 / log2(3), ideal 2 + 1 / log2(3)."""
        dataset = read_trec({"1": {"a": 2, "b": 1}}, {"1": {"x": 2.0, "a": 1.0}})
        dataset.save(tmp_path / f"run{ending}")
        again = load_dataset(tmp_path / f"run{ending}")
        assert again == dataset
        assert again.defaults["conventions"] == Conventions.trec()
        assert again.evaluator().calculate_ndcg() == dataset.evaluator().calculate_ndcg()
        assert again.evaluator().calculate_ndcg()["ndcg"] == pytest.approx(1.261860 / 2.630930)

    def test_the_reader_of_json_lines_reads_it_too(self, tmp_path):
        """As it is its format; other readers of JSON lines ignore one field."""
        dataset = replace(DATASET, queries=["q1", "q2"], defaults={"matcher": "id"})
        dataset.save(tmp_path / "qa.jsonl")
        again = read_jsonl(tmp_path / "qa.jsonl")
        assert (again, again.defaults) == (dataset, {"matcher": "id"})
        first = json.loads((tmp_path / "qa.jsonl").read_text().partition("\n")[0])
        assert first["krag_eval"] == {"label": "q1", "evaluator": {"matcher": "id"}}

    def test_nothing_is_added_where_nothing_is_to_say(self, tmp_path):
        """The file is what a user would have written."""
        Dataset(["When?"], [["nine"]], [["eight"]], questions=["When?"]).save(tmp_path / "a.jsonl")
        assert (tmp_path / "a.jsonl").read_text() == (
            '{"question": "When?", "actual": ["nine"], "predicted": ["eight"]}\n'
        )

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
    def test_formulas_are_shielded_and_come_back(self, tmp_path, ending):
        """Wherever a cell may begin: after a comma, or after a semicolon within a cell."""
        asked = ["=cmd|' /C calc'!A0", "'=1", "a;@b", "When?", "-5"]
        documents = [["x;=1"], ["a;b"], [{"page_content": "y;+1"}], ["-1"], [AnyOf(["=1", ";-1"])]]
        dataset = Dataset([*asked], documents, questions=asked)
        dataset.save(tmp_path / f"qa{ending}")
        assert load_dataset(tmp_path / f"qa{ending}") == dataset
        content = (tmp_path / f"qa{ending}").read_bytes()
        text = (gzip.decompress(content) if ending.endswith(".gz") else content).decode()
        rows = [*csv.reader(text.splitlines())]
        shown = ["'=cmd|' /C calc'!A0", "''=1", "a;'@b", "When?", "-5"]
        assert [row[0] for row in rows[1:]] == shown
        cells = [cell for row in rows for whole in row for cell in whole.split(";")]
        assert not [cell for cell in cells if cell[:1] in {"=", "+", "@"}]

    def test_only_marked_questions_lose_the_sign(self, tmp_path):
        """A table of somebody's own is read as it is written."""
        path = tmp_path / "qa.csv"
        path.write_text("question,actual\n'=1,[]\n")
        assert load_dataset(path).questions == ["'=1"]

    def test_langchain_documents_come_back_as_dicts(self, tmp_path):
        """With text, metadata and id, so that every matcher decides alike."""
        documents = [Document("nine", metadata={"page": 3}, id="7"), Document("eight")]
        Dataset(["Q"], [documents], [documents]).save(tmp_path / "qa.jsonl")
        nine = {"page_content": "nine", "metadata": {"page": 3}, "id": "7"}
        assert load_dataset(tmp_path / "qa.jsonl").actual == [[nine, {"page_content": "eight"}]]

    def test_texts_are_lists_in_parquet(self, tmp_path):
        """So that other tools read them; documents are JSON."""
        Dataset(["Q"], [["a"]], [[{"page_content": "a", "id": "1"}]]).save(tmp_path / "a.parquet")
        table = parquet.read_table(tmp_path / "a.parquet").to_pydict()
        assert table["actual"] == [["a"]]
        assert table["predicted"] == ['[{"page_content": "a", "id": "1"}]']

    def test_equal_data_sets_are_equal_files(self, tmp_path):
        """Neither time nor name is written into compressed ones."""
        DATASET.save(tmp_path / "a.jsonl.gz")
        DATASET.save(tmp_path / "b.jsonl.gz")
        content = (tmp_path / "a.jsonl.gz").read_bytes()
        assert content == (tmp_path / "b.jsonl.gz").read_bytes()
        assert gzip.decompress(content).startswith(b'{"question": "When?"')

    def test_a_link_stays_one(self, tmp_path):
        """Whatever the file it points to is called."""
        (tmp_path / "link.csv").symlink_to(tmp_path / "file")
        DATASET.save(tmp_path / "link.csv")
        assert load_dataset(tmp_path / "file", format="csv") == DATASET
        assert os.path.islink(tmp_path / "link.csv")


def is_refused(dataset, path):
    """Check that a data set is not written, and that what was there is there still."""
    path.write_bytes(b"before")
    with pytest.raises(DatasetError) as caught:
        dataset.save(path)
    assert str(caught.value).isprintable()
    assert [*path.parent.iterdir()] == [path]
    assert path.read_bytes() == b"before"
    return str(caught.value)


def holding(metadata):
    """Return a data set whose second query has a document with this metadata."""
    return replace(DATASET, predicted=[[], [{"page_content": "a", "metadata": metadata}]])


class TestRefusals:
    """What cannot be written without loss is not written at all."""

    @every_ending
    @pytest.mark.parametrize(
        ("dataset", "expected"),
        [
            (holding({"x": float("nan")}), r"queries\[1\] .* cannot be written without loss: .*"),
            (holding({"x": {1, 2}}), "type set is not JSON serializable"),
            (holding({"x": (1, 2)}), "its part in predicted would be read as something else"),
            (holding({1: "x"}), "its part in predicted would be read as something else"),
            (holding({"x": "\ud83d"}), "half of a surrogate pair"),
            (holding({"x": 10**5000}), "cannot be written without loss"),
            (replace(DATASET, predicted=[["\ud83d"], []]), "half of a surrogate pair"),
            (replace(DATASET, predicted=[[AnyOf(["a"])], []]), "belongs in the ground truth"),
            (replace(DATASET, predicted=[[]]), "has 2 queries and 1 lists in predicted"),
            (replace(DATASET, predicted=[[{"summary": "a"}], []]), 'needs the key "page_content"'),
            (replace(DATASET, questions=["When?", "\ud83d"]), "half of a surrogate pair"),
            (replace(DATASET, defaults={"matcher": RougeMatcher("rougeL")}),
             r"defaults: matcher=.*pass it to the evaluator"),
            (Dataset([], [], [], questions=[]), "no column holds"),
        ],
    )  # fmt: skip
    def test_what_would_be_lost(self, tmp_path, ending, dataset, expected):
        """By query or by name, in every format."""
        assert re.search(expected, is_refused(dataset, tmp_path / f"qa{ending}"))

    @pytest.mark.parametrize(
        "value", [float("inf"), np.int64(1), date(2026, 1, 1), b"bytes"], ids=str
    )
    def test_what_json_does_not_have(self, tmp_path, value):
        assert is_refused(holding({"x": value}), tmp_path / "qa.jsonl")

    def test_an_empty_question_is_none_in_a_table(self, tmp_path):
        """It would be read as missing."""
        dataset = replace(DATASET, questions=["When?", ""])
        assert "queries[" in is_refused(dataset, tmp_path / "qa.csv")

    @pytest.mark.parametrize("name", ["qa", "qa.txt", "qa.json", "qa.parquet.gz", "qa.xlsx"])
    def test_other_endings(self, tmp_path, name):
        """The list is given."""
        message = is_refused(DATASET, tmp_path / name)
        assert ".jsonl, .jsonl.gz, .csv, .csv.gz, .parquet" in message

    def test_a_directory_that_is_not_there(self, tmp_path):
        """It is not made, and one of that name is not replaced."""
        with pytest.raises(FileNotFoundError, match="there is no directory"):
            DATASET.save(tmp_path / "none" / "qa.csv")
        (tmp_path / "qa.csv").mkdir()
        with pytest.raises(OSError, match="is not a regular file"):
            DATASET.save(tmp_path / "qa.csv")

    def test_queries_of_different_kinds(self, written):
        """Two files put together are refused, rather than evaluated as the first says."""
        line = '{"actual": [], "predicted": []}\n'
        marked = line.replace("}", ', "krag_eval": {"evaluator": {"matcher": "id"}}}')
        for read in (read_jsonl, load_dataset):
            with pytest.raises(DatasetError, match=r":2: .*the evaluator differs from that of the"):
                read(written(marked + line))
