"""Ground truth and a run in two files, by position or by option."""

import json
from pathlib import Path

import pytest
from cli_runs import printed, refusal, run, written

from krag_eval import streaming
from krag_eval.cli import evaluate as evaluating

GOLDEN = [{"id": f"q{n}", "question": f"{n}?", "actual": [f"text {n}"]} for n in range(3)]
RUN = [{"id": f"q{n}", "predicted": [f"text {n}" if n else "other"]} for n in (2, 0, 1)]


@pytest.fixture(autouse=True)
def _files(sample):
    written("golden.jsonl", GOLDEN)
    written("run.jsonl", RUN)
    written("better.jsonl", [{**row, "predicted": [f"text {row['id'][1]}"]} for row in RUN])
    written("short.jsonl", RUN[1:])
    written("changed.jsonl", [{**GOLDEN[0], "actual": ["other"]}, *GOLDEN[1:]])
    written("chunks.jsonl", [{"id": f"c{n}", "text": f"text {n}"} for n in range(3)])


@pytest.mark.parametrize(
    "files", ["golden.jsonl run.jsonl", "run.jsonl --golden golden.jsonl",
              "golden.jsonl --run run.jsonl"]
)  # fmt: skip
def test_either_way_gives_the_same(files):
    """Two of three questions are answered, and what joined is said."""
    result = run(f"evaluate {files} -k 1 --metric macro_recall")
    assert printed(result.stdout)["macro_recall"] == ["0.6667"]
    assert "3 of 3" in result.stderr


@pytest.mark.parametrize(("missing", "recall"), [("zero", "0.3333"), ("skip", "0.5000")])
def test_what_a_run_lacks(missing, recall):
    """The user says what becomes of it."""
    typed = "evaluate golden.jsonl short.jsonl -k 1 --metric macro_recall"
    assert "--missing zero" in refusal(typed)
    assert printed(run(f"{typed} --missing {missing}").stdout)["macro_recall"] == [recall]


def test_every_command_takes_two_files():
    """Misses, explanations, diagnoses, reports and comparisons."""
    assert "0?" in run("misses golden.jsonl run.jsonl").stdout
    assert "missed" in run("explain run.jsonl q0 --golden golden.jsonl").stdout
    for query in ("q0", "--query q0"):
        assert run(f"explain golden.jsonl run.jsonl {query}").stdout.startswith("Query q0: 0?")
    listed = run("explain golden.jsonl run.jsonl --contradicted -m coverage").stdout
    assert listed.startswith("Retrieved chunks")
    assert "no file" in refusal("explain golden.jsonl other.jsonl q0")
    diagnosed = "diagnose golden.jsonl run.jsonl --index chunks.jsonl --foreign-index allow"
    assert run(diagnosed).exit_code == 0
    assert run("report golden.jsonl run.jsonl -o page.html").exit_code == 0
    for typed in ("golden.jsonl run.jsonl better.jsonl",
                  "run.jsonl better.jsonl --golden golden.jsonl"):  # fmt: skip
        found = run(f"compare {typed} -k 1 --metric recall@1 --format json").stdout
        assert json.loads(found)["differences"][0]["difference"] == pytest.approx(1 / 3)


def test_a_saved_result_finds_its_texts_again():
    """It forgets them when it is saved; the two files have them still."""
    run("evaluate golden.jsonl run.jsonl -k 1 --json saved.json")
    again = "--golden golden.jsonl --run run.jsonl"
    assert "text 0" in run(f"explain saved.json q0 {again}").stdout
    typed = f"diagnose saved.json {again} --index chunks.jsonl --foreign-index allow"
    assert run(typed).exit_code == 0
    assert "other" in refusal("explain saved.json q0 --golden golden.jsonl --run better.jsonl")


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("evaluate golden.jsonl run.jsonl --golden golden.jsonl", "GOLDEN and RUN"),
        ("evaluate golden.jsonl run.jsonl --run better.jsonl", "GOLDEN and RUN"),
        ("evaluate golden.jsonl --missing zero", "GOLDEN and RUN"),
        ("evaluate run.jsonl run.jsonl", "run.jsonl: no column"),
        ("evaluate golden.jsonl nowhere.jsonl", "RUN"),
        ("evaluate golden.jsonl - --chunk-size 2", "standard input"),
        ("evaluate golden.jsonl run.jsonl --chunk-size 2 --intervals", "--per-query"),
        ("evaluate golden.jsonl run.jsonl --chunk-size 2 --cells text", "--cells"),
        ("evaluate run.jsonl golden.jsonl --chunk-size 2", "run.jsonl: no column"),
        ("evaluate golden.jsonl", "--run RUN"),
        ("evaluate run.jsonl", "--golden GOLDEN"),
        ("explain saved.json q0 --run run.jsonl", "--golden GOLDEN"),
        ("explain saved.json q0 --golden golden.jsonl", "--run RUN"),
        ("misses saved.json run.jsonl --golden golden.jsonl --run run.jsonl", "--run"),
    ],
)
def test_what_is_not_clear_is_refused(typed, named):
    """Which file is which is never guessed, and the option that says so is named."""
    run("evaluate golden.jsonl run.jsonl -k 1 --json saved.json")
    assert named in refusal(typed)


def test_what_a_run_lacks_is_said_of_its_file():
    """Scores, for one: they are missing there, and not in the ground truth."""
    result = run("evaluate golden.jsonl run.jsonl --score-cutoff auto")
    assert (result.exit_code, "error: run.jsonl:" in result.stderr) == (2, True)


def test_a_run_with_ground_truth_of_its_own_is_no_golden_set():
    """Two runs are compared, and not joined."""
    both = [{**golden, "predicted": []} for golden in GOLDEN]
    written("both.jsonl", both)
    for more in ("", " --chunk-size 2"):
        assert "--golden both.jsonl" in refusal(f"evaluate both.jsonl run.jsonl{more}")
    assert run("evaluate run.jsonl --golden both.jsonl --chunk-size 2").exit_code == 0


@pytest.mark.parametrize("baseline", ["saved.json", "better.jsonl"])
def test_a_gate_evaluates_two_files(baseline):
    """Held to a saved result, or to another run; a floor alone is held, too."""
    run("evaluate golden.jsonl better.jsonl --json saved.json")
    typed = "gate golden.jsonl run.jsonl --metric recall@1"
    failed = run(f"{typed} --baseline {baseline} --max-drop 0.1 --format json")
    (gate,) = json.loads(failed.stdout)["gates"]
    assert gate["outcome"] == "inconclusive"  # three questions show nothing
    assert "1.0000 to 0.6667" in gate["reason"]
    assert run("gate golden.jsonl run.jsonl --fail-under rbp@1=0.1").exit_code == 0
    other = run("gate changed.jsonl run.jsonl --baseline saved.json --metric recall@1")
    assert other.exit_code == 2
    assert "ground truth" in other.stderr


def test_a_verdict_says_which_ground_truth_it_rests_on():
    """The same questions with the same documents, in any order; another one has another digest."""
    written("turned.jsonl", GOLDEN[::-1])
    typed = "run.jsonl --fail-under recall@1=0.1 --format json"
    found = [json.loads(run(f"gate {golden}.jsonl {typed}").stdout)["ground_truth"]
             for golden in ("golden", "turned", "changed")]  # fmt: skip
    assert found[0] == found[1] != found[2]
    assert found[0] in run("gate golden.jsonl run.jsonl --fail-under recall@1=0.1").stdout


def test_what_a_gate_does_not_evaluate_is_refused():
    """A saved result has been evaluated; a history is one of saved results."""
    run("evaluate golden.jsonl run.jsonl --json saved.json")
    floor = "--fail-under recall@1=0.1"
    assert "RUN" in refusal(f"gate saved.json run.jsonl {floor}")
    assert "--matcher" in refusal(f"gate saved.json -m coverage {floor}")
    assert "--history" in refusal("gate golden.jsonl run.jsonl --history . --metric recall@1")


@pytest.mark.parametrize("command", ["evaluate", "misses", "compare"])
@pytest.mark.parametrize("golden", ["golden", "ids"])
def test_ids_of_a_run_get_the_texts_of_an_index(command, golden):
    """Ground truth of texts, or of ids, beside a run of ids: coverage reads the texts."""
    written("ids.jsonl", [{"id": f"q{n}", "relevant_chunk_ids": [f"c{n}"]} for n in range(3)])
    for name, wrong in (("first", 0), ("second", 3)):
        rows = [{"id": f"q{n}", "retrieved_ids": ["c1" if n == wrong else f"c{n}"]}
                for n in range(3)]  # fmt: skip
        written(f"{name}.jsonl", rows)
    typed = f"{golden}.jsonl first.jsonl --index chunks.jsonl -m coverage(min_run=1) --format json"
    if command == "compare":
        typed = typed.replace("--format", "second.jsonl --metric recall@1 -k 1 --format")
        found = json.loads(run(f"compare {typed}").stdout)["differences"][0]
        assert found["difference"] == pytest.approx(1 / 3)
    elif command == "misses":
        (missed,) = json.loads(run(f"misses {typed}").stdout)["misses"]
        assert missed["query"] in ("0?", 0)  # by its position, without a question
    else:
        assert "macro_recall@1" in (found := json.loads(run(f"evaluate {typed}").stdout)["metrics"])
        assert found["macro_recall@1"] == pytest.approx(2 / 3)
        assert "--index" in refusal("evaluate sample.jsonl --index chunks.jsonl")


def test_encoding_and_delimiter_are_of_the_file_that_needs_them():
    """A golden set as Excel writes it beside a run of lines, the reverse, and both so."""
    cells = [f'q{n};{n}?;["text {n}"]' for n in range(3)]
    for name, side in (("g.csv", "actual"), ("r.csv", "predicted")):
        content = "\n".join([f"id;question;{side};메모", *(f"{one};ㄱ" for one in cells)])
        Path(name).write_text(content, encoding="cp949")
    options = "--encoding cp949 --delimiter ; -k 1 --metric hit_rate"
    for files, rate in (("g.csv run.jsonl", "0.6667"), ("golden.jsonl r.csv", "1.0000"),
                        ("g.csv r.csv", "1.0000")):  # fmt: skip
        assert printed(run(f"evaluate {files} {options}").stdout)["hit_rate"] == [rate]


def test_a_run_from_standard_input_and_an_object_of_lists():
    """Lines from a pipe; from id to documents, as one JSON object."""
    typed = "-k 1 --metric macro_recall"
    lines = Path("run.jsonl").read_bytes()
    piped = run(f"evaluate golden.jsonl - {typed}", stdin=lines)
    Path("object.json").write_text(json.dumps({row["id"]: row["predicted"] for row in RUN}))
    of_object = run(f"evaluate golden.jsonl object.json {typed}")
    for one in (piped, of_object):
        assert printed(one.stdout)["macro_recall"] == ["0.6667"]


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("evaluate run.jsonl golden.jsonl", "run.jsonl: no column"),
        ("evaluate golden.jsonl", "--run RUN"),
        ("evaluate run.jsonl", "--golden GOLDEN"),
        ("evaluate run.jsonl --missing zero", "--golden GOLDEN"),
        ("compare bad.jsonl run.jsonl better.jsonl", "bad.jsonl:2: actual"),
    ],
)
def test_what_the_files_lack_is_said_of_the_right_one(typed, named):
    """Swapped, alone, or with a line that cannot be read."""
    written("bad.jsonl", [GOLDEN[0], {**GOLDEN[1], "actual": 5}, GOLDEN[2]])
    assert named in refusal(typed)


def test_a_saved_result_knows_the_run_it_is_of():
    """Another order of the same documents has the same counts, and other ranks."""
    rows = [{"id": f"q{n}", "predicted": [f"text {n}", "other"]} for n in range(3)]
    written("first.jsonl", rows)
    written("last.jsonl", [{**row, "predicted": row["predicted"][::-1]} for row in rows])
    run("evaluate golden.jsonl first.jsonl -k 2 --json saved.json")
    again = "explain saved.json q0 --golden golden.jsonl --run"
    assert "text 0" in run(f"{again} first.jsonl").stdout
    assert "other documents" in refusal(f"{again} last.jsonl")


@pytest.mark.parametrize("files", ["golden.jsonl run.jsonl", "run.jsonl --golden golden.jsonl",
                                   "golden.jsonl --run run.jsonl",
                                   "golden.jsonl short.jsonl --missing zero"])  # fmt: skip
def test_two_files_in_chunks_print_what_they_do_in_memory(files):
    """With what joined beside it; the digest of the ground truth needs every query."""
    whole, chunked = (run(f"evaluate {files} -k 1{more}") for more in ("", " --chunk-size 2"))
    kept = [one for one in whole.stdout.splitlines() if not one.startswith("Digest of")]
    assert chunked.stdout.splitlines() == kept
    assert chunked.stderr == whole.stderr
    assert "joined by their ids" in chunked.stderr


def test_rows_of_two_files_are_written_as_they_come():
    """What needs every query reads them."""
    call = "evaluate golden.jsonl run.jsonl -k 1 --intervals --by items"
    rows = run(f"{call} --per-query rows.csv").stdout
    assert run(call).stdout == "".join(
        one for one in rows.splitlines(keepends=True) if "rows.csv" not in one
    )
    assert len(Path("rows.csv").read_text().splitlines()) == 4


def test_two_large_files_are_joined_in_chunks(monkeypatch):
    """Unless something needs all queries, or a tool's own layout has to be read whole."""
    joined, evaluate_file = [], streaming.evaluate_file

    def noted(*files, **options):
        joined.append(files)
        return evaluate_file(*files, **options)

    monkeypatch.setattr(streaming, "evaluate_file", noted)
    monkeypatch.setattr(evaluating, "_LARGE", 400)  # more than either file has
    rows = [{"query": {"qid": row["id"], "text": f"{row['id'][1]}?"},
             "candidates": [{"docid": "d", "doc": {"contents": text}} for text in row["predicted"]]}
            for row in RUN]  # fmt: skip
    written("rank_llm.jsonl", rows)
    for call, n in (("golden.jsonl run.jsonl", 0), ("golden.jsonl run.jsonl", 1),
                    ("golden.jsonl run.jsonl --csv all.csv", 1), ("golden.jsonl rank_llm.jsonl", 1),
                    ("golden.jsonl - ", 1)):  # fmt: skip
        stdin = Path("run.jsonl").read_bytes() if "-" in call.split() else b""
        result = run(f"evaluate {call} -k 1 --metric macro_recall", stdin=stdin)
        assert printed(result.stdout)["macro_recall"] == ["0.6667"]
        assert len(joined) == n
        monkeypatch.setattr(evaluating, "_LARGE", 200)


def _with_an_index():
    """Three passages: one found, one cut apart by the splitter, one that was never ingested."""
    passages = [
        "Books may be kept for four weeks and renewed twice.",
        "A lost card costs five euros to replace, payable in cash at the desk.",
        "Bicycles must be left outside, next to the main entrance of the building.",
    ]
    chunks = [passages[0], f"Tell us. {passages[1][:34]}", f"{passages[1][34:]} Thank you."]
    written("truth.jsonl", [{"id": n, "question": f"{n}?", "actual": [one]}
                            for n, one in enumerate(passages)])  # fmt: skip
    written("found.jsonl", [{"id": n, "predicted": [chunks[0], chunks[1]]} for n in (2, 1, 0)])
    written("index.jsonl", chunks)


def test_an_index_adds_what_lost_the_misses():
    """Of three passages one is found, one cut apart, one not in the index: by hand, from above."""
    _with_an_index()
    typed = "evaluate truth.jsonl found.jsonl --index index.jsonl -k 1,2"
    found = json.loads(run(f"{typed} --format json").stdout)
    assert found["diagnosis"]["counts"]["found"] == 1
    assert found["diagnosis"]["counts"]["cut_apart"] == 1
    assert found["diagnosis"]["counts"]["not_in_index"] == 1
    assert "matcher=coverage" in found["signature"]
    assert {name.rpartition("@")[2] for name in found["intervals"]} == {"2"}
    shown = run(typed).stdout
    rows = printed(shown)
    assert rows["macro_recall"][:2] == ["0.3333", "0.3333"]
    assert rows["cut_apart"][-2:] == ["0.3333", "0.6667"]
    assert not {"f1", "macro_f1", "micro_recall"} & rows.keys()  # one average of each row
    assert "33 %" in shown


def test_an_index_may_come_from_a_pipe_and_is_never_written_over():
    """What is read once serves texts and diagnosis alike; an output of its name is refused."""
    _with_an_index()
    typed = "evaluate truth.jsonl found.jsonl -k 2 --format json --index"
    piped = run(f"{typed} -", stdin=Path("index.jsonl").read_bytes())
    assert (
        json.loads(piped.stdout)["diagnosis"]
        == json.loads(run(f"{typed} index.jsonl").stdout)["diagnosis"]
    )
    before = Path("index.jsonl").read_bytes()
    assert "--csv" in refusal(
        "evaluate truth.jsonl found.jsonl --index index.jsonl --csv index.jsonl"
    )
    assert Path("index.jsonl").read_bytes() == before


def test_another_index_is_refused():
    """Chunks that hold nothing of what was retrieved are those of another index."""
    _with_an_index()
    written("other.jsonl", ["Something else entirely, of another corpus."])
    typed = "evaluate truth.jsonl found.jsonl --index other.jsonl"
    foreign = run(typed)
    assert (foreign.exit_code, "--foreign-index" in foreign.stderr) == (2, True)
    assert run(f"{typed} --foreign-index allow").exit_code == 0


def test_all_metrics_are_printed_where_they_are_asked_for():
    """The table is read at a glance otherwise, and names what it leaves out."""
    few, every = (run(f"evaluate golden.jsonl run.jsonl -k 1 {one}").stdout
                  for one in ("", "--metric all"))  # fmt: skip
    assert {"macro_recall", "mrr", "ndcg"} <= printed(few).keys()
    assert not {"f1", "map", "mean_rank"} & printed(few).keys()
    assert {"macro_f1", "map", "mean_rank", "found_rate"} <= printed(every).keys()
    assert "--metric all" in few


def test_refusals_name_the_file_that_is_not_what_it_is_taken_for():
    """A second golden set, another run than the one that was saved, and a file too many."""
    assert "second file" in refusal("evaluate golden.jsonl golden.jsonl")
    run("evaluate golden.jsonl run.jsonl -k 1 --json saved.json")
    refused = refusal("explain saved.json q0 --golden golden.jsonl --run better.jsonl")
    assert "golden.jsonl with better.jsonl: " in refused
    refused = refusal("diagnose saved.json --index chunks.jsonl")
    assert refused.startswith("saved.json: ")
    assert "(better.jsonl). To" in refusal("evaluate golden.jsonl run.jsonl better.jsonl")
    assert "--golden" in " ".join(run("explain saved.json q0").stdout.split())


@pytest.mark.parametrize(
    ("typed", "blamed"),
    [("--metric all,recall@5", "--metric"), ("--foreign-index allow", "--foreign-index")],
)
def test_options_that_would_have_no_effect_are_refused(typed, blamed):
    """'all' beside a metric, and what is about an index without one."""
    assert blamed in refusal(f"evaluate golden.jsonl run.jsonl {typed}")
