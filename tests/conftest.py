"""What tests of several rooms start from."""

from pathlib import Path

import pytest
from browser import browser as browser


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the sample of two queries; docs/metrics.md works out its numbers."""
    from cli_runs import SAMPLE

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sample.jsonl"
    path.write_text(SAMPLE, "utf-8")
    return path


@pytest.fixture(autouse=True)
def _in_its_folder(request: pytest.FixtureRequest) -> None:
    """Run each test of the shell, in ``test_cli_*.py``, beside the sample."""
    if request.node.path.name.startswith("test_cli_"):
        request.getfixturevalue("sample")


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file as it is, without translating line ends."""

    def write(content, name="run.jsonl"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
