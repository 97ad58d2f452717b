"""Errors and warnings of krag_eval, for ``except`` and filters of warnings."""

from krag_eval.core import (
    Advice,
    DatasetError,
    InvalidInput,
    InvalidType,
    KragEvalWarning,
    MissingPackage,
    Place,
    Refusal,
)

__all__ = [
    "Advice",
    "DatasetError",
    "InvalidInput",
    "InvalidType",
    "KragEvalWarning",
    "MissingPackage",
    "Place",
    "Refusal",
]
