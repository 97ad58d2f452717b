"""``krag-eval evaluate``: what it prints, and what it refuses.

docs/metrics.md works out the numbers of the sample by hand.
"""

import gzip
import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import SAMPLE, printed, refusal, run, shell

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator
from krag_eval.datasets import Dataset, read_jsonl
from krag_eval.errors import MissingPackage


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

    def test_micro_stands_beside_macro(self, sample: Path) -> None:
        """In one row; of what has one average, the other place is empty."""
        lines = [line.split() for line in run("evaluate", sample, "-k", 2).output.splitlines()]
        assert lines[2:4] == [["@2", "@2"], ["metric", "macro", "micro"]]
        assert ["recall", "0.5833", "0.6000"] in lines
        assert ["mrr", "0.7500"] in lines

    def test_one_average_needs_no_second_column(self, sample: Path) -> None:
        """Where one was asked for, rows are named by their keys."""
        output = run("evaluate", sample, "-k", 2, "--averaging", "micro").output
        lines = [line.split() for line in output.splitlines()]
        assert ["metric", "@2"] in lines
        assert ["micro_recall", "0.6000"] in lines

    @pytest.mark.parametrize(
        "typed", [["-k", "1,3w,all"], ["-k", "1, 3w", "-k", "all"], ["-k1", "-k", "3w,all"]]
    )
    def test_cutoffs_with_commas(self, sample: Path, typed: list[str]) -> None:
        """Whatever a person types."""
        assert printed(run("evaluate", sample, *typed).output)["metric"] == ["@1", "@3w", "@all"]

    def test_h_is_help(self) -> None:
        """Of the group and of every command."""
        assert run("-h").output == run("--help").output
        assert run("evaluate", "-h").output == run("evaluate", "--help").output

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
        assert output.count("precision") == 4  # of 20, as many each time as fit
        assert "…" not in output
        assert max(map(len, output.splitlines()[1:])) <= 100

    def test_fields_of_other_names(self, tmp_path: Path) -> None:
        """The three field names can be given."""
        path = tmp_path / "run.jsonl"
        path.write_text('{"q": "Q", "gold": ["a"], "hits": ["a"]}')
        fields = ("--question-field", "q", "--actual-field", "gold", "--predicted-field", "hits")
        assert printed(run("evaluate", path, *fields, "-k", 1).output)["mrr"] == ["1.0000"]

    @pytest.mark.parametrize("name", ["qa.csv", "qa.tsv.gz", "qa.json"])
    def test_tables(self, sample: Path, name: str) -> None:
        """The same numbers from every kind of file, and nothing to add about krag_eval's names."""
        path = sample.with_name(name)
        rows = [json.loads(line) for line in sample.read_text("utf-8").splitlines()]
        separator = "\t" if "tsv" in name else ","
        frame = pd.DataFrame(rows)
        if name == "qa.json":
            frame.to_json(path, orient="records")
        else:
            frame.to_csv(path, index=False, sep=separator)
        output = run("evaluate", path, "-k", 2).output
        assert output == run("evaluate", sample, "-k", 2).output.replace(str(sample), str(path))

    def test_tables_with_other_names(self, tmp_path: Path) -> None:
        """What was understood is said; a name may be given."""
        path = tmp_path / "ragas.csv"
        path.write_text("user_input,reference_contexts,retrieved_contexts,hits\nQ,['a'],['a'],[]\n")
        result = run("evaluate", path, "-k", 1)
        said = f"{path}: ground truth read from reference_contexts, by RAGAS's "
        assert result.stderr.startswith(said)
        assert printed(result.output)["mrr"] == ["1.0000"]
        output = run("evaluate", path, "-k", 1, "--predicted-field", "hits").output
        assert printed(output)["mrr"] == ["0.0000"]

    def test_alternatives_and_metadata_are_read_from_the_file(self, tmp_path: Path) -> None:
        """Items [AnyOf(t1, t2), t3] with t1, x, t2, y retrieved: one item of two is covered.

        AutoRAG's values for this example under its preset: recall 1/2, MAP 5/12.
        """
        path = tmp_path / "run.jsonl"
        path.write_text(
            '{"question": "Q", "actual": [{"any_of": ["t1", {"page_content": "t2"}]}, "t3"], '
            '"predicted": ["t1", "x", "t2", "y"]}'
        )
        table = printed(run("evaluate", path, "-k", "all", "--conventions", "autorag").output)
        assert (table["macro_recall"], table["map"]) == (["0.5000"], ["0.4167"])
        own = printed(run("evaluate", path, "-k", "all").output)
        # Credited once, at rank 1: DCG 1, ideal 1 + 1 / log2(3).
        assert (own["map"], own["ndcg"]) == (["0.5000"], ["0.6131"])

    def test_skipped_queries_are_counted(self, tmp_path: Path) -> None:
        """Queries left out are not hidden."""
        path = tmp_path / "run.jsonl"
        path.write_text('{"actual": ["a"], "predicted": ["a"]}\n{"actual": [], "predicted": []}')
        output = " ".join(run("evaluate", path, "--no-ground-truth", "skip").output.split())
        assert output.startswith(f"1 query from {path} (1 more skipped: no ground truth) ")

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

        def evaluate(self: OfflineRetrievalEvaluator, k: object, **_: object) -> None:
            warnings.warn("not ours", FutureWarning, stacklevel=1)

        monkeypatch.setattr(OfflineRetrievalEvaluator, "evaluate", evaluate)
        with pytest.raises(FutureWarning, match="not ours"):
            run("evaluate", sample)


class TestRefusals:
    """Bad input: one line, exit code 2, no traceback."""

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--matcher", "rougel"], "did you mean 'rougeL'?"),
            (["--matcher", "rouge1", "--threshold", "2"], "from 0 to 1, got 2.0"),
            (["--matcher", "rouge1", "--threshold", "nan"], "from 0 to 1, got nan"),
            (["--threshold", "0.5"], "--threshold must be left out"),
            (["--threshold", "high"], "'high' is not a valid float"),
            (["-k", "0"], "-k must be a whole number of at least 1"),
            (["-k", "1.5"], "-k must be a whole number of at least 1"),
            (["-k", "2", "-k", "2"], "-k must not name a cutoff twice"),
            (["--conventions", "trek"], "did you mean 'trec'?"),
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

    def test_a_bad_cell_is_named(self, tmp_path: Path) -> None:
        """By line, row and column; an error of the evaluator by its line or row."""
        path = tmp_path / "qa.csv"
        path.write_text("question,actual,predicted\nQ,['a'],a\n")
        assert refusal("evaluate", path).startswith(f"{path}:2: row 2 (the header is row 1): pred")
        path.write_text("question,actual,predicted\nQ,[],['a']\n")
        assert refusal("evaluate", path).startswith(f"{path}: actual: no ground truth")
        graded = [{"page_content": "a", "metadata": {"grade": -1}}]
        for name, place in (("qa.json", ": row 0 (from 0): "), ("qa.jsonl", ":1: ")):
            path = tmp_path / name
            content = json.dumps({"actual": graded, "predicted": []})
            path.write_text(f"[{content}]" if name == "qa.json" else content)
            message = refusal("evaluate", path, "--grade-key", "grade")
            assert message.startswith(f"{path}{place}actual[0]: a grade must be")

    def test_nothing_retrieved_yet(self, tmp_path: Path) -> None:
        """A test set alone is evaluated in Python, where its retriever is."""
        path = tmp_path / "qa.csv"
        path.write_text("question,actual\nQ,['a']\n")
        assert "holds no retrieved documents; evaluate_retriever(" in refusal("evaluate", path)

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
        assert "did you mean evaluate?" in refusal("evalute")
        assert "krag-eval --help" in refusal("zzz")
        assert "--zzz" in refusal("--zzz")

    def test_a_file_in_place_of_a_command(self, tmp_path: Path) -> None:
        """By its ending, or because it is there."""
        assert refusal("results.jsonl").endswith("type 'krag-eval evaluate results.jsonl'.")
        assert refusal(tmp_path).endswith(f"type 'krag-eval evaluate {tmp_path}'.")

    def test_the_nearest_metrics(self, sample: Path) -> None:
        """Up to three, and where all of them are; all of them for a name like no other."""
        near = refusal("evaluate", sample, "--metric", "recal")
        assert "'macro_recall', 'micro_recall' or 'recall'? docs/metrics.md" in near
        assert "ndcg" not in near
        assert "ndcg" in refusal("evaluate", sample, "--metric", "zzz")

    def test_m_is_the_matcher(self, sample: Path) -> None:
        """What everybody has to type."""
        options = ("evaluate", sample, "-k", 2)
        short, long = run(*options, "-m", "contains"), run(*options, "--matcher", "contains")
        assert short.output == long.output
        assert refusal(*options, "-m", "kiwi").startswith("--matcher")

    @pytest.mark.parametrize("error", [KeyError("x"), ValueError("operands"), TypeError("None")])
    def test_a_bug_is_not_disguised(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        """An error that is no refusal keeps its traceback."""

        def broken(self: object, **options: object) -> None:
            raise error  # in this file: not our package

        monkeypatch.setattr("krag_eval.datasets.Dataset.evaluator", broken)
        with pytest.raises(type(error)):
            run("evaluate", sample)

    def test_a_missing_extra_is_no_bug(self, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The line that installs it is all there is to say."""

        def read(*_: object, **__: object) -> None:
            raise MissingPackage("", "reading this needs pyarrow", "pip install it")

        monkeypatch.setattr("krag_eval.datasets.read_jsonl", read)
        assert refusal("evaluate", sample) == "reading this needs pyarrow; pip install it."

    def test_a_failing_operation_is_a_bug(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An operation that fails inside the package is no refusal of input."""
        monkeypatch.setattr("krag_eval.scoring.averages._ratio", lambda *_: None)
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


def test_grades_are_read_by_their_key(tmp_path: Path) -> None:
    """Grades 3 and 1, the lesser first: DCG 1 + 7/log2(3), IDCG 7 + 1/log2(3): nDCG 0.7098."""
    graded = [
        {"page_content": text, "metadata": {"grade": grade}} for text, grade in (("a", 3), ("b", 1))
    ]
    path = tmp_path / "graded.jsonl"
    path.write_text(json.dumps({"actual": graded, "predicted": ["b", "a"]}), "utf-8")
    result = run("evaluate", path, "-k", "2", "--grade-key", "grade")
    assert result.exit_code == 0, result.output
    assert "0.7098" in result.output
    assert "grades=grade" in result.output


def test_a_saved_data_set_brings_its_own_settings(tmp_path: Path) -> None:
    """AutoRAG's ids are compared as ids unless another matcher is typed; in chunks too."""
    dataset = Dataset(["?"], [[{"page_content": "a", "id": "1"}]],
                      [[{"page_content": "b", "id": "1"}]], defaults={"matcher": "id"})  # fmt: skip
    dataset.save(tmp_path / "saved.jsonl")
    for more in ([], ["--chunk-size", "1"]):
        shown = run("evaluate", tmp_path / "saved.jsonl", "-k", "1", *more).output
        assert "matcher=id" in " ".join(shown.split())
        assert printed(shown)["hit_rate"] == ["1.0000"]
    typed = run("evaluate", tmp_path / "saved.jsonl", "-k", "1", "--matcher", "text").output
    assert "matcher=text" in " ".join(typed.split())


def test_jobs_change_nothing_but_the_time(sample: Path) -> None:
    """In one piece and in chunks, the printed page is the same; 0 processes are refused."""
    alone = run("evaluate", sample, "--matcher", "rouge1").output
    assert run("evaluate", sample, "--matcher", "rouge1", "--jobs", 2).output == alone
    chunked = run("evaluate", sample, "--matcher", "rouge1", "--jobs", 2, "--chunk-size", 1)
    assert chunked.output == alone
    assert "--jobs must be" in refusal("evaluate", sample, "--jobs", 0)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "json"])
def test_a_file_in_another_encoding(tmp_path: Path, kind: str) -> None:
    """Without ``--encoding`` the refusal names the option; with it, the file is read."""
    texts = {
        "jsonl": '{"질문": "언제 여나요?", "정답": ["아홉 시"], "검색 결과": ["아홉 시"]}',
        "json": '[{"질문": "언제 여나요?", "정답": ["아홉 시"], "검색 결과": ["아홉 시"]}]',
        "csv": "질문,정답,검색 결과\n언제 여나요?,['아홉 시'],['아홉 시']\n",
    }
    path = tmp_path / f"run.{kind}"
    path.write_bytes(texts[kind].encode("cp949"))
    assert "--encoding cp949" in refusal("evaluate", path)
    saved = tmp_path / "saved.json"
    done = run("evaluate", path, "--encoding", "cp949", "-k", "1", "--json", saved)
    assert done.exit_code == 0
    assert EvaluationResult.from_json(saved).averages()["mrr"] == 1.0


def test_json_lines_in_other_words(tmp_path: Path) -> None:
    """RAGAS's names from standard input, with a note on how they were understood."""
    line = '{"user_input": "When?", "reference_contexts": ["a"], "retrieved_contexts": ["a"]}'
    done = run("evaluate", "-", "-k", "1", stdin=line)
    assert done.exit_code == 0
    assert "RAGAS" in done.stderr
