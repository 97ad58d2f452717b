"""Fuzzy: RapidFuzz's scores as similarities, and a warning where they take long."""

import warnings

import pytest
from hypothesis import given, strategies as st
from matched import scores_of
from rapidfuzz import fuzz

from krag_eval import FuzzyMatcher
from krag_eval.core import Units

SCORERS = ("ratio", "partial_ratio", "token_set_ratio")

# Few characters, so that texts are alike; never blank.
texts = st.text("ab 가", min_size=1, max_size=12).filter(str.strip)


@pytest.mark.parametrize(
    ("scorer", "actual", "predicted", "expected"),
    [
        # The longest common subsequence is "ab c", 4 of 5 characters on either side: 8 / 10.
        ("ratio", "ab cd", "ab ce", 0.8),
        ("ratio", "abc", "xyz", 0.0),
        # The longer text holds the shorter: 2 * 3 / (3 + 9) by ratio, 1 by its best stretch.
        ("ratio", "fee", "the fee 5", 0.5),
        ("partial_ratio", "fee", "the fee 5", 1.0),
        # The other way round it is no different: nobody is asked which is the ground truth.
        ("partial_ratio", "the fee 5", "fee", 1.0),
        # The words "5" and "euros" are all there.
        ("token_set_ratio", "5 euros", "euros, not dollars: euros 5", 1.0),
        # The reason not to use it on chunks: 20 of 220 characters are 2 * 20 / 240 by any order.
        ("ratio", "the fee is 5 euros..", f"{'x' * 100}the fee is 5 euros..{'y' * 100}", 1 / 6),
    ],
)
def test_the_scores(scorer, actual, predicted, expected):
    assert FuzzyMatcher(scorer).similarity(actual, predicted) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("scorer", SCORERS)
@given(actual=st.lists(texts, min_size=1, max_size=4), predicted=st.lists(texts, max_size=4))
def test_it_equals_rapidfuzz_pair_by_pair(scorer, actual, predicted):
    """In [0, 1], alone and in a batch."""
    score, matcher = getattr(fuzz, scorer), FuzzyMatcher(scorer)
    expected = [[score(truth, found) / 100 for found in predicted] for truth in actual]
    assert scores_of(matcher, actual, predicted).tolist() == expected
    alone = [[matcher.similarity(truth, found) for found in predicted] for truth in actual]
    assert alone == expected


@pytest.mark.parametrize("scorer", SCORERS)
@given(text=st.text(min_size=1, max_size=200).filter(str.strip))
def test_identical_texts_are_1(scorer, text):
    assert FuzzyMatcher(scorer).similarity(text, text) == 1.0


@pytest.mark.parametrize(
    ("scorer", "length", "minutes"),
    [
        # 990,000 squared, at 10 billion pairs of characters a second: 98 seconds.
        ("ratio", 990_000, "2 minutes"),
        # 13,000 cubed, at 4.1e-11 seconds: 90 seconds.
        ("partial_ratio", 13_000, "2 minutes"),
        *((scorer, 5_000, None) for scorer in SCORERS),
    ],
)
def test_a_long_wait_is_announced(scorer, length, minutes):
    """Usual texts are compared in silence."""
    told = announced(scorer, "a" * length, "b" * length)
    assert [f"{scorer} compares" in one and f"about {minutes}" in one for one in told] == (
        [True] if minutes else []
    )


def announced(scorer, actual, predicted):
    """Return what is said before two texts are compared."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        FuzzyMatcher(scorer).announce(Units.of_pair([actual, predicted]))
    return [str(one.message) for one in caught]


def test_words_that_occur_once_make_token_sets_long():
    """130,000 numbers are 800,000 characters and more: 8e5 * 9.1e5 cells, 73 seconds."""
    numbers = [" ".join(map(str, range(start, start + 130_000))) for start in (0, 130_000)]
    (told,) = announced("token_set_ratio", *numbers)
    assert "about 1 minute of" in told
    assert announced("token_set_ratio", "again " * 500_000, "more " * 500_000) == []
