"""Budgets, pieces that count together, and metrics that count words, from the shell.

Both queries are small enough to be worked out by hand. The first passage has 12 words; its three
documents have 6 each, and the second and third hold one half of it each. The second passage has 6
words; its documents have 6, the passage itself, and 2. In characters they have 30, 28 and 32, and
29 and 14.
"""

import re
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import invoked, printed, refusal, run, table
from places import ROOT

from krag_eval import CoverageMatcher, EvaluationResult
from krag_eval.datasets import read_jsonl

OPENING = '"opening hours are nine to five", '
QUERIES = f"""\
{{"question": "Refunds?", \
"actual": ["refunds take up to five days after we receive the parcel here"], \
"predicted": [{OPENING}"refunds take up to five days", "after we receive the parcel here"]}}
{{"question": "Fees?", \
"actual": ["there are no fees for returns"], \
"predicted": ["there are no fees for returns", "something else"]}}
"""
# Commands of the guides that cut off by what fits.
SHOWN = {
    line
    for page in ("docs/comparing.md", "docs/gating.md")
    for line in re.findall(r"^(?:\$ )?krag-eval (.+)$", (ROOT / page).read_text("utf-8"), re.M)
    if " --budget " in line
}
CALL = "evaluate passages.jsonl"


@pytest.fixture(autouse=True)
def _passages(sample):
    Path("passages.jsonl").write_text(QUERIES, "utf-8")


def test_alone_they_are_the_only_cutoffs():
    """12 words: two documents of each query. 18 words: all of them."""
    done = run(f"{CALL} --union --budget 12 --budget 18")
    rows = printed(done.stdout)
    assert rows["metric"] == ["@12w", "@18w"]
    # The first passage takes its second and third document.
    assert rows["macro_recall"] == ["0.5000", "1.0000"]
    # With them, 2 of 3 and 1 of 2 documents are relevant; before, 0 of 2 and 1 of 2.
    assert rows["micro_precision"] == ["0.2500", "0.6000"]
    # 1 / log2(3 + 1) and 1.
    assert rows["ndcg"] == ["0.5000", "0.7500"]
    assert done.stderr == ""


def test_words_are_counted_where_coverage_is_the_matcher():
    """Half of the first passage and all of the second, in 12 and 8 words."""
    rows = table(f"{CALL} -m coverage --budget 12 --metric all")
    assert rows["micro_token_recall"] == [f"{12 / 18:.4f}"]
    assert rows["macro_token_recall"] == [f"{(6 / 12 + 6 / 6) / 2:.4f}"]
    assert rows["macro_token_precision"] == [f"{(6 / 12 + 6 / 8) / 2:.4f}"]
    assert "token_iou" not in table(f"{CALL} --budget 12 --metric all")


def test_beside_other_cutoffs():
    """Those that were typed stand first, and a budget may be typed as one of them."""
    output = run(f"{CALL} --budget 12 -k 3 -k all").stdout
    assert printed(output)["metric"] == ["@3", "@all", "@12w"]
    assert run(f"{CALL} -k 3,all,12w").stdout == output


def test_in_characters():
    """Two documents of the first query have 58 together."""
    run(f"{CALL} --length characters --budget 57 --budget 58 --csv rows.csv")
    rows = pd.read_csv("rows.csv")
    assert rows["k"].tolist() == ["57c", "57c", "58c", "58c"]
    assert rows["retrieved"].tolist() == [1, 2, 2, 2]


def test_in_chunks():
    """The output is the same, and so are the numbers in the rows and the saved result."""
    call = f"{CALL} --union --budget 12 -k 2,58c"
    done = run(f"{call} --chunk-size 1 --json result.json --per-query rows.csv")
    assert done.stdout.startswith(run(call).stdout)
    evaluator = read_jsonl("passages.jsonl").evaluator(matcher=CoverageMatcher(union=True))
    expected = evaluator.evaluate([2, "58c"], budget=12).to_dict()
    assert EvaluationResult.from_json("result.json").to_dict() == expected
    # U of the first query, and of the second, over 12 and 6.
    assert pd.read_csv("rows.csv")["token_recall@12w"].tolist() == [0.5, 1.0]


def test_pictures_and_pages():
    """They are of the last cutoff, which is a budget."""
    run(f"{CALL} --union -k 2 --budget 12 --plot out.svg --report out.html")
    assert "12 words" in Path("out.svg").read_text("utf-8")
    assert "12w" in Path("out.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("typed", "min_run"),
    [
        ("", 5),
        ("-m coverage", 5),
        ("-m 'coverage(min_run=3)'", 3),
        ("-m 'coverage(union=true)'", 5),
    ],
)
def test_union_is_a_setting_of_coverage(typed, min_run):
    """It chooses that matcher, where none is named."""
    output = run(f"{CALL} --union {typed} -k 2").stdout
    settings = f"min_run={min_run},tokenizer=auto(words,letters),guard=aligned"
    assert f"matcher=coverage({settings},union=yes)|" in "".join(output.split())


@pytest.mark.parametrize(
    ("floor", "code"),
    [
        ("ndcg@18w=0.75", 0),
        ("ndcg@18w=0.76", 1),
        ("macro_token_recall@12w=0.75", 0),
        ("macro_token_recall@2=0.76", 1),
        ("redundancy@12w=0", 0),  # a ceiling: nothing came back twice
    ],
)
def test_floors(floor, code):
    """Of an evaluation, and of what it saved."""
    evaluated = f"{CALL} --union -k 2 --budget 12 --budget 18 --json result.json"
    assert run(f"{evaluated} --fail-under {floor}").exit_code == code
    assert run(f"gate result.json --fail-under {floor}").exit_code == code


def test_other_metrics_beside_those_of_words():
    """What is computed by default is computed with a metric that is not."""
    rows = table(f"{CALL} --union --budget 18 --fail-under rbp@18w=0.1")
    assert {"rbp(p=0.8)", "macro_token_recall"} <= rows.keys()


def test_a_comparison():
    """Of a file and a saved result: 6 more of 12 words before the budget ends, in one query."""
    Path("better.jsonl").write_text(QUERIES.replace(OPENING, ""), "utf-8")
    options = "-m coverage --budget 12"
    for name in ("saved", "copied"):
        run(f"evaluate better.jsonl {options} --json {name}.json")
    for other in ("better.jsonl", "saved.json"):
        call = f"compare passages.jsonl {other} {options} --metric macro_token_recall@12w"
        assert "macro_token_recall@12w 0.7500 1.0000" in " ".join(run(call).stdout.split())
    # What is compared otherwise is nDCG at the deepest cutoff that all have.
    for call in (f"passages.jsonl better.jsonl {options}", "saved.json copied.json"):
        assert "ndcg@12w" in run(f"compare {call}").stdout


@pytest.mark.parametrize(
    ("call", "times"),
    [
        ("evaluate -k 5", 1),
        ("evaluate -k 5 --chunk-size 1", 1),
        ("evaluate -k 3", 0),
        ("evaluate --budget 12", 0),
        ("compare -k 5 other.jsonl", 2),  # one of each file
    ],
)
def test_short_lists_are_said_once(call, times):
    """Of each run, on standard error."""
    Path("other.jsonl").write_text(QUERIES, "utf-8")
    done = invoked(f"{call} passages.jsonl")
    assert done.stderr.count("Every list has at most 3 documents") == times
    assert "Every list" not in done.stdout
    assert ("retrieved<=3" in done.stdout) == bool(times)


@pytest.mark.parametrize("options", ["", "--chunk-size 1"])
def test_of_default_cutoffs_the_signature_alone_says_it(options):
    """Nobody asked for any of them in particular."""
    done = invoked(f"{CALL} {options}")
    assert ("Every list" in done.stderr, "retrieved<=3" in done.stdout) == (False, True)


def test_short_lists_of_each_run_by_name():
    """Runs of different depth have one signature between them."""
    Path("qrels").write_text("1 0 a 1\n")
    Path("shallow").write_text("1 Q0 a 1 1.0 tag\n")
    Path("deep").write_text("1 Q0 a 1 1.0 tag\n1 Q0 b 2 0.5 tag\n")
    done = invoked("trec qrels shallow deep -k 5")
    assert [line.partition(" documen")[0] for line in done.stderr.splitlines()] == [
        "warning: shallow: Every list has at most 1",
        "warning: deep: Every list has at most 2",
    ]
    assert (done.stdout.count("signature:"), "retrieved<=" in done.stdout) == (1, False)
    assert "retrieved<=2" in invoked("trec qrels deep -k 5").stdout


def test_budgets_that_nothing_fits_into():
    """The shortest first document has 6 words."""
    assert "fits into 5 words (the shortest has 6)" in run(f"{CALL} --budget 5").stderr


def test_advice_about_budgets_can_be_typed():
    """A length is of budgets alone; words are known by coverage alone."""
    assert refusal(f"{CALL} --length characters").endswith("; pass --budget 1000.")
    refused = refusal(f"{CALL} -m text --fail-under token_recall@5=0.5")
    assert refused.endswith("choose --matcher coverage or --matcher spans.")
    refused = refusal(f"{CALL} --union -m rougeL")
    assert refused.endswith("rougeL; leave it out, or pass --matcher coverage or --matcher spans.")


@pytest.mark.parametrize("line", sorted(SHOWN))
def test_commands_of_the_guides(line):
    """They run as they stand, on files of those names."""
    for name in filter(re.compile(r"[a-z]+\.jsonl").fullmatch, line.split()):
        Path(name).write_text(QUERIES, "utf-8")
    assert run(line).exit_code in (0, 1)


def test_the_guides_show_some():
    """There is one of each command that evaluates."""
    assert {line.split()[0] for line in SHOWN} == {"evaluate", "compare"}
