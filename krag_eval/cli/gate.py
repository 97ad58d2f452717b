"""``krag-eval gate``: whether a saved result is good enough, alone or against a baseline."""

from __future__ import annotations

import click

from krag_eval.cli.options import floor_option
from krag_eval.cli.reading import saved_result
from krag_eval.cli.shell import warnings_as
from krag_eval.cli.verdicts import Verdict, pronounce

__all__ = ["gate"]


@click.command(short_help="Check a saved result against floors and a baseline.")
@click.argument("new")
@click.option("--baseline", metavar="OLD", help="The saved result that NEW may not fall behind.")
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC@K",
    multiple=True,
    help="What may not drop below the baseline, as ndcg@10; repeat it for several.",
)
@click.option(
    "--max-drop",
    metavar="X",
    type=float,
    help="How far it may drop; a larger drop fails only if it is more than chance.  [default: 0]",
)
@floor_option
def gate(
    new: str,
    baseline: str | None,
    metrics: tuple[str, ...],
    max_drop: float | None,
    floors: tuple[str, ...],
) -> Verdict:
    """Check NEW, a result saved by 'krag-eval evaluate --json', and exit with 0 or 1.

    1 says that it is not good enough: an average is below its floor, or has dropped by more than
    --max-drop below the baseline, and the 95 % interval of the paired difference excludes 0. What
    cannot be checked or compared is refused with 2.
    """
    with warnings_as("warning"):
        report = saved_result(new, need_rows=baseline is not None).check(
            floors or None,
            baseline=None if baseline is None else saved_result(baseline),
            metric=metrics or None,
            max_drop=max_drop,
        )
    return pronounce(report)
