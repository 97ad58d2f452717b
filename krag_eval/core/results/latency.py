"""Retrieval runs: how long a retriever took for each query, and which queries failed.

pandas is loaded only for a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.errors import InvalidInput
from krag_eval.core.language import Language, _, spoken

if TYPE_CHECKING:
    import pandas as pd


class Latency(NamedTuple):
    """How long answers took, in seconds, over the queries that were answered; NaN if none was.

    Attributes:
        mean: Their mean.
        p50: Their median.
        p95: What 95 % of them stay within.

    >>> Latency(mean=0.25, p50=0.2, p95=0.5)
    Latency(mean=0.25, p50=0.2, p95=0.5)
    """

    mean: float
    p50: float
    p95: float

    def __str__(self) -> str:
        mean, p50, p95 = map(_spoken, self)
        return _("mean {mean}, p50 {p50}, p95 {p95}").format(mean=mean, p50=p50, p95=p95)


class Failure(NamedTuple):
    """A query whose retriever raised, or returned what is no list of documents.

    Attributes:
        position: The query's position, from 0.
        type: Name of the exception's class.
        message: What it said.
        seconds: How long it took to fail.
    """

    position: int
    type: str
    message: str
    seconds: float

    @classmethod
    def of(cls, position: int, error: BaseException, seconds: float) -> Failure:
        """Describe an exception."""
        return cls(position, type(error).__name__, str(error), seconds)


class Retry(Protocol):
    """Asks the failed queries again; made by what asked the first time."""

    def now(self, **changes: Any) -> Any:
        """Return a new whole result."""

    async def soon(self, **changes: Any) -> Any:
        """Return a new whole result, asking asynchronously."""


@dataclass(frozen=True, eq=False)
class RetrievalRun:
    """How a retriever answered the queries of a result.

    Attributes:
        seconds: Per query, how long its answer took; NaN where it failed or was not measured.
        failures: The queries that failed, in the order of the queries. They count as nothing
            retrieved.
        again: What asks them again; ``None`` if none failed, and for a result that was read from a
            file or pickled.

    >>> RetrievalRun(np.array([0.5, 1.5, math.nan])).latency.mean
    1.0
    """

    seconds: NDArray[np.float64]
    failures: Sequence[Failure] = ()
    again: Retry | None = field(default=None, repr=False)

    @property
    def latency(self) -> Latency:
        """Mean, median and 95th percentile of the seconds, linear between neighbours."""
        measured = self.seconds[~np.isnan(self.seconds)]
        if not len(measured):
            return Latency(math.nan, math.nan, math.nan)
        p50, p95 = np.percentile(measured, [50, 95]).tolist()
        return Latency(float(measured.mean()), p50, p95)

    def at(self, positions: Sequence[int]) -> RetrievalRun:
        """Return how some of the queries were answered, in the order of their positions."""
        found = {failure.position: failure for failure in self.failures}
        failures = [
            found[position]._replace(position=i)
            for i, position in enumerate(positions)
            if position in found
        ]
        return RetrievalRun(self.seconds[np.asarray(positions, np.int64)], tuple(failures))

    def failure_at(self, position: int) -> str | None:
        """Say how a query failed, its exception's class and message; ``None`` if it did not.

        >>> RetrievalRun(np.array([math.nan]), [Failure(0, "OSError", "gone", 0.1)]).failure_at(0)
        'OSError: gone'
        """
        found = (one for one in self.failures if one.position == position)
        return next((f"{one.type}: {one.message}".rstrip(": ") for one in found), None)

    def failure_table(self, labels: Sequence[str | int]) -> pd.DataFrame:
        """Return the failures, one row each, indexed by the queries' labels."""
        import pandas as pd

        index = pd.Index(
            [labels[failure.position] for failure in self.failures], name="query", dtype=object
        )
        return pd.DataFrame(self.failures, index=index, columns=list(Failure._fields))

    @spoken
    def summary(self, language: Language | None = None) -> str:
        """Say in one line how fast the answers came, and how many failed.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        >>> RetrievalRun(np.array([0.5, 1.5])).summary()
        'latency: mean 1.00 s, p50 1.00 s, p95 1.45 s'
        """
        told = [_("latency: {}").format(self.latency)]
        if self.failures:
            if np.isnan(self.seconds).all():  # nothing was measured
                told.clear()
            failed = _("{n} of {queries} queries failed")
            told.append(failed.format(n=len(self.failures), queries=len(self.seconds)))
        return _("; ").join(told)

    def content(self) -> dict[str, Any]:
        """Return the run as JSON can hold it."""
        return {
            "seconds": [None if math.isnan(one) else one for one in self.seconds.tolist()],
            "failures": [failure._asdict() for failure in self.failures],
        }

    @classmethod
    def of_content(cls, content: Mapping[str, Any] | None, n_queries: int) -> RetrievalRun | None:
        """Make a run from what :meth:`content` returned.

        Raises:
            ValueError: If it does not fit so many queries, or holds something else.
        """
        if content is None:
            return None
        failures = [Failure(**one) for one in content["failures"]]
        seconds = content["seconds"]
        if len(seconds) != n_queries or not all(one is None or _is_time(one) for one in seconds):
            raise ValueError("its seconds are not one length of time per query")
        if not all(_is_sound(failure, n_queries) for failure in failures):
            raise ValueError("its failures do not fit its queries")
        times = [math.nan if one is None else one for one in seconds]
        return cls(np.array(times, np.float64), tuple(failures))

    def __getstate__(self) -> dict[str, Any]:
        # A retriever holds connections and locks; what was measured travels without it.
        return {**vars(self), "again": None}

    def retry(self) -> Retry:
        """Return what asks the failed queries again.

        Raises:
            ValueError: If there is nothing to ask.
        """
        if self.again is None:
            raise InvalidInput(
                "",
                "there is no retriever to ask again: the result was read from a file, pickled, or "
                "recorded",
                "evaluate_retriever(…, checkpoint=…) asks only what its file lacks",
            )
        return self.again


def told_failed(failed: Mapping[str, int]) -> list[str]:
    """Say in a sentence how many queries failed, by the name of a result; none where none did.

    >>> told_failed({"monday": 20, "tuesday": 0}), told_failed({"tuesday": 0})
    (['Queries that failed, and count as nothing retrieved: 20 of monday.'], [])
    """
    told = ", ".join(_("{n} of {name}").format(name=name, n=n) for name, n in failed.items() if n)
    if not told:
        return []
    return [_("Queries that failed, and count as nothing retrieved: {told}.").format(told=told)]


def _is_sound(failure: Failure, n_queries: int) -> bool:
    return (
        type(failure.position) is int
        and 0 <= failure.position < n_queries
        and isinstance(failure.type, str)
        and isinstance(failure.message, str)
        and _is_time(failure.seconds)
    )


def _is_time(seconds: object) -> bool:
    return type(seconds) in (int, float) and 0 <= seconds < math.inf  # type: ignore[operator]


def _spoken(seconds: float) -> str:
    """Say a length of time with three digits: '12.3 ms', '1.25 s'."""
    if math.isnan(seconds):
        return "-"
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds >= 10 else f"{seconds:.2f} s"
    return f"{seconds * 1000:.3g} ms"
