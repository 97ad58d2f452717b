"""What a result keeps of the gates that it was held to: a failure is never taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

#: What can become of a condition, the worst first.
Outcome: TypeAlias = Literal["failed", "inconclusive", "passed"]
OUTCOMES: tuple[Outcome, ...] = ("failed", "inconclusive", "passed")
#: Condition, such as ``"ndcg@10 >= 0.6"`` -> the worst that it ever came to.
Verdicts: TypeAlias = Mapping[str, Outcome]


def worst(outcomes: Iterable[Outcome | None]) -> Outcome | None:
    """Return the worst of several outcomes; ``None`` if there is none.

    >>> worst(["passed", "failed", None]), worst([None])
    ('failed', None)
    """
    present = {*outcomes}
    return next((outcome for outcome in OUTCOMES if outcome in present), None)


def merged(before: Verdicts, verdicts: Verdicts) -> dict[str, Outcome]:
    """Return the worst outcome of each condition of either.

    >>> merged({"mrr@5 >= 0.7": "failed"}, {"mrr@5 >= 0.7": "passed", "mrr@5 >= 0.5": "passed"})
    {'mrr@5 >= 0.7': 'failed', 'mrr@5 >= 0.5': 'passed'}
    """
    both = {**before, **verdicts}
    return {
        condition: worst([before.get(condition), outcome]) or outcome
        for condition, outcome in both.items()
    }
