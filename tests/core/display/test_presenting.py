"""One presentation: whatever is shown has every form, in every language, from one page."""

import gettext
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt

from krag_eval import to_label
from krag_eval.core import (
    Column,
    Page,
    Shown,
    Table,
    _,
    language as _language,
    ngettext,
    page_of,
    speaking,
)
from krag_eval.core.display.table import for_markdown
from krag_eval.core.text import ACTING


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


#: Colours and titles of terminals, by one character or two; an override of the reading direction,
#: an isolate without an end; a line for a printer, and for Unicode; half of a character.
_ACTING = [
    *("\x1b[31m", "\x9b31m", "\x1b]0;x\x07", "\u202egnp.", "\u2066"),
    *("\r", "\x85", "\x00", "\ud83d"),
]
_FORMS = {
    "repr": lambda page: page.text(),
    "terminal": lambda page: page.text(80),
    "html": lambda page: page.html(),
    "markdown": lambda page: page.markdown(),
    "latex": lambda page: page.latex(),
    "table": lambda page: "".join(table.text() for table in page.tables),
    "summary": lambda page: page.said(),
}


@pytest.mark.parametrize("acting", _ACTING, ids=ascii)
@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(
    "field",
    ["title", "table", "heading", "wide heading", "cell", "sentences", "notes", "signature"],
)
def test_nothing_acts_wherever_it_stands(form, field, acting):
    """A question, a tag or a system's name may hold anything; what it says besides is shown."""
    hostile = f"q{acting}z"
    columns = [Column("a", "a"), Column(hostile if "heading" in field else "b", "b")]
    if field == "wide heading":
        columns += [Column(f"{hostile}\n{n}" * 9, "b") for n in range(9)]
    cell = (hostile, hostile) if field == "cell" else "x"
    table = Table([{"a": "x", "b": cell}], columns, title=hostile if field == "table" else "t")
    shown = {field: hostile if field in ("title", "signature") else [hostile]}
    page = Page(tables=[table], **{} if field in ("table", "cell") or "heading" in field else shown)
    text = _FORMS[form](page)
    assert ACTING.findall(text.replace("\n", "")) == []
    if form in ("html", "repr", "terminal"):
        assert "q" in text
        assert "z" in text


@pytest.mark.parametrize("shown", ["*", "[2pt]", "*x", " [1]", "[x] & y", "\n[1]", "*&"])
@pytest.mark.parametrize("place", ["header", "first row", "second row"])
def test_no_cell_of_latex_is_an_argument(shown, place):
    """After a line end, and a rule of booktabs, an asterisk or a bracket would be theirs."""
    header, *rows = [
        [shown if one == place else "x", "y"] for one in ("header", "first row", "second row")
    ]
    lines = Table.of_cells(header, rows).latex().splitlines()
    starts = [line.lstrip()[:3] for line in lines]
    assert not [start for start in starts if start.startswith(("*", "["))]
    assert sum(start in ("{}*", "{}[") for start in starts) == 1


def test_a_note_is_one_comment_of_latex():
    """A question with a line end in it would leave the comment."""
    page = Page(notes=["Left out: 'a\n\\input{x}' and 'b\r\u2028c'"])
    (line,) = page.latex().splitlines()
    assert line.startswith("% Left out: ")


def test_a_page_does_not_follow_from_what_was_shown_before(tmp_path):
    """Two labellers are no matcher and its labels, of which they are a kind."""
    pairs = [{"actual": "a", "predicted": text, "relevant": text == "a"} for text in "ab"]
    rows = to_label([{"question": "Q", "actual": ["a"], "predicted": ["b"]}]).rows
    files = [tmp_path / "anna.jsonl", tmp_path / "ben.jsonl"]
    for file in files:
        said = [{**row, "labeller": file.stem, "relevant": False, "time": "2026"} for row in rows]
        file.write_text("".join(f"{json.dumps(one)}\n" for one in said))
    code = f"""
from krag_eval import agreement, read_labels
agreement("rouge1", {pairs!r}).summary()
anna, ben = map(read_labels, {[*map(str, files)]!r})
print(anna.agreement(ben).summary())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("anna and ben ")
