"""The examples of the Korean pages run as their readers run them: with words in Korean."""

import pytest


@pytest.fixture(autouse=True)
def _in_korean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
