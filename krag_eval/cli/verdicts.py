"""Whether a result is good enough, as an exit code and one line for each condition."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import click

from krag_eval._errors import KragEvalWarning
from krag_eval.cli.wording import one_line
from krag_eval.scoring.cutoffs import unspelled

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.gates import GateReport

__all__ = ["Verdict", "check_floors_early", "pronounce", "rehearsed"]


class Verdict(IntEnum):
    """Whether a result is good enough, as an exit code."""

    GOOD_ENOUGH = 0
    NOT_GOOD_ENOUGH = 1


def pronounce(report: GateReport) -> Verdict:
    """Print what passed, and to standard error what failed; return the verdict."""
    for gate in report.gates:
        verdict = "passed" if gate.passed else "failed"
        click.echo(f"{verdict}: {one_line(gate.reason)}", err=not gate.passed)
    return Verdict.GOOD_ENOUGH if report.passed else Verdict.NOT_GOOD_ENOUGH


def check_floors_early(floors: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse a floor that the result to come could not be checked against.

    Raises:
        ValueError: If it is no floor, or about an average or a cutoff that will not be there.
    """
    if floors:
        rehearsed(options).check(floors)


def rehearsed(options: Mapping[str, Any]) -> EvaluationResult:
    """Return a result of the kind that will come of these options: same averages, same cutoffs.

    Whatever is refused for it will be refused for the real one, after a long computation.
    """
    from krag_eval.evaluator import OfflineRetrievalEvaluator

    # Queries without ground truth have a measure of their own, if they are to be skipped.
    unanswerable: list[list[str]] = [[]] if options["no_ground_truth"] == "skip" else []
    queries = [["a"], *unanswerable]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        evaluator = OfflineRetrievalEvaluator(
            queries,
            queries,
            matcher="text",  # averages and cutoffs are the same under any
            matching_criteria=options["matching_criteria"],
            averaging_method=options["averaging_method"],
            conventions=options["conventions"],
            no_ground_truth=options["no_ground_truth"],
        )
        return evaluator.evaluate(k=[unspelled(one) for one in options["cutoffs"]])
