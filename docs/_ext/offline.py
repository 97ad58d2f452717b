"""Whether the built site needs a network: no page may load anything from another host.

    python docs/_ext/offline.py docs/_build/html

Links for the reader to follow may lead anywhere; pictures, scripts, styles and fonts may not. It
checks as well that every link and picture within the site leads to a file that is there.
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


class _Addresses(HTMLParser):
    """The addresses of one page: those fetched, and those that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.followed: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Keep the address of a tag that has one."""
        of = dict(attributes)
        if address := of.get(FETCHED.get(tag, "")):
            self.fetched.append(address)
        if tag == "a" and (address := of.get("href")):
            self.followed.append(address)


def faults(site: Path) -> Iterator[str]:
    """Tell what is wrong in a built site, a line each."""
    for path in sorted(site.rglob("*.html")):
        page = _Addresses()
        page.feed(path.read_text("utf-8"))
        name = path.relative_to(site)
        for address in page.fetched:
            if is_elsewhere(address):
                yield f"{name}: loads {address}"
        for address in [*page.fetched, *page.followed]:
            if not is_elsewhere(address) and not _leads_somewhere(path, address):
                yield f"{name}: {address} is not there"
    for path in sorted(site.rglob("*.css")):
        if "url(http" in path.read_text("utf-8") or "url(//" in path.read_text("utf-8"):
            yield f"{path.relative_to(site)}: loads from another host"


def is_elsewhere(address: str) -> bool:
    """Return whether an address is on another host.

    >>> is_elsewhere("https://example.org/a.js"), is_elsewhere("//example.org/a.js")
    (True, True)
    >>> is_elsewhere("_static/a.js"), is_elsewhere("data:image/png;base64,AA")
    (False, False)
    """
    parts = urlsplit(address)
    return parts.scheme not in ("", "data") or parts.netloc != ""


def _leads_somewhere(page: Path, address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme == "data" or (page.parent / unquote(parts.path)).exists()


def main(site: str) -> int:
    """Print what is wrong; return 1 if anything is."""
    found = list(faults(Path(site)))
    if not list(Path(site).glob("*.html")):
        found.append(f"{site}: no pages there")
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
