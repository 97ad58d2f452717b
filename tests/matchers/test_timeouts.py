"""Time limits on judges and embeddings, and the threads that calls without an end are left in."""

import _thread
import asyncio
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from krag_eval import EmbeddingMatcher, JudgeMatcher
from krag_eval.asking.timeouts import Threads, any_lost, in_thread
from krag_eval.core import QuerySet

DOCUMENTS = [f"d{i}" for i in range(6)]
LAST = DOCUMENTS[-1]


def queries():
    return QuerySet.from_lists([["a"]], [DOCUMENTS], ["?"])


class Hanging:
    """Judges that never return for the last document, until they are let go."""

    def __init__(self):
        self.released = threading.Event()

    def waits(self, question, actual, predicted):
        """Wait in a thread."""
        if predicted == LAST:
            self.released.wait()
        return True

    async def awaits(self, question, actual, predicted):
        """Wait as a coroutine should."""
        while predicted == LAST and not self.released.is_set():
            await asyncio.sleep(0.01)
        return True

    async def swallows(self, question, actual, predicted):
        """Go on when it is cancelled."""
        while predicted == LAST and not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return True

    async def holds_up_the_loop(self, question, actual, predicted):
        """Wait without awaiting."""
        return self.waits(question, actual, predicted)


@pytest.fixture
def hanging():
    judge = Hanging()
    yield judge
    judge.released.set()


WAYS = ["waits", "awaits", "swallows", "holds_up_the_loop"]


@pytest.mark.parametrize("way", WAYS)
def test_a_judge_that_takes_too_long_has_failed(hanging, tmp_path, way):
    """The five judgements before it are kept, and asked for no more."""
    judge, file = getattr(hanging, way), tmp_path / "judged.sqlite"
    matcher = JudgeMatcher(judge, version="1", cache=file, timeout=0.3, max_concurrency=1)
    with pytest.raises(TimeoutError):
        matcher.match(queries())
    assert matcher.cost.judged == 5
    hanging.released.set()
    again = JudgeMatcher(judge, version="1", cache=file, max_concurrency=1)
    assert len(again.match(queries())) == 6
    assert (again.cost.judged, again.cost.kept) == (1, 5)


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_judge_that_never_returns(hanging, way):
    """A KeyboardInterrupt, as by Ctrl-C; what was judged is kept, and the next one works."""
    matcher = JudgeMatcher(getattr(hanging, way), max_concurrency=1)

    def interrupt():
        while matcher.cost.calls < 6:
            time.sleep(0.01)
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        matcher.match(queries())
    assert matcher.cost.judged == 5
    assert len(JudgeMatcher(lambda question, actual, predicted: True).match(queries())) == 6


def test_a_timeout_is_no_part_of_what_a_judge_is():
    """It changes no judgement, so signatures, and what is kept, are the same."""
    made = [JudgeMatcher(lambda *_: True, version="1", timeout=one) for one in (None, 60)]
    assert [len(one.match(queries())) for one in made] == [6, 6]
    assert made[0].signature == made[1].signature
    assert made[0]._known.keys() == made[1]._known.keys()


class Model:
    """Embeddings that never come for one text."""

    def __init__(self, released):
        self.released = released

    def embed_documents(self, texts):
        if LAST in texts:
            self.released.wait()
        return [[1.0, float(len(text))] for text in texts]


def test_embeddings_that_take_too_long_have_failed(hanging):
    """What came before is in the cache; those in time are those without a timeout."""
    cache, model = {}, Model(hanging.released)
    matcher = EmbeddingMatcher(model, 0.5, batch_size=1, timeout=0.3, cache=cache)
    with pytest.raises(TimeoutError):
        matcher.match(queries())
    assert [*cache] == ["a", *DOCUMENTS[:-1]]
    hanging.released.set()
    free = EmbeddingMatcher(model, 0.5)
    assert matcher.signature == free.signature
    assert np.array_equal(matcher.match(queries()).similarity, free.match(queries()).similarity)


def test_what_a_call_in_a_thread_raises_is_raised_here():
    with pytest.raises(KeyError):
        in_thread(60, lambda: {}["x"])


def test_a_lost_thread_is_replaced_and_not_waited_for(hanging):
    """A pool of one thread, whose call was given up, does the next one and ends."""
    threads = Threads(1)
    begun = threading.Event()

    def hangs():
        begun.set()
        hanging.released.wait()

    lost = threads.submit(hangs)
    assert begun.wait(10)
    assert not lost.cancel()
    assert (threads.n_lost, any_lost()) == (1, True)
    assert threads.submit(lambda: 5).result(10) == 5
    threads.shutdown()
    hanging.released.set()
    lost.result(10)
    assert threads.n_lost == 0


def test_no_more_threads_work_than_may():
    """By hand: of five calls that take a moment, at most two at a time."""
    at_work, most, guard = [], [], threading.Lock()

    def works():
        with guard:
            at_work.append(1)
            most.append(len(at_work))
        time.sleep(0.02)
        with guard:
            at_work.pop()

    with Threads(2) as threads:
        for one in [threads.submit(works) for _ in range(5)]:
            one.result(10)
    assert max(most) == 2


def test_what_has_not_begun_is_cancelled_and_never_runs(hanging):
    ran = []
    with Threads(1) as threads:
        first = threads.submit(hanging.released.wait)
        second = threads.submit(ran.append, 1)
        assert second.cancel()
        hanging.released.set()
        assert first.result(10)
    assert ran == []
