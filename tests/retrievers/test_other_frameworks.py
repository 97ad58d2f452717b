"""Retrievers of LlamaIndex, Haystack, DSPy and vector stores, called as their page does.

The objects here have the attributes that these packages document; the page was also run with the
packages themselves. Expected values: the first two questions find their document first, the third
finds it second, so the reciprocal ranks are 1, 1 and 1/2.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from krag_eval import aevaluate_retriever, evaluate_retriever, load_dataset
from krag_eval.errors import InvalidType

TEXTS = ["It opens at nine.", "Books may be kept for four weeks.", "A card costs five euros."]
RANKED = {"When?": [0, 1], "How long?": [1, 0], "How much?": [1, 2]}
ROWS = [{"question": one, "actual": [TEXTS[at]]} for at, one in enumerate(RANKED)]
IDS = [{"question": one, "actual": [f"n{at}"]} for at, one in enumerate(RANKED)]
MRR = pytest.approx(2.5 / 3)


class Node:
    """LlamaIndex's TextNode."""

    def __init__(self, at: int) -> None:
        self.node_id, self.metadata, self._text = f"n{at}", {"page": at}, TEXTS[at]

    def get_content(self) -> str:
        return self._text


class Retriever:
    """LlamaIndex's BaseRetriever."""

    def retrieve(self, question: str) -> list[Any]:
        return [SimpleNamespace(node=Node(at), score=0.5) for at in RANKED[question]]

    async def aretrieve(self, question: str) -> list[Any]:
        return self.retrieve(question)


class Pipeline:
    """Haystack's Pipeline, which returns what is last, and what include_outputs_from names."""

    def run(
        self, data: dict[str, dict[str, str]], include_outputs_from: set[str] | None = None
    ) -> dict[str, Any]:
        documents = [SimpleNamespace(id=f"n{at}", content=TEXTS[at], meta={}, score=0.5)
                     for at in RANKED[data["retriever"]["query"]]]  # fmt: skip
        named = {"retriever": {"documents": documents}}
        return {"builder": {}, **(named if include_outputs_from == {"retriever"} else {})}


def haystack(question: str) -> Any:
    outputs = Pipeline().run({"retriever": {"query": question}}, include_outputs_from={"retriever"})
    return outputs["retriever"]["documents"]


def dspy(question: str) -> Any:
    return SimpleNamespace(passages=[TEXTS[at] for at in RANKED[question]]).passages


def chroma(question: str) -> Any:
    at = RANKED[question]
    found = {"documents": [[TEXTS[one] for one in at]], "ids": [[f"n{one}" for one in at]]}
    pairs = zip(found["documents"][0], found["ids"][0], strict=True)
    return [{"page_content": text, "id": name} for text, name in pairs]


def qdrant(question: str) -> Any:
    points = [SimpleNamespace(id=f"n{at}", payload={"text": TEXTS[at]}) for at in RANKED[question]]
    return [{"page_content": point.payload["text"], "id": point.id} for point in points]


@pytest.mark.parametrize("search", [Retriever().retrieve, haystack, dspy, chroma, qdrant])
def test_texts(search: Callable[[str], Any]) -> None:
    """Whatever each returns is compared by its text."""
    assert evaluate_retriever(search, ROWS, k=2).to_dict()["mrr@2"] == MRR


@pytest.mark.parametrize("search", [Retriever().retrieve, haystack, chroma, qdrant])
def test_ids(search: Callable[[str], Any]) -> None:
    """And by its id, where it has one."""
    assert evaluate_retriever(search, IDS, k=2, matcher="id").to_dict()["mrr@2"] == MRR


def test_a_retriever_that_cannot_be_called() -> None:
    """Says which of its methods to pass."""
    with pytest.raises(InvalidType) as caught:
        evaluate_retriever(Retriever(), ROWS)  # type: ignore[arg-type]
    assert caught.value.argument == "retriever"
    assert "retrieve method" in str(caught.value.fix)


def test_async() -> None:
    """LlamaIndex's aretrieve."""
    result = asyncio.run(aevaluate_retriever(Retriever().aretrieve, ROWS, k=2))
    assert result.to_dict()["mrr@2"] == MRR


def test_llama_indexs_own_questions(tmp_path: Path) -> None:
    """What EmbeddingQAFinetuneDataset saves needs no option: its ids are compared."""
    content = {
        "queries": {f"q{at}": one for at, one in enumerate(RANKED)},
        "corpus": {f"n{at}": text for at, text in enumerate(TEXTS)},
        "relevant_docs": {f"q{at}": [f"n{at}"] for at in range(3)},
    }
    (tmp_path / "qa.json").write_text(json.dumps(content, indent=4), "utf-8")
    dataset = load_dataset(tmp_path / "qa.json")
    result = evaluate_retriever(Retriever().retrieve, dataset, k=2)
    assert result.to_dict()["mrr@2"] == MRR
    assert "id" in result.settings["matcher"]
