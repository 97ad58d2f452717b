"""Dask: a DataFrame or a Bag with one row per query, evaluated partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from krag_eval.core import (
    DEFAULT_CUTOFFS,
    PLAN_OPTIONS,
    Cutoffs,
    InvalidType,
    Length,
    Metric,
    MissingPackage,
    check_options,
    install_line,
)
from krag_eval.distributed.worker import PARTIAL, DistributedRun, Fields, Task, run_on

if TYPE_CHECKING:
    import pandas as pd
    from dask.bag import Bag
    from dask.dataframe import DataFrame


def evaluate_dask(
    collection: DataFrame | Bag,
    *,
    k: Cutoffs = DEFAULT_CUTOFFS,
    budget: int | Iterable[int] | None = None,
    length: Length = "words",
    metrics: Iterable[str | Metric] | None = None,
    question_field: str | None = "question",
    actual_field: str = "actual",
    predicted_field: str = "predicted",
    judged_field: str | None = None,
    unwanted_field: str | None = None,
    cited_field: str | None = None,
    **options: Any,
) -> DistributedRun[DataFrame]:
    """Evaluate a Dask DataFrame, or a Bag of dicts, with one row per query.

    A partition is evaluated at a time, so it should fit into a worker's memory. The columns with
    documents hold lists of strings or of dicts with ``page_content``. By default Dask turns every
    such column into text when a DataFrame is made from pandas objects; that is refused. Make the
    frame with ``dask.config.set({"dataframe.convert-string": False})``, or use a Bag.

    Args:
        collection: The table; only the columns named are read.
        k: A cutoff or several; ``None`` stands for all retrieved documents.
        budget: How much may fit, or several such numbers; see
            :meth:`OfflineRetrievalEvaluator.evaluate
            <krag_eval.OfflineRetrievalEvaluator.evaluate>`.
        length: What ``budget`` counts: ``"words"``, ``"characters"`` or a function.
        metrics: Metrics to compute, each with a cutoff (``"recall@5"``) or without; all built-in
            ones if not given.
        question_field: Column with the question, as the label of the query; ``None`` for none.
        actual_field: Column with the ground truth.
        predicted_field: Column with the retrieved documents, best first.
        judged_field: Column with the documents that somebody looked at, lists as the others; what
            is known of each retrieved one is then in the per-query columns ``judged``,
            ``document_keys`` and ``judged_digest``. ``None`` for none.
        unwanted_field: Column with the documents that must not come back, lists as the others and
            nothing where a query has no list; what tells them from others is then in the per-query
            column ``unwanted_digest``. ``None`` for none.
        cited_field: Column with the documents that the answer cited, likewise. ``None`` for none.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``, …

    Returns:
        A run with ``.per_query``, a Dask DataFrame, and ``.result``.

    Raises:
        ImportError: If Dask's DataFrame is missing.
        TypeError: If ``collection`` is neither, a column of lists became text, or the matcher
            cannot be pickled.
        ValueError: If there is no such column, or an option is not among those allowed.

    >>> import dask.bag
    >>> rows = [{"question": "When?", "actual": ["a"], "predicted": ["b", "a"]},
    ...         {"question": "Who?", "actual": ["c"], "predicted": ["c"]}]
    >>> run = evaluate_dask(dask.bag.from_sequence(rows, npartitions=2), k=5)
    >>> run.result.to_dict()["mrr@5"]
    0.75
    >>> run.per_query.compute()["reciprocal_rank@5"].tolist()
    [0.5, 1.0]
    """
    arguments = locals()
    check_options(evaluate_dask, options, PLAN_OPTIONS)
    try:
        import cloudpickle
        import dask.dataframe as dd
        from dask.bag import Bag
    except ImportError as error:
        problem = "evaluate_dask needs Dask's DataFrame"
        raise MissingPackage("", problem, install_line("dask")) from error
    is_bag = isinstance(collection, Bag)
    if not is_bag and not isinstance(collection, dd.DataFrame):
        problem = "must be a Dask DataFrame or a Dask Bag of dicts, got a "
        raise InvalidType("collection", problem + type(collection).__name__)
    columns = None if is_bag else list(collection.columns)
    task, plan = Task.asked(arguments, columns, cloudpickle.dumps)
    if isinstance(collection, Bag):
        from dask import delayed

        parts = [delayed(_of_bag)(part, task) for part in collection.to_delayed()]
        rows = dd.from_delayed(parts, meta=_meta(task), verify_meta=False)
    else:
        _check_lists(collection, task.fields)
        rows = collection[task.fields.names].map_partitions(_of_frame, task, meta=_meta(task))
    return run_on(
        rows,
        plan,
        lambda rows: rows[rows[PARTIAL].isnull()].drop(columns=PARTIAL),
        lambda rows: rows[PARTIAL].dropna().compute().tolist(),
        lambda rows: rows.persist(),
    )


def _of_frame(frame: pd.DataFrame, task: Task) -> pd.DataFrame:
    return next(task.rows([frame]))


def _of_bag(rows: Iterable[Any], task: Task) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {name: [] for name in task.fields.names}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping) or not row.keys() >= columns.keys():
            came = list(row) if isinstance(row, Mapping) else f"a {type(row).__name__}"
            problem = f": row {number} of its part must be a dict with {', '.join(columns)}, got "
            raise InvalidType("collection", f"{problem}{came}")
        for name, values in columns.items():
            values.append(row[name])
    return task.frame(columns)


def _meta(task: Task) -> pd.DataFrame:
    import pandas as pd

    empty = {name: pd.Series(np.zeros(0, kind), dtype=kind) for name, kind in task.types.items()}
    return pd.DataFrame(empty)


def _check_lists(frame: DataFrame, fields: Fields) -> None:
    """Refuse columns that Dask has turned into text."""
    for argument, name in fields.of_documents.items():
        kind = str(frame.dtypes[name])
        if kind.startswith(("string", "str")):
            problem = f": the column {name!r} holds text ({kind}), not lists, as Dask makes of them"
            fix = "Set its option dataframe.convert-string to False before the frame is made, or "
            raise InvalidType(argument, problem, f"{fix}use a Bag of dicts")
