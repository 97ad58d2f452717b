"""Tags of files of any size: columns of the rows, of the same names in every part."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from krag_eval import KragEvalWarning, evaluate_file
from krag_eval.datasets import read_jsonl
from krag_eval.errors import DatasetError
from krag_eval.streaming import files as module

ROWS: list[dict[str, Any]] = [
    {"question": f"{n}?", "actual": ["a"], "predicted": ["a"],
     "corpus": ["위키", "=1", None][n % 3], "pages": n, "hard": n % 2 == 0}
    for n in range(7)
]  # fmt: skip
TAGS = {name: [row[name] for row in ROWS] for name in ("corpus", "pages", "hard")}


def written(folder: Path, rows: list[dict[str, Any]], kind: str = "jsonl") -> Path:
    path = folder / f"qa.{kind}"
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    else:
        parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture(autouse=True)
def _no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", KragEvalWarning)
        yield


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tags_are_written_with_the_rows(tmp_path: Path, kind: str, ending: str) -> None:
    """The same as in memory; none without rows, and none if none are wanted."""
    path, output = written(tmp_path, ROWS, kind), tmp_path / f"rows{ending}"
    result = evaluate_file(path, 1, per_query=output, chunk_size=2)
    assert result.tags == TAGS
    if kind == "jsonl":
        in_memory = read_jsonl(path).evaluator().evaluate(1)
        assert in_memory.tags == TAGS
        assert result.averages() == in_memory.averages()
    assert evaluate_file(path, 1).averages() == result.averages()
    assert evaluate_file(path, 1, per_query=output, tags=False).tags == {}
    chosen = evaluate_file(path, 1, per_query=output, tags=["pages"])
    assert chosen.tags == {"pages": TAGS["pages"]}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_is_left_out_is_named_once_at_the_end(tmp_path: Path, kind: str) -> None:
    """Lists from the beginning, a text that grows too long, and a field that appears late."""
    rows = [{**row, "scores": [0.5], "note": "n"} for row in ROWS]
    rows[4] |= {"note": "n" * 201}
    if kind == "jsonl":
        rows[5] |= {"late": 1}
    path = written(tmp_path, rows, kind)
    with pytest.warns(KragEvalWarning) as caught:
        result = evaluate_file(path, 1, per_query=tmp_path / "rows.csv", chunk_size=2)
    assert result.tags["pages"] == TAGS["pages"]
    if kind == "jsonl":
        assert result.tags["note"] == ["n"] * 4 + [None] + ["n"] * 2
        assert [*result.tags] == ["corpus", "pages", "hard", "note"]
    (warning,) = caught
    named = ["scores", "note", "late"] if kind == "jsonl" else ["scores", "note"]
    assert all(name in str(warning.message) for name in named)


def test_a_name_that_was_chosen_must_be_there(tmp_path: Path) -> None:
    """By the first chunk."""
    path = written(tmp_path, ROWS)
    with pytest.raises(DatasetError) as caught:
        evaluate_file(path, 1, per_query=tmp_path / "rows.csv", tags=["corpora"])
    assert "'corpora'" in str(caught.value)
    assert "'corpus'" in str(caught.value)


def test_parquet_files_of_a_directory_have_the_tags_of_the_first(tmp_path: Path) -> None:
    """What a later file lacks is nothing there; what it adds is named."""
    (tmp_path / "in").mkdir()
    for n, rows in enumerate((ROWS[:4], [{**ROWS[4], "late": 1}])):
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / f"{n}.parquet")
    with pytest.warns(KragEvalWarning, match="late"):
        result = evaluate_file(tmp_path / "in", 1, per_query=tmp_path / "r.csv", chunk_size=2)
    assert result.tags == {name: values[:5] for name, values in TAGS.items()}


def test_a_run_that_was_stopped_resumes_with_its_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with what there is to warn of."""
    rows = [{**ROWS[0], "scores": [1]}, *ROWS[1:]]
    path, output = written(tmp_path, rows), tmp_path / "rows.csv"
    whole, n_calls = module._evaluated, 0

    def stopping(*args: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            raise KeyboardInterrupt
        return whole(*args)

    monkeypatch.setattr(module, "_evaluated", stopping)
    with pytest.raises(KeyboardInterrupt):
        evaluate_file(path, 1, per_query=output, chunk_size=2)
    monkeypatch.undo()
    with pytest.warns(KragEvalWarning, match="scores"):
        assert evaluate_file(path, 1, per_query=output, chunk_size=2).tags == TAGS


def test_a_name_with_a_line_end_breaks_no_file(tmp_path: Path) -> None:
    """The names of the columns are one line of a CSV file."""
    path = written(tmp_path, [{**row, "a\nb": 1} for row in ROWS])
    with pytest.warns(KragEvalWarning, match="line end"):
        result = evaluate_file(path, 1, per_query=tmp_path / "rows.csv", chunk_size=2)
    assert result.tags == TAGS


def test_long_texts_of_parquet_are_no_reason_to_refuse_a_file(tmp_path: Path) -> None:
    """They are not read."""
    rows = [{**row, "body": "x" * 20_000} for row in ROWS]
    path = written(tmp_path, rows, "parquet")
    with pytest.warns(KragEvalWarning, match="body"):
        result = evaluate_file(path, 1, per_query=tmp_path / "rows.csv", max_bytes=40_000)
    assert result.tags == TAGS


def test_fields_of_ever_other_names_fill_no_memory(tmp_path: Path) -> None:
    """Some of them are remembered, to be named."""
    rows = [{**ROWS[0], f"{kind}{n}": 1} for n in range(1500) for kind in "ab"]
    path = written(tmp_path, rows)
    with pytest.warns(KragEvalWarning, match="980 more"):
        result = evaluate_file(path, 1, per_query=tmp_path / "rows.csv", chunk_size=100)
    assert len(result.tags) == 100
