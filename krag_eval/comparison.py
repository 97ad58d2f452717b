"""Comparison: whether one retriever is better than another on the same queries, and how surely.

This room knows what may be compared and how to ask for it. It must not know how the results were
made, or drawing; the statistics are in ``pairing``, the words in ``comparison_texts``. pandas loads
when it is needed.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from krag_eval._errors import unknown_name
from krag_eval.comparability import check_comparable
from krag_eval.comparison_texts import as_html, as_latex, as_markdown, as_text, cells, sentence
from krag_eval.pairing import Difference, PerQuery, changes_of, paired_differences
from krag_eval.results.result import EvaluationResult
from krag_eval.scoring.averages import resolved_average
from krag_eval.scoring.cutoffs import spelled, unspelled
from krag_eval.uncertainty import check_counted, check_sampling, warn_of_few_queries

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Comparison", "Difference", "compare"]


def compare(
    results: Mapping[str, EvaluationResult],
    metric: str | Sequence[str] = "ndcg@10",
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare results over the same queries: every pair, in the order given, on every metric.

    For a pair (a, b) the difference is the value of b minus the value of a: what changes when b
    takes the place of a. Per pair and metric there are:

    - **An interval** of the difference: percentiles of the paired bootstrap over queries, the same
      as ``scipy.stats.bootstrap(…, paired=True, method="percentile")``. Differences have heavy
      tails but little skew; there percentiles keep their level better than BCa, which is for single
      averages. It is not widened for the number of comparisons.
    - **A permutation test**, two-sided. Were the two systems alike, the outcomes of any query could
      as well be swapped (Fisher's randomization test, which Smucker, Allan and Carterette 2007
      recommend for retrieval). With up to 14 differing queries all swaps are enumerated; beyond,
      ``n_resamples`` random ones give p = (b + 1) / (n_resamples + 1), never 0 (Phipson and Smyth
      2010). For averages that are not means over queries, such as the micro averages, the counts
      behind them are swapped and the average formed anew.
    - **A t-test**, paired and two-sided, where the average is a mean over queries.
    - **Holm's correction** (1979) of the permutation p, over all pairs and metrics asked for.
    - **An effect size**, Cohen's d_z: the mean difference per query over its standard deviation,
      where the average is a mean over queries.

    All pairs and metrics share the same resamples and the same random swaps.

    Args:
        results: Name -> result, two or more. They must be over the same queries, with the same
            ground truth, matcher, threshold, cutoffs, criteria and conventions.
        metric: An average at a cutoff, or several: ``"ndcg@10"``, ``"micro_recall@5"``,
            ``"mrr@all"``; ``"recall@5"`` is the macro average.
        level: How often an interval should cover the true difference, between 0 and 1.
        n_resamples: Number of resamples of the bootstrap, and of random swaps.
        seed: The same seed gives the same digits.

    Raises:
        TypeError: If ``results`` is not a mapping of names to results, or ``metric`` neither a
            string nor several.
        ValueError: If the results are not comparable (saying what differs), are fewer than two,
            or lack the metric or its cutoff, or an argument is out of range.

    Warns:
        KragEvalWarning: If there are fewer than 30 queries, the results were made by different
            versions of krag_eval, or it cannot be told whether they have the same ground truth
            (saved by krag_eval 0.1) or the same settings of a matcher of your own.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> actual = [[f"passage {i}"] for i in range(40)]
    >>> def finds(first_n):
    ...     predicted = [truth if i < first_n else ["?"] for i, truth in enumerate(actual)]
    ...     return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=10)
    >>> print(compare({"bm25": finds(20), "dense": finds(30)}).summary())
    dense is better than bm25 on ndcg@10 by 0.250 (0.750 against 0.500; 95 % interval 0.125 to
    0.400; p = 0.002 after Holm).
    """
    check_sampling(level, n_resamples, seed)
    first = check_comparable(results)
    check_counted(first)
    metrics = _checked_metrics(results, metric)
    warn_of_few_queries(int(np.count_nonzero(first.counted)))
    differences, values = paired_differences(
        results, metrics, level=level, n_resamples=n_resamples, seed=seed
    )
    return Comparison(
        differences=differences,
        level=float(level),
        n_resamples=int(n_resamples),
        seed=int(seed),
        signature=first.signature,
        queries=[q for q, counted in zip(first.labels, first.counted, strict=True) if counted],
        per_query=values,
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """The differences between results on the same queries; made by :func:`compare`.

    Attributes:
        differences: One per pair and metric, pairs in the order the results were given.
        level: The level of the intervals.
        n_resamples: Number of resamples and of random swaps.
        seed: Seed of both.
        signature: What the results have in common, as the first one prints it.
        queries: Labels of the queries that count.
        per_query: Metric -> system -> value per query that counts; an infinite rank is a query
            for which nothing was found.
        results: System -> its result, if the systems were asked by ``evaluate_retrievers``.
    """

    differences: tuple[Difference, ...]
    level: float
    n_resamples: int
    seed: int
    signature: str
    queries: list[str | int]
    per_query: PerQuery
    results: Mapping[str, EvaluationResult] = field(default_factory=dict, repr=False)

    @property
    def metrics(self) -> list[str]:
        """The metrics compared."""
        return list(self.per_query)

    @property
    def names(self) -> list[str]:
        """The systems compared."""
        return list(self.per_query[self.metrics[0]])

    @property
    def table(self) -> pd.DataFrame:
        """One row per pair and metric; the columns are the attributes of :class:`Difference`."""
        import pandas as pd

        return pd.DataFrame([asdict(difference) for difference in self.differences])

    @property
    def latency(self) -> pd.DataFrame:
        """How fast each system answered: seconds, and how many queries failed.

        One row per system, columns ``mean``, ``p50``, ``p95`` and ``failed``; no row for a system
        that krag_eval did not ask.
        """
        import pandas as pd

        asked = {name: result.retrieval for name, result in self.results.items()}
        rows = {
            name: (*run.latency, len(run.failures))
            for name, run in asked.items()
            if run is not None
        }
        columns = ["mean", "p50", "p95", "failed"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def changed(
        self,
        metric: str | None = None,
        a: str | None = None,
        b: str | None = None,
        n: int | None = 10,
    ) -> pd.DataFrame:
        """Return the queries that changed most from a to b, those that did not change left out.

        Args:
            metric: One of the metrics compared; may be left out if there is only one.
            a: One system; may be left out, together with b, if there are only two.
            b: The other system.
            n: At most so many; ``None`` for all that changed.

        Returns:
            Indexed by the queries' labels, with columns ``value_a``, ``value_b`` and
            ``difference``, the largest change of either sign first. A rank of NaN is a query for
            which nothing was found, and its change is infinite.

        Raises:
            ValueError: If the metric or a system was not compared, or ``n`` is not a whole number
                of at least 1.
        """
        import pandas as pd

        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise ValueError(f"n must be a whole number of at least 1, or None for all, got {n!r}.")
        if metric is not None:
            metric = resolved_average("metric", metric, self.metrics)
        values = self.per_query[_one_of("metric", metric, self.metrics)]
        a, b = self._checked_pair(a, b)
        change = changes_of(values[a], values[b])
        order = np.argsort(-np.abs(change), kind="stable")[: np.count_nonzero(change)][:n]
        columns = {"value_a": values[a], "value_b": values[b], "difference": change}
        table = pd.DataFrame({name: column[order] for name, column in columns.items()})
        table[["value_a", "value_b"]] = table[["value_a", "value_b"]].replace(np.inf, np.nan)
        table.index = pd.Index([self.queries[i] for i in order.tolist()], name="query")
        return table

    def _checked_pair(self, a: str | None, b: str | None) -> tuple[str, str]:
        names = self.names
        if a is None and b is None and len(names) == 2:
            return names[0], names[1]
        first, second = _one_of("a", a, names), _one_of("b", b, names)
        if first == second:
            raise ValueError(f"a and b must be two different systems, got {first!r} twice.")
        return first, second

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the differences with their intervals, one row per pair and metric.

        Args:
            ax: Where to draw; a new figure if not given.

        Returns:
            The matplotlib Axes; nothing is shown or saved.
        """
        from krag_eval.plotting import comparison_forest

        return comparison_forest(self, ax=ax)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        language: Literal["en", "ko"] = "en",
        **page: Any,
    ) -> None:
        """Write this comparison as a page: what is shown, how surely, what changed most.

        One HTML file without network or script; it appears complete or not at all.

        Args:
            path: The file; one of that name is replaced.
            language: ``"en"`` or ``"ko"``.
            **page: What else ``krag_eval.report.write_comparison_report`` takes: ``n_queries``,
                ``title``, ``date``.

        Raises:
            ValueError: If an argument is not possible; the message says what is.
            OSError: If the file cannot be written.
        """
        from krag_eval.report import write_comparison_report

        write_comparison_report(self, path, language=language, **page)

    def summary(self) -> str:
        """Return one plain sentence per pair and metric, each on its own line."""
        return "\n".join(sentence(difference, self.level) for difference in self.differences)

    def to_markdown(self) -> str:
        """Return the table in GitHub's Markdown, rounded for reading."""
        return as_markdown(self._cells())

    def to_latex(self) -> str:
        r"""Return the table as a LaTeX ``tabular``, rounded for reading.

        It needs ``\usepackage{booktabs}``.
        """
        return as_latex(self._cells())

    def __repr__(self) -> str:
        head = f"Comparison over {len(self.queries)} queries"
        lines = (head, *as_text(self._cells()), self.summary(), *self._notes())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        sentences = "<br>".join(html.escape(line) for line in self.summary().split("\n"))
        notes = [f"<p><small>{html.escape(line)}</small></p>" for line in self._notes()]
        return f"{as_html(self._cells())}<p>{sentences}</p>{''.join(notes)}"

    def _notes(self) -> list[str]:
        """Say how fast each system was, and what all have in common."""
        speeds = [
            f"{name}: {result.retrieval.summary()}"
            for name, result in self.results.items()
            if result.retrieval is not None
        ]
        return [*speeds, self._foot()]

    def _foot(self) -> str:
        return f"{self.signature} | n_resamples={self.n_resamples} | seed={self.seed}"

    def _cells(self) -> list[list[str]]:
        return cells(self.differences, self.level)


def _checked_metrics(
    results: Mapping[str, EvaluationResult], metric: object
) -> dict[str, tuple[str, int | None]]:
    """Return the metrics asked for: spelling -> (key, cutoff)."""
    if not isinstance(metric, Iterable):
        raise TypeError(f"metric must be a string such as 'ndcg@10', or several, got {metric!r}.")
    metrics: dict[str, tuple[str, int | None]] = {}
    for one in [metric] if isinstance(metric, str) else metric:
        key, k = _checked_metric(results, one)
        name = f"{key}@{spelled(k)}"
        if name in metrics:
            raise ValueError(f"metric must not name a metric twice, got {name!r} twice.")
        metrics[name] = key, k
    if not metrics:
        raise ValueError("metric must name at least one metric, got none.")
    return metrics


def _checked_metric(
    results: Mapping[str, EvaluationResult], metric: object
) -> tuple[str, int | None]:
    key, at, cutoff = metric.rpartition("@") if isinstance(metric, str) else ("", "", "")
    if not at:
        raise ValueError(
            "metric must be spelled with its cutoff, such as 'ndcg@10' or 'mrr@all', "
            f"got {metric!r}."
        )
    k = unspelled(cutoff)
    for name, result in results.items():
        if k not in result.k:
            raise ValueError(
                f"metric: {metric!r} needs the cutoff {cutoff}, and {name!r} was evaluated at "
                f"{', '.join(map(spelled, result.k))}; name it in evaluate(k=[…])."
            )
        asked = f"metric: an average of {name!r}"
        key = resolved_average(asked, key, result.averages(k), result.keys)
    return key, k


def _one_of(argument: str, value: str | None, allowed: Sequence[str]) -> str:
    if value is None and len(allowed) == 1:
        return allowed[0]
    if value is None or value not in allowed:
        raise ValueError(unknown_name(argument, value, allowed))
    return value
