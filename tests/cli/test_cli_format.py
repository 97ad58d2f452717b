"""``--format``: what is printed, for another program, and nothing else on standard output."""

import csv
import json

from cli_runs import content, rows_in, run, written

from krag_eval.datasets import read_jsonl

CALL = "evaluate sample.jsonl -k 2"


def test_json_is_to_dict_with_the_signature():
    """It is what Python has, to the last digit."""
    result = read_jsonl("sample.jsonl").evaluator().evaluate(2)
    assert content(CALL) == {
        "n_queries": 2,
        "n_counted": 2,
        "metrics": result.to_dict(),
        "signature": result.signature,
    }


def test_csv_has_a_row_per_average_and_cutoff():
    """docs/metrics.md works out MRR@2 of the sample, 0.75, and macro recall@1, 1/6."""
    header, *rows = csv.reader(run(f"{CALL} -k 1 --format csv").stdout.splitlines())
    assert header == ["metric", "k", "value"]
    values = {(name, k): float(value) for name, k, value in rows}
    assert (values["mrr", "2"], values["macro_recall", "1"]) == (0.75, 1 / 6)


def test_metric_chooses_rows():
    """Markdown has those of the table."""
    printed = run(f"{CALL} --metric mrr@2,ndcg@2 --format markdown").stdout
    assert printed == "| metric | @2 |\n| --- | ---: |\n| mrr | 0.7500 |\n| ndcg | 0.6934 |\n"


def test_intervals_and_slices():
    """An interval per average; rows of slices, for which a CSV has no room."""
    found = content(f"{CALL} --intervals --by items")
    low, high = found["intervals"]["mrr@2"]
    assert low <= 0.75 <= high
    assert {row["n"] for row in found["slices"]["items"]} == {1}
    rows = rows_in(run(f"{CALL} --intervals --format csv").stdout)
    assert {row["metric"]: float(row["low"]) for row in rows if row["low"]}["mrr"] == low


def test_what_is_undefined_is_null():
    """The mean rank of what was never found: null in JSON, an empty cell, a dash."""
    written("nothing.jsonl", [{"question": "q", "actual": ["a"], "predicted": ["b"]}])
    call = "evaluate nothing.jsonl --metric mean_rank@1"
    assert content(call)["metrics"] == {"mean_rank@1": None}
    assert run(f"{call} --format csv").stdout.splitlines()[1:] == ["mean_rank,1,"]
    assert run(f"{call} --format markdown").stdout.splitlines()[2:] == ["| mean_rank | – |"]


def test_all_else_is_on_standard_error():
    """Verdicts, the names of files that were written, queries that were left out."""
    result = run(f"{CALL} --fail-under mrr@2=0.9 --csv rows.csv --format json")
    json.loads(result.stdout)
    assert result.exit_code == 1
    assert "failed: mrr@2" in result.stderr
    assert "rows.csv" in result.stderr
    written("many.jsonl", [{"actual": ["a"], "predicted": ["b"]}] * 3)
    result = run("misses many.jsonl -n 2 --format csv")
    assert (len(result.stdout.splitlines()), "-n 3" in result.stderr) == (3, True)
