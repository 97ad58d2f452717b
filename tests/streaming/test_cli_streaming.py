"""``krag-eval evaluate`` in chunks: the same output, rows as they come, and what it refuses."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import SAMPLE, refusal, run

from krag_eval import EvaluationResult, streaming
from krag_eval.cli import evaluate as evaluating
from krag_eval.datasets import read_jsonl
from krag_eval.streaming.files import RunState

CALL = "evaluate sample.jsonl -k 1,3"


@pytest.fixture(autouse=True)
def _files(sample):
    """Write the sample as a Parquet file, too; rows go into a folder that is not read."""
    pd.DataFrame(map(json.loads, SAMPLE.splitlines())).to_parquet("sample.parquet")
    Path("out").mkdir()


@pytest.fixture
def chunked(monkeypatch):
    """Take every file for a large one; return the list of runs in chunks."""
    chosen, evaluate_file = [], streaming.evaluate_file

    def noted(*given, **options):
        chosen.append(given)
        return evaluate_file(*given, **options)

    monkeypatch.setattr(evaluating, "_LARGE", 10)
    monkeypatch.setattr(streaming, "evaluate_file", noted)
    return chosen


@pytest.mark.parametrize("more", ["", "--fail-under mrr@3=0.9", "--matcher contains"])
def test_the_same_output(more):
    """With the exit code of a floor, and nothing on standard error.

    What keeps no rows has no digest of its ground truth.
    """
    ours, theirs = run(f"{CALL} {more} --chunk-size 1"), run(f"{CALL} {more}")
    expected = "".join(line for line in theirs.output.splitlines(keepends=True)
                       if not line.startswith("Digest of the ground truth: "))  # fmt: skip
    assert (ours.output, ours.stderr, ours.exit_code) == (expected, theirs.stderr, theirs.exit_code)


def test_a_large_file_is_taken_in_chunks(chunked, monkeypatch):
    """Unless something needs all queries in memory."""
    Path("run.csv").write_text('question,actual,predicted\nQ,"[""a""]","[""a""]"\n', "utf-8")
    for n, call in enumerate((CALL, "evaluate run.csv -k 1,3"), 1):
        with monkeypatch.context() as patched:
            patched.setattr(evaluating, "_LARGE", 2**28)
            expected = run(call).output
        assert run(call).output == expected
        assert len(chunked) == n
    run(f"{CALL} --csv out.csv")
    assert len(chunked) == 2


def test_parquet_and_directories():
    """They print what the file of lines does, but for the name of the input."""
    Path("in").mkdir()
    for number, line in enumerate(SAMPLE.splitlines()):
        Path(f"in/{number}.jsonl").write_text(line, "utf-8")
    outputs = {
        run(f"evaluate {name} -k 1,3").output.replace(f"from {name}", "from IN")
        for name in ("sample.jsonl", "sample.parquet", "in")
    }
    assert len(outputs) == 1


def test_rows_and_what_is_made_of_them():
    """Intervals, tables, pictures and pages are served from the rows."""
    call = f"{CALL} --json out/r.json --csv out/all.csv --plot out/p.svg --report out/r.html"
    rows = Path.cwd() / "out" / "rows.csv"
    ours = run(f"{call} --intervals --per-query out/rows.csv")
    assert f"wrote {rows} (one row per query)" in ours.output
    assert sorted(os.listdir("out")) == ["all.csv", "p.svg", "r.html", "r.json", "rows.csv"]
    whole = read_jsonl("sample.jsonl").evaluator().evaluate([1, 3])
    read = EvaluationResult.from_json("out/r.json")
    pd.testing.assert_frame_equal(read.per_query(3), whole.per_query(3))
    written = Path("out/all.csv").read_bytes()
    in_memory = run(f"{call} --intervals")
    assert Path("out/all.csv").read_bytes() == written
    assert in_memory.output == ours.output.replace(f"wrote {rows} (one row per query)\n", "")


def test_a_picture_needs_no_rows():
    """Averages are enough for it, and for --json."""
    assert run("evaluate sample.parquet --plot p.png --json r.json").exit_code == 0
    assert Path("p.png").exists()
    assert Path("r.json").exists()


def test_a_killed_run_is_continued(monkeypatch):
    """By the same command; other settings are refused in the shell's words."""
    command = "evaluate sample.jsonl --per-query out/rows.csv --chunk-size 1"

    def killed(self, n_parts):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunState, "finish", killed)
        assert run(command).exit_code == 130
    assert not Path("out/rows.csv").exists()
    assert "pass --no-resume to start anew" in refusal(f"{command} -k 7")
    assert run(command).exit_code == 0
    assert len(pd.read_csv("out/rows.csv")) == 2
    assert run(f"{command} --no-resume").exit_code == 0


@pytest.mark.parametrize("option", ["--intervals", "--csv out/a.csv", "--report out/a.html"])
def test_what_needs_rows_of_parquet_is_refused(option):
    """The remedy is to have them written."""
    message = refusal(f"evaluate sample.parquet {option}")
    assert message.startswith(f"{option.split()[0]} needs the values of every query")
    assert "add --per-query OUT" in message
