"""``--lang`` and KRAG_EVAL_LANG: every command in Korean, with the numbers it has in English."""

import json
import os
import re
from pathlib import Path

import pytest
from cli_runs import run, written
from places import TESTS

from krag_eval.cli import main
from krag_eval.core import width_of
from krag_eval.core.language import LANGUAGES, SPOKEN

GOLDEN = TESTS / "golden"


def kept(language):
    """Return what every command prints in a language, as the golden files hold it."""
    text = (GOLDEN / f"shell.{language}.txt").read_text("utf-8")
    cases = (one.split("\n", 1) for one in text.split(f"\n{'=' * 12} --lang {language} ")[1:])
    # Behind it stand the files that were written.
    return {case: re.split("\n--- (?!stderr)", told)[0] for case, told in cases}


ENGLISH, KOREAN = map(kept, LANGUAGES)


@pytest.fixture(autouse=True)
def _no_language(monkeypatch):
    """Leave the language to the tests, whatever the one who runs them speaks."""
    monkeypatch.delenv("KRAG_EVAL_LANG", raising=False)


def numbers(text):
    """Return the numbers in a text, wherever a language puts them; none of the escapes."""
    return sorted(re.findall(r"\d+(?:\.\d+)?", text.replace("&#8203;", "")))


def in_both(line):
    """Return what a command prints in English and in Korean."""
    return [run(f"--lang {one} {line}").stdout for one in LANGUAGES]


def test_every_command_is_kept():
    """In both languages."""
    assert {one.split()[0] for one in ENGLISH} >= {*main.commands}
    assert ENGLISH.keys() == KOREAN.keys()


@pytest.mark.parametrize("case", [one for one in ENGLISH if "--help" not in one])
def test_commands_speak_korean(case):
    """With the numbers of English; columns that machines read stay as they are."""
    english, korean = ENGLISH[case], KOREAN[case]
    assert numbers(korean) == numbers(english)
    if case.endswith(("--format csv", "--format json")):
        assert english.splitlines()[:2] == korean.splitlines()[:2]
    elif "exit 2" not in english and not case.startswith(("trec", "--version")):
        assert re.search("[가-힣]{2}", korean)
        assert korean != english


def test_where_the_language_is_told(monkeypatch):
    """Before or behind the name of the command, or by the variable; what stands behind decides."""
    english, korean = in_both("audit sample.jsonl")
    assert run("audit --lang ko sample.jsonl").stdout == korean != english
    assert run("--lang ko audit --lang en sample.jsonl").stdout == english
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert run("audit sample.jsonl").stdout == korean
    assert run("--lang en audit sample.jsonl").stdout == english


@pytest.mark.parametrize("command", ["evaluate", "misses"])
def test_what_is_said_beside_the_answer_is_korean(command):
    """How the file was understood, and what deserves a second look; with the same numbers."""
    row = {"user_input": "언제?", "reference_contexts": ["아홉 시"],
           "retrieved_contexts": ["열 시"], "scores": [1]}  # fmt: skip
    written("ragas.jsonl", [row])
    english, korean = (
        run(f"{command} ragas.jsonl -k 1 --lang {one}").stderr.splitlines() for one in LANGUAGES
    )
    assert len(english) == len(korean) >= 3
    assert numbers(" ".join(english)) == numbers(" ".join(korean))
    assert all(re.search("[가-힣]{2}", line.replace("언제", "")) for line in korean)
    assert not any(re.search("[가-힣]", line) for line in english)
    assert any(line.startswith("경고: ") for line in korean)


def test_pages_and_data():
    """A page has its own option, whose default is ``--lang``; keys are those of English."""
    call = "evaluate sample.jsonl -k 2"
    for line, language in (
        (f"{call} --report page.html", "ko"),
        ("report sample.jsonl -k 2 -o page.html --language en", "en"),
    ):
        run(f"--lang ko {line}")
        assert f'<html lang="{language}"' in Path("page.html").read_text("utf-8")
    assert len({*in_both(f"{call} --csv -")}) == 1
    english, korean = map(json.loads, in_both(f"{call} --format json"))
    assert "질문 2개" in korean.pop("verdict")
    assert english.pop("verdict").startswith("Over 2 queries")
    assert english == korean


@pytest.mark.parametrize("command", ["", *main.commands])
def test_help_is_korean(command, monkeypatch):
    """In whatever order it is asked for, and in 80 columns."""
    english = run(f"{command} --help").stdout
    orders = ("--lang ko --help", "--help --lang ko", "-h --lang=ko")
    answers = {run(f"{command} {one}").stdout for one in orders}
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert answers == {run(f"{command} --help").stdout}
    assert run(f"{command} --lang en --help").stdout == english
    (korean,) = answers
    assert max(map(width_of, korean.splitlines())) <= 80
    words = re.compile(r"^[A-Z][a-z]+:|\b(the|is|of)\b|\[(default|required)", re.MULTILINE)
    assert words.search(english)
    assert not words.search(korean)


def test_refusals_are_in_english(monkeypatch):
    """An error is looked up, and asked about, in English; so is a language that there is not."""
    for line in ("evaluate missing.jsonl", "gate", "evaluate a b", "diagnose a.jsonl"):
        assert run(f"--lang ko {line}").stderr == run(line).stderr
    monkeypatch.setenv("KRAG_EVAL_LANG", "kr")
    refused = run("demo")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("krag-eval: error: KRAG_EVAL_LANG must be one of 'en', 'ko'")
    assert run("--help").stderr == refused.stderr
    assert run("demo --lang ko").exit_code == 0
    assert run("misses --lang ko a.jsonl -k 0").exit_code == 2
    assert (SPOKEN.get(), os.environ["KRAG_EVAL_LANG"]) == (None, "kr")
