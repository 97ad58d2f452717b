"""What commands take: each option is declared once, and the lists of many are shared."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.core import ParameterSource

from krag_eval.cli import help as helping, output
from krag_eval.cli.shell import warnings_below
from krag_eval.core import (
    LANGUAGES,
    N_,
    PLAN_OPTIONS,
    Advice,
    Cut,
    Cutoff,
    InvalidInput,
    _,
    called,
    declared,
    option,
)
from krag_eval.core.language import SPOKEN
from krag_eval.core.options import Option, PlanOptions, Sampling
from krag_eval.core.scoring import cutoffs as cut
from krag_eval.core.text import name_and_settings

if TYPE_CHECKING:
    from krag_eval.evaluator import PartitionPlan

#: Options that a command takes together, as one mapping of their values.
Options: TypeAlias = dict[str, Any]


def command(
    short_help: str, typed: str = "", reads: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function: its parameters are arguments and, by their defaults, options.

    A parameter ``outputs`` gets where to write; meanwhile what is printed is beside it.

    Args:
        short_help: What the list of commands says.
        typed: An example.
        reads: The options that name files to read; arguments do.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        parameters: list[click.Parameter] = []
        bundles: dict[str, Options] = {}
        for one in inspect.signature(function).parameters.values():
            if isinstance(one.default, dict):
                bundles[one.name] = one.default
                parameters += [_option(*each) for each in one.default.items()]
            elif isinstance(one.default, Option | Field):
                parameters.append(_option(one.name, one.default, str(one.annotation)))
            else:
                parameters.append(click.Argument([one.name], **_ARGUMENTS.get(one.name, {})))

        arguments = [one.name or "" for one in parameters if isinstance(one, click.Argument)]

        @functools.wraps(function)
        def run(**values: Any) -> Any:
            sources = []
            for name in (*arguments, *reads):
                named = values[name] or ()
                sources += [(name, one) for one in ([named] if isinstance(named, str) else named)]
            for name, bundle in bundles.items():
                values[name] = {one: values.pop(one) for one in bundle}
            if "outputs" in bundles:
                values["outputs"] = output.checked_outputs(values["outputs"], sources)
            with output.printing_beside(values.get("outputs", {})), warnings_below():
                return function(**values)

        return helping.Command(
            function.__name__,
            callback=run,
            params=parameters,
            help=function.__doc__,
            short_help=short_help,
            epilog=helping.example(typed) if typed else None,  # type: ignore[arg-type]
        )

    return made


def _option(name: str, declaration: Any, annotation: str = "") -> click.Parameter:
    """Return the option of a command; its type may be that of a parameter."""
    one = getattr(declaration, "metadata", {}).get("option", declaration)
    flags = one.flags or (f"--{name.replace('_', '-')}",)
    kind = _KINDS.get(annotation.removesuffix(" | None"), one.kind)
    settings: dict[str, Any] = {"is_flag": True}
    if "/" in flags[0]:
        settings = {"default": None}
    elif kind is not bool:
        several = one.several or (one.typed is None and annotation.startswith("tuple"))
        settings = {"metavar": one.metavar, "required": one.required, "multiple": several}
        settings["type"] = click.Choice(one.choices) if one.choices else kind
        if one.default is not None:
            settings |= {"default": one.default, "show_default": True}
    if one.typed is not None:
        read = one.typed
        settings["callback"] = lambda context, parameter, typed: read(typed)
    return helping.Option([*flags, name], help=one.help, **settings)


_KINDS: Mapping[str, type] = {"bool": bool, "int": int, "float": float}
#: What there is a JSON Schema of: files that commands read, and what they print as JSON.
SCHEMAS = (
    *("golden", "run", "agree", "audit", "calibrate", "compare", "diagnose", "evaluate"),
    *("explain", "gate", "history", "label", "misses", "plan", "reanchor", "sweep", "trec"),
)
# The arguments that are not one text, as click takes them.
_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "files": {"metavar": "FILE FILE...", "nargs": -1, "required": True},
    "pilot": {"metavar": "PILOT...", "nargs": -1, "required": True},
    "runs": {"metavar": "RUN...", "nargs": -1, "required": True},
    "query": {"metavar": "QUERY", "required": False},
    "kind": {"metavar": "KIND", "type": click.Choice(SCHEMAS)},
    "run": {"metavar": "[RUN]", "required": False},
}


def metric_option(help: str, metavar: str = "METRIC@K") -> Any:
    """Declare ``--metric``, which may be repeated, or name several with commas."""
    return option(
        lambda: _(help) + " " + _("Several: --metric recall@5,ndcg@5."),
        metavar,
        several=True,
        typed=lambda typed: tuple(
            # Between names, and not between the parameters of one.
            one.strip()
            for several in typed
            for one in re.split(r",(?![^(]*\))", several)
        ),
    )


_BETWEEN = re.compile(r"\s*,\s*|\s+")


def cutoffs_option(default: tuple[int | None, ...], help: str) -> Any:
    """Declare ``-k``, a tuple of cutoffs; several are typed with commas or spaces between."""
    return option(
        lambda: f"{_(help)}  [default: {','.join(map(cut.spelled, default))}]",
        "K",
        flags=("-k",),
        several=True,
        typed=lambda typed: (
            cut.check_cutoffs(
                [cut.unspelled(one) for one in _BETWEEN.split(",".join(typed).strip())]
            )
            if typed
            else default
        ),
    )


def one_cutoff_option(help: str) -> Any:
    """Declare ``-k`` for one cutoff, a tuple of it; an empty one if not typed."""
    return option(
        help,
        "K",
        flags=("-k",),
        typed=lambda typed: () if typed is None else cut.check_cutoffs([cut.unspelled(typed)]),
    )


def saving(formats: Sequence[str] = (), *, report: bool = False, **files: str) -> Any:
    """Declare what a command prints and writes.

    Args:
        formats: More values of ``--format``.
        report: Whether it writes an HTML report.
        files: The help of options that name a file to write.
    """
    help = N_(
        "How to print what is printed. Other than as a table, nothing else is on standard output."
    )
    if formats:
        help = N_(
            "How to print what is printed: a verdict also as annotations of GitHub Actions, as a "
            "Code Quality report of GitLab, or as XML of JUnit."
        )
    choices = ("table", "json", "csv", "markdown", *formats)
    made = {"format": Option(help=help, choices=choices, default="table")}
    for name, told in files.items():
        what = _streamed(told) if name in output.STREAMED else told
        made[name] = Option(help=what, metavar="OUT", flags=_FLAGS.get(name, ()))
    if report:
        made["report"] = Option(help=N_("Write an HTML report."), metavar="OUT")
        made["report_language"] = Option(
            help=N_("Language of the report.  [default: that of --lang]"), choices=LANGUAGES
        )
    return made


# How outputs are typed that are not called by their names alone.
_FLAGS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("output", "html"), ("-o", "--output"))


def _streamed(help: str) -> Callable[[], str]:
    return lambda: _(help) + " " + _("'-' is standard output.")


#: What ``--index`` is, wherever there is one.
CHUNKS_HELP = N_(
    "The chunks of the store, as JSONL or one JSON array: each a text in quotes, or an object with "
    '"text" or "page_content" and perhaps "id". \'-\' reads standard input.'
)
ON: Any = option(
    "What to compare: all queries, which must then be the same ones, or those in common.",
    choices=("all", "common"),
    default="all",
)
CLUSTERS: Any = declared(Sampling)["clusters"]
FLOORS: Any = option(
    "Exit with 1 if an average is below X, as in macro_recall@5=0.8 or ndcg@1000w=0.5; for metrics "
    "where lower is better (mean_rank, redundancy, unwanted), if it is above. Repeat it for "
    "several.",
    "METRIC@K=X",
    flags=("--fail-under",),
)
ENCODING: Any = option(
    "Encoding of a file of text, such as cp949 (Excel in Korean).", "NAME", default="utf-8"
)
FOREIGN_INDEX: Any = option(
    "Whether to diagnose against an index that has fewer than a tenth of what was retrieved.",
    choices=("refuse", "allow"),
    default="refuse",
)


#: Options of an evaluation that Python knows otherwise.
_BESIDE: Options = {
    "union": option(
        "Count ground truth that documents hold together, in pieces; for the matcher coverage, "
        "which it chooses.",
        kind=bool,
    ),
    "n_jobs": option(
        "Processes that tokenise and score, at most one per core, -1 for that many; the numbers "
        "are the same.",
        "N",
        kind=int,
        flags=("--jobs",),
    ),
}


#: What a gate accepts that its numbers do not rest on.
ALLOWED: Options = {
    "allow_failures": option(
        "Accept results in which the retriever failed for up to N queries.",
        "N",
        kind=int,
        default=0,
    ),
    "allow_missing": option(
        "Accept results that lack up to N questions of the ground truth, as --missing skip leaves "
        "them out.",
        "N",
        kind=int,
        default=0,
    ),
}


#: Ground truth and a run in two files.
_TWO_FILES: Options = {
    "golden": option(
        "The questions with their ground truth, where FILE is a run: what was retrieved for them. "
        'Rows are joined by "id", or by question.',
        "GOLDEN",
    ),
    "retrieved": option(
        "The run, where FILE is the ground truth; as a file named behind it.",
        "RUN",
        flags=("--run",),
    ),
    "missing": option(
        "What happens to questions that a run lacks.  [default: error]",
        choices=("error", "zero", "skip"),
    ),
}


#: How a table is read.
CELLS: Options = {
    "cells": option(
        "What a cell holds: a list of documents, or one as plain text. Then rows of one question "
        "are one query.",
        choices=("list", "text"),
        default="list",
    ),
    "separator": option(
        "What parts the documents of a cell, as ',' does \"d1,d2\"; cells are then plain text.",
        "TEXT",
    ),
    "delimiter": option("What separates cells of a CSV file.  [default: ,]", "CHARACTER"),
    "encoding": ENCODING,
    "drafts": option(
        'What happens to ground truth whose "status" is "draft", as nobody has accepted it: refuse '
        'it, or count it and say so. "rejected" never counts.',
        choices=("error", "count"),
        default="error",
    ),
}


#: The texts of documents that files name by their ids.
TEXTS: Options = {
    "corpus": option(
        lambda: _("Where documents are ids, take their texts from here.") + " " + _(CHUNKS_HELP),
        "CHUNKS",
        flags=("--index",),
    ),
}
_CUT = declared(Cut)
_ABOUT_AVERAGES = ("matching_criteria", "averaging_method", "conventions")
_FIELDS: Options = {
    f"{name}_field": Option(metavar="NAME", default=name)
    for name in ("question", "actual", "predicted")
}
#: How questions, and what was retrieved for them, are read.
READING: Any = {**_TWO_FILES, **_FIELDS, **CELLS, **TEXTS}
#: What decides about matches alone, where averages do not matter, and how a file is read.
EXPLANATION: Any = {
    name: one
    for name, one in (declared(PlanOptions) | _BESIDE | _TWO_FILES | _FIELDS | CELLS).items()
    if name not in _ABOUT_AVERAGES
}
DIAGNOSIS: Any = EXPLANATION | {"matcher": replace(EXPLANATION["matcher"], default="coverage")}
#: How a file is evaluated, and read.
EVALUATION: Any = {
    "k": cutoffs_option(
        cut.DEFAULT_CUTOFFS,
        N_(
            "Look at the first K retrieved documents, at 'all', or at those that fit into a "
            "budget, as 1000w (words) or 4000c (characters). Several: -k 1,5,10."
        ),
    ),
    "budget": _CUT["budget"],
    "length": _CUT["length"],
    **declared(PlanOptions),
    **EXPLANATION,
    **TEXTS,
}

#: ``--lang``, before or behind the name of a command; the shell forgets it at the end.
language_option = click.option(
    "--lang",
    cls=helping.Option,
    type=click.Choice(LANGUAGES),
    help=N_(
        "Language of what is printed, drawn and written, but for errors.  "
        "[default: KRAG_EVAL_LANG, or en]"
    ),
    expose_value=False,
    callback=lambda context, parameter, typed: SPOKEN.set(typed) if typed else None,
)


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


@dataclass(frozen=True)
class Evaluation:
    """How a file is to be evaluated, as it was typed.

    Attributes:
        k: The cutoffs, budgets among them.
        settings: The options of an evaluator and of a reader that were typed.
        metrics: The metrics to compute; the default ones if not given.
        averages: The averages to print, by their keys; all of them if not given.
        argument: The argument that the metrics come from.
    """

    k: tuple[Cutoff, ...]
    settings: Mapping[str, Any]
    metrics: tuple[str, ...] | None = None
    averages: tuple[str, ...] | None = None
    argument: str = "metrics"

    @classmethod
    def of(cls, options: Mapping[str, Any], k: tuple[Cutoff, ...] = ()) -> Evaluation:
        """Settle what was typed of the options of a command, at their cutoffs or others.

        Raises:
            InvalidInput: If the options about cutoffs do not fit together, or the matcher does not
                know ``--union``.
        """
        k, settings = k or options["k"], given(options)
        settings.pop("k", None)
        budget, length = settings.pop("budget", None), settings.pop("length", "words")
        if settings.pop("union", False):
            settings["matcher"] = _with_union(settings.get("matcher", "coverage"))
        return cls(cut.settled_cutoffs(k, budget, length)[0], settings)

    def with_settings(self, **settings: Any) -> Evaluation:
        """Return this with more settings."""
        return replace(self, settings={**self.settings, **settings})

    def plan(self) -> PartitionPlan:
        """Refuse what no evaluation takes, before a long file is read.

        Returns:
            The plan, whose summary of no queries knows the averages there will be. Where no matcher
            is named, it knows those of coverage: the file, or an index, may bring one.
        """
        from krag_eval.evaluator import PartitionPlan

        typed = {name: self.settings[name] for name in PLAN_OPTIONS if name in self.settings}
        if not self.names_matcher:
            typed.pop("threshold", None)  # the file may name a matcher that takes it
            typed["matcher"] = "coverage"
        with called(self.argument, "metrics"):
            return PartitionPlan.of(self.k, metrics=self.metrics, **typed)

    @property
    def names_matcher(self) -> bool:
        """Whether the matcher was typed."""
        return self.settings.get("matcher") is not None

    def computing(self, argument: str, averages: Iterable[str]) -> Evaluation:
        """Compute what averages that were named need, such as ``"rbp@10"``, at their cutoffs too.

        Args:
            argument: The argument they came in.
            averages: Averages with their cutoffs; a name that is no metric's is refused later.

        >>> Evaluation((5,), {}).computing("floors", ["ndcg@10", "recall@5"]).metrics
        >>> named = ["rbp@5", "rbp(p=0.8)@10", "mrr@5"]
        >>> (made := Evaluation((5,), {}).computing("floors", named)).metrics, made.k
        (('default', 'rbp(p=0.8)'), (5, 10))
        """
        from krag_eval.core.scoring.metrics import DEFAULT, metric_named

        known, at = self.plan().metrics, [cut.parse_metric(one, argument) for one in averages]
        metrics = filter(None, (metric_named(name, argument) for name, _ in at))
        # A matcher that is not named may know no words, which is then refused by name.
        more = [one.name for one in metrics if one.name not in known
                or (one.needs_words and not self.names_matcher)]  # fmt: skip
        made = self
        if more:
            named = (*(self.metrics or [DEFAULT]), *more)
            made = replace(self, metrics=(*dict.fromkeys(named),), argument=argument)
        if cutoffs := {cutoff for _, cutoff in at} - {*self.k}:
            made = replace(made, k=(*cut.in_order([*self.k, *cutoffs]),))
        if made is not self:
            made.plan()
        return made

    def only(self, typed: Sequence[str]) -> Evaluation:
        """Compute and print what ``--metric`` names alone.

        Args:
            typed: Each a metric, ``recall``, or an average, ``macro_recall``; with a cutoff,
                ``recall@5``, or without. Cutoffs that were named with all of the metrics stand
                alone, unless other options ask for some.

        Raises:
            InvalidInput: If something is no metric or no cutoff, or is not computed.
        """
        from krag_eval.core import REJECTION_RATE, averages_of, resolved_average
        from krag_eval.core.scoring.metrics import metric_named, unknown_average

        named = {one: cut.parse_metric(one, "metric") for one in typed if "@" in one}
        alone = len(named) == len(set(typed)) and not given(dict.fromkeys(("k", "budget")))
        k = tuple(dict.fromkeys([*(() if alone else self.k), *(at for _, at in named.values())]))
        made = replace(self, k=k, argument="metric")
        metrics, averages = list[str](), list[str]()
        for name in (named[one][0] if one in named else one for one in typed):
            if name == REJECTION_RATE.key:
                averages.append(name)
                continue
            if (metric := metric_named(name, "metric")) is None:
                usual = made.plan()
                there = [*usual.nothing().summary.averages(k[0]), *usual.metrics]
                raise unknown_average("metric", name, there)
            metrics.append(metric.name)
            known = replace(made, metrics=(metric.name,)).plan().nothing().summary.averages(k[0])
            is_average = name in averages_of([metric])
            averages += [resolved_average("metric", name, known)] if is_average else known
        unique = tuple(dict.fromkeys(averages))
        made = replace(made, metrics=tuple(dict.fromkeys(metrics)) or None, averages=unique)
        made.check_rejections()
        return made

    def check_rejections(self, n_left_out: int | None = None) -> None:
        """Refuse to print a rejection rate where there is none.

        Args:
            n_left_out: The number of queries without ground truth, where it is known.
        """
        from krag_eval.core import REJECTION_RATE
        from krag_eval.core.scoring.relevance import rejections_unknown

        if REJECTION_RATE.key not in (self.averages or ()):
            return
        if self.settings.get("no_ground_truth") != "skip":
            raise rejections_unknown("metric")
        if n_left_out == 0:
            raise rejections_unknown("metric", n_left_out)


def _with_union(matcher: str) -> str:
    """Return a matcher with the setting that ``--union`` stands for.

    >>> _with_union("spans"), _with_union("coverage(min_run=3)")
    ('spans(union=yes)', 'coverage(min_run=3,union=yes)')
    """
    name, settings = name_and_settings("matcher", matcher)
    if name not in ("coverage", "spans") or settings.get("union", "yes") not in ("yes", "true"):
        problem = "counts the pieces that the matchers coverage and spans find, and the matcher is "
        fix = Advice("leave it out, or pass {} or {}", matcher=("coverage", "spans"))
        raise InvalidInput("union", problem + matcher, fix)
    settings["union"] = "yes"
    return f"{name}({','.join(f'{key}={value}' for key, value in settings.items())})"
