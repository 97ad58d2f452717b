"""Loading tables of questions in many formats: what is recognised, and what is refused.

Expected values are the contents of the tables that the tests write. What can be no table is in
``golden/refused/datasets.py``.
"""

import csv
import gzip
import io
import json
import sys
from collections import UserList
from contextlib import contextmanager, suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from langchain_core.documents import Document
from pyarrow import parquet
from reference import no_advice

from krag_eval import AnyOf, KragEvalWarning
from krag_eval.datasets import Dataset, DatasetError, load_dataset
from krag_eval.errors import InvalidType, MissingPackage

EXPECTED = Dataset(
    ["When?", "Where?"],
    [["nine"], ["here", "there"]],
    [["eight", "nine"], []],
    questions=["When?", "Where?"],
)
ROWS: list[dict[str, Any]] = [
    {"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]},
    {"question": "Where?", "actual": ["here", "there"], "predicted": []},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


def as_csv(rows, delimiter=",", write=str):
    """Write rows as pandas does: lists as Python writes them."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(rows[0])
    writer.writerows([[one if isinstance(one, str) else write(one) for one in row.values()]
                      for row in rows])  # fmt: skip
    return file.getvalue()


def renamed(question, actual, predicted):
    """Return the rows under other names."""
    return [dict(zip((question, actual, predicted), row.values(), strict=True)) for row in ROWS]


def refusal(source, **options):
    """Return the message with which a table is refused."""
    with pytest.raises(DatasetError) as caught:
        load_dataset(source, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


@contextmanager
def may_be_refused():
    """Let a data set, a warning or our own error come out, and nothing else."""
    with suppress(DatasetError), no_advice():
        yield


class Like:
    """Like a Hugging Face data set: column_names, and columns by name that can be walked."""

    column_names = ("question", "actual", "predicted", "embedding")

    def __getitem__(self, name):
        if name == "embedding":
            return (pytest.fail("one was enough") if at else [0.5] for at in range(2))
        return iter(COLUMNS[name])


class Stream:
    """A table that only streams, once, through Arrow's C interface."""

    def __init__(self, content):
        self.content = [content]

    def __arrow_c_stream__(self, requested_schema=None):
        return self.content.pop().__arrow_c_stream__(requested_schema)


class Relation(Stream):
    """Like a relation of DuckDB, whose columns are relations."""

    columns = [*COLUMNS]  # noqa: RUF012
    shape = (2, 3)

    def __getitem__(self, name):
        return self


class Lazy(Relation):
    """Like a table of ibis: each column is a query of its own."""

    shape = property()

    def __getitem__(self, name):
        return pa.array(COLUMNS[name][::-1])


FRAME = pd.DataFrame(ROWS, index=[7, 7])
ARROW = pa.Table.from_pylist(ROWS)
CONTENT = as_csv(ROWS)


class TestSources:
    """The same table from everywhere."""

    @pytest.mark.parametrize(
        "source",
        [
            ROWS, iter(ROWS), UserList(ROWS), COLUMNS, FRAME, ARROW, Like(),
            ARROW.to_batches()[0], ARROW.to_reader(), Stream(ARROW), Relation(ARROW), Lazy(ARROW),
            FRAME.assign(actual=FRAME["actual"].map(tuple)),
            FRAME.assign(actual=FRAME["actual"].map(np.array)),
        ],
        ids=lambda one: type(one).__name__,
    )  # fmt: skip
    def test_in_memory(self, source):
        """Rows in any iterable, columns, and whatever has columns by name; arrays are lists."""
        assert load_dataset(source) == EXPECTED

    @pytest.mark.parametrize(
        ("name", "content", "lines"),
        [
            ("qa.jsonl.gz", "\n\n".join(map(json.dumps, ROWS)), [1, 3]),
            ("qa.jsonl.gz", gzip.compress("\n\n".join(map(json.dumps, ROWS)).encode()), [1, 3]),
            ("qa.json", json.dumps(ROWS), []),
            ("qa.json", json.dumps(ROWS, indent=2), []),
            ("qa.csv", CONTENT, [2, 3]),
            ("qa.CSV", as_csv(ROWS, ",", json.dumps), [2, 3]),
            ("qa.tsv", as_csv(ROWS, "\t"), [2, 3]),
            ("qa.csv", f"\ufeff{CONTENT}\r\n\r\n", [2, 3]),
            ("qa.csv.gz", gzip.compress(f"\ufeff{CONTENT}\r\n\r\n".encode()), [2, 3]),
        ],
    )
    def test_files_of_text(self, written, name, content, lines):
        """Lists as Python or JSON write them, also as Excel saves a table; lines are kept."""
        path = written(content, name)
        dataset = load_dataset(path)
        assert dataset == EXPECTED
        assert (dataset.source, dataset.lines) == (str(path), lines)

    def test_csv_with_semicolons(self, written):
        """As Excel writes where the comma is in numbers: never guessed, asked for."""
        path = written(as_csv(ROWS, ";"), "qa.csv")
        assert load_dataset(path, delimiter=";") == EXPECTED
        assert 'pass delimiter=";"' in refusal(path)

    def test_a_cell_may_hold_lines_and_megabytes(self, written):
        """Python's own limit of 131,072 characters is lifted, and put back."""
        text = 'one\n\nline, "two"\n' + "x" * 1_000_000
        before = csv.field_size_limit()
        path = written(as_csv([{"question": "a\n\nb", "actual": [text]}] * 2), "qa.csv")
        dataset = load_dataset(path)
        assert (dataset.actual, dataset.questions) == ([[text], [text]], ["a\n\nb"] * 2)
        assert dataset.lines == [2, 5]
        assert csv.field_size_limit() == before

    @pytest.mark.parametrize("write", [list, str], ids=["native", "text"])
    def test_parquet(self, tmp_path, write):
        """Lists, or text that spells them; columns that are not needed are not read."""
        rows = [{**row, "actual": write(row["actual"]), "vector": [0.5] * 3} for row in ROWS]
        path = tmp_path / "qa.parquet"
        parquet.write_table(pa.Table.from_pylist(rows), path)
        assert load_dataset(path) == EXPECTED
        with path.open("rb") as file:
            assert load_dataset(file, format="parquet") == EXPECTED

    def test_an_open_file_says_what_it_is(self):
        """By its name, or by format=."""
        assert load_dataset(io.StringIO(CONTENT), format="csv") == EXPECTED
        assert load_dataset(io.BytesIO(CONTENT.encode()), format="csv") == EXPECTED
        assert 'or pass format="jsonl"' in refusal(io.StringIO(CONTENT))


class TestShapes:
    """Whose column names."""

    def test_whose_names_they_are_is_said(self):
        names = ("user_input", "reference_contexts", "retrieved_contexts")
        dataset = load_dataset(renamed(*names))
        assert dataset == EXPECTED
        assert dataset.notes == [
            "ground truth read from reference_contexts, by RAGAS's column names",
            "retrieved documents read from retrieved_contexts",
            "questions read from user_input",
        ]

    def test_ragas_test_set(self):
        """Nothing has been retrieved yet; the answer in "reference" is no document."""
        rows = [{"user_input": "When?", "reference_contexts": "['nine']", "reference": "At nine."}]
        dataset = load_dataset(rows)
        assert (dataset.actual, dataset.predicted) == ([["nine"]], None)
        assert "no column with retrieved documents (left over: 'reference')" in dataset.notes

    def test_ids_go_with_texts(self):
        """A number is an id as well."""
        row = {"reference_contexts": ["nine"], "reference_context_ids": [1],
               "retrieved_contexts": ["eight", "nine"],
               "retrieved_context_ids": ["2", "1"]}  # fmt: skip
        dataset = load_dataset([row])
        assert dataset.actual == [[{"page_content": "nine", "id": "1"}]]
        assert dataset.evaluator(matcher="id").calculate_mrr() == {"mrr": 0.5}

    def test_krag(self):
        """Its test sets: lists written as text, and documents under any name that is given."""
        row = {"question": "When?", "context": "['nine']", "source": "['guide.pdf']",
               "doc_id": "[7]", "answer": "At nine."}  # fmt: skip
        dataset = load_dataset(pd.DataFrame([row]))
        metadata = {"source": "guide.pdf", "doc_id": 7}
        assert dataset.actual == [[{"page_content": "nine", "metadata": metadata}]]
        assert dataset.predicted is None
        found = load_dataset([{**row, "hits": ["nine"]}], predicted="hits")
        assert found.evaluator().calculate_mrr() == {"mrr": 1.0}

    def test_autorag(self, tmp_path):
        """Parquet files, with texts from the corpus; nothing retrieved yet is no mistake."""
        qa, corpus = tmp_path / "qa.parquet", tmp_path / "corpus.parquet"
        truth = {"qid": ["q"], "query": ["When?"], "retrieval_gt": [[["a", "b"], ["c"]]]}
        pd.DataFrame(truth).to_parquet(qa)
        pd.DataFrame({"doc_id": ["a", "b", "c"], "contents": ["A", "B", "C"]}).to_parquet(corpus)
        dataset = load_dataset(qa, corpus=corpus)
        assert [type(item) for item in dataset.actual[0]] == [AnyOf, dict]
        assert (dataset.questions, dataset.predicted) == (["When?"], None)
        with_hits = load_dataset(qa, retrieved={"q": ["x", "b"]})
        assert with_hits.actual == [[AnyOf(["a", "b"]), "c"]]
        assert with_hits.evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_autorag_saved_as_csv(self, tmp_path):
        """The nested list is text then, and not taken for an id."""
        truth = {"qid": ["q"], "query": ["When?"], "retrieval_gt": [[["a", "b"], ["c"]]],
                 "retrieved_ids": [["b"]]}  # fmt: skip
        pd.DataFrame(truth).to_csv(tmp_path / "qa.csv", index=False)
        dataset = load_dataset(tmp_path / "qa.csv")
        assert (dataset.actual, dataset.predicted) == ([[AnyOf(["a", "b"]), "c"]], [["b"]])

    def test_a_table_of_autorag_whose_ground_truth_is_named(self):
        """Is one of questions: the column that the user names is what counts."""
        row = {"qid": "q", "query": "When?", "retrieval_gt": [["a"]], "gold": ["b"]}
        assert load_dataset([row], actual="gold").actual == [["b"]]

    def test_columns_of_any_name(self):
        """When they are named."""
        names = {"question": "q", "actual": "gold", "predicted": "hits"}
        assert load_dataset(renamed(**names), **names) == EXPECTED
        dataset = load_dataset(renamed(**names), actual="gold")
        assert (dataset.queries, dataset.questions, dataset.predicted) == ([0, 1], None, None)

    def test_a_named_column_settles_a_doubt(self):
        """RAGAS's old "contexts" are what its user says they are."""
        rows = [{"question": "When?", "contexts": ["nine"], "ground_truth": "At nine."}]
        assert load_dataset(rows, actual="contexts").actual == [["nine"]]
        both = [{**rows[0], "reference_contexts": ["nine"]}]
        assert load_dataset(both, predicted="contexts").predicted == [["nine"]]

    def test_a_column_that_is_named_is_read_like_others_of_its_name(self):
        """An id column holds ids, whoever names it."""
        rows = [{"reference_context_ids": [1], "reference_contexts": ["a"], "hits": ["1"]}]
        dataset = load_dataset(rows, actual="reference_contexts", predicted="hits")
        assert dataset.actual == [[{"page_content": "a", "id": "1"}]]


EXAMPLE = {"inputs": {"question": "When?"}, "outputs": {"documents": ["nine"]}}


class TestLangSmith:
    """Examples, and what runs made of them; no network and no LangSmith needed."""

    def test_examples(self, written):
        """Outputs are what is expected, and nothing was retrieved yet."""
        schemas = pytest.importorskip("langsmith.schemas")
        example = schemas.Example(
            id=uuid4(), dataset_id=uuid4(), created_at=datetime(2026, 1, 1), **EXAMPLE
        )
        expected = Dataset(["When?"], [["nine"]], None, questions=["When?"])
        path = written(json.dumps(EXAMPLE), "a.jsonl")
        for source in ([EXAMPLE], path, iter([example])):
            assert load_dataset(source) == expected

    def test_what_runs_made_of_them(self):
        """Beside reference outputs, or in a row of an experiment, outputs were retrieved."""
        row = {**EXAMPLE, "reference_outputs": {"answer": "At nine.", "context": ["nine"]}}
        assert load_dataset([row]).evaluator().calculate_mrr() == {"mrr": 1.0}
        row = {"run": SimpleNamespace(outputs={"documents": ["eight", "nine"]}),
               "example": SimpleNamespace(**EXAMPLE), "evaluation_results": {}}  # fmt: skip
        assert load_dataset([row]).evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_keys_can_be_named(self):
        """With or without the part they are in."""
        row = {"inputs": {"q": "When?", "k": 3}, "outputs": {"gold": ["nine"], "documents": []}}
        for actual in ("gold", "outputs.gold"):
            dataset = load_dataset([row], question="q", actual=actual)
            assert (dataset.questions, dataset.actual) == (["When?"], [["nine"]])


class TestCells:
    """What a cell may hold."""

    DOCUMENT = Document("nine", metadata={"page": 3}, id="7")
    ANY = AnyOf(["b", "c"])

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ([DOCUMENT, {"page_content": "a"}, {"any_of": ["b", DOCUMENT]}, ANY],
             [DOCUMENT, {"page_content": "a"}, AnyOf(["b", DOCUMENT]), ANY]),
            ('[{"any_of": ["b", "c"]}]', [ANY]),
            ("[{'any_of': ['b', 'c']}]", [ANY]),
        ],
        ids=["of every kind", "JSON", "Python"],
    )  # fmt: skip
    def test_documents(self, value, expected):
        """LangChain's, dicts, strings and interchangeable ones, also written as text."""
        assert load_dataset([ROWS[0], {**ROWS[1], "actual": value}]).actual[1] == expected

    def test_documents_of_a_table_of_structs(self, tmp_path):
        """Arrow gives every document every field; the empty ones are not there."""
        rows = [{"actual": [{"page_content": "a", "id": "1"}, {"any_of": ["b", "c"]}]}]
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "qa.parquet")
        (row,) = parquet.read_table(tmp_path / "qa.parquet").to_pylist()
        assert row["actual"][1] == {"page_content": None, "id": None, "any_of": ["b", "c"]}
        dataset = load_dataset(tmp_path / "qa.parquet")
        assert dataset.actual == [[{"page_content": "a", "id": "1"}, self.ANY]]

    def test_numbers_are_labels(self):
        """But nothing to ask; numpy's are numbers, too."""
        dataset = load_dataset(pd.DataFrame(ROWS).assign(question=[17, 18]))
        assert (dataset.queries, dataset.questions) == ([17, 18], None)

    def test_some_questions_are_missing(self):
        """Then all are labelled by position, and it is said."""
        with pytest.warns(KragEvalWarning, match="1 of 2 queries in rows have no question .*row 1"):
            dataset = load_dataset([ROWS[0], {**ROWS[1], "question": None}])
        assert (dataset.queries, dataset.questions) == ([0, 1], None)


class TestRefused:
    """What is no table of questions."""

    @pytest.mark.parametrize(
        ("row", "expected"),
        [
            ({"actual": 9}, "even for one"),
            ({"actual": None}, r"got nothing; write \[\]"),
            ({"actual": {"page_content": "a"}}, "even for one"),
            ({"actual": [], "question": [{"content": "Hi"}]}, "several turns"),
            ({"actual": [], "question": {"0": "When?"}}, "orient="),
            ({"a": ["a"], "b": ["a"]}, "the columns are 'a', 'b'; name it by actual=…"),
            ({f"column {at}": 1 for at in range(500)}, "'column 19' and 480 more"),
            ({"retrieval_gt": ["a"]}, "'retrieval_gt' is AutoRAG's"),
            ({"actual": ["a"], "reference_contexts": ["a"]}, "several .* 'actual', .*; choose"),
            ({"q_id": "1", "doc_id": "a", "score": 1}, "read_trec, or krag-eval trec"),
            ({"q1": {"d1": 1, "d2": 2}}, "read_trec, or krag-eval trec"),
        ],
    )
    def test_a_remedy_is_named(self, row, expected):
        """What can be done about it, and the names to choose from."""
        with pytest.raises(DatasetError, match=expected):
            load_dataset([row])

    def test_several_tables_in_one(self):
        """A Hugging Face data set with splits has the columns of each."""

        class Splits:
            column_names = {"train": ["question"], "test": ["question"]}  # noqa: RUF012

            def __getitem__(self, name):
                raise AssertionError("not asked for")

        with pytest.raises(TypeError, match="several tables, 'train', 'test'; pass one of them"):
            load_dataset(Splits())

    @pytest.mark.parametrize("one", [Stream(ARROW["question"]), ARROW["question"]])
    def test_a_column_is_no_table(self, one):
        """A column streams as well, and is refused by its type."""
        with pytest.raises(InvalidType):
            load_dataset(one)

    def test_a_stream_without_pyarrow(self, monkeypatch):
        """The line for pip is named; tables whose columns are here do not need it."""
        source = Relation(ARROW)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert load_dataset(FRAME) == EXPECTED
        with pytest.raises(MissingPackage) as caught:
            load_dataset(source)
        assert caught.value.fix.startswith("pip install ")

    def test_tables_elsewhere(self):
        """Of a cluster, or lazy: they are collected by their user, if at all."""

        class Frame(pd.DataFrame):
            def compute(self):
                """As Dask's frames have it."""

        with pytest.raises(
            TypeError, match=r"is a Frame, which has yet to be collected; .*compute"
        ):
            load_dataset(Frame(ROWS))

    @pytest.mark.parametrize("name", ["qa.csv", "qa.jsonl", "qa.parquet"])
    def test_a_missing_file_a_folder_a_device(self, tmp_path, name):
        """Each by its name; a folder of Parquet files is not read as one table, nor an address."""
        assert "no such file" in refusal(tmp_path / name)
        (tmp_path / name).mkdir()
        assert "is a directory" in refusal(tmp_path / name)
        assert "no such file" in refusal(f"s3://bucket/{name}")
        limits = {"max_bytes": 2**20, "format": name.partition(".")[2]}
        assert refusal("/dev/zero", **limits).startswith("/dev/zero:")

    def test_bombs(self, tmp_path, written):
        """What expands beyond the limit is refused, in every format."""
        content = as_csv([{"question": "Q", "actual": ["x" * 1000]}] * 1000)
        path = written(gzip.compress(content.encode()), "qa.csv.gz")
        assert "longer than 100,000 bytes" in refusal(path, max_bytes=100_000)
        table = pa.table({"question": ["Q"], "actual": [["x" * 11_000_000]]})
        parquet.write_table(table, tmp_path / "qa.parquet")
        assert (tmp_path / "qa.parquet").stat().st_size < 1_000_000
        message = refusal(tmp_path / "qa.parquet", max_bytes=10_000_000)
        assert "its columns hold more than 10,000,000 bytes" in message

    def test_columns_without_rows(self, tmp_path):
        """An empty table of whatever shape is not an evaluation of nothing."""
        for names in (("corpus", "queries", "qrels"), ("inputs", "outputs"), ("actual",)):
            frame = pd.DataFrame({name: pd.Series([], dtype=str) for name in names})
            frame.to_parquet(tmp_path / "qa.parquet")
            assert "holds no rows" in refusal(tmp_path / "qa.parquet")

    @given(content=st.binary(max_size=200), kind=st.sampled_from(["csv", "tsv", "jsonl", "json"]))
    def test_any_bytes_are_read_or_refused(self, content, kind):
        """Nothing but our own error comes out, with a header or without."""
        for head in (b"", b"question,actual\n", b"question\tactual\n", b"[", b'{"actual": '):
            with may_be_refused():
                load_dataset(io.BytesIO(head + content), format=kind)

    @given(content=st.binary(max_size=300), at=st.integers(0, 10_000))
    def test_any_damage_of_a_parquet_file_is_refused_or_harmless(self, content, at):
        """A file overwritten somewhere is read as it then is, or refused.

        But for the footer, by which pyarrow can be made to end the process; see SECURITY.md.
        """
        buffer = io.BytesIO()
        parquet.write_table(pa.Table.from_pylist(ROWS), buffer)
        damaged = bytearray(buffer.getvalue())
        footer = len(damaged) - 8 - int.from_bytes(damaged[-8:-4], "little")
        at %= footer
        damaged[at:footer] = (content + damaged[at + len(content) : footer])[: footer - at]
        with may_be_refused():
            load_dataset(io.BytesIO(bytes(damaged)), format="parquet")

    @given(st.text("[]{}'\",\\ ab1\n:", max_size=40))
    def test_any_cell_is_read_or_refused(self, text):
        """And what is read can be evaluated."""
        try:
            dataset = load_dataset([{"actual": text, "predicted": text}])
        except DatasetError:
            return
        dataset.evaluator(no_ground_truth="zero")
