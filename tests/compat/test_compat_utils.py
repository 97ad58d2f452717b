"""krag's helpers for data frames of questions, without their defects.

What krag does was measured with krag 0.0.32 on the frames below, Python 3.11.
"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from krag_eval import KragEvalWarning
from krag_eval.compat.utils import (
    context_to_document,
    evaluate_retrieval_at_K,
    setup_retriever,
    visualize_retrieval_at_K,
)

_ROWS = {
    "q1": "apples are red fruit",
    "q2": "bananas are yellow fruit",
    "q3": "cats drink milk at night",
}


class _Retriever(BaseRetriever):
    """Returns prepared texts."""

    answers: dict[str, list[str]]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=text) for text in self.answers[query]]


#: Finds the first question's text at rank 1, the second's at rank 2, the third's not at all.
_GOOD = _Retriever(answers={"q1": [_ROWS["q1"], "x"], "q2": ["y", _ROWS["q2"]], "q3": ["z", "w"]})
_BAD = _Retriever(answers={"q1": ["x"], "q2": ["y"], "q3": [_ROWS["q3"]]})


def _frame() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"question": question, "context": repr([text]), "source": "['s']", "doc_id": "['1']"}
            for question, text in _ROWS.items()
        ]
    )


def _one(**cells: Any) -> pd.DataFrame:
    return pd.DataFrame([{"context": "['a']", "source": "['s']", "doc_id": "['1']", **cells}])


# context_to_document


def test_a_row_becomes_documents() -> None:
    """Texts with their source and id, as in krag."""
    frame = _one(context="['a', 'b']", source="['s', 't']", doc_id="[1, 2]")
    documents = context_to_document(frame, 0)
    assert [document.page_content for document in documents] == ["a", "b"]
    assert documents[1].metadata == {"source": "t", "doc_id": 2}
    assert documents[0].get_summary() == "a"


@pytest.mark.parametrize("cell", [["a", "b"], ("a", "b"), np.array(["a", "b"])])
def test_lists_need_not_be_text(cell: Any) -> None:
    """In krag: TypeError: eval() arg 1 must be a string. Parquet files give arrays."""
    documents = context_to_document(_one(context=cell, source=["s", "t"], doc_id=["1", "2"]), 0)
    assert [document.page_content for document in documents] == ["a", "b"]


def test_cells_are_read_and_never_executed(tmp_path: Any) -> None:
    """In krag the cell is run as code: the file appears."""
    path = tmp_path / "executed"
    frame = _one(context=f"[open({str(path)!r}, 'w').name]")
    with pytest.raises(ValueError, match="hold a list in column 'context' of row 0"):
        context_to_document(frame, 0)
    assert not path.exists()


# setup_retriever


class _WithSearchSettings(BaseRetriever):
    search_kwargs: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    k: int = 4

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return []


class _Around(_Retriever):
    retriever: BaseRetriever


def test_retrievers_are_told_k_and_left_as_they_are() -> None:
    """In krag the caller's retriever keeps the new k for good."""
    store = _WithSearchSettings(search_kwargs={"k": 4, "filter": "x"})
    assert setup_retriever(store, 9).search_kwargs == {"k": 9, "filter": "x"}
    assert store.search_kwargs == {"k": 4, "filter": "x"}
    around = _Around(answers={}, retriever=store)
    assert setup_retriever(around, 9).retriever.search_kwargs["k"] == 9
    assert around.retriever.search_kwargs["k"] == 4


def test_a_vector_store_returns_k_documents() -> None:
    """LangChain's own retriever, whose default is 4."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_texts(["a", "b", "c", "d", "e", "f"])
    retriever = store.as_retriever()
    assert len(setup_retriever(retriever, 2).invoke("a")) == 2
    assert len(retriever.invoke("a")) == 4


def test_bm25_retrievers_have_a_plain_k() -> None:
    """Whatever class they are of."""
    bm25 = SimpleNamespace(k=4)
    assert (setup_retriever(bm25, 9).k, bm25.k) == (9, 4)


def test_other_retrievers_are_used_as_they_are() -> None:
    """What they return beyond k is cut off by the metrics."""
    assert setup_retriever(_GOOD, 9) is _GOOD


def test_runnables_get_it_as_configuration() -> None:
    """As in krag."""
    configured = setup_retriever(RunnableLambda(lambda question: []), 9)
    assert configured.config["configurable"] == {"search_kwargs": {"k": 9}}


# evaluate_retrieval_at_K


def test_columns_and_order_are_krags(capsys: pytest.CaptureFixture[str]) -> None:
    """One row per question and retriever, in the order given; means by name, sorted.

    In krag every question fails with a TypeError without ``rouge_method``, and then all of it.
    """
    means, rows = evaluate_retrieval_at_K(_frame(), 2, {"good": _GOOD}, averaging_method="macro")
    assert rows["mrr@2"].tolist() == [1.0, 0.5, 0.0]
    assert [name for name in means.columns if "recall" in name] == ["macro_recall@2"]
    assert capsys.readouterr() == ("", "")
    retrievers = {"good": _GOOD, "bad": _BAD}
    means, rows = evaluate_retrieval_at_K(_frame(), 2, retrievers, rouge_method="rouge1")
    assert list(rows.columns) == [
        *("question", "retriever", "hit_rate@2", "mrr@2"),
        *("micro_recall@2", "macro_recall@2", "micro_precision@2", "macro_precision@2"),
        *("micro_f1@2", "macro_f1@2", "map@2", "ndcg@2"),
    ]
    assert list(rows["question"]) == ["q1", "q1", "q2", "q2", "q3", "q3"]
    assert list(rows["retriever"]) == ["good", "bad"] * 3
    assert list(rows.index) == list(range(6))
    assert list(means.index) == ["bad", "good"]
    assert means.index.name == "retriever"


def test_means_are_krags_except_f1() -> None:
    """krag: F1 0.6667, because its F1 {} of the third question drops out of the mean."""
    means, rows = evaluate_retrieval_at_K(_frame(), 2, {"good": _GOOD}, rouge_method="rouge1")
    expected = {
        "hit_rate@2": 2 / 3,
        "mrr@2": 0.5,
        "micro_recall@2": 2 / 3,
        "macro_recall@2": 2 / 3,
        "micro_precision@2": 1 / 3,
        "macro_precision@2": 1 / 3,
        "micro_f1@2": 4 / 9,
        "macro_f1@2": 4 / 9,
        "map@2": 0.5,
        "ndcg@2": 0.543643,
    }
    assert means.loc["good"].to_dict() == pytest.approx(expected, abs=1e-6)
    assert rows["macro_f1@2"].tolist() == pytest.approx([2 / 3, 2 / 3, 0.0])


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("index", [[5, 2, 9], ["a", "b", "c"], [0, 0, 0]])
def test_the_frames_index_does_not_matter(index: list[Any], rows: list[int]) -> None:
    """In krag it is taken for positions: another row's context, or TypeError for text.

    krag: hit rate 0.3333 instead of 0.6667 for these rows in the order 2, 0, 1.
    """
    frame = _frame().iloc[rows].set_index(pd.Index(index))
    means, asked = evaluate_retrieval_at_K(frame, 2, {"good": _GOOD}, rouge_method="rouge1")
    assert means.loc["good", "hit_rate@2"] == pytest.approx(2 / 3)
    assert list(asked["question"]) == [f"q{row + 1}" for row in rows]


def test_a_failing_retriever_is_an_error() -> None:
    """In krag it is printed, and the mean taken over the rest: hit rate 1.0 of two questions."""
    retriever = _Retriever(answers={"q1": [_ROWS["q1"]], "q2": [_ROWS["q2"]]})
    with pytest.raises(RuntimeError, match="retriever 'some' failed on the question 'q3'"):
        evaluate_retrieval_at_K(_frame(), 2, {"some": retriever})


def test_hits_need_only_part_of_the_ground_truth() -> None:
    """That is the default here, unlike in the evaluators."""
    frame = _one(
        question="q", context="['apples', 'pears']", source="['s', 's']", doc_id="['1', '2']"
    )
    retriever = _Retriever(answers={"q": ["apples"]})
    means, _ = evaluate_retrieval_at_K(frame, 1, {"r": retriever})
    assert means.loc["r", "hit_rate@1"] == 1.0
    means, _ = evaluate_retrieval_at_K(frame, 1, {"r": retriever}, matching_criteria="all")
    assert means.loc["r", "hit_rate@1"] == 0.0


def test_a_question_without_ground_truth_counts_as_0() -> None:
    """With a warning; it stays in the table."""
    frame = pd.concat([_frame(), _one(question="q1", context="[]", source="[]", doc_id="[]")])
    with pytest.warns(KragEvalWarning, match="no ground truth for 1 of 4"):
        _, rows = evaluate_retrieval_at_K(frame, 2, {"good": _GOOD})
    assert rows["hit_rate@2"].tolist() == [1.0, 1.0, 0.0, 0.0]


class _Ensemble:
    def __init__(self, retrievers: list[Any], weights: list[float]) -> None:
        self.retrievers = retrievers
        self.weights = weights

    def invoke(self, question: str) -> list[Any]:
        return [document for one in self.retrievers for document in one.invoke(question)]


@pytest.mark.parametrize("module", ["langchain_classic.retrievers", "langchain.retrievers"])
def test_an_ensemble_is_measured_too(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """By LangChain's EnsembleRetriever, where there is one; here it simply concatenates."""
    for name in ("langchain_classic.retrievers", "langchain.retrievers"):
        monkeypatch.setitem(sys.modules, name, None)
    provider = ModuleType(module)
    provider.EnsembleRetriever = _Ensemble  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, provider)
    monkeypatch.setitem(sys.modules, module.partition(".")[0], ModuleType("package"))
    retrievers = {"good": _GOOD, "bad": _BAD}
    means, _ = evaluate_retrieval_at_K(_frame(), 3, retrievers, ensemble=True)
    assert list(means.index) == ["Ensemble", "bad", "good"]
    assert means.loc["Ensemble", "hit_rate@3"] == 1.0


def test_a_missing_ensemble_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain has moved it."""
    for name in ("langchain_classic", "langchain"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="run: pip install langchain-classic"):
        evaluate_retrieval_at_K(_frame(), 2, {"good": _GOOD}, ensemble=True)


# visualize_retrieval_at_K


def test_every_metric_gets_a_panel(shown: list[Any]) -> None:
    """Ten metrics, a bar per retriever, scales from 0 to 1."""
    means, _ = evaluate_retrieval_at_K(_frame(), 2, {"good": _GOOD, "bad": _BAD})
    visualize_retrieval_at_K(means, 2)
    (figure,) = shown
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [column.removesuffix("@2") for column in means.columns]
    heights = [bar.get_height() for bar in figure.axes[titles.index("mrr")].patches]
    assert heights == means["mrr@2"].tolist()
    figure.canvas.draw()


def test_only_the_cutoff_asked_for_is_drawn(shown: list[Any]) -> None:
    """In krag @1 draws @10 as well; of six panels, the rest of the second row stays empty."""
    names = ["mrr", "map", "a", "b", "c", "d"]
    columns = {"mrr@10": [0.2], **{f"{name}@1": [0.1] for name in names}}
    visualize_retrieval_at_K(pd.DataFrame(columns, index=["r"]), 1)
    assert [ax.get_title() for ax in shown[0].axes] == names
