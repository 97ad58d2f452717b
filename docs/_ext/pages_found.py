"""Which pages there are: notebooks are brought in, and no page stands outside the contents.

Notebooks are copied beside the pages for the build, and shown with the outputs they were saved
with. In ``index.md`` an entry of the contents whose page is not written yet is left out, and
``(the rest)`` becomes the pages that no entry names.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

__all__ = ["contents", "copy_notebooks", "setup"]

THE_REST = "(the rest)"
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def copy_notebooks(app: Any) -> None:
    """Let ``notebooks/`` of the pages hold what ``notebooks/`` of the project does, and no more."""
    source = Path(app.srcdir).parent / "notebooks"
    target = Path(app.srcdir) / "notebooks"
    wanted = {path.name: path for path in source.glob("[0-9]*.ipynb")}
    for path in target.glob("*.ipynb"):
        if path.name not in wanted:
            path.unlink()
    for name, path in wanted.items():
        target.mkdir(exist_ok=True)
        copy = target / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


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
    rest = sorted(page for page in pages if "/" not in page and page not in ("index", *entries))

    def of(match: re.Match[str]) -> str:
        lines = []
        for line in match[1].splitlines():
            if line == THE_REST:
                lines += rest
            elif line == "" or line.startswith(":") or _is_there(line, pages):
                lines.append(line)
        return "\n".join(["```{toctree}", *lines, "```"])

    return _TOCTREE.sub(of, text)


def _is_there(entry: str, pages: Collection[str]) -> bool:
    folder, star, _ = entry.partition("*")
    return entry in pages or (star == "*" and any(page.startswith(folder) for page in pages))


def fill_contents(app: Any, page: str, source: list[str]) -> None:
    """Change the first page as Sphinx reads it."""
    if page == "index":
        source[0] = contents(source[0], app.env.found_docs)


def setup(app: Any) -> dict[str, bool]:
    """Copy before Sphinx looks for pages; change what is read."""
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", fill_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
