"""What to call several files: short, and each otherwise."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["names_of", "told_apart"]

_ENDINGS = (".jsonl", ".ndjson", ".json")


def names_of(files: Sequence[str]) -> list[str]:
    """Call files by their stems, with as much of their names and paths as tells them apart.

    >>> names_of(["runs/bm25.jsonl.gz", "runs/dense.json"])
    ['bm25', 'dense']
    >>> names_of(["old/bm25.json", "new/bm25.json"]), names_of(["bm25.json", "bm25.jsonl"])
    (['old/bm25', 'new/bm25'], ['bm25.json', 'bm25.jsonl'])
    """
    stems = ["stdin" if file == "-" else _stem(file) for file in files]
    names = told_apart(stems)
    return names if len(set(names)) == len(files) else told_apart(files)


def told_apart(paths: Sequence[str]) -> list[str]:
    """Call files by their names, with as much of their paths as tells them apart."""
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = [os.sep.join(one[-depth:]) for one in parts]
        if len(set(names)) == len(paths):
            return names
    return list(paths)


def _stem(path: str) -> str:
    path = path.removesuffix(".gz")
    for ending in _ENDINGS:
        if path.endswith(ending) and os.path.basename(path) != ending:
            return path.removesuffix(ending)
    return path
