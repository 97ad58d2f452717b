"""Likeness of two texts as character strings: edit distance and its relatives, by rapidfuzz."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from krag_eval._errors import unknown_name
from krag_eval.matching.base import TextMatcher, check_threshold
from krag_eval.matching.joins import BlockScorer, FloatArray, IntArray, Units
from krag_eval.matching.waiting import Comparison, warn_of_long_wait

__all__ = ["FuzzyMatcher"]

_SCORERS = ("ratio", "partial_ratio", "token_set_ratio")

# rapidfuzz 3.14 on texts of 1,000 to 1,000,000 characters: "ratio" compares 10 (Korean) to 45
# (English) billion pairs of characters a second; "partial_ratio" slides the shorter text along the
# longer one, and a text of 10,000 characters along another takes 40 seconds.
_SECONDS_PER_CHARACTER_PAIR = 1 / 2e10
_SECONDS_PER_SHORTER_CUBED = 4e-11
_SECONDS_PER_SHORTER_SQUARED_BY_LONGER = 1e-12
# Of fewer characters it does not matter how many words are repeated.
_SHORT = 50_000

_ADVICE = (
    'Cut the texts into chunks, or use matcher="coverage", whose time grows with the length of the '
    "texts only."
)


class FuzzyMatcher(TextMatcher):
    """Texts match when they are nearly the same string of characters.

    The similarity is rapidfuzz's score divided by 100, in [0, 1], higher is better; identical texts
    are 1. Texts are compared as they are, case and punctuation included, after NFC normalisation.

    Right for finding the same text again with typing or recognition errors in it. **Wrong for
    retrieved chunks**: a passage and the window around it are not alike as wholes, so ``"ratio"``
    finds none of them at any useful threshold; use ``"coverage"`` there.

    Args:
        scorer: ``"ratio"``: the share of characters of both texts that stay when one is edited
            into the other. Unrelated texts of one language reach 0.4 and more, hence the high
            default threshold.
            ``"partial_ratio"``: the ratio of the shorter text and the best stretch of the longer.
            It does not ask which of the two is the ground truth: a retrieved "the" is 1 with every
            ground truth that has a "the" in it.
            ``"token_set_ratio"``: the ratio of the texts' sets of words, split at white space, in
            alphabetical order. It is 1 as soon as all words of one occur in the other, in any
            order, however much else is there.
        threshold: Similarity from which a pair is a match.

    The cost of a pair grows with the product of the two lengths, under ``"partial_ratio"`` with the
    cube of the shorter one: two different texts of 10,000 characters take most of a minute there.
    Before it begins, a warning tells how long long texts will take, if that is more than a minute.

    Raises:
        ValueError: If the scorer has no such name or the threshold is outside [0, 1].

    >>> FuzzyMatcher().similarity("The fee is 5 euros.", "The tee is 5 euros.")
    0.9473684210526316
    >>> FuzzyMatcher("partial_ratio").similarity("The fee is 5 euros.", "fee")
    1.0
    >>> FuzzyMatcher("token_set_ratio").similarity("euros 5", "Not 5 dollars but 50 euros")
    1.0
    """

    name = "fuzzy"
    advice: ClassVar[str] = (
        'If the ground truth is a passage and the retriever returns chunks, try matcher="coverage".'
    )

    def __init__(self, scorer: str = "ratio", threshold: float = 0.8) -> None:
        if scorer not in _SCORERS:
            raise ValueError(unknown_name("scorer", scorer, _SCORERS))
        self.scorer = scorer
        self.threshold = check_threshold(threshold)

    def settings(self) -> dict[str, object]:
        """Return the way of scoring."""
        return {"scorer": self.scorer}

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Prepare nothing: rapidfuzz works on the texts themselves."""
        from rapidfuzz import fuzz, process

        scorer = getattr(fuzz, self.scorer)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            percent: FloatArray = process.cdist(
                [texts[unit] for unit in actual.tolist()],
                [texts[unit] for unit in predicted.tolist()],
                scorer=scorer,
                dtype=np.float64,
                workers=1,
            )
            return percent / 100.0

        return score

    def announce(self, units: Units) -> None:
        """Warn of long texts, whose comparison takes minutes."""
        texts: Sequence[str] = units.values
        if self.scorer == "token_set_ratio":
            lengths = [_length_of_distinct_words(text) for text in texts]
        else:
            lengths = [*map(len, texts)]
        sizes = np.array(lengths, np.int64)
        if self.scorer == "partial_ratio":
            seconds, longest = _seconds_sliding, int(sizes.max(initial=0))
            at_most = longest * (
                _SECONDS_PER_SHORTER_CUBED + _SECONDS_PER_SHORTER_SQUARED_BY_LONGER
            )
        else:
            seconds, at_most = _seconds, _SECONDS_PER_CHARACTER_PAIR
        comparison = Comparison(f"fuzzy {self.scorer}", "characters", seconds, at_most, _ADVICE)
        warn_of_long_wait(units, sizes, comparison)


def _seconds(actual: FloatArray, predicted: FloatArray) -> float:
    return float(actual.sum() * predicted.sum() * _SECONDS_PER_CHARACTER_PAIR)


def _seconds_sliding(actual: FloatArray, predicted: FloatArray) -> float:
    shorter = np.minimum.outer(actual, predicted)
    longer = np.maximum.outer(actual, predicted)
    per_shorter_squared = (
        shorter * _SECONDS_PER_SHORTER_CUBED + longer * _SECONDS_PER_SHORTER_SQUARED_BY_LONGER
    )
    return float((shorter**2 * per_shorter_squared).sum())


def _length_of_distinct_words(text: str) -> int:
    """Return how many characters are compared of a text, at most."""
    if len(text) < _SHORT:
        return len(text)
    words = set(text.split())
    return sum(map(len, words)) + len(words)
