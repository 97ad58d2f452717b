"""Which tests run: by default those of the ``test`` extra; with ``--full`` all there are.

A test marked ``full`` takes long, or is a property that needs many examples to mean more than the
tests beside it. ``WITH_DEV`` needs packages of the ``dev`` extra. ``.ci/run`` runs everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
#: What needs an engine, another evaluation tool or the builder of the site.
WITH_DEV = (
    "docs/_ext",
    "tests/cli/test_cli_trec.py",
    "tests/datasets/test_trec.py",
    "tests/datasets/test_trec_parity.py",
    "tests/distributed",
    "tests/test_options.py",
    "tests/test_parity.py",
    "tests/test_parity_ranx.py",
    "tests/test_site.py",
)

settings.register_profile("quick", max_examples=20, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--full``."""
    parser.addoption("--full", action="store_true", help="also what needs the dev extra, or long")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark, and try fewer examples of each property unless everything is to run."""
    config.addinivalue_line("markers", "full: takes long; runs with --full alone")
    if not config.getoption("--full"):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the test extra does not bring packages for, unless asked for."""
    if config.getoption("--full"):
        return None
    return any(collection_path == ROOT / one for one in WITH_DEV) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, and say how much."""
    if config.getoption("--full"):
        return
    slow = [item for item in items if item.get_closest_marker("full")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
