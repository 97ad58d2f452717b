"""krag's helpers for retrievers and data frames of test questions.

A frame has the columns ``question``, ``context``, ``source`` and ``doc_id``, the last three holding
one list per question, written as text.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from krag_eval.compat.evaluators import OfflineRetrievalEvaluators, RougeOfflineRetrievalEvaluators
from krag_eval.core import AveragingMethod, InvalidInput, errors, one_of
from krag_eval.core.conventions import MatchingCriteria
from krag_eval.core.scoring.cutoffs import check_cutoff
from krag_eval.loading.reading import literal_in

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.compat.document import KragDocument

__all__ = [
    "context_to_document",
    "evaluate_retrieval_at_K",
    "flatten_metrics",
    "setup_retriever",
    "visualize_retrieval_at_K",
]

_LIST_COLUMNS = ("context", "source", "doc_id")
_METHODS = ("text", "rouge1", "rouge2", "rougeL")
#: krag's metric -> column of a result's per-query table; those below have micro and macro keys.
_MEANS = {"hit_rate": "hit_rate", "mrr": "reciprocal_rank"}
_PAIRS = ("recall", "precision", "f1")
_RANKINGS = {"map": "average_precision", "ndcg": "ndcg"}
_PANELS_PER_ROW = 5


def context_to_document(df_test: pd.DataFrame, idx: int) -> list[KragDocument]:
    """Return the ground-truth documents of one row of a test set.

    Args:
        df_test: A frame with the columns ``context``, ``source`` and ``doc_id``. Each cell is a
            list, or one written as Python text, which is read as data and never executed.
        idx: Position of the row, from 0.

    Raises:
        InvalidInput: If a column is missing, a cell holds no list, or the lists differ in length.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"context": ["['Closed on Mondays.']"], "source": ["['guide.pdf']"],
    ...                       "doc_id": ["[7]"]})
    >>> context_to_document(frame, 0)[0].metadata
    {'source': 'guide.pdf', 'doc_id': 7}
    """
    from krag_eval.compat.document import KragDocument

    _check_columns(df_test, "df_test", _LIST_COLUMNS)
    texts, sources, ids = (_list_in(df_test, column, idx) for column in _LIST_COLUMNS)
    if not len(texts) == len(sources) == len(ids):
        counts = len(texts), len(sources), len(ids)
        be = f"have one source and one doc_id per context in row {idx}"
        raise errors.must("df_test", be, counts)
    rows = zip(texts, sources, ids, strict=True)
    return [KragDocument(text, {"source": of, "doc_id": doc_id}) for text, of, doc_id in rows]


def setup_retriever(retriever: Any, k: int) -> Any:
    """Return a retriever that fetches ``k`` documents; the one passed is left as it is.

    A retriever of a vector store, BM25, or a multi-query retriever around one is copied; a
    configurable runnable is given its ``search_kwargs``; any other is returned unchanged.
    """
    if isinstance(getattr(retriever, "search_kwargs", None), dict):
        return _changed(retriever, search_kwargs={**retriever.search_kwargs, "k": k})
    if isinstance(getattr(retriever, "k", None), int):
        return _changed(retriever, k=k)
    if isinstance(getattr(getattr(retriever, "retriever", None), "search_kwargs", None), dict):
        return _changed(retriever, retriever=setup_retriever(retriever.retriever, k))
    if type(retriever).__module__.startswith("langchain_core.runnables"):
        return retriever.with_config({"configurable": {"search_kwargs": {"k": k}}})
    return retriever


def flatten_metrics(metrics: Mapping[str, Any], k: int) -> dict[str, float]:
    """Return metrics in one level, their names followed by the cutoff.

    >>> flatten_metrics({"recall": {"micro_recall": 0.8, "macro_recall": 0.75}, "map": 0.6}, 5)
    {'micro_recall@5': 0.8, 'macro_recall@5': 0.75, 'map@5': 0.6}
    """
    flat: dict[str, float] = {}
    for name, value in metrics.items():
        values = value if isinstance(value, Mapping) else {name: value}
        flat.update({f"{key}@{k}": number for key, number in values.items()})
    return flat


def evaluate_retrieval_at_K(  # noqa: N802 - krag's name
    df_qa_test: pd.DataFrame,
    k: int,
    retrievers: Mapping[str, Any],
    ensemble: bool = False,
    rouge_method: str | None = None,
    threshold: float = 0.5,
    ensemble_weights: Sequence[float] | None = None,
    averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
    matching_criteria: MatchingCriteria | str = MatchingCriteria.PARTIAL,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ask every retriever every question, and measure what comes back.

    Args:
        df_qa_test: A frame with the columns ``question``, ``context``, ``source``, ``doc_id``; see
            :func:`context_to_document`. Its index does not matter.
        k: Documents to retrieve, and the cutoff.
        retrievers: Name -> LangChain retriever.
        ensemble: Whether to measure their ensemble too, as ``"Ensemble"``; needs
            ``langchain-classic`` (or ``langchain`` before 1.0).
        rouge_method: ``"rouge1"``, ``"rouge2"``, ``"rougeL"``; ``None`` or ``"text"`` for
            substrings.
        threshold: ROUGE score from which a document matches.
        ensemble_weights: Weight of each retriever; equal if not given.
        averaging_method: Which of the micro and macro columns there are; for a single question
            they are equal.
        matching_criteria: Whether a hit needs all of the ground truth or any of it.

    Returns:
        The means per retriever, indexed by its name, and one row per question and retriever. The
        columns are ``hit_rate@k``, ``mrr@k``, ``micro_recall@k`` and so on.

    Raises:
        InvalidInput: For anything wrong with the frame or the options, before a question is asked.
        RuntimeError: If a retriever fails, naming it and the question.
    """
    import pandas as pd

    evaluator: type[OfflineRetrievalEvaluators] = OfflineRetrievalEvaluators
    method = one_of("rouge_method", rouge_method or "text", _METHODS)
    averaging = one_of("averaging_method", averaging_method, [*AveragingMethod])
    criteria = one_of("matching_criteria", matching_criteria, [*MatchingCriteria])
    how: dict[str, Any] = {
        "match_method": method, "averaging_method": averaging, "matching_criteria": criteria
    }  # fmt: skip
    if method != "text":
        evaluator = RougeOfflineRetrievalEvaluators
        how["threshold"] = errors.number("threshold", threshold, 0, 1)
    if check_cutoff(k) is None:
        raise errors.must("k", "be a whole number of at least 1", k)
    questions, actual_docs = _test_set(df_qa_test)
    frames = []
    for name, retriever in _prepared(retrievers, k, ensemble, ensemble_weights).items():
        predicted_docs = [_retrieved(name, retriever, question) for question in questions]
        columns = _columns(evaluator(actual_docs, predicted_docs, **how), k)
        frames.append(pd.DataFrame({"question": questions, "retriever": name, **columns}))
    # All retrievers of the first question, then of the second: the stable sort keeps their order.
    output = pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)
    return output.drop(columns="question").groupby("retriever").mean(), output


def visualize_retrieval_at_K(df_mean: pd.DataFrame, k: int) -> None:  # noqa: N802 - krag's name
    """Show one panel per metric, with a bar per retriever.

    Args:
        df_mean: The first frame of :func:`evaluate_retrieval_at_K`.
        k: The cutoff whose columns are drawn.

    Raises:
        InvalidInput: If the frame has no column at that cutoff.
    """
    from matplotlib import pyplot

    names = [column for column in df_mean.columns if str(column).endswith(f"@{k}")]
    if not names:
        raise errors.must("df_mean", f"have columns ending in '@{k}'", list(df_mean.columns))
    n_columns = min(len(names), _PANELS_PER_ROW)
    n_rows = math.ceil(len(names) / n_columns)
    looks: dict[str, Any] = {"sharey": True, "squeeze": False, "layout": "constrained"}
    figure, axes = pyplot.subplots(n_rows, n_columns, figsize=(3 * n_columns, 3 * n_rows), **looks)
    figure.suptitle(f"Retrieval metrics at k = {k}")
    for ax, name in zip(axes.flat, names, strict=False):
        bars = ax.bar([str(label) for label in df_mean.index], df_mean[name])
        ax.bar_label(bars, fmt="%.2f", padding=2, fontsize="small")
        ax.set_title(name.removesuffix(f"@{k}"))
        ax.set_ylim(0.0, 1.1)
        ax.tick_params(axis="x", rotation=45)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    pyplot.show()


def _check_columns(frame: pd.DataFrame, argument: str, wanted: Sequence[str]) -> None:
    missing = [column for column in wanted if column not in frame.columns]
    if missing:
        be = f"have the columns {', '.join(wanted)} ({', '.join(missing)} missing)"
        raise errors.must(argument, be, list(frame.columns))


def _list_in(frame: pd.DataFrame, column: str, position: int) -> list[Any]:
    """Return the list a cell holds, or is the text of."""
    value = cell = frame[column].iloc[position]
    reason = ""
    if isinstance(cell, str):
        try:
            value = literal_in(cell)
        except InvalidInput as error:
            reason = str(error)
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        be = f"hold a list in column {column!r} of row {position}, or the text of one such as "
        raise errors.must("df_test", f"{be}\"['first', 'second']\"", cell, reason)
    return list(value)


def _test_set(frame: pd.DataFrame) -> tuple[list[Any], list[list[KragDocument]]]:
    _check_columns(frame, "df_qa_test", ("question", *_LIST_COLUMNS))
    if frame.empty:
        raise InvalidInput("df_qa_test", "must have at least one row, got none")
    actual = [context_to_document(frame, position) for position in range(len(frame))]
    return frame["question"].tolist(), actual


def _changed(retriever: Any, /, **values: Any) -> Any:
    """Return a copy of a retriever with other settings."""
    if hasattr(retriever, "model_copy"):
        return retriever.model_copy(update=values)
    changed = copy.copy(retriever)
    for name, value in values.items():
        setattr(changed, name, value)
    return changed


def _prepared(
    retrievers: Mapping[str, Any], k: int, ensemble: bool, weights: Sequence[float] | None
) -> dict[str, Any]:
    if not retrievers:
        raise InvalidInput("retrievers", "must name at least one retriever, got none")
    prepared = {name: setup_retriever(retriever, k) for name, retriever in retrievers.items()}
    if ensemble:
        given = [1 / len(prepared)] * len(prepared) if weights is None else list(weights)
        if len(given) != len(prepared):
            be = f"have one weight per retriever, {len(prepared)}"
            raise errors.must("ensemble_weights", be, len(given))
        prepared["Ensemble"] = _ensemble()(retrievers=list(prepared.values()), weights=given)
    return prepared


def _ensemble() -> Any:
    for module in ("langchain_classic.retrievers", "langchain.retrievers"):
        try:
            return import_module(module).EnsembleRetriever
        except ModuleNotFoundError:
            continue
    problem = "needs LangChain's EnsembleRetriever, which is not installed"
    raise errors.MissingPackage("ensemble", problem, "run: pip install langchain-classic")


def _retrieved(name: str, retriever: Any, question: Any) -> list[Any]:
    try:
        return list(retriever.invoke(question))
    except Exception as error:
        problem = f"retriever {name!r} failed on the question {question!r}: {error}"
        raise RuntimeError(problem) from error


def _columns(evaluator: OfflineRetrievalEvaluators, k: int) -> dict[str, Any]:
    """Return one value per question under each of krag's names."""
    table = evaluator.evaluate(k).tables[k]
    averaging = evaluator.averaging_method
    pairs = {
        f"{average}_{name}": name
        for name in _PAIRS
        for average in ("micro", "macro")
        if averaging in (average, AveragingMethod.BOTH)
    }
    return {f"{key}@{k}": table[column] for key, column in {**_MEANS, **pairs, **_RANKINGS}.items()}
