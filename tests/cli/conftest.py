"""The sample that the commands evaluate; docs/metrics.md works out its numbers by hand."""

from pathlib import Path

import pytest
from cli_runs import SAMPLE


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Write the sample of two queries."""
    path = tmp_path / "sample.jsonl"
    path.write_text(SAMPLE, "utf-8")
    return path
