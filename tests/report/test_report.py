"""Reports: numbers derived by hand, and that no text can inject anything into the page.

What the pages say, of results, comparisons and sweeps, is held by ``golden/pages.en.txt``.
"""

import base64
import hashlib
import html
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest
from golden import pages, recorder
from golden.pages import (
    compared,
    evaluated,
    finding,
    result,
    sliced,
)
from reference import no_advice

import krag_eval
from krag_eval.comparison.comparison_page import p_value
from krag_eval.core import span
from krag_eval.report import write_report

matplotlib.use("Agg")

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """A page, read: its elements, their attributes, its text by element."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def __contains__(self, text):
        return any(text in data for _, data in self.texts)

    def of(self, tag):
        return [data for place, data in self.texts if place == tag]


@pytest.fixture
def page(tmp_path):
    """Write a report and read it; without pictures, unless they are wanted."""

    def written(thing, *, pictures=False, **options):
        path = tmp_path / "report.html"
        if pictures:
            write_report(thing, path, **options)
        else:
            with pages.without_pictures():
                write_report(thing, path, **options)
        return Page(path.read_text("utf-8"))

    return written


def tables(written, kind):
    """Return the cells of the page's tables of a kind, row by row."""
    found = re.findall(rf'<table class="{kind}">(.*?)</table>', written.source, re.DOTALL)
    return [
        [
            [_text(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
            for row in re.findall(r"<tr\b[^>]*>(.*?)</tr>", table, re.DOTALL)
        ]
        for table in found
    ]


def _text(source):
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", source)).split())


def shown(value):
    """Write a number as tables do."""
    return "–" if math.isnan(value) else f"{value:.4f}"


def test_figures_up_front(page):
    """Of three queries at 2: recall 1/2, nDCG and MRR as derived here, one perfect.

    First: items nine and ten, nine at rank 1; its nDCG is 1 / (1 + 1 / log2(3)). The others have
    one item each, one not found and one found first. Wilson's bounds p of 1 in 3 solve
    |1/3 - p| = 1.959964 sqrt(p (1 - p) / 3).
    """
    written = page(result())
    cards = written.source.split('<div class="card">')[1:]
    found = [re.search(r'name">(.*?)<.*?figure">(.*?)<', one, re.DOTALL) for one in cards]
    (of_first, n), z = (1 / (1 + 1 / math.log2(3)), 3), 1.959964
    assert {one[1]: one[2] for one in found if one} == {
        "Macro recall at k = 2": f"{(0.5 + 0 + 1) / n:.3f}",
        "nDCG at k = 2": f"{(of_first + 0 + 1) / n:.3f}",
        "MRR at k = 2": f"{2 / n:.3f}",
        "Perfect queries at k = 2": f"{1 / n:.3f}",
    }
    low, high = 0.0614922, 0.7923404
    for bound in (low, high):
        assert abs(1 / 3 - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / 3), 1e-5)
    assert f"95 % interval {low:.3f} to {high:.3f}" in written.of("p")


def test_metrics_at_every_cutoff(page):
    """Each value to four digits, as the result has it, with its interval."""
    written = page(result())
    for value in result().to_dict().values():
        assert f"{value:.4f}" in written.of("td")
    intervals = [text for text in written.of("small") if " to " in text]
    # Found rate, which says the same as success, is in no table; of one value there is no interval.
    with no_advice():
        known = result().confidence_intervals()["low"].notna()
    assert len(intervals) == known.sum() - len(result().k)


def test_a_leaderboard(page):
    """Numbers, intervals and order are those of the API; the best are marked."""
    systems = {"low": finding(10), "high": finding(30), "also high": finding(30)}
    several = compared(systems, ["mrr@1", "macro_recall@3"])
    ((header, *rows),) = tables(page(several), "numbers cards board")
    assert header == ["System", "MRR at k = 1", "Macro recall at k = 3"]
    expected = []
    for name, row in several.leaderboard.iterrows():
        cells = [name]
        for metric in several.metrics:
            low, high = shown(row[f"{metric}_low"]), shown(row[f"{metric}_high"])
            best = " best" if row[f"{metric}_best"] else ""
            cells.append(f"{shown(row[metric])}{best} {low} to {high}")
        expected.append(cells)
    assert rows == expected
    assert [row[1][:10] for row in rows] == ["0.7500 bes", "0.7500 bes", "0.2500 0.1"]


def test_differences(page):
    """A table for each pair, a row for each metric, as the API has them."""
    systems = {"low": finding(10), "high": finding(30), "middle": finding(20)}
    several = compared(systems, ["mrr@1", "recall@3"])
    found = [row[1:] for _, *rows in tables(page(several), "numbers cards") for row in rows]
    assert found == [
        [
            *map(shown, (row.value_a, row.value_b, row.difference)),
            span(row.ci_low, row.ci_high),
            *map(p_value, (row.p_permutation, row.p_holm, row.p_t)),
            shown(row.effect_size),
            f"{row.wins} / {row.ties} / {row.losses}",
        ]
        for row in several.table.itertuples()
    ]


@pytest.mark.parametrize(
    ("case", "n_pictures"),
    [("result", 4), ("of a near miss", 5), ("by corpus", 5), ("comparison of nine", 3),
     ("comparison by corpus", 4)],
)  # fmt: skip
def test_pictures_are_inside_and_ids_unique(page, case, n_pictures):
    thing, options = pages.CASES[case]()
    written = page(thing, pictures=True, **options)
    assert sum(tag == "svg" for tag, _ in written.elements) == n_pictures
    ids = [known["id"] for _, known in written.elements if known.get("id")]
    assert ids
    assert len(ids) == len(set(ids))


def test_the_same_result_gives_the_same_page(page):
    """No dates, no random ids."""
    assert page(result(), pictures=True).source == page(result(), pictures=True).source


@pytest.mark.parametrize(
    "case", ["result", "of short lists", "by too many", "diagnosed", "comparison by corpus"]
)
def test_what_the_page_says_is_not_warned_of(page, case):
    thing, options = pages.CASES[case]()
    page(thing, **options)


def test_the_language_is_chosen(page):
    """Headings, pictures and queries are in Korean, also of a comparison."""
    written = page(result(), language="ko", pictures=True)
    assert written.elements[0] == ("html", {"lang": "ko"})
    assert written.of("h1") == ["검색 평가 보고서"]
    assert "재현율" in written.of("text")
    assert "How to read" not in written.source
    assert page(compared({"a": result(), "b": result()}), language="ko").of("h1") == [
        "검색기 비교 보고서"
    ]


@pytest.mark.parametrize(
    ("make", "name", "options", "error"),
    [
        (result, "page.html", {"n_queries": -1}, ValueError),
        (result, "page.html", {"cutoff": 1}, TypeError),
        (lambda: compared({"a": result(), "b": result()}), "page.html", {"k": 1}, TypeError),
        (result, "none/page.html", {}, FileNotFoundError),
    ],
)
def test_a_failure_leaves_what_was_there(tmp_path, make, name, options, error):
    """A page appears complete or not at all, and no option is passed over."""
    (tmp_path / "page.html").write_text("before")
    with pytest.raises(error):
        write_report(make(), tmp_path / name, **options)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_no_key_stands_beside_a_label(language):
    """Averages have names; their keys are for the API, and for how to read a cutoff."""
    keys = re.compile(r"\b[a-z]\w*@(?:\d+[wct]?|all)\b|\b(?:macro|micro|mean)_")
    for case, told in recorder.read(f"pages.{language}.txt").items():
        assert not [line for line in told.splitlines() if keys.search(line)], case


def test_more_slices_than_a_page_holds_are_counted(page):
    tags = {"id": [f"n{i // 2}" for i in range(130)]}
    large = evaluated([["a"]] * 130, [["a"]] * 130, 1, tags=tags)
    written = page(large, by="id", intervals=False, n_queries=0)
    assert "… and 5 more slices, not shown." in written


def test_changed_queries_keep_a_comparison_small(page):
    """Three systems, ten changed queries for each pair, ten chunks of 200 words: under 1 MB."""

    def chunk(query, number):
        return " ".join(f"word{query}x{number}y{i}" for i in range(200))

    actual = [[chunk(i, 0)] for i in range(40)]
    systems = {}
    for shift, name in enumerate(("bm25", "dense", "hybrid")):
        lists = [[chunk(i, n + 20 * shift) for n in range(9)] for i in range(40)]
        lists = [[*one[:shift], *truth, *one[shift:]]
                 for one, truth in zip(lists, actual, strict=True)]  # fmt: skip
        systems[name] = evaluated(actual, lists, [10])
    written = page(compared(systems, "mrr@10"), pictures=True)
    assert written.source.count('<div class="side">') == 3 * 10 * 2
    assert len(written.source.encode()) < 1_000_000


# --- hostile texts -----------------------------------------------------------------------------

SCRIPT = Path(krag_eval.__file__).parent / "report" / "templates" / "page.js"
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "</title></summary></details></div></main>",
    "<svg onload=alert(1)>]]><!--",
    "{{ 7 * 7 }} {% raw %} ${x} \\",
    "'\" onmouseover=alert(1) javascript:alert(1)",
    "\x00\x07\x1b[31m\x7f\x85\ud800\ufffe",
    "\u202eright to left\u2066 \u200f",
    "a" * 1_000_000,
    "Z" + "\u0301" * 10_000,
    "&lt;script&gt; &#x3c;",
]
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066\u2067\u2069\ud800-\udfff]"
)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer"),
    *("h1", "h2", "h3", "h4", "p", "div", "span", "strong", "em", "code", "small", "mark"),
    "figure",
    *("table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "ul", "ol", "li"),
    *("a", "script", "input", "select", "option", "button", "kbd", "output", "data", "b"),
    *("details", "summary", "svg", "g", "defs", "path", "use", "text", "tspan", "clippath", "rect"),
}  # fmt: skip


def check_harmless(written):
    """Nothing but our own elements; no handler, no address; nothing that acts on the reader."""
    assert {tag for tag, _ in written.elements} <= ALLOWED
    assert written.open == []
    for tag, attributes in written.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "xlink:href", "src"):
                assert (value or "").startswith("#")
            assert "url(" not in (value or "").replace("url(#", ""), (tag, name)
    assert not ACTING.search(written.source)
    (script,) = written.of("script")
    assert script == SCRIPT.read_text("utf-8").strip()
    (found,) = re.findall("<script>(.*)</script>", written.source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()
    policies = [a["content"] for t, a in written.elements if a.get("http-equiv")]
    assert policies == [
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    ]


def test_hostile_texts_are_shown_and_do_nothing(page):
    """No element, handler or address comes from a text; long texts are clipped to their boxes."""
    # Each hostile text is query, ground truth and prediction, and never found.
    predicted = [[text + "!", *HOSTILE] for text in HOSTILE]
    one = evaluated([[f"wanted {text}"] for text in HOSTILE], predicted, 3, queries=list(HOSTILE))
    hostile = page(one, n_queries=20, title=HOSTILE[0], date=HOSTILE[1], pictures=True)
    check_harmless(hostile)
    for text in [*HOSTILE[:6], HOSTILE[-1], "\\x00\\x07\\x1b[31m", "\\u202eright to left"]:
        assert text in hostile
    # A megabyte, shown in 22 places, stays a few hundred characters each.
    assert len(hostile.source) < 500_000
    assert max(map(len, re.findall("a{100,}", hostile.source))) < 1_000
    (style,) = hostile.of("style")
    box = re.search(r"\.told div \{([^}]*)\}", style)
    assert box is not None
    assert "overflow: hidden" in box[1]
    assert "unicode-bidi: isolate" in box[1]
    assert "overflow-wrap: anywhere" in style
    boxes = [a for tag, a in hostile.elements if tag == "div" and not a.get("class")]
    questions = [a for _, a in hostile.elements if a.get("class") == "question"]
    assert boxes
    assert questions
    assert all(attributes.get("dir") == "auto" for attributes in [*boxes, *questions])


def test_hostile_tags(page):
    """Names and values of tags are shown, and do nothing."""
    tags = {HOSTILE[0]: [HOSTILE[i % 4] for i in range(41)], "b" * 9999: ["a" * 200] * 41}
    check_harmless(page(sliced(tags=tags), by=list(tags), pictures=True))


def test_hostile_comparisons(page):
    """Names, questions, texts, ids and tags at once."""
    texts = [*HOSTILE, *(f"plain {i}" for i in range(29))]
    documents = [{"page_content": text, "id": text, "metadata": {"source": text}} for text in texts]
    actual = [[one] for one in documents]
    tags = {HOSTILE[0]: [HOSTILE[1] if i < 20 else HOSTILE[4] for i in range(len(texts))]}
    old = evaluated(actual, [[documents[1]]] * len(texts), queries=texts, tags=tags)
    new = evaluated(actual, [[documents[1], *one] for one in actual], queries=texts, tags=tags)
    systems = {HOSTILE[0]: old, "\u202e" + "x" * 5000: new, HOSTILE[1]: new}
    written = page(compared(systems, "macro_recall@2"), n_queries=40, by=(HOSTILE[0],),
                   title=HOSTILE[2], pictures=True)  # fmt: skip
    check_harmless(written)
    for text in HOSTILE[:6]:
        assert text in written
    assert len(written.source) < 2_000_000
