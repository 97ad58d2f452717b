"""The matchers in the guides run as printed."""

import re
from typing import Any

import pytest
from langchain_core.documents import Document
from places import DOCS

from benchmarks import chunk_sizes, contradictions
from krag_eval import CoverageMatcher, Matcher, OfflineRetrievalEvaluator
from krag_eval.core.matching.names import MATCHER_NAMES
from krag_eval.core.matching.tokenizers import TOKENIZER_NAMES

GUIDES = [DOCS / "matching.md", DOCS / "ko" / "matching.md"]
each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.parent.name)


def shown(guide, name, inputs):
    """Run the guide's code block that defines ``name``; return what it defined."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", guide.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (block,) = [block for block in blocks if f"class {name}" in block]
    scope: dict[str, Any] = {"Matcher": Matcher, **inputs}
    exec(compile(block, f"{guide.name}: {name}", "exec"), scope)
    return scope


def pages(source, first, last):
    metadata = {"source": source, "first_page": first, "last_page": last}
    return Document(f"{source} {first}-{last}", metadata=metadata)


@each_guide
def test_page_range_matcher(guide):
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


@each_guide
def test_codes_matcher(guide):
    """All codes of the ground truth must be in the chunk, also where another matcher joins it."""
    codes = shown(guide, "CodesMatcher", {})["CodesMatcher"]()
    truth = "Each applicant may order up to one AB-1203 for a period of four weeks"
    changed = truth.replace("AB", "AC")
    # Without the letters 7 + 7 of 15 words stand in runs of at least five: 0.93.
    assert CoverageMatcher().similarity(truth, changed) == pytest.approx(14 / 15)
    for matcher, actual, predicted in (
        (codes, "Filters AB-1203 and AB-1204 fit.", ["AB-1203 fits.", "Order AB-1204 or AB-1203."]),
        (CoverageMatcher() & codes, truth, [changed, truth]),
    ):
        evaluator = OfflineRetrievalEvaluator([[actual]], [predicted], matcher=matcher)
        assert evaluator.calculate_mrr() == {"mrr": 1 / 2}


@pytest.mark.parametrize("folder", [DOCS, DOCS / "ko"], ids=["en", "ko"])
def test_the_guides_name_every_matcher_and_tokenizer(folder):
    """So that readers can find every one."""
    text = "".join((folder / f"{page}.md").read_text("utf-8") for page in ("matching", "texts"))
    assert [name for name in (*MATCHER_NAMES, *TOKENIZER_NAMES) if f'"{name}"' not in text] == []


@pytest.mark.parametrize(
    ("page", "headings"),
    [
        ("files", ["Any table of questions", "TREC", "BEIR", "AutoRAG", "Saving a data set"]),
        ("matching", ["Key matchers", "Similarity matchers", "Thresholds", "Your own matcher"]),
        ("matching", ["Together: pieces of a passage", "Numbers and negations", "Markup"]),
        ("langchain", ["When queries fail", "Latency", "Recording inside a chain"]),
        ("performance", ["Several processes: `n_jobs`", "Long texts and many copies"]),
    ],
)
def test_sections_keep_their_place(page, headings):
    """Links that people saved lead there: each heading is there once, with something said."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    for heading in headings:
        (section,) = re.findall(
            rf"^#+ {re.escape(heading)}\n\n(.+?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE
        )
        assert len(section) > 50


@pytest.mark.parametrize(("page", "language"), [("", "en"), ("ko", "ko")])
def test_the_table_of_chunk_sizes_is_what_the_command_prints(page, language):
    """Every number, and which are in bold; ``python -m benchmarks.chunk_sizes --markdown``."""
    text = (DOCS / page / "chunk-sizes.md").read_text("utf-8")
    assert f"\n\n{chunk_sizes.markdown(language)}\n\n" in text


def test_the_tables_of_contradictions_are_what_the_command_prints():
    """What is accepted that says something else, and the first hits on a corpus in versions."""
    for table in contradictions.of_all_languages("held"):
        for page, words in (("", contradictions.ENGLISH), ("ko", contradictions.KOREAN)):
            text = (DOCS / page / "matching.md").read_text("utf-8")
            assert f"\n\n{contradictions.markdown(table, words)}\n\n" in text


@pytest.mark.parametrize(
    ("page", "language"), [("matching", "en"), ("ko/matching", "ko"), ("ko/texts", "mix")]
)
def test_the_tables_of_damage_say_what_coverage_decides(page, language):
    """The other matchers take longer."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    words = contradictions.KOREAN if "ko/" in page else contradictions.ENGLISH
    for change, cells in contradictions.right("held", language, ("coverage",)).items():
        assert f"\n| {words.get(change, change)} | {words.get(cells[0], cells[0])} |" in text


@pytest.mark.parametrize("language", ["en", "ko"])
def test_words_say_what_places_in_the_text_say(language):
    """Token recall of each question, where chunks and excerpts have known places in a handbook."""
    agreed = chunk_sizes.agreement(language).values()
    assert len(agreed) == 6
    assert min(correlation for correlation, _ in agreed) >= 0.99
    assert max(error for _, error in agreed) <= 0.015


def test_the_table_of_changed_coverage_is_what_is_measured():
    """Passage, chunk, similarity under the tokenizer of 0.1.0 and under the default."""
    page = (DOCS / "changed-numbers.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| `(.+)` \| (\d\.\d\d) \| (\d\.\d\d) \|$", page, re.MULTILINE)
    assert len(rows) >= 10
    for passage, chunk, before, now in rows:
        chunk = chunk.replace("⏎", "\n")
        measured = [
            matcher.similarity(passage, chunk)
            for matcher in (
                CoverageMatcher(tokenizer="unicode", numbers="ignore", polarity=False),
                CoverageMatcher(tokenizer="words"),
            )
        ]
        assert [f"{similarity:.2f}" for similarity in measured] == [before, now], passage


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_a_readme_is_read_in_two_screens(name):
    """Under 800 words, what is code included."""
    assert len(DOCS.parent.joinpath(name).read_text("utf-8").split()) < 800
