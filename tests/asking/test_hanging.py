"""Retrievers and agents that never return: time limits, lost threads, and Ctrl-C."""

import _thread
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from places import SHARED
from retriever_samples import Numbered, number_in as number, passage, question, rows

import krag_eval
from krag_eval import (
    RetrievalRecorder,
    aevaluate_retriever,
    evaluate_agent,
    evaluate_retriever,
    evaluate_retrievers,
    sweep,
)
from krag_eval.asking import timeouts
from krag_eval.cli import main

# Failures are told in a warning, which other tests look at.
pytestmark = pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")

FIRST_TO_HANG = 5
PACKAGE = str(Path(krag_eval.__file__).parents[1])
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")


class Hanging:
    """Retrievers that never answer from the sixth question on, until they are let go."""

    def __init__(self):
        self.released = threading.Event()
        self.asked = 0

    def hangs(self, asked):
        self.asked += 1
        return number(asked) >= FIRST_TO_HANG and not self.released.is_set()

    def waits(self, asked):
        """Wait in a thread."""
        if self.hangs(asked):
            self.released.wait()
        return [passage(number(asked))]

    def runs(self, asked):
        """Run Python without end."""
        if self.hangs(asked):
            while not self.released.is_set():
                pass
        return [passage(number(asked))]

    def yields(self, asked):
        """Yield lists, which LangChain puts together, without end."""
        yield [passage(number(asked))]
        if self.hangs(asked):
            while not self.released.is_set():
                yield []

    async def awaits(self, asked):
        """Wait as a coroutine should."""
        if self.hangs(asked):
            await asyncio.sleep(1e6)
        return [passage(number(asked))]

    async def swallows(self, asked):
        """Go on when it is cancelled."""
        self.asked += 1
        while number(asked) >= FIRST_TO_HANG and not self.released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return [passage(number(asked))]

    async def holds_up_the_loop(self, asked):
        """Wait without awaiting."""
        return self.waits(asked)

    @property
    def chain(self):
        """Wait in a thread of LangChain's."""
        both = RunnableParallel(context=RunnableLambda(self.waits), question=RunnablePassthrough())
        return both | RunnableLambda(lambda found: found["context"])

    @property
    def base_retriever(self):
        """Wait as a retriever of LangChain's."""
        waits = self.waits

        class Waiting(Numbered):
            def _get_relevant_documents(self, query, *, run_manager):
                waits(query)
                return super()._get_relevant_documents(query, run_manager=run_manager)

        return Waiting()


@pytest.fixture
def hanging(monkeypatch):
    monkeypatch.setattr(timeouts, "GRACE", 0.2)
    retriever = Hanging()
    yield retriever
    retriever.released.set()


WAYS = ["waits", "runs", "yields", "awaits", "swallows", "holds_up_the_loop", "chain",
        "base_retriever"]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_query_that_takes_too_long_failed(hanging, way):
    """By hand: of six questions, the last has no answer; asked again, it has."""
    retriever = getattr(hanging, way)
    result = evaluate_retriever(retriever, rows(6), 1, timeout=0.5, max_concurrency=1)
    assert result.failures["position"].tolist() == [5]
    assert result.failures["type"].tolist() == ["TimeoutError"]
    assert result.to_dict()["hit_rate@1"] == 5 / 6
    hanging.released.set()
    assert result.retry_failed(timeout=60).to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize("way", ["waits", "awaits", "chain", "base_retriever"])
def test_asynchronously_too(hanging, way):
    """And the end of the loop waits for no thread; answers in time are not touched."""
    retriever = getattr(hanging, way)
    soon = aevaluate_retriever(retriever, rows(6), 1, timeout=0.5, max_concurrency=1)
    assert asyncio.run(soon).failures["position"].tolist() == [5]
    hanging.released.set()
    assert evaluate_retriever(retriever, rows(20), 1, timeout=60)["hit_rate@1"] == 1


def test_a_lost_call_frees_its_place(hanging):
    """One of two places is lost for good, and all other questions are asked."""
    dataset = [*rows(5), {"question": "5", "actual": [passage(5)]},
               *({**row, "question": f"again {i}"} for i, row in enumerate(rows(5)))]  # fmt: skip
    result = evaluate_retriever(hanging.waits, dataset, 1, timeout=0.5, max_concurrency=2)
    assert result.failures["position"].tolist() == [5]


@pytest.mark.parametrize("way", ["waits", "swallows", "holds_up_the_loop", "chain"])
def test_after_as_many_lost_calls_as_places_nothing_more_is_asked(hanging, tmp_path, way):
    """What was answered is kept, in the result and in the file; the rest is asked later."""
    path, retriever = tmp_path / "run.jsonl", getattr(hanging, way)
    options: dict[str, Any] = {"checkpoint": path, "checkpoint_key": "it", "max_concurrency": 2}
    result = evaluate_retriever(retriever, rows(40), 1, timeout=0.5, **options)
    assert set(result.failures["type"]) == {"TimeoutError"}
    answered = 40 - len(result.failures)
    assert 4 <= answered <= 5
    assert len(path.read_text().splitlines()) == 1 + answered
    assert hanging.asked <= answered + 4
    hanging.released.set()
    before = hanging.asked
    again = evaluate_retriever(retriever, rows(40), 1, **options)
    assert again.to_dict()["hit_rate@1"] == 1
    assert hanging.asked - before == 40 - answered


def test_a_run_that_answers_nothing_is_an_error(hanging):
    """As with any other error; the note says that calls never returned."""
    dataset = [{"question": str(FIRST_TO_HANG + i), "actual": ["a"]} for i in range(9)]
    options: dict[str, Any] = {"timeout": 0.3, "max_concurrency": 2}
    with pytest.raises(TimeoutError) as caught:
        evaluate_retriever(hanging.waits, dataset, 1, **options)
    assert len(caught.value.__notes__) == 2
    recorded = evaluate_retriever(hanging.waits, dataset, 1, **options, on_error="record")
    assert len(recorded.failures) == 9
    with pytest.raises(TimeoutError):  # the first is raised if asked for
        evaluate_retriever(hanging.waits, rows(40), 1, timeout=0.3, on_error="raise")


def test_an_agent_that_takes_too_long_failed(hanging):
    """What it searched for before is in the recorder, the question it never answered too."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(Numbered(), name="search")

    def answers(state):
        asked = state["messages"][0]["content"]
        search.invoke(asked)
        hanging.waits(asked)
        return "done"

    kept = RetrievalRecorder()
    result = evaluate_agent(
        RunnableLambda(answers), rows(6), 1, timeout=0.5, max_concurrency=1, recorder=kept
    )
    assert result.failures["type"].tolist() == ["TimeoutError"]
    assert kept.records["question"].tolist() == [question(i) for i in range(6)]


def test_several_retrievers_each_have_the_limit(hanging):
    compared = evaluate_retrievers(
        {"fine": Numbered(), "slow": hanging.waits}, rows(6), 1, timeout=0.5
    )
    failures = [len(one.failures) for one in compared.results.values()]
    assert failures == [0, 1]


def test_a_sweep_has_the_limit(hanging, tmp_path):
    """Another limit is no other sweep: what was answered is taken from the folder."""
    corpus = [passage(i) for i in range(6)]
    made = {"it": lambda chunks: hanging.waits}
    swept: Any = {"k": 1, "budget": None, "folder": tmp_path, "progress": False}
    first = sweep(corpus, rows(6), {"whole": lambda text: [text]}, made, timeout=0.5, **swept)
    assert len(first.cells[0].result.failures) == 1
    hanging.released.set()
    asked = hanging.asked
    again = sweep(corpus, rows(6), {"whole": lambda text: [text]}, made, timeout=9, **swept)
    assert again.cells[0].result.failures.empty
    assert hanging.asked == asked + 1


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_run(hanging, tmp_path, way):
    """A KeyboardInterrupt in this thread; what was answered is kept, and the process goes on."""
    path = tmp_path / "run.jsonl"

    def interrupt():
        while hanging.asked <= FIRST_TO_HANG:
            time.sleep(0.01)
        _thread.interrupt_main()

    if way == "yields":  # its first answer of a list is not counted
        hanging.asked = FIRST_TO_HANG
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        evaluate_retriever(getattr(hanging, way), rows(6), 1, checkpoint=path, max_concurrency=1)
    kept = len(path.read_text().splitlines()) - 1
    assert kept == (5 if way != "yields" else kept)
    assert evaluate_retriever(Numbered(), rows(6), 1).to_dict()["hit_rate@1"] == 1


SCRIPT = """
import sys, time
sys.path[:0] = [{here!r}, {package!r}]
from langchain_core.runnables import RunnableLambda, RunnableParallel
from retriever_samples import number_in, passage, rows
from krag_eval import evaluate_retriever

def found(asked):
    if number_in(asked) >= 5:
        print("hanging", flush=True)
        time.sleep(1e6)
    return [passage(number_in(asked))]

context = RunnableLambda(found)
chain = RunnableParallel(context=context, same=RunnableLambda(lambda asked: asked))
if {alone}:
    chain = RunnableLambda(lambda asked: {{"context": found(asked)}})
result = evaluate_retriever(
    chain, rows(6), 1, output_key="context", checkpoint="run.jsonl", checkpoint_key="it",
    max_concurrency=1, timeout={timeout},
)
print(len(result.failures), flush=True)
"""


def script(timeout, *, alone):
    """Return a script whose sixth question hangs: in one call, or in a pool of LangChain's."""
    code = SCRIPT.format(here=str(SHARED), package=PACKAGE, timeout=timeout, alone=alone)
    return [sys.executable, "-c", code]


def interrupted(command, folder, times=1):
    """Return the exit code after Ctrl-C, pressed as often as that as soon as it hangs."""
    here = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": PACKAGE}}
    with subprocess.Popen(
        command, **here, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None
        try:
            while run.stdout.readline().strip() != b"hanging":
                assert run.poll() is None
            for _ in range(times):
                run.send_signal(signal.SIGINT)
                time.sleep(0.2)
            return run.wait(10)
        finally:
            run.kill()


def n_kept(folder, name="answers.jsonl"):
    return sum(len(one.read_text().splitlines()) - 1 for one in folder.rglob(name))


@posix
@pytest.mark.parametrize(("alone", "times"), [(True, 1), (False, 20)])
def test_ctrl_c_ends_a_script(tmp_path, alone, times):
    """Pressed again where a thread of LangChain's pool hangs, which Python waits for at its end."""
    assert interrupted(script(None, alone=alone), tmp_path, times) == -signal.SIGINT
    assert n_kept(tmp_path, "run.jsonl") == 5


def test_a_script_ends_although_a_call_never_returned(tmp_path):
    """By hand: one of six questions has no answer."""
    done = subprocess.run(script(0.5, alone=True), capture_output=True, cwd=tmp_path, timeout=60)
    assert (done.stdout.split(), done.returncode) == ([b"hanging", b"1"], 0)


# The shell

RAG = """
import itertools, time

def whole(text):
    return [text]

def _retriever(chunks, hang):
    asked = itertools.count()
    def found(question):
        if next(asked) >= 3:
            print("hanging", flush=True)
            hang()
        return chunks
    return found

def hanging(chunks):
    return _retriever(chunks, lambda: time.sleep(1e6))

def looping(chunks):
    return _retriever(chunks, lambda: [None for _ in itertools.count()])

def pooled(chunks):
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(1)
    return _retriever(chunks, lambda: pool.submit(time.sleep, 1e6).result())

def in_c(chunks):
    import hashlib
    print("hanging", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"in the main thread, with no look at signals", b"", 2**31 - 1)

def fine(chunks):
    return lambda question: chunks

def endless():
    print("hanging", flush=True)
    return itertools.repeat("text")

def cut_without_end(text):
    print("hanging", flush=True)
    return itertools.repeat(text)
"""


def shelled(folder, retriever, *, splitter="whole", corpus='"text.txt"', **more):
    """Return the file of a sweep of one retriever, with ten questions."""
    (folder / "rag_that_hangs.py").write_text(RAG)
    (folder / "text.txt").write_text("Rule one. Rule two.")
    lines = [json.dumps({"question": f"{i}?", "actual": ["Rule one."]}) for i in range(10)]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    settings = {"max_concurrency": 1, "budget": "false", "folder": '"kept"', "corpus": corpus}
    told = [f"{name} = {value}\n" for name, value in (settings | more).items()]
    (folder / "sweep.toml").write_text(
        f'questions = "questions.jsonl"\n{"".join(told)}'
        f'[splitters]\nit = "rag_that_hangs:{splitter}"\n'
        f'[retrievers]\nit = "rag_that_hangs:{retriever}"\n'
    )
    return folder / "sweep.toml"


@posix
@pytest.mark.parametrize(
    ("parts", "times", "kept"),
    [
        # At the fourth of ten questions; a second Ctrl-C changes nothing.
        ({"retriever": "hanging"}, 1, 3),
        ({"retriever": "looping"}, 2, 3),
        ({"retriever": "pooled"}, 1, 3),
        ({"retriever": "pooled"}, 2, 3),
        # In the main thread: code in C that never looks at signals, and iterables without end.
        ({"retriever": "in_c"}, 1, 0),
        ({"retriever": "fine", "corpus": '{call = "rag_that_hangs:endless"}'}, 1, 0),
        ({"retriever": "fine", "splitter": "cut_without_end"}, 1, 0),
    ],
)
def test_ctrl_c_ends_the_shell(tmp_path, parts, times, kept):
    """Wherever it hangs; what was answered is kept."""
    command = [sys.executable, "-m", "krag_eval", "sweep", str(shelled(tmp_path, **parts))]
    assert interrupted(command, tmp_path, times) == 130
    assert n_kept(tmp_path) == kept


@pytest.mark.parametrize("way", ["option", "file"])
def test_the_shell_takes_a_timeout(tmp_path, way, monkeypatch, capfd):
    """By hand: three answers of ten; the only place is lost, so the rest is not asked."""
    file = shelled(tmp_path, "hanging", **({"timeout": 0.5} if way == "file" else {}))
    monkeypatch.delitem(sys.modules, "rag_that_hangs", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(file), *(["--timeout", "0.5"] if way == "option" else [])])
    assert (ended.value.code, n_kept(tmp_path)) == (0, 3)
    assert "TimeoutError" in capfd.readouterr().err
