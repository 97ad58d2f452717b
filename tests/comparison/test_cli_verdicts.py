"""``--fail-under`` and ``krag-eval gate``: exit codes and messages.

Of the sample, macro_recall@2 is (2/3 + 1/2) / 2 = 7/12, mrr (1 + 1/2) / 2 and mean_rank@2 1.5.
"""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_runs import content, finding, printed, refusal, run, written

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator

CALL = "evaluate sample.jsonl -k 2"
GATE = "gate new.json --baseline old.json"


# Which ground truth a verdict rests on is its last line.
_DIGEST = r"Digest of the ground truth: [0-9a-f]{12}\."


def saved(name, first_n, n=100):
    """Save the result of a retriever that finds the first so many of n passages."""
    actual = [[f"passage {i}"] for i in range(n)]
    predicted = [truth if i < first_n else ["other"] for i, truth in enumerate(actual)]
    OfflineRetrievalEvaluator(actual, predicted).evaluate(k=[5, 10]).to_json(f"{name}.json")


def fail_under(*floors):
    return " ".join(f"--fail-under '{one}'" for one in floors)


@pytest.mark.parametrize(
    ("floors", "passed", "failed"),
    [
        (["mrr@2=0.75"], ["mrr@2 is 0.7500, at or above the floor of 0.75"], []),
        (["macro_recall@2=0.8"], [], ["macro_recall@2 is 0.5833, below the floor of 0.8"]),
        (["macro_recall@2=0.8", "mrr@2=0.1", "ndcg@2=0.9"],
         ["mrr@2 is 0.7500, at or above the floor of 0.1"],
         ["macro_recall@2 is 0.5833, below the floor of 0.8",
          "ndcg@2 is 0.6934, below the floor of 0.9"]),
        # Of a mean rank it is a ceiling: lower is better.
        (["mean_rank@2=1.5"], ["mean_rank@2 is 1.5000, at or below 1.5"], []),
        (["mean_rank@2=1.2"], [], ["mean_rank@2 is 1.5000, above 1.2"]),
    ],
)  # fmt: skip
def test_floors(floors, passed, failed):
    """1 where one is broken; each has a line after the table, on standard error if it is."""
    done = run(f"{CALL} {fail_under(*floors)}")
    assert done.exit_code == bool(failed)
    *lines, digest = done.stdout.splitlines()
    assert re.fullmatch(_DIGEST, digest)
    assert lines[len(lines) - len(passed) :] == [f"passed: {one}" for one in passed]
    assert done.stderr.splitlines() == [f"failed: {one}" for one in failed]
    assert printed(done.stdout)["mrr"] == ["0.7500"]


@pytest.mark.parametrize("in_chunks", ["", "--chunk-size 1"])
def test_a_floor_names_what_is_computed(in_chunks):
    """A metric that is not computed otherwise; the saved result has it, too."""
    floors = fail_under("rbp@2=0.25", "rbp(p=0.5)@2=0.5", "success@2=1", "r_precision@2=0.5")
    result = run(f"{CALL} {floors} --json out.json {in_chunks}")
    assert result.exit_code == 0, result.output
    rows = printed(result.output)
    # (0.36 + 0.16) / 2, (0.75 + 0.25) / 2
    assert (rows["rbp(p=0.8)"], rows["rbp(p=0.5)"]) == (["0.2600"], ["0.5000"])
    assert rows["mrr"] == ["0.7500"]
    assert run(f"gate out.json {floors}").exit_code == 0
    assert run("gate out.json --fail-under rbp@2=0.27").exit_code == 1


def test_outputs_are_written_all_the_same():
    """They are what one looks at to see why."""
    outputs = {"--json": "a.json", "--csv": "a.csv", "--plot": "a.png", "--report": "a.html"}
    given = " ".join(f"{option} {name}" for option, name in outputs.items())
    assert run(f"{CALL} --fail-under mrr@2=0.9 {given}").exit_code == 1
    assert all(Path(name).stat().st_size for name in outputs.values())


def test_the_rejection_rate_has_a_floor_where_it_is_measured():
    """It is printed, too: of two queries that should get nothing, one did."""
    rows = [(["a"], ["a"]), ([], []), ([], ["x"])]
    written("run.jsonl", [{"actual": one, "predicted": other} for one, other in rows])
    floor = "--no-ground-truth skip -k 5 --fail-under rejection_rate@5=0.6"
    result = run(f"evaluate run.jsonl {floor}")
    assert (result.exit_code, printed(result.output)["rejection_rate"]) == (1, ["0.5000"])
    # Only the file says whether there are such queries.
    assert "got 'rejection_rate'" in refusal(f"evaluate sample.jsonl {floor}")


def test_intervals_stand_beside_each_average():
    """They are those of Python, as many cutoffs to a table as fit; few queries are said."""
    rows = [{"actual": ["a"], "predicted": ["a" if i % 3 else "b", "a"]} for i in range(40)]
    written("run.jsonl", rows)
    output = run("evaluate run.jsonl -k 1,2,3,4 --intervals").stdout
    evaluator = OfflineRetrievalEvaluator(
        [row["actual"] for row in rows], [row["predicted"] for row in rows]
    )
    low, high = evaluator.evaluate(k=1).confidence_intervals().loc["mrr@1", ["low", "high"]]
    assert re.search(rf"^mrr +0\.6500 +{low:.4f} to {high:.4f}", output, re.MULTILINE)
    assert output.count("95 % interval") == 4
    assert max(map(len, output.splitlines())) <= 100
    [warning] = run(f"{CALL} --intervals").stderr.splitlines()
    assert warning.startswith("warning: The intervals rest on 2 queries.")


@pytest.mark.parametrize(
    ("first_n", "options", "code", "stdout", "stderr"),
    [
        (79, "--max-drop 0.02", 0,
         "passed: ndcg@10 went from 0.8000 to 0.7900, no worse than the allowed 0.02; these "
         "queries cannot rule out a drop of up to 0.0300\n", ""),
        # 20 of 100 queries lost is no chance.
        (60, "--max-drop 0.02", 1, "",
         "failed: ndcg@10 went from 0.8000 to 0.6000, worse by 0.2000 where 0.02 is allowed "
         "(one-sided p < 0.001; 95 % interval of the difference -0.2"),
        # One query of 100 lost is not enough to tell.
        (79, "", 0, "", "inconclusive: ndcg@10 went from 0.8000 to 0.7900, worse by"),
        (79, "--strict", 1, "", "inconclusive: ndcg@10 went from 0.8000 to 0.7900, worse by"),
        # Each condition has its line, and one that fails is enough.
        (81, "--fail-under macro_recall@5=0.9", 1, "passed: ndcg@10 went from 0.8000 to 0.8100",
         "failed: macro_recall@5 is 0.8100, below the floor of 0.9\n"),
    ],
)  # fmt: skip
def test_a_gate(first_n, options, code, stdout, stderr):
    """What passed is on standard output, and the reason for anything else on standard error."""
    saved("old", 80)
    saved("new", first_n)
    done = run(f"{GATE} --metric ndcg@10 {options}")
    assert done.exit_code == code
    told, found = re.subn(f"{_DIGEST}\n", "", done.stdout)
    assert found == 1
    for said, expected in ((told, stdout), (done.stderr, stderr)):
        assert said.startswith(expected)
        assert said.count("\n") == bool(expected)
    if stderr.startswith("inconclusive"):
        assert "100 queries can show drops from 0.0663 on" in done.stderr


def test_what_github_and_gitlab_show():
    """What is inconclusive is a warning of its own, beside an error and a plain line."""
    saved("old", 80)
    saved("new", 79)
    call = f"{GATE} --metric ndcg@10 {fail_under('mrr@5=0.9', 'mrr@10=0.5')}"
    done = run(f"{call} --format github")
    first, second, third = done.stdout.splitlines()
    assert first.startswith("::error title=krag-eval gate::failed: mrr@5 is 0.7900")
    assert second.startswith("::warning title=krag-eval gate::inconclusive: ndcg@10 went from")
    assert "95 %25 interval" in second
    assert third.startswith("passed: mrr@10 is 0.7900")
    assert done.exit_code == 1
    found = json.loads(run(f"{call} --format gitlab").stdout)
    assert [(one["check_name"], one["severity"]) for one in found] == [
        ("krag-eval gate: failed", "critical"),
        ("krag-eval gate: inconclusive", "minor"),
    ]
    assert [one["location"] for one in found] == [{"path": "new.json", "lines": {"begin": 1}}] * 2
    assert len({one["fingerprint"] for one in found}) == 2


#: Of the schema that Jenkins publishes for JUnit's XML: element -> its children, the attributes it
#: must have, and those it may have.
JUNIT = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": ({"testcase", "properties"}, {"name", "tests", "failures", "errors"},
                  {"skipped", "time", "timestamp", "hostname", "id", "package"}),
    "testcase": ({"skipped", "failure", "system-out"}, {"name"}, {"classname", "time"}),
    "failure": (set(), set(), {"type", "message"}),
    "skipped": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}  # fmt: skip


def junit_of(call):
    """Return the cases of a command's JUnit XML: name -> what became of it, if it keeps to it."""
    done = run(f"{call} --format junit")
    root = ElementTree.fromstring(done.stdout.encode())
    for element in root.iter():
        children, needed, allowed = JUNIT[element.tag]
        assert {one.tag for one in element} <= children
        assert needed <= set(element.attrib) <= needed | allowed
    (suite,) = root
    cases = {one.get("name"): [each.tag for each in one] for one in suite}
    told = [*cases.values()]
    assert len(cases) == int(suite.get("tests"))  # a name is told once, or readers drop it
    assert told.count(["failure"]) == int(suite.get("failures"))
    assert told.count(["skipped"]) == int(suite.get("skipped"))
    assert done.exit_code == (["failure"] in told)
    return {name: tag for name, (tag,) in cases.items()}


def test_what_readers_of_junit_show():
    """A failure, a skip where the gate cannot tell, and strict makes a failure of that."""
    saved("old", 80)
    saved("new", 79)
    call = f"{GATE} --metric ndcg@10 {fail_under('ndcg@10=0.9', 'mrr@10=0.5')}"
    found = {"ndcg@10": "failure", "mrr@10": "system-out", "ndcg@10 (2)": "skipped"}
    assert junit_of(call) == found
    assert junit_of(f"{call} --strict") == found | {"ndcg@10 (2)": "failure"}


def test_the_name_of_a_slice_is_text_in_xml():
    """No markup, and nothing that XML forbids, such as a control character."""
    for name, finds in (("old", 40), ("new", 20)):
        rows = [{**one, "tag": 'a<b>&"\x1b\x00\ufffe'} for one in finding(finds, 40)]
        written(f"{name}.jsonl", rows)
        run(f"evaluate {name}.jsonl --json {name}.json")
    found = junit_of(f"{GATE} --metric mrr@5 --by tag")
    assert found == {"mrr@5": "failure", 'mrr@5 a<b>&"\\x1b\\x00\\ufffe': "failure"}


@pytest.mark.needs("auditing", "reanchoring")
def test_other_verdicts_have_the_same_formats():
    """Of floors and of ground truth; without a condition there is no verdict to format."""
    written("golden.jsonl", [{"question": "a?", "actual": ["x", "y"]}])
    assert junit_of("audit golden.jsonl -k 1 --fail-on more_items_than_k") == {
        "more_items_than_k": "failure"
    }
    written("chunks.jsonl", [{"id": "1", "text": "x"}, {"id": "2", "text": "y"}])
    call = "reanchor golden.jsonl --old chunks.jsonl --new chunks.jsonl --fail-on gone"
    assert junit_of(call) == {"gone": "system-out"}
    assert junit_of(f"{CALL} {fail_under('mrr@2=0.9')}") == {"mrr@2": "failure"}
    assert "--fail-on" in refusal("audit golden.jsonl --format github")


def test_a_verdict_with_its_numbers_and_questions():
    """The five that lost most, of the new result, the worst first; a gain is not among them."""
    lists = {"old": [*[["a"]] * 11, ["b"]], "new": [["b"], *[["b", "a"]] * 10, ["a"]]}
    for name, predicted in lists.items():
        queries = [f"Number {i}?" for i in range(12)]
        evaluator = OfflineRetrievalEvaluator([["a"]] * 12, predicted, queries=queries)
        evaluator.evaluate(k=2).to_json(f"{name}.json")
    call = f"{GATE} --metric mrr@2 --max-drop 0.1"
    run(f"{call} --markdown out.md")
    printed = run(f"{call} --format markdown").stdout
    assert Path("out.md").read_text("utf-8") == printed
    title, _, line, _, header, _, numbers, _, worse, _, *table = printed.splitlines()
    assert title == "### Retrieval gate: failed"
    assert line.startswith("- failed: mrr@2 went from 0.9167 to 0.5000")
    assert header.startswith("| metric | baseline | new | change | 95 % interval |")
    # 11/12, and (0 + 10 × 1/2 + 1)/12.
    assert numbers.startswith("| mrr@2 | 0.9167 | 0.5000 | -0.4167 |")
    assert numbers.endswith("| 1 / 0 / 11 |")
    assert worse == "Got worse on mrr@2: 11 of 12 questions"
    assert table[2:7] == [
        "| Number 0? | 1.0000 | 0.0000 |",
        *(f"| Number {i}? | 1.0000 | 0.5000 |" for i in range(1, 5)),
    ]
    assert table[7] == ""


def test_questions_are_named_by_their_positions():
    """Also those that were left out, which have theirs in the result that has them."""
    for name, n, finds in (("old", 50, 50), ("new", 45, 30)):
        written(f"{name}.jsonl", finding(finds, n))
        run(f"evaluate {name}.jsonl --json {name}.json")
    Path("runs").mkdir()
    Path("old.json").rename("runs/old.json")
    for held in ("--baseline runs/old.json", "--history runs"):
        call = f"gate new.json {held} --metric mrr@5 --on common"
        for form in ("table", "json", "markdown", "github"):
            assert "Question" in run(f"{call} --format {form}").output
            told = run(f"{call} --redact --format {form}")
            assert "Question" not in told.output
            assert "left out: 5 of baseline (45, 46, 47 and 2 more)" in told.output
    assert "--redact" in refusal(f"{call} --redact --report page.html")


def test_what_a_gate_keeps():
    """The result with its verdict, so that it can be held to a history; and the page of both."""
    Path("runs").mkdir()
    for name, finds in (("old", 40), ("new", 20)):
        written(f"{name}.jsonl", finding(finds, 40))
    run("evaluate old.jsonl --json runs/old.json")
    call = "gate new.jsonl --history runs --metric mrr@5"
    assert "--json" in refusal(call)
    assert run(f"{call} --json new.json --report page.html").exit_code == 1
    assert EvaluationResult.from_json("new.json").gate == "failed"
    assert "baseline" in Path("page.html").read_text("utf-8")


def test_a_file_of_gitlab_is_named_as_the_repository_names_it():
    """Without a ./ before it, which GitLab does not find."""
    saved("new", 50)
    (found,) = json.loads(run(f"gate ./new.json {fail_under('mrr@5=0.9')} --format gitlab").stdout)
    assert found["location"]["path"] == "new.json"


def test_a_set_of_questions_that_grew():
    """What both have decides; what was left out is named, and nothing else is printed."""
    for name, n, finds in (("old", 50, 50), ("new", 70, 30)):
        written(f"{name}.jsonl", finding(finds, n))
        run(f"evaluate {name}.jsonl --json {name}.json")
    call = f"{GATE} --metric mrr@5 --max-drop 0.1"
    assert refusal(call).endswith("both have with --on common.")
    done = run(f"{call} --on common")
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "failed: mrr@5 went from 1.0000 to 0.6000 on the 50 queries that both have, worse by"
    )
    assert done.stdout.startswith(
        "Compared on the 50 queries that all have; left out: 20 of new ('Question 50?', "
    )


def test_few_or_other_queries():
    """A gate on few catches only a landslide; on others there is none."""
    saved("new", 5, n=6)
    saved("again", 5, n=6)
    done = run("gate new.json --baseline again.json --metric ndcg@10")
    assert done.exit_code == 0
    assert "with identical values in every query" in done.stdout
    assert done.stderr.startswith("warning: The intervals rest on 6 queries.")
    saved("old", 80)
    message = refusal(f"{GATE} --metric ndcg@10")
    assert message.startswith("'baseline' and 'new' cannot be compared")
    assert "queries: 100 vs 6" in message


def _another_name(old, how):
    new = Path("another.json" if old.endswith(".json") else "another.jsonl")
    {"symlink": new.symlink_to, "hardlink": new.hardlink_to}[how](old)
    return new


@pytest.mark.parametrize("how", ["same", "spelling", "symlink", "hardlink"])
@pytest.mark.parametrize(
    ("new", "old"), [("new.json", "new.json"), ("all.jsonl", "all.jsonl"),
                     ("golden.jsonl run.jsonl", "run.jsonl")],
)  # fmt: skip
def test_a_file_is_not_held_against_itself(new, old, how):
    """Saved or evaluated, under whatever name."""
    saved("new", 5)
    rows = finding(5, 40)
    written("all.jsonl", rows)
    written("golden.jsonl", [{"question": x["question"], "actual": x["actual"]} for x in rows])
    written("run.jsonl", [{"question": x["question"], "predicted": x["predicted"]} for x in rows])
    names = {"same": old, "spelling": f"./{old}"}
    baseline = names.get(how) or _another_name(old, how)
    assert refusal(f"gate {new} --baseline {baseline} --metric mrr@5").startswith("--baseline: ")


def test_a_copy_of_a_result_is_the_result():
    """It holds the same run; a second run of a retriever that did not change is another."""
    saved("new", 50)
    shutil.copy("new.json", "old.json")
    assert refusal(f"{GATE} --metric mrr@5").startswith("--baseline is the result itself")
    saved("old", 50)
    done = run(f"{GATE} --metric mrr@5")
    assert done.exit_code == 0
    assert "went from 0.5000 to 0.5000 with identical values in every query" in done.stdout


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: text.replace("1", "2")])
def test_a_damaged_file_is_refused(damage):
    """Cut or changed."""
    saved("old", 80)
    Path("old.json").write_text(damage(Path("old.json").read_text("utf-8")), "utf-8")
    assert refusal("gate old.json --fail-under mrr@5=0.8").startswith("old.json: ")


def test_a_result_without_rows_is_refused_by_name():
    """With what to type; floors alone need no rows."""
    run(f"{CALL} --json whole.json")
    run(f"{CALL} --json bare.json --chunk-size 1")
    for call in (
        "gate bare.json --baseline whole.json --metric ndcg@2",
        "gate whole.json --baseline bare.json --metric ndcg@2",
        "compare bare.json whole.json --metric ndcg@2",
    ):
        assert refusal(call) == (
            "bare.json: holds averages but no per-query rows, which a comparison needs; "
            "evaluate with --per-query OUT to write them to a file."
        )
    assert run("gate bare.json --fail-under mrr@2=0.75").exit_code == 0


def test_a_floor_brings_its_cutoff():
    """A file is evaluated at it, too, by every command; a saved result cannot be."""
    assert "macro_recall@3" in content(f"{CALL} --fail-under recall@3=0")["metrics"]
    assert run("gate sample.jsonl -k 2 --fail-under recall@3=0").exit_code == 0
    Path("other.jsonl").write_bytes(Path("sample.jsonl").read_bytes())
    compared = content("compare sample.jsonl other.jsonl --metric recall@3 -k 2")
    assert compared["differences"][0]["metric"] == "macro_recall@3"
    run(f"{CALL} --json saved.json")
    assert "-k" in refusal("gate saved.json --fail-under recall@3=0")
