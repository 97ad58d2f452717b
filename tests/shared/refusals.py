"""Refusals: the type of an error, and the argument it blames."""

from contextlib import contextmanager

import pytest

from krag_eval.errors import InvalidInput


@contextmanager
def blamed(argument, error=InvalidInput, match=None):
    """Expect an error that blames this argument."""
    with pytest.raises(error, match=match) as caught:
        yield caught
    assert caught.value.argument == argument
