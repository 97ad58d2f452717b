"""The command as a program: help, pipes, terminals, habits."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, SAMPLE, printed, refusal, run, shell

from krag_eval import __version__
from krag_eval.cli import main


def test_version():
    """The version is the package's."""
    assert run("--version").output == f"krag-eval, version {__version__}\n"


def test_commands_are_listed_by_what_they_are_for():
    """Every command once, below a title; without a command, too."""
    titles = re.findall(r"^(\w+):\n((?:  \w.*\n)+)", run().output, re.MULTILINE)
    listed = [line.split()[0] for _, lines in titles for line in lines.splitlines()]
    assert [title for title, _ in titles] == ["Measure", "Understand", "Decide", "Data"]
    assert sorted(listed) == sorted(main.commands)
    assert run("-h").output == run("--help").output == run().output
    assert run("evaluate -h").output == run("evaluate --help").output
    assert run().exit_code == 0


@pytest.mark.parametrize("command", sorted(main.commands.keys() - {"demo"}))
def test_a_command_without_its_file_says_how_to_call_it(command):
    """Its usage and an example, on standard error, with exit code 2."""
    result = run(command)
    usage, example, error = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (2, "")
    assert error.startswith("krag-eval: error: ")
    assert usage.startswith(f"Usage: krag-eval {command} ")
    assert example.startswith(f"Example: krag-eval {command} ")


def test_help_loads_nothing_heavy():
    """The help text appears without pandas, matplotlib, rich or LangChain."""
    code = (
        "import sys; from krag_eval.cli import main\n"
        "try: main(['evaluate', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pandas', 'matplotlib', 'rich.console', 'langchain_core', 'rouge_score'}\n"
        "sys.exit(f'loaded: {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_real_program():
    """It reads a pipe, and an error is one line on standard error alone."""
    done = shell("evaluate", "-", "-k", "2", input=SAMPLE)
    assert (done.returncode, printed(done.stdout)["mrr"]) == (0, ["0.7500"])
    done = shell("evaluate", "none.jsonl")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("krag-eval: error: ")


@pytest.mark.parametrize("arguments", [["demo"], ["evaluate", "-"]])
def test_an_ascii_terminal_is_enough(arguments):
    """Korean questions in a message do not crash a terminal that cannot show them."""
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii",
                  "PYTHONUTF8": "0"}  # fmt: skip
    empty = '{"question": "언제?", "actual": [], "predicted": []}'
    done = shell(*arguments, env=ENVIRONMENT | ascii_only, input=empty)
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if arguments == ["demo"] else 2)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--out", "--json"),
        ("--output", "--json"),
        ("-o", "--json"),
        ("--model", "--matcher"),
        ("--k", "-k"),
        ("--topk", "-k"),
        ("--top-k", "-k"),
        ("-f", "--format"),
        ("-M", "-m"),
    ],
)
def test_options_typed_out_of_habit(typed, meant):
    """What they are called here is said; of what the command has not, nothing is."""
    assert f"Did you mean {meant!r}?" in refusal(f"evaluate run.jsonl {typed} 5")
    assert "--json" not in refusal("sweep run.jsonl --out x")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("evaluate run.jsonl -k 1 5", "write -k 1,5"),
        ("evaluate sample.jsonl 'b c.jsonl'", "'krag-eval compare sample.jsonl 'b c.jsonl''"),
        ("evaluate x.jsonl -m coverage(threshold=0.8)", "--threshold T"),
        ("report run.jsonl", ".html"),
        ("diagnose run.jsonl", "chunks"),
        ("audit sample.jsonl --index one.csv", "one.csv:1: not valid JSON"),
        ("diagnose sample.jsonl --index one.csv", "one.csv:1: not valid JSON"),
    ],
)
def test_what_was_probably_meant_is_said(line, said):
    """Cutoffs in several words, several files, settings that are options, what is missing."""
    Path("b c.jsonl").write_text(SAMPLE, "utf-8")
    Path("one.csv").write_text("question,actual,predicted\na,b,c\n", "utf-8")
    assert said in refusal(line)
    assert "compare" not in refusal("evaluate sample.jsonl b")
