"""docs/shell.md, in both languages: every command has an example, and every example runs."""

import json
import re
import shlex
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, run, shell, written
from places import DOCS

from krag_eval import to_label
from krag_eval.cli import main

PAGE, KOREAN_PAGE = ((folder / "shell.md").read_text("utf-8") for folder in (DOCS, DOCS / "ko"))
MY_RAG = """
def windows(text, words): return [text[:words], text[words:]]
def bm25(chunks): return lambda question: chunks
"""


def blocks(page, language, begins=""):
    """Return the blocks of a page that begin so."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [one for one in found if one.startswith(begins)]


def commands(page):
    """Return the words of each command on a page, without the program's name."""
    return [shlex.split(one)[1:] for block in blocks(page, "sh") for one in block.splitlines()]


COMMANDS = commands(PAGE)


@pytest.fixture(params=[PAGE, KOREAN_PAGE], ids=["en", "ko"])
def _files(request):
    """Write the files that a page's examples read."""
    page = request.param
    shown = {
        "results.jsonl": ("json", '{"question"'),
        "chunks.jsonl": ("json", '{"id"'),
        "pairs.csv": ("text", "actual,"),
        "sweep.toml": ("toml", "corpus"),
    }
    texts = {name: blocks(page, *one)[0] for name, one in shown.items()}
    results = texts["results.jsonl"]
    texts |= dict.fromkeys(("before.jsonl", "after.jsonl", "handbook.txt"), results)
    texts["golden.jsonl"] = results
    texts |= dict.fromkeys(("old.jsonl", "new.jsonl"), texts["chunks.jsonl"])
    texts |= {"judgements.qrels": "t1 0 a 1\n", "bm25.run": "t1 Q0 a 1 0.5 x\n"}
    for name, text in (texts | {"my_rag.py": MY_RAG}).items():
        Path(name).write_text(text, "utf-8")
    # Its first passage comes back as it stands, so that a plan has a difference to go by.
    first, *others = map(json.loads, results.splitlines())
    written("better.jsonl", [{**first, "predicted": first["actual"]}, *others])
    for name in ("anna", "ben"):
        lines = to_label("results.jsonl").rows
        written(
            f"{name}.jsonl", [{**one, "labeller": name, "relevant": name == "ben"} for one in lines]
        )
    Path("runs").mkdir()
    for source, name in (("results", "old"), ("better", "new"), ("results", "runs/first")):
        run(f"evaluate {source}.jsonl --json {name}.json")


def test_every_command_is_on_the_page():
    """With an example of its own; the demo takes nothing, and both languages show the same."""
    assert {one[0] for one in COMMANDS} == main.commands.keys() - {"demo"}
    assert "krag-eval demo" in PAGE
    assert commands(KOREAN_PAGE) == COMMANDS


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_example_runs(command):
    """It prints something, with exit code 0."""
    result = run(*command)
    assert (result.exit_code, bool(result.stdout)) == (0, True)


def test_the_examples_of_the_help_are_those_of_the_page():
    """So that they run as well."""
    for name, one in main.commands.items():
        typed = shlex.split((one.epilog or "").removeprefix("Example: "))[1:]
        assert typed in COMMANDS or name == "demo"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(name):
    """The script of each shell names the program; a word is completed to a command."""
    assert f"_KRAG_EVAL_COMPLETE={name}_source krag-eval" in PAGE
    done = shell(env=ENVIRONMENT | {"_KRAG_EVAL_COMPLETE": f"{name}_source"})
    assert (done.returncode, "krag-eval" in done.stdout) == (0, True)
    words = {"COMP_WORDS": "krag-eval calib", "COMP_CWORD": "calib" if name == "fish" else "1"}
    asked = ENVIRONMENT | words | {"_KRAG_EVAL_COMPLETE": f"{name}_complete"}
    assert "calibrate" in shell(env=asked).stdout
