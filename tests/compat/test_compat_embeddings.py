"""krag's embedding models: by name, loaded when asked for, or any LangChain Embeddings."""

import re
import sys
from types import ModuleType

import pytest

from krag_eval.compat.embeddings import load_embeddings
from krag_eval.compat.evaluators import EmbeddingRougeOfflineRetrievalEvaluators
from krag_eval.errors import InvalidInput, MissingPackage

_DOCUMENTS = [["a cat sat"], ["a dog"]]


class _Model:
    """Stands in for a provider's class; remembers how it was made and what it was asked."""

    def __init__(self, **config):
        self.config = config
        self.asked: list[str] = []

    def embed_documents(self, texts):
        self.asked += texts
        return [[float(len(text)), 1.0] for text in texts]


@pytest.mark.parametrize(
    ("name", "class_name", "install", "config"),
    [
        ("huggingface", "HuggingFaceEmbeddings", '"langchain-huggingface[full]"',
         {"model_name": "jhgan/ko-sroberta-multitask", "model_kwargs": {"device": "cpu"},
          "encode_kwargs": {"normalize_embeddings": False}}),
        ("openai", "OpenAIEmbeddings", "langchain-openai", {"model": "text-embedding-3-small"}),
        ("ollama", "OllamaEmbeddings", "langchain-ollama", {"model": "bge-m3"}),
    ],
)  # fmt: skip
def test_a_name_gives_krags_model(monkeypatch, name, class_name, install, config):
    """The defaults of krag, each of which embedding_config may replace.

    A missing provider is said when the evaluator is made, not when the module is imported.
    """
    provider = ModuleType(f"langchain_{name}")
    setattr(provider, class_name, _Model)
    monkeypatch.setitem(sys.modules, provider.__name__, provider)
    assert load_embeddings(name).config == config
    changed = load_embeddings(name, {"model": "another", "dimensions": 1024})
    assert changed.config == {**config, "model": "another", "dimensions": 1024}
    monkeypatch.setitem(sys.modules, provider.__name__, None)
    with pytest.raises(MissingPackage) as info:
        EmbeddingRougeOfflineRetrievalEvaluators(
            _DOCUMENTS, _DOCUMENTS, embedding_type=name, tokenizer="whitespace"
        )
    assert info.value.argument == "embedding_type"
    assert repr(name) in info.value.problem
    assert f"run: pip install {install} " in str(info.value.fix)


def test_an_import_that_fails_inside_a_provider_is_not_hidden(monkeypatch):
    """The provider is there; what it lacks is for its own message to say."""

    def failing(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("krag_eval.compat.embeddings.import_module", failing)
    with pytest.raises(ModuleNotFoundError, match="torch"):
        load_embeddings("huggingface")


def test_an_unknown_name_says_that_an_object_will_do():
    with pytest.raises(InvalidInput) as info:
        load_embeddings("cohere")
    assert all(name in info.value.problem for name in ("huggingface", "openai", "ollama", "cohere"))
    assert "LangChain Embeddings" in str(info.value.fix)


@pytest.mark.parametrize("argument", ["embedding_type", "embeddings"])
def test_any_embeddings_object_serves(argument):
    """Each distinct text is embedded once, for all seven metrics together."""
    model = _Model()
    evaluator = EmbeddingRougeOfflineRetrievalEvaluators(
        _DOCUMENTS, [["a cat sat", "a cat"], ["a cat"]], tokenizer="whitespace", **{argument: model}
    )
    evaluator.get_metrics_by_averaging_method(10)
    assert evaluator.embeddings is model
    assert sorted(model.asked) == ["a cat", "a cat sat", "a dog"]


def test_thresholds_model_and_tokens_are_in_the_signature():
    """What the numbers depend on; of a model that changes what it holds, that it is unknown."""
    evaluator = EmbeddingRougeOfflineRetrievalEvaluators(
        _DOCUMENTS,
        _DOCUMENTS,
        "rouge2",
        rouge_threshold=0.6,
        similarity_threshold=0.9,
        embedding_type=_Model(),
        tokenizer="whitespace",
    )
    assert re.match(
        r"matcher=krag-embedding-rouge2\(statistic=fmeasure,tokenizer=krag-whitespace,stemmer=yes,"
        r"embeddings=_Model#unknown,similarity_threshold=0\.9\) \| threshold=0\.6",
        evaluator.evaluate(1).signature,
    )
    assert (evaluator.rouge_threshold, evaluator.similarity_threshold) == (0.6, 0.9)
