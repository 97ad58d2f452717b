"""``--by``: averages within slices of the queries, and a verdict about each."""

import re
from pathlib import Path

import pytest
from cli_runs import run, written
from places import DOCS

PAGE = DOCS / "diagnosis.md"
# The example of the page: two systems that are worse in different places.
CORPUS = ["wiki"] * 60 + ["chat"] * 40 + ["news"] * 6
NEW = {*range(6), *range(60, 78)}
OLD = {*range(20), *range(60, 66)}
CALL = "evaluate new.jsonl -k 5"


def shown(command):
    """Return an example on the page, and the lines it shows."""
    found = re.search(rf"\$ krag-eval ({command} .*)\n((?:.*\n)+?)```", PAGE.read_text("utf-8"))
    return found[1], [line for line in found[2].splitlines() if line != "…"]


def system(name, misses, corpus=CORPUS):
    rows = [
        {"question": f"Question {i}?", "actual": [f"p{i}"], "corpus": one,
         "predicted": ["x", "y"] if i in misses else [f"p{i}"]}
        for i, one in enumerate(corpus)
    ]  # fmt: skip
    written(f"{name}.jsonl", rows)


@pytest.fixture(autouse=True)
def _new(sample):
    system("new", NEW)


def test_the_guide_shows_what_evaluate_prints():
    """The shares are 54 of 60 and 22 of 40, the rest of wiki 28 of 46; chat lost 18 of 24."""
    line, lines = shown("evaluate")
    output = run(line).stdout
    assert "\n".join(lines) in output
    chat, wiki = (line.split() for line in lines[3:5])
    assert chat[:6] == ["chat", "macro_recall@5", "40", "75", "%", f"{22 / 40:.4f}"]
    assert wiki[:6] == ["wiki", "macro_recall@5", "60", "25", "%", f"{54 / 60:.4f}"]
    assert wiki[9] == f"{54 / 60 - 28 / 46:.4f}"
    plain, _, slices = output.partition("3 slices of 106 queries by corpus")
    assert "Too few queries for more than a count: news (6)." in slices
    # The averages above are printed as without slices.
    without = run(re.sub(r" --by \S+", "", line)).stdout.partition("signature: ")[0]
    assert (without.strip(), "slice" in without) == (plain.strip(), False)


def test_the_report_has_the_slices():
    """Of every tag that was named."""
    run(f"{CALL} --by corpus --by items --report out.html")
    told = Path("out.html").read_text("utf-8")
    assert '<h3 dir="auto">By corpus</h3>' in told
    assert '<h3 dir="auto">By number of ground-truth items</h3>' in told


def test_several_tags_and_those_that_are_built_in():
    """One after the other, each once; lengths of the truth are known in memory."""
    output = run(f"{CALL} --by items --by golden_length --by corpus --by items").stdout
    found = re.findall(r"slices? of 106 queries by (\w+)", output)
    assert found == ["items", "golden_length", "corpus"]
    assert "by items (ground-truth items)" in output


def test_in_chunks_they_are_those_of_a_run_in_memory():
    """With the rows of all queries."""
    chunked = run(f"{CALL} --by corpus --chunk-size 10 --per-query rows.csv").stdout
    whole = run(f"{CALL} --by corpus").stdout
    assert chunked.partition("3 slices")[2].startswith(whole.partition("3 slices")[2])


def test_names_are_fitted_and_many_slices_cut():
    """No line is wider than the terminal, and what is left out is counted."""
    system("long", NEW, [f"{name}, 참고 자료 " * 9 for name in CORPUS])
    output = run("evaluate long.jsonl --budget 1000 --by corpus").stdout.partition("3 slices")[2]
    assert all(len(line) <= 100 for line in output.splitlines())
    assert "wiki, 참고 " in output
    system("many", NEW, [f"c{i % 53}" for i in range(106)])
    result = run("evaluate many.jsonl -k 5 --by corpus")
    assert "and 152 more rows" in result.stdout
    assert "too many to mean anything" in result.stderr


def test_a_tag_that_there_is_not_is_refused():
    """Before anything is printed."""
    result = run(f"{CALL} --by corpsu")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("krag-eval: error: --by ")


def test_the_guide_shows_what_gate_prints():
    """Chat falls from 34 of 40 to 22 of 40 while the whole improves: not good enough."""
    system("old", OLD)
    for name in ("old", "new"):
        run(f"evaluate {name}.jsonl -k 5 --json {name}.json")
    line, lines = shown("gate")
    result = run(line)
    assert result.exit_code == 1
    *passed, digest = result.stdout.splitlines()
    assert passed == [line for line in lines if line.startswith("passed")]
    assert digest.startswith("Digest of the ground truth: ")
    assert result.stderr.splitlines() == [line for line in lines if line.startswith("failed")]
    assert run(line.partition(" --by")[0]).exit_code == 0
