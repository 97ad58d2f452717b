"""A run that is killed, with no chance to clean up."""

import os

import killing_streams
import pytest


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a signal of POSIX systems")
def test_killed_runs_go_on_to_the_same_rows_and_summary():
    """At random moments; `python tests/streaming/killing_streams.py 50` does it more often."""
    assert killing_streams.main(4, seed=7) >= 4
