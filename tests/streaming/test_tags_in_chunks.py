"""Tags of files of any size: columns of the rows, of the same names in every part."""

import json
import warnings
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


@pytest.fixture
def evaluated(tmp_path):
    """Return what writes rows to a file and evaluates it in chunks of two."""

    def evaluated(rows=ROWS, kind="jsonl", ending="csv", **options):
        if isinstance(rows, list):
            path = tmp_path / f"qa.{kind}"
            if kind == "jsonl":
                path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
            else:
                parquet.write_table(pa.Table.from_pylist(rows), path)
            rows = path
        options = {"per_query": tmp_path / f"rows.{ending}", "chunk_size": 2, **options}
        return evaluate_file(rows, 1, **options)

    return evaluated


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings(action="error", category=KragEvalWarning):
        yield


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tags_are_written_with_the_rows(evaluated, kind, ending, tmp_path):
    """The same as in memory; none without rows, and none if none are wanted."""
    result = evaluated(kind=kind, ending=ending)
    assert result.tags == TAGS
    if kind == "jsonl":
        in_memory = read_jsonl(tmp_path / "qa.jsonl").evaluator().evaluate(1)
        assert in_memory.tags == TAGS
        assert result.averages() == in_memory.averages()
    assert evaluated(kind=kind, per_query=None).averages() == result.averages()
    assert evaluated(kind=kind, ending=ending, tags=False).tags == {}
    assert evaluated(kind=kind, tags=["pages"]).tags == {"pages": TAGS["pages"]}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_is_left_out_is_named_once_at_the_end(evaluated, kind):
    """Lists from the beginning, a text that grows too long, and a field that appears late."""
    rows = [{**row, "scores": [0.5], "note": "n"} for row in ROWS]
    rows[4] |= {"note": "n" * 201}
    if kind == "jsonl":
        rows[5] |= {"late": 1}
    with pytest.warns(KragEvalWarning) as caught:
        result = evaluated(rows, kind)
    assert result.tags["pages"] == TAGS["pages"]
    if kind == "jsonl":
        assert result.tags["note"] == ["n"] * 4 + [None] + ["n"] * 2
        assert [*result.tags] == ["corpus", "pages", "hard", "note"]
    (warning,) = caught
    named = ["scores", "note", "late"] if kind == "jsonl" else ["scores", "note"]
    assert all(name in str(warning.message) for name in named)


@pytest.mark.parametrize(
    ("more", "options", "named"),
    [
        # The names of the columns are one line of a CSV file.
        ({"a\nb": 1}, {}, "line end"),
        # Long texts of Parquet are not read, and are no reason to refuse a file.
        ({"body": "x" * 20_000}, {"kind": "parquet", "max_bytes": 40_000}, "body"),
    ],
)
def test_what_cannot_be_a_tag_breaks_no_file(evaluated, more, options, named):
    """It is named, and the others are there."""
    with pytest.warns(KragEvalWarning, match=named):
        assert evaluated([{**row, **more} for row in ROWS], **options).tags == TAGS


def test_a_name_that_was_chosen_must_be_there(evaluated):
    """By the first chunk."""
    with pytest.raises(DatasetError) as caught:
        evaluated(tags=["corpora"])
    assert "'corpora'" in str(caught.value)
    assert "'corpus'" in str(caught.value)


def test_parquet_files_of_a_directory_have_the_tags_of_the_first(evaluated, tmp_path):
    """What a later file lacks is nothing there; what it adds is named."""
    (tmp_path / "in").mkdir()
    for n, rows in enumerate((ROWS[:4], [{**ROWS[4], "late": 1}])):
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / f"{n}.parquet")
    with pytest.warns(KragEvalWarning, match="late"):
        result = evaluated(tmp_path / "in")
    assert result.tags == {name: values[:5] for name, values in TAGS.items()}


def test_a_run_that_was_stopped_resumes_with_its_tags(evaluated, tmp_path, monkeypatch):
    """And with what there is to warn of."""
    rows, whole, calls = [{**ROWS[0], "scores": [1]}, *ROWS[1:]], module._evaluated, iter("ab")

    def stopping(*args):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return whole(*args)

    monkeypatch.setattr(module, "_evaluated", stopping)
    with pytest.raises(KeyboardInterrupt):
        evaluated(rows)
    monkeypatch.undo()
    with pytest.warns(KragEvalWarning, match="scores"):
        assert evaluated(tmp_path / "qa.jsonl").tags == TAGS


def test_fields_of_ever_other_names_fill_no_memory(evaluated):
    """Some of them are remembered, to be named."""
    rows = [{**ROWS[0], f"{kind}{n}": 1} for n in range(1500) for kind in "ab"]
    with pytest.warns(KragEvalWarning, match="980 more"):
        assert len(evaluated(rows, chunk_size=1000).tags) == 100
