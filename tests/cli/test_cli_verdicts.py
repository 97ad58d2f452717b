"""``--fail-under`` and ``krag-eval gate``: exit codes and messages.

Of the sample, macro_recall@2 is (2/3 + 1/2) / 2 = 7/12, mrr (1 + 1/2) / 2 and mean_rank@2 1.5.
"""

import json
import re
from pathlib import Path

import pytest
from cli_runs import printed, refusal, run, shell

from krag_eval import OfflineRetrievalEvaluator
from krag_eval.plotting import LANGUAGES

N = 100
CUTOFFS = ("-k", 1, "-k", 2, "-k", 3, "-k", 4)


def saved(path: Path, first_n: int, n: int = N, **options: object) -> Path:
    """Save the result of a retriever that finds the first so many of n passages."""
    actual = [[f"passage {i}"] for i in range(n)]
    predicted = [truth if i < first_n else ["other"] for i, truth in enumerate(actual)]
    OfflineRetrievalEvaluator(actual, predicted).evaluate(k=[5, 10], **options).to_json(path)
    return path


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """80 of 100 are found."""
    return saved(tmp_path / "old.json", 80)


class TestFloors:
    """``krag-eval evaluate … --fail-under``."""

    def test_a_floor_that_holds(self, sample: Path) -> None:
        """0, and a line that says so."""
        result = run("evaluate", sample, "-k", 2, "--fail-under", "mrr@2=0.75")
        assert result.exit_code == 0
        assert "passed: mrr@2 is 0.7500, at or above the floor of 0.75\n" in result.output

    def test_a_broken_floor(self, sample: Path) -> None:
        """1, and the reason on standard error, after the whole table."""
        done = shell("evaluate", sample, "-k", 2, "--fail-under", "macro_recall@2=0.8")
        assert done.returncode == 1
        assert done.stderr == "failed: macro_recall@2 is 0.5833, below the floor of 0.8\n"
        assert printed(done.stdout)["mrr"] == ["0.7500"]

    def test_each_broken_floor_has_its_line(self, sample: Path) -> None:
        """Those that hold are on standard output."""
        floors = ("macro_recall@2=0.8", "mrr@2=0.1", "ndcg@2=0.9")
        options = [part for floor in floors for part in ("--fail-under", floor)]
        done = shell("evaluate", sample, "-k", 2, *options)
        assert [line.split()[:2] for line in done.stderr.splitlines()] == [
            ["failed:", "macro_recall@2"],
            ["failed:", "ndcg@2"],
        ]
        assert "passed: mrr@2" in done.stdout

    def test_of_a_mean_rank_it_is_a_ceiling(self, sample: Path) -> None:
        """Lower is better, as in Python."""
        held = run("evaluate", sample, "-k", 2, "--fail-under", "mean_rank@2=1.5")
        broken = run("evaluate", sample, "-k", 2, "--fail-under", "mean_rank@2=1.2")
        assert (held.exit_code, broken.exit_code) == (0, 1)
        assert "failed: mean_rank@2 is 1.5000, above 1.2" in broken.output

    @pytest.mark.parametrize("in_chunks", [(), ("--chunk-size", 1)])
    def test_it_names_what_is_computed(
        self, sample: Path, tmp_path: Path, in_chunks: tuple[object, ...]
    ) -> None:
        """A metric that is not computed otherwise; the saved result has it, too."""
        path = tmp_path / "out.json"
        floors = ("rbp@2=0.25", "rbp(p=0.5)@2=0.5", "success@2=1", "r_precision@2=0.5")
        options = [part for floor in floors for part in ("--fail-under", floor)]
        result = run("evaluate", sample, "-k", 2, *options, "--json", path, *in_chunks)
        assert result.exit_code == 0, result.output
        table = printed(result.output)
        # (0.36 + 0.16) / 2, (0.75 + 0.25) / 2
        assert (table["rbp(p=0.8)"], table["rbp(p=0.5)"]) == (["0.2600"], ["0.5000"])
        assert table["mrr"] == ["0.7500"]
        assert run("gate", path, *options).exit_code == 0
        assert run("gate", path, "--fail-under", "rbp@2=0.27").exit_code == 1

    def test_outputs_are_written_all_the_same(self, sample: Path, tmp_path: Path) -> None:
        """They are what one looks at to see why."""
        outputs = [tmp_path / name for name in ("out.json", "out.csv", "out.png", "out.html")]
        options = zip(("--json", "--csv", "--plot", "--report"), outputs, strict=True)
        given = [part for option in options for part in option]
        assert run("evaluate", sample, "--fail-under", "mrr@5=0.9", *given).exit_code == 1
        assert all(path.stat().st_size for path in outputs)

    @pytest.mark.parametrize(
        ("floor", "expected"),
        [
            ("mrr@2", "must be written as metric@k=number, such as 'ndcg@10=0.6'"),
            ("mrr=0.5", "must be"),
            ("mrr@2=high", "number after the ="),
            ("mrr@2=80", "from 0 to 1, got 80.0"),
            ("mrr@7=0.5", "evaluated at 1, 2; evaluate with"),
            ("recal@2=0.5", "no average 'recal'"),
            ("rbp(p=2)@2=0.5", "p of rbp must be a number strictly between 0 and 1"),
            ("rbp(q=0.5)@2=0.5", "rbp has no setting 'q'"),
            ("rbp@7=0.5", "evaluated at 1, 2; evaluate with"),
            ("rejection_rate@2=0.5", "got 'rejection_rate'"),
        ],
    )
    def test_an_impossible_floor_is_refused_before_anything_is_read(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch, floor: str, expected: str
    ) -> None:
        """A long computation does not end in an error about a name."""
        monkeypatch.setattr("krag_eval.datasets.read_jsonl", lambda *_, **__: pytest.fail("read"))
        message = refusal("evaluate", sample, "-k", 1, "-k", 2, "--fail-under", floor)
        assert message.startswith("--fail-under")
        assert expected in message

    def test_the_rejection_rate_has_a_floor_where_it_is_measured(self, tmp_path: Path) -> None:
        """It is printed, too: of two queries that should get nothing, one did."""
        path = tmp_path / "run.jsonl"
        path.write_text(
            '{"actual": ["a"], "predicted": ["a"]}\n{"actual": [], "predicted": []}\n'
            '{"actual": [], "predicted": ["x"]}\n'
        )
        options = ("--no-ground-truth", "skip", "-k", 5, "--fail-under", "rejection_rate@5=0.6")
        result = run("evaluate", path, *options)
        assert result.exit_code == 1
        assert printed(result.output)["rejection_rate"] == ["0.5000"]

    def test_a_measure_that_the_data_lacks_is_refused(self, sample: Path) -> None:
        """Only the file says whether there are queries that should get nothing."""
        floor = ("--fail-under", "rejection_rate@5=0.6")
        assert "got 'rejection_rate'" in refusal(
            *("evaluate", sample, "--no-ground-truth", "skip"), *floor
        )


class TestIntervals:
    """``krag-eval evaluate … --intervals``."""

    def test_stand_beside_each_average(self, tmp_path: Path) -> None:
        """They are those of Python, as many cutoffs to a table as fit."""
        path = tmp_path / "run.jsonl"
        lines = [{"actual": ["a"], "predicted": ["a" if i % 3 else "b", "a"]} for i in range(40)]
        path.write_text("\n".join(map(json.dumps, lines)))
        output = shell("evaluate", path, *CUTOFFS, "--intervals").stdout
        evaluator = OfflineRetrievalEvaluator(
            [line["actual"] for line in lines], [line["predicted"] for line in lines]
        )
        with pytest.warns(UserWarning, match="at most 2 documents"):
            expected = evaluator.evaluate(k=[1, 2, 3, 4]).confidence_intervals()
        low, high = expected.loc["mrr@1", ["low", "high"]]
        assert re.search(rf"^mrr +0\.6500 +{low:.4f} to {high:.4f}", output, re.MULTILINE)
        assert output.count("95 % interval") == 4
        assert max(map(len, output.splitlines()[1:])) <= 100

    def test_few_queries_are_said(self, sample: Path) -> None:
        """One line on standard error."""
        done = shell("evaluate", sample, "--intervals")
        assert done.returncode == 0
        [warning] = done.stderr.splitlines()
        assert warning.startswith("warning: The intervals rest on 2 queries.")


class TestReport:
    """``krag-eval evaluate … --report``."""

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_a_page_in_the_language_asked_for(
        self, sample: Path, tmp_path: Path, language: str
    ) -> None:
        """Said in the output, and free of warnings: the page tells its doubts itself."""
        page = tmp_path / "out.html"
        done = shell("evaluate", sample, "--report", page, "--report-language", language)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"wrote {page} (an HTML report)" in done.stdout
        assert f'<html lang="{language}"' in page.read_text("utf-8")

    def test_an_ending_that_misleads_is_refused(self, sample: Path) -> None:
        """It is HTML, whatever it is called."""
        expected = "--report: out.pdf must end in one of .html, .htm."
        assert refusal("evaluate", sample, "--report", "out.pdf") == expected

    def test_a_language_without_a_page_is_refused(self, sample: Path) -> None:
        """An option that does nothing is a mistake."""
        expected = "--report-language is about --report, and none was asked for."
        assert refusal("evaluate", sample, "--report-language", "ko") == expected


class TestGate:
    """``krag-eval gate``."""

    def test_a_drop_within_what_is_allowed(self, tmp_path: Path, baseline: Path) -> None:
        """0, and a line that says so."""
        new = saved(tmp_path / "new.json", 79)
        options = ("--baseline", baseline, "--metric", "ndcg@10", "--max-drop", 0.02)
        done = shell("gate", new, *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (
            "passed: ndcg@10 went from 0.8000 to 0.7900, no worse than the allowed 0.02; these "
            "queries cannot rule out a drop of up to 0.0300\n"
        )

    def test_a_drop_that_is_too_large(self, tmp_path: Path, baseline: Path) -> None:
        """1, and the reason on standard error: 20 of 100 queries lost is no chance."""
        new = saved(tmp_path / "new.json", 60)
        options = ("--baseline", baseline, "--metric", "ndcg@10", "--max-drop", 0.02)
        done = shell("gate", new, *options)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(
            "failed: ndcg@10 went from 0.8000 to 0.6000, worse by 0.2000 where 0.02 is allowed "
            "(p < 0.001; 95 % interval of the difference -0.2"
        )
        assert done.stderr.count("\n") == 1

    def test_a_drop_that_may_be_chance(self, tmp_path: Path, baseline: Path) -> None:
        """0 and a warning: one query of 100 lost is not enough to tell. With --strict, 1."""
        new = saved(tmp_path / "new.json", 79)
        options = ("--baseline", baseline, "--metric", "ndcg@10")
        done = shell("gate", new, *options)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("inconclusive: ndcg@10 went from 0.8000 to 0.7900, worse by")
        assert "100 queries can show drops from 0.0280 on" in done.stderr
        strict = shell("gate", new, *options, "--strict")
        assert (strict.returncode, strict.stderr) == (1, done.stderr)

    def test_what_github_and_gitlab_show(self, tmp_path: Path, baseline: Path) -> None:
        """What is inconclusive is a warning of its own, beside an error and a plain line."""
        new = saved(tmp_path / "new.json", 79)
        options = ("--baseline", baseline, "--metric", "ndcg@10")
        floors = ("--fail-under", "mrr@5=0.9", "--fail-under", "mrr@10=0.5")
        done = shell("gate", new, *options, *floors, "--format", "github")
        first, second, third = done.stdout.splitlines()
        assert first.startswith("::error title=krag-eval gate::failed: mrr@5 is 0.7900")
        assert second.startswith("::warning title=krag-eval gate::inconclusive: ndcg@10 went from")
        assert "95 %25 interval" in second
        assert third.startswith("passed: mrr@10 is 0.7900")
        assert done.returncode == 1
        found = json.loads(shell("gate", new, *options, *floors, "--format", "gitlab").stdout)
        assert [(one["check_name"], one["severity"]) for one in found] == [
            ("krag-eval gate: failed", "critical"),
            ("krag-eval gate: inconclusive", "minor"),
        ]
        assert {one["location"]["path"] for one in found} == {str(new)}
        assert len({one["fingerprint"] for one in found}) == 2

    def test_several_metrics_and_floors(self, tmp_path: Path, baseline: Path) -> None:
        """Each has its line, and one that fails is enough."""
        new = saved(tmp_path / "new.json", 81)
        metrics = ("--baseline", baseline, "--metric", "ndcg@10", "--metric", "mrr@5")
        done = shell("gate", new, *metrics, "--fail-under", "macro_recall@5=0.9")
        assert done.returncode == 1
        assert done.stderr == "failed: macro_recall@5 is 0.8100, below the floor of 0.9\n"
        assert [line.split()[1] for line in done.stdout.splitlines()] == ["ndcg@10", "mrr@5"]

    def test_a_set_of_questions_that_grew(self, tmp_path: Path) -> None:
        """What both have decides; what was left out is named, and nothing else is printed."""
        paths = [tmp_path / "old.json", tmp_path / "new.json"]
        for path, asked, finds in zip(paths, (range(50), range(70)), (50, 30), strict=True):
            found = [{"question": f"Question {i}?", "actual": [f"passage {i}"]} for i in asked]
            for i, line in enumerate(found):
                line["predicted"] = line["actual"] if i < finds else ["other"]
            run_file = path.with_suffix(".jsonl")
            run_file.write_text("\n".join(map(json.dumps, found)), "utf-8")
            assert run("evaluate", run_file, "--json", path).exit_code == 0
        old, new = paths
        options = ("--baseline", old, "--metric", "mrr@5", "--max-drop", 0.1)
        assert refusal("gate", new, *options).endswith("both have with --on common.")
        done = shell("gate", new, *options, "--on", "common")
        assert done.returncode == 1
        assert done.stderr.startswith(
            "failed: mrr@5 went from 1.0000 to 0.6000 on the 50 queries that both have, worse by"
        )
        assert done.stdout.startswith(
            "Compared on the 50 queries that all have; left out: 20 of new ('Question 50?', "
        )

    def test_floors_alone(self, baseline: Path) -> None:
        """No baseline is needed."""
        assert run("gate", baseline, "--fail-under", "mrr@5=0.8").exit_code == 0

    def test_few_queries_are_said(self, tmp_path: Path) -> None:
        """A gate on them catches only a landslide."""
        new = saved(tmp_path / "new.json", 5, n=6)
        done = shell("gate", new, "--baseline", new, "--metric", "ndcg@10")
        assert done.returncode == 0
        assert done.stderr.startswith("warning: The intervals rest on 6 queries.")

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ([], "nothing to check"),
            (["--metric", "ndcg@10"], "--metric is about a baseline, and none was given."),
            (["--max-drop", "0.1"], "--max-drop is about a baseline, and none was given."),
            (["--on", "common"], "--on is about a baseline, and none was given."),
            (["--baseline", "{old}"], "--metric must name what may not drop"),
            (["--baseline", "{old}", "--metric", "ndcg"], "an average must be spelled with"),
            (
                ["--baseline", "{old}", "--metric", "ndcg@7"],
                "was evaluated at 5, 10; evaluate with",
            ),
            (
                ["--baseline", "{old}", "--metric", "ndcg@5", "--max-drop", "-1"],
                "--max-drop must be a",
            ),
            (["--fail-under", "ndgc@5=0.1"], "did you mean 'ndcg'?"),
            (
                ["--baseline", "none.json", "--metric", "ndcg@5"],
                "none.json: no such file; check the path.",
            ),
        ],
    )
    def test_impossible_options_are_refused(
        self, baseline: Path, options: list[str], expected: str
    ) -> None:
        """Each refusal says what is allowed and what came, as one types it."""
        given = [option.replace("{old}", str(baseline)) for option in options]
        assert expected in refusal("gate", baseline, *given)

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        """By its name."""
        message = refusal("gate", tmp_path / "none.json", "--fail-under", "mrr@5=0.8")
        assert message == f"{tmp_path / 'none.json'}: no such file; check the path."

    @pytest.mark.parametrize(
        "damage", [lambda text: text[:-9], lambda text: text.replace("1", "2")]
    )
    def test_a_damaged_file_is_refused(self, baseline: Path, damage: object) -> None:
        """Cut or changed."""
        baseline.write_text(damage(baseline.read_text("utf-8")), "utf-8")  # type: ignore[operator]
        assert refusal("gate", baseline, "--fail-under", "mrr@5=0.8").startswith(str(baseline))

    def test_other_queries_are_refused(self, tmp_path: Path, baseline: Path) -> None:
        """With what differs."""
        new = saved(tmp_path / "new.json", 5, n=40)
        message = refusal("gate", new, "--baseline", baseline, "--metric", "ndcg@10")
        assert message.startswith("'baseline' and 'new' cannot be compared")
        assert "queries: 100 vs 40" in message

    @pytest.mark.parametrize("place", [0, 1])
    def test_a_result_without_rows_is_refused_by_name(
        self, sample: Path, tmp_path: Path, place: int
    ) -> None:
        """With what to type; floors alone need no rows."""
        whole, bare = tmp_path / "whole.json", tmp_path / "bare.json"
        run("evaluate", sample, "-k", 2, "--json", whole)
        run("evaluate", sample, "-k", 2, "--json", bare, "--chunk-size", 1)
        new, old = (bare, whole) if place else (whole, bare)
        for message in (
            refusal("gate", new, "--baseline", old, "--metric", "ndcg@2"),
            refusal("compare", new, old, "--metric", "ndcg@2"),
        ):
            assert message == (
                f"{bare}: holds averages but no per-query rows, which a comparison needs; "
                "evaluate with --per-query OUT to write them to a file."
            )
        assert run("gate", bare, "--fail-under", "mrr@2=0.75").exit_code == 0
