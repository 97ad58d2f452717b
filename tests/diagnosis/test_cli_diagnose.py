"""``krag-eval diagnose``: where what is missing in a file was lost."""

import re
from pathlib import Path

import pytest
from cli_runs import content, printed, refusal, rows_in, run, written
from small_library import CHUNKS, PAGE, PREDICTED, result_of, rows_of

from krag_eval import Diagnosis
from krag_eval.datasets import Dataset

CALL = "diagnose results.jsonl --index chunks.jsonl"
SAVED = "diagnose saved.json --index chunks.jsonl"


@pytest.fixture(autouse=True)
def _files(sample):
    written("results.jsonl", rows_of(PREDICTED))
    written("chunks.jsonl", CHUNKS)


def counts(line, **how):
    """Return the column of items that a command prints; a label is any number of words."""
    return {
        name: int(cells[-3])
        for name, cells in printed(run(line, **how).stdout).items()
        if len(cells) > 3 and cells[-1].count(".") == 1 and cells[-3].isdigit()
    }


def test_the_guide_shows_what_is_printed():
    """The sentence, the counts and the waterfall, of the example on the page."""
    found = re.search(r"\$ krag-eval (diagnose .*)\n((?:.*\n)+?)…\n```", PAGE.read_text("utf-8"))
    assert run(found[1]).stdout.partition("signature: ")[0] == found[2]


def test_outputs_are_those_of_python():
    """The diagnosis, and its table with empty cells for what is not known."""
    run(f"{CALL} -k 2 --json d.json --csv d.csv")
    assert Diagnosis.from_json("d.json") == result_of(2).diagnose(CHUNKS, k=2)
    rows = rows_in(Path("d.csv").read_text("utf-8"))
    assert [(row["class"], row["rank"]) for row in rows] == [
        ("found", "1"), ("cut_apart", ""), ("ranked_too_low", "3"), ("not_in_index", ""),
    ]  # fmt: skip
    assert run(f"{CALL} -k 2 --json -").stdout == Path("d.json").read_text("utf-8")


def test_another_version_is_told_in_every_output():
    """Chunk 3 says what the passage says, of six euros."""
    written("chunks.jsonl", [*CHUNKS[:3], CHUNKS[3].replace("five", "six"), CHUNKS[4]])
    predicted = [[documents[0]] for documents in PREDICTED]
    written("results.jsonl", rows_of(predicted))
    assert counts(f"{CALL} -k 1")["contradicted"] == 1
    (row,) = [one for one in rows_in(run(f"{CALL} --csv -").stdout) if one["chunk_says"]]
    names = ("class", "chunk", "differs_in", "passage_says", "chunk_says")
    assert [row[name] for name in names] == [
        "contradicted",
        "3",
        "number",
        "costs five",
        "costs six",
    ]
    run(f"{CALL} --json d.json --report out.html")
    assert Diagnosis.from_json("d.json").items[2].chunk_says == "costs six"
    assert "the passage has costs five, the chunk costs six there" in Path("out.html").read_text(
        "utf-8"
    )
    run(f"{CALL} --report out.html --report-language ko")
    assert "같은 자리에 정답은 costs five, 청크는 costs six" in Path("out.html").read_text("utf-8")


def test_a_report():
    """The page of the result with the section: each of four causes has a quarter of the items."""
    done = run(f"{CALL} -k 2 --report out.html")
    assert f"wrote {Path.cwd() / 'out.html'} (an HTML report)" in done.stdout
    told = Path("out.html").read_text("utf-8")
    assert "25 % of passages are cut apart by the splitter" in told
    assert "recall would be 0.500" in told
    assert "Diagnosed at" not in told
    run(f"{CALL} -k 2 --report out.html --report-language ko")
    assert "구절의 25%가 청크 경계에서 잘렸습니다" in Path("out.html").read_text("utf-8")


def test_a_saved_result():
    """By its own matcher, at its deepest cutoff or any other; a page says which is which."""
    result_of([1, 2]).to_json("saved.json", texts=True)
    deepest = run(SAVED).stdout
    assert "micro recall@2" in deepest
    assert counts(SAVED)["ranked_too_low"] == 1
    assert counts(f"{SAVED} -k 3")["found"] == 2
    assert counts(f"{SAVED} -k all") == counts(f"{SAVED} -k 3")
    assert run(f"{SAVED} -m coverage").stdout == deepest
    assert "--matcher" in refusal(f"{SAVED} -m text")
    run(f"{SAVED} -k 3 --report out.html")
    assert "Diagnosed at k = 3; the figures above are at k = 2." in Path("out.html").read_text()


def test_another_matcher_is_named_by_option_or_file():
    """Coverage is for texts of which nothing else is known."""
    # "... at the desk." is not in "... at the desk on the same day."
    assert counts(f"{CALL} -k 2 -m contains")["not_in_index"] == 3
    assert "cut_apart" not in run(f"{CALL} -k 2 -m contains").stdout
    # Chunk "c" is at rank 2, beyond k = 1; its text differs.
    written("ids.jsonl", [{"id": "b", "text": "x"}, {"id": "c", "text": "y"}])
    came = [{"page_content": "x", "id": "b"}, {"page_content": "y", "id": "c"}]
    wanted = [[{"page_content": "other", "id": "c"}]]
    Dataset(["When?"], wanted, predicted=[came], defaults={"matcher": "id"}).save("own.jsonl")
    assert counts("diagnose own.jsonl --index ids.jsonl -k 1")["ranked_too_low"] == 1


def test_pieces_count_with_union():
    """Both halves come back: found in pieces, which is advised as it is typed, or counted."""
    written("results.jsonl", rows_of([CHUNKS[:1], CHUNKS[1:3], CHUNKS[3:4], CHUNKS[:1]]))
    assert counts(f"{CALL} -k 2")["found_in_pieces"] == 1
    assert "count pieces with coverage(union=yes)" in " ".join(run(CALL).stdout.split())
    assert "recall now, pieces together" in run(f"{CALL} -k 2 --union").stdout


def test_lists_that_end_at_k():
    """Ranking cannot be told from search, and what to do is said."""
    written("results.jsonl", rows_of([CHUNKS[4:]] * 4))
    assert counts(f"{CALL} -k 1")["not_in_top_k"] == 2
    assert "retrieve longer lists" in " ".join(run(f"{CALL} -k 1").stdout.split())


def test_depth_and_items_without_words():
    """Rank 3 is beyond a depth of 2; what has no words is counted beside the shares."""
    dots = {"question": "Dots?", "actual": ["..."], "predicted": CHUNKS[:2]}
    written("results.jsonl", [*rows_of(PREDICTED), dots])
    assert counts(f"{CALL} -k 1 --depth 2")["not_retrieved"] == 1
    rows = printed(run(f"{CALL} -k 1 --depth 2").stdout)
    assert rows["no_words"] == ["(not", "counted)", "1", "–", "–"]


def test_standard_input():
    """For the queries, or for the chunks."""
    expected = counts(f"{CALL} -k 2")
    for file in ("results.jsonl", "chunks.jsonl"):
        piped = CALL.replace(file, "-")
        assert counts(f"{piped} -k 2", stdin=Path(file).read_text("utf-8")) == expected


def test_another_index_is_refused_unless_it_is_allowed():
    """Allowed, what is there is said beside the table, in any language, and on a page."""
    written("other.jsonl", ["Bicycles may be parked in the yard all year."])
    call = "diagnose results.jsonl --index other.jsonl"
    assert "--foreign-index allow" in refusal(f"{call} -k 2")
    report = "report results.jsonl --index other.jsonl -o page.html"
    assert "--foreign-index" in refusal(report)
    allowed = "--foreign-index allow"
    looked_up = {"n": 4, "there": 0, "alike": 0, "unknown": 0, "skipped": 0}
    assert content(f"{call} {allowed} -k 2")["looked_up"] == looked_up
    assert "0 of the 4" in run(f"{call} {allowed} -k 2").stderr
    assert "문서 4개 중 0개" in run(f"{call} {allowed} --lang ko").stderr
    assert run(f"{report} {allowed}").exit_code == 0
    assert "0 of the 4" in Path("page.html").read_text("utf-8")
    # A saved result is looked up as far as its texts are kept.
    run("evaluate results.jsonl -m coverage --json saved.json --texts")
    assert "--foreign-index allow" in refusal("diagnose saved.json --index other.jsonl")
    assert run(f"{SAVED} -k 2").stderr == ""


def test_a_run_of_ids_gets_its_texts_from_the_index():
    """The counts of every command are those of the same run with its texts, by coverage."""
    written("chunks.jsonl", [{"id": f"c{n}", "text": text} for n, text in enumerate(CHUNKS)])
    ids = {text: f"c{n}" for n, text in enumerate(CHUNKS)}
    rows = [row | {"predicted": [*map(ids.get, row["predicted"])]} for row in rows_of(PREDICTED)]
    expected = counts(f"{CALL} -k 2")
    lost = run("misses results.jsonl -m coverage -k 2").stdout
    written("results.jsonl", rows)
    assert counts(f"{CALL} -k 2") == expected
    assert counts(f"{CALL.replace('chunks.jsonl', '-')} -k 2", stdin=Path("chunks.jsonl").read_text(
        "utf-8")) == expected  # fmt: skip
    assert run("report results.jsonl --index chunks.jsonl -o page.html").exit_code == 0
    index = "--index chunks.jsonl -k 2"
    assert run(f"misses results.jsonl {index}").stdout == lost
    assert content(f"explain results.jsonl 0 {index}")["status"] == "perfect"
    # The first of four passages is found; by their texts alone none would be.
    assert run(f"gate results.jsonl {index} --fail-under recall@2=0.25").exit_code == 0


def test_a_warning_names_intervals_that_are_shown():
    """Beside a diagnosis: at the last cutoff, of macro averages, with the digits of all."""
    written("results.jsonl", rows_of([CHUNKS[:1]] * 4))
    flat = "mean_rank@3"  # the first query alone has a rank
    assert flat in run("evaluate results.jsonl -m coverage -k 1,3 --intervals").stderr
    assert flat not in run("evaluate results.jsonl --index chunks.jsonl -k 1,3").stderr
    with pytest.warns(Warning, match="rest on 4"):
        expected = result_of([1, 3]).confidence_intervals()
    written("results.jsonl", rows_of(PREDICTED))
    found = content("evaluate results.jsonl --index chunks.jsonl -k 1,3")["intervals"]
    assert [*found] == ["hit_rate@3", "macro_precision@3", "macro_recall@3", "mrr@3", "ndcg@3",
                        "macro_token_recall@3"]  # fmt: skip
    for name, bounds in found.items():
        assert bounds == expected.loc[name, ["low", "high"]].tolist()
