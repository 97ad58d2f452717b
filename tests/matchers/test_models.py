"""Models: made when needed, once per process, and never part of a pickle."""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from krag_eval import EmbeddingMatcher, KiwiTokenizer, RougeMatcher
from krag_eval.core.matching.tokenizers import shared_kiwi
from krag_eval.matchers import embedding as models
from krag_eval.matchers.embedding import MadeOnce
from krag_eval.partitions import PartitionPlan

made = []


def make_embeddings():
    """Make a model that weighs something, and write down that it was made."""
    made.append("model")
    embeddings = DeterministicFakeEmbedding(size=8)
    object.__setattr__(embeddings, "weights", bytes(1_000_000))
    return embeddings


@pytest.fixture(autouse=True)
def _nothing_made():
    made.clear()
    models._made.cache_clear()


def test_a_model_is_made_at_the_first_text_alone():
    """Neither when the matcher is made, nor for its signature."""
    matcher = EmbeddingMatcher(make_embeddings, 0.5)
    assert matcher.signature == "embedding(embeddings=make_embeddings#unknown)"  # it counts
    assert made == []
    assert matcher.similarity("a", "a") == 1.0
    assert made == ["model"]


def test_a_worker_that_is_sent_a_plan_again_and_again_makes_its_model_once():
    """Each part of a run on a cluster comes with a pickle of the plan, and no model in it."""
    pickled = pickle.dumps(PartitionPlan.of(1, matcher=EmbeddingMatcher(make_embeddings, 0.5)))
    assert len(pickled) < 10_000
    for _ in range(3):
        part = pickle.loads(pickled).evaluate([["a"]], [["a"]])
        assert part.rows["hit_rate@1"].tolist() == [1.0]
    assert made == ["model"]


def test_the_same_similarities_as_of_embeddings_given_as_such():
    """How the model came is no difference."""
    given = EmbeddingMatcher(DeterministicFakeEmbedding(size=8), 0.5)
    lazily = copy.deepcopy(EmbeddingMatcher(make_embeddings, 0.5))
    assert lazily.similarity("a", "b") == given.similarity("a", "b")


def test_threads_wait_for_the_first_to_make_the_model():
    """However many ask at once."""

    def slowly():
        made.append("model")
        time.sleep(0.05)
        return object()

    model = MadeOnce(slowly)
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(lambda _: model.get(), range(4))}) == 1
    assert made == ["model"]


def test_models_of_the_past_make_room():
    """A process that is asked for ever new ones does not grow without end."""
    for _ in range(10):
        MadeOnce(list).get()
    assert models._made.cache_info().currsize == 4


def test_a_plan_with_kiwi_holds_no_kiwi():
    """Its model has 500 MB; each process has its own, shared by all tokenizers."""
    plan = PartitionPlan.of(1, matcher=RougeMatcher("rouge1", tokenizer="kiwi"))
    assert plan.evaluate([["밥을 먹었다"]], [["밥을 먹었다"]]).rows["hit_rate@1"].tolist() == [1.0]
    loaded = shared_kiwi._get()
    pickled = pickle.dumps(plan)
    assert len(pickled) < 10_000
    again = pickle.loads(pickled)
    assert again.evaluate([["밥을"]], [["밥을"]]).rows["hit_rate@1"].tolist() == [1.0]
    assert isinstance(again.plan.matcher.tokenizer, KiwiTokenizer)
    assert shared_kiwi._get() is loaded
