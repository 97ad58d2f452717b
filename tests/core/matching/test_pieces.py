"""Pieces of a passage, together and word by word: the product against the definition.

The definition is ``reference_pieces``; the first part derives its values by hand, so that it can be
trusted, the rest compares the product with it.
"""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from reference import no_advice
from reference_pieces import (
    METRICS,
    OF_WORDS,
    Found,
    Query,
    Rules,
    averages,
    in_letters,
    overlapping_case,
    random_case,
)
from trials import trials, tries_fewer

from krag_eval import METRICS as REGISTERED, AnyOf, CoverageMatcher, OfflineRetrievalEvaluator

CUTOFFS = [1, 2, 3, 5, None]
PAIRS = Rules(threshold=0.8, min_run=2, union=True)
N_CASES = trials(300)

# A failure names its seed; a test for each would be thousands.
in_blocks = pytest.mark.parametrize(
    "seeds", [range(first, min(first + 50, N_CASES)) for first in range(0, N_CASES, 50)], ids=str
)

either_way = pytest.mark.parametrize("union", [False, True], ids=["one_chunk", "union"])


def found(items, documents, rules=PAIRS, k=None, *, grades=()):
    """Return what is found for one query, its texts written with spaces.

    An item is a text, or a list of interchangeable ones.
    """
    texts = [[item] if isinstance(item, str) else item for item in items]
    query = Query(
        [[text.split() for text in item] for item in texts],
        [document.split() for document in documents],
        list(grades),
    )
    return Found(query, rules, k)


def values(one, *names):
    """Return some metrics of what was found for a query."""
    return tuple(METRICS[name](one) for name in names)


# --- the definition, by hand -----------------------------------------------------------------


ALONE = Rules(0.8, 2)
HALF, WHOLE = replace(PAIRS, threshold=0.5), replace(PAIRS, threshold=1.0)
SHORT = Rules(0.3, 5, union=True)
A_TO_F, IN_THREE = ["a b c d e f"], ["a b c x", "y c d", "e f z"]
EITHER = [["a b c d", "e f g h"]]
IN_TURNS = ["a b", "e f", "c d", "g h"]
NAN = math.nan


@pytest.mark.parametrize(
    ("items", "documents", "rules", "k", "expected"),
    [
        # Of a-f the documents hold abc, cd and ef: 3/6, 4/6 and 6/6 together, enough at rank 3;
        # each adds something. First rank 3; P(3) = 3/3; gain 1 / log2(4) of 1 / log2(2). Of the
        # first n = 1 documents none is relevant. RBP 0.2 (1 + 0.8 + 0.64). 10 tokens read. New:
        # abc, d, ef. Useful: abc; cd; ef. N = min(3, 3) + min(1, 2) + min(2, 2).
        (A_TO_F, IN_THREE, PAIRS, None, {
            "first": [3], "relevant": [1, 2, 3], "hits": [(3, 1.0)], "precision": 1.0,
            "recall": 1.0, "rank": 3.0, "reciprocal_rank": 1 / 3, "average_precision": 1.0,
            "ndcg": 0.5, "r_precision": 0.0, "rbp(p=0.8)": 0.488, "token_recall": 1.0,
            "token_precision": 6 / 10, "token_iou": 6 / 10, "redundancy": 1 - 6 / 7,
        }),
        # At 2, abc and cd are 4/6 of a-f, below 0.8: nothing is relevant, but words are held. 7
        # tokens read, 4 of 6 held, N = 3 + min(1, 2).
        (A_TO_F, IN_THREE, PAIRS, 2, {
            "relevant": [], "precision": 0.0, "recall": 0.0, "ndcg": 0.0, "success": 0.0,
            "rank": NAN, "token_recall": 4 / 6, "token_precision": 4 / 7,
            "token_iou": 4 / (7 + 6 - 4), "redundancy": 1 - 4 / 5,
        }),
        # One chunk alone must hold enough without union: the best of the three holds 3/6; a
        # fourth that holds all is the first rank. Words do not ask for a threshold: 4 + 3 + 3 + 6
        # read, N = 3 + 1 + 2 + min(0, 6), useful 3 + 2 + 2 + 6.
        (A_TO_F, IN_THREE, ALONE, None, {"relevant": []}),
        (A_TO_F, [*IN_THREE, "a b c d e f"], ALONE, None, {
            "first": [4], "relevant": [4], "hits": [(4, 1.0)], "precision": 0.25,
            "average_precision": 0.25, "token_recall": 1.0, "token_precision": 6 / 16,
            "redundancy": 1 - 6 / 13,
        }),
        # A document that adds nothing is no piece: the second of abc, ab, def. P(3) = 2/3.
        (A_TO_F, ["a b c", "a b", "d e f"], PAIRS, None, {
            "first": [3], "relevant": [1, 3], "precision": 2 / 3, "average_precision": 2 / 3,
        }),
        # Of ten words six, then eight are there: rank 2. The last two add, but too late.
        (["a b c d e f g h i j"], ["a b c d e f", "g h", "i j"], PAIRS, None, {
            "first": [2], "relevant": [1, 2], "hits": [(2, 0.8)], "precision": 2 / 3,
            "average_precision": 1.0, "token_recall": 1.0,
        }),
        # Complete at rank 2; rank 3 alone holds enough, rank 4 a part that is too small. N = 2 + 2
        # of 10 read, and of 10 useful.
        (["a b c d"], ["a b", "c d", "a b c d", "a b"], PAIRS, None, {
            "first": [2], "relevant": [1, 2, 3], "hits": [(2, 1.0), (3, 1.0)],
            "token_precision": 0.4, "redundancy": 0.6,
        }),
        # At 0.5, rank 1 completes a-f with abc; rank 2 holds the same half and is relevant too.
        (A_TO_F, ["a b c", "a b c x"], HALF, None, {
            "first": [1], "relevant": [1, 2], "hits": [(1, 0.5), (2, 0.5)],
        }),
        # Half of each alternative is no whole: the first is complete at 3, the second too late.
        # P(3) = 2/3; 2 of 4 documents. Both are held wholly, so the first counts: ab and cd of 8
        # tokens, none useful twice. At 2 half of each: the first of equals.
        (EITHER, IN_TURNS, WHOLE, None, {
            "first": [3], "relevant": [1, 3], "precision": 0.5, "average_precision": 2 / 3,
            "token_recall": 1.0, "token_precision": 0.5, "token_iou": 4 / (8 + 4 - 4),
            "redundancy": 0.0,
        }),
        (EITHER, IN_TURNS, WHOLE, 2, {"token_recall": 0.5, "token_precision": 0.5}),
        # Rank 3 ends both alternatives; rank 1 is a piece of one, rank 2 of the other.
        (EITHER, ["a b", "e f", "c d g h"], PAIRS, None, {"first": [3], "relevant": [1, 2, 3]}),
        # Of alternatives the share decides, not the number of words. At 1, 4 of 8 words; at 2 the
        # other, of one word, is there: 4/(8 + 2), then 1/(1 + 2), and with it the first document
        # is of no use any more.
        ([["a b c d e f g h", "x"], "p q"], ["a b c d", "x"], ALONE, 1,
         {"token_recall": 4 / 10, "token_precision": 1.0}),
        ([["a b c d e f g h", "x"], "p q"], ["a b c d", "x"], ALONE, 2,
         {"token_recall": 1 / 3, "token_precision": 1 / 5, "redundancy": 0.0}),
        # Half of each, so the first counts: of six tokens read two are of it. 2 / (6 + 4 - 2).
        ([["a b c d", "e f g h i j k l"]], ["a b", "e f g h"], PAIRS, None,
         {"token_recall": 2 / 4, "token_precision": 2 / 6, "token_iou": 2 / 8}),
        # Words that stand twice in the passage are read once: "a b" holds four of five positions
        # with two tokens: new 4, useful 2. 2 / (2 + 5 - 4).
        (["a b x a b"], ["a b"], PAIRS, None, {
            "token_recall": 4 / 5, "token_precision": 1.0, "token_iou": 2 / 3, "redundancy": 0.0,
        }),
        # Twice in the document they are redundant, "b a" being no run of "a b".
        (["a b"], ["a b a b"], PAIRS, None, {
            "token_recall": 1.0, "token_precision": 0.5, "token_iou": 2 / 4, "redundancy": 0.5,
        }),
        # Three useful tokens, "a b c", hold the four positions of two items. 3 / (3 + 4 - 4).
        (["a b", "b c"], ["a b c"], PAIRS, None, {
            "token_recall": 1.0, "token_precision": 1.0, "token_iou": 1.0, "redundancy": 0.0,
        }),
        # Passages of ten and eleven words that overlap by ten: the first document brings the first
        # eight to both, the second two more. N = 8 + 2 of 12 read and 12 useful; 10 / (12 + 1).
        (["a b c d e f g h i j", "a b c d e f g h i j k"], ["a b c d e f g h", "g h i j"],
         ALONE, None, {
            "token_recall": 20 / 21, "token_precision": 10 / 12, "token_iou": 10 / 13,
            "redundancy": 2 / 12,
        }),
        # Of the second document "d" is new to one passage, "d e" to the other: two words. Of seven
        # words read, all of which are in runs, N = 3 + 2.
        (["a b c d", "b c d e"], ["a b c", "b c d e"], ALONE, None, {
            "token_recall": 1.0, "token_precision": 5 / 7, "redundancy": 2 / 7,
        }),
        # The run "a b" brings "a" and "b" at 3 and 4, the run "b c" brings "c" at 5, and the run
        # "c d", which is first met at 0, "d" at 1: four words of nine read and six in runs.
        (["a b c d"], ["c d x a b c d y z"], ALONE, None, {
            "token_precision": 4 / 9, "redundancy": 2 / 6,
        }),
        # Of a copy each word is of use, whatever repeats in it: the runs "a b", "b c", "c d" and
        # "d a" are followed by "a b" at its second place, and so on.
        (["a b c d a b c d"], ["x a b c d a b c d"], ALONE, None, {
            "token_precision": 8 / 9, "token_iou": 8 / 9, "redundancy": 0.0,
        }),
        # Nor does the second "a b" stand where the first does. Four of five words on both sides.
        (["a b q a b"], ["a b z a b"], ALONE, None, {
            "token_precision": 4 / 5, "token_recall": 4 / 5, "redundancy": 0.0,
        }),
        # "a b" is met at 0, "b a" at 1, and the last word by "a b" again, at 1: three words.
        (["a b a b"], ["a b a"], ALONE, None, {
            "token_recall": 1.0, "token_precision": 1.0, "redundancy": 0.0,
        }),
        # The same four words twice: 4 new of 8 useful, and of 8 read.
        (["a b c d"], ["a b c d", "a b c d"], PAIRS, None, {
            "relevant": [1, 2], "token_precision": 0.5, "token_iou": 0.5, "redundancy": 0.5,
        }),
        # At threshold 0 nothing held is not enough; two of three words are above 0.
        (["a b c"], ["x y", "a b"], replace(PAIRS, threshold=0.0), None,
         {"first": [2], "relevant": [2], "hits": [(2, 2 / 3)]}),
        # A text shorter than a run must occur as a whole: its words, one in each, do not make it.
        (["5 euros"], ["5", "euros", "euros 5"], SHORT, None, {"relevant": []}),
        (["5 euros"], ["5", "euros", "it is 5 euros"], SHORT, None, {
            "first": [3], "relevant": [3], "token_recall": 1.0, "token_precision": 2 / 6,
        }),
        # A blank item counts and is never found; a blank alternative is none; nothing is divided.
        (["", ["", "a b c d"]], ["", "a b"], PAIRS, None,
         {"n": 2, "relevant": [], "token_recall": 0.5, "token_precision": 1.0}),
        # "a b c d" is looked for, though as much is held of the blank text: 2 of 4 + 2.
        ([["", "a b c d"], "e f"], ["e f"], PAIRS, None, {"token_recall": 2 / 6}),
        ([""], [""], PAIRS, None, {
            "token_recall": 0.0, "token_precision": 0.0, "token_iou": 0.0, "redundancy": NAN,
        }),
        # Nothing retrieved.
        (["a b"], [], PAIRS, None, {**dict.fromkeys(METRICS, 0.0), "rank": NAN, "redundancy": NAN}),
    ],
)  # fmt: skip
def test_the_definition_by_hand(items, documents, rules, k, expected):
    """First ranks, relevant documents, hits of the first item, and metrics."""
    one = found(items, documents, rules, k)
    for name, wanted in expected.items():
        if name in METRICS:
            assert METRICS[name](one) == pytest.approx(wanted, nan_ok=True), name
        else:
            assert (one.hits(0) if name == "hits" else getattr(one, name)) == wanted, name


def test_items_that_share_a_document_queue_for_places():
    """Both are complete at 3; the grade 2 takes place 3, the other 4."""
    one = found(["a b c d", "e f g h"], ["a b", "e f", "c d g h"], WHOLE, grades=[1, 2])
    assert (one.first, one.relevant) == ([3, 3], [1, 2, 3])
    # Gains are 2**grade - 1.
    gained = 3 / math.log2(4) + 1 / math.log2(5)
    assert values(one, "ndcg") == pytest.approx((gained / (3 + 1 / math.log2(3)),))
    # P(3) = 3/3, twice; of the first n = 2 documents none completes anything.
    assert values(one, "average_precision", "r_precision") == (1.0, 0.0)


def test_repeats_and_items_of_grade_0_are_not_there():
    """The second says what the first does, in another order; the third is no ground truth."""
    items = [["a b", "c d"], ["c d", "a b"], "x y"]
    one = found(items, ["x y", "a b"], grades=[2, 2, 0])
    assert (one.n, one.first, one.relevant) == (1, [2], [2])
    assert values(one, "token_recall", "token_precision") == (1.0, 0.5)


def test_averages_of_words():
    """2 of 4 words in 2 read, 3 of 3 in 6 read, and nothing retrieved of one."""
    founds = [
        found(["a b c d"], ["a b"]),
        found(["e f g"], ["e f g", "e f g"]),
        found(["h"], []),
    ]
    found_averages = averages(founds)
    # N is 2 and 3; intersection over union 2 / (2 + 4 - 2), 3 / (6 + 3 - 3) and 0 / 1.
    expected = {
        "micro_token_recall": 5 / 8,
        "macro_token_recall": (0.5 + 1 + 0) / 3,
        "micro_token_precision": 5 / 8,
        "macro_token_precision": (1 + 0.5 + 0) / 3,
        "token_iou": (0.5 + 0.5 + 0) / 3,
        "redundancy": (0 + 0.5) / 2,  # undefined for the last
    }
    assert {name: found_averages[name] for name in expected} == pytest.approx(expected)


def test_letters_behind_a_number_go_with_it():
    """Of 가나3다라마바 and the same with a 7, 가나 is held, 다라 goes with the 3, and 마바 stays.

    Behind the 7 the document reads 다라, which is of no use: two runs of two hold four of seven.
    """
    rules = Rules(0.5, 2, letters=True)
    one = found(["가 나 3 다 라 마 바"], ["가 나 7 다 라 마 바"], rules)
    assert one.similarity(0, 1) == 4 / 7
    # Four new of seven read; the rest of both is seven less four, twice.
    assert values(one, "token_recall", "token_precision", "redundancy") == (4 / 7, 4 / 7, 0.0)
    # A passage without the number may stand behind any: it is whole, and wholly of use.
    rest = found(["다 라 마 바"], ["가 나 7 다 라 마 바"], rules)
    assert values(rest, "token_recall", "token_precision") == (1.0, 4 / 7)
    # Words are no amounts: here the run behind the 7 is 다 라 마 바.
    words = found(["가 나 3 다 라 마 바"], ["가 나 7 다 라 마 바"], replace(rules, letters=False))
    assert words.similarity(0, 1) == 6 / 7


# --- the product -----------------------------------------------------------------------------


def cases(seeds, **rules):
    """Yield random cases, under other rules than their own where given."""
    for seed in seeds:
        case = random_case(seed)
        yield replace(case, rules=replace(case.rules, **rules))


def evaluator_of(case):
    """Return the evaluator of a case; its texts are tokens between spaces."""
    rules = case.rules
    options = {"numbers": "ignore", "polarity": False}
    options |= {"union": True} if rules.union else {}
    return OfflineRetrievalEvaluator(
        [list(map(item_of, query.items, query.grades)) for query in case.queries],
        [[" ".join(document) for document in query.documents] for query in case.queries],
        matcher=CoverageMatcher(
            rules.threshold, rules.min_run, "letters" if rules.letters else "whitespace", **options
        ),
        matching_criteria="all" if case.all_items else "partial",
        no_ground_truth="skip" if case.skip else "zero",
        grade_key="grade",
    )


def item_of(texts, grade):
    """Return an item as the evaluator takes it."""
    documents = [{"page_content": " ".join(text), "metadata": {"grade": grade}} for text in texts]
    return documents[0] if len(documents) == 1 else AnyOf(documents)


def evaluated(case, cutoffs=CUTOFFS):
    """Return the result of a case, with all metrics there are."""
    known = [
        one.name
        for one in REGISTERED.values()
        if not (one.needs_judged or one.needs_aspects or one.needs_list)
    ]
    metrics = list(dict.fromkeys([*known, *OF_WORDS]))
    with no_advice():
        return evaluator_of(case).evaluate(k=cutoffs, metrics=metrics)


def close(value):
    """Return what equals a value but for rounding."""
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


def assert_agrees(case):
    """Check every value and average of the product against the definition."""
    result = evaluated(case)
    defined = dict(METRICS)
    if not case.all_items:
        defined["hit_rate"] = METRICS["success"]
    for k in CUTOFFS:
        founds = [Found(query, case.rules, k) for query in case.queries]
        for name in result.keys:
            expected = [defined[name](found) for found in founds]
            assert result.tables[k][name].tolist() == close(expected), (case.seed, name, k)
        expected = averages([found for found in founds if found.n or not case.skip])
        if not case.all_items:
            expected["hit_rate"] = expected["success"]
        averaged = result.averages(k)
        for key, value in expected.items():
            assert averaged[key] == close(value), (case.seed, key, k)


@tries_fewer
@in_blocks
@either_way
def test_agrees_with_the_definition(seeds, union):
    """Every metric and average, at every cutoff: repeats, overlaps, alternatives, short items."""
    for case in cases(seeds, union=union):
        assert_agrees(case)


@tries_fewer
@in_blocks
@either_way
def test_agrees_with_the_definition_by_letters(seeds, union):
    """The same where some tokens are numbers, with which the letters behind them go."""
    for case in cases(seeds, union=union):
        assert_agrees(in_letters(case))


@tries_fewer
@in_blocks
def test_agrees_with_the_definition_where_passages_overlap(seeds):
    """Passages and chunks cut from one text at many places, as annotators and splitters do."""
    for seed in seeds:
        assert_agrees(overlapping_case(seed))


@either_way
def test_agrees_with_the_definition_at_threshold_0(union):
    """Nothing held is no match, anything held is one."""
    for case in cases(range(N_CASES, N_CASES + 30), union=union, threshold=0.0):
        assert_agrees(case)


@tries_fewer
@in_blocks
def test_shares_are_bounded_and_union_finds_what_one_chunk_finds(seeds):
    """All metrics but the rank are in [0, 1], whatever overlaps or repeats.

    A document is relevant exactly where an item is covered, and words do not depend on union.
    """
    for case in cases(seeds, union=True):
        result = evaluated(case)
        alone = evaluated(replace(case, rules=replace(case.rules, union=False)))
        for k in CUTOFFS:
            table = result.tables[k]
            assert ((table["relevant"] > 0) == (table["covered"] > 0)).all(), (case.seed, k)
            assert (table["recall"] >= alone.tables[k]["recall"]).all(), (case.seed, k)
            for name in ("token_recall", "token_precision", "token_iou", "redundancy"):
                assert table[name].tolist() == close(alone.tables[k][name].tolist()), case.seed
            for name in result.keys.keys() - {"rank"}:
                column = result.tables[k][name].tolist()
                known = [value for value in column if not math.isnan(value)]
                assert all(0 <= value <= 1 for value in known), (case.seed, name, k)


@tries_fewer
@in_blocks
def test_token_recall_never_falls_with_k(seeds):
    """Without alternatives, which may differ in length."""
    for seed in seeds:
        result = evaluated(random_case(seed, alternatives=False))
        for fewer, more in pairwise([result.tables[k]["token_recall"] for k in CUTOFFS]):
            assert (more >= fewer).all(), seed


@tries_fewer
@in_blocks
def test_of_a_copy_every_word_is_useful(seeds):
    """Whatever repeats in a passage, one document that has it whole brings each of its words once.

    Of another copy nothing is new: half of what both have in runs is redundant.
    """
    for seed in seeds:
        case = random_case(seed, alternatives=False)
        texts = [text for query in case.queries for [text] in query.items if text]
        queries = [Query([[text]], [["x", *text, "y"]] * 2, [1.0]) for text in texts]
        if not queries:
            continue
        result = evaluated(replace(case, queries=queries), [1, 2])
        useful = result.tables[1]["tokens_useful"].tolist()
        assert useful == result.tables[2]["tokens_useful"].tolist() == [*map(len, texts)], seed
