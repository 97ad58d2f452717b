"""One text per cell, and other delimiters: what the options read, and what is said of it."""

import json
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import content, refusal, run

TABLE = """\
질의;정답 문서;검색 결과
언제 여나요?;아홉 시에 엽니다.;열 시에 닫습니다.
언제 여나요?;아홉 시에 엽니다.;아홉 시에 엽니다.
"""


@pytest.mark.parametrize("command", ["evaluate", "misses", "explain", "audit"])
def test_a_spreadsheet_is_read_with_two_options(command):
    """By all that look at the documents of a file; the second is the right one: MRR 1/2."""
    Path("qa.csv").write_text(TABLE, "utf-8")
    query = " 0" if command == "explain" else ""
    done = run(f"{command} qa.csv{query} --delimiter ';' --cells text")
    assert done.exit_code == 0, done.output
    assert "read as one document per cell (" in done.stderr
    assert "2 rows put together by question into 1 queries" in done.stderr
    if command == "evaluate":
        assert content("evaluate qa.csv --delimiter ';' --cells text")["metrics"]["mrr@3"] == 0.5
        # The refusals name the options: first the delimiter, then the cells.
        assert "--delimiter ';'" in refusal("evaluate qa.csv")
        assert "--cells text" in refusal("evaluate qa.csv --delimiter ';'")


def test_standard_input_and_parquet_are_read_whole_for_it():
    """Texts in place of lists are read there; rows of one question may be chunks apart."""
    line = json.dumps({"question": "a", "actual": "x", "predicted": ["y", "x"]})
    rows = [{"question": "a", "actual": "x", "predicted": one} for one in ("y", "x")]
    pd.DataFrame(rows).to_parquet("qa.parquet")
    for file in ("-", "qa.parquet"):
        done = run(f"evaluate {file} --cells text --metric mrr@2", stdin=line)
        assert (done.exit_code, "0.5000" in done.stdout) == (0, True)
    assert "--cells" in refusal("evaluate qa.parquet --cells text --chunk-size 5")
