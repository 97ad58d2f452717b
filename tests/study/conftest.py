"""A folder with the study's texts in miniature."""

import gzip
import hashlib

import pytest
from study_texts import TEXTS

from study import pairs, sources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with all files, some packed, under names of no meaning."""
    files = {}
    for at, (name, text) in enumerate(TEXTS.items()):
        content = text.encode()
        files[name] = sources.FILES[name]._replace(sum=hashlib.sha256(content).hexdigest())
        below = tmp_path / "texts" / str(at % 3)
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{at}").write_bytes(gzip.compress(content) if at % 2 else content)
    others = {name: file for name, file in sources.FILES.items() if name not in files}
    monkeypatch.setattr(sources, "FILES", files | others)
    monkeypatch.setattr(pairs, "N_KORQUAD", 1)
    return tmp_path / "texts"
