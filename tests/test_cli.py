"""The shell command: what it prints, what it writes, and how it refuses.

Numbers of the sample are worked by hand in docs/metrics.md.
"""

import csv
import gzip
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator, __version__, cli
from krag_eval.cli import main
from krag_eval.datasets import demo_dataset, read_jsonl

# A program of its own finds the package being tested, installed or not.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
SAMPLE = """\
{"question": "First?", "actual": ["doc1", "doc2", "doc5"], "predicted": ["doc1", "doc2", "doc5"]}
{"question": "둘째?", "actual": ["doc3", "doc4"], "predicted": ["doc6", "doc4", "doc5"]}
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Write the sample of two queries."""
    path = tmp_path / "sample.jsonl"
    path.write_text(SAMPLE, "utf-8")
    return path


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run the command in this process; a bug ends in an exception."""
    result = CliRunner().invoke(main, [str(one) for one in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def shell(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a program of its own."""
    return subprocess.run(
        [sys.executable, "-m", "krag_eval", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        **{"env": ENVIRONMENT, **options},  # type: ignore[call-overload]
    )


def refusal(*arguments: object) -> str:
    """Return the one line with which the command refuses, after ``krag-eval: error:``."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert result.output.startswith("krag-eval: error: ")
    return result.output.removeprefix("krag-eval: error: ").rstrip()


def printed(output: str) -> dict[str, list[str]]:
    """Return the rows of the printed table: name -> cells."""
    rows = (line.split() for line in output.splitlines())
    return {cells[0]: cells[1:] for cells in rows if len(cells) > 1}


class TestEvaluate:
    """What is printed."""

    def test_rows_are_metrics_and_columns_cutoffs(self, sample: Path) -> None:
        """Every metric at every cutoff, to four digits."""
        table = printed(run("evaluate", sample, "-k", 1, "-k", 2, "-k", "all").output)
        assert table["metric"] == ["@1", "@2", "@all"]
        assert table["hit_rate"] == ["0.0000", "0.0000", "0.5000"]
        assert table["micro_recall"] == ["0.2000", "0.6000", "0.8000"]
        assert table["macro_f1"] == ["0.2500", "0.6562", "0.7059"]
        assert table["ndcg"] == ["0.5000", "0.6934", "0.6934"]
        assert table["mean_rank"] == ["1.0000", "1.5000", "1.5000"]

    def test_default_cutoffs(self, sample: Path) -> None:
        """Without -k: 1, 3, 5, 10."""
        assert printed(run("evaluate", sample).output)["metric"] == ["@1", "@3", "@5", "@10"]

    def test_says_how_many_queries_and_how(self, sample: Path) -> None:
        """The number of queries, the file, and the signature, wrapped to 100 columns."""
        output = run("evaluate", sample, "-k", 2, "--criteria", "partial").output
        assert output.startswith(f"2 queries from {sample}\n")
        evaluator = read_jsonl(sample).evaluator(matching_criteria="partial")
        assert evaluator.evaluate(k=[2]).signature in " ".join(output.split())
        assert max(map(len, output.splitlines()[1:])) <= 100

    def test_options_reach_the_evaluator(self, sample: Path) -> None:
        """Matcher, threshold, averaging and conventions are those of the Python options."""
        output = run(
            *("evaluate", sample, "--matcher", "rouge1", "--threshold", 0.25, "-k", 2),
            *("--averaging", "macro", "--conventions", "gain=linear,precision_at=k"),
        ).output
        signature = " ".join(output.split())
        for setting in ("rouge1", "threshold=0.25", "averaging=macro", "gain=linear"):
            assert setting in signature
        assert "micro_recall" not in printed(output)

    def test_many_cutoffs_continue_below(self, sample: Path) -> None:
        """No number is cut off and no line is wider than 100 columns."""
        cutoffs = [part for k in range(1, 21) for part in ("-k", k)]
        output = run("evaluate", sample, *cutoffs).output
        assert output.count("macro_precision") == 3
        assert "…" not in output
        assert max(map(len, output.splitlines()[1:])) <= 100

    def test_fields_of_other_names(self, tmp_path: Path) -> None:
        """The three field names can be given."""
        path = tmp_path / "run.jsonl"
        path.write_text('{"q": "Q", "gold": ["a"], "hits": ["a"]}')
        fields = ("--question-field", "q", "--actual-field", "gold", "--predicted-field", "hits")
        assert printed(run("evaluate", path, *fields, "-k", 1).output)["mrr"] == ["1.0000"]

    def test_skipped_queries_are_counted(self, tmp_path: Path) -> None:
        """Queries left out are not hidden."""
        path = tmp_path / "run.jsonl"
        path.write_text('{"actual": ["a"], "predicted": ["a"]}\n{"actual": [], "predicted": []}')
        output = run("evaluate", path, "--no-ground-truth", "skip").output
        assert output.startswith(f"1 query from {path} (1 more skipped: no ground truth)\n")

    @pytest.mark.parametrize("compressed", [False, True])
    def test_reads_standard_input(self, compressed: bool) -> None:
        """A dash reads standard input, compressed or not."""
        content = gzip.compress(SAMPLE.encode()) if compressed else SAMPLE.encode()
        output = run("evaluate", "-", "-k", 2, stdin=content).output
        assert output.startswith("2 queries from <stdin>\n")
        assert printed(output)["mrr"] == ["0.7500"]

    def test_warnings_are_one_line_in_the_shell_s_words(self, tmp_path: Path) -> None:
        """A warning of ours goes to standard error without Python's decoration."""
        path = tmp_path / "run.jsonl"
        path.write_text('{"actual": ["a"], "predicted": ["b"]}')
        done = shell("evaluate", path)
        assert done.returncode == 0
        [warning] = done.stderr.splitlines()
        assert warning.startswith("warning: The matcher text matched nothing at all")
        assert "try --matcher contains" in warning
        assert "warning:" not in done.stdout

    def test_other_warnings_stay_as_they_are(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only our own warnings are reworded."""

        def evaluate(self: OfflineRetrievalEvaluator, k: object) -> None:
            warnings.warn("not ours", DeprecationWarning, stacklevel=1)

        monkeypatch.setattr(OfflineRetrievalEvaluator, "evaluate", evaluate)
        with pytest.raises(DeprecationWarning, match="not ours"):
            run("evaluate", sample)


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


class TestRefusals:
    """Bad input: one line, exit code 2, no traceback."""

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--matcher", "rougel"], "did you mean 'rougeL'?"),
            (["--matcher", "rouge1", "--threshold", "2"], "from 0 to 1, got 2.0"),
            (["--matcher", "rouge1", "--threshold", "nan"], "from 0 to 1, got nan"),
            (["--threshold", "0.5"], "threshold must be left out"),
            (["--threshold", "high"], "'high' is not a valid float"),
            (["-k", "0"], "k must be a whole number of at least 1"),
            (["-k", "1.5"], "k must be a whole number of at least 1"),
            (["-k", "2", "-k", "2"], "k must not name a cutoff twice"),
            (["--conventions", "trek"], "or one of 'default', 'trec'"),
            (["--conventions", "gain=cubic"], "'exponential', 'linear', got 'cubic'"),
            (["--criteria", "most"], "'most' is not one of 'all', 'partial'"),
            (["--nonsense"], "(see krag-eval evaluate --help)"),
            (["--actual-field", "gold"], 'sample.jsonl:1: no field "gold"'),
            (["--question-field", "q"], 'no field "q" on any line; name the one with'),
        ],
    )
    def test_options(self, sample: Path, options: list[str], expected: str) -> None:
        """Each refusal says what is allowed and what came."""
        assert expected in refusal("evaluate", sample, *options)

    def test_a_bad_line_is_named(self, sample: Path) -> None:
        """File, line number, what is wrong."""
        sample.write_text(SAMPLE + "oops\n", "utf-8")
        assert refusal("evaluate", sample).startswith(f"{sample}:3: not valid JSON")

    def test_a_missing_file(self, tmp_path: Path) -> None:
        """A file that is not there is bad input, not a crash."""
        assert "none.jsonl: no such file" in refusal("evaluate", tmp_path / "none.jsonl")

    def test_no_ground_truth_names_queries_and_option(self, tmp_path: Path) -> None:
        """The remedy is given as it is typed in a shell."""
        path = tmp_path / "run.jsonl"
        path.write_text('{"question": "Why?", "actual": [], "predicted": []}')
        message = refusal("evaluate", path)
        assert message.startswith(f"{path}: actual: no ground truth for 1 of 1 queries ('Why?')")
        assert "--no-ground-truth skip" in message

    def test_an_error_of_the_matcher_names_the_line(self, tmp_path: Path) -> None:
        """Blank lines shift lines against queries; the line is the file's."""
        path = tmp_path / "run.jsonl"
        path.write_text(
            '{"actual": ["a"], "predicted": ["a"]}\n\n'
            '{"actual": ["a"], "predicted": ["b", {"page_content": "a"}]}\n'
        )
        message = refusal("evaluate", path, "--matcher", "id")
        assert message.startswith(f"{path}:3: predicted[1] has no id")

    def test_an_unknown_command(self) -> None:
        """Usage errors fit on one line as well."""
        assert "No such command 'evalute'" in refusal("evalute")

    @pytest.mark.parametrize("error", [KeyError("x"), ValueError("operands"), TypeError("None")])
    def test_a_bug_is_not_disguised(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        """An error that our code did not raise itself keeps its traceback."""

        def broken(self: object, **options: object) -> None:
            raise error  # in this file: not our package

        monkeypatch.setattr("krag_eval.datasets.Dataset.evaluator", broken)
        with pytest.raises(type(error)):
            run("evaluate", sample)

    def test_a_failing_operation_is_a_bug(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An operation that fails inside the package is no refusal of input."""
        monkeypatch.setattr("krag_eval.averages._harmonic_mean", lambda *_: None)
        with pytest.raises(TypeError):
            run("evaluate", sample)

    def test_interruption_is_quiet(self, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl-C ends with the shell's code for it and says nothing."""

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("krag_eval.datasets.read_jsonl", interrupted)
        result = run("evaluate", sample)
        assert (result.exit_code, result.output.strip()) == (130, "")

    def test_long_messages_are_clipped(self, tmp_path: Path) -> None:
        """A question of a megabyte is not printed whole; the remedy still is."""
        path = tmp_path / "run.jsonl"
        path.write_text(json.dumps({"question": "x" * 10**6, "actual": [], "predicted": []}))
        message = refusal("evaluate", path)
        assert len(message) < 1200
        assert "--no-ground-truth skip" in message


class TestDemo:
    """The main job on data that ships in the package."""

    def test_prints_the_numbers_of_the_demo_data(self) -> None:
        """The table is that of the packaged data, matched by equal text."""
        output = run("demo").output
        expected = demo_dataset().evaluator().calculate_mrr(k=5)["mrr"]
        assert printed(output)["mrr"][2] == f"{expected:.4f}"
        assert "matcher=text" in output

    def test_compares_matchers(self) -> None:
        """The same lists under "contains" score higher, at the same cutoff."""
        table = printed(run("demo").output.partition("matched in other ways")[2])
        assert table["matcher"] == ["macro_recall@5", "mrr@5", "ndcg@5"]
        expected = demo_dataset().evaluator(matcher="contains").calculate_recall(k=5)
        assert f"contains  {' ' * 9}{expected['macro_recall']:.4f}" in run("demo").output

    def test_says_where_to_go_next(self) -> None:
        """A line of the file format that works, a command, and the documentation."""
        output = run("demo").output
        example = next(line for line in output.splitlines() if line.strip().startswith("{"))
        assert set(json.loads(example)) == {"question", "actual", "predicted"}
        assert "krag-eval evaluate results.jsonl" in output
        assert "docs/metrics.md" in output

    def test_is_narrow_and_free_of_warnings(self) -> None:
        """Nothing wider than 100 columns, nothing on standard error."""
        done = shell("demo")
        assert (done.returncode, done.stderr) == (0, "")
        assert max(map(len, done.stdout.splitlines())) <= 100


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

    def test_help_loads_nothing_heavy(self) -> None:
        """The help text appears without pandas, matplotlib, rich or LangChain."""
        code = (
            "import sys; from krag_eval.cli import main\n"
            "try: main(['evaluate', '--help'])\n"
            "except SystemExit: pass\n"
            "heavy = {'pandas', 'matplotlib', 'rich', 'langchain_core', 'rouge_score', 'scipy'}\n"
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
