"""Where files of the project lie that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
SHARED = TESTS / "shared"
DATA = TESTS / "data"
