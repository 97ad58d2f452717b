"""Likeness of two texts as character strings: edit distance and its relatives, by rapidfuzz."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from krag_eval.core import (
    N_,
    Advice,
    FloatArray,
    IntArray,
    TextMatcher,
    Units,
    number,
    one_of,
    whole,
)
from krag_eval.core.matching.joins import BlockScorer
from krag_eval.matchers import waiting

_SCORERS = ("ratio", "partial_ratio", "token_set_ratio")

# "ratio" compares 10 to 18 billion pairs of characters a second in long texts; in short ones
# rapidfuzz 3.14 compares 8 (Korean) to 50 (English) billion.
_SECONDS_PER_CHARACTER_PAIR = 1 / 1e10
# "partial_ratio" slides the shorter text along the longer one.
_SECONDS_PER_SHORTER_CUBED = 4e-11
_SECONDS_PER_SHORTER_SQUARED_BY_LONGER = 1e-12
_SECONDS_PER_CELL = 1e-10
# Of fewer characters it does not matter how many words are repeated.
_SHORT = 50_000

_FASTER = Advice(
    N_("Cut the texts into chunks, or use {}, whose time grows with the length of the texts only"),
    matcher="coverage",
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
        max_cells: The most cells, one length times the other, in the table that is filled for a
            pair of texts; under ``"partial_ratio"``, which fills many tables, the cells that take
            as long. A pair with more is refused before any is scored. It changes no number, so it
            is not in the signature.

    The cost of a pair grows with the product of the two lengths, under ``"partial_ratio"`` with the
    cube of the shorter one: two texts of 10,000 characters take 40 seconds there. Before it begins,
    a warning tells how long long texts will take, if that is more than a minute. Ctrl-C is answered
    between ground-truth texts, not within a pair.

    Raises:
        InvalidInput: If the scorer has no such name, the threshold is outside [0, 1] or
            ``max_cells`` is below 1; when matching, for a pair of texts with more than
            ``max_cells``.
        InvalidType: If one of them is of another type.

    >>> FuzzyMatcher().similarity("The fee is 5 euros.", "The tee is 5 euros.")
    0.9473684210526316
    >>> FuzzyMatcher("partial_ratio").similarity("The fee is 5 euros.", "fee")
    1.0
    >>> FuzzyMatcher("token_set_ratio").similarity("euros 5", "Not 5 dollars but 50 euros")
    1.0
    """

    name = "fuzzy"

    def __init__(
        self, scorer: str = "ratio", threshold: float = 0.8, max_cells: int = waiting.MAX_CELLS
    ) -> None:
        self.scorer = one_of("scorer", scorer, _SCORERS)
        self.threshold = number("threshold", threshold, 0, 1)
        self.max_cells = whole("max_cells", max_cells, 1)

    _advice = Advice(
        N_("If the ground truth is a passage and the retriever returns chunks, try {}"),
        matcher="coverage",
    )

    def settings(self) -> dict[str, object]:
        """Return the way of scoring."""
        return {"scorer": self.scorer}

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Prepare nothing: rapidfuzz works on the texts themselves."""
        from rapidfuzz import fuzz

        scorer = getattr(fuzz, self.scorer)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            truths, chunks = ([texts[unit] for unit in side] for side in (actual, predicted))
            return waiting.score_rows(scorer, truths, chunks) / 100.0

        return score

    def announce(self, units: Units) -> None:
        """Warn of long texts, whose comparison takes minutes, and refuse longer ones."""
        sizes = self._sizes(units.values)
        seconds, at_most, cells = _seconds, _SECONDS_PER_CHARACTER_PAIR, operator.mul
        if self.scorer == "partial_ratio":
            seconds, cells = _seconds_sliding, _cells_sliding
            per_character = _SECONDS_PER_SHORTER_CUBED + _SECONDS_PER_SHORTER_SQUARED_BY_LONGER
            at_most = float(sizes.max(initial=0)) * per_character
        how = f"fuzzy {self.scorer}", "characters", seconds, at_most, _FASTER, cells
        waiting.check_waits(units, sizes, waiting.Comparison(*how), self.max_cells)

    def _sizes(self, texts: Sequence[str]) -> IntArray:
        """Return how many characters of each text are compared, at most."""
        size = _length_of_distinct_words if self.scorer == "token_set_ratio" else len
        return np.fromiter(map(size, texts), np.int64, len(texts))


def _seconds(actual: FloatArray, predicted: FloatArray) -> float:
    return float(actual.sum() * predicted.sum() * _SECONDS_PER_CHARACTER_PAIR)


def _seconds_sliding(actual: FloatArray, predicted: FloatArray) -> float:
    shorter = np.minimum.outer(actual, predicted)
    longer = np.maximum.outer(actual, predicted)
    along = shorter * _SECONDS_PER_SHORTER_CUBED + longer * _SECONDS_PER_SHORTER_SQUARED_BY_LONGER
    return float((shorter**2 * along).sum())


def _cells_sliding(actual: float, predicted: float) -> float:
    """Return how many cells "ratio" fills in the time that "partial_ratio" takes for two texts."""
    return _seconds_sliding(np.array([actual]), np.array([predicted])) / _SECONDS_PER_CELL


def _length_of_distinct_words(text: str) -> int:
    """Return how many characters are compared of a text, at most."""
    if len(text) < _SHORT:
        return len(text)
    words = set(text.split())
    return sum(map(len, words)) + len(words)
