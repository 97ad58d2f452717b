"""The packages that the page on sweeps shows, as it shows them."""

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from places import ROOT

from krag_eval import evaluate_retriever, load_dataset, sweep

DATA = ROOT / "notebooks" / "data"
TEXT = (DATA / "handbook.txt").read_text("utf-8")
QUESTIONS = load_dataset(DATA / "handbook_questions.jsonl", actual="excerpts")


def shown(page: Path) -> dict[str, Any]:
    """Run the block of a page that imports bm25s; return what it defines."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (block,) = [one for one in blocks if one.startswith("import bm25s")]
    scope: dict[str, Any] = {"sweep": sweep, "text": TEXT, "questions": QUESTIONS}
    exec(compile(block, page.name, "exec"), scope)
    return scope


@pytest.mark.parametrize("page", ["docs/chunk-sizes.md", "docs/ko/chunk-sizes.md"])
def test_splitters_of_langchain_and_bm25s(page: str) -> None:
    """Each cell is what its retriever gives on chunks cut by hand, asked one by one."""
    scope = shown(ROOT / page)
    found = scope["found"]
    sizes = [int(name.split()[1]) for name in scope["splitters"]]
    assert len(found.cells) == len(sizes) == 2
    for cell, size in zip(found.cells, sizes, strict=True):
        chunks = RecursiveCharacterTextSplitter(chunk_size=size).split_text(TEXT)
        search = scope["by_bm25s"]([Document(page_content=one) for one in chunks])
        alone = evaluate_retriever(
            search, QUESTIONS, 5, "coverage(union=yes)", budget=1000, max_concurrency=1,
            progress=False,
        )  # fmt: skip
        assert cell.n_chunks == len(chunks)
        assert cell.result == alone
