"""What a tool returned, by its message: documents as its artifact, or written into its content.

LangChain loads with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval.core.documents import as_document, chunk_in
from krag_eval.loading.reading import parsed

if TYPE_CHECKING:
    from krag_eval.core import DocumentLike

# How deep a list of documents may be within an object: {"result": {"documents": [...]}}.
_DEEPEST = 2


class Returned(NamedTuple):
    """What a tool returned.

    Attributes:
        documents: Its documents; ``None`` if nothing says that it returned some.
        texts: Plain texts that may be documents, such as the blocks of a tool of MCP; an empty list
            where it found nothing, ``None`` where it returned anything else.
    """

    documents: list[DocumentLike] | None = None
    texts: list[DocumentLike] | None = None


def returned_in(message: Any) -> Returned:
    """Return the documents in a tool's message, of its artifact or else of its content.

    Content holds documents if it is JSON, a list of texts or of objects with a text, or an object
    with such a list; or if it is a list of content blocks with such texts, as tools of MCP return.

    >>> from langchain_core.messages import ToolMessage
    >>> returned_in(ToolMessage('[{"text": "At nine.", "id": "d1"}]', tool_call_id="1")).documents
    [Document(id='d1', metadata={}, page_content='At nine.')]
    >>> returned_in(ToolMessage([{"type": "text", "text": "At nine."}], tool_call_id="1")).texts
    [Document(metadata={}, page_content='At nine.')]
    """
    artifact = getattr(message, "artifact", None)
    found = documents_found(artifact)
    if found is None and isinstance(artifact, Mapping):  # structured content of MCP
        found = _documents_within(artifact)
    if found is not None:
        return Returned(found)
    content = getattr(message, "content", None)
    if isinstance(content, str):
        value = _from_json(content)
        return Returned() if isinstance(value, str) else _returned([value])
    texts = [*_texts_of_blocks(content)] if isinstance(content, list | tuple) else []
    return _returned([*map(_from_json, texts)]) if texts else Returned()


def documents_found(artifact: Any) -> list[DocumentLike] | None:
    """Return the documents a tool returned as its artifact; ``None`` if that is something else.

    >>> documents_found([{"page_content": "At nine."}])
    [Document(metadata={}, page_content='At nine.')]
    >>> documents_found("9") is None
    True
    """
    if not isinstance(artifact, list | tuple) or not all(map(_is_document, artifact)):
        return None
    return [as_document(one) for one in artifact]


def _is_document(value: Any) -> bool:
    text = value.get("page_content") if isinstance(value, Mapping) else ""
    return isinstance(text, str) and (isinstance(value, Mapping) or hasattr(value, "page_content"))


def _texts_of_blocks(blocks: Sequence[Any]) -> Iterator[str]:
    """Yield the texts of content blocks; pictures and the like have none."""
    for block in blocks:
        text = block.get("text") if isinstance(block, Mapping) else block
        if isinstance(text, str):
            yield text


def _from_json(text: str) -> Any:
    """Return the list or object that a text spells in JSON, or else the text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        return parsed(text)
    except ValueError:
        return text


def _returned(values: Sequence[Any]) -> Returned:
    """Return the documents of what the content of a message spells, one value after the other."""
    documents = [one for value in values for one in _documents_within(value) or ()]
    if documents:
        return Returned(documents)
    lists = [value if isinstance(value, list) else [value] for value in values]
    texts = [one for some in lists for one in some if isinstance(one, str)]
    found_nothing = any(value == [] or (isinstance(value, Mapping) and [] in value.values())
                        for value in values)  # fmt: skip
    return Returned(texts=[*map(as_document, texts)] if texts or found_nothing else None)


def _documents_within(value: Any, level: int = 0) -> list[DocumentLike] | None:
    """Return the documents in what JSON spells; ``None`` where it has no objects with a text.

    >>> _documents_within({"result": {"hits": [{"text": "At nine.", "score": 0.5}]}})
    [Document(metadata={'score': 0.5}, page_content='At nine.')]
    """
    if isinstance(value, Mapping):
        lists = [_documents_within(one, level) for one in value.values() if isinstance(one, list)]
        if len(found := [some for some in lists if some]) == 1:
            return found[0]
        if level < _DEEPEST and chunk_in(value) is None:
            inner = [_documents_within(one, level + 1) for one in value.values()]
            return next(filter(None, inner), None)
        value = [value]
    if not isinstance(value, list):
        return None
    chunks = [chunk_in(one) if isinstance(one, Mapping) else None for one in value]
    are_documents = all(chunk and isinstance(chunk["page_content"], str) for chunk in chunks)
    return [as_document(chunk) for chunk in chunks if chunk] if chunks and are_documents else None
