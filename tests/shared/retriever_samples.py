"""Retrievers and questions shared by the tests: real LangChain objects over a small corpus."""

import asyncio
import re
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from krag_eval import EvaluationResult

N_QUESTIONS = 100


class WordCounts(Embeddings):
    """Counts words in 64 bins: deterministic, and alike for texts with the same words."""

    def embed_query(self, text: str) -> list[float]:
        counts = [0.0] * 64
        for word in re.findall(r"\w+", text.lower()):
            counts[zlib.crc32(word.encode()) % 64] += 1
        return counts

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def question(number: int) -> str:
    return f"What stands in passage {number}?"


def number_in(asked: str) -> int:
    return int(asked.split()[-1].rstrip("?"))


def passage(number: int) -> str:
    return f"Passage {number} holds fact {number}."


def rows(n: int = N_QUESTIONS) -> list[dict[str, Any]]:
    return [{"question": question(i), "actual": [passage(i)]} for i in range(n)]


class Numbered(BaseRetriever):
    """Returns the passage with the question's number first, and the one after it."""

    fails_on: frozenset[int] = frozenset()
    finds_nothing_on: frozenset[int] = frozenset()
    seconds: float = 0.0
    repeats: int = 1
    asked: list[int] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        number = number_in(query)
        self.asked.append(number)
        time.sleep(self.seconds)
        if number in self.fails_on:
            raise ConnectionError(f"no answer for {number}")
        if number in self.finds_nothing_on:
            return []
        found = Document(passage(number), metadata={"number": number})
        return [found] * self.repeats + [Document(passage(number + 1))]


class AsyncNumbered(Numbered):
    """The same with a way of its own to be awaited."""

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(self.seconds)
        number = number_in(query)
        self.asked.append(number)
        if number in self.fails_on:
            raise ConnectionError(f"no answer for {number}")
        return [Document(passage(number))]


def vector_retriever(texts: list[str], k: int = 3) -> BaseRetriever:
    return InMemoryVectorStore.from_texts(texts, WordCounts()).as_retriever(search_kwargs={"k": k})


def ranks(result: EvaluationResult) -> list[float]:
    """Return the reciprocal rank of each query."""
    return result.per_query()["reciprocal_rank"].tolist()


async def _soon(chain: Any, inputs: list[Any], config: Any, *, stream: bool) -> None:
    for one in inputs:
        if stream:
            _ = [part async for part in chain.astream(one, config)]
        else:
            await chain.ainvoke(one, config)


def asked_in(way: str, chain: Any, inputs: list[Any], config: Any) -> None:
    """Ask a chain or an agent in one of LangChain's ways, or from threads."""
    if way in ("invoke", "stream"):
        for one in inputs:
            _ = list(chain.stream(one, config)) if way == "stream" else chain.invoke(one, config)
    elif way == "batch":
        chain.batch(inputs, config)
    elif way == "abatch":
        asyncio.run(chain.abatch(inputs, config))
    elif way == "threads":
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: chain.invoke(one, config), inputs))
    else:
        asyncio.run(_soon(chain, inputs, config, stream=way == "astream"))
