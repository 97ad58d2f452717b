"""Drafts in the shell: every command that reads ground truth refuses them, or counts them."""

import json
from pathlib import Path

import pytest
from cli_runs import refusal, run, written

ROWS = [
    {"id": f"q{n}", "question": f"{n}?", "actual": [{"id": f"c{n}", "page_content": f"text {n}"}],
     "status": status}
    for n, status in enumerate(["accepted", "draft", "rejected"])
]  # fmt: skip
RUN = [{"id": f"q{n}", "predicted": [f"text {n}"]} for n in range(3)]
COMMANDS = [
    "evaluate golden.jsonl run.jsonl -k 1",
    "evaluate golden.jsonl run.jsonl -k 1 --chunk-size 1",
    "evaluate golden.jsonl run.jsonl -k 1 --index chunks.jsonl --foreign-index allow",
    "compare golden.jsonl run.jsonl other.jsonl -k 1 --metric recall@1",
    "gate golden.jsonl run.jsonl --fail-under recall@1=0.1",
    "gate golden.jsonl run.jsonl --baseline saved.json --metric recall@1",
    "explain golden.jsonl run.jsonl q0",
    "misses golden.jsonl run.jsonl",
    "diagnose golden.jsonl run.jsonl --index chunks.jsonl --foreign-index allow",
    "report golden.jsonl run.jsonl -o page.html",
    "label golden.jsonl run.jsonl -o labels.html",
    "audit golden.jsonl --index chunks.jsonl",
    "reanchor golden.jsonl --old chunks.jsonl --new chunks.jsonl -o anew.jsonl",
]


@pytest.fixture(autouse=True)
def _files(sample):
    written("golden.jsonl", ROWS)
    written("run.jsonl", RUN)
    written("other.jsonl", [{**RUN[0], "predicted": ["x"]}, *RUN[1:]])
    written("chunks.jsonl", [{"id": f"c{n}", "text": f"text {n}"} for n in range(3)])
    run("evaluate golden.jsonl run.jsonl --drafts count -k 1 --json saved.json")


@pytest.mark.parametrize("typed", COMMANDS)
def test_every_command_refuses_drafts_or_counts_them(typed):
    """The refusal says where the draft is, and how it is counted; what is counted is said."""
    told = refusal(typed)
    assert "golden.jsonl:2" in told
    assert "--drafts count" in told
    counted = run(f"{typed} --drafts count")
    assert "1 of 2" in counted.stdout + counted.stderr
    assert "golden.jsonl: 1 rejected row" in counted.stderr


@pytest.mark.parametrize(
    "typed", [one for one in COMMANDS if one.startswith(("evaluate", "compare", "gate"))]
)
def test_what_is_printed_and_saved_says_how_many(typed):
    """Also where it is read by a program, and where a saved file is looked at later."""
    found = json.loads(run(f"{typed} --drafts count --format json").stdout)
    assert "1 of 2" in json.dumps([found[name] for name in ("signature", "note") if name in found])
    assert "1 of 2 queries are drafts" in run(f"{typed} --drafts count").stdout


def test_a_saved_result_tells_of_its_drafts():
    """In a gate on it, a report of it, and a comparison."""
    assert "1 of 2 queries are drafts" in run("gate saved.json --fail-under recall@1=0.1").stdout
    run("report saved.json -o page.html")
    assert "1 of 2 queries are drafts" in Path("page.html").read_text("utf-8")
    again = "explain saved.json q0 --golden golden.jsonl --run run.jsonl"
    assert "--drafts count" in refusal(again)
    assert "text 0" in run(f"{again} --drafts count").stdout


def test_a_sweep_says_it_in_its_file():
    """Where its questions are named."""
    functions = ["whole = lambda text: [text]", "make = lambda chunks: lambda question: chunks"]
    Path("rag.py").write_text("\n".join(functions), "utf-8")
    settings = """
corpus = "chunks.jsonl"
questions = {{file = "golden.jsonl"{}}}
k = 1
[splitters]
whole = "rag:whole"
[retrievers]
all = "rag:make"
"""
    Path("sweep.toml").write_text(settings.format(""), "utf-8")
    assert "golden.jsonl:2" in refusal("sweep sweep.toml")
    Path("sweep.toml").write_text(settings.format(', drafts = "count"'), "utf-8")
    assert "1 of 2 queries are drafts" in run("sweep sweep.toml").stdout
