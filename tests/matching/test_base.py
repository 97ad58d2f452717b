"""Matchers of a user's own: what they may define, what they are given, what is checked."""

from __future__ import annotations

import copy
import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document

from krag_eval import (
    AnyOf,
    CoverageMatcher,
    ExactTextMatcher,
    KeyMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
    TextMatcher,
)
from krag_eval.documents import QuerySet, text_of
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.matching.base import resolve_matcher
from krag_eval.matching.joins import KeyJoin


def evaluated(matcher, actual, predicted, **options):
    """Return the per-query table over all retrieved documents."""
    return (
        OfflineRetrievalEvaluator(actual, predicted, matcher, **options).evaluate(None).per_query()
    )


def pairs(matcher, actual, predicted):
    """Return what a matcher returns for one query: (item, rank, similarity)."""
    matches = matcher.match(QuerySet.from_lists([actual], [predicted]))
    return list(
        zip(matches.item.tolist(), matches.rank.tolist(), matches.similarity.tolist(), strict=True)
    )


class Overlap(Matcher):
    """The share of the ground truth's letters that the predicted text has."""

    def similarity(self, actual, predicted):
        wanted = set(actual.page_content)
        return len(wanted & set(predicted.page_content)) / len(wanted)


class Recording(Matcher):
    """Keeps the pairs it is given."""

    def __init__(self):
        self.pairs = []

    def similarity(self, actual, predicted):
        self.pairs.append((actual, predicted))
        return 1.0


class Prepared(Matcher):
    """The same share, from sets of letters made once per text."""

    def __init__(self):
        self.prepared = []

    def prepare(self, text):
        """Return the letters."""
        self.prepared.append(text)
        return frozenset(text)

    def similarity(self, actual, predicted):
        return len(actual & predicted) / len(actual)


class Batched(Overlap):
    """Scores all pairs of a query at once, and keeps the shapes."""

    def __init__(self):
        self.shapes = []

    def similarities(self, actual, predicted):
        """Return the shares as a list of lists."""
        self.shapes.append((len(actual), len(predicted)))
        return [[self.similarity(truth, document) for document in predicted] for truth in actual]


class Returning(Matcher):
    """Returns whatever it was made with for all pairs together."""

    def __init__(self, scores):
        self.scores = scores

    def similarity(self, actual, predicted):
        raise AssertionError("asked pair by pair")

    def similarities(self, actual, predicted):
        """Return the scores."""
        return self.scores


# --- similarity alone ------------------------------------------------------------------------


def test_one_method_is_enough():
    """Half of the letters of "ab" in "ax", all in "bab", none in "x"; the threshold is 0.5."""
    assert pairs(Overlap(), ["ab"], ["x", "ax", "bab"]) == [(0, 2, 0.5), (0, 3, 1.0)]
    assert evaluated(Overlap(), [["ab"]], [["x", "ax"]])["reciprocal_rank"].tolist() == [0.5]


def test_similarity_receives_langchain_documents():
    """Whatever was passed; a Document is the very object."""
    matcher = Recording()
    document = Document("b", metadata={"page": 1})
    evaluated(matcher, [["a"]], [[document, {"page_content": "c", "id": 5}]])
    assert all(isinstance(one, Document) for pair in matcher.pairs for one in pair)
    assert [predicted.page_content for _, predicted in matcher.pairs] == ["b", "c"]
    assert matcher.pairs[0][1] is document
    assert matcher.pairs[1][1].id == "5"


def test_truth_comes_first():
    """Ground truth, then predicted, never the other way round."""
    matcher = Recording()
    evaluated(matcher, [["a1", "a2"]], [["p1", "p2"]])
    assert [(a.page_content, p.page_content) for a, p in matcher.pairs] == [
        ("a1", "p1"),
        ("a1", "p2"),
        ("a2", "p1"),
        ("a2", "p2"),
    ]


def test_only_pairs_of_one_query_are_compared():
    """Never across queries."""
    matcher = Recording()
    evaluated(matcher, [["a"], ["b"]], [["p"], ["q"]])
    assert [(a.page_content, p.page_content) for a, p in matcher.pairs] == [("a", "p"), ("b", "q")]


def test_nothing_retrieved_is_nothing_to_compare():
    """Nor is a query without ground truth; the others are."""
    matcher = Recording()
    table = evaluated(matcher, [["a"], [], ["b"]], [[], ["p"], ["q"]], no_ground_truth="zero")
    assert table["covered"].tolist() == [0, 0, 1]
    assert len(matcher.pairs) == 1


def test_blank_documents_are_the_matcher_s_business():
    """A matcher that sees documents may compare something else than their texts."""

    class SamePage(Matcher):
        """Compares metadata."""

        def similarity(self, actual, predicted):
            return float(actual.metadata == predicted.metadata)

    one, other = Document("", metadata={"page": 1}), Document(" ", metadata={"page": 1})
    assert evaluated(SamePage(), [[one]], [[other]])["recall"].tolist() == [1.0]


def test_the_same_document_twice_is_one_item():
    """In any form."""
    with pytest.warns(KragEvalWarning, match="^2 ground-truth documents repeat another"):
        table = evaluated(Overlap(), [["a", Document("a"), {"page_content": "a"}]], [["a"]])
    assert table["ground_truth"].tolist() == [1]


def test_documents_that_differ_in_metadata_are_two_items():
    """A matcher that sees documents may tell them apart."""
    one, other = (Document("a", metadata={"page": page}) for page in (1, 2))
    assert evaluated(Overlap(), [[one, other]], [["a"]])["ground_truth"].tolist() == [2]


def test_the_best_alternative_counts():
    """A quarter of "abcd", half of "ax", nothing of "y": half."""
    item = AnyOf(["abcd", "ax", "y"])
    assert pairs(Overlap(), [item, "a"], ["za"]) == [(0, 1, 0.5), (1, 1, 1.0)]


def test_alternatives_among_plain_items_keep_the_items_apart():
    """Items before and after one with alternatives have their own pairs."""
    assert pairs(Overlap(), ["a", AnyOf(["b", "c"]), "d"], ["d", "c", "a"]) == [
        (0, 3, 1.0),
        (1, 2, 1.0),
        (2, 1, 1.0),
    ]


def test_alternatives_of_a_query_with_nothing_retrieved():
    """They find nothing."""
    matches = Overlap().match(QuerySet.from_lists([[AnyOf(["a", "b"])], ["a"]], [[], ["a"]]))
    assert (matches.item.tolist(), matches.rank.tolist()) == ([1], [1])


def test_a_matcher_without_similarity_cannot_be_made():
    """Python says what is missing."""

    class Nothing(Matcher):
        """Implements nothing."""

    with pytest.raises(TypeError, match="similarity"):
        Nothing()


# --- prepare ---------------------------------------------------------------------------------


def test_a_matcher_prints_as_what_it_does():
    """Its class, settings and threshold; a matcher without a threshold to choose shows none."""
    shown = repr(CoverageMatcher(threshold=0.7))
    assert (
        shown
        == "<CoverageMatcher coverage(min_run=5,tokenizer=auto(words,letters)), threshold 0.7>"
    )
    assert repr(ExactTextMatcher()) == "<ExactTextMatcher text>"


def test_prepare_runs_once_per_distinct_text():
    """However many documents and queries have it, on both sides."""
    matcher = Prepared()
    evaluated(matcher, [["a", "b"], ["a"]], [["a", "c", "c"], ["c", Document("b")]])
    assert sorted(matcher.prepared) == ["a", "b", "c"]


def test_what_prepare_returned_is_compared():
    """With the result that comparing documents has."""
    lists = [["ab", AnyOf(["cd", "ef"])]], [["ax", "fe", "x"]]
    assert evaluated(Prepared(), *lists).equals(evaluated(Overlap(), *lists))


def test_prepare_sees_one_spelling():
    """NFC, whatever came."""
    matcher = Prepared()
    table = evaluated(matcher, [["서울"]], [[unicodedata.normalize("NFD", "서울")]])
    assert matcher.prepared == ["서울"]
    assert table["recall"].tolist() == [1.0]


def test_prepare_never_sees_a_blank_text():
    """It matches nothing; one warning counts them."""
    matcher = Prepared()
    with pytest.warns(
        KragEvalWarning, match="^1 ground-truth and 2 predicted documents have empty"
    ):
        table = evaluated(matcher, [["a", ""]], [[" ", "a", "\n"]])
    assert matcher.prepared == ["a"]
    assert table["covered"].tolist() == [1]


# --- batched similarities --------------------------------------------------------------------


def test_similarities_may_be_computed_together():
    """One call per query that has any, with the shape (ground truth, predicted)."""
    matcher = Batched()
    lists = [["ab", "c"], ["d"], ["e"]], [["a", "c", "x"], [], ["e"]]
    assert evaluated(matcher, *lists).equals(evaluated(Overlap(), *lists))
    assert matcher.shapes == [(2, 3), (1, 1)]


def test_batched_similarities_see_every_alternative():
    """The best of them is taken afterwards."""
    matcher = Batched()
    evaluated(matcher, [[AnyOf(["a", "b"]), "c"]], [["a", "b"]])
    assert matcher.shapes == [(3, 2)]


@pytest.mark.parametrize(
    "scores", [[[1.0, 0.25]], ((1, 0.25),), np.array([[1.0, 0.25]]), np.float32([[1.0, 0.25]])]
)
def test_similarities_may_be_anything_like_an_array(scores):
    """Lists, tuples, arrays of any number type."""
    assert pairs(Returning(scores), ["a"], ["p", "q"]) == [(0, 1, 1.0), (0, 2, 0.25)]


@pytest.mark.parametrize(
    ("scores", "shape"),
    [
        ([[1.0]], r"\(1, 1\)"),
        ([1.0, 0.25], r"\(2,\)"),
        ([[1.0], [0.25]], r"\(2, 1\)"),
        (1.0, r"\(\)"),
        ([], r"\(0,\)"),
    ],
)
def test_similarities_of_another_shape_are_refused(scores, shape):
    """The message names the matcher, the shape wanted, and the one that came."""
    with pytest.raises(
        ValueError, match=rf"^matcher Returning\(.*\): .* must have the shape \(1, 2\), got {shape}"
    ):
        pairs(Returning(scores), ["a"], ["p", "q"])


def test_similarities_of_uneven_rows_are_refused_by_name():
    """Numpy's own remark does not say whose they are."""
    with pytest.raises(ValueError, match="matcher Returning"):
        pairs(Returning([[1.0, 0.5], [0.5]]), ["a", "b"], ["p", "q"])


@pytest.mark.parametrize(
    "scores",
    [
        [[0.5 + 0.5j]],
        np.array([[0.5 + 0j]]),
        np.array([[np.complex64(0.5)]], object),
        [["0.5"]],
        np.array([["0.5"]], object),
        np.array([["2024-01-01"]], "M8[D]"),
    ],
)
def test_similarities_that_are_not_real_are_refused_by_name(scores):
    """Numpy would drop the imaginary part, and read a text."""
    with pytest.raises(ValueError, match=r"matcher Returning.*must be real"):
        pairs(Returning(scores), ["a"], ["p"])


# --- what a similarity may be ----------------------------------------------------------------


class Given(Matcher):
    """Returns one value for every pair."""

    def __init__(self, value):
        self.value = value

    def similarity(self, actual, predicted):
        return self.value


@pytest.mark.parametrize("value", [1, True, np.float32(1.0), np.int64(1), Fraction(1), Decimal(1)])
def test_a_similarity_may_be_any_number(value):
    """Whole, boolean, numpy's."""
    assert pairs(Given(value), ["a"], ["p"]) == [(0, 1, 1.0)]


@pytest.mark.parametrize("value", [math.nan, -1e-9, 1 + 1e-9, math.inf, -math.inf])
def test_a_similarity_out_of_range_is_refused(value):
    """Never clipped: the matcher is wrong, or is a distance."""
    with pytest.raises(
        ValueError, match=r"^matcher Given\(value=.*\): a similarity must be a number from 0 to 1"
    ):
        pairs(Given(value), ["a"], ["p"])


def test_the_message_says_which_pair_is_out_of_range():
    """The matcher, the number, the query and both documents."""

    class Wrong(Matcher):
        """Is wrong about one pair of the second query."""

        def similarity(self, actual, predicted):
            return 2.0 if (actual.page_content, predicted.page_content) == ("b", "y") else 0.0

    with pytest.raises(
        ValueError,
        match=r"matcher Wrong: .* got 2\.0 for actual_docs\[1\]\[1\] and predicted_docs\[1\]\[2\]",
    ):
        evaluated(Wrong(), [["q"], ["a", "b"]], [["p"], ["w", "x", "y"]])


def test_the_message_counts_items_and_not_their_alternatives():
    """The third text of the ground truth is ``actual_docs[0][1]``: the first item has two."""

    class Wrong(Matcher):
        """Is wrong about one text."""

        def similarity(self, actual, predicted):
            return 2.0 if actual.page_content == "c" else 0.0

    with pytest.raises(ValueError, match=r"actual_docs\[0\]\[1\] and predicted_docs\[0\]\[0\]"):
        evaluated(Wrong(), [[AnyOf(["a", "b"]), "c"]], [["p"]])


@pytest.mark.parametrize(
    "value", [None, "high", [1.0], "0.7", 0.5 + 1j, np.complex128(0.5), np.array(0.5j)]
)
def test_a_similarity_that_is_no_number_is_refused_by_name(value):
    """Nothing is parsed; the message names the matcher."""
    with pytest.raises((TypeError, ValueError), match="matcher Given"):
        pairs(Given(value), ["a"], ["p"])


def test_an_error_inside_a_matcher_is_the_user_s_to_see():
    """It comes through as it is."""

    class Broken(Matcher):
        """Divides by zero."""

        def similarity(self, actual, predicted):
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        pairs(Broken(), ["a"], ["p"])


def test_a_failed_match_can_be_repeated():
    """An evaluator whose matcher failed once (a service was down) is not left half made."""

    class Flaky(Matcher):
        """Fails the first time."""

        failed = False

        def similarity(self, actual, predicted):
            if not self.failed:
                self.failed = True
                raise ConnectionError("try again")
            return 1.0

    evaluator = OfflineRetrievalEvaluator([["a"]], [["p"]], Flaky())
    with pytest.raises(ConnectionError):
        evaluator.calculate_recall()
    assert evaluator.calculate_recall()["macro_recall"] == 1.0


# --- a function as a matcher -----------------------------------------------------------------


def same_length(actual, predicted):
    """1 if both texts are equally long."""
    return len(actual.page_content) == len(predicted.page_content)


def test_a_function_can_be_a_matcher():
    """Given LangChain documents, whatever was passed; its name is the function's."""
    matcher = Matcher.from_function(same_length)
    assert pairs(matcher, ["ab"], ["x", Document("yz"), {"page_content": "cd"}]) == [
        (0, 2, 1.0),
        (0, 3, 1.0),
    ]
    assert matcher.similarity("ab", {"page_content": "cd"}) == 1.0
    assert re.fullmatch("same_length#[0-9a-f]{12}", matcher.signature)


def test_a_function_can_be_given_a_threshold_and_a_name():
    """As any matcher has."""
    matcher = Matcher.from_function(lambda actual, predicted: 0.6, threshold=0.7, name="mine")
    with pytest.warns(KragEvalWarning, match="The matcher mine .* 0.6, below the threshold of 0.7"):
        assert evaluated(matcher, [["a"]], [["b"]])["recall"].tolist() == [0.0]


@pytest.mark.parametrize("function", [None, "same_length", 5])
def test_something_that_cannot_be_called_is_no_function(function):
    """The message shows what came."""
    with pytest.raises(InvalidType) as info:
        Matcher.from_function(function)
    assert info.value.argument == "function"
    assert repr(function) in info.value.problem


def test_the_threshold_of_a_function_is_checked():
    """As any is."""
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1, got 50"):
        Matcher.from_function(same_length, threshold=50)


@pytest.mark.parametrize("value", [None, "0.7", "high", [1.0]])
def test_a_function_that_returns_no_number_is_named(value):
    """Nothing is parsed, as for any matcher."""
    matcher = Matcher.from_function(lambda actual, predicted: value, name="mine")
    with pytest.raises((TypeError, ValueError), match="matcher mine"):
        pairs(matcher, ["a"], ["p"])


# --- keys ------------------------------------------------------------------------------------


class Initial(KeyMatcher):
    """Compares first letters; a text that begins with a dash has none."""

    def key(self, document, where="document"):
        """Return the first letter."""
        text = text_of(document, where)
        return None if text.startswith("-") else text[0]


def test_a_key_is_all_a_key_matcher_needs():
    """Equal keys match, with similarity 1, at every rank."""
    assert pairs(Initial(), ["ab", "cd"], ["ax", "zz", "cy", "aq"]) == [
        (0, 1, 1.0),
        (0, 4, 1.0),
        (1, 3, 1.0),
    ]


def test_no_key_equals_nothing():
    """Not even another document without one."""
    assert pairs(Initial(), ["-", "a"], ["-", "a"]) == [(1, 2, 1.0)]
    assert Initial().similarity("-", "-") == 0.0
    assert Initial().similarity("ab", "ac") == 1.0


def test_two_items_of_one_key_are_one():
    """To this matcher they say the same."""
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        assert evaluated(Initial(), [["ab", "ac"]], [["ad"]])["recall"].tolist() == [1.0]


def test_two_items_without_a_key_are_two():
    """That cannot be found: one of three is."""
    table = evaluated(Initial(), [["-", "-", "a"]], [["a"]])
    assert table[["ground_truth", "covered"]].to_numpy().tolist() == [[3, 1]]


def test_one_document_matches_every_item_that_has_its_key():
    """Items with alternatives may share one."""
    items = [AnyOf(["ab", "cd"]), AnyOf(["ax", "ef"])]
    assert pairs(Initial(), items, ["e", "a"]) == [(0, 2, 1.0), (1, 1, 1.0), (1, 2, 1.0)]


def test_keys_may_be_read_in_bulk():
    """One call per list; plain strings are not taken for their own keys."""

    class Bulk(Initial):
        """Reads keys in one go."""

        calls = 0

        def keys(self, documents, where):
            """Count and read."""
            self.calls += 1
            return super().keys(documents, where)

    matcher = Bulk()
    assert pairs(matcher, ["ab", "cd"], ["ax"]) == [(0, 1, 1.0)]
    assert matcher.calls == 2


def test_a_key_that_cannot_be_hashed_is_refused_by_name():
    """Among thousands of documents, "unhashable type: 'list'" is no help."""

    class Tags(KeyMatcher):
        """Compares lists."""

        def key(self, document, where="document"):
            """Return a list."""
            return [text_of(document)]

    with pytest.raises(TypeError, match=r"(?s)Tags|actual_docs\[0\]\[0\]"):
        pairs(Tags(), ["a"], ["a"])


KEYS = st.sampled_from(["a", "b", "c", None])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.lists(KEYS, min_size=1, max_size=2), max_size=4), st.lists(KEYS)),
        max_size=3,
    )
)
def test_joining_keys_agrees_with_comparing_all_pairs(queries):
    """Over several queries, with repeats, alternatives and missing keys."""
    join = KeyJoin(lambda: "keys")
    expected_pairs, expected_same, n_items = [], [], 0
    for items, predicted in queries:
        if all(len(alternatives) == 1 for alternatives in items):
            join.add([[alternatives[0] for alternatives in items]], [predicted])
        else:
            join.add([items], [predicted], alternatives=True)
        known = [{key for key in alternatives if key is not None} for alternatives in items]
        for position, keys in enumerate(known):
            first = known.index(keys) if keys else position
            expected_same.append(n_items + first)
            if first == position:
                expected_pairs += [
                    (n_items + position, rank)
                    for rank, key in enumerate(predicted, 1)
                    if key in keys
                ]
        n_items += len(items)
    matches = join.matches()
    found = list(zip(matches.item.tolist(), matches.rank.tolist(), strict=True))
    assert found == sorted(expected_pairs)
    assert matches.same_as.tolist() == expected_same
    assert set(matches.similarity.tolist()) <= {1.0}


class Colliding:
    """Text whose hash is that of every other, so that only comparing tells them apart."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Colliding) and self.text == other.text

    def __hash__(self):
        return 1


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from("abcd"), unique=True),
    st.lists(st.sampled_from("abcdefgh"), max_size=40),
)
def test_keys_of_one_hash_are_told_apart(keys, predicted):
    """Pairs are those of equal keys, every occurrence counted, whatever the hashes say."""
    join = KeyJoin(lambda: "keys")
    join.add([list(map(Colliding, keys))], [list(map(Colliding, predicted))])
    matches = join.matches()
    assert list(zip(matches.item.tolist(), matches.rank.tolist(), strict=True)) == [
        (item, rank)
        for item, key in enumerate(keys)
        for rank, document in enumerate(predicted, 1)
        if key == document
    ]


@pytest.mark.parametrize("n_keys", [1, 3000])
@pytest.mark.parametrize("n_predicted", [0, 1, 3000])
def test_lists_of_very_different_lengths_join(n_keys, n_predicted):
    """Backwards, so that the last key is found first; derived by hand: items meet in reverse."""
    join = KeyJoin(lambda: "keys")
    predicted = list(range(n_predicted - 1, -1, -1))
    join.add([["before"], list(range(n_keys))], [["before"], predicted])
    matches = join.matches()
    n_common = min(n_keys, n_predicted)
    assert matches.item.tolist() == [0, *range(1, n_common + 1)]
    assert matches.rank.tolist() == [1, *range(n_predicted, n_predicted - n_common, -1)]
    assert matches.same_as.tolist() == list(range(n_keys + 1))


def test_keys_of_several_types_join_as_they_compare():
    """1, 1.0 and True are equal to Python, "1" is not; a lone surrogate is a text like others."""
    join = KeyJoin(lambda: "keys")
    join.add([[1, "1", "\ud800", ("a", 1)]], [["1", True, "\ud800\ud800", "\ud800", 1.0, ("a", 1)]])
    matches = join.matches()
    found = list(zip(matches.item.tolist(), matches.rank.tolist(), strict=True))
    assert found == [(0, 2), (0, 5), (1, 1), (2, 4), (3, 6)]


def test_keys_in_a_container_of_the_matcher_s_own_join():
    """``keys`` may return any sequence, not only a list."""

    class Initials(KeyMatcher):
        """Compares first letters, returned as a tuple or an array."""

        def key(self, document, where="document"):
            return text_of(document)[0]

        def keys(self, documents, where):
            letters = super().keys(documents, where)
            return np.array(letters) if where.startswith("predicted") else tuple(letters)

    assert pairs(Initials(), ["ab", "cd"], ["x", "cx", "ax", "cy"]) == [
        (0, 3, 1.0),
        (1, 2, 1.0),
        (1, 4, 1.0),
    ]


# --- text matchers ---------------------------------------------------------------------------


class Lengths(TextMatcher):
    """The shorter length over the longer one."""

    def __init__(self):
        self.texts = None

    def block_scorer(self, texts):
        """Keep the texts, and score by their lengths."""
        self.texts = list(texts)
        lengths = np.array([len(text) for text in texts], float)

        def score(actual, predicted):
            rows, columns = lengths[actual][:, None], lengths[predicted]
            return np.minimum(rows, columns) / np.maximum(rows, columns)

        return score


def test_a_text_matcher_sees_each_distinct_text_once():
    """In any form and spelling."""
    matcher = Lengths()
    matcher.match(
        QuerySet.from_lists([["가", Document("bb")]], [["bb", unicodedata.normalize("NFD", "가")]])
    )
    assert matcher.texts == ["가", "bb"]


def test_a_text_matcher_scores_pairs_by_position():
    """1/2 and 1 for a text of two letters against one and two."""
    assert pairs(Lengths(), ["ab"], ["x", "yz"]) == [(0, 1, 0.5), (0, 2, 1.0)]
    assert Lengths().similarity("ab", Document("x")) == 0.5


def test_a_text_matcher_is_never_asked_about_a_blank_text():
    """Its similarity is 0, with everything."""
    assert Lengths().similarity("ab", " ") == 0.0
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted documents have empty"):
        assert pairs(Lengths(), ["", "ab"], [" ", "cd"]) == [(1, 2, 1.0)]


def test_copies_of_a_text_within_a_query_are_scored_as_one():
    """A hundred thousand of them, on either side; the pairs are all there."""
    seen = []

    class Watched(Lengths):
        """Notes what it is asked to score."""

        def block_scorer(self, texts):
            """Score like the other."""
            score = super().block_scorer(texts)

            def watched(actual, predicted):
                seen.append((len(actual), len(predicted)))
                return score(actual, predicted)

            return watched

    many = 100_000
    matches = Watched().match(QuerySet.from_lists([["ab"], ["x", "yz"]], [["x", "yz"] * many, []]))
    assert seen == [(1, 2)]
    assert matches.similarity[:4].tolist() == [0.5, 1.0, 0.5, 1.0]
    assert matches.rank.tolist() == list(range(1, 2 * many + 1))
    assert len(Watched().match(QuerySet.from_lists([["ab"] * many], [["ab"]]))) == many
    assert seen[1:] == [(1, 1)]


def test_more_pairs_than_fit_are_refused():
    """A million copies on both sides are a million million pairs of one query."""
    queries = QuerySet.from_lists([["a"], ["ab"] * 40_000], [["b"], ["ab"] * 40_000])
    message = r"actual_docs\[1\] and predicted_docs\[1\] make 1,600,000,000 pairs"
    with pytest.raises(ValueError, match=message):
        Lengths().match(queries)


# --- signatures and thresholds ---------------------------------------------------------------


def test_the_signature_is_the_class_name_unless_there_is_a_name():
    """Settings follow in brackets, without spaces."""

    class Named(Overlap):
        """Has a name and settings."""

        name = "overlap"

        def settings(self):
            """Return three settings."""
            return {"strict": False, "depth": 2, "mode": "x"}

    assert Overlap().signature == "Overlap"
    assert Named().signature == "overlap(strict=no,depth=2,mode=x)"


def made_with(*names):
    """Return a class of matchers whose constructor takes arguments of these names."""
    arguments = ", ".join(names)
    lines = [f"def __init__(self, {arguments}):", *(f"    self.{name} = {name}" for name in names)]
    space = {}
    exec("\n".join(lines), space)
    return type("Mine", (Overlap,), {"__init__": space["__init__"]})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("gpt-4o", "gpt-4o"),
        ("BAAI/bge-m3", "BAAI/bge-m3"),
        ("text-embedding-3-small-2024-01-25", "text-embedding-3-small-2024-01-25"),
        ("is it, the same?", '"is it, the same?"'),
        ("같은가?", '"같은가?"'),
        ("a\n\x1b[31m", r'"a\n\u001b[31m"'),
        ("yes", '"yes"'),
        ("3", '"3"'),
        ("", '""'),
        (True, "yes"),
        (3, "3"),
        (np.float64(0.5), "0.5"),
        (None, "None"),
        # printf '%041d' 0 | sha256sum
        ("0" * 41, "sha256:4b7e6989a501"),
    ],
)
def test_what_a_matcher_was_made_with_stands_in_its_signature(value, told):
    """Texts, numbers, booleans and None; a long text as a hash."""
    assert made_with("model")(value).signature == f"Mine(model={told})"


def test_two_prompts_are_two_signatures():
    """However long they are, and with a ``_`` before the attribute."""
    prompts = ["Is it the same thing? " * 9 + end for end in "ab"]

    class Asking(Overlap):
        """Keeps its prompt to itself."""

        def __init__(self, prompt, threshold=0.5):
            self._prompt = prompt
            self.threshold = threshold

    signatures = {Asking(prompt).signature for prompt in prompts}
    assert len(signatures) == 2
    assert all(re.fullmatch(r"Asking\(prompt=sha256:[0-9a-f]{12}\)", one) for one in signatures)
    assert Asking("a", 0.9).signature == "Asking(prompt=a)"


@pytest.mark.parametrize(
    "name",
    ["key", "api_key", "apiKey", "APIKey", "apikey", "openai_api_key", "token", "access_token",
     "secret", "client_secret", "password", "db_password", "passwd", "credentials",
     "auth", "authorization", "_token"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["hunter2", 1234, None, object()])
def test_a_secret_stands_nowhere_in_a_signature(name, value):
    """For its name, whatever it is; it does not make the settings unknown."""
    assert made_with("model", name)("m", value).signature == "Mine(model=m)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer", "kiwi"),
        ("max_tokens", 100),
        ("keyword", "x"),
        ("author", "x"),
        ("turn", 1),
        ("min_token_length", 5),
        ("token_pattern", "w"),
    ],
)
def test_what_only_sounds_like_a_secret_is_told(name, value):
    """A tokenizer is no token, nor is a number of tokens."""
    assert made_with(name)(value).signature == f"Mine({name}={value})"


@pytest.mark.parametrize(
    "value", ["postgres://u:hunter2@h/d", "http://h/?k=hunter2", "sk-proj-hunter2A1b2C3d4E5"]
)
def test_a_text_that_may_be_a_secret_is_told_as_a_hash(value):
    """Under whatever name."""
    assert re.fullmatch(r"Mine\(place=sha256:[0-9a-f]{12}\)", made_with("place")(value).signature)


@pytest.mark.parametrize("value", [object(), len, ["a"], ("a",), {}, b"a", 1j, Decimal(1)])
def test_any_other_object_makes_the_settings_unknown(value):
    """What can be told is told beside it."""
    matcher = made_with("model", "client")("m", value)
    assert matcher.signature == "Mine(model=m,settings unknown)"


def test_an_argument_that_is_kept_nowhere_is_unknown():
    """Under another name, behind a property that might load a model, or a class's own default."""

    class Hiding(Overlap):
        """Keeps nothing under its name."""

        size = 1

        def __init__(self, prompt, model, size, *more):
            self.template = prompt
            self.__model = model

        @property
        def model(self):
            """Must not be asked for a signature."""
            raise AssertionError

    assert Hiding("p", "m", 2).signature == "Hiding(settings unknown)"


def test_settings_of_slots_and_dataclasses_are_found():
    """They are attributes as well."""

    @dataclass
    class Plain(Overlap):
        """A dataclass."""

        prompt: str
        top: int = 3

    class Slotted(Overlap):
        """Has slots, and, as its base has none, a dict too."""

        __slots__ = ("_prompt",)

        def __init__(self, prompt):
            self._prompt = prompt

    assert Plain("p").signature == "Plain(prompt=p,top=3)"
    assert Slotted("p").signature == "Slotted(prompt=p)"


def test_a_matcher_that_tells_its_settings_itself_is_believed():
    """Nothing is added to what it says."""

    class Telling(Overlap):
        """Knows better."""

        def __init__(self, prompt, client):
            self.prompt, self.client = prompt, client

        def settings(self):
            """Return one."""
            return {"prompt": self.prompt}

    assert Telling("p", object()).signature == "Telling(prompt=p)"


def test_a_subclass_of_a_built_in_matcher_adds_what_it_was_made_with():
    """The settings it inherits cannot know of it."""

    class Prefixed(ExactTextMatcher):
        """Has one argument more."""

        def __init__(self, prefix, **options):
            super().__init__(**options)
            self.prefix = prefix

    class Same(ExactTextMatcher):
        """Has no constructor of its own."""

    assert Same(case_sensitive=False).signature == "text(case_sensitive=no)"
    assert Prefixed("a").signature == "text(prefix=a,settings unknown)"  # of **options, no trace


def test_the_built_in_matchers_sign_as_they_did():
    """As in 0.1.0, from which results are kept."""
    signatures = {
        "text": "text",
        "contains": "contains",
        "id": "id",
        "coverage(tokenizer=unicode)": "coverage(min_run=5,tokenizer=unicode)",
        "fuzzy": "fuzzy(scorer=ratio)",
        "rouge1": "rouge1(statistic=fmeasure,tokenizer=unicode,stemmer=no)",
        "rouge2": "rouge2(statistic=fmeasure,tokenizer=unicode,stemmer=no)",
        "rougeL": "rougeL(statistic=fmeasure,tokenizer=unicode,stemmer=no)",
    }
    assert {name: resolve_matcher(name).signature for name in signatures} == signatures


def asking(prompt):
    """Return a function that holds a prompt."""
    return lambda actual, predicted: float(prompt == actual.page_content)


class Asks:
    """An object whose method is a function."""

    def both(self, actual, predicted):
        """Find everything."""
        return 1.0


@pytest.mark.parametrize(
    ("function", "name", "signature"),
    [
        (same_length, None, "same_length#"),
        (same_length, "mine", "mine"),
        (lru_cache(same_length), None, "same_length#"),
        (lambda actual, predicted: 1.0, "mine", "mine"),
        (lambda actual, predicted: 1.0, None, "<lambda>#"),
        (lambda actual, predicted, x=3: 1.0, "mine", "mine#"),
        (asking("p"), "mine", "mine#"),
        (partial(same_length), None, "partial#"),
        (Asks().both, None, "both#"),
        (Asks.both, None, "both#"),
        (asking(iter("p")), "mine", "mine#unknown"),
        (len, None, "len"),
    ],
)
def test_a_function_is_told_by_its_name_where_that_is_all_there_is(function, name, signature):
    """A partial, a method and a function that uses variables around it hold more."""
    told = Matcher.from_function(function, name=name).signature
    assert re.sub("#[0-9a-f]{12}$", "#", told) == signature


@pytest.mark.filterwarnings("ignore:The matcher")
def test_nothing_secret_reaches_a_result_a_file_or_a_page(tmp_path):
    """Nor what is printed of the matcher and the evaluator."""
    kind = made_with("prompt", "api_key", "url", "headers")
    matcher = kind("hunter2 " * 9, "hunter2", "https://hunter2@host", {"auth": "hunter2"})
    evaluator = OfflineRetrievalEvaluator([["a"]], [["b"]], matcher)
    result = evaluator.evaluate(1)
    result.to_json(tmp_path / "result.json", texts=True)
    result.report(tmp_path / "page.html")
    written = [path.read_text("utf-8") for path in tmp_path.iterdir()]
    printed = [repr(one) for one in (matcher, evaluator, result, result.explain(0))]
    assert len(written) == 2
    assert not any("hunter2" in one for one in (*written, *printed))


def test_a_matcher_of_one_s_own_has_a_threshold_of_a_half():
    """Unless it sets another."""

    class Strict(Overlap):
        """Wants all letters."""

        threshold = 1.0

    assert evaluated(Overlap(), [["ab"]], [["a"]])["recall"].tolist() == [1.0]
    with pytest.warns(
        KragEvalWarning, match="the highest similarity is 0.5, below the threshold of 1"
    ):
        assert evaluated(Strict(), [["ab"]], [["a"]])["recall"].tolist() == [0.0]


@pytest.mark.parametrize("threshold", [0, 1, 0.5, np.float64(0.5), np.float32(0.5), Fraction(1, 2)])
def test_a_threshold_is_any_number_from_0_to_1(threshold):
    """As a Python float."""
    kept = CoverageMatcher(threshold).threshold
    assert kept == threshold
    assert type(kept) is float


@pytest.mark.parametrize(
    ("threshold", "kind"),
    [
        *((value, InvalidInput) for value in (-0.1, 1.1, math.nan, math.inf)),
        *((value, InvalidType) for value in (None, "0.5", True, 1j, [0.5])),
    ],
)
def test_anything_else_is_no_threshold(threshold, kind):
    """The error names the argument and shows what came."""
    with pytest.raises(kind) as info:
        CoverageMatcher(threshold)
    assert info.value.argument == "threshold"
    assert repr(threshold) in str(info.value)


# --- the user's objects ----------------------------------------------------------------------


@pytest.mark.parametrize("matcher", [Overlap, Prepared, Batched, Initial, Lengths, Recording])
def test_documents_are_never_changed(matcher):
    """Nor copied into something else, nor the lists they are in."""
    actual = [
        [Document("ab", metadata={"tags": ["x"]}, id="1"), AnyOf([{"page_content": "c"}, "d"])]
    ]
    predicted = [[{"page_content": "ab", "metadata": {"page": 1}}, Document("x"), "d"]]
    before = copy.deepcopy((actual, predicted))
    document = predicted[0][1]
    evaluated(matcher(), actual, predicted)
    assert (actual, predicted) == before
    assert predicted[0][1] is document


FORMS = st.sampled_from([str, Document, lambda text: {"page_content": text}])
WORDS = st.sampled_from(["ab", "b", "ca", "xyz"])


@pytest.mark.parametrize("matcher", [Overlap, Prepared, Batched, Initial, Lengths])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_the_form_of_a_document_does_not_matter(matcher, data):
    """Strings, documents and dicts mixed give the pairs that strings give."""
    actual = data.draw(st.lists(WORDS, min_size=1, max_size=3, unique=True))
    predicted = data.draw(st.lists(WORDS, max_size=4))
    mixed = [[data.draw(FORMS)(text) for text in texts] for texts in (actual, predicted)]
    assert pairs(matcher(), *mixed) == pairs(matcher(), actual, predicted)


@pytest.mark.parametrize("matcher", ["text", "contains", "coverage", "rouge1", "fuzzy"])
def test_two_spellings_of_one_text_are_one_item(matcher):
    """NFC and NFD of the same Hangul look alike and mean one document under every text matcher."""
    composed = "한국어 문서입니다"
    decomposed = unicodedata.normalize("NFD", composed)
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        result = OfflineRetrievalEvaluator(
            [[composed, decomposed]], [[composed]], matcher
        ).evaluate(1)
    assert result.per_query().loc[0, "ground_truth"] == 1
