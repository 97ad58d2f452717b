"""From judgements and a run to a data set: ids, grades and scores, the way trec_eval sees them.

Judgements say which documents answer a topic, and how well; a run says which were retrieved, with
what score. This room knows neither files nor texts.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from krag_eval._errors import unknown_name, warn
from krag_eval.conventions import Conventions
from krag_eval.datasets.base import Dataset
from krag_eval.datasets.joining import check_overlap
from krag_eval.documents import AnyOf, DocumentLike

__all__ = ["Missing", "Qrels", "Run", "ScorePrecision", "judged_dataset"]

#: What happens to a topic of the judgements for which the run has nothing.
Missing: TypeAlias = Literal["zero", "skip"]
#: How exactly scores are compared.
ScorePrecision: TypeAlias = Literal["single", "double"]

_GRADE = "grade"
_ABSENT = (
    'and count as nothing retrieved, as with trec_eval -c; missing="skip" leaves them out, as '
    "trec_eval does without -c"
)


@dataclass(frozen=True)
class Qrels:
    """Judgements: topic -> document -> grade, in the order of the file."""

    name: str
    grades: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Run:
    """What was retrieved: topic -> document -> score, in the order of the file."""

    name: str
    scores: Mapping[str, Mapping[str, float]]


def judged_dataset(
    qrels: Qrels,
    run: Run | None,
    *,
    missing: Missing = "zero",
    relevance_level: int = 1,
    scores: ScorePrecision = "single",
) -> Dataset:
    """Return a data set of the judged topics, its documents in the order of their scores.

    Ground truth is what has a grade of at least ``relevance_level``; documents are ids. Without a
    run nothing has been retrieved yet. The options are those of
    :func:`~krag_eval.datasets.read_trec`.

    >>> qrels = Qrels("qrels", {"1": {"a": 1, "b": 0}})
    >>> judged_dataset(qrels, Run("run", {"1": {"b": 0.5, "a": 0.5, "c": 2.0}})).predicted
    [['c', 'b', 'a']]
    """
    _check_options(missing, relevance_level, scores)
    topics = [*qrels.grades] if run is None else _topics(qrels, run, missing)
    relevant = [_relevant(qrels.grades[topic], relevance_level) for topic in topics]
    graded = any(grade != 1 for grades in relevant for grade in grades.values())
    return Dataset(
        queries=list(topics),
        actual=[_ground_truth(grades, graded) for grades in relevant],
        predicted=None if run is None else _ranked(run, topics, scores),
        source=qrels.name if run is None else run.name,
        defaults=_defaults(graded),
    )


def _check_options(missing: object, relevance_level: object, scores: object) -> None:
    if missing not in ("zero", "skip"):
        raise ValueError(unknown_name("missing", missing, ("zero", "skip")))
    if scores not in ("single", "double"):
        raise ValueError(unknown_name("scores", scores, ("single", "double")))
    whole = isinstance(relevance_level, int) and not isinstance(relevance_level, bool)
    if not whole or relevance_level < 1:  # type: ignore[operator]
        raise ValueError(
            "relevance_level must be a whole number of at least 1 (a grade of 0 says that a "
            f"document is not relevant), got {relevance_level!r}."
        )


def _defaults(graded: bool) -> dict[str, Any]:
    """Return the options under which the evaluator says what trec_eval says."""
    options = {
        "matcher": "id",
        "conventions": Conventions.trec(),
        "matching_criteria": "partial",
        "no_ground_truth": "zero",
    }
    return {**options, "grade_key": _GRADE} if graded else options


def _relevant(grades: Mapping[str, int], level: int) -> dict[str, int]:
    return {document: grade for document, grade in grades.items() if grade >= level}


def _ground_truth(grades: Mapping[str, int], graded: bool) -> list[DocumentLike | AnyOf]:
    if not graded:
        return list(grades)
    return [
        {"page_content": document, "id": document, "metadata": {_GRADE: grade}}
        for document, grade in grades.items()
    ]


def _topics(qrels: Qrels, run: Run, missing: Missing) -> list[str]:
    """Return the topics to evaluate, and warn of those only one side knows."""
    check_overlap(
        qrels.grades,
        run.scores,
        expected_name=qrels.name,
        given_name=run.name,
        absent=None if missing == "skip" else _ABSENT,
    )
    return [topic for topic in qrels.grades if missing == "zero" or topic in run.scores]


# In which order documents were retrieved


def _ranked(run: Run, topics: list[str], precision: ScorePrecision) -> list[list[DocumentLike]]:
    """Order documents by score, then by id, both descending: trec_eval's rule.

    trec_eval kept scores in single precision up to version 9, as do the published numbers, and
    has kept them in double precision since.
    """
    ranked: list[list[DocumentLike]] = []
    reordered = []
    for topic in topics:
        exact = run.scores.get(topic, {})
        if precision == "double":
            ranked.append([*_ordered(exact)])
            continue
        rounded = dict(zip(exact, array("f", exact.values()), strict=True))
        order = _ordered(rounded)
        new_ties = len(set(rounded.values())) < len(set(exact.values()))
        if new_ties and order != _ordered(exact):
            reordered.append(topic)
        ranked.append([*order])
    if reordered:
        warn(
            f"{run.name}: in {len(reordered)} of {len(topics)} topics (the first is "
            f"{reordered[0]!r}) scores differ only beyond single precision, where trec_eval up to "
            'version 9 sees ties and orders by document id; scores="double" compares them as they '
            "are written, as trec_eval 10 does."
        )
    return ranked


def _ordered(scores: Mapping[str, float]) -> list[str]:
    # Sorting is stable in reverse too, so ids stay in descending order among equal scores. Python
    # compares code points, which is the order of UTF-8 bytes that trec_eval compares.
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
