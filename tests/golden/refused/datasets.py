"""What no data set can be read from, and data sets that cannot be audited."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from places import DATA

from krag_eval import AnyOf, audit, load_dataset
from krag_eval.core.results.latency import Failure
from krag_eval.datasets import (
    Dataset,
    read_autorag,
    read_beir,
    read_jsonl,
    read_traces,
    read_trec,
)
from krag_eval.loading.loading import read_chunks

Calls = dict[str, Callable[[], Any]]


def each(what: str, read: Callable[[Any], Any], *given: Any) -> Calls:
    """Return a call for each of what is given, called by its beginning."""
    return {f"{what} {at}: {shown(one)}": lambda one=one: read(one) for at, one in enumerate(given)}


def shown(one: Any) -> str:
    if isinstance(one, bytes) and one.startswith(b"\x1f\x8b"):
        return "(compressed)"
    if isinstance(one, pd.DataFrame):
        one = [*one.columns], one.to_numpy().tolist()
    return " ".join(ascii(one)[:60].split())


def file(content: str | bytes) -> io.BytesIO:
    return io.BytesIO(content.encode() if isinstance(content, str) else content)


def named(name: str, content: str | bytes) -> Path:
    """Write a file as it is."""
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(name)


# One line after another, and tables of them

LINE = '{"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]}'
ROW = json.loads(LINE)
EVIL = '{"a\\u001b[31m\\nb": 1}'
LINES = each(
    "the third line", lambda one: read_jsonl(file(f"{LINE}\n\n{one}\n{LINE}\n")),
    "{'actual': []}", LINE[:-5], LINE * 2, "{", f"[{LINE}]", '"text"', "null", "{}", EVIL,
    '{"question": "Q", "gold": [], "predicted": []}', '{"actual": []}', '{"actual": ["a\tb"]}',
    '{"score": ' + "9" * 5000 + "}", "[" * 200_000, '{"actual": [], "actual": ["a"]}',
    *(json.dumps(ROW | one) for one in (
        {"actual": 7}, {"predicted": None}, {"question": ["Q"]}, {"question": True},
        {"score": float("nan")}, {"score": float("-inf")}, {"actual": ["\ud83d"]},
        {"extra": {"\udc00": 1}}, {"krag_eval": {"label": 1.5}},
    )),
)  # fmt: skip
CELLS = each(
    "a cell", lambda one: load_dataset([ROW, {**ROW, "actual": one}]),
    "", None, float("nan"), pd.NA, 7, {"page_content": "a"}, [7], [True], ["a", None],
    [["a"]], [{"text": "a"}], [{"page_content": "a", "score": 1}], [{"page_content": 5}],
    [{"page_content": "a", "metadata": "m"}], [{"page_content": "a", "id": 1.5}],
    [{"page_content": "a", "id": True}], [{"any_of": []}], [{"any_of": "a"}],
    [{"any_of": ["a"], "id": 1}], [{"any_of": ["a", None]}], [{"any_of": [{"any_of": ["a"]}]}],
    ["\ud83d"], [{"page_content": "\ud83d"}], '["a", NaN]', "[" * 5000, '["a", 1e999]',
    "page_content='a' metadata={}", ["page_content='a' metadata={}"], "['a' 'b']", "['a', exit()]",
    "[Document(metadata={}, page_content='a')]",
)  # fmt: skip
QUESTIONS = each(
    "a question", lambda one: load_dataset([ROW, {**ROW, "question": one}]),
    1.5, True, [{"content": "Hi", "type": "human"}], "\ud83d", {"0": "When?"},
)  # fmt: skip
COLUMNS = each(
    "columns", lambda names: load_dataset([{name: ["a"] for name in names}]),
    *(["question", one] for one in ("contexts", "context", "ground_truth", "ground_truths")),
    ["user_input", "reference"], ["question", "retrieval_gt"], ["a", "b"], ["input", "context"],
    [f"column {at}" for at in range(500)], ["actual", "reference_contexts"],
    ["actual", "question", "query"], ["actual", "predicted", "retrieved_contexts"],
)  # fmt: skip
EXAMPLE = {"inputs": {"question": "When?"}, "outputs": {"documents": ["nine"]}}
EXAMPLES = each(
    "an example of LangSmith's", lambda one: load_dataset([{**EXAMPLE, **one}]),
    {"inputs": {"a": "x", "b": "y"}}, {"inputs": {"question": ["x"]}}, {"inputs": "When?"},
    {"outputs": {"answer": "nine"}}, {"outputs": {"docs": [], "context": []}}, {"outputs": None},
    {"outputs": {"documents": [7]}},
)  # fmt: skip
SOURCES = each(
    "a source", load_dataset, 3, ["text"], {"question": "Q", "actual": ["a"]}, [], {},
    {"actual": [["a"]], "predicted": []}, {"train": pd.DataFrame([ROW])}, Path("none.jsonl"),
    Path("runs"),
    pd.DataFrame(columns=["question", "actual"]), "s3://bucket/qa.csv",
    pd.DataFrame([[["a"], ["b"]]], columns=["actual", "actual"]),
    [{"reference_contexts": ["a"], "retrieved_context_ids": [1]}],
    [{**ROW, "predicted": [{"any_of": ["a"]}]}], [{**ROW, "predicted": [AnyOf(["a"])]}],
    *({"corpus": {"q": "A"}, "queries": {"q": "Q"}, "relevant_docs": {"q": ["q"]}} | {part: came}
      for part in ("queries", "corpus", "relevant_docs")
      for came in (None, [], 3, {"q": [1]}, "other.jsonl")),
    *({"corpus": {"a": "A"}, "queries": {"q": "Q"}, "relevant_docs": one}
      for one in ({"q": ["a"], "r": "a"}, {"q": [1]})),
)  # fmt: skip
FILES = {
    f"{name} {at}": lambda name=name, one=one: load_dataset(named(name, one))
    for at, (name, one) in enumerate((
        ("qa.xlsx", b"PK"), ("qa.txt", b""), ("qa.csv", b""), ("qa.csv", b"question,actual\n"),
        ("qa.csv", b"actual,actual\n[],[]\n"), ("qa.csv", b"question,actual\nQ\n"),
        ("qa.csv", b"question,actual\nQ,[],x\n"), ("qa.csv", b'question,actual\nQ,"["a"]"\n'),
        ("qa.csv", b'question,actual\nQ,"[\n\n'), ("qa.csv", b"question,actual\rQ,[]\r"),
        ("qa.csv", b"PK\x03\x04"), ("qa.csv", b"question;actual\nQ;[]\n"),
        ("qa.csv", b'question,actual\n"a\nb",[]\nQ,x\n'), ("qa.json", b""), ("qa.json", b"[1]"),
        ("qa.json", b'[\n{"a": 1},\n{"a" 1}]'), ("qa.json", b"[" * 100_000), ("qa.jsonl", b"{"),
        ("qa.jsonl", f'{LINE}\n\n{{"question": "Q", "actual": []}}'), ("qa.parquet", b"PAR1"),
        ("qa.parquet", b"PAR1" + b"\0" * 100 + b"PAR1"), ("qrels.json", b'{"q1": {"d1": 1}}'),
        ("judged.json", b'{"corpus": {}, "queries": {}, "qrels": "x"}'),
    ))
}  # fmt: skip
OPTIONS = each(
    "options", lambda one: load_dataset("qa.csv", **one),
    {"format": "xml"}, {"delimiter": ";;"}, {"delimiter": '"'}, {"encoding": "utf-16"},
    {"encoding": "klingon"}, {"encoding": "cp949", "format": "parquet"}, {"max_bytes": 0},
    {"max_bytes": -1}, {"max_bytes": 1.5}, {"max_bytes": True}, {"max_bytes": "1 GB"},
    {"cells": "texts"}, {"tags": "hard"},
) | each(
    "options of rows", lambda one: load_dataset([ROW], **one),
    {"delimiter": ";"}, {"actual": 3}, {"actual": "gold"}, {"corpus": pd.DataFrame()},
    {"actual": "actual", "predicted": "actual"}, {"tags": ["missing"]}, {"tags": ["question"]},
)  # fmt: skip
OTHERS = {
    f"{argument} of {name}": lambda source=source, argument=argument: load_dataset(
        source, **{argument: "text"}
    )
    for name, source in {
        "a data set": Dataset(["When?"], [["a"]], questions=["When?"]),
        "spans": [{"context": {"span_id": "1"}, "attributes": {"input.value": "When?"}}],
        "a collection": {"corpus": {"d": "A"}, "queries": {"q": "Q"}, "qrels": {"q": {"d": 1}}},
        "AutoRAG": [{"qid": "1", "query": "?", "retrieval_gt": [["a"]]}],
        "examples": [EXAMPLE],
        "a folder": DATA / "beir",
    }.items()
    for argument in {
        "AutoRAG": ("cells",),
        "examples": ("corpus", "cells"),
        "spans": ("question", "actual", "predicted", "corpus", "cells", "retrieved"),
    }.get(name, ("question", "actual", "predicted", "corpus", "cells"))
}
WHOLE = each(
    "a file of lines", lambda one: read_jsonl(file(one)),
    "", "\n \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0), b"PAR1rest", b"PK\x03\x04rest",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", LINE.encode("utf-16"), f"{LINE}\n" * 99 + "oops",
    LINE.encode() + b"\n" + '{"actual": ["언제"]}'.encode("cp949"),
    *(gzip.compress(LINE.encode() * 9, mtime=0)[:length] for length in (1, 5, 12, 40)),
    gzip.compress("\n".join([LINE] * 1000).encode(), mtime=0)[:-8],
    gzip.compress(gzip.compress(LINE.encode(), mtime=0), mtime=0),
    json.dumps(ROW | {"krag_eval": {"evaluator": {"matcher": "di"}}}),
) | each(
    "options of read_jsonl", lambda one: read_jsonl(file(LINE), **one),
    {"tags": "hard"}, {"max_bytes": 0}, {"max_bytes": True},
) | each("a path", read_jsonl, 3, "none.jsonl", ".", "x" * 5000, "bad.jsonl/below") | {
    "a field of questions that no line has": lambda: read_jsonl(file(LINE), question_field="query"),
    "chunks of nothing": lambda: read_chunks(io.StringIO("\n")),
}  # fmt: skip
CHUNKS = each(
    "a chunk", lambda one: read_chunks(io.StringIO(f'"good"\n{one}\n')),
    '{"id": "1"}', '{"text": "a", "page_content": "b"}', '{"text": "a", "id": "1", "_id": "2"}',
    '{"text": 3}', '{"text": "a", "id": [1]}', '{"text": "a", "metadata": 3}',
    '{"text": "a", "metadata": 3, "page": 1}', '"a", "b"', '"a', '["a"]', "3", '"\\ud800"',
)  # fmt: skip
PARTS = each(
    "parts of a data set", lambda one: Dataset(["q"], [["a"]], [[]], **one),
    {"questions": ["a", "b"]}, {"tags": {"corpus": ["a", "b"]}}, {"judged": {"other": ["a"]}},
    {"judged": "a"}, {"failures": [Failure(1, "ERROR", "", 0.0)]},
)  # fmt: skip
MARKS = each(
    "a mark", lambda one: load_dataset([{"actual": [], "predicted": [], "krag_eval": one}]),
    "x", {"shielded": 1}, {"labels": []}, {"label": 1.5}, {"label": True}, {"evaluator": ["id"]},
    {"evaluator": {"queries": "x"}}, {"evaluator": {"matcher": None}}, {"tags": {"a": [1]}},
    {"evaluator": {"conventions": "x=y"}}, {"evaluator": {"matcher": "di"}},
    {"evaluator": {"threshold": "x"}}, {"evaluator": {"matcher": "id", "threshold": 0.5}},
    {"evaluator": {"grade_key": 3}},
)  # fmt: skip

# Judgements and runs

QRELS, RUN = "1 0 a 1\n1 0 b 0\n2 0 c 1\n", "1 Q0 a 1 0.5 x\n2 Q0 c 1 0.5 x\n"
TREC = each(
    "a judgement", lambda one: read_trec(file(f"1 0 z 1\n\n{one}\n2 0 a 1\n"), file(RUN)),
    "1 0 a", "1 0 a 1 x", "1 Q0 a 1 0.5 x", "a " * 1000, "1 0 a high", "1 0 a 0.5", "1 0 a nan",
    "1 0 a 1e1", "1 0 a ２", "1 0 a " + "9" * 5000, "1 0 z 1", "1 0 z 0", "1\x00 0 a",
) | each(
    "a line of a run",
    lambda one: read_trec(file(QRELS), file(f"1 Q0 z 1 0.5 x\n# comment\n{one}\n2 Q0 a 1 1 x\n")),
    "1 Q0 a 1 0.5", "1 0 a 1", f"1 Q0 a 1 {'9' * 5000}x x", "1 Q0 a 1 high x", "1 Q0 a 1 NaN x",
    "1 Q0 a 1 1_0 x", "1 Q0 a 1 １ x", "1 Q0 a 1 0,5 x", "1 Q0 z 2 0.1 x",
) | each(
    "a judgement of BEIR's",
    lambda one: read_trec(file(f"query-id\tcorpus-id\tscore\n1\tz\t1\n{one}\n"), file(RUN)),
    "1 a 1", "1\ta\t1\t1", "1\t\t1", "1\ta\tyes", "1\tz\t1",
) | each(
    "a run in JSON", lambda one: read_trec(file(QRELS), file(one)),
    '{"1": {"a": 0.5}', '{\n"1": {"a": }}', '{"1": {"a": NaN}}', '{"1": {"a": 1, "a": 2}}',
    '{"1": {"a": 1}, "1": {}}', '{"1": ["a"]}', '{"1": {"a": "0.5"}}', '{"1": {"a": true}}',
    '{"1": {"a": null}}', '{"1": {"a": 1' + "0" * 400 + "}}", "{}",
) | each(
    "judgements in memory", lambda one: read_trec(one, file(RUN)),
    {}, {1: {"a": 1}}, {"1": {2: 1}}, {"1": {"": 1}}, {"1": {"a": 0.5}}, {"1": {"a": "2"}},
    {"1": {"a": True}}, {"1": {"a": float("nan")}}, {"1": {"a": 10**400}},
) | each(
    "a table of a run", lambda one: read_trec({"1": {"a": 1}}, pd.DataFrame(one)),
    {"q_id": ["1"], "doc_id": ["a"]}, {"q_id": ["1", "1"], "doc_id": ["a", "a"], "score": [1, 1]},
    {"q_id": ["1"], "doc_id": ["a"], "score": [None]},
    {"q_id": [1.5], "doc_id": ["a"], "score": [1]},
) | each(
    "no run", lambda one: read_trec(file(QRELS), file(one)),
    b"", b"\n \n", b"# only a comment\n", gzip.compress(b"", mtime=0), b"PK\x03\x04rest",
    RUN.encode("utf-16"), "q1 Q0 a 1 1 x",
    gzip.compress("\n".join(f"1 Q0 d{n} 1 1 x" for n in range(999)).encode(), mtime=0)[:-8],
) | each(
    "no judgements", lambda one: read_trec(file(one), file(RUN)),
    b"", b"\n \n", b"# only a comment\n", b"query-id\tcorpus-id\tscore\n", RUN.encode("utf-16"),
    b"PK\x03\x04rest",
    gzip.compress("\n".join(f"1 0 d{n} 1" for n in range(999)).encode(), mtime=0)[:-8],
) | each(
    "options of read_trec", lambda one: read_trec(file(QRELS), file(RUN), **one),
    {"missing": "none"}, {"scores": "half"}, {"relevance_level": 0}, {"relevance_level": 1.5},
    {"judged": 1}, {"relevance_level": True},
)  # fmt: skip
BEIR = each(
    "a line of a corpus",
    lambda one: read_beir(qrels={"q": {"d1": 1, "d2": 1}}, run={"q": {"d1": 1.0}},
                          corpus=file(f'{{"_id": "d1", "text": "one"}}\n{one}\n')),
    "oops", "[]", '{"id": "d9", "text": "a"}', '{"_id": 9, "text": "a"}',
    '{"_id": "", "text": "a"}', '{"_id": "d2"}', '{"_id": "d2", "text": null}',
    '{"_id": "d2", "title": 3, "text": "a"}', '{"_id": "d1", "text": "a"}',
) | {
    "a judged query that is not there": lambda: read_beir(
        qrels={"q": {"d": 1}}, run={"q": {"d": 1.0}}, queries=file('{"_id": "p", "text": "?"}')
    ),
    "neither folder nor judgements": lambda: read_beir(run={"q": {"d": 1.0}}),
    "no file of a run": lambda: read_trec(file(QRELS), "none"),
    "no run to drop from": lambda: read_beir(
        qrels={"q": {"d": 1}}, run=None, ignore_identical_ids=True
    ),
}  # fmt: skip


def questions(*truths: Any) -> pd.DataFrame:
    """Return AutoRAG's table of questions with this ground truth."""
    qids = [f"q{at}" for at, _ in enumerate(truths, 1)]
    return pd.DataFrame({"qid": qids, "query": qids, "retrieval_gt": truths})


AUTORAG = each(
    "AutoRAG's ground truth",
    lambda one: read_autorag(questions([["a"]], one), retrieved={"q1": [], "q2": []}),
    [["a"], []], [["a"], "b"], [[1]], [[["a"]]], [["a"], [""]], [["a", ""]], None, float("nan"), 7,
) | each(
    "retrieved for AutoRAG", lambda one: read_autorag(questions([["a"]], [["b"]]), retrieved=one),
    None, {"x": ["a"]}, {}, {"q1": 7}, {"q1": [None]}, {"q1": [1.5]}, {"q1": [""]},
    *map(pd.DataFrame, (
        {"ids": [[]]}, {"retrieved_ids": [["a"]]},
        {"qid": ["q1", "q1"], "retrieved_ids": [[], []]},
        {"retrieved_ids": [["a"], []], "retrieved_contents": [[], []]},
        {"retrieved_ids": [["a"], []], "retrieved_contents": [[1], []]},
    )),
) | each(
    "AutoRAG's questions", lambda one: read_autorag(one, retrieved={"q1": ["a"]}),
    [{"qid": "q1"}], pd.DataFrame({"qid": ["q1"]}), questions(),
    questions([["a"]]).assign(qid=[7.5]), questions([["a"]]).assign(query=[None]),
    questions([["a"]], [["a"]]).assign(qid=["q", "q"]),
    Path("none.parquet"),
) | each(
    "AutoRAG's corpus",
    lambda one: read_autorag(questions([["a"]]), pd.DataFrame(one), {"q1": ["a"]}),
    {"doc_id": ["a"]}, {"doc_id": ["a", "a"], "contents": ["", ""]},
    {"doc_id": ["a"], "contents": [3]}, {"doc_id": ["a"], "contents": ["A"], "metadata": ["m"]},
)  # fmt: skip

# Spans

ASKED = Dataset(["When?", "Where?"], [["a"], ["b"]], questions=["When?", "Where?"])


def span(query: Any = "When?", **more: Any) -> dict[str, Any]:
    """Return the span of a retriever that found a text."""
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": query,
                  "retrieval.documents.0.document.content": "a"}  # fmt: skip
    return {"name": "search", "context": {"span_id": "1"}, "attributes": {**attributes, **more}}


TRACES = each(
    "options of read_traces", lambda one: read_traces([span()], **one),
    {"documents": "all"}, {"calls": "any"}, {"missing": "no"}, {"dataset": {"When?": ["x"]}},
    {"span": "other"}, {"documents": "rerank_input"},
) | each("spans", read_traces, 7, [7], [], {}, [span(None)], [span("")], [span({"no": "text"})],
    *([{"resourceSpans": one}] for one in (7, [7], [{"scopeSpans": [{"spans": [{}]}]}])),
    [span(**{"retrieval.documents.0.document.content": "__REDACTED__"})],
) | each("retrieved", lambda one: load_dataset(ASKED, retrieved=one),
    {"q": ["a"]}, 7, [{"question": "When?", "hits": []}], [span("Who?")],
) | {
    "a span's id without end": lambda: read_traces(
        file(json.dumps(span()).replace('"span_id": "1"', '"span_id": ' + "9" * 5000))
    ),
    "spans for spans": lambda: load_dataset([span()], retrieved=[span()]),
    "rows of questions with lists by id": lambda: load_dataset([ROW], retrieved={"q": ["a"]}),
    "a question twice": lambda: read_traces(
        [span()], Dataset(["a", "b"], [["x"], ["y"]], questions=["When?", "When?"])
    ),
}  # fmt: skip

# The audit

AUDITS = each(
    "an audit", lambda one: audit(**{"dataset": Dataset(["q"], [["one two"]]), **one}),
    {"index": []}, {"index": {"a": "b"}}, {"index": pd.DataFrame({"text": ["a"]})}, {"index": 3},
    {"index": [3]}, {"index": [{"page_content": "a"}], "ids": True}, {"k": 0}, {"k": True},
    {"k": 2.5}, {"ids": "yes"}, {"min_run": 0}, {"tokenizer": "nothing"}, {"dataset": 3},
    {"dataset": Dataset(["q"], [[{"page_content": "a"}]]), "ids": True},
) | each(
    "a check", lambda one: audit(Dataset(["q"], [["a"]]), ["a"]).check(one), "twinz", "", [], [3],
) | {
    "a check of what was not looked for": lambda: audit(Dataset(["q"], [["a"]])).check("twins"),
}  # fmt: skip

CALLS: Calls = {
    **LINES, **CELLS, **QUESTIONS, **COLUMNS, **EXAMPLES, **SOURCES, **FILES, **OPTIONS, **OTHERS,
    **WHOLE, **CHUNKS, **PARTS, **MARKS, **TREC, **BEIR, **AUTORAG, **TRACES, **AUDITS,
}  # fmt: skip
