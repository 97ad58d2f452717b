"""Options that commands share, in the order they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeVar

import click

from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.matching.base import MATCHER_NAMES
from krag_eval.scoring.cutoffs import check_cutoffs, unspelled

__all__ = [
    "bundled",
    "check_early",
    "comparison_output_options",
    "evaluation_options",
    "field_options",
    "floor_option",
    "given",
    "output_options",
    "report_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])


def bundled(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Bundle options that several commands share, shown in the order given."""
    return lambda command: reduce(lambda made, add: add(made), reversed(options), command)


evaluation_options = bundled(
    click.option(
        "--matcher",
        metavar="NAME",
        default="text",
        show_default=True,
        help=f"What makes a retrieved document a match: {', '.join(MATCHER_NAMES)}; settings in "
        "parentheses, as in 'coverage(tokenizer=character)'.",
    ),
    click.option(
        "--threshold",
        metavar="T",
        type=float,
        help="Similarity from which a pair is a match, 0 to 1; the matcher's own by default.",
    ),
    click.option(
        "-k",
        "cutoffs",
        metavar="K",
        multiple=True,
        default=("1", "3", "5", "10"),
        show_default="1, 3, 5, 10",
        help="Look at the first K retrieved documents, or 'all'; repeat it for several cutoffs.",
    ),
    click.option(
        "--criteria",
        "matching_criteria",
        type=click.Choice([one.value for one in MatchingCriteria]),
        default="all",
        show_default=True,
        help="A query is a hit when all of its ground truth is found, or (partial) any of it.",
    ),
    click.option(
        "--averaging",
        "averaging_method",
        type=click.Choice([one.value for one in AveragingMethod]),
        default="both",
        show_default=True,
        help="Which averages of precision, recall and F1 to show.",
    ),
    click.option(
        "--conventions",
        metavar="NAME|FIELDS",
        default="default",
        show_default=True,
        help=f"How disputed points are settled: {', '.join(Conventions.presets())}, "
        "or fields such as gain=linear,precision_at=k.",
    ),
    click.option(
        "--grade-key",
        metavar="KEY",
        help="Key in the metadata of the ground truth that holds its grade; all are 1 by default.",
    ),
    click.option(
        "--no-ground-truth",
        type=click.Choice(["error", "skip", "zero"]),
        default="error",
        show_default=True,
        help="For queries without ground truth: refuse, leave out of averages, or count as 0.",
    ),
    click.option(
        "--jobs",
        "n_jobs",
        metavar="N",
        type=int,
        help="Processes that tokenise and score at once, -1 for one per core; the numbers are the "
        "same with any.",
    ),
)

field_options = bundled(
    click.option("--question-field", metavar="NAME", default="question", show_default=True),
    click.option("--actual-field", metavar="NAME", default="actual", show_default=True),
    click.option("--predicted-field", metavar="NAME", default="predicted", show_default=True),
)

floor_option = click.option(
    "--fail-under",
    "floors",
    metavar="METRIC@K=X",
    multiple=True,
    help="Exit with 1 if an average is below X, as in macro_recall@5=0.8; for mean_rank, if it is "
    "above. Repeat it for several.",
)

report_options = bundled(
    click.option("--report", "report_path", metavar="OUT", help="Write a page to read, as .html."),
    click.option(
        "--report-language",
        type=click.Choice(["en", "ko"]),
        help="Language of the page.  [default: en]",
    ),
)

comparison_output_options = bundled(
    click.option(
        "--markdown",
        "markdown_path",
        metavar="OUT",
        help="Save the table as Markdown. '-' is standard output.",
    ),
    click.option(
        "--latex",
        "latex_path",
        metavar="OUT",
        help="Save the table as LaTeX. '-' is standard output.",
    ),
    click.option(
        "--plot",
        "plot_path",
        metavar="OUT",
        help="Draw the differences with their intervals, as .png, .svg or .pdf.",
    ),
    report_options,
)

output_options = bundled(
    click.option(
        "--json",
        "json_path",
        metavar="OUT",
        help="Save the result; Python reads it back. '-' is standard output.",
    ),
    click.option(
        "--csv",
        "csv_path",
        metavar="OUT",
        help="Save one row per query and cutoff. '-' is standard output.",
    ),
    click.option(
        "--plot",
        "plot_path",
        metavar="OUT",
        help="Draw the metrics at the last cutoff named, as .png, .svg or .pdf.",
    ),
    report_options,
)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were typed: a file may bring its own settings for the others.

    The defaults shown are the evaluator's own, so leaving them out changes nothing else.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return dict(options)
    default = click.core.ParameterSource.DEFAULT
    return {
        name: value
        for name, value in options.items()
        if context.get_parameter_source(name) is not default
    }


def check_early(options: Mapping[str, Any]) -> None:
    """Refuse a bad option before a long file is read."""
    from krag_eval.matching.base import resolve_matcher

    resolve_matcher(options["matcher"])
    Conventions.parse(options["conventions"])
    check_cutoffs([unspelled(one) for one in options["cutoffs"]])
