"""krag's embedding models: by name, loaded when asked for, or any LangChain Embeddings."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest

from krag_eval.compat.embeddings import load_embeddings
from krag_eval.compat.evaluators import EmbeddingRougeOfflineRetrievalEvaluators
from krag_eval.errors import InvalidInput, MissingPackage

_DOCUMENTS = [["a cat sat"], ["a dog"]]


class _Model:
    """Stands in for a provider's class; remembers how it was made and what it was asked."""

    def __init__(self, **config: Any) -> None:
        self.config = config
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(len(text)), 1.0] for text in texts]


def _provide(monkeypatch: pytest.MonkeyPatch, module: str, class_name: str) -> None:
    provider = ModuleType(module)
    setattr(provider, class_name, _Model)
    monkeypatch.setitem(sys.modules, module, provider)


@pytest.mark.parametrize(
    ("name", "module", "class_name", "config"),
    [
        (
            "huggingface",
            "langchain_huggingface",
            "HuggingFaceEmbeddings",
            {
                "model_name": "jhgan/ko-sroberta-multitask",
                "model_kwargs": {"device": "cpu"},
                "encode_kwargs": {"normalize_embeddings": False},
            },
        ),
        ("openai", "langchain_openai", "OpenAIEmbeddings", {"model": "text-embedding-3-small"}),
        ("ollama", "langchain_ollama", "OllamaEmbeddings", {"model": "bge-m3"}),
    ],
)
def test_a_name_gives_krags_model(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, class_name: str, config: Any
) -> None:
    """The defaults of krag, each of which embedding_config may replace."""
    _provide(monkeypatch, module, class_name)
    assert load_embeddings(name).config == config
    changed = load_embeddings(name, {"model": "another", "dimensions": 1024})
    assert changed.config == {**config, "model": "another", "dimensions": 1024}


@pytest.mark.parametrize(
    ("name", "install"),
    [
        ("huggingface", 'pip install "langchain-huggingface[full]"'),
        ("openai", "pip install langchain-openai"),
        ("ollama", "pip install langchain-ollama"),
    ],
)
def test_a_missing_provider_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, name: str, install: str
) -> None:
    """Only now, not when the module is imported."""
    monkeypatch.setitem(sys.modules, f"langchain_{name}", None)
    with pytest.raises(MissingPackage) as info:
        EmbeddingRougeOfflineRetrievalEvaluators(
            _DOCUMENTS, _DOCUMENTS, embedding_type=name, tokenizer="whitespace"
        )
    assert info.value.argument == "embedding_type"
    assert repr(name) in info.value.problem
    assert f"run: {install} " in str(info.value.fix)


def test_an_import_that_fails_inside_a_provider_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider is there; what it lacks is for its own message to say."""

    def failing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("krag_eval.compat.embeddings.import_module", failing)
    with pytest.raises(ModuleNotFoundError, match="torch"):
        load_embeddings("huggingface")


def test_an_unknown_name_is_refused() -> None:
    """Listing the names, and saying that an object will do."""
    with pytest.raises(InvalidInput) as info:
        load_embeddings("cohere")
    assert info.value.argument == "embedding_type"
    assert all(name in info.value.problem for name in ("huggingface", "openai", "ollama", "cohere"))
    assert "LangChain Embeddings" in str(info.value.fix)


@pytest.mark.parametrize("argument", ["embedding_type", "embeddings"])
def test_any_embeddings_object_serves(argument: str) -> None:
    """Each distinct text is embedded once, for all seven metrics together."""
    model = _Model()
    evaluator = EmbeddingRougeOfflineRetrievalEvaluators(
        _DOCUMENTS, [["a cat sat", "a cat"], ["a cat"]], tokenizer="whitespace", **{argument: model}
    )
    evaluator.get_metrics_by_averaging_method(10)
    assert evaluator.embeddings is model
    assert sorted(model.asked) == ["a cat", "a cat sat", "a dog"]


def test_a_configuration_for_a_finished_model_is_refused() -> None:
    """It would have no effect."""
    with pytest.raises(ValueError, match="an embedding_type given by name, got '_Model'"):
        load_embeddings(_Model(), {"model": "another"})


def test_an_object_that_cannot_embed_is_refused() -> None:
    """Before anything is compared."""
    with pytest.raises(TypeError, match="embed_documents"):
        EmbeddingRougeOfflineRetrievalEvaluators(
            _DOCUMENTS, _DOCUMENTS, embedding_type=object(), tokenizer="whitespace"
        )


def test_text_is_no_method_of_the_embedding_evaluator() -> None:
    """In krag it fails at the first metric; no provider is loaded to find out."""
    with pytest.raises(ValueError, match="match_method must be one of 'rouge1', 'rouge2'"):
        EmbeddingRougeOfflineRetrievalEvaluators(_DOCUMENTS, _DOCUMENTS, match_method="text")


def test_thresholds_model_and_tokens_are_in_the_signature() -> None:
    """What the numbers depend on."""
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
        r"embeddings=_Model#[0-9a-f]+,similarity_threshold=0\.9\) \| threshold=0\.6",
        evaluator.evaluate(1).signature,
    )
    assert (evaluator.rouge_threshold, evaluator.similarity_threshold) == (0.6, 0.9)
