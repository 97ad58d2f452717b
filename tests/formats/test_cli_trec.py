"""``krag-eval trec``: trec_eval's numbers under its names, and what it refuses.

Expected values come from pytrec_eval, to the four digits that are printed.
"""

import gzip
import io
import shutil
from pathlib import Path

import pytest
import pytrec_eval
from cli_runs import printed, refusal, rows_in, run, table
from places import DATA

from krag_eval import EvaluationResult
from krag_eval.datasets import read_trec

TIED, SPREAD = "tied.run", "spread.run"
CALL = "trec graded.qrels spread.run"
MEASURES = {"map", "recip_rank", "ndcg", "set_P", "set_recall", "set_F"} | {
    f"{name}.2,5" for name in ("P", "recall", "success", "map_cut", "ndcg_cut")
}


@pytest.fixture(autouse=True)
def _files(sample):
    for name in ("graded.qrels", TIED, SPREAD):
        shutil.copy(DATA / name, name)


def by_trec_eval(name, *, complete=True, level=1):
    """Return trec_eval's means; with -c (complete) over all topics of the judgements."""
    judged = {}
    for line in Path("graded.qrels").read_text().splitlines()[1:]:
        topic, _, document, grade = line.split()
        judged.setdefault(topic, {})[document] = int(grade)
    evaluator = pytrec_eval.RelevanceEvaluator(judged, MEASURES, relevance_level=level)
    found = evaluator.evaluate(pytrec_eval.parse_run(io.StringIO(Path(name).read_text())))
    number = len(judged) if complete else len(found)
    means = {
        measure: sum(values[measure] for values in found.values()) / number
        for measure in next(iter(found.values()))
    }
    return pytest.approx(means, abs=0.51e-4)


def measures(output, column=0):
    """Return the printed measures of one of the runs: rows that name ours as well."""
    rows = (line.split() for line in output.splitlines())
    return {
        cells[0]: float(cells[2 + column]) for cells in rows if len(cells) > 2 and "@" in cells[1]
    }


@pytest.mark.parametrize(
    ("name", "option", "how"),
    [
        # Ties, grades, negative grades, a missing topic: all to the last digit printed.
        (TIED, "", {}),
        (SPREAD, "", {}),
        (TIED, "--missing skip", {"complete": False}),
        # nDCG is from all grades, everything else from grade 2 on.
        (SPREAD, "--relevance-level 2", {"level": 2}),
    ],
)
def test_every_measure_is_trec_evals(name, option, how):
    """With all topics, as by -c, or without those that are missing; from a grade on, as by -l."""
    output = run(f"trec graded.qrels {name} -k 2,5 {option}").output
    assert measures(output) == by_trec_eval(name, **how)
    assert printed(output)["num_q"] == ["queries", "4" if "skip" in option else "5"]
    signed = {
        "": "missing=1 of 5, zero" if name == TIED else "",
        "--missing skip": "missing=1 of 5, skip",
        "--relevance-level 2": "relevance_level=2",
    }
    assert signed[option] in " ".join(output.split())


def test_default_cutoffs():
    """5, 10 and 100; what needs no cutoff is shown in any case, and "all" asks for no more."""
    assert "P_100" in table(CALL)
    assert [name in table(f"{CALL} -k all") for name in ("map", "P_5")] == [True, False]


def test_runs_are_printed_side_by_side():
    """A column each, in the order given; warnings name the run."""
    done = run("trec graded.qrels tied.run spread.run -k 2,5")
    for column, name in enumerate((TIED, SPREAD)):
        assert measures(done.stdout, column) == by_trec_eval(name)
    # That the second has at most 3 documents for a topic is no setting of both; what the first
    # lacks is its own.
    assert "retrieved<=" not in done.stdout
    signatures = [" ".join(one.split()) for one in done.stdout.split("\nsignature: ")[1:]]
    assert ["missing=1 of 5, zero" in one for one in signatures] == [True, False]
    [warning] = done.stderr.splitlines()
    assert warning.startswith("warning: tied.run: 1 of the 5 queries of graded.qrels are missing")
    assert "--missing skip leaves them out" in warning


def test_runs_of_one_name_are_told_apart():
    """By as much of their paths as it takes."""
    for name in ("one", "two"):
        Path(name).mkdir()
        shutil.copy(SPREAD, f"{name}/run")
    assert table("trec graded.qrels one/run two/run")["trec_eval"][1:] == ["one/run", "two/run"]


def test_many_runs_and_huge_cutoffs_continue_below():
    """No number is cut off and no line is wider than 100 columns."""
    names = [*(f"a-run-with-a-rather-long-name-{n}" for n in range(5)), "x" * 200]
    for name in names:
        shutil.copy(SPREAD, name)
    output = run("trec", "graded.qrels", *names).output
    assert output.count("macro_f1@all") == 3  # two runs of 26 columns beside both names
    assert output.count("a-run-with-a-rat") == 5
    assert "…" not in output
    wide = run(f"{CALL} tied.run -k {2**53}").stdout
    assert max(map(len, (output + wide).splitlines())) <= 100
    assert measures(wide)[f"recall_{2**53}"] == measures(wide)["set_recall"]


def test_other_files_that_say_the_same():
    """A pipe and compressed files; BEIR's judgements and results."""
    Path("qrels.gz").write_bytes(gzip.compress(Path("graded.qrels").read_bytes()))
    content = gzip.compress(Path(SPREAD).read_bytes())
    piped = run("trec qrels.gz - -k 2,5", stdin=content).output
    assert measures(piped) == measures(run(f"{CALL} -k 2,5").output)
    beir = run("trec", DATA / "beir/qrels/test.tsv", DATA / "beir/results.json", "-k", 1).output
    assert measures(beir)["P_1"] == 1.0


def test_json_holds_the_result_of_a_run():
    """Python reads it back, and gets what it would have computed."""
    assert f"wrote {Path.cwd() / 'out.json'}" in run(f"{CALL} -k 5 --json out.json").output
    expected = read_trec("graded.qrels", SPREAD).evaluator().evaluate(k=[5, None])
    assert EvaluationResult.from_json("out.json").to_dict() == expected.to_dict()


def test_csv_has_a_row_per_run_topic_and_cutoff():
    """Values are not rounded."""
    run(f"{CALL} tied.run -k 2 --csv out.csv")
    rows = rows_in(Path("out.csv").read_text("utf-8"))
    assert len(rows) == 2 * 5 * 2
    assert list(rows[0])[:3] == ["run", "query", "k"]
    [row] = (r for r in rows if (r["run"], r["query"], r["k"]) == (TIED, "t2", "all"))
    # kale, fern, apple, tied and so in descending order: relevant at ranks 2 and 1 of 3.
    assert float(row["average_precision"]) == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_a_bad_line_is_named():
    """Of any run; a run is no judgements."""
    Path("bad.run").write_text("t1 Q0 a 1 0.5 x\nt1 Q0 b 2 nan x\n")
    assert refusal(f"{CALL} bad.run") == "bad.run:2: the score must be a number, got 'nan'."
    expected = "spread.run:1: expected the 4 columns 'topic 0 document grade'"
    assert refusal("trec spread.run graded.qrels").startswith(expected)


def test_no_run():
    """Judgements alone are nothing to evaluate; the usage says what is missing."""
    assert "QRELS RUN..." in run("trec graded.qrels").stderr
