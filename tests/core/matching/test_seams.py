"""A splitter's cut costs nothing: what stands in the corpus is whole, wherever it was cut.

What documents hold together is compared with its definition, position by position, in
``test_pieces.py``; here texts are cut between letters, as splitters do.
"""

import random
import warnings

import pytest

from krag_eval import CoverageMatcher, OfflineRetrievalEvaluator, audit, reanchor
from krag_eval.core import letter_tokens
from krag_eval.core.matching.contradiction import Beside, Difference
from krag_eval.core.matching.tokenizers import word_tokens
from krag_eval.datasets import Dataset

TEXTS = {
    "en": """
The library lends books for four weeks, films for three days and games for a week. Whoever
is late pays twenty cents a day, at most 1,250 cents; children under twelve pay nothing at
all. In the autumn of 2021 the town council raised the yearly fee from 15 to 18.50 euros,
and from 2024-03-05 on a second card costs half of that. Readers may renew a loan twice
unless someone else has asked for the book, by telephone between 9:30 and 17:00 or at any
time on the web. Lost cards are replaced for five euros, damaged books for what they cost
new less 10% per year, but no more than 80 euros. The reading room on the second floor
seats 120 people, and on Saturdays there is a story hour for the youngest at half past ten.
Rooms can be booked by clubs from the town, free of charge, four weeks in advance;
commercial events are not allowed there, whatever they are prepared to pay for the evening.""",
    "ko": """
도서관은 책을 4주 동안, 영화를 사흘 동안, 놀이 도구를 일주일 동안 빌려준다. 늦게 돌려주면
하루에 200원을 내고 아무리 늦어도 12,500원을 넘지 않으며, 열두 살 미만 어린이는 내지
않는다. 시의회는 2021년 가을에 연회비를 1만 5천 원에서 18,500원으로 올렸고, 2024년 3월
5일부터 두 번째 카드는 그 절반만 받는다. 다른 사람이 예약하지 않았으면 대출을 두 번까지
늘릴 수 있으며, 오전 9시 30분부터 오후 5시까지 전화로 하거나 누리집에서 언제든지 할 수
있다. 잃어버린 카드는 5천 원에 다시 만들어 주고, 망가진 책은 새 책값에서 해마다 10%를 뺀
값을 물어야 하지만 8만 원을 넘지는 않는다. 2층 열람실에는 120명이 앉을 수 있고 토요일 열 시
반에는 어린이를 위한 이야기 시간이 있다. 이 도시의 모임은 4주 전부터 방을 무료로 빌릴 수
있으나, 얼마를 내겠다고 하든 영리를 위한 행사는 그곳에서 열 수 없다.""",
}
SPLITS = [(30, 0), (40, 10), (60, 5), (100, 0), (100, 20), (300, 0), (300, 30), (500, 100)]
both = pytest.mark.parametrize("language", TEXTS)


def cut(text, size, overlap=0):
    """Return the chunks of a text, so many characters each."""
    step = size - overlap
    return [text[start : start + size] for start in range(0, len(text) - overlap, step)]


def passages(text, n, seed, shortest=25, longest=150):
    """Return stretches of a text, of whole words."""
    source = random.Random(seed)
    found = []
    while len(found) < n:
        start = text.rfind(" ", 0, source.randrange(len(text) - longest)) + 1
        stop = text.rfind(" ", start, start + source.randint(shortest, longest))
        if stop - start >= shortest:
            found.append(text[start:stop])
    return found


def evaluated(actual, predicted, **settings):
    """Return the result of one passage a query."""
    matcher = CoverageMatcher(**{"union": True, "guard": "off", **settings})
    with warnings.catch_warnings(action="ignore"):
        evaluator = OfflineRetrievalEvaluator([[one] for one in actual], predicted, matcher)
        return evaluator.evaluate(None, metrics=["recall", "token_recall", "token_precision"])


def shares(passage, *documents, **settings):
    """Return how much of a passage documents hold together, and as how many of their words."""
    result = evaluated([passage], [documents], **settings)
    table = result.tables[None]
    return float(table["token_recall"][0]), int(table["tokens_useful"][0])


class TestVerbatim:
    """Whatever stands in the corpus is whole."""

    @both
    @pytest.mark.parametrize(("size", "overlap"), SPLITS)
    @pytest.mark.parametrize("settings", [{}, {"guard": "aligned"}, {"tokenizer": "words"}])
    def test_a_passage_is_whole_wherever_it_was_cut(self, language, size, overlap, settings):
        text = TEXTS[language]
        chunks, actual = cut(text, size, overlap), passages(text, 60, size + overlap)
        orders = [random.Random(at).sample(chunks, len(chunks)) for at in range(len(actual))]
        table = evaluated(actual, orders, **settings).tables[None]
        lost = [one for one, share in zip(actual, table["token_recall"], strict=True) if share < 1]
        assert lost == []
        assert table["recall"].tolist() == [1.0] * len(actual)

    @both
    @pytest.mark.parametrize(("size", "overlap"), SPLITS)
    def test_it_is_in_the_index(self, language, size, overlap):
        """Neither an audit nor a diagnosis misses it, nor takes it for another text."""
        text = TEXTS[language]
        chunks, actual = cut(text, size, overlap), passages(text, 40, size - overlap)
        found = audit(Dataset([*map(str, range(40))], [[one] for one in actual]), chunks)
        assert [found.findings[name].rows for name in ("dangling", "versions")] == [(), ()]
        with warnings.catch_warnings(action="ignore"):
            evaluator = OfflineRetrievalEvaluator(
                [[one] for one in actual], [chunks[:1]] * 40, "coverage"
            )
            diagnosis = evaluator.evaluate(1).diagnose(chunks)
        causes = {one.cause for one in diagnosis.items}
        assert causes <= {"found", "cut_apart", "not_in_top_k"}

    @both
    @pytest.mark.parametrize(("size", "overlap"), SPLITS)
    def test_re_anchoring_finds_it(self, language, size, overlap):
        """However few letters chunks overlap by, and however short its pieces are."""
        text = TEXTS[language]
        new = [{"id": str(at), "text": one} for at, one in enumerate(cut(text, size, overlap))]
        actual = passages(text, 40, size + 3 * overlap)
        data = Dataset([*map(str, range(40))], [[one] for one in actual])
        states = {row.state for row in reanchor(data, [{"id": "old", "text": text}], new).rows}
        assert states <= {"split", "absorbed", "moved"}

    @pytest.mark.parametrize(("last", "recall"), [("phone", 1.0), ("mail", 0.0)])
    def test_whatever_else_it_resembles_it_is_no_other_text(self, monkeypatch, last, recall):
        """Documents that hold a passage word for word, end to end, say nothing else there."""

        def another_text(*_sides, **_settings):
            return Beside(Difference("text", (0, 1), (0, 1)), 0.0)

        monkeypatch.setattr("krag_eval.core.matching.coverage.laid_beside", another_text)
        passage = "Members may keep books for four weeks, films for one, and renew them by phone"
        chunks = (
            "Lending. Members may keep books for four weeks, films",
            (f"for one, and renew them by {last} at night"),
        )
        result = evaluated([passage], [chunks], guard="aligned")
        assert result.averages(None)["macro_recall"] == recall

    def test_the_two_files_that_readers_meet_first(self):
        """Five words end one chunk, two begin the next: together all seven."""
        passage = "Books may be kept for four weeks."
        chunks = "Films are lent for a day. Books may be kept for", "four weeks. Then a fee is due."
        assert shares(passage, *chunks) == (1.0, 7)
        assert shares(passage, chunks[0]) == (5 / 7, 5)
        assert audit(Dataset(["q"], [[passage]]), chunks).findings["dangling"].rows == ()


class TestHalves:
    """What was cut in two is whole again, of words and of numbers."""

    @pytest.mark.parametrize(
        ("passage", "inside"),
        [
            ("The town raised the fee in the autumn of 2021 again, and nobody minded.", "2021"),
            ("The bridge has cost 1,250,000 euros so far, as the paper said.", "1,250,000"),
            ("From 2024-03-05 on a second card costs half of what it did.", "2024-03-05"),
            ("Whoever replaces a library card pays five euros at the desk.", "library"),
            ("Opening hours are from 9:30 to 17:45 on all days of the week.", "17:45"),
            ("2021 was the year in which the town raised all its fees.", "2021"),
            ("The yearly fee was raised to 18.50 euros.", "euros"),
            ("시의회는 작년 가을에 연회비를 18,500원으로 올렸고 아무도 반대하지 않았다", "18,500"),
            ("두 번째 카드는 2024년 3월 15일부터 그 절반만 받기로 하였다", "2024년 3월 15일"),
            ("새로 만든 카드의 값은 1억 2천만 원을 넘지 않는다고 밝혔다", "1억 2천만"),
            ("도서관은 책을 사 주 동안 빌려주고 영화는 사흘만 빌려준다", "빌려주고"),
            ("연회비는 올해부터 18,500원", "18,500"),
        ],
    )
    @pytest.mark.parametrize("overlap", [0, 3])
    def test_at_every_letter_of_it(self, passage, inside, overlap):
        first = passage.index(inside)
        for at in range(max(first, overlap), first + len(inside) + 1):
            chunks = (
                f"Before it. 앞의 글. {passage[:at]}",
                f"{passage[at - overlap :]} 뒤의 글. Behind.",
            )
            assert shares(passage, *chunks)[0] == 1.0, at

    def test_half_a_word_is_no_use_alone(self):
        """Two words that were one in the passage are its halves; one of them is nothing."""
        passage = "the fee that card" + "holders pay every year is low"
        behind = "holders pay every year is low"
        assert shares(passage, "as for the fee that card", behind) == (1.0, 9)
        assert shares(passage, "as for the fee that", behind) == (5 / 9, 5)


class TestAlteredTexts:
    """What ends elsewhere, or begins elsewhere, makes no altered passage whole."""

    BEHIND = "pay every year is low and will stay low for now"

    @pytest.mark.parametrize(
        ("passage", "documents", "held"),
        [
            # Another document ends with the last word alone: before it stands another one.
            (f"the fee that readers {BEHIND}", ("so much for readers", BEHIND), 11),
            # A whole document, but what is before it in the passage ends nowhere.
            (f"the fee that readers {BEHIND}", ("readers", BEHIND), 11),
            # It ends where the passage begins, and another one goes on: nothing tells them apart.
            (f"readers {BEHIND}", ("so much for readers", BEHIND), 12),
            # What goes on does so for two words only.
            ("a b c d e f g h i j", ("x a b c", "d e x x x x x"), 0),
            # One document cannot go on with itself.
            ("a b c d e f g", ("e f g x a b c d",), 0),
            # Three in a row, the one in the middle shorter than a run; not without the last one.
            ("a b c d e f g h i", ("x a b c", "d e f", "g h i x"), 9),
            ("a b c d e f g h i", ("x a b c", "d e f", "h i x"), 0),
            # A part of a short passage is no evidence if it is a whole document.
            ("five euros", ("five", "euros"), 0),
        ],
    )
    def test_what_counts(self, passage, documents, held):
        share, useful = shares(passage, *documents)
        assert (share, useful) == (held / len(word_tokens(passage)), held)

    @both
    @pytest.mark.parametrize(("size", "overlap"), SPLITS)
    def test_a_word_from_elsewhere_is_never_whole(self, language, size, overlap):
        """One word of each passage is another one of the same text, with another first letter."""
        text, source = TEXTS[language], random.Random(size)
        words, tokens = text.split(), letter_tokens if language == "ko" else word_tokens
        altered = []
        for passage in passages(text, 60, size, 50):
            of_passage = passage.split()
            at = source.randrange(1, len(of_passage) - 1)
            known = of_passage[at]
            of_passage[at] = source.choice([one for one in words if one[0] != known[0]])
            if " ".join(tokens(" ".join(of_passage))) not in " ".join(tokens(text)):
                altered.append(" ".join(of_passage))
        orders = [cut(text, size, overlap)] * len(altered)
        table = evaluated(altered, orders).tables[None]
        whole = [
            one for one, share in zip(altered, table["token_recall"], strict=True) if share == 1
        ]
        assert len(altered) > 40
        assert whole == []


def test_each_cutoff_sees_its_own_documents():
    """The first piece counts from the rank on at which the second one is there."""
    passage, first, second = "a b c d e f g h", "x a b c", "d e f g h x"
    with warnings.catch_warnings(action="ignore"):
        evaluator = OfflineRetrievalEvaluator(
            [[passage]], [[first, "y y y y", second]], CoverageMatcher(union=True, guard="off")
        )
        result = evaluator.evaluate([1, 2, 3], metrics=["token_recall", "token_precision"])
    recall = [float(result.tables[k]["token_recall"][0]) for k in (1, 2, 3)]
    useful = [int(result.tables[k]["tokens_useful"][0]) for k in (1, 2, 3)]
    assert (recall, useful) == ([0.0, 0.0, 1.0], [0, 0, 8])
