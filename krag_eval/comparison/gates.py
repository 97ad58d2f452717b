"""Gates: whether a result is good enough, alone or against a baseline.

Floors and allowed drops, for ``EvaluationResult.check`` and ``krag-eval gate``; ranges and
directions are those that the result knows of its averages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from krag_eval.comparison import comparable, comparison as comparisons
from krag_eval.comparison.comparison import Comparison, On
from krag_eval.comparison.paired import Difference, corrected
from krag_eval.core import (
    REJECTION_RATE,
    Advice,
    Average,
    InvalidInput,
    Language,
    MissingQuestions,
    NoRows,
    Rows,
    Shown,
    _,
    clipped,
    errors,
    must,
    page_of,
    parse_metric,
    speaking,
    spelled,
    told_missing,
    unreviewed_of,
    unreviewed_sentences,
    warn,
)
from krag_eval.core.errors import one_line
from krag_eval.core.language import language
from krag_eval.core.results.latency import told_failed
from krag_eval.core.results.verdicts import OUTCOMES, Outcome, Verdicts, worst
from krag_eval.core.scoring.parts import Summary
from krag_eval.intervals.intervals import Sampling

if TYPE_CHECKING:
    from krag_eval.core import ResultFacts

import hashlib

# A drop of exactly what is allowed may come out a little larger in floating point.
_ROUNDING = 1e-12


class GateFailedError(AssertionError):
    """A result is not good enough; the message says why, one line per broken condition."""


@dataclass(frozen=True)
class Gate:
    """One condition and what became of it.

    Attributes:
        metric: The average it is about, such as ``"ndcg@10"``.
        passed: Whether it holds. An inconclusive one does, unless the gate is strict.
        reason: One line that says so, with the numbers.
        slice: The slice of the queries it is about; ``None`` if it is about all of them.
        is_inconclusive: Whether it is worse than allowed, and that may be chance.
        condition: What it asks, such as ``"ndcg@10 >= 0.6"`` or ``"ndcg@10 drop <= 0.02 against the
            baseline"``, the same in every language: by this, files of results keep its outcome.
    """

    metric: str
    passed: bool
    reason: str
    slice: str | None = None
    is_inconclusive: bool = False
    condition: str = field(default="", compare=False)

    @property
    def outcome(self) -> Outcome:
        """``"passed"``, ``"inconclusive"`` or ``"failed"``."""
        return "inconclusive" if self.is_inconclusive else "passed" if self.passed else "failed"


@dataclass(frozen=True, repr=False)
class GateReport(Shown):
    """All conditions checked; true if all of them hold.

    Attributes:
        gates: The conditions, floors first.
        left_out: ``"baseline"`` and ``"new"`` -> the labels of the queries that only that result
            has, and that the comparison left out; empty if none was.
        n_compared: Number of queries the two were compared on; ``None`` without a baseline.
        language: What the reasons are written in, ``"en"`` or ``"ko"``.
        failed: ``"baseline"`` and ``"new"`` -> for how many queries its retriever failed, which was
            allowed; empty if for none.
        unreviewed: ``"baseline"`` and ``"new"`` -> how many of its queries are drafts that nobody
            has accepted, as ``"34 of 60"``; empty if none is.
        missing: ``"baseline"`` and ``"new"`` -> the questions of the ground truth that it lacks, as
            ``result.missing`` has them; empty if none does.
        ground_truth: What tells the ground truth that the verdict rests on from another: the same
            questions with the same documents have the same digest. ``""`` if that is not known, as
            of a run in parts that keeps no rows.
        comparisons: What the new result was compared with: a baseline, or means of a history; empty
            if all conditions are floors.
    """

    gates: tuple[Gate, ...]
    left_out: Mapping[str, Sequence[str | int]] = field(default_factory=dict, hash=False)
    n_compared: int | None = None
    language: Language = "en"
    failed: Mapping[str, int] = field(default_factory=dict, hash=False)
    unreviewed: Mapping[str, str] = field(default_factory=dict, hash=False, kw_only=True)
    missing: Mapping[str, MissingQuestions] = field(default_factory=dict, hash=False, kw_only=True)
    ground_truth: str = ""
    comparisons: tuple[Comparison, ...] = field(default=(), compare=False)

    @property
    def passed(self) -> bool:
        """Whether every condition holds; what is inconclusive does, unless the gate is strict."""
        return all(gate.passed for gate in self.gates)

    @property
    def outcome(self) -> Outcome:
        """``"failed"`` if a condition is, else ``"inconclusive"`` if one is, else ``"passed"``."""
        return worst(gate.outcome for gate in self.gates) or "passed"

    @property
    def noted(self) -> Outcome:
        """What the file of the result keeps: an inconclusive one that is strict has failed."""
        return self.outcome if self.passed else "failed"

    @property
    def verdicts(self) -> Verdicts:
        """What the file of the result keeps of each condition, by what it asks."""
        outcomes = ((one.condition, one.outcome if one.passed else "failed") for one in self.gates)
        return {condition: outcome for condition, outcome in outcomes if condition}

    def noted_on(self, result: ResultFacts) -> ResultFacts:
        """Return a result that knows what became of it here, and in earlier gates."""
        return result.with_verdicts(self.noted, self.verdicts)

    @property
    def by_outcome(self) -> list[Gate]:
        """The conditions in the order in which they are told: what failed first, passed last."""
        return sorted(self.gates, key=lambda gate: OUTCOMES.index(gate.outcome))

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

    @property
    def note(self) -> str:
        """Which queries were left out, how many failed, are missing or drafts; or ``""``."""
        with speaking(self.language):
            left_out = comparisons.told_left_out(self.n_compared or 0, self.left_out)
            lacking = [*told_failed(self.failed), *told_missing(self.missing)]
            return " ".join([*left_out, *lacking, *unreviewed_sentences(self.unreviewed)])


def parse_floor(text: str) -> tuple[str, float]:
    """Read a floor such as ``"macro_recall@5=0.8"``.

    Returns:
        The average with its cutoff, as it was named, and the number.

    Raises:
        InvalidInput: If the text is something else; the message says what is missing.

    >>> parse_floor("macro_recall@5=0.8"), parse_floor("rbp(p=0.8)@5=0.5")
    (('macro_recall@5', 0.8), ('rbp(p=0.8)@5', 0.5))
    """
    # A metric may have an = in its parameters, never behind the @.
    metric, at, rest = text.rpartition("@") if isinstance(text, str) else ("", "", "")
    cutoff, equals, number = rest.partition("=")
    if not equals:
        be = "be written as metric@k=number, such as 'ndcg@10=0.6'"
        raise InvalidInput("floors", f": a floor must {be}, got {clipped(text)}")
    key, k = parse_metric(f"{metric}{at}{cutoff}", "floors")
    try:
        return f"{key}@{spelled(k)}", float(number)
    except ValueError:
        problem = f": a floor needs a number after the =, got {clipped(text)}"
        raise InvalidInput("floors", problem) from None


class Terms(NamedTuple):
    """What a gate allows, and how it tests; see ``EvaluationResult.check``."""

    sampling: Sampling
    max_drop: float | None = None
    on: On = "all"
    by: str | None = None
    clusters: str | None = None
    strict: bool = False
    allow_failures: int = 0
    allow_missing: int = 0


def check(
    result: ResultFacts,
    floors: Mapping[str, float] | Iterable[str] | None,
    baseline: ResultFacts | None,
    metric: str | Iterable[str] | None,
    terms: Terms,
) -> GateReport:
    """Check a result; see ``EvaluationResult.check``."""
    errors.boolean("strict", terms.strict)
    failed = allowed_failures({"new": result}, terms)
    missing = allowed_missing({"new": result}, terms)
    gates = floor_gates(result, floors)
    if baseline is not None:
        if not isinstance(baseline, type(result)):
            raise must("baseline", "be an EvaluationResult", baseline, kind=errors.InvalidType)
        if result.is_same_run(baseline):
            fix = "evaluate an earlier run, or read the file in which it was saved"
            raise InvalidInput("baseline", "is the result itself, which cannot be worse", fix)
        if metric is None:
            problem = "must name what may not drop below the baseline, got none"
            raise InvalidInput("metric", problem, Advice("name it by {}", metric=...))
        failed = allowed_failures({"baseline": baseline}, terms) | failed
        missing = allowed_missing({"baseline": baseline}, terms) | missing
        found = against(result, baseline, metric, terms)
        every = settled(gates + drop_gates([found], terms.by), terms)
        n, digest = len(found.queries), truth_digest(result.rows)
        drafts = unreviewed_of({"baseline": baseline, "new": result})
        return GateReport(every, found.left_out, n, language(), failed, digest, (found,),
                          unreviewed=drafts, missing=missing)  # fmt: skip
    unasked = Terms(
        terms.sampling, allow_failures=terms.allow_failures, allow_missing=terms.allow_missing
    )
    about_baseline = {"metric": metric, **terms._asdict()}
    for argument, value in about_baseline.items():
        if value != getattr(unasked, argument, None):
            raise InvalidInput(argument, "is about a baseline, and none was given")
    if not gates:
        advice = Advice("give {}, or {} and {}", floors=..., baseline=..., metric=...)
        raise InvalidInput("", "nothing to check", advice)
    digest = truth_digest(result.rows)
    drafts = unreviewed_of({"new": result})
    return GateReport(tuple(gates), language=language(), failed=failed, ground_truth=digest,
                      unreviewed=drafts, missing=missing)  # fmt: skip


def allowed_failures(results: Mapping[str, ResultFacts], terms: Terms) -> dict[str, int]:
    """Return for how many queries the retriever failed, by the name of a result.

    Raises:
        InvalidInput: If it failed for more than are allowed: a number that rests on them is none of
            the retriever that works.
    """
    most = errors.whole("allow_failures", terms.allow_failures, 0)
    failed = {name: one.n_failed for name, one in results.items() if one.n_failed}
    for name, n in failed.items():
        if n > most:
            told = f"is {most}, and {n} of {results[name].n_queries} queries of {name} failed"
            fix = "ask these again, as retry_failed() does, or allow them with {}"
            raise InvalidInput("allow_failures", told, Advice(fix, allow_failures=n))
    return failed


def allowed_missing(
    results: Mapping[str, ResultFacts], terms: Terms
) -> dict[str, MissingQuestions]:
    """Return which questions of the ground truth are missing, by the name of a result.

    Raises:
        InvalidInput: If more are left out than are allowed: what was not asked is not good enough.
    """
    most = errors.whole("allow_missing", terms.allow_missing, 0)
    missing = {name: one.missing for name, one in results.items() if one.missing is not None}
    for name, one in missing.items():
        if one.n_left_out > most:
            told = f"is {most}, and {one.n} of the {one.questions} questions are missing in {name}"
            fix = "ask these, count them as nothing retrieved with {}, or allow them with {}"
            advice = Advice(fix, ("missing", "zero"), ("allow_missing", one.n))
            raise InvalidInput("allow_missing", told, advice)
    return missing


def settled(gates: Iterable[Gate], terms: Terms) -> tuple[Gate, ...]:
    """Return the conditions; if the gate is strict, none holds that is inconclusive."""
    return tuple(
        replace(gate, passed=gate.passed and not (terms.strict and gate.is_inconclusive))
        for gate in gates
    )


def floor_gates(
    result: ResultFacts, floors: Mapping[str, float] | Iterable[str] | None
) -> list[Gate]:
    """Check the floors of a result."""
    values = result.to_dict()
    has_rejections = result.summary.rejection_rate(result.k[0]) is not None
    gates = []
    for name, floor in checked_floors(floors, result.summary, rejection_rate=has_rejections):
        value, average = values[name], result.definitions[name.rpartition("@")[0]]
        # Where lower is better, it is a ceiling; what is undefined fails.
        passed = value <= floor if average.lower_is_better else value >= floor
        told = page_of(Floor(name, value, floor, average, passed)).sentences
        condition = f"{name} {'<=' if average.lower_is_better else '>='} {floor}"
        gates.append(Gate(name, passed, told[0], condition=condition))
    return gates


def against(
    result: ResultFacts,
    baseline: ResultFacts,
    metric: str | Iterable[str],
    terms: Terms,
    runs: Sequence[ResultFacts] = (),
) -> Comparison:
    """Compare a result with a baseline, or with the mean of several runs: is it worse?"""
    allowed = 0.0 if terms.max_drop is None else errors.number("max_drop", terms.max_drop, 0)
    systems = {"baseline": baseline, "new": result}
    found = comparisons.compared(
        systems, metric, terms.sampling, on=terms.on, clusters=terms.clusters, max_drop=allowed,
        runs=runs,
    )  # fmt: skip
    for row in found.differences if result.conventions.credit != "every" else ():  # can pass 1
        low, high = (row.average and row.average.range) or (0.0, math.inf)
        if allowed > high - low:  # such as 2 for 0.02: it would pass whatever comes
            raise must("max_drop", f"be at most {high - low:g}, as {row.metric} is", allowed)
    cutoffs = {parse_metric(row.metric, "metric")[1] for row in found.differences}
    if not any(one.tables[k]["relevant"].any() for one in systems.values() for k in cutoffs):
        told = _(
            "Nothing matched, neither in the baseline nor in the new result, so {} cannot drop and "
            "this gate protects nothing."
        )
        advice = Advice(_("Evaluate both with another matcher, such as {}"), matcher="coverage")
        warn(told.format(", ".join(found.metrics)), advice)
    for tag, effect in found.dependent.items():
        told = _(
            "Queries of the same {tag} do alike (design effect {effect:.1f}), so the intervals of "
            "this gate are too narrow."
        )
        named = comparisons.named_tag(tag)
        warn(told.format(tag=named, effect=effect), Advice(_("Pass {}"), clusters=tag))
    return found


def drop_gates(
    comparisons: Sequence[Comparison], by: str | None, against: str = "the baseline"
) -> list[Gate]:
    """Check that nothing dropped, in all queries and in the slices of a tag.

    Holm's correction is over everything compared; that of the slices is over all of them.

    Args:
        comparisons: The comparisons with what it may not drop below.
        by: The tag.
        against: What that is, in the conditions.
    """
    rows = [(one, row) for one in comparisons for row in one.differences]
    of_all = corrected([row for _, row in rows], comparisons[0].level)
    gates = [_drop_gate(row, one) for (one, _), row in zip(rows, of_all, strict=True)]
    for one in comparisons if by is not None else ():
        gates += _slice_gates(one, str(by))
    return [replace(gate, condition=f"{gate.condition} against {against}") for gate in gates]


def checked_floors(
    floors: Mapping[str, float] | Iterable[str] | None, summary: Summary, *, rejection_rate: bool
) -> list[tuple[str, float]]:
    """Return floors by the averages that they are about.

    Args:
        floors: As ``EvaluationResult.check`` takes them.
        summary: That of a result, or of no queries, which knows what there will be.
        rejection_rate: Whether there is a rejection rate, too.

    Raises:
        InvalidInput: If there is no such average, or every result or none would pass.
    """
    listed = [floors] if isinstance(floors, str) else floors or []
    pairs = listed.items() if isinstance(listed, Mapping) else map(parse_floor, listed)
    checked = []
    more = [REJECTION_RATE.key] if rejection_rate else []
    for metric, floor in pairs:
        key, k = comparable.checked_metric({"the result": summary}, metric, "floors", more)
        name = f"{key}@{spelled(k)}"
        if isinstance(floor, bool) or not isinstance(floor, Real):
            problem = f": {name} needs a number, got {clipped(floor)}"
            raise errors.InvalidType("floors", problem)
        low, high = summary.definitions[key].range or (-math.inf, math.inf)
        if summary.conventions.credit == "every":
            high = math.inf
        if not low <= (value := float(floor)) <= high or math.isinf(value):  # such as 80 for 0.8
            problem = f": {name} ranges from {low:g} to {high:g}, got {clipped(floor)}"
            raise InvalidInput("floors", problem)
        checked.append((name, value))
    return checked


class Floor(NamedTuple):
    """An average and the least, or the most, that it may be."""

    name: str
    value: float
    floor: float
    average: Average
    passed: bool


def _slice_gates(comparison: Comparison, by: str) -> Iterator[Gate]:
    """Yield the gates of each slice; those with too few queries say so, and pass."""
    from krag_eval.comparison.comparison import sliced_comparison

    errors.text("by", by, "the name of a tag")
    try:
        rows = sliced_comparison(comparison, by, few_slices=True).rows
    except InvalidInput as error:
        argument = "by" if error.argument == "tag" else error.argument
        raise InvalidInput(argument, error.problem, error.fix) from None
    for row in rows:
        name, gate = one_line(row.slice or ""), _drop_gate(row, comparison)
        reason, condition = f"{by} {name}: {gate.reason}", f"{gate.condition} in {by} {name}"
        yield replace(gate, slice=name, reason=reason, condition=condition)


#: What can become of an average that may not drop.
Fate: TypeAlias = Literal[
    "too few", "undefined", "new", "fewer", "apart", "worse", "unsure", "of fewer", "held"
]


class Drop(NamedTuple):
    """What became of an average that may not drop, and the difference that tells it."""

    fate: Fate
    row: Difference
    comparison: Comparison


def _drop_gate(row: Difference, comparison: Comparison) -> Gate:
    """Fail a drop that is shown to be larger than allowed: the rule of the comparison."""
    fate = _fate(row, comparison)
    return Gate(
        row.metric,
        fate not in ("undefined", "fewer", "worse"),
        page_of(Drop(fate, row, comparison)).sentences[0],
        is_inconclusive=fate in ("apart", "unsure", "of fewer"),
        condition=f"{row.metric} drop <= {comparison.max_drop}",
    )


def _fate(row: Difference, comparison: Comparison) -> Fate:
    if math.isnan(row.alpha):  # a slice that was not tested
        return "too few"
    if math.isnan(row.value_b):
        return "undefined"
    if math.isnan(row.value_a):
        return "new"
    if row.fails_to_find(comparison.level):
        return "fewer"
    if math.isnan(row.difference):
        return "apart"
    if row.drop > (comparison.max_drop or 0.0) + _ROUNDING:
        return "worse" if row.fails(comparison.level) else "unsure"
    return "of fewer" if row.share_b < row.share_a else "held"


def not_ruled_out(row: Difference, level: float) -> float:
    """Return the largest drop in the interval of the difference; infinite where none is known.

    Where all queries differ alike, resampling knows of no other; then queries that were not seen
    may: of n, a share of 1 − (α/2)^(1/n), each as far as the metric goes.
    """
    lower = row.average is not None and row.average.lower_is_better
    if not math.isnan(row.ci_low):
        return row.ci_high if lower else -row.ci_low
    low, high = (row.average and row.average.range) or (0.0, math.inf)
    left = row.drop
    if row.spread is None or math.isinf(high):
        return math.inf
    n = row.spread.n_clusters or row.spread.n
    unseen: float = 1 - ((1 - level) / 2) ** (1 / n)
    return min(left + (high - low) * unseen, high - row.value_a if lower else row.value_a - low)


def truth_digest(rows: Rows) -> str:
    """Return what tells the ground truth of these queries from another, in whatever order.

    ``""`` where the rows do not know it.
    """
    if isinstance(rows, NoRows) or rows.digests is None:
        return ""
    known = sorted(f"{label}\t{one}" for label, one in zip(rows.labels, rows.digests, strict=True))
    text = "\n".join(known).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=6).hexdigest()
