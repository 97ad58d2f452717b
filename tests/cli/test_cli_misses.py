"""``krag-eval misses``, ``explain`` and ``report``: what was lost, and what became of a query."""

import json
import re
from pathlib import Path

import pytest
from cli_runs import content, refusal, run, written
from small_library import PAGE, PREDICTED, result_of, rows_of

K = [1, 2, 3]
CHUNK = {"page_content": "We close at ten.", "id": "c7", "metadata": {"source": "a.pdf", "page": 3}}


@pytest.fixture(autouse=True)
def _files(sample):
    """Write the queries, their result, and a file whose documents have ids and metadata."""
    written("results.jsonl", rows_of(PREDICTED))
    result_of(K).to_json("saved.json", texts=True)
    rows = [("When?", "We open at nine.", CHUNK), ("Where?", "Here.", "Here.")]
    keys = ("question", "actual", "predicted")
    written("described.jsonl", [dict(zip(keys, (q, [a], [p]), strict=True)) for q, a, p in rows])


def test_the_guide_shows_what_is_printed():
    """The list whole, of the explanation the end."""
    found = re.search(
        r"\$ krag-eval (misses .*)\n((?:.*\n)+?)\$ krag-eval (explain .*)\n…\n((?:.*\n)+?)```",
        PAGE.read_text("utf-8"),
    )
    assert run(found[1]).stdout == found[2]
    assert run(found[3]).stdout.endswith(found[4])


def test_a_query_is_named_by_question_or_position():
    """Of a file and of what was saved, the explanation is the one in Python."""
    expected = result_of(K).explain("I lost my card.", k=2).to_text() + "\n"
    for source in ("saved.json", "results.jsonl -m coverage"):
        for query in ("2", "'I lost my card.'", "--query 2"):
            explained = run(f"explain {source} {query} -k 2").stdout
            assert explained.partition("hit_rate")[0] == expected.partition("hit_rate")[0]
            assert explained.partition("Predicted")[2] == expected.partition("Predicted")[2]


def test_a_label_goes_before_a_position():
    """The query that is called 0 is the last one; without labels, numbers are positions."""
    result_of(K, ["3", "2", "1", "0"]).to_json("saved.json")
    assert "Query 3: 0" in run("explain saved.json 0").stdout
    result_of(K, None).to_json("saved.json")
    assert run("explain saved.json 1").stdout.startswith("Query 1")


def test_misses_of_a_saved_result():
    """At its deepest cutoff or another one; texts are not needed."""
    result_of(K).to_json("saved.json")
    assert run("misses saved.json").stdout.startswith("2 of 4 queries lost something @3")
    output = run("misses saved.json -k 1 -n 2").stdout
    assert output.startswith("3 of 4 queries lost something @1")
    assert output.endswith("and 1 more\n")
    assert re.findall(r"^\d  ", output, re.MULTILINE) == ["1  ", "2  "]


@pytest.mark.parametrize(("texts", "shown"), [(True, "A lost card"), (False, "–")])
def test_misses_tell_what_is_missing_and_where_it_stands(texts, shown):
    """Rank 3 has the second one, beyond the cutoff; without texts there is none to show."""
    result_of(K).to_json("saved.json", texts=texts)
    lines = run("misses saved.json -k 2").stdout.splitlines()
    (line,) = (line for line in lines if "I lost my card." in line)
    assert re.search(rf"card\.  +{shown}.*missed +0 of 1 +1\.0000 +3$", line)
    assert max(map(len, lines)) <= 100


def test_a_query_with_a_shared_question_has_its_position():
    """In the list, and where explaining the question is refused."""
    result_of(K, ["Same?", "Same?", "Other?", "Same?"]).to_json("saved.json")
    lines = run("misses saved.json -k 2").stdout.splitlines()
    assert [line.split()[0] for line in lines if "0 of 1" in line] == ["1", "2", "3"]
    assert "0, 1, 3" in refusal("explain saved.json Same?")
    assert "Query 3: Same?" in run("explain saved.json 3").stdout


def test_a_query_is_listed_by_what_explains_it():
    """Ids, where there are some: "1" is the first query, and at position 1 is another."""
    rows = [row | {"id": str(n)} for n, row in enumerate(rows_of(PREDICTED), start=1)]
    written("ids.jsonl", rows)
    lines = run("misses ids.jsonl -m coverage -k 2").stdout.splitlines()
    shown = [line.split()[0] for line in lines if "0 of 1" in line]
    assert shown == ["2", "3", "4"]
    listed = content("misses ids.jsonl -m coverage -k 2")["misses"]
    assert [(one["id"], one["position"]) for one in listed] == [("2", 1), ("3", 2), ("4", 3)]
    assert run("explain ids.jsonl 3 -m coverage").stdout.startswith("Query 3: I lost my card.")
    assert content("explain ids.jsonl 3 -m coverage")["id"] == "3"


def test_nothing_lost():
    """One line, and no table."""
    written("r.jsonl", [{"question": "=a?", "actual": ["a"], "predicted": ["a"]}])
    assert run("misses r.jsonl -k 1").stdout == "0 of 1 queries lost something @1\n"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("4", "from 0 to 3"),
        ("4", "QUERY"),
        ("9" * 40, "QUERY"),
        ("'I lost my cart.'", "I lost my card."),
        ("lost", "krag-eval misses"),  # a part of a question is none
        ("zebra", "krag-eval misses"),
        ("", "QUERY must be one question, or its position, or --contradicted for all, got none"),
        ("2 --query 2", "or --contradicted for all, got two"),
        ("2 --contradicted", "or --contradicted for all, got both"),
    ],
)
def test_queries_that_there_are_not(query, said):
    """Neither by label nor by position; the refusal is for one who typed QUERY."""
    assert said in refusal(f"explain saved.json {query}")


def test_a_run_in_chunks():
    """Its rows tell misses, but no pairs are kept to explain; averages alone tell neither."""
    chunks = "evaluate results.jsonl -k 2 -m coverage --chunk-size 2"
    run(f"{chunks} --json kept.json --per-query rows.csv")
    run(f"{chunks} --json bare.json")
    listed = [run("misses kept.json"), run("misses results.jsonl -k 2 -m coverage")]
    apart, whole = ([line.split() for line in one.stdout.splitlines()] for one in listed)
    assert [line[0] for line in apart[4:] if line] == [line[0] for line in whole[4:] if line]
    assert ("missed" in apart[2], "missed" in whole[2]) == (False, True)
    assert "evidence" in refusal("explain kept.json 2")
    assert "rows" in refusal("misses bare.json")


def test_ids_and_metadata():
    """From the file, and from what was saved with its texts."""
    run("evaluate described.jsonl -k 1 --json described.json --texts")
    for file in ("described.jsonl", "described.json"):
        assert "[id c7, source a.pdf]" in run(f"explain {file} When?").stdout
        named = run(f"explain {file} When? --metadata page --metadata none").stdout
        assert "[id c7, page 3]" in named


def test_texts_are_saved_where_they_are_asked_for():
    """Without the option there are none."""
    run("evaluate described.jsonl -k 1 --json saved.json")
    assert "We close" not in Path("saved.json").read_text("utf-8")
    streamed = json.loads(run("evaluate described.jsonl -k 1 --json - --texts").stdout)
    assert streamed["texts"]["described"]["distinct"][1]["id"] == "c7"


def test_a_full_explanation():
    """What is cut says how to see all of it."""
    row = {"question": "q", "actual": ["a"], "predicted": ["a", "word " * 80 + "end"]}
    written("r.jsonl", [row])
    short, full = (run(f"explain r.jsonl q {more}").stdout for more in ("", "--full"))
    assert ("--full" in short, " end" in short) == (True, False)
    assert ("--full" in full, " end" in full) == (False, True)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_report_of_a_file_or_of_a_saved_result(language):
    """The same page, with ids, in either language."""
    run("evaluate described.jsonl -k 1 --json described.json --texts")
    pages = []
    for file in ("described.jsonl", "described.json"):
        options = f"--language {language} --title Mine --metadata page -k 1"
        assert run(f"report {file} -o page.html {options}").exit_code == 0
        page = Path("page.html").read_text("utf-8")
        pages.append(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
    assert pages[0] == pages[1]
    for said in (f'lang="{language}"', "<h1>Mine</h1>", "id <b>c7</b> · page <b>3</b>"):
        assert said in pages[0]
