"""``krag-eval evaluate``: what it prints, and what it refuses.

docs/metrics.md works out the numbers of the sample by hand.
"""

import gzip
import json
import re
import warnings
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import SAMPLE, printed, refusal, run, table, written

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator
from krag_eval.datasets import Dataset, demo_dataset, read_jsonl
from krag_eval.errors import MissingPackage

CALL = "evaluate sample.jsonl"


def test_rows_are_metrics_and_columns_cutoffs():
    """Every metric at every cutoff, to four digits, micro beside macro."""
    rows = table(f"{CALL} -k 1 -k 2 -k all --metric all")
    assert rows["metric"] == ["@1", "@2", "@all"]
    assert rows["micro_recall"] == ["0.2000", "0.6000", "0.8000"]
    assert rows["macro_f1"] == ["0.2500", "0.6562", "0.7059"]
    assert rows["mean_rank"] == ["1.0000", "1.5000", "1.5000"]
    lines = [line.split() for line in run(f"{CALL} -k 2").output.splitlines()]
    assert lines[2:4] == [["@2", "@2"], ["metric", "macro", "micro"]]


def test_one_average_needs_no_second_column():
    """Where one was asked for, rows are named by their keys."""
    output = run(f"{CALL} -k 2 --averaging micro").output
    lines = [line.split() for line in output.splitlines()]
    assert ["metric", "@2"] in lines
    assert ["micro_recall", "0.6000"] in lines


@pytest.mark.parametrize(
    ("typed", "cutoffs"),
    [
        ("", ["@1", "@3", "@5", "@10"]),
        ("-k 1,3w,all", ["@1", "@3w", "@all"]),
        ("-k '1 3w, all'", ["@1", "@3w", "@all"]),
        ("-k1 -k 3w,all", ["@1", "@3w", "@all"]),
    ],
)
def test_cutoffs(typed, cutoffs):
    """Several are typed with commas, spaces or options of their own."""
    assert table(f"{CALL} {typed}")["metric"] == cutoffs


def test_says_how_many_queries_and_how():
    """The number of queries, the file, and the signature, wrapped to 100 columns."""
    output = run(f"{CALL} -k 2 --criteria partial").output
    assert output.startswith("2 queries from sample.jsonl\n")
    evaluator = read_jsonl("sample.jsonl").evaluator(matching_criteria="partial")
    assert evaluator.evaluate(k=[2]).signature in " ".join(output.split())
    assert max(map(len, output.splitlines())) <= 100


@pytest.mark.parametrize("name", ["qa.csv", "qa.tsv.gz", "qa.json"])
def test_tables(name):
    """The same numbers from every kind of file, and nothing to add about krag_eval's names."""
    frame = pd.DataFrame(map(json.loads, SAMPLE.splitlines()))
    if name == "qa.json":
        frame.to_json(name, orient="records")
    else:
        frame.to_csv(name, index=False, sep="\t" if "tsv" in name else ",")
    expected = run(f"{CALL} -k 2").output.replace("sample.jsonl", name)
    assert run(f"evaluate {name} -k 2").output == expected


def test_fields_of_other_names():
    """The three can be given; what was understood by known names is said."""
    written("run.jsonl", [{"q": "Q", "gold": ["a"], "hits": ["a"]}])
    fields = "--question-field q --actual-field gold --predicted-field hits"
    assert table(f"evaluate run.jsonl {fields} -k 1")["mrr"] == ["1.0000"]
    row = {"user_input": "Q", "reference_contexts": ["a"], "retrieved_contexts": ["a"]}
    pd.DataFrame([row | {"hits": []}]).to_csv("ragas.csv", index=False)
    result = run("evaluate ragas.csv -k 1")
    said = "ragas.csv: ground truth read from reference_contexts, by RAGAS's "
    assert result.stderr.startswith(said)
    assert printed(result.output)["mrr"] == ["1.0000"]
    assert table("evaluate ragas.csv -k 1 --predicted-field hits")["mrr"] == ["0.0000"]
    piped = run("evaluate - -k 1", stdin=json.dumps(row))
    assert (piped.exit_code, "RAGAS" in piped.stderr) == (0, True)


def test_grades_are_read_by_their_key():
    """Grades 3 and 1, the lesser first: DCG 1 + 7/log2(3), IDCG 7 + 1/log2(3): nDCG 0.7098."""
    graded = [{"page_content": one, "metadata": {"grade": n}} for one, n in (("a", 3), ("b", 1))]
    written("run.jsonl", [{"actual": graded, "predicted": ["b", "a"]}])
    output = run("evaluate run.jsonl -k 2 --grade-key grade").output
    assert ("0.7098" in output, "grades=grade" in output) == (True, True)


def test_alternatives_are_read_from_a_file():
    """Of t1 or t2, and t3, with t1, x, t2, y retrieved, one item of two is covered.

    AutoRAG's values for this example under its preset: recall 1/2, MAP 5/12.
    """
    actual = [{"any_of": ["t1", {"page_content": "t2"}]}, "t3"]
    written("run.jsonl", [{"question": "Q", "actual": actual, "predicted": ["t1", "x", "t2", "y"]}])
    rows = table("evaluate run.jsonl -k all --metric all --conventions autorag")
    assert (rows["macro_recall"], rows["map"]) == (["0.5000"], ["0.4167"])
    own = table("evaluate run.jsonl -k all --metric all")
    # Credited once, at rank 1: DCG 1, ideal 1 + 1 / log2(3).
    assert (own["map"], own["ndcg"]) == (["0.5000"], ["0.6131"])


def test_the_demo_is_evaluated_as_any_data():
    """Its table is that of the packaged data, matched by equal text, and below in other ways."""
    output = run("demo").output
    mrr = demo_dataset().evaluator().calculate_mrr(k=5)["mrr"]
    recall = demo_dataset().evaluator(matcher="contains").calculate_recall(k=5)["macro_recall"]
    assert printed(output)["mrr"][2] == f"{mrr:.4f}"
    assert re.search(rf"^contains +{recall:.4f}", output, re.MULTILINE)


def test_skipped_queries_are_counted():
    """Queries left out are not hidden."""
    written("run.jsonl", [{"actual": one, "predicted": one} for one in (["a"], [])])
    output = " ".join(run("evaluate run.jsonl --no-ground-truth skip").output.split())
    assert output.startswith("1 query from run.jsonl (1 more skipped: no ground truth) ")


@pytest.mark.parametrize("content", [SAMPLE.encode(), gzip.compress(SAMPLE.encode())])
def test_reads_standard_input(content):
    """Compressed or not."""
    output = run("evaluate - -k 2", stdin=content).output
    assert output.startswith("2 queries from <stdin>\n")
    assert printed(output)["mrr"] == ["0.7500"]


def test_warnings_are_one_line_in_the_shell_s_words():
    """A warning of ours goes to standard error without Python's decoration."""
    written("run.jsonl", [{"actual": ["a"], "predicted": ["b"]}])
    done = run("evaluate run.jsonl")
    [warning] = done.stderr.splitlines()
    assert warning.startswith("warning: The matcher text matched nothing at all")
    assert "try --matcher contains" in warning
    assert (done.exit_code, "warning:" in done.stdout) == (0, False)


def test_other_warnings_stay_as_they_are(monkeypatch):
    """Only our own warnings are reworded."""

    def evaluate(self, k, **_):
        warnings.warn("not ours", FutureWarning, stacklevel=1)

    monkeypatch.setattr(OfflineRetrievalEvaluator, "evaluate", evaluate)
    with pytest.raises(FutureWarning, match="not ours"):
        run(CALL)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (f"{CALL} --nonsense", "(see krag-eval evaluate --help)"),
        (f"{CALL} --metric recal", "'macro_recall', 'micro_recall' or 'recall'? docs/metrics.md"),
        (f"{CALL} --metric zzz", "ndcg"),
        ("evalute", "did you mean evaluate?"),
        ("zzz", "krag-eval --help"),
        ("results.jsonl", "type 'krag-eval evaluate results.jsonl'."),
        ("sample.jsonl", "type 'krag-eval evaluate sample.jsonl'."),
    ],
)
def test_a_refusal_says_what_to_do(typed, expected):
    """What is allowed, or what was meant."""
    assert expected in refusal(typed)


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        ("a.jsonl", SAMPLE + "oops\n", "", "a.jsonl:3: not valid JSON"),
        ("a.csv", "question,actual,predicted\nQ,['a'],a\n", "", "a.csv:2: row 2 (the header is "),
        ("a.csv", "question,actual,predicted\nQ,[],['a']\n", "", "a.csv: actual: no ground truth"),
        ("a.csv", "question,actual\nQ,['a']\n", "", "a.csv: holds no retrieved documents"),
        ("a.json", '[{"actual": [{"page_content": "a", "metadata": {"g": "x"}}], "predicted": []}]',
         "--grade-key g", "a.json: row 0 (from 0): actual[0]: a grade must be"),
        ("a.jsonl", '{"actual": [{"page_content": "a", "metadata": {"g": "x"}}], "predicted": []}',
         "--grade-key g", "a.jsonl:1: actual[0]: a grade must be"),
        # Blank lines shift lines against queries; the line is the file's.
        ("a.jsonl", '{"actual": ["a"], "predicted": ["a"]}\n\n'
         '{"actual": ["a"], "predicted": ["b", {"page_content": "a"}]}\n',
         "-m id", "a.jsonl:3: predicted[1] has no id"),
        ("a.jsonl", '{"question": "Why?", "actual": [], "predicted": []}', "",
         "a.jsonl: actual: no ground truth for 1 of 1 queries ('Why?')"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_refused_by_its_place(name, content, options, expected):
    """Line, row or column; an error of the evaluator by its line or row."""
    Path(name).write_text(content, "utf-8")
    refused = refusal(f"evaluate {name} {options}")
    assert expected in refused
    assert ("--no-ground-truth skip" in refused) == ("no ground truth" in refused)


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("operands"), TypeError("None")])
@pytest.mark.parametrize("where", ["datasets.Dataset.evaluator", "core.scoring.averages._ratio"])
def test_a_bug_is_not_disguised(monkeypatch, where, error):
    """An error that is no refusal keeps its traceback, also one of the package's own."""

    def broken(*_, **__):
        raise error

    monkeypatch.setattr(f"krag_eval.{where}", broken)
    with pytest.raises(type(error)):
        run(CALL)


def test_a_missing_extra_is_no_bug(monkeypatch):
    """The line that installs it is all there is to say."""

    def read(*_, **__):
        raise MissingPackage("", "reading this needs pyarrow", "pip install it")

    monkeypatch.setattr("krag_eval.datasets.read_jsonl", read)
    assert refusal(CALL) == "reading this needs pyarrow; pip install it."


@pytest.mark.parametrize(
    ("error", "note", "code"),
    [
        (KeyboardInterrupt(), "", 130),
        (KeyboardInterrupt(), "3 of 4 are kept", 130),
        (MemoryError(), "out of memory", 2),
        (SystemExit(0), "", 0),  # as after the completion of a word
    ],
)
def test_what_ends_a_command_has_its_code(monkeypatch, error, note, code):
    """Ctrl-C says what is kept, if anything; memory that runs out is a refusal."""
    if code == 130:
        error.add_note(note)

    def ended(*_, **__):
        raise error

    monkeypatch.setattr("krag_eval.loading.loading.query_in", ended)
    result = run(CALL)
    assert (result.exit_code, result.stdout) == (code, "")
    assert note in result.stderr
    assert bool(result.stderr.strip()) == bool(note)


def test_long_messages_are_clipped():
    """A question of a megabyte is not printed whole; the remedy still is."""
    written("run.jsonl", [{"question": "x" * 10**6, "actual": [], "predicted": []}])
    message = refusal("evaluate run.jsonl")
    assert len(message) < 1200
    assert "--no-ground-truth skip" in message


def test_a_saved_data_set_brings_its_own_settings():
    """AutoRAG's ids are compared as ids unless another matcher is typed; in chunks too."""
    one, other = ({"page_content": text, "id": "1"} for text in "ab")
    Dataset(["?"], [[one]], [[other]], defaults={"matcher": "id"}).save("saved.jsonl")
    for more in ("", "--chunk-size 1"):
        shown = run(f"evaluate saved.jsonl -k 1 {more}").output
        assert "matcher=id" in shown
        assert printed(shown)["hit_rate"] == ["1.0000"]
    assert "matcher=text" in run("evaluate saved.jsonl -k 1 --matcher text").output


def test_jobs_change_nothing_but_the_time():
    """In one piece and in chunks, the printed page is the same."""
    alone = run(f"{CALL} -m rouge1").output
    assert run(f"{CALL} -m rouge1 --jobs 2").output == alone
    assert run(f"{CALL} -m rouge1 --jobs 2 --chunk-size 1").output == alone


@pytest.mark.parametrize("kind", ["jsonl", "csv", "json"])
def test_a_file_in_another_encoding(kind):
    """Without ``--encoding`` the refusal names the option; with it, the file is read."""
    line = '{"질문": "언제 여나요?", "정답": ["아홉 시"], "검색 결과": ["아홉 시"]}'
    cells = "질문,정답,검색 결과\n언제 여나요?,['아홉 시'],['아홉 시']\n"
    texts = {"jsonl": line, "json": f"[{line}]", "csv": cells}
    Path(f"run.{kind}").write_bytes(texts[kind].encode("cp949"))
    assert "--encoding cp949" in refusal(f"evaluate run.{kind}")
    run(f"evaluate run.{kind} --encoding cp949 -k 1 --json saved.json")
    assert EvaluationResult.from_json("saved.json").averages()["mrr"] == 1.0


SCORED = [
    {"question": "q", "actual": ["a"], "predicted": [["a", 0.9], ["x", 0.4]]},
    {"question": "r", "actual": ["b"], "predicted": [["b", 0.6]]},
    {"question": "s", "actual": [], "predicted": [["y", 0.5]]},
    {"question": "t", "actual": [], "predicted": [["z", 0.3]]},
]
BY_SCORE = "evaluate scored.jsonl --no-ground-truth skip -k 2 --metric recall --format json"


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize(
    ("typed", "cutoff", "n_dropped", "recall"),
    [("auto", 0.6, 3, 1), ("0.6", 0.6, 3, 1), ("0.7", 0.7, 4, 0.5), ("-1", -1, 0, 1)],
)
def test_documents_are_dropped_by_score(typed, cutoff, n_dropped, recall):
    """By hand: .6 keeps both answers and rejects .5 and .3; .7 loses one answer."""
    written("scored.jsonl", SCORED)
    told = json.loads(run(f"{BY_SCORE} --score-cutoff {typed}").stdout)
    assert (told["score_cutoff"]["cutoff"], told["score_cutoff"]["n_dropped"]) == (
        cutoff,
        n_dropped,
    )
    assert told["metrics"]["macro_recall@2"] == recall
    assert ("held_out" in told["score_cutoff"]) == (typed == "auto")
    assert f"score_cutoff={cutoff}" in told["signature"].replace(".0", "")


def test_a_score_cutoff_is_chosen_in_sight():
    """The curve is a table, with the cutoff, the held-out values and what is dropped below."""
    written("scored.jsonl", SCORED)
    output = run(f"{BY_SCORE} --score-cutoff auto --format table").output
    assert ["0.6", "1.0000", "1.0000", "1.0000"] in [one.split() for one in output.splitlines()]
    assert "Score cutoff 0.6: 3 retrieved documents" in output


@pytest.mark.parametrize(
    ("rows", "typed"),
    [(SCORED[:2], "auto"), (SCORED, "low"), (SCORED, "0.5 --chunk-size 2")],
)
def test_score_cutoffs_that_cannot_be(rows, typed):
    """Nothing to choose by, no number, and a run in chunks."""
    written("scored.jsonl", rows)
    assert "--score-cutoff" in refusal(f"{BY_SCORE} --score-cutoff {typed}")


@pytest.mark.parametrize("typed", ["auto", "0.5"])
def test_a_document_without_a_score_is_named_by_its_line(typed):
    """Where others have one."""
    written("scored.jsonl", [*SCORED, {"question": "u", "actual": ["a"], "predicted": ["a"]}])
    assert "scored.jsonl:5: " in refusal(f"{BY_SCORE} --score-cutoff {typed}")
