"""Coverage by words or by letters, as the script of each query's ground truth asks for."""

import numpy as np
import pytest
from matched import matches_of, per_query, rows_of

from krag_eval import (
    AnyOf,
    CoverageMatcher,
    EvaluationResult,
    NumbersMatcher,
    OfflineRetrievalEvaluator,
    calibrate,
)
from krag_eval.core import letter_tokens, resolve_matcher
from krag_eval.core.matching.numbering import numbered
from krag_eval.core.matching.parallel import processes
from krag_eval.core.matching.pieces import held_anywhere

KOREAN = "참가 신청은 5월 3일 오전 9시부터 구청 누리집에서 받습니다"
UNSPACED = "안내" + KOREAN.replace(" ", "") + "문의는전화로"
OTHER = "열람실은 평일 아침 아홉 시에 열고 저녁 여덟 시에 닫습니다"
BEFORE, BEHIND = "우리시는모두합쳐지난해에", "을청년에게나누어지원한다"  # a run of twelve each
ENGLISH = "Refunds are paid within seven days of the cancellation"  # nine words
# With the Korean passage (23 letters) 134 of 157 letters, so that less than 15 % are Korean.
LONG = (
    f"{ENGLISH} and books may be kept for four weeks and films for one week but a book that was "
    "lost costs the price of a new one"
)
PART = "refunds are paid within seven days"  # six of them
JAPANESE = "払い戻しは取り消しの日から七日以内に行われます"


def matched(actual, predicted, matcher="coverage"):
    return matches_of(resolve_matcher(matcher), actual, predicted)


def test_each_query_is_read_by_its_own_script():
    """By letters the Korean passage is whole; six of nine English words are a share of 2/3."""
    actual = [[KOREAN], [ENGLISH], [JAPANESE]]
    predicted = [[ENGLISH, UNSPACED], [KOREAN, PART], ["。" + JAPANESE]]
    expected = [(0, 2, 1.0), (1, 2, 6 / 9), (2, 1, 1.0)]
    assert rows_of(matched(actual, predicted)) == expected
    with processes(2):
        assert rows_of(matched(actual, predicted)) == expected


def test_words_and_letters_are_each_querys_own_unit():
    """Token sums count the letters of the first query (25, spaces apart), the second's words."""
    pieces = matched([[KOREAN], [ENGLISH]], [[KOREAN], [KOREAN, ENGLISH]]).pieces
    letters = len(KOREAN.replace(" ", ""))
    assert pieces.alternative_tokens.tolist() == [letters, 9]
    # The Korean document of the English query is read by words: it has eight.
    assert pieces.document_tokens.tolist() == [letters, len(KOREAN.split()), 9]


@pytest.mark.parametrize("matcher", ["coverage", "coverage(tokenizer=letters)"])
def test_all_ground_truth_of_a_query_decides_together(matcher):
    """A long English passage of the query outweighs the Korean one, which is read by words."""
    for actual in ([KOREAN, LONG], [AnyOf([KOREAN, LONG])]):
        matches = matched([list(actual)], [[UNSPACED]], matcher)
        assert len(matches) == (matcher != "coverage")


def test_english_is_read_as_by_words():
    """To the digit, whatever else is in the file."""
    actual = [[ENGLISH, "Closed on Mondays"], [KOREAN]]
    predicted = [[PART, "We are closed on Mondays.", ENGLISH], [UNSPACED]]
    auto, by_words = (
        matched(actual, predicted, CoverageMatcher(tokenizer=one)) for one in ("auto", "words")
    )
    assert rows_of(auto)[:-1] == rows_of(by_words)
    added = [one.pieces.between(0, 2, slice(3)).added_tokens.tolist() for one in (auto, by_words)]
    assert added[0] == added[1]


@pytest.mark.parametrize(
    ("truth", "document", "similarity"),
    [
        # A run holds a number whole or not.
        ("3억원", "예산은 3억원입니다", 1.0),
        ("3억원", "예산은 13억원입니다", 0.0),
        ("3억원", "예산은 3 억 원입니다", 1.0),
        ("제3", "제35조", 0.0),
        ("1,000원", "가격은 1000원", 1.0),
        ("1000원", "가격은 1,000원", 1.0),
        ("1000원", "가격은 11,000원", 0.0),
        ("교육ㆍ문화 행사", "교육·문화 행사", 1.0),
        ("ㅇ 신청 기간", "신청기간", 1.0),
        # A number and its unit are one amount: of the 13 letters behind that are alike, 11 are
        # left, one short of a run. Less than half is held, and so no contradiction.
        (f"{BEFORE}3억원{BEHIND[:-1]}", f"{BEFORE}4억원{BEHIND[:-1]}", 12 / 26),
        # What a passage does not say of a number is no contradiction.
        (f"억원{BEHIND}", f"{BEFORE}4억원{BEHIND}", 1.0),
        (f"{BEFORE}3억원", f"{BEFORE}3억원{BEHIND}", 1.0),
        (f"{BEFORE}3억원", f"{BEFORE}3억", 14 / 15),
        # The text that has both says it.
        (f"{BEFORE}3억원{BEHIND}", f"{BEFORE}4억원{BEHIND} 3억원{BEHIND}", 1.0),
        # Of 30 letters, a year of four digits after eleven, one short of a run: of fifteen behind
        # it thirteen stay.
        (f"{BEFORE[1:]}2024{BEHIND}{BEHIND[:3]}", f"{BEFORE[1:]}2023{BEHIND}{BEHIND[:3]}", 13 / 30),
        # White space inside a number is closed, up to four.
        *(
            ("2024년 예산", f"20{gap}24년 예산", 1.0)
            for gap in (" ", "\n", "\r\n", "\u00a0", "    ", " \n \n")
        ),
        ("1,234,567원", "가격은 1,2 34,567원", 1.0),
        ("2024년 예산", "20 23년 예산", 0.0),
        ("2024년 예산", "1 20 24년 예산", 0.0),  # three numbers, as in a table
        ("12024년 예산", "1 20 24년 예산", 0.0),
        ("2024년 예산", "20     24년 예산", 0.0),
        ("2024년 예산", "20, 24년 예산", 0.0),
        ("24년 예산", "20 24년 예산", 1.0),
        ("20 24년 예산", "2024년 예산", 0.0),
        ("2024년과 20 24년", "앞 2024년과 20 24년 뒤", 1.0),  # as in the ground truth
    ],
)
@pytest.mark.parametrize("tokenizer", ["auto", "letters"])
def test_amounts_among_letters(truth, document, similarity, tokenizer):
    matcher = CoverageMatcher(tokenizer=tokenizer)
    assert matcher.similarity(truth, document) == similarity
    assert matcher.similarity(truth, truth) == 1.0


@pytest.mark.parametrize(
    ("truth", "document", "share"),
    [
        # Of 27 letters the number and its unit are lost.
        (f"{BEFORE}3억원{BEHIND}", f"{BEFORE}4억원{BEHIND}", 24 / 27),
        (f"{BEFORE} 3억 원{BEHIND}.", f"{BEFORE} 4 억원 {BEHIND}.", 24 / 27),
        # A unit ends before the next number, which is the same: 25 of 27.
        (f"{BEFORE}3월7일{BEHIND[1:]}", f"{BEFORE}4월7일{BEHIND[1:]}", 25 / 27),
    ],
)
def test_another_amount_loses_its_unit_and_contradicts(truth, document, share):
    """Without the guard its letters are lost; with it, all."""
    unguarded = CoverageMatcher(numbers="ignore", polarity=False)
    assert unguarded.similarity(truth, document) == share
    assert CoverageMatcher().similarity(truth, document) == 0.0


TWENTY = "가나다라마바사아자차카타파하거너더러머버"


@pytest.mark.parametrize(
    ("settings", "truth", "document", "similarity"),
    [
        # 2.4 letters for a word: 12 for 5, 17 for 7, 2 for 1. Here 16 letters are shared.
        ({"min_run": 5}, TWENTY, TWENTY[:16], 0.8),
        ({"min_run": 7}, TWENTY, TWENTY[:16], 0.0),
        ({"min_run": 16, "tokenizer": "letters"}, TWENTY, TWENTY[:16], 0.8),
        ({"min_run": 17, "tokenizer": "letters"}, TWENTY, TWENTY[:16], 0.0),
        ({"min_run": 1}, "가나다", "가나", 2 / 3),
        # Of the document's 15 letters, 4억원 is not the ground truth's 3억원.
        ({"direction": "either", "numbers": "ignore"}, f"{BEFORE}3억원{BEHIND}", f"4억원{BEHIND}",
         12 / 15),
        ({"direction": "either"}, f"{BEFORE}3억원{BEHIND}", f"4억원{BEHIND}", 0.0),
        # Ten letters in five words are too short a chunk to be held; twelve are not.
        ({"direction": "either"}, KOREAN, "참가 신청은 5월 3일 오", 0.0),
        ({"direction": "either"}, KOREAN, "참가 신청은 5월 3일 오전 9시", 1.0),
        # Among words there are no amounts: four of five words, whatever the lost one is.
        ({"min_run": 1}, "we paid 30 million euros", "we paid 40 million euros", 4 / 5),
        # By letters 25, of which a number of two digits and the two behind it are lost.
        ({"min_run": 6, "tokenizer": "letters"}, "we paid 30 million euros for it",
         "we paid 40 million euros for it", 21 / 25),
        ({"tokenizer": "words"}, "2024년 예산", "20 24년 예산", 0.0),
    ],
)  # fmt: skip
def test_runs_are_as_long_as_their_unit_asks_for(settings, truth, document, similarity):
    assert CoverageMatcher(**settings).similarity(truth, document) == similarity


def test_runs_found_anywhere_keep_amounts():
    """Of the 27 letters, 24; of texts taken out of others, too."""
    tokens = numbered(letter_tokens, [f"{BEFORE}3억원{BEHIND}", f"{BEFORE}4억원{BEHIND}"])
    wanted, others = (tokens.take(np.array([one])) for one in (0, 1))
    assert wanted.counted(held_anywhere(wanted, [others], 12)).tolist() == [24]


def test_amounts_of_one_query_are_nothing_to_the_words_of_another():
    """Of eight words seven are held, though among letters 3 comes first, as Books does here."""
    truth, other = "Books may be kept for at most weeks", f"3억원{BEHIND}"
    found = [[truth.replace("Books", "Films")], [other]]
    matches = matched([[truth], [other]], found, "coverage(guard=numbers)")
    assert rows_of(matches) == [(0, 1, 7 / 8), (1, 1, 1.0)]


@pytest.mark.parametrize("settings", ["", "(numbers=yes)", "(union=yes)"])
def test_gaps_are_closed_for_each_query_alone(settings):
    """The first and third ask for 2024, with any of their texts; the second for 24."""
    year, apart = "2024년 예산", "20 24년 예산"
    actual = [[year], ["24년 예산"], ["다른 것", AnyOf(["없는 것", year])]]
    matches = matched(actual, [[apart], [apart], ["없음", apart]], f"coverage{settings}")
    assert rows_of(matches) == [(0, 1, 1.0), (1, 1, 1.0), (3, 2, 1.0)]
    assert matches.pieces.document_tokens.tolist() == [7, 7, 2, 7]


def test_digits_without_end_are_looked_through_once():
    """Looked for from each digit anew, gaps would take minutes here."""
    long = "1" * 100_000
    assert CoverageMatcher().similarity(f"가나다라 {long}", f"{long} 가나다라 {long}") == 1.0


@pytest.mark.parametrize(
    "matcher",
    [
        CoverageMatcher(numbers=True),
        CoverageMatcher(direction="either"),
        CoverageMatcher(union=True),
        CoverageMatcher() & NumbersMatcher(),
        CoverageMatcher() | NumbersMatcher(),
    ],
)
def test_every_way_of_coverage_follows(matcher):
    """Combined matchers, too, read each query in its way."""
    actual, predicted = [[KOREAN], [ENGLISH]], [[OTHER, UNSPACED], [PART, f"So: {ENGLISH}!"]]
    assert per_query(matcher, actual, predicted)["recall"].tolist() == [1.0, 1.0]
    assert matcher.similarity(KOREAN, UNSPACED) == 1.0


def test_pairs_to_calibrate_on_are_read_by_their_own_ground_truth():
    pairs = [(KOREAN, UNSPACED, True), (KOREAN, OTHER, False), (ENGLISH, PART, False),
             (ENGLISH, f"{ENGLISH}.", True)]  # fmt: skip
    assert calibrate("coverage", pairs).similarity.tolist() == [1.0, 0.0, 6 / 9, 1.0]


CHUNKS = [UNSPACED, OTHER.replace(" ", ""), LONG, "Books may be kept for four weeks"]


def causes(matcher, actual, predicted, index, **options):
    """Return why each item of a diagnosis was not found."""
    result = OfflineRetrievalEvaluator(actual, predicted, matcher).evaluate(1)
    return [one.cause for one in result.diagnose(index, **options).items]


def test_a_diagnosis_reads_the_index_as_each_query_does():
    """The second query is read by words, as its English is long, and the fourth."""
    actual = [[KOREAN], [LONG, KOREAN], [OTHER], [CHUNKS[3]]]
    asked = "coverage", actual, [[CHUNKS[3]]] * 4, CHUNKS
    assert causes(*asked) == [
        "not_in_top_k", "not_in_top_k", "not_in_index", "not_in_top_k", "found",
    ]  # fmt: skip
    assert causes(*asked, deeper=[[CHUNKS[3], UNSPACED]] * 4) == [
        "ranked_too_low", "not_retrieved", "not_in_index", "not_retrieved", "found",
    ]  # fmt: skip
    # What is still missing may be in another script than the rest of the ground truth.
    both = CoverageMatcher() & NumbersMatcher()
    assert causes(both, [[LONG, KOREAN], [KOREAN]], [[LONG], [OTHER]], CHUNKS) == [
        "found", "not_in_index", "not_in_top_k",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("matcher", "index", "cause"),
    [
        ("coverage", [f"{BEFORE}20 24년{BEHIND}"], "not_in_top_k"),
        # 18 and 17 of 29 letters, with the year in both.
        ("coverage", [f"{BEFORE}20 24년{BEHIND[0]}", f"20 24년{BEHIND}"], "cut_apart"),
        ("coverage(tokenizer=words)", [f"{BEFORE}20 24년{BEHIND}"], "not_in_index"),
    ],
)
def test_a_diagnosis_closes_gaps_inside_numbers(matcher, index, cause):
    actual = [[f"{BEFORE}2024년{BEHIND}"], [KOREAN]]
    assert causes(matcher, actual, [[KOREAN]] * 2, [KOREAN, *index])[0] == cause


def test_an_explanation_reads_likewise(tmp_path):
    """It names the run in the query's unit, and marks what agrees whatever the spaces."""
    result = OfflineRetrievalEvaluator(
        [[KOREAN], [ENGLISH], [KOREAN]], [[UNSPACED], [PART], [OTHER]], matcher="coverage"
    ).evaluate(1)
    result.to_json(tmp_path / "saved.json", texts=True)
    for one in (result, EvaluationResult.from_json(tmp_path / "saved.json")):
        assert one.explain(position=0).by_letters
        assert f"«{KOREAN}»" in one.explain(position=0).to_text()
        assert not one.explain(position=1).by_letters
        near = one.explain(position=2).items[0].near
        assert near is not None
        assert (near.run, near.unit) == (12, "characters")
