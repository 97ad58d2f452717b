"""Ray: a Dataset with one row per query, evaluated by ``map_batches``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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
    whole,
)
from krag_eval.distributed.worker import PARTIAL, DistributedRun, Task, run_on

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from ray.data import Dataset


def evaluate_ray(
    dataset: Dataset,
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
    batch_size: int = 4096,
    **options: Any,
) -> DistributedRun[Dataset]:
    """Evaluate a Ray Dataset with one row per query.

    The columns with documents hold lists of strings, or of structs with ``page_content`` and
    perhaps ``metadata`` and ``id``. Null fields count as absent.

    Args:
        dataset: The table; only the columns named are read.
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
        batch_size: Rows evaluated together.
        **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``, …

    Returns:
        A run with ``.per_query``, a Dataset, and ``.result``.

    Raises:
        ImportError: If Ray Data is missing.
        TypeError: If ``dataset`` is no Ray Dataset, or the matcher cannot be pickled.
        ValueError: If there is no such column, or an option is not among those allowed.
    """
    arguments = locals()
    check_options(evaluate_ray, options, PLAN_OPTIONS)
    try:
        import ray.data  # noqa: F401 - without it, Ray has no Datasets
        from ray import cloudpickle
    except ImportError as error:
        raise MissingPackage("", "evaluate_ray needs Ray Data", install_line("ray")) from error
    if not hasattr(dataset, "map_batches"):
        raise InvalidType("dataset", f"must be a Ray Dataset, got a {type(dataset).__name__}")
    whole("batch_size", batch_size, 1)
    schema = dataset.schema(fetch_if_missing=False)
    columns = None if schema is None else schema.names
    task, plan = Task.asked(arguments, columns, cloudpickle.dumps)

    def evaluated(table: pa.Table) -> pa.Table:
        columns = {
            name: table.column(name).to_pylist()
            for name in task.fields.names
            if name in table.column_names
        }
        return _as_arrow(task, task.frame(columns))

    rows = dataset.map_batches(evaluated, batch_format="pyarrow", batch_size=batch_size)
    return run_on(rows, plan, _per_query, _texts, lambda rows: rows.materialize())


def _per_query(rows: Dataset) -> Dataset:
    def of_queries(table: pa.Table) -> pa.Table:
        return table.filter(table[PARTIAL].is_null()).drop_columns([PARTIAL])

    return rows.map_batches(of_queries, batch_format="pyarrow", batch_size=None)


def _texts(rows: Dataset) -> list[str]:
    def of_partials(table: pa.Table) -> pa.Table:
        return table.filter(table[PARTIAL].is_valid()).select([PARTIAL])

    kept = rows.map_batches(of_partials, batch_format="pyarrow", batch_size=None)
    return [row[PARTIAL] for row in kept.take_all()]


def _as_arrow(task: Task, frame: pd.DataFrame) -> pa.Table:
    import pyarrow as pa

    # Not by way of pandas, which would read NaN, a metric that is undefined, as null.
    return pa.table(
        {
            name: pa.array(frame[name].tolist(), pa.string())
            if kind is object
            else pa.array(frame[name].to_numpy(), from_pandas=False)
            for name, kind in task.types.items()
        }
    )
