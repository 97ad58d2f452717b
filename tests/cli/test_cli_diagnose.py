"""``krag-eval diagnose``: where what is missing in a file was lost."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from cli_runs import printed, refusal, run

from krag_eval import CoverageMatcher, Diagnosis, OfflineRetrievalEvaluator
from krag_eval.datasets import Dataset

PAGE = Path(__file__).parents[2] / "docs" / "diagnosis.md"
CHUNKS = [
    "Opening hours. The house is open from nine to six on weekdays.",
    "Books may be kept for four weeks and renewed",
    "twice unless somebody else is waiting for them.",
    "A lost card costs five euros and is replaced at the desk on the same day.",
    "Tea and coffee are served in the garden from May to September.",
]
# One whole in chunk 0, one over the chunks 1 and 2, one in chunk 3, one in none.
ACTUAL = [
    ["The house is open from nine to six on weekdays."],
    ["Books may be kept for four weeks and renewed twice unless somebody else is waiting."],
    ["A lost card costs five euros and is replaced at the desk."],
    ["Parking is free for members on Sundays and holidays."],
]
QUESTIONS = [
    "When are you open?",
    "How long may I keep a book?",
    "I lost my card.",
    "Can I park here?",
]
# The third finds its chunk at rank 3, beyond k = 2.
PREDICTED = [[CHUNKS[i] for i in ranks] for ranks in ([0, 4, 3], [1, 0, 4], [4, 1, 3], [0, 4, 1])]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return written(tmp_path / "results.jsonl", rows_of(PREDICTED))


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    return written(tmp_path / "chunks.jsonl", CHUNKS)


def rows_of(predicted: list[list[str]]) -> list[object]:
    return [
        {"question": question, "actual": actual, "predicted": documents}
        for question, actual, documents in zip(QUESTIONS, ACTUAL, predicted, strict=True)
    ]


def written(path: Path, lines: list[object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return path


def counts_in(output: str) -> dict[str, int]:
    """Return the column of items; a label is any number of words."""
    return {
        name: int(cells[-3])
        for name, cells in printed(output).items()
        if len(cells) > 3 and cells[-1].count(".") == 1 and cells[-3].isdigit()
    }


def test_the_guide_shows_what_is_printed(
    rows: Path, chunks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence, the counts and the waterfall, of the example on the page."""
    monkeypatch.chdir(rows.parent)
    found = re.search(r"\$ krag-eval (diagnose .*)\n((?:.*\n)+?)…\n```", PAGE.read_text("utf-8"))
    assert found is not None
    result = run(*found[1].split())
    assert result.exit_code == 0
    assert result.stdout.partition("signature: ")[0] == found[2]


def test_outputs_are_those_of_python(rows: Path, chunks: Path, tmp_path: Path) -> None:
    """The diagnosis, and its table with empty cells for what is not known."""
    saved, table = tmp_path / "d.json", tmp_path / "d.csv"
    run("diagnose", rows, "--index", chunks, "-k", 2, "--json", saved, "--csv", table)
    result = OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=CoverageMatcher(), queries=QUESTIONS
    ).evaluate(k=2)
    assert Diagnosis.from_json(saved) == result.diagnose(CHUNKS, k=2)
    with table.open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [(row["class"], row["rank"]) for row in read] == [
        ("found", "1"),
        ("cut_apart", ""),
        ("ranked_too_low", "3"),
        ("not_in_index", ""),
    ]
    streamed = run("diagnose", rows, "--index", chunks, "-k", 2, "--json", "-")
    assert streamed.stdout == saved.read_text("utf-8")


def test_a_report(rows: Path, chunks: Path, tmp_path: Path) -> None:
    """The page of the result with the section: each of four causes has a quarter of the items."""
    page = tmp_path / "out.html"
    typed = ["diagnose", rows, "--index", chunks, "-k", 2, "--report", page]
    done = run(*typed)
    assert done.exit_code == 0
    assert f"wrote {page} (an HTML report)" in done.stdout
    told = page.read_text("utf-8")
    assert "25 % of passages are cut apart by the splitter" in told
    assert "recall would be 0.500" in told
    assert "Diagnosed at" not in told
    run(*typed, "--report-language", "ko")
    assert "구절의 25%가 청크 경계에서 잘렸습니다" in page.read_text("utf-8")
    assert "--report-language" in refusal(*typed[:-2], "--report-language", "ko")


def test_a_report_of_a_saved_result_at_another_cutoff(chunks: Path, tmp_path: Path) -> None:
    """Its own numbers are at the cutoff there is, and the page says which is which."""
    evaluator = OfflineRetrievalEvaluator(ACTUAL, PREDICTED, matcher="coverage", queries=QUESTIONS)
    evaluator.evaluate(k=3).to_json(tmp_path / "r.json", texts=True)
    page = tmp_path / "out.html"
    run("diagnose", tmp_path / "r.json", "--index", chunks, "-k", 2, "--report", page)
    assert "Diagnosed at k = 2; the figures above are at k = 3." in page.read_text("utf-8")


def test_a_saved_result(chunks: Path, tmp_path: Path) -> None:
    """By its own matcher, at its deepest cutoff or any other; not without its texts."""
    result = OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=CoverageMatcher(), queries=QUESTIONS
    ).evaluate(k=[1, 2])
    saved, bare = tmp_path / "saved.json", tmp_path / "bare.json"
    result.to_json(saved, texts=True)
    result.to_json(bare)
    deepest = run("diagnose", saved, "--index", chunks)
    assert "micro recall@2" in deepest.stdout
    assert counts_in(deepest.stdout)["ranked_too_low"] == 1
    at_3 = counts_in(run("diagnose", saved, "--index", chunks, "-k", 3).stdout)
    assert at_3["found"] == 2
    of_all = counts_in(run("diagnose", saved, "--index", chunks, "-k", "all").stdout)
    assert of_all == at_3
    assert "texts" in refusal("diagnose", bare, "--index", chunks)
    assert "--union" in refusal("diagnose", saved, "--index", chunks, "--union")
    named = run("diagnose", saved, "--index", chunks, "--matcher", "coverage")
    assert named.stdout == deepest.stdout
    assert "--matcher" in refusal("diagnose", saved, "--index", chunks, "--matcher", "text")


def test_another_matcher_is_named_by_option_or_file(chunks: Path, tmp_path: Path) -> None:
    """Coverage is for texts of which nothing else is known."""
    rows = written(tmp_path / "r.jsonl", rows_of(PREDICTED))
    texts = run("diagnose", rows, "--index", chunks, "-k", 2, "--matcher", "contains")
    assert "cut_apart" not in texts.stdout
    # "... at the desk." is not in "... at the desk on the same day."
    assert counts_in(texts.stdout)["not_in_index"] == 3
    # Chunk "c" is at rank 2, beyond k = 1; its text differs.
    ids = written(tmp_path / "ids.jsonl", [{"id": "b", "text": "x"}, {"id": "c", "text": "y"}])
    dataset = Dataset(
        ["When?"],
        [[{"page_content": "other", "id": "c"}]],
        predicted=[[{"page_content": "x", "id": "b"}, {"page_content": "y", "id": "c"}]],
        defaults={"matcher": "id"},
    )
    dataset.save(tmp_path / "own.jsonl")
    by_file = run("diagnose", tmp_path / "own.jsonl", "--index", ids, "-k", 1)
    assert counts_in(by_file.stdout)["ranked_too_low"] == 1
    assert "matcher=id" in by_file.stdout


def test_pieces_count_with_union(tmp_path: Path, chunks: Path) -> None:
    """Both halves come back: found in pieces, which is advised as it is typed, or counted."""
    predicted = [[CHUNKS[0]], [CHUNKS[1], CHUNKS[2]], [CHUNKS[3]], [CHUNKS[0]]]
    rows = written(tmp_path / "r.jsonl", rows_of(predicted))
    plain = run("diagnose", rows, "--index", chunks, "-k", 2)
    assert counts_in(plain.stdout)["found_in_pieces"] == 1
    assert "count pieces with coverage(union=yes)" in " ".join(plain.stdout.split())
    together = run("diagnose", rows, "--index", chunks, "-k", 2, "--union")
    assert "recall now, pieces together" in together.stdout


def test_lists_that_end_at_k(tmp_path: Path, chunks: Path) -> None:
    """Ranking cannot be told from search, and what to do is said in options."""
    predicted = [[CHUNKS[4]], [CHUNKS[4]], [CHUNKS[4]], [CHUNKS[4]]]
    rows = written(tmp_path / "r.jsonl", rows_of(predicted))
    result = run("diagnose", rows, "--index", chunks, "-k", 1)
    assert counts_in(result.stdout)["not_in_top_k"] == 2
    assert "retrieve longer lists" in " ".join(result.stdout.split())


def test_depth_and_items_without_words(tmp_path: Path, chunks: Path) -> None:
    """Rank 3 is beyond a depth of 2; what has no words is counted beside the shares."""
    rows = rows_of(PREDICTED)
    rows.append({"question": "Dots?", "actual": ["..."], "predicted": [CHUNKS[0], CHUNKS[1]]})
    file = written(tmp_path / "r.jsonl", rows)
    result = run("diagnose", file, "--index", chunks, "-k", 1, "--depth", 2)
    assert counts_in(result.stdout)["not_retrieved"] == 1
    assert printed(result.stdout)["no_words"] == ["(not", "counted)", "1", "–", "–"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--depth", "0"], "--depth"),
        (["--depth", "2"], "--depth"),
        (["-k", "0"], "-k"),
        (["-k", "1,2"], "-k"),
        (["--matcher", "nothing"], "--matcher"),
        (["--matcher", "rouge1", "--union"], "--union"),
    ],
)
def test_bad_options_are_refused_before_files_are_read(options: list[str], named: str) -> None:
    """The files are missing, and it is the option that is named."""
    typed = options if "-k" in options else ["-k", "2", *options]
    assert named in refusal("diagnose", "missing.jsonl", "--index", "missing.jsonl", *typed)


def test_files_that_cannot_be_used(rows: Path, chunks: Path) -> None:
    """Standard input is read once, nothing that is read is overwritten, and chunks are needed."""
    assert "--index" in refusal("diagnose", "-", "--index", "-")
    assert "--index" in refusal("diagnose", rows)
    for read in (rows, chunks):
        assert "--csv" in refusal("diagnose", rows, "--index", chunks, "--csv", read)
    assert "missing.jsonl" in refusal("diagnose", rows, "--index", "missing.jsonl")


def test_standard_input(rows: Path, chunks: Path) -> None:
    """For the queries, or for the chunks."""
    expected = counts_in(run("diagnose", rows, "--index", chunks, "-k", 2).stdout)
    piped = run("diagnose", "-", "--index", chunks, "-k", 2, stdin=rows.read_text("utf-8"))
    others = run("diagnose", rows, "--index", "-", "-k", 2, stdin=chunks.read_text("utf-8"))
    assert counts_in(piped.stdout) == counts_in(others.stdout) == expected


def test_another_index_is_refused_unless_it_is_allowed(rows: Path, tmp_path: Path) -> None:
    """The refusal names the option; allowed, what is there is said beside the table."""
    other = written(tmp_path / "other.jsonl", ["Bicycles may be parked in the yard all year."])
    assert "--foreign-index allow" in refusal("diagnose", rows, "--index", other, "-k", "2")
    page = tmp_path / "page.html"
    assert "--foreign-index" in refusal("report", rows, "--index", other, "-o", page)
    allowed = ("--index", other, "--foreign-index", "allow")
    result = run("diagnose", rows, *allowed, "-k", "2", "--format", "json")
    assert result.exit_code == 0
    looked_up = {"n": 4, "there": 0, "alike": 0, "unknown": 0, "skipped": 0}
    assert json.loads(result.stdout)["looked_up"] == looked_up
    assert "0 of the 4" in result.stderr
    assert "문서 4개 중 0개" in run("diagnose", rows, *allowed, "--lang", "ko").stderr
    assert run("report", rows, *allowed, "-o", page).exit_code == 0
    assert "0 of the 4" in page.read_text("utf-8")


def test_a_saved_result_is_looked_up_as_far_as_its_texts_are_kept(
    rows: Path, chunks: Path, tmp_path: Path
) -> None:
    """With them as a file of queries is; nothing is said where all are there."""
    saved = tmp_path / "saved.json"
    run("evaluate", rows, "--matcher", "coverage", "--json", saved, "--texts")
    other = written(tmp_path / "other.jsonl", ["Bicycles may be parked in the yard all year."])
    assert "--foreign-index allow" in refusal("diagnose", saved, "--index", other)
    assert run("diagnose", saved, "--index", chunks, "-k", "2").stderr == ""
