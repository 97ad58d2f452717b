"""``krag-eval misses``, ``explain`` and ``report``: what was lost, and what became of a query."""

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
    assert [line.split()[0] for line in lines if "0 of 1" in line] == ["–", "2", "–"]
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
    assert "QUERY" in refusal("explain", saved, "4")


def test_a_part_of_a_question_is_none(tmp_path: Path) -> None:
    """Whether it stands in a question or nowhere, it is to be named by its position."""
    saved = tmp_path / "saved.json"
    result_of(["Where is the bank?", "Who?", "Is the BANK open?", "Why?"]).to_json(saved)
    assert "krag-eval misses" in refusal("explain", saved, "bank")
    assert "krag-eval misses" in refusal("explain", saved, "zebra")


def test_a_query_is_named_once_behind_the_file_or_by_an_option(tmp_path: Path) -> None:
    """Both say the same."""
    saved = tmp_path / "saved.json"
    result_of().to_json(saved)
    assert run("explain", saved, "--query", "2").stdout == run("explain", saved, "2").stdout
    assert "QUERY" in refusal("explain", saved)
    assert "QUERY" in refusal("explain", saved, "2", "--query", "2")


@pytest.mark.parametrize("command", [["diagnose"], ["report", "-o", "page.html"]])
def test_chunks_are_looked_for_by_texts_that_are_there(
    tmp_path: Path, rows: Path, command: list[str]
) -> None:
    """What was saved without them names the option that keeps them."""
    saved = tmp_path / "saved.json"
    result_of().to_json(saved)
    chunks = written(tmp_path / "chunks.jsonl", [{"text": "any"}])
    assert "--texts" in refusal(*command, saved, "--index", chunks)


def test_a_tag_of_a_report_that_there_is_not(tmp_path: Path, rows: Path) -> None:
    """It is called as it was typed."""
    page = tmp_path / "page.html"
    assert "--by must be" in refusal("report", rows, "-o", page, "--by", "corpse", *BY_COVERAGE)


def test_a_run_in_chunks(rows: Path, tmp_path: Path) -> None:
    """Its rows tell misses, but no pairs are kept to explain; averages alone tell neither."""
    kept, bare = tmp_path / "kept.json", tmp_path / "bare.json"
    chunks = ("-k", 2, *BY_COVERAGE, "--chunk-size", 2)
    run("evaluate", rows, *chunks, "--json", kept, "--per-query", tmp_path / "rows.csv")
    run("evaluate", rows, *chunks, "--json", bare)
    listed = [run("misses", kept), run("misses", rows, "-k", 2, *BY_COVERAGE)]
    apart, whole = ([line.split() for line in one.stdout.splitlines()] for one in listed)
    assert [line[0] for line in apart[4:] if line] == [line[0] for line in whole[4:] if line]
    assert ("missed" in apart[2], "missed" in whole[2]) == (False, True)
    assert "evidence" in refusal("explain", kept, "2")
    assert "rows" in refusal("misses", bare)


CHUNK = {"page_content": "We close at ten.", "id": "c7", "metadata": {"source": "a.pdf", "page": 3}}


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A file whose documents have ids and metadata."""
    rows = [
        {"question": "When?", "actual": ["We open at nine."], "predicted": [CHUNK]},
        {"question": "Where?", "actual": ["Here."], "predicted": ["Here."]},
    ]
    path = tmp_path / "described.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_misses_tell_what_is_missing_and_where_it_stands(tmp_path: Path) -> None:
    """Rank 3 has the second one, beyond the cutoff; without texts there is none to show."""
    for texts, shown in ((True, "A lost card"), (False, "–")):
        result_of().to_json(tmp_path / "saved.json", texts=texts)
        lines = run("misses", tmp_path / "saved.json", "-k", 2).stdout.splitlines()
        (line,) = (line for line in lines if "I lost my card." in line)
        assert re.search(rf"card\.  +{shown}.*missed +0 of 1 +1\.0000 +3$", line)
        assert max(map(len, lines)) <= 100


def test_ids_and_metadata_in_the_shell(tmp_path: Path, described: Path) -> None:
    """From the file, and from what was saved with its texts."""
    saved = tmp_path / "saved.json"
    run("evaluate", described, "-k", 1, "--json", saved, "--texts")
    for file in (described, saved):
        assert "[id c7, source a.pdf]" in run("explain", file, "When?").stdout
        named = run("explain", file, "When?", "--metadata", "page", "--metadata", "none").stdout
        assert "[id c7, page 3]" in named


def test_texts_are_saved_in_a_result_alone(described: Path, tmp_path: Path) -> None:
    """Not without one, and not of a run in chunks; without the option there are none."""
    assert "--texts" in refusal("evaluate", described, "--texts")
    saved = tmp_path / "saved.json"
    options = ("--json", saved, "--texts", "--chunk-size", 1)
    assert "--texts" in refusal("evaluate", described, *options)
    run("evaluate", described, "-k", 1, "--json", saved)
    assert "We close" not in saved.read_text("utf-8")
    streamed = run("evaluate", described, "-k", 1, "--json", "-", "--texts").stdout
    assert json.loads(streamed)["texts"]["described"]["distinct"][1]["id"] == "c7"


def test_a_full_explanation_in_the_shell(tmp_path: Path) -> None:
    """What is cut says how to see all of it."""
    path = tmp_path / "r.jsonl"
    row = {"question": "q", "actual": ["a"], "predicted": ["a", "word " * 80 + "end"]}
    path.write_text(json.dumps(row), "utf-8")
    short, full = (run("explain", path, "q", *more).stdout for more in ((), ("--full",)))
    assert ("--full" in short, " end" in short) == (True, False)
    assert ("--full" in full, " end" in full) == (False, True)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_report_of_a_file_or_of_a_saved_result(
    tmp_path: Path, described: Path, language: str
) -> None:
    """The same page, with ids, in either language."""
    saved = tmp_path / "saved.json"
    run("evaluate", described, "-k", 1, "--json", saved, "--texts")
    options = ("--language", language, "--title", "Mine", "--metadata", "page", "-k", 1)
    pages = []
    for file in (described, saved):
        written = run("report", file, "-o", tmp_path / "page.html", *options)
        assert written.exit_code == 0
        page = (tmp_path / "page.html").read_text("utf-8")
        pages.append(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
    assert pages[0] == pages[1]
    for said in (f'lang="{language}"', "<h1>Mine</h1>", "id <b>c7</b> · page <b>3</b>"):
        assert said in pages[0]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), "-o"),
        (("-o", "page.txt"), "-o"),
        (("-o", "-"), "-o"),
        (("-o", "page.html", "--language", "fr"), "--language"),
        (("-o", "page.html", "-k", "0"), "-k"),
        (("-o", "page.html", "--threshold", "2"), "--threshold"),
    ],
)
def test_a_report_that_cannot_be_is_refused(
    described: Path, options: tuple[str, ...], named: str
) -> None:
    """By the name of the option."""
    assert named in refusal("report", described, *options)
