"""What is read of neither of two files, or not as it was meant, is said."""

import csv
import json
import warnings

import pandas as pd
import pytest

from krag_eval import evaluate_file, evaluate_retriever, load_dataset
from krag_eval.cli.reading import dataset_of

GOLDEN = [{"id": "q1", "question": "When?", "actual": ["nine"]},
          {"id": "q2", "question": "Where?", "actual": ["here"]}]  # fmt: skip
FOUND = [["nine"], ["there"]]
OWN_TRUTH = ["actual", "정답", "reference_contexts", "expected_ids", "relevant_document_ids"]
RETRIEVED = {
    "reference_contexts": "retrieved_contexts",
    "정답": "검색결과",
    "expected_ids": "retrieved_ids",
    "relevant_document_ids": "retrieved_document_ids",
}


def written(path, rows):
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return path


def notes_of(way, folder, run):
    golden, file = written(folder / "golden.jsonl", GOLDEN), written(folder / "run.jsonl", run)
    if way == "in memory":
        return load_dataset(GOLDEN, retrieved=run).notes
    if way == "from disk":
        return load_dataset(golden, retrieved=file).notes
    if way == "in chunks":
        return evaluate_file(golden, file, 1, chunk_size=1).notes
    if way == "data set":
        return load_dataset(golden, retrieved=load_dataset(file)).notes
    return dataset_of(str(golden), {}, str(file)).notes


@pytest.mark.filterwarnings("ignore:The matcher")
@pytest.mark.filterwarnings("ignore:.*found nothing")
@pytest.mark.parametrize("way", ["in memory", "from disk", "in chunks", "data set", "shell"])
@pytest.mark.parametrize("name", OWN_TRUTH)
def test_the_ground_truth_of_a_run_is_not_used_and_that_is_said(tmp_path, way, name):
    """Once; that of the golden set counts."""
    field = RETRIEVED.get(name, "predicted")
    run = [{"id": row["id"], "question": row["question"], name: ["x"], field: found}
           for row, found in zip(GOLDEN, FOUND, strict=True)]  # fmt: skip
    notes = notes_of(way, tmp_path, run)
    assert sum("is not used" in note for note in notes) == 1
    assert way == "data set" or sum(name in note for note in notes if "is not used" in note) == 1


@pytest.mark.parametrize("way", ["in memory", "from disk", "in chunks", "shell"])
@pytest.mark.parametrize("more", [{}, {"actual": []}, {"context": "a page"}, {"answer": "nine"}])
def test_a_run_without_any_is_as_ever(tmp_path, way, more):
    """An empty list says nothing, and what may be anything is a tag."""
    run = [{"id": row["id"], "predicted": found, **more}
           for row, found in zip(GOLDEN, FOUND, strict=True)]  # fmt: skip
    assert not any("is not used" in note for note in notes_of(way, tmp_path, run))


DISGUISED = ["\ufeffquestion", "question\u200b", " question", "\ufeffid", "\ufeffstatus"]


def _rows(name):
    return [{name: "q1", "actual": ["nine"], "predicted": ["nine"]}]


def _csv(folder, name):
    path = folder / "golden.csv"
    cells = [[json.dumps(one) if isinstance(one, list) else one for one in row.values()]
             for row in _rows(name)]  # fmt: skip
    columns = [name, "actual", "predicted"]
    # Within quotes, as a tool does that takes the mark for a part of the name.
    pd.DataFrame(cells, columns=columns).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return path


DISGUISED_WAYS = {
    "rows": lambda folder, name: load_dataset(_rows(name)).notes,
    "frame": lambda folder, name: load_dataset(pd.DataFrame(_rows(name))).notes,
    "lines": lambda folder, name: load_dataset(written(folder / "a.jsonl", _rows(name))).notes,
    "csv": lambda folder, name: load_dataset(_csv(folder, name)).notes,
    "file": lambda folder, name: evaluate_file(written(folder / "a.jsonl", _rows(name)), 1).notes,
    "chunks": lambda folder, name: evaluate_file(written(folder / "a.jsonl", _rows(name)), 1,
                                                 chunk_size=1).notes,
    "retriever": lambda folder, name: evaluate_retriever(
        lambda question: [], [{"question": "When?", **_rows(name)[0]}], 1).notes,
}  # fmt: skip


@pytest.mark.parametrize("name", DISGUISED)
@pytest.mark.parametrize("way", DISGUISED_WAYS.values(), ids=DISGUISED_WAYS)
def test_a_name_with_invisible_characters_is_no_tag_and_that_is_said(tmp_path, name, way):
    """In a note or, where there are none, a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = way(tmp_path, name)
    told = [*notes, *(str(one.message) for one in caught)]
    assert sum("invisible" in one for one in told) == 1
    assert "\ufefftopic" in load_dataset(_rows("\ufefftopic")).tags
