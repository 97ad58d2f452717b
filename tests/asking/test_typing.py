"""What a strict type checker says of retrievers in users' code."""

from __future__ import annotations

from pathlib import Path

USERS_CODE = """
from functools import partial
from typing import Any
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from krag_eval import AnyOf, EvaluationResult, OfflineRetrievalEvaluator, RetrievalRecorder
from krag_eval import evaluate_retriever, evaluate_retrievers

rows = [{"question": "When?", "actual": ["At nine."]}]

def texts(question: str) -> list[str]: return []
def documents(query: str, k: int = 4) -> list[Document]: return []
def dicts(query: str) -> tuple[dict[str, str], ...]: return ()
def chain(inputs: dict[str, Any]) -> dict[str, list[Document]]: return {}
def configured(query: str, config: RunnableConfig) -> list[Document]: return []
async def soon(query: str) -> list[Document]: return []
def both(query: str, k: int) -> list[str]: return []
def numbers(query: str) -> list[int]: return []

class Index:
    def __call__(self, query: str) -> list[str]: return []
    def search(self, query: str) -> list[str]: return []

class Node:  # as LlamaIndex's
    node_id = "1"
    def get_content(self, metadata_mode: int = 1) -> str: return ""

def nodes(query: str) -> list[Node]: return []

def fits(r: BaseRetriever, runnable: Runnable[str, list[Document]], one: EvaluationResult) -> None:
    for retriever in (texts, dicts, soon, nodes):
        evaluate_retriever(retriever, rows)
    evaluate_retriever(documents, rows)
    evaluate_retriever(chain, rows, input_key="query", output_key="context")
    evaluate_retriever(configured, rows)
    evaluate_retriever(Index(), rows)
    evaluate_retriever(Index().search, rows)
    evaluate_retriever(r, rows)
    evaluate_retriever(runnable, rows)
    evaluate_retriever(lambda question: both(question, k=3), rows)
    evaluate_retriever(partial(both, k=3), rows)
    evaluate_retrievers({"a": r, "b": lambda question: both(question, k=3)}, rows)
    RetrievalRecorder().wrap(both)
    mixed = [["a", AnyOf(["b", "c"])], ["d"]]
    OfflineRetrievalEvaluator(mixed, [["a"], ["d"]])
    one.diagnose(["a"], deeper=r)
    one.diagnose(["a"], deeper=lambda question: both(question, k=3))

def refused() -> None:
    evaluate_retriever(both, rows)
    evaluate_retriever(lambda query, k: both(query, k), rows)
    evaluate_retriever(numbers, rows)
"""


def test_what_a_strict_checker_takes_and_refuses(tmp_path: Path) -> None:
    """Plain functions, lambdas and LangChain's retrievers; not those that cannot be called."""
    from mypy import api

    path = tmp_path / "users.py"
    path.write_text(USERS_CODE, "utf-8")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n", "utf-8")
    out, _, _ = api.run([f"--config-file={config}", f"--cache-dir={tmp_path}", str(path)])
    lines = [int(line.split(":")[1]) for line in out.splitlines() if "users.py" in line]
    last = USERS_CODE.count("\n")
    assert [*dict.fromkeys(lines)] == [last - 2, last - 1, last], out
