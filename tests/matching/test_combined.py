"""a & b and a | b: the parts' decisions, joined for the same pair and the same alternative."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.documents import Document

from krag_eval.documents import AnyOf, QuerySet
from krag_eval.errors import KragEvalWarning
from krag_eval.matching.base import AndMatcher, Matcher, OrMatcher
from krag_eval.matching.coverage import CoverageMatcher
from krag_eval.matching.exact import ContainsMatcher, ExactTextMatcher, IdMatcher, MetadataMatcher
from krag_eval.matching.fuzzy import FuzzyMatcher

Table = dict[tuple[str, str], float]


class Given(Matcher):
    """Looks similarities up."""

    def __init__(self, table: Table, threshold: float = 0.5, name: str = "given") -> None:
        self.table, self.threshold, self.name = table, threshold, name

    def similarity(self, actual: Document, predicted: Document) -> float:
        return self.table[actual.page_content, predicted.page_content]


class SharedLetters(Matcher):
    """A user's matcher on prepared texts: the share of the truth's letters found."""

    threshold = 0.5

    def prepare(self, text: str) -> set[str]:
        return set(text)

    def similarity(self, actual: set[str], predicted: set[str]) -> float:
        return len(actual & predicted) / len(actual)


def page(text: str, *, id: str | None = None, **metadata: Any) -> Document:
    return Document(page_content=text, id=id, metadata=metadata)


def scores_of(
    matcher: Matcher, actual: Sequence[Any], predicted: Sequence[Any]
) -> list[list[float]]:
    """Return the similarities of all pairs of one query; shape (actual, predicted)."""
    matches = matcher.match(QuerySet.from_lists([list(actual)], [list(predicted)]))
    scores = np.zeros((len(actual), len(predicted)))
    scores[matches.item, matches.rank - 1] = matches.similarity
    return scores.tolist()


def one(similarity: float, threshold: float) -> Given:
    return Given({("g", "p"): similarity}, threshold)


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
def test_the_common_scale_has_every_threshold_at_one_half(
    similarity: float, threshold: float, scaled: float
) -> None:
    """Beside a part that is sure of itself the scale shows."""
    sure, unsure = one(1.0, 0.5), one(0.0, 0.5)
    part = one(similarity, threshold)
    assert AndMatcher(part, sure).similarity("g", "p") == pytest.approx(scaled, abs=1e-15)
    assert OrMatcher(part, unsure).similarity("g", "p") == pytest.approx(scaled, abs=1e-15)


shares = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0, 5e-324, math.nextafter(1.0, 0.0)])


@st.composite
def part_scores(draw: st.DrawFn) -> tuple[float, float]:
    """A threshold, and a similarity that often is right at it or next to it."""
    threshold = draw(shares)
    beside = [math.nextafter(threshold, 0.0), threshold, math.nextafter(threshold, 1.0)]
    return threshold, draw(shares | st.sampled_from(beside))


@given(parts=st.lists(part_scores(), min_size=2, max_size=4))
def test_the_decision_is_that_of_the_parts(parts: list[tuple[float, float]]) -> None:
    """To the last bit; a similarity of 0 is never a match, whatever the threshold."""
    decisions = [0.0 < similarity >= threshold for threshold, similarity in parts]
    matchers = [one(similarity, threshold) for threshold, similarity in parts]
    both, either = AndMatcher(*matchers), OrMatcher(*matchers)
    assert (both.similarity("g", "p") >= both.threshold) == all(decisions)
    assert (either.similarity("g", "p") >= either.threshold) == any(decisions)


def test_a_similarity_too_small_to_scale_is_none() -> None:
    """Half of the smallest number above 0 is 0, and pairs of 0 are not kept."""
    either = OrMatcher(one(5e-324, 1.0), one(0.0, 0.5))
    assert len(either.match(QuerySet.from_lists([["g"]], [["p"]]))) == 0


@given(part=part_scores(), other=shares)
def test_a_higher_similarity_never_becomes_a_lower_one(
    part: tuple[float, float], other: float
) -> None:
    threshold, similarity = part
    low, high = sorted([similarity, other])
    scaled = [OrMatcher(one(s, threshold), one(0.0, 0.5)).similarity("g", "p") for s in (low, high)]
    assert 0.0 <= scaled[0] <= scaled[1] <= 1.0


@st.composite
def queries_and_tables(draw: st.DrawFn) -> tuple[list[list[Any]], list[list[str]], list[Table]]:
    """One to three queries with alternatives, and two tables of similarities."""
    actual, predicted, tables = [], [], [{}, {}]
    for query in range(draw(st.integers(1, 3))):
        found = [f"p{query}{rank}" for rank in range(draw(st.integers(0, 3)))]
        items = []
        for item in range(draw(st.integers(0, 3))):
            texts = [f"g{query}{item}{n}" for n in range(draw(st.integers(1, 3)))]
            items.append(AnyOf(texts) if len(texts) > 1 or draw(st.booleans()) else texts[0])
            for table in tables:
                table.update(
                    {
                        (g, p): draw(st.sampled_from([0, 0.3, 0.5, 0.9]))
                        for g in texts
                        for p in found
                    }
                )
        actual.append(items)
        predicted.append(found)
    return actual, predicted, tables


@given(drawn=queries_and_tables())
def test_it_equals_the_definition(
    drawn: tuple[list[list[Any]], list[list[str]], list[Table]],
) -> None:
    """Thresholds 0.5 and 0.3: 0.9 is 0.9 and 6/7 on the common scale, and so on."""
    actual, predicted, tables = drawn
    parts = [Given(tables[0], 0.5), Given(tables[1], 0.3)]
    scales = [
        {0: 0.0, 0.3: 0.3, 0.5: 0.5, 0.9: 0.9},
        {0: 0.0, 0.3: 0.5, 0.5: 0.5 + 0.5 * 0.2 / 0.7, 0.9: 0.5 + 0.5 * 0.6 / 0.7},
    ]
    for matcher, join in ((AndMatcher(*parts), min), (OrMatcher(*parts), max)):
        matches = matcher.match(QuerySet.from_lists(actual, predicted))
        pairs = {
            (item, rank): similarity
            for item, rank, similarity in zip(
                matches.item.tolist(), matches.rank.tolist(), matches.similarity, strict=True
            )
        }
        expected = {}
        numbered = [(q, item) for q, items in enumerate(actual) for item in items]
        for number, (query, item) in enumerate(numbered):
            texts = item.alternatives if isinstance(item, AnyOf) else [item]
            for rank, p in enumerate(predicted[query], 1):
                best = max(
                    join(scale[table[g, p]] for table, scale in zip(tables, scales, strict=True))
                    for g in texts
                )
                if best:
                    expected[number, rank] = pytest.approx(best, abs=1e-15)
        assert pairs == expected
        assert list(pairs) == sorted(pairs)
        assert matches.same_as.tolist() == list(range(len(numbered)))


def test_both_must_hold_for_the_same_alternative() -> None:
    """The first alternative has the right id, the second the right text; neither has both."""
    item = AnyOf([page("5 euros", id="1"), page("6 euros", id="2")])
    both = AndMatcher(IdMatcher(), ContainsMatcher())
    predicted = [page("It costs 6 euros.", id="1"), page("It costs 6 euros.", id="2")]
    assert scores_of(both, [item], predicted) == [[0.0, 1.0]]
    assert both.similarity(item, predicted[0]) == 0.0
    either = OrMatcher(IdMatcher(), ContainsMatcher())
    assert scores_of(either, [item], predicted) == [[1.0, 1.0]]


def test_an_item_is_a_repeat_only_if_it_is_one_to_every_part() -> None:
    """The third item has the page of the first and the text of the second, and is neither.

    The fourth is the second again, in both respects.
    """
    actual = [page("x", page=1), page("y", page=2), page("y", page=1), page("y", page=2)]
    predicted = [page("y", page=1), page("y", page=2), page("x", page=1)]
    parts = (MetadataMatcher("page"), ExactTextMatcher())
    queries = QuerySet.from_lists([[page("y", page=2)], actual], [predicted, predicted])

    both = AndMatcher(*parts).match(queries)
    assert both.same_as.tolist() == [0, 1, 2, 3, 2]  # the first query's only item is item 0
    assert scores_of(AndMatcher(*parts), actual, predicted) == [
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 0],
        [0, 1, 0],
    ]
    assert OrMatcher(*parts).match(queries).same_as.tolist() == [0, 1, 2, 3, 2]
    assert scores_of(OrMatcher(*parts), actual, predicted) == [
        [1, 0, 1],
        [1, 1, 0],
        [1, 1, 1],
        [1, 1, 0],
    ]


def test_alternatives_in_another_order_are_the_same_item() -> None:
    items = [AnyOf(["x", "y"]), AnyOf(["y", "x"]), AnyOf(["x", "z"])]
    matches = AndMatcher(ExactTextMatcher(), FuzzyMatcher()).match(
        QuerySet.from_lists([items], [["x"]])
    )
    assert matches.same_as.tolist() == [0, 0, 2]
    # A repeat keeps its pairs or not, as it likes; the item itself has them.
    assert matches.item.tolist()[0] == 0


def test_a_combination_is_a_matcher_like_any_other() -> None:
    """(contains and same id) or half the letters; the combination of "&" sits at 0.5 already."""
    nested = OrMatcher(AndMatcher(ContainsMatcher(), IdMatcher()), SharedLetters())
    actual = page("abcd", id="1")
    predicted = [
        page("xx abcd xx", id="1"),
        page("ab", id="2"),
        page("a", id="1"),
        page("z", id="1"),
    ]
    # 1; two letters of four are 0.5, right at the threshold; one is 0.25; none.
    assert scores_of(nested, [actual], predicted) == [[1.0, 0.5, 0.25, 0.0]]
    assert [nested.similarity(actual, found) for found in predicted] == [1.0, 0.5, 0.25, 0.0]


def test_nesting_of_one_kind_is_flattened() -> None:
    a, b, c = one(0.7, 0.5), one(0.6, 0.4), one(0.9, 0.8)
    flat = AndMatcher(a, b, c)
    for nested in (AndMatcher(AndMatcher(a, b), c), AndMatcher(a, AndMatcher(b, c))):
        assert nested.parts == (a, b, c)
        assert nested.signature == flat.signature
        assert nested.similarity("g", "p") == flat.similarity("g", "p")
    assert len(AndMatcher(OrMatcher(a, b), c).parts) == 2


def test_operators_combine() -> None:
    a, b, c = CoverageMatcher(), ContainsMatcher(), FuzzyMatcher()
    assert type(a & b) is AndMatcher
    assert type(a | b) is OrMatcher
    assert (a & b & c).parts == (a, b, c)
    assert (a | b & c).signature == OrMatcher(a, AndMatcher(b, c)).signature


def test_the_signature_has_every_threshold_there_is() -> None:
    combined = OrMatcher(AndMatcher(CoverageMatcher(), FuzzyMatcher(threshold=1)), IdMatcher())
    assert combined.signature == (
        "((coverage(min_run=5,tokenizer=auto(words,letters))>=0.8&fuzzy(scorer=ratio)>=1.0)|id)"
    )
    assert combined.threshold == 0.5
    assert not combined.takes_threshold


def test_blank_texts_never_match() -> None:
    both = AndMatcher(CoverageMatcher(), FuzzyMatcher())
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted"):
        assert scores_of(both, ["", "a b"], [" ", "a b"]) == [[0, 0], [0, 1]]
    assert both.similarity("", "") == 0.0


def test_identical_texts_are_1_and_unrelated_ones_0() -> None:
    parts = (CoverageMatcher(), ContainsMatcher(), ExactTextMatcher())
    texts = ["Refunds take seven days.", "한강은 서울을 흐른다."]
    for combine in (AndMatcher, OrMatcher):
        assert scores_of(combine(*parts), texts, texts) == [[1, 0], [0, 1]]


@pytest.mark.parametrize("combine", [AndMatcher, OrMatcher])
def test_what_is_no_matcher_is_refused(combine: type[Matcher]) -> None:
    with pytest.raises(TypeError, match=r"[&|] combines matchers, .* got 'rouge1'"):
        combine(IdMatcher(), "rouge1")
    with pytest.raises(TypeError, match="did you forget to call it"):
        combine(IdMatcher(), CoverageMatcher)
    with pytest.raises(ValueError, match=r"[&|] needs at least two matchers, got 1"):
        combine(IdMatcher())
    with pytest.raises(TypeError, match="& combines matchers"):
        IdMatcher() & "rouge1"  # type: ignore[operator]


def test_a_part_without_a_valid_threshold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"threshold of the matcher odd.* must be a number from 0"):
        AndMatcher(IdMatcher(), Given({}, 2.0, "odd"))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_it_can_be_copied_and_pickled(copied) -> None:
    matcher = AndMatcher(CoverageMatcher(0.6), IdMatcher())
    again = copied(matcher)
    assert again.signature == matcher.signature
    document = page("a b c d e f", id="1")
    assert again.similarity(document, document) == 1.0
