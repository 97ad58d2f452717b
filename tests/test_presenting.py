"""One presentation: whatever is shown has every form, in every language, from one page."""

import gettext
import io
import re
from dataclasses import dataclass

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt

from krag_eval.core import language as _language
from krag_eval.core.display import Column, Page, Table
from krag_eval.core.display.table import for_markdown
from krag_eval.core.language import _, ngettext, speaking
from krag_eval.core.shown import Shown, page_of


@dataclass(frozen=True)
class Found:
    metric: str
    value: float


class Guess(Shown):
    def _page(self):
        rows = [Found("mrr", 0.5), Found("a_b|c", float("nan"))]
        table = Table(rows, [Column(_("metric"), "metric"), Column(_("value"), "value")])
        return Page("2 < 3", [table], [ngettext("{n} query", "{n} queries", 2).format(n=2)])


@pytest.fixture(autouse=True)
def _two_languages(tmp_path, monkeypatch):
    """Bring a catalog of German with two texts."""
    catalog = Catalog("de")
    catalog.add("value", "Wert")
    catalog.add(("{n} query", "{n} queries"), ("{n} Frage", "{n} Fragen"))
    file = tmp_path / "de" / "LC_MESSAGES" / "krag_eval.mo"
    file.parent.mkdir(parents=True)
    compiled = io.BytesIO()
    write_mo(compiled, catalog)
    file.write_bytes(compiled.getvalue())
    assert gettext.find("krag_eval", tmp_path, ["de"])
    monkeypatch.setattr(_language, "LOCALE", tmp_path)
    return


def test_a_new_type_has_every_form():
    """From its title, its table and its sentences alone; texts are escaped."""
    guess = Guess()
    assert repr(guess).splitlines() == [
        "2 < 3",
        "metric   value",
        "mrr     0.5000",
        "a_b|c        –",
        "2 queries",
    ]
    assert guess._repr_html_() == (
        "<p>2 &lt; 3</p><table><thead><tr><th>metric</th><th>value</th></tr></thead><tbody>"
        "<tr><td>mrr</td><td>0.5000</td></tr><tr><td>a_b|c</td><td>–</td></tr></tbody></table>"
        "<p>2 queries</p>"
    )
    assert guess.to_markdown().splitlines() == [
        "| metric | value |",
        "| --- | ---: |",
        "| mrr | 0.5000 |",
        r"| a_b\|c | – |",
        "",
        "- 2 queries",
    ]
    assert r"a\_b\textbar{}c & -- \\" in guess.to_latex()
    table = page_of(guess).tables[0]
    assert table.records()[0] == {"metric": "mrr", "value": 0.5}
    assert table.frame().columns.tolist() == ["metric", "value"]


def test_a_new_type_speaks_another_language():
    """What has no translation stays English."""
    guess = Guess()
    assert guess.summary(language="de") == "2 Fragen"
    assert guess.to_markdown("de").startswith("| metric | Wert |")
    with speaking("de"):
        assert "Wert" in repr(guess)
        assert ngettext("{n} query", "{n} queries", 1) == "{n} Frage"


def test_a_wide_table_is_continued_below():
    """After the names again; no line is wider than the terminal."""
    table = Table.of_cells(["name", *(f"column {i}" for i in range(9))], [["x", *"123456789"]])
    lines = table.text(40).splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("name") for line in lines) == 3
    assert [line.split()[1:] for line in lines if line.startswith("x")] == [
        ["1", "2", "3"],
        ["4", "5", "6"],
        ["7", "8", "9"],
    ]


@pytest.mark.parametrize("width", [None, 60])
def test_a_text_is_the_same_in_a_notebook_and_a_terminal_of_colours(width, monkeypatch, capsys):
    """It may be kept in a file: no bold headings, and nothing is displayed beside it."""
    table = Table.of_cells(["metric", "value"], [["mrr", 0.5]])
    plain = table.text(width)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert table.text(width) == plain
    assert "\x1b" not in plain
    assert capsys.readouterr().out == ""


def test_hangul_takes_two_columns():
    """So columns stay aligned where letters are wide."""
    table = Table.of_cells(["지표", "값"], [["재현율", "0.5"], ["mrr", "1.0"]])
    assert table.text().splitlines() == ["지표     값", "재현율  0.5", "mrr     1.0"]


def test_a_long_title_of_a_table_is_continued_below():
    """Where the width is known."""
    table = Table([{"a": 1}], [Column("a", "a")], title="one two three four")
    assert Page(tables=[table]).text(12).splitlines()[:2] == ["one two", "  three four"]
    assert Page(tables=[table]).text().splitlines()[0] == "one two three four"


def test_what_is_shown_in_python_has_no_escape_codes(monkeypatch):
    """Whatever the terminal knows: a text may end in a file."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in repr(Guess())


#: What GitHub makes of bare text: mentions, references, links, addresses of mail, emoji.
_OF_GITHUB = re.compile(
    r"(?<![A-Za-z0-9_])@[A-Za-z0-9]|#[0-9]|\bGH-[0-9]|://|\bwww\."
    r"|[\w.+-]@[\w-]+\.\w|:[\w+-]+:",
    re.ASCII | re.IGNORECASE,
)
_PARTS = [*"ab1 @#:-_*`[]()<>|~&$!\\/.+=\n한", "www.", "GH-1", "http://a.b", "<!--", "-->"]
_BLOCKS = {"paragraph", "bullet_list", "list_item", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize("around", ["{}", "- {}", "| {} |\n| --- |"])
@given(text=st.lists(st.sampled_from(_PARTS), min_size=1).map("".join))
@example(text="1. a")
@example(text="---")
@example(text="한@ann #12 GH-3 :tada: a@b.c")
@example(text="![x](http://a.b) <img src=x> &copy; | `a` <!-- b --> $x$")
def test_a_text_in_markdown_is_that_text(around, text):
    """Wherever it stands, a parser finds nothing else in it, and GitHub nobody to tell of it."""
    escaped = for_markdown(text)
    assert not _OF_GITHUB.search(escaped.replace("&#8203;", " "))
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(around.format(escaped) + "\n")
    within = [child for one in tokens for child in one.children or ()]
    assert {one.type for one in within} <= {"text", "text_special"}
    assert "".join(one.content for one in within).replace("\u200b", "") == " ".join(text.split())
    blocks = {one.type.removesuffix("_open").removesuffix("_close") for one in tokens}
    assert blocks <= _BLOCKS | {"inline"}
