"""Judgements of what supports what: claims or nuggets against chunks or an answer, from any judge.

:func:`evaluate_support` makes a result of them, to be read, compared and saved as any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval import __version__
from krag_eval.core import (
    N_,
    AveragingMethod,
    Budget,
    Conventions,
    Cutoffs,
    InvalidInput,
    InvalidType,
    Location,
    Metric,
    RowsInMemory,
    Tag,
    clipped,
    must,
    spelled,
)
from krag_eval.core.documents import checked_labels, checked_tags
from krag_eval.core.errors import text
from krag_eval.core.scoring.cutoffs import check_cutoffs
from krag_eval.core.scoring.metrics import called, declarations
from krag_eval.result import EvaluationResult

FloatArray: TypeAlias = NDArray[np.float64]

#: What judges call support -> how much of a claim it is: the words of AutoNuggetizer, RAGChecker.
_GRADES = {
    "support": 1.0,
    "partial_support": 0.5,
    "not_support": 0.0,
    "entailment": 1.0,
    "neutral": 0.0,
    "contradiction": 0.0,
}
_ALLOWED = f"a number from 0 to 1, or one of {', '.join(_GRADES)}"
_VITAL = {"vital": True, "okay": False}


class _Judged(NamedTuple):
    """One question: how much each chunk supports each claim, and which claims are vital."""

    support: FloatArray
    vital: NDArray[np.bool_] | None


def evaluate_support(
    matrix: Any,
    *,
    importance: Sequence[Any] | None = None,
    k: Cutoffs = None,
    judge: str | None = None,
    queries: Iterable[str | int] | None = None,
    tags: Mapping[str, Sequence[Tag]] | None = None,
) -> EvaluationResult:
    """Return what a judge's verdicts on claims come to: nuggets, claims or facts, from any tool.

    A matrix says of one question how much each chunk supports each claim: a row per claim, a column
    per chunk, best first; where a whole answer was judged, it is the only column. A claim counts by
    the chunk that supports it best. Per question:

    - ``strict_all``: the share of the claims that are supported in full;
    - ``lenient_all``: the same, partial support (anything between 0 and 1) counting ½;
    - ``strict_vital``, ``lenient_vital``: the same of the vital claims, with ``importance``;
      undefined where none is vital, and ``vital_rate`` is the share of questions with some;
    - ``claim_recall``: the mean over claims of the best chunk;
    - ``context_precision``: the mean over chunks of the claim that each supports best; 0 without
      chunks.

    The first four are the nugget scores of AutoNuggetizer (Pradeep et al. 2024), the last two those
    of RAGChecker (Ru et al. 2024); all are from 0 to 1. Claim recall is the lenient score, unless a
    judge gives other numbers than 0, ½ and 1. The counts of a row are the claims
    (``ground_truth``), the chunks (``retrieved``), and how many of each give or have full support.

    Args:
        matrix: One matrix, or one per question: lists of lists, arrays or tables of numbers from 0
            to 1, booleans, or the words of the two tools: ``"support"``, ``"partial_support"``,
            ``"not_support"``; ``"Entailment"``, ``"Neutral"``, ``"Contradiction"``.
        importance: Per claim, ``"vital"`` or ``"okay"``: one list, or one per question.
        k: How many chunks to look at: a cutoff or several; all if not given.
        judge: The judge's name and version, such as ``"gpt-4o-2024-08-06"``; it is part of the
            signature, and results of different judges are not compared.
        queries: One label per question; 0, 1, … if not given.
        tags: Name -> one value per question, as :class:`~krag_eval.OfflineRetrievalEvaluator` takes
            them.

    Raises:
        InvalidType: If a matrix is none, or a judgement is of another type.
        InvalidInput: If a judgement is no such number or word, rows differ in length, a question
            has no claims, or there is not one importance per claim.

    >>> result = evaluate_support(
    ...     [["support", "not_support"], ["partial_support", "not_support"], [0, 0]],
    ...     importance=["vital", "okay", "vital"], judge="gpt-4o-2024-08-06")
    >>> {key: round(value, 4) for key, value in result.averages().items()}
    {'strict_all': 0.3333, 'lenient_all': 0.5, 'strict_vital': 0.5, 'vital_rate': 1.0,
    'lenient_vital': 0.5, 'claim_recall': 0.5, 'context_precision': 0.5}
    """
    if judge is not None:
        text("judge", judge, "the judge's name and version")
    judged = _judged(matrix, importance)
    cutoffs = check_cutoffs(k)
    for one in cutoffs:
        if isinstance(one, Budget):
            problem = f"must count chunks, of which no length is known, got {spelled(one)}"
            raise InvalidInput("k", problem)
    metrics = {one.name: one for one in _METRICS if importance is not None or one not in _OF_VITAL}
    n_queries = len(judged)
    return EvaluationResult(
        settings={
            "judge": judge or "-",
            "k": ",".join(map(spelled, cutoffs)),
            "importance": "-" if importance is None else "given",
            "queries": str(n_queries),
            "krag_eval": __version__,
        },
        rows=RowsInMemory(
            labels=[*range(n_queries)] if queries is None else checked_labels(queries, n_queries),
            tables={one: _table(judged, one, metrics) for one in cutoffs},
            counted=np.ones(n_queries, np.bool_),
            digests=list(map(_digest, judged)),
            tags=checked_tags(tags or {}, n_queries),
        ),
        keys={name: metric.key for name, metric in metrics.items()},
        averaging_method=AveragingMethod.BOTH,
        conventions=Conventions(),
        declared=declarations(metrics),
    )


# The matrices


def _judged(matrix: Any, importance: Any) -> list[_Judged]:
    """Return the questions, checked."""
    given = _plain(matrix)
    single = _is_matrix(given)
    matrices = [given] if single else given
    # Of one matrix, places are named within it.
    numbers: list[int | None] = [None] if single else [*range(len(matrices))]
    support = list(map(_support, matrices, numbers))
    if importance is None:
        return [_Judged(one, None) for one in support]
    lists = [_plain(importance)] if single else _plain(importance)
    if not isinstance(lists, list) or len(lists) != len(support):
        problem = f"must have one list for each of {len(support)} questions, got {clipped(lists)}"
        raise InvalidInput("importance", problem)
    sizes = map(len, support)
    return [
        _Judged(*pair) for pair in zip(support, map(_vital, lists, numbers, sizes), strict=True)
    ]


def _plain(value: Any) -> Any:
    """Return arrays and tables, and lists that hold some, as lists."""
    for name in ("to_numpy", "tolist"):
        if hasattr(value, name):
            value = getattr(value, name)()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _is_matrix(given: Any) -> bool:
    """Tell one matrix from a list of some, by how deep the lists are nested."""
    if not isinstance(given, list) or not all(isinstance(one, list) for one in given):
        be = "be a matrix, a row per claim and a column per chunk, or a list of them"
        fix = "write [[1], [0]] for two claims judged against one text"
        raise must("matrix", be, given, fix, InvalidType)
    cells = [cell for one in given for cell in one]
    if not cells:
        raise InvalidInput("matrix", f"must hold some judgement, got {clipped(given)}")
    return not any(isinstance(cell, list) for cell in cells)


def _support(rows: list[Any], query: int | None) -> FloatArray:
    """Return one question's matrix; shape (claims, chunks)."""
    at = Location("matrix", query)
    if not rows:
        raise at.error(": the question has no claims", "leave it out")
    lengths = {len(row) if isinstance(row, list) else -1 for row in rows}
    if len(lengths) > 1 or -1 in lengths:
        raise at.error(": every claim must have a list with one judgement per chunk")
    cells = [
        [_grade(cell, at.inside(f"[{claim}][{chunk}]")) for chunk, cell in enumerate(row)]
        for claim, row in enumerate(rows)
    ]
    return np.array(cells, np.float64).reshape(len(rows), lengths.pop())


def _grade(cell: Any, at: Location) -> float:
    """Return a judgement as a number."""
    problem = f": a judgement is {_ALLOWED}, got {clipped(cell)}"
    if not isinstance(cell, str | Real):
        raise at.type_error(problem)
    grade = _GRADES.get(cell.strip().lower(), np.nan) if isinstance(cell, str) else float(cell)
    if not 0 <= grade <= 1:
        raise at.error(problem)
    return grade


def _vital(given: Any, query: int | None, n_claims: int) -> NDArray[np.bool_]:
    """Return which claims of a question are vital; shape (claims,)."""
    at = Location("importance", query)
    if not isinstance(given, list) or len(given) != n_claims:
        raise at.error(f": must be a list with one word for each of {n_claims} claims")
    for claim, one in enumerate(given):
        if not isinstance(one, str) or one.strip().lower() not in _VITAL:
            allowed = " or ".join(map(repr, _VITAL))
            raise at.inside(f"[{claim}]").error(f": must be {allowed}, got {clipped(one)}")
    return np.array([_VITAL[one.strip().lower()] for one in given], np.bool_)


def _digest(one: _Judged) -> str:
    """Return what tells a question's claims from other ones: how many, and which are vital."""
    content = f"{len(one.support)} {None if one.vital is None else one.vital.tolist()}"
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


# The scores


def _table(
    judged: Sequence[_Judged], k: Any, metrics: Mapping[str, Metric]
) -> dict[str, NDArray[Any]]:
    """Return the counts and the scores at one cutoff; each of shape (questions,)."""
    seen = [one._replace(support=one.support[:, :k]) for one in judged]
    full = [one.support == 1 for one in seen]
    n_chunks = [one.shape[1] for one in full]
    counts = {
        "ground_truth": [len(one) for one in full],
        "retrieved": n_chunks,
        "relevant": [int(one.any(axis=0).sum()) for one in full],
        "covered": [int(one.any(axis=1).sum()) for one in full],
        "precision_base": n_chunks,
    }
    return {
        **{name: np.array(values, np.int64) for name, values in counts.items()},
        **{name: one.compute(seen) for name, one in metrics.items()},
    }


def _best(one: _Judged) -> FloatArray:
    """Return how much the best chunk supports each claim, 0 without chunks; shape (claims,)."""
    return np.asarray(one.support.max(axis=1, initial=0.0), np.float64)


def _strict(best: FloatArray) -> FloatArray:
    return np.asarray(best == 1, np.float64)


def _lenient(best: FloatArray) -> FloatArray:
    return np.asarray(((best > 0) + _strict(best)) / 2, np.float64)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else np.nan


def _context_precision(one: _Judged) -> float:
    return _mean(one.support.max(axis=0)) if one.support.shape[1] else 0.0


def _score(name: str, of_one: Callable[[_Judged], float], english: str, **more: Any) -> Metric:
    """Return a score as a metric, for its name, range and labels."""

    def compute(judged: Sequence[_Judged]) -> FloatArray:
        return np.array([of_one(one) for one in judged], np.float64)

    return Metric(name, compute, name, labels=called(english), range=(0.0, 1.0), **more)


_OF_VITAL = (
    _score(
        "strict_vital",
        lambda one: _mean(_strict(_best(one)[one.vital])),
        N_("Vital support, strict"),
        defined_key="vital_rate",
        defined_labels=called(N_("Questions with vital claims")),
    ),
    _score(
        "lenient_vital",
        lambda one: _mean(_lenient(_best(one)[one.vital])),
        N_("Vital support, lenient"),
    ),
)
_METRICS = (
    _score("strict_all", lambda one: _mean(_strict(_best(one))), N_("Support, strict")),
    _score(
        "lenient_all",
        lambda one: _mean(_lenient(_best(one))),
        N_("Support, lenient"),
    ),
    *_OF_VITAL,
    _score("claim_recall", lambda one: _mean(_best(one)), N_("Claim recall")),
    _score("context_precision", _context_precision, N_("Context precision")),
)
