"""What a result keeps of the gates that it was held to: a failure is never taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult

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


def with_verdicts(
    result: EvaluationResult, gate: Outcome | None, verdicts: Verdicts
) -> EvaluationResult:
    """Return a result that knows what became of more conditions, and still of all before.

    Args:
        result: The result.
        gate: What became of the conditions together.
        verdicts: What became of each.
    """
    merged = dict(result.verdicts)
    for condition, outcome in verdicts.items():
        merged[condition] = worst([outcome, merged.get(condition)]) or outcome
    return replace(result, gate=worst([result.gate, gate]), verdicts=merged)
