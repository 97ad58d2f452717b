"""The quick start's Python reads the files that the page had its reader write."""

import runpy
import sys
from pathlib import Path

import pytest

SMALL_RAG = Path(__file__).parents[1] / "notebooks" / "small_rag.py"


@pytest.fixture(autouse=True)
def _files_of_the_quick_start(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.path.stem != "quickstart":
        return
    monkeypatch.chdir(tmp_path)
    language = "ko" if request.node.path.parent.name == "ko" else "en"
    for arguments in ("first --mistakes", "before", "after --overlap 40"):
        typed = [str(SMALL_RAG), *arguments.split(), "--lang", language]
        monkeypatch.setattr(sys, "argv", typed)
        runpy.run_path(str(SMALL_RAG), run_name="__main__")
