"""docs/shell.md, in both languages: every command has an example, and every example runs."""

import json
import re
import shlex
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, run, shell

from krag_eval.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE, KOREAN_PAGE = ((folder / "shell.md").read_text("utf-8") for folder in (DOCS, DOCS / "ko"))


def commands(page: str) -> list[list[str]]:
    """Return the words of each command on a page, without the program's name."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


COMMANDS = commands(PAGE)


def block(page: str, language: str, begins: str) -> str:
    """Return the one block of a page that begins so."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (found,) = [one for one in blocks if one.startswith(begins)]
    return str(found)


@pytest.fixture(params=[PAGE, KOREAN_PAGE], ids=["en", "ko"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files that a page's examples read."""
    monkeypatch.chdir(tmp_path)
    page = request.param
    results = block(page, "json", '{"question"')
    written = {
        "results.jsonl": results,
        "before.jsonl": results,
        "after.jsonl": results,
        "chunks.jsonl": block(page, "json", '{"id"'),
        "pairs.csv": block(page, "text", "actual,"),
        "judgements.qrels": "t1 0 a 1\n",
        "bm25.run": "t1 Q0 a 1 0.5 x\n",
        "sweep.toml": block(page, "toml", "corpus"),
        "my_rag.py": "def windows(text, words):\n    return [text[:words], text[words:]]\n\n"
        "def bm25(chunks):\n    return lambda question: chunks\n",
        "handbook.txt": results,
    }
    for name, text in written.items():
        Path(name).write_text(text, "utf-8")
    # Its first passage comes back as it stands, so that a plan has a difference to go by.
    first, *others = map(json.loads, results.splitlines())
    better = [{**first, "predicted": first["actual"]}, *others]
    Path("better.jsonl").write_text("\n".join(map(json.dumps, better)), "utf-8")
    for source, name in (("results.jsonl", "old.json"), ("better.jsonl", "new.json")):
        run("evaluate", source, "--json", name)
    Path("runs").mkdir()
    run("evaluate", "results.jsonl", "--json", "runs/first.json")
    return tmp_path


def test_every_command_is_on_the_page() -> None:
    """With an example of its own; the demo takes nothing."""
    assert {one[0] for one in COMMANDS} == main.commands.keys() - {"demo"}
    assert "krag-eval demo" in PAGE
    assert commands(KOREAN_PAGE) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_example_runs(files: Path, command: list[str]) -> None:
    """And prints something, with exit code 0."""
    result = run(*command)
    assert (result.exit_code, bool(result.stdout)) == (0, True)


def test_both_languages_show_the_same_commands() -> None:
    """In the same order."""
    shown = re.findall(r"^```sh\n(.*?)^```$", KOREAN_PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for block in shown for line in block.splitlines()]
    assert [shlex.split(line)[1:] for line in lines] == COMMANDS


def test_the_examples_of_the_help_are_those_of_the_page() -> None:
    """So that they run as well."""
    examples = {
        name: shlex.split((one.epilog or "").removeprefix("Example: "))[1:]
        for name, one in main.commands.items()
        if name != "demo"
    }
    assert [name for name, example in examples.items() if example not in COMMANDS] == []


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(name: str) -> None:
    """The script of each shell names the program; a word is completed to a command."""
    assert f"_KRAG_EVAL_COMPLETE={name}_source krag-eval" in PAGE
    done = shell(env=ENVIRONMENT | {"_KRAG_EVAL_COMPLETE": f"{name}_source"})
    assert (done.returncode, "krag-eval" in done.stdout) == (0, True)
    words = {"COMP_WORDS": "krag-eval calib", "COMP_CWORD": "calib" if name == "fish" else "1"}
    asked = ENVIRONMENT | words | {"_KRAG_EVAL_COMPLETE": f"{name}_complete"}
    assert "calibrate" in shell(env=asked).stdout
