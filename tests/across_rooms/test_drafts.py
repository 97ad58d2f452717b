"""Rows of ground truth that nobody has accepted, or that somebody rejected."""

import json
import warnings

import pandas as pd
import pytest

from krag_eval import (
    KragEvalWarning,
    audit,
    compare,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
    reanchor,
)
from krag_eval.datasets import read_jsonl, read_traces
from krag_eval.errors import DatasetError
from krag_eval.streaming.files import RunState

# Accepted and "open" queries are answered, of the two drafts one is, and the rejected one is not:
# recall is 3 / 4 over the four that may count, and 2 / 2 without drafts.
STATUSES = ["accepted", "draft", "rejected", "open", " Draft "]
FOUND = [True, False, False, True, True]
ROWS = [
    {"id": f"q{n}", "question": f"{n}?", "actual": [f"a{n}"],
     "predicted": [f"a{n}" if found else "x"], "status": status}
    for n, (status, found) in enumerate(zip(STATUSES, FOUND, strict=True))
]  # fmt: skip
REVIEWED = [row for row in ROWS if "raft" not in row["status"]]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*rejected row"),
    pytest.mark.filterwarnings("ignore:.*are not in"),  # the run has what was rejected
]


def saved(path, rows, *fields):
    """Write some fields of rows as the name of the file says."""
    kept = [{name: row[name] for name in fields or ROWS[0]} for row in rows]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
    elif path.suffix == ".parquet":
        pd.DataFrame(kept).to_parquet(path)
    else:
        cells = [{name: json.dumps(one) if isinstance(one, list) else one
                  for name, one in row.items()} for row in kept]  # fmt: skip
        pd.DataFrame(cells).to_csv(path, index=False)
    return path


def _loaded(suffix, **how):
    def evaluated(folder, rows, **drafts):
        dataset = load_dataset(saved(folder / f"golden{suffix}", rows), **how, **drafts)
        return dataset.evaluator().evaluate(1)

    return evaluated


def _of_rows(folder, rows, **drafts):
    return load_dataset(rows, **drafts).evaluator().evaluate(1)


def _of_frame(folder, rows, **drafts):
    return load_dataset(pd.DataFrame(rows), tags=["id"], **drafts).evaluator(tags={}).evaluate(1)


def _lines(folder, rows, **drafts):
    path = saved(folder / "golden.jsonl", rows)
    return read_jsonl(path, tags=False, **drafts).evaluator().evaluate(1)


def _other_names(folder, rows, **drafts):
    rows = [{"user_input": row["question"], "reference_contexts": row["actual"],
             "retrieved_contexts": row["predicted"], "status": row["status"]}
            for row in rows]  # fmt: skip
    path = folder / "golden.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return read_jsonl(path, **drafts).evaluator().evaluate(1)


def _file(**how):
    def evaluated(folder, rows, **drafts):
        return evaluate_file(saved(folder / "golden.jsonl", rows), 1, **how, **drafts)

    return evaluated


def _two_files(**how):
    def evaluated(folder, rows, **drafts):
        golden = saved(folder / "golden.jsonl", rows, "id", "question", "actual", "status")
        run = saved(folder / "run.jsonl", rows[::-1], "id", "predicted")
        if how:
            return evaluate_file(golden, run, 1, **how, **drafts)
        return load_dataset(golden, retrieved=run, tags=False, **drafts).evaluator().evaluate(1)

    return evaluated


def _retriever(folder, rows, **drafts):
    found = {row["question"]: row["predicted"] for row in rows}
    dataset = load_dataset(rows, **drafts) if drafts else rows
    return evaluate_retriever(found.__getitem__, dataset, 1, tags={})


WAYS = {
    **{suffix: _loaded(suffix) for suffix in (".jsonl", ".csv", ".parquet")},
    ".parquet without tags": _loaded(".parquet", tags=False),
    "one text per cell": _loaded(".csv", cells="text"),
    "rows": _of_rows,
    "frame": _of_frame,
    "lines": _lines,
    "other names": _other_names,
    "file": _file(),
    "file without tags": _file(tags=False),
    "chunks": _file(chunk_size=1),
    "two files": _two_files(),
    "two files, from disk": _two_files(tags=False),
    "two files in chunks": _two_files(chunk_size=2),
    "retriever": _retriever,
}
ALL_WAYS = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@ALL_WAYS
def test_drafts_are_refused(tmp_path, way):
    """The error names the row, and the option that counts them."""
    with pytest.raises(DatasetError) as caught:
        way(tmp_path, ROWS)
    assert (caught.value.place.line or caught.value.place.row) in (1, 2, 3)  # from 0 or 1, a header
    assert "drafts" in str(caught.value.fix)


@ALL_WAYS
def test_drafts_are_counted_where_they_are_to_be(tmp_path, way):
    """In the signature and the sentence, whatever tags are kept; rejected rows never count."""
    result = way(tmp_path, ROWS, drafts="count")
    assert result.to_dict()["macro_recall@1"] == 3 / 4
    assert result.settings["unreviewed"] == "2 of 4"
    assert "unreviewed=2 of 4" in result.signature
    assert "2 of 4" in str(result).partition("signature")[0]


@ALL_WAYS
def test_what_is_no_draft_is_as_ever(tmp_path, way):
    """Nothing is said of drafts where there is none; the rejected row is left out all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = way(tmp_path, REVIEWED)
    assert result.to_dict()["macro_recall@1"] == 1.0
    assert result.n_queries == 2
    assert "unreviewed" not in result.settings
    assert sum("1 rejected row" in str(one.message) for one in caught) == 1


def test_any_other_status_is_a_tag():
    """As one of a tracker's is."""
    dataset = load_dataset(ROWS, drafts="count")
    assert dataset.tags["status"] == ["accepted", "draft", "open", "draft"]
    assert dataset.notes[-1] == "2 of 4 unreviewed"
    assert load_dataset([ROWS[0], ROWS[3]]).notes == load_dataset([ROWS[0]]).notes


@pytest.mark.parametrize("load", [load_dataset, evaluate_file, read_jsonl])
def test_nothing_but_rejected_rows_is_refused(tmp_path, load):
    """There is nothing to measure."""
    path = saved(tmp_path / "golden.jsonl", [ROWS[2]])
    with pytest.raises(DatasetError):
        load(path)


def test_a_run_is_no_ground_truth(tmp_path):
    """What its rows say of themselves is a tag."""
    golden = saved(tmp_path / "golden.jsonl", ROWS[:1], "id", "question", "actual")
    run = saved(
        tmp_path / "run.jsonl", [{**ROWS[0], "status": "rejected"}], "id", "predicted", "status"
    )
    assert load_dataset(golden, retrieved=run).tags["status"] == ["rejected"]
    assert evaluate_file(golden, run, 1, chunk_size=1).n_queries == 1


def test_examples_of_langsmith_have_their_own_status():
    """It is no field of the question."""
    examples = [{"inputs": {"q": "When?"}, "outputs": {"passages": ["nine"]}, "status": "draft"}]
    dataset = load_dataset(examples, question="q", actual="passages")
    assert dataset.tags["status"] == ["draft"]


def test_a_run_that_resumes_knows_what_it_left_out(tmp_path, monkeypatch):
    """Also of the chunks that were done before."""
    rows = [{**ROWS[n % 5], "question": f"{n}?", "id": f"q{n}"} for n in range(20)]
    path, output = saved(tmp_path / "golden.jsonl", rows), tmp_path / "rows.csv"
    how = {"per_query": output, "chunk_size": 3, "drafts": "count"}
    add, added = RunState.add, []

    def interrupted(*arguments):
        add(*arguments)
        added.append(arguments)
        if len(added) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunState, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate_file(path, 1, **how)
    with pytest.warns(KragEvalWarning, match="4 rejected rows"):
        result = evaluate_file(path, 1, **how)
    assert (result.n_queries, result.settings["unreviewed"]) == (16, "8 of 16")


def test_a_saved_data_set_has_its_drafts_still(tmp_path):
    """Whoever reads it is told again."""
    dataset = load_dataset(ROWS, drafts="count")
    dataset.save(tmp_path / "again.jsonl")
    assert load_dataset(tmp_path / "again.jsonl", drafts="count") == dataset
    with pytest.raises(DatasetError):
        load_dataset(tmp_path / "again.jsonl")


def test_a_saved_result_and_what_is_compared_know_of_drafts(tmp_path):
    """The comparison of what both have counts the drafts among it."""
    result = load_dataset(ROWS, drafts="count").evaluator().evaluate(1)
    result.to_json(tmp_path / "saved.json")
    again = type(result).from_json(tmp_path / "saved.json")
    assert again.settings["unreviewed"] == "2 of 4"
    fewer = load_dataset(ROWS[:4], drafts="count").evaluator().evaluate(1)
    with pytest.warns(KragEvalWarning, match="rest on 3 queries"):
        report = again.check(baseline=fewer, metric="recall@1", on="common")
    assert "1 of 3 (baseline), 2 of 4 (new)" in report.note
    with pytest.warns(KragEvalWarning, match="rest on 3 queries"):
        compared = compare({"all": again, "fewer": fewer}, "recall@1", on="common")
    assert "1 of 3 queries" in str(compared)


CHUNKS = [{"id": f"c{n}", "text": f"a{n} is here"} for n in range(5)]


@pytest.mark.parametrize(
    "read",
    [
        lambda rows: audit(rows),
        lambda rows: reanchor(rows, CHUNKS, CHUNKS),
        lambda rows: read_traces([], rows),
        lambda rows: evaluate_retriever(lambda question: [], rows, 1),
        lambda rows: evaluate_retriever(lambda question: [], pd.DataFrame(rows), 1),
    ],
)
def test_whatever_reads_ground_truth_refuses_drafts(read):
    """The advice says whose option it is."""
    with pytest.raises(DatasetError) as caught:
        read(ROWS)
    assert "load_dataset" in str(caught.value)
