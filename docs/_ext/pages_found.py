"""Which pages there are: notebooks are brought in, and no page stands outside the contents.

Notebooks are copied beside the pages for the build, and shown with the outputs they were saved
with. In ``index.md`` an entry of the contents whose page is not written yet is left out, and
``(the rest)`` becomes the pages that no entry names, ``ko/(the rest)`` those in Korean.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

__all__ = ["contents", "copy_notebooks", "setup"]

THE_REST = "(the rest)"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def copy_notebooks(app: Any) -> None:
    """Let the pages have the notebooks that the project has, and no more."""
    pages = Path(app.srcdir)
    notebooks = (pages.parent / "notebooks").glob("[0-9]*.ipynb")
    wanted = {page_of(path.name): path for path in notebooks}
    for path in [*pages.glob("notebooks/*.ipynb"), *pages.glob("ko/notebooks/*.ipynb")]:
        if path.relative_to(pages).as_posix() not in wanted:
            path.unlink()
    for page, path in wanted.items():
        copy, text = pages / page, as_page(path.read_text("utf-8"), page)
        copy.parent.mkdir(exist_ok=True)
        if not copy.exists() or copy.read_text("utf-8") != text:
            copy.write_text(text, "utf-8")


def page_of(notebook: str) -> str:
    """Return where a notebook stands among the pages; Korean ones stand with the Korean pages.

    >>> page_of("01-start.ipynb"), page_of("01-start.ko.ipynb")
    ('notebooks/01-start.ipynb', 'ko/notebooks/01-start.ipynb')
    """
    name = notebook.removesuffix(".ipynb")
    folder = "ko/notebooks" if name.endswith(".ko") else "notebooks"
    return f"{folder}/{name.removesuffix('.ko')}.ipynb"


def as_page(notebook: str, page: str) -> str:
    """Return a notebook whose links lead from where it stands among the pages."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = _LINK.sub(lambda match: f"]({moved(match[1], page)})", text)
    return json.dumps(content, ensure_ascii=False)


def moved(link: str, page: str) -> str:
    """Return a link of a notebook as it is from its page; one to elsewhere stays.

    >>> moved("../docs/ko/metrics.md#f1", "ko/notebooks/01-start.ipynb")
    '../metrics.md#f1'
    >>> moved("02-more.ko.ipynb", "notebooks/01-start.ipynb")
    '../ko/notebooks/02-more.ipynb'
    >>> moved("https://example.org", "notebooks/01-start.ipynb")
    'https://example.org'
    """
    path, hash_, anchor = link.partition("#")
    target = posixpath.normpath(f"notebooks/{path}")
    if target.startswith("docs/"):
        target = target.removeprefix("docs/")
    elif path.endswith(".ipynb"):
        target = page_of(posixpath.basename(path))
    else:
        return link
    return posixpath.relpath(target, posixpath.dirname(page)) + hash_ + anchor


def contents(text: str, pages: Collection[str]) -> str:
    r"""Return the page with its contents as they can be today.

    >>> page = "```{toctree}\n:hidden:\n\nwhy\nlater\n(the rest)\n```"
    >>> print(contents(page, ["index", "why", "new", "ko/index"]))
    ```{toctree}
    :hidden:
    <BLANKLINE>
    why
    new
    ```
    """
    entries = [line for block in _TOCTREE.findall(text) for line in block.splitlines()]

    def of(match: re.Match[str]) -> str:
        lines = []
        for line in match[1].splitlines():
            if line.endswith(THE_REST):
                lines += _rest(line.removesuffix(THE_REST), pages, entries)
            elif line == "" or line.startswith(":") or _is_there(line, pages):
                lines.append(line)
        return "\n".join(["```{toctree}", *lines, "```"])

    return _TOCTREE.sub(of, text)


def _rest(folder: str, pages: Collection[str], entries: Collection[str]) -> list[str]:
    """Return the pages of a folder, not of those within it, that no entry names."""
    named = {"index", *entries}
    inside = [page for page in pages if page.startswith(folder) and page not in named]
    return sorted(page for page in inside if "/" not in page.removeprefix(folder))


def _is_there(entry: str, pages: Collection[str]) -> bool:
    folder, star, _ = entry.partition("*")
    return entry in pages or (star == "*" and any(page.startswith(folder) for page in pages))


def led_to_notebooks(text: str, page: str) -> str:
    """Return a page whose links to notebooks of the project lead to their pages.

    >>> led_to_notebooks("[start](../notebooks/01-start.ipynb)", "quickstart")
    '[start](notebooks/01-start.ipynb)'
    >>> led_to_notebooks("[시작](../../notebooks/01-start.ko.ipynb)", "ko/quickstart")
    '[시작](notebooks/01-start.ipynb)'
    """

    def of(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), match[1]))
        if not (target.startswith("notebooks/") and target.endswith(".ipynb")):
            return match[0]
        there = page_of(posixpath.basename(target))
        return f"]({posixpath.relpath(there, posixpath.dirname(page) or '.')})"

    return _LINK.sub(of, text)


def change_source(app: Any, page: str, source: list[str]) -> None:
    """Change pages as Sphinx reads them; the first one has the contents."""
    if "notebooks/" not in page:
        source[0] = led_to_notebooks(source[0], page)
    if page == "index":
        source[0] = contents(source[0], app.env.found_docs)


def setup(app: Any) -> dict[str, bool]:
    """Copy before Sphinx looks for pages; change what is read."""
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", change_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
