"""Errors and warnings of krag_eval, for ``except`` and filters of warnings."""

from krag_eval.core.errors import (
    Advice as Advice,
    DatasetError as DatasetError,
    InvalidInput as InvalidInput,
    InvalidType as InvalidType,
    KragEvalWarning as KragEvalWarning,
    MissingPackage as MissingPackage,
    Place as Place,
    Refusal as Refusal,
)
