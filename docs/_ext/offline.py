"""Whether the built site needs a network: no page may load anything from another host.

    python docs/_ext/offline.py docs/_build/html

Links for the reader to follow may lead anywhere; pictures, scripts, styles and fonts may not. It
checks as well that every link and picture within the site leads to a file and an anchor that are
there, and so does every page that only sends on to another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["faults", "main"]

#: What a browser fetches by itself: tag -> attribute.
FETCHED = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}


class _Page(HTMLParser):
    """What one page names: addresses fetched, addresses to follow, and its own anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.followed: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Keep the address of a tag that has one, and its name."""
        of = dict(attributes)
        if address := of.get(FETCHED.get(tag, "")):
            self.fetched.append(address)
        if tag == "a" and (address := of.get("href")):
            self.followed.append(address)
        if tag == "meta" and of.get("http-equiv") == "refresh":
            self.followed.append((of.get("content") or "").partition("url=")[2])
        self.anchors.add(of.get("id") or "")


def faults(site: Path) -> Iterator[str]:
    """Tell what is wrong in a built site, a line each."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site.resolve()).as_posix()
        for address in page.fetched:
            if is_elsewhere(address):
                yield f"{name}: loads {address}"
        for address in dict.fromkeys([*page.fetched, *page.followed]):
            if not is_elsewhere(address) and not _leads_somewhere(path, address, pages):
                yield f"{name}: {address} is not there"
    for path in sorted(site.rglob("*.css")):
        if "url(http" in path.read_text("utf-8") or "url(//" in path.read_text("utf-8"):
            yield f"{path.relative_to(site)}: loads from another host"


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def is_elsewhere(address: str) -> bool:
    """Return whether an address is on another host.

    >>> is_elsewhere("https://example.org/a.js"), is_elsewhere("//example.org/a.js")
    (True, True)
    >>> is_elsewhere("_static/a.js"), is_elsewhere("data:image/png;base64,AA")
    (False, False)
    """
    parts = urlsplit(address)
    return parts.scheme not in ("", "data") or parts.netloc != ""


def _leads_somewhere(path: Path, address: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(address)
    if parts.scheme == "data":
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    anchors = pages[target].anchors if target in pages else {""}
    return target.exists() and unquote(parts.fragment) in {*anchors, ""}


def main(site: str) -> int:
    """Print what is wrong; return 1 if anything is."""
    found = list(faults(Path(site)))
    if not list(Path(site).glob("*.html")):
        found.append(f"{site}: no pages there")
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
