"""The data set that ships with the package shows what it claims to show."""

import re
import unicodedata
from difflib import SequenceMatcher

import pytest

from krag_eval.datasets import demo_dataset

HANGUL = re.compile("[\uac00-\ud7a3]")


@pytest.fixture(scope="module")
def demo():
    return demo_dataset()


@pytest.fixture(scope="module")
def pairs(demo):
    """Return all pairs of a ground-truth text and a text retrieved for the same question."""
    lists = zip(demo.actual, demo.predicted, strict=True)
    return [(truth, text) for one, other in lists for truth in one for text in other]


def test_has_at_least_twenty_questions(demo):
    """Enough for numbers to differ; every question is asked once and has an answer."""
    assert len(set(demo.queries)) == demo.n_queries >= 20
    assert all(demo.actual)


@pytest.mark.parametrize("korean", [True, False])
def test_has_both_languages(demo, korean):
    """At least a third of the questions are in each, with ground truth in the same language."""
    chosen = [at for at, one in enumerate(demo.queries) if bool(HANGUL.search(one)) is korean]
    assert len(chosen) >= demo.n_queries / 3
    assert all(bool(HANGUL.search(one)) is korean for at in chosen for one in demo.actual[at])


def test_no_text_is_blank(pairs):
    """The demo is to print numbers, not warnings."""
    assert all(text.strip() for pair in pairs for text in pair)


def is_cut(truth, text):
    match = SequenceMatcher(None, truth, text, autojunk=False).find_longest_match()
    return truth not in text and match.size >= 0.6 * len(truth)


@pytest.mark.parametrize(
    ("shows", "least"),
    [
        (lambda truth, text: truth == text, 5),
        (lambda truth, text: truth in text and truth != text, 5),
        (is_cut, 3),
        # Hangul as macOS writes it: other code points, the same text, found all the same.
        (lambda truth, text: truth != text and truth == unicodedata.normalize("NFC", text), 1),
    ],
    ids=["found verbatim", "contained in a chunk", "cut by a boundary", "decomposed"],
)
def test_some_documents_are(pairs, shows, least):
    """Each kind of hit or miss occurs so often."""
    assert sum(shows(*pair) for pair in pairs) >= least


def test_some_documents_are_near_misses(pairs):
    """Texts that read almost alike and say something else, in both languages."""
    near = [
        truth
        for truth, text in pairs
        if truth not in text
        and len(text) < 1.2 * len(truth)
        and SequenceMatcher(None, truth, text, autojunk=False).ratio() > 0.75
    ]
    assert {bool(HANGUL.search(truth)) for truth in near} == {True, False}
    assert len(near) >= 3


def test_some_lists_repeat_a_document(demo):
    """A relevant document retrieved twice, which must not count twice."""
    assert any(
        predicted.count(text) > 1 and any(truth in text for truth in actual)
        for actual, predicted in zip(demo.actual, demo.predicted, strict=True)
        for text in predicted
    )


def test_one_question_got_nothing_and_one_nothing_relevant(demo):
    assert [] in demo.predicted
    table = demo.evaluator(matcher="contains").evaluate(k=None).per_query()
    assert ((table["retrieved"] > 0) & (table["covered"] == 0)).any()


def test_matchers_disagree_about_it(demo):
    """Which matcher is chosen visibly changes the numbers, which is what the demo is to show."""
    text, contains = (demo.evaluator(matcher=one).calculate_recall(k=5)["macro_recall"]
                      for one in ("text", "contains"))  # fmt: skip
    assert 0.2 < text < contains - 0.1
    assert contains < 0.95
