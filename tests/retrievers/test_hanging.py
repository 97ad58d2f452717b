"""Retrievers and agents that never return: time limits, lost threads, and Ctrl-C."""

from __future__ import annotations

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
from retriever_samples import Numbered, passage, question, rows

import krag_eval
from krag_eval import (
    RetrievalRecorder,
    aevaluate_retriever,
    evaluate_agent,
    evaluate_retriever,
    evaluate_retrievers,
    sweep,
)
from krag_eval.errors import InvalidInput, InvalidType

# Failures are told in a warning, which other tests look at.
pytestmark = pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")

FIRST_TO_HANG = 5


class Hanging:
    """Retrievers that never answer from the sixth question on, until they are let go."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked = 0

    def hangs(self, asked: str) -> bool:
        self.asked += 1
        return number(asked) >= FIRST_TO_HANG and not self.released.is_set()

    def waits(self, asked: str) -> list[str]:
        """Wait in a thread."""
        if self.hangs(asked):
            self.released.wait()
        return [passage(number(asked))]

    def runs(self, asked: str) -> list[str]:
        """Run Python without end."""
        if self.hangs(asked):
            while not self.released.is_set():
                pass
        return [passage(number(asked))]

    def yields(self, asked: str) -> Any:
        """Yield lists, which LangChain puts together, without end."""
        yield [passage(number(asked))]
        if self.hangs(asked):
            while not self.released.is_set():
                yield []

    async def awaits(self, asked: str) -> list[str]:
        """Wait as a coroutine should."""
        if self.hangs(asked):
            await asyncio.sleep(1e6)
        return [passage(number(asked))]

    async def swallows(self, asked: str) -> list[str]:
        """Go on when it is cancelled."""
        self.asked += 1
        while number(asked) >= FIRST_TO_HANG and not self.released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return [passage(number(asked))]

    async def holds_up_the_loop(self, asked: str) -> list[str]:
        """Wait without awaiting."""
        return self.waits(asked)

    @property
    def chain(self) -> Any:
        """Wait in a thread of LangChain's."""
        both = RunnableParallel(context=RunnableLambda(self.waits), question=RunnablePassthrough())
        return both | RunnableLambda(lambda found: found["context"])

    @property
    def base_retriever(self) -> Any:
        """Wait as a retriever of LangChain's."""
        waits = self.waits

        class Waiting(Numbered):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
                waits(query)
                return super()._get_relevant_documents(query, run_manager=run_manager)

        return Waiting()


def number(asked: str) -> int:
    return int(asked.split()[-1].rstrip("?"))


@pytest.fixture
def hanging() -> Any:
    retriever = Hanging()
    yield retriever
    retriever.released.set()


WAYS = ["waits", "runs", "yields", "awaits", "swallows", "holds_up_the_loop", "chain",
        "base_retriever"]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_query_that_takes_too_long_failed(hanging: Hanging, way: str) -> None:
    """By hand: of six questions, the last has no answer; asked again, it has."""
    retriever = getattr(hanging, way)
    result = evaluate_retriever(retriever, rows(6), 1, timeout=0.5, max_concurrency=1)
    assert result.failures["position"].tolist() == [5]
    assert result.failures["type"].tolist() == ["TimeoutError"]
    assert result.to_dict()["hit_rate@1"] == 5 / 6
    hanging.released.set()
    assert result.retry_failed(timeout=60).to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize("way", ["waits", "awaits", "chain", "base_retriever"])
def test_asynchronously_too(hanging: Hanging, way: str) -> None:
    """And the end of the loop waits for no thread."""
    retriever = getattr(hanging, way)
    soon = aevaluate_retriever(retriever, rows(6), 1, timeout=0.5, max_concurrency=1)
    assert asyncio.run(soon).failures["position"].tolist() == [5]


def test_a_retriever_in_time_is_not_touched(hanging: Hanging) -> None:
    hanging.released.set()
    for retriever in (hanging.waits, hanging.awaits):
        result = evaluate_retriever(retriever, rows(20), 1, timeout=60)
        assert result.failures.empty
        assert result.to_dict()["hit_rate@1"] == 1


def test_a_lost_call_frees_its_place(hanging: Hanging) -> None:
    """One of two places is lost for good, and all other questions are asked."""
    dataset = [*rows(5), {"question": "5", "actual": [passage(5)]},
               *({**row, "question": f"again {i}"} for i, row in enumerate(rows(5)))]  # fmt: skip
    result = evaluate_retriever(hanging.waits, dataset, 1, timeout=0.5, max_concurrency=2)
    assert result.failures["position"].tolist() == [5]


@pytest.mark.parametrize("way", ["waits", "swallows", "holds_up_the_loop", "chain"])
def test_after_as_many_lost_calls_as_places_nothing_more_is_asked(
    hanging: Hanging, tmp_path: Path, way: str
) -> None:
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


def test_a_run_that_answers_nothing_is_an_error(hanging: Hanging) -> None:
    """As with any other error; the note says that calls never returned."""
    dataset = [{"question": str(FIRST_TO_HANG + i), "actual": ["a"]} for i in range(9)]
    with pytest.raises(TimeoutError) as caught:
        evaluate_retriever(hanging.waits, dataset, 1, timeout=0.3, max_concurrency=2)
    assert len(caught.value.__notes__) == 2
    recorded = evaluate_retriever(
        hanging.waits, dataset, 1, timeout=0.3, max_concurrency=2, on_error="record"
    )
    assert len(recorded.failures) == 9


def test_the_first_is_raised_if_asked_for(hanging: Hanging) -> None:
    with pytest.raises(TimeoutError):
        evaluate_retriever(hanging.waits, rows(40), 1, timeout=0.3, on_error="raise")


def test_an_agent_that_takes_too_long_failed(hanging: Hanging) -> None:
    """What it searched for before is in the recorder, the question it never answered too."""
    recorder = RetrievalRecorder()
    search = recorder.wrap(Numbered(), name="search")

    def answers(state: Any) -> str:
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


def test_several_retrievers_each_have_the_limit(hanging: Hanging) -> None:
    compared = evaluate_retrievers(
        {"fine": Numbered(), "slow": hanging.waits}, rows(6), 1, timeout=0.5
    )
    failures = [len(one.failures) for one in compared.results.values()]
    assert failures == [0, 1]


def test_a_sweep_has_the_limit(hanging: Hanging, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("timeout", "kind"), [(0, InvalidInput), (-1, InvalidInput), ("5", InvalidType)]
)
def test_a_timeout_is_checked_before_anything_is_asked(
    hanging: Hanging, timeout: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        evaluate_retriever(hanging.waits, rows(6), 1, timeout=timeout)
    assert caught.value.argument == "timeout"  # type: ignore[attr-defined]
    assert hanging.asked == 0


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_run(hanging: Hanging, tmp_path: Path, way: str) -> None:
    """A KeyboardInterrupt in this thread; what was answered is kept, and the process goes on."""
    path = tmp_path / "run.jsonl"

    def interrupt() -> None:
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
import threading
from langchain_core.runnables import RunnableLambda, RunnableParallel
from retriever_samples import passage, rows
from krag_eval import evaluate_retriever

def found(asked):
    number = int(asked.split()[-1].rstrip("?"))
    if number >= 5:
        print("hanging", flush=True)
        time.sleep(1e6)
    return [passage(number)]

chain = RunnableParallel(context=RunnableLambda(found), same=RunnableLambda(lambda asked: asked))
result = evaluate_retriever(
    chain, rows(6), 1, output_key="context", checkpoint={path!r}, checkpoint_key="it",
    max_concurrency=1, timeout={timeout},
)
print(len(result.failures), flush=True)
"""


def script(path: Path, timeout: float | None) -> list[str]:
    here = Path(__file__).parent
    package = str(Path(krag_eval.__file__).parents[1])
    code = SCRIPT.format(here=str(here), package=package, path=str(path), timeout=timeout)
    return [sys.executable, "-c", code]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_a_script(tmp_path: Path) -> None:
    """Also where threads of LangChain hang, which Python waits for at its end otherwise."""
    path = tmp_path / "run.jsonl"
    with subprocess.Popen(script(path, None), stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        try:
            assert run.stdout.readline() == b"hanging\n"
            run.send_signal(signal.SIGINT)
            assert run.wait(10) == -signal.SIGINT  # as of every script that Ctrl-C ends
        finally:
            run.kill()
    assert len(path.read_text().splitlines()) == 1 + 5


def test_a_script_ends_although_a_call_never_returned(tmp_path: Path) -> None:
    done = subprocess.run(
        script(tmp_path / "run.jsonl", 0.5), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["hanging", "1"]
    assert done.returncode == 0


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


class Shelled:
    """A sweep in the shell of one retriever that hangs at the fourth of ten questions."""

    def __init__(self, folder: Path, retriever: str, *, corpus: str = "", splitter: str) -> None:
        (folder / "rag_that_hangs.py").write_text(RAG)
        (folder / "text.txt").write_text("Rule one. Rule two.")
        lines = [json.dumps({"question": f"{i}?", "actual": ["Rule one."]}) for i in range(10)]
        (folder / "questions.jsonl").write_text("\n".join(lines))
        texts = f'{{call = "rag_that_hangs:{corpus}"}}' if corpus else '"text.txt"'
        (folder / "sweep.toml").write_text(
            f'corpus = {texts}\nquestions = "questions.jsonl"\n'
            f"max_concurrency = 1\nbudget = false\n"
            f'folder = "kept"\n[splitters]\nit = "rag_that_hangs:{splitter}"\n'
            f'[retrievers]\nit = "rag_that_hangs:{retriever}"\n'
        )
        self.folder = folder

    def command(self, *options: str) -> dict[str, Any]:
        package = str(Path(krag_eval.__file__).parents[1])
        return {
            "args": [sys.executable, "-m", "krag_eval", "sweep", str(self.folder / "sweep.toml"),
                     *options],
            "env": {**os.environ, "PYTHONPATH": package},
            "cwd": self.folder,
        }  # fmt: skip

    def interrupted(self, times: int) -> int:
        """Return the exit code after Ctrl-C, pressed as often as that."""
        with subprocess.Popen(
            **self.command(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
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

    @property
    def kept(self) -> int:
        return sum(len(one.read_text().splitlines()) - 1 for one in self.folder.rglob("*.jsonl")
                   if one.name == "answers.jsonl")  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("retriever", ["hanging", "looping", "pooled"])
def test_ctrl_c_ends_the_shell(tmp_path: Path, retriever: str, times: int) -> None:
    shelled = Shelled(tmp_path, retriever, splitter="whole")
    assert shelled.interrupted(times) == 130
    assert shelled.kept == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize(
    "parts",
    [{"retriever": "in_c", "splitter": "whole"},
     {"retriever": "fine", "splitter": "whole", "corpus": "endless"},
     {"retriever": "fine", "splitter": "cut_without_end"}],
)  # fmt: skip
def test_ctrl_c_ends_what_runs_in_the_main_thread(tmp_path: Path, parts: Any) -> None:
    """Code in C that never looks at signals, and iterables without end."""
    assert Shelled(tmp_path, **parts).interrupted(1) == 130


def test_the_shell_takes_a_timeout(tmp_path: Path) -> None:
    """By hand: three answers of ten; the only place is lost, so the rest is not asked."""
    shelled = Shelled(tmp_path, "pooled", splitter="whole")
    done = subprocess.run(
        **shelled.command("--timeout", "0.5", "--format", "json"), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert "TimeoutError" in done.stderr
    assert shelled.kept == 3


def test_a_sweep_file_may_hold_it(tmp_path: Path) -> None:
    shelled = Shelled(tmp_path, "hanging", splitter="whole")
    file = tmp_path / "sweep.toml"
    file.write_text("timeout = 0.5\n" + file.read_text())
    done = subprocess.run(**shelled.command(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, shelled.kept) == (0, 3)
