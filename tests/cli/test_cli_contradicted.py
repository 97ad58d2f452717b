"""``explain --contradicted``, and what the other commands say of chunks that contradict."""

import csv
import io
import json

import pytest
from cli_runs import run, written

YEAR = "In 2024 revenue from lending rose to a record high"
LAST_YEAR = "In 2023 revenue from lending rose to a record high, too."
RENT = "시는 올해 모두 합하여 청년에게 3억원을 월세와 교육비로 지원한다"
ROWS = [
    {"question": "Revenue?", "actual": [YEAR], "predicted": ["x", LAST_YEAR]},
    {"question": "Open?", "actual": ["We open at nine."], "predicted": ["We open at nine."]},
    {"question": "월세?", "actual": [RENT], "predicted": [RENT.replace("3", "4"), RENT]},
]
# Of ten words the first two are lost, of 28 letters the number and the two behind it.
FOUND = [
    {"query": "Revenue?", "position": 0, "item": 1, "rank": 2, "share": 8 / 10,
     "kind": "number", "passage": "2024", "document": "2023", "count": 1},
    {"query": "월세?", "position": 2, "item": 1, "rank": 1, "share": 25 / 28,
     "kind": "number", "passage": "3억원을", "document": "4억원을", "count": 1},
]  # fmt: skip


@pytest.fixture(autouse=True)
def _file(sample):
    written("rows.jsonl", ROWS)


def test_a_list_of_all():
    """As a table, in Korean, as JSON and as CSV, for a program."""
    command = "explain rows.jsonl --contradicted -m coverage"
    told = run(command).stdout
    assert told.startswith("Retrieved chunks that nearly hold a passage and are another text: 2\n")
    lines = [line.split() for line in told.splitlines()]
    assert ["0", "Revenue?", "1", "2", "80", "%", "number", "2024", "2023", "1"] in lines
    assert ["2", "월세?", "1", "1", "89", "%", "number", "3억원을", "4억원을", "1"] in lines
    assert ["2", "월세?", "1", "1", "89%", "숫자", "3억원을", "4억원을", "1"] in [
        line.split() for line in run(f"{command} --lang ko").stdout.splitlines()
    ]
    content = json.loads(run(f"{command} --format json").stdout)
    assert (content["n_contradicted"], content["contradicted"]) == (2, FOUND)
    rows = csv.DictReader(io.StringIO(run(f"{command} --format csv").stdout))
    assert [*rows] == [{name: str(value) for name, value in row.items()} for row in FOUND]


def test_a_saved_result_without_texts_lists_ranks_and_shares():
    """And says how texts are kept."""
    run("evaluate rows.jsonl -m coverage --json plain.json")
    run("evaluate rows.jsonl -m coverage --json whole.json --texts")
    told = run("explain plain.json --contradicted").stdout
    assert "Texts were not kept" in told
    content = json.loads(run("explain plain.json --contradicted --format json").stdout)
    unknown = dict.fromkeys(("kind", "passage", "document", "count"))
    assert content["contradicted"] == [row | unknown for row in FOUND]
    content = json.loads(run("explain whole.json --contradicted --format json").stdout)
    assert content["contradicted"] == FOUND


def test_where_there_are_none():
    """The list is empty, and an evaluation says nothing."""
    told = run("explain rows.jsonl --contradicted -m text").stdout
    assert told.startswith("Retrieved chunks that nearly hold a passage and are another text: 0\n")
    assert "This matcher does not look for other texts; coverage does." in told
    assert "contradict" not in run("evaluate rows.jsonl -m text").stdout


def test_an_evaluation_says_how_many():
    """In a line, and in its JSON; also of a run in chunks, which keeps no evidence."""
    for how in ("", " --chunk-size 2 --per-query rows.csv"):
        command = f"evaluate rows.jsonl -m coverage{how}"
        told = " ".join(run(command).stdout.split())
        assert "2 retrieved chunks are other texts than a passage" in told
        assert "krag-eval explain FILE --contradicted." in told
        assert json.loads(run(f"{command} --format json").stdout)["n_contradicted"] == 2


def test_a_miss_names_the_chunk_that_contradicts():
    """Where a rank stands."""
    told = run("misses rows.jsonl -m coverage -k 2").stdout
    assert "2 differs" in told
    content = json.loads(run("misses rows.jsonl -m coverage -k 2 --format json").stdout)
    (row,) = content["misses"]
    assert (row["rank"], row["contradicted_by"]) == (None, 2)


def test_one_query_is_shown_in_every_format():
    """As JSON with all documents and items, as CSV a row per document, as Markdown two tables."""
    command = "explain rows.jsonl 0 -m coverage -k 2"
    content = json.loads(run(f"{command} --format json").stdout)
    assert (content["query"], content["position"], content["status"]) == ("Revenue?", 0, "missed")
    assert [one["text"] for one in content["documents"]] == ROWS[0]["predicted"]
    (item,) = content["items"]
    assert (item["outcome"], item["contradicted_by"]) == ("nothing in common", [2])
    assert content["metrics"]["rank"] is None
    rows = csv.DictReader(io.StringIO(run(f"{command} --format csv").stdout))
    assert [row["contradicts"] for row in rows] == ["", "1"]
    markdown = run(f"{command} --format markdown").stdout
    assert "| rank | similarity | credit |" in markdown
    assert "| item | grade | outcome |" in markdown
