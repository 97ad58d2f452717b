"""``--format``: what is printed, for another program, and nothing else on standard output."""

import json

from cli_runs import content, rows_in, run, written

from krag_eval.datasets import read_jsonl

CALL = "evaluate sample.jsonl -k 2"


def test_numbers_are_those_of_python_to_the_last_digit():
    """docs/metrics.md works out MRR@2 of the sample, 0.75, and macro recall@1, 1/6."""
    result = read_jsonl("sample.jsonl").evaluator().evaluate(2)
    verdict = result.summary()
    assert content(CALL) == {
        "verdict": verdict, "advice": [],
        "n_queries": 2, "n_counted": 2, "n_contradicted": 0, "metrics": result.to_dict(),
        "signature": result.signature,
    }  # fmt: skip
    rows = rows_in(run("evaluate sample.jsonl -k 1,2 --format csv").stdout)
    values = {(row["metric"], row["k"]): float(row["value"]) for row in rows}
    assert (values["mrr", "2"], values["macro_recall", "1"]) == (0.75, 1 / 6)


def test_intervals_and_slices():
    """An interval per average; rows of slices, for which a CSV has no room."""
    found = content(f"{CALL} --intervals --by items")
    low, high = found["intervals"]["mrr@2"]
    assert low <= 0.75 <= high
    assert {row["n"] for row in found["slices"]["items"]} == {1}
    lines = run(f"{CALL} --metric mrr@2 --intervals --format csv").stdout.splitlines()
    assert lines == ["metric,k,value,low,high", f"mrr,2,0.75,{low},{high}"]


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
