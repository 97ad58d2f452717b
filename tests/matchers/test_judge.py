"""A judge: asked once for each pair, many at a time, and what it said is kept."""

import asyncio
import hashlib
import json
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from matched import found
from refusals import blamed

from krag_eval import (
    AnyOf,
    JudgeMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.errors import InvalidInput

QUESTIONS = ["When?", "How much?"]
ACTUAL = [["at nine", "daily"], ["5 euros"]]
PREDICTED = [["open daily at nine", "closed"], ["free", "it is 5 euros"]]
#: Rows: ground truth; columns: what was retrieved. Of ``ACTUAL`` and ``PREDICTED``, by eye.
FOUND = [(0, 1), (1, 1), (2, 2)]


def holds(question, actual, predicted):
    return actual in predicted


async def holds_async(question, actual, predicted):
    await asyncio.sleep(0)
    return actual in predicted


class HoldsAsync:
    async def __call__(self, question, actual, predicted):
        return float(actual in predicted)


def hold(questions, actual, predicted):
    return [one in other for one, other in zip(actual, predicted, strict=True)]


def held(texts):
    return holds(**texts)


async def held_async(texts):
    return await holds_async(**texts)


def raw(texts):
    verdict = SimpleNamespace(relevant=held(texts))
    return {"raw": "…", "parsed": verdict, "parsing_error": None}


class Asked:
    """Answers as a function does, and remembers what it was asked."""

    def __init__(self, answer=holds):
        self.answer, self.calls = answer, []

    def __call__(self, *texts):
        self.calls.append(texts)
        return self.answer(*texts)


def yes(*texts):
    return True


def pairs_of(matcher, actual=ACTUAL, predicted=PREDICTED, labels=QUESTIONS):
    """Return items and ranks with a similarity above 0."""
    return [(item, rank) for item, rank, _ in found(matcher, actual, predicted, labels)]


def evaluator_of(matcher, actual=ACTUAL, predicted=PREDICTED, queries=QUESTIONS, **options):
    return OfflineRetrievalEvaluator(actual, predicted, matcher, queries=queries, **options)


JUDGES = {
    "function": (holds, {}),
    "async function": (holds_async, {}),
    "function that returns an awaitable": (lambda *texts: holds_async(*texts), {}),
    "object with an async call": (HoldsAsync(), {}),
    "batch": (hold, {"batch_size": 2}),
    "array": (lambda q, a, p: np.array(hold(q, a, p)), {"batch_size": 4}),
    "numpy bool": (lambda q, a, p: np.bool_(a in p), {}),
    "Runnable": (RunnableLambda(held), {}),
    "async Runnable": (RunnableLambda(held_async), {}),
    "dict": (
        RunnableLambda(lambda t: {"score": float(held(t)), "why": "…"}),
        {"output_key": "score"},
    ),
    "object": (RunnableLambda(lambda t: raw(t)["parsed"]), {"output_key": "relevant"}),
    "include_raw": (RunnableLambda(raw), {"output_key": "relevant"}),
}


@pytest.mark.parametrize("kind", JUDGES)
def test_every_kind_of_judge_gives_the_same(kind):
    """Sync or async, one pair or a batch, a plain value or a field; and where a loop is running."""
    judge, options = JUDGES[kind]
    assert pairs_of(JudgeMatcher(judge, **options)) == FOUND

    async def notebook():
        return pairs_of(JudgeMatcher(judge, **options))

    assert asyncio.run(notebook()) == FOUND


def test_all_evaluations_share_a_loop():
    """A client keeps connections, which are of no use in another loop than their own."""
    loops = []

    async def judge(question, actual, predicted):
        loops.append(asyncio.get_running_loop())
        return actual in predicted

    assert [pairs_of(JudgeMatcher(judge)) for _ in range(2)] == [FOUND, FOUND]
    assert len(set(loops)) == 1
    assert not loops[0].is_closed()


def test_threads_may_share_a_matcher():
    """None stops another, and every judgement is kept."""
    matcher, refused = JudgeMatcher(lambda question, actual, predicted: 1.0), []

    def ask(thread):
        try:
            for number in range(40):
                matcher.similarity(f"{thread} {number}", "b", "Who?")
        except RuntimeError as error:
            refused.append(error)

    threads = [threading.Thread(target=ask, args=(one,)) for one in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval)
    assert refused == []
    assert matcher.cost.judged == 8 * 40


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_may_evaluate_by_itself(is_async):
    """It waits for another judge, and must not keep that one from being asked."""
    inner = JudgeMatcher(holds_async)

    def judge(question, actual, predicted):
        return inner.similarity(actual, predicted, question)

    async def judge_async(question, actual, predicted):
        return judge(question, actual, predicted)

    assert pairs_of(JudgeMatcher(judge_async if is_async else judge)) == FOUND


def test_queries_with_ids_for_labels_are_judged_by_their_questions(tmp_path):
    """Two that ask the same are labelled by ids, of which a judge knows nothing."""
    rows = [{"id": name, "question": "When?", "actual": [name]} for name in ("a", "b")]
    texts = pd.DataFrame({"doc_id": ["a", "b"], "contents": ["at nine", "daily"]})
    qa = pd.DataFrame({"qid": ["q1", "q2"], "query": ["When?"] * 2,
                       "retrieval_gt": [[["a"]], [["b"]]]})  # fmt: skip
    judge = Asked()
    options: Any = {"matcher": JudgeMatcher(judge, version="1")}
    with pytest.warns(KragEvalWarning, match="labelled by"):
        dataset = load_dataset(qa, corpus=texts, retrieved={"q1": ["a"], "q2": ["b"]})
    dataset.evaluator(**options).calculate_mrr()
    dataset.save(tmp_path / "saved.jsonl")
    evaluate_file(tmp_path / "saved.jsonl", k=1, **options)
    with pytest.warns(KragEvalWarning, match="labelled by"):
        evaluate_retriever(lambda question: ["a"], rows, k=1, **options)
    assert {question for question, *_ in judge.calls} == {"When?"}
    assert dataset.evaluator(matcher="text").evaluate(k=1).labels == ["q1", "q2"]


def test_every_pair_of_a_query_is_judged_once():
    """2 × 2 pairs and 1 × 2; none across queries, and none for the other threshold or k."""
    judge = Asked(lambda q, a, p: 0.5 * (a in p))
    evaluator = evaluator_of(JudgeMatcher(judge, threshold=0.3))
    # Items 1, 2 of the first query and 1 of the second: within k=1 two of three are found.
    assert evaluator.calculate_recall(k=1) == {"micro_recall": 2 / 3, "macro_recall": 0.5}
    with pytest.warns(KragEvalWarning):
        assert evaluator.with_threshold(0.9).calculate_recall(k=2)["micro_recall"] == 0.0
    assert sorted(judge.calls) == sorted(
        (question, one, other)
        for question, actual, predicted in zip(QUESTIONS, ACTUAL, PREDICTED, strict=True)
        for one in actual
        for other in predicted
    )


@pytest.mark.parametrize(
    ("answer", "options", "lists", "expected", "asked"),
    [
        # The same texts under another question are another pair; NFD is NFC.
        (holds, {}, ([["가"]] * 3, [["가 1", "\u1100\u1161 1"]] * 3, ["A?", "A?", "B?"]),
         [(i, rank) for i in range(3) for rank in (1, 2)], "A?가가 1 B?가가 1"),
        # Alternatives are judged each.
        (holds, {}, ([[AnyOf(["x", "daily"])]], [["daily", "x x", "no"]], ["?"]),
         [(0, 1), (0, 2)], "?dailydaily ?dailyno ?dailyx x ?xdaily ?xno ?xx x"),
        # One alternative is in the first document, one in the second: two of four pairs are left.
        (yes, {"candidates": "contains"}, ([[AnyOf(["x", "daily"])]], [["x x", "daily"]], ["?"]),
         [(0, 1), (0, 2)], "?dailydaily ?xx x"),
        # To the gate, two documents with one id are one; to the judge they are two texts.
        (yes, {"candidates": "id"},
         ([[{"page_content": text, "id": "7"} for text in ("one", "two")]],
          [[{"page_content": "both", "id": name} for name in "78"]], ["?"]),
         [(0, 1), (1, 1)], "?oneboth ?twoboth"),
    ],
)  # fmt: skip
def test_the_same_texts_and_question_are_judged_once(answer, options, lists, expected, asked):
    judge = Asked(answer)
    assert pairs_of(JudgeMatcher(judge, **options), *lists) == expected
    assert " ".join(sorted(map("".join, judge.calls))) == asked


def test_blank_texts_are_not_judged():
    judge = Asked(yes)
    with pytest.warns(KragEvalWarning):
        assert pairs_of(JudgeMatcher(judge), [["a", " "]], [["", "b"]], ["?"]) == [(0, 2)]
    assert judge.calls == [("?", "a", "b")]


def test_it_combines_with_other_matchers():
    nine = Matcher.from_function(lambda actual, predicted: "nine" in predicted.page_content)
    assert pairs_of(JudgeMatcher(yes) & nine) == [(0, 1), (1, 1)]


async def exits(question, actual, predicted):
    raise SystemExit(3)


async def cancelled(question, actual, predicted):
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("judge", "raised", "cause"),
    [
        (exits, SystemExit, type(None)),
        # In a notebook it would look as if the cell had been cancelled.
        (cancelled, RuntimeError, asyncio.CancelledError),
        # A future cannot hold one; scripted stand-ins raise it when they run out of answers.
        (lambda q, a, p: next(iter(())), RuntimeError, StopIteration),
    ],
)
def test_a_judge_that_stops_does_not_stop_others(judge, raised, cause):
    """It raises its own exception, which says what it was about, and what asks judges lives on."""
    matcher = JudgeMatcher(judge, max_concurrency=1)
    with pytest.raises(raised) as caught:
        pairs_of(matcher)
    assert isinstance(caught.value.__cause__, cause)
    assert "'When?'" in caught.value.__notes__[0]
    assert matcher.cost.failed == matcher.cost.calls == 1
    assert pairs_of(JudgeMatcher(holds_async)) == FOUND


@pytest.mark.parametrize("answer", ["yes", [True]])
def test_what_is_no_judgement_has_failed(answer):
    matcher = JudgeMatcher(lambda question, actual, predicted: answer)
    with pytest.raises(InvalidInput):
        pairs_of(matcher)
    assert (matcher.cost.judged, matcher.cost.failed) == (0, matcher.cost.calls)


def test_no_more_than_asked_for_at_a_time():
    """And as many as that, when they wait for each other."""
    together, running, most = threading.Barrier(4), [], []

    def judge(question, actual, predicted):
        running.append(predicted)
        most.append(len(running))
        together.wait(10)
        running.remove(predicted)
        return True

    documents = [str(i) for i in range(8)]
    pairs_of(JudgeMatcher(judge, max_concurrency=4), [["a"]], [documents], ["?"])
    assert max(most) == 4


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_was_judged_is_kept_when_call_100_fails(on_disk, tmp_path):
    """The error is the judge's own, and a note names the query and the pair."""
    judge = Asked(lambda *texts: len(judge.calls) != 100 or {}["used up"])
    options = {"max_concurrency": 1, "version": "1", "name": "limited"}
    options |= {"cache": tmp_path / "judged.sqlite"} if on_disk else {}
    matcher = JudgeMatcher(judge, **options)
    asked = [["a"], ["b"]], [[f"d{i}" for i in range(60)]] * 2
    with pytest.raises(KeyError) as caught:
        pairs_of(matcher, *asked)
    (note,) = caught.value.__notes__  # of 60 pairs of the first query, and 39 of the second
    parts = "How much?", "actual_docs[1][0]", "predicted_docs[1][39]", "query 1"
    assert all(part in note for part in parts)
    assert (matcher.cost.calls, matcher.cost.failed, matcher.cost.judged) == (100, 1, 99)
    again = JudgeMatcher(judge, **options) if on_disk else matcher
    assert len(pairs_of(again, *asked)) == 120
    assert (again.cost.judged - (0 if on_disk else 99), again.cost.kept) == (21, 99)


def test_too_many_calls_are_refused_before_the_first():
    judge = Asked()
    with pytest.raises(InvalidInput) as caught:
        pairs_of(JudgeMatcher(judge, max_calls=5))
    assert (caught.value.argument, judge.calls) == ("max_calls", [])
    assert pairs_of(JudgeMatcher(judge, max_calls=6)) == FOUND


def test_the_bar_says_how_many_calls_there_will_be(capsys):
    pairs_of(JudgeMatcher(holds, progress=True))
    assert "6.00/6.00" in (told := capsys.readouterr().err) or "6/6" in told


def chain(prompt, usage=None):
    """Return a prompt, a model and a parser; whoever is asked says yes."""
    message = AIMessage('{"relevant": true}', usage_metadata=usage)
    model = GenericFakeChatModel(messages=iter([message] * 100))
    return ChatPromptTemplate.from_template(prompt) | model | JsonOutputParser()


def test_tokens_are_counted_where_a_model_reports_them():
    """6 pairs of 10 and 2 tokens."""
    judge = chain(PROMPT, {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12})
    matcher = JudgeMatcher(judge, output_key="relevant", max_concurrency=1)
    pairs_of(matcher)
    assert (matcher.cost.input_tokens, matcher.cost.output_tokens) == (60, 12)


HIDDEN, PROMPT = iter("ab"), "{question} {actual} {predicted}"


@pytest.mark.parametrize(
    ("matcher", "signature"),
    [
        (JudgeMatcher(holds), "judge(judge=holds#)"),
        (JudgeMatcher(holds, version="1"), "judge(judge=holds,version=1)"),
        (JudgeMatcher(holds, prompt="same?"), "judge(judge=holds#,prompt=sha256:b3dcbcb2771f)"),
        (JudgeMatcher(lambda q, a, p: bool(HIDDEN)), "judge(judge=<lambda>#unknown)"),
        (
            JudgeMatcher(yes, name="strict", version="2", candidates="fuzzy"),
            "judge(judge=strict,version=2,candidates=fuzzy(scorer=ratio)>=0.8)",
        ),
        (JudgeMatcher(RunnableLambda(held), output_key="a", version="1"),
         "judge(judge=RunnableLambda#,version=1,output_key=a)"),
    ],
)  # fmt: skip
def test_a_signature_says_what_it_does_not_know(matcher, signature):
    assert re.sub("#[0-9a-f]{12}", "#", matcher.signature) == signature


def test_two_prompts_are_two_signatures():
    """Of a Runnable as of a function."""
    prompts = PROMPT, f"Strictly: {PROMPT}"
    signatures = [JudgeMatcher(chain(one)).signature for one in (*prompts, PROMPT)]
    assert signatures[0] == signatures[2] != signatures[1]


def test_another_judge_version_prompt_or_field_is_another_judgement(tmp_path):
    """Each of these asks anew in the same file, and none asks twice."""
    judge = Asked(lambda texts: {"relevant": 1.0, "complete": 0.0})
    ways = [
        {"version": "1"}, {"version": "2"}, {"prompt": "a", "version": "1"},
        {"prompt": "b", "version": "1"}, {"version": "1", "name": "other"},
    ]  # fmt: skip
    for n, way in enumerate([*ways, {"version": "1", "output_key": "complete"}], 1):
        for _ in range(2):
            options = {"output_key": "relevant", "cache": tmp_path / "judged.sqlite", **way}
            matcher = JudgeMatcher(RunnableLambda(judge), **options)
            assert matcher.similarity("a", "a b", "?") == (options["output_key"] == "relevant")
        assert len(judge.calls) == n


def test_a_file_keeps_no_text(tmp_path):
    file = tmp_path / "judged.sqlite"
    pairs_of(JudgeMatcher(holds, version="v-name", cache=file))
    kept = file.read_bytes()
    assert not any(text.encode() in kept for text in [*QUESTIONS, *PREDICTED[0], "v-name"])
    assert os.listdir(tmp_path) == ["judged.sqlite"]


def kept_before(file, key):
    """Write a file as it was before judges were told from each other as they are now."""
    pairs_of(JudgeMatcher(holds, version="other", cache=file))
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("DELETE FROM judgements")
        opened.execute("INSERT INTO judgements VALUES (?, 0.25)", (key,))
        opened.execute("PRAGMA user_version = 0")


def test_a_judge_that_an_older_file_knows_by_another_digest_is_asked_anew_with_a_note(tmp_path):
    """Never is the judgement of another taken; and what is known is not asked."""
    file = tmp_path / "judged.sqlite"
    kept_before(file, b"of another digest")
    judge, again = (JudgeMatcher(holds, cache=file) for _ in range(2))
    with pytest.warns(KragEvalWarning, match="earlier version") as caught:
        pairs = pairs_of(judge)
    assert len(caught) == 1
    assert judge.cost.calls > 0
    assert pairs_of(again) == pairs
    assert again.cost.calls == 0


def test_what_an_older_file_keeps_of_a_judge_by_name_and_version_is_read(tmp_path):
    """The key, written out: format, what names the judge, and the three texts."""
    file = tmp_path / "judged.sqlite"
    told = json.dumps([1, {"judge": "holds", "version": "1"}, ["?", "a", "a b"]])
    kept_before(file, hashlib.sha256(told.encode()).digest())
    judge = JudgeMatcher(holds, name="holds", version="1", cache=file)
    assert judge.similarity("a", "a b", "?") == 0.25
    assert judge.cost.calls == 0


def refused(file, judge=holds, *lists):
    """Return the refusal of a file of judgements."""
    with blamed("cache") as caught:
        pairs_of(JudgeMatcher(judge, name="holds", version="1", cache=file), *lists)
    assert str(file) in caught.value.problem
    return caught.value


def test_other_files_are_left_as_they_are(tmp_path):
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("These are my notes. " * 100, "utf-8")
    with_sql("CREATE TABLE mine (a)")(other)
    for file in (text, other):
        before = file.read_bytes()
        assert refused(file)
        assert file.read_bytes() == before


def damaged(file):
    """Overwrite a page with what is none."""
    content = bytearray(file.read_bytes())
    content[4096 : 2 * 4096] = b"\xff" * 4096
    file.write_bytes(content)


def with_sql(*commands):
    def change(file):
        opened = sqlite3.connect(file)
        with opened:
            for command in commands:
                opened.execute(command)
        opened.close()

    return change


#: What becomes of a file of judgements.
MISHAPS: dict[str, Callable[[Path], Any]] = {
    "a damaged page": damaged,
    "half of it": lambda file: os.truncate(file, file.stat().st_size // 8192 * 4096),
    "its first page alone": lambda file: os.truncate(file, 4096),
    "half a page": lambda file: os.truncate(file, 2048),
    "no table": with_sql("DROP TABLE judgements"),
    "another table": with_sql("CREATE TABLE mine (a)"),
    "another schema": with_sql(
        "DROP TABLE judgements", "CREATE TABLE judgements (key BLOB PRIMARY KEY, similarity REAL)"
    ),
    "an index": with_sql("CREATE INDEX i ON judgements (similarity)"),
    "a view": with_sql("CREATE VIEW v AS SELECT * FROM judgements"),
    "a trigger": with_sql(
        "CREATE TRIGGER t AFTER INSERT ON judgements BEGIN DELETE FROM judgements; END"
    ),
    "a judgement that is none": with_sql("UPDATE judgements SET similarity = 'yes'"),
    "a judgement beyond 1": with_sql("UPDATE judgements SET similarity = 7.0"),
}


@pytest.mark.parametrize("mishap", MISHAPS)
def test_a_file_that_is_not_whole_is_named_and_left_as_it_is(mishap, tmp_path):
    """Nobody is asked, nothing is lost, and no error is a bare one of SQLite."""
    file = tmp_path / "judged.sqlite"
    many = [["d"]], [[f"d{i}" for i in range(400)]], ["?"]
    pairs_of(JudgeMatcher(holds, version="1", cache=file), *many)
    MISHAPS[mishap](file)
    before, judge = file.read_bytes(), Asked()
    assert refused(file, judge, *many).fix
    assert refused(file, judge, *many).fix
    assert judge.calls == []
    assert file.read_bytes() == before


def test_a_file_that_is_damaged_while_it_is_used_is_named(tmp_path):
    """What was judged stays in the matcher, and is written when the file is there again."""
    file = tmp_path / "judged.sqlite"
    matcher = JudgeMatcher(holds, version="1", cache=file)
    pairs_of(matcher, [["a"]], [["a"]], ["first?"])
    file.unlink()
    file.write_bytes(b"cut" * 2000)
    with blamed("cache"):
        pairs_of(matcher)
    assert file.read_bytes() == b"cut" * 2000


def test_a_lock_is_named_and_what_was_judged_is_written_later(tmp_path, monkeypatch):
    """No other file is advised: it would be judged, and paid, twice."""
    monkeypatch.setattr("krag_eval.matchers.judge._SECONDS_FOR_OTHERS", 0.2)
    file = tmp_path / "judged.sqlite"
    pairs_of(JudgeMatcher(holds, version="1", cache=file), [["x"]], [["y"]], ["?"])
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    def judge(question, actual, predicted):
        if not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")
        return True

    matcher = JudgeMatcher(judge, version="2", cache=file, max_concurrency=1)
    for _ in range(2):  # while asking, and before
        with blamed("cache") as caught:
            pairs_of(matcher)
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert "another file" not in str(caught.value.fix)
    assert matcher.cost.calls == 1
    other.close()
    asked = [["at nine"]], [["open daily at nine"]], ["When?"]
    pairs_of(matcher, *asked)
    again = JudgeMatcher(judge, version="2", cache=file, max_calls=0)
    pairs_of(again, *asked)
    assert (matcher.cost.calls, again.cost.kept) == (1, 1)


SLOW = """
import sys, time
from krag_eval import JudgeMatcher
from krag_eval.core.documents import QuerySet
def slow(question, actual, predicted):
    time.sleep(0.002)
    print("x", file=sys.stderr, flush=True)
    return True
matcher = JudgeMatcher(slow, version="1", cache=sys.argv[1], max_concurrency=4)
print("ready", file=sys.stderr, flush=True)
sys.stdin.readline()
matcher.match(QuerySet.from_lists([["a"]], [[f"d{i}" for i in range(400)]], ["?"]))
"""


def started(file, n=1):
    """Have so many processes judge the same 400 pairs, from the same moment on."""
    command = [sys.executable, "-c", SLOW, str(file)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    runs = [subprocess.Popen(command, **pipes) for _ in range(n)]
    for run in runs:
        assert run.stderr.readline() == b"ready\n"
    for run in runs:
        run.stdin.write(b"\n")
    return runs


def kept_in(file):
    """Return how many of the 400 judgements a file holds."""

    def slow(question, actual, predicted):
        return True

    matcher = JudgeMatcher(slow, version="1", cache=file)
    pairs_of(matcher, [["a"]], [[f"d{i}" for i in range(400)]], ["?"])
    return matcher.cost.kept


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_run_asks_only_for_the_rest(tmp_path):
    """Killed twice at some point; at most the calls under way are asked again."""
    asked, file = 0, tmp_path / "judged.sqlite"
    for n_calls in (5, 60):
        (run,) = started(file)
        with run:
            for _ in range(n_calls):
                run.stderr.readline()
            run.send_signal(signal.SIGKILL)
            asked += n_calls + len(run.stderr.readlines())
    assert asked - 2 * 4 <= kept_in(file) <= asked


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_loses_nothing(tmp_path):
    """The calls under way end and are kept, and no other begins."""
    (run,) = started(tmp_path / "judged.sqlite")
    with run:
        said = b"".join(run.stderr.readline() for _ in range(60))
        run.send_signal(signal.SIGINT)
        said += run.stderr.read()
    # Threads may write two of them into one line; what follows is the traceback.
    assert kept_in(tmp_path / "judged.sqlite") == said.partition(b"Traceback")[0].count(b"x")


def test_several_processes_share_a_file(tmp_path):
    """They make it at the same time, and all of their judgements are in it."""
    for run in started(tmp_path / "judged.sqlite", 2):
        run.communicate()
        assert run.returncode == 0
    assert kept_in(tmp_path / "judged.sqlite") == 400


def test_it_travels_to_other_processes():
    assert pairs_of(pickle.loads(pickle.dumps(JudgeMatcher(holds)))) == FOUND
    assert evaluator_of(JudgeMatcher(holds), n_jobs=2).calculate_recall(k=2)["micro_recall"] == 1.0


class Strict(Matcher):
    """Looks at the question, pair by pair."""

    def similarity(self, actual, predicted, *, question):
        return question.rstrip("?") in predicted.page_content


def maybe():
    """Return a matcher that looks at the question if there is one."""

    class Maybe(Matcher):  # made here, so that other processes need not read all of these tests
        def similarity(self, actual, predicted, question="b?"):
            return question.rstrip("?") in predicted.page_content

    return Maybe()


class Together(Matcher):
    """Looks at the question, many pairs at a time, prepared."""

    def prepare(self, text):
        return text.upper()

    def similarity(self, actual, predicted):
        raise AssertionError("pairs come together")

    def similarities(self, actual, predicted, question=""):
        return [[question.rstrip("?").upper() in p for p in predicted] for _ in actual]


LISTS = [["x"], ["x"]], [["a", "b"], ["a", "b"]]


@pytest.mark.parametrize(
    ("matcher", "n_jobs"), [(Strict(), None), (maybe(), None), (Together(), None), (maybe(), 2)]
)
def test_a_matcher_of_a_users_own_gets_the_question(matcher, n_jobs):
    """A is in the first document of its query, b in the second of its own."""
    evaluator = evaluator_of(matcher, *LISTS, ["a?", "b?"], n_jobs=n_jobs)
    assert evaluator.calculate_mrr(k=2) == {"mrr": 0.75}


def test_where_no_question_is_known_a_default_stands():
    assert evaluator_of(maybe(), *LISTS, None).calculate_mrr(k=2) == {"mrr": 0.5}
    with blamed("queries"):
        evaluator_of(Strict(), *LISTS, None).calculate_mrr(k=2)


def refused_index(result, index):
    """An index knows no questions, so a judge cannot search it."""
    with pytest.raises(InvalidInput) as caught:
        result.diagnose(index=index)
    return caught.value.argument == "index"


def test_a_diagnosis_asks_with_the_question():
    """In deeper lists."""
    seen = Asked()
    with pytest.warns(KragEvalWarning):
        result = evaluator_of(JudgeMatcher(seen), [["x"]], [["a"]], ["Where?"]).evaluate(k=1)
    diagnosis = result.diagnose(deeper={"Where?": ["a", "b", "an x"]})
    assert diagnosis.counts["ranked_too_low"] == 1
    assert {question for question, *_ in seen.calls} == {"Where?"}
    assert refused_index(result, ["an x", "a"])


def test_a_combination_looks_at_what_its_parts_look_at():
    """The question, if one of them does."""
    both = Strict() & Matcher.from_function(lambda actual, predicted: 1.0, name="yes")
    evaluator = evaluator_of(both, [["x"]], [["a", "b"]], ["b?"])
    assert evaluator.calculate_mrr(k=2) == {"mrr": 0.5}
    with pytest.warns(KragEvalWarning):
        result = evaluator_of(both, [["x"]], [["a"]], ["b?"]).evaluate(k=1)
    assert refused_index(result, ["a", "b"])
