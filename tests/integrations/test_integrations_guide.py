"""The LangSmith examples of the guide run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# LangSmith's own, when it first looks at an evaluator on Python 3.12 and later.
pytestmark = pytest.mark.filterwarnings("ignore:ast.Str is deprecated:DeprecationWarning")

GUIDE = Path(__file__).parents[2] / "docs" / "integrations.md"


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
def test_the_offline_example(capsys):
    """Of two questions one is answered by what the target always returns."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (block,) = [block for block in blocks if "upload_results=False" in block]
    exec(compile(block, GUIDE.name, "exec"), {})
    printed = sorted(line for line in capsys.readouterr().out.splitlines() if "recall" in line)
    assert printed == ["Is it free? recall@2 0.0", "When is it open? recall@2 1.0"]
