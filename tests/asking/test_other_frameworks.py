"""Retrievers of LlamaIndex, Haystack, DSPy and vector stores, called as their page does.

The objects here have the attributes that these packages document; the page was also run with the
packages themselves. Expected values: the first two questions find their document first, the third
finds it second, so the reciprocal ranks are 1, 1 and 1/2.
"""

import asyncio
import json
from types import SimpleNamespace

import pytest
from retriever_samples import ranks

from krag_eval import aevaluate_retriever, evaluate_retriever, load_dataset
from krag_eval.errors import InvalidType

TEXTS = ["It opens at nine.", "Books may be kept for four weeks.", "A card costs five euros."]
RANKED = {"When?": [0, 1], "How long?": [1, 0], "How much?": [1, 2]}
BY_TEXT = {one: [TEXTS[at]] for at, one in enumerate(RANKED)}
BY_ID = {one: [f"n{at}"] for at, one in enumerate(RANKED)}


class Node:
    """LlamaIndex's TextNode."""

    def __init__(self, at):
        self.node_id, self.metadata, self._text = f"n{at}", {"page": at}, TEXTS[at]

    def get_content(self):
        return self._text


class Retriever:
    """LlamaIndex's BaseRetriever."""

    def retrieve(self, question):
        return [SimpleNamespace(node=Node(at), score=0.5) for at in RANKED[question]]

    async def aretrieve(self, question):
        return self.retrieve(question)


def haystack(question):
    """Return the documents that its Pipeline has in its output."""
    return [SimpleNamespace(id=f"n{at}", content=TEXTS[at], meta={}, score=0.5)
            for at in RANKED[question]]  # fmt: skip


def dspy(question):
    return [TEXTS[at] for at in RANKED[question]]


def store(question):
    """Return the dicts that the page makes of what Chroma and Qdrant return."""
    return [{"page_content": TEXTS[at], "id": f"n{at}"} for at in RANKED[question]]


@pytest.mark.parametrize("search", [Retriever().retrieve, haystack, dspy, store])
def test_texts_and_ids(search):
    """Whatever each returns is compared by its text, and by its id, where it has one."""
    assert ranks(evaluate_retriever(search, BY_TEXT, k=2)) == [1, 1, 1 / 2]
    if search is not dspy:
        assert ranks(evaluate_retriever(search, BY_ID, k=2, matcher="id")) == [1, 1, 1 / 2]


def test_the_methods_of_a_retriever_are_passed():
    """It cannot be called itself, which says so; LlamaIndex's aretrieve is awaited."""
    with pytest.raises(InvalidType) as caught:
        evaluate_retriever(Retriever(), BY_TEXT)
    assert caught.value.argument == "retriever"
    assert "retrieve method" in str(caught.value.fix)
    result = asyncio.run(aevaluate_retriever(Retriever().aretrieve, BY_TEXT, k=2))
    assert ranks(result) == [1, 1, 1 / 2]


@pytest.mark.needs("formats")
def test_llama_indexs_own_questions(tmp_path):
    """What EmbeddingQAFinetuneDataset saves needs no option: its ids are compared."""
    content = {
        "queries": {f"q{at}": one for at, one in enumerate(RANKED)},
        "corpus": {f"n{at}": text for at, text in enumerate(TEXTS)},
        "relevant_docs": {f"q{at}": [f"n{at}"] for at in range(3)},
    }
    (tmp_path / "qa.json").write_text(json.dumps(content, indent=4), "utf-8")
    result = evaluate_retriever(Retriever().retrieve, load_dataset(tmp_path / "qa.json"), k=2)
    assert ranks(result) == [1, 1, 1 / 2]
    assert "id" in result.settings["matcher"]
