"""Calling: what a retriever may be, what it is asked, and what it may return.

This room knows LangChain's runnables by their methods. It must not know data sets or results.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from krag_eval.documents import DocumentLike, as_document, check_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import Runnable

__all__ = ["Call", "RetrieverLike", "documents_of", "runnable_of"]

#: A retriever, a chain, or a function from question to documents.
RetrieverLike: TypeAlias = "Runnable[Any, Any] | Callable[..., Any]"

_RETRIEVERS = (
    "a LangChain retriever or other Runnable from question to documents, or a function, sync or "
    "async"
)


@dataclass(frozen=True)
class Call:
    """How a retriever is asked, and where in its answer the documents are.

    Attributes:
        runnable: What is asked.
        input_key: The key under which it takes the question; the question itself if ``None``.
        output_key: The key under which it returns the documents; the answer itself if ``None``.
    """

    runnable: Runnable[Any, Any]
    input_key: str | None = None
    output_key: str | None = None

    @classmethod
    def of(
        cls, retriever: RetrieverLike, input_key: str | None = None, output_key: str | None = None
    ) -> Call:
        """Check a retriever and its keys.

        Raises:
            TypeError: If the retriever cannot be asked, or a key is no text.
        """
        for name, key in (("input_key", input_key), ("output_key", output_key)):
            if not isinstance(key, str | None):
                raise TypeError(f"{name} must be the name of a key, or None, got {key!r}.")
        return cls(runnable_of(retriever), input_key, output_key)

    def input(self, question: str) -> Any:
        """Return what the runnable is asked for a question."""
        return question if self.input_key is None else {self.input_key: question}

    def documents(self, answer: Any) -> list[DocumentLike]:
        """Return the documents in an answer, best first."""
        return documents_of(answer, self.output_key)

    @property
    def is_async_only(self) -> bool:
        """Whether it is a coroutine function, which can only be awaited."""
        from langchain_core.runnables import RunnableLambda

        return isinstance(self.runnable, RunnableLambda) and not hasattr(self.runnable, "func")


def runnable_of(retriever: RetrieverLike, name: str = "retriever") -> Runnable[Any, Any]:
    """Return a retriever as something LangChain can run; a function is wrapped.

    Raises:
        TypeError: If it cannot be asked, with what to pass instead.
    """
    from langchain_core.runnables import Runnable, RunnableLambda

    if isinstance(retriever, Runnable):
        return retriever
    if callable(retriever) and not isinstance(retriever, type):
        return RunnableLambda(retriever)
    came = retriever.__name__ if isinstance(retriever, type) else f"a {type(retriever).__name__}"
    hint = "."
    if isinstance(retriever, type):
        hint = ", which is a class; pass an instance of it."
    elif hasattr(retriever, "as_retriever"):
        hint = "; pass its .as_retriever()."
    elif isinstance(retriever, Mapping):
        hint = "; several retrievers are compared by evaluate_retrievers."
    raise TypeError(f"{name} must be {_RETRIEVERS}, got {came}{hint}")


def documents_of(answer: Any, output_key: str | None = None) -> list[DocumentLike]:
    """Return the documents in an answer; those given as dicts become LangChain documents.

    Args:
        answer: A list of documents (``Document``, ``str`` or dict), or a dict that holds one.
        output_key: The key it is under, for a dict.

    Raises:
        ValueError: If the key is missing, naming those that came.
        TypeError: If it is no list of documents.

    >>> documents_of({"context": ["At nine."], "answer": "9"}, "context")
    ['At nine.']
    """
    found = answer if output_key is None else _under(answer, output_key)
    if not isinstance(found, list | tuple):
        raise TypeError(_no_list(found, output_key))
    where = "retrieved documents" if output_key is None else f"retrieved {output_key!r}"
    check_documents(found, where)
    # Asking a Document whether it is a Mapping would take longer than all the rest.
    return [
        one if isinstance(one, str) or hasattr(one, "page_content") else as_document(one)
        for one in found
    ]


def _under(answer: Any, key: str) -> Any:
    if not isinstance(answer, Mapping):
        raise TypeError(
            f"output_key={key!r} is for retrievers that return a dict; this one returned "
            f"{_kind(answer)}; leave output_key out."
        )
    if key not in answer:
        keys = ", ".join(map(repr, answer)) or "no key at all"
        raise ValueError(f"output_key={key!r}: the retriever returned a dict with {keys}.")
    return answer[key]


def _no_list(found: Any, output_key: str | None) -> str:
    where = "the retriever" if output_key is None else f"the retriever, under {output_key!r},"
    said = f"{where} must return a list of documents, best first, got {_kind(found)}"
    if isinstance(found, Mapping) and "page_content" not in found:
        keys = ", ".join(map(repr, found)) or "no key at all"
        return f"{said} with {keys}; name the key of the documents by output_key=…"
    if isinstance(found, str | Mapping) or hasattr(found, "page_content"):
        return f"{said}; return a list, even for one document."
    if inspect.iscoroutine(found):
        found.close()  # or Python warns of it, somewhere else and later
    if inspect.isawaitable(found):
        return f"{said}, which nobody awaited; make it an async function (async def)."
    if hasattr(found, "__iter__"):
        return f"{said}; return list(…) of it."
    return f"{said}."


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
