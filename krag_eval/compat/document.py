"""krag's document: LangChain's, with a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document

__all__ = ["KragDocument"]

_SUMMARY_LENGTH = 100


class KragDocument(Document):
    """A LangChain ``Document`` that can summarise itself.

    Any other LangChain ``Document``, string or dict is as good an input to the evaluators.

    Args:
        page_content: The text.
        metadata: Anything known about it; none if not given.
        **kwargs: What else LangChain's ``Document`` takes, such as ``id``.

    >>> KragDocument("Opening hours", {"page": 3}).metadata
    {'page': 3}
    """

    def __init__(
        self, page_content: str, metadata: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(page_content=page_content, metadata=dict(metadata or {}), **kwargs)

    def get_summary(self) -> str:
        """Return the first 100 characters, with an ellipsis if there are more.

        >>> len(KragDocument("a" * 500).get_summary())
        103
        """
        text = self.page_content
        return text if len(text) <= _SUMMARY_LENGTH else text[:_SUMMARY_LENGTH] + "..."
