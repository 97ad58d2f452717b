"""Coverage by words or by letters, as the script of each query's ground truth asks for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from krag_eval import (
    AnyOf,
    CoverageMatcher,
    EvaluationResult,
    NumbersMatcher,
    OfflineRetrievalEvaluator,
    calibrate,
)
from krag_eval.documents import QuerySet
from krag_eval.errors import Refusal
from krag_eval.matching.base import resolve_matcher
from krag_eval.matching.numbering import numbered
from krag_eval.matching.parallel import processes
from krag_eval.matching.pieces import held_anywhere
from krag_eval.matching.tokenizers import letter_tokens

KOREAN = "참가 신청은 5월 3일 오전 9시부터 구청 누리집에서 받습니다"
UNSPACED = "안내" + KOREAN.replace(" ", "") + "문의는전화로"
OTHER = "열람실은 평일 아침 아홉 시에 열고 저녁 여덟 시에 닫습니다"
ENGLISH = "Refunds are paid within seven days of the cancellation"  # nine words
PART = "refunds are paid within seven days"  # six of them
JAPANESE = "払い戻しは取り消しの日から七日以内に行われます"


def matched(actual, predicted, matcher):
    return resolve_matcher(matcher).match(QuerySet.from_lists(actual, predicted))


def found(matches):
    return list(
        zip(matches.item.tolist(), matches.rank.tolist(), matches.similarity.tolist(), strict=True)
    )


def test_each_query_is_read_by_its_own_script():
    """By letters the Korean passage is whole; six of nine English words are a share of 2/3."""
    actual: list[list[object]] = [[KOREAN], [ENGLISH], [JAPANESE]]
    predicted = [[ENGLISH, UNSPACED], [KOREAN, PART], ["。" + JAPANESE]]
    matches = matched(actual, predicted, "coverage")
    assert found(matches) == [(0, 2, 1.0), (1, 2, 6 / 9), (2, 1, 1.0)]


def test_words_and_letters_are_each_querys_own_unit():
    """Token sums count the letters of the first query (25, spaces apart), the second's words."""
    matches = matched([[KOREAN], [ENGLISH]], [[KOREAN], [KOREAN, ENGLISH]], "coverage")
    assert matches.pieces is not None
    letters = len(KOREAN.replace(" ", ""))
    assert matches.pieces.alternative_tokens.tolist() == [letters, 9]
    # The Korean document of the English query is read by words: it has eight.
    assert matches.pieces.document_tokens.tolist() == [letters, len(KOREAN.split()), 9]


@pytest.mark.parametrize("matcher", ["coverage", "coverage(tokenizer=letters)"])
def test_all_ground_truth_of_a_query_decides_together(matcher):
    """Two English passages of the query outweigh the Korean one, which is then read by words."""
    english = [ENGLISH, "Books may be kept for four weeks and films for one week"]
    for actual in ([KOREAN, *english], [AnyOf([KOREAN, *english])]):
        matches = matched([list(actual)], [[UNSPACED]], matcher)
        assert len(matches) == (matcher != "coverage")


def test_english_is_read_as_by_words():
    """To the digit, whatever else is in the file."""
    actual: list[list[object]] = [[ENGLISH, "Closed on Mondays"], [KOREAN]]
    predicted = [[PART, "We are closed on Mondays.", ENGLISH], [UNSPACED]]
    auto, by_words = (matched(actual, predicted, CoverageMatcher(tokenizer=one))
                      for one in ("auto", "words"))  # fmt: skip
    assert found(auto)[:-1] == found(by_words)
    assert auto.pieces is not None
    assert by_words.pieces is not None
    assert auto.pieces.between(0, 2, slice(3)).added_tokens.tolist() == (
        by_words.pieces.between(0, 2, slice(3)).added_tokens.tolist()
    )


@pytest.mark.parametrize(
    ("truth", "document", "similarity"),
    [
        ("3억원", "예산은 3억원입니다", 1.0),
        ("3억원", "예산은 13억원입니다", 0.0),
        ("3억원", "예산은 3 억 원입니다", 1.0),
        ("제3", "제35조", 0.0),
        ("1,000원", "가격은 1000원", 1.0),
        ("1000원", "가격은 1,000원", 1.0),
        ("1000원", "가격은 11,000원", 0.0),
        ("교육ㆍ문화 행사", "교육·문화 행사", 1.0),
        ("ㅇ 신청 기간", "신청기간", 1.0),
    ],
)
def test_a_run_holds_a_number_whole_or_not(truth, document, similarity):
    assert CoverageMatcher().similarity(truth, document) == similarity


def test_another_number_costs_all_its_digits_and_two_letters():
    """Of 30 letters, a year of four digits after eleven: of fifteen behind it thirteen stay."""
    truth = "우리시의예산은모두합쳐2024년에는삼백이십억원으로정해졌다"
    before, after = 11, 15
    assert len(truth) == before + 4 + after
    document = truth.replace("2024", "2023")
    # The eleven letters before the year are one short of a run.
    assert CoverageMatcher().similarity(truth, document) == (after - 2) / len(truth)


BEFORE, BEHIND = "우리시는모두합쳐지난해에", "을청년에게나누어지원한다"  # a run of twelve each


@pytest.mark.parametrize(
    ("truth", "document", "similarity"),
    [
        # Of 27 letters the number and its unit are lost.
        (f"{BEFORE}3억원{BEHIND}", f"{BEFORE}4억원{BEHIND}", 24 / 27),
        (f"{BEFORE} 3억 원{BEHIND}.", f"{BEFORE} 4 억원 {BEHIND}.", 24 / 27),
        # Without them the letters behind are one short of a run, though 13 are alike.
        (f"{BEFORE}3억원{BEHIND[:-1]}", f"{BEFORE}4억원{BEHIND[:-1]}", 12 / 26),
        # A unit ends before the next number, which is the same: 25 of 27.
        (f"{BEFORE}3월7일{BEHIND[1:]}", f"{BEFORE}4월7일{BEHIND[1:]}", 25 / 27),
        # What a passage does not say of a number is no contradiction.
        (f"억원{BEHIND}", f"{BEFORE}4억원{BEHIND}", 1.0),
        (f"{BEFORE}3억원", f"{BEFORE}3억원{BEHIND}", 1.0),
        (f"{BEFORE}3억원", f"{BEFORE}3억", 14 / 15),
        # The text that has both says it.
        (f"{BEFORE}3억원{BEHIND}", f"{BEFORE}4억원{BEHIND} 3억원{BEHIND}", 1.0),
    ],
)
def test_a_number_and_its_unit_are_one_amount(truth, document, similarity):
    assert CoverageMatcher().similarity(truth, document) == similarity
    assert CoverageMatcher().similarity(truth, truth) == 1.0


def test_the_shorter_text_is_asked_for_amounts_of_the_ground_truth():
    """Of the document's 15 letters, 4억원 is not the ground truth's 3억원."""
    truth, document = f"{BEFORE}3억원{BEHIND}", f"4억원{BEHIND}"
    assert CoverageMatcher(direction="either").similarity(truth, document) == 12 / 15


def test_runs_found_anywhere_keep_amounts():
    """Of the 27 letters, 24; of texts taken out of others, too."""
    tokens = numbered(letter_tokens, [f"{BEFORE}3억원{BEHIND}", f"{BEFORE}4억원{BEHIND}"])
    wanted, others = tokens.take(np.array([0])), tokens.take(np.array([1]))
    assert wanted.counted(held_anywhere(wanted, [others], 12)).tolist() == [24]


def test_amounts_of_one_query_are_nothing_to_the_words_of_another():
    """Of eight words seven are held, though among letters 3 comes first, as Books does here."""
    truth = "Books may be kept for at most weeks"
    matches = matched(
        [[truth], [f"3억원{BEHIND}"]],
        [[truth.replace("Books", "Films")], [f"3억원{BEHIND}"]],
        "coverage",
    )
    assert found(matches) == [(0, 1, 7 / 8), (1, 1, 1.0)]


def test_among_words_there_are_no_amounts():
    """Six of seven words, whatever the lost one is."""
    truth = "we paid 30 million euros for it"
    document = truth.replace("30", "40")
    by_words = CoverageMatcher(min_run=1)
    assert by_words.similarity(truth, document) == 6 / 7
    # By letters 25, of which a number of two digits and the two behind it are lost.
    by_letters = CoverageMatcher(tokenizer="letters", min_run=6)
    assert by_letters.similarity(truth, document) == 21 / 25


@pytest.mark.parametrize("gap", [" ", "\n", "\r\n", "\u00a0"])
@pytest.mark.parametrize("matcher", ["coverage", "coverage(tokenizer=letters)"])
def test_a_gap_inside_a_number_is_closed(matcher, gap):
    assert resolve_matcher(matcher).similarity("2024년 예산", f"20{gap}24년 예산") == 1.0


@pytest.mark.parametrize(
    ("truth", "document", "similarity"),
    [
        ("1,234,567원", "가격은 1,2 34,567원", 1.0),
        ("2024년 예산", "20 23년 예산", 0.0),
        ("2024년 예산", "1 20 24년 예산", 0.0),  # three numbers, as in a table
        ("12024년 예산", "1 20 24년 예산", 0.0),
        ("2024년 예산", "20  24년 예산", 0.0),
        ("2024년 예산", "20, 24년 예산", 0.0),
        ("24년 예산", "20 24년 예산", 1.0),
        ("20 24년 예산", "2024년 예산", 0.0),
        ("2024년과 20 24년", "앞 2024년과 20 24년 뒤", 1.0),  # as in the ground truth
    ],
)
def test_which_gaps_are_inside_a_number(truth, document, similarity):
    assert CoverageMatcher().similarity(truth, document) == similarity


def test_gaps_are_closed_for_each_query_alone():
    """The first and third ask for 2024, with any of their texts; the second for 24."""
    document = "20 24년 예산"
    actual: list[list[object]] = [
        ["2024년 예산"], ["24년 예산"], ["다른 것", AnyOf(["없는 것", "2024년 예산"])],
    ]  # fmt: skip
    for settings in ("", "(numbers=yes)", "(union=yes)"):
        matches = matched(
            actual, [[document], [document], ["없음", document]], f"coverage{settings}"
        )
        assert found(matches) == [(0, 1, 1.0), (1, 1, 1.0), (3, 2, 1.0)]
        assert matches.pieces is not None
        assert matches.pieces.document_tokens.tolist() == [7, 7, 2, 7]


def test_digits_without_end_are_looked_through_once():
    """Looked for from each digit anew, gaps would take minutes here."""
    long = "1" * 100_000
    assert CoverageMatcher().similarity(f"가나다라 {long}", f"{long} 가나다라 {long}") == 1.0


def test_words_keep_their_gaps():
    by_words = CoverageMatcher(tokenizer="words")
    assert by_words.similarity("2024년 예산", "20 24년 예산") == 0.0


def test_a_run_of_letters_follows_that_of_words():
    """2.4 letters for a word: 12 for 5, 24 for 10, 2 for 1. Here 16 letters are shared."""
    truth, document = "가나다라마바사아자차카타파하거너더러머버", "가나다라마바사아자차카타파하거너"
    assert CoverageMatcher(min_run=5).similarity(truth, document) == 0.8
    assert CoverageMatcher(min_run=7).similarity(truth, document) == 0.0  # runs of 17
    assert CoverageMatcher(min_run=16, tokenizer="letters").similarity(truth, document) == 0.8
    assert CoverageMatcher(min_run=17, tokenizer="letters").similarity(truth, document) == 0.0
    assert CoverageMatcher(min_run=1).similarity("가나다", "가나") == 2 / 3


def test_the_signature_says_how_texts_are_read():
    """And is read back."""
    matcher = CoverageMatcher()
    assert matcher.signature == "coverage(min_run=5,tokenizer=auto(words,letters))"
    assert CoverageMatcher(tokenizer="auto").signature == matcher.signature
    assert resolve_matcher(matcher.signature).signature == matcher.signature
    letters = CoverageMatcher(tokenizer="letters").signature
    assert letters == "coverage(min_run=12,tokenizer=letters)"
    assert pickle.loads(pickle.dumps(matcher)).similarity(KOREAN, UNSPACED) == 1.0


def test_only_coverage_takes_auto():
    """ROUGE compares texts that are read alike, and has no ground truth of a query to ask."""
    with pytest.raises(Refusal) as refused:
        resolve_matcher("rougeL(tokenizer=auto)")
    assert refused.value.argument == "tokenizer"


@pytest.mark.parametrize(
    "settings", [{"numbers": True}, {"direction": "either"}, {"union": True}], ids=str
)
def test_every_way_of_coverage_follows(settings):
    matcher = CoverageMatcher(**settings)  # type: ignore[arg-type]
    assert matcher.similarity(KOREAN, UNSPACED) == 1.0
    assert matcher.similarity(ENGLISH, f"So: {ENGLISH}!") == 1.0


def test_the_shorter_text_has_at_least_a_run_of_its_own_unit():
    """Ten letters in five words are too short a chunk to be held; twelve are not."""
    either = CoverageMatcher(direction="either")
    assert either.similarity(KOREAN, "참가 신청은 5월 3일 오") == 0.0
    assert either.similarity(KOREAN, "참가 신청은 5월 3일 오전 9시") == 1.0


def test_combined_matchers_read_each_query_in_its_way():
    both = CoverageMatcher() & NumbersMatcher()
    either = CoverageMatcher() | NumbersMatcher()
    actual, predicted = [[KOREAN], [ENGLISH]], [[OTHER, UNSPACED], [PART, ENGLISH]]
    for matcher in (both, either):
        result = OfflineRetrievalEvaluator(actual, predicted, matcher=matcher).evaluate(2)
        assert result.per_query()["recall"].tolist() == [1.0, 1.0]


def test_pairs_to_calibrate_on_are_read_by_their_own_ground_truth():
    pairs = [(KOREAN, UNSPACED, True), (KOREAN, OTHER, False), (ENGLISH, PART, False),
             (ENGLISH, f"{ENGLISH}.", True)]  # fmt: skip
    assert calibrate("coverage", pairs).similarity.tolist() == [1.0, 0.0, 6 / 9, 1.0]


def test_processes_read_as_one_does():
    actual: list[list[object]] = [[KOREAN], [ENGLISH], [JAPANESE], [OTHER, ENGLISH]] * 5
    predicted = [[UNSPACED, ENGLISH], [PART, KOREAN], [JAPANESE], [OTHER.replace(" ", "")]] * 5
    alone = matched(actual, predicted, "coverage")
    with processes(2):
        shared = matched(actual, predicted, "coverage")
    assert found(shared) == found(alone)


CHUNKS = [UNSPACED, OTHER.replace(" ", ""), ENGLISH, "Books may be kept for four weeks"]


def evaluated():
    return OfflineRetrievalEvaluator(
        [[KOREAN], [ENGLISH, KOREAN], [OTHER], ["Books may be kept for four weeks"]],
        [[CHUNKS[3]]] * 4,
        matcher="coverage",
    ).evaluate(1)


def test_a_diagnosis_reads_the_index_as_each_query_does():
    """The second query is read by words (46 letters of English, 25 of Korean), the others not."""
    causes = [one.cause for one in evaluated().diagnose(CHUNKS).items]
    assert causes == ["not_in_top_k", "not_in_top_k", "not_in_index", "not_in_top_k", "found"]
    deeper = [[CHUNKS[3], UNSPACED]] * 4
    causes = [one.cause for one in evaluated().diagnose(CHUNKS, deeper=deeper).items]
    assert causes == [
        "ranked_too_low", "not_retrieved", "not_in_index", "not_retrieved", "found",
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
    result = OfflineRetrievalEvaluator(actual, [[KOREAN], [KOREAN]], matcher=matcher).evaluate(1)
    assert result.diagnose([KOREAN, *index]).items[0].cause == cause


def test_a_diagnosis_with_a_combined_matcher_reads_likewise():
    """What is still missing may be in another script than the rest of the ground truth."""
    result = OfflineRetrievalEvaluator(
        [[ENGLISH, KOREAN], [KOREAN]], [[ENGLISH], [OTHER]],
        matcher=CoverageMatcher() & NumbersMatcher(),
    ).evaluate(1)  # fmt: skip
    assert [one.cause for one in result.diagnose(CHUNKS).items] == [
        "found", "not_in_index", "not_in_top_k",
    ]  # fmt: skip


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
