"""The module path of version 0.1 for runs in parts; they live in ``krag_eval.evaluator``."""

from krag_eval.core import Partial
from krag_eval.evaluator import Part, PartitionPlan

__all__ = ["Part", "Partial", "PartitionPlan"]
