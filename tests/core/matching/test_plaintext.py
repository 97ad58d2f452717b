"""Texts as their readers see them: what counts as markup, what does not, and numbers."""

import html
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings, strategies as st
from trials import trials

from krag_eval.core.matching.plaintext import numbers_in, plain

MARKUP = st.text(
    st.sampled_from("ab1, .<>/=\"'&;#x*`~[](){}!-\n\t:\\é\u0301\u00ad\u2019\u00a0b>"), max_size=60
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        # Formatting leaves nothing behind, so a word that is half bold is one word.
        ("a <b>bold</b> word", "a bold word"),
        ("un<em>believ</em>able", "unbelievable"),
        ("H<sub>2</sub>O, m<SUP>2</SUP>", "H2O, m2"),
        ('<a href="https://example.org/a?b=1">here</a>', "here"),
        ("<span class=x data-id='7'>one</span>", "one"),
        ("super<wbr>cali", "supercali"),
        # What stands in a cell, a paragraph or an item of its own is a word of its own.
        ("<tr><td>a</td><td>b</td></tr>", "  a  b  "),
        ("one<p>two</p>three<hr/>four<br />five", "one two three four\nfive"),
        ('<img src="a.png" alt="A chart">text', " text"),
        ("<input disabled type=checkbox checked>yes", " yes"),
        ("<TD NOWRAP COLSPAN=2>x</TD>", " x "),
        ('<p title="a > b">x', " x"),
        ("<h1\n  id = 'top'\n>x", " x"),
        # Comments show nothing; what stands in scripts may be what the text is about.
        ("a<!-- b <b> -->c<!---->d", "a c d"),
        ("<!DOCTYPE html><html lang=en>x", "  x"),
        ("<script>let x</script>", " let x "),
        # Targets of links are no words; a chunk may begin in a link.
        ("see [the text](https://example.org/a_b)", "see [the text"),
        ('[서울](https://ko.wikipedia.org/wiki/Seoul "Seoul")은', "[서울은"),
        ("[Foo](https://example.org/Foo_(bar)) x", "[Foo x"),
        ("[a](<b/c.md> 'title') [d](#e)", "[a [d"),
        ("![A chart](chart.png)", "![A chart"),
        ("of the report](../report.md) and", "of the report and"),
        ("[x]()", "[x"),
        ("[1]: https://example.org/a 'A title'\nx", "[1]\nx"),
        # Marks in pairs are no gaps.
        ("**서울**은 *수도*다", "서울은 수도다"),
        ("***both*** and **two words**", "both and two words"),
        ("`krag`는 ``a`` b", "krag는 a b"),
        ("~~old~~er", "older"),
        ("(**H**ello", "(Hello"),
        # Groups of digits are one number, also by lakh and crore.
        ("1,234,567", "1234567"),
        ("$1,500.", "$1500."),
        ("1,234.50", "1234.50"),
        ("12,34,567 and 1,23,456", "1234567 and 123456"),
        ("1'234'567 or 1’234", "1234567 or 1234"),
        ("1\u00a0234\u00a0567 or 12\u202f345 or 1\u2009234", "1234567 or 12345 or 1234"),
        ("1.234.567,50", "1234567,50"),
        ("１，２３４", "１２３４"),
        ("١٬٢٣٤", "١٢٣٤"),
        ("매출 1,234,567원", "매출 1234567원"),
        ("inter-<br>national", "international"),
    ],
)
def test_what_shows_nothing_is_no_word(text, read):
    assert plain(text) == read


@pytest.mark.parametrize(
    "text",
    [
        # No tag: no attributes of HTML, no element, no end.
        "if a < b and c > d", "a<b", "a <b and c> d", "a <b, c> d", "x <unk> y",
        "List<String> and <T>", "<b", "<b class='x", "<!-- no end", "<https://example.org/b>",
        "<b@example.org>", "</ b>", "1 <2> 3",
        # No entity.
        "AT&T", "a & b", "R&D; and more", "?a=1&copy=2&lt=3", "a &amp b", "&notable;", "&#;", "&;",
        "&#99999999999;", "&#x;",
        # No target of a link, but a remark in parentheses, an index, a note.
        "[USD](2023)", "f[i](x)", "[a] (b/c)", "[1][2]", "[^1]: See the annex.",
        "[text](a remark, see p. 3)", "[text](https://example.org/no-end",
        # Marks that mark nothing.
        "snake_case and __init__ and _a_b", "2*3*4", "x**2 + y**2", "a * b * c", "* item\n* item",
        "e*trade and e*trade", r"\*not\*", "5 * 3", "*a\nb*", "~5 and ~6",
        # Other hyphens: before a capital letter, behind no letter, before a paragraph, of no case.
        "inter-national", "Jean-\nPaul", "COVID-\n19", "2023-\nand", "low -\nhigh", "a-\n\nb",
        "서울-\n부산",
        # Digits of which some could be a group; none can be nothing else.
        "1,2,3", "2019,2020 and 2019, 2020", "0,123", "1.234", "1,2345", "1234,567", "1,234,56",
        "1 234 567", "3.141,592", "192.168.1.100", "12,34,56", "2024-09-30, 12:30", "100,20,300",
    ],
)  # fmt: skip
def test_what_may_mean_something_else_stays(text):
    assert plain(text) == text


def test_elements_without_an_end_are_tags():
    # https://html.spec.whatwg.org/multipage/syntax.html#void-elements, and "param"
    void = "area,base,br,col,embed,hr,img,input,link,meta,param,source,track,wbr"
    assert {plain(f"<{name}>").strip() for name in void.split(",")} == {""}


class _Text(HTMLParser):
    """Python's own reader of HTML: the text between tags, entities decoded."""

    def __init__(self):
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data):
        self.words += data.split()


def test_a_table_reads_as_pythons_parser_reads_it():
    table = """<table border="1" class='wide'><thead><tr><th>Year</th><th>R&amp;D</th></tr></thead>
    <tbody><tr><td align=right>2023</td><td>&euro;&nbsp;5</td></tr></tbody></table>"""
    parser = _Text()
    parser.feed(table)
    assert plain(table).split() == parser.words == ["Year", "R&D", "2023", "€", "5"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("AT&amp;T", "AT&T"),
        ("&lt;b&gt;", "<b>"),  # what is written about tags is text
        ("&amp;lt;", "&lt;"),  # once
        ("caf&eacute; &#233; &#xE9; &#XE9;", "café é é é"),
        ("a&nbsp;b&shy;c", "a\u00a0b\u00adc"),
        ("&#128;", "€"),  # as browsers read it
    ],
)
def test_entities_are_decoded(text, read):
    assert plain(text) == read == html.unescape(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("hyphen", ["-", "\u2010", "\u00ad"])
def test_a_word_hyphenated_at_a_line_end_is_one_word(hyphen, end):
    assert plain(f"inter{hyphen}{end}national") == "international"
    assert plain(f"inter{hyphen} \t{end}  national") == "international"
    assert plain(f"Größen{hyphen}{end}änderung") == "Größenänderung"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("From 1,234.50 to -5 %", ["1234.5", "5"]),
        ("2024-09-30 or 30.09.2024, 09:30", ["2024", "9", "30", "30.09.2024", "9", "30"]),
        ("Q3 2024년 5월, 3rd, v1.2.30.", ["3", "2024", "5", "3", "1.2.30"]),
        ("5 5.0 05 5.05 0.50 0 00 10 0.0", ["5", "5", "5", "5.05", "0.5", "0", "0", "10", "0"]),
        ("2,5 and 1,2,3", ["2", "5", "1", "2", "3"]),
        # A day as Korean writes it, with and without its spaces; a version is none.
        ("2024. 9. 30.", ["2024", "9", "30"]),
        ("2024.09.30.부터 2024.10.7까지", ["2024", "9", "30", "2024", "10", "7"]),
        ("2024.9.30.1 12024.9.30 2024.123.4", ["2024.9.30.1", "12024.9.30", "2024.123.4"]),
        ("2024.9. 30. 2024. 9.30 2024.13.30", ["2024", "9", "30", "2024", "9", "30", "2024.13.30"]),
        # Paragraphs are numbered in circles.
        ("①2024년 ②③ 5④", ["1", "2024", "2", "3", "5", "4"]),
        ("㉑<b>3,000</b>원", ["21", "3000"]),
        ("<td width=90>７</td> [x](https://example.org/8)", ["7"]),
        ("no number, not even five", []),
    ],
)
def test_numbers_are_runs_of_digits_by_their_value(text, numbers):
    assert numbers_in(text) == numbers


@given(MARKUP)
@settings(max_examples=trials(300))
@example("<b>\u0338")
@example("a-\ne\u0301")
def test_composed_and_decomposed_texts_read_the_same(text):
    read = {plain(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")}
    assert len({unicodedata.normalize("NFC", one) for one in read}) == 1


@given(st.text(st.sampled_from("abcé .!?\n가나—"), max_size=60))
def test_a_text_without_markup_is_left_alone(text):
    assert plain(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "piece",
    [
        "<", "<b", "<b ", "<b a=", '<b a="', "<b a='x' ", "<!--", "<!-- --", "<!doctype", "</",
        "&", "&#", "&a", "[", "](", "](a", "](a(", "](a(b)", '](a "', "](  ", "[a]: ", "]: ",
        "*", "**", "**a", "*a ", "a*b", "`", "``a", "~~", "~~a", "-", "a-", "-\t", "a- ", "-\n",
        "1,", "1,234", "1,234,", "12,34,", "1.234.", "1'234", "1\u00a0234", "1.", "é-\u00ad\n",
    ],
)  # fmt: skip
def test_no_text_takes_more_than_its_length(piece):
    """A million characters of what may begin something: quadratic, it would take hours."""
    for text in (piece * (1_000_000 // len(piece)), piece + " " * 1_000_000 + piece):
        assert len(plain(text)) <= len(text)
