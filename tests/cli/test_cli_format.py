"""``--format``: what is printed, for another program, and nothing else on standard output."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runs import SAMPLE, refusal, run

from krag_eval.datasets import read_jsonl

COMMANDS = ("evaluate", "compare", "gate", "misses", "diagnose", "audit", "trec")
Call = Callable[..., str]


@pytest.fixture
def call(sample: Path, tmp_path: Path) -> Call:
    """Return a function that runs a command with a format, and gives what it prints."""
    other, chunks = tmp_path / "other.jsonl", tmp_path / "chunks.jsonl"
    other.write_text(SAMPLE.replace('"doc6", ', ""), "utf-8")
    chunks.write_text('"doc1"\n"doc2"\n"doc5"\n', "utf-8")
    ranked, judged, saved = (tmp_path / name for name in ("a.run", "judged.qrels", "saved.json"))
    ranked.write_text("t1 Q0 a 1 0.5 x\nt1 Q0 b 2 0.4 x\n", "utf-8")
    judged.write_text("t1 0 b 1\n", "utf-8")
    run("evaluate", sample, "--json", saved)
    arguments: dict[str, list[object]] = {
        "evaluate": [sample, "-k", "2"],
        "compare": [sample, other, "-k", "3"],
        "gate": [saved, "--fail-under", "mrr@5=0.5"],
        "misses": [sample],
        "diagnose": [sample, "--index", chunks],
        "audit": [sample],
        "trec": [judged, ranked],
    }

    def called(command: str, format: str, *options: object) -> str:
        result = run(command, *arguments[command], *options, "--format", format)
        assert result.exit_code == 0
        return result.stdout

    return called


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_every_format(command: str, call: Call) -> None:
    """JSON that parses, CSV and Markdown whose rows are all as long, and what is told as a list."""
    assert isinstance(json.loads(call(command, "json")), dict)
    header, *rows = csv.reader(io.StringIO(call(command, "csv"), newline=""))
    assert rows
    assert {len(row) for row in rows} == {len(header)}
    for part in call(command, "markdown").strip().split("\n\n"):
        lines = part.splitlines()
        if lines[0].startswith("| "):
            assert {line.count(" | ") for line in lines} == {lines[0].count(" | ")}
        else:  # a title, or a list
            assert len(lines) == 1 or all(line.startswith("- ") for line in lines)


def test_json_is_to_dict_with_the_signature(sample: Path, call: Call) -> None:
    """As Python has it, to the last digit."""
    result = read_jsonl(sample).evaluator().evaluate(2)
    assert json.loads(call("evaluate", "json")) == {
        "n_queries": 2,
        "n_counted": 2,
        "metrics": result.to_dict(),
        "signature": result.signature,
    }


def test_csv_has_a_row_per_average_and_cutoff(call: Call) -> None:
    """docs/metrics.md works out MRR@2 of the sample, 0.75, and macro recall@1, 1/6."""
    rows = list(csv.reader(io.StringIO(call("evaluate", "csv", "-k", "1"))))
    values = {(name, k): float(value) for name, k, value in rows[1:]}
    assert rows[0] == ["metric", "k", "value"]
    assert (values["mrr", "2"], values["macro_recall", "1"]) == (0.75, 1 / 6)


def test_metric_chooses_rows(call: Call) -> None:
    """The same ones as in the table."""
    printed = call("evaluate", "markdown", "--metric", "mrr@2,ndcg@2")
    assert printed == "| metric | @2 |\n| --- | ---: |\n| mrr | 0.7500 |\n| ndcg | 0.6934 |\n"


def test_intervals_and_slices(sample: Path, call: Call) -> None:
    """An interval per average; rows of slices, for which a CSV has no room."""
    content = json.loads(call("evaluate", "json", "--intervals", "--by", "items"))
    low, high = content["intervals"]["mrr@2"]
    assert low <= 0.75 <= high
    assert {row["n"] for row in content["slices"]["items"]} == {1}
    header, *_ = csv.reader(io.StringIO(call("evaluate", "csv", "--intervals")))
    assert header == ["metric", "k", "value", "low", "high"]
    message = refusal("evaluate", sample, "--by", "items", "--format", "csv")
    assert message.startswith("--format")


def test_what_is_undefined_is_null(tmp_path: Path) -> None:
    """The mean rank of what was never found: null in JSON, an empty cell, a dash."""
    path = tmp_path / "nothing.jsonl"
    path.write_text('{"question": "q", "actual": ["a"], "predicted": ["b"]}\n', "utf-8")
    options = ("evaluate", path, "--metric", "mean_rank@1", "--format")
    assert json.loads(run(*options, "json").stdout)["metrics"] == {"mean_rank@1": None}
    assert run(*options, "csv").stdout.splitlines()[1:] == ["mean_rank,1,"]
    assert run(*options, "markdown").stdout.splitlines()[2:] == ["| mean_rank | – |"]


def test_all_else_is_on_standard_error(sample: Path, tmp_path: Path) -> None:
    """Verdicts, the names of files that were written, queries that were left out."""
    options = ("--fail-under", "mrr@2=0.9", "--csv", tmp_path / "rows.csv", "--format", "json")
    result = run("evaluate", sample, "-k", 2, *options)
    json.loads(result.stdout)
    assert result.exit_code == 1
    assert "failed: mrr@2" in result.stderr
    assert "rows.csv" in result.stderr
    many = tmp_path / "many.jsonl"
    many.write_text('{"actual": ["a"], "predicted": ["b"]}\n' * 3, "utf-8")
    result = run("misses", many, "-n", 2, "--format", "csv")
    assert len(result.stdout.splitlines()) == 3
    assert "-n 3" in result.stderr


def test_a_gate_that_fails_says_so(sample: Path, tmp_path: Path) -> None:
    """In its content, and by its exit code."""
    saved = tmp_path / "saved.json"
    run("evaluate", sample, "--json", saved)
    result = run("gate", saved, "--fail-under", "mrr@5=0.9", "--format", "json")
    content = json.loads(result.stdout)
    assert (result.exit_code, content["passed"]) == (1, False)
    assert [(one["metric"], one["passed"]) for one in content["gates"]] == [("mrr@5", False)]


def test_only_one_output_takes_standard_output(sample: Path) -> None:
    """Of a format and a file that is '-', one is refused."""
    assert "standard output" in refusal("evaluate", sample, "--json", "-", "--format", "csv")
