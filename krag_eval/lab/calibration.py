"""Choosing a threshold, and checking a judge: how well decisions agree with labelled pairs.

No retrieval metric comes in here: a threshold chosen for a high retrieval score measures itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    Advice,
    DocumentLike,
    Drawn,
    InvalidInput,
    Matcher,
    QuerySet,
    Shown,
    clipped,
    must,
    number,
    resolve_matcher,
    single,
    text_of,
    whole,
)
from krag_eval.core.documents import Item
from krag_eval.core.files import arrow_table
from krag_eval.core.matching.base import check_by_pairs
from krag_eval.intervals.intervals import interval
from krag_eval.lab.intervals import interval_of_choice

if TYPE_CHECKING:
    import pandas as pd

#: ``(actual, predicted, is_relevant)``, and the question for a matcher that looks at it.
LabelledPair: TypeAlias = "tuple[Item, DocumentLike, bool] | tuple[Item, DocumentLike, bool, str]"
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

# Of a table of labelled pairs.
_COLUMNS = ("actual", "predicted", "relevant")
# Resamples are drawn in blocks of about this many weights, so that memory stays bounded.
_BLOCK = 4_000_000


def agreement(
    matcher: str | Matcher,
    labelled_pairs: Iterable[LabelledPair | Mapping[str, Any]] | pd.DataFrame,
    *,
    threshold: float | None = None,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Measure how far a matcher, such as a judge, decides as people do.

    Label pairs drawn at random from those the matcher will decide about: κ depends on how many of
    them are relevant.

    Args:
        matcher: A name or a matcher; a ``JudgeMatcher`` needs the question of each pair.
        labelled_pairs: As for :func:`calibrate`, with both labels among them.
        threshold: Similarity from which a pair is a match; the matcher's own if not given.
        level: Confidence level of the interval of κ, between 0 and 1.
        n_resamples: Bootstrap resamples of the pairs for that interval.
        seed: Seed of the resampling; the same seed gives the same interval.

    Returns:
        An :class:`Agreement`.

    Raises:
        InvalidInput: If documents count together for the matcher, a threshold is given to one
            that takes none, a pair is malformed, or the labels are all alike.

    >>> pairs = [("a b", "a b c", True), ("a b", "a c", True), ("a b", "c", False),
    ...          ("c", "a b", False)]
    >>> found = agreement("contains", pairs)
    >>> found.kappa, found.missed
    (0.5, 1)
    """
    matcher = _checked(matcher, level, n_resamples, by_threshold=threshold is not None)
    at = number("threshold", matcher.threshold if threshold is None else threshold, 0, 1)
    pairs = _unzipped(labelled_pairs)
    similarity = _similarities(matcher, pairs)
    matched = (similarity >= at) & (similarity > 0)
    unknown = np.nan, np.nan
    found = Agreement(matcher.signature, *pairs[:3], matched, at, unknown, level)
    return replace(found, interval=interval_of_kappa(found, n_resamples, seed))


def interval_of_kappa(found: Agreement, n_resamples: int, seed: int) -> tuple[float, float]:
    """Return the bootstrap percentile interval of κ."""
    generator, n_pairs = np.random.default_rng(seed), sum(found.counts)
    drawn = generator.multinomial(n_pairs, np.array(found.counts) / n_pairs, size=n_resamples)
    # Where one label was never drawn nor decided for, κ is undefined and left out.
    return interval(_kappas(drawn), found.kappa, found.level)


def calibrate(
    matcher: str | Matcher,
    labelled_pairs: Iterable[LabelledPair | Mapping[str, Any]] | pd.DataFrame,
    *,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> Calibration:
    """Measure a matcher's decision at every threshold against labelled pairs.

    Label some dozens to some hundreds of pairs, near misses above all, and take the threshold at
    which the matcher agrees with you best. Never choose the threshold that maximises a retrieval
    score: lowering it can only add matches, so that search ends at calling everything relevant.

    Args:
        matcher: A name or a matcher that takes a threshold.
        labelled_pairs: ``(actual, predicted, is_relevant)`` triples, both relevant and not; or
            rows or a data frame with the columns ``actual``, ``predicted`` and ``relevant``, as
            :meth:`Calibration.borderline` has them. For a matcher that looks at the question, such
            as a ``JudgeMatcher``, with the question as the fourth, or in the column ``question``.
            Those of a labelling page are ``read_labels(path).pairs``.
        level: Confidence level of the interval of the best threshold, between 0 and 1.
        n_resamples: Bootstrap resamples of the pairs for that interval.
        seed: Seed of the resampling; the same seed gives the same interval.

    Returns:
        A :class:`Calibration`.

    Raises:
        InvalidInput: If the matcher takes no threshold or lets documents count together, a triple
            is malformed, or the labels are all alike.

    >>> pairs = [("a b c d", "a b c d", True), ("a b c d", "a b c x", True),
    ...          ("a b c d", "a x y z", False), ("a b c d", "w x y z", False)]
    >>> calibration = calibrate("rouge1", pairs)
    >>> calibration.best_threshold, calibration.best_f1
    (0.5, 1.0)
    """
    matcher = _checked(matcher, level, n_resamples, by_threshold=True)
    pairs = _unzipped(labelled_pairs)
    similarity = _similarities(matcher, pairs)
    best, resampled = _best_and_resampled(similarity, pairs.relevant, n_resamples, seed)
    bounds = interval_of_choice(resampled, best, level, len(similarity))
    return Calibration(matcher.signature, *pairs[:3], similarity, best, bounds, level)


def _checked(
    matcher: str | Matcher, level: float, n_resamples: int, *, by_threshold: bool
) -> Matcher:
    """Return a matcher that decides about pairs, and by a threshold if it must."""
    matcher = resolve_matcher(matcher)
    if by_threshold and not matcher.takes_threshold:
        problem = f"{matcher.signature} decides without a threshold, so there is nothing to "
        fix = Advice("use a similarity matcher, such as {} or {}", matcher=("coverage", "rougeL"))
        raise InvalidInput("matcher", f"{problem}calibrate", fix)
    check_by_pairs(matcher, "matcher", "pairs are labelled one by one")
    if number("level", level, 0, 1) in (0, 1):
        raise must("level", "be between 0 and 1", level)
    whole("n_resamples", n_resamples, 1)
    return matcher


def _similarities(matcher: Matcher, pairs: _Labelled) -> FloatArray:
    """Return the similarity of each pair; shape (pairs,)."""
    # Each pair is a query of its own, so the matcher prepares each distinct text once.
    actual, predicted = [[one] for one in pairs.actual], [[one] for one in pairs.predicted]
    try:
        matches = matcher.match(QuerySet.from_lists(actual, predicted, pairs.questions))
    except InvalidInput as error:
        if error.argument != "queries":
            raise
        problem = f"has no question, and {matcher.signature} looks at it"
        fix = 'add it as the fourth element of each pair, or as a column "question"'
        raise InvalidInput("labelled_pairs", problem, fix, query=error.query) from error
    similarity = np.zeros(len(pairs.relevant))
    similarity[matches.item] = matches.similarity
    return similarity


class AgreementCounts(NamedTuple):
    """How often a decision and a label go together.

    Attributes:
        found: Matches that the label calls relevant.
        false_alarms: Matches that it does not.
        missed: No matches, and the label calls them relevant.
        rejected: No matches, and rightly so.
    """

    found: int
    false_alarms: int
    missed: int
    rejected: int


@dataclass(frozen=True, eq=False, repr=False)
class _OfPairs(Shown):
    """What was found about labelled pairs."""

    matcher: str
    actual: Sequence[Item]
    predicted: Sequence[DocumentLike]
    relevant: BoolArray

    def _pairs(self, at: NDArray[np.int64], **columns: NDArray[Any]) -> pd.DataFrame:
        """Return a table of some pairs, each with its position."""
        import pandas as pd

        sides = {"actual": self.actual, "predicted": self.predicted}
        texts = {name: [" / ".join(map(text_of, single([side[i]]))) for i in at]
                 for name, side in sides.items()}  # fmt: skip
        columns = {"relevant": self.relevant, **columns}
        shown = {name: column[at] for name, column in columns.items()}
        return pd.DataFrame({**texts, **shown}, index=pd.Index(at, name="pair"))


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(_OfPairs):
    """How far a matcher decides as people do.

    Made by :func:`agreement`.

    Attributes:
        matcher: The matcher's signature.
        actual, predicted: The documents of each pair.
        relevant: The label of each pair; shape (pairs,).
        matched: The matcher's decision on each pair; shape (pairs,).
        threshold: The similarity from which a pair was a match.
        interval: Bootstrap percentile interval of κ.
        level: Confidence level of the interval.
    """

    matched: BoolArray
    threshold: float
    interval: tuple[float, float]
    level: float

    @cached_property
    def counts(self) -> AgreementCounts:
        """How often decision and label go together, in the order of :class:`AgreementCounts`."""
        cells = np.bincount(2 * ~self.matched + ~self.relevant, minlength=4)
        return AgreementCounts(*cells.tolist())

    @property
    def missed(self) -> int:
        """Pairs that people call relevant and the matcher does not."""
        return self.counts.missed

    @property
    def false_alarms(self) -> int:
        """Pairs that the matcher calls relevant and people do not."""
        return self.counts.false_alarms

    @property
    def share(self) -> float:
        """Share of the pairs on which both say the same, in [0, 1]."""
        return (self.counts.found + self.counts.rejected) / len(self.relevant)

    @property
    def kappa(self) -> float:
        """Cohen's κ, in [-1, 1]: the agreement beyond what chance would bring.

        1 if all decisions agree, 0 if as many do as would by chance, with as many matches and as
        many relevant pairs as there are. Both labels occur, so it is always defined.

        Source: Cohen, *A coefficient of agreement for nominal scales*, 1960.
        """
        return float(_kappas(np.array([self.counts]))[0])

    @property
    def confusion(self) -> pd.DataFrame:
        """Counts of pairs: a row for the label, a column for the decision; yes before no."""
        import pandas as pd

        found, false_alarms, missed, rejected = self.counts
        labels, decisions = (pd.Index([True, False], name=name) for name in ("relevant", "matched"))
        return pd.DataFrame([[found, missed], [false_alarms, rejected]], labels, decisions)

    @property
    def disagreements(self) -> pd.DataFrame:
        """The pairs on which they differ, worth a human look.

        Columns: ``actual``, ``predicted`` (texts), ``relevant``, ``matched``; the index is the
        pair's position.
        """
        wrong = np.flatnonzero(self.matched != self.relevant)
        return self._pairs(wrong, matched=self.matched)


def _kappas(counts: NDArray[Any]) -> FloatArray:
    """Return Cohen's κ of each table; NaN where one answer is all that either gave.

    Args:
        counts: Tables in the order of :class:`AgreementCounts`; shape (tables, 4).
    """
    found, false_alarms, missed, rejected = counts.T.astype(np.float64)
    # (p_o - p_e) / (1 - p_e), multiplied by the square of the number of pairs.
    above = 2 * (found * rejected - false_alarms * missed)
    span = (found + false_alarms) * (false_alarms + rejected)
    span = span + (found + missed) * (missed + rejected)
    kappas = np.divide(above, span, out=np.full(len(counts), np.nan), where=span > 0)
    return np.asarray(kappas, np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(_OfPairs, Drawn):
    """How a matcher's decision agrees with labels, at every threshold.

    :meth:`plot` draws :func:`~krag_eval.plotting.calibration_curve`.

    Made by :func:`calibrate`.

    Attributes:
        matcher: The matcher's signature.
        actual, predicted: The documents of each pair.
        relevant: The label of each pair; shape (pairs,).
        similarity: The similarity of each pair; shape (pairs,).
        best_threshold: The threshold with the highest F1 of the decision, half-way between the
            similarities it separates; of equally good ones, the highest.
        interval: Bootstrap percentile interval of the best threshold. A wide one says that the
            labelled pairs do not settle the threshold: label more near it. Where a threshold
            separates all pairs, it says little, and :attr:`gap` is shown in its place.
        level: Confidence level of the interval.
    """

    _drawn_by = "calibration_curve"

    similarity: FloatArray
    best_threshold: float
    interval: tuple[float, float]
    level: float

    @cached_property
    def _steps(self) -> _Steps:
        return _Steps.of(self.similarity, self.relevant)

    @property
    def curve(self) -> pd.DataFrame:
        """The decision at every threshold that makes a difference, from high to low.

        Columns: ``threshold`` (a similarity that occurs), ``precision``, ``recall``, ``f1``,
        ``found`` (relevant pairs at or above it), ``false_alarms`` and ``missed``.
        """
        import pandas as pd

        steps = self._steps
        return pd.DataFrame(
            {
                "threshold": steps.threshold,
                "precision": steps.found / (steps.found + steps.false_alarms),
                "recall": steps.found / self.relevant.sum(),
                "f1": _f1(steps.found, steps.false_alarms, self.relevant.sum()),
                "found": steps.found.astype(np.int64),
                "false_alarms": steps.false_alarms.astype(np.int64),
                "missed": (self.relevant.sum() - steps.found).astype(np.int64),
            }
        )

    @property
    def table(self) -> pd.DataFrame:
        """The decision at every threshold, as :attr:`curve`."""
        return self.curve

    def decision(self, threshold: float) -> dict[str, float]:
        """Return precision, recall and F1 of the decision at one threshold; 0 if undefined."""
        matched = (self.similarity >= threshold) & (self.similarity > 0)
        found, n_matched = int((matched & self.relevant).sum()), int(matched.sum())
        n_relevant = int(self.relevant.sum())
        return {
            "precision": found / n_matched if n_matched else 0.0,
            "recall": found / n_relevant,
            "f1": 2 * found / (n_matched + n_relevant),
        }

    @property
    def gap(self) -> tuple[float, float] | None:
        """The highest similarity of an irrelevant pair, and the lowest of a relevant one above it.

        Every threshold above the first and up to the second decides all pairs as they are labelled:
        the pairs do not tell one from another, so label some in between. ``None`` if no threshold
        separates them.

        >>> pairs = [("a b c d", "a b c x", True), ("a b c d", "a x y z", False)]
        >>> calibrate("rouge1", pairs).gap
        (0.25, 0.75)
        """
        below, above = self.similarity[~self.relevant].max(), self.similarity[self.relevant].min()
        return (float(below), float(above)) if below < above else None

    @property
    def best_f1(self) -> float:
        """F1 of the decision at the best threshold."""
        return self.decision(self.best_threshold)["f1"]

    def borderline(self, n: int = 10) -> pd.DataFrame:
        """Return the ``n`` pairs nearest to the best threshold, worth a human look.

        Columns: ``actual``, ``predicted`` (texts), ``relevant``, ``similarity``, ``wrong`` (the
        decision contradicts the label); the index is the pair's position.
        """
        nearest = np.argsort(np.abs(self.similarity - self.best_threshold), kind="stable")[:n]
        wrong = (self.similarity >= self.best_threshold) != self.relevant
        return self._pairs(nearest, similarity=self.similarity, wrong=wrong)


class _Steps(NamedTuple):
    """The decision at each similarity that occurs above 0, from high to low."""

    threshold: FloatArray
    found: FloatArray
    false_alarms: FloatArray
    order: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, similarity: FloatArray, relevant: BoolArray) -> _Steps:
        order = np.argsort(-similarity, kind="stable")
        order = order[similarity[order] > 0]
        ranked = similarity[order]
        # A threshold takes all pairs of one similarity or none.
        last = np.flatnonzero(np.diff(ranked, append=-1.0))
        found = np.cumsum(relevant[order])[last].astype(np.float64)
        return cls(ranked[last], found, last + 1 - found, order, last)


def _best_and_resampled(
    similarity: FloatArray, relevant: BoolArray, n_resamples: int, seed: int
) -> tuple[float, FloatArray]:
    """Return the best threshold, and that of each resample of the pairs."""
    order = np.lexsort([relevant, similarity])  # no draw depends on the order of the pairs
    similarity, relevant = similarity[order], relevant[order]
    steps = _Steps.of(similarity, relevant)
    if not len(steps.threshold):
        problem = ": every similarity is 0, so no threshold can tell the pairs apart"
        raise InvalidInput("labelled_pairs", problem, "choose another matcher")
    n_pairs = len(similarity)
    best = _best_thresholds(steps, relevant, np.ones((1, n_pairs), np.int64))
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // n_pairs)
    # A generator, so that one block of weights is in memory at a time.
    drawn = (
        generator.multinomial(
            n_pairs, np.full(n_pairs, 1 / n_pairs), size=min(block, n_resamples - start)
        )
        for start in range(0, n_resamples, block)
    )
    resampled = [_best_thresholds(steps, relevant, weights) for weights in drawn]
    return float(best[0]), np.concatenate(resampled)


def _best_thresholds(steps: _Steps, relevant: BoolArray, weights: NDArray[np.int64]) -> FloatArray:
    """Return the best threshold of each resample: the highest with the highest F1.

    Args:
        steps: The decision at each similarity.
        relevant: The labels; shape (pairs,).
        weights: How often each pair was drawn; shape (resamples, pairs).
    """
    ranked = weights[:, steps.order]
    matched = np.cumsum(ranked, axis=1)[:, steps.last]
    found = np.cumsum(ranked * relevant[steps.order], axis=1)[:, steps.last]
    n_relevant = weights @ relevant.astype(np.int64)
    top = np.argmax(_f1(found, matched - found, n_relevant[:, None]), axis=1)
    rows = np.arange(len(weights))
    # Down to the next pair that was drawn, any threshold decides alike; half-way is the safest.
    after = (matched <= matched[rows, top][:, None]).sum(axis=1)
    lowest = steps.threshold[-1] if len(steps.order) == len(relevant) else 0.0
    below = np.append(steps.threshold, lowest)[after]
    return np.asarray((steps.threshold[top] + below) / 2, np.float64)


def _f1(found: NDArray[Any], false_alarms: NDArray[Any], n_relevant: Any) -> FloatArray:
    # 2PR / (P + R) in counts; defined even where precision is not.
    total = found + false_alarms + n_relevant
    shares = np.divide(2 * found, total, out=np.zeros(np.shape(total)), where=total > 0)
    return np.asarray(shares, np.float64)


class _Labelled(NamedTuple):
    """Labelled pairs, column by column; ``questions`` is ``None`` if none has one."""

    actual: list[Item]
    predicted: list[DocumentLike]
    relevant: BoolArray
    questions: list[str | int] | None


def _unzipped(labelled_pairs: Iterable[Any]) -> _Labelled:
    if hasattr(labelled_pairs, "__arrow_c_stream__") and not hasattr(labelled_pairs, "iterrows"):
        labelled_pairs = arrow_table(labelled_pairs, "labelled_pairs").to_pylist()
    elif hasattr(labelled_pairs, "to_dict"):
        labelled_pairs = labelled_pairs.to_dict("records")
    rows = [_checked_pair(pair, position) for position, pair in enumerate(labelled_pairs)]
    relevant = np.array([bool(row[2]) for row in rows], np.bool_)
    if relevant.all() or not relevant.any():
        got = f"got {int(relevant.sum())} relevant of {len(relevant)}"
        problem = f"must have pairs that are relevant and pairs that are not, {got}"
        raise InvalidInput("labelled_pairs", problem)
    # Where a pair has none, its number stands for it: a matcher that needs it says so.
    questions = [row[3] if len(row) > 3 else position for position, row in enumerate(rows)]
    asked = questions if any(len(row) > 3 for row in rows) else None
    return _Labelled([row[0] for row in rows], [row[1] for row in rows], relevant, asked)


def _checked_pair(pair: Any, position: int) -> Sequence[Any]:
    if isinstance(pair, Mapping):
        pair = [pair[name] for name in (*_COLUMNS, "question") if name in pair]
    if not isinstance(pair, (tuple, list)) or len(pair) not in (3, 4):
        problem = f"must be (actual, predicted, is_relevant), got {clipped(pair)}"
    elif not isinstance(pair[2], bool | np.bool_ | int) or pair[2] not in (0, 1):
        problem = f": is_relevant must be True or False, got {clipped(pair[2])}"
    elif len(pair) == 4 and not isinstance(pair[3], str):
        problem = f": the question must be text, got {clipped(pair[3])}"
    else:
        return pair
    raise InvalidInput("labelled_pairs", problem, query=position)
