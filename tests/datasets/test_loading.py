"""Loading tables of questions in many formats: what is recognised, and what is refused.

Expected values are the contents of the tables that the tests write.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import warnings
from collections import UserList
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from langchain_core.documents import Document
from pyarrow import parquet

from krag_eval import AnyOf, KragEvalWarning
from krag_eval.datasets import Dataset, DatasetError, load_dataset

EXPECTED = Dataset(
    ["When?", "Where?"],
    [["nine"], ["here", "there"]],
    [["eight", "nine"], []],
    questions=["When?", "Where?"],
)
ROWS = [
    {"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]},
    {"question": "Where?", "actual": ["here", "there"], "predicted": []},
]
RAGAS = {
    "question": "user_input",
    "actual": "reference_contexts",
    "predicted": "retrieved_contexts",
}


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",", write: Any = str) -> str:
    """Write rows as pandas does: lists as Python writes them."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(rows[0])
    writer.writerows([[one if isinstance(one, str) else write(one) for one in row.values()]
                      for row in rows])  # fmt: skip
    return file.getvalue()


def renamed(names: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows under other names."""
    return [{names[name]: value for name, value in row.items()} for row in ROWS]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file as it is."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(source: Any, **options: Any) -> str:
    """Return the message with which a table is refused."""
    with pytest.raises(DatasetError) as caught:
        load_dataset(source, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


@contextmanager
def may_be_refused() -> Iterator[None]:
    """Let a data set, a warning or our own error come out, and nothing else."""
    with suppress(DatasetError), warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        yield


def cell(value: Any, column: str = "actual") -> list[dict[str, Any]]:
    """Return two rows; the second has this cell."""
    return [ROWS[0], {**ROWS[1], column: value}]


class TestSources:
    """The same table from everywhere."""

    def test_rows(self) -> None:
        """A list of dicts, as Hugging Face's data sets and JSON hold them; any iterable."""
        assert load_dataset(ROWS) == EXPECTED
        assert load_dataset(iter(ROWS)) == EXPECTED
        assert load_dataset(UserList(ROWS)) == EXPECTED

    def test_columns(self) -> None:
        """A dict of lists, as datasets.Dataset.from_dict takes them."""
        columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
        assert load_dataset(columns) == EXPECTED

    def test_a_data_frame(self) -> None:
        """Lists, tuples and arrays are lists; its index does not matter."""
        frame = pd.DataFrame(ROWS, index=[7, 7])
        assert load_dataset(frame) == EXPECTED
        for kind in (tuple, np.array):
            assert load_dataset(frame.assign(actual=frame["actual"].map(kind))) == EXPECTED

    def test_a_table_of_arrow(self) -> None:
        """Whatever has columns by name."""
        assert load_dataset(pa.Table.from_pylist(ROWS)) == EXPECTED

    def test_what_has_column_names(self) -> None:
        """Like a Hugging Face data set: column_names, and columns by name that can be walked."""

        class Like:
            column_names = ("question", "actual", "predicted", "embedding")

            def __getitem__(self, name: str) -> Any:
                if name == "embedding":
                    return (pytest.fail("one was enough") if at else [0.5] for at in range(2))
                return iter([row[name] for row in ROWS])

        assert load_dataset(Like()) == EXPECTED

    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_json_lines(self, tmp_path: Path, compress: Any) -> None:
        """Lines are remembered, and blank ones counted."""
        content = "\n\n".join(json.dumps(row) for row in ROWS)
        path = written(tmp_path, "qa.jsonl.gz", compress(content.encode()))
        dataset = load_dataset(path)
        assert dataset == EXPECTED
        assert (dataset.source, dataset.lines) == (str(path), [1, 3])

    @pytest.mark.parametrize("indent", [None, 2])
    def test_a_json_array(self, tmp_path: Path, indent: int | None) -> None:
        """On one line or many."""
        assert load_dataset(written(tmp_path, "qa.json", json.dumps(ROWS, indent=indent))) == (
            EXPECTED
        )

    @pytest.mark.parametrize("write", [str, json.dumps], ids=["Python", "JSON"])
    @pytest.mark.parametrize(
        ("name", "delimiter"), [("qa.csv", ","), ("qa.tsv", "\t"), ("qa.CSV", ",")]
    )
    def test_csv(self, tmp_path: Path, name: str, delimiter: str, write: Any) -> None:
        """Cells with lists as pandas or JSON write them."""
        path = written(tmp_path, name, as_csv(ROWS, delimiter, write))
        dataset = load_dataset(path)
        assert dataset == EXPECTED
        assert dataset.lines == [2, 3]

    def test_csv_as_excel_saves_it(self, tmp_path: Path) -> None:
        """With a byte order mark, CRLF, and blank lines at the end; compressed as well."""
        content = b"\xef\xbb\xbf" + as_csv(ROWS).encode() + b"\r\n\r\n"
        assert b"\r\n" in content
        assert load_dataset(written(tmp_path, "qa.csv", content)) == EXPECTED
        assert load_dataset(written(tmp_path, "qa.csv.gz", gzip.compress(content))) == EXPECTED

    def test_csv_in_another_encoding(self, tmp_path: Path) -> None:
        """Korean Excel's own, when it is named; otherwise the refusal names it."""
        rows = [{"question": "언제?", "actual": ["아홉 시"]}]
        path = written(tmp_path, "qa.csv", as_csv(rows).encode("cp949"))
        assert load_dataset(path, encoding="cp949").actual == [["아홉 시"]]
        message = refusal(path)
        assert "not UTF-8 text" in message
        assert 'encoding="cp949"' in message

    def test_csv_with_semicolons(self, tmp_path: Path) -> None:
        """As Excel writes where the comma is in numbers: never guessed, asked for."""
        path = written(tmp_path, "qa.csv", as_csv(ROWS, ";"))
        assert load_dataset(path, delimiter=";") == EXPECTED
        assert 'pass delimiter=";"' in refusal(path)

    def test_a_cell_may_hold_lines_and_megabytes(self, tmp_path: Path) -> None:
        """Python's own limit of 131,072 characters is lifted, and put back."""
        text = 'one\n\nline, "two"\n' + "x" * 10_000_000
        before = csv.field_size_limit()
        path = written(tmp_path, "qa.csv", as_csv([{"question": "a\n\nb", "actual": [text]}] * 2))
        dataset = load_dataset(path)
        assert dataset.actual == [[text], [text]]
        assert dataset.questions == ["a\n\nb"] * 2
        assert dataset.lines == [2, 5]
        assert csv.field_size_limit() == before

    @pytest.mark.parametrize("write", [list, str], ids=["native", "text"])
    def test_parquet(self, tmp_path: Path, write: Any) -> None:
        """Lists, or text that spells them; columns that are not needed are not read."""
        rows = [{**row, "actual": write(row["actual"]), "vector": [0.5] * 3} for row in ROWS]
        path = tmp_path / "qa.parquet"
        parquet.write_table(pa.Table.from_pylist(rows), path)
        assert load_dataset(path) == EXPECTED
        with path.open("rb") as file:
            assert load_dataset(file, format="parquet") == EXPECTED

    def test_an_open_file_says_what_it_is(self) -> None:
        """By its name, or by format=."""
        content = as_csv(ROWS)
        assert load_dataset(io.StringIO(content), format="csv") == EXPECTED
        assert load_dataset(io.BytesIO(content.encode()), format="csv") == EXPECTED
        assert 'or pass format="jsonl"' in refusal(io.StringIO(content))


class TestShapes:
    """Whose column names."""

    def test_ragas(self) -> None:
        """And it is said."""
        dataset = load_dataset(renamed(RAGAS))
        assert dataset == EXPECTED
        assert dataset.notes == [
            "ground truth read from reference_contexts, by RAGAS's column names",
            "retrieved documents read from retrieved_contexts",
            "questions read from user_input",
        ]

    def test_ragas_test_set(self) -> None:
        """Nothing has been retrieved yet; the answer in "reference" is no document."""
        rows = [{"user_input": "When?", "reference_contexts": "['nine']", "reference": "At nine."}]
        dataset = load_dataset(rows)
        assert (dataset.actual, dataset.predicted) == ([["nine"]], None)
        assert "no column with retrieved documents (left over: 'reference')" in dataset.notes

    @pytest.mark.parametrize("predicted", ["검색결과", "검색 결과", "검색문서", "검색 문서"])
    def test_korean_names(self, predicted: str) -> None:
        """With and without a space, for results and for documents."""
        rows = [{"질문": "언제?", "정답문서": ["아홉 시"], predicted: ["열 시"]}]
        dataset = load_dataset(rows)
        assert (dataset.actual, dataset.predicted) == ([["아홉 시"]], [["열 시"]])

    def test_ragas_with_ids(self) -> None:
        """Ids go with the texts; a number is an id as well."""
        dataset = load_dataset([{
            "user_input": "When?",
            "reference_contexts": ["nine"], "reference_context_ids": [1],
            "retrieved_contexts": ["eight", "nine"], "retrieved_context_ids": ["2", "1"],
        }])  # fmt: skip
        assert dataset.actual == [[{"page_content": "nine", "id": "1"}]]
        assert dataset.evaluator(matcher="id").calculate_mrr() == {"mrr": 0.5}

    def test_ragas_with_ids_alone(self) -> None:
        """Ids are compared."""
        dataset = load_dataset([{"reference_context_ids": [1], "retrieved_context_ids": [2, 1]}])
        assert dataset.evaluator().matcher.name == "id"
        assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_ids_and_texts_have_nothing_in_common(self) -> None:
        """A comparison would find nothing."""
        rows = [{"reference_contexts": ["a"], "retrieved_context_ids": [1]}]
        assert "one has texts and the other ids" in refusal(rows)

    def test_krag(self) -> None:
        """Its test sets: lists written as text, and the same documents as krag makes of them."""
        frame = pd.DataFrame({
            "question": ["When?"], "context": ["['nine']"],
            "source": ["['guide.pdf']"], "doc_id": ["[7]"], "answer": ["At nine."],
        })  # fmt: skip
        dataset = load_dataset(frame)
        metadata = {"source": "guide.pdf", "doc_id": 7}
        assert dataset.actual == [[{"page_content": "nine", "metadata": metadata}]]
        assert dataset.predicted is None
        assert dataset.evaluator is not None

    def test_krag_with_retrieved_documents(self) -> None:
        """Under any name that is given."""
        row = {"question": "When?", "context": "['nine']", "source": "['a']", "doc_id": "[7]"}
        dataset = load_dataset([{**row, "hits": ["nine"]}], predicted="hits")
        assert dataset.evaluator().calculate_mrr() == {"mrr": 1.0}

    def test_autorag(self, tmp_path: Path) -> None:
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

    def test_autorag_saved_as_csv(self, tmp_path: Path) -> None:
        """The nested list is text then, and not taken for an id."""
        path = tmp_path / "qa.csv"
        truth = {"qid": ["q"], "query": ["When?"], "retrieval_gt": [[["a", "b"], ["c"]]],
                 "retrieved_ids": [["b"]]}  # fmt: skip
        pd.DataFrame(truth).to_csv(path, index=False)
        dataset = load_dataset(path)
        assert (dataset.actual, dataset.predicted) == ([[AnyOf(["a", "b"]), "c"]], [["b"]])

    def test_autorags_options_are_for_its_tables(self) -> None:
        """Others have no corpus."""
        with pytest.raises(ValueError, match="corpus is not for tables"):
            load_dataset(ROWS, corpus=pd.DataFrame())

    def test_columns_of_any_name(self) -> None:
        """When they are named."""
        names = {"question": "q", "actual": "gold", "predicted": "hits"}
        assert load_dataset(renamed(names), **names) == EXPECTED
        dataset = load_dataset(renamed(names), actual="gold")
        assert (dataset.queries, dataset.questions, dataset.predicted) == ([0, 1], None, None)

    def test_a_named_column_settles_a_doubt(self) -> None:
        """RAGAS's old "contexts" are what its user says they are."""
        rows = [{"question": "When?", "contexts": ["nine"], "ground_truth": "At nine."}]
        assert load_dataset(rows, actual="contexts").actual == [["nine"]]
        both = [{**rows[0], "reference_contexts": ["nine"]}]
        assert load_dataset(both, predicted="contexts").predicted == [["nine"]]

    def test_a_column_that_is_named_is_read_like_others_of_its_name(self) -> None:
        """An id column holds ids, whoever names it."""
        rows = [{"reference_context_ids": [1], "reference_contexts": ["a"], "hits": ["1"]}]
        dataset = load_dataset(rows, actual="reference_contexts", predicted="hits")
        assert dataset.actual == [[{"page_content": "a", "id": "1"}]]


class TestLangSmith:
    """Examples, and what runs made of them; no network and no LangSmith needed."""

    ROW: ClassVar[dict[str, Any]] = {
        "inputs": {"question": "When?"},
        "outputs": {"documents": ["nine"]},
    }

    def test_rows_of_examples(self, tmp_path: Path) -> None:
        """Outputs are what is expected, and nothing was retrieved yet."""
        expected = Dataset(["When?"], [["nine"]], None, questions=["When?"])
        assert load_dataset([self.ROW]) == expected
        assert load_dataset(written(tmp_path, "a.jsonl", json.dumps(self.ROW))) == expected

    def test_rows_with_reference_outputs(self) -> None:
        """Then outputs are what a run returned."""
        rows = [{**self.ROW, "reference_outputs": {"answer": "At nine.", "context": ["nine"]}}]
        dataset = load_dataset(rows)
        assert dataset.evaluator().calculate_mrr() == {"mrr": 1.0}

    def test_langsmiths_own_examples(self) -> None:
        """As its client returns them."""
        schemas = pytest.importorskip("langsmith.schemas")
        example = schemas.Example(
            id=uuid4(), dataset_id=uuid4(), created_at=datetime(2026, 1, 1), **self.ROW
        )
        assert load_dataset(iter([example])).actual == [["nine"]]

    def test_rows_of_an_experiment(self) -> None:
        """A run and its example."""
        row = {"run": SimpleNamespace(outputs={"documents": ["eight", "nine"]}),
               "example": SimpleNamespace(**self.ROW), "evaluation_results": {}}  # fmt: skip
        assert load_dataset([row]).evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_keys_can_be_named(self) -> None:
        """With or without the part they are in."""
        row = {"inputs": {"q": "When?", "k": 3}, "outputs": {"gold": ["nine"], "documents": []}}
        for actual in ("gold", "outputs.gold"):
            dataset = load_dataset([row], question="q", actual=actual)
            assert (dataset.questions, dataset.actual) == (["When?"], [["nine"]])

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"inputs": {"a": "x", "b": "y"}}, "inputs must hold the question, .* by question=…"),
            ({"inputs": {"question": ["x"]}}, r"inputs\['question'\] must be the question"),
            ({"inputs": "When?"}, "inputs must be an object with the question"),
            ({"outputs": {"answer": "nine"}}, "outputs must hold one list of documents"),
            (
                {"outputs": {"docs": [], "context": []}},
                "outputs must hold one list .* by actual=…",
            ),
            ({"outputs": None}, "outputs must be a list of documents"),
            ({"outputs": {"documents": [7]}}, r"outputs\['documents'\]\[0\] must .* the number 7"),
        ],
    )
    def test_refusals(self, change: dict[str, Any], expected: str) -> None:
        """By row."""
        with pytest.raises(DatasetError, match=rf"^rows: row 0 \(from 0\): {expected}"):
            load_dataset([{**self.ROW, **change}])


class TestDocuments:
    """What a cell may hold."""

    def test_documents_of_every_kind(self) -> None:
        """LangChain's, dicts, strings and interchangeable ones."""
        document = Document("nine", metadata={"page": 3}, id="7")
        values = [document, {"page_content": "a"}, {"any_of": ["b", document]}, AnyOf(["c"])]
        dataset = load_dataset(cell(values))
        assert dataset.actual[1] == [
            document, {"page_content": "a"}, AnyOf(["b", document]), AnyOf(["c"])
        ]  # fmt: skip

    def test_documents_of_a_table_of_structs(self, tmp_path: Path) -> None:
        """Arrow gives every document every field; the empty ones are not there."""
        rows = [{"actual": [{"page_content": "a", "id": "1"}, {"any_of": ["b", "c"]}]}]
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "qa.parquet")
        (row,) = parquet.read_table(tmp_path / "qa.parquet").to_pylist()
        assert row["actual"][1] == {"page_content": None, "id": None, "any_of": ["b", "c"]}
        dataset = load_dataset(tmp_path / "qa.parquet")
        assert dataset.actual == [[{"page_content": "a", "id": "1"}, AnyOf(["b", "c"])]]

    def test_documents_written_as_text(self) -> None:
        """In JSON or Python, dicts included."""
        for text in ('[{"any_of": ["b", "c"]}]', "[{'any_of': ['b', 'c']}]"):
            assert load_dataset(cell(text)).actual[1] == [AnyOf(["b", "c"])]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("nine", r"actual is plain text \('nine'\); expected a list, .*cells=\"text\" reads"),
            ("", r"actual must be a list of documents, got nothing; write \[\]"),
            (None, r"actual must be a list of documents, got nothing; write \[\]"),
            (float("nan"), "actual must be a list of documents, got nothing"),
            (pd.NA, "actual must be a list of documents, got nothing"),
            (7, r"actual must be a list of documents, got the number 7; .*a list even for one"),
            ({"page_content": "a"}, "actual must be a list of documents, .* even for one"),
            ([7], r'actual\[0\] must be a document .* got the number 7; ids are text'),
            ([True], r"actual\[0\] must be a document .* got a boolean"),
            (["a", None], r"actual\[1\] must be a document .* got null"),
            ([["a"]], r"actual\[0\] must be a document .* got a list"),
            ([{"text": "a"}], r'actual\[0\]: .* needs .* "page_content" .* got the keys "text"'),
            ([{"any_of": []}], r'actual\[0\]: "any_of" must .* one or more documents'),
            ([{"any_of": [{"any_of": ["a"]}]}], r"actual\[0\].any_of\[0\]: .* one level deep"),
            (["\ud83d"], r"actual\[0\] holds half of a surrogate pair"),
            ([{"page_content": "\ud83d"}], r"actual\[0\] holds half of a surrogate pair"),
            ('["a", NaN]', "actual not usable JSON: NaN is not a JSON value"),
            ("[" * 5000, "actual nested too deeply|it is nested more than 100 deep"),
            ("[1e999]", "1e999 is too large"),
            ("page_content='a' metadata={}", "actual is a LangChain Document as it prints itself"),
            (["page_content='a' metadata={}"], r"actual\[0\] is a LangChain Document as it prints"),
            ("[Document(metadata={}, page_content='a')]", "a LangChain Document was printed"),
            ("['a' 'b']", "as numpy prints arrays"),
            ("[exit()]", "'exit' is not expected"),
        ],
    )  # fmt: skip
    def test_refusals(self, value: Any, expected: str) -> None:
        """By row and column, counted from 0 as pandas does."""
        with pytest.raises(DatasetError, match=rf"^rows: row 1 \(from 0\): .*({expected})"):
            load_dataset(cell(value))

    def test_alternatives_belong_in_the_ground_truth(self) -> None:
        """What was retrieved is one document each."""
        assert "belongs in the ground truth" in refusal(cell([{"any_of": ["a"]}], "predicted"))
        assert "of the ground truth" in refusal(cell([AnyOf(["a"])], "predicted"))

    def test_a_row_that_lacks_a_field(self, tmp_path: Path) -> None:
        """Is named by its line, and is not taken for nothing retrieved."""
        content = f"{json.dumps(ROWS[0])}\n\n" + '{"question": "Q", "actual": []}'
        path = written(tmp_path, "qa.jsonl", content)
        assert refusal(path).startswith(f'{path}:3: no field "predicted"; write []')


class TestQuestions:
    """What a query is called, and what to ask."""

    def test_numbers_are_labels(self) -> None:
        """But nothing to ask; numpy's are numbers, too."""
        dataset = load_dataset(pd.DataFrame(ROWS).assign(question=[17, 18]))
        assert (dataset.queries, dataset.questions) == ([17, 18], None)

    def test_some_are_missing(self) -> None:
        """Then all are labelled by position, and it is said."""
        with pytest.warns(KragEvalWarning, match="1 of 2 queries in rows have no question .*row 1"):
            dataset = load_dataset(cell(None, "question"))
        assert (dataset.queries, dataset.questions) == ([0, 1], None)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (1.5, r"question must be text or a whole number, got the number 1.5"),
            (True, "question must be text or a whole number"),
            ([{"content": "Hi", "type": "human"}], "question must be text .* several turns"),
            ("\ud83d", "question +holds half of a surrogate pair"),
            ({"0": "When?"}, "question must be text .* got an object; .*orient="),
        ],
    )
    def test_refusals(self, value: Any, expected: str) -> None:
        """By row and column."""
        with pytest.raises(DatasetError, match=rf"^rows: row 1 \(from 0\): {expected}"):
            load_dataset(cell(value, "question"))


class TestAmbiguity:
    """What could mean two things is not guessed."""

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["question", "contexts"], "'contexts' may be what should be retrieved .* actual=…"),
            (["question", "context"], "'context' may be what should be retrieved or what was"),
            (["question", "ground_truth"], "'ground_truth' is an answer in RAGAS, not documents"),
            (["question", "ground_truths"], "'ground_truths' are answers in RAGAS"),
            (["user_input", "reference"], "'reference' is an answer in RAGAS"),
            (["question", "retrieval_gt"], "'retrieval_gt' is AutoRAG's"),
            (["a", "b"], "the columns are 'a', 'b'; name it by actual=…"),
            (["actual", "reference_contexts"], "several .* 'actual', 'reference_contexts'; choose"),
            (
                ["actual", "question", "query"],
                "several columns could hold the question: 'question'",
            ),
            (["actual", "predicted", "retrieved_contexts"], "several .* by predicted=…"),
        ],
    )
    def test_the_names_to_choose_from_are_listed(self, names: list[str], expected: str) -> None:
        """And what is known about them."""
        with pytest.raises(DatasetError, match=rf"^rows: .*{expected}"):
            load_dataset([{name: ["a"] for name in names}])

    def test_a_named_column_must_exist(self) -> None:
        """The option is named, and what there is."""
        message = refusal(ROWS, actual="gold")
        assert "no column 'gold', which is named as actual; the columns are 'question'" in message

    def test_many_columns_are_not_all_listed(self) -> None:
        """A message stays readable."""
        message = refusal([{f"column {number}": 1 for number in range(500)}])
        assert "'column 19' and 480 more" in message

    def test_one_column_cannot_mean_two_things(self) -> None:
        """A mistake in the call."""
        with pytest.raises(ValueError, match="must name different columns"):
            load_dataset(ROWS, actual="actual", predicted="actual")


class TestRefusedSources:
    """What is no table of questions."""

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            (3, "source must be a path, an open file, a data frame, .* got a int"),
            (["text"], r"source\[0\] must be a dict or a LangSmith example, got a str"),
            ({"question": "Q", "actual": ["a"]}, "put a single row into a list"),
            ({"actual": [["a"]], "predicted": []}, "columns of one length"),
            ({"train": pd.DataFrame(ROWS)}, "pass one of several tables"),
        ],
    )
    def test_other_objects(self, source: Any, expected: str) -> None:
        """A mistake in the program, not in a file."""
        with pytest.raises(TypeError, match=expected):
            load_dataset(source)

    def test_several_tables_in_one(self) -> None:
        """A Hugging Face data set with splits has the columns of each."""

        class Splits:
            column_names = {"train": ["question"], "test": ["question"]}  # noqa: RUF012

            def __getitem__(self, name: str) -> Any:
                raise AssertionError("not asked for")

        with pytest.raises(TypeError, match="several tables, 'train', 'test'; pass one of them"):
            load_dataset(Splits())

    def test_tables_elsewhere(self) -> None:
        """Of a cluster, or lazy: they are collected by their user, if at all."""

        class Frame(pd.DataFrame):
            def compute(self) -> None:
                """As Dask's frames have it."""

        with pytest.raises(
            TypeError, match=r"is a Frame, which has yet to be collected; .*compute"
        ):
            load_dataset(Frame(ROWS))

    @pytest.mark.parametrize("source", [[], pd.DataFrame(columns=["question", "actual"])])
    def test_nothing_in_it(self, source: Any) -> None:
        """An empty table is not an evaluation of nothing."""
        assert "holds no rows" in refusal(source)

    def test_two_columns_of_one_name(self, tmp_path: Path) -> None:
        """Which one is meant?"""
        frame = pd.DataFrame([[["a"], ["b"]]], columns=["actual", "actual"])
        assert "two columns have the name 'actual'" in refusal(frame)
        path = written(tmp_path, "qa.csv", "actual,actual\n[],[]\n")
        assert "two columns have the name 'actual'" in refusal(path)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"format": "xml"}, "format must be one of 'jsonl', 'json', 'csv', 'tsv', 'parquet'"),
            ({"delimiter": ";;"}, "delimiter must be one character"),
            ({"delimiter": '"'}, "delimiter must be one character"),
            ({"encoding": "utf-16"}, "encoding must be 'utf-8' or another that contains ASCII"),
            ({"encoding": "klingon"}, "encoding must be 'utf-8' or another"),
            ({"encoding": "cp949", "format": "parquet"}, "encoding is for files of text"),
            ({"max_bytes": 0}, "max_bytes must be a whole number"),
        ],
    )
    def test_options(self, tmp_path: Path, options: dict[str, Any], expected: str) -> None:
        """Before anything is read."""
        with pytest.raises(ValueError, match=expected):
            load_dataset(tmp_path / "qa.csv", **options)

    def test_options_of_files_are_for_files(self) -> None:
        """A list has no delimiter."""
        with pytest.raises(ValueError, match="delimiter is for files, got a list"):
            load_dataset(ROWS, delimiter=";")
        with pytest.raises(TypeError, match="actual must be the name of a column, got 3"):
            load_dataset(ROWS, actual=3)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("qa.xlsx", b"PK", "is a workbook; save the sheet as CSV"),
            ("qa.txt", b"", "its name does not say what it is; .*perhaps with .gz"),
            ("qa.csv", b"", "holds no rows"),
            ("qa.csv", b"question,actual\n", "holds no rows"),
            ("qa.csv", b"question,actual\nQ\n", r":2: row 2 .*has 1 cells, and the header 2"),
            ("qa.csv", b"question,actual\nQ,[],x\n", r"has 3 cells, and the header 2"),
            ("qa.csv", b'question,actual\nQ,"["a"]"\n', r":2: not a row of a table: .*double"),
            ("qa.csv", b'question,actual\nQ,"[\n\n', r":2: not a row of a table: unexpected end"),
            ("qa.csv", b"question,actual\rQ,[]\r", r":1: not a row of a table: new-line character"),
            ("qa.csv", b"PK\x03\x04", "is a zip archive"),
            ("qa.json", b"", "holds no rows"),
            ("qa.json", b"[1]", r"row 0 \(from 0\): must be an object .* got the number"),
            ("qa.json", b'[\n{"a": 1},\n{"a" 1}]', r":3: not valid JSON"),
            ("qa.json", b"[" * 100_000, "nested too deeply"),
            ("qa.jsonl", b"{", ":1: not valid JSON"),
            ("qa.parquet", b"PAR1", "cannot be read as Parquet"),
            ("qa.parquet", b"PAR1" + b"\0" * 100 + b"PAR1", "cannot be read as Parquet"),
        ],
    )
    def test_files(self, tmp_path: Path, name: str, content: bytes, expected: str) -> None:
        """By name and line."""
        path = written(tmp_path, name, content)
        with pytest.raises(DatasetError, match=rf"^{path}.*{expected}"):
            load_dataset(path)

    def test_the_second_row_of_a_csv_file(self, tmp_path: Path) -> None:
        """The line of the file, and the row as a spreadsheet counts it."""
        content = as_csv([{**ROWS[0], "question": "a\nb"}, {**ROWS[1], "actual": "x"}])
        path = written(tmp_path, "qa.csv", content)
        assert refusal(path).startswith(f"{path}:4: row 3 (the header is row 1): actual is plain")

    @pytest.mark.parametrize("name", ["qa.csv", "qa.jsonl", "qa.parquet"])
    def test_a_missing_file_a_folder_a_device(self, tmp_path: Path, name: str) -> None:
        """Each by its name; a folder of Parquet files is not read as one table, nor an address."""
        assert "no such file" in refusal(tmp_path / name)
        (tmp_path / name).mkdir()
        assert "is a directory" in refusal(tmp_path / name)
        assert "no such file" in refusal(f"s3://bucket/{name}")
        assert refusal("/dev/zero", format=name.partition(".")[2]).startswith("/dev/zero:")

    def test_bombs(self, tmp_path: Path) -> None:
        """What expands beyond the limit is refused, in every format."""
        content = as_csv([{"question": "Q", "actual": ["x" * 1000]}] * 1000)
        path = written(tmp_path, "qa.csv.gz", gzip.compress(content.encode()))
        assert "longer than 100,000 bytes" in refusal(path, max_bytes=100_000)
        table = pa.table({"question": ["Q"], "actual": [["x" * 11_000_000]]})
        parquet.write_table(table, tmp_path / "qa.parquet")
        assert (tmp_path / "qa.parquet").stat().st_size < 1_000_000
        message = refusal(tmp_path / "qa.parquet", max_bytes=10_000_000)
        assert "its columns hold more than 10,000,000 bytes" in message

    @given(content=st.binary(max_size=200), kind=st.sampled_from(["csv", "tsv", "jsonl", "json"]))
    def test_any_bytes_are_read_or_refused(self, content: bytes, kind: Any) -> None:
        """Nothing but our own error comes out, with a header or without."""
        for head in (b"", b"question,actual\n", b"question\tactual\n", b"[", b'{"actual": '):
            with may_be_refused():
                load_dataset(io.BytesIO(head + content), format=kind)

    @given(content=st.binary(max_size=300), at=st.integers(0, 10_000))
    def test_any_damage_of_a_parquet_file_is_refused_or_harmless(
        self, content: bytes, at: int
    ) -> None:
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
    def test_any_cell_is_read_or_refused(self, text: str) -> None:
        """And what is read can be evaluated."""
        try:
            dataset = load_dataset([{"actual": text, "predicted": text}])
        except DatasetError:
            return
        dataset.evaluator(no_ground_truth="zero")
