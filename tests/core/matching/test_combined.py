"""a & b and a | b: the parts' decisions, joined for the same pair and the same alternative."""

import math
from itertools import product

import pytest
from hypothesis import given, strategies as st
from langchain_core.documents import Document
from matched import Given, matches_of, pairs, rows_of, scores_of

from krag_eval import (
    AndMatcher,
    AnyOf,
    ContainsMatcher,
    ExactTextMatcher,
    FuzzyMatcher,
    IdMatcher,
    Matcher,
    MetadataMatcher,
    OrMatcher,
)
from krag_eval.errors import InvalidType


class SharedLetters(Matcher):
    """A user's matcher on prepared texts: the share of the truth's letters found."""

    threshold = 0.5

    def prepare(self, text):
        return set(text)

    def similarity(self, actual, predicted):
        return len(actual & predicted) / len(actual)


def page(text, *, id=None, **metadata):
    return Document(page_content=text, id=id, metadata=metadata)


@pytest.mark.parametrize(
    ("similarity", "threshold", "scaled"),
    [
        (0.0, 0.8, 0.0),
        (0.4, 0.8, 0.25),  # half-way to the threshold
        (0.8, 0.8, 0.5),  # at it
        (0.9, 0.8, 0.75),  # half-way from there to 1
        (1.0, 0.8, 1.0),
        (1.0, 1.0, 1.0),
        (0.5, 1.0, 0.25),
        (0.5, 0.0, 0.75),  # every similarity above 0 reaches a threshold of 0
        (0.0, 0.0, 0.0),  # 0 never does
    ],
)
def test_the_common_scale_has_every_threshold_at_one_half(similarity, threshold, scaled):
    """Beside a part that is sure of itself the scale shows."""
    sure, unsure = Given(1.0, 0.5), Given(0.0, 0.5)
    part = Given(similarity, threshold)
    assert AndMatcher(part, sure).similarity("g", "p") == pytest.approx(scaled, abs=1e-15)
    assert OrMatcher(part, unsure).similarity("g", "p") == pytest.approx(scaled, abs=1e-15)


shares = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0, 5e-324, math.nextafter(1.0, 0.0)])


@st.composite
def part_scores(draw):
    """A threshold, and a similarity that often is right at it or next to it."""
    threshold = draw(shares)
    beside = [math.nextafter(threshold, 0.0), threshold, math.nextafter(threshold, 1.0)]
    return threshold, draw(shares | st.sampled_from(beside))


@given(parts=st.lists(part_scores(), min_size=2, max_size=4))
def test_the_decision_is_that_of_the_parts(parts):
    """To the last bit; a similarity of 0 is never a match, whatever the threshold."""
    decisions = [0.0 < similarity >= threshold for threshold, similarity in parts]
    matchers = [Given(similarity, threshold) for threshold, similarity in parts]
    both, either = AndMatcher(*matchers), OrMatcher(*matchers)
    assert (both.similarity("g", "p") >= both.threshold) == all(decisions)
    assert (either.similarity("g", "p") >= either.threshold) == any(decisions)


def test_a_similarity_too_small_to_scale_is_none():
    """Half of the smallest number above 0 is 0, and pairs of 0 are not kept."""
    either = OrMatcher(Given(5e-324, 1.0), Given(0.0, 0.5))
    assert pairs(either, ["g"], ["p"]) == []


@given(part=part_scores(), other=shares)
def test_a_higher_similarity_never_becomes_a_lower_one(part, other):
    threshold, similarity = part
    low, high = sorted([similarity, other])
    scaled = [
        OrMatcher(Given(s, threshold), Given(0.0, 0.5)).similarity("g", "p") for s in (low, high)
    ]
    assert 0.0 <= scaled[0] <= scaled[1] <= 1.0


@st.composite
def queries_and_tables(draw):
    """One to three queries with alternatives, and two tables of similarities."""
    actual, predicted, tables = [], [], [{}, {}]
    for query in range(draw(st.integers(1, 3))):
        found = [f"p{query}{rank}" for rank in range(draw(st.integers(0, 3)))]
        items = []
        for item in range(draw(st.integers(0, 3))):
            texts = [f"g{query}{item}{n}" for n in range(draw(st.integers(1, 3)))]
            items.append(AnyOf(texts) if len(texts) > 1 or draw(st.booleans()) else texts[0])
            for table, pair in product(tables, product(texts, found)):
                table[pair] = draw(st.sampled_from([0, 0.3, 0.5, 0.9]))
        actual.append(items)
        predicted.append(found)
    return actual, predicted, tables


@given(drawn=queries_and_tables())
def test_it_equals_the_definition(drawn):
    """Thresholds 0.5 and 0.3: 0.9 is 0.9 and 6/7 on the common scale, and so on."""
    actual, predicted, tables = drawn
    parts = [Given(tables[0], 0.5), Given(tables[1], 0.3)]
    scales = [
        {0: 0.0, 0.3: 0.3, 0.5: 0.5, 0.9: 0.9},
        {0: 0.0, 0.3: 0.5, 0.5: 0.5 + 0.5 * 0.2 / 0.7, 0.9: 0.5 + 0.5 * 0.6 / 0.7},
    ]
    numbered = [(query, item) for query, items in enumerate(actual) for item in items]
    for matcher, join in ((AndMatcher(*parts), min), (OrMatcher(*parts), max)):
        expected = []
        for number, (query, item) in enumerate(numbered):
            texts = item.alternatives if isinstance(item, AnyOf) else [item]
            for rank, p in enumerate(predicted[query], 1):
                scaled = [[scale[table[g, p]] for table, scale in zip(tables, scales, strict=True)]
                          for g in texts]  # fmt: skip
                if best := max(map(join, scaled)):
                    expected.append((number, rank, pytest.approx(best, abs=1e-15)))
        matches = matches_of(matcher, actual, predicted)
        assert rows_of(matches) == expected
        assert matches.same_as.tolist() == list(range(len(numbered)))


def test_both_must_hold_for_the_same_alternative():
    """The first alternative has the right id, the second the right text; neither has both."""
    item = AnyOf([page("5 euros", id="1"), page("6 euros", id="2")])
    predicted = [page("It costs 6 euros.", id=name) for name in "12"]
    both, either = IdMatcher() & ContainsMatcher(), IdMatcher() | ContainsMatcher()
    assert pairs(both, [item], predicted) == [(0, 2, 1.0)]
    assert both.similarity(item, predicted[0]) == 0.0
    assert pairs(either, [item], predicted) == [(0, 1, 1.0), (0, 2, 1.0)]


@pytest.mark.parametrize(
    ("combine", "scores"),
    [
        (AndMatcher, [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 0]]),
        (OrMatcher, [[1, 0, 1], [1, 1, 0], [1, 1, 1], [1, 1, 0]]),
    ],
)
def test_an_item_is_a_repeat_only_if_it_is_one_to_every_part(combine, scores):
    """The third item has the page of the first and the text of the second, and is neither.

    The fourth is the second again, in both respects.
    """
    actual = [page("x", page=1), page("y", page=2), page("y", page=1), page("y", page=2)]
    predicted = [page("y", page=1), page("y", page=2), page("x", page=1)]
    matcher = combine(MetadataMatcher("page"), ExactTextMatcher())
    matches = matches_of(matcher, [[page("y", page=2)], actual], [predicted, predicted])
    assert matches.same_as.tolist() == [0, 1, 2, 3, 2]  # the first query's only item is item 0
    assert scores_of(matcher, actual, predicted).tolist() == scores


def test_alternatives_in_another_order_are_the_same_item():
    """A repeat keeps its pairs or not, as it likes; the item itself has them."""
    items = [AnyOf(["x", "y"]), AnyOf(["y", "x"]), AnyOf(["x", "z"])]
    matches = matches_of(ExactTextMatcher() & FuzzyMatcher(), [items], [["x"]])
    assert matches.same_as.tolist() == [0, 0, 2]
    assert matches.item.tolist()[0] == 0


def test_a_combination_is_a_matcher_like_any_other():
    """(contains and same id) or half the letters; the combination of "&" sits at 0.5 already."""
    nested = ContainsMatcher() & IdMatcher() | SharedLetters()
    actual = page("abcd", id="1")
    texts = {"xx abcd xx": "1", "ab": "2", "a": "1", "z": "1"}
    predicted = [page(text, id=name) for text, name in texts.items()]
    # 1; two letters of four are 0.5, right at the threshold; one is 0.25; none.
    assert scores_of(nested, [actual], predicted).tolist() == [[1.0, 0.5, 0.25, 0.0]]
    assert [nested.similarity(actual, found) for found in predicted] == [1.0, 0.5, 0.25, 0.0]


def test_nesting_of_one_kind_is_flattened():
    """By the classes and by the operators."""
    a, b, c = Given(0.7, 0.5), Given(0.6, 0.4), Given(0.9, 0.8)
    flat = AndMatcher(a, b, c)
    for nested in (a & b & c, AndMatcher(a, AndMatcher(b, c))):
        assert nested.parts == (a, b, c)
        assert nested.signature == flat.signature
        assert nested.similarity("g", "p") == flat.similarity("g", "p")
    assert type(a | b) is OrMatcher
    assert (a | b & c).parts[0] is a
    assert len(AndMatcher(OrMatcher(a, b), c).parts) == 2
    assert (flat.threshold, flat.takes_threshold) == (0.5, False)


@pytest.mark.parametrize(("part", "fix"), [(IdMatcher, "did you forget to call it?"), ("id", "")])
def test_what_is_no_matcher_is_refused_with_the_remedy(part, fix):
    with pytest.raises(InvalidType) as info:
        IdMatcher() & part
    assert info.value.fix == fix
