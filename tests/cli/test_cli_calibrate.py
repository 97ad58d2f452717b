"""``krag-eval calibrate``: labelled pairs in, a threshold out."""

import csv
import io
import json
from pathlib import Path

import pytest
from cli_runs import refusal, run

from krag_eval import calibrate

# Of four words: all four, three, one and none are shared, so ROUGE-1 is 1, 0.75, 0.25 and 0.
PAIRS = [
    ("a b c d", "a b c d", True),
    ("a b c d", "a b c x", True),
    ("a b c d", "a x y z", False),
    ("a b c d", "w x y z", False),
]
BEST = (0.75 + 0.25) / 2


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Write the pairs as JSON lines."""
    path = tmp_path / "pairs.jsonl"
    rows = (dict(zip(("actual", "predicted", "relevant"), pair, strict=True)) for pair in PAIRS)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def test_the_threshold_is_halfway_between_what_it_separates(pairs: Path) -> None:
    """Derived by hand, and what Python says."""
    content = json.loads(run("calibrate", pairs, "--matcher", "rouge1", "--format", "json").stdout)
    assert content["best_threshold"] == BEST == calibrate("rouge1", PAIRS).best_threshold
    assert content["gap"] == [0.25, 0.75]
    assert tuple(content["interval"]) == calibrate("rouge1", PAIRS).interval
    assert (content["precision"], content["recall"], content["f1"]) == (1, 1, 1)
    assert [row["pair"] for row in content["borderline"]] == [1, 2, 0, 3]


def test_what_is_printed(pairs: Path) -> None:
    """The threshold, the pairs nearest to it, and how to go on."""
    output = run("calibrate", pairs, "--matcher", "rouge1", "-n", 2).stdout
    assert "0.5000" in output
    # No interval: every threshold in this range decides as the labels do.
    assert "any above 0.2500 up to 0.7500 separates all pairs" in output
    assert "a b c x" in output
    assert "w x y z" not in output
    assert output.endswith("--matcher rouge1 --threshold 0.5000\n")


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_a_table(tmp_path: Path, ending: str, delimiter: str) -> None:
    """Labels as people type them into a spreadsheet, in its encoding."""
    path = tmp_path / f"pairs.{ending}"
    labels = ("TRUE", "yes", "0", " No ")
    rows = [(*pair[:2], label) for pair, label in zip(PAIRS, labels, strict=True)]
    with path.open("w", encoding="cp949", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(
            [("actual", "predicted", "relevant"), *rows]
        )
    options = ("--matcher", "rouge1", "--format", "json", "--encoding", "cp949")
    assert json.loads(run("calibrate", path, *options).stdout)["best_threshold"] == BEST


def test_outputs(pairs: Path, tmp_path: Path) -> None:
    """The curve has a row per similarity above 0: 1, 0.75 and 0.25; the plot is drawn."""
    plot = tmp_path / "curve.png"
    result = run("calibrate", pairs, "--matcher", "rouge1", "--csv", "-", "--plot", plot)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [float(row["threshold"]) for row in rows] == [1, 0.75, 0.25]
    assert [row["found"] for row in rows] == ["1", "2", "2"]
    assert plot.stat().st_size > 1000


def test_from_standard_input(pairs: Path) -> None:
    """As other commands read it."""
    result = run("calibrate", "-", "--matcher", "rouge1", stdin=pairs.read_text("utf-8"))
    assert "0.5000" in result.stdout


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('{"actual": "a", "predicted": "b", "relevant": "maybe"}', ":2"),
        ('{"actual": "a", "predicted": "b", "relevant": 2}', ":2"),
        ('{"actual": "a", "predicted": "b", "relevant": null}', ":2"),
        ('{"actual": "a", "predicted": "b"}', ":2"),
        ('{"actual": "a", "predicted": "b", "relevant": true}', ""),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, line: str, place: str) -> None:
    """By its line; labels that are all alike, by the file."""
    path = tmp_path / "pairs.jsonl"
    path.write_text(f'{{"actual": "a", "predicted": "a", "relevant": true}}\n{line}\n', "utf-8")
    assert refusal("calibrate", path, "--matcher", "rouge1").startswith(f"{path}{place}:")


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    """By the name of the file."""
    path = tmp_path / "pairs.csv"
    path.write_text("actual,predicted\na,b\n", "utf-8")
    message = refusal("calibrate", path)
    assert message.startswith(f"{path}:")
    assert "relevant" in message


def test_options_are_named(pairs: Path) -> None:
    """A matcher without a threshold, by its option; nothing is written over what is read."""
    assert refusal("calibrate", pairs, "--matcher", "text").startswith("--matcher")
    assert refusal("calibrate", pairs, "-n", "0").startswith("-n")
    assert refusal("calibrate", pairs, "--csv", pairs).startswith("--csv")
