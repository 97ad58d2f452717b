"""What is committed of the study holds together: decisions, numbers, tables and pages."""

import csv
import gzip
import io
import json
import re
from collections import Counter

import pytest
from places import ROOT

from study import consequence, page, tables
from study.__main__ import RESULTS, SHOWN

PAGES = {
    "en": ROOT / "docs" / "what-a-yes-is-worth.md",
    "ko": ROOT / "docs" / "ko" / "what-a-yes-is-worth.md",
}


@pytest.fixture(scope="module")
def found():
    return json.loads((RESULTS / "decisions.json").read_bytes())


def decided(kind):
    """Return the rows of a file of decisions, and the systems by their place."""
    text = gzip.decompress((RESULTS / "decided" / f"{kind}.csv.gz").read_bytes()).decode()
    header, *rows = csv.reader(io.StringIO(text))
    return rows, header[-1].split("|")


@pytest.mark.parametrize("kind", ["verbatim", "apart", "damaged", "contradicted"])
def test_the_numbers_are_those_of_the_decisions(kind, found):
    rows, names = decided(kind)
    counts = Counter()
    for pair, part, right, said in rows:
        source = pair.split("/")[1]
        for name, answer in zip(names, said, strict=True):
            if source != "texts" and answer != "-":
                counts[source, part, name, right, answer] += 1
    records = [
        one
        for one in found["decisions"]
        if one["how"] == "main" and one["kind"] == kind and one["source"] != "texts"
    ]
    assert records
    for one in records:
        key = one["source"], one["part"], one["system"]
        cells = ("1", "1"), ("0", "1"), ("1", "0"), ("0", "0")
        expected = [counts[(*key, *cell)] for cell in cells]
        assert [one[name] for name in ("tp", "fp", "fn", "tn")] == expected


@pytest.mark.parametrize("collection", ["chroma", "clapnq"])
def test_the_consequence_rests_on_as_many_decisions_of_its_systems(collection):
    numbers = json.loads((RESULTS / "consequence.json").read_bytes())[collection]
    rows, names = decided(f"consequence_{collection}")
    assert names == [*numbers["systems"]]
    assert {len(row[-1]) for row in rows} == {len(names)}
    assert len(rows) == numbers["pairs"]
    assert sum(row[3] == "1" for row in rows) == numbers["right pairs"]


def test_tables_are_those_of_the_numbers(found):
    assert (RESULTS / "decisions.md").read_text("utf-8") == tables.tables(found)
    effects = json.loads((RESULTS / "consequence.json").read_bytes())
    assert (RESULTS / "consequence.md").read_text("utf-8") == consequence.tables(effects)
    for name, content in page.tables(found, effects, SHOWN).items():
        assert (RESULTS / name).read_bytes() == content


@pytest.mark.parametrize("language", PAGES)
def test_the_page_has_the_tables_of_the_study(language):
    text = PAGES[language].read_text("utf-8")
    for table in (RESULTS / f"page_{language}.md").read_text("utf-8").strip().split("\n\n"):
        assert table in text


def numbers_in(text):
    """Return the numbers of a text that are no round ones: .85, 0.850, 341."""
    text = re.sub(r"\]\(.*?\)", "", text)
    return {
        one.lstrip("0")
        for one in re.findall(r"(?<![\d.,])(?:\d?\.\d{2,3}|\d{3})(?![\d,]*\d)", text)
    }


@pytest.mark.parametrize("language", PAGES)
def test_every_number_of_the_page_is_one_that_the_study_prints_for_it(language):
    """In its tables they are held to the letter; in words, to the list of what it says."""
    text = PAGES[language].read_text("utf-8")
    prose = numbers_in(re.sub(r"^\|.*?$", "", text, flags=re.MULTILINE))
    assert len(prose) > 30
    assert prose - {".98"} <= numbers_in((RESULTS / "figures.md").read_text("utf-8"))


def decision(found, kind, system, measure):
    """Return a number as pages have it."""
    of = {"how": "main", "part": "held", "system": system}
    records = [
        one
        for one in tables.chosen(found["decisions"], **of)
        if (one["kind"], one["language"]) == kind
    ]
    return page.short(records[0][measure][0])


def accepted(found, source, system):
    """Return which share of chunks with another digit a system accepts."""
    of = {"source": source, "variant": "one digit", "part": "held", "system": system}
    (one,) = tables.chosen(found["contradictions"], **of)
    return page.short(one["accepted_of_accepted"])


def test_the_readmes_and_the_traps_say_what_the_study_found(found):
    """Each of their paragraphs that names the page has these numbers and no others."""
    english, korean = ("verbatim", "en"), ("verbatim", "ko")
    coverage = {decision(found, of, "coverage", "precision") for of in (english, korean)}
    assert decision(found, english, "coverage", "recall") == "1.00"
    assert decision(found, korean, "coverage", "recall") == "1.00"
    claims = decision(found, ("claim", "en"), "ROUGE-L recall", "recall")
    expected = {
        "README.md": coverage,
        "README.ko.md": coverage,
        "docs/why-your-rag-metric-is-wrong.md": {
            decision(found, english, "ROUGE-L", "recall"),
            decision(found, english, "ragas", "recall"),
            decision(found, ("damaged", "en"), "contains", "recall"),
            *(accepted(found, "clapnq", one) for one in ("MiniLM", "coverage")),
            claims,
        },
        "docs/ko/why-your-rag-metric-is-wrong.md": {
            *(accepted(found, "korquad", one) for one in ("multilingual USE", "coverage")),
            claims,
        },
    }
    for name, numbers in expected.items():
        parts = re.split(r"\n\n|\n- ", (ROOT / name).read_text("utf-8"))
        said = "\n".join(one for one in parts if "what-a-yes-is-worth.md" in one)
        assert set(re.findall(r"(?<!\d)\.\d\d(?!\d)", said)) == numbers, name


def test_nothing_kept_is_a_text():
    for path in (RESULTS / "decided").glob("*.gz"):
        rows, _ = decided(path.name.removesuffix(".csv.gz"))
        # An identifier names source, document and places; none is as long as a sentence.
        assert max(len(row[0]) for row in rows) < 200


def test_the_pages_show_the_pictures_of_the_study():
    shown = ROOT / "docs" / "images" / "study"
    for path in RESULTS.glob("*.svg"):
        assert (shown / path.name).read_bytes() == path.read_bytes()
