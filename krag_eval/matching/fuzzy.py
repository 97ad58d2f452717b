"""Likeness of two texts as character strings: edit distance and its relatives, by rapidfuzz."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._language import N_
from krag_eval.errors import Advice, number, one_of, whole
from krag_eval.matching import waiting
from krag_eval.matching.base import TextMatcher
from krag_eval.matching.joins import BlockScorer, FloatArray, IntArray, Units

_SCORERS = ("ratio", "partial_ratio", "token_set_ratio")
#: ``number of a stretch -> where it begins and ends``
Stretch: TypeAlias = Callable[[int], tuple[int, int]]

# "ratio" compares 10 to 18 billion pairs of characters a second in long texts; in short ones
# rapidfuzz 3.14 compares 8 (Korean) to 50 (English) billion.
_SECONDS_PER_CHARACTER_PAIR = 1 / 1e10
# "partial_ratio" slides the shorter text along the longer one: all the way in short texts, and in
# long ones to some hundred stretches, more in long prose (see _Stretches).
_SECONDS_PER_SHORTER_CUBED = 4e-11
_SECONDS_PER_SHORTER_SQUARED_BY_LONGER = 1e-12
_STRETCHES, _CHARACTERS_PER_STRETCH = 500, 250
_SECONDS_PER_CELL = 1e-10
# Of ASCII alone, rapidfuzz compares 50 billion pairs a second.
_ASCII_CELLS_AT_ONCE = 4 * waiting.CELLS_AT_ONCE
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
            pair of texts; under ``"partial_ratio"``, in those of all stretches that are looked at
            in prose. A pair with more is refused before any is scored. It changes no number, so it
            is not in the signature.

    The cost of a pair grows with the product of the two lengths, under ``"partial_ratio"`` with the
    square of the shorter one, some hundred times: two different texts of 10,000 characters take a
    second or three there. Before it begins, a warning tells how long long texts will take, if that
    is more than a minute; Ctrl-C is answered all along.

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
        from rapidfuzz import fuzz, process

        scorer, score_alone = getattr(fuzz, self.scorer), _ALONE[self.scorer]
        sliding = self.scorer == "partial_ratio"
        cells_at_most = _cells_sliding_at_most if sliding else operator.mul
        fast = sliding or all(map(str.isascii, texts))
        at_once = _ASCII_CELLS_AT_ONCE if fast else waiting.CELLS_AT_ONCE
        sizes = self._sizes(texts).astype(np.float64)
        longest = sizes.max(initial=0.0, keepdims=True)
        most_cells = float(cells_at_most(longest, longest)[0])

        def together(actual: IntArray, predicted: IntArray) -> FloatArray:
            sides = ([texts[unit] for unit in side.tolist()] for side in (actual, predicted))
            percent: FloatArray
            percent = process.cdist(*sides, scorer=scorer, dtype=np.float64, workers=1)
            return percent

        def alone(actual: int, predicted: int, advance: waiting.Advance) -> float:
            return score_alone(texts[actual], texts[predicted], advance)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            if most_cells * len(actual) * len(predicted) <= at_once:
                return together(actual, predicted) / 100.0
            lengths, others = sizes[actual], sizes[predicted]

            def cells(row: int) -> FloatArray:
                return cells_at_most(lengths[row : row + 1], others)

            return waiting.in_blocks(actual, predicted, cells, together, alone, at_once) / 100.0

        return score

    def announce(self, units: Units) -> None:
        """Warn of long texts, whose comparison takes minutes, and refuse longer ones."""
        sizes = self._sizes(units.values)
        seconds, at_most, cells = _seconds, _SECONDS_PER_CHARACTER_PAIR, operator.mul
        if self.scorer == "partial_ratio":
            seconds, cells = _seconds_sliding, _cells_sliding
            longest = int(sizes.max(initial=0))
            at_most = (_STRETCHES + longest / _CHARACTERS_PER_STRETCH) * _SECONDS_PER_CELL
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
    along_all = (
        shorter * _SECONDS_PER_SHORTER_CUBED + longer * _SECONDS_PER_SHORTER_SQUARED_BY_LONGER
    )
    along_some = (_STRETCHES + longer / _CHARACTERS_PER_STRETCH) * _SECONDS_PER_CELL
    return float((shorter**2 * np.minimum(along_all, along_some)).sum())


def _cells_sliding(actual: float, predicted: float) -> float:
    """Return the cells of all tables that "partial_ratio" fills for two texts of prose."""
    return _seconds_sliding(np.array([actual]), np.array([predicted])) / _SECONDS_PER_CELL


def _cells_sliding_at_most(actual: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return the cells of the tables of all stretches, as of texts that repeat themselves.

    More of a shorter text of 630 characters and up: from there on :class:`_Stretches` is faster
    than rapidfuzz, and for 5,000 and 5,000 characters thirty times as fast.
    """
    shorter = np.minimum(actual, predicted)
    cells: FloatArray = shorter**2 * np.maximum(actual + predicted, 80 * shorter)
    return cells


def _length_of_distinct_words(text: str) -> int:
    """Return how many characters are compared of a text, at most."""
    if len(text) < _SHORT:
        return len(text)
    words = set(text.split())
    return sum(map(len, words)) + len(words)


# What rapidfuzz does in one call, step by step, so that signals are seen meanwhile. The numbers are
# the same to the last bit: its formulas stand here in its order, in percent.


def _distance(first: str, second: str, advance: waiting.Advance) -> int:
    """Return the insertions and deletions that make one text of the other."""
    n_common = waiting.common_subsequence(_codes(first), _codes(second), advance)
    return len(first) + len(second) - 2 * n_common


def _codes(text: str) -> NDArray[np.int32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<i4"))


def _ratio(first: str, second: str, advance: waiting.Advance) -> float:
    """Return ``fuzz.ratio``."""
    return _likeness(_distance(first, second, advance), len(first) + len(second))


def _likeness(distance: int, length: int) -> float:
    return (1.0 - distance / length) * 100.0


def _token_set_ratio(first: str, second: str, advance: waiting.Advance) -> float:
    """Return ``fuzz.token_set_ratio``: words both have, with the rest of one or the other."""
    words, others = set(first.split()), set(second.split())
    both = len(" ".join(words & others))
    if both and (words <= others or others <= words):
        return 100.0
    rest, other_rest = " ".join(sorted(words - others)), " ".join(sorted(others - words))
    distance = _distance(rest, other_rest, advance)
    space = int(both > 0)
    sizes = [both + space + len(one) for one in (rest, other_rest)]
    ratios = [_apart(distance, sum(sizes))]
    if both:
        ratios += [_apart(size - both, both + size) for size in sizes]
    return max(ratios)


def _apart(distance: int, length: int) -> float:
    # Another order of operations than in _likeness, and another last digit.
    return 100.0 - 100.0 * distance / length


def _partial_ratio(first: str, second: str, advance: waiting.Advance) -> float:
    """Return ``fuzz.partial_ratio``: the ratio of the shorter text and the best stretch."""
    shorter, longer = sorted((first, second), key=len)
    best = _Stretches(shorter, longer, advance).best(0.0)
    if len(shorter) == len(longer):
        best = _Stretches(longer, shorter, advance).best(best)
    return best


class _Stretches:
    """The stretches of a text that are as long as a shorter one, and what is less at either end.

    Most of them need no look. A stretch one further on has a character less here and one more
    there, so its distance differs by 2 at most; from two distances follows how small those between
    can be.
    """

    def __init__(self, shorter: str, longer: str, advance: waiting.Advance) -> None:
        self._shorter, self._longer, self._advance = shorter, longer, advance

    def best(self, best: float) -> float:
        """Return the best ratio of all stretches, or the one that is known if none is better."""
        size, end = len(self._shorter), len(self._longer)
        best = self._best_of(range(end - size + 1), lambda at: (at, at + size), 2, best)
        best = self._best_of(range(1, size), lambda at: (0, at), 1, best)
        return self._best_of(range(end - size + 1, end), lambda at: (at, end), 1, best)

    def _best_of(self, places: range, stretch: Stretch, most_change: int, best: float) -> float:
        """Return the best ratio of the stretches at some places.

        Args:
            places: Numbers of the stretches.
            stretch: Returns where the stretch of that number begins and ends.
            most_change: How much the distances of two neighbours differ at most.
            best: What they have to beat.
        """
        distances: dict[int, int] = {}
        spans = [(places[0], places[-1])] if places else []
        while spans:
            new = sorted({place for span in spans for place in span} - distances.keys())
            for place, distance in zip(new, self._distances([*map(stretch, new)]), strict=True):
                distances[place] = distance
                best = max(best, self._ratio(distance, stretch(place)))
            halves = []
            for first, last in spans:
                nearest = distances[first] + distances[last] - most_change * (last - first)
                longest = max(stretch(first), stretch(last), key=lambda ends: ends[1] - ends[0])
                between, middle = last - first - 1, (first + last) // 2
                if between > 0 and self._ratio(max(-(-nearest // 2), 0), longest) > best:
                    halves += [(first, middle), (middle, last)]
            spans = halves
        return best

    def _ratio(self, distance: int, ends: tuple[int, int]) -> float:
        return _likeness(distance, len(self._shorter) + ends[1] - ends[0])

    def _distances(self, stretches: list[tuple[int, int]]) -> Iterator[int]:
        """Yield the distance of the shorter text and each stretch of the longer."""
        from rapidfuzz import process
        from rapidfuzz.distance import Indel

        shorter = self._shorter
        texts = (self._longer[slice(*ends)] for ends in stretches)
        if len(shorter) ** 2 > waiting.CELLS_AT_ONCE:
            yield from (_distance(shorter, text, lambda cells: None) for text in texts)
        n_at_once = max(1, waiting.CELLS_AT_ONCE // (10 * len(shorter) ** 2))
        while group := [*islice(texts, n_at_once)]:
            yield from process.cdist([shorter], group, scorer=Indel.distance, dtype=np.int64)[0]


_ALONE: dict[str, Callable[[str, str, waiting.Advance], float]] = {
    "ratio": _ratio,
    "partial_ratio": _partial_ratio,
    "token_set_ratio": _token_set_ratio,
}
