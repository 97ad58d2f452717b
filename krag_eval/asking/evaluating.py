"""Evaluating retrievers: one call from retriever and questions to a result, or to a comparison."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from langchain_core.runnables.config import RunnableConfig, get_config_list

from krag_eval.asking.asking import Answered, Answers, Asking, Call, RetrieverLike, Round
from krag_eval.asking.checkpoint import Checkpoint, purpose_of
from krag_eval.comparison.comparable import checked_metrics
from krag_eval.comparison.comparison import Comparison, compare
from krag_eval.core import (
    DEFAULT_CUTOFFS,
    EVALUATOR_OPTIONS,
    LISTS,
    PLAN_OPTIONS,
    Cutoffs,
    DocumentLike,
    InvalidInput,
    InvalidType,
    Length,
    Location,
    Place,
    QuerySet,
    Tag,
    _,
    bar_of,
    check_options,
    clipped,
    deepest,
    errors,
    labels_for,
    muted,
    spelled,
    warn,
)
from krag_eval.core.documents import checked_tags
from krag_eval.core.files import bars
from krag_eval.core.matching.parallel import check_n_jobs
from krag_eval.evaluator import OfflineRetrievalEvaluator, PartitionPlan
from krag_eval.intervals.intervals import Clusters, check_sampling
from krag_eval.loading import loading, table, vocabularies
from krag_eval.loading.cells import documents_in, with_status
from krag_eval.loading.dataset import Dataset, with_defaults
from krag_eval.loading.vocabularies import as_row

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.core import Matcher, Metric
    from krag_eval.result import EvaluationResult


def evaluate_retriever(
    retriever: RetrieverLike,
    dataset: Rows,
    k: Cutoffs = DEFAULT_CUTOFFS,
    matcher: str | Matcher | None = None,
    *,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_key: str | None = None,
    **options: Any,
) -> EvaluationResult:
    """Ask a retriever every question of a data set, and evaluate what comes back.

    Each question is one ``invoke`` of the retriever, in LangChain's config, so callbacks, tags and
    metadata reach it as always. Options, data set and cutoffs are checked before the first question
    is asked. Ctrl-C, in a notebook its button, ends the run within about a second, also if calls
    hang: they are left behind in their threads.

    Args:
        retriever: A LangChain retriever or any other ``Runnable`` from question to documents, or
            a plain function, sync or async. Documents may be LangChain ``Document`` objects,
            strings or dicts; best first.
        dataset: Rows ``{"question": text, "actual": [documents]}``, a DataFrame with these
            columns, a dict from question to documents, or what :func:`~krag_eval.load_dataset`
            returns or takes: a path, other tools' columns, Hugging Face data sets, LangSmith
            examples. A question may occur twice; its query is then labelled by ``"id"``
            or position. Other columns are kept as tags of the queries, where they hold short texts,
            numbers or booleans alone.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        matcher: What makes a retrieved document a match; ``"text"`` if neither given nor set by
            the data set.
        budget: How much may fit, or several such numbers; see
            :meth:`OfflineRetrievalEvaluator.evaluate
            <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all built-in
            ones if not given.
        input_key: The key under which a chain takes its question, ``{input_key: question}``; not
            given, it is asked the question itself.
        output_key: The key under which a chain returns the documents, such as ``"context"``.
        on_error: What happens when the retriever raises, or returns no list of documents.
            ``"record"``: the others are asked; the query counts as nothing retrieved and is listed
            in ``result.failures``; ``result.retry_failed()`` asks it again. ``"raise"``: that
            exception, saying which query it was. If not given, failures are recorded, so that one
            of them costs no answer; but if the first three queries fail and none is answered, or
            there are fewer and all fail, the first exception is raised, since a retriever that
            does not work at all should not score 0.
        max_concurrency: How many questions are asked at the same time; LangChain's default, its
            number of threads, if not given. For latencies free of one another, 1.
        timeout: Seconds that an answer may take; any time if not given. A question without an
            answer by then failed, with a ``TimeoutError``. A call that cannot be ended (one that
            awaits is cancelled) goes on in a thread that is given up, and another takes its place.
            After as many of these as there may be calls at the same time, nothing more is asked,
            and the questions that are left failed too.
        config: LangChain's config for each call (callbacks, tags, metadata, …), or a list with
            one per question.
        progress: Whether to show a progress bar; if not given, in terminals and notebooks.
        checkpoint: A file that gains one line per answer. A run that was killed or interrupted
            resumes when it is called again: what is in the file is not asked again, what failed
            is. A file made for other questions, in another order, or for a retriever
            of another name or with other settings is refused.
        checkpoint_key: What identifies the retriever in the checkpoint, such as ``"bge-m3, index of
            May"``, in place of its name and settings: a mended timeout then costs no answer, and a
            rebuilt index is noticed when the key is changed with it. A checkpoint of another key is
            refused; one made without any is taken over, with a warning if settings differ.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``threshold``,
            ``matching_criteria``, ``conventions``, ``no_ground_truth``, ``grade_key``, …

    Returns:
        The result, with ``result.latency`` (mean, p50 and p95 in seconds),
        ``result.retrieval.seconds`` per query, and ``result.failures``.

    Raises:
        TypeError: If the retriever cannot be asked, or an argument is of a wrong type.
        ValueError: If an argument is out of range, the data set has no question texts, the
            checkpoint was made for something else, or there is a ``checkpoint_key`` without one.
        OSError: If the checkpoint cannot be written, or another run is writing to it.
        RuntimeError: If an async function is to be asked while an event loop is running, as in a
            notebook; there, ``await aevaluate_retriever(…)``.

    Warns:
        KragEvalWarning: If queries failed and were recorded, or a checkpoint made without a key is
            taken over for a retriever with other settings.

    >>> opening = {"When does it open?": ["At nine.", "At the corner."]}
    >>> dataset = [{"question": "When does it open?", "actual": ["At nine."]},
    ...            {"question": "Where is it?", "actual": ["At the corner."]}]
    >>> result = evaluate_retriever(lambda question: opening.get(question, []), dataset, k=1)
    >>> result.to_dict()["hit_rate@1"], result.failures.empty
    (0.5, True)
    """
    check_options(evaluate_retriever, options, EVALUATOR_OPTIONS)
    call = Call.of(retriever, input_key, output_key)
    evaluation = Evaluation.of(dataset, k, matcher, metrics, options, budget=budget, length=length)
    asking = Asking(
        on_error, max_concurrency, timeout, config, progress, checkpoint, checkpoint_key
    )
    return Run(call, evaluation, asking).now()


async def aevaluate_retriever(
    retriever: RetrieverLike,
    dataset: Rows,
    k: Cutoffs = DEFAULT_CUTOFFS,
    matcher: str | Matcher | None = None,
    *,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_key: str | None = None,
    **options: Any,
) -> EvaluationResult:
    """Do as :func:`evaluate_retriever`, through the retriever's own ``ainvoke``.

    As many questions are asked at the same time as LangChain has threads, if ``max_concurrency``
    is not given: asking all together would measure how they wait for one another.

    >>> import asyncio
    >>> async def retriever(question):
    ...     return ["At nine."]
    >>> dataset = [{"question": "When does it open?", "actual": ["At nine."]}]
    >>> asyncio.run(aevaluate_retriever(retriever, dataset, k=1)).to_dict()["mrr@1"]
    1.0
    """
    check_options(aevaluate_retriever, options, EVALUATOR_OPTIONS)
    call = Call.of(retriever, input_key, output_key)
    evaluation = Evaluation.of(dataset, k, matcher, metrics, options, budget=budget, length=length)
    asking = Asking(
        on_error, max_concurrency, timeout, config, progress, checkpoint, checkpoint_key
    )
    return await Run(call, evaluation, asking).soon()


def evaluate_retrievers(
    retrievers: Mapping[str, RetrieverLike],
    dataset: Rows,
    k: Cutoffs = DEFAULT_CUTOFFS,
    matcher: str | Matcher | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    baseline: str | None = None,
    clusters: str | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: Mapping[str, str | os.PathLike[str]] | None = None,
    checkpoint_key: Mapping[str, str] | None = None,
    **options: Any,
) -> Comparison:
    """Ask several retrievers the same questions, one after the other, and compare them.

    Everything is checked before the first question is asked.

    Args:
        retrievers: Name -> retriever, two or more; see
            :func:`~krag_eval.evaluate_retriever` for what a retriever may be.
        dataset: The questions and their ground truth; see there.
        k: A cutoff or several.
        matcher: What makes a retrieved document a match.
        metric: What to compare, ``"ndcg@10"`` or several; nDCG at the deepest cutoff if not given.
        baseline: The name of the retriever to hold the others against, instead of every pair; see
            :func:`~krag_eval.compare`.
        clusters: A tag of the questions, such as ``"source"``: those that share its value belong
            together; see there.
        level: See :func:`~krag_eval.compare`, also for ``n_resamples`` and ``seed``.
        n_resamples: Number of resamples and of random swaps.
        seed: The same seed gives the same digits.
        budget: How much may fit, or several such numbers; see
            :meth:`OfflineRetrievalEvaluator.evaluate
            <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all built-in
            ones if not given.
        input_key: For all retrievers; one that differs is made alike by LangChain's own means,
            ``{"question": RunnablePassthrough()} | chain | itemgetter("context")``.
        output_key: For all retrievers.
        on_error: ``"raise"`` or ``"record"``; a query that failed counts as nothing retrieved. If
            not given, failures are recorded unless a retriever does not work at all; see there. An
            exception that ends the run has the results of the retrievers asked before as its
            attribute ``results``.
        max_concurrency: How many questions are asked at the same time.
        timeout: Seconds that an answer may take; see there.
        config: LangChain's config.
        progress: Whether to show a bar for each retriever.
        checkpoint: Name -> file, for all retrievers or some: ``{"bm25": "bm25.jsonl"}``.
        checkpoint_key: Name -> what identifies that retriever in its checkpoint, for all or some;
            see there.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`.

    Returns:
        The comparison: intervals and paired tests; ``.results`` holds each retriever's result,
        ``.latency`` how fast each was.

    Raises:
        TypeError: If an argument is of a wrong type.
        ValueError: If one is out of range, there are fewer than two retrievers, two write to one
            checkpoint, or the questions have no tag ``clusters`` or one value of it alone.

    >>> texts = [f"Rule {i}" for i in range(40)]
    >>> dataset = [{"question": f"What is rule {i}?", "actual": [text]}
    ...            for i, text in enumerate(texts)]
    >>> def right(question):
    ...     return [f"Rule {question.split()[-1].rstrip('?')}"]
    >>> def half(question):
    ...     return right(question) if int(right(question)[0].split()[-1]) < 20 else texts[:1]
    >>> comparison = evaluate_retrievers({"half": half, "right": right}, dataset, k=5)
    >>> print(comparison.summary())
    right is better than half on ndcg@5 by 0.500 (1.000 against 0.500; 95 % interval 0.350 to 0.650;
    p < 0.001 after Holm).
    >>> comparison.results["half"].to_dict()["hit_rate@5"]
    0.5
    """
    check_options(evaluate_retrievers, options, EVALUATOR_OPTIONS)
    evaluation = Evaluation.of(dataset, k, matcher, metrics, options, budget=budget, length=length)
    asking = Asking(on_error, max_concurrency, timeout, config, progress)
    calls = _calls(retrievers, input_key, output_key)
    runs = _runs(calls, evaluation, asking, checkpoint, checkpoint_key)
    sampling = {"level": level, "n_resamples": n_resamples, "seed": seed}
    return Runs.of(runs, evaluation, metric, baseline, clusters, sampling).now()


async def aevaluate_retrievers(
    retrievers: Mapping[str, RetrieverLike],
    dataset: Rows,
    k: Cutoffs = DEFAULT_CUTOFFS,
    matcher: str | Matcher | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    baseline: str | None = None,
    clusters: str | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: Mapping[str, str | os.PathLike[str]] | None = None,
    checkpoint_key: Mapping[str, str] | None = None,
    **options: Any,
) -> Comparison:
    """Do as :func:`evaluate_retrievers`, through each retriever's own ``ainvoke``."""
    check_options(aevaluate_retrievers, options, EVALUATOR_OPTIONS)
    evaluation = Evaluation.of(dataset, k, matcher, metrics, options, budget=budget, length=length)
    asking = Asking(on_error, max_concurrency, timeout, config, progress)
    calls = _calls(retrievers, input_key, output_key)
    runs = _runs(calls, evaluation, asking, checkpoint, checkpoint_key)
    sampling = {"level": level, "n_resamples": n_resamples, "seed": seed}
    return await Runs.of(runs, evaluation, metric, baseline, clusters, sampling).soon()


#: Questions and their ground truth: rows or a table of them, a dict from question to documents, or
#: whatever else ``load_dataset`` takes.
Rows: TypeAlias = "loading.Source | pd.DataFrame | Mapping[str, Sequence[Any]]"

_ASKED = ("question", "actual", "predicted", table.OWN)
_LOAD = "load_dataset knows the column names of other tools, and takes yours"


@dataclass(frozen=True)
class Questions:
    """The questions of a data set and their ground truth.

    Attributes:
        texts: What to ask, per query; the same text may occur twice.
        labels: One label per query: its text, or its id or position where texts repeat.
        actual: Per query, its ground truth.
        defaults: Options for the evaluator that come with the data set, with its lists.
        tags: Name -> one value per query, by the columns that have no other meaning.
        notes: Which columns cannot be tags.
    """

    texts: list[str]
    labels: list[str | int]
    actual: list[Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, list[Tag]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, dataset: Rows) -> Questions:
        """Read the questions and their ground truth from a data set, a data frame or rows.

        Raises:
            TypeError: If it is none of these, or a question is no text.
            ValueError: If there are no questions, or a row or the data set lacks them.

        >>> Questions.of([{"question": "When?", "actual": ["At nine."]}]).labels
        ['When?']
        """
        if isinstance(dataset, Dataset):
            return _of_dataset(dataset)
        with loading.advised_to_load():
            if isinstance(dataset, Mapping) and not loading.is_table(dataset):
                return _of_rows(loading.rows_by_question(dataset))
            if isinstance(dataset, str | bytes) or _is_foreign(dataset):
                return _of_dataset(loading.dataset_in(dataset))
            if table.is_frame(dataset):
                frame = cast("pd.DataFrame", dataset).rename(columns=str)
                once = frame.loc[:, ~frame.columns.duplicated(keep=False)]
                return _of_rows(once.to_dict("records"))
            if isinstance(dataset, Sequence):
                return _of_rows(dataset)
        return _of_dataset(loading.dataset_in(dataset))

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return options for the evaluator, with what the data set brings where they are silent."""
        if "tags" in given:
            checked_tags(given["tags"] or {}, len(self))
        elif self.notes:
            warn(f"dataset: {self.notes[0]}.", errors.Advice(_("pass {} to keep none"), tags={}))
        labels = labels_for(given.get("matcher"), self.labels, self.texts)
        options = {"queries": labels, "tags": self.tags, **with_defaults(self.defaults, given)}
        return {**options, "tags": with_status(options["tags"], self.tags)}

    def __len__(self) -> int:
        return len(self.texts)


# The lists beside the ground truth that hold for any retriever.
_OF_TRUTH = ("judged", "unwanted")


def _of_dataset(dataset: Dataset) -> Questions:
    if dataset.questions is None:
        problem = f": {dataset!r} does not hold the text of every question"
        fix = "read it with its questions, or pass rows of question and actual documents"
        raise InvalidInput("dataset", problem, fix)
    given = [*dataset.questions], [*dataset.queries], [*dataset.actual]
    lists = {name: some for name in _OF_TRUTH if (some := getattr(dataset, name)) is not None}
    return Questions(*given, {**dataset.defaults, **lists}, dataset.tags)


def _of_rows(rows: Sequence[Any]) -> Questions:
    if not len(rows):
        raise InvalidInput("dataset", "must hold at least one question, got none")
    texts, actual, accepted, reviews = [], [], [], table.Reviews()
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            problem = f'must be a row {{"question": …, "actual": [documents]}}, got {clipped(row)}'
            raise InvalidType("dataset", problem, query=at)
        if not reviews.admits(row, Place("dataset", row=at)):
            continue
        accepted.append(row)
        for name in ("question", "actual"):
            if name not in row:
                problem = f"has no {name!r}, only {', '.join(map(repr, row))}"
                raise InvalidInput("dataset", problem, _LOAD, query=at)
        if not isinstance(row["question"], str) or not row["question"]:
            problem = f"must be text, got {clipped(row['question'])}"
            raise InvalidType("dataset", problem, query=at, within="['question']")
        texts.append(row["question"])
        where = Location("dataset", at, "['actual']")
        actual.append(documents_in(row["actual"], where, ground_truth=True))
    reviews.check("dataset", len(accepted))
    tags = table.TagReader(_ASKED, choice=True)
    found = tags.columns([tags.read(row, table.Mark()) for row in accepted])
    labels = labels_of(texts, [row.get("id") for row in accepted])
    listed = [table.lists_in(row) for row in accepted]
    lists = {name: [one.get(name) for one in listed] for name in _OF_TRUTH
             if any(name in one for one in listed)}  # fmt: skip
    return Questions(texts, labels, actual, lists, found, table.notes_on(tags.left_out))


def labels_of(texts: list[str], ids: Sequence[Any] = ()) -> list[str | int]:
    """Label by question; where questions repeat, by id, or by position where there is no id."""
    different = len(set(texts))
    if different == len(texts):
        return list(texts)
    told = _(
        "{n} queries have {different} different questions, so all are labelled by their positions."
    )
    labels: list[str | int] = list(range(len(texts)))
    known = all(isinstance(one, str | int) and not isinstance(one, bool) for one in ids)
    if known and len(set(ids)) == len(texts):
        told = _(
            "{n} queries have {different} different questions, so all are labelled by their ids."
        )
        labels = list(ids)
    warn(told.format(n=len(texts), different=different))
    return labels


def _is_foreign(value: object) -> bool:
    """Tell whether this is a table that load_dataset knows and that is not in our own columns."""
    pandas = sys.modules.get("pandas")
    is_frame = pandas is not None and isinstance(value, pandas.DataFrame)
    if isinstance(value, Mapping) or (table.is_frame(value) and not is_frame):
        return True
    names: Iterable[Any] = getattr(value, "columns", ()) if is_frame else ()
    if isinstance(value, Sequence) and len(value):
        first = as_row(value[0]) or value[0]
        names = first if isinstance(first, Mapping) else ()
    own = {"question", "actual"} <= {*names}
    return not own and len(vocabularies.KNOWN.intersection(names)) > 1


@dataclass(frozen=True)
class Evaluation:
    """What retrievers are asked, and how their answers are evaluated; checked.

    Attributes:
        questions: The questions and their ground truth.
        plan: The metrics, the cutoffs and how documents are matched.
        options: What the evaluator takes beside documents.
    """

    questions: Questions
    plan: PartitionPlan
    options: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        dataset: Rows,
        k: Any,
        matcher: str | Matcher | None,
        metrics: Iterable[str | Metric] | None,
        options: Mapping[str, Any],
        *,
        budget: int | Iterable[int] | None,
        length: Length,
    ) -> Evaluation:
        """Refuse before anything is asked what could not be evaluated afterwards."""
        questions = Questions.of(dataset)
        given = options if matcher is None else {**options, "matcher": matcher}
        options = questions.options(given)
        check_n_jobs(options.get("n_jobs"))
        settings = {name: options[name] for name in PLAN_OPTIONS if name in options}
        lists = [name for name in LISTS if options.get(name) is not None]
        settings |= {"budget": budget, "length": length, "metrics": metrics, "lists": lists}
        plan = PartitionPlan.of(k, **settings)
        with muted():  # warnings come when it is evaluated
            nothing: list[list[Any]] = [[]] * len(questions)
            queries = QuerySet.from_lists(questions.actual, nothing, options["queries"])
            plan.plan.graded(queries).read(queries)
        return cls(questions, plan, options)

    @property
    def deepest_ndcg(self) -> str:
        """What is compared if nothing else is asked for: nDCG at the deepest cutoff."""
        return f"ndcg@{spelled(deepest(self.plan.cutoffs))}"

    def check_clusters(self, tag: str | None) -> None:
        """Refuse a tag that does not divide the questions; warnings come with the comparison."""
        if tag is None:
            return
        kept = {name: self.options[name] for name in ("tags", "no_ground_truth")
                if name in self.options}  # fmt: skip
        # Which queries count depends on there being ground truth, not on what it says.
        anything = [["?"][: len(items)] for items in self.questions.actual]
        with muted():
            nothing = OfflineRetrievalEvaluator(anything, [[] for _ in anything], **kept)
            Clusters.of([nothing.evaluate(1, metrics=["recall"])], tag)

    def result(self, predicted: list[list[DocumentLike]]) -> EvaluationResult:
        """Evaluate the answers, in the order of the questions."""
        evaluator = OfflineRetrievalEvaluator(self.questions.actual, predicted, **self.options)
        plan = self.plan
        length: Length = plan.length or "words"
        return evaluator.evaluate(plan.cutoffs, length=length, metrics=plan.metrics.values())


@dataclass(frozen=True)
class Run:
    """One way to ask a retriever the questions; checked.

    It can be run again, for the queries that failed.

    Attributes:
        call: How the retriever is asked.
        evaluation: What it is asked, and how its answers are evaluated.
        asking: How many questions at a time, for how long, and what is kept.
        title: What stands before the progress bar.
        in_any_loop: Whether an async function may be asked also where an event loop is running, as
            in a notebook. It is asked in another.
        known: Position -> an answer that need not be asked for.
    """

    call: Call
    evaluation: Evaluation
    asking: Asking
    title: str = "retrieving"
    in_any_loop: bool = False
    known: Mapping[int, Answered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config, n = self.asking.config, len(self.evaluation.questions)
        if not isinstance(config, Mapping | None) and len(config) != n:
            problem = f"must have one config per question, {n}, got {len(config)}"
            raise InvalidInput("config", problem, "pass a single config to use it for all")

    def now(self, **changes: Any) -> EvaluationResult:
        """Ask what is not known, and evaluate everything.

        Args:
            **changes: What is asked otherwise than the first time.
        """
        run = self._changed(changes)
        if run.call.is_async_only and not run.in_any_loop:
            _check_no_loop()
        with run._answers() as answers:
            while positions := answers.unasked():
                round_ = run._round(answers, positions)
                (round_.in_loop if run.call.is_async_only else round_.now)()
                answers.raise_what_stopped()
            return run._result(answers)

    async def soon(self, **changes: Any) -> EvaluationResult:
        """Do as :meth:`now`, asking asynchronously."""
        run = self._changed(changes)
        with run._answers() as answers:
            while positions := answers.unasked():
                await run._round(answers, positions).soon()
                answers.raise_what_stopped()
            return run._result(answers)

    def _changed(self, changes: dict[str, Any]) -> Run:
        allowed = ("on_error", "max_concurrency", "timeout", "config", "progress")
        for name in changes:
            if name not in allowed:
                named = ", ".join(map(repr, allowed))
                raise InvalidType(name, f": retry_failed() takes {named} alone, got {name!r}")
        return replace(self, asking=replace(self.asking, **changes)) if changes else self

    @contextmanager
    def _answers(self) -> Iterator[Answers]:
        """Yield where answers go, with those that need not be asked for."""
        questions, asking, call = self.evaluation.questions, self.asking, self.call
        with call.asked(questions.texts):
            keeper = None
            if asking.checkpoint is not None:
                key = asking.checkpoint_key
                purpose = purpose_of(call.runnable, call.settings, questions.texts, key)
                keeper = Checkpoint(asking.checkpoint, purpose)
            with Answers(questions.labels, asking.on_error, keeper) as answers:
                answers.add_known(self.known)
                n, done = len(questions), len(answers.known)
                answers.bar = bar_of(asking.progress, total=n, done=done, title=self.title)
                yield answers

    def _round(self, answers: Answers, positions: list[int]) -> Round:
        """Return what asks, with LangChain's config for each position in an object of its own."""
        given, most = self.asking.config, self.asking.max_concurrency
        if not isinstance(given, Mapping | None):
            given = [given[i] for i in positions]
        configs = get_config_list(given, len(positions))
        if most is not None:
            configs = [{**one, "max_concurrency": most} for one in configs]
        by_position = dict(zip(positions, configs, strict=True))
        texts = self.evaluation.questions.texts
        return Round(self.call, texts, answers, self.asking.timeout, by_position)

    def _result(self, answers: Answers) -> EvaluationResult:
        answers.close()
        predicted, run = answers.run(replace(self, known=answers.known))
        with bars(self.asking.progress):
            result = self._evaluated(predicted)
        return replace(result, retrieval=run)

    def _evaluated(self, predicted: list[list[DocumentLike]]) -> EvaluationResult:
        """Evaluate the answers."""
        return self.evaluation.result(predicted)


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "the retriever is an async function and an event loop is running, as in a notebook; "
        "write await aevaluate_retriever(…) instead."
    )


@dataclass(frozen=True)
class Runs:
    """A run for each of several retrievers, and how to compare them; checked."""

    runs: Mapping[str, Run]
    metric: str | Sequence[str]
    comparing: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        runs: Mapping[str, Run],
        evaluation: Evaluation,
        metric: str | Sequence[str] | None,
        baseline: str | None,
        clusters: str | None,
        sampling: Mapping[str, Any],
    ) -> Runs:
        """Check how the results are to be compared, before anything is asked."""
        check_sampling(**sampling)
        if baseline is not None:
            errors.one_of("baseline", baseline, list(runs))
        evaluation.check_clusters(clusters)
        metric = evaluation.deepest_ndcg if metric is None else metric
        checked_metrics(dict.fromkeys(runs, evaluation.plan.nothing().summary), metric)
        return cls(runs, metric, {"baseline": baseline, "clusters": clusters, **sampling})

    def now(self) -> Comparison:
        """Ask one retriever after the other, and compare them."""
        with _saving() as results:
            for name, run in self.runs.items():
                results[name] = run.now()
        return self._compared(results)

    async def soon(self) -> Comparison:
        """Do as :meth:`now`, asking asynchronously."""
        with _saving() as results:
            for name, run in self.runs.items():
                results[name] = await run.soon()
        return self._compared(results)

    def _compared(self, results: dict[str, EvaluationResult]) -> Comparison:
        return replace(compare(results, self.metric, **self.comparing), results=results)


@contextmanager
def _saving() -> Iterator[dict[str, EvaluationResult]]:
    """Collect results; hand on what is done with the exception that ends the rest."""
    results: dict[str, EvaluationResult] = {}
    try:
        yield results
    except BaseException as error:
        if results:
            error.results = results  # type: ignore[attr-defined]
            error.add_note(
                f"The results of {', '.join(map(repr, results))} are this exception's attribute "
                "results; in a notebook, sys.last_value.results."
            )
        raise


def _calls(retrievers: object, input_key: str | None, output_key: str | None) -> dict[str, Call]:
    """Return how each of several retrievers is asked."""
    if not isinstance(retrievers, Mapping):
        be = 'map names to retrievers, such as {"bm25": first, "dense": second}'
        raise errors.must("retrievers", be, retrievers, kind=InvalidType)
    for name in retrievers:
        if not isinstance(name, str):
            raise errors.must("retrievers", "have texts as names", name, kind=InvalidType)
    if len(retrievers) < 2:
        fix = "evaluate_retriever evaluates one alone"
        raise errors.must("retrievers", "hold at least two to compare", len(retrievers), fix)
    return {name: Call.of(each, input_key, output_key) for name, each in retrievers.items()}


def _runs(
    calls: dict[str, Call], evaluation: Evaluation, asking: Asking, checkpoint: Any, key: Any
) -> dict[str, Run]:
    """Return a run for each retriever, with its own checkpoint if it has one."""
    files = _by_name("checkpoint", checkpoint, calls)
    keys = _by_name("checkpoint_key", key, calls)
    runs = {}
    for name, call in calls.items():
        own = replace(asking, checkpoint=files.get(name), checkpoint_key=keys.get(name))
        runs[name] = Run(call, evaluation, own, name)
    if len({os.path.realpath(path) for path in files.values()}) < len(files):
        problem = ": each retriever needs a file of its own, got one twice"
        raise InvalidInput("checkpoint", problem)
    return runs


def _by_name(argument: str, given: Any, calls: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is given for each retriever; nothing for those that are not named."""
    if not isinstance(given, Mapping | None):
        raise errors.must(argument, "map names of retrievers", given, kind=InvalidType)
    for name in given or ():
        errors.one_of(argument, name, list(calls))
    return given or {}
