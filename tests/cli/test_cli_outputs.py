"""What the command writes: each file complete or not at all."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, SAMPLE, refusal, rows_in, run, shell, written
from places import DATA

from krag_eval import EvaluationResult
from krag_eval.datasets import read_jsonl

CALL = "evaluate sample.jsonl -k 2"


def test_json_and_csv_hold_the_result():
    """Python reads the whole result back; a row per query and cutoff, whose values are whole."""
    run("evaluate sample.jsonl -k 1,all --json out.json --csv out.csv")
    expected = read_jsonl("sample.jsonl").evaluator().evaluate(k=[1, None])
    assert json.loads(Path("out.json").read_text("utf-8"))["metrics"] == expected.to_dict()
    assert EvaluationResult.from_json("out.json") == expected
    rows = rows_in(Path("out.csv").read_text("utf-8"))
    assert [(row["query"], row["k"], float(row["recall"])) for row in rows] == [
        ("First?", "1", 1 / 3), ("둘째?", "1", 0), ("First?", "all", 1), ("둘째?", "all", 0.5),
    ]  # fmt: skip


def test_no_cell_of_a_csv_is_a_formula():
    """A question of somebody else's is no command for the spreadsheet; numbers stay numbers."""
    asked = ["=cmd|' /C calc'!A0", "a;=1+1", "two\rlines", "-5"]
    written("run.jsonl", [{"question": one, "actual": ["a"], "predicted": ["a"]} for one in asked])
    run("evaluate run.jsonl -k 1 --csv out.csv")
    rows = rows_in(Path("out.csv").read_bytes().decode())
    assert [row["query"] for row in rows] == ["'=cmd|' /C calc'!A0", "a;'=1+1", *asked[2:]]


def test_an_existing_output_is_replaced():
    """Naming a file is asking for it to be written; through a link, its target is."""
    Path("target.csv").write_text("old")
    Path("link.csv").symlink_to("target.csv")
    run("evaluate sample.jsonl --csv link.csv")
    assert Path("target.csv").read_text("utf-8").startswith("query,k,")
    assert Path("link.csv").is_symlink()


def test_nothing_else_is_left_behind(monkeypatch):
    """When writing fails half way, the old file stays and no temporary file remains."""
    Path("chart.png").write_text("old")

    def broken(path, draw):
        path.write_text("half a pict")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("krag_eval.plotting.save_plot", broken)
    result = run("evaluate sample.jsonl --plot chart.png")
    assert (result.exit_code, "No space left on device" in result.output) == (2, True)
    assert Path("chart.png").read_text() == "old"
    assert {*os.listdir()} == {"sample.jsonl", "chart.png"}


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--json none/out.json", "--json: there is no directory .*none; create it first"),
        ("--json .", "--json: .* is a directory"),
        (f"--json {os.devnull}", "--json: .* not a regular file"),
        ("--report out.pdf", r"--report: out\.pdf must end in one of \.html, \.htm"),
        ("--json out --csv out", "a file of its own"),
        ("--json - --csv -", r"--csv: only one output can be - \(standard output\)\."),
        ("--plot -", "--plot: - is standard output, which --json, --csv"),
    ],
)
def test_impossible_outputs_are_refused_before_anything_is_read(monkeypatch, option, expected):
    """A long computation does not end in an error about a file name."""
    monkeypatch.setattr("krag_eval.datasets.read_jsonl", lambda *_, **__: pytest.fail("read"))
    assert re.search(expected, refusal(f"evaluate sample.jsonl {option}"))


@pytest.mark.parametrize("option", ["--json", "--csv", "--plot", "--report", "--per-query"])
def test_no_output_is_what_is_read(option):
    """Not through a link either, and not what standard input is read from."""
    ending = {"--plot": "png", "--report": "html", "--per-query": "csv"}.get(option, "json")
    source, link = Path(f"source.{ending}"), Path(f"link.{ending}")
    source.write_text(SAMPLE, "utf-8")
    os.link(source, link)
    Path("read.jsonl").symlink_to(source)
    for output in (source, link):
        message = refusal(f"evaluate read.jsonl {option} {output}")
        assert message.startswith(f"{option}: ")
        assert "among the files that are read" in message
    with source.open("rb") as stdin:
        done = shell("evaluate", "-", option, link, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"krag-eval: error: {option}: ")
    assert source.read_text("utf-8") == SAMPLE


@pytest.mark.parametrize("name", ["part.jsonl", "new.json", "new.jsonl.gz", "new.parquet"])
def test_no_output_goes_into_a_directory_that_is_read(name):
    """It would be read the next time; a picture would not."""
    Path("data").mkdir()
    Path("data/part.jsonl").write_text(SAMPLE, "utf-8")
    message = refusal(f"evaluate data --json data/{name}")
    assert message.startswith("--json: ")
    assert "among the files that are read" in message
    assert os.listdir("data") == ["part.jsonl"]
    if name == "part.jsonl":
        assert run("evaluate data --plot data/chart.png").exit_code == 0


def test_the_progress_of_a_run_is_left_alone():
    """It is written and read meanwhile."""
    Path("rows.csv.partial").mkdir()
    within = Path.cwd() / "rows.csv.partial" / "progress.json"
    message = refusal(f"evaluate sample.jsonl --per-query rows.csv --json {within}")
    assert message.startswith(f"--per-query: {within} lies in ")


def test_rows_of_a_saved_result_are_read_too():
    """They are beside it, and a comparison reads them."""
    run(f"{CALL} --per-query rows.csv --json saved.json")
    before = Path("rows.csv").read_bytes()
    message = refusal("compare saved.json sample.jsonl -k 2 --metric mrr@2 --latex rows.csv")
    assert message.startswith("--latex: ")
    assert "among the files that are read" in message
    assert Path("rows.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("--json", f"{CALL} --fail-under mrr@2=0.9 --plot out.png"),
        ("--csv", CALL),
        ("--markdown", "compare sample.jsonl other.jsonl -k 2 --metric mrr@2"),
        ("--latex", "compare sample.jsonl other.jsonl -k 2 --metric mrr@2"),
        ("--json", "trec graded.qrels spread.run"),
        ("--csv", "trec graded.qrels spread.run"),
    ],
)
def test_standard_output_has_one_output_alone(monkeypatch, option, call):
    """Byte for byte what the file holds; everything else is on standard error."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # a result says when it was made
    for name in ("graded.qrels", "spread.run"):
        Path(name).symlink_to(DATA / name)
    Path("other.jsonl").write_text(SAMPLE, "utf-8")
    written = run(f"{call} {option} out.txt")
    done = run(f"{call} {option} -")
    assert done.stdout == Path("out.txt").read_text("utf-8")
    assert done.exit_code == written.exit_code == int("--fail-under" in call)
    assert not Path("-").exists()
    if option == "--json" and call.startswith("evaluate"):
        assert "failed: mrr@2" in done.stderr
        assert "out.png (the metrics" in done.stderr
        assert json.loads(done.stdout)["metrics"]["mrr@2"] == 0.75
        run(f"{CALL} --json ./-")  # by its path, a file of that name
        assert EvaluationResult.from_json("-").n_queries == 2


def test_in_ascii():
    """A terminal that cannot show a text does not change it."""
    line = json.dumps({"question": "café \U0001f600", "actual": ["a"], "predicted": ["a"]})
    env = ENVIRONMENT | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = shell("evaluate", "-", "--json", "-", input=line, env=env)
    assert json.loads(done.stdout)["queries"] == ["café \U0001f600"]


def test_a_refusal_leaves_it_empty():
    """Nobody takes half an answer for one."""
    done = run("evaluate sample.jsonl --json - -k 0")
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_file_that_is_read_and_appended_to():
    """``>>`` the input: the program can see that it is the same file."""
    with Path("sample.jsonl").open("ab") as stdout:
        command = [sys.executable, "-m", "krag_eval", "evaluate", "sample.jsonl", "--json", "-"]
        done = subprocess.run(
            command, env=ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert b"--json: standard output is among the files that are read" in done.stderr
    assert Path("sample.jsonl").read_text("utf-8") == SAMPLE


@pytest.mark.skipif(os.name == "nt", reason="a limit of POSIX")
@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--json", "out.json"),
        ("--csv", "out.csv"),
        ("--plot", "out.pdf"),
        ("--report", "out.html"),
        ("--per-query", "out.csv"),
    ],
)
def test_a_full_disk_names_the_file(option, name):
    """One line, and nothing is left of it; a limit on the size of files stands for the disk."""
    import resource

    written("in.jsonl", [{"actual": ["a"], "predicted": ["a"]}] * 99)
    Path("out").mkdir()
    done = shell(
        *("evaluate", "in.jsonl", option, f"out/{name}"),
        # What Python compiles would be cut off as well, and found so by others.
        env=ENVIRONMENT | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)),
    )
    assert done.returncode == 2
    [line] = [one for one in done.stderr.splitlines() if not one.startswith("Matplotlib")]
    assert line.startswith(f"krag-eval: error: {Path.cwd() / 'out' / name}")
    assert line.endswith("File too large")
    assert os.listdir("out") == []
