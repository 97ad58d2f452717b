"""``krag-eval misses`` and ``explain``: which queries lost something, and what became of one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_runs import refusal, run
from test_cli_diagnose import ACTUAL, PAGE, PREDICTED, QUESTIONS, rows_of, written

from krag_eval import CoverageMatcher, EvaluationResult, OfflineRetrievalEvaluator

BY_COVERAGE = ("--matcher", "coverage")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return written(tmp_path / "results.jsonl", rows_of(PREDICTED))


def result_of(labels: list[str] | None = QUESTIONS) -> EvaluationResult:
    return OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=CoverageMatcher(), queries=labels
    ).evaluate(k=[1, 2, 3])


def test_the_guide_shows_what_is_printed(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list whole, of the explanation the end."""
    monkeypatch.chdir(rows.parent)
    text = PAGE.read_text("utf-8")
    found = re.search(
        r"\$ krag-eval (misses .*)\n((?:.*\n)+?)\$ krag-eval (explain .*)\n…\n((?:.*\n)+?)```", text
    )
    assert found is not None
    listed, explained = run(*found[1].split()), run(*found[3].split())
    assert (listed.exit_code, explained.exit_code) == (0, 0)
    assert listed.stdout == found[2]
    assert explained.stdout.endswith(found[4])


def test_a_query_is_named_by_question_or_position(tmp_path: Path, rows: Path) -> None:
    """Of a file and of what was saved, the explanation is the one in Python."""
    saved = tmp_path / "saved.json"
    result_of().to_json(saved, texts=True)
    expected = result_of().explain("I lost my card.", k=2).to_text() + "\n"
    for source, options in ((saved, ()), (rows, BY_COVERAGE)):
        for query in ("2", "I lost my card."):
            explained = run("explain", source, query, "-k", 2, *options).stdout
            assert explained.partition("hit_rate")[0] == expected.partition("hit_rate")[0]
            assert explained.partition("Predicted")[2] == expected.partition("Predicted")[2]


def test_a_label_goes_before_a_position(tmp_path: Path) -> None:
    """The query that is called 0 is the last one; without labels, numbers are positions."""
    saved = tmp_path / "saved.json"
    result_of(["3", "2", "1", "0"]).to_json(saved)
    assert "Query 3: 0" in run("explain", saved, "0").stdout
    result_of(None).to_json(saved)
    assert run("explain", saved, "1").stdout.startswith("Query 1")


def test_misses_of_a_saved_result(tmp_path: Path) -> None:
    """At its deepest cutoff or another one; texts are not needed."""
    saved = tmp_path / "saved.json"
    result_of().to_json(saved)
    assert run("misses", saved).stdout.startswith("2 of 4 queries lost something @3")
    output = run("misses", saved, "-k", 1, "-n", 2).stdout
    assert output.startswith("3 of 4 queries lost something @1")
    assert output.endswith("and 1 more\n")
    assert re.findall(r"^\d  ", output, re.MULTILINE) == ["1  ", "2  "]
    assert "1, 2, 3" in refusal("misses", saved, "-k", 7)
    assert "--union" in refusal("misses", saved, "--union")


def test_a_shared_question_tells_no_position(tmp_path: Path) -> None:
    """In the list; explaining it says at which positions it stands."""
    saved = tmp_path / "saved.json"
    result_of(["Same?", "Same?", "Other?", "Same?"]).to_json(saved)
    lines = run("misses", saved, "-k", 2).stdout.splitlines()
    assert [line.split()[0] for line in lines if "0 of 1" in line] == ["-", "2", "-"]
    assert "0, 1, 3" in refusal("explain", saved, "Same?")
    assert "Query 3: Same?" in run("explain", saved, "3").stdout


def test_nothing_lost(tmp_path: Path) -> None:
    """One line, and no table."""
    row = {"question": "=a?", "actual": ["a"], "predicted": ["a"]}
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(row), "utf-8")
    assert run("misses", path, "-k", 1).stdout == "0 of 1 queries lost something @1\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["misses", "missing.jsonl", "-n", "0"], "-n"),
        (["misses", "missing.jsonl", "-k", "0"], "-k"),
        (["misses", "missing.jsonl"], "missing.jsonl"),
        (["explain", "missing.jsonl", "0", "--matcher", "nothing"], "--matcher"),
        (["explain", "missing.json", "0"], "missing.json"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments: list[str], named: str) -> None:
    """Options before files are read."""
    assert named in refusal(*arguments)


def test_queries_that_there_are_not(tmp_path: Path) -> None:
    """Neither by label nor by position."""
    saved = tmp_path / "saved.json"
    result_of().to_json(saved)
    assert "from 0 to 3" in refusal("explain", saved, "4")
    assert "I lost my card." in refusal("explain", saved, "I lost my cart.")
    assert "QUERY" in refusal("explain", saved, "9" * 40)


def test_a_run_in_chunks(rows: Path, tmp_path: Path) -> None:
    """Its rows tell misses, but no pairs are kept to explain; averages alone tell neither."""
    kept, bare = tmp_path / "kept.json", tmp_path / "bare.json"
    chunks = ("-k", 2, *BY_COVERAGE, "--chunk-size", 2)
    run("evaluate", rows, *chunks, "--json", kept, "--per-query", tmp_path / "rows.csv")
    run("evaluate", rows, *chunks, "--json", bare)
    assert run("misses", kept).stdout == run("misses", rows, "-k", 2, *BY_COVERAGE).stdout
    assert "evidence" in refusal("explain", kept, "2")
    assert "rows" in refusal("misses", bare)
