"""n_jobs: work divided among processes changes nothing but the time it takes."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import joblib
import numpy as np
import pytest
from langchain_core.documents import Document
from matched import found

from krag_eval import (
    AnyOf,
    ContainsMatcher,
    CoverageMatcher,
    EmbeddingMatcher,
    FuzzyMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
    RougeMatcher,
)
from krag_eval.core import QuerySet, warn
from krag_eval.core.language import LANGUAGES, SPOKEN, language_of
from krag_eval.core.matching.numbering import numbered
from krag_eval.core.matching.parallel import check_n_jobs, in_processes, n_processes, processes
from krag_eval.errors import Advice, InvalidInput, InvalidType

TEXT = "the refund of an order takes five days after it was returned to our shop in town"
WORDS = TEXT.split()


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    """Have four cores, wherever the tests run, so that two and three processes are to be had."""
    monkeypatch.setattr(joblib, "cpu_count", lambda *_, **__: 4)


def texts(rng, n):
    """Return texts of 0 to 25 words, some of them blank."""
    return [" ".join(rng.choice(WORDS, size=rng.integers(0, 26))) for _ in range(n)]


def example():
    """Return ground truth (some with alternatives) and predictions of 40 queries."""
    rng = np.random.default_rng(5)
    actual, predicted = [], []
    for query in range(40):
        items = texts(rng, int(rng.integers(1, 4)))
        if query % 5 == 0:
            items[0] = AnyOf(texts(rng, 2))
        actual.append(items)
        # The first texts again: parts of the work share texts.
        predicted.append([*texts(rng, int(rng.integers(0, 6))), WORDS[0], *items[1:]])
    return actual, predicted


ACTUAL, PREDICTED = example()


def found_by(matcher, n_jobs, actual=ACTUAL, predicted=PREDICTED, team=""):
    """Return what a matcher finds with so many processes, and the warnings it gives."""
    queries = QuerySet.from_lists(actual, predicted)
    with warnings.catch_warnings(record=True, action="always") as caught, processes(n_jobs, team):
        matches = matcher.match(queries)
    columns = (matches.item, matches.rank, matches.similarity, matches.same_as)
    bits = [(column.dtype, column.tobytes()) for column in columns]
    return bits, [(str(one.message), one.category) for one in caught]


def in_two(matcher, *texts):
    """Let two processes compare each of some texts with another one."""
    with processes(2):
        return found(matcher, [[text] for text in texts], [["x"]] * len(texts))


class SharedLetters(Matcher):
    """A matcher of one's own, which prepares texts and warns of short ones."""

    def prepare(self, text):
        if len(text) == 3:
            warnings.warn("a text of three letters", RuntimeWarning, stacklevel=1)
        return frozenset(text)

    def similarity(self, actual, predicted):
        return len(actual & predicted) / len(actual | predicted)


class SameSource(Matcher):
    """A matcher that looks at whole documents."""

    def similarity(self, actual, predicted):
        return float(actual.metadata["source"] == predicted.metadata["source"])


@pytest.mark.parametrize(
    "matcher",
    [
        RougeMatcher("rouge1"),
        RougeMatcher("rouge2", statistic="recall", stemmer=True),
        RougeMatcher("rougeL", tokenizer=lambda text: text.split()),
        CoverageMatcher(min_run=2),
        CoverageMatcher(tokenizer="character"),
        FuzzyMatcher(),
        ContainsMatcher(),
        SharedLetters(),
        CoverageMatcher(min_run=2) & FuzzyMatcher("partial_ratio"),
        Matcher.from_function(lambda a, p: len(a.page_content) / 1000),
    ],
    ids=lambda matcher: matcher.signature,
)
def test_results_and_warnings_are_the_same_with_any_number_of_processes(matcher):
    """To the last bit, in the same order, each warning as often."""
    alone = found_by(matcher, None)
    assert len(alone[0][0][1]) > 0
    assert found_by(matcher, 2) == found_by(matcher, 3) == alone


def test_documents_reach_the_processes_whole():
    """Metadata included."""
    actual = [[Document("a", metadata={"source": n})] for n in range(4)]
    predicted = [[Document("b", metadata={"source": n}) for n in (1, 2)]] * 4
    with processes(2):
        assert found(SameSource(), actual, predicted) == [(1, 1, 1.0), (2, 2, 1.0)]


def test_morphemes_are_the_same_with_any_number_of_processes():
    """Each process loads a Kiwi of its own."""
    korean = ["나는 밥을 먹었다.", "집을 지었다.", "환불은 닷새가 걸립니다."]
    matcher = RougeMatcher("rouge1", tokenizer="kiwi")
    arguments = ([[text] for text in korean], [korean, korean[::-1], []])
    alone = found_by(matcher, None, *arguments)
    assert found_by(matcher, 2, *arguments, team="kiwi") == alone


def test_the_evaluator_divides_its_work():
    """And says nothing about it in the signature, since the numbers are the same."""
    with pytest.warns(KragEvalWarning, match="blank"):
        alone, divided = (
            OfflineRetrievalEvaluator(ACTUAL, PREDICTED, "rouge1", n_jobs=n_jobs).evaluate(k=3)
            for n_jobs in (None, 2)
        )
    assert divided.signature == alone.signature
    assert divided.to_dict() == alone.to_dict()


def same_process(actual, predicted):
    """Return a similarity that tells the process from this one."""
    return 1.0 if os.getpid() == int(actual.page_content) else 0.5


@pytest.mark.parametrize(("n_jobs", "expected"), [(2, 0.5), (1, 1.0), (None, 1.0)])
def test_the_work_is_done_by_other_processes(n_jobs, expected):
    """None of it by this one, with two; all of it, with one or without n_jobs."""
    with processes(n_jobs):
        told = found(Matcher.from_function(same_process), [[str(os.getpid())]] * 4, [["x"]] * 4)
    assert [similarity for *_, similarity in told] == [expected] * 4


def test_tokenizing_is_done_by_other_processes():
    """And each distinct text is sent once."""
    asked = (lambda text: [text, str(os.getpid())]), ["a", "b", "c", "d"]
    with processes(2):
        numbers = numbered(*asked)
    own = numbered(*asked)
    assert own.flat.tolist() == [0, 1, 2, 1, 3, 1, 4, 1]
    assert numbers.sizes.tolist() == own.sizes.tolist() == [2] * 4
    assert len({*numbers.flat.tolist()[::2]}) == 4


class Unsent:
    """A model that must not be sent: a copy of it for each process may not fit."""

    def __reduce__(self):
        raise AssertionError("sent")

    def embed_documents(self, some):
        return [[len(text), 1.0] for text in some]


def test_matchers_by_embedding_stay_in_this_process():
    one, other = (found_by(EmbeddingMatcher(Unsent(), 0.9), n_jobs) for n_jobs in (2, None))
    assert one == other


# --- what the work raises ----------------------------------------------------------------------


class OddError(Exception):
    """Cannot be pickled as it is."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Fails(Matcher):
    """Raises something for a text "c"."""

    def __init__(self, make):
        self.make = make

    def similarity(self, actual, predicted):
        if actual.page_content == "c":
            raise self.make()
        return 1.0


def no_such_method(text):
    return text.spilt()


def lost(text):
    return [] if text == "c" else [text]


@pytest.mark.parametrize(
    ("matcher", "kind", "told"),
    [
        (Fails(lambda: KeyError("no such text: c")), KeyError, "no such text: c"),
        # Its class wants other arguments than it hands on.
        (Fails(lambda: OddError("one", "two")), OddError, "one and two"),
        (Fails(lambda: TypeError("bug")), TypeError, "bug"),
        (Fails(lambda: 1 / 0), ZeroDivisionError, "by zero"),
        (RougeMatcher("rouge1", tokenizer=no_such_method), AttributeError, "spilt"),
        # Refusals of ours, which the shell shows in one line; the place is among all queries.
        (RougeMatcher("rouge1", tokenizer=lost), InvalidInput, "yields no token for 'c'"),
        (Matcher.from_function(lambda a, p: 7.0 if a.page_content == "c" else 1.0, name="odd"),
         InvalidInput, r"matcher odd: .* got 7.0 for actual_docs\[2\]\[0\]"),
    ],
)  # fmt: skip
def test_an_error_is_the_same_with_and_without_processes(matcher, kind, told):
    """A bug does not become bad input on its way."""
    held = []
    for n_jobs in (2, None):
        with processes(n_jobs), pytest.raises(kind, match=told) as caught:
            found(matcher, [["a"], ["b"], ["c"], ["d"]], [["x"]] * 4)
        assert type(caught.value) is kind
        held.append(vars(caught.value) | {"__notes__": []})
    assert held[0] == held[1]


def test_after_an_error_no_further_work_is_begun(tmp_path):
    """What has begun is finished; of 8 parts, the last are never asked for."""

    def similarity(actual, predicted):
        (tmp_path / actual.page_content).touch()
        if actual.page_content == "0":
            raise ValueError("no")
        time.sleep(1)
        return 1.0

    with pytest.raises(ValueError, match="no"):
        in_two(Matcher.from_function(similarity), *"01234567")
    begun = len(list(tmp_path.iterdir()))
    assert begun < 8
    time.sleep(0.1)
    assert len(list(tmp_path.iterdir())) == begun


class PlaceError(Exception):
    """Says more than its message."""

    def __init__(self, message, place):
        super().__init__(message)
        self.place = place


@pytest.mark.parametrize(("place", "kept"), [("there", {"place": "there"}), (None, {})])
def test_an_error_keeps_what_it_holds_if_that_can_be_sent(place, kept):
    """A lock cannot."""

    def make():
        return PlaceError("lost", threading.Lock() if place is None else place)

    with pytest.raises(PlaceError, match="lost") as caught:
        in_two(Fails(make), "c", "b")
    held = vars(caught.value)
    assert "in similarity" in "".join(held.pop("__notes__"))  # there it was raised
    assert held == kept


# --- interruption ------------------------------------------------------------------------------

SLEEPING = """
import time
from krag_eval import Matcher, OfflineRetrievalEvaluator

def sleep(actual, predicted):
    print("at work\\n", end="", flush=True)  # in one piece, though two write at once
    time.sleep(300)
    return 1.0

texts = [[str(number)] for number in range(8)]
try:
    OfflineRetrievalEvaluator(
        texts, texts, matcher=Matcher.from_function(sleep), n_jobs=2
    ).calculate_recall()
except KeyboardInterrupt:
    print("interrupted\\n", end="", flush=True)
    input()
"""


def workers_of(session):
    """Return joblib's processes in a session that live."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_text()
            if os.getsid(int(pid)) == session and "LokyProcess" in command:
                found.append(int(pid))
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_at_work(how):
    """After an interruption, though the one that asked lives on; and after it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout.readline() == "at work\n"
        assert workers_of(process.pid)
        process.send_signal(how)
        if how == signal.SIGINT:
            assert "interrupted\n" in iter(process.stdout.readline, "")
        for _ in range(600):  # a minute; the work itself takes 20
            if not workers_of(process.pid):
                break
            time.sleep(0.1)
        left = workers_of(process.pid)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        process.kill()
    assert left == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_warning_keeps_its_advice_and_language(language):
    """What to do is worded by who shows the warning, and other processes do not know in what."""

    def similarity(actual, predicted):
        warn(f"In {language_of()}.", Advice("try {}", matcher="text"))
        return 1.0

    spoken = SPOKEN.set(language)
    with pytest.warns(KragEvalWarning) as caught:
        in_two(Matcher.from_function(similarity), "a", "b")
    SPOKEN.reset(spoken)
    (warning,) = (one.message for one in caught)
    assert warning.problem == f"In {language}."
    assert dict(warning.fix.settings) == {"matcher": "text"}


class Unsendable(SameSource):
    """Holds what no process can give away, or cannot be made anew."""

    def __init__(self, lock):
        self.lock = lock

    def __setstate__(self, state):
        raise OSError("the model's file is not on this machine")


@pytest.mark.parametrize(
    ("lock", "reason"), [(threading.Lock(), "TypeError: .*lock"), (1, "OSError: the model's file")]
)
def test_a_matcher_that_cannot_be_sent_is_refused_with_the_remedy(lock, reason):
    """Before any work is done, or where it does not arrive."""
    told = rf"the matcher Unsendable.* cannot be sent to another process \({reason}"
    with pytest.raises(InvalidType, match=told) as caught:
        in_two(Unsendable(lock), "a", "a")
    assert caught.value.argument == "n_jobs"
    assert "make what cannot be pickled" in str(caught.value.fix)


class LoadsOnce(Matcher):
    """Counts how often its process made it."""

    made = 0

    def __init__(self):
        self.model = None

    def __setstate__(self, state):
        type(self).made += 1
        self.__dict__ = state

    def similarity(self, actual, predicted):
        """Return 1 if this process made the matcher once."""
        time.sleep(0.01)
        return 1.0 if type(self).made == 1 else 0.5


def test_each_process_makes_the_matcher_once():
    """However many parts the work has."""
    assert {similarity for *_, similarity in in_two(LoadsOnce(), *"a" * 40)} == {1.0}


# --- how many ----------------------------------------------------------------------------------


def test_any_other_integer_is_taken():
    """Numpy's too; -1 is one process per core, as in joblib."""
    assert [check_n_jobs(n) for n in (None, 3, np.int64(2), -2)] == [None, 3, 2, -2]
    with processes(-1):
        assert n_processes() == min(4, joblib.effective_n_jobs(-1))


@pytest.mark.parametrize("n_jobs", [4, 5, 10**6])
def test_there_are_no_more_processes_than_cores(n_jobs):
    """Which is said, once for an evaluator; as many as there are nothing to speak of."""
    evaluator = OfflineRetrievalEvaluator([["a b"]] * 3, [["a b"]] * 3, "rouge1", n_jobs=n_jobs)
    with warnings.catch_warnings(record=True, action="always") as caught:
        assert evaluator.calculate_recall(k=1)["macro_recall"] == 1.0
        evaluator.calculate_precision(k=1)
    told = [str(one.message) for one in caught]
    assert [f"the {n_jobs:,} processes" in one and "4 work" in one for one in told] == (
        [True] if n_jobs > 4 else []
    )


def process_of(shared, part):
    """Return the process that did a part."""
    return os.getpid()


@pytest.mark.parametrize(("n_parts", "begun"), [(0, []), (1, []), (3, [3]), (10, [4])])
def test_there_are_no_more_processes_than_parts(n_parts, begun, monkeypatch):
    """A single part needs no other process than this one."""
    asked = []

    class Parallel(joblib.Parallel):
        def __init__(self, n_jobs, **options):
            asked.append(n_jobs)
            super().__init__(n_jobs, **options)

    monkeypatch.setattr(joblib, "Parallel", Parallel)
    with processes(4):
        pids = list(in_processes(process_of, None, "nothing", range(n_parts)))
    assert len(pids) == n_parts
    assert asked == begun
    assert begun or {*pids} <= {os.getpid()}


def test_the_number_of_processes_is_nobody_else_s():
    """Another thread that matches meanwhile is not divided."""
    seen = []
    with processes(2):
        thread = threading.Thread(target=lambda: seen.append(n_processes()))
        thread.start()
        thread.join()
        assert n_processes() == 2
    assert (seen, n_processes()) == ([1], 1)


def test_threads_that_want_processes_take_turns():
    """Each with a team of its own; without turns they end each other's, and wait for ever."""
    results = {}

    def evaluate(matcher):
        evaluator = OfflineRetrievalEvaluator(
            [["a b c"]] * 8, [["a b", "b c"]] * 8, matcher=matcher, threshold=0.5, n_jobs=2
        )
        results[matcher] = evaluator.calculate_precision()["macro_precision"]

    threads = [threading.Thread(target=evaluate, args=(name,)) for name in ("rouge1", "fuzzy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    # ROUGE-1 is 0.8 on both; of 8 characters "a b" and "b c" share 3, twice, with "a b c": 0.75.
    assert results == {"rouge1": 1.0, "fuzzy": 1.0}


def test_an_evaluator_with_n_jobs_can_be_pickled():
    """Before it has matched and after."""
    evaluator = OfflineRetrievalEvaluator([["a b"]] * 3, [["a b"]] * 3, matcher="rouge1", n_jobs=2)
    again = pickle.loads(pickle.dumps(evaluator))
    assert again.calculate_recall() == evaluator.calculate_recall()
    assert pickle.loads(pickle.dumps(evaluator)).calculate_recall() == again.calculate_recall()


# --- how the work is cut -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "predicted"),
    [
        *(([["a b c"]] * n, [["a b", ""]] * n) for n in (1, 2, 5)),
        ([[], [], ["a"]], [[], ["b"], []]),
    ],
)
def test_fewer_queries_or_documents_than_processes_are_no_trouble(actual, predicted):
    """Some of them have nothing to do."""
    for matcher in (RougeMatcher("rouge1"), FuzzyMatcher()):
        assert found_by(matcher, 3, actual, predicted) == found_by(matcher, None, actual, predicted)
