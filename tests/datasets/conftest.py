"""What tests of files share."""

import pytest


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file as it is, without translating line ends."""

    def write(content, name="run.jsonl"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
