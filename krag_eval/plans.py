"""Plans: how a run is evaluated, settled and checked before any document is seen.

This room knows every choice that a number depends on but the cutoffs and the metrics. It must not
know formulas, or where documents come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval import __version__
from krag_eval._errors import clipped, unknown_name
from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria, resolve_choice
from krag_eval.documents import QuerySet
from krag_eval.matching.base import Matcher, check_threshold
from krag_eval.matching.joins import Matches
from krag_eval.matching.names import resolve_matcher
from krag_eval.scoring.cutoffs import spelled
from krag_eval.scoring.relevance import Relevance

__all__ = ["NO_GROUND_TRUTH", "NoGroundTruth", "Plan", "checked_conventions", "checked_threshold"]

NoGroundTruth: TypeAlias = Literal["error", "skip", "zero"]
NO_GROUND_TRUTH = ("error", "skip", "zero")
_NAMED = 5


@dataclass(frozen=True)
class Plan:
    """How a run is evaluated; the arguments of ``OfflineRetrievalEvaluator``, settled.

    Attributes:
        matcher: What makes a predicted document a match.
        threshold: Similarity from which a pair is a match.
        averaging_method: Which of the micro and macro keys are averaged.
        matching_criteria: When a query is a hit.
        conventions: How the disputed points are settled.
        no_ground_truth: What becomes of queries without ground truth.
        grade_key: Key in the metadata that holds the grade; ``None`` if all grades are 1.
    """

    matcher: Matcher
    threshold: float
    averaging_method: AveragingMethod
    matching_criteria: MatchingCriteria
    conventions: Conventions
    no_ground_truth: NoGroundTruth
    grade_key: str | None

    @classmethod
    def checked(
        cls,
        *,
        matcher: str | Matcher = "text",
        threshold: float | None = None,
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
        conventions: Conventions | None = None,
        no_ground_truth: NoGroundTruth = "error",
        grade_key: str | None = None,
    ) -> Plan:
        """Settle the arguments of an evaluator.

        Raises:
            TypeError: If one is of another kind than it should be.
            ValueError: If one is not among those allowed.
        """
        averaging = resolve_choice(AveragingMethod, averaging_method, "averaging_method")
        criteria = resolve_choice(MatchingCriteria, matching_criteria, "matching_criteria")
        if no_ground_truth not in NO_GROUND_TRUTH:
            raise ValueError(unknown_name("no_ground_truth", no_ground_truth, NO_GROUND_TRUTH))
        settled = checked_conventions(conventions)
        resolved = resolve_matcher(matcher)
        least = checked_threshold(threshold, resolved)
        return cls(resolved, least, averaging, criteria, settled, no_ground_truth, grade_key)

    def settings(
        self, cutoffs: Sequence[int | None], *, n_queries: int, n_skipped: int
    ) -> dict[str, str]:
        """Return what the numbers depend on, for the signature."""
        return {
            "matcher": self.matcher.signature,
            "threshold": repr(self.threshold) if self.matcher.takes_threshold else "-",
            "k": ",".join(map(spelled, cutoffs)),
            "criteria": self.matching_criteria.value,
            "averaging": self.averaging_method.value,
            "conventions": str(self.conventions),
            "grades": self.grade_key or "-",
            "no_ground_truth": self.no_ground_truth + (f"({n_skipped})" if n_skipped else ""),
            "queries": str(n_queries),
            "krag_eval": __version__,
        }

    def relevance(
        self, queries: QuerySet, matches: Matches, grades: NDArray[np.float64] | None
    ) -> Relevance:
        """Settle what was found in the matches of a query set."""
        return Relevance.from_matches(
            matches,
            item_query=queries.item_query,
            n_retrieved=queries.n_predicted,
            threshold=self.threshold,
            grade=grades,
            n_alternatives=queries.n_alternatives,
        )

    def counted(self, relevance: Relevance) -> NDArray[np.bool_]:
        """Return whether each query counts in the averages; shape (queries,)."""
        if self.no_ground_truth == "skip":
            return np.asarray(relevance.n_items > 0)
        return np.ones(relevance.n_queries, np.bool_)

    def check_ground_truth(
        self, queries: QuerySet, grades: NDArray[np.float64] | None, *, part: bool = False
    ) -> None:
        """Refuse queries without ground truth, unless the plan says what becomes of them.

        Args:
            queries: The queries.
            grades: The grade of each item; an item of grade 0 is listed, but no ground truth.
            part: Whether others of the run are elsewhere, so that these need not have any.

        Raises:
            ValueError: Naming some of the queries, or saying that nothing can be measured.
        """
        n_items = np.bincount(queries.item_query, grades, minlength=queries.n_queries)
        without = [
            label for label, n in zip(queries.labels, n_items.tolist(), strict=True) if not n
        ]
        if self.no_ground_truth == "skip" and len(without) == queries.n_queries and not part:
            raise ValueError(NOTHING_TO_MEASURE)
        if without and self.no_ground_truth == "error":
            named = _named(without[:_NAMED])
            more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
            raise ValueError(
                f"actual_docs: no ground truth for {len(without)} of {queries.n_queries} queries"
                f"{' of this part' if part else ''} ({named}{more}). "
                'Pass no_ground_truth="skip" to leave them out of every average, or '
                '"zero" to count them as 0.'
            )


def _named(labels: Sequence[str | int]) -> str:
    """Name queries in a sentence; a number alone would look like a count.

    >>> _named(["When?"]), _named([0]), _named([0, 3])
    ("'When?'", 'query 0', 'queries 0, 3')
    """
    named = ", ".join(map(clipped, labels))
    if not all(isinstance(label, int) for label in labels):
        return named
    return f"{'query' if len(labels) == 1 else 'queries'} {named}"


#: Why a run in which no query counts is refused.
NOTHING_TO_MEASURE = "actual_docs: no query has any ground truth, so nothing can be measured."


def checked_conventions(conventions: object) -> Conventions:
    """Return conventions, given as such, by their printed form, or not at all.

    Raises:
        TypeError: If they are neither.
    """
    if conventions is None:
        return Conventions()
    if isinstance(conventions, str):
        return Conventions.parse(conventions)
    if isinstance(conventions, Conventions):
        return conventions
    raise TypeError(
        "conventions must be a Conventions object or its printed form, such as "
        f"Conventions.trec() or 'trec', got {conventions!r}."
    )


def checked_threshold(threshold: object, matcher: Matcher) -> float:
    """Return the threshold in use: the one given, or the matcher's own.

    Raises:
        ValueError: If it is none, or the matcher takes none.
    """
    if threshold is None:
        return check_threshold(matcher.threshold, f"threshold of the matcher {matcher.signature}")
    if not matcher.takes_threshold:
        raise ValueError(
            f"threshold must be left out for the matcher {matcher.signature}, which decides "
            f"without one, got {threshold!r}."
        )
    return check_threshold(threshold)
