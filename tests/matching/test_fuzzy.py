"""Fuzzy: RapidFuzz's scores as similarities, and a warning where they take long."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import unicodedata
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from rapidfuzz import fuzz

from krag_eval.documents import AnyOf, QuerySet
from krag_eval.errors import KragEvalWarning, Refusal
from krag_eval.matching import fuzzy
from krag_eval.matching.fuzzy import FuzzyMatcher
from krag_eval.matching.joins import Units

SCORERS = ("ratio", "partial_ratio", "token_set_ratio")

# Few characters, so that texts are alike; never blank.
texts = st.text("ab 가", min_size=1, max_size=12).filter(str.strip)


def scores_of(
    matcher: FuzzyMatcher, actual: list[str], predicted: list[str]
) -> NDArray[np.float64]:
    """Return the similarities of all pairs of one query; shape (actual, predicted)."""
    matches = matcher.match(QuerySet.from_lists([actual], [predicted]))
    scores = np.zeros((len(actual), len(predicted)))
    scores[matches.item, matches.rank - 1] = matches.similarity
    return scores


@pytest.mark.parametrize(
    ("scorer", "actual", "predicted", "expected"),
    [
        # The longest common subsequence is "ab c", 4 of 5 characters on either side: 8 / 10.
        ("ratio", "ab cd", "ab ce", 0.8),
        # Nothing in common.
        ("ratio", "abc", "xyz", 0.0),
        # The longer text holds the shorter: 2 * 3 / (3 + 9) by ratio, 1 by its best stretch.
        ("ratio", "fee", "the fee 5", 0.5),
        ("partial_ratio", "fee", "the fee 5", 1.0),
        # The other way round it is no different: nobody is asked which is the ground truth.
        ("partial_ratio", "the fee 5", "fee", 1.0),
        # The words "5" and "euros" are all there.
        ("token_set_ratio", "5 euros", "euros, not dollars: euros 5", 1.0),
    ],
)
def test_the_scores(scorer: str, actual: str, predicted: str, expected: float) -> None:
    assert FuzzyMatcher(scorer).similarity(actual, predicted) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("scorer", SCORERS)
@given(actual=st.lists(texts, min_size=1, max_size=4), predicted=st.lists(texts, max_size=4))
def test_it_equals_rapidfuzz_pair_by_pair(
    scorer: str, actual: list[str], predicted: list[str]
) -> None:
    """In [0, 1], alone and in a batch."""
    score = getattr(fuzz, scorer)
    expected = [[score(truth, found) / 100 for found in predicted] for truth in actual]
    matcher = FuzzyMatcher(scorer)
    assert scores_of(matcher, actual, predicted).tolist() == expected
    for truth, row in zip(actual, expected, strict=True):
        assert [matcher.similarity(truth, found) for found in predicted] == row


# Longer than a machine word, of few characters, with a piece of one in the other.
long_texts = st.text("abc 가", min_size=1, max_size=150).filter(str.strip)


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("at_once", [0, 10_000])
@given(actual=long_texts, predicted=long_texts, piece=st.slices(150))
def test_long_pairs_step_by_step_equal_rapidfuzz(
    scorer: str, at_once: int, actual: str, predicted: str, piece: slice
) -> None:
    """To the last bit, with every pair taken for a long one."""
    predicted += actual[piece]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzzy, "_ASCII_CELLS_AT_ONCE", 0)
        patch.setattr(fuzzy.waiting, "CELLS_AT_ONCE", at_once if scorer == "partial_ratio" else 0)
        score = FuzzyMatcher(scorer).similarity(actual, predicted)
    assert score == getattr(fuzz, scorer)(actual, predicted) / 100


def test_a_long_text_along_a_longer_one_equals_rapidfuzz() -> None:
    """Of 700 characters and more the stretches are searched here, as they come."""
    rng = np.random.default_rng(2)
    shorter, longer, equal = (
        "".join(rng.choice([*"eeetttaaoinshr  "], size=size)) for size in (700, 2_000, 700)
    )
    longer = longer[:900] + shorter[100:500] + longer[900:]
    matcher = FuzzyMatcher("partial_ratio")
    for text in (longer, equal):
        assert matcher.similarity(shorter, text) == fuzz.partial_ratio(shorter, text) / 100


@pytest.mark.parametrize("scorer", SCORERS)
@given(text=st.text(min_size=1, max_size=200).filter(str.strip))
def test_identical_texts_are_1(scorer: str, text: str) -> None:
    assert FuzzyMatcher(scorer).similarity(text, text) == 1.0


def test_an_excerpt_and_its_chunk_are_not_alike() -> None:
    """The reason not to use it on chunks: 20 of 220 characters are 2 * 20 / 240 by any order."""
    chunk = "x" * 100 + "the fee is 5 euros.." + "y" * 100
    assert FuzzyMatcher().similarity("the fee is 5 euros..", chunk) == pytest.approx(1 / 6)


@pytest.mark.parametrize("scorer", SCORERS)
def test_blank_texts_never_match(scorer: str) -> None:
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted"):
        scores = scores_of(FuzzyMatcher(scorer), [" \n", "a"], ["", "a"])
    assert scores.tolist() == [[0, 0], [0, 1]]
    assert FuzzyMatcher(scorer).similarity("", "") == 0.0


def test_composed_and_decomposed_hangul_are_equal() -> None:
    text = "지원금은 최대 삼억원"
    assert FuzzyMatcher().similarity(text, unicodedata.normalize("NFD", text)) == 1.0


def test_any_alternative_will_do() -> None:
    matches = FuzzyMatcher().match(
        QuerySet.from_lists([[AnyOf(["abcd", "wxyz"])]], [["wxyz", "abce"]])
    )
    assert matches.similarity.tolist() == [1.0, 0.75]  # abc is 3 of 4 characters on either side


@pytest.mark.parametrize(
    ("scorer", "length", "minutes"),
    [
        # 1.2 million squared, at 10 billion pairs of characters a second: 144 seconds.
        ("ratio", 1_200_000, 2),
        # 40,000 squared, at 500 + 40,000 / 250 stretches, 10 billion cells a second: 106 seconds.
        ("partial_ratio", 40_000, 2),
    ],
)
def test_a_long_wait_is_announced(scorer: str, length: int, minutes: int) -> None:
    units = Units.of_pair(["a" * length, "b" * length])
    with pytest.warns(KragEvalWarning, match=rf"{scorer} compares .* about {minutes} minute"):
        FuzzyMatcher(scorer).announce(units)


def test_words_that_occur_once_make_token_sets_long() -> None:
    """300,000 numbers are 2 million characters: 2e6 * 2.1e6 cells at 1e10 a second, 418 seconds."""
    numbers = [" ".join(map(str, range(start, start + 300_000))) for start in (0, 300_000)]
    with pytest.warns(KragEvalWarning, match=r"token_set_ratio .* about 7 minutes"):
        FuzzyMatcher("token_set_ratio").announce(Units.of_pair(numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repeated = ["again " * 500_000, "more " * 500_000]
        FuzzyMatcher("token_set_ratio").announce(Units.of_pair(repeated))


def test_usual_texts_are_compared_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scorer in SCORERS:
            FuzzyMatcher(scorer).announce(Units.of_pair(["a" * 5_000, "b" * 5_000]))


def test_an_unknown_scorer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scorer must be one of .*; did you mean 'partial_ratio'"):
        FuzzyMatcher("partial-ratio")


@pytest.mark.parametrize("threshold", [-0.1, 1.1, True, "0.8"])
def test_a_threshold_outside_0_to_1_is_refused(threshold: object) -> None:
    with pytest.raises(Refusal) as info:
        FuzzyMatcher(threshold=threshold)  # type: ignore[arg-type]
    assert info.value.argument == "threshold"


def test_the_signature_says_the_scorer() -> None:
    assert FuzzyMatcher("token_set_ratio").signature == "fuzzy(scorer=token_set_ratio)"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_it_can_be_copied_and_pickled(copied) -> None:
    matcher = copied(FuzzyMatcher("partial_ratio", 0.9))
    assert (matcher.signature, matcher.threshold) == ("fuzzy(scorer=partial_ratio)", 0.9)
    assert matcher.similarity("a", "a b") == 1.0


def test_rapidfuzz_is_loaded_at_the_first_match() -> None:
    code = (
        "import sys; from krag_eval.matching.fuzzy import FuzzyMatcher; FuzzyMatcher();"
        "assert not any(name.startswith('rapidfuzz') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
