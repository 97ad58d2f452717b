"""The sample that the commands are run on; its numbers are worked by hand in docs/metrics.md."""

from pathlib import Path

import pytest
from cli_runs import SAMPLE


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Write the sample of two queries."""
    path = tmp_path / "sample.jsonl"
    path.write_text(SAMPLE, "utf-8")
    return path
