"""Evaluating on the engine one's data is on: Spark, Ray and Dask.

Parts add up exactly, however the rows were cut.

Each function takes the engine's own table, with one row per query, and returns a
:class:`DistributedRun`: ``.per_query`` is a lazy table of the same engine, ``.result`` an
:class:`~krag_eval.EvaluationResult`. Texts never travel to the driver.
"""

from krag_eval.distributed.dask import evaluate_dask
from krag_eval.distributed.ray import evaluate_ray
from krag_eval.distributed.spark import evaluate_spark
from krag_eval.distributed.worker import DistributedRun

__all__ = ["DistributedRun", "evaluate_dask", "evaluate_ray", "evaluate_spark"]
