"""Evaluating a retriever: one call from retriever and questions to a result.

This room words the two public functions; ``running`` does what they say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from krag_eval._errors import EVALUATOR_OPTIONS, check_options
from krag_eval.retrievers.calling import Call, RetrieverLike
from krag_eval.retrievers.questions import Questions, Rows
from krag_eval.retrievers.running import Run

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from krag_eval.matching.base import Matcher
    from krag_eval.results.result import EvaluationResult
    from krag_eval.scoring.metrics import Metric

__all__ = ["aevaluate_retriever", "evaluate_retriever"]


def evaluate_retriever(
    retriever: RetrieverLike,
    dataset: Rows,
    k: int | Iterable[int | None] | None = (1, 3, 5, 10),
    matcher: str | Matcher | None = None,
    *,
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] = "raise",
    max_concurrency: int | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> EvaluationResult:
    """Ask a retriever every question of a data set, and evaluate what comes back.

    The questions run through LangChain's own ``batch``, one call of the retriever per question, so
    callbacks, tags and metadata reach it as always. Options, data set and cutoffs are checked
    before the first question is asked.

    Args:
        retriever: A LangChain retriever or any other ``Runnable`` from question to documents, or
            a plain function, sync or async. Documents may be LangChain ``Document`` objects,
            strings or dicts; best first.
        dataset: Rows ``{"question": text, "actual": [documents]}``, a DataFrame with these
            columns, or what :func:`~krag_eval.load_dataset` returns. A question may occur twice;
            its query is then labelled by ``"id"`` or position.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        matcher: What makes a retrieved document a match; ``"text"`` if neither given nor set by
            the data set.
        metrics: Metrics to compute; all built-in ones if not given.
        input_key: The key under which a chain takes its question, ``{input_key: question}``; not
            given, it is asked the question itself.
        output_key: The key under which a chain returns the documents, such as ``"context"``.
        on_error: What happens when the retriever raises, or returns what is no list of documents.
            ``"raise"``: that exception, saying which query it was. ``"record"``: the others are
            asked; the query counts as nothing retrieved and is listed in ``result.failures``;
            ``result.retry_failed()`` asks it again.
        max_concurrency: How many questions are asked at the same time; LangChain's default, its
            number of threads, if not given. For latencies free of one another, 1.
        config: LangChain's config for each call (callbacks, tags, metadata, …), or a list with
            one per question.
        progress: Whether to show a progress bar; if not given, in terminals and notebooks.
        checkpoint: A file that gains one line per answer. A run that was killed or interrupted
            goes on from there when it is called again: what is in the file is not asked again,
            what failed is. A file made for other questions, in another order, or for a retriever
            of another name or with other settings is refused.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``threshold``,
            ``matching_criteria``, ``conventions``, ``no_ground_truth``, ``grade_key``, …

    Returns:
        The result, with ``result.latency`` (mean, p50 and p95 in seconds),
        ``result.retrieval.seconds`` per query, and ``result.failures``.

    Raises:
        TypeError: If the retriever cannot be asked, or an argument is of a wrong type.
        ValueError: If an argument is out of range, the data set has no question texts, or the
            checkpoint was made for something else.
        OSError: If the checkpoint cannot be written, or another run is writing to it.
        RuntimeError: If an async function is to be asked while an event loop is running, as in a
            notebook; there, ``await aevaluate_retriever(…)``.

    Warns:
        KragEvalWarning: If queries failed (with ``on_error="record"``).

    >>> opening = {"When does it open?": ["At nine.", "At the corner."]}
    >>> dataset = [{"question": "When does it open?", "actual": ["At nine."]},
    ...            {"question": "Where is it?", "actual": ["At the corner."]}]
    >>> result = evaluate_retriever(lambda question: opening.get(question, []), dataset, k=1)
    >>> result.to_dict()["hit_rate@1"], result.failures.empty
    (0.5, True)
    """
    check_options(evaluate_retriever, options, EVALUATOR_OPTIONS)
    return _run(**locals()).now()


async def aevaluate_retriever(
    retriever: RetrieverLike,
    dataset: Rows,
    k: int | Iterable[int | None] | None = (1, 3, 5, 10),
    matcher: str | Matcher | None = None,
    *,
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] = "raise",
    max_concurrency: int | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> EvaluationResult:
    """Do as :func:`evaluate_retriever`, through the retriever's own ``ainvoke``.

    As many questions are asked at the same time as LangChain has threads, if ``max_concurrency``
    is not given: asking all at once would measure how they wait for one another.

    >>> import asyncio
    >>> async def retriever(question):
    ...     return ["At nine."]
    >>> dataset = [{"question": "When does it open?", "actual": ["At nine."]}]
    >>> asyncio.run(aevaluate_retriever(retriever, dataset, k=1)).to_dict()["mrr@1"]
    1.0
    """
    check_options(aevaluate_retriever, options, EVALUATOR_OPTIONS)
    return await _run(**locals()).soon()


def _run(
    retriever: RetrieverLike,
    dataset: Rows,
    input_key: str | None,
    output_key: str | None,
    **arguments: Any,
) -> Run:
    call = Call.of(retriever, input_key, output_key)
    return Run(call, Questions.of(dataset), **arguments)
