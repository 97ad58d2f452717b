"""Coverage: the exact share of the ground truth that lies in long enough shared runs."""

import random
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matched import found, pairs, per_query, quiet, scores_of
from trials import trials

from krag_eval import CoverageMatcher, NumbersMatcher, OfflineRetrievalEvaluator
from krag_eval.core import QuerySet
from krag_eval.core.matching import pieces

PASSAGE = "Refunds are paid within seven days of the cancellation"  # nine words
REFUNDS = "All refunds due to anyone are paid"
WORDS_ALONE = CoverageMatcher(numbers="ignore", polarity=False)
RULE = "Dogs are allowed in the garden and on the terrace but must be kept on a lead"

# Few different words, so that shared runs abound; some texts have no word at all.
words = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)
texts = st.lists(words, min_size=1, max_size=6)


def reference(actual, predicted, min_run):
    """Return the similarity by the definition: mark every word that is part of a shared run."""
    truth, found = actual.split(), predicted.split()
    if not truth:
        return 0.0
    run = min(min_run, len(truth))
    covered = {
        word
        for start in range(len(truth) - run + 1)
        for other in range(len(found) - run + 1)
        if truth[start : start + run] == found[other : other + run]
        for word in range(start, start + run)
    }
    return len(covered) / len(truth)


@pytest.mark.parametrize(
    ("actual", "predicted", "expected"),
    [
        # All nine words in one run, whatever stands around them.
        (PASSAGE, f"Tickets: {PASSAGE}. Fees: none.", 1.0),
        # The chunk begins at "paid": the last seven words are one run.
        (PASSAGE, "paid within seven days of the cancellation, by bank transfer", 7 / 9),
        # "within seven days of the" is a run of exactly five.
        (PASSAGE, "Reply within seven days of the letter", 5 / 9),
        # "seven days of the" is one of four, too short to count.
        (PASSAGE, "Some seven days of the letter", 0.0),
        # "paid" became "made": runs of two and of six; the run of two does not count.
        (PASSAGE, "Refunds are made within seven days of the cancellation", 6 / 9),
        # Two overlapping runs, words 1 to 5 and 4 to 9 of the passage, cover all nine.
        (PASSAGE, "Refunds are paid within seven. So: within seven days of the cancellation", 1.0),
        # Every word, none next to its neighbour.
        (PASSAGE, "cancellation the of days seven within paid are refunds", 0.0),
        (PASSAGE, "REFUNDS are paid\n\n  within seven (days) of the -- cancellation!", 1.0),
        # A ground truth shorter than a run must occur as a whole.
        ("5 euros", "It costs 5 euros.", 1.0),
        ("5 euros", "Not euros, 5 of them.", 0.0),
        ("5 euros", "5", 0.0),
        ("5 euros", "5 5 euros", 1.0),
        # A longer chunk does not lower it; the other way round it is nearly nothing.
        (PASSAGE, f"{'before ' * 40}{PASSAGE}{' after' * 41}", 1.0),
        (f"{'before ' * 40}{PASSAGE}{' after' * 41}", PASSAGE, 9 / 90),
        # Of 17 words, the two before "not" lie in a run of two.
        (RULE, RULE.replace("are", "are not"), 15 / 17),
    ],
)
def test_it_is_the_share_of_words_in_shared_runs_of_five(actual, predicted, expected):
    assert WORDS_ALONE.similarity(actual, predicted) == expected


@pytest.mark.parametrize("alone", [False, True])
@given(actual=texts, predicted=texts, min_run=st.integers(1, 7))
@quiet
def test_it_equals_the_definition(alone, actual, predicted, min_run):
    """Any texts, any run, many pairs at once or each alone."""
    expected = [[reference(truth, found, min_run) for found in predicted] for truth in actual]
    matcher = CoverageMatcher(min_run=min_run, guard="off")
    scores = scores_of(matcher, actual, predicted).tolist()
    if alone:
        scores = [[matcher.similarity(truth, found) for found in predicted] for truth in actual]
    assert scores == expected


HASHES = pieces._hashes


def colliding(tokens, length, seed):
    """Return one hash for all runs, where the first seed is used."""
    return HASHES(tokens, length, seed) if seed else np.zeros(len(tokens), np.uint64)


@given(actual=texts, predicted=texts)
@quiet
def test_it_is_exact_even_if_every_hash_collides(actual, predicted):
    """The hash only saves work: with one hash for everything the result is the same."""
    expected = [[reference(truth, found, 3) for found in predicted] for truth in actual]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_hashes", colliding)
        scores = scores_of(CoverageMatcher(min_run=3, guard="off"), actual, predicted)
    assert scores.tolist() == expected


letters = st.lists(st.text("가나37", max_size=12), min_size=1, max_size=6)


@given(actual=letters, predicted=letters)
@quiet
def test_amounts_are_told_apart_by_more_than_hashes(actual, predicted):
    """The runs that continue an amount, too; and every text holds itself, amounts and all."""
    matcher = CoverageMatcher(min_run=2, tokenizer="letters")
    expected = scores_of(matcher, actual, predicted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_hashes", colliding)
        scores = scores_of(matcher, actual, predicted)
    assert scores.tolist() == expected.tolist()
    assert all(matcher.similarity(one, one) == 1 for one in actual if one)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 50])
def test_questions_asked_together_find_what_each_finds_alone(n):
    """Each passage stands whole in the second chunk: recall 1. numpy 1 found none from three on."""
    passages = [f"{PASSAGE} of order number {order} today" for order in range(n)]
    predicted = [["Nothing here says any of it", f"We said: {one}. So."] for one in passages]
    result = OfflineRetrievalEvaluator([[one] for one in passages], predicted, "coverage")
    found = result.evaluate(2).to_dict()
    # 14 words each; the chunks hold 6, and 2 + 14 + 1.
    assert (found["macro_recall@2"], found["macro_token_recall@2"]) == (1.0, 1.0)
    assert found["micro_token_precision@2"] == 14 / (6 + 2 + 14 + 1)


def test_long_texts_are_searched_to_the_end():
    """100,000 different words, the last ten of them wanted, then ten that are elsewhere."""
    long = [f"w{number}" for number in range(100_000)]
    actual = [" ".join(long[-10:]), " ".join(f"v{number}" for number in range(10))]
    assert scores_of(CoverageMatcher(), actual, [" ".join(long)]).tolist() == [[1.0], [0.0]]


@given(text=st.lists(st.sampled_from("abcdefgh"), min_size=5, max_size=30), cut=st.integers(0, 30))
def test_a_longer_chunk_never_covers_less(text, cut):
    """Cutting a chunk at one end can only lose runs."""
    matcher = CoverageMatcher(min_run=3)
    truth = " ".join(text)
    chunks = [" ".join(text[:end]) for end in range(max(1, min(cut, len(text))), len(text) + 1)]
    shares = [matcher.similarity(truth, chunk) for chunk in chunks]
    assert all(shorter <= longer for shorter, longer in pairwise(shares))
    assert shares[-1] == 1.0


# A passage, the same passage as a chunk spells it, and how much of it words of any script find:
# those that stand in runs of five, or all where the passage is shorter.
SPELLED_OTHERWISE = [
    ("Research & development costs rose", "Research &amp; development costs rose", 0.0),
    ("Books may be kept for four weeks, films for one week",
     "Books may be kept for <b>four weeks</b>, films for one week", 5 / 11),
    ("서울은 대한민국의 수도이다", "**서울**은 대한민국의 수도이다", 0.0),
    ("The international bank pays the fee for every transfer",
     "The inter-\nnational bank pays the fee for every trans-\nfer", 6 / 9),
    ("Die Straße ist am Wochenende wegen Bauarbeiten gesperrt",
     "DIE STRASSE IST AM WOCHENENDE WEGEN BAUARBEITEN GESPERRT", 6 / 8),
    ("تُفْتَحُ المَكْتَبَةُ فِي السَّاعَةِ التَّاسِعَةِ", "تفتح المكتبة في الساعة التاسعة", 0.0),
    ("图书馆每天上午九点开门周末休息", "图书馆每天上午九点开门,周末休息", 0.0),
    # As typed, and as PDF extraction spaces it.
    ("참가 신청은 5월 3일 오전 9시부터 누리집에서 받습니다",
     "◦ 참가신청은  5월3일  오전9시부터\n\n누리 집에서 받습니다.", 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("passage", "chunk", "before"), SPELLED_OTHERWISE)
def test_a_passage_with_markup_is_the_passage(passage, chunk, before):
    """Either side may have it; "unicode", the default before, keeps what it found."""
    assert CoverageMatcher().similarity(passage, f"x\n{chunk}\ny") == 1.0
    assert CoverageMatcher().similarity(chunk, f"x\n{passage}\ny") == 1.0
    assert CoverageMatcher(tokenizer="unicode").similarity(passage, chunk) == before


# --- shorter stretches ---


@pytest.mark.parametrize(
    ("passage", "chunk", "strict", "tolerant"),
    [
        # Words 1 to 9 of 17 at their place, then "and on" and "must be kept on a lead": all but
        # "the", which is one word alone, and "terrace but", which are others.
        (RULE, RULE.replace("the terrace but", "tho torrace bat"), 14 / 17, 14 / 17),
        # Words 5 to 11 and 13 to 17 in a row; with shorter ones 1 to 3, too.
        (RULE, RULE.replace("in", "1n").replace("must", "mvst"), 12 / 17, 15 / 17),
        # One word alone between others is none, at an end it is one.
        (f"{REFUNDS} within one week", f"{REFUNDS} w1thin one wcek", 7 / 10, 7 / 10),
        (f"{REFUNDS} within one week", f"{REFUNDS} w1thin a week", 7 / 10, 8 / 10),
        # No stretch of three words: texts that are not alike.
        ("red green blue white", "red green x blue white", 0.0, 0.0),
    ],
)
def test_shorter_stretches_count_where_they_stand_if_asked_for(passage, chunk, strict, tolerant):
    found = [
        CoverageMatcher(numbers="ignore", polarity=False, tolerant=one).similarity(passage, chunk)
        for one in (False, True)
    ]
    assert found == [pytest.approx(strict), pytest.approx(tolerant)]


# --- numbers ---

REPORT = "In 2024 the revenue from lending rose by 2.5% to 1,234,567 euros"


@pytest.mark.parametrize(
    ("chunk", "held"),
    [
        (f"Report. {REPORT}.", True),
        (REPORT.replace(",", ""), True),
        (f"{REPORT.replace('2024', 'that year')}, as in 2024", True),  # in any place
        (REPORT.replace("2024", "2023"), False),
        (REPORT.replace("2.5", "2.6"), False),
        (REPORT.replace("2.5", "25"), False),
        (REPORT.replace("567", "568"), False),
        (f"{REPORT.replace('2024', '2023')} <td width=2024>", False),  # no number for a reader
    ],
)
@pytest.mark.parametrize("tokenizer", ["words", "unicode", "character", str.split])
def test_with_numbers_each_must_stand_in_the_chunk(tokenizer, chunk, held):
    """Then the similarity is as without them, else 0."""
    without, matcher = (
        CoverageMatcher(min_run=2, tokenizer=tokenizer, numbers=numbers, polarity=False)
        for numbers in (False, True)
    )
    assert without.similarity(REPORT, chunk) > 0.3
    assert matcher.similarity(REPORT, chunk) == (without.similarity(REPORT, chunk) if held else 0.0)


FIGURES = st.lists(
    st.lists(st.sampled_from(["a", "b", "1", "2", "1,000", "1000", "2.5"]), max_size=9).map(
        " ".join
    ),
    min_size=1,
    max_size=4,
)


@given(lists=st.lists(st.tuples(FIGURES, FIGURES), min_size=1, max_size=3))
@settings(max_examples=trials(50))
@quiet
def test_with_numbers_it_decides_as_with_a_matcher_of_numbers(lists):
    """``numbers=True`` and ``& NumbersMatcher()`` match the same pairs."""
    asked = [*zip(*lists, strict=True)]
    option = found(CoverageMatcher(0.5, min_run=2, numbers=True), *asked)
    both = found(CoverageMatcher(0.5, min_run=2, numbers=False) & NumbersMatcher(), *asked)
    decided = [[pair for *pair, share in rows if share >= 0.5] for rows in (option, both)]
    assert decided[0] == decided[1]


@pytest.mark.parametrize("matcher", [CoverageMatcher(numbers=True), NumbersMatcher()])
def test_several_processes_find_the_same_numbers(matcher):
    actual = [[f"In {year} we paid {year - 1000} euros"] for year in range(2000, 2020)]
    predicted = [[f"In {year} we paid 1,004 euros", *truth] for year, truth in enumerate(actual)]
    alone = per_query(matcher, actual, predicted)
    assert alone["recall"].tolist() == [1.0] * 20
    assert per_query(matcher, actual, predicted, n_jobs=2).equals(alone)


@pytest.mark.parametrize(
    ("truth", "found", "share"),
    [
        ("1,200 euros for 3 years", "3 years, 1200 euros", 1.0),
        ("1,200 euros for 3 years", "3 years, 1300 euros", 1 / 2),
        ("3, 3 and 4", "3", 1 / 2),  # different numbers
        ("3 years", "no figure", 0.0),
        ("no figure", "3 years", 1.0),
        ("3 years", "5.3 or 30", 0.0),
        (" ", "3", 0.0),  # a blank text matches nothing
    ],
)
def test_a_matcher_of_numbers_is_their_share(truth, found, share):
    assert NumbersMatcher().similarity(truth, found) == share
    assert (NumbersMatcher().threshold, NumbersMatcher(0.5).threshold) == (1.0, 0.5)


def test_texts_looked_at_in_groups_have_the_shares_they_have_together(monkeypatch):
    """As many as fit into memory at a time; here one, two or all of seven."""
    draw = random.Random(3)
    sizes = (9, 30), range(1, 8)
    lists = [[" ".join(draw.choices("abc", k=n)) for n in several] for several in sizes]
    together = pairs(CoverageMatcher(min_run=2), *lists)
    assert len({similarity for *_, similarity in together}) > 3
    for rows, tokens in ((1, 1), (7, 5), (60, 20)):
        monkeypatch.setattr(pieces, "_MOST_ROWS", rows)
        monkeypatch.setattr(pieces, "_BLOCK", tokens)
        monkeypatch.setattr(pieces, "_LOOKED_UP", tokens)
        assert pairs(CoverageMatcher(min_run=2), *lists) == together


def test_memory_does_not_grow_with_the_queries_that_share_documents():
    """Of 2,000 queries each sees 10 of the same 20 documents, all of them asked for elsewhere.

    In all they see 6,000,000 words. At a time 65,536 words or places are worked on, in some ten
    arrays of 8 bytes each: 6 MB, and as much again for what is kept.
    """
    draw = random.Random(5)
    documents = [[f"w{draw.randrange(4000)}" for _ in range(300)] for _ in range(20)]
    actual = [[" ".join(draw.choice(documents)[50:90])] for _ in range(2_000)]
    texts = [" ".join(words) for words in documents]
    assert peak_of(actual, [draw.sample(texts, 10) for _ in actual]) < 25e6


def test_memory_does_not_grow_with_the_ground_truth():
    """Each of 4,000 chunks of 150 words is asked for, and comes back elsewhere.

    The texts are 600,000 words, of which 131,072 are looked up at a time: in some ten arrays of 8
    bytes each they take 10 MB, and the words of all texts twice 2.4 MB.
    """
    draw = random.Random(5)
    words = [f"w{number}" for number in range(4000)]
    texts = [" ".join(draw.choices(words, k=150)) for _ in range(4_000)]
    assert peak_of([[text] for text in texts], [draw.sample(texts, 3) for _ in texts]) < 25e6


def peak_of(actual, predicted):
    """Return the memory that matching takes, in bytes."""
    queries = QuerySet.from_lists(actual, predicted)
    tracemalloc.start()
    try:
        CoverageMatcher().match(queries)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


TEN = "a b c d e f g h i j"
RISE = "In 2023 revenue rose by 5 percent to 12 billion"  # ten words


@pytest.mark.parametrize(
    ("truth", "document", "min_run", "expected"),
    [
        (TEN, "c d e f g", 5, 1.0),  # all five words of the document
        (TEN, "c d e f x y", 2, 4 / 6),  # c-f of six words; of the ground truth, 4/10
        (TEN, "c d e f", 5, 0.0),  # shorter than a run: asked of the ground truth, no run of 5
        (TEN, "c d e f", 4, 1.0),
        (TEN, "d a b c d e k l m n", 5, 5 / 10),  # as long: asked of the ground truth, a-e
        ("c d e", TEN, 5, 1.0),  # the ground truth is shorter, and occurs as a whole
        ("c d x", TEN, 5, 0.0),
        ("a b c d", "a b c", 5, 0.0),  # both shorter than a run
        (TEN, "a b c a b c", 3, 1.0),  # each word of the document is one of a-c; 3/10 of ten
        (TEN, "!", 1, 0.0),
    ],
)
def test_the_shorter_text_is_held_in_either_direction(truth, document, min_run, expected):
    """The shorter text of a pair is asked how much of it the longer one holds; by hand."""
    matcher = CoverageMatcher(min_run=min_run, direction="either")
    assert matcher.similarity(truth, document) == expected
    assert scores_of(matcher, [truth], [document]).tolist() == [[expected]]


@pytest.mark.parametrize(
    ("document", "either", "ground_truth"),
    [
        # All five words, and 5 is there; the ground truth lacks 2023 and 12.
        ("revenue rose by 5 percent", 1.0, 0.0),
        # Three of five words ("percent" alone is no run), but 7 is nowhere.
        ("revenue rose by 7 percent", 0.0, 0.0),
        # Longer than the ground truth, of which 9 of 10 words and not all numbers are there.
        ("2023 revenue rose by 5 percent to 13 billion, and so on and on", 0.0, 0.0),
        # Likewise, with all numbers: In 2023 revenue | rose by 5 percent to 12 billion.
        ("In 2023 revenue, we say, rose by 5 percent to 12 billion", 1.0, 1.0),
    ],
)
def test_the_shorter_text_has_the_numbers(document, either, ground_truth):
    for direction, expected in (("either", either), ("ground_truth", ground_truth)):
        matcher = CoverageMatcher(min_run=2, numbers=True, direction=direction)
        assert matcher.similarity(RISE, document) == expected


def test_token_metrics_ask_of_the_ground_truth_in_either_direction():
    """Five of its ten words; all five of the document are useful."""
    either = CoverageMatcher(direction="either")
    evaluator = OfflineRetrievalEvaluator([[TEN]], [["c d e f g"]], either)
    assert evaluator.calculate_recall() == {"micro_recall": 1.0, "macro_recall": 1.0}
    assert evaluator.calculate_token_recall()["macro_token_recall"] == 0.5
    assert evaluator.calculate_token_precision()["macro_token_precision"] == 1.0


class Squared(CoverageMatcher):
    """A class of the user's own that scores blocks in its way."""

    name = "squared"

    def block_scorer(self, texts):
        score = super().block_scorer(texts)
        return lambda actual, predicted: score(actual, predicted) ** 2


@pytest.mark.filterwarnings("ignore:The matcher squared")
def test_a_class_of_ones_own_scores_pairs_in_its_way():
    """Nine of ten words, squared; of the words themselves nine are there."""
    ten, nine = "a b c d e f g h i j", "a b c d e f g h i"
    evaluator = OfflineRetrievalEvaluator([[ten]], [["x", nine]], matcher=Squared(threshold=0.85))
    assert Squared().similarity(ten, nine) == pytest.approx(0.81)
    assert evaluator.calculate_recall() == {"micro_recall": 0.0, "macro_recall": 0.0}
    assert evaluator.with_threshold(0.8).calculate_recall()["macro_recall"] == 1.0
    assert evaluator.calculate_token_recall()["macro_token_recall"] == 0.9
