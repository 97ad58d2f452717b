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

import re
from collections.abc import Collection
from typing import Any

__all__ = ["counterpart", "name_languages", "navigation", "setup"]


def counterpart(page: str, pages: Collection[str]) -> str:
    """Return the page in the other language; its first page where there is no such page."""
    other = page.removeprefix("ko/") if page.startswith("ko/") else f"ko/{page}"
    if other in pages:
        return other
    return "index" if page.startswith("ko/") else "ko/index"


def navigation(tree: str, korean: bool) -> str:
    """Return the part of the contents that is in the page's language, by its captions.

    >>> tree = '<p class="caption">Start</p><ul>…</ul><p class="caption">한국어</p><ul></ul>'
    >>> navigation(tree, korean=True)
    '<p class="caption">한국어</p><ul></ul>'
    >>> navigation(tree, korean=False)
    '<p class="caption">Start</p><ul>…</ul>'
    """
    start, *rest = re.split(r'(?=<p class="caption")', tree)
    parts = [part for part in rest if ("한국어" in part.partition("</p>")[0]) == korean]
    return start + "".join(parts)


def name_languages(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Tell the templates the page's language, its contents, and where the other language is."""
    korean = page.startswith("ko/")
    context["language"] = "ko" if korean else "en"
    context["other_language"] = ("en", "English") if korean else ("ko", "한국어")
    context["other_page"] = counterpart(page, app.env.found_docs)
    if contents := context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = navigation(contents, korean)


def setup(app: Any) -> dict[str, bool]:
    """Run for every page, after the theme."""
    app.connect("html-page-context", name_languages, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
