"""The shell keeps other columns as tags, and says once what it leaves out."""

import json
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import run, written

from krag_eval import EvaluationResult, load_dataset

ROWS = [
    {"question": "When?", "actual": ["a"], "predicted": ["a"], "corpus": "wiki", "scores": [1]},
    {"question": "Where?", "actual": ["b"], "predicted": ["x"], "corpus": "chat", "scores": []},
]


@pytest.mark.parametrize(
    ("name", "option"),
    [("qa.jsonl", ""), ("qa.jsonl", "rows"), ("qa.json", ""), ("qa.parquet", "rows")],
)
def test_tags_go_into_the_saved_result(name, option):
    """Nothing has to be typed; in chunks they are in the rows."""
    written("qa.jsonl", ROWS)
    Path("qa.json").write_text(json.dumps(ROWS), "utf-8")
    pd.DataFrame(ROWS).to_parquet("qa.parquet")
    done = run(f"evaluate {name} --json r.json {'--per-query rows.csv' if option else ''}")
    assert EvaluationResult.from_json("r.json").tags == {"corpus": ["wiki", "chat"]}
    assert (done.stderr.count("scores (holds "), "read from" in done.stderr) == (1, False)


def test_without_other_columns_nothing_is_said():
    """Columns of our own names go without saying."""
    load_dataset(ROWS, tags=False).save("qa.csv")
    assert run("evaluate qa.csv").stderr == ""
