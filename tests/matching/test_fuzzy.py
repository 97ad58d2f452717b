"""Fuzzy: RapidFuzz's scores as similarities, and a warning where they take long."""

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from matched import scores_of
from rapidfuzz import fuzz

from krag_eval.matching import fuzzy
from krag_eval.matching.fuzzy import FuzzyMatcher
from krag_eval.matching.joins import Units

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


# Longer than a machine word, of few characters, with a piece of one in the other.
long_texts = st.text("abc 가", min_size=1, max_size=150).filter(str.strip)


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("at_once", [0, 10_000])
@given(actual=long_texts, predicted=long_texts, piece=st.slices(150))
def test_long_pairs_step_by_step_equal_rapidfuzz(scorer, at_once, actual, predicted, piece):
    """To the last bit, with every pair taken for a long one."""
    predicted += actual[piece]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzzy, "_ASCII_CELLS_AT_ONCE", 0)
        patch.setattr(fuzzy.waiting, "CELLS_AT_ONCE", at_once if scorer == "partial_ratio" else 0)
        score = FuzzyMatcher(scorer).similarity(actual, predicted)
    assert score == getattr(fuzz, scorer)(actual, predicted) / 100


def test_a_long_text_along_a_longer_one_equals_rapidfuzz():
    """Of 700 characters and more the stretches are searched here, as they come."""
    rng = np.random.default_rng(2)
    shorter, longer, equal = (
        "".join(rng.choice([*"eeetttaaoinshr  "], size=size)) for size in (700, 2_000, 700)
    )
    longer = longer[:900] + shorter[100:500] + longer[900:]
    matcher = FuzzyMatcher("partial_ratio")
    for text in (longer, equal):
        assert matcher.similarity(shorter, text) == fuzz.partial_ratio(shorter, text) / 100


@pytest.mark.parametrize(
    ("scorer", "length", "minutes"),
    [
        # 1.2 million squared, at 10 billion pairs of characters a second: 144 seconds.
        ("ratio", 1_200_000, "2 minutes"),
        # 40,000 squared, at 500 + 40,000 / 250 stretches, 10 billion cells a second: 106 seconds.
        ("partial_ratio", 40_000, "2 minutes"),
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
    """300,000 numbers are 2 million characters: 2e6 * 2.1e6 cells at 1e10 a second, 418 seconds."""
    numbers = [" ".join(map(str, range(start, start + 300_000))) for start in (0, 300_000)]
    (told,) = announced("token_set_ratio", *numbers)
    assert "about 7 minutes" in told
    assert announced("token_set_ratio", "again " * 500_000, "more " * 500_000) == []
