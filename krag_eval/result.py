"""Results: the per-query table at every cutoff, its averages, and how to show and save them.

pandas is loaded only for a table, and the code that explains, saves or gates a result when it is
first used.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.conventions import AveragingMethod, Conventions, MatchingCriteria
from krag_eval.core.errors import Advice, Fix, InvalidInput, boolean, clipped, text, warn, whole
from krag_eval.core.language import N_, Language, _, spoken
from krag_eval.core.results.rows import COUNT_COLUMNS, NoRows, Rows, TableOf
from krag_eval.core.results.verdicts import Outcome, Verdicts, merged, worst
from krag_eval.core.scoring import cutoffs
from krag_eval.core.scoring.averages import Average
from krag_eval.core.scoring.cutoffs import Cutoff, Length, spelled
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
from krag_eval.core.shown import Shown, draw, write_report

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.comparison.gates import GateReport
    from krag_eval.comparison.slices import Slices
    from krag_eval.core.data.loading import ChunkSource, Source
    from krag_eval.core.documents import Tag
    from krag_eval.core.intervals import BudgetToRecall
    from krag_eval.core.matching.base import Matcher
    from krag_eval.core.results.evidence import Evidence
    from krag_eval.core.results.explanation import Explanation
    from krag_eval.core.results.latency import Latency, RetrievalRun
    from krag_eval.diagnosis.causes import Deeper, Index
    from krag_eval.diagnosis.diagnosis import Diagnosis, ForeignIndex
    from krag_eval.lab.predicting import Predictions
    from krag_eval.lab.score_cutoffs import ScoreCutoffs

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
class EvaluationResult(Shown):
    """All metrics at all cutoffs asked for, per query and averaged, and what they rest on.

    Made by ``OfflineRetrievalEvaluator.evaluate``; not meant to be built by hand.

    Attributes:
        settings: What the numbers depend on, in a fixed order: matcher, threshold, k, criteria,
            averaging, conventions, treatment of queries without ground truth, number of queries,
            version.
        rows: The per-query values: in memory or, of a run in parts, in a file or nowhere.
        keys: Metric column -> name of its mean.
        averaging_method: Which of the micro and macro keys are shown.
        conventions: The conventions the metrics were computed under.
        evidence: The similarities of all pairs, and where the texts are; ``None`` if not kept.
        totals: The summary of a run in parts; if ``None``, it follows from the rows.
        retrieval: How a retriever answered, if krag_eval asked one or traces tell of failures;
            ``None`` otherwise.
        declared: What is known of metrics that are not computed by default, by column.
        gate: The worst outcome of the gates that it was held to, if its file says: ``"passed"``,
            ``"inconclusive"`` or ``"failed"``.
        made: When it was evaluated; ``None`` if it was saved before that was kept. A time in
            ``SOURCE_DATE_EPOCH`` (seconds since 1970) is taken for the clock's, so that saved
            files can be the same to the byte.
        notes: How two files were understood, and what joined, if they were joined by
            :func:`~krag_eval.evaluate_file`; not saved.
        verdicts: What became of each condition of those gates, by what it asked, such as
            ``"ndcg@10 >= 0.6"``; the worst, where it was asked more than once.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> result = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x", "b"]]).evaluate(k=[1, 3])
    >>> result.to_dict()["macro_recall@1"]
    0.5
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

    def diagnose(
        self,
        index: Index | ChunkSource | None = None,
        deeper: Deeper | None = None,
        k: Cutoff | str = None,
        depth: int | None = None,
        *,
        dataset: Source | None = None,
        source_key: str = "source",
        matcher: str | Matcher | None = None,
        most_pairs: int = 10**7,
        foreign_index: ForeignIndex = "refuse",
    ) -> Diagnosis:
        """Find out where what is missing was lost: index, splitter, ranking or search.

        Each ground-truth item gets the first class that applies: ``"found"`` (one document within
        the cutoff holds it), ``"found_in_pieces"`` (together they do), ``"not_in_index"`` (all
        chunks together do not), ``"contradicted"`` (nor do they, and one that holds half of it says
        something else), ``"cut_apart"`` (together they do, no chunk alone),
        ``"ranked_too_low"`` (a chunk that holds it stands between the cutoff and ``depth``) or
        ``"not_retrieved"``. Without anything deeper the last two are ``"not_in_top_k"``; without an
        index, what is neither found nor ranked too low is ``"not_seen"``. Items without words are
        ``"no_words"`` and no part of any share. An ``AnyOf`` gets the class of its alternative that
        is furthest along. Pieces are for coverage and spans; other matchers, ``a & b`` and
        coverage with ``numbers="anywhere"`` or in either direction decide about one document at a
        time.

        Args:
            index: The chunks of the store: texts or documents, any iterable, the path of a file
                of them, a data frame, or an :class:`~krag_eval.Index` that several diagnoses share.
            deeper: Longer ranked lists: one per query, a dict of them by label, or a function from
                a question to its list (or a LangChain retriever), asked only where something is
                missed. The predicted documents beyond the cutoff if not given.
            k: The cutoff; the deepest that was evaluated if not given.
            depth: How far the deeper lists are looked at; to their ends if not given.
            dataset: What the result was evaluated on, where it does not hold its texts, as after
                :func:`~krag_eval.evaluate_file` or ``to_json`` without them: a
                :class:`~krag_eval.datasets.Dataset` or what :func:`~krag_eval.load_dataset` makes
                one of, such as the path of a file. It is read whole and matched again.
            source_key: The key in the metadata that names a document's source.
            matcher: The matcher of the result, where it was read from a file and its signature
                does not tell all.
            most_pairs: How many pairs of passage and chunk may be compared one by one, which all
                matchers but coverage, spans and those by keys must.
            foreign_index: The retrieved documents are looked up in the index first, and a warning
                says how many are there, if not all are. An index that has fewer than a tenth is
                refused, unless this is ``"allow"``. A document is there if a chunk has its id, or
                its text, or its text within a longer one (letters and digits count). One that
                contains a chunk, or most of whose words are in chunks, in runs, is not foreign
                either: a parent document, a window of sentences, a chunk under another heading.

        Raises:
            TypeError: If one of the arguments is of another type.
            ValueError: If the result holds no evidence, or no texts where they are needed, and
                ``dataset`` is not given; the data set has other queries, ground truth or lists; the
                index is empty, or another one than was searched; there is not one list per query,
                or none has a document; or there are too many pairs.

        Warns:
            KragEvalWarning: If queries failed: what they miss says nothing of index or ranking.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> chunks = ["the fee is five euros", "we open at nine", "a card takes one day"]
        >>> evaluator = OfflineRetrievalEvaluator(
        ...     [["the fee is five euros", "closed on Mondays"]], [[chunks[1], chunks[0]]])
        >>> diagnosis = evaluator.evaluate(k=[1, 2]).diagnose(chunks, k=1)
        >>> diagnosis.table["class"].to_list()
        ['ranked_too_low', 'not_in_index']
        >>> diagnosis.index_ceiling
        0.5
        """
        from krag_eval.diagnosis.causes import diagnosed
        from krag_eval.diagnosis.diagnosis import told_apart_by

        self._warn_of_failed()
        source = self
        if dataset is not None:
            from krag_eval.core.data.loading import evaluated_again

            source = evaluated_again(self, dataset, matcher)
        return diagnosed(
            source._evidence(Advice("pass {}, what it was evaluated on", dataset=...)),
            source.labels,
            cutoffs.deepest(self.k) if k is None else cutoffs.check_cutoff(k),
            signature=self.settings["matcher"],
            matcher=matcher,
            index=index,
            deeper=deeper,
            depth=depth,
            source_key=source_key,
            most_pairs=most_pairs,
            foreign_index=foreign_index,
            of=told_apart_by(self.rows, self.settings, self.evidence),
        )

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

    def confidence_intervals(self, level: float = 0.95, **sampling: Any) -> pd.DataFrame:
        """Return an interval for every average at every cutoff.

        See ``krag_eval.core.intervals.confidence_intervals``, also for the other arguments:
        ``clusters="source"`` draws all queries of a source together.
        """
        from krag_eval.core.intervals import confidence_intervals

        return confidence_intervals(self, level, **sampling)

    def by(
        self,
        tag: str,
        k: Cutoff | str = None,
        metrics: str | Iterable[str] | None = None,
        *,
        diagnosis: Diagnosis | None = None,
        level: float = 0.95,
        n_resamples: int = 10_000,
        seed: int = 0,
    ) -> Slices:
        """Return the averages within slices of the queries: where is retrieval worse?

        A slice is the queries of one value of a tag; numbers of many values are divided at their
        quartiles. Queries without the tag are a slice of their own. Per slice and metric there are
        the value with its interval, the difference to all other queries with its interval, and the
        p of a permutation test, corrected by Holm (1979) over all of them (two slices that are each
        other's rest are one test). Under 10 queries there are counts alone.

        Of a metric that is 0 or 1 for every query, intervals are score intervals (Wilson 1927;
        Newcombe 1998, method 10, of a difference), and p counts all ways to deal out the queries.
        Elsewhere the interval is the one of :meth:`confidence_intervals` for these queries alone,
        that of the difference the percentile bootstrap, and p comes from random permutations. A
        metric that is undefined for some queries looks at the others.

        Args:
            tag: One of :attr:`tags` or, unless the queries have a tag of that name, ``"items"``
                (their number in the ground truth), ``"question_length"`` (words),
                ``"golden_length"`` (words of the longest item) or ``"language"`` (as the script of
                the question tells it); with ``diagnosis``, ``"diagnosis"``.
            k: One of the cutoffs that were evaluated; the deepest if not given.
            metrics: Averages such as ``"recall"`` or, at a cutoff of their own, ``"ndcg@10"``; the
                main ones if not given: recall, nDCG, MRR and the hit rate.
            diagnosis: What :meth:`diagnose` returned, for the tag ``"diagnosis"``: the class of
                each query's item that is furthest behind. What was found decides the class, so that
                recall differs between these slices by definition.
            level: How often an interval should cover the true value, between 0 and 1.
            n_resamples: Number of resamples of the bootstrap, and of random permutations.
            seed: The same seed gives the same digits.

        Raises:
            ValueError: If there is no such tag, a built-in one needs what this result does not
                keep, a metric was not evaluated, or there are no per-query rows.

        Warns:
            KragEvalWarning: If the slices are too many to mean anything, or queries failed.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> actual, predicted = [["a"]] * 40, [["a"]] * 20 + [["x"]] * 10 + [["a"]] * 10
        >>> tags = {"corpus": ["wiki"] * 20 + ["chat"] * 20}
        >>> result = OfflineRetrievalEvaluator(actual, predicted, tags=tags).evaluate(5)
        >>> result.by("corpus", metrics="recall").table[["slice", "n", "value", "rest"]]
          slice   n  value  rest
        0  chat  20    0.5   1.0
        1  wiki  20    1.0   0.5
        """
        from krag_eval.comparison.slices import slices
        from krag_eval.core.intervals import check_sampling

        self._warn_of_failed()
        sampling = check_sampling(level, n_resamples, seed)
        return slices(self, tag, self.evaluated_cutoff(k), metrics, sampling, diagnosis)

    def predicts(
        self,
        scores: Mapping[Any, float] | Iterable[float],
        *,
        level: float = 0.95,
        n_resamples: int = 1_000,
        seed: int = 0,
    ) -> Predictions:
        """Return which metric goes with the scores of your answers, and how surely.

        Spearman's rank correlation and Kendall's τ_b of every metric at every cutoff with the
        scores, over the counted queries, with percentile bootstrap intervals. The sign is turned
        where lower is better: positive says that better retrieval goes with higher scores. The
        best of many correlations flatters itself, so ``.best`` is chosen on a random half of the
        queries, and ``.spearman``, ``.low`` and ``.high`` are of the other half.

        A correlation is no cause: where hard questions are hard to find documents for *and* hard
        to answer, a metric predicts answers without making them better.

        Args:
            scores: One number or bool per query: a Series or a mapping by the queries' labels, or
                numbers in the order of the rows, as a Series without labels of its own is.
            level: How often an interval should cover the true correlation, between 0 and 1.
            n_resamples: Number of resamples.
            seed: The same seed gives the same halves and the same digits.

        Returns:
            A :class:`~krag_eval.lab.predicting.Predictions`: its ``.table``, ``.best``,
            ``.rivals`` (the metrics that cannot be told from it), ``.can_rank``, ``.is_turned``
            (even the best goes against the scores: lower ones seem to be better) and a
            ``.summary()``. NaN where a metric is the same for all queries; queries for which one is
            undefined are left out of its correlation alone, and it cannot be chosen.

        Raises:
            TypeError: If the scores are no numbers.
            ValueError: If there is not one for every query, one is not finite, all are equal, there
                are fewer than 4, an argument is out of range, or there are no per-query rows.

        Warns:
            KragEvalWarning: If there are fewer than 30 queries, or queries failed.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> actual, predicted = [["a"]] * 80, [["a"], ["x", "a"], ["x"], ["y"]] * 20
        >>> evaluator = OfflineRetrievalEvaluator(actual, predicted)
        >>> result = evaluator.evaluate(2, metrics=["recall", "reciprocal_rank"])
        >>> found = result.predicts([1, 0.5, 0, 0] * 20)
        >>> found.best, round(found.spearman, 3)
        ('mrr@2', 1.0)
        """
        from krag_eval.core.intervals import check_sampling
        from krag_eval.lab.predicting import predictions

        self._warn_of_failed()
        return predictions(self, scores, check_sampling(level, n_resamples, seed))

    def score_cutoffs(
        self,
        k: Cutoff | str = None,
        *,
        level: float = 0.95,
        n_resamples: int = 1_000,
        seed: int = 0,
    ) -> ScoreCutoffs:
        """Return what cutting documents off by their scores costs and saves, and where to do it.

        A score cutoff keeps the documents at or above it: the higher it is, the less is found of
        queries with ground truth, and the more of those without end with nothing, as they should.
        The best has the largest mean of both; of equals, the one that keeps most. It flatters
        itself on the queries it was chosen on, so ``.held_out`` is of the others.

        Scores are those of pairs ``(document, score)``, or stand in the documents' metadata as
        ``"score"`` or ``"relevance_score"``. Where they rise with the rank, they are distances, and
        those at or below a cutoff are kept.

        Args:
            k: One of the cutoffs that were evaluated, where recall is looked at; the deepest if not
                given.
            level: How often the intervals should cover the true values, between 0 and 1.
            n_resamples: Number of resamples of the queries.
            seed: The same seed gives the same digits, and the same halves.

        Returns:
            A :class:`~krag_eval.lab.score_cutoffs.ScoreCutoffs`: its ``.table``, ``.best``,
            ``.interval``, ``.held_out``, a ``.plot()`` and a ``.summary()``. Evaluate with
            ``score_cutoff=`` to apply one. Without queries that have no ground truth there is
            recall alone, and no best.

        Raises:
            ValueError: If a document has no score, scores rise in one list and fall in another, no
                query has ground truth, or the result does not keep the documents.

        Warns:
            KragEvalWarning: If there are fewer than 30 queries of a kind, or queries failed.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> actual, predicted = [["a"], []] * 40, [[("a", 0.9), ("b", 0.3)], [("c", 0.5)]] * 40
        >>> evaluator = OfflineRetrievalEvaluator(actual, predicted, no_ground_truth="skip")
        >>> found = evaluator.evaluate(5).score_cutoffs()
        >>> found.table
                recall  abstention  balanced
        cutoff
        0.3        1.0         0.0       0.5
        0.9        1.0         1.0       1.0
        >>> found.best, found.held_out
        (0.9, (1.0, 1.0))
        """
        from krag_eval.core.intervals import check_sampling
        from krag_eval.lab.score_cutoffs import score_cutoffs

        self._warn_of_failed()
        cutoff, sampling = self.evaluated_cutoff(k), check_sampling(level, n_resamples, seed)
        condensed = self.settings.get("unjudged") == "leave_out"
        return score_cutoffs(self._evidence(), cutoff, sampling, condensed=condensed)

    def budget_to_recall(
        self,
        recall: float = 0.9,
        *,
        length: Length | None = None,
        level: float = 0.95,
        n_resamples: int = 2_000,
        seed: int = 0,
    ) -> BudgetToRecall:
        """Return the smallest budget at which macro recall over the full lists reaches a value.

        How much context a system needs to hold enough of the ground truth: what to compare chunk
        sizes by. The interval is the percentile bootstrap over queries.

        Args:
            recall: The macro recall to reach, above 0 and at most 1.
            length: What the budget counts: ``"words"``, ``"characters"`` or a function. If not
                given, what the first budget that was evaluated counts, or words.
            level: How often the interval should cover the true budget, between 0 and 1.
            n_resamples: Number of resamples.
            seed: The same seed gives the same interval.

        Returns:
            ``.value``, ``.low``, ``.high`` and ``.unit`` (``"w"``, ``"c"`` or ``"t"``); the value
            is infinite where the full lists do not reach the recall.

        Raises:
            ValueError: If an argument is out of range, or nothing is known of the documents'
                lengths: there are no texts, and no budget was evaluated.

        Warns:
            KragEvalWarning: If the interval rests on fewer than 30 queries.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> actual = [["the cat sat"]] * 40
        >>> predicted = [["a dog barked loudly", "the cat sat"]] * 10 + [["the cat sat"]] * 30
        >>> found = OfflineRetrievalEvaluator(actual, predicted).evaluate(5).budget_to_recall(0.8)
        >>> found.value, found.unit, found.low, found.high
        (7.0, 'w', 3.0, 7.0)
        """
        from krag_eval.core.intervals import budget_to_recall, check_sampling

        sampling = check_sampling(level, n_resamples, seed)
        return budget_to_recall(self, recall, length, sampling)

    @spoken
    def check(
        self,
        floors: Mapping[str, float] | Iterable[str] | None = None,
        *,
        baseline: EvaluationResult | None = None,
        metric: str | Iterable[str] | None = None,
        max_drop: float | None = None,
        on: Literal["all", "common"] = "all",
        by: str | None = None,
        strict: bool = False,
        allow_failures: int = 0,
        allow_missing: int = 0,
        clusters: str | None = None,
        level: float = 0.95,
        n_resamples: int = 10_000,
        seed: int = 0,
        language: Language | None = None,
    ) -> GateReport:
        """Check whether this result is good enough, alone or against a baseline.

        In a test write ``assert result.check({"macro_recall@5": 0.8})``, in a script
        ``result.check(…).raise_if_failed()``; the failure says what fell short.

        Args:
            floors: The least each average may be, ``{"ndcg@10": 0.6}`` or ``["ndcg@10=0.6"]``; for
                ``mean_rank``, where lower is better, the most. An undefined average fails.
            baseline: An earlier result over the same queries, with the same ground truth and
                settings. It may have identical values, as of a system that did not change; it may
                not be this result, nor a copy of its file.
            metric: What may not drop below the baseline: ``"ndcg@10"``, or several.
            max_drop: How far it may drop, 0 if not given. A larger drop fails only if it is more
                than chance, by the paired permutation test that :func:`~krag_eval.compare` makes,
                here one-sided: is this result worse? With 0, it fails wherever a comparison, which
                asks in either direction, shows a loss. Otherwise the condition is inconclusive: it
                holds, and says how large a drop so many queries can show.
            on: ``"all"`` if the baseline must have the same queries, ``"common"`` to compare the
                queries that both have, as a set of questions grows; the report names the others.
                Floors are of all queries of this result.
            by: A tag, as in :meth:`by`, no slice of which may drop further either. Slices of under
                10 queries are named and not checked.
            strict: Whether what is inconclusive fails.
            allow_failures: For how many queries of this result, and of the baseline, the retriever
                may have failed. They count as nothing retrieved; the report says how many they are.
            allow_missing: How many questions of the ground truth this result, and the baseline, may
                lack, as ``missing="skip"`` leaves them out; the report says how many they are.
            clusters: A tag of the queries, such as ``"source"``: those that share its value belong
                together, and are swapped and drawn together.
            level: 1 less what p must be below, after Holm's correction for the metrics, and how
                often the interval that is shown should cover the true difference.
            n_resamples: Number of random swaps, and of resamples of the bootstrap.
            seed: The same seed gives the same verdict.
            language: Of the reasons, ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else
                ``"en"``.

        Raises:
            TypeError: If the baseline is no result.
            ValueError: If an average or the tag is unknown, an average was not evaluated, a number
                is out of range, there is nothing to check, the two results are not comparable, or
                are one, or the retriever failed for more queries, or more are missing, than are
                allowed.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> result = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x"]]).evaluate(5)
        >>> result.check({"macro_recall@5": 0.8, "mrr@5": 1.0})
        failed: macro_recall@5 is 0.5000, below the floor of 0.8
        passed: mrr@5 is 1.0000, at or above the floor of 1
        """
        from krag_eval.comparison.gates import Terms, check
        from krag_eval.core.intervals import check_sampling

        sampling = check_sampling(level, n_resamples, seed)
        allowed = (allow_failures, allow_missing)
        terms = Terms(sampling, max_drop, on, by, clusters, strict, *allowed)
        return check(self, floors, baseline, metric, terms)

    @spoken
    def plot(
        self,
        k: Cutoff | str = None,
        ax: Axes | None = None,
        *,
        language: Language | None = None,
    ) -> Axes:
        """Draw every metric at one cutoff as a labelled bar, micro and macro side by side.

        Args:
            k: One of the cutoffs that were evaluated; the deepest if not given.
            ax: Where to draw; a new figure if not given.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        Returns:
            The matplotlib Axes; nothing is shown or saved.

        Raises:
            ValueError: If that cutoff was not evaluated, or the name of a file stands for it.
        """
        if isinstance(k, os.PathLike) or (isinstance(k, str) and os.path.splitext(k)[1]):
            problem = f"must be a cutoff, got the name of a file, {clipped(os.fspath(k))}"
            raise InvalidInput("k", problem, "write plot().figure.savefig(path)")

        return draw("metric_bars", self, k, ax)

    @spoken
    def report(
        self,
        path: str | os.PathLike[str],
        *,
        language: Language | None = None,
        **page: Any,
    ) -> None:
        """Write this result as a page: metrics, pictures, every query, how to read it.

        One HTML file that needs neither network nor script; it appears complete or not at all.

        Args:
            path: The file, as .html or .htm; one of that name is replaced.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
            **page: What else ``krag_eval.report.write_report`` takes: ``k``, ``intervals``,
                ``n_queries``, ``by``, ``diagnosis``, ``metadata``, ``title``, ``date``.

        Raises:
            ValueError: If an argument is not possible; the message says what is. The file must not
                be the one that rows are in.
            OSError: If the file cannot be written.
        """
        from krag_eval.core.results.saved import check_not_its_rows

        check_not_its_rows(self, path)
        write_report(self, path, **page)

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

    def retry_failed(self, **changes: Any) -> EvaluationResult:
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
        result: EvaluationResult = run.retry().now(**changes) if run.failures else self
        return result

    async def aretry_failed(self, **changes: Any) -> EvaluationResult:
        """Do as :meth:`retry_failed`, asking asynchronously."""
        run = self._retrieval()
        result: EvaluationResult = await run.retry().soon(**changes) if run.failures else self
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

    def to_json(
        self,
        path: str | os.PathLike[str],
        *,
        texts: bool = False,
        gate: GateReport | None = None,
    ) -> None:
        """Save the result with its evidence; :meth:`from_json` reads it back.

        The file appears complete or not at all. Undefined values are ``null``.

        Args:
            path: The file; one of that name is replaced.
            texts: Whether to keep the documents' texts too, for :meth:`explain`, with their ids and
                what is short in their metadata: numbers, booleans and texts of 200 characters at
                most. Without them everything else still works.
            gate: What became of the gate that it was held to. A history does not hold later results
                to one that failed. What this result, or a file of that name with the same values,
                says of earlier gates is kept: a failure is never taken back.

        Raises:
            ValueError: If ``texts`` are asked for and this result has none, or the file is the one
                that its rows are in.
            OSError: If the file cannot be written; the error names it.
        """
        from krag_eval.core.results.saved import write

        write(path, self if gate is None else gate.noted_on(self), texts=texts)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> EvaluationResult:
        """Read a result that :meth:`to_json` saved.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is not such a result, of another format, or damaged.
        """
        from krag_eval.core.results.saved import read

        return read(path)

    def __eq__(self, other: object) -> bool:
        """Tell whether settings, labels and all numbers are equal; evidence is not compared.

        Of a result that holds averages alone, these are all there is.
        """
        if not isinstance(other, EvaluationResult):
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

    def with_verdicts(self, gate: Outcome | None, verdicts: Verdicts) -> EvaluationResult:
        """Return this result, knowing what became of more conditions, and still of all before.

        Args:
            gate: What became of the conditions together.
            verdicts: What became of each.
        """
        both = merged(self.verdicts, verdicts)
        return replace(self, gate=worst([self.gate, gate]), verdicts=both)

    def is_same_run(self, other: EvaluationResult) -> bool:
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


def hardest_first(result: EvaluationResult, k: Cutoff) -> tuple[NDArray[np.int64], int]:
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
