"""The facts of a result: the per-query table at every cutoff, its averages, how to save them.

pandas is loaded only for a table, and the code that explains or saves a result when it is first
used.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.core.errors import (
    Advice,
    Fix,
    InvalidInput,
    boolean,
    clipped,
    text,
    warn,
    whole,
)
from krag_eval.core.language import N_, Language, _, spoken
from krag_eval.core.results.rows import COUNT_COLUMNS, NoRows, Rows, TableOf
from krag_eval.core.results.verdicts import Outcome, Verdicts, merged, worst
from krag_eval.core.scoring import cutoffs
from krag_eval.core.scoring.averages import Average
from krag_eval.core.scoring.cutoffs import Cutoff, spelled
from krag_eval.core.scoring.metrics import (
    DEFAULT_METRICS,
    FOUND,
    LISTED,
    REJECTION_RATE,
    SUCCESS,
    Metric,
    averages_of,
    is_built_in,
    metrics_of,
    resolved_average,
)
from krag_eval.core.scoring.missing import MissingQuestions
from krag_eval.core.scoring.parts import Summary, settled_in
from krag_eval.core.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.core.documents import Tag
    from krag_eval.core.results.evidence import Evidence
    from krag_eval.core.results.explanation import Explanation
    from krag_eval.core.results.latency import Latency, RetrievalRun

#: What can have become of a query, best first.
STATUSES = (
    N_("perfect"),
    N_("partial"),
    N_("missed"),
    N_("nothing retrieved"),
    N_("no ground truth"),
)

# Needed for averages, but the per-query table shows them in another form.
_HIDDEN_COLUMNS = ("precision_base", "rank")
# https://reproducible-builds.org/specs/source-date-epoch/
_CLOCK = "SOURCE_DATE_EPOCH"
_ALL = slice(None)
# The last moment that a result was made at in this process.
_LAST_MADE = [0.0]


_TABLES = "per_query() is a DataFrame of the queries, metrics one of the averages"
_FOUND_RATE = DEFAULT_METRICS["rank"].defined_key
# What other libraries call what a result has -> how it is written here.
_CALLED_ELSEWHERE = {
    **dict.fromkeys(("to_df", "to_pandas", "to_dataframe", "df"), _TABLES),
    "to_csv": f"write per_query().to_csv(path); {_TABLES}",
    **dict.fromkeys(("scores", "mean", "aggregate"), "write averages()"),
}


def _now() -> datetime:
    """Return the moment that it is, or is to be taken for, in milliseconds, as it is saved.

    By the clock, every result of a process has a moment of its own.

    Raises:
        InvalidInput: If it is to be taken for what is none.
    """
    seconds: str | float | None = os.environ.get(_CLOCK)
    if not seconds:
        seconds = _LAST_MADE[0] = max(round(time(), 3), round(_LAST_MADE[0] + 0.001, 3))
    try:
        return datetime.fromtimestamp(round(float(seconds), 3), UTC)
    except (ValueError, OverflowError, OSError) as error:
        problem = f"must be seconds since 1970, got {clipped(seconds)}"
        raise InvalidInput(_CLOCK, problem, "leave it unset for the time it is") from error


@dataclass(frozen=True, eq=False, repr=False)
class ResultFacts(Shown):
    """What an evaluation came to: the values, what they rest on, and all that follows from them.

    What stands on other features (comparing, diagnosing, drawing) is in ``EvaluationResult``, which
    says what the attributes are.
    """

    settings: Mapping[str, str]
    rows: Rows
    keys: Mapping[str, str]
    averaging_method: AveragingMethod
    conventions: Conventions
    evidence: Evidence | None = None
    totals: Summary | None = None
    retrieval: RetrievalRun | None = None
    declared: Mapping[str, Metric] = field(default_factory=dict)
    made: datetime | None = field(default_factory=_now)
    gate: Outcome | None = None
    notes: Sequence[str] = field(default=(), compare=False)
    verdicts: Verdicts = field(default_factory=dict)

    @property
    def k(self) -> tuple[Cutoff, ...]:
        """The cutoffs, in the order they were asked for; ``None`` is all retrieved documents."""
        return self.rows.cutoffs

    @property
    def n_queries(self) -> int:
        """Number of queries, counted in the averages or not."""
        return self.rows.n_queries

    @property
    def n_counted(self) -> int:
        """Number of queries that count in the averages."""
        return self.summary.n_counted

    @property
    def n_failed(self) -> int:
        """Number of queries whose retriever failed, which count as nothing retrieved.

        0 where krag_eval did not ask a retriever, nor traces or rows tell; :attr:`failures` has
        each of them, but of a file that was evaluated in chunks.
        """
        if self.retrieval is not None:
            return len(self.retrieval.failures)
        return 0 if self.totals is None else self.totals.n_failed

    @property
    def missing(self) -> MissingQuestions | None:
        """The questions of the ground truth that the run lacks; ``None`` where it lacks none.

        ``.n`` of ``.questions`` are missing; ``.way`` is ``"skip"`` if they are left out, and
        ``"zero"`` if they count as nothing retrieved.
        """
        return MissingQuestions.of_settings(self.settings)

    @property
    def n_missing(self) -> int:
        """Number of questions of the ground truth that are left out, as the run lacks them."""
        return 0 if self.missing is None else self.missing.n_left_out

    @property
    def n_contradicted(self) -> int:
        """Number of pairs that would match if the document were the text of the passage.

        So many times a retrieved document, at any rank, holds enough of an item and has another
        number, a negation or other words in its place, so that its similarity is 0.
        :meth:`contradicted` lists them. Known of runs in parts, too; 0 where the matcher does not
        look: all but coverage, ``a & b`` and ``a | b`` among them, and coverage with
        ``guard="off"``.
        """
        return self.summary.n_contradicted

    @property
    def labels(self) -> list[str | int]:
        """One label per query."""
        return self.rows.labels

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a query counts in the averages; shape (queries,)."""
        return self.rows.counted

    @property
    def tags(self) -> Mapping[str, Sequence[Tag]]:
        """What the queries are tagged with: name -> one value per query, ``None`` for none."""
        return self.rows.tags

    @property
    def tables(self) -> Mapping[Cutoff, TableOf]:
        """Cutoff -> per-query columns, each of shape (queries,)."""
        return self.rows.tables

    @cached_property
    def summary(self) -> Summary:  # it can be called, too
        """The exact sums all averages follow from; those of parts add up to those of the whole."""
        if self.totals is not None:
            return replace(self.totals, n_failed=self.n_failed, missing=self.missing)
        sums = Summary.of(self.rows.tables, self.rows.counted, **settled_in(self))
        found = 0 if self.evidence is None else self.evidence.relevance.n_contradicted
        sums = replace(sums, n_failed=self.n_failed, missing=self.missing)
        return replace(sums, n_contradicted=found)

    @cached_property
    def definitions(self) -> dict[str, Average]:
        """How each average is made and read, by its key: its range, direction and labels.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(5)
        >>> result.definitions["mean_rank"].lower_is_better
        True
        """
        metrics = metrics_of(self.keys, self.declared, self.criteria).values()
        known = averages_of(metrics, self.conventions, self.averaging_method)
        return known | {REJECTION_RATE.key: REJECTION_RATE}

    @property
    def criteria(self) -> MatchingCriteria | None:
        """When a query is a hit; ``None`` if the settings do not say."""
        said = self.settings.get("criteria")
        return MatchingCriteria(said) if said in list(MatchingCriteria) else None

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The averages in tables that people read, by their keys.

        Metrics that were named are all shown. Of the default ones, what would say the same twice
        is left out: ``success``, unless the hit rate asks for all items and some query has several;
        and ``found_rate``, which is ``success``, or the hit rate that is left. :meth:`to_dict`,
        :attr:`metrics` and saved files have them all.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> one = OfflineRetrievalEvaluator([["a"]], [["a", "x"]]).evaluate(5)
        >>> several = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x"]]).evaluate(5)
        >>> "success" in one.shown, "success" in several.shown
        (False, True)
        """
        keys = tuple(next(iter(self._reported.values())))
        if not {*DEFAULT_METRICS} <= {*self.keys}:
            return keys
        differs = self.criteria is not MatchingCriteria.PARTIAL and self._has_several_items()
        repeated = {SUCCESS.key} if self._has_success() and not differs else set()
        if self._has_success() or not differs:
            repeated.add(_FOUND_RATE)
        return tuple(key for key in keys if key not in repeated)

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The metrics of :attr:`shown`, by their columns in the per-query table."""
        return tuple(
            name for name, key in self.keys.items() if key != SUCCESS.key or key in self.shown
        )

    def _has_success(self) -> bool:
        """Tell whether success was computed, and is not a metric of that name of one's own."""
        return SUCCESS.name in self.declared and is_built_in(self.declared[SUCCESS.name])

    def _has_several_items(self) -> bool:
        """Tell whether a counted query has several items, or any differs from all found."""
        items = next(iter(self.summary.sums.values())).totals["ground_truth"]
        return items > self.n_counted or any(
            one[_FOUND_RATE] != one["hit_rate"] for one in self._reported.values()
        )

    @spoken
    def row_names(self, language: Language | None = None) -> dict[str, str]:
        """Return what rows of the averages shown are called: their keys, and what counts as found.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> result = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x"]]).evaluate(5)
        >>> [name for key, name in result.row_names("en").items() if key != name]
        ['hit_rate (all found)', 'success (any found)']
        """
        said = {}
        if self.criteria is not None:
            said["hit_rate"] = FOUND[self.criteria]
        if self._has_success():
            said[SUCCESS.key] = FOUND[MatchingCriteria.PARTIAL]
        return {
            key: f"{key} ({_(said[key])})" if key in said else key
            for key in next(iter(self._reported.values()))
        }

    @property
    def threshold(self) -> float | None:
        """Similarity from which a pair is a match; ``None`` for a matcher that takes none."""
        evidence = self.evidence
        known = evidence is not None and evidence.takes_threshold
        return evidence.relevance.threshold if evidence is not None and known else None

    @property
    def signature(self) -> str:
        """One line that pins down what the numbers depend on."""
        return " | ".join(
            f"{name}{value}" if value.startswith("<=") else f"{name}={value}"
            for name, value in self.settings.items()
        )

    @cached_property
    def _reported(self) -> dict[Cutoff, dict[str, float]]:
        """The averages, and how often nothing was retrieved where nothing should be."""
        reported = {}
        for k in self.k:
            averages, rate = self.summary.averages(k), self.summary.rejection_rate(k)
            reported[k] = averages if rate is None else averages | {REJECTION_RATE.key: rate}
        return reported

    @property
    def metrics(self) -> pd.DataFrame:
        """The averages: one row per cutoff (``"all"`` for no cutoff), one column per key.

        ``rejection_rate`` is among them where queries without ground truth were skipped.
        """
        import pandas as pd

        index = pd.Index([k if isinstance(k, int) else spelled(k) for k in self.k], name="k")
        return pd.DataFrame(list(self._reported.values()), index=index)

    @property
    def table(self) -> pd.DataFrame:
        """The averages, as :attr:`metrics`; comparisons, slices and the rest have one as well."""
        return self.metrics

    def per_query(self, k: Cutoff | str = None) -> pd.DataFrame:
        """Return one row per query, indexed by the queries' labels, at one of the cutoffs.

        Columns: ``ground_truth`` (items), ``retrieved``, ``relevant`` and ``covered`` (counts
        within the cutoff), then the metrics. Queries left out of the averages hold NaN. Where the
        retriever failed for some, ``failed`` says for which.

        Args:
            k: One of the cutoffs that were evaluated; the deepest if not given.

        Raises:
            ValueError: If that cutoff was not evaluated.
        """
        import pandas as pd

        table = self.tables[self.evaluated_cutoff(k)]
        shown = {name: table[name] for name in COUNT_COLUMNS}
        for name in self.keys:
            if name not in _HIDDEN_COLUMNS:
                shown[name] = np.where(self.counted, table[name], np.nan)
        if self.retrieval is not None and self.n_failed:
            places = [one.position for one in self.retrieval.failures]
            shown.setdefault("failed", np.isin(np.arange(self.n_queries), places))
        return pd.DataFrame(shown, index=self._index())

    def _index(self) -> pd.Index:
        import pandas as pd

        # As objects, texts may hold what is no valid Unicode.
        numbers = all(isinstance(label, int) for label in self.labels)
        return pd.Index(self.labels, name="query", dtype=None if numbers else object)

    def evaluated_cutoff(self, k: Cutoff | str = None) -> Cutoff:
        """Return ``k`` if it was evaluated; left out, the deepest, a budget only without any k.

        Raises:
            ValueError: If that cutoff was not evaluated, listing those that were.
        """
        if k is None:
            return cutoffs.deepest(self.k)
        cutoff = cutoffs.check_cutoff(k)
        if cutoff in self.k:
            return cutoff
        evaluated = ", ".join(map(spelled, self.k))
        problem = f"must be one of the evaluated cutoffs ({evaluated}), got {spelled(cutoff)}"
        raise InvalidInput("k", problem, Advice("evaluate with {}", k=...))

    def statuses(self, k: Cutoff | str = None) -> pd.Series[str]:
        """Return what became of each query, indexed by the queries' labels.

        - ``"perfect"``: all of its ground truth is within the cutoff.
        - ``"partial"``: some of it is.
        - ``"missed"``: none of it is, though documents were retrieved.
        - ``"nothing retrieved"``: there is ground truth, and no document came back; also where
          the retriever failed, which :attr:`failures` and :meth:`explain` tell.
        - ``"no ground truth"``: nothing should be retrieved.

        Args:
            k: One of the cutoffs that were evaluated; the deepest if not given.
        """
        import pandas as pd

        statuses = self._statuses(self.evaluated_cutoff(k))
        return pd.Series(statuses, index=self._index(), name="status", dtype=object)

    def _statuses(self, k: Cutoff, chosen: slice = _ALL) -> NDArray[np.object_]:
        table = self.tables[k]
        wanted, covered = table["ground_truth"][chosen], table["covered"][chosen]
        listed = table.get(LISTED, table["retrieved"])[chosen]
        conditions = [wanted == 0, listed == 0, covered == 0, covered < wanted]
        return np.select(conditions, list(STATUSES[:0:-1]), STATUSES[0]).astype(object)

    def misses(self, k: Cutoff | str = None, n: int | None = None) -> pd.DataFrame:
        """Return the queries that lost something, those that lost most first.

        Listed are the counted queries whose ground truth is not all within the cutoff: by the
        share that is missing, then by nDCG, then by the number of missing items.

        Args:
            k: One of the cutoffs that were evaluated; the deepest if not given.
            n: At most so many rows; all if not given.

        Returns:
            The rows of :meth:`per_query`, with ``status`` in front (see :meth:`statuses`), and
            behind it the query's own ``id``, where each has one, and its ``position``, from 0.
            Where the result holds evidence, four more tell of the missing item that is least
            similar to any document: ``missed`` (how it begins, if texts are known), its
            ``similarity`` to the document at ``rank``, which covers it beyond the cutoff or comes
            nearest, and ``contradicted_by``, the rank of the document that says something else and
            holds most of it. One that would be called like a metric is ``missed:`` and its name.
            Printed and in a notebook five columns are shown, of any selection (``[:]``) all.

        Raises:
            ValueError: If that cutoff was not evaluated, or ``n`` is not a whole number of at
                least 1.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> actual, predicted = [["a"], ["b"], ["c", "d"]], [["a"], ["x"], ["c"]]
        >>> OfflineRetrievalEvaluator(actual, predicted).evaluate(5).misses()["status"].to_dict()
        {1: 'missed', 2: 'partial'}
        """
        from krag_eval.core.documents import ids_among

        if n is not None:
            n = whole("n", n, 1)
        cutoff = self.evaluated_cutoff(k)
        order, n_lost = hardest_first(self, cutoff)
        chosen = order[:n_lost][:n]
        rows: pd.DataFrame = self.per_query(cutoff).iloc[chosen]
        rows.insert(0, "status", self._statuses(cutoff)[chosen])
        ids = ids_among(self.tags)
        told: dict[str, Any] = {} if ids is None else {"id": [ids[place] for place in chosen]}
        told["position"] = chosen
        if self.evidence is not None and self.evidence.relevance.n_queries == self.n_queries:
            from krag_eval.core.results.evidence import worst_missed

            told |= worst_missed(self.evidence, chosen, cutoff)
        for place, (name, values) in enumerate(told.items(), start=1):
            column = f"missed:{name}" if name in rows else name
            is_text = name in ("id", "missed")
            rows.insert(place, column, np.array(values, object) if is_text else values)
            if name in ("rank", "contradicted_by"):
                rows[column] = rows[column].astype("Int64")
        from krag_eval.core.results.misses import Misses

        return Misses(rows)

    @spoken
    def explain(
        self,
        query: str | int | None = None,
        k: Cutoff | str = None,
        *,
        position: int | None = None,
        metadata: str | Iterable[str] | None = None,
        full: bool = False,
        language: Language | None = None,
    ) -> Explanation:
        """Explain one query: what every document matched, and what every item came to.

        ``print`` the explanation, look at it in a notebook, or take its tables: ``.predicted`` has
        each predicted document in rank order with what it matched, its similarity and the credit it
        got; ``.ground_truth`` has each item with its first rank or, when missed, the nearest miss
        and how far below the threshold it fell. Where the retriever failed, ``.failure`` says how.

        Args:
            query: Its label; its position, from 0, where no label is a number.
            k: One of the cutoffs that were evaluated; the deepest if not given.
            position: The position instead of the label, where several queries share a label.
            metadata: What to tell of the documents' metadata beside their ids, by name: ``"page"``
                or ``("source", "page")``; ``"source"`` if not given. Documents without it tell
                nothing.
            full: Whether to show every document and item, with its whole text. Otherwise texts are
                clipped, and those of documents that matched nothing and came near nothing, or
                stand beyond the cutoff, to a line.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        Raises:
            TypeError: If a name of metadata is not a text, or ``full`` is not a bool.
            ValueError: If there is no such query, several have that label (listing their
                positions), the cutoff was not evaluated, or the result holds no evidence.
        """
        from krag_eval.core.documents import ids_among, position_of
        from krag_eval.core.results.explanation import explained

        evidence = self._evidence()  # before anything that other remedies would be named for
        ids = ids_among(self.tags)
        cutoff, place = self.evaluated_cutoff(k), position_of(self.labels, query, position, ids)
        table = self.tables[cutoff]
        told = self.shown_columns if self.counted[place] else ()
        metrics = {name: float(table[name][place]) for name in told}
        return explained(
            evidence,
            place,
            query=self.labels[place],
            id=None if ids is None else ids[place],
            k=cutoff,
            status=self._statuses(cutoff, slice(place, place + 1))[0],
            metrics=metrics,
            matcher=self.settings.get("matcher", "?"),
            conventions=self.conventions,
            failure=None if self.retrieval is None else self.retrieval.failure_at(place),
            metadata=metadata,
            full=boolean("full", full),
            language=language,
            condensed=self.settings.get("unjudged") == "leave_out",
        )

    def contradicted(self) -> pd.DataFrame:
        """Return the pairs that would match if the document said the same as the passage.

        Returns:
            One row for each of :attr:`n_contradicted`, indexed by the query's label: ``position``,
            ``item`` (its number), ``rank``, the ``share`` of the passage that the document holds,
            ``kind`` (``"number"``, ``"negation"`` or, where other words stand there, ``"text"``),
            what ``passage`` and ``document`` have there, and the ``count`` of rows that differ in
            the same; the last four are ``None`` where texts are not known.

        Raises:
            ValueError: If the result holds no evidence.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> passage = "In 2024 revenue from lending rose to a record high"
        >>> actual, predicted = [[passage]], [[passage.replace("2024", "2023"), passage]]
        >>> result = OfflineRetrievalEvaluator(actual, predicted, matcher="coverage").evaluate(5)
        >>> [*result.contradicted().itertuples(index=False, name=None)]
        [(0, 1, 1, 0.8, 'number', '2024', '2023', 1)]
        """
        import pandas as pd

        found = self._evidence().relevance
        rows = [
            (place, item.number, one.rank, one.share, *(one.said or (None, None, None)))
            for place in np.unique(found.item_query[found.contradictions[0]]).tolist()
            for item in self.explain(position=place).items
            for one in item.contradicted
            if one.share >= found.threshold
        ]
        times = Counter(row[4:] for row in rows)
        counted = [(*row, times[row[4:]] if row[4] else None) for row in rows]
        names = ["position", "item", "rank", "share", "kind", "passage", "document", "count"]
        return pd.DataFrame(counted, self._index()[[place for place, *_ in rows]], names)

    def _warn_of_failed(self) -> None:
        """Warn where what is worked out takes queries that failed for ones that found nothing."""
        for told in self.summary.caveats():
            warn(told)

    def _evidence(
        self, fix: Fix = "evaluate the queries in question with OfflineRetrievalEvaluator"
    ) -> Evidence:
        if self.evidence is None:
            problem = "this result holds no evidence (similarities of the pairs), as after a run "
            raise InvalidInput("", f"{problem}in parts", fix)
        return self.evidence

    def first_ranks(self) -> pd.Series[int]:
        """Return the first rank of every ground-truth item, ``<NA>`` where nothing covers it.

        Indexed by the query's label and the item's place in its list, from 1; all retrieved
        documents count.
        """
        import pandas as pd

        evidence = self._evidence()
        found, items = evidence.relevance, evidence.items()
        ranks = pd.array([pd.NA] * len(items), dtype="Int64")
        ranks[found.covered] = found.first_rank
        labels = pd.Index([self.labels[query] for query, _ in items], dtype=object)
        index = pd.MultiIndex.from_arrays(
            [labels, [number for _, number in items]], names=["query", "item"]
        )
        return pd.Series(ranks, index=index, name="first_rank")

    def metrics_at_thresholds(
        self,
        metrics: str | Iterable[str] | None = None,
        thresholds: Iterable[float] | None = None,
    ) -> pd.DataFrame:
        """Return averages at other thresholds, from the stored similarities: nothing is matched.

        Numbers are those of ``evaluator.with_threshold(…)``. A similarity of exactly 0 is no match
        at any threshold. Do not choose the threshold that makes a retriever look best; see
        ``calibrate``.

        Args:
            metrics: Averages with their cutoffs, such as ``"macro_recall@5"``, evaluated or not;
                all built-in ones at the deepest cutoff if not given.
            thresholds: Numbers from 0 to 1; steps of 0.05 and the threshold in use if not given.

        Returns:
            One row per threshold, one column per average.

        Raises:
            ValueError: If the matcher takes no threshold, or the result holds no evidence.
        """
        from krag_eval.core.results.evidence import averages_at_thresholds

        if metrics is None:
            k = self.evaluated_cutoff(None)
            ours = filter(is_built_in, metrics_of(self.keys, self.declared).values())
            known = averages_of(ours)
            metrics = [f"{key}@{spelled(k)}" for key in self.averages(k) if key in known]
        return averages_at_thresholds(
            self._evidence(), metrics, thresholds, self.counted, self.settings, self.conventions
        )

    @property
    def latency(self) -> Latency:
        """Mean, p50 and p95 of the seconds an answer took, over the queries that were answered.

        Per query: ``result.retrieval.seconds``.

        Raises:
            ValueError: If krag_eval did not ask the retriever, so nothing was measured.
        """
        return self._retrieval().latency

    @property
    def failures(self) -> pd.DataFrame:
        """The queries whose retriever failed: ``position``, ``type``, ``message``, ``seconds``.

        Indexed by the queries' labels. They count as nothing retrieved.

        Raises:
            ValueError: If krag_eval did not ask the retriever.
        """
        return self._retrieval().failure_table(self.labels)

    def retry_failed(self, **changes: Any) -> Self:
        """Ask the queries that failed again, no others, and return a new whole result.

        If none failed, nothing is asked, and this result is returned.

        Args:
            **changes: ``on_error``, ``max_concurrency``, ``timeout``, ``config`` or ``progress``,
                to be other than the first time.

        Raises:
            ValueError: If there is no retriever to ask: the result was read from a file, pickled,
                or not made by ``evaluate_retriever``.
        """
        run = self._retrieval()
        result: Self = run.retry().now(**changes) if run.failures else self
        return result

    async def aretry_failed(self, **changes: Any) -> Self:
        """Do as :meth:`retry_failed`, asking asynchronously."""
        run = self._retrieval()
        result: Self = await run.retry().soon(**changes) if run.failures else self
        return result

    def _retrieval(self) -> RetrievalRun:
        if self.retrieval is None:
            problem = "this result does not know how its documents were retrieved"
            fix = "let krag_eval ask the retriever: evaluate_retriever(retriever, dataset, k=…)"
            raise InvalidInput("", problem, fix)
        return self.retrieval

    def __getitem__(self, metric: str) -> float:
        """Return one average, such as ``result["recall@5"]``.

        The name of a metric stands for its mean over queries: ``"recall@5"`` is
        ``"macro_recall@5"``, ``"rbp@10"`` is ``"rbp(p=0.8)@10"``.

        Args:
            metric: An average with its cutoff: a key of :meth:`to_dict`, or a metric's name.

        Raises:
            ValueError: If it is not spelled with a cutoff, or was not evaluated.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> result = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x", "b"]]).evaluate(k=[1, 3])
        >>> result["recall@1"], result["mrr@3"]
        (0.5, 1.0)
        """
        _, cutoff = cutoffs.parse_metric(metric)
        reported = self._reported[self.evaluated_cutoff("all" if cutoff is None else cutoff)]
        known = [f"{key}@{spelled(cutoff)}" for key in reported]
        name = resolved_average("metric", metric.strip(), known, self.keys)
        return reported[name.rpartition("@")[0]]

    if not TYPE_CHECKING:  # which would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Refuse a name, with what is called so elsewhere."""
            meant = _CALLED_ELSEWHERE.get(name, "")
            keys = vars(self).get("keys", {})
            if {name, f"macro_{name}"} & {*keys, *keys.values()}:
                meant = f'write result["{name}@{spelled(cutoffs.deepest(self.k))}"]'
            problem = f"'EvaluationResult' object has no attribute {name!r}"
            problem += f"; {meant}" if meant else ""
            raise AttributeError(problem, name=name, obj=self)

    __iter__ = None  # or Python would try result[0], result[1], …

    def averages(self, k: Cutoff | str = None) -> dict[str, float]:
        """Return the averages at one of the cutoffs, such as ``{"hit_rate": 0.5, …}``.

        Args:
            k: One of the cutoffs that were evaluated; the deepest if not given.

        Raises:
            ValueError: If that cutoff was not evaluated.
        """
        return self.summary.averages(self.evaluated_cutoff(k))

    def to_dict(self, separator: str = "@") -> dict[str, float]:
        """Return every average under its one spelling: ``{"macro_recall@5": …, "mrr@all": …}``.

        Short names, as in ``result["recall@5"]``, are for the result alone: this is a plain dict.
        ``rejection_rate`` is among them where queries without ground truth were skipped.

        Args:
            separator: What stands between average and cutoff. For tools that refuse the ``@``, as
                MLflow does, take ``"_at_"``.

        Raises:
            ValueError: If it is not a text, or empty.
        """
        if separator != "@":
            text("separator", separator, "a text such as '@' or '_at_'")
        return {
            f"{key}{separator}{spelled(k)}": value
            for k, averages in self._reported.items()
            for key, value in averages.items()
        }

    def __eq__(self, other: object) -> bool:
        """Tell whether settings, labels and all numbers are equal; evidence is not compared.

        Of a result that holds averages alone, these are all there is.
        """
        if not isinstance(other, ResultFacts):
            return NotImplemented
        if dict(self.settings) != dict(other.settings):
            return False
        if isinstance(self.rows, NoRows) or isinstance(other.rows, NoRows):
            return type(self.rows) is type(other.rows) and self.summary == other.summary
        return (
            self.labels == other.labels
            and self.k == other.k
            and all(
                self.tables[k].keys() == other.tables[k].keys()
                and all(
                    np.array_equal(column, other.tables[k][name], equal_nan=True)
                    for name, column in table.items()
                )
                for k, table in self.tables.items()
            )
        )

    def with_verdicts(self, gate: Outcome | None, verdicts: Verdicts) -> Self:
        """Return this result, knowing what became of more conditions, and still of all before.

        Args:
            gate: What became of the conditions together.
            verdicts: What became of each.
        """
        both = merged(self.verdicts, verdicts)
        return replace(self, gate=worst([self.gate, gate]), verdicts=both)

    def is_same_run(self, other: ResultFacts) -> bool:
        """Tell whether another result is this one, perhaps saved and read, under whatever name.

        It has equal values and was made at the same moment. An unchanged system that is evaluated
        again has equal values, and is another run.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]])
        >>> first, second = evaluator.evaluate(5), evaluator.evaluate(5)
        >>> first.is_same_run(first), first == second, first.is_same_run(second)
        (True, True, False)
        """
        return self is other or (self.made == other.made and self == other)

    __hash__ = None  # type: ignore[assignment]  # holds arrays


def hardest_first(result: ResultFacts, k: Cutoff) -> tuple[NDArray[np.int64], int]:
    """Return the positions of all queries, and how many lost something: they come first.

    Those are in the order of ``result.misses``; then come the others, by nDCG, and at the end
    those that do not count.
    """
    table, statuses = result.tables[k], result.statuses(k).to_numpy()
    wanted, covered = table["ground_truth"], table["covered"]
    share = covered / np.maximum(wanted, 1)
    kept = ~(result.counted & (statuses != STATUSES[0]))
    order = np.lexsort((covered - wanted, table.get("ndcg", share), share, kept, ~result.counted))
    return order, int((~kept).sum())
