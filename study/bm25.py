"""BM25 over whole collections at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_matrix

K1, B = 1.5, 0.75
Read = Callable[[str], list[str]]


def words(text: str) -> list[str]:
    r"""Return lower-cased ``\w+``.

    >>> words("Is it 3.5?")
    ['is', 'it', '3', '5']
    """
    return re.findall(r"\w+", text.lower())


def letters(n: int) -> Read:
    """Return a function that gives the runs of n neighbouring letters and digits of a text.

    >>> letters(2)("세 살!")
    ['세살']
    """

    def of(text: str) -> list[str]:
        joined = "".join(words(text))
        return [joined[at : at + n] for at in range(max(len(joined) - n + 1, 0))]

    return of


def counts(texts: Sequence[str], read: Read, known: dict[str, int]) -> csr_matrix:
    """Return how often each term stands in each text; terms that are new get the next number."""
    rows, columns, data = [], [], []
    for row, text in enumerate(texts):
        for term, n in Counter(read(text)).items():
            rows.append(row)
            columns.append(known.setdefault(term, len(known)))
            data.append(float(n))
    return csr_matrix((data, (rows, columns)), shape=(len(texts), len(known)))


class BM25:
    """BM25 with k1 1.5 and b 0.75, idf ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene.

    Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009. By hand:
    "b" stands in one of two texts of two words each, so its idf is ln 2, and its weight in the
    first is ln 2 * 1 * 2.5 / (1 + 1.5) = ln 2.

    >>> BM25(["a b", "a c"]).scores("b").round(3)
    array([0.693, 0.   ])
    """

    def __init__(self, texts: Sequence[str], read: Read = words) -> None:
        self._read, self._known = read, {}
        found = counts(texts, read, self._known)
        lengths = np.asarray(found.sum(axis=1)).ravel()
        norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
        having = np.bincount(found.indices, minlength=found.shape[1])
        idf = np.log1p((len(texts) - having + 0.5) / (having + 0.5))
        of_row = np.repeat(norm, np.diff(found.indptr))
        found.data = idf[found.indices] * found.data * (K1 + 1) / (found.data + of_row)
        self._weights = found.tocsc()

    def scores(self, question: str) -> np.ndarray:
        """Return the score of each text."""
        asked = {
            term: n for term, n in Counter(self._read(question)).items() if term in self._known
        }
        columns = self._weights[:, [self._known[term] for term in asked]]
        return np.asarray(columns @ np.array([*asked.values()], float)).ravel()

    def best(self, question: str, n: int) -> list[int]:
        """Return the places of the n best texts, the first of equals first."""
        return best(self.scores(question), n)


def best(scores: np.ndarray, n: int) -> list[int]:
    """Return the places of the n highest numbers, the first of equals first.

    >>> best(np.array([1.0, 2.0, 2.0]), 2)
    [1, 2]
    """
    return [int(at) for at in np.argsort(-scores, kind="stable")[:n]]
