"""``krag-eval reanchor``: the ground truth in a file, in an index that was cut anew."""

import json
import re
import shlex
from pathlib import Path

import pytest
from cli_runs import printed, refusal, rows_in, run, written
from places import DOCS

from krag_eval import load_dataset, reanchor

HOURS = "The library is open from nine to eight on weekdays and closed on Sundays"
LOANS = "Books are lent for 21 days and may be renewed two times without any fee"
OLD = [{"id": "0", "text": HOURS}, {"id": "1", "text": LOANS}]
NEW = [{"id": "0", "text": LOANS.replace("21", "28")}, {"id": "1", "text": f"Welcome. {HOURS}."}]
TYPED = "reanchor golden.jsonl --old old.jsonl --new new.jsonl"


@pytest.fixture(autouse=True)
def _files(sample):
    rows = [{"question": f"q{at}", "actual": [at], "predicted": ["0"]} for at in "01"]
    for name, lines in (("golden", rows), ("old", OLD), ("new", NEW)):
        written(f"{name}.jsonl", lines)


@pytest.mark.parametrize(("fail_on", "code"), [("gone,changed", 1), ("gone --fail-on split", 0)])
def test_the_verdict(fail_on, code):
    """The exit code is 1 where a ground truth is in a state that was named."""
    result = run(f"{TYPED} --fail-on {fail_on}")
    assert (result.exit_code, "failed: changed" in result.stderr) == (code, bool(code))


def test_what_is_printed():
    """Counts, the places that need a look, and what was assumed and dropped."""
    output = run(TYPED).output
    assert printed(output)["absorbed"][:2] == ["1", "50.0"]
    assert "100 % of the labels" in output
    assert "read as ids" in output
    assert "Of the old index, and not in the new data set: predicted." in output
    assert "The old index has 2 chunks, the new one 2 chunks." in output
    assert "chunk 0 says otherwise" in " ".join(output.split())


def test_outputs():
    """Files hold what Python finds; '-' is standard output, and the new data set is none."""
    run(f"{TYPED} -o new_golden.csv --csv rows.csv --report page.html")
    expected = reanchor("golden.jsonl", OLD, NEW)
    assert load_dataset("new_golden.csv") == expected.dataset
    states = [row["state"] for row in rows_in(Path("rows.csv").read_text("utf-8"))]
    assert states == ["absorbed", "changed"]
    page = Path("page.html").read_text("utf-8")
    assert "<h1>Labels after re-chunking</h1>" in page
    assert "1 (changed)" not in page
    assert json.loads(run(f"{TYPED} --json -").stdout) == json.loads(json.dumps(expected.to_dict()))
    for name in ("-", "golden.txt", "old.jsonl"):
        assert "-o" in refusal(f"{TYPED} -o {name}")


def test_refusals_name_the_options():
    """What Python calls arguments are options here."""
    written("other.jsonl", [{"id": "a", "text": HOURS}])
    assert "--old" in refusal(TYPED.replace("old.jsonl", "other.jsonl"))
    written("golden.jsonl", [{"question": "q", "actual": ["0", "7"]}])
    assert "--by id" in refusal(TYPED)


@pytest.mark.parametrize("folder", ["", "ko"])
def test_the_page(folder):
    """What docs/rechunking.md shows is what is printed and written, in both languages."""
    page = (DOCS / folder / "rechunking.md").read_text("utf-8")
    page = re.split(r"^## (?:Several versions|한 색인에)", page, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^```(?:json|console)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    *files, console, piece = blocks
    for name, lines in zip(("old", "new", "golden"), files, strict=True):
        Path(f"{name}.jsonl").write_text(lines, "utf-8")
    typed, _, shown = console.partition("\n")
    result = run(*shlex.split(typed)[2:])
    printed_lines = result.stdout.replace(f"{Path.cwd()}/", "").splitlines()
    verdict = result.stderr.splitlines()
    assert shown.splitlines() == [*printed_lines[:-1], *verdict, printed_lines[-1]]
    assert piece.strip() in Path("golden.new.jsonl").read_text("utf-8").splitlines()


def test_the_lists_in_a_csv_file_are_json():
    """Several ids, none, and what a chunk says otherwise, each in one cell that JSON reads."""
    written("golden.jsonl", [{"question": "q", "actual": ["1"]}])
    run(f"{TYPED} --csv rows.csv")
    [row] = rows_in(Path("rows.csv").read_text("utf-8"))
    assert [json.loads(row[one]) for one in ("old", "new", "alternatives")] == [["1"], [], []]
    assert json.loads(row["said"]) == {"kind": "number", "passage": "21", "document": "28"}
    written(
        "new.jsonl", [{"id": "7", "text": f"Hello. {LOANS}."}, {"id": "8", "text": f"{LOANS}!"}]
    )
    run(f"{TYPED} --csv rows.csv")
    [row] = rows_in(Path("rows.csv").read_text("utf-8"))
    assert json.loads(row["new"]) + json.loads(row["alternatives"]) == ["8", "7"]
