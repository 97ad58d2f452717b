"""Evaluate a data set as a result was evaluated, for what the result has lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from krag_eval.core import InvalidInput, clipped, labels_for, muted
from krag_eval.loading.loading import dataset_in

if TYPE_CHECKING:
    from krag_eval.core import Matcher, ResultFacts
    from krag_eval.core.evaluator import Evaluator, Result

_EVALUATED_ON = "pass what the result was evaluated on, unchanged"


def evaluated_again(
    result: ResultFacts,
    source: Any,
    kind: type[Evaluator[Result]],
    matcher: str | Matcher | None = None,
) -> Result:
    """Evaluate a data set as a result was, for the evidence and the texts that this has lost.

    Args:
        result: The result. Where it has rows, its labels are kept, and each query must have the
            same ground truth and the same counts; without rows, the sums must be the same.
        source: The data set, or what :func:`load_dataset` makes one of.
        kind: The evaluator.
        matcher: The matcher, where the signature of the result does not tell all.

    Raises:
        InvalidInput: If the data set has other queries, ground truth or lists.
    """
    from krag_eval.core import Budget, NoRows
    from krag_eval.core.matching.names import matcher_of

    data, settings = dataset_in(source), result.settings
    if data.predicted is None:
        problem = "holds no retrieved documents, and the result is of such"
        raise InvalidInput("dataset", problem, "pass the one with the lists that were evaluated")
    if data.n_queries != result.n_queries:
        problem = f"must have the {result.n_queries} queries of the result, got {data.n_queries}"
        raise InvalidInput("dataset", problem, _EVALUATED_ON)
    held = None if result.evidence is None else result.evidence.matcher
    if "matcher" not in settings:
        raise InvalidInput("dataset", ": this result was made of judgements, without documents")
    grades, threshold = settings.get("grades", "-"), settings["threshold"]
    matched_by = matcher_of(settings["matcher"], held, matcher)
    labels = labels_for(matched_by, data.queries, data.questions)
    with muted():
        options: dict[str, Any] = {
            "queries": labels if isinstance(result.rows, NoRows) else result.labels,
            "matcher": matched_by,
            "threshold": None if threshold == "-" else float(threshold),
            "matching_criteria": settings["criteria"],
            "conventions": result.conventions,
            "no_ground_truth": settings["no_ground_truth"].partition("(")[0],
            "grade_key": None if grades == "-" else grades,
            "grades": "no",
            "aspect_key": settings.get("aspects"),
        }
        cutoffs = [k for k in result.k if not isinstance(k, Budget)] or [None]
        again = data._evaluator_of(kind, options).evaluate(cutoffs)
    if isinstance(result.rows, NoRows):
        _check_same_sums(result, again)
    else:
        _check_same_rows(result, again, labels)
    return again


def _check_same_sums(result: ResultFacts, again: ResultFacts) -> None:
    """Refuse other sums at the cutoffs of both."""
    for k in {*result.k} & {*again.k}:
        ours, theirs = (one.summary.sums[k].totals for one in (result, again))
        if any(ours[name] != theirs[name] for name in ours.keys() & theirs.keys()):
            problem = "does not have the sums of the result: other documents, or others retrieved"
            raise InvalidInput("dataset", problem, _EVALUATED_ON)


def _check_same_rows(result: ResultFacts, again: ResultFacts, labels: Sequence[str | int]) -> None:
    """Refuse other labels, other ground truth, and other values at the cutoffs of both."""
    if result.labels != [*range(len(labels))]:
        _check_each("another label", result.labels, labels, labels)
    if result.rows.digests is not None and again.rows.digests is not None:
        _check_each("other ground truth", result.rows.digests, again.rows.digests, labels)
    for k in {*result.k} & {*again.k}:
        ours, theirs = result.tables[k], again.tables[k]
        for name in (one for one in ours if one in theirs):  # the counts come first
            same = np.isclose(ours[name], theirs[name], atol=1e-9, equal_nan=True)
            _check_each("other documents", same, np.ones(len(same), bool), labels)


def _check_each(
    what: str, ours: Iterable[Any], theirs: Iterable[Any], labels: Iterable[str | int]
) -> None:
    for position, (our, their, label) in enumerate(zip(ours, theirs, labels, strict=True)):
        if our != their:
            problem = f"has {what} for query {position}, {clipped(label)}, than the result"
            raise InvalidInput("dataset", problem, _EVALUATED_ON)
