"""``krag-eval trec``: trec_eval's numbers under its names, and what it refuses.

Expected values come from pytrec_eval, to the four digits that are printed.
"""

import csv
import gzip
import io
import shutil
from pathlib import Path

import pytest
import pytrec_eval
from cli_runs import printed, refusal, run, shell

from krag_eval import EvaluationResult
from krag_eval.datasets import read_trec

DATA = Path(__file__).parents[1] / "data"
QRELS, TIED, SPREAD = DATA / "graded.qrels", DATA / "tied.run", DATA / "spread.run"
CUTOFFS = (2, 5)
MEASURES = {"map", "recip_rank", "ndcg", "set_P", "set_recall", "set_F"} | {
    f"{name}.{','.join(map(str, CUTOFFS))}"
    for name in ("P", "recall", "success", "map_cut", "ndcg_cut")
}


def by_trec_eval(path: Path, *, complete: bool, level: int = 1) -> dict[str, float]:
    """Return trec_eval's means; with -c (complete) over all topics of the judgements."""
    judged: dict[str, dict[str, int]] = {}
    for line in QRELS.read_text().splitlines()[1:]:
        topic, _, document, grade = line.split()
        judged.setdefault(topic, {})[document] = int(grade)
    evaluator = pytrec_eval.RelevanceEvaluator(judged, MEASURES, relevance_level=level)
    found = evaluator.evaluate(pytrec_eval.parse_run(io.StringIO(path.read_text())))
    number = len(judged) if complete else len(found)
    return {
        measure: sum(values[measure] for values in found.values()) / number
        for measure in next(iter(found.values()))
    }


def measures(output: str, column: int = 0) -> dict[str, float]:
    """Return the printed measures of one of the runs: rows that name ours as well."""
    rows = (line.split() for line in output.splitlines())
    return {
        cells[0]: float(cells[2 + column]) for cells in rows if len(cells) > 2 and "@" in cells[1]
    }


class TestNumbers:
    """What is printed."""

    @pytest.mark.parametrize("path", [TIED, SPREAD], ids=lambda path: path.name)
    def test_every_measure_is_trec_evals(self, path: Path) -> None:
        """Ties, grades, negative grades, a missing topic: all to the last digit printed."""
        output = run("trec", QRELS, path, "-k", 2, "-k", 5).output
        expected = by_trec_eval(path, complete=True)
        assert measures(output) == pytest.approx(expected, abs=0.51e-4)

    def test_missing_topics_can_be_left_out(self) -> None:
        """As trec_eval does without -c; the signature says so."""
        output = run("trec", QRELS, TIED, "-k", 2, "-k", 5, "--missing", "skip").output
        expected = by_trec_eval(TIED, complete=False)
        assert measures(output) == pytest.approx(expected, abs=0.51e-4)
        assert printed(output)["num_q"] == ["queries", "4"]
        assert "missing=skip" in output

    def test_relevance_level(self) -> None:
        """As trec_eval -l2: nDCG from all grades, everything else from grade 2 on."""
        output = run("trec", QRELS, SPREAD, "-k", 2, "-k", 5, "--relevance-level", 2).output
        expected = by_trec_eval(SPREAD, complete=True, level=2)
        assert measures(output) == pytest.approx(expected, abs=0.51e-4)
        assert "relevance_level=2" in output

    def test_counts(self) -> None:
        """Topics, retrieved, relevant, and both, over all topics."""
        table = printed(run("trec", QRELS, SPREAD).output)
        assert table["num_q"] == ["queries", "5"]
        assert table["num_ret"] == ["sum", "of", "retrieved", "9"]
        assert table["num_rel"] == ["sum", "of", "ground_truth", "9"]
        assert table["num_rel_ret"] == ["sum", "of", "covered", "7"]

    def test_names_stand_beside_ours(self) -> None:
        """Which of our keys a measure is."""
        table = printed(run("trec", QRELS, SPREAD, "-k", 5).output)
        assert table["trec_eval"] == ["krag_eval", "spread.run"]
        assert {name: cells[0] for name, cells in table.items() if "@" in cells[0]} == {
            "map": "map@all",
            "recip_rank": "mrr@all",
            "set_P": "macro_precision@all",
            "set_recall": "macro_recall@all",
            "set_F": "macro_f1@all",
            "ndcg": "ndcg@all",
            "P_5": "macro_precision@5",
            "recall_5": "macro_recall@5",
            "success_5": "hit_rate@5",
            "map_cut_5": "map@5",
            "ndcg_cut_5": "ndcg@5",
        }

    def test_default_cutoffs(self) -> None:
        """5, 10 and 100; what needs no cutoff is shown in any case, and "all" asks for no more."""
        assert "P_100" in printed(run("trec", QRELS, SPREAD).output)
        table = printed(run("trec", QRELS, SPREAD, "-k", "all").output)
        assert "map" in table
        assert "P_5" not in table


class TestRuns:
    """Several runs, and where they come from."""

    def test_runs_are_printed_side_by_side(self) -> None:
        """A column each, in the order given; warnings name the run."""
        done = shell("trec", QRELS, TIED, SPREAD, "-k", 2, "-k", 5)
        for column, path in enumerate((TIED, SPREAD)):
            expected = by_trec_eval(path, complete=True)
            assert measures(done.stdout, column) == pytest.approx(expected, abs=0.51e-4)
        # That the second has at most 3 documents for a topic is no setting of both.
        assert done.stdout.count("signature:") == 1
        assert "retrieved<=" not in done.stdout
        [warning] = done.stderr.splitlines()
        assert warning.startswith(f"warning: {TIED}: 1 of the 5 queries of {QRELS} are missing")
        assert "--missing skip leaves them out" in warning

    def test_runs_of_one_name_are_told_apart(self, tmp_path: Path) -> None:
        """By as much of their paths as it takes."""
        paths = [tmp_path / name / "run" for name in ("one", "two")]
        for path in paths:
            path.parent.mkdir()
            shutil.copy(SPREAD, path)
        table = printed(run("trec", QRELS, *paths).output)
        assert table["trec_eval"] == ["krag_eval", "one/run", "two/run"]

    def test_many_runs_continue_below(self, tmp_path: Path) -> None:
        """No number is cut off and no line is wider than 100 columns."""
        paths = [tmp_path / f"a-run-with-a-rather-long-name-{n}" for n in range(5)]
        paths.append(tmp_path / ("x" * 200))
        for path in paths:
            shutil.copy(SPREAD, path)
        output = run("trec", QRELS, *paths).output
        assert output.count("macro_f1@all") == 3  # two runs of 26 columns beside both names
        assert output.count("a-run-with-a-rat") == 5
        assert "…" not in output
        assert max(map(len, output.splitlines()[1:])) <= 100

    def test_huge_cutoffs_leave_numbers_whole(self) -> None:
        """Names may be wide; numbers are not broken."""
        output = run("trec", QRELS, SPREAD, TIED, "-k", 2**53).stdout
        assert max(map(len, output.splitlines()[1:])) <= 100
        assert measures(output)[f"recall_{2**53}"] == measures(output)["set_recall"]

    def test_a_pipe_and_compressed_files(self, tmp_path: Path) -> None:
        """A dash reads standard input, compressed or not."""
        (tmp_path / "qrels.gz").write_bytes(gzip.compress(QRELS.read_bytes()))
        content = gzip.compress(SPREAD.read_bytes())
        output = run("trec", tmp_path / "qrels.gz", "-", "-k", 2, "-k", 5, stdin=content).output
        assert measures(output) == measures(run("trec", QRELS, SPREAD, "-k", 2, "-k", 5).output)

    def test_other_files_that_say_the_same(self) -> None:
        """BEIR's judgements and results."""
        folder = DATA / "beir"
        output = run("trec", folder / "qrels" / "test.tsv", folder / "results.json", "-k", 1).output
        assert measures(output)["P_1"] == 1.0


class TestOutputs:
    """What is written."""

    def test_json_holds_the_result_of_a_run(self, tmp_path: Path) -> None:
        """Python reads it back, and gets what it would have computed."""
        saved = tmp_path / "out.json"
        assert f"wrote {saved}" in run("trec", QRELS, SPREAD, "-k", 5, "--json", saved).output
        expected = read_trec(QRELS, SPREAD).evaluator().evaluate(k=[5, None])
        assert EvaluationResult.from_json(saved).to_dict() == expected.to_dict()

    def test_csv_has_a_row_per_run_topic_and_cutoff(self, tmp_path: Path) -> None:
        """Values are not rounded."""
        saved = tmp_path / "out.csv"
        run("trec", QRELS, TIED, SPREAD, "-k", 2, "--csv", saved)
        with saved.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 2 * 5 * 2
        assert list(rows[0])[:3] == ["run", "query", "k"]
        [row] = (r for r in rows if (r["run"], r["query"], r["k"]) == ("tied.run", "t2", "all"))
        # kale, fern, apple, tied and so in descending order: relevant at ranks 2 and 1 of 3.
        assert float(row["average_precision"]) == pytest.approx((1 / 2 + 2 / 3) / 2)


class TestRefusals:
    """Bad input: one line, exit code 2, nothing printed before it."""

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["-k", "0"], "-k must be a whole number of at least 1"),
            (["-k", "5", "-k", "5"], "-k must not name a cutoff twice"),
            (["--missing", "none"], "'none' is not one of 'zero', 'skip'"),
            (["--relevance-level", "0"], "--relevance-level must be a whole number of at least 1"),
            (["--scores", "half"], "'half' is not one of 'single', 'double'"),
            ([str(TIED), "--json", "out.json"], "--json: holds the result of one run, got 2 runs"),
            ([str(SPREAD)], "RUN: each run is named once"),
            (["-", "-"], "standard input can be read only once"),
            (["--csv", str(QRELS)], "is among the files that are read; name another"),
            (["--csv", str(SPREAD)], "is among the files that are read; name another"),
        ],
    )
    def test_options(self, options: list[str], expected: str) -> None:
        """Each refusal says what is allowed and what came."""
        assert expected in refusal("trec", QRELS, SPREAD, *options)

    def test_no_run(self) -> None:
        """Judgements alone are nothing to evaluate; the usage says what is missing."""
        result = run("trec", QRELS)
        assert result.exit_code == 2
        assert "QRELS RUN..." in result.stderr

    def test_a_bad_line_is_named(self, tmp_path: Path) -> None:
        """Of any run; no other run is printed."""
        path = tmp_path / "bad.run"
        path.write_text("t1 Q0 a 1 0.5 x\nt1 Q0 b 2 nan x\n")
        message = refusal("trec", QRELS, SPREAD, path)
        assert message == f"{path}:2: the score must be a number, got 'nan'."

    def test_files_in_the_wrong_order(self) -> None:
        """A run is not judgements."""
        expected = f"{SPREAD}:1: expected the 4 columns 'topic 0 document grade'"
        assert refusal("trec", SPREAD, QRELS).startswith(expected)
