"""Retrievers, agents, sweeps and streams asked wrongly; a retriever that was asked would say so."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from krag_eval import (
    RetrievalRecorder,
    evaluate_agent,
    evaluate_file,
    evaluate_retriever,
    evaluate_retrievers,
    records_from_messages,
    sweep,
)
from krag_eval.datasets import Dataset
from krag_eval.distributed.worker import Fields, document_lists
from krag_eval.plotting import pareto_points
from krag_eval.report import write_report

ROWS = [{"question": f"q{i}", "actual": ["a"]} for i in range(3)]
BY_QUESTION = {row["question"]: row["actual"] for row in ROWS}


def asks(question: Any) -> list[str]:
    """Stand for a retriever that must not be asked."""
    raise RuntimeError(f"asked {question}")


async def soon(question: str) -> list[str]:
    return ["a"]


async def in_a_notebook() -> Any:
    return evaluate_retriever(soon, ROWS)


class Splitter:
    """Has the methods of LangChain's TextSplitter."""

    def split_text(self, text: str) -> list[str]:
        return [text]

    def create_documents(self, texts: list[str]) -> list[Document]:
        return [Document(page_content=one) for one in texts]


def one(**options: Any) -> Any:
    return evaluate_retriever(**{"retriever": asks, "dataset": ROWS, "k": 1} | options)


def answers(answer: Any, **options: Any) -> Any:
    return evaluate_retriever(lambda question: answer, ROWS[:1], 1, **options)


def several(**options: Any) -> Any:
    retrievers = {"a": asks, "b": asks}
    return evaluate_retrievers(**{"retrievers": retrievers, "dataset": ROWS, "k": 5} | options)


def agent(**options: Any) -> Any:
    return evaluate_agent(**{"agent": RunnableLambda(asks), "dataset": ROWS} | options)


def swept(**options: Any) -> Any:
    made = {"retrievers": {"r": lambda chunks: asks}, "splitters": {"whole": lambda text: [text]}}
    return sweep(**{"corpus": ["a b", "c"], "questions": ROWS, **made, "progress": False} | options)


def recorded(*, ground_truth: Any = BY_QUESTION, **options: Any) -> Any:
    """Evaluate three questions, for each of which two retrievers were asked in a chain."""
    recorder = RetrievalRecorder()
    first, second = (recorder.wrap(lambda question: ["a"], name=name) for name in ("one", "two"))
    for row in ROWS:
        RunnableLambda(lambda given: [first(given["q"]), second(given["q"] + "?")]).invoke(
            {"q": row["question"]}, {"callbacks": [recorder]}
        )
    return recorder.evaluate(ground_truth, **{"retriever": "one"} | options)


def streamed(lines: str = '{"actual": ["a"], "predicted": ["a"]}', **options: Any) -> Any:
    Path("streamed.jsonl").write_text(lines, "utf-8")
    return evaluate_file("streamed.jsonl", **options)


def fields(*columns: str, question: str | None = "q") -> Fields:
    return Fields.checked(columns, question, "actual", "predicted")


def each(door: Callable[..., Any], *cases: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Name a call by its door and its arguments."""
    return {f"{door.__name__}: {case}": partial(door, **case) for case in cases}


CALLS: dict[str, Callable[[], Any]] = {
    **each(
        one,
        {"k": 0},
        {"n_jobs": 0},
        {"no_such": 1},
        {"matcher": "rougel"},
        {"matcher": "rougeL", "threshold": 2},
        {"metrics": ["recal"]},
        {"on_error": "ignore"},
        {"max_concurrency": 0},
        {"max_concurrency": True},
        {"config": "tags"},
        {"config": [{}]},
        {"progress": "yes"},
        {"input_key": 3},
        {"output_key": 3},
        {"timeout": 0},
        {"timeout": "5"},
        {"tags": {"a": [1]}},
        {"checkpoint": 7},
        {"checkpoint": ""},
        {"checkpoint": "missing/run.jsonl"},
        {"checkpoint": "."},
        {"checkpoint": "new.jsonl", "checkpoint_key": 1},
        {"checkpoint": "new.jsonl", "checkpoint_key": ""},
        {"checkpoint_key": "May"},
        {"retriever": None},
        {"retriever": {"bm25": None}},
        {"retriever": "bm25"},
        {"retriever": Splitter},
        {"dataset": [*ROWS, {"question": "q", "actual": []}]},
        {"dataset": None},
        {"dataset": "qa.jsonl"},
        {"dataset": {"When?": "At nine."}},
        {"dataset": {"question": ["When?"]}},
        {"dataset": []},
        {"dataset": ["When?"]},
        {"dataset": [*ROWS, {"question": "Why?"}]},
        {"dataset": [{"actual": []}]},
        {"dataset": [{"question": 3, "actual": []}]},
        {"dataset": [{"question": "", "actual": []}]},
    ),
    "one: a frame without questions": lambda: one(
        dataset=pd.DataFrame({"q": [""], "actual": [""]})
    ),
    "one: a frame with an empty question": lambda: one(
        dataset=pd.DataFrame({"question": ["q", None], "actual": [["a"], ["a"]]})
    ),
    "one: a data set without questions": lambda: one(dataset=Dataset(["q1"], [["a"]], [["a"]])),
    "one: an agent": lambda: one(retriever=SimpleNamespace(channels=["messages"])),
    "one: a lambda around an async function": lambda: one(
        retriever=lambda question: soon(question)
    ),
    "one: an async function in a running loop": lambda: asyncio.run(in_a_notebook()),
    **each(
        answers,
        {"answer": "text"},
        {"answer": {"page_content": "x"}},
        {"answer": [], "output_key": "docs"},
        {"answer": {"context": []}, "output_key": "docs"},
        {"answer": {"docs": None}, "output_key": "docs"},
        {"answer": [["x", 0.5]]},
        {"answer": ["x", 3]},
        {"answer": [{"text": "x"}]},
    ),
    "answers: a document": lambda: answers(Document("x")),
    "answers: an iterator": lambda: answers(iter(["x"])),
    "answers: a document with its score": lambda: answers([(Document("x"), 0.5)]),
    "answers: a document without text": lambda: answers(
        [Document.model_construct(page_content=None)]
    ),
    "wrapped: a text": lambda: RetrievalRecorder().wrap(lambda question: "text").invoke("q"),
    **each(
        several,
        {"metric": "recall@5", "metrics": ["ndcg"]},
        {"metrics": ["recall"]},
        {"metric": "ndcg@7"},
        {"n_resamples": 0},
        {"level": 2},
        {"baseline": "c"},
        {"clusters": "source"},
        {"clusters": "source", "tags": {"source": ["a"] * 3}},
        {"checkpoint": "run.jsonl"},
        {"checkpoint": {"c": "x"}},
        {"checkpoint": {"a": "x", "b": "./x"}},
        {"checkpoint_key": "May"},
        {"checkpoint_key": {"c": "May"}},
        {"checkpoint_key": {"a": "May"}},
        {"checkpoint": {"a": "x"}, "checkpoint_key": {"a": 1}},
        {"retrievers": []},
        {"retrievers": {"a": None}},
        {"retrievers": {1: None, "b": None}},
        {"retrievers": {"a": None, "b": None}},
    ),
    **each(
        agent,
        {"agent": "agent"},
        {"calls": "each"},
        {"calls": "one"},
        {"retriever": 1},
        {"input_key": ""},
        {"recorder": "yes"},
        {"on_error": "ignore"},
    ),
    "agent: a function": lambda: agent(agent=asks),
    "agent: a graph not compiled": lambda: agent(agent=SimpleNamespace(compile=print)),
    "messages: a dict": lambda: records_from_messages([("user", "Q")], {"messages": []}),
    "messages: a text": lambda: records_from_messages("text"),
    "messages: a number": lambda: records_from_messages([("user", "Q"), 3]),
    "messages: conversations in one": lambda: records_from_messages(
        [["user"], [HumanMessage("Q")]]
    ),
    "messages: a tool first": lambda: records_from_messages(
        [ToolMessage("x", tool_call_id="1", artifact=[Document("a")])]
    ),
    "picture: a list": lambda: pareto_points([1]),
    "report: cells": lambda: write_report((1,), "page.html"),
    **each(
        swept,
        {"corpus": "text"},
        {"corpus": []},
        {"questions": "questions.jsonl"},
        {"splitters": []},
        {"splitters": {}},
        {"splitters": {"a": 200}},
        {"retrievers": {"bm25": None}},
        {"baseline": "else"},
        {"metric": "recall@7"},
        {"clusters": "none"},
        {"folder": 3},
        {"n_jobs": 0},
        {"max_concurrency": 0},
        {"level": 2},
        {"treshold": 0.5},
    ),
    "swept: a frame": lambda: swept(corpus=pd.DataFrame({"text": ["a"]})),
    "swept: a splitter of several texts": lambda: swept(
        splitters={"a": Splitter().create_documents}
    ),
    "swept: no chunk": lambda: swept(splitters={"none": lambda text: []}),
    "swept: chunks that are a text": lambda: swept(splitters={"a": lambda text: text}),
    "swept: two cells of one name": lambda: swept(
        splitters=dict.fromkeys(["a", "a + b"], lambda text: [text]),
        retrievers=dict.fromkeys(["b + c", "c"], lambda chunks: asks),
    ),
    **each(
        recorded,
        {"ground_truth": [["a"]]},
        {"ground_truth": {**BY_QUESTION, "Why?": ["x"]}},
        {"ground_truth": {"q0": ["a"], "q1": ["a"]}},
        {"ground_truth": "text"},
        {"ground_truth": None},
        {"ground_truth": {**BY_QUESTION, "q1": "a"}},
        {"ground_truth": [["a"], "a", ["a"]]},
        {"ground_truth": [["a"], {"page_content": "a"}, ["a"]]},
        {"ground_truth": [["a"], None, ["a"]]},
        {"ground_truth": [{"question": "q0"}]},
        {"retriever": None},
        {"retriever": "dense"},
        {"calls": "second"},
        {"input_key": "query"},
        {"input_key": len},
        {"calls": "each", "tags": {"call": [1, 2, 3]}},
        {"calls": "each", "tags": {"kind": [1, 2]}},
        {"calls": "each", "queries": ["a", "b"]},
        {"treshold": 0.5},
    ),
    "recorded: nothing": lambda: RetrievalRecorder().evaluate({"q": ["x"]}),
    **each(
        streamed,
        {"per_query": "rows.txt"},
        {"per_query": "no/rows.csv"},
        {"per_query": "."},
        {"chunk_size": 0},
        {"progress": "yes"},
        {"n_jobs": 0},
        {"k": 0},
        {"queries": []},
        {"question_field": "q"},
        {"lines": ""},
        {"lines": '{"actual": ["a"], "predicted": ["a"]}\n{"actual": 7, "predicted": ["a"]}'},
        {"lines": '{"actual": [], "predicted": ["a"]}'},
    ),
    "streamed: over what is read": lambda: evaluate_file("run.csv", per_query="run.csv"),
    "streamed: none there": lambda: evaluate_file("none.jsonl"),
    "fields: no question": lambda: fields("actual", "predicted"),
    "fields: no ground truth": lambda: fields("a", "b", question=None),
    "cells: a text": lambda: document_lists([["a"], "a, b"], "predicted", ground_truth=False),
    "cells: a number": lambda: document_lists([["a"], 3], "predicted", ground_truth=False),
    "cells: nothing": lambda: document_lists([["a"], None], "predicted", ground_truth=False),
    "cells: no number": lambda: document_lists([float("nan")], "predicted", ground_truth=False),
    "cells: alternatives and a text": lambda: document_lists(
        [[{"page_content": "a", "any_of": ["b"]}]], "actual"
    ),
}
