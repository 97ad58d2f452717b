"""Reading AutoRAG's tables: nested ground truth, texts, and what was retrieved.

The values that AutoRAG's own tests expect come out of the loader and the preset together.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from krag_eval import AnyOf, Conventions, KragEvalWarning
from krag_eval._install import install_line
from krag_eval.datasets import DatasetError, read_autorag

QIDS = ["q1", "q2", "q3"]


def questions(*truths: object, **columns: list[object]) -> pd.DataFrame:
    """Return a table of questions with the given ground truth."""
    qids = [f"q{number}" for number in range(1, len(truths) + 1)]
    texts = [f"Question {qid}?" for qid in qids]
    return pd.DataFrame({"qid": qids, "query": texts, "retrieval_gt": truths} | columns)


def refusal(*arguments: object, **options: object) -> str:
    """Return the message with which tables are refused."""
    with pytest.raises(DatasetError) as caught:
        read_autorag(*arguments, **options)  # type: ignore[arg-type]
    assert str(caught.value).isprintable()
    return str(caught.value)


class TestGroundTruth:
    """The outer list means and, an inner one means or."""

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ([["a"]], ["a"]),
            ([["a", "b"], ["c"]], [AnyOf(["a", "b"]), "c"]),
            ([["a"], ["b"]], ["a", "b"]),
            (["a", "b"], [AnyOf(["a", "b"])]),
            (["a"], ["a"]),
            ("a", ["a"]),
            ([[]], []),
            ([], []),
            (np.array([np.array(["a", "b"], object), np.array(["c"], object)], object), None),
        ],
        ids=str,
    )
    def test_nesting(self, value: object, expected: list[object] | None) -> None:
        """A flat list is one item with alternatives, as in AutoRAG; arrays are lists."""
        dataset = read_autorag(questions(value), retrieved={"q1": ["a"]})
        assert dataset.actual == [[AnyOf(["a", "b"]), "c"] if expected is None else expected]

    @pytest.mark.parametrize("value", [[[""]], [""], "", " ", "[['']]", [["", ""]]], ids=repr)
    def test_an_empty_string_is_no_ground_truth(self, value: object) -> None:
        """AutoRAG's MetricInput.is_fields_notnone leaves such a question unscored."""
        with pytest.warns(KragEvalWarning, match=r"1 of 2 questions .*the first is in row 1\)"):
            dataset = read_autorag(questions([["a"]], value), retrieved={"q1": ["a"], "q2": ["b"]})
        assert dataset.actual == [["a"], []]

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ([["a"], []], r"got '\[\]' as one of them"),
            ([["a"], "b"], "got 'b' as one of them"),
            ([[1]], r"got '\[1\]'"),
            ([[["a"]]], "as one of them"),
            ([["a"], [""]], r"got .\[''\]. as one of them"),
            ([["a", ""]], "as one of them"),
            (None, "got null"),
            (float("nan"), "got null"),
            (7, "got the number 7"),
        ],
    )
    def test_anything_else_is_refused_by_row(self, value: object, shown: str) -> None:
        """The second row is wrong; rows are counted from 0, as pandas does."""
        with pytest.raises(DatasetError, match=rf"^qa: row 1 \(from 0\): retrieval_gt .*{shown}"):
            read_autorag(questions([["a"]], value), retrieved={"q1": [], "q2": []})


class TestPublishedValues:
    """Loader, evaluator and preset agree with AutoRAG."""

    TRUTHS = (
        [["test-1", "test-2"], ["test-3"]],
        [["test-4", "test-5"], ["test-6", "test-7"], ["test-8"]],
        [["test-11"], ["test-12"], ["test-13"]],
    )
    RETRIEVED = (
        ["test-1", "pred-1", "test-2", "pred-3"],
        ["test-6", "pred-5", "pred-6", "pred-7"],
        ["test-13", "test-12", "pred-10", "pred-11"],
    )

    def test_every_metric(self) -> None:
        """Recall, precision, F1, nDCG, MRR and MAP of the three examples."""
        retrieved = dict(zip(QIDS, self.RETRIEVED, strict=True))
        dataset = read_autorag(questions(*self.TRUTHS), retrieved=retrieved)
        table = dataset.evaluator(conventions=Conventions.autorag()).evaluate([None]).per_query()
        expected = {
            "recall": [0.5, 1 / 3, 2 / 3],
            "precision": [0.5, 0.25, 0.5],
            "f1": [0.5, 2 / 7, 4 / 7],
            "ndcg": [0.7039180890341347, 0.3903800499921017, 0.7653606369886217],
            "reciprocal_rank": [0.5, 1 / 3, 1 / 2],
            "average_precision": [5 / 12, 1 / 3, 1 / 2],
        }
        for name, values in expected.items():
            assert table[name].tolist() == pytest.approx(values, abs=1e-12), name

    def test_means_are_over_queries_with_ground_truth(self) -> None:
        """As AutoRAG averages; the option is one the caller chooses."""
        dataset = read_autorag(questions([["a"]], [[]]), retrieved={"q1": ["a"], "q2": ["b"]})
        evaluator = dataset.evaluator(conventions=Conventions.autorag(), no_ground_truth="skip")
        assert evaluator.calculate_recall()["macro_recall"] == 1.0


class TestRetrieved:
    """What was retrieved, as people have it."""

    QA = questions([["a"]], [["b"]])

    def test_a_mapping(self) -> None:
        """From qid to ids, in any order."""
        dataset = read_autorag(self.QA, retrieved={"q2": ("b", "a"), "q1": np.array(["c"])})
        assert dataset.predicted == [["c"], ["b", "a"]]

    def test_a_table_joined_by_qid(self) -> None:
        """In any order."""
        table = pd.DataFrame({"qid": ["q2", "q1"], "retrieved_ids": [["b"], ["a", "c"]]})
        assert read_autorag(self.QA, retrieved=table).predicted == [["a", "c"], ["b"]]

    def test_a_table_in_order(self) -> None:
        """AutoRAG's own result files have no qid."""
        table = pd.DataFrame({"retrieved_ids": [["a"], []], "retrieve_scores": [[1.0], []]})
        assert read_autorag(self.QA, retrieved=table).predicted == [["a"], []]

    def test_columns_of_the_questions(self) -> None:
        """Joined already."""
        joined = questions([["a"]], [["b"]], retrieved_ids=[["a"], ["c"]])
        assert read_autorag(joined).predicted == [["a"], ["c"]]

    def test_contents_are_texts(self) -> None:
        """What the retriever returned goes before what the corpus says."""
        table = pd.DataFrame({"retrieved_ids": [["a"], []], "retrieved_contents": [["A!"], []]})
        corpus = pd.DataFrame({"doc_id": ["a", "b"], "contents": ["A", "B"]})
        dataset = read_autorag(self.QA, corpus, table)
        assert dataset.predicted == [[{"page_content": "A!", "id": "a"}], []]
        assert dataset.actual[1] == [{"page_content": "B", "id": "b"}]

    def test_questions_without_a_list_count_as_nothing_retrieved(self) -> None:
        """With a warning, as for those that are not asked."""
        with pytest.warns(KragEvalWarning) as warned:
            dataset = read_autorag(self.QA, retrieved={"q1": ["a"], "q9": ["a"]})
        assert dataset.predicted == [["a"], []]
        assert [str(one.message) for one in warned] == [
            "retrieved: 1 of 2 queries are not in qa and are left out (the first is 'q9').",
            "retrieved: 1 of the 2 queries of qa are missing (the first is 'q2') and count as "
            "nothing retrieved.",
        ]

    @pytest.mark.parametrize(
        ("retrieved", "expected"),
        [
            ({"x": ["a"]}, "none of its 1 queries .such as 'x'. is among the 2 of qa"),
            ({}, "none of its 0 queries is among"),
            ({"q1": "a"}, "the list of 'q1' must be a list of document ids, best first"),
            ({"q1": [1]}, r"must be a list of document ids.*, got the number 1 as one of them"),
            ({"q1": [None]}, "got null as one of them"),
            (pd.DataFrame({"ids": [[]]}), "no column 'retrieved_ids'; the columns are 'ids'"),
            (pd.DataFrame({"retrieved_ids": [["a"]]}), "holds 1 rows and no column 'qid'"),
            (
                pd.DataFrame({"qid": ["q1", "q1"], "retrieved_ids": [[], []]}),
                r"row 1 \(from 0\): qid 'q1' is given a second time",
            ),
            (
                pd.DataFrame({"retrieved_ids": [["a"], []], "retrieved_contents": [[], []]}),
                r"row 0 .* retrieved_contents must be a list with one text for each of the 1 ids",
            ),
            (
                pd.DataFrame({"retrieved_ids": [["a"], []], "retrieved_contents": [[1], []]}),
                "retrieved_contents must be a list of texts",
            ),
        ],
    )
    def test_refusals(self, retrieved: object, expected: str) -> None:
        """By table, row and column."""
        with pytest.raises(DatasetError, match=f"^retrieved: .*{expected}"):
            read_autorag(self.QA, retrieved=retrieved)  # type: ignore[arg-type]

    def test_nothing_said(self) -> None:
        """There must be something to evaluate."""
        assert "no column 'retrieved_ids'; pass what was retrieved" in refusal(self.QA)


class TestTables:
    """Files, frames and their columns."""

    def test_files_are_frames(self, tmp_path: Path) -> None:
        """What pandas saves and pyarrow reads is the same; metadata is kept as it is."""
        qa = questions([["a", "b"], ["c"]])
        metadata = [{"page": 3, "read": datetime(2024, 12, 3)}, {"page": 4, "read": None}, None]
        corpus = pd.DataFrame(
            {"doc_id": ["a", "b", "c"], "contents": ["에이", "비", "C"], "metadata": metadata}
        )
        found = pd.DataFrame({"retrieved_ids": [["c", "a"]]})
        paths = []
        for name, frame in {"qa": qa, "corpus": corpus, "found": found}.items():
            paths.append(tmp_path / f"{name}.parquet")
            frame.to_parquet(paths[-1])
        dataset = read_autorag(*paths)
        assert dataset == read_autorag(qa, corpus, found)
        assert dataset.source == str(paths[0])
        assert dataset.predicted[0][0] == {"page_content": "C", "id": "c"}
        assert dataset.predicted[0][1]["metadata"]["page"] == 3

    def test_labels_are_the_questions(self) -> None:
        """Texts match in their own right, here by equality."""
        corpus = pd.DataFrame({"doc_id": ["a", "b"], "contents": ["same", "same"]})
        dataset = read_autorag(questions([["a"]]), corpus, {"q1": ["b"]})
        evaluator = dataset.evaluator(matcher="text")
        assert evaluator.queries == dataset.questions == ["Question q1?"]
        assert evaluator.calculate_mrr() == {"mrr": 1.0}
        assert dataset.evaluator(matcher="text").conventions == Conventions()

    @pytest.mark.parametrize(
        ("qa", "expected"),
        [
            (pd.DataFrame({"qid": ["q1"]}), "qa: no column 'query'; the columns are 'qid'"),
            (questions(), "qa: holds no rows"),
            (
                questions([["a"]]).assign(qid=[7]),
                r"row 0 .*: qid must be text, got the number 7",
            ),
            (questions([["a"]]).assign(query=[None]), "query must be text, got null"),
            (questions([["a"]], [["a"]]).assign(qid=["q", "q"]), "qid 'q' is given a second time"),
        ],
    )
    def test_refused_questions(self, qa: pd.DataFrame, expected: str) -> None:
        """By row and column."""
        with pytest.raises(DatasetError, match=expected):
            read_autorag(qa, retrieved={"q1": ["a"]})

    @pytest.mark.parametrize(
        ("corpus", "expected"),
        [
            (pd.DataFrame({"doc_id": ["a"]}), "corpus: no column 'contents'"),
            (pd.DataFrame({"doc_id": ["a", "a"], "contents": ["", ""]}), "a second time"),
            (
                pd.DataFrame({"doc_id": ["a"], "contents": [3]}),
                "contents must be text, got the num",
            ),
            (
                pd.DataFrame({"doc_id": ["a"], "contents": ["A"], "metadata": ["m"]}),
                "metadata must be an object, got a string",
            ),
        ],
    )
    def test_refused_corpora(self, corpus: pd.DataFrame, expected: str) -> None:
        """By row and column."""
        with pytest.raises(DatasetError, match=expected):
            read_autorag(questions([["a"]]), corpus, {"q1": ["a"]})

    def test_documents_the_corpus_lacks(self) -> None:
        """They keep their ids; a warning counts them."""
        corpus = pd.DataFrame({"doc_id": ["a"], "contents": ["A"]})
        with pytest.warns(KragEvalWarning, match=r"corpus: 1 documents are not in it .*'x'"):
            dataset = read_autorag(questions([["a"]]), corpus, {"q1": ["x", "a"]})
        assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_files_that_are_no_parquet(self, tmp_path: Path) -> None:
        """Named in one line, whatever pyarrow says."""
        path = tmp_path / "qa.parquet"
        path.write_text("qid,query\n")
        assert refusal(path).startswith(f"{path}: cannot be read as Parquet (")
        path.write_bytes(b"PAR1" + b"\0" * 20 + b"PAR1")
        assert refusal(path).startswith(f"{path}: cannot be read as Parquet (")
        assert refusal(tmp_path / "none.parquet").endswith(
            "none.parquet: no such file; check the path."
        )

    def test_something_else_than_a_table(self) -> None:
        """A mistake in the program."""
        with pytest.raises(TypeError, match="qa must be the path of a file or a data frame"):
            read_autorag([{"qid": "q1"}])  # type: ignore[arg-type]

    def test_without_pyarrow_the_remedy_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is an extra."""
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=re.escape(install_line("parquet"))):
            read_autorag(tmp_path / "qa.parquet")
