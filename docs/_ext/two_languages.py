"""Two languages: which page says the same in the other one.

A Korean page lies under ``ko/`` by the name of its English counterpart.

>>> counterpart("metrics", {"metrics", "ko/metrics"})
'ko/metrics'
>>> counterpart("ko/metrics", {"metrics", "ko/metrics"})
'metrics'
>>> counterpart("files", {"files", "ko/index"})
'ko/index'
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["counterpart", "name_languages", "setup"]


def counterpart(page: str, pages: Collection[str]) -> str:
    """Return the page in the other language; its first page where there is no such page."""
    other = page.removeprefix("ko/") if page.startswith("ko/") else f"ko/{page}"
    if other in pages:
        return other
    return "index" if page.startswith("ko/") else "ko/index"


def name_languages(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Tell the templates the page's language and where the other one is."""
    korean = page.startswith("ko/")
    context["language"] = "ko" if korean else "en"
    context["other_language"] = ("en", "English") if korean else ("ko", "한국어")
    context["other_page"] = counterpart(page, app.env.found_docs)


def setup(app: Any) -> dict[str, bool]:
    """Run for every page."""
    app.connect("html-page-context", name_languages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
