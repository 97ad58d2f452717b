"""Results as users have them: the facts of an evaluation, and the doors that lead on from them.

What compares, diagnoses, draws and reports loads when it is first asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from krag_eval.core import (
    Advice,
    Cutoff,
    InvalidInput,
    Language,
    Length,
    ResultFacts,
    clipped,
    deepest,
    spoken,
)
from krag_eval.core.scoring.cutoffs import check_cutoff

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.comparison.gates import GateReport
    from krag_eval.comparison.slices import Slices
    from krag_eval.core import Matcher
    from krag_eval.diagnosis.causes import Deeper, Index
    from krag_eval.diagnosis.diagnosis import Diagnosis, ForeignIndex
    from krag_eval.intervals.intervals import BudgetToRecall
    from krag_eval.lab.predicting import Predictions
    from krag_eval.lab.score_cutoffs import ScoreCutoffs
    from krag_eval.loading.loading import ChunkSource, Source


class EvaluationResult(ResultFacts):
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
        source: ResultFacts = self
        if dataset is not None:
            from krag_eval.again import evaluated_again
            from krag_eval.core.evaluator import FactsEvaluator

            source = evaluated_again(self, dataset, FactsEvaluator, matcher)
        return diagnosed(
            source._evidence(Advice("pass {}, what it was evaluated on", dataset=...)),
            source.labels,
            deepest(self.k) if k is None else check_cutoff(k),
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
        from krag_eval.intervals.intervals import check_sampling

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
        from krag_eval.intervals.intervals import check_sampling
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
        from krag_eval.intervals.intervals import check_sampling
        from krag_eval.lab.score_cutoffs import score_cutoffs

        self._warn_of_failed()
        cutoff, sampling = self.evaluated_cutoff(k), check_sampling(level, n_resamples, seed)
        condensed = self.settings.get("unjudged") == "leave_out"
        return score_cutoffs(self._evidence(), cutoff, sampling, condensed=condensed)

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
        from krag_eval.intervals.intervals import check_sampling

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

        from krag_eval.plotting import metric_bars

        return metric_bars(self, k, ax)

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
        from krag_eval.report import write_report

        check_not_its_rows(self, path)
        write_report(self, path, **page)

    def confidence_intervals(self, level: float = 0.95, **sampling: Any) -> pd.DataFrame:
        """Return an interval for every average at every cutoff.

        See ``krag_eval.intervals.intervals.confidence_intervals``, also for the other arguments:
        ``clusters="source"`` draws all queries of a source together.
        """
        from krag_eval.intervals.intervals import confidence_intervals

        return confidence_intervals(self, level, **sampling)

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
        from krag_eval.intervals.intervals import budget_to_recall, check_sampling

        sampling = check_sampling(level, n_resamples, seed)
        return budget_to_recall(self, recall, length, sampling)

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

        return read(path, cls)
