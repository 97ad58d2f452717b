"""How rows ask to be evaluated: a matcher that is given brings its own threshold."""

import json

import pytest

from krag_eval import evaluate_file, evaluate_retriever, load_dataset
from krag_eval.cli.reading import dataset_of
from krag_eval.datasets import read_jsonl

# One word is common to three and two: F1 = 2 / 5, a match at 0.01 and none at rouge1's own 0.5.
ROW = {"question": "When?", "actual": ["opens at nine"], "predicted": ["nine pounds"]}
MARK = {"krag_eval": {"evaluator": {"matcher": "rouge1", "threshold": 0.01}}}
OWN = "0.5"


def _at_once(path, **options):
    return evaluate_file(path, 1, **options)


def _in_chunks(path, **options):
    return evaluate_file(path, 1, chunk_size=1, **options)


def _two_files(path, **options):
    run = path.with_name("other.jsonl")
    run.write_text(json.dumps({"question": "When?", "predicted": ROW["predicted"]}), "utf-8")
    return evaluate_file(path, run, 1, **options)


def _asked(path, **options):
    return evaluate_retriever(lambda question: ROW["predicted"], str(path), 1, **options)


WAYS = {
    "load_dataset": lambda path, **options: load_dataset(path).evaluator(**options).evaluate(1),
    "read_jsonl": lambda path, **options: read_jsonl(path).evaluator(**options).evaluate(1),
    "at once": _at_once,
    "in chunks": _in_chunks,
    "two files": _two_files,
    "retriever": _asked,
}


@pytest.fixture
def path(written):
    return written(json.dumps(ROW | MARK))


@pytest.mark.filterwarnings("ignore:The matcher")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("options", "threshold", "recall"),
    [({}, "0.01", 1.0), ({"matcher": "rouge1"}, OWN, 0.0), ({"threshold": 0.9}, "0.9", 0.0),
     ({"matcher": "rouge1", "threshold": 0.3}, "0.3", 1.0), ({"matcher": "id"}, "-", 0.0)],
)  # fmt: skip
def test_an_option_that_is_given_wins_whole(path, way, options, threshold, recall):
    """The file's threshold is that of the file's matcher."""
    result = way(path, **options)
    assert result.settings["threshold"] == threshold
    assert result.to_dict()["macro_recall@1"] == recall


@pytest.mark.filterwarnings("ignore:The matcher")
@pytest.mark.parametrize(
    "notes",
    [lambda path: load_dataset(path).notes, lambda path: read_jsonl(path).notes,
     lambda path: _at_once(path).notes, lambda path: _in_chunks(path).notes,
     lambda path: _two_files(path).notes, lambda path: dataset_of(str(path), {}).notes],
)  # fmt: skip
def test_what_is_read_from_a_file_is_said(path, notes, written):
    """In one line, and only there."""
    assert sum("matcher=rouge1, threshold=0.01" in note for note in notes(path)) == 1
    path.write_text(json.dumps(ROW), "utf-8")
    assert not any("matcher" in note for note in notes(path))


@pytest.mark.filterwarnings("ignore:The matcher")
@pytest.mark.parametrize("of_truth", [{}, {"krag_eval": {"evaluator": {"matcher": "contains"}}}])
@pytest.mark.parametrize("chunk_size", [None, 1])
def test_how_a_run_asks_to_be_evaluated_is_not_used_and_said(written, of_truth, chunk_size):
    """The ground truth says how: nothing matches "nine pounds" as text, or as contained."""
    golden = written(
        json.dumps({"question": "When?", "actual": ROW["actual"]} | of_truth), "golden.jsonl"
    )
    run = golden.with_name("run.jsonl")
    run.write_text(json.dumps({"question": "When?", "predicted": ["nine pounds"]} | MARK), "utf-8")
    joined = load_dataset(golden, retrieved=run)
    results = joined.evaluator().evaluate(1), evaluate_file(golden, run, 1, chunk_size=chunk_size)
    for result, notes in zip(results, (joined.notes, results[1].notes), strict=True):
        assert result.settings["matcher"].startswith("contains" if of_truth else "text")
        assert result["recall@1"] == 0
        [note] = [note for note in notes if "run.jsonl asks" in note]
        assert "not used" in note
        asked = [note for note in notes if "as the file asks" in note]
        assert [("contains" in note, "rouge1" in note) for note in asked] == (
            [(True, False)] if of_truth else []
        )
