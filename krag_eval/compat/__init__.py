"""krag's names on krag_eval: write ``krag_eval.compat`` where a script imports ``krag``.

    from krag_eval.compat.document import KragDocument
    from krag_eval.compat.evaluators import OfflineRetrievalEvaluators

The modules, classes, parameters, defaults and keys are krag's; matching and metrics are those of
:class:`krag_eval.OfflineRetrievalEvaluator` under ``Conventions.krag()``. Where krag's own result
is a defect, the sane one is given, or a clear error: ``docs/migrating-from-krag.md`` lists them.

Nothing is loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["document", "evaluators", "utils"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'krag_eval.compat' has no attribute {name!r}")
    return import_module(f"krag_eval.compat.{name}")


def __dir__() -> list[str]:
    return __all__
