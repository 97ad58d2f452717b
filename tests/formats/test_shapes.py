"""Every shape of the registry, from its fixture: in every format, from the shell, and damaged."""

import copy
import json
import math
import os
import re
from itertools import cycle, islice

import pandas as pd
import pytest
from click.testing import CliRunner
from places import DOCS
from shapes import FIXTURES, NINE, TEN

from krag_eval import audit, load_dataset
from krag_eval.cli import main
from krag_eval.datasets import read_jsonl
from krag_eval.errors import DatasetError, Refusal
from krag_eval.loading.vocabularies import SHAPES, shape_of

KOREAN = {"plain words": "흔히 쓰는 이름", "eGovFrame": "전자정부", "ids of chunks": "청크 ID",
          "JavaScript": "자바스크립트", "RAGAS up to 0.1": "RAGAS 0.1 이전"}  # fmt: skip
every_fixture = pytest.mark.parametrize("name", FIXTURES)
# What stands beside a file that holds one side.
GOLDEN = {"question": "When?", "relevant_chunk_ids": ["n"]}
RUN = {"question": "When?", "predicted": [{"id": "t", "text": TEN}, {"id": "n", "text": NINE}]}


def write(folder, rows, kind="jsonl"):
    """Write rows as a format holds them: cells of a table of text as JSON."""
    path = folder / f"rows.{kind}"
    if kind == "json":
        path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    elif kind == "jsonl":
        path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    elif kind == "parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        cells = [{name: one if isinstance(one, str) else json.dumps(one)
                  for name, one in row.items() if one is not None} for row in rows]  # fmt: skip
        pd.DataFrame(cells).to_csv(path, index=False)
    return path


def sides(name, path, folder):
    """Return the file of ground truth and that of a run, or the one that holds both."""
    fixture = FIXTURES[name]
    known = {"id": fixture.id} if fixture.id else {}
    other = folder / "other.jsonl"
    if fixture.holds == "golden":
        evidence = "D1:3" if fixture.tool == "LoCoMo" else "n"
        run = json.dumps({**RUN, **known}).replace('"n"', json.dumps(evidence))
        other.write_text(run, "utf-8")
        return path, other
    other.write_text(json.dumps({**known, **GOLDEN}), "utf-8")
    return (path, None) if fixture.holds == "both" else (other, path)


def test_every_shape_of_the_registry_has_a_fixture():
    for shape in SHAPES:
        sides = {name for side in (shape.actual, shape.predicted) for name in side[:2] if name}
        names = [list(one.rows[0]) for one in FIXTURES.values()]
        own = [one for one in names if shape.is_meant(one) and shape_of(one).read is shape.read]
        assert any(not sides or sides & {*one} for one in own), shape


@every_fixture
def test_the_ground_truth_is_at_the_second_rank(tmp_path, name):
    """The MRR is 1/2, in Python and in the shell; a file of one side beside another."""
    golden, run = sides(name, write(tmp_path, FIXTURES[name].rows), tmp_path)
    dataset = load_dataset(golden, **({} if run is None else {"retrieved": run}))
    assert dataset.evaluator(no_ground_truth="zero").evaluate(2).averages()["mrr"] == 0.5
    assert "1 query" in str(audit(load_dataset(golden)))
    line = ["evaluate", *map(str, filter(None, (golden, run))), "-k", "2", "--format", "csv"]
    done = CliRunner().invoke(main, line)
    if name in ("spans", "LangSmith's runs") and done.exit_code:
        line[1:3] = [str(golden), "--run", str(run)]
        done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.output
    assert re.search(r"^mrr.*\b0\.5", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, one in FIXTURES.items() for kind in one.formats]
)
def test_the_format_makes_no_difference(tmp_path, name, kind):
    """Read from any of them, data sets are equal to that of JSON lines."""
    rows = FIXTURES[name].rows
    read = {"rows": lambda: rows, "frame": lambda: pd.DataFrame(rows)}
    source = read.get(kind, lambda: write(tmp_path, rows, kind))()
    lines = write(tmp_path, rows)
    golden, run = sides(name, lines, tmp_path)
    expected, found = (
        load_dataset(one if golden == lines else golden, tags=False,
                     **({} if run is None else {"retrieved": one if run == lines else run}))
        for one in (lines, source)
    )  # fmt: skip
    assert found == expected
    if golden == lines:
        fields = {"predicted_field": None} if FIXTURES[name].holds == "golden" else {}
        again = read_jsonl(lines, tags=False, **fields)
        assert (again.actual, again.questions) == (expected.actual, expected.questions)


@every_fixture
@pytest.mark.parametrize("folder", [DOCS, DOCS / "ko"], ids=["English", "Korean"])
def test_a_table_names_its_tool_and_its_fields(name, folder):
    """In one row: where the documents are, and whose names these are, in both languages."""
    fixture = FIXTURES[name]
    own = [one for one in SHAPES if one.read is shape_of(fixture.rows[0]).read]
    known = {one for shape in own for side in (shape.actual, shape.predicted) for one in side[:2]}
    fields = [one for one in fixture.rows[0] if one in known]
    tool = KOREAN.get(fixture.tool, fixture.tool) if folder.name == "ko" else fixture.tool
    page = (folder / "files.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|") and tool in line]
    assert rows, tool
    assert not fields or any(f"`{one}`" in row for one in fields for row in rows), (tool, fields)


# Damage

N_CHANGES = int(os.environ.get("KRAG_EVAL_FUZZ_EXAMPLES", "4"))
JUNK = [None, True, 7, -0.5, 1e308, 10**400, math.nan, "", "x" * 300, "\ud800", "[1, 2", [], {},
        [[]], [None], [{}], {"a": {"b": [1]}}, ["n", "n"], [["n", "x"]], [7]]  # fmt: skip


def places_in(content, path=()):
    """Return the way to every value in nested lists and dicts."""
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    return [one for key, value in inner for one in (
        (*path, key), *(places_in(value, (*path, key)) if isinstance(value, dict | list) else ())
    )]  # fmt: skip


def damaged(rows):
    """Yield rows in which one value was replaced, left out or repeated; each place meets a few."""
    changes = cycle([*JUNK, KeyError, copy])
    for place in places_in(rows):
        for change in islice(changes, N_CHANGES):
            changed = copy.deepcopy(rows)
            holder = changed
            for key in place[:-1]:
                holder = holder[key]
            if change is KeyError:
                del holder[place[-1]]
            elif change is copy and isinstance(holder[place[-1]], list):
                holder[place[-1]] *= 2
            elif change is not copy:
                holder[place[-1]] = change
            if all(isinstance(one, dict) for one in changed):
                yield changed


def texts_of(rows):
    """Yield what files of damaged rows hold: also lines cut off, and keys that come twice."""
    lines = "".join(f"{json.dumps(one)}\n" for one in rows)
    yield from (lines[:at] for at in range(1, len(lines), max(len(lines) // 9, 1)))
    yield from (lines.replace(f'"{key}":', f'"{key}": 1, "{key}":', 1) for key in rows[0])
    for changed in damaged(rows):
        yield "".join(f"{json.dumps(one)}\n" for one in changed)


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@every_fixture
def test_what_is_damaged_is_read_or_refused_by_file_and_line(tmp_path, name):
    """Any other error than our own is a finding, and so is one that does not say where it is."""
    path = tmp_path / "rows.jsonl"
    golden, run = sides(name, path, tmp_path)
    told = []
    for text in texts_of(FIXTURES[name].rows):
        path.write_text(text, "utf-8")
        told += [
            outcome(lambda: load_dataset(path), text),
            outcome(lambda: read_jsonl(path), text),
            outcome(lambda: load_dataset(golden, retrieved=run or path), text),
        ]
    assert {"read", "refused"} <= {*told}


def outcome(read, text):
    """Return what became of a file; a query that cannot be evaluated is named by its number."""
    dataset, refused = refusal(read, text)
    if refused is not None:
        assert isinstance(refused, DatasetError), text
        assert refused.file is not None, text
        assert str(refused).isprintable(), text
        assert len(str(refused)) < 2_000, text
        return "refused"
    if dataset.predicted is None:
        return "read"
    evaluator = dataset.evaluator(no_ground_truth="zero")
    _result, refused = refusal(lambda: evaluator.evaluate(2), text)
    assert refused is None or refused.query is not None, f"{refused!r}: {text}"
    return "read" if refused is None else "not evaluated"


def refusal(call, text):
    """Return what a call returns, or how it refuses; any other error is a finding."""
    try:
        return call(), None
    except Refusal as error:
        return None, error
    except Exception as error:
        raise AssertionError(f"{error!r}: {text}") from error
