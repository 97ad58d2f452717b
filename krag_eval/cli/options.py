"""Options that several commands share, and what they are checked for before a file is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click
from click.core import ParameterSource

from krag_eval._language import LANGUAGES, N_, SPOKEN, Language, _
from krag_eval._text import name_and_settings
from krag_eval.cli.help import option
from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.errors import PLAN_OPTIONS, Advice, InvalidInput
from krag_eval.matching.base import MATCHER_NAMES
from krag_eval.scoring.cutoffs import (
    DEFAULT_CUTOFFS,
    Cutoff,
    check_cutoffs,
    parse_metric,
    settled_cutoffs,
    spelled,
    unspelled,
)

if TYPE_CHECKING:
    from krag_eval.evaluator import PartitionPlan
    from krag_eval.scoring.metrics import Metric

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

#: What ``--index`` is, wherever there is one.
CHUNKS_HELP = N_(
    'The chunks of the store, as JSONL: on each line a text in quotes, or an object with "text" or '
    '"page_content" and perhaps "id". \'-\' reads standard input.'
)


def bundled(*options: Decorator) -> Decorator:
    """Bundle options, to be shown in the order given."""
    return lambda command: reduce(lambda made, add: add(made), reversed(options), command)


def cutoff_option(default: tuple[int | None, ...], help: str) -> Decorator:
    """Return the option ``-k``, whose value is a tuple of cutoffs: ``default`` if not typed.

    Several are typed one by one, or with commas between.
    """
    return option(
        "-k",
        metavar="K",
        multiple=True,
        callback=lambda context, parameter, typed: (
            check_cutoffs([unspelled(one.strip()) for one in ",".join(typed).split(",")])
            if typed
            else default
        ),
        help=lambda: f"{_(help)}  [default: {','.join(map(spelled, default))}]",
    )


def one_cutoff_option(help: str) -> Decorator:
    """Return the option ``-k`` for one cutoff, a tuple of it; an empty one if not typed."""
    return option(
        "-k",
        metavar="K",
        callback=lambda context, parameter, typed: (
            () if typed is None else check_cutoffs([unspelled(typed)])
        ),
        help=help,
    )


# Between names, and not between the parameters of one.
_BETWEEN_NAMES = re.compile(r",(?![^(]*\))")


def metric_option(help: str, metavar: str = "METRIC@K") -> Decorator:
    """Return the option ``--metric``, which may be repeated, or name several with commas."""
    return option(
        "--metric",
        metavar=metavar,
        multiple=True,
        callback=lambda context, parameter, typed: tuple(
            one.strip() for several in typed for one in _BETWEEN_NAMES.split(several)
        ),
        help=lambda: _(help) + " " + _("Several: --metric recall@5,ndcg@5."),
    )


on_option = option(
    "--on",
    type=click.Choice(["all", "common"]),
    default="all",
    show_default=True,
    help=N_("What to compare: all queries, which must then be the same ones, or those in common."),
)


clusters_option = option(
    "--clusters",
    metavar="TAG",
    help=N_(
        "Take queries that share the value of a column, such as source, as belonging together."
    ),
)


def output_option(name: str, what: str, *, streamed: bool = False) -> Decorator:
    """Return an option that names a file to write."""
    return option(
        name,
        metavar="OUT",
        help=lambda: _(what) + (" " + _("'-' is standard output.") if streamed else ""),
    )


format_option = option(
    "--format",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
    help=N_(
        "How to print what is printed. Other than as a table, nothing else is on standard output."
    ),
)


def matcher_option(default: str) -> Decorator:
    """Return the option ``--matcher``; a default that is not the evaluator's own is for FILEs."""
    return option(
        "--matcher",
        "-m",
        metavar="NAME",
        default=default,
        show_default=True,
        help=lambda: _(
            "What makes a retrieved document a match: {}; settings in parentheses, as in "
            "'coverage(tokenizer=letters)'."
        ).format(", ".join(MATCHER_NAMES)),
    )


_matching_options = bundled(
    option(
        "--union",
        is_flag=True,
        help=N_(
            "Count ground truth that documents hold together, in pieces; for the matcher "
            "coverage, which it chooses."
        ),
    ),
    option(
        "--threshold",
        metavar="T",
        type=float,
        help=N_("Similarity from which a pair is a match, 0 to 1; the matcher's own by default."),
    ),
)

_query_options = bundled(
    option(
        "--grade-key",
        metavar="KEY",
        help=N_(
            "Key in the metadata of the ground truth that holds its grade; all are 1 by default."
        ),
    ),
    option(
        "--no-ground-truth",
        type=click.Choice(["error", "skip", "zero"]),
        default="error",
        show_default=True,
        help=N_("For queries without ground truth: refuse, leave out of averages, or count as 0."),
    ),
    option(
        "--aspect-key",
        metavar="KEY",
        help=N_(
            "Metadata key of the ground truth with the aspects of a question: adds aspect recall "
            "and α-nDCG."
        ),
    ),
    option(
        "--unjudged",
        type=click.Choice(["wrong", "bounds", "leave_out"]),
        default="wrong",
        show_default=True,
        help=N_(
            'What the field "judged" does not list: wrong, wrong with the upper bound of '
            "precision and RBP beside it, or as if not retrieved."
        ),
    ),
    option(
        "--jobs",
        "n_jobs",
        metavar="N",
        type=int,
        help=N_(
            "Processes that tokenise and score, at most one per core, -1 for that many; the "
            "numbers are the same."
        ),
    ),
)

evaluation_options = bundled(
    matcher_option("text"),
    _matching_options,
    cutoff_option(
        DEFAULT_CUTOFFS,
        N_(
            "Look at the first K retrieved documents, at 'all', or at those that fit into a "
            "budget, as 1000w (words) or 4000c (characters). Several: -k 1,5,10."
        ),
    ),
    option(
        "--budget",
        metavar="N",
        type=int,
        multiple=True,
        help=N_(
            "Look at the first documents that fit into N words together; without -k, at nothing "
            "else. Repeat it for several budgets."
        ),
    ),
    option(
        "--length",
        type=click.Choice(["words", "characters"]),
        default="words",
        show_default=True,
        help=N_("What --budget counts."),
    ),
    option(
        "--criteria",
        "matching_criteria",
        type=click.Choice([one.value for one in MatchingCriteria]),
        default="all",
        show_default=True,
        help=N_("A query is a hit when all of its ground truth is found, or (partial) any of it."),
    ),
    option(
        "--averaging",
        "averaging_method",
        type=click.Choice([one.value for one in AveragingMethod]),
        default="both",
        show_default=True,
        help=N_("Which averages of precision, recall and F1 to show."),
    ),
    option(
        "--conventions",
        metavar="NAME|FIELDS",
        default="default",
        show_default=True,
        help=lambda: _(
            "How disputed points are settled: {}, or fields such as gain=linear,precision_at=k."
        ).format(", ".join(Conventions.presets())),
    ),
    _query_options,
)

foreign_index_option = option(
    "--foreign-index",
    type=click.Choice(["refuse", "allow"]),
    default="refuse",
    show_default=True,
    help=N_(
        "Whether to diagnose against an index that has fewer than a tenth of what was retrieved."
    ),
)
#: What decides about matches alone, where averages do not matter.
diagnosis_options = bundled(matcher_option("coverage"), _matching_options, _query_options)
explanation_options = bundled(matcher_option("text"), _matching_options, _query_options)

encoding_option = option(
    "--encoding",
    metavar="NAME",
    default="utf-8",
    show_default=True,
    help=N_("Encoding of a file of text, such as cp949 (Excel in Korean)."),
)

cell_options = bundled(
    option(
        "--cells",
        type=click.Choice(["list", "text"]),
        default="list",
        show_default=True,
        help=N_(
            "What a cell holds: a list of documents, or one as plain text. Then rows of one "
            "question are one query."
        ),
    ),
    option(
        "--delimiter",
        metavar="CHARACTER",
        help=N_("What separates cells of a CSV file.  [default: ,]"),
    ),
)

field_options = bundled(
    option("--question-field", metavar="NAME", default="question", show_default=True),
    option("--actual-field", metavar="NAME", default="actual", show_default=True),
    option("--predicted-field", metavar="NAME", default="predicted", show_default=True),
    cell_options,
    encoding_option,
)

floor_option = option(
    "--fail-under",
    "floors",
    metavar="METRIC@K=X",
    multiple=True,
    help=N_(
        "Exit with 1 if an average is below X, as in macro_recall@5=0.8 or ndcg@1000w=0.5; for "
        "mean_rank and redundancy, if it is above. Repeat it for several."
    ),
)

#: ``--lang``, before or behind the name of a command; the shell forgets it at the end.
language_option = option(
    "--lang",
    type=click.Choice(LANGUAGES),
    help=N_(
        "Language of what is printed, drawn and written, but for errors.  "
        "[default: KRAG_EVAL_LANG, or en]"
    ),
    expose_value=False,
    callback=lambda context, parameter, typed: SPOKEN.set(typed) if typed else None,
)

report_options = bundled(
    output_option("--report", N_("Write an HTML report.")),
    option(
        "--report-language",
        type=click.Choice(LANGUAGES),
        help=N_("Language of the report.  [default: that of --lang]"),
    ),
)


def checked_language(language: Language | None, report: str | None) -> Language | None:
    """Return the language of the report; ``None`` for that of everything else.

    Raises:
        InvalidInput: If one was asked for, and no report.
    """
    if language is not None and report is None:
        raise InvalidInput("report_language", "is about --report, and none was asked for")
    return language


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were typed: a file may bring its own settings for the others.

    The defaults shown are the evaluator's own, so leaving them out changes nothing else.
    """
    source = click.get_current_context().get_parameter_source
    return {
        name: value
        for name, value in options.items()
        if source(name) is not ParameterSource.DEFAULT
    }


def settled(
    k: tuple[Cutoff, ...], typed: Mapping[str, Any]
) -> tuple[tuple[Cutoff, ...], dict[str, Any]]:
    """Return the cutoffs, budgets among them, and the settings of an evaluator that were typed.

    Raises:
        InvalidInput: If the options about cutoffs do not fit together, or the matcher does not
            know ``--union``.
    """
    settings = dict(typed)
    settings.pop("k", None)
    budget, length = settings.pop("budget", None), settings.pop("length", "words")
    if settings.pop("union", False):
        settings["matcher"] = _with_union(settings.get("matcher", "coverage"))
    return settled_cutoffs(k, budget, length)[0], settings


def _with_union(matcher: str) -> str:
    """Return a matcher with the setting that ``--union`` stands for.

    >>> _with_union("coverage"), _with_union("coverage(min_run=3)")
    ('coverage(union=yes)', 'coverage(min_run=3,union=yes)')
    """
    name, settings = name_and_settings("matcher", matcher)
    if name != "coverage" or settings.get("union", "yes") not in ("yes", "true"):
        raise InvalidInput(
            "union",
            f"counts the pieces that the matcher coverage finds, and the matcher is {matcher}",
            Advice("leave it out, or pass {}", matcher="coverage"),
        )
    settings["union"] = "yes"
    return f"{name}({','.join(f'{key}={value}' for key, value in settings.items())})"


def metrics_of(
    argument: str, averages: Iterable[str], settings: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """Return the metrics to compute for averages that were named, such as ``"rbp@10"``.

    Args:
        argument: The argument they came in.
        averages: Averages with their cutoffs; a name that is no metric's is refused later.
        settings: The options that were typed.

    Returns:
        The default metrics and those named; ``None`` if the default ones are enough.

    Raises:
        InvalidInput: If one counts words, which the matcher does not know.

    >>> metrics_of("floors", ["ndcg@10", "recall@5"], {})
    >>> metrics_of("floors", ["rbp@5", "rbp(p=0.8)@10", "mrr@5"], {})[-2:]
    ('rank', 'rbp(p=0.8)')
    """
    from krag_eval.scoring.metrics import built_in, installed, words_unknown
    from krag_eval.scoring.relevance import aspects_unknown

    names = [parse_metric(one, argument)[0] for one in averages]
    named = [built_in(one, argument) or installed(one, argument) for one in names]
    by_default = checked_plan(DEFAULT_CUTOFFS, settings).metrics
    more = {one.name: one for one in named if one and one.name not in by_default}
    for name, metric in more.items():
        if metric.needs_words:
            raise words_unknown(argument, name)
        if metric.needs_aspects and "aspect_recall" not in by_default:
            raise aspects_unknown(argument, name)
    return (*by_default, *more) if more else None


class Chosen(NamedTuple):
    """What ``--metric`` asks for.

    Attributes:
        k: The cutoffs, those named among them.
        metrics: The metrics to compute.
        averages: The averages to print, by their keys.
    """

    k: tuple[Cutoff, ...]
    metrics: tuple[str, ...]
    averages: tuple[str, ...]

    def with_metrics_of(self, averages: Iterable[str]) -> tuple[str, ...]:
        """Return the metrics to compute where these averages are wanted too."""
        more = (_metric_of(one) for one in averages)
        return tuple(dict.fromkeys([*self.metrics, *(one.name for one in more if one)]))


def chosen_averages(
    typed: Sequence[str], k: tuple[Cutoff, ...], settings: Mapping[str, Any]
) -> Chosen:
    """Return what ``--metric`` asks for: metrics, or averages of them, and perhaps cutoffs.

    Args:
        typed: Each a metric, ``recall``, or an average, ``macro_recall``; with a cutoff,
            ``recall@5``, or without.
        k: The cutoffs that other options ask for; without any, those that were named with all of
            the metrics stand alone.
        settings: The options that were typed.

    Raises:
        InvalidInput: If something is no metric or no cutoff, or is not computed.
    """
    from krag_eval.scoring.metrics import (
        averages_of,
        resolved_average,
        unknown_average,
        words_unknown,
    )

    named = {one: parse_metric(one, "metric") for one in typed if "@" in one}
    alone = len(named) == len(set(typed)) and not given(dict.fromkeys(("k", "budget")))
    k = tuple(dict.fromkeys([*(() if alone else k), *(at for _, at in named.values())]))
    usual = checked_plan(k, settings)
    metrics: list[str] = []
    averages: list[str] = []
    for name in (named[one][0] if one in named else one for one in typed):
        metric = _metric_of(name)
        if metric is None:
            there = [*usual.nothing().summary.averages(k[0]), *usual.metrics]
            raise unknown_average("metric", name, there)
        if metric.needs_words and metric.name not in usual.metrics:
            raise words_unknown("metric", metric.name)
        metrics.append(metric.name)
        known = checked_plan(k, settings, [metric.name]).nothing().summary.averages(k[0])
        is_average = name in averages_of([metric])
        averages += [resolved_average("metric", name, known)] if is_average else known
    return Chosen(k, tuple(dict.fromkeys(metrics)), tuple(dict.fromkeys(averages)))


def _metric_of(name: str) -> Metric | None:
    """Return the metric of that name, or of which it names an average; it may be installed.

    >>> [one and one.name for one in map(_metric_of, ("rbp", "micro_f1", "found_rate", "recal"))]
    ['rbp(p=0.8)', 'f1', 'rank', None]
    """
    from krag_eval.scoring.metrics import METRICS, averages_of, built_in, installed

    ours = (one for one in METRICS.values() if name in averages_of([one]))
    return built_in(name, "metric") or next(ours, None) or installed(name, "metric")


def checked_plan(
    k: Sequence[Cutoff], settings: Mapping[str, Any], metrics: Sequence[str] | None = None
) -> PartitionPlan:
    """Refuse settings that no evaluation takes, before a long file is read.

    Args:
        k: The cutoffs.
        settings: The options that were typed.
        metrics: The metrics to compute; the default ones if not given.

    Returns:
        The plan, whose summary of no queries knows the averages there will be.
    """
    from krag_eval.evaluator import PartitionPlan

    typed = {name: settings[name] for name in PLAN_OPTIONS if name in settings}
    if "matcher" not in typed:
        typed.pop("threshold", None)  # the file may name a matcher that takes it
    return PartitionPlan.of(k, metrics=metrics, **typed)
