"""What the command writes: each file complete or not at all."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, SAMPLE, refusal, run, shell

from krag_eval import EvaluationResult
from krag_eval.datasets import read_jsonl


class TestOutputs:
    """What is written."""

    def test_json_holds_the_result(self, sample: Path, tmp_path: Path) -> None:
        """The file has the metrics of to_dict, and Python reads the whole result back."""
        saved = tmp_path / "out.json"
        assert f"wrote {saved}" in run("evaluate", sample, "-k", 2, "--json", saved).output
        expected = read_jsonl(sample).evaluator().evaluate(k=[2])
        assert json.loads(saved.read_text("utf-8"))["metrics"] == expected.to_dict()
        assert EvaluationResult.from_json(saved) == expected

    def test_csv_has_a_row_per_query_and_cutoff(self, sample: Path, tmp_path: Path) -> None:
        """Questions label the rows; k is a column; values are not rounded."""
        saved = tmp_path / "out.csv"
        run("evaluate", sample, "-k", 1, "-k", "all", "--csv", saved)
        with saved.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["query"], row["k"]) for row in rows] == [
            ("First?", "1"),
            ("둘째?", "1"),
            ("First?", "all"),
            ("둘째?", "all"),
        ]
        assert [float(row["recall"]) for row in rows] == [1 / 3, 0.0, 1.0, 0.5]

    def test_no_cell_of_a_csv_is_a_formula(self, tmp_path: Path) -> None:
        """A question of somebody else's is no command for the spreadsheet; numbers stay numbers."""
        queries = tmp_path / "queries.jsonl"
        asked = ["=cmd|' /C calc'!A0", "a;=1+1", "two\rlines", "-5"]
        lines = [{"question": one, "actual": ["a"], "predicted": ["a"]} for one in asked]
        queries.write_text("\n".join(map(json.dumps, lines)))
        run("evaluate", queries, "-k", 1, "--csv", tmp_path / "out.csv")
        with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        expected = ["'=cmd|' /C calc'!A0", "a;'=1+1", "two\rlines", "-5"]
        assert [row["query"] for row in rows] == expected

    @pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
    def test_plot_is_drawn(self, sample: Path, tmp_path: Path, ending: str) -> None:
        """The chart shows the last cutoff named, and the output says so."""
        saved = tmp_path / f"chart{ending}"
        output = run("evaluate", sample, "-k", 1, "-k", 2, "--plot", saved).output
        assert f"wrote {saved} (the metrics @2)" in output
        assert saved.stat().st_size > 1000

    def test_an_existing_output_is_replaced(self, sample: Path, tmp_path: Path) -> None:
        """Naming a file is asking for it to be written; through a link, its target is."""
        target, link = tmp_path / "target.csv", tmp_path / "link.csv"
        target.write_text("old")
        link.symlink_to(target)
        run("evaluate", sample, "--csv", link)
        assert target.read_text("utf-8").startswith("query,k,")
        assert link.is_symlink()

    def test_nothing_else_is_left_behind(
        self, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When writing fails half way, the old file stays and no temporary file remains."""
        saved = tmp_path / "chart.png"
        saved.write_text("old")

        def broken(path: Path, draw: object) -> None:
            path.write_text("half a pict")
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr("krag_eval.plotting.save_plot", broken)
        result = run("evaluate", sample, "--plot", saved)
        assert result.exit_code == 2
        assert "No space left on device" in result.output
        assert saved.read_text() == "old"
        assert {path.name for path in tmp_path.iterdir()} == {"sample.jsonl", "chart.png"}

    @pytest.mark.parametrize(
        ("option", "name", "expected"),
        [
            ("--json", "none/out.json", "--json: there is no directory .*none; create it first"),
            ("--csv", "none/out.csv", "--csv: there is no directory"),
            ("--plot", "none/out.png", "--plot: there is no directory"),
            ("--json", ".", "--json: .* is a directory"),
            ("--plot", "out.gif", r"--plot: .*out\.gif must end in one of \.png, \.svg, \.pdf"),
            ("--csv", "sample.jsonl", "--csv: .*sample.jsonl is among the files that are read"),
        ],
    )
    def test_impossible_outputs_are_refused_before_anything_is_read(
        self,
        sample: Path,
        monkeypatch: pytest.MonkeyPatch,
        option: str,
        name: str,
        expected: str,
    ) -> None:
        """A long computation does not end in an error about a file name."""
        monkeypatch.setattr("krag_eval.datasets.read_jsonl", lambda *_, **__: pytest.fail("read"))
        message = refusal("evaluate", sample, option, sample.parent / name)
        assert re.search(expected, message)

    def test_devices_are_not_replaced(self, sample: Path) -> None:
        """Replacing /dev/null by a file would harm the whole machine."""
        assert "not a regular file" in refusal("evaluate", sample, "--json", os.devnull)

    def test_each_output_needs_its_own_file(self, sample: Path, tmp_path: Path) -> None:
        """One would overwrite the other."""
        same = tmp_path / "out"
        assert "a file of its own" in refusal("evaluate", sample, "--json", same, "--csv", same)

    @pytest.mark.parametrize("option", ["--json", "--csv", "--plot", "--report", "--per-query"])
    def test_no_output_is_what_is_read(self, sample: Path, tmp_path: Path, option: str) -> None:
        """Not through a link either, and not what standard input is read from."""
        ending = {"--plot": ".png", "--report": ".html", "--per-query": ".csv"}.get(option, ".json")
        source, link = tmp_path / f"source{ending}", tmp_path / f"link{ending}"
        source.write_text(SAMPLE, "utf-8")
        os.link(source, link)
        read = tmp_path / "read.jsonl"
        read.symlink_to(source)
        for output in (source, link):
            message = refusal("evaluate", read, option, output)
            assert message.startswith(f"{option}: ")
            assert "among the files that are read" in message
        with source.open("rb") as stdin:
            done = shell("evaluate", "-", option, link, stdin=stdin)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"krag-eval: error: {option}: ")
        assert source.read_text("utf-8") == SAMPLE

    @pytest.mark.parametrize("name", ["part.jsonl", "new.json", "new.jsonl.gz", "new.parquet"])
    def test_no_output_goes_into_a_directory_that_is_read(
        self, sample: Path, tmp_path: Path, name: str
    ) -> None:
        """It would be read the next time; a picture would not."""
        folder = tmp_path / "data"
        folder.mkdir()
        (folder / "part.jsonl").write_text(SAMPLE, "utf-8")
        message = refusal("evaluate", folder, "--json", folder / name)
        assert message.startswith("--json: ")
        assert "among the files that are read" in message
        assert [path.name for path in folder.iterdir()] == ["part.jsonl"]
        assert run("evaluate", folder, "--plot", folder / "chart.png").exit_code == 0

    def test_the_progress_of_a_run_is_left_alone(self, sample: Path, tmp_path: Path) -> None:
        """It is written and read meanwhile."""
        rows = tmp_path / "rows.csv"
        (tmp_path / "rows.csv.partial").mkdir()
        within = tmp_path / "rows.csv.partial" / "progress.json"
        message = refusal("evaluate", sample, "--per-query", rows, "--json", within)
        assert message.startswith(f"--per-query: {within} lies in ")

    def test_rows_of_a_saved_result_are_read_too(self, sample: Path, tmp_path: Path) -> None:
        """They are beside it, and a comparison reads them."""
        rows, saved = tmp_path / "rows.csv", tmp_path / "saved.json"
        run("evaluate", sample, "-k", 2, "--per-query", rows, "--json", saved)
        before = rows.read_bytes()
        message = refusal("compare", saved, sample, "-k", 2, "--metric", "mrr@2", "--latex", rows)
        assert message.startswith("--latex: ")
        assert "among the files that are read" in message
        assert rows.read_bytes() == before


class TestStandardOutput:
    """``-``, as for reading."""

    def test_json_alone_is_on_it(
        self, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Byte for byte what the file holds; everything else is on standard error."""
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # a result says when it was made
        saved = tmp_path / "out.json"
        options = ("-k", 2, "--fail-under", "mrr@2=0.5", "--csv", tmp_path / "out.csv")
        run("evaluate", sample, *options, "--json", saved)
        environment = ENVIRONMENT | {"SOURCE_DATE_EPOCH": "0"}
        done = shell("evaluate", sample, *options, "--json", "-", env=environment)
        assert (done.returncode, done.stdout) == (0, saved.read_text("utf-8"))
        assert "mrr" in done.stderr
        assert "out.csv (one row" in done.stderr
        assert "passed: mrr@2" in done.stderr
        assert not Path("-").exists()

    def test_csv_alone_is_on_it(self, sample: Path, tmp_path: Path) -> None:
        """The same bytes as in the file; Korean questions too."""
        saved = tmp_path / "out.csv"
        run("evaluate", sample, "-k", 2, "--csv", saved)
        done = shell("evaluate", sample, "-k", 2, "--csv", "-")
        assert done.stdout == saved.read_text("utf-8")

    def test_in_ascii(self, tmp_path: Path) -> None:
        """A terminal that cannot show a text does not change it."""
        line = {"question": "café \U0001f600", "actual": ["a"], "predicted": ["a"]}
        ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        env = ENVIRONMENT | ascii_only
        done = shell("evaluate", "-", "--json", "-", input=json.dumps(line), env=env)
        assert json.loads(done.stdout)["queries"] == [line["question"]]

    def test_a_broken_floor_is_still_one(self, sample: Path) -> None:
        """1, and JSON all the same."""
        done = shell("evaluate", sample, "--fail-under", "mrr@5=0.9", "--json", "-")
        assert done.returncode == 1
        assert json.loads(done.stdout)["metrics"]["mrr@5"] == 0.75

    def test_a_refusal_leaves_it_empty(self, sample: Path) -> None:
        """Nobody takes half an answer for one."""
        done = shell("evaluate", sample, "--json", "-", "-k", "0")
        assert (done.returncode, done.stdout) == (2, "")

    @pytest.mark.parametrize("option", ["--markdown", "--latex"])
    def test_tables_of_a_comparison(self, sample: Path, tmp_path: Path, option: str) -> None:
        """The table alone."""
        other = tmp_path / "other.jsonl"
        other.write_text(SAMPLE, "utf-8")
        out = tmp_path / "table"
        arguments = ("compare", sample, other, "-k", 2, "--metric", "mrr@2", option)
        run(*arguments, out)
        done = shell(*arguments, "-")
        assert (done.returncode, done.stdout) == (0, out.read_text("utf-8"))

    def test_trec(self) -> None:
        """As for every evaluation."""
        data = Path(__file__).parents[1] / "data"
        files = (data / "graded.qrels", data / "spread.run")
        saved = json.loads(shell("trec", *files, "--json", "-").stdout)
        assert "ndcg@5" in saved["metrics"]
        assert shell("trec", *files, "--csv", "-").stdout.startswith("run,query,k,")

    def test_only_one_output_has_it(self, sample: Path) -> None:
        """They would run into each other."""
        message = refusal("evaluate", sample, "--json", "-", "--csv", "-")
        assert message == "--csv: only one output can be - (standard output)."

    @pytest.mark.parametrize("option", ["--plot", "--report", "--per-query"])
    def test_what_needs_a_file_is_refused(self, sample: Path, option: str) -> None:
        """By what can be written there."""
        message = refusal("evaluate", sample, option, "-")
        assert message.startswith(f"{option}: - is standard output, which --json, --csv")

    def test_a_file_that_is_read_and_appended_to(self, sample: Path) -> None:
        """``>>`` the input: the program can see that it is the same file."""
        with sample.open("ab") as stdout:
            done = subprocess.run(
                [sys.executable, "-m", "krag_eval", "evaluate", str(sample), "--json", "-"],
                env=ENVIRONMENT,
                stdout=stdout,
                stderr=subprocess.PIPE,
                check=False,
                timeout=60,
            )
        assert done.returncode == 2
        assert b"--json: standard output is among the files that are read" in done.stderr
        assert sample.read_text("utf-8") == SAMPLE

    def test_a_file_of_that_name(
        self, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By its path."""
        monkeypatch.chdir(tmp_path)
        run("evaluate", sample, "--json", "./-")
        assert EvaluationResult.from_json(tmp_path / "-").n_queries == 2


@pytest.mark.skipif(os.name == "nt", reason="a limit of POSIX")
@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--json", "out.json"),
        ("--csv", "out.csv"),
        ("--plot", "out.png"),
        ("--plot", "out.pdf"),
        ("--report", "out.html"),
        ("--per-query", "out.csv"),
    ],
)
def test_a_full_disk_names_the_file(tmp_path: Path, option: str, name: str) -> None:
    """One line, and nothing is left of it; a limit on the size of files stands for the disk."""
    import resource

    source, folder = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text('{"actual": ["a"], "predicted": ["a"]}\n' * 99)
    folder.mkdir()
    done = shell(
        *("evaluate", source, option, folder / name),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)),
    )
    assert done.returncode == 2
    [line] = [one for one in done.stderr.splitlines() if not one.startswith("Matplotlib")]
    assert line.startswith(f"krag-eval: error: {folder / name}")
    assert line.endswith("File too large")
    assert list(folder.iterdir()) == []
