"""Presentation: any text is shown safely, and long ones are clipped."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings, strategies as st
from reference import TableMatcher, no_advice

from krag_eval import AnyOf, Conventions, KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval._text import EXAMINED, Excerpt, agreement, fitted, visible, width_of

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "end of a style sheet": "</style><style>*{display:none}</style>",
    "end of the table": "</td></tr></table></div><h1>mine</h1>",
    "attribute": "\" onmouseover=\"alert(1)\" ' onclick='alert(1)'",
    "entity": "&lt;b&gt; &amp;lt;",
    "template": "{{ 7 * 7 }} {% raw %} ${x}",
    "megabyte": "x" * 1_000_000,
    "megabyte of tags": "<b>" * 350_000,
    "megabyte of spaces": " " * 1_000_000 + "end",
    "control characters": "a\x00b\x07c\x1b[31md\x7fe\x9bf",
    "lines": "a\r\nb\u2028c\u2029d\x0be\x0cf\x85g",
    "right-to-left override": "\u202egnp.exe",
    "unclosed isolates": "\u2066\u2067\u2068\u202a\u202b",
    "marks": "\u200e\u200f\u061c",
    "lone surrogate": "\ud800 and \udc80",
    "stacked marks": "Z" + "\u0300" * 100_000,
    "invisible tags": "\U000e0041\U000e007f",
    "noncharacters": "\ufffe\uffff\ufeff",
}
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)

# All twelve characters with the property Bidi_Control.
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def explained(text, label="q"):
    """Explain a query in which the text stands everywhere a text can stand."""
    matcher = TableMatcher({(text, text): 1.0, (text, "other"): 0.25})
    other = {"page_content": "other", "id": text, "metadata": {text: text, "source": text}}
    with no_advice():
        result = OfflineRetrievalEvaluator(
            [[text, AnyOf(["missing", text + "!"])]], [[text, other]], matcher, queries=[label]
        ).evaluate(5)
    return result.explain(position=0, metadata=("source", text or "x"))


class Tags(HTMLParser):
    """Collects the tags and attributes of a page, and what is left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def balanced(text):
    """Tell whether every isolate is closed on its own line, and nothing closes what is not open."""
    depth = 0
    for character in text:
        depth += (character == "\u2068") - (character == "\u2069")
        if depth not in (0, 1) or (character == "\n" and depth):
            return False
    return depth == 0


# --- HTML ------------------------------------------------------------------------------------


@hostile
def test_html_holds_no_tag_of_a_text(text):
    """Only those of the layout, all of them closed; nothing runs."""
    page = Tags(explained(text, label=text).to_html())
    allowed = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "mark", "small"}
    assert set(page.tags) <= allowed
    assert page.attributes <= {"style", "dir"}
    assert page.open == []


@hostile
def test_html_holds_nothing_that_acts_instead_of_showing(text):
    """Bidi controls, control characters and halves of characters are spelled out."""
    page = explained(text, label=text).to_html()
    assert not set(page) & set(BIDI)
    assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]", page)
    page.encode("utf-8")


@hostile
def test_html_stays_small(text):
    """Whatever the size of a text."""
    assert len(explained(text, label=text).to_html()) < 30_000


def test_html_is_what_a_notebook_shows():
    """Without being asked."""
    explanation = explained("a b c")
    assert explanation._repr_html_() == explanation.to_html()


def test_html_escapes_a_text_so_that_it_can_be_read():
    """As it was written."""
    page = explained("<b>bold</b> & 'quoted'").to_html()
    assert "&lt;<mark" in page  # the first word begins after the bracket
    assert "<b>" not in page
    assert "<b>bold</b> & 'quoted'" in Tags(page).text


def test_html_lets_each_text_have_its_own_direction():
    """Every text stands in a block whose direction follows from its letters."""
    page = explained("المكتبة تفتح في الساعة التاسعة").to_html()
    assert page.count('<div dir="auto"') == 7  # what became of one document and two items, 4 texts
    assert "المكتبة" in Tags(page).text


def test_html_shows_korean_composed():
    """Decomposed Hangul, as macOS writes it, is put together."""
    text = unicodedata.normalize("NFD", "도서관은 오전 9시에 문을 엽니다")
    assert "도서관은 오전 9시에 문을 엽니다" in Tags(explained(text).to_html()).text


def test_html_highlights_where_ground_truth_and_prediction_agree():
    """In both, and nowhere else."""
    golden = "books may be kept for four weeks"
    chunk = "Opening hours vary. Books may be kept for four weeks, films for one."
    matcher = TableMatcher({(golden, chunk): 0.9})
    result = OfflineRetrievalEvaluator([[golden]], [[chunk, "films for one"]], matcher).evaluate(5)
    page = result.explain(0).to_html()
    marked = re.findall("<mark[^>]*>([^<]*)</mark>", page)
    assert marked == ["Books may be kept for four weeks", "books may be kept for four weeks"]


def test_html_highlights_the_nearest_miss():
    """So that one sees what it lacked."""
    golden, chunk = "kept for four weeks at most", "they are kept for four days"
    matcher = TableMatcher({(golden, chunk): 0.4})
    with no_advice():
        result = OfflineRetrievalEvaluator([[golden]], [[chunk]], matcher).evaluate(5)
    marked = re.findall("<mark[^>]*>([^<]*)</mark>", result.explain(0).to_html())
    assert marked == ["kept for four", "kept for four"]


# --- text ------------------------------------------------------------------------------------


@hostile
@pytest.mark.parametrize("width", [40, 100])
def test_full_text_keeps_to_its_width(text, width):
    """However long, and whatever is in it."""
    short = text[:3000]
    for line in explained(short, label=short).to_text(width, full=True).split("\n"):
        assert width_of(line) <= max(width, 40)
        assert balanced(line)


@hostile
@pytest.mark.parametrize("width", [40, 79])
def test_text_keeps_to_its_width(text, width):
    """Every line, in columns of a terminal."""
    lines = explained(text, label=text).to_text(width).split("\n")
    assert max(map(width_of, lines)) <= width


@hostile
def test_text_holds_nothing_that_acts_instead_of_showing(text):
    """No control character, no bidi control but the isolates put around a text, in pairs."""
    shown = explained(text, label=text).to_text()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]", shown)
    assert not set(shown) & (set(BIDI) - {"\u2068", "\u2069"})
    assert balanced(shown)
    shown.encode("utf-8")


@hostile
def test_text_stays_small(text):
    """Marks without end take no columns, and must not take the terminal all the same."""
    assert len(explained(text, label=text).to_text()) < 10_000


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=200), st.integers(40, 120))
def test_any_text_keeps_to_its_place(text, width):
    """Whatever characters there are."""
    explanation = explained(text, label=text)
    shown = explanation.to_text(width)
    assert max(map(width_of, shown.split("\n"))) <= width
    assert balanced(shown)
    shown.encode("utf-8")
    assert Tags(explanation.to_html()).open == []


def test_text_is_what_print_shows():
    """Also by ``repr``."""
    explanation = explained("a b c")
    assert str(explanation) == repr(explanation) == explanation.to_text(100)


def test_text_tells_what_became_of_each_document_and_each_item():
    """First, repeat, not relevant but close, too late; found, missed by so much, nothing."""
    table = {("a", "p"): 0.75, ("a", "q"): 0.5, ("b", "r"): 0.375, ("c", "s"): 1.0}
    result = OfflineRetrievalEvaluator(
        [["a", "b", "c", "d"]], [["p", "q", "r", "s", "t"]], TableMatcher(table), queries=["What?"]
    ).evaluate([3])
    shown = result.explain("What?").to_text(80)
    assert shown.startswith(
        "Query 0: What?\npartial: 1 of 4 items found within the first 3; documents retrieved: 5\n"
    )
    assert re.findall("^[1-5] .*", shown, re.MULTILINE) == [
        "1      0.7500       first to cover item 1",
        "2      0.5000       repeat of item 1",
        "3      0.3750       not relevant, closest to item 2",
        "4      1.0000       beyond the cutoff, matches item 3",
        "5      0.0000       not relevant: t",
        "1      1       found at rank 1",
        "2      1       missed by 0.1250; nearest: rank 3, similarity 0.3750",
        "3      1       missed; found at rank 4, beyond the cutoff",
        "4      1       missed; nothing in common with any predicted document",
    ]
    assert re.findall("^ +([a-z])$", shown, re.MULTILINE) == [*"pqrsabcd"]


def collapsed(**options):
    """Explain a query whose first and last documents matter, at cutoff 3."""
    long = " ".join(f"word{i}" for i in range(60))
    table = {("a", "p"): 1.0, ("b", "q"): 0.25, ("a", "late"): 1.0}
    described = {"page_content": long, "id": "x1"}
    result = OfflineRetrievalEvaluator(
        [["a", "b"]], [["p", described, "x", "q", "late"]], TableMatcher(table)
    ).evaluate(3)
    return result.explain(0, **options)


def test_documents_that_no_outcome_rests_on_take_a_line():
    """What matched nothing and came nearest to nothing, or repeats an item beyond the cutoff."""
    lines = collapsed().to_text(80).split("\n")
    start = lines.index("Predicted documents") + 3
    assert lines[start : start + 7] == [
        "1      1.0000       first to cover item 1",
        "                    p",
        "2      0.0000       not relevant [id x1]: word0 word1 word2 word3 word4 word5…",
        "3      0.0000       not relevant: x",
        "4      0.2500       not relevant, closest to item 2",
        "                    q",
        "5      1.0000       beyond the cutoff, matches item 1: late",
    ]
    assert "Documents that no outcome rests on are cut" in "\n".join(lines)


def test_a_full_explanation_has_every_text_whole():
    """In lines of the width that was asked for; asked once, or when it is shown."""
    for shown in (collapsed(full=True).to_text(50), collapsed().to_text(50, full=True)):
        assert "no outcome rests" not in shown
        assert " ".join(f"word{i}" for i in range(60)) in " ".join(shown.split())
        assert max(map(width_of, shown.split("\n"))) <= 50
    assert "word59" in collapsed(full=True)._repr_html_()
    assert "word59" not in collapsed().to_html()


def test_a_full_explanation_leaves_out_no_document_item_or_alternative():
    """However many there are, and however long a text is."""
    actual = [AnyOf([f"alternative {i}" for i in range(10)]), *(f"t{i}" for i in range(60))]
    predicted = [*(f"p{rank}" for rank in range(60)), "x" * 30_000 + " the end"]
    with no_advice():
        result = OfflineRetrievalEvaluator([actual], [predicted]).evaluate(5)
    shown = result.explain(0).to_text(full=True)
    for one in ("alternative 9", "t59", "p59", "the end"):
        assert one in shown
    assert "not shown" not in shown


def test_ids_and_metadata_stand_beside_what_is_told():
    """In brackets."""
    document = {"page_content": "a b c", "id": "c1", "metadata": {"source": "guide.pdf"}}
    explanation = OfflineRetrievalEvaluator([["a b c"]], [[document]]).evaluate(1).explain(0)
    assert "first to cover item 1 [id c1, source guide.pdf]" in explanation.to_text()
    assert "[id c1, source guide.pdf]" in Tags(explanation.to_html()).text


def test_text_marks_where_texts_agree():
    """With guillemets, since a terminal may show nothing else."""
    assert f"{20 * ' '}«a b c»" in explained("a b c").to_text().split("\n")


def test_a_document_that_covers_and_repeats_says_both():
    """Item 2 first, item 1 again."""
    table = {("a", "p"): 1.0, ("a", "q"): 1.0, ("b", "q"): 1.0}
    result = OfflineRetrievalEvaluator([["a", "b"]], [["p", "q"]], TableMatcher(table)).evaluate(2)
    assert "first to cover item 2, repeat of item 1" in str(result.explain(0))


def test_right_to_left_text_cannot_move_what_stands_beside_it():
    """It is isolated; other text is left alone."""
    shown = explained("שלום לכולם היום", label="שאלה").to_text()
    assert "\u2068«שלום לכולם היום»\u2069" in shown
    assert shown.startswith("\u2068Query 0: שאלה\u2069\n")
    assert "\u2068" not in explained("도서관은 오전 9시에").to_text()


def test_hangul_takes_two_columns():
    """So that columns line up and lines keep to their width."""
    assert width_of("한글 ab") == 7
    assert width_of(unicodedata.normalize("NFD", "한글")) == 4
    assert width_of("e\u0301") == 1


def test_rewarded_repeats_are_pointed_out():
    """Under the convention that rewards them."""
    conventions = Conventions(credit="every")
    result = OfflineRetrievalEvaluator([["a"]], [["a", "a"]], conventions=conventions).evaluate(2)
    assert "credit=every, repeats are rewarded too" in str(result.explain(0))


def test_a_blank_text_says_that_it_is_blank():
    """An empty line would say nothing."""
    with no_advice():
        result = OfflineRetrievalEvaluator([["a"]], [["  "]]).evaluate(1)
    assert "(blank)" in str(result.explain(0))


def test_many_documents_are_not_all_shown():
    """The first twenty, and of the others those that an item speaks of."""
    predicted = [f"p{rank}" for rank in range(1, 501)]
    table = {("a", "p400"): 1.0, ("b", "p450"): 0.25}
    result = OfflineRetrievalEvaluator([["a", "b"]], [predicted], TableMatcher(table)).evaluate(5)
    shown = str(result.explain(0))
    ranks = [int(line.split()[0]) for line in shown.split("\n") if re.match(r"\d+ +\d\.", line)]
    assert ranks == [*range(1, 21), 400, 450]
    assert "… and 478 more predicted documents, not shown" in shown


def test_many_items_are_not_all_shown():
    """As many as can be looked at."""
    actual = [f"t{i}" for i in range(300)]
    result = OfflineRetrievalEvaluator([actual], [["t299"]]).evaluate(1)
    assert "… and 279 more items, not shown" in str(result.explain(0))
    assert len(result.explain(0).ground_truth) == 300


def test_many_alternatives_are_not_all_shown():
    """Six of them."""
    actual = [AnyOf([f"alternative {i}" for i in range(10)])]
    result = OfflineRetrievalEvaluator([actual], [["alternative 9"]]).evaluate(1)
    assert "(… and 4 more alternatives)" in str(result.explain(0))
    assert "(any of 10)" in str(result.explain(0))
    six = OfflineRetrievalEvaluator([[AnyOf(list("abcdef")), "g"]], [["a"]]).evaluate(1)
    assert "more alternatives" not in str(six.explain(0))
    assert "any of 1)" not in str(six.explain(0))


def test_nothing_retrieved_has_no_table_of_documents():
    """There are none."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [[]])
    with pytest.warns(KragEvalWarning, match="Nothing was retrieved"):
        shown = str(evaluator.evaluate(1).explain(0))
    assert "nothing retrieved: 0 of 1 items found; documents retrieved: 0" in shown
    assert "Predicted documents" not in shown


def test_no_ground_truth_has_no_table_of_items():
    """Nothing should be retrieved."""
    result = OfflineRetrievalEvaluator([["a"], []], [["a"], ["b"]], no_ground_truth="skip")
    shown = str(result.evaluate(1).explain(1))
    assert "no ground truth: nothing should be retrieved; documents retrieved: 1" in shown
    assert "Ground truth" not in shown


# --- clipping --------------------------------------------------------------------------------


def test_a_long_text_is_clipped():
    """Its beginning, and a sign that it went on."""
    assert fitted("The library opens at nine.", 12) == "The library…"


def test_a_text_that_fits_is_whole():
    """To the last column."""
    assert fitted("exactly", 7) == "exactly"
    assert fitted("도서관", 6) == "도서관"
    assert fitted("도서관", 5) == "도서…"


def test_clipping_never_halves_a_letter():
    """An accent stays on it."""
    assert fitted("e\u0301" * 10, 5) == "é" * 4 + "…"


def test_a_text_is_clipped_around_what_is_highlighted():
    """Otherwise it would not be seen."""
    text = "filler " * 50 + "kept for four weeks" + " filler" * 50
    begin = text.index("kept")
    shown = Excerpt(text, ((begin, begin + 19),)).clipped(60)
    assert ("kept for four weeks", True) in shown
    assert shown[0] == shown[-1] == ("…", False)


def test_a_clipped_text_keeps_to_its_width_and_starts_at_a_word():
    """The ellipses are counted too."""
    text = "filler " * 50 + "kept for four weeks" + " filler" * 50
    begin = text.index("kept")
    for width in range(20, 80):
        shown = "".join(part for part, _ in Excerpt(text, ((begin, begin + 19),)).clipped(width))
        assert width_of(shown) <= width
        assert shown.startswith(("…filler", "…kept"))


def test_of_several_highlights_the_longest_is_shown():
    """It says most."""
    text = "a b c" + " filler" * 50 + " kept for four weeks"
    long = (text.index("kept"), len(text))
    shown = Excerpt(text, ((0, 5), long)).clipped(60)
    assert shown[-2:] == [("kept for four weeks", True), ("", False)]


def test_all_highlights_that_fit_are_shown():
    """And what stands between them."""
    assert Excerpt("one two three", ((0, 3), (8, 13))).clipped(13) == [
        ("", False), ("one", True), (" two ", False), ("three", True), ("", False),
    ]  # fmt: skip


def test_a_highlight_at_the_start_needs_no_leading_ellipsis():
    """The text begins there."""
    text = "kept for four weeks" + " filler" * 50
    shown = Excerpt(text, ((0, 19),)).clipped(60)
    assert next(part for part in shown if part[0]) == ("kept for four weeks", True)


def test_only_the_beginning_of_a_text_is_looked_at():
    """And what is left out counts as going on."""
    excerpt = Excerpt.of("x" * (EXAMINED + 1))
    assert len(excerpt.text) == EXAMINED
    assert excerpt.cut
    assert not Excerpt.of("x" * EXAMINED).cut
    assert Excerpt("short", cut=True).clipped(20) == [("short", False), ("…", False)]


@pytest.mark.parametrize("control", BIDI)
def test_every_bidi_control_is_spelled_out(control):
    """All twelve."""
    assert visible(f"a{control}b") == f"a\\u{ord(control):04x}b"


def test_what_is_spelled_out_reads_like_python():
    """By as many digits as it takes."""
    assert visible("\x00\x9f\ufeff\U000e0041") == r"\x00\x9f\ufeff\U000e0041"


def test_joiners_stay():
    """Emoji and Persian need them."""
    assert visible("👩\u200d👧 می\u200cخواهم") == "👩\u200d👧 می\u200cخواهم"


# --- agreement -------------------------------------------------------------------------------


def marked(text, other):
    """Return what of a text is highlighted beside another."""
    return [text[start:stop] for start, stop in agreement(text, other)]


def test_runs_of_three_words_agree():
    """Shorter ones do by chance."""
    assert marked("one two three four", "zero one two three") == ["one two three"]
    assert marked("one two four", "one two three") == []


def test_runs_that_overlap_are_one():
    """Four words are two runs of three."""
    assert marked("a b c d e", "x a b c d y") == ["a b c d"]


def test_runs_that_touch_are_one():
    """Though something stands between them in the other text."""
    assert marked("a b c d e f", "a b c x d e f") == ["a b c d e f"]


def test_a_single_word_agrees_with_itself():
    """Where a text has no other."""
    assert marked("opening hours today", "hours") == ["hours"]


def test_case_and_punctuation_do_not_matter():
    """They are not words."""
    assert marked("Kept, for FOUR weeks!", "kept for four weeks") == ["Kept, for FOUR weeks"]


def test_a_short_text_agrees_with_its_words():
    """All of them."""
    assert marked("the opening hours are these", "Opening hours") == ["opening hours"]


def test_korean_agrees_by_words():
    """Spaces end them."""
    text = "도서관은 오전 9시에 문을 엽니다."
    assert marked(text, "우리 도서관은 오전 9시에 문을 닫습니다") == ["도서관은 오전 9시에 문을"]


def test_scripts_without_spaces_agree_by_characters():
    """There is no other unit to be seen."""
    assert marked("図書館は九時に開く", "図書館は十時に開く") == ["図書館は", "時に開く"]


@pytest.mark.parametrize(("first", "second"), [("", "a"), ("a", ""), ("!!!", "???"), ("a", "b")])
def test_nothing_agrees_with_nothing(first, second):
    """Nor do other words."""
    assert agreement(first, second) == ()
