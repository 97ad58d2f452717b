"""The documentation site: everything public is in it, and no link is broken.

CI builds the site itself, with every warning an error; these are quick checks without building it.
"""

import dataclasses
import doctest
import enum
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from docutils import nodes
from docutils.utils import new_document
from places import ROOT
from sphinx.pycode import ModuleAnalyzer

import krag_eval
from krag_eval import METRICS

DOCS = ROOT / "docs"
PAGES = sorted(path for path in [*DOCS.glob("*.md"), *DOCS.glob("ko/*.md")])
#: Korean pages without an English counterpart: what only Korean readers need.
KOREAN_ALONE = {"messages", "recipes"}
KOREAN = sorted({page.stem for page in DOCS.glob("ko/*.md")} - KOREAN_ALONE)
#: Korean pages that leave something out on purpose, and what. All others correspond in full.
SHORTER = {
    "matching": "in the table of damage, the column by letters, as Korean is read so anyway",
    "glossary": "the column with the Korean word: the first one holds both",
}


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch):
    """Return a function that imports one of the site's extensions."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return importlib.import_module


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


def links(page: Path) -> list[str]:
    """Return where the links and pictures of a page lead, those in code left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path) -> None:
    """Where Markdown is shown unrendered, links are paths."""
    inner = [link for link in links(page) if not re.match(r"[a-z]+:|#", link)]
    missing = [link for link in inner if not (page.parent / link.partition("#")[0]).exists()]
    # The reference of the API is written when the site is built.
    assert [link for link in missing if not re.match(r"(\.\./)?api/", link)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_picture_says_what_it_shows(page: Path) -> None:
    """For those who cannot see it, and for search."""
    assert re.findall(r"!\[\s*\]", page.read_text("utf-8")) == []


def test_every_page_is_in_the_contents(extension) -> None:
    """Placed by name, or among those that nobody placed yet."""
    names = {name_of(page) for page in PAGES}
    text = extension("pages_found").contents((DOCS / "index.md").read_text("utf-8"), names)
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    entries = {line for block in blocks for line in block.splitlines()}
    assert names - entries == {"index"}


@pytest.mark.parametrize("name", KOREAN)
def test_page_is_there_in_both_languages(name: str) -> None:
    """And each leads to the other in its first lines."""
    english, korean = DOCS / f"{name}.md", DOCS / "ko" / f"{name}.md"
    assert f"[한국어](ko/{name}.md)" in english.read_text("utf-8")[:200]
    assert f"[English](../{name}.md)" in korean.read_text("utf-8")[:200]


def outline(page: Path) -> list[str]:
    """Return a page's headings by level, tables by size, and blocks of code by language.

    The contents of the site stand on one page alone, and readers do not see them there.
    """
    found, inside, rows = [], False, 0
    for line in [*page.read_text("utf-8").splitlines(), ""]:
        if fence := re.match(r"```(.*)", line):
            found += [] if inside or fence[1] == "{toctree}" else [f"code {fence[1]}"]
            inside = not inside
        elif not inside and line.startswith("#"):
            found.append(line.partition(" ")[0])
        if line.startswith("|") and not inside:
            rows += 1
            columns = len(re.findall(r"(?<!\\)\|", line)) - 1
        elif rows:
            found.append(f"table {rows} x {columns}")
            rows = 0
    return found


def pages_linked(page: Path) -> set[str]:
    """Return the names of the pages that a page leads to, where both languages have them."""
    inner = {link.partition("#")[0] for link in links(page) if ".md" in link}
    names = {Path(link).stem for link in inner if "/api/" not in f"/{link}"}
    return names - KOREAN_ALONE - {page.stem}


@pytest.mark.parametrize("name", [name for name in KOREAN if name not in SHORTER])
def test_pages_correspond(name: str) -> None:
    """The same headings, tables, blocks of code and neighbours, in the same order."""
    english, korean = DOCS / f"{name}.md", DOCS / "ko" / f"{name}.md"
    assert outline(korean) == outline(english)
    assert pages_linked(korean) == pages_linked(english)


def test_what_is_left_out_is_still_left_out() -> None:
    """A page that corresponds by now is held to it."""
    same = {n for n in SHORTER if outline(DOCS / f"{n}.md") == outline(DOCS / "ko" / f"{n}.md")}
    assert same == set()


@pytest.mark.parametrize("page", sorted(DOCS.glob("ko/*.md")), ids=name_of)
def test_korean_pages_lead_to_korean_pages(page: Path) -> None:
    """Wherever there is one, so that readers stay in their language."""
    body = page.read_text("utf-8").partition("*[English]")[2].partition("\n")[2]
    english = set(re.findall(r"\]\(\.\./([\w-]+)\.md", body))
    assert english & set(KOREAN) <= ({page.stem} if page.stem in SHORTER else set())


def test_both_readmes_link_the_same_pages() -> None:
    """Whichever of a page's languages they take; each leads to the other one, too."""
    english, korean = (
        {re.sub(r"(^|/)ko/|\.ko(?=\.)", r"\1", link.partition("#")[0]) for link in links(readme)}
        for readme in (ROOT / "README.md", ROOT / "README.ko.md")
    )
    assert "docs/metrics.md" in english
    assert english == korean


@pytest.mark.parametrize(("page", "language"), [("metrics", "en"), ("ko/metrics", "ko")])
def test_every_metric_of_the_registry_has_a_section(extension, page: str, language: str) -> None:
    """With its card, its row in the table at the top, and its picture."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    cards = extension("metric_cards")
    for metric in METRICS:
        assert f"`{cards.keys_and_calls()[metric][0][0]}`" in cards.with_cards(text, language)
        suffix = "_ko" if language == "ko" else ""
        assert (DOCS / f"images/metrics/{metric}{suffix}.svg").exists()
        assert f"images/metrics/{metric}{suffix}.svg)" in text


def test_pictures_of_metrics_show_what_the_package_computes(monkeypatch, tmp_path: Path) -> None:
    """Every label and number of the committed files is what drawing them anew gives."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "images"), *sys.path])
    maker = importlib.import_module("make_metric_pictures")
    pictures = maker.pictures()
    assert set(pictures) == {path.name for path in (DOCS / "images/metrics").iterdir()}
    for name, draw in pictures.items():
        maker.save(draw(), tmp_path / name)
        committed = (DOCS / "images/metrics" / name).read_text("utf-8")
        assert words_of(committed) == words_of((tmp_path / name).read_text("utf-8")), name
        assert len(words_of(committed)) > 5, name


def test_the_picture_of_the_report_says_what_the_report_says(monkeypatch, tmp_path: Path) -> None:
    """In the words for those who cannot see it; its file is small enough for a first page."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "images"), *sys.path])
    page = tmp_path / "report.html"
    importlib.import_module("make_report_picture").write_report(page)
    said = re.sub(r"\s+", " ", page.read_text("utf-8"))
    assert "80 % of what should come back did" in said
    assert "21 of 28 queries" in said
    for index, told in (("index.md", "80 %.* 28 .* 21 "), ("ko/index.md", "80%.* 28개.* 21개")):
        text = (DOCS / index).read_text("utf-8")
        (alt,) = re.findall(r"!\[([^\]]*)\]\([./]*images/report\.png\)", text)
        assert re.search(told, alt.replace("\n", " "))
    assert (DOCS / "images/report.png").stat().st_size < 200_000


def words_of(svg: str) -> list[str]:
    """Return what is written in a picture, in order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_a_metric_without_a_section_stops_the_build(extension) -> None:
    """The message says which one it is."""
    text = (DOCS / "metrics.md").read_text("utf-8").replace("<!-- metric: ndcg -->", "")
    with pytest.raises(ValueError, match=r"for every metric of krag_eval\.METRICS, once.*see ndcg"):
        extension("metric_cards").with_cards(text, "en")


def test_cards_hold_what_the_page_works_by_hand(extension) -> None:
    """Of a, x, b, y, z with c missing: recall 1/3, 1/3, 2/3; AP@3 5/9; nDCG@3 1.5/2.13093."""
    values = extension("metric_cards").values
    assert values("recall") == [1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3]
    assert values("average_precision")[2] == pytest.approx(5 / 9)
    assert values("ndcg")[2] == pytest.approx(1.5 / 2.130930, abs=1e-6)


def test_cards_count_the_words_of_the_chunks(extension) -> None:
    """Of 12 words wanted; 9, 5, 7, 4, 10 retrieved, 7, 0, 7, 0, 6 in runs, 7, 0, 2, 0, 3 new."""
    values = extension("metric_cards").values
    assert values("token_recall") == [7 / 12, 7 / 12, 9 / 12, 9 / 12, 1.0]
    assert values("token_precision") == [7 / 9, 7 / 14, 9 / 21, 9 / 25, 12 / 35]
    assert values("token_iou") == [7 / 14, 7 / 19, 9 / 24, 9 / 28, 12 / 35]
    assert values("redundancy") == pytest.approx([0.0, 0.0, 5 / 14, 5 / 14, 8 / 20])


def test_every_public_name_is_in_the_reference(extension) -> None:
    """Those of the package and of every public module, from their ``__all__``."""
    pages = extension("api_pages").pages()
    text = "\n".join(pages.values())
    for name in extension("api_pages").names_of(krag_eval):
        assert f":: krag_eval.{name}\n" in text, name
    for module in ("datasets", "plotting", "report", "compat.evaluators", "compat.utils"):
        assert f"krag_eval.{module}.md" in pages
        names = importlib.import_module(f"krag_eval.{module}").__all__
        shown = pages[f"krag_eval.{module}.md"]
        assert [n for n in names if f".{n}\n" not in shown and f"`{n}`" not in shown] == []


def test_index_of_the_reference_tells_of_every_name(extension) -> None:
    """A constant too, and files are evaluated under the same heading as lists."""
    index = extension("api_pages").pages()["index.md"]
    told = dict(re.findall(r"^- \[`(\w+)`\]\(krag_eval\.\w+\.md\)(.*)$", index, re.MULTILINE))
    public = {*extension("api_pages").names_of(krag_eval)}
    assert public <= told.keys()
    assert [name for name in sorted(public) if len(told[name]) < 10] == []
    evaluating = index.partition("## Evaluating\n")[2].partition("\n## ")[0]
    assert "[`evaluate_file`]" in evaluating
    assert "[`OfflineRetrievalEvaluator`]" in evaluating


def test_a_new_public_name_appears_by_itself(extension, monkeypatch) -> None:
    """Only ``__all__`` has to change."""
    monkeypatch.setattr(krag_eval, "brand_new", krag_eval.compare, raising=False)
    monkeypatch.setattr(krag_eval, "__all__", [*krag_eval.__all__, "brand_new"])
    monkeypatch.setitem(extension("api_pages").HOMES, "brand_new", "somewhere.else")
    pages = extension("api_pages").pages()
    assert "autofunction:: krag_eval.brand_new\n" in pages["krag_eval.brand_new.md"]
    assert "## More\n" in pages["index.md"]


def test_everything_in_the_reference_says_what_it_is(extension) -> None:
    """A class or function without a docstring would be an empty page."""
    api = extension("api_pages")
    for name, module in api.public_modules().items():
        assert inspect.getdoc(module), name
        for public in api.names_of(module):
            value = getattr(module, public)
            if not isinstance(value, ModuleType):
                told = api.first_sentence(value) or api.said_of(f"{name}.{public}")
                assert told, f"{name}.{public}"


def test_every_attribute_in_the_reference_has_a_sentence(extension) -> None:
    """In the docstring of the class or of a base; so have what results hold, and choices."""
    api = extension("api_pages")
    classes = [getattr(module, name) for module in api.public_modules().values()
               for name in api.names_of(module)]  # fmt: skip
    for place in api.HELD:
        module, _, name = f"krag_eval.{place}".rpartition(".")
        classes.append(getattr(importlib.import_module(module), name))
    for one in filter(inspect.isclass, classes):
        told = "\n".join(inspect.getdoc(base) or "" for base in one.__mro__[:-1])
        fields = dataclasses.fields(one) if dataclasses.is_dataclass(one) else ()
        names = {field.name for field in fields} | {*getattr(one, "_fields", ())}
        for name in sorted(names):
            if not name.startswith("_") and not one.__module__.startswith("krag_eval.compat"):
                assert re.search(rf"^ +(\w+, )*{name}(, \w+)*:", told, re.MULTILINE), (one, name)
        if issubclass(one, enum.Enum) and one.__module__ == "krag_eval.core.conventions":
            comments = ModuleAnalyzer.for_module(one.__module__).find_attr_docs()
            assert {*one.__members__} <= {name for owner, name in comments if owner == one.__name__}


def test_what_a_class_has_from_a_base_without_a_page_is_in_the_reference(extension) -> None:
    """A base that has one is named."""
    pages = extension("api_pages").pages()
    assert ":inherited-members:" in pages["krag_eval.Slices.md"]
    assert ":show-inheritance:" in pages["krag_eval.CoverageMatcher.md"]
    assert "krag_eval.core.results.evidence.PredictedDocument.md" in pages["index.md"]


def test_a_page_that_loads_from_another_host_is_found(extension, tmp_path: Path) -> None:
    """Scripts, styles, pictures and fonts; a link to follow is no fault."""
    page = (
        '<a href="https://example.org/">to follow</a><img src="here.png"><a href="gone.html">x</a>'
        '<h2 id="here">y</h2><a href="#here">x</a><a href="index.html#nowhere">x</a>'
        '<script src="https://example.org/a.js"></script><img src="//example.org/b.png">'
    )
    (tmp_path / "index.html").write_text(page, "utf-8")
    (tmp_path / "here.png").touch()
    (tmp_path / "a.css").write_text("@font-face{src:url(https://example.org/f.woff)}", "utf-8")
    assert list(extension("offline").faults(tmp_path)) == [
        "index.html: loads https://example.org/a.js",
        "index.html: loads //example.org/b.png",
        "index.html: gone.html is not there",
        "index.html: index.html#nowhere is not there",
        "a.css: loads from another host",
    ]


def test_every_path_that_was_released_leads_somewhere(extension) -> None:
    """As a page, or to the heading where its text is now; a page that is there is not hidden."""
    moved = extension("moved_pages").moved()
    there = {name_of(page) for page in PAGES}
    released = (ROOT / "tests/data/pages_released.txt").read_text("utf-8").split()
    assert [one for one in released if one not in there and one not in moved] == []
    assert moved.keys() & there == set()
    for old, (page, heading) in moved.items():
        assert heading in {"", *slugs(DOCS / f"{page}.md")}, old


@pytest.mark.parametrize("folder", ["", "ko/"], ids=["en", "ko"])
def test_the_first_page_leads_to_every_page(folder: str) -> None:
    """By its table of what one has and wants, which stands before anything else."""
    first = DOCS / folder / "index.md"
    table, _, _ = first.read_text("utf-8").partition("\n## ")
    led = {link.partition("#")[0] for link in re.findall(r"\]\(([\w-]+\.md[^)]*)\)", table)}
    there = {page.name for page in PAGES if page.parent == first.parent}
    assert there - led == {"index.md"}


def slugs(page: Path) -> list[str]:
    """Return the anchors of a page's headings, as MyST and code forges make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = [title.lower() for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return [re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles]


def test_a_page_that_sends_on_to_nowhere_is_found(extension, tmp_path: Path) -> None:
    """What a moved page leads to is checked like a link."""
    page = extension("moved_pages").redirection("old", "new.html#gone", "New")
    (tmp_path / "old.html").write_text(page, "utf-8")
    (tmp_path / "new.html").write_text('<h2 id="here">New</h2>', "utf-8")
    found = list(extension("offline").faults(tmp_path))
    assert found == ["old.html: new.html#gone is not there"]


def blocks_with_prompts(page: Path) -> list[str]:
    fences = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in fences if ">>> " in block]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_the_button_copies_is_the_code(extension, page: Path) -> None:
    """The lines behind a prompt are what doctest runs, blank ones left out."""
    prompt = re.compile(f"^(?:{extension('code_blocks').PROMPT})")
    for block in blocks_with_prompts(page):
        lines = [prompt.sub("", line) for line in block.splitlines() if prompt.match(line)]
        sources = "".join(one.source for one in doctest.DocTestParser().get_examples(block))
        assert lines == [line for line in sources.splitlines() if line.strip()]


def test_blocks_of_code_end_with_their_last_line(extension) -> None:
    """The empty line before the closing fence is for doctest; lines within stay."""
    document = new_document("page")
    text = ">>> 1\n1\n\n>>> 2\n2\n\n"
    document += nodes.literal_block(text, text)
    extension("code_blocks").trim(None, document)
    (block,) = document.findall(nodes.literal_block)
    assert block.astext() == block.rawsource == ">>> 1\n1\n\n>>> 2\n2"


def test_formulas_become_mathml(extension) -> None:
    """TeX as the pages use it: a fraction, a sum, words, Hangul; nothing is left of it."""
    convert = extension("mathml").convert
    formula = r"\text{찾은 항목 수}@k = \frac{1}{n} \sum_{q \in Q} \log_2(f + 1)"
    drawn = convert(formula, "block")
    assert "<mfrac>" in drawn
    assert "찾은" in drawn
    assert "\\" not in drawn


def test_formulas_of_all_pages_can_be_drawn(extension) -> None:
    """No backslash is left, which would be a command the converter does not know."""
    convert = extension("mathml").convert
    formulas = [
        formula
        for page in PAGES
        for formula in re.findall(
            r"^```math\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        )
    ]
    assert len(formulas) > 10
    assert [formula for formula in formulas if "\\" in convert(formula, "block")] == []
