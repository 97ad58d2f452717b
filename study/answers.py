"""How often a decision is right, and how sure that is; section 5 of the protocol.

Everything is counted per document first, so that a resample of documents is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

N_RESAMPLES, SEED, LEVEL = 2_000, 0, 0.95
_FEWEST = 5  # documents, below which an interval says nothing


def counted(accepted: Bools, right: Bools) -> Floats:
    """Return per pair whether it is a true positive, a false one, a missed one or a true negative.

    >>> counted(np.array([True, True, False]), np.array([True, False, True])).sum(axis=0)
    array([1., 1., 1., 0.])
    """
    parts = [accepted & right, accepted & ~right, ~accepted & right, ~accepted & ~right]
    return np.stack(parts, axis=-1).astype(float)


def precision(counts: Floats) -> Floats:
    """Return tp / (tp + fp); NaN where nothing is accepted."""
    tp, fp, _, _ = np.moveaxis(counts, -1, 0)
    return _ratio(tp, tp + fp)


def recall(counts: Floats) -> Floats:
    """Return tp / (tp + fn)."""
    tp, _, fn, _ = np.moveaxis(counts, -1, 0)
    return _ratio(tp, tp + fn)


def false_alarms(counts: Floats) -> Floats:
    """Return fp / (fp + tn)."""
    _, fp, _, tn = np.moveaxis(counts, -1, 0)
    return _ratio(fp, fp + tn)


def f1(counts: Floats) -> Floats:
    """Return 2tp / (2tp + fp + fn)."""
    tp, fp, fn, _ = np.moveaxis(counts, -1, 0)
    return _ratio(2 * tp, 2 * tp + fp + fn)


def balanced_precision(counts: Floats) -> Floats:
    """Return what the precision were if one pair in two was right: TPR / (TPR + FPR).

    >>> round(float(balanced_precision(np.array([8.0, 4.0, 2.0, 36.0]))), 3)  # .8 / (.8 + .1)
    0.889
    """
    true = recall(counts)
    return _ratio(true, true + false_alarms(counts))


def kappa(counts: Floats) -> Floats:
    """Return Cohen's κ of two deciders.

    Cohen, *A coefficient of agreement for nominal scales*, 1960: 20 and 15 agreed on of 50, chance
    .5, so (.7 - .5) / .5.

    >>> round(float(kappa(np.array([20.0, 5.0, 10.0, 15.0]))), 3)
    0.4
    """
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)
    n = tp + fp + fn + tn
    observed = _ratio(tp + tn, n)
    chance = _ratio((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn), n * n)
    return _ratio(observed - chance, 1 - chance)


def _ratio(above: Floats, below: Floats) -> Floats:
    above, below = np.asarray(above, float), np.asarray(below, float)
    return np.divide(above, below, out=np.full(below.shape, np.nan), where=below != 0)


MEASURES: Mapping[str, Callable[[Floats], Floats]] = {
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "kappa": kappa,
    "balanced_precision": balanced_precision,
    "false_alarms": false_alarms,
}


def of_documents(documents: Sequence[str]) -> tuple[NDArray[np.intp], int]:
    """Return the number of each pair's document, and how many there are."""
    names, codes = np.unique(np.asarray(documents), return_inverse=True)
    return codes, len(names)


def resampled(n_documents: int) -> Floats:
    """Return how often each document is drawn in each resample."""
    generator = np.random.default_rng(SEED)
    return generator.multinomial(
        n_documents, np.full(n_documents, 1 / n_documents), size=N_RESAMPLES
    ).astype(float)


def decision(
    accepted: Bools, right: Bools, documents: NDArray[np.intp], weights: Floats
) -> dict[str, Any]:
    """Return counts and every measure as [value, low, high]; None where it is undefined.

    Args:
        accepted: Whether a rule accepts each pair.
        right: Whether it is right.
        documents: The number of each pair's document.
        weights: How often each document is drawn in each resample.
    """
    per_pair = counted(accepted, right)
    per_document = np.stack(
        [np.bincount(documents, one, weights.shape[1]) for one in per_pair.T], axis=-1
    )
    counts = per_document.sum(axis=0)
    drawn = weights @ per_document if weights.shape[1] >= _FEWEST else None
    found: dict[str, Any] = dict(zip(("tp", "fp", "fn", "tn"), map(int, counts), strict=True))
    for name, measure in MEASURES.items():
        value = float(measure(counts))
        bounds = [np.nan, np.nan] if drawn is None else _bounds(measure(drawn))
        found[name] = [known(number) for number in (value, *bounds)]
    return found


def _bounds(values: Floats) -> list[float]:
    defined = values[~np.isnan(values)]
    if not len(defined):
        return [np.nan, np.nan]
    tail = (1 - LEVEL) / 2
    return [float(one) for one in np.quantile(defined, [tail, 1 - tail])]


def known(number: float) -> float | None:
    """Return a number of six digits after the point; None for NaN."""
    return None if np.isnan(number) else round(float(number), 6)


def auc(similarity: Floats, right: Bools) -> float:
    """Return the chance that a right pair is more similar than a wrong one, ties counting half.

    >>> auc(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    0.875
    """
    n_right = int(right.sum())
    n_wrong = len(right) - n_right
    if not n_right or not n_wrong:
        return float("nan")
    above = rankdata(similarity)[right].sum() - n_right * (n_right + 1) / 2
    return float(above / (n_right * n_wrong))


def best_threshold(similarity: Floats, right: Bools) -> float:
    """Return the threshold with the highest F1; the highest such one, in the middle of its gap.

    Nothing is accepted at 0, so the lowest threshold is half of the lowest similarity above it.

    >>> best_threshold(np.array([0.9, 0.8, 0.4, 0.0]), np.array([True, True, False, True]))
    0.6
    """
    order = np.argsort(-similarity, kind="stable")
    values, tp = similarity[order], np.cumsum(right[order])
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True) & (values > 0))
    if not len(last):
        return 1.0
    scores = 2 * tp[last] / (last + 1 + right.sum())
    at = last[int(np.argmax(scores))]
    below = values[at + 1] if at + 1 < len(values) else 0.0
    return round(float((values[at] + below) / 2), 6)
