"""Pages that became part of others: their old paths lead to where their text is now.

A browser is sent on without script, a search engine is told which page it is, and there is a link
for everybody else.
"""

from __future__ import annotations

import html
import posixpath
from pathlib import Path
from typing import Any

from sphinx.util import logging

__all__ = ["MOVED", "moved", "setup"]

#: Old page -> the page it is part of now, and its heading there, in English and in Korean: "" if it
#: is the whole page, ``None`` where there never was a Korean page.
MOVED: dict[str, tuple[str, str, str | None]] = {
    "clusters": ("performance", "on-spark-ray-and-dask", None),
    "coverage": ("matching", "coverage-pieces-numbers-negations", "커버리지-조각-숫자-부정문"),
    "dependencies": ("architecture", "what-is-installed-with-it", None),
    "everything-needed": (
        "incomplete-ground-truth",
        "everything-that-is-needed",
        "필요한-것이-다-나왔는가",
    ),
    "how-many-questions": ("comparing", "how-many-questions", "질문은-몇-개나-필요한가"),
    "labels-from-a-model": ("incomplete-ground-truth", "labels-from-a-model", "모델이-붙인-라벨"),
    "long-runs": ("performance", "long-runs-failures-checkpoints-latency", None),
    "matchers": ("matching", "what-each-matcher-does", "매처별-설명"),
    "one-evaluation": ("architecture", "one-evaluation-file-by-file", None),
    "other-frameworks": (
        "langchain",
        "llamaindex-haystack-dspy-vector-stores",
        "llamaindex-haystack-dspy-벡터-저장소",
    ),
    "own-matcher": ("matching", "your-own-matcher", "매처-직접-만들기"),
    "recording": ("langchain", "recording-inside-a-chain", "체인-안에서-기록하기"),
    "saving-data": ("files", "saving-a-data-set", "데이터-저장하기"),
    "scale": ("performance", "files-of-any-size", None),
    "slices": (
        "diagnosis",
        "slices-where-is-retrieval-worse",
        "질문-유형별로-보기-어떤-질문에서-검색이-약한가",
    ),
    "sweeps": (
        "chunk-sizes",
        "sweeps-splitters-and-retrievers-in-one-table",
        "스윕-청크-분할과-검색기를-한-표로-비교하기",
    ),
    "tables": ("files", "any-table-of-questions", "질문-표"),
    "thresholds": ("matching", "thresholds", "임계값"),
    "too-slow": ("performance", "", None),
    "traces": ("langchain", "traces-from-production", "운영-중에-남은-트레이스"),
    "trec": ("files", "trec-beir-and-autorag", "trec-beir-autorag"),
    "undefined": ("conventions", "undefined-and-odd-inputs", "예외적인-입력-처리"),
    "versions": ("rechunking", "several-versions-in-one-index", "한-색인에-여러-버전이-있을-때"),
    "why": ("why-your-rag-metric-is-wrong", "why-measure-retrieval", "왜-검색을-따로-평가하나"),
    "worked-examples": ("conventions", "worked-examples", "손으로-풀어-보는-예제"),
}

PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="canonical" href="{address}">
<meta http-equiv="refresh" content="0; url={address}">
</head>
<body><p>{says} <a href="{address}">{title}</a></p></body>
</html>
"""
SAYS = {"en": "This page has moved to", "ko": "옮겨진 문서:"}


def moved() -> dict[str, tuple[str, str]]:
    """Return the new page and heading of every old path, in both languages.

    >>> moved()["coverage"]
    ('matching', 'coverage-pieces-numbers-negations')
    >>> moved()["ko/coverage"]
    ('ko/matching', '커버리지-조각-숫자-부정문')
    """
    english = {old: (page, heading) for old, (page, heading, _) in MOVED.items()}
    korean = {
        f"ko/{old}": (f"ko/{page}", there)
        for old, (page, _, there) in MOVED.items()
        if there is not None
    }
    return english | korean


def redirection(old: str, address: str, title: str) -> str:
    """Return the page at an old path.

    >>> page = redirection("ko/old", "new.html#id1", "A & B")
    >>> 'content="0; url=new.html#id1"' in page, "A &amp; B" in page, 'lang="ko"' in page
    (True, True, True)
    """
    language = "ko" if old.startswith("ko/") else "en"
    named = {"address": html.escape(address), "title": html.escape(title)}
    return PAGE.format(language=language, says=SAYS[language], **named)


def write(app: Any, exception: Exception | None) -> None:
    """Write a page at every old path; a heading that is not there is a warning."""
    if exception or app.builder.name != "html":
        return
    for old, (page, heading) in moved().items():
        address = f"{posixpath.relpath(page, posixpath.dirname(old) or '.')}.html"
        title = app.env.titles[page].astext()
        slugs = app.env.metadata[page].get("myst_slugs", {})
        if heading in slugs:
            _, anchor, title = slugs[heading]
            address = f"{address}#{anchor}"
        elif heading:
            logging.getLogger(__name__).warning("%s: no heading %r in %s", old, heading, page)
        Path(app.outdir, f"{old}.html").write_text(redirection(old, address, title), "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Run once everything else is written."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
