"""The audit of a ground truth: every expected row is counted by hand on a few short texts.

What cannot be audited is in ``golden/refused/datasets.py``.
"""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference_pieces import Held, Rules
from trials import trials

from krag_eval import AnyOf, Audit, CoverageMatcher, OfflineRetrievalEvaluator, audit
from krag_eval.auditing.audit import CHECKS
from krag_eval.core import QuerySet
from krag_eval.core.matching.tokenizers import word_tokens
from krag_eval.datasets import Dataset, load_dataset


def dataset(*actual, **more):
    return Dataset([f"q{at}" for at in range(len(actual))], list(actual), **more)


def doc(identity, text):
    return {"id": identity, "page_content": text}


def places(found, name):
    """Return position and item of each row of a finding."""
    return [(row.position, row.item) for row in found.findings[name].rows]


def told(found, name):
    """Return position of each row of a finding, and what it concerns."""
    return [(row.position, row.concerns) for row in found.findings[name].rows]


ONE = "one two three four five six seven eight nine ten"
TWO = "red orange yellow green blue indigo violet black white grey"


class TestDangling:
    """Documents that are not in the index."""

    HALVES = ("x one two three four five x", "y six seven eight nine ten y")
    BY_ID = Dataset(["q"], [["a", "b"]], defaults={"matcher": "id"})

    def test_ground_truth_that_never_stands_verbatim_may_be_rewritten(self):
        """From five texts on, of which no chunk holds one word for word."""
        chunks = [f"The desk on floor {n} opens at nine on every working day" for n in range(6)]
        rewritten = [f"At nine, floor {n} begins its service" for n in range(6)]
        for texts, is_said in ((rewritten, True), (rewritten[:4], False),
                               ([*rewritten, chunks[0]], False)):  # fmt: skip
            fix = audit(dataset(*[[text] for text in texts]), chunks).findings["dangling"].fix
            assert ("guard=numbers" in fix) == is_said

    @pytest.mark.parametrize(
        ("data", "index", "options", "expected"),
        [
            # In NFC: an é in two parts is an é, here without any word that could be found.
            (dataset(["\u00e9"], ["a"]), ["e\u0301"], {}, [(1, 1)]),
            # Eight of ten words are enough (0.8), seven are not; chunks count together.
            (dataset([ONE]), HALVES, {}, []),
            (dataset([ONE]), ["one two three four five six seven eight"], {}, []),
            (dataset([ONE]), ["one two three four five six seven"], {}, [(0, 1)]),
            # All runs of three are there, and another word stands in the place of the fourth b.
            (dataset(["b b b b a"]), ["x b b b a a a"], {"min_run": 3}, [(0, 1)]),
            (dataset(["b b b b a"]), ["b b b a a a b b b b"], {"min_run": 3}, []),
            # Overlapping pieces: words 1 to 5 and 3 to 7 are seven words, not ten.
            (dataset([ONE]), ["one two three four five", "three four five six seven"], {},
             [(0, 1)]),
            # Ids of one side alone say nothing: then texts are compared.
            (dataset([doc("a", ONE)]), [ONE], {}, []),
            (dataset([ONE]), [doc("z", ONE)], {}, []),
            # Plain texts may be ids, and texts count whatever ids there are, where that is said.
            (dataset(["a", "b"]), ["a", "c"], {"ids": True}, [(0, 2)]),
            (BY_ID, [doc("a", ONE)], {}, [(0, 2)]),
            (dataset([doc("a", ONE)]), [doc("b", ONE)], {"ids": False}, []),
            (dataset([doc("a", ONE)]), [doc("b", ONE)], {}, [(0, 1)]),
            # Numbers are read in one spelling, as the matcher reads them.
            (dataset(["The grant of $1.2 million for the hall of the swimming club was paid on "
                      "March 3, 2024"]),
             ["Note: the grant of 1,200,000 for the hall of the swimming club was paid on "
              "2024-03-03."], {}, []),
            (dataset(["시는 올해 새로운 청년 지원 사업에 3억 5천만 원을 썼다"]),
             ["- 시는 올해 새로운 청년 지원 사업에 350,000,000원을 썼다"], {}, []),
        ],
    )  # fmt: skip
    def test_which_documents(self, data, index, options, expected):
        """By the ids where both sides have them, else by the text or by its words in runs."""
        assert places(audit(data, index, **options), "dangling") == expected

    def test_ids_are_compared_where_both_sides_have_them(self):
        """An id that is gone dangles although its text is there, and the row says where."""
        found = audit(dataset([doc("a", ONE), doc("b", TWO)]), [doc("a", "other"), doc("c", TWO)])
        (row,) = found.findings["dangling"].rows
        assert (row.position, row.item, row.text) == (0, 2, TWO)
        assert "the id b" in row.concerns
        assert "chunks c" in row.concerns

    CHUNKS = (doc("d1", f"x {ONE} y"), doc("d2", TWO))

    @pytest.mark.parametrize(
        ("items", "expected"),
        [
            # What equals an id of the index is one; so is another word beside it, which dangles.
            (["d1", "d2"], []),
            (["d1", "d9"], [(0, 2)]),
            ([AnyOf(["d2", "d9"]), "d1"], [(0, 1)]),
            ([doc("d1", ""), doc("d9", "")], [(0, 2)]),
            ([doc("d1", "d1"), "d2"], []),
            # A passage among ids is a text, found by its words or not.
            (["d1", TWO, "three and more words"], [(0, 3)]),
            # None of these is an id of the index, so all are texts.
            (["d8", "d9"], [(0, 1), (0, 2)]),
            ([ONE, TWO], []),
        ],
    )
    def test_ids_are_those_that_evaluate_finds(self, items, expected):
        """What equals an id of the index is one: a document dangles where no retriever finds it."""
        found = audit(dataset(items), self.CHUNKS)
        assert places(found, "dangling") == expected
        alternatives = [
            ((0, number), one)
            for number, item in enumerate(items, 1)
            for one in (item.alternatives if isinstance(item, AnyOf) else [item])
        ]
        ids = [chunk["id"] for chunk in self.CHUNKS]
        rows = [{"question": f"q{at}", "actual": [one], "predicted": ids}
                for at, (_, one) in enumerate(alternatives)]  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            joined = load_dataset(rows, corpus=self.CHUNKS)
            recall = joined.evaluator(matcher="coverage(union=yes)").evaluate(2).per_query(2)
        lost = {place for (place, _), one in zip(alternatives, recall["recall"], strict=True)
                if one < 1}  # fmt: skip
        assert lost == {*expected}

    def test_texts_count_where_that_is_said(self):
        """Whatever the index calls its chunks."""
        found = audit(dataset(["d1", "d2"]), self.CHUNKS, ids=False)
        assert places(found, "dangling") == [(0, 1), (0, 2)]

    def test_an_id_has_the_text_of_its_chunk(self):
        """So all that is looked for in texts is looked for in the chunk's, as evaluate reads it."""
        question = f"is {TWO}"
        found = audit(dataset(["d1"], ["d2"], questions=["When?", question]), self.CHUNKS)
        assert not found.unchecked
        assert [row.position for row in found.findings["quoted"].rows] == [1]

    def test_each_alternative_is_looked_up(self):
        """One that is there does not hide one that is not."""
        found = audit(dataset([AnyOf([ONE, TWO])]), [ONE])
        assert [row.text for row in found.findings["dangling"].rows] == [TWO]

    def test_grade_0_is_no_ground_truth(self):
        """Judged, and found irrelevant."""
        judged = [
            {**doc("a", ONE), "metadata": {"grade": 0}},
            {**doc("b", TWO), "metadata": {"grade": 2}},
        ]
        made = Dataset(["q"], [judged], defaults={"matcher": "id", "grade_key": "grade"})
        assert places(audit(made, [doc("c", "x")]), "dangling") == [(0, 2)]
        assert audit(made).counts["items"] == 1


class TestTwins:
    """Texts that stand in the index more than once."""

    @pytest.mark.parametrize(
        ("data", "index", "expected"),
        [
            (dataset([ONE], [TWO]), [TWO, ONE, "x", ONE], [(0, "chunks 1, 3 (counted from 0)")]),
            # By id the other ids matter: the same id twice is one document.
            (dataset([doc("a", ONE)], [doc("c", TWO)]),
             [doc("a", ONE), doc("b", ONE), doc("c", TWO), doc("c", TWO)],
             [(0, "the same text as chunks b")]),
            # Listed as interchangeable, they are settled.
            (dataset([AnyOf([doc("a", ONE), doc("b", ONE)])]), [doc("a", ONE), doc("b", ONE)], []),
            # The index has another text for the id by now, and that one twice.
            (dataset([doc("a", ONE)]), [doc("a", TWO), doc("b", TWO), doc("c", ONE)],
             [(0, "the same text as chunks b")]),
            # A blank text equals nothing.
            (dataset([" "]), [" ", " ", "x"], []),
            # Case makes a difference, and the form of Unicode does not.
            (dataset(["\u00e9"], ["\u00c9"]), ["e\u0301", "\u00e9", "\u00c9"],
             [(0, "chunks 0, 1 (counted from 0)")]),
        ],
    )  # fmt: skip
    def test_which_texts_are_equal(self, data, index, expected):
        assert told(audit(data, index), "twins") == expected

    def test_of_bare_ids_the_index_has_the_texts(self):
        """So twins and lengths are known without the texts of the ground truth."""
        found = audit(dataset(["a"]), [doc("a", "x y"), doc("b", "x y")], ids=True)
        assert places(found, "twins") == [(0, 1)]
        assert [row.text for row in found.findings["short"].rows] == ["x y"]


# Three yearly versions of a notice, with 16 words each: of these the year is one.
NOTICE = "In {} a members card for the city library costs twenty euros for adults per year"
V23, V24, V25 = (NOTICE.format(year) for year in (2023, 2024, 2025))
ALLOWED = "Dogs may be brought into the garden and onto the terrace on a short lead"
BOILER = "this document is confidential and may not be passed on to others"


class TestVersions:
    """Ground truth of which the index holds versions that say otherwise."""

    @pytest.mark.parametrize(
        ("data", "index", "expected"),
        [
            (dataset([V24]), [TWO, V23, V24],
             [(0, "chunks 1 (counted from 0) say otherwise: 2024 here, 2023 there; "
                  "the index has both")]),
            (dataset([V24]), [V23, V25, TWO],
             [(0, "chunks 0, 1 (counted from 0) say otherwise: 2024 here, 2023 there; "
                  "2024 here, 2025 there; the index lacks the passage")]),
            # What the negation turns is told with a word on either side of it.
            (dataset([ALLOWED]), [ALLOWED.replace("may be", "may not be"), ALLOWED],
             [(0, "chunks 0 (counted from 0) say otherwise: “may be” here, "
                  "“may not be” there; the index has both")]),
            # A chunk with both versions has the passage; one with other amounts beside it, too.
            (dataset([V24]), [f"{V23}. {V24}.", f"{V24}. Children pay 5 euros."], []),
            # Of 16 words, 11 are in a run: less than the share from which a chunk matches.
            (dataset([V24]), [V23.removesuffix(" adults per year")], []),
            # By ids: that the text stands in the index under another one does no harm.
            (dataset([doc("a", V24)]), [doc("a", V24), doc("b", V23)],
             [(0, "chunks b say otherwise: 2024 here, 2023 there; the index has both")]),
            # All copies of the other version, each with its id.
            (dataset([V24]), [doc("x", V23), doc("y", V24), doc("z", V23)],
             [(0, "chunks x, z say otherwise: 2024 here, 2023 there; the index has both")]),
            # Where both versions are wanted, there is nothing to tell apart.
            (dataset([V23, V24]), [V23, V24], []),
            (dataset([AnyOf([V23, V24])]), [V23, V24], []),
        ],
    )  # fmt: skip
    def test_which_chunks_say_what(self, data, index, expected):
        assert told(audit(data, index), "versions") == expected

    def test_by_letters(self):
        """Of Korean, the amount is told whole, as it is written."""
        passage = "시립 도서관 회원증은 성인 한 사람에 3만 원이며 구청 누리집에서 미리 신청한다"
        found = audit(dataset([passage]), [passage.replace("3만", "5만"), passage])
        assert told(found, "versions") == [
            (0, "chunks 0 (counted from 0) say otherwise: 3만 here, 5만 there; "
                "the index has both")
        ]  # fmt: skip

    def test_what_is_judged_irrelevant_is_a_version_all_the_same(self):
        judged = [{**doc("a", V24), "metadata": {"grade": 1}},
                  {**doc("b", V23), "metadata": {"grade": 0}}]  # fmt: skip
        made = Dataset(["q"], [judged], defaults={"grade_key": "grade"})
        assert places(audit(made, [doc("a", V24), doc("b", V23)]), "versions") == [(0, 1)]

    def test_dangling_agrees(self):
        """Last year's version holds no word of the passage; evaluating finds nothing either."""
        found = audit(dataset([V24], [TWO]), [V23, TWO])
        said = "chunks 0 (counted from 0) say otherwise: 2024 here, 2023 there"
        held = "the chunks hold 0 of 16 words, not counting those that say otherwise"
        assert told(found, "dangling") == [(0, f"{held}; {said}")]
        assert told(found, "versions") == [(0, f"{said}; the index lacks the passage")]
        for union in (False, True):
            evaluator = OfflineRetrievalEvaluator([[V24]], [[V23]], CoverageMatcher(union=union))
            with warnings.catch_warnings(action="ignore"):
                assert evaluator.calculate_recall()["micro_recall"] == 0.0

    def test_in_korean(self):
        """The same facts, with a page of its own to read on."""
        found = audit(dataset([V24]), [V23, V24], language="ko").findings["versions"]
        assert found.said == "정답 문서 1개 중 1개는 내용이 다른 버전이 색인에 있습니다"
        assert "docs/ko/rechunking.md" in found.fix
        assert found.rows[0].concerns == (
            "청크 0(0부터 셈)의 내용이 다름: 정답은 2024, 청크는 2023; 정답 구절도 색인에 있음"
        )

    def test_pieces_of_another_version_hold_nothing_either(self):
        """Seven and nine words: in the first, five are in a run, but behind another year."""
        halves = [" ".join(V23.split()[:7]), " ".join(V24.split()[7:])]
        found = audit(dataset([V24]), halves)
        held = "the chunks hold 9 of 16 words, not counting those that say otherwise"
        assert told(found, "dangling") == [(0, held)]

    def test_a_boilerplate_that_all_chunks_have_hides_no_version(self):
        """The year stands behind 12 words that 40 chunks have; one of these has the passage."""
        others = [f"{BOILER} {word}" for word in "abcdefghijklmnopqrstuvwxyz0123456789"]
        passage = f"{BOILER} since {V24}"
        found = audit(dataset([passage]), [*others, f"{BOILER} since {V25}", passage])
        assert told(found, "versions") == [
            (0, "chunks 36 (counted from 0) say otherwise: 2024 here, 2025 there; "
                "the index has both")
        ]  # fmt: skip


class TestQuestions:
    """What is asked more than once."""

    def test_case_and_white_space_do_not_count(self):
        """The third asks something else."""
        found = audit(dataset([ONE], [ONE], [TWO], questions=["When?", " when? ", "Where?"]))
        assert told(found, "duplicate_questions") == [
            (0, "also asked at position 1, with the same ground truth"),
            (1, "also asked at position 0, with the same ground truth"),
        ]
        assert told(found, "indistinguishable") == []

    def test_the_same_question_with_other_ground_truth(self):
        """No retriever can be right about both; the order of items makes no difference."""
        found = audit(dataset([ONE, TWO], [TWO, ONE], [TWO], questions=["When?"] * 3))
        assert len(told(found, "duplicate_questions")) == 3
        others = "also asked at position "
        assert told(found, "indistinguishable") == [
            (0, f"{others}2"), (1, f"{others}2"), (2, f"{others}0, 1"),
        ]  # fmt: skip

    def test_a_tag_tells_them_apart(self):
        """Such as the corpus that is searched."""
        asked, tags = ["When?", "When?"], {"corpus": ["wiki", "chat"]}
        found = audit(dataset([ONE], [TWO], questions=asked, tags=tags))
        assert told(found, "indistinguishable") == []
        assert len(told(found, "duplicate_questions")) == 2

    def test_blank_questions_are_none(self):
        """Two that say nothing do not say the same."""
        blank = audit(dataset([ONE], [TWO], questions=[" ", ""]))
        assert told(blank, "duplicate_questions") == []


class TestLengths:
    """Too short, too long, no words at all, too many."""

    LETTERS = "가나다라마바사아자차카타파하"
    MANY = dataset(["a", "b", "b"], ["a", "b", "c"], [AnyOf(["a", "b"]), "c", "c"])

    @pytest.mark.parametrize(
        ("data", "options", "name", "expected"),
        [
            # Four words are below a run of five; of punctuation there are none.
            (dataset(["a b c d", "a b c d e", "—", ""]), {}, "short", [(0, "4 words")]),
            (dataset(["a b c d e", "—", ""]), {}, "no_words", [(0, "0 words")] * 2),
            (dataset(["a b c d"]), {"min_run": 4}, "short", []),
            # Characters have runs of 15.
            (dataset([LETTERS]), {"tokenizer": "character"}, "short", [(0, "14 characters")]),
            # Ten words do not fit into nine; into ten they do.
            (dataset([ONE], ["x"]), {"index": ["x y", ONE[:-4]]}, "longer_than_chunks",
             [(0, "10 words")]),
            (dataset([ONE]), {"index": ["x", TWO]}, "longer_than_chunks", []),
            # Repeats are one item, and so are alternatives.
            (MANY, {"k": 2}, "more_items_than_k", [(1, "3 items")]),
        ],
    )  # fmt: skip
    def test_which_documents(self, data, options, name, expected):
        assert told(audit(data, **options), name) == expected

    def test_items_are_counted_from_1(self):
        """And a row about a whole list names none."""
        found = audit(dataset(["a b c d", "a b c d e", "—", ""]), k=2)
        assert places(found, "short") == [(0, 1)]
        assert places(found, "no_words") == [(0, 3), (0, 4)]
        assert places(found, "more_items_than_k") == [(0, None)]

    @pytest.mark.parametrize(
        ("text", "tokenizer", "min_run", "read"),
        [
            ("가나다라마바사아자차카타파하", "character", 15, "character"),
            # The chunk holds these letters without their spaces.
            ("가나다 라마바사 아자차카타파", "auto", 12, "letters"),
            ("Open from nine.", "auto", 5, "words"),
        ],
    )
    def test_auto_reads_all_texts_as_the_ground_truth_asks_for(
        self, text, tokenizer, min_run, read
    ):
        index = ["안내: 가나다라마바사아자차카타파", "Opening hours"]
        found = audit(dataset([text]), index, tokenizer=tokenizer)
        assert found.settings == {"k": 10, "min_run": min_run, "tokenizer": read}
        assert (told(found, "dangling") == []) == (read == "letters")


# 12 letters to "받", 23 in all.
KOREAN = "참가 신청은 누리집에서 오월 삼일까지 받습니다"


class TestQuotes:
    """Questions in the words of their ground truth."""

    # Of the question's ten words, "two three four five six" stand in a run; ten and one occur too.
    QUESTION = "is two three four five six ten or one really"

    @pytest.mark.parametrize(
        ("actual", "asked", "rows", "quoted", "overlap"),
        [
            # 5 of 10 in runs, 7 of 10 at all; the document that holds most counts.
            ([TWO, ONE], QUESTION, [(0, "5 of 10 words in runs")], "50 to 74 %", "50 to 74 %"),
            ([ONE], f"{QUESTION} not", [], "25 to 49 %", "50 to 74 %"),
            # Of a question shorter than a run nothing is quoted, whatever order its words are in.
            ([ONE], "Two three four?", [], "0 %", "100 %"),
            ([ONE], "Four three two?", [], "0 %", "100 %"),
            # As long as a run, it is; a letter less, it is not. Letters are counted, not words.
            ([ONE], "Two three four five six?", [(0, "5 of 5 words in runs")], "100 %", "100 %"),
            ([KOREAN], "누리집에서 오월 삼일까지", [], "0 %", "100 %"),
            (
                [KOREAN],
                "누리집에서 오월 삼일까지 받",
                [(0, "12 of 12 characters in runs")],
                "100 %",
                "75 to 99 %",
            ),
            ([KOREAN], "면적은?", [], "0 %", "0 %"),
        ],
    )
    def test_share_in_runs_and_overlap(self, actual, asked, rows, quoted, overlap):
        found = audit(dataset(actual, questions=[asked]))
        assert told(found, "quoted") == rows
        tiers = {name: of[of > 0].to_dict() for name, of in found.tiers.items()}
        assert tiers == {"quoted": {quoted: 1}, "overlap": {overlap: 1}}

    def test_the_question_is_shown_beside_its_document(self):
        (row,) = audit(dataset([TWO, ONE], questions=[self.QUESTION])).findings["quoted"].rows
        assert (row.item, row.text) == (2, self.QUESTION)

    def test_questions_without_ground_truth_are_in_no_tier(self):
        """There is nothing they could quote."""
        found = audit(dataset([ONE], [], questions=[ONE, "two"]))
        assert found.tiers.sum().tolist() == [1, 1]
        assert "1 of 1 question" in found.findings["quoted"].said

    @given(st.data())
    def test_against_a_loop(self, data):
        """Shares in runs, and words held together, as plain Python counts them."""
        words = st.lists(st.sampled_from("abc"), min_size=1, max_size=12).map(" ".join)
        actual = data.draw(st.lists(st.lists(words, max_size=2), max_size=3).filter(any))
        asked = data.draw(st.lists(words, min_size=len(actual), max_size=len(actual)))
        index = data.draw(st.lists(words, min_size=1, max_size=3))
        found = audit(dataset(*actual, questions=asked), index, min_run=3)
        quoted = [
            at
            for at, (question, items) in enumerate(zip(asked, actual, strict=True))
            if len(words := question.split()) >= 3
            and any(2 * len(held(question, [item])) >= len(words) for item in items)
        ]
        assert [row.position for row in found.findings["quoted"].rows] == quoted
        matcher = CoverageMatcher(min_run=3, union=True)

        def is_held(item, chunks):
            together = Held(item.split(), [*map(str.split, chunks)], Rules(0.8, 3)).together[-1]
            return item in index or len(together) / len(item.split()) >= 0.8

        dangling = places(found, "dangling")
        for at, items in enumerate(actual):
            for number, item in enumerate(items, 1):
                agreeing = [one for one in index if matcher.said_otherwise(item, one) is None]
                # Chunks that say otherwise count only where they hold it end to end: what the
                # others hold is found whatever they say, and what all of them lack is not.
                if is_held(item, agreeing):
                    assert (at, number) not in dangling
                elif not is_held(item, index):
                    assert (at, number) in dangling


def held(text, others):
    """Return which words of a text stand in runs of three (or all of a shorter text) in others."""
    words = word_tokens(text)
    size = min(3, len(words))
    runs = {
        tuple(theirs[at : at + size])
        for theirs in map(word_tokens, others)
        for at in range(len(theirs) - size + 1)
    }
    return {
        at + step
        for at in range(len(words) - size + 1)
        if tuple(words[at : at + size]) in runs
        for step in range(size)
    }


KOREAN = "신청은 5월 3일 오전 9시부터 구청 누리집에서 받습니다"
UNSPACED = "안내: " + KOREAN.replace(" ", "") + " 문의는 전화로"


# Texts of words, letters and numbers, some of which are broken.
PARTS = (
    "서울", "시는", "예산", "원을", "東京", "budget", "of the", "city", "-", "。",
    "20 24", "2024", "20", "24", "2\n024", "12 3", "123", "12 3 4", "3", "1", "월", "년",
    "억", "만", "million", "not", "않", "350,000,000원", "3억 5,000만 원", "5 000",
)  # fmt: skip
TEXT = st.builds(
    str.join,
    st.sampled_from([" ", "", "-"]),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=9),
)


class TestScripts:
    """Each query is read as coverage reads it."""

    def test_a_passage_that_lost_its_spaces_is_there(self):
        """By letters the chunk holds all of it; English queries are read by words beside it."""
        found = audit(dataset([KOREAN], [ONE]), [UNSPACED, "one two three four five x"])
        assert told(found, "dangling") == [(1, "the chunks hold 5 of 10 words")]
        assert found.settings == {"k": 10, "min_run": 5, "tokenizer": "auto(words,letters)"}
        # By words, if they are asked for, none of the eight stands in a run.
        found = audit(dataset([KOREAN]), [UNSPACED], tokenizer="words")
        assert told(found, "dangling") == [(0, "the chunks hold 0 of 8 words")]

    @pytest.mark.parametrize("gap", [" ", "\n", "\r\n"])
    def test_a_gap_inside_a_number_is_closed(self, gap: str):
        """Of a query that has the number whole; ten of the letters stand before it."""
        whole, broken = (
            "시는 이 사업에 예산 2024원을 썼다",
            f"시는 이 사업에 예산 20{gap}24원을 썼다",
        )
        found = audit(dataset([whole], [broken]), [broken])
        assert places(found, "dangling") == []
        assert places(audit(dataset([whole, broken]), ["- " + broken]), "dangling") == [(0, 1)]

    @pytest.mark.filterwarnings("ignore:.*matched nothing at all")
    def test_a_chunk_is_read_with_its_gaps_closed_or_as_it_is(self):
        """In runs of two letters; of fourteen, those of 20-24다라 are in no chunk read so."""
        passage, chunks = "가나 20-24다라 2024마바", ["가나 20 24다라", "2024마바"]
        found = audit(dataset([passage]), chunks, min_run=1)
        assert told(found, "dangling") == [(0, "the chunks hold 8 of 14 characters")]
        matcher = CoverageMatcher(min_run=1, union=True)
        evaluator = OfflineRetrievalEvaluator([[passage]], [chunks], matcher)
        assert evaluator.calculate_token_recall()["micro_token_recall"] == 8 / 14

    def test_findings_say_what_they_counted(self):
        """Eleven letters are no run of twelve, nor are four words one of five."""
        found = audit(dataset(["가나다라 마바사 아자차카"], ["a b c d"]))
        assert told(found, "short") == [(0, "11 characters"), (1, "4 words")]
        assert "a run of 12 characters or 5 words" in found.findings["short"].said

    def test_a_question_is_quoted_as_its_passage_is_read(self):
        """Twelve letters of 17 in a run, with other spaces, and no word in common."""
        passage = "가나다라 마바사아 자차카타 파하"
        found = audit(dataset([passage], questions=["가나 다라마바사아자차카타 또는 거너더"]))
        assert told(found, "quoted") == [(0, "12 of 17 characters in runs")]
        assert found.tiers.loc["0 %", "overlap"] == 1

    def test_what_was_judged_irrelevant_decides_as_well(self):
        """Coverage reads a query by all that is listed: here by words, of which a run is there."""
        long = {"page_content": ONE * 9, "metadata": {"grade": 0}}
        golden = {"page_content": KOREAN, "metadata": {"grade": 1}}
        graded = Dataset(["q"], [[golden, long]], defaults={"grade_key": "grade"})
        assert places(audit(graded, [UNSPACED]), "dangling") == [(0, 1)]

    @settings(max_examples=trials(300))
    @given(st.data())
    def test_dangling_is_what_coverage_does_not_find(self, data):
        """In the whole index, retrieved for each query, with documents counting together."""
        actual = data.draw(st.lists(st.lists(TEXT, max_size=3), min_size=1, max_size=4).filter(any))
        chunks = data.draw(st.lists(TEXT, min_size=1, max_size=5))
        min_run = data.draw(st.sampled_from([1, 2, 3]))
        found = audit(dataset(*actual), chunks, min_run=min_run)
        matcher = CoverageMatcher(min_run=min_run, union=True)
        evaluator = OfflineRetrievalEvaluator(
            actual, [chunks] * len(actual), matcher, no_ground_truth="zero"
        )
        with warnings.catch_warnings(action="ignore"):
            result = evaluator.evaluate(None, metrics=["recall"])
            items = [(at, item) for at in range(len(actual)) for item in result.explain(at).items]
        lost = {(at, actual[at][one.number - 1]) for at, one in items if one.outcome not in
                ("found", "found in pieces")}  # fmt: skip
        expected = [
            (at, number)
            for at, own in enumerate(actual)
            for number, passage in enumerate(own, 1)
            if (at, passage) in lost and (at, number) not in places(found, "no_words")
        ]
        assert places(found, "dangling") == expected

    @settings(max_examples=trials(200))
    @given(st.data())
    def test_versions_are_what_coverage_calls_contradicted(self, data):
        """In the whole index, however few of many chunks with a run are looked at."""
        lists = st.lists(TEXT, max_size=3, unique=True)
        actual = data.draw(st.lists(lists, min_size=1, max_size=4).filter(any))
        chunks = data.draw(st.lists(TEXT, min_size=1, max_size=8, unique=True))
        min_run = data.draw(st.sampled_from([1, 2, 3]))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("krag_eval.auditing.audit._COMPARED", 1)
            found = audit(dataset(*actual), chunks, min_run=min_run)
        expected = []
        for at, own in enumerate(actual):
            matches = CoverageMatcher(min_run=min_run).match(QuerySet.from_lists([own], [chunks]))
            wanted = matches.rank[matches.similarity >= 0.8]
            rows = matches.pieces
            near = (rows.contradicted_share >= 0.8) & ~np.isin(rows.contradicted_rank, wanted)
            expected += [(at, 1 + one) for one in np.unique(rows.contradicted_alternative[near])]
        assert places(found, "versions") == expected

    @given(st.data())
    def test_sizes_and_quotes_are_what_coverage_counts(self, data):
        """With the words or letters of each query's ground truth, for the question as well."""
        actual = data.draw(st.lists(st.lists(TEXT, max_size=3), min_size=1, max_size=4).filter(any))
        asked = data.draw(st.lists(TEXT, min_size=len(actual), max_size=len(actual)))
        found = audit(dataset(*actual, questions=asked), min_run=2)
        reads = [CoverageMatcher(min_run=2)._for_ground_truth(own) for own in actual]
        sizes = {
            (at, number): (reads[at].read([passage]).tokens.sizes[0], reads[at].min_run)
            for at, own in enumerate(actual)
            for number, passage in enumerate(own, 1)
        }
        assert places(found, "no_words") == [at for at, (n, _) in sizes.items() if n == 0]
        assert places(found, "short") == [at for at, (n, run) in sizes.items() if 0 < n < run]
        assert [row.position for row in found.findings["quoted"].rows] == [
            at
            for at, own in enumerate(actual)
            if reads[at].read([asked[at]]).tokens.sizes[0] >= reads[at].min_run
            and any(share_of(reads[at], asked[at], passage) >= 0.5 for passage in own)
        ]


def share_of(matcher, question, passage):
    """Return how much of a question a passage has, whatever either says otherwise."""
    found = matcher.match(QuerySet.from_lists([[question]], [[passage]]))
    return max([*found.similarity, *found.pieces.contradicted_share], default=0.0)


class TestAudit:
    """What is returned."""

    @pytest.fixture
    def found(self):
        return audit(dataset([ONE], ["x"], questions=["When?", "when?"]), [TWO, "x"])

    def test_the_table_has_a_row_per_place(self, found):
        """In the order of findings, queries and items; of a question the item is missing."""
        table = found.table
        assert list(table.columns) == ["finding", "query", "position", "item", "text", "concerns"]
        assert list(table["finding"]) == [
            "dangling", "duplicate_questions", "duplicate_questions", "indistinguishable",
            "indistinguishable", "short",
        ]  # fmt: skip
        assert table["item"].isna().tolist() == [False, True, True, True, True, False]
        assert table["query"].tolist() == ["q0", "q0", "q1", "q0", "q1", "q1"]
        assert audit(dataset(["a b c d e"])).table.empty

    def test_every_finding_is_found_or_not_checked(self):
        """Nothing goes missing."""
        bare = audit(dataset(["a"]), ids=True)
        assert [*bare.findings] == ["more_items_than_k"]
        assert {*bare.findings, *bare.unchecked} == {*CHECKS}
        whole = audit(dataset(["a"], questions=["a"]), ["a"])
        assert [*whole.findings] == [*CHECKS]
        assert audit(dataset(["a"]), ["a"], ids=True).unchecked["twins"] == "texts in the index"

    def test_the_summary_names_what_was_found(self, found):
        """And nothing else."""
        assert "1 of 2 ground-truth documents is not in the index" in found.summary()
        assert "twins" not in found.summary()
        assert found.summary() in repr(found)
        assert "<table" in found._repr_html_()

    def test_hostile_text_is_shown_and_does_nothing(self):
        """No markup of a text or a label reaches a notebook, no control character a terminal."""
        evil = "<script>alert(1)</script>\x1b[31m"
        found = audit(Dataset([evil], [[evil]]), ["x"])
        assert "<script>" not in found._repr_html_()
        assert "\x1b" not in "".join(found.table["text"])

    def test_it_is_saved_and_read_back(self, found, tmp_path):
        """Equal, tables included."""
        found.to_json(tmp_path / "audit.json")
        again = Audit.from_json(tmp_path / "audit.json")
        assert again == found
        pd.testing.assert_frame_equal(again.table, found.table)
        pd.testing.assert_frame_equal(again.tiers, found.tiers)

    def test_check_is_a_gate(self, found):
        """It fails on rows, and passes without."""
        report = found.check("dangling, twins")
        assert [(gate.metric, gate.passed) for gate in report.gates] == [
            ("dangling", False), ("twins", True),
        ]  # fmt: skip
        assert found.check(["twins", "no_words"]).passed
        with pytest.raises(AssertionError):
            found.check("short").raise_if_failed()


class TestInput:
    """What may be audited, and against what."""

    def test_the_index_is_any_iterable_of_documents(self):
        """Gone through once."""
        several = [(Document(page_content=ONE),), {ONE}, pd.Series([ONE]), [{"page_content": ONE}]]
        for index in (iter([ONE]), *several):
            assert places(audit(dataset([ONE]), index), "dangling") == []

    def test_the_index_may_be_a_file(self, written):
        """Of the chunks, line by line."""
        path = written(json.dumps({"id": "a", "text": ONE}) + "\n", "chunks.jsonl")
        found = audit(dataset([doc("a", ONE), doc("b", ONE)]), path)
        assert places(found, "dangling") == [(0, 2)]

    def test_the_data_set_may_be_what_one_is_loaded_from(self, written):
        """Rows, or a file."""
        rows = [{"question": "When?", "actual": ["a b"]}]
        assert audit(rows) == audit(written(json.dumps(rows[0])))

    def test_nothing_is_changed(self):
        """Neither the data set nor the chunks."""
        index, made = [doc("a", ONE)], dataset([doc("a", ONE)], questions=["When?"])
        audit(made, index)
        assert (index, made) == ([doc("a", ONE)], dataset([doc("a", ONE)], questions=["When?"]))
