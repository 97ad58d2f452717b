"""A judge: asked once for each pair, many at a time, and what it said is kept."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from krag_eval import (
    AnyOf,
    JudgeMatcher,
    Matcher,
    OfflineRetrievalEvaluator,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.documents import QuerySet
from krag_eval.errors import InvalidInput, InvalidType, KragEvalWarning

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


class Verdict(BaseModel):
    relevant: bool


class Asked:
    """Answers as a function does, and remembers what it was asked."""

    def __init__(self, answer=holds):
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []
        self._lock = threading.Lock()

    def __call__(self, *texts):
        with self._lock:
            self.calls.append(texts)
        return self.answer(*texts)


def queries(actual=ACTUAL, predicted=PREDICTED, labels=QUESTIONS):
    return QuerySet.from_lists(actual, predicted, labels)


def pairs_of(matcher, asked=None):
    """Return items and ranks with a similarity above 0."""
    matches = matcher.match(asked or queries())
    return list(zip(matches.item.tolist(), matches.rank.tolist(), strict=True))


def held(texts):
    return holds(**texts)


async def held_async(texts):
    return await holds_async(**texts)


JUDGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "function": (holds, {}),
    "async function": (holds_async, {}),
    "function that returns an awaitable": (lambda *texts: holds_async(*texts), {}),
    "object with an async call": (HoldsAsync(), {}),
    "batch": (lambda q, a, p: [x in y for x, y in zip(a, p, strict=True)], {"batch_size": 2}),
    "array": (
        lambda q, a, p: np.array([x in y for x, y in zip(a, p, strict=True)]),
        {"batch_size": 4},
    ),
    "numpy bool": (lambda q, a, p: np.bool_(a in p), {}),
    "Runnable": (RunnableLambda(held), {}),
    "async Runnable": (RunnableLambda(held_async), {}),
    "dict": (
        RunnableLambda(lambda t: {"score": float(held(t)), "why": "…"}),
        {"output_key": "score"},
    ),
    "object": (RunnableLambda(lambda t: Verdict(relevant=held(t))), {"output_key": "relevant"}),
    "include_raw": (
        RunnableLambda(
            lambda t: {"raw": "…", "parsed": Verdict(relevant=held(t)), "parsing_error": None}
        ),
        {"output_key": "relevant"},
    ),
}


@pytest.mark.parametrize("kind", JUDGES)
def test_every_kind_of_judge_gives_the_same(kind):
    """Sync or async, one pair or a batch, a plain value or a field."""
    judge, options = JUDGES[kind]
    assert pairs_of(JudgeMatcher(judge, **options)) == FOUND


def test_it_works_where_a_loop_is_running():
    """As in a notebook."""

    async def notebook():
        return pairs_of(JudgeMatcher(holds_async))

    assert asyncio.run(notebook()) == FOUND


def test_all_evaluations_share_a_loop():
    """A client keeps connections, which are of no use in another loop than their own."""
    loops = []

    async def judge(question, actual, predicted):
        loops.append(asyncio.get_running_loop())
        return actual in predicted

    for _ in range(2):
        assert pairs_of(JudgeMatcher(judge)) == FOUND
    assert len(set(loops)) == 1
    assert not loops[0].is_closed()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_may_evaluate_by_itself(is_async):
    """It waits for another judge, and must not keep that one from being asked."""
    inner = JudgeMatcher(holds_async)

    def judge(question, actual, predicted):
        return inner.similarity(actual, predicted, question)

    async def judge_async(question, actual, predicted):
        return judge(question, actual, predicted)

    assert pairs_of(JudgeMatcher(judge_async if is_async else judge)) == FOUND


def test_the_evaluator_takes_it():
    """Items 1, 2 of the first query and 1 of the second: within k=1 two of three are found."""
    evaluator = OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=JudgeMatcher(holds), queries=QUESTIONS
    )
    assert evaluator.calculate_recall(k=1) == {"micro_recall": 2 / 3, "macro_recall": 0.5}


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


def test_a_number_is_a_similarity():
    matcher = JudgeMatcher(lambda question, actual, predicted: 0.25, threshold=0.3)
    assert matcher.match(queries()).similarity.tolist() == [0.25] * 6


def test_every_pair_of_a_query_is_judged_once():
    """2 × 2 pairs and 1 × 2; none across queries, and none for the other threshold."""
    judge = Asked()
    evaluator = OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=JudgeMatcher(judge), queries=QUESTIONS
    )
    evaluator.calculate_recall(k=1)
    evaluator.with_threshold(0.9).calculate_recall(k=2)
    wanted = [
        (question, one, other)
        for question, actual, predicted in zip(QUESTIONS, ACTUAL, PREDICTED, strict=True)
        for one in actual
        for other in predicted
    ]
    assert sorted(judge.calls) == sorted(wanted)


def test_the_same_texts_and_question_are_judged_once():
    """The same texts under another question are another pair; NFD is NFC."""
    judge = Asked()
    matcher = JudgeMatcher(judge)
    asked = queries([["가"], ["가"], ["가"]], [["가 1", "\u1100\u1161 1"]] * 3, ["A?", "A?", "B?"])
    assert pairs_of(matcher, asked) == [(i, rank) for i in range(3) for rank in (1, 2)]
    assert sorted(judge.calls) == [("A?", "가", "가 1"), ("B?", "가", "가 1")]


def test_blank_texts_are_not_judged():
    judge = Asked(lambda *texts: True)
    with pytest.warns(KragEvalWarning):
        pairs = pairs_of(JudgeMatcher(judge), queries([["a", " "]], [["", "b"]], ["?"]))
    assert pairs == [(0, 2)]
    assert judge.calls == [("?", "a", "b")]


def test_alternatives_are_judged_each():
    asked = queries([[AnyOf(["x", "daily"])]], [["daily", "x x", "no"]], ["?"])
    judge = Asked()
    assert pairs_of(JudgeMatcher(judge), asked) == [(0, 1), (0, 2)]
    assert len(judge.calls) == 6


def test_only_candidates_are_judged():
    """One alternative is in the first document, one in the second: two of four pairs are left."""
    judge = Asked(lambda *texts: True)
    matcher = JudgeMatcher(judge, candidates="contains")
    asked = queries([[AnyOf(["x", "daily"])]], [["x x", "daily"]], ["?"])
    assert pairs_of(matcher, asked) == [(0, 1), (0, 2)]
    assert sorted(judge.calls) == [("?", "daily", "daily"), ("?", "x", "x x")]


def test_candidates_by_id_are_judged_for_every_item_of_that_id():
    """To the gate, two documents with one id are one; to the judge they are two texts."""
    truth = [{"page_content": text, "id": "7"} for text in ("one", "two")]
    found = [{"page_content": "both", "id": "7"}, {"page_content": "both", "id": "8"}]
    judge = Asked(lambda *texts: True)
    pairs_of(JudgeMatcher(judge, candidates="id"), queries([truth], [found], ["?"]))
    assert sorted(judge.calls) == [("?", "one", "both"), ("?", "two", "both")]


def test_it_combines_with_other_matchers():
    assert pairs_of(
        JudgeMatcher(lambda *texts: True)
        & Matcher.from_function(
            lambda actual, predicted: float("nine" in predicted.page_content), name="nine"
        )
    ) == [(0, 1), (1, 1)]


def test_without_questions_it_says_how_to_pass_them():
    with pytest.raises(InvalidInput) as caught:
        OfflineRetrievalEvaluator(ACTUAL, PREDICTED, matcher=JudgeMatcher(holds)).calculate_recall(
            k=1
        )
    assert (caught.value.argument, caught.value.query) == ("queries", 0)
    with pytest.raises(InvalidInput):
        JudgeMatcher(holds).similarity("a", "a")


@pytest.mark.parametrize("answer", ["yes", None, 1.5, -0.1, float("nan"), 1j, [True], {"a": 1}])
def test_what_is_no_judgement_is_refused(answer):
    matcher = JudgeMatcher(lambda question, actual, predicted: answer)
    with pytest.raises(InvalidInput) as caught:
        matcher.match(queries())
    assert caught.value.argument == "judge"
    assert (matcher.cost.judged, matcher.cost.failed) == (0, matcher.cost.calls)


def test_a_judge_that_raises_stop_iteration_does_not_hang():
    """A future cannot hold one; scripted stand-ins raise it when they run out of answers."""
    answers = iter([True])
    with pytest.raises(RuntimeError) as caught:
        JudgeMatcher(lambda q, a, p: next(answers), max_concurrency=1).match(queries())
    assert isinstance(caught.value.__cause__, StopIteration)
    assert "'When?'" in caught.value.__notes__[0]


def test_a_judge_that_is_cancelled_has_failed():
    """In a notebook it would look as if the cell had been cancelled."""

    async def cancelled(question, actual, predicted):
        raise asyncio.CancelledError

    matcher = JudgeMatcher(cancelled)
    with pytest.raises(RuntimeError) as caught:
        matcher.match(queries())
    assert caught.value.__notes__
    assert matcher.cost.failed == matcher.cost.calls


def test_a_judge_that_exits_does_not_stop_others():
    """It raises its own exception, and what asks judges lives on."""

    async def exits(question, actual, predicted):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        JudgeMatcher(exits).match(queries())
    assert pairs_of(JudgeMatcher(holds_async)) == FOUND


@pytest.mark.parametrize(
    "judge",
    [
        lambda actual, predicted: True,
        lambda question, actual, predicted, model: True,
        lambda *, question, actual, predicted: True,
        # A matcher takes the question last; a judge that does would be given the wrong texts.
        lambda actual, predicted, question: True,
        lambda predicted, expected, query: True,
    ],
)
def test_a_judge_that_takes_other_texts_is_refused(judge):
    with pytest.raises(InvalidInput) as caught:
        JudgeMatcher(judge)
    assert caught.value.argument == "judge"


@pytest.mark.parametrize("answer", [[True], True, "yes", {"a": 1}, {True, False}])
def test_a_batch_of_another_length_is_refused(answer):
    matcher = JudgeMatcher(lambda question, actual, predicted: answer, batch_size=2)
    with pytest.raises(InvalidInput) as caught:
        matcher.match(queries())
    assert caught.value.argument == "judge"


def test_no_more_than_asked_for_at_a_time():
    """And as many as that, when they wait for each other."""
    together = threading.Barrier(4)
    running = [0, 0]
    lock = threading.Lock()

    def judge(question, actual, predicted):
        with lock:
            running[0] += 1
            running[1] = max(running)
        together.wait(10)
        with lock:
            running[0] -= 1
        return True

    asked = queries([["a"]], [[str(i) for i in range(8)]], ["?"])
    JudgeMatcher(judge, max_concurrency=4).match(asked)
    assert running == [0, 4]


class QuotaError(Exception):
    """What a provider says."""


class Limited:
    """Answers so many times, and then no more."""

    def __init__(self, n):
        self.n = n

    def __call__(self, question, actual, predicted):
        if self.n == 0:
            raise QuotaError("used up")
        self.n -= 1
        return True


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_was_judged_is_kept_when_call_100_fails(on_disk, tmp_path):
    """The error is the judge's own, and a note names the query and the pair."""
    judge = Limited(99)
    options: dict[str, Any] = {"max_concurrency": 1, "version": "1", "name": "limited"}
    options |= {"cache": tmp_path / "judged.sqlite"} if on_disk else {}
    matcher = JudgeMatcher(judge, **options)
    asked = queries([["a"], ["b"]], [[f"d{i}" for i in range(60)]] * 2)
    with pytest.raises(QuotaError) as caught:
        matcher.match(asked)
    (note,) = caught.value.__notes__
    assert "How much?" in note  # 60 pairs of the first query, 39 of the second
    assert "actual_docs[1][0]" in note
    assert "predicted_docs[1][39]" in note
    assert (matcher.cost.calls, matcher.cost.failed, matcher.cost.judged) == (100, 1, 99)
    judge.n = -1  # the quota is lifted
    again = JudgeMatcher(judge, **options) if on_disk else matcher
    assert len(again.match(asked)) == 120
    assert (again.cost.judged - (0 if on_disk else 99), again.cost.kept) == (21, 99)


def test_too_many_calls_are_refused_before_the_first():
    judge = Asked()
    with pytest.raises(InvalidInput) as caught:
        JudgeMatcher(judge, max_calls=5).match(queries())
    assert caught.value.argument == "max_calls"
    assert judge.calls == []
    assert pairs_of(JudgeMatcher(judge, max_calls=6)) == FOUND


def test_the_bar_says_how_many_calls_there_will_be(capsys):
    JudgeMatcher(holds, progress=True).match(queries())
    assert "6.00/6.00" in (told := capsys.readouterr().err) or "6/6" in told


def chain(prompt, usage=None):
    """Return a prompt, a model and a parser; whoever is asked says yes."""
    message = AIMessage('{"relevant": true}', usage_metadata=usage)
    model = GenericFakeChatModel(messages=iter([message] * 100))
    return ChatPromptTemplate.from_template(prompt) | model | JsonOutputParser()


def test_tokens_are_counted_where_a_model_reports_them():
    """6 pairs of 10 and 2 tokens."""
    judge = chain("{question} {actual} {predicted}", {
        "input_tokens": 10, "output_tokens": 2, "total_tokens": 12
    })  # fmt: skip
    matcher = JudgeMatcher(judge, output_key="relevant", max_concurrency=1)
    matcher.match(queries())
    assert (matcher.cost.input_tokens, matcher.cost.output_tokens) == (60, 12)


def test_two_prompts_are_two_signatures():
    """Of a Runnable as of a function, and a version tells them apart as well."""
    prompts = "{question} {actual} {predicted}", "Strictly: {question} {actual} {predicted}"
    signatures = {JudgeMatcher(chain(one)).signature for one in prompts}
    signatures |= {JudgeMatcher(holds, prompt=one).signature for one in prompts}
    signatures |= {JudgeMatcher(holds, version=one).signature for one in "12"}
    assert len(signatures) == 6
    assert JudgeMatcher(chain(prompts[0])).signature == JudgeMatcher(chain(prompts[0])).signature


def test_a_signature_says_what_it_does_not_know():
    assert re.fullmatch(r"judge\(judge=holds#[0-9a-f]{12}\)", JudgeMatcher(holds).signature)
    assert JudgeMatcher(holds, version="1").signature == "judge(judge=holds,version=1)"
    hidden = iter("ab")
    assert "#unknown" in JudgeMatcher(lambda q, a, p: bool(hidden)).signature
    named = JudgeMatcher(lambda q, a, p: True, name="strict", version="2", candidates="coverage")
    assert named.signature.startswith("judge(judge=strict,version=2,candidates=coverage(")
    assert named.signature.endswith(">=0.8)")


def test_another_judge_version_prompt_or_text_is_another_judgement(tmp_path):
    """Each of these asks anew in the same file, and none asks twice."""
    file = tmp_path / "judged.sqlite"
    judge = Asked()
    ways: list[dict[str, Any]] = [
        {"version": "1"}, {"version": "2"}, {"prompt": "a"}, {"prompt": "b"},
        {"version": "1", "name": "other"},
    ]  # fmt: skip
    for n, way in enumerate(ways, 1):
        for _ in range(2):
            assert JudgeMatcher(judge, cache=file, **way).similarity("a", "a b", "?") == 1.0
        assert len(judge.calls) == n


def test_another_field_of_an_output_is_another_judgement(tmp_path):
    """The same model and prompt say both."""
    judge = RunnableLambda(lambda texts: {"relevant": 1.0, "complete": 0.0})
    found = {}
    for field in ("relevant", "complete"):
        matcher = JudgeMatcher(
            judge, output_key=field, version="1", cache=tmp_path / "judged.sqlite"
        )
        found[matcher.signature] = matcher.similarity("a", "a", "?")
    assert [*found.values()] == [1.0, 0.0]


def test_a_file_keeps_no_text(tmp_path):
    file = tmp_path / "judged.sqlite"
    JudgeMatcher(holds, version="v-name", cache=file).match(queries())
    kept = file.read_bytes()
    assert not any(text.encode() in kept for text in [*QUESTIONS, *PREDICTED[0], "v-name"])
    assert os.listdir(tmp_path) == ["judged.sqlite"]


def test_a_file_needs_to_know_whose_judgements_it_keeps(tmp_path):
    """By its source and what it holds, or by a version where these cannot be told."""
    hidden = iter("ab")

    def judge(question, actual, predicted):
        return bool(hidden)

    with pytest.raises(InvalidInput) as caught:
        JudgeMatcher(judge, cache=tmp_path / "judged.sqlite")
    assert caught.value.argument == "cache"
    assert "version" in str(caught.value.fix)
    JudgeMatcher(judge, version="1", cache=tmp_path / "judged.sqlite")
    JudgeMatcher(holds, cache=tmp_path / "judged.sqlite")


def test_other_files_are_left_as_they_are(tmp_path):
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("These are my notes. " * 100, "utf-8")
    opened = sqlite3.connect(other)
    opened.execute("CREATE TABLE mine (a)")
    opened.close()
    for file in (text, other, tmp_path / "nowhere" / "judged.sqlite"):
        before = file.read_bytes() if file.exists() else None
        with pytest.raises(InvalidInput) as caught:
            JudgeMatcher(holds, version="1", cache=file).match(queries())
        assert caught.value.argument == "cache"
        assert (file.read_bytes() if file.exists() else None) == before


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
    many = queries([["d"]], [[f"d{i}" for i in range(400)]], ["?"])
    JudgeMatcher(holds, version="1", cache=file).match(many)
    MISHAPS[mishap](file)
    before, judge = file.read_bytes(), Asked()
    for _ in range(2):
        with pytest.raises(InvalidInput) as caught:
            JudgeMatcher(judge, name="holds", version="1", cache=file).match(many)
        assert caught.value.argument == "cache"
        assert str(file) in caught.value.problem
        assert caught.value.fix
    assert judge.calls == []
    assert file.read_bytes() == before


def test_a_file_that_is_damaged_while_it_is_used_is_named(tmp_path):
    """What was judged stays in the matcher, and is written when the file is there again."""
    file, moved = tmp_path / "judged.sqlite", tmp_path / "moved.sqlite"
    matcher = JudgeMatcher(holds, version="1", cache=file)
    matcher.match(queries([["a"]], [["a"]], ["first?"]))
    with_sql("DROP TABLE judgements")(file)
    file.replace(moved)
    file.write_bytes(b"cut" * 2000)
    with pytest.raises(InvalidInput) as caught:
        matcher.match(queries())
    assert caught.value.argument == "cache"
    assert file.read_bytes() == b"cut" * 2000


def test_a_lock_is_named_and_what_was_judged_is_written_later(tmp_path, monkeypatch):
    """No other file is advised: it would be judged, and paid, twice."""
    monkeypatch.setattr("krag_eval.matching.judge._SECONDS_FOR_OTHERS", 0.2)
    file = tmp_path / "judged.sqlite"
    JudgeMatcher(holds, version="1", cache=file).match(queries([["x"]], [["y"]], ["?"]))
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    def judge(question, actual, predicted):
        if not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")
        return True

    matcher = JudgeMatcher(judge, version="2", cache=file, max_concurrency=1)
    for _ in range(2):  # while asking, and before
        with pytest.raises(InvalidInput) as caught:
            matcher.match(queries())
        assert caught.value.argument == "cache"
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert "another file" not in str(caught.value.fix)
    assert matcher.cost.calls == 1
    other.execute("ROLLBACK")
    matcher.match(queries([["at nine"]], [["open daily at nine"]], ["When?"]))
    other.close()
    again = JudgeMatcher(judge, version="2", cache=file, max_calls=0)
    again.match(queries([["at nine"]], [["open daily at nine"]], ["When?"]))
    assert (matcher.cost.calls, again.cost.kept) == (1, 1)


SLOW = """
import sys, time
from krag_eval import JudgeMatcher
from krag_eval.documents import QuerySet
def slow(question, actual, predicted):
    time.sleep(0.002)
    print("x", file=sys.stderr, flush=True)
    return True
matcher = JudgeMatcher(slow, version="1", cache=sys.argv[1], max_concurrency=4)
matcher.match(QuerySet.from_lists([["a"]], [[f"d{i}" for i in range(400)]], ["?"]))
print(matcher.cost.judged, matcher.cost.kept)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_run_asks_only_for_the_rest(tmp_path):
    """Killed three times at some point; at most the calls under way are asked again."""
    command = [sys.executable, "-c", SLOW, str(tmp_path / "judged.sqlite")]
    asked = 0
    for n_calls in (5, 60, 90):
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as run:
            assert run.stderr is not None
            for _ in range(n_calls):
                run.stderr.readline()
            run.send_signal(signal.SIGKILL)
            asked += n_calls + len(run.stderr.readlines())
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    judged, kept = map(int, done.stdout.split())
    assert judged + kept == 400
    assert asked - 3 * 4 <= kept <= asked


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_loses_nothing(tmp_path):
    """The calls under way end and are kept, and no other begins."""
    command = [sys.executable, "-c", SLOW, str(tmp_path / "judged.sqlite")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as run:
        assert run.stderr is not None
        said = b"".join(run.stderr.readline() for _ in range(60))
        run.send_signal(signal.SIGINT)
        said += run.stderr.read()
    # Threads may write two of them into one line; what follows is the traceback.
    asked = said.partition(b"Traceback")[0].count(b"x")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(400 - asked), str(asked)]


def _judged_in_a_process(file, barrier, answers):
    matcher = JudgeMatcher(_waits_a_little, version="1", cache=file, max_concurrency=4)
    barrier.wait(60)
    documents = [f"d{i}" for i in range(100)]
    answers.put(len(matcher.match(QuerySet.from_lists([["d"]], [documents], ["?"]))))


def _waits_a_little(question, actual, predicted):
    time.sleep(0.001)
    return actual in predicted


def test_several_processes_share_a_file(tmp_path):
    """They make it at the same time, and each gets all judgements."""
    file = str(tmp_path / "judged.sqlite")
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(3), context.Queue()
    runs = [
        context.Process(target=_judged_in_a_process, args=(file, barrier, answers))
        for _ in range(3)
    ]
    for run in runs:
        run.start()
    assert [answers.get(timeout=120) for _ in runs] == [100] * 3
    for run in runs:
        run.join()
    matcher = JudgeMatcher(_waits_a_little, version="1", cache=file, max_calls=0)
    documents = [f"d{i}" for i in range(100)]
    assert len(matcher.match(QuerySet.from_lists([["d"]], [documents], ["?"]))) == 100


def test_it_travels_to_other_processes():
    matcher = pickle.loads(pickle.dumps(JudgeMatcher(holds)))
    assert pairs_of(matcher) == FOUND
    evaluator = OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=JudgeMatcher(holds), queries=QUESTIONS, n_jobs=2
    )
    assert evaluator.calculate_recall(k=2)["micro_recall"] == 1.0


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("judge", "gpt", InvalidType),
        ("judge", Asked, InvalidType),
        ("threshold", 2, InvalidInput),
        ("version", 1, InvalidType),
        ("prompt", 1, InvalidType),
        ("name", 1, InvalidType),
        ("candidates", "coverage(union=yes)", InvalidInput),
        ("candidates", "coverege", InvalidInput),
        ("candidates", 0.5, InvalidType),
        ("output_key", 1, InvalidType),
        ("batch_size", 0, InvalidInput),
        ("max_concurrency", 0, InvalidInput),
        ("max_calls", -1, InvalidInput),
        ("progress", "yes", InvalidType),
        ("cache", True, InvalidType),
        ("cache", "", InvalidInput),
        ("cache", ":memory:", InvalidInput),
    ],
)
def test_options_are_checked(argument, value, kind):
    with pytest.raises(kind) as caught:
        JudgeMatcher(**{"judge": holds, argument: value})
    assert caught.value.argument == argument  # type: ignore[attr-defined]


class Strict(Matcher):
    """Looks at the question, pair by pair."""

    def similarity(self, actual, predicted, *, question):
        return float(question.rstrip("?").lower() in predicted.page_content)


class Together(Matcher):
    """Looks at the question, many pairs at a time, prepared."""

    def prepare(self, text):
        return text.upper()

    def similarity(self, actual, predicted):
        raise AssertionError("pairs come together")

    def similarities(self, actual, predicted, question=""):
        return np.array(
            [[float(question.rstrip("?").upper() in p) for p in predicted] for _ in actual]
        )


class Maybe(Matcher):
    """Looks at the question if there is one."""

    def similarity(self, actual, predicted, question="b?"):
        return float(question.rstrip("?") in predicted.page_content)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("matcher", [Strict(), Together(), Maybe()])
def test_a_matcher_of_a_users_own_gets_the_question(matcher, n_jobs):
    """A is in the first document of its query, b in the second of its own."""
    evaluator = OfflineRetrievalEvaluator(
        [["x"], ["x"]], [["a", "b"], ["a", "b"]], matcher=matcher, queries=["A?".lower(), "b?"],
        n_jobs=n_jobs,
    )  # fmt: skip
    assert evaluator.calculate_mrr(k=2) == {"mrr": 0.75}


def test_where_no_question_is_known_a_default_stands():
    lists = [["x"], ["x"]], [["a", "b"], ["a", "b"]]
    assert OfflineRetrievalEvaluator(*lists, matcher=Maybe()).calculate_mrr(k=2) == {"mrr": 0.5}
    with pytest.raises(InvalidInput) as caught:
        OfflineRetrievalEvaluator(*lists, matcher=Strict()).calculate_mrr(k=2)
    assert caught.value.argument == "queries"


def test_a_diagnosis_asks_with_the_question():
    """In deeper lists; an index knows no questions, so a judge cannot search it."""
    seen = Asked()
    evaluator = OfflineRetrievalEvaluator(
        [["x"]], [["a"]], matcher=JudgeMatcher(seen), queries=["Where?"]
    )
    with pytest.warns(KragEvalWarning):
        result = evaluator.evaluate(k=1)
    diagnosis = result.diagnose(deeper={"Where?": ["a", "b", "an x"]})
    assert diagnosis.counts["ranked_too_low"] == 1
    assert {question for question, *_ in seen.calls} == {"Where?"}
    with pytest.raises(InvalidInput) as caught:
        result.diagnose(index=["an x", "a"])
    assert caught.value.argument == "index"


def test_a_combination_looks_at_what_its_parts_look_at():
    """The question, if one of them does."""
    lists = [["x"]], [["a", "b"]]
    both = Strict() & Matcher.from_function(lambda actual, predicted: 1.0, name="yes")
    evaluator = OfflineRetrievalEvaluator(*lists, matcher=both, queries=["b?"])
    assert evaluator.calculate_mrr(k=2) == {"mrr": 0.5}
    with pytest.warns(KragEvalWarning):
        result = OfflineRetrievalEvaluator([["x"]], [["a"]], matcher=both, queries=["b?"]).evaluate(
            k=1
        )
    with pytest.raises(InvalidInput) as caught:
        result.diagnose(index=["a", "b"])
    assert caught.value.argument == "index"
