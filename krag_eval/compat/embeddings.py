"""krag's embedding models by name; a provider's package is loaded when its name is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from krag_eval.core import errors

__all__ = ["load_embeddings"]

_MODEL = {"model_name": "jhgan/ko-sroberta-multitask", "model_kwargs": {"device": "cpu"}}


#: Name -> module and class of the model, what installs it, and krag's arguments.
_PROVIDERS: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
    "huggingface": (
        "langchain_huggingface",
        "HuggingFaceEmbeddings",
        'pip install "langchain-huggingface[full]"',
        {**_MODEL, "encode_kwargs": {"normalize_embeddings": False}},
    ),
    "openai": (
        "langchain_openai",
        "OpenAIEmbeddings",
        "pip install langchain-openai",
        {"model": "text-embedding-3-small"},
    ),
    "ollama": (
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
    if embedding_type not in _PROVIDERS:
        refusal = errors.unknown("embedding_type", embedding_type, tuple(_PROVIDERS))
        others = "Any LangChain Embeddings object may be passed instead of a name"
        refusal.fix = f"{refusal.fix} {others}".strip()
        raise refusal
    module, class_name, install, defaults = _PROVIDERS[embedding_type]
    try:
        made = getattr(import_module(module), class_name)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        problem = f"{embedding_type!r} needs {module.replace('_', '-')}"
        fix = f"run: {install} (or pass any LangChain Embeddings object)"
        raise errors.MissingPackage("embedding_type", problem, fix) from error
    return made(**{**defaults, **(embedding_config or {})})
