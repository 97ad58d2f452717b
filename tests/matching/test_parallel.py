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
from krag_eval._language import LANGUAGES, SPOKEN, language_of
from krag_eval.documents import QuerySet
from krag_eval.errors import Advice, InvalidInput, InvalidType, Refusal, warn
from krag_eval.matching.numbering import TokenNumbers, numbered
from krag_eval.matching.parallel import check_n_jobs, in_processes, n_processes, processes

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


def matched(matcher, n_jobs, actual=ACTUAL, predicted=PREDICTED, team=""):
    """Return what a matcher finds with so many processes, and the warnings it gives."""
    queries = QuerySet.from_lists(actual, predicted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with processes(n_jobs, team):
            matches = matcher.match(queries)
    columns = (matches.item, matches.rank, matches.similarity, matches.same_as)
    return (
        [(column.dtype, column.tobytes()) for column in columns],
        [(str(w.message), w.category) for w in caught],
    )


class SharedLetters(Matcher):
    """A matcher of one's own, which prepares texts and warns of short ones."""

    def prepare(self, text):
        """Return the set of letters."""
        if len(text) == 3:
            warnings.warn("a text of three letters", RuntimeWarning, stacklevel=1)
        return frozenset(text)

    def similarity(self, actual, predicted):
        """Return the Jaccard index."""
        return len(actual & predicted) / len(actual | predicted)


class SameSource(Matcher):
    """A matcher that looks at whole documents."""

    def similarity(self, actual, predicted):
        """Return 1 if the sources are equal."""
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
    alone = matched(matcher, None)
    assert len(alone[0][0][1]) > 0
    assert matched(matcher, 2) == alone
    assert matched(matcher, 3) == alone


def test_documents_reach_the_processes_whole():
    """Metadata included."""
    actual = [[Document("a", metadata={"source": n})] for n in range(4)]
    predicted = [[Document("b", metadata={"source": 1}), Document("c")] for n in range(4)]
    for documents in predicted:
        documents[1].metadata["source"] = 2
    queries = QuerySet.from_lists(actual, predicted)
    with processes(2):
        matches = SameSource().match(queries)
    assert list(zip(matches.item.tolist(), matches.rank.tolist(), strict=True)) == [(1, 1), (2, 2)]


def test_morphemes_are_the_same_with_any_number_of_processes():
    """Each process loads a Kiwi of its own."""
    korean = ["나는 밥을 먹었다.", "집을 지었다.", "환불은 닷새가 걸립니다."]
    matcher = RougeMatcher("rouge1", tokenizer="kiwi")
    arguments = ([[text] for text in korean], [korean, korean[::-1], []])
    alone = matched(matcher, None, *arguments)
    assert matched(matcher, 2, *arguments, team="kiwi") == alone


def test_the_evaluator_divides_its_work():
    """And says nothing about it in the signature, since the numbers are the same."""
    with pytest.warns(KragEvalWarning, match="blank"):
        alone = OfflineRetrievalEvaluator(ACTUAL, PREDICTED, matcher="rouge1").evaluate(k=3)
    with pytest.warns(KragEvalWarning, match="blank"):
        divided = OfflineRetrievalEvaluator(ACTUAL, PREDICTED, matcher="rouge1", n_jobs=2).evaluate(
            k=3
        )
    assert divided.signature == alone.signature
    assert divided.to_dict() == alone.to_dict()


class ProcessOf(Matcher):
    """Puts the process into the similarity, so that a test can see where it was."""

    def similarity(self, actual, predicted):
        """Return a similarity that tells the process from this one."""
        return 1.0 if os.getpid() == int(actual.page_content) else 0.5


def test_the_work_is_done_by_other_processes():
    """None of it by this one, with two; all of it, with one or without n_jobs."""
    actual, predicted = [[str(os.getpid())]] * 4, [["x"]] * 4
    for n_jobs, expected in ((2, 0.5), (1, 1.0), (None, 1.0)):
        with processes(n_jobs):
            matches = ProcessOf().match(QuerySet.from_lists(actual, predicted))
        assert set(matches.similarity.tolist()) == {expected}


def test_tokenizing_is_done_by_other_processes():
    """And each distinct text is sent once."""
    with processes(2):
        numbers = numbered(lambda text: [text, str(os.getpid())], ["a", "b", "c", "d"])
    own = numbered(lambda text: [text, str(os.getpid())], ["a", "b", "c", "d"])
    assert own.flat.tolist() == [0, 1, 2, 1, 3, 1, 4, 1]
    assert numbers.sizes.tolist() == own.sizes.tolist() == [2] * 4
    assert len({*numbers.flat.tolist()[::2]}) == 4


def test_matchers_by_embedding_stay_in_this_process():
    """Their model would have to be copied."""

    class Lengths:
        """A model that must not be sent."""

        def __reduce__(self):
            raise AssertionError("sent")

        def embed_documents(self, some):
            """Return the length of each text and 1."""
            return [[len(text), 1.0] for text in some]

    assert matched(EmbeddingMatcher(Lengths(), 0.9), 2) == matched(
        EmbeddingMatcher(Lengths(), 0.9), None
    )


# --- what the work raises ----------------------------------------------------------------------


class OddError(Exception):
    """Cannot be pickled as it is."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Warns(SameSource):
    """Gives the same advice for every pair."""

    def similarity(self, actual, predicted):
        """Warn."""
        warn("It is late.", Advice("try {}", matcher="text"))
        return 1.0


class Speaks(SameSource):
    """Warns in the language that people are told things in."""

    def similarity(self, actual, predicted):
        """Warn."""
        warn(language_of())
        return 1.0


class Fails(Matcher):
    """Raises something for some text."""

    def __init__(self, make, text):
        self.make, self.text = make, text

    def similarity(self, actual, predicted):
        """Raise, or return 1."""
        if actual.page_content == self.text:
            raise self.make(self.text)
        return 1.0


def test_an_error_keeps_its_type_and_message():
    """And tells where in the other process it was raised."""
    matcher = Fails(lambda text: KeyError(f"no such text: {text}"), "c")
    with processes(2), pytest.raises(KeyError, match="no such text: c") as caught:
        matcher.match(QuerySet.from_lists([["a"], ["b"], ["c"], ["d"]], [["x"]] * 4))
    assert "in similarity" in "".join(caught.value.__notes__)


def test_after_an_error_no_further_work_is_begun(tmp_path):
    """What has begun is finished; of 8 parts, the last are never asked for."""

    def similarity(actual, predicted):
        (tmp_path / actual.page_content).touch()
        if actual.page_content == "0":
            raise ValueError("no")
        time.sleep(1)
        return 1.0

    queries = QuerySet.from_lists([[str(n)] for n in range(8)], [["x"]] * 8)
    with processes(2), pytest.raises(ValueError, match="no"):
        Matcher.from_function(similarity).match(queries)
    begun = len(list(tmp_path.iterdir()))
    assert begun < 8
    time.sleep(0.1)
    assert len(list(tmp_path.iterdir())) == begun


def test_an_error_that_cannot_be_made_anew_keeps_its_type():
    """Its class wants other arguments than it hands on."""
    matcher = Fails(lambda text: OddError("one", "two"), "a")
    with processes(2), pytest.raises(OddError, match="one and two"):
        matcher.match(QuerySet.from_lists([["a"], ["b"]], [["x"]] * 2))


class PlaceError(Exception):
    """Says more than its message."""

    def __init__(self, message, place):
        super().__init__(message)
        self.place = place


@pytest.mark.parametrize(("place", "kept"), [("there", {"place": "there"}), (None, {})])
def test_an_error_keeps_what_it_holds_if_that_can_be_sent(place, kept):
    """A lock cannot."""

    def make(text):
        return PlaceError("lost", threading.Lock() if place is None else place)

    with processes(2), pytest.raises(PlaceError, match="lost") as caught:
        Fails(make, "a").match(QuerySet.from_lists([["a"], ["b"]], [["x"]] * 2))
    held = {name: value for name, value in vars(caught.value).items() if name != "__notes__"}
    assert held == kept


class Misspelt:
    """A tokenizer with a mistake in it."""

    name = "misspelt"

    def __call__(self, text):
        return text.spilt()


def broken(text):
    """Be a tokenizer that fails in an operation."""
    return [text, int("one")]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("tokenizer", "error"), [(Misspelt(), AttributeError), (broken, ValueError)]
)
def test_a_mistake_is_the_same_mistake_in_another_process(tokenizer, error, n_jobs):
    """And no refusal of ours, which the shell would show in one line."""
    matcher = RougeMatcher("rouge1", tokenizer=tokenizer)
    queries = QuerySet.from_lists([["a"], ["b"]], [["x"]] * 2)
    with processes(n_jobs), pytest.raises(error) as caught:
        matcher.match(queries)
    assert type(caught.value) is error
    assert not isinstance(caught.value, Refusal)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_refusal_is_the_same_refusal_in_another_process(n_jobs):
    """Of a text that the tokenizer loses."""
    matcher = RougeMatcher("rouge1", tokenizer="rouge_score")
    queries = QuerySet.from_lists([["a"], ["나는 밥을 먹었다."]], [["x"]] * 2)
    with processes(n_jobs), pytest.raises(ValueError, match="yields no token") as caught:
        matcher.match(queries)
    assert isinstance(caught.value, Refusal)


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


def test_a_similarity_out_of_range_is_reported_by_its_place_among_all_queries():
    """Not among those of one process."""
    matcher = Matcher.from_function(lambda a, p: 7.0 if a.page_content == "3" else 1.0, name="odd")
    queries = QuerySet.from_lists([[str(n)] for n in range(4)], [["x"]] * 4)
    message = r"matcher odd: a similarity must be .* got 7.0 for actual_docs\[3\]\[0\]"
    with processes(2), pytest.raises(ValueError, match=message):
        matcher.match(queries)


def test_a_tokenizer_s_loss_is_reported_as_without_processes():
    """The text is named."""
    matcher = RougeMatcher("rouge1", tokenizer="rouge_score")
    queries = QuerySet.from_lists([["a"], ["나는 밥을 먹었다."]], [["x"]] * 2)
    with processes(2), pytest.raises(InvalidInput, match="'나는 밥을") as info:
        matcher.match(queries)
    with pytest.raises(InvalidInput) as alone:
        matcher.match(queries)
    assert vars(info.value) | {"__notes__": []} == vars(alone.value) | {"__notes__": []}


@pytest.mark.parametrize("make", [ValueError, TypeError, ZeroDivisionError, OddError])
def test_a_bug_is_the_same_exception_with_and_without_processes(make):
    """It does not become bad input on its way."""
    matcher = Fails(lambda text: make(*("one", "two")[: 1 + (make is OddError)]), "a")
    for n_jobs in (None, 2):
        with processes(n_jobs), pytest.raises(make) as info:
            matcher.match(QuerySet.from_lists([["a"], ["b"]], [["x"]] * 2))
        assert type(info.value) is make


def test_a_warning_keeps_its_advice():
    """What to do is worded by who shows the warning, as without processes."""
    queries = QuerySet.from_lists([["a"], ["b"]], [["x"]] * 2)
    with processes(2), pytest.warns(KragEvalWarning) as caught:
        Warns().match(queries)
    (warning,) = (one.message for one in caught)
    assert (warning.problem, dict(warning.fix.settings)) == ("It is late.", {"matcher": "text"})


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_warning_is_in_the_language_of_the_command(language):
    """Which other processes do not know by themselves."""
    spoken = SPOKEN.set(language)
    with processes(2), pytest.warns(KragEvalWarning) as caught:
        Speaks().match(QuerySet.from_lists([["a"], ["b"]], [["x"]] * 2))
    SPOKEN.reset(spoken)
    assert [str(one.message) for one in caught] == [language]


class WithLock(SameSource):
    """Holds what no process can give away."""

    def __init__(self):
        self.lock = threading.Lock()


def test_a_matcher_that_cannot_be_sent_is_refused_with_the_remedy():
    """Before any work is done."""
    message = r"the matcher WithLock cannot be sent to another process \(TypeError: .*lock"
    with processes(2), pytest.raises(InvalidType, match=message) as caught:
        WithLock().match(QuerySet.from_lists([["a"]] * 2, [["x"]] * 2))
    assert caught.value.argument == "n_jobs"
    assert "make what cannot be pickled" in str(caught.value.fix)


class Unwelcome(SameSource):
    """Can be sent, but not made anew."""

    def __setstate__(self, state):
        raise OSError("the model's file is not on this machine")


def test_a_matcher_that_does_not_arrive_is_refused_with_the_remedy():
    """With the reason."""
    message = "Unwelcome cannot be sent to another process .OSError: the model's file"
    matcher = Unwelcome()
    matcher.seen = 1  # without a state there is nothing to set
    with processes(2), pytest.raises(InvalidType, match=message):
        matcher.match(QuerySet.from_lists([["a"]] * 2, [["x"]] * 2))


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
    with processes(2):
        matches = LoadsOnce().match(QuerySet.from_lists([["a"]] * 40, [["x"]] * 40))
    assert set(matches.similarity.tolist()) == {1.0}


# --- how many ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [True, 1.5, "2", "all"])
def test_n_jobs_must_be_an_integer(n_jobs):
    """Numbers of processes are whole; a string is not parsed."""
    with pytest.raises(InvalidType) as info:
        OfflineRetrievalEvaluator([["a"]], [["a"]], n_jobs=n_jobs)
    assert info.value.argument == "n_jobs"


def test_no_process_at_all_is_refused():
    """As joblib does, but when the evaluator is made."""
    with pytest.raises(InvalidInput) as info:
        OfflineRetrievalEvaluator([["a"]], [["a"]], n_jobs=0)
    assert info.value.argument == "n_jobs"


def test_any_other_integer_is_taken():
    """Numpy's too; -1 is one process per core, as in joblib."""
    assert [check_n_jobs(n) for n in (None, 3, np.int64(2), -2)] == [None, 3, 2, -2]
    with processes(-1):
        assert n_processes() == min(4, joblib.effective_n_jobs(-1))


@pytest.mark.parametrize("n_jobs", [5, 10**6])
def test_there_are_no_more_processes_than_cores(n_jobs):
    """Which is said, once for an evaluator."""
    evaluator = OfflineRetrievalEvaluator(
        [["a b"]] * 3, [["a b"]] * 3, matcher="rouge1", n_jobs=n_jobs
    )
    with pytest.warns(KragEvalWarning, match=f"the {n_jobs:,} processes .* 4 work") as caught:
        assert evaluator.calculate_recall(k=1)["macro_recall"] == 1.0
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluator.calculate_precision(k=1)
    with pytest.warns(KragEvalWarning), processes(n_jobs):
        assert n_processes() == 4


def test_as_many_processes_as_cores_are_nothing_to_speak_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with processes(4):
            assert n_processes() == 4


def processes_begun(n_parts, monkeypatch):
    """Return how many processes joblib is asked for, for so many parts of work."""
    asked = []

    class Parallel(joblib.Parallel):
        def __init__(self, n_jobs, **options):
            asked.append(n_jobs)
            super().__init__(n_jobs, **options)

    monkeypatch.setattr(joblib, "Parallel", Parallel)
    with processes(4):
        pids = list(in_processes(process_of, None, "nothing", range(n_parts)))
    assert len(pids) == n_parts
    return asked, pids


def process_of(shared, part):
    """Return the process that did a part."""
    return os.getpid()


def test_there_are_no_more_processes_than_parts(monkeypatch):
    """Of three parts, three are asked for; of ten, four."""
    assert processes_begun(3, monkeypatch)[0] == [3]
    assert processes_begun(10, monkeypatch)[0] == [4]


@pytest.mark.parametrize("n_parts", [0, 1])
def test_a_single_part_needs_no_other_process(n_parts, monkeypatch):
    assert processes_begun(n_parts, monkeypatch) == ([], [os.getpid()] * n_parts)


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


def test_joblib_is_loaded_by_those_who_ask_for_processes():
    """Nobody else pays for its import."""
    code = (
        "import sys; from krag_eval import OfflineRetrievalEvaluator as E;"
        "E([['a b']], [['a b']], matcher='rouge1', n_jobs=1).calculate_recall();"
        "assert 'joblib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- how the work is cut -----------------------------------------------------------------------


def test_texts_are_taken_in_the_order_asked_for():
    """By hand: texts of 2, 0 and 3 tokens."""
    numbers = TokenNumbers(np.array([4, 5, 7, 8, 9]), np.array([2, 0, 3]))
    taken = numbers.take(np.array([2, 1, 0, 2]))
    assert taken.flat.tolist() == [7, 8, 9, 4, 5, 7, 8, 9]
    assert taken.sizes.tolist() == [3, 0, 2, 3]
    assert numbers.take(np.array([], np.int64)).flat.tolist() == []


@pytest.mark.parametrize("n_queries", [1, 2, 5])
def test_fewer_queries_than_processes_are_no_trouble(n_queries):
    """Some of them have nothing to do."""
    arguments = ([["a b c"]] * n_queries, [["a b", ""]] * n_queries)
    assert matched(RougeMatcher("rouge1"), 3, *arguments) == matched(
        RougeMatcher("rouge1"), None, *arguments
    )


def test_queries_without_documents_are_no_trouble():
    """Neither predicted ones, nor ground truth."""
    arguments = ([[], [], ["a"]], [[], ["b"], []])
    assert matched(FuzzyMatcher(), 2, *arguments) == matched(FuzzyMatcher(), None, *arguments)
