"""Embedding: cosines in [0, 1], each distinct text embedded once, invalid vectors refused."""

from __future__ import annotations

import copy
import pickle
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from numpy.typing import NDArray

from krag_eval.documents import AnyOf, QuerySet
from krag_eval.errors import InvalidInput, InvalidType, KragEvalWarning, Refusal
from krag_eval.matching.embedding import EmbeddingMatcher

# Lengths 5, 5 and 1, so that the cosines are easy to see: 24/25, 3/5, 4/5 and their opposites.
VECTORS = {"a": [3.0, 4.0], "b": [4.0, 3.0], "east": [1.0, 0.0], "-a": [-3.0, -4.0]}


class Table(Embeddings):
    """Looks vectors up, and remembers what it was asked."""

    def __init__(self, vectors: dict[str, Any]) -> None:
        self.vectors = vectors
        self.batches: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[Any]:
        self.batches.append(list(texts))
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("both sides are documents")


class Fails(Table):
    """Answers so many batches and then no more, like a provider with a quota."""

    def __init__(self, vectors: dict[str, Any], answers: int) -> None:
        super().__init__(vectors)
        self.answers = answers

    def embed_documents(self, texts: list[str]) -> list[Any]:
        if len(self.batches) == self.answers:
            raise ConnectionError("quota exceeded")
        return super().embed_documents(texts)


class Named(Table):
    def __init__(self, **names: object) -> None:
        super().__init__(VECTORS)
        self.__dict__.update(names)


def scores_of(
    matcher: EmbeddingMatcher, actual: Sequence[str], predicted: Sequence[str]
) -> NDArray[np.float64]:
    """Return the similarities of all pairs of one query; shape (actual, predicted)."""
    matches = matcher.match(QuerySet.from_lists([list(actual)], [list(predicted)]))
    scores = np.zeros((len(actual), len(predicted)))
    scores[matches.item, matches.rank - 1] = matches.similarity
    return scores


def test_the_similarity_is_the_cosine() -> None:
    """(3*4 + 4*3) / (5 * 5), 3 / (5 * 1), 4 / (5 * 1)."""
    scores = scores_of(EmbeddingMatcher(Table(VECTORS), 0.7), ["a", "b"], ["a", "b", "east"])
    assert scores == pytest.approx(np.array([[1, 24 / 25, 3 / 5], [24 / 25, 1, 4 / 5]]), abs=1e-15)


def test_opposite_meanings_are_0() -> None:
    assert EmbeddingMatcher(Table(VECTORS), 0.7).similarity("a", "-a") == 0.0


def test_only_the_direction_counts() -> None:
    """Even where the squares of the numbers are beyond what a float can hold."""
    vectors = {"huge": [3e300, 4e300], "tiny": [3e-300, 4e-300], "a": [3.0, 4.0]}
    scores = scores_of(EmbeddingMatcher(Table(vectors), 0.7), ["huge", "tiny"], ["a"])
    assert scores.tolist() == [[1.0], [1.0]]


vectors = st.lists(st.floats(-1e6, 1e6), min_size=7, max_size=7).filter(
    lambda vector: max(map(abs, vector)) > 1e-3
)


@given(table=st.lists(vectors, min_size=1, max_size=6))
def test_it_equals_the_definition_alone_and_in_a_batch(table: list[list[float]]) -> None:
    texts = [f"text {number}" for number in range(len(table))]
    matcher = EmbeddingMatcher(Table(dict(zip(texts, table, strict=True))), 0.7)
    scores = scores_of(matcher, texts, texts)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (scores.diagonal() == 1.0).all()
    for i, one in enumerate(table):
        for j, other in enumerate(table):
            cosine = np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other))
            assert scores[i, j] == pytest.approx(max(cosine, 0.0), abs=1e-11)
            assert scores[i, j] == matcher.similarity(texts[i], texts[j])


@given(size=st.integers(1, 400), text=st.text(min_size=1).filter(str.strip))
def test_identical_texts_are_exactly_1(size: int, text: str) -> None:
    embeddings = DeterministicFakeEmbedding(size=size)
    assert EmbeddingMatcher(embeddings, 1.0).similarity(text, text) == 1.0


def test_random_directions_of_many_dimensions_are_near_0() -> None:
    """Cosines of random vectors of n dimensions are spread around 0 by 1 / sqrt(n), here 1/32."""
    matcher = EmbeddingMatcher(DeterministicFakeEmbedding(size=1024), 0.7)
    texts = [f"text {number}" for number in range(20)]
    scores = scores_of(matcher, texts, texts)
    assert scores[~np.eye(20, dtype=bool)].max() < 6 / 32
    # A product of matrices would sum so many numbers in another order for a pair alone.
    alone = [[matcher.similarity(one, other) for other in texts[:9]] for one in texts[:9]]
    assert scores[:9, :9].tolist() == alone


def test_each_distinct_text_is_embedded_once_in_batches() -> None:
    """Three distinct texts over two queries; a blank one is never sent to a provider."""
    table = Table(VECTORS)
    queries = QuerySet.from_lists([["a"], ["a", "b"]], [["b", "a", " "], ["east", "b"]])
    with pytest.warns(KragEvalWarning, match="0 ground-truth and 1 predicted"):
        EmbeddingMatcher(table, 0.7, batch_size=2).match(queries)
    assert table.batches == [["a", "b"], ["east"]]


def test_composed_and_decomposed_hangul_are_one_text() -> None:
    table = Table({"서울": [1.0]})
    matcher = EmbeddingMatcher(table, 0.7)
    assert matcher.similarity("서울", unicodedata.normalize("NFD", "서울")) == 1.0
    assert table.batches == [["서울"]]


def test_any_alternative_will_do() -> None:
    matches = EmbeddingMatcher(Table(VECTORS), 0.7).match(
        QuerySet.from_lists([[AnyOf(["a", "east"])]], [["east", "b"]])
    )
    # "east" is the second alternative itself; "b" is 24/25 like the first, 4/5 like the second.
    assert matches.similarity == pytest.approx(np.array([1.0, 24 / 25]), abs=1e-15)


def test_blank_texts_never_match() -> None:
    table = Table({})
    assert EmbeddingMatcher(table, 0.7).similarity(" ", " ") == 0.0
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted"):
        assert len(EmbeddingMatcher(table, 0.7).match(QuerySet.from_lists([[""]], [[" "]]))) == 0
    assert table.batches == []


def test_a_failed_run_does_not_pay_twice() -> None:
    """The first run gets one batch of two and fails; the second asks for the third text only."""
    cache: dict[str, Sequence[float]] = {}
    queries = QuerySet.from_lists([["a"]], [["b", "east"]])
    with pytest.raises(ConnectionError):
        EmbeddingMatcher(Fails(VECTORS, 1), 0.7, batch_size=2, cache=cache).match(queries)
    assert cache == {"a": [3.0, 4.0], "b": [4.0, 3.0]}

    table = Table(VECTORS)
    matches = EmbeddingMatcher(table, 0.7, batch_size=2, cache=cache).match(queries)
    assert table.batches == [["east"]]
    assert matches.similarity == pytest.approx(np.array([24 / 25, 3 / 5]), abs=1e-15)


def test_a_full_cache_needs_no_provider() -> None:
    cache = {"a": [3, 4], "b": np.array([4.0, 3.0])}
    matcher = EmbeddingMatcher(Fails({}, 0), 0.7, cache=cache)
    assert matcher.similarity("a", "b") == pytest.approx(24 / 25)


@pytest.mark.parametrize(
    "bad",
    [
        *([0.0, 0.0], [1.0, float("nan")], [1.0, None], [1.0, float("inf")], [], 1.0, ["x"]),
        *(["0.5"], [1 + 0j], np.array([0.5 + 1j]), [[1.0], [1.0]], [1.0, 2.0, 3.0]),
    ],
)
def test_what_is_no_direction_is_refused_and_not_cached(bad: Any) -> None:
    cache: dict[str, Sequence[float]] = {}
    matcher = EmbeddingMatcher(Table({"a": [3.0, 4.0], "b": bad}), 0.7, batch_size=1, cache=cache)
    with pytest.raises(InvalidInput, match=r"Table\.embed_documents") as caught:
        matcher.similarity("a", "b")
    assert caught.value.argument == "embeddings"
    assert cache == {"a": [3.0, 4.0]}


def test_the_wrong_number_of_vectors_is_refused() -> None:
    class Short(Table):
        def embed_documents(self, texts: list[str]) -> list[Any]:
            return super().embed_documents(texts)[1:]

    with pytest.raises(InvalidInput, match=r"Short\.embed_documents .* got 1 for 2 texts"):
        EmbeddingMatcher(Short(VECTORS), 0.7).similarity("a", "b")


def test_a_cache_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"different lengths \(2, 3\). A cache belongs to one"):
        EmbeddingMatcher(Table(VECTORS), 0.7, cache={"b": [1, 2, 3]}).similarity("a", "b")
    with pytest.raises(ValueError, match=r"the cache returned \[0, 0\] for the text 'b'"):
        EmbeddingMatcher(Table(VECTORS), 0.7, cache={"b": [0, 0]}).similarity("a", "b")


@pytest.mark.parametrize(
    ("embeddings", "came"),
    [("openai", "got 'openai'"), (None, "got None"), (Table, "Table'>; did you forget")],
)
def test_what_cannot_embed_is_refused(embeddings: Any, came: str) -> None:
    with pytest.raises(TypeError, match=f"embeddings must be a LangChain Embeddings .*{came}"):
        EmbeddingMatcher(embeddings, 0.7)


def test_a_cache_that_is_no_dict_is_refused() -> None:
    with pytest.raises(TypeError, match=r"cache must be a dict .*, got .*CacheBackedEmb"):
        EmbeddingMatcher(Table(VECTORS), 0.7, cache=[])  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_size", [0, -1, True, 2.0, None])
def test_a_batch_of_nothing_is_refused(batch_size: Any) -> None:
    with pytest.raises(Refusal) as info:
        EmbeddingMatcher(Table(VECTORS), 0.7, batch_size=batch_size)
    assert info.value.argument == "batch_size"


@pytest.mark.parametrize("threshold", [-0.1, 1.1, True, "0.8", None])
def test_a_threshold_outside_0_to_1_is_refused(threshold: Any) -> None:
    with pytest.raises(Refusal) as info:
        EmbeddingMatcher(Table(VECTORS), threshold)
    assert info.value.argument == "threshold"


@pytest.mark.parametrize(
    ("embeddings", "signature"),
    [
        (Table(VECTORS), "embedding(embeddings=Table#)"),
        (Named(model="te-3"), "embedding(embeddings=Named#,model=te-3)"),
        (
            Named(model=object(), model_name="BAAI/bge-m3"),
            "embedding(embeddings=Named#,model=BAAI/bge-m3)",
        ),
        # A cache in between changes no number.
        (Named(underlying_embeddings=Table(VECTORS)), "embedding(embeddings=Table#)"),
    ],
)
def test_the_signature_names_the_model(embeddings: Embeddings, signature: str) -> None:
    told = EmbeddingMatcher(embeddings, 0.7).signature
    assert re.sub("#[0-9a-f]{12}", "#", told) == signature


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_it_can_be_copied_and_pickled(copied) -> None:
    matcher = copied(EmbeddingMatcher(Table(VECTORS), 0.6, batch_size=3, cache={"a": [1.0, 0.0]}))
    assert (matcher.threshold, matcher.batch_size) == (0.6, 3)
    assert matcher.similarity("a", "east") == 1.0


def test_a_matcher_without_a_model_says_what_to_write() -> None:
    """A threshold alone, or in the model's place, is what people try first."""
    with pytest.raises(InvalidType) as info:
        EmbeddingMatcher(0.8, 0.8)  # type: ignore[arg-type]
    assert "EmbeddingMatcher(embeddings, threshold)" in str(info.value.fix)
