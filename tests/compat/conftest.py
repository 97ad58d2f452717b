"""Figures as a notebook would show them."""

import pytest
from matplotlib import pyplot


@pytest.fixture
def shown(monkeypatch):
    """Collect the figures that are shown."""
    pyplot.switch_backend("agg")
    figures = []
    monkeypatch.setattr(pyplot, "show", lambda: figures.append(pyplot.gcf()))
    yield figures
    pyplot.close("all")
