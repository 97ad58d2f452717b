"""``krag-eval history``, and ``krag-eval gate --history``."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runs import refusal, run

from krag_eval import History

FOUND = '{"question": "%d?", "actual": ["It opens at nine."], "predicted": ["It opens at nine."]}\n'
MISSED = '{"question": "%d?", "actual": ["It opens at nine."], "predicted": ["At ten."]}\n'
N = 40


def evaluated(folder: Path, name: str, first_n: int, day: int, *options: str) -> Path:
    """Save a result in which so many of 40 questions found their one passage, made on a day."""
    lines = [FOUND % i for i in range(first_n)] + [MISSED % i for i in range(first_n, N)]
    (folder.parent / "run.jsonl").write_text("".join(lines), "utf-8")
    saved = folder / f"{name}.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(1767225600 + 86400 * day))  # from 2026-01-01
        done = run("evaluate", folder.parent / "run.jsonl", "-k", "5,10", "--json", saved, *options)
    assert done.exit_code == 0
    return saved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three runs, of 20, 36 and 30 found; of the first, any found item is a hit."""
    path = tmp_path / "runs"
    path.mkdir()
    evaluated(path, "new-year", 20, 0, "--criteria", "partial")
    evaluated(path, "best", 36, 1)
    evaluated(path, "after", 30, 2)
    return path


def test_the_table_and_what_changed(folder: Path) -> None:
    """The oldest first; 20, 36 and 30 of 40."""
    printed = run("history", folder, "--metric", "ndcg@10").stdout
    rows = [line.split() for line in printed.splitlines() if "2026-" in line]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("new-year", "2026-01-01", "0.5000"),
        ("best", "2026-01-02", "0.9000"),
        ("after", "2026-01-03", "0.7500"),
    ]
    assert "best: criteria from partial to all" in printed
    assert "signature: matcher=text" in printed


def test_in_korean(folder: Path) -> None:
    """Words, not values."""
    printed = run("--lang", "ko", "history", folder, "--last", "1").stdout
    assert "실행 1회" in printed
    assert "0.7500" in printed
    assert "0.9000" not in printed


def test_other_forms(folder: Path) -> None:
    """One object, and one row per run and metric."""
    content = json.loads(run("history", folder, "--format", "json").stdout)
    assert [one["run"] for one in content["runs"]] == ["new-year", "best", "after"]
    assert content["runs"][1]["changes"] == [
        {"setting": "criteria", "before": "partial", "after": "all"}
    ]
    rows = list(csv.DictReader(io.StringIO(run("history", folder, "--format", "csv").stdout)))
    assert len(rows) == 6
    assert rows[0]["made"] == "2026-01-01T00:00:00+00:00"
    assert rows[2]["changed"] == "criteria from partial to all"
    assert run("history", folder, "--format", "markdown").stdout.startswith("| run | made (UTC) |")


def test_the_picture(folder: Path, tmp_path: Path) -> None:
    """As SVG, by the ending of its name."""
    picture = tmp_path / "history.svg"
    assert run("history", folder, "--plot", picture).exit_code == 0
    assert picture.read_text("utf-8").startswith("<?xml")


def test_a_file_that_is_no_result_is_warned_of(folder: Path) -> None:
    """And the others are shown."""
    (folder / "other.json").write_text("[]", "utf-8")
    done = run("history", folder)
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: other.json")


def test_what_cannot_be_shown_is_refused(folder: Path, tmp_path: Path) -> None:
    """By the option."""
    (tmp_path / "empty").mkdir()
    assert refusal("history", tmp_path / "empty").startswith("FOLDER")
    assert "nowhere" in refusal("history", tmp_path / "nowhere")
    assert refusal("history", folder, "--last", "0").startswith("--last")
    assert refusal("history", folder, "--metric", "ndcg@7").startswith("--metric")


def test_the_gate_takes_the_mean_of_the_runs(folder: Path, tmp_path: Path) -> None:
    """36, 30 and 30 of 40 are a mean of 0.8; 10 fail against it, and against the last run alone."""
    evaluated(folder, "third", 30, 3)
    new = evaluated(tmp_path / "runs", "new", 10, 4)
    done = run("gate", new, "--history", folder, "--metric", "ndcg@10")
    assert done.exit_code == 1
    assert "ndcg@10 went from 0.8000 to 0.2500" in done.stderr
    assert "(ndcg@10): third, after, best." in done.stdout
    last = run("gate", new, "--history", folder, "--metric", "ndcg@10", "--last", "1")
    assert "ndcg@10 went from 0.7500 to 0.2500" in last.stderr


def test_a_run_whose_gate_failed_is_no_norm(folder: Path) -> None:
    """The gate writes into the file what became of it, and later results pass it over."""
    failing = evaluated(folder, "failing", 5, 3)
    options = ("--history", folder, "--metric", "ndcg@10")
    assert run("gate", failing, *options).exit_code == 1
    assert json.loads(failing.read_text("utf-8"))["gate"] == "failed"
    new = evaluated(folder, "new", 30, 4)
    done = run("gate", new, *options)
    assert done.exit_code == 0
    assert "went from 0.7500 to 0.7500" in done.stdout
    assert "Left out, as their gate failed: failing." in done.stdout
    assert json.loads(new.read_text("utf-8"))["gate"] == "passed"


def test_a_result_that_cannot_be_written_has_a_verdict(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a warning: what became of the gate is not in the file."""

    def refusing(path: str, outcome: str, result: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("krag_eval.results.saved.note_gate", refusing)
    done = run(
        *("gate", folder / "after.json", "--history", folder, "--metric", "ndcg@10"),
        *("--max-drop", "0.2"),
    )
    assert done.exit_code == 0
    assert "warning: what became of this gate could not be written" in done.stderr


def test_a_strict_gate_is_noted_as_it_came_out(folder: Path) -> None:
    """28 against 30 may be chance: it fails where that is asked for, and is no norm then."""
    options = ("--history", folder, "--metric", "ndcg@10", "--last", "1")
    new = evaluated(folder, "new", 28, 3)
    assert run("gate", new, *options).exit_code == 0
    assert json.loads(new.read_text("utf-8"))["gate"] == "inconclusive"
    assert run("gate", new, *options, "--strict").exit_code == 1
    assert json.loads(new.read_text("utf-8"))["gate"] == "failed"


@pytest.mark.parametrize("is_link", [False, True])
def test_a_verdict_is_noted_under_every_name(folder: Path, *, is_link: bool) -> None:
    """Or what failed stays the norm under its name in the folder."""
    new, today = evaluated(folder.parent, "new", 5, 3), folder / "today.json"
    if is_link:
        today.hardlink_to(new)
    else:
        shutil.copy(new, today)
    options = ("--history", folder, "--metric", "ndcg@10")
    assert run("gate", new, *options).exit_code == 1
    noted = [json.loads(one.read_text("utf-8"))["gate"] for one in (new, today)]
    assert noted == ["failed", "failed"]
    later = evaluated(folder, "later", 6, 4)
    assert "Left out, as their gate failed: today." in run("gate", later, *options).stdout


def test_a_read_only_result_is_left_alone(folder: Path) -> None:
    """With the warning; one that others may not read stays so."""
    new, options = folder / "after.json", ("--history", folder, "--metric", "ndcg@10")
    before = new.read_bytes()
    new.chmod(0o444)
    done = run("gate", new, *options)
    assert "warning: what became of this gate could not be written" in done.stderr
    assert new.read_bytes() == before
    new.chmod(0o600)
    assert "warning" not in run("gate", new, *options).stderr
    assert json.loads(new.read_text("utf-8"))["gate"] == "failed"
    assert sys.platform == "win32" or new.stat().st_mode & 0o777 == 0o600


def test_the_verdict_is_not_noted_in_another_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that took its name while the gate was at work."""
    new, other = evaluated(folder.parent, "new", 5, 3), evaluated(folder.parent, "other", 30, 4)
    fine, check = other.read_bytes(), History.check

    def slow(*args: Any, **options: Any) -> Any:
        report = check(*args, **options)
        other.replace(new)
        return report

    monkeypatch.setattr(History, "check", slow)
    done = run("gate", new, "--history", folder, "--metric", "ndcg@10")
    assert done.exit_code == 1
    assert "another result" in done.stderr
    assert new.read_bytes() == fine


def test_floors_are_a_gate_too(folder: Path) -> None:
    """What is saved under a floor that it misses says so, and counts no more."""
    lines = [FOUND % i for i in range(20)] + [MISSED % i for i in range(20, N)]
    file, saved = folder.parent / "run.jsonl", folder / "floored.json"
    file.write_text("".join(lines), "utf-8")
    floors = ("--fail-under", "mrr@5=0.9", "--fail-under", "mrr@10=0.1")
    assert run("evaluate", file, "-k", "5,10", "--json", saved, *floors).exit_code == 1
    assert json.loads(saved.read_text("utf-8"))["gate"] == "failed"


def test_a_baseline_beside_the_history(folder: Path) -> None:
    """Both hold the result: 28 against the last run, with 30, and against the 36 of before."""
    evaluated(folder, "new", 28, 3)
    done = run(
        *("gate", folder / "new.json", "--history", folder, "--metric", "ndcg@10"),
        *("--baseline", folder / "best.json", "--max-drop", "0.12"),
    )
    assert done.exit_code == 0
    assert "passed: ndcg@10 went from 0.7500 to 0.7000" in done.stdout
    assert "inconclusive: ndcg@10 went from 0.9000 to 0.7000" in done.stderr
    assert "(against the baseline)" in done.stderr


def test_the_gate_leaves_out_the_result_itself(folder: Path) -> None:
    """One of the two is held against the other."""
    done = run("gate", folder / "best.json", "--history", folder, "--metric", "ndcg@10")
    assert done.exit_code == 0
    assert "ndcg@10 went from 0.7500 to 0.9000" in done.stdout


def test_the_gate_with_floors_and_as_json(folder: Path, tmp_path: Path) -> None:
    """Floors first; the note says which run it was."""
    done = run(
        *("gate", folder / "after.json", "--history", folder, "--metric", "ndcg@10"),
        *("--fail-under", "recall@5=0.7", "--max-drop", "0.2", "--format", "json"),
    )
    content = json.loads(done.stdout)
    assert content["outcome"] == "passed"
    assert [one["outcome"] for one in content["gates"]] == ["passed", "passed"]
    assert [one["passed"] for one in content["gates"]] == [True, True]
    assert "best" in content["note"]
    assert done.exit_code == 0


def test_a_gate_without_a_verdict(folder: Path) -> None:
    """With nothing to compare with, or --last without a history."""
    best, first = folder / "best.json", folder / "new-year.json"
    alone = refusal("gate", first, "--history", folder, "--metric", "ndcg@10")
    assert alone.startswith("--history")
    lacking = refusal("gate", best, "--baseline", first, "--last", "3", "--metric", "ndcg@10")
    assert lacking.startswith("--last")
    assert refusal("gate", best, "--history", folder).startswith("--metric")
