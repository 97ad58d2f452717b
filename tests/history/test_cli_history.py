"""``krag-eval history``, and ``krag-eval gate --history``."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from cli_runs import content, finding, refusal, run, written
from results_made import MISSING, changed

from krag_eval import History

GATE = "--history runs --metric ndcg@10"


def evaluated(name, first_n, day, options="", code=0):
    """Save a result in which so many of 40 questions found their one passage, made on a day."""
    written("run.jsonl", finding(first_n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(1767225600 + 86400 * day))  # from 2026-01-01
        done = run(f"evaluate run.jsonl -k 5,10 --json {name}.json {options}")
    assert done.exit_code == code


def gate_of(name):
    """Return what a saved result says that became of its gate."""
    return json.loads(Path(f"{name}.json").read_text("utf-8"))["gate"]


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A folder of three runs, of 20, 36 and 30 found; of the first, any found item is a hit."""
    folder = tmp_path_factory.mktemp("three")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("runs").mkdir()
        evaluated("runs/new-year", 20, 0, "--criteria partial")
        evaluated("runs/best", 36, 1)
        evaluated("runs/after", 30, 2)
    return folder / "runs"


@pytest.fixture(autouse=True)
def _runs(sample, three):
    shutil.copytree(three, "runs")


def test_the_table_and_what_changed():
    """The oldest first; 20, 36 and 30 of 40."""
    printed = run("history runs --metric ndcg@10").stdout
    rows = [line.split() for line in printed.splitlines() if "2026-" in line]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("new-year", "2026-01-01", "0.5000"),
        ("best", "2026-01-02", "0.9000"),
        ("after", "2026-01-03", "0.7500"),
    ]
    assert "best: criteria from partial to all" in printed
    last = run("--lang ko history runs --last 1").stdout
    assert ["실행 1회" in last, "0.7500" in last, "0.9000" in last] == [True, True, False]


def test_other_forms():
    """One object, and a picture."""
    found = content("history runs")["runs"]
    assert [one["run"] for one in found] == ["new-year", "best", "after"]
    assert found[1]["changes"] == [{"setting": "criteria", "before": "partial", "after": "all"}]
    assert run("history runs --plot history.svg").exit_code == 0
    assert Path("history.svg").read_text("utf-8").startswith("<?xml")


def test_a_file_that_is_no_result_is_warned_of():
    """The others are shown; of none there is no history."""
    Path("runs/other.json").write_text("[]", "utf-8")
    done = run("history runs")
    assert (done.exit_code, done.stderr[:19]) == (0, "warning: other.json")
    Path("empty").mkdir()
    assert refusal("history empty").startswith("FOLDER")


def test_the_gate_takes_the_mean_of_the_runs():
    """36, 30 and 30 of 40 are a mean of 0.8; 10 fail against it, and against the last run alone."""
    evaluated("runs/third", 30, 3)
    evaluated("runs/new", 10, 4)
    done = run(f"gate runs/new.json {GATE}")
    assert done.exit_code == 1
    assert "ndcg@10 went from 0.8000 to 0.2500" in done.stderr
    assert "(ndcg@10): third, after, best." in done.stdout
    last = run(f"gate runs/new.json {GATE} --last 1")
    assert "ndcg@10 went from 0.7500 to 0.2500" in last.stderr


def test_a_run_whose_gate_failed_is_no_norm():
    """The gate writes into the file what became of it, and later results pass it over."""
    evaluated("runs/failing", 5, 3)
    assert run(f"gate runs/failing.json {GATE}").exit_code == 1
    assert gate_of("runs/failing") == "failed"
    evaluated("runs/new", 30, 4)
    done = run(f"gate runs/new.json {GATE}")
    assert done.exit_code == 0
    assert "went from 0.7500 to 0.7500" in done.stdout
    assert "Left out, as their gate failed: failing." in done.stdout
    assert gate_of("runs/new") == "passed"


def test_a_strict_gate_is_noted_as_it_came_out():
    """28 against 30 may be chance: it fails where that is asked for, and is no norm then."""
    evaluated("runs/new", 28, 3)
    for more, code, noted in (("", 0, "inconclusive"), ("--strict", 1, "failed")):
        assert run(f"gate runs/new.json {GATE} --last 1 {more}").exit_code == code
        assert gate_of("runs/new") == noted


@pytest.mark.parametrize(
    "second",
    ["--metric recall@5 --max-drop 1", "--metric ndcg@10 --max-drop 1", "--metric mrr@5 --last 2 "
     "--fail-under mrr@5=0.1 --max-drop 1", "--metric ndcg@10 --max-drop 1 --json again.json"],
)  # fmt: skip
def test_a_failure_stays_with_the_run(second):
    """Whatever it passes afterwards; the gate says so, and the next run is not held to it."""
    evaluated("runs/failing", 5, 3)
    assert run(f"gate runs/failing.json {GATE}").exit_code == 1
    done = run(f"gate runs/failing.json --history runs {second}")
    assert done.exit_code == 0
    assert "failed a gate before (ndcg@10 drop <= 0.0 against the history)" in done.stdout
    verdicts = json.loads(Path("runs/failing.json").read_text("utf-8"))["verdicts"]
    assert verdicts.pop("ndcg@10 drop <= 0.0 against the history") == "failed"
    assert {*verdicts.values()} == {"passed"}
    files = ["runs/failing", *(["again"] if "again" in second else [])]
    assert [gate_of(name) for name in files] == ["failed"] * len(files)
    evaluated("runs/next", 6, 4)
    assert run(f"gate runs/next.json {GATE}").exit_code == 1


def test_a_failure_stays_where_the_same_run_is_evaluated_again():
    """The second command replaces the file by one with the same values."""
    written("again.jsonl", finding(5))
    call = "gate again.jsonl -k 5,10 --history runs --json again.json --metric ndcg@10"
    assert run(call).exit_code == 1
    assert run(f"{call} --max-drop 1").exit_code == 0
    assert gate_of("again") == "failed"
    written("again.jsonl", finding(6))
    assert run(f"{call} --max-drop 1").exit_code == 0
    assert gate_of("again") == "passed"


def test_a_file_of_before_keeps_its_failure():
    """It says that a gate failed, and not which."""
    evaluated("runs/old", 5, 3, "--fail-under mrr@5=0.9", code=1)
    changed(Path("runs/old.json"), "verdicts", MISSING)
    done = run(f"gate runs/old.json {GATE} --max-drop 1")
    assert (done.exit_code, gate_of("runs/old")) == (0, "failed")
    assert "has failed a gate before, so" in done.stdout


@pytest.mark.parametrize("copied", [shutil.copy, lambda old, new: Path(new).hardlink_to(old)])
def test_a_verdict_is_noted_under_every_name(copied):
    """What failed would stay the norm under its name in the folder."""
    evaluated("new", 5, 3)
    copied("new.json", "runs/today.json")
    assert run(f"gate new.json {GATE}").exit_code == 1
    assert [gate_of("new"), gate_of("runs/today")] == ["failed", "failed"]
    evaluated("runs/later", 6, 4)
    told = run(f"gate runs/later.json {GATE}").stdout
    assert "Left out, as their gate failed: today." in told


def test_a_result_that_cannot_be_written_has_a_verdict(monkeypatch):
    """With a warning: what became of the gate is not in the file."""

    def refusing(path, *_):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("krag_eval.core.results.saved.note_gate", refusing)
    done = run(f"gate runs/after.json {GATE} --max-drop 0.2")
    assert done.exit_code == 0
    assert "warning: what became of this gate could not be written" in done.stderr


def test_a_read_only_result_is_left_alone():
    """With the warning; one that others may not read stays so."""
    new = Path("runs/after.json")
    before = new.read_bytes()
    new.chmod(0o444)
    done = run(f"gate runs/after.json {GATE}")
    assert "warning: what became of this gate could not be written" in done.stderr
    assert new.read_bytes() == before
    new.chmod(0o600)
    assert "warning" not in run(f"gate runs/after.json {GATE}").stderr
    assert gate_of("runs/after") == "failed"
    assert sys.platform == "win32" or new.stat().st_mode & 0o777 == 0o600


def test_the_verdict_is_not_noted_in_another_result(monkeypatch):
    """One that took its name while the gate was at work."""
    evaluated("new", 5, 3)
    evaluated("other", 30, 4)
    fine, check = Path("other.json").read_bytes(), History.check

    def slow(*args, **options):
        report = check(*args, **options)
        Path("other.json").replace("new.json")
        return report

    monkeypatch.setattr(History, "check", slow)
    done = run(f"gate new.json {GATE}")
    assert (done.exit_code, "another result" in done.stderr) == (1, True)
    assert Path("new.json").read_bytes() == fine


def test_floors_are_a_gate_too():
    """What is saved under a floor that it misses says so, and counts no more."""
    floors = "--fail-under mrr@5=0.9 --fail-under mrr@10=0.1"
    evaluated("runs/floored", 20, 3, floors, code=1)
    assert gate_of("runs/floored") == "failed"


def test_a_baseline_beside_the_history():
    """Both hold the result: 28 against the last run, with 30, and against the 36 of before."""
    evaluated("runs/new", 28, 3)
    done = run(f"gate runs/new.json {GATE} --baseline runs/best.json --max-drop 0.12")
    assert done.exit_code == 0
    assert "passed: ndcg@10 went from 0.7500 to 0.7000" in done.stdout
    assert "inconclusive: ndcg@10 went from 0.9000 to 0.7000" in done.stderr
    assert "(against the baseline)" in done.stderr


def test_the_gate_leaves_out_the_result_itself():
    """One of the two is held against the other; the first, by other criteria, against nothing."""
    done = run(f"gate runs/best.json {GATE}")
    assert done.exit_code == 0
    assert "ndcg@10 went from 0.7500 to 0.9000" in done.stdout
    assert refusal(f"gate runs/new-year.json {GATE}").startswith("--history")


def test_the_gate_with_floors_and_as_json():
    """Floors first; the note says which run it was."""
    found = content(f"gate runs/after.json {GATE} --fail-under recall@5=0.7 --max-drop 0.2")
    assert found["outcome"] == "passed"
    told = [(one["metric"], one["outcome"], one["passed"]) for one in found["gates"]]
    assert told == [("macro_recall@5", "passed", True), ("ndcg@10", "passed", True)]
    assert "best" in found["note"]
