"""Queries whose retriever failed: counted wherever a number rests on them, saved or not.

Of 60 questions, ``flaky`` raises on the first 20 and finds the passage of the other 40: its recall
of 40/60 rests on 20 questions that it never answered.
"""

from __future__ import annotations

import json
import shutil
import warnings
from functools import partial

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from reference import no_advice

from krag_eval import (
    EvaluationResult,
    History,
    KragEvalWarning,
    compare,
    confidence_intervals,
    evaluate_retriever,
    plan_questions,
    sweep,
)
from krag_eval.cli import main
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.integrations.pytest import KragGate
from krag_eval.scoring.parts import Summary

ROWS = [{"question": f"{i}", "actual": [f"passage {i}"]} for i in range(60)]


def steady(question):
    return [f"passage {question}" if int(question) % 3 else "other"]


def flaky(question):
    if int(question) < 20:
        raise OSError("down")
    return [f"passage {question}"]


@pytest.fixture
def results(tmp_path):
    """Return both, as they are read from files."""
    with no_advice():
        for retriever in (steady, flaky):
            asked = evaluate_retriever(retriever, ROWS, k=[1, 5], on_error="record")
            asked.to_json(tmp_path / f"{retriever.__name__}.json")
    return {
        name: EvaluationResult.from_json(tmp_path / f"{name}.json") for name in ("steady", "flaky")
    }


def shell(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_a_file_knows_them(results):
    """How many, which, and why."""
    found = results["flaky"]
    assert (found.n_failed, results["steady"].n_failed) == (20, 0)
    assert found.failures["position"].tolist() == [*range(20)]
    assert found.per_query()["failed"].tolist() == [True] * 20 + [False] * 40
    assert "failed" not in results["steady"].per_query()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_form_of_a_result_counts_them(results, language, tmp_path, monkeypatch):
    """The sentence, Markdown, LaTeX, the table and the page; the other result mentions none."""
    monkeypatch.setenv("KRAG_EVAL_LANG", language)
    (told,) = results["flaky"].summary.told_failed()
    assert ("20" in told, "60" in told) == (True, True)
    assert results["steady"].summary.told_failed() == []
    assert results["flaky"].summary().endswith(told)
    assert told in results["flaky"].to_markdown()
    assert told in results["flaky"].to_latex()
    assert told in repr(results["flaky"])
    assert told in results["flaky"]._repr_html_()
    for name, result in results.items():
        with no_advice():
            result.report(tmp_path / f"{name}.html")
    assert told in (tmp_path / "flaky.html").read_text("utf-8")
    assert told[:20] not in (tmp_path / "steady.html").read_text("utf-8")


def test_titles_of_plots_count_them(results):
    """Beside the queries."""
    titles = [
        one.plot(ax=Figure().subplots()).get_title(loc="left").partition("(")[2]
        for one in results.values()
    ]
    assert titles == ["60 queries)", "60 queries, 20 failed)"]


def warned(work_out):
    """Return what is warned of that failed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work_out()
    return [told for one in caught if "failed" in (told := str(one.message))]


ROWS_BY = [{**one, "grp": str(i % 2)} for i, one in enumerate(ROWS)]


def test_what_rests_on_them_warns(results, tmp_path, monkeypatch):
    """Slices of a comparison, plans and intervals; where none failed, nothing is said of it."""
    with no_advice():
        tagged = {
            name: evaluate_retriever(retriever, ROWS_BY, k=5, on_error="record")
            for name, retriever in {"steady": steady, "flaky": flaky}.items()
        }
    compared = compare(tagged, metric="recall@5")
    alike = compare({"a": tagged["steady"], "b": tagged["steady"]}, metric="recall@5")
    for work_out, of, none in (
        (lambda one: one.by("grp"), compared, alike),
        (lambda one: plan_questions(one, detect=0.05), tagged["flaky"], tagged["steady"]),
        (confidence_intervals, results["flaky"], results["steady"]),
    ):
        (told,) = warned(partial(work_out, of))
        assert "20 of" in told
        assert warned(partial(work_out, none)) == []
    (told,) = warned(lambda: plan_questions(compared, detect=0.05))
    assert "20 of flaky" in told
    assert "20 of flaky" in compared.to_markdown()
    assert "failed" not in alike.to_markdown()
    done = shell("plan", tmp_path / "flaky.json", "--detect", "0.05")
    assert done.exit_code == 0
    assert "20 of" in done.output


def test_sums_of_parts_count_them(results):
    """Also as JSON."""
    whole = results["flaky"].summary + results["flaky"].summary
    assert whole.n_failed == 40
    assert Summary.from_json(json.loads(json.dumps(whole.to_json()))).n_failed == 40


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_comparison_counts_them(results, language, tmp_path, monkeypatch):
    """Of each system, in the sentence, the tables, Markdown and the page."""
    monkeypatch.setenv("KRAG_EVAL_LANG", language)
    compared = compare(results, metric="recall@5")
    assert compared.failed == {"flaky": 20}
    told = compared.summary().splitlines()[-1]
    assert ("20" in told, "flaky" in told, "steady" in told) == (True, True, False)
    assert told in repr(compared)
    assert told in compared.to_markdown()
    assert compared.table[["failed_a", "failed_b"]].values.tolist() == [[0, 20]]
    assert compared.leaderboard["failed"].to_dict() == {"steady": 0, "flaky": 20}
    compared.report(tmp_path / "page.html")
    assert told in (tmp_path / "page.html").read_text("utf-8")
    alike = compare(results["steady"], results["steady"], metric="recall@5")
    assert "failed_a" not in alike.table


def test_only_those_compared_are_counted(results):
    """Of 20 that failed, 10 are among the questions that both have."""
    with no_advice():
        some = evaluate_retriever(steady, ROWS[10:], k=[1, 5])
    compared = compare({"some": some, "flaky": results["flaky"]}, metric="recall@5", on="common")
    assert compared.failed == {"flaky": 10}


def test_compare_in_the_shell(results, tmp_path):
    """In the table's sentences, and as JSON."""
    files = [tmp_path / f"{name}.json" for name in results]
    assert "20 of flaky" in shell("compare", *files).output
    content = json.loads(shell("compare", *files, "--format", "json").stdout)
    assert content["failed"] == {"flaky": 20}
    assert content["differences"][0]["failed_b"] == 20


@pytest.mark.parametrize("allowed", [0, 19])
def test_a_gate_over_more_than_are_allowed_is_refused(results, allowed):
    """With floors alone, as the new result and as the baseline."""
    old, new = results["steady"], results["flaky"]
    for check in (
        lambda: new.check({"recall@5": 0.1}, allow_failures=allowed),
        lambda: new.check(baseline=old, metric="recall@5", allow_failures=allowed),
        lambda: old.check(baseline=new, metric="recall@5", allow_failures=allowed),
    ):
        with pytest.raises(InvalidInput) as caught:
            check()
        assert caught.value.argument == "allow_failures"
        assert "allow_failures=20" in str(caught.value)


def test_an_allowed_number_is_said(results):
    """By the report, of either result; one where nothing failed has no note."""
    old, new = results["steady"], results["flaky"]
    report = new.check(baseline=old, metric="recall@5", allow_failures=20)
    assert (report.passed, report.failed) == (True, {"new": 20})
    assert "20 of new" in report.note
    assert report.note in repr(report)
    assert old.check(baseline=new, metric="recall@5", allow_failures=20).failed == {"baseline": 20}
    assert old.check({"recall@5": 0.1}).note == ""


@pytest.mark.parametrize(
    ("wrong", "error"), [(-1, InvalidInput), (1.5, InvalidType), (True, InvalidType)]
)
def test_what_is_no_number_of_failures(results, wrong, error):
    """Refused also where nothing failed."""
    with pytest.raises(error) as caught:
        results["steady"].check({"recall@5": 0.1}, allow_failures=wrong)
    assert caught.value.argument == "allow_failures"


def test_a_gate_in_the_shell(results, tmp_path, capsys):
    """Exit code 2, naming the option; with it, 0 and a note."""
    arguments = ("gate", tmp_path / "flaky.json", "--baseline", tmp_path / "steady.json",
                 "--metric", "recall@5")  # fmt: skip
    refused = shell(*arguments)
    assert refused.exit_code == 2
    assert "--allow-failures" in refused.output
    allowed = shell(*arguments, "--allow-failures", 20)
    assert (allowed.exit_code, "20 of new" in allowed.output) == (0, True)
    main([*map(str, arguments), "--allow-failures=20", "--format=json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["failed"] == {"new": 20}


def test_a_gate_in_pytest(results, tmp_path):
    """The test fails; with the number allowed, a line says so."""
    said: list[str] = []
    gate = KragGate(said.append)
    with pytest.raises(pytest.fail.Exception, match="20 of 60"):
        gate(results["flaky"], {"recall@5": 0.1})
    assert gate(results["flaky"], {"recall@5": 0.1}, allow_failures=20)
    assert "20 of new" in said[-1]


def test_a_history_counts_them_and_passes_over_such_runs(results, tmp_path):
    """A run that failed is no mark to be held to: here it would be 40/60 for the same 40/60."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in results:
        shutil.copy(tmp_path / f"{name}.json", folder)
    history = History.of(folder, "recall@5")
    assert history.table.set_index("run")["failed"].to_dict() == {"steady": 0, "flaky": 20}
    assert {run["run"]: run["failed"] for run in history.to_dict()["runs"]}["flaky"] == 20
    assert "20 of flaky" in repr(history)
    assert "20 of flaky" in history._repr_html_()
    assert "20 of flaky" in shell("history", folder).output
    with no_advice():
        again = evaluate_retriever(steady, ROWS, k=[1, 5])
    report = history.check(again, metric="recall@5", max_drop=0.5)
    assert "flaky" in report.note
    assert "20 of 60" in report.note
    with pytest.raises(InvalidInput) as caught:
        history.check(results["flaky"], metric="recall@5")
    assert caught.value.argument == "allow_failures"
    refused = shell("gate", tmp_path / "flaky.json", "--history", folder, "--metric", "recall@5")
    assert refused.exit_code == 2


def test_a_sweep_counts_them():
    """In its table and its sentences."""
    corpus = [row["actual"][0] for row in ROWS]
    with pytest.warns(KragEvalWarning, match="20 of 60 queries failed"):
        found = sweep(
            corpus, ROWS, {"whole": lambda text: [text]}, {"flaky": lambda chunks: flaky},
            k=1, budget=None, matcher="text", on_error="record", progress=False,
        )  # fmt: skip
    assert found.table["failed"].tolist() == [20]
    assert "20 of 60" in found.summary("en")


def test_what_is_worked_out_of_a_result_warns_of_them(results, tmp_path):
    """Slices, a diagnosis and correlations, which take them for questions that found nothing."""
    result = results["flaky"]
    for work in (
        lambda: result.by("items", metrics="recall@5"),
        lambda: result.diagnose(k=5),
        lambda: result.predicts([float(i % 7) for i in range(60)], n_resamples=100),
    ):
        with pytest.warns(KragEvalWarning, match="20 of 60 queries"):
            work()
