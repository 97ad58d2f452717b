"""Sweeps: every splitter with every retriever on the same questions, in one table.

Each cell of the grid is asked and evaluated once. What came back is kept in a folder as it comes,
so that a sweep that was killed goes on where it stopped. pandas loads for the table.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from langchain_core.documents import Document

from krag_eval import __version__
from krag_eval.asking.asking import Asking, Call, RetrieverLike
from krag_eval.asking.checkpoint import n_kept, note_of
from krag_eval.asking.evaluating import Evaluation, Rows, Run
from krag_eval.comparison.comparable import checked_metric
from krag_eval.comparison.comparison import Comparison, compare, part_of
from krag_eval.core import (
    EVALUATOR_OPTIONS,
    METRICS,
    Advice,
    AnyOf,
    Budget,
    Conventions,
    Cutoff,
    Cutoffs,
    DocumentLike,
    InvalidInput,
    InvalidType,
    KragEvalWarning,
    Length,
    Metric,
    Shown,
    _,
    called,
    check_options,
    clipped,
    deepest,
    documents,
    errors,
    id_of,
    metadata_of,
    spelled,
    text_of,
    warn,
)
from krag_eval.core.documents import as_document
from krag_eval.core.matching import parallel
from krag_eval.core.matching.identity import digest_of, function_name
from krag_eval.diagnosis.causes import Index
from krag_eval.diagnosis.diagnosis import Diagnosis
from krag_eval.intervals.intervals import Clusters, check_sampling
from krag_eval.loading.cells import check_chunks
from krag_eval.loading.table import is_frame
from krag_eval.result import EvaluationResult

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.comparison.paired import Difference
    from krag_eval.core import Matcher


class TextSplitter(Protocol):
    """What LangChain's text splitters have."""

    def split_text(self, text: str) -> Iterable[DocumentLike]:
        """Cut a text into chunks."""


#: Cuts a text into chunks.
Splitter: TypeAlias = "Callable[[str], Iterable[DocumentLike]] | TextSplitter"
#: Makes a retriever of chunks.
RetrieverMaker: TypeAlias = "Callable[[list[Document]], RetrieverLike]"
#: What quality is paid for with: words of context, or time.
Cost: TypeAlias = Literal["context", "latency"]
COSTS: tuple[Cost, ...] = get_args(Cost)

# What is compared if nothing is named: the first of these that there is.
_TOLD = ("macro_token_recall", "micro_token_recall", "macro_recall", "micro_recall", "ndcg")
# Columns of the table, per cutoff, and per budget.
_AT_K = ("macro_recall", "macro_token_recall", "macro_token_precision", "token_iou", "redundancy",
         "ndcg")  # fmt: skip
_WITHIN = ("macro_recall", "macro_token_recall", "ndcg")
# A choice between systems needs two halves, and a mean over one query says nothing.
_FEWEST_TO_CHOOSE = 4
_LONGEST_FOLDER = 40
# What LangChain's text splitters make of several texts: of one, each letter would be a chunk.
_OF_SEVERAL = ("create_documents", "split_documents", "transform_documents")


def sweep(
    corpus: Iterable[DocumentLike],
    questions: Rows,
    splitters: Mapping[str, Splitter],
    retrievers: Mapping[str, RetrieverMaker],
    k: Cutoffs = 5,
    budget: int | Iterable[int] | None = 1000,
    *,
    matcher: str | Matcher | None = "coverage(union=true)",
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    metric: str | None = None,
    baseline: str | tuple[str, str] | None = None,
    clusters: str | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: Literal["raise", "record"] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Sweep:
    """Try every splitter with every retriever, and put what comes out into one table.

    Each splitter cuts the corpus; each retriever is made of the chunks, and asked the questions.
    What differs in nothing is run once: splitters that give the same chunks, to the letter, share
    their runs. Arguments are checked before anything is cut or asked.

    One metric is compared, each cell with the baseline, in one family for Holm's correction. And
    since the best of many is partly the luckiest, it is also chosen on one half of the questions
    and reported on the other half.

    Args:
        corpus: Texts or documents. Chunks inherit the metadata of the document they come from.
        questions: What :func:`~krag_eval.evaluate_retriever` takes as its data set, such as what
            :func:`~krag_eval.load_dataset` returns: questions with the passages that answer them.
        splitters: Name -> function from a text to its chunks, texts or documents, or a splitter
            with the method ``split_text``, as LangChain's text splitters have it.
        retrievers: Name -> function that makes a retriever of the list of chunks, which are
            LangChain documents: a function from question to documents, or any LangChain retriever.
            Fusion with other weights, or a reranker, is one more such function. Let it return
            enough for the largest budget.
        k: A cutoff or several.
        budget: How much may fit, or several such numbers; ``None`` for no budgets.
        matcher: What makes a chunk a match. Ids and exact texts change with every cut, so coverage,
            with pieces counted together, if not given.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all built-in
            ones if not given.
        metric: What is compared and chosen by, such as ``"recall@5"``. If not given: token recall
            in the largest budget; without budgets, at the deepest cutoff; with a matcher that knows
            no words, recall.
        baseline: The cell to hold the others against, as ``("200", "bm25")`` or as it is called,
            ``"200 + bm25"``; the first if not given.
        clusters: A tag of the questions: those that share its value belong together, in the
            comparison and in the halves; see :func:`~krag_eval.compare`.
        level: See there, also for ``n_resamples``.
        n_resamples: Number of resamples and of random swaps.
        seed: The same seed gives the same digits, and the same halves.
        folder: Where answers and results are kept, each cell in a folder of its own; made if it is
            not there. A sweep that was killed goes on where it stopped when it is called again.
            Answers belong to a retriever's name, what makes it (the source of your function and of
            those it uses, its arguments and what else it holds), the chunks and the questions. What
            that does not tell, such as a server behind it, asks for another folder when it changes;
            :meth:`~krag_eval.sweeping.sweep.Sweep.summary` says what was reused. Results are made
            again from the answers if the evaluation has changed, and always with a matcher, metric
            or length of your own.
        n_jobs: Processes that work on cells at the same time, -1 for one per core. What splitters
            and retrievers hold is then sent to them. Latencies are those of a busy machine.
        max_concurrency: How many questions a retriever is asked at the same time; LangChain's
            default if not given. For latencies free of one another, 1.
        timeout: Seconds that an answer may take; see :func:`~krag_eval.evaluate_retriever`.
        on_error: What happens when a retriever fails; see :func:`~krag_eval.evaluate_retriever`.
        progress: Whether to show a bar for each cell; if not given, in terminals and notebooks.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``threshold``,
            ``conventions``, ``no_ground_truth``, …

    Returns:
        The cells, as a table and each with its result; the comparison; the choice.

    Raises:
        TypeError: If an argument is of a wrong type, or a splitter returns no chunks.
        ValueError: If an argument is out of range, there is nothing to cut, a splitter finds no
            chunk in the whole corpus, or a file in the folder was made for something else.
        OSError: If the folder cannot be written, or another run is writing to it.

    Warns:
        KragEvalWarning: What evaluating a cell warns of, after the name of the cell; and where
            answers are reused of a function of which it cannot be told whether it is the same.

    >>> corpus = [f"Rule {i} is about numbers. Rule {i} ends here." for i in range(30)]
    >>> questions = [{"question": f"What is rule {i}?", "actual": [f"Rule {i} is about numbers."]}
    ...              for i in range(30)]
    >>> def sentences(text):
    ...     return [f"{one.strip('. ')}." for one in text.split(". ")]
    >>> def by_number(chunks):
    ...     def found(question):
    ...         wanted = f"Rule {question.split()[-1].rstrip('?')} "
    ...         return [chunk for chunk in chunks if chunk.page_content.startswith(wanted)]
    ...     return found
    >>> found = sweep(corpus, questions, {"whole": lambda text: [text], "sentences": sentences},
    ...               {"by number": by_number}, k=1, budget=None, progress=False)
    >>> found.table[["chunks", "macro_token_recall@1", "words@1"]].values.tolist()
    [[30.0, 1.0, 9.0], [60.0, 1.0, 5.0]]
    >>> found.front("context")
    ['sentences + by number']
    """
    check_options(sweep, options, EVALUATOR_OPTIONS)
    parallel.check_n_jobs(n_jobs)
    check_sampling(level, n_resamples, seed)
    _check_callables("splitters", splitters, "a function from a text to its chunks")
    _check_callables("retrievers", retrievers, "a function that makes a retriever of chunks")
    texts = _checked_corpus(corpus)
    # What somebody looked at are chunks that were cut otherwise.
    how = matcher, metrics, {"judged": None, **options}
    with called("questions", "dataset"):
        evaluation = Evaluation.of(questions, k, *how, budget=budget, length=length)
    evaluation.check_clusters(clusters)
    grid = _grid(splitters, retrievers)
    compared = _checked_metric(evaluation, metric)
    if isinstance(baseline, tuple | list) and len(baseline) == 2:
        baseline = _name_of(*baseline)
    against = errors.one_of("baseline", next(iter(grid)) if baseline is None else baseline, [*grid])
    if folder is not None:
        if not isinstance(folder, os.PathLike):
            errors.text("folder", folder, 'the path of a folder, such as "sweep"')
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
    asking = Asking(on_error, max_concurrency, timeout, progress=progress)
    chunks = {name: _Chunks.of(name, cut, texts) for name, cut in splitters.items()}
    makers = {} if folder is None else {
        name: (function_name(one, marked=False), *digest_of(one))
        for name, one in retrievers.items()
    }  # fmt: skip
    setup = _Setup(evaluation, chunks, dict(retrievers), folder, asking, makers)
    cells = _worked(setup, grid, n_jobs)
    results = {cell.name: cell.result for cell in cells if cell.same_as is None}
    against = next(cell.same_as or cell.name for cell in cells if cell.name == against)
    found = Sweep(tuple(cells), compared, against)
    if len(results) == 1:
        return found
    sampling: dict[str, Any]
    sampling = {"level": level, "n_resamples": n_resamples, "seed": seed, "clusters": clusters}
    comparison = compare(results, compared, baseline=against, **sampling)
    choice = _chosen(results, compared, against, sampling)
    return replace(found, comparison=comparison, choice=choice)


@dataclass(frozen=True, eq=False)
class SweepCell:
    """One splitter with one retriever.

    Attributes:
        splitter: The name of the splitter.
        retriever: The name of the retriever.
        result: What came out.
        n_chunks: How many chunks the index holds.
        context: Words of the documents within the deepest cutoff, a mean over the questions; within
            the largest budget where there is no other cutoff.
        diagnosis: Where what is missing was lost, at that cutoff; without the index where too many
            pairs would have to be compared, or the matcher looks at the question.
        same_as: The name of the cell whose run this is, because its chunks are the same; ``None``
            if it was run itself.
        n_reused: How many of its answers were in the folder, and were not asked for again.
        answered: When the last of these was written; ``None`` if there are none.
    """

    splitter: str
    retriever: str
    result: EvaluationResult = field(repr=False)
    n_chunks: int
    context: float
    diagnosis: Diagnosis | None = field(default=None, repr=False)
    same_as: str | None = None
    n_reused: int = 0
    answered: datetime | None = None

    @property
    def name(self) -> str:
        """What it is called: ``"200 + bm25"``."""
        return _name_of(self.splitter, self.retriever)

    @property
    def latency(self) -> float:
        """The median of the seconds that an answer took; NaN if no question was answered."""
        return self.result.latency.p50

    @property
    def index_ceiling(self) -> float:
        """Share of the ground truth that is whole in some chunk, or was found; NaN if unknown."""
        ceiling = None if self.diagnosis is None else self.diagnosis.index_ceiling
        return math.nan if ceiling is None else ceiling

    @property
    def recall_by_one(self) -> float:
        """Macro recall where a passage counts only if one chunk holds it; NaN if unknown.

        At the cutoff of the diagnosis. Over the same questions as the other averages.
        """
        if self.diagnosis is None:
            return math.nan
        items, n = self.diagnosis.items, self.result.n_queries
        at = np.array([item.position for item in items], np.int64)
        found = np.bincount(at, [item.cause == "found" for item in items], n)
        counted = (found / np.maximum(np.bincount(at, minlength=n), 1))[self.result.counted]
        return math.fsum(counted) / len(counted) if len(counted) else math.nan

    def _row(self, compared: Iterable[str]) -> dict[str, Any]:
        """Return the row of the table; what is compared stands there whatever it is."""
        at = spelled(deepest(self.result.k))
        scores = {
            f"{name}@{spelled(k)}": scores[name]
            for k in self.result.k
            for scores in [self.result.averages(k)]
            for name in _known_of(_WITHIN if isinstance(k, Budget) else _AT_K, scores)
        }
        for metric in compared:
            key, k = _parsed(metric, self.result)
            scores.setdefault(metric, self.result.averages(k)[key])
        return {
            "splitter": self.splitter,
            "retriever": self.retriever,
            "chunks": self.n_chunks,
            **scores,
            f"recall_by_one@{at}": self.recall_by_one,
            "index_ceiling": self.index_ceiling,
            f"words@{at}": self.context,
            "latency_p50": self.latency,
        }


@dataclass(frozen=True)
class SweepChoice:
    """The best cell by one half of the questions, and what it is worth on the other half.

    The best of several on some questions is partly the luckiest there. Questions that had no say in
    the choice tell what it is worth.

    Attributes:
        name: The cell with the best average on the first half, the first of equals.
        metric: What was chosen by.
        value: Its average on the questions it was chosen by.
        held_out: Its average on the others.
        n_chosen_by: How many questions it was chosen by.
        n_held_out: How many others there are.
        overrated: By how much ``value`` is better than ``held_out``; below 0, it is not.
        shift: How much the mean of all cells changes from the first half to the other: what is due
            to the halves, which are not equally hard.
        difference: How it differs from the baseline on the others; ``None`` if it is the baseline.
    """

    name: str
    metric: str
    value: float
    held_out: float
    n_chosen_by: int
    n_held_out: int
    overrated: float
    shift: float
    difference: Difference | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Shown):
    """What came out of a sweep; made by :func:`~krag_eval.sweep`.

    ``krag_eval.plotting.pareto_points`` draws it, ``krag_eval.report.write_report`` writes
    it as a page.

    Attributes:
        cells: One per splitter and retriever, splitters in the order given, then retrievers.
        metric: What was compared.
        baseline: The cell the others were held against.
        comparison: Each cell that was run against the baseline; ``None`` if there is one alone.
        choice: The cell chosen by one half of the questions; ``None`` if there is one cell, or too
            few questions to halve.
    """

    cells: tuple[SweepCell, ...]
    metric: str
    baseline: str
    comparison: Comparison | None = field(default=None, repr=False)
    choice: SweepChoice | None = None

    @property
    def table(self) -> pd.DataFrame:
        """One row per cell.

        Of each cutoff, recall, token recall, token precision, token IoU, redundancy and nDCG; of
        each budget, recall, token recall and nDCG; and the metric that is compared, if it is none
        of these. ``recall_by_one@k`` counts passages that one
        chunk holds, ``words@k`` the words of context, ``latency_p50`` seconds. ``pareto`` says
        whether no other cell is as good in quality, context and latency, and better in one of
        them. ``same_as`` is the cell with the same chunks, which was run for both. ``failed`` is
        there where questions failed: how many, which count as nothing retrieved.
        """
        import pandas as pd

        front = set(self.front())
        index = pd.Index([cell.name for cell in self.cells], name="cell")
        compared = (self.quality_metric, self.metric)
        table = pd.DataFrame([cell._row(compared) for cell in self.cells], index=index)
        if any(cell.result.n_failed for cell in self.cells):
            table["failed"] = [cell.result.n_failed for cell in self.cells]
        table["pareto"] = [(cell.same_as or cell.name) in front for cell in self.cells]
        same = [cell.same_as for cell in self.cells]
        return table.assign(same_as=pd.Series(same, index, dtype=object))

    @property
    def results(self) -> dict[str, EvaluationResult]:
        """Cell -> its result."""
        return {cell.name: cell.result for cell in self.cells}

    @property
    def quality_metric(self) -> str:
        """What stands for quality where it is held against costs: the metric at the cutoff.

        Within a budget all cells cost much the same; so it is taken at the deepest cutoff that is
        none, where there is one.
        """
        result = self.cells[0].result
        return f"{_parsed(self.metric, result)[0]}@{spelled(deepest(result.k))}"

    @cached_property
    def qualities(self) -> dict[str, float]:
        """Cell -> its average of the metric for quality; of the cells that were run."""
        key, k = _parsed(self.quality_metric, self.cells[0].result)
        return {cell.name: cell.result.averages(k)[key] for cell in self.run}

    def front(self, *costs: Cost) -> list[str]:
        """Return the cells that no other one dominates, the best first.

        One cell dominates another if it is at least as good in quality and in each cost, and better
        in one of them. Cells without a value for one of them are on no front.

        Args:
            costs: ``"context"``, ``"latency"`` or both; both if not given.

        Raises:
            InvalidInput: For another cost.
        """
        for cost in costs:
            errors.one_of("costs", cost, COSTS)
        sign = 1 if self._lower_is_better else -1
        points = {
            cell.name: (
                sign * self.qualities[cell.name],
                *(getattr(cell, cost) for cost in costs or COSTS),
            )
            for cell in self.run
        }
        known = {name: one for name, one in points.items() if not any(map(math.isnan, one))}
        table = np.array([*known.values()])
        front = [name for name, one in known.items()
                 if not ((table <= one).all(axis=1) & (table < one).any(axis=1)).any()]  # fmt: skip
        return sorted(front, key=lambda name: known[name])

    @property
    def n_reused(self) -> int:
        """How many answers were in the folder, and were not asked for again."""
        return sum(cell.n_reused for cell in self.run)

    @property
    def n_asked(self) -> int:
        """How many questions were asked, of all retrievers together."""
        return sum(cell.result.summary.n_queries for cell in self.run) - self.n_reused

    @property
    def run(self) -> list[SweepCell]:
        """The cells that were run: of those with the same chunks, the first."""
        return [cell for cell in self.cells if cell.same_as is None]

    @property
    def _lower_is_better(self) -> bool:
        result = self.cells[0].result
        return result.definitions[_parsed(self.metric, result)[0]].lower_is_better


def _known_of(names: Iterable[str], scores: Mapping[str, float]) -> Iterator[str]:
    """Yield the averages there are: micro where macro ones were not asked for.

    >>> [*_known_of(["macro_recall", "ndcg", "token_iou"], {"micro_recall": 0.5, "ndcg": 0.4})]
    ['micro_recall', 'ndcg']
    """
    for name in names:
        pair = (name, name.replace("macro_", "micro_"))
        yield from [one for one in pair if one in scores][:1]


def _parsed(metric: str, result: EvaluationResult) -> tuple[str, Cutoff]:
    return checked_metric({"": result}, metric, "metric")


# What is swept, checked.


def _check_callables(argument: str, given: object, what: str) -> None:
    if not isinstance(given, Mapping):
        raise errors.must(argument, f"map names to {what} each", given, kind=InvalidType)
    if not given:
        raise errors.must(argument, f"name at least one: {what}", given)
    for name, one in given.items():
        errors.text(argument, name, "names that are not empty")
        can_split = hasattr(getattr(one, "__self__", one), "split_text")  # or whose method it is
        if argument == "splitters" and hasattr(one, "split_text") and not isinstance(one, type):
            continue
        if not callable(one) or (can_split and getattr(one, "__name__", "") in _OF_SEVERAL):
            fix = "pass its method, .split_text" if can_split else ""
            raise errors.must(argument, f"hold {what}", one, fix, InvalidType)


def _checked_corpus(corpus: object) -> list[Document]:
    # A table would yield the names of its columns.
    is_one = isinstance(corpus, str | bytes | Mapping | Document) or is_frame(corpus)
    if is_one or not isinstance(corpus, Iterable):
        fix = "put a single one into a list; of a table, pass its column of texts"
        raise errors.must("corpus", "be texts or documents to be cut", corpus, fix, InvalidType)
    texts = [as_document(one) for one in check_chunks(corpus, "corpus")]
    if not texts:
        raise InvalidInput("corpus", "must hold at least one text, got none")
    return texts


def _grid(splitters: Mapping[str, Any], retrievers: Mapping[str, Any]) -> dict[str, _Place]:
    """Return the cells by their names."""
    grid: dict[str, _Place] = {}
    for place in ((one, other) for one in splitters for other in retrievers):
        name = _name_of(*place)
        if name in grid:
            problem = f": two cells would be called {clipped(name)}"
            raise InvalidInput("splitters", problem, "name one of them without ' + '")
        grid[name] = place
    return grid


def _name_of(splitter: str, retriever: str) -> str:
    return f"{splitter} + {retriever}"


_Place: TypeAlias = "tuple[str, str]"


def _checked_metric(evaluation: Evaluation, metric: str | None) -> str:
    summary = evaluation.plan.nothing().summary
    if metric is None:
        budgets = [k for k in evaluation.plan.cutoffs if isinstance(k, Budget)]
        k = deepest(budgets or evaluation.plan.cutoffs)
        known = summary.averages(k)
        key = next((one for one in _TOLD if one in known), None) or next(iter(known))
        return f"{key}@{spelled(k)}"
    key, k = checked_metric({"every cell": summary}, metric, "metric")
    return f"{key}@{spelled(k)}"


@dataclass(frozen=True)
class _Chunks:
    """What a splitter made of the corpus, and what tells it from other sets."""

    index: Index
    digest: str

    @classmethod
    def of(cls, name: str, splitter: Splitter, corpus: Sequence[Document]) -> _Chunks:
        chunks = [chunk for at, one in enumerate(corpus) for chunk in _cut(name, splitter, one, at)]
        if not chunks:
            raise InvalidInput("splitters", f": {clipped(name)} finds no chunk in the corpus")
        return cls(Index(chunks), _digest(chunks))

    @property
    def documents(self) -> list[Document]:
        """The chunks, for one retriever: what it writes into their metadata stays with it."""
        return [_copied(one) for one in self.index.documents]


def _cut(name: str, splitter: Splitter, document: Document, at: int) -> list[Document]:
    """Return the chunks of a document, with its metadata beneath their own."""
    where = f"splitters[{clipped(name)}](corpus[{at}])"
    try:
        cut: Any = getattr(splitter, "split_text", splitter)
        pieces = cut(document.page_content)
        is_list = not isinstance(pieces, str | bytes | Mapping) and isinstance(pieces, Iterable)
        # A generator fails as it goes, and Ctrl-C ends one without end, but not within list(…).
        pieces = [one for one in pieces] if is_list else pieces  # noqa: C416
    except Exception as error:
        error.add_note(f"The splitter {clipped(name)} failed on document {at} of the corpus.")
        raise
    if not is_list:
        raise InvalidType(where, f"must be a list of chunks, got {clipped(pieces)}")
    inherited = metadata_of(document)
    chunks = map(as_document, check_chunks(pieces, where))  # a text has no id here
    return [_copied(one, inherited) for one in chunks]


def _copied(one: DocumentLike, inherited: Mapping[str, Any] | None = None) -> Document:
    metadata = {**(inherited or {}), **metadata_of(one)}
    return Document(page_content=text_of(one), metadata=metadata, id=id_of(one))


def _digest(content: object) -> str:
    written = json.dumps(content, default=_plain, sort_keys=True).encode("ascii")
    return hashlib.sha256(written).hexdigest()[:32]


# Cells, worked out.


@dataclass(frozen=True)
class _Setup:
    """What every cell needs.

    Attributes:
        evaluation: The questions, and how answers are evaluated.
        chunks: Splitter -> what it made of the corpus.
        retrievers: Name -> what makes a retriever of chunks.
        folder: Where answers are kept.
        asking: How questions are asked.
        makers: Of each retriever, if there is a folder: the name of what makes it, a digest of
            that, and whether this tells all.
    """

    evaluation: Evaluation
    chunks: Mapping[str, _Chunks]
    retrievers: Mapping[str, RetrieverMaker]
    folder: Path | None
    asking: Asking
    makers: Mapping[str, tuple[str, str, bool]]


def _worked(setup: _Setup, grid: Mapping[str, _Place], n_jobs: int | None) -> list[SweepCell]:
    """Run each cell once, several at the same time if asked for, and return all of them."""
    first: dict[tuple[str, str], str] = {}
    for name, (splitter, retriever) in grid.items():
        first.setdefault((setup.chunks[splitter].digest, retriever), name)
    own = [grid[name] for name in first.values()]
    with parallel.processes(n_jobs, "sweep"):
        each = map(_cell, [setup] * len(own), own) if parallel.n_processes() == 1 else (
            parallel.in_processes(_cell, setup, "retrievers", own))  # fmt: skip
        try:
            run = dict(zip(first.values(), each, strict=True))
        except KeyboardInterrupt as error:
            if not getattr(error, "__notes__", ()):  # other processes asked
                for place in own if setup.folder is not None else ():
                    kept = note_of(_Kept.of(setup, place).answers, len(setup.evaluation.questions))
                    if kept:
                        error.add_note(kept)
            raise
    cells = []
    for name, (splitter, retriever) in grid.items():
        source = first[setup.chunks[splitter].digest, retriever]
        same = None if source == name else source
        cells.append(replace(run[source], splitter=splitter, retriever=retriever, same_as=same))
    return cells


def _cell(setup: _Setup, place: _Place) -> SweepCell:
    """Ask and evaluate one cell, or read what is kept of it."""
    chunks, n_reused, answered = setup.chunks[place[0]], 0, None
    with _naming(_name_of(*place)):
        if setup.folder is None:
            result = _asked(setup, place, setup.asking)
        else:
            kept = _Kept.of(setup, place)
            answered = kept.answered()
            result, n_reused = kept.evaluated() or kept.asked(setup, place)
            maker, _settings, is_known = setup.makers[place[1]]
            if n_reused and not is_known:
                told = _("it cannot be told whether {maker} makes the same retriever as for {n} "
                         "answers that were reused")  # fmt: skip
                warn(told.format(maker=maker, n=n_reused), _("name another folder if it does not"))
        diagnosis = _diagnosed(result, chunks.index, setup.evaluation.options.get("matcher"))
        return SweepCell(*place, result, len(chunks.index), _words(result), diagnosis,
                         n_reused=n_reused, answered=answered if n_reused else None)  # fmt: skip


def _asked(setup: _Setup, place: _Place, asking: Asking, n_kept: int = 0) -> EvaluationResult:
    """Ask what is not known; a retriever is made only if something is left to ask."""
    retriever: RetrieverLike = lambda question: []  # noqa: E731
    if n_kept < len(setup.evaluation.questions):
        retriever = setup.retrievers[place[1]](setup.chunks[place[0]].documents)
    name = _name_of(*place)
    return Run(Call.of(retriever), setup.evaluation, asking, name, in_any_loop=True).now()


@dataclass(frozen=True)
class _Kept:
    """Where a cell is kept.

    Attributes:
        answers: What the retriever answered, one line per question.
        key: What the answers belong to.
        result: The result of this evaluation; ``None`` if it depends on what no file can tell, such
            as a function.
    """

    answers: Path
    key: str
    result: Path | None

    @classmethod
    def of(cls, setup: _Setup, place: _Place) -> _Kept:
        splitter, retriever = place
        texts = setup.evaluation.questions.texts
        made_by = setup.makers[retriever]
        digest = _digest([retriever, made_by, setup.chunks[splitter].digest, texts])
        shown = re.sub(r"[^\w.-]+", "-", retriever)[:_LONGEST_FOLDER].strip("-.")
        folder = Path(setup.folder or "") / f"{shown or 'retriever'}-{digest[:16]}"
        folder.mkdir(exist_ok=True)
        key = _evaluation_key(setup.evaluation)
        result = None if key is None else folder / f"result-{key[:16]}.json"
        return cls(folder / "answers.jsonl", f"{retriever}, {digest}", result)

    def answered(self) -> datetime | None:
        """Return when the last answer was written; ``None`` if there is none."""
        for one in (self.answers, self.result):
            if one is not None and one.is_file():
                return datetime.fromtimestamp(one.stat().st_mtime, UTC)
        return None

    def evaluated(self) -> tuple[EvaluationResult, int] | None:
        """Return the result that is kept, if a sound one is, and the number of its answers."""
        if self.result is None or not self.result.is_file():
            return None
        try:
            result = EvaluationResult.from_json(self.result)
        except InvalidInput as error:
            told = _("{file} is made again from the answers, because {problem}")
            warn(told.format(file=self.result, problem=error.problem))
            return None
        return result, result.n_queries

    def asked(self, setup: _Setup, place: _Place) -> tuple[EvaluationResult, int]:
        """Return the result of what is kept and asked now, and how many answers were kept."""
        n_reused = n_kept(self.answers)
        asking = replace(setup.asking, checkpoint=self.answers, checkpoint_key=self.key)
        with called("folder", "checkpoint"):
            result = _asked(setup, place, asking, n_reused)
        if self.result is not None and not result.n_failed:
            result.to_json(self.result, texts=True)
        return result, n_reused


def _evaluation_key(evaluation: Evaluation) -> str | None:
    """Return what tells one evaluation of the same answers from another.

    ``None`` if it depends on what is not known by its name: a matcher, a metric or a function of
    the user's own.
    """
    plan = evaluation.plan
    built_in = all(METRICS.get(one.name) is one for one in plan.metrics.values())
    if not built_in or plan.length is not None:
        return None
    cutoffs, actual = [spelled(k) for k in plan.cutoffs], evaluation.questions.actual
    with suppress(TypeError):
        options = {**evaluation.options}
        return _digest([__version__, cutoffs, sorted(plan.metrics), options, actual])
    return None


def _plain(value: Any) -> Any:
    """Return as JSON can hold it what tells one setting, or one document, from others."""
    if isinstance(value, AnyOf):
        return [*value.alternatives]
    if isinstance(value, Document):
        return [text_of(value), id_of(value), documents.plain_value(metadata_of(value))]
    if isinstance(value, Conventions):
        return repr(value)
    raise TypeError(type(value).__name__)


def _words(result: EvaluationResult) -> float:
    """Return how many words there are within the cutoff, a mean over the questions that count."""
    if result.evidence is None or not result.n_counted:
        return math.nan
    found, k = result.evidence.measured("w"), deepest(result.k)
    unit = k.unit if isinstance(k, Budget) and k.unit != "t" else "w"
    n_seen = (found if unit == "w" else result.evidence.measured(unit)).seen_within(k)
    ends = np.concatenate([[0], np.cumsum((found.lengths or {})["w"])])
    first = np.cumsum(found.n_retrieved) - found.n_retrieved
    return float((ends[first + n_seen] - ends[first])[result.counted].mean())


def _diagnosed(result: EvaluationResult, index: Index, matcher: Any) -> Diagnosis:
    """Say where what is missing was lost; without the index where looking there takes too long."""
    result = replace(result, retrieval=None)  # of what failed, asking has warned already
    try:
        # These chunks were searched, whatever the retriever made of them.
        return result.diagnose(index, matcher=matcher, foreign_index="allow")
    except InvalidInput as error:
        if error.argument != "index":
            raise
        warn(
            _("the index ceiling is left out, {}").format(error.problem.removeprefix(": ")),
            Advice(_("choose {}, which looks words up"), matcher="coverage(union=yes)"),
        )
        return result.diagnose(matcher=matcher)


@contextmanager
def _naming(cell: str) -> Iterator[None]:
    """Let our own warnings begin with the name of the cell, each once, and errors note it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except Exception as error:
            error.add_note(f"This was in the cell {clipped(cell)} of the sweep.")
            raise
    seen = set()
    for one in caught:
        message = one.message
        if not isinstance(message, KragEvalWarning):
            warnings.warn_explicit(message, one.category, one.filename, one.lineno)
        elif str(message) not in seen:
            seen.add(str(message))
            warn(f"{cell}: {message.problem}", message.fix, at_once=message.at_once)


# The choice.


def _chosen(
    results: Mapping[str, EvaluationResult],
    metric: str,
    baseline: str,
    sampling: Mapping[str, Any],
) -> SweepChoice | None:
    """Choose on one half of the questions, and look at the other half."""
    first = next(iter(results.values()))
    halves = _halves(first, sampling["clusters"], sampling["seed"])
    if halves is None:
        return None
    key, k = _parsed(metric, first)
    by, others = (
        {name: part_of(one, positions, ()) for name, one in results.items()} for positions in halves
    )
    sign = 1 if first.definitions[key].lower_is_better else -1
    values = {name: one.averages(k)[key] for name, one in by.items()}
    values = {name: value for name, value in values.items() if not math.isnan(value)}
    if not values:
        return None
    name = min(values, key=lambda one: sign * values[one])
    worth = {one: others[one].averages(k)[key] for one in values}
    difference = None
    if name != baseline:
        pair = {baseline: others[baseline], name: others[name]}
        with errors.muted():  # the comparison of all has said it
            (difference,) = compare(pair, metric, **sampling).differences
    return SweepChoice(
        name=name,
        metric=metric,
        value=values[name],
        held_out=worth[name],
        n_chosen_by=by[name].n_counted,
        n_held_out=others[name].n_counted,
        overrated=sign * (worth[name] - values[name]),
        shift=math.fsum(worth[one] - values[one] for one in values) / len(values),
        difference=difference,
    )


def _halves(
    result: EvaluationResult, clusters: str | None, seed: int
) -> tuple[list[int], list[int]] | None:
    """Return the positions of two halves of the questions that count, drawn at random.

    Questions that belong together are in the same half. ``None`` if there are too few.
    """
    counted = np.flatnonzero(result.counted)
    group = np.arange(len(counted))
    if clusters is not None and (found := Clusters.found([result], clusters)) is not None:
        group = found.number
    n = int(group.max(initial=-1)) + 1
    if n < _FEWEST_TO_CHOOSE:
        return None
    # By question, or by ground truth where they have no labels, and not by the order they came in.
    labels, digests = result.labels, result.rows.digests
    by_label = list(labels) != list(range(len(labels))) or digests is None
    keys = list(map(str, labels)) if by_label else list(digests or ())
    least: dict[int, str] = {}
    for number, place in zip(group.tolist(), counted.tolist(), strict=True):
        least[number] = min(least.get(number, keys[place]), keys[place])
    order = np.array(sorted(least, key=least.__getitem__), np.int64)
    chosen = order[np.random.default_rng(seed).permutation(n)[: (n + 1) // 2]]
    first = np.isin(group, chosen)
    return counted[first].tolist(), counted[~first].tolist()
