"""What a result says of chunks that nearly hold a passage and say something else."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from reference import no_advice
from results_made import evaluated, read_back, write_lines
from trials import trials

import krag_eval.report
from krag_eval import (
    AnyOf,
    CoverageMatcher,
    KragEvalWarning,
    NumbersMatcher,
    OfflineRetrievalEvaluator,
    evaluate_file,
    load_dataset,
)
from krag_eval.cli.missed_page import contradicted_page
from krag_eval.core.display.result import told_rewritten

YEAR = "In 2024 revenue from lending rose to a record high"
LAST_YEAR = "In 2023 revenue from lending rose to a record high, too."
WEEKS = "The fee is due within 30 days after the first notice was sent out"
LEND = (
    "Members of the house may borrow as many films as they like for a week but may not lend them "
    "to anyone else at any time"
)
DUE = "The yearly fee is due before the last day of March of each year"
OPEN = "On each day of the week the branch in Seoul opens at nine and closes at ten"
RATE = "은행 대출 금리는 올해 초부터 연 8.2 퍼센트로 정하고 이사회가 해마다 검토한다"
RENT = "시는 올해 모두 합하여 청년에게 3억원을 월세와 교육비로 지원한다"
YEARS = "시는 올해 모두 합하여 청년에게 3년 동안 월세와 교육비로 지원한다"
CARD = "이 카드는 시내 모든 도서관과 체육관에서 언제든지 사용할 수 있다고 구청 누리집에서 안내한다"
PAID = "지원금은 서류를 접수한 날로부터 한 달 이내에 신청인의 은행 계좌로 입금된다"

# Of the words, or letters, of the passage those are lost that the chunk has another one for, and
# of a number among letters the two behind it. Said is what differs, two on either side included.
CASES = [
    # The year and the word before it, alone no run of five.
    (YEAR, LAST_YEAR, 8 / 10, "number", "2024", "2023"),
    (WEEKS, WEEKS.replace("days", "weeks"), 13 / 14, "number", "30 days", "30 weeks"),
    (LEND, LEND.replace("not ", ""), 25 / 26, "negation", "may not lend", "may lend"),
    (DUE, DUE.replace("before", "after"), 13 / 14, "text", "before", "after"),
    (OPEN, OPEN.replace("Seoul", "Busan"), 16 / 17, "text", "Seoul", "Busan"),
    (RENT, RENT.replace("3", "4"), 25 / 28, "number", "3억원을", "4억원을"),
    (YEARS, YEARS.replace("3년", "3개월"), 26 / 28, "number", "3년", "3개월"),
    (CARD, CARD.replace("있", "없"), 38 / 39, "negation", "사용할 수 있다고", "사용할 수 없다고"),
    (PAID, PAID.replace("이내", "이후"), 31 / 32, "text", "이내에", "이후에"),
    (RATE, RATE.replace("8.2", "8.0"), 30 / 33, "number", "8.2", "8.0"),
]  # fmt: skip


def letters(text):
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text)).casefold()


def marked(told):
    """Return what stands between two signs of what differs, letters and digits alone."""
    return {letters(one) for one in told.split("≠")[1::2]}


@pytest.mark.parametrize(("passage", "chunk", "share", "kind", "says", "instead"), CASES)
def test_what_a_chunk_says_instead(passage, chunk, share, kind, says, instead):
    """It is in the table, in the evidence, in words, and marked in both texts."""
    result = evaluated([["unrelated", passage]], [["x", chunk]], "coverage")
    assert result.n_contradicted == 1
    (row,) = result.contradicted().to_dict("records")
    assert row == {"position": 0, "item": 2, "rank": 2, "share": pytest.approx(share),
                   "kind": kind, "passage": says, "document": instead, "count": 1}  # fmt: skip
    explanation = result.explain(0)
    (one,) = explanation.items[1].contradicted
    assert (one.rank, one.share, one.said) == (2, pytest.approx(share), (kind, says, instead))
    assert explanation.ground_truth["contradicted_by"].tolist() == [(), (2,)]
    assert explanation.predicted["contradicts"].tolist() == [(), (2,)]
    told = explanation.to_text(400)
    by = (
        "nearly held by rank 2, which has"
        if kind == "text"
        else "contradicted by rank 2, which holds"
    )
    assert f"missed; {by} " in told
    assert "not relevant, differs from item 2" in told
    assert {letters(says), letters(instead)} <= marked(told)
    assert "in a terminal between two ≠" in told


def test_what_is_found_elsewhere_is_contradicted_all_the_same():
    """The share is rounded down; after three documents, the others are counted."""
    chunks = [LAST_YEAR.replace("2023", str(year)) for year in range(2010, 2015)]
    explanation = evaluated([[YEAR]], [[*chunks, YEAR]], "coverage", k=[6]).explain(0)
    assert explanation.items[0].outcome == "found"
    assert [one.rank for one in explanation.items[0].contradicted] == [1, 2, 3, 4, 5]
    told = " ".join(explanation.to_text(400).split())
    assert (
        "found at rank 6; contradicted by rank 1, which holds 80 % of it: the passage has 2024, "
        "the chunk 2010 there; contradicted by rank 2"
    ) in told
    assert "the chunk 2012 there; and 2 more" in told
    assert "contradict" not in evaluated([[YEAR]], [[YEAR]], "coverage").explain(0).to_text()


def test_a_chunk_that_matches_another_alternative_contradicts_nothing():
    """An item is one of its alternatives; of several that are contradicted, the fullest is told."""
    both = evaluated([[AnyOf([YEAR, LAST_YEAR])]], [[LAST_YEAR]], "coverage")
    assert (both.n_contradicted, both.explain(0).items[0].contradicted) == (0, ())
    # Eight of eleven words, and of ten.
    neither = evaluated([[AnyOf([f"{YEAR} again", YEAR])]], [[LAST_YEAR]], "coverage")
    (one,) = neither.explain(0).items[0].contradicted
    assert (one.share, one.alternative, neither.n_contradicted) == (0.8, 1, 1)
    assert [*one.said] == ["number", "2024", "2023"]


def test_what_holds_too_little_is_explained_and_not_counted():
    """It would be no match in any case."""
    result = evaluated([[YEAR]], [[LAST_YEAR]], CoverageMatcher(0.9))
    assert (result.n_contradicted, len(result.contradicted())) == (0, 0)
    assert result.explain(0).items[0].contradicted[0].share == 0.8


def test_where_documents_count_together_one_that_contradicts_is_counted():
    """It holds enough alone; the item is found in the pieces that say the same."""
    pieces = ["In 2024 revenue from lending", "rose to a record high at last"]
    result = evaluated([[YEAR]], [[LAST_YEAR, *pieces]], "coverage(union=yes)")
    assert (result.n_contradicted, result["recall@5"]) == (1, 1.0)
    told = result.explain(0).to_text(200)
    assert "found in pieces: ranks 2 and 3 together hold 100 %; contradicted by rank 1" in told


@pytest.mark.parametrize(
    "matcher",
    ["text", "coverage(numbers=no,polarity=no)", CoverageMatcher() & NumbersMatcher(0.5)],
)
def test_a_matcher_that_does_not_look_counts_none(matcher):
    """The table is empty, with all its columns."""
    result = evaluated([[YEAR]], [[LAST_YEAR]], matcher)
    assert (result.n_contradicted, len(result.contradicted())) == (0, 0)
    assert result.contradicted().columns.tolist() == [
        "position", "item", "rank", "share", "kind", "passage", "document", "count",
    ]  # fmt: skip


@pytest.mark.parametrize("texts", [True, False])
def test_a_saved_result_knows_which_and_with_texts_why(texts, tmp_path):
    """Without them there are ranks and shares, and a word on how to keep texts."""
    result = evaluated([[YEAR], [LEND]], [["x", LAST_YEAR], [LEND]], "coverage")
    read = read_back(result, tmp_path, texts=texts)
    (row,) = read.contradicted().to_dict("records")
    said = ("number", "2024", "2023") if texts else (None, None, None)
    assert (row["rank"], row["share"], read.n_contradicted) == (2, 0.8, 1)
    assert (row["kind"], row["passage"], row["document"]) == said
    told = read.explain(0).to_text(200)
    assert ("the chunk 2023 there" in told) == texts
    assert "contradicted by rank 2, which holds 80 % of it" in told
    assert read.explain(0).items[0].contradicted[0].rank == 2


ROWS = [
    {"question": str(at), "actual": [passage], "predicted": [chunk, passage]}
    for at, (passage, chunk, *_) in enumerate(CASES)
]


def test_a_run_in_parts_counts_them_too(tmp_path):
    """Ten of ten queries, three at a time; the sums that are saved keep the count."""
    path = write_lines(tmp_path / "rows.jsonl", ROWS)
    with no_advice():
        parts = evaluate_file(path, 2, matcher="coverage", chunk_size=3)
        whole = load_dataset(path).evaluator(matcher="coverage").evaluate(2)
    assert (parts.n_contradicted, whole.n_contradicted) == (10, 10)
    assert parts.summary == whole.summary
    assert read_back(parts, tmp_path).n_contradicted == 10


@settings(max_examples=trials(30))
@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=6), st.integers(0, 6))
def test_parts_add_up(rows, at):
    """However the queries are divided, and in the table as in the count."""
    runs = [
        evaluated([one["actual"] for one in some], [one["predicted"] for one in some], "coverage")
        for some in (rows, rows[:at], rows[at:])
        if some
    ]
    whole, *parts = (run.n_contradicted for run in runs)
    assert whole == sum(parts) == len(rows) == len(runs[0].contradicted())


def test_misses_name_the_chunk_that_contradicts():
    """The one that holds most of the worst item; where none does, nothing."""
    worse = "In 2022 revenue from lending rose to a new high"
    misses = evaluated([[YEAR], ["a"]], [["x", worse, LAST_YEAR], ["b"]], "coverage").misses()
    assert misses["contradicted_by"].isna().tolist() == [False, True]
    assert misses.loc[0, ["status", "similarity", "contradicted_by"]].tolist() == ["missed", 0.0, 3]


def test_the_result_says_how_many():
    """One or several, in both languages; nothing where there is none."""
    one = evaluated([[YEAR]], [[LAST_YEAR]], "coverage")
    assert "1 retrieved chunk is another text than a passage" in repr(one)
    assert "2 retrieved chunks are other texts" in repr(
        evaluated([[YEAR]], [[LAST_YEAR] * 2], "coverage")
    )
    assert "검색된 청크 1개는 정답 구절을 거의 담고 있지만" in one.to_markdown("ko")
    assert "contradicted" not in repr(evaluated([[YEAR]], [[YEAR]], "coverage"))
    assert "1위 문서는 구절의 80%를 담고 있지만 어긋남" in one.explain(0, language="ko").to_text()


def test_differences_that_are_alike_are_counted():
    """Busan stands for Seoul in two of the three passages; the page says it above the list."""
    passages = [[OPEN], [OPEN.replace("nine", "eight")], [YEAR]]
    chunks = [[text.replace("Seoul", "Busan").replace("2024", "2023")] for (text,) in passages]
    result = evaluated(passages, chunks, "coverage")
    assert result.contradicted()["count"].tolist() == [2, 2, 1]
    page = contradicted_page(result.contradicted(), is_looked_for=True)
    assert page.sentences == ["Most often: “Busan” for “Seoul” (2)."]


def test_where_all_is_contradicted_the_warning_says_so():
    """The advice is not to try another matcher, but to look at what differs."""
    evaluator = OfflineRetrievalEvaluator([[YEAR]], [[LAST_YEAR]], matcher="coverage")
    with pytest.warns(KragEvalWarning, match="is another text there. See result.contradicted"):
        evaluator.evaluate(1)


def test_texts_stay_texts_where_they_are_marked(tmp_path):
    """Markup around and within what differs is escaped, in a notebook and on the page."""
    passage = "In <b>2024</b> revenue from <script>lending</script> rose to a record high &amp; low"
    result = evaluated([[passage]], [[passage.replace("2024", "2023")]], "coverage")
    html = result.explain(0).to_html()
    assert html.count('text-decoration:underline">2024</mark>') == 1
    assert html.count('text-decoration:underline">2023</mark>') == 1
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count('<mark class="different">2024</mark>') == 1
    assert page.count('<mark class="different">2023</mark>') == 1
    assert "1 retrieved chunk is another text" in page
    assert "Underlined is what" in page
    for told in (html, page):
        assert "<script>lending" not in told
        assert "&lt;b&gt;" in told


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_differs_can_be_read_in_both_themes(theme):
    """At least 4.5 to 1, as WCAG 2.1 (1.4.3) asks of text; and it is underlined."""
    files = Path(krag_eval.report.__file__).parent / "templates"
    style = (files / "style.css").read_text("utf-8")
    colours = dict(re.findall(r"--(\w+): (#\w+);", style.partition(f"color-scheme: {theme};")[2]
                              .partition("}")[0]))  # fmt: skip

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
                            for x in parts)  # fmt: skip
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted(map(luminance, (colours["ink"], colours["different"])))
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5
    rule = "mark.different { background: var(--different); text-decoration: underline; }"
    assert rule in (files / "queries.css").read_text("utf-8")


def test_long_texts_are_cut_around_what_differs():
    """Both places are seen, though far more words agree before them."""
    start = " ".join(f"word{at}" for at in range(300))
    end = " ".join(f"more{at}" for at in range(300))
    passage = f"{start} in 2024 {end}"
    explanation = evaluated([[passage]], [[passage.replace("2024", "2023")]], "coverage").explain(0)
    for width in (60, 100):
        assert marked(explanation.to_text(width)) >= {"2024", "2023"}


CLUBS = [
    f"the members of club {name} meet each week on the green hill behind the old town house"
    for name in ("one", "two", "three", "four", "five")
]


@pytest.mark.parametrize(
    ("n", "rewritten", "matcher", "is_told"),
    [
        (5, 5, "coverage", True),
        (5, 4, "coverage", False),  # one stands there word for word
        (4, 4, "coverage", False),  # too few to tell
        (5, 5, "coverage(guard=numbers)", False),
    ],
)
def test_ground_truth_that_never_stands_verbatim_may_be_rewritten(n, rewritten, matcher, is_told):
    found = [[club.replace("each week ", "")] for club in CLUBS[:rewritten]]
    found += [[club] for club in CLUBS[rewritten:n]]
    result = evaluated([[club] for club in CLUBS[:n]], found, matcher)
    assert len(told_rewritten(result)) == is_told
    assert all(told in str(result) for told in told_rewritten(result))
