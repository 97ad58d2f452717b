"""The command as a program: help, pipes, terminals, exit codes."""

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, SAMPLE, printed, refusal, run, shell

from krag_eval import __version__
from krag_eval.cli import main


class TestShell:
    """The command as a program."""

    def test_version(self) -> None:
        """The version is the package's."""
        assert run("--version").output == f"krag-eval, version {__version__}\n"

    def test_without_a_command_it_explains_itself(self) -> None:
        """Bare krag-eval lists the commands."""
        result = run()
        assert result.exit_code == 0
        assert "evaluate" in result.output

    def test_commands_are_listed_by_what_they_are_for(self) -> None:
        """Every command once, below a title."""
        titles = re.findall(r"^(\w+):\n((?:  \w.*\n)+)", run().output, re.MULTILINE)
        listed = [line.split()[0] for _, lines in titles for line in lines.splitlines()]
        assert [title for title, _ in titles] == ["Measure", "Understand", "Decide", "Data"]
        assert sorted(listed) == sorted(main.commands)
        assert run("-h").output == run("--help").output == run().output

    @pytest.mark.parametrize("command", sorted(main.commands.keys() - {"demo"}))
    def test_a_command_without_its_file_says_how_to_call_it(self, command: str) -> None:
        """Its usage and an example, on standard error, with exit code 2."""
        result = run(command)
        usage, example, error = result.stderr.splitlines()
        assert (result.exit_code, result.stdout) == (2, "")
        assert error.startswith("krag-eval: error: ")
        assert usage.startswith(f"Usage: krag-eval {command} ")
        assert example.startswith(f"Example: krag-eval {command} ")

    def test_help_loads_nothing_heavy(self) -> None:
        """The help text appears without pandas, matplotlib, rich or LangChain."""
        code = (
            "import sys; from krag_eval.cli import main\n"
            "try: main(['evaluate', '--help'])\n"
            "except SystemExit: pass\n"
            "heavy = {'pandas', 'matplotlib', 'rich.console', 'langchain_core', 'rouge_score'}\n"
            "sys.exit(f'loaded: {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")

    def test_reads_a_pipe(self) -> None:
        """Standard input of the real program."""
        done = shell("evaluate", "-", "-k", "2", input=SAMPLE)
        assert (done.returncode, printed(done.stdout)["mrr"]) == (0, ["0.7500"])

    def test_errors_go_to_standard_error(self, tmp_path: Path) -> None:
        """One line there, nothing on standard output, no traceback."""
        done = shell("evaluate", tmp_path / "none.jsonl")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("krag-eval: error: ")
        assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize("arguments", [["demo"], ["evaluate", "-"]])
    def test_an_ascii_terminal_is_enough(self, arguments: list[str]) -> None:
        """Korean questions in a message do not crash a terminal that cannot show them."""
        ascii_only = {
            "LC_ALL": "C",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONIOENCODING": "ascii",
            "PYTHONUTF8": "0",
        }
        empty = '{"question": "언제?", "actual": [], "predicted": []}'
        done = shell(*arguments, env=ENVIRONMENT | ascii_only, input=empty)
        assert "Traceback" not in done.stderr
        assert done.returncode == (0 if arguments == ["demo"] else 2)

    def test_a_small_file_that_stands_for_much_is_refused(self, tmp_path: Path) -> None:
        """In one line, with exit code 2."""
        path = tmp_path / "run.jsonl.gz"
        path.write_bytes(gzip.compress(b'{"actual":[],"predicted":[]}\n' * 200_000))
        done = shell("evaluate", path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"{path}:" in done.stderr

    def test_memory_that_runs_out_is_a_refusal(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While a file is read: exit code 2."""
        path = tmp_path / "run.jsonl"
        path.write_text(SAMPLE, "utf-8")

        def full(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr("krag_eval.datasets.loading.query_in", full)
        assert run("evaluate", path).exit_code == 2

    def test_a_closed_pipe_is_quiet(self) -> None:
        """``krag-eval demo | head -1`` prints one line and no complaint."""
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as closed:
            done = subprocess.run(
                [sys.executable, "-m", "krag_eval", "demo"],
                env=ENVIRONMENT,
                stdout=closed,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert done.stderr == b""


class TestHabits:
    """What is typed out of habit is refused with what it is called here."""

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
    def test_options(self, typed: str, meant: str) -> None:
        """Of what the command has; others are left to click."""
        assert f"Did you mean {meant!r}?" in refusal("evaluate", "run.jsonl", typed, "5")
        assert "--json" not in refusal("sweep", "run.jsonl", "--out", "x")

    def test_several_cutoffs(self, sample: Path) -> None:
        """They stand in one word, with commas or spaces."""
        assert "1,5" in refusal("evaluate", "run.jsonl", "-k", "1", "5")
        spaced = run("evaluate", sample, "-k", "1 5, all")
        assert spaced.output == run("evaluate", sample, "-k", "1,5,all").output != ""

    def test_two_files(self, tmp_path: Path) -> None:
        """One command takes one, another several."""
        paths = [tmp_path / "a.jsonl", tmp_path / "b c.jsonl"]
        for path in paths:
            path.write_text(SAMPLE, "utf-8")
        typed = f"krag-eval compare {shlex.join(map(str, paths))}"
        assert typed in refusal("evaluate", *paths)
        assert "compare" not in refusal("evaluate", paths[0], "b")

    def test_the_threshold_of_a_matcher(self) -> None:
        """It is an option of its own."""
        assert "--threshold T" in refusal("evaluate", "x.jsonl", "-m", "coverage(threshold=0.8)")

    @pytest.mark.parametrize(("command", "said"), [("report", ".html"), ("diagnose", "chunks")])
    def test_an_option_that_is_needed(self, command: str, said: str) -> None:
        """What it is stands beside its name."""
        assert said in refusal(command, "run.jsonl")

    def test_a_table_by_another_name(self, tmp_path: Path) -> None:
        """A table as the chunks of an index."""
        run_file, table = tmp_path / "run.jsonl", "question,actual,predicted\na,b,c\n"
        run_file.write_text(SAMPLE, "utf-8")
        (tmp_path / "one.csv").write_text(table, "utf-8")
        for command in ("audit", "diagnose"):
            said = refusal(command, run_file, "--index", tmp_path / "one.csv")
            assert "one.csv:1: not valid JSON" in said
