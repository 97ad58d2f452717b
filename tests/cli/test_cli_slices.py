"""``--by``: averages within slices of the queries, and a verdict about each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_runs import refusal, run

PAGE = Path(__file__).parents[2] / "docs" / "slices.md"
# The example of the page: two systems that are worse in different places.
CORPUS = ["wiki"] * 60 + ["chat"] * 40 + ["news"] * 6
NEW = {*range(6), *range(60, 78)}
OLD = {*range(20), *range(60, 66)}


def shown(command: str) -> tuple[list[str], list[str]]:
    """Return the arguments of an example on the page, and the lines it shows."""
    found = re.search(rf"\$ krag-eval ({command} .*)\n((?:.*\n)+?)```", PAGE.read_text("utf-8"))
    assert found is not None
    return found[1].split(), [line for line in found[2].splitlines() if line != "…"]


def written(path: Path, misses: set[int], corpus: list[str] = CORPUS) -> Path:
    rows = [
        {"question": f"Question {i}?", "actual": [f"p{i}"], "corpus": name,
         "predicted": ["x", "y"] if i in misses else [f"p{i}"]}
        for i, name in enumerate(corpus)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return written(tmp_path / "new.jsonl", NEW)


def test_the_guide_shows_what_evaluate_prints(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares are 54 of 60 and 22 of 40; the rest of wiki are 28 of 46."""
    monkeypatch.chdir(new.parent)
    arguments, lines = shown("evaluate")
    result = run(*arguments)
    assert result.exit_code == 0
    assert "\n".join(lines) in result.stdout
    assert ["wiki", "macro_recall@5", "60", f"{54 / 60:.4f}"] == lines[3].split()[:4]
    assert lines[3].split()[7:9] == [f"{28 / 46:.4f}", f"{54 / 60 - 28 / 46:.4f}"]
    _, _, slices = result.stdout.partition("3 slices of 106 queries by corpus")
    assert "Too few queries for more than a count: news (6)." in slices
    assert "signature: " in slices


def test_the_report_has_the_slices(new: Path, tmp_path: Path) -> None:
    """Of every tag that was named."""
    page = tmp_path / "out.html"
    run("evaluate", new, "-k", 5, "--by", "corpus", "--by", "items", "--report", page)
    told = page.read_text("utf-8")
    assert '<h3 dir="auto">By corpus</h3>' in told
    assert '<h3 dir="auto">By number of ground-truth items</h3>' in told


def test_without_by_nothing_is_added(new: Path) -> None:
    """The averages are printed as before."""
    plain, _, _ = run("evaluate", new, "-k", 5).stdout.partition("signature: ")
    assert run("evaluate", new, "-k", 5, "--by", "corpus").stdout.startswith(plain)
    assert "slice" not in plain


def test_several_tags_and_those_that_are_built_in(new: Path) -> None:
    """One after the other, each once; lengths of the truth are known in memory."""
    tags = ["items", "golden_length", "corpus", "items"]
    output = run("evaluate", new, "-k", 5, *(part for one in tags for part in ("--by", one))).stdout
    assert re.findall(r"slices? of 106 queries by (\w+)", output) == tags[:3]
    assert "by items (ground-truth items)" in output


def test_in_chunks_rows_are_needed(new: Path, tmp_path: Path) -> None:
    """With them, slices are those of a run in memory."""
    refused = refusal("evaluate", new, "--by", "corpus", "--chunk-size", 10)
    assert "--by" in refused
    assert "--per-query" in refused
    chunked = run("evaluate", new, "-k", 5, "--by", "corpus", "--chunk-size", 10,
                  "--per-query", tmp_path / "rows.csv").stdout  # fmt: skip
    whole = run("evaluate", new, "-k", 5, "--by", "corpus").stdout
    assert chunked.partition("3 slices")[2].startswith(whole.partition("3 slices")[2])


def test_names_are_fitted_and_many_slices_cut(tmp_path: Path) -> None:
    """No line is wider than the terminal, and what is left out is counted."""
    long = written(tmp_path / "long.jsonl", NEW, [f"{name}, 참고 자료 " * 9 for name in CORPUS])
    table = run("evaluate", long, "--budget", 1000, "--by", "corpus").stdout.partition("3 slices")[
        2
    ]
    assert all(len(line) <= 100 for line in table.splitlines())
    assert "wiki, 참고 " in table
    many = written(tmp_path / "many.jsonl", NEW, [f"c{i % 53}" for i in range(106)])
    result = run("evaluate", many, "-k", 5, "--by", "corpus")
    assert "and 152 more rows" in result.stdout
    assert "too many to mean anything" in result.stderr


def test_a_tag_that_there_is_not_is_refused(new: Path) -> None:
    """Before anything is printed."""
    assert refusal_after_warnings("evaluate", new, "--by", "corpsu").startswith("--by ")


def refusal_after_warnings(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("krag-eval: error: ")


def test_the_guide_shows_what_gate_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chat falls from 34 of 40 to 22 of 40 while the whole improves: not good enough."""
    monkeypatch.chdir(tmp_path)
    for name, misses in (("new", NEW), ("old", OLD)):
        written(tmp_path / f"{name}.jsonl", misses)
        run("evaluate", f"{name}.jsonl", "-k", 5, "--json", f"{name}.json")
    arguments, lines = shown("gate")
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [line for line in lines if line.startswith("passed")]
    assert result.stderr.splitlines() == [line for line in lines if line.startswith("failed")]
    assert run(*arguments[: arguments.index("--by")]).exit_code == 0
    assert "--by" in refusal(*arguments[:-1], "corpsu")
    assert "--by" in refusal("gate", "new.json", "--fail-under", "mrr@5=0.1", "--by", "corpus")
