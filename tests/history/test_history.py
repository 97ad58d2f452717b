"""Histories: their order, what changed between runs, and what a gate holds a result to."""

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from reference import no_advice
from refusals import blamed
from results_made import MISSING, changed, read_back, write_lines
from systems import asked, first, result_of

from krag_eval import (
    EvaluationResult,
    History,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    confidence_intervals,
    evaluate_file,
)
from krag_eval.core import page_of, speaking
from krag_eval.core.results.saved import note_gate
from krag_eval.errors import InvalidInput
from krag_eval.history.history import Change

DAY_1 = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
N = 40


def finds(n, of=N, k=(5, 10), **options):
    return first(n, of, k, **options)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "runs"
    path.mkdir()
    return path


def save(folder, *results):
    """Save results a day apart, as 1.json, 2.json, …; return them with these times."""
    dated = [replace(one, made=DAY_1 + timedelta(days=i)) for i, one in enumerate(results)]
    for number, result in enumerate(dated, start=1):
        result.to_json(folder / f"{number}.json")
    return dated


def as_before(path, moment):
    """Make a saved result one of before times were kept, in a file of that time."""
    changed(path, "made", MISSING)
    os.utime(path, (moment.timestamp(), moment.timestamp()))


def in_parts(tmp_path, n_found=N, **options):
    """Evaluate a file of questions in parts, the first so many of which find their item."""
    rows = [
        {"question": str(i), "actual": ["a"], "predicted": ["a" if i < n_found else "?"]}
        for i in range(N)
    ]
    path = write_lines(tmp_path / "run.jsonl", rows)
    with no_advice():
        return evaluate_file(path, k=(5, 10), chunk_size=10, **options)


# --- the time of a result ----------------------------------------------------------------------


def test_a_result_knows_when_it_was_made(tmp_path):
    """Reading and saving again keep it, and it is no part of what makes results equal."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    result = finds(30)
    assert before < result.made < datetime.now(UTC) + timedelta(seconds=1)
    read = read_back(result, tmp_path, "a.json")
    assert read.made == result.made
    assert replace(result, made=None) == result
    read.to_json(tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()


def test_the_clock_can_be_set_for_files_that_are_the_same(tmp_path, monkeypatch):
    """As https://reproducible-builds.org/specs/source-date-epoch/ has it; if it tells a time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(DAY_1.timestamp())))
    for name in ("a", "b"):
        finds(30).to_json(tmp_path / f"{name}.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert EvaluationResult.from_json(tmp_path / "a.json").made == DAY_1
    for told in ("yesterday", "1e300", "nan"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", told)
        with blamed("SOURCE_DATE_EPOCH"):
            finds(30)


@pytest.mark.parametrize(
    "made",
    [
        *(5, None, "no date", "2026-01-01", "2026-01-01T09:30:00"),
        # Where UTC has no such date.
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_a_time_that_is_none_is_damage(folder, made):
    """One without a time zone, too: nobody knows when that was. A history leaves the file out."""
    save(folder, finds(20), finds(30))
    changed(folder / "2.json", "made", made)
    with pytest.raises(InvalidInput):
        EvaluationResult.from_json(folder / "2.json")
    with pytest.warns(KragEvalWarning, match=r"2\.json"):
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]


# --- reading a folder --------------------------------------------------------------------------


def test_runs_stand_in_the_order_in_which_they_were_made(folder):
    """Whatever their files are called, and whenever these were written."""
    for name, days in (("a", 2), ("z", 0)):
        replace(finds(30), made=DAY_1 + timedelta(days=days)).to_json(folder / f"{name}.json")
    history = History.of(folder)
    assert [run.name for run in history.runs] == ["z", "a"]
    assert repr(history.runs[0]) == "HistoryRun('z', made 2026-01-01 09:30)"
    assert not history.runs[0].made_by_file


def test_results_of_before_take_the_time_of_their_files(folder):
    """Which is said, in the table and below it."""
    save(folder, finds(20), finds(30))
    as_before(folder / "2.json", DAY_1 - timedelta(days=1))
    history = History.of(folder)
    assert [(run.name, run.made_by_file) for run in history.runs] == [("2", True), ("1", False)]
    assert history.table["made_by_file"].tolist() == [True, True, False, False]
    assert "2025-12-31 09:30*" in repr(history)
    assert len([line for line in repr(history).splitlines() if "(*)" in line]) == 1


NO_RESULT = '{"format": "krag_eval.result", "format_version": '
DEEP = "[" * 900 + "]" * 900
HOSTILE = {
    "other": "{}",
    "cut": '{"format": "krag_eval.re',
    "empty": "",
    "digits": NO_RESULT + "1" * 10**6 + "}",
    "deep version": NO_RESULT + DEEP + "}",
    "deep": f'{NO_RESULT}1, "checksum": "", "x": {DEEP}}}',
    "infinite": f'{NO_RESULT}1, "checksum": "", "x": 1e999}}',
    "deeper": "[" * 10**6 + "]" * 10**6,
}


def test_what_is_no_result_is_left_out_and_named(folder):
    """Whatever it would do to json; files of other kinds and folders are not looked at.

    Nor is a file read that nobody would keep in a history: a sparse one takes no room on the disk,
    and all of the memory that is there.
    """
    save(folder, finds(20))
    for name, text in HOSTILE.items():
        (folder / f"{name}.json").write_text(text, "utf-8")
    with open(folder / "sparse.json", "wb") as file:
        file.truncate(3 * 2**30)
    (folder / "link.json").symlink_to(folder / "nowhere")
    (folder / "notes.txt").write_text("nothing", "utf-8")
    (folder / "older.json").mkdir()
    with pytest.warns(KragEvalWarning) as caught:
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]
    left_out = sorted(f"{name}.json" for name in (*HOSTILE, "sparse", "link"))
    assert sorted(history.left_out) == left_out
    assert "3,221,225,472 bytes" in history.left_out["sparse.json"]
    assert len(caught) == len(left_out)
    assert history.to_dict()["left_out"] == history.left_out


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "Permission denied", "2.json"), MemoryError()]
)
def test_what_cannot_be_read_is_left_out_and_named(folder, monkeypatch, error):
    """A file that the system refuses, or that does not fit into memory; the others are read."""
    save(folder, finds(20), finds(30))
    read_text = Path.read_text

    def refusing(path, *how):
        if path.name == "2.json":
            raise error
        return read_text(path, *how)

    monkeypatch.setattr(Path, "read_text", refusing)
    with pytest.warns(KragEvalWarning):
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]
    assert [*history.left_out] == ["2.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_left_out_and_not_waited_for(folder, tmp_path):
    """Also where the rows of a run would be."""
    in_parts(tmp_path, per_query=folder / "rows.csv").to_json(folder / "1.json")
    (folder / "rows.csv").unlink()
    os.mkfifo(folder / "rows.csv")
    os.mkfifo(folder / "pipe.json")
    with pytest.warns(KragEvalWarning, match=r"pipe\.json"):
        history = History.of(folder)
    assert [*history.left_out] == ["pipe.json"]
    assert history.table["low"].isna().all()


def test_the_time_of_a_file_may_be_no_date(folder, monkeypatch):
    """Some file systems count further than dates go."""
    save(folder, finds(20), finds(30))
    as_before(folder / "2.json", DAY_1)
    stat = Path.stat

    def far(path, **how):
        found = stat(path, **how)
        return os.stat_result([*found[:8], 2**40, found[9]]) if path.name == "2.json" else found

    monkeypatch.setattr(Path, "stat", far)
    with pytest.warns(KragEvalWarning, match=r"2\.json"):
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]


def test_a_folder_without_results_is_refused(folder):
    """Naming the argument."""
    with blamed("folder"):
        History.of(folder)


def test_the_last_runs_alone(folder):
    """The first of them still knows what changed before it."""
    save(folder, finds(20), finds(20), finds(30, matching_criteria="partial"))
    (run,) = History.of(folder, last=1).runs
    assert run.changes == (Change("criteria", "all", "partial"),)


# --- values and intervals ----------------------------------------------------------------------


def test_values_and_intervals_are_those_of_the_results(folder):
    """To the last digit those of ``confidence_intervals``, though runs are resampled together.

    A metric that a run lacks is undefined there, and null in JSON.
    """
    runs = [finds(20), finds(30, 35), finds(25), finds(10, 35, k=(5,)), finds(15)]
    results = save(folder, *runs)
    history = History.of(folder, ["recall@5", "ndcg@10"])
    table = history.table.set_index(["run", "metric"])
    for run, result in zip(history.runs, results, strict=True):
        with pytest.warns(KragEvalWarning):  # of the mean rank, which is not shown
            expected = confidence_intervals(result)
        for metric in history.metrics:
            found = table.loc[(run.name, metric), ["value", "low", "high"]].tolist()
            missing = [np.nan] * 3
            known = expected.loc[metric, ["value", "low", "high"]].tolist() \
                if metric in expected.index else missing  # fmt: skip
            assert found == pytest.approx(known, abs=0, rel=0, nan_ok=True)
            assert history.bounds(run, metric) == pytest.approx(known[1:], abs=0, nan_ok=True)
    lacking = history.to_dict()["runs"][3]["metrics"]
    assert lacking["ndcg@10"] == {"value": None, "low": None, "high": None}
    assert lacking["macro_recall@5"]["value"] == 10 / 35
    json.dumps(history.to_dict(), allow_nan=False)


def test_few_queries_are_warned_of_once(folder):
    """As intervals of fewer than 30 are too narrow."""
    save(folder, finds(20), finds(20, 29))
    history = History.of(folder)
    with pytest.warns(KragEvalWarning) as caught:
        print(history, history)
    assert len(caught) == 1


def test_metrics_are_named_as_everywhere(folder):
    """Short names stand for the average; unless named, recall and nDCG at what all have."""
    save(folder, finds(20), finds(30, k=[10, 20]))
    assert History.of(folder).metrics == ("macro_recall@10", "ndcg@10")
    assert History.of(folder, "recall@10").metrics == ("macro_recall@10",)
    assert History.of(folder, ["mrr@5", "mrr@20"]).metrics == ("mrr@5", "mrr@20")


def test_runs_without_rows_have_values_and_no_intervals(folder, tmp_path):
    """As a file that was evaluated in parts leaves them; that is said."""
    result = in_parts(tmp_path, 20)
    save(folder, result, result)
    history = History.of(folder, "recall@10")
    assert history.table["value"].tolist() == [0.5, 0.5]
    assert history.table["low"].isna().all()
    assert history.table["comparable"].all()
    assert "saved without per-query rows: 1, 2." in repr(history)
    with blamed("history"):
        history.check(finds(30), metric="recall@10")


# --- what changed ------------------------------------------------------------------------------


def test_what_changed_in_the_signature_in_words(folder):
    """Cutoffs may differ, the criterion may not; a setting can come and go. In both languages."""
    letters = {"budget": 50, "length": len}
    runs = finds(20), finds(20, k=[10]), finds(20, k=[10], matching_criteria="partial")
    save(folder, *runs, finds(20, evaluated=letters), finds(20))
    first, second, third, came, went = History.of(folder).runs
    assert (first.changes, first.is_comparable) == ((), True)
    assert (second.changes, second.is_comparable) == ((Change("k", "5,10", "10"),), True)
    assert (third.changes, third.is_comparable) == ((Change("criteria", "all", "partial"),), False)
    assert page_of(third).sentences == ["criteria from all to partial"]
    with speaking("ko"):
        assert page_of(third).sentences == ["criteria: all → partial"]
    (after,) = [one for one in came.changes if one.setting == "length"]
    (before,) = [one for one in went.changes if one.setting == "length"]
    assert (after.before, before.after) == (None, None)
    assert any("length is now" in one for one in page_of(came).sentences)
    assert any("length is no longer" in one for one in page_of(went).sentences)
    assert History.of(folder).table["changed"].tolist()[4] == "criteria from all to partial"


def test_other_ground_truth_and_other_questions(folder):
    """The signature does not show them, and they keep runs from being compared."""
    one = asked(range(N), range(20))
    truth = asked(range(100, 140), range(100, 120), queries=one.labels)
    save(folder, one, truth, asked(range(N), range(20), queries=[f"other {i}" for i in range(N)]))
    _, second, third = History.of(folder).runs
    assert (second.changes, second.is_comparable) == ((Change("ground truth"),), False)
    assert (third.changes, third.is_comparable) == ((Change("questions"),), False)
    assert page_of(second).sentences == ["other ground truth"]
    assert page_of(third).sentences == ["other questions"]


# --- the gate ----------------------------------------------------------------------------------


def check(folder, new, metric="ndcg@10", **options):
    """Hold a result against the runs in a folder."""
    return History.of(folder).check(new, metric=metric, **{"n_resamples": 500, **options})


def held(report, metric="ndcg@10"):
    """Return the names of the runs that a result was held against."""
    return [run.name for run in report.held_against[metric]]


def refused(folder, new, metric="ndcg@10", **options):
    """Return why a result cannot be held against the runs in a folder."""
    with blamed("history") as caught:
        check(folder, new, metric, **options)
    assert caught.value.fix
    return caught.value.problem


def pattern(*groups):
    """Return a result of 8 queries for each group, which are found where it has a 1."""
    return result_of([bit for bit in groups for _ in range(8)], k=(5, 10))


SOME = [1, *[0] * 39], [1, *[2] * 39]
GROUPS = [pattern(*groups) for groups in ((1, 1, 0, 0, 0), (1, 1, 1, 0, 0), (1, 1, 1, 1, 0))]
OLD = [*range(3), *range(500, 600)]


@pytest.mark.parametrize(
    ("runs", "new", "metric", "runs_held", "outcome", "told"),
    [
        # Of five groups of 8 queries the runs find 2, 3 and 4: (2 + 3 + 4) / 15 is 0.6.
        (GROUPS, pattern(1, 1, 1, 0, 0), "ndcg", "321", "passed", "from 0.6000 to 0.6000"),
        (GROUPS, pattern(1, 0, 0, 0, 0), "ndcg", "321", "failed", "from 0.6000 to 0.2000"),
        # Of 40 queries the runs find 40, 30 and 20: a share of 0.75, at rank 1.
        ([finds(40), finds(30), finds(20)], finds(30), "mean_rank", "321", "passed",
         "on the 30 queries where both have a value (of all queries 75.0% had one, now 75.0%)"),
        ([finds(40), finds(30), finds(20)], finds(10), "mean_rank", "321", "failed", "25.0%"),
        # One that found one query had mean rank 1; the new one finds all, most of them lower.
        ([result_of(SOME[0])], result_of(SOME[1]), "mean_rank", "1", "passed", "now 100.0%"),
        # Runs that cannot be compared are passed over, among them the last.
        ([finds(25), finds(39, matching_criteria="partial"), finds(39, 50)], finds(25), "ndcg", "1",
         "passed", "from 0.6250 to 0.6250"),
        # An old run shares three questions, all of which were lost; 200 went from .90 to .60.
        ([asked(OLD, range(600)), *[asked(range(200), range(180))] * 3],
         asked(range(200), range(3, 123)), "ndcg", "432", "failed", "from 0.9000 to 0.6000"),
        # Questions 0 to 29 are in all runs, found by 3, 2 and 1 of them; the rest in one alone:
        # (10 · 1 + 10 · 2/3 + 10 · 1/3 + 20 · 1) / 50 against 20 / 50.
        ([asked(range(30), range(30)), asked(range(30), range(20)),
          asked(range(50), [*range(10), *range(30, 50)])],
         asked([*range(49, -1, -1)], [*range(10), *range(40, 50)]), "ndcg", "321", "failed",
         "from 0.8000 to 0.4000"),
    ],
)  # fmt: skip
def test_a_result_is_held_to_the_mean_of_the_runs(
    folder, runs, new, metric, runs_held, outcome, told
):
    """For each question over those that have it; of fewer than three, to the last alone."""
    save(folder, *runs)
    report = check(folder, new, f"{metric}@10", on="common")
    assert held(report, f"{metric}@10") == [*runs_held]
    (gate,) = report.gates
    assert gate.outcome == outcome
    assert told in gate.reason
    said = "mean of the last 3 comparable runs" if len(runs_held) > 1 else "last comparable run in"
    assert said in report.note
    n_apart = len(runs) - len(runs_held)
    assert (f"Not comparable: {n_apart} of the runs" in report.note) == (n_apart > 0)


def test_a_baseline_beside_the_history_guards_against_a_slow_decline(folder):
    """The runs lost one query each; the history follows, and the first of them does not."""
    runs = save(folder, *(finds(n) for n in range(40, 28, -1)))
    assert check(folder, finds(28), max_drop=0.2).outcome == "passed"
    report = check(folder, finds(28), max_drop=0.1, baseline=runs[0])
    assert [gate.outcome for gate in report.gates] == ["inconclusive", "failed"]
    assert "(against the baseline)" in report.failures[-1]


def test_a_micro_average_is_of_the_mean_counts(folder):
    """8 of 10 retrieved, 4 of 4 and 6 of 10 are relevant: 18 / 24, and not (0.8 + 1 + 0.6) / 3."""

    def retrieved(right, wrong):
        actual = [[f"a {q} {i}" for i in range(10)] for q in range(40)]
        predicted = [[*truth[:right], *(f"? {i}" for i in range(wrong))] for truth in actual]
        with no_advice():
            return OfflineRetrievalEvaluator(actual, predicted).evaluate(20)

    save(folder, retrieved(8, 2), retrieved(4, 0), retrieved(6, 4))
    report = check(folder, retrieved(6, 4), "micro_precision@20")
    assert "went from 0.7500 to 0.6000" in report.gates[0].reason
    assert report.outcome == "failed"


def test_of_fewer_than_three_runs_the_last_alone(folder):
    """Two are no average."""
    save(folder, finds(20), finds(35))
    report = check(folder, finds(30))
    expected = finds(30).check(baseline=finds(35), metric="ndcg@10", n_resamples=500)
    assert held(report) == ["2"]
    assert report.gates == expected.gates
    assert repr(report) == f"{expected!r}\n{report.note}"


def test_only_the_last_runs_count(folder):
    """Ten by default: the one of eleven runs ago is forgotten."""
    save(folder, finds(39), *[finds(20)] * 9, finds(21))
    assert held(check(folder, finds(21))) == [str(i) for i in range(11, 1, -1)]
    assert len(held(check(folder, finds(21), last=11))) == 11
    assert held(check(folder, finds(21), last=1)) == ["11"]


def test_runs_whose_gate_failed_do_not_count(folder):
    """Or a decline would become the norm; those that passed or say nothing do."""
    dated = [replace(finds(30), made=DAY_1 + timedelta(days=i)) for i in range(5)]
    failing = finds(0).check(baseline=finds(30), metric="ndcg@10")
    unsure = finds(29).check(baseline=finds(30), metric="ndcg@10")
    for name, result, gate in zip("12345", dated, (None, failing, unsure, None, failing),
                                  strict=True):  # fmt: skip
        result.to_json(folder / f"{name}.json", gate=gate)
    outcomes = [run.result.gate for run in History.of(folder).runs]
    assert outcomes == [None, "failed", "inconclusive", None, "failed"]
    report = check(folder, finds(30))
    assert held(report) == ["4", "3", "1"]
    assert "5, 2" in report.note
    for name in "134":
        (folder / f"{name}.json").unlink()
    assert "5: its gate failed" in refused(folder, finds(30))


def test_a_note_of_a_gate_changes_nothing_else(folder):
    """Neither the result nor the time of a file that orders old ones."""
    (result,) = save(folder, finds(30))
    path = folder / "1.json"
    as_before(path, DAY_1)
    judged = EvaluationResult.from_json(path)
    note_gate(path, "inconclusive", {"mrr@5 >= 0.7": "inconclusive"}, judged)
    read = EvaluationResult.from_json(path)
    assert (read, read.gate, read.made) == (result, "inconclusive", None)
    assert path.stat().st_mtime == DAY_1.timestamp()
    with pytest.raises(InvalidInput):
        note_gate(path, "failed", {}, finds(29))
    changed(path, "verdicts", {"mrr@5 >= 0.7": "fine"})
    with pytest.raises(InvalidInput):
        EvaluationResult.from_json(path)


def test_gates_at_once_lose_no_verdict(folder):
    """Each reads the file, and writes it anew, after the other."""
    (result,) = save(folder, finds(30))
    conditions = [f"mrr@5 >= 0.{i}" for i in range(10, 34)]

    def note(condition):
        note_gate(folder / "1.json", "failed", {condition: "failed"}, result)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note, conditions))
    read = EvaluationResult.from_json(folder / "1.json")
    assert read.verdicts == dict.fromkeys(conditions, "failed")
    assert [one.name for one in folder.iterdir()] == ["1.json"]


@pytest.mark.parametrize("first_outcome", ["failed", "inconclusive", "passed"])
@pytest.mark.parametrize("second_outcome", ["failed", "inconclusive", "passed"])
def test_a_condition_keeps_its_worst_outcome(folder, first_outcome, second_outcome):
    """Noted in the file, or saved over it; other values begin anew."""
    order = ["failed", "inconclusive", "passed"]
    expected = min(first_outcome, second_outcome, key=order.index)
    (result,) = save(folder, finds(30))
    path = folder / "1.json"
    for outcome in (first_outcome, second_outcome):
        note_gate(path, outcome, {"mrr@5 >= 0.7": outcome}, result)
    for saved in (None, result, finds(30)):
        if saved is not None:
            saved.to_json(path)
        read = EvaluationResult.from_json(path)
        assert (read.gate, read.verdicts) == (expected, {"mrr@5 >= 0.7": expected})
    finds(29).to_json(path)
    read = EvaluationResult.from_json(path)
    assert (read.gate, read.verdicts) == (None, {})


def test_conditions_are_told_apart(folder):
    """By metric, bound, slice and what they are held against; in every language alike."""
    save(folder, finds(30))
    tags = {"half": ["a", "b"] * (N // 2)}
    new, old = (replace(one, rows=replace(one.rows, tags=tags)) for one in (finds(30), finds(30)))
    told = {"floors": {"mrr@5": 0.5, "mean_rank@5": 2}, "max_drop": 0.02, "n_resamples": 500}
    for language in ("en", "ko"):
        report = History.of(folder).check(
            new, metric="ndcg@10", baseline=old, language=language, **told
        )
        assert [*report.verdicts] == [
            "mrr@5 >= 0.5",
            "mean_rank@5 <= 2.0",
            "ndcg@10 drop <= 0.02 against the history",
            "ndcg@10 drop <= 0.02 against the baseline",
        ]
        sliced = new.check(baseline=old, metric="ndcg@10", by="half", language=language)
        assert [*sliced.verdicts][1:] == [
            f"ndcg@10 drop <= 0.0 in half {name} against the baseline" for name in "ab"
        ]


def test_each_metric_has_its_runs(folder):
    """One of the runs lacks a cutoff."""
    save(folder, *[finds(30)] * 3, finds(30, k=(10,)))
    report = check(folder, finds(30), ["mrr@5", "ndcg@10"], floors={"mrr@5": 0.4})
    assert held(report, "mrr@5") == ["3", "2", "1"]
    assert held(report) == ["4", "3", "2", "1"]
    assert [gate.metric for gate in report.gates] == ["mrr@5", "mrr@5", "ndcg@10"]


def test_metrics_of_different_runs_are_corrected_together(folder):
    """Five losses of 40 have p = 1 / 2⁵, and twice that in a call for two metrics."""
    save(folder, finds(30), finds(30, k=(10,)))
    assert check(folder, finds(25), "mrr@5").outcome == "failed"
    both = check(folder, finds(25), ["mrr@5", "mrr@10"])
    assert [held(both, metric) for metric in ("mrr@5", "mrr@10")] == [["1"], ["2"]]
    assert [gate.outcome for gate in both.gates] == ["inconclusive"] * 2


def test_the_result_itself_is_left_out(folder):
    """Wherever its file is and whatever it is called; one as good made later is another run."""
    *_, new = save(folder, finds(20), finds(30))
    shutil.copy(folder / "2.json", folder / "copy.json")
    assert held(check(folder, new)) == ["1"]
    assert held(check(folder, finds(30))) == ["2"]


def test_a_run_under_several_names_counts_once(folder):
    """As a copy, and as the latest; where one of the names was noted as failed, all of it is."""
    *_, last = save(folder, finds(20), finds(24), finds(30))
    for name in ("copy", "latest"):
        shutil.copy(folder / "3.json", folder / f"{name}.json")
    report = check(folder, finds(28))
    assert held(report) == ["3", "2", "1"]
    assert "copies of other runs: latest, copy." in report.note
    note_gate(folder / "copy.json", "failed", {}, last)
    report = check(folder, finds(28))
    assert held(report) == ["2"]
    assert "their gate failed: 3." in report.note


def test_copies_whose_rows_are_gone_hinder_no_gate(folder, tmp_path):
    """They are not comparable, as one of them alone is."""
    rows = tmp_path / "rows.parquet"
    in_parts(tmp_path, per_query=rows).to_json(folder / "old.json")
    shutil.copy(folder / "old.json", folder / "copy.json")
    finds(30).to_json(folder / "new.json")
    rows.unlink()
    report = check(folder, finds(30))
    assert held(report) == ["new"]
    assert "Not comparable: 2 of the runs" in report.note


def test_a_run_of_the_future_is_left_out(folder):
    """Or it would stay the last for good; clocks may differ by hours."""
    now = datetime.now(UTC)
    for name, ahead in (("soon", timedelta(hours=20)), ("someday", timedelta(days=2))):
        replace(finds(30), made=now + ahead).to_json(folder / f"{name}.json")
    report = check(folder, finds(28))
    assert held(report) == ["soon"]
    assert "in the future: someday." in report.note
    (folder / "soon.json").unlink()
    assert "someday: dated in the future" in refused(folder, finds(28))


def test_without_a_run_to_compare_with_there_is_no_verdict(folder):
    """With itself alone, with runs of other settings, that lack the metric, or have no labels."""
    (new,) = save(folder, finds(30))
    assert "(1: the result itself)" in refused(folder, new)
    assert "criteria" in refused(folder, finds(30, matching_criteria="partial"))
    assert "1: it has no ndcg@20" in refused(folder, finds(30, k=[5, 10, 20]), "ndcg@20")
    assert "(1: 'the run' has no labels" in refused(folder, finds(30, 50), on="common")


def test_a_set_of_questions_that_grows(folder):
    """On 40 questions 30 were found. On the same 40, of 50 now, 20: worse by 0.25."""
    labels = [f"question {i}" for i in range(50)]
    save(folder, finds(20, queries=labels[:N]), finds(30, queries=labels[:N]))
    new = finds(20, 50, queries=labels)
    refused(folder, new)
    report = check(folder, new, on="common")
    assert held(report) == ["2"]
    assert not report
    assert "0.7500 to 0.5000" in report.failures[0]
    assert "question 40" in report.note
    assert (report.n_compared, report.left_out) == (N, {"new": labels[N:]})


def test_one_shared_question_fails_nothing(folder):
    """An old run that shares one question, which is lost, says nothing of the other 199."""
    save(folder, asked([0, *range(500, 520)], range(600)), asked(range(200), range(180)))
    new = asked(range(200), range(1, 181))
    report = check(folder, new, on="common")
    assert (held(report), report.passed) == (["2"], True)
    (folder / "2.json").unlink()
    assert "it has 1 of the 200 queries" in refused(folder, new, on="common")


# --- words and pictures ------------------------------------------------------------------------


def test_it_shows_itself_in_both_languages(folder, monkeypatch):
    """A line per run, then what changed."""
    save(folder, finds(20), finds(30, matching_criteria="partial"))
    history = History.of(folder)
    lines = repr(history).splitlines()
    assert len(lines) == 5
    assert lines[2].split()[:4] == ["1", "2026-01-01", "09:30", "0.5000"]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert "바로 앞 실행과 비교할 수 없음" in repr(history)


def test_the_picture_has_a_line_for_each_metric_with_breaks(folder):
    """Between runs that cannot be compared, where a dotted line stands too."""
    save(folder, finds(20), finds(30), finds(35, matching_criteria="partial"))
    ax = Figure().subplots()
    assert History.of(folder, ["mrr@10", "ndcg@10"]).plot(ax) is ax
    mrr = ax.lines[0].get_xydata()
    assert mrr[[0, 1, 3]].tolist() == [[0, 0.5], [1, 0.75], [2, 0.875]]
    assert mrr[2][0] == 1.5
    assert mrr[2][1] != mrr[2][1]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"] == [1.5]
    assert ax.get_title(loc="left") == "Metrics at k = 10 from run to run (3 runs)"
    assert ax.get_xticklabels()[0].get_text() == "2026-01-01"


def test_a_rank_is_drawn_alone(folder):
    """It has no upper end, and would press the others to the ground."""
    save(folder, finds(20))
    assert "lower is better" in History.of(folder, "mean_rank@10").plot().get_ylabel()
    with blamed("metrics"):
        History.of(folder, ["mean_rank@10", "mrr@10"]).plot()


def test_one_run_is_a_history_too(folder):
    """With nothing that changed."""
    save(folder, finds(20))
    history = History.of(folder)
    assert len(repr(history).splitlines()) == 3
    for language, told in (("en", "(1 run)"), ("ko", "(실행 1회)")):
        ax = history.plot(language=language)
        assert ax.get_xlim()[0] < 0 < ax.get_xlim()[1]
        assert ax.get_title(loc="left").endswith(told)
