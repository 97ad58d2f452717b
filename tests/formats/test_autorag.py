"""Reading AutoRAG's tables: nested ground truth, texts, and what was retrieved.

The values that AutoRAG's own tests expect come out of the loader and the preset together. Tables
that are refused are in ``golden/refused/datasets.py``.
"""

import re
import sys
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from krag_eval import AnyOf, Conventions, KragEvalWarning
from krag_eval.core import install_line
from krag_eval.datasets import read_autorag

QIDS = ["q1", "q2", "q3"]


def questions(*truths: object, **columns: list[object]) -> pd.DataFrame:
    """Return a table of questions with the given ground truth."""
    qids = [f"q{number}" for number in range(1, len(truths) + 1)]
    texts = [f"Question {qid}?" for qid in qids]
    return pd.DataFrame({"qid": qids, "query": texts, "retrieval_gt": truths} | columns)


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
    def test_nesting(self, value: object, expected: list[object] | None):
        """A flat list is one item with alternatives, as in AutoRAG; arrays are lists."""
        dataset = read_autorag(questions(value), retrieved={"q1": ["a"]})
        assert dataset.actual == [[AnyOf(["a", "b"]), "c"] if expected is None else expected]

    @pytest.mark.parametrize("value", [[[""]], [""], "", " ", "[['']]", [["", ""]]], ids=repr)
    def test_an_empty_string_is_no_ground_truth(self, value: object):
        """AutoRAG's MetricInput.is_fields_notnone leaves such a question unscored."""
        with pytest.warns(KragEvalWarning, match=r"1 of 2 questions .*the first is in row 1\)"):
            dataset = read_autorag(questions([["a"]], value), retrieved={"q1": ["a"], "q2": ["b"]})
        assert dataset.actual == [["a"], []]


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

    def test_every_metric(self):
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

    def test_means_are_over_queries_with_ground_truth(self):
        """As AutoRAG averages; the option is one the caller chooses."""
        dataset = read_autorag(questions([["a"]], [[]]), retrieved={"q1": ["a"], "q2": ["b"]})
        evaluator = dataset.evaluator(conventions=Conventions.autorag(), no_ground_truth="skip")
        assert evaluator.calculate_recall()["macro_recall"] == 1.0


class TestRetrieved:
    """What was retrieved, as people have it."""

    QA = questions([["a"]], [["b"]])

    @pytest.mark.parametrize(
        "retrieved",
        [
            {"q2": ("b", "a"), "q1": np.array(["c"])},
            pd.DataFrame({"qid": ["q2", "q1"], "retrieved_ids": [["b", "a"], ["c"]]}),
            # AutoRAG's own result files have no qid.
            pd.DataFrame({"retrieved_ids": [["c"], ["b", "a"]], "retrieve_scores": [[1.0], []]}),
            None,
        ],
        ids=["by qid", "a table with qid", "a table in order", "columns of the questions"],
    )
    def test_lists_of_ids(self, retrieved):
        """Joined by qid in any order, or in the order of the questions."""
        qa = self.QA if retrieved is not None else self.QA.assign(retrieved_ids=[["c"], ["b", "a"]])
        assert read_autorag(qa, retrieved=retrieved).predicted == [["c"], ["b", "a"]]

    def test_numbers_are_ids_by_their_texts(self):
        dataset = read_autorag(self.QA, retrieved={"q1": [1], "q2": ["b"]})
        assert dataset.predicted == [["1"], ["b"]]

    def test_contents_are_texts(self):
        """What the retriever returned goes before what the corpus says."""
        table = pd.DataFrame({"retrieved_ids": [["a"], []], "retrieved_contents": [["A!"], []]})
        corpus = pd.DataFrame({"doc_id": ["a", "b"], "contents": ["A", "B"]})
        dataset = read_autorag(self.QA, corpus, table)
        assert dataset.predicted == [[{"page_content": "A!", "id": "a"}], []]
        assert dataset.actual[1] == [{"page_content": "B", "id": "b"}]

    def test_questions_without_a_list_count_as_nothing_retrieved(self):
        """With a warning, as for those that are not asked."""
        with pytest.warns(KragEvalWarning) as warned:
            dataset = read_autorag(self.QA, retrieved={"q1": ["a"], "q9": ["a"]})
        assert dataset.predicted == [["a"], []]
        assert [re.findall(r"\d of|'q\d'", str(one.message)) for one in warned] == [
            ["1 of", "'q9'"], ["1 of", "'q2'"],
        ]  # fmt: skip


class TestTables:
    """Files, frames and their columns."""

    def test_files_are_frames(self, tmp_path):
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

    def test_labels_are_the_questions(self):
        """Texts match in their own right, here by equality."""
        corpus = pd.DataFrame({"doc_id": ["a", "b"], "contents": ["same", "same"]})
        dataset = read_autorag(questions([["a"]]), corpus, {"q1": ["b"]})
        evaluator = dataset.evaluator(matcher="text")
        assert evaluator.queries == dataset.questions == ["Question q1?"]
        assert evaluator.calculate_mrr() == {"mrr": 1.0}
        assert dataset.evaluator(matcher="text").conventions == Conventions()

    def test_documents_the_corpus_lacks(self):
        """They keep their ids; a warning counts them."""
        corpus = pd.DataFrame({"doc_id": ["a"], "contents": ["A"]})
        with pytest.warns(KragEvalWarning, match=r"corpus: 1 documents are not in it .*'x'"):
            dataset = read_autorag(questions([["a"]]), corpus, {"q1": ["x", "a"]})
        assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_without_pyarrow_the_remedy_is_named(self, tmp_path, monkeypatch):
        """It is an extra."""
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=re.escape(install_line("parquet"))):
            read_autorag(tmp_path / "qa.parquet")
