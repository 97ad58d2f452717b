"""Cells that hold several ids: parted where somebody says how, and refused where nobody does."""

import json

import pandas as pd
import pytest

from krag_eval import evaluate_file, load_dataset
from krag_eval.datasets import read_jsonl
from krag_eval.errors import Advice, DatasetError, InvalidInput

# Both ids of "1?" are found, and the one of "2?": recall 1. Taken for one id each, the first cell
# is not found, and recall is 1/2.
SEPARATORS = [",", ";", "|", ", ", " | "]


def table(joint, side="actual"):
    """Return a row for each question, the ids of one side in one cell."""
    both = {"actual": ["d1", "d2"], "predicted": ["d2", "d1"]}
    cells = {name: joint.join(ids) if name == side else json.dumps(ids)
             for name, ids in both.items()}  # fmt: skip
    return [{"question": "1?", **cells}, {"question": "2?", "actual": "d3", "predicted": "d3"}]


def saved(path, rows):
    """Write rows as a table, or as JSON lines."""
    if path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def separator_in(error):
    """Return the separator that an error advises, if it advises one."""
    settings = error.fix.settings if isinstance(error.fix, Advice) else ()
    return dict(settings).get("separator")


@pytest.mark.parametrize("side", ["actual", "predicted"])
@pytest.mark.parametrize("joint", SEPARATORS)
@pytest.mark.parametrize("door", [".csv", ".jsonl", "rows", "frame"])
def test_a_separator_parts_cells(tmp_path, door, joint, side):
    """Spaces around it do not count; a cell without it holds one id, and it is said."""
    rows = table(joint, side)
    source = {"rows": rows, "frame": pd.DataFrame(rows)}.get(door)
    source = saved(tmp_path / f"table{door}", rows) if source is None else source
    dataset = load_dataset(source, separator=joint.strip())
    assert dataset.actual == [["d1", "d2"], ["d3"]]
    assert dataset.predicted == [["d2", "d1"], ["d3"]]
    assert dataset.evaluator().calculate_recall()["macro_recall"] == 1
    assert [one for one in dataset.notes if side in one and repr(joint.strip()) in one]


@pytest.mark.parametrize("side", ["actual", "predicted"])
@pytest.mark.parametrize("joint", SEPARATORS)
@pytest.mark.parametrize("door", [".csv", ".jsonl", "rows", "frame"])
def test_a_cell_of_several_ids_is_refused(tmp_path, door, joint, side):
    """By its place, with the separator that parts it, also where the cell is taken as text."""
    rows = table(joint, side)
    source = {"rows": rows, "frame": pd.DataFrame(rows)}.get(door)
    source = saved(tmp_path / f"table{door}", rows) if source is None else source
    for cells in ("text", "list"):
        with pytest.raises(DatasetError) as caught:
            load_dataset(source, cells=cells)
        assert separator_in(caught.value) == joint.strip()
        place = caught.value.place
        assert place is not None
        assert place.row in (0, 2) or place.line == 1


def test_a_list_of_one_is_refused_by_every_door(tmp_path):
    """Nothing is parted that somebody wrote as a list, and nothing found in silence."""
    rows = [{"id": "q1", "question": "1?", "actual": ["d1,d2"], "predicted": ["d2", "d1"]}]
    path = saved(tmp_path / "rows.jsonl", rows)
    golden = saved(tmp_path / "golden.jsonl", [{**rows[0], "predicted": []}])
    run = saved(tmp_path / "run.jsonl", [{"id": "q1", "predicted": ["d2", "d1"]}])
    for read in (
        lambda: load_dataset(rows),
        lambda: read_jsonl(path),
        lambda: evaluate_file(path, 2),
        lambda: evaluate_file(path, 2, chunk_size=1),
        lambda: load_dataset(golden, retrieved=run),
        lambda: evaluate_file(golden, run, 2),
        lambda: evaluate_file(golden, run, 2, chunk_size=1),
    ):
        with pytest.raises(DatasetError) as caught:
            read()
        assert separator_in(caught.value) == ","


def test_two_files_are_parted_alike(tmp_path):
    """The golden set in a spreadsheet, the run in lines; what was said of a run stays said."""
    golden = saved(tmp_path / "golden.csv", [{"question": "1?", "actual": "d1;d2"}])
    run = saved(tmp_path / "run.jsonl", [{"question": "1?", "predicted": "d2;d1"}])
    dataset = load_dataset(golden, retrieved=run, separator=";")
    assert (dataset.actual, dataset.predicted) == ([["d1", "d2"]], [["d2", "d1"]])
    assert {one.split()[3] for one in dataset.notes if "parted at" in one} == {
        "actual",
        "predicted",
    }
    with pytest.raises(DatasetError):
        load_dataset(golden, retrieved=[{"question": "1?", "predicted": ["d1"]}], cells="text")


def test_lists_beside_the_ground_truth_are_parted_as_well(tmp_path):
    """Documents that must not come back, that somebody looked at, and that an answer cited."""
    row = {"question": "1?", "actual": "d1", "predicted": "d1;d2", "unwanted": "d2;d3",
           "cited": "d1", "judged": "d1;d2"}  # fmt: skip
    dataset = load_dataset(saved(tmp_path / "table.csv", [row]), separator=";")
    assert dataset.unwanted == [["d2", "d3"]]
    assert dataset.cited == [["d1"]]
    assert dataset.judged == [["d1", "d2"]]


@pytest.mark.parametrize(
    ("actual", "predicted"),
    [
        ("d1,d2", ["d3"]),
        ("d1,d2", ["d1,d2", "d1"]),
        ("nine,", ["nine"]),
        ("It opens at nine, or ten.", ["ten."]),
        ([{"page_content": "d1,d2"}], ["d1"]),
    ],
    ids=["none of the other side", "an id there", "one part", "a sentence", "a text"],
)
def test_what_is_one_document_stays_one(actual, predicted):
    """A comma alone makes no list."""
    row = {"question": "1?", "actual": actual, "predicted": predicted}
    dataset = load_dataset([row], cells="text")
    assert len(dataset.actual[0]) == 1


def test_a_separator_that_is_none_of_the_cell_leaves_it_whole():
    """Who names one says how cells are parted."""
    row = {"question": "1?", "actual": "d1,d2", "predicted": ["d1"]}
    assert load_dataset([row], separator="|").actual == [["d1,d2"]]


@pytest.mark.parametrize("separator", ["", 5, ["|"]])
def test_a_separator_is_text(separator):
    """Refused with the other options."""
    with pytest.raises(InvalidInput) as caught:
        load_dataset([{"actual": "a"}], separator=separator)
    assert caught.value.argument == "separator"
