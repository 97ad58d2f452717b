"""What the guides say of Korean text that was changed, and what the default is held to."""

import json

import pytest
from places import DOCS

from benchmarks import korean_spaces
from krag_eval import CoverageMatcher


@pytest.mark.parametrize("change", korean_spaces.HELD)
def test_the_default_decides_right_whatever_happened_to_spaces(change):
    """Right are the windows that hold four fifths of an excerpt by its place in the text."""
    assert korean_spaces.decided("coverage", change)["f1"] >= 0.95


@pytest.mark.parametrize(("change", "most"), [("one digit changed", 0.05), ("a negation", 0.15)])
def test_another_number_or_a_negation_is_another_passage(change, most):
    """Without the guard, more than half of what says something else matches."""
    assert korean_spaces.accepted(CoverageMatcher(), change) <= most
    assert korean_spaces.accepted(CoverageMatcher(numbers="ignore", polarity=False), change) > 0.5


@pytest.mark.parametrize(("page", "language"), [("texts.md", "en"), ("ko/texts.md", "ko")])
def test_the_tables_are_those_of_the_file(page, language):
    """And the file says what the default does; the other matchers take longer."""
    found = json.loads(korean_spaces.FILE.read_text("utf-8"))
    text = (DOCS / page).read_text("utf-8")
    assert f"\n\n{korean_spaces.markdown(found, language)}\n\n" in text
    for change in korean_spaces.CHANGES:
        assert korean_spaces.decided("coverage", change) == found["decided"][change]["coverage"]


@pytest.mark.parametrize(
    "passage",
    [
        "2018. 6. 11. 계약을 맺고 2018. 7. 1.부터 2020. 6. 30.까지 빌린다",
        "① 2024년 예산은 3억원이다. ② 2025년 예산은 5억원이다",
    ],
)
def test_lost_spaces_make_no_other_numbers(passage):
    """Points of a date and circles around the numbers of paragraphs stay what they are."""
    chunk = "앞의 글. " + passage.replace(" ", "") + " 뒤의 글."
    assert CoverageMatcher(numbers=True).similarity(passage, chunk) == 1.0
    assert CoverageMatcher(numbers=True).similarity(chunk[6:-7], passage) == 1.0
