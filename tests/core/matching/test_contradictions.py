"""Numbers in one spelling, and documents that say something else than a passage.

What is expected follows from reading the sentences.
"""

import random
import re
from dataclasses import fields, replace
from itertools import permutations

import numpy as np
import pytest
from matched import quiet
from rapidfuzz.distance import Indel, Levenshtein

from benchmarks import contradictions, spellings
from krag_eval import (
    AnyOf,
    CoverageMatcher,
    EvaluationResult,
    OfflineRetrievalEvaluator,
    compare,
)
from krag_eval.core import resolve_matcher
from krag_eval.core.matching.contradiction import Codes, Looks, Reading, laid_beside
from krag_eval.core.matching.joins import Pieces
from krag_eval.core.matching.names import matcher_of_signature, says_less
from krag_eval.core.matching.plaintext import plain
from krag_eval.core.matching.spelling import same_thing
from krag_eval.errors import InvalidInput

UNGUARDED = {"guard": "off"}
GUARDED = {"guard": "aligned"}


def in_sentences(language, pair):
    """Return a sentence with one of the pair, and a chunk with the other."""
    one, other = (spellings.AROUND[language].format(text) for text in pair)
    return one, spellings.CHUNK[language].format(other)


def assert_alike(language, spelled):
    """Assert that none of these in the place of another makes another text, either way round."""
    for pair in permutations(spelled, 2):
        assert CoverageMatcher().similarity(*in_sentences(language, pair)) >= 0.6, pair


@pytest.mark.parametrize(
    "spellings",
    [
        ("1,200,000", "1.2 million", "$1.2 Million", "1200000"),
        ("84,000", "84 thousand"),
        ("3.25 billion", "3,250,000,000"),
        ("5%", "5 percent", "5 per cent", "5 pct"),
        (
            "March 3, 2024",
            "3 March 2024",
            "2024-03-03",
            "2024.3.3",
            "Mar. 3rd, 2024",
        ),
        ("twelve members", "12 members"),
        ("the third time", "the 3rd time"),
        ("07", "7", "seven"),
        ("1.05 million", "1,050,000"),
        ("03/05/2024", "3/5/2024"),
        ("in 2024 12 rooms", "in ٢٠٢٤ ١٢ rooms", "in २०२४ १२ rooms", "in ２０２４ １２ rooms"),
    ],
)
def test_words_of_one_number_are_the_same(spellings):
    assert_alike("en", spellings)


@pytest.mark.parametrize(
    "spellings",
    [
        ("7천만 원", "7천만원", "7,000만 원", "70,000,000원", "７,０００만원"),
        ("3억 5천만 원", "3억5000만 원", "350,000,000원"),
        ("120만 명", "1,200,000명"),
        ("5천 원", "5,000원"),
        ("2024. 3. 1.", "2024.3.1", "2024-03-01", "2024년 3월 1일", "2024/03/01"),
        ("5퍼센트 인상", "5% 인상", "5 프로 인상"),
        ("2024년 03월 05일", "2024년 3월 5일", "2024-03-05"),
        ("오전 09:30", "오전 9:30"),
    ],
)
def test_letters_of_one_number_are_the_same(spellings):
    assert_alike("ko", spellings)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Chapter 12 of May 2023", "Chapter 2023 of May 12"),
        ("1.05", "1.5"),
        ("2.05", "25"),
        ("2024. 13. 1.", "2024년 13월 1일"),
        ("6억", "6"),
        ("0415502217번", "415502217번"),
        ("no 2", "not 2"),
    ],
)
def test_two_things_are_not_the_same(one, other):
    assert not same_thing(one, other)


@pytest.mark.parametrize("digits", ["7" * 5_000, "7" * 4_997 + "000"])
def test_a_number_may_have_any_length(digits):
    assert same_thing(f"in 2024 {digits} 3", f"in 2024 {digits} 3")
    assert not same_thing(f"{digits}원", f"{digits}1원")
    assert not same_thing(f"{digits} million", f"{digits}1 million")


def test_the_end_of_an_amount_is_another_one():
    """Where that is all there is of the passage; a sentence may have been cut inside an amount."""
    short, long = "5천만 원", "5천만 원을 내고 올해 말까지 신청한 청년에게 월세를 지원한다"
    assert not accepts(short, "예산은 3억 5천만 원이다")
    assert not accepts(short, "3억 5천만 원, 4억 5천만 원")
    assert accepts(short, "예산은 3억 5천만 원, 그중 5천만 원은 올해 쓴다")
    assert accepts(long, f"3억 {long}")


def test_what_is_cut_off_an_amount_leaves_its_beginning():
    passage = "위원회는 이번 태풍으로 농가가 입은 피해액을 6억"
    assert accepts(f"{passage} 2천만 원으로 보았다", passage, threshold=0.5)
    assert accepts(passage, f"{passage} 2천만 원으로 보았다")


PASSAGE = {
    "en": "In 2024 the fee rose to 1,200 euros a month and members may not resign before 31 May",
    "ko": "2024년부터 월 이용료는 30만 원이며 회원은 3개월 이내에 탈퇴할 수 없고 환불은 없습니다",
}


def accepts(passage, chunk, **options):
    matcher = CoverageMatcher(**{**GUARDED, **options})
    return matcher.similarity(passage, chunk) >= matcher.threshold


@pytest.mark.parametrize("language", PASSAGE)
def test_the_passage_itself_is_no_contradiction(language):
    passage = PASSAGE[language]
    assert accepts(passage, f"Before. {passage}. After 2023, 17 others did not.")


@pytest.mark.parametrize(
    ("language", "said", "other"),
    [
        ("en", "2024", "2023"),
        ("en", "1,200 euros", "1,300 euros"),
        ("en", "euros", "dollars"),
        ("en", "may not", "may"),
        ("en", "before", "after"),
        ("ko", "30만 원", "40만 원"),
        ("ko", "30만", "30억"),
        ("ko", "3개월", "3년"),
        ("ko", "이내", "이후"),
        ("ko", "수 없고", "수 있고"),
    ],
)
def test_what_another_thing_replaces_contradicts(language, said, other):
    passage = PASSAGE[language]
    chunk = f"So it is: {passage.replace(said, other)}. That is all there is to it."
    assert CoverageMatcher(0.7, **UNGUARDED).similarity(passage, chunk) >= 0.7
    assert CoverageMatcher(0.7, **GUARDED).similarity(passage, chunk) == 0.0


@pytest.mark.parametrize(
    ("language", "chunk"),
    [
        # Cut off within the passage, at its end and at its beginning.
        ("en", "In 2024 the fee rose to 1,200 euros a month and members may not resign before"),
        ("en", "the fee rose to 1,200 euros a month and members may not resign before 31 May"),
        ("ko", "2024년부터 월 이용료는 30만 원이며 회원은 3개월 이내에 탈퇴할 수 없고"),
        # Misread, and with numbers in another spelling.
        ("ko", PASSAGE["ko"].replace("30만 원", "300,000원").replace("환불", "환붕")),
        ("en", PASSAGE["en"].replace("1,200", "1200").lower()),
    ],
)  # fmt: skip
def test_what_was_cut_off_or_misread_does_not(language, chunk):
    assert accepts(PASSAGE[language], chunk, threshold=0.7)


# Sentences that end, or begin, in what may be negated; where both go on, the text goes on alike.
AT_AN_END = {
    "ko": "그는 산속에 머물며 십 년 동안 무예를 익혀 세상을 바꾸겠다는 {}. 그리하여 길을 떠났다.",
    "en": "The church stood apart. {} concerned that the children might lose the language of home.",
}


def at_an_end(language, said):
    """Return the one sentence that says it, and the text around it."""
    text = AT_AN_END[language].format(said)
    return text.split(". ")[language == "en"].strip("."), text


@pytest.mark.parametrize(
    ("language", "said", "other"),
    [
        ("ko", "뜻을 품게 된다", "뜻을 품게 되지 않는다"),
        ("ko", "뜻을 품게 됩니다", "뜻을 품게 되지 않습니다"),
        ("ko", "일이 무관하다", "일이 무관하지 않다"),
        ("ko", "뜻을 밝힌 것이다", "뜻을 밝힌 것이 아니다"),
        ("ko", "뜻을 품을 수 있다", "뜻을 품을 수 없다"),
        ("ko", "뜻을 품을 수 있었다", "뜻을 품을 수 없었다"),
        ("ko", "뜻을 품어야 한다", "뜻을 품어서는 안 된다"),
        ("ko", "뜻을 이루었다", "뜻을 이루지 못하였다"),
        ("ko", "값을 20만 원 이상 낸다", "값을 20만 원 이하 낸다"),
        ("en", "They were also", "They were not also"),
        ("en", "They did seem", "They didn't seem"),
        ("en", "They have been", "They have never been"),
        ("en", "Those above are", "Those below are"),
    ],
)
def test_a_negation_in_the_last_or_first_words_contradicts(language, said, other):
    """Where the document goes on, and where it ends with the sentence; also turned round."""
    for ours, theirs in ((said, other), (other, said)):
        passage, _ = at_an_end(language, ours)
        sentence, text = at_an_end(language, theirs)
        for chunk in (text, sentence, text.replace(" ", "") if language == "ko" else text):
            assert not accepts(passage, chunk, threshold=0.5)
            assert CoverageMatcher(0.5, **UNGUARDED).similarity(passage, chunk) >= 0.5


@pytest.mark.parametrize(
    ("language", "said", "other"),
    [
        # Other endings, a letter that was misread, what follows or precedes, and what was cut off.
        ("ko", "뜻을 품게 된다", "뜻을 품게 됩니다"),
        ("ko", "뜻을 품게 된다", "뜻을 품게 된다. 없는"),
        ("ko", "뜻을 품을 수 있다", "뜻을 품을 수 있으나 없는 일로 한다"),
        ("ko", "뜻을 품을 수 있으며", "뜻을 품을 수 있고, 없으면"),
        ("ko", "뜻을 품을 수 없다", "뜻을 품을 수 업다"),
        ("ko", "뜻을 품게 되지 않는다", "뜻을 품게 되지 아니한다"),
        ("ko", "뜻을 품을 수 없다", "뜻을 품을"),
        ("ko", "뜻이 꺼지지는", "뜻이 꺼지지가 않는다"),
        ("en", "They were also", "So not a few. They were also"),
        ("en", "They were also", "t hey were also"),
        ("en", "They did not", "did not"),
        ("en", "They were", "We do not say so: thy were"),
    ],
)
def test_what_stands_beside_the_last_or_first_words_does_not(language, said, other):
    passage, _ = at_an_end(language, said)
    _, text = at_an_end(language, other)
    assert accepts(passage, text, threshold=0.5)


def test_the_best_end_of_several_counts():
    passage, text = at_an_end("ko", "뜻을 품게 된다")
    _, other = at_an_end("ko", "뜻을 품게 되지 않는다")
    assert not accepts(passage, f"{other} {other}")
    assert accepts(passage, f"{other} {'그때는 그랬다. ' * 20} {text}")
    assert accepts(passage, f"{text} {'그때는 그랬다. ' * 20} {other}")


def test_a_negation_at_the_end_of_the_shorter_text_contradicts():
    chunk, _ = at_an_end("ko", "뜻을 품게 된다")
    truth = "앞에 다른 말이 있었다. {} " + "뒤에도 다른 말이 이어졌다. " * 3
    matcher = CoverageMatcher(direction="either")
    assert matcher.similarity(truth.format(at_an_end("ko", "뜻을 품게 된다")[1]), chunk) == 1.0
    assert matcher.similarity(truth.format(at_an_end("ko", "뜻을 품게 되지 않는다")[1]), chunk) == 0


APART = [
    "The first bridge over the river was built by the town of Arden in 1963.",
    "A second one for carts and walkers was not opened to the public before 1981.",
]
BETWEEN = "No. 16 of the old ferries went on for 10 years, and in 1975 it was never full. " * 3


def test_sentences_that_others_stand_between_are_no_contradiction():
    """Both are there word for word; what is between them replaces neither."""
    assert accepts(" ".join(APART), BETWEEN.join(["", *APART, ""]))


@pytest.mark.parametrize(
    ("said", "other"),
    [("1963", "1964"), ("1981", "1982"), ("was not", "was"), ("before", "after"),
     ("was built", "was not built")],
)  # fmt: skip
def test_each_sentence_of_those_may_contradict(said, other):
    chunk = BETWEEN.join(["", *APART, ""]).replace(said, other)
    assert not accepts(" ".join(APART), chunk, threshold=0.5)
    assert CoverageMatcher(0.5, **UNGUARDED).similarity(" ".join(APART), chunk) >= 0.5


MARKED = {
    "en": "The fee is waived for all members{} when a card is returned to the desk in good time",
    "ko": "위원회는 모든 회원의 연회비를 면제하기로 결정하였다{} 카드를 제때 반납한 경우에 그렇다",
}


@pytest.mark.parametrize("language", MARKED)
@pytest.mark.parametrize("mark", [" [12]", "\n- 3 -\n", " (see Table 3)", ", from 2019,"])
def test_what_only_one_of_them_has_is_no_other_number(language, mark):
    """Marks of notes, numbers of pages and what else was left out; another one contradicts."""
    plain, marked = (MARKED[language].format(one) for one in ("", mark))
    assert accepts(plain, f"Before. {marked} After.", threshold=1.0)
    assert accepts(marked, f"Before. {plain} After.", threshold=0.6)
    other = marked.translate(str.maketrans("1239", "4568"))
    assert not accepts(marked, f"Before. {other} After.", threshold=0.6)


@pytest.mark.parametrize("spellings", [("20", "twenty"), ("1,000", "a thousand"), ("9:00", "9")])
def test_what_is_spelled_otherwise_is_no_other_number(spellings):
    text = "all members of the house may take {} of the books that stand on the left"
    for one, other in (spellings, spellings[::-1]):
        assert accepts(text.format(one), text.format(other), threshold=0.6)


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("the bank lent its members {} million euros in the whole of the year", ("1", "1.2")),
        ("the bank lent its members {} percent of the sum in the whole of the year",
         ("2.05", "2.5")),
        ("보수 총액 상한을 {}원으로 정하고 매년 이사회가 검토한다", ("7000만", "7000만 1")),
        ("보수 총액 상한을 {}원으로 정하고 매년 이사회가 검토한다", ("3억", "3억 5천만")),
        ("대출 금리는 매년 {}퍼센트로 정하고 이를 이사회가 검토하도록 한다", ("1.05", "1.5")),
    ],
)  # fmt: skip
def test_a_part_of_an_amount_makes_another_amount(text, amounts):
    for one, other in (amounts, amounts[::-1]):
        assert not accepts(text.format(one), text.format(other), threshold=0.5)
        matcher = CoverageMatcher(threshold=0.5, **UNGUARDED)
        assert matcher.similarity(text.format(one), text.format(other)) >= 0.5


@pytest.mark.parametrize(
    ("shared", "cut_off", "left"),
    [
        ("예약", "예약은 평일 오전 9시부터 오후 5시까지 받습니다. ",
         "예약한 시각보다 늦으면 당일 접수한 환자와 같은 차례로 봅니다."),
        ("The fee", "The fee rose to 30 euros in March. ",
         "The fee for members is waived where a card is returned to the desk in time"),
    ],
)  # fmt: skip
def test_what_was_cut_off_may_begin_or_end_like_what_is_left(shared, cut_off, left):
    """The chunk begins, or ends, with a word that stands at the end of the other part, too."""
    assert accepts(cut_off + left, left, threshold=0.5)
    assert accepts(f"{left} {cut_off}{shared}", f"{left} {shared}", threshold=0.5)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("the road is 5 {} long and ends in the new town behind the hill", ("km", "kilometers")),
        ("members take a 5 {} break before they walk to the new town", ("minute", "minutes")),
        ("the train leaves at 5 {} from the old town and ends in the new one", ("pm", "p.m.")),
        ("행사에는 회원 50{}이 참석하여 새로운 규칙을 만들기로 하였다고 전해진다", ("명", "인")),
    ],
)
def test_a_unit_may_have_several_names(text, units):
    for one, other in (units, units[::-1]):
        assert accepts(text.format(one), text.format(other), threshold=0.5)


UNITS = {
    "en": ("million", "billion", "percent", "days", "hours", "km", "mg"),
    "ko": ("만", "억", "%", "명", "가구", "개월", "시간", " percentage points"),
}
BEHIND = {"en": " in 2022 and 6 {} in 2021", "ko": " 안에 모두 마치고 회원에게 알렸다"}


@pytest.mark.parametrize("language", UNITS)
@pytest.mark.parametrize("ends", ["the passage", "neither"])
def test_a_number_that_both_share_may_have_another_unit(language, ends):
    """However long it is, and though the chunk says the passage's own one later on."""
    text = spellings.AROUND[language].split("{}")[0]
    for one, other in permutations(UNITS[language], 2):
        space = " " * (language == "en")
        here, there = (f"{text}7{space}{unit}" for unit in (one, other))
        behind = BEHIND[language].format(one)
        passage = here if ends == "the passage" else here + behind
        other_one, same = (f"Before. {said}{behind} And more." for said in (there, here))
        assert not accepts(passage, other_one, threshold=0.5), (one, other)
        assert accepts(passage, same, threshold=0.5), one


@pytest.mark.parametrize(
    ("passage", "chunk"),
    [
        ("선정된 사람에게는 빠짐없이 매월 20만", "선정된 사람에게는 빠짐없이 매월 20맠 웦씩"),
        ("선정된 사람에게는 빠짐없이 매월 20만", "선정된 사람에게는 빠짐없이 매월 20 - 7 -만 원"),
        ("the fund of the company stood at 12 million", "the fund of the company stood at 12 mil "
         "lion on the last day"),
        ("the road to the old town is altogether 5 km", "the road to the old town is altogether "
         "5 kilometers long"),
        ("회사는 늦어진 날마다 체납액의 0.05%에 해당하는 연체료를 청구한다", "회사는 늦어진날마다 "
         "체납액의0\n.05%에 해당하는 연체료를 청구한다. 그 뒤에는"),
    ],
)  # fmt: skip
def test_what_was_misread_or_broken_is_no_other_unit(passage, chunk):
    assert accepts(passage, chunk, threshold=0.5)


@pytest.mark.parametrize("language", spellings.AROUND)
def test_one_thing_in_two_spellings_is_the_same(language):
    """In both directions; none is another text."""
    pairs = [way for pair in spellings.SAME[language] for way in (pair, pair[::-1])]
    matcher = CoverageMatcher()
    shares = [matcher.similarity(*in_sentences(language, pair)) for pair in pairs]
    assert [pair for pair, share in zip(pairs, shares, strict=True) if share == 0.0] == []
    assert sum(share >= 0.8 for share in shares) >= 0.95 * len(pairs)


@pytest.mark.parametrize("language", spellings.AROUND)
def test_two_numbers_that_are_no_spellings_of_one_differ(language):
    """In both directions, but for 2.10 and 2.1, which are equal as decimals."""
    pairs = [way for pair in spellings.OTHER[language] for way in (pair, pair[::-1])]
    matcher = CoverageMatcher()
    accepted = [pair for pair in pairs if matcher.similarity(*in_sentences(language, pair)) > 0]
    assert {*map(frozenset, accepted)} <= {frozenset(("version 2.10", "version 2.1"))}


@pytest.mark.parametrize(("ours", "theirs"), spellings.OPERATORS)
@pytest.mark.parametrize("line", spellings.CODE)
def test_an_operator_of_code_is_another_one(line, ours, theirs):
    matcher, around = CoverageMatcher(), "x = 1\n{}\nreturn x"
    passage = line.format(ours)
    assert matcher.similarity(passage, around.format(passage)) == 1.0
    assert matcher.similarity(passage, around.format(line.format(theirs))) == 0.0


# Lines of lists, each too short for a run that does not reach into the next one.
LISTED = {
    "ko": ["신청 대상 청년", "신청 기간 삼월", "제출할 서류 없음"],
    "en": ["for young people", "apply in March", "no papers needed"],
}


@pytest.mark.parametrize("language", LISTED)
@pytest.mark.parametrize(
    "marks", ["1) 2) 3)", "(1) (2) (3)", "a) b) c)", "(a) (b) (c)", "가. 나. 다.", "가) 나) 다)",
              "① ② ③", "- - -", "ㅇ ㅇ ㅇ", "• • •"])  # fmt: skip
def test_marks_of_lists_separate(language, marks):
    """They are no words, at the beginning of a line, on whichever side they stand."""
    lines = LISTED[language]
    marked = "\n".join(map(" ".join, zip(marks.split(), lines, strict=True)))
    for passage, listed in (("\n".join(lines), marked), (marked, "\n".join(lines))):
        assert CoverageMatcher().similarity(passage, f"안내 notice\n{listed}\n끝 end") == 1.0


@pytest.mark.parametrize("text", ["see 3) or a) below", "f(a) is 1", "3월 1) 가. 나"])
def test_elsewhere_they_are_words(text):
    assert CoverageMatcher().similarity(text, "".join(filter(str.isspace, text)) + "x") == 0.0
    assert plain(text) == text


GLOSSED = "계약{}을 해지{}하면 보증금{}을 반환{}하고 이자{}는 없다"
HANJA = ["(契約)", "(解止)", "(保證金)", "（返還）", "(利子)"]


def test_hanja_in_brackets_separate_nothing():
    """Five of them in 19 letters, on either side; other letters in brackets are letters."""
    bare, glossed = GLOSSED.format(*[""] * 5), GLOSSED.format(*HANJA)
    for one, other in ((bare, glossed), (glossed, bare)):
        assert CoverageMatcher().similarity(one, f"제 삼 조. {other}. 그렇다") == 1.0
    kana = "東京(とうきょう)の大学(だいがく)で日本語(にほんご)を学(まな)ぶ"
    assert CoverageMatcher().similarity("東京の大学で日本語を学ぶ", f"彼は{kana}。") == 1.0
    assert plain("서울(부산) 東京(大阪) Tokyo(東京)") == "서울(부산) 東京(大阪) Tokyo(東京)"


@pytest.mark.parametrize("language", MARKED)
@pytest.mark.parametrize(
    "aside", ["[3]", " [12]", "(homepage)", "(누리집)", " (the house)", "\n2) "]
)
def test_an_aside_costs_nothing(language, aside):
    """Marks of notes and glosses between two stretches that are held, on either side."""
    bare, marked = (MARKED[language].format(one) for one in ("", aside))
    for one, other in ((bare, marked), (marked, bare)):
        assert CoverageMatcher().similarity(one, f"Before. {other} After.") == 1.0


@pytest.mark.parametrize("aside", ["(not)", "(except Seoul)"])
def test_an_aside_that_negates_is_another_text(aside):
    bare, marked = (MARKED["en"].format(one) for one in ("", f" {aside}"))
    assert not accepts(bare, f"Before. {marked} After.", threshold=0.5)


COMPOUND = {
    "decimals": [f"{whole}.{part}" for whole in (1, 2, 5, 8) for part in (0, 1, 2, 5, 8)],
    "dates": [f"2024-{month:02}-{day:02}" for month in (1, 3, 10, 12) for day in (1, 3, 10, 21)],
    "times": ["10:10", "11:10", "10:11", "12:21", "21:12", "9:30", "9:03", "13:30", "3:30"],
    "months": [f"{day} {month}" for day in (3, 5)
               for month in ("March", "April", "May", "June", "July", "Jan")],
}  # fmt: skip


@pytest.mark.parametrize("values", COMPOUND.values(), ids=COMPOUND)
@pytest.mark.parametrize("behind", ["", " and that all members of the club went home"])
def test_numbers_of_several_parts_are_one_number(values, behind):
    """No value stands for another one, whether the chunk goes on or ends there."""
    text = "The committee of the club noted that the value of the year in question was {}"
    found = [[text.format(value) + behind] for value in values]
    actual = [[text.format(value)] for value in values]
    result = OfflineRetrievalEvaluator(
        actual, [[text for (text,) in found]] * len(values), CoverageMatcher()
    ).evaluate(len(values))
    assert result[f"micro_precision@{len(values)}"] == pytest.approx(1 / len(values))


@pytest.mark.parametrize("tokenizer", ["unicode", "whitespace", "character", "kiwi"])
@pytest.mark.parametrize(
    ("passage", "said", "other"),
    [
        ("현금 영수증이 없으면 위원회가 비용을 인정합니다", "인정합니다", "인정하지 않습니다"),
        ("이 약관은 서울에 사는 모든 회원에게 똑같이 적용되는 것으로 한다", "서울", "부산"),
        (PASSAGE["en"], "euros a month", "euros a visit"),
    ],
)  # fmt: skip
def test_no_tokenizer_disarms_it(tokenizer, passage, said, other):
    """Kiwi drops endings and particles, and all of them marks: the guard reads the texts."""
    if tokenizer == "kiwi":
        pytest.importorskip("kiwipiepy")
    matcher = CoverageMatcher(0.5, tokenizer=tokenizer, min_run=3)
    assert matcher.similarity(passage, f"{passage} 그리고") == 1.0
    assert matcher.similarity(passage, f"{passage.replace(said, other)}. 그리고") == 0.0


@pytest.mark.parametrize("unit", ["일이삼 ", "not word "])
def test_long_texts_take_little_memory(unit, monkeypatch):
    """Alignments take a bit for each pair of tokens: of no more than 64 MB at once."""
    long = unit * 14_000
    texts = f"처음은 {long} 끝은 여기", f"시작은 {long} 마지막은 저기"
    codes = Codes()
    readings = [Reading(text, "일" in unit, codes) for text in texts]
    tables = []
    for kind in (Indel, Levenshtein):

        def recorded(one, other, opcodes=kind.opcodes):
            tables.append(len(one) * len(other) / 8)
            return opcodes(one, other)

        monkeypatch.setattr(kind, "opcodes", recorded)
    found = laid_beside(*readings, Looks(True, True, True)).difference
    assert found is not None
    assert len(tables) > 1
    assert max(tables) < 32e6
    assert len(readings[0].tokens) * len(readings[1].tokens) / 8 > 90e6


def test_the_best_of_several_places_counts():
    passage = PASSAGE["en"]
    other = passage.replace("2024", "2022")
    assert accepts(passage, f"{other}. And now: {passage}.")
    near = passage.replace("euros a month", "euros for each a month")
    assert accepts(passage, f"{other}. {'So it was then. ' * 20} {near}.")


def test_each_part_may_be_left_out():
    passage = PASSAGE["en"]
    year, negated = passage.replace("2024", "2023"), passage.replace("may not", "may")
    assert not accepts(passage, year, polarity=False)
    assert accepts(passage, negated, polarity=False, threshold=0.7)
    assert accepts(passage, year, numbers="ignore")
    assert not accepts(passage, negated, numbers="ignore", threshold=0.7)


@pytest.mark.parametrize("tokenizer", ["words", "letters", "character", "unicode", str.split])
def test_any_tokenizer_will_do(tokenizer):
    options = {"tokenizer": tokenizer, "threshold": 0.6}
    for passage, said, other in (
        (PASSAGE["en"], "2024", "2023"),
        (PASSAGE["en"], "may not", "may"),
        (PASSAGE["ko"], "30만", "40만"),
        (PASSAGE["ko"], "수 없고", "수 있고"),
    ):
        assert accepts(passage, f"Before {passage} after", **options)
        assert not accepts(passage, f"Before {passage.replace(said, other)} after", **options)


def test_the_shorter_text_is_looked_at():
    chunk = PASSAGE["en"]
    truth = f"{'Some words that stand before it. ' * 3} {chunk}. {'And many after it. ' * 4}"
    matcher = CoverageMatcher(direction="either", **GUARDED)
    assert matcher.similarity(truth, chunk) == 1.0
    assert matcher.similarity(truth.replace("2024", "2023"), chunk) == 0.0


def test_processes_and_combinations_decide_alike():
    truths = [[PASSAGE["en"]], [PASSAGE["ko"]], [PASSAGE["en"]]]
    found = [
        [PASSAGE["en"].replace("2024", "2023"), PASSAGE["en"]],
        [PASSAGE["ko"].replace("30만", "40만")],
        ["nothing of it"],
    ]
    matchers = (CoverageMatcher(**GUARDED), 1), (CoverageMatcher(**GUARDED), 2), (
        CoverageMatcher(**GUARDED) & CoverageMatcher(), 1)  # fmt: skip
    for matcher, n_jobs in matchers:
        result = OfflineRetrievalEvaluator(truths, found, matcher=matcher, n_jobs=n_jobs).evaluate(
            [1, 2]
        )
        assert result["macro_recall@1"] == 0.0
        assert result["macro_recall@2"] == pytest.approx(1 / 3)


# A passage of 9, 9 and 10 words, and its thirds, in each of which a year may be another one.
THIRDS = [
    "in 2024 the fee was raised by two euros",
    "while from 2023 on every member has lent books",
    "and since 2022 the hall on the left is closed",
]


def draws(seed):
    """Draw documents, and which of them another year makes contradict the passage."""
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 6)):
        first = draw.randrange(4)
        chosen = THIRDS[first : draw.randint(first, 3)]  # what is left out inside contradicts
        changed = draw.random() < 0.4 and bool(chosen)
        if changed:
            at = draw.randrange(len(chosen))
            chosen[at] = re.sub(r"20\d\d", str(draw.randint(1990, 2010)), chosen[at])
        yield " ".join(["see", *chosen, "there"]), changed


@quiet
@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_what_contradicts_is_there_for_nothing_but_tokens(seed, union):
    """Together with others, too, it counts as if it were blank; words are words wherever."""
    passage, drawn = " ".join(THIRDS), [*draws(seed)]
    found = [text for text, _ in drawn]
    agreeing = ["nothing" if changed else text for text, changed in drawn]
    settings, options = {"union": union}, {"metrics": ["recall", "mrr", "token_recall"]}
    guarded, without, agreed = (
        OfflineRetrievalEvaluator(
            [[passage]], [texts], CoverageMatcher(0.6, **guard, **settings)
        ).evaluate([1, 3, None], **options)
        for guard, texts in ((GUARDED, found), (UNGUARDED, found), (UNGUARDED, agreeing))
    )
    for k in (1, 3, "all"):
        for average in (f"macro_recall@{k}", f"mrr@{k}"):
            assert guarded[average] == agreed[average]
        token_recall = f"macro_token_recall@{k}"
        assert guarded[token_recall] == without[token_recall]


def test_pieces_that_contradict_are_kept_in_files(tmp_path):
    passage = " ".join(THIRDS)
    result = OfflineRetrievalEvaluator(
        [[passage]], [[passage.replace("2023", "2020"), THIRDS[0], " ".join(THIRDS[1:])]],
        CoverageMatcher(union=True),
    ).evaluate([2, 3])  # fmt: skip
    assert (result["macro_recall@2"], result["macro_recall@3"]) == (0.0, 1.0)
    result.to_json(tmp_path / "result.json")
    pieces, read = (
        one.evidence.relevance.pieces
        for one in (result, EvaluationResult.from_json(tmp_path / "result.json"))
    )
    for one in fields(Pieces):
        assert getattr(read, one.name).tolist() == getattr(pieces, one.name).tolist()
    # Of 28 words one is not in a run that both have: the year.
    assert pieces.contradicted_rank.tolist() == [1]
    assert pieces.contradicted_share.tolist() == [27 / 28]


def test_where_it_contradicts_is_told():
    passage, document = (
        "the fee of 2024 rose a lot",
        "In March, the fee of 2023 rose a lot. See there",
    )
    codes = Codes()
    readings = (Reading(text, False, codes) for text in (passage, document))
    found = laid_beside(*readings, Looks(True, True, True)).difference
    assert found == ("number", (3, 4), (5, 6))


@pytest.mark.parametrize(
    "spelling",
    [
        "coverage(min_run=5,tokenizer=words,guard=aligned)",
        "coverage(min_run=5,tokenizer=words,guard=numbers)",
        "coverage(min_run=5,tokenizer=words,guard=off)",
        "coverage(min_run=5,tokenizer=words,guard=numbers,polarity=no)",
        "coverage(min_run=5,tokenizer=words,guard=numbers,numbers=ignore)",
        "coverage(min_run=5,tokenizer=words,guard=numbers,numbers=anywhere)",
        "coverage(min_run=5,tokenizer=words,guard=off,numbers=anywhere)",
        "coverage(min_run=5,tokenizer=words,guard=aligned,numbers=anywhere)",
    ],
)
def test_signatures_make_the_same_matcher(spelling):
    assert resolve_matcher(spelling).signature == spelling


@pytest.mark.parametrize(
    ("signature", "now"),
    [
        # What is not said was not done.
        ("coverage(min_run=5,tokenizer=words)",
         "coverage(min_run=5,tokenizer=words,guard=off)"),
        ("coverage(min_run=5,tokenizer=words,numbers=yes)",
         "coverage(min_run=5,tokenizer=words,guard=off,numbers=anywhere)"),
        ("coverage(min_run=5,tokenizer=words,numbers=aligned,polarity=en+ko)",
         "coverage(min_run=5,tokenizer=words,guard=numbers)"),
        ("coverage(min_run=5,tokenizer=words,numbers=ignore,polarity=en+ko)",
         "coverage(min_run=5,tokenizer=words,guard=numbers,numbers=ignore)"),
        ("contains", "contains(fold_whitespace=no)"),
        ("contains(fold_whitespace=yes)", "contains(fold_whitespace=yes)"),
        ("text", "text"),
    ],
)  # fmt: skip
def test_a_result_of_before_names_what_its_matcher_did(signature, now):
    assert matcher_of_signature(signature).signature == now
    assert says_less(signature) == (signature != now)


@pytest.mark.parametrize("guard", ["", ",numbers=aligned,polarity=en+ko"])
@pytest.mark.parametrize("check", ["compare", "gate"])
def test_results_of_before_are_other_numbers(check, guard):
    new = OfflineRetrievalEvaluator([["a b"]], [["a b"]], "coverage").evaluate(1)
    before = new.settings["matcher"].replace(",guard=aligned", guard)
    old = replace(new, settings={**new.settings, "matcher": before})
    with pytest.raises(InvalidInput) as caught:
        compare(old, new) if check == "compare" else new.check(baseline=old, metric="recall@1")
    assert "matcher" in caught.value.problem
    assert "before the matcher decided as it does now" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("old", "guard"),
    [
        ({"numbers": "aligned", "polarity": True}, "numbers"),
        ({"numbers": "aligned"}, "numbers"),
        ({"polarity": True}, "numbers"),
        ({"numbers": False, "polarity": False}, "off"),
        ({}, "aligned"),
    ],
)
def test_the_old_names_of_the_guard_mean_what_they_meant(old, guard):
    """Numbers, negations and bounds; no other words."""
    matcher, passage = CoverageMatcher(**old), PASSAGE["en"]
    assert matcher.signature == CoverageMatcher(guard=guard).signature
    chunks = [passage.replace(*pair) for pair in (("2024", "2023"), ("month", "visit"))]
    assert [matcher.similarity(passage, chunk) > 0 for chunk in chunks] == [
        guard == "off", guard != "aligned"]  # fmt: skip


def test_numbers_have_old_names():
    for old, new in ((True, "anywhere"), (False, "ignore")):
        assert CoverageMatcher(numbers=old).numbers == new
        assert CoverageMatcher(numbers=old).signature == CoverageMatcher(numbers=new).signature


def test_the_texts_that_were_kept_aside():
    """Held to what the guide promises, on a part of the texts that no rule was set on."""
    guarded = CoverageMatcher(**GUARDED)
    for language in contradictions.LANGUAGES:
        draw = random.Random(language)
        for kind, most in (("one digit", 0.1), ("a year", 0.08), ("a unit", 0.4)):
            pairs = contradictions.contradicted("held", language, kind)
            some = draw.sample(pairs, min(60, len(pairs)))
            accepted = sum(guarded.similarity(*pair) >= 0.8 for pair in some)
            assert accepted <= most * len(some) + 3, (language, kind)


def test_an_earlier_version_says_other_numbers_and_nothing_else():
    """No word of these can be negated, and the year moves whatever is drawn."""
    text = "Since 2024 the fee of 1,200 euros covers 3 visits to rooms 11, 12 and 27"
    numbers = {1, 5, 8, 12, 13, 15}  # by place: 2024, 1,200, 3, 11, 12 and 27
    for seed in range(20):
        now, *before = contradictions.versions(random.Random(seed), text, "en")
        assert list(now) == text.split()
        assert [version[1] for version in before] == ["2023", "2022"]
        for version in before:
            changed = {at for at, word in enumerate(version) if word != now[at]}
            assert {1} <= changed <= numbers
            assert len(version) == len(now)
            assert [len(word) for word in version] == [len(word) for word in now]


def test_here_and_there_an_earlier_version_negates():
    """One in ten of the words that can be negated is: 100 of 1,000, give or take 10."""
    now, *before = contradictions.versions(random.Random(1), "is " * 1000, "en")
    for version in before:
        assert len(version) == len(now) == 1000
        assert set(version) == {"is", "is not"}
        assert 60 <= version.count("is not") <= 140


@pytest.mark.parametrize(
    ("version", "start", "stop", "holds"),
    [
        ("abcdefghijkl", 0, 12, True),
        ("abcdefghijkl", 2, 12, True),  # c to j, 8 of 10 letters
        ("abcdefghijkl", 3, 12, False),  # 7 of 10
        ("abcdefghiXkl", 0, 12, False),  # X for j
        ("abcdefghiXkl", 0, 9, True),  # a to i, before the X
        ("abcdefghijXl", 0, 12, True),  # X for k, which is not asked for
        ("abcdefghijkl", 10, 12, False),
    ],
)
def test_right_is_a_chunk_that_says_the_same(version, start, stop, holds):
    """Asked for are the words a to j of a version, each of one letter."""
    excerpt = contradictions.Passage("text", tuple("abcdefghijkl"), 0, 10)
    chunk = contradictions.Passage("text", tuple(version), start, stop)
    assert chunk.holds(excerpt) == holds
    # In another text all ten words count, and no fewer.
    assert replace(chunk, text="another").holds(excerpt) == (str(excerpt) in str(chunk))


def test_words_at_the_end_of_an_excerpt_may_go_on_otherwise():
    """What asks for "the fee is" is found in "the fee is not", and "fee is due" is not."""
    now, before = ("the", "fee", "is", "due"), ("the", "fee", "is not", "due")
    chunk = contradictions.Passage("text", before, 0, 4)
    assert chunk.holds(contradictions.Passage("text", now, 0, 3))
    assert not chunk.holds(contradictions.Passage("text", now, 1, 4))


def test_every_excerpt_stands_in_some_chunk():
    """And each chunk that has it is right, whichever version the chunk is of."""
    made = contradictions.in_versions(contradictions.texts("dev", "en"), "en", 30, random.Random(7))
    whole = np.array([[excerpt in chunk for chunk in made.chunks] for excerpt in made.excerpts])
    assert whole.any(axis=1).all()
    assert made.right[whole].all()


def test_a_question_names_no_number():
    assert contradictions.question("In 2024 the fee of £4.50 rose by 3% for 12-year-olds") == (
        "In the fee of rose by for"
    )


def test_another_version_in_front_is_a_hit_to_those_who_do_not_look(monkeypatch):
    """Last year's text comes first for one question, this year's for the other."""
    passage = PASSAGE["en"]
    now = {"page_content": f"{passage}.", "id": "now"}
    before = {"page_content": f"{passage.replace('2024', '2023')}.", "id": "before"}
    made = contradictions.Asked(
        truth=[[AnyOf([now])]] * 2, excerpts=[[passage]] * 2, found=[[before, now], [now, before]]
    )
    monkeypatch.setattr(contradictions, "asked", lambda *_: made)
    true = {"hit@1": 1 / 2, "recall@5": 1.0, "MRR@10": (1 / 2 + 1) / 2}
    unguarded = CoverageMatcher(0.7, **UNGUARDED)
    assert contradictions.reported(None, "", "") == true
    assert contradictions.reported(CoverageMatcher(0.7, **GUARDED), "", "") == true
    assert contradictions.reported(unguarded, "", "") == dict.fromkeys(true, 1.0)


@pytest.mark.parametrize("language", contradictions.LANGUAGES)
def test_on_texts_in_versions_the_guard_reports_what_is_true(language):
    hits = {
        name: contradictions.reported(matcher, "dev", language)["hit@1"]
        for name, matcher in (
            ("truth", None),
            ("guarded", contradictions.MATCHERS["coverage"]()),
            ("not", contradictions.MATCHERS["no guard"]()),
        )
    }
    assert abs(hits["guarded"] - hits["truth"]) <= 0.04
    assert hits["not"] >= hits["truth"] + 0.1


@pytest.mark.parametrize(
    ("change", "text", "damaged"),
    [
        (
            "case and punctuation",
            "The fee, 1,200 (in all), isn't",
            "THE FEE 1,200 （IN ALL） ISN’T",
        ),
        # Three words and spaces are 33 letters: three of the fourth word stay.
        (
            "line breaks, hyphens",
            "abcdefghij abcdefghij abcdefghij abcdefghij",
            "abcdefghij abcdefghij abcdefghij abc-\ndefghij",
        ),
        # Three words and spaces are 33 letters, the fourth ends at 36: the line breaks behind it.
        (
            "line breaks, hyphens",
            "가나다라마바사아자차 가나다라마바사아자차 가나다라마바사아자차 마바사 이용할 수",
            "가나다라마바사아자차 가나다라마바사아자차 가나다라마바사아자차 마바사\n이용할 수",
        ),
        ("full width, NFD", "a 1, 각", "ａ １， \u1100\u1161\u11a8"),
        ("tables", "one two", "| one two |\n|---|---|"),
    ],
)
def test_damage_by_hand(change, text, damaged):
    assert contradictions.damage("ko")[change](random.Random(1), text) == damaged


def test_markup_and_misreading_keep_the_numbers():
    """What they add holds no digit, and they change none."""
    text = "In 2024 the fees rose to 1,200 euros. All 3 boards agreed on 31 May. " * 20
    for change in ("Markdown", "2 % of letters misread"):
        damaged = contradictions.damage("en")[change](random.Random(1), text)
        assert damaged != text
        assert re.findall(r"\d+", damaged) == re.findall(r"\d+", text)


def test_there_are_thirteen_kinds_of_damage():
    """English has neither particles nor such endings."""
    assert len(contradictions.damage("ko")) == len(contradictions.damage("mix")) == 1 + 13
    assert len(contradictions.damage("en")) == 1 + 11


def test_the_tables_fit_the_guides(monkeypatch, capsys):
    """All contradictions and three languages side by side, and of each language all damage."""
    monkeypatch.setattr("sys.argv", ["contradictions", "--quick", "--markdown", "en"])
    contradictions.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert sum(line.startswith("|---") for line in lines) == 5
    heads_and_rules, damage = 5 * 2, 14 + 14 + 12
    assert len(lines) == heads_and_rules + len(contradictions.KINDS) + 3 + damage
    assert max(map(len, lines)) <= 100


def test_a_table_in_korean():
    """What has no Korean name keeps its own."""
    table = {"changed": ["pairs", "coverage"], "a year": ["7", "14%"], "MRR@10": ["7", "0%"]}
    assert contradictions.markdown(table, contradictions.KOREAN).splitlines() == [
        "| 바꾼 것 | 쌍 | `coverage` |",
        "|---|---|---|",
        "| 연도 | 7 | 14% |",
        "| MRR@10 | 7 | 0% |",
    ]


def test_every_name_of_a_table_has_a_korean_one():
    kinds = [
        one for language in contradictions.LANGUAGES for one in contradictions.damage(language)
    ]
    assert {*kinds, *contradictions.contradictions("ko")} <= contradictions.KOREAN.keys()


@pytest.mark.parametrize(
    ("passage", "document", "said"),
    [
        (
            "음료를 드실 수 없습니다.",
            "음료를 드실 수 있습니다.",
            ("드실 수 없습니다", "드실 수 있습니다"),
        ),
        (
            "비용을 3일 이내에 받습니다.",
            "비용을 3일 이후에 받습니다.",
            ("이내에", "이후에"),
        ),
        (
            "무게는 모두 480 이하만 됩니다.",
            "무게는 모두 480 이상만 됩니다.",
            ("이하만", "이상만"),
        ),
    ],
)
@pytest.mark.parametrize("before", ["", "뜰에서는 드실 수 없습니다. 값은 3일 이내에 냅니다. "])
def test_what_is_said_in_korean_is_told_in_whole_words(passage, document, said, before):
    """With the spaces of the texts, and of the place that differs if there is another like it."""
    around = f"{before}열람실 안에서는 누구나 {{}} 뚜껑이 있는 컵에 담긴 물은 괜찮습니다."
    told = CoverageMatcher().said_otherwise(around.format(passage), around.format(document))
    assert told[1:] == said
