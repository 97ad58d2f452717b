"""Embedding: cosines in [0, 1], each distinct text embedded once, invalid vectors refused."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from matched import pairs, scores_of

from krag_eval import EmbeddingMatcher, KragEvalWarning
from krag_eval.core import QuerySet
from krag_eval.errors import InvalidInput, InvalidType

# Lengths 5, 5 and 1, so that the cosines are easy to see: 24/25, 3/5, 4/5 and their opposites.
VECTORS = {"a": [3.0, 4.0], "b": [4.0, 3.0], "east": [1.0, 0.0], "-a": [-3.0, -4.0]}


class Table(Embeddings):
    """Looks vectors up, and remembers what it was asked; after so many answers, it fails."""

    def __init__(self, vectors=VECTORS, answers=None, **names):
        self.vectors, self.answers = vectors, answers
        self.batches = []
        vars(self).update(names)

    def embed_documents(self, texts):
        if len(self.batches) == self.answers:
            raise ConnectionError("quota exceeded")
        self.batches.append(list(texts))
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        raise AssertionError("both sides are documents")


def test_the_similarity_is_the_cosine():
    """(3*4 + 4*3) / (5 * 5), 3 / (5 * 1), 4 / (5 * 1); of opposite meanings it is 0."""
    matcher = EmbeddingMatcher(Table(), 0.7)
    scores = scores_of(matcher, ["a", "b"], ["a", "b", "east"])
    assert scores == pytest.approx(np.array([[1, 24 / 25, 3 / 5], [24 / 25, 1, 4 / 5]]), abs=1e-15)
    assert matcher.similarity("a", "-a") == 0.0


def test_only_the_direction_counts():
    """Even where the squares of the numbers are beyond what a float can hold."""
    vectors = {"huge": [3e300, 4e300], "tiny": [3e-300, 4e-300], "a": [3.0, 4.0]}
    scores = scores_of(EmbeddingMatcher(Table(vectors), 0.7), ["huge", "tiny"], ["a"])
    assert scores.tolist() == [[1.0], [1.0]]


vectors = st.lists(st.floats(-1e6, 1e6), min_size=7, max_size=7).filter(
    lambda vector: max(map(abs, vector)) > 1e-3
)


@given(table=st.lists(vectors, min_size=1, max_size=6))
def test_it_equals_the_definition_alone_and_in_a_batch(table):
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
def test_identical_texts_are_exactly_1(size, text):
    embeddings = DeterministicFakeEmbedding(size=size)
    assert EmbeddingMatcher(embeddings, 1.0).similarity(text, text) == 1.0


def test_random_directions_of_many_dimensions_are_near_0():
    """Cosines of random vectors of n dimensions are spread around 0 by 1 / sqrt(n), here 1/32."""
    matcher = EmbeddingMatcher(DeterministicFakeEmbedding(size=1024), 0.7)
    texts = [f"text {number}" for number in range(20)]
    scores = scores_of(matcher, texts, texts)
    assert scores[~np.eye(20, dtype=bool)].max() < 6 / 32
    # A product of matrices would sum so many numbers in another order for a pair alone.
    alone = [[matcher.similarity(one, other) for other in texts[:9]] for one in texts[:9]]
    assert scores[:9, :9].tolist() == alone


def test_each_distinct_text_is_embedded_once_in_batches():
    """Three distinct texts over two queries; a blank one is never sent to a provider."""
    table = Table()
    queries = QuerySet.from_lists([["a"], ["a", "b"]], [["b", "a", " "], ["east", "b"]])
    with pytest.warns(KragEvalWarning, match="0 ground-truth and 1 predicted"):
        EmbeddingMatcher(table, 0.7, batch_size=2).match(queries)
    assert table.batches == [["a", "b"], ["east"]]


def test_a_failed_run_does_not_pay_twice():
    """The first run gets one batch of two and fails; the second asks for the third text only."""
    cache, asked = {}, (["a"], ["b", "east"])
    with pytest.raises(ConnectionError):
        pairs(EmbeddingMatcher(Table(answers=1), 0.7, batch_size=2, cache=cache), *asked)
    assert cache == {"a": [3.0, 4.0], "b": [4.0, 3.0]}
    table = Table()
    scores = scores_of(EmbeddingMatcher(table, 0.7, batch_size=2, cache=cache), *asked)
    assert table.batches == [["east"]]
    assert scores == pytest.approx(np.array([[24 / 25, 3 / 5]]), abs=1e-15)
    full = EmbeddingMatcher(Table(answers=0), 0.7, cache={"a": [3, 4], "b": np.array([4.0, 3.0])})
    for one in (full, copy.deepcopy(full), pickle.loads(pickle.dumps(full))):
        assert one.similarity("a", "b") == pytest.approx(24 / 25)  # a copy has the cache, too


def test_what_is_no_direction_is_not_cached():
    """What came before it is; the error says who returned what for which text."""
    cache = {}
    table = Table({"a": [3.0, 4.0], "b": [0.0, 0.0]})
    with pytest.raises(InvalidInput, match=r"Table\.embed_documents returned .* text 'b'"):
        EmbeddingMatcher(table, 0.7, batch_size=1, cache=cache).similarity("a", "b")
    assert cache == {"a": [3.0, 4.0]}
    with pytest.raises(InvalidInput, match="the cache returned"):
        EmbeddingMatcher(table, 0.7, cache={"b": [0, 0]}).similarity("a", "b")


def test_a_matcher_without_a_model_says_what_to_write():
    """A threshold alone, or in the model's place, is what people try first; or a class."""
    for given_first, fix in {
        0.8: "EmbeddingMatcher(embeddings, threshold)",
        Table: "call it",
    }.items():
        with pytest.raises(InvalidType) as info:
            EmbeddingMatcher(given_first, 0.8)
        assert fix in str(info.value.fix)


@pytest.mark.parametrize(
    ("names", "signature"),
    [
        ({}, "embedding(embeddings=Table#unknown)"),
        ({"model": "te-3"}, "embedding(embeddings=Table#unknown,model=te-3)"),
        (
            {"model": 1, "model_name": "BAAI/m3"},
            "embedding(embeddings=Table#unknown,model=BAAI/m3)",
        ),
        # A cache in between changes no number.
        (
            {"underlying_embeddings": DeterministicFakeEmbedding(size=3)},
            "embedding(embeddings=DeterministicFakeEmbedding#)",
        ),
    ],
)
def test_the_signature_names_the_model(names, signature):
    told = EmbeddingMatcher(Table(**names), 0.7).signature
    assert re.sub("#[0-9a-f]{12}", "#", told) == signature
