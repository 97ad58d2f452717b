"""``krag-eval audit``: what is wrong with the ground truth in a file, and a verdict about it."""

import json
from pathlib import Path

import pytest
from cli_runs import printed, refusal, rows_in, run, table, written

from krag_eval import Audit, audit

# Of four documents one is not in the index, and one stands there twice; all are of few words.
ROWS = [
    {"question": "When?", "actual": ["At nine.", "Never on Mondays."]},
    {"question": "Where?", "actual": ["In Main Street.", "Nowhere at all."]},
]
CHUNKS = ["At nine.", "Never on Mondays.", "In Main Street.", {"text": "In Main Street."}]


@pytest.fixture(autouse=True)
def _files(sample):
    written("qa.jsonl", ROWS)
    written("chunks.jsonl", CHUNKS)


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [
        ("dangling,twins", 1),
        ("longer_than_chunks --fail-on twins", 1),
        ("longer_than_chunks", 0),
        ("'no_words, quoted'", 0),
    ],
)
def test_the_verdict(fail_on, code):
    """The exit code is 1 where something of a kind that was named is found."""
    result = run(f"audit qa.jsonl --index chunks.jsonl --fail-on {fail_on}")
    assert (result.exit_code, "failed: " in result.stderr) == (code, bool(code))


def test_without_an_index():
    """What needs the chunks is named as not checked."""
    output = run("audit qa.jsonl").output
    assert "dangling" not in printed(output)
    assert "Not checked without an index: dangling" in output


def test_outputs():
    """Files hold what Python finds; '-' is standard output."""
    run("audit qa.jsonl --index chunks.jsonl --json audit.json --csv rows.csv")
    expected = audit(ROWS, [*CHUNKS[:3], CHUNKS[2]])
    assert Audit.from_json("audit.json") == expected
    rows = rows_in(Path("rows.csv").read_text("utf-8"))
    assert [row["finding"] for row in rows] == list(expected.table["finding"])
    assert rows[0]["text"] == "Nowhere at all."
    streamed = run("audit qa.jsonl --index chunks.jsonl --json -").stdout
    assert json.loads(streamed) == json.loads(Path("audit.json").read_text("utf-8"))


def test_csv_leaves_the_item_of_a_question_empty():
    """A finding about a whole query has no item, and no question is a formula."""
    written("qa.jsonl", [{"question": "=1+1", "actual": [one]} for one in "ab"])
    rows = rows_in(run("audit qa.jsonl --csv -").stdout)
    found = [row for row in rows if row["finding"] == "indistinguishable"]
    assert [(row["position"], row["item"], row["text"]) for row in found] == [
        ("0", "", "'=1+1"), ("1", "", "'=1+1"),
    ]  # fmt: skip


def test_columns_of_other_names_and_other_files():
    """Known names are recognised, others can be given; standard input is JSON lines."""
    for name, fields in (
        ("ragas", ("user_input", "reference_contexts")),
        ("own", ("q", "gold")),
    ):
        written(f"{name}.jsonl", [dict(zip(fields, row.values(), strict=True)) for row in ROWS])
    known = run("audit ragas.jsonl --index chunks.jsonl")
    assert "by RAGAS's column names" in known.stderr
    own = run("audit own.jsonl --index chunks.jsonl --question-field q --actual-field gold")
    piped = run("audit - --index chunks.jsonl", stdin=Path("qa.jsonl").read_text("utf-8"))
    for result in (known, own, piped):
        assert printed(result.output)["dangling"] == ["1"]
    assert "--actual-field NAME" in refusal("audit own.jsonl")


def test_options_are_those_of_python():
    """Ids, k and the length of a run reach the audit."""
    written("ids.jsonl", [{"question": "When?", "actual": ["a", "b"]}])
    written("index.jsonl", [{"id": "a", "text": "x"}])
    assert table("audit ids.jsonl --index index.jsonl --ids")["dangling"] == ["1"]
    assert table("audit ids.jsonl -k 1")["more_items_than_k"] == ["1"]
    assert "short" not in table("audit ids.jsonl --min-run 1")
    assert run("audit ids.jsonl --index chunks.jsonl --texts").exit_code == 0


def test_ids_that_there_are_not_are_refused():
    """Documents without ids are looked up by their texts."""
    written("qa.jsonl", [{"question": "When?", "actual": [{"page_content": "a"}]}])
    assert "--texts" in refusal("audit qa.jsonl --ids")
