"""The shell keeps other columns as tags, and says once what it leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import run

from krag_eval import EvaluationResult, load_dataset

ROWS = [
    {"question": "When?", "actual": ["a"], "predicted": ["a"], "corpus": "wiki", "scores": [1]},
    {"question": "Where?", "actual": ["b"], "predicted": ["x"], "corpus": "chat", "scores": []},
]
TAGS = {"corpus": ["wiki", "chat"]}


@pytest.mark.parametrize(
    ("ending", "rows"),
    [(".jsonl", []), (".jsonl", ["--per-query"]), (".json", []), (".parquet", ["--per-query"])],
)
def test_tags_go_into_the_saved_result(tmp_path: Path, ending: str, rows: list[str]) -> None:
    """Nothing has to be typed; in chunks they are in the rows."""
    path, output = tmp_path / f"qa{ending}", tmp_path / "result.json"
    if ending == ".parquet":
        pd.DataFrame(ROWS).to_parquet(path)
    else:
        lines = [json.dumps(row) for row in ROWS]
        path.write_text("\n".join(lines) if ending == ".jsonl" else json.dumps(ROWS), "utf-8")
    done = run("evaluate", path, "--json", output, *rows, *[tmp_path / "rows.csv" for _ in rows])
    assert done.exit_code == 0
    assert EvaluationResult.from_json(output).tags == TAGS
    assert done.stderr.count("scores (holds ") == 1
    assert "read from" not in done.stderr


def test_without_other_columns_nothing_is_said(tmp_path: Path) -> None:
    """As before."""
    load_dataset(ROWS, tags=False).save(tmp_path / "qa.csv")
    assert run("evaluate", tmp_path / "qa.csv").stderr == ""
