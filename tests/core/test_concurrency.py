"""One evaluator shared by threads, copies, pickles, forks and processes.

The expected value is what a single thread computes; other tests check those numbers.
"""

import copy
import multiprocessing
import os
import pickle
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from krag_eval import (
    ContainsMatcher,
    CoverageMatcher,
    FuzzyMatcher,
    IdMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
    RougeMatcher,
)

THREADS = 8
ACTUAL = [["The library opens at nine.", "Closed on Mondays."], ["Four weeks."], [" ", "Free."]]
PREDICTED = [
    ["On Mondays it is closed.", "The library opens at nine. Books may be kept."],
    ["No dogs.", "Books may be kept for four weeks.", "Four weeks."],
    ["It is free."],
]
MATCHERS = {
    "text": "text",
    "id": IdMatcher(),
    "contains": ContainsMatcher(),
    "coverage": CoverageMatcher(0.5),
    "rouge1": RougeMatcher("rouge1", 0.3),
    "rouge2": RougeMatcher("rouge2", 0.3, stemmer=True),
    "rougeL": RougeMatcher("rougeL", 0.3, tokenizer="character"),
    "fuzzy": FuzzyMatcher(threshold=0.5),
    "both": CoverageMatcher(0.5) & RougeMatcher("rouge1", 0.2),
    "either": IdMatcher() | FuzzyMatcher(threshold=0.6),
}
pytestmark = pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")


class Counting(Matcher):
    """Counts how often it is asked to match, and takes its time."""

    threshold = 0.5

    def __init__(self, seconds: float = 0.05) -> None:
        self.calls = 0
        self.seconds = seconds

    def match(self, queries):
        self.calls += 1
        time.sleep(self.seconds)
        return super().match(queries)

    def similarity(self, actual, predicted):
        return float(actual.page_content == predicted.page_content)


def evaluator_by(matcher, actual=ACTUAL, predicted=PREDICTED):
    return OfflineRetrievalEvaluator(actual, predicted, matcher=matcher)


def numbers_of(evaluator):
    """Return everything an evaluator says, as text: NaN equals NaN, digits count."""
    return repr(evaluator.evaluate([1, 2, None]).to_dict())


def at_once(*jobs):
    """Run jobs in threads that start together, and return what they return."""
    barrier = threading.Barrier(len(jobs))

    def run(job):
        barrier.wait(10)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(60) for future in [pool.submit(run, job) for job in jobs]]


def test_threads_that_ask_first_at_the_same_time_match_once():
    """The others wait for the one that does."""
    matcher = Counting()
    evaluator = evaluator_by(matcher)
    answers = at_once(*[evaluator.calculate_recall] * THREADS)
    assert matcher.calls == 1
    assert answers == [evaluator_by(Counting(0)).calculate_recall()] * THREADS


def test_twins_asked_at_the_same_time_match_once():
    """Other thresholds and conventions share the matches, also before there are any."""
    matcher = Counting()
    evaluator = evaluator_by(matcher)
    twins = [evaluator.with_threshold(one / THREADS) for one in range(THREADS)]
    at_once(*[twin.calculate_recall for twin in twins])
    assert matcher.calls == 1


def test_evaluators_do_not_wait_for_each_other():
    """Two that match slowly do so at the same time: each is inside while the other is."""
    met = threading.Barrier(2)

    class Meeting(Counting):
        def match(self, queries):
            met.wait(10)  # breaks, and fails the test, unless the other comes too
            return super().match(queries)

    at_once(evaluator_by(Meeting(0)).calculate_recall, evaluator_by(Meeting(0)).calculate_recall)


def test_a_failed_match_is_tried_again():
    """What one thread's failure leaves behind is no half-made record, and no lock."""

    class Failing(Counting):
        def match(self, queries):
            if self.calls == 0:
                self.calls += 1
                raise RuntimeError("out of quota")
            return super().match(queries)

    evaluator = evaluator_by(Failing(0))
    with pytest.raises(RuntimeError, match="out of quota"):
        evaluator.calculate_recall()
    assert at_once(evaluator.calculate_recall) == [evaluator_by("text").calculate_recall()]


@pytest.mark.parametrize("matcher", MATCHERS.values(), ids=MATCHERS)
def test_threads_get_the_numbers_of_one_alone(matcher):
    """From one evaluator asked by all, and from one each that share the matcher."""
    alone = numbers_of(evaluator_by(matcher))
    shared = evaluator_by(matcher)
    assert at_once(*[lambda: numbers_of(shared)] * THREADS) == [alone] * THREADS
    own = [evaluator_by(matcher) for _ in range(THREADS)]
    jobs = [lambda evaluator=evaluator: numbers_of(evaluator) for evaluator in own]
    assert at_once(*jobs) == [alone] * THREADS


def test_threads_warn_once_together():
    """Of a blank document, that nothing matched, and of short lists, whoever asks first."""
    evaluator = evaluator_by("fuzzy", [["a", " "]], [["xyz"]])
    with warnings.catch_warnings(record=True, action="always") as caught:
        at_once(*[lambda: numbers_of(evaluator)] * THREADS)
    assert sorted(str(one.message).split()[0] for one in caught) == ["1", "Every", "The"]
    assert {one.category for one in caught} == {KragEvalWarning}


def test_a_single_pair_does_not_silence_other_threads():
    """A combined matcher keeps its own warnings back while it scores a pair, nobody else's."""
    inside, outside = threading.Event(), threading.Event()

    class Waiting(Counting):
        def match(self, queries):
            inside.set()
            outside.wait(10)
            return super().match(queries)

    def warn_meanwhile():
        inside.wait(10)
        evaluator_by("text", [["a"]], [["x"]]).calculate_recall()
        outside.set()

    both = Waiting(0) & IdMatcher()
    with warnings.catch_warnings(record=True, action="always") as caught:
        at_once(lambda: both.similarity("a", "a"), warn_meanwhile)
    assert [one.category for one in caught] == [KragEvalWarning]


def pickled(evaluator):
    return pickle.loads(pickle.dumps(evaluator))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("matcher", MATCHERS.values(), ids=MATCHERS)
def test_copies_and_pickles_say_the_same(copied, used, matcher):
    """Made before the first question, or after."""
    evaluator = evaluator_by(matcher)
    if used:
        numbers_of(evaluator)
    assert numbers_of(copied(evaluator)) == numbers_of(evaluator)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_copy_of_a_used_evaluator_does_not_match_again(copied):
    """It brings the matches along."""
    evaluator = evaluator_by(Counting(0))
    evaluator.calculate_recall()
    other = copied(evaluator)
    other.calculate_recall()
    assert other.matcher.calls == 1


def test_an_evaluator_can_be_copied_while_another_thread_matches():
    """Whatever the copy catches, it is whole."""
    matcher = Counting(0.2)
    evaluator = evaluator_by(matcher)
    asking = threading.Thread(target=evaluator.calculate_recall)
    asking.start()
    other = pickled(evaluator)
    asking.join()
    assert numbers_of(other) == numbers_of(evaluator)


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("matcher", MATCHERS.values(), ids=MATCHERS)
def test_a_forked_child_says_the_same(matcher):
    """An evaluator made in the parent, used there or not."""
    unused, used = evaluator_by(matcher), evaluator_by(matcher)
    expected = numbers_of(used)
    assert in_a_fork(lambda: numbers_of(unused) + numbers_of(used)) == expected * 2


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_matches_does_not_hang():
    """The child has no such thread, and must not wait for it, whichever evaluator it asks."""
    matching = threading.Event()

    class Slow(Counting):
        def match(self, queries):
            matching.set()
            return super().match(queries)

    evaluator, other = evaluator_by(Slow(1.0)), evaluator_by("text")
    expected = numbers_of(evaluator_by("text"))
    asking = threading.Thread(target=evaluator.calculate_recall)
    asking.start()
    matching.wait(10)
    assert in_a_fork(lambda: numbers_of(other)) == expected
    assert in_a_fork(lambda: numbers_of(evaluator)) == expected
    asking.join()


def in_a_fork(job):
    """Return what a forked child's job returns; a child that hangs is ended and fails the test."""
    reader, writer = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            writer.send(job())
        finally:
            os._exit(0)
    writer.close()
    answered = reader.poll(30)
    if not answered:
        os.kill(child, 9)
    os.waitpid(child, 0)
    assert answered, "the child hangs"
    return reader.recv()


@pytest.mark.parametrize("name", ["text", "both"])
def test_a_process_of_its_own_says_the_same(name):
    """Spawned, so that nothing is inherited; the evaluator goes there as a pickle."""
    evaluator = evaluator_by(MATCHERS[name])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(numbers_of, (evaluator,)).get(120) == numbers_of(evaluator)
