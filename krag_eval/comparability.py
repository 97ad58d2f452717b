"""Whether results may be compared: made over the same queries, in the same way.

This room knows what a fair comparison needs, and words what stands in its way. It must not know
statistics, or how results were made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from krag_eval.cutoffs import spelled
from krag_eval.messages import clipped, warn
from krag_eval.results import EvaluationResult

__all__ = ["check_comparable"]

# Settings in which comparable results may differ; their cutoffs are compared as a set.
_MAY_DIFFER = ("averaging", "k", "krag_eval")


def check_comparable(results: Mapping[str, EvaluationResult]) -> EvaluationResult:
    """Refuse results that differ in more than the retriever; return the first."""
    if not isinstance(results, Mapping):
        raise TypeError(
            'results must map names to results, such as {"bm25": result_a, "dense": result_b}, '
            f"got {type(results).__name__}."
        )
    for name, result in results.items():
        if not isinstance(name, str):
            raise TypeError(f"results: a name must be a string, got {name!r}.")
        if not isinstance(result, EvaluationResult):
            raise TypeError(
                f"results: {name!r} must be an EvaluationResult, got {type(result).__name__}."
            )
    if len(results) < 2:
        raise ValueError(f"results must hold at least two results to compare, got {len(results)}.")
    (first_name, first), *others = results.items()
    for name, other in others:
        differing = [*_differing_settings(first, other), *_differing_queries(first, other)]
        if differing:
            raise ValueError(
                f"results: {first_name!r} and {name!r} cannot be compared, because they differ in "
                f"{'; '.join(differing)}. Evaluate both over the same queries with the same "
                "settings."
            )
    _warn_of_versions(results)
    return first


def _differing_settings(first: EvaluationResult, other: EvaluationResult) -> list[str]:
    names = [name for name in {**first.settings, **other.settings} if name not in _MAY_DIFFER]
    pairs = [(name, first.settings.get(name, "?"), other.settings.get(name, "?")) for name in names]
    differing = [f"{name}: {ours} vs {theirs}" for name, ours, theirs in pairs if ours != theirs]
    if set(first.k) != set(other.k):
        ours, theirs = (",".join(map(spelled, result.k)) for result in (first, other))
        differing.append(f"k: {ours} vs {theirs}")
    return differing


def _differing_queries(first: EvaluationResult, other: EvaluationResult) -> list[str]:
    if first.n_queries != other.n_queries:
        known = first.settings.get("queries") != other.settings.get("queries")
        return [] if known else [f"queries: {first.n_queries} vs {other.n_queries}"]
    if first.labels != other.labels:
        reordered = sorted(map(repr, first.labels)) == sorted(map(repr, other.labels))
        what = "order of the queries" if reordered else "queries"
        places = [f"position {i}" for i in range(first.n_queries)]
        return [_first_difference(what, first.labels, other.labels, places)]
    places = [f"query {clipped(label)}" for label in first.labels]
    return [
        _first_difference(what, ours.tolist(), theirs.tolist(), places)
        for what, ours, theirs in (
            ("counted in the averages", first.counted, other.counted),
            ("number of ground-truth items", _ground_truth(first), _ground_truth(other)),
        )
        if not np.array_equal(ours, theirs)
    ]


def _ground_truth(result: EvaluationResult) -> NDArray[np.int64]:
    return np.asarray(next(iter(result.tables.values()))["ground_truth"])


def _first_difference(
    what: str, ours: Sequence[object], theirs: Sequence[object], places: Sequence[str]
) -> str:
    """Word where two columns differ first, and in how many places more."""
    rows = zip(places, ours, theirs, strict=True)
    (place, our, their), *more = [row for row in rows if row[1] != row[2]]
    others = f", and {len(more)} more" if more else ""
    return f"{what}: {clipped(our)} vs {clipped(their)} ({place}{others})"


def _warn_of_versions(results: Mapping[str, EvaluationResult]) -> None:
    versions = {name: result.settings.get("krag_eval", "?") for name, result in results.items()}
    if len(set(versions.values())) > 1:
        named = ", ".join(f"{name!r}: {version}" for name, version in versions.items())
        warn(
            f"The results were made by different versions of krag_eval ({named}). See 'changes in "
            "reported numbers' in the changelog, or evaluate again with one version."
        )
