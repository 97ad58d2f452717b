"""Drawing without a screen, and no figure left open."""

from collections.abc import Iterator

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    from matplotlib import pyplot

    settings = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    # Every test of a plot is a test of this: nobody's settings are touched.
    assert dict(matplotlib.rcParams) == settings
