"""The longest common subsequence of two long sequences, in short steps.

rapidfuzz computes the same number in a single call into C, which Ctrl-C cannot interrupt; here
Python has its turn after every token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.matching.joins import IntArray

__all__ = ["Advance", "common_subsequence"]

#: Hears how many cells of the table have been filled since it was last called.
Advance: TypeAlias = Callable[[int], object]
Sequence: TypeAlias = IntArray | NDArray[np.int32]

# Integers of 2 KB stay in the fastest cache, and the tokens of a strip have as many of them.
_STRIP = 1 << 14
# Tokens between two calls of ``advance``: a tenth of a second.
_STRETCH = 1 << 16


def common_subsequence(first: Sequence, second: Sequence, advance: Advance) -> int:
    """Return the length of the longest common subsequence of two sequences of integers.

    Time grows with the product of the lengths: 10 to 18 billion cells a second on one core.
    Tokens that only one side has, and what both begin or end with, cost next to nothing.

    Args:
        first: Integers, equal where tokens are equal; shape (tokens,).
        second: The other sequence, likewise.
        advance: Called along the way; what it is given adds up to the product of the lengths.

    >>> common_subsequence(np.array([1, 2, 3, 4]), np.array([2, 9, 4, 1]), lambda cells: None)
    2

    Source: Hyyrö, *Bit-Parallel LCS-length Computation Revisited*, 2004, in strips of the table as
    Myers does for edit distance (*A Fast Bit-Vector Algorithm for Approximate String Matching*,
    1999, section 4).
    """
    cells = len(first) * len(second)
    first, second, n_common = _trimmed(first, second)
    if len(first) < len(second):  # fewer tokens to go through in each strip
        first, second = second, first
    advance(cells - len(first) * len(second))
    carries = bytes(len(second))
    for start in range(0, len(first), _STRIP):
        strip = _Strip(first[start : start + _STRIP].tolist())
        carries = b"".join(strip.carries(second, carries, advance))
        n_common += strip.n_common
    return n_common


class _Strip:
    """Some columns of the table: tokens of one sequence, as the bits of integers.

    The table's entry (i, j) is the length for the first i tokens of the one and the first j of the
    other sequence. Going along a row it rises by 0 or 1; where it rises, the bit is 0.
    """

    def __init__(self, tokens: list[int]) -> None:
        self._width = len(tokens)
        self._row = (1 << self._width) - 1
        self._places: dict[int, int] = {}
        for place, token in enumerate(tokens):
            self._places[token] = self._places.get(token, 0) | 1 << place

    @property
    def n_common(self) -> int:
        """How much the last row has risen over this strip."""
        return self._width - self._row.bit_count()

    def carries(self, tokens: Sequence, carries: bytes, advance: Advance) -> Iterable[bytes]:
        """Go down the rows; yield where the addition runs over into the next strip.

        Args:
            tokens: The other sequence, one token a row.
            carries: What runs over from the strip before, 0 or 1 a row.
            advance: Hears of the cells.
        """
        for start in range(0, len(tokens), _STRETCH):
            stretch = slice(start, start + _STRETCH)
            rows = tokens[stretch].tolist()
            yield self._after(rows, carries[stretch])
            advance(len(rows) * self._width)

    def _after(self, tokens: list[int], carries: bytes) -> bytes:
        row, end, places = self._row, 1 << self._width, self._places.get
        carried = bytearray(len(tokens))
        for number, (token, carry) in enumerate(zip(tokens, carries, strict=True)):
            here = row & places(token, 0)
            if here or carry:
                total = row + here + carry
                row = total | row ^ here
                if total >= end:
                    row -= end
                    carried[number] = 1
        self._row = row
        return bytes(carried)


def _trimmed(first: Sequence, second: Sequence) -> tuple[Sequence, Sequence, int]:
    """Drop what costs time and decides nothing.

    Returns:
        Both sequences without tokens the other lacks and without what they begin and end with
        alike, and the number of tokens in that.
    """
    first, second = first[np.isin(first, second)], second[np.isin(second, first)]
    start = _n_alike(first, second)
    first, second = first[start:], second[start:]
    end = _n_alike(first[::-1], second[::-1])
    return first[: len(first) - end], second[: len(second) - end], start + end


def _n_alike(first: Sequence, second: Sequence) -> int:
    """Return how many tokens two sequences begin with alike."""
    n = min(len(first), len(second))
    different = first[:n] != second[:n]
    return int(different.argmax()) if different.any() else n
