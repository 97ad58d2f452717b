"""Sweeps: every cell as if evaluated alone, asked once, kept, and chosen without flattery."""

import asyncio
import json
import math
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np
import pytest
from langchain_core.documents import Document
from matplotlib.figure import Figure
from places import ROOT, SHARED
from refusals import blamed
from sweep_samples import (
    ASKED,
    BOTH,
    CORPUS,
    HALF,
    MADE,
    QUESTIONS,
    right,
    sentences,
    slow,
    swept,
    until,
    whole,
)

from krag_eval import (
    CoverageMatcher,
    EvaluationResult,
    JudgeMatcher,
    KragEvalWarning,
    evaluate_retriever,
    load_dataset,
    sweep,
)
from krag_eval.plotting import pareto_points
from krag_eval.report import write_report
from krag_eval.sweeping.page import reused

# Toy lists are shorter than the cutoffs.
pytestmark = pytest.mark.filterwarnings("ignore:.*(Every list has at most|No list is longer than)")
# Toy lists are shorter than the cutoffs, and what makes the retrievers counts.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(Every list has at most|No list is longer than|it cannot be told whether)"
)


@pytest.fixture(autouse=True)
def _nothing_asked():
    ASKED.clear()
    MADE.clear()


def results(found):
    return [cell.result for cell in found.cells]


@pytest.mark.filterwarnings("ignore:.*No query's first document fits")
def test_a_cell_is_what_evaluating_its_retriever_gives():
    """Chunks cut by hand, and a retriever asked on its own."""
    found = swept(splitters=BOTH, retrievers=HALF, k=[1, 2], budget=[5, 10])
    assert [cell.name for cell in found.cells] == [
        "whole + all", "whole + half", "sentences + all", "sentences + half"
    ]  # fmt: skip
    for cell in found.cells:
        texts = [one for text in CORPUS for one in BOTH[cell.splitter](text)]
        retriever = HALF[cell.retriever]([Document(page_content=one) for one in texts])
        alone = evaluate_retriever(
            retriever, QUESTIONS, [1, 2], "coverage(union=yes)", budget=[5, 10], progress=False
        )
        assert (cell.result, cell.n_chunks) == (alone, len(texts))
    table = found.table
    assert table["macro_recall@1"].tolist() == [1, 0.5, 1, 0.5]
    # Of the whole, the passage's 5 words are 5 of 11; the first sentence is the passage.
    assert table["macro_token_precision@1"].tolist() == pytest.approx([5 / 11, 5 / 22, 1, 0.5])
    assert table["words@2"].tolist() == [11, 11, 11, 11]
    assert table["index_ceiling"].tolist() == [1, 1, 1, 1]
    # Five words hold a sentence and not the whole.
    assert table["macro_recall@5w"].tolist() == [0, 0, 1, 0.5]


def test_the_table_of_chunk_sizes(monkeypatch):
    """Every number of docs/chunk-sizes.md, which benchmarks/chunk_sizes.py computes otherwise."""
    monkeypatch.syspath_prepend(str(ROOT / "notebooks"))
    from small_rag import BM25, chunks

    lines = (ROOT / "docs" / "chunk-sizes.md").read_text("utf-8").splitlines()
    rows = [[one.strip(" *") for one in line.strip("|").split("|")] for line in lines
            if line.startswith("|")][:11]  # fmt: skip
    printed = {name: values for name, *values in rows}
    data = ROOT / "notebooks" / "data"
    sizes = [(50, 0), (100, 0), (200, 0), (200, 100), (400, 0), (800, 0)]
    with pytest.warns(KragEvalWarning, match=r"^800, 0 \+ bm25: "):
        found = sweep(
            [(data / "handbook.txt").read_text("utf-8")],
            load_dataset(data / "handbook_questions.jsonl", actual="excerpts"),
            {f"{n}, {shared}": partial(chunks, n_words=n, overlap=shared) for n, shared in sizes},
            {"bm25": lambda cut: BM25(documents=cut, k=len(cut))},
            budget=[500, 1000, 2000],
            n_resamples=100,
            progress=False,
        )
    columns = {
        "chunks": "chunks",
        "recall@5, one chunk": "recall_by_one@5",
        "recall@5, together": "macro_recall@5",
        "token recall@5": "macro_token_recall@5",
        "token precision@5": "macro_token_precision@5",
        "redundancy@5": "redundancy@5",
        "token recall in 500 words": "macro_token_recall@500w",
        "token recall in 1,000 words": "macro_token_recall@1000w",
        "token recall in 2,000 words": "macro_token_recall@2000w",
    }
    for name, column in columns.items():
        form = "{}" if name == "chunks" else "{:.2f}"
        assert [form.format(one) for one in found.table[column]] == printed[name], name


def test_the_same_chunks_are_run_once():
    """Two splitters that agree to the letter share a run; the family has it once."""
    again = {**BOTH, "unsplit": lambda text: (text,)}
    found = swept(splitters=again)
    assert set(ASKED.values()) == {2}
    assert found.table["same_as"].tolist() == [None, None, "whole + right"]
    assert found.cells[2].result is found.cells[0].result
    assert "2 were run" in found.to_markdown()
    assert found.comparison.names == ["whole + right", "sentences + right"]
    # A baseline that was not run itself is the one that was run for it.
    assert swept(splitters=again, baseline="unsplit + right").baseline == "whole + right"
    # A retriever may look at metadata, so that other metadata make other chunks.
    marked = lambda text: [Document(page_content=text, metadata={"page": 1})]  # noqa: E731
    found = swept(splitters={"whole": whole, "marked": marked})
    assert [cell.same_as for cell in found.cells] == [None, None]


def test_chunks_inherit_metadata():
    """Their own comes first; what a retriever writes into chunks stays with it."""
    seen = []

    def writing(chunks):
        for number, one in enumerate(chunks):
            one.metadata["number"] = number
            one.page_content = f"Rule {number}"
        return lambda question: []

    def looking(chunks):
        seen.extend(chunks)
        return lambda question: chunks[:1]

    cut = lambda text: [Document(page_content=text, metadata={"page": 2}, id="a")]  # noqa: E731
    corpus = [Document(page_content=CORPUS[0], metadata={"page": 1, "source": "x"}, id="b")]
    retrievers = {"writing": writing, "looking": looking}
    with pytest.warns(KragEvalWarning, match="Nothing was retrieved"):
        swept(corpus=corpus, splitters={"cut": cut}, retrievers=retrievers)
    assert seen == [Document(page_content=CORPUS[0], metadata={"page": 2, "source": "x"}, id="a")]


def test_async_retrievers_are_swept_wherever_they_are():
    """Also where a loop is running, as in a notebook; the answers are those of a plain function."""

    def soon(chunks):
        ask = right(chunks)

        async def found(question):
            await asyncio.sleep(0)
            return ask(question)

        return found

    async def notebook():
        return swept(retrievers={"right": soon})

    expected = results(swept())
    assert results(swept(retrievers={"right": soon})) == expected
    assert results(asyncio.run(notebook())) == expected


def test_everything_is_kept(tmp_path):
    """The same call makes no retriever and asks nothing; the numbers are the same."""
    first = swept(folder=tmp_path / "kept", splitters=BOTH)
    assert sum(ASKED.values()) == 80
    again = swept(folder=tmp_path / "kept", splitters=BOTH)
    assert (sum(ASKED.values()), sum(MADE.values())) == (80, 2)
    assert results(first) == results(again)
    assert first.table.equals(again.table)  # latencies too
    saved = sorted((tmp_path / "kept").glob("*/result-*.json"))
    assert len(saved) == 2
    assert EvaluationResult.from_json(saved[0]).explain("rule 3?")


@pytest.mark.parametrize(
    "changes",
    [
        {"k": [1, 2]},
        {"threshold": 0.5},
        {"matcher": CoverageMatcher(0.9, union=True)},
        {"matcher": "contains"},
        {"budget": 100, "length": len},
        {"questions": [{**row, "actual": [row["question"]]} for row in QUESTIONS]},
    ],
    ids=["cutoffs", "threshold", "matcher of one's own", "matcher", "length", "ground truth"],
)
def test_another_evaluation_asks_nothing(tmp_path, changes):
    """It is made of the answers, and is what it would be without a folder."""
    swept(folder=tmp_path)
    assert sum(ASKED.values()) == 40
    found = swept(folder=tmp_path, **changes)
    assert (sum(ASKED.values()), sum(MADE.values())) == (40, 1)
    assert results(found) == results(swept(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"retrievers": {"renamed": right}},
        {"questions": QUESTIONS[1:]},
        {"corpus": CORPUS[:39]},
        {"splitters": {"whole": sentences}},
    ],
    ids=["retriever", "questions", "corpus", "splitter"],
)
def test_other_chunks_questions_and_retrievers_are_asked(tmp_path, changes):
    """Whatever has the same name."""
    swept(folder=tmp_path)
    swept(folder=tmp_path, **changes)
    assert sum(ASKED.values()) == 40 + len(changes.get("questions", QUESTIONS))


def deeper(chunks, k=1):
    """Make a retriever that finds the rule asked for and those after it."""
    ask = right(chunks)
    return lambda question: ask(question)[:k]


@pytest.mark.parametrize(
    ("before", "after"), [(partial(deeper, k=1), partial(deeper, k=5)), (deeper, right)]
)
def test_what_a_retriever_is_made_with_is_part_of_it(tmp_path, before, after):
    """Whatever it is called: its answers are its own, and those of before are not lost.

    What tells functions apart, tests/core/matching/test_identity.py tests.
    """
    for maker, n_reused in ((before, 0), (after, 0), (before, 40), (after, 40)):
        found = swept(folder=tmp_path, retrievers={"same": maker})
        assert (found.n_reused, found.n_asked) == (n_reused, 40 - n_reused)
    assert sum(ASKED.values()) == 80


@pytest.mark.parametrize(
    ("n_reused", "told"),
    [(1, "1 answer of 2026-03-04 reused, 39 questions asked."),
     (39, "39 answers of 2026-03-04 reused, 1 question asked.")],
)  # fmt: skip
def test_one_is_singular(n_reused, told):
    """One answer, one question."""
    found = swept()
    day = datetime(2026, 3, 4, 12).astimezone()
    cell = replace(found.cells[0], n_reused=n_reused, answered=day)
    assert reused(replace(found, cells=(cell,))) == [told]


def test_what_was_reused_is_said(tmp_path):
    """How many answers of which day, and how many questions were asked; on the page, too."""
    settings = {"folder": tmp_path, "splitters": BOTH}
    first = swept(**settings)
    assert reused(first) == []
    assert (first.n_reused, first.n_asked, first.cells[0].answered) == (0, 80, None)
    day = datetime(2026, 3, 4, 12).astimezone()
    for answers in tmp_path.glob("*/answers.jsonl"):
        os.utime(answers, (day.timestamp(), day.timestamp()))
    told = "80 answers of 2026-03-04 reused, 0 questions asked."
    for _ in range(2):  # looking at answers does not make them younger
        again = swept(**settings, k=[1, 2])  # evaluated anew, from the answers
        assert reused(again) == [told]
        assert told in again.summary("en")
        assert told in repr(again)
        assert "2026-03-04" in again.summary("ko")
        assert [cell.answered for cell in again.cells] == [day, day]
    write_report(again, tmp_path / "page.html", language="en")
    assert told in (tmp_path / "page.html").read_text("utf-8")
    more = swept(**settings, retrievers={"right": right, "half": partial(until, 20)})
    assert (more.n_reused, more.n_asked) == (80, 80)


def test_what_cannot_be_told_is_said(tmp_path):
    """Of a function without a source, nobody knows whether it is the same."""
    scope = {"right": right, "__name__": "nowhere"}
    exec("def made(chunks):\n    return right(chunks)\n", scope)
    settings = {"folder": tmp_path, "retrievers": {"made": scope["made"]}}
    swept(**settings)
    with pytest.warns(KragEvalWarning, match=r"^whole \+ made: .*cannot be told.* 40 answers"):
        found = swept(**settings)
    assert (found.n_reused, found.n_asked) == (40, 0)


def test_what_failed_is_asked_again(tmp_path):
    """And nothing else."""
    failed = []

    def failing(chunks):
        ask = right(chunks)

        def found(question):
            documents = ask(question)
            if question == "rule 7?" and not failed:
                failed.append(question)
                raise ConnectionError(question)
            return documents

        return found

    with pytest.warns(KragEvalWarning, match=r"^whole \+ failing: 1 of 40"):
        first = swept(folder=tmp_path, retrievers={"failing": failing})
    assert results(first)[0].failures["position"].tolist() == [7]
    again = swept(folder=tmp_path, retrievers={"failing": failing})
    assert results(again)[0].failures.empty
    assert (again.n_reused, again.n_asked) == (39, 1)
    assert {row["question"]: 1 + (i == 7) for i, row in enumerate(QUESTIONS)} == ASKED


def test_a_result_that_is_damaged_is_made_again(tmp_path):
    """From the answers, with a warning; nothing is asked."""
    first = swept(folder=tmp_path)
    (kept,) = tmp_path.glob("*/result-*.json")
    kept.write_bytes(kept.read_bytes()[:-100])
    with pytest.warns(KragEvalWarning, match=r"^whole \+ right: .*made again"):
        again = swept(folder=tmp_path)
    assert results(again) == results(first) == [EvaluationResult.from_json(kept)]
    assert sum(ASKED.values()) == 40


def test_processes_change_nothing():
    """But the time: functions of any kind are sent to them."""
    settings = {"splitters": {"cut": lambda text: sentences(text)}, "retrievers": HALF}
    alone, together = swept(**settings), swept(**settings, n_jobs=2)
    assert results(alone) == results(together)
    times = ["latency_p50", "pareto"]
    assert alone.table.drop(columns=times).equals(together.table.drop(columns=times))
    assert alone.comparison.differences == together.comparison.differences
    assert alone.choice == together.choice


KILLED = """
import sys
sys.path[:0] = [{tests!r}, {package!r}]
from sweep_samples import BOTH, slow, swept

swept(folder={folder!r}, splitters=BOTH, retrievers={{"slow": slow}}, max_concurrency=1)
"""


@pytest.mark.parametrize("kills", [2, 50])
def test_a_killed_sweep_goes_on(tmp_path, kills, monkeypatch):
    """Every question is asked once, but for the one that a kill found on its way."""
    log, folder, moments, n_killed = tmp_path / "log", tmp_path / "kept", random.Random(18), 0
    monkeypatch.setenv("KRAG_EVAL_TEST_LOG", str(log))
    code = KILLED.format(tests=str(SHARED), package=str(ROOT), folder=str(folder))
    command = [sys.executable, "-W", "ignore", "-c", code]
    log.touch()
    while n_killed < kills:
        before = log.stat().st_size
        process = subprocess.Popen(command)
        while process.poll() is None and log.stat().st_size == before:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.6 / kills))
        process.kill()
        if process.wait() == 0:  # it was quicker
            break
        n_killed += 1
    assert n_killed >= 1
    settings = {"splitters": BOTH, "max_concurrency": 1}
    swept(folder=folder, retrievers={"slow": slow}, **settings)
    asked = Counter(log.read_text("utf-8").splitlines())
    assert len(asked) == 80
    assert sum(asked.values()) <= 80 + n_killed
    MADE.clear()
    resumed = swept(folder=folder, retrievers={"slow": slow}, **settings)
    assert not MADE
    assert (resumed.n_reused, resumed.n_asked) == (80, 0)
    assert results(resumed) == results(swept(retrievers={"slow": right}, **settings))


def test_the_choice_is_paid_for_on_the_other_half():
    """Worked out here from recall query by query, and the documented draw of the halves.

    It is of the questions in the order of their texts.
    """
    retrievers = {str(n): partial(until, n) for n in (10, 25, 30)}
    found = swept(retrievers=retrievers, metric="recall@1", seed=5)
    order = sorted(range(40), key=lambda i: QUESTIONS[i]["question"])
    drawn = {order[i] for i in np.random.default_rng(5).permutation(40)[:20]}
    by, others = (np.array([(i in drawn) is half for i in range(40)]) for half in (True, False))
    recall = {n: np.arange(40) < n for n in (10, 25, 30)}
    mean = lambda n, at: recall[n][at].mean()  # noqa: E731
    best = max((10, 25, 30), key=lambda n: mean(n, by))
    choice = found.choice
    assert (choice.name, choice.metric) == (f"whole + {best}", "macro_recall@1")
    assert (choice.value, choice.held_out) == (mean(best, by), mean(best, others))
    assert choice.overrated == pytest.approx(mean(best, by) - mean(best, others))
    shifts = [mean(n, others) - mean(n, by) for n in (10, 25, 30)]
    assert choice.shift == pytest.approx(sum(shifts) / 3)
    assert choice.difference.difference == pytest.approx(mean(best, others) - mean(10, others))
    assert f"{choice.held_out:.3f}" in found.summary()
    assert f"{choice.held_out:.3f}" in found.summary("ko")


def test_halves_keep_together_what_belongs_together():
    """Four parts of ten rules each: two are chosen by, two are held out."""
    with pytest.warns(KragEvalWarning, match="cluster"):
        choice = swept(retrievers=HALF, clusters="part").choice
    assert (choice.n_chosen_by, choice.n_held_out) == (20, 20)
    assert (choice.name, choice.difference) == ("whole + all", None)


def test_the_front():
    """By hand: a longer context that finds no more is dominated; a shorter one that misses not."""
    found = swept(splitters=BOTH, retrievers=HALF)
    # Quality 1, 0.5, 1, 0.5 for 11, 11, 5 and 5 words.
    assert found.front("context") == ["sentences + all"]
    assert set(found.front("context", "latency")) >= {"sentences + all"}
    assert found.table.loc["sentences + all", "pareto"]
    assert found.quality_metric == "macro_token_recall@1"
    for ask, argument in ((found.front, "costs"), (partial(pareto_points, found), "cost")):
        with blamed(argument):
            ask("price")


def test_lower_is_better():
    """Of a metric whose least value is best, the least is chosen and stands on the front."""
    twice = lambda chunks: lambda question: right(chunks)(question) * 2  # noqa: E731
    found = swept(retrievers={"twice": twice, "once": right}, k=2, metric="redundancy@2")
    assert (found.choice.name, found.choice.overrated) == ("whole + once", 0)
    assert found.front("context") == ["whole + once"]


@pytest.mark.parametrize(
    ("options", "metric"),
    [
        ({"budget": [20, 50]}, "macro_token_recall@50w"),
        ({"k": [1, 2]}, "macro_token_recall@2"),
        ({"matcher": "contains"}, "macro_recall@1"),
    ],
)
def test_what_is_compared(options, metric):
    """Token recall in the largest budget; recall where the matcher knows no words."""
    assert swept(**options).metric == metric


def test_one_cell_is_compared_with_nothing():
    """Its summary says so."""
    one = swept()
    assert (one.comparison, one.choice) == (None, None)
    assert one.summary("en").startswith("1 cell over 40 questions.")
    assert "whole + right" in one.summary()


def test_recall_by_one_chunk():
    """A passage cut in two is held together and not by one; the diagnosis says so."""
    rules = [f"Rule {i} one two three four five six seven eight nine" for i in range(40)]
    halves = lambda text: [" ".join(text.split()[:5]), " ".join(text.split()[5:])]  # noqa: E731
    questions = [{"question": str(i), "actual": [text]} for i, text in enumerate(rules)]
    both = lambda chunks: lambda q: chunks[2 * int(q) : 2 * int(q) + 2]  # noqa: E731
    (cell,) = swept(corpus=rules, questions=questions, splitters={"halves": halves},
                    retrievers={"both": both}, k=2).cells  # fmt: skip
    assert (cell.result["macro_recall@2"], cell.recall_by_one) == (1, 0)
    # What was found in pieces is not out of the index's reach (design of the diagnosis).
    assert cell.index_ceiling == 1


@pytest.mark.parametrize("why", ["too many pairs", "a judge"])
def test_the_ceiling_is_left_out_where_it_takes_too_long(monkeypatch, why):
    """With a warning that names the cell; the scores are there.

    A judge is asked about what was retrieved: 20 rules found and 20 times the first, a pair each.
    """
    asked = []

    def judge(question, actual, predicted):
        asked.append(question)
        return actual in predicted

    options = {"matcher": JudgeMatcher(judge, version="1")}
    if why == "too many pairs":
        short = partial(EvaluationResult.diagnose, most_pairs=1)
        monkeypatch.setattr(EvaluationResult, "diagnose", lambda *a, **k: short(*a, **k))
        options = {"matcher": "rougeL", "threshold": 0.6}
    with pytest.warns(KragEvalWarning, match=r"^whole \+ right: the index ceiling"):
        found = swept(retrievers={"right": partial(until, 20)}, **options)
    table = found.table
    assert math.isnan(table["index_ceiling"].iloc[0])
    assert table[["macro_recall@1", "recall_by_one@1"]].values.tolist() == [[0.5, 0.5]]
    assert len(asked) == (40 if why == "a judge" else 0)


def test_the_table_has_what_is_compared():
    """Micro averages where there are no macro ones, and the metric whatever it is."""
    found = swept(averaging_method="micro", metric="mrr@1", k=[1, 2], budget=20)
    columns = [*found.table.columns]
    assert {"micro_recall@1", "micro_token_recall@20w", "mrr@1", "mrr@2"} <= {*columns}
    assert not [name for name in columns if name.startswith("macro_")]
    assert found.table["mrr@1"].tolist() == [1]
    assert "rbp(p=0.5)@1" in swept(metrics=["rbp(p=0.5)"], metric="rbp(p=0.5)@1").table.columns


def broken(text):
    raise KeyError("x")


def broken_later(text):
    yield text
    raise KeyError("x")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"splitters": {"broken": broken}}, "broken"),
        ({"splitters": {"broken": broken_later}}, "broken"),
        ({"retrievers": {"broken": broken}}, "whole + broken"),
    ],
)
def test_errors_of_functions_name_the_cell_or_the_splitter(changes, named):
    """They are those of the user's code, with a note."""
    with pytest.raises(KeyError) as caught:
        swept(**changes)
    assert named in caught.value.__notes__[0]


def test_a_file_of_something_else_is_refused(tmp_path):
    """It is left as it is."""
    swept(folder=tmp_path)
    (answers,) = tmp_path.glob("*/answers.jsonl")
    (result,) = tmp_path.glob("*/result-*.json")
    result.unlink()
    mine = json.dumps({"format": "mine"}) + "\n"
    answers.write_text(mine, "utf-8")
    with blamed("folder"):
        swept(folder=tmp_path)
    assert answers.read_text("utf-8") == mine


@pytest.fixture(scope="module")
def pair():
    """Return a sweep of two splitters, one of them twice, with and without what is missed."""
    return swept(splitters={**BOTH, "unsplit": whole}, retrievers=HALF)


@pytest.mark.parametrize("cost", ["context", "latency"])
def test_the_picture_has_every_cell_that_was_run(pair, cost):
    """Four points, at their cost and quality; the front is named, in the order of the cost."""
    ax = Figure().subplots()
    pareto_points(pair, cost, ax, language="en")
    factor = 1 if cost == "context" else 1000
    drawn = sorted((x, y) for line in ax.lines if line.get_linestyle() == "None"
                   for x, y in zip(*line.get_data(), strict=True))  # fmt: skip
    cells = [cell for cell in pair.cells if cell.same_as is None]
    expected = sorted((getattr(cell, cost) * factor, pair.qualities[cell.name]) for cell in cells)
    assert np.array(drawn) == pytest.approx(np.array(expected))
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(names) == len(pair.front(cost))
    if cost == "context":
        assert names == ["1: sentences + all (1.00)"]
        assert ax.get_xlabel() == "Words of context per query"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_report(pair, tmp_path, language):
    """Every cell with its numbers, both pictures, the choice, and the comparison below."""
    path = tmp_path / "sweep.html"
    write_report(pair, path, language=language)
    page = path.read_text("utf-8")
    row = re.compile(r'<tr(?: class="shown")?><th scope="row" dir="auto">(.*?)</th>(.*?)</tr>')
    rows = row.findall(page)[:6]
    assert [name for name, _ in rows] == [cell.name for cell in pair.cells]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", rows[3][1])[:2] == ["80", "0.5000"]
    assert page.count('id="paretocontext-') > 0 < page.count('id="paretolatency-')
    assert f"{pair.choice.held_out:.3f}" in page
    assert "unsplit + all" in page
    first = path.read_bytes()
    write_report(pair, path, language=language)
    assert path.read_bytes() == first
