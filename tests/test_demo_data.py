"""The data set that ships with the package shows what it claims to show."""

import re
import unicodedata
from difflib import SequenceMatcher

import pytest

from krag_eval.datasets import Dataset, demo_dataset

HANGUL = re.compile("[\uac00-\ud7a3]")


@pytest.fixture(scope="module")
def demo() -> Dataset:
    """Read the data once."""
    return demo_dataset()


def pairs(demo: Dataset) -> list[tuple[str, str]]:
    """Return all pairs of a ground-truth text and a text retrieved for the same question."""
    return [
        (str(truth), str(text))
        for actual, predicted in zip(demo.actual, demo.predicted, strict=True)
        for truth in actual
        for text in predicted
    ]


def test_has_at_least_twenty_questions(demo: Dataset) -> None:
    """Enough for numbers to differ; every question is asked once and has an answer."""
    assert len(set(demo.queries)) == demo.n_queries >= 20
    assert all(demo.actual)


@pytest.mark.parametrize("korean", [True, False])
def test_has_both_languages(demo: Dataset, korean: bool) -> None:
    """At least a third of the questions are in each, with ground truth in the same language."""
    chosen = [
        i for i, label in enumerate(demo.queries) if bool(HANGUL.search(str(label))) is korean
    ]
    assert len(chosen) >= demo.n_queries / 3
    assert all(bool(HANGUL.search(str(t))) is korean for i in chosen for t in demo.actual[i])


def test_no_text_is_blank(demo: Dataset) -> None:
    """The demo is to print numbers, not warnings."""
    assert all(text.strip() for pair in pairs(demo) for text in pair)


def test_one_document_is_in_decomposed_unicode(demo: Dataset) -> None:
    """Hangul as macOS writes it: other code points, the same text, found all the same."""
    assert any(
        truth != text and truth == unicodedata.normalize("NFC", text) for truth, text in pairs(demo)
    )


def test_some_documents_are_found_verbatim(demo: Dataset) -> None:
    """Exact matching finds some of the ground truth."""
    assert sum(truth == text for truth, text in pairs(demo)) >= 5


def test_some_documents_contain_the_ground_truth(demo: Dataset) -> None:
    """Longer chunks hold a ground-truth text that exact matching misses."""
    assert sum(truth in text and truth != text for truth, text in pairs(demo)) >= 5


def test_some_documents_are_near_misses(demo: Dataset) -> None:
    """Texts that read almost alike and say something else, in both languages."""
    near = [
        truth
        for truth, text in pairs(demo)
        if truth not in text
        and len(text) < 1.2 * len(truth)
        and SequenceMatcher(None, truth, text, autojunk=False).ratio() > 0.75
    ]
    assert {bool(HANGUL.search(truth)) for truth in near} == {True, False}
    assert len(near) >= 3


def test_some_chunks_cut_the_ground_truth(demo: Dataset) -> None:
    """A chunk boundary runs through a ground-truth text: a long part of it is there, not all."""

    def longest(truth: str, text: str) -> int:
        match = SequenceMatcher(None, truth, text, autojunk=False).find_longest_match()
        return match.size

    assert (
        sum(
            truth not in text and longest(truth, text) >= 0.6 * len(truth)
            for truth, text in pairs(demo)
        )
        >= 3
    )


def test_some_lists_repeat_a_document(demo: Dataset) -> None:
    """A relevant document retrieved twice, which must not count twice."""
    assert any(
        predicted.count(text) > 1 and any(str(truth) in str(text) for truth in actual)
        for actual, predicted in zip(demo.actual, demo.predicted, strict=True)
        for text in predicted
    )


def test_one_question_got_nothing(demo: Dataset) -> None:
    """The retriever returned an empty list at least once."""
    assert [] in demo.predicted


def test_one_question_got_nothing_relevant(demo: Dataset) -> None:
    """At least once, what came back has none of the ground truth in it."""
    result = demo.evaluator(matcher="contains").evaluate(k=None)
    table = result.per_query()
    assert ((table["retrieved"] > 0) & (table["covered"] == 0)).any()


def test_matchers_disagree_about_it(demo: Dataset) -> None:
    """Which matcher is chosen visibly changes the numbers, which is what the demo is to show."""
    recalls = [
        demo.evaluator(matcher=matcher).calculate_recall(k=5)["macro_recall"]
        for matcher in ("text", "contains")
    ]
    assert 0.2 < recalls[0] < recalls[1] - 0.1
    assert recalls[1] < 0.95
