"""Questions that a run lacks: counted wherever a number rests on what is left.

Of 60 questions the run has three, and finds the passage of each: its recall is 1.0 if the other 57
are left out, and 3/60 if they count as nothing retrieved.
"""

import json
import warnings
from contextlib import suppress

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from reference import no_advice
from refusals import blamed
from results_made import write_lines

from krag_eval import (
    EvaluationResult,
    History,
    KragEvalWarning,
    compare,
    confidence_intervals,
    evaluate_file,
    load_dataset,
    plan_questions,
)
from krag_eval.cli import main
from krag_eval.core import MissingQuestions
from krag_eval.datasets import read_beir, read_traces, read_trec
from krag_eval.integrations.pytest import KragGate

GOLDEN = [{"question": f"q{i}", "actual": [f"passage {i}"]} for i in range(60)]
RUN = [{"question": f"q{i}", "predicted": [f"passage {i}"]} for i in range(3)]
SPANS = [
    {"name": "search", "context": {"span_id": one["question"]}, "parent_id": None,
     "start_time": "2026-01-01T00:00:00Z", "status": {"status_code": "OK"}, "attributes": {
         "openinference.span.kind": "RETRIEVER", "input.value": one["question"],
         "retrieval.documents.0.document.content": one["predicted"][0]}}
    for one in RUN
]  # fmt: skip
QRELS = {str(i): {"a": 1} for i in range(60)}
TREC_RUN = {str(i): {"a": 1.0} for i in range(3)}


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write both files into the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_lines(tmp_path / "golden.jsonl", GOLDEN), write_lines(tmp_path / "run.jsonl", RUN)


def joined(way):
    return load_dataset(GOLDEN, retrieved=RUN, missing=way).evaluator().evaluate([1, 5])


def in_chunks(way, tmp_path, **how):
    golden = write_lines(tmp_path / "g.jsonl", GOLDEN)
    return evaluate_file(golden, write_lines(tmp_path / "r.jsonl", RUN), [1, 5], missing=way, **how)


# Each way to a result of a ground truth and a run.
WAYS = {
    "in memory": lambda way, folder: joined(way),
    "a file": lambda way, folder: in_chunks(way, folder),
    "in chunks": lambda way, folder: in_chunks(way, folder, chunk_size=2),
    "with rows": lambda way, folder: in_chunks(way, folder, per_query=folder / "rows.csv"),
    "traces": lambda way, folder: load_dataset(
        GOLDEN, retrieved=SPANS, missing=way).evaluator().evaluate([1, 5]),
    "read_traces": lambda way, folder: read_traces(
        SPANS, load_dataset(GOLDEN), missing=way).evaluator().evaluate([1, 5]),
    "TREC": lambda way, folder: read_trec(
        QRELS, TREC_RUN, missing=way).evaluator().evaluate([1, 5]),
    "BEIR": lambda way, folder: read_beir(
        qrels=QRELS, run=TREC_RUN, missing=way).evaluator().evaluate([1, 5]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["skip", "zero"])
@pytest.mark.parametrize("name", WAYS)
def test_every_result_counts_them(name, way, tmp_path):
    """In the signature and the file that it is saved in; a gate refuses what is left out."""
    result = WAYS[name](way, tmp_path)
    assert result.missing == MissingQuestions(57, 60, way)
    assert result.n_missing == (57 if way == "skip" else 0)
    assert f"missing=57 of 60, {way}" in result.signature
    assert result.averages(5)["macro_recall"] == pytest.approx(1 if way == "skip" else 3 / 60)
    result.to_json(tmp_path / "saved.json")
    assert EvaluationResult.from_json(tmp_path / "saved.json").missing == result.missing
    if way == "zero":
        assert "57 of 60 (new)" in result.check({"recall@5": 0}).note
        return
    with blamed("allow_missing"):
        result.check({"recall@5": 0})
    with blamed("allow_missing"):
        result.check({"recall@5": 0}, allow_missing=56)
    assert "57 of 60 (new)" in result.check({"recall@5": 0}, allow_missing=57).note


def test_traces_leave_out_what_was_not_asked(tmp_path):
    """Unless told otherwise: that is counted as well."""
    with no_advice():
        result = load_dataset(GOLDEN, retrieved=SPANS).evaluator().evaluate(5)
    assert result.n_missing == 57


def test_a_whole_run_lacks_none():
    """Nothing is said of it."""
    rows = [{**one, "predicted": one["actual"]} for one in GOLDEN]
    for way in ("skip", "zero", "error"):
        result = load_dataset(GOLDEN, retrieved=rows, missing=way).evaluator().evaluate(5)
        assert (result.missing, "missing" in result.signature) == (None, False)
        assert "lacks" not in result.summary() + result.check({"recall@5": 0.5}).note


@pytest.fixture
def result():
    with warnings.catch_warnings(action="ignore"):
        return joined("skip")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_form_counts_them(result, language, tmp_path, monkeypatch):
    """The sentence, Markdown, LaTeX, the table and the page; the title of a plot."""
    monkeypatch.setenv("KRAG_EVAL_LANG", language)
    (told,) = result.summary.caveats()
    assert ("57" in told, "60" in told) == (True, True)
    assert result.summary().endswith(told)
    for form in ("to_markdown", "to_latex", "__repr__", "_repr_html_"):
        assert told in getattr(result, form)()
    result.report(tmp_path / "page.html", n_queries=1, intervals=False)
    assert told in (tmp_path / "page.html").read_text("utf-8")
    assert "57" in result.plot(ax=Figure().subplots()).get_title(loc="left")


def test_comparisons_count_them(result):
    """Of each system, where these lack the same or others."""
    others = [
        RUN[0],
        RUN[1],
        {"question": "q2", "predicted": ["other"]},
        {"question": "q3", "predicted": ["passage 3"]},
    ]
    with no_advice():
        other = load_dataset(GOLDEN, retrieved=others, missing="skip").evaluator().evaluate([1, 5])
        compared = compare({"a": result, "b": other}, "recall@5", on="common")
        alike = compare({"a": result, "b": joined("skip")}, "recall@5")
    assert compared.table[["missing_a", "missing_b"]].to_numpy().tolist() == [[57, 56]]
    assert compared.leaderboard["missing"].to_dict() == {"a": 57, "b": 56}
    assert "57 of 60 (a), 56 of 60 (b)" in compared.summary()
    assert ("missing=" in compared.signature, "missing=57" in alike.signature) == (False, True)


def test_what_rests_on_them_warns(result):
    """Intervals, plans and slices of a comparison."""
    rows = [{**one, "grp": "x"} for one in GOLDEN]
    with warnings.catch_warnings(action="ignore"):
        worse = [{**RUN[0], "predicted": ["other"]}, *RUN[1:]]
        other = load_dataset(GOLDEN, retrieved=worse, missing="skip").evaluator().evaluate([1, 5])
        compared = compare({"a": result, "b": other}, "recall@5")
        tagged = load_dataset(rows, retrieved=RUN, missing="skip").evaluator().evaluate(5)
        by_group = compare({"a": tagged, "b": tagged}, "recall@5")
    for work_out in (
        lambda: confidence_intervals(result),
        lambda: plan_questions(compared, "recall@5", detect=0.1),
        lambda: by_group.by("grp"),
    ):
        with warnings.catch_warnings(record=True, action="always") as caught, suppress(ValueError):
            work_out()
        assert any("57 of 60" in str(one.message) for one in caught)


def test_a_dataset_warns_where_its_file_cannot_tell(tmp_path):
    """What is saved is the three questions alone."""
    with no_advice():
        dataset = load_dataset(GOLDEN, retrieved=RUN, missing="skip")
    with pytest.warns(KragEvalWarning, match="57 of 60"):
        dataset.save(tmp_path / "three.jsonl")


def test_gates_of_both_sides(result, tmp_path):
    """A baseline that lacks questions is refused as well; a history passes over such a run."""
    with no_advice():
        whole = load_dataset(GOLDEN, retrieved=RUN, missing="zero").evaluator().evaluate([1, 5])
        again = joined("skip")
    how = {"metric": "recall@5", "on": "common", "n_resamples": 100}
    with blamed("allow_missing"):
        whole.check(baseline=result, **how)
    with no_advice():
        report = whole.check(baseline=result, allow_missing=57, **how)
    assert report.missing == {"new": MissingQuestions(57, 60, "zero"), "baseline": result.missing}
    result.to_json(tmp_path / "old.json")
    history = History.of(tmp_path)
    with no_advice():
        assert set(history.table["missing"]) == {57}
    assert history.to_dict()["runs"][0]["missing"] == 57
    with no_advice():
        assert "57 of 60 (old)" in repr(history)
    with blamed("history"):
        history.check(whole, metric="recall@5", on="common")
    with blamed("allow_missing"):
        history.check(again, metric="recall@5")
    with no_advice():
        report = history.check(again, metric="recall@5", allow_missing=57, n_resamples=100)
    assert report.missing.keys() == {"new", "old"}
    assert "57 of 60 (new), 57 of 60 (old)" in report.note
    with pytest.raises(pytest.fail.Exception, match="57 of the 60"):
        KragGate(print)(result, {"recall@5": 0.5})
    assert KragGate(lambda line: None)(result, {"recall@5": 0.5}, allow_missing=57)


CALL = ("golden.jsonl", "run.jsonl", "--missing", "skip", "-k", "5")
FLOOR = ("--fail-under", "recall@5=0.9")


@pytest.mark.filterwarnings("ignore")
def test_the_shell_counts_them(files):
    """In the table, JSON and the comment; a gate ends with 2 unless so many are allowed."""
    for command in ("evaluate", "gate"):
        refused = run(command, *CALL, *FLOOR)
        assert (refused.exit_code, "--allow-missing is 0" in refused.output) == (2, True)
        assert run(command, *CALL, *FLOOR, "--allow-missing", "56").exit_code == 2
        allowed = run(command, *CALL, *FLOOR, "--allow-missing", "57")
        assert (allowed.exit_code, "57 of 60" in allowed.output) == (0, True)
    done = run("evaluate", *CALL, "--json", "r.json")
    assert "left out: 57 of 60." in done.output
    found = json.loads(run("evaluate", *CALL, "--format", "json").stdout)
    assert found["missing"] == {"n": 57, "questions": 60, "way": "skip"}
    how = ("--allow-missing", "57", "--markdown", "verdict.md", "--format", "json")
    verdict = json.loads(run("gate", "r.json", *FLOOR, *how).stdout)
    assert verdict["missing"] == {"new": found["missing"]}
    with open("verdict.md", encoding="utf-8") as file:
        assert "57 of 60" in file.read()
    unused = run("evaluate", *CALL, "--allow-missing", "57")
    assert (unused.exit_code, "--allow-missing" in unused.output) == (2, True)
    compared = run("compare", "run.jsonl", "run2.jsonl", "--golden", "golden.jsonl")
    assert compared.exit_code == 2  # there is no such file
    write_lines(files[1].with_name("run2.jsonl"), RUN)
    how = ("--golden", "golden.jsonl", "--missing", "skip", "--format", "json")
    compared = json.loads(run("compare", "run.jsonl", "run2.jsonl", *how).stdout)
    assert compared["missing"] == {"run": found["missing"], "run2": found["missing"]}
