"""``krag-eval evaluate`` in chunks: the same output, rows as they come, and what it refuses."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import SAMPLE, refusal, run, shell

from krag_eval import EvaluationResult, streaming
from krag_eval.cli import evaluate as evaluating
from krag_eval.datasets import read_jsonl
from krag_eval.streaming.files import RunState

K = ("-k", 1, "-k", 3)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Where the rows go: not among the input."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "rows.csv"


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """The sample as a Parquet file."""
    path = tmp_path / "sample.parquet"
    pd.DataFrame([json.loads(line) for line in SAMPLE.splitlines()]).to_parquet(path)
    return path


class TestSameOutput:
    """Nothing printed tells how the file was gone through."""

    def test_of_chunks(self, sample: Path) -> None:
        """Byte for byte, and the exit code of a floor."""
        for more in ((), ("--fail-under", "mrr@3=0.9"), ("--matcher", "contains")):
            ours = run("evaluate", sample, *K, *more, "--chunk-size", 1)
            theirs = run("evaluate", sample, *K, *more)
            assert ours.output == theirs.output
            assert ours.exit_code == theirs.exit_code

    def test_of_a_large_file(self, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Chunks are chosen by size, unless something needs all queries in memory."""
        expected = run("evaluate", sample, *K).output
        monkeypatch.setattr(evaluating, "_LARGE", 10)
        chosen = []
        evaluate_file = streaming.evaluate_file
        monkeypatch.setattr(
            streaming,
            "evaluate_file",
            lambda *given, **options: chosen.append(1) or evaluate_file(*given, **options),
        )
        assert run("evaluate", sample, *K).output == expected
        assert chosen == [1]
        run("evaluate", sample, *K, "--csv", sample.parent / "out.csv")
        assert chosen == [1]

    def test_of_parquet_and_directories(self, sample: Path, parquet: Path, tmp_path: Path) -> None:
        """But for the name of the input."""
        expected = _named_in(run("evaluate", sample, *K).output, sample)
        assert _named_in(run("evaluate", parquet, *K).output, parquet) == expected
        folder = tmp_path / "in"
        folder.mkdir()
        for number, line in enumerate(SAMPLE.splitlines()):
            (folder / f"{number}.jsonl").write_text(line, "utf-8")
        assert _named_in(run("evaluate", folder, *K).output, folder) == expected


def _named_in(output: str, path: Path) -> list[str]:
    """Return the words of an output, whose lines a long path may break."""
    return output.replace(str(path), "IN").split()


class TestOutputs:
    """What is written, and from where."""

    def test_rows_and_what_is_made_of_them(self, sample: Path, rows: Path) -> None:
        """Intervals, tables, pictures and pages are served from the rows."""
        out = rows.parent
        arguments = ("--json", out / "r.json", "--csv", out / "all.csv", "--plot", out / "p.svg",
                     "--report", out / "r.html", "--intervals")  # fmt: skip
        ours = run("evaluate", sample, *K, *arguments, "--per-query", rows)
        assert f"wrote {rows} (one row per query)" in ours.output
        assert sorted(os.listdir(out)) == ["all.csv", "p.svg", "r.html", "r.json", "rows.csv"]
        whole = read_jsonl(sample).evaluator().evaluate([1, 3])
        read = EvaluationResult.from_json(out / "r.json")
        pd.testing.assert_frame_equal(read.per_query(3), whole.per_query(3))
        table = (out / "all.csv").read_bytes()
        in_memory = run("evaluate", sample, *K, *arguments)
        assert (out / "all.csv").read_bytes() == table
        assert in_memory.output == ours.output.replace(f"wrote {rows} (one row per query)\n", "")

    def test_a_picture_needs_no_rows(self, parquet: Path, tmp_path: Path) -> None:
        """Averages are enough for it, and for --json."""
        for option, name in (("--plot", "p.png"), ("--json", "r.json")):
            assert run("evaluate", parquet, option, tmp_path / name).exit_code == 0
            assert (tmp_path / name).exists()

    def test_a_killed_run_is_continued(
        self, sample: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By the same command; other settings are refused in the shell's words."""
        command = ("evaluate", sample, "--per-query", rows, "--chunk-size", 1)

        def killed(self: RunState, n_parts: int) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(RunState, "finish", killed)
            assert run(*command).exit_code == 130
        assert not rows.exists()
        assert "pass --no-resume to start anew" in refusal(*command, "-k", 7)
        assert run(*command).exit_code == 0
        assert len(pd.read_csv(rows)) == 2
        assert run(*command, "--no-resume").exit_code == 0


class TestRefusals:
    """On one line, before anything is read."""

    @pytest.mark.parametrize("option", ["--intervals", "--csv", "--report"])
    def test_what_needs_rows(self, parquet: Path, tmp_path: Path, option: str) -> None:
        """The remedy is to have them written."""
        value = {"--csv": [tmp_path / "a.csv"], "--report": [tmp_path / "a.html"]}.get(option, [])
        message = refusal("evaluate", parquet, option, *value)
        assert message.startswith(f"{option} needs the values of every query")
        assert "add --per-query OUT" in message

    def test_standard_input(self, rows: Path) -> None:
        """It can be read only once."""
        assert "standard input can be read only once" in refusal(
            "evaluate", "-", "--per-query", rows
        )

    def test_resuming_nothing(self, sample: Path) -> None:
        """Without rows there is no progress."""
        assert "--resume is about the progress of a run with --per-query" in refusal(
            "evaluate", sample, "--resume"
        )

    @pytest.mark.parametrize("name", ["rows.txt", "no/rows.csv", "."])
    def test_names_that_cannot_be_written(self, sample: Path, tmp_path: Path, name: str) -> None:
        """As for every other output."""
        assert refusal("evaluate", sample, "--per-query", tmp_path / name).startswith("--per-query")

    def test_an_output_among_the_input(self, tmp_path: Path) -> None:
        """It would be evaluated the next time."""
        (tmp_path / "a.jsonl").write_text(SAMPLE, "utf-8")
        message = refusal("evaluate", tmp_path, "--per-query", tmp_path / "rows.csv")
        assert message.startswith("--per-query: ")
        assert "would be among the files that are read" in message


def test_no_bar_where_nobody_looks(sample: Path) -> None:
    """Standard error of a program whose output is piped has nothing on it."""
    done = shell("evaluate", sample, "--chunk-size", 1)
    assert done.returncode == 0
    assert done.stderr == ""


class TestTables:
    """Tables, in memory and in chunks."""

    @pytest.mark.parametrize("option", [("--delimiter", ";"), ("--cells", "text")])
    def test_options_of_tables_are_for_memory(
        self, tmp_path: Path, option: tuple[str, str]
    ) -> None:
        """Said in the shell's words, with what to leave out."""
        path = tmp_path / "run.csv"
        path.write_text("question;actual;predicted\nQ;['a'];['a']\n", "utf-8")
        message = refusal("evaluate", path, *option, "--chunk-size", 5)
        assert "leave out --per-query, --chunk-size and --resume" in message

    def test_large_ones_are_taken_in_chunks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the same numbers."""
        path = tmp_path / "run.csv"
        path.write_text('question,actual,predicted\nQ,"[""a""]","[""a""]"\n', "utf-8")
        expected = run("evaluate", path, *K).output
        monkeypatch.setattr(evaluating, "_LARGE", 10)
        large = run("evaluate", path, *K)
        assert (large.exit_code, large.output) == (0, expected)

    def test_help_names_every_kind_of_input(self) -> None:
        """Also those read whole."""
        text = run("evaluate", "--help").output
        for kind in ("JSONL", "CSV", "TSV", "JSON array", "Parquet", "directory"):
            assert kind in text
