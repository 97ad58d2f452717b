"""Refusals: the type of an error, and the argument it blames."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from krag_eval.errors import InvalidInput


@contextmanager
def refused_for(argument, error=InvalidInput, match=None):
    """Expect an error that blames this argument."""
    with pytest.raises(error, match=match) as caught:
        yield caught
    assert caught.value.argument == argument
