"""One text per cell, and other delimiters: what the options read, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import refusal, run

TABLE = """\
질의;정답 문서;검색 결과
언제 여나요?;아홉 시에 엽니다.;열 시에 닫습니다.
언제 여나요?;아홉 시에 엽니다.;아홉 시에 엽니다.
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a row for each retrieved document, as a Korean spreadsheet writes it."""
    path = tmp_path / "qa.csv"
    path.write_text(TABLE, "utf-8")
    return path


def test_a_spreadsheet_is_read_with_two_options_that_the_refusals_name(table: Path) -> None:
    """First the delimiter, then the cells; the second document is the right one: MRR 1/2."""
    assert "--delimiter ';'" in refusal("evaluate", table)
    assert "--cells text" in refusal("evaluate", table, "--delimiter", ";")
    options = ("--delimiter", ";", "--cells", "text", "-k", 2)
    done = run("evaluate", table, *options, "--format", "json")
    assert done.exit_code == 0
    averages = json.loads(done.stdout)
    assert "0.5" in json.dumps(averages)
    assert "read as one document per cell (2 of 2 cells)" in done.stderr
    assert "2 rows put together by question into 1 queries" in done.stderr


@pytest.mark.parametrize("command", ["misses", "explain", "audit"])
def test_other_commands_read_such_tables_too(table: Path, command: str) -> None:
    """All that look at the documents of a file."""
    query = [0] if command == "explain" else []
    done = run(command, table, *query, "--delimiter", ";", "--cells", "text")
    assert done.exit_code == 0, done.output
    assert "one document per cell" in done.stderr


def test_json_lines_and_standard_input() -> None:
    """Texts in place of lists are read there as well."""
    line = json.dumps({"question": "a", "actual": "x", "predicted": ["y", "x"]})
    done = run("evaluate", "-", "--cells", "text", "-k", 2, "--metric", "mrr@2", stdin=line)
    assert done.exit_code == 0
    assert "0.5000" in done.stdout


def test_parquet_is_read_whole_for_it(tmp_path: Path) -> None:
    """Lists are read in chunks, which rows of one question may be apart in."""
    path = tmp_path / "qa.parquet"
    rows = [{"question": "a", "actual": "x", "predicted": one} for one in ("y", "x")]
    pd.DataFrame(rows).to_parquet(path)
    done = run("evaluate", path, "--cells", "text", "--metric", "mrr@2")
    assert done.exit_code == 0, done.output
    assert "0.5000" in done.stdout
    assert "--cells" in refusal("evaluate", path, "--cells", "text", "--chunk-size", 5)
