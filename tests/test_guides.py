"""The matchers that the guides show are run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from krag_eval import CoverageMatcher, Matcher, OfflineRetrievalEvaluator

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = [DOCS / "matching.md", DOCS / "ko" / "matching.md"]


def shown(guide: Path, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Run the guide's code block that defines ``name``; return what it defined."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", guide.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (block,) = [block for block in blocks if f"class {name}" in block]
    scope: dict[str, Any] = {"Matcher": Matcher, **inputs}
    exec(compile(block, f"{guide.name}: {name}", "exec"), scope)
    return scope


def pages(source: str, first: int, last: int) -> Document:
    metadata = {"source": source, "first_page": first, "last_page": last}
    return Document(f"{source} {first}-{last}", metadata=metadata)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.parent.name)
def test_page_range_matcher(guide: Path) -> None:
    """A chunk that spans two of the four golden pages is half of them, and a match at 0.5."""
    inputs = {
        "actual": [[pages("a.pdf", 3, 6)]],
        # Another file; one of four pages (0.25); pages 5 and 6 of 3 to 6 (0.5).
        "predicted": [[pages("b.pdf", 3, 6), pages("a.pdf", 6, 9), pages("a.pdf", 5, 7)]],
    }
    matcher = shown(guide, "PageRangeMatcher", inputs)["PageRangeMatcher"]()
    evaluator = OfflineRetrievalEvaluator(inputs["actual"], inputs["predicted"], matcher=matcher)
    assert evaluator.calculate_mrr() == {"mrr": 1 / 3}
    assert evaluator.with_threshold(0.25).calculate_mrr() == {"mrr": 1 / 2}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.parent.name)
def test_numbers_matcher(guide: Path) -> None:
    """All numbers of the ground truth must be in the chunk; 1,200 and 1200 are one number."""
    matcher = shown(guide, "NumbersMatcher", {})["NumbersMatcher"]()
    actual = [["The grant is 1,200 euros for 3 years."]]
    predicted = [["3 years, 1,300 euros", "In 3 years you receive 1200 euros."]]
    evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher=matcher)
    assert evaluator.calculate_mrr() == {"mrr": 1 / 2}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.parent.name)
def test_numbers_matcher_joins_another(guide: Path) -> None:
    """The passage with another figure is covered well enough, and refused for its figure."""
    numbers = shown(guide, "NumbersMatcher", {})["NumbersMatcher"]()
    truth = "Each applicant may borrow up to 12 books for a period of four weeks"
    changed = truth.replace("12", "15")
    predicted = [[changed, truth]]
    # Without the figure 6 + 7 of 14 words stand in runs of at least five: 0.93.
    assert CoverageMatcher().similarity(truth, changed) == pytest.approx(13 / 14)
    both = OfflineRetrievalEvaluator([[truth]], predicted, matcher=CoverageMatcher() & numbers)
    assert both.calculate_mrr() == {"mrr": 1 / 2}
