"""What must hold for every matcher that reads texts.

The matchers come from the table of names, so that new ones are tested automatically.
"""

import re

import pytest
from hypothesis import assume, given, settings, strategies as st
from matched import found
from test_texts import MATCHERS
from trials import trials

from krag_eval import AnyOf, EmbeddingMatcher
from krag_eval.core import muted

every_matcher = pytest.mark.parametrize("matcher", MATCHERS, ids=lambda one: one.signature)

# ASCII for rouge_score's tokenizer, which has no other letters, and what is awkward in Unicode.
_WORDS = "the fee is 5 euros a day Straße 서울은 대한민국의 수도 नमस्ते 東京 café x"
WORDS = st.sampled_from(_WORDS.split())
_ASCII_WORDS = "the fee is 5 euros a day per book and year"
ASCII_WORDS = st.sampled_from(_ASCII_WORDS.split())


def texts(matcher, one_script=False):
    """Draw texts the matcher's tokenizer can read."""
    words = ASCII_WORDS if one_script or "rouge_score" in matcher.signature else WORDS
    # ROUGE-2 of a single token is 0 by its definition: there is no bigram.
    least = 2 if "rouge2" in matcher.signature else 1
    return st.lists(words, min_size=least, max_size=12).map(" ".join)


def batch(matcher, actual, predicted):
    """Score all pairs in one run; pairs that are not there have similarity 0.

    Each actual text is a query of its own, since coverage reads a query in one way, by words or by
    letters, as most of its ground truth is written.
    """
    with muted():
        rows = found(matcher, [[one] for one in actual], [predicted for _ in actual])
    return {(item, rank - 1): similarity for item, rank, similarity in rows}


@every_matcher
@settings(max_examples=trials(25))
@given(data=st.data())
def test_identical_texts_score_one(matcher, data):
    """A text is as similar to itself as can be."""
    text = data.draw(texts(matcher))
    assert batch(matcher, [text], [text]) == {(0, 0): 1.0}


@every_matcher
@settings(max_examples=trials(25))
@given(data=st.data())
def test_a_pair_scores_the_same_alone_and_in_a_batch(matcher, data):
    """What else is compared in the same run changes no digit; all are in [0, 1]."""
    actual = data.draw(st.lists(texts(matcher), min_size=1, max_size=5, unique=True))
    predicted = data.draw(st.lists(texts(matcher), min_size=1, max_size=5))
    scores = batch(matcher, actual, predicted)
    assert all(0.0 < score <= 1.0 for score in scores.values())
    for row, truth in enumerate(actual):
        for column, text in enumerate(predicted):
            together = scores.get((row, column), 0.0)
            assert matcher.similarity(truth, text) == together


@every_matcher
def test_texts_without_a_word_in_common_are_far_below_the_threshold(matcher):
    """Two sentences on different matters, without a shared word."""
    if matcher.signature.startswith("embedding"):
        matcher = EmbeddingMatcher(_Orthogonal(), 0.7)
    pair = ("Books may stay out for 30 days", "Parking costs 2 euros per hour")
    # Strings over one alphabet share letters by chance: edit distance stays below 0.5, no lower,
    # and single characters are ROUGE's worst case.
    by_letters = re.search("fuzzy|rouge.*(character|letters)", matcher.signature)
    limit = 0.8 if by_letters and "rouge" in by_letters[0] else 0.5 if by_letters else 0.0
    assert matcher.similarity(*pair) <= limit


class _Orthogonal:
    """One axis per text seen."""

    def __init__(self):
        self.seen = []

    def embed_documents(self, texts):
        self.seen += [text for text in texts if text not in self.seen]
        return [[float(self.seen.index(text) == axis) for axis in range(8)] for text in texts]


@every_matcher
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_of_takes_its_best_alternative(matcher, data):
    """An item with several alternatives is as similar as the most similar of them."""
    # All alternatives together decide how "auto" reads them.
    drawn = texts(matcher, one_script="auto" in matcher.signature)
    first, second, predicted = (data.draw(drawn) for _ in range(3))
    assume(first != second)
    alone = max(matcher.similarity(text, predicted) for text in (first, second))
    told = batch(matcher, [AnyOf([first, second])], [predicted])
    assert told == ({(0, 0): alone} if alone else {})
