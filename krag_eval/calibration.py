"""Choosing a threshold: how well a matcher's decision agrees with labelled pairs.

No retrieval metric comes in here: a threshold chosen for a high retrieval score measures itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._errors import Advice, InvalidInput, Language, clipped, language_of, number, whole
from krag_eval.documents import DocumentLike, QuerySet, text_of
from krag_eval.matching.base import Matcher, resolve_matcher

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Calibration", "calibrate"]

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

# Of a table of labelled pairs.
_COLUMNS = ("actual", "predicted", "relevant")
# Resamples are drawn in blocks of about this many weights, so that memory stays bounded.
_BLOCK = 4_000_000

# What a calibration comes to, in both languages.
_SUMMARY: Mapping[Language, str] = {
    "en": "Calibration of {matcher} on {pairs} pairs ({relevant} relevant)\n"
    "best threshold {best:.4f} ({level:.0f}% interval {low:.4f} to {high:.4f}): "
    "precision {precision:.4f}, recall {recall:.4f}, F1 {f1:.4f}",
    "ko": "{matcher} 임계값 조정: {pairs}쌍(관련 있음 {relevant}쌍)\n"
    "최적 임계값 {best:.4f}({level:.0f}% 신뢰구간 {low:.4f}~{high:.4f}): "
    "정밀도 {precision:.4f}, 재현율 {recall:.4f}, F1 {f1:.4f}",
}


def calibrate(
    matcher: str | Matcher,
    labelled_pairs: Iterable[tuple[DocumentLike, DocumentLike, bool] | Mapping[str, Any]]
    | pd.DataFrame,
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
            :meth:`Calibration.borderline` has them.
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
    matcher = resolve_matcher(matcher)
    _check_matcher(matcher)
    if not 0.0 < number("level", level, 0, 1) < 1.0:
        raise InvalidInput("level", f"must be between 0 and 1, got {level}")
    whole("n_resamples", n_resamples, 1)
    actual, predicted, labels = _unzipped(labelled_pairs)
    # Each pair is a query of its own, so the matcher prepares each distinct text once.
    queries = QuerySet.from_lists([[one] for one in actual], [[one] for one in predicted])
    matches = matcher.match(queries)
    similarity = np.zeros(len(labels))
    similarity[matches.item] = matches.similarity
    best, low, high = _bootstrapped(similarity, labels, level, n_resamples, seed)
    return Calibration(
        matcher=matcher.signature,
        actual=actual,
        predicted=predicted,
        relevant=labels,
        similarity=similarity,
        best_threshold=best,
        interval=(low, high),
        level=level,
    )


def _check_matcher(matcher: Matcher) -> None:
    """Refuse a matcher that does not decide about pairs by a threshold."""
    if not matcher.takes_threshold:
        raise InvalidInput(
            "matcher",
            f"{matcher.signature} decides without a threshold, so there is nothing to calibrate",
            Advice("use a similarity matcher, such as {} or {}", matcher=("coverage", "rougeL")),
        )
    if matcher.union:
        raise InvalidInput(
            "matcher",
            f": pairs are labelled one by one, and for {matcher.signature} documents count "
            "together",
            "leave out union=True",
        )


@dataclass(frozen=True, eq=False)
class Calibration:
    """How a matcher's decision agrees with labels, at every threshold.

    Made by :func:`calibrate`.

    Attributes:
        matcher: The matcher's signature.
        actual, predicted: The documents of each pair.
        relevant: The label of each pair; shape (pairs,).
        similarity: The similarity of each pair; shape (pairs,).
        best_threshold: The threshold with the highest F1 of the decision, half-way between the
            similarities it separates; of equally good ones, the highest.
        interval: Bootstrap percentile interval of the best threshold. A wide one says that the
            labelled pairs do not settle the threshold: label more near it.
        level: Confidence level of the interval.
    """

    matcher: str
    actual: list[DocumentLike]
    predicted: list[DocumentLike]
    relevant: BoolArray
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
    def best_f1(self) -> float:
        """F1 of the decision at the best threshold."""
        return self.decision(self.best_threshold)["f1"]

    def borderline(self, n: int = 10) -> pd.DataFrame:
        """Return the ``n`` pairs nearest to the best threshold, worth a human look.

        Columns: ``actual``, ``predicted`` (texts), ``relevant``, ``similarity``, ``wrong`` (the
        decision contradicts the label); the index is the pair's position.
        """
        import pandas as pd

        nearest = np.argsort(np.abs(self.similarity - self.best_threshold), kind="stable")[:n]
        matched = (self.similarity >= self.best_threshold)[nearest]
        return pd.DataFrame(
            {
                "actual": [text_of(self.actual[i]) for i in nearest],
                "predicted": [text_of(self.predicted[i]) for i in nearest],
                "relevant": self.relevant[nearest],
                "similarity": self.similarity[nearest],
                "wrong": matched != self.relevant[nearest],
            },
            index=pd.Index(nearest, name="pair"),
        )

    def plot(self, ax: Axes | None = None, *, language: Language | None = None) -> Axes:
        """Draw precision, recall and F1 of the decision against the threshold.

        Args:
            ax: Where to draw; a new figure if not given.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        """
        from krag_eval.plotting import calibration_curve

        return calibration_curve(self, ax=ax, language=language)

    def summary(self, language: Language | None = None) -> str:
        """Return the best threshold, its interval and how well it decides, in two lines.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        """
        low, high = self.interval
        return _SUMMARY[language_of(language)].format(
            matcher=self.matcher,
            pairs=len(self.relevant),
            relevant=int(self.relevant.sum()),
            best=self.best_threshold,
            level=100 * self.level,
            low=low,
            high=high,
            **self.decision(self.best_threshold),
        )

    def __repr__(self) -> str:
        return self.summary()


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


def _bootstrapped(
    similarity: FloatArray, relevant: BoolArray, level: float, n_resamples: int, seed: int
) -> tuple[float, float, float]:
    """Return the best threshold and its percentile interval over resamples of the pairs."""
    steps = _Steps.of(similarity, relevant)
    if not len(steps.threshold):
        raise InvalidInput(
            "labelled_pairs",
            ": every similarity is 0, so no threshold can tell the pairs apart",
            "choose another matcher",
        )
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
    resampled = np.concatenate([_best_thresholds(steps, relevant, weights) for weights in drawn])
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(best[0]), float(low), float(high)


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


def _unzipped(
    labelled_pairs: Iterable[Any],
) -> tuple[list[DocumentLike], list[DocumentLike], BoolArray]:
    actual, predicted, labels = [], [], []
    if hasattr(labelled_pairs, "to_dict"):
        labelled_pairs = labelled_pairs.to_dict("records")
    for position, pair in enumerate(labelled_pairs):
        if isinstance(pair, Mapping):
            pair = _triple(pair, position)
        if not isinstance(pair, (tuple, list)) or len(pair) != 3:
            raise InvalidInput(
                "labelled_pairs",
                f"must be (actual, predicted, is_relevant), got {clipped(pair)}",
                query=position,
            )
        if not isinstance(pair[2], bool | np.bool_ | int) or pair[2] not in (0, 1):
            raise InvalidInput(
                "labelled_pairs",
                f": is_relevant must be True or False, got {clipped(pair[2])}",
                query=position,
            )
        actual.append(pair[0])
        predicted.append(pair[1])
        labels.append(bool(pair[2]))
    relevant = np.array(labels, np.bool_)
    if relevant.all() or not relevant.any():
        raise InvalidInput(
            "labelled_pairs",
            "must have pairs that are relevant and pairs that are not, got "
            f"{int(relevant.sum())} relevant of {len(relevant)}",
        )
    return actual, predicted, relevant


def _triple(row: Mapping[str, Any], position: int) -> tuple[Any, ...]:
    missing = [name for name in _COLUMNS if name not in row]
    if missing:
        raise InvalidInput(
            "labelled_pairs",
            f"must have the columns {', '.join(_COLUMNS)}, got {clipped(list(row))}",
            query=position,
        )
    return tuple(row[name] for name in _COLUMNS)
