"""The sample that the commands evaluate; docs/metrics.md works out its numbers by hand."""

from pathlib import Path

import pytest
from cli_runs import SAMPLE


@pytest.fixture(autouse=True)
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the sample of two queries."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sample.jsonl"
    path.write_text(SAMPLE, "utf-8")
    return path
