"""Finding the benchmarks that take part in the whole, and running each in a process of its own."""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import benchmarks
from benchmarks.measuring import Row

__all__ = ["in_own_process", "names_of_modules"]


def names_of_modules() -> list[str]:
    """Return the modules that define ``rows``, without running them."""
    return [
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if "\ndef rows(" in source_of(module.name)
    ]


def source_of(name: str) -> str:
    return (Path(benchmarks.__path__[0]) / f"{name}.py").read_text("utf-8")


def in_own_process(name: str, quick: bool, file: Path | None) -> list[Row]:
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as process:
        return process.submit(rows_of, name, quick, file).result()


def rows_of(name: str, quick: bool, file: Path | None) -> list[Row]:
    """Return the rows of one module, or one that says which package it misses."""
    try:
        module = importlib.import_module(f"benchmarks.{name}")
        if "file" in inspect.signature(module.rows).parameters:
            return list(module.rows(quick, file=file))
        return list(module.rows(quick))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("benchmarks", "krag_eval")):
            raise
        return [Row.missing(name, f"{error.name} is not installed")]
