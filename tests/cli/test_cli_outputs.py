"""What the command writes: each file complete or not at all."""

import csv
import json
import os
import re
from pathlib import Path

import pytest
from cli_runs import refusal, run

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
            ("--csv", "sample.jsonl", "--csv: .*sample.jsonl is the file to be evaluated"),
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
