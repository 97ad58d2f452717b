"""What each system says of each pair, once per pair of texts, kept in a folder if there is one."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from krag_eval import matchers
from krag_eval.core import matching
from study import systems
from study.systems import System

#: (wanted, chunk), and the question if the system sees it -> the number of these texts.
Texts = dict[tuple[str, ...], int]


def distinct(pairs: Sequence[tuple[str, ...]]) -> tuple[Texts, NDArray[np.intp]]:
    """Return the distinct pairs of texts, and which of them each pair is.

    >>> distinct([("a", "b"), ("c", "d"), ("a", "b")])
    ({('a', 'b'): 0, ('c', 'd'): 1}, array([0, 1, 0]))
    """
    texts: Texts = {}
    return texts, np.array([texts.setdefault(one, len(texts)) for one in pairs], np.intp)


@cache
def _code(family: str) -> str:
    """Return the sum of the code that decides, so that nothing older is taken for it."""
    digest = hashlib.sha256()
    packages = () if family == "embeddings" else (matching, matchers)
    own = [path for one in packages for path in sorted(Path(one.__path__[0]).glob("*.py"))]
    for path in (*own, Path(systems.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def similarities(
    system: System, pairs: Sequence[tuple[str, ...]], kept: Path | None = None
) -> NDArray[np.float64]:
    """Return the similarity of each pair; read it from a file of the same system and texts.

    Args:
        system: Who decides.
        pairs: (wanted, chunk), and the question if the system sees it.
        kept: A folder that similarities are kept in, so that a run that was stopped goes on.
    """
    texts, place = distinct(pairs)
    digest = hashlib.sha256(f"{system.name}\n{system.definition}\n{_code(system.family)}".encode())
    for one in texts:
        digest.update(json.dumps(one).encode())
    file = kept and kept / f"{digest.hexdigest()[:24]}.npy"
    if file and file.exists():
        return np.load(file)[place]
    start = time.perf_counter()
    found = np.asarray(system.similarities([*texts]), np.float64)
    print(f"  {system.name}: {len(texts):,} pairs, {time.perf_counter() - start:.0f} s", flush=True)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, found)
    return found[place]
