"""``krag-eval compare`` and ``plan``: what they print and write, and what they refuse.

Of 40 queries, system a finds the first 20 and system b the first 30, all at rank 1.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runs import content, finding, refusal, run, written

from krag_eval import compare
from krag_eval.cli.output import json_of
from krag_eval.core import page_of, width_of
from krag_eval.datasets import read_jsonl


def evaluated(*names):
    """Evaluate files from Python."""
    return {
        name: read_jsonl(f"{name}.jsonl").evaluator().evaluate(k=(1, 3, 5, 10)) for name in names
    }


def words(line, **how):
    """Return what a command prints, without where its lines end."""
    return " ".join(run(line, **how).stdout.split())


@pytest.fixture(autouse=True)
def _files(sample):
    for name, n in (("a", 20), ("b", 30), ("c", 21)):
        written(f"{name}.jsonl", finding(n))


def test_the_queries_that_changed_most():
    """Three of them, with both values; none of equal systems."""
    output = run("compare a.jsonl b.jsonl").output
    changed = output.partition("Changed most on ndcg@10 from a to b:\n")[2].splitlines()[2:6]
    assert changed[0].split() == ["Question", "20?", "0.0000", "1.0000", "1.0000"]
    assert [bool(line) for line in changed] == [True, True, True, False]
    written("same.jsonl", finding(20))
    output = run("compare a.jsonl same.jsonl").output
    assert "No difference shown between a and same on ndcg@10" in output
    assert "Changed most" not in output


def test_long_names_and_questions_fit():
    """No line is wider than 100 columns, of which a Hangul letter takes two."""
    names = [f"system-{n}-{'x' * 60}.jsonl" for n in range(1, 4)]
    for n, name in enumerate(names, 1):
        written(name, [one | {"question": "도서관은 언제 여나요? " * 50} for one in finding(n)])
    output = run("compare", *names).stdout
    assert max(map(width_of, output.splitlines())) <= 100
    assert " ".join(output.split()).count("No difference shown between") == 3


def test_it_names_what_is_computed():
    """A metric that is not computed otherwise, of files and of results that have it."""
    asked = "--metric 'rbp(p=0.5)@3,ndcg@3'"
    output = run(f"compare a.jsonl b.jsonl -k 3 {asked}").output
    assert {"rbp(p=0.5)@3", "ndcg@3"} <= {*output.split()}
    assert "k=3 |" in output
    for name in "ab":
        run(f"evaluate {name}.jsonl -k 3 --fail-under 'rbp(p=0.5)@3=0' --json {name}.json")
    assert run(f"compare a.json b.json {asked}").output == output


def test_warnings_name_the_system_or_the_comparison():
    """Of two files, which one matched nothing; few queries are a matter of both."""
    written("nothing.jsonl", finding(0))
    [warning] = run("compare a.jsonl nothing.jsonl").stderr.splitlines()
    assert warning.startswith("warning: nothing: The matcher text matched nothing at all")
    for n in (1, 2):
        written(f"{n}.jsonl", finding(n)[:5])
    [warning] = run("compare 1.jsonl 2.jsonl").stderr.splitlines()
    assert warning.startswith("warning: The intervals rest on 5 queries.")


@pytest.mark.parametrize("named", ["b", "b.jsonl"])
def test_a_baseline(named):
    """Two pairs of three, with the numbers of Python, by name or file."""
    output = run(f"compare a.jsonl b.jsonl c.jsonl --baseline {named}").output
    expected = page_of(compare(evaluated("a", "b", "c"), baseline="b"))
    assert expected.tables[1].text(100) in output
    assert "baseline=b" in output


def test_another_order_of_the_questions():
    """The numbers are the same, and other ground truth is refused by its label."""
    Path("other").mkdir()
    written("other/b.jsonl", finding(30)[::-1])
    assert run("compare a.jsonl other/b.jsonl").output == run("compare a.jsonl b.jsonl").output
    changed = [*finding(20)[:-1], finding(1, actual=["x"])[-1]]
    for rows in (changed, changed[::-1]):
        written("other.jsonl", rows)
        assert "ground truth: 'Question 39?'" in refusal("compare a.jsonl other.jsonl")


def test_the_order_of_the_ground_truth_is_no_difference():
    """It is a set."""
    for name, items in (("x", ["x", "y"]), ("y", ["y", "x"])):
        written(f"{name}.jsonl", finding(9, actual=items))
    assert run("compare x.jsonl y.jsonl").exit_code == 0


def test_what_files_have_in_common():
    """What was left out is said; the numbers are those of what is shared."""
    written("other.jsonl", finding(30)[::-1][:35])
    output = run("compare a.jsonl other.jsonl --on common").output
    said = " ".join(output.split())
    assert "Compared on the 35 queries that all have; left out" in said
    assert "5 of a ('Question 0?', 'Question 1?', " in said
    assert max(map(width_of, output.splitlines())) <= 100
    assert " 0.2857 " in output  # 25 of 35 against 15


def test_files_without_questions_have_nothing_known_in_common():
    """A line number is no name; what to do is said in words of the shell."""
    for n in (35, 40):
        written(f"{n}.jsonl", finding(20, question=None)[:n])
    message = refusal("compare 35.jsonl 40.jsonl --on common")
    assert message.startswith("'35' has no labels of its queries, only their positions")
    assert message.endswith("its question in a file.")


def test_other_queries_are_refused():
    """With the first that differs, or with both numbers."""
    written("other.jsonl", [*finding(20)[:-1], finding(1, question="Why?")[-1]])
    message = refusal("compare a.jsonl other.jsonl")
    assert "'a' and 'other' cannot be compared, because they differ in queries" in message
    assert "queries: 'Question 39?'" in message
    written("fewer.jsonl", finding(20)[:30])
    message = refusal("compare a.jsonl fewer.jsonl")
    assert "queries: 40 vs 30" in message
    assert message.endswith("compare those that both have with --on common.")


def test_saved_results_count_as_the_files_they_come_from():
    """All of them, or some, evaluated in the same way."""
    run("evaluate b.jsonl --json b.json")
    assert run("compare a.jsonl b.json").output == run("compare a.jsonl b.jsonl").output
    run("evaluate b.jsonl -m contains --json b.json")
    assert "differ in matcher: text vs contains" in refusal("compare a.jsonl b.json")


def test_each_output_is_written_and_said():
    """Tables in Markdown and LaTeX, a picture, a page."""
    outputs = {
        "markdown": ("out.md", b"| a | b | metric |"),
        "latex": ("out.tex", rb"\begin{tabular}"),
        "plot": ("out.png", b"\x89PNG"),
        "report": ("out.html", b'<!doctype html>\n<html lang="ko"'),
    }
    options = " ".join(f"--{option} {name}" for option, (name, _) in outputs.items())
    output = run(f"compare a.jsonl b.jsonl {options} --report-language ko").output
    for name, begins in outputs.values():
        assert f"wrote {Path.cwd() / name} (" in output
        assert Path(name).read_bytes()[:40].lower().startswith(begins.lower())


def test_equal_stems_are_told_apart():
    """By as much of their paths as it takes; standard input has a name, too."""
    for name, n in (("one", 20), ("two", 30)):
        Path(name).mkdir()
        written(f"{name}/run.jsonl", finding(n))
    assert "two/run is better than one/run" in words("compare one/run.jsonl two/run.jsonl")
    piped = words("compare a.jsonl -", stdin=Path("b.jsonl").read_text())
    assert "stdin is better than a" in piped


# Five queries of each of 30 sources do alike, and two sources differ.
DESIGN_EFFECT = pytest.approx(5 * 30 / 29 * 149 / 150)


@pytest.fixture
def saved():
    """Save results of 150 queries: new loses those of two more sources than old."""
    for name, n_lost in (("old", 3), ("new", 5)):
        rows = [
            {"question": f"Question {i}?", "actual": ["a"], "source": i // 5,
             "predicted": ["x" if i // 5 < n_lost else "a"]}
            for i in range(150)
        ]  # fmt: skip
        written(f"{name}.jsonl", rows)
        run(f"evaluate {name}.jsonl -k 1 --json {name}.json")


@pytest.mark.usefixtures("saved")
def test_compared_by_clusters():
    """The design effect is printed, and stands in the JSON; without them they are mentioned."""
    by_source = "compare old.json new.json --clusters source"
    assert "30 clusters of queries by source" in words(by_source)
    assert "| clusters=source" in words(by_source)
    found = content(by_source)
    assert found["clusters"] == "source"
    assert found["differences"][0]["design_effect"] == DESIGN_EFFECT
    assert "ask for clusters by source." in words("compare old.json new.json")
    assert content("compare old.json new.json")["dependent"] == {"source": DESIGN_EFFECT}


@pytest.mark.usefixtures("saved")
def test_a_gate_goes_by_clusters():
    """Ten queries lost are more than chance, two sources are not."""
    gate = "gate new.json --baseline old.json --metric recall@1"
    assert run(gate).exit_code == 1
    assert run(f"{gate} --clusters source").exit_code == 0


@pytest.mark.usefixtures("saved")
def test_a_plan_is_printed_saved_and_drawn():
    """With clusters, and with those mentioned that matter."""
    plan = "plan old.json new.json --metric recall@1 --detect 0.05"
    found = content(f"{plan} --clusters source")
    printed = words(f"{plan} --clusters source --plot plan.svg")
    assert Path("plan.svg").stat().st_size
    assert f"takes {found['questions']:,} questions" in printed
    assert (found["design_effect"], found["pilot_questions"]) == (DESIGN_EFFECT, 150)
    assert "ask for clusters by source." in words(plan)
    assert content(plan)["dependent"] == {"source": DESIGN_EFFECT}
    row = run(f"{plan} --format csv").stdout
    assert ("old and new" in row, "source 5.14" in row) == (True, True)


@pytest.mark.usefixtures("saved")
def test_of_one_pilot_the_correlation_is_assumed():
    """It may be typed, and the design effect is that of the one result."""
    assert "0.8, which is assumed" in words("plan old.json --detect 0.05 --correlation 0.8")
    found = content("plan old.json --metric recall@1 --detect 0.05 --clusters source")
    # All five queries of each of 30 sources do alike.
    assert found["design_effect"] == DESIGN_EFFECT


@pytest.mark.parametrize("names", ["five two", "two five", "five five"])
def test_an_effect_size_without_a_bound_is_null_in_json(names):
    """Of queries that all differ by the same amount, d_z divides by 0; the verdict says so."""
    for name, rank in (("five", 5), ("two", 2)):
        ranking = ["x"] * (rank - 1) + ["a"]
        rows = [{"question": f"{n}?", "actual": ["a"], "predicted": ranking} for n in range(30)]
        written(f"{name}.jsonl", rows)
        written(f"{name}-2.jsonl", rows)
    first, second = names.split()
    call = f"compare {first}.jsonl {second}-2.jsonl -k 5 --metric mrr@5,ndcg@5"
    result = json.loads(run(f"{call} --format json").stdout, parse_constant=pytest.fail)
    differs = first != second
    for row in result["differences"]:
        assert row["effect_size"] == (None if differs else 0)
    assert ("effect size (d_z) is infinite" in result["verdict"]) == differs
    assert ("effect size (d_z) is infinite" in words(call)) == differs


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), np.float64("inf")])
def test_no_number_that_json_cannot_write_is_printed(value):
    """Wherever it stands; what is finite keeps its digits."""
    text = json_of({"a": value, "b": [{"c": (value, 0.1 + 0.2, True, 3, "inf", None)}]})
    expected = {"a": None, "b": [{"c": [None, 0.1 + 0.2, True, 3, "inf", None]}]}
    assert json.loads(text, parse_constant=pytest.fail) == expected
