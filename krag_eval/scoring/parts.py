"""Findings: what a run as a whole must be warned of, collected from its parts.

A part of a run in which nothing matched, or no document has a grade, says nothing; the whole does.
This room knows when a run deserves a warning. It must not know metrics or averages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from krag_eval._errors import Tallies, told_apart, warn, warn_of
from krag_eval.documents import warn_of_no_grades
from krag_eval.matching.base import Matcher
from krag_eval.scoring.relevance import Relevance

__all__ = [
    "Findings",
    "Likeness",
]


@dataclass(frozen=True)
class Likeness:
    """Whether anything matched, and how near the nearest pair came.

    Attributes:
        n_queries: Number of queries.
        any_item: Whether there was ground truth.
        any_retrieved: Whether anything was retrieved.
        any_match: Whether a pair matched.
        best: The highest similarity of any pair, 0 without any.
    """

    n_queries: int = 0
    any_item: bool = False
    any_retrieved: bool = False
    any_match: bool = False
    best: float = 0.0

    @classmethod
    def of(cls, relevance: Relevance) -> Likeness:
        """Look at what was found."""
        return cls(
            relevance.n_queries,
            len(relevance.grade) > 0,
            bool(relevance.n_retrieved.any()),
            len(relevance.hit_item) > 0,
            float(relevance.pair_similarity.max(initial=0.0)),
        )

    def __add__(self, other: Likeness) -> Likeness:
        return Likeness(
            self.n_queries + other.n_queries,
            self.any_item or other.any_item,
            self.any_retrieved or other.any_retrieved,
            self.any_match or other.any_match,
            max(self.best, other.best),
        )

    def warn_if_nothing_matched(self, matcher: Matcher, threshold: float) -> None:
        """Warn, with the matcher's advice, if pairs were there to match and none did."""
        if self.any_match or not self.any_retrieved or not self.any_item:
            return
        best, least = told_apart(self.best, threshold, ".3g")
        reason = (
            f"the highest similarity is {best}, below the threshold of {least}"
            if self.best
            else "no predicted document is similar to the ground truth in the least"
            if matcher.takes_threshold
            else "no predicted document meets its condition"
        )
        warn(
            f"The matcher {matcher.signature} matched nothing at all in {self.n_queries} "
            f"{'query' if self.n_queries == 1 else 'queries'}: {reason}.",
            matcher.advice,
        )


@dataclass(frozen=True)
class Findings:
    """What parts of a run found that deserves a warning once they are put together.

    Attributes:
        likeness: Whether anything matched.
        any_grade: Whether a ground-truth document had a grade.
        tallies: What was counted, by the sentence that says it.
    """

    likeness: Likeness
    any_grade: bool
    tallies: Mapping[str, tuple[int, ...]]

    def __add__(self, other: Findings) -> Findings:
        tallies: Tallies = dict(self.tallies)
        for sentence, counts in other.tallies.items():
            before = tallies.get(sentence, (0,) * len(counts))
            tallies[sentence] = tuple(map(sum, zip(before, counts, strict=True)))
        return Findings(self.likeness + other.likeness, self.any_grade or other.any_grade, tallies)

    def warn(self, matcher: Matcher, threshold: float, grade_key: str | None) -> None:
        """Say everything there is to say about the run, once."""
        if grade_key is not None and not self.any_grade:
            warn_of_no_grades(grade_key)
        for sentence, counts in self.tallies.items():
            warn_of(sentence, *counts)
        self.likeness.warn_if_nothing_matched(matcher, threshold)

    def to_json(self) -> dict[str, Any]:
        """Return the findings as what JSON can hold, exactly."""
        found = self.likeness
        return {
            "queries": found.n_queries,
            "any_item": found.any_item,
            "any_retrieved": found.any_retrieved,
            "any_match": found.any_match,
            "best": found.best,
            "any_grade": self.any_grade,
            "tallies": {sentence: list(counts) for sentence, counts in self.tallies.items()},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Findings:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        likeness = Likeness(
            int(content["queries"]),
            bool(content["any_item"]),
            bool(content["any_retrieved"]),
            bool(content["any_match"]),
            float(content["best"]),
        )
        tallies = {str(key): tuple(map(int, counts)) for key, counts in content["tallies"].items()}
        return cls(likeness, bool(content["any_grade"]), tallies)
