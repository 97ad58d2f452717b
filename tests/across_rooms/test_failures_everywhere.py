"""Queries whose retriever failed: counted wherever a number rests on them, saved or not.

Of 60 questions, ``flaky`` raises on the first 20 and finds the passage of the other 40: its recall
of 40/60 rests on 20 questions that it never answered.
"""

import json
import warnings
from functools import partial

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from reference import no_advice
from refusals import blamed

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
from krag_eval.core.scoring.parts import Summary
from krag_eval.integrations.pytest import KragGate

ROWS = [{"question": f"{i}", "actual": [f"passage {i}"]} for i in range(60)]


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def steady(question):
    return [f"passage {question}" if int(question) % 3 else "other"]


def flaky(question):
    if int(question) < 20:
        raise OSError("down")
    return [f"passage {question}"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with both results."""
    folder = tmp_path_factory.mktemp("runs")
    with no_advice():
        for retriever in (steady, flaky):
            asked = evaluate_retriever(retriever, ROWS, k=[1, 5], on_error="record")
            asked.to_json(folder / f"{retriever.__name__}.json")
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """Return both, as they are read from files."""
    names = ("steady", "flaky")
    return {name: EvaluationResult.from_json(folder / f"{name}.json") for name in names}


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
    steady, flaky = results.values()
    (told,) = flaky.summary.told_failed()
    assert ("20" in told, "60" in told) == (True, True)
    assert steady.summary.told_failed() == []
    assert flaky.summary().endswith(told)
    for form in ("to_markdown", "to_latex", "__repr__", "_repr_html_"):
        assert told in getattr(flaky, form)()
    for one, is_told in ((flaky, True), (steady, False)):
        one.report(tmp_path / "page.html", n_queries=1, intervals=False)
        assert (told[:20] in (tmp_path / "page.html").read_text("utf-8")) is is_told


def test_titles_of_plots_count_them(results):
    """Beside the queries."""
    titles = [
        one.plot(ax=Figure().subplots()).get_title(loc="left").partition("(")[2]
        for one in results.values()
    ]
    assert titles == ["60 queries)", "60 queries, 20 failed)"]


def warned(work_out):
    """Return what is warned of that failed."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        work_out()
    return [told for one in caught if "failed" in (told := str(one.message))]


ROWS_BY = [{**one, "grp": str(i % 2)} for i, one in enumerate(ROWS)]


def test_what_rests_on_them_warns(results, folder):
    """Slices of a comparison, plans and intervals; where none failed, nothing is said of it."""
    with no_advice():
        tagged = {
            name: evaluate_retriever(retriever, ROWS_BY, k=5, on_error="record")
            for name, retriever in {"steady": steady, "flaky": flaky}.items()
        }
    compared = compare(tagged, metric="recall@5")
    alike = compare({"a": tagged["steady"], "b": tagged["steady"]}, metric="recall@5")
    steady_one, flaky_one = results.values()
    for work_out, of, none in (
        (lambda one: one.by("grp"), compared, alike),
        (lambda one: plan_questions(one, detect=0.05), flaky_one, steady_one),
        (partial(confidence_intervals, n_resamples=100), flaky_one, steady_one),
        (lambda one: one.by("items", metrics="recall@5", n_resamples=100), flaky_one, steady_one),
        (lambda one: one.diagnose(k=5), flaky_one, steady_one),
        (lambda one: one.predicts([float(i % 7) for i in range(60)], n_resamples=100), flaky_one,
         steady_one),
    ):  # fmt: skip
        (told,) = warned(partial(work_out, of))
        assert "20 of" in told
        assert warned(partial(work_out, none)) == []
    (told,) = warned(lambda: plan_questions(compared, detect=0.05))
    assert "20 of flaky" in told
    assert "20 of flaky" in compared.to_markdown()
    assert "failed" not in alike.to_markdown()
    done = run("plan", folder / "flaky.json", "--detect", "0.05")
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


def test_compare_in_the_shell(results, folder):
    """In the table's sentences, and as JSON."""
    files = [folder / f"{name}.json" for name in results]
    assert "20 of flaky" in run("compare", *files).output
    content = json.loads(run("compare", *files, "--format", "json").stdout)
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
        with blamed("allow_failures") as caught:
            check()
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


def test_a_gate_in_the_shell(results, folder):
    """Exit code 2, naming the option; with it, 0 and a note."""
    arguments = ("gate", folder / "flaky.json", "--baseline", folder / "steady.json",
                 "--metric", "recall@5")  # fmt: skip
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "--allow-failures" in refused.output
    allowed = run(*arguments, "--allow-failures", 20)
    assert (allowed.exit_code, "20 of new" in allowed.output) == (0, True)
    told = run(*arguments, "--allow-failures=20", "--format=json").stdout
    assert json.loads(told)["failed"] == {"new": 20}


def test_a_gate_in_pytest(results):
    """The test fails; with the number allowed, a line says so."""
    said: list[str] = []
    gate = KragGate(said.append)
    with pytest.raises(pytest.fail.Exception, match="20 of 60"):
        gate(results["flaky"], {"recall@5": 0.1})
    assert gate(results["flaky"], {"recall@5": 0.1}, allow_failures=20)
    assert "20 of new" in said[-1]


def test_a_history_counts_them_and_passes_over_such_runs(results, folder):
    """A run that failed is no mark to be held to: here it would be 40/60 for the same 40/60."""
    history = History.of(folder, "recall@5")
    assert history.table.set_index("run")["failed"].to_dict() == {"steady": 0, "flaky": 20}
    assert {run["run"]: run["failed"] for run in history.to_dict()["runs"]}["flaky"] == 20
    for told in (repr(history), history._repr_html_(), run("history", folder).output):
        assert "20 of flaky" in told
    with no_advice():
        again = evaluate_retriever(steady, ROWS, k=[1, 5])
    report = history.check(again, metric="recall@5", max_drop=0.5)
    assert "flaky" in report.note
    assert "20 of 60" in report.note
    with blamed("allow_failures"):
        history.check(results["flaky"], metric="recall@5")
    refused = run("gate", folder / "flaky.json", "--history", folder, "--metric", "recall@5")
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
