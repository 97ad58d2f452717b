"""Comparing retrievers: each asked the same questions, all evaluated alike, then compared.

This room wires runs and the comparison. It must not know statistics or metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from krag_eval._errors import EVALUATOR_OPTIONS, check_options, muted
from krag_eval.evaluator import OfflineRetrievalEvaluator
from krag_eval.retrievers.calling import Call, RetrieverLike
from krag_eval.retrievers.questions import Questions, Rows
from krag_eval.retrievers.running import Run
from krag_eval.scoring.cutoffs import check_cutoffs, spelled
from krag_eval.statistics.comparison import Comparison, compare

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from krag_eval.matching.base import Matcher
    from krag_eval.results.result import EvaluationResult
    from krag_eval.scoring.metrics import Metric

__all__ = ["aevaluate_retrievers", "evaluate_retrievers"]

# What decides which averages there are.
_NAMING_OPTIONS = ("averaging_method", "matching_criteria", "conventions")


def evaluate_retrievers(
    retrievers: Mapping[str, RetrieverLike],
    dataset: Rows,
    k: int | Iterable[int | None] | None = (1, 3, 5, 10),
    matcher: str | Matcher | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] = "raise",
    max_concurrency: int | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: Mapping[str, str | os.PathLike[str]] | None = None,
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
        level: See :func:`~krag_eval.compare`, also for ``n_resamples`` and ``seed``.
        n_resamples: Number of resamples and of random swaps.
        seed: The same seed gives the same digits.
        metrics: Metrics to compute; all built-in ones if not given.
        input_key: For all retrievers; one that differs is made alike by LangChain's own means,
            ``{"question": RunnablePassthrough()} | chain | itemgetter("context")``.
        output_key: For all retrievers.
        on_error: ``"raise"`` or ``"record"``; a query that failed counts as nothing retrieved.
        max_concurrency: How many questions are asked at the same time.
        config: LangChain's config.
        progress: Whether to show a bar for each retriever.
        checkpoint: Name -> file, for all retrievers or some: ``{"bm25": "bm25.jsonl"}``.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`.

    Returns:
        The comparison: intervals and paired tests; ``.results`` holds each retriever's result,
        ``.latency`` how fast each was.

    Raises:
        TypeError: If an argument is of a wrong type.
        ValueError: If one is out of range, there are fewer than two retrievers, or two write to
            one checkpoint.

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
    (runs, comparing), results = _prepared(**locals()), {}
    for name, run in runs.items():
        results[name] = run.now()
    return _compared(results, comparing)


async def aevaluate_retrievers(
    retrievers: Mapping[str, RetrieverLike],
    dataset: Rows,
    k: int | Iterable[int | None] | None = (1, 3, 5, 10),
    matcher: str | Matcher | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    metrics: Iterable[str | Metric] | None = None,
    input_key: str | None = None,
    output_key: str | None = None,
    on_error: Literal["raise", "record"] = "raise",
    max_concurrency: int | None = None,
    config: RunnableConfig | Sequence[RunnableConfig] | None = None,
    progress: bool | None = None,
    checkpoint: Mapping[str, str | os.PathLike[str]] | None = None,
    **options: Any,
) -> Comparison:
    """Do as :func:`evaluate_retrievers`, through each retriever's own ``ainvoke``."""
    check_options(aevaluate_retrievers, options, EVALUATOR_OPTIONS)
    (runs, comparing), results = _prepared(**locals()), {}
    for name, run in runs.items():
        results[name] = await run.soon()
    return _compared(results, comparing)


def _prepared(
    *,
    retrievers: Mapping[str, RetrieverLike],
    dataset: Rows,
    input_key: str | None,
    output_key: str | None,
    checkpoint: Mapping[str, str | os.PathLike[str]] | None,
    metric: str | Sequence[str] | None,
    level: float,
    n_resamples: int,
    seed: int,
    **arguments: Any,
) -> tuple[dict[str, Run], dict[str, Any]]:
    """Return a run per retriever, and how to compare them; all of it checked."""
    _check_names(retrievers)
    files = _checked_files(checkpoint, retrievers)
    questions = Questions.of(dataset)
    arguments["k"] = check_cutoffs(arguments["k"])
    if arguments["metrics"] is not None:
        arguments["metrics"] = list(arguments["metrics"])
    if metric is None:
        deepest = max(arguments["k"], key=lambda one: float("inf") if one is None else one)
        metric = f"ndcg@{spelled(deepest)}"
    runs = {
        name: Run(
            Call.of(retriever, input_key, output_key),
            questions,
            checkpoint=files.get(name),
            title=name,
            **arguments,
        )
        for name, retriever in retrievers.items()
    }
    comparing = {"metric": metric, "level": level, "n_resamples": n_resamples, "seed": seed}
    _rehearse(comparing, {**questions.defaults, **arguments["options"]}, arguments)
    return runs, comparing


def _rehearse(
    comparing: Mapping[str, Any], options: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    """Compare two results of nothing: what is refused there would be refused after all the work."""
    naming = {name: value for name, value in options.items() if name in _NAMING_OPTIONS}
    with muted():
        nothing = OfflineRetrievalEvaluator([["a"], ["b"]], [[], []], **naming)
        result = nothing.evaluate(arguments["k"], metrics=arguments["metrics"])
        compare({"a": result, "b": result}, **comparing)


def _compared(results: dict[str, EvaluationResult], comparing: Mapping[str, Any]) -> Comparison:
    return replace(compare(results, **comparing), results=results)


def _check_names(retrievers: object) -> None:
    if not isinstance(retrievers, Mapping):
        raise TypeError(
            'retrievers must map names to retrievers, such as {"bm25": first, "dense": second}, '
            f"got a {type(retrievers).__name__}."
        )
    for name in retrievers:
        if not isinstance(name, str):
            raise TypeError(f"retrievers: a name must be a string, got {name!r}.")
    if len(retrievers) < 2:
        raise ValueError(
            f"retrievers must hold at least two to compare, got {len(retrievers)}; one alone is "
            "evaluated by evaluate_retriever."
        )


def _checked_files(
    checkpoint: object, retrievers: Mapping[str, Any]
) -> Mapping[str, str | os.PathLike[str]]:
    if checkpoint is None:
        return {}
    if not isinstance(checkpoint, Mapping):
        raise TypeError(
            "checkpoint must map names to files, one for each retriever, such as "
            f'{{"bm25": "bm25.jsonl"}}, got {checkpoint!r}.'
        )
    unknown = [name for name in checkpoint if name not in retrievers]
    if unknown:
        raise ValueError(
            f"checkpoint names {unknown[0]!r}, which is none of the retrievers "
            f"({', '.join(map(repr, retrievers))})."
        )
    paths = [os.path.realpath(path) for path in checkpoint.values()]
    if len(set(paths)) < len(paths):
        raise ValueError("checkpoint: each retriever needs a file of its own, got one twice.")
    return checkpoint
