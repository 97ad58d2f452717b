"""How much of the ground-truth text a retrieved text holds: the right question for chunks.

Matchers for the runs of words that two texts share, and for their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import Advice, Fix, boolean, number, whole
from krag_eval.matching.base import TextMatcher
from krag_eval.matching.joins import BlockScorer, FloatArray, IntArray
from krag_eval.matching.numbering import TokenNumbers, numbered
from krag_eval.matching.plaintext import numbers_in
from krag_eval.matching.tokenizers import Tokenizer, resolve_tokenizer, tokenizer_name

__all__ = ["CoverageMatcher", "NumbersMatcher"]

TokenArray: TypeAlias = NDArray[np.int32]
BucketArray: TypeAlias = NDArray[np.uint16]

_MIN_RUN = 5
# Tokenizers whose tokens are far shorter than words.
_MIN_RUNS = {"character": 15}

_BUCKETS = 1 << 16
_TOKEN_BYTES = np.dtype(np.int32).itemsize
_MOST_CELLS = 1 << 23
# Any large odd number spreads consecutive numbers; this one is 2**32 divided by the golden ratio.
_SPREAD = np.uint32(2654435769)


class CoverageMatcher(TextMatcher):
    """A document matches when it holds most of the ground-truth text.

    The similarity is the share of the ground-truth text's words that lie in runs of at least
    ``min_run`` consecutive words that also occur, just so, in the predicted text. It reads as "how
    much of the golden passage would the reader see", in [0, 1], higher is better. Runs keep words
    that every text has ("of the") from counting as found; a ground-truth text shorter than
    ``min_run`` must occur as a whole.

    Right for retrieved chunks: whatever else a chunk holds, and wherever it was cut, does not
    count against it. The similarity is not symmetric, the ground truth comes first. Two texts of
    the same words are 1, whatever their case, punctuation, markup and line breaks (as far as the
    tokenizer goes). A text without words is 0 with everything.

    No word weighs more than another: another year, another amount or a "not" in the middle takes a
    word or a few from the share and leaves it above the threshold. ``numbers`` settles the first
    two; no matcher here sees a negation.

    Args:
        threshold: Share from which a pair is a match.
        min_run: Consecutive tokens that count as found. If not given, 5; with
            ``tokenizer="character"``, 15: five words are some 15 characters of Korean (25 to 30 of
            English).
        tokenizer: A name of ``krag_eval.matching.tokenizers`` or a callable ``str -> list[str]``.
            ``"character"`` ignores spaces, for text where they cannot be trusted, such as Korean
            from PDF files.
        numbers: If true, the similarity is 0 unless every number of the ground-truth text occurs in
            the predicted text, in any place and order. What counts as a number, and as the same,
            is that of :class:`NumbersMatcher`, whatever the tokenizer.

    Raises:
        InvalidInput: If the threshold is outside [0, 1], ``min_run`` is below 1, or no tokenizer
            has that name; when matching, if the tokenizer finds nothing in a text that has letters
            or digits.
        InvalidType: If one of them is of another type, or ``numbers`` is not a bool.

    Five of the six words of the ground truth stand together in this chunk:

    >>> matcher = CoverageMatcher()
    >>> matcher.similarity("Refunds take up to five days", "… take up to five days. Fees: none.")
    0.8333333333333334
    >>> matcher.similarity("Refunds take up to five days", "Up to five refunds take days.")
    0.0

    Of these ten words two are lost, the year and the word before it:

    >>> chunk = "In 2023 revenue from lending rose to a record high, too."
    >>> matcher.similarity("In 2024 revenue from lending rose to a record high", chunk)
    0.8
    >>> CoverageMatcher(numbers=True).similarity(
    ...     "In 2024 revenue from lending rose to a record high", chunk)
    0.0
    """

    name = "coverage"
    normalize: ClassVar[bool] = False
    advice: ClassVar[Fix] = Advice(
        "If the two sides write the same passage differently (spaces, hyphens, corrected errors), "
        "try {}; if both sides carry ids, try {}",
        matcher=("coverage(tokenizer=character)", "id"),
    )

    def __init__(
        self,
        threshold: float = 0.8,
        min_run: int | None = None,
        tokenizer: str | Tokenizer = "words",
        *,
        numbers: bool = False,
    ) -> None:
        self.threshold = number("threshold", threshold, 0, 1)
        self.tokenizer = resolve_tokenizer(tokenizer)
        if min_run is None:
            min_run = _MIN_RUNS.get(tokenizer_name(self.tokenizer), _MIN_RUN)
        self.min_run = whole("min_run", min_run, 1)
        self.numbers = boolean("numbers", numbers)

    def settings(self) -> dict[str, object]:
        """Return the length of a run, of what, and whether numbers must occur in the chunk."""
        settings = {"min_run": self.min_run, "tokenizer": tokenizer_name(self.tokenizer)}
        return settings | ({"numbers": True} if self.numbers else {})

    def read(self, texts: Sequence[str]) -> TokenNumbers | _WithNumbers:
        """Tokenise each distinct text once."""
        tokens = numbered(self.tokenizer, texts)
        return _WithNumbers(tokens, _numbers_of(texts)) if self.numbers else tokens

    def block_scorer(self, texts: Sequence[str] | TokenNumbers | _WithNumbers) -> BlockScorer:
        """Find the runs that may be shared."""
        read = texts if isinstance(texts, (TokenNumbers, _WithNumbers)) else self.read(texts)
        if isinstance(read, TokenNumbers):
            return _SharedRuns(read, self.min_run).shares
        shares = _SharedRuns(read.tokens, self.min_run).shares
        numbers = read.numbers

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            block = shares(actual, predicted)
            for row, column in zip(*map(np.ndarray.tolist, np.nonzero(block)), strict=True):
                if not numbers[actual[row]] <= numbers[predicted[column]]:
                    block[row, column] = 0.0
            return block

        return score


class NumbersMatcher(TextMatcher):
    """A document matches when it holds the numbers of the ground-truth text.

    The similarity is the share of the ground-truth text's different numbers that occur in the
    predicted text, in any place and order, in [0, 1]; 1 if the ground-truth text has none. So it is
    for use with another matcher: ``CoverageMatcher() & NumbersMatcher()`` wants the passage, and
    its numbers unchanged. (``CoverageMatcher(numbers=True)`` makes the same decisions and is
    faster.)

    A number is a run of digits, wherever it stands, and those that points join to it: 3 in Q3, 2.5,
    1.2.3, each part of the date 2024-09-30. It counts by its value, 1,234 is 1234, 05 is 5 and 7.50
    is 7.5; several points, as in 30.09.2024, leave it as it is written. Signs, units and percent
    signs do not count, nor does what only markup holds; numbers spelled in letters are none.

    Args:
        threshold: Share from which a pair is a match.

    Raises:
        InvalidInput: If the threshold is outside [0, 1].

    >>> NumbersMatcher().similarity("1,200 euros for 3 years", "3 years, 1200 euros, 20 people")
    1.0
    >>> NumbersMatcher().similarity("1,200 euros for 3 years", "1,300 euros for 3 years")
    0.5
    """

    name = "numbers"
    normalize: ClassVar[bool] = False
    advice: ClassVar[Fix] = Advice(
        "Every number of the ground truth must occur in the chunk, in digits; with {} half of them "
        "will do",
        threshold=0.5,
    )

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = number("threshold", threshold, 0, 1)

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Find the numbers of each distinct text once."""
        numbers = _numbers_of(texts)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            truths = [numbers[unit] for unit in actual.tolist()]
            found = [numbers[unit] for unit in predicted.tolist()]
            return np.array(
                [[len(t & f) / len(t) if t else 1.0 for f in found] for t in truths], float
            )

        return score


@dataclass(frozen=True, eq=False)
class _WithNumbers:
    """All distinct texts as tokens, and the numbers in each."""

    tokens: TokenNumbers
    numbers: list[frozenset[str]]

    def take(self, texts: IntArray) -> _WithNumbers:
        """Return some of the texts, in the order asked for."""
        return _WithNumbers(self.tokens.take(texts), [self.numbers[text] for text in texts])


def _numbers_of(texts: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(numbers_in(text)) for text in texts]


class _Haystack(NamedTuple):
    """The predicted texts of one query, one after the other."""

    tokens: TokenArray
    token_bytes: bytes
    buckets: BucketArray
    ends: IntArray
    shorter: dict[int, _Haystack]

    def for_runs_of(self, run: int) -> _Haystack:
        """Return the same texts with hashes of shorter runs, for the same query made once."""
        if run not in self.shorter:
            self.shorter[run] = self._replace(buckets=_buckets(self.tokens, run))
        return self.shorter[run]


class _SharedRuns:
    """Finds runs of tokens that texts share; knows every distinct text as an array of integers.

    A run of tokens is looked up in two steps. A short hash of the run at each position, made once
    for all texts, leaves a handful of positions per query; there the tokens themselves are
    compared, so the result is exact.
    """

    def __init__(self, tokens: TokenNumbers, min_run: int) -> None:
        self._min_run = min_run
        self._tokens, self._bounds = _separated(tokens)
        self._buckets = _buckets(self._tokens, min_run)
        self._marked = np.zeros(_BUCKETS, np.bool_)

    def shares(self, actual: IntArray, predicted: IntArray) -> FloatArray:
        """Return how much of each ground-truth text each predicted text holds."""
        spans = [self._span(unit) for unit in predicted.tolist()]
        tokens = np.concatenate([self._tokens[span] for span in spans])
        haystack = _Haystack(
            tokens,
            tokens.tobytes(),
            np.concatenate([self._buckets[span] for span in spans]),
            np.cumsum([span.stop - span.start for span in spans]),
            {},
        )
        return np.stack([self._share(self._span(unit), haystack) for unit in actual.tolist()])

    def _span(self, unit: int) -> slice:
        return slice(self._bounds[unit], self._bounds[unit + 1])

    def _share(self, span: slice, haystack: _Haystack) -> FloatArray:
        """Return how much of one ground-truth text each text of the haystack holds."""
        truth, buckets = self._tokens[span], self._buckets[span]
        size = len(truth) - 1  # without the separator
        if not size:
            return np.zeros(len(haystack.ends))
        run = min(self._min_run, size)
        if run < self._min_run:
            buckets, haystack = _buckets(truth, run), haystack.for_runs_of(run)
        places = self._places(buckets[: size - run + 1], haystack.buckets)
        return np.concatenate(list(_shares(truth, run, haystack, places)))

    def _places(self, wanted: BucketArray, buckets: BucketArray) -> IntArray:
        """Return the positions whose run may be one of the wanted ones."""
        self._marked[wanted] = True
        places = np.flatnonzero(self._marked[buckets])
        self._marked[wanted] = False
        return places


def _shares(
    truth: TokenArray, run: int, haystack: _Haystack, places: IntArray
) -> Iterator[FloatArray]:
    """Yield how much of the ground truth the texts hold, for some of them after the others.

    Args:
        truth: The tokens of the ground truth, and the separator.
        run: Tokens in a run.
        haystack: The texts.
        places: Where in them a run of the ground truth may begin.
    """
    size, n_texts = len(truth) - 1, len(haystack.ends)
    runs, found = _runs(truth, run, haystack, places)
    text = np.searchsorted(haystack.ends, places[found >= 0], side="right")
    found = found[found >= 0]
    # One table of runs and texts is fastest, but of a book and a hundred texts it would take GBs.
    step = max(1, _MOST_CELLS // size)
    for first in range(0, n_texts, step):
        n = min(step, n_texts - first)
        here = slice(*np.searchsorted(text, [first, first + n]).tolist())
        occurs = np.zeros((int(runs.max()) + 1, n), np.bool_)
        occurs[found[here], text[here] - first] = True
        yield _covered(occurs[runs], run) / size


def _covered(begins: NDArray[np.bool_], run: int) -> IntArray:
    """Return how many tokens lie in runs, given where in which text (column) runs begin."""
    n_runs, n_texts = begins.shape
    # A run that begins here covers the tokens up to ``run`` further on: +1 here, -1 there, and
    # the running sum says how many runs cover a token.
    edges = np.zeros((n_runs + run, n_texts), np.int32)
    edges[:n_runs] += begins
    edges[run:] -= begins
    covered = np.cumsum(edges[:-1], axis=0, dtype=np.int32) > 0
    n_covered: IntArray = np.count_nonzero(covered, axis=0)
    return n_covered


def _runs(
    truth: TokenArray, run: int, haystack: _Haystack, places: IntArray
) -> tuple[IntArray, IntArray]:
    """Number the distinct runs of the ground truth; return those at its positions and at places.

    At a place where none begins, the number is -1.
    """
    width = run * _TOKEN_BYTES
    own, others = truth.tobytes(), haystack.token_bytes
    number: dict[bytes, int] = {}
    runs = [
        number.setdefault(own[start : start + width], len(number))
        for start in range(0, len(own) - width, _TOKEN_BYTES)
    ]
    # A run that reaches into the next text has the separator in it and equals none.
    found = [number.get(others[at : at + width], -1) for at in (places * _TOKEN_BYTES).tolist()]
    return np.array(runs, np.int64), np.array(found, np.int64)


def _separated(tokens: TokenNumbers) -> tuple[TokenArray, list[int]]:
    """Return all tokens as integers from 1, a 0 after each text, and where each text begins."""
    sizes = tokens.sizes
    separated = np.zeros(len(tokens.flat) + len(sizes), np.int32)
    separated[np.arange(len(tokens.flat)) + np.repeat(np.arange(len(sizes)), sizes)] = tokens.flat
    ends = np.cumsum(sizes + 1)
    separated += 1
    separated[ends - 1] = 0
    return separated, [0, *ends.tolist()]


def _buckets(tokens: TokenArray, run: int) -> BucketArray:
    """Return a hash of the ``run`` tokens from each position on; near the end, of fewer."""
    mixed = tokens.astype(np.uint32)
    width = 1
    while True:
        mixed *= _SPREAD
        mixed ^= mixed >> np.uint32(15)
        # Twice the width each time; the last step may overlap, which does no harm to a hash.
        step = min(width, run - width)
        if step <= 0 or step >= len(mixed):
            return (mixed >> np.uint32(16)).astype(np.uint16)
        mixed[:-step] += mixed[step:]
        width += step
