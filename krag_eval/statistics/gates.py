"""Gates: whether a result is good enough, alone or against a baseline.

This room knows floors, allowed drops and how to word a refusal. It must not know how averages or
intervals come about: they are the result's and the comparison's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from krag_eval._errors import clipped, told_apart
from krag_eval.scoring.averages import Summary, resolved_average
from krag_eval.scoring.cutoffs import parse_metric, spelled

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.comparison import Difference

__all__ = [
    "Gate",
    "GateFailedError",
    "GateReport",
    "check",
    "checked_floors",
    "parse_floor",
]

# A drop of exactly what is allowed may come out a little larger in floating point.
_ROUNDING = 1e-12
_LOWER_IS_BETTER = "mean_rank"


class GateFailedError(AssertionError):
    """A result is not good enough; the message says why, one line per broken condition."""


@dataclass(frozen=True)
class Gate:
    """One condition and what became of it.

    Attributes:
        metric: The average it is about, such as ``"ndcg@10"``.
        passed: Whether it holds.
        reason: One line that says so, with the numbers.
    """

    metric: str
    passed: bool
    reason: str


@dataclass(frozen=True)
class GateReport:
    """All conditions checked; true if all of them hold.

    Attributes:
        gates: The conditions, floors first.
    """

    gates: tuple[Gate, ...]

    @property
    def passed(self) -> bool:
        """Whether every condition holds."""
        return all(gate.passed for gate in self.gates)

    @property
    def failures(self) -> list[str]:
        """One line for each condition that does not hold."""
        return [gate.reason for gate in self.gates if not gate.passed]

    def raise_if_failed(self) -> None:
        """Raise unless every condition holds.

        Raises:
            GateFailedError: An ``AssertionError``, with the failures as its message.
        """
        if not self.passed:
            raise GateFailedError("\n".join(self.failures))

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return "\n".join(
            f"{'passed' if gate.passed else 'FAILED'}  {gate.reason}" for gate in self.gates
        )


def parse_floor(text: str) -> tuple[str, float]:
    """Read a floor such as ``"macro_recall@5=0.8"``.

    Returns:
        The average with its cutoff, as it was named, and the number.

    Raises:
        ValueError: If the text is no such thing; the message says what is missing.

    >>> parse_floor("macro_recall@5=0.8")
    ('macro_recall@5', 0.8)
    """
    metric, equals, number = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not equals:
        raise ValueError(
            "a floor must be written as metric@k=number, such as 'ndcg@10=0.6', got "
            f"{clipped(text)}."
        )
    key, k = parse_metric(metric, "a floor")
    try:
        return f"{key}@{spelled(k)}", float(number)
    except ValueError:
        raise ValueError(f"a floor needs a number after the =, got {clipped(text)}.") from None


def check(
    result: EvaluationResult,
    floors: Mapping[str, float] | Iterable[str] | None = None,
    *,
    baseline: EvaluationResult | None = None,
    metric: str | Iterable[str] | None = None,
    max_drop: float | None = None,
    sampling: Mapping[str, Any],
) -> GateReport:
    """Check a result; see ``EvaluationResult.check``. ``sampling`` goes to ``compare``."""
    values = result.to_dict()
    has_rejections = result.summary.rejection_rate(result.k[0]) is not None
    held = checked_floors(floors, result.summary, rejection_rate=has_rejections)
    gates = [_floor_gate(name, values[name], floor) for name, floor in held]
    if baseline is not None:
        _check_baseline(baseline)
        if metric is None:
            raise ValueError("metric must name what may not drop below the baseline, got None.")
        gates += _drop_gates(result, baseline, metric, _checked_drop(max_drop), sampling)
    elif metric is not None or max_drop is not None:
        raise ValueError("metric and max_drop are about a baseline, and none was given.")
    if not gates:
        raise ValueError("nothing to check: give floors, or a baseline and a metric.")
    return GateReport(tuple(gates))


def _check_baseline(baseline: object) -> None:
    from krag_eval.results.result import EvaluationResult

    if not isinstance(baseline, EvaluationResult):
        raise TypeError(
            f"baseline must be an EvaluationResult, got {clipped(baseline)}; read a saved one by "
            "EvaluationResult.from_json(path)."
        )


def _floors(floors: Mapping[str, float] | Iterable[str] | None) -> list[tuple[str, float]]:
    if floors is None:
        return []
    if isinstance(floors, Mapping):
        return [(name, floors[name]) for name in floors]
    return [parse_floor(one) for one in ([floors] if isinstance(floors, str) else floors)]


def checked_floors(
    floors: Mapping[str, float] | Iterable[str] | None, summary: Summary, *, rejection_rate: bool
) -> list[tuple[str, float]]:
    """Return floors by the averages that they are about.

    Args:
        floors: As ``EvaluationResult.check`` takes them.
        summary: That of a result, or of no queries, which knows what there will be.
        rejection_rate: Whether there is a rejection rate, too.

    Raises:
        ValueError: If there is no such average, or every result or none would pass.
    """
    checked = []
    for metric, floor in _floors(floors):
        key, k = _checked_metric(metric, summary, rejection_rate=rejection_rate)
        name = f"{key}@{spelled(k)}"
        _check_floor(name, key, floor, may_pass_1=summary.conventions.credit == "every")
        checked.append((name, floor))
    return checked


def _floor_gate(name: str, value: float, floor: float) -> Gate:
    """Check one floor; for the mean rank, where lower is better, it is a ceiling."""
    key = name.rpartition("@")[0]
    if math.isnan(value):
        return Gate(name, False, f"{name} is undefined: nothing was found")
    number, bound = told_apart(value, floor)
    if key == _LOWER_IS_BETTER:
        passed = value <= floor
        relation = "at or below" if passed else "above"
        return Gate(name, passed, f"{name} is {number}, {relation} {bound}")
    passed = value >= floor
    relation = "at or above" if passed else "below"
    return Gate(name, passed, f"{name} is {number}, {relation} the floor of {bound}")


def _checked_metric(
    metric: str, summary: Summary, *, rejection_rate: bool
) -> tuple[str, int | None]:
    key, k = parse_metric(metric, "floors: a metric")
    if k not in summary.k:
        raise ValueError(
            f"floors: {clipped(metric)} needs the cutoff {spelled(k)}, and the result was "
            f"evaluated at {', '.join(map(spelled, summary.k))}; name it in evaluate(k=[…])."
        )
    known = [*summary.averages(k), *(["rejection_rate"] if rejection_rate else [])]
    return resolved_average("floors: a metric", key, known, summary.keys), k


def _check_floor(name: str, key: str, floor: object, *, may_pass_1: bool) -> None:
    """Refuse a floor that every result or none would pass, such as 80 for 0.8."""
    is_number = isinstance(floor, Real) and not isinstance(floor, bool)
    if not is_number or not math.isfinite(float(floor)):  # type: ignore[arg-type]
        raise ValueError(f"floors: {name} needs a finite number, got {clipped(floor)}.")
    number = float(floor)  # type: ignore[arg-type]
    if key == _LOWER_IS_BETTER and number < 1:
        raise ValueError(f"floors: {name} is a rank, which is at least 1, got {clipped(floor)}.")
    if key in _SHARES and not (number >= 0 and (number <= 1 or may_pass_1)):
        raise ValueError(f"floors: {name} is a share from 0 to 1, got {clipped(floor)}.")


# A metric of one's own may have any range.
_SHARES = frozenset(
    ["hit_rate", "mrr", "map", "ndcg", "found_rate", "rejection_rate"]
    + [
        f"{average}_{name}"
        for average in ("micro", "macro")
        for name in ("precision", "recall", "f1")
    ]
)


def _checked_drop(max_drop: object) -> float:
    if max_drop is None:
        return 0.0
    is_number = isinstance(max_drop, Real) and not isinstance(max_drop, bool)
    if not is_number or not 0 <= float(max_drop) < math.inf:  # type: ignore[arg-type]
        raise ValueError(f"max_drop must be a number of at least 0, got {clipped(max_drop)}.")
    return float(max_drop)  # type: ignore[arg-type]


def _drop_gates(
    result: EvaluationResult,
    baseline: EvaluationResult,
    metric: str | Iterable[str],
    max_drop: float,
    sampling: Mapping[str, Any],
) -> list[Gate]:
    from krag_eval.statistics.comparison import compare

    metrics = [metric] if isinstance(metric, str) else list(metric)
    compared = compare({"baseline": baseline, "new": result}, metric=metrics, **sampling)
    return [_drop_gate(difference, max_drop, compared.level) for difference in compared.differences]


def _drop_gate(row: Difference, max_drop: float, level: float) -> Gate:
    """Fail a drop that is larger than allowed and more than chance."""
    if math.isnan(row.value_b):
        return Gate(row.metric, False, f"{row.metric} is undefined: nothing was found")
    if math.isnan(row.value_a):
        return Gate(row.metric, True, f"{row.metric} is {row.value_b:.4f}; the baseline had none")
    rises = row.metric.startswith(f"{_LOWER_IS_BETTER}@")
    drop = row.difference if rises else -row.difference
    moved = f"{row.metric} went from {row.value_a:.4f} to {row.value_b:.4f}"
    if drop <= max_drop + _ROUNDING:
        return Gate(row.metric, True, f"{moved}, no worse than the allowed {max_drop:g}")
    interval = f"{100 * level:g} % interval of the difference {row.ci_low:.4f} to {row.ci_high:.4f}"
    worse, allowed = told_apart(drop, max_drop)
    too_far = f"{moved}, worse by {worse} where {allowed} is allowed"
    if not (row.ci_low > 0 or row.ci_high < 0):
        return Gate(row.metric, True, f"{too_far}, but that may be chance ({interval})")
    return Gate(row.metric, False, f"{too_far} ({interval})")
