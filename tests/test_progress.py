"""Bars: where they are wanted, and those that come and go."""

import pytest

from krag_eval._io import bar_of, bars


def bar(progress=None, **options):
    """Return a bar of ten."""
    return bar_of(progress, total=10, done=0, title="working", **options)


def test_a_bar_without_a_wish_of_its_own_follows_the_one_around_it():
    """And its own wish goes before that."""
    assert bar() is None  # nobody looks at a test
    with bars(True):
        assert bar() is not None
        assert bar(False) is None
        with bars(False):
            assert bar() is None
            assert bar(True) is not None
        assert bar() is not None
    assert bar() is None


@pytest.mark.parametrize("passing", [True, False])
def test_a_passing_bar_is_not_seen_at_once_nor_left(passing, capsys):
    """It is for what may be over before anybody reads it."""
    shown = bar(True, passing=passing)
    shown.update(10)
    shown.close()
    assert ("working" in capsys.readouterr().err) is not passing
