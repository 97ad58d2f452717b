"""How often something random is tried: as often as a test says with ``--full``, else less often."""

import pytest
from hypothesis import settings

#: A test that tries fewer cases of its own by default; with ``--rest`` it tries all of them.
tries_fewer = pytest.mark.tries_fewer


def trials(n: int) -> int:
    """Return so many cases with ``--full`` and ``--rest``, by default a fifth, but 20 at least."""
    share = settings.default.max_examples / 100
    return round(n * share) if n * share > 20 else min(n, 20)
