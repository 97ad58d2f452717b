"""Presentation: any text is shown safely, and long ones are clipped."""

import re
import unicodedata
from html.parser import HTMLParser

import pytest
from golden import explanations
from hypothesis import given, settings, strategies as st
from reference import TableMatcher, no_advice
from trials import trials

from krag_eval import AnyOf, OfflineRetrievalEvaluator
from krag_eval.core import fitted, visible, width_of
from krag_eval.core.text import DIFFERENT, EXAMINED, SHARED, Excerpt, agreement, said_at

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
def test_html_does_nothing_but_show(text):
    """No tag but those of the layout, all closed; what would act is spelled out; it stays small."""
    source = explained(text, label=text).to_html()
    page = Tags(source)
    allowed = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "mark", "small"}
    assert set(page.tags) <= allowed
    assert page.attributes <= {"style", "dir"}
    assert page.open == []
    assert not set(source) & set(BIDI)
    assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]", source)
    assert len(source.encode("utf-8")) < 30_000


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


@pytest.mark.parametrize(
    ("golden", "chunk", "similarity", "marked"),
    [
        ("books may be kept for four weeks",
         "Opening hours vary. Books may be kept for four weeks, films for one.", 0.9,
         ["Books may be kept for four weeks", "books may be kept for four weeks"]),
        ("kept for four weeks at most", "they are kept for four days", 0.4, ["kept for four"] * 2),
    ],
    ids=["a match", "a near miss"],
)  # fmt: skip
def test_html_highlights_where_texts_agree(golden, chunk, similarity, marked):
    """In both, and nowhere else; of a near miss, so that one sees what it lacked."""
    matcher = TableMatcher({(golden, chunk): similarity})
    with no_advice():
        result = OfflineRetrievalEvaluator([[golden]], [[chunk, "films for one"]], matcher)
        explanation = result.evaluate(5).explain(0)
    assert re.findall("<mark[^>]*>([^<]*)</mark>", explanation.to_html()) == marked
    assert explanation._repr_html_() == explanation.to_html()
    assert str(explanation) == repr(explanation) == explanation.to_text(100)


# --- text ------------------------------------------------------------------------------------


@hostile
def test_text_does_nothing_but_show(text):
    """Lines keep to their width, isolates to their line; marks without end take no room."""
    explanation = explained(text, label=text)
    for width in (40, 79, 100):
        shown = explanation.to_text(width)
        assert max(map(width_of, shown.split("\n"))) <= width
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]", shown)
    assert not set(shown) & (set(BIDI) - {"\u2068", "\u2069"})
    assert balanced(shown)
    assert len(shown) < 10_000
    shown.encode("utf-8")
    short = explained(text[:3000], label=text[:3000])
    for width in (40, 100):
        for line in short.to_text(width, full=True).split("\n"):
            assert width_of(line) <= width
            assert balanced(line)


@settings(max_examples=trials(200))
@given(st.text(st.characters(), max_size=200), st.integers(40, 120))
def test_any_text_keeps_to_its_place(text, width):
    """Whatever characters there are."""
    explanation = explained(text, label=text)
    shown = explanation.to_text(width)
    assert max(map(width_of, shown.split("\n"))) <= width
    assert balanced(shown)
    shown.encode("utf-8")
    assert Tags(explanation.to_html()).open == []


def test_a_full_explanation_has_every_text_whole():
    """In lines of the width that was asked for; asked once, or when it is shown."""
    folded, full = (explanations.CASES[f"{one}"]() for one in
                    ("what no outcome rests on", "every text whole"))  # fmt: skip
    for shown in (full.to_text(50), folded.to_text(50, full=True)):
        assert " ".join(f"word{i}" for i in range(60)) in " ".join(shown.split())
        assert max(map(width_of, shown.split("\n"))) <= 50
    assert "word59" in full._repr_html_()
    assert "word59" not in folded.to_html()


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
    page = Tags(explanations.CASES["ids and metadata"]().to_html())
    assert "[id c1, source guide.pdf]" in page.text


def test_hangul_takes_two_columns():
    """So that columns line up and lines keep to their width."""
    assert width_of("한글 ab") == 7
    assert width_of(unicodedata.normalize("NFD", "한글")) == 4
    assert width_of("e\u0301") == 1


# --- clipping --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("The library opens at nine.", 12, "The library…"),
        ("exactly", 7, "exactly"),
        ("도서관", 6, "도서관"),
        ("도서관", 5, "도서…"),
        ("e\u0301" * 10, 5, "é" * 4 + "…"),  # an accent stays on its letter
    ],
)
def test_a_text_that_does_not_fit_is_clipped(text, width, shown):
    """Its beginning, and a sign that it went on."""
    assert fitted(text, width) == shown


def test_a_text_is_clipped_around_what_is_highlighted():
    """It keeps to its width, ellipses counted, and starts at a word."""
    text = "filler " * 50 + "kept for four weeks" + " filler" * 50
    begin = text.index("kept")
    for width in range(20, 80):
        parts = Excerpt(text, ((begin, begin + 19),)).clipped(width)
        shown = "".join(part for part, _ in parts)
        assert width_of(shown) <= width
        assert shown.startswith(("…filler", "…kept"))
    parts = Excerpt(text, ((begin, begin + 19),)).clipped(60)
    assert ("kept for four weeks", True) in parts
    assert parts[0] == parts[-1] == ("…", False)


def test_of_several_highlights_the_longest_is_shown():
    """It says most."""
    text = "a b c" + " filler" * 50 + " kept for four weeks"
    long = (text.index("kept"), len(text))
    shown = Excerpt(text, ((0, 5), long)).clipped(60)
    assert shown[-1] == ("kept for four weeks", True)


def test_all_highlights_that_fit_are_shown():
    """And what stands between them."""
    assert Excerpt("one two three", ((0, 3), (8, 13))).clipped(13) == [
        ("one", True), (" two ", False), ("three", True),
    ]  # fmt: skip


def test_what_is_different_is_shown_before_anything_that_agrees():
    """It is cut out of what agrees, and the text is clipped around it, however narrow."""
    text = "kept for four weeks" + " filler" * 50 + " until 2024 and no longer" + " more" * 50
    at = text.index("2024")
    excerpt = Excerpt(text, ((0, 19), (at - 6, at + 14)), different=((at, at + 4),))
    for width in range(12, 60):
        parts = excerpt.clipped(width)
        assert ("2024", DIFFERENT) in parts
        assert width_of("".join(part for part, _ in parts)) <= width
    assert [one for one in excerpt.clipped(60) if one[1]] == [
        ("until ", SHARED), ("2024", DIFFERENT), (" and no longer"[:10], SHARED),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said", "found"),
    [
        ("In 2024, or 20240, 2024", "2024", ["2024"]),
        ("a fee of 1,200,000 won", "1200000", ["1,200,000"]),
        ("on 2024. 3. 1. it ended", "2024-03-01", []),
        ("on 2024.03.01 it ended", "2024-03-01", ["2024.03.01"]),
        ("you may\nNOT, lend", "may not lend", ["may\nNOT, lend"]),
        ("nothing is known", "no", []),
        ("3 of 12", "12 3", ["3", "12"]),
        ("any", "", []),
        ("any", "…", []),
    ],
)
def test_a_place_is_found_whatever_stands_between_letters_and_digits(text, said, found):
    """A whole word or number, as it is compared, in the spelling of the text; or its parts."""
    assert [text[start:stop] for start, stop in said_at(text, said, ())] == found


def test_a_place_may_stand_within_a_word_of_letters():
    """But no number within another; spaces are left out of what is compared."""
    text = "3억원을 13억원, 쓸 수 없다"
    assert said_at(text, "3", (), by_letters=True) == ((0, 1),)
    assert said_at(text, "수없다", (), by_letters=True) == ((text.index("수"), len(text)),)


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"a{control}b", f"a\\u{ord(control):04x}b") for control in BIDI),
        ("\x00\x9f\ufeff\U000e0041", r"\x00\x9f\ufeff\U000e0041"),  # by as many digits as it takes
        ("👩\u200d👧 می\u200cخواهم", "👩\u200d👧 می\u200cخواهم"),  # emoji and Persian need joiners
    ],
)
def test_what_would_act_is_spelled_out(text, shown):
    """As in Python; all twelve controls of direction."""
    assert visible(text) == shown


# --- agreement -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "other", "marked"),
    [
        # Runs of three words; shorter ones agree by chance.
        ("one two three four", "zero one two three", ["one two three"]),
        ("one two four", "one two three", []),
        # Four words are two runs of three; runs that touch are one, whatever stands between them.
        ("a b c d e", "x a b c d y", ["a b c d"]),
        ("a b c d e f", "a b c x d e f", ["a b c d e f"]),
        # A short text agrees with all of its words.
        ("opening hours today", "hours", ["hours"]),
        ("the opening hours are these", "Opening hours", ["opening hours"]),
        # Case and punctuation do not matter.
        ("Kept, for FOUR weeks!", "kept for four weeks", ["Kept, for FOUR weeks"]),
        # Korean agrees by words, and scripts without spaces by characters.
        ("도서관은 오전 9시에 문을 엽니다.", "우리 도서관은 오전 9시에 문을 닫습니다",
         ["도서관은 오전 9시에 문을"]),
        ("図書館は九時に開く", "図書館は十時に開く", ["図書館は", "時に開く"]),
        ("", "a", []), ("a", "", []), ("!!!", "???", []), ("a", "b", []),
    ],
)  # fmt: skip
def test_where_two_texts_agree(text, other, marked):
    assert [text[start:stop] for start, stop in agreement(text, other)] == marked


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_what_stands_for_a_blank_text_is_not_highlighted():
    """Spans have no text, and no two of them agree on the word that says so."""
    places = [{"source": "a", "start": start, "end": 100} for start in (0, 60)]
    result = OfflineRetrievalEvaluator([places[:1]], [places[1:]], matcher="spans").evaluate(k=1)
    shown = str(result.explain(position=0, k=1))
    assert "(blank)" in shown
    assert "«" not in shown


def test_where_texts_agree_by_letters_no_number_is_cut():
    """Of 35만 and 32만 the 3 is not shared."""
    text, other = (
        "도서관 이용자는 모두 35만 명으로 늘었습니다",
        "도서관 이용자는 모두 32만 명으로 늘었습니다",
    )
    spans = agreement(text, other, by_letters=True)
    assert [text[start:stop] for start, stop in spans] == [
        "도서관 이용자는 모두",
        "만 명으로 늘었습니다",
    ]
