"""Longest common subsequences in blocks: the numbers of rapidfuzz, strip by strip."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rapidfuzz.distance import LCSseq

from krag_eval.matching import waiting as subsequences
from krag_eval.matching.waiting import common_subsequence

# Few tokens, so that they repeat; more of them than a strip has columns below.
tokens = st.lists(st.integers(0, 5), max_size=60)


def length(first, second):
    """Return the length, and the cells reported on the way."""
    cells = []
    found = common_subsequence(np.array(first, np.int64), np.array(second, np.int64), cells.append)
    return found, sum(cells)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([], [1, 2], 0),
        ([1, 2], [3, 4], 0),
        ([1, 2, 3], [1, 2, 3], 3),
        # 2 and 4 in order; 1 stands before 2 here and behind 4 there.
        ([1, 2, 3, 4], [2, 9, 4, 1], 2),
        # One side has 7 twice, the other three times: 7 7 8.
        ([7, 7, 8], [7, 5, 7, 7, 8], 3),
    ],
)
def test_by_hand(first, second, expected):
    """Either way round."""
    assert length(first, second)[0] == length(second, first)[0] == expected


@given(first=tokens, second=tokens)
def test_it_equals_rapidfuzz_over_many_strips(first, second):
    """Of 4 columns and 3 rows at a time, so that carries pass from each to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsequences, "_STRIP", 4)
        patch.setattr(subsequences, "_STRETCH", 3)
        found, cells = length(first, second)
    assert found == LCSseq.similarity(first, second)
    assert cells == len(first) * len(second)


def test_it_equals_rapidfuzz_on_long_sequences():
    """Of several strips as they are, with frequent and rare tokens."""
    rng = np.random.default_rng(4)
    first, second = (np.minimum(rng.geometric(0.02, size=40_000), 150) for _ in range(2))
    expected = LCSseq.similarity(first.tolist(), second.tolist())
    assert length(first, second) == (expected, 40_000**2)
