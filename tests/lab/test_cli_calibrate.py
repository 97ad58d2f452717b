"""``krag-eval calibrate``: labelled pairs in, a threshold out."""

import csv
from pathlib import Path

import pytest
from cli_runs import content, refusal, rows_in, run, written

from krag_eval import calibrate

# Of four words: all four, three, one and none are shared, so ROUGE-1 is 1, 0.75, 0.25 and 0.
PAIRS = [
    ("a b c d", "a b c d", True),
    ("a b c d", "a b c x", True),
    ("a b c d", "a x y z", False),
    ("a b c d", "w x y z", False),
]
COLUMNS = ("actual", "predicted", "relevant")
BEST = (0.75 + 0.25) / 2
CALL = "calibrate pairs.jsonl -m rouge1"


@pytest.fixture(autouse=True)
def _pairs(sample):
    written("pairs.jsonl", [dict(zip(COLUMNS, pair, strict=True)) for pair in PAIRS])


def test_the_threshold_is_halfway_between_what_it_separates():
    """Derived by hand, it is what Python says."""
    found = content(CALL)
    assert found["best_threshold"] == BEST == calibrate("rouge1", PAIRS).best_threshold
    assert found["gap"] == [0.25, 0.75]
    assert tuple(found["interval"]) == calibrate("rouge1", PAIRS).interval
    assert (found["precision"], found["recall"], found["f1"]) == (1, 1, 1)
    assert [row["pair"] for row in found["borderline"]] == [1, 2, 0, 3]


def test_what_is_printed():
    """The threshold, the pairs nearest to it, and how to go on."""
    output = run(f"{CALL} -n 2").stdout
    # No interval: every threshold in this range decides as the labels do.
    assert "any above 0.2500 up to 0.7500 separates all pairs" in output
    assert ("a b c x" in output, "w x y z" in output) == (True, False)
    assert output.endswith("--matcher rouge1 --threshold 0.5000\n")


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_a_table(ending, delimiter):
    """Labels are read as people type them into a spreadsheet, in its encoding."""
    labels = ("TRUE", "yes", "0", " No ")
    with Path(f"pairs.{ending}").open("w", encoding="cp949", newline="") as file:
        rows = [(*pair[:2], label) for pair, label in zip(PAIRS, labels, strict=True)]
        csv.writer(file, delimiter=delimiter).writerows([COLUMNS, *rows])
    found = content(f"calibrate pairs.{ending} -m rouge1 --encoding cp949")
    assert found["best_threshold"] == BEST


def test_outputs():
    """The curve has a row per similarity above 0: 1, 0.75 and 0.25; the plot is drawn."""
    rows = rows_in(run(f"{CALL} --csv - --plot curve.png").stdout)
    assert [float(row["threshold"]) for row in rows] == [1, 0.75, 0.25]
    assert [row["found"] for row in rows] == ["1", "2", "2"]
    assert Path("curve.png").stat().st_size > 1000


def test_from_standard_input():
    """Pairs are read there as in other commands."""
    pairs = Path("pairs.jsonl").read_text("utf-8")
    assert "0.5000" in run("calibrate - -m rouge1", stdin=pairs).stdout


@pytest.mark.parametrize(
    ("label", "place"), [("maybe", ":2"), (2, ":2"), (None, ":2"), ((), ":2"), (True, "")]
)
def test_what_cannot_be_used_is_refused(label, place):
    """A label, or a lack of one, by its line; labels that are all alike by the file."""
    lacking = {"actual": "a", "predicted": "b"}
    row = lacking if label == () else lacking | {"relevant": label}
    written("bad.jsonl", [{"actual": "a", "predicted": "a", "relevant": True}, row])
    assert refusal("calibrate bad.jsonl -m rouge1").startswith(f"bad.jsonl{place}:")


def test_a_missing_column_is_refused():
    """The file is named, and so are the columns."""
    Path("pairs.csv").write_text("actual,predicted\na,b\n", "utf-8")
    message = refusal("calibrate pairs.csv")
    assert (message.startswith("pairs.csv:"), "relevant" in message) == (True, True)


def test_a_matcher_without_a_threshold_is_refused():
    """There is nothing to find for it."""
    assert refusal("calibrate pairs.jsonl -m text").startswith("--matcher")
