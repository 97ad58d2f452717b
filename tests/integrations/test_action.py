"""The GitHub Action: the shell lines of its steps, run as a runner runs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cli_runs import run, written
from forge import MARKER, NUMBER, REPOSITORY, TOKEN, serving
from places import ROOT

from krag_eval import EvaluationResult

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
# A runner's own variables; a path of a workflow's leads into the checkout.
RUNNER = os.environ | {"PYTHONPATH": "."}
DEFAULTS = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
# An interpreter whose environments know the package without installing it, and say what pip got;
# whatever path the step sets, what is installed comes last.
PYTHON = """\
#!/bin/sh
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'END'
#!/bin/sh
if [ "$2" = pip ]; then echo "$@" > "$0.pip"; exit; fi
PYTHONPATH="$PYTHONPATH${{PYTHONPATH:+:}}{root}" exec {python} "$@"
END
cat > "$3/bin/krag-eval" <<'END'
#!/bin/sh
PYTHONPATH="$PYTHONPATH${{PYTHONPATH:+:}}{root}" exec {python} -m krag_eval "$@"
END
chmod +x "$3/bin/python" "$3/bin/krag-eval"
"""


def rows(n_found):
    """Return 40 questions of which so many found their passage; the first is hostile."""
    questions = [
        "What does @octocat cost? <!-- #1 | `x` -->",
        *(f"Number {n}?" for n in range(1, 40)),
    ]
    found = [["At nine." if n >= 40 - n_found else "At ten."] for n in range(40)]
    return [
        {"question": question, "actual": ["At nine."], "predicted": predicted}
        for question, predicted in zip(questions, found, strict=True)
    ]


class Job:
    """A job of a runner: its folders, its files of commands, and the outputs of its steps."""

    def __init__(self, folder, api):
        self.folder, self.outputs, self.uploads = folder, {}, False
        self.printed, self.codes = {}, {}
        for name in ("temp", "workspace"):
            (folder / name).mkdir()
        (folder / "event.json").write_text(json.dumps({"pull_request": {"number": NUMBER}}))
        (folder / "python").write_text(PYTHON.format(python=sys.executable, root=ROOT))
        (folder / "python").chmod(0o755)
        self.summary = folder / "summary.md"
        self.variables = {
            "GITHUB_API_URL": api,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": "99",
            "GITHUB_SERVER_URL": "https://forge.example",
            "GITHUB_SHA": "5" * 40,
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(folder / "temp"),
        }

    def filled(self, text, inputs):
        """Fill in the expressions that the action uses."""
        known = {"github.action_path": str(ROOT)} | {f"inputs.{n}": v for n, v in inputs.items()}
        known["inputs.comment == 'true' && inputs.token || ''"] = (
            inputs["token"] if inputs["comment"].casefold() == "true" else ""
        )
        known |= self.outputs
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda one: known.get(one[1], ""), text)

    def holds(self, condition):
        """Say whether a step is to be run; GitHub compares texts without regard to case."""
        for comparison in condition.split(" && "):
            name, operator, value = comparison.split(" ")
            is_equal = self.outputs.get(name, "").casefold() == value.strip("'").casefold()
            if is_equal != (operator == "=="):
                return False
        return True

    def run(self, **inputs):
        """Run all steps with a script, as a runner does, until one fails; return the last code."""
        inputs = DEFAULTS | {"token": TOKEN, "python": str(self.folder / "python")} | inputs
        for step in ACTION["runs"]["steps"]:
            if "run" not in step:
                self.uploads = self.holds(step["if"])
                if self.uploads:
                    address = "https://forge.example/report"
                    self.outputs["steps.report.outputs.artifact-url"] = address
                continue
            assert "${{" not in step["run"], "an input could run commands"
            file = self.folder / "output"
            file.write_text("")
            env = {name: self.filled(value, inputs) for name, value in step["env"].items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                env={**RUNNER, **self.variables, "GITHUB_OUTPUT": str(file), **env},
                cwd=self.folder / "workspace",
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            self.printed[step["name"]] = done.stdout + done.stderr
            self.codes[step["name"]] = done.returncode
            for line in file.read_text().splitlines():
                name, _, value = line.partition("=")
                self.outputs[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                break
        return done.returncode

    def output(self, name):
        """Return an output of the action."""
        return self.filled(ACTION["outputs"][name]["value"], {"token": "", "comment": ""})


@pytest.fixture
def forge():
    """A forge that takes comments."""
    with serving() as forge:
        yield forge


@pytest.fixture
def job(tmp_path, forge, monkeypatch):
    """A job with a saved baseline, in which all questions found their passage."""
    job = Job(tmp_path, forge.api)
    monkeypatch.chdir(tmp_path / "workspace")
    written("before.jsonl", rows(40))
    run("evaluate before.jsonl -k 1 --json baseline.json")
    return job


GATE_STEP = "Hold retrieval to its conditions"
GATE = {"baseline": "baseline.json", "metrics": "recall@1,mrr@1", "arguments": "-k 1"}


def test_retrieval_that_got_worse_fails(job, forge):
    """The comment says by how much, and on which questions, of which nothing is markup."""
    written("new.jsonl", rows(30))
    assert job.run(golden="new.jsonl", **GATE) == 1
    assert job.codes["Pass or fail"] == 1
    (comment,) = forge.comments
    lines = comment["body"].splitlines()
    assert lines[:2] == [MARKER, "### Retrieval gate: failed"]
    assert "| macro_recall@1 | 1.0000 | 0.7500 | -0.2500 |" in comment["body"]
    worse = lines[lines.index("Got worse on macro_recall@1: 10 of 40 questions") + 4 :][:6]
    assert worse[0] == (
        r"| What does @&#8203;octocat cost? \<!-- #&#8203;1 \| \`x\` --\> | 1.0000 | 0.0000 |"
    )
    assert worse[5] == ""  # after five
    assert "[Report](https://forge.example/report)" in lines[-1]
    assert job.summary.read_text("utf-8") in comment["body"]
    printed = job.printed[GATE_STEP]
    assert "::error title=krag-eval gate::failed: macro_recall@1 went from" in printed
    assert job.output("exit-code") == "1"
    assert EvaluationResult.from_json(job.output("result")).gate == "failed"
    made = Path(job.output("result")).parent
    assert (made / "report.html").read_text("utf-8").startswith("<!")


def test_retrieval_that_did_not_passes(job, forge):
    """And the comment of the run before says so."""
    written("new.jsonl", rows(30))
    job.run(golden="new.jsonl", **GATE)
    job.summary.unlink()
    assert job.run(golden="before.jsonl", **GATE) == 0
    (comment,) = forge.comments
    assert comment["body"].startswith(f"{MARKER}\n### Retrieval gate: passed\n")
    assert "Got worse" not in comment["body"]


def test_two_files_floors_a_history_and_strict(job):
    """All that can be said; a history takes a result that is saved on the way."""
    for name, fields in (("golden", ("question", "actual")), ("run", ("question", "predicted"))):
        written(f"{name}.jsonl", [{field: one[field] for field in fields} for one in rows(38)])
    Path("runs").mkdir()
    Path("baseline.json").rename("runs/first.json")
    call = {"golden": "golden.jsonl", "run": "run.jsonl", "history": "runs", "metrics": "mrr@1"}
    call |= {"arguments": "-k 1\n  --on common", "fail-under": "recall@1=0.9 hit@1=0.5"}
    assert job.run(**call, **{"max-drop": "0.01"}) == 0, job.printed
    assert "inconclusive: mrr@1 went from 1.0000 to 0.9500" in job.summary.read_text("utf-8")
    assert job.run(**call, strict="true") == 1
    assert job.run(**call, **{"max-drop": "0.1"}) == 0


def test_a_run_that_lacks_questions(job, forge):
    """No verdict, unless so many are allowed; then the comment counts them."""
    golden = [{name: one[name] for name in ("question", "actual")} for one in rows(40)]
    found = [{name: one[name] for name in ("question", "predicted")} for one in rows(40)]
    written("golden.jsonl", golden)
    written("run.jsonl", found[:3])
    call = {"golden": "golden.jsonl", "run": "run.jsonl", "fail-under": "recall@1=0.9"}
    assert job.run(**call, arguments="-k 1 --missing skip") == 2
    assert "no verdict" in forge.comments[0]["body"]
    assert job.run(**call, arguments="-k 1 --missing skip --allow-missing 37") == 0
    assert "left out: 37 of 40 (new)" in forge.comments[0]["body"]
    assert EvaluationResult.from_json(job.output("result")).n_missing == 37


@pytest.mark.parametrize("how", [{"redact": "true"}, {"arguments": "-k 1 --redact"}])
def test_questions_are_left_out(job, forge, how):
    """Of the comment, the summary, the log and what is kept, whichever way that is asked for."""
    written("new.jsonl", rows(30))
    assert job.run(golden="new.jsonl", **GATE | how) == 1
    everything = "".join([*job.printed.values(), forge.comments[0]["body"]])
    everything += job.summary.read_text("utf-8")
    assert "octocat" not in everything
    assert "Number" not in everything
    assert "\n| 0 | 1.0000 | 0.0000 |\n" in forge.comments[0]["body"]
    assert not (Path(job.output("result")).parent / "report.html").exists()
    assert not job.uploads


@pytest.mark.parametrize("value", ["True", "TRUE", "yes", "1", " true", "true ", "False", "no", ""])
@pytest.mark.parametrize("switch", ["strict", "redact", "comment"])
def test_a_switch_is_true_or_false(job, forge, switch, value):
    """Anything else has no verdict, and shows no question: it may have meant either."""
    written("new.jsonl", rows(30))
    assert job.run(golden="new.jsonl", **GATE, **{switch: value}) == 2
    assert job.output("exit-code") == "2"
    summary = job.summary.read_text("utf-8")
    assert summary.startswith("### Retrieval gate: no verdict\n")
    assert f"- krag-eval: error: {switch} must be " in summary
    assert f"::error title=krag-eval::{switch} must be " in job.printed[GATE_STEP]
    assert "octocat" not in "".join([*job.printed.values(), summary])
    assert not job.uploads
    assert not Path(job.output("result")).exists()
    if switch == "comment":
        assert bool(forge.comments) == (value.casefold() == "true")


@pytest.mark.parametrize(
    "arguments",
    ["--help", "-k 1 -h", "--version", "-k 1 --json other.json", "-k 1 --markdown other.md"],
)
@pytest.mark.parametrize("redact", ["false", "true"])
def test_arguments_that_leave_no_verdict_fail(job, forge, arguments, redact):
    """The command may end with 0: what counts is the verdict and its result."""
    assert job.run(golden="before.jsonl", redact=redact, **GATE | {"arguments": arguments}) == 2
    (comment,) = forge.comments
    assert comment["body"].startswith(f"{MARKER}\n### Retrieval gate: no verdict\n")
    assert not Path(job.output("result")).exists()
    assert not job.uploads


@pytest.mark.parametrize("code", [2, 3, 137])
def test_a_command_that_broke_off_leaves_no_verdict(job, forge, code):
    """Whatever it wrote before: a file of a verdict is not one of its own."""
    job.run(golden="before.jsonl", **GATE)
    command = job.folder / "temp" / "krag-eval" / "bin" / "krag-eval"
    text = command.read_text().replace("exec ", "")
    (job.folder / "python").write_text("#!/bin/sh\n")  # so that the command stays
    command.write_text(f"{text}exit {code}\n")
    assert job.run(golden="before.jsonl", **GATE) == 2
    assert job.output("exit-code") == "2"
    assert forge.comments[0]["body"].startswith(f"{MARKER}\n### Retrieval gate: no verdict\n")


def test_no_step_imports_from_the_checkout(job, forge):
    """A module there by the name of another could read the token, or break the step."""
    for name in ("json", "os", "venv", "re"):
        Path(f"{name}.py").write_text("raise SystemExit('owned')\n")
    Path("krag_eval").mkdir()
    Path("krag_eval/__init__.py").write_text("raise SystemExit('owned')\n")
    env = [step["env"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert [one["PYTHONSAFEPATH"] for one in env] == ["1"] * len(env)
    assert job.run(golden="before.jsonl", **GATE) == 0, job.printed
    assert len(forge.comments) == 1


@pytest.mark.parametrize("redact", ["false", "true"])
def test_no_verdict_is_said_and_fails(job, forge, redact):
    """With the reason, unless it may quote a question; the step before does not end the job."""
    assert job.run(golden="new.jsonl", redact=redact, **GATE) == 2
    assert job.codes[GATE_STEP] == 0
    body = forge.comments[0]["body"]
    assert body.startswith(f"{MARKER}\n### Retrieval gate: no verdict\n")
    reason = "- krag-eval: error: new.jsonl: no such file; check the path.\n"
    assert (reason in body) is (redact == "false")


def test_korean_without_a_comment(job, forge):
    """The summary is in the language that was asked for; nobody is asked for anything."""
    assert job.run(golden="before.jsonl", language="ko", comment="false", **GATE) == 0
    assert job.summary.read_text("utf-8").startswith("### 검색 품질 게이트: 통과\n")
    assert forge.asked == []


def test_an_input_runs_nothing(job, forge):
    """It reaches the command as it is; words are divided at white space, and not expanded."""
    hostile = "$(touch owned); `touch owned` *"
    job.run(golden=hostile, name=hostile, **{**GATE, "arguments": "-k 1 --by $(touch\towned) *"})
    assert not Path("owned").exists()
    assert "Got unexpected extra argument" in job.printed[GATE_STEP]


def test_what_is_installed_is_this_checkout(job):
    """With the extras that were named; no version of another place."""
    job.run(golden="before.jsonl", extras="korean,parquet", **GATE)
    pip = (job.folder / "temp" / "krag-eval" / "bin" / "python.pip").read_text()
    assert pip == f"-m pip install --quiet --disable-pip-version-check {ROOT}[korean,parquet]\n"
    assert set(os.listdir(job.folder / "workspace")) == {"baseline.json", "before.jsonl"}


@pytest.mark.parametrize("page", ["docs/gating.md", "docs/ko/gating.md"])
def test_the_job_of_the_page_runs(job, page):
    """Its inputs are the action's; both conditions hold, and a landslide breaks them."""
    (block,) = re.findall(
        r"^```yaml\n(name: retrieval\n.*?)^```$", (ROOT / page).read_text("utf-8"), re.S | re.M
    )
    settings = yaml.safe_load(block)
    assert settings["permissions"] == {"contents": "read", "pull-requests": "write"}
    inputs = settings["jobs"]["retrieval"]["steps"][-1]["with"]
    assert inputs.keys() <= ACTION["inputs"].keys()
    for found, code in ((38, 0), (8, 1)):
        written("results.jsonl", rows(found))
        if code == 0:
            run("evaluate results.jsonl -m coverage -k 5,10 --json baseline.json")
        assert job.run(**inputs) == code, job.printed


def test_what_the_action_uses_is_pinned():
    """By a commit, which cannot be moved, with its version beside it."""
    for file in (ROOT / "action.yml", *(ROOT / ".github" / "workflows").glob("*.yml")):
        used = re.findall(r"^ *(?:- )?uses: ([^.].*)$", file.read_text("utf-8"), re.MULTILINE)
        assert [
            one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", one)
        ] == []
