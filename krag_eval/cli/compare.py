"""``krag-eval compare``: which of several retrievers is better on the same queries, how surely."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from krag_eval._errors import KragEvalWarning
from krag_eval.cli.options import (
    check_early,
    comparison_output_options,
    evaluation_options,
    field_options,
    floor_option,
)
from krag_eval.cli.output import (
    ComparisonOutputs,
    ReportLanguage,
    checked_language,
    print_comparison,
    printing_beside,
    pronounce,
    rehearsed,
)
from krag_eval.cli.reading import check_same_ground_truth, evaluated_file, names_of, saved_result
from krag_eval.cli.shell import Verdict, one_line, warnings_as

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult

__all__ = [
    "compare",
    "gate",
]


@click.command(short_help="Compare retrievers on the same queries.")
@click.argument("files", metavar="FILE FILE...", nargs=-1, required=True)
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC@K",
    multiple=True,
    default=("ndcg@10",),
    show_default="ndcg@10",
    help="What to compare, as macro_recall@5; repeat it for several.",
)
@evaluation_options
@field_options
@comparison_output_options
def compare(
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    markdown_path: str | None,
    latex_path: str | None,
    plot_path: str | None,
    report_path: str | None,
    report_language: ReportLanguage | None,
    **options: Any,
) -> None:
    """Compare each FILE with each other, query by query ('-' reads standard input).

    A FILE is JSONL, as 'krag-eval evaluate' reads it, or a result it saved, whose name ends in
    .json. All must be over the same queries, in the same order. A difference is the second minus
    the first; p is that of a paired permutation test, after Holm's correction.
    """
    from krag_eval.statistics.comparison import compare as compared

    named = dict(zip(_checked_names(files), files, strict=True))
    outputs = ComparisonOutputs.checked(
        markdown_path, latex_path, plot_path, report_path, sources=files
    )
    language = checked_language(report_language, report_path)
    _check_options(options, named, metrics)
    with printing_beside(outputs), warnings_as("warning"):
        saved = {name: saved_result(file) for name, file in named.items() if _is_saved(file)}
        outputs.check_apart(filter(None, (one.rows.named_from("") for one in saved.values())))
        results = _evaluated({**named, **saved}, options)
        comparison = compared(results, metrics)
        print_comparison(comparison)
        outputs.write(comparison, language)


def _checked_names(files: Sequence[str]) -> list[str]:
    if len(files) < 2:
        raise ValueError(f"FILE: name at least two to compare, got {len(files)}.")
    if len(set(files)) < len(files):
        raise ValueError(f"FILE: each is named once, got {', '.join(files)}.")
    return names_of(files)


def _is_saved(file: str) -> bool:
    return Path(file).suffix == ".json"


def _check_options(
    options: Mapping[str, Any], files: Mapping[str, str], metrics: Sequence[str]
) -> None:
    """Refuse, before a long file is read, what could not be compared or has no effect."""
    from krag_eval.statistics.comparison import compare as compared

    to_be_evaluated = [name for name, file in files.items() if not _is_saved(file)]
    if not to_be_evaluated:
        _check_without_effect(options)
        return
    check_early(options)
    rehearsal = rehearsed(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        first = to_be_evaluated[0]
        pair = {first: rehearsal, f"not {first}": rehearsal}
        compared(pair, metrics, n_resamples=100)


def _check_without_effect(options: Mapping[str, Any]) -> None:
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name in options:
            raise ValueError(
                f"{option.opts[0]} says how to evaluate, and every FILE is a saved result; leave "
                "it out, or name the JSONL files."
            )


def _evaluated(
    named: Mapping[str, str | EvaluationResult], options: Mapping[str, Any]
) -> dict[str, EvaluationResult]:
    """Evaluate the files among results."""
    results, datasets = {}, []
    for name, one in named.items():
        if not isinstance(one, str):
            results[name] = one
            continue
        with warnings_as(f"warning: {one_line(name)}"):
            dataset, results[name] = evaluated_file(one, options)
        datasets.append(dataset)
    check_same_ground_truth(datasets)
    return results


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
