"""Spark: one row per query, evaluated where it is by ``mapInPandas``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from krag_eval import __version__
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
    from pyspark.sql import DataFrame, SparkSession


def evaluate_spark(
    frame: DataFrame,
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
    """Evaluate a Spark DataFrame with one row per query.

    The columns with documents are arrays of strings, or of structs with ``page_content`` and
    perhaps ``metadata`` (a struct or a map) and ``id``. Null fields count as absent.

    Args:
        frame: The table; only the columns named are read.
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
        A run with ``.per_query``, a DataFrame, and ``.result``.

    Raises:
        ImportError: If PySpark is missing.
        TypeError: If ``frame`` is no Spark DataFrame, a column is of another type, or the matcher
            cannot be pickled.
        ValueError: If there is no such column, or an option is not among those allowed.
        RuntimeError: If the workers' Python cannot import this version of krag_eval. Asking them
            is a Spark job of one row.
    """
    arguments = locals()
    check_options(evaluate_spark, options, PLAN_OPTIONS)
    try:
        from pyspark import cloudpickle
        from pyspark.sql import functions
    except ImportError as error:
        raise MissingPackage("", "evaluate_spark needs PySpark", install_line("spark")) from error
    if not hasattr(frame, "mapInPandas"):
        raise InvalidType("frame", f"must be a Spark DataFrame, got a {type(frame).__name__}")
    task, plan = Task.asked(arguments, frame.columns, cloudpickle.dumps)
    _check_types(frame, task.fields)
    _check_workers(frame.sparkSession)
    needed = frame.select(*(functions.col(f"`{name}`") for name in task.fields.names))
    rows = needed.mapInPandas(task.rows, schema=_schema(task.types))

    return run_on(
        rows,
        plan,
        lambda rows: rows.where(rows[f"`{PARTIAL}`"].isNull()).drop(PARTIAL),
        lambda rows: [
            row[0]
            for row in rows.where(rows[f"`{PARTIAL}`"].isNotNull()).select(f"`{PARTIAL}`").collect()
        ],
        lambda rows: rows.persist(),
    )


def _schema(columns: dict[str, type]) -> Any:
    from pyspark.sql import types

    spark = {
        "object": types.StringType(),
        "bool": types.BooleanType(),
        "int64": types.LongType(),
        "float64": types.DoubleType(),
    }
    return types.StructType(
        [types.StructField(name, spark[kind.__name__]) for name, kind in columns.items()]
    )


def _check_types(frame: DataFrame, fields: Fields) -> None:
    from pyspark.sql.types import ArrayType

    for argument, name in fields.of_documents.items():
        kind = frame.schema[name].dataType
        if not isinstance(kind, ArrayType):
            problem = f": the column {name!r} must be an array of strings or of structs with "
            problem += f"page_content, got {kind.simpleString()}"
            raise InvalidType(argument, problem, "Spark's from_json makes one of JSON text")


def _check_workers(session: SparkSession) -> None:
    """Ask a worker for its krag_eval: Python there need not be Python here.

    Raises:
        RuntimeError: With the remedy, instead of an error from deep within a task.
    """

    def versions(_: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        # Sent by value: it must run where krag_eval cannot be imported.
        import sys

        import pandas as pd

        try:
            from krag_eval import __version__ as found
        except ImportError as error:
            found = f"none ({error})"
        yield pd.DataFrame({"found": [found], "python": [sys.executable]})

    remedy = (
        "Set PYSPARK_PYTHON to a Python that has krag_eval before the session is made: "
        'os.environ["PYSPARK_PYTHON"] = sys.executable on one machine; on a cluster, install '
        "krag-eval on every worker or ship an environment."
    )
    try:
        probe = session.range(1).mapInPandas(versions, schema="found string, python string")
        found, python = probe.collect()[0]
    except Exception as error:  # of many kinds, by version and mode of Spark
        lines = [line for line in str(error).splitlines() if "Error" in line] or [str(error)]
        problem = f"Spark's workers cannot run Python with pandas ({lines[-1].strip()[:300]})"
        raise RuntimeError(f"{problem}. {remedy}") from error
    if found != __version__:
        problem = f"Spark's workers run {python}, where krag_eval is {found}; here it is "
        raise RuntimeError(f"{problem}{__version__}. {remedy}")
