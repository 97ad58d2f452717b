"""``krag-eval audit``: what is wrong with the ground truth in a file, and a verdict about it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli_runs import printed, refusal, run

from krag_eval import Audit, audit

# Of four documents one is not in the index, and one stands there twice; all are of few words.
ROWS = [
    {"question": "When?", "actual": ["At nine.", "Never on Mondays."]},
    {"question": "Where?", "actual": ["In Main Street.", "Nowhere at all."]},
]
CHUNKS = ["At nine.", "Never on Mondays.", "In Main Street.", {"text": "In Main Street."}]


@pytest.fixture
def qa(tmp_path: Path) -> Path:
    return written(tmp_path / "qa.jsonl", ROWS)


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    return written(tmp_path / "chunks.jsonl", CHUNKS)


def written(path: Path, lines: list[object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return path


def test_findings_are_counted_and_shown(qa: Path, chunks: Path) -> None:
    """With the places; without a verdict the command ends with 0."""
    result = run("audit", qa, "--index", chunks)
    assert result.exit_code == 0
    rows = printed(result.output)
    assert rows["dangling"] == ["1"]
    assert rows["twins"] == ["1"]
    assert rows["short"] == ["4"]
    assert "0" not in [cells[0] for cells in rows.values()]
    (rest,) = (line for line in result.output.splitlines() if line.startswith("Nothing else: "))
    assert "no_words" in rest
    assert "query 1, item 2: Nowhere at all. (the chunks hold 0 of 3 words)" in result.output
    assert "and 1 more" in result.output


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [
        (["dangling,twins"], 1),
        (["longer_than_chunks", "twins"], 1),
        (["longer_than_chunks"], 0),
        (["no_words, quoted"], 0),
    ],
)
def test_the_verdict(qa: Path, chunks: Path, fail_on: list[str], code: int) -> None:
    """1 where something of the kind was found."""
    options = [part for name in fail_on for part in ("--fail-on", name)]
    result = run("audit", qa, "--index", chunks, *options)
    assert result.exit_code == code
    assert ("failed: " in result.stderr) == bool(code)


def test_without_an_index(qa: Path) -> None:
    """What needs one is not checked; asking for it is refused before the file is read."""
    output = run("audit", qa).output
    assert "dangling" not in printed(output)
    assert "Not checked without an index: dangling" in output
    assert "--index CHUNKS" in refusal("audit", qa.parent / "missing.jsonl", "--fail-on", "twins")


def test_outputs(qa: Path, chunks: Path, tmp_path: Path) -> None:
    """The same as from Python."""
    saved, table = tmp_path / "audit.json", tmp_path / "rows.csv"
    run("audit", qa, "--index", chunks, "--json", saved, "--csv", table)
    expected = audit(ROWS, [*CHUNKS[:3], CHUNKS[2]])
    assert Audit.from_json(saved) == expected
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["finding"] for row in rows] == list(expected.table["finding"])
    assert rows[0]["text"] == "Nowhere at all."
    streamed = run("audit", qa, "--index", chunks, "--json", "-")
    assert json.loads(streamed.stdout) == json.loads(saved.read_text("utf-8"))


def test_csv_leaves_the_item_of_a_question_empty(tmp_path: Path) -> None:
    """And no question is a formula."""
    rows = [{"question": "=1+1", "actual": ["a"]}, {"question": "=1+1", "actual": ["b"]}]
    output = run("audit", written(tmp_path / "qa.jsonl", rows), "--csv", "-").stdout
    read = [row for row in csv.DictReader(output.splitlines())
            if row["finding"] == "indistinguishable"]  # fmt: skip
    assert [(row["position"], row["item"], row["text"]) for row in read] == [
        ("0", "", "'=1+1"),
        ("1", "", "'=1+1"),
    ]


def test_columns_of_other_names_and_other_files(chunks: Path, tmp_path: Path) -> None:
    """Known ones are recognised, others named; standard input is JSON lines."""
    ragas = [{"user_input": row["question"], "reference_contexts": row["actual"]} for row in ROWS]
    own = [{"q": row["question"], "gold": row["actual"]} for row in ROWS]
    known = run("audit", written(tmp_path / "ragas.jsonl", ragas), "--index", chunks)
    assert "by RAGAS's column names" in known.stderr
    named = run("audit", written(tmp_path / "own.jsonl", own), "--index", chunks,
                "--question-field", "q", "--actual-field", "gold")  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    piped = run("audit", "-", "--index", chunks, stdin=text)
    for result in (known, named, piped):
        assert printed(result.output)["dangling"] == ["1"]
    assert "--actual-field NAME" in refusal("audit", tmp_path / "own.jsonl")


def test_options_are_those_of_python(chunks: Path, tmp_path: Path) -> None:
    """Ids, k and the length of a run."""
    rows = [{"question": "When?", "actual": ["a", "b"]}]
    ids = written(tmp_path / "ids.jsonl", rows)
    index = written(tmp_path / "index.jsonl", [{"id": "a", "text": "x"}])
    assert printed(run("audit", ids, "--index", index, "--ids").output)["dangling"] == ["1"]
    assert printed(run("audit", ids, "-k", 1).output)["more_items_than_k"] == ["1"]
    assert "short" not in printed(run("audit", ids, "--min-run", 1).output)
    assert run("audit", ids, "--index", chunks, "--texts").exit_code == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--fail-on", "twinz"], "--fail-on"),
        (["-k", "0"], "-k"),
        (["--min-run", "0"], "--min-run"),
        (["--tokenizer", "nothing"], "--tokenizer"),
        (["--index", "missing.jsonl"], "missing.jsonl"),
        (["--ids"], "--texts"),
    ],
)
def test_what_cannot_be_audited_is_refused(tmp_path: Path, options: list[str], named: str) -> None:
    """With 2, and one line that names the option or the file."""
    rows = [{"question": "When?", "actual": [{"page_content": "a"}]}]
    assert named in refusal("audit", written(tmp_path / "qa.jsonl", rows), *options)


def test_standard_input_is_read_once() -> None:
    """Questions or chunks, not both."""
    assert "--index" in refusal("audit", "-", "--index", "-")


def test_outputs_are_not_what_is_read(qa: Path, chunks: Path) -> None:
    """Neither the questions nor the chunks are overwritten."""
    for read in (qa, chunks):
        assert "--csv" in refusal("audit", qa, "--index", chunks, "--csv", read)
