"""What docs/gating.md gives for CI, in both languages: it parses, and its commands decide."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from cli_runs import ENVIRONMENT, run

pytest_plugins = ("pytester",)

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {folder: (DOCS / folder / "gating.md").read_text("utf-8") for folder in ("", "ko")}
SECTIONS = [
    (page, section)
    for page, elsewhere in (("", "Anywhere else"), ("ko", "그 밖의 CI"))
    for section in ("GitHub Actions", "GitLab", elsewhere)
]
# Of 40 questions, 38 found what they were to find at rank 1 and 2 found nothing: every average
# is 38/40 = 0.95, above all floors of the page.
FOUND = '{"question": "%d?", "actual": ["It opens at nine."], "predicted": ["It opens at nine."]}\n'
MISSED = '{"question": "%d?", "actual": ["It opens at nine."], "predicted": ["At ten."]}\n'


def blocks(page: str, language: str, section: str) -> list[str]:
    """Return the blocks of a section of a page, in one language of code."""
    text = re.split(rf"^#+ {section}$", PAGES[page], flags=re.MULTILINE)[1]
    text = re.split(r"^#+ ", text, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(page: str, section: str) -> list[list[str]]:
    """Return the commands of ``krag-eval`` that a section has a CI run."""
    if section not in ("GitHub Actions", "GitLab"):
        (lines,) = blocks(page, "sh", section)
        steps = lines.splitlines()
    else:
        (text,) = blocks(page, "yaml", section)
        settings = yaml.safe_load(text)
        job = settings.get("jobs", settings)["retrieval"]
        steps = job["script"] if "script" in job else [one.get("run", "") for one in job["steps"]]
    # Without where the shell is to write what is printed.
    split = [shlex.split(one.partition(" > ")[0]) for one in steps]
    return [one[1:] for one in split if one[:1] == ["krag-eval"]]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which the retriever has been asked, with a baseline that is as good."""
    monkeypatch.chdir(tmp_path)
    lines = [FOUND % n for n in range(38)] + [MISSED % n for n in range(38, 40)]
    Path("results.jsonl").write_text("".join(lines), "utf-8")
    options = ("--matcher", "coverage", "-k", "5", "-k", "10", "--json", "baseline.json")
    assert run("evaluate", "results.jsonl", *options).exit_code == 0
    return tmp_path


@pytest.mark.parametrize(("page", "section"), SECTIONS)
def test_commands_of_a_page_run(repository: Path, page: str, section: str) -> None:
    """Two commands each; both conditions hold, and what is to be kept is there."""
    evaluate, gate = commands(page, section)
    assert run(*evaluate).exit_code == 0
    assert run(*gate).exit_code == 0
    assert {"new.json", "report.html"} <= {one.name for one in repository.iterdir()}


@pytest.mark.parametrize(("page", "section"), SECTIONS)
def test_commands_of_a_page_stop_a_build(repository: Path, page: str, section: str) -> None:
    """All questions but 8 lose what they found: a recall of 0.2, and no chance."""
    lines = [FOUND % n for n in range(8)] + [MISSED % n for n in range(8, 40)]
    Path("results.jsonl").write_text("".join(lines), "utf-8")
    codes = [run(*one).exit_code for one in commands(page, section)]
    assert codes[-1] == 1


@pytest.mark.parametrize(("page", "section"), [("", "In pytest"), ("ko", "pytest에서")])
def test_the_test_of_the_page_runs(
    page: str,
    section: str,
    repository: Path,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a retriever that finds everything."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    (test,) = blocks(page, "python", section)
    pytester.makepyfile(
        my_app='def retriever(question): return ["It opens at nine."] * 10', test_retrieval=test
    )
    for name in ("results.jsonl", "baseline.json"):
        (pytester.path / name).write_bytes((repository / name).read_bytes())
    lines = [FOUND % n for n in range(40)]
    (pytester.path / "questions.jsonl").write_text("".join(lines), "utf-8")
    found = pytester.runpytest_subprocess("-p", "krag_eval.integrations.pytest")
    found.assert_outcomes(passed=1)
    assert found.stdout.str().count("passed: ") == 3
