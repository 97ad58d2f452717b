"""The options of an evaluation, each declared once.

From a field of :class:`PlanOptions` come its check in Python, its option in the shell, what a
signature says of it and so what is saved, and whether a reader, a stream or a retriever passes it
on.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from krag_eval.core import conventions as disputed, errors
from krag_eval.core.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.core.language import _

if TYPE_CHECKING:
    from krag_eval.core.matching.base import Matcher
    from krag_eval.core.scoring.cutoffs import Cutoffs, Length
    from krag_eval.core.scoring.metrics import Metric

#: English, which the catalogs translate, or what returns a translated text.
Text: TypeAlias = "str | Callable[[], str]"


@dataclass(frozen=True, kw_only=True)
class Option:
    """What there is to know of an option: in Python, in the shell and in a signature.

    Attributes:
        help: What the shell's help says.
        metavar: What the help calls a value.
        flags: How the shell spells it, if not by its name.
        kind: The type of a value.
        choices: The values that are allowed, if they are few.
        bounds: The least and the largest value.
        several: Whether the shell takes it several times.
        check: Returns the value that an argument of that name stands for.
        typed: Returns the value of what was typed, where the shell reads it in its own way.
        default: The value if none is given.
        required: Whether the shell insists on one.
        signed: What a signature calls it, if not by its name.
        unsaid: The values that a signature leaves out.
    """

    help: Text = ""
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    kind: type = str
    choices: Sequence[str] = ()
    bounds: tuple[int, int | None] = (1, None)
    several: bool = False
    check: Callable[[str, Any], Any] | None = None
    typed: Callable[[Any], Any] | None = None
    default: Any = None
    required: bool = False
    signed: str = ""
    unsaid: tuple[object, ...] = ()

    def checked(self, argument: str, value: Any) -> Any:
        """Return a value as it is used, if it is allowed."""
        if self.check is not None:
            return self.check(argument, value)
        if value is None and self.default is None:
            return None
        if self.choices:
            return self.kind(errors.one_of(argument, value, self.choices))
        if self.kind is int:
            return errors.whole(argument, value, *self.bounds)
        if self.kind is float:
            return errors.number(argument, value, *self.bounds)  # type: ignore[arg-type]
        check = errors.boolean if self.kind is bool else errors.text
        return check(argument, value)


def option(help: Text = "", metavar: str | None = None, **settings: Any) -> Any:
    """Declare a field."""
    one = Option(help=help, metavar=metavar, **settings)
    return field(default=one.default, metadata={"option": one})


def _choice(enum: type[StrEnum], help: str, **settings: Any) -> Any:
    return option(help, kind=enum, choices=[one.value for one in enum], **settings)


def declared(options: type) -> dict[str, Option]:
    """Return the options that a class declares, by name."""
    return {one.name: one.metadata["option"] for one in fields(options)}


def _checked_matcher(argument: str, matcher: Any) -> Matcher:
    from krag_eval.core.matching.names import resolve_matcher

    return resolve_matcher(matcher)


def _checked_score(argument: str, score: Any) -> float | None:
    if score is None:
        return None
    try:  # the shell has it as text
        found = math.nan if isinstance(score, bool) else float(score)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        fix = "result.score_cutoffs() finds one, 'krag-eval evaluate --score-cutoff auto' as well"
        raise errors.must(argument, "be a finite number", score, fix)
    return found


def _matcher_help() -> str:
    from krag_eval.core.matching.names import MATCHER_NAMES

    return _(
        "What makes a retrieved document a match: {}; settings in parentheses, as in "
        "'coverage(tokenizer=letters)'."
    ).format(", ".join(MATCHER_NAMES))


def _conventions_help() -> str:
    return _(
        "How disputed points are settled: {}, or fields such as gain=linear,precision_at=k."
    ).format(", ".join(Conventions.presets()))


@dataclass(frozen=True)
class PlanOptions:
    """How a run is evaluated, wherever its documents are.

    The order is that of a signature.
    """

    matcher: Matcher = option(
        _matcher_help, "NAME", flags=("--matcher", "-m"), default="text", check=_checked_matcher
    )
    threshold: float = option(
        "Similarity from which a pair is a match, 0 to 1; the matcher's own by default.",
        "T",
        kind=float,
        bounds=(0, 1),
    )
    matching_criteria: MatchingCriteria = _choice(
        MatchingCriteria,
        "A query is a hit when all of its ground truth is found, or (partial) any of it.",
        flags=("--criteria",),
        default="all",
        signed="criteria",
    )
    averaging_method: AveragingMethod = _choice(
        AveragingMethod,
        "Which averages of precision, recall and F1 to show.",
        flags=("--averaging",),
        default="both",
        signed="averaging",
    )
    conventions: Conventions = option(
        _conventions_help, "NAME|FIELDS", default="default", check=disputed.checked_conventions
    )
    grade_key: str | None = option(
        "Key in the metadata of the ground truth that holds its grade; all are 1 by default.",
        "KEY",
        signed="grades",
    )
    grades: str = option(
        "Whether relevance, grade, label or score of the ground truth is its grade where that is 0 "
        "somewhere (auto), or all of it counts alike (no).",
        choices=("auto", "no"),
        default="auto",
        unsaid=("auto", "no"),  # a signature names the key
    )
    aspect_key: str | None = option(
        "Metadata key of the ground truth with the aspects of a question: adds aspect recall and "
        "α-nDCG.",
        "KEY",
        signed="aspects",
        unsaid=(None,),
    )
    no_ground_truth: str = option(
        "For queries without ground truth: refuse, leave out of averages, or count as 0.",
        choices=("error", "skip", "zero"),
        default="error",
    )
    unjudged: str = option(
        'What the field "judged" does not list: wrong, wrong with the upper bound of precision '
        "and RBP beside it, or as if not retrieved.",
        choices=("wrong", "bounds", "leave_out"),
        default="wrong",
        unsaid=("wrong", "bounds"),  # the bounds stand beside the same numbers
    )
    score_cutoff: float | None = option(
        "Drop retrieved documents whose scores are below X (above it, if scores rise with the "
        "rank); evaluate finds one by itself with 'auto'.",
        "X",
        check=_checked_score,
        unsaid=(None,),
    )

    @classmethod
    def checked(cls, **given: Any) -> Self:
        """Settle the options of an evaluator.

        Raises:
            InvalidType: If there is no such option, or it is of another type than it should be.
            InvalidInput: If one is not among those allowed.
        """
        check_options(cls.checked, given, PLAN_OPTIONS)
        settled = {
            name: one.checked(name, given.get(name, one.default))
            for name, one in declared(cls).items()
        }
        settled["threshold"] = settled_threshold(settled["threshold"], settled["matcher"])
        return cls(**settled)

    def signed(self) -> dict[str, str]:
        """Return what a signature says of each, in order."""
        said = {
            one.signed or name: getattr(value, "signature", "-" if value is None else str(value))
            for name, one in declared(type(self)).items()
            if (value := getattr(self, name)) not in one.unsaid
        }
        return said if self.matcher.takes_threshold else said | {"threshold": "-"}


@dataclass(frozen=True)
class Cut:
    """Where lists are cut off, and what is computed there."""

    k: Cutoffs = option()
    budget: int | None = option(
        "Look at the first documents that fit into N words together; without -k, at nothing else. "
        "Repeat it for several budgets.",
        "N",
        kind=int,
        several=True,
    )
    length: Length = option(
        "What --budget counts.", choices=("words", "characters"), default="words"
    )
    metrics: Sequence[str | Metric] | None = option()


@dataclass(frozen=True)
class Sampling:
    """How much chance is looked at, and whose fate is shared."""

    level: float = option(kind=float, default=0.95)
    n_resamples: int = option(kind=int, default=10_000)
    seed: int = option(kind=int, bounds=(0, None), default=0)
    clusters: str | None = option(
        "Take queries that share the value of a column, such as source, as belonging together.",
        "TAG",
    )


def settled_threshold(threshold: float | None, matcher: Matcher) -> float:
    """Return the threshold in use: the one given, or the matcher's own."""
    if threshold is None:
        own = matcher.threshold
        return errors.number("matcher.threshold", own, 0, 1) if matcher.takes_threshold else own
    if not matcher.takes_threshold:
        problem = f"must be left out for the matcher {matcher.signature}, which decides without one"
        raise errors.InvalidInput("threshold", f"{problem}, got {threshold!r}")
    return errors.number("threshold", threshold, 0, 1)


#: How a run is evaluated, wherever its documents are.
PLAN_OPTIONS = tuple(declared(PlanOptions))
#: Other lists of documents, one per query.
LISTS = ("unwanted", "cited")
#: All that an evaluator takes beside documents.
EVALUATOR_OPTIONS = (*PLAN_OPTIONS, "queries", "n_jobs", "tags", "judged", *LISTS)


# What users of krag, pandas and RAGAS type -> what it is called here.
_ELSEWHERE = {"match_method": "matcher", "rouge_threshold": "threshold", "sep": "delimiter",
              "query": "question", "ground_truth": "actual", "contexts": "predicted"}  # fmt: skip


def check_options(
    function: Callable[..., Any], options: Collection[str], passed_on: Sequence[str] = ()
) -> None:
    """Refuse an option that a function does not have, in the words of who called it.

    Args:
        function: What the user called; its own keywords are allowed.
        options: The names that came.
        passed_on: The names that it hands to another.

    Raises:
        TypeError: Naming the function, the option, the nearest one allowed, and all of them.

    >>> def measure(path, k=5, **options): ...
    >>> check_options(measure, ["treshold"], ("matcher", "threshold"))
    Traceback (most recent call last):
    krag_eval.errors.InvalidType: treshold: measure() has no option 'treshold'; did you mean
    'threshold'? It takes 'path', 'k', 'matcher', 'threshold'.
    """
    if set(options).issubset(passed_on):  # signatures take their time
        return
    own = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.name != "self" and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    allowed = tuple(dict.fromkeys([*own, *passed_on]))
    for name in options:
        if name not in allowed:
            called = function.__qualname__.removesuffix(".__init__")
            known = _ELSEWHERE.get(name)
            near = errors.unknown(name, name, allowed).fix
            meant = f"did you mean {known!r}?" if known in allowed else near
            names = f"It takes {', '.join(map(repr, allowed))}"
            problem = f": {called}() has no option {errors.clipped(name)}"
            raise errors.InvalidType(name, problem, f"{meant} {names}".strip())
