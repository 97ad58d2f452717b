"""The record of a retrieval: its summary, and what is refused when it is read back."""

import json
import math

import numpy as np
import pytest

from krag_eval.core.results.latency import Failure, Latency, RetrievalRun

FAILED = Failure(1, "TimeoutError", "too slow", 30.0)
RUN = RetrievalRun(np.array([0.5, math.nan, 1.5, 12.25]), (FAILED,))


def test_latency_is_over_what_was_answered():
    """By hand: (0.5 + 1.5 + 12.25) / 3; the middle one; 0.9 of the way from there to the last."""
    assert RUN.latency == (4.75, 1.5, pytest.approx(1.5 + 0.9 * 10.75))
    assert all(map(math.isnan, RetrievalRun(np.array([math.nan])).latency))


def test_the_summary_reads_well():
    """In units of a fitting size."""
    assert RUN.summary() == "latency: mean 4.75 s, p50 1.50 s, p95 11.2 s; 1 of 4 queries failed"
    assert str(Latency(0.0123456, 2e-6, math.nan)) == "mean 12.3 ms, p50 0.002 ms, p95 -"


def test_it_reads_back_the_same():
    """Through JSON."""
    read = RetrievalRun.of_content(json.loads(json.dumps(RUN.content())), 4)
    assert np.array_equal(read.seconds, RUN.seconds, equal_nan=True)
    assert read.failures == RUN.failures
    assert RetrievalRun.of_content(None, 4) is None


@pytest.mark.parametrize(
    "damage",
    [
        *({"seconds": one} for one in ([0.5], [0.5, None, -1, 1], [0.5, None, "nan", 1],
                                       [0.5, None, True, 1], None)),
        *({"failures": one} for one in (
            [{"position": 4, "type": "", "message": "", "seconds": 0}],
            [{"position": 0, "type": 1, "message": "", "seconds": 0}],
            [{"position": 0, "type": "", "message": ""}], [3], None)),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(damage):
    """By the errors that a damaged file is known by."""
    with pytest.raises((ValueError, TypeError)):
        RetrievalRun.of_content({**RUN.content(), **damage}, 4)
