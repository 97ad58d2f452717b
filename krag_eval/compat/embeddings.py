"""krag's embedding models by name; a provider's package is loaded when its name is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from krag_eval import errors

__all__ = ["load_embeddings"]

_MODEL = {"model_name": "jhgan/ko-sroberta-multitask", "model_kwargs": {"device": "cpu"}}


class _Provider(NamedTuple):
    module: str
    class_name: str
    install: str
    defaults: Mapping[str, Any]


_PROVIDERS = {
    "huggingface": _Provider(
        "langchain_huggingface",
        "HuggingFaceEmbeddings",
        'pip install "langchain-huggingface[full]"',
        {**_MODEL, "encode_kwargs": {"normalize_embeddings": False}},
    ),
    "openai": _Provider(
        "langchain_openai",
        "OpenAIEmbeddings",
        "pip install langchain-openai",
        {"model": "text-embedding-3-small"},
    ),
    "ollama": _Provider(
        "langchain_ollama",
        "OllamaEmbeddings",
        "pip install langchain-ollama",
        {"model": "bge-m3"},
    ),
}


def load_embeddings(embedding_type: Any, embedding_config: Mapping[str, Any] | None = None) -> Any:
    """Return an embedding model for a provider's name, or the model itself.

    Args:
        embedding_type: ``"huggingface"``, ``"openai"``, ``"ollama"``, or any LangChain
            ``Embeddings``.
        embedding_config: Arguments of the provider's class, on top of krag's defaults.

    Raises:
        InvalidInput: For an unknown name, or a configuration for a model that is already made.
        MissingPackage: If the provider's package is not installed; the message says how to.
    """
    if not isinstance(embedding_type, str):
        if embedding_config:
            be = "belong to an embedding_type given by name"
            raise errors.must("embedding_config", be, type(embedding_type).__name__)
        return embedding_type
    provider = _PROVIDERS.get(embedding_type)
    if provider is None:
        refusal = errors.unknown("embedding_type", embedding_type, tuple(_PROVIDERS))
        others = "Any LangChain Embeddings object may be passed instead of a name"
        refusal.fix = f"{refusal.fix} {others}".strip()
        raise refusal
    try:
        made = getattr(import_module(provider.module), provider.class_name)
    except ModuleNotFoundError as error:
        if error.name != provider.module:
            raise
        problem = f"{embedding_type!r} needs {provider.module.replace('_', '-')}"
        fix = f"run: {provider.install} (or pass any LangChain Embeddings object)"
        raise errors.MissingPackage("embedding_type", problem, fix) from error
    return made(**{**provider.defaults, **(embedding_config or {})})
