"""What docs/gating.md gives for CI, in both languages: it parses, and its commands decide."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml
from cli_runs import ENVIRONMENT, run, written
from places import DOCS

pytest_plugins = ("pytester",)

SECTIONS = {"GitLab": "GitLab", "Anywhere else": "그 밖의 CI"}


def rows(n_found):
    """Return 40 questions of which so many found their passage at rank 1."""
    return [
        {"question": f"{n}?", "actual": ["It opens at nine."],
         "predicted": ["It opens at nine." if n < n_found else "At ten."]}
        for n in range(40)
    ]  # fmt: skip


def block(page, language, section):
    """Return the block of a section of a page, in one language of code."""
    text = (DOCS / page / "gating.md").read_text("utf-8")
    text = re.split(rf"^#+ {section}$", text, flags=re.MULTILINE)[1]
    text = re.split(r"^#+ ", text, flags=re.MULTILINE)[0]
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return found


def commands(page, section):
    """Return the commands of ``krag-eval`` that a section has a CI run."""
    if section == "GitLab":
        steps = yaml.safe_load(block(page, "yaml", section))["retrieval"]["script"]
    else:
        steps = block(page, "sh", section).splitlines()
    # Without where the shell is to write what is printed.
    split = [shlex.split(one.partition(" > ")[0]) for one in steps]
    return [one[1:] for one in split if one[:1] == ["krag-eval"]]


@pytest.fixture(autouse=True)
def _repository(sample):
    """The retriever has been asked, with a baseline that is as good: 38/40 is above all floors."""
    written("results.jsonl", rows(38))
    run("evaluate results.jsonl --matcher coverage -k 5 -k 10 --json baseline.json")


@pytest.mark.parametrize("section", SECTIONS)
def test_commands_of_a_page(section):
    """Two each: both conditions hold, and what is to be kept is there; a landslide stops them."""
    both = commands("", section)
    assert commands("ko", SECTIONS[section]) == both
    assert [run(*one).exit_code for one in both] == [0, 0]
    assert {"new.json", "report.html"} <= {one.name for one in Path().iterdir()}
    # A recall of 0.2 is no chance.
    written("results.jsonl", rows(8))
    assert [run(*one).exit_code for one in both][-1] == 1


def test_the_test_of_the_page_runs(sample, pytester, monkeypatch):
    """With a retriever that finds everything; but for comments, the Korean page has the same."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    test, korean = block("", "python", "In pytest"), block("ko", "python", "pytest에서")
    assert ast.dump(ast.parse(test)) == ast.dump(ast.parse(korean))
    app = 'def retriever(question): return ["It opens at nine."] * 10'
    pytester.makepyfile(my_app=app, test_retrieval=test)
    for name in ("results.jsonl", "baseline.json"):
        (pytester.path / name).write_bytes((sample.parent / name).read_bytes())
    written(pytester.path / "questions.jsonl", rows(40))
    found = pytester.runpytest_subprocess("-p", "krag_eval.integrations.pytest")
    found.assert_outcomes(passed=1)
    assert found.stdout.str().count("passed: ") == 3
