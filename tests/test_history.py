"""Histories: their order, what changed between runs, and what a gate holds a result to."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from reference import no_advice

from krag_eval import (
    EvaluationResult,
    History,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    confidence_intervals,
    evaluate_file,
)
from krag_eval._language import speaking
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.presenting import page_of
from krag_eval.results.history import Change
from krag_eval.results.saved import _checksum, note_gate

DAY_1 = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
N = 40


def finds(first_n, n_queries=N, k=(5, 10), queries=None, budget=None, length="words", **options):
    """Return a result in which the first so many queries find their one item at rank 1."""
    actual = [[f"passage {i}"] for i in range(n_queries)]
    predicted = [truth if i < first_n else ["?"] for i, truth in enumerate(actual)]
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, predicted, queries=queries, **options)
        return evaluator.evaluate(k, budget=budget, length=length)


def letters(text):
    return len(text)


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
    content = json.loads(path.read_text("utf-8"))
    del content["checksum"], content["made"]
    path.write_text(json.dumps(content | {"checksum": _checksum(content)}), "utf-8")
    os.utime(path, (moment.timestamp(), moment.timestamp()))


# --- the time of a result ----------------------------------------------------------------------


def test_a_result_knows_when_it_was_made(tmp_path):
    """Reading and saving again keep it, and it is no part of what makes results equal."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    result = finds(30)
    assert before < result.made < datetime.now(UTC) + timedelta(seconds=1)
    result.to_json(tmp_path / "a.json")
    read = EvaluationResult.from_json(tmp_path / "a.json")
    assert read.made == result.made
    assert replace(result, made=None) == result
    read.to_json(tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()


def test_the_clock_can_be_set_for_files_that_are_the_same(tmp_path, monkeypatch):
    """As https://reproducible-builds.org/specs/source-date-epoch/ has it."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(DAY_1.timestamp())))
    for name in ("a", "b"):
        finds(30).to_json(tmp_path / f"{name}.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert EvaluationResult.from_json(tmp_path / "a.json").made == DAY_1


@pytest.mark.parametrize("told", ["yesterday", "1e300", "nan"])
def test_a_clock_that_is_none_is_refused(monkeypatch, told):
    """By the name of the variable, which is all that its user set."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", told)
    with pytest.raises(InvalidInput) as caught:
        finds(30)
    assert caught.value.argument == "SOURCE_DATE_EPOCH"


@pytest.mark.parametrize("made", [5, "yesterday", "2026-01-01T09:30:00", None])
def test_a_time_that_is_none_is_damage(tmp_path, made):
    """One without a time zone, too: nobody knows when that was."""
    path = tmp_path / "a.json"
    finds(30).to_json(path)
    content = json.loads(path.read_text("utf-8")) | {"made": made}
    del content["checksum"]
    path.write_text(json.dumps(content | {"checksum": _checksum(content)}), "utf-8")
    with pytest.raises(InvalidInput):
        EvaluationResult.from_json(path)


# --- reading a folder --------------------------------------------------------------------------


def test_runs_stand_in_the_order_in_which_they_were_made(folder):
    """Whatever their files are called, and whenever these were written."""
    third, first = finds(30), finds(20)
    replace(third, made=DAY_1 + timedelta(days=2)).to_json(folder / "a.json")
    replace(first, made=DAY_1).to_json(folder / "z.json")
    history = History.of(folder)
    assert [run.name for run in history.runs] == ["z", "a"]
    assert history.runs[0].made == DAY_1
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


def test_what_is_no_result_is_left_out_and_named(folder):
    """And what is damaged, while files of other kinds and folders are not looked at."""
    save(folder, finds(20))
    (folder / "other.json").write_text("{}", "utf-8")
    text = (folder / "1.json").read_text("utf-8")
    (folder / "cut.json").write_text(text[: len(text) // 2], "utf-8")
    (folder / "notes.txt").write_text("nothing", "utf-8")
    (folder / "older.json").mkdir()
    with pytest.warns(KragEvalWarning) as caught:
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]
    assert sorted(history.left_out) == ["cut.json", "other.json"]
    assert len(caught) == 2
    assert history.to_dict()["left_out"] == history.left_out


def test_what_cannot_be_read_is_left_out_and_named(folder, monkeypatch):
    """A link to nothing, and a file that the system refuses; the others are read."""
    save(folder, finds(20), finds(30))
    (folder / "link.json").symlink_to(folder / "nowhere")
    (folder / "folder.json").mkdir()

    def refusing(path):
        if path.name == "2.json":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return EvaluationResult.from_json(path)

    monkeypatch.setattr("krag_eval.results.history.read", refusing)
    with pytest.warns(KragEvalWarning) as caught:
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]
    assert [*history.left_out] == ["2.json", "link.json"]
    assert len(caught) == 2


def hostile(content, **changes):
    """Return a saved result with something else in it, and a checksum that fits."""
    changed = {name: one for name, one in (content | changes).items() if name != "checksum"}
    return json.dumps(changed | {"checksum": _checksum(changed)})


@pytest.mark.parametrize(
    "made", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01", "no date", 7]
)
def test_a_time_that_is_none_leaves_a_file_out(folder, made):
    """Where UTC has no such date, too."""
    save(folder, finds(20), finds(30))
    content = json.loads((folder / "2.json").read_text("utf-8"))
    (folder / "2.json").write_text(hostile(content, made=made), "utf-8")
    with pytest.warns(KragEvalWarning, match=r"2\.json"):
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]
    assert history.check(finds(30), metric="ndcg@10").passed


def test_a_file_that_is_too_large_is_left_out_unread(folder):
    """A sparse file takes no room on the disk, and all of the memory that is there."""
    save(folder, finds(20))
    with open(folder / "sparse.json", "wb") as file:
        file.truncate(3 * 2**30)
    with pytest.warns(KragEvalWarning, match="3,221,225,472 bytes"):
        history = History.of(folder)
    assert [*history.left_out] == ["sparse.json"]


def test_what_does_not_fit_into_memory_is_left_out(folder, monkeypatch):
    """Below the bound, on a small machine."""
    save(folder, finds(20), finds(30))
    read_text = Path.read_text

    def short_of_memory(path, *how):
        if path.name == "2.json":
            raise MemoryError
        return read_text(path, *how)

    monkeypatch.setattr(Path, "read_text", short_of_memory)
    with pytest.warns(KragEvalWarning, match=r"2\.json"):
        history = History.of(folder)
    assert [run.name for run in history.runs] == ["1"]


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "krag_eval.result", "format_version": ' + "1" * 10**6 + "}",
        '{"format": "krag_eval.result", "format_version": ' + "[" * 900 + "]" * 900 + "}",
        '{"format": "krag_eval.result", "format_version": 1, "checksum": "", "x": '
        + "[" * 900 + "]" * 900 + "}",
        '{"format": "krag_eval.result", "format_version": 1, "checksum": "", "x": 1e999}',
        "[" * 10**6 + "]" * 10**6,
        "",
    ],
    ids=["digits", "deep version", "deep", "infinite", "deeper", "empty"],
)  # fmt: skip
def test_what_no_reader_expects_is_left_out(folder, text):
    """Whatever it would do to json, or to the recursion of Python."""
    save(folder, finds(20))
    (folder / "hostile.json").write_text(text, "utf-8")
    with pytest.warns(KragEvalWarning, match=r"hostile\.json"):
        history = History.of(folder)
    assert [*history.left_out] == ["hostile.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_left_out_and_not_waited_for(folder, tmp_path):
    """Also where the rows of a run would be."""
    lines = [json.dumps({"actual": ["a"], "predicted": ["a"]})] * 30
    (tmp_path / "run.jsonl").write_text("\n".join(lines), "utf-8")
    with no_advice():
        result = evaluate_file(
            tmp_path / "run.jsonl", k=[10], chunk_size=10, per_query=folder / "rows.csv"
        )
    result.to_json(folder / "1.json")
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


def test_a_folder_without_results_is_refused(folder, tmp_path):
    """Naming the argument; one that is not there is not found."""
    with pytest.raises(InvalidInput) as caught:
        History.of(folder)
    assert caught.value.argument == "folder"
    with pytest.raises(FileNotFoundError):
        History.of(tmp_path / "nowhere")
    with pytest.raises(InvalidType) as typed:
        History.of(5)
    assert typed.value.argument == "folder"


def test_the_last_runs_alone(folder):
    """The first of them still knows what changed before it."""
    save(folder, finds(20), finds(20), finds(30, matching_criteria="partial"))
    (run,) = History.of(folder, last=1).runs
    assert run.changes == (Change("criteria", "all", "partial"),)
    for wrong in (0, 1.5, True):
        with pytest.raises((InvalidInput, InvalidType)) as caught:
            History.of(folder, last=wrong)
        assert caught.value.argument == "last"


# --- values and intervals ----------------------------------------------------------------------


def test_values_and_intervals_are_those_of_the_results(folder):
    """20 and 30 of 40; intervals to the last digit those of ``confidence_intervals``."""
    results = save(folder, finds(20), finds(30))
    history = History.of(folder)
    assert history.metrics == ("macro_recall@10", "ndcg@10")
    table = history.table.set_index(["run", "metric"])
    assert table["value"].tolist() == [0.5, 0.5, 0.75, 0.75]
    for name, result in zip("12", results, strict=True):
        with pytest.warns(KragEvalWarning):  # of the mean rank, which is not shown
            expected = confidence_intervals(result)
        for metric in history.metrics:
            row = table.loc[(name, metric)]
            assert (row["low"], row["high"]) == (
                expected["low"][metric],
                expected["high"][metric],
            )


def test_intervals_of_runs_of_all_kinds_are_those_of_the_results(folder):
    """Those of as many queries are resampled together; no digit depends on it."""
    runs = [finds(20), finds(30, 35), finds(25), finds(10, 35, k=(5,)), finds(15), finds(12)]
    results = save(folder, *runs)
    history = History.of(folder, ["recall@5", "ndcg@10"])
    for run, result in zip(history.runs, results, strict=True):
        with pytest.warns(KragEvalWarning):  # of the mean rank, which is not shown
            expected = confidence_intervals(result)
        known = [metric for metric in history.metrics if metric in expected.index]
        assert [history.bounds(run, metric) for metric in known] == [
            (expected["low"][metric], expected["high"][metric]) for metric in known
        ]
    assert math.isnan(history.bounds(history.runs[3], "ndcg@10")[0])


def test_few_queries_are_warned_of_once(folder):
    """As intervals of fewer than 30 are too narrow."""
    save(folder, finds(20), finds(20, n_queries=29))
    history = History.of(folder)
    with pytest.warns(KragEvalWarning) as caught:
        print(history, history)
    assert len(caught) == 1


def test_metrics_are_named_as_everywhere(folder):
    """Short names stand for the average; one that no run has is refused."""
    save(folder, finds(20), finds(30, k=[10, 20]))
    assert History.of(folder, "recall@10").metrics == ("macro_recall@10",)
    assert History.of(folder, ["mrr@5", "mrr@20"]).metrics == ("mrr@5", "mrr@20")
    for wrong in ("ndcg@7", "nonsense@10", "ndcg", [], 5):
        with pytest.raises((InvalidInput, InvalidType)) as caught:
            History.of(folder, wrong)
        assert caught.value.argument == "metric"


def test_a_metric_that_a_run_lacks_is_undefined_there(folder):
    """Not 0; in JSON it is null."""
    save(folder, finds(20), finds(30, k=[10, 20]))
    history = History.of(folder, "mrr@20")
    first, second = history.to_dict()["runs"]
    assert first["metrics"]["mrr@20"] == {"value": None, "low": None, "high": None}
    assert second["metrics"]["mrr@20"]["value"] == 0.75
    json.dumps(history.to_dict(), allow_nan=False)
    assert history.table["value"].isna().tolist() == [True, False]


def test_runs_without_rows_have_values_and_no_intervals(folder, tmp_path):
    """As a file that was evaluated in parts leaves them; that is said."""
    lines = [
        json.dumps({"question": str(i), "actual": [f"p {i}"], "predicted": [f"p {i % 20}"]})
        for i in range(N)
    ]
    (tmp_path / "run.jsonl").write_text("\n".join(lines), "utf-8")
    with no_advice():
        result = evaluate_file(tmp_path / "run.jsonl", k=[10], chunk_size=10)
    save(folder, result, result)
    history = History.of(folder, "recall@10")
    assert history.table["value"].tolist() == [0.5, 0.5]
    assert history.table["low"].isna().all()
    assert history.table["comparable"].all()
    with pytest.raises(InvalidInput) as caught:
        history.check(finds(30), metric="recall@10")
    assert caught.value.argument == "history"


# --- what changed ------------------------------------------------------------------------------


def test_what_changed_in_the_signature_in_words(folder):
    """Cutoffs may differ, the criterion may not; in both languages."""
    save(folder, finds(20), finds(20, k=[10]), finds(20, k=[10], matching_criteria="partial"))
    first, second, third = History.of(folder).runs
    assert (first.changes, first.is_comparable) == ((), True)
    assert (second.changes, second.is_comparable) == ((Change("k", "5,10", "10"),), True)
    assert (third.changes, third.is_comparable) == ((Change("criteria", "all", "partial"),), False)
    assert page_of(third).sentences == ["criteria from all to partial"]
    with speaking("ko"):
        assert page_of(third).sentences == ["criteria: all → partial"]


def test_a_setting_that_came_or_went(folder):
    """As the length function of a budget does."""
    save(folder, finds(20), finds(20, budget=50, length=letters), finds(20))
    _, came, went = History.of(folder).runs
    (after,) = [one for one in came.changes if one.setting == "length"]
    assert after.before is None
    (before,) = [one for one in went.changes if one.setting == "length"]
    assert before.after is None
    assert any("length is now" in one for one in page_of(came).sentences)
    assert any("length is no longer" in one for one in page_of(went).sentences)


def test_other_ground_truth_and_other_questions(folder):
    """The signature does not show them, and they keep runs from being compared."""
    labels = [f"question {i}" for i in range(N)]
    with no_advice():
        other = OfflineRetrievalEvaluator(
            [[f"new {i}"] for i in range(N)], [["?"]] * N, queries=labels
        ).evaluate((5, 10))
    asked = finds(20, queries=[f"other {i}" for i in range(N)])
    save(folder, finds(20, queries=labels), other, asked)
    _, second, third = History.of(folder).runs
    assert (second.changes, second.is_comparable) == ((Change("ground truth"),), False)
    assert (third.changes, third.is_comparable) == ((Change("questions"),), False)
    assert page_of(second).sentences == ["other ground truth"]


# --- the gate ----------------------------------------------------------------------------------


def held(report, metric="ndcg@10"):
    """Return the names of the runs that a result was held against."""
    return [run.name for run in report.held_against[metric]]


def pattern(*nights, **options):
    """Return a result in which the queries that have a 1 are found, of 8 times the pattern."""
    queries = [bit for bit in nights for _ in range(8)]
    actual = [[f"passage {i}"] for i in range(len(queries))]
    predicted = [truth if bit else ["?"] for truth, bit in zip(actual, queries, strict=True)]
    with no_advice():
        return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate((5, 10))


def test_the_mean_of_the_runs_is_the_baseline(folder):
    """Of five groups of 8 queries the runs find 2, 3 and 4: (2 + 3 + 4) / 15 is 0.6."""
    save(folder, pattern(1, 1, 0, 0, 0), pattern(1, 1, 1, 0, 0), pattern(1, 1, 1, 1, 0))
    report = History.of(folder).check(pattern(1, 1, 1, 0, 0), metric="ndcg@10")
    assert held(report) == ["3", "2", "1"]
    (gate,) = report.gates
    assert (gate.outcome, "went from 0.6000 to 0.6000" in gate.reason) == ("passed", True)
    assert "mean of the last 3 comparable runs" in report.note
    worse = History.of(folder).check(pattern(1, 0, 0, 0, 0), metric="ndcg@10")
    assert "went from 0.6000 to 0.2000" in worse.failures[0]
    assert not History.of(folder).check(finds(0), metric="ndcg@10", max_drop=0.1)


def test_a_micro_average_is_of_the_mean_counts(folder):
    """8 of 10 retrieved, 4 of 4 and 6 of 10 are relevant: 18 / 24, and not (0.8 + 1 + 0.6) / 3."""

    def retrieved(right, wrong):
        actual = [[f"a {q} {i}" for i in range(10)] for q in range(40)]
        predicted = [[*truth[:right], *(f"? {i}" for i in range(wrong))] for truth in actual]
        with no_advice():
            return OfflineRetrievalEvaluator(actual, predicted).evaluate(20)

    save(folder, retrieved(8, 2), retrieved(4, 0), retrieved(6, 4))
    report = History.of(folder).check(retrieved(6, 4), metric="micro_precision@20")
    assert "went from 0.7500 to 0.6000" in report.gates[0].reason
    assert report.outcome == "failed"


def test_of_fewer_than_three_runs_the_last_alone(folder):
    """Two are no average."""
    save(folder, finds(20), finds(35))
    report = History.of(folder).check(finds(30), metric="ndcg@10")
    expected = finds(30).check(baseline=finds(35), metric="ndcg@10")
    assert held(report) == ["2"]
    assert report.gates == expected.gates
    assert repr(report) == f"{expected!r}\n{report.note}"


def test_only_the_last_runs_count(folder):
    """Ten by default: the one of eleven runs ago is forgotten."""
    save(folder, finds(39), *[finds(20)] * 9, finds(21))
    history = History.of(folder)
    assert held(history.check(finds(21), metric="ndcg@10")) == [str(i) for i in range(11, 1, -1)]
    assert len(held(history.check(finds(21), metric="ndcg@10", last=11))) == 11
    assert held(history.check(finds(21), metric="ndcg@10", last=1)) == ["11"]


def test_runs_whose_gate_failed_do_not_count(folder):
    """Or a decline would become the norm; those that passed or say nothing do."""
    dated = [replace(finds(30), made=DAY_1 + timedelta(days=i)) for i in range(5)]
    failing = finds(0).check(baseline=finds(30), metric="ndcg@10")
    unsure = finds(29).check(baseline=finds(30), metric="ndcg@10")
    for name, result, gate in zip("12345", dated, (None, failing, unsure, None, failing),
                                  strict=True):  # fmt: skip
        result.to_json(folder / f"{name}.json", gate=gate)
    history = History.of(folder)
    assert [run.result.gate for run in history.runs] == [
        None, "failed", "inconclusive", None, "failed"
    ]  # fmt: skip
    report = history.check(finds(30), metric="ndcg@10")
    assert held(report) == ["4", "3", "1"]
    assert "5, 2" in report.note
    with pytest.raises(InvalidInput) as caught:
        replace(history, runs=history.runs[-1:]).check(finds(30), metric="ndcg@10")
    assert "5: its gate failed" in caught.value.problem


def test_a_note_of_a_gate_changes_nothing_else(folder):
    """Neither the result nor the time of a file that orders old ones."""
    (result,) = save(folder, finds(30))
    path = folder / "1.json"
    as_before(path, DAY_1)
    judged = EvaluationResult.from_json(path)
    note_gate(path, "failed", judged)
    read = EvaluationResult.from_json(path)
    assert (read, read.gate, read.made) == (result, "failed", None)
    assert path.stat().st_mtime == DAY_1.timestamp()
    note_gate(path, "passed", judged)
    assert EvaluationResult.from_json(path).gate == "passed"
    with pytest.raises(InvalidInput):
        note_gate(path, "failed", finds(29))
    note_gate(path, "fine", judged)
    with pytest.raises(InvalidInput):
        EvaluationResult.from_json(path)


def test_each_metric_has_its_runs(folder):
    """One of the runs lacks a cutoff."""
    save(folder, *[finds(30)] * 3, finds(30, k=(10,)))
    report = History.of(folder).check(finds(30), {"mrr@5": 0.4}, metric=["mrr@5", "ndcg@10"])
    assert held(report, "mrr@5") == ["3", "2", "1"]
    assert held(report, "ndcg@10") == ["4", "3", "2", "1"]
    assert [gate.metric for gate in report.gates] == ["mrr@5", "mrr@5", "ndcg@10"]


def test_metrics_of_different_runs_are_corrected_together(folder):
    """Six losses of 40 have p = 0.03125, and twice that in a call for two metrics."""
    save(folder, finds(30), finds(30, k=(10,)))
    history = History.of(folder)
    assert history.check(finds(24), metric="mrr@5").outcome == "failed"
    both = history.check(finds(24), metric=["mrr@5", "mrr@10"])
    assert {metric: held(both, metric) for metric in both.held_against} == {
        "mrr@5": ["1"],
        "mrr@10": ["2"],
    }
    assert [gate.outcome for gate in both.gates] == ["inconclusive"] * 2


def test_mean_ranks_are_of_the_queries_that_both_have(folder):
    """Of 40 queries the runs find 40, 30 and 20: a share of 0.75, at rank 1; the new one 30."""
    save(folder, finds(40), finds(30), finds(20))
    history = History.of(folder)
    report = history.check(finds(30), metric="mean_rank@10")
    assert report.outcome == "passed"
    assert (
        "on the 30 queries where both have a value (of all queries 75.0% had one, now 75.0%)"
        in (report.gates[0].reason)
    )
    assert history.check(finds(10), metric="mean_rank@10").outcome == "failed"


def test_a_better_run_is_not_held_to_one_that_found_one_query(folder):
    """That one had mean rank 1; the new one finds all, most of them lower."""
    truth = [[f"a {i}"] for i in range(N)]
    with no_advice():
        lucky = OfflineRetrievalEvaluator(truth, [truth[0], *[["?"]] * (N - 1)]).evaluate(5)
        new = OfflineRetrievalEvaluator(truth, [truth[0], *[["?", *t] for t in truth[1:]]])
        better = new.evaluate(5)
    save(folder, lucky)
    assert History.of(folder).check(better, metric="mean_rank@5").outcome == "passed"


def test_the_result_itself_is_left_out(folder, tmp_path):
    """Wherever its file is and whatever it is called; one as good made later is another run."""
    *_, new = save(folder, finds(20), finds(30))
    shutil.copy(folder / "2.json", folder / "copy.json")
    history = History.of(folder)
    assert held(history.check(new, metric="ndcg@10")) == ["1"]
    again = finds(30)
    assert held(history.check(again, metric="ndcg@10")) == ["2"]


def test_a_run_under_several_names_counts_once(folder):
    """As a copy, and as the latest; where one of the names was noted as failed, all of it is."""
    *_, last = save(folder, finds(20), finds(24), finds(30))
    for name in ("copy", "latest"):
        shutil.copy(folder / "3.json", folder / f"{name}.json")
    report = History.of(folder).check(finds(28), metric="ndcg@10")
    assert held(report) == ["3", "2", "1"]
    assert "copies of other runs: latest, copy." in report.note
    note_gate(folder / "copy.json", "failed", last)
    report = History.of(folder).check(finds(28), metric="ndcg@10")
    assert held(report) == ["2"]
    assert "their gate failed: 3." in report.note


def test_copies_whose_rows_are_gone_hinder_no_gate(folder, tmp_path):
    """They are not comparable, as one of them alone is."""
    rows = tmp_path / "rows.parquet"
    file = tmp_path / "run.jsonl"
    lines = [{"question": i, "actual": ["a"], "predicted": ["a"]} for i in map(str, range(N))]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    evaluate_file(file, k=(5, 10), per_query=rows).to_json(folder / "old.json")
    shutil.copy(folder / "old.json", folder / "copy.json")
    finds(30).to_json(folder / "new.json")
    rows.unlink()
    report = History.of(folder).check(finds(30), metric="ndcg@10")
    assert held(report) == ["new"]
    assert "Not comparable: 2 of the runs" in report.note


def test_a_run_of_the_future_is_left_out(folder):
    """Or it would stay the last for good; clocks may differ by hours."""
    now = datetime.now(UTC)
    for name, ahead in (("soon", timedelta(hours=20)), ("someday", timedelta(days=2))):
        replace(finds(30), made=now + ahead).to_json(folder / f"{name}.json")
    report = History.of(folder).check(finds(28), metric="ndcg@10")
    assert held(report) == ["soon"]
    assert "in the future: someday." in report.note
    (folder / "soon.json").unlink()
    with pytest.raises(InvalidInput) as caught:
        History.of(folder).check(finds(28), metric="ndcg@10")
    assert "someday: dated in the future" in caught.value.problem


def test_a_baseline_beside_the_history_guards_against_a_slow_decline(folder):
    """The runs lost one query each; the history follows, and the first of them does not."""
    runs = save(folder, *(finds(n) for n in range(40, 28, -1)))
    history, new = History.of(folder), finds(28)
    assert history.check(new, metric="ndcg@10", max_drop=0.2).outcome == "passed"
    report = history.check(new, metric="ndcg@10", max_drop=0.1, baseline=runs[0])
    assert [gate.outcome for gate in report.gates] == ["inconclusive", "failed"]
    assert "(against the baseline)" in report.failures[-1]


def test_runs_that_cannot_be_compared_are_passed_over(folder):
    """Among them the last one; the report says how many, and why."""
    save(folder, finds(25), finds(39, matching_criteria="partial"), finds(39, n_queries=50))
    report = History.of(folder).check(finds(25), metric="ndcg@10")
    assert held(report) == ["1"]
    assert "2" in report.note
    assert "queries: 50 vs 40" in report.note


def test_without_a_run_to_compare_with_there_is_no_verdict(folder):
    """With itself alone, with runs of other settings, or with runs that lack the metric."""
    (new,) = save(folder, finds(30))
    history = History.of(folder)
    for result, metric in (
        (new, "ndcg@10"),
        (finds(30, matching_criteria="partial"), "ndcg@10"),
        (finds(30, k=[5, 10, 20]), "ndcg@20"),
    ):
        with pytest.raises(InvalidInput) as caught:
            history.check(result, metric=metric)
        assert caught.value.argument == "history"
        assert caught.value.fix


def test_unlabelled_queries_that_grow_are_not_told_apart(folder):
    """The reason is the run's own, and not that it differs in a sentence."""
    save(folder, finds(30))
    with pytest.raises(InvalidInput) as caught:
        History.of(folder).check(finds(30, n_queries=50), metric="ndcg@10", on="common")
    assert caught.value.argument == "history"
    assert "(1: 'the run' has no labels" in caught.value.problem


def test_a_set_of_questions_that_grows(folder):
    """On 40 questions 30 were found. On the same 40, of 50 now, 20: worse by 0.25."""
    labels = [f"question {i}" for i in range(50)]
    save(folder, finds(20, queries=labels[:N]), finds(30, queries=labels[:N]))
    history, new = History.of(folder), finds(20, n_queries=50, queries=labels)
    with pytest.raises(InvalidInput):
        history.check(new, metric="ndcg@10")
    report = history.check(new, metric="ndcg@10", on="common")
    assert held(report) == ["2"]
    assert not report
    assert "0.7500 to 0.5000" in report.failures[0]
    assert "question 40" in report.note
    assert (report.n_compared, report.left_out) == (N, {"new": labels[N:]})


def asked(numbers, found):
    """Return a result over questions of these numbers, which finds those that ``found`` holds."""
    truth = [[f"passage {i}"] for i in numbers]
    lists = [one if i in found else ["?"] for i, one in zip(numbers, truth, strict=True)]
    labels = [f"question {i}" for i in numbers]
    with no_advice():
        return OfflineRetrievalEvaluator(truth, lists, queries=labels).evaluate(10)


def test_an_old_run_of_few_questions_hides_no_landslide(folder):
    """It shares three questions, all of which were lost; 200 others went from .90 to .60."""
    old = asked([*range(3), *range(500, 600)], range(600))
    runs = [asked(range(200), range(180)) for _ in range(3)]
    save(folder, old, *runs)
    new = asked(range(200), range(3, 123))
    report = History.of(folder).check(new, metric="ndcg@10", on="common")
    assert held(report) == ["4", "3", "2"]
    assert not report
    assert "0.9000 to 0.6000" in report.failures[0]


def test_one_shared_question_fails_nothing(folder):
    """An old run that shares one question, which is lost, says nothing of the other 199."""
    save(folder, asked([0, *range(500, 520)], range(600)), asked(range(200), range(180)))
    new = asked(range(200), range(1, 181))
    report = History.of(folder).check(new, metric="ndcg@10", on="common")
    assert (held(report), report.passed) == (["2"], True)
    with pytest.raises(InvalidInput) as caught:
        replace(History.of(folder), runs=History.of(folder).runs[:1]).check(
            new, metric="ndcg@10", on="common"
        )
    assert "it has 1 of the 200 queries" in caught.value.problem


def test_each_question_is_held_to_the_runs_that_have_it(folder):
    """Questions 0 to 29 are in all runs, found by 3, 2 and 1 of them; the rest in one alone."""
    save(
        folder,
        asked(range(30), range(30)),
        asked(range(30), range(20)),
        asked(range(50), [*range(10), *range(30, 50)]),
    )
    new = asked([*range(49, -1, -1)], [*range(10), *range(40, 50)])
    report = History.of(folder).check(new, metric="recall@10", on="common")
    # (10 · 1 + 10 · 2/3 + 10 · 1/3 + 20 · 1) / 50 against 20 / 50.
    assert "went from 0.8000 to 0.4000" in report.gates[0].reason
    assert report.outcome == "failed"


def test_what_cannot_be_asked_is_refused(folder):
    """By the name of the argument."""
    save(folder, finds(30))
    history = History.of(folder)
    for argument, options in {
        "metric": {"metric": None},
        "last": {"metric": "ndcg@10", "last": 0},
        "max_drop": {"metric": "ndcg@10", "max_drop": 2},
    }.items():
        with pytest.raises(InvalidInput) as caught:
            history.check(finds(20), **options)
        assert caught.value.argument == argument
    with pytest.raises(InvalidType) as typed:
        history.check("new.json", metric="ndcg@10")
    assert typed.value.argument == "result"


# --- words and pictures ------------------------------------------------------------------------


def test_it_shows_itself_in_both_languages(folder, monkeypatch):
    """A line per run, then what changed; HTML is escaped."""
    save(folder, finds(20), finds(30, matching_criteria="partial"))
    history = History.of(folder)
    lines = repr(history).splitlines()
    assert len(lines) == 5
    assert lines[2].split()[:4] == ["1", "2026-01-01", "09:30", "0.5000"]
    assert "<td" in history._repr_html_()
    assert "criteria" in history._repr_html_()
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
    with pytest.raises(InvalidInput) as caught:
        History.of(folder, ["mean_rank@10", "mrr@10"]).plot()
    assert caught.value.argument == "metrics"


def test_one_run_is_a_history_too(folder):
    """With nothing that changed."""
    save(folder, finds(20))
    history = History.of(Path(folder))
    assert len(repr(history).splitlines()) == 3
    assert history.plot().get_xlim()[0] < 0 < history.plot().get_xlim()[1]
    assert history.plot(language="en").get_title(loc="left").endswith("(1 run)")
    assert history.plot(language="ko").get_title(loc="left").endswith("(실행 1회)")
