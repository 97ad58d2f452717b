"""``krag-eval compare``: what it prints and writes, and what it refuses.

Of 40 queries, system a finds the first 20 and system b the first 30, all at rank 1.
"""

import json
from pathlib import Path

import pytest
from cli_runs import refusal, run, shell

from krag_eval import EvaluationResult, compare
from krag_eval._doors import page_of
from krag_eval._text import width_of
from krag_eval.datasets import read_jsonl

N = 40


def lines(first_n: int, **changes: object) -> list[dict[str, object]]:
    """Return the lines of a retriever that finds the first so many passages."""
    return [
        {
            "question": f"Question {i}?",
            "actual": [f"passage {i}"],
            "predicted": [f"passage {i}" if i < first_n else "other"],
            **changes,
        }
        for i in range(N)
    ]


def written(path: Path, content: list[dict[str, object]]) -> Path:
    """Write lines of JSON."""
    path.write_text("\n".join(map(json.dumps, content)), "utf-8")
    return path


def evaluated(*paths: Path) -> dict[str, EvaluationResult]:
    """Evaluate files from Python."""
    return {path.stem: read_jsonl(path).evaluator().evaluate(k=(1, 3, 5, 10)) for path in paths}


@pytest.fixture
def a(tmp_path: Path) -> Path:
    """20 of 40 are found."""
    return written(tmp_path / "a.jsonl", lines(20))


@pytest.fixture
def b(tmp_path: Path) -> Path:
    """30 of 40 are found."""
    return written(tmp_path / "b.jsonl", lines(30))


class TestPrinted:
    """What one acts on."""

    def test_it_is_the_page_of_python(self, a: Path, b: Path) -> None:
        """Its tables in the width of the terminal, and its sentences."""
        output = run("compare", a, b, "--metric", "ndcg@10", "--metric", "mrr@5").output
        page = page_of(compare(evaluated(a, b), ["ndcg@10", "mrr@5"]))
        assert page.tables[0].text(100) in output
        assert " ".join(page.sentences[0].split()) in " ".join(output.split())

    def test_the_queries_that_changed_most(self, a: Path, b: Path) -> None:
        """Three of them, with both values."""
        output = run("compare", a, b).output
        changed = output.partition("Changed most on ndcg@10 from a to b:\n")[2].splitlines()[2:6]
        assert changed[0].split() == ["Question", "20?", "0.0000", "1.0000", "1.0000"]
        assert [bool(line) for line in changed] == [True, True, True, False]

    def test_equal_systems(self, tmp_path: Path, a: Path) -> None:
        """Nothing is shown, and nothing changed."""
        same = written(tmp_path / "same.jsonl", lines(20))
        output = run("compare", a, same).output
        assert "No difference shown between a and same on ndcg@10" in output
        assert "Changed most" not in output

    def test_long_names_and_questions_fit(self, tmp_path: Path) -> None:
        """No line is wider than 100 columns, of which a Hangul letter takes two."""
        long = {"question": "도서관은 언제 여나요? " * 50}
        more = [
            written(tmp_path / f"system-{n}-{'x' * 60}.jsonl", [one | long for one in lines(n)])
            for n in range(1, 4)
        ]
        output = run("compare", *more).stdout
        assert max(map(width_of, output.splitlines())) <= 100
        assert " ".join(output.split()).count("No difference shown between") == 3

    def test_options_reach_the_evaluation(self, a: Path, b: Path) -> None:
        """They are evaluate's."""
        output = " ".join(run("compare", a, b, "-k", 3, "--metric", "mrr@3").output.split())
        assert "k=3 |" in output

    def test_it_names_what_is_computed(self, tmp_path: Path, a: Path, b: Path) -> None:
        """A metric that is not computed otherwise, of files and of results that have it."""
        asked = ("--metric", "rbp(p=0.5)@3", "--metric", "ndcg@3")
        output = run("compare", a, b, "-k", 3, *asked).output
        assert {"rbp(p=0.5)@3", "ndcg@3"} <= {*output.split()}
        paths = [tmp_path / f"{path.stem}.json" for path in (a, b)]
        for path, out in zip((a, b), paths, strict=True):
            floor = ("--fail-under", "rbp(p=0.5)@3=0")
            assert run("evaluate", path, "-k", 3, *floor, "--json", out).exit_code == 0
        assert run("compare", *paths, *asked).output == output

    def test_warnings_name_the_system(self, tmp_path: Path, a: Path) -> None:
        """Of two files, which one matched nothing."""
        nothing = written(tmp_path / "nothing.jsonl", lines(0))
        done = shell("compare", a, nothing)
        [warning] = done.stderr.splitlines()
        assert warning.startswith("warning: nothing: The matcher text matched nothing at all")

    def test_few_queries_are_said(self, tmp_path: Path) -> None:
        """One line on standard error."""
        paths = [written(tmp_path / f"{n}.jsonl", lines(n)[:5]) for n in (1, 2)]
        done = shell("compare", *paths)
        assert done.returncode == 0
        [warning] = done.stderr.splitlines()
        assert warning.startswith("warning: The intervals rest on 5 queries.")


class TestSeveral:
    """More than two files."""

    @pytest.fixture
    def c(self, tmp_path: Path) -> Path:
        """21 of 40 are found."""
        return written(tmp_path / "c.jsonl", lines(21))

    def test_many_open_with_a_leaderboard(self, a: Path, b: Path, c: Path) -> None:
        """The best first and starred, with the intervals of each result."""
        output = run("compare", a, b, c).output
        board = page_of(compare(evaluated(a, b, c))).tables[0]
        assert [row[1] for row in board.cells[1:]] == ["0.7500*", "0.5250", "0.5000"]
        assert board.text(100) in output

    @pytest.mark.parametrize("named", ["name", "file"])
    def test_a_baseline(self, a: Path, b: Path, c: Path, named: str) -> None:
        """Two pairs of three, with the numbers of Python."""
        output = run("compare", a, b, c, "--baseline", "b" if named == "name" else b).output
        assert page_of(compare(evaluated(a, b, c), baseline="b")).tables[1].text(100) in output
        assert "baseline=b" in output

    def test_a_baseline_that_is_none(self, a: Path, b: Path) -> None:
        """Refused before anything is read."""
        assert refusal("compare", a, b, "--baseline", "c").startswith("--baseline must be one of")

    def test_another_order_of_the_questions(self, tmp_path: Path, a: Path, b: Path) -> None:
        """The numbers are the same."""
        (tmp_path / "other").mkdir()
        other = written(tmp_path / "other" / "b.jsonl", lines(30)[::-1])
        assert run("compare", a, other).output == run("compare", a, b).output

    def test_what_files_have_in_common(self, tmp_path: Path, a: Path) -> None:
        """What was left out is said; the numbers are those of what is shared."""
        other = written(tmp_path / "other.jsonl", lines(30)[::-1][:35])
        output = run("compare", a, other, "--on", "common").output
        said = " ".join(output.split())
        assert "Compared on the 35 queries that all have; left out" in said
        assert "5 of a ('Question 0?', 'Question 1?', " in said
        assert max(map(width_of, output.splitlines())) <= 100
        assert " 0.2857 " in output  # 25 of 35 against 15

    def test_files_without_questions_have_nothing_known_in_common(self, tmp_path: Path) -> None:
        """A line number is no name; what to do is said in words of the shell."""
        bare = [{name: one[name] for name in ("actual", "predicted")} for one in lines(20)]
        files = [written(tmp_path / f"{n}.jsonl", bare[:n]) for n in (35, 40)]
        message = refusal("compare", *files, "--on", "common")
        assert message.startswith("'35' has no labels of its queries, only their positions")
        assert message.endswith("its question in a file.")

    def test_other_ground_truth_in_another_order(self, tmp_path: Path, a: Path) -> None:
        """Refused by the label."""
        changed = [*lines(20)[:-1], lines(1, actual=["x"], question="Question 39?")[-1]]
        other = written(tmp_path / "other.jsonl", changed[::-1])
        assert "ground truth: 'Question 39?'" in refusal("compare", a, other)


class TestSavedResults:
    """Results that ``krag-eval evaluate --json`` saved."""

    def test_count_as_the_files_they_come_from(self, tmp_path: Path, a: Path, b: Path) -> None:
        """All of them, or some."""
        saved = tmp_path / "b.json"
        run("evaluate", b, "--json", saved)
        assert run("compare", a, saved).output == run("compare", a, b).output

    def test_options_without_effect_are_refused(self, tmp_path: Path, a: Path, b: Path) -> None:
        """A saved result is not evaluated again."""
        saved = [tmp_path / "a.json", tmp_path / "b.json"]
        for path, to in zip((a, b), saved, strict=True):
            run("evaluate", path, "--json", to)
        assert run("compare", *saved).exit_code == 0
        message = refusal("compare", *saved, "--matcher", "contains")
        assert message.startswith("--matcher says how to evaluate, and every FILE is a saved")

    def test_other_settings_are_refused(self, tmp_path: Path, a: Path, b: Path) -> None:
        """With what differs."""
        saved = tmp_path / "b.json"
        run("evaluate", b, "--matcher", "contains", "--json", saved)
        message = refusal("compare", a, saved)
        assert "differ in matcher: text vs contains" in message

    def test_a_damaged_file_is_refused(self, tmp_path: Path, a: Path) -> None:
        """By its name."""
        (tmp_path / "b.json").write_text("{")
        message = refusal("compare", a, tmp_path / "b.json")
        assert message.startswith(f"{tmp_path / 'b.json'}: not a saved krag_eval result")


class TestOutputs:
    """What is written."""

    def test_each_output_is_written_and_said(self, tmp_path: Path, a: Path, b: Path) -> None:
        """Tables in Markdown and LaTeX, a picture, a page."""
        outputs = {
            "--markdown": tmp_path / "out.md",
            "--latex": tmp_path / "out.tex",
            "--plot": tmp_path / "out.png",
            "--report": tmp_path / "out.html",
        }
        given = [part for option in outputs.items() for part in option]
        output = run("compare", a, b, *given, "--report-language", "ko").output
        assert all(f"wrote {path} (" in output for path in outputs.values())
        assert outputs["--markdown"].read_text("utf-8").startswith("| a | b | metric |")
        assert outputs["--latex"].read_text("utf-8").startswith(r"\begin{tabular}")
        assert outputs["--plot"].read_bytes().startswith(b"\x89PNG")
        assert '<html lang="ko"' in outputs["--report"].read_text("utf-8")

    def test_a_source_is_not_overwritten(self, a: Path, b: Path) -> None:
        """Of any system."""
        assert "is among the files that are read" in refusal("compare", a, b, "--markdown", b)


class TestNames:
    """What the systems are called."""

    def test_equal_stems_are_told_apart(self, tmp_path: Path) -> None:
        """By as much of their paths as it takes."""
        paths = [tmp_path / name / "run.jsonl" for name in ("one", "two")]
        for path, n in zip(paths, (20, 30), strict=True):
            path.parent.mkdir()
            written(path, lines(n))
        assert "two/run is better than one/run" in " ".join(run("compare", *paths).output.split())

    def test_standard_input(self, a: Path, b: Path) -> None:
        """A dash reads it."""
        result = run("compare", a, "-", stdin=b.read_bytes())
        assert "stdin is better than a" in result.output


class TestRefusals:
    """Bad input: one line, exit code 2, nothing printed before it."""

    def test_one_file(self, a: Path) -> None:
        """There is nothing to compare it with."""
        assert refusal("compare", a) == "FILE: name at least two to compare, got 1."

    def test_a_file_named_twice(self, a: Path) -> None:
        """A mistake in typing, not a comparison."""
        assert refusal("compare", a, a).startswith("FILE: each is named once")

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--metric", "ndgc@10"], "did you mean 'ndcg'?"),
            (["--metric", "ndcg"], "--metric: an average must be spelled with its cutoff"),
            (["--metric", "ndcg@7"], "was evaluated at 1, 3, 5, 10; evaluate with"),
            (["--matcher", "contain"], "did you mean 'contains'?"),
            (["--plot", "out.gif"], "must end in one of .png, .svg, .pdf"),
            (["--report-language", "ko"], "--report-language is about --report"),
        ],
    )
    def test_impossible_options_are_refused_before_anything_is_read(
        self,
        a: Path,
        b: Path,
        monkeypatch: pytest.MonkeyPatch,
        options: list[str],
        expected: str,
    ) -> None:
        """Each refusal says what is allowed and what came."""
        monkeypatch.setattr("krag_eval.datasets.read_jsonl", lambda *_, **__: pytest.fail("read"))
        assert expected in refusal("compare", a, b, *options)

    def test_other_questions(self, tmp_path: Path, a: Path) -> None:
        """With the first that differs."""
        other = written(tmp_path / "other.jsonl", [*lines(20)[:-1], lines(1, question="Why?")[-1]])
        message = refusal("compare", a, other)
        assert "'a' and 'other' cannot be compared, because they differ in queries" in message
        assert "queries: 'Question 39?'" in message

    def test_fewer_questions(self, tmp_path: Path, a: Path) -> None:
        """With both numbers."""
        other = written(tmp_path / "other.jsonl", lines(20)[:30])
        message = refusal("compare", a, other)
        assert "queries: 40 vs 30" in message
        assert message.endswith("compare those that both have with --on common.")

    def test_other_ground_truth(self, tmp_path: Path, a: Path) -> None:
        """Equal questions and equal counts do not hide it; the lines are named."""
        other = written(tmp_path / "other.jsonl", [*lines(20)[:-1], lines(1, actual=["x"])[-1]])
        message = refusal("compare", a, other)
        assert message.startswith(f"{other}:40: the ground truth differs from {a}:40;")

    def test_the_order_of_the_ground_truth_is_no_difference(self, tmp_path: Path) -> None:
        """It is a set."""
        paths = [
            written(tmp_path / f"{i}.jsonl", lines(9, actual=items))
            for i, items in enumerate((["x", "y"], ["y", "x"]))
        ]
        result = run("compare", *paths)
        assert result.exit_code == 0

    def test_a_missing_file(self, tmp_path: Path, a: Path) -> None:
        """By its name."""
        assert "none.jsonl: no such file" in refusal("compare", a, tmp_path / "none.jsonl")


class TestClusters:
    """``--clusters TAG``: queries that belong together."""

    @pytest.fixture
    def saved(self, tmp_path: Path) -> list[Path]:
        """Five queries of each of 30 sources do alike; new loses those of two sources."""
        paths = []
        for name, lost in (("old", range(3)), ("new", range(5))):
            rows = [
                {"question": f"Question {i}?", "actual": ["a"], "source": i // 5,
                 "predicted": ["x" if i // 5 in lost else "a"]}
                for i in range(150)
            ]  # fmt: skip
            path = written(tmp_path / f"{name}.jsonl", rows)
            paths.append(tmp_path / f"{name}.json")
            run("evaluate", path, "-k", 1, "--json", paths[-1])
        return paths

    def test_compared_by_clusters(self, saved: list[Path]) -> None:
        """As from Python: the design effect is printed, and stands in the JSON."""
        result = run("compare", *saved, "--clusters", "source")
        assert "30 clusters of queries by source" in result.stdout
        assert "| clusters=source" in " ".join(result.stdout.split())
        output = run("compare", *saved, "--clusters", "source", "--format", "json").stdout
        content = json.loads(output)
        assert content["clusters"] == "source"
        assert content["differences"][0]["design_effect"] == pytest.approx(5 * 30 / 29 * 149 / 150)

    def test_clusters_that_matter_are_mentioned(self, saved: list[Path]) -> None:
        """By the name of the tag."""
        assert "ask for clusters by source." in " ".join(run("compare", *saved).stdout.split())
        content = json.loads(run("compare", *saved, "--format", "json").stdout)
        assert content["dependent"] == {"source": pytest.approx(5 * 30 / 29 * 149 / 150)}

    def test_a_gate_goes_by_clusters(self, saved: list[Path]) -> None:
        """Ten queries lost are more than chance, two sources are not."""
        old, new = saved
        options = ("--baseline", old, "--metric", "recall@1")
        assert run("gate", new, *options).exit_code == 1
        assert run("gate", new, *options, "--clusters", "source").exit_code == 0

    def test_an_unknown_tag_is_refused(self, saved: list[Path]) -> None:
        """By the option's name."""
        assert refusal("compare", *saved, "--clusters", "sauce").startswith("--clusters")

    def test_a_plan_is_printed_saved_and_drawn(self, saved: list[Path], tmp_path: Path) -> None:
        """Two of 30 sources differ by 1: the numbers are those from Python."""
        options = ("--metric", "recall@1", "--detect", "0.05", "--clusters", "source")
        picture = tmp_path / "plan.svg"
        printed_plan = " ".join(run("plan", *saved, *options, "--plot", picture).stdout.split())
        assert picture.stat().st_size > 0
        content = json.loads(run("plan", *saved, *options, "--format", "json").stdout)
        assert f"takes {content['questions']:,} questions" in printed_plan
        assert content["design_effect"] == pytest.approx(5 * 30 / 29 * 149 / 150)
        assert content["pilot_questions"] == 150
        for form in ("csv", "markdown"):
            assert "old and new" in run("plan", *saved, *options, "--format", form).stdout

    def test_a_plan_mentions_clusters_that_matter(self, saved: list[Path]) -> None:
        """By the name of the tag."""
        options = ("--metric", "recall@1", "--detect", "0.05")
        assert "ask for clusters by source." in " ".join(
            run("plan", *saved, *options).stdout.split()
        )
        content = json.loads(run("plan", *saved, *options, "--format", "json").stdout)
        assert content["dependent"] == {"source": pytest.approx(5 * 30 / 29 * 149 / 150)}
        assert "source 5.14" in run("plan", *saved, *options, "--format", "csv").stdout

    def test_one_pilot_is_enough_and_three_are_too_many(self, saved: list[Path]) -> None:
        """Of one, the correlation is assumed."""
        one = run("plan", saved[0], "--detect", "0.05", "--correlation", "0.8").stdout
        assert "0.8, which is assumed" in " ".join(one.split())
        refusal("plan", *saved, "other.json", "--detect", "0.05")
        assert refusal("plan", *saved, "--detect", "5").startswith("--detect")
