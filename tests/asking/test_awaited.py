"""Functions that ask and those that are awaited: the same arguments, under two names."""

import inspect

import pytest

import krag_eval


@pytest.mark.parametrize("name", ["evaluate_agent", "evaluate_retriever", "evaluate_retrievers"])
def test_what_is_awaited_takes_what_its_twin_takes(name):
    """Every argument, its default and what it returns, once awaited."""
    twin = getattr(krag_eval, f"a{name}")
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(getattr(krag_eval, name))
